// Repositories inside: what comes back with --git-nested, also when the directory that
// one is in is gone, in one go; and what is said when it is not asked for.

#include <gtest/gtest.h>

#include "support/git_rollback_fixture.h"

namespace belay::test {
namespace {

class GitNestedTest : public GitRollbackTest {
 protected:
  GitNestedTest() {
    world_.settings.git_protect = true;
    world_.git.nested = true;
    Do("mkdir d; git init -q -b main d/in; cd d/in; echo x >x; git add x\n"
       "git commit -qm inner; echo staged >>x; git add x; echo not >>x; echo n >n\n"
       "git stash list; git branch side");
  }
  // Of the outer repository, and of an inner one; that there is none.
  std::string LookIn(const std::string& below) {
    if (!IsThere(below + "/.git")) return "none";
    auto seen = See(temp_ / ("project/" + below));
    return seen.ok() ? *seen : seen.error().what;
  }
  std::string All(const std::string& below = "d/in") {
    auto names = RunProgram(AbsPath::Literal("/bin/sh"), world_.project,
                            {"-c",
                             "find . -name .git -prune -o -printf '%p %y %m %l\\n' | "
                             "sort"});
    return LookIn(below) + Look() + (names.ok() ? *names : "");
  }
  // Rollback, undo and redo, twice; nothing is said but what is expected.
  void ThereAndBack(const std::string& start, const std::string& below = "d/in") {
    const std::string before = All(below);
    auto preview = world_.Preview("start");
    ASSERT_TRUE(preview.ok()) << preview.error().what;
    EXPECT_EQ(All(below), before);
    auto done = world_.Rollback("start");
    ASSERT_TRUE(done.ok()) << done.error().what;
    for (const std::string& warning : done->plan.warnings) ADD_FAILURE() << warning;
    EXPECT_TRUE(done->verified);
    EXPECT_EQ(GitPlanText(preview->plan.git), GitPlanText(done->plan.git));
    EXPECT_EQ(All(below), start);
    for (int i = 0; i < 2; ++i) {
      auto undone = world_.Undo();
      ASSERT_TRUE(undone.ok()) << undone.error().what;
      for (const Conflict& c : undone->conflicts) ADD_FAILURE() << c.path;
      EXPECT_EQ(All(below), before);
      auto redone = world_.Redo();
      ASSERT_TRUE(redone.ok()) << redone.error().what;
      EXPECT_EQ(All(below), start);
    }
    Do("test -z \"$(find . -name '.belay-*')\"");
  }
};

TEST_F(GitNestedTest, ACloneThatIsGoneComesBackInOneGoAndGoesByUndo) {
  Take("start");
  const std::string start = All();
  Do("rm -rf d; echo y >>b");
  ThereAndBack(start);
}

TEST_F(GitNestedTest, SoDoesOneWhoseDirectoryIsAFileByNow) {
  Take("start");
  const std::string start = All();
  Do("rm -rf d/in; echo file >d/in");
  ThereAndBack(start);
}

// What is led to lies outside: nobody's work tree here.
TEST_F(GitNestedTest, NothingIsWrittenThroughASymlinkInItsPlace) {
  for (const bool repository : {false, true}) {
    const AbsPath away = temp_ / (repository ? "away2" : "away1");
    Do(repository ? "git init -q -b main .; git commit -q --allow-empty -m theirs"
                  : "echo theirs >x",
       away);
    auto theirs =
        RunProgram(AbsPath::Literal("/bin/sh"), away, {"-c", "find . | sort"});
    ASSERT_TRUE(theirs.ok());
    Take("start");
    const std::string start = All();
    Do("rm -rf d/in; ln -s " + away.bytes() + " d/in");
    auto done = world_.Rollback("start");
    ASSERT_TRUE(done.ok()) << done.error().what;
    EXPECT_EQ(All(), start);
    auto now = RunProgram(AbsPath::Literal("/bin/sh"), away, {"-c", "find . | sort"});
    ASSERT_TRUE(now.ok());
    EXPECT_EQ(*now, *theirs);
    ASSERT_TRUE(world_.Undo().ok());
    Do("test -L d/in");
    ASSERT_TRUE(world_.Redo().ok());
    EXPECT_EQ(All(), start);
  }
}

TEST_F(GitNestedTest, SeveralComeBackAtOnce) {
  Do("git clone -q d/in two; git clone -q d/in d/in/deep; echo z >>d/in/deep/x");
  Take("start");
  const std::string start = All("two") + LookIn("d/in") + LookIn("d/in/deep");
  Do("rm -rf two d");
  auto done = world_.Rollback("start");
  ASSERT_TRUE(done.ok()) << done.error().what;
  EXPECT_EQ(All("two") + LookIn("d/in") + LookIn("d/in/deep"), start);
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok()) << undone.error().what;
  EXPECT_FALSE(IsThere("two"));
  EXPECT_FALSE(IsThere("d"));
}

TEST_F(GitNestedTest, WithTheRootItselfGoneAllOfThemComeBack) {
  Take("start");
  const std::string start = All();
  Do("rm -rf project", temp_.path());
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok()) << preview.error().what;
  auto done = world_.Rollback("start");
  ASSERT_TRUE(done.ok()) << done.error().what;
  EXPECT_EQ(All(), start);
  EXPECT_EQ(GitPlanText(preview->plan.git), GitPlanText(done->plan.git));
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok()) << undone.error().what;
  EXPECT_FALSE(fs_.OpenDir(world_.project).ok());
  ASSERT_TRUE(world_.Redo().ok());
  EXPECT_EQ(All(), start);
}

TEST_F(GitNestedTest, AnUndoTakesNoneAwayThatWasUsedSince) {
  Take("start");
  Do("rm -rf d");
  MustBack("start", {.nested = true});
  Do("git commit -qam mine", temp_ / "project/d/in");
  const std::string used = All();
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok());
  EXPECT_FALSE(undone->conflicts.empty());
  EXPECT_EQ(All(), used);
}

TEST_F(GitNestedTest, WhatIsNotAskedForOrNotCoveredIsSaid) {
  Take("start");
  Do("rm -rf d");
  auto said = [](const Outcome& done, const std::string& text) {
    return std::ranges::any_of(done.plan.warnings, [&](const std::string& warning) {
      return warning.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(said(MustBack("start"), "git in d/in is gone and stays so"));
  EXPECT_TRUE(IsThere("d/in/x"));
  EXPECT_FALSE(IsThere("d/in/.git"));
  MustBack("start", {.nested = true});
  world_.settings.git_protect = false;
  Take("plain");
  Do("rm -rf d");
  EXPECT_TRUE(said(MustBack("plain", {.nested = true}),
                   "the git repository in d/in (.git) is gone"));
}

// Its git directory is in the outer one: all it takes is the file that leads there.
TEST_F(GitNestedTest, ASubmoduleThatIsGoneComesBackWithoutAnythingCovered) {
  world_.settings.git_protect = false;
  Do("git init -q -b main ../lib; git -C ../lib commit -q --allow-empty -m lib\n"
     "git -c protocol.file.allow=always submodule -q add ../lib sub\n"
     "git commit -qm sub -- .gitmodules sub; echo s >sub/s; git -C sub add s");
  Take("start");
  const std::string start = All("sub");
  for (const char* gone :
       {"rm -rf sub", "git submodule -q deinit -f sub; echo s >sub/s",
        "git rm -qf sub; rm -rf sub", "rm -rf sub; mkdir sub"}) {
    Do(gone);
    Do("git config submodule.sub.url ../lib");  // a setting, and left alone
    ThereAndBack(start, "sub");
  }
  // Used before it went: one that can be seen only when it is back.
  Do("git -C sub commit -qm agent; rm -rf sub");
  auto done = world_.Rollback("start");
  ASSERT_TRUE(done.ok()) << done.error().what;
  ASSERT_EQ(done->plan.warnings.size(), 1u);
  EXPECT_NE(done->plan.warnings[0].find("roll back once more"), std::string::npos);
  ASSERT_TRUE(world_.Rollback("start").ok());
  EXPECT_EQ(All("sub"), start);
}

}  // namespace
}  // namespace belay::test
