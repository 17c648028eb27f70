// An import that is cut off at every call: all its checkpoints are there, or none, the
// store is whole, and importing again brings them, but for what was purged.
//
// A slice by default; BELAY_FULL=1 visits every point.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "store/verify.h"
#include "support/bundle_world.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

const AbsPath kImportTop = AbsPath::Literal("/home/me");

const ObjectId kPurged = Sha256::Of(AsBytes("first"));

RestoreWorld WorldAt(Fs& fs, const AbsPath& top, uint64_t seed, uint32_t uid) {
  RestoreWorld world(fs, top, seed, uid);
  // Several batches ahead of the last, and more than one pack.
  world.world.options.batch_target = 96 << 10;
  world.world.options.pack_target = 512 << 10;
  return world;
}

Bytes MakeBundle() {
  Machine from(1);
  from.Put("a", "first");
  from.Put("d/text", SourceText(3, 60'000));
  from.Put("big", Noise(4, 1'300'000));
  from.Put(".env", "TOKEN=x");
  Must(from.world.Capture("one"));
  from.Put("a", "second");
  Must(from.world.Capture("two"));
  from.Annotate("two", [](Fields& f) { f.AddNumber(kAnnotationPinned, 1); });
  return Must(from.Export({"one", "two"})).bytes;
}

class ImportScene {
 public:
  Status Setup(Fs& fs, const AbsPath& top, uint32_t uid) {
    BELAY_TRY([[maybe_unused]] Fd made, MakeDirs(fs, top, 0755));
    RestoreWorld world = WorldAt(fs, top, 1, uid);
    BELAY_TRY(Fd dir, world.Dir());
    BELAY_OK(PutFile(fs, dir, P("here"), "before"));
    BELAY_TRY([[maybe_unused]] Captured base, world.Capture("base"));
    // Something of the bundle was purged here.
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(auto writer, opened.store->Begin());
    writer->Add(
        MakePurge(RecordId(world.world.random.NewId()), 1,
                  {{ObjectType::kBlob, kPurged}, {ObjectType::kChunks, kPurged}},
                  "path", /*erased=*/true));
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
    return Ok();
  }
  Status Import(Fs& fs, const AbsPath& top, uint32_t uid, uint64_t seed,
                ImportReport& report) {
    RestoreWorld world = WorldAt(fs, top, seed, uid);
    auto source = BundleInMemory(bundle_);
    BELAY_TRY(auto reader, BundleReader::Open(*source));
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(report, ImportBundle(*opened.store, *reader,
                                   {.root = opened.root,
                                    .settings = &world.settings,
                                    .lock_wait_ms = 200}));
    return Ok();
  }
  Status Operate(Fs& fs, const AbsPath& top, uint32_t uid, Acks& acks) {
    ImportReport report;
    BELAY_OK(Import(fs, top, uid, 2, report));
    if (report.imported != 2) return Error(Errc::kCorrupt, "not all were imported");
    acks.Add("imported");
    return Ok();
  }
  Status Check(Fs& fs, const AbsPath& top, uint32_t uid, const SweepRun& run) {
    BELAY_TRY(std::string names, Names(fs, top, uid));
    const bool all = names == "two* one base";
    if (!all && names != "base") return Error(Errc::kCorrupt, "half there: " + names);
    if (!run.acks.empty() && !all)
      return Error(Errc::kCorrupt, "lost after it was acknowledged: " + names);
    BELAY_OK(Whole(fs, top, uid));
    ImportReport again;
    BELAY_OK(Import(fs, top, uid, 3, again));
    if (again.imported != (all ? 0u : 2u))
      return Error(Errc::kCorrupt, "again: " + std::to_string(again.imported));
    BELAY_TRY(names, Names(fs, top, uid));
    if (names != "two* one base") return Error(Errc::kCorrupt, "again: " + names);
    return Whole(fs, top, uid);
  }

 private:
  // Newest first; pinned ones with a star.
  Result<std::string> Names(Fs& fs, const AbsPath& top, uint32_t uid) {
    RestoreWorld world = WorldAt(fs, top, 5, uid);
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(auto entries, opened.catalog->ListCheckpoints({.root = opened.root.id}));
    std::string names;
    for (const CatalogEntry& entry : entries)
      names += (names.empty() ? "" : " ") + entry.checkpoint.name.value_or("?") +
               (entry.pinned ? "*" : "");
    return names;
  }
  Status Whole(Fs& fs, const AbsPath& top, uint32_t uid) {
    RestoreWorld world = WorldAt(fs, top, 6, uid);
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(VerifyReport report, VerifyStore(*opened.store, {.read_data = true}));
    if (!report.clean()) return Error(Errc::kCorrupt, "damage: " + report.damage[0]);
    BELAY_TRY(bool back, opened.store->HasContent(kPurged));
    if (back) return Error(Errc::kCorrupt, "what was purged came back");
    return Ok();
  }

  const Bytes bundle_ = MakeBundle();
};

SweepResult SweepImport(const SweepOptions& options) {
  ImportScene scene;
  return SweepFaults(
      options, [&](Fs& disk) { return scene.Setup(disk, kImportTop, 1000); },
      [&](Fs& fs, Acks& acks) { return scene.Operate(fs, kImportTop, 1000, acks); },
      [&](Fs& disk, const SweepRun& run) {
        return scene.Check(disk, kImportTop, 1000, run);
      });
}

TEST(ImportSweep, EveryPowerCutLeavesAllOfItOrNothing) {
  SweepOptions options{.name = "power cut import"};
  options.tears = RunEverything() ? 4 : 1;
  options.fault.mutating_only = !RunEverything();
  Expect(SweepImport(options));
}

TEST(ImportSweep, EveryFailingCallLeavesAllOfItOrNothing) {
  for (int sys : {ENOSPC, EIO}) {
    SweepOptions options{.name = "errno " + std::to_string(sys) + " import"};
    options.fault = Fault::Errno(0, sys);
    options.stride = RunEverything() ? 1 : 11;
    Expect(SweepImport(options));
  }
}

TEST(ImportSweep, EveryKillLeavesAllOfItOrNothing) {
  ImportScene scene;
  SweepOptions options{.name = "kill import"};
  options.stride = RunEverything() ? 1 : 23;
  const uint32_t uid = geteuid();
  Expect(SweepKills(
      options, [&](Fs& fs, const AbsPath& dir) { return scene.Setup(fs, dir, uid); },
      [&](Fs& fs, const AbsPath& dir, Acks& acks) {
        return scene.Operate(fs, dir, uid, acks);
      },
      [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
        return scene.Check(fs, dir, uid, run);
      }));
}

}  // namespace
}  // namespace belay::test
