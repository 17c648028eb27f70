#pragma once

// Appender puts a prepared batch at the end of the open pack: the one place where the
// store's files grow.
//
// Order (docs/format.md, "Order of writes"), all of it under the append lock:
//   1. Bytes beyond the flushed mark are checked; a torn end is cut off.
//   2. A pack that would grow too long, or is of an older version, is flushed and
//      sealed, another one started. Deltas whose bases are not in the pack that the
//      batch goes to are made whole.
//   3. The batch is written in one go, then flushed once. Only now is it acknowledged.
//   4. Index and tail follow; a kill before or between them costs a later scan, no
//   data.
// On any failure the pack is cut back to where it was. A failed flush seals the pack at
// the flushed mark and is not tried again.

#include "store/store.h"

namespace belay {

// More than a pack of the usual size has room for: left out where the end of one is
// gone and nobody knows how many it gave. So they count as unknown, too.
inline constexpr uint64_t kMostNumbers = uint64_t{1} << 22;

// A batch whose body is final: built and hashed before any lock is taken.
struct PreparedBatch {
  // Room for the header, then the body; Append() adds the trailer.
  Bytes bytes = Bytes(kBatchHeaderSize);
  uint64_t log_offset = 0;  // within the body
  uint32_t object_count = 0;
  uint32_t log_count = 0;
  uint32_t flags = 0;
  Hash256 body_hash;
  std::vector<IndexEntry> entries;  // offsets relative to the body
  // The pack that holds the bases of its deltas; zero: it has none. Appended to another
  // one, the batch is made whole first.
  PackId base_pack;

  uint64_t body_length() const { return bytes.size() - kBatchHeaderSize; }
  void AddObject(const RecordHeader& header, ByteSpan stored);
  // All objects come before the first record.
  void AddLog(const LogRecord& record);
  // Computes the body's hash; nothing may be added afterwards.
  void Seal();

 private:
  void AddRecord(const RecordHeader& header, ByteSpan stored);
};

struct Appended {
  PackId pack;
  uint64_t offset = 0;
  uint64_t end = 0;
  uint64_t first_seq = 0;
  Hash256 body_hash;
};

class Appender {
 public:
  explicit Appender(Store& store) : store_(store) {}

  // `flush` false: objects ahead of the batch that will make them count. That one names
  // them in `ahead`: another process whose flush failed may have cut them off, and then
  // it must not count. What was appended is used up: `batch` is then empty.
  Result<Appended> Append(PreparedBatch& batch, bool flush,
                          const std::vector<Appended>& ahead = {},
                          const std::function<Status()>& still_true = {});
  // Makes the open pack's end durable and known when no tail says where it is, so that
  // what it holds may be relied on.
  Status Settle();

  // The same for callers that hold the append lock (GC's swap).
  // Seals the open pack as it is, if there is one with anything in it.
  Status SealOpenPack();
  // Starts another pack file; the caller writes the manifest.
  struct PackPlace {
    Fs& fs;
    Clock& clock;
    Random& random;
    const Fd& packs_dir;
  };
  static PackPlace PlaceIn(Store& store) {
    return {store.fs(), store.clock(), store.random(), store.packs_dir()};
  }
  static Result<PackFile> CreatePack(const PackPlace& place, const StoreId& store_id,
                                     bool by_gc);
  // Writes a sealed batch into a pack nobody else knows yet (GC, repair).
  static Result<uint64_t> WriteBatch(Fs& fs, Clock& clock, const PackFile& file,
                                     uint64_t offset, PreparedBatch& batch,
                                     uint64_t first_seq, uint64_t flushed_mark);

 private:
  struct End {
    Manifest manifest;
    std::shared_ptr<const PackFile> file;  // held by the store too
    uint64_t flushed = 0;
    uint64_t end = 0;
    uint64_t next_seq = 1;
  };
  // The open pack lost its end: `at` gets a number behind all that are left.
  Status CountBeyond(End& at, uint64_t size);
  // Where the open pack ends, torn bytes cut off; no open pack: file is empty.
  Result<End> FindEnd();
  Status Seal(End& at, uint64_t length);
  // The one flush. When it fails the pack ends at the flushed mark and is sealed: the
  // kernel may have dropped what came after it, and would not say so again.
  Status Flush(End& at);
  Status CheckAhead(const End& at, const std::vector<Appended>& ahead);
  Status StartPack(End& at);
  // Decodes the deltas of a batch whose bases are in another pack than `at`'s.
  Status MakeWhole(const End& at, PreparedBatch& batch);
  Status WriteTail(const End& at);
  // The last batch of this process went there.
  bool IsOwn(const PackId& pack);

  Store& store_;
};

}  // namespace belay
