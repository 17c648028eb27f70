// A store under pressure: the cap holds, what may go goes, what must stay stays, and
// rollbacks can be undone all the same.

#include <gtest/gtest.h>

#include <cerrno>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "core/annotate.h"
#include "core/operations.h"
#include "core/retention.h"
#include "core/space.h"
#include "restore/journal.h"
#include "store/gc.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/race_fs.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

constexpr uint64_t kKiB = 1024;

class RetentionCapTest : public ::testing::Test {
 protected:
  RetentionCapTest() : world_(disk_, AbsPath::Literal("/w")) {
    Must(MakeDirs(disk_, AbsPath::Literal("/w"), 0755));
    dir_ = Must(world_.Dir());
  }
  template <typename T>
  static T Must(Result<T> result) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().what);
    return std::move(*result);
  }
  void Write(const std::string& name, const std::string& text) {
    Fd file = Must(disk_.Open(dir_, Name::Literal(name), OpenMode::OpenOrCreate(0644)));
    ASSERT_TRUE(disk_.Truncate(file, 0).ok());
    ASSERT_TRUE(WriteFull(disk_, file, 0, AsBytes(text)).ok());
    world_.world.clock.SleepNanos(1'000'000'000);
  }
  Result<Captured> Capture(CheckpointKind kind, const std::string& name = "",
                           const std::string& session = "") {
    BELAY_TRY(auto opened, world_.Open());
    CaptureRequest request;
    request.root = opened.root;
    request.settings = &world_.settings;
    request.git.user.no_system = true;
    request.kind = kind;
    if (!name.empty()) request.name = name;
    if (!session.empty()) request.session = session;
    request.threads = 1;
    return CaptureCheckpoint(*opened.store, request);
  }
  uint64_t Used() {
    auto opened = Must(world_.Open());
    return Must(AllocatedBytes(*opened.store)).all;
  }
  void ExpectWhole() {
    auto opened = Must(world_.Open());
    VerifyReport report =
        Must(VerifyStore(*opened.store, VerifyOptions{.read_data = true}));
    EXPECT_TRUE(report.clean()) << report.damage.front();
  }
  std::vector<CatalogEntry> List() {
    auto opened = Must(world_.Open());
    return Must(opened.catalog->ListCheckpoints({.root = opened.root.id}));
  }
  Result<PruneReport> Prune(const RetentionLimits& limits) {
    BELAY_TRY(auto opened, world_.Open());
    return belay::Prune(*opened.store, *opened.catalog, limits, false);
  }
  void Collect() {
    auto opened = Must(world_.Open());
    GcOptions everything;
    everything.everything = true;
    Must(CollectGarbage(*opened.store, everything));
  }

  MemFs disk_;
  RestoreWorld world_;
  Fd dir_;
};

TEST_F(RetentionCapTest, NotesThatComeWithACheckpointObeyTheCap) {
  world_.settings.store_floor = {};
  world_.settings.store_cap = {.bytes = 2 << 20};
  Write("a", "1");
  bool refused = false;
  for (uint64_t i = 0; i < 30 && !refused; ++i) {
    {
      auto opened = Must(world_.Open());
      CaptureRequest request;
      request.root = opened.root;
      request.settings = &world_.settings;
      request.git.user.no_system = true;
      request.kind = CheckpointKind::kManual;
      request.note = Noise(i, 60'000);
      request.threads = 1;
      auto made = CaptureCheckpoint(*opened.store, request);
      refused = !made.ok() && made.error().code == Errc::kNoSpace;
      ASSERT_TRUE(made.ok() || refused);
    }
    ASSERT_LE(Used(), world_.settings.store_cap.bytes)
        << i;  // the catalogue has it too
  }
  EXPECT_TRUE(refused);
}

TEST_F(RetentionCapTest, NewCheckpointsPushOldOnesOutAndTheCapHolds) {
  world_.settings.store_cap = {.bytes = 4096 * kKiB};
  std::string first_of_session;
  for (int i = 0; i < 150; ++i) {
    Write("noise", Noise(static_cast<uint64_t>(i), 100 * kKiB));
    auto made = Capture(CheckpointKind::kAuto, "", i == 0 ? "s" : "");
    ASSERT_TRUE(made.ok()) << i << ": " << made.error().what;
    if (i == 0) first_of_session = made->checkpoint.id.text();
    // By no more than one checkpoint, they say; by none, here.
    ASSERT_LE(Used(), world_.settings.store_cap.bytes) << i;
  }
  auto left = List();
  EXPECT_GT(left.size(), 10u);
  EXPECT_LT(left.size(), 45u);
  EXPECT_EQ(left.back().checkpoint.id.text(), first_of_session);
  ExpectWhole();
  const std::string now = world_.Tree();
  auto oldest_auto = left[left.size() - 2].checkpoint.id.text();
  ASSERT_TRUE(world_.Rollback(oldest_auto).ok());
  EXPECT_NE(world_.Tree(), now);
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_EQ(world_.Tree(), now);
}

// Mutant: prune-in-vain.
TEST_F(RetentionCapTest, NothingIsLetGoForOneThatWouldNotFitAllTheSame) {
  world_.settings.store_cap = {.bytes = 4096 * kKiB};
  for (int i = 0; i < 24; ++i) {
    Write("noise", Noise(static_cast<uint64_t>(i), 60 * kKiB));
    ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok()) << i;
  }
  const size_t before = List().size();
  ASSERT_GT(before, 20u);
  for (uint64_t size : {6 << 20, 4 << 20}) {  // one stream, and more than there is room
    Write("big", Noise(99, size));
    auto made = Capture(CheckpointKind::kManual, "big");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, Errc::kNoSpace);
    EXPECT_EQ(List().size(), before);
  }
  // Many small files: known to be too many only at the end.
  Write("big", "");
  for (uint64_t i = 0; i < 60; ++i)
    Write("small" + std::to_string(i), Noise(1000 + i, 100 * kKiB));
  EXPECT_FALSE(Capture(CheckpointKind::kAuto).ok());
  EXPECT_EQ(List().size(), before);
  // What fits pushes old ones out, and that is said.
  for (uint64_t i = 30; i < 60; ++i) Write("small" + std::to_string(i), "");
  auto made = Capture(CheckpointKind::kAuto);
  ASSERT_TRUE(made.ok()) << made.error().what;
  EXPECT_LT(List().size(), before);
  ASSERT_FALSE(made->warnings.empty());
  EXPECT_NE(made->warnings.back().find("were let go"), std::string::npos);
  ExpectWhole();
}

// The floor cannot be reached by letting a few checkpoints go.
TEST_F(RetentionCapTest, NothingIsLetGoForAFloorThatIsFarAway) {
  disk_.SetCapacity(uint64_t{1} << 30);
  for (int i = 0; i < 12; ++i) {
    Write("noise", Noise(static_cast<uint64_t>(i), 10 * kKiB));
    ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok()) << i;
  }
  world_.settings.store_floor = {.bytes = uint64_t{900} << 40};
  Write("noise", "x");
  EXPECT_FALSE(Capture(CheckpointKind::kAuto).ok());
  EXPECT_EQ(List().size(), 12u);
}

TEST_F(RetentionCapTest, WhenEverythingMustStayTheNextOneIsRefusedAndSaysSo) {
  world_.settings.store_cap = {.bytes = 2048 * kKiB};
  Result<Captured> made = Error(Errc::kIo, "none yet");
  int count = 0;
  for (; count < 60; ++count) {
    Write("noise", Noise(static_cast<uint64_t>(count), 100 * kKiB));
    made = Capture(CheckpointKind::kManual, "m" + std::to_string(count));
    if (!made.ok()) break;
  }
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::kNoSpace);
  EXPECT_NE(made.error().what.find("store.cap"), std::string::npos);
  EXPECT_EQ(List().size(), static_cast<size_t>(count));
  EXPECT_GT(count, 8);
  // The rescue works on a full store.
  const std::string now = world_.Tree();
  ASSERT_TRUE(world_.Rollback("m0").ok());
  ASSERT_TRUE(world_.Undo().ok());
  EXPECT_EQ(world_.Tree(), now);
  ExpectWhole();
}

// There is room, and the system takes nothing: a quota, or a limit for files.
TEST_F(RetentionCapTest, WhereTheSystemRefusesItIsSaidAtOnce) {
  Write("noise", "x");
  ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok());
  Write("noise", Noise(1, 100 * kKiB));
  for (const int sys : {EDQUOT, EFBIG, ENOSPC}) {
    Fault fault = Fault::Errno(1, sys, /*sticky=*/true);
    fault.only = {FsCall::kWrite};
    FaultFs refusing(disk_, fault);
    RestoreWorld* other = nullptr;
    // Time goes by, so that who tries again and again is late some time.
    RaceFs fs(refusing, [&] {
      if (other != nullptr) other->world.clock.SleepNanos(10'000'000);
    });
    RestoreWorld world(fs, AbsPath::Literal("/w"), 7);
    other = &world;
    auto made = world.Capture("refused");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, Errc::kNoSpace);
    EXPECT_TRUE(refusing.fired());
    EXPECT_LT(refusing.calls(FsCall::kWrite), 10u) << sys;
  }
  ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok());
  ExpectWhole();
}

TEST_F(RetentionCapTest, UndoWorksAfterEverythingThatMayGoIsGone) {
  for (int i = 0; i < 30; ++i) {
    Write("noise", Noise(static_cast<uint64_t>(i), 20 * kKiB));
    ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok());
  }
  const RecordId target = List()[20].checkpoint.id;
  Write("noise", "the last work");
  const std::string before = world_.Tree();
  ASSERT_TRUE(world_.Rollback(target.text()).ok());
  const std::string after = world_.Tree();
  for (int i = 100; i < 120; ++i) {
    Write("other", Noise(static_cast<uint64_t>(i), 20 * kKiB));
    ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok());
  }
  PruneReport report = Must(Prune({.autos = 1, .days = 30, .undo = 50}));
  EXPECT_GT(report.checkpoints, 30u);
  Collect();
  ExpectWhole();
  ASSERT_TRUE(world_.Rollback(target.text()).ok());  // it is within the horizon
  ASSERT_TRUE(world_.Undo().ok());
  ASSERT_TRUE(world_.Undo(/*exact=*/true).ok());
  EXPECT_NE(world_.Tree().find("noise"), std::string::npos);
  EXPECT_NE(before, after);
}

TEST_F(RetentionCapTest, BeyondTheHorizonTheOperationStaysAndItsContentGoes) {
  Write("noise", Noise(1, 300 * kKiB));
  ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok());
  const std::string first = List()[0].checkpoint.id.text();
  for (int round = 0; round < 4; ++round) {
    Write("noise", Noise(static_cast<uint64_t>(10 + round), 300 * kKiB));
    ASSERT_TRUE(world_.Rollback(first).ok());
  }
  const uint64_t used = Used();
  PruneReport report = Must(Prune({.autos = 1, .days = 30, .undo = 2}));
  EXPECT_EQ(report.operations, 2u);
  Collect();
  EXPECT_LT(Used() + 500 * kKiB, used);
  ExpectWhole();
  auto opened = Must(world_.Open());
  auto operations = Must(ListOperations(*opened.catalog, opened.root.id));
  ASSERT_EQ(operations.size(), 4u);
  EXPECT_TRUE(operations[0].released && operations[1].released);
  EXPECT_EQ(StacksOf(operations).undo.size(), 2u);
  ASSERT_TRUE(world_.Undo(true).ok());
  ASSERT_TRUE(world_.Undo(true).ok());
  EXPECT_FALSE(world_.Undo(true).ok());
  // Twice is as good as once.
  EXPECT_EQ(Must(Prune({.autos = 1, .days = 30, .undo = 50})).operations, 0u);
}

// Copies lie beside what they replace until they are durable: also then the cap holds,
// whoever asked for it, and what was wanted is whole.
TEST_F(RetentionCapTest, CollectingNeverTakesTheStoreOverTheCap) {
  constexpr uint64_t kCap = 4096 * kKiB, kOne = 100 * kKiB;
  world_.settings.store_cap = {.bytes = kCap};
  std::vector<RecordId> every_third;
  for (int i = 0; i < 60; ++i) {
    Write("noise", Noise(static_cast<uint64_t>(i), kOne));
    auto made = Capture(CheckpointKind::kManual, "m" + std::to_string(i));
    if (!made.ok()) break;  // full
    if (i % 3 == 1) every_third.push_back(made->checkpoint.id);
  }
  ASSERT_GT(every_third.size(), 6u);
  const auto middle =
      every_third.begin() + static_cast<ptrdiff_t>(every_third.size() / 2);
  for (const bool everything : {false, true}) {
    auto opened = Must(world_.Open());
    const std::vector<RecordId> goes(everything ? middle : every_third.begin(),
                                     everything ? every_third.end() : middle);
    Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, goes));
    uint64_t most = 0, passes = 0;
    GcOptions options;
    options.everything = everything;
    options.progress = [&](uint64_t done, uint64_t total) {
      if (done != total) return;
      ++passes;
      most = std::max(most, Must(AllocatedBytes(*opened.store)).all);
    };
    GcReport report = Must(CollectWithinCap(*opened.store, world_.settings, options));
    EXPECT_GT(passes, everything ? 0u : 1u);
    EXPECT_LE(most, kCap);
    EXPECT_EQ(report.packs_left, 0u);
    EXPECT_GT(report.bytes_before, report.bytes_after + goes.size() * kOne * 9 / 10);
    if (!everything) continue;
    // Nothing is left that one pass with all the room in the world would take.
    EXPECT_FALSE(Must(CollectGarbage(*opened.store, GcOptions{.everything = true}))
                     .generation_changed);
  }
  ExpectWhole();
}

// The journal of an interrupted rollback leads back into what the store has now.
TEST_F(RetentionCapTest, NothingGoesUnderAnInterruptedRollback) {
  for (int i = 0; i < 8; ++i) {
    Write("noise", "version " + std::to_string(i));
    ASSERT_TRUE(Capture(CheckpointKind::kAuto).ok());
  }
  const auto all = List();
  {
    auto opened = Must(world_.Open());
    Journal journal;
    journal.operation.root = opened.root.id;
    journal.stage = StageName(all[0].checkpoint.id);
    ASSERT_TRUE(JournalFile::Write(*opened.store, journal).ok());
  }
  const RetentionLimits limits{.autos = 1, .days = 30, .undo = 50};
  PruneReport report = Must(Prune(limits));
  EXPECT_EQ(report.checkpoints, 0u);
  ASSERT_EQ(report.roots.size(), 1u);
  EXPECT_NE(report.roots[0].notes.at(0).find("interrupted"), std::string::npos);
  {
    auto opened = Must(world_.Open());
    auto deleted = DeleteCheckpoints(*opened.store, *opened.catalog, opened.root,
                                     {all[3].checkpoint.id}, "delete");
    ASSERT_FALSE(deleted.ok());
    EXPECT_EQ(deleted.error().code, Errc::kRefused);
    EXPECT_FALSE(Must(MayMakeRoom(*opened.store, world_.settings)));
    // Nor is it waited for: the clock stands still, and this ends.
    world_.settings.store_cap = {.bytes = 64 * kKiB};
    EXPECT_FALSE(
        Must(MakeRoom(*opened.store, world_.settings, 1024 * kKiB, 1000)).enough);
    world_.settings.store_cap = {};
    ASSERT_TRUE(JournalFile::Remove(*opened.store, opened.root.id).ok());
    EXPECT_TRUE(Must(MayMakeRoom(*opened.store, world_.settings)));
  }
  EXPECT_EQ(List().size(), all.size());
  EXPECT_GT(Must(Prune(limits)).checkpoints, 0u);
}

}  // namespace
}  // namespace belay::test
