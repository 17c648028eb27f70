#pragma once

// Garbage collection: packs with too much that nobody wants are copied without it and
// replaced.
//
// Guarantees
//   * Nothing a wanted record leads to is ever removed, whatever other processes write
//     meanwhile; killed at any instruction, the store is as before or as after.
//   * Damage found on the way stops it with nothing removed (kCorrupt): what cannot be
//     read cannot be judged.
//   * Only SalvagePacks(), whose caller has decided that, goes on beside damage.
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
  // Bytes that copies may take while the old packs are still there: of those worth
  // rewriting, the ones that give back most for it and fit; when none does, the one
  // with the least to copy. What is left then is for another pass: CollectWithinCap()
  // (core/space.h) does as many as it takes.
  uint64_t room = UINT64_MAX;
  // `done` is `total` when all copies are made and nothing was removed yet.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

struct GcReport {
  uint64_t packs_before = 0, packs_after = 0;
  uint64_t packs_left = 0;  // worth rewriting, and there was no room for their copies
  uint64_t bytes_before = 0, bytes_after = 0;  // of all packs
  uint64_t objects_kept = 0, objects_removed = 0;
  uint64_t records_removed = 0;
  uint64_t leftovers_removed = 0;  // files of interrupted operations
  // Packs that look like leftovers and may hold what is missing: they stay.
  std::vector<std::string> spared;
  std::vector<std::string> foreign;  // packs of another store: they stay, too
  uint64_t reclaimable = 0;          // bytes unwanted when it began
  bool generation_changed = false;   // packs were replaced
};

Result<GcReport> CollectGarbage(Store& store, const GcOptions& options);

// Replaces these packs by copies of every record that can be read and every object that
// those want, damaged or missing as the packs may be, and nothing else. What cannot be
// read of them is given up, so the caller has made sure that it is not wanted or was
// told to. What still stops it (kCorrupt): an object that is wanted, cannot be read
// anywhere and is not named by a purge; and a record of `must_be_read` that cannot be
// read now, though it could when the caller looked. The old files stay, as
// "<name>.aside".
struct SalvageReport {
  std::vector<std::string> set_aside;  // new names, in packs/
};
Result<SalvageReport> SalvagePacks(
    Store& store, const std::vector<PackId>& packs,
    const std::vector<std::pair<uint64_t, RecordId>>& must_be_read);

}  // namespace belay
