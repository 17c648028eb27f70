#pragma once

// What a conversation's file only refers to (Transcript::refers): what was said before
// it is in the file of the session that Codex forked it from, or in an older one of the
// session itself, since Codex begins another when it goes back.
//
// Guarantees
//   * The files are only read. Where one is gone its copy stands for it.
//   * Bounded: as many generations as kMostReferred, one transcript each.

#include <string>
#include <vector>

#include "agent/aftermath.h"
#include "agent/transcript.h"

namespace belay {

inline constexpr size_t kMostReferred = 16;

struct ReferredFile {
  std::string session;
  ConversationPlace place;
  // What is not referred to is dead in it.
  Transcript transcript;
  uint64_t until = 0;
};
struct ReferredFiles {
  std::vector<ReferredFile> files;  // newest first
  bool whole = true;                // false: one of them cannot be found or read
};

// Where that is which the file of `session` at `place` refers to.
Result<ConversationPlace> FindReferred(Store& store, Catalog& catalog,
                                       const std::string& session,
                                       const ConversationPlace& place,
                                       const Transcript& transcript);
// All of it. `prompts` as for ReadTranscript.
ReferredFiles ReadReferred(Store& store, Catalog& catalog, const std::string& session,
                           const ConversationPlace& place, const Transcript& transcript,
                           std::span<const TurnRecord> prompts = {});

// How many messages of a conversation are not dead.
uint64_t CountLiving(const Transcript& transcript);
// `transcript` with what is in `before`, as one.
Transcript Joined(Transcript before, Transcript transcript);

}  // namespace belay
