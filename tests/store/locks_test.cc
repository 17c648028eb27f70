// The file `lock`: what else may lie under its name, and who holds what when it is
// moved away.

#include "store/locks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "crash/hook_fs.h"
#include "store/private.h"
#include "store/repair.h"
#include "support/fs_world.h"
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

}  // namespace
}  // namespace belay::test
