// The root directory itself is part of a state: its mode and owner come back, and so
// does the directory.

#include "base/fault_fs.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

class RootTest : public RollbackTest {
 protected:
  void SetRootMode(uint32_t mode) { Must(disk.SetMode(root, mode)); }
  uint32_t RootMode() { return Must(disk.Stat(root)).mode; }
  void BeUser() {
    world.plan.uid = 1000;
    world.plan.groups = {1000};
  }
};

TEST_F(RootTest, ItsModeIsRolledBackUndoneAndRedone) {
  BeUser();
  Put("a", "1");
  SetRootMode(0750);
  Must(world.Capture("private"));
  SetRootMode(0755);
  EXPECT_EQ(Steps(Must(world.Preview("private")).plan), "chmod .");
  EXPECT_EQ(RootMode(), 0755u);
  Outcome done = Must(world.Rollback("private"));
  ASSERT_TRUE(done.operation);
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(RootMode(), 0750u);
  EXPECT_FALSE(Must(world.Rollback("private")).operation) << "nothing is left to do";
  Must(world.Undo());
  EXPECT_EQ(RootMode(), 0755u);
  Must(world.Redo());
  EXPECT_EQ(RootMode(), 0750u);
  ExpectNoTraces();
}

// Whoever may not write into it on either side can all the same roll it back.
TEST_F(RootTest, AReadOnlyOneIsWidenedMeanwhileAndNoLonger) {
  BeUser();
  for (auto [then, later] : {std::pair{0555u, 0755u}, {0755u, 0555u}, {0500u, 0555u}}) {
    SCOPED_TRACE(then);
    SetRootMode(then);
    Put("a", "then");
    const std::string name = "m" + std::to_string(then) + std::to_string(later);
    Must(world.Capture(name));
    Put("a", "now");
    Put("new", "now");
    SetRootMode(later);
    Outcome done = Must(world.Rollback(name));
    EXPECT_TRUE(done.verified);
    EXPECT_EQ(RootMode(), then);
    EXPECT_EQ(Read("a"), "then");
    Must(world.Undo());
    EXPECT_EQ(RootMode(), later);
    EXPECT_EQ(Read("new"), "now");
    Remove("new");
    ExpectNoTraces();
  }
}

TEST_F(RootTest, SomePathsLeaveItAlone) {
  BeUser();
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  SetRootMode(0700);
  for (const char* some : {"a", "*"}) {
    world.plan.select = {some};
    EXPECT_EQ(Steps(Must(world.Preview("start")).plan), "write a");
  }
  world.plan.select = {""};  // `-- .`
  EXPECT_EQ(Steps(Must(world.Preview("start")).plan), "chmod ., write a");
}

TEST_F(RootTest, OfSomebodyElseItIsSaidToStay) {
  Put("a", "1");
  SetRootMode(0775);
  Must(world.Capture("start"));
  SetRootMode(0755);
  world.plan.uid = 77;
  world.plan.groups = {77};
  const Plan plan = Must(world.Preview("start")).plan;
  EXPECT_EQ(Steps(plan), "");
  EXPECT_EQ(Kept(plan), ". other_owner");
  EXPECT_TRUE(plan.kept[0].wanted);
}

// An owner is given by root alone.
TEST_F(RootTest, ItsOwnerComesBack) {
  Must(disk.SetOwner(root, 5, 6));
  Must(world.Capture("start"));
  Must(disk.SetOwner(root, 7, 8));
  Must(world.Rollback("start"));
  EXPECT_EQ(Must(disk.Stat(root)).uid, 5u);
  EXPECT_EQ(Must(disk.Stat(root)).gid, 6u);
  Must(world.Undo());
  EXPECT_EQ(Must(disk.Stat(root)).uid, 7u);
}

// A rollback that made the root and is cut off anywhere: it is there with everything in
// it, or gone again.
TEST_F(RootTest, MadeAgainAndCutOffItIsThereOrGone) {
  Put("d/a", "1");
  Must(world.Capture("start"));
  const std::string then = Tree();
  root = Fd();
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(RemoveTree(disk, top, N("project")));
  Must(disk.Sync(top));
  size_t back = 0, gone = 0;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(at);
    auto copy = disk.Clone();
    bool fired = false;
    {
      FaultFs broken(*copy, Fault::PowerCut(at));
      RestoreWorld dying(broken, AbsPath::Literal("/m"), 9, 1000);
      (void)dying.Rollback("start");
      fired = broken.fired();
    }
    copy->Crash(CrashPolicy::KeepAll());
    RestoreWorld after(*copy, AbsPath::Literal("/m"), 10, 1000);
    auto recovered = after.Recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().what;
    const std::string tree = after.Tree();
    if (tree == then) {
      ++back;
    } else {
      ++gone;
      // Before the journal there is nothing to take back by: an empty one may be left.
      ASSERT_TRUE(tree == "" || tree.find("No such file") != std::string::npos) << tree;
      Must(after.Rollback("start"));
      ASSERT_EQ(after.Tree(), then);
    }
    if (!fired) break;
  }
  EXPECT_GT(back, 3u);
  EXPECT_GT(gone, 3u);
}

// What is above it is nobody's but its owner's, also when a rollback had to make it.
TEST_F(RootTest, DirectoriesAboveItAreMadeAgainAndStayWhenThatIsUndone) {
  RestoreWorld deep(disk, AbsPath::Literal("/up/above"), 5, 1000);
  deep.world.dir = world.world.dir;
  Must(PutFile(disk, Must(deep.Dir()), P("a"), "1"));
  Must(deep.Capture("start"));
  const std::string then = deep.Tree();
  Must(RemoveTree(disk, Must(disk.OpenDir(AbsPath::Literal("/"))), N("up")));
  Must(deep.Rollback("start"));
  EXPECT_EQ(deep.Tree(), then);
  Outcome undone = Must(deep.Undo());
  EXPECT_FALSE(disk.OpenDir(deep.project).ok());
  EXPECT_TRUE(disk.OpenDir(AbsPath::Literal("/up/above")).ok());
  EXPECT_TRUE(Mentions(undone.warnings, "/up/above is empty now and stays"));
  // Something else is in it: nobody would think that it went.
  Fd above = Must(disk.OpenDir(AbsPath::Literal("/up/above")));
  Must(PutFile(disk, above, P("other"), "x"));
  Must(deep.Redo());
  EXPECT_EQ(deep.Tree(), then);
  EXPECT_FALSE(Mentions(Must(deep.Undo()).warnings, "stays"));
}

}  // namespace
}  // namespace belay::test
