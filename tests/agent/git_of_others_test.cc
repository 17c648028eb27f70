// What of git moved since a checkpoint of a session, beside commits on its branch: what
// its own calls moved goes back with it; where anybody else did, git stays as it is,
// and that is said.

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/real_fs.h"
#include "core/annotate.h"
#include "support/agent_world.h"
#include "support/git_shell.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

class GitOfOthers {
 public:
  GitOfOthers() {
    w_.outside = OnOutside::kKeep;
    Do("git init -q -b main .; git add .; git commit -qm first; git branch side\n"
       "git tag v0; git switch -qc clash; echo clash >old.txt; git commit -qam clash\n"
       "git switch -q main; echo main >old.txt; git commit -qam second\n"
       "echo stashed >old.txt; git stash -q");
    w_.Start("s");
    w_.Prompt("s");
    turn_ = w_.last;
    then_ = Look();
  }
  void Do(const std::string& text) {
    const Status done = Shell(w_.world.project, text);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }
  // A call of the session.
  void ItDoes(const std::string& text) {
    const std::string id = "c" + std::to_string(++calls_);
    w_.Pre("s", id);
    Do(text);
    w_.Post("s", id);
  }
  void ItCommits(const std::string& name) {
    ItDoes("echo " + name + " >" + name + "; git add " + name + "; git commit -qm " +
           name);
  }
  // Somebody between two turns.
  void APersonDoes(const std::string& text) {
    w_.End(EventKind::kTurnEnd, "s");
    Do(text);
    w_.Prompt("s");
  }
  // Branches, tags, the stash, what is under way.
  std::string Look() {
    auto said = RunProgram(
        AbsPath::Literal("/bin/sh"), w_.world.project,
        {"-c",
         "git symbolic-ref -q HEAD || git rev-parse HEAD\n"
         "git for-each-ref --format='%(refname) %(objectname)' refs/heads refs/tags\n"
         "git reflog show refs/stash 2>/dev/null; git ls-files -u\n"
         "cd .git; ls MERGE_HEAD CHERRY_PICK_HEAD BISECT_LOG rebase-merge 2>/dev/null\n"
         "cat info/sparse-checkout 2>/dev/null; :"});
    return said.ok() ? *said : said.error().what;
  }
  std::string Commits() { return Said(w_.world.project, {"log", "--format=%s"}); }
  // What it warned of.
  std::string Back(const GitChoice& git = {}) {
    w_.world.git = git;
    const Outcome done = Must(w_.Back(turn_));
    std::string out;
    for (const std::string& one : done.plan.warnings) out += one + "\n";
    return out;
  }

  RealFs fs_;
  TempDir temp_;
  AgentWorld w_{fs_, temp_.path(), getuid()};
  Checkpoint turn_;
  std::string then_;
  int calls_ = 0;
};

// --- what a rollback takes back, one row each ---

struct GitDoing {
  const char* name;
  const char* text;
};

class GitDoneTest : public GitOfOthers, public ::testing::TestWithParam<GitDoing> {};

TEST_P(GitDoneTest, ByAPersonStaysAndIsSaid) {
  APersonDoes(GetParam().text);
  const std::string done = Look();
  ASSERT_NE(done, then_);
  const std::string said = Back();
  EXPECT_EQ(Look(), done);
  EXPECT_NE(said.find("outside of the session"), std::string::npos) << said;
  EXPECT_NE(said.find("--git reset"), std::string::npos) << said;
}

TEST_P(GitDoneTest, ThatNobodyLookedAtYetStays) {
  Do(GetParam().text);
  const std::string done = Look();
  const std::string said = Back();
  EXPECT_EQ(Look(), done);
  EXPECT_NE(said.find("outside of the session"), std::string::npos) << said;
}

TEST_P(GitDoneTest, ByAPersonKeepsWhatTheSessionCommittedToo) {
  ItCommits("one");
  APersonDoes(GetParam().text);
  const std::string done = Look();
  Back();
  EXPECT_EQ(Look(), done);
  EXPECT_EQ(w_.At(w_.world.project.bytes() + "/one"), "-") << "files go back";
}

TEST_P(GitDoneTest, ByAPersonGoesBackWhenAskedFor) {
  APersonDoes(GetParam().text);
  Back({.action = GitAction::kReset});
  EXPECT_EQ(Look(), then_);
}

TEST_P(GitDoneTest, ByTheSessionGoesBack) {
  ItDoes(GetParam().text);
  w_.Prompt("s");
  ASSERT_NE(Look(), then_);
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Look(), then_);
}

TEST_P(GitDoneTest, IsStillKnownWhenCheckpointsAreLetGo) {
  ItDoes(GetParam().text);
  for (int i = 0; i < 4; ++i) w_.Prompt("s");
  for (const CatalogEntry& entry : w_.List())
    if (entry.checkpoint.id == turn_.id) {
      auto opened = Must(w_.world.Open());
      Must(Annotate(*opened.store, entry, {.pinned = true}));
    }
  ASSERT_GT(w_.Prune(2), 0u);
  Back();
  EXPECT_EQ(Look(), then_);
  APersonDoes(GetParam().text);
  const std::string done = Look();
  for (int i = 0; i < 4; ++i) w_.Prompt("s");
  ASSERT_GT(w_.Prune(2), 0u);
  const std::string said = Back();
  EXPECT_EQ(Look(), done);
  EXPECT_NE(said.find("outside of the session"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Git, GitDoneTest,
    ::testing::Values(GitDoing{"MovedBranch", "git branch -f side main"},
                      GitDoing{"DeletedBranch", "git branch -qD side"},
                      GitDoing{"MovedTag", "git tag -f v0 main"},
                      GitDoing{"DeletedTag", "git tag -d v0"},
                      GitDoing{"Stash", "echo x >old.txt; git stash -q"},
                      GitDoing{"DroppedStash", "git stash drop -q"},
                      GitDoing{"Merge",
                               "git merge -q clash || test -f .git/MERGE_HEAD"},
                      GitDoing{"Bisection", "git bisect start -q"},
                      GitDoing{"Unmerged", "git read-tree -m v0 main clash"},
                      GitDoing{"Reset", "git reset -q --hard v0"},
                      GitDoing{"Sparse",
                               "mkdir -p .git/info; echo /old.txt >.git/info/"
                               "sparse-checkout"}),
    [](const auto& row) { return std::string(row.param.name); });

// --- single cases ---

class GitOfOthersTest : public GitOfOthers, public ::testing::Test {};

TEST_F(GitOfOthersTest, AMergeOfTheSessionThatAPersonResolvesStays) {
  ItDoes("git merge -q clash || test -f .git/MERGE_HEAD");
  APersonDoes("echo resolved >old.txt; git add old.txt");
  const std::string done = Look();
  Back();
  EXPECT_EQ(Look(), done);
}

TEST_F(GitOfOthersTest, ABranchThatAPersonMadeOfItsCommitsHoldsThem) {
  ItCommits("one");
  APersonDoes("git branch theirs");
  const std::string said = Back();
  EXPECT_EQ(Commits(), "one\nsecond\nfirst");
  EXPECT_NE(said.find("held by branch theirs"), std::string::npos) << said;
}

TEST_F(GitOfOthersTest, SoDoesATag) {
  ItCommits("one");
  APersonDoes("git tag -a -m x theirs");
  const std::string said = Back();
  EXPECT_EQ(Commits(), "one\nsecond\nfirst");
  EXPECT_NE(said.find("held by tag theirs"), std::string::npos) << said;
}

// New ones stay, whatever goes back.
TEST_F(GitOfOthersTest, OneThatHoldsNoneOfThemIsNoReason) {
  ItCommits("one");
  APersonDoes("git branch theirs side; git tag their-tag side");
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Commits(), "second\nfirst");
  EXPECT_EQ(Said(w_.world.project, {"rev-parse", "theirs", "their-tag"}),
            Said(w_.world.project, {"rev-parse", "side", "side"}));
}

TEST_F(GitOfOthersTest, OneOfTheSessionIsNoReason) {
  ItCommits("one");
  ItDoes("git branch its; git tag -a -m x its-tag");
  w_.Prompt("s");
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Commits(), "second\nfirst");
}

TEST_F(GitOfOthersTest, AFetchIsNoReason) {
  Do("git clone -q --bare . ../other.git; git remote add o ../other.git\n"
     "git clone -q ../other.git ../clone; cd ../clone; echo x >x; git add x\n"
     "git commit -qm theirs; git tag from-there; git push -q origin main from-there");
  ItCommits("one");
  APersonDoes("git fetch -q o; git rev-parse -q --verify refs/tags/from-there");
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Commits(), "second\nfirst");
}

TEST_F(GitOfOthersTest, PackingAndStagingAreNoReason) {
  ItCommits("one");
  APersonDoes("git gc -q; echo x >x; git add x; git reset -q; git add x");
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Commits(), "second\nfirst");
}

TEST_F(GitOfOthersTest, ABranchThatAPersonWorksOnElsewhereIsNoReason) {
  Do("git worktree add -q ../elsewhere side");
  ItCommits("one");
  APersonDoes("git -C ../elsewhere commit -q --allow-empty -m theirs");
  Back();
  EXPECT_EQ(Commits(), "second\nfirst");
  EXPECT_EQ(Said(w_.world.project, {"log", "-1", "--format=%s", "side"}), "theirs");
}

TEST_F(GitOfOthersTest, WithASwitchCommitsOfAPersonOnTheBranchOfThenStay) {
  APersonDoes("git commit -q --allow-empty -m theirs");
  ItDoes("git switch -q side");
  w_.Prompt("s");
  const std::string done = Look();
  const std::string said = Back({.switch_branch = true});
  EXPECT_EQ(Look(), done);
  EXPECT_NE(said.find("outside of the session"), std::string::npos) << said;
}

TEST_F(GitOfOthersTest, WithASwitchThoseOfTheSessionGoBack) {
  ItCommits("one");
  ItDoes("git switch -q side");
  w_.Prompt("s");
  Back({.switch_branch = true});
  EXPECT_EQ(Look(), then_);
}

// It is what was asked for.
TEST_F(GitOfOthersTest, WithASwitchThatAPersonSwitchedIsNoReason) {
  ItCommits("one");
  APersonDoes("git switch -q side");
  Back({.switch_branch = true});
  EXPECT_EQ(Look(), then_);
}

TEST_F(GitOfOthersTest, ADetachedHeadThatAPersonMovedStays) {
  ItDoes("git checkout -q --detach");
  w_.Prompt("s");
  turn_ = w_.last;
  APersonDoes("git checkout -q --detach v0");
  const std::string done = Look();
  Back();
  EXPECT_EQ(Look(), done);
}

TEST_F(GitOfOthersTest, WhatARollbackTookBackIsNobodys) {
  ItDoes("git branch -f side main; git stash drop -q; git tag -d v0");
  Back();
  ASSERT_EQ(Look(), then_);
  w_.Prompt("s");
  ItDoes("git branch -f side clash; echo x >old.txt; git stash -q");
  w_.Prompt("s");
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Look(), then_);
}

// The checkpoint as it says of git what `by` says; without one nothing.
void TellOtherwise(AgentWorld& w, const std::optional<Authorship>& by) {
  auto opened = Must(w.world.Open());
  LogRecord record;
  record.kind = RecordKind::kAnnotation;
  record.root = opened.root.id;
  record.id = RecordId(opened.store->random().NewId());
  record.fields.Add(kAnnotationTarget, w.last.id.span());
  std::vector<Authorship> all = w.last.by;
  const size_t were = all.size();
  std::erase_if(all, [](const Authorship& one) {
    return one.paths == std::vector<std::string>{".git"};
  });
  ASSERT_LT(all.size(), were);
  if (by) all.push_back(*by);
  AddAuthors(record.fields, all, w.last.since);
  auto writer = Must(opened.store->Begin());
  writer->Add(std::move(record));
  Must(writer->Commit());
}

// Those named git only where HEAD had moved: all else went back.
TEST_F(GitOfOthersTest, AnOlderCheckpointThatDoesNotNameItIsNoReason) {
  ItCommits("one");
  w_.End(EventKind::kTurnEnd, "s");
  Do("git branch -f side main");
  w_.Prompt("s");
  TellOtherwise(w_, std::nullopt);
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Look(), then_);
}

TEST_F(GitOfOthersTest, OneThatMovedHeadUnnamedIs) {
  ItCommits("one");
  TellOtherwise(w_, std::nullopt);
  const std::string said = Back();
  EXPECT_EQ(Commits(), "one\nsecond\nfirst");
  EXPECT_NE(said.find("was not recorded"), std::string::npos) << said;
}

TEST_F(GitOfOthersTest, WhoMovedTheManyThatAreNotNamedIsKnown) {
  w_.End(EventKind::kTurnEnd, "s");
  Do("git branch -f side main");
  w_.Prompt("s");
  ASSERT_FALSE(w_.last.by.empty());
  TellOtherwise(w_, Authorship{{Author{.kind = Author::Kind::kSession, .session = "s"}},
                               {"other/.git", "/.git"}});
  EXPECT_EQ(Back().find("--git reset"), std::string::npos);
  EXPECT_EQ(Look(), then_);
  ItDoes("git branch -f side main");
  TellOtherwise(w_, Authorship{{Author{}}, {"other/.git", "/.git"}});
  EXPECT_NE(Back().find("outside of the session"), std::string::npos);
}

}  // namespace
}  // namespace belay::test
