#include "agent/install.h"

#include <algorithm>

#include "agent/install_hooks_internal.h"
#include "agent/install_moved_internal.h"
#include "agent/install_off_internal.h"
#include "agent/install_record_internal.h"
#include "agent/install_target_internal.h"
#include "agent/install_trust_internal.h"
#include "base/escape.h"
#include "base/mutant.h"

namespace belay {

namespace {

using Part = FileChange::Part;
using What = FileChange::What;

bool IsSettings(const AgentProfile& profile) {
  return profile.shape == HookShape::kGrouped || profile.shape == HookShape::kFlat;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// One file that is wholly ours.
struct WholeFile {
  AbsPath path;
  Part part;
  std::string_view event = {};  // of a program
  bool runs = false;            // a program
};

class InstallPlanner {
 public:
  InstallPlanner(Fs& fs, const InstallPlaces& places, AgentKind agent,
                 const InstallRecords& records, AgentPlan& plan)
      : fs_(fs),
        places_(places),
        profile_(ProfileOf(agent)),
        records_(records),
        programs_{.now = places.program, .earlier = records.programs()},
        plan_(plan) {}

  Status Install(bool trust) {
    through_links_ = places_.follow_links;
    BELAY_TRY(AgentPlaces at, PlacesOf(fs_, profile_, places_));
    std::string hooks_text;
    if (IsSettings(profile_)) {
      BELAY_TRY(hooks_text, InstallSettings(at.hooks));
    }
    if (profile_.shape == HookShape::kScripts) {
      for (const HookEventSpec& event : profile_.events)
        Refuse(InstallScript(at.hooks, event.name));
    }
    bool plugin = false;
    for (const WholeFile& file : WholeFiles(at)) {
      if (file.runs) continue;
      Status planned = InstallWhole(file);
      if (planned.ok()) {
        plugin = plugin || file.part == Part::kHooks;
        continue;
      }
      if (file.part == Part::kHooks) {
        plan_.refused.push_back(planned.error());
      } else {
        // The hooks do without.
        plan_.notes.push_back(planned.error().what +
                              "; it stays, and /rollback is not "
                              "Belay's");
      }
    }
    if (profile_.shape == HookShape::kPlugin && !plugin) plan_.files.clear();
    if (at.trust) BELAY_OK(InstallTrust(*at.trust, at.hooks, hooks_text, trust));
    if (auto off = FindHooksOff(fs_, places_, profile_))
      plan_.notes.push_back(HooksOffText(*off) + ": none of ours runs");
    return Ok();
  }

  Status Uninstall() {
    BELAY_TRY(AgentPlaces at, PlacesOf(fs_, profile_, places_));
    // Where it would be installed now, and wherever it was.
    std::vector<WholeFile> whole = WholeFiles(at);
    std::vector<AbsPath> settings, trusts;
    if (IsSettings(profile_)) settings.push_back(at.hooks);
    if (at.trust) trusts.push_back(*at.trust);
    auto add = [](std::vector<AbsPath>& list, const AbsPath& path) {
      if (std::find(list.begin(), list.end(), path) == list.end()) list.push_back(path);
    };
    bool elsewhere = false;
    for (const InstallRecord& record : records_.all()) {
      if (record.agent != AgentName(profile_.agent)) continue;
      const AbsPath path = AbsPath::Literal(record.path);
      if (record.part == Part::kTrust) {
        add(trusts, path);
        continue;
      }
      if (IsMovedHere(record)) continue;
      if (!IsOfThisLevel(record, path, at)) {
        elsewhere = elsewhere || record.part == Part::kHooks;
        if (record.part == Part::kHooks) NoteOther(record, path);
        continue;
      }
      if (IsSettings(profile_) && record.part == Part::kHooks) {
        add(settings, path);
      } else if (std::none_of(whole.begin(), whole.end(), [&](const WholeFile& file) {
                   return file.path == path;
                 })) {
        whole.push_back({.path = path, .part = record.part});
      }
    }
    std::vector<TrustStamp> stamps;
    for (const AbsPath& path : settings) Refuse(UninstallSettings(path, stamps));
    for (const WholeFile& file : whole) Refuse(UninstallWhole(file));
    for (const AbsPath& path : trusts)
      Refuse(UninstallTrust(path, stamps, /*others=*/elsewhere));
    return Ok();
  }

 private:
  void Refuse(const Status& status) {
    if (!status.ok()) plan_.refused.push_back(status.error());
  }
  bool OfProject() const { return places_.project.has_value(); }

  // The user's, or of just this project: there may be others below it.
  bool IsOfThisLevel(const InstallRecord& record, const AbsPath& path,
                     const AgentPlaces& at) const {
    if (record.project != OfProject()) return false;
    if (!record.project) return true;
    if (BELAY_MUTANT("uninstall-goes-down")) return path.IsWithin(*places_.project);
    auto top = [&](const AbsPath& file) {
      const auto below = file.Below(*places_.project);
      return below ? below->substr(0, below->find('/')) : std::string();
    };
    const std::string here = top(path);
    // Crush has two names for its file.
    return !here.empty() &&
           (here == top(at.hooks) || path.parent() == *places_.project ||
            (at.command && here == top(*at.command)));
  }

  // Of the same project, under the path that it had: each of its files is met by name.
  bool IsMovedHere(const InstallRecord& record) {
    if (!record.project || !OfProject()) return false;
    for (AbsPath at = AbsPath::Literal(record.path).parent(); !at.is_root();
         at = at.parent()) {
      const auto below = AbsPath::Literal(record.path).Below(at);
      auto rest = below ? RelPath::Parse(*below) : RelPath::Parse("");
      if (!rest.ok()) continue;
      const AbsPath here = places_.project->Join(*rest);
      auto target = Look(here, record.part);
      if (!target.ok() || !target->text) continue;
      const auto moved = MovedRecordOf(*target);
      if (moved && moved->was == record.path) return true;
    }
    return false;
  }

  std::optional<MovedRecord> MovedRecordOf(const InstallTarget& target) const {
    if (!OfProject() || !target.text || records_.Find(target.path) != nullptr)
      return std::nullopt;
    return FindMovedRecord(fs_, records_, AgentName(profile_.agent), *places_.project,
                           target.path, *target.text);
  }

  // What is remembered of the file, here or where the project was before.
  std::optional<InstallRecord> RecordOf(const InstallTarget& target) const {
    if (const InstallRecord* record = records_.Find(target.path)) return *record;
    auto moved = MovedRecordOf(target);
    return moved ? std::optional(std::move(moved->record)) : std::nullopt;
  }

  void NoteOther(const InstallRecord& record, const AbsPath& path) {
    if (!fs_.RealPath(path).ok()) return;
    const std::string shown = EscapeForDisplay(path.bytes());
    std::string note = "still there: " + shown;
    note += record.project ? " (belay uninstall --project, there)"
                           : " (belay uninstall without --project)";
    if (std::find(plan_.notes.begin(), plan_.notes.end(), note) == plan_.notes.end())
      plan_.notes.push_back(std::move(note));
  }

  std::vector<WholeFile> WholeFiles(const AgentPlaces& at) const {
    std::vector<WholeFile> out;
    if (profile_.shape == HookShape::kScripts)
      for (const HookEventSpec& event : profile_.events)
        for (const AbsPath& path : ScriptNames(at.hooks, event.name))
          out.push_back(
              {.path = path, .part = Part::kHooks, .event = event.name, .runs = true});
    if (profile_.shape == HookShape::kPlugin)
      out.push_back({.path = at.hooks, .part = Part::kHooks});
    if (at.command) out.push_back({.path = *at.command, .part = Part::kCommand});
    return out;
  }

  std::string ContentOf(const WholeFile& file, const AbsPath& program) const {
    if (file.part == Part::kCommand) return CommandFile(profile_, program);
    return profile_.shape == HookShape::kScripts
               ? ScriptFile(profile_, program, file.event)
               : PluginFile(program);
  }

  Result<InstallTarget> Look(const AbsPath& path, Part part) {
    // Codex keeps what it trusts with the user's settings, for projects too.
    return LookAtTarget(fs_, places_, path, OfProject() && part != Part::kTrust);
  }

  // Adds a file to the plan, unless it may not be written.
  Status Add(const InstallTarget& target, Part part, std::optional<std::string> after,
             std::optional<std::string> base, bool runs = false) {
    const bool open = OfProject() && part != Part::kTrust;
    FileChange change{.part = part,
                      .path = target.path,
                      .real = target.real,
                      .before = target.text,
                      .after = std::move(after),
                      .mode = open ? 0644u : 0600u,
                      .dir_mode = open ? 0755u : 0700u,
                      .base = std::move(base)};
    if (runs) change.mode |= open ? 0111u : 0100u;
    const bool lame = runs && target.text && (target.stat.mode & 0100) == 0;
    if (change.before == change.after && !lame)
      change.what = What::kNothing;
    else
      change.what = !change.after    ? What::kRemove
                    : !change.before ? What::kCreate
                                     : What::kChange;
    if (change.what != What::kNothing) {
      BELAY_OK(CheckWritable(fs_, places_, target));
      if (!target.link.empty() && !through_links_ &&
          !BELAY_MUTANT("install-follows-links"))
        return Error(Errc::kRefused, target.shown() + " is a symlink to " +
                                         EscapeForDisplay(target.link))
            .WithHint(
                "nothing was changed; to change the file that it leads to: "
                "belay install " +
                std::string(AgentName(profile_.agent)) +
                (OfProject() ? " --project" : "") + " --follow-links");
    }
    if (part != Part::kTrust)
      if (auto moved = MovedRecordOf(target)) change.remembered_as = moved->was;
    plan_.files.push_back(std::move(change));
    return Ok();
  }

  // --- settings ----------------------------------------------------------------------

  Result<std::string> InstallSettings(const AbsPath& path) {
    BELAY_TRY(InstallTarget target, Look(path, Part::kHooks));
    auto doc = Jsonc::Parse(target.text.value_or(""), target.shown());
    if (BELAY_MUTANT("install-over-broken") && !doc.ok())
      doc = Jsonc::Parse("", target.shown());
    BELAY_OK(doc.ok() ? Ok() : Status(doc.error()));
    BELAY_TRY(Jsonc merged, MergeHooks(*doc, profile_, programs_));
    BELAY_TRY(auto base, SettingsWithout(target, *doc));
    if (auto changed = ChangedHooks(merged))
      plan_.notes.push_back(target.shown() + ": " + *changed +
                            "; it stays, and none of ours is put beside it");
    const std::string text = merged.text();
    BELAY_OK(Add(target, Part::kHooks, text, std::move(base)));
    return text;
  }

  // The settings as they would be had we never been here.
  Result<std::optional<std::string>> SettingsWithout(const InstallTarget& target,
                                                     const Jsonc& doc) {
    using Text = std::optional<std::string>;
    if (!target.text) return Text();
    const std::optional<InstallRecord> record = RecordOf(target);
    if (record && record->Wrote(*target.text) && !BELAY_MUTANT("install-forgets-base"))
      return record->base;
    std::optional<Jsonc> before;
    if (record && record->base) {
      auto parsed = Jsonc::Parse(*record->base, target.shown());
      if (parsed.ok()) before = std::move(*parsed);
    }
    BELAY_TRY(Jsonc rest,
              RemoveHooks(doc, profile_, programs_, before ? &*before : nullptr));
    if (record && !record->base && IsBareSettings(rest, profile_)) return Text();
    return Text(rest.text());
  }

  // "what PreToolUse and Stop run was changed by somebody: belay hook claude || true"
  std::optional<std::string> ChangedHooks(const Jsonc& doc) {
    constexpr size_t kShown = 160;
    auto hooks = FindHooks(doc, profile_, programs_);
    if (!hooks.ok()) return std::nullopt;
    std::vector<std::string> events;
    std::string command;
    for (const RegisteredHook& hook : *hooks) {
      if (!hook.changed) continue;
      if (events.empty()) command = EscapeForDisplay(hook.command.substr(0, kShown));
      if (std::find(events.begin(), events.end(), hook.event) == events.end())
        events.push_back(hook.event);
    }
    if (events.empty()) return std::nullopt;
    std::string out = "what ";
    for (size_t i = 0; i < events.size(); ++i)
      out += (i == 0 ? "" : i + 1 == events.size() ? " and " : ", ") + events[i];
    return out + " runs was changed by somebody (" + command + ")";
  }

  Status UninstallSettings(const AbsPath& path, std::vector<TrustStamp>& stamps) {
    BELAY_TRY(InstallTarget target, Look(path, Part::kHooks));
    if (!target.text) return Add(target, Part::kHooks, {}, {});
    BELAY_TRY(Jsonc doc, Jsonc::Parse(*target.text, target.shown()));
    if (profile_.agent == AgentKind::kCodex) {
      BELAY_TRY(auto hooks, FindHooks(doc, profile_, programs_));
      for (TrustStamp& stamp : TrustStampsOf(hooks, path))
        stamps.push_back(std::move(stamp));
      if (auto moved = MovedRecordOf(target))
        for (TrustStamp& stamp : TrustStampsOf(hooks, AbsPath::Literal(moved->was)))
          stamps.push_back(std::move(stamp));
    }
    BELAY_TRY(auto after, SettingsWithout(target, doc));
    if (after) {
      BELAY_TRY(Jsonc left, Jsonc::Parse(*after, target.shown()));
      if (auto changed = ChangedHooks(left))
        plan_.notes.push_back("still there: " + target.shown() + ": " + *changed +
                              "; take it out by hand");
    }
    return Add(target, Part::kHooks, std::move(after), {});
  }

  // --- files of ours -----------------------------------------------------------------

  Status InstallWhole(const WholeFile& file) {
    BELAY_TRY(InstallTarget target, Look(file.path, file.part));
    if (!target.text || IsAsWritten(file, *target.text) ||
        (BELAY_MUTANT("install-over-edits") && LooksLikeOurs(profile_, *target.text)))
      return Add(target, file.part, ContentOf(file, places_.program), {}, file.runs);
    if (!LooksLikeOurs(profile_, *target.text))
      return Error(Errc::kRefused, target.shown() + " is there already and not Belay's")
          .WithHint("move it away, or call from it what it should do");
    plan_.notes.push_back(target.shown() +
                          " was changed by somebody and stays as it is; for the one of "
                          "this version move it away and run this again");
    return Ok();
  }

  // By us, and nobody changed it since. Where no record says so, of this version alone.
  bool IsAsWritten(const WholeFile& file, const std::string& text) const {
    const InstallRecord* record = records_.Find(file.path);
    if (record != nullptr && record->Wrote(text)) return true;
    if (record == nullptr && OfProject() &&
        FindMovedRecord(fs_, records_, AgentName(profile_.agent), *places_.project,
                        file.path, text))
      return true;
    auto program = ProgramOfFile(text);
    if (!program) return false;
    auto path = AbsPath::Parse(*program);
    return path.ok() && text == ContentOf(file, *path);
  }

  // One that is there already; else under the first name that nobody has.
  Status InstallScript(const AbsPath& dir, std::string_view event) {
    const std::vector<AbsPath> names = ScriptNames(dir, event);
    std::optional<AbsPath> ours, unused;
    for (const AbsPath& path : names) {
      auto target = Look(path, Part::kHooks);
      if (!target.ok()) continue;
      if (!target->text) {
        if (!unused) unused = path;
      } else if (!ours && LooksLikeOurs(profile_, *target->text)) {
        ours = path;
      }
    }
    // Where there is none, the first name says why.
    return InstallWhole({.path = ours     ? *ours
                                 : unused ? *unused
                                          : names.front(),
                         .part = Part::kHooks,
                         .event = event,
                         .runs = true});
  }

  Status UninstallWhole(const WholeFile& file) {
    BELAY_TRY(InstallTarget target, Look(file.path, file.part));
    const InstallRecord* record = records_.Find(file.path);
    if (!target.text) return record == nullptr ? Ok() : Add(target, file.part, {}, {});
    if (IsAsWritten(file, *target.text)) return Add(target, file.part, {}, {});
    if (!LooksLikeOurs(profile_, *target.text))
      return Add(target, file.part, target.text, {});  // somebody else's by now
    return Error(Errc::kRefused, target.shown() + " was changed since it was installed")
        .WithHint("it stays; remove it, or what calls belay in it, by hand");
  }

  // --- Codex -------------------------------------------------------------------------

  Status InstallTrust(const AbsPath& path, const AbsPath& hooks_file,
                      const std::string& hooks_text, bool trust) {
    BELAY_TRY(Jsonc doc, Jsonc::Parse(hooks_text, "hooks"));
    BELAY_TRY(auto hooks, FindHooks(doc, profile_, programs_));
    const std::vector<TrustStamp> stamps = TrustStampsOf(hooks, hooks_file);
    auto looked = Look(path, Part::kTrust);
    if (!trust && !BELAY_MUTANT("install-trusts-unasked")) {
      auto count =
          looked.ok() ? CountTrusted(looked->text.value_or(""), looked->shown(), stamps)
                      : Result<size_t>(looked.error());
      if (!count.ok() || *count < stamps.size())
        plan_.notes.push_back(
            "Codex runs hooks only once they are trusted: start codex and enter "
            "/hooks, "
            "or run: belay install codex --trust");
      return Ok();
    }
    BELAY_TRY(InstallTarget target, std::move(looked));
    const std::string text = target.text.value_or("");
    BELAY_TRY(std::string after, AddTrust(text, target.shown(), stamps));
    BELAY_TRY(auto base, TrustWithout(target, stamps, /*others=*/false));
    return Add(target, Part::kTrust, std::move(after), std::move(base));
  }

  // `others`: hooks of another level stay, and what they need with them.
  Result<std::optional<std::string>> TrustWithout(const InstallTarget& target,
                                                  const std::vector<TrustStamp>& stamps,
                                                  bool others) {
    using Text = std::optional<std::string>;
    if (!target.text) return Text();
    const InstallRecord* record = records_.Find(target.path);
    if (record != nullptr && record->Wrote(*target.text) && !others)
      return record->base;
    BELAY_TRY(std::string rest, RemoveTrust(*target.text, target.shown(), stamps));
    if (record != nullptr && !record->base && IsBlank(rest)) return Text();
    return Text(std::move(rest));
  }

  Status UninstallTrust(const AbsPath& path, const std::vector<TrustStamp>& stamps,
                        bool others) {
    BELAY_TRY(InstallTarget target, Look(path, Part::kTrust));
    if (!target.text) return Add(target, Part::kTrust, {}, {});
    auto after = TrustWithout(target, stamps, others);
    // A file that cannot be read and that we never wrote is none of our business.
    if (!after.ok() && records_.Find(path) == nullptr) return Ok();
    BELAY_OK(after.ok() ? Ok() : Status(after.error()));
    return Add(target, Part::kTrust, std::move(*after), {});
  }

  Fs& fs_;
  const InstallPlaces& places_;
  const AgentProfile& profile_;
  const InstallRecords& records_;
  const HookPrograms programs_;
  bool through_links_ = true;  // what was written through one is taken out through it
  AgentPlan& plan_;
};

// What is there now must be what the plan was made of.
Result<InstallTarget> LookAgain(Fs& fs, const InstallPlaces& places,
                                const FileChange& change) {
  const bool of_project =
      places.project.has_value() && change.part != FileChange::Part::kTrust;
  BELAY_TRY(InstallTarget target, LookAtTarget(fs, places, change.path, of_project));
  if ((target.text != change.before || target.real != change.real) &&
      !BELAY_MUTANT("install-overwrites-race"))
    return Error(Errc::kConflict, target.shown() + " was changed by somebody meanwhile")
        .WithHint("run the command again");
  return target;
}

// As it is here, also where the project was somewhere else when it was written down.
std::optional<InstallRecord> Remembered(Fs& fs, const InstallPlaces& places,
                                        const InstallRecords& records, AgentKind agent,
                                        const FileChange& change) {
  if (const InstallRecord* record = records.Find(change.path)) return *record;
  if (change.remembered_as.empty() || !places.project || !change.before)
    return std::nullopt;
  auto moved = FindMovedRecord(fs, records, AgentName(agent), *places.project,
                               change.path, *change.before);
  return moved ? std::optional(std::move(moved->record)) : std::nullopt;
}

Status InstallOne(Fs& fs, const InstallPlaces& places, InstallRecords& records,
                  AgentKind agent, const FileChange& change) {
  BELAY_TRY(InstallTarget target, LookAgain(fs, places, change));
  InstallRecord record;
  if (auto old = Remembered(fs, places, records, agent, change)) record = *old;
  if (record.base != change.base) record.written.clear();
  record.agent = AgentName(agent);
  record.project = places.project.has_value();
  record.part = change.part;
  record.path = change.path.bytes();
  record.base = change.base;
  record.written.push_back(Sha256::Of(AsBytes(*change.after)));
  for (const AbsPath& dir : target.missing_dirs)
    if (std::find(record.made_dirs.begin(), record.made_dirs.end(), dir.bytes()) ==
        record.made_dirs.end())
      record.made_dirs.push_back(dir.bytes());
  // What it was is durable before anything of it changes.
  if (BELAY_MUTANT("install-record-late")) {
    BELAY_OK(WriteTarget(fs, target, *change.after, change.mode, change.dir_mode));
    return records.Put(record);
  }
  BELAY_OK(records.Put(record));
  BELAY_OK(WriteTarget(fs, target, *change.after, change.mode, change.dir_mode));
  return change.remembered_as.empty() ? Ok() : records.Drop(change.remembered_as);
}

Status UninstallOne(Fs& fs, const InstallPlaces& places, const FileChange& change) {
  if (change.what == What::kNothing) return Ok();
  BELAY_TRY(InstallTarget target, LookAgain(fs, places, change));
  if (change.after)
    return WriteTarget(fs, target, *change.after, change.mode, change.dir_mode);
  // A link to what we made stays a link to nothing; what it was is its owner's matter.
  return RemoveTarget(fs, target);
}

// A directory that we made and that is not empty yet is given to another file of ours
// that is in it, so that it goes with the last.
Status HandOver(InstallRecords& records, const std::vector<std::string>& dirs) {
  for (const std::string& dir : dirs) {
    const std::string prefix = dir + "/";
    for (const InstallRecord& record : records.all()) {
      if (!record.path.starts_with(prefix)) continue;
      InstallRecord heir = record;
      if (std::find(heir.made_dirs.begin(), heir.made_dirs.end(), dir) ==
          heir.made_dirs.end())
        heir.made_dirs.push_back(dir);
      BELAY_OK(records.Put(heir));
      break;
    }
  }
  return Ok();
}

AgentPlan MakePlan(Fs& fs, const InstallPlaces& places, AgentKind agent,
                   const std::function<Status(InstallPlanner&)>& make) {
  AgentPlan plan{.agent = agent};
  auto records = InstallRecords::Load(fs, places.store);
  if (!records.ok()) {
    plan.refused.push_back(records.error());
    return plan;
  }
  InstallPlanner planner(fs, places, agent, *records, plan);
  Status made = make(planner);
  if (!made.ok()) {
    plan.files.clear();
    plan.refused.push_back(made.error());
  }
  return plan;
}

}  // namespace

bool AgentPlan::changes() const {
  return std::any_of(files.begin(), files.end(),
                     [](const FileChange& c) { return c.what != What::kNothing; });
}

AgentPlan PlanInstall(Fs& fs, const InstallPlaces& places, AgentKind agent,
                      bool trust) {
  return MakePlan(fs, places, agent,
                  [&](InstallPlanner& planner) { return planner.Install(trust); });
}

AgentPlan PlanUninstall(Fs& fs, const InstallPlaces& places, AgentKind agent) {
  return MakePlan(fs, places, agent,
                  [](InstallPlanner& planner) { return planner.Uninstall(); });
}

Status ApplyInstall(Fs& fs, Clock& clock, const InstallPlaces& places,
                    AgentPlan& plan) {
  BELAY_TRY(InstallRecords records, InstallRecords::Load(fs, places.store));
  BELAY_OK(records.Lock(clock));
  BELAY_OK(records.PutProgram(places.program));
  std::vector<FileChange> done;
  for (FileChange& change : plan.files) {
    if (change.what != What::kNothing) {
      Status written = InstallOne(fs, places, records, plan.agent, change);
      if (!written.ok()) {
        plan.refused.push_back(written.error());
        continue;
      }
    }
    done.push_back(std::move(change));
  }
  plan.files = std::move(done);
  return Ok();
}

Status ApplyUninstall(Fs& fs, Clock& clock, const InstallPlaces& places,
                      AgentPlan& plan) {
  BELAY_TRY(InstallRecords records, InstallRecords::Load(fs, places.store));
  const bool remembered = !records.all().empty();
  if (remembered) BELAY_OK(records.Lock(clock));
  std::vector<FileChange> done;
  std::vector<std::string> dirs;
  for (FileChange& change : plan.files) {
    const auto record = Remembered(fs, places, records, plan.agent, change);
    Status removed = UninstallOne(fs, places, change);
    if (!removed.ok()) {
      plan.refused.push_back(removed.error());
      continue;
    }
    // Where stamps of another level are left, the file is not as it was before us.
    const bool kept = change.part == Part::kTrust && record &&
                      change.after != record->base && change.after &&
                      record->Wrote(change.before.value_or(""));
    if (record && kept) {
      InstallRecord rest = *record;
      rest.written.push_back(Sha256::Of(AsBytes(*change.after)));
      BELAY_OK(records.Put(rest));
    } else if (record) {
      dirs.insert(dirs.end(), record->made_dirs.begin(), record->made_dirs.end());
      BELAY_OK(records.Drop(change.remembered_as.empty() ? change.path.bytes()
                                                         : change.remembered_as));
    }
    done.push_back(std::move(change));
  }
  plan.files = std::move(done);
  return HandOver(records, RemoveEmptyDirs(fs, std::move(dirs)));
}

}  // namespace belay
