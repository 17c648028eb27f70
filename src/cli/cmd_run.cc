#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/escape.h"
#include "base/subprocess.h"
#include "cli/anchoring.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/last_failure.h"
#include "core/place.h"
#include "core/roots.h"
#include "restore/rollback.h"
#include "store/heads.h"

namespace belay {

namespace {

// Whoever is at work on the root is waited for as long as the request says, and no
// longer. A rollback that was interrupted meanwhile is ended first: half of one is no
// state that anybody wants.
Result<Captured> Capture(Store& store, const CaptureRequest& request) {
  RollbackRequest recovery;
  recovery.root = request.root;
  recovery.pid = getpid();
  recovery.lock_wait_ms = request.lock_wait_ms;
  BELAY_TRY(auto recovered, Recover(store, recovery));
  if (recovered && recovered->busy) return std::move(*recovered->busy);
  if (!request.settings->enabled) return SwitchedOff(*request.settings);
  return CaptureCheckpoint(store, request);
}

// A checkpoint made in a thread of its own, so that nobody has to wait for all of it.
class Background {
 public:
  Background(Store& store, CaptureRequest request)
      : request_(std::move(request)), thread_([this, &store] {
          request_.released_ns = &released_;
          Result<Captured> made = Capture(store, request_);
          std::lock_guard guard(mutex_);
          made_ = std::move(made);
          done_.notify_all();
        }) {}
  ~Background() {
    if (thread_.joinable()) thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Waits so long, then lets go: what changes from now on is not in it. False then, and
  // when there will be none.
  bool WaitOrRelease(int64_t wait_ms, Clock& clock) {
    std::unique_lock lock(mutex_);
    const bool in_time = done_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                                        [this] { return made_.has_value(); });
    if (!in_time) released_ = clock.WallMillis() * 1'000'000;
    return in_time && made_->ok();
  }
  Result<Captured> Finish() {
    thread_.join();
    return std::move(*made_);
  }

 private:
  CaptureRequest request_;
  std::atomic<int64_t> released_{0};
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Result<Captured>> made_;
  std::thread thread_;  // last: it uses all of the above
};

void WriteJson(JsonWriter& json, const Result<Captured>& made, const OpenedRoot& root,
               uint64_t number) {
  if (!made.ok()) {
    json.Null();
    return;
  }
  WriteCheckpoint({.checkpoint = made->checkpoint, .pinned = false, .health = {}},
                  number, root.root.path, {made->tree, made->skipped, &made->git},
                  json);
}

void RememberNoneBefore(OpenedRoot& root, const std::string& title,
                        const Error& error) {
  LastFailure failure{.of = FailureOf::kBeforeRun,
                      .at_ms = root.opened->clock.WallMillis(),
                      .after = {},
                      .what = StrCat("there is no checkpoint from before ",
                                     EscapeText(title), ": ", error.what)};
  if (auto heads = Heads::Read(root.store()); heads.ok())
    if (auto last = heads->LastOf(root.root.id)) failure.after = last->id;
  RememberFailure(root.store(), root.root.id, failure);
}

// The store that stands in the place of the one that was opened, and the root in it.
Result<OpenedRoot> OpenAgain(CommandContext& ctx, const AbsPath& path) {
  BELAY_TRY(auto opened, OpenStore(ctx, Store::Mode::kWriteExisting));
  BELAY_TRY(auto catalog, Catalog::Open(*opened->store));
  BELAY_TRY(auto found, FindRootAt(*catalog, path));
  if (!found || found->root.off)
    return Error(Errc::kNotFound,
                 "the store was exchanged meanwhile, and the one that "
                 "is there now does not protect this directory");
  return OpenedRoot{.opened = std::move(opened),
                    .catalog = std::move(catalog),
                    .root = found->root,
                    .path = path};
}

// Of a directory that nobody protected: what to type so that the program runs with a
// way back after all.
Error WithWayToRun(CommandContext& ctx, Error error,
                   const std::vector<std::string>& words) {
  auto dir = NamedDir(ctx);
  if (error.code != Errc::kRefused || !error.hint.starts_with("protect it with:") ||
      !dir.ok())
    return error;
  std::string run = "belay run";
  if (auto named = ctx.args.value("--root"))
    run += StrCat(" --root ", ShellWord(*named));
  if (auto name = ctx.args.value("--name")) run += StrCat(" --name ", ShellWord(*name));
  run += " --";
  for (const std::string& word : words) run += StrCat(" ", ShellWord(word));
  auto fd = ctx.fs.OpenDir(*dir);
  auto store = ctx.env.StoreDir();
  auto home = ctx.env.HomeDir();
  if (!fd.ok() || !store.ok()) return error;
  Status place = CheckPlace(ctx.fs, *dir, *fd, *store,
                            home.ok() ? std::optional(*home) : std::nullopt, false);
  error.hint =
      place.ok()
          ? StrCat("nothing was run; protect it first: belay on",
                   DirWord(ctx, dir->bytes()), " && ", run)
          : StrCat("nothing was run; ", place.error().what,
                   ": go to the project that it changes, then: belay on && ", run);
  return error;
}

}  // namespace

ExitCode CmdRun(CommandContext& ctx) {
  std::vector<std::string> words(ctx.args.rest().begin(), ctx.args.rest().end());
  if (words.empty())
    return ctx.term.FailUsage("what is to be run?", "belay run -- COMMAND...");
  auto root = OpenRootFast(ctx, WhenBusy::kNoWait);
  if (!root.ok()) return ctx.term.Fail(WithWayToRun(ctx, root.error(), words));
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  std::string title;
  for (const std::string& word : words) title += (title.empty() ? "" : " ") + word;
  if (title.size() > 200) title.resize(200);

  CaptureRequest request;
  request.root = root->root;
  request.settings = &*settings;
  request.git = GitPlacesOf(ctx.env);
  request.kind = CheckpointKind::kAuto;
  request.description = StrCat("before ", title);
  request.lock_wait_ms = settings->run_wait_ms;
  if (auto name = ctx.args.value("--name")) {
    Status fine = CheckNewName(*name);
    if (!fine.ok()) return ctx.term.FailUsage(fine.error().what, fine.error().hint);
    request.name = *name;
  }
  if (!settings->enabled)
    ctx.term.Warn(StrCat(SwitchedOff(*settings).what, "; running it without any"));
  auto warn = [&](std::string_view what, std::string_view why) {
    if (settings->enabled) ctx.term.Warn(StrCat(what, why));
  };
  auto not_run = [&](Error error) {
    if (error.hint.empty()) error.hint = "nothing was run";
    ctx.term.Fail(error);
    return static_cast<ExitCode>(error.code == Errc::kNotFound ? 127 : 126);
  };
  // A mistyped name is no reason for two checkpoints.
  if (Status found = CheckProgram(words[0], ctx.env.exec_path); !found.ok())
    return not_run(found.error());
  // A checkpoint that fails or takes long does not keep the program from running; it is
  // said.
  Background before(root->store(), request);
  if (!before.WaitOrRelease(settings->run_wait_ms, root->opened->clock))
    warn("going on without a complete checkpoint from before", "");
  auto code = RunAttached(words, ctx.term.json());
  Result<Captured> first = before.Finish();
  if (!first.ok()) {
    warn("there is no checkpoint from before: ", first.error().what);
    // The one from after would make `belay status` forget it.
    if (settings->enabled) RememberNoneBefore(*root, title, first.error());
  }
  request.name.reset();
  request.description = StrCat("after ", title);
  request.tool_name = "run";  // whose doing it is
  Result<Captured> second = [&]() -> Result<Captured> {
    if (!root->store().IsInPlace()) {
      BELAY_TRY(OpenedRoot again, OpenAgain(ctx, root->path));
      root = std::move(again);
      request.root = root->root;
    }
    return Capture(root->store(), request);
  }();
  if (!second.ok()) warn("there is no checkpoint from after: ", second.error().what);
  // Also that old checkpoints had to go; what both say is said once.
  std::vector<std::string> said;
  for (const Result<Captured>* made : {&first, &second}) {
    if (!made->ok()) continue;
    for (const std::string& warning : (*made)->warnings) {
      if (std::find(said.begin(), said.end(), warning) != said.end()) continue;
      said.push_back(warning);
      ctx.term.Warn(warning);
    }
  }
  if (second.ok()) StartUpkeepIfDue(root->store(), second->checkpoint);
  if ((first.ok() && first->git.Find("") != nullptr) ||
      (second.ok() && second->git.Find("") != nullptr))
    StartAnchoring(*settings, root->root);
  if (!code.ok()) return not_run(code.error());
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("exit_code").Int(*code);
    json.Key("before");
    WriteJson(json, first, *root, 2);
    json.Key("after");
    WriteJson(json, second, *root, 1);
    json.EndObject();
    ctx.term.OutJson(json);
  } else if (first.ok() && second.ok() && !ctx.term.quiet()) {
    const Checkpoint& c = second->checkpoint;
    std::string line = StrCat(ChangedText(c), "; take it back with: belay rollback ",
                              first->checkpoint.id.text().substr(0, 7));
    if (first->checkpoint.partial)
      line += " (partial: the checkpoint before was not complete in time)";
    ctx.term.Note(line);
  } else if (first.ok() && !ctx.term.quiet()) {
    // Whatever it did to the directory itself, the state before is there.
    std::string line = StrCat("take it back with: belay rollback ",
                              first->checkpoint.id.text().substr(0, 7));
    if (!ctx.fs.OpenDir(root->path).ok())
      line = StrCat(EscapeForDisplay(root->root.path), " is gone; ", line, " --root ",
                    ShellWord(root->root.path));
    ctx.term.Note(line);
  }
  return static_cast<ExitCode>(*code);
}

}  // namespace belay
