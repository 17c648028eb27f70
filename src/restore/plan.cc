#include "restore/plan.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/ground.h"
#include "restore/paths_internal.h"
#include "restore/plan_internal.h"

namespace belay {

namespace {}  // namespace

Planner::Planner(const PlanInput& input, const PlanOptions& options)
    : in_(input),
      options_(options),
      looker_(input.store.fs(), input.root),
      rules_(input.target, TreesOf(input.store),
             [this](const ObjectId& id) {
               return in_.store.ReadContentBytes(id, kMaxPatternFile);
             }),
      secrets_now_(input.now_rules),
      selection_(options.select) {
  for (const SkippedPath& skipped : input.now.skipped)
    if (!IsHeld(skipped.why)) skipped_now_.emplace(skipped.path, SkipName(skipped.why));
  for (const ScanSummary::AtPath& top : input.now.work_trees)
    if (!top.path.empty()) nested_now_.insert(top.path);
  // A git directory need not be called .git: `gitdir:` leads anywhere.
  for (const ScanSummary::AtPath& top : input.now.work_trees) {
    if (!top.facts.repository) continue;
    for (const AbsPath& dir :
         {top.facts.repository->git_dir, top.facts.repository->common_dir})
      AddForeign(dir, "git_dir");
  }
  for (const AbsPath& other : input.other_roots) AddForeign(other, "other_root");
  for (const std::string& path : input.purged.paths) foreign_.emplace(path, "purged");
  if (!BELAY_MUTANT("outside-is-not-kept"))
    for (const std::string& path : options.keep) foreign_.emplace(path, "outside");
  for (const SkippedPath& skipped : input.target.Skipped())
    if (skipped.why == Skip::kNoAttributes) attributes_unknown_.insert(skipped.path);
  if (input.target.rules)
    for (const RulesRecord::Top& top : input.target.rules->work_trees)
      nested_then_.insert(top.path);
}

Result<Plan> Planner::Run() {
  if (options_.partial)
    plan_.warnings.push_back(
        "this checkpoint is partial: nothing is deleted, and files may be missing "
        "from it");
  ResolveSelection(in_.store, looker_, in_.target.state.tree, selection_);
  BELAY_OK(Compare());
  std::sort(pairs_.begin(), pairs_.end(),
            [](const Pair& a, const Pair& b) { return a.path < b.path; });
  DecideRoot();
  for (const Pair& pair : pairs_) {
    if (options_.stop && options_.stop()) return Error(Errc::kRefused, "stopped");
    BELAY_OK(Decide(pair));
  }
  BELAY_OK(NameSkipped());
  NameLeftOut();
  BELAY_OK(LookForIgnored());
  BELAY_OK(EmptyDirectories());
  NameUnreadable();
  BELAY_OK(NameNotHeld());
  BELAY_OK(CheckRules());
  std::sort(plan_.changes.begin(), plan_.changes.end(), ByPath);
  std::sort(plan_.uncovered.begin(), plan_.uncovered.end(), ByPath);
  BELAY_OK(CheckContent(in_.store, options_, plan_));
  for (KeptPath& kept : plan_.kept)
    if (kept.why == "damaged" || kept.why == "lost")
      kept.wanted = !BELAY_MUTANT("damage-is-not-missed");
  std::sort(plan_.kept.begin(), plan_.kept.end(),
            [](const KeptPath& a, const KeptPath& b) { return a.path < b.path; });
  SayWhatIsMissing();
  BELAY_OK(CheckGround(in_.store.fs(), in_.root, options_, plan_));
  return std::move(plan_);
}

bool Planner::ByPath(const PathChange& a, const PathChange& b) {
  return a.path < b.path;
}

// Nothing at or below is touched.
void Planner::AddForeign(const AbsPath& path, std::string_view why) {
  if (!path.IsWithin(in_.root_path) || path == in_.root_path) return;
  const size_t cut = in_.root_path.is_root() ? 1 : in_.root_path.bytes().size() + 1;
  foreign_.emplace(path.bytes().substr(cut), why);
}

void Planner::Keep(const std::string& path, std::string why, bool wanted) {
  plan_.kept.push_back({path, std::move(why), wanted});
  stays_.insert(path);
}

// Nothing at or below `path` is touched. Where somebody chose only something below
// it, that is named for the same reason as it comes up (Decide).
void Planner::Bar(const std::string& path, std::string why, bool wanted) {
  const bool said = selection_.Has(path);
  if (said) Keep(path, why, wanted);
  barriers_.push_back({path, std::move(why), said});
}

// --- 1. where the trees differ, reading only subtrees that do ----------------------
Status Planner::Compare() {
  struct Both {
    std::string path;
    ObjectId now, target;  // zero: not there
  };
  std::vector<Both> waiting{{"", in_.now_tree, in_.target.state.tree}};
  while (!waiting.empty()) {
    Both both = std::move(waiting.back());
    waiting.pop_back();
    if (both.now == both.target || !selection_.MayHaveBelow(both.path)) continue;
    Tree now, target;
    if (!both.now.is_zero()) {
      BELAY_TRY(now, in_.now_trees(both.now));
    }
    if (!both.target.is_zero()) {
      auto read = in_.store.GetTree(both.target);
      if (!read.ok()) {
        // What was in it is not known: nothing below may be deleted or changed.
        damaged_.push_back({both.path, read.error()});
        continue;
      }
      target = std::move(*read);
    }
    auto a = now.entries.begin();
    auto b = target.entries.begin();
    while (a != now.entries.end() || b != target.entries.end()) {
      const bool only_now =
          b == target.entries.end() || (a != now.entries.end() && a->name < b->name);
      const bool only_target =
          !only_now && (a == now.entries.end() || b->name < a->name);
      Pair pair;
      if (!only_target) pair.now = *a++;
      if (!only_now) pair.target = *b++;
      pair.path = Joined(both.path, pair.now ? pair.now->name : pair.target->name);
      if (pair.now && pair.target && *pair.now == *pair.target) continue;
      const bool now_dir = pair.now && pair.now->kind == EntryKind::kDirectory;
      const bool then_dir = pair.target && pair.target->kind == EntryKind::kDirectory;
      if (now_dir || then_dir)
        waiting.push_back({pair.path, now_dir ? pair.now->id : ObjectId(),
                           then_dir ? pair.target->id : ObjectId()});
      if (pair.now) pair.now = StateOf(*pair.now);
      if (pair.target) pair.target = StateOf(*pair.target);
      pairs_.push_back(std::move(pair));
    }
  }
  if (damaged_.empty()) return Ok();
  if (const auto& [path, error] = damaged_.front();
      path.empty() || !options_.skip_damaged) {
    const Errc code = error.code == Errc::kPurged ? Errc::kPurged : Errc::kCorrupt;
    // Without its first directory there is no rest.
    if (path.empty())
      return Error(code,
                   "nothing of the checkpoint's files can be read from the "
                   "store: " +
                       error.what)
          .WithHint(
              "nothing was changed; see what is damaged, and which checkpoints "
              "are not: belay verify --read-data");
    return Error(code, "the directory " + EscapeForDisplay(path) +
                           " cannot be read from the store: " + error.what)
        .WithHint("nothing was changed; restore the rest with --skip-damaged");
  }
  for (const auto& [path, error] : damaged_) {
    const char* why = error.code == Errc::kPurged ? "purged" : "damaged";
    Keep(path, why);
    barriers_.push_back({path, why, true});
  }
  return Ok();
}

// --- 2. what to do about each ------------------------------------------------------
// One that was named, if there is any.
const Planner::Barrier* Planner::BarrierBefore(const std::string& path) const {
  const Barrier* found = nullptr;
  for (const Barrier& barrier : barriers_) {
    const std::string& at = barrier.path;
    if (!at.empty() && path != at && !IsBelow(path, at)) continue;
    if (barrier.said) return &barrier;
    if (found == nullptr) found = &barrier;
  }
  return found;
}

bool Planner::BehindBarrier(const std::string& path) const {
  return BarrierBefore(path) != nullptr;
}

// A directory of the target that is not there; made when something below it comes.
void Planner::AddParents(const std::string& path) {
  for (std::string dir = ParentOf(path); !dir.empty(); dir = ParentOf(dir)) {
    auto found = unasked_dirs_.find(dir);
    // Those above it are there, or were taken along with it.
    if (found == unasked_dirs_.end()) return;
    plan_.changes.push_back(std::move(found->second));
    unasked_dirs_.erase(found);
  }
}

void Planner::Add(const std::string& path, std::optional<PathState> before,
                  std::optional<PathState> after) {
  if (SameState(before, after)) return;
  PathChange change{path, std::move(before), std::move(after)};
  if (!path.empty() && !selection_.Has(path)) {
    if (IsDir(change.after) && !IsDir(change.before))
      unasked_dirs_.emplace(path, std::move(change));
    return;
  }
  if (change.after && !path.empty()) AddParents(path);
  plan_.changes.push_back(std::move(change));
}

Status Planner::Decide(const Pair& pair) {
  (void)selection_.Has(pair.path);
  if (const Barrier* barrier = BarrierBefore(pair.path)) {
    stays_.insert(pair.path);
    if (!barrier->said && !BELAY_MUTANT("forget-chosen-below"))
      Bar(pair.path, barrier->why, IsMissed(pair, barrier->why));
    return Ok();
  }
  if (auto foreign = foreign_.find(pair.path); foreign != foreign_.end()) {
    Bar(pair.path, std::string(foreign->second), IsMissed(pair, foreign->second));
    return Ok();
  }
  // Nothing takes the place of what is there now: what the target had is not known.
  if (WasPurged(pair)) {
    Bar(pair.path, "purged");
    return Ok();
  }
  if (pair.now && pair.target) return DecideBoth(pair);
  if (pair.now) return DecideGone(pair);
  return DecideMissing(pair);
}

bool Planner::WasPurged(const Pair& pair) const {
  if (!pair.target) return false;
  auto lacks = [&](const ObjectId& then, const ObjectId& now) {
    return !then.is_zero() && then != now && in_.purged.Lacks(then);
  };
  const bool file = pair.target->kind == EntryKind::kFile;
  const bool is_file = pair.now && pair.now->kind == EntryKind::kFile;
  return (file && lacks(pair.target->id, is_file ? pair.now->id : ObjectId())) ||
         lacks(pair.target->xattrs, pair.now ? pair.now->xattrs : ObjectId());
}

Status Planner::DecideBoth(const Pair& pair) {
  const bool now_dir = IsDir(pair.now), then_dir = IsDir(pair.target);
  if (now_dir && !then_dir) {
    // Only once the directory is known to become empty.
    swaps_.emplace(pair.path, PathChange{pair.path, pair.now, pair.target});
    return Ok();
  }
  if (now_dir && then_dir) {
    BELAY_TRY(bool nested, IsNewRepository(pair.path));
    if (nested) {
      Bar(pair.path, "nested_repository", true);
      return Ok();
    }
  }
  Add(pair.path, pair.now, WithSetId(pair.now, *pair.target, pair.path));
  return Ok();
}

// The directory itself: who made it private, or read-only, made that part of a state.
void Planner::DecideRoot() {
  if (!selection_.HasRoot() || !in_.root.is_open() || BELAY_MUTANT("forget-root-mode"))
    return;
  if (!in_.target.rules) {
    // What it was like is written with the rules, and those cannot be read.
    rules_needed_ = !in_.target.state.rules.is_zero();
    return;
  }
  PathState now = RootState(in_.now.mode, in_.now.uid, in_.now.gid);
  if (foreign_.contains(".")) {
    Keep(".", "outside");
    return;
  }
  const RulesRecord& rules = *in_.target.rules;
  PathState then = RootState(rules.mode, rules.uid, rules.gid);
  if (options_.uid != 0) {
    // Nobody but root gives it away, nobody but its owner changes it.
    then.uid = now.uid;
    if (std::find(options_.groups.begin(), options_.groups.end(), then.gid) ==
        options_.groups.end())
      then.gid = now.gid;
    if (now.uid != options_.uid) {
      if (then.mode != now.mode) Keep(".", "other_owner", true);
      return;
    }
  }
  Add("", now, then);
}

// A repository that the target did not have: it stays whole. Also one that git would
// not open: somebody's history may still be in it.
Result<bool> Planner::IsNewRepository(const std::string& path) {
  if (nested_then_.contains(path) || BELAY_MUTANT("delete-nested-repository"))
    return false;
  BELAY_TRY(auto git, looker_.Stat(path + "/.git"));
  if (!git && !nested_now_.contains(path)) return false;
  // Known from the rules of that time.
  rules_needed_ |= !in_.target.trouble.empty() && selection_.MayHaveBelow(path);
  return true;
}

// Attributes of a directory that could not be read then are not taken for none.
PathState Planner::WithKnown(const std::optional<PathState>& now, PathState then,
                             const std::string& path) {
  if (!attributes_unknown_.contains(path)) return then;
  if (!IsDir(now)) {
    if (selection_.Has(path))
      plan_.warnings.push_back(EscapeForDisplay(path) +
                               " comes back with the extended attributes that were "
                               "known last: they could not be read then");
    return then;
  }
  if (now->xattrs == then.xattrs) return then;
  then.xattrs = now->xattrs;
  if (selection_.Has(path)) Keep(path, std::string(SkipName(Skip::kNoAttributes)));
  return then;
}

// setuid and setgid only where the file on disk has them: a rollback gives no rights.
PathState Planner::WithSetId(const std::optional<PathState>& now, PathState then,
                             const std::string& path) {
  if (then.kind == EntryKind::kDirectory) return WithKnown(now, then, path);
  if (then.kind != EntryKind::kFile) return then;
  const uint32_t had = now && now->kind == EntryKind::kFile ? now->mode & kSetId : 0;
  const uint32_t lost = then.mode & kSetId & ~had;
  if (lost == 0 || BELAY_MUTANT("give-setuid")) return then;
  then.mode &= ~lost;
  if (!selection_.Has(path)) return then;
  if (SameState(now, then)) Keep(path, "setid_not_given");
  plan_.warnings.push_back(
      EscapeForDisplay(path) + (SameState(now, then) ? " stays" : " comes back") +
      " without setuid/setgid: a rollback gives no rights that it does not have now");
  return then;
}

Status Planner::DecideGone(const Pair& pair) {
  const bool is_dir = IsDir(pair.now);
  const bool partial = options_.partial && !BELAY_MUTANT("partial-deletes");
  if (partial || options_.settings_unknown) {
    if (!is_dir && selection_.Has(pair.path))
      Keep(pair.path, partial ? "partial" : "settings_unknown");
    stays_.insert(pair.path);
    return Ok();
  }
  if (is_dir) {
    BELAY_TRY(bool nested, IsNewRepository(pair.path));
    if (nested) {
      Bar(pair.path, "nested_repository");
      return Ok();
    }
  }
  BELAY_TRY(StateRules::Verdict then, rules_.Ask(pair.path, is_dir));
  rules_needed_ |= then.damaged && selection_.Has(pair.path);
  if (BELAY_MUTANT("trust-todays-rules-alone")) then.covered = true;
  if (!then.covered) {
    if (selection_.Has(pair.path)) Keep(pair.path, then.why);
    stays_.insert(pair.path);
    // Below it each path is asked for itself: a tracked or protected one may have
    // been covered.
    return Ok();
  }
  if (is_dir) {
    emptied_.emplace(pair.path, *pair.now);
    return Ok();
  }
  if (!options_.delete_ignored && !BELAY_MUTANT("delete-new-secrets") &&
      (then.secret || secrets_now_.IsSecret(pair.path))) {
    if (selection_.Has(pair.path)) Keep(pair.path, "secret");
    stays_.insert(pair.path);
    return Ok();
  }
  if (!selection_.Has(pair.path)) {
    stays_.insert(pair.path);
    return Ok();
  }
  Add(pair.path, pair.now, std::nullopt);
  return Ok();
}

// The target has it, the tree as it was scanned does not: it is gone, or there and
// not covered.
Status Planner::DecideMissing(const Pair& pair) {
  const std::string parent = ParentOf(pair.path);
  const bool parent_absent = absent_.contains(parent);
  if (!parent_absent) {
    if (auto skipped = skipped_now_.find(pair.path);
        skipped != skipped_now_.end() &&
        (skipped->second == "other_root" || skipped->second == "other_mount" ||
         skipped->second == "git_dir" || skipped->second == "special")) {
      Bar(pair.path, skipped->second, true);
      return Ok();
    }
    auto looked = looker_.Look(pair.path, in_.sink);
    if (!looked.ok()) {
      if (looked.error().code != Errc::kRefused) return std::move(looked).error();
      Bar(pair.path, "unreadable", true);
      return Ok();
    }
    if (*looked) {
      Looked& there = **looked;
      if (there.special || there.stat.mount_root) {
        Bar(pair.path, there.special ? "special" : "other_mount", true);
        return Ok();
      }
      PathState before = StateOf(there.state);
      if (IsDir(before) && !IsDir(pair.target)) {
        swaps_.emplace(pair.path, PathChange{pair.path, before, pair.target});
        return Ok();
      }
      PathState after = WithSetId(before, *pair.target, pair.path);
      const size_t had = plan_.changes.size();
      if (!IsDir(before) && IsDir(after)) absent_.insert(pair.path);
      Add(pair.path, before, after);
      if (plan_.changes.size() != had) plan_.uncovered.push_back(plan_.changes.back());
      return Ok();
    }
  }
  if (IsDir(pair.target)) absent_.insert(pair.path);
  Add(pair.path, std::nullopt, WithSetId(std::nullopt, *pair.target, pair.path));
  return Ok();
}

Result<Plan> MakePlan(const PlanInput& input, const PlanOptions& options) {
  return Planner(input, options).Run();
}

std::vector<Step> StepsOf(const std::vector<PathChange>& changes) {
  std::vector<Step> steps;
  for (const PathChange& change : changes) {
    const auto& [path, before, after] = change;
    const bool was_dir = IsDir(before), is_dir = IsDir(after);
    if (before && (!after || was_dir != is_dir))
      steps.push_back({was_dir ? "rmdir" : "delete", &change});
    if (!after) continue;
    if (before && SameContent(*before, *after))
      steps.push_back({"chmod", &change});
    else if (is_dir)
      steps.push_back({"mkdir", &change});
    else if (after->kind == EntryKind::kSymlink)
      steps.push_back({"symlink", &change});
    else
      steps.push_back({before && !was_dir ? "write" : "create", &change});
  }
  return steps;
}

bool Plan::moves_nothing() const {
  return changes.empty() && external.empty() &&
         std::ranges::all_of(
             git, [](const GitPlan& plan) { return plan.move.changes.empty(); });
}

std::vector<PathChange> ChangesIn(const std::vector<ExternalMove>& external) {
  std::vector<PathChange> out;
  for (const ExternalMove& move : external)
    for (PathChange change : move.changes) {
      change.path = (move.dir == "/" ? "" : move.dir) + "/" + change.path;
      out.push_back(std::move(change));
    }
  std::ranges::sort(out, {}, &PathChange::path);
  return out;
}

}  // namespace belay
