#pragma once

// One session as `belay sessions` and `belay show` tell of it.

#include "agent/session_view.h"
#include "cli/context.h"
#include "cli/open_root.h"

namespace belay {

// The members of a session's JSON object, without its braces. `goes_on`: the session
// that its conversation goes on as, or nothing: it begins anew.
void WriteSession(const SessionSummary& session, SessionState state,
                  const std::optional<std::string>& goes_on, JsonWriter& json);
// "goes on as 4f1c"; empty: as itself.
std::string GoesOnText(const SessionSummary& session,
                       const std::optional<std::string>& goes_on);
// "3 turns, 12 checkpoints (1 pinned), conversation 1.2 MiB"
std::string SessionFacts(const SessionSummary& session);
// "from 4f1c after turn 2", "subagent of 4f1c"; empty: it grew out of nothing.
std::string LineageText(const SessionSummary& session);

// `belay show` of a session.
ExitCode ShowSession(CommandContext& ctx, OpenedRoot& root, const std::string& session);

}  // namespace belay
