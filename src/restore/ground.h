#pragma once

// The last looks at a plan before anything is done by it: whether the store can give
// all that it needs, and whether the directory takes it.

#include "restore/plan.h"

namespace belay {

// For changes that were planned elsewhere (undo, redo): checks that can only be made on
// the spot. Immutable files and short space refuse (kRefused, kNoSpace); attributes
// that we may not set are adjusted with a warning; files that others have open for
// writing are named.
Status CheckGround(Fs& fs, const Fd& root, const PlanOptions& options, Plan& plan);

// Who is not root cannot give files away: what the change would give to others stays
// ours. True: it did.
bool MakeOurs(const PlanOptions& options, PathChange& change);

// What putting `changes` in their places takes of the disk, added to what the plan
// needs already: new content is there beside the old for a while.
void AddNeeds(const std::vector<PathChange>& changes, Plan& plan);
// Whether the file system that `dir` is on takes what the plan needs: kRefused when it
// is read-only, kNoSpace when there is less.
Status CheckRoom(Fs& fs, const Fd& dir, const Plan& plan);

// `fine` as it is, or in a plan that is only shown among what is shown.
Status RefuseOrShow(const PlanOptions& options, Status fine, Plan& plan);

// Reads all content that `changes` need; what is damaged is named in the error
// (kCorrupt), or with skip_damaged taken out and kept.
Status CheckContent(Store& store, const PlanOptions& options, Plan& plan);

}  // namespace belay
