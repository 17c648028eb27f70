// Commands of the user's: what is run, how long, and what comes of it.

#include "agent/user_hooks.h"

#include <gtest/gtest.h>

#include "base/real_fs.h"
#include "support/agent_world.h"
#include "support/fs_world.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

class UserHooks : public testing::Test {
 protected:
  UserHookPlace Place() {
    return {.directory = AbsPath::Literal("/"),
            .environment = {},
            .exec_path = "/usr/bin:/bin"};
  }
  std::vector<UserHookRun> Run(const std::vector<Argv>& commands,
                               WhenOneFails then = WhenOneFails::kStop,
                               const std::string& input = "{}") {
    return RunUserHooks(fs, Place(), "before_rollback", commands, input, then);
  }
  RealFs fs;
};

TEST_F(UserHooks, GetTheInputAndAreHeard) {
  const auto runs = Run({{"/bin/cat"}}, WhenOneFails::kStop, R"({"plan":1})");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(runs[0].ok()) << runs[0].trouble;
  EXPECT_EQ(runs[0].exit, 0);
  EXPECT_EQ(runs[0].output, R"({"plan":1})");
  EXPECT_EQ(runs[0].hook, "before_rollback");
}

TEST_F(UserHooks, ArgumentsAreNoShell) {
  const auto runs = Run({{"/bin/echo", "$HOME", "; exit 1", "*"}});
  EXPECT_EQ(runs[0].output, "$HOME ; exit 1 *");
}

TEST_F(UserHooks, TheFirstThatFailsEndsThem) {
  const auto runs = Run({{"/bin/true"}, {"/bin/false"}, {"/bin/true"}});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_FALSE(runs[1].ok());
  EXPECT_EQ(runs[1].exit, 1);
}

TEST_F(UserHooks, AfterwardsEachHasItsTurn) {
  EXPECT_EQ(Run({{"/bin/false"}, {"/bin/true"}}, WhenOneFails::kGoOn).size(), 2u);
}

TEST_F(UserHooks, OneThatTakesTooLongIsEndedAndHasFailed) {
  UserHookPlace place = Place();
  place.timeout_ms = 50;
  const auto runs =
      RunUserHooks(fs, place, "h", {{"/bin/sleep", "600"}}, "", WhenOneFails::kStop);
  EXPECT_TRUE(runs[0].timed_out);
  EXPECT_FALSE(runs[0].ok());
}

TEST_F(UserHooks, OneThatIsNotThereHasFailed) {
  EXPECT_EQ(Run({{"/nowhere/at-all"}})[0].trouble,
            "could not be run: No such file or directory");
  EXPECT_EQ(Run({{"no-such-program-anywhere"}})[0].trouble, "is not in PATH");
}

TEST_F(UserHooks, WordsAreLookedForInAbsoluteDirectoriesAlone) {
  TempDir dir;
  Must(PutFile(fs, Must(fs.OpenDir(dir.path())), RelPath::Literal("hooked"),
               "#!/bin/sh\necho mine\n"));
  ASSERT_EQ(chmod((dir.path().bytes() + "/hooked").c_str(), 0755), 0);
  UserHookPlace place = Place();
  place.directory = dir.path();
  place.exec_path = ".::relative:/bin";
  auto run = [&](const std::string& word) {
    return RunUserHooks(fs, place, "h", {{word}}, "", WhenOneFails::kStop)[0];
  };
  EXPECT_FALSE(run("hooked").ok());
  EXPECT_FALSE(run("./hooked").ok());
  EXPECT_EQ(ProgramOf(fs, "./hooked", place.exec_path).error().code, Errc::kRefused);
  place.exec_path = dir.path().bytes();
  EXPECT_EQ(run("hooked").output, "mine");
}

TEST_F(UserHooks, ADirectoryThatIsGoneStopsNobody) {
  UserHookPlace place = Place();
  place.directory = AbsPath::Literal("/nowhere/at-all");
  EXPECT_TRUE(
      RunUserHooks(fs, place, "h", {{"/bin/true"}}, "", WhenOneFails::kStop)[0].ok());
}

TEST_F(UserHooks, WhatRunsInsideKnowsIt) {
  const auto runs = Run({{"/usr/bin/printenv", "BELAY_HOOK"}});
  EXPECT_EQ(runs[0].output, "before_rollback");
}

// A session at work, and a command that changes the directory before a rollback of it.
class BeforeRollbackTest : public ::testing::Test {
 protected:
  BeforeRollbackTest() {
    w_.Start("s");
    w_.Prompt("s");
    target_ = w_.last;
    w_.Write("s", "t1", "mine", "1");
  }
  // What it does, between two looks.
  void Hook(const std::function<void()>& does) {
    const Plan before = Look();
    does();
    w_.by_hook = ChangedBetween(before, Look());
  }
  Plan Look() {
    w_.outside = OnOutside::kAsk;
    return Must(w_.Preview(target_)).plan;
  }

  MemFs disk_;
  AgentWorld w_{disk_};
  Checkpoint target_;
};

// Mutant: a-hook-is-somebody-else.
TEST_F(BeforeRollbackTest, WhatItDidIsTakenBackAndInTheSafetyCheckpoint) {
  Hook([&] {
    w_.Put("mine", "by the hook");
    w_.Put("dumps/dump.sql", "rows");
  });
  const Outcome done = Must(w_.Back(target_));
  ASSERT_TRUE(done.operation);
  EXPECT_EQ(w_.Files(), "old.txt ");
  w_.by_hook.clear();
  Must(w_.world.Undo());
  EXPECT_EQ(w_.At("/top/project/mine"), "by the hook");
  EXPECT_EQ(w_.At("/top/project/dumps/dump.sql"), "rows");
}

// Mutant: a-hook-hides-what-others-did.
TEST_F(BeforeRollbackTest, WhatOthersHadChangedIsAskedAboutAllTheSame) {
  w_.Put("mine", "typed by hand");
  Hook([&] { w_.Put("mine", "by the hook, over it"); });
  const auto refused = w_.Back(target_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_EQ(w_.At("/top/project/mine"), "by the hook, over it");
}

// Mutant: all-since-a-hook-is-its-doing.
TEST_F(BeforeRollbackTest, WhatIsChangedBehindItIsAskedAbout) {
  Hook([&] { w_.Put("dump.sql", "rows"); });
  w_.Put("dump.sql", "typed by hand");
  EXPECT_FALSE(w_.Back(target_).ok());
  w_.Put("dump.sql", "rows");
  w_.Put("other", "typed by hand");
  const auto refused = w_.Back(target_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("others since: other"), std::string::npos);
  EXPECT_EQ(w_.At("/top/project/other"), "typed by hand");
}

// Others are at work meanwhile: whose doing it is nobody can tell.
TEST_F(BeforeRollbackTest, WhatASessionMayHaveDoneStays) {
  w_.Start("other");
  w_.Prompt("other");
  w_.Pre("other", "t2");
  Hook([&] { w_.Put("dump.sql", "rows"); });
  const Outcome done = Must(w_.Back(target_));
  ASSERT_TRUE(done.operation);
  EXPECT_EQ(w_.Files(), "dump.sql old.txt ");
  ASSERT_EQ(done.plan.kept.size(), 1u);
  EXPECT_EQ(done.plan.kept[0].path, "dump.sql");
}

// And of what others did a preview tells beside that.
TEST_F(BeforeRollbackTest, APreviewTellsOfOthersAlsoWhereSomethingIsToStay) {
  w_.Put("theirs", "typed by hand");
  w_.Start("other");
  w_.Prompt("other");
  w_.Pre("other", "t2");
  Hook([&] { w_.Put("dump.sql", "rows"); });
  EXPECT_EQ(Look().outside, (std::vector<std::string>{"theirs"}));
  const auto refused = w_.Back(target_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("others since: theirs"), std::string::npos);
}

TEST_F(BeforeRollbackTest, WithKeepOutsideWhatOthersDidStaysAndWhatItDidGoes) {
  w_.Put("theirs", "typed by hand");
  Hook([&] {
    w_.Put("mine", "by the hook");
    w_.Put("dump.sql", "rows");
  });
  w_.outside = OnOutside::kKeep;
  Must(w_.Back(target_));
  EXPECT_EQ(w_.Files(), "old.txt theirs ");
}

}  // namespace
}  // namespace belay::test
