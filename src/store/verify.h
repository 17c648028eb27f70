#pragma once

// Verify: is everything that was acknowledged still there and what it claims to be?
//
// Reads every batch header, record header, tree, state, chunk list and log record; with
// read_data every byte. Damage is named where it lies and by the checkpoints and paths
// it hits; where a record of the log itself is gone, by what the catalogue remembers of
// it. Rebuildable files (index, tail) are not damage: they are checked against the
// packs and a mismatch is a note, because no answer depends on them. Changes nothing
// (the empty file `lock` is created when it is not there).

#include <functional>

#include "store/catalog.h"

namespace belay {

struct VerifyOptions {
  bool read_data = false;
  std::vector<RememberedRecord> remembered = {};  // Catalog::Remembered()
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // bytes of packs
};

struct HitCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> paths;  // bytes; at most kMaxPaths, in order
  uint64_t more_paths = 0;
  bool record_lost = false;  // then perhaps without a path: all its files are there
  bool in_no_list = false;   // what is stored of it is there, and nobody comes to it
  static constexpr size_t kMaxPaths = 20;
};

struct VerifyReport {
  uint64_t packs = 0, batches = 0, objects = 0, records = 0, bytes = 0;
  std::vector<std::string> damage;
  std::vector<HitCheckpoint> hit;
  std::vector<std::string> notes;
  bool data_read = false;

  // Records of any kind that the log lost and the catalogue remembers.
  std::vector<LogRecord> lost_records;
  // How many more there may have been at most, of which nobody knows anything. (Numbers
  // of records that were collected cannot be told from those of lost ones.)
  uint64_t unknown_records = 0;
  // Nothing says how many: there may have been any number more.
  bool uncounted_records = false;
  // Objects that a checkpoint needs and of which no copy can be read.
  std::vector<ObjectKey> lost_objects;
  std::vector<PackId> damaged_packs;
  // Every record of the log that was read: number and id.
  std::vector<std::pair<uint64_t, RecordId>> read_records;

  bool clean() const { return damage.empty(); }
  // Whatever is damaged, everything that counts is there a second time.
  bool nothing_lost() const {
    return lost_records.empty() && unknown_records == 0 && lost_objects.empty();
  }
};

// "up to 3 records", or "records, nobody can tell how many,".
std::string UnknownRecordsText(const VerifyReport& report);

Result<VerifyReport> VerifyStore(Store& store, const VerifyOptions& options);

}  // namespace belay
