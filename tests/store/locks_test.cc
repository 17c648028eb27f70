// The file `lock`: what else may lie under its name, and who holds what when it is
// moved away.

#include "store/locks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <optional>
#include <utility>

#include "store/private.h"
#include "store/repair.h"
#include "support/fs_world.h"
#include "support/pass_fs.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

// On a real disk: there alone opening a socket fails.
TEST(LockFile, WhatIsNoFileIsDamageThatRepairPutsRight) {
  for (FileType type : {FileType::kDirectory, FileType::kSymlink, FileType::kSocket}) {
    SCOPED_TRACE(FileTypeName(type));
    FsWorld disk(FsKind::kReal);
    FakeClock clock;
    Fd dir = Must(disk.fs().OpenDir(disk.path()));
    if (type == FileType::kDirectory)
      Must(disk.fs().MakeDir(dir, N("lock"), 0700));
    else if (type == FileType::kSymlink)
      Must(disk.fs().Symlink(dir, N("lock"), "elsewhere"));
    else
      ASSERT_EQ(mknodat(dir.handle(), "lock", S_IFSOCK | 0600, 0), 0);
    StoreLocks locks(disk.fs(), clock, dir, 0);
    auto held = locks.Acquire(StoreLock::kCatalog, LockMode::kShared);
    ASSERT_FALSE(held.ok());
    EXPECT_EQ(held.error().code, Errc::kCorrupt) << held.error().what;
    EXPECT_EQ(held.error().hint, "put it right with: belay repair");
  }
}

// Lets somebody else do something before each attempt to lock.
class BeforeLocking final : public PassFs {
 public:
  BeforeLocking(Fs& inner, std::function<void()> act)
      : PassFs(inner), act_(std::move(act)) {}
  Result<bool> TryLock(const Fd& file, uint64_t byte, LockMode mode) override {
    act_();
    return PassFs::TryLock(file, byte, mode);
  }

 private:
  std::function<void()> act_;
};

// Somebody else takes the file away between the opening and the locking of it: without
// a second look two would hold one lock, each through a file of its own.
TEST(LockFile, NobodyHoldsALockOfAFileThatWasMovedAway) {
  const auto acquire = [](StoreLocks& locks, int which) -> Result<HeldLock> {
    switch (which) {
      case 0:
        return locks.Acquire(StoreLock::kAppend, LockMode::kExclusive);
      case 1:
        return locks.Acquire(StoreLock::kUse, LockMode::kExclusive);
      case 2:
        return locks.AcquireRoot(RootId(), 0);
      case 3:
        return locks.AcquireNamed("session", LockMode::kExclusive, 0, "held");
      default: {
        BELAY_TRY(auto held,
                  locks.TryAcquire(StoreLock::kCollector, LockMode::kExclusive));
        if (!held) return Error(Errc::kBusy, "held");
        return std::move(*held);
      }
    }
  };
  for (int which = 0; which < 5; ++which)
    for (bool made_anew : {false, true}) {
      SCOPED_TRACE(std::to_string(which) + (made_anew ? ", made anew" : ""));
      MemFs disk;
      FakeClock clock;
      Fd dir = TopOf(disk);
      StoreLocks other(disk, clock, dir, 0);
      std::optional<HeldLock> others;
      int moved = 0;
      BeforeLocking fs(disk, [&] {
        if (moved++ != 0) return;
        Must(disk.Rename(dir, N("lock"), dir, N("lock.aside"), RenameHow::kNoReplace));
        if (made_anew) others = Must(acquire(other, which));
      });
      StoreLocks first(fs, clock, dir, 0);
      auto held = acquire(first, which);
      EXPECT_EQ(moved, 2);  // it tried the file that came after it, too
      if (made_anew) {
        // The other one has it under the present name.
        ASSERT_FALSE(held.ok());
        EXPECT_EQ(held.error().code, Errc::kBusy) << held.error().what;
        others.reset();
        EXPECT_TRUE(acquire(first, which).ok());
      } else {
        ASSERT_TRUE(held.ok()) << held.error().what;
        EXPECT_FALSE(acquire(other, which).ok());
      }
    }
}

// A lock was held when the file was moved away: what is acquired from then on is
// acquired under the present name, by its holder, too.
TEST(LockFile, AllAgreeOnTheFileUnderThePresentName) {
  MemFs disk;
  FakeClock clock;
  Fd dir = TopOf(disk);
  StoreLocks one(disk, clock, dir, 0);
  StoreLocks two(disk, clock, dir, 0);
  HeldLock before = Must(one.Acquire(StoreLock::kUse, LockMode::kShared));
  Must(disk.Rename(dir, N("lock"), dir, N("lock.aside"), RenameHow::kNoReplace));
  HeldLock append = Must(two.Acquire(StoreLock::kAppend, LockMode::kExclusive));
  EXPECT_FALSE(one.Acquire(StoreLock::kAppend, LockMode::kExclusive).ok());
  append.Release();
  append = Must(one.Acquire(StoreLock::kAppend, LockMode::kExclusive));
  EXPECT_FALSE(two.Acquire(StoreLock::kAppend, LockMode::kExclusive).ok());
}

TEST(LockFile, AFileThatIsMovedAwayAllTheTimeIsGivenUp) {
  MemFs disk;
  FakeClock clock;
  Fd dir = TopOf(disk);
  int moved = 0;
  BeforeLocking fs(disk, [&] {
    Must(disk.Rename(dir, N("lock"), dir, N("aside" + std::to_string(++moved)),
                     RenameHow::kNoReplace));
  });
  StoreLocks locks(fs, clock, dir, 200);
  auto held = locks.Acquire(StoreLock::kAppend, LockMode::kExclusive);
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code, Errc::kBusy);
  EXPECT_FALSE(locks.TryAcquire(StoreLock::kCollector, LockMode::kExclusive).ok());
  EXPECT_LE(moved, 100);
  // No lock on the way is left behind: nobody but them moves it.
  StoreLocks other(disk, clock, dir, 0);
  EXPECT_TRUE(other.Acquire(StoreLock::kAppend, LockMode::kExclusive).ok());
}

// Lets somebody else do something before and after the first renaming of `lock`.
class AroundMoving final : public PassFs {
 public:
  AroundMoving(Fs& inner, std::function<void()> before, std::function<void()> after)
      : PassFs(inner), before_(std::move(before)), after_(std::move(after)) {}
  Status Rename(const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to,
                RenameHow how) override {
    const bool first = from == N("lock") && !std::exchange(moved_, true);
    if (first) before_();
    Status done = PassFs::Rename(from_dir, from, to_dir, to, how);
    if (first) after_();
    return done;
  }

 private:
  std::function<void()> before_, after_;
  bool moved_ = false;
};

// A store whose `lock` is a directory, and another repair that is faster.
class TwoRepairs {
 public:
  TwoRepairs() {
    Must(MakeCheckpoint(*Must(world_.Open()), "one", {{"a", "b"}}));
    dir_ = Must(disk_.OpenDir(world_.dir));
    Must(disk_.Unlink(dir_, N("lock")));
    Must(disk_.MakeDir(dir_, N("lock"), 0700));
  }
  MemFs& disk() { return disk_; }
  World& world() { return world_; }
  const Fd& dir() { return dir_; }
  // The other one has moved the directory aside, and a writer is at work.
  void TheOtherIsFaster() {
    Must(disk_.Rename(dir_, N("lock"), dir_, N("other"), RenameHow::kNoReplace));
    held_ = Must(locks_.Acquire(StoreLock::kAppend, LockMode::kExclusive));
    file_ = Must(disk_.StatAt(dir_, N("lock"))).ino;
  }
  uint64_t file() const { return file_; }
  StoreLocks& locks() { return locks_; }
  Result<RepairReport> Repair(Fs& fs) {
    return RepairStore(fs, world_.clock, world_.random, world_.dir, world_.options);
  }

 private:
  MemFs disk_;
  World world_{disk_};
  Fd dir_;
  StoreLocks locks_{disk_, world_.clock, dir_, 0};
  HeldLock held_;
  uint64_t file_ = 0;
};

TEST(LockFile, ARepairPutsBackWhatAnotherHadPutRight) {
  TwoRepairs two;
  AroundMoving fs(
      two.disk(), [&] { two.TheOtherIsFaster(); }, [] {});
  auto repaired = two.Repair(fs);
  ASSERT_FALSE(repaired.ok());
  EXPECT_EQ(repaired.error().code, Errc::kBusy) << repaired.error().what;
  EXPECT_EQ(Must(two.disk().StatAt(two.dir(), N("lock"))).ino, two.file());
  EXPECT_FALSE(two.disk().StatAt(two.dir(), N("lock.aside")).ok());
  EXPECT_FALSE(two.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive).ok());
}

TEST(LockFile, WhatCannotBePutBackIsKeptAndSaid) {
  TwoRepairs two;
  AroundMoving fs(
      two.disk(), [&] { two.TheOtherIsFaster(); },
      [&] { Must(two.disk().Open(two.dir(), N("lock"), OpenMode::CreateNew())); });
  auto repaired = two.Repair(fs);
  ASSERT_FALSE(repaired.ok());
  EXPECT_NE(repaired.error().what.find("is now lock.aside"), std::string::npos)
      << repaired.error().what;
  EXPECT_FALSE(repaired.error().hint.empty());
  EXPECT_EQ(Must(two.disk().StatAt(two.dir(), N("lock.aside"))).ino, two.file());
}

TEST(LockFile, ARepairGoesOnWhenAnotherHasClearedTheWay) {
  TwoRepairs two;
  AroundMoving fs(
      two.disk(),
      [&] {
        Must(two.disk().Rename(two.dir(), N("lock"), two.dir(), N("other"),
                               RenameHow::kNoReplace));
      },
      [] {});
  auto repaired = two.Repair(fs);
  EXPECT_TRUE(repaired.ok()) << repaired.error().what;
}

// A FIFO can be locked like a file, so it may stay; but not open to others.
TEST(LockFile, AFifoIsMadePrivate) {
  FsWorld disk(FsKind::kReal);
  Fd dir = Must(disk.fs().OpenDir(disk.path()));
  Must(disk.fs().SetMode(dir, 0700));
  ASSERT_EQ(mkfifoat(dir.handle(), "lock", 0600), 0);
  ASSERT_EQ(fchmodat(dir.handle(), "lock", 0666, 0), 0);
  const std::vector<std::string> expected = {"lock"};
  EXPECT_EQ(Must(OpenToOthers(disk.fs(), dir, /*put_right=*/false)), expected);
  EXPECT_EQ(Must(disk.fs().StatAt(dir, N("lock"))).mode, 0666u);
  EXPECT_EQ(Must(OpenToOthers(disk.fs(), dir, /*put_right=*/true)), expected);
  EXPECT_EQ(Must(disk.fs().StatAt(dir, N("lock"))).mode, 0600u);
  EXPECT_TRUE(Must(OpenToOthers(disk.fs(), dir, /*put_right=*/true)).empty());
}

TEST(LockFile, TheModesOfWhatWasMovedAsideAreLeftAlone) {
  TwoRepairs two;  // of which there is one here
  MemFs& disk = two.disk();
  Must(
      disk.SetMode(Must(disk.Open(two.dir(), N("lock"), OpenMode::Directory())), 0755));
  Must(disk.MakeDir(two.dir(), N("x.aside12"), 0755));
  Must(disk.MakeSpecial(two.dir(), N("y.aside"), FileType::kFifo, 0666));
  auto repaired = Must(two.Repair(disk));
  EXPECT_EQ(repaired.done.front(), "lock was a directory: moved aside, now lock.aside");
  for (const std::string& line : repaired.done)
    EXPECT_EQ(line.find("private now"), std::string::npos) << line;
  EXPECT_EQ(Must(disk.StatAt(two.dir(), N("lock.aside"))).mode, 0755u);
  EXPECT_EQ(Must(disk.StatAt(two.dir(), N("x.aside12"))).mode, 0755u);
  EXPECT_EQ(Must(disk.StatAt(two.dir(), N("y.aside"))).mode, 0666u);
  // A file may be a pack of ours that was moved aside: that stays private.
  Must(disk.Open(two.dir(), N("z.aside"), OpenMode::CreateNew(0644)));
  Must(two.Repair(disk));
  EXPECT_EQ(Must(disk.StatAt(two.dir(), N("z.aside"))).mode, 0600u);
}

}  // namespace
}  // namespace belay::test
