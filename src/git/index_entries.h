#pragma once

// What a git index says of each path, beyond its name: enough to tell whether two
// indexes stage the same, and which objects they need.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "git/index.h"

namespace belay {

struct IndexEntries {
  // Over path, mode, object, stage and the flags that people set (assume unchanged,
  // skip the work tree, to be added later): equal when both stage the same, whatever
  // was remembered of the files on disk.
  Hash256 digest;
  size_t count = 0;
  // Of a split index: the name of its shared part ("sharedindex.<hex>"), and which
  // entries of that its own entries without a path stand for, in their order; and those
  // that are no more.
  std::string shared;
  std::vector<uint32_t> replaced, deleted;
  bool split = false;
};

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
  // A file or a symlink: its object is a blob.
  bool is_blob() const {
    return (mode & 0170000) == 0100000 || (mode & 0170000) == 0120000;
  }
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
