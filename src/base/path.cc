#include "base/path.h"

#include "base/escape.h"

namespace belay {

namespace {
constexpr size_t kMaxName = 255;

Error BadPath(std::string_view kind, std::string_view bytes, std::string_view why) {
  std::string text(kind);
  text += " '";
  text += EscapeForDisplay(bytes.substr(0, 200));
  text += "' ";
  text += why;
  return Error(Errc::kInvalid, std::move(text));
}

// Why `bytes` may not be a component; empty when it may.
std::string_view NameProblem(std::string_view bytes) {
  if (bytes.empty()) return "has an empty part";
  if (bytes == "." || bytes == "..") return "has a '.' or '..' part";
  if (bytes.size() > kMaxName) return "has a part longer than 255 bytes";
  if (bytes.find('/') != std::string_view::npos) return "has a slash in a name";
  if (bytes.find('\0') != std::string_view::npos) return "has a NUL byte";
  return {};
}

std::string_view RelProblem(std::string_view bytes) {
  if (bytes.empty()) return "is empty";
  for (size_t start = 0;;) {
    size_t slash = bytes.find('/', start);
    std::string_view part =
        bytes.substr(start, slash == std::string_view::npos ? std::string_view::npos
                                                            : slash - start);
    if (auto why = NameProblem(part); !why.empty()) return why;
    if (slash == std::string_view::npos) return {};
    start = slash + 1;
  }
}
}  // namespace

bool IsValidName(std::string_view bytes) { return NameProblem(bytes).empty(); }

Result<Name> Name::Parse(std::string_view bytes) {
  if (auto why = NameProblem(bytes); !why.empty()) return BadPath("name", bytes, why);
  return Name(std::string(bytes));
}
Name Name::Literal(std::string_view bytes) {
  BELAY_CHECK(NameProblem(bytes).empty());
  return Name(std::string(bytes));
}

Result<RelPath> RelPath::Parse(std::string_view bytes) {
  if (auto why = RelProblem(bytes); !why.empty()) return BadPath("path", bytes, why);
  return RelPath(std::string(bytes));
}
RelPath RelPath::Literal(std::string_view bytes) {
  BELAY_CHECK(RelProblem(bytes).empty());
  return RelPath(std::string(bytes));
}
std::vector<std::string_view> RelPath::Components() const {
  std::vector<std::string_view> parts;
  std::string_view rest = bytes_;
  for (;;) {
    size_t slash = rest.find('/');
    parts.push_back(rest.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    rest.remove_prefix(slash + 1);
  }
}
Name RelPath::basename() const {
  size_t slash = bytes_.rfind('/');
  return Name::Literal(slash == std::string::npos
                           ? std::string_view(bytes_)
                           : std::string_view(bytes_).substr(slash + 1));
}
RelPath RelPath::Join(const RelPath& below) const {
  return RelPath(bytes_ + "/" + below.bytes_);
}

Result<AbsPath> AbsPath::Parse(std::string_view bytes) {
  if (bytes.empty() || bytes[0] != '/')
    return BadPath("path", bytes, "is not absolute");
  if (bytes.size() > 1) {
    if (auto why = RelProblem(bytes.substr(1)); !why.empty())
      return BadPath("path", bytes, why);
  }
  return AbsPath(std::string(bytes));
}
AbsPath AbsPath::Literal(std::string_view bytes) {
  auto parsed = Parse(bytes);
  BELAY_CHECK(parsed.ok());
  return std::move(parsed).value();
}
Result<AbsPath> AbsPath::Resolve(const AbsPath& base, std::string_view bytes) {
  if (bytes.empty()) return BadPath("path", bytes, "is empty");
  std::string out = bytes[0] == '/' || base.is_root() ? "" : base.bytes_;
  while (!bytes.empty()) {
    size_t slash = bytes.find('/');
    std::string_view part = bytes.substr(0, slash);
    bytes =
        slash == std::string_view::npos ? std::string_view() : bytes.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      size_t cut = out.rfind('/');
      out.resize(cut == std::string::npos ? 0 : cut);
      continue;
    }
    if (auto why = NameProblem(part); !why.empty()) return BadPath("path", part, why);
    out += '/';
    out += part;
  }
  return AbsPath(out.empty() ? "/" : std::move(out));
}
std::string AbsPath::name() const { return bytes_.substr(bytes_.rfind('/') + 1); }

AbsPath AbsPath::parent() const {
  size_t slash = bytes_.rfind('/');
  return AbsPath(slash == 0 ? "/" : bytes_.substr(0, slash));
}
AbsPath AbsPath::Join(const RelPath& below) const {
  return AbsPath(is_root() ? "/" + below.bytes() : bytes_ + "/" + below.bytes());
}
std::optional<std::string> AbsPath::Below(const AbsPath& top) const {
  if (!IsWithin(top)) return std::nullopt;
  if (*this == top) return std::string();
  return bytes_.substr(top.is_root() ? 1 : top.bytes_.size() + 1);
}

bool AbsPath::IsWithin(const AbsPath& other) const {
  if (other.is_root() || *this == other) return true;
  return bytes_.size() > other.bytes_.size() && bytes_.starts_with(other.bytes_) &&
         bytes_[other.bytes_.size()] == '/';
}

}  // namespace belay
