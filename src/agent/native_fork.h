#pragma once

// Conversations that are forked by the agent's own program: opencode keeps its own in a
// database, and Codex has a call for it.
//
// Guarantees
//   * Only the call that forks is made: never opencode's `revert`, which writes files.
//   * The conversation itself stays as it is; the fork has a new id, and all before the
//     turn that is taken back.
//   * Bounded: the program is killed at the deadline, with everything it started; what
//     it answers is hostile until checked, an id is one that can be an argument.

#include <string>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace belay {

struct NativeForkRequest {
  AbsPath program;                       // of the agent
  std::vector<std::string> environment;  // "NAME=value"
  AbsPath directory;                     // where the agent worked
  std::string session;
  int64_t timeout_ms = 120'000;
};

// The new session, with all messages before `message` (`msg_...`; empty: with all).
Result<std::string> ForkByOpencode(const NativeForkRequest& request,
                                   const std::string& message);
// The new session, with everything up to the turn `last_turn`, and that one too.
Result<std::string> ForkByCodex(const NativeForkRequest& request,
                                const std::string& last_turn);

}  // namespace belay
