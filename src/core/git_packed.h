#pragma once

// What of an index's content HEAD's commit does not name, though it is in a pack:
// staged by `git read-tree`, `git checkout COMMIT -- PATH` and the like, or packed
// since. Git itself is asked, in ways that take it no more memory than a few trees:
// `git diff-index` has the whole index in memory, of half a million files 170 MB.

#include <functional>
#include <string>

#include "git/object_ids.h"
#include "git/run_git.h"

namespace belay {

class GitPacked {
 public:
  // All of it must outlive this. `repository`: that of `git`.
  GitPacked(GitRunner& git, const GitRepository& repository)
      : git_(git), hash_(repository.hash) {}

  // Of `ids` (sorted) those stay that no tree of the commit `head` names. `tree`:
  // IndexEntries::tree; when it is the commit's own, nothing is staged, and no tree is
  // read.
  Status LeaveStaged(const std::string& head, const std::string& tree, GitIds& ids);
  // Hands out the content of each that git has and that is not longer than `limit`.
  using Keep = std::function<Status(const std::string& hex, ByteSpan content)>;
  Status Read(const GitIds& ids, size_t limit, const Keep& keep);

 private:
  Result<bool> IsTreeOf(const std::string& head, const std::string& tree);
  Status CheckTime() const;

  GitRunner& git_;
  GitHash hash_;
};

}  // namespace belay
