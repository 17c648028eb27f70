#pragma once

// What git's index remembers of files in the work tree: enough to tell, without git and
// without reading a file, which of them git does not have as they are.

#include <string>
#include <unordered_set>
#include <vector>

#include "git/index.h"

namespace belay {

struct IndexStat {
  std::string path;  // from the top of the work tree
  uint32_t mtime_s = 0, mtime_ns = 0;
  uint32_t size = 0;  // modulo 2^32
};

// Of the paths in `wanted` that are tracked. kUnsupported for a split or sparse index,
// which we do not follow for this.
Result<std::vector<IndexStat>> ReadIndexStats(
    Fs& fs, const AbsPath& index, GitHash hash,
    const std::unordered_set<std::string>& wanted);

// The file is, as far as git would notice, as it was when it was added.
bool IsAsAdded(const IndexStat& remembered, const FileStat& stat);

}  // namespace belay
