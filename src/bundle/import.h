#pragma once

// ImportBundle: the checkpoints of a bundle become checkpoints of a root.
//
// Guarantees
//   * All that is missing is published by one batch, the last; killed, failed or
//     without power before, no checkpoint is there, and what was stored is garbage.
//   * Importing again changes nothing: what is there is found by its id.
//   * Ids are kept unless another record has or had them; names, notes, times, sessions
//     and meta are kept; sequence numbers are new, in the order of the bundle.
//   * One import at a time in a store. The cap and the floor of the store hold.

#include <functional>
#include <vector>

#include "bundle/reader.h"
#include "core/settings.h"

namespace belay {

struct ImportRequest {
  Root root;
  const Settings* settings = nullptr;  // none: no cap, no floor
  int64_t lock_wait_ms = 10'000;
  BundleReader::ProgressFn progress = {};
};

struct ImportedCheckpoint {
  Checkpoint checkpoint;  // as it is in the store now
  RecordId id_in_bundle;
  bool was_there = false;
};

struct ImportReport {
  std::vector<ImportedCheckpoint> checkpoints;  // in the order of the bundle
  uint64_t imported = 0;                        // of them
  uint64_t bytes_stored = 0;
};

Result<ImportReport> ImportBundle(Store& store, BundleReader& bundle,
                                  const ImportRequest& request);

}  // namespace belay
