#include "core/path_history.h"

#include <algorithm>
#include <memory>

#include "base/mutant.h"
#include "core/capture.h"
#include "core/selection.h"
#include "core/state_rules.h"
#include "core/state_view.h"

namespace belay {

namespace {

using Maybe = std::optional<PathState>;
using Changes = std::map<std::string, Change>;

bool IsDir(const std::optional<TreeEntry>& entry) {
  return entry && entry->kind == EntryKind::kDirectory;
}

bool CannotBeRead(const Error& error) {
  return error.code == Errc::kCorrupt || error.code == Errc::kNotFound ||
         error.code == Errc::kPurged;
}

std::optional<TreeEntry> Find(const Tree& tree, std::string_view name) {
  auto at = std::lower_bound(
      tree.entries.begin(), tree.entries.end(), name,
      [](const TreeEntry& entry, std::string_view n) { return entry.name < n; });
  if (at == tree.entries.end() || at->name != name) return std::nullopt;
  return *at;
}

Change KindOf(const Maybe& before, const Maybe& after) {
  return !before ? Change::kAdded : !after ? Change::kDeleted : Change::kModified;
}

// What became another kind of thing comes as deleted and added.
void Note(Changes& changes, const std::string& path, Change change) {
  auto [at, is_new] = changes.emplace(path, change);
  if (!is_new && at->second != change) at->second = Change::kModified;
}

class Historian {
 public:
  // `below`: directories that hold all that `selection` can have.
  Historian(Store& store, const Scan::TreeReader& trees, Selection& selection,
            std::vector<std::string> below)
      : store_(store), trees_(trees), selection_(selection), below_(std::move(below)) {}

  // Without telling what is in it.
  Status BeginAt(const Checkpoint& checkpoint) {
    BELAY_TRY(State state, store_.GetState(checkpoint.state));
    (void)RootChanged(state.rules);
    last_ = state.tree;
    last_state_ = checkpoint.state;
    return Ok();
  }

  Result<Changes> Of(const Checkpoint& checkpoint) {
    BELAY_TRY(State state, store_.GetState(checkpoint.state));
    Changes changes;
    for (const std::string& path : below_)
      BELAY_OK(Compare(last_, state.tree, path, changes));
    std::erase_if(changes,
                  [&](const auto& change) { return !selection_.Has(change.first); });
    std::map<std::string, Maybe> held;
    for (auto& [path, was] : pending_) {
      BELAY_TRY(Maybe now, StateIn(state.tree, path));
      if (SameState(was, now)) {
        changes.erase(path);
      } else if (!IsDir(was) && !IsDir(now)) {
        changes[path] = KindOf(was, now);
      }
    }
    BELAY_OK(LeaveOut(checkpoint, changes, held));
    if (RootChanged(state.rules)) changes["."] = Change::kModified;
    pending_ = std::move(held);
    last_ = state.tree;
    last_state_ = checkpoint.state;
    return changes;
  }

  Result<Changes> Of(const Operation& operation) {
    BELAY_TRY(Bytes bytes, store_.Get({ObjectType::kNode, operation.changes}));
    BELAY_TRY(Node node, DecodeNode(bytes));
    BELAY_TRY(auto changes, DecodeChanges(node));
    Changes out;
    for (PathChange& change : changes) {
      if (!selection_.Has(change.path)) continue;
      if (change.path.empty()) {  // the root itself is in no tree
        out["."] = KindOf(change.before, change.after);
        last_root_ = std::move(change.after);
        continue;
      }
      out[change.path] = KindOf(change.before, change.after);
      pending_[change.path] = std::move(change.after);
    }
    return out;
  }

  std::map<std::string, Maybe> TakeKnown() { return std::move(pending_); }
  Maybe TakeRoot() { return std::move(last_root_); }

 private:
  // The directory itself is in no tree: its mode and owner are with the rules. Where
  // those cannot be read, or for the first time, nothing is known to have changed.
  bool RootChanged(const ObjectId& rules) {
    if (!selection_.HasRoot() || rules.is_zero() || BELAY_MUTANT("log-forgets-root"))
      return false;
    auto record = LoadRules(store_, rules);
    if (!record.ok()) return false;
    const Maybe now = RootState(record->mode, record->uid, record->gid);
    const bool changed = last_root_ && !SameState(last_root_, now);
    last_root_ = now;
    return changed;
  }

  Result<Tree> Read(const ObjectId& id) {
    if (id.is_zero()) return Tree();
    return trees_(id);
  }

  // Down to `path` as long as the two trees differ, then below it.
  Status Compare(ObjectId from, ObjectId to, const std::string& path,
                 Changes& changes) {
    if (path.empty()) return Below(from, to, "", changes);
    for (size_t at = 0;;) {
      if (from == to) return Ok();
      size_t end = path.find('/', at);
      const bool last = end == std::string::npos;
      if (last) end = path.size();
      const std::string name = path.substr(at, end - at);
      BELAY_TRY(Tree old, Read(from));
      BELAY_TRY(Tree now, Read(to));
      const auto a = Find(old, name), b = Find(now, name);
      from = IsDir(a) ? a->id : ObjectId();
      to = IsDir(b) ? b->id : ObjectId();
      if (!last) {
        at = end + 1;
        continue;
      }
      if (a == b) return Ok();
      if (IsDir(a) && IsDir(b)) {
        if (!SameState(StateOf(*a), StateOf(*b)))
          Note(changes, path, Change::kModified);
      } else {
        const size_t had = changes.size();
        BELAY_OK(Below(from, to, path + "/", changes));
        // An empty directory counts by itself, a full one by what is in it.
        const bool spoke = changes.size() != had;
        if (a && !(IsDir(a) && spoke)) Note(changes, path, Change::kDeleted);
        if (b && !(IsDir(b) && spoke)) Note(changes, path, Change::kAdded);
        return Ok();
      }
      return Below(from, to, path + "/", changes);
    }
  }

  Status Below(const ObjectId& from, const ObjectId& to, const std::string& prefix,
               Changes& changes) {
    if (from == to) return Ok();
    BELAY_TRY([[maybe_unused]] ChangeCounts counts,
              DiffTrees(from, to, trees_, [&](std::string_view path, Change change) {
                Note(changes, prefix + std::string(path), change);
              }));
    return Ok();
  }

  Result<Maybe> StateIn(const ObjectId& tree, const std::string& path) {
    if (tree.is_zero()) return Maybe();
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    BELAY_TRY(auto entry, FindInTree(tree, rel, trees_));
    if (!entry) return Maybe();
    return Maybe(StateOf(*entry));
  }

  // For whatever a checkpoint's tree lacks and the one before has.
  struct Absent {
    StateView now = {}, before = {};
    std::vector<SkippedPath> skipped = {};
    std::unique_ptr<StateRules> rules_now = {}, rules_before = {};
  };

  // Left out, or no longer covered by the rules: then it was not seen to be deleted.
  bool IsThereStill(const Checkpoint& checkpoint, Absent& absent,
                    const std::string& path) {
    if (IsLeftOut(absent.skipped, path)) return true;
    if (!absent.now.rules || !absent.before.rules) return false;
    if (!absent.rules_now) {
      const ContentReader contents = [this](const ObjectId& id) {
        return store_.ReadContentBytes(id, kMaxPatternFile);
      };
      absent.rules_now = std::make_unique<StateRules>(absent.now, trees_, contents);
      absent.rules_before =
          std::make_unique<StateRules>(absent.before, trees_, contents);
    }
    auto is = absent.rules_now->Ask(path, false);
    if (!is.ok() || is->covered) return false;
    auto was = absent.rules_before->Ask(path, false);
    // Covered though the rules say no: git tracked it. Whoever made the checkpoint saw
    // whether anything was gone.
    return was.ok() && (was->covered || checkpoint.deleted == 0);
  }

  // Not in this checkpoint's tree, but not gone either: the next one that has it is
  // compared with what was known last.
  Status LeaveOut(const Checkpoint& checkpoint, Changes& changes,
                  std::map<std::string, Maybe>& held) {
    std::optional<Absent> absent;
    for (auto at = changes.begin(); at != changes.end();) {
      if (at->second != Change::kDeleted) {
        ++at;
        continue;
      }
      if (!absent) {
        absent.emplace();
        BELAY_TRY(absent->now, LoadState(store_, checkpoint.state));
        if (!last_state_.is_zero()) {
          BELAY_TRY(absent->before, LoadState(store_, last_state_));
        }
        absent->skipped = absent->now.Skipped();
      }
      if (!IsThereStill(checkpoint, *absent, at->first) ||
          BELAY_MUTANT("left-out-is-deleted")) {
        ++at;
        continue;
      }
      auto pending = pending_.find(at->first);
      if (pending != pending_.end()) {
        held[at->first] = pending->second;
      } else {
        BELAY_TRY(held[at->first], StateIn(last_, at->first));
      }
      at = changes.erase(at);
    }
    return Ok();
  }

  Store& store_;
  const Scan::TreeReader& trees_;
  Selection& selection_;
  const std::vector<std::string> below_;
  ObjectId last_, last_state_;  // of the checkpoint before: its tree, its state
  Maybe last_root_;             // the directory itself
  // What is known better than by that tree.
  std::map<std::string, Maybe> pending_;
};

// The directory that holds whatever the glob can match.
std::string FixedPart(const std::string& glob) {
  const size_t slash = glob.rfind('/', glob.find_first_of("*?[\\"));
  return slash == std::string::npos ? std::string() : glob.substr(0, slash);
}

}  // namespace

Result<PathHistory> HistoryOf(Store& store, const Scan::TreeReader& trees,
                              const std::vector<CatalogEntry>& newest_first,
                              const std::vector<Operation>& oldest_first,
                              const std::vector<std::string>& asked,
                              const std::function<bool(const RelPath&)>& exists,
                              bool since_oldest) {
  PathHistory out;
  Selection selection(asked);
  selection.Resolve(exists ? exists : [](const RelPath&) { return false; });
  std::vector<std::string> below;
  for (const std::string& path : asked)
    below.push_back(Selection::IsGlob(path) ? FixedPart(path) : path);
  Historian historian(store, trees, selection, std::move(below));
  auto add = [&](PathHistoryRow row, Result<Changes> changes,
                 const RecordId& id) -> Status {
    if (!changes.ok()) {
      if (!CannotBeRead(changes.error())) return std::move(changes).error();
      out.unreadable.push_back(id);
      return Ok();
    }
    for (const auto& [path, change] : *changes) row.paths.push_back({path, change});
    if (!row.paths.empty()) out.rows.push_back(std::move(row));
    return Ok();
  };
  auto operation = oldest_first.begin();
  auto operations_before = [&](uint64_t seq) -> Status {
    for (; operation != oldest_first.end() && operation->seq < seq; ++operation)
      BELAY_OK(
          add({.operation = &*operation}, historian.Of(*operation), operation->id));
    return Ok();
  };
  for (size_t i = newest_first.size(); i-- > 0;) {
    const Checkpoint& checkpoint = newest_first[i].checkpoint;
    if (since_oldest && i + 1 == newest_first.size()) {
      while (operation != oldest_first.end() && operation->seq < checkpoint.seq)
        ++operation;
      Status begun = historian.BeginAt(checkpoint);
      if (begun.ok()) continue;
      if (!CannotBeRead(begun.error())) return std::move(begun).error();
      out.unreadable.push_back(checkpoint.id);
      continue;
    }
    BELAY_OK(operations_before(checkpoint.seq));
    const bool gap = !checkpoint.since.is_zero() &&
                     (i + 1 == newest_first.size() ||
                      newest_first[i + 1].checkpoint.id != checkpoint.since) &&
                     !BELAY_MUTANT("gaps-are-not-seen");
    BELAY_OK(add({.checkpoint = &checkpoint, .gap = gap}, historian.Of(checkpoint),
                 checkpoint.id));
  }
  BELAY_OK(operations_before(UINT64_MAX));
  std::reverse(out.rows.begin(), out.rows.end());
  out.known = historian.TakeKnown();
  out.root = historian.TakeRoot();
  return out;
}

std::vector<Author> AuthorsIn(const PathHistoryRow& row, std::string_view path) {
  const Checkpoint& checkpoint = *row.checkpoint;
  if (!row.gap) return AuthorsOf(checkpoint, path);
  std::vector<Author> out;
  // It changed in the last step too, whatever came before.
  if (std::find(checkpoint.paths.begin(), checkpoint.paths.end(), path) !=
      checkpoint.paths.end())
    out = AuthorsOf(checkpoint, path);
  out.push_back({.kind = Author::Kind::kUnknown});
  return out;
}

}  // namespace belay
