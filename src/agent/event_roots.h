#pragma once

// Which protected directories an event is about.
//
// The place where a session was started counts first: the directory that an event
// names may be any that a shell stood in. Then come what the agent calls its
// workspaces, and that directory. A call that names files in other protected
// directories, or is made in one, is recorded there as well.
//
// What is no call (a prompt, an end) is recorded where the session was started, and
// matters wherever it has made calls: agent/elsewhere.h. A session that was started
// where nothing can be protected (the home directory) may count as begun elsewhere.
//
// Where a session was started, and where it made calls, is remembered in a file of the
// store (cache/sessions): a hint, bounded, without which the event's own directory
// counts.

#include <optional>
#include <span>
#include <vector>

#include "agent/event.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct EventRoots {
  // Where it is recorded, the session's own first; none when nothing is protected
  // there.
  std::vector<Root> here = {};
  // Of what is no call: others in which the session has made some. Of a start only
  // OtherRootsOf() knows them: nobody is to wait for that.
  std::vector<Root> elsewhere = {};
  bool news = false;     // a call is made where none of the session was remembered
  bool homeless = true;  // it is not known where the session was started
};
EventRoots RootsOf(Store& store, std::span<const RootEntry> roots,
                   const HookEvent& event);
std::vector<Root> OtherRootsOf(Store& store, std::span<const RootEntry> roots,
                               const std::string& session, std::span<const Root> here);
// Where the hook runs completes what the event says, or stands in its place: agents run
// hooks where they were started. (Hermes does not.)
void TakePlace(HookEvent& event, const std::optional<AbsPath>& here);
// A host may run them anywhere: where its session is known to have begun elsewhere that
// directory is none of the event's.
void LeavePlace(Store& store, std::span<const RootEntry> roots, HookEvent& event);
// Where the event takes place, as far as it says and it exists.
std::optional<AbsPath> PlaceOf(Fs& fs, const HookEvent& event);

void RememberSessionRoot(Store& store, const std::string& session, const RootId& root);
// Of a session that was started where nothing can be protected: it counts as begun
// where it makes its first call. Of one whose beginning is known nothing changes.
void RememberFirstRoot(Store& store, const std::string& session, const RootId& root);
void RememberCallsIn(Store& store, const std::string& session,
                     std::span<const Root> roots);

// When an agent was last heard of, to ten seconds: cache/agents.seen, a line "AGENT
// MILLISECONDS" each.
void RememberAgent(Store& store, AgentKind agent);

}  // namespace belay
