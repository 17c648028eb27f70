#pragma once

// A command `/rollback` of somebody else's.
//
// Where an agent has no command files, or ours is not installed, a hook answers
// `/rollback`. It must not answer for one that the user, or the project, has made.

#include "agent/event.h"
#include "agent/install.h"

namespace belay {

// Whether a file of that name is there which is not ours: of the user's, of `from`, or
// of a directory above it up to `root`. One that cannot be read is not ours.
bool HasRollbackOfOthers(Fs& fs, AgentKind agent, const InstallPlaces& places,
                         const AbsPath& from, const AbsPath& root);

}  // namespace belay
