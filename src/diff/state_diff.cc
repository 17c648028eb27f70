#include "diff/state_diff.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/state_rules.h"
#include "diff/renames_internal.h"

namespace belay {

namespace {

std::string Joined(const std::string& dir, const std::string& name) {
  return dir.empty() ? name : dir + '/' + name;
}

bool IsDir(const std::optional<TreeEntry>& entry) {
  return entry && entry->kind == EntryKind::kDirectory;
}

bool SameAttributes(const TreeEntry& a, const TreeEntry& b) {
  return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && a.xattrs == b.xattrs;
}

// The reason among `skipped` (by path) for a path or a directory above it.
std::string WhyLeftOut(const std::vector<SkippedPath>& skipped,
                       const std::string& path) {
  for (size_t end = path.size(); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    const std::string_view at = std::string_view(path).substr(0, end);
    auto found = std::lower_bound(
        skipped.begin(), skipped.end(), at,
        [](const SkippedPath& s, std::string_view p) { return s.path < p; });
    if (found != skipped.end() && found->path == at && !IsHeld(found->why))
      return std::string(SkipName(found->why));
  }
  return {};
}

std::function<bool(const std::string&)> SecretsBy(const RuleLists& lists,
                                                  const RuleLists* then) {
  auto now_rules = std::make_shared<const SecretRules>(lists);
  std::shared_ptr<const SecretRules> then_rules;
  if (then != nullptr) then_rules = std::make_shared<const SecretRules>(*then);
  return [now_rules, then_rules](const std::string& path) {
    return now_rules->IsSecret(path) || (then_rules && then_rules->IsSecret(path));
  };
}

std::set<std::string> Unread(const std::vector<SkippedPath>& skipped) {
  std::set<std::string> paths;
  for (const SkippedPath& path : skipped)
    if (path.why == Skip::kNoAttributes) paths.insert(path.path);
  return paths;
}

class Differ {
 public:
  Differ(const DiffSide& from, const DiffSide& to, Selection& selection,
         const DiffStatesOptions& options)
      : from_(from), to_(to), selection_(selection), options_(options) {}

  Result<StateDiff> Run() {
    selection_.Resolve([this](const RelPath& path) { return Exists(path); });
    if (from_.root && to_.root && *from_.root != *to_.root && selection_.HasRoot())
      Put(".", from_.root, to_.root, false);
    BELAY_OK(Walk());
    BELAY_OK(CheckSelection());
    for (PathDiff& path : out_.paths) BELAY_OK(Judge(path));
    if (options_.renames) {
      BELAY_OK(FindRenames(from_, to_, out_));
    }
    Order();
    return std::move(out_);
  }

 private:
  struct Pair {
    std::string path;
    ObjectId from, to;  // zero: not there
    // Of a directory that only one side has: itself, shown when it is empty.
    std::optional<TreeEntry> only = {};
    bool swaps = false;  // the other side has something else in its place
  };

  bool Exists(const RelPath& path) const {
    for (const DiffSide* side : {&from_, &to_}) {
      auto found = FindInTree(side->tree, path, side->trees);
      if (found.ok() && *found) return true;
    }
    return false;
  }

  Status Walk() {
    std::vector<Pair> waiting{{"", from_.tree, to_.tree}};
    while (!waiting.empty()) {
      Pair pair = std::move(waiting.back());
      waiting.pop_back();
      if (pair.from == pair.to) continue;
      Tree before, after;
      if (!pair.from.is_zero()) {
        BELAY_TRY(before, from_.trees(pair.from));
      }
      if (!pair.to.is_zero()) {
        BELAY_TRY(after, to_.trees(pair.to));
      }
      if (pair.only && before.entries.empty() && after.entries.empty() &&
          selection_.Has(pair.path)) {
        const bool gone = pair.to.is_zero();
        Put(pair.path, gone ? pair.only : std::nullopt, gone ? std::nullopt : pair.only,
            pair.swaps);
      }
      auto a = before.entries.begin();
      auto b = after.entries.begin();
      while (a != before.entries.end() || b != after.entries.end()) {
        const bool only_a = b == after.entries.end() ||
                            (a != before.entries.end() && a->name < b->name);
        const bool only_b = !only_a && (a == before.entries.end() || b->name < a->name);
        std::optional<TreeEntry> old, now;
        if (!only_b) old = std::move(*a++);
        if (!only_a) now = std::move(*b++);
        if (old && now && *old == *now) continue;
        std::string path = Joined(pair.path, old ? old->name : now->name);
        if (IsDir(old) || IsDir(now)) {
          const ObjectId from_id = IsDir(old) ? old->id : ObjectId();
          const ObjectId to_id = IsDir(now) ? now->id : ObjectId();
          if (from_id != to_id && selection_.MayHaveBelow(path)) {
            Pair below{path, from_id, to_id};
            if (!IsDir(old) || !IsDir(now)) below.only = IsDir(old) ? old : now;
            below.swaps = old && now;
            waiting.push_back(std::move(below));
          }
        }
        Add(std::move(path), std::move(old), std::move(now));
      }
    }
    return Ok();
  }

  void Add(std::string path, std::optional<TreeEntry> old,
           std::optional<TreeEntry> now) {
    if (!selection_.Has(path)) return;
    const bool old_dir = IsDir(old), now_dir = IsDir(now);
    if (old_dir && now_dir) {
      if (from_.attributes_unknown.contains(path) ||
          to_.attributes_unknown.contains(path))
        now->xattrs = old->xattrs;
      if (!SameAttributes(*old, *now)) Put(path, std::move(old), std::move(now), false);
      return;
    }
    // A directory is told by what is in it; see Walk().
    if (old_dir) old.reset();
    if (now_dir) now.reset();
    if (!old && !now) return;
    Put(std::move(path), std::move(old), std::move(now), old_dir || now_dir);
  }

  void Put(std::string path, std::optional<TreeEntry> old, std::optional<TreeEntry> now,
           bool swaps_directory) {
    PathDiff diff;
    diff.status = !old                     ? DiffStatus::kAdded
                  : !now                   ? DiffStatus::kDeleted
                  : old->kind == now->kind ? DiffStatus::kModified
                                           : DiffStatus::kTypeChanged;
    diff.path = std::move(path);
    diff.before = std::move(old);
    diff.after = std::move(now);
    diff.swaps_directory = swaps_directory;
    out_.paths.push_back(std::move(diff));
  }

  Status Judge(PathDiff& diff) {
    const bool is_dir = IsDir(diff.before ? diff.before : diff.after);
    if (!is_dir && !BELAY_MUTANT("diff-shows-secrets"))
      diff.secret = (from_.is_secret && from_.is_secret(diff.path)) ||
                    (to_.is_secret && to_.is_secret(diff.path));
    // Something of another kind in its place is an answer.
    if ((diff.before && diff.after) || diff.swaps_directory) return Ok();
    const DiffSide& lacks = diff.before ? to_ : from_;
    const DiffSide& has = diff.before ? from_ : to_;
    if (!lacks.why_not) return Ok();
    BELAY_TRY(std::string why, lacks.why_not(diff.path, is_dir));
    if (why.empty()) return Ok();
    // What a side has against its own rules is tracked by git, and nobody wrote down
    // what else was: rules that both sides have tell nothing then.
    if (!has.is_now && has.why_not && !lacks.is_now && why.ends_with("_then")) {
      BELAY_TRY(std::string own, has.why_not(diff.path, is_dir));
      if (own == why) return Ok();
    }
    if (BELAY_MUTANT("diff-unknown-is-deleted")) return Ok();
    diff.status = DiffStatus::kUnknown;
    diff.why = std::move(why);
    return Ok();
  }

  Status CheckSelection() {
    for (const std::string& named : selection_.Unused()) {
      if (named.empty()) continue;  // the root
      auto path = RelPath::Parse(named);
      if (path.ok() && Exists(*path)) continue;
      bool found = false;
      if (Selection::IsGlob(named)) {
        // It may match what is the same on both sides.
        Selection one({named});
        for (const DiffSide* side : {&from_, &to_}) {
          if (found || side->tree.is_zero()) continue;
          Status walked =
              WalkTree(side->tree, "", side->trees,
                       [&](const std::string& at, const TreeEntry&) -> Status {
                         if (one.Has(at)) return Error(Errc::kExists, "found");
                         return Ok();
                       });
          if (walked.ok()) continue;
          if (walked.error().code != Errc::kExists) return walked;
          found = true;
        }
      }
      if (!found)
        return Error(Errc::kInvalid,
                     "neither side of the comparison has " + EscapeForDisplay(named))
            .WithHint("`belay why PATH` says whether it is covered");
    }
    return Ok();
  }

  // By path; but what comes in the place of a directory comes after what was in it.
  void Order() {
    auto key = [](const PathDiff& diff) {
      const bool late = diff.swaps_directory && diff.after;
      return late ? diff.path + '0' : diff.path;  // '0' follows '/'
    };
    std::sort(out_.paths.begin(), out_.paths.end(),
              [&](const PathDiff& x, const PathDiff& y) { return key(x) < key(y); });
  }

  const DiffSide& from_;
  const DiffSide& to_;
  Selection& selection_;
  const DiffStatesOptions& options_;
  StateDiff out_;
};

}  // namespace

bool PathDiff::SameContent() const {
  if (!before || !after || before->kind != after->kind) return false;
  switch (after->kind) {
    case EntryKind::kFile:
      return before->id == after->id && before->size == after->size;
    case EntryKind::kSymlink:
      return before->target == after->target;
    case EntryKind::kDirectory:
      return true;
  }
  return false;
}

std::string_view DiffStatusName(DiffStatus status) {
  switch (status) {
    case DiffStatus::kAdded:
      return "added";
    case DiffStatus::kDeleted:
      return "deleted";
    case DiffStatus::kModified:
      return "modified";
    case DiffStatus::kTypeChanged:
      return "type_changed";
    case DiffStatus::kRenamed:
      return "renamed";
    case DiffStatus::kUnknown:
      return "unknown";
  }
  return "unknown";
}

DiffSide SideOfState(Store& store, const StateView& view, bool partial,
                     const RuleLists& lists) {
  DiffSide side;
  side.tree = view.state.tree;
  side.trees = TreesOf(store);
  if (view.rules) side.root = view.rules->RootEntry();
  side.content = [&store](const std::string&, const TreeEntry& entry, uint64_t limit) {
    return store.ReadContentBytes(entry.id, limit);
  };
  side.beginning = [&store](const std::string&, const TreeEntry& entry,
                            size_t most) -> Result<Bytes> {
    Bytes out;
    const Error enough(Errc::kConflict, "enough was read");
    const Status read = store.ReadContent(entry.id, [&](ByteSpan bytes) -> Status {
      if (out.size() == most) return enough;
      bytes = bytes.first(std::min(bytes.size(), most - out.size()));
      out.insert(out.end(), bytes.begin(), bytes.end());
      return out.size() == most ? Status(enough) : Ok();
    });
    if (!read.ok() && out.size() < most) return read.error();
    return out;
  };
  side.is_secret = SecretsBy(lists, view.rules ? &view.rules->lists : nullptr);
  auto rules =
      std::make_shared<StateRules>(view, TreesOf(store), [&store](const ObjectId& id) {
        return store.ReadContentBytes(id, kMaxPatternFile);
      });
  auto skipped = std::make_shared<const std::vector<SkippedPath>>(view.Skipped());
  side.attributes_unknown = Unread(*skipped);
  const bool known = view.rules.has_value();
  side.why_not = [=](const std::string& path, bool is_dir) -> Result<std::string> {
    if (std::string why = WhyLeftOut(*skipped, path); !why.empty()) return why;
    if (partial) return std::string("partial");
    // Without its rules the state is taken at its word; that they are gone is said.
    if (!known) return std::string();
    BELAY_TRY(StateRules::Verdict verdict, rules->Ask(path, is_dir));
    return verdict.covered ? std::string() : verdict.why;
  };
  return side;
}

DiffSide SideOfNow(Store& store, const TreeNow& now, const Fd& root,
                   const RuleLists& lists) {
  DiffSide side;
  side.tree = now.summary.tree;
  side.trees = now.read;
  side.root =
      RulesRecord::RootEntryOf(now.summary.mode, now.summary.uid, now.summary.gid);
  side.is_now = true;
  side.is_secret = SecretsBy(lists, nullptr);
  Fs& fs = store.fs();
  auto read = [&fs, &root](const std::string& path, uint64_t limit,
                           uint64_t most) -> Result<Bytes> {
    BELAY_TRY(RelPath at, RelPath::Parse(path));
    BELAY_TRY(Fd file, fs.OpenBeneath(root, at, OpenMode::Read()));
    BELAY_TRY(FileStat stat, fs.Stat(file));
    if (stat.type != FileType::kRegular)
      return Error(Errc::kConflict, "it became " +
                                        std::string(FileTypeName(stat.type)) +
                                        " while it was looked at");
    if (stat.size > limit) return Error(Errc::kInvalid, "it is too large");
    Bytes bytes(std::min(stat.size, most));
    BELAY_TRY(size_t got, ReadFull(fs, file, 0, bytes));
    bytes.resize(got);
    return bytes;
  };
  side.content = [read](const std::string& path, const TreeEntry&, uint64_t limit) {
    return read(path, limit, UINT64_MAX);
  };
  side.beginning = [read](const std::string& path, const TreeEntry&, size_t most) {
    return read(path, UINT64_MAX, most);
  };
  auto skipped = std::make_shared<const std::vector<SkippedPath>>(now.summary.skipped);
  side.attributes_unknown = Unread(*skipped);
  side.why_not = [skipped, &fs, &root](const std::string& path,
                                       bool) -> Result<std::string> {
    if (std::string why = WhyLeftOut(*skipped, path); !why.empty()) return why;
    // What is there and was not scanned is not covered.
    BELAY_TRY(RelPath at, RelPath::Parse(path));
    auto parent = OpenParent(fs, root, at);
    if (!parent.ok()) return std::string();
    auto stat = fs.StatAt(parent->dir, parent->name);
    return stat.ok() ? std::string("ignored_now") : std::string();
  };
  return side;
}

Result<StateDiff> DiffStates(const DiffSide& from, const DiffSide& to,
                             Selection& selection, const DiffStatesOptions& options) {
  return Differ(from, to, selection, options).Run();
}

}  // namespace belay
