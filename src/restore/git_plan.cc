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

AbsPath WorkTreeOf(const GitPlanInput& input, const GitRepoRecord& want) {
  auto below = RelPath::Parse(want.path);
  return below.ok() ? input.root.Join(*below) : input.root;
}

// What went with a git directory that is gone.
std::string LostText(const GitPlanInput& input, const GitRepoRecord& want) {
  std::string text = "the git repository";
  if (!want.path.empty()) text += " in " + EscapeForDisplay(want.path);
  Fs& fs = input.store.fs();
  auto dir = fs.OpenDir(WorkTreeOf(input, want));
  if (dir.ok() && fs.StatAt(*dir, Name::Literal(".git")).ok())
    return text +
           " (.git) is none that git could read any more, and was not covered "
           "(git.protect): it is left as it is; the files come back";
  text += " (.git) is gone, and its objects were not covered (git.protect): ";
  text += want.head.empty() ? "what was staged"
                            : "the history up to " + want.head.substr(0, 7);
  if (!want.head_ref.empty()) text += " on " + GitBranchName(want.head_ref);
  return text + " does not come back; the files do";
}

// Whether the file `.git` that leads to a repository is in its place, as it was.
bool IsGitFileInPlace(const GitPlanInput& input, const GitRepoRecord& want) {
  const std::string& text = want.whole.git_file;
  if (text.empty()) return false;
  auto there =
      ReadGitFile(input.store.fs(), WorkTreeOf(input, want), ".git", text.size());
  return there.ok() && AsText(*there) == text;
}

// A submodule whose git directory lies in one that comes back whole, and whose `.git`
// that leads there is still in its place.
bool ComesBackWithItsParent(const GitPlanInput& input, const GitRepoRecord& want,
                            const GitPlans& out) {
  auto leads = LedToBy(want.whole.git_file, WorkTreeOf(input, want));
  if (!leads || !IsGitFileInPlace(input, want)) return false;
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

MovedBy OthersMoves::Of(std::string_view name) const {
  const auto found = what.find(name);
  return found == what.end() ? all : found->second;
}

bool GitPlanInput::WasPurged(const ObjectId& content) const {
  return lacks && lacks(content) && !BELAY_MUTANT("git-brings-back-the-purged");
}

bool GitPlanInput::MakesDirectory(const std::string& path) const {
  if (files == nullptr) return false;
  auto change = std::ranges::find(*files, path, &PathChange::path);
  return change != files->end() && change->after &&
         change->after->kind == EntryKind::kDirectory;
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
    const bool unreadable = is != nullptr && repository != nullptr && !want.absent &&
                            LostItsSettings(input.store.fs(), *repository, want);
    if (unreadable) {
      is = nullptr;
      repository = nullptr;
    }
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
    const bool gone = is == nullptr || repository == nullptr;
    if (gone && ComesBackWithItsParent(input, want, out)) continue;
    // It leads to nothing any more.
    const bool in_place = gone && IsGitFileInPlace(input, want);
    if (gone && !in_place && !want.whole.empty() && want.trouble.empty()) {
      if (mine.action != GitAction::kKeep) {
        BELAY_OK(PlanGitDirBack(input, want, unreadable, out));
      } else if (!want.path.empty() && choice.action != GitAction::kKeep) {
        out.warnings.push_back("git in " + EscapeForDisplay(want.path) +
                               " is gone and stays so (to bring it back too: "
                               "--git-nested)");
      }
      continue;
    }
    if (gone) {
      if (choice.action != GitAction::kKeep && !want.above)
        out.warnings.push_back(LostText(input, want));
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
