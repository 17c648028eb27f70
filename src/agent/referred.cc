#include "agent/referred.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/transcripts.h"

namespace belay {
namespace {

// Where the agent kept the conversation of the session, newest first: as it told, then
// what there are copies of besides.
Result<std::vector<std::string>> ToldPaths(Catalog& catalog,
                                           const std::string& session) {
  std::vector<std::string> out;
  auto add = [&out](const std::string& path) {
    if (!path.empty() && std::ranges::find(out, path) == out.end()) out.push_back(path);
  };
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records) {  // newest first
    auto one = ToSession(record);
    if (one.ok() && one->session == session && !one->ended &&
        one->by == SessionRecord::By::kNone)
      add(one->transcript_path.value_or(""));
  }
  BELAY_TRY(auto copies, ListTranscripts(catalog, session));
  for (const TranscriptCopy& copy : copies)
    if (!copy.record.subagent) add(copy.record.path);
  return out;
}

}  // namespace

Result<ConversationPlace> FindReferred(Store& store, Catalog& catalog,
                                       const std::string& session,
                                       const ConversationPlace& place,
                                       const Transcript& transcript) {
  const Error none(Errc::kNotFound, "what came before in session " +
                                        EscapeText(session) + " is not known");
  if (!transcript.refers_to) return none;
  if (*transcript.refers_to != session || BELAY_MUTANT("a-session-has-one-file"))
    return FindConversation(store, catalog, *transcript.refers_to);
  BELAY_TRY(const auto paths, ToldPaths(catalog, session));
  const auto at = std::ranges::find(paths, place.path.bytes());
  const auto older = at == paths.end() ? paths.begin() : at + 1;
  if (older == paths.end()) return none;
  return FindConversationAt(store, catalog, session, *older);
}

ReferredFiles ReadReferred(Store& store, Catalog& catalog, const std::string& session,
                           const ConversationPlace& place, const Transcript& transcript,
                           std::span<const TurnRecord> prompts) {
  ReferredFiles out;
  uint64_t until = UINT64_MAX;
  for (const Transcript* now = &transcript; now->refers;
       now = &out.files.back().transcript) {
    out.whole = false;
    if (out.files.size() == kMostReferred || !now->refers_to || !now->refers_until)
      return out;
    until = std::min(until, *now->refers_until);
    const bool first = out.files.empty();
    auto at = FindReferred(store, catalog, first ? session : out.files.back().session,
                           first ? place : out.files.back().place, *now);
    if (!at.ok()) return out;
    auto theirs = ReadTranscript(store.fs(), at->agent, at->file(), prompts);
    if (!theirs.ok()) return out;
    const bool counted = std::ranges::all_of(
        theirs->prompts,
        [](const TranscriptPrompt& prompt) { return prompt.ordinal.has_value(); });
    if (!counted) {  // how much of it is meant nobody knows
      theirs->prompts.clear();
      theirs->messages.clear();
    }
    EndAt(*theirs, until);
    out.files.push_back({.session = *now->refers_to,
                         .place = std::move(*at),
                         .transcript = std::move(*theirs),
                         .until = until});
    if (!counted) return out;
    out.whole = true;
  }
  return out;
}

uint64_t CountLiving(const Transcript& transcript) {
  return static_cast<uint64_t>(
      std::ranges::count(transcript.messages, false, &TranscriptMessage::dead));
}

Transcript Joined(Transcript before, Transcript transcript) {
  const uint64_t shift = before.prompts.empty() ? 0 : before.prompts.back().index + 1;
  for (TranscriptPrompt& prompt : transcript.prompts) {
    prompt.index += shift;
    before.prompts.push_back(std::move(prompt));
  }
  for (TranscriptMessage& message : transcript.messages) {
    if (message.prompt) *message.prompt += shift;
    before.messages.push_back(std::move(message));
  }
  transcript.prompts = std::move(before.prompts);
  transcript.messages = std::move(before.messages);
  return transcript;
}

}  // namespace belay
