// SIGKILL at every call of every operation of the store, on a real directory: before
// the call, and after it. A slice by default; BELAY_FULL=1 (tests/crash/kill_sweep)
// visits every call at several sizes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <iostream>

#include "crash/store_ops.h"

namespace belay::test {
namespace {

AbsPath Below(const AbsPath& dir) { return AbsPath::Literal(dir.bytes() + "/store"); }

SweepResult Kill(StoreOp op, Fault fault, const std::string& name) {
  op.options.uid = getuid();
  SweepOptions options{.name = name};
  options.fault = fault;
  options.first = 5;
  options.stride = 17;
  options.max_points = 10;
  return SweepKills(
      options, [&](Fs& fs, const AbsPath& dir) { return op.setup(op, fs, Below(dir)); },
      [&](Fs& fs, const AbsPath& dir, Acks& acks) {
        return op.run(op, fs, Below(dir), acks);
      },
      [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
        return CheckStore(op, fs, Below(dir), {.acks = run.acks});
      });
}

class KillSweep : public ::testing::TestWithParam<std::string> {};

TEST_P(KillSweep, LosesNothingAcknowledged) {
  std::vector<Scale> scales = {{.seed = 1, .bytes = 900, .files = 3}};
  if (RunEverything()) {
    scales.push_back({.seed = 2, .bytes = 5000, .files = 5});
    scales.push_back({.seed = 3, .bytes = 300, .files = 9});
  }
  for (const Scale& scale : scales) {
    for (bool after : {false, true}) {
      std::string name = std::string(after ? "kill after " : "kill before ") +
                         "each call, " + GetParam() + ", seed " +
                         std::to_string(scale.seed);
      SweepResult result = Kill(OpNamed(GetParam(), scale),
                                after ? Fault::KillAfter(0) : Fault::Kill(0), name);
      std::cout << result.Text();
      EXPECT_TRUE(result.ok()) << result.Text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, KillSweep,
                         ::testing::Values("create", "append", "roll", "batches",
                                           "drop", "gc", "gc_beside_writer", "delta",
                                           "delta_gc_beside_writer", "repair"),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace belay::test
