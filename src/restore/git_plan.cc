#include "restore/git_plan.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/git_planner_internal.h"
#include "restore/git_whole_plan.h"

namespace belay {

namespace {

constexpr size_t kRefsShown = 4;

const GitRepository* RepositoryAt(const ScanSummary& scan, const std::string& path) {
  for (const ScanSummary::AtPath& at : scan.work_trees)
    if (at.path == path && at.facts.repository) return &*at.facts.repository;
  return nullptr;
}

// What went with a git directory that is gone.
std::string LostText(const GitRepoRecord& want) {
  std::string text = "the git repository";
  if (!want.path.empty()) text += " in " + EscapeForDisplay(want.path);
  text += " (.git) is gone, and its objects were not covered (git.protect): ";
  text += want.head.empty() ? "what was staged"
                            : "the history up to " + want.head.substr(0, 7);
  if (!want.head_ref.empty()) text += " on " + GitBranchName(want.head_ref);
  return text + " does not come back; the files do";
}

// A submodule whose git directory lies in one that comes back whole, and whose `.git`
// that leads there is still in its place.
bool ComesBackWithItsParent(const GitPlanInput& input, const GitRepoRecord& want,
                            const GitPlans& out) {
  constexpr std::string_view kLeads = "gitdir: ";
  const std::string& text = want.whole.git_file;
  if (!text.starts_with(kLeads)) return false;
  const std::string to = text.substr(kLeads.size(), text.find('\n') - kLeads.size());
  auto below = RelPath::Parse(want.path);
  if (!below.ok()) return false;
  const AbsPath work_tree = input.root.Join(*below);
  auto leads = AbsPath::Resolve(work_tree, to);
  auto there = ReadGitFile(input.store.fs(), work_tree, ".git", text.size());
  if (!leads.ok() || !there.ok() || AsText(*there) != text) return false;
  return std::ranges::any_of(out.plans, [&](const GitPlan& plan) {
    const std::string top = plan.move.dir + "/";
    return plan.move.whole && leads->bytes().starts_with(top) &&
           std::ranges::any_of(plan.move.changes, [&](const PathChange& change) {
             return change.after &&
                    change.path == leads->bytes().substr(top.size()) + "/HEAD";
           });
  });
}

}  // namespace

bool GitPlanInput::WasPurged(const ObjectId& content) const {
  return lacks && lacks(content) && !BELAY_MUTANT("git-brings-back-the-purged");
}

Result<bool> GitPlanInput::Has(const ObjectId& content) const {
  if (WasPurged(content)) return false;
  BELAY_TRY(auto blob, store.Find({ObjectType::kBlob, content}));
  if (blob) return true;
  BELAY_TRY(auto chunks, store.Find({ObjectType::kChunks, content}));
  return chunks.has_value();
}

bool GitPlans::moves() const {
  return std::ranges::any_of(
      plans, [](const GitPlan& plan) { return !plan.move.changes.empty(); });
}

Result<GitPlans> PlanGit(const GitPlanInput& input, const GitChoice& choice) {
  GitPlans out;
  for (const GitRepoRecord& want : input.target.repositories) {
    const GitRepoRecord* is = input.is.Find(want.path);
    const GitRepository* repository = RepositoryAt(input.now, want.path);
    // Its own is gone, and what git finds is the one around the root.
    if (is != nullptr && is->above && !want.above &&
        !BELAY_MUTANT("git-takes-the-outer-one")) {
      is = nullptr;
      repository = nullptr;
    }
    GitChoice mine = choice;
    if (!want.path.empty() && !choice.nested && input.expected == nullptr)
      mine.action = GitAction::kKeep;
    if (want.absent) {
      if (is != nullptr) BELAY_OK(PlanGitDirAway(input, want, *is, out));
      continue;
    }
    if (is != nullptr && input.expected != nullptr) {
      const GitRepoRecord* left = input.expected->Find(want.path);
      if (left != nullptr && left->absent) {
        out.conflicts.push_back(
            {want.path.empty() ? ".git" : want.path + "/.git", "is there again"});
        continue;
      }
    }
    if ((is == nullptr || repository == nullptr) && !want.whole.empty() &&
        want.trouble.empty()) {
      if (mine.action != GitAction::kKeep) {
        BELAY_OK(PlanGitDirBack(input, want, out));
      } else if (!want.path.empty() && choice.action != GitAction::kKeep &&
                 !ComesBackWithItsParent(input, want, out)) {
        out.warnings.push_back("git in " + EscapeForDisplay(want.path) +
                               " is gone and stays so (to bring it back too: "
                               "--git-nested)");
      }
      continue;
    }
    if (is == nullptr || repository == nullptr) {
      if (choice.action != GitAction::kKeep && want.path.empty() && !want.above)
        out.warnings.push_back(LostText(want));
      continue;
    }
    const GitRepoRecord* expected =
        input.expected == nullptr ? nullptr : input.expected->Find(want.path);
    GitPlanner planner(input, mine, *repository, *is, want, expected);
    BELAY_TRY(bool moves, planner.Make());
    if (!planner.plan.none && !want.path.empty() && !choice.nested &&
        input.expected == nullptr)
      planner.warnings.push_back("git in " + EscapeForDisplay(want.path) +
                                 " is left as it is (to take it back too: "
                                 "--git-nested)");
    if (moves && !planner.plan.move.changes.empty()) {
      out.before.repositories.push_back(*is);
      out.after.repositories.push_back(planner.after);
    }
    if (!moves) planner.plan.move = {};
    out.warnings.insert(out.warnings.end(), planner.warnings.begin(),
                        planner.warnings.end());
    out.conflicts.insert(out.conflicts.end(), planner.conflicts.begin(),
                         planner.conflicts.end());
    out.plans.push_back(std::move(planner.plan));
  }
  return out;
}

std::vector<std::string> GitPlanText(const std::vector<GitPlan>& plans) {
  std::vector<std::string> out;
  for (const GitPlan& plan : plans) {
    if (plan.none || plan.move.changes.empty()) continue;
    const std::string where =
        plan.path.empty() ? "" : " (" + EscapeForDisplay(plan.path) + ")";
    const std::string name = plan.branch.empty() ? "HEAD" : plan.branch;
    auto commit = [](const std::string& id) {
      return id.empty() ? std::string("no commit") : id.substr(0, 7);
    };
    if (!plan.move.whole && (plan.from != plan.to || plan.commit_count > 0))
      out.push_back(
          "git" + where + ": " + name +
          (plan.action == GitAction::kRevert
               ? " gets commits on top that undo what came after "
               : (plan.commit_count > 0 ? " goes back from " : " goes from ") +
                     commit(plan.from) + " to ") +
          (plan.action == GitAction::kRevert ? "it" : commit(plan.to)));
    for (const std::string& line : plan.commits)
      out.push_back(
          (plan.action == GitAction::kRevert ? "  undoes " : "  takes back ") +
          EscapeForDisplay(line));
    if (plan.commit_count > plan.commits.size())
      out.push_back("  and " + std::to_string(plan.commit_count - plan.commits.size()) +
                    " more");
    auto refs = [&](const char* how, const std::vector<std::string>& names) {
      for (size_t i = 0; i < names.size() && i < kRefsShown; ++i)
        out.push_back(how + names[i]);
      if (names.size() > kRefsShown)
        out.push_back("  and " + std::to_string(names.size() - kRefsShown) +
                      " more beside them");
    };
    refs("  kept under ", plan.safety_refs);
    refs("  was kept under ", plan.held_by);
    for (const std::string& note : plan.notes)
      out.push_back("git" + where + ": " + note);
  }
  return out;
}

}  // namespace belay
