#pragma once

// The store is its owner's alone, and stays so whatever others do to it: its modes, and
// what lies under a name of ours without being ours.

#include <string>
#include <vector>

#include "base/fs.h"

namespace belay {

// What in the store other users may read or write, or only reach, by its modes; with
// `put_right` it is made private to its owner.
Result<std::vector<std::string>> OpenToOthers(Fs& fs, const Fd& home, bool put_right);

// Renames what is not ours and in the way to "<name>.aside"; its new name.
Result<Name> MoveAside(Fs& fs, const Fd& dir, const Name& name);

}  // namespace belay
