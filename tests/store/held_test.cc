// What a process that lives long holds open: manifest, tail, open pack, index. Whatever
// another process does meanwhile, it must see; and what it holds must save it calls.

#include <gtest/gtest.h>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "store/gc.h"
#include "store/verify.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

#define ASSERT_OK(expression)                              \
  do {                                                     \
    auto&& ok_result = (expression);                       \
    ASSERT_TRUE(ok_result.ok()) << ok_result.error().what; \
  } while (false)

class HeldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = OpenOrDie(world_);
    other_ = OpenOrDie(other_world_);
  }
  static std::unique_ptr<Store> OpenOrDie(World& world) {
    auto opened = world.Open();
    BELAY_CHECK(opened.ok());
    return std::move(*opened);
  }
  Files Content(const std::string& name) {
    return {{"shared", Noise(1, 3000)},
            {name, Noise(LoadU64(Sha256::Of(AsBytes(name)).bytes.data()), 1500)}};
  }
  void Make(Store& store, const std::string& name) {
    ASSERT_OK(MakeCheckpoint(store, name, Content(name)));
    acked_[name] = Content(name);
  }
  void ExpectAll(Store& store) {
    auto all = ReadAll(store);
    ASSERT_OK(all);
    EXPECT_EQ(*all, acked_);
  }
  void ExpectAllEverywhere() {
    ExpectAll(*store_);
    ExpectAll(*other_);
    World fresh(disk_, 99);
    fresh.options = world_.options;
    ExpectAll(*OpenOrDie(fresh));
  }
  // How many of the objects were there already.
  BatchStats Put(Store& store, const Files& files) {
    auto writer = store.Begin();
    BELAY_CHECK(writer.ok());
    for (const auto& [name, content] : files)
      BELAY_CHECK((*writer)->PutContent(AsBytes(content)).ok());
    auto published = (*writer)->Commit();
    BELAY_CHECK(published.ok());
    return published->stats;
  }
  Name PackName() {
    return PackFile::FileName(other_->LoadManifest()->packs.back().id);
  }

  MemFs disk_;
  World world_{disk_, 1};
  World other_world_{disk_, 2};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> other_;
  Checkpoints acked_;
};

TEST_F(HeldTest, TwoProcessesTakeTurnsAndSeeEachOther) {
  for (int i = 0; i < 12; ++i)
    Make(i % 3 == 0 ? *store_ : *other_, "turn " + std::to_string(i));
  ExpectAllEverywhere();
  EXPECT_EQ(other_->LoadManifest()->packs.size(), 1u);
}

TEST_F(HeldTest, FindsWhatAnotherProcessPutSinceItLastLooked) {
  Make(*store_, "one");
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    Files files{{"f", Noise(50 + static_cast<uint64_t>(i), 2000)}};
    EXPECT_EQ(Put(*other_, files).objects_new, 1u);
    EXPECT_EQ(Put(*store_, files).objects_known, 1u);
    Files own{{"f", Noise(80 + static_cast<uint64_t>(i), 2000)}};
    EXPECT_EQ(Put(*store_, own).objects_new, 1u);
    EXPECT_EQ(Put(*store_, own).objects_known, 1u);
  }
}

TEST_F(HeldTest, GoesOnInTheNewPackWhenAnotherProcessSealedTheOldOne) {
  Make(*store_, "one");
  other_world_.options.pack_target = 1000;
  other_ = OpenOrDie(other_world_);
  Make(*other_, "two");
  Make(*store_, "three");
  Make(*store_, "four");
  EXPECT_EQ(other_->LoadManifest()->packs.size(), 2u);
  ExpectAllEverywhere();
}

TEST_F(HeldTest, GoesOnAfterACollectionOfAnotherProcess) {
  Make(*store_, "one");
  Make(*store_, "two");
  Make(*store_, "gone");
  ASSERT_OK(DropCheckpoints(*other_, {"gone"}));
  acked_.erase("gone");
  ASSERT_OK(CollectGarbage(*other_, {.everything = true}));
  // "shared" is known, but in another pack than this process last saw it.
  Make(*store_, "three");
  ExpectAllEverywhere();
}

TEST_F(HeldTest, WritesNothingIntoAPackThatLostItsName) {
  Make(*store_, "one");
  ASSERT_OK(disk_.Unlink(store_->packs_dir(), PackName()));
  acked_.clear();
  Make(*store_, "two");
  ExpectAllEverywhere();
}

TEST_F(HeldTest, WritesNothingIntoAPackThatWasReplaced) {
  Make(*store_, "one");
  auto bytes = ReadSmallFile(disk_, store_->packs_dir(), PackName(), 1 << 20);
  ASSERT_OK(bytes);
  ASSERT_OK(ReplaceFile(disk_, store_->packs_dir(), PackName(), *bytes));
  Make(*store_, "two");
  ExpectAllEverywhere();
}

TEST_F(HeldTest, GoesOnWhenTheTailWasReplacedOrLost) {
  const Name tail = Name::Literal("tail");
  Make(*store_, "one");
  auto old = ReadSmallFile(disk_, store_->dir(), tail, 4096);
  ASSERT_OK(old);
  Make(*store_, "two");
  ASSERT_OK(ReplaceFile(disk_, store_->dir(), tail, *old));
  Make(*store_, "three");
  Make(*other_, "four");
  ASSERT_OK(disk_.Unlink(store_->dir(), tail));
  Make(*store_, "five");
  Make(*other_, "six");
  Make(*store_, "seven");
  ExpectAllEverywhere();
}

// The mode says whether a store is made, not whether it is written.
TEST_F(HeldTest, AStoreThatWasOpenedToReadKeepsTheTailUpToDate) {
  Make(*store_, "one");
  auto reader = other_world_.Open(Store::Mode::kRead);
  ASSERT_OK(reader);
  ExpectAll(**reader);
  Make(**reader, "two");
  const Manifest::Pack pack = store_->LoadManifest()->packs[0];
  auto tail = store_->LoadTail(pack.id);
  ASSERT_OK(tail);
  ASSERT_TRUE(tail->has_value());
  EXPECT_EQ((*tail)->flushed, disk_.StatAt(store_->packs_dir(), PackName())->size);
  ExpectAllEverywhere();
}

// Put ahead by one writer and not flushed: it may still be cut off.
TEST_F(HeldTest, DoesNotRelyOnWhatAnotherWriterOfThisProcessPutAhead) {
  world_.options.batch_target = 1000;
  store_ = OpenOrDie(world_);
  Make(*store_, "one");
  // The second has looked at the pack list before the first puts anything into the
  // pack: only what the process itself noted can tell it of that.
  auto first = store_->Begin();
  ASSERT_OK(first);
  auto second = store_->Begin();
  ASSERT_OK(second);
  std::string content = Noise(7, 3000);
  ASSERT_OK((*first)->PutContent(AsBytes(content)));
  ASSERT_OK((*second)->PutContent(AsBytes(content)));
  auto published = (*second)->Commit();
  ASSERT_OK(published);
  EXPECT_EQ(published->stats.objects_known, 0u);
  ASSERT_OK((*first)->Commit());
  EXPECT_EQ(Put(*store_, {{"f", content}}).objects_known, 1u);
}

// --- calls ---------------------------------------------------------------------------

// bench/store has the time these take. More is no wrong answer, but somebody should
// have meant it.
TEST(HeldCalls, ASmallBatchTakesFewCalls) {
  MemFs disk;
  FaultFs counted(disk);
  World world(counted);
  uint64_t seed = 100;
  auto commit = [&](Store& store) {
    auto writer = store.Begin();
    BELAY_CHECK(writer.ok());
    for (int i = 0; i < 10; ++i)
      BELAY_CHECK((*writer)->PutContent(AsBytes(Noise(++seed, 1000))).ok());
    LogRecord record;
    record.id = IdFor(std::to_string(seed));
    (*writer)->Add(record);
    BELAY_CHECK((*writer)->Commit().ok());
  };
  uint64_t before = 0;
  {
    auto store = world.Open();
    ASSERT_TRUE(store.ok());
    for (int i = 0; i < 20; ++i) commit(**store);
    before = counted.calls();
    for (int i = 0; i < 20; ++i) commit(**store);
    EXPECT_LE((counted.calls() - before) / 20, 26u) << "one that lives long";
  }
  before = counted.calls();
  for (int i = 0; i < 20; ++i) {
    auto store = world.Open();
    ASSERT_TRUE(store.ok());
    commit(**store);
  }
  EXPECT_LE((counted.calls() - before) / 20, 65u) << "one that opens, commits, ends";
}

}  // namespace
}  // namespace belay::test
