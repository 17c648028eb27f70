// Which checkpoints may go: one row a rule, and every rule against random histories.

#include "core/retention.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "base/clock.h"
#include "core/space.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "support/restore_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

constexpr int64_t kNow = 1'000 * kDayMs;

class Past {
 public:
  CatalogEntry& Add(CheckpointKind kind, int64_t days_ago,
                    const std::string& session = "") {
    CatalogEntry entry;
    entry.checkpoint.seq = ++seq_;
    entry.checkpoint.id = IdFor("c" + std::to_string(seq_));
    entry.checkpoint.kind = kind;
    entry.checkpoint.made_ms = kNow - days_ago * kDayMs;
    if (!session.empty()) entry.checkpoint.session = session;
    entries.insert(entries.begin(), entry);
    return entries.front();
  }
  // A rollback to `target`; its safety checkpoint comes with it.
  Operation& Rollback(const RecordId& target, int64_t days_ago) {
    Operation o;
    o.safety = Add(CheckpointKind::kSafety, days_ago).checkpoint.id;
    o.seq = ++seq_;
    o.id = IdFor("o" + std::to_string(seq_));
    o.target = target;
    operations.push_back(o);
    return operations.back();
  }
  std::unordered_set<RecordId> Gone(const RetentionLimits& limits) const {
    std::unordered_set<RecordId> out;
    for (const Doomed& d : PlanRetention(entries, operations, limits, kNow).checkpoints)
      out.insert(d.entry.checkpoint.id);
    return out;
  }
  std::unordered_set<RecordId> GoneForSpace(const RetentionLimits& limits) const {
    std::unordered_set<RecordId> out;
    for (const Doomed& d : PrunableForSpace(entries, operations, limits))
      out.insert(d.entry.checkpoint.id);
    return out;
  }

  std::vector<CatalogEntry> entries;  // newest first
  std::vector<Operation> operations;  // oldest first

 private:
  uint64_t seq_ = 0;
};

TEST(RetentionTest, TheNewestAutomaticOnesStayAndTheOldestGo) {
  Past past;
  std::vector<RecordId> ids;
  for (int i = 0; i < 30; ++i)
    ids.push_back(past.Add(CheckpointKind::kAuto, 0).checkpoint.id);
  // The newest is kept for its own sake and not counted.
  auto gone = past.Gone({.autos = 20, .days = 30, .undo = 50});
  EXPECT_EQ(gone.size(), 9u);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(gone.contains(ids[i]), i < 9) << i;
}

TEST(RetentionTest, AgeCountsButNotForTheLastTen) {
  Past past;
  for (int i = 0; i < 30; ++i) past.Add(CheckpointKind::kAuto, 31);
  auto gone = past.Gone({.autos = 200, .days = 30, .undo = 50});
  EXPECT_EQ(gone.size(), 20u);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_FALSE(gone.contains(past.entries[i].checkpoint.id));
  EXPECT_TRUE(past.Gone({.autos = 200, .days = 32, .undo = 50}).empty());
}

TEST(RetentionTest, ManualPinnedAndASessionsEndsStayWhateverTheirAge) {
  Past past;
  std::unordered_set<RecordId> stay;
  stay.insert(past.Add(CheckpointKind::kManual, 900).checkpoint.id);
  CatalogEntry& pinned = past.Add(CheckpointKind::kAuto, 900);
  pinned.pinned = true;
  stay.insert(pinned.checkpoint.id);
  stay.insert(past.Add(CheckpointKind::kAuto, 900, "s").checkpoint.id);
  CatalogEntry& imported = past.Add(CheckpointKind::kAuto, 900);
  imported.checkpoint.meta["origin.store"] = "x";
  stay.insert(imported.checkpoint.id);
  CatalogEntry& named = past.Add(CheckpointKind::kAuto, 900);
  named.checkpoint.name = "before the refactor";
  stay.insert(named.checkpoint.id);
  CatalogEntry& noted = past.Add(CheckpointKind::kAuto, 900);
  noted.checkpoint.note = "tests were green";
  stay.insert(noted.checkpoint.id);
  const RecordId middle = past.Add(CheckpointKind::kAuto, 900, "s").checkpoint.id;
  stay.insert(past.Add(CheckpointKind::kAuto, 900, "s").checkpoint.id);
  for (int i = 0; i < 20; ++i) past.Add(CheckpointKind::kAuto, 0);
  const RetentionLimits limits{.autos = 5, .days = 30, .undo = 50};
  for (const RecordId& id : stay) {
    EXPECT_FALSE(past.Gone(limits).contains(id));
    EXPECT_FALSE(past.GoneForSpace(limits).contains(id));
  }
  EXPECT_TRUE(past.Gone(limits).contains(middle));
  EXPECT_TRUE(past.GoneForSpace(limits).contains(middle));
}

TEST(RetentionTest, WhatTheLastOperationsNeedStaysAndOlderOnesAreReleased) {
  Past past;
  const RecordId old_target = past.Add(CheckpointKind::kAuto, 100).checkpoint.id;
  const RecordId old_operation = past.Rollback(old_target, 100).id;
  const RecordId old_safety = *past.operations[0].safety;
  const RecordId before_target = past.Add(CheckpointKind::kAuto, 100).checkpoint.id;
  const RecordId before_safety = *past.Rollback(before_target, 100).safety;
  const RecordId target = past.Add(CheckpointKind::kAuto, 100).checkpoint.id;
  const Operation rollback = past.Rollback(target, 100);
  Operation undo = past.Rollback(target, 100);
  past.operations.back().kind = OperationKind::kUndo;
  past.operations.back().of = rollback.id;
  past.operations.back().target.reset();
  for (int i = 0; i < 20; ++i) past.Add(CheckpointKind::kAuto, 0);
  // The undo alone is within the horizon; what it undid comes with it, for redo, and
  // the one that an undo would take next stays.
  const RetentionLimits limits{.autos = 5, .days = 30, .undo = 1};
  for (const auto& gone : {past.Gone(limits), past.GoneForSpace(limits)}) {
    EXPECT_FALSE(gone.contains(target));
    EXPECT_FALSE(gone.contains(*rollback.safety));
    EXPECT_FALSE(gone.contains(*undo.safety));
    EXPECT_FALSE(gone.contains(before_target));
    EXPECT_FALSE(gone.contains(before_safety));
    EXPECT_TRUE(gone.contains(old_target));
    EXPECT_TRUE(gone.contains(old_safety));
  }
  RetentionPlan plan = PlanRetention(past.entries, past.operations, limits, kNow);
  ASSERT_EQ(plan.released.size(), 1u);
  EXPECT_EQ(plan.released[0].id, old_operation);
  past.operations[0].released = true;
  EXPECT_TRUE(
      PlanRetention(past.entries, past.operations, limits, kNow).released.empty());
}

TEST(RetentionTest, GoingBackStepByStepTakesNothingFromTheStepsBefore) {
  Past past;
  const RecordId target = past.Add(CheckpointKind::kManual, 1).checkpoint.id;
  std::vector<Operation> done;
  for (int i = 0; i < 8; ++i) done.push_back(past.Rollback(target, 1));
  const RetentionLimits limits{.autos = 0, .days = 30, .undo = 8};
  for (; !done.empty(); done.pop_back()) {
    EXPECT_TRUE(
        PlanRetention(past.entries, past.operations, limits, kNow).released.empty());
    EXPECT_FALSE(past.Gone(limits).contains(*done.back().safety));
    ASSERT_EQ(StacksOf(past.operations).undo.size(), done.size());
    past.Rollback(target, 1);
    past.operations.back().kind = OperationKind::kUndo;
    past.operations.back().of = done.back().id;
    past.operations.back().target.reset();
  }
}

// Mutant: a-turns-start-goes-first.
TEST(RetentionTest, ATurnsFirstStaysAsLongAsAnyOfItDoesAndIsCounted) {
  Past past;
  auto add = [&](uint64_t turn, CheckpointKind kind = CheckpointKind::kAuto,
                 int64_t days_ago = 0) {
    CatalogEntry& entry = past.Add(kind, days_ago, "s");
    if (turn > 0) entry.checkpoint.turn = turn;
    return entry.checkpoint.id;
  };
  add(0);
  std::vector<std::vector<RecordId>> turns(4);
  for (uint64_t turn : {0, 1, 2})
    for (int i = 0; i < 10; ++i) turns[turn].push_back(add(turn + 1));
  const RecordId newest = add(4);
  auto kept = [&](const RetentionLimits& limits) {
    const auto gone = past.Gone(limits);
    std::string out;
    for (const auto& turn : turns) {
      for (const RecordId& id : turn) out += gone.contains(id) ? '.' : 'x';
      out += '|';
    }
    EXPECT_FALSE(gone.contains(newest));
    return out;
  };
  EXPECT_EQ(kept({.autos = 30}), "xxxxxxxxxx|xxxxxxxxxx|xxxxxxxxxx||");
  EXPECT_EQ(kept({.autos = 5}), "..........|..........|x.....xxxx||");
  EXPECT_EQ(kept({.autos = 10}), "..........|..........|xxxxxxxxxx||");
  // Where there is room for one more, it is the one that `turn:2` means.
  EXPECT_EQ(kept({.autos = 11}), "..........|x.........|xxxxxxxxxx||");
  EXPECT_EQ(kept({.autos = 12}), "..........|x........x|xxxxxxxxxx||");
  EXPECT_EQ(kept({.autos = 1}), "..........|..........|x.........||");
  EXPECT_EQ(kept({.autos = 0}), "..........|..........|..........||");
  // With what stays whatever happens, its turn's first does, and is not counted.
  for (CatalogEntry& entry : past.entries)
    if (entry.checkpoint.id == turns[0][4]) entry.pinned = true;
  EXPECT_EQ(kept({.autos = 5}), "x...x.....|..........|x.....xxxx||");
  // Age takes the first with the last of the turn.
  for (CatalogEntry& entry : past.entries)
    if (entry.checkpoint.turn == 2u && entry.checkpoint.id != turns[1][9])
      entry.checkpoint.made_ms = kNow - 40 * kDayMs;
  EXPECT_EQ(kept({.autos = 100}), "xxxxxxxxxx|x........x|xxxxxxxxxx||");
}

// Mutant: half-a-turn-looks-whole.
TEST(RetentionTest, WithOneInTheMiddleOfATurnStaysWhatTheTurnDidLast) {
  Past past;
  past.Add(CheckpointKind::kAuto, 900, "s");
  auto add = [&](CheckpointKind kind, uint64_t turn, bool call) {
    Checkpoint& c = past.Add(kind, 900, "s").checkpoint;
    c.turn = turn;
    if (call) c.tool_name = "Bash";
    return c.id;
  };
  add(CheckpointKind::kAuto, 1, false);
  const RecordId over = add(CheckpointKind::kManual, 1, false);
  const RecordId first = add(CheckpointKind::kAuto, 2, false);
  add(CheckpointKind::kAuto, 2, true);
  add(CheckpointKind::kManual, 2, false);
  const RecordId other = add(CheckpointKind::kAuto, 3, true);
  const RecordId next = add(CheckpointKind::kAuto, 2, true);
  const RecordId last = add(CheckpointKind::kAuto, 2, true);
  const RecordId end = add(CheckpointKind::kAuto, 2, false);
  add(CheckpointKind::kAuto, 4, true);  // a session's newest stays for its own sake
  for (int i = 0; i < 20; ++i) past.Add(CheckpointKind::kAuto, 0);
  const RetentionLimits limits{.autos = 0, .days = 30, .undo = 50};
  const auto gone = past.Gone(limits), for_space = past.GoneForSpace(limits);
  for (const RecordId& id : {over, first, last, end}) EXPECT_FALSE(gone.contains(id));
  for (const RecordId& id : {other, next}) EXPECT_TRUE(gone.contains(id));
  for (const RecordId& id : {last, end}) EXPECT_FALSE(for_space.contains(id));
  EXPECT_TRUE(for_space.contains(next));
}

TEST(RetentionTest, ForSpaceATurnsFirstGoesLastOfIt) {
  Past past;
  past.Add(CheckpointKind::kAuto, 0, "s");
  std::string order;
  for (uint64_t turn : {1, 2})
    for (int i = 0; i < 3; ++i)
      past.Add(CheckpointKind::kAuto, 0, "s").checkpoint.turn = turn;
  past.Add(CheckpointKind::kAuto, 0, "s").checkpoint.turn = 3;
  for (const Doomed& d : PrunableForSpace(past.entries, past.operations, {}))
    order +=
        std::to_string(d.entry.checkpoint.seq) + "@" + std::to_string(d.goes_at) + " ";
  EXPECT_EQ(order, "3@3 2@4 4@4 6@6 5@7 7@7 ");
}

TEST(RetentionTest, ARootsNewestStaysEvenForSpace) {
  Past past;
  for (int i = 0; i < 5; ++i) past.Add(CheckpointKind::kAuto, 400);
  auto gone = past.GoneForSpace({});
  EXPECT_EQ(gone.size(), 4u);
  EXPECT_FALSE(gone.contains(past.entries[0].checkpoint.id));
}

}  // namespace
}  // namespace belay::test
