#include "ignore/pattern_file.h"

#include <algorithm>
#include <cstring>

#include "base/mutant.h"
#include "ignore/wildmatch.h"

namespace belay {
namespace {

// Below this many patterns comparing them one by one is as fast.
constexpr size_t kIndexFrom = 5;

uint32_t Mix(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9e3779b97f4a7c15;
  return static_cast<uint32_t>(h >> 32);
}

uint64_t Load(const char* data, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, data, size);
  return word;
}

// Names are short: eight bytes at a time, the rest in loads that overlap (a copy of
// unknown size would be a call).
uint32_t HashBytes(const char* data, size_t size) {
  auto add = [](uint64_t h, uint64_t word) {
    h = (h ^ word) * 0xff51afd7ed558ccd;
    return h ^ (h >> 29);
  };
  uint64_t h = size;
  if (size >= 8) {
    for (size_t at = 0; at + 8 < size; at += 8) h = add(h, Load(data + at, 8));
    h = add(h, Load(data + size - 8, 8));
  } else if (size >= 4) {
    h = add(h, Load(data, 4) << 32 | Load(data + size - 4, 4));
  } else {
    for (size_t i = 0; i < size; ++i) h = h << 8 | static_cast<unsigned char>(data[i]);
  }
  return Mix(h * 0xff51afd7ed558ccd);
}

uint64_t ByteBits(std::string_view bytes) {
  uint64_t bits = 0;
  for (char c : bytes) bits |= uint64_t{1} << (FoldByte(c) & 63);
  return bits;
}

// The bits of bytes that stand for themselves in the part of a glob that matches the
// last component. Not all of them need be found.
uint64_t NeededBytes(std::string_view glob, bool anywhere) {
  const size_t slash = glob.rfind('/');
  if (slash != std::string_view::npos) {
    if (glob.substr(0, slash).find('[') != std::string_view::npos)
      return 0;  // the slash may be in a set
    glob.remove_prefix(slash + 1);
  }
  uint64_t bits = ByteBits(LiteralTail(glob));
  if (!anywhere && glob.find("**") != std::string_view::npos)
    return bits;  // what is before the stars may match another component
  for (char c : glob) {
    if (c == '[' || c == '\\') break;
    if (c != '*' && c != '?') bits |= ByteBits({&c, 1});
  }
  return bits;
}

uint32_t FoldedHash(std::string_view bytes) {
  std::string folded(bytes);
  for (char& c : folded) c = FoldByte(c);
  return HashBytes(folded.data(), folded.size());
}

std::string_view LastComponent(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Unescaped spaces at the end go; a backslash that ends the line keeps them all.
std::string_view TrimSpaces(std::string_view line) {
  size_t end = line.size();
  size_t spaces = std::string_view::npos;  // where the present run of them began
  for (size_t i = 0; i < end; ++i) {
    if (line[i] == ' ') {
      if (spaces == std::string_view::npos) spaces = i;
      continue;
    }
    if (line[i] == '\\' && ++i == end) return line;
    spaces = std::string_view::npos;
  }
  return line.substr(0, spaces);
}

}  // namespace

// Each pattern that can match is in one chain. Chains run from the last pattern to the
// first; 0 ends one, n + 1 stands for pattern n.
struct PatternFile::Index {
  std::vector<uint32_t> next;     // by pattern
  std::vector<uint32_t> by_name;  // heads by hash of the name that it must be
  std::array<uint32_t, 256> by_last_byte{};   // of the name
  std::array<uint32_t, 256> by_first_byte{};  // of the name or of the path
  uint32_t others = 0;
};

PatternFile::PatternFile() = default;
PatternFile::PatternFile(PatternFile&&) noexcept = default;
PatternFile& PatternFile::operator=(PatternFile&&) noexcept = default;
PatternFile::~PatternFile() = default;

// --- queries -------------------------------------------------------------------------

PathQuery::PathQuery(std::string_view dir, std::string_view name, bool is_dir)
    : dir_(dir),
      name_(name),
      is_dir_(is_dir),
      hash_(HashBytes(name.data(), name.size())),
      bytes_(ByteBits(name)) {}

uint32_t PathQuery::folded_hash() const {
  if (!folded_) {
    folded_hash_ = FoldedHash(name_);
    folded_ = true;
  }
  return folded_hash_;
}

std::string_view PathQuery::path() const {
  const size_t size = dir_.size() + name_.size();
  char* to = short_.data();
  if (size > short_.size()) {
    if (!joined_) long_.resize(size);
    to = long_.data();
  }
  if (!joined_) {
    std::memcpy(to, dir_.data(), dir_.size());
    std::memcpy(to + dir_.size(), name_.data(), name_.size());
    joined_ = true;
  }
  return {to, size};
}

// --- reading -------------------------------------------------------------------------

PatternFile PatternFile::Parse(std::string name, std::string bytes, bool fold_case) {
  PatternFile file;
  file.name_ = std::move(name);
  file.bytes_ = std::move(bytes);
  file.fold_case_ = fold_case;
  if (file.bytes_.size() > kMaxPatternFile) {
    file.too_large_ = true;
    return file;
  }
  const std::string_view text = file.bytes_;
  size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  for (uint32_t line = 1; at < text.size(); ++line) {
    size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    file.AddLine(at, end, line);
    at = end + 1;
  }
  file.BuildIndex();
  return file;
}

PatternFile PatternFile::FromList(std::string name, std::vector<std::string> entries) {
  PatternFile file;
  file.name_ = std::move(name);
  for (const std::string& entry : entries) file.bytes_ += entry + '\n';
  size_t at = 0;
  uint32_t position = 0;
  for (const std::string& entry : entries) {
    file.AddLine(at, at + entry.size(), ++position);
    at += entry.size() + 1;
  }
  file.BuildIndex();
  return file;
}

void PatternFile::AddLine(size_t begin, size_t end, uint32_t line) {
  std::string_view text = std::string_view(bytes_).substr(begin, end - begin);
  if (text.empty() || (text[0] == '#' && !BELAY_MUTANT("comments-count"))) return;
  if (text.back() == '\r' && !BELAY_MUTANT("keep-carriage-return"))
    text.remove_suffix(1);
  text = text.substr(0, text.find('\0'));
  if (!BELAY_MUTANT("keep-trailing-spaces")) text = TrimSpaces(text);

  Pattern p;
  p.line = line;
  if (text.starts_with('!')) {
    p.negative = !BELAY_MUTANT("forget-negation");
    text.remove_prefix(1);
    ++begin;
  }
  std::string_view glob = text;
  if (glob.ends_with('/')) {
    glob.remove_suffix(1);
    p.dir_only = !BELAY_MUTANT("directory-only-forgotten");
  }
  p.anywhere = glob.find('/') == std::string_view::npos;
  p.suffix = text.starts_with('*') && LiteralPrefix(text.substr(1)) + 1 == text.size();
  if (glob.starts_with('/')) {
    p.rooted = true;
    glob.remove_prefix(1);
    ++begin;
  }
  p.begin = static_cast<uint32_t>(begin);
  p.size = static_cast<uint32_t>(glob.size());
  p.literal = static_cast<uint32_t>(LiteralPrefix(glob));
  p.needs = NeededBytes(glob, p.anywhere);
  patterns_.push_back(p);
}

void PatternFile::BuildIndex() {
  patterns_.shrink_to_fit();
  if (patterns_.size() < kIndexFrom) return;
  size_t heads = 16;
  while (heads < patterns_.size() * 2) heads *= 2;
  auto index = std::make_unique<Index>();
  index->by_name.assign(heads, 0);
  index->next.assign(patterns_.size(), 0);
  for (uint32_t n = 0; n < patterns_.size(); ++n) {
    if (uint32_t* head = ChainFor(patterns_[n], *index)) {
      index->next[n] = *head;
      *head = n + 1;
    }
  }
  index_ = std::move(index);
}

// Where to look for a pattern: by what a path must have for it to match. Null when
// nothing can match.
uint32_t* PatternFile::ChainFor(const Pattern& p, Index& index) const {
  const std::string_view glob = Glob(p);
  auto byte = [&](char c) {
    return static_cast<unsigned char>(fold_case_ ? FoldByte(c) : c);
  };
  const std::string_view tail = p.literal == p.size ? glob : LiteralTail(glob);
  const bool whole_name =
      p.literal == p.size || tail.find('/') != std::string_view::npos;
  // `foo**/bar` matches "foobar", and `foo**//` "foo": see Matches().
  const bool odd = !p.anywhere && p.literal > 0 && p.literal < p.size &&
                   glob[p.literal - 1] != '/' && glob[p.literal] == '*';
  if (whole_name && !odd) {
    const std::string_view name = LastComponent(tail);
    if (name.empty()) return nullptr;
    const uint32_t hash =
        fold_case_ ? FoldedHash(name) : HashBytes(name.data(), name.size());
    return &index.by_name[hash & (index.by_name.size() - 1)];
  }
  if (!tail.empty() && !odd) return &index.by_last_byte[byte(tail.back())];
  if (p.literal > 0) return &index.by_first_byte[byte(glob[0])];
  return &index.others;
}

// --- matching ------------------------------------------------------------------------

// Cheap reasons why not, before the call.
inline bool PatternFile::MayMatch(const Pattern& p, const PathQuery& query) {
  return (p.needs & ~query.bytes()) == 0 && (!p.dir_only || query.is_dir());
}

bool PatternFile::Matches(const Pattern& p, const PathQuery& query, size_t base) const {
  const std::string_view glob = Glob(p);
  const std::string_view name = query.name();
  if (p.anywhere) {
    if (p.literal == p.size) return EqualBytes(glob, name, fold_case_);
    if (p.suffix) {
      const size_t tail = glob.size() - 1;
      return tail <= name.size() &&
             EqualBytes(glob.substr(1), name.substr(name.size() - tail), fold_case_);
    }
    return name.size() >= p.literal &&
           EqualBytes(glob.substr(0, p.literal), name.substr(0, p.literal),
                      fold_case_) &&
           Wildmatch(glob.substr(p.literal), name.substr(p.literal),
                     {.path = false, .fold_case = fold_case_});
  }
  const std::string_view dir = query.dir().substr(base);
  if (p.literal == p.size) {
    return glob.size() == dir.size() + name.size() &&
           EqualBytes(glob.substr(0, dir.size()), dir, fold_case_) &&
           EqualBytes(glob.substr(dir.size()), name, fold_case_);
  }
  const std::string_view path = query.path().substr(base);
  // As git does it: the plain start is compared first and cut off, so that `foo**/bar`
  // has its stars at the start of what is left, where they cross slashes.
  return path.size() >= p.literal &&
         EqualBytes(glob.substr(0, p.literal), path.substr(0, p.literal), fold_case_) &&
         Wildmatch(glob.substr(p.literal), path.substr(p.literal),
                   {.path = true, .fold_case = fold_case_});
}

const Pattern* PatternFile::LastMatch(const PathQuery& query, size_t base) const {
  if (index_ != nullptr) return LastMatchIndexed(query, base);
  for (size_t i = patterns_.size(); i > 0; --i) {
    const size_t n = BELAY_MUTANT("first-match-wins") ? patterns_.size() - i : i - 1;
    const Pattern& p = patterns_[n];
    if (MayMatch(p, query) && Matches(p, query, base)) return &p;
  }
  return nullptr;
}

const Pattern* PatternFile::LastMatchIndexed(const PathQuery& query,
                                             size_t base) const {
  const std::string_view name = query.name();
  if (name.empty()) return nullptr;
  uint32_t best = 0;  // pattern number + 1
  auto walk = [&](uint32_t head) {
    for (uint32_t at = head; at > best; at = index_->next[at - 1]) {
      const Pattern& p = patterns_[at - 1];
      if (MayMatch(p, query) && Matches(p, query, base))
        best = at;  // ends the walk: chains fall
    }
  };
  auto byte = [&](char c) {
    return static_cast<unsigned char>(fold_case_ ? FoldByte(c) : c);
  };
  const uint32_t hash = fold_case_ ? query.folded_hash() : query.hash();
  walk(index_->by_name[hash & (index_->by_name.size() - 1)]);
  walk(index_->by_last_byte[byte(name.back())]);
  walk(index_->by_first_byte[byte(name[0])]);
  if (query.dir().size() > base) walk(index_->by_first_byte[byte(query.dir()[base])]);
  walk(index_->others);
  return best == 0 ? nullptr : &patterns_[best - 1];
}

const Pattern* PatternFile::LastMatch(std::string_view path, bool is_dir) const {
  const std::string_view name = LastComponent(path);
  const PathQuery query(path.substr(0, path.size() - name.size()), name, is_dir);
  return LastMatch(query, 0);
}

bool PatternFile::CouldMatchBelow(std::string_view dir) const {
  if (BELAY_MUTANT("protect-does-not-enter")) return false;
  std::string start(dir);
  start += '/';
  const std::string_view text = start;
  for (const Pattern& p : patterns_) {
    if (p.negative || p.size == 0) continue;
    if (p.anywhere) return true;
    const std::string_view glob = Glob(p);
    const size_t known = std::min<size_t>(p.literal, text.size());
    if (!EqualBytes(glob.substr(0, known), text.substr(0, known), fold_case_)) continue;
    if (known == text.size()) return true;
    if (WildmatchCouldGoOn(glob.substr(known), text.substr(known),
                           {.path = true, .fold_case = fold_case_}))
      return true;
  }
  return false;
}

std::string PatternFile::PatternText(const Pattern& p) const {
  std::string text = p.negative ? "!" : "";
  if (p.rooted) text += '/';
  text += Glob(p);
  if (p.dir_only) text += '/';
  return text;
}

}  // namespace belay
