#pragma once

// ImportCommit: the files of a git commit as a checkpoint of a root.
//
// Guarantees
//   * The content is what git has in the commit: no filter, line ending or attribute
//     counts. Nothing in the git directory or the work tree changes, nothing is
//     fetched.
//   * A commit knows nothing of files that git does not track, so the checkpoint is
//     partial: a rollback to it brings its files back and deletes nothing. It has no
//     git record: a rollback to it leaves git alone.
//   * Of a path that the checkpoint before has, mode, owner and attributes are taken
//     from there, and only what git says (executable or not) is put right: a rollback
//     gives nobody more rights than they have.
//   * A tree that holds what no work tree may hold (.., .git and its aliases, a name
//     twice) is refused whole. Submodules, links that lead nowhere by their form, what
//     is over the size limit, was purged, or belongs to another root is left out and
//     named.
//   * It is published by one batch, the last; until then nothing is there. The cap and
//     the floor of the store hold. Memory holds names, never content.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/settings.h"
#include "git/repository.h"
#include "scan/scan.h"
#include "scan/work_trees.h"
#include "store/catalog.h"

namespace belay {

// In the meta of such a checkpoint: the commit, in hex.
inline constexpr std::string_view kMetaGitCommit = "git.commit";

struct ImportCommitRequest {
  Root root;
  const Settings* settings = nullptr;
  GitPlaces places;
  std::string prefix;  // where the root is in the work tree, "" or "a/b"
  std::string revision;
  int64_t lock_wait_ms = 10'000;
  std::function<Status(uint64_t files, uint64_t total)> progress = {};
};

struct ImportedCommit {
  Checkpoint checkpoint;
  ObjectId tree;
  bool was_there = false;  // the same commit, with the same result, as a checkpoint
  std::string commit, subject;
  std::vector<SkippedPath> skipped;
  std::vector<std::string> submodules;  // of those
  uint64_t bytes_stored = 0;
};

Result<ImportedCommit> ImportCommit(Store& store, const GitRepository& repository,
                                    const ImportCommitRequest& request);

}  // namespace belay
