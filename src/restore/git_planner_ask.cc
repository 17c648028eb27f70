#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/git_planner_internal.h"

namespace belay {

namespace {

constexpr size_t kListed = 200;  // commits
constexpr size_t kLostShown = 3;
constexpr size_t kMaxIndex = size_t{1} << 30;

}  // namespace

// Branches that moved and are somebody else's by now: checked out in another work
// tree, or published.
Status GitPlanner::LeaveOthersAlone() {
  if (expected_ != nullptr) return Ok();
  for (const std::string& name : OtherRefs()) {
    const std::string now = GitRefValue(is_refs_, name),
                      then = GitRefValue(want_refs_, name);
    if (BytesOfDamagedGitRef(then)) {
      warnings.push_back(GitBranchName(name) +
                         " stays as it is: its file was damaged then");
      stays_.insert(name);
      continue;
    }
    if (now.empty() || !IsGitHex(now, repository_.hash)) continue;
    BELAY_TRY(std::string elsewhere, CheckedOutElsewhere(name));
    if (!elsewhere.empty()) {
      warnings.push_back(GitBranchName(name) +
                         " moved since and stays: it is checked out in another work "
                         "tree");
      stays_.insert(name);
      continue;
    }
    if (choice_.action != GitAction::kAuto || !name.starts_with("refs/heads/"))
      continue;
    auto all = git_->Try({"rev-list", "--count", now, "--not", then});
    auto here = git_->Try({"rev-list", "--count", now, "--not", then, "--remotes"});
    if (all.ok() && here.ok() && all->ok() && here->ok() &&
        all->output != here->output) {
      warnings.push_back(GitBranchName(name) +
                         " moved since and stays: what was added is on a remote");
      stays_.insert(name);
    }
  }
  return Ok();
}

Result<std::string> GitPlanner::StashLogOf(const GitRepoRecord& record) {
  if (!record.stash_log) return std::string();
  Bytes bytes;
  if (&record == &is_) {
    BELAY_TRY(bytes,
              ReadGitFile(fs_, repository_.common_dir, kGitStashLog, kMaxGitText));
  } else {
    BELAY_TRY(bytes, input_.store.ReadContentBytes(record.stash_log->id, kMaxGitText));
  }
  return std::string(AsText(bytes));
}

// The commits that a stash's list names, newest last.
std::vector<std::string> GitPlanner::Stashed(const std::string& log,
                                             const GitRefs& refs) const {
  const size_t length = 2 * GitHashSize(repository_.hash);
  std::vector<std::string> out;
  for (const std::string& line : GitLines(log)) {
    if (line.size() < 2 * length + 1) continue;
    std::string commit = line.substr(length + 1, length);
    if (IsGitHex(commit, repository_.hash)) out.push_back(std::move(commit));
  }
  const std::string top = GitRefCommit(refs, kGitStash, repository_.hash);
  if (!top.empty() && std::ranges::find(out, top) == out.end()) out.push_back(top);
  return out;
}

// The list of a stash, but for the entries that git has no more.
std::string GitPlanner::WithoutMissing(const std::string& log) const {
  const size_t length = 2 * GitHashSize(repository_.hash);
  std::string text;
  for (const std::string& line : GitLines(log))
    if (line.size() > 2 * length && !missing_.contains(line.substr(length + 1, length)))
      text += line + "\n";
  return text;
}

bool GitPlanner::IsPartialClone() const {
  const GitConfig& config = files_.config();
  return config.Last("extensions.partialclone") != nullptr ||
         std::ranges::any_of(config.entries(), [](const GitConfig::Entry& entry) {
           return entry.key.starts_with("remote.") && entry.key.ends_with(".promisor");
         });
}

// Blobs that the wanted index names and the present one does not, in hex, rising: those
// of the present one are git's care. In a partial clone any may be missing, to be
// fetched when somebody needs it.
Result<std::vector<std::string>> GitPlanner::NewlyStaged() {
  std::vector<std::string> out;
  if (!want_.index || is_.index_digest == want_.index_digest || IsPartialClone())
    return out;
  auto blobs = [](std::vector<NamedEntry> named) {
    std::vector<std::string> found;
    for (NamedEntry& entry : named)
      if (entry.is_blob()) found.push_back(std::move(entry.object));
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  // One that is damaged names nothing that anybody could ask for.
  auto then = LoadGitIndex(input_.store, want_);
  if (!then.ok()) {
    BELAY_TRY(Bytes bytes, input_.store.ReadContentBytes(want_.index->id, kMaxIndex));
    if (DigestOfDamagedIndex(bytes) != want_.index_digest)
      return std::move(then).error();
  }
  const std::vector<std::string> want =
      then.ok() ? blobs(std::move(*then)) : std::vector<std::string>();
  std::vector<std::string> is;
  if (is_.index) {
    auto read = [&](const std::string& name) {
      return ReadGitFile(fs_, repository_.git_dir, name, kMaxIndex);
    };
    BELAY_TRY(Bytes bytes, read("index"));
    std::vector<NamedEntry> named;
    auto entries = ReadWholeIndex(bytes, repository_.hash, &named, read);
    if (!entries.ok()) named.clear();
    is = blobs(std::move(named));
  }
  std::ranges::set_difference(want, is, std::back_inserter(out));
  return out;
}

// Of what the wanted index names: what neither git nor the store has. For people; empty
// when all is there.
Result<std::string> GitPlanner::LostOfIndex(const std::set<std::string>& lost) {
  if (lost.empty() || BELAY_MUTANT("git-lost-blob-is-trusted")) return std::string();
  BELAY_TRY(auto entries, LoadGitIndex(input_.store, want_));
  std::set<std::string> paths;
  for (const NamedEntry& entry : entries)
    if (!entry.later && lost.contains(entry.object))
      paths.insert(EscapeForDisplay(entry.path));
  if (paths.empty()) return std::string();
  std::string text = "what was staged of ";
  size_t shown = 0;
  for (const std::string& path : paths) {
    if (shown == kLostShown) break;
    text += (shown++ > 0 ? ", " : "") + path;
  }
  if (paths.size() > shown)
    text += " and " + std::to_string(paths.size() - shown) + " more";
  return text + " is not in the repository any more";
}

Status GitPlanner::AskForMissing(const std::vector<std::string>& asked) {
  std::string input;
  for (const std::string& hex : asked) input += hex + "\n";
  BELAY_TRY(std::string output, git_->Run({"cat-file", "--batch-check"}, input));
  missing_.clear();
  for (const std::string& line : GitLines(output))
    if (line.ends_with(" missing")) missing_.insert(line.substr(0, line.find(' ')));
  return Ok();
}

// Whether git has all that refs, logs, index and `tips` lead to. Not when it does not
// say so in time.
bool GitPlanner::IsComplete(const std::vector<std::string>& tips) {
  std::string input;
  for (const std::string& tip : tips) input += tip + "\n";
  // A long history takes its time, which nobody else's deadline should pay.
  auto git = GitRunner::Find(fs_, repository_, input_.places.ask);
  if (!git.ok()) return false;
  if (lost_) git->AlsoLookIn(lost_where_, lost_->damaged());
  auto said = git->Try({"rev-list", "--objects", "--all", "--reflog",
                        "--indexed-objects", "--quiet", "--stdin"},
                       std::move(input));
  return said.ok() && said->ok();
}

// Where the target covers objects (git.protect), those that are gone and needed, and
// those that are damaged, come back. False: there are none.
Result<bool> GitPlanner::ShowLostObjects(const std::vector<std::string>& needed) {
  if (want_.whole.tree.is_zero() || BELAY_MUTANT("git-lost-objects-stay-lost"))
    return false;
  // What an undo goes back to was there a moment ago.
  if (expected_ != nullptr && missing_.empty()) return false;
  auto lost = GitLostObjects::Find(input_, want_, repository_, *git_);
  if (!lost.ok()) {
    warnings.push_back("whether objects of git" + Where() +
                       " are lost is not known: " + lost.error().what);
    return false;
  }
  if (lost->files().empty()) return false;
  // What nothing leads to, git takes away by itself.
  const bool incomplete = missing_.empty() && !lost->damaged() &&
                          expected_ == nullptr && !IsPartialClone() &&
                          !IsComplete(needed);
  if (missing_.empty() && !lost->damaged() && !incomplete) return false;
  lost_.emplace(std::move(*lost));
  BELAY_TRY(lost_where_, lost_->Show());
  git_->AlsoLookIn(lost_where_, lost_->damaged());
  if (incomplete && !IsComplete(needed))
    warnings.push_back("not all of git's history" + Where() +
                       " comes back: see what is missing with: git fsck");
  return true;
}

// Asks git once what of all that is needed is still there. Says why nothing can be
// done, or nothing.
Result<std::string> GitPlanner::LookForMissing() {
  BELAY_TRY(want_stash_, StashLogOf(want_));
  BELAY_TRY(is_stash_, StashLogOf(is_));
  BELAY_TRY(Tree objects, LoadGitObjects(input_.store, want_));
  BELAY_TRY(std::vector<std::string> staged, NewlyStaged());
  std::vector<std::string> asked;
  if (!want_.head.empty()) asked.push_back(want_.head);
  for (const std::string& name : OtherRefs())
    if (const std::string value = GitRefValue(want_refs_, name);
        IsGitHex(value, repository_.hash))
      asked.push_back(value);
  if (StashDiffers(is_, is_refs_, want_, want_refs_))
    for (const std::string& commit : Stashed(want_stash_, want_refs_))
      asked.push_back(commit);
  std::set<std::string> kept;
  for (const TreeEntry& entry : objects.entries) kept.insert(entry.name);
  if (is_.index_digest != want_.index_digest)
    asked.insert(asked.end(), kept.begin(), kept.end());
  std::erase_if(staged, [&](const std::string& hex) { return kept.contains(hex); });
  asked.insert(asked.end(), staged.begin(), staged.end());
  if (!asked.empty()) BELAY_OK(AskForMissing(asked));
  BELAY_TRY(bool shown, ShowLostObjects(asked));
  if (asked.empty()) return std::string();
  if (shown) BELAY_OK(AskForMissing(asked));
  if (missing_.contains(want_.head) && !BELAY_MUTANT("git-lost-commit-is-trusted"))
    return "the commit " + want_.head.substr(0, 7) +
           " that it was at is not in the repository any more";
  std::set<std::string> lost;
  std::ranges::set_intersection(staged, missing_, std::inserter(lost, lost.end()));
  BELAY_TRY(std::string text, LostOfIndex(lost));
  if (!text.empty()) return text;
  for (const TreeEntry& entry : objects.entries) {
    if (!missing_.contains(entry.name)) continue;
    BELAY_TRY(bool has, input_.Has(entry.id));
    if (!has)
      return std::string(input_.WasPurged(entry.id)
                             ? "what was staged was erased by belay purge"
                             : "the store has what was staged no more");
    plan.move.objects.push_back({entry.name, entry.id, entry.size});
  }
  return std::string();
}

// That git cannot tell is an error, and never taken for absence.
Result<bool> GitPlanner::IsThere(const std::string& object) {
  BELAY_TRY(std::string said, git_->Run({"cat-file", "--batch-check"}, object + "\n"));
  return !said.ends_with(" missing\n");
}

// Which commits go, and whether all this may.
Result<bool> GitPlanner::ChooseAction() {
  plan.action = choice_.action == GitAction::kAuto ? GitAction::kReset : choice_.action;
  BELAY_TRY(const bool goes, ListCommits());
  return goes ? LeaveToOthers() : Result<bool>(false);
}

// False: they are published.
Result<bool> GitPlanner::ListCommits() {
  const std::string branch_now =
      want_.head_ref.empty() ? is_.head
                             : GitRefCommit(is_refs_, want_.head_ref, repository_.hash);
  leaves_ = branch_now;
  if (leaves_.empty() || leaves_ == want_.head) return true;
  // A branch that somebody made name what is not there leaves nothing.
  BELAY_TRY(bool there, IsThere(leaves_ + "^{commit}"));
  if (!there && !BELAY_MUTANT("git-holds-what-is-not-there")) {
    leaves_.clear();
    return true;
  }
  std::vector<std::string> range = {leaves_, "--not"};
  if (!want_.head.empty()) range.push_back(want_.head);
  auto count = [&](std::vector<std::string> more) -> Result<size_t> {
    std::vector<std::string> command = {"rev-list", "--count"};
    command.insert(command.end(), range.begin(), range.end());
    command.insert(command.end(), more.begin(), more.end());
    BELAY_TRY(std::string output, git_->Run(command));
    size_t value = 0;
    std::from_chars(output.data(), output.data() + output.size(), value);
    return value;
  };
  BELAY_TRY(plan.commit_count, count({}));
  if (plan.commit_count == 0) return true;
  std::vector<std::string> log = {"log",
                                  "--no-show-signature",
                                  "--no-color",
                                  "--no-decorate",
                                  "--max-count=" + std::to_string(kListed),
                                  "--format=%h %s"};
  log.insert(log.end(), range.begin(), range.end());
  BELAY_TRY(std::string output, git_->Run(log));
  for (const std::string& line : GitLines(output)) {
    const size_t space = std::min(line.find(' '), line.size());
    plan.commits.push_back(line.substr(0, space) + " \"" +
                           (space < line.size() ? line.substr(space + 1) : "") + "\"");
  }
  if (choice_.action == GitAction::kAuto && expected_ == nullptr) {
    BELAY_TRY(size_t only_here, count({"--remotes"}));
    if (only_here < plan.commit_count && !BELAY_MUTANT("git-takes-back-published"))
      return Keep(Counted(plan.commit_count - only_here, "commit") + " made since " +
                  (plan.commit_count - only_here == 1 ? "is" : "are") +
                  " on a remote already; take them back all the same with: --git "
                  "reset, or by commits on top with: --git revert");
  }
  return true;
}

// Commits that undo those that would be taken back, one each where history is a line,
// else one for all. The tip.
Result<std::string> GitPlanner::MakeReverts() {
  if (plan.commit_count == 0) return want_.head;
  if (want_.head.empty())
    return Error(Errc::kRefused, "there was no commit then that could be gone back to")
        .WithHint("take the commits back with: --git reset");
  if (input_.dry) return std::string(leaves_);
  // What is made belongs into the repository.
  if (lost_) git_->AlsoLookIn(lost_where_);
  BELAY_TRY(std::string output,
            git_->Run({"log", "--no-show-signature", "--format=%H %P%x09%s", leaves_,
                       "--not", want_.head}));
  struct Commit {
    std::string id, parents, subject;
  };
  std::vector<Commit> commits;
  for (const std::string& line : GitLines(output)) {
    const size_t space = line.find(' '), tab = line.find('\t');
    if (space == std::string::npos || tab == std::string::npos || tab < space)
      return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
    commits.push_back({line.substr(0, space), line.substr(space + 1, tab - space - 1),
                       line.substr(tab + 1)});
  }
  bool line = !commits.empty() && commits.back().parents == want_.head;
  for (size_t i = 0; i + 1 < commits.size(); ++i)
    line = line && commits[i].parents == commits[i + 1].id;
  const std::string when = std::to_string(input_.store.clock().WallMillis() / 1000);
  std::vector<std::string> who;
  for (const char* role : {"AUTHOR", "COMMITTER"}) {
    who.push_back(std::string("GIT_") + role +
                  "_NAME=" + files_.config().Text("user.name").value_or("Belay"));
    who.push_back(std::string("GIT_") + role + "_EMAIL=" +
                  files_.config().Text("user.email").value_or("belay@localhost"));
    who.push_back(std::string("GIT_") + role + "_DATE=" + when + " +0000");
  }
  auto commit = [&](const std::string& tree, const std::string& parent,
                    const std::string& message) -> Result<std::string> {
    BELAY_TRY(std::string id,
              git_->Run({"commit-tree", tree + "^{tree}", "-p", parent}, message, who));
    while (!id.empty() && id.back() == '\n') id.pop_back();
    if (!IsGitHex(id, repository_.hash))
      return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
    return id;
  };
  if (!line)
    return commit(want_.head, leaves_,
                  "Go back to " + want_.head.substr(0, 7) + "\n\nThis undoes " +
                      Counted(plan.commit_count, "commit") + ".\n");
  std::string tip = leaves_;
  for (const Commit& one : commits) {
    BELAY_TRY(tip, commit(one.parents, tip,
                          "Revert \"" + one.subject + "\"\n\nThis reverts commit " +
                              one.id + ".\n"));
  }
  return tip;
}

}  // namespace belay
