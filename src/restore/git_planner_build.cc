#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/git_planner_internal.h"

namespace belay {

Status GitPlanner::Build() {
  plan.move.ino = files_.stat().ino;
  plan.move.dir = repository_.common_dir.bytes();
  plan.move.hash = repository_.hash;
  after = want_;
  after_refs_ = is_refs_;

  std::string tip = want_.head;
  if (plan.action == GitAction::kRevert) {
    BELAY_TRY(tip, MakeReverts());
    plan.to = after.head = tip;
  }
  files_.Lock(own_ + "HEAD");
  files_.Lock(own_ + "index");
  if (lost_) {
    size_t count = 0;
    for (const GitLostObjects::File& file : lost_->files()) {
      if (file.stays) continue;
      ++count;
      BELAY_OK(files_.SetState(file.path, file.state));
    }
    plan.notes.push_back((lost_->damaged()
                              ? "objects that were gone or damaged come back: "
                              : "objects that were gone come back: ") +
                         Counted(count, "file"));
  }
  BELAY_OK(SetBranch(tip));
  BELAY_OK(SetOtherRefs());
  BELAY_OK(NoteInHeadLog(tip));
  BELAY_OK(SetStash());
  BELAY_OK(KeepReachable(tip));
  BELAY_OK(SetOwn());
  BELAY_OK(SetIndex());
  BELAY_OK(DropOldSafety());
  BELAY_OK(files_.Unpack());
  const std::string text = RefsText(after_refs_);
  after.refs = {};
  if (!after_refs_.empty()) {
    BELAY_TRY(after.refs, input_.sink.PutContent(AsBytes(text)));
  }
  plan.move.changes = files_.TakeChanges();
  plan.move.locks = files_.TakeLocks();
  if (plan.move.changes.empty()) plan.none = true;
  return BELAY_MUTANT("git-plans-by-the-past") ? Ok() : CheckStoodStill();
}

Status GitPlanner::SetBranch(const std::string& tip) {
  // What an undo goes back to may have been nonsense.
  const std::string then = GitRefValue(want_refs_, want_.head_ref);
  const bool damaged = tip.empty() && BytesOfDamagedGitRef(then);
  const std::string to = damaged ? then : tip;
  if (want_.head_ref.empty() || GitRefValue(is_refs_, want_.head_ref) == to)
    return Ok();
  BELAY_OK(files_.SetRef(want_.head_ref, to));
  const std::string log = "logs/" + want_.head_ref;
  if (!tip.empty())
    BELAY_OK(files_.AppendLog(log, {{leaves_, tip, "belay: " + input_.what}}));
  else if (!damaged)
    BELAY_OK(files_.SetState(log, std::nullopt));
  if (to.empty())
    after_refs_.erase(want_.head_ref);
  else
    after_refs_[want_.head_ref] = to;
  if (damaged)
    plan.notes.push_back("the file of " + GitBranchName(want_.head_ref) +
                         " is damaged again, as it was");
  return Ok();
}

Status GitPlanner::SetOtherRefs() {
  for (const std::string& name : OtherRefs()) {
    const std::string value = GitRefValue(want_refs_, name);
    if (missing_.contains(value)) {
      warnings.push_back(GitBranchName(name) + " does not come back: its commit " +
                         value.substr(0, 7) + " is not in the repository any more");
      continue;
    }
    Status set = files_.SetRef(name, value);
    if (!set.ok()) {
      if (set.error().code != Errc::kConflict) return set;
      warnings.push_back(GitBranchName(name) +
                         " does not come back: " + set.error().what);
      continue;
    }
    const std::string now = GitRefValue(is_refs_, name);
    if (value.empty())
      after_refs_.erase(name);
    else
      after_refs_[name] = value;
    // One that names another ref, or is damaged, holds no commit and has no log.
    const std::string commit = IsGitHex(value, repository_.hash) ? value : "";
    std::string from = GitRefCommit(is_refs_, name, repository_.hash);
    if (!from.empty()) {
      BELAY_TRY(bool there, IsThere(from));
      if (!there) from.clear();
    }
    if (!from.empty()) left_.emplace_back(from, commit);
    const std::string log = "logs/" + name;
    BELAY_TRY(MaybeState logged, files_.LookAt(log));
    if (logged && value.empty()) {
      BELAY_OK(files_.SetState(log, std::nullopt));
    } else if (!commit.empty() && (logged || name.starts_with("refs/heads/"))) {
      BELAY_OK(files_.AppendLog(log, {{from, commit, "belay: " + input_.what}}));
    }
    const std::string to = BytesOfDamagedGitRef(value) ? " is damaged again, as it was"
                           : value.starts_with("ref: ")
                               ? " names " + GitBranchName(value.substr(5)) + " again"
                           : now.empty() ? " comes back at " + value.substr(0, 7)
                                         : " goes back to " + value.substr(0, 7);
    plan.notes.push_back(GitBranchName(name) + (value.empty() ? " goes" : to));
  }
  return Ok();
}

Status GitPlanner::NoteInHeadLog(const std::string& tip) {
  // Where HEAD leaves a branch, or none, git itself asks its log which it was.
  auto name = [](const GitRepoRecord& record, const std::string& commit) {
    constexpr std::string_view kBranch = "refs/heads/";
    return record.head_ref.starts_with(kBranch) ? record.head_ref.substr(kBranch.size())
                                                : commit;
  };
  const bool leaves = is_.head_ref != want_.head_ref;
  const size_t length = 2 * GitHashSize(repository_.hash);
  std::string from = is_.head_ref == want_.head_ref ? leaves_ : is_.head;
  std::vector<GitFiles::LogLine> lines;
  if (want_.head_ref.empty() && want_.detached.size() > length + 1 &&
      want_.detached != is_.detached) {
    const std::string at = want_.detached.substr(0, length);
    lines.push_back({from, at,
                     "checkout: moving from " + name(is_, is_.head) + " to " +
                         want_.detached.substr(length + 1)});
    from = at;
  } else if (leaves) {
    lines.push_back(
        {from, tip,
         "checkout: moving from " + name(is_, is_.head) + " to " + name(want_, tip)});
    from = tip;
  }
  if (from != tip) lines.push_back({from, tip, "belay: " + input_.what});
  if (!lines.empty()) BELAY_OK(files_.AppendLog(own_ + "logs/HEAD", lines));
  return Ok();
}

// The stash, with its list.
Status GitPlanner::SetStash() {
  if (!StashDiffers(is_, is_refs_, want_, want_refs_)) return Ok();
  if (expected_ == nullptr &&
      BytesOfDamagedGitRef(GitRefValue(want_refs_, kGitStash))) {
    warnings.push_back("the stash stays as it is: its file was damaged then");
    after.stash_log = is_.stash_log;
    return Ok();
  }
  const auto then = Stashed(want_stash_, want_refs_);
  const auto gone = std::ranges::count_if(
      then, [&](const std::string& commit) { return missing_.contains(commit); });
  if (gone > 0)
    warnings.push_back((gone == 1 ? "1 entry" : std::to_string(gone) + " entries") +
                       " of the stash cannot be brought back: the commit is not in "
                       "the repository any more");
  const std::string value = GitRefValue(want_refs_, kGitStash);
  if (missing_.contains(value)) {
    warnings.back() += "; the stash stays as it is";
    after.stash_log = is_.stash_log;
  } else {
    BELAY_OK(files_.SetRef(std::string(kGitStash), value));
    files_.Lock(std::string(kGitStash));
    if (gone > 0)
      BELAY_OK(files_.SetText(std::string(kGitStashLog), WithoutMissing(want_stash_)));
    else if (want_.stash_log)
      BELAY_OK(files_.SetKept(std::string(kGitStashLog), *want_.stash_log));
    else
      BELAY_OK(files_.SetState(std::string(kGitStashLog), std::nullopt));
    if (value.empty())
      after_refs_.erase(std::string(kGitStash));
    else
      after_refs_[std::string(kGitStash)] = value;
    for (const std::string& commit : Stashed(is_stash_, is_refs_))
      unstashed_.insert(commit);
    for (const std::string& commit : then) unstashed_.erase(commit);
    plan.notes.push_back("the stash is as it was then");
  }
  return Ok();
}

// Refs that hold what the branch and the stash leave.
Status GitPlanner::KeepReachable(const std::string& tip) {
  const std::string base = std::string(kGitSafety) +
                           (input_.operation.is_zero() ? "*" : input_.operation.text());
  auto hold = [&](const std::string& name, const std::string& commit) -> Status {
    if (BELAY_MUTANT("git-no-safety-ref")) return Ok();
    BELAY_OK(files_.SetRef(base + "/" + name, commit));
    plan.safety_refs.push_back(base + "/" + name);
    return Ok();
  };
  auto leaves = [&](const std::string& commit, const std::string& to) -> Result<bool> {
    if (commit.empty() || commit == to) return false;
    if (to.empty()) return IsThere(commit);
    auto count =
        git_->Try({"rev-list", "--count", "--max-count=1", commit, "--not", to});
    // A tag may name what is no commit.
    if (!count.ok()) return std::move(count).error();
    if (count->ok()) return !count->output.starts_with('0');
    return IsThere(commit);
  };
  BELAY_TRY(bool head, leaves(is_.head, tip));
  // A branch that HEAD leaves holds its own commits.
  const bool held = !is_.head_ref.empty() && is_.head_ref != want_.head_ref;
  if (head && !held) BELAY_OK(hold("head", is_.head));
  if (leaves_ != is_.head) {
    BELAY_TRY(bool branch, leaves(leaves_, tip));
    if (branch) BELAY_OK(hold("branch", leaves_));
  }
  size_t others = 0;
  for (const auto& [was, to] : left_) {
    if (!IsGitHex(was, repository_.hash)) continue;
    BELAY_TRY(bool other, leaves(was, to));
    if (other) BELAY_OK(hold("ref-" + std::to_string(others++), was));
  }
  size_t number = 0;
  for (const std::string& commit : unstashed_)
    BELAY_OK(hold("stash-" + std::to_string(number++), commit));
  return Ok();
}

// HEAD and what is under way.
Status GitPlanner::SetOwn() {
  std::set<std::string> names, dirs;
  auto add = [&](const GitRepoRecord& record) {
    for (const GitKept& kept : record.own) {
      names.insert(kept.name);
      for (size_t slash = kept.name.find('/'); slash != std::string::npos;
           slash = kept.name.find('/', slash + 1))
        dirs.insert(kept.name.substr(0, slash));
    }
  };
  add(is_);
  add(want_);
  auto find = [](const GitRepoRecord& record, const std::string& name) {
    auto found = std::ranges::find(record.own, name, &GitKept::name);
    return found == record.own.end() ? nullptr : &*found;
  };
  for (const std::string& name : names) {
    const GitKept* want = find(want_, name);
    if (want != nullptr)
      BELAY_OK(files_.SetKept(own_ + name, *want));
    else if (!name.starts_with(kGitSharedIndex))
      BELAY_OK(files_.SetState(own_ + name, std::nullopt));
  }
  for (const std::string& dir : EmptyStateDirs())
    BELAY_OK(files_.RemoveDirectory(own_ + dir));
  // Directories that git takes for a sign of something under way.
  for (const std::string& dir : dirs) {
    if (!dir.starts_with("rebase-") && !dir.starts_with("sequencer")) continue;
    const bool wanted = std::ranges::any_of(want_.own, [&](const GitKept& kept) {
      return kept.name.starts_with(dir + "/");
    });
    if (!wanted) BELAY_OK(files_.RemoveDirectory(own_ + dir));
  }
  return Ok();
}

Status GitPlanner::SetIndex() {
  if (!want_.index) {
    BELAY_OK(files_.SetState(own_ + "index", std::nullopt));
  } else if (!is_.index || is_.index_digest != want_.index_digest) {
    BELAY_OK(files_.SetKept(own_ + "index", *want_.index));
  } else {
    after.index = is_.index;
    after.index_mtime_ns = is_.index_mtime_ns;
  }
  if (files_.changes(own_ + "index")) {
    plan.move.index = own_ + "index";
    plan.move.index_after_ns = want_.index_mtime_ns;
    BELAY_TRY(auto now, files_.Stat(own_ + "index"));
    plan.move.index_before_ns = now ? now->mtime_ns : 0;
    if (plan.from == plan.to) plan.notes.push_back("what is staged is as it was then");
  }
  return Ok();
}

// Those of operations that nobody can undo any more.
Status GitPlanner::DropOldSafety() {
  if (!input_.keeps_safety) return Ok();
  BELAY_TRY(std::string output, git_->Run({"for-each-ref", "--format=%(refname)",
                                           std::string(kGitSafety)}));
  for (const std::string& name : GitLines(output)) {
    if (!name.starts_with(kGitSafety) || !IsGitRefName(name)) continue;
    const std::string_view rest = std::string_view(name).substr(kGitSafety.size());
    const std::string_view operation = rest.substr(0, rest.find('/'));
    if (!input_.takes_back.is_zero() && operation == input_.takes_back.text())
      plan.held_by.push_back(name);
    if (input_.keeps_safety(operation)) continue;
    BELAY_OK(files_.SetRef(name, ""));
  }
  return Ok();
}

}  // namespace belay
