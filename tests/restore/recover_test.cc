// What was interrupted is finished where it was begun, and nowhere else.

#include <gtest/gtest.h>

#include <cerrno>

#include "base/fault_fs.h"
#include "support/pass_fs.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

class RecoverTest : public RollbackTest {
 protected:
  // A rollback that dies at its third change of a name.
  void Interrupt() {
    MakeMess();
    Fault cut = Fault::PowerCut(4);
    cut.only = {FsCall::kRename};
    FaultFs dying(disk, cut);
    Through through(dying, *this);
    EXPECT_FALSE(through.world.Rollback("start").ok());
    EXPECT_TRUE(dying.fired());
    EXPECT_NE(Tree(), start);
    EXPECT_NE(Tree(), now);
  }
  void Move(std::string_view from, std::string_view to) {
    Fd machine = Must(disk.OpenDir(AbsPath::Literal("/m")));
    Must(disk.Rename(machine, N(from), machine, N(to), RenameHow::kNoReplace));
  }
  void MakeRoot() {
    Fd machine = Must(disk.OpenDir(AbsPath::Literal("/m")));
    Must(disk.MakeDir(machine, N("project"), 0755));
    root = Must(disk.OpenDir(AbsPath::Literal("/m/project")));
  }
};

// A disk that does not let go of a staging directory.
class StuckStage final : public PassFs {
 public:
  using PassFs::PassFs;
  Status RemoveDir(const Fd& dir, const Name& name) override {
    if (IsStageName(name.bytes()))
      return Error(Errc::kIo, "rmdir " + name.bytes() + ": Input/output error");
    return PassFs::RemoveDir(dir, name);
  }
};

TEST_F(RecoverTest, AStagingDirectoryThatStaysIsNamedAndTheNextOneRemovesIt) {
  MakeMess();
  {
    StuckStage stuck(disk);
    Through through(stuck, *this);
    Outcome done = Must(through.world.Rollback("start"));
    ASSERT_TRUE(done.operation);
    const std::string stage = StageName(done.operation->id);
    ASSERT_TRUE(Exists(stage));
    EXPECT_TRUE(Mentions(done.warnings, stage));
    EXPECT_TRUE(Mentions(done.warnings, "the next belay command here tries again"));
  }
  auto recovered = Must(world.Recover());
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->how, Recovered::How::kTidied);
  EXPECT_EQ(Tree(), start);
  ExpectNoTraces();
}

TEST_F(RecoverTest, AnotherDirectoryInThePlaceOfTheRootIsNotTouched) {
  Interrupt();
  Move("project", "unmounted");
  MakeRoot();
  Put("theirs", "not of this rollback");
  const std::string theirs = Tree();
  auto waiting = Must(world.Recover());
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->how, Recovered::How::kWaiting);
  EXPECT_EQ(Tree(), theirs);
  auto refused = world.Rollback("start");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_EQ(Tree(), theirs);

  // The disk is mounted again.
  Move("project", "theirs");
  Move("unmounted", "project");
  root = Must(disk.OpenDir(AbsPath::Literal("/m/project")));
  auto finished = Must(world.Recover());
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->how, Recovered::How::kFinished);
  EXPECT_EQ(Tree(), start);
  ExpectNoTraces();
}

TEST_F(RecoverTest, AnUndoThatIsFinishedIsTakenBackByARedo) {
  MakeMess();
  Must(world.Rollback("start"));
  {
    Fault cut = Fault::PowerCut(4);
    cut.only = {FsCall::kRename};
    FaultFs dying(disk, cut);
    Through through(dying, *this);
    EXPECT_FALSE(through.world.Undo().ok());
    EXPECT_TRUE(dying.fired());
  }
  auto finished = Must(world.Recover());
  ASSERT_TRUE(finished);
  ASSERT_EQ(finished->how, Recovered::How::kFinished);
  EXPECT_TRUE(finished->text.ends_with("take it back with: belay redo"))
      << finished->text;
  EXPECT_EQ(Tree(), now);
  Must(world.Redo());
  EXPECT_EQ(Tree(), start);
}

TEST_F(RecoverTest, WhatSomethingIsMountedOverIsWaitedFor) {
  Interrupt();
  const std::string half = Tree();
  Must(disk.SetMountRoot(root, N("in-place"), true));
  for (int again = 0; again < 2; ++again) {
    auto waiting = Must(world.Recover());
    ASSERT_TRUE(waiting);
    EXPECT_EQ(waiting->how, Recovered::How::kWaiting);
    EXPECT_NE(waiting->text.find("mounted over in-place"), std::string::npos);
    EXPECT_EQ(Tree(), half) << "neither finished nor taken back around it";
  }
  auto refused = world.Rollback("start");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_NE(refused.error().hint.find("--force"), std::string::npos);
  EXPECT_EQ(Tree(), half);

  Must(disk.SetMountRoot(root, N("in-place"), false));
  auto finished = Must(world.Recover());
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->how, Recovered::How::kFinished);
  EXPECT_EQ(Tree(), start);
  ExpectNoTraces();
}

TEST_F(RecoverTest, WhatIsBeneathAMountIsGivenUpWhenSomebodySaysSo) {
  Interrupt();
  Must(disk.SetMountRoot(root, N("in-place"), true));
  world.force = true;
  (void)world.Rollback("start");
  ExpectNoTraces();
}

TEST_F(RecoverTest, ARootThatIsGoneIsWaitedForUntilSomebodyGivesItUp) {
  Interrupt();
  Move("project", "unmounted");
  auto waiting = Must(world.Recover());
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->how, Recovered::How::kWaiting);
  EXPECT_FALSE(world.Rollback("start").ok());
  world.force = true;
  Must(world.Rollback("start"));
  root = Must(disk.OpenDir(AbsPath::Literal("/m/project")));
  EXPECT_EQ(Tree(), start);
}

// Two people wrote: one into the file that was displaced, one into what took its place.
// And a third put a directory where another path was to go.
TEST_F(RecoverTest, EditsOnBothSidesAndADirectoryInTheWayKeepNobodyOut) {
  Interrupt();
  // Whatever is staged and whatever stands in the tree is changed.
  for (const DirEntry& entry : Must(disk.List(root))) {
    if (!IsStageName(entry.name)) continue;
    Fd stage = Must(disk.Open(root, N(entry.name), OpenMode::Directory()));
    for (const DirEntry& slot : Must(disk.List(stage)))
      if (Must(disk.StatAt(stage, N(slot.name))).type == FileType::kRegular)
        Must(PutFile(disk, stage, P(slot.name), "late"));
  }
  for (const char* path : {"private", "in-place"}) Put(path, "an edit after the crash");
  if (disk.StatAt(root, N("deleted")).ok()) Remove("deleted");
  Put("deleted/in", "a directory in the way");
  auto done = Must(world.Recover());
  ASSERT_TRUE(done);
  ExpectNoTraces();
  const std::string after = Tree();
  EXPECT_FALSE(Must(world.Recover()));
  EXPECT_EQ(Tree(), after);
}

TEST_F(RecoverTest, ASpecialFileInTheWayKeepsNobodyOut) {
  Interrupt();
  if (disk.StatAt(root, N("in-place")).ok()) Remove("in-place");
  Must(disk.MakeSpecial(root, N("in-place"), FileType::kFifo, 0600));
  auto done = Must(world.Recover());
  ASSERT_TRUE(done);
  ExpectNoTraces();
  EXPECT_EQ(Must(disk.StatAt(root, N("in-place"))).type, FileType::kFifo);
}

TEST_F(RecoverTest, WhatIsNoFileInTheJournalsPlaceIsPutAside) {
  MakeMess();
  const std::string name = Must(world.Open()).root.id.text();
  Fd store = Must(disk.OpenDir(AbsPath::Literal("/m/store")));
  Must(disk.MakeDir(store, N("journal"), 0700));
  Fd journals = Must(disk.Open(store, N("journal"), OpenMode::Directory()));
  for (FileType type : {FileType::kDirectory, FileType::kFifo, FileType::kSymlink}) {
    SCOPED_TRACE(FileTypeName(type));
    if (type == FileType::kDirectory)
      Must(disk.MakeDir(journals, N(name), 0700));
    else if (type == FileType::kSymlink)
      Must(disk.Symlink(journals, N(name), "/m/project/swap"));
    else
      Must(disk.MakeSpecial(journals, N(name), type, 0600));
    auto done = Must(world.Recover());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->how, Recovered::How::kDropped) << done->text;
    EXPECT_FALSE(disk.StatAt(journals, N(name)).ok());
    EXPECT_FALSE(Must(world.Recover()));
    EXPECT_EQ(Tree(), now);
  }
  EXPECT_EQ(Must(disk.List(journals)).size(), 3U);
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
}

TEST_F(RecoverTest, ARollbackThatWasTakenBackNamesTheCheckpointItLeft) {
  MakeMess();
  Fault full = Fault::Errno(3, ENOSPC);
  full.only = {FsCall::kRename};
  FaultFs disk_is_full(disk, full);
  Through through(disk_is_full, *this);
  auto done = through.world.Rollback("start");
  ASSERT_TRUE(disk_is_full.fired());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(Tree(), now);
  const auto opened = Must(world.Open());
  auto safety = Must(opened.catalog->ListCheckpoints(
      {.root = opened.root.id, .kind = CheckpointKind::kSafety, .limit = 2}));
  ASSERT_EQ(safety.size(), 1U);
  EXPECT_EQ(done.error().hint, "nothing was changed (your present state was kept as " +
                                   safety[0].checkpoint.id.text().substr(0, 7) + ")");
}

}  // namespace
}  // namespace belay::test
