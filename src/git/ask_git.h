#pragma once

// ReadTracked: what is tracked, and the one case in which git is run for it: an index
// that cannot be read alone (GitIndex::needs_git).
//
// Guarantees
//   * Nothing in the git directory changes. This is why git is not asked for the files
//   of
//     a sparse index: `git ls-files` writes tree objects while it spells them out. We
//     ask `git cat-file` for the trees and spell them out ourselves; only an index that
//     we cannot read at all is read by `git ls-files --sparse`, which does not.
//   * Nothing else is run: no hook, no fsmonitor, no filter, no pager, no alias, no
//     credential helper; neither the user's nor the system's settings are read; missing
//     objects of a partial clone are not fetched.
//   * It ends at the deadline (base/subprocess.h), and a tree that holds itself a
//     billion times over is an error.
//
// kNotFound with a hint when no git is installed, kBusy at the deadline, kInvalid with
// git's own words when it refuses.

#include <string>

#include "base/fs.h"
#include "git/repository.h"

namespace belay {

struct AskGitOptions {
  std::string path = {};  // PATH, where git is looked for; empty: the usual directories
  int64_t timeout_ms = 10'000;  // for all that is asked
  size_t output_cap = size_t{512} << 20;
  size_t max_names = 5'000'000;
};

// The tracked names by the index file where it is enough, else with git's help.
// needs_git and sparse are empty afterwards.
Result<GitIndex> ReadTracked(Fs& fs, const GitRepository& repository,
                             const AskGitOptions& options);

}  // namespace belay
