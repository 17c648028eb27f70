#pragma once

// The conversation that goes along with a fork of a directory: a copy under a new id,
// cut where the files are, whose paths lead to the new directory, in the place where
// the agent looks for conversations of that directory.
//
// Guarantees: as agent/rewind.h; PlanForkChat writes nothing. Where the agent's own
// program has to make the copy (opencode) that comes after the directory, and until it
// is recorded a note names it (restore/fork_note.h).

#include <optional>
#include <string>
#include <vector>

#include "agent/aftermath.h"
#include "agent/conversation.h"
#include "agent/rewind.h"
#include "restore/chat_plan.h"

namespace belay {

struct ForkChatRequest {
  std::string session;
  std::optional<uint64_t> turn = {};  // before this prompt; else all of it
  AbsPath from, to;                   // the directories
};

struct ForkChat {
  AgentKind agent = AgentKind::kGeneric;
  ChatPlan chat;
  // The agent's own program makes it: of what was said before this message (empty: of
  // all) in the session, or where that only inherited the message, in the one it was
  // said in. `chat` has no files then.
  struct Native {
    std::string session, message = {};
    std::vector<AbsPath> from;  // all paths of the directory
    AbsPath to;
  };
  std::optional<Native> native = {};
  std::optional<ConversationPlace> place = {};  // holds what is read of it
  std::vector<std::string> warnings = {};
};
// Nothing when nothing is left of it. kUnsupported where it cannot be had.
Result<std::optional<ForkChat>> PlanForkChat(Store& store, Catalog& catalog,
                                             const ForkChatRequest& request);

// Has the agent's program make the copy that `along.native` says, for the directory
// that is there by now, and records it as a session of the maker's root. False: nothing
// is left of the conversation.
Result<bool> MakeForkChat(const ForkMaker& maker, ForkChat& along);

// Where in a forked directory the agent works.
std::string CwdInFork(const std::string& cwd, const AbsPath& from, const AbsPath& to);

}  // namespace belay
