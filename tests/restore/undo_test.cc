// Undo and redo: the recorded inverse, at any depth, whatever happened in between.

#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class UndoTest : public RestoreTest {
 protected:
  // "a" is `text`, and so it is called.
  void Checkpoint(const std::string& text) {
    Put("a", text);
    Must(world.Capture(text));
  }
  Result<Outcome> UndoOf(const RecordId& which, bool exact = false) {
    BELAY_TRY(auto opened, world.Open());
    return belay::Undo(*opened.store, *opened.catalog, world.RequestFor(opened.root),
                       which, exact);
  }
  std::string UndoStack() {
    std::string out;
    for (const Operation& operation : StacksOf(Operations()).undo)
      out += (out.empty() ? "" : " ") + std::string(OperationName(operation.kind)) +
             ":" + operation.label;
    return out;
  }
  std::string RedoStack() {
    std::string out;
    for (const Operation& operation : StacksOf(Operations()).redo)
      out += (out.empty() ? "" : " ") + std::string(OperationName(operation.kind)) +
             ":" + operation.label;
    return out;
  }
};

TEST_F(UndoTest, StepsBackAndForwardAtAnyDepth) {
  for (int i = 0; i < 12; ++i) Checkpoint("v" + std::to_string(i));
  std::vector<std::string> states{Read("a")};
  for (int i = 10; i >= 0; --i) {
    Must(world.Rollback("v" + std::to_string(i)));
    states.push_back(Read("a"));
  }
  for (int round = 0; round < 2; ++round) {
    for (size_t i = states.size() - 1; i-- > 0;) {
      Must(world.Undo());
      ASSERT_EQ(Read("a"), states[i]);
    }
    EXPECT_FALSE(world.Undo().ok()) << "there is nothing left";
    for (size_t i = 1; i < states.size(); ++i) {
      Must(world.Redo());
      ASSERT_EQ(Read("a"), states[i]);
    }
    EXPECT_FALSE(world.Redo().ok()) << "there is nothing left";
  }
}

TEST_F(UndoTest, NothingToUndoIsRefused) {
  Checkpoint("v0");
  auto undo = world.Undo();
  ASSERT_FALSE(undo.ok());
  EXPECT_EQ(undo.error().code, Errc::kRefused);
  auto redo = world.Redo();
  ASSERT_FALSE(redo.ok());
  EXPECT_EQ(redo.error().code, Errc::kRefused);
}

TEST_F(UndoTest, CheckpointsInBetweenChangeNothing) {
  Checkpoint("v0");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  Must(world.Capture("between"));
  Put("other", "made since");
  Must(world.Capture("between 2"));
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "v1");
  EXPECT_EQ(Read("other"), "made since");
  Must(world.Capture("between 3"));
  Must(world.Redo());
  EXPECT_EQ(Read("a"), "v0");
  EXPECT_EQ(Read("other"), "made since");
}

TEST_F(UndoTest, ANewRollbackDropsWhatCouldBeRedone) {
  Checkpoint("v0");
  Checkpoint("v1");
  Checkpoint("v2");
  Must(world.Rollback("v0"));
  Must(world.Undo());
  EXPECT_EQ(RedoStack(), "rollback:v0");
  Must(world.Rollback("v1"));
  EXPECT_EQ(RedoStack(), "");
  EXPECT_FALSE(world.Redo().ok());
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "v2");
}

TEST_F(UndoTest, AnEditedPathIsAConflictAndNothingChanges) {
  Put("b", "b0");
  Checkpoint("v0");
  Put("b", "b1");
  Put("new", "n");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  Put("a", "my own edit");
  const std::string before = Tree();
  Outcome refused = Must(world.Undo());
  EXPECT_FALSE(refused.operation);
  ASSERT_EQ(refused.conflicts.size(), 1u);
  EXPECT_EQ(refused.conflicts[0].path, "a");
  EXPECT_EQ(refused.conflicts[0].what, "changed since");
  EXPECT_EQ(Tree(), before);
  EXPECT_EQ(UndoStack(), "rollback:v0") << "it can still be undone";

  Outcome exact = Must(world.Undo(true));
  ASSERT_TRUE(exact.operation);
  EXPECT_EQ(Read("a"), "v1");
  EXPECT_EQ(Read("b"), "b1");
  EXPECT_EQ(Holds(*exact.safety)["a"], "my own edit");
  EXPECT_TRUE(IsStoredSomewhere("a", "my own edit"));
}

TEST_F(UndoTest, EveryKindOfConflictIsNamed) {
  Put("gone", "g");
  Put("back", "b");
  Put("dir", "d");
  Put("moded", "m");
  Must(world.Capture("start"));
  Put("gone", "g2");
  Remove("back");
  Put("new", "n");
  Put("dir", "d2");
  Put("moded", "m2");
  Must(world.Rollback("start"));
  Remove("gone");
  Remove("dir");
  Put("dir/in", "x");
  Put("new", "there again");
  Chmod("moded", 0600);
  const std::string before = Tree();
  Outcome refused = Must(world.Undo());
  std::map<std::string, std::string> conflicts;
  for (const Conflict& conflict : refused.conflicts)
    conflicts[conflict.path] = conflict.what;
  EXPECT_EQ(conflicts, (std::map<std::string, std::string>{{"dir", "changed since"},
                                                           {"gone", "is gone"},
                                                           {"moded", "changed since"},
                                                           {"new", "is there again"}}));
  EXPECT_EQ(Tree(), before);
  // Asked for, all of it goes, the directory with what is in it: into a checkpoint.
  Outcome exact = Must(world.Undo(true));
  ASSERT_TRUE(exact.operation);
  EXPECT_TRUE(exact.verified);
  EXPECT_EQ(Read("dir"), "d2");
  EXPECT_EQ(Read("new"), "n");
  EXPECT_FALSE(Exists("back"));
  EXPECT_EQ(Holds(*exact.safety)["dir/in"], "x");
  EXPECT_EQ(Holds(*exact.safety)["new"], "there again");
}

// Somebody worked in the directory that the rollback put where a file was.
TEST_F(UndoTest, WhatWasMadeInADirectoryThatGivesWayIsAConflict) {
  Put("swap/in", "1");
  Must(world.Capture("start"));
  Remove("swap");
  Put("swap", "a file");
  Must(world.Rollback("start"));
  Put("swap/mine", "made since");
  Put("swap/sub/deep", "made since");
  const std::string before = Tree();
  Outcome refused = Must(world.Undo());
  EXPECT_FALSE(refused.operation);
  ASSERT_EQ(refused.conflicts.size(), 2u);
  EXPECT_EQ(refused.conflicts[0].path, "swap/mine");
  EXPECT_EQ(refused.conflicts[0].what, "is in the way");
  EXPECT_EQ(refused.conflicts[1].path, "swap/sub");
  EXPECT_EQ(Tree(), before);

  Outcome exact = Must(world.Undo(true));
  ASSERT_TRUE(exact.operation);
  EXPECT_EQ(Read("swap"), "a file");
  EXPECT_EQ(Holds(*exact.safety)["swap/mine"], "made since");
  EXPECT_EQ(Holds(*exact.safety)["swap/sub/deep"], "made since");
  // The same forward: what was taken back is there again, and is asked about again.
  Outcome redone = Must(world.Redo());
  ASSERT_TRUE(redone.operation);
  EXPECT_EQ(Read("swap/in"), "1");
}

TEST_F(UndoTest, ADirectoryThatWentSinceIsMadeAgain) {
  Put("src/lib/kept", "k");
  Must(world.Capture("start"));
  Put("src/lib/new", "n");
  Must(world.Rollback("start"));
  Remove("src");
  Outcome done = Must(world.Undo());
  EXPECT_TRUE(done.conflicts.empty());
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Read("src/lib/new"), "n");
  EXPECT_FALSE(Exists("src/lib/kept")) << "that was not the rollback's doing";

  Must(world.Redo());
  Remove("src");
  Put("src", "a file of mine");
  Outcome refused = Must(world.Undo());
  ASSERT_FALSE(refused.operation);
  ASSERT_EQ(refused.conflicts.size(), 1u);
  EXPECT_EQ(refused.conflicts[0].path, "src");
  EXPECT_EQ(Read("src"), "a file of mine");
  Outcome exact = Must(world.Undo(true));
  ASSERT_TRUE(exact.operation);
  EXPECT_EQ(Read("src/lib/new"), "n");
  EXPECT_EQ(Holds(*exact.safety)["src"], "a file of mine");
}

TEST_F(UndoTest, ExactTakesNothingThatCannotBeStored) {
  Put("swap/in", "1");
  Must(world.Capture("start"));
  Remove("swap");
  Put("swap", "a file");
  Must(world.Rollback("start"));
  Put("swap/repo/.git/HEAD", "ref: refs/heads/main\n");
  Put("swap/repo/work", "w");
  const std::string before = Tree();
  Outcome refused = Must(world.Undo(true));
  EXPECT_FALSE(refused.operation);
  ASSERT_EQ(refused.conflicts.size(), 1u);
  EXPECT_EQ(refused.conflicts[0].path, "swap/repo/.git");
  EXPECT_EQ(Tree(), before);
}

TEST_F(UndoTest, RedoAlsoRefusesAConflict) {
  Checkpoint("v0");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  Must(world.Undo());
  Put("a", "mine");
  Outcome refused = Must(world.Redo());
  ASSERT_EQ(refused.conflicts.size(), 1u);
  EXPECT_EQ(Read("a"), "mine");
  Outcome exact = Must(world.Redo(true));
  ASSERT_TRUE(exact.operation);
  EXPECT_EQ(Read("a"), "v0");
  EXPECT_EQ(Holds(*exact.safety)["a"], "mine");
  // One step is one rollback: what was in the way is in the safety checkpoint.
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "v1");
}

TEST_F(UndoTest, APathThatIsSoAlreadyIsNoConflict) {
  Put("b", "b0");
  Checkpoint("v0");
  Put("b", "b1");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  Put("a", "v1");  // somebody brought it back by hand
  Outcome done = Must(world.Undo());
  EXPECT_TRUE(done.conflicts.empty());
  EXPECT_EQ(Read("a"), "v1");
  EXPECT_EQ(Read("b"), "b1");
}

TEST_F(UndoTest, WhereNothingMovesIsAStepAllTheSame) {
  Checkpoint("v0");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  Put("only", "x");
  Must(world.Rollback("v0"));  // takes "only" away
  Put("only", "x");            // and somebody brings it back
  Outcome undone = Must(world.Undo());
  ASSERT_TRUE(undone.operation);
  EXPECT_TRUE(undone.plan.changes.empty());
  EXPECT_FALSE(undone.safety) << "nothing was at risk";
  EXPECT_EQ(UndoStack(), "rollback:v0");
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "v1");
  EXPECT_FALSE(world.Undo().ok()) << "there is nothing left";
  Must(world.Redo());
  EXPECT_EQ(Read("a"), "v0");
  EXPECT_EQ(Read("only"), "x");
  Must(world.Redo());
  EXPECT_FALSE(Exists("only"));
  EXPECT_FALSE(world.Redo().ok()) << "there is nothing left";
  // Gone already: a step as well.
  Must(world.Undo());
  Remove("only");
  ASSERT_TRUE(Must(world.Redo()).operation);
  EXPECT_EQ(RedoStack(), "");
}

TEST_F(UndoTest, ADirectoryThatIsGoneIsSaidWithTheWayOut) {
  Checkpoint("v0");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  Fd machine = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(disk.Rename(machine, N("project"), machine, N("away"), RenameHow::kNoReplace));
  auto undo = world.Undo();
  ASSERT_FALSE(undo.ok());
  EXPECT_EQ(undo.error().code, Errc::kRefused);
  EXPECT_NE(undo.error().what.find("/m/project is gone"), std::string::npos);
  EXPECT_NE(undo.error().hint.find("belay rollback latest"), std::string::npos);
}

TEST_F(UndoTest, RulesDoNotApplyToIt) {
  Put("data", "d0");
  Must(world.Capture("start"));
  Put("data", "d1");
  Must(world.Rollback("start"));
  Put(".gitignore", "data\n");
  world.settings.exclude = {"data"};
  Outcome done = Must(world.Undo());
  EXPECT_EQ(Read("data"), "d1");
  EXPECT_EQ(Holds(*done.safety)["data"], "d0");
}

TEST_F(UndoTest, ADirectoryWithNewFilesInItStaysAndTheRestIsUndone) {
  Put("d/x", "1");
  Put("a", "1");
  Must(world.Capture("start"));
  Remove("d");
  Put("a", "2");
  Must(world.Rollback("start"));
  Put("d/mine", "since then");
  Outcome done = Must(world.Undo());
  EXPECT_EQ(Read("d/mine"), "since then");
  EXPECT_FALSE(Exists("d/x"));
  EXPECT_EQ(Read("a"), "2");
  EXPECT_NE(Kept(done.plan).find("d not_empty"), std::string::npos);
  Must(world.Redo());
  EXPECT_EQ(Read("d/x"), "1");
  EXPECT_EQ(Read("d/mine"), "since then");
}

TEST_F(UndoTest, AnEarlierOneOutOfOrder) {
  Put("a", "a0");
  Put("b", "b0");
  Must(world.Capture("start"));
  Put("a", "a1");
  Put("b", "b1");
  world.plan.select = {"a"};
  const RecordId first = Must(world.Rollback("start")).operation->id;
  world.plan.select = {"b"};
  Must(world.Rollback("start"));
  world.plan.select = {};
  Outcome done = Must(UndoOf(first));
  ASSERT_TRUE(done.operation);
  EXPECT_TRUE(done.operation->out_of_order);
  EXPECT_EQ(Read("a"), "a1");
  EXPECT_EQ(Read("b"), "b0");
  EXPECT_FALSE(world.Redo().ok()) << "it drops what could be redone";
  EXPECT_FALSE(UndoOf(first).ok()) << "it was undone already";
  // And is itself undone like a rollback.
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "a0");
  EXPECT_EQ(Read("b"), "b0");
  Must(world.Redo());
  EXPECT_EQ(Read("a"), "a1");
}

TEST_F(UndoTest, WhatWasTakenBackOutOfOrderCanBeUndoneAgainWhenItIsBack) {
  Put("a", "a0");
  Put("b", "b0");
  Must(world.Capture("start"));
  Put("a", "a1");
  Put("b", "b1");
  world.plan.select = {"a"};
  const RecordId first = Must(world.Rollback("start")).operation->id;
  world.plan.select = {"b"};
  Must(world.Rollback("start"));
  world.plan.select = {};
  Must(UndoOf(first));  // a1 b0
  Must(world.Undo());   // of that: a0 b0
  Must(world.Undo());   // of the second rollback
  EXPECT_EQ(Read("a") + Read("b"), "a0b1");
  Must(world.Undo());  // of the first
  EXPECT_EQ(Read("a") + Read("b"), "a1b1");
  Must(world.Redo());
  Must(world.Redo());
  EXPECT_EQ(Read("a") + Read("b"), "a0b0");
  Must(world.Redo());  // the undo out of order
  EXPECT_EQ(Read("a") + Read("b"), "a1b0");
}

TEST_F(UndoTest, OneThatIsNotThereIsNotFound) {
  Checkpoint("v0");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  auto undo = UndoOf(RecordId(world.world.random.NewId()));
  ASSERT_FALSE(undo.ok());
  EXPECT_EQ(undo.error().code, Errc::kNotFound);
}

TEST_F(UndoTest, RollingBackToASafetyCheckpointIsAnotherWayBack) {
  Checkpoint("v0");
  Checkpoint("v1");
  Put("new", "n");
  const std::string before = Tree();
  Outcome done = Must(world.Rollback("v0"));
  Must(world.Rollback(done.safety->id.text()));
  EXPECT_EQ(Tree(), before);
}

TEST_F(UndoTest, TwiceTheSameRollbackThenUndoRedoUndo) {
  Checkpoint("v0");
  Checkpoint("v1");
  Must(world.Rollback("v0"));
  EXPECT_FALSE(Must(world.Rollback("v0")).operation);
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "v1");
  Must(world.Redo());
  EXPECT_EQ(Read("a"), "v0");
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "v1");
}

TEST_F(UndoTest, IsItselfOnRecordWithASafetyCheckpoint) {
  Checkpoint("v0");
  Checkpoint("v1");
  const Operation rollback = *Must(world.Rollback("v0")).operation;
  Outcome undo = Must(world.Undo());
  auto operations = Operations();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0], rollback);
  EXPECT_EQ(operations[1].kind, OperationKind::kUndo);
  EXPECT_EQ(operations[1].of, rollback.id);
  ASSERT_TRUE(undo.safety);
  EXPECT_EQ(Holds(*undo.safety)["a"], "v0");
}

// --- which checkpoints were taken back
// -------------------------------------------------

class TakenBackTest : public UndoTest {
 protected:
  std::string TakenBackNames() {
    auto checkpoints = Checkpoints();
    auto taken = TakenBack(checkpoints, Operations());
    std::string out;
    for (size_t i = checkpoints.size(); i-- > 0;) {
      const belay::Checkpoint& checkpoint = checkpoints[i].checkpoint;
      if (!taken.contains(checkpoint.id) || !checkpoint.name) continue;
      out += (out.empty() ? "" : " ") + *checkpoint.name;
    }
    return out;
  }
};

TEST_F(TakenBackTest, LaterCheckpointsAreMarkedAndComeBackWithUndo) {
  for (const char* name : {"v0", "v1", "v2"}) Checkpoint(name);
  EXPECT_EQ(TakenBackNames(), "");
  Must(world.Rollback("v0"));
  EXPECT_EQ(TakenBackNames(), "v1 v2");
  Must(world.Undo());
  EXPECT_EQ(TakenBackNames(), "");
  Must(world.Redo());
  EXPECT_EQ(TakenBackNames(), "v1 v2");
}

TEST_F(TakenBackTest, TheHistoryIsATree) {
  for (const char* name : {"v0", "v1", "v2"}) Checkpoint(name);
  Must(world.Rollback("v0"));
  Checkpoint("other");
  EXPECT_EQ(TakenBackNames(), "v1 v2");
  Must(world.Rollback("v1"));
  EXPECT_EQ(TakenBackNames(), "v2 other");
  Must(world.Rollback("v2"));
  EXPECT_EQ(TakenBackNames(), "other");
  Must(world.Rollback("other"));
  EXPECT_EQ(TakenBackNames(), "v1 v2");
}

TEST_F(TakenBackTest, RollbacksOfPathsTakeNothingBack) {
  for (const char* name : {"v0", "v1", "v2"}) Checkpoint(name);
  world.plan.select = {"a"};
  Must(world.Rollback("v0"));
  EXPECT_EQ(TakenBackNames(), "");
  world.plan.select = {};
  Must(world.Undo());
  EXPECT_EQ(TakenBackNames(), "");
}

TEST_F(TakenBackTest, TheyAreKeptAndCanBeGoneBackTo) {
  for (const char* name : {"v0", "v1", "v2"}) Checkpoint(name);
  Must(world.Rollback("v0"));
  Must(world.Rollback("v2"));
  EXPECT_EQ(Read("a"), "v2");
}

// --- the stacks, by themselves
// -----------------------------------------------------------

struct OperationMaker {
  std::vector<Operation> all;
  RecordId Do(OperationKind kind, std::optional<RecordId> of = {},
              bool out_of_order = false) {
    Operation operation;
    Id128 id{};
    id.bytes[15] = static_cast<std::byte>(all.size() + 1);
    operation.id = RecordId(id);
    operation.seq = all.size() + 1;
    operation.kind = kind;
    operation.of = of;
    operation.out_of_order = out_of_order;
    all.push_back(operation);
    return operation.id;
  }
  size_t undo() const { return StacksOf(all).undo.size(); }
  size_t redo() const { return StacksOf(all).redo.size(); }
};

TEST(StacksOf, FollowsTheOperations) {
  OperationMaker made;
  const RecordId one = made.Do(OperationKind::kRollback);
  const RecordId two = made.Do(OperationKind::kRollback);
  EXPECT_EQ(made.undo(), 2u);
  made.Do(OperationKind::kUndo, two);
  EXPECT_EQ(made.undo(), 1u);
  EXPECT_EQ(made.redo(), 1u);
  made.Do(OperationKind::kUndo, one);
  EXPECT_EQ(made.undo(), 0u);
  EXPECT_EQ(made.redo(), 2u);
  made.Do(OperationKind::kRedo, one);
  EXPECT_EQ(StacksOf(made.all).undo.back().id, one);
  EXPECT_EQ(StacksOf(made.all).redo.back().id, two);
  made.Do(OperationKind::kRollback);
  EXPECT_EQ(made.undo(), 2u);
  EXPECT_EQ(made.redo(), 0u);
}

TEST(StacksOf, TakesNonsenseCalmly) {
  OperationMaker made;
  made.Do(OperationKind::kUndo);  // of nothing
  Id128 unknown{};
  unknown.bytes[0] = std::byte{9};
  made.Do(OperationKind::kUndo, RecordId(unknown));
  made.Do(OperationKind::kRedo, RecordId(unknown));
  made.Do(OperationKind::kUndo, RecordId(unknown), true);
  EXPECT_LE(made.undo(), 1u);
  EXPECT_EQ(made.redo(), 0u);
  EXPECT_TRUE(TakenBack({}, made.all).empty());
}

}  // namespace
}  // namespace belay::test
