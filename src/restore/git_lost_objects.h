#pragma once

// Object files that a repository had and lost (`git gc --prune=now`, `rm -rf
// .git/objects/ab`), and a record has (git.protect): beside the repository for as long
// as this lives, so that git can be asked about commits before they are put back.

#include <string>
#include <vector>

#include "core/git_record.h"
#include "restore/change.h"

namespace belay {

class GitLostObjects {
 public:
  // Those of `want` whose files are not there. What the store cannot give back counts
  // as lost for good.
  static Result<GitLostObjects> Find(Store& store, const GitRepoRecord& want,
                                     const GitRepository& repository);
  ~GitLostObjects();
  GitLostObjects(GitLostObjects&& other) noexcept;
  GitLostObjects(const GitLostObjects&) = delete;
  GitLostObjects& operator=(const GitLostObjects&) = delete;

  struct File {
    std::string path;  // "objects/ab/cdef", from the common git directory on
    PathState state;
  };
  const std::vector<File>& files() const { return files_; }
  // A directory with these objects, for git to look into. Empty when there are none.
  Result<std::string> Show();

 private:
  GitLostObjects(Store& store, std::vector<File> files);

  Store* store_;
  std::vector<File> files_;
  Name name_;  // in the directory of caches
  bool shown_ = false;
};

}  // namespace belay
