#pragma once

// DiffLines: which lines of one text another has instead.
//
// A line ends behind its `\n` or with the text; bytes are bytes (NUL, CR, no encoding).
//
// Guarantees
//   * Replacing each edit's lines of `a` by those of `b` gives `b`, byte for byte.
//   * Memory beyond the two texts is bounded, also for files of 100 MB and any number
//     of lines: what both begin and end with is not looked at line by line; of more
//     than kMaxLines, runs of lines are compared first, and lines only where runs
//     differ. Time is bounded as in token_diff.h.
//   * An edit that could stand in several places (a line among its like) stands where
//     indentation and empty lines suggest it, else as far down as possible.
//
// Threads: any; nothing is shared.

#include <cstdint>
#include <string_view>
#include <vector>

#include "diff/token_diff.h"

namespace belay {

// Lines of a text: the first one (from 0), how many, and the same in bytes.
struct LineRange {
  uint32_t line = 0, count = 0;
  uint32_t offset = 0, length = 0;
  uint32_t end_line() const { return line + count; }
  uint32_t end_offset() const { return offset + length; }
  bool operator==(const LineRange&) const = default;
};

struct LineEdit {
  LineRange a, b;
  bool operator==(const LineEdit&) const = default;
};

// Texts of less than 4 GiB. In rising order; between any two at least one line is the
// same.
std::vector<LineEdit> DiffLines(std::string_view a, std::string_view b);

// Lines that are compared one by one; of each side.
inline constexpr size_t kMaxLines = size_t{1} << 20;
// Edits beyond this many are not made finer.
inline constexpr size_t kMaxEdits = size_t{1} << 20;

// The line that begins at `at`, with its `\n`.
std::string_view LineAt(std::string_view text, size_t at);
// Where the line that ends at `end` begins; `end` is behind its `\n`, and not 0.
size_t LineBefore(std::string_view text, size_t end);

}  // namespace belay
