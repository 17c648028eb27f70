#include "agent/json.h"

#include <array>
#include <charconv>
#include <cstring>

#include "base/escape.h"

namespace belay {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What ends a run of plain characters in a string: quote, backslash, control character,
// or the beginning of a longer UTF-8 sequence.
constexpr std::array<bool, 256> MakeSpecial() {
  std::array<bool, 256> special{};
  for (size_t i = 0; i < 0x20; ++i) special[i] = true;
  for (size_t i = 0x80; i < 0x100; ++i) special[i] = true;
  special['"'] = special['\\'] = true;
  return special;
}
constexpr std::array<bool, 256> kSpecial = MakeSpecial();

// True when one of the eight bytes may be special; false is certain.
bool MayBeSpecial(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  const auto has_zero = [](uint64_t x) { return (x - kOnes) & ~x & kHigh; };
  return ((word & kHigh) | ((word - kOnes * 0x20) & ~word & kHigh) |
          has_zero(word ^ kOnes * '"') | has_zero(word ^ kOnes * '\\')) != 0;
}

size_t PlainRun(std::string_view text) {
  size_t at = 0;
  while (text.size() - at >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if (MayBeSpecial(word)) break;
    at += 8;
  }
  while (at < text.size() && !kSpecial[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

std::optional<uint32_t> HexDigits(std::string_view four) {
  uint32_t value = 0;
  if (four.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(four.data(), four.data() + 4, value, 16);
  if (error != std::errc() || end != four.data() + 4) return std::nullopt;
  return value;
}

// Reads a document once, forwards, and says whether it is one.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  // The one value of the text; nothing when it is not JSON: reason() and at().
  std::optional<std::string_view> Whole();
  const char* reason() const { return reason_; }
  size_t at() const { return at_; }

 private:
  bool Fail(const char* reason) {
    if (reason_ == nullptr) reason_ = at_ < text_.size() ? reason : "it ends too early";
    return false;
  }
  void Space() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return Fail("not a value");
    at_ += word.size();
    return true;
  }
  bool Digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > begin || Fail("not a number");
  }
  bool Number();
  bool String();
  bool Escape();
  bool Scalar();
  bool Open(bool object);
  bool Name();
  bool AfterValue(bool& done);

  std::string_view text_;
  size_t at_ = 0;
  const char* reason_ = nullptr;
  // One bit for each open bracket, the innermost lowest: an object's or an array's.
  uint64_t objects_ = 0;
  size_t depth_ = 0;
  static_assert(Json::kMaxDepth <= 64);
};

bool Checker::Number() {
  Take('-');
  if (!Take('0') && !Digits()) return false;
  if (Take('.') && !Digits()) return false;
  if (Take('e') || Take('E')) {
    if (!Take('+')) Take('-');
    return Digits();
  }
  return true;
}

bool Checker::Escape() {
  ++at_;  // the backslash
  if (at_ >= text_.size()) return Fail("");
  const char c = text_[at_];
  if (c == 'u') {
    if (!HexDigits(text_.substr(at_ + 1))) {
      if (text_.size() - at_ < 5) at_ = text_.size();
      return Fail("not an escape");
    }
    at_ += 5;
    return true;
  }
  if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos)
    return Fail("not an escape");
  ++at_;
  return true;
}

bool Checker::String() {
  if (!Take('"')) return Fail("a string is missing");
  while (true) {
    at_ += PlainRun(text_.substr(at_));
    if (at_ >= text_.size()) return Fail("");
    if (Take('"')) return true;
    if (text_[at_] == '\\') {
      if (!Escape()) return false;
      continue;
    }
    char32_t code_point = 0;
    const size_t length = DecodeUtf8(text_.substr(at_), code_point);
    if (length < 2) return Fail("a control character, or not UTF-8");
    at_ += length;
  }
}

bool Checker::Scalar() {
  if (at_ >= text_.size()) return Fail("");
  switch (text_[at_]) {
    case '"':
      return String();
    case 't':
      return Word("true");
    case 'f':
      return Word("false");
    case 'n':
      return Word("null");
    default:
      if (text_[at_] == '-' || IsDigit(text_[at_])) return Number();
      return Fail("not a value");
  }
}

bool Checker::Open(bool object) {
  if (depth_ == Json::kMaxDepth) return Fail("nested too deeply");
  ++at_;
  ++depth_;
  objects_ = objects_ << 1 | (object ? 1 : 0);
  return true;
}

bool Checker::Name() {
  Space();
  if (!String()) return false;
  Space();
  return Take(':') || Fail("a colon is missing");
}

// Behind a value: closes what ends here and stands before the next value, or is done.
bool Checker::AfterValue(bool& done) {
  while (depth_ > 0) {
    Space();
    const bool object = (objects_ & 1) != 0;
    if (Take(',')) return !object || Name();
    if (!Take(object ? '}' : ']')) return Fail("a comma or a bracket is missing");
    objects_ >>= 1;
    --depth_;
  }
  done = true;
  return true;
}

std::optional<std::string_view> Checker::Whole() {
  Space();
  const size_t begin = at_;
  for (bool done = false; !done;) {
    Space();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '{' || c == '[') {
      if (!Open(c == '{')) return std::nullopt;
      Space();
      if (at_ < text_.size() && text_[at_] == (c == '{' ? '}' : ']')) {
        if (!AfterValue(done)) return std::nullopt;
      } else if (c == '{' && !Name()) {
        return std::nullopt;
      }
    } else if (!Scalar() || !AfterValue(done)) {
      return std::nullopt;
    }
  }
  const std::string_view value = text_.substr(begin, at_ - begin);
  Space();
  if (at_ == text_.size()) return value;
  reason_ = "something follows it";
  return std::nullopt;
}

Json::Kind KindOf(std::string_view value) {
  switch (value.front()) {
    case '{':
      return Json::Kind::kObject;
    case '[':
      return Json::Kind::kArray;
    case '"':
      return Json::Kind::kString;
    case 't':
    case 'f':
      return Json::Kind::kBool;
    case 'n':
      return Json::Kind::kNull;
    default:
      return Json::Kind::kNumber;
  }
}

// --- what follows walks over text that was checked ----------------------------------

// Behind the string that begins at `text`.
size_t StringEnd(std::string_view text) {
  size_t at = 1;
  while (true) {
    const void* quote = std::memchr(text.data() + at, '"', text.size() - at);
    BELAY_CHECK(quote != nullptr);
    const size_t found =
        static_cast<size_t>(static_cast<const char*>(quote) - text.data());
    size_t slashes = 0;
    while (text[found - slashes - 1] == '\\') ++slashes;
    at = found + 1;
    if (slashes % 2 == 0) return at;
  }
}

// Behind the value that begins at `text`.
size_t ValueEnd(std::string_view text) {
  if (text.front() == '"') return StringEnd(text);
  size_t at = 0, depth = 0;
  do {
    switch (text[at]) {
      case '"':
        at += StringEnd(text.substr(at));
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        --depth;
        break;
      default:
        break;
    }
    ++at;
    // A number or a word ends before what cannot be part of it.
  } while (depth > 0 || (at < text.size() && text.front() != '{' &&
                         text.front() != '[' && text[at] != ',' && text[at] != '}' &&
                         text[at] != ']' && !IsSpace(text[at])));
  return at;
}

void SkipSpace(std::string_view& text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
}

// Decodes the \uXXXX at the beginning of `text`, and the second half of a pair.
void DecodeUnicode(std::string_view& text, std::string& out) {
  uint32_t c = *HexDigits(text.substr(2));
  text.remove_prefix(6);
  if (c >= 0xD800 && c < 0xDC00 && text.substr(0, 2) == "\\u") {
    const uint32_t low = *HexDigits(text.substr(2));
    if (low >= 0xDC00 && low < 0xE000) {
      text.remove_prefix(6);
      AppendUtf8(out, 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00));
      return;
    }
  }
  AppendUtf8(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
}

char Unescaped(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

// The text of a string with its quotes; stops soon after `limit` bytes.
std::string Decode(std::string_view quoted, size_t limit) {
  std::string_view rest = quoted.substr(1, quoted.size() - 2);
  std::string out;
  while (!rest.empty() && out.size() <= limit) {
    const size_t slash = std::min(rest.find('\\'), rest.size());
    const size_t room = limit - out.size();
    if (slash > 0) {
      // One more than fits, so that CutText sees where the character ends.
      out.append(rest.substr(0, room < slash ? room + 1 : slash));
      if (room < slash) break;
      rest.remove_prefix(slash);
    } else if (rest[1] == 'u') {
      DecodeUnicode(rest, out);
    } else {
      out.push_back(Unescaped(rest[1]));
      rest.remove_prefix(2);
    }
  }
  out.resize(CutText(out, limit).size());
  return out;
}

bool StringIs(std::string_view quoted, std::string_view text) {
  const std::string_view inner = quoted.substr(1, quoted.size() - 2);
  if (inner == text && text.find('\\') == std::string_view::npos) return true;
  if (inner.find('\\') == std::string_view::npos) return false;
  return Decode(quoted, text.size() + 4) == text;
}

}  // namespace

std::string_view CutText(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  // At most three bytes back is the beginning of a character of UTF-8.
  for (size_t back = 0; back < 4 && back <= limit; ++back) {
    if ((static_cast<unsigned char>(text[limit - back]) & 0xC0) == 0x80) continue;
    end = limit - back;
    break;
  }
  return text.substr(0, end);
}

Result<Json> Json::Parse(std::string_view text) {
  Checker checker(text);
  const std::optional<std::string_view> value = checker.Whole();
  if (!value)
    return Error(Errc::kInvalid, std::string("not JSON at byte ") +
                                     std::to_string(checker.at()) + ": " +
                                     checker.reason());
  return Json(KindOf(*value), *value);
}

std::optional<bool> Json::Bool() const {
  if (kind_ != Kind::kBool) return std::nullopt;
  return raw_.front() == 't';
}

std::optional<double> Json::Number() const {
  if (kind_ != Kind::kNumber) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(raw_.data(), raw_.data() + raw_.size(), value);
  if (error != std::errc() || end != raw_.data() + raw_.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> Json::Uint() const {
  if (kind_ != Kind::kNumber) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(raw_.data(), raw_.data() + raw_.size(), value);
  if (error != std::errc() || end != raw_.data() + raw_.size()) return std::nullopt;
  return value;
}

std::optional<std::string> Json::Text(size_t limit) const {
  if (kind_ != Kind::kString) return std::nullopt;
  return Decode(raw_, limit);
}

bool Json::TextIs(std::string_view text) const {
  return kind_ == Kind::kString && StringIs(raw_, text);
}

std::optional<Json> Json::Get(std::string_view name) const {
  if (kind_ != Kind::kObject) return std::nullopt;
  for (JsonParts parts(*this); parts.Next();)
    if (parts.NameIs(name)) return parts.value();
  return std::nullopt;
}

std::string Json::Compact() const {
  std::string out;
  for (std::string_view rest = raw_; !rest.empty();) {
    if (rest.front() == '"') {
      const size_t end = StringEnd(rest);
      out.append(rest.substr(0, end));
      rest.remove_prefix(end);
      continue;
    }
    if (!IsSpace(rest.front())) out.push_back(rest.front());
    rest.remove_prefix(1);
  }
  return out;
}

JsonParts::JsonParts(const Json& whole) : named_(whole.is_object()) {
  if (whole.is_object() || whole.is_array()) rest_ = whole.raw().substr(1);
}

bool JsonParts::Next() {
  SkipSpace(rest_);
  if (!rest_.empty() && rest_.front() == ',') {
    rest_.remove_prefix(1);
    SkipSpace(rest_);
  }
  if (rest_.empty() || rest_.front() == ']' || rest_.front() == '}') {
    rest_ = {};
    return false;
  }
  if (named_) {
    name_ = rest_.substr(0, StringEnd(rest_));
    rest_.remove_prefix(name_.size());
    SkipSpace(rest_);
    rest_.remove_prefix(1);  // the colon
    SkipSpace(rest_);
  }
  const std::string_view value = rest_.substr(0, ValueEnd(rest_));
  value_ = Json(KindOf(value), value);
  rest_.remove_prefix(value.size());
  return true;
}

bool JsonParts::NameIs(std::string_view name) const {
  return named_ && StringIs(name_, name);
}

std::string JsonParts::name(size_t limit) const {
  return named_ ? Decode(name_, limit) : std::string();
}

JsonFields::JsonFields(const Json& object) : whole_(object) {
  constexpr size_t kMost = 1000, kLongestName = 256;
  if (!object.is_object()) return;
  for (JsonParts parts(object); parts.Next();) {
    if (fields_.size() == kMost) {
      more_ = true;
      break;
    }
    // Nobody asks for a longer one.
    fields_.push_back({parts.name(kLongestName), parts.value()});
  }
}

std::optional<Json> JsonFields::Get(std::string_view name) const {
  for (const Field& field : fields_)
    if (field.name == name) return field.value;
  return more_ ? whole_.Get(name) : std::nullopt;
}

}  // namespace belay
