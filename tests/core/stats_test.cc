#include "core/stats.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

TEST(Stats, FewSamplesGiveNoFigure) {
  EXPECT_EQ(TimingOf({}).p50_us, std::nullopt);
  EXPECT_EQ(TimingOf({1, 2, 3, 4}).p50_us, std::nullopt);
  Timing five = TimingOf({50, 10, 40, 20, 30});
  EXPECT_EQ(five.p50_us, 30u);
  EXPECT_EQ(five.p95_us, std::nullopt);
  std::vector<uint64_t> hundred;
  for (uint64_t i = 100; i > 0; --i) hundred.push_back(i);
  EXPECT_EQ(TimingOf(hundred).p50_us, 50u);
  EXPECT_EQ(TimingOf(hundred).p95_us, 95u);
  EXPECT_EQ(TimingOf(hundred).samples, 100u);
}

CheckpointRow Row(const char* name, CheckpointKind kind, const char* session,
                  uint64_t took_us) {
  CheckpointRow row;
  row.id = IdFor(name);
  row.kind = kind;
  if (*session != 0) row.session = session;
  row.took_us = took_us;
  row.made_ms = static_cast<int64_t>(took_us);
  return row;
}

TEST(Stats, CountsWhatWasDoneAndWhatFailed) {
  RootFigures root;
  root.checkpoints = {Row("a", CheckpointKind::kAuto, "s1", 7),
                      Row("b", CheckpointKind::kAuto, "s2", 5),
                      Row("c", CheckpointKind::kManual, "s3", 6),
                      Row("d", CheckpointKind::kSafety, "", 1000),
                      Row("e", CheckpointKind::kManual, "", 9)};
  Operation o;
  o.kind = OperationKind::kRollback;
  o.target = IdFor("a");
  o.took_us = 10;
  root.operations.push_back(o);
  o.recovered = true;
  root.operations.push_back(o);
  o = {};
  o.kind = OperationKind::kUndo;
  o.took_us = 20;
  root.operations.push_back(o);
  root.failures = {{1, {}, "rollback", "io", "x"},
                   {2, {}, "undo", "busy", "x"},
                   {3, {}, "checkpoint", "no_space", "x"}};
  const Stats s = StatsOf({root});
  EXPECT_EQ(s.automatic, 2u);
  EXPECT_EQ(s.manual, 2u);
  EXPECT_EQ(s.safety, 1u);
  EXPECT_EQ(s.since_ms, 5);
  EXPECT_EQ(s.create.samples, 4u);
  EXPECT_EQ(s.rollback.samples, 2u);  // an interruption is no duration
  EXPECT_EQ(s.rollbacks, 2u);
  EXPECT_EQ(s.undos, 1u);
  EXPECT_EQ(s.recovered, 1u);
  EXPECT_EQ(s.failed_rollbacks, 1u);
  EXPECT_EQ(s.failed_checkpoints, 1u);
  EXPECT_DOUBLE_EQ(*s.SuccessRate(), 0.75);
  EXPECT_EQ(s.sessions, 3u);
  EXPECT_EQ(s.with_rollback, 1u);
  EXPECT_EQ(s.with_manual, 1u);
  EXPECT_EQ(s.with_either, 2u);
  EXPECT_EQ(StatsOf({}).SuccessRate(), std::nullopt);
  EXPECT_EQ(StatsOf({}).SessionShare(), std::nullopt);
  EXPECT_EQ(StatsOf({root, root}).sessions, 3u);
}

class FailuresTest : public ::testing::Test {
 protected:
  FailuresTest() : world_(disk_), store_(Must(world_.Open())) {
    Must(disk_.MakeDir(store_->dir(), Name::Literal("cache"), 0700));
  }
  MemFs disk_;
  World world_;
  std::unique_ptr<Store> store_;
  RootId root_{IdFor("r")}, other_{IdFor("o")};
};

TEST_F(FailuresTest, AreRememberedPerRootAndRefusalsAreNone) {
  NoteFailure(*store_, root_, "checkpoint", Error(Errc::kNoSpace, "full\nof \x1b[31m"));
  NoteFailure(*store_, other_, "rollback", Error(Errc::kIo, "EIO"));
  NoteFailure(*store_, root_, "rollback", Error(Errc::kRefused, "not so"));
  auto mine = ReadFailures(*store_, root_);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].what, "checkpoint");
  EXPECT_EQ(mine[0].code, "no_space");
  EXPECT_EQ(mine[0].message, "full\\nof \\x1b[31m");
  EXPECT_EQ(ReadFailures(*store_, {}).size(), 2u);
}

// Mutant: failures-wait-for-a-checkpoint.
TEST_F(FailuresTest, CountBeforeTheFirstCheckpoint) {
  MemFs disk;
  World world(disk);
  auto store = Must(world.Open());
  CountFailure(disk, store->path(), store->clock(), "hook", Error(Errc::kInvalid, "x"));
  CountFailure(*store, root_, "hook", Error(Errc::kInvalid, "y"));
  EXPECT_EQ(ReadFailures(*store, std::nullopt).size(), 2u);
  // What is no store stays as it is.
  const AbsPath other = AbsPath::Literal("/other");
  ASSERT_TRUE(MakeDirs(disk, other, 0700).ok());
  CountFailure(disk, other, store->clock(), "hook", Error(Errc::kInvalid, "x"));
  EXPECT_TRUE(Must(disk.List(Must(disk.OpenDir(other)))).empty());
}

TEST_F(FailuresTest, TheFileIsBoundedAndKeepsTheNewest) {
  const std::string long_text(900, 'x');
  for (int i = 0; i < 500; ++i)
    NoteFailure(*store_, root_, "checkpoint",
                Error(Errc::kIo, std::to_string(i) + " " + long_text));
  auto cache =
      Must(disk_.Open(store_->dir(), Name::Literal("cache"), OpenMode::Directory()));
  EXPECT_LE(Must(disk_.StatAt(cache, Name::Literal("failures"))).size, 64u << 10);
  auto all = ReadFailures(*store_, root_);
  ASSERT_GT(all.size(), 40u);
  EXPECT_TRUE(all.back().message.starts_with("499 "));
}

TEST_F(FailuresTest, DamagedLinesArePassedOver) {
  NoteFailure(*store_, root_, "checkpoint", Error(Errc::kIo, "one"));
  auto cache =
      Must(disk_.Open(store_->dir(), Name::Literal("cache"), OpenMode::Directory()));
  auto bytes = Must(ReadSmallFile(disk_, cache, Name::Literal("failures"), 9999));
  std::string text = std::string("\xff\n12 x y\n\n 9 z z z z\n") +
                     std::string(AsText(bytes)) + "17 half";
  Must(ReplaceFile(disk_, cache, Name::Literal("failures"), AsBytes(text)));
  EXPECT_EQ(ReadFailures(*store_, {}).size(), 1u);
}

}  // namespace
}  // namespace belay::test
