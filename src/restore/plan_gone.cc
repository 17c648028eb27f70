// What only today's rules leave out, and directories that go.

#include <algorithm>

#include "base/mutant.h"
#include "restore/paths_internal.h"
#include "restore/plan_internal.h"
#include "restore/rules_differ.h"

namespace belay {

// --- 3. what only today's rules leave out ------------------------------------------
// There is none unless the rules changed since.
bool Planner::RulesMayDiffer() const {
  if (!in_.target.rules) return false;
  for (const Pair& pair : pairs_) {
    const std::string name = pair.path.substr(pair.path.rfind('/') + 1);
    if (name == ".gitignore" || name == ".belayignore") return true;
  }
  return RulesDiffer(*in_.target.rules, in_.now_rules, in_.now);
}

Status Planner::LookForIgnored() {
  if (options_.partial || options_.settings_unknown || !in_.root.is_open() ||
      !RulesMayDiffer())
    return Ok();
  struct Waiting {
    std::string path;
    std::optional<ObjectId> now, target;  // none: the directory is not in that tree
  };
  std::vector<Waiting> waiting{{"", in_.now_tree, in_.target.state.tree}};
  Fs& fs = in_.store.fs();
  while (!waiting.empty()) {
    Waiting at = std::move(waiting.back());
    waiting.pop_back();
    Fd opened;
    if (!at.path.empty()) {
      auto dir = looker_.Open(at.path, OpenMode::Directory());
      if (!dir.ok()) continue;  // cannot be looked into: stays
      opened = std::move(*dir);
    }
    const Fd& dir = at.path.empty() ? in_.root : opened;
    Tree now, target;
    if (at.now) {
      BELAY_TRY(now, in_.now_trees(*at.now));
    }
    if (at.target) {
      auto read = in_.store.GetTree(*at.target);
      if (!read.ok()) continue;  // said already
      target = std::move(*read);
    }
    auto listed = fs.List(dir);
    if (!listed.ok()) continue;
    for (const DirEntry& entry : *listed) {
      const std::string path = Joined(at.path, entry.name);
      if (IsGitAlias(entry.name) || BehindBarrier(path) || skipped_now_.contains(path))
        continue;
      const TreeEntry* in_now = Find(now, entry.name);
      const TreeEntry* in_target = Find(target, entry.name);
      auto stat = fs.StatAt(dir, NameRef::Known(entry.name));
      if (!stat.ok() || stat->mount_root) continue;
      if (stat->type == FileType::kDirectory) {
        const bool was = in_target && in_target->kind == EntryKind::kDirectory;
        const bool is = in_now && in_now->kind == EntryKind::kDirectory;
        if (!is && !was) {
          if (IsRepository(dir, entry.name)) continue;
          BELAY_TRY(StateRules::Verdict then, rules_.Ask(path, true));
          if (!then.covered) continue;
        }
        waiting.push_back({path, is ? std::optional(in_now->id) : std::nullopt,
                           was ? std::optional(in_target->id) : std::nullopt});
        if (!is && !was && options_.delete_ignored) {
          auto looked = looker_.Look(path, in_.sink);
          if (looked.ok() && *looked && !(*looked)->special)
            emptied_.emplace(path, StateOf((*looked)->state));
          ignored_dirs_.insert(path);
        }
        continue;
      }
      if (in_now != nullptr || in_target != nullptr) continue;
      if (stat->type != FileType::kRegular && stat->type != FileType::kSymlink)
        continue;
      if (!selection_.Has(path)) continue;
      BELAY_TRY(StateRules::Verdict then, rules_.Ask(path, false));
      if (!then.covered) continue;
      if (!options_.delete_ignored) {
        Keep(path, "ignored_now");
        continue;
      }
      BELAY_OK(TakeUncovered(path));
    }
  }
  return Ok();
}

bool Planner::IsRepository(const Fd& dir, const std::string& name) {
  auto below = in_.store.fs().Open(dir, NameRef::Known(name), OpenMode::Directory());
  return below.ok() && in_.store.fs().StatAt(*below, Name::Literal(".git")).ok();
}

const TreeEntry* Planner::Find(const Tree& tree, const std::string& name) {
  auto at = std::lower_bound(
      tree.entries.begin(), tree.entries.end(), name,
      [](const TreeEntry& entry, const std::string& n) { return entry.name < n; });
  return at != tree.entries.end() && at->name == name ? &*at : nullptr;
}

// --- 4. directories that go --------------------------------------------------------
// From the deepest up: one goes when everything in it goes.
Status Planner::EmptyDirectories() {
  std::map<std::string, std::optional<PathState>, std::greater<>> going;  // after
  for (const auto& [path, state] : emptied_) going[path] = std::nullopt;
  for (const auto& [path, change] : swaps_) going[path] = change.after;
  std::unordered_set<std::string> leaving;
  for (const PathChange& change : plan_.changes)
    if (!change.after) leaving.insert(change.path);
  for (const auto& [path, after] : going) {
    BELAY_TRY(bool empty, BecomesEmpty(path, leaving));
    if (empty && selection_.Has(path)) {
      const bool swap = after.has_value();
      PathState before = swap ? *swaps_.at(path).before : emptied_.at(path);
      PathChange change{path, before, after};
      if (swap) {
        change.after = WithSetId(std::nullopt, *after, path);
        AddParents(path);
      } else {
        leaving.insert(path);
      }
      if (ignored_dirs_.contains(path)) plan_.uncovered.push_back(change);
      plan_.changes.push_back(std::move(change));
      continue;
    }
    if (!after || !selection_.Has(path)) continue;
    // The target has a file here, and the directory cannot go: then nothing in it
    // goes either.
    const std::string& dir = path;  // clang 14 captures no structured binding
    std::erase_if(plan_.changes,
                  [&](const PathChange& c) { return IsBelow(c.path, dir); });
    // What others changed in it may be all that is left of it.
    bool theirs = false, other = BELAY_MUTANT("others-are-not-covered");
    for (const KeptPath& kept : plan_.kept)
      if (IsBelow(kept.path, dir)) (kept.why == "outside" ? theirs : other) = true;
    Keep(path, theirs && !other ? "others_in_it" : "in_the_way", true);
  }
  return Ok();
}

Result<bool> Planner::BecomesEmpty(const std::string& path,
                                   const std::unordered_set<std::string>& leaving) {
  auto dir = looker_.Open(path, OpenMode::Directory());
  if (!dir.ok() && IsAbsence(dir.error())) return true;
  auto listed = dir.ok() ? in_.store.fs().List(*dir)
                         : Result<std::vector<DirEntry>>(std::move(dir).error());
  if (!listed.ok()) {  // what is in it cannot be known
    if (selection_.Has(path)) Keep(path, "unreadable");
    return false;
  }
  bool empty = true;
  for (const DirEntry& entry : *listed) {
    const std::string child = Joined(path, entry.name);
    if (leaving.contains(child)) continue;
    empty = false;
    // Say what holds the directory, unless that was said of the thing itself.
    if (selection_.Has(path) && !stays_.contains(child) && !emptied_.contains(child))
      Keep(child, "not_covered");
  }
  return empty;
}

}  // namespace belay
