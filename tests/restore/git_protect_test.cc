// git.protect: a git directory that is gone, or lost its objects, comes back; an undo
// takes it away again, but not when git was used since.

#include <gtest/gtest.h>

#include "base/fault_fs.h"
#include "restore/journal.h"
#include "support/git_rollback_fixture.h"

namespace belay::test {
namespace {

class GitProtectTest : public GitRollbackTest {
 protected:
  GitProtectTest() { world_.settings.git_protect = true; }
  // Names, modes and content of all that is in `.git`, but for logs.
  std::string Inside() {
    auto said = RunProgram(AbsPath::Literal("/bin/sh"), world_.project,
                           {"-c",
                            "find .git ! -path '*/logs/*' -printf '%p %y %m %l\\n' | "
                            "sort; find .git -type f ! -path '*/logs/*' -print0 | sort "
                            "-z | xargs -0 sha256sum"});
    EXPECT_TRUE(said.ok());
    return said.ok() ? *said : "";
  }
};

TEST_F(GitProtectTest, AGitDirectoryThatIsGoneComesBackWholeAndGoesByUndo) {
  Do("echo '#!/bin/sh' >.git/hooks/post-commit; git gc -q; echo x >>a; git add a");
  Take("start");
  // Before git looks, which may write the index anew.
  const std::string inside = Inside(), start = Look();
  Do("rm -rf .git; echo y >>b");
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok());
  EXPECT_FALSE(IsThere(".git"));
  const Outcome done = MustBack("start");
  EXPECT_EQ(Inside(), inside);
  EXPECT_EQ(Look(), start);
  EXPECT_EQ(GitPlanText(preview->plan.git), GitPlanText(done.plan.git));
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_FALSE(IsThere(".git"));
  ASSERT_TRUE(world_.Redo().ok());
  EXPECT_EQ(Look(), start);
}

TEST_F(GitProtectTest, WithoutItNothingIsWrittenToGit) {
  world_.settings.git_protect = false;
  Take("start");
  Do("rm -rf .git");
  const Outcome done = MustBack("start");
  EXPECT_FALSE(IsThere(".git"));
  EXPECT_FALSE(done.plan.warnings.empty());
}

TEST_F(GitProtectTest, WhatIsLeftOfOneIsFilledUpAndComesAgainByUndo) {
  Take("start");
  const std::string start = Look();
  Do("rm -rf .git/refs .git/HEAD; echo mine >.git/notes; echo other >.git/description");
  const std::string broken = Inside();
  MustBack("start");
  EXPECT_EQ(Look(), start);
  EXPECT_TRUE(IsThere(".git/notes"));
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_EQ(Inside(), broken);
}

TEST_F(GitProtectTest, AnUndoTakesNoCommitAway) {
  Take("start");
  Do("rm -rf .git");
  MustBack("start");
  Do("git add -A; git commit -qm later");
  const std::string head = Head();
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok());
  EXPECT_FALSE(undone->conflicts.empty());
  EXPECT_EQ(Head(), head);
}

TEST_F(GitProtectTest, WhatSomebodyMadeMeanwhileIsNotTakenBack) {
  Take("start");
  uint64_t calls = 0;
  {
    Do("rm -rf .git");
    FaultFs counting(fs_);
    RestoreWorld counted(counting, temp_.path(), 2, getuid());
    counted.settings.git_protect = true;
    ASSERT_TRUE(counted.Rollback("start").ok());
    calls = counting.calls();
  }
  size_t interrupted = 0;
  for (uint64_t before_end = 30; before_end < calls / 2; before_end += calls / 17) {
    Do("rm -rf .git");
    FaultFs faults(fs_, Fault::PowerCut(calls - before_end));
    RestoreWorld broken(faults, temp_.path(), 100 + before_end, getuid());
    broken.settings.git_protect = true;
    if (broken.Rollback("start").ok()) continue;
    Do("rm -rf .git; git init -q -b main .; echo p >precious; git add precious\n"
       "git commit -qm mine");
    const std::string head = Head();
    auto recovered = world_.Recover();
    interrupted += recovered.ok() && *recovered ? 1 : 0;
    EXPECT_EQ(Head(), head) << before_end;
    EXPECT_EQ(Said(world_.project, {"show", "HEAD:precious"}), "p");
  }
  EXPECT_GT(interrupted, 2u);
}

TEST_F(GitProtectTest, ARepositoryAroundTheRootIsNotTakenForItsOwn) {
  Do("git init -q -b main ..; git -C .. commit -q --allow-empty -m outer");
  Take("start");
  const std::string start = Look();
  Do("rm -rf .git; echo y >>b");
  MustBack("start");
  EXPECT_EQ(Look(), start);
  // Without git.protect: the files.
  world_.settings.git_protect = false;
  Take("plain");
  Do("rm -rf .git; echo z >>b");
  const Outcome done = MustBack("plain");
  EXPECT_FALSE(done.plan.warnings.empty());
  EXPECT_FALSE(done.plan.changes.empty());
}

TEST_F(GitProtectTest, AGitDirectoryElsewhereIsNotMoved) {
  Do("git init -q -b main ../un; git -C ../un commit -q --allow-empty -m theirs");
  Take("start");
  const std::string theirs = Said(temp_ / "un", {"rev-parse", "HEAD"});
  for (const char* lead :
       {"ln -s ../un/.git .git", "echo \"gitdir: ../un/.git\" >.git"}) {
    Do(std::string("rm -rf .git; ") + lead);
    const Outcome done = MustBack("start");
    EXPECT_EQ(Said(temp_ / "un", {"rev-parse", "HEAD"}), theirs) << lead;
    EXPECT_FALSE(done.plan.warnings.empty()) << lead;
  }
}

TEST_F(GitProtectTest, ObjectsThatAreGoneComeBack) {
  Do("git commit -qam second; echo stash >>a; git stash -q");
  Take("start");
  const std::string start = Look();
  Do("git stash drop -q; git reset -q --hard HEAD~1; rm -f .git/ORIG_HEAD\n"
     "git reflog expire --expire=now --all; git gc -q --prune=now");
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok());
  const Outcome done = MustBack("start");
  EXPECT_EQ(Look(), start);
  EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
  EXPECT_EQ(Said(world_.project, {"rev-parse", "-q", "--verify", "stash"}).size(), 40u);
}

TEST_F(GitProtectTest, AGitFileComesBackToo) {
  Do("mkdir ../two; git worktree add -q -b side ../two/project");
  RestoreWorld two(fs_, temp_ / "two", 2, getuid());
  two.settings.git_protect = true;
  ASSERT_TRUE(two.Capture("start").ok());
  auto start = See(two.project);
  Do("rm .git; echo y >>b", two.project);
  auto done = two.Rollback("start");
  ASSERT_TRUE(done.ok()) << done.error().what;
  EXPECT_EQ(*See(two.project), *start);
  ASSERT_TRUE(two.Undo().ok());
  struct stat st = {};
  EXPECT_NE(lstat((two.project.bytes() + "/.git").c_str(), &st), 0);
}

// Only where something that people see changed: a repack is no new state.
TEST_F(GitProtectTest, ARepackIsNoNewState) {
  auto first = world_.Capture("one");
  ASSERT_TRUE(first.ok());
  Do("git gc -q");
  auto second = world_.Capture("two");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->checkpoint.state, second->checkpoint.state);
}

TEST_F(GitProtectTest, AJournalOfItLeadsNowhereElse) {
  Journal journal;
  journal.operation.id = RecordId(world_.world.random.NewId());
  journal.operation.root = RootId(world_.world.random.NewId());
  journal.stage = StageName(journal.operation.id);
  GitMove move;
  move.dir = "/somewhere";
  move.whole = true;
  PathState file;
  file.mode = 0644;
  file.id = Sha256::Of(AsBytes("x"));
  auto decodes = [&](const std::string& path) {
    move.changes = {{path, std::nullopt, file}};
    journal.git = {move};
    return DecodeJournal(EncodeJournal(journal)).ok();
  };
  EXPECT_TRUE(decodes(".git"));
  EXPECT_TRUE(decodes(".git/HEAD"));
  for (const char* path : {"x", ".git2", ".git/../x", ".git/.git", ".git/", ".Git/HEAD",
                           "sub/.git", ".git//x", "../.git"})
    EXPECT_FALSE(decodes(path)) << path;
  move.whole = false;
  EXPECT_FALSE(decodes(".git/HEAD"));
}

}  // namespace
}  // namespace belay::test
