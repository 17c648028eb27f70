#include "base/escape.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

constexpr size_t kMaxDots = 64;   // of one statement, outside strings
constexpr size_t kMaxDepth = 16;  // of brackets and braces

bool IsBareKeyChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '_' || c == '-';
}
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

class Scanner {
 public:
  Scanner(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Result<std::vector<TomlStatement>> Run() {
    BELAY_OK(CheckBytes());
    if (text_.starts_with("\xef\xbb\xbf")) pos_ = 3;  // a byte order mark is allowed
    std::vector<TomlStatement> statements;
    for (;;) {
      while (pos_ < text_.size() && (IsBlank(text_[pos_]) || IsLineEnd())) ++pos_;
      if (pos_ >= text_.size()) return statements;
      if (text_[pos_] == '#') {
        SkipComment();
        continue;
      }
      BELAY_TRY(TomlStatement statement, One());
      statements.push_back(std::move(statement));
    }
  }

 private:
  bool IsLineEnd() const { return text_[pos_] == '\n' || text_[pos_] == '\r'; }
  bool AtLineEnd() const { return pos_ >= text_.size() || IsLineEnd(); }
  void SkipComment() {
    while (!AtLineEnd()) ++pos_;
  }

  Error At(size_t offset, std::string_view problem) const {
    size_t line = 1;
    for (char c : text_.substr(0, offset)) line += c == '\n' ? 1 : 0;
    std::string what(name_);
    what += ':';
    what += std::to_string(line);
    what += ": ";
    what += problem;
    return Error(Errc::kInvalid, std::move(what));
  }

  // With these out of the way a line is the same thing to us and to the parser.
  Status CheckBytes() {
    if (text_.size() > kMaxSettingsFile) return At(0, "larger than 1 MiB");
    for (size_t i = 0; i < text_.size();) {
      char32_t c = 0;
      size_t length = DecodeUtf8(text_.substr(i), c);
      if (length == 0) return At(i, "not valid UTF-8");
      bool cr_lf = c == '\r' && text_.substr(i, 2) == "\r\n";
      if ((c < 0x20 && c != '\n' && c != '\t' && !cr_lf) || c == 0x7f)
        return At(i, "a control character");
      i += length;
    }
    return Ok();
  }

  // Moves behind the string that starts here. One that is not closed ends with its
  // line, or with the text: the parser stops there with an error.
  void SkipString(bool may_span_lines) {
    char quote = text_[pos_];
    std::string_view three = quote == '"' ? R"(""")" : "'''";
    bool multi = may_span_lines && text_.substr(pos_).starts_with(three);
    pos_ += multi ? 3 : 1;
    while (pos_ < text_.size()) {
      if (quote == '"' && text_[pos_] == '\\') {
        pos_ += pos_ + 1 < text_.size() ? 2 : 1;
      } else if (multi && text_.substr(pos_).starts_with(three)) {
        pos_ += 3;  // one or two quotes may stand just before the closing three
        for (int i = 0; i < 2 && pos_ < text_.size() && text_[pos_] == quote; ++i)
          ++pos_;
        return;
      } else if (!multi && text_[pos_] == quote) {
        ++pos_;
        return;
      } else if (!multi && IsLineEnd()) {
        return;
      } else {
        ++pos_;
      }
    }
  }

  Status Count(char c, size_t& dots, size_t& depth) {
    // toml++ 3.3 runs into undefined behaviour on some letters (U+03FB) out here.
    if (static_cast<unsigned char>(c) >= 0x80)
      return At(pos_, "not valid TOML: a character that belongs in quotes");
    if (c == '.' && ++dots > kMaxDots) return At(pos_, "a key with too many parts");
    if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return At(pos_, "brackets nested too deeply");
    }
    if ((c == ']' || c == '}') && depth > 0) --depth;
    return Ok();
  }

  Result<TomlStatement> One() {
    TomlStatement statement;
    statement.begin = pos_;
    statement.header = text_[pos_] == '[';
    size_t dots = 0;
    size_t depth = 0;
    // The key, or the whole header.
    while (!AtLineEnd() && text_[pos_] != '#' &&
           (statement.header || text_[pos_] != '=')) {
      char c = text_[pos_];
      if (c == '"' || c == '\'') {
        if (text_.substr(pos_, 3) == R"(""")" || text_.substr(pos_, 3) == "'''")
          return At(pos_, "a key that is a multi-line string");
        SkipString(false);
        continue;
      }
      BELAY_OK(Count(c, dots, depth));
      ++pos_;
    }
    std::string_view key = Trimmed(statement.begin, pos_);
    statement.end = statement.begin + key.size();
    if (statement.header) {
      statement.array_header = key.starts_with("[[");
      size_t brackets = statement.array_header ? 2 : 1;
      bool closed =
          key.size() > 2 * brackets &&
          key.ends_with(statement.array_header ? "]]" : "]") &&
          KeyParts(key.substr(brackets, key.size() - 2 * brackets), statement.path);
      if (!closed) return At(statement.begin, "not valid TOML: a bad table header");
      if (pos_ < text_.size() && text_[pos_] == '#') SkipComment();
      return statement;
    }
    if (!KeyParts(key, statement.path))
      return At(statement.begin, "not valid TOML: a bad key");
    if (pos_ >= text_.size() || text_[pos_] != '=') return statement;  // parser: error
    ++pos_;
    while (pos_ < text_.size() && IsBlank(text_[pos_])) ++pos_;
    statement.value_begin = pos_;
    statement.end = pos_;
    depth = 0;
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      if (depth == 0 && (c == '#' || IsLineEnd())) break;
      if (c == '#') {
        statement.comment_in_value = true;
        SkipComment();
        continue;
      }
      if (c == '"' || c == '\'') {
        SkipString(true);
      } else {
        BELAY_OK(Count(c, dots, depth));
        ++pos_;
      }
      if (!IsBlank(c)) statement.end = pos_;
    }
    if (pos_ < text_.size() && text_[pos_] == '#') SkipComment();
    return statement;
  }

  std::string_view Trimmed(size_t begin, size_t end) const {
    while (end > begin && IsBlank(text_[end - 1])) --end;
    return text_.substr(begin, end - begin);
  }

  // "a . 'b c'" -> {"a", "b c"}; absent when a part has escapes, which we do not
  // unpick. False for what is not a key at all.
  static bool KeyParts(std::string_view key,
                       std::optional<std::vector<std::string>>& parts) {
    std::vector<std::string> found;
    bool plain = true;
    size_t i = 0;
    auto skip_blanks = [&] {
      while (i < key.size() && IsBlank(key[i])) ++i;
    };
    for (;;) {
      skip_blanks();
      size_t start = i;
      if (i < key.size() && (key[i] == '"' || key[i] == '\'')) {
        char quote = key[i++];
        while (i < key.size() && key[i] != quote) {
          bool escape = quote == '"' && key[i] == '\\';
          plain = plain && !escape;
          i += escape ? 2 : 1;
        }
        if (i >= key.size()) return false;
        found.emplace_back(key.substr(start + 1, i - start - 1));
        ++i;
      } else {
        while (i < key.size() && IsBareKeyChar(key[i])) ++i;
        if (i == start) return false;
        found.emplace_back(key.substr(start, i - start));
      }
      skip_blanks();
      if (i == key.size()) break;
      if (key[i++] != '.') return false;
    }
    if (plain) parts = std::move(found);
    return true;
  }

  std::string_view text_;
  std::string_view name_;
  size_t pos_ = 0;
};

}  // namespace

Result<std::vector<TomlStatement>> ScanToml(std::string_view text,
                                            std::string_view name) {
  return Scanner(text, name).Run();
}

std::string TomlString(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char raw : text) {
    auto c = static_cast<unsigned char>(raw);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += raw;
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
    } else {
      out += raw;
    }
  }
  out += '"';
  return out;
}

std::string TomlKeyPart(std::string_view part) {
  bool bare = !part.empty();
  for (char c : part) bare = bare && IsBareKeyChar(c);
  return bare ? std::string(part) : TomlString(part);
}

}  // namespace belay
