#include "base/json.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/escape.h"
#include "base/result.h"

namespace belay {

void JsonWriter::BeforeValue() {
  if (levels_.empty()) {
    BELAY_CHECK(!done_);  // one document, one value
    done_ = true;
    return;
  }
  Level& level = levels_.back();
  if (level.object) {
    BELAY_CHECK(level.key_written);
    level.key_written = false;
    return;
  }
  if (!level.empty) out_ += ',';
  level.empty = false;
}

JsonWriter& JsonWriter::BeginObject() {
  BeforeValue();
  out_ += '{';
  levels_.push_back({.object = true});
  return *this;
}
JsonWriter& JsonWriter::EndObject() {
  BELAY_CHECK(!levels_.empty() && levels_.back().object && !levels_.back().key_written);
  levels_.pop_back();
  out_ += '}';
  return *this;
}
JsonWriter& JsonWriter::BeginArray() {
  BeforeValue();
  out_ += '[';
  levels_.push_back({.object = false});
  return *this;
}
JsonWriter& JsonWriter::EndArray() {
  BELAY_CHECK(!levels_.empty() && !levels_.back().object);
  levels_.pop_back();
  out_ += ']';
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BELAY_CHECK(!levels_.empty() && levels_.back().object && !levels_.back().key_written);
  if (!levels_.back().empty) out_ += ',';
  levels_.back().empty = false;
  levels_.back().key_written = true;
  AppendQuoted(key);
  out_ += ':';
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  AppendQuoted(text);
  return *this;
}
JsonWriter& JsonWriter::PathValue(std::string_view bytes) {
  if (IsValidUtf8(bytes)) return String(bytes);
  return BeginObject().Key("bytes").String(Base64(bytes)).EndObject();
}

JsonWriter& JsonWriter::Int(int64_t value) {
  BeforeValue();
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out_.append(digits, end);
  return *this;
}
JsonWriter& JsonWriter::Uint(uint64_t value) {
  BeforeValue();
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out_.append(digits, end);
  return *this;
}

JsonWriter& JsonWriter::Uint(const std::optional<uint64_t>& value) {
  return value ? Uint(*value) : Null();
}
JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  BeforeValue();
  char digits[40];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out_.append(digits, end);
  return *this;
}
JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  out_ += value ? "true" : "false";
  return *this;
}
JsonWriter& JsonWriter::Null() {
  BeforeValue();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  BeforeValue();
  out_ += json;
  return *this;
}

std::string JsonWriter::Take() {
  BELAY_CHECK(done_ && levels_.empty());
  done_ = false;
  return std::exchange(out_, {});
}

void JsonWriter::AppendQuoted(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out_ += '"';
  while (!text.empty()) {
    char32_t c = 0;
    size_t length = DecodeUtf8(text, c);
    if (length == 0) {
      out_ += "\xef\xbf\xbd";  // U+FFFD, one per bad byte
      text.remove_prefix(1);
      continue;
    }
    switch (c) {
      case '"':
        out_ += "\\\"";
        break;
      case '\\':
        out_ += "\\\\";
        break;
      case '\n':
        out_ += "\\n";
        break;
      case '\r':
        out_ += "\\r";
        break;
      case '\t':
        out_ += "\\t";
        break;
      default:
        // DEL and the C1 controls are legal in JSON, but a terminal obeys them, and
        // U+2028/2029 end a line in old JavaScript.
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029) {
          out_ += "\\u";
          for (int shift = 12; shift >= 0; shift -= 4)
            out_ += kDigits[(c >> shift) & 15];
        } else {
          out_ += text.substr(0, length);
        }
    }
    text.remove_prefix(length);
  }
  out_ += '"';
}

std::string Base64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    size_t left = bytes.size() - i;
    auto at = [&](size_t k) -> uint32_t {
      return k < left ? static_cast<unsigned char>(bytes[i + k]) : 0;
    };
    uint32_t group = at(0) << 16 | at(1) << 8 | at(2);
    out += kAlphabet[group >> 18];
    out += kAlphabet[(group >> 12) & 63];
    out += left > 1 ? kAlphabet[(group >> 6) & 63] : '=';
    out += left > 2 ? kAlphabet[group & 63] : '=';
  }
  return out;
}

}  // namespace belay
