#include <algorithm>

#include "base/escape.h"
#include "bundle/import.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/import_git.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/text.h"

namespace belay {

namespace {

// What is wrong with the file is no damage of the store.
Error AboutFile(Error error, const std::string& shown) {
  if (error.code == Errc::kCorrupt) error.code = Errc::kRefused;
  return Context(std::move(error), shown);
}

Result<std::unique_ptr<BundleSource>> OpenFile(CommandContext& ctx,
                                               std::string_view given) {
  BELAY_TRY(AbsPath path, ctx.env.Resolve(given));
  // A link to a bundle is as good as the bundle.
  auto found = ctx.fs.RealPath(path);
  if (!found.ok() && found.error().code == Errc::kNotFound)
    return Error(Errc::kNotFound, "there is no such file");
  if (!found.ok()) return std::move(found).error();
  const AbsPath& real = *found;
  if (real.is_root()) return Error(Errc::kInvalid, "it is a directory");
  BELAY_TRY(
      Name name,
      Name::Parse(std::string_view(real.bytes()).substr(real.bytes().rfind('/') + 1)));
  BELAY_TRY(Fd dir, ctx.fs.OpenDir(real.parent()));
  BELAY_TRY(Fd file, ctx.fs.Open(dir, name, OpenMode::Read()));
  return OpenBundleFile(ctx.fs, std::move(file));
}

void WriteJson(const ImportReport& report, const std::string& root,
               std::string_view file, JsonWriter& json) {
  json.BeginObject();
  json.Key("root").PathValue(root);
  json.Key("file").PathValue(file);
  json.Key("imported").Uint(report.imported);
  json.Key("bytes_stored").Uint(report.bytes_stored);
  json.Key("purged").Uint(report.purged);
  json.Key("checkpoints").BeginArray();
  for (const ImportedCheckpoint& one : report.checkpoints) {
    json.BeginObject();
    json.Key("id").String(one.checkpoint.id.text());
    json.Key("id_in_bundle").String(one.id_in_bundle.text());
    json.Key("seq").Uint(one.checkpoint.seq);
    json.Key("name");
    if (one.checkpoint.name)
      json.PathValue(*one.checkpoint.name);
    else
      json.Null();
    json.Key("was_there").Bool(one.was_there);
    json.Key("lacks_purged").Bool(one.lacks_purged);
    json.Key("was_purged").Bool(one.was_purged);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void Tell(CommandContext& ctx, const ImportReport& report) {
  const auto there = static_cast<size_t>(
      std::ranges::count_if(report.checkpoints, &ImportedCheckpoint::was_there));
  if (report.imported == 0 && there < report.checkpoints.size()) {
    ctx.term.Out("Nothing was imported\n");
    return;
  }
  if (report.imported == 0) {
    ctx.term.Out(report.checkpoints.size() == 1
                     ? "Nothing to do: this checkpoint is there already\n"
                     : StrCat("Nothing to do: all ", std::to_string(there),
                              " checkpoints are there already\n"));
    return;
  }
  ctx.term.Out(StrCat(
      CountText(report.imported, "checkpoint"), " imported, ",
      SizeText(report.bytes_stored), " new to the store",
      there == 0 ? std::string()
                 : StrCat("; ", std::to_string(there),
                          there == 1 ? " was there already" : " were there already"),
      "\n"));
  for (const ImportedCheckpoint& one : report.checkpoints) {
    if (one.was_there || one.was_purged) continue;
    const Checkpoint& c = one.checkpoint;
    ctx.term.Say(StrCat("  ", c.id.text().substr(0, 7), "  ", LocalMinute(c.made_ms),
                        "  ", EscapeText(CheckpointTitle(c)),
                        c.id == one.id_in_bundle
                            ? std::string()
                            : StrCat("  (", one.id_in_bundle.text().substr(0, 7),
                                     " in the bundle, an id that is taken here)"),
                        one.lacks_purged ? "  (without what was purged)" : ""));
  }
  ctx.term.Say("See them with: belay list");
}

// What did not come, because it was erased here.
ExitCode TellPurged(Terminal& term, const ImportReport& report) {
  if (report.purged > 0)
    term.Warn(StrCat(CountText(report.purged, "content"), " in the bundle ",
                     report.purged == 1 ? "was" : "were",
                     " purged here before and did not come back; belay show REF names "
                     "the files"));
  ExitCode code = ExitCode::kOk;
  for (const ImportedCheckpoint& one : report.checkpoints) {
    if (!one.was_purged) continue;
    code = ExitCode::kProblem;
    term.Warn(StrCat(one.id_in_bundle.text().substr(0, 7),
                     " was not imported: it was purged here, with its session"));
  }
  return code;
}

}  // namespace

ExitCode CmdImport(CommandContext& ctx) {
  if (ctx.args.has("--git")) return ImportGit(ctx);
  if (ctx.args.positional().empty())
    return ctx.term.FailUsage("which file? name a bundle that belay export wrote");
  const std::string_view file = ctx.args.positional()[0];
  if (file == "-")
    return ctx.term.FailUsage(
        "a bundle is checked before it is read: it must be a file",
        "save it first, then import that");
  auto root = OpenRoot(ctx, NeedsRoot::kProtected);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());

  const std::string shown = EscapeForDisplay(file);
  auto source = OpenFile(ctx, file);
  if (!source.ok()) return ctx.term.Fail(AboutFile(source.error(), shown));
  Progress checking(ctx.term, root->opened->clock, "checking the bundle");
  auto bundle = BundleReader::Open(
      **source, [&](uint64_t done, uint64_t total) { checking.Update(done, total); });
  checking.Done();
  if (!bundle.ok()) return ctx.term.Fail(AboutFile(bundle.error(), shown));

  ImportRequest request{.root = root->root, .settings = &*settings};
  Progress storing(ctx.term, root->opened->clock, "importing");
  request.progress = [&](uint64_t done, uint64_t total) {
    storing.Update(done, total);
  };
  auto report = ImportBundle(root->store(), **bundle, request);
  storing.Done();
  if (!report.ok()) return FailOnStore(ctx, report.error());
  if (report->imported > 0) ctx.term.WorkIsDone();
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(*report, root->root.path, file, json);
    ctx.term.OutJson(json);
  } else {
    Tell(ctx, *report);
  }
  return TellPurged(ctx.term, *report);
}

}  // namespace belay
