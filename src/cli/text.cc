#include "cli/text.h"

#include <cstdio>

namespace belay {

std::string Milliseconds(uint64_t micros) {
  char text[32];
  std::snprintf(text, sizeof text, micros < 100'000 ? "%.1f ms" : "%.0f ms",
                static_cast<double>(micros) / 1000.0);
  return text;
}

std::string FirstPaths(const std::vector<std::string>& paths) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < paths.size() && i < kShown; ++i)
    text += StrCat(i == 0 ? "" : ", ", EscapeForDisplay(paths[i]));
  if (paths.size() > kShown)
    text += StrCat(" and ", std::to_string(paths.size() - kShown), " more");
  return text;
}

std::string Scrub(std::string_view text) {
  std::string out;
  for (;;) {
    size_t slash = text.find('\\');
    out += EscapeForDisplay(text.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    out += '\\';
    text.remove_prefix(slash + 1);
  }
}

std::string Wrap(std::string_view text, size_t column, size_t indent, size_t width) {
  std::string out;
  bool first = true;
  while (!text.empty()) {
    size_t end = 0;
    int depth = 0;
    for (; end < text.size() && (depth > 0 || text[end] != ' '); ++end) {
      if (text[end] == '[') ++depth;
      if (text[end] == ']' && depth > 0) --depth;
    }
    std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (!first && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  return out;
}

namespace {

// About as wcwidth(3), which asks the locale.
size_t ColumnsOfCodePoint(char32_t c) {
  if (c < 0x300) return 1;  // most of what there is
  auto in = [c](char32_t low, char32_t high) { return c >= low && c <= high; };
  if (in(0x300, 0x36f) || in(0x1ab0, 0x1aff) || in(0x20d0, 0x20ff) ||
      in(0xfe00, 0xfe0f) || in(0xfe20, 0xfe2f))
    return 0;
  const bool wide = in(0x1100, 0x115f) || in(0x2e80, 0x303e) || in(0x3041, 0xa4cf) ||
                    in(0xac00, 0xd7a3) || in(0xf900, 0xfaff) || in(0xfe30, 0xfe6f) ||
                    in(0xff00, 0xff60) || in(0xffe0, 0xffe6) || in(0x1f300, 0x1f64f) ||
                    in(0x1f680, 0x1f6ff) || in(0x1f900, 0x1faff) ||
                    in(0x20000, 0x3fffd);
  return wide ? 2 : 1;
}

// The character at the start of `text` (a byte that is none counts as one), and its
// columns.
std::string_view NextCharacter(std::string_view text, size_t& columns) {
  char32_t c = 0;
  const size_t length = DecodeUtf8(text, c);
  columns = length == 0 ? 1 : ColumnsOfCodePoint(c);
  return text.substr(0, length == 0 ? 1 : length);
}

}  // namespace

size_t ColumnsOf(std::string_view text) {
  size_t all = 0;
  while (!text.empty()) {
    size_t columns = 0;
    text.remove_prefix(NextCharacter(text, columns).size());
    all += columns;
  }
  return all;
}

std::string Fit(std::string_view text, size_t width) {
  if (ColumnsOf(text) <= width) return std::string(text);
  const size_t room = width > 3 ? width - 3 : 0;
  size_t used = 0, kept = 0;
  while (kept < text.size()) {
    size_t columns = 0;
    const std::string_view next = NextCharacter(text.substr(kept), columns);
    if (used + columns > room) break;
    used += columns;
    kept += next.size();
  }
  return StrCat(text.substr(0, kept), "...");
}

std::string FitPath(std::string_view path, size_t width) {
  size_t all = ColumnsOf(path);
  if (all <= width) return std::string(path);
  const size_t room = width > 3 ? width - 3 : 0;
  while (all > room && !path.empty()) {
    size_t columns = 0;
    path.remove_prefix(NextCharacter(path, columns).size());
    all -= columns;
  }
  return StrCat("...", path);
}

std::string Pad(std::string_view text, size_t width) {
  const size_t shown = ColumnsOf(text);
  std::string out(text);
  if (shown < width) out.append(width - shown, ' ');
  return out;
}

}  // namespace belay
