#pragma once

#include "base/fs.h"

namespace belay {

// `name` in `dir` and all below it, also what may not be entered. What is gone already
// is fine.
Status RemoveAll(Fs& fs, const Fd& dir, const Name& name);

}  // namespace belay
