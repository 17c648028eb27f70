#pragma once

// What a git index says of each path, beyond its name: enough to tell whether two
// indexes stage the same, and which objects they need.

#include <optional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "git/index.h"

namespace belay {

struct IndexEntries {
  // Of the entries that name a blob, each once, in hex, rising.
  std::vector<std::string> blobs;
  // Over path, mode, object, stage and the flags that people set (assume unchanged,
  // skip the work tree, to be added later): equal when both stage the same, whatever
  // was remembered of the files on disk.
  Hash256 digest;
  size_t count = 0;
  // Of a split index: the name of its shared part ("sharedindex.<hex>").
  std::string shared;
};

// One path of an index.
struct NamedEntry {
  std::string path;
  std::string object;  // hex
  uint32_t mode = 0;
  unsigned stage = 0;
  bool later = false;  // intended to be added, nothing of it is staged
};

// Of the bytes of an index file. A split or sparse index, and one with an extension
// that we do not know, is told apart by all its bytes; of a split one `blobs` is what
// it has itself.
// `named`: where the entries themselves go, if anybody wants them.
Result<IndexEntries> ReadIndexEntries(ByteSpan index, GitHash hash,
                                      std::vector<NamedEntry>* named = nullptr);

}  // namespace belay
