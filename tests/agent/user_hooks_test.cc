// Commands of the user's: what is run, how long, and what comes of it.

#include "agent/user_hooks.h"

#include <gtest/gtest.h>

#include "base/real_fs.h"
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

}  // namespace
}  // namespace belay::test
