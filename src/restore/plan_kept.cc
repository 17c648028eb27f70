// What stays, or is missing, and why.

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/paths_internal.h"
#include "restore/plan_internal.h"

namespace belay {

// The target has what is not ours to bring back, and it is not there anyway.
bool Planner::IsMissed(const Pair& pair, std::string_view why) {
  if (!pair.target || why == "purged" || why == "outside") return false;
  return why != "other_root" || BELAY_MUTANT("other-root-is-missed") ||
         (selection_.Has(pair.path) && !IsAsThen(pair.path));
}

// All that the target has at `path` is there, exactly so; what else is there does not
// matter. Modes and sizes first: they tell most differences without reading a file.
bool Planner::IsAsThen(const std::string& path) {
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

// New since the target, and not held by a checkpoint: too large, a FIFO, a root of
// its own. What the target left out as well is named for that (NameLeftOut).
Status Planner::NameSkipped() {
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
Result<bool> Planner::OnlyTodaySkips(const SkippedPath& skipped) {
  if (!options_.delete_ignored || options_.partial || options_.settings_unknown ||
      (skipped.why != Skip::kTooLarge && skipped.why != Skip::kSecret))
    return false;
  BELAY_TRY(StateRules::Verdict then, rules_.Ask(skipped.path, false));
  BELAY_TRY(auto stat, looker_.Stat(skipped.path));
  return then.covered && stat && stat->type == FileType::kRegular &&
         stat->size <= in_.target.rules->max_file_size;
}

// It goes, and is stored first.
Status Planner::TakeUncovered(const std::string& path) {
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
void Planner::NameLeftOut() {
  for (const SkippedPath& skipped : in_.target.Skipped())
    if ((skipped.why == Skip::kTooLarge || skipped.why == Skip::kUnreadable ||
         skipped.why == Skip::kReplaced || skipped.why == Skip::kChangedLate) &&
        !stays_.contains(skipped.path) && !BehindBarrier(skipped.path) &&
        selection_.Has(skipped.path))
      Keep(skipped.path, std::string(SkipName(skipped.why)));
}

// What could not be read is not part of the tree as it is now: it stays, whether or
// not the target would have it so.
void Planner::NameUnreadable() {
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
void Planner::SayWhatIsMissing() {
  if (plan_.kept.empty()) return;
  std::unordered_set<std::string> not_held;
  for (const SkippedPath& skipped : in_.target.Skipped()) not_held.insert(skipped.path);
  std::set<std::string> roots;
  for (KeptPath& kept : plan_.kept) {
    if (!kept.wanted && !not_held.contains(kept.path) && kept.why != "purged") continue;
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
Status Planner::CheckRules() {
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
Status Planner::NameNotHeld() {
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

Result<std::string> Planner::WhyNotHeld(const NotHeld& one) {
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

}  // namespace belay
