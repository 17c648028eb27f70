// Kinds of index that are not plain: damaged, split, sparse. They come back, and
// looking at them (`git status` writes them anew) is no change.

#include <gtest/gtest.h>

#include "support/git_rollback_fixture.h"

namespace belay::test {
namespace {

class GitIndexTest : public GitRollbackTest {};

TEST_F(GitIndexTest, ADamagedIndexIsReplacedAndComesAgainByUndo) {
  for (const bool protect : {false, true}) {
    world_.settings.git_protect = protect;
    const std::string name = protect ? "protected" : "plain";
    Take(name);
    const std::string start = Look();
    for (const char* damage :
         {"echo garbage >.git/index", "printf x >>.git/index", ": >.git/index"}) {
      Do(damage);
      auto damaged = GetFile(fs_, Must(fs_.OpenDir(world_.project)), P(".git/index"));
      ASSERT_TRUE(damaged.ok());
      MustBack(name);
      EXPECT_EQ(Look(), start) << damage;
      auto undone = world_.Undo();
      ASSERT_TRUE(undone.ok()) << undone.error().what;
      EXPECT_EQ(*GetFile(fs_, Must(fs_.OpenDir(world_.project)), P(".git/index")),
                *damaged)
          << damage;
      ASSERT_TRUE(world_.Redo().ok());
      EXPECT_EQ(Look(), start) << damage;
    }
  }
}

TEST_F(GitIndexTest, ACheckpointOfADamagedIndexSaysSoAndBringsItBack) {
  Do("echo garbage >.git/index");
  const Captured start = Take("damaged");
  EXPECT_FALSE(start.warnings.empty());
  Do("git read-tree HEAD; echo y >>b; git add b");
  MustBack("damaged");
  EXPECT_EQ(*GetFile(fs_, Must(fs_.OpenDir(world_.project)), P(".git/index")),
            "garbage\n");
}

// Touching a file makes git write its index anew, with nothing else staged.
TEST_F(GitIndexTest, LookingAtASplitOrSparseIndexIsNoChange) {
  for (const char* kind :
       {"git config splitIndex.maxPercentChange 100; git update-index --split-index",
        "git update-index --no-split-index; mkdir -p d e; echo 1 >d/1; echo 2 >e/2\n"
        "git add d e; git commit -qm dirs; echo s >>a; git add a\n"
        "git sparse-checkout init --cone --sparse-index; git sparse-checkout set d"}) {
    Do(kind);
    auto first = world_.Capture("start");
    ASSERT_TRUE(first.ok());
    const std::string start = Look();
    Do("touch -d '1 hour ago' a b; GIT_OPTIONAL_LOCKS=1 git status -s >/dev/null");
    auto second = world_.Capture("looked");
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(first->checkpoint.state, second->checkpoint.state) << kind;
    Do("echo more >>b; git add b; git commit -qm more");
    const std::string later = Look();
    MustBack("start");
    EXPECT_EQ(Look(), start) << kind;
    Do("touch -d '2 hours ago' a b; GIT_OPTIONAL_LOCKS=1 git status -s >/dev/null");
    auto undone = world_.Undo();
    ASSERT_TRUE(undone.ok()) << undone.error().what;
    EXPECT_TRUE(undone->conflicts.empty()) << kind;
    EXPECT_EQ(Look(), later) << kind;
  }
}

// A split index that became a plain one and back: what is kept is whole by itself.
TEST_F(GitIndexTest, ASplitIndexThatWasJoinedSinceComesBack) {
  Do("git update-index --split-index");
  Take("start");
  const std::string start = Look();
  Do("git update-index --no-split-index; rm -f .git/sharedindex.*");
  Take("joined");
  Do("echo more >>b; git add b");
  MustBack("joined");
  EXPECT_EQ(Look(), start);
  Do("echo more >>b; git add b");
  MustBack("start");
  EXPECT_EQ(Look(), start);
}

}  // namespace
}  // namespace belay::test
