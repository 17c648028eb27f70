// Whose doings a rollback asks about: after what rollbacks took back, of the directory
// itself, and for a session that goes on beside the one that it was forked from.

#include "recorder_world.h"

namespace belay::test {
namespace {

class ByWhomTest : public RecorderWorld {
 protected:
  Result<Outcome> Back(const Checkpoint& target, OnOutside outside,
                       const std::vector<std::string>& asking = {}, bool dry = false) {
    auto opened = Must(world_.Open());
    RollbackRequest request = world_.RequestFor(opened.root);
    request.outside = outside;
    request.asking = asking;
    return dry ? PreviewRollback(*opened.store, request, target)
               : Rollback(*opened.store, request, target);
  }
  std::string AskedFor(const Checkpoint& target,
                       const std::vector<std::string>& asking) {
    std::string out;
    for (const std::string& path :
         Must(Back(target, OnOutside::kAsk, asking, true)).plan.outside)
      out += (out.empty() ? "" : " ") + path;
    return out;
  }
  void Edit(const std::string& session, const std::string& path,
            const std::string& text) {
    const std::string id = session + path + text;
    Pre(session, id, {path});
    Put(path, text);
    Post(session, id, {path});
  }
};

// Mutant: what-was-taken-back-still-counts.
TEST_F(ByWhomTest, WhatARollbackTookBackIsNotAskedAboutAgain) {
  Put("c", "first");
  Start("s");
  Prompt("s", "p1");
  const Checkpoint first = last_;
  Edit("s", "a", "1");
  Put("c", "a person's");
  EXPECT_EQ(Asked(first), "c");
  Must(Back(first, OnOutside::kExact));
  // What is undone is there again, and so is whose it was; redone it is not.
  Must(world_.Undo());
  EXPECT_EQ(Asked(first), "c");
  Must(world_.Redo());
  Prompt("s", "p2");
  Edit("s", "c", "the agent's");
  EXPECT_EQ(Asked(first), "") << "nothing of the person's is left";
  // And what is done to it now is new.
  Put("c", "by hand again");
  EXPECT_EQ(Asked(first), "c");
}

TEST_F(ByWhomTest, NorWhenItWentBackToAnotherTurn) {
  Start("s");
  Prompt("s", "p1");
  const Checkpoint first = last_;
  Edit("s", "a", "1");
  Edit("s", "b", "1");
  Prompt("s", "p2");
  const Checkpoint second = last_;
  Put("a", "a person's");
  Must(Back(second, OnOutside::kExact));
  EXPECT_EQ(Asked(first), "") << "what the agent wrote in its first turn";
  // What was kept there counts on.
  Put("b", "a person's");
  Edit("s", "a", "3");
  Must(Back(second, OnOutside::kKeep));
  EXPECT_EQ(Asked(first), "b");
}

// Mutant: the-root-is-nobodys.
TEST_F(ByWhomTest, TheModeOfTheDirectoryItselfIsAskedAbout) {
  auto mode = [&] { return Must(disk_.Stat(Must(world_.Dir()))).mode; };
  auto set = [&](uint32_t to) { Must(disk_.SetMode(Must(world_.Dir()), to)); };
  set(0755);
  Start("s");
  Prompt("s", "p1");
  const Checkpoint first = last_;
  Edit("s", "a", "1");
  set(0700);
  EXPECT_EQ(Asked(first), ".") << "since the last checkpoint";
  Prompt("s", "p2");
  EXPECT_EQ(Asked(first), ".");
  EXPECT_FALSE(Back(first, OnOutside::kAsk).ok());
  const Outcome kept = Must(Back(first, OnOutside::kKeep));
  EXPECT_EQ(mode(), 0700u);
  ASSERT_EQ(kept.plan.kept.size(), 1u);
  EXPECT_EQ(kept.plan.kept[0], (KeptPath{.path = ".", .why = "outside"}));
  Must(world_.Undo());
  Must(Back(first, OnOutside::kExact));
  EXPECT_EQ(mode(), 0755u);
  // The agent's own goes back without a word, also beside an edit of one file.
  Prompt("s", "p3");
  Pre("s", "shell");
  set(0711);
  Post("s", "shell");
  EXPECT_EQ(Asked(first), "");
  Must(Back(first, OnOutside::kAsk));
  EXPECT_EQ(mode(), 0755u);
  Pre("s", "edit", {"a"});
  Put("a", "2");
  set(0700);
  Post("s", "edit", {"a"});
  EXPECT_EQ(Asked(first), ".") << "an edit tool does not change that";
}

// Mutant: the-original-asks-for-its-fork.
TEST_F(ByWhomTest, AForkThatTakesBackAnInheritedTurnAsksAboutItsOriginal) {
  Start("a");
  Prompt("a", "a1");
  Edit("a", "one", "1");
  Prompt("a", "a2");
  const Checkpoint second = last_;
  Edit("a", "two", "2");
  End(EventKind::kTurnEnd, "a");
  HookEvent fork = Event(EventKind::kSessionStart, "f");
  fork.source = "fork";
  fork.parent_session = "a";
  fork.parent_turns = 2;
  Tell(fork);
  Prompt("f", "f3");
  Edit("f", "of fork", "3");
  // Nobody goes on beside it: the same work.
  EXPECT_EQ(AskedFor(second, {"f"}), "");
  EXPECT_EQ(AskedFor(second, {}), "");
  // Another fork is another, also while nobody goes on with the original.
  fork.session = "g";
  Tell(fork);
  Prompt("g", "g3");
  Edit("g", "of another", "3");
  EXPECT_EQ(AskedFor(second, {"f"}), "of another");
  EXPECT_EQ(AskedFor(second, {"g"}), "of fork");
  Prompt("a", "a3");
  Edit("a", "of original", "3");
  EXPECT_EQ(AskedFor(second, {"f"}), "of another of original");
  EXPECT_EQ(AskedFor(second, {}), "of another of fork") << "it is the original's";
  EXPECT_EQ(AskedFor(second, {"f", "a"}), "of another of fork of original")
      << "either may be meant";
  Must(Back(second, OnOutside::kKeep, {"f"}));
  EXPECT_EQ(world_.Tree().find("of fork"), std::string::npos);
  EXPECT_EQ(world_.Tree().find("two"), std::string::npos) << "inherited";
  EXPECT_NE(world_.Tree().find("of original"), std::string::npos);
}

}  // namespace
}  // namespace belay::test
