#pragma once

// ConversationPart: some turns of a conversation, to be read for a summary, and the
// fork in which the summary stands for them.
//
// Guarantees: those of agent/conversation.h and agent/transcript_splice.h. The code is
// no business of this.

#include <memory>

#include "agent/conversation.h"
#include "agent/summary.h"
#include "agent/transcript_splice.h"

namespace belay {

class ConversationPart {
 public:
  // `request.point.turns` are all turns of the session; its point is not looked at.
  // From `from` (else the beginning) to before `until` (else the end).
  static Result<ConversationPart> Find(Fs& fs, Random& random,
                                       const ForkRequest& request,
                                       const std::optional<TurnRecord>& from,
                                       const std::optional<TurnRecord>& until);

  // As far as they were recorded.
  std::optional<uint64_t> first_turn, last_turn;
  uint64_t inside_messages = 0, other_messages = 0;

  Status Read(Fs& fs, SummaryDigest& digest) const;
  Result<ConversationFork> Fork(Fs& fs, Random& random, std::string_view summary,
                                int64_t now_ms) const;

 private:
  ForkRequest request_{.transcript = AbsPath::Literal("/")};
  Transcript transcript_;
  std::shared_ptr<const Fd> file_;
  FileStat stat_;
  TranscriptPart part_;
};

}  // namespace belay
