#pragma once

// A transcript cut short: a copy of a conversation as it was before one of its prompts
// or messages, under another id, that the agent's own resume takes.
//
// Guarantees
//   * The file is only read.
//   * What the copy holds is what the conversation held before the cut: nothing of the
//     prompt or of what came after it, nothing of a branch that the agent's own rewind
//     had left, everything else, byte for byte but for the swaps. (Codex says in the
//     file what it took back: that stays, and so does the line that says so.)
//   * The cut parts no call from its answer: the message that made the call goes, too.
//     A call that was never answered stays with what was said behind it; where nothing
//     was, it goes, since the agent could not go on from there.
//   * Nor does the copy end with thoughts alone: those before the cut go, too.
//   * Bounded memory, as ReadTranscript; lines too long to be read are copied too.
//     Where the copy is put together of single messages (Gemini CLI) it is refused
//     (kRefused) when such a line may be one of them.
//   * A file that grows meanwhile is looked at as far as ReadTranscript did.

#include "agent/transcript.h"
#include "agent/transcript_swap.h"

namespace belay {

// Where the conversation ends.
struct CutPoint {
  uint64_t offset = 0;  // nothing that is written there or later is kept
  uint64_t record = 0;  // offset of the prompt's or message's own record
  std::string id;       // of that record, where records have ids
  bool is_prompt = true;
  bool is_end = true;  // of the copy: false where something is put behind it
};
CutPoint Before(const TranscriptPrompt& prompt);
CutPoint Before(const TranscriptMessage& message);

// The pieces of the file that make the copy, in their order; each is whole lines, or
// one JSON value that is a line of the copy.
struct TranscriptCut {
  struct Piece {
    uint64_t offset = 0, end = 0;
  };
  std::vector<Piece> pieces;
  // Where messages are written more than once: hashes of the ids of those that stay,
  // rising.
  std::optional<std::vector<uint64_t>> ids = {};
  // It ends before the point that was asked for, so that no call is parted from its
  // answer.
  bool spares_calls = false;

  bool Holds(const TranscriptMessage& message) const;
  bool Holds(const TranscriptPrompt& prompt) const;
};

// kNotFound when the transcript has nothing at that point. `transcript` is what
// ReadTranscript said of this file. kUnsupported for agents whose conversation is not
// a file of lines.
Result<TranscriptCut> PlanCut(Fs& fs, AgentKind agent, const Fd& file,
                              const Transcript& transcript, const CutPoint& point);

// What the conversation holds from a prompt on, to its end as it is now: without what
// is before it, and without what the agent's own rewind left. kNotFound when the prompt
// is not part of it any more.
Result<TranscriptCut> PlanRest(Fs& fs, AgentKind agent, const Fd& file,
                               const Transcript& transcript,
                               const TranscriptPrompt& from);

// All that the conversation holds as it is now.
Result<TranscriptCut> PlanWhole(Fs& fs, AgentKind agent, const Fd& file,
                                const Transcript& transcript);

// The copy, with the swaps made.
Status CopyCut(Fs& fs, const Fd& file, const TranscriptCut& cut,
               const std::vector<TranscriptSwap>& swaps, const TranscriptSink& sink);

}  // namespace belay
