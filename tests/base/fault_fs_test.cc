#include "base/fault_fs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/fs_world.h"

namespace belay::test {
namespace {

TEST(FaultFs, WithoutAFaultItCountsAndForwards) {
  MemFs disk;
  FaultFs fs(disk);
  {
    Fd root = TopOf(fs);
    Must(ReplaceFile(fs, root, N("a"), AsBytes("x")));
  }
  EXPECT_FALSE(fs.fired());
  EXPECT_EQ(fs.log(),
            (std::vector<FsCall>{FsCall::kOpenDir, FsCall::kOpen, FsCall::kTryLock,
                                 FsCall::kWrite, FsCall::kSync, FsCall::kRename,
                                 FsCall::kClose, FsCall::kSync, FsCall::kClose}));
  EXPECT_EQ(fs.calls(), 9u);
  EXPECT_EQ(fs.calls(FsCall::kSync), 2u);
  EXPECT_EQ(fs.calls(FsCall::kUnlink), 0u);
  EXPECT_EQ(fs.Where(), "call 9: Close");
  EXPECT_EQ(disk.open_handles(), 0u);
  EXPECT_EQ(disk.TreeText(), "f 0600 a 1 \"x\"\n");
}

TEST(FaultFs, ErrnoFiresAtItsCallOnly) {
  MemFs disk;
  FaultFs fs(disk, Fault::Errno(3, EIO));
  Fd root = TopOf(fs);
  EXPECT_TRUE(fs.MakeDir(root, N("a"), 0700).ok());
  EXPECT_FALSE(fs.fired());
  Status second = fs.MakeDir(root, N("b"), 0700);
  EXPECT_EQ(Sys(second), EIO);
  EXPECT_EQ(second.error().what, "MakeDir (injected): Input/output error");
  EXPECT_TRUE(fs.fired());
  EXPECT_TRUE(fs.MakeDir(root, N("c"), 0700).ok());
  EXPECT_EQ(fs.Where(), "call 3: MakeDir");
  EXPECT_EQ(disk.TreeText(), "d 0700 a\nd 0700 c\n");
}

TEST(FaultFs, AStickyErrnoStays) {
  MemFs disk;
  Fault fault = Fault::Errno(2, ENOSPC, /*sticky=*/true);
  fault.mutating_only = true;
  EXPECT_EQ(fault.Text(), "ENOSPC from call 2");
  FaultFs fs(disk, fault);
  Fd root = TopOf(fs);
  EXPECT_TRUE(fs.MakeDir(root, N("a"), 0700).ok());
  EXPECT_EQ(Sys(fs.MakeDir(root, N("b"), 0700)), ENOSPC);
  EXPECT_EQ(Sys(fs.MakeDir(root, N("c"), 0700)), ENOSPC);
  EXPECT_TRUE(fs.List(root).ok());  // reading a full disk still works
  EXPECT_EQ(fs.Where(), "call 2: MakeDir");
}

TEST(FaultFs, TheFilterDecidesWhatIsCounted) {
  MemFs disk;
  Fault fault = Fault::Errno(1, EIO);
  fault.only = {FsCall::kSyncData};
  FaultFs fs(disk, fault);
  Fd root = TopOf(fs);
  Fd file = Must(fs.Open(root, N("a"), OpenMode::CreateNew()));
  Must(WriteFull(fs, file, 0, AsBytes("x")));
  EXPECT_TRUE(fs.Sync(file).ok());
  EXPECT_EQ(fs.calls(), 0u);
  EXPECT_EQ(Sys(fs.SyncData(file)), EIO);
  EXPECT_EQ(fs.calls(), 1u);
}

TEST(FaultFs, OpenIsMutatingOnlyWhenItCreatesOrTruncates) {
  MemFs disk;
  Must(PutFile(disk, TopOf(disk), P("a"), "x"));
  Fault fault;
  fault.mutating_only = true;
  FaultFs fs(disk, fault);
  Fd root = TopOf(fs);
  Fd reader = Must(fs.Open(root, N("a"), OpenMode::Read()));
  EXPECT_EQ(fs.calls(), 0u);
  Fd creator = Must(fs.Open(root, N("b"), OpenMode::CreateNew()));
  Fd beneath = Must(fs.OpenBeneath(root, P("c"), OpenMode::OpenOrCreate()));
  EXPECT_EQ(fs.calls(), 2u);
}

TEST(FaultFs, ShortWriteReallyWritesHalf) {
  MemFs disk;
  FaultFs fs(disk, Fault::ShortWrite(1));
  Fd root = TopOf(fs);
  Fd file = Must(fs.Open(root, N("a"), OpenMode::CreateNew()));
  EXPECT_EQ(Must(fs.Write(file, 0, AsBytes("12345678"))), 4u);
  EXPECT_EQ(Must(fs.Stat(file)).size, 4u);
  EXPECT_TRUE(fs.fired());
  EXPECT_EQ(Must(fs.Write(file, 4, AsBytes("5678"))), 4u);
}

TEST(FaultFs, HelpersGetOverShortWritesAndInterrupts) {
  for (Fault fault : {Fault::ShortWrite(1), Fault::Eintr(1)}) {
    SCOPED_TRACE(fault.Text());
    fault.only = {FsCall::kWrite};
    MemFs disk;
    FaultFs fs(disk, fault);
    Fd root = TopOf(fs);
    Must(ReplaceFile(fs, root, N("a"), AsBytes("12345678")));
    EXPECT_TRUE(fs.fired());
    EXPECT_EQ(Must(GetFile(fs, root, P("a"))), "12345678");
  }
  Fault interrupt = Fault::Eintr(1);
  interrupt.only = {FsCall::kRead};
  MemFs disk;
  FaultFs fs(disk, interrupt);
  Fd root = TopOf(fs);
  Must(ReplaceFile(fs, root, N("a"), AsBytes("x")));
  EXPECT_EQ(Must(GetFile(fs, root, P("a"))), "x");
  EXPECT_TRUE(fs.fired());
}

TEST(FaultFs, AFaultedCloseStillCloses) {
  MemFs disk;
  Fault fault = Fault::Errno(1, EIO);
  fault.only = {FsCall::kClose};
  {
    FaultFs fs(disk, fault);
    Fd root = TopOf(fs);
    EXPECT_EQ(Sys(root.Close()), EIO);
    EXPECT_EQ(disk.open_handles(), 0u);
  }
}

TEST(FaultFs, AfterAPowerCutEveryCallFailsAndTheDiskStands) {
  MemFs disk;
  int cuts = 0;
  {
    FaultFs fs(disk, Fault::PowerCut(3, [&] { ++cuts; }));
    Fd root = TopOf(fs);
    Must(fs.MakeDir(root, N("a"), 0700));
    EXPECT_EQ(Sys(fs.MakeDir(root, N("b"), 0700)), EIO);
    EXPECT_EQ(Sys(fs.MakeDir(root, N("c"), 0700)), EIO);
    EXPECT_EQ(Sys(fs.List(root)), EIO);
    EXPECT_EQ(Sys(fs.Sync(root)), EIO);
    EXPECT_EQ(Sys(fs.OpenDir(AbsPath::Literal("/"))), EIO);
    EXPECT_TRUE(fs.power_is_off());
    EXPECT_TRUE(fs.fired());
    EXPECT_EQ(fs.Where(), "call 3: MakeDir");
  }
  EXPECT_EQ(cuts, 1);
  EXPECT_EQ(disk.open_handles(), 0u);
  EXPECT_EQ(disk.TreeText(), "d 0700 a\n");
}

// The child makes one directory under the fault; whether it is there tells before from
// after.
bool DirectoryMadeBy(const Fault& fault) {
  TempDir temp;
  pid_t child = fork();
  if (child == 0) {
    RealFs real;
    FaultFs fs(real, fault);
    auto root = fs.OpenDir(temp.path());
    (void)fs.MakeDir(*root, N("d"), 0700);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  RealFs real;
  return real.StatAt(Must(real.OpenDir(temp.path())), N("d")).ok();
}

TEST(FaultFs, KillComesBeforeTheCallAndKillAfterAfterIt) {
  EXPECT_FALSE(DirectoryMadeBy(Fault::Kill(2)));
  EXPECT_TRUE(DirectoryMadeBy(Fault::KillAfter(2)));
}

TEST(FaultFs, EveryErrnoOfReplaceFileLeavesOldOrNewAndNoTemporary) {
  for (int sys : {ENOSPC, EDQUOT, EIO, EACCES, EMFILE, EROFS}) {
    for (uint64_t at = 1;; ++at) {
      MemFs disk;
      Must(ReplaceFile(disk, TopOf(disk), N("a"), AsBytes("old")));
      FaultFs fs(disk, Fault::Errno(at, sys));
      SCOPED_TRACE("errno " + std::to_string(sys) + " at " + std::to_string(at));
      bool done = false;
      {
        auto root = fs.OpenDir(AbsPath::Literal("/"));
        done = root.ok() && ReplaceFile(fs, *root, N("a"), AsBytes("new")).ok();
      }
      std::string tree = disk.TreeText();
      if (done) {
        EXPECT_EQ(tree, "f 0600 a 3 \"new\"\n");
      } else {
        EXPECT_TRUE(tree == "f 0600 a 3 \"old\"\n" || tree == "f 0600 a 3 \"new\"\n")
            << tree;
      }
      EXPECT_EQ(disk.open_handles(), 0u);
      if (!fs.fired()) break;
    }
  }
}

}  // namespace
}  // namespace belay::test
