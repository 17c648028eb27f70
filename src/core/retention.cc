#include "core/retention.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/mutant.h"
#include "core/annotate.h"
#include "core/hand_on.h"
#include "core/interrupted.h"
#include "core/space.h"
#include "store/batch_writer.h"
#include "store/gc.h"
#include "store/usage.h"

namespace belay {

namespace {

// However old: after a long absence, or a clock that was wrong for a while, there is
// still something to go back to.
constexpr size_t kNewest = 10;
// A checkpoint of another root takes this long at most, as a rule.
constexpr int64_t kPatienceMs = 1000;

// The newest operations, and those they undid or redid; and as many of what can still
// be undone, and redone: going back step by step takes nothing from the steps before.
std::unordered_set<RecordId> Horizon(std::span<const Operation> oldest_first,
                                     int64_t undo) {
  std::unordered_set<RecordId> inside;
  auto take_newest = [&](std::span<const Operation> from) {
    const size_t count =
        std::min(from.size(), static_cast<size_t>(std::max<int64_t>(undo, 0)));
    for (const Operation& operation : from.last(count)) {
      inside.insert(operation.id);
      if (operation.of) inside.insert(*operation.of);
    }
  };
  take_newest(oldest_first);
  const UndoStacks stacks = StacksOf({oldest_first.begin(), oldest_first.end()});
  if (!BELAY_MUTANT("undo-eats-the-horizon")) take_newest(stacks.undo);
  take_newest(stacks.redo);
  // What an undo took back may itself be an undo out of order.
  for (auto at = oldest_first.rbegin(); at != oldest_first.rend(); ++at)
    if (inside.contains(at->id) && at->of) inside.insert(*at->of);
  return inside;
}

using TurnKey = std::pair<std::string_view, uint64_t>;
std::optional<TurnKey> KeyOfTurn(const Checkpoint& checkpoint) {
  if (!checkpoint.session || !checkpoint.turn) return std::nullopt;
  return TurnKey(*checkpoint.session, *checkpoint.turn);
}

// Of turns of which one stays that may be in the middle: the last that a call of the
// turn made, and the last at all. Without them that one would be the end of the turn,
// and a conversation that goes back with the files would know of what they do not.
std::vector<RecordId> WhatEndsTheTurns(std::span<const CatalogEntry> newest_first,
                                       const std::unordered_set<RecordId>& stay) {
  std::vector<RecordId> out;
  if (BELAY_MUTANT("half-a-turn-looks-whole")) return out;
  std::map<TurnKey, RecordId> last_call, last;
  for (const CatalogEntry& entry : newest_first) {
    const Checkpoint& c = entry.checkpoint;
    const auto turn = KeyOfTurn(c);
    if (!turn) continue;
    if (c.kind == CheckpointKind::kAuto) {
      last.emplace(*turn, c.id);
      if (c.tool_name) last_call.emplace(*turn, c.id);
    }
    const bool in_the_middle =
        c.kind == CheckpointKind::kManual ||
        (c.kind == CheckpointKind::kAuto && c.tool_name.has_value());
    if (!in_the_middle || !stay.contains(c.id)) continue;
    for (const auto* ends : {&last_call, &last})
      if (const auto at = ends->find(*turn); at != ends->end())
        out.push_back(at->second);
  }
  return out;
}

std::unordered_set<RecordId> Protected(std::span<const CatalogEntry> newest_first,
                                       std::span<const Operation> oldest_first,
                                       const RetentionLimits& limits) {
  std::unordered_set<RecordId> stay;
  std::unordered_map<std::string, RecordId> first;
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < newest_first.size(); ++i) {
    const CatalogEntry& entry = newest_first[i];
    const Checkpoint& c = entry.checkpoint;
    // What came in a bundle was brought by hand, however old it is; and whoever gave it
    // a name or a note means to find it again.
    const bool by_hand = c.kind == CheckpointKind::kManual ||
                         c.meta.contains("origin.store") ||
                         ((c.name || c.note) && !BELAY_MUTANT("prune-named"));
    if (i == 0 || entry.pinned || by_hand) stay.insert(c.id);
    if (!c.session) continue;
    if (seen.insert(*c.session).second) stay.insert(c.id);
    first[*c.session] = c.id;
  }
  if (!BELAY_MUTANT("prune-session-start"))
    for (const auto& [session, id] : first) stay.insert(id);
  if (!BELAY_MUTANT("prune-undo-horizon")) {
    const auto horizon = Horizon(oldest_first, limits.undo);
    for (const Operation& operation : oldest_first) {
      if (!horizon.contains(operation.id)) continue;
      if (operation.target) stay.insert(*operation.target);
      if (operation.safety) stay.insert(*operation.safety);
    }
  }
  for (const RecordId& id : WhatEndsTheTurns(newest_first, stay)) stay.insert(id);
  return stay;
}

}  // namespace

std::string WhyPrunedText(WhyPruned why, const RetentionLimits& limits) {
  switch (why) {
    case WhyPruned::kCount:
      return "more than " + std::to_string(limits.autos) + " automatic ones";
    case WhyPruned::kAge:
      return "older than " + std::to_string(limits.days) + " days";
    case WhyPruned::kSpace:
      return "room was needed";
  }
  return "?";
}

namespace {

// The first automatic checkpoint of each turn: what `turn:N` means.
std::map<TurnKey, const Checkpoint*> FirstOfTurns(
    std::span<const CatalogEntry> newest_first) {
  std::map<TurnKey, const Checkpoint*> out;
  if (BELAY_MUTANT("a-turns-start-goes-first")) return out;
  for (const CatalogEntry& entry : newest_first)
    if (entry.checkpoint.kind == CheckpointKind::kAuto)
      if (const auto turn = KeyOfTurn(entry.checkpoint)) out[*turn] = &entry.checkpoint;
  return out;
}

}  // namespace

RetentionPlan PlanRetention(std::span<const CatalogEntry> newest_first,
                            std::span<const Operation> oldest_first,
                            const RetentionLimits& limits, int64_t now_ms) {
  RetentionPlan plan;
  auto stay = Protected(newest_first, oldest_first, limits);
  const auto firsts = FirstOfTurns(newest_first);
  auto first_of = [&](const Checkpoint& c) -> const Checkpoint* {
    const auto turn = KeyOfTurn(c);
    const auto at = turn ? firsts.find(*turn) : firsts.end();
    return at == firsts.end() ? nullptr : at->second;
  };
  // With what stays of a turn whatever happens, its first does.
  std::vector<RecordId> with_them;
  for (const CatalogEntry& entry : newest_first)
    if (stay.contains(entry.checkpoint.id))
      if (const Checkpoint* first = first_of(entry.checkpoint))
        with_them.push_back(first->id);
  stay.insert(with_them.begin(), with_them.end());
  // Of the rest it is counted as soon as any other of the turn is kept, and it is the
  // one to be kept where there is room for one alone.
  std::unordered_set<RecordId> counted_ahead;
  int64_t counted = 0;
  for (size_t i = 0; i < newest_first.size(); ++i) {
    const CatalogEntry& entry = newest_first[i];
    const Checkpoint& c = entry.checkpoint;
    if (stay.contains(c.id) || counted_ahead.contains(c.id)) continue;
    const Checkpoint* first = first_of(c);
    const bool needs_first = first != nullptr && first->id != c.id &&
                             !stay.contains(first->id) &&
                             !counted_ahead.contains(first->id);
    const bool old = i >= kNewest && now_ms - c.made_ms > limits.days * kDayMs;
    if (counted + (needs_first ? 2 : 1) > limits.autos) {
      plan.checkpoints.push_back({entry, WhyPruned::kCount});
      if (!needs_first || old || counted == limits.autos) continue;
    } else if (old) {
      plan.checkpoints.push_back({entry, WhyPruned::kAge});
      continue;
    } else {
      ++counted;
    }
    if (!needs_first) continue;
    counted_ahead.insert(first->id);
    ++counted;
  }
  const auto horizon = Horizon(oldest_first, limits.undo);
  for (const Operation& operation : oldest_first)
    if (!horizon.contains(operation.id) && !operation.released)
      plan.released.push_back(operation);
  return plan;
}

std::vector<Doomed> PrunableForSpace(std::span<const CatalogEntry> newest_first,
                                     std::span<const Operation> oldest_first,
                                     const RetentionLimits& limits) {
  std::vector<Doomed> out;
  const auto stay = Protected(newest_first, oldest_first, limits);
  const auto firsts = FirstOfTurns(newest_first);
  std::map<TurnKey, uint64_t> last;  // that may go, of each turn
  for (const CatalogEntry& entry : newest_first) {
    const Checkpoint& c = entry.checkpoint;
    if (stay.contains(c.id)) continue;
    Doomed doomed{entry, WhyPruned::kSpace, c.seq};
    if (const auto turn = KeyOfTurn(c)) {
      const uint64_t goes_last = last.try_emplace(*turn, c.seq).first->second;
      const auto first = firsts.find(*turn);
      if (first != firsts.end() && first->second->id == c.id)
        doomed.goes_at = goes_last;
    }
    out.push_back(std::move(doomed));
  }
  // Oldest first, and of a turn that goes in one go its first last.
  std::ranges::reverse(out);
  std::ranges::stable_sort(out, {}, &Doomed::goes_at);
  return out;
}

namespace {

// Alone on the root, or not at all: a rollback may be about to go where this would cut,
// or was interrupted there and will be finished with what the store has now.
struct Alone {
  std::optional<HeldLock> lock;
  std::string why_not = {};
  bool busy = false;  // it may be free in a moment
};
Result<Alone> TryRoot(Store& store, const RootId& root, int64_t wait_ms) {
  auto held = store.locks().AcquireRoot(root, wait_ms);
  if (!held.ok()) {
    if (held.error().code != Errc::kBusy) return std::move(held).error();
    return Alone{std::nullopt, "somebody is at work there: passed over", true};
  }
  BELAY_TRY(bool interrupted, HasJournal(store, root));
  if (interrupted && !BELAY_MUTANT("prune-under-a-journal"))
    return Alone{std::nullopt, "a rollback was interrupted there: passed over"};
  return Alone{std::move(*held)};
}

Status Publish(Store& store, const Root& root, const RetentionPlan& plan,
               const std::vector<CatalogEntry>& entries,
               const std::vector<Operation>& operations) {
  BELAY_TRY(auto writer, store.Begin());
  const int64_t now = store.clock().WallMillis();
  auto new_id = [&] { return RecordId(store.random().NewId()); };
  std::vector<RecordId> drop, release;
  std::vector<CatalogEntry> gone;
  for (const Doomed& doomed : plan.checkpoints) {
    drop.push_back(doomed.entry.checkpoint.id);
    gone.push_back(doomed.entry);
  }
  for (const Operation& operation : plan.released) release.push_back(operation.id);
  if (!drop.empty()) {
    BELAY_TRY(auto handed_on,
              HandOn(store, entries, operations, {drop.begin(), drop.end()}));
    for (LogRecord& record : handed_on) {
      record.id = new_id();
      record.made_ms = now;
      writer->Add(std::move(record));
    }
    writer->Add(MakeDrop(new_id(), now, drop));
    writer->Add(DeletionRecord(new_id(), root, now, gone, operations, "prune"));
  }
  if (!release.empty()) writer->Add(MakeRelease(new_id(), root.id, now, release));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

}  // namespace

Result<PruneReport> Prune(Store& store, Catalog& catalog, const RetentionLimits& limits,
                          bool dry_run) {
  PruneReport report;
  BELAY_TRY(auto roots, catalog.Roots());
  for (const RootEntry& root : roots) {
    PrunedRoot pruned{.root = root, .plan = {}, .notes = {}};
    Alone alone;
    if (!dry_run) {
      BELAY_TRY(alone, TryRoot(store, root.root.id, 0));
      if (!alone.lock) {
        pruned.notes.push_back(alone.why_not);
        report.roots.push_back(std::move(pruned));
        continue;
      }
    }
    BELAY_TRY(auto entries, catalog.ListCheckpoints({.root = root.root.id}));
    BELAY_TRY(auto operations, ListOperations(catalog, root.root.id));
    pruned.plan =
        PlanRetention(entries, operations, limits, store.clock().WallMillis());
    if (pruned.plan.empty()) continue;
    if (!dry_run) BELAY_OK(Publish(store, root.root, pruned.plan, entries, operations));
    report.checkpoints += pruned.plan.checkpoints.size();
    report.operations += pruned.plan.released.size();
    report.roots.push_back(std::move(pruned));
  }
  BELAY_TRY(report.transcripts,
            PrunableTranscripts(catalog, limits.days, store.clock().WallMillis(),
                                /*for_space=*/false));
  if (!dry_run) BELAY_OK(DropTranscripts(store, report.transcripts));
  return report;
}

namespace {

struct LetGo {
  uint64_t count = 0;
  uint64_t transcripts = 0;
  bool somebody_busy = false;
};
// The oldest quarter of what may go, of all roots together.
Result<LetGo> LetOldestGo(Store& store, const RetentionLimits& limits) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto roots, catalog->Roots());
  std::vector<CatalogEntry> entries;
  std::vector<Operation> operations;
  auto prunable = [&](const RootId& root) -> Result<RetentionPlan> {
    BELAY_TRY(entries, catalog->ListCheckpoints({.root = root}));
    BELAY_TRY(operations, ListOperations(*catalog, root));
    RetentionPlan plan =
        PlanRetention(entries, operations, limits, store.clock().WallMillis());
    plan.checkpoints = PrunableForSpace(entries, operations, limits);
    return plan;
  };
  std::vector<uint64_t> numbers;
  for (const RootEntry& root : roots) {
    // Nothing of it goes, however long one waits.
    BELAY_TRY(bool interrupted, HasJournal(store, root.root.id));
    if (interrupted) continue;
    BELAY_TRY(RetentionPlan plan, prunable(root.root.id));
    for (const Doomed& doomed : plan.checkpoints) numbers.push_back(doomed.goes_at);
  }
  std::ranges::sort(numbers);
  const uint64_t last = numbers.empty() ? 0 : numbers[numbers.size() / 4];
  LetGo gone;
  BELAY_TRY(auto transcripts,
            PrunableTranscripts(*catalog, limits.days, store.clock().WallMillis(),
                                /*for_space=*/true));
  if (!transcripts.empty()) {
    BELAY_OK(DropTranscripts(store, transcripts));
    gone.transcripts = transcripts.size();
    return gone;
  }
  // Somebody else may let the same ones go before us: that is no reason to give up.
  gone.somebody_busy = !numbers.empty();
  for (const RootEntry& root : roots) {
    BELAY_TRY(Alone alone, TryRoot(store, root.root.id, kPatienceMs));
    if (!alone.lock) {
      gone.somebody_busy = gone.somebody_busy || alone.busy;
      continue;
    }
    // Anew: whoever was here before may have gone back to one of them.
    BELAY_TRY(RetentionPlan plan, prunable(root.root.id));
    std::erase_if(plan.checkpoints, [&](const Doomed& d) { return d.goes_at > last; });
    if (plan.empty()) continue;
    BELAY_OK(Publish(store, root.root, plan, entries, operations));
    gone.count += plan.checkpoints.size() + plan.released.size();
  }
  return gone;
}

// Whether there would be room for so much if all went that may go. Nobody's history is
// let go for a checkpoint that would not fit all the same. When that cannot be told, it
// is tried.
bool WouldHelp(Store& store, const Settings& settings, const Space& space,
               uint64_t want) {
  if (BELAY_MUTANT("prune-in-vain")) return true;
  auto stays = [&]() -> Result<uint64_t> {
    BELAY_TRY(auto catalog, Catalog::Open(store));
    BELAY_TRY(auto roots, catalog->Roots());
    const RetentionLimits limits = RetentionLimits::Of(settings);
    std::vector<RecordId> may_go;
    for (const RootEntry& root : roots) {
      BELAY_TRY(bool interrupted, HasJournal(store, root.root.id));
      if (interrupted) continue;
      BELAY_TRY(auto entries, catalog->ListCheckpoints({.root = root.root.id}));
      BELAY_TRY(auto operations, ListOperations(*catalog, root.root.id));
      for (const Doomed& doomed : PrunableForSpace(entries, operations, limits))
        may_go.push_back(doomed.entry.checkpoint.id);
      const RetentionPlan plan =
          PlanRetention(entries, operations, limits, store.clock().WallMillis());
      for (const Operation& operation : plan.released) may_go.push_back(operation.id);
    }
    BELAY_TRY(auto transcripts,
              PrunableTranscripts(*catalog, limits.days, store.clock().WallMillis(),
                                  /*for_space=*/true));
    for (const TranscriptCopy& copy : transcripts) may_go.push_back(copy.id);
    return WantedWithout(store, may_go);
  }();
  // All else can be made anew, or is somebody's who is at work.
  return !stays.ok() ||
         space.WouldFit(want, space.used() - std::min(space.used(), *stays));
}

}  // namespace

Result<MadeRoom> MakeRoom(Store& store, const Settings& settings, uint64_t want,
                          int64_t wait_ms) {
  MadeRoom made;
  const RetentionLimits limits = RetentionLimits::Of(settings);
  const int64_t deadline = store.clock().SteadyNanos() + wait_ms * 1'000'000;
  for (;;) {
    BELAY_TRY(Space space, Space::Of(store, settings, /*exact=*/true));
    made.enough = space.Check(want).ok();
    // A little more than asked for, so that not every checkpoint has to do this.
    if (made.enough && !space.IsTight()) return made;
    GcOptions options;
    options.min_garbage = 0.02;
    options.room = space.room_for_copies();
    auto collected = CollectGarbage(store, options);
    if (!collected.ok() && (collected.error().code == Errc::kBusy ||
                            collected.error().code == Errc::kConflict)) {
      if (made.enough) return made;
      if (store.clock().SteadyNanos() >= deadline) return made;
      store.clock().SleepNanos(50'000'000);
      continue;
    }
    if (!collected.ok()) return std::move(collected).error();
    // What somebody who was killed left behind gives room too.
    if (collected->generation_changed || collected->leftovers_removed > 0) continue;
    if (!made.enough && made.checkpoints == 0 &&
        !WouldHelp(store, settings, space, want))
      return made;
    BELAY_TRY(LetGo gone, LetOldestGo(store, limits));
    made.checkpoints += gone.count;
    const bool patient = gone.somebody_busy && store.clock().SteadyNanos() < deadline;
    if (gone.count + gone.transcripts == 0 && !(patient && !made.enough)) return made;
  }
}

Result<bool> MayMakeRoom(Store& store, const Settings& settings) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto roots, catalog->Roots());
  for (const RootEntry& root : roots) {
    BELAY_TRY(bool interrupted, HasJournal(store, root.root.id));
    if (interrupted) continue;
    BELAY_TRY(auto entries, catalog->ListCheckpoints({.root = root.root.id}));
    BELAY_TRY(auto operations, ListOperations(*catalog, root.root.id));
    if (!PrunableForSpace(entries, operations, RetentionLimits::Of(settings)).empty())
      return true;
  }
  BELAY_TRY(auto transcripts,
            PrunableTranscripts(*catalog, RetentionLimits::Of(settings).days,
                                store.clock().WallMillis(), /*for_space=*/true));
  return !transcripts.empty();
}

}  // namespace belay
