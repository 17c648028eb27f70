// The sweeps must catch an operation that is wrong; these operations are.

#include "support/crash_harness.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>

#include "support/fs_world.h"

namespace belay::test {
namespace {

const AbsPath kSlash = AbsPath::Literal("/");

Status PutOld(Fs& disk) {
  BELAY_TRY(Fd root, disk.OpenDir(kSlash));
  return ReplaceFile(disk, root, N("a"), AsBytes("old"));
}

Status ReplaceRight(Fs& fs, Acks& acks) {
  BELAY_TRY(Fd root, fs.OpenDir(kSlash));
  BELAY_OK(ReplaceFile(fs, root, N("a"), AsBytes("new")));
  acks.Add("new");
  return Ok();
}

struct Steps {
  bool sync_file = true;
  bool sync_dir = true;
  bool in_place = false;
  bool leak = false;
};

DiskOperation Replace(Steps steps) {
  return [steps](Fs& fs, Acks& acks) -> Status {
    BELAY_TRY(Fd root, fs.OpenDir(kSlash));
    if (steps.in_place) {
      BELAY_TRY(Fd file, fs.Open(root, N("a"), OpenMode::ReadWrite()));
      BELAY_OK(WriteFull(fs, file, 0, AsBytes("new")));
      BELAY_OK(fs.Sync(file));
      acks.Add("new");
      return Ok();
    }
    BELAY_TRY(Fd file, fs.Open(root, N("tmp"), OpenMode::CreateNew()));
    BELAY_OK(WriteFull(fs, file, 0, AsBytes("new")));
    if (steps.sync_file) BELAY_OK(fs.Sync(file));
    BELAY_OK(fs.Rename(root, N("tmp"), root, N("a"), RenameHow::kReplace));
    if (steps.sync_dir) BELAY_OK(fs.Sync(root));
    acks.Add("new");
    if (steps.leak) (void)file.Release();
    return Ok();
  };
}

// Old or new, whole; new when it was promised.
Status OldOrNew(Fs& disk, const SweepRun& run) {
  BELAY_TRY(Fd root, disk.OpenDir(kSlash));
  BELAY_TRY(std::string content, GetFile(disk, root, P("a")));
  if (content != "old" && content != "new")
    return Error(Errc::kCorrupt, "mixed content '" + content + "'");
  if (!run.acks.empty() && content != "new")
    return Error(Errc::kCorrupt, "promised new, found " + content);
  return Ok();
}

SweepResult SweepReplace(Steps steps) {
  SweepOptions options;
  options.name = "replace";
  return SweepFaults(options, PutOld, Replace(steps), OldOrNew);
}

TEST(SweepFaults, ReplaceFileSurvivesEveryPowerCut) {
  SweepOptions options;
  options.name = "ReplaceFile, power cut";
  options.tears = 50;
  SweepResult result = SweepFaults(options, PutOld, ReplaceRight, OldOrNew);
  std::cout << result.Text();
  EXPECT_TRUE(result.ok()) << result.Text();
  EXPECT_EQ(result.points, 9u);
  EXPECT_EQ(result.states, 10u * 52);  // the run without a fault is checked too
}

TEST(SweepFaults, ReplaceFileSurvivesEveryErrnoFollowedByAPowerCut) {
  for (int sys : {ENOSPC, EIO, EINTR, EACCES}) {
    SweepOptions options;
    options.name = "ReplaceFile, errno " + std::to_string(sys);
    options.fault = Fault::Errno(0, sys);
    options.crash_after_error = true;
    SweepResult result = SweepFaults(options, PutOld, ReplaceRight, OldOrNew);
    EXPECT_TRUE(result.ok()) << result.Text();
    options.fault.sticky = true;
    result = SweepFaults(options, PutOld, ReplaceRight, OldOrNew);
    EXPECT_TRUE(result.ok()) << result.Text();
  }
}

TEST(SweepFaults, CatchesARenameWithoutSyncOfTheFile) {
  SweepResult result = SweepReplace({.sync_file = false});
  EXPECT_GT(result.failures, 0u) << result.Text();
  EXPECT_NE(result.Text().find("mixed content"), std::string::npos) << result.Text();
}

TEST(SweepFaults, CatchesAPromiseWithoutSyncOfTheDirectory) {
  SweepResult result = SweepReplace({.sync_dir = false});
  EXPECT_GT(result.failures, 0u);
  EXPECT_NE(result.Text().find("promised new, found old"), std::string::npos);
}

TEST(SweepFaults, CatchesAWriteInPlace) {
  SweepOptions options;
  options.name = "in place";
  options.tears = 200;
  SweepResult result =
      SweepFaults(options, PutOld, Replace({.in_place = true}), OldOrNew);
  EXPECT_GT(result.failures, 0u) << result.Text();
}

TEST(SweepFaults, CatchesALeakedHandle) {
  SweepResult result = SweepReplace({.leak = true});
  EXPECT_NE(result.Text().find("1 handles left open"), std::string::npos)
      << result.Text();
}

TEST(SweepFaults, CatchesAnOperationThatFailsByItself) {
  SweepResult result = SweepFaults(
      {.name = "fails"}, PutOld,
      [](Fs&, Acks&) -> Status { return Error(Errc::kInvalid, "no"); }, OldOrNew);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.points, 0u);
  EXPECT_NE(result.Text().find("failed without a fault: no"), std::string::npos);
}

TEST(SweepFaults, ASweepWithoutPointsIsNotASuccess) {
  SweepResult result = SweepFaults(
      {.name = "nothing"}, PutOld, [](Fs&, Acks&) { return Ok(); }, OldOrNew);
  EXPECT_EQ(result.failures, 0u);
  EXPECT_FALSE(result.ok());
}

TEST(SweepFaults, TheCorrectStepsPass) {
  SweepResult result = SweepReplace({});
  EXPECT_TRUE(result.ok()) << result.Text();
}

TEST(SweepFaults, ASliceVisitsEveryOtherPoint) {
  if (RunEverything()) GTEST_SKIP() << "BELAY_FULL=1 ignores slices";
  SweepOptions options;
  options.name = "slice";
  options.first = 2;
  options.stride = 3;
  EXPECT_EQ(SweepFaults(options, PutOld, ReplaceRight, OldOrNew).points, 3u);
  options.max_points = 1;
  EXPECT_EQ(SweepFaults(options, PutOld, ReplaceRight, OldOrNew).points, 1u);
}

// --- kills ---------------------------------------------------------------------------

Status PutOldIn(Fs& fs, const AbsPath& dir) {
  BELAY_TRY(Fd root, fs.OpenDir(dir));
  return ReplaceFile(fs, root, N("a"), AsBytes("old"));
}

Status CheckIn(Fs& fs, const AbsPath& dir, const SweepRun& run) {
  BELAY_TRY(Fd root, fs.OpenDir(dir));
  BELAY_TRY(std::string content, GetFile(fs, root, P("a")));
  if (content != "old" && content != "new")
    return Error(Errc::kCorrupt, "mixed content '" + content + "'");
  if (!run.acks.empty() && content != "new")
    return Error(Errc::kCorrupt, "promised new, found " + content);
  if (run.done && run.acks != std::vector<std::string>{"new"})
    return Error(Errc::kCorrupt, "the promise did not come through");
  // The next replacement finds nothing in its way and cleans up.
  BELAY_OK(ReplaceFile(fs, root, N("a"), AsBytes("next")));
  BELAY_TRY(auto entries, fs.List(root));
  if (entries.size() != 1) return Error(Errc::kCorrupt, "a temporary was left");
  return Ok();
}

TEST(SweepKills, ReplaceFileSurvivesEveryKill) {
  for (Fault fault : {Fault::Kill(0), Fault::KillAfter(0)}) {
    SweepOptions options;
    options.name = fault.kind == Fault::Kind::kKill ? "ReplaceFile, kill"
                                                    : "ReplaceFile, kill after";
    options.fault = fault;
    SweepResult result = SweepKills(
        options, PutOldIn,
        [](Fs& fs, const AbsPath& dir, Acks& acks) -> Status {
          BELAY_TRY(Fd root, fs.OpenDir(dir));
          BELAY_OK(ReplaceFile(fs, root, N("a"), AsBytes("new")));
          acks.Add("new");
          return Ok();
        },
        CheckIn);
    std::cout << result.Text();
    EXPECT_TRUE(result.ok()) << result.Text();
    EXPECT_EQ(result.points, 9u);
  }
}

TEST(SweepKills, CatchesAWriteInTwoSteps) {
  SweepResult result = SweepKills(
      {.name = "two writes"}, PutOldIn,
      [](Fs& fs, const AbsPath& dir, Acks&) -> Status {
        BELAY_TRY(Fd root, fs.OpenDir(dir));
        BELAY_TRY(Fd file, fs.Open(root, N("a"), OpenMode::ReadWrite()));
        BELAY_OK(WriteFull(fs, file, 0, AsBytes("ne")));
        return WriteFull(fs, file, 2, AsBytes("w"));
      },
      CheckIn);
  EXPECT_GT(result.failures, 0u);
  EXPECT_NE(result.Text().find("mixed content 'ned'"), std::string::npos)
      << result.Text();
}

TEST(SweepKills, CatchesAPromiseMadeTooEarly) {
  SweepResult result = SweepKills(
      {.name = "early"}, PutOldIn,
      [](Fs& fs, const AbsPath& dir, Acks& acks) -> Status {
        BELAY_TRY(Fd root, fs.OpenDir(dir));
        acks.Add("new");
        return ReplaceFile(fs, root, N("a"), AsBytes("new"));
      },
      CheckIn);
  EXPECT_NE(result.Text().find("promised new, found old"), std::string::npos)
      << result.Text();
}

}  // namespace
}  // namespace belay::test
