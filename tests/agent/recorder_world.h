#pragma once

// RecorderWorld: what agents tell of one directory, told event by event, and whose
// doing every change is said to be.

#include <gtest/gtest.h>

#include "agent/recorder.h"
#include "base/mem_fs.h"
#include "core/capture.h"
#include "core/operations.h"
#include "core/path_history.h"
#include "support/fs_world.h"
#include "support/restore_world.h"

namespace belay::test {

class RecorderWorld : public ::testing::Test {
 protected:
  RecorderWorld() : world_(disk_, AbsPath::Literal("/top")) {
    Must(world_.Dir());
    Put("old.txt", "old");
  }

  void Put(const std::string& path, const std::string& text) {
    Fd dir = Must(world_.Dir());
    if (const size_t slash = path.rfind('/'); slash != std::string::npos)
      Must(MakeDirs(disk_, world_.project.Join(P(path.substr(0, slash))), 0755));
    Must(PutFile(disk_, dir, P(path), text));
  }
  void Delete(const std::string& name) {
    Must(disk_.Unlink(Must(world_.Dir()), Name::Literal(name)));
  }

  HookEvent Event(EventKind kind, const std::string& session) {
    return {.agent = agent_,
            .kind = kind,
            .session = session,
            .cwd = world_.project.bytes(),
            .anchor = anchor_};
  }
  // What was made of it: nothing, or the description of the checkpoint.
  std::string Tell(const HookEvent& event) {
    auto opened = Must(world_.Open());
    RecordRequest request{
        .root = opened.root, .settings = &world_.settings, .lock_wait_ms = 200};
    request.git.user.no_system = true;
    request.released_ns = &released_ns_;
    auto made = RecordEvent(*opened.store, request, event);
    if (!made.ok()) return "failed: " + made.error().what;
    if (!*made) return "";
    last_ = (*made)->checkpoint;
    return (*made)->checkpoint.description;
  }
  std::string Start(const std::string& session, const std::string& source = "startup") {
    HookEvent event = Event(EventKind::kSessionStart, session);
    event.source = source;
    return Tell(event);
  }
  std::string Prompt(const std::string& session, const std::string& anchor,
                     const std::string& text = "do it") {
    anchor_ = anchor;
    HookEvent event = Event(EventKind::kPrompt, session);
    event.prompt = text;
    return Tell(event);
  }
  HookEvent Call(EventKind kind, const std::string& session, const std::string& id,
                 const std::vector<std::string>& paths = {}) {
    HookEvent event = Event(kind, session);
    event.tool =
        ToolCall{.name = paths.empty() ? "Bash" : "Write",
                 .fingerprint = id,
                 .reach = paths.empty() ? ToolReach::kWrites : ToolReach::kPaths,
                 .paths = paths,
                 .what = paths.empty() ? "make" : paths[0]};
    if (ids_) event.tool->id = id;
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
  std::string End(EventKind kind, const std::string& session) {
    return Tell(Event(kind, session));
  }

  // A call that goes on in the background.
  void Background(const std::string& session, const std::string& id) {
    Pre(session, id);
    HookEvent end = Call(EventKind::kToolEnd, session, id);
    end.tool->background = true;
    end.tool->task = "task-" + id;
    Tell(end);
  }

  // What a rollback to `target` would ask about.
  std::string Asked(const Checkpoint& target) {
    auto opened = Must(world_.Open());
    RollbackRequest request = world_.RequestFor(opened.root);
    request.outside = OnOutside::kAsk;
    std::string out;
    for (const std::string& path :
         Must(PreviewRollback(*opened.store, request, target)).plan.outside)
      out += (out.empty() ? "" : " ") + path;
    return out;
  }
  // Of every change but those of the first checkpoint, oldest first: "path=author",
  // where an author is "outside" or session/call, and several are joined by "+".
  std::string Authors() {
    auto opened = Must(world_.Open());
    auto list = Must(opened.catalog->ListCheckpoints({.root = opened.root.id}));
    auto history = Must(HistoryOf(
        *opened.store, [&](const ObjectId& id) { return opened.store->GetTree(id); },
        list, Must(ListOperations(*opened.catalog, opened.root.id)), {""}));
    std::string out;
    for (auto row = history.rows.rbegin(); row != history.rows.rend(); ++row) {
      if (row->checkpoint == nullptr || row == history.rows.rbegin()) continue;
      for (const auto& changed : row->paths) {
        std::string by;
        for (const Author& author : AuthorsIn(*row, changed.path)) {
          if (!by.empty()) by += "+";
          by += author.kind == Author::Kind::kOutside ? "outside"
                : author.kind == Author::Kind::kUnknown
                    ? "unknown"
                    : author.session.value_or("?") + "/" +
                          author.tool_use_id.value_or(author.tool_name.value_or("-"));
        }
        out += (out.empty() ? "" : " ") + changed.path + "=" + by;
      }
    }
    return out;
  }
  // What checkpoints say was right at once: nothing had to be added to it later.
  bool SaidAtOnce() {
    auto opened = Must(world_.Open());
    return Must(opened.catalog->ListRecords({.kind = RecordKind::kAnnotation})).empty();
  }
  size_t Count() {
    auto opened = Must(world_.Open());
    return Must(opened.catalog->ListCheckpoints({.root = opened.root.id})).size();
  }

  MemFs disk_;
  RestoreWorld world_;
  AgentKind agent_ = AgentKind::kGeneric;
  std::optional<std::string> anchor_;
  bool ids_ = true;
  std::atomic<int64_t> released_ns_{0};  // not 0: the agent no longer waits
  Checkpoint last_;
};

}  // namespace belay::test
