// A rollback under a running turn says so.

#include "restore/running.h"

#include <gtest/gtest.h>

#include "support/agent_world.h"

namespace belay::test {
namespace {

constexpr int64_t kMinute = 60'000;

class RunningTest : public ::testing::Test {
 protected:
  RunningTest() {
    w_.Start("s");
    w_.Prompt("s", "tidy up\nall of it");
    target_ = w_.last;
    w_.Write("s", "t1", "one", "1");
  }
  void Later(int64_t minutes) {
    w_.world.world.clock.SetWallMillis(w_.world.world.clock.WallMillis() +
                                       minutes * kMinute);
  }
  std::string Warning() {
    std::string out;
    for (const std::string& one : Must(w_.Preview(target_)).warnings) out += one + "\n";
    return out;
  }

  MemFs disk_;
  AgentWorld w_{disk_};
  Checkpoint target_;
};

TEST_F(RunningTest, ThePlanSaysWhoIsInATurn) {
  EXPECT_EQ(Warning(),
            "claude is in a turn here ('tidy up'), last heard of a moment ago: what it "
            "goes on to write is not taken back\n");
  Later(12);
  EXPECT_NE(Warning().find("last heard of 12 minutes ago"), std::string::npos);
  // Also when nobody looked at a plan.
  const Outcome done = Must(w_.Back(target_));
  ASSERT_EQ(done.warnings.size(), 1u);
}

TEST_F(RunningTest, NotWhenItHasEnded) {
  w_.End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Warning(), "");
}

TEST_F(RunningTest, NotWhenTheSessionHasEnded) {
  w_.End(EventKind::kSessionEnd, "s");
  EXPECT_EQ(Warning(), "");
}

TEST_F(RunningTest, NotOfOneThatWasKilledLongAgo) {
  Later(29);
  EXPECT_NE(Warning(), "");
  Later(2);
  EXPECT_EQ(Warning(), "");
}

TEST_F(RunningTest, ALongCommandIsNoSilence) {
  w_.Pre("s", "t2");
  Later(200);
  EXPECT_NE(Warning().find("last heard of 200 minutes ago"), std::string::npos);
  Later(41);
  EXPECT_EQ(Warning(), "");
}

// `/rollback` at an agent whose last turn was interrupted, which no agent tells.
TEST_F(RunningTest, WhoAsksIsNotRunning) {
  w_.asked_by = {.session = "s"};
  EXPECT_EQ(Warning(), "");
  w_.asked_by = {.agent = "claude"};
  EXPECT_EQ(Warning(), "");
  w_.asked_by = {.agent = "codex"};
  EXPECT_NE(Warning(), "");
}

TEST_F(RunningTest, OthersAreThough) {
  w_.Start("other");
  w_.Prompt("other", "meanwhile");
  w_.asked_by = {.session = "s"};
  EXPECT_NE(Warning().find("'meanwhile'"), std::string::npos);
  EXPECT_EQ(Warning().find("'tidy up'"), std::string::npos);
  // Of two sessions of one agent it is the one that spoke last.
  w_.asked_by = {.agent = "claude"};
  EXPECT_EQ(Warning().find("'meanwhile'"), std::string::npos);
  EXPECT_NE(Warning().find("'tidy up'"), std::string::npos);
}

TEST_F(RunningTest, ThePromptThatAsksIsNoTurnAtWork) {
  w_.Prompt("s", "/rollback 2");
  EXPECT_EQ(Warning(), "");
}

TEST_F(RunningTest, NothingToDoNeedsNoWarning) {
  w_.Prompt("s", "again");
  target_ = w_.last;
  EXPECT_EQ(Warning(), "");
}

}  // namespace
}  // namespace belay::test
