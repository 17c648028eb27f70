#include "cli/anchoring.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "core/settings.h"
#include "core/space.h"

namespace belay {

ExitCode CmdGc(CommandContext& ctx) {
  auto opened = OpenStore(ctx, Store::Mode::kWriteExisting);
  GcReport report;
  if (opened.ok()) {
    auto file = ctx.env.UserSettingsFile();
    if (!file.ok()) return ctx.term.Fail(file.error());
    auto settings = LoadSettings(ctx.fs, *file, std::nullopt);
    if (!settings.ok()) return ctx.term.Fail(settings.error());
    Progress progress(ctx.term, (*opened)->clock, "collecting");
    GcOptions options;
    options.everything = ctx.args.has("--everything");
    options.progress = [&](uint64_t done, uint64_t total) {
      progress.Update(done, total);
    };
    auto collected = CollectWithinCap(*(*opened)->store, *settings, options);
    if (!collected.ok()) return FailOnStore(ctx, collected.error());
    report = *collected;
    ctx.term.WorkIsDone();
    // Also the catalogue's: the older it is, the less it can say when something is
    // damaged. It is built when it is next asked in any case.
    auto catalog = Catalog::Open(*(*opened)->store);
    if (catalog.ok() && report.generation_changed) (void)(*catalog)->CatchUp();
    if (catalog.ok()) (void)DropAnchors(ctx, *(*opened)->store, **catalog);
    if (options.everything) {
      // Its full text forgets words only when it is built anew.
      Status rebuilt =
          catalog.ok() ? (*catalog)->Rebuild() : Status(std::move(catalog).error());
      if (!rebuilt.ok()) return FailOnStore(ctx, rebuilt.error());
    }
  } else if (opened.error().code != Errc::kNotFound) {
    return FailOnStore(ctx, opened.error());
  }
  const uint64_t freed = report.bytes_before > report.bytes_after
                             ? report.bytes_before - report.bytes_after
                             : 0;
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("packs_before").Uint(report.packs_before);
    json.Key("packs_after").Uint(report.packs_after);
    json.Key("bytes_before").Uint(report.bytes_before);
    json.Key("bytes_after").Uint(report.bytes_after);
    json.Key("freed").Uint(freed);
    json.Key("reclaimable").Uint(report.reclaimable);
    json.Key("objects_removed").Uint(report.objects_removed);
    json.Key("records_removed").Uint(report.records_removed);
    json.Key("leftovers_removed").Uint(report.leftovers_removed);
    json.Key("spared").BeginArray();
    for (const std::string& name : report.spared) json.String(StrCat("packs/", name));
    json.EndArray();
    json.Key("foreign").BeginArray();
    for (const std::string& name : report.foreign) json.String(StrCat("packs/", name));
    json.EndArray();
    json.EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  for (const std::string& name : report.spared)
    ctx.term.Warn(StrCat("packs/", name,
                         " may hold what was given up as lost, and stays: belay "
                         "repair takes it back"));
  for (const std::string& name : report.foreign)
    ctx.term.Warn(StrCat("packs/", name,
                         " is of another store, and stays: move it to where it "
                         "belongs, or remove it"));
  if (report.leftovers_removed > 0)
    ctx.term.Out(StrCat("removed ", CountText(report.leftovers_removed, "file"),
                        " that interrupted work had left\n"));
  if (!opened.ok()) {
    ctx.term.Out("nothing stored yet\n");
  } else if (freed == 0) {
    ctx.term.Out(report.reclaimable == 0
                     ? std::string("nothing to give back\n")
                     : StrCat("nothing worth giving back yet (",
                              SizeText(report.reclaimable),
                              " unused; all of it: belay gc --everything)\n"));
  } else {
    ctx.term.Out(StrCat("gave back ", SizeText(freed), " (",
                        CountText(report.objects_removed, "object"), ", ",
                        CountText(report.records_removed, "record"),
                        "); the packs take ", SizeText(report.bytes_after), " now\n"));
  }
  return ExitCode::kOk;
}

}  // namespace belay
