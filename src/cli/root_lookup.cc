#include <algorithm>
#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
#include "cli/checkpoint_json.h"
#include "cli/context.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/annotate.h"
#include "core/failures.h"
#include "core/last_failure.h"
#include "core/roots.h"
#include "core/settings_table.h"
#include "core/state_view.h"

namespace belay {

std::string DirWord(CommandContext& ctx, std::string_view dir) {
  auto here = ctx.env.Resolve(".");
  auto real = here.ok() ? ctx.fs.RealPath(*here) : here.error();
  if (real.ok() && real->bytes() == dir) return {};
  return StrCat(" ", ShellWord(dir));
}

namespace {

// What hooks could not do, and told nobody: agents do not show it.
std::vector<RootStatus::Failure> HookFailures(const std::vector<Failure>& all) {
  std::vector<RootStatus::Failure> out;
  struct Kind {
    std::string_view what, one, many;
  };
  constexpr Kind kKinds[] = {{"hook", "event of agents could not be recorded",
                              "events of agents could not be recorded"},
                             {"transcript", "time a conversation could not be kept",
                              "times a conversation could not be kept"},
                             {"hooks.on_session_end", "time a command of yours failed",
                              "times a command of yours failed"},
                             {"answer", "answer to an agent could not be given",
                              "answers to agents could not be given"}};
  for (const Kind& kind : kKinds) {
    size_t count = 0;
    Failure last;
    for (const Failure& failure : all) {
      if (failure.what != kind.what) continue;
      ++count;
      if (failure.at_ms >= last.at_ms) last = failure;
    }
    if (count == 0) continue;
    out.push_back({FormatUtcMillis(last.at_ms),
                   StrCat(std::to_string(count), " ", count == 1 ? kind.one : kind.many,
                          "; the last: ", last.message),
                   true});
  }
  return out;
}

bool MayWritePacks(Store& store) {
  const PackId open = store.open_pack();
  auto stat = open.is_zero()
                  ? store.fs().Stat(store.packs_dir())
                  : store.fs().StatAt(store.packs_dir(), PackFile::FileName(open));
  constexpr uint32_t kOwnerMayWrite = 0200;
  return stat.ok() && stat->uid == store.options().uid &&
         (stat->mode & kOwnerMayWrite) != 0;
}

}  // namespace

std::vector<RootStatus::Failure> FailuresWithoutStore(CommandContext& ctx) {
  auto dir = ctx.env.StoreDir();
  if (!dir.ok()) return {};
  return HookFailures(ReadFailures(ctx.fs, *dir));
}

std::vector<RootStatus::Failure> FailuresOfNoRoot(CommandContext& ctx) {
  auto dir = ctx.env.StoreDir();
  if (!dir.ok()) return {};
  std::vector<Failure> failed = ReadFailures(ctx.fs, *dir);
  std::erase_if(failed, [](const Failure& f) { return f.root != RootId(); });
  return HookFailures(failed);
}

Result<std::optional<RootStatus>> LookUpRoot(CommandContext& ctx, const AbsPath& dir) {
  std::optional<RootStatus> none;
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok()) {
    if (opened.error().code == Errc::kNotFound) return none;
    return std::move(opened).error();
  }
  Store& store = *(*opened)->store;
  // A store that lost a pack must not look like one that never had anything.
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto damage, SeenDamage(store, *catalog));
  BELAY_TRY(std::vector<RootEntry> roots, catalog->Roots());
  auto root = FindRootFor(roots, dir);
  if (damage && (!root || root->root.off)) return std::move(*damage);
  if (!root || root->root.off) {
    // A directory in one that once was protected is a directory of its own; the other
    // is only mentioned.
    RootStatus status{.root = dir};
    if (auto fd = ctx.fs.OpenDir(dir); fd.ok()) {
      auto stat = ctx.fs.Stat(*fd);
      if (stat.ok()) {
        BELAY_TRY(auto moved, FindMoved(*catalog, ctx.fs, *stat));
        if (moved) {
          status.moved_from = moved->root.path;
          status.hint = StrCat("This looks like ", EscapeForDisplay(moved->root.path),
                               ", which is gone. To go on with its history: belay on",
                               DirWord(ctx, dir.bytes()), " --moved-from ",
                               ShellWord(moved->root.path));
        }
      }
    } else if (!root || root->root.path != dir.bytes()) {
      return none;
    }
    if (status.hint.empty() && root)
      status.hint = StrCat(EscapeForDisplay(root->root.path), " was protected until ",
                           LocalMinute(root->made_ms),
                           "; its history is kept. To go on: belay on",
                           DirWord(ctx, root->root.path));
    return std::optional(std::move(status));
  }
  if (auto tree = LeftOutHere(ctx, store, roots, root->root, dir)) {
    RootStatus status{.root = tree->dir, .damage = std::move(damage)};
    status.hint = StrCat(LeftOutText(*tree, root->root),
                         ": nothing here can be taken back. Start with: belay on",
                         DirWord(ctx, tree->dir.bytes()));
    return std::optional(std::move(status));
  }
  BELAY_TRY(AbsPath path, AbsPath::Parse(root->root.path));
  RootStatus status{.root = std::move(path), .is_protected = true};
  status.damage = std::move(damage);
  catalog.reset();
  auto recovered = RecoverFirst(ctx, *opened, root->root, /*wait_ms=*/0);
  // What was not recovered is a failure that stays, and is told as one.
  if (recovered.ok() && *recovered && (*recovered)->text.starts_with(kJournalLost))
    ctx.term.Detail((*recovered)->text);
  else if (recovered.ok() && *recovered &&
           (*recovered)->how == Recovered::How::kWaiting)
    status.failures.push_back(
        {FormatUtcMillis((*opened)->clock.WallMillis()), (*recovered)->text});
  else if (recovered.ok() && *recovered)
    status.recovered = (*recovered)->text;
  else if (!recovered.ok())
    status.failures.push_back(
        {FormatUtcMillis((*opened)->clock.WallMillis()),
         recovered.error().code == Errc::kBusy
             ? recovered.error().what
             : StrCat("an interrupted rollback may wait: ", recovered.error().what),
         recovered.error().code == Errc::kBusy});
  Store& now = *(*opened)->store;
  BELAY_TRY(catalog, Catalog::Open(now));
  BELAY_TRY(auto last, catalog->LastCheckpoint(root->root.id));
  if (last) {
    StateFacts facts(now);
    const StateParts state = facts.Of(last->checkpoint.state);
    JsonWriter json;
    // A log that cannot be read is no reason to say nothing.
    auto taken_back = TakenBackBy(*catalog, root->root.id, last->checkpoint.seq);
    WriteCheckpoint(*last, 1, root->root.path, state, json, {},
                    taken_back.ok() ? *taken_back : std::nullopt);
    status.last_json = json.Take();
    status.last_text = CheckpointLine(*last, ctx.term.columns() - 17);
    if (auto view = LoadState(now, last->checkpoint.state); view.ok() && view->rules)
      status.doubts = DoubtsOf(*view->rules);
  }
  // Not a root that never had anything.
  if (!last && status.damage) return std::move(*status.damage);
  if (const auto& trouble = catalog->trouble()) {
    // Where nothing can be written, nothing can be rebuilt, and need not be.
    const bool refused = trouble->sys == EACCES || trouble->sys == EPERM;
    // The catalogue alone may be somebody else's: checkpoints do without it.
    const bool locked_out = trouble->sys == EROFS || (refused && !MayWritePacks(now));
    std::string_view advice = "belay repair rebuilds it";
    if (refused) advice = "see whose it is: ls -l; belay repair makes another";
    if (trouble->code == Errc::kNoSpace) advice = "make room on the disk";
    if (trouble->sys == EMFILE || trouble->sys == ENFILE)
      advice = "raise that limit: ulimit -n";
    status.failures.push_back(
        {FormatUtcMillis((*opened)->clock.WallMillis()),
         locked_out
             ? StrCat("the store cannot be written (", trouble->what,
                      "): no checkpoint can be made")
             : StrCat("the catalogue cannot be used (", trouble->what, "); ", advice),
         !locked_out});
  }
  std::vector<Failure> failed = ReadFailures(now, root->root.id);
  for (Failure& failure : ReadFailures(now, RootId()))
    failed.push_back(std::move(failure));
  for (RootStatus::Failure& failure : HookFailures(failed))
    status.failures.push_back(std::move(failure));
  return std::optional(std::move(status));
}

Result<RootStatus> FindRoot(CommandContext& ctx) {
  std::optional<std::string_view> named = ctx.args.value("--root");
  BELAY_TRY(AbsPath dir, ctx.env.Resolve(named ? *named : "."));
  auto real = ctx.fs.RealPath(dir);
  if (real.ok()) {
    dir = *real;
  } else if (real.error().code != Errc::kNotFound) {
    return std::move(real).error();
  }
  BELAY_TRY(std::optional<RootStatus> found, LookUpRoot(ctx, dir));
  // A root is a directory; what is in the place of one is told of as its trouble.
  if (auto opened = ctx.fs.OpenDir(dir);
      !opened.ok() && opened.error().sys == ENOTDIR &&
      (!found || !found->is_protected || found->root != dir))
    return std::move(opened).error();
  if (found) return std::move(*found);
  if (!real.ok()) {
    return Error(Errc::kNotFound, StrCat(named ? "no such directory: "
                                               : "the current directory was deleted: ",
                                         EscapeForDisplay(dir.bytes())))
        .WithHint("see which are protected: belay roots");
  }
  return RootStatus{.root = std::move(dir)};
}

std::string WithoutHistory(const AbsPath& root) {
  const std::string word = ShellWord(root.bytes());
  return StrCat(
      "there is no checkpoint of it, so nothing to bring back; to give it "
      "up: belay off ",
      word, "; if it was moved: belay on NEW --moved-from ", word);
}

Status CheckRootIsThere(CommandContext& ctx, const AbsPath& root, bool may_be_gone) {
  // As nearly always, one call.
  if (ctx.fs.OpenDir(root).ok()) return Ok();
  const std::string shown = EscapeForDisplay(root.bytes());
  const std::string word = ShellWord(root.bytes());
  auto above = ctx.fs.OpenDir(root.parent());
  auto name = Name::Parse(root.bytes().substr(root.bytes().rfind('/') + 1));
  auto stat = above.ok() && name.ok() ? ctx.fs.StatAt(*above, *name)
                                      : Result<FileStat>(Error(Errc::kNotFound, ""));
  const std::string back =
      StrCat("bring it back with: belay rollback latest --root ", word,
             "; if it was moved: belay on NEW --moved-from ", word);
  if (stat.ok() && stat->type != FileType::kDirectory)
    return Error(Errc::kRefused, StrCat(FileTypeName(stat->type),
                                        " is in the place of the directory: ", shown))
        .WithHint(StrCat("move that away; then ", back));
  if (!stat.ok() && stat.error().code == Errc::kNotFound && !may_be_gone)
    return Error(Errc::kNotFound, StrCat("the directory is gone: ", shown))
        .WithHint(back);
  return Ok();  // what is wrong is said where it is met
}

Result<Settings> LoadSettingsFor(CommandContext& ctx, const AbsPath& root) {
  BELAY_TRY(AbsPath file, ctx.env.UserSettingsFile());
  auto settings = LoadSettings(ctx.fs, file, root);
  if (!settings.ok()) {
    Error error = std::move(settings).error();
    if (error.hint.empty() && error.code == Errc::kInvalid)
      error.hint =
          "mend it, or see what it says with: belay doctor; rollback, undo, list, show "
          "and cat work meanwhile";
    return error;
  }
  for (const std::string& warning : settings->warnings) ctx.term.Warn(warning);
  return settings;
}

std::optional<std::string> TroubleOfOwnSettings(CommandContext& ctx) {
  auto file = ctx.env.UserSettingsFile();
  if (!file.ok()) return std::nullopt;  // nobody can have written any
  auto settings = LoadSettings(ctx.fs, *file, std::nullopt);
  if (settings.ok()) return std::nullopt;
  return StrCat("no checkpoint can be made, and auto protects nothing: ",
                settings.error().what, "; mend it, or let belay doctor");
}

namespace {

SettingSource SourceOf(const Settings& settings, std::string_view key) {
  for (size_t i = 0; i < SettingTable().size(); ++i)
    if (SettingTable()[i].key == key) return settings.sources[i];
  return SettingSource::kDefault;
}

}  // namespace

Error SwitchedOff(const Settings& settings) {
  const bool project = SourceOf(settings, "enabled") == SettingSource::kProject;
  return Error(Errc::kRefused, project
                                   ? "checkpoints are switched off for this project "
                                     "(enabled = false in its .belay.toml)"
                                   : "checkpoints are switched off (enabled = false "
                                     "in your settings)")
      .WithHint(project ? "switch them on: belay config --project enabled true"
                        : "switch them on: belay config enabled true");
}

namespace {

struct LoadedToRescue {
  RescueSettings rescue;
  std::vector<std::string> doubts;  // "FILE:LINE: why", or "FILE: why"
  std::string unguarded;  // why it is not known who hooks.before_rollback asks
};

// Whether a line that counts names the guard.
bool NamesTheGuard(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] != '#' &&
        line.find("before_rollback") != std::string_view::npos)
      return true;
    at = end + 1;
  }
  return false;
}

// Of the user's file `text`, which has these doubts and, mended, says `settings`: why
// its guard is not known. Empty where it is, or where the file names none.
std::string WhyUnguarded(std::string_view text, const Settings& settings,
                         const std::vector<std::string>& doubts, bool no_toml) {
  if (!NamesTheGuard(text)) return {};
  for (const std::string& doubt : doubts)
    if (doubt.find("before_rollback") != std::string::npos) return doubt;
  if (no_toml && !BELAY_MUTANT("half-a-guard-is-one")) return doubts[0];
  if (SourceOf(settings, "hooks.before_rollback") == SettingSource::kUser) return {};
  // In a table that is none, or of another name.
  if (!doubts.empty()) return doubts[0];
  return settings.warnings.empty() ? std::string() : settings.warnings[0];
}

LoadedToRescue LoadToRescue(CommandContext& ctx, const AbsPath& root) {
  LoadedToRescue out;
  bool no_toml = false;
  // What of a file can be read, as far as it makes sense.
  auto sense = [&](const Result<std::string>& text, const std::string& name,
                   bool of_project) -> std::string {
    if (!text.ok()) {
      out.doubts.push_back(text.error().what);
      return {};
    }
    auto mended = RepairSettings(*text, name, of_project);
    if (!mended.ok()) {
      out.doubts.push_back(mended.error().what);
      return {};
    }
    out.doubts.insert(out.doubts.end(), mended->repaired.begin(),
                      mended->repaired.end());
    no_toml = mended->no_toml;
    return std::move(mended->text);
  };
  std::string user_text, user_name;
  if (auto file = ctx.env.UserSettingsFile(); file.ok()) {
    user_name = EscapeForDisplay(file->bytes());
    auto read = ReadUserSettings(ctx.fs, *file);
    user_text = sense(read, user_name, false);
    auto users = ParseSettings(user_text, user_name, "", "");
    out.unguarded = !read.ok() ? out.doubts[0]
                               : WhyUnguarded(*read, users.ok() ? *users : Settings(),
                                              out.doubts, no_toml);
  } else {
    out.doubts.push_back(file.error().what);
    out.unguarded = out.doubts[0];
  }
  const std::string project_name =
      EscapeForDisplay(root.Join(ProjectSettingsName()).bytes());
  const std::string project_text =
      sense(ReadProjectSettings(ctx.fs, root), project_name, true);
  auto settings = ParseSettings(user_text, user_name, project_text, project_name);
  if (!settings.ok()) {  // each alone made sense
    out.doubts.push_back(settings.error().what);
    settings = ParseSettings(user_text, user_name, "", "");
  }
  if (settings.ok()) out.rescue.settings = std::move(*settings);
  out.rescue.complete = out.doubts.empty();
  return out;
}

RescueSettings Told(CommandContext& ctx, LoadedToRescue loaded) {
  for (const std::string& doubt : loaded.doubts)
    ctx.term.Warn(StrCat(doubt, "; this does not count until it is mended"));
  for (const std::string& warning : loaded.rescue.settings.warnings)
    ctx.term.Warn(warning);
  return std::move(loaded.rescue);
}

}  // namespace

RescueSettings LoadSettingsToRescue(CommandContext& ctx, const AbsPath& root) {
  return Told(ctx, LoadToRescue(ctx, root));
}

Result<RescueSettings> LoadSettingsToRollBack(CommandContext& ctx,
                                              const AbsPath& root) {
  LoadedToRescue loaded = LoadToRescue(ctx, root);
  if (!loaded.unguarded.empty() && !BELAY_MUTANT("no-guard-where-it-is-unknown"))
    return Error(Errc::kRefused,
                 StrCat(loaded.unguarded,
                        "; so it is not known whom hooks.before_rollback asks"))
        .WithHint("nothing was changed; mend it, or take it out");
  return Told(ctx, std::move(loaded));
}

}  // namespace belay
