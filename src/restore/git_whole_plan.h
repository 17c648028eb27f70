#pragma once

// Git directories that come back, or go, as a whole; and objects that are gone from one
// that is there. All of it is content that a checkpoint covers with git.protect.

#include <map>
#include <optional>
#include <string>

#include "restore/git_plan.h"

namespace belay {

using GitDirMap = std::map<std::string, PathState>;

// What a record has of a git directory, by path from the work tree on: ".git",
// ".git/HEAD", ...
Result<GitDirMap> LoadGitDir(Store& store, const GitRepoRecord& record);

// Where a file `.git` in `work_tree` leads to. Nothing when it is none.
std::optional<AbsPath> LedToBy(const std::string& git_file, const AbsPath& work_tree);

// Git can do nothing with a repository that is there, for want of its settings, and
// `want` has them: they are damaged, or gone from one of SHA-256, which is taken for
// one of SHA-1 then.
bool LostItsSettings(Fs& fs, const GitRepository& repository,
                     const GitRepoRecord& want);

// `.git` is gone, or is no repository any more, and `want` has it whole. What is left
// there and `want` does not have stays; commits that a ref leaves are held by another.
// Nothing when it cannot be done; a warning says why. `unreadable`: LostItsSettings().
Status PlanGitDirBack(const GitPlanInput& input, const GitRepoRecord& want,
                      bool unreadable, GitPlans& out);
// An operation brought `.git` back, and is undone: what was there before it, or
// nothing. A conflict when git was used since.
Status PlanGitDirAway(const GitPlanInput& input, const GitRepoRecord& want,
                      const GitRepoRecord& is, GitPlans& out);

}  // namespace belay
