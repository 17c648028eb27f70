#include "agent/session_view.h"

#include <algorithm>
#include <map>

#include "agent/aftermath.h"
#include "agent/referred.h"
#include "agent/rewind_internal.h"
#include "agent/told.h"
#include "agent/turn_match.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/annotate.h"
#include "core/chat.h"
#include "restore/running.h"

namespace belay {

namespace {

// What is compared where there is no id: an agent cuts and trims as it likes.
std::string_view Compared(std::string_view text) {
  constexpr size_t kMostCompared = 4096;  // the longest prompt that is recorded
  constexpr std::string_view kBlank = " \t\r\n";
  text = text.substr(0, kMostCompared);
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The turns of the log that belong to the session, the newest word on each number.
Result<std::vector<SessionTurn>> TurnsOf(Catalog& catalog, const Lineage& lineage) {
  std::map<uint64_t, std::pair<size_t, SessionTurn>> turns;  // with the generation
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < lineage.generations().size(); ++i)
    places[lineage.generations()[i].session] = i;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : records) {
    auto turn = ToTurn(record);
    if (!turn.ok() || !lineage.Has(turn->session, turn->turn, record.seq)) continue;
    const size_t place = places[turn->session];
    const auto known = turns.find(turn->turn);
    // A session that works in several roots has the turn in each of them.
    if (known != turns.end() && known->second.first <= place) continue;
    SessionTurn one{.turn = turn->turn,
                    .session = turn->session,
                    .prompt = turn->prompt,
                    .anchor = turn->anchor,
                    .made_ms = record.made_ms,
                    .seq = record.seq};
    turns.insert_or_assign(turn->turn, std::pair(place, std::move(one)));
  }
  std::vector<SessionTurn> out;
  for (auto& [number, turn] : turns) out.push_back(std::move(turn.second));
  return out;
}

constexpr size_t kNoTurn = SIZE_MAX;
struct Matches {
  std::vector<size_t> turn_of;    // of each prompt of the transcript
  std::vector<size_t> prompt_of;  // of each turn
};
// How else the prompts of turns may read, by session and number: in a copy whose
// directory was forked, or moved, they name another one.
using Readings = std::map<std::pair<std::string, uint64_t>, std::vector<std::string>>;

bool HasItsWords(const SessionTurn& turn, const Readings& readings,
                 const TranscriptPrompt& prompt) {
  const std::string_view said = Compared(prompt.text);
  if (said == Compared(turn.prompt)) return true;
  const auto others = readings.find({turn.session, turn.turn.value_or(0)});
  if (others == readings.end()) return false;
  return std::ranges::any_of(others->second, [&](const std::string& text) {
    // One that was cut goes on nobody knows how.
    return said == Compared(text) ||
           (IsPromptCutInLog(turn.prompt) && said.starts_with(Compared(text)));
  });
}

Matches Match(const std::vector<SessionTurn>& turns, const Readings& readings,
              const std::vector<TranscriptPrompt>& prompts) {
  Matches out{.turn_of = std::vector<size_t>(prompts.size(), kNoTurn),
              .prompt_of = std::vector<size_t>(turns.size(), kNoTurn)};
  auto give = [&](size_t turn, size_t prompt) {
    out.turn_of[prompt] = turn;
    out.prompt_of[turn] = prompt;
  };
  std::map<std::string_view, size_t> by_anchor;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto [at, is_new] = by_anchor.try_emplace(prompts[p].anchor, p);
    if (!is_new && prompts[at->second].dead) at->second = p;
  }
  for (size_t t = 0; t < turns.size(); ++t)
    if (turns[t].anchor)
      if (const auto at = by_anchor.find(*turns[t].anchor); at != by_anchor.end())
        give(t, at->second);
  // The rest by their words, from the end: what is missing is missing at the beginning.
  size_t limit = prompts.size();
  for (size_t t = turns.size(); t-- > 0;) {
    for (size_t p = limit; p-- > 0 && out.prompt_of[t] == kNoTurn;)
      if (out.turn_of[p] == kNoTurn && HasItsWords(turns[t], readings, prompts[p]))
        give(t, p);
    limit = std::min(limit, out.prompt_of[t]);
  }
  return out;
}

// Neither an id nor words of it were recorded.
bool IsNameless(const SessionTurn& turn) {
  return !turn.anchor && Compared(turn.prompt).empty();
}

// Turns and prompts in one list, in the order of the transcript; a turn that is not in
// it comes before the next that is.
std::vector<SessionTurn> Merge(std::vector<SessionTurn> turns, const Readings& readings,
                               Transcript transcript) {
  const Matches matches = Match(turns, readings, transcript.prompts);
  std::vector<SessionTurn> out;
  std::map<uint64_t, size_t> by_index;      // of the prompt
  std::map<size_t, std::string_view> said;  // of each turn: as the transcript has it
  size_t next = 0;                          // of the turns
  const bool nameless = std::ranges::any_of(turns, IsNameless);
  auto add_missing_until = [&](size_t end) {
    for (; next < end; ++next)
      if (matches.prompt_of[next] == kNoTurn) out.push_back(turns[next]);
  };
  for (size_t p = 0; p < transcript.prompts.size(); ++p) {
    const TranscriptPrompt& prompt = transcript.prompts[p];
    // It may be one of those that nothing was recorded of: not told twice.
    if (nameless && matches.turn_of[p] == kNoTurn && !BELAY_MUTANT("turns-shown-twice"))
      continue;
    if (const size_t turn = matches.turn_of[p]; turn != kNoTurn) {
      add_missing_until(turn);
      out.push_back(turns[turn]);
      if (out.back().prompt.empty()) out.back().prompt = prompt.text;
    } else {
      out.push_back({.prompt = prompt.text, .anchor = prompt.anchor});
    }
    out.back().left = prompt.dead;
    by_index[prompt.index] = out.size() - 1;
    said[out.size() - 1] = prompt.text;
  }
  add_missing_until(turns.size());
  for (TranscriptMessage& message : transcript.messages) {
    const auto at = message.prompt ? by_index.find(*message.prompt) : by_index.end();
    if (at == by_index.end()) continue;
    SessionTurn& turn = out[at->second];
    const bool is_prompt =
        message.role == "user" && turn.messages.empty() &&
        (Compared(turn.prompt).starts_with(Compared(message.text)) ||
         Compared(said[at->second]).starts_with(Compared(message.text)));
    if (!is_prompt) turn.messages.push_back(std::move(message));
  }
  return out;
}

// To its turn; what was said before the first one belongs to none.
void AddTold(ToldMessage message, SessionView& view) {
  for (SessionTurn& turn : view.turns) {
    if (turn.turn != message.turn) continue;
    const bool is_prompt = message.role == "user" && turn.messages.empty() &&
                           Compared(turn.prompt).starts_with(Compared(message.text));
    if (!is_prompt)
      turn.messages.push_back({.role = std::move(message.role),
                               .id = std::move(message.id),
                               .text = std::move(message.text)});
    return;
  }
}

Status AddCheckpoints(Catalog& catalog, const Root& root, const Lineage& lineage,
                      SessionView& view) {
  BELAY_TRY(const auto outline, catalog.Outline(root.id));
  BELAY_TRY(const auto operations, ListOperations(catalog, root.id));
  BELAY_TRY(const History history, LoadHistory(catalog, root.id, outline, operations));
  std::map<std::pair<uint64_t, std::string_view>, SessionTurn*> turns;
  for (SessionTurn& turn : view.turns)
    if (turn.turn) turns[{*turn.turn, turn.session}] = &turn;
  for (size_t i = outline.size(); i-- > 0;) {  // oldest first
    const CheckpointRow& row = outline[i];
    if (!lineage.Has(row.session, row.turn, row.seq)) continue;
    SessionTurn::Point point{.row = row, .number = i + 1};
    if (!operations.empty() && !BELAY_MUTANT("nothing-is-marked-taken-back"))
      point.taken_back_by = history.TakenBackBy(row.seq);
    const auto turn = turns.find({row.turn.value_or(0), *row.session});
    (turn == turns.end() ? view.start : turn->second->checkpoints).push_back(point);
  }
  // By what the turn ended with: its first checkpoint is the state before it.
  // (Not what a call of it did when the next was running.)
  for (size_t i = 0; i < view.turns.size(); ++i) {
    SessionTurn& turn = view.turns[i];
    uint64_t next = UINT64_MAX;
    for (size_t later = i + 1; later < view.turns.size(); ++later)
      if (view.turns[later].turn && view.turns[later].seq > turn.seq)
        next = std::min(next, view.turns[later].seq);
    for (const SessionTurn::Point& point : turn.checkpoints)
      if (&point == &turn.checkpoints.front() || point.row.seq < next)
        turn.files_taken_back_by = point.taken_back_by;
  }
  return Ok();
}

void MarkCut(const Operation& rewind, SessionView& view) {
  if (BELAY_MUTANT("a-cut-turn-is-not-marked")) return;
  for (SessionTurn& turn : view.turns) {
    if (turn.turn != rewind.chat->inherited || turn.seq >= rewind.seq) continue;
    if (turn.taken_back_by && !rewind.chat->hosted) continue;
    const auto first = std::ranges::find(
        turn.messages, rewind.chat->message.value_or(""), &TranscriptMessage::id);
    const auto at = static_cast<size_t>(first - turn.messages.begin());
    if (turn.cut && turn.cut->at <= at) continue;
    turn.cut = {
        .by = rewind.id, .message = rewind.chat->message.value_or(""), .at = at};
  }
}

}  // namespace

std::string_view SessionStateName(SessionState state) {
  return state == SessionState::kRunning ? "running"
         : state == SessionState::kEnded ? "ended"
                                         : "open";
}

SessionState StateOf(Store& store, const std::vector<RootId>& roots,
                     const SessionSummary& session) {
  bool ended = session.ended_ms.has_value();
  for (const RootId& root : roots) {
    const auto heard = ActivityOf(store, root, session.id);
    if (!heard) continue;
    if (heard->in_turn) return SessionState::kRunning;
    if (ended && !heard->ended && heard->seen_ms > *session.ended_ms) ended = false;
  }
  return ended ? SessionState::kEnded : SessionState::kOpen;
}

Result<SessionView> LookAtSession(Store& store, Catalog& catalog, const Root& root,
                                  const std::string& session) {
  SessionView view;
  BELAY_TRY(auto sessions, ListSessions(catalog, root.id));
  const auto known = std::ranges::find(sessions, session, &SessionSummary::id);
  if (known == sessions.end())
    return Error(Errc::kNotFound,
                 "there is no session " + EscapeText(session) + " here")
        .WithHint(
            "see them with: belay sessions; of all directories: belay sessions --all");
  MeasureConversations(store.fs(), sessions);
  view.summary = *known;
  view.state = StateOf(store, {root.id}, view.summary);
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  view.lineage = lineage.generations();
  BELAY_TRY(auto turns, TurnsOf(catalog, lineage));
  Transcript transcript;
  if (auto place = FindConversation(store, catalog, session); place.ok()) {
    std::vector<TurnRecord> told;
    for (const SessionTurn& turn : turns)
      told.push_back(
          {.session = session, .prompt = turn.prompt, .anchor = turn.anchor});
    auto read = ReadTranscript(store.fs(), place->agent, place->file(), told);
    if (read.ok()) {
      view.transcript = SessionView::File{.path = place->path.bytes(),
                                          .bytes = read->size,
                                          .is_copy = place->copy.has_value()};
      view.messages_left_out = read->messages_left_out;
      transcript = std::move(*read);
      // What Codex went back from is in an older file of the session.
      ReferredFiles before =
          ReadReferred(store, catalog, session, *place, transcript, told);
      for (ReferredFile& file : before.files) {
        if (file.session != session) break;
        view.messages_left_out += file.transcript.messages_left_out;
        transcript = Joined(std::move(file.transcript), std::move(transcript));
      }
    } else {
      view.trouble = read.error().what;
    }
  } else {
    view.trouble = place.error().what;
  }
  Told told;
  if (!view.transcript) {
    BELAY_TRY(told, ReadToldOf(store, catalog, lineage));
  }
  if (told.bytes > 0) {
    view.transcript =
        SessionView::File{.path = {}, .bytes = told.bytes, .is_copy = true};
    view.messages_left_out = told.left_out;
    view.trouble.clear();
  }
  if (std::ranges::any_of(turns, IsNameless))
    view.trouble =
        "neither ids nor words of all turns were recorded (prompts without words, or "
        "recorded with transcripts = \"off\")";
  Readings readings;
  if (!transcript.prompts.empty()) {
    BELAY_TRY(AbsPath here, AbsPath::Parse(root.path));
    ConversationPoint point;
    BELAY_OK(KnowTurns(catalog, session, here, point));
    for (size_t i = 0; i < point.turns.size() && i < point.read_in.size(); ++i)
      if (!point.read_in[i].empty())
        readings[{point.turns[i].session, point.turns[i].turn}] =
            std::move(point.read_in[i]);
  }
  view.turns = Merge(std::move(turns), readings, std::move(transcript));
  for (ToldMessage& message : told.messages) AddTold(std::move(message), view);
  BELAY_OK(AddCheckpoints(catalog, root, lineage, view));
  BELAY_TRY(const Chats chats, Chats::Read(catalog));
  const Chats::GoesOn on = chats.Follow(session);
  if (!on.anew) view.goes_on = on.session;
  if (BELAY_MUTANT("rewound-turns-are-not-marked")) return view;
  for (SessionTurn& turn : view.turns)
    if (turn.turn)
      if (const Operation* by = chats.TakenBackBy(session, *turn.turn, turn.seq))
        turn.taken_back_by = by->id;
  // Within a turn: a fork is cut from the whole of it, a host is told one after the
  // other.
  for (const Operation& operation : chats.in_effect())
    if (operation.chat->session == session && operation.chat->inside &&
        operation.chat->hosted)
      MarkCut(operation, view);
  for (const Operation* operation : on.way)
    if (!operation->chat->hosted && operation->chat->inside) MarkCut(*operation, view);
  return view;
}

}  // namespace belay
