#pragma once

// Small helpers for text that people read.

#include <string>
#include <string_view>
#include <vector>

#include "base/escape.h"

namespace belay {

inline constexpr size_t kColumns = 80;  // of a line, where the terminal has as many

template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  (out.append(std::string_view(parts)), ...);
  return out;
}

// "12.3 ms"
std::string Milliseconds(uint64_t micros);

// ".env, config/key.pem and 3 more": the first five, made safe for a terminal.
std::string FirstPaths(const std::vector<std::string>& paths);

// Makes composed text safe for a terminal: what EscapeForDisplay would escape is
// escaped, except the backslash, which names escaped earlier already hold.
std::string Scrub(std::string_view text);

// Breaks `text` at blanks so that no line is longer than `width`; every line but the
// first starts with `indent` blanks. `column` is where the first line starts. A word
// that is too long stands alone. Blanks within [brackets] are not broken at.
std::string Wrap(std::string_view text, size_t column, size_t indent, size_t width);

// `text` and blanks up to `width` columns.
std::string Pad(std::string_view text, size_t width);

// How many columns of a terminal `text` takes: two for wide characters, none for those
// that go on top of others.
size_t ColumnsOf(std::string_view text);
// `text`, or as much of its beginning as fits into `width` columns with "..." behind.
std::string Fit(std::string_view text, size_t width);
// The same for a path, whose end says more: "...end/of/it".
std::string FitPath(std::string_view path, size_t width);

}  // namespace belay
