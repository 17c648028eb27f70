#pragma once

// ImportBundle: the checkpoints of a bundle become checkpoints of a root.
//
// Guarantees
//   * All that is missing is published by one batch, the last; killed, failed or
//     without power before, no checkpoint is there, and what was stored is garbage.
//   * Importing again changes nothing: what is there is found by its id.
//   * Ids are kept unless another record has or had them; names, notes, times, sessions
//     and meta are kept; sequence numbers are new, in the order of the bundle.
//   * What was purged here and nobody stored since is not brought back, whoever purges
//     meanwhile: a checkpoint that had such content comes without it and says purged,
//     one of which more than content was erased (with its session) does not come.
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
  bool lacks_purged = false;  // content of it was purged here before
  bool was_purged = false;    // it was erased here, with its session: not imported
};

struct ImportReport {
  std::vector<ImportedCheckpoint> checkpoints;  // in the order of the bundle
  uint64_t imported = 0;                        // of them
  uint64_t bytes_stored = 0;
  uint64_t purged = 0;  // contents that were purged here before, and did not come
};

Result<ImportReport> ImportBundle(Store& store, BundleReader& bundle,
                                  const ImportRequest& request);

}  // namespace belay
