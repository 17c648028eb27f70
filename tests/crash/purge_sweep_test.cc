// A purge that is cut off at every call: what it was to erase is whole and readable, or
// it is published and the next collection takes it out of every file; nothing else is
// lost, and a purge that said it was done left no byte behind.
//
// A slice by default; BELAY_FULL=1 visits every point.

#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>

#include "history/purge.h"
#include "store/gc.h"
#include "store/verify.h"
#include "support/crash_harness.h"
#include "support/raw_search.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

const AbsPath kPurgeTop = AbsPath::Literal("/home/me");
const std::string kSecret = "sk-live-0123456789abcdef";

RestoreWorld WorldAt(Fs& fs, uint64_t seed) {
  RestoreWorld world(fs, kPurgeTop, seed, 1000);
  world.world.options.batch_target = 96 << 10;
  world.world.options.pack_target = 512 << 10;
  return world;
}

Status SetupPurge(Fs& fs) {
  RestoreWorld world = WorldAt(fs, 1);
  BELAY_TRY(Fd dir, world.Dir());
  BELAY_OK(PutFile(fs, dir, P("keep"), SourceText(3, 40'000)));
  BELAY_OK(PutFile(fs, dir, P("big"), Noise(44, 1'200'000)));
  BELAY_OK(PutFile(fs, dir, P("conf"), SourceText(5, 9000) + kSecret));
  BELAY_TRY([[maybe_unused]] Captured one, world.Capture("one"));
  BELAY_OK(PutFile(fs, dir, P("conf"), kSecret + SourceText(5, 9000)));
  BELAY_TRY([[maybe_unused]] Captured two, world.Capture("two"));
  return Ok();
}

Result<PurgeReport> Erase(Fs& fs, uint64_t seed) {
  RestoreWorld world = WorldAt(fs, seed);
  BELAY_TRY(auto opened, world.Open());
  PurgeRequest request;
  request.path = "conf";
  request.root = opened.root;
  request.lock_wait_ms = 200;
  return Purge(*opened.store, request);
}

Status PurgeOnce(Fs& fs, Acks& acks) {
  BELAY_TRY(PurgeReport report, Erase(fs, 2));
  if (!report.stays.empty() || report.again != 0)
    return Error(Errc::kCorrupt, "not all of it");
  acks.Add("erased");
  return Ok();
}

Result<bool> IsThere(Fs& fs) {
  BELAY_TRY(Fd dir, fs.OpenDir(kPurgeTop.Join(P("store"))));
  BELAY_TRY(auto found, RawSearch(fs, {kSecret}).In(dir));
  return !found.empty();
}

Status CheckRest(Fs& fs, bool erased, bool whole) {
  RestoreWorld world = WorldAt(fs, 3);
  BELAY_TRY(auto opened, world.Open());
  BELAY_TRY(VerifyReport report, VerifyStore(*opened.store, {.read_data = true}));
  if (!report.clean()) return Error(Errc::kCorrupt, "damage: " + report.damage[0]);
  for (const char* name : {"one", "two"}) {
    BELAY_TRY(Checkpoint c, world.Named(opened, name));
    BELAY_TRY(State state, opened.store->GetState(c.state));
    for (const char* path : {"keep", "big", "conf"}) {
      BELAY_TRY(auto entry, FindInTree(state.tree, P(path), TreesOf(*opened.store)));
      auto read = opened.store->ReadContentBytes(entry->id, 4 << 20);
      const bool conf = std::string_view(path) == "conf";
      if (conf && erased ? read.ok() || read.error().code != Errc::kPurged
                         : !read.ok() && (!conf || whole))
        return Error(Errc::kCorrupt, std::string(path) + " of " + name + " is wrong");
    }
  }
  return Ok();
}

Status CheckPurge(Fs& fs, const SweepRun& run) {
  BELAY_TRY(bool there, IsThere(fs));
  if (!run.acks.empty() && there)
    return Error(Errc::kCorrupt, "there after it was said to be gone");
  RestoreWorld world = WorldAt(fs, 4);
  BELAY_TRY(auto opened, world.Open());
  BELAY_TRY(auto purges, opened.catalog->ListRecords({.kind = RecordKind::kPurge}));
  if (purges.empty()) {
    BELAY_OK(CheckRest(fs, false, true));
    if (!opened.root.purged.empty())
      return Error(Errc::kCorrupt, "left out, and not purged");
  } else {
    // Whoever collects next finishes it: packs, and with them the catalogue.
    if (opened.root.purged.empty())
      return Error(Errc::kCorrupt, "purged, and stored again next time");
    BELAY_TRY([[maybe_unused]] GcReport collected, CollectGarbage(*opened.store, {}));
    BELAY_TRY(there, IsThere(fs));
    if (there) return Error(Errc::kCorrupt, "not finished by the next collection");
    BELAY_OK(CheckRest(fs, true, false));
  }
  // And asking again does it in any case.
  BELAY_TRY([[maybe_unused]] PurgeReport again, Erase(fs, 5));
  BELAY_TRY(there, IsThere(fs));
  if (there) return Error(Errc::kCorrupt, "there after a second purge");
  return CheckRest(fs, true, false);
}

void SweepPurge(SweepOptions options) {
  options.stride = 61;
  SweepResult result = SweepFaults(options, SetupPurge, PurgeOnce, CheckPurge);
  EXPECT_TRUE(result.ok()) << result.Text();
  std::cout << result.Text() << "\n";
}

TEST(PurgeSweep, EveryPowerCutLeavesItWholeOrIsFinished) {
  SweepPurge({.name = "purge, power cut", .tears = 2});
}

TEST(PurgeSweep, EveryErrorLeavesItWholeOrIsFinished) {
  SweepPurge(
      {.name = "purge, EIO", .fault = Fault::Errno(0, EIO), .crash_after_error = true});
  SweepPurge({.name = "purge, ENOSPC", .fault = Fault::Errno(0, ENOSPC)});
}

}  // namespace
}  // namespace belay::test
