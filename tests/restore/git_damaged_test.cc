// Files of git's that hold nonsense: a rollback puts the good ones back, an undo what
// was there, byte for byte; no commit is lost by either.

#include <gtest/gtest.h>

#include "support/git_rollback_fixture.h"

namespace belay::test {
namespace {

class GitDamagedTest : public GitRollbackTest {
 protected:
  // Names, kinds and content of all refs, and of what the rest hangs on.
  std::string Files() {
    auto said = RunProgram(
        AbsPath::Literal("/bin/sh"), world_.project,
        {"-c",
         "cd .git; find refs -path refs/belay -prune -o ! -type d -printf '%p %y "
         "%l\\n' "
         "| sort; for f in $(find refs -path refs/belay -prune -o -type f -print | "
         "sort) HEAD config packed-refs; do echo \"== $f\"; cat $f; done 2>&1"});
    return said.ok() ? *said : said.error().what;
  }
};

TEST_F(GitDamagedTest, ADamagedRefIsReplacedAndComesAgainByUndo) {
  Do("git tag v1; echo s >>b; git stash -q; echo more >>b; git pack-refs --all\n"
     "git commit -q --allow-empty -m second; git update-ref refs/heads/other HEAD");
  for (const bool protect : {false, true}) {
    world_.settings.git_protect = protect;
    Take(protect ? "protected" : "plain");
  }
  const std::string start = Look();
  size_t number = 0;
  for (const std::string ref : {"heads/main", "heads/other", "tags/v1", "stash"}) {
    for (const std::string damage :
         {"echo garbage >", ": >", "printf '\\001\\377\\n\\n' >"}) {
      SCOPED_TRACE(damage + ref);
      Do(damage + ".git/refs/" + ref + "; echo agent >>b");
      const std::string damaged = Files();
      auto done = Back(++number % 2 == 0 ? "plain" : "protected");
      ASSERT_TRUE(done.ok()) << done.error().what;
      for (const std::string& warning : done->plan.warnings) ADD_FAILURE() << warning;
      EXPECT_EQ(Look(), start);
      auto undone = world_.Undo();
      ASSERT_TRUE(undone.ok()) << undone.error().what;
      EXPECT_TRUE(undone->conflicts.empty());
      EXPECT_EQ(Files(), damaged);
      ASSERT_TRUE(world_.Redo().ok());
      EXPECT_EQ(Look(), start);
      EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
    }
  }
}

// An empty directory is nothing to git.
TEST_F(GitDamagedTest, ADirectoryInPlaceOfABranchGivesWay) {
  Take("start");
  const std::string start = Look();
  Do("rm .git/refs/heads/main; mkdir -p .git/refs/heads/main/x/y; echo agent >>b");
  const std::string before = Files();
  MustBack("start");
  EXPECT_EQ(Look(), start);
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_EQ(Files(), before);
  ASSERT_TRUE(world_.Redo().ok());
  EXPECT_EQ(Look(), start);
}

TEST_F(GitDamagedTest, ARefThatIsASymlinkLeavesGitAsItIsAndIsSaid) {
  Take("start");
  Do("git commit -qam agent; mv .git/refs/heads/other .git/o\n"
     "ln -s ../../o .git/refs/heads/other; echo agent >>b");
  const std::string before = Files();
  const Outcome done = MustBack("start");
  ASSERT_EQ(done.plan.warnings.size(), 1u);
  EXPECT_NE(done.plan.warnings[0].find("refs/heads/other is a symlink"),
            std::string::npos)
      << done.plan.warnings[0];
  EXPECT_EQ(Files(), before);
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_EQ(Files(), before);
}

TEST_F(GitDamagedTest, ABranchThatNamesNothingLeavesNothing) {
  Take("start");
  const std::string start = Look();
  for (const char* ref : {"main", "other"}) {
    Do(std::string("nothing=$(git rev-parse HEAD:b | tr 0-9a-f 1-9a-f0)\n"
                   "echo $nothing >.git/refs/heads/") +
       ref + "; echo agent >>b");
    const std::string before = Files();
    const Outcome done = MustBack("start");
    EXPECT_EQ(Look(), start) << ref;
    EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "") << ref;
    auto undone = world_.Undo();
    ASSERT_TRUE(undone.ok()) << undone.error().what;
    EXPECT_TRUE(Files() == before || !undone->plan.warnings.empty()) << ref;
    MustBack("start");
    EXPECT_EQ(Look(), start) << ref;
  }
}

TEST_F(GitDamagedTest, WhatGitCannotReadLeavesItAsItIsAndIsSaid) {
  Take("start");
  Do("cp -a .git ../git");
  for (const char* damage :
       {"echo nonsense >.git/packed-refs", "echo '[x' >.git/config",
        "echo nonsense >.git/shallow", "git config core.repositoryFormatVersion 99",
        "rm .git/refs/heads/main; mkdir -p .git/refs/heads/main/x; "
        "echo nonsense >.git/refs/heads/main/x/y"}) {
    SCOPED_TRACE(damage);
    Do("echo more >>b; git commit -qam agent");
    Do(damage);
    const std::string before = Files();
    auto done = Back("start");
    ASSERT_TRUE(done.ok()) << done.error().what;
    EXPECT_FALSE(done->plan.warnings.empty());
    EXPECT_EQ(Files(), before);
    EXPECT_EQ(*GetFile(fs_, Must(fs_.OpenDir(world_.project)), P("b")), "two\n");
    auto undone = world_.Undo();
    ASSERT_TRUE(undone.ok()) << undone.error().what;
    EXPECT_EQ(Files(), before);
    Do("rm -rf .git; cp -a ../git .git");
  }
}

// What an agent that gave up a rebase by hand leaves.
TEST_F(GitDamagedTest, AnEmptyDirectoryOfARebaseGoes) {
  Take("start");
  Do("mkdir .git/rebase-merge");
  const Outcome done = MustBack("start");
  EXPECT_FALSE(IsThere(".git/rebase-merge"));
  EXPECT_FALSE(done.plan.git.empty());
}

// What was damaged at the checkpoint is nothing to go back to.
TEST_F(GitDamagedTest, ARefThatWasDamagedThenStaysAsItIsNow) {
  const std::string first = Head();
  Do("cp .git/refs/heads/other ../other; echo garbage >.git/refs/heads/other");
  Take("start");
  Do("cp ../other .git/refs/heads/other; git commit -qam agent");
  Outcome done = MustBack("start");
  ASSERT_EQ(done.plan.warnings.size(), 1u);
  EXPECT_NE(done.plan.warnings[0].find("was damaged then"), std::string::npos);
  EXPECT_EQ(Said(world_.project, {"rev-parse", "main", "other"}), first + "\n" + first);
  Do("cp .git/refs/heads/main ../main; echo garbage >.git/refs/heads/main");
  Take("worse");
  Do("cp ../main .git/refs/heads/main; echo y >>b");
  done = MustBack("worse");
  EXPECT_FALSE(done.plan.warnings.empty());
  EXPECT_EQ(Head(), first);
}

class GitSettingsTest : public GitDamagedTest {
 protected:
  GitSettingsTest() { world_.settings.git_protect = true; }
  void MakeSha256() {
    Do("rm -rf .git; git init -q -b main --object-format=sha256 .; git add .\n"
       "git commit -qm first; git branch other; echo staged >>a; git add a\n"
       "echo unstaged >>a; git config user.name n; git remote add o /nowhere");
  }
  void LosesNothing(const std::string& damage) {
    SCOPED_TRACE(damage);
    Take("start");
    const std::string start = Look();
    const std::string settings = Said(world_.project, {"config", "-l", "--local"});
    Do("git commit -qam agent; echo more >>b; git add b; git branch agents\n"
       "git pack-refs --all");
    const std::string commit = Head();
    Do(damage);
    const std::string before = Files();
    auto preview = world_.Preview("start");
    ASSERT_TRUE(preview.ok()) << preview.error().what;
    const Outcome done = MustBack("start");
    for (const std::string& warning : done.plan.warnings) ADD_FAILURE() << warning;
    Do("git branch -q -D agents");
    EXPECT_EQ(Look(), start);
    EXPECT_EQ(Said(world_.project, {"config", "-l", "--local"}), settings);
    EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
    ASSERT_EQ(done.plan.git.size(), 1u);
    ASSERT_FALSE(done.plan.git[0].safety_refs.empty());
    EXPECT_EQ(Said(world_.project, {"rev-parse", done.plan.git[0].safety_refs[0]}),
              commit);
    Do("git branch agents " + commit);
    auto undone = world_.Undo(true);
    ASSERT_TRUE(undone.ok()) << undone.error().what;
    EXPECT_TRUE(undone->conflicts.empty());
    EXPECT_EQ(Files(), before);
    ASSERT_TRUE(world_.Redo(true).ok());
    Do("git branch -q -D agents");
    EXPECT_EQ(Look(), start);
  }
};

TEST_F(GitSettingsTest, ASha256RepositoryWithoutItsSettingsComesBackWhole) {
  MakeSha256();
  LosesNothing("rm .git/config");
}

TEST_F(GitSettingsTest, SoDoesOneWhoseSettingsAreDamaged) {
  LosesNothing("echo '[garbage' >.git/config");
}

TEST_F(GitSettingsTest, UndoOfThatIsAConflictWhereGitWasUsedSince) {
  MakeSha256();
  Take("start");
  Do("rm .git/config; echo y >>b");
  MustBack("start");
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_FALSE(IsThere(".git/config"));
  ASSERT_TRUE(world_.Redo().ok());
  Do("git commit -qam mine");
  const std::string head = Head();
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok());
  EXPECT_FALSE(undone->conflicts.empty());
  EXPECT_EQ(Head(), head);
}

}  // namespace
}  // namespace belay::test
