#pragma once

// Recovery as a rollback, undo or redo begins with it, under the root's lock.

#include "restore/rollback.h"

namespace belay {

// What was interrupted is finished or taken back. What waits for a directory that is
// gone, or for one that something is mounted over, is not written over (kRefused),
// unless somebody says so (`force`).
Result<std::optional<Recovered>> RecoverOrRefuse(Store& store,
                                                 const RollbackRequest& request);

}  // namespace belay
