// Power cuts and failing calls at every call of every operation of the store, in
// memory. tests/crash/kill_sweep_test.cc does the same to real processes.
//
// A slice by default; BELAY_FULL=1 visits every point with every torn disk.

#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>

#include "crash/store_ops.h"

namespace belay::test {
namespace {

const AbsPath kStore = AbsPath::Literal("/home/store");

Status Prepare(const StoreOp& op, Fs& disk) {
  BELAY_TRY(Fd home, MakeDirs(disk, AbsPath::Literal("/home"), 0755));
  return op.setup(op, disk, kStore);
}

// What the operation must answer when the only thing wrong was errno `sys`.
Status CheckError(const SweepRun& run, int sys) {
  if (run.done) return Ok();
  Error due = SysError(sys, "");
  if (run.error.code == due.code) return Ok();
  // What cannot be read may be called damage, by a writer that stops there too.
  if (run.error.code == Errc::kCorrupt && (sys == EIO || sys == EACCES)) return Ok();
  return Error(Errc::kCorrupt, std::string(ErrcName(run.error.code)) + " instead of " +
                                   std::string(ErrcName(due.code)) + ": " +
                                   run.error.what);
}

SweepResult Sweep(const StoreOp& op, SweepOptions options, bool retry = false) {
  const Fault fault = options.fault;
  return SweepFaults(
      options, [&](Fs& disk) { return Prepare(op, disk); },
      [&](Fs& fs, Acks& acks) { return op.run(op, fs, kStore, acks); },
      [&](Fs& disk, const SweepRun& run) -> Status {
        if (fault.kind == Fault::Kind::kErrno) BELAY_OK(CheckError(run, fault.sys));
        if ((fault.kind == Fault::Kind::kShortWrite ||
             fault.kind == Fault::Kind::kEintr) &&
            !run.done)
          return Error(Errc::kIo, "not made up for: " + run.error.what);
        return CheckStore(op, disk, kStore, {.acks = run.acks, .retry = retry});
      });
}

class StoreSweep : public ::testing::TestWithParam<std::string> {
 protected:
  StoreOp op_ = OpNamed(GetParam());
};

TEST_P(StoreSweep, SurvivesAPowerCutAtEveryCall) {
  SweepOptions options{.name = "power cut " + op_.name};
  options.tears = RunEverything() ? 12 : 2;
  options.seed = TestSeed(1);
  options.fault.mutating_only = !RunEverything();
  Expect(Sweep(op_, options));
}

TEST_P(StoreSweep, AnswersEveryFailingCallCleanly) {
  uint64_t first = 0;
  for (int sys : {ENOSPC, EDQUOT, EIO, EACCES, EROFS, EMFILE}) {
    for (bool sticky : {false, true}) {
      SweepOptions options{.name = Fault::Errno(0, sys, sticky).Text()};
      options.name = op_.name + " " + options.name.substr(0, options.name.find(' ')) +
                     (sticky ? " from each call on" : " at each call");
      options.fault = Fault::Errno(0, sys, sticky);
      options.stride = 12;  // each call meets at least one of the twelve
      options.first = 1 + first++;
      // What a repair takes for lost it gives up: each of its calls meets one that only
      // says "not now".
      if (op_.name == "repair" && sys == EMFILE && !sticky)
        options.first = options.stride = 1;
      Expect(Sweep(op_, options, /*retry=*/true));
    }
  }
}

TEST_P(StoreSweep, LosesNothingWhenPowerFailsAfterAFailingCall) {
  for (bool sticky : {false, true}) {
    SweepOptions options{
        .name = op_.name +
                (sticky ? " EIO from each call on, then" : " EIO at each call, then") +
                " a power cut"};
    options.fault = Fault::Errno(0, EIO, sticky);
    options.fault.mutating_only = true;
    options.crash_after_error = true;
    options.tears = RunEverything() ? 8 : 1;
    options.seed = TestSeed(2);
    Expect(Sweep(op_, options));
  }
}

TEST_P(StoreSweep, MakesUpForShortWritesAndInterruptions) {
  SweepOptions shorts{.name = op_.name + " short write"};
  shorts.fault = Fault::ShortWrite(0);
  Expect(Sweep(op_, shorts));
  // Every other call is made again inside RealFs.
  SweepOptions interrupted{.name = op_.name + " EINTR"};
  interrupted.fault = Fault::Eintr(0);
  interrupted.fault.only = {FsCall::kRead, FsCall::kWrite};
  interrupted.stride = 3;
  Expect(Sweep(op_, interrupted));
}

// A disk that has room for so much and no more, byte by byte and file by file.
TEST_P(StoreSweep, AnswersAFullDiskCleanlyWhateverItsSize) {
  SweepResult result;
  result.name = op_.name + " on a full disk";
  MemFs fresh;
  ASSERT_TRUE(Prepare(op_, fresh).ok());
  fresh.Crash(CrashPolicy::KeepAll());
  // True when that was enough.
  auto run = [&](uint64_t bytes, uint64_t files) {
    auto disk = fresh.Clone();
    disk->SetCapacity(bytes, files);
    SweepRun one;
    ListedAcks acks(one.acks);
    Status status = op_.run(op_, *disk, kStore, acks);
    one.done = status.ok();
    if (!status.ok()) one.error = status.error();
    ++result.points;
    ++result.states;
    Status checked = CheckError(one, ENOSPC);
    if (disk->open_handles() != 0) checked = Error(Errc::kIo, "handles left open");
    disk->SetCapacity(UINT64_MAX);
    if (checked.ok())
      checked = CheckStore(op_, *disk, kStore, {.acks = one.acks, .retry = true});
    if (!checked.ok()) {
      ++result.failures;
      if (result.first_failures.size() < 10)
        result.first_failures.push_back(std::to_string(bytes) + " bytes, " +
                                        std::to_string(files) +
                                        " files: " + checked.error().what);
    }
    return one.done;
  };
  const uint64_t step = RunEverything() ? 16 : 101;
  for (uint64_t extra = 0; !run(fresh.used_bytes() + extra, UINT64_MAX); extra += step)
    ASSERT_LT(extra, uint64_t{1} << 20);
  for (uint64_t extra = 0; !run(UINT64_MAX, fresh.used_inodes() + extra); ++extra)
    ASSERT_LT(extra, 100u);
  Expect(result);
}

// The process dies at a call, nothing else happens to the disk; another goes on and
// acknowledges; then the power fails. What the dead one had not flushed must not take
// the living one's work with it.
TEST_P(StoreSweep, LosesNothingWhenPowerFailsAfterADeadProcess) {
  SweepResult result;
  result.name = op_.name + " dies, another goes on, power cut";
  uint64_t seed = TestSeed(3);
  MemFs fresh;
  ASSERT_TRUE(Prepare(op_, fresh).ok());
  fresh.Crash(CrashPolicy::KeepAll());
  StoreOp next = op_;
  next.makes.push_back("next");
  next.makes.push_back("next-too");
  for (uint64_t point = 1;; ++point) {
    auto disk = fresh.Clone();
    std::vector<std::string> acked;
    ListedAcks acks(acked);
    Fault fault = Fault::PowerCut(point);  // from here on no call does anything
    fault.mutating_only = true;
    FaultFs dying(*disk, fault);
    (void)op_.run(op_, dying, kStore, acks);
    if (!dying.fired()) break;
    ++result.points;
    auto go_on = [&]() -> Status {
      Process process(*disk, kStore, 77, op_.options);
      auto store = process.Open();
      if (!store.ok() && op_.repairs && store.error().code == Errc::kCorrupt)
        return Ok();
      if (!store.ok()) return std::move(store).error();
      BELAY_OK(MakeAndAck(op_, **store, "next", acks));
      return MakeAndAck(op_, **store, "next-too", acks);
    };
    Status status = go_on();
    std::vector<CrashPolicy> policies = {CrashPolicy::KeepAll(),
                                         CrashPolicy::DropUnsynced()};
    for (uint64_t i = 0; i < (RunEverything() ? 12u : 2u); ++i)
      policies.push_back(CrashPolicy::Tear(seed * 1'000'003 + point * 1009 + i));
    for (const CrashPolicy& policy : policies) {
      auto crashed = disk->Clone();
      crashed->Crash(policy);
      ++result.states;
      Status checked = status;
      if (checked.ok()) checked = CheckStore(next, *crashed, kStore, {.acks = acked});
      if (checked.ok()) continue;
      ++result.failures;
      if (result.first_failures.size() < 10)
        result.first_failures.push_back("died at " + dying.Where() + ", " +
                                        policy.Text() + ": " + checked.error().what);
    }
  }
  Expect(result);
}

// A crash, and the recovery from it crashed again at every call.
TEST_P(StoreSweep, RecoversFromACrashDuringRecovery) {
  SweepResult sum;
  sum.name = op_.name + " crashed, recovery crashed";
  uint64_t seed = TestSeed(4);
  const uint64_t stride = RunEverything() ? 1 : 9;
  StoreOp recovery = op_;
  recovery.run = [](const StoreOp& op, Fs& fs, const AbsPath& dir,
                    Acks& acks) -> Status {
    Process process(fs, dir, 78, op.options);
    BELAY_TRY(auto store, process.Open());
    return MakeAndAck(op, *store, "next", acks);
  };
  if (op_.repairs) recovery.run = op_.run;
  recovery.makes.push_back("next");
  recovery.salt = 700;
  for (uint64_t point = 1 + seed % stride;; point += stride) {
    std::vector<CrashPolicy> policies = {CrashPolicy::DropUnsynced()};
    for (uint64_t i = 0; i < (RunEverything() ? 2u : 1u); ++i)
      policies.push_back(CrashPolicy::Tear(seed * 1'000'003 + point * 1009 + i));
    bool fired = false;
    for (const CrashPolicy& policy : policies) {
      std::vector<std::string> acked;
      ListedAcks acks(acked);
      SweepOptions options{.name = sum.name};
      options.tears = RunEverything() ? 2 : 0;
      options.seed = seed + point;
      options.fault.mutating_only = true;
      SweepResult result = SweepFaults(
          options,
          [&](Fs& disk) -> Status {
            BELAY_OK(Prepare(op_, disk));
            static_cast<MemFs&>(disk).Crash(CrashPolicy::KeepAll());
            Fault fault = Fault::PowerCut(point);
            fault.mutating_only = true;
            FaultFs dying(disk, fault);
            (void)op_.run(op_, dying, kStore, acks);
            fired = dying.fired();
            static_cast<MemFs&>(disk).Crash(policy);
            return Ok();
          },
          [&](Fs& fs, Acks& more) { return recovery.run(recovery, fs, kStore, more); },
          [&](Fs& disk, const SweepRun& run) -> Status {
            std::vector<std::string> both = acked;
            both.insert(both.end(), run.acks.begin(), run.acks.end());
            return CheckStore(recovery, disk, kStore, {.acks = both});
          });
      sum.points += result.points;
      sum.states += result.states;
      sum.failures += result.failures;
      for (const std::string& failure : result.first_failures)
        if (sum.first_failures.size() < 10)
          sum.first_failures.push_back("first crash at call " + std::to_string(point) +
                                       ", " + policy.Text() + "; " + failure);
    }
    if (!fired) break;
  }
  Expect(sum);
}

INSTANTIATE_TEST_SUITE_P(Operations, StoreSweep,
                         ::testing::Values("create", "append", "roll", "batches",
                                           "drop", "gc", "gc_beside_writer", "delta",
                                           "delta_roll", "delta_gc",
                                           "delta_gc_beside_writer", "repair"),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace belay::test
