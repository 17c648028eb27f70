#include "restore/replay.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/mutant.h"
#include "restore/ground.h"
#include "restore/look.h"
#include "restore/paths_internal.h"
#include "restore/tree_cursor.h"

namespace belay {

namespace {

class Replay {
 public:
  Replay(Store& store, const Fd& root, Draft& draft, bool exact,
         const std::set<std::string>& gits, std::vector<Conflict>& conflicts)
      : store_(store),
        root_(root),
        draft_(draft),
        looker_(store.fs(), root),
        covered_(draft.tree, draft.trees),
        exact_(exact),
        gits_(gits),
        conflicts_(conflicts) {}

  Status Decide(PathChange change) {
    BELAY_TRY(auto looked, looker_.Look(change.path, draft_.sink));
    std::optional<PathState> now;
    if (looked && !looked->special) now = StateOf(looked->state);
    // The root was to be made, and is there: as good.
    if (change.path.empty() && !change.before) return Ok();
    const bool special = looked && looked->special;
    if (!special && SameState(now, change.after)) return Ok();
    // A directory counts by being one: what is in it has changes of its own.
    const bool expected = !special && (SameState(now, change.before) ||
                                       (IsDir(now) && IsDir(change.before)));
    if (!expected && (special || !exact_) &&
        !BELAY_MUTANT("undo-without-conflict-check")) {
      conflicts_.push_back({change.path, !now && !special ? "is gone"
                                         : !change.before ? "is there again"
                                                          : "changed since"});
      return Ok();
    }
    change.before = now;
    return Add(std::move(change));
  }

  // A directory that gives way to a file, or to nothing where it was not expected, must
  // be empty by then.
  Status EmptyDirectories(const std::vector<PathChange>& wanted) {
    std::unordered_set<std::string> was_dir;
    for (const PathChange& change : wanted)
      if (IsDir(change.before)) was_dir.insert(change.path);
    std::vector<std::string> giving_way;
    std::unordered_set<std::string> going;
    for (const PathChange& change : plan_.changes) {
      if (!change.after) going.insert(change.path);
      if (IsDir(change.before) && !IsDir(change.after) && !change.path.empty() &&
          (change.after || !was_dir.contains(change.path)))
        giving_way.push_back(change.path);
    }
    for (const std::string& dir : giving_way) BELAY_OK(Empty(dir, going));
    return Ok();
  }

  // A root that is to go must be empty by then; else it stays.
  Status KeepRootIfNeeded() {
    if (plan_.changes.empty()) return Ok();
    const PathChange& first = plan_.changes.front();
    if (!first.path.empty() || first.after) return Ok();
    std::unordered_set<std::string> going;
    for (const PathChange& change : plan_.changes)
      if (!change.after) going.insert(change.path);
    BELAY_TRY(auto listed, store_.fs().List(root_));
    if (std::all_of(listed.begin(), listed.end(), [&](const DirEntry& entry) {
          return going.contains(entry.name) || gits_.contains(entry.name);
        }))
      return Ok();
    plan_.changes.erase(plan_.changes.begin());
    plan_.kept.push_back({".", "not_empty"});
    return Ok();
  }

  // The directory that a path comes back to may have gone since, or become a file.
  Status BringParents() {
    std::unordered_map<std::string, bool> is_dir;  // what is planned
    for (const PathChange& change : plan_.changes)
      is_dir[change.path] = IsDir(change.after);
    std::vector<PathChange> parents;
    for (const PathChange& change : plan_.changes) {
      if (!change.after) continue;
      std::string dir = change.path;
      std::optional<PathState> made;  // all of them like the first that is there
      for (size_t slash; (slash = dir.rfind('/')) != std::string::npos;) {
        dir.resize(slash);
        if (is_dir.contains(dir)) break;
        BELAY_TRY(auto there, looker_.Look(dir, draft_.sink));
        std::optional<PathState> now;
        if (there && !there->special) now = StateOf(there->state);
        if (IsDir(now)) break;
        is_dir[dir] = true;
        if (there && (there->special || !exact_)) {
          conflicts_.push_back({dir, "is in the way"});
          break;
        }
        if (!made) {
          BELAY_TRY(made, LikeParentOf(dir));
        }
        parents.push_back({dir, std::move(now), made});
      }
    }
    for (PathChange& parent : parents) BELAY_OK(Add(std::move(parent)));
    return Ok();
  }

  Plan TakePlan() {
    auto by_path = [](const PathChange& a, const PathChange& b) {
      return a.path < b.path;
    };
    std::sort(plan_.changes.begin(), plan_.changes.end(), by_path);
    std::sort(plan_.uncovered.begin(), plan_.uncovered.end(), by_path);
    return std::move(plan_);
  }

 private:
  // Nobody wrote down what it was like: as the nearest one above it that is there.
  Result<PathState> LikeParentOf(std::string dir) {
    PathState made;
    made.kind = EntryKind::kDirectory;
    std::optional<FileStat> above;
    for (size_t slash; !above && (slash = dir.rfind('/')) != std::string::npos;) {
      dir.resize(slash);
      BELAY_TRY(above, looker_.Stat(dir));
      if (above && above->type != FileType::kDirectory) above.reset();
    }
    if (!above) {
      BELAY_TRY(above, store_.fs().Stat(root_));
    }
    made.mode = above->mode & 0777;
    made.uid = above->uid;
    made.gid = above->gid;
    return made;
  }

  Status Add(PathChange change) {
    if (change.before && !change.path.empty()) {
      BELAY_TRY(auto covered, covered_.Find(change.path));
      if ((!covered || !SameState(StateOf(*covered), change.before)) &&
          !BELAY_MUTANT("undo-forgets-uncovered"))
        plan_.uncovered.push_back(change);
    }
    plan_.changes.push_back(std::move(change));
    return Ok();
  }

  // What is below `top` and does not go by itself.
  Status Empty(const std::string& top, std::unordered_set<std::string>& going) {
    std::vector<std::string> waiting{top};
    while (!waiting.empty()) {
      const std::string dir = std::move(waiting.back());
      waiting.pop_back();
      auto opened = looker_.Open(dir, OpenMode::Directory());
      auto listed = opened.ok()
                        ? store_.fs().List(*opened)
                        : Result<std::vector<DirEntry>>(std::move(opened).error());
      if (!listed.ok()) {
        conflicts_.push_back({dir, "cannot be looked into"});
        continue;
      }
      for (const DirEntry& entry : *listed) {
        const std::string child = dir + "/" + entry.name;
        if (gits_.contains(child)) continue;
        auto looked = looker_.Look(child, draft_.sink);
        if (looked.ok() && !*looked) continue;
        const bool known = going.contains(child);
        if (!known && !exact_ && !BELAY_MUTANT("undo-sweeps-directories")) {
          conflicts_.push_back({child, "is in the way"});
          continue;
        }
        if (!looked.ok() || (*looked)->special || (*looked)->stat.mount_root ||
            IsGitAlias(entry.name)) {
          conflicts_.push_back({child, "is in the way, and cannot be stored"});
          continue;
        }
        const PathState state = StateOf((*looked)->state);
        if (state.kind == EntryKind::kDirectory) waiting.push_back(child);
        if (!known && going.insert(child).second)
          BELAY_OK(Add({child, state, std::nullopt}));
      }
    }
    return Ok();
  }

  Store& store_;
  const Fd& root_;
  Draft& draft_;
  Looker looker_;
  TreeCursor covered_;  // by the tree as it is now
  const bool exact_;
  const std::set<std::string>& gits_;
  std::vector<Conflict>& conflicts_;
  Plan plan_;
};

}  // namespace

Result<Plan> PlanReplay(Store& store, const Fd& root, Draft& draft,
                        std::vector<PathChange> wanted, const PlanOptions& options,
                        bool exact, const std::set<std::string>& gits,
                        std::vector<Conflict>& conflicts) {
  Replay replay(store, root, draft, exact, gits, conflicts);
  for (const PathChange& change : wanted) {
    if (options.stop && options.stop()) return Error(Errc::kRefused, "stopped");
    BELAY_OK(replay.Decide(change));
  }
  BELAY_OK(replay.EmptyDirectories(wanted));
  BELAY_OK(replay.KeepRootIfNeeded());
  BELAY_OK(replay.BringParents());
  Plan plan = replay.TakePlan();
  if (!conflicts.empty()) {
    std::sort(conflicts.begin(), conflicts.end(),
              [](const Conflict& a, const Conflict& b) { return a.path < b.path; });
    return plan;
  }
  BELAY_OK(CheckContent(store, options, plan));
  for (KeptPath& kept : plan.kept) {
    if (kept.why != "damaged" && kept.why != "lost") continue;
    kept.wanted = !BELAY_MUTANT("undo-skips-in-silence");
    if (!kept.wanted) continue;
    Looker looker(store.fs(), root);
    auto there = looker.Stat(kept.path);
    kept.missing = there.ok() && !*there;
  }
  BELAY_OK(CheckGround(store.fs(), root, options, plan));
  return plan;
}

}  // namespace belay
