#pragma once

// Git directories that come back, or go, as a whole; and objects that are gone from one
// that is there. All of it is content that a checkpoint covers with git.protect.

#include <map>
#include <string>

#include "restore/git_plan.h"

namespace belay {

using GitDirMap = std::map<std::string, PathState>;

// What a record has of a git directory, by path from the work tree on: ".git",
// ".git/HEAD", ...
Result<GitDirMap> LoadGitDir(Store& store, const GitRepoRecord& record);

// `.git` is gone, or is no repository any more, and `want` has it whole. What is left
// there and `want` does not have stays. Nothing when it cannot be done; a warning says
// why.
Status PlanGitDirBack(const GitPlanInput& input, const GitRepoRecord& want,
                      GitPlans& out);
// An operation brought `.git` back, and is undone: what was there before it, or
// nothing. A conflict when git was used since.
Status PlanGitDirAway(const GitPlanInput& input, const GitRepoRecord& want,
                      const GitRepoRecord& is, GitPlans& out);

}  // namespace belay
