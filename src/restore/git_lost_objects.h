#pragma once

// Object files that a repository had and lost (`git gc --prune=now`, `rm -rf
// .git/objects/ab`) or that are damaged in it, and a record has (git.protect): beside
// the repository for as long as this lives, so that git can be asked about commits
// before they are put back.

#include <string>
#include <vector>

#include "git/run_git.h"
#include "restore/git_plan.h"

namespace belay {

class GitLostObjects {
 public:
  // Those of `want` whose files are not there, and whose objects git has nowhere else
  // (packing them moves them); and those that are there and are not what they are named
  // by. What the store cannot give back counts as lost for good. A file that was not
  // touched since the target was made, and has its size, is taken for whole.
  static Result<GitLostObjects> Find(const GitPlanInput& input,
                                     const GitRepoRecord& want,
                                     const GitRepository& repository, GitRunner& git);
  ~GitLostObjects();
  GitLostObjects(GitLostObjects&& other) noexcept;
  GitLostObjects(const GitLostObjects&) = delete;
  GitLostObjects& operator=(const GitLostObjects&) = delete;

  struct File {
    std::string path;  // "objects/ab/cdef", from the common git directory on
    PathState state;
    bool stays = false;  // it is there, and only shown
  };
  const std::vector<File>& files() const { return files_; }
  // Some are there, damaged: the repository must not be asked first.
  bool damaged() const { return damaged_; }
  // A directory with these objects, for git to look into. Empty when there are none.
  Result<std::string> Show();

 private:
  GitLostObjects(Store& store, std::vector<File> files, bool damaged);

  Store* store_;
  std::vector<File> files_;
  Name name_;  // in the directory of caches
  bool damaged_ = false;
  bool shown_ = false;
};

}  // namespace belay
