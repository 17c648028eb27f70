// Rollbacks in a git repository: branch, commits and the split into staged and unstaged
// come back; no commit is lost; git's own locks are heeded. The matrix of situations is
// tests/git/matrix.py; these are the promises, one by one.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fault_fs.h"
#include "restore/git_locks.h"
#include "restore/journal.h"
#include "support/git_rollback_fixture.h"

namespace belay::test {
namespace {

TEST_F(GitRollbackTest, CommitsAreTakenBackAndHeldAndComeAgain) {
  Take("start");
  const std::string start = Look();
  Do("git add -A; git commit -qm agent");
  const std::string commit = Head(), after = Look();
  const Outcome done = MustBack("start");
  EXPECT_EQ(Look(), start);
  ASSERT_EQ(done.plan.git.size(), 1u);
  EXPECT_EQ(done.plan.git[0].commit_count, 1u);
  EXPECT_NE(done.plan.git[0].commits[0].find("\"agent\""), std::string::npos);
  EXPECT_EQ(Said(world_.project, {"rev-parse", done.plan.git[0].safety_refs[0]}),
            commit);
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_EQ(Look(), after);
  ASSERT_TRUE(world_.Redo().ok());
  EXPECT_EQ(Look(), start);
}

TEST_F(GitRollbackTest, PreviewResultAndUndoNameTheSameRefs) {
  Do("echo stashed >>b; git stash -q");
  Take("start");
  Do("git commit -q --allow-empty -m agent; echo x >>b; git stash -q");
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  auto target = world_.Named(*opened, "start");
  ASSERT_TRUE(target.ok());
  RollbackRequest request = world_.RequestFor(opened->root);
  auto refs = [](const Outcome& outcome) { return outcome.plan.git.at(0).safety_refs; };
  // Nobody knows yet which operation it will be.
  auto preview = PreviewRollback(*opened->store, request, *target);
  ASSERT_TRUE(preview.ok()) << preview.error().what;
  EXPECT_EQ(refs(*preview), (std::vector<std::string>{"refs/belay/safety/*/head",
                                                      "refs/belay/safety/*/stash-0"}));
  request.operation = RecordId(opened->store->random().NewId());
  const std::string base = "refs/belay/safety/" + request.operation.text();
  preview = PreviewRollback(*opened->store, request, *target);
  ASSERT_TRUE(preview.ok()) << preview.error().what;
  const std::vector<std::string> named = {base + "/head", base + "/stash-0"};
  EXPECT_EQ(refs(*preview), named);
  auto done = Rollback(*opened->store, request, *target);
  ASSERT_TRUE(done.ok()) << done.error().what;
  ASSERT_TRUE(done->operation);
  EXPECT_EQ(done->operation->id, request.operation);
  EXPECT_EQ(refs(*done), named);
  EXPECT_EQ(Said(world_.project,
                 {"for-each-ref", "--format=%(refname)", "refs/belay/safety/*/*"}),
            named[0] + "\n" + named[1]);
  opened->store.reset();
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok()) << undone.error().what;
  EXPECT_EQ(undone->plan.git.at(0).held_by, named);
}

TEST_F(GitRollbackTest, ASwitchedBranchIsRefusedUnlessAskedFor) {
  Take("start");
  const std::string start = Look();
  Do("git switch -q other; echo x >>b");
  const std::string switched = Look();
  auto done = Back("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kRefused);
  EXPECT_EQ(Look(), switched);
  EXPECT_TRUE(Back("start", {.action = GitAction::kKeep}).ok());
  EXPECT_EQ(Said(world_.project, {"symbolic-ref", "HEAD"}), "refs/heads/other");
  EXPECT_TRUE(Back("start", {.switch_branch = true}).ok());
  EXPECT_EQ(Look(), start);
}

TEST_F(GitRollbackTest, ACommitThatGitLostLeavesGitAsItIs) {
  Do("git commit -qm second");
  Take("start");
  Do("git reset -q --hard HEAD~1; rm -f new .git/ORIG_HEAD\n"
     "git reflog expire --expire=now --all; git gc -q --prune=now");
  const std::string head = Head();
  const Outcome done = MustBack("start");
  EXPECT_EQ(Head(), head);
  EXPECT_FALSE(done.plan.warnings.empty());
  EXPECT_TRUE(IsThere("new"));
}

TEST_F(GitRollbackTest, ACommitThatGitLostBringsNoBranchBack) {
  Do("git commit -qm second");
  Take("start");
  Do("git update-ref -d refs/heads/main; rm -f .git/index .git/ORIG_HEAD\n"
     "git reflog expire --expire=now --all; git gc -q --prune=now; rm b");
  const std::string unborn = Look();
  const Outcome done = MustBack("start");
  EXPECT_EQ(Look(), unborn);
  EXPECT_FALSE(done.plan.warnings.empty());
  EXPECT_TRUE(IsThere("b"));
}

TEST_F(GitRollbackTest, PublishedCommitsStayUnlessAskedFor) {
  Take("start");
  Do("git commit -qm agent; git update-ref refs/remotes/origin/main HEAD");
  const std::string head = Head();
  const Outcome kept = MustBack("start");
  EXPECT_EQ(Head(), head);
  EXPECT_FALSE(kept.plan.warnings.empty());
  MustBack("start", {.action = GitAction::kReset});
  EXPECT_NE(Head(), head);
}

TEST_F(GitRollbackTest, CommitsThatWereNotTheSessionsStay) {
  Take("start", "s1");
  Do("git commit -qm somebodys");
  const std::string head = Head();
  MustBack("start");
  EXPECT_EQ(Head(), head);
}

TEST_F(GitRollbackTest, CommitsOfTheSessionAreTakenBack) {
  Take("start", "s1");
  const std::string first = Head();
  Do("git commit -qm agents");
  Take("after", "s1");
  MustBack("start");
  EXPECT_EQ(Head(), first);
}

TEST_F(GitRollbackTest, ALockOfOthersIsWaitedForAndNeverRemoved) {
  Take("start");
  Do("git commit -qm agent; echo theirs >.git/index.lock");
  auto done = Back("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kBusy);
  EXPECT_TRUE(IsThere(".git/index.lock"));
  Do("test \"$(cat .git/index.lock)\" = theirs; rm .git/index.lock");
  MustBack("start");
}

TEST_F(GitRollbackTest, GitsLocksAreHeldWhileThingsMoveAndGoneAfterwards) {
  Take("start");
  Do("echo more >>b; git commit -qam agent");
  bool held = false;
  world_.stop = [&] {
    held = held || IsThere(".git/index.lock");
    return false;
  };
  MustBack("start");
  EXPECT_TRUE(held);
  Do("test -z \"$(find .git -name '*.lock' -o -name '.belay-*')\"");
}

TEST_F(GitRollbackTest, ACommitMadeMeanwhileStopsItAndStays) {
  Take("start");
  // At every moment at which git's locks are not held yet.
  for (int at = 0;; ++at) {
    Do("echo more >>b; git commit -qam agent");
    int now = 0;
    std::string theirs;
    world_.stop = [&] {
      if (now++ != at || IsThere(".git/HEAD.lock")) return false;
      Do("git commit -q --allow-empty -m meanwhile");
      theirs = Look();
      return false;
    };
    auto done = Back("start");
    if (theirs.empty()) {
      EXPECT_GT(at, 1);
      EXPECT_TRUE(done.ok());
      break;
    }
    EXPECT_FALSE(done.ok()) << at;
    EXPECT_EQ(Look(), theirs) << at;
  }
}

TEST_F(GitRollbackTest, WhatGitDidSinceItWasLookedAtStopsThePlan) {
  const Captured start = Take("start");
  Do("git commit -qm agent");
  const Captured now = Take("now");
  Do("git commit -q --allow-empty -m meanwhile");
  auto planned = PlanBack(now, start);
  ASSERT_FALSE(planned.ok());
  EXPECT_EQ(planned.error().code, Errc::kBusy);
}

TEST_F(GitRollbackTest, LocksThatACrashLeftEmptyAreKnownAsOurs) {
  auto dir = fs_.OpenDir(temp_ / "project/.git");
  ASSERT_TRUE(dir.ok());
  const std::vector<std::string> locks = {"HEAD.lock", "index.lock"};
  const RecordId operation(world_.world.random.NewId());
  GitLocks first(fs_, world_.world.clock, *dir, "git", locks, operation);
  ASSERT_TRUE(first.Take(0).ok());
  Do(": >.git/.belay-lock-" + operation.text());
  GitLocks second(fs_, world_.world.clock, *dir, "git", locks, operation);
  ASSERT_TRUE(second.Take(0).ok());
  GitLocks others(fs_, world_.world.clock, *dir, "git", locks,
                  RecordId(world_.world.random.NewId()));
  EXPECT_FALSE(others.Take(0).ok());
  ASSERT_TRUE(second.Release().ok());
  Do("test -z \"$(find .git -name '*.lock' -o -name '.belay-*')\"");
}

TEST_F(GitRollbackTest, AnErrorOnTheWayLeavesFilesAndGitAsTheyWere) {
  Take("start");
  Do("echo more >>b; git add -A; git commit -qm agent");
  const std::string before = Look();
  uint64_t calls = 0;
  {
    FaultFs counting(fs_);
    RestoreWorld world(counting, temp_.path(), 1, getuid());
    ASSERT_TRUE(world.Rollback("start").ok());
    calls = counting.calls();
    ASSERT_TRUE(world.Undo().ok());
  }
  const std::string after_undo = Look();
  EXPECT_EQ(after_undo, before);
  std::optional<std::string> after;
  for (uint64_t back = 20; back < 200; back += 12) {
    FaultFs failing(fs_, Fault::Errno(calls - back, EIO));
    RestoreWorld world(failing, temp_.path(), 1, getuid());
    auto done = world.Rollback("start");
    ASSERT_TRUE(world_.Recover().ok());
    const std::string now = Look();
    if (now != before && !after) after = now;
    EXPECT_TRUE(now == before || now == *after) << back << "\n" << now;
    if (!done.ok()) {
      EXPECT_EQ(now, before) << back << " " << done.error().what;
    }
    if (now != before) {
      ASSERT_TRUE(world_.Undo().ok());
    }
  }
}

TEST_F(GitRollbackTest, TheIndexKeepsItsTime) {
  struct stat then = {}, now = {};
  const AbsPath index = temp_ / "project/.git/index";
  Do("touch -d '2001-02-03 04:05:06.789' .git/index");
  ASSERT_EQ(stat(index.c_str(), &then), 0);
  Take("start");
  Do("git add -A");
  MustBack("start");
  ASSERT_EQ(stat(index.c_str(), &now), 0);
  EXPECT_EQ(now.st_mtim.tv_sec, then.st_mtim.tv_sec);
  EXPECT_EQ(now.st_mtim.tv_nsec, then.st_mtim.tv_nsec);
}

TEST_F(GitRollbackTest, RollbackOfPathsLeavesGitAlone) {
  Take("start");
  Do("echo more >>b; git commit -qam agent");
  const std::string head = Head();
  world_.plan.select = {"b"};
  MustBack("start");
  EXPECT_EQ(Head(), head);
}

TEST_F(GitRollbackTest, AJournalAboutSomebodyElsesRepositoryIsRefused) {
  Do("git init -q -b main .; echo theirs >x; git add .; git commit -qm theirs",
     temp_ / "theirs");
  Take("start");
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  Journal journal;
  journal.operation.id = RecordId(opened->store->random().NewId());
  journal.operation.root = opened->root.id;
  journal.operation.changes = {};
  journal.stage = StageName(journal.operation.id);
  GitMove move;
  move.dir = (temp_ / "theirs/.git").bytes();
  struct stat st = {};
  ASSERT_EQ(stat(move.dir.c_str(), &st), 0);
  move.ino = st.st_ino;
  auto writer = opened->store->Begin();
  ASSERT_TRUE(writer.ok());
  auto content = (*writer)->PutContent(AsBytes("ref: refs/heads/forged\n"));
  ASSERT_TRUE(content.ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  PathState state;
  state.mode = 0644;
  state.uid = getuid();
  state.gid = getgid();
  state.size = 23;
  state.id = *content;
  move.changes.push_back({"HEAD", state, state});
  move.changes[0].before.reset();
  journal.git.push_back(move);
  ASSERT_TRUE(JournalFile::Write(*opened->store, journal).ok());
  opened->store.reset();
  auto recovered = world_.Recover();
  EXPECT_EQ(Said(temp_ / "theirs", {"symbolic-ref", "HEAD"}), "refs/heads/main");
}

}  // namespace
}  // namespace belay::test
