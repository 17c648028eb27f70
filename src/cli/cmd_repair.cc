#include <unistd.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "restore/journal.h"
#include "restore/rollback.h"
#include "store/found_again.h"
#include "store/heads.h"
#include "store/inventory.h"
#include "store/lost_records.h"
#include "store/mend.h"
#include "store/repair.h"
#include "store/unlisted.h"

namespace belay {

namespace {

using ShowProgress = std::function<void(uint64_t done, uint64_t total)>;

Status TakeInUnlisted(CommandContext& ctx, OpenedStore& at, Store& store,
                      const ShowProgress& show, std::vector<std::string>& done) {
  BELAY_TRY(auto unlisted, UnlistedPacks(store));
  BELAY_TRY(auto longer, LongerPacks(store));
  if (unlisted.empty() && longer.empty()) return Ok();
  VerifyOptions every_byte;
  every_byte.read_data = true;
  every_byte.progress = show;
  BELAY_TRY(VerifyReport report, VerifyStore(store, every_byte));
  if (report.clean()) return Ok();
  if (!unlisted.empty())
    BELAY_OK(RepairStore(ctx.fs, at.clock, at.random, at.dir, at.options,
                         {.take_in = true, .said = &done}));
  BELAY_OK(store.Refresh());
  // What could not be taken in as it is may still have what is damaged here.
  return TakeBackObjects(store, report.lost_objects, done);
}

// What the catalogue knows, before anything is built anew. Sure only while a manifest
// says that nothing was collected since. An error is not "nothing": what is in the way
// may go by the repair.
Result<std::vector<RememberedRecord>> Recall(CommandContext& ctx, OpenedStore& at) {
  std::vector<RememberedRecord> nothing;
  auto store =
      Store::Open(ctx.fs, at.clock, at.random, at.dir, at.options, Store::Mode::kRead);
  if (store.ok()) {
    auto catalog = Catalog::Open(**store);
    if (!catalog.ok()) return std::move(catalog).error();
    return (*catalog)->Remembered((*store)->manifest().generation);
  }
  auto dir = ctx.fs.OpenDir(at.dir);
  if (!dir.ok() || store.error().code != Errc::kCorrupt)
    return std::move(store).error();
  StoreLocks locks(ctx.fs, at.clock, *dir, at.options.lock_wait_ms);
  auto catalog = Catalog::Open({ctx.fs, at.clock, at.random, locks, *dir}, nullptr);
  if (!catalog.ok()) return std::move(catalog).error();
  return (*catalog)->Remembered(0);
}

// Journals that nobody can read keep their roots from being used; what they were of
// cannot be finished. As the next command on such a root would, with its words.
Status PutJournalsAside(Store& store, Catalog& catalog,
                        std::vector<std::string>& done) {
  Fs& fs = store.fs();
  auto dir = fs.Open(store.dir(), Name::Literal("journal"), OpenMode::Directory());
  if (!dir.ok() && dir.error().code == Errc::kNotFound) return Ok();
  if (!dir.ok()) return std::move(dir).error();
  BELAY_TRY(auto entries, fs.List(*dir));
  BELAY_TRY(auto roots, catalog.Roots());
  for (const DirEntry& e : entries) {
    auto id = Id128::FromText(e.name);
    if (!id) continue;
    auto journal = JournalFile::Load(store, RootId(*id));
    if (journal.ok() || journal.error().code != Errc::kCorrupt) continue;
    auto root = std::find_if(roots.begin(), roots.end(), [&](const RootEntry& entry) {
      return entry.root.id == RootId(*id);
    });
    if (root == roots.end()) {
      BELAY_TRY(std::string aside, JournalFile::PutAside(store, RootId(*id)));
      done.push_back(
          StrCat("journal/", e.name, " is damaged, and of no root: now ", aside));
      continue;
    }
    RollbackRequest request;
    request.root = root->root;
    request.pid = getpid();
    BELAY_TRY(auto recovered, Recover(store, request));
    if (recovered) done.push_back(StrCat(root->root.path, ": ", recovered->text));
  }
  return Ok();
}

struct Repaired {
  RepairReport report;
  MendReport mended;
  uint64_t checkpoints = 0;
};

// `all` has what was put right also when an error ends it.
Status Repair(CommandContext& ctx, OpenedStore& at, Repaired& all) {
  Progress progress(ctx.term, at.clock, "repairing the store");
  const ShowProgress show = [&progress](uint64_t done, uint64_t total) {
    progress.Update(done, total);
  };
  auto remembered = Recall(ctx, at);
  std::vector<Root> roots;  // of the cache, which is built anew
  if (auto dir = ctx.fs.OpenDir(at.dir); dir.ok())
    roots = Heads::SavedRoots(ctx.fs, *dir);
  BELAY_TRY(RepairReport report,
            RepairStore(ctx.fs, at.clock, at.random, at.dir, at.options,
                        {.without_packs = ctx.args.has("--accept-loss"),
                         .said = &all.report.done}));
  // Now the manifest can be asked what the catalogue's memory is worth, and what was in
  // the way of asking is gone.
  if (report.made_packs || !remembered.ok() || remembered->empty())
    remembered = Recall(ctx, at);
  if (!remembered.ok()) return std::move(remembered).error();
  BELAY_TRY(auto store, Store::Open(ctx.fs, at.clock, at.random, at.dir, at.options,
                                    Store::Mode::kWriteExisting));
  std::vector<std::string>& done = all.report.done;
  // Or two repairs at once would both bring back what they both found lacking.
  BELAY_TRY(HeldLock alone, store->locks().AcquireNamed(
                                "repair", LockMode::kExclusive, at.options.lock_wait_ms,
                                "another belay repair is at work"));
  BELAY_OK(store->Refresh());
  BELAY_OK(TakeBackGivenUp(*store, done));
  BELAY_OK(TakeBackRecords(*store, done, show));
  // Something damaged, and packs lie about that may hold it whole: take them in.
  BELAY_OK(TakeInUnlisted(ctx, at, *store, show, done));
  BELAY_OK(ShowHidden(*store, done));
  for (const RememberedRecord& r : *remembered)
    if (auto root = ToRoot(r.record); root.ok()) roots.push_back(std::move(*root));
  BELAY_OK(BringBackRoots(*store, roots, done));
  Status mended =
      MendStore(*store, *remembered, ctx.args.has("--accept-loss"), all.mended, show);
  done.insert(done.end(), all.mended.done.begin(), all.mended.done.end());
  BELAY_OK(mended);
  BELAY_TRY(auto catalog, Catalog::Open(*store));
  BELAY_TRY(auto moved, catalog->ClearTheWay());
  done.insert(done.end(), moved.begin(), moved.end());
  BELAY_OK(catalog->Rebuild());
  BELAY_OK(PutJournalsAside(*store, *catalog, done));
  BELAY_TRY(all.checkpoints, catalog->Count(std::nullopt));
  done.push_back("rebuilt the catalogue: " + CountText(all.checkpoints, "checkpoint"));
  return Ok();
}

void WriteJson(const Repaired& all, JsonWriter& json) {
  auto list = [&json](std::string_view key, const std::vector<std::string>& lines) {
    json.Key(key).BeginArray();
    for (const std::string& line : lines) json.String(line);
    json.EndArray();
  };
  json.BeginObject();
  list("done", all.report.done);
  list("given_up", all.mended.given_up);
  json.Key("checkpoints").Uint(all.checkpoints);
  json.Key("clean").Bool(all.mended.left.clean());
  list("damage", all.mended.left.damage);
  json.EndObject();
}

}  // namespace

ExitCode CmdRepair(CommandContext& ctx) {
  auto prepared = PrepareStore(ctx);
  if (!prepared.ok()) return ctx.term.Fail(prepared.error());
  OpenedStore& at = **prepared;
  Repaired all;
  if (Status repaired = Repair(ctx, at, all); !repaired.ok()) {
    for (const std::string& line : all.mended.given_up)
      ctx.term.Warn(StrCat("given up before it failed: ", Scrub(line)));
    for (const std::string& line : all.report.done)
      ctx.term.Warn(StrCat("done before it failed: ", Scrub(line)));
    if (Status place = Store::CheckPlace(ctx.fs, at.dir);
        repaired.error().code == Errc::kNotFound && !place.ok())
      return ctx.term.Fail(place.error());
    if (repaired.error().code == Errc::kNotFound)
      return ctx.term.Fail(
          Error(Errc::kNotFound, "there is no store to repair at " + at.dir.bytes()));
    return FailOnStore(ctx, repaired.error());
  }
  Terminal& term = ctx.term;
  term.WorkIsDone();
  if (term.json()) {
    JsonWriter json;
    WriteJson(all, json);
    term.OutJson(json);
    return all.mended.left.clean() ? ExitCode::kOk : ExitCode::kDamaged;
  }
  for (const std::string& line : all.report.done) term.Out(StrCat(Scrub(line), "\n"));
  for (const std::string& line : all.mended.given_up)
    term.Out(StrCat("given up: ", Scrub(line), "\n"));
  const VerifyReport& left = all.mended.left;
  if (left.clean()) {
    term.Say(all.mended.given_up.empty()
                 ? "Every byte was read: the store is whole."
                 : "Every byte was read: what is left is whole.");
    return ExitCode::kOk;
  }
  term.Out(StrCat(CountText(left.damage.size(), "problem"), " left, ",
                  CountText(left.hit.size(), "checkpoint"), " hit\n"));
  term.Say("To see what is hit: belay verify --read-data");
  if (!left.hit.empty())
    term.Say(
        "Of that, the next belay checkpoint stores again what the directory still has; "
        "run belay repair once more after it.");
  term.Say(
      "To go on without what cannot be read, so that belay gc can work: "
      "belay repair --accept-loss");
  return ExitCode::kDamaged;
}

}  // namespace belay
