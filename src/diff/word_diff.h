#pragma once

// Which words of some lines changed: for people, not for programs that apply patches.
//
// Threads: any; nothing is shared.

#include <string_view>
#include <vector>

namespace belay {

// A stretch of text: ' ' both have it, '-' only the old text, '+' only the new one.
struct WordPiece {
  char op = ' ';
  std::string_view text;  // into the texts given
  bool operator==(const WordPiece&) const = default;
};

// A word is a run of letters, digits, `_` and bytes beyond ASCII; a run of blanks is
// one piece, every other byte stands alone. The pieces without '+' make up `a`, those
// without '-' make up `b`. More than kMaxWordText is old and new as a whole.
std::vector<WordPiece> DiffWords(std::string_view a, std::string_view b);

inline constexpr size_t kMaxWordText = size_t{1} << 20;

}  // namespace belay
