#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/capture.h"
#include "core/interrupted.h"
#include "core/last_failure.h"
#include "core/partial.h"
#include "core/roots.h"
#include "core/space.h"
#include "core/state_view.h"
#include "store/usage.h"

namespace belay {

namespace {

void WriteFailures(const std::vector<RootStatus::Failure>& failures, JsonWriter& json) {
  json.BeginArray();
  for (const RootStatus::Failure& failure : failures) {
    json.BeginObject();
    json.Key("at").String(failure.at);
    json.Key("what").String(failure.what);
    json.EndObject();
  }
  json.EndArray();
}

void WriteJson(const RootStatus& status, JsonWriter& json) {
  json.BeginObject();
  json.Key("root").PathValue(status.root.bytes());
  json.Key("protected").Bool(status.is_protected);
  json.Key("last");
  if (status.last_json.empty()) {
    json.Null();
  } else {
    json.Raw(status.last_json);
  }
  json.Key("recovered");
  if (status.recovered) {
    json.String(*status.recovered);
  } else {
    json.Null();
  }
  json.Key("watching").Bool(status.watching);
  json.Key("looks_like");
  if (status.moved_from)
    json.PathValue(*status.moved_from);
  else
    json.Null();
  json.Key("failures");
  WriteFailures(status.failures, json);
  json.EndObject();
}

// What hooks swallowed is told also where nothing else can be.
ExitCode FailWithFailures(CommandContext& ctx, const Error& error) {
  const std::vector<RootStatus::Failure> failures = FailuresWithoutStore(ctx);
  JsonWriter json;
  WriteFailures(failures, json);
  const ExitCode code = FailOnStore(ctx, error, json.Take());
  for (const RootStatus::Failure& failure : failures) ctx.term.Warn(failure.what);
  return code;
}

// What keeps the next checkpoint from being made, as far as it can be known without
// making one; then what was wrong with the last one.
class Obstacles {
 public:
  Obstacles(CommandContext& ctx, RootStatus& status) : ctx_(ctx), status_(status) {}

  void Find() {
    LookAtDirectory();
    LookAtSettings();
    auto opened = OpenStore(ctx_, Store::Mode::kRead);
    if (!opened.ok()) return;
    Store& store = *(*opened)->store;
    LookAtLock(store);
    auto catalog = Catalog::Open(store);
    if (!catalog.ok()) return;
    auto root = FindRootAt(**catalog, status_.root);
    if (!root.ok() || !*root) return;
    auto last = (*catalog)->LastCheckpoint((*root)->root.id);
    if (!last.ok()) return;
    if (settings_) LookAtLimits(store, *last);
    LookForStages(store, **catalog, (*root)->root.id);
    LookAtFailures(store, **catalog, (*root)->root.id);
    LookAtDoubts(store, *last);
    LookForPartial(**catalog, (*root)->root.id);
    if (auto all = AllocatedBytes(store); all.ok())
      aside_ = AsideText(store.path(), all->aside, all->aside_paths);
  }

  // Where nothing is protected yet, and nothing can be.
  void FindOfPlace() {
    LookAtOwnSettings();
    for (RootStatus::Failure& failure : FailuresOfNoRoot(ctx_))
      status_.failures.push_back(std::move(failure));
    auto prepared = PrepareStore(ctx_);
    if (!prepared.ok() || ctx_.fs.OpenDir((*prepared)->dir).ok()) return;
    Status can =
        Store::CheckCanBeMade(ctx_.fs, (*prepared)->dir, (*prepared)->options.uid);
    if (!can.ok()) Add(can.error());
  }

  // What lies in the store and is no part of it; empty when there is nothing.
  const std::string& aside() const { return aside_; }

 private:
  void Add(std::string what) {
    status_.failures.push_back({FormatUtcMillis(RealClock().WallMillis()), what});
  }
  void Add(const Error& error) {
    Add(error.hint.empty() ? error.what : StrCat(error.what, "; ", error.hint));
  }

  void LookAtDirectory() {
    const std::string root = ShellWord(status_.root.bytes());
    switch (LookAtPlace(ctx_.fs, status_.root)) {
      case RootPlace::kThere:
        return;
      case RootPlace::kGone:
        if (Status why = CheckRootIsThere(ctx_, status_.root, /*may_be_gone=*/true);
            !why.ok())
          return Add(why.error());
        return Add("the directory is gone: no checkpoint can be made");
      case RootPlace::kUnreadable:
        return Add("the directory may not be read: no checkpoint can be made");
      case RootPlace::kLinked:
        return Add(StrCat(
            "a symlink is in its place; if it was moved: belay on NEW --moved-from ",
            root));
    }
  }
  void LookAtSettings() {
    auto file = ctx_.env.UserSettingsFile();
    if (!file.ok())
      return Add(StrCat("no checkpoint can be made: ", file.error().what));
    auto settings = LoadSettings(ctx_.fs, *file, status_.root);
    if (!settings.ok())
      return Add(StrCat("no checkpoint can be made: ", settings.error().what));
    settings_ = std::move(*settings);
    if (!settings_->enabled) Add(SwitchedOff(*settings_));
  }
  // Which say whether a directory is protected at first sight.
  void LookAtOwnSettings() {
    if (BELAY_MUTANT("settings-count-where-something-is-protected")) return;
    if (auto trouble = TroubleOfOwnSettings(ctx_)) Add(*trouble);
  }
  // Who may not lock may only read; of the catalogue that was said, too.
  void LookAtLock(Store& store) {
    auto lock = ctx_.fs.Open(store.dir(), Name::Literal("lock"), OpenMode::ReadWrite());
    if (lock.ok() || (lock.error().sys != EACCES && lock.error().sys != EPERM)) return;
    std::erase_if(status_.failures, [&](const RootStatus::Failure& failure) {
      return failure.passing &&
             failure.what.find(lock.error().what) != std::string::npos;
    });
    Add(StrCat("no checkpoint can be made: ", lock.error().what,
               "; see whose it is, and who may read and write it: ls -l"));
  }
  void LookAtLimits(Store& store, const std::optional<CatalogEntry>& last) {
    Status room = CheckRoom(store, *settings_);
    if (!room.ok()) Add(room.error());
    const uint64_t most = static_cast<uint64_t>(settings_->max_files);
    if (last && most != 0 && last->checkpoint.files > most)
      Add(StrCat("the last checkpoint has ", CountText(last->checkpoint.files, "file"),
                 ", more than max_files (", std::to_string(most), ")"));
  }
  void LookAtFailures(Store& store, Catalog& catalog, const RootId& root) {
    for (FailureOf of : {FailureOf::kRollback, FailureOf::kBeforeRun,
                         FailureOf::kCheckpoint, FailureOf::kAnchor}) {
      auto failure = ReadFailure(store, catalog, root, of);
      if (!failure.ok() || !*failure) continue;
      const std::string& what = (*failure)->what;
      // What still holds was said.
      if (std::ranges::any_of(status_.failures, [&](const RootStatus::Failure& said) {
            return said.what.starts_with(what);
          }))
        continue;
      status_.failures.push_back(
          {FormatUtcMillis((*failure)->at_ms),
           of == FailureOf::kCheckpoint ? StrCat("no checkpoint: ", what) : what,
           of == FailureOf::kAnchor});
    }
  }
  // What a rollback displaced, and no journal that leads to it.
  void LookForStages(Store& store, Catalog& catalog, const RootId& root) {
    auto pending = HasJournal(store, root);
    auto dir = ctx_.fs.OpenDir(status_.root);
    if (!pending.ok() || *pending || !dir.ok()) return;
    auto names = ctx_.fs.List(*dir);
    if (!names.ok()) return;
    for (const DirEntry& entry : *names) {
      if (!entry.name.starts_with(kStagePrefix)) continue;
      std::string text =
          StrCat(entry.name, " is left of a rollback whose journal is gone: the ",
                 "directory may be a mix, and what was displaced is in there");
      auto safety = catalog.ListCheckpoints(
          {.root = root, .kind = CheckpointKind::kSafety, .limit = 1});
      if (safety.ok() && !safety->empty())
        text +=
            StrCat("; to go back to before it: belay rollback ",
                   (*safety)[0].checkpoint.id.text().substr(0, 7), "; then remove it");
      Add(std::move(text));
    }
  }
  void LookAtDoubts(Store& store, const std::optional<CatalogEntry>& last) {
    if (!last) return;
    auto state = LoadState(store, last->checkpoint.state);
    if (!state.ok() || !state->rules) return;
    for (const std::string& doubt : DoubtsOf(*state->rules))
      status_.failures.push_back({FormatUtcMillis(last->checkpoint.made_ms),
                                  StrCat("the last checkpoint: ", doubt)});
  }

  void LookForPartial(Catalog& catalog, const RootId& root) {
    const auto found = FindPartial(catalog, root);
    if (!found.ok() || !*found) return;
    const Checkpoint& c = (*found)->last.checkpoint;
    const size_t count = (*found)->count;
    const bool of_agent = c.session.has_value();
    std::string text =
        (*found)->is_newest && count == 1 ? "the last checkpoint is partial"
        : count == 1 ? "a checkpoint of the last session is partial"
                     : StrCat(std::to_string(count),
                              " checkpoints of the last session are partial");
    text += StrCat(": not complete before ", of_agent ? "the agent" : "the program",
                   " went on, so what changed meanwhile is not in ",
                   count == 1 ? "it" : "them", ", and a rollback to ",
                   count == 1 ? "it" : "one", " deletes nothing",
                   count == 1 ? ": " : "; the last: ", c.id.text().substr(0, 7));
    if (!c.description.empty())
      text += StrCat(" ('", EscapeForDisplay(c.description), "')");
    if ((*found)->is_start) {
      text += "; nobody waits for the one at a session's start";
    } else {
      text += StrCat("; for more time: belay config ",
                     of_agent ? "deadline_ms" : "run_wait_ms", " MILLISECONDS");
      if (settings_)
        text += StrCat(
            " (now ",
            std::to_string(of_agent ? settings_->deadline_ms : settings_->run_wait_ms),
            ")");
    }
    // It keeps no checkpoint from being made.
    status_.failures.push_back({FormatUtcMillis(c.made_ms), text, /*passing=*/true});
  }

  CommandContext& ctx_;
  RootStatus& status_;
  std::optional<Settings> settings_;
  std::string aside_;
};

}  // namespace

ExitCode CmdStatus(CommandContext& ctx) {
  auto status = FindRoot(ctx);
  if (!status.ok()) return FailWithFailures(ctx, status.error());
  Obstacles obstacles(ctx, *status);
  if (status->is_protected)
    obstacles.Find();
  else
    obstacles.FindOfPlace();
  // As with belay list: what is left is told, and that it may not be all.
  if (status->damage) {
    const std::string text = StrCat(status->damage->what, "; run: belay verify");
    ctx.term.Warn(text);
    if (ctx.term.json())
      status->failures.push_back(
          {FormatUtcMillis(RealClock().WallMillis()), text, /*passing=*/true});
  }
  const bool problem =
      std::any_of(status->failures.begin(), status->failures.end(),
                  [](const RootStatus::Failure& failure) { return !failure.passing; });
  const ExitCode code = problem ? ExitCode::kProblem : ExitCode::kOk;
  if (problem)
    for (const RootStatus::Failure& failure : status->failures)
      ctx.term.Warn(failure.what);
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(*status, json);
    ctx.term.OutJson(json);
    return code;
  }
  std::string root = EscapeForDisplay(status->root.bytes());
  auto show_failures = [&] {
    for (const RootStatus::Failure& failure : status->failures)
      ctx.term.Out(StrCat(Wrap(StrCat(failure.passing ? "Note (" : "Problem (",
                                      failure.at, "): ", failure.what),
                               0, 2, ctx.term.columns()),
                          "\n"));
  };
  if (!status->is_protected) {
    ctx.term.Out(
        StrCat(ctx.term.Paint(Style::kYellow, "not protected"), ": ", root, "\n"));
    ctx.term.Say(status->hint.empty()
                     ? "Nothing here can be taken back yet. Start with: belay on"
                     : status->hint);
    show_failures();
    return code;
  }
  ctx.term.Out(StrCat(problem
                          ? ctx.term.Paint(Style::kYellow, "protected, with problems")
                          : ctx.term.Paint(Style::kGreen, "protected"),
                      ": ", root, "\n"));
  ctx.term.Say(status->last_text.empty()
                   ? "No checkpoint yet."
                   : StrCat("Last checkpoint: ", status->last_text));
  if (status->recovered) ctx.term.Say(StrCat("Recovered: ", *status->recovered));
  show_failures();
  if (!obstacles.aside().empty()) ctx.term.Say(StrCat("Note: ", obstacles.aside()));
  return code;
}

}  // namespace belay
