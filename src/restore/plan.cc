#include "restore/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/selection.h"
#include "core/state_rules.h"
#include "restore/chosen.h"
#include "restore/ground.h"
#include "restore/paths_internal.h"
#include "restore/rules_differ.h"

namespace belay {

namespace {

constexpr uint32_t kSetId = 06000;

std::string Joined(const std::string& dir, const std::string& name) {
  return dir.empty() ? name : dir + '/' + name;
}

// One path where now and target differ.
struct Pair {
  std::string path;
  std::optional<TreeEntry> now, target;
};

// Nothing at or below `path` is touched.
struct Barrier {
  std::string path, why;
  bool said = false;  // it is among what stays
};

class Planner {
 public:
  Planner(const PlanInput& input, const PlanOptions& options)
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
      if (!IsHeld(skipped.why))
        skipped_now_.emplace(skipped.path, SkipName(skipped.why));
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
    for (const SkippedPath& skipped : input.target.Skipped())
      if (skipped.why == Skip::kNoAttributes) attributes_unknown_.insert(skipped.path);
    if (input.target.rules)
      for (const RulesRecord::Top& top : input.target.rules->work_trees)
        nested_then_.insert(top.path);
  }

  Result<Plan> Run() {
    if (options_.partial)
      plan_.warnings.push_back(
          "this checkpoint is partial: nothing is deleted, and files may be missing "
          "from it");
    ResolveSelection(in_.store, looker_, in_.target.state.tree, selection_);
    BELAY_OK(Compare());
    std::sort(pairs_.begin(), pairs_.end(),
              [](const Pair& a, const Pair& b) { return a.path < b.path; });
    DecideRoot();
    for (const Pair& pair : pairs_) BELAY_OK(Decide(pair));
    BELAY_OK(NameSkipped());
    NameLeftOut();
    BELAY_OK(LookForIgnored());
    BELAY_OK(EmptyDirectories());
    NameUnreadable();
    BELAY_OK(NameNotHeld());
    BELAY_OK(CheckRules());
    std::sort(plan_.changes.begin(), plan_.changes.end(), ByPath);
    std::sort(plan_.uncovered.begin(), plan_.uncovered.end(), ByPath);
    BELAY_OK(CheckContent(in_.store, options_.skip_damaged, plan_));
    for (KeptPath& kept : plan_.kept)
      if (kept.why == "damaged" && !BELAY_MUTANT("damage-is-not-missed"))
        kept.wanted = true;
    std::sort(plan_.kept.begin(), plan_.kept.end(),
              [](const KeptPath& a, const KeptPath& b) { return a.path < b.path; });
    SayWhatIsMissing();
    BELAY_OK(CheckGround(in_.store.fs(), in_.root, options_, plan_));
    return std::move(plan_);
  }

 private:
  static bool ByPath(const PathChange& a, const PathChange& b) {
    return a.path < b.path;
  }

  // Nothing at or below is touched.
  void AddForeign(const AbsPath& path, std::string_view why) {
    if (!path.IsWithin(in_.root_path) || path == in_.root_path) return;
    const size_t cut = in_.root_path.is_root() ? 1 : in_.root_path.bytes().size() + 1;
    foreign_.emplace(path.bytes().substr(cut), why);
  }

  void Keep(const std::string& path, std::string why, bool wanted = false) {
    plan_.kept.push_back({path, std::move(why), wanted});
    stays_.insert(path);
  }

  // Nothing at or below `path` is touched. Where somebody chose only something below
  // it, that is named for the same reason as it comes up (Decide).
  void Bar(const std::string& path, std::string why, bool wanted = false) {
    const bool said = selection_.Has(path);
    if (said) Keep(path, why, wanted);
    barriers_.push_back({path, std::move(why), said});
  }

  // --- 1. where the trees differ, reading only subtrees that do ----------------------
  Status Compare() {
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
  const Barrier* BarrierBefore(const std::string& path) const {
    const Barrier* found = nullptr;
    for (const Barrier& barrier : barriers_) {
      const std::string& at = barrier.path;
      if (!at.empty() && path != at && !IsBelow(path, at)) continue;
      if (barrier.said) return &barrier;
      if (found == nullptr) found = &barrier;
    }
    return found;
  }
  bool BehindBarrier(const std::string& path) const {
    return BarrierBefore(path) != nullptr;
  }

  // A directory of the target that is not there; made when something below it comes.
  void AddParents(const std::string& path) {
    for (std::string dir = ParentOf(path); !dir.empty(); dir = ParentOf(dir)) {
      auto found = unasked_dirs_.find(dir);
      if (found == unasked_dirs_.end()) continue;
      plan_.changes.push_back(std::move(found->second));
      unasked_dirs_.erase(found);
    }
  }

  void Add(const std::string& path, std::optional<PathState> before,
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

  Status Decide(const Pair& pair) {
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

  // The target has what is not ours to bring back, and it is not there anyway.
  bool IsMissed(const Pair& pair, std::string_view why) {
    if (!pair.target || why == "purged") return false;
    return why != "other_root" || BELAY_MUTANT("other-root-is-missed") ||
           (selection_.Has(pair.path) && !IsAsThen(pair.path));
  }

  // All that the target has at `path` is there, exactly so; what else is there does not
  // matter. Modes and sizes first: they tell most differences without reading a file.
  bool IsAsThen(const std::string& path) {
    const Scan::TreeReader trees = TreesOf(in_.store);
    auto parsed = RelPath::Parse(path);
    if (!parsed.ok()) return false;
    auto entry = FindInTree(in_.target.state.tree, *parsed, trees);
    if (!entry.ok() || !*entry) return false;
    HashSink sink;
    for (const bool read : {false, true}) {
      const TreeVisitor same = [&](const std::string& at,
                                   const TreeEntry& then) -> Status {
        const Error differs(Errc::kConflict, at + " is another");
        BELAY_TRY(auto stat, looker_.Stat(at));
        if (!stat || (then.kind == EntryKind::kFile && stat->size != then.size) ||
            (then.kind != EntryKind::kSymlink && stat->mode != then.mode))
          return differs;
        if (!read) return Ok();
        BELAY_TRY(auto looked, looker_.Look(at, sink));
        if (!looked || looked->special ||
            !SameState(StateOf(looked->state), StateOf(then)))
          return differs;
        return Ok();
      };
      if (!same(path, **entry).ok()) return false;
      if ((*entry)->kind == EntryKind::kDirectory &&
          !WalkTree((*entry)->id, path, trees, same).ok())
        return false;
    }
    return true;
  }

  bool WasPurged(const Pair& pair) const {
    if (!pair.target) return false;
    auto lacks = [&](const ObjectId& then, const ObjectId& now) {
      return !then.is_zero() && then != now && in_.purged.Lacks(then);
    };
    const bool file = pair.target->kind == EntryKind::kFile;
    const bool is_file = pair.now && pair.now->kind == EntryKind::kFile;
    return (file && lacks(pair.target->id, is_file ? pair.now->id : ObjectId())) ||
           lacks(pair.target->xattrs, pair.now ? pair.now->xattrs : ObjectId());
  }

  Status DecideBoth(const Pair& pair) {
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
  void DecideRoot() {
    if (!selection_.HasRoot() || !in_.root.is_open() ||
        BELAY_MUTANT("forget-root-mode"))
      return;
    if (!in_.target.rules) {
      // What it was like is written with the rules, and those cannot be read.
      rules_needed_ = !in_.target.state.rules.is_zero();
      return;
    }
    PathState now = RootState(in_.now.mode, in_.now.uid, in_.now.gid);
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
  Result<bool> IsNewRepository(const std::string& path) {
    if (nested_then_.contains(path) || BELAY_MUTANT("delete-nested-repository"))
      return false;
    BELAY_TRY(auto git, looker_.Stat(path + "/.git"));
    if (!git && !nested_now_.contains(path)) return false;
    // Known from the rules of that time.
    rules_needed_ |= !in_.target.trouble.empty() && selection_.MayHaveBelow(path);
    return true;
  }

  // Attributes of a directory that could not be read then are not taken for none.
  PathState WithKnown(const std::optional<PathState>& now, PathState then,
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
  PathState WithSetId(const std::optional<PathState>& now, PathState then,
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

  Status DecideGone(const Pair& pair) {
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
  Status DecideMissing(const Pair& pair) {
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
        if (plan_.changes.size() != had)
          plan_.uncovered.push_back(plan_.changes.back());
        return Ok();
      }
    }
    if (IsDir(pair.target)) absent_.insert(pair.path);
    Add(pair.path, std::nullopt, WithSetId(std::nullopt, *pair.target, pair.path));
    return Ok();
  }

  // New since the target, and not held by a checkpoint: too large, a FIFO, a root of
  // its own. What the target left out as well is named for that (NameLeftOut).
  Status NameSkipped() {
    if (!in_.target.rules) return Ok();
    std::unordered_set<std::string> known;
    for (const Pair& pair : pairs_) known.insert(pair.path);
    for (const SkippedPath& skipped : in_.target.Skipped()) known.insert(skipped.path);
    for (const SkippedPath& skipped : in_.now.skipped)
      if (!IsHeld(skipped.why) && skipped.why != Skip::kIgnored &&
          !known.contains(skipped.path) && !stays_.contains(skipped.path) &&
          !BehindBarrier(skipped.path) && selection_.Has(skipped.path)) {
        BELAY_TRY(bool ours, OnlyTodaySkips(skipped));
        if (ours)
          BELAY_OK(TakeUncovered(skipped.path));
        else
          Keep(skipped.path, std::string(SkipName(skipped.why)));
      }
    return Ok();
  }

  // Today's max_file_size, or secrets = "skip", alone keep it from being covered, and
  // what only today's rules protect is to go.
  Result<bool> OnlyTodaySkips(const SkippedPath& skipped) {
    if (!options_.delete_ignored || options_.partial || options_.settings_unknown ||
        (skipped.why != Skip::kTooLarge && skipped.why != Skip::kSecret))
      return false;
    BELAY_TRY(StateRules::Verdict then, rules_.Ask(skipped.path, false));
    BELAY_TRY(auto stat, looker_.Stat(skipped.path));
    return then.covered && stat && stat->type == FileType::kRegular &&
           stat->size <= in_.target.rules->max_file_size;
  }

  // It goes, and is stored first.
  Status TakeUncovered(const std::string& path) {
    auto looked = looker_.Look(path, in_.sink);
    if (!looked.ok() || !*looked || (*looked)->special) {
      Keep(path, "unreadable");
      return Ok();
    }
    PathChange change{path, StateOf((*looked)->state), std::nullopt};
    plan_.uncovered.push_back(change);
    plan_.changes.push_back(std::move(change));
    return Ok();
  }

  // What the target's own list says it does not hold, whatever became of it since. What
  // was nobody's to hold (a FIFO, another root, ...) is not in question.
  void NameLeftOut() {
    for (const SkippedPath& skipped : in_.target.Skipped())
      if ((skipped.why == Skip::kTooLarge || skipped.why == Skip::kUnreadable ||
           skipped.why == Skip::kReplaced || skipped.why == Skip::kChangedLate) &&
          !stays_.contains(skipped.path) && !BehindBarrier(skipped.path) &&
          selection_.Has(skipped.path))
        Keep(skipped.path, std::string(SkipName(skipped.why)));
  }

  // --- 3. what only today's rules leave out ------------------------------------------
  // There is none unless the rules changed since.
  bool RulesMayDiffer() const {
    if (!in_.target.rules) return false;
    for (const Pair& pair : pairs_) {
      const std::string name = pair.path.substr(pair.path.rfind('/') + 1);
      if (name == ".gitignore" || name == ".belayignore") return true;
    }
    return RulesDiffer(*in_.target.rules, in_.now_rules, in_.now);
  }

  Status LookForIgnored() {
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
        BELAY_TRY(RelPath path, RelPath::Parse(at.path));
        auto dir = fs.OpenBeneath(in_.root, path, OpenMode::Directory());
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
        if (IsGitAlias(entry.name) || BehindBarrier(path) ||
            skipped_now_.contains(path))
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

  bool IsRepository(const Fd& dir, const std::string& name) {
    auto below = in_.store.fs().Open(dir, NameRef::Known(name), OpenMode::Directory());
    return below.ok() && in_.store.fs().StatAt(*below, Name::Literal(".git")).ok();
  }

  static const TreeEntry* Find(const Tree& tree, const std::string& name) {
    auto at = std::lower_bound(
        tree.entries.begin(), tree.entries.end(), name,
        [](const TreeEntry& entry, const std::string& n) { return entry.name < n; });
    return at != tree.entries.end() && at->name == name ? &*at : nullptr;
  }

  // --- 4. directories that go --------------------------------------------------------
  // From the deepest up: one goes when everything in it goes.
  Status EmptyDirectories() {
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
      Keep(path, "in_the_way", true);
    }
    return Ok();
  }

  Result<bool> BecomesEmpty(const std::string& path,
                            const std::unordered_set<std::string>& leaving) {
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    auto dir = in_.store.fs().OpenBeneath(in_.root, rel, OpenMode::Directory());
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

  // What could not be read is not part of the tree as it is now: it stays, whether or
  // not the target would have it so.
  void NameUnreadable() {
    std::unordered_set<std::string> said;
    for (const PathChange& change : plan_.changes) said.insert(change.path);
    for (const KeptPath& kept : plan_.kept) said.insert(kept.path);
    for (const SkippedPath& skipped : in_.now.skipped)
      if (skipped.why == Skip::kUnreadable && !said.contains(skipped.path) &&
          selection_.Has(skipped.path))
        Keep(skipped.path, "unreadable");
  }

  // Of what is not had at all it cannot be said that it stays; and of what is another
  // root's, where it can be had.
  void SayWhatIsMissing() {
    if (plan_.kept.empty()) return;
    std::unordered_set<std::string> not_held;
    for (const SkippedPath& skipped : in_.target.Skipped())
      not_held.insert(skipped.path);
    std::set<std::string> roots;
    for (KeptPath& kept : plan_.kept) {
      if (!kept.wanted && !not_held.contains(kept.path) && kept.why != "purged")
        continue;
      auto there = looker_.Stat(kept.path == "." ? "" : kept.path);
      kept.missing = there.ok() && !*there;
      if (!kept.wanted || kept.why != "other_root") continue;
      for (std::string at = kept.path; !at.empty(); at = ParentOf(at))
        if (foreign_.contains(at)) roots.insert(at);
    }
    for (const std::string& path : roots) {
      auto below = RelPath::Parse(path);
      if (!below.ok()) continue;
      const std::string dir = ShellWord(in_.root_path.Join(*below).bytes());
      plan_.warnings.push_back(
          EscapeForDisplay(path) +
          " is a protected directory of its own; roll back there (belay rollback REF "
          "--root " +
          dir + "), or give it up first (belay off " + dir + ") and roll back again");
    }
  }

  // Rules of that time that the plan needed and the store cannot give back: what may be
  // deleted is not known, which is damage like any other.
  Status CheckRules() {
    if (!rules_needed_) return Ok();
    const bool purged = in_.target.trouble_code == Errc::kPurged;
    if (!purged && !options_.skip_damaged && !BELAY_MUTANT("go-on-without-rules"))
      return Error(Errc::kCorrupt,
                   "the rules of that time cannot be read from the store" +
                       (in_.target.trouble.empty() ? "" : ": " + in_.target.trouble))
          .WithHint(
              "nothing was changed; bring back what can be read, and delete "
              "nothing, with --skip-damaged");
    if (!purged || selection_.HasRoot()) Keep(".", "rules_unknown", !purged);
    return Ok();
  }

  // What somebody chose by its name and neither tree has.
  Status NameNotHeld() {
    for (const std::string& named : selection_.Unused())
      if (const Barrier* barrier = BarrierBefore(named);
          barrier != nullptr && barrier->said)
        (void)selection_.Has(named);  // with the whole
    BELAY_TRY(const std::vector<NotHeld> chosen,
              CheckSelection(in_.store, looker_, in_.target, selection_));
    for (const NotHeld& one : chosen) {
      BELAY_TRY(std::string why, WhyNotHeld(one));
      if (!stays_.contains(one.path)) Keep(one.path, std::move(why));
    }
    return Ok();
  }

  Result<std::string> WhyNotHeld(const NotHeld& one) {
    if (one.left_out != Skip::kNone) return std::string(SkipName(one.left_out));
    for (std::string at = one.path; !at.empty(); at = ParentOf(at)) {
      if (auto skipped = skipped_now_.find(at); skipped != skipped_now_.end())
        return skipped->second;
      if (auto foreign = foreign_.find(at); foreign != foreign_.end())
        return std::string(foreign->second);
    }
    BELAY_TRY(StateRules::Verdict then, rules_.Ask(one.path, one.is_dir));
    return then.covered ? "ignored_now" : then.why;
  }

  const PlanInput& in_;
  const PlanOptions& options_;
  Looker looker_;
  StateRules rules_;
  SecretRules secrets_now_;
  std::unordered_set<std::string> attributes_unknown_;  // of the target
  Selection selection_;
  std::unordered_map<std::string, std::string> skipped_now_;
  std::set<std::string> nested_now_, nested_then_;

  std::vector<Pair> pairs_;
  std::vector<std::pair<std::string, Error>> damaged_;
  std::map<std::string, std::string_view> foreign_;
  std::vector<Barrier> barriers_;
  bool rules_needed_ = false;               // of the target, and they cannot be read
  std::unordered_set<std::string> absent_;  // directories that are not on disk
  std::unordered_set<std::string> stays_;
  std::map<std::string, PathChange> unasked_dirs_;
  std::map<std::string, PathState> emptied_;  // to be removed if they become empty
  std::map<std::string, PathChange> swaps_;   // directories in the place of a file
  std::unordered_set<std::string> ignored_dirs_;
  Plan plan_;
};

}  // namespace

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

}  // namespace belay
