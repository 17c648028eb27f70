#pragma once

// The paths and globs that somebody chose, held against the directory and the target.

#include <string>
#include <vector>

#include "core/selection.h"
#include "core/state_view.h"
#include "restore/look.h"
#include "store/store.h"

namespace belay {

// A name that exists is that name: `[id].tsx` is a file in many projects.
void ResolveSelection(Store& store, Looker& looker, const ObjectId& target,
                      Selection& selection);
// Chosen by name, and not part of the target: there and not covered (or it would be
// among what differs), or gone and left out of the target.
struct NotHeld {
  std::string path;
  bool is_dir = false;
  Skip left_out = Skip::kNone;  // of what is gone
};
// kInvalid for one that neither the directory nor the target knows. Once everything
// that differs was asked for.
Result<std::vector<NotHeld>> CheckSelection(Store& store, Looker& looker,
                                            const StateView& target,
                                            Selection& selection);

}  // namespace belay
