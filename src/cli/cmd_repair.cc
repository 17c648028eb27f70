#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "store/repair.h"

namespace belay {

ExitCode CmdRepair(CommandContext& ctx) {
  auto prepared = PrepareStore(ctx);
  if (!prepared.ok()) return ctx.term.Fail(prepared.error());
  OpenedStore& at = **prepared;
  auto report = RepairStore(ctx.fs, at.clock, at.random, at.dir, at.options);
  if (!report.ok()) {
    if (report.error().code == Errc::kNotFound)
      return ctx.term.Fail(
          Error(Errc::kNotFound, "there is no store to repair at " + at.dir.bytes()));
    return ctx.term.Fail(report.error());
  }
  auto store =
      Store::Open(ctx.fs, at.clock, at.random, at.dir, at.options, Store::Mode::kRead);
  if (!store.ok()) return ctx.term.Fail(store.error());
  auto catalog = Catalog::Open(**store);
  if (!catalog.ok()) return ctx.term.Fail(catalog.error());
  Status rebuilt = (*catalog)->Rebuild();
  if (!rebuilt.ok()) return ctx.term.Fail(rebuilt.error());
  auto count = (*catalog)->Count(std::nullopt);
  if (!count.ok()) return ctx.term.Fail(count.error());
  report->done.push_back("rebuilt the catalogue: " + CountText(*count, "checkpoint"));

  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("done").BeginArray();
    for (const std::string& line : report->done) json.String(line);
    json.EndArray();
    json.Key("checkpoints").Uint(*count);
    json.EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  for (const std::string& line : report->done) ctx.term.Out(StrCat(Scrub(line), "\n"));
  ctx.term.Say("To see whether anything is damaged: belay verify --read-data");
  return ExitCode::kOk;
}

}  // namespace belay
