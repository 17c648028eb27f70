#pragma once

// Edits of a text with the lines around them, as people read them.
//
// Threads: any; nothing is shared.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diff/line_diff.h"

namespace belay {

// Edits that lie close to each other, and the unchanged lines around them; `a` and `b`
// are all of it on either side.
struct Hunk {
  LineRange a, b;
  std::span<const LineEdit> edits;
};

// `edits` must outlive the hunks.
std::vector<Hunk> HunksOf(std::string_view a, std::string_view b,
                          std::span<const LineEdit> edits, uint32_t context = 3);

// Lines in the order of a unified diff; `op` is ' ', '-' or '+'. `line` has its `\n`,
// unless it is the last one of a text without.
using LineVisitor = std::function<void(char op, std::string_view line)>;
void ForEachLine(std::string_view a, std::string_view b, const Hunk& hunk,
                 const LineVisitor& visit);
// The same in stretches: lines that both have, or an edit (`same` is empty then).
using StretchVisitor = std::function<void(std::string_view same, const LineEdit* edit)>;
void ForEachStretch(std::string_view a, const Hunk& hunk, const StretchVisitor& visit);

// "@@ -1,3 +1,4 @@", without what git puts behind it.
std::string HunkRange(const Hunk& hunk);
// The last line before the hunk that begins like the head of a function or a section;
// empty when there is none nearby.
std::string_view HunkHeading(std::string_view a, const Hunk& hunk);

struct LineCounts {
  uint64_t added = 0, deleted = 0;
};
LineCounts CountsOf(std::span<const LineEdit> edits);

}  // namespace belay
