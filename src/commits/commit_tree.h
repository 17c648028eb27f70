#pragma once

// What of a state goes into a git tree, and sending it there.
//
// Files and symlinks go in as they are in the checkpoint, whether git ignores them or
// not; files of nested repositories are ordinary files. Left out, and named: secrets
// (by the state's own patterns and by today's), what was purged, and what git cannot
// hold: empty directories, a .gitmodules that is a symlink. Of the mode only whether
// the owner may execute it goes in.

#include <functional>
#include <string>
#include <vector>

#include "commits/fast_import.h"
#include "core/state_view.h"
#include "ignore/rules.h"

namespace belay {

struct NotInCommit {
  std::string path;  // from the root on
  std::string why;   // "secret", "purged", "empty_directory", "refused_by_git"
  bool operator==(const NotInCommit&) const = default;
};

struct CommitTreeReport {
  uint64_t files = 0, bytes = 0;
  std::vector<NotInCommit> left_out;  // by path
  std::vector<std::string> nested;    // repositories whose files are in it
};

class CommitTree {
 public:
  // `patterns`: what is a secret today. `prefix`: the directory of the commit's tree
  // that the root is, "" or "a/b". All must outlive it.
  CommitTree(Store& store, const StateView& view,
             const std::vector<std::string>& patterns, std::string prefix);

  // Everything but content: what will be sent and what not. Names, sizes.
  Result<CommitTreeReport> Survey();
  // All of it, into a tree that has nothing at the prefix. `progress` may stop it.
  using ProgressFn = std::function<Status(uint64_t files, uint64_t bytes)>;
  Result<CommitTreeReport> Send(FastImport& out, const ProgressFn& progress = {});
  // What is not as in the state whose tree is `from`, into a tree made of that one with
  // equal Patterns(). The report counts what was sent.
  Result<CommitTreeReport> SendChanges(FastImport& out, const ObjectId& from);
  // Two states with equal patterns leave out the same paths.
  Hash256 Patterns() const;

 private:
  Status Walk(FastImport* out, const ProgressFn& progress, CommitTreeReport& report);
  // Nothing is done for a directory.
  Status One(FastImport* out, const std::string& path, const TreeEntry& entry,
             bool secret, CommitTreeReport& report);
  std::string InCommit(const std::string& path) const {
    return prefix_.empty() ? path : prefix_ + "/" + path;
  }

  Store& store_;
  const StateView& view_;
  const std::vector<std::string> own_;  // patterns of the state itself
  const std::vector<std::string>& now_;
  const std::string prefix_;
};

}  // namespace belay
