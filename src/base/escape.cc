#include "base/escape.h"

#include <algorithm>

namespace belay {

size_t DecodeUtf8(std::string_view bytes, char32_t& code_point) {
  if (bytes.empty()) return 0;
  auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  unsigned char b = at(0);
  if (b < 0x80) {
    code_point = b;
    return 1;
  }
  size_t length = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : 2;
  if (b < 0xc2 || b > 0xf4 || bytes.size() < length) return 0;
  char32_t value = b & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    value = (value << 6) | (at(i) & 0x3f);
  }
  if ((length == 3 && value < 0x800) || (length == 4 && value < 0x10000)) return 0;
  if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  code_point = value;
  return length;
}

bool IsValidUtf8(std::string_view bytes) {
  char32_t ignored = 0;
  while (!bytes.empty()) {
    size_t length = DecodeUtf8(bytes, ignored);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

namespace {
// Characters that show nothing or change how their neighbours are shown.
bool IsInvisible(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
         c == 0x180e || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe0fff);
}

// What stays as it is at the start of `bytes`: its length, or 0.
size_t PlainLength(std::string_view bytes) {
  char32_t c = 0;
  const size_t length = DecodeUtf8(bytes, c);
  return length > 0 && c != '\\' && !IsInvisible(c) ? length : 0;
}

// A backslash before this would be read as the beginning of an escape.
bool LooksEscaped(std::string_view rest) {
  if (rest.empty()) return false;
  return std::string_view("nrtx").find(rest[0]) != std::string_view::npos ||
         PlainLength(rest) == 0;
}

std::string Escape(std::string_view bytes, bool text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    // Most text is plain ASCII, and all of it at once is cheaper.
    const auto stop = std::find_if(bytes.begin(), bytes.end(), [](char b) {
      return b < ' ' || b == '\\' || b == 0x7f;  // what is not ASCII is negative
    });
    const auto ascii = static_cast<size_t>(stop - bytes.begin());
    out += bytes.substr(0, ascii);
    bytes.remove_prefix(ascii);
    if (bytes.empty()) break;
    if (const size_t plain = PlainLength(bytes); plain > 0) {
      out += bytes.substr(0, plain);
      bytes.remove_prefix(plain);
      continue;
    }
    if (text && bytes[0] == '\\' && !LooksEscaped(bytes.substr(1))) {
      out += '\\';
      bytes.remove_prefix(1);
      continue;
    }
    char32_t ignored = 0;
    const size_t length = std::max<size_t>(DecodeUtf8(bytes, ignored), 1);
    for (char raw : bytes.substr(0, length)) {
      switch (raw) {
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\\':
          out += "\\\\";
          break;
        default:
          out += "\\x";
          out += kDigits[static_cast<unsigned char>(raw) >> 4];
          out += kDigits[static_cast<unsigned char>(raw) & 15];
      }
    }
    bytes.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string EscapeForDisplay(std::string_view bytes) { return Escape(bytes, false); }

std::string EscapeText(std::string_view bytes) { return Escape(bytes, true); }

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  const std::string shown = EscapeForDisplay(text);
  const bool plain = shown == text;
  std::string out = plain ? "'" : "$'";
  if (!plain) {
    for (char c : shown) out += c == '\'' ? std::string("\\'") : std::string(1, c);
    return out + "'";
  }
  for (char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

void AppendUtf8(std::string& out, char32_t code_point) {
  const uint32_t c = code_point;
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

std::string Counted(uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace belay
