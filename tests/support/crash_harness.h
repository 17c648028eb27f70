#pragma once

// Sweeps: one operation, broken at every call it makes, and the disk checked each time.
//
//   SweepFaults  in process, on MemFs: errnos, short writes and power cuts; after a
//   power
//                cut the disk is crashed several ways and each is checked.
//   SweepKills   a child process on a real directory, killed by SIGKILL at every call.
//
// A point counts only when its fault fired. A sweep ends with the first run whose fault
// did not fire: then no call is left. The operation must make the same calls each run
// (FakeClock, SeededRandom).
//
//   SweepOptions options{.name = "append"};
//   SweepResult result = SweepFaults(options, setup, append, check);
//   EXPECT_TRUE(result.ok()) << result.Text();
//   std::cout << result.Text();  // sweep append: 137 points, 822 states, 0 failures

#include <functional>
#include <string>
#include <vector>

#include "base/fault_fs.h"
#include "base/fs.h"
#include "base/mem_fs.h"

namespace belay::test {

struct SweepOptions {
  std::string name;  // in the text of the result
  // What happens at each point; `at` is set by the sweep. SweepKills takes kKill and
  // kKillAfter only and turns any other kind into kKill.
  Fault fault = Fault::PowerCut(0);
  // A slice: points first, first + stride, ... at most max_points of them (0: no
  // limit). The environment variable BELAY_FULL=1 runs every point of every sweep.
  uint64_t first = 1;
  uint64_t stride = 1;
  uint64_t max_points = 0;
  // Or exactly these points, with BELAY_FULL=1 too.
  std::vector<uint64_t> only_at = {};
  // Power cuts: besides "keep all" and "drop unsynced", so many torn disks per point,
  // seeded from `seed` and the point.
  uint64_t tears = 4;
  uint64_t seed = 1;
  // SweepFaults: crash the disk also after a fault that is not a power cut (an
  // operation that failed, then the power went).
  bool crash_after_error = false;
  // SweepFaults: what the disk can do.
  MemFs::Options disk = {};
  // SweepFaults: the operation must leave no handle open.
  bool check_leaks = true;
};

// What an operation promised while it ran. An operation calls Add() after a step is
// durable by its own claim; the check holds it to that.
class Acks {
 public:
  virtual ~Acks() = default;
  virtual void Add(std::string_view promise) = 0;
};

// How one run ended.
struct SweepRun {
  uint64_t point = 0;
  bool fired = false;
  bool done = false;              // the operation returned success
  Error error;                    // when it returned and not success
  std::vector<std::string> acks;  // in order
  std::string where;              // "power cut at call 17: SyncData, tear seed 3"
};

struct SweepResult {
  std::string name;
  uint64_t points = 0;  // faults that fired
  uint64_t states = 0;  // disks checked
  uint64_t failures = 0;
  std::vector<std::string> first_failures;  // at most ten

  bool ok() const { return failures == 0 && points > 0; }
  std::string Text() const;
};

using DiskSetup = std::function<Status(Fs& disk)>;
using DiskOperation = std::function<Status(Fs& fs, Acks& acks)>;
// An error is a failed check; its text says what was wrong.
using DiskCheck = std::function<Status(Fs& disk, const SweepRun& run)>;

// `setup` runs once, and its result is made durable; each point starts from a copy. The
// check also sees the run without a fault.
SweepResult SweepFaults(const SweepOptions& options, const DiskSetup& setup,
                        const DiskOperation& operation, const DiskCheck& check);

using DirSetup = std::function<Status(Fs& fs, const AbsPath& dir)>;
using DirOperation = std::function<Status(Fs& fs, const AbsPath& dir, Acks& acks)>;
using DirCheck = std::function<Status(Fs& fs, const AbsPath& dir, const SweepRun& run)>;

// Each point: an empty temporary directory, setup in this process, the operation in a
// forked child that is killed, the check in this process. The calling process must have
// one thread.
SweepResult SweepKills(const SweepOptions& options, const DirSetup& setup,
                       const DirOperation& operation, const DirCheck& check);

// BELAY_FULL=1: the long form of a test was asked for.
bool RunEverything();
// BELAY_SEED, or `fallback`; prints the line that repeats the run.
uint64_t TestSeed(uint64_t fallback);

// Prints the counts; a failure of the test when there was one.
void Expect(const SweepResult& result);

}  // namespace belay::test
