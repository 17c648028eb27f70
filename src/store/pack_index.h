#pragma once

// PackIndex finds records of one pack by key: a hash table in the file `<pack>.idx`.
//
// It is a hint and never flushed. A hit is checked against the pack by the caller; a
// miss may be the table's fault, so a reader that must know scans the pack (Store
// does). What the file does not cover yet is held in memory after a short scan. Layout:
// docs/format.md, ".idx".
//
// Its first block holds the newest entries, in order, so that a batch of a dozen
// objects is one write of one block, and opening is one read; they move to the table, a
// dozen blocks at random, when the block is full.
//
// Threads: Candidates() and AddInMemory() from any thread; Write() under the append
// lock.

#include <functional>
#include <memory>
#include <mutex>
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
  PackIndex() : state_(std::make_unique<State>()) {}
  static Name FileName(const PackId& id);
  // Opens the table; absent, damaged, unreadable, foreign or no file at all: an empty
  // one that covers nothing.
  static Result<PackIndex> Load(Fs& fs, const Fd& packs_dir, const PackId& id);

  // Batches ending at or before this offset are in the table or in memory.
  uint64_t covered() const;
  // The same for the file alone, as it was when it was loaded.
  uint64_t file_covered() const { return file_covered_; }
  // How far the pack was flushed when the file was written, at least; 0: not told.
  uint64_t flushed() const { return flushed_; }
  size_t entries_in_memory() const;
  // Entries known only to this process: batches in [from, to) that the file does not
  // cover. Without effect unless `from` is where the known ones end.
  void AddInMemory(const std::vector<IndexEntry>& entries, uint64_t from, uint64_t to);

  // Offsets at which `key` might lie.
  Result<std::vector<uint64_t>> Candidates(const ObjectKey& key) const;

  // Adds `entries`, of the batches in [from, to), to the file, growing or creating it,
  // after which it covers up to `to`. `scan` yields the entries of a range of the pack:
  // for what the file lacks before `from`, or for all of it when it must be built anew.
  // Failures leave a file that is less complete, never wrong. The pack is flushed up to
  // `flushed`.
  using Scan =
      std::function<Result<std::vector<IndexEntry>>(uint64_t from, uint64_t to)>;
  static Status Write(Fs& fs, const Fd& packs_dir, const PackId& id,
                      std::vector<IndexEntry> entries, uint64_t from, uint64_t to,
                      const Scan& scan, uint64_t flushed = 0);
  static Status WriteWhole(Fs& fs, const Fd& packs_dir, const PackId& id,
                           const std::vector<IndexEntry>& entries, uint64_t covered,
                           uint64_t flushed = 0);

 private:
  std::shared_ptr<const std::byte[]> Table() const;

  Fs* fs_ = nullptr;
  Fd file_;
  uint32_t log2_slots_ = 0;
  uint64_t file_covered_ = 0;
  uint64_t flushed_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> recent_;  // key and offset, as in the file

  struct State {
    std::mutex mutex;  // guards what follows; never held over IO
    uint64_t covered = 0;
    std::unordered_multimap<ObjectKey, uint64_t> memory;
    uint64_t searches = 0;
    std::shared_ptr<const std::byte[]> table;  // read whole after many searches
  };
  std::unique_ptr<State> state_;
};

}  // namespace belay
