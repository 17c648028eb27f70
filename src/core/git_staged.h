#pragma once

// What a person calls staged and dirty, of a checkpoint: worked out when it is shown.

#include <optional>
#include <string>
#include <vector>

#include "core/git_record.h"
#include "git/ask_git.h"

namespace belay {

struct GitStaged {
  // Paths whose index entry is not that of HEAD's commit; absent when git could not be
  // asked (not installed, the commit is gone).
  std::optional<std::vector<std::string>> paths;
  // A tracked file was not as it is staged. Absent: none was, or it is not known (clean
  // filters, too much to read).
  std::optional<bool> dirty;
};

// `tree`: that of the checkpoint; `repository`: as it is now. Git reads the index from
// a file in the store's own directory; nothing in the repository is written.
GitStaged LookAtStaged(Store& store, const GitRepository& repository,
                       const GitRepoRecord& record, const ObjectId& tree,
                       const AskGitOptions& ask);

}  // namespace belay
