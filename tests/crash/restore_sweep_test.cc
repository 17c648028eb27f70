// Rollback, undo, redo and recovery broken at every call they make: power cuts, failing
// calls, kills. The tree is the old or the new one, what was in it is in a safety
// checkpoint, and what was recorded can be taken back (RestoreScene::Check).
//
// A slice by default; BELAY_FULL=1 (tests/crash/restore_full) visits every point.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <numeric>

#include "support/restore_scene.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

const AbsPath kTop = AbsPath::Literal("/home/me");

void Expect(const SweepResult& result) {
  std::cout << result.Text();
  EXPECT_TRUE(result.ok()) << result.Text();
}

SweepResult Broken(const std::string& name, const Error& error) {
  SweepResult result;
  result.name = name;
  result.failures = 1;
  result.first_failures.push_back(error.what);
  return result;
}

Status LearnInMemory(RestoreScene& scene) {
  MemFs disk;
  BELAY_TRY([[maybe_unused]] Fd top, MakeDirs(disk, kTop, 0755));
  return scene.Learn(disk, kTop);
}

SweepResult Sweep(const SweepOptions& options, RestoreScene& scene) {
  if (Status learnt = LearnInMemory(scene); !learnt.ok())
    return Broken(options.name, learnt.error());
  const bool failed = options.fault.kind != Fault::Kind::kPowerCut;
  return SweepFaults(
      options, [&](Fs& disk) { return scene.Setup(disk, kTop); },
      [&](Fs& fs, Acks& acks) { return scene.Operate(fs, kTop, acks); },
      [&](Fs& disk, const SweepRun& run) {
        return scene.Check(disk, kTop, run, failed);
      });
}

TEST(RestoreSweep, EveryPowerCutLeavesTheOldTreeOrTheNewTree) {
  const uint64_t seed = TestSeed(1);
  const uint64_t trees = RunEverything() ? 6 : 2;
  for (uint64_t tree = 0; tree < trees; ++tree) {
    for (const std::string op : {"rollback", "undo", "redo"}) {
      if (!RunEverything() && tree > 0 && op != "rollback") continue;
      RestoreScene scene({.op = op, .seed = seed + tree, .as_user = tree % 2 == 1});
      SweepOptions options{.name = "power cut " + op + ", tree " +
                                   std::to_string(seed + tree)};
      options.tears = RunEverything() ? 4 : 1;
      options.seed = seed;
      options.fault.mutating_only = !RunEverything() || tree > 1;
      options.stride = op == "rollback" ? 1 : 7;
      Expect(Sweep(options, scene));
    }
  }
}

}  // namespace
}  // namespace belay::test
