#include "git/config_parser_internal.h"

namespace belay::git_internal {

namespace {

// Git's own character classes: the locale has no say.
bool IsSpace(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsAlpha(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsKeyChar(int c) { return IsAlpha(c) || (c >= '0' && c <= '9') || c == '-'; }
char Lower(int c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

// What a C string would hold: git cuts values and names at a NUL.
std::string CutAtNul(std::string text) {
  if (size_t nul = text.find('\0'); nul != std::string::npos) text.resize(nul);
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool Run(const std::function<void(std::string, std::optional<std::string>)>& entry) {
    if (text_.starts_with("\xEF\xBB\xBF")) pos_ = 3;  // written by some editors
    std::string name;
    size_t section = 0;  // how much of `name` is "section." or "section.subsection."
    for (bool comment = false;;) {
      line_start_ = line_;
      int c = Next();
      if (c == '\n') {
        if (eof_) return true;
        comment = false;
        continue;
      }
      if (comment || IsSpace(c)) continue;
      if (c == '#' || c == ';') {
        comment = true;
        continue;
      }
      if (c == '[') {
        name.clear();
        if (!Section(name)) return false;
        name += '.';
        section = name.size();
        continue;
      }
      if (!IsAlpha(c)) return false;
      name.resize(section);
      name += Lower(c);
      std::optional<std::string> value;
      if (!Variable(name, value)) return false;
      if (value) value = CutAtNul(std::move(*value));
      entry(CutAtNul(name), std::move(value));
    }
  }

  size_t line() const { return line_start_; }

 private:
  // The end of the file reads as the end of a line; "\r\n" as one too.
  int Next() {
    if (pos_ == text_.size()) {
      eof_ = true;
      return '\n';
    }
    int c = static_cast<unsigned char>(text_[pos_++]);
    if (c == '\r' && pos_ < text_.size() && text_[pos_] == '\n') {
      ++pos_;
      c = '\n';
    }
    if (c == '\n') ++line_;
    return c;
  }

  // After "[": "name]", "name.old-style]" or "name "anything"]".
  bool Section(std::string& name) {
    for (;;) {
      int c = Next();
      if (eof_) return false;
      if (c == ']') return !name.empty();
      if (IsSpace(c)) return Subsection(name, c);
      if (!IsKeyChar(c) && c != '.') return false;
      name += Lower(c);
    }
  }

  bool Subsection(std::string& name, int c) {
    do {
      if (c == '\n') return false;
      c = Next();
    } while (IsSpace(c));
    if (c != '"') return false;
    name += '.';
    for (;;) {
      c = Next();
      if (c == '\n') return false;
      if (c == '"') break;
      if (c == '\\') {
        c = Next();
        if (c == '\n') return false;
      }
      name += static_cast<char>(c);
    }
    return Next() == ']';
  }

  bool Variable(std::string& name, std::optional<std::string>& value) {
    int c = Next();
    for (; !eof_ && IsKeyChar(c); c = Next()) name += Lower(c);
    while (c == ' ' || c == '\t') c = Next();
    if (c == '\n') return true;
    if (c != '=') return false;
    value.emplace();
    return Value(*value);
  }

  // To the end of the line: comments and blanks at both ends go, blanks between words
  // become spaces, quotes protect all three, a backslash joins lines.
  bool Value(std::string& value) {
    bool quoted = false;
    bool comment = false;
    size_t spaces = 0;
    for (;;) {
      int c = Next();
      if (c == '\n') return !quoted;
      if (comment) continue;
      if (IsSpace(c) && !quoted) {
        if (!value.empty()) ++spaces;
        continue;
      }
      if (!quoted && (c == ';' || c == '#')) {
        comment = true;
        continue;
      }
      value.append(spaces, ' ');
      spaces = 0;
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      if (c == '\\') {
        c = Next();
        switch (c) {
          case '\n':
            continue;
          case 't':
            c = '\t';
            break;
          case 'b':
            c = '\b';
            break;
          case 'n':
            c = '\n';
            break;
          case '\\':
          case '"':
            break;
          default:
            return false;
        }
      }
      value += static_cast<char>(c);
    }
  }

  std::string_view text_;
  size_t pos_ = 0;
  bool eof_ = false;
  size_t line_ = 1;
  size_t line_start_ = 1;  // of the construct being read
};

}  // namespace

bool ParseGitConfig(
    std::string_view text,
    const std::function<void(std::string key, std::optional<std::string> value)>& entry,
    size_t& bad_line) {
  Parser parser(text);
  bool whole = parser.Run(entry);
  bad_line = whole ? 0 : parser.line();
  return whole;
}

}  // namespace belay::git_internal
