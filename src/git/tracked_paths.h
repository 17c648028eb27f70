#pragma once

// TrackedPaths: the set of names that a git index tracks, for fast questions.
//
// Names are bytes relative to the work tree's top, as git keeps them: no leading and no
// trailing slash. They come from a file that anybody may have written, so nothing may
// be opened by them without RelPath::Parse. Whether an entry is merged, only intended
// to be added or outside the sparse checkout makes no difference: it is tracked.
//
// Memory: the last part of each name and five bytes (where it starts, its kind), and of
// neighbours in one directory its path once, with twelve bytes; with FoldCase() four
// more for each. Of half a million files that is 11 MB, where whole names were 32. A
// question is a binary search.
//
// Threads: constant once built; any thread may ask.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace belay {

class TrackedPaths {
 public:
  // What an entry is. An unmerged path may be several things at once.
  enum Kind : uint8_t {
    kFile = 1,
    kSymlink = 2,
    kGitlink = 4,          // a submodule: a commit of another repository
    kSparseDirectory = 8,  // stands for everything beneath it; see git/index.h
  };

  // A run of names in git's order, which is that of their bytes (unsigned).
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
    bool empty() const { return begin == end; }
    bool operator==(const Range&) const = default;
  };

  size_t size() const { return kinds_.size(); }
  bool empty() const { return kinds_.empty(); }
  std::string name(size_t i) const {
    const Parts parts = At(i, RunOf(i));
    return std::string(parts.dir).append(parts.leaf);
  }
  uint8_t kinds(size_t i) const { return kinds_[i]; }

  // The kinds under which exactly `path` is tracked; 0 when it is not.
  uint8_t Find(std::string_view path) const;
  // `path` is tracked as a file or symlink.
  bool HasFile(std::string_view path) const {
    return (Find(path) & (kFile | kSymlink)) != 0;
  }
  // `path` is a submodule: what is beneath it belongs to another repository.
  bool IsGitlink(std::string_view path) const { return (Find(path) & kGitlink) != 0; }
  // Something beneath the directory `dir` is tracked; the top is "".
  bool HasBelow(std::string_view dir) const;
  // All names beneath `dir`. For exact case only: folded names need not be neighbours.
  Range Below(std::string_view dir) const;

  // From here on Find, HasFile, IsGitlink and HasBelow take A-Z and a-z as equal, as
  // git does where core.ignoreCase is set (other letters it compares as they are).
  void FoldCase();
  bool folds_case() const { return folds_case_; }

  // SHA-256 over all names and which of them are gitlinks: equal exactly when HasFile,
  // IsGitlink and HasBelow answer the same for every path. An index that was only
  // refreshed keeps it. Taken when asked (100,000 names: about 3 ms).
  Hash256 names_digest() const;

  // Bytes held; for tests and `-v`.
  size_t memory() const;

 private:
  friend class TrackedPathsBuilder;
  struct Parts {
    std::string_view dir, leaf;  // "a/b/", "c"
  };
  // Neighbours in one directory.
  struct Run {
    uint32_t first = 0;  // of the names
    uint32_t dir = 0, dir_size = 0;
  };
  size_t RunOf(size_t i) const;
  Parts At(size_t i, size_t run) const {
    return {{dirs_.data() + runs_[run].dir, runs_[run].dir_size},
            {leaves_.data() + starts_[i], starts_[i + 1] - starts_[i]}};
  }
  // Where the first name is that does not come before `key`.
  uint32_t LowerBound(std::string_view key) const;
  uint32_t LowerBoundFolded(std::string_view key) const;

  std::string dirs_, leaves_;
  std::vector<Run> runs_;
  std::vector<uint32_t> starts_ = {0};  // of each leaf, and the end
  std::vector<uint8_t> kinds_;
  std::vector<uint32_t> folded_;  // the order of the names with their case folded
  bool folds_case_ = false;
};

// Takes the entries in git's order and makes the set of them.
class TrackedPathsBuilder {
 public:
  void Reserve(size_t names);
  // kCorrupt for an empty name, one with a NUL and one out of order; stages of one name
  // must rise and a merged entry stands alone. `mode` as git writes it: 0100644,
  // 0160000.
  Status Add(std::string_view name, uint32_t mode, unsigned stage);
  // The same for a name that was in a set before, under all its kinds.
  Status AddKinds(std::string_view name, uint8_t kinds);
  TrackedPaths Finish();

 private:
  TrackedPaths paths_;
  std::string last_;  // the name added last
  unsigned last_stage_ = 0;
};

}  // namespace belay
