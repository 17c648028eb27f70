#include "agent/jsonc.h"

#include <algorithm>

#include "base/escape.h"
#include "base/json.h"
#include "base/mutant.h"

namespace belay {

namespace {

bool IsBlankChar(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t LineAtOffset(std::string_view text, size_t offset) {
  return 1 + static_cast<size_t>(std::count(
                 text.begin(), text.begin() + static_cast<long>(offset), '\n'));
}

Error AtOffset(std::string_view shown, std::string_view text, size_t offset,
               std::string_view problem) {
  std::string what(shown);
  what += ':';
  what += std::to_string(LineAtOffset(text, std::min(offset, text.size())));
  what += ": ";
  what += problem;
  return Error(Errc::kInvalid, std::move(what));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Of four digits that were checked.
uint32_t Hex4(std::string_view digits) {
  uint32_t value = 0;
  for (char c : digits.substr(0, 4))
    value = value << 4 | static_cast<uint32_t>(HexDigit(c));
  return value;
}

// Of a string that was checked, without its quotes. Half of a surrogate pair becomes
// U+FFFD.
std::string Unescaped(std::string_view body) {
  std::string out;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    switch (const char c = body[++i]) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        uint32_t unit = Hex4(body.substr(i + 1));
        i += 4;
        if (unit >= 0xd800 && unit < 0xdc00 && body.substr(i + 1, 2) == "\\u") {
          const uint32_t low = Hex4(body.substr(i + 3));
          if (low >= 0xdc00 && low < 0xe000) {
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
          }
        }
        AppendUtf8(out, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
        break;
      }
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string JsonQuoted(std::string_view text) {
  JsonWriter json;
  json.String(text);
  return json.Take();
}

// --- reading -------------------------------------------------------------------------

class JsoncParser {
 public:
  JsoncParser(Jsonc& out) : out_(out), text_(out.text_) {}  // NOLINT: used at once

  Status Run() {
    if (text_.size() > Jsonc::kMaxText) return Bad(0, "larger than 8 MiB");
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    const size_t begin = at_;
    BELAY_OK(SkipTrivia());
    if (at_ == text_.size()) {
      if (text_.find_first_not_of(" \t\r\n", begin) == std::string_view::npos)
        return Ok();
      return Bad(at_, "not valid JSON: there is nothing but comments");
    }
    BELAY_TRY(Jsonc::Id root, Value(Jsonc::kNone, 0));
    (void)root;
    BELAY_OK(SkipTrivia());
    if (at_ != text_.size())
      return Bad(at_, "not valid JSON: something stands behind its end");
    return Ok();
  }

 private:
  Error Bad(size_t offset, std::string_view problem) const {
    return AtOffset(out_.shown_, text_, offset, problem)
        .WithHint("put it right, or move the file away; nothing was changed");
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Blanks and comments.
  Status SkipTrivia() {
    for (;;) {
      while (at_ < text_.size() && IsBlankChar(text_[at_])) ++at_;
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        // Where programs disagree about where it ends, the file is not ours to change.
        const std::string_view line = text_.substr(at_, end - at_);
        if (const size_t cr = line.find('\r'); cr < line.size() - 1)
          return Bad(at_, "not valid JSON: a carriage return in a comment");
        at_ = end;
        out_.line_comments_.push_back(line.ends_with('\r') ? end - 1 : end);
      } else if (rest.starts_with("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos)
          return Bad(at_, "not valid JSON: a comment that is not ended");
        at_ = end + 2;
      } else {
        return Ok();
      }
    }
  }

  Jsonc::Id Add(Jsonc::Id parent, Jsonc::Kind kind, size_t begin) {
    const auto id = static_cast<Jsonc::Id>(out_.nodes_.size());
    out_.nodes_.push_back({.kind = kind, .begin = begin, .parent = parent});
    if (parent == Jsonc::kNone) return id;
    Jsonc::Node& above = out_.nodes_[parent];
    if (above.last != Jsonc::kNone) out_.nodes_[above.last].next = id;
    if (above.first == Jsonc::kNone) above.first = id;
    above.last = id;
    return id;
  }

  Result<Jsonc::Id> Value(Jsonc::Id parent, size_t depth) {
    if (depth > Jsonc::kMaxDepth) return Bad(at_, "nested too deeply");
    const size_t begin = at_;
    const char c = Peek();
    const bool object = c == '{';
    if (object || c == '[') {
      const Jsonc::Id id =
          Add(parent, object ? Jsonc::Kind::kObject : Jsonc::Kind::kArray, begin);
      BELAY_OK(Container(id, object ? '}' : ']', depth));
      out_.nodes_[id].end = at_;
      return id;
    }
    Jsonc::Kind kind = Jsonc::Kind::kLiteral;
    if (c == '"') {
      kind = Jsonc::Kind::kString;
      BELAY_OK(String());
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      kind = Jsonc::Kind::kNumber;
      BELAY_OK(Number());
    } else {
      const std::string_view rest = text_.substr(at_);
      for (std::string_view word : {"true", "false", "null"})
        if (rest.starts_with(word)) at_ += word.size();
      if (at_ == begin) return Bad(at_, "not valid JSON: a value is missing here");
    }
    const Jsonc::Id id = Add(parent, kind, begin);
    out_.nodes_[id].end = at_;
    return id;
  }

  Status Container(Jsonc::Id id, char close, size_t depth) {
    ++at_;
    for (;;) {
      BELAY_OK(SkipTrivia());
      if (Peek() == close) break;
      size_t key_begin = 0, key_end = 0;
      if (close == '}') {
        key_begin = at_;
        if (Peek() != '"')
          return Bad(at_, "not valid JSON: a name in double quotes is missing here");
        BELAY_OK(String());
        key_end = at_;
        BELAY_OK(SkipTrivia());
        if (Peek() != ':') return Bad(at_, "not valid JSON: a colon is missing here");
        ++at_;
        BELAY_OK(SkipTrivia());
      }
      BELAY_TRY(Jsonc::Id child, Value(id, depth + 1));
      out_.nodes_[child].key_begin = key_begin;
      out_.nodes_[child].key_end = key_end;
      BELAY_OK(SkipTrivia());
      if (Peek() == ',') {
        out_.nodes_[child].comma = at_++;
      } else if (Peek() != close) {
        return Bad(at_, close == '}' ? "not valid JSON: a comma or } is missing here"
                                     : "not valid JSON: a comma or ] is missing here");
      }
    }
    ++at_;
    return Ok();
  }

  Status String() {
    const size_t begin = at_++;
    for (;; ++at_) {
      if (at_ >= text_.size() || text_[at_] == '\n')
        return Bad(begin, "not valid JSON: a string that is not ended");
      const char c = text_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20)
        return Bad(at_, "not valid JSON: a control character in a string");
      if (c != '\\') continue;
      const char escape = ++at_ < text_.size() ? text_[at_] : '\0';
      if (escape == 'u') {
        for (size_t i = 1; i <= 4; ++i)
          if (at_ + i >= text_.size() || HexDigit(text_[at_ + i]) < 0)
            return Bad(at_, "not valid JSON: a bad escape in a string");
        at_ += 4;
      } else if (escape == '\0' || std::string_view("\"\\/bfnrt").find(escape) ==
                                       std::string_view::npos) {
        return Bad(std::min(at_, text_.size()),
                   "not valid JSON: a bad escape in a string");
      }
    }
    ++at_;
    return Ok();
  }

  bool Digits() {
    const size_t begin = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return at_ > begin;
  }
  Status Number() {
    const size_t begin = at_;
    if (Peek() == '-') ++at_;
    const bool zero = Peek() == '0';
    const size_t first = at_;
    bool good = Digits() && !(zero && at_ - first > 1);
    if (good && Peek() == '.') {
      ++at_;
      good = Digits();
    }
    if (good && (Peek() == 'e' || Peek() == 'E')) {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      good = Digits();
    }
    if (!good) return Bad(begin, "not valid JSON: a bad number");
    return Ok();
  }

  Jsonc& out_;
  std::string_view text_;
  size_t at_ = 0;
};

Result<Jsonc> Jsonc::Parse(std::string text, std::string shown) {
  Jsonc out;
  out.text_ = std::move(text);
  out.shown_ = std::move(shown);
  BELAY_OK(JsoncParser(out).Run());
  return out;
}

std::vector<Jsonc::Id> Jsonc::Children(Id container) const {
  std::vector<Id> out;
  for (Id id = nodes_[container].first; id != kNone; id = nodes_[id].next)
    out.push_back(id);
  return out;
}

bool Jsonc::IsBlank(Id container) const {
  const Node& node = nodes_[container];
  return std::all_of(text_.begin() + static_cast<long>(node.begin) + 1,
                     text_.begin() + static_cast<long>(node.end) - 1, IsBlankChar);
}

std::string Jsonc::Key(Id member) const {
  const Node& node = nodes_[member];
  if (node.key_end == 0) return {};
  return Unescaped(std::string_view(text_).substr(node.key_begin + 1,
                                                  node.key_end - node.key_begin - 2));
}

std::string_view Jsonc::Text(Id id) const {
  return std::string_view(text_).substr(nodes_[id].begin,
                                        nodes_[id].end - nodes_[id].begin);
}

std::optional<std::string> Jsonc::StringOf(Id id) const {
  if (kind(id) != Kind::kString) return std::nullopt;
  const std::string_view text = Text(id);
  return Unescaped(text.substr(1, text.size() - 2));
}

size_t Jsonc::Line(Id id) const { return LineAtOffset(text_, nodes_[id].start()); }

Error Jsonc::At(Id id, std::string_view problem) const {
  return AtOffset(shown_, text_, nodes_[id].start(), problem);
}

Result<Jsonc::Id> Jsonc::Member(Id object, std::string_view key) const {
  Id found = kNone;
  for (Id id = nodes_[object].first; id != kNone; id = nodes_[id].next) {
    if (Key(id) != key) continue;
    if (found != kNone)
      return At(id, JsonQuoted(key) + " is there twice, first in line " +
                        std::to_string(Line(found)))
          .WithHint("make one of them; nothing was changed");
    found = id;
  }
  return found;
}

// --- changing ------------------------------------------------------------------------

namespace {

void Render(const JsonDraft& value, const std::string& newline, const std::string& unit,
            bool tight, bool inlined, const std::string& indent, std::string& out) {
  if (value.kind == JsonDraft::Kind::kString) {
    out += JsonQuoted(value.text);
    return;
  }
  if (value.kind == JsonDraft::Kind::kInt) {
    out += std::to_string(value.number);
    return;
  }
  const bool object = value.kind == JsonDraft::Kind::kObject;
  const size_t count = object ? value.members.size() : value.items.size();
  out += object ? '{' : '[';
  const std::string below = indent + unit;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += inlined && !tight ? ", " : ",";
    if (!inlined) out += newline + below;
    if (object) out += JsonQuoted(value.members[i].first) + (tight ? ":" : ": ");
    Render(object ? value.members[i].second : value.items[i], newline, unit, tight,
           inlined, below, out);
  }
  if (count > 0 && !inlined) out += newline + indent;
  out += object ? '}' : ']';
}

}  // namespace

Jsonc::Style Jsonc::StyleOf() const {
  Style style{.newline = "\n", .unit = "  "};
  if (const size_t at = text_.find('\n'); at != std::string::npos && at > 0)
    if (text_[at - 1] == '\r') style.newline = "\r\n";
  if (nodes_.empty()) return style;
  for (const Node& node : nodes_) {
    if (node.key_end == 0) continue;
    const size_t colon = text_.find(':', node.key_end);  // comments may deceive it
    style.tight = colon + 1 == node.begin;
    break;
  }
  const Node& root = nodes_[0];
  if (root.first == kNone) return style;
  style.inlined = Text(0).find('\n') == std::string_view::npos;
  const size_t start = nodes_[root.first].start();
  const size_t blanks = BlanksBefore(start);
  if (const size_t line = text_.rfind('\n', start);
      line != std::string::npos && line >= blanks && start - line > 1)
    style.unit = text_.substr(line + 1, start - line - 1);
  return style;
}

// What the line that holds `offset` begins with.
std::string Jsonc::IndentAt(size_t offset) const {
  size_t line = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
  line = line == std::string::npos ? 0 : line + 1;
  if (line == 0 && text_.starts_with("\xef\xbb\xbf")) line = 3;
  size_t end = line;
  while (end < offset && (text_[end] == ' ' || text_[end] == '\t')) ++end;
  return text_.substr(line, end - line);
}

size_t Jsonc::BlanksBefore(size_t offset) const {
  auto behind = std::upper_bound(line_comments_.begin(), line_comments_.end(), offset);
  const size_t stop = behind == line_comments_.begin() ? 0 : *(behind - 1);
  while (offset > stop && IsBlankChar(text_[offset - 1])) --offset;
  return offset;
}

bool Jsonc::EndsLineComment(size_t offset) const {
  return std::binary_search(line_comments_.begin(), line_comments_.end(), offset);
}

Jsonc::CommentsEnd Jsonc::BehindComments(size_t at) const {
  CommentsEnd out{.at = at};
  for (size_t look = at;;) {
    // A carriage return alone ends no line.
    while (look < text_.size() && IsBlankChar(text_[look]) && text_[look] != '\n' &&
           !std::string_view(text_).substr(look).starts_with("\r\n"))
      ++look;
    const std::string_view rest = std::string_view(text_).substr(look);
    if (rest.starts_with("//")) {
      const size_t end =
          *std::upper_bound(line_comments_.begin(), line_comments_.end(), look);
      return {.at = end, .any = true, .to_line_end = true};
    }
    if (!rest.starts_with("/*")) return out;
    look = text_.find("*/", look + 2) + 2;
    out = {.at = look, .any = true};
  }
}

Result<Jsonc> Jsonc::Reparsed(std::string text) const {
  return Parse(std::move(text), shown_);
}

Result<Jsonc> Jsonc::Append(Id object, std::string_view key,
                            const JsonDraft& value) const {
  const std::string name(key);
  return AppendText(object, &name, value);
}
Result<Jsonc> Jsonc::Append(Id array, const JsonDraft& value) const {
  return AppendText(array, nullptr, value);
}

Result<Jsonc> Jsonc::AppendText(Id container, const std::string* key,
                                const JsonDraft& value) const {
  const Style style = StyleOf();
  const Node& node = nodes_[container];
  auto render = [&](bool inlined, const std::string& indent) {
    std::string out;
    if (key != nullptr) out = JsonQuoted(*key) + (style.tight ? ":" : ": ");
    Render(value, style.newline, style.unit, style.tight, inlined, indent, out);
    return out;
  };
  std::string text = text_;
  const bool one_line = Text(container).find('\n') == std::string_view::npos;
  if (node.last == kNone) {
    const CommentsEnd place = BehindComments(node.begin + 1);
    const std::string outer = IndentAt(node.begin), inner = outer + style.unit;
    std::string put;
    if (style.inlined || (one_line && place.any)) {
      put = (place.any ? " " : "") + render(true, {});
    } else {
      put = style.newline + inner + render(false, inner);
      if (one_line) put += style.newline + outer;
    }
    text.insert(place.at, put);
    return Reparsed(std::move(text));
  }
  const Node& last = nodes_[node.last];
  const bool trailing = last.comma != std::string::npos;
  const CommentsEnd place = BehindComments(trailing ? last.comma + 1 : last.end);
  const size_t blanks = BlanksBefore(last.start());
  const std::string_view before =
      std::string_view(text_).substr(blanks, last.start() - blanks);
  const std::string indent = IndentAt(last.start());
  std::string put;
  if (place.to_line_end || before.find('\n') != std::string_view::npos)
    put = style.newline + indent;
  else if (!style.tight)
    put = " ";
  put += render(one_line, indent);
  if (trailing) put += ',';
  text.insert(place.at, put);
  if (!trailing) text.insert(last.end, ",");
  return Reparsed(std::move(text));
}

Result<Jsonc> Jsonc::Remove(Id child) const {
  const Node& node = nodes_[child];
  const Id container = node.parent;
  Id previous = kNone;
  for (Id id = nodes_[container].first; id != child; id = nodes_[id].next)
    previous = id;
  size_t begin = BlanksBefore(node.start()), end = node.end;
  const size_t comma = node.comma != std::string::npos ? node.comma
                       : previous != kNone             ? nodes_[previous].comma
                                                       : std::string::npos;
  auto skip_blanks = [&](size_t at) {
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    return at;
  };
  auto is_line_end = [&](size_t at) {
    const std::string_view rest = std::string_view(text_).substr(at);
    return rest.starts_with('\n') || rest.starts_with("\r\n");
  };
  if (begin == node.start() && node.comma == node.end && node.next != kNone) {
    // Nothing before it that could go: what separates it from the next one does.
    const size_t after = skip_blanks(node.comma + 1);
    if (!is_line_end(after) && text_[after] != '/') end = after;
  }
  // A comment to the end of a line needs the line's end.
  if (EndsLineComment(begin) &&
      !is_line_end(skip_blanks(node.comma == end ? end + 1 : end)))
    begin = text_.find('\n', begin) + 1;
  std::string text = text_;
  if (comma != std::string::npos && comma >= end) text.erase(comma, 1);
  text.erase(begin, end - begin);
  if (comma != std::string::npos && comma < begin) text.erase(comma, 1);
  BELAY_TRY(Jsonc out, Reparsed(std::move(text)));
  // Nothing moved before the container, so its id is what it was.
  if (!out.IsEmpty(container) || !out.IsBlank(container)) return out;
  const Node& emptied = out.nodes_[container];
  text = out.text_;
  text.erase(emptied.begin + 1, emptied.end - emptied.begin - 2);
  return Reparsed(std::move(text));
}

Result<Jsonc> Jsonc::Replace(Id id, const JsonDraft& value) const {
  const Style style = StyleOf();
  const Node& node = nodes_[id];
  std::string put;
  Render(value, style.newline, style.unit, style.tight,
         style.inlined || IsEmpty(id) || Text(id).find('\n') == std::string_view::npos,
         IndentAt(node.start()), put);
  std::string text = text_;
  text.replace(node.begin, node.end - node.begin, put);
  return Reparsed(std::move(text));
}

Result<Jsonc> Jsonc::SetRoot(const JsonDraft& value) const {
  const Style style = StyleOf();
  std::string text = text_;
  Render(value, style.newline, style.unit, false, false, {}, text);
  text += style.newline;
  return Reparsed(std::move(text));
}

}  // namespace belay
