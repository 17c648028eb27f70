#pragma once

// Pairs of a file that went and one that came with the same or similar content.
//
// Exact ones first, by content id, nothing read. Then files of similar size are
// compared by the lines they have in common, the same name in another directory first;
// at least half must be the same. Bounded: by files, by pairs and by bytes read.

#include "diff/state_diff.h"

namespace belay {

Status FindRenames(const DiffSide& from, const DiffSide& to, StateDiff& diff);

}  // namespace belay
