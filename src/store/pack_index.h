#pragma once

// PackIndex finds records of one pack by key: a hash table in the file `<pack>.idx`.
//
// It is a hint and never flushed. A hit is checked against the pack by the caller; a
// miss may be the table's fault, so a reader that must know scans the pack (Store
// does). What the file does not cover yet is held in memory after a short scan. Layout:
// docs/format.md, ".idx".
//
// Threads: Candidates() from any thread; Write() under the append lock.

#include <functional>
#include <unordered_map>
#include <vector>

#include "base/fs.h"
#include "base/ids.h"
#include "store/object.h"
#include "store/pack_file.h"

namespace belay {

struct IndexEntry {
  ObjectKey key;
  uint64_t offset = 0;
};
// What an index holds: every object of the pack, as far as it can be read.
Result<std::vector<IndexEntry>> ObjectsIn(const PackFile& file, uint64_t from,
                                          uint64_t limit);

class PackIndex {
 public:
  PackIndex() = default;
  static Name FileName(const PackId& id);
  // Opens the table; absent, damaged, unreadable, foreign or no file at all: an empty
  // one that covers nothing.
  static Result<PackIndex> Load(Fs& fs, const Fd& packs_dir, const PackId& id);

  // Batches ending at or before this offset are in the table or in memory.
  uint64_t covered() const { return covered_; }
  // Entries known only to this process (batches the table does not cover yet).
  void AddInMemory(const std::vector<IndexEntry>& entries, uint64_t covered);

  // Offsets at which `key` might lie.
  Result<std::vector<uint64_t>> Candidates(const ObjectKey& key) const;

  // Adds `entries` to the table on disk, growing or creating it, after which it covers
  // up to `covered`. `all` yields every entry of the pack when the table must be built
  // anew. Failures leave a table that is less complete, never wrong.
  static Status Write(Fs& fs, const Fd& packs_dir, const PackId& id,
                      const std::vector<IndexEntry>& entries, uint64_t from,
                      uint64_t covered,
                      const std::function<Result<std::vector<IndexEntry>>()>& all);
  static Status WriteWhole(Fs& fs, const Fd& packs_dir, const PackId& id,
                           const std::vector<IndexEntry>& entries, uint64_t covered);

 private:
  Fs* fs_ = nullptr;
  Fd file_;
  uint32_t log2_slots_ = 0;
  uint64_t covered_ = 0;
  std::unordered_multimap<ObjectKey, uint64_t> memory_;
};

}  // namespace belay
