#pragma once

// A generated repository to hold the rules against the installed git: a tree of awkward
// names, pattern files written to fit it, and git run so that nothing of the machine's
// settings reaches it.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "ignore/rules.h"
#include "support/temp_dir.h"

namespace belay::test {

enum class NodeKind { kFile, kDirectory, kSymlink };

bool FoundGit();

class TestIndex final : public TrackedSet {
 public:
  explicit TestIndex(std::set<std::string, std::less<>> paths)
      : paths_(std::move(paths)) {}
  bool HasFile(std::string_view path) const override { return paths_.contains(path); }
  bool HasBelow(std::string_view dir) const override {
    const std::string start = std::string(dir) + '/';
    auto at = paths_.lower_bound(start);
    return at != paths_.end() && at->starts_with(start);
  }

 private:
  std::set<std::string, std::less<>> paths_;
};

class RuleWorld {
 public:
  // With `ignore_case` no two names of a directory differ in case only, unless
  // `case_twins`.
  RuleWorld(Random& random, size_t entries, bool ignore_case, bool case_twins);

  // New contents of .gitignore files (some directories), info/exclude and the global
  // file.
  void WriteRules();
  void WriteFile(const std::string& path, std::string_view bytes);
  // A repository in an existing directory.
  void InitRepository(const std::string& dir);

  // stdout of git in `dir` ("" = the top); aborts when git fails with another code than
  // 0 or `also`.
  std::string Git(std::vector<std::string> arguments, std::string input = "",
                  const std::string& dir = "", int also = 0) const;

  bool IsDirectory(const std::string& path) const;
  std::vector<std::string> List(const std::string& dir) const;  // names on disk
  // What Belay is to be told about a directory: reads the files as the scanner must.
  std::optional<std::string> ReadRules(const std::string& path) const;
  std::shared_ptr<const WorkTree> Rules(std::shared_ptr<const TrackedSet> tracked,
                                        const std::string& dir = "") const;

  std::string top() const { return top_; }
  std::string Absolute(const std::string& path) const { return top_ + "/" + path; }
  std::string global_file() const { return temp_.path().bytes() + "/excludes"; }
  bool ignore_case() const { return ignore_case_; }
  const std::map<std::string, NodeKind>& tree() const { return tree_; }
  std::vector<std::string> directories() const;  // "" first

  // A name, or a path below some directory, that is not in the tree.
  std::string OtherPath();

  // Bytes of a pattern file whose lines have a fair chance to match something below
  // `dir`.
  std::string PatternBytes(const std::string& dir);

 private:
  std::string NewName();
  std::string NewPattern(const std::string& dir);
  std::string Disturb(std::string_view path);
  std::string Set(char around);
  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(random_.Below(from.size()))];
  }

  Random& random_;
  bool ignore_case_;
  TempDir temp_;
  std::string top_;
  std::map<std::string, NodeKind> tree_;
  std::vector<std::string> paths_;  // of tree_
  std::set<std::string> with_rules_;
};

// "a/b/c" -> "a", "b", "c".
std::vector<std::string> SplitPath(std::string_view path);

}  // namespace belay::test
