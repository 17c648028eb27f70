#include "ignore/pattern_file.h"

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

// Names are short: eight bytes at a time, the rest in one overlapping load.
uint32_t HashBytes(const char* data, size_t size) {
  uint64_t h = size;
  uint64_t word = 0;
  while (size > 8) {
    std::memcpy(&word, data, 8);
    h = (h ^ word) * 0xff51afd7ed558ccd;
    h ^= h >> 29;
    data += 8;
    size -= 8;
  }
  word = 0;
  std::memcpy(&word, data, size);
  return Mix((h ^ word) * 0xff51afd7ed558ccd);
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

// --- queries -------------------------------------------------------------------------

PathQuery::PathQuery(std::string_view dir, std::string_view name, bool is_dir)
    : dir_(dir),
      name_(name),
      is_dir_(is_dir),
      hash_(HashBytes(name.data(), name.size())) {}

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
  patterns_.push_back(p);
}

void PatternFile::BuildIndex() {
  patterns_.shrink_to_fit();
  if (patterns_.size() < kIndexFrom) return;
  size_t heads = 16;
  while (heads < patterns_.size() * 2) heads *= 2;
  by_name_.assign(heads, 0);
  by_last_byte_.assign(256, 0);
  next_.assign(patterns_.size(), 0);
  auto chain = [&](uint32_t& head, uint32_t n) {  // the first of a chain comes last
    next_[n] = head;
    head = n + 1;
  };
  for (uint32_t n = 0; n < patterns_.size(); ++n) {
    const Pattern& p = patterns_[n];
    const std::string_view glob = Glob(p);
    if (p.literal == p.size) {
      const std::string_view last = LastComponent(glob);
      if (last.empty()) continue;  // matches nothing
      const uint32_t hash =
          fold_case_ ? FoldedHash(last) : HashBytes(last.data(), last.size());
      chain(by_name_[hash & (heads - 1)], n);
    } else if (p.anywhere && p.suffix && p.size > 1) {
      const char last = fold_case_ ? FoldByte(glob.back()) : glob.back();
      chain(by_last_byte_[static_cast<unsigned char>(last)], n);
    } else {
      others_.push_back(n);
      char first = p.literal > 0 ? glob[0] : '\0';
      if (fold_case_) first = FoldByte(first);
      first_byte_.push_back(static_cast<unsigned char>(first));
    }
  }
}

// --- matching ------------------------------------------------------------------------

// Without dir_only, which the callers look at.
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
  if (!next_.empty()) return LastMatchIndexed(query, base);
  for (size_t i = patterns_.size(); i > 0; --i) {
    const size_t n = BELAY_MUTANT("first-match-wins") ? patterns_.size() - i : i - 1;
    const Pattern& p = patterns_[n];
    if (p.dir_only && !query.is_dir()) continue;
    if (Matches(p, query, base)) return &p;
  }
  return nullptr;
}

const Pattern* PatternFile::LastMatchIndexed(const PathQuery& query,
                                             size_t base) const {
  uint32_t best = 0;  // pattern number + 1
  auto walk = [&](uint32_t head) {
    for (uint32_t at = head; at > best; at = next_[at - 1]) {
      const Pattern& p = patterns_[at - 1];
      if (p.dir_only && !query.is_dir()) continue;
      if (Matches(p, query, base)) best = at;  // ends the walk: chains fall
    }
  };
  const std::string_view name = query.name();
  const uint32_t hash = fold_case_ ? query.folded_hash() : query.hash();
  walk(by_name_[hash & (by_name_.size() - 1)]);
  if (!name.empty()) {
    const char last = fold_case_ ? FoldByte(name.back()) : name.back();
    walk(by_last_byte_[static_cast<unsigned char>(last)]);
  }
  if (others_.empty()) return best == 0 ? nullptr : &patterns_[best - 1];

  auto first_of = [&](std::string_view text) {
    const char c = text.empty() ? '\0' : text[0];
    return static_cast<unsigned char>(fold_case_ ? FoldByte(c) : c);
  };
  const unsigned char name_first = first_of(name);
  const unsigned char path_first =
      query.dir().size() > base ? first_of(query.dir().substr(base)) : name_first;
  for (size_t i = others_.size(); i > 0; --i) {
    const uint32_t n = others_[i - 1];
    if (n + 1 <= best) break;
    const unsigned char first = first_byte_[i - 1];
    if (first != 0 && first != name_first && first != path_first) continue;
    const Pattern& p = patterns_[n];
    if (p.dir_only && !query.is_dir()) continue;
    if (Matches(p, query, base)) best = n + 1;
  }
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
