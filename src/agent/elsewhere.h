#pragma once

// What is told of a session and is no call matters in every directory in which it has
// made some: that calls are over whose end nobody told, and whether the agent or its
// user is at work.
//
// It is recorded where the session was started (agent/event_roots.h). In the others
// there is no record of it, no checkpoint, and nobody looks at the directory: whose
// doing the next look's findings are is shared with outside where that is not known.

#include "agent/recorder.h"

namespace belay {

// Of a prompt, an end, a start, told after it was recorded. `at_home`: the session as
// it is there since, whose turn has one number everywhere; null where nothing is
// protected. A session that the root does not know made no call there, and nothing
// happens.
Status TellElsewhere(Store& store, const RecordRequest& request, const HookEvent& event,
                     const LiveSession* at_home);

// By it the turn before is over, if nobody said so before: its user stopped it, nobody
// knows when. A prompt that nobody wrote comes when the agent waits for one, too; but
// not the empty one that it tells itself between two requests to the model.
bool EndsUntold(const HookEvent& event);

// The calls of the session that are over by an end or a start of it.
void EndWhatIsOver(Live& live, const HookEvent& event, int64_t now_ms);

}  // namespace belay
