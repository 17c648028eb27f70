#pragma once

// FileDiff: both contents of one path that differs, and the lines in which they do.
//
// Threads: any, one at a time per side.

#include <optional>

#include "diff/hunks.h"
#include "diff/state_diff.h"

namespace belay {

struct FileDiff {
  enum class Shape {
    kText,      // `edits` say it all; none when the content is the same
    kBinary,    // a NUL among the first 8000 bytes of either side, as git has it
    kTooLarge,  // over kMaxDiffFile
    kHidden,    // a secret, a directory, or not known: there is nothing to show
  };
  Shape shape = Shape::kText;
  // Of a symlink its target; empty when there is none, and for long binary files.
  Bytes old_bytes, new_bytes;
  std::vector<LineEdit> edits;
  // A side that cannot be read: nothing is known about the lines.
  std::optional<Error> trouble = {};

  std::string_view old_text() const { return AsText(old_bytes); }
  std::string_view new_text() const { return AsText(new_bytes); }
};

// As git's core.bigFileThreshold: beyond this there are no lines.
inline constexpr uint64_t kMaxDiffFile = uint64_t{512} << 20;

struct FileDiffOptions {
  bool as_text = false;  // also what looks binary
};

// Content that is the same is not read, nor more than the beginning of a long file that
// looks binary by it. The directory as it is may have changed since
// `diff` was made: then `diff` is corrected.
FileDiff LoadFileDiff(const DiffSide& from, const DiffSide& to, PathDiff& diff,
                      const FileDiffOptions& options);

}  // namespace belay
