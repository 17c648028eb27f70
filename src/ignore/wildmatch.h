#pragma once

// Wildmatch: git's globs, `*` `?` `[...]` `\x` and, between slashes, `**`.
//
// Guarantees
//   * The answers of git's wildmatch for every pattern and text, oddities included: an
//     escaped upper-case letter never matches when case is folded, `[` without its `]`
//     and an unknown `[[:class:]]` never match, a set never matches a slash in a path.
//     Held against the installed git by tests/ignore/differential_full.
//   * Time is at most proportional to pattern x text, memory is constant. git's own
//     function takes exponential time for `*a*a*a*a*b`; a pattern file is hostile
//     input to us.
//   * Case is folded for ASCII letters only, as git does in the C and UTF-8 locales.
//
// Pattern and text are bytes without NUL (a caller cuts a pattern at the first one, as
// git does). Threads: pure functions.

#include <string_view>

namespace belay {

struct WildFlags {
  bool path = false;       // `*`, `?` and sets stop at a slash; `**` does not
  bool fold_case = false;  // core.ignoreCase
};

bool Wildmatch(std::string_view pattern, std::string_view text, WildFlags flags);

// True when some text that starts with `start` and is longer could match. May say yes
// to a pattern that can match nothing at all (a set without its end); never says no
// wrongly.
bool WildmatchCouldGoOn(std::string_view pattern, std::string_view start,
                        WildFlags flags);

// How many bytes at the start of `pattern` stand for themselves.
size_t LiteralPrefix(std::string_view pattern);
// Bytes that every text which the pattern matches ends in. May be shorter than it
// could.
std::string_view LiteralTail(std::string_view pattern);

// --- bytes that may differ in case ---------------------------------------------------

inline char FoldByte(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
bool EqualFolded(std::string_view a, std::string_view b);
inline bool EqualBytes(std::string_view a, std::string_view b, bool fold_case) {
  return a.size() == b.size() && (fold_case ? EqualFolded(a, b) : a == b);
}

}  // namespace belay
