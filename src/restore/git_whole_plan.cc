#include "restore/git_whole_plan.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "git/pack_index.h"
#include "restore/git_planner_internal.h"
#include "restore/look.h"

namespace belay {

namespace {

constexpr std::string_view kDotGit = ".git";
constexpr std::string_view kIndexPath = ".git/index";
constexpr std::string_view kObjectsPath = ".git/objects/";
constexpr std::string_view kRefsPath = ".git/refs/";
constexpr std::string_view kLogsPath = ".git/logs/";
constexpr std::string_view kPackedRefs = ".git/packed-refs";
constexpr std::string_view kInfoRefs = ".git/info/refs";
constexpr size_t kShownConflicts = 3;

struct Place {
  AbsPath path;  // of the work tree
  Fd dir;        // closed: it is not there yet, and comes with the files
  FileStat stat;
};

// Through no symlink: what lies outside of the root is nobody's work tree here.
Result<Place> OpenPlace(const GitPlanInput& input, const std::string& path) {
  Fs& fs = input.store.fs();
  Place out{input.root, Fd(), {}};
  auto dir = fs.OpenDir(input.root);
  if (!path.empty()) {
    BELAY_TRY(RelPath below, RelPath::Parse(path));
    out.path = input.root.Join(below);
    if (dir.ok())
      dir = BELAY_MUTANT("git-through-symlinks")
                ? fs.OpenDir(out.path)
                : fs.OpenBeneath(*dir, below, OpenMode::Directory());
  }
  if (!dir.ok() && IsAbsence(dir.error()) && input.MakesDirectory(path)) return out;
  if (!dir.ok()) return std::move(dir).error();
  out.dir = std::move(*dir);
  BELAY_TRY(out.stat, fs.Stat(out.dir));
  return out;
}

// Everything that is at `.git` now; its content goes to the sink.
Result<GitDirMap> ReadGitDir(Fs& fs, const Fd& work_tree, ScanSink& sink) {
  GitDirMap out;
  if (!work_tree.is_open()) return out;
  Looker looker(fs, work_tree);
  std::vector<std::string> left = {std::string(kDotGit)};
  while (!left.empty()) {
    const std::string path = std::move(left.back());
    left.pop_back();
    BELAY_TRY(auto looked, looker.Look(path, sink));
    if (!looked) continue;
    // A socket of a daemon's; where a file must come, the move says so.
    if (looked->special) continue;
    const PathState state = StateOf(looked->state);
    const bool is_dir = state.kind == EntryKind::kDirectory;
    out.emplace(path, state);
    if (!is_dir) continue;
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    BELAY_TRY(Fd dir, fs.OpenBeneath(work_tree, rel, OpenMode::Directory()));
    BELAY_TRY(auto names, fs.List(dir));
    for (const DirEntry& entry : names) left.push_back(path + "/" + entry.name);
  }
  return out;
}

// The tree of what is beneath `top` in the map.
Result<ObjectId> PutMap(const GitDirMap& map, const std::string& top, ScanSink& sink) {
  Tree tree;
  const std::string below = top + "/";
  for (auto at = map.lower_bound(below); at != map.end(); ++at) {
    if (!at->first.starts_with(below)) break;
    const std::string_view name = std::string_view(at->first).substr(below.size());
    if (name.find('/') != std::string_view::npos) continue;
    TreeEntry entry = at->second;
    entry.name = name;
    if (entry.kind == EntryKind::kDirectory) {
      BELAY_TRY(entry.id, PutMap(map, at->first, sink));
    }
    tree.entries.push_back(std::move(entry));
  }
  std::ranges::sort(tree.entries, {}, &TreeEntry::name);
  return sink.PutTree(tree);
}

// What an operation has of a place without a repository.
Result<GitRepoRecord> AbsentAt(const std::string& path, const GitDirMap& now,
                               ScanSink& sink) {
  GitRepoRecord out;
  out.path = path;
  out.absent = true;
  auto top = now.find(std::string(kDotGit));
  if (top == now.end() || top->second.kind != EntryKind::kDirectory) return out;
  out.whole.mode = top->second.mode;
  out.whole.uid = top->second.uid;
  out.whole.gid = top->second.gid;
  BELAY_TRY(out.whole.tree, PutMap(now, std::string(kDotGit), sink));
  return out;
}

// From `now` to `then`; without `all` what `then` does not have stays.
std::vector<PathChange> ChangesBetween(const GitDirMap& now, const GitDirMap& then,
                                       bool all) {
  std::map<std::string, PathChange> changes;
  for (const auto& [path, state] : then) {
    PathChange& change = changes[path];
    change.path = path;
    change.after = state;
    if (auto is = now.find(path); is != now.end()) change.before = is->second;
  }
  for (const auto& [path, state] : now) {
    if (then.contains(path)) continue;
    // Beneath what becomes a file, nothing can stay.
    bool hidden = all;
    for (size_t slash = path.find('/'); !hidden && slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      auto above = then.find(path.substr(0, slash));
      hidden = above != then.end() && above->second.kind != EntryKind::kDirectory;
    }
    if (hidden) changes[path] = {path, state, std::nullopt};
  }
  std::vector<PathChange> out;
  for (auto& [path, change] : changes)
    if (!SameState(change.before, change.after)) out.push_back(std::move(change));
  return out;
}

GitPlan PlanAt(const Place& place, const std::string& path,
               std::vector<PathChange> changes) {
  GitPlan plan;
  plan.path = path;
  plan.action = GitAction::kReset;
  plan.none = changes.empty();
  plan.move.dir = place.path.bytes();
  plan.move.ino = place.stat.ino;
  plan.move.whole = true;
  plan.move.changes = std::move(changes);
  return plan;
}

// Whether one of the plans brings a file.
bool MakesFile(const GitPlans& plans, const std::string& path) {
  return std::ranges::any_of(plans.plans, [&](const GitPlan& plan) {
    return plan.move.whole &&
           std::ranges::any_of(plan.move.changes, [&](const PathChange& change) {
             return change.after && plan.move.dir + "/" + change.path == path;
           });
  });
}

// Whether HEAD, its branch or the index in a git directory is another than `want` has.
bool WasUsedSince(Fs& fs, const AbsPath& git_dir, const GitRepoRecord& want) {
  auto read = [&](const std::string& name) {
    return ReadGitFile(fs, git_dir, name, kMaxGitText);
  };
  auto kept = std::ranges::find(want.own, "HEAD", &GitKept::name);
  auto head = read("HEAD"), index = read("index");
  if (kept != want.own.end() && head.ok() && Sha256::Of(*head) != kept->id) return true;
  if (index.ok() != want.index.has_value()) return true;
  if (index.ok()) {
    auto entries = ReadWholeIndex(*index, want.hash, nullptr, read);
    if (!entries.ok() || entries->digest != want.index_digest) return true;
  }
  if (want.head_ref.empty()) return false;
  auto branch = ReadGitFile(fs, git_dir, want.head_ref, 4096);
  return branch.ok() && !AsText(*branch).starts_with(want.head);
}

std::string In(const std::string& path) {
  return path.empty() ? "" : " in " + EscapeForDisplay(path);
}

// All refs of a git directory by name, wherever they are kept: what its files say.
using ReadRefFile =
    std::function<Result<Bytes>(const std::string& path, const PathState& state)>;
Result<GitRefs> RefsIn(const GitDirMap& map, const ReadRefFile& read) {
  GitRefs out;
  if (auto packed = map.find(std::string(kPackedRefs));
      packed != map.end() && packed->second.kind == EntryKind::kFile) {
    BELAY_TRY(Bytes bytes, read(packed->first, packed->second));
    for (const std::string& line : GitLines(AsText(bytes))) {
      const size_t space = line.find(' ');
      if (line.starts_with('#') || line.starts_with('^') || space == std::string::npos)
        continue;
      out[line.substr(space + 1)] = line.substr(0, space);
    }
  }
  constexpr std::string_view kGitSlash = ".git/";
  for (auto at = map.lower_bound(std::string(kRefsPath));
       at != map.end() && at->first.starts_with(kRefsPath); ++at) {
    if (at->second.kind != EntryKind::kFile) continue;
    BELAY_TRY(Bytes bytes, read(at->first, at->second));
    std::string value(AsText(bytes));
    while (!value.empty() && value.back() == '\n') value.pop_back();
    out[at->first.substr(kGitSlash.size())] = std::move(value);
  }
  return out;
}

Result<Bytes> ReadKnown(Store& store, const PathState& state) {
  if (state.size == 0) return Bytes();
  return store.ReadContentBytes(state.id, kMaxGitText);
}

// Whether no line of a log that is there now is new.
Result<bool> HasKnownLines(Store& store, const Place& place, const std::string& path,
                           const std::vector<const GitDirMap*>& known) {
  std::set<std::string> lines;
  for (const GitDirMap* map : known) {
    auto found = map->find(path);
    if (found == map->end() || found->second.kind != EntryKind::kFile) continue;
    BELAY_TRY(Bytes bytes, ReadKnown(store, found->second));
    for (std::string& line : GitLines(AsText(bytes))) lines.insert(std::move(line));
  }
  auto now = ReadGitFile(store.fs(), place.path, path, kMaxGitText);
  if (!now.ok()) return false;
  return std::ranges::all_of(GitLines(AsText(*now)), [&](const std::string& line) {
    return lines.contains(line);
  });
}

// Refs of now that are in none of `known` as they are.
Status AddMovedRefs(Store& store, const Place& place, const GitDirMap& now,
                    const std::vector<const GitDirMap*>& known, const std::string& top,
                    std::vector<Conflict>& conflicts) {
  BELAY_TRY(GitRefs is, RefsIn(now, [&](const std::string& path, const PathState&) {
              return ReadGitFile(store.fs(), place.path, path, kMaxGitText);
            }));
  std::vector<GitRefs> were;
  for (const GitDirMap* map : known) {
    BELAY_TRY(GitRefs refs,
              RefsIn(*map, [&](const std::string&, const PathState& state) {
                return ReadKnown(store, state);
              }));
    were.push_back(std::move(refs));
  }
  for (const auto& [name, value] : is) {
    if (conflicts.size() >= kShownConflicts) break;
    if (name.starts_with(kGitSafety)) continue;  // of ours
    if (std::ranges::none_of(were, [&name = name, &value = value](const GitRefs& refs) {
          return GitRefValue(refs, name) == value;
        }))
      conflicts.push_back({top + ".git/" + name, "changed since"});
  }
  return Ok();
}

// Whether an object is in the git directory that is there, by itself or in a pack.
bool HasObject(Fs& fs, const Place& place, const GitDirMap& map, GitHash hash,
               const std::string& hex) {
  if (map.contains(std::string(kObjectsPath) + hex.substr(0, 2) + "/" + hex.substr(2)))
    return true;
  const std::string packs = std::string(kObjectsPath) + "pack/";
  for (auto at = map.lower_bound(packs);
       at != map.end() && at->first.starts_with(packs); ++at) {
    if (!at->first.ends_with(".idx") || at->second.kind != EntryKind::kFile) continue;
    auto bytes = ReadGitFile(fs, place.path, at->first, kMaxPackIndex);
    if (!bytes.ok()) continue;
    auto names = ReadPackIndex(*bytes, hash);
    if (names.ok() && std::ranges::find(*names, hex) != names->end()) return true;
  }
  return false;
}

// Puts a file with a ref into `then`, with the directories that it needs. False when
// something is in the way there.
bool AddRef(const std::string& name, const ObjectId& id, uint64_t size,
            const GitDirMap& now, GitDirMap& then) {
  const std::string path = ".git/" + name;
  if (then.contains(path)) return false;
  PathState like = then.at(std::string(kDotGit));
  std::vector<std::pair<std::string, PathState>> parents;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string dir = path.substr(0, slash);
    if (auto there = then.find(dir); there != then.end()) {
      if (there->second.kind != EntryKind::kDirectory) return false;
      continue;
    }
    auto is = now.find(dir);
    const bool dir_now = is != now.end() && is->second.kind == EntryKind::kDirectory;
    parents.emplace_back(dir, dir_now ? is->second : like);
  }
  then.insert(parents.begin(), parents.end());
  like.kind = EntryKind::kFile;
  like.mode &= 0666;
  like.id = id;
  like.size = size;
  then.emplace(path, std::move(like));
  return true;
}

// Refs of now that would move or go with the files that replace theirs: new ones keep
// their names, what others leave is held by safety refs, whose names it gives.
Result<std::vector<std::string>> HoldRefs(const GitPlanInput& input, const Place& place,
                                          GitHash hash, const GitDirMap& now,
                                          GitDirMap& then) {
  std::vector<std::string> held;
  auto top = then.find(std::string(kDotGit));
  if (top == then.end() || top->second.kind != EntryKind::kDirectory || now.empty())
    return held;
  Store& store = input.store;
  BELAY_TRY(GitRefs is, RefsIn(now, [&](const std::string& path, const PathState&) {
              return ReadGitFile(store.fs(), place.path, path, kMaxGitText);
            }));
  if (auto head = now.find(".git/HEAD");
      head != now.end() && head->second.kind == EntryKind::kFile) {
    BELAY_TRY(Bytes bytes, ReadGitFile(store.fs(), place.path, head->first, 4096));
    auto at = ParseGitHead(AsText(bytes), hash);
    if (at.ok() && !at->commit.empty()) is["HEAD"] = at->commit;
  }
  BELAY_TRY(GitRefs want, RefsIn(then, [&](const std::string&, const PathState& state) {
              return ReadKnown(store, state);
            }));
  std::set<std::string> reached;
  for (const auto& [name, value] : want) reached.insert(value);
  const std::string base = std::string(kGitSafety) +
                           (input.operation.is_zero() ? "*" : input.operation.text());
  for (const auto& [name, value] : is) {
    if (!IsGitHex(value, hash) || GitRefValue(want, name) == value) continue;
    if (now.contains(".git/" + name) && !then.contains(".git/" + name) &&
        IsGitRefName(name))
      continue;  // a file of its own, which stays
    const std::string text = value + "\n";
    BELAY_TRY(ObjectId id, input.sink.PutContent(AsBytes(text)));
    if (IsGitRefName(name) && !want.contains(name) &&
        AddRef(name, id, text.size(), now, then))
      continue;
    if (!reached.insert(value).second) continue;
    if (!HasObject(store.fs(), place, now, hash, value)) continue;
    const std::string safety = base + "/ref-" + std::to_string(held.size());
    if (AddRef(safety, id, text.size(), now, then)) held.push_back(safety);
  }
  return held;
}

size_t CountFiles(const std::vector<PathChange>& changes) {
  return static_cast<size_t>(
      std::ranges::count_if(changes, [](const PathChange& change) {
        const auto& side = change.after ? change.after : change.before;
        return side->kind != EntryKind::kDirectory;
      }));
}

}  // namespace

Result<GitDirMap> LoadGitDir(Store& store, const GitRepoRecord& record) {
  GitDirMap out;
  const GitWhole& whole = record.whole;
  PathState top;
  top.mode = whole.mode;
  top.uid = whole.uid;
  top.gid = whole.gid;
  if (!whole.git_file.empty()) {
    top.kind = EntryKind::kFile;
    top.id = Sha256::Of(AsBytes(whole.git_file));
    top.size = whole.git_file.size();
    out.emplace(kDotGit, std::move(top));
    return out;
  }
  if (whole.tree.is_zero()) return out;
  top.kind = EntryKind::kDirectory;
  out.emplace(kDotGit, std::move(top));
  std::vector<std::pair<std::string, ObjectId>> left = {
      {std::string(kDotGit), whole.tree}};
  while (!left.empty()) {
    const auto [path, id] = std::move(left.back());
    left.pop_back();
    BELAY_TRY(Tree tree, store.GetTree(id));
    for (const TreeEntry& entry : tree.entries) {
      const std::string at = path + "/" + entry.name;
      if (entry.kind == EntryKind::kDirectory) left.emplace_back(at, entry.id);
      out.emplace(at, StateOf(entry));
    }
  }
  // As it was recorded, should the two not be of one moment.
  if (auto index = out.find(std::string(kIndexPath));
      index != out.end() && record.index) {
    index->second.id = record.index->id;
    index->second.size = record.index->size;
  }
  return out;
}

std::optional<AbsPath> LedToBy(const std::string& git_file, const AbsPath& work_tree) {
  constexpr std::string_view kLeads = "gitdir: ";
  if (!git_file.starts_with(kLeads)) return std::nullopt;
  auto at = AbsPath::Resolve(
      work_tree, git_file.substr(kLeads.size(), git_file.find('\n') - kLeads.size()));
  return at.ok() ? std::optional(std::move(*at)) : std::nullopt;
}

bool LostItsSettings(Fs& fs, const GitRepository& repository,
                     const GitRepoRecord& want) {
  if (want.whole.tree.is_zero() || repository.git_dir != repository.common_dir ||
      BELAY_MUTANT("git-without-its-settings"))
    return false;
  auto dir = fs.OpenDir(repository.common_dir);
  if (!dir.ok()) return false;
  auto config = fs.StatAt(*dir, Name::Literal("config"));
  if (!config.ok())
    return config.error().code == Errc::kNotFound && repository.hash != want.hash;
  const AbsPath file = repository.common_dir.Join(RelPath::Literal("config"));
  return !GitConfig::ReadOne(fs, file).problems().empty();
}

Status PlanGitDirBack(const GitPlanInput& input, const GitRepoRecord& want,
                      bool unreadable, GitPlans& out) {
  Fs& fs = input.store.fs();
  auto place = OpenPlace(input, want.path);
  if (!place.ok()) {
    if (!IsAbsence(place.error())) return std::move(place).error();
    out.warnings.push_back("git" + In(want.path) +
                           " does not come back: its directory is not there, and "
                           "does not come back either");
    return Ok();
  }
  auto now = ReadGitDir(fs, place->dir, input.sink);
  if (!now.ok()) {
    return std::move(now).error();
  }
  // None was there a moment ago.
  GitUserConfig nobody;
  nobody.no_system = true;
  auto made = place->dir.is_open() ? OpenRepositoryAt(fs, place->path, nobody)
                                   : Result<std::optional<GitRepository>>(std::nullopt);
  if (made.ok() && *made && !unreadable)
    return Error(Errc::kBusy,
                 "git is at work here: a repository was made while it was looked at")
        .WithHint("nothing was changed; try again when it is done");
  auto then = LoadGitDir(input.store, want);
  if (!then.ok()) {
    out.warnings.push_back("git" + In(want.path) +
                           " does not come back: " + then.error().what);
    return Ok();
  }
  for (const auto& [path, state] : *then) {
    if (state.kind != EntryKind::kFile || state.size == 0) continue;
    if (path == kDotGit) continue;  // is put below
    BELAY_TRY(bool has, input.Has(state.id));
    if (has) continue;
    out.warnings.push_back(
        "git" + In(want.path) + " does not come back: " +
        (input.WasPurged(state.id)
             ? EscapeForDisplay(path) + " was erased by belay purge"
             : "the store has " + EscapeForDisplay(path) + " no more"));
    return Ok();
  }
  if (!want.whole.git_file.empty()) {
    BELAY_TRY([[maybe_unused]] ObjectId put,
              input.sink.PutContent(AsBytes(want.whole.git_file)));
  }
  if (auto leads = LedToBy(want.whole.git_file, place->path)) {
    auto dir = fs.OpenDir(*leads);
    if (!dir.ok() && !MakesFile(out, leads->bytes() + "/HEAD")) {
      out.warnings.push_back(
          "git" + In(want.path) + " does not come back: what its .git leads to (" +
          EscapeForDisplay(leads->bytes()) + ") is gone; the files do");
      return Ok();
    }
    if (dir.ok() && WasUsedSince(fs, *leads, want))
      out.warnings.push_back("git" + In(want.path) +
                             " comes back, but was used before it went: to take that "
                             "back too, roll back once more");
  }
  std::vector<std::string> held;
  if (!BELAY_MUTANT("git-whole-holds-nothing")) {
    BELAY_TRY(held, HoldRefs(input, *place, want.hash, *now, *then));
  }
  GitPlan plan = PlanAt(*place, want.path, ChangesBetween(*now, *then, false));
  plan.safety_refs = std::move(held);
  plan.to = want.head;
  plan.branch = want.head_ref.empty() ? "" : GitBranchName(want.head_ref);
  if (plan.none) return Ok();
  plan.notes.push_back(
      want.whole.git_file.empty()
          ? ".git comes back whole: " + Counted(CountFiles(plan.move.changes), "file") +
                (want.head.empty() ? "" : ", at " + want.head.substr(0, 7)) +
                (plan.branch.empty() ? "" : " on " + plan.branch)
          : ".git, which leads to the repository, comes back");
  if (plan.move.changes.end() !=
      std::ranges::find(plan.move.changes, kIndexPath, &PathChange::path)) {
    plan.move.index = kIndexPath;
    plan.move.index_after_ns = want.index_mtime_ns;
    Looker looker(fs, place->dir);
    BELAY_TRY(auto stat, looker.Stat(std::string(kIndexPath)));
    plan.move.index_before_ns = stat ? stat->mtime_ns : 0;
  }
  BELAY_TRY(GitRepoRecord before, AbsentAt(want.path, *now, input.sink));
  out.before.repositories.push_back(std::move(before));
  out.after.repositories.push_back(want);
  out.plans.push_back(std::move(plan));
  return Ok();
}

Status PlanGitDirAway(const GitPlanInput& input, const GitRepoRecord& want,
                      const GitRepoRecord& is, GitPlans& out) {
  const GitRepoRecord* expected =
      input.expected == nullptr ? nullptr : input.expected->Find(want.path);
  if (expected == nullptr) return Ok();
  BELAY_TRY(Place place, OpenPlace(input, want.path));
  BELAY_TRY(GitDirMap now, ReadGitDir(input.store.fs(), place.dir, input.sink));
  BELAY_TRY(GitDirMap then, LoadGitDir(input.store, want));
  if (!input.exact && !BELAY_MUTANT("git-goes-with-its-new-commits")) {
    BELAY_TRY(GitDirMap ours, LoadGitDir(input.store, *expected));
    const std::string top = want.path.empty() ? "" : want.path + "/";
    for (const auto& [path, state] : now) {
      // Looking is enough to have it written anew.
      if (path == kIndexPath && is.index_digest == expected->index_digest) continue;
      // An object alone is nothing that somebody did: what names it would be new, too.
      if (path.starts_with(kObjectsPath)) continue;
      // Refs count by what they are: packing them (`git gc`) changes nothing.
      if (path.starts_with(kRefsPath) || path == kPackedRefs || path == kInfoRefs)
        continue;
      auto same_in = [&path = path, &state = state](const GitDirMap& map) {
        auto found = map.find(path);
        return found != map.end() && SameContent(found->second, state);
      };
      // `git gc` takes old lines out of logs.
      if (path.starts_with(kLogsPath)) {
        BELAY_TRY(bool known, HasKnownLines(input.store, place, path, {&ours, &then}));
        if (known) continue;
      }
      // What we brought, or what was there before and was left.
      if (same_in(ours) || same_in(then)) continue;
      out.conflicts.push_back({top + path, "changed since"});
      if (out.conflicts.size() >= kShownConflicts) break;
    }
    BELAY_OK(AddMovedRefs(input.store, place, now, {&ours, &then}, top, out.conflicts));
    if (!out.conflicts.empty()) return Ok();
  }
  GitPlan plan = PlanAt(place, want.path, ChangesBetween(now, then, true));
  if (plan.none) return Ok();
  plan.from = is.head;
  plan.notes.push_back(expected->whole.git_file.empty()
                           ? ".git goes again: " +
                                 Counted(CountFiles(plan.move.changes), "file")
                           : ".git, which leads to the repository, goes again");
  GitRepoRecord before = is;
  before.whole = expected->whole;
  out.before.repositories.push_back(std::move(before));
  out.after.repositories.push_back(want);
  out.plans.push_back(std::move(plan));
  return Ok();
}

}  // namespace belay
