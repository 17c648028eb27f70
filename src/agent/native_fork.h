#pragma once

// Conversations that are forked by the agent's own program: opencode keeps its own in a
// database, and Codex has a call for it.
//
// Guarantees
//   * Only the call that forks is made (of opencode also `export` and `import`): never
//     its `revert`, which writes files.
//   * The conversation itself stays as it is; the fork has a new id, and all before the
//     turn that is taken back.
//   * What its hooks tell of the fork is nothing that an agent does: kForkVariable is
//     set, and `belay hook` looks away.
//   * Bounded: the program is killed at the deadline, with its process group; what
//     it answers is hostile until checked, an id is one that can be an argument.

#include <span>
#include <string>
#include <vector>

#include "agent/transcript.h"
#include "base/fs.h"
#include "base/path.h"
#include "base/result.h"

namespace belay {

inline constexpr std::string_view kForkVariable = "BELAY_FORKING";
// How long the agent's program is waited for: opencode without a network takes more
// than a minute to start; and where a copy of a file does as well.
inline constexpr int64_t kNativeForkMs = 120'000;
inline constexpr int64_t kNativeForkElseCopyMs = 30'000;

struct NativeFork {
  std::string session;  // the new one
  // Where its conversation is kept; empty where nobody said.
  std::string path = {};
};

struct NativeForkRequest {
  AbsPath program;                       // of the agent
  std::vector<std::string> environment;  // "NAME=value"
  AbsPath directory;                     // where it works
  std::string session;
  int64_t timeout_ms = kNativeForkMs;
};

// With all messages before `message` (`msg_...`; empty: with all), which must be the
// session's own: of any other opencode keeps what is older than it.
Result<NativeFork> ForkByOpencode(const NativeForkRequest& request,
                                  const std::string& message);
// With everything up to the turn `last_turn`, and that one too. Its file holds none of
// that, but says whose file does.
Result<NativeFork> ForkByCodex(const NativeForkRequest& request,
                               const std::string& last_turn);
// Whether its file is there, and the last turn that it has, or has of the file
// `original` of `session`, or of its older ones, which have the prompts `older`, is
// that one, or is the last that the session inherited, and no turn lives in it that the
// agent took back: a Codex that does not know `lastTurnId` forks everything, and says
// nothing.
Status CheckForkOfCodex(Fs& fs, const NativeFork& fork, const std::string& session,
                        const AbsPath& original,
                        std::span<const TranscriptPrompt> older,
                        const std::string& last_turn);

// opencode's own fork stays in the directory of the session. For another one there are
// these two, each run in `directory` of the request.
inline constexpr size_t kLongestExport = 128u << 20;
// What `opencode export` says of the session; kInvalid when that is too much.
Result<std::string> ExportByOpencode(const NativeForkRequest& request,
                                     size_t longest = kLongestExport);
// Has opencode take the export in `file`, and say that it is now the session of the
// request.
Status ImportByOpencode(const NativeForkRequest& request, const AbsPath& file);

}  // namespace belay
