#pragma once

// A project in which agents are at work: their events are told as hooks tell them, and
// the clock moves between them.

#include <string>
#include <vector>

#include "agent/recorder.h"
#include "base/mem_fs.h"
#include "core/live.h"
#include "core/operations.h"
#include "core/retention.h"
#include "support/fs_world.h"
#include "support/restore_world.h"

namespace belay::test {

class AgentWorld {
 public:
  explicit AgentWorld(Fs& on, const AbsPath& top = AbsPath::Literal("/top"),
                      uint32_t uid = 1000)
      : disk(on), world(on, top, 1, uid) {
    Must(world.Dir());
    Put("old.txt", "old");
  }

  void Put(const std::string& path, const std::string& text) {
    PutAt(world.project, path, text);
  }
  void PutAt(const AbsPath& dir, const std::string& path, const std::string& text) {
    Must(MakeDirs(disk, dir, 0755));
    if (const size_t slash = path.rfind('/'); slash != std::string::npos)
      Must(MakeDirs(disk, dir.Join(P(path.substr(0, slash))), 0755));
    Must(PutFile(disk, Must(disk.OpenDir(dir)), P(path), text));
  }
  void Delete(const std::string& path) {
    const AbsPath at = world.project.Join(P(path));
    Must(disk.Unlink(Must(disk.OpenDir(at.parent())), P(path).basename()));
  }
  // The directory is another one from now on, as `belay on --moved-from` says.
  void MoveTo(const AbsPath& to) {
    const AbsPath from = world.project;
    const Fd old_dir = Must(disk.OpenDir(from.parent()));
    const Fd new_dir = Must(MakeDirs(disk, to.parent(), 0755));
    Must(disk.Rename(old_dir, Name::Literal(from.name()), new_dir,
                     Name::Literal(to.name()), RenameHow::kNoReplace));
    auto opened = Must(world.world.Open());
    auto catalog = Must(Catalog::Open(*opened));
    world.project = to;
    Must(RegisterRoot(*opened, *catalog, to, Must(disk.Stat(Must(disk.OpenDir(to)))),
                      from));
  }
  // What is at an absolute path; "-" for nothing.
  std::string At(const std::string& path) {
    const AbsPath at = AbsPath::Literal(path);
    auto dir = disk.OpenDir(at.parent());
    if (!dir.ok()) return "-";
    auto text = GetFile(disk, *dir, RelPath::Literal(path.substr(path.rfind('/') + 1)));
    return text.ok() ? *text : "-";
  }
  std::string Files() {
    std::string out;
    for (const DirEntry& entry : Must(disk.List(Must(world.Dir()))))
      out += entry.name + " ";
    return out;
  }

  HookEvent Event(EventKind kind, const std::string& session) {
    return {.agent = AgentKind::kClaude,
            .kind = kind,
            .session = session,
            .cwd = world.project.bytes()};
  }
  // The description of the checkpoint; "" when none was made.
  std::string Tell(const HookEvent& event) {
    world.world.clock.SetWallMillis(world.world.clock.WallMillis() + step_ms);
    auto opened = Must(world.Open());
    RecordRequest request{
        .root = opened.root, .settings = &world.settings, .lock_wait_ms = 200};
    request.git.user.no_system = true;
    request.released_ns = released_ns;
    auto made = RecordEvent(*opened.store, request, event);
    if (!made.ok()) return "failed: " + made.error().what;
    if (!*made) return "";
    last = (*made)->checkpoint;
    return last.description;
  }
  std::string Start(const std::string& session) {
    return Tell(Event(EventKind::kSessionStart, session));
  }
  std::string Prompt(const std::string& session, const std::string& text = "do it") {
    HookEvent event = Event(EventKind::kPrompt, session);
    event.prompt = text;
    event.anchor = "p" + std::to_string(++prompts);
    return Tell(event);
  }
  HookEvent Call(EventKind kind, const std::string& session, const std::string& id,
                 const std::vector<std::string>& paths = {}) {
    HookEvent event = Event(kind, session);
    event.tool =
        ToolCall{.name = paths.empty() ? "Bash" : "Write",
                 .id = id,
                 .fingerprint = id,
                 .reach = paths.empty() ? ToolReach::kWrites : ToolReach::kPaths,
                 .paths = paths,
                 .what = paths.empty() ? "make" : paths[0]};
    return event;
  }
  std::string Pre(const std::string& session, const std::string& id,
                  const std::vector<std::string>& paths = {}) {
    return Tell(Call(EventKind::kToolBegin, session, id, paths));
  }
  std::string Post(const std::string& session, const std::string& id,
                   const std::vector<std::string>& paths = {}) {
    return Tell(Call(EventKind::kToolEnd, session, id, paths));
  }
  // One call that names a path of the project and writes it.
  void Write(const std::string& session, const std::string& id, const std::string& path,
             const std::string& text) {
    Pre(session, id, {path});
    Put(path, text);
    Post(session, id, {path});
  }
  std::string End(EventKind kind, const std::string& session) {
    return Tell(Event(kind, session));
  }

  RollbackRequest Request(const RestoreWorld::Opened& opened) {
    RollbackRequest request = world.RequestFor(opened.root);
    request.outside = outside;
    request.external_files = external_files;
    request.asked_by = asked_by;
    request.by_hook = by_hook;
    return request;
  }
  Result<Outcome> Preview(const Checkpoint& target) {
    auto opened = Must(world.Open());
    return PreviewRollback(*opened.store, Request(opened), target);
  }
  Result<Outcome> Back(const Checkpoint& target) {
    auto opened = Must(world.Open());
    return Rollback(*opened.store, Request(opened), target);
  }
  uint64_t Prune(int64_t autos) {
    auto opened = Must(world.Open());
    return Must(belay::Prune(*opened.store, *opened.catalog, {.autos = autos}, false))
        .checkpoints;
  }
  std::vector<CatalogEntry> List() {
    auto opened = Must(world.Open());
    return Must(opened.catalog->ListCheckpoints({.root = opened.root.id}));
  }

  Fs& disk;
  RestoreWorld world;
  Checkpoint last;
  int prompts = 0;
  int64_t step_ms = 10;
  const std::atomic<int64_t>* released_ns = nullptr;
  OnOutside outside = OnOutside::kAsk;
  bool external_files = false;
  AskedBy asked_by = {};
  LeftByHook by_hook = {};
};

}  // namespace belay::test
