#include "commits/export_commit.h"

#include <algorithm>

#include "base/escape.h"
#include "core/git_record.h"

namespace belay {

namespace {

constexpr size_t kNamedInMessage = 20;
constexpr std::string_view kBranches = "refs/heads/";

Error BadName(std::string_view name, std::string_view why) {
  return Error(Errc::kInvalid, "'" + EscapeForDisplay(name) + "' " + std::string(why));
}

std::string Shown(std::string_view ref) {
  return EscapeForDisplay(ref.starts_with(kBranches) ? ref.substr(kBranches.size())
                                                     : ref);
}

GitRepository BareAt(const AbsPath& dir) {
  return {.work_tree = dir,
          .git_dir = dir,
          .common_dir = dir,
          .excludes_file = {},
          .problems = {}};
}

Error Taken(std::string_view ref) {
  return Error(Errc::kExists, (ref.starts_with(kBranches) ? "the branch " : "") +
                                  Shown(ref) + " is there already")
      .WithHint(
          ref.starts_with(kBranches)
              ? "give another name, or take the branch away first: git branch -D " +
                    Shown(ref)
              : "give another name, or take the ref away first: git update-ref -d " +
                    Shown(ref));
}

// Before any work is done; MakeRef() is what keeps it true.
Status CheckFree(GitRunner& git, const std::string& ref) {
  auto exists = [&](const std::string& name) -> Result<bool> {
    BELAY_TRY(ProcessResult result, git.Try({"show-ref", "--verify", "--quiet", name}));
    return result.ok();
  };
  BELAY_TRY(bool taken, exists(ref));
  if (taken) return Taken(ref);
  for (size_t slash = ref.find('/', 5); slash != std::string::npos;
       slash = ref.find('/', slash + 1)) {
    const std::string above = ref.substr(0, slash);
    BELAY_TRY(bool in_the_way, exists(above));
    if (in_the_way)
      return BadName(Shown(ref), "cannot be made: " + Shown(above) +
                                     " is there, and git holds only one of them")
          .WithHint("give another name");
  }
  BELAY_TRY(std::string below,
            git.Run({"for-each-ref", "--count=1", "--format=%(refname)", ref + "/"}));
  if (!below.empty())
    return BadName(Shown(ref), "cannot be made: " + Shown(GitLines(below).front()) +
                                   " is there, and git holds only one of them")
        .WithHint("give another name");
  // A branch without a commit that somebody stands on: their HEAD would move.
  BELAY_TRY(std::string trees, git.Run({"worktree", "list", "--porcelain"}));
  for (const std::string& line : GitLines(trees))
    if (line == "branch " + ref)
      return Error(Errc::kRefused,
                   Shown(ref) +
                       " is the branch that is checked out, without a "
                       "commit yet: it would look as if all was deleted")
          .WithHint("give another name");
  return Ok();
}

std::string Message(const Checkpoint& c, const CommitTreeReport& survey) {
  std::string text = CommitSubject(c) + "\n\n";
  if (c.note && !c.note->empty()) {
    std::string note = *c.note;
    std::erase(note, '\0');
    text += note + "\n\n";
  }
  size_t named = 0, secrets = 0;
  std::string list;
  for (const NotInCommit& one : survey.left_out) {
    if (one.why != "secret") continue;
    ++secrets;
    if (named == kNamedInMessage) continue;
    ++named;
    list += "  " + EscapeForDisplay(one.path) + "\n";
  }
  if (secrets > named) list += "  and " + std::to_string(secrets - named) + " more\n";
  if (secrets > 0) text += "Secrets, which are not in this commit:\n" + list + "\n";
  text += "Belay-Checkpoint: " + c.id.text() + "\n";
  return text;
}

}  // namespace

std::string CommitSubject(const Checkpoint& c) {
  const std::string title = c.name && !c.name->empty() ? *c.name : c.description;
  if (title.empty()) return "checkpoint " + c.id.text().substr(0, 7);
  return EscapeText(title);
}

AskGitOptions PatientGit(const GitPlaces& places) {
  AskGitOptions options = places.ask;
  options.timeout_ms = std::max<int64_t>(options.timeout_ms, 30 * 60 * 1000);
  return options;
}

Result<std::string> RefFromName(std::string_view name) {
  std::string ref = name.starts_with("refs/")
                        ? std::string(name)
                        : std::string(kBranches) + std::string(name);
  if (name.empty() || !IsGitRefName(ref) || name.starts_with('-') || name == "HEAD" ||
      name == "@" || ref == kBranches || ref.find('/', 5) == std::string::npos)
    return BadName(name, "is no name for a branch or ref")
        .WithHint(
            name.starts_with("refs/") && ref.find('/', 5) == std::string::npos
                ? "a ref is called refs/KIND/NAME, such as refs/tags/NAME; a branch by "
                  "its name alone"
                : "letters, digits, - and / are fine; no blanks, no .. and no ~ ^ : ? "
                  "* [");
  for (const std::string_view own : {"refs/belay/", "refs/replace/", "refs/bisect/",
                                     "refs/rewritten/", "refs/worktree/"})
    if (ref.starts_with(own))
      return BadName(name, "is no name for this: " + std::string(own) +
                               " means something to git or Belay")
          .WithHint("give the name of a branch, or refs/tags/NAME");
  return ref;
}

Result<std::optional<GitRepository>> OpenRepositoryFor(Fs& fs, const AbsPath& dir,
                                                       const GitPlaces& places) {
  auto opened = fs.OpenDir(dir);
  if (!opened.ok()) {
    if (opened.error().code == Errc::kNotFound) return std::optional<GitRepository>();
    return std::move(opened).error();
  }
  BELAY_TRY(auto work_tree, OpenRepositoryAt(fs, dir, places.user));
  if (work_tree) return work_tree;
  BELAY_TRY(bool bare, IsGitDirectory(fs, *opened));
  if (!bare) return std::optional<GitRepository>();
  GitRepository repository = BareAt(dir);
  const GitConfig config = GitConfig::ReadOne(fs, dir.Join(RelPath::Literal("config")));
  if (config.Text("extensions.objectformat") == "sha256")
    repository.hash = GitHash::kSha256;
  return std::optional(std::move(repository));
}

Result<GitRepository> MakeBareRepository(Fs& fs, const AbsPath& dir,
                                         const std::string& branch,
                                         const GitPlaces& places) {
  const std::string shown = EscapeForDisplay(dir.bytes());
  if (dir.is_root()) return Error(Errc::kInvalid, shown + " is a directory");
  GitRepository repository = BareAt(dir);
  const AskGitOptions options = PatientGit(places);
  BELAY_TRY(GitRunner git, GitRunner::Find(fs, repository, options));
  auto parent = fs.OpenDir(dir.parent());
  if (!parent.ok() && parent.error().code == Errc::kNotFound)
    return Error(Errc::kNotFound,
                 "there is no directory " + EscapeForDisplay(dir.parent().bytes()))
        .WithHint("make it first; the repository itself is made in it");
  if (!parent.ok()) return std::move(parent).error();
  BELAY_TRY(
      Name name,
      Name::Parse(std::string_view(dir.bytes()).substr(dir.bytes().rfind('/') + 1)));
  Status made = fs.MakeDir(*parent, name, 0777);
  if (!made.ok() && made.error().code != Errc::kExists) return std::move(made).error();
  const bool ours = made.ok();
  BELAY_TRY(Fd opened, fs.OpenDir(dir));
  BELAY_TRY(auto there, fs.List(opened));
  if (!there.empty())
    return Error(Errc::kRefused, shown + " is there already, and no git repository")
        .WithHint("-o DIR names a repository, or a directory to be made");
  auto run = git.Run(
      {"init", "--quiet", "--bare", "--template=", "--initial-branch=" + branch});
  if (!run.ok()) {
    if (ours) (void)fs.RemoveDir(*parent, name);
    return std::move(run).error();
  }
  return repository;
}

std::string CommitIdentity(Fs& fs, const GitRepository& repository,
                           const GitPlaces& places) {
  const GitConfig config =
      GitConfig::Read(fs, places.user, {repository.git_dir, repository.common_dir});
  auto clean = [](std::string text) {
    std::erase_if(text, [](char c) {
      return c == '<' || c == '>' || static_cast<unsigned char>(c) < 0x20;
    });
    return text;
  };
  std::string name = clean(config.Text("user.name").value_or(""));
  std::string mail = clean(config.Text("user.email").value_or(""));
  if (name.empty()) name = "Belay";
  if (mail.empty()) mail = "belay@localhost";
  return name + " <" + mail + ">";
}

Result<std::string> ParentOf(Store& store, GitRunner& git,
                             const GitRepository& repository, const State& state,
                             std::string* lost) {
  if (state.git.is_zero()) return std::string();
  auto record = LoadGitRecord(store, state.git);
  // What git was like is not known: the files are.
  if (!record.ok()) return std::string();
  const GitRepoRecord* own = record->Find("");
  if (own == nullptr || own->head.empty()) return std::string();
  if (own->hash == repository.hash) {
    BELAY_TRY(ProcessResult found, git.Try({"cat-file", "-t", own->head}));
    if (found.ok() && found.output == "commit\n") return own->head;
  }
  if (lost != nullptr) *lost = own->head;
  return std::string();
}

Result<ExportedCommit> ExportCommit(Store& store, const GitRepository& repository,
                                    const ExportCommitRequest& request) {
  const AskGitOptions options = PatientGit(request.places);
  BELAY_TRY(GitRunner git, GitRunner::Find(store.fs(), repository, options));
  BELAY_OK(CheckFree(git, request.ref));
  BELAY_TRY(HeldLock hold, store.HoldForReading());
  BELAY_OK(store.Refresh());
  const Checkpoint& c = request.entry.checkpoint;
  BELAY_TRY(StateView view, LoadState(store, c.state));
  // Which files are secrets is written there.
  if (!view.trouble.empty())
    return Error(Errc::kCorrupt, "its rules cannot be read: " + view.trouble);

  ExportedCommit out;
  out.ref = request.ref;
  CommitHead head{.identity = CommitIdentity(store.fs(), repository, request.places),
                  .seconds = std::max<int64_t>(c.made_ms / 1000, 0),
                  .message = {}};
  BELAY_TRY(head.parent,
            ParentOf(store, git, repository, view.state, &out.lost_parent));
  out.parent = head.parent;
  CommitTree tree(store, view, request.secret_patterns, request.prefix);
  BELAY_TRY(CommitTreeReport survey, tree.Survey());
  head.message = Message(c, survey);

  BELAY_TRY(auto import, FastImport::Start(git, repository.hash));
  BELAY_OK(import->Begin(head));
  if (request.prefix.empty())
    BELAY_OK(import->Clear());
  else
    BELAY_OK(import->Delete(request.prefix));
  BELAY_TRY(out.tree, tree.Send(*import, [&](uint64_t, uint64_t bytes) -> Status {
    return request.progress ? request.progress(bytes, survey.bytes) : Ok();
  }));
  BELAY_TRY(out.commit, import->Finish());
  const Status made = MakeRef(git, request.ref, out.commit, head.identity,
                              "belay export: checkpoint " + c.id.text().substr(0, 7));
  if (!made.ok() && made.error().code == Errc::kExists) return Taken(request.ref);
  BELAY_OK(made);
  return out;
}

}  // namespace belay
