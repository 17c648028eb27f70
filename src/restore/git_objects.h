#pragma once

// Objects that a wanted index names and that git has no more, written again from the
// store, as files of their own.
//
// Guarantees
//   * An object has its name only when it is whole and flushed. Those that are there
//     stay as they are.
//   * A crash leaves at most one temporary file, beneath a name that the operation
//     alone uses: writing again makes it anew, TidyGitObjects() removes it.

#include "core/operations.h"
#include "restore/git_plan.h"

namespace belay {

// `dir`: the common git directory.
Status WriteGitObjects(Store& store, const Fd& dir, const GitMove& move,
                       const RecordId& operation);
Status TidyGitObjects(Fs& fs, const Fd& dir, const RecordId& operation);

}  // namespace belay
