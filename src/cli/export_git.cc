#include "cli/export_git.h"

#include <map>

#include "base/escape.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/rollback_view.h"
#include "cli/text.h"
#include "commits/export_commit.h"

namespace belay {

namespace {

// Where the commit goes.
struct Place {
  std::optional<GitRepository> repository;  // none yet: to be made at `dir`
  AbsPath dir;
  std::string prefix;
};

Result<Place> FindPlace(CommandContext& ctx, const OpenedRoot& root) {
  const GitPlaces places = GitPlacesOf(ctx.env);
  Place place{.repository = {}, .dir = root.path, .prefix = {}};
  std::optional<GitRepository> own;
  if (ctx.fs.OpenDir(root.path).ok()) {
    BELAY_TRY(own, FindWorkTree(ctx.fs, root.path, places.user));
  }
  if (own && own->work_tree != root.path && root.path.IsWithin(own->work_tree)) {
    const size_t cut = own->work_tree.is_root() ? 1 : own->work_tree.bytes().size() + 1;
    place.prefix = root.path.bytes().substr(cut);
  }
  if (auto given = ctx.args.value("--output")) {
    BELAY_TRY(AbsPath dir, ctx.env.Resolve(*given));
    if (auto real = ctx.fs.RealPath(dir); real.ok()) dir = std::move(*real);
    place.dir = std::move(dir);
  } else if (own) {
    place.dir = own->work_tree;
    place.repository = std::move(own);
    return place;
  } else if (root.path.is_root()) {
    return Error(Errc::kRefused, "/ is in no git repository, and none can be beside it")
        .WithHint("-o DIR names the repository to put it into");
  } else {
    // Beside the directory: nothing is written into it.
    BELAY_TRY(place.dir, AbsPath::Parse(root.path.bytes() + ".git"));
  }
  BELAY_TRY(place.repository, OpenRepositoryFor(ctx.fs, place.dir, places));
  return place;
}

void Tell(CommandContext& ctx, const Place& place, bool made,
          const ExportedCommit& done, const std::vector<SkippedPath>& skipped,
          bool was_in_git) {
  if (made)
    ctx.term.Out(
        StrCat("made the bare repository ", EscapeForDisplay(place.dir.bytes()), "\n"));
  constexpr std::string_view kBranches = "refs/heads/";
  const std::string_view ref = done.ref;
  ctx.term.Out(StrCat(
      ref.starts_with(kBranches) ? StrCat("branch ", ref.substr(kBranches.size()))
                                 : ref,
      ": commit ", done.commit.substr(0, 10), ", ", CountText(done.tree.files, "file"),
      ", ", SizeText(done.tree.bytes), "\n"));
  if (!done.lost_parent.empty())
    ctx.term.Note(StrCat("it has no parent: ", done.lost_parent.substr(0, 10),
                         ", where HEAD was, is not in this repository"));
  else if (done.parent.empty())
    ctx.term.Note(was_in_git ? "it has no parent: HEAD was at no commit then"
                             : "it has no parent: the checkpoint knows of no git "
                               "repository");
  std::map<std::string, std::vector<std::string>> by_why;
  for (const NotInCommit& one : done.tree.left_out) by_why[one.why].push_back(one.path);
  for (const auto& [why, text] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"secret", "secrets are not in it: "},
           {"purged", "not in it, because it was purged: "},
           {"empty_directory", "git holds no empty directories: "},
           {"refused_by_git", "not in it, because git refuses such a symlink: "}})
    if (auto found = by_why.find(why); found != by_why.end())
      ctx.term.Note(StrCat(text, FirstPaths(found->second)));
  std::vector<std::string> not_held;
  for (const SkippedPath& path : skipped)
    if (!IsHeld(path.why))
      not_held.push_back(StrCat(path.path, " (", SkipName(path.why), ")"));
  if (!not_held.empty())
    ctx.term.Note(
        StrCat("the checkpoint itself does not hold: ", FirstPaths(not_held)));
  if (!done.tree.nested.empty())
    ctx.term.Note(
        StrCat("repositories of their own, whose files are ordinary files in "
               "the commit: ",
               FirstPaths(done.tree.nested)));
  if (!place.prefix.empty())
    ctx.term.Note(StrCat("it is about ", EscapeForDisplay(place.prefix),
                         "/ alone; the rest is as in the parent"));
}

void WriteJson(const Place& place, bool made, const Checkpoint& c,
               const ExportedCommit& done, JsonWriter& json) {
  auto text = [&](std::string_view key, const std::string& value) {
    json.Key(key);
    if (value.empty())
      json.Null();
    else
      json.PathValue(value);
  };
  json.BeginObject();
  json.Key("checkpoint").String(c.id.text());
  json.Key("repository").PathValue(place.dir.bytes());
  json.Key("repository_made").Bool(made);
  json.Key("ref").PathValue(done.ref);
  json.Key("commit").String(done.commit);
  text("parent", done.parent);
  text("lost_parent", done.lost_parent);
  json.Key("files").Uint(done.tree.files);
  json.Key("bytes").Uint(done.tree.bytes);
  json.Key("left_out").BeginArray();
  for (const NotInCommit& one : done.tree.left_out) {
    json.BeginObject();
    json.Key("path").PathValue(one.path);
    json.Key("why").String(one.why);
    json.EndObject();
  }
  json.EndArray();
  json.Key("nested").BeginArray();
  for (const std::string& path : done.tree.nested) json.PathValue(path);
  json.EndArray().EndObject();
}

}  // namespace

ExitCode ExportGit(CommandContext& ctx) {
  for (const char* flag : {"--force", "--notes", "--format"})
    if (ctx.args.has(flag))
      return ctx.term.FailUsage(StrCat(flag, " does not go with --git"),
                                "a ref that is there is never replaced");
  const auto& refs = ctx.args.positional();
  if (refs.size() != 1)
    return ctx.term.FailUsage(
        refs.empty() ? "which checkpoint? belay export --git NAME REF"
                     : "one checkpoint becomes one commit: belay export --git NAME REF",
        "see them with: belay list");
  auto ref = RefFromName(*ctx.args.value("--git"));
  if (!ref.ok()) return ctx.term.FailUsage(ref.error().what, ref.error().hint);
  if (IsNow(refs[0]))
    return ctx.term.Fail(Error(Errc::kInvalid, "`now` is no checkpoint")
                             .WithHint("make one first: belay checkpoint"));
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto found = FindCheckpoint(ctx, *root, refs[0]);
  if (!found.ok()) return ctx.term.Fail(found.error());
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  auto place = FindPlace(ctx, *root);
  if (!place.ok()) return ctx.term.Fail(place.error());

  const bool make = !place->repository;
  if (make) {
    const std::string branch =
        ref->starts_with("refs/heads/") ? ref->substr(11) : "main";
    auto made = MakeBareRepository(ctx.fs, place->dir, branch, GitPlacesOf(ctx.env));
    if (!made.ok())
      return ctx.term.Fail(
          Context(made.error(),
                  StrCat("a repository at ", EscapeForDisplay(place->dir.bytes()))));
    place->repository = std::move(*made);
  }
  ExportCommitRequest request{.entry = found->entry,
                              .ref = *ref,
                              .prefix = place->prefix,
                              .secret_patterns = settings->secret_patterns,
                              .places = GitPlacesOf(ctx.env)};
  Progress progress(ctx.term, root->opened->clock, "writing the commit");
  // Ctrl-C leaves nothing behind that has a name.
  StopOnSignal stop;
  request.progress = [&](uint64_t done, uint64_t total) -> Status {
    progress.Update(done, total);
    if (StopOnSignal::Asked()) return Error(Errc::kRefused, "stopped");
    return Ok();
  };
  auto done = ExportCommit(root->store(), *place->repository, request);
  progress.Done();
  if (!done.ok()) return FailOnStore(ctx, done.error());
  ctx.term.WorkIsDone();
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(*place, make, found->entry.checkpoint, *done, json);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  auto view = LoadState(root->store(), found->entry.checkpoint.state);
  Tell(ctx, *place, make, *done,
       view.ok() ? view->Skipped() : std::vector<SkippedPath>(),
       view.ok() && !view->state.git.is_zero());
  return ExitCode::kOk;
}

}  // namespace belay
