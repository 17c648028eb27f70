#pragma once

// Which root a directory was, beyond doubt, before it was renamed: for who asks nobody.
// `belay on --moved-from` takes a person's word for it instead.

#include <optional>

#include "base/fs.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// What FindMoved() (core/roots.h) finds, if the directory has the device and number of
// that root and something in it is as the last checkpoint saw it, to the nanosecond of
// its times: the number alone goes to the next directory that is made.
Result<std::optional<AbsPath>> MovedForCertain(Store& store, Catalog& catalog,
                                               const Fd& dir, const FileStat& stat);

}  // namespace belay
