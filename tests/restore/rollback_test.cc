// A rollback takes a directory back, whole, and can itself be taken back.

#include <gtest/gtest.h>

#include "restore/journal.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

class RollbackTest : public ::testing::Test {
 protected:
  RollbackTest() : world(disk, AbsPath::Literal("/m")) {
    Must(MakeDirs(disk, AbsPath::Literal("/m"), 0755));
    root = Must(world.Dir());
  }
  void Put(std::string_view path, std::string_view content, uint32_t mode = 0644) {
    Must(PutFile(disk, root, P(path), content, mode));
  }
  void MakeDir(std::string_view path) {
    Parent parent = Must(OpenParent(disk, root, P(path)));
    Must(disk.MakeDir(parent.dir, parent.name, 0755));
  }
  void Remove(std::string_view path) {
    Parent parent = Must(OpenParent(disk, root, P(path)));
    Must(disk.Unlink(parent.dir, parent.name));
  }

  MemFs disk;
  RestoreWorld world;
  Fd root;
};

TEST_F(RollbackTest, BringsBackWhatWasEditedDeletedAndCreated) {
  MakeDir("src");
  Put("src/a", "one");
  Put("src/b", "two", 0600);
  Must(disk.Symlink(root, N("link"), "src/a"));
  Must(world.Capture("start"));
  const std::string before = world.Tree();
  Put("src/a", "edited by an agent");
  Remove("src/b");
  Put("src/new", "made by an agent");
  Remove("link");
  Must(disk.Symlink(root, N("link"), "elsewhere"));
  const std::string after = world.Tree();

  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(world.Tree(), before);
  EXPECT_TRUE(done.verified);
  ASSERT_TRUE(done.operation);
  ASSERT_TRUE(done.safety);
  Must(world.Undo());
  EXPECT_EQ(world.Tree(), after);
  Must(world.Redo());
  EXPECT_EQ(world.Tree(), before);
}

TEST_F(RollbackTest, NothingToDoMakesNoOperationAndNoCheckpoint) {
  Put("a", "one");
  Must(world.Capture("start"));
  Outcome done = Must(world.Rollback("start"));
  EXPECT_FALSE(done.operation);
  EXPECT_FALSE(done.safety);
}

}  // namespace
}  // namespace belay::test
