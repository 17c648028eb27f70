#include <algorithm>

#include "agent/rewind.h"
#include "agent/rewind_internal.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/annotate.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "restore/running.h"

namespace belay {

namespace {

// Somebody deleted checkpoints right behind `target`, and before anything of a later
// turn: whether the turn went on there cannot be told any more. (Retention leaves what
// tells it.)
Result<bool> WasMoreDeleted(Catalog& catalog, const Checkpoint& target) {
  if (BELAY_MUTANT("what-was-deleted-never-was")) return false;
  BELAY_TRY(const auto deeds, ListDeeds(catalog, target.root));
  if (std::ranges::none_of(deeds, [&](const Deed& deed) {
        return deed.seq > target.seq && deed.name == "delete";
      }))
    return false;
  BELAY_TRY(const auto all,
            catalog.ListCheckpoints({.root = target.root, .oldest_first = true}));
  RecordId last = target.id;
  for (const CatalogEntry& entry : all) {
    const Checkpoint& c = entry.checkpoint;
    if (c.seq <= target.seq) continue;
    if (!c.since.is_zero() && c.since != last) return true;
    BELAY_TRY(const auto notes, catalog.Annotations(c.id));
    for (const LogRecord& note : notes)
      if (note.fields.has(kAnnotationSince)) return true;
    if (c.session == target.session && c.turn > target.turn) break;
    last = c.id;
  }
  return false;
}

// The turn of `target` is over and left things as they are there. What somebody keeps
// by hand afterwards carries the turn, too. What was there before a call is no end: the
// call may have been refused, or interrupted, and its end not told.
Result<bool> IsEndOfTurn(Store& store, Catalog& catalog, const Checkpoint& target) {
  if (!target.session || BELAY_MUTANT("the-last-call-is-within-its-turn")) return false;
  if (target.description.starts_with("before ") &&
      !BELAY_MUTANT("before-the-last-call-is-its-end"))
    return false;
  CheckpointFilter filter{.root = target.root,
                          .session = *target.session,
                          .kind = CheckpointKind::kAuto,
                          .turn = *target.turn,
                          .limit = 1};
  if (BELAY_MUTANT("by-hand-is-the-turns-own")) filter.kind.reset();
  BELAY_TRY(auto newest, catalog.ListCheckpoints(filter));
  if (newest.empty() || newest[0].checkpoint.id != target.id) return false;
  const auto heard = ActivityOf(store, target.root, *target.session);
  if (heard && heard->in_turn && heard->turn == *target.turn) return false;
  BELAY_TRY(const bool more, WasMoreDeleted(catalog, target));
  return !more;
}

// One that somebody made while the turn was at work: it did something since, or does
// yet. Its conversation has no place that fits but before the turn.
Result<bool> IsWithinTurn(Store& store, Catalog& catalog, const Checkpoint& target) {
  if (BELAY_MUTANT("by-hand-is-after-the-turn")) return false;
  const auto heard = ActivityOf(store, target.root, *target.session);
  if (heard && heard->in_turn && heard->turn == *target.turn) return true;
  BELAY_TRY(auto of_turn, catalog.ListCheckpoints({.root = target.root,
                                                   .session = *target.session,
                                                   .turn = *target.turn}));
  if (std::ranges::any_of(of_turn, [&](const CatalogEntry& entry) {
        return entry.checkpoint.seq > target.seq && entry.checkpoint.tool_name &&
               entry.checkpoint.kind == CheckpointKind::kAuto;
      }))
    return true;
  return WasMoreDeleted(catalog, target);
}

// The first turn that was said since, whether it counts or not.
Result<std::optional<uint64_t>> TurnSince(Store& store, Catalog& catalog,
                                          const std::string& session,
                                          const Checkpoint& target) {
  if (target.turn && target.kind == CheckpointKind::kAuto) {
    BELAY_TRY(const TurnStart start,
              FindTurnOf(catalog, target.root, session, *target.turn));
    if (start.state && start.state->checkpoint.id == target.id) return target.turn;
    if (target.tool_name) {
      // A call of a turn that was over: of the one that was running.
      BELAY_TRY(const auto turns, TurnsOf(catalog, session));
      for (auto at = turns.rbegin(); at != turns.rend(); ++at)
        if (at->seq < target.seq && at->turn.turn > *target.turn)
          return std::optional(at->turn.turn);
      BELAY_TRY(const bool end, IsEndOfTurn(store, catalog, target));
      if (!end) return target.turn;
    }
  }
  if (target.turn && target.session && target.kind == CheckpointKind::kManual) {
    BELAY_TRY(const bool within, IsWithinTurn(store, catalog, target));
    if (within) return target.turn;
  }
  BELAY_TRY(const auto turns, AllTurnsOf(catalog, session));
  for (const TurnOf& one : turns) {
    if (one.seq <= target.seq) continue;
    if (one.turn.turn > target.turn.value_or(0)) return std::optional(one.turn.turn);
    // Counted twice: whether it is before or behind the other, numbers do not tell.
    const auto same = std::ranges::count(
        turns, one.turn.turn, [](const TurnOf& other) { return other.turn.turn; });
    if (same > 1 && !BELAY_MUTANT("a-turn-that-was-counted-twice-stays"))
      return Error(Errc::kRefused,
                   "session " + EscapeText(session) + " has several turns " +
                       std::to_string(one.turn.turn) +
                       ", of several directories, and one was said since")
          .WithHint("name the message by the agent's own id: belay rewind " +
                    ShellWord(session) + " --to ID");
  }
  return std::optional<uint64_t>();
}

// A host goes on with the same session. Where it was told to forget `turn`, and has all
// that came before it, what it has to forget now is what it said since, if anything.
Result<std::optional<uint64_t>> TurnOfHost(Catalog& catalog, const std::string& session,
                                           uint64_t turn) {
  BELAY_TRY(const auto turns, TurnsOf(catalog, session));
  BELAY_TRY(const ChatLog log, ChatLog::Read(catalog));
  const Chats now(log);
  auto counts = [&](const Chats& chats, const TurnOf& one) {
    return chats.TakenBackBy(session, one.turn.turn, one.seq) == nullptr;
  };
  const TurnOf* named = FindTurn(turns, turn);
  const Operation* last = now.LastOf(session);
  if (named == nullptr || last == nullptr || !last->chat->hosted ||
      counts(now, *named) || BELAY_MUTANT("a-host-is-not-there-already"))
    return std::optional(turn);
  const Chats then(log, named->seq);
  for (const TurnOf& one : turns)
    if (one.seq < named->seq && counts(then, one) && !counts(now, one))
      return std::optional(turn);
  for (const Operation& rewind : now.in_effect())
    if (rewind.chat->session == session && rewind.chat->inside &&
        rewind.chat->inherited < turn &&
        std::ranges::find(then.in_effect(), rewind.id, &Operation::id) ==
            then.in_effect().end())
      return std::optional(turn);
  for (const TurnOf& one : turns)
    if (one.seq > named->seq && counts(now, one)) return std::optional(one.turn.turn);
  return std::optional<uint64_t>();
}

}  // namespace

Result<std::optional<uint64_t>> TurnToTakeBack(Store& store, Catalog& catalog,
                                               const std::string& session,
                                               const Checkpoint& target) {
  BELAY_TRY(const auto turn, TurnSince(store, catalog, session, target));
  if (!turn) return turn;
  return TurnOfHost(catalog, session, *turn);
}

}  // namespace belay
