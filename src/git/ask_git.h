#pragma once

// AskGitForTracked: the one case in which git is run, an index that only git can read
// (GitIndex::needs_git).
//
// Guarantees
//   * Nothing in the git directory changes: `ls-files` takes no lock and writes
//   nothing,
//     optional locks are off, missing objects of a partial clone are not fetched.
//   * Nothing else is run: no hook, no fsmonitor, no filter, no pager, no alias, no
//     credential helper, and neither the user's nor the system's settings are read.
//   * It ends at the deadline (base/subprocess.h).
//
// kNotFound with a hint when no git is installed, kBusy at the deadline, kInvalid with
// git's own words when it refuses.

#include <string>

#include "base/fs.h"
#include "git/repository.h"

namespace belay {

struct AskGitOptions {
  std::string path;  // PATH, where git is looked for; empty: the usual directories
  int64_t timeout_ms = 10'000;
  size_t output_cap = size_t{1} << 30;
};

Result<TrackedPaths> AskGitForTracked(Fs& fs, const GitRepository& repository,
                                      const AskGitOptions& options);

// The tracked names by the index file where it is enough, else by git.
Result<GitIndex> ReadTracked(Fs& fs, const GitRepository& repository,
                             const AskGitOptions& options);

}  // namespace belay
