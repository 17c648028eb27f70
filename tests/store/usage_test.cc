#include "store/usage.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "store/gc.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class UsageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.options.pack_target = 60'000;
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok());
    store_ = std::move(*opened);
  }
  StoreUsage Measure() {
    auto usage = MeasureUsage(*store_);
    EXPECT_TRUE(usage.ok()) << usage.error().what;
    if (!usage.ok()) return {};
    EXPECT_EQ(
        usage->packs + usage->indexes + usage->catalog + usage->aside + usage->other,
        usage->allocated);
    EXPECT_EQ(usage->wanted + usage->reclaimable + usage->overhead, usage->pack_bytes);
    uint64_t by_type = 0;
    for (const auto& [type, bytes] : usage->by_type) by_type += bytes;
    EXPECT_EQ(by_type, usage->wanted);
    return *usage;
  }
  // As du(1): every file and directory of the store.
  uint64_t AllocatedOnDisk(const Fd& dir) {
    uint64_t total = disk_.Stat(dir)->allocated;
    auto entries = disk_.List(dir);
    for (const DirEntry& e : *entries) {
      auto stat = disk_.StatAt(dir, Name::Literal(e.name));
      if (stat->type == FileType::kDirectory) {
        auto below = disk_.Open(dir, Name::Literal(e.name), OpenMode::Directory());
        total += AllocatedOnDisk(*below);
      } else {
        total += stat->allocated;
      }
    }
    return total;
  }

  MemFs disk_;
  World world_{disk_};
  std::unique_ptr<Store> store_;
};

TEST_F(UsageTest, OfAnEmptyStoreAddsUp) {
  StoreUsage usage = Measure();
  EXPECT_EQ(usage.pack_bytes, 0u);
  EXPECT_EQ(usage.allocated, AllocatedOnDisk(store_->dir()));
}

TEST_F(UsageTest, PartsAddUpAndRootsShare) {
  RootId one(world_.random.NewId());
  RootId two(world_.random.NewId());
  const std::string shared = Noise(1, 20'000);
  auto name_root = [&](const RootId& id, const std::string& path) {
    auto writer = store_->Begin();
    ASSERT_TRUE(writer.ok());
    (*writer)->Add(ToRecord(Root{id, path}, RecordId(id), 1));
    ASSERT_TRUE((*writer)->Commit().ok());
  };
  name_root(one, "/one");
  name_root(two, "/two");
  ASSERT_TRUE(
      MakeCheckpoint(*store_, "a", {{"s", shared}, {"x", Noise(2, 30'000)}}, one).ok());
  ASSERT_TRUE(
      MakeCheckpoint(*store_, "b", {{"s", shared}, {"y", Noise(3, 10'000)}}, two).ok());
  StoreUsage usage = Measure();
  EXPECT_EQ(usage.allocated, AllocatedOnDisk(store_->dir()));
  ASSERT_EQ(usage.roots.size(), 2u);
  uint64_t accounted = 0;
  uint64_t shared_bytes = 0;
  for (const RootUsage& r : usage.roots) {
    const bool first = r.path == "/one";
    EXPECT_TRUE(first || r.path == "/two");
    EXPECT_EQ(r.checkpoints, 1u);
    EXPECT_GE(r.unique, first ? 30'000u : 10'000u);
    EXPECT_LT(r.unique, first ? 31'000u : 11'000u);
    EXPECT_EQ(r.shared, 20'048u);  // one record of noise
    accounted += r.unique;
    shared_bytes = r.shared;
  }
  // Whatever is no record belongs to one root or to both.
  EXPECT_EQ(accounted + shared_bytes + usage.by_type["record"], usage.wanted);
  EXPECT_EQ(usage.reclaimable, 0u);
}

// A root that was registered anew at the same path: one line, and what both ids have is
// shared with nobody.
TEST_F(UsageTest, RootsWithOnePathAreOne) {
  auto name_root = [&](const RootId& id, const std::string& path, bool off = false) {
    auto writer = store_->Begin();
    ASSERT_TRUE(writer.ok());
    Root root{id, path};
    root.off = off;
    (*writer)->Add(ToRecord(root, RecordId(world_.random.NewId()), 1));
    ASSERT_TRUE((*writer)->Commit().ok());
  };
  const RootId one(world_.random.NewId()), again(world_.random.NewId()),
      other(world_.random.NewId());
  name_root(one, "/elsewhere");
  name_root(one, "/here");
  name_root(other, "/other");
  name_root(again, "/here");
  const std::string both = Noise(1, 20'000);
  ASSERT_TRUE(
      MakeCheckpoint(*store_, "a", {{"s", both}, {"x", Noise(2, 30'000)}}, one).ok());
  ASSERT_TRUE(
      MakeCheckpoint(*store_, "b", {{"s", both}, {"y", Noise(3, 10'000)}}, again).ok());
  ASSERT_TRUE(MakeCheckpoint(*store_, "c", {{"z", Noise(4, 5'000)}}, other).ok());
  StoreUsage usage = Measure();
  EXPECT_EQ(usage.allocated, AllocatedOnDisk(store_->dir()));
  ASSERT_EQ(usage.roots.size(), 2u);
  const bool first = usage.roots[0].path == "/here";
  const RootUsage& here = usage.roots[first ? 0 : 1];
  const RootUsage& there = usage.roots[first ? 1 : 0];
  EXPECT_EQ(here.path, "/here");
  EXPECT_EQ(here.root, again);
  EXPECT_EQ(here.checkpoints, 2u);
  EXPECT_EQ(there.path, "/other");
  EXPECT_GE(here.unique, 60'000u);
  EXPECT_EQ(here.shared, 0u);
  EXPECT_EQ(here.unique + there.unique + usage.by_type["record"], usage.wanted);
  // What only an older id had is the root's garbage.
  ASSERT_TRUE(DropCheckpoints(*store_, {"a"}).ok());
  usage = Measure();
  ASSERT_EQ(usage.roots.size(), 2u);
  EXPECT_EQ(usage.roots[first ? 0 : 1].checkpoints, 1u);
  EXPECT_EQ(usage.roots[first ? 0 : 1].reclaimable, usage.reclaimable);
  EXPECT_GE(usage.reclaimable, 30'000u);
}

TEST_F(UsageTest, SessionsShareWithEachOtherAndWithTheRest) {
  const RootId root(world_.random.NewId());
  auto make = [&](const std::string& name, const std::string& session,
                  const Files& files) {
    auto writer = store_->Begin();
    ASSERT_TRUE(writer.ok());
    auto state = PutFiles(**writer, files);
    ASSERT_TRUE(state.ok());
    Checkpoint c;
    c.id = IdFor(name);
    c.root = root;
    c.state = *state;
    if (!session.empty()) c.session = session;
    (*writer)->Add(ToRecord(c));
    ASSERT_TRUE((*writer)->Commit().ok());
  };
  const std::string all = Noise(1, 20'000), two = Noise(2, 15'000);
  make("a", "", {{"all", all}});
  make("b", "one", {{"all", all}, {"two", two}, {"x", Noise(3, 30'000)}});
  make("c", "one", {{"all", all}, {"y", Noise(4, 5'000)}});
  make("d", "other", {{"all", all}, {"two", two}, {"z", Noise(5, 40'000)}});
  StoreUsage usage = Measure();
  ASSERT_EQ(usage.sessions.size(), 2u);
  const SessionUsage& one = usage.sessions[0];
  EXPECT_EQ(one.session, "one");
  EXPECT_EQ(one.checkpoints, 2u);
  EXPECT_EQ(one.shared, 20'048u + 15'048u);
  EXPECT_GE(one.unique, 35'000u);
  EXPECT_LT(one.unique, 36'500u);
  EXPECT_EQ(one.reclaimable, 0u);
  const SessionUsage other = usage.sessions[1];
  EXPECT_EQ(other.shared, 20'048u + 15'048u);
  EXPECT_GE(other.unique, 40'000u);
  ASSERT_EQ(usage.roots.size(), 1u);
  EXPECT_EQ(usage.roots[0].unique + usage.by_type["record"], usage.wanted);

  // What only it had is what goes with it, and that is true of the files, too.
  ASSERT_TRUE(DropCheckpoints(*store_, {"d"}).ok());
  usage = Measure();
  ASSERT_EQ(usage.sessions.size(), 2u);
  EXPECT_EQ(usage.sessions[1].checkpoints, 0u);
  EXPECT_EQ(usage.sessions[1].unique + usage.sessions[1].shared, 0u);
  EXPECT_GE(usage.sessions[1].reclaimable, other.unique);
  EXPECT_EQ(usage.sessions[1].reclaimable, usage.reclaimable);
  EXPECT_EQ(usage.roots[0].reclaimable, usage.reclaimable);
  const uint64_t before = usage.pack_bytes;
  ASSERT_TRUE(CollectGarbage(*store_, {.everything = true}).ok());
  usage = Measure();
  EXPECT_EQ(usage.sessions.size(), 1u);
  EXPECT_LE(usage.pack_bytes + other.unique, before + 500);
  EXPECT_EQ(usage.allocated, AllocatedOnDisk(store_->dir()));
}

TEST_F(UsageTest, SaysWhatCollectingWillFree) {
  ASSERT_TRUE(MakeCheckpoint(*store_, "kept", {{"a", Noise(1, 30'000)}}).ok());
  ASSERT_TRUE(MakeCheckpoint(*store_, "gone", {{"b", Noise(2, 40'000)}}).ok());
  EXPECT_EQ(Measure().reclaimable, 0u);
  ASSERT_TRUE(DropCheckpoints(*store_, {"gone"}).ok());
  StoreUsage before = Measure();
  EXPECT_GE(before.reclaimable, 40'000u);
  auto dry = CollectGarbage(*store_, {.dry_run = true});
  ASSERT_TRUE(dry.ok());
  EXPECT_EQ(dry->reclaimable, before.reclaimable);
  ASSERT_TRUE(CollectGarbage(*store_, {.everything = true}).ok());
  StoreUsage after = Measure();
  EXPECT_LE(after.pack_bytes + before.reclaimable, before.pack_bytes + 500);
  EXPECT_EQ(after.reclaimable, 0u);
}

}  // namespace
}  // namespace belay::test
