#pragma once

// What forks of a conversation share, however they come about.

#include "agent/conversation.h"

namespace belay {

// The copy's id instead of the original's, and its paths.
std::vector<TranscriptSwap> SwapsFor(const ForkRequest& request,
                                     const std::string& old_id,
                                     const std::string& session);
std::string OldIdOf(const ForkRequest& request, const Transcript& transcript);

// Adds the files of the fork: what goes with the transcript, then itself.
Status AddForkFiles(Fs& fs, const ForkRequest& request, const std::string& old_id,
                    const std::vector<TranscriptSwap>& swaps,
                    ConversationFile transcript, ConversationFork& fork);

}  // namespace belay
