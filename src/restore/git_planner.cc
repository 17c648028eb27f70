#include "base/escape.h"
#include "base/mutant.h"
#include "restore/git_planner_internal.h"

namespace belay {

namespace {

Error Moving() {
  return Error(Errc::kBusy, "git is at work here: it changed while it was looked at")
      .WithHint("nothing was changed; try again when it is done");
}

}  // namespace

std::string GitRefValue(const GitRefs& refs, std::string_view name) {
  auto found = refs.find(name);
  return found == refs.end() ? "" : found->second;
}

std::string GitRefCommit(const GitRefs& refs, std::string_view name, GitHash hash) {
  std::string value = GitRefValue(refs, name);
  return IsGitHex(value, hash) ? value : "";
}

std::string GitBranchName(std::string_view ref) {
  constexpr std::string_view kBranch = "refs/heads/";
  return EscapeForDisplay(ref.starts_with(kBranch) ? ref.substr(kBranch.size()) : ref);
}

GitPlanner::GitPlanner(const GitPlanInput& input, const GitChoice& choice,
                       const GitRepository& repository, const GitRepoRecord& is,
                       const GitRepoRecord& want, const GitRepoRecord* expected)
    : input_(input),
      choice_(choice),
      repository_(repository),
      is_(is),
      want_(want),
      expected_(expected),
      fs_(input.store.fs()),
      files_(fs_, input.store.clock(), input.sink, repository, input.places.user) {}

Result<bool> GitPlanner::Make() {
  plan.path = is_.path;
  BELAY_TRY(is_refs_, LoadRefs(is_));
  BELAY_TRY(want_refs_, LoadRefs(want_));
  if (expected_ != nullptr) {
    BELAY_TRY(expected_refs_, LoadRefs(*expected_));
  }
  const bool differs = Differs();
  if (!differs && !MayMend()) return false;
  plan.none = !differs;
  plan.from = is_.head;
  plan.to = want_.head;
  plan.branch = want_.head_ref.empty() ? "" : GitBranchName(want_.head_ref);
  if (choice_.action == GitAction::kKeep) return Keep("");
  if (want_.above) return Keep("the repository reaches above this directory");
  if (!want_.trouble.empty())
    return Keep("its state was not kept then: " + want_.trouble);
  if (!is_.trouble.empty()) return Keep("its state cannot be read: " + is_.trouble);
  for (const auto* refs : {&is_refs_, &want_refs_})
    if (GitRefValue(*refs, want_.head_ref).starts_with("ref: "))
      return Keep("its branch is another name of a branch");
  if (expected_ == nullptr &&
      BytesOfDamagedGitRef(GitRefValue(want_refs_, want_.head_ref)))
    return Keep("the file of its branch was damaged then");
  if (is_.hash != want_.hash || is_.linked != want_.linked)
    return Keep("it is another repository now");
  // A `.git` that leads to somebody else's repository now.
  if (is_.elsewhere != want_.elsewhere && !BELAY_MUTANT("git-of-another-place"))
    return Keep("its .git leads to another repository now" +
                (is_.elsewhere.empty() ? "" : ": " + EscapeForDisplay(is_.elsewhere)));
  if (!repository_.git_dir.IsWithin(repository_.common_dir))
    return Keep("its git directory lies outside of the one it belongs to");
  if (expected_ != nullptr && FindConflicts()) return false;
  BELAY_OK(CheckStillSo());
  BELAY_OK(CheckBranch());
  BELAY_OK(files_.Open());
  if (repository_.git_dir != repository_.common_dir)
    own_ =
        repository_.git_dir.bytes().substr(repository_.common_dir.bytes().size() + 1) +
        "/";
  auto git = GitRunner::Find(fs_, repository_, input_.places.ask);
  if (!git.ok()) return differs ? Keep(git.error().what) : Result<bool>(false);
  git_.emplace(std::move(*git));
  auto goes = AskAndBuild(differs);
  // Git itself can make nothing of its files.
  if (!goes.ok() &&
      (goes.error().code == Errc::kInvalid || goes.error().code == Errc::kConflict) &&
      !BELAY_MUTANT("git-that-fails-stops-all"))
    return differs ? Keep(goes.error().what) : Result<bool>(false);
  return goes;
}

Result<bool> GitPlanner::AskAndBuild(bool differs) {
  BELAY_OK(LeaveOthersAlone());
  BELAY_TRY(std::string missing, LookForMissing());
  if (!missing.empty()) return Keep(missing);
  if (!differs && !lost_) return false;
  plan.none = false;
  BELAY_TRY(bool goes, ChooseAction());
  if (!goes) return false;
  BELAY_OK(Build());
  return true;
}

Result<GitLook> GitPlanner::LookNow() {
  return LookAtGit(
      fs_, repository_, [](const FileStat&, int64_t) { return false; }, 0);
}

// The record was made some moments ago: what is planned by must still be so, or a
// commit made meanwhile would be held by nothing.
Status GitPlanner::CheckStillSo() {
  if (BELAY_MUTANT("git-plans-by-the-past")) return Ok();
  const std::string refs = RefsText(is_refs_);
  if (is_refs_.empty() != is_.refs.is_zero() ||
      (!is_refs_.empty() && Sha256::Of(AsBytes(refs)) != is_.refs))
    return Moving();
  if (is_.index.has_value() != look_.index.has_value()) return Moving();
  if (look_.index) {
    BELAY_TRY(Bytes bytes,
              ReadGitFile(fs_, repository_.git_dir, "index", size_t{1} << 30));
    auto entries =
        ReadWholeIndex(bytes, repository_.hash, nullptr, [&](const std::string& name) {
          return ReadGitFile(fs_, repository_.git_dir, name, size_t{1} << 30);
        });
    const Hash256 digest = entries.ok() ? entries->digest : DigestOfDamagedIndex(bytes);
    if (digest != is_.index_digest) return Moving();
  }
  for (const GitKept& kept : is_.own) {
    // It belongs to the index as it was kept, which may be an older one.
    if (kept.name.starts_with(kGitSharedIndex)) continue;
    auto bytes = ReadGitFile(fs_, repository_.git_dir, kept.name, kMaxGitText);
    if (!bytes.ok() || Sha256::Of(*bytes) != kept.id) return Moving();
  }
  return Ok();
}

// And all that was looked at since is of one moment.
Status GitPlanner::CheckStoodStill() {
  BELAY_TRY(GitLook now, LookNow());
  return now.print == look_.print ? Ok() : Moving();
}

Result<GitRefs> GitPlanner::LoadRefs(const GitRepoRecord& record) {
  // Those of now may not be in the store yet.
  if (&record == &is_) {
    BELAY_TRY(look_, LookNow());
    return ReadGitRefs(fs_, repository_, look_);
  }
  return LoadGitRefs(input_.store, record);
}

bool GitPlanner::OwnDiffers(const GitRepoRecord& a, const GitRepoRecord& b) const {
  auto names = [](const GitRepoRecord& r) {
    std::vector<GitKept> out;
    for (const GitKept& kept : r.own)
      if (!kept.name.starts_with(kGitSharedIndex)) out.push_back(kept);
    return out;
  };
  return names(a) != names(b);
}

bool GitPlanner::StashDiffers(const GitRepoRecord& a, const GitRefs& refs_a,
                              const GitRepoRecord& b, const GitRefs& refs_b) const {
  auto id = [](const GitRepoRecord& r) {
    return r.stash_log ? r.stash_log->id : ObjectId();
  };
  return GitRefValue(refs_a, kGitStash) != GitRefValue(refs_b, kGitStash) ||
         id(a) != id(b);
}

// Refs that this plan would set, other than the branch of HEAD.
std::vector<std::string> GitPlanner::OtherRefs() const {
  std::vector<std::string> out;
  if (expected_ != nullptr) {
    std::set<std::string> names;
    for (const auto& [name, value] : expected_refs_) names.insert(name);
    for (const auto& [name, value] : want_refs_) names.insert(name);
    for (const std::string& name : names)
      if (name != kGitStash && name != want_.head_ref &&
          GitRefValue(expected_refs_, name) != GitRefValue(want_refs_, name) &&
          GitRefValue(is_refs_, name) != GitRefValue(want_refs_, name))
        out.push_back(name);
    return out;
  }
  for (const auto& [name, value] : want_refs_)
    if (name != kGitStash && name != want_.head_ref &&
        GitRefValue(is_refs_, name) != value && !stays_.contains(name))
      out.push_back(name);
  return out;
}

// What git takes for a sign of something under way, though nothing is in it; not those
// that an undo finds.
std::vector<std::string> GitPlanner::EmptyStateDirs() const {
  std::vector<std::string> out;
  auto git_dir = fs_.OpenDir(repository_.git_dir);
  if (expected_ != nullptr || !git_dir.ok()) return out;
  for (const char* name : {"rebase-apply", "rebase-merge", "sequencer"}) {
    auto dir = fs_.Open(*git_dir, Name::Literal(name), OpenMode::Directory());
    auto inside =
        dir.ok() ? fs_.List(*dir) : Result<std::vector<DirEntry>>(dir.error());
    const bool wanted = std::ranges::any_of(want_.own, [&](const GitKept& kept) {
      return kept.name.starts_with(std::string(name) + "/");
    });
    if (inside.ok() && inside->empty() && !wanted) out.emplace_back(name);
  }
  return out;
}

bool GitPlanner::Differs() const {
  if (!EmptyStateDirs().empty()) return true;
  return is_.head_ref != want_.head_ref || is_.head != want_.head ||
         is_.index.has_value() != want_.index.has_value() ||
         is_.index_digest != want_.index_digest || OwnDiffers(is_, want_) ||
         StashDiffers(is_, is_refs_, want_, want_refs_) || !OtherRefs().empty();
}

// Where all is as it was, an object may be missing or damaged all the same, and the
// target has it.
bool GitPlanner::MayMend() const {
  return !want_.whole.tree.is_zero() && expected_ == nullptr &&
         choice_.action != GitAction::kKeep && !want_.above && want_.trouble.empty() &&
         is_.trouble.empty() && is_.hash == want_.hash &&
         is_.elsewhere == want_.elsewhere && !BELAY_MUTANT("git-mends-only-what-moved");
}

Result<bool> GitPlanner::Keep(const std::string& why) {
  plan.action = GitAction::kKeep;
  if (!why.empty()) warnings.push_back("git" + Where() + " is left as it is: " + why);
  return false;
}

std::string GitPlanner::Where() const {
  return is_.path.empty() ? "" : " in " + EscapeForDisplay(is_.path);
}

bool GitPlanner::FindConflicts() {
  if (input_.exact) return false;
  auto conflict = [&](std::string_view name) {
    conflicts.push_back(
        {(is_.path.empty() ? "" : is_.path + "/") + ".git/" + std::string(name),
         "changed since"});
  };
  if (is_.head_ref != expected_->head_ref || is_.head != expected_->head)
    conflict("HEAD");
  else if (is_.index_digest != expected_->index_digest)
    conflict("index");
  else if (is_.in_progress != expected_->in_progress)
    conflict(is_.in_progress.empty() ? expected_->in_progress : is_.in_progress);
  if (StashDiffers(is_, is_refs_, *expected_, expected_refs_) &&
      StashDiffers(want_, want_refs_, *expected_, expected_refs_))
    conflict(kGitStash);
  return !conflicts.empty();
}

// The branch that work goes on: while a rebase or bisection is under way, the one it
// began on.
Result<std::string> GitPlanner::WorkBranch(const GitRepoRecord& record) {
  if (!record.head_ref.empty()) return record.head_ref;
  for (const GitKept& kept : record.own) {
    const bool bisects = kept.name == "BISECT_START";
    if (!bisects && kept.name != "rebase-merge/head-name" &&
        kept.name != "rebase-apply/head-name")
      continue;
    Bytes bytes;
    if (&record == &is_) {
      BELAY_TRY(bytes, ReadGitFile(fs_, repository_.git_dir, kept.name, 4096));
    } else {
      BELAY_TRY(bytes, input_.store.ReadContentBytes(kept.id, 4096));
    }
    std::string text(AsText(bytes));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (bisects) {
      const GitRefs& refs = &record == &is_ ? is_refs_ : want_refs_;
      text.insert(0, "refs/heads/");
      return refs.contains(text) ? text : std::string();
    }
    // Of a rebase without a branch: "detached HEAD".
    return text.starts_with("refs/") ? text : std::string();
  }
  return std::string();
}

// HEAD on another branch than then.
Status GitPlanner::CheckBranch() {
  BELAY_TRY(std::string is, WorkBranch(is_));
  BELAY_TRY(std::string want, WorkBranch(want_));
  if (is == want) return Ok();
  if (expected_ != nullptr) return Ok();  // the operation switched, and goes back
  auto name = [](const std::string& ref) {
    return ref.empty() ? std::string("no branch") : "branch " + GitBranchName(ref);
  };
  if (!choice_.switch_branch && !BELAY_MUTANT("git-switches-silently"))
    return Error(Errc::kRefused, "the branch was switched since: git" + Where() +
                                     " is on " + name(is) + " now, and was on " +
                                     name(want) + " then; nothing was changed")
        .WithHint(
            "to go back to that branch too: --switch; to roll back files only: "
            "--git keep");
  BELAY_TRY(std::string elsewhere, CheckedOutElsewhere(want_.head_ref));
  if (!elsewhere.empty())
    return Error(Errc::kRefused, name(want) + " is checked out in " +
                                     EscapeForDisplay(elsewhere) +
                                     " by now; nothing was changed")
        .WithHint("to roll back files only: --git keep");
  return Ok();
}

// Another work tree of the same repository that stands on `ref`.
Result<std::string> GitPlanner::CheckedOutElsewhere(const std::string& ref) {
  if (ref.empty()) return std::string();
  auto stands = [&](const AbsPath& git_dir) {
    if (git_dir == repository_.git_dir) return false;
    auto head = ReadGitFile(fs_, git_dir, "HEAD", 4096);
    if (!head.ok()) return false;
    auto parsed = ParseGitHead(AsText(*head), repository_.hash);
    return parsed.ok() && parsed->ref == ref;
  };
  if (stands(repository_.common_dir)) return repository_.common_dir.bytes();
  const AbsPath trees = repository_.common_dir.Join(RelPath::Literal("worktrees"));
  auto dir = fs_.OpenDir(trees);
  if (!dir.ok()) return std::string();
  BELAY_TRY(auto names, fs_.List(*dir));
  for (const DirEntry& entry : names) {
    BELAY_TRY(Name name, Name::Parse(entry.name));
    if (stands(trees.Join(name))) return trees.Join(name).bytes();
  }
  return std::string();
}

}  // namespace belay
