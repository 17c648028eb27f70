// Failure stories of other checkpoint tools' stores: what a checkpoint that is killed,
// timed out or raced leaves behind, and what it keeps others from.

#include <sys/wait.h>
#include <unistd.h>

#include "restore/journal.h"
#include "store/batch_writer.h"
#include "store/gc.h"
#include "support/crash_harness.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class StoreStoryTest : public RestoreTest {
 protected:
  static constexpr uint64_t kContent = 3 << 20;
  // A checkpoint whose process is killed before one of its calls; whether it was.
  bool KilledAt(uint64_t at, std::vector<FsCall> calls) {
    Fault cut = Fault::PowerCut(at);
    cut.only = std::move(calls);
    FaultFs dying(disk, cut);
    RestoreWorld other(dying, AbsPath::Literal("/m"), 7 + ++round_, 1000);
    other.settings = world.settings;
    auto made = other.Capture("killed");
    EXPECT_TRUE(dying.fired() || made.ok());
    return dying.fired() && !made.ok();
  }
  // When all was written, and not yet flushed.
  bool KilledBeforeTheFlush() { return KilledAt(1, {FsCall::kSyncData}); }

 private:
  uint64_t round_ = 0;
};

// Story 12: temporary packs of killed checkpoints filled the disk, 269 GB of them.
TEST_F(StoreStoryTest, WhatKilledCheckpointsLeaveBehindDoesNotPileUp) {
  Put("small", "1");
  Must(world.Capture("start"));
  Put("big", Noise(5, kContent));
  size_t killed = 0;
  for (uint64_t at = 1;
       KilledAt(at, {FsCall::kWrite, FsCall::kSyncData, FsCall::kSync}); ++at)
    ++killed;
  EXPECT_GT(killed, 3u);
  EXPECT_LT(disk.used_bytes(), 4 * kContent) << killed << " killed checkpoints";
  Must(world.Capture("good"));
  const std::string now = Tree();
  Remove("big");
  Must(world.Rollback("good"));
  EXPECT_EQ(Tree(), now);
  EXPECT_LT(disk.used_bytes(), 4 * kContent);
}

// Story 22: the same time-out every turn, and every one leaks.
TEST_F(StoreStoryTest, TheSameFailureEveryTurnCostsItsRoomOnce) {
  Put("small", "1");
  Must(world.Capture("start"));
  Put("big", Noise(6, kContent));
  ASSERT_TRUE(KilledBeforeTheFlush());
  const uint64_t once = disk.used_bytes();
  EXPECT_GT(once, 2 * kContent) << "it left something, or this shows nothing";
  for (int turn = 0; turn < 25; ++turn) ASSERT_TRUE(KilledBeforeTheFlush());
  EXPECT_LT(disk.used_bytes(), once + kContent / 2);
}

// Story 13: a list of every untracked path in each of 2,476 snapshots; a file of 11 GB
// in each.
TEST_F(StoreStoryTest, ACheckpointCostsWhatChangedNotWhatIsThere) {
  constexpr int kFiles = 2000, kCheckpoints = 50;
  world.settings.max_file_size = {.bytes = kContent / 2};
  for (int i = 0; i < kFiles; ++i)
    Put("d" + std::to_string(i % 40) + "/a-name-of-some-length-" + std::to_string(i),
        "x");
  Put("too-large", Noise(4, kContent));
  Must(world.Capture("start"));
  const uint64_t before = disk.used_bytes();
  for (int i = 0; i < kCheckpoints; ++i) {
    Put("d7/changes", "version " + std::to_string(i));
    Must(world.Capture("c" + std::to_string(i)));
  }
  EXPECT_LT((disk.used_bytes() - before) / kCheckpoints, 16u << 10);
}

class RealStoreStoryTest : public RealRestoreTest {};

// Story 17: the lock of a process that was killed stopped all later checkpoints,
// silently.
TEST_F(RealStoreStoryTest, ALockOfAKilledProcessStopsNobody) {
  Put("a", "1");
  Must(world.Capture("start"));
  const pid_t child = fork();
  if (child == 0) {
    auto opened = world.Open();
    if (!opened.ok()) _exit(1);
    auto alone = opened->store->locks().AcquireRoot(opened->root.id, 0);
    auto append = opened->store->Begin();
    NoteAtWork(*opened->store, opened->root.id, {"rollback", getpid()});
    if (!alone.ok() || !append.ok()) _exit(2);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  world.lock_wait_ms = 0;
  Put("a", "2");
  Must(world.Capture("later"));
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "1");
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "2");
}

// Story 17: garbage collection against a writer left a reference to nothing, and every
// later one failed.
TEST_F(StoreStoryTest, CollectingBesideAWriterLosesNothingOfIt) {
  Put("a", Noise(1, 5000));
  Must(world.Capture("start"));
  auto opened = Must(world.Open());
  for (int round = 0; round < 5; ++round) {
    Put("a", Noise(static_cast<uint64_t>(round) + 2, 5000));
    // What is stored and not yet published is nobody's.
    auto writer = Must(opened.store->Begin());
    const ObjectId id = Must(writer->PutContent(AsBytes(Read("a"))));
    auto other = Must(world.Open());
    auto collected = CollectGarbage(*other.store, {});
    EXPECT_TRUE(collected.ok() || collected.error().code == Errc::kBusy);
    writer.reset();
    Must(world.Capture("c" + std::to_string(round)));
    Must(CollectGarbage(*other.store, {}));
    EXPECT_EQ(AsText(Must(Must(world.Open()).store->ReadContentBytes(id, 1 << 20))),
              Read("a"));
  }
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), Noise(1, 5000));
}

}  // namespace
}  // namespace belay::test
