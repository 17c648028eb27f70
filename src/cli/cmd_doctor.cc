#include <algorithm>

#include "base/escape.h"
#include "base/machine.h"
#include "base/mutant.h"
#include "cli/agents_view.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/settings_file.h"
#include "cli/text.h"
#include "core/roots.h"
#include "core/settings_table.h"
#include "scan/explain.h"
#include "store/inventory.h"

namespace belay {

namespace {

constexpr size_t kLeftOutKept = 200, kLeftOutShown = 8;
constexpr uint64_t kFewWatches = 8192;

// Where files are, and what is known about that.
struct Doctored {
  AbsPath path = AbsPath::Literal("/");
  bool exists = false;
  FsInfo info;
  bool network = false;
};

struct Findings {
  std::optional<RootStatus> root;
  bool place_is_broad = false;  // / or the home directory: not looked through
  std::optional<CoverageSurvey> coverage;
  std::optional<Settings> settings;
  std::string user_file, project_file;  // shown
  Doctored store, home, tree;
  uint64_t store_bytes = 0, cap = 0, floor = 0;
  bool floor_is_bounded = false;  // it would be more, did a percentage not mean 2 GiB
  KernelAbilities kernel;
  std::optional<bool> reflink;
  std::optional<uint64_t> watches, instances;
  std::vector<AgentStatus> agents;
  std::vector<std::string> repaired;
  std::vector<const SettingInfo*> silenced;  // the settings of those lines, as known
  std::vector<std::string> problems;         // exit 1
  std::vector<std::string> notes;
  bool damaged = false;
};

// The file system of `path`, or of the nearest directory above it that exists.
Doctored LookAt(Fs& fs, const AbsPath& path) {
  Doctored place{.path = path, .info = {}};
  for (AbsPath at = path;; at = at.parent()) {
    auto dir = fs.OpenDir(at);
    if (dir.ok()) {
      place.exists = at == path;
      if (auto info = fs.Info(*dir); info.ok()) place.info = *info;
      place.network = IsNetworkFileSystem(place.info.magic);
      return place;
    }
    if (at.is_root()) return place;
  }
}

class Doctor {
 public:
  explicit Doctor(CommandContext& ctx) : ctx_(ctx) {}

  Result<Findings> Run() {
    BELAY_TRY(AbsPath dir, NamedDir(ctx_));
    AbsPath root = dir;
    if (auto modes = LooseModes(ctx_)) f_.notes.push_back(*modes);
    auto found = LookUpRoot(ctx_, dir);
    if (found.ok() && *found) {
      f_.root = std::move(**found);
      root = f_.root->root;
      if (f_.root->damage) Problem(*f_.root->damage);
      for (const RootStatus::Failure& failure : f_.root->failures)
        f_.problems.push_back(failure.what);
      for (const std::string& doubt : f_.root->doubts)
        f_.notes.push_back(StrCat("the last checkpoint: ", doubt));
    } else if (!found.ok()) {
      Problem(found.error());
    }
    if (!f_.root) f_.root = RootStatus{.root = root};
    switch (LookAtPlace(ctx_.fs, root)) {
      case RootPlace::kThere:
        break;
      case RootPlace::kUnreadable:
        f_.problems.push_back(
            StrCat("the directory may not be read: ", EscapeForDisplay(root.bytes())));
        break;
      case RootPlace::kLinked:
        f_.problems.push_back(StrCat("a symlink is in the place of the directory: ",
                                     EscapeForDisplay(root.bytes())));
        break;
      case RootPlace::kGone:
        f_.problems.push_back(
            StrCat("the directory is gone: ", EscapeForDisplay(root.bytes())));
    }
    BELAY_OK(LookAtSettings(root));
    BELAY_OK(LookAtStore());
    LookAtMachine(root);
    LookAtAgents(root);
    BELAY_OK(LookAtCoverage(root));
    return std::move(f_);
  }

 private:
  void Problem(const Error& error) {
    if (error.code == Errc::kCorrupt) f_.damaged = true;
    std::string text =
        error.hint.empty() ? error.what : StrCat(error.what, "; ", error.hint);
    // The store is looked at by several.
    if (std::ranges::find(f_.problems, text) == f_.problems.end())
      f_.problems.push_back(std::move(text));
  }

  Status LookAtSettings(const AbsPath& root) {
    BELAY_TRY(AbsPath user, ctx_.env.UserSettingsFile());
    f_.user_file = EscapeForDisplay(user.bytes());
    f_.project_file = EscapeForDisplay(root.Join(ProjectSettingsName()).bytes());
    if (!ctx_.args.has("--dry-run")) {
      Status repaired = Repair(root);
      if (!repaired.ok()) Problem(repaired.error());
    }
    auto settings = LoadSettings(ctx_.fs, user, root);
    if (!settings.ok()) {
      Problem(settings.error());
      // As far as the user's own file goes.
      settings = LoadSettings(ctx_.fs, user, std::nullopt);
    }
    if (!settings.ok()) return Ok();
    for (const std::string& warning : settings->warnings) f_.notes.push_back(warning);
    if (!settings->enabled) f_.notes.push_back(SwitchedOff(*settings).what);
    f_.settings = std::move(*settings);
    return Ok();
  }

  Status Repair(const AbsPath& root) {
    RepairedSettings repaired;
    auto edit = [&](const SettingsFile& file) -> Result<std::string> {
      BELAY_TRY(repaired, RepairSettings(file.text, file.shown, /*of_project=*/false));
      return repaired.repaired.empty() ? file.text : repaired.text;
    };
    BELAY_TRY(SettingsFile file, EditSettingsFile(ctx_, root, false, edit));
    (void)file;
    f_.repaired = std::move(repaired.repaired);
    if (!f_.repaired.empty()) FindSilenced(repaired.text);
    return Ok();
  }
  // By the lines that are comments now: `# key = ...`, in a table or not.
  void FindSilenced(const std::string& text) {
    std::string table;
    for (size_t at = 0, line = 1; at < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view row = std::string_view(text).substr(at, end - at);
      at = end + 1;
      if (row.starts_with('[')) table = row.substr(1, row.find(']') - 1);
      const std::string here = StrCat(f_.user_file, ":", std::to_string(line), ":");
      if (!row.starts_with("# ") ||
          std::ranges::none_of(f_.repaired, [&](const std::string& why) {
            return why.starts_with(here);
          }))
        continue;
      row.remove_prefix(2);
      row = row.substr(0, row.find('='));
      const size_t begin = row.find_first_not_of(" \t");
      if (begin == std::string_view::npos) continue;
      row = row.substr(begin, row.find_last_not_of(" \t") + 1 - begin);
      const std::string key =
          table.empty() ? std::string(row) : StrCat(table, ".", row);
      if (const SettingInfo* info = FindSetting(key)) f_.silenced.push_back(info);
    }
  }

  Status LookAtStore() {
    BELAY_TRY(AbsPath dir, ctx_.env.StoreDir());
    f_.store = LookAt(ctx_.fs, dir);
    const FsInfo& info = f_.store.info;
    if (f_.settings) {
      f_.floor = f_.settings->StoreFloorBytes(info.total_bytes);
      const int64_t percent = f_.settings->store_floor.percent;
      f_.floor_is_bounded =
          percent > 0 &&
          info.total_bytes / 100 * static_cast<uint64_t>(percent) > f_.floor;
      f_.cap = f_.settings->store_cap.bytes;
    }
    if (info.read_only)
      f_.problems.push_back("the store is on a file system that cannot be written");
    else if (info.total_bytes > 0 && info.free_bytes < f_.floor)
      f_.problems.push_back(
          StrCat("only ", SizeText(info.free_bytes),
                 " are free where the store is, less than store.floor (",
                 SizeText(f_.floor), "): no new checkpoints"));
    if (f_.store.network)
      f_.notes.push_back(StrCat("the store is on ", FileSystemName(info.magic),
                                ": slower, and only as safe as its server; BELAY_HOME "
                                "moves it"));
    auto opened = OpenStore(ctx_, Store::Mode::kRead);
    if (!opened.ok()) {
      if (opened.error().code != Errc::kNotFound) Problem(opened.error());
      if (f_.store.exists || info.read_only) return Ok();
      if (auto prepared = PrepareStore(ctx_); prepared.ok())
        if (Status can = Store::CheckCanBeMade(ctx_.fs, dir, (*prepared)->options.uid);
            !can.ok())
          Problem(can.error());
      return Ok();
    }
    Store& store = *(*opened)->store;
    if (!info.read_only) {
      Status locks = store.locks().Probe();
      if (!locks.ok()) Problem(locks.error());
    }
    for (const Manifest::Pack& pack : store.manifest().packs) {
      auto stat = ctx_.fs.StatAt(store.packs_dir(), PackFile::FileName(pack.id));
      if (stat.ok()) f_.store_bytes += stat->allocated;
    }
    if (f_.cap != 0 && f_.store_bytes >= f_.cap)
      f_.problems.push_back(StrCat("the store has reached store.cap (",
                                   SizeText(f_.cap), "): no new checkpoints"));
    return Ok();
  }

  void LookAtMachine(const AbsPath& root) {
    f_.kernel = AskKernel();
    f_.tree = LookAt(ctx_.fs, root);
    if (auto home = ctx_.env.HomeDir(); home.ok()) {
      f_.home = LookAt(ctx_.fs, *home);
      if (f_.home.info.read_only)
        f_.notes.push_back("your home directory cannot be written");
      if (f_.home.network)
        f_.notes.push_back(
            StrCat("your home directory is on ", FileSystemName(f_.home.info.magic)));
    }
    if (f_.store.exists) f_.reflink = CanShareBlocks(f_.store.path);
    f_.watches = KernelNumber("/proc/sys/fs/inotify/max_user_watches");
    f_.instances = KernelNumber("/proc/sys/fs/inotify/max_user_instances");
    if (!f_.kernel.openat2)
      f_.notes.push_back("this kernel has no openat2: paths are walked name by name");
    if (!f_.kernel.statx_mount)
      f_.notes.push_back(
          "this kernel does not tell mount points: bind mounts are not noticed");
    if (f_.watches && *f_.watches < kFewWatches)
      f_.notes.push_back(
          "few inotify watches; raise fs.inotify.max_user_watches to watch large "
          "trees");
  }

  // Looks at files alone: no agent is run.
  void LookAtAgents(const AbsPath& root) {
    auto places = FindInstallPlaces(ctx_, false);
    if (!places.ok()) {
      f_.notes.push_back(StrCat("agents: ", places.error().what));
      return;
    }
    if (f_.tree.exists && root != places->home && !root.is_root())
      places->project = root;
    bool connected = false;
    for (AgentKind agent : kAllAgents) {
      if (!CanInstall(agent)) continue;
      f_.agents.push_back(LookAtAgent(ctx_.fs, *places, agent, ctx_.env.exec_path));
      AgentFindings found = JudgeAgent(f_.agents.back());
      for (std::string& text : found.problems) f_.problems.push_back(std::move(text));
      for (std::string& text : found.notes) f_.notes.push_back(std::move(text));
      connected = connected || IsConnected(f_.agents.back());
    }
    if (connected && !f_.root->is_protected && f_.settings &&
        !f_.settings->auto_protect)
      f_.notes.push_back(
          "agents are connected, but their hooks do nothing here: the directory is not "
          "protected (belay on), and auto is false");
  }

  Status LookAtCoverage(const AbsPath& root) {
    if (!f_.settings || !f_.tree.exists) return Ok();
    auto home = ctx_.env.HomeDir();
    f_.place_is_broad =
        !f_.root->is_protected && (root.is_root() || (home.ok() && root == *home));
    if (f_.place_is_broad) return Ok();
    const GitPlaces git = GitPlacesOf(ctx_.env);
    RealClock clock;
    ScanRequest request{.root = root,
                        .root_id = {},
                        .rules = RulesFrom(*f_.settings),
                        .git = git,
                        .store_dir = f_.store.path};
    auto opened = OpenStore(ctx_, Store::Mode::kRead);
    std::unique_ptr<Catalog> catalog;
    if (opened.ok()) {
      BELAY_TRY(catalog, Catalog::Open(*(*opened)->store));
      auto at = FindRootAt(*catalog, root);
      Root known{.id = at.ok() && *at ? (*at)->root.id : RootId(),
                 .path = root.bytes()};
      auto full = ScanRequestFor(*(*opened)->store, *catalog, known, *f_.settings, git);
      if (full.ok()) request = std::move(*full);
    }
    auto explainer = Explainer::Open(ctx_.fs, clock, request);
    if (!explainer.ok()) {
      Problem(explainer.error());
      return Ok();
    }
    Progress progress(ctx_.term, clock, "looking");
    auto survey = (*explainer)->Survey(kLeftOutKept, [&](uint64_t entries) {
      progress.Count(entries, "entries");
    });
    progress.Done();
    if (!survey.ok()) {
      Problem(survey.error());
      return Ok();
    }
    for (const std::string& trouble : survey->trouble) f_.notes.push_back(trouble);
    const std::string most = survey->crowd.Text();
    if (survey->files > request.max_files)
      f_.problems.push_back(StrCat(CountText(survey->files, "file"),
                                   " are more than max_files: no checkpoint is made",
                                   most.empty() ? "" : "; the most: ", most));
    f_.coverage = std::move(*survey);
    return Ok();
  }

  CommandContext& ctx_;
  Findings f_;
};

// --- as JSON -------------------------------------------------------------------------

void WriteTexts(JsonWriter& json, std::string_view key,
                const std::vector<std::string>& list) {
  json.Key(key).BeginArray();
  for (const std::string& text : list) json.String(text);
  json.EndArray();
}

void WritePlace(JsonWriter& json, const Doctored& place) {
  json.Key("file_system").String(FileSystemName(place.info.magic));
  json.Key("read_only").Bool(place.info.read_only);
  json.Key("network").Bool(place.network);
  json.Key("free").Uint(place.info.free_bytes);
  json.Key("total").Uint(place.info.total_bytes);
}

void OptionalUint(JsonWriter& json, std::string_view key,
                  std::optional<uint64_t> value) {
  json.Key(key);
  if (value)
    json.Uint(*value);
  else
    json.Null();
}

void WriteCoverage(JsonWriter& json, const Findings& f) {
  json.Key("coverage");
  if (!f.coverage) {
    json.Null();
    return;
  }
  const CoverageSurvey& c = *f.coverage;
  json.BeginObject();
  json.Key("files").Uint(c.files);
  json.Key("bytes").Uint(c.bytes);
  json.Key("directories").Uint(c.dirs);
  json.Key("secrets").Uint(c.secrets);
  json.Key("left_out_files").Uint(c.left_files);
  json.Key("left_out_bytes").Uint(c.left_bytes);
  json.Key("left_out").BeginArray();
  for (const LeftOut& out : c.left_out) {
    json.BeginObject();
    json.Key("path").PathValue(out.path);
    json.Key("why").String(out.why);
    json.Key("rule");
    if (out.rule.empty())
      json.Null();
    else
      json.PathValue(out.rule);
    json.Key("files").Uint(out.files);
    json.Key("bytes").Uint(out.bytes);
    json.EndObject();
  }
  json.EndArray();
  json.Key("nested").BeginArray();
  for (const std::string& path : c.nested) json.PathValue(path);
  json.EndArray().EndObject();
}

void WriteJson(const Findings& f, JsonWriter& json) {
  json.BeginObject();
  json.Key("root").PathValue(f.root->root.bytes());
  json.Key("protected").Bool(f.root->is_protected);
  WriteCoverage(json, f);
  json.Key("settings").BeginArray();
  if (f.settings) {
    for (size_t i = 0; i < SettingTable().size(); ++i) {
      json.BeginObject();
      json.Key("key").String(SettingTable()[i].key);
      json.Key("value");
      WriteSettingJson(*f.settings, SettingTable()[i], json);
      json.Key("source").String(SettingSourceName(f.settings->sources[i]));
      json.EndObject();
    }
  }
  json.EndArray();
  json.Key("settings_files").BeginObject();
  json.Key("user").String(f.user_file);
  json.Key("project").String(f.project_file);
  json.EndObject();
  json.Key("agents").BeginArray();
  for (const AgentStatus& agent : f.agents) WriteAgentJson(json, {agent});
  json.EndArray();
  json.Key("store").BeginObject();
  json.Key("path").PathValue(f.store.path.bytes());
  json.Key("exists").Bool(f.store.exists);
  json.Key("bytes").Uint(f.store_bytes);
  json.Key("cap").Uint(f.cap);
  json.Key("floor").Uint(f.floor);
  WritePlace(json, f.store);
  json.EndObject();
  json.Key("home").BeginObject();
  json.Key("path").PathValue(f.home.path.bytes());
  WritePlace(json, f.home);
  json.EndObject();
  json.Key("system").BeginObject();
  json.Key("kernel").String(f.kernel.release);
  json.Key("openat2").Bool(f.kernel.openat2);
  json.Key("statx").Bool(f.kernel.statx_mount);
  json.Key("reflink");
  if (f.reflink)
    json.Bool(*f.reflink);
  else
    json.Null();
  OptionalUint(json, "inotify_watches", f.watches);
  OptionalUint(json, "inotify_instances", f.instances);
  json.Key("root_file_system").String(FileSystemName(f.tree.info.magic));
  json.EndObject();
  WriteTexts(json, "repaired", f.repaired);
  WriteTexts(json, "problems", f.problems);
  WriteTexts(json, "notes", f.notes);
  json.EndObject();
}

// --- as text -------------------------------------------------------------------------

class DoctorPage {
 public:
  explicit DoctorPage(Terminal& term) : term_(term) {}
  void Title(std::string_view title) {
    term_.Out(StrCat(term_.Paint(Style::kBold, title), "\n"));
  }
  void Line(std::string_view text) {
    term_.Out(StrCat("  ", Wrap(Scrub(text), 2, 4, term_.columns()), "\n"));
  }

 private:
  Terminal& term_;
};

std::string Right(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

void ShowCoverage(Terminal& term, DoctorPage& page, const Findings& f) {
  page.Title("coverage");
  const std::string root = EscapeForDisplay(f.root->root.bytes());
  page.Line(f.root->is_protected ? StrCat("protected: ", root)
                                 : StrCat("not protected: ", root));
  if (!f.root->hint.empty()) page.Line(f.root->hint);
  if (f.place_is_broad)
    page.Line("Go to a project, or name one with --root, to see what is covered.");
  if (!f.coverage) return;
  const CoverageSurvey& c = *f.coverage;
  const bool would = !f.root->is_protected;
  page.Line(StrCat(would ? "would be covered: " : "covered: ",
                   CountText(c.files, "file"), " in ", std::to_string(c.dirs),
                   c.dirs == 1 ? " directory, " : " directories, ", SizeText(c.bytes)));
  if (c.secrets > 0)
    page.Line(StrCat(std::to_string(c.secrets),
                     " of them may hold secrets: they stay on this machine"));
  for (const std::string& path : c.nested)
    page.Line(StrCat("by its own git's rules: ", EscapeForDisplay(path), "/"));
  if (c.left_files == 0 && c.left_out.empty()) {
    page.Line("left out: nothing");
    return;
  }
  page.Line(StrCat("left out: ", CountText(c.left_files, "file"), ", ",
                   SizeText(c.left_bytes)));
  const size_t shown =
      term.verbose() ? c.left_out.size() : std::min(c.left_out.size(), kLeftOutShown);
  for (size_t i = 0; i < shown; ++i) {
    const LeftOut& out = c.left_out[i];
    std::string reason(out.why);
    if (!out.rule.empty()) reason += StrCat(" ", EscapeForDisplay(out.rule));
    std::string path = StrCat(EscapeForDisplay(out.path), out.is_dir ? "/" : "");
    // 16 columns stand before them, 4 are around the reason. The path gives way first.
    constexpr size_t kLeast = 20;
    const size_t room = std::max(term.columns(), 2 * kLeast + 20) - 20;
    const size_t wanted = ColumnsOf(reason);
    path = FitPath(path, wanted + kLeast < room ? room - wanted : kLeast);
    term.Out(StrCat("    ", Right(SizeText(out.bytes), 10), "  ", path, "  (",
                    Fit(reason, room - ColumnsOf(path)), ")\n"));
  }
  if (shown < c.left_out.size())
    page.Line("  and more: belay doctor -v; of one path: belay why PATH");
}

void ShowSettings(DoctorPage& page, const Findings& f) {
  page.Title("settings");
  page.Line(StrCat("yours: ", f.user_file));
  page.Line(StrCat("the project's: ", f.project_file));
  if (!f.settings) return;
  bool any = false;
  for (size_t i = 0; i < SettingTable().size(); ++i) {
    const SettingSource source = f.settings->sources[i];
    if (source == SettingSource::kDefault) continue;
    any = true;
    page.Line(StrCat(SettingTable()[i].key, " = ",
                     SettingText(*f.settings, SettingTable()[i]), "  (",
                     SettingSourceName(source), ")"));
  }
  page.Line(any ? "everything else as it comes: belay config"
                : "everything as it comes: belay config");
}

void ShowAgents(DoctorPage& page, const Findings& f) {
  page.Title("agents");
  bool any = false;
  for (const AgentStatus& agent : f.agents) {
    if (!agent.program && !IsConnected(agent)) continue;
    any = true;
    page.Line(AgentLine(agent));
  }
  if (!any) page.Line("none found: belay install --list");
}

void ShowMachine(DoctorPage& page, const Findings& f) {
  page.Title("store");
  page.Line(StrCat(EscapeForDisplay(f.store.path.bytes()), " on ",
                   FileSystemName(f.store.info.magic),
                   f.store.exists ? "" : " (not made yet)"));
  page.Line(StrCat(SizeText(f.store_bytes), " used",
                   f.cap == 0 ? "" : StrCat(" of at most ", SizeText(f.cap)), "; ",
                   SizeText(f.store.info.free_bytes), " free on the disk, ",
                   SizeText(f.floor), " of it stay so",
                   f.floor_is_bounded ? " (a percentage means at most 2GiB)" : ""));
  page.Title("machine");
  auto yes = [](bool can) { return can ? "yes" : "no"; };
  page.Line(
      StrCat("Linux ", f.kernel.release, "; openat2: ", yes(f.kernel.openat2),
             "; statx with mount points: ", yes(f.kernel.statx_mount),
             "; reflinks in the store: ", f.reflink ? yes(*f.reflink) : "not known"));
  page.Line(StrCat(
      "the directory is on ", FileSystemName(f.tree.info.magic), "; inotify: ",
      f.watches ? std::to_string(*f.watches) : std::string("no"), " watches, ",
      f.instances ? std::to_string(*f.instances) : std::string("no"), " instances"));
}

void ShowText(Terminal& term, const Findings& f) {
  DoctorPage page(term);
  ShowCoverage(term, page, f);
  ShowSettings(page, f);
  ShowAgents(page, f);
  ShowMachine(page, f);
  if (!f.repaired.empty()) {
    page.Title("repaired: now a comment, the default counts");
    for (const std::string& line : f.repaired) page.Line(line);
  }
  if (!f.notes.empty()) {
    page.Title("notes");
    for (const std::string& note : f.notes) page.Line(note);
  }
  const bool well = f.problems.empty();
  // What somebody had meant to set is not set.
  const bool less = !f.repaired.empty() && !BELAY_MUTANT("what-was-repaired-counts");
  page.Title(!well  ? "in the way"
             : less ? "nothing is in the way, but what is a comment now is not set"
                    : "nothing is in the way");
  for (const std::string& problem : f.problems) page.Line(problem);
  if (!less) return;
  for (const SettingInfo* info : f.silenced)
    if (f.settings)
      page.Line(StrCat(info->key, " is ", SettingText(*f.settings, *info),
                       " now; set it: belay config ", info->key, " VALUE"));
  if (f.silenced.empty() || !f.settings)
    page.Line("the defaults count now: belay config shows them");
}

}  // namespace

ExitCode CmdDoctor(CommandContext& ctx) {
  auto findings = Doctor(ctx).Run();
  if (!findings.ok()) return ctx.term.Fail(findings.error());
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(*findings, json);
    ctx.term.OutJson(json);
  } else {
    ShowText(ctx.term, *findings);
  }
  if (findings->damaged) return ExitCode::kDamaged;
  return findings->problems.empty() ? ExitCode::kOk : ExitCode::kProblem;
}

}  // namespace belay
