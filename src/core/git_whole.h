#pragma once

// All of a git directory as a tree, for repositories that are covered whole
// (git.protect): so that `.git` comes back when it is gone.
//
// Guarantees
//   * Everything in it is in the tree (objects, settings, hooks, logs, git directories
//     of submodules) but for lock files and what Belay itself put there.
//   * What could not be taken is named; the rest is there all the same.
//   * No object is missed because it was packed meanwhile: then it is looked at again.
//
// Reading is a scan (scan/scan.h) with a cache of its own: what did not change is not
// read again.

#include <memory>
#include <string>

#include "git/repository.h"
#include "scan/scan.h"

namespace belay {

struct GitWhole {
  ObjectId tree;         // zero: `.git` is a file
  std::string git_file;  // the content of that
  uint32_t mode = 0, uid = 0, gid = 0;
  std::string trouble;  // why this is not all, in words; empty as a rule
  bool empty() const { return tree.is_zero() && git_file.empty(); }
  bool operator==(const GitWhole&) const = default;
};

class GitWholeCapture {
 public:
  // Both must outlive it. `around`: of the scan of the root.
  GitWholeCapture(Fs& fs, Clock& clock, Random& random, const ScanRequest& around)
      : fs_(fs), clock_(clock), random_(random), around_(around) {}

  // `path`: of the work tree, from the root on.
  Result<GitWhole> Take(const GitRepository& repository, const std::string& path,
                        ScanSink& sink);
  // Only a file `.git` that leads to a repository, which is little; else nothing.
  GitWhole TakeFile(const GitRepository& repository);
  // After the batch was acknowledged. Failing costs the next one time only.
  void SaveCaches(const BatchPlace& place);

 private:
  Fs& fs_;
  Clock& clock_;
  Random& random_;
  const ScanRequest& around_;
  // A scan refers to its request.
  struct One {
    ScanRequest request;
    std::unique_ptr<Scan> scan;
  };
  std::vector<std::unique_ptr<One>> taken_;
};

}  // namespace belay
