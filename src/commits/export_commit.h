#pragma once

// ExportCommit: a checkpoint as a git commit under a new ref.
//
// Guarantees
//   * No ref is moved or replaced, whoever makes one by that name meanwhile; HEAD, the
//     index and the work tree are as they were; the branch of a work tree is not made
//     behind its back.
//   * What goes in: commits/commit_tree.h. Secrets do not.
//   * The same checkpoint gives the same commit, while name, note and identity stay.
//   * The parent is the commit that HEAD was at, when the repository still has it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commits/commit_tree.h"
#include "git/repository.h"
#include "scan/work_trees.h"
#include "store/catalog.h"

namespace belay {

// "refs/heads/NAME", or NAME itself when it begins with refs/. kInvalid when git would
// not take it (git check-ref-format), or it is none to be made by hand.
Result<std::string> RefFromName(std::string_view name);

// A repository at `dir` (a work tree, or a bare one), for commits to be put into; none
// when there is no such thing.
Result<std::optional<GitRepository>> OpenRepositoryFor(Fs& fs, const AbsPath& dir,
                                                       const GitPlaces& places);
// Makes a bare one at `dir`, which must not be there or be empty. `branch`: what its
// HEAD will name.
Result<GitRepository> MakeBareRepository(Fs& fs, const AbsPath& dir,
                                         const std::string& branch,
                                         const GitPlaces& places);

struct ExportCommitRequest {
  CatalogEntry entry;
  std::string ref;     // of RefFromName
  std::string prefix;  // where the root is in the work tree, "" or "a/b"
  std::vector<std::string> secret_patterns;  // in force today
  GitPlaces places;
  std::function<Status(uint64_t done, uint64_t total)> progress = {};  // bytes
};

struct ExportedCommit {
  std::string ref, commit;
  std::string parent;       // empty: none
  std::string lost_parent;  // where HEAD was: the repository does not have it
  CommitTreeReport tree;
};
Result<ExportedCommit> ExportCommit(Store& store, const GitRepository& repository,
                                    const ExportCommitRequest& request);

// --- for anchors ---------------------------------------------------------------------

// "Name <mail>": what git would use there, or Belay's own.
std::string CommitIdentity(Fs& fs, const GitRepository& repository,
                           const GitPlaces& places);
// The commit that HEAD of the root's repository was at, if it is there; else empty, and
// `lost` says which it was.
Result<std::string> ParentOf(Store& store, GitRunner& git,
                             const GitRepository& repository, const State& state,
                             std::string* lost);
// Runs of git that move much: they may take their time.
AskGitOptions PatientGit(const GitPlaces& places);
// One line, without control characters.
std::string CommitSubject(const Checkpoint& checkpoint);

}  // namespace belay
