#include "base/mem_fs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <set>

#include "base/clock.h"
#include "support/fs_world.h"

namespace belay::test {
namespace {

std::string After(const MemFs& disk, const CrashPolicy& policy) {
  auto copy = disk.Clone();
  copy->Crash(policy);
  return copy->TreeText();
}

// Every different tree that 300 torn disks show.
std::set<std::string> TornTrees(const MemFs& disk) {
  std::set<std::string> trees;
  for (uint64_t seed = 0; seed < 300; ++seed)
    trees.insert(After(disk, CrashPolicy::Tear(seed)));
  return trees;
}

// --- what survives -------------------------------------------------------------------

TEST(MemFs, UnsyncedFileIsLostWithItsName) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(PutFile(disk, root, P("a"), "data"));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "");
  EXPECT_EQ(After(disk, CrashPolicy::KeepAll()), "f 0644 a 4 \"data\"\n");
}

TEST(MemFs, SyncedNameOfUnsyncedFileIsEmpty) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(PutFile(disk, root, P("a"), "data"));
  Must(disk.Sync(root));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "f 0644 a 0 \"\"\n");
}

TEST(MemFs, SyncedFileWithoutItsNameIsLost) {
  for (bool data_only : {false, true}) {
    MemFs disk;
    Fd root = TopOf(disk);
    Fd file = Must(disk.Open(root, N("a"), OpenMode::CreateNew()));
    Must(WriteFull(disk, file, 0, AsBytes("data")));
    Must(data_only ? disk.SyncData(file) : disk.Sync(file));
    EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "");
    Must(disk.Sync(root));
    EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "f 0600 a 4 \"data\"\n");
  }
}

TEST(MemFs, WritesAfterTheSyncAreLost) {
  MemFs disk;
  Fd root = TopOf(disk);
  Fd file = Must(disk.Open(root, N("a"), OpenMode::CreateNew()));
  Must(WriteFull(disk, file, 0, AsBytes("first")));
  Must(disk.SyncData(file));
  Must(disk.Sync(root));
  Must(WriteFull(disk, file, 0, AsBytes("SECOND")));
  Must(disk.Truncate(file, 2));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "f 0600 a 5 \"first\"\n");
  EXPECT_EQ(After(disk, CrashPolicy::KeepAll()), "f 0600 a 2 \"SE\"\n");
}

TEST(MemFs, UnsyncedUnlinkAndRenameComeBack) {
  MemFs disk;
  Fd root = TopOf(disk);
  for (const char* name : {"a", "b"})
    Must(ReplaceFile(disk, root, N(name), AsBytes(name)));
  Must(disk.Unlink(root, N("a")));
  Must(disk.Rename(root, N("b"), root, N("c"), RenameHow::kReplace));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()),
            "f 0600 a 1 \"a\"\nf 0600 b 1 \"b\"\n");
  Must(disk.Sync(root));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "f 0600 c 1 \"b\"\n");
}

TEST(MemFs, ADirectoryIsLostWithoutASyncOfItsParent) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(disk.MakeDir(root, N("d"), 0700));
  Fd dir = Must(disk.Open(root, N("d"), OpenMode::Directory()));
  Must(ReplaceFile(disk, dir, N("f"), AsBytes("x")));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "");
  Must(disk.Sync(root));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "d 0700 d\nf 0600 d/f 1 \"x\"\n");
}

TEST(MemFs, SyncOfOneDirectoryMakesARenameDurableInBoth) {
  MemFs disk;
  Fd root = TopOf(disk);
  Fd from = Must(MakeDirs(disk, AbsPath::Literal("/from"), 0700));
  Fd to = Must(MakeDirs(disk, AbsPath::Literal("/to"), 0700));
  Must(ReplaceFile(disk, from, N("f"), AsBytes("x")));
  Must(disk.Rename(from, N("f"), to, N("g"), RenameHow::kReplace));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()),
            "d 0700 from\nf 0600 from/f 1 \"x\"\nd 0700 to\n");
  Must(disk.Sync(to));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()),
            "d 0700 from\nd 0700 to\nf 0600 to/g 1 \"x\"\n");
}

TEST(MemFs, ModeIsKeptBySyncAndNotBySyncData) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(ReplaceFile(disk, root, N("a"), AsBytes("x"), 0600));
  Fd file = Must(disk.Open(root, N("a"), OpenMode::ReadWrite()));
  Must(disk.SetMode(file, 0644));
  Must(disk.SyncData(file));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "f 0600 a 1 \"x\"\n");
  Must(disk.Sync(file));
  EXPECT_EQ(After(disk, CrashPolicy::DropUnsynced()), "f 0644 a 1 \"x\"\n");
}

TEST(MemFs, ReplaceFileSurvivesEveryPolicy) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(ReplaceFile(disk, root, N("a"), AsBytes("old")));
  Must(ReplaceFile(disk, root, N("a"), AsBytes("new")));
  EXPECT_EQ(TornTrees(disk), std::set<std::string>{"f 0600 a 3 \"new\"\n"});
}

// --- torn disks ----------------------------------------------------------------------

TEST(MemFs, TearingShowsLostKeptCutAndZeroedWrites) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(ReplaceFile(disk, root, N("a"), AsBytes("old")));
  Fd file = Must(disk.Open(root, N("a"), OpenMode::ReadWrite()));
  Must(WriteFull(disk, file, 3, AsBytes("new")));
  std::set<std::string> trees = TornTrees(disk);
  EXPECT_TRUE(trees.contains("f 0600 a 3 \"old\"\n"));
  EXPECT_TRUE(trees.contains("f 0600 a 6 \"oldnew\"\n"));
  EXPECT_TRUE(trees.contains("f 0600 a 4 \"oldn\"\n"));
  EXPECT_TRUE(trees.contains("f 0600 a 6 \"old\\x00\\x00\\x00\"\n"));
}

TEST(MemFs, TearingLosesAnEarlierWriteAndKeepsALater) {
  MemFs disk;
  Fd root = TopOf(disk);
  Fd file = Must(disk.Open(root, N("a"), OpenMode::CreateNew()));
  Must(disk.Sync(root));
  Must(WriteFull(disk, file, 0, AsBytes("1")));
  Must(WriteFull(disk, file, 1, AsBytes("2")));
  EXPECT_TRUE(TornTrees(disk).contains("f 0600 a 2 \"\\x002\"\n"));
}

TEST(MemFs, TearingOfALargeWriteCutsAtSectorsAndBetween) {
  MemFs disk;
  Fd root = TopOf(disk);
  Fd file = Must(disk.Open(root, N("a"), OpenMode::CreateNew()));
  Must(disk.Sync(root));
  Must(WriteFull(disk, file, 0, Bytes(4096, std::byte{'x'})));
  bool at_sector = false;
  bool elsewhere = false;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    auto copy = disk.Clone();
    copy->Crash(CrashPolicy::Tear(seed));
    uint64_t size = Must(copy->StatAt(TopOf(*copy), N("a"))).size;
    ASSERT_LE(size, 4096u);
    if (size > 0 && size < 4096) (size % 512 == 0 ? at_sector : elsewhere) = true;
  }
  EXPECT_TRUE(at_sector);
  EXPECT_TRUE(elsewhere);
}

TEST(MemFs, TearingKeepsAPrefixOfEachDirectory) {
  MemFs disk;
  Fd root = TopOf(disk);
  for (const char* name : {"a", "b", "c"}) Must(disk.MakeDir(root, N(name), 0700));
  EXPECT_EQ(TornTrees(disk),
            (std::set<std::string>{"", "d 0700 a\n", "d 0700 a\nd 0700 b\n",
                                   "d 0700 a\nd 0700 b\nd 0700 c\n"}));
}

TEST(MemFs, TearingARenameInOneDirectoryIsOldOrNew) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(ReplaceFile(disk, root, N("a"), AsBytes("a")));
  Must(ReplaceFile(disk, root, N("b"), AsBytes("b")));
  Must(disk.Rename(root, N("a"), root, N("b"), RenameHow::kReplace));
  EXPECT_EQ(TornTrees(disk),
            (std::set<std::string>{"f 0600 a 1 \"a\"\nf 0600 b 1 \"b\"\n",
                                   "f 0600 b 1 \"a\"\n"}));
}

TEST(MemFs, TearingARenameBetweenDirectoriesIsBothOrNeither) {
  MemFs disk;
  Fd from = Must(MakeDirs(disk, AbsPath::Literal("/from"), 0700));
  Fd to = Must(MakeDirs(disk, AbsPath::Literal("/to"), 0700));
  Must(ReplaceFile(disk, from, N("f"), AsBytes("x")));
  Must(disk.MakeDir(to, N("before"), 0700));
  Must(disk.Rename(from, N("f"), to, N("f"), RenameHow::kReplace));
  Must(disk.MakeDir(from, N("after"), 0700));
  EXPECT_EQ(TornTrees(disk),
            (std::set<std::string>{
                "d 0700 from\nf 0600 from/f 1 \"x\"\nd 0700 to\n",
                "d 0700 from\nf 0600 from/f 1 \"x\"\nd 0700 to\nd 0700 to/before\n",
                "d 0700 from\nd 0700 to\nd 0700 to/before\nf 0600 to/f 1 \"x\"\n",
                "d 0700 from\nd 0700 from/after\nd 0700 to\nd 0700 to/before\n"
                "f 0600 to/f 1 \"x\"\n"}));
}

TEST(MemFs, TheSameSeedTearsTheSameWay) {
  MemFs disk;
  Fd root = TopOf(disk);
  for (int i = 0; i < 20; ++i)
    Must(PutFile(disk, root, P("f" + std::to_string(i)), std::string(700, 'x')));
  Must(disk.Sync(root));
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(After(disk, CrashPolicy::Tear(seed)),
              After(disk, CrashPolicy::Tear(seed)));
}

// --- handles, copies, limits ---------------------------------------------------------

TEST(MemFs, CrashKillsHandlesAndLocks) {
  MemFs disk;
  {
    Fd root = TopOf(disk);
    Must(ReplaceFile(disk, root, N("a"), AsBytes("x")));
    Fd file = Must(disk.Open(root, N("a"), OpenMode::ReadWrite()));
    ASSERT_TRUE(Must(disk.TryLock(file, 0, LockMode::kExclusive)));
    disk.Crash(CrashPolicy::DropUnsynced());
    std::byte buffer[4];
    EXPECT_EQ(Sys(disk.Read(file, 0, buffer)), EIO);
    EXPECT_EQ(Sys(disk.Write(file, 0, AsBytes("y"))), EIO);
    EXPECT_EQ(Sys(disk.Sync(file)), EIO);
    EXPECT_EQ(Sys(disk.Stat(root)), EIO);
    EXPECT_EQ(Sys(disk.StatAt(root, N("a"))), EIO);
    Fd again = TopOf(disk);
    Fd other = Must(disk.Open(again, N("a"), OpenMode::ReadWrite()));
    EXPECT_TRUE(Must(disk.TryLock(other, 0, LockMode::kExclusive)));
    EXPECT_TRUE(file.Close().ok());
    EXPECT_FALSE(Must(disk.TryLock(Must(disk.Open(again, N("a"), OpenMode::Read())), 0,
                                   LockMode::kShared)));
  }
  EXPECT_EQ(disk.open_handles(), 0u);
}

TEST(MemFs, ACloneIsIndependent) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(ReplaceFile(disk, root, N("a"), AsBytes("one")));
  auto copy = disk.Clone();
  EXPECT_EQ(copy->open_handles(), 0u);
  Fd file = Must(disk.Open(root, N("a"), OpenMode::ReadWrite()));
  Must(WriteFull(disk, file, 0, AsBytes("TWO")));
  {
    Fd copy_root = TopOf(*copy);
    Fd copy_file = Must(copy->Open(copy_root, N("a"), OpenMode::ReadWrite()));
    Must(WriteFull(*copy, copy_file, 1, AsBytes("--")));
  }
  EXPECT_EQ(disk.TreeText(), "f 0600 a 3 \"TWO\"\n");
  EXPECT_EQ(copy->TreeText(), "f 0600 a 3 \"o--\"\n");
  EXPECT_EQ(copy->used_bytes(), disk.used_bytes());
  EXPECT_EQ(copy->used_inodes(), disk.used_inodes());
}

TEST(MemFs, FullDiskWritesWhatFitsThenSaysNoSpace) {
  MemFs disk(MemFs::Options{.capacity_bytes = 10});
  Fd root = TopOf(disk);
  Fd file = Must(disk.Open(root, N("a"), OpenMode::CreateNew()));
  EXPECT_EQ(Must(disk.Write(file, 0, Bytes(8))), 8u);
  EXPECT_EQ(Must(disk.Write(file, 8, Bytes(8))), 2u);
  EXPECT_EQ(Sys(disk.Write(file, 10, Bytes(1))), ENOSPC);
  EXPECT_EQ(disk.Write(file, 10, Bytes(1)).error().code, Errc::kNoSpace);
  EXPECT_EQ(Must(disk.Write(file, 0, Bytes(10))), 10u);  // in place needs no room
  EXPECT_EQ(Sys(disk.Truncate(file, 11)), ENOSPC);
  EXPECT_EQ(Must(disk.Info(root)).free_bytes, 0u);
  Must(disk.Unlink(root, N("a")));
  EXPECT_EQ(Must(disk.Info(root)).free_bytes, 0u);  // still open
  Must(file.Close());
  EXPECT_EQ(Must(disk.Info(root)).free_bytes, 10u);
}

TEST(MemFs, InodesRunOutSeparately) {
  MemFs disk(MemFs::Options{.capacity_inodes = 2});
  Fd root = TopOf(disk);
  Must(disk.MakeDir(root, N("a"), 0700));
  EXPECT_EQ(Sys(disk.MakeDir(root, N("b"), 0700)), ENOSPC);
  EXPECT_EQ(Sys(disk.Open(root, N("b"), OpenMode::CreateNew())), ENOSPC);
  EXPECT_EQ(Sys(disk.Symlink(root, N("b"), "x")), ENOSPC);
  Must(disk.RemoveDir(root, N("a")));
  EXPECT_TRUE(disk.MakeDir(root, N("b"), 0700).ok());
}

TEST(MemFs, ReadOnlyRefusesEveryChange) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(ReplaceFile(disk, root, N("a"), AsBytes("x")));
  Must(disk.MakeDir(root, N("d"), 0700));
  Fd file = Must(disk.Open(root, N("a"), OpenMode::ReadWrite()));
  disk.SetReadOnly(true);
  std::string before = disk.TreeText();
  EXPECT_EQ(Sys(disk.Write(file, 0, AsBytes("y"))), EROFS);
  EXPECT_EQ(Sys(disk.Truncate(file, 0)), EROFS);
  EXPECT_EQ(Sys(disk.SetMode(file, 0)), EROFS);
  EXPECT_EQ(Sys(disk.SetTimes(file, 0, 0)), EROFS);
  EXPECT_EQ(Sys(disk.Open(root, N("a"), OpenMode::ReadWrite())), EROFS);
  EXPECT_EQ(Sys(disk.Open(root, N("b"), OpenMode::CreateNew())), EROFS);
  EXPECT_EQ(Sys(disk.MakeDir(root, N("b"), 0700)), EROFS);
  EXPECT_EQ(Sys(disk.Symlink(root, N("b"), "x")), EROFS);
  EXPECT_EQ(Sys(disk.Unlink(root, N("a"))), EROFS);
  EXPECT_EQ(Sys(disk.RemoveDir(root, N("d"))), EROFS);
  EXPECT_EQ(Sys(disk.Link(root, N("a"), root, N("b"))), EROFS);
  EXPECT_EQ(Sys(disk.Rename(root, N("a"), root, N("b"), RenameHow::kReplace)), EROFS);
  EXPECT_TRUE(Must(disk.Info(root)).read_only);
  EXPECT_EQ(disk.TreeText(), before);
  EXPECT_TRUE(disk.Open(root, N("a"), OpenMode::Read()).ok());
}

TEST(MemFs, TimeMovesWithEachChangeAndStandsWhenTold) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(PutFile(disk, root, P("a"), "1"));
  int64_t first = Must(disk.StatAt(root, N("a"))).mtime_ns;
  Must(PutFile(disk, root, P("a"), "2"));
  int64_t second = Must(disk.StatAt(root, N("a"))).mtime_ns;
  EXPECT_GT(second, first);
  disk.SetTick(0);  // a racy edit: same size, same time
  Must(PutFile(disk, root, P("a"), "3"));
  EXPECT_EQ(Must(disk.StatAt(root, N("a"))).mtime_ns, second);
}

TEST(MemFs, ManyDeletionsDoNotPileUp) {
  MemFs disk;
  Fd root = TopOf(disk);
  for (int i = 0; i < 2000; ++i) {
    Must(ReplaceFile(disk, root, N("a"), Bytes(100)));
    Fd file = Must(disk.Open(root, N("b"), OpenMode::CreateNew()));
    Must(disk.Unlink(root, N("b")));
  }
  EXPECT_EQ(disk.used_inodes(), 2u);
  EXPECT_EQ(disk.used_bytes(), 100u);
}

TEST(MemFs, SpecialFilesAreSeenButNotRead) {
  MemFs disk;
  Fd root = TopOf(disk);
  Must(disk.MakeSpecial(root, N("fifo"), FileType::kFifo, 0600));
  EXPECT_EQ(disk.TreeText(), "p 0600 fifo\n");
  Fd fifo = Must(disk.Open(root, N("fifo"), OpenMode::Read()));
  std::byte buffer[4];
  EXPECT_EQ(Must(disk.Read(fifo, 0, buffer)), 0u);
}

// 100,000 crash states is the size of a full power-cut sweep. The best time of many is
// compared, so that a busy machine does not fail the test.
TEST(MemFs, CloneAndCrashOfASmallStoreAreCheap) {
  MemFs disk;
  Fd root = TopOf(disk);
  for (int d = 0; d < 10; ++d) {
    Name name = N("dir" + std::to_string(d));
    Must(disk.MakeDir(root, name, 0700));
    Fd dir = Must(disk.Open(root, name, OpenMode::Directory()));
    for (int f = 0; f < 10; ++f)
      Must(ReplaceFile(disk, dir, N("file" + std::to_string(f)), Bytes(3000)));
  }
  Must(disk.Sync(root));
  Must(PutFile(disk, root, P("unsynced"), std::string(5000, 'x')));
  RealClock clock;
  int64_t clone_ns = INT64_MAX;
  int64_t crash_ns = INT64_MAX;
  for (uint64_t i = 0; i < 200; ++i) {
    int64_t start = clock.SteadyNanos();
    auto copy = disk.Clone();
    int64_t cloned = clock.SteadyNanos();
    copy->Crash(CrashPolicy::Tear(i));
    clone_ns = std::min(clone_ns, cloned - start);
    crash_ns = std::min(crash_ns, clock.SteadyNanos() - cloned);
  }
  std::cout << "clone of 300 KB in 100 files: " << clone_ns / 1000
            << " us; crash: " << crash_ns / 1000 << " us\n";
  EXPECT_LT(clone_ns, 1'000'000);
}

}  // namespace
TEST(MemFs, SyncAllKeepsEverything) {
  MemFs disk;
  Fd root = Must(disk.OpenDir(AbsPath::Literal("/")));
  Must(disk.MakeDir(root, Name::Literal("d"), 0700));
  Fd dir = Must(disk.Open(root, Name::Literal("d"), OpenMode::Directory()));
  Fd file = Must(disk.Open(dir, Name::Literal("f"), OpenMode::CreateNew()));
  Must(WriteFull(disk, file, 0, AsBytes("kept")));
  Must(disk.SetMode(file, 0640));
  Must(disk.Rename(dir, Name::Literal("f"), root, Name::Literal("g"),
                   RenameHow::kNoReplace));
  Must(disk.SyncAll(root));
  std::string before = disk.TreeText();
  disk.Crash(CrashPolicy::DropUnsynced());
  EXPECT_EQ(disk.TreeText(), before);
}

TEST(MemFs, WhatIsImmutableStays) {
  MemFs disk;
  Fd root = Must(disk.OpenDir(AbsPath::Literal("/")));
  Fd file = Must(disk.Open(root, Name::Literal("f"), OpenMode::CreateNew()));
  Must(file.Close());
  Must(disk.SetImmutable(root, Name::Literal("f"), true));
  EXPECT_TRUE(Must(disk.StatAt(root, Name::Literal("f"))).immutable);
  EXPECT_EQ(Sys(disk.Open(root, Name::Literal("f"), OpenMode::ReadWrite())), EPERM);
  EXPECT_EQ(Sys(disk.Unlink(root, Name::Literal("f"))), EPERM);
  EXPECT_EQ(Sys(disk.Rename(root, Name::Literal("f"), root, Name::Literal("g"),
                            RenameHow::kReplace)),
            EPERM);
}

}  // namespace belay::test
