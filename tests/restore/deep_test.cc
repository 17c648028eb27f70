// Trees that are deep, and stopping: what a rollback costs grows with the number of
// directories, not with its square, and Ctrl-C is heard in all of it.

#include "restore/dir_chain.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

class DeepTest : public RollbackTest {
 protected:
  static constexpr uint64_t kLevels = 300;
  // Per directory, all in all: the scan, the plan, the move, the flush, the check.
  static constexpr uint64_t kCalls = 80 * kLevels;

  DeepTest() {
    for (uint64_t i = 0; i < kLevels; ++i) {
      deep += i == 0 ? "d" : "/d";
      MakeDir(deep);
    }
    Put(deep + "/leaf", "then");
    Must(world.Capture("start"));
    start = Tree();
  }
  // Calls of what `act` does with the same project.
  template <class Act>
  uint64_t CallsOf(const Act& act) {
    FaultFs counting(disk);
    Through through(counting, *this);
    act(through.world);
    return counting.calls();
  }
  std::string deep;
};

TEST_F(DeepTest, ARollbackOfADeepTreeTakesAFewCallsForEachDirectory) {
  Remove("d");
  const std::string without = Tree();
  auto rollback = [](RestoreWorld& w) {
    EXPECT_TRUE(Must(w.Rollback("start")).verified);
  };
  auto undo = [](RestoreWorld& w) { EXPECT_TRUE(Must(w.Undo()).verified); };
  auto redo = [](RestoreWorld& w) { EXPECT_TRUE(Must(w.Redo()).verified); };
  EXPECT_LT(CallsOf(rollback), kCalls);
  EXPECT_EQ(Tree(), start);
  EXPECT_LT(CallsOf(undo), kCalls);
  EXPECT_EQ(Tree(), without);
  EXPECT_LT(CallsOf(redo), kCalls);
  EXPECT_EQ(Tree(), start);
}

TEST_F(DeepTest, ADeepTreeGoesAgainInAFewCallsForEachDirectory) {
  Remove("d");
  Must(world.Capture("without"));
  const std::string without = Tree();
  Must(world.Rollback("start"));
  EXPECT_LT(CallsOf([](RestoreWorld& w) { Must(w.Rollback("without")); }), kCalls);
  EXPECT_EQ(Tree(), without);
}

TEST_F(DeepTest, AnInterruptedRollbackOfADeepTreeIsFinishedInAFewCalls) {
  Remove("d");
  {
    Fault cut = Fault::PowerCut(kLevels / 2);
    cut.only = {FsCall::kMakeDir};
    FaultFs dying(disk, cut);
    Through through(dying, *this);
    EXPECT_FALSE(through.world.Rollback("start").ok());
    ASSERT_TRUE(dying.fired());
  }
  EXPECT_LT(CallsOf([](RestoreWorld& w) {
              auto recovered = Must(w.Recover());
              ASSERT_TRUE(recovered);
              EXPECT_EQ(recovered->how, Recovered::How::kFinished);
            }),
            kCalls);
  EXPECT_EQ(Tree(), start);
  ExpectNoTraces();
}

TEST_F(DeepTest, ASymlinkOnTheWayIsNotFollowed) {
  Remove("d");
  std::string half = "d";
  for (uint64_t i = 1; i < kLevels / 2; ++i) half += "/d";
  std::string above;
  for (uint64_t i = 0; i + 1 < kLevels / 2; ++i) {
    above += i == 0 ? "d" : "/d";
    MakeDir(above);
  }
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(disk.MakeDir(top, N("outside"), 0755));
  Link(half, "/m/outside");
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
  Fd outside = Must(disk.OpenDir(AbsPath::Literal("/m/outside")));
  EXPECT_TRUE(Must(disk.List(outside)).empty());
}

TEST_F(DeepTest, TheChainKeepsFewDescriptorsOpen) {
  FaultFs counting(disk);
  const Fd top = Must(counting.OpenDir(world.project));
  DirChain chain(counting, top);
  Must(chain.At(deep));
  const uint64_t opened = counting.calls(FsCall::kOpen);
  EXPECT_EQ(opened, kLevels);
  const uint64_t open = opened - counting.calls(FsCall::kClose);
  EXPECT_LT(open, 90u);
  // And up again, each level by itself.
  for (std::string at = deep; at.size() > 1; at.resize(at.size() - 2)) {
    const Fd* handle = Must(chain.At(at));
    ASSERT_EQ(Must(counting.Stat(*handle)).ino, Stat(at).ino) << at.size();
    if (at.size() % 100 != 1) continue;
    chain.Leave(at);
    ASSERT_EQ(Must(counting.Stat(*Must(chain.At(at)))).ino, Stat(at).ino);
  }
  EXPECT_LT(counting.calls(FsCall::kOpen), 4 * kLevels);
}

// --- stopping ------------------------------------------------------------------------

class StopTest : public RollbackTest {};

// Asked as long as there is anything to do, also while all is looked at again.
TEST_F(StopTest, IsHeardAtEveryMomentUntilAllWasLookedAtAgain) {
  constexpr size_t kFiles = 20;
  for (size_t i = 0; i < kFiles; ++i) Put("f" + std::to_string(i), "then");
  Must(world.Capture("start"));
  for (size_t i = 0; i < kFiles; ++i) Put("f" + std::to_string(i), "now");
  now = Tree();
  size_t asked = 0, at = SIZE_MAX;
  world.stop = [&] { return ++asked >= at; };
  Must(world.Rollback("start"));
  const size_t all = asked;
  // By the plan, its check of content, of the ground, the move there, the last look.
  EXPECT_GE(all, 5 * kFiles);
  for (const bool redo : {false, true}) {
    world.stop = {};
    Must(world.Undo());
    ASSERT_EQ(Tree(), now);
    for (const size_t moment : {size_t{1}, all / 4, all / 2, all}) {
      asked = 0, at = moment;
      world.stop = [&] { return ++asked >= at; };
      auto done = redo ? world.Redo() : world.Rollback("start");
      if (done.ok() && redo) break;  // a redo asks less often
      ASSERT_FALSE(done.ok()) << moment;
      EXPECT_EQ(done.error().code, Errc::kRefused);
      EXPECT_NE(done.error().hint.find("nothing was changed"), std::string::npos);
      EXPECT_EQ(Tree(), now);
      ExpectNoTraces();
    }
    if (redo) break;
    world.stop = {};
    Must(world.Rollback("start"));
  }
}

}  // namespace
}  // namespace belay::test
