#include "core/refs.h"

#include <algorithm>
#include <charconv>

#include "base/escape.h"
#include "base/mutant.h"
#include "base/number.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/moments.h"

namespace belay {

namespace {

// --- references ----------------------------------------------------------------------

Error NoSuch(std::string_view what) {
  return Error(Errc::kNotFound, std::string(what))
      .WithHint("`belay list` shows what there is");
}

Result<CatalogEntry> First(Catalog& catalog, CheckpointFilter filter,
                           const std::string& none) {
  filter.limit = 1;
  BELAY_TRY(auto found, catalog.ListCheckpoints(filter));
  if (found.empty()) return NoSuch(none);
  return std::move(found[0]);
}

Result<CatalogEntry> LastGood(Catalog& catalog, const RootId& root) {
  constexpr size_t kPage = 64;
  CheckpointFilter filter{.root = root, .limit = kPage};
  for (;;) {
    BELAY_TRY(auto page, catalog.ListCheckpoints(filter));
    for (CatalogEntry& entry : page)
      if (entry.health == Health::kPass) return std::move(entry);
    if (page.size() < kPage) break;
    filter.before_seq = page.back().checkpoint.seq;
  }
  return Error(Errc::kNotFound, "no checkpoint is known to be good")
      .WithHint("a check that passed makes one: belay run-check -- COMMAND");
}

Result<std::string> SessionOf(Catalog& catalog, const RefContext& context,
                              std::string_view ref) {
  if (context.session) return *context.session;
  if (context.active) return *context.active;
  BELAY_TRY(auto active, ActiveSession(catalog, context.root));
  if (!active)
    return Error(Errc::kNotFound,
                 EscapeForDisplay(ref) + ": no session was ever recorded here")
        .WithHint("name a checkpoint by its number in `belay list`");
  return std::move(*active);
}

// The session that has this turn, for who looked in another one; nothing when nobody
// has.
Result<std::optional<std::string>> WhoHasTurn(Catalog& catalog, const RootId& root,
                                              uint64_t turn,
                                              const std::vector<CatalogEntry>& beyond) {
  std::vector<CatalogEntry> found;
  if (beyond.empty()) {
    BELAY_TRY(found, catalog.ListCheckpoints({.root = root, .turn = turn, .limit = 1}));
  }
  const std::vector<CatalogEntry>& all = beyond.empty() ? found : beyond;
  if (all.empty() || !all[0].checkpoint.session) return std::optional<std::string>();
  BELAY_TRY(std::string session, WhoseSubagent(catalog, *all[0].checkpoint.session));
  return std::optional(std::move(session));
}

// Why nothing is what was there when the turn began. A state from the middle of it, or
// from its end, is not offered in its place.
Error NoStart(const TurnStart& start, const std::string& number) {
  Error out(Errc::kNotFound, "");
  if (start.stateless)
    out.what = "what was there when turn " + number +
               " began was not recorded: with granularity = \"session\" only the "
               "beginning and the end of a session are";
  else
    out.what = "what was there when turn " + number + " began " +
               (start.recorded ? "is no longer kept" : "was not recorded here");
  if (!start.nearest) {
    out.hint = "`belay list` shows what there is";
    return out;
  }
  const Checkpoint& c = start.nearest->checkpoint;
  out.hint = "the first that is kept of that turn is " + c.id.text().substr(0, 7) +
             " (" + EscapeText(c.name.value_or(c.description)) +
             "); what there is besides: belay list --tools";
  return out;
}

// Of a conversation that was taken back the turns behind that are still to be had by
// their numbers, until what goes on has such turns itself.
Result<CatalogEntry> FindTurn(Catalog& catalog, const RefContext& context,
                              std::string_view ref, std::string& note) {
  BELAY_TRY(const uint64_t turn, TurnNumber(ref));
  const std::string number = std::to_string(turn);
  BELAY_TRY(std::string session, SessionOf(catalog, context, ref));
  BELAY_TRY(TurnStart start, FindTurnOf(catalog, context.root, session, turn));
  std::vector<CatalogEntry> beyond;
  if (!BELAY_MUTANT("turns-end-at-the-rewind")) {
    BELAY_TRY(beyond, TurnsBeyond(catalog, context.root, session, turn));
  }
  auto origin = [&](size_t i) { return beyond[i].checkpoint.session.value_or(""); };
  if (start.state) {
    if (start.elsewhere)
      note = "turn " + number +
             " was submitted in another directory; this is before its first call here";
    if (!beyond.empty() && !context.session)
      note = "session " + EscapeText(origin(0)) + ", from which this one was forked, " +
             "has a turn " + number + ", too: --session " + ShellWord(origin(0));
    return std::move(*start.state);
  }
  BELAY_TRY(const auto counted, TurnsOf(catalog, session));
  const bool own = std::ranges::any_of(
      counted, [&](const TurnOf& one) { return one.turn.turn == turn; });
  if (!beyond.empty() && !context.session && !own && !start.nearest) {
    BELAY_TRY(start, FindTurnOf(catalog, context.root, origin(0), turn));
    if (!start.state) return NoStart(start, number);
    note = "turn " + number + " of session " + EscapeText(origin(0)) +
           ", from which the present one was forked";
    if (beyond.size() > 1)
      note += "; that of an older one: --session " + ShellWord(origin(1));
    return std::move(*start.state);
  }
  if (start.nearest || start.stateless) return NoStart(start, number);
  Error none =
      NoSuch("session " + EscapeText(session) + " has no checkpoint of turn " + number);
  BELAY_TRY(const auto other, WhoHasTurn(catalog, context.root, turn, beyond));
  if (other && *other != session)
    none.hint =
        "session " + EscapeText(*other) + " has one: --session " + ShellWord(*other);
  return none;
}

Result<CatalogEntry> FindTool(Catalog& catalog, const RefContext& context,
                              std::string_view ref) {
  const std::string id(ref.substr(5));
  BELAY_TRY(std::string session, SessionOf(catalog, context, ref));
  BELAY_TRY(auto found, FindToolOf(catalog, context.root, session, id));
  // What it left is not what was there before it.
  if (found && found->checkpoint.kind == CheckpointKind::kAuto &&
      found->checkpoint.description.starts_with("after ") &&
      !BELAY_MUTANT("after-is-as-good-as-before"))
    return Error(Errc::kNotFound, "what was there before the tool call " +
                                      EscapeForDisplay(id) + " was not recorded")
        .WithHint("what it left is " + found->checkpoint.id.text().substr(0, 7) +
                  "; what was recorded before that: belay list --tools");
  if (found) return std::move(*found);
  Error none = NoSuch("session " + EscapeText(session) +
                      " has no checkpoint of the tool call " + EscapeForDisplay(id));
  if (context.session) return none;
  BELAY_TRY(
      auto other,
      catalog.ListCheckpoints(
          {.root = context.root, .tool_use_id = id, .oldest_first = true, .limit = 1}));
  if (!other.empty() && other[0].checkpoint.session)
    none.hint = "it belongs to another session: --session " +
                ShellWord(*other[0].checkpoint.session);
  return none;
}

Result<CatalogEntry> FindAtTime(Catalog& catalog, const RefContext& context,
                                std::string_view ref) {
  if (!ref.ends_with('}'))
    return Error(Errc::kInvalid, EscapeForDisplay(ref) + ": the brace is not closed")
        .WithHint("for instance '@{5 minutes ago}'");
  BELAY_TRY(int64_t at, ParseTime(ref.substr(2, ref.size() - 3), context.now_ms));
  return First(catalog, {.root = context.root, .made_until_ms = at},
               "there was no checkpoint yet at " + EscapeForDisplay(ref));
}

Result<CatalogEntry> FindNumber(Catalog& catalog, const RefContext& context,
                                std::string_view ref) {
  const auto number = Number<uint64_t>(ref);
  if (!number || *number == 0 || *number > INT64_MAX) {
    return NoSuch("there is no checkpoint " + EscapeForDisplay(ref.substr(0, 40)));
  }
  BELAY_TRY(auto found,
            catalog.ListCheckpoints({.root = context.root,
                                     .offset = static_cast<size_t>(*number - 1),
                                     .limit = 1}));
  if (!found.empty()) return std::move(found[0]);
  BELAY_TRY(uint64_t count, catalog.Count(context.root));
  return NoSuch("there is no checkpoint " + std::to_string(*number) + ", there are " +
                std::to_string(count));
}

// Who asks under a session gets what that session's own records, or those that it
// inherited, name as its, and nothing else, whatever it is called by.
Status CheckScope(Catalog& catalog, const std::string& session, const Checkpoint& found,
                  std::string_view ref) {
  if (BELAY_MUTANT("any-session-finds-it")) return Ok();
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  if (lineage.Has(found.session, found.turn, found.seq)) return Ok();
  if (found.session) {
    BELAY_TRY(const auto own, WithSubagents(catalog, session));
    if (std::ranges::find(own, *found.session) != own.end()) return Ok();
  }
  return NoSuch("session " + EscapeText(session) + " has no checkpoint " +
                EscapeForDisplay(ref.substr(0, 200)));
}

}  // namespace

Result<uint64_t> TurnNumber(std::string_view ref) {
  constexpr std::string_view kTurn = "turn:";
  const std::string shown = EscapeForDisplay(ref.substr(0, 100));
  auto wrong = [&](const std::string& why) {
    return Error(Errc::kInvalid, shown + why).WithHint("for instance turn:3");
  };
  const std::string_view digits = ref.substr(ref.starts_with(kTurn) ? kTurn.size() : 0);
  if (!ref.starts_with(kTurn) || !AllDigits(digits)) return wrong(" names no turn");
  const auto turn = Number<uint64_t>(digits);
  if (!turn) return wrong(": no turn has such a number");
  if (*turn == 0) return wrong(": turns are counted from 1");
  return *turn;
}

Status CheckName(std::string_view name) {
  auto refuse = [](std::string_view why) {
    return Error(Errc::kInvalid,
                 "a checkpoint cannot be called so: " + std::string(why));
  };
  if (name.empty()) return refuse("the name is empty");
  if (name == "latest" || name == "last-good" || name == "now")
    return refuse("latest, last-good and now have a meaning of their own");
  if (AllDigits(name)) return refuse("digits alone are numbers of the list");
  for (std::string_view start : {"turn:", "tool:", "session:", "@{"})
    if (name.starts_with(start))
      return refuse("turn:, tool:, session: and @{ begin other references");
  return Ok();
}

Status CheckNewName(std::string_view name) {
  BELAY_OK(CheckName(name));
  if (std::ranges::all_of(name, [](char c) { return c == ' ' || (c >= 0 && c < ' '); }))
    return Error(Errc::kInvalid, "a checkpoint cannot be called so: the name is blank");
  return Ok();
}

Result<std::optional<std::string>> ActiveSession(Catalog& catalog, const RootId& root,
                                                 const Live* live) {
  constexpr size_t kPage = 64;
  std::optional<std::string> session;
  uint64_t seq = 0;
  int64_t made_ms = 0;
  CheckpointFilter filter{.root = root, .limit = kPage};
  for (bool more = true; more && !session;) {
    BELAY_TRY(auto page, catalog.ListCheckpoints(filter));
    for (const CatalogEntry& entry : page) {
      if (!entry.checkpoint.session) continue;
      session = entry.checkpoint.session;
      seq = entry.checkpoint.seq;
      made_ms = entry.checkpoint.made_ms;
      break;
    }
    more = page.size() == kPage;
    if (more) filter.before_seq = page.back().checkpoint.seq;
  }
  // A session without a checkpoint of its own yet. Both kinds have it in field 1.
  for (RecordKind kind : {RecordKind::kSession, RecordKind::kTurn}) {
    BELAY_TRY(auto records,
              catalog.ListRecords({.kind = kind, .root = root, .limit = 1}));
    if (records.empty() || records[0].seq < seq) continue;
    if (auto named = records[0].fields.Text(1)) {
      session = std::move(named);
      seq = records[0].seq;
      made_ms = records[0].made_ms;
    }
  }
  const LiveSession* heard = live == nullptr ? nullptr : live->newest();
  if (heard != nullptr && heard->recorded && heard->seen_ms > made_ms &&
      !BELAY_MUTANT("only-what-is-recorded-is-active"))
    session = heard->id;
  if (!session) return session;
  // What a subagent does is its parent's.
  BELAY_TRY(session, WhoseSubagent(catalog, *session));
  return session;
}

Result<FoundRef> ResolveRef(Catalog& catalog, const RefContext& context,
                            std::string_view ref) {
  FoundRef out;
  auto found = [&]() -> Result<CatalogEntry> {
    if (ref.empty()) return Error(Errc::kInvalid, "an empty REF names no checkpoint");
    if (ref == "latest")
      return First(catalog, {.root = context.root, .session = context.session},
                   "there is no checkpoint yet");
    if (ref == "last-good") return LastGood(catalog, context.root);
    if (IsNow(ref))
      return Error(Errc::kInvalid,
                   "now is the directory as it is, and only ls and diff look at that")
          .WithHint("the newest checkpoint is called latest");
    if (ref.starts_with("turn:")) return FindTurn(catalog, context, ref, out.note);
    if (ref.starts_with("tool:")) return FindTool(catalog, context, ref);
    if (ref.starts_with("session:"))
      return First(
          catalog,
          {.root = context.root,
           .session = std::string(ref.substr(8)),
           .oldest_first = true},
          "there is no checkpoint of session " + EscapeForDisplay(ref.substr(8)));
    if (ref.starts_with("@{")) return FindAtTime(catalog, context, ref);
    if (AllDigits(ref)) return FindNumber(catalog, context, ref);
    auto named = catalog.Find(context.root, ref);
    if (!named.ok()) {
      Error error = std::move(named).error();
      constexpr size_t kShortestId = 4;
      if (error.code == Errc::kNotFound && ref.size() < kShortestId)
        return NoSuch("no checkpoint is named " + EscapeForDisplay(ref) +
                      "; of an id at least the first 4 characters are needed");
      if (error.code == Errc::kNotFound)
        return NoSuch("no checkpoint is named " + EscapeForDisplay(ref.substr(0, 200)) +
                      ", and none has an id that begins so");
      return error;
    }
    if (named->others > 0)
      out.note = std::to_string(named->others) +
                 (named->others == 1 ? " older one has" : " older ones have") +
                 " the same name; this is the newest";
    return std::move(named->entry);
  }();
  if (!found.ok()) return std::move(found).error();
  out.entry = std::move(*found);
  if (context.session && !ref.starts_with("turn:") && !ref.starts_with("tool:"))
    BELAY_OK(CheckScope(catalog, *context.session, out.entry.checkpoint, ref));
  BELAY_TRY(out.number, catalog.NumberOf(context.root, out.entry.checkpoint.seq));
  return out;
}

}  // namespace belay
