#pragma once

// What a purge must know of the directory as it is now.

#include <optional>
#include <string>

#include "base/fs.h"
#include "store/heads.h"

namespace belay {

// Whether something is at the path, on disk or in a git index: the next checkpoint
// would store it again. What cannot be looked at may be there: better left out of the
// next checkpoint than stored again.
bool IsStillThere(Fs& fs, const Root& root, const std::string& path);

// The hash of a file as it is now; nothing when it cannot be read.
std::optional<ObjectId> HashOnDisk(Fs& fs, const Root& root, const std::string& path);

}  // namespace belay
