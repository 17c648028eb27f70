// git.protect: a git directory that is gone, or lost its objects, comes back; an undo
// takes it away again, but not when git was used since.

#include <gtest/gtest.h>

#include "base/fault_fs.h"
#include "crash/hook_fs.h"
#include "restore/journal.h"
#include "support/git_rollback_fixture.h"
#include "support/pass_fs.h"

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

// A pack's own index is read from the store: what was only packed is not lost.
TEST_F(GitProtectTest, AMissingObjectComesBackThoughNothingMoved) {
  Do("git commit -qam second");
  Take("start");
  const std::string start = Look();
  Do("git repack -adq; git prune-packed");
  auto packed = world_.Preview("start");
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(packed->plan.moves_nothing());
  Take("packed");
  // The parent's tree and blob, which HEAD alone does not need.
  Do("mv .git/objects/pack ../pack; mkdir .git/objects/pack\n"
     "git unpack-objects -q <$(ls ../pack/*.pack)\n"
     "for o in $(git rev-parse HEAD~1:a HEAD~1^{tree}); do\n"
     "  rm -f .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); done");
  EXPECT_NE(Said(world_.project, {"fsck", "--no-dangling"}), "");
  for (const char* name : {"start", "packed"}) {
    auto preview = world_.Preview(name);
    ASSERT_TRUE(preview.ok());
    EXPECT_FALSE(preview->plan.moves_nothing()) << name;
  }
  MustBack("start");
  EXPECT_EQ(Look(), start);
  EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
  auto again = world_.Preview("start");
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->plan.moves_nothing());
}

TEST_F(GitProtectTest, APackThatIsGoneComesBackAndNoDanglingObjectDoes) {
  Do("git commit -qam second; git gc -q; echo dangling | git hash-object -w --stdin");
  Take("start");
  Do("git prune --expire=now");
  auto pruned = world_.Preview("start");
  ASSERT_TRUE(pruned.ok());
  EXPECT_TRUE(pruned->plan.moves_nothing());
  Do("rm -f .git/objects/pack/*.idx");
  const Outcome done = MustBack("start");
  EXPECT_TRUE(done.plan.warnings.empty()) << done.plan.warnings.front();
  EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
}

TEST_F(GitProtectTest, DamagedObjectsAreReplaced) {
  // Nothing is older than the checkpoint: what has its size is read, too.
  world_.world.clock.SetWallMillis(1'000'000'000'000);
  Do("git commit -qam second");
  Take("start");
  const std::string start = Look();
  // HEAD's own commit, cut short; a blob with other bytes of the same length.
  Do("f=.git/objects/$(git rev-parse HEAD | sed 's,^..,&/,'); chmod u+w $f; : >$f\n"
     "f=.git/objects/$(git hash-object b | sed 's,^..,&/,'); chmod u+w $f\n"
     "printf XXXX | dd of=$f bs=1 seek=2 conv=notrunc 2>/dev/null");
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok()) << preview.error().what;
  EXPECT_FALSE(preview->plan.moves_nothing());
  MustBack("start");
  EXPECT_EQ(Look(), start);
  EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
}

TEST_F(GitProtectTest, AnObjectThatWasWrittenAnotherWayIsNotDamaged) {
  Take("start");
  Do("f=.git/objects/$(git rev-parse HEAD:b | sed 's,^..,&/,'); git cat-file blob "
     "HEAD:b >../b\n"
     "rm -f $f; git -c core.looseCompression=0 hash-object -w ../b");
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok());
  EXPECT_TRUE(preview->plan.moves_nothing());
}

TEST_F(GitProtectTest, WhatWasPurgedDoesNotComeBackThoughItsBytesAreThere) {
  Do("git commit -qam second");
  const Captured start = Take("start");
  Do("rm -rf .git");
  auto now = world_.Capture("now");
  ASSERT_TRUE(now.ok());
  std::vector<std::string> warnings;
  auto plan = [&](std::function<bool(const ObjectId&)> lacks) {
    auto opened = world_.Open();
    EXPECT_TRUE(opened.ok());
    HashSink sink;
    const GitPlaces places;
    const GitPlanInput input{.store = *opened->store,
                             .root = world_.project,
                             .now = now->scan,
                             .is = now->git,
                             .target = start.git,
                             .sink = sink,
                             .places = places,
                             .operation = RecordId(opened->store->random().NewId()),
                             .what = "rollback",
                             .lacks = std::move(lacks)};
    auto plans = PlanGit(input, {});
    EXPECT_TRUE(plans.ok());
    warnings = plans.ok() ? plans->warnings : std::vector<std::string>();
    return plans.ok() && plans->moves();
  };
  EXPECT_TRUE(plan([](const ObjectId&) { return false; }));
  EXPECT_FALSE(plan([](const ObjectId&) { return true; }));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("was erased by belay purge"), std::string::npos);
}

// A disk with so much room left.
class TightFs final : public PassFs {
 public:
  TightFs(Fs& inner, uint64_t room) : PassFs(inner), room_(room) {}
  Result<FsInfo> Info(const Fd& any) override {
    BELAY_TRY(FsInfo info, inner_.Info(any));
    info.free_bytes = room_;
    return info;
  }

 private:
  uint64_t room_;
};

TEST_F(GitProtectTest, WithoutRoomForGitNothingMoves) {
  Do("dd if=/dev/urandom of=big bs=1024 count=512 2>/dev/null; git add big\n"
     "git commit -qm big");
  Take("start");
  Do("rm -rf .git; echo y >>b");
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok());
  EXPECT_GT(preview->plan.bytes_needed, uint64_t{512} << 10);
  const std::string before = world_.Tree();
  TightFs tight(fs_, uint64_t{400} << 10);
  RestoreWorld full(tight, temp_.path(), 2, getuid());
  full.settings.git_protect = true;
  auto done = full.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kNoSpace);
  EXPECT_EQ(world_.Tree(), before);
  EXPECT_FALSE(IsThere(".git"));
}

// Who is not root cannot give files away.
TEST_F(GitProtectTest, FilesOfOthersBecomeOursWhereWeAreNotRoot) {
  if (getuid() != 0) GTEST_SKIP() << "needs files of another user";
  Take("start");
  Do("rm -rf .git");
  world_.plan.uid = 12345;
  world_.plan.groups = {54321};
  auto preview = world_.Preview("start");
  ASSERT_TRUE(preview.ok()) << preview.error().what;
  ASSERT_EQ(preview->plan.git.size(), 1u);
  for (const PathChange& change : preview->plan.git[0].move.changes) {
    EXPECT_EQ(change.after->uid, 12345u) << change.path;
    EXPECT_EQ(change.after->gid, 54321u) << change.path;
  }
  EXPECT_TRUE(std::ranges::any_of(preview->plan.warnings, [](const auto& warning) {
    return warning.find("they will belong to you") != std::string::npos;
  }));
}

TEST_F(GitProtectTest, NothingIsCopiedWhereSecretsAreLeftAlone) {
  world_.settings.secrets = Secrets::kSkip;
  const Captured start = Take("start");
  ASSERT_EQ(start.git.repositories.size(), 1u);
  EXPECT_TRUE(start.git.repositories[0].whole.empty());
  EXPECT_TRUE(std::ranges::any_of(start.warnings, [](const std::string& warning) {
    return warning.ends_with("secrets are left alone here, and may be in it");
  }));
}

TEST_F(GitProtectTest, PackingAfterwardsIsNoUseOfIt) {
  Do("git branch one; git tag two; git update-ref refs/remotes/o/main HEAD");
  Take("start");
  Do("rm -rf .git");
  MustBack("start");
  Do("git gc -q; touch a; GIT_OPTIONAL_LOCKS=1 git status -s; git update-server-info");
  auto undone = world_.Undo();
  ASSERT_TRUE(undone.ok());
  for (const Conflict& conflict : undone->conflicts) ADD_FAILURE() << conflict.path;
  EXPECT_FALSE(IsThere(".git"));
  ASSERT_TRUE(world_.Redo().ok());
  // A ref that moved is a use, packed or not.
  Do("git update-ref refs/remotes/o/main $(git commit-tree -m x HEAD^{tree})\n"
     "git pack-refs --all");
  undone = world_.Undo();
  ASSERT_TRUE(undone.ok());
  EXPECT_TRUE(std::ranges::any_of(undone->conflicts, [](const Conflict& conflict) {
    return conflict.path == ".git/refs/remotes/o/main";
  }));
}

// Git moves objects from files of their own into a pack: in the middle of a copy.
TEST_F(GitProtectTest, PackingMeanwhileLosesNothing) {
  Do("git commit -qam second");
  const std::string start = Look();
  bool packs_seen = false, packed = false;
  HookFs hooked(fs_, [&](FsCall call, const std::string& name) -> Status {
    if (packed || call != FsCall::kOpen) return Ok();
    if (packs_seen && name.size() == 38) {
      packed = true;
      return Shell(world_.project, "git repack -adq; git prune-packed");
    }
    packs_seen = packs_seen || name == "pack";
    return Ok();
  });
  RestoreWorld other(hooked, temp_.path(), 2, getuid());
  other.settings.git_protect = true;
  auto made = other.Capture("start");
  ASSERT_TRUE(made.ok()) << made.error().what;
  ASSERT_TRUE(packed);
  Do("rm -rf .git");
  MustBack("start");
  EXPECT_EQ(Look(), start);
  EXPECT_EQ(Said(world_.project, {"fsck", "--no-dangling"}), "");
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
