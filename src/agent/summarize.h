#pragma once

// Summarizing a part of a conversation: the part found, read, and the fork in which the
// summary stands for it, made ready for restore/ to publish.
//
// Guarantees: as agent/rewind.h. Nothing is written here, the agent's own file is only
// read; of agents and hosts whose conversation cannot be changed from outside:
// kUnsupported, with what to do.

#include <optional>
#include <string>

#include "agent/aftermath.h"
#include "agent/conversation_part.h"
#include "restore/chat_plan.h"

namespace belay {

struct SummarizeRequest {
  std::string session;
  std::optional<uint64_t> from = {};   // from the prompt of this turn on
  std::optional<uint64_t> until = {};  // to before the prompt of this one
  AbsPath root;  // where the agent is taken to have worked when nobody said
};

struct SummaryPlan {
  ChatPlan chat;  // without files until MakeSummarizedFork
  ConversationPart part;
  std::optional<ConversationPlace> place = {};  // holds what is read of it
};
// kNotFound when there is no such turn, kRefused when nothing is in the part.
Result<SummaryPlan> PlanSummary(Store& store, Catalog& catalog,
                                const SummarizeRequest& request);

// The summary of the part: what the command answers, or without one an extract.
Result<std::string> MakeSummary(Fs& fs, const SummaryPlan& plan,
                                const std::optional<Argv>& command,
                                const UserHookPlace& place, const std::string& root);

Status MakeSummarizedFork(Store& store, std::string_view summary, SummaryPlan& plan);

}  // namespace belay
