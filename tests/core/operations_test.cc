// What follows from the log of operations: the stacks of undo and redo, and which
// checkpoints were taken back.

#include "core/operations.h"

#include <gtest/gtest.h>

#include "support/store_fixture.h"

namespace belay::test {
namespace {

// One character a record: checkpoints a-z, operations A-Z, in the order they were made.
class History {
 public:
  History& Checkpoint(char name) {
    CatalogEntry entry;
    entry.checkpoint.id = IdFor(std::string(1, name));
    entry.checkpoint.seq = ++seq_;
    checkpoints_.insert(checkpoints_.begin(), entry);
    return *this;
  }
  History& Rollback(char name, char target, char safety, bool paths_only = false) {
    Operation o = Make(name, OperationKind::kRollback, safety);
    o.target = IdFor(std::string(1, target));
    o.paths_only = paths_only;
    operations_.push_back(o);
    return *this;
  }
  History& Undo(char name, char of, char safety, bool out_of_order = false) {
    Operation o = Make(name, OperationKind::kUndo, safety);
    o.of = IdFor(std::string(1, of));
    o.out_of_order = out_of_order;
    operations_.push_back(o);
    return *this;
  }
  History& Redo(char name, char of, char safety) {
    Operation o = Make(name, OperationKind::kRedo, safety);
    o.of = IdFor(std::string(1, of));
    operations_.push_back(o);
    return *this;
  }
  // "bB cB": b and c were taken back by B.
  std::string Taken() const {
    auto taken = TakenBack(checkpoints_, operations_);
    std::string text;
    for (char c = 'a'; c <= 'z'; ++c)
      if (auto found = taken.find(IdFor(std::string(1, c))); found != taken.end())
        text += std::string(text.empty() ? "" : " ") + c + Letter(found->second);
    return text;
  }
  // "AB|C": undo stack, oldest first, then redo.
  std::string Stacks() const {
    UndoStacks stacks = StacksOf(operations_);
    std::string text;
    for (const Operation& o : stacks.undo) text += Letter(o.id);
    text += '|';
    for (const Operation& o : stacks.redo) text += Letter(o.id);
    return text;
  }

 private:
  Operation Make(char name, OperationKind kind, char safety) {
    Checkpoint(safety);
    Operation o;
    o.id = IdFor(std::string(1, name));
    o.kind = kind;
    o.seq = ++seq_;
    o.safety = IdFor(std::string(1, safety));
    return o;
  }
  static char Letter(const RecordId& id) {
    for (char c = 'A'; c <= 'Z'; ++c)
      if (IdFor(std::string(1, c)) == id) return c;
    return '?';
  }
  uint64_t seq_ = 0;
  std::vector<CatalogEntry> checkpoints_;
  std::vector<Operation> operations_;
};

TEST(Operations, ARollbackTakesBackWhatCameLater) {
  History h;
  h.Checkpoint('a').Checkpoint('b').Checkpoint('c').Rollback('A', 'a', 's');
  EXPECT_EQ(h.Taken(), "bA cA sA");
  EXPECT_EQ(h.Stacks(), "A|");
}

TEST(Operations, AnUndoBringsThemBackAndARedoTakesThemAgain) {
  History h;
  h.Checkpoint('a').Checkpoint('b').Rollback('A', 'a', 's').Undo('B', 'A', 't');
  EXPECT_EQ(h.Taken(), "tB");
  EXPECT_EQ(h.Stacks(), "|A");
  h.Redo('C', 'A', 'u');
  EXPECT_EQ(h.Taken(), "bC sC tB uC");
  EXPECT_EQ(h.Stacks(), "A|");
}

TEST(Operations, TheTargetCanBeReturnedToAgain) {
  History h;
  h.Checkpoint('a').Checkpoint('b').Rollback('A', 'a', 's').Checkpoint('c');
  EXPECT_EQ(h.Taken(), "bA sA");
  h.Rollback('B', 'b', 't');
  EXPECT_EQ(h.Taken(), "cB sA tB");
  EXPECT_EQ(h.Stacks(), "AB|");
}

TEST(Operations, SinglePathsTakeBackNothing) {
  History h;
  h.Checkpoint('a').Checkpoint('b').Rollback('A', 'a', 's', true);
  EXPECT_EQ(h.Taken(), "");
  EXPECT_EQ(h.Stacks(), "A|");
}

TEST(Operations, UndoGoesBackAnyNumberOfTimesAndANewRollbackDropsRedo) {
  History h;
  h.Checkpoint('a').Checkpoint('b');
  h.Rollback('A', 'a', 'r').Rollback('B', 'b', 's').Rollback('C', 'a', 't');
  EXPECT_EQ(h.Stacks(), "ABC|");
  h.Undo('D', 'C', 'u').Undo('E', 'B', 'v');
  EXPECT_EQ(h.Stacks(), "A|CB");
  h.Redo('F', 'B', 'w');
  EXPECT_EQ(h.Stacks(), "AB|C");
  h.Rollback('G', 'a', 'x');
  EXPECT_EQ(h.Stacks(), "ABG|");
}

TEST(Operations, AnUndoOutOfOrderIsAnOperationOfItsOwn) {
  History h;
  h.Checkpoint('a').Checkpoint('b');
  h.Rollback('A', 'a', 'r').Rollback('B', 'b', 's').Undo('C', 'B', 't');
  h.Undo('D', 'A', 'u', true);
  EXPECT_EQ(h.Stacks(), "D|");
}

TEST(Operations, RecordsComeBackAsTheyWere) {
  Operation o;
  o.id = IdFor("o");
  o.root = RootId(IdFor("r"));
  o.seq = 0;
  o.made_ms = 7;
  o.kind = OperationKind::kUndo;
  o.changes = Sha256::Of(AsBytes("changes"));
  o.target = IdFor("t");
  o.safety = IdFor("s");
  o.of = IdFor("x");
  o.paths_only = o.out_of_order = o.recovered = true;
  o.paths = 3;
  o.label = "before refactor";
  o.took_us = 12;
  auto decoded = DecodeLogRecord(EncodeLogRecord(ToRecord(o)));
  ASSERT_TRUE(decoded.ok());
  auto back = ToOperation(*decoded);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, o);
}

}  // namespace
}  // namespace belay::test
