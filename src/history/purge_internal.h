#pragma once

// The second half of a purge, after its records were published.

#include "history/purge.h"

namespace belay {

// Until nothing is left of it, or somebody keeps us from it for too long.
Status Erase(Store& store, const PurgeRequest& request, PurgeReport& report);

}  // namespace belay
