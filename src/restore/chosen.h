#pragma once

// The paths and globs that somebody chose, held against the directory and the target.

#include "core/selection.h"
#include "restore/look.h"
#include "store/store.h"

namespace belay {

// A name that exists is that name: `[id].tsx` is a file in many projects.
void ResolveSelection(Store& store, Looker& looker, const ObjectId& target,
                      Selection& selection);
// kInvalid for one that neither the directory nor the target has. Once everything that
// differs was asked for.
Status CheckSelection(Store& store, Looker& looker, const ObjectId& target,
                      Selection& selection);

}  // namespace belay
