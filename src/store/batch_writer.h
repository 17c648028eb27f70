#pragma once

// BatchWriter collects objects and records and publishes them as one batch.
//
// Guarantees
//   * Commit() returns after the batch would survive a power cut; until then nothing of
//     it counts. A destroyed, uncommitted writer leaves at most unreferenced objects.
//   * What was found already stored stays stored until Commit(): the writer holds the
//     store's `use` lock from its first lookup, and relies only on flushed objects.
//   * An object that is put with what it was before (`base`) is stored as a delta when
//     that saves half or more. The base is a hint: one that is not there, not flushed,
//     in another pack or damaged means that the object is stored whole.
//   * Memory is bounded by StoreOptions::batch_target: beyond it objects go to the pack
//     ahead of the batch that will make them count.
//
// Threads: Put* from any thread at once; Add and Commit from one, after the Puts.

#include <memory>
#include <mutex>

#include "store/appender.h"
#include "store/batch_place.h"
#include "store/key_set.h"

namespace belay {

struct BatchStats {
  uint64_t objects_new = 0;
  uint64_t objects_known = 0;
  uint64_t bytes_in = 0;      // content handed in
  uint64_t bytes_stored = 0;  // bytes the packs grew by
};

class BatchWriter {
 public:
  ~BatchWriter();

  // Content of any length; the id is its SHA-256. `base`: the id of what it was made
  // from, zero = nothing known.
  Result<ObjectId> PutContent(ByteSpan content, const ObjectId& base = {});
  // The same from a source that fills what it is given and answers how much; 0 ends it.
  using Source = std::function<Result<size_t>(std::span<std::byte>)>;
  Result<ObjectId> PutStream(const Source& source);
  // An encoded tree, state or node.
  Result<ObjectId> PutObject(ObjectType type, ByteSpan encoding,
                             const ObjectId& base = {});
  // What was found under `key` in a pack of this store, and read well there.
  Result<ObjectId> PutAs(const ObjectKey& key, ByteSpan bytes) {
    return Put(key, bytes, Base());
  }
  // `before`: what the directory was, empty = nothing known.
  Result<ObjectId> PutTree(const Tree& tree, const Tree& before = {});
  // The same, encoded. `before` is asked when it is of use, and may give nothing.
  Result<ObjectId> PutEncodedTree(Bytes encoding, const std::function<Bytes()>& before);

  // Content that need not be put again: flushed already, or put by this writer.
  Result<bool> HasContent(const ObjectId& id);
  // The same of any object.
  Result<bool> Has(const ObjectKey& key) { return Known(key); }

  // Put by this writer: not taken for granted because the store has one already.
  bool IsMine(const ObjectId& content);
  // While it is on, nothing counts as stored already, because what the store has of it
  // cannot be read: it is stored again, and whoever reads finds the good copy.
  void StoreAnew(bool on);
  bool IsAnew();

  // What the packs will have grown by, so far.
  uint64_t bytes_so_far();

  void Add(LogRecord record) { records_.push_back(std::move(record)); }

  struct Published {
    uint64_t first_seq = 0;  // of the records, in the order they were added
    BatchStats stats;
    BatchPlace place;  // of the batch that carried the flush
  };
  // Once. With neither objects nor records there is nothing to do. Fails when any Put
  // failed to write: what that batch held is missing.
  // `still_true` is asked under the append lock, right before the batch is written:
  // what it says no to is not published, and nobody publishes anything in between.
  Result<Published> Commit(const std::function<Status()>& still_true = {});

 private:
  friend class Store;
  BatchWriter(Store& store, HeldLock use);
  // What an object was made from: its bytes when the caller has them, or read here.
  struct Base {
    ObjectId id = {};
    std::optional<Bytes> bytes = {};
  };
  // `owned` holds `raw`, and is let go as soon as that is encoded.
  Result<ObjectId> Put(const ObjectKey& key, ByteSpan raw, const Base& base,
                       Bytes* owned = nullptr);
  Result<bool> Known(const ObjectKey& key);
  struct Encoded {
    RecordHeader header;
    Bytes stored;
    PackId base_pack;  // zero: whole
  };
  Encoded Encode(const ObjectKey& key, ByteSpan raw, const Base& base);
  bool EncodeDelta(Codec& codec, ByteSpan raw, const Base& base, Encoded& out);

  Store& store_;
  HeldLock use_;
  std::vector<LogRecord> records_;
  bool committed_ = false;

  std::mutex mutex_;  // guards what follows; never held over IO
  PreparedBatch pending_;
  KeySet mine_;  // put by this writer, published or pending
  bool anew_ = false;
  std::vector<Appended> ahead_;  // batches the last one relies on
  std::optional<Error> failed_;  // one of them was not written: no Commit()
  BatchStats stats_;
};

}  // namespace belay
