#pragma once

// CheckPlace: whether a directory is one that somebody may mean to protect.

#include <optional>

#include "base/fs.h"
#include "base/path.h"
#include "base/result.h"

namespace belay {

// Refused (kRefused, with what to do): the store itself and what is in it, what are not
// files (/proc, /dev); and unless forced the whole machine, the home directory, what
// holds that, and git directories. `dir` is a real path, open as `fd`.
Status CheckPlace(Fs& fs, const AbsPath& dir, const Fd& fd, const AbsPath& store_dir,
                  const std::optional<AbsPath>& home, bool force);

}  // namespace belay
