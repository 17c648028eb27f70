#pragma once

// What a git index says of each path, beyond its name: enough to tell whether two
// indexes stage the same, and which objects they need.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.h"
#include "base/sha256.h"
#include "git/index.h"

namespace belay {

struct IndexEntries {
  // Over path, mode, object, stage and the flags that people set (assume unchanged,
  // skip the work tree, to be added later): equal when both stage the same, whatever
  // was remembered of the files on disk.
  Hash256 digest;
  size_t count = 0;
  // The tree object that a commit of this index would have, in hex, where git remembers
  // it; empty: it does not, or something is unmerged, or it is told apart by its bytes.
  std::string tree;
  // Of a split index: the name of its shared part ("sharedindex.<hex>"), and which
  // entries of that its own entries without a path stand for, in their order; and those
  // that are no more.
  std::string shared;
  std::vector<uint32_t> replaced, deleted;
  bool split = false;
  // It is told apart by its bytes: split, or with an extension that we do not know.
  bool by_bytes = false;
};

// A file or a symlink: its object is a blob.
inline bool IsBlobMode(uint32_t mode) {
  return (mode & 0170000) == 0100000 || (mode & 0170000) == 0120000;
}

// One path of an index.
struct NamedEntry {
  std::string path;
  std::string object;  // hex
  uint32_t mode = 0;
  unsigned stage = 0;
  bool later = false;  // intended to be added, nothing of it is staged
  // As the digest has them: 4 assume unchanged, 8 skip the work tree, 16 to be added
  // later.
  uint8_t flags = 0;
  bool is_blob() const { return IsBlobMode(mode); }
};

// One path of an index as it is met: all of it lives until the call returns.
struct MetEntry {
  std::string_view path;
  ByteSpan object;
  uint32_t mode = 0;
  unsigned stage = 0;
  uint8_t flags = 0;  // as of NamedEntry
};

using VisitEntry = std::function<void(const MetEntry&)>;
// Of the bytes of an index file; without a digest when that is to be had of the bytes
// (by_bytes).
Result<IndexEntries> VisitIndex(ByteSpan index, GitHash hash, const VisitEntry& each);

// The same of one that is read from its start on, in pieces: as much as fits of what
// comes next, 0 at its end.
using IndexSource = std::function<Result<size_t>(std::span<std::byte>)>;
Result<IndexEntries> VisitIndex(const IndexSource& source, uint64_t size, GitHash hash,
                                const VisitEntry& each);

// An index file that is open: what it says and its bytes are of one file, though git
// replaces it meanwhile. Read in pieces: of half a million paths it is 70 MB.
class OpenIndex {
 public:
  // kConflict when `name` is no file any more.
  static Result<OpenIndex> Open(Fs& fs, const AbsPath& git_dir, std::string_view name);

  uint64_t size() const { return stat_.size; }
  // As VisitIndex.
  Result<IndexEntries> Visit(GitHash hash, const VisitEntry& each) const;
  // kInvalid when it is longer than `limit`.
  Result<Bytes> ReadAll(size_t limit) const;
  // Some of it, from there on; 0 at its end.
  Result<size_t> Read(uint64_t at, std::span<std::byte> out) const;

 private:
  OpenIndex(Fs& fs, Fd file, const FileStat& stat)
      : fs_(&fs), file_(std::move(file)), stat_(stat) {}
  Fs* fs_;
  Fd file_;
  FileStat stat_;
};

// Of the bytes of an index file. A split index, and one with an extension that we do
// not know, is told apart by all its bytes. `named`: where the entries themselves go,
// if anybody wants them; of a split index those that it has itself, some without a path
// (AddShared).
Result<IndexEntries> ReadIndexEntries(ByteSpan index, GitHash hash,
                                      std::vector<NamedEntry>* named = nullptr);

// The same of all of a split index, whose shared part `shared` reads by its name:
// digest and entries are those of the whole, as git would read it. Where the parts do
// not fit or the shared one cannot be read, it is told apart by its bytes, and `named`
// has what there is.
using ReadShared = std::function<Result<Bytes>(const std::string& name)>;
Result<IndexEntries> ReadWholeIndex(ByteSpan index, GitHash hash,
                                    std::vector<NamedEntry>* named,
                                    const ReadShared& shared);
// Of one that cannot be read: by its bytes.
Hash256 DigestOfDamagedIndex(ByteSpan index);

// Adds the entries of the shared part `base`, replaced ones among them, to those of a
// split index `own`, whose nameless ones get their paths.
void AddShared(const IndexEntries& own, std::vector<NamedEntry> base,
               std::vector<NamedEntry>& named);

}  // namespace belay
