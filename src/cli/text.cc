#include "cli/text.h"

#include "base/escape.h"

namespace belay {

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

std::string Pad(std::string_view text, size_t width) {
  size_t shown = 0;  // code points: continuation bytes do not count
  for (char c : text) shown += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  std::string out(text);
  if (shown < width) out.append(width - shown, ' ');
  return out;
}

}  // namespace belay
