// Content that only an index names: it comes back with the index when git has lost it.

#include "restore/git_objects.h"

#include <gtest/gtest.h>

#include "base/fault_fs.h"
#include "support/git_rollback_fixture.h"

namespace belay::test {
namespace {

class GitObjectsTest : public GitRollbackTest {
 protected:
  // What was staged at "start" is in no commit, and pruned.
  void LoseWhatWasStaged() {
    Take("start");
    Do("git add -A; git commit -qm agent; git prune --expire=now");
  }
  bool SomethingIsLeft() {
    return !Shell(world_.project,
                  "test -z \"$(find .git -name '*.lock' -o -name '.belay-*')\"")
                .ok();
  }
};

TEST_F(GitObjectsTest, WhatWasStagedAndPrunedComesBack) {
  Take("here");
  const std::string start = Look();
  LoseWhatWasStaged();
  MustBack("start");
  EXPECT_EQ(Look(), start);
  Do("git fsck --no-dangling");
  EXPECT_FALSE(SomethingIsLeft());
}

TEST_F(GitObjectsTest, WhatAnInterruptionLeftOfAnObjectGoes) {
  Take("here");
  const std::string start = Look();
  LoseWhatWasStaged();
  const std::string after = Look();
  // The power goes before each mode that is set, until one is that of the object.
  for (uint64_t at = 1;; ++at) {
    Fault cut = Fault::PowerCut(at);
    cut.only = {FsCall::kSetMode};
    FaultFs failing(fs_, cut);
    RestoreWorld world(failing, temp_.path(), 1, getuid());
    const bool done = world.Rollback("start").ok();
    ASSERT_FALSE(done) << "no object was written";
    const bool found = Shell(world_.project, "ls .git/.belay-object-*").ok();
    // Somebody stages the same again: nothing is left to be written.
    if (found) Do("printf 'one\\nstaged\\n' | git hash-object -w --stdin");
    ASSERT_TRUE(world_.Recover().ok());
    EXPECT_FALSE(SomethingIsLeft()) << at;
    const std::string now = Look();
    EXPECT_TRUE(now == start || now == after) << now;
    Do("git fsck --no-dangling");
    if (found) break;
    if (now == start) {
      ASSERT_TRUE(world_.Undo().ok());
      Do("git prune --expire=now");
    }
  }
}

TEST_F(GitObjectsTest, ATemporaryFileThatIsLeftIsMadeAnewAndNotWrittenInto) {
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  auto writer = opened->store->Begin();
  ASSERT_TRUE(writer.ok());
  auto content = (*writer)->PutContent(AsBytes("lost\n"));
  ASSERT_TRUE(content.ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  const RecordId operation(opened->store->random().NewId());
  const std::string left = ".git/.belay-object-" + operation.text();
  Do("echo half >" + left + "; chmod 444 " + left + "; ln " + left + " witness");
  GitMove move;
  Do("printf 'lost\\n' >lost");
  const std::string hex = Said(world_.project, {"hash-object", "lost"});
  move.objects = {{hex, *content}};
  auto dir = fs_.OpenDir(temp_ / "project/.git");
  ASSERT_TRUE(dir.ok());
  Status written = WriteGitObjects(*opened->store, *dir, move, operation);
  ASSERT_TRUE(written.ok()) << written.error().what;
  EXPECT_EQ(Said(world_.project, {"cat-file", "-p", hex}), "lost");
  Do("test \"$(cat witness)\" = half; test ! -e " + left);
}

class LostBlobTest : public GitObjectsTest {
 protected:
  GitPlans PlanTo(const Captured& start) {
    auto planned = PlanBack(Take("now"), start);
    EXPECT_TRUE(planned.ok()) << planned.error().what;
    return planned.ok() ? std::move(*planned) : GitPlans();
  }
};

TEST_F(LostBlobTest, WhatNeitherGitNorTheStoreHasLeavesGitAsItIsAndIsNamed) {
  Captured start = Take("start");
  Do("git add -A; git commit -qm agent");
  // As of a record that holds no content: git has it still.
  start.git.repositories[0].objects = {};
  GitPlans planned = PlanTo(start);
  EXPECT_TRUE(planned.moves());
  EXPECT_TRUE(planned.warnings.empty());
  Do("git prune --expire=now");
  planned = PlanTo(start);
  EXPECT_FALSE(planned.moves());
  ASSERT_EQ(planned.plans.size(), 1u);
  EXPECT_EQ(planned.plans[0].action, GitAction::kKeep);
  ASSERT_EQ(planned.warnings.size(), 1u);
  EXPECT_EQ(planned.warnings[0],
            "git is left as it is: what was staged of a is not in the repository any "
            "more");
}

TEST_F(LostBlobTest, OfASplitIndexToo) {
  Do("git update-index --split-index; echo only >>a; git add a; echo more >>a");
  Captured start = Take("start");
  Do("git add -A; git commit -qm agent; git prune --expire=now");
  start.git.repositories[0].objects = {};
  const GitPlans planned = PlanTo(start);
  EXPECT_FALSE(planned.moves());
  EXPECT_EQ(planned.warnings.size(), 1u);
}

TEST_F(LostBlobTest, InAPartialCloneTheyCanBeFetched) {
  Do("git config uploadpack.allowFilter true; git commit -qam more\n"
     "git clone -q --no-local --filter=blob:none . ../partial\n"
     "rm -rf .git; mv ../partial/.git .; git read-tree HEAD~1");
  const Captured start = Take("start");
  Do("git read-tree HEAD");
  const GitPlans planned = PlanTo(start);
  EXPECT_TRUE(planned.moves());
  EXPECT_TRUE(planned.warnings.empty());
}

}  // namespace
}  // namespace belay::test
