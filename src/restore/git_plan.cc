#include "restore/git_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "git/run_git.h"
#include "restore/look.h"

namespace belay {

namespace {

constexpr size_t kListed = 200;  // commits
constexpr size_t kMaxLog = size_t{64} << 20;
constexpr std::string_view kSafety = "refs/belay/safety/";
constexpr std::string_view kStash = "refs/stash";
constexpr std::string_view kStashLog = "logs/refs/stash";

std::string BranchName(std::string_view ref) {
  constexpr std::string_view kBranch = "refs/heads/";
  return EscapeForDisplay(ref.starts_with(kBranch) ? ref.substr(kBranch.size()) : ref);
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Count(size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

// One repository on its way from `is` to `want`.
class Planner {
 public:
  Planner(const GitPlanInput& input, const GitChoice& choice,
          const GitRepository& repository, const GitRepoRecord& is,
          const GitRepoRecord& want, const GitRepoRecord* expected)
      : input_(input),
        choice_(choice),
        repository_(repository),
        is_(is),
        want_(want),
        expected_(expected),
        fs_(input.store.fs()) {}

  // False: git is left as it is; `plan` and the warnings say why.
  Result<bool> Make() {
    plan.path = is_.path;
    BELAY_TRY(is_refs_, LoadRefs(is_));
    BELAY_TRY(want_refs_, LoadRefs(want_));
    if (expected_ != nullptr) {
      BELAY_TRY(expected_refs_, LoadRefs(*expected_));
    }
    if (!Differs()) return false;
    plan.none = false;
    plan.from = is_.head;
    plan.to = want_.head;
    plan.branch = want_.head_ref.empty() ? "" : BranchName(want_.head_ref);
    if (choice_.action == GitAction::kKeep) return Keep("");
    if (want_.above) return Keep("the repository reaches above this directory");
    if (!want_.trouble.empty())
      return Keep("its state was not kept then: " + want_.trouble);
    if (!is_.trouble.empty()) return Keep("its state cannot be read: " + is_.trouble);
    for (const auto* refs : {&is_refs_, &want_refs_})
      if (ValueOf(*refs, want_.head_ref).starts_with("ref: "))
        return Keep("its branch is another name of a branch");
    if (is_.hash != want_.hash || is_.linked != want_.linked)
      return Keep("it is another repository now");
    if (!repository_.git_dir.IsWithin(repository_.common_dir))
      return Keep("its git directory lies outside of the one it belongs to");
    if (expected_ != nullptr && FindConflicts()) return false;
    BELAY_OK(CheckStillSo());
    BELAY_OK(CheckBranch());
    BELAY_TRY(dir_, fs_.OpenDir(repository_.common_dir));
    looker_.emplace(fs_, dir_);
    if (repository_.git_dir != repository_.common_dir)
      own_ = repository_.git_dir.bytes().substr(repository_.common_dir.bytes().size() +
                                                1) +
             "/";
    auto git = GitRunner::Find(fs_, repository_, input_.places.ask);
    if (!git.ok()) return Keep(git.error().what);
    git_.emplace(std::move(*git));
    BELAY_OK(LeaveOthersAlone());
    BELAY_TRY(std::string missing, LookForMissing());
    if (!missing.empty()) return Keep(missing);
    BELAY_TRY(bool goes, ChooseAction());
    if (!goes) return false;
    BELAY_OK(Build());
    return true;
  }

  GitPlan plan;
  std::vector<std::string> warnings;
  std::vector<Conflict> conflicts;
  GitRepoRecord after;

 private:
  Result<GitLook> LookNow() {
    return LookAtGit(
        fs_, repository_, [](const FileStat&, int64_t) { return false; }, 0);
  }
  static Error Moving() {
    return Error(Errc::kBusy, "git is at work here: it changed while it was looked at")
        .WithHint("nothing was changed; try again when it is done");
  }
  // The record was made some moments ago: what is planned by must still be so, or a
  // commit made meanwhile would be held by nothing.
  Status CheckStillSo() {
    if (BELAY_MUTANT("git-plans-by-the-past")) return Ok();
    const std::string refs = RefsText(is_refs_);
    if (is_refs_.empty() != is_.refs.is_zero() ||
        (!is_refs_.empty() && Sha256::Of(AsBytes(refs)) != is_.refs))
      return Moving();
    if (is_.index.has_value() != look_.index.has_value()) return Moving();
    if (look_.index) {
      BELAY_TRY(Bytes bytes,
                ReadGitFile(fs_, repository_.git_dir, "index", size_t{1} << 30));
      BELAY_TRY(IndexEntries entries, ReadIndexEntries(bytes, repository_.hash));
      if (entries.digest != is_.index_digest) return Moving();
    }
    for (const GitKept& kept : is_.own) {
      auto bytes = ReadGitFile(fs_, repository_.git_dir, kept.name, kMaxLog);
      if (!bytes.ok() || Sha256::Of(*bytes) != kept.id) return Moving();
    }
    return Ok();
  }
  // And all that was looked at since is of one moment.
  Status CheckStoodStill() {
    BELAY_TRY(GitLook now, LookNow());
    return now.print == look_.print ? Ok() : Moving();
  }

  Result<GitRefs> LoadRefs(const GitRepoRecord& record) {
    // Those of now may not be in the store yet.
    if (&record == &is_) {
      BELAY_TRY(look_, LookNow());
      return ReadGitRefs(fs_, repository_, look_);
    }
    return LoadGitRefs(input_.store, record);
  }

  static std::string ValueOf(const GitRefs& refs, std::string_view name) {
    auto found = refs.find(name);
    return found == refs.end() ? "" : found->second;
  }

  bool OwnDiffers(const GitRepoRecord& a, const GitRepoRecord& b) const {
    auto names = [](const GitRepoRecord& r) {
      std::vector<GitKept> out;
      for (const GitKept& kept : r.own)
        if (!kept.name.starts_with("sharedindex.")) out.push_back(kept);
      return out;
    };
    return names(a) != names(b);
  }
  bool StashDiffers(const GitRepoRecord& a, const GitRefs& refs_a,
                    const GitRepoRecord& b, const GitRefs& refs_b) const {
    auto id = [](const GitRepoRecord& r) {
      return r.stash_log ? r.stash_log->id : ObjectId();
    };
    return ValueOf(refs_a, kStash) != ValueOf(refs_b, kStash) || id(a) != id(b);
  }
  // Refs that this plan would set, other than the branch of HEAD.
  std::vector<std::string> OtherRefs() const {
    std::vector<std::string> out;
    if (expected_ != nullptr) {
      std::set<std::string> names;
      for (const auto& [name, value] : expected_refs_) names.insert(name);
      for (const auto& [name, value] : want_refs_) names.insert(name);
      for (const std::string& name : names)
        if (name != kStash && name != want_.head_ref &&
            ValueOf(expected_refs_, name) != ValueOf(want_refs_, name) &&
            ValueOf(is_refs_, name) != ValueOf(want_refs_, name))
          out.push_back(name);
      return out;
    }
    for (const auto& [name, value] : want_refs_)
      if (name != kStash && name != want_.head_ref &&
          ValueOf(is_refs_, name) != value && !stays_.contains(name))
        out.push_back(name);
    return out;
  }

  bool Differs() const {
    return is_.head_ref != want_.head_ref || is_.head != want_.head ||
           is_.index.has_value() != want_.index.has_value() ||
           is_.index_digest != want_.index_digest || OwnDiffers(is_, want_) ||
           StashDiffers(is_, is_refs_, want_, want_refs_) || !OtherRefs().empty();
  }

  Result<bool> Keep(const std::string& why) {
    plan.action = GitAction::kKeep;
    if (!why.empty()) warnings.push_back("git" + Where() + " is left as it is: " + why);
    return false;
  }
  std::string Where() const {
    return is_.path.empty() ? "" : " in " + EscapeForDisplay(is_.path);
  }

  bool FindConflicts() {
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
      conflict(kStash);
    return !conflicts.empty();
  }

  // The branch that work goes on: while a rebase is under way, the one it began on.
  Result<std::string> WorkBranch(const GitRepoRecord& record) {
    if (!record.head_ref.empty()) return record.head_ref;
    for (const GitKept& kept : record.own) {
      if (kept.name != "rebase-merge/head-name" &&
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
      // Of a rebase without a branch: "detached HEAD".
      return text.starts_with("refs/") ? text : std::string();
    }
    return std::string();
  }

  // HEAD on another branch than then.
  Status CheckBranch() {
    BELAY_TRY(std::string is, WorkBranch(is_));
    BELAY_TRY(std::string want, WorkBranch(want_));
    if (is == want) return Ok();
    if (expected_ != nullptr) return Ok();  // the operation switched, and goes back
    auto name = [](const std::string& ref) {
      return ref.empty() ? std::string("no branch") : "branch " + BranchName(ref);
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
  Result<std::string> CheckedOutElsewhere(const std::string& ref) {
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

  // Branches that moved and are somebody else's by now: checked out in another work
  // tree, or published.
  Status LeaveOthersAlone() {
    if (expected_ != nullptr) return Ok();
    for (const std::string& name : OtherRefs()) {
      const std::string now = ValueOf(is_refs_, name), then = ValueOf(want_refs_, name);
      if (now.empty() || !IsGitHex(now, repository_.hash)) continue;
      BELAY_TRY(std::string elsewhere, CheckedOutElsewhere(name));
      if (!elsewhere.empty()) {
        warnings.push_back(BranchName(name) +
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
        warnings.push_back(BranchName(name) +
                           " moved since and stays: what was added is on a remote");
        stays_.insert(name);
      }
    }
    return Ok();
  }

  Result<std::string> StashLogOf(const GitRepoRecord& record) {
    if (!record.stash_log) return std::string();
    Bytes bytes;
    if (&record == &is_) {
      BELAY_TRY(bytes, ReadGitFile(fs_, repository_.common_dir, kStashLog, kMaxLog));
    } else {
      BELAY_TRY(bytes, input_.store.ReadContentBytes(record.stash_log->id, kMaxLog));
    }
    return std::string(AsText(bytes));
  }
  // The commits that a stash's list names, newest last.
  std::vector<std::string> Stashed(const std::string& log, const GitRefs& refs) const {
    const size_t length = 2 * GitHashSize(repository_.hash);
    std::vector<std::string> out;
    for (const std::string& line : Lines(log)) {
      if (line.size() < 2 * length + 1) continue;
      std::string commit = line.substr(length + 1, length);
      if (IsGitHex(commit, repository_.hash)) out.push_back(std::move(commit));
    }
    const std::string top = ValueOf(refs, kStash);
    if (!top.empty() && std::ranges::find(out, top) == out.end()) out.push_back(top);
    return out;
  }

  // The list of a stash, but for the entries that git has no more.
  std::string WithoutMissing(const std::string& log) const {
    const size_t length = 2 * GitHashSize(repository_.hash);
    std::string text;
    for (const std::string& line : Lines(log))
      if (line.size() > 2 * length &&
          !missing_.contains(line.substr(length + 1, length)))
        text += line + "\n";
    return text;
  }

  // Asks git once what of all that is needed is still there. Says why nothing can be
  // done, or nothing.
  Result<std::string> LookForMissing() {
    BELAY_TRY(want_stash_, StashLogOf(want_));
    BELAY_TRY(is_stash_, StashLogOf(is_));
    BELAY_TRY(Tree objects, LoadGitObjects(input_.store, want_));
    std::vector<std::string> asked;
    if (!want_.head.empty()) asked.push_back(want_.head);
    for (const std::string& name : OtherRefs())
      if (const std::string value = ValueOf(want_refs_, name);
          IsGitHex(value, repository_.hash))
        asked.push_back(value);
    if (StashDiffers(is_, is_refs_, want_, want_refs_))
      for (const std::string& commit : Stashed(want_stash_, want_refs_))
        asked.push_back(commit);
    if (is_.index_digest != want_.index_digest)
      for (const TreeEntry& entry : objects.entries) asked.push_back(entry.name);
    if (asked.empty()) return std::string();
    std::string input;
    for (const std::string& hex : asked) input += hex + "\n";
    BELAY_TRY(std::string output, git_->Run({"cat-file", "--batch-check"}, input));
    for (const std::string& line : Lines(output))
      if (line.ends_with(" missing")) missing_.insert(line.substr(0, line.find(' ')));
    if (missing_.contains(want_.head) && !BELAY_MUTANT("git-lost-commit-is-trusted"))
      return "the commit " + want_.head.substr(0, 7) +
             " that it was at is not in the repository any more";
    for (const TreeEntry& entry : objects.entries) {
      if (!missing_.contains(entry.name)) continue;
      BELAY_TRY(auto blob, input_.store.Find({ObjectType::kBlob, entry.id}));
      BELAY_TRY(auto chunks, input_.store.Find({ObjectType::kChunks, entry.id}));
      if (!blob && !chunks)
        return std::string("what was staged was purged from the store");
      plan.move.objects.push_back({entry.name, entry.id});
    }
    return std::string();
  }

  // Which commits go, and whether they may.
  Result<bool> ChooseAction() {
    plan.action =
        choice_.action == GitAction::kAuto ? GitAction::kReset : choice_.action;
    const std::string branch_now =
        want_.head_ref.empty() ? is_.head : ValueOf(is_refs_, want_.head_ref);
    leaves_ = branch_now;
    if (leaves_.empty() || leaves_ == want_.head) return true;
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
    for (const std::string& line : Lines(output)) {
      const size_t space = std::min(line.find(' '), line.size());
      plan.commits.push_back(line.substr(0, space) + " \"" +
                             (space < line.size() ? line.substr(space + 1) : "") +
                             "\"");
    }
    if (choice_.action == GitAction::kAuto && expected_ == nullptr) {
      BELAY_TRY(size_t only_here, count({"--remotes"}));
      if (only_here < plan.commit_count && !BELAY_MUTANT("git-takes-back-published"))
        return Keep(Count(plan.commit_count - only_here, "commit") + " made since " +
                    (plan.commit_count - only_here == 1 ? "is" : "are") +
                    " on a remote already; take them back all the same with: --git "
                    "reset, or by commits on top with: --git revert");
      if (input_.made_outside) {
        BELAY_TRY(bool outside, input_.made_outside(is_));
        if (outside && !BELAY_MUTANT("git-takes-back-of-others"))
          return Keep(
              "commits since were made outside of the session; take them back "
              "all the same with: --git reset");
      }
    }
    return true;
  }

  // --- the changes -------------------------------------------------------------------

  using Maybe = std::optional<PathState>;

  Result<Maybe> LookAt(const std::string& path) {
    BELAY_TRY(auto looked, looker_->Look(path, input_.sink));
    if (!looked) return Maybe();
    if (looked->special)
      return Error(Errc::kConflict, EscapeForDisplay(path) +
                                        " in the git directory is " +
                                        std::string(FileTypeName(looked->stat.type)));
    return Maybe(StateOf(looked->state));
  }

  // Directories that a new file needs.
  Status MakeParents(const std::string& path) {
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string dir = path.substr(0, slash);
      if (changes_.contains(dir)) {
        if (!changes_[dir].after) changes_[dir].after = changes_[dir].before;
        continue;
      }
      BELAY_TRY(Maybe there, LookAt(dir));
      if (there && there->kind == EntryKind::kDirectory) continue;
      if (there)
        return Error(Errc::kConflict, EscapeForDisplay(dir) + " is in the way");
      changes_[dir] = {dir, std::nullopt, RootState(dir_mode_, uid_, gid_)};
    }
    return Ok();
  }

  Status SetState(const std::string& path, Maybe to) {
    BELAY_TRY(Maybe from, LookAt(path));
    if (from && to && from->kind == EntryKind::kFile && to->kind == EntryKind::kFile) {
      to->uid = from->uid;
      to->gid = from->gid;
      to->xattrs = from->xattrs;
    }
    if (SameState(from, to)) return Ok();
    if (to) BELAY_OK(MakeParents(path));
    changes_[path] = {path, std::move(from), std::move(to)};
    return Ok();
  }
  PathState FileState(const ObjectId& id, uint64_t size, uint32_t mode) const {
    PathState state;
    state.kind = EntryKind::kFile;
    state.mode = mode;
    state.uid = uid_;
    state.gid = gid_;
    state.size = size;
    state.id = id;
    return state;
  }
  Status SetKept(const std::string& path, const GitKept& kept) {
    return SetState(path, FileState(kept.id, kept.size, kept.mode));
  }
  Status SetText(const std::string& path, std::string_view text) {
    BELAY_TRY(Maybe there, LookAt(path));
    BELAY_TRY(ObjectId id, input_.sink.PutContent(AsBytes(text)));
    return SetState(
        path,
        FileState(id, text.size(),
                  there && there->kind == EntryKind::kFile ? there->mode : file_mode_));
  }

  void Lock(const std::string& path) { plan.move.locks.push_back(path + ".lock"); }

  // kConflict: a ref that is there now stands where this one's directory would be, or
  // the other way round.
  Status SetRef(const std::string& name, const std::string& value) {
    if (value.empty()) {
      BELAY_TRY(Maybe there, LookAt(name));
      if (there && there->kind == EntryKind::kFile) {
        BELAY_OK(SetState(name, std::nullopt));
        Lock(name);
      }
      unpack_.insert(name);
      return Ok();
    }
    BELAY_TRY(Maybe there, LookAt(name));
    if (there && there->kind == EntryKind::kDirectory) {
      BELAY_TRY(RelPath path, RelPath::Parse(name));
      BELAY_TRY(Fd dir, fs_.OpenBeneath(dir_, path, OpenMode::Directory()));
      BELAY_TRY(auto inside, fs_.List(dir));
      if (!inside.empty())
        return Error(Errc::kConflict, EscapeForDisplay(name) + " is in the way");
    }
    BELAY_OK(SetText(name, value + "\n"));
    if (!name.starts_with(kSafety)) Lock(name);
    return Ok();
  }

  // What git would have noted down.
  struct LogLine {
    std::string from, to, message;
  };
  Status AppendLog(const std::string& path, const std::vector<LogLine>& lines) {
    const std::string none(2 * GitHashSize(repository_.hash), '0');
    BELAY_TRY(Maybe there, LookAt(path));
    if (there && there->kind != EntryKind::kFile) return Ok();
    std::string text;
    if (there) {
      BELAY_TRY(Bytes bytes, ReadGitFile(fs_, repository_.common_dir, path, kMaxLog));
      text = AsText(bytes);
    } else {
      auto logs = config_->Bool("core.logallrefupdates");
      if (logs && !*logs) return Ok();
    }
    if (!text.empty() && text.back() != '\n') text += '\n';
    for (const LogLine& line : lines)
      text += (line.from.empty() ? none : line.from) + " " +
              (line.to.empty() ? none : line.to) + " " + Identity() + "\t" +
              line.message + "\n";
    return SetText(path, text);
  }

  // "Name <mail> seconds +0000": the user's, or ours where git knows none.
  std::string Identity() const {
    auto clean = [](std::string text) {
      std::erase_if(text, [](char c) { return c == '<' || c == '>' || c == '\n'; });
      return text;
    };
    return clean(config_->Text("user.name").value_or("Belay")) + " <" +
           clean(config_->Text("user.email").value_or("belay@localhost")) + "> " +
           std::to_string(input_.store.clock().WallMillis() / 1000) + " +0000";
  }

  Status Build() {
    BELAY_TRY(FileStat stat, fs_.Stat(dir_));
    uid_ = stat.uid;
    gid_ = stat.gid;
    dir_mode_ = stat.mode & 07777;
    file_mode_ = stat.mode & 0666;
    plan.move.ino = stat.ino;
    plan.move.dir = repository_.common_dir.bytes();
    plan.move.hash = repository_.hash;
    config_ = GitConfig::Read(fs_, input_.places.user,
                              {repository_.git_dir, repository_.common_dir});
    after = want_;
    GitRefs after_refs = is_refs_;

    std::string tip = want_.head;
    if (plan.action == GitAction::kRevert) {
      BELAY_TRY(tip, MakeReverts());
      plan.to = after.head = tip;
    }
    Lock(own_ + "HEAD");
    Lock(own_ + "index");
    // 1. Refs.
    if (!want_.head_ref.empty() && ValueOf(is_refs_, want_.head_ref) != tip) {
      BELAY_OK(SetRef(want_.head_ref, tip));
      const std::string log = "logs/" + want_.head_ref;
      if (tip.empty())
        BELAY_OK(SetState(log, std::nullopt));
      else
        BELAY_OK(AppendLog(
            log, {{ValueOf(is_refs_, want_.head_ref), tip, "belay: " + input_.what}}));
      if (tip.empty())
        after_refs.erase(want_.head_ref);
      else
        after_refs[want_.head_ref] = tip;
    }
    std::vector<std::pair<std::string, std::string>> left;  // what other refs leave
    for (const std::string& name : OtherRefs()) {
      const std::string value = ValueOf(want_refs_, name);
      if (missing_.contains(value)) {
        warnings.push_back(BranchName(name) + " does not come back: its commit " +
                           value.substr(0, 7) + " is not in the repository any more");
        continue;
      }
      Status set = SetRef(name, value);
      if (!set.ok()) {
        if (set.error().code != Errc::kConflict) return set;
        warnings.push_back(BranchName(name) +
                           " does not come back: " + set.error().what);
        continue;
      }
      const std::string now = ValueOf(is_refs_, name);
      if (value.empty())
        after_refs.erase(name);
      else
        after_refs[name] = value;
      if (!now.empty()) left.emplace_back(now, value);
      const std::string log = "logs/" + name;
      BELAY_TRY(Maybe logged, LookAt(log));
      if (logged && value.empty()) {
        BELAY_OK(SetState(log, std::nullopt));
      } else if (logged || name.starts_with("refs/heads/")) {
        BELAY_OK(AppendLog(log, {{now, value, "belay: " + input_.what}}));
      }
      plan.notes.push_back(BranchName(name) +
                           (value.empty() ? " goes"
                            : now.empty() ? " comes back at " + value.substr(0, 7)
                                          : " goes back to " + value.substr(0, 7)));
    }
    // Where HEAD leaves a branch, or none, git itself asks its log which it was.
    auto name = [](const GitRepoRecord& record, const std::string& commit) {
      constexpr std::string_view kBranch = "refs/heads/";
      return record.head_ref.starts_with(kBranch)
                 ? record.head_ref.substr(kBranch.size())
                 : commit;
    };
    const bool leaves = is_.head_ref != want_.head_ref;
    const size_t length = 2 * GitHashSize(repository_.hash);
    std::string from = is_.head;
    std::vector<LogLine> lines;
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
    if (!lines.empty()) BELAY_OK(AppendLog(own_ + "logs/HEAD", lines));
    // 2. The stash, with its list.
    std::set<std::string> lost;  // entries that leave it
    if (StashDiffers(is_, is_refs_, want_, want_refs_)) {
      const auto then = Stashed(want_stash_, want_refs_);
      const auto gone = std::ranges::count_if(
          then, [&](const std::string& commit) { return missing_.contains(commit); });
      if (gone > 0)
        warnings.push_back(Count(static_cast<size_t>(gone), "entry") +
                           " of the stash cannot be brought back: the commit is not in "
                           "the repository any more");
      const std::string value = ValueOf(want_refs_, kStash);
      if (missing_.contains(value)) {
        warnings.back() += "; the stash stays as it is";
        after.stash_log = is_.stash_log;
      } else {
        BELAY_OK(SetRef(std::string(kStash), value));
        Lock(std::string(kStash));
        if (gone > 0)
          BELAY_OK(SetText(std::string(kStashLog), WithoutMissing(want_stash_)));
        else if (want_.stash_log)
          BELAY_OK(SetKept(std::string(kStashLog), *want_.stash_log));
        else
          BELAY_OK(SetState(std::string(kStashLog), std::nullopt));
        if (value.empty())
          after_refs.erase(std::string(kStash));
        else
          after_refs[std::string(kStash)] = value;
        for (const std::string& commit : Stashed(is_stash_, is_refs_))
          lost.insert(commit);
        for (const std::string& commit : then) lost.erase(commit);
        plan.notes.push_back("the stash is as it was then");
      }
    }
    // 3. What nothing else would name any more.
    BELAY_OK(KeepReachable(tip, lost, left));
    // 4. HEAD and what is under way.
    BELAY_OK(SetOwn());
    // 5. The index.
    if (!want_.index) {
      BELAY_OK(SetState(own_ + "index", std::nullopt));
    } else if (!is_.index || is_.index_digest != want_.index_digest) {
      BELAY_OK(SetKept(own_ + "index", *want_.index));
    } else {
      after.index = is_.index;
      after.index_mtime_ns = is_.index_mtime_ns;
    }
    if (auto index = changes_.find(own_ + "index"); index != changes_.end()) {
      plan.move.index = own_ + "index";
      plan.move.index_after_ns = want_.index_mtime_ns;
      BELAY_TRY(auto now, looker_->Stat(own_ + "index"));
      plan.move.index_before_ns = now ? now->mtime_ns : 0;
      if (plan.from == plan.to)
        plan.notes.push_back("what is staged is as it was then");
    }
    BELAY_OK(DropOldSafety());
    BELAY_OK(Unpack());
    const std::string text = RefsText(after_refs);
    after.refs = {};
    if (!after_refs.empty()) {
      BELAY_TRY(after.refs, input_.sink.PutContent(AsBytes(text)));
    }
    for (auto& [path, change] : changes_)
      if (!SameState(change.before, change.after))
        plan.move.changes.push_back(std::move(change));
    std::ranges::sort(plan.move.locks);
    plan.move.locks.erase(std::unique(plan.move.locks.begin(), plan.move.locks.end()),
                          plan.move.locks.end());
    if (plan.move.changes.empty()) plan.none = true;
    return BELAY_MUTANT("git-plans-by-the-past") ? Ok() : CheckStoodStill();
  }

  Status SetOwn() {
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
        BELAY_OK(SetKept(own_ + name, *want));
      else if (!name.starts_with("sharedindex."))
        BELAY_OK(SetState(own_ + name, std::nullopt));
    }
    // Directories that git takes for a sign of something under way.
    for (const std::string& dir : dirs) {
      if (!dir.starts_with("rebase-") && !dir.starts_with("sequencer")) continue;
      const bool wanted = std::ranges::any_of(want_.own, [&](const GitKept& kept) {
        return kept.name.starts_with(dir + "/");
      });
      if (wanted) continue;
      BELAY_TRY(Maybe there, LookAt(own_ + dir));
      if (there && there->kind == EntryKind::kDirectory)
        changes_[own_ + dir] = {own_ + dir, there, std::nullopt};
    }
    return Ok();
  }

  // Refs that hold what the branch and the stash leave.
  Status KeepReachable(const std::string& tip, const std::set<std::string>& lost,
                       const std::vector<std::pair<std::string, std::string>>& left) {
    const std::string base = std::string(kSafety) + input_.operation.text();
    auto hold = [&](const std::string& name, const std::string& commit) -> Status {
      if (BELAY_MUTANT("git-no-safety-ref")) return Ok();
      BELAY_OK(SetRef(base + "/" + name, commit));
      if (plan.safety_ref.empty()) plan.safety_ref = base + "/" + name;
      return Ok();
    };
    auto leaves = [&](const std::string& commit,
                      const std::string& to) -> Result<bool> {
      if (commit.empty() || commit == to) return false;
      if (to.empty()) return true;
      auto count =
          git_->Try({"rev-list", "--count", "--max-count=1", commit, "--not", to});
      // A tag may name what is no commit.
      if (!count.ok()) return std::move(count).error();
      return !count->ok() || !count->output.starts_with('0');
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
    for (const auto& [was, to] : left) {
      if (!IsGitHex(was, repository_.hash)) continue;
      BELAY_TRY(bool other, leaves(was, to));
      if (other) BELAY_OK(hold("ref-" + std::to_string(others++), was));
    }
    size_t number = 0;
    for (const std::string& commit : lost)
      BELAY_OK(hold("stash-" + std::to_string(number++), commit));
    return Ok();
  }

  // Those of operations that nobody can undo any more.
  Status DropOldSafety() {
    if (!input_.keeps_safety) return Ok();
    BELAY_TRY(std::string output,
              git_->Run({"for-each-ref", "--format=%(refname)", std::string(kSafety)}));
    for (const std::string& name : Lines(output)) {
      if (!name.starts_with(kSafety) || !IsGitRefName(name)) continue;
      const std::string_view rest = std::string_view(name).substr(kSafety.size());
      const std::string_view operation = rest.substr(0, rest.find('/'));
      if (input_.keeps_safety(operation)) continue;
      BELAY_OK(SetRef(name, ""));
    }
    return Ok();
  }

  // Takes refs out of packed-refs that are to go.
  Status Unpack() {
    if (unpack_.empty()) return Ok();
    BELAY_TRY(Maybe there, LookAt("packed-refs"));
    if (!there || there->kind != EntryKind::kFile) return Ok();
    BELAY_TRY(Bytes bytes,
              ReadGitFile(fs_, repository_.common_dir, "packed-refs", kMaxLog));
    std::string text;
    bool skipped = false, any = false;
    for (const std::string& line : Lines(AsText(bytes))) {
      if (skipped && line.starts_with('^')) continue;
      const size_t space = line.find(' ');
      skipped = !line.starts_with('#') && space != std::string::npos &&
                unpack_.contains(line.substr(space + 1));
      any = any || skipped;
      if (!skipped) text += line + "\n";
    }
    if (!any) return Ok();
    Lock("packed-refs");
    return SetText("packed-refs", text);
  }

  // Commits that undo those that would be taken back, one each where history is a line,
  // else one for all. The tip.
  Result<std::string> MakeReverts() {
    if (plan.commit_count == 0) return want_.head;
    if (want_.head.empty())
      return Error(Errc::kRefused,
                   "there was no commit then that could be gone back to")
          .WithHint("take the commits back with: --git reset");
    if (input_.dry) return std::string(leaves_);
    BELAY_TRY(std::string output,
              git_->Run({"log", "--no-show-signature", "--format=%H %P%x09%s", leaves_,
                         "--not", want_.head}));
    struct Commit {
      std::string id, parents, subject;
    };
    std::vector<Commit> commits;
    for (const std::string& line : Lines(output)) {
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
                    "_NAME=" + config_->Text("user.name").value_or("Belay"));
      who.push_back(std::string("GIT_") + role + "_EMAIL=" +
                    config_->Text("user.email").value_or("belay@localhost"));
      who.push_back(std::string("GIT_") + role + "_DATE=" + when + " +0000");
    }
    auto commit = [&](const std::string& tree, const std::string& parent,
                      const std::string& message) -> Result<std::string> {
      BELAY_TRY(
          std::string id,
          git_->Run({"commit-tree", tree + "^{tree}", "-p", parent}, message, who));
      while (!id.empty() && id.back() == '\n') id.pop_back();
      if (!IsGitHex(id, repository_.hash))
        return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
      return id;
    };
    if (!line)
      return commit(want_.head, leaves_,
                    "Go back to " + want_.head.substr(0, 7) + "\n\nThis undoes " +
                        Count(plan.commit_count, "commit") + ".\n");
    std::string tip = leaves_;
    for (const Commit& one : commits) {
      BELAY_TRY(tip, commit(one.parents, tip,
                            "Revert \"" + one.subject + "\"\n\nThis reverts commit " +
                                one.id + ".\n"));
    }
    return tip;
  }

  const GitPlanInput& input_;
  const GitChoice& choice_;
  const GitRepository& repository_;
  const GitRepoRecord& is_;
  const GitRepoRecord& want_;
  const GitRepoRecord* expected_;
  Fs& fs_;
  GitLook look_;
  GitRefs is_refs_, want_refs_, expected_refs_;
  std::string is_stash_, want_stash_;
  Fd dir_;
  std::optional<Looker> looker_;
  std::optional<GitRunner> git_;
  std::optional<GitConfig> config_;
  std::string own_;  // "worktrees/x/", or nothing
  std::set<std::string> missing_, stays_;
  std::string leaves_;  // the tip that the branch leaves
  std::map<std::string, PathChange> changes_;
  std::set<std::string> unpack_;
  uint32_t uid_ = 0, gid_ = 0, dir_mode_ = 0755, file_mode_ = 0644;
};

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
  if (!want.head_ref.empty()) text += " on " + BranchName(want.head_ref);
  return text + " does not come back; the files do";
}

}  // namespace

bool GitPlans::moves() const {
  return std::ranges::any_of(
      plans, [](const GitPlan& plan) { return !plan.move.changes.empty(); });
}

Result<GitPlans> PlanGit(const GitPlanInput& input, const GitChoice& choice) {
  GitPlans out;
  for (const GitRepoRecord& want : input.target.repositories) {
    const GitRepoRecord* is = input.is.Find(want.path);
    const GitRepository* repository = RepositoryAt(input.now, want.path);
    GitChoice mine = choice;
    if (!want.path.empty() && !choice.nested && input.expected == nullptr)
      mine.action = GitAction::kKeep;
    if (is == nullptr || repository == nullptr) {
      if (choice.action != GitAction::kKeep && want.path.empty() && !want.above)
        out.warnings.push_back(LostText(want));
      continue;
    }
    const GitRepoRecord* expected =
        input.expected == nullptr ? nullptr : input.expected->Find(want.path);
    Planner planner(input, mine, *repository, *is, want, expected);
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
    if (plan.from != plan.to || plan.commit_count > 0)
      out.push_back("git" + where + ": " + name +
                    (plan.action == GitAction::kRevert
                         ? " gets commits on top that undo what came after "
                         : " goes back from " + commit(plan.from) + " to ") +
                    (plan.action == GitAction::kRevert ? "it" : commit(plan.to)));
    for (const std::string& line : plan.commits)
      out.push_back(
          (plan.action == GitAction::kRevert ? "  undoes " : "  takes back ") +
          EscapeForDisplay(line));
    if (plan.commit_count > plan.commits.size())
      out.push_back("  and " + std::to_string(plan.commit_count - plan.commits.size()) +
                    " more");
    if (!plan.safety_ref.empty()) out.push_back("  kept under " + plan.safety_ref);
    for (const std::string& note : plan.notes)
      out.push_back("git" + where + ": " + note);
  }
  return out;
}

}  // namespace belay
