#pragma once

// Going on with a conversation where it stands: which session that is, by which program
// and where. Nothing is run here, and nothing is written.

#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "core/chat.h"
#include "store/catalog.h"

namespace belay {

// How `session` is gone on with: program and arguments, and where.
struct Resumption {
  std::string session;  // that goes on: a fork, where the conversation was taken back
  bool anew = false;    // of what was said nothing is left: the agent begins anew
  AgentKind agent = AgentKind::kGeneric;
  std::vector<std::string> command = {};
  std::string cwd = {};
};
// kUnsupported where a host keeps it, or the agent cannot resume.
Result<Resumption> PlanResume(Catalog& catalog, const std::string& session);
// kRefused when the file that the agent would go on with is gone.
Status CheckResumable(Fs& fs, Catalog& catalog, const Resumption& resumption);
// Only its beginning was kept: it is as long as one can be.
bool IsPromptCut(std::string_view prompt);

// Of one that was just taken back.
Resumption ResumptionOf(const ChatRecord& chat);
// Of one that an undo or redo was about.
Resumption ResumptionOf(const ChatRecord& chat, const ChatStanding& stands);

}  // namespace belay
