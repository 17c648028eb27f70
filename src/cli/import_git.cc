#include "cli/import_git.h"

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/rollback_view.h"
#include "cli/text.h"
#include "commits/import_commit.h"

namespace belay {

namespace {

void Tell(CommandContext& ctx, const ImportedCommit& done, const std::string& prefix) {
  const Checkpoint& c = done.checkpoint;
  const std::string id = c.id.text().substr(0, 7);
  if (done.was_there) {
    ctx.term.Out(StrCat("Nothing to do: this commit is there already, as ", id, "\n"));
  } else {
    ctx.term.Out(StrCat("kept ", id, "  ", Fit(EscapeText(c.description), 60), "\n"));
    ctx.term.Say(StrCat("  ", CountText(c.files, "file"), ", ", SizeText(c.bytes), "; ",
                        SizeText(done.bytes_stored), " new to the store"));
  }
  if (!prefix.empty())
    ctx.term.Note(
        StrCat("only what is below ", EscapeForDisplay(prefix), "/ in the commit"));
  auto names = [&](auto include) {
    std::vector<std::string> all;
    for (const SkippedPath& path : done.skipped) {
      if (!include(path)) continue;
      all.push_back(path.path);
      if (path.why != Skip::kSpecial)
        all.back() += StrCat(" (", SkipName(path.why), ")");
    }
    return FirstPaths(all);
  };
  auto is_submodule = [&](const SkippedPath& path) {
    return std::ranges::find(done.submodules, path.path) != done.submodules.end();
  };
  if (const std::string text = names(is_submodule); !text.empty())
    ctx.term.Note(StrCat("submodules are not in it: ", text));
  if (const std::string text =
          names([&](const SkippedPath& path) { return !is_submodule(path); });
      !text.empty())
    ctx.term.Note(StrCat("left out: ", text));
  if (!done.was_there)
    ctx.term.Say(
        StrCat("Rolling back to it deletes nothing and leaves git as it is: "
               "belay rollback ",
               id));
}

}  // namespace

ExitCode ImportGit(CommandContext& ctx) {
  if (!ctx.args.positional().empty())
    return ctx.term.FailUsage("--git takes a revision, and no file");
  auto root = OpenRoot(ctx, NeedsRoot::kProtected);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  const GitPlaces places = GitPlacesOf(ctx.env);
  auto repository = FindWorkTree(ctx.fs, root->path, places.user);
  if (!repository.ok()) return ctx.term.Fail(repository.error());
  if (!*repository)
    return ctx.term.Fail(Error(
        Errc::kRefused,
        StrCat(EscapeForDisplay(root->path.bytes()), " is in no git repository")));
  ImportCommitRequest request;
  request.root = root->root;
  request.settings = &*settings;
  request.places = places;
  request.revision = *ctx.args.value("--git");
  const AbsPath& top = (*repository)->work_tree;
  if (top != root->path && root->path.IsWithin(top))
    request.prefix =
        root->path.bytes().substr(top.is_root() ? 1 : top.bytes().size() + 1);
  Progress progress(ctx.term, root->opened->clock, "reading the commit");
  StopOnSignal stop;
  request.progress = [&](uint64_t files, uint64_t) -> Status {
    progress.Count(files, "files");
    if (StopOnSignal::Asked()) return Error(Errc::kRefused, "stopped");
    return Ok();
  };
  auto done = ImportCommit(root->store(), **repository, request);
  progress.Done();
  if (!done.ok()) return FailOnStore(ctx, done.error());
  if (!done->was_there) ctx.term.WorkIsDone();
  if (!ctx.term.json()) {
    Tell(ctx, *done, request.prefix);
    return ExitCode::kOk;
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("root").PathValue(root->root.path);
  json.Key("commit").String(done->commit);
  json.Key("subject").PathValue(done->subject);
  json.Key("was_there").Bool(done->was_there);
  json.Key("bytes_stored").Uint(done->bytes_stored);
  json.Key("submodules").BeginArray();
  for (const std::string& path : done->submodules) json.PathValue(path);
  json.EndArray();
  json.Key("checkpoint");
  WriteCheckpoint({.checkpoint = done->checkpoint, .pinned = false, .health = {}}, 1,
                  root->root.path, {done->tree, done->skipped, nullptr}, json);
  json.EndObject();
  ctx.term.OutJson(json);
  return ExitCode::kOk;
}

}  // namespace belay
