#pragma once

// PatternFile: one file (or list) of patterns in the syntax of .gitignore.
//
// Guarantees
//   * Lines are read as git reads them: a UTF-8 BOM at the start is skipped, one CR
//     before a line feed goes, then unescaped trailing spaces (tabs stay), `#` starts a
//     comment, a NUL ends the line's pattern. Every other line is a pattern, even one
//     that can match nothing.
//   * LastMatch() gives the pattern that git would name: the last one that matches,
//     negated or not.
//   * A file of more than kMaxPatternFile bytes counts as empty, as it does in git
//     since 2.46; too_large() says so.
//   * Memory is the bytes plus about 50 per pattern.
//
// A file of more than a few patterns is indexed (by the name, the last or the first
// byte that a path must have), so that a lookup in 200 patterns costs tens of
// nanoseconds and not two hundred comparisons; bench/ignore prints the figures.
//
// Threads: immutable after construction; any thread may ask.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

// git's limit is 100 MiB with the line feed that it adds.
inline constexpr size_t kMaxPatternFile = (size_t{100} << 20) - 1;

struct Pattern {
  uint32_t line = 0;     // from 1; in a list, the position
  uint32_t begin = 0;    // of the glob: after `!` and one leading `/`
  uint32_t size = 0;     // of the glob: without one trailing `/`
  uint32_t literal = 0;  // bytes at its start that stand for themselves
  uint64_t needs = 0;    // PathQuery::bytes() of a name that matches has all of these
  bool negative : 1 = false;
  bool dir_only : 1 = false;  // ended in `/`
  bool anywhere : 1 = false;  // has no other slash: matches the last component only
  bool suffix : 1 = false;    // `*` followed by bytes that stand for themselves
  bool rooted : 1 = false;    // began with `/`
};

// A path that is asked about several pattern files in turn: what they all need is
// computed once, the joined path only when a pattern wants it.
class PathQuery {
 public:
  // `dir` is empty or ends in a slash. Both views must outlive the query.
  PathQuery(std::string_view dir, std::string_view name, bool is_dir);
  PathQuery(const PathQuery&) = delete;
  PathQuery& operator=(const PathQuery&) = delete;

  std::string_view dir() const { return dir_; }
  std::string_view name() const { return name_; }
  bool is_dir() const { return is_dir_; }
  uint32_t hash() const { return hash_; }
  // A bit for each byte of the name, letters folded, modulo 64.
  uint64_t bytes() const { return bytes_; }
  uint32_t folded_hash() const;
  std::string_view path() const;  // dir + name

 private:
  std::string_view dir_;
  std::string_view name_;
  bool is_dir_;
  uint32_t hash_;
  uint64_t bytes_;
  mutable bool folded_ = false;
  mutable bool joined_ = false;
  mutable uint32_t folded_hash_ = 0;
  mutable std::string long_;  // when it does not fit `short_`
  mutable std::array<char, 512> short_;
};

class PatternFile {
 public:
  PatternFile(PatternFile&&) noexcept;
  PatternFile& operator=(PatternFile&&) noexcept;
  ~PatternFile();

  // `name` is what RuleText (ignore/rules.h) shows.
  static PatternFile Parse(std::string name, std::string bytes, bool fold_case);
  // One pattern per entry; nothing but the entry's own bytes is special in it.
  static PatternFile FromList(std::string name, std::vector<std::string> entries);

  // The last pattern that matches, or null. The patterns are relative to the directory
  // that is the first `base` bytes (its slash included) of the query's `dir`.
  const Pattern* LastMatch(const PathQuery& query, size_t base) const;
  const Pattern* LastMatch(std::string_view path, bool is_dir) const;

  // Some pattern that is not negated might match something below the directory `dir`
  // (no trailing slash), however deep. Errs on the side of yes.
  bool CouldMatchBelow(std::string_view dir) const;

  // As git prints it: `!docs/*.txt`.
  std::string PatternText(const Pattern& pattern) const;

  const std::string& name() const { return name_; }
  // As handed in: the whole file; of a list, its entries, each with a line feed.
  const std::string& bytes() const { return bytes_; }
  const std::vector<Pattern>& patterns() const { return patterns_; }
  bool empty() const { return patterns_.empty(); }
  bool too_large() const { return too_large_; }

 private:
  struct Index;

  PatternFile();
  void AddLine(size_t begin, size_t end, uint32_t line);
  void BuildIndex();
  uint32_t* ChainFor(const Pattern& p, Index& index) const;
  std::string_view Glob(const Pattern& p) const {
    return std::string_view(bytes_).substr(p.begin, p.size);
  }
  static bool MayMatch(const Pattern& p, const PathQuery& query);
  bool Matches(const Pattern& p, const PathQuery& query, size_t base) const;
  const Pattern* LastMatchIndexed(const PathQuery& query, size_t base) const;

  std::string name_;
  std::string bytes_;
  std::vector<Pattern> patterns_;
  bool fold_case_ = false;
  bool too_large_ = false;

  std::unique_ptr<const Index> index_;  // null when the file is short
};

}  // namespace belay
