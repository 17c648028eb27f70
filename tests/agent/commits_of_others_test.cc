// Commits since a checkpoint of a session: those that its own calls made go back with
// it, whoever else's stay.

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/real_fs.h"
#include "support/agent_world.h"
#include "support/git_shell.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

class CommitsOfOthersTest : public ::testing::Test {
 protected:
  CommitsOfOthersTest() {
    w_.outside = OnOutside::kKeep;
    Do("git init -q -b main .; git add .; git commit -qm first");
  }
  void Do(const std::string& text) {
    const Status done = Shell(w_.world.project, text);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }
  void Commit(const std::string& name) {
    Do("echo " + name + " >" + name + "; git add " + name + "; git commit -qm " + name);
  }
  // A call of the session that commits.
  void ItsCommit(const std::string& session, const std::string& name) {
    w_.Pre(session, name);
    Commit(name);
    w_.Post(session, name);
  }
  void Began(const std::string& session) {
    w_.Start(session);
    w_.Prompt(session);
    turn_ = w_.last;
  }
  // The commits that a rollback to the turn leaves; then they are all there again.
  std::string LeftBy(std::string* warned = nullptr) {
    const Outcome done = Must(w_.Back(turn_));
    const std::string left = Said(w_.world.project, {"log", "--format=%s"});
    if (warned != nullptr)
      for (const std::string& one : done.plan.warnings) *warned += one + "\n";
    if (done.operation) Must(w_.world.Undo());
    std::string out;
    for (const char c : left) out += c == '\n' ? ' ' : c;
    return out;
  }

  RealFs fs_;
  TempDir temp_;
  AgentWorld w_{fs_, temp_.path(), getuid()};
  Checkpoint turn_;
};

TEST_F(CommitsOfOthersTest, WhatACallOfTheSessionCommittedGoesBack) {
  Began("s");
  ItsCommit("s", "one");
  w_.Prompt("s");
  ItsCommit("s", "two");
  EXPECT_EQ(LeftBy(), "first");
}

// Nothing but HEAD differs then.
TEST_F(CommitsOfOthersTest, AlsoWhereNoFileChanged) {
  Began("s");
  w_.Write("s", "w", "made", "made");
  w_.Pre("s", "c");
  Do("git add made; git commit -qm made");
  w_.Post("s", "c");
  w_.Prompt("s");
  EXPECT_EQ(LeftBy(), "first");
}

// Mutant: neighbours-commit.
TEST_F(CommitsOfOthersTest, APersonsCommitBetweenTwoTurnsStays) {
  Began("s");
  ItsCommit("s", "one");
  w_.End(EventKind::kTurnEnd, "s");
  Commit("person");
  w_.Prompt("s");
  std::string warned;
  EXPECT_EQ(LeftBy(&warned), "person one first");
  EXPECT_NE(warned.find("made outside of the session"), std::string::npos) << warned;
}

TEST_F(CommitsOfOthersTest, OneBetweenTwoCallsStays) {
  Began("s");
  w_.Write("s", "w", "made", "made");
  Commit("person");
  ItsCommit("s", "two");
  EXPECT_EQ(LeftBy(), "two person first");
}

// As files are: nobody commits through a tool that names what it writes.
TEST_F(CommitsOfOthersTest, OneBesideAnEditStays) {
  Began("s");
  w_.Pre("s", "w", {"made"});
  Commit("person");
  w_.Put("made", "made");
  w_.Post("s", "w", {"made"});
  EXPECT_EQ(LeftBy(), "person first");
}

TEST_F(CommitsOfOthersTest, OneThatNobodyLookedAtYetStays) {
  Began("s");
  ItsCommit("s", "one");
  Commit("person");
  EXPECT_EQ(LeftBy(), "person one first");
}

TEST_F(CommitsOfOthersTest, AnotherSessionsStays) {
  w_.Start("other");
  w_.Prompt("other");
  Began("s");
  ItsCommit("other", "theirs");
  w_.Prompt("s");
  EXPECT_EQ(LeftBy(), "theirs first");
}

// Mutant: subagents-are-others.
TEST_F(CommitsOfOthersTest, ThoseOfASubagentsSessionGoBack) {
  Began("s");
  HookEvent child = w_.Event(EventKind::kSessionStart, "child");
  child.source = "subagent";
  child.parent_session = "s";
  w_.Tell(child);
  ItsCommit("child", "its");
  w_.Prompt("s");
  EXPECT_EQ(LeftBy(), "first");
}

// A rollback of that commit, and one behind it, are nobody's.
TEST_F(CommitsOfOthersTest, WhatARollbackDidToHeadIsNobodys) {
  Began("s");
  ItsCommit("s", "one");
  Must(w_.Back(turn_));
  w_.Prompt("s");
  ItsCommit("s", "two");
  EXPECT_EQ(LeftBy(), "first");
}

// Mutant: commits-are-not-handed-on.
TEST_F(CommitsOfOthersTest, WhoseTheyAreIsKnownWhenCheckpointsAreLetGo) {
  Began("s");
  Must(w_.world.Capture("by hand"));
  ItsCommit("s", "one");
  for (int i = 0; i < 4; ++i) w_.Prompt("s");
  ASSERT_GT(w_.Prune(2), 0u);
  w_.List();
  EXPECT_EQ(LeftBy(), "first");
  Commit("person");
  for (int i = 0; i < 4; ++i) w_.Prompt("s");
  ASSERT_GT(w_.Prune(2), 0u);
  std::string warned;
  EXPECT_EQ(LeftBy(&warned), "person one first");
  EXPECT_NE(warned.find("made outside of the session"), std::string::npos) << warned;
}

// Records of before did not tell who moved HEAD.
TEST_F(CommitsOfOthersTest, OfWhichNobodyToldTheyStay) {
  Began("s");
  w_.Pre("s", "c");
  Commit("one");
  w_.Post("s", "c");
  {
    auto opened = Must(w_.world.Open());
    LogRecord record;
    record.kind = RecordKind::kAnnotation;
    record.root = opened.root.id;
    record.id = RecordId(opened.store->random().NewId());
    record.fields.Add(kAnnotationTarget, w_.last.id.span());
    std::vector<Authorship> by = w_.last.by;
    std::erase_if(by, [](const Authorship& one) {
      return one.paths == std::vector<std::string>{".git"};
    });
    ASSERT_LT(by.size(), w_.last.by.size());
    AddAuthors(record.fields, by, w_.last.since);
    auto writer = Must(opened.store->Begin());
    writer->Add(std::move(record));
    Must(writer->Commit());
  }
  std::string warned;
  EXPECT_EQ(LeftBy(&warned), "one first");
  EXPECT_NE(warned.find("who made the commits since was not recorded"),
            std::string::npos)
      << warned;
}

}  // namespace
}  // namespace belay::test
