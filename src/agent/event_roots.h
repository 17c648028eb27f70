#pragma once

// Which protected directories an event is about.
//
// The place where a session was started counts first: the directory that an event
// names may be any that a shell stood in. Then come what the agent calls its
// workspaces, and that directory. A call that names files in other protected
// directories, or is made in one, is recorded there as well.
//
// Where a session was started is remembered in a file of the store (cache/sessions): a
// hint, bounded, without which the event's own directory counts.

#include <optional>
#include <span>
#include <vector>

#include "agent/event.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// The session's own first; none when nothing is protected there.
std::vector<Root> RootsOf(Store& store, std::span<const RootEntry> roots,
                          const HookEvent& event);
// Where the event takes place, as far as it says and it exists.
std::optional<AbsPath> PlaceOf(Fs& fs, const HookEvent& event);

void RememberSessionRoot(Store& store, const std::string& session, const RootId& root);

// When an agent was last heard of, to ten seconds: cache/agents.seen, a line "AGENT
// MILLISECONDS" each.
void RememberAgent(Store& store, AgentKind agent);

}  // namespace belay
