#include "agent/conversation_part.h"

#include <algorithm>

#include "agent/conversation_internal.h"
#include "agent/turn_match.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/transcripts.h"

namespace belay {
namespace {

Error NothingThere(std::string what) {
  return Error(Errc::kRefused, std::move(what)).WithHint("nothing was changed");
}

}  // namespace

Result<ConversationPart> ConversationPart::Find(
    Fs& fs, Random& random, const ForkRequest& request,
    const std::optional<TurnRecord>& from, const std::optional<TurnRecord>& until) {
  BELAY_OK(CheckConversation(request.agent));
  ConversationPart out;
  out.request_ = request;
  BELAY_TRY(out.transcript_,
            ReadTranscript(fs, request.agent, request.transcript, request.point.turns));
  const TurnMatch match(out.transcript_, request.point);
  const std::vector<TranscriptPrompt>& prompts = out.transcript_.prompts;
  auto prompt_of = [&](const TurnRecord& turn) -> Result<const TranscriptPrompt*> {
    BELAY_TRY(const TranscriptPrompt* found, match.Find(turn));
    if (found->dead)
      return Error(Errc::kNotFound, "turn " + std::to_string(turn.turn) +
                                        " is not part of the conversation any more: "
                                        "the agent went back to before it");
    return found;
  };
  const TranscriptPrompt* begin = nullptr;
  const TranscriptPrompt* end = nullptr;
  if (out.transcript_.refers && !BELAY_MUTANT("half-a-conversation-is-summarized")) {
    // What is not in the file can neither be read nor be replaced there.
    if (!from || !match.Find(*from).ok()) {
      const auto own = std::ranges::find(prompts, false, &TranscriptPrompt::dead);
      const auto first = own == prompts.end() ? std::nullopt : match.TurnOf(*own);
      return OnlyRefers(request, out.transcript_, first)
          .WithHint(first ? "of what is there: belay summarize " +
                                ShellWord(request.session) +
                                " --from turn:" + std::to_string(*first)
                          : "nothing was changed");
    }
  }
  if (from) {
    BELAY_TRY(begin, prompt_of(*from));
  } else {
    const auto first = std::ranges::find(prompts, false, &TranscriptPrompt::dead);
    if (first == prompts.end()) return NothingThere("nothing was said yet");
    begin = &*first;
  }
  if (until) {
    BELAY_TRY(end, prompt_of(*until));
    if (end->offset <= begin->offset)
      return NothingThere("nothing was said before turn " +
                          std::to_string(until->turn));
  }
  BELAY_TRY(Fd opened, OpenTranscript(fs, request.transcript));
  out.file_ = std::make_shared<const Fd>(std::move(opened));
  BELAY_TRY(out.stat_, fs.Stat(*out.file_));
  BELAY_TRY(out.part_, FindPart(fs, random, request.agent, *out.file_, out.transcript_,
                                *begin, end));
  for (const TranscriptMessage& message : out.transcript_.messages)
    if (!message.dead)
      ++(out.part_.inside.Holds(message) ? out.inside_messages : out.other_messages);
  out.first_turn = from ? from->turn : match.TurnOf(*begin);
  if (until)
    out.last_turn = until->turn - 1;
  else if (const uint64_t newest = request.point.NewestTurn())
    out.last_turn = newest;
  return out;
}

Status ConversationPart::Read(Fs& fs, SummaryDigest& digest) const {
  const std::vector<TranscriptPrompt>& prompts = transcript_.prompts;
  const TurnMatch match(transcript_, request_.point);
  const TranscriptPrompt* now = nullptr;
  // Of agents that write a message more than once the place of a prompt is where it
  // stands now.
  const bool by_place = request_.agent != AgentKind::kGemini;
  return ReadPart(fs, request_.agent, *file_, transcript_, part_,
                  [&](const Json& json, uint64_t offset) {
                    const TranscriptPrompt* begun = now;
                    if (by_place) {
                      auto next = std::ranges::upper_bound(
                          prompts, offset, {}, &TranscriptPrompt::turn_offset);
                      if (next != prompts.begin()) begun = &*--next;
                    } else if (const auto id = json.Get("id")) {
                      const auto prompt = std::ranges::find_if(
                          prompts, [&](const TranscriptPrompt& one) {
                            return id->TextIs(one.record);
                          });
                      if (prompt != prompts.end()) begun = &*prompt;
                    }
                    if (begun != now && begun != nullptr && !begun->dead)
                      digest.BeginTurn(match.TurnOf(*begun));
                    now = begun;
                    if (now != nullptr && now->dead) return;
                    ReadSaid(request_.agent, json, digest);
                  });
}

Result<ConversationFork> ConversationPart::Fork(Fs& fs, Random& random,
                                                std::string_view summary,
                                                int64_t now_ms) const {
  ConversationFork fork{.agent = request_.agent, .parent = request_.session};
  fork.session = NewUuid(random);
  fork.uid = stat_.uid;
  fork.gid = stat_.gid;
  fork.taken_messages = inside_messages;
  fork.kept_messages = other_messages;
  const std::string old_id = OldIdOf(request_, transcript_);
  const std::vector<TranscriptSwap> swaps = SwapsFor(request_, old_id, fork.session);
  std::string records = ReplacementRecords(
      random, request_.agent, part_,
      {.session = fork.session,
       .message = SummaryMessage(TurnsText(first_turn, last_turn), summary),
       .answer = std::string(SummaryAnswer()),
       .now_ms = now_ms});
  uint64_t bytes = records.size();
  for (const TranscriptCut* cut : {&part_.before, &part_.behind})
    for (const TranscriptCut::Piece& piece : cut->pieces)
      bytes += piece.end - piece.offset + 1;
  BELAY_OK(AddForkFiles(
      fs, request_, old_id, swaps,
      {.path = request_.transcript,
       .mode = stat_.mode & 0777,
       .size_at_most = bytes + bytes / 8,
       .content =
           [&fs, file = file_, part = part_, swaps, records = std::move(records),
            agent = request_.agent](const TranscriptSink& sink) {
             return CopySpliced(fs, agent, *file, part, swaps, records, sink);
           }},
      fork));
  return fork;
}

}  // namespace belay
