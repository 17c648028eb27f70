#pragma once

// PackFile reads one pack: batches in order, the records in a batch, one record by
// offset.
//
// It trusts nothing it has not checked: a batch header carries its own check and place,
// a record header its own check, and an object's bytes are re-hashed before they are
// handed out. It never writes. Layout: docs/format.md, "Packs".
//
// Opened for reading, what the disk does not give back (a bad sector) is damage like
// any other: the piece reads as zeros, which match no hash, and is remembered for
// unreadable(). Opened for writing, it is an error: nobody may cut off or seal over
// what he could not read.
//
// Threads: const methods may be called from any thread.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/fs.h"
#include "store/pack_format.h"

namespace belay {

struct RecordAt {
  uint64_t offset = 0;  // of the record header in the pack
  RecordHeader header;
  uint64_t base = 0;  // of a delta that a walk met: its base's offset; 0 = unknown
};

// An object out of a pack, as it was put in.
struct PlainRecord {
  Bytes bytes;
  // Of the whole record it was made from, or itself: how well such content compresses.
  uint32_t whole_stored = 0;
  uint32_t whole_raw = 0;
};

// Bytes of a pack that the disk does not give back.
struct UnreadablePiece {
  uint64_t offset = 0;
  uint64_t length = 0;
  int sys = 0;
};

class PackFile {
 public:
  // kCorrupt when the header names another pack or store, or is damaged and no batch of
  // this pack follows. A damaged header alone hides nothing: every batch names its
  // pack. kCorrupt also when the name is not a regular file's, and for readers when the
  // file may not be opened.
  static Result<PackFile> Open(Fs& fs, const Fd& packs_dir, const PackId& id,
                               const StoreId& store, const OpenMode& mode);
  static Name FileName(const PackId& id);
  // Any pack's header by name, for repair.
  static Result<PackHeader> ReadHeader(Fs& fs, const Fd& file);

  const PackId& id() const { return id_; }
  bool header_is_damaged() const { return header_is_damaged_; }
  uint32_t version() const { return version_; }  // 1 when the header does not tell
  const Fd& fd() const { return *fd_; }
  // What is there from `offset` on; the count read.
  Result<size_t> ReadBytes(uint64_t offset, std::span<std::byte> out) const {
    return Read(offset, out);
  }
  // The same open file as readers see it.
  PackFile ForReading() const;
  bool SharesFileWith(const PackFile& other) const { return fd_ == other.fd_; }
  Result<uint64_t> Size() const;
  // What was met so far that the disk does not give back, in order. Empty for a pack
  // that was opened for writing.
  std::vector<UnreadablePiece> unreadable() const;
  bool has_unreadable() const;

  // The batch that begins at `offset` and ends at or before `limit`; empty when there
  // is no valid header or it would end beyond. The body and trailer are not looked at.
  Result<std::optional<BatchHeader>> BatchAt(uint64_t offset, uint64_t limit) const;
  // Header, trailer and the body's hash agree: the batch exists.
  Result<bool> IsWhole(const BatchHeader& batch) const;
  // Trailer alone: cheap, for batches that are known to be flushed.
  Result<bool> TrailerIsThere(const BatchHeader& batch) const;
  // The mark of the batch that ends at `end`; zeros where no trailer stands before
  // that.
  Result<BatchMark> MarkAt(uint64_t end) const;
  // Whether `end` may be where a batch of this mark (zeros: any) ended. What is damaged
  // or cut off there may have been that. Not where a whole batch goes on over that
  // place, or another one ends there: then these are not the bytes that were meant, but
  // those of a copy of the store that went another way.
  Result<bool> MayEndAt(uint64_t end, const BatchMark& mark) const;
  // The next offset after `from` where a valid batch header stands, for getting past a
  // damaged one. Empty when there is none before `limit`.
  Result<std::optional<BatchHeader>> NextBatchAfter(uint64_t from,
                                                    uint64_t limit) const;

  // Walks the batches of [from, limit), which must begin at a batch. Where a header is
  // damaged, `visit` gets a made-up one (`damaged` true) that spans the bytes up to the
  // next valid batch, so that its records can still be tried; its counts are unknown
  // (0) and its first_seq is what its neighbours imply (0 when there is none). A batch
  // that would end beyond `limit` comes as damaged too, clipped.
  Status ForEachBatch(
      uint64_t from, uint64_t limit,
      const std::function<Status(const BatchHeader&, bool damaged)>& visit) const;

  enum class Part { kAll, kObjects, kLog };
  // Calls `visit` for each record; stops early when it returns an error. Where a record
  // header is damaged the walk goes on with the next one that can be found, and ends
  // with kCorrupt. Among objects that may be any place that looks like an object: they
  // prove themselves by their hash. A log record must be where the batch's counts want
  // it; what cannot be read there is visited as one record of type kLog that does not
  // match its hash, so that those after it keep their place.
  Status ForEachRecord(const BatchHeader& batch, Part part,
                       const std::function<Status(const RecordAt&)>& visit) const;

  // Every record header of [from, limit) that can be read; damage is passed over.
  Result<std::vector<RecordAt>> ReadableRecords(uint64_t from, uint64_t limit) const;

  // The record header at `offset`, or kCorrupt.
  Result<RecordHeader> HeaderAt(uint64_t offset, uint64_t limit) const;
  // The record at `offset`, decoded, re-hashed; kCorrupt when it is not what its header
  // says. (A chunk list's id is its content's: only its own check is verified here.) A
  // delta is followed to a whole record, kMaxDeltaChain steps at most. Those on
  // the way are not re-hashed: a right result proves all it was made of.
  Result<Bytes> ReadRecord(const RecordAt& record) const;
  Result<PlainRecord> ReadPlain(const RecordAt& record) const;
  // The same for a record that lies elsewhere and would be put behind `offset`.
  Result<PlainRecord> DecodeAt(uint64_t offset, const RecordHeader& header,
                               Bytes stored) const;
  // The stored form as it lies there, unverified, for copying after verification.
  Result<Bytes> ReadStored(const RecordAt& record) const;

 private:
  friend class PackWindow;
  // The unit that is given up: what disks and file systems fail by.
  static constexpr uint64_t kPiece = 4096;
  struct Trouble {
    std::mutex mutex;
    std::map<uint64_t, int> pieces;  // offset of each, and the errno
  };

  PackFile(Fs& fs, std::shared_ptr<const Fd> fd, const PackId& id)
      : fs_(&fs), fd_(std::move(fd)), id_(id) {}
  // As ReadFull. For a reader, pieces that cannot be read are zeros; `bad` is then the
  // errno of the first.
  Result<size_t> Read(uint64_t offset, std::span<std::byte> out,
                      int* bad = nullptr) const;
  Result<size_t> ReadInPieces(uint64_t offset, std::span<std::byte> out,
                              int* bad) const;
  // The record at `offset`, which ends at or before `limit`, in one read when it is
  // short.
  Result<RecordHeader> ReadAt(uint64_t offset, uint64_t limit, Bytes& stored) const;
  Status WalkLog(const BatchHeader& batch, uint64_t from, uint64_t end,
                 const std::function<Status(const RecordAt&)>& visit) const;

  Fs* fs_;
  std::shared_ptr<const Fd> fd_;  // of a writer and of readers: ForReading()
  PackId id_;
  uint32_t version_ = 1;
  bool header_is_damaged_ = false;
  std::shared_ptr<CodecPool> codecs_ = std::make_shared<CodecPool>();
  std::unique_ptr<Trouble> trouble_;  // null: opened for writing
};

}  // namespace belay
