#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/verify.h"

namespace belay {

namespace {

Result<std::vector<std::string>> TakeInUnlisted(CommandContext& ctx, OpenedStore& at,
                                                Store& store) {
  std::vector<std::string> done;
  BELAY_TRY(auto unlisted, UnlistedPacks(store));
  if (unlisted.empty()) return done;
  VerifyOptions every_byte;
  every_byte.read_data = true;
  BELAY_TRY(VerifyReport report, VerifyStore(store, every_byte));
  if (report.clean()) return done;
  BELAY_TRY(RepairReport repaired, RepairStore(ctx.fs, at.clock, at.random, at.dir,
                                               at.options, /*take_in=*/true));
  BELAY_OK(store.Refresh());
  return repaired.done;
}

}  // namespace

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
  // Something damaged, and packs lie about that may hold it whole: take them in.
  auto taken_in = TakeInUnlisted(ctx, at, **store);
  if (!taken_in.ok()) return ctx.term.Fail(taken_in.error());
  report->done.insert(report->done.end(), taken_in->begin(), taken_in->end());
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
