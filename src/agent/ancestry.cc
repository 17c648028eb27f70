#include "agent/ancestry.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "agent/recorder.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "core/live.h"
#include "core/transcripts.h"

namespace belay {

namespace {

// As much of a prompt as is kept of it, without the white space around it.
constexpr size_t kCompared = 4000;
// Fewer bytes than this are asked in many sessions ("go on", "yes").
constexpr size_t kTelling = 24;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(0, kCompared);
}

bool IsTurn(const TranscriptPrompt& prompt, std::string_view text,
            const std::optional<std::string>& anchor) {
  if (anchor && (prompt.anchor == *anchor || prompt.record == *anchor)) return true;
  return !Trimmed(text).empty() && Trimmed(prompt.text) == Trimmed(text);
}

// Those of the conversation that the session did not ask itself. `own`: its turns, the
// newest first, of which the last may not be in the file yet.
std::vector<const TranscriptPrompt*> Copied(const Transcript& transcript,
                                            std::span<const TurnRecord> own) {
  std::vector<const TranscriptPrompt*> copied;
  for (const TranscriptPrompt& prompt : transcript.prompts)
    if (!prompt.dead) copied.push_back(&prompt);
  for (const TurnRecord& turn : own)
    if (!copied.empty() && IsTurn(*copied.back(), turn.prompt, turn.anchor))
      copied.pop_back();
  return copied;
}

struct Asked {
  std::string text;
  std::string session;  // in which it was: this one, or one that it was forked from
};
using AskedIn = std::unordered_map<std::string, std::map<uint64_t, Asked>>;

// The session whose turns, from the first on, are what was asked in the copy.
std::optional<Ancestor> MatchTexts(const std::vector<const TranscriptPrompt*>& copied,
                                   const AskedIn& prompts) {
  size_t length = 0;
  for (const TranscriptPrompt* prompt : copied) length += Trimmed(prompt->text).size();
  if (length < kTelling && !BELAY_MUTANT("anybody-is-an-ancestor")) return std::nullopt;
  std::optional<Ancestor> found;
  for (const auto& [_, turns] : prompts) {
    bool same = turns.size() >= copied.size();
    for (size_t i = 0; same && i < copied.size(); ++i) {
      const auto turn = turns.find(i + 1);
      same =
          turn != turns.end() && Trimmed(turn->second.text) == Trimmed(copied[i]->text);
    }
    if (!same) continue;
    // A fork that has the same turns has them of the one that is looked for.
    Ancestor one{.session = turns.at(copied.size()).session, .turns = copied.size()};
    if (found && *found != one) return std::nullopt;  // two of them: nobody can tell
    found = std::move(one);
  }
  return found;
}

}  // namespace

Result<KnownSession> LookUpSession(Store& store, const std::string& session) {
  KnownSession out;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto sessions, catalog->ListRecords({.kind = RecordKind::kSession}));
  ToldPath path;
  for (const LogRecord& record : sessions) {
    auto one = ToSession(record);
    if (!one.ok()) continue;
    if (one->subagent && one->parent == session) out.subagents.push_back(one->session);
    if (one->session != session) continue;
    out.known = true;
    out.has_parent = out.has_parent || one->parent;
    out.inherited = std::max(out.inherited, one->inherited_turns);
    path.Learn(*one, record.seq);
  }
  out.transcript = path.path.value_or("");
  BELAY_TRY(auto turns, catalog->ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : turns) {
    auto turn = ToTurn(record);
    if (!turn.ok() || turn->session != session) continue;
    out.known = true;
    if (!out.newest) out.newest = *turn;
    out.turns = std::max(out.turns, turn->turn);
  }
  return out;
}

Result<std::optional<TurnRecord>> LookUpTurn(Store& store, const std::string& session,
                                             const std::string& anchor) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto turns, catalog->ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : turns)
    if (auto turn = ToTurn(record);
        turn.ok() && turn->session == session && turn->anchor == anchor)
      return std::optional(std::move(*turn));
  return std::optional<TurnRecord>();
}

std::optional<Ancestor> MatchAncestor(const Transcript& transcript,
                                      const std::string& session,
                                      const std::string& agent,
                                      std::span<const TurnRecord> turns,
                                      std::span<const SessionRecord> sessions,
                                      const std::optional<PromptNow>& prompt) {
  std::vector<TurnRecord> own;
  if (prompt)
    own.push_back(
        {.session = session, .prompt = prompt->text, .anchor = prompt->anchor});
  std::unordered_map<std::string, const TurnRecord*> by_anchor;
  AskedIn prompts;
  std::unordered_set<std::string> of_agent;
  for (const SessionRecord& one : sessions)
    if (one.agent == agent && !one.subagent) of_agent.insert(one.session);
  for (const TurnRecord& turn : turns) {
    if (turn.session == session) {
      own.push_back(turn);
      continue;
    }
    if (!of_agent.contains(turn.session)) continue;
    if (turn.anchor) by_anchor.emplace(*turn.anchor, &turn);
    prompts[turn.session].emplace(turn.turn, Asked{turn.prompt, turn.session});
  }
  // One that was forked itself has the turns it inherited, too.
  for (const SessionRecord& one : sessions) {
    const auto parent = one.parent ? prompts.find(*one.parent) : prompts.end();
    if (parent == prompts.end() || one.subagent || *one.parent == one.session) continue;
    const std::map<uint64_t, Asked> theirs = parent->second;
    if (const auto at = prompts.find(one.session); at != prompts.end())
      for (const auto& [number, asked] : theirs)
        if (number <= one.inherited_turns) at->second.emplace(number, asked);
  }
  const std::vector<const TranscriptPrompt*> copied = Copied(transcript, own);
  for (auto at = copied.rbegin(); at != copied.rend(); ++at)
    for (const std::string* anchor : {&(*at)->anchor, &(*at)->record})
      if (const auto turn = by_anchor.find(*anchor); turn != by_anchor.end())
        return Ancestor{.session = turn->second->session, .turns = turn->second->turn};
  // It says so itself; how much of it, by counting.
  if (transcript.forked_from && *transcript.forked_from != session &&
      of_agent.contains(*transcript.forked_from)) {
    const auto theirs = prompts.find(*transcript.forked_from);
    const uint64_t last = theirs == prompts.end() || theirs->second.empty()
                              ? 0
                              : theirs->second.rbegin()->first;
    return Ancestor{.session = *transcript.forked_from,
                    .turns = std::min<uint64_t>(copied.size(), last)};
  }
  return copied.empty() ? std::nullopt : MatchTexts(copied, prompts);
}

namespace {

// Of a parent that the event names.
std::optional<Ancestor> Named(Store& store, const HookEvent& event) {
  // A fork of opencode's names none: a parent is who started a subagent.
  Ancestor out{
      .session = *event.parent_session,
      .subagent = event.source == "subagent" || event.agent == AgentKind::kOpencode};
  if (out.session == SessionOf(event)) return std::nullopt;
  if (out.subagent) return out;
  auto parent = LookUpSession(store, out.session);
  if (!parent.ok()) return std::nullopt;
  // Not its own word but its command line's: the transcript may know better.
  if (!parent->known && event.agent == AgentKind::kClaude) return std::nullopt;
  out.turns = std::min(event.parent_turns.value_or(UINT64_MAX),
                       std::max(parent->turns, parent->inherited));
  return out;
}

struct Log {
  std::vector<TurnRecord> turns;
  std::vector<SessionRecord> sessions;
};
Result<Log> ReadWhatIsKnown(Store& store) {
  Log log;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto turns, catalog->ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : turns)
    if (auto one = ToTurn(record); one.ok()) log.turns.push_back(std::move(*one));
  BELAY_TRY(auto sessions, catalog->ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : sessions)
    if (auto one = ToSession(record); one.ok()) log.sessions.push_back(std::move(*one));
  return log;
}

// Nothing when it cannot be read, or is longer than that.
std::optional<Transcript> ReadUpTo(Fs& fs, AgentKind agent, const AbsPath& path,
                                   uint64_t most_bytes) {
  auto file = OpenTranscript(fs, path);
  if (!file.ok()) return std::nullopt;
  auto stat = fs.Stat(*file);
  if (!stat.ok() || stat->size > most_bytes) return std::nullopt;
  auto read = ReadTranscript(fs, agent, path);
  return read.ok() ? std::optional(std::move(*read)) : std::nullopt;
}

// Of a fork that copied nothing: the prompts that it has of the file it refers to, in
// front of its own. That may be such a fork, too. No more than `most_bytes` are read.
void AddReferred(Fs& fs, AgentKind agent, const Log& log, uint64_t most_bytes,
                 Transcript& transcript) {
  std::optional<std::string> parent = transcript.refers_to;
  std::optional<uint64_t> until = transcript.refers_until;
  constexpr int kGenerations = 16;
  for (int left = kGenerations; parent && until && left > 0; --left) {
    ToldPath told;
    for (const SessionRecord& one : log.sessions)
      if (one.session == *parent) told.Learn(one, 0);
    auto at = AbsPath::Parse(told.path.value_or(""));
    if (!at.ok()) return;
    auto theirs = ReadUpTo(fs, agent, *at, most_bytes);
    if (!theirs) return;
    most_bytes -= std::min(most_bytes, theirs->size);
    std::erase_if(theirs->prompts, [&](const TranscriptPrompt& prompt) {
      return prompt.dead || !prompt.ordinal || *prompt.ordinal >= *until;
    });
    transcript.prompts.insert(transcript.prompts.begin(), theirs->prompts.begin(),
                              theirs->prompts.end());
    parent = theirs->refers_to;
    if (theirs->refers_until) until = std::min(*until, *theirs->refers_until);
  }
}

// The prompts of a conversation that has no file, as the event lists them.
Transcript Listed(const HookEvent& event) {
  Transcript out;
  for (const HookMessage& one : event.earlier)
    out.prompts.push_back({.anchor = one.id, .record = one.id, .text = one.text});
  return out;
}

}  // namespace

AncestorSearch SearchAncestor(Store& store, const RootId& root,
                              const Settings& settings, const HookEvent& event) {
  AncestorSearch out;
  const bool prompt = event.kind == EventKind::kPrompt && event.human;
  const bool ends = event.kind == EventKind::kTurnEnd;
  if ((!prompt && !ends && event.kind != EventKind::kSessionStart) || event.subagent)
    return out;
  const std::string session = SessionOf(event);
  const Live live = Live::Load(store, root);
  const LiveSession* known = live.Find(session);
  if (known != nullptr && known->searched) return out;
  if (event.parent_session) {
    out.found = Named(store, event);
    out.done = out.found || event.agent != AgentKind::kClaude;
    if (out.done) return out;
  }
  if (settings.transcripts == Transcripts::kOff) return out;
  const uint64_t most_bytes = prompt ? kSearchAtPrompt : UINT64_MAX;
  Transcript transcript = Listed(event);
  if (event.earlier.empty()) {
    auto at = AbsPath::Parse(event.transcript.value_or(known ? known->transcript : ""));
    if (!at.ok()) return out;
    auto read = ReadUpTo(store.fs(), event.agent, *at, most_bytes);
    if (!read) return out;
    transcript = std::move(*read);
  }
  out.done = ends || !transcript.prompts.empty();
  if (transcript.prompts.empty() && !transcript.forked_from) return out;
  auto log = ReadWhatIsKnown(store);
  if (!log.ok()) return {};
  if (transcript.refers && !BELAY_MUTANT("what-a-fork-refers-to-is-not-its-own"))
    AddReferred(store.fs(), event.agent, *log, most_bytes, transcript);
  std::optional<PromptNow> now;
  if (prompt) now = PromptNow{.text = event.prompt, .anchor = event.anchor};
  out.found = MatchAncestor(transcript, session, AgentOf(event), log->turns,
                            log->sessions, now);
  return out;
}

}  // namespace belay
