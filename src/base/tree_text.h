#pragma once

// A directory tree as text, for comparing two of them and for showing the difference.
//
// One line per path, sorted: "d 0755 dir", "f 0644 dir/file 5 \"hello\"", "l 0777 link
// -> target". Content over 64 bytes is shown by its size and hash. Owners, times and
// inode numbers are left out.

#include <string>

#include "base/fs.h"

namespace belay {

Result<std::string> TreeText(Fs& fs, const Fd& root);

}  // namespace belay
