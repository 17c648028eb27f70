#pragma once

// The conversation that goes along with a fork of a directory: a copy under a new id,
// cut where the files are, whose paths lead to the new directory, in the place where
// the agent looks for conversations of that directory.
//
// Guarantees: as agent/rewind.h; nothing is written here. Where the agent's own program
// has to make the copy (opencode) that comes after the directory, and the paths in it
// are as they were.

#include <optional>
#include <string>
#include <vector>

#include "agent/aftermath.h"
#include "agent/conversation.h"
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
  std::optional<ConversationPlace> place = {};  // holds what is read of it
  std::vector<std::string> warnings = {};
};
// Nothing when nothing is left of it. kUnsupported where it cannot be had.
Result<std::optional<ForkChat>> PlanForkChat(Store& store, Catalog& catalog,
                                             const ForkChatRequest& request);

// Where in a forked directory the agent works.
std::string CwdInFork(const std::string& cwd, const AbsPath& from, const AbsPath& to);

}  // namespace belay
