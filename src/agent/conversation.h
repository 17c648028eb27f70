#pragma once

// A conversation taken back: what continues it from before a turn, made ready and
// written by nobody here.
//
// Guarantees
//   * The transcript of the agent is only read; what goes on is a copy under a new id,
//     in the place where the agent's own resume looks for it (agent/transcript_cut.h).
//   * Nothing is found by position: a turn is the prompt with its anchor, or, of agents
//     whose hooks tell none, the prompt with its words, where turns and prompts in
//     their order leave no other (agent/turn_match.h).
//   * An agent whose conversation cannot be taken back from outside is said to be one
//     (kUnsupported, with what to do), before anything else is done.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/transcript_cut.h"
#include "base/random.h"
#include "store/log_record.h"

namespace belay {

// Where a conversation is cut.
struct ConversationPoint {
  std::optional<TurnRecord> turn = {};      // before this prompt ...
  std::optional<std::string> message = {};  // ... or before this message of the agent's
  std::vector<TurnRecord> turns = {};       // all of the session, in their order
  // By the place in `turns`, where known: how else the prompt may read, in copies whose
  // directory was forked.
  std::vector<std::vector<std::string>> read_in = {};
  // Of those that a summary stands for, too, which are not among `turns`.
  uint64_t newest = 0;
  uint64_t NewestTurn() const {
    return turns.empty() ? newest : std::max(newest, turns.back().turn);
  }
};

// A text as a copy has it that went along to another directory from one that was called
// all of `from`.
std::string InForkedDirectory(const std::string& text, const std::vector<AbsPath>& from,
                              const AbsPath& to);

struct ConversationFile {
  AbsPath path;
  uint32_t mode = 0600;
  uint64_t size_at_most = 0;
  std::function<Status(const TranscriptSink&)> content = {};
};

struct ConversationFork {
  AgentKind agent = AgentKind::kGeneric;
  std::string session = {};                  // that goes on
  std::string parent = {};                   // that it was cut from
  std::vector<ConversationFile> files = {};  // none of them is there yet
  std::string prompt = {};                   // what was taken back, to be edited
  uint64_t kept_messages = 0, taken_messages = 0;
  bool counted = true;  // false: of very many messages those are the newest alone
  bool refers = false;  // to another file, for what is kept beside those messages
  // Of the last prompt that is still in it, where that has an id which hooks tell, too,
  // and is part of the conversation as it is now.
  std::optional<std::string> last_kept = {};
  bool keeps_prompts = false;
  uint64_t kept_turns = 0;  // prompts of the conversation that are still in it
  bool IsEmpty() const;     // nothing that was said is in it
  // As far as they are known.
  std::optional<uint64_t> Kept() const;
  std::optional<uint64_t> Taken() const;
  // Of the turns that were asked about: the first that is taken back as a whole, and up
  // to which number they stay, at least a part.
  std::optional<uint64_t> turn = {};
  uint64_t inherited = 0;
  bool recorded = true;  // false: a prompt before that one goes, too, that nobody told
  bool inside = false;   // the cut is within that one
  bool spares_calls = false;  // TranscriptCut
  // Id of the message or prompt that goes first: where the one that was named is among
  // calls and their answers, the message that made the calls.
  std::string first_taken = {};
  uint32_t uid = 0, gid = 0;  // of the transcript
};

// Whether the conversation of this agent is a file that can be cut. kUnsupported says
// what to do instead.
Status CheckConversation(AgentKind agent);

// `transcript` is where the agent, or a copy of ours (then `place` is where the agent
// had it), keeps the conversation. Without a point all of it is forked. `moved`: the
// fork works in another directory, and the paths in it lead there.
struct ForkRequest {
  AgentKind agent = AgentKind::kGeneric;
  std::string session = {};
  AbsPath transcript;
  std::optional<AbsPath> place = {};
  ConversationPoint point = {};
  // What is asked about only refers to this file, up to that record (Transcript).
  std::optional<uint64_t> until = {};
  struct Moved {
    // All paths that the directory had: it may have been moved.
    std::vector<AbsPath> from = {};
    AbsPath to;
    std::vector<std::string> cwd_from = {};  // where the agent works in each of them
    std::string cwd_to = {};
  };
  std::optional<Moved> moved = {};
};
Result<ConversationFork> PlanConversationFork(Fs& fs, Random& random,
                                              const ForkRequest& request);

// Of a file that only refers to another's for what came before (Transcript::refers),
// where all of the conversation is wanted. `first`: the first turn that it has itself.
Error OnlyRefers(const ForkRequest& request, const Transcript& transcript,
                 const std::optional<uint64_t>& first);

// The command that goes on with a conversation: program and arguments.
std::vector<std::string> ResumeCommand(AgentKind agent, std::string_view session);

// A new random id in the form that agents take: a UUID (version 4).
std::string NewUuid(Random& random);

}  // namespace belay
