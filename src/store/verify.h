#pragma once

// Verify: is everything that was acknowledged still there and what it claims to be?
//
// Reads every batch header, record header, tree, state, chunk list and log record; with
// read_data every byte. Damage is named where it lies and by the checkpoints and paths
// it hits. Rebuildable files (index, tail) are not damage: they are checked against the
// packs and a mismatch is a note, because no answer depends on them.

#include <functional>

#include "store/store.h"

namespace belay {

struct VerifyOptions {
  bool read_data = false;
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // bytes of packs
};

struct HitCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> paths;  // bytes; at most kMaxPaths, in order
  uint64_t more_paths = 0;
  static constexpr size_t kMaxPaths = 20;
};

struct VerifyReport {
  uint64_t packs = 0, batches = 0, objects = 0, records = 0, bytes = 0;
  std::vector<std::string> damage;
  std::vector<HitCheckpoint> hit;
  std::vector<std::string> notes;
  bool clean() const { return damage.empty(); }
};

Result<VerifyReport> VerifyStore(Store& store, const VerifyOptions& options);

}  // namespace belay
