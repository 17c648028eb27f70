// Anchors: checkpoints as refs. The commands are tests/cli/git_refs.sh.

#include "commits/anchors.h"

#include "core/annotate.h"
#include "support/commit_world.h"

namespace belay::test {
namespace {

class AnchorTest : public CommitTest {
 protected:
  AnchorReport Anchored() {
    auto opened = world_.Open();
    EXPECT_TRUE(opened.ok());
    auto done = AnchorCheckpoints(*opened->store, *opened->catalog, opened->root,
                                  world_.settings, Places());
    EXPECT_TRUE(done.ok()) << done.error().what;
    return done.ok() ? *done : AnchorReport();
  }
  void Delete(const Captured& made) {
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok());
    ASSERT_TRUE(DeleteCheckpoints(*opened->store, *opened->catalog, opened->root,
                                  {made.checkpoint.id})
                    .ok());
    EXPECT_THAT(DropStaleAnchors(*opened->store, *opened->catalog, Places()).failed,
                testing::IsEmpty());
  }
  std::string Ref(const Captured& made) {
    return std::string(kAnchorRefs) + made.checkpoint.id.text();
  }
  bool IsThere(const Captured& made) {
    return Refs().find(Ref(made)) != std::string::npos;
  }
};

TEST_F(AnchorTest, GoesWithItsCheckpoint) {
  const Captured one = Take("one");
  Anchored();
  Do("echo more >c");
  const Captured two = Take("two");
  Anchored();
  ASSERT_TRUE(IsThere(one) && IsThere(two));
  Delete(one);
  EXPECT_FALSE(IsThere(one));
  EXPECT_TRUE(IsThere(two));
}

TEST_F(AnchorTest, IsMadeOfWhatChangedSinceTheLast) {
  Do("mkdir many; for i in $(seq 200); do echo $i >many/$i; done");
  Take("one");
  Anchored();
  Do("git gc -q; echo changed >many/7");
  const Captured two = Take("two");
  const AnchorReport report = Anchored();
  ASSERT_EQ(report.made, (std::vector<std::string>{Ref(two)}));
  // A blob, the tree it is in, the tree above, the commit.
  EXPECT_EQ(Git({"count-objects"}).substr(0, 9), "4 objects");
  EXPECT_EQ(Git({"show", Ref(two) + ":many/7"}), "changed");
  EXPECT_EQ(Git({"show", Ref(two) + ":many/8"}), "8");
}

TEST_F(AnchorTest, SecretsOfTodayAreNotTakenOverFromTheLast) {
  Do("echo token >x.token");
  Take("one");
  Anchored();
  world_.settings.secret_patterns.push_back("*.token");
  Do("echo more >c");
  const Captured two = Take("two");
  Anchored();
  EXPECT_EQ(Git({"ls-tree", "-r", "--name-only", Ref(two)}), "a\nb\nc");
}

TEST_F(AnchorTest, TheNewestOfEachSessionStay) {
  world_.settings.git_refs_keep = 2;
  std::vector<Captured> made;
  for (const char* session : {"x", "y"})
    for (int i = 0; i < 3; ++i) {
      made.push_back(Take(session + std::to_string(i), session));
      Anchored();
    }
  std::vector<bool> there;
  for (const Captured& one : made) there.push_back(IsThere(one));
  EXPECT_EQ(there, (std::vector<bool>{false, true, true, false, true, true}));
}

TEST_F(AnchorTest, AMissedOneComesWithTheNext) {
  const Captured one = Take("one");
  Anchored();
  const Captured two = Take("two");
  Do("echo c >c");
  const Captured three = Take("three");
  EXPECT_EQ(Anchored().made, (std::vector<std::string>{Ref(two), Ref(three)}));
  EXPECT_THAT(Anchored().made, testing::IsEmpty());
}

TEST_F(AnchorTest, NoneIsTakenAwayWhileSomebodyIsAtWorkOnTheRoot) {
  const Captured one = Take("one");
  Anchored();
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(DeleteCheckpoints(*opened->store, *opened->catalog, opened->root,
                                {one.checkpoint.id})
                  .ok());
  auto at_work = opened->store->locks().AcquireRoot(opened->root.id, 0);
  ASSERT_TRUE(at_work.ok());
  EXPECT_EQ(DropStaleAnchors(*opened->store, *opened->catalog, Places()).failed.size(),
            1u);
  EXPECT_TRUE(IsThere(one));
  at_work->Release();
  EXPECT_THAT(DropStaleAnchors(*opened->store, *opened->catalog, Places()).failed,
              testing::IsEmpty());
  EXPECT_FALSE(IsThere(one));
}

TEST_F(AnchorTest, NorWhileSomebodyIsAtWorkOnAnotherWorkTreeOfTheRepository) {
  const Captured one = Take("one");
  Anchored();
  // Behind the other in every list of roots: it is not the one that is looked at.
  const AbsPath linked = temp_ / "second";
  Do("git worktree add -q -b side ../second");
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  auto dir = fs_.OpenDir(linked);
  ASSERT_TRUE(dir.ok());
  auto stat = fs_.Stat(*dir);
  ASSERT_TRUE(stat.ok());
  auto other = RegisterRoot(*opened->store, *opened->catalog, linked, *stat, {});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(DeleteCheckpoints(*opened->store, *opened->catalog, opened->root,
                                {one.checkpoint.id})
                  .ok());
  auto at_work = opened->store->locks().AcquireRoot(other->root.id, 0);
  ASSERT_TRUE(at_work.ok());
  EXPECT_EQ(DropStaleAnchors(*opened->store, *opened->catalog, Places()).failed.size(),
            1u);
  EXPECT_TRUE(IsThere(one));
  at_work->Release();
  EXPECT_THAT(DropStaleAnchors(*opened->store, *opened->catalog, Places()).failed,
              testing::IsEmpty());
  EXPECT_FALSE(IsThere(one));
}

TEST_F(AnchorTest, NothingIsTouchedWhereThereAreNone) {
  const Captured one = Take("one");
  const std::string refs = Refs();
  Delete(one);
  EXPECT_EQ(Refs(), refs);
  Do("test ! -e .git/refs/belay");
}

}  // namespace
}  // namespace belay::test
