#pragma once

// A difference as JSON, for every face: docs/json.md, "belay diff".
//
// Threads: one per writer.

#include "base/json.h"
#include "diff/file_diff.h"

namespace belay {

enum class DiffDetail { kNames, kCounts, kHunks };

class DiffJson {
 public:
  // Beyond `budget` bytes of lines no more hunks are written; the counts are.
  explicit DiffJson(DiffDetail detail, uint64_t budget = uint64_t{64} << 20)
      : detail_(detail), budget_(budget) {}
  // One element of "files".
  void Write(const PathDiff& diff, const FileDiff& file, JsonWriter& json);

 private:
  void Hunks(const FileDiff& file, JsonWriter& json);

  const DiffDetail detail_;
  uint64_t budget_;
};

}  // namespace belay
