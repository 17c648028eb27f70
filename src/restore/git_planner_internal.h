#pragma once

// GitPlanner: what PlanGit() is made of, for one repository, in four files.
// git_planner.cc compares what is with what is wanted and says whether it may be
// touched; git_planner_ask.cc asks git which commits go and what is missing;
// git_planner_others.cc whether it is the session's to take back; git_planner_build.cc
// says which files that takes.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "git/run_git.h"
#include "restore/git_files_internal.h"
#include "restore/git_lost_objects.h"
#include "restore/git_plan.h"

namespace belay {

constexpr std::string_view kGitStash = "refs/stash";
constexpr std::string_view kGitStashLog = "logs/refs/stash";

// One repository on its way from `is` to `want`.
class GitPlanner {
 public:
  // What is given must outlive it.
  GitPlanner(const GitPlanInput& input, const GitChoice& choice,
             const GitRepository& repository, const GitRepoRecord& is,
             const GitRepoRecord& want, const GitRepoRecord* expected);

  // False: git is left as it is; `plan` and the warnings say why.
  Result<bool> Make();

  GitPlan plan;
  std::vector<std::string> warnings;
  std::vector<Conflict> conflicts;
  GitRepoRecord after;

 private:
  // --- git_planner.cc: what differs, and whether it may be touched ---

  Result<bool> AskAndBuild(bool differs);
  Result<GitLook> LookNow();
  Status CheckStillSo();
  Status CheckStoodStill();
  Result<GitRefs> LoadRefs(const GitRepoRecord& record);
  bool OwnDiffers(const GitRepoRecord& a, const GitRepoRecord& b) const;
  bool StashDiffers(const GitRepoRecord& a, const GitRefs& refs_a,
                    const GitRepoRecord& b, const GitRefs& refs_b) const;
  std::vector<std::string> OtherRefs() const;
  std::vector<std::string> EmptyStateDirs() const;
  bool Differs() const;
  bool MayMend() const;
  Result<bool> Keep(const std::string& why);
  std::string Where() const;
  bool FindConflicts();
  Result<std::string> WorkBranch(const GitRepoRecord& record);
  Status CheckBranch();
  Result<std::string> CheckedOutElsewhere(const std::string& ref);

  // --- git_planner_ask.cc: what git says ---

  Status LeaveOthersAlone();
  Result<std::string> StashLogOf(const GitRepoRecord& record);
  std::vector<std::string> Stashed(const std::string& log, const GitRefs& refs) const;
  std::string WithoutMissing(const std::string& log) const;
  bool IsPartialClone() const;
  Result<std::vector<std::string>> NewlyStaged();
  Result<std::string> LostOfIndex(const std::set<std::string>& lost);
  Result<std::string> LookForMissing();
  Status AskForMissing(const std::vector<std::string>& asked);
  bool IsComplete(const std::vector<std::string>& tips);
  Result<bool> ShowLostObjects(const std::vector<std::string>& needed);
  Result<bool> IsThere(const std::string& object);
  Result<bool> ChooseAction();
  Result<bool> ListCommits();
  Result<std::string> MakeReverts();

  // --- git_planner_others.cc: whose it is ---

  Result<bool> LeaveToOthers();
  std::vector<std::string> WhatGoesBack() const;
  Result<std::string> HeldByRefsOfOthers(const OthersMoves& others);
  std::string OthersText(const std::string& name, MovedBy by) const;

  // --- git_planner_build.cc: the files ---

  Status Build();
  Status SetBranch(const std::string& tip);
  Status SetOtherRefs();
  Status NoteInHeadLog(const std::string& tip);
  Status SetStash();
  Status KeepReachable(const std::string& tip);
  Status SetOwn();
  Status SetIndex();
  Status DropOldSafety();

  const GitPlanInput& input_;
  const GitChoice& choice_;
  const GitRepository& repository_;
  const GitRepoRecord& is_;
  const GitRepoRecord& want_;
  const GitRepoRecord* expected_;
  Fs& fs_;
  GitFiles files_;
  GitLook look_;
  GitRefs is_refs_, want_refs_, expected_refs_, after_refs_;
  std::string is_stash_, want_stash_;
  std::optional<GitLostObjects> lost_;
  std::string lost_where_;  // a directory with them
  std::optional<GitRunner> git_;
  std::string own_;  // "worktrees/x/", or nothing
  std::set<std::string> missing_, stays_;
  std::string leaves_;  // the tip that the branch leaves
  std::vector<std::pair<std::string, std::string>> left_;  // by other refs: from, to
  std::set<std::string> unstashed_;  // entries that leave the stash
};

// Empty when there is no such ref.
std::string GitRefValue(const GitRefs& refs, std::string_view name);
// Its commit, in hex; empty also when it names another ref, or is damaged.
std::string GitRefCommit(const GitRefs& refs, std::string_view name, GitHash hash);
// For people.
std::string GitBranchName(std::string_view ref);
// "1 commit", "2 commits"

}  // namespace belay
