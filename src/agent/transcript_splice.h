#pragma once

// A part of a conversation that something shorter stands for in a copy: everything
// before it, one message of the user's with an answer, everything behind it, as one
// conversation that the agent's own resume takes.
//
// Guarantees
//   * As transcript_cut.h: the file is only read, what the agent's own rewind left is
//     not in the copy, bounded memory, a file that grows is looked at as far as it was
//     read.
//   * Records behind the part hang below what stands for it; nothing names a record
//     that is not there. A call and its answer are both in the copy or neither is.
//   * A part that the agent does not go on from, because it compacted the conversation
//     later, is refused (kRefused): nothing would come of it. So is one with a line
//     that is too long to be read.

#include "agent/json.h"
#include "agent/transcript_cut.h"
#include "base/random.h"

namespace belay {

struct TranscriptPart {
  TranscriptPrompt from;                       // the prompt it begins with
  std::optional<TranscriptPrompt> until = {};  // the one it ends before; else the end
  TranscriptCut before = {}, inside = {}, behind = {};

  // What the records that stand for it need to know of the others.
  std::string parent = {};  // the record they follow
  std::vector<TranscriptSwap> swaps = {};
  std::string like_prompt = {}, like_answer = {};  // a record of each kind, JSON
  std::optional<uint64_t> ordinal = {}, ordinal_behind = {};  // of Codex: the next ones
  std::string last_id = {};  // what the records behind it follow
};

// Both prompts are of the conversation as it is now; kNotFound when one is not.
Result<TranscriptPart> FindPart(Fs& fs, Random& random, AgentKind agent, const Fd& file,
                                const Transcript& transcript,
                                const TranscriptPrompt& from,
                                const TranscriptPrompt* until);

// What is in the part, record by record, with the offset each was found at.
Status ReadPart(Fs& fs, AgentKind agent, const Fd& file, const Transcript& transcript,
                const TranscriptPart& part,
                const std::function<void(const Json&, uint64_t)>& take);

struct Replacement {
  std::string session;  // that the copy is
  std::string message, answer;
  int64_t now_ms = 0;
};
// Lines, as the agent writes them.
std::string ReplacementRecords(Random& random, AgentKind agent,
                               const TranscriptPart& part,
                               const Replacement& replacement);
Status CopySpliced(Fs& fs, AgentKind agent, const Fd& file, const TranscriptPart& part,
                   const std::vector<TranscriptSwap>& swaps, const std::string& records,
                   const TranscriptSink& sink);

}  // namespace belay
