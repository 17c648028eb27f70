#include <algorithm>
#include <charconv>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/git_authors.h"
#include "restore/git_planner_internal.h"

namespace belay {

namespace {

constexpr std::string_view kBranches = "refs/heads/", kTags = "refs/tags/";

std::string NameForPeople(std::string_view ref) {
  if (ref == kGitStash) return "the stash";
  if (ref == kGitUnderWay) return "what git has under way";
  if (ref == kGitSparse) return "the sparse checkout";
  if (ref.starts_with(kTags))
    return "tag " + EscapeForDisplay(ref.substr(kTags.size()));
  return ref.starts_with(kBranches) ? "branch " + GitBranchName(ref)
                                    : EscapeForDisplay(ref);
}

}  // namespace

// What of git this plan moves, the branch that HEAD stood on first. Refs that are new
// stay; to switch the branch somebody asked.
std::vector<std::string> GitPlanner::WhatGoesBack() const {
  std::vector<std::string> out;
  for (const std::string& name : WhatMoved(is_, is_refs_, want_, want_refs_)) {
    const bool is_branch = name == want_.head_ref;
    if (name.starts_with("refs/") && name != kGitStash && !is_branch &&
        (!want_refs_.contains(name) || stays_.contains(name)))
      continue;
    if (name == kGitHead && choice_.switch_branch && is_.head_ref != want_.head_ref &&
        !BELAY_MUTANT("a-switch-is-not-asked-for"))
      continue;
    out.insert(is_branch ? out.begin() : out.end(), name);
  }
  return out;
}

std::string GitPlanner::OthersText(const std::string& name, MovedBy by) const {
  constexpr const char* kHow = "; take it back all the same with: --git reset";
  const bool told = by == MovedBy::kOthers;
  if ((name == want_.head_ref || name == kGitHead) && plan.commit_count > 0)
    return std::string(told ? "commits since were made outside of the session"
                            : "who made the commits since was not recorded") +
           "; take them back all the same with: --git reset";
  return (told ? NameForPeople(name) + " was changed outside of the session since"
               : "who changed " + NameForPeople(name) + " since was not recorded") +
         kHow;
}

// Whoever makes a branch or tag of what was committed wants it, and goes on from there:
// the commits that go are held by it as published ones are by a remote. One that holds
// none of them (a fetch brings tags; others work on branches of theirs) is nothing to
// this plan. Says which, or nothing.
Result<std::string> GitPlanner::HeldByRefsOfOthers(const OthersMoves& others) {
  if (plan.commit_count == 0 || BELAY_MUTANT("refs-of-others-hold-nothing"))
    return std::string();
  std::vector<std::string> names;
  std::string input = leaves_ + "\n";
  if (!want_.head.empty()) input += "^" + want_.head + "\n";
  for (const auto& [name, value] : is_refs_)
    if (name != kGitStash && name != want_.head_ref && !want_refs_.contains(name) &&
        others.Of(name) != MovedBy::kSession && IsGitHex(value, repository_.hash)) {
      names.push_back(name);
      input += "^" + value + "\n";
    }
  if (names.empty()) return std::string();
  auto left = git_->Try({"rev-list", "--count", "--stdin"}, std::move(input));
  if (!left.ok()) return std::move(left).error();
  size_t count = 0;
  const std::string& said = left->output;
  std::from_chars(said.data(), said.data() + said.size(), count);
  if (left->ok() && count >= plan.commit_count) return std::string();
  const std::string which = names.size() == 1
                                ? NameForPeople(names[0])
                                : std::to_string(names.size()) + " branches and tags";
  return "commits since are held by " + which +
         " made outside of the session; take them back all the same with: --git reset";
}

// What others moved, or may have, goes back only when somebody asked for it, and then
// none of git does. False: it stays, and that is said.
Result<bool> GitPlanner::LeaveToOthers() {
  if (choice_.action != GitAction::kAuto || expected_ != nullptr || !input_.others ||
      BELAY_MUTANT("git-takes-back-of-others"))
    return true;
  const std::vector<std::string> goes = WhatGoesBack();
  if (goes.empty() && plan.commit_count == 0) return true;
  BELAY_TRY(const OthersMoves others, input_.others(is_, is_refs_));
  for (const std::string& name : goes)
    if (const MovedBy by = others.Of(name); by != MovedBy::kSession)
      return Keep(OthersText(name, by));
  BELAY_TRY(const std::string held, HeldByRefsOfOthers(others));
  return held.empty() ? Result<bool>(true) : Keep(held);
}

}  // namespace belay
