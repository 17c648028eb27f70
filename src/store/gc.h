#pragma once

// Garbage collection: packs with too much that nobody wants are copied without it and
// replaced.
//
// Guarantees
//   * Nothing a wanted record leads to is ever removed, whatever other processes write
//     meanwhile; killed at any instruction, the store is as before or as after.
//   * Damage found on the way stops it with nothing removed (kCorrupt): what cannot be
//     read cannot be judged.
// Marking and copying run beside writers. Then, briefly alone: the records published
// since are marked too, what they need is copied, the manifest is swapped, old packs
// go.

#include <functional>

#include "store/store.h"

namespace belay {

struct GcOptions {
  // A pack is rewritten when at least this share of it is unwanted.
  double min_garbage = 0.2;
  // Rewrite every pack that holds anything unwanted, however little (purge).
  bool everything = false;
  bool dry_run = false;
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

struct GcReport {
  uint64_t packs_before = 0, packs_after = 0;
  uint64_t bytes_before = 0, bytes_after = 0;  // of all packs
  uint64_t objects_kept = 0, objects_removed = 0;
  uint64_t records_removed = 0;
  uint64_t leftovers_removed = 0;  // files of interrupted operations
  uint64_t reclaimable = 0;        // bytes unwanted when it began
};

Result<GcReport> CollectGarbage(Store& store, const GcOptions& options);

}  // namespace belay
