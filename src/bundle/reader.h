#pragma once

// BundleReader: a bundle that was found right in every byte and every reference, and
// can be put into a store.
//
// Guarantees
//   * Open() believes nothing: hashes, sizes, counts, order and references are checked,
//     trees must be legal, paths and content bounded (bundle/format.h). It writes
//     nothing; what it refuses is kCorrupt, kInvalid or kUnsupported with the reason.
//   * Memory: about 250 bytes a record and one decoded object; time: that of reading
//     the file twice, and MaxDecoded() bytes at most. Depth costs no stack.
//   * CopyInto() hashes everything again: a file that somebody changed since Open() is
//     kConflict, and what the writer then holds must not be committed.
// Layout: docs/format.md, "Bundle".
//
// Threads: one.

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "base/fs.h"
#include "store/batch_writer.h"
#include "store/catalog.h"

namespace belay {

class BundleSource {
 public:
  virtual ~BundleSource() = default;
  virtual uint64_t size() const = 0;
  // Exactly `out`; it lies within size().
  virtual Status Read(uint64_t offset, std::span<std::byte> out) = 0;
};

// A regular file; kInvalid when it is something else.
Result<std::unique_ptr<BundleSource>> OpenBundleFile(Fs& fs, Fd file);
// `bytes` must outlive it.
std::unique_ptr<BundleSource> BundleInMemory(ByteSpan bytes);

class BundleReader {
 public:
  using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;
  // `source` must outlive the reader.
  static Result<std::unique_ptr<BundleReader>> Open(BundleSource& source,
                                                    const ProgressFn& progress = {});
  ~BundleReader();

  // In the order they were made. Number and root are zero, meta says where they come
  // from.
  const std::vector<CatalogEntry>& checkpoints() const;
  uint64_t objects() const;

  using KeyFn = std::function<bool(const ObjectKey&)>;
  // Whether any object of it is one of those. Reads nothing.
  bool HasAny(const KeyFn& is_one) const;
  // What checkpoints need of objects that are not to be had.
  struct Lack {
    std::unordered_set<ObjectId> contents;  // those themselves, or with such a chunk
    std::vector<bool> some;  // of each checkpoint: it needs one of these contents
    std::vector<bool> all;   // and: a tree, a record or the state itself
  };
  // Content of no bytes is always to be had.
  Result<Lack> FindLack(const std::vector<size_t>& wanted, const KeyFn& is_gone);

  // What objects that the checkpoints `wanted` need, and that are not `there`, take as
  // they are stored in the bundle.
  Result<uint64_t> BytesOf(const std::vector<size_t>& wanted, const KeyFn& there);

  // Puts all that the checkpoints `wanted` (places in checkpoints()) need, but for
  // the contents `without`. `check` is asked after each object, and stops it.
  Status CopyInto(BatchWriter& writer, const std::vector<size_t>& wanted,
                  const std::function<Status()>& check = {},
                  const ProgressFn& progress = {},
                  const std::unordered_set<ObjectId>& without = {});

 private:
  struct Impl;
  explicit BundleReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace belay
