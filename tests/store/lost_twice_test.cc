// Two things gone at once, of which one alone would have told of the other: the
// manifest and a pack, the tail and what it vouched for.

#include <gtest/gtest.h>

#include <cstring>

#include "base/fast_hash.h"
#include "base/mem_fs.h"
#include "store/catalog.h"
#include "store/found_again.h"
#include "store/gc.h"
#include "store/heads.h"
#include "store/lost_records.h"
#include "store/mend.h"
#include "store/relied_on.h"
#include "store/repair.h"
#include "store/store_files.h"
#include "store/unlisted.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class LostTwice : public ::testing::Test {
 protected:
  void Anew() {
    worlds_.clear();
    memory_ = std::make_unique<MemFs>();
  }
  World& NewWorld() {
    static uint64_t seed = 7700;  // ids must not repeat
    worlds_.push_back(std::make_unique<World>(*memory_, ++seed));
    return *worlds_.back();
  }
  std::unique_ptr<Store> Open() { return Must(NewWorld().Open()); }
  Fd Home() { return Must(memory_->OpenDir(AbsPath::Literal("/store"))); }
  Fd Packs() { return Must(memory_->OpenDir(AbsPath::Literal("/store/packs"))); }
  void Make(const std::string& name) {
    auto store = Open();
    Must(MakeCheckpoint(*store, name, {{"a", name}, {"b", SourceText(7, 400)}}));
  }
  // "one" in a pack that is closed; then "two" and "three" in the one behind it. What
  // the manifest was in between.
  Bytes MakeTwoPacks() {
    Make("one");
    Make("closing");
    {
      auto store = Open();
      Must(DropCheckpoints(*store, {"closing"}));
      Must(CollectGarbage(*store, {.everything = true}));
    }
    Bytes older =
        Must(ReadSmallFile(*memory_, Home(), Name::Literal("manifest"), 1 << 16));
    Make("two");
    Make("three");
    return older;
  }
  void RemoveNewestPack() {
    const PackId id = Open()->manifest().packs.back().id;
    Must(memory_->Unlink(Packs(), PackFile::FileName(id)));
    Must(memory_->Unlink(Packs(), PackIndex::FileName(id)));
  }
  VerifyReport Verify() { return Must(VerifyStore(*Open(), {.read_data = true})); }
  MendReport Repair(bool accept_loss = false) {
    World& world = NewWorld();
    Must(RepairStore(*memory_, world.clock, world.random, world.dir, world.options,
                     {.without_packs = accept_loss}));
    auto store = Must(NewWorld().Open(Store::Mode::kWriteExisting));
    MendReport mended;
    Must(MendStore(*store, {}, accept_loss, mended));
    return mended;
  }
  // It is missed until it is given up, and then no more.
  void ExpectMissed() {
    EXPECT_FALSE(Repair().left.clean());
    const VerifyReport missed = Verify();
    EXPECT_FALSE(missed.clean());
    EXPECT_GE(missed.unknown_records, 2u);
    EXPECT_FALSE(Repair(/*accept_loss=*/true).given_up.empty());
    EXPECT_TRUE(Verify().clean());
    EXPECT_FALSE(Open()->TailOfUnlisted());
    Make("after");
    EXPECT_TRUE(Verify().clean());
  }
  // As the command does it.
  MendReport RepairWhole(bool accept_loss = false) {
    World& world = NewWorld();
    std::vector<RememberedRecord> remembered;
    {
      const Fd home = Home();
      StoreLocks locks(*memory_, world.clock, home, 200);
      auto catalog = Must(
          Catalog::Open({*memory_, world.clock, world.random, locks, home}, nullptr));
      remembered = catalog->Remembered(0);
    }
    Must(RepairStore(*memory_, world.clock, world.random, world.dir, world.options));
    auto store = Must(NewWorld().Open(Store::Mode::kWriteExisting));
    std::vector<std::string> done;
    Must(TakeBackGivenUp(*store, done));
    Must(TakeBackRecords(*store, done));
    Must(TakeBackObjects(
        *store, Must(VerifyStore(*store, {.read_data = true})).lost_objects, done));
    MendReport mended;
    Must(MendStore(*store, remembered, accept_loss, mended));
    return mended;
  }
  // Objects that are there and read well.
  std::set<ObjectId> Readable(const std::set<ObjectKey>& keys) {
    auto store = Open();
    std::set<ObjectId> readable;
    for (const ObjectKey& key : keys)
      if (store->Get(key).ok()) readable.insert(key.id);
    return readable;
  }
  // A stat cache that relies on `place`, as a checkpoint leaves one.
  void RelyOn(const BatchPlace& place) {
    std::array<std::byte, kCacheHeadSize> head{};
    const uint32_t order = 0x01020304;
    std::memcpy(head.data(), kStatCacheMagic.data(), kStatCacheMagic.size());
    std::memcpy(head.data() + kStatCacheMagic.size(), &order, sizeof order);
    std::memcpy(head.data() + kCachePackAt, place.pack.bytes.data(), 16);
    std::memcpy(head.data() + kCacheBatchAt, &place.offset, sizeof place.offset);
    std::memcpy(head.data() + kCacheBodyHashAt, place.body_hash.span().data(), 32);
    const uint64_t check = FastHash(ByteSpan(head).first(kCacheCheckAt), 0);
    std::memcpy(head.data() + kCacheCheckAt, &check, sizeof check);
    Fd cache = Must(MakeDirs(*memory_, AbsPath::Literal("/store/cache"), 0700));
    Must(ReplaceFile(*memory_, cache, Name::Literal("aaaa.scan"),
                     Bytes(head.begin(), head.end())));
  }
  BatchPlace LastBatch() {
    auto store = Open();
    const Manifest manifest = store->manifest();
    const PackId id = manifest.packs.back().id;
    PackFile file =
        Must(PackFile::Open(*memory_, Packs(), id, manifest.store, OpenMode::Read()));
    BatchPlace last;
    Must(file.ForEachBatch(kPackHeaderSize, Must(file.Size()),
                           [&](const BatchHeader& b, bool) -> Status {
                             last = {id, b.offset, b.body_hash};
                             return Ok();
                           }));
    return last;
  }

  std::unique_ptr<MemFs> memory_ = std::make_unique<MemFs>();
  std::vector<std::unique_ptr<World>> worlds_;
};

TEST_F(LostTwice, AnOlderManifestAndThePackThatItDoesNotName) {
  const Bytes older = MakeTwoPacks();
  RemoveNewestPack();
  Must(ReplaceFile(*memory_, Home(), Name::Literal("manifest"), older));
  EXPECT_FALSE(Verify().clean());
  ExpectMissed();
}

TEST_F(LostTwice, TheManifestAndTheNewestPack) {
  MakeTwoPacks();
  RemoveNewestPack();
  Must(memory_->Unlink(Home(), Name::Literal("manifest")));
  ExpectMissed();
}

// As above where the pack before is no collection's copy: its numbers are its place,
// and what is missed is behind them.
TEST_F(LostTwice, TheManifestAndTheNewestPackBehindOneThatIsFull) {
  Make("one");
  {
    World& world = NewWorld();
    world.options.pack_target = 1;
    auto store = Must(world.Open());
    Must(MakeCheckpoint(*store, "two", {{"a", "two"}}));
    Must(MakeCheckpoint(*store, "three", {{"a", "three"}}));
    ASSERT_GE(store->manifest().packs.size(), 2u);
  }
  RemoveNewestPack();
  Must(memory_->Unlink(Home(), Name::Literal("manifest")));
  EXPECT_FALSE(Repair().left.clean());
  EXPECT_GE(Verify().unknown_records, 1u);
}

// The one pack and the tail: nothing says how many records there were.
TEST_F(LostTwice, OfALossThatNothingCountsNoNumberIsSaid) {
  Make("one");
  Make("two");
  RemoveNewestPack();
  Must(memory_->Unlink(Home(), Name::Literal("tail")));
  const VerifyReport missed = Verify();
  EXPECT_FALSE(missed.clean());
  EXPECT_TRUE(missed.uncounted_records);
  EXPECT_EQ(UnknownRecordsText(missed), "records, nobody can tell how many,");
  const MendReport given_up = Repair(/*accept_loss=*/true);
  ASSERT_EQ(given_up.given_up.size(), 1u);
  EXPECT_NE(given_up.given_up[0].find("nobody can tell how many"), std::string::npos);
}

// The end of a pack and the tail, while nobody had asked the catalogue: the index says
// how far it went, a stat cache too, and nobody how many records that were.
TEST_F(LostTwice, TheEndOfThePackAndTheTailThatOnlyAnIndexOrACacheTellsOf) {
  for (const char* told_by : {"index", "cache", "heads and cache"}) {
    SCOPED_TRACE(told_by);
    worlds_.clear();
    memory_ = std::make_unique<MemFs>();
    Make("one");
    const PackId pack = Open()->manifest().packs.back().id;
    const Bytes shorter = Must(
        ReadSmallFile(*memory_, Packs(), PackFile::FileName(pack), size_t{1} << 20));
    if (told_by == std::string("heads and cache")) Must(Heads::Read(*Open()));
    for (const char* name : {"two", "three", "four"}) Make(name);
    if (told_by != std::string("index")) {
      RelyOn(LastBatch());
      Must(memory_->Unlink(Packs(), PackIndex::FileName(pack)));
    }
    Must(ReplaceFile(*memory_, Packs(), PackFile::FileName(pack), shorter));
    Must(memory_->Unlink(Home(), Name::Literal("tail")));

    for (bool repaired : {false, true}) {
      SCOPED_TRACE(repaired);
      if (repaired) Repair();
      const VerifyReport missed = Verify();
      EXPECT_FALSE(missed.clean());
      EXPECT_TRUE(missed.uncounted_records);
    }
    Make("after");
    EXPECT_TRUE(Verify().uncounted_records);
    const MendReport given_up = Repair(/*accept_loss=*/true);
    ASSERT_EQ(given_up.given_up.size(), 1u);
    EXPECT_NE(given_up.given_up[0].find("nobody can tell how many"), std::string::npos);
    EXPECT_TRUE(Verify().clean());
  }
}

// A writer that goes on before anybody repairs counts behind what it may have been.
TEST_F(LostTwice, ANumberThatNobodyCountedIsNotGivenAgain) {
  Make("one");
  const PackId pack = Open()->manifest().packs.back().id;
  const Bytes shorter =
      Must(ReadSmallFile(*memory_, Packs(), PackFile::FileName(pack), size_t{1} << 20));
  for (const char* name : {"two", "three", "four"}) Make(name);
  Must(ReplaceFile(*memory_, Packs(), PackFile::FileName(pack), shorter));
  Must(memory_->Unlink(Home(), Name::Literal("tail")));
  Make("after");
  EXPECT_TRUE(Verify().uncounted_records);
  EXPECT_TRUE(Repair().left.uncounted_records);
}

// What was written ahead and never flushed is in the index, and is not missed.
TEST_F(LostTwice, WhatWasNeverFlushedIsNotMissed) {
  Make("one");
  const PackId pack = Open()->manifest().packs.back().id;
  const Bytes flushed =
      Must(ReadSmallFile(*memory_, Packs(), PackFile::FileName(pack), size_t{1} << 20));
  {
    World& world = NewWorld();
    world.options.batch_target = 4096;
    auto store = Must(world.Open());
    auto writer = Must(store->Begin());
    for (uint64_t i = 0; i < 4; ++i)
      Must(writer->PutContent(AsBytes(Noise(40 + i, 3000))));
  }
  EXPECT_GT(Must(PackIndex::Load(*memory_, Packs(), pack)).covered(), flushed.size());
  Must(ReplaceFile(*memory_, Packs(), PackFile::FileName(pack), flushed));
  Must(memory_->Unlink(Home(), Name::Literal("tail")));
  for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
  Make("two");
  EXPECT_TRUE(Verify().clean());
}

TEST_F(LostTwice, AnOlderManifestAndTheTail) {
  const Bytes older = MakeTwoPacks();
  Must(ReplaceFile(*memory_, Home(), Name::Literal("manifest"), older));
  Make("four");  // its tail tells nothing of the pack that is not listed
  auto store = Open();
  EXPECT_FALSE(store->TailOfUnlisted());
  EXPECT_TRUE(Must(MissesUnlisted(*store)));
}

TEST_F(LostTwice, TheTailAndTheEndOfTheOpenPack) {
  for (uint64_t cut : {1, 40, 100}) {
    for (bool written : {false, true}) {
      SCOPED_TRACE(std::to_string(cut) + (written ? ", written since" : ""));
      Anew();
      Make("one");
      Make("two");
      const BatchPlace last = LastBatch();
      RelyOn(last);
      const Name pack = PackFile::FileName(last.pack);
      {
        Fd file = Must(memory_->Open(Packs(), pack, OpenMode::ReadWrite()));
        const uint64_t size = Must(memory_->Stat(file)).size;
        Must(memory_->Truncate(file, size - cut));
      }
      Must(memory_->Unlink(Home(), Name::Literal("tail")));
      if (written) Make("three");
      const VerifyReport report = Verify();
      EXPECT_FALSE(report.clean());
      std::set<uint64_t> numbers;
      LogView log;
      auto store = Open();
      Must(ReadOn(*store, log));
      for (const LogRecord& r : log.records) EXPECT_TRUE(numbers.insert(r.seq).second);
    }
  }
}

TEST_F(LostTwice, AWholePackIsNoneThatWasCutShort) {
  Make("one");
  RelyOn(LastBatch());
  Make("two");
  Must(memory_->Unlink(Home(), Name::Literal("tail")));
  EXPECT_TRUE(Verify().clean());
  Make("three");
  EXPECT_TRUE(Verify().clean());
  EXPECT_EQ(Must(ReadAll(*Open())).size(), 3u);
}

// A collection's pack is one batch with its records at the end: without that nothing in
// it is whole, and most of it can be read.
TEST_F(LostTwice, TheManifestAndTheEndOfACollectedPack) {
  for (const char* how : {"cut", "cut, no index", "zeros", "header only"}) {
    SCOPED_TRACE(how);
    Anew();
    Make("one");
    Make("closing");
    {
      auto store = Open();
      for (int i = 0; i < 5; ++i)
        Must(MakeCheckpoint(*store, "c" + std::to_string(i),
                            {{"f", Noise(40 + static_cast<uint64_t>(i), 900)}}));
      Must(DropCheckpoints(*store, {"closing"}));
      Must(CollectGarbage(*store, {.everything = true}));
    }
    const PackId id = Open()->manifest().packs.front().id;
    Make("later");
    {
      auto store = Open();
      Must(Must(Catalog::Open(*store))->CatchUp());
    }
    const Name name = PackFile::FileName(id);
    const Bytes good = Must(ReadSmallFile(*memory_, Packs(), name, 1 << 24));
    std::set<ObjectKey> keys;
    {
      auto store = Open();
      PackFile file = Must(PackFile::Open(*memory_, Packs(), id,
                                          store->manifest().store, OpenMode::Read()));
      for (const IndexEntry& e : Must(ObjectsIn(file, kPackHeaderSize, good.size())))
        keys.insert(e.key);
    }
    const Checkpoints all = Must(ReadAll(*Open()));
    const bool header_only = how == std::string("header only");
    const uint64_t left = header_only ? kPackHeaderSize : good.size() / 2;
    {
      Fd file = Must(memory_->Open(Packs(), name, OpenMode::ReadWrite()));
      Must(memory_->Truncate(file, left));
      if (how == std::string("zeros"))
        Must(WriteFull(*memory_, file, left, Bytes(good.size() - left)));
    }
    const auto readable = Readable(keys);
    EXPECT_GE(readable.size(), header_only ? 0u : 3u);
    EXPECT_LT(readable.size(), keys.size());
    Must(memory_->Unlink(Home(), Name::Literal("manifest")));
    if (header_only || how == std::string("cut, no index"))
      Must(memory_->Unlink(Packs(), PackIndex::FileName(id)));
    EXPECT_FALSE(Repair().left.clean());
    EXPECT_EQ(Readable(keys), readable);
    if (how == std::string("cut")) {
      EXPECT_EQ(Open()->manifest().Find(id)->sealed, good.size());
    }
    // It is put back.
    Must(ReplaceFile(*memory_, Packs(), name, good));
    for (const std::string& d : RepairWhole().left.damage) ADD_FAILURE() << d;
    EXPECT_EQ(Must(ReadAll(*Open())), all);
    Must(CollectGarbage(*Open(), {.everything = true}));
    for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
    EXPECT_EQ(Must(ReadAll(*Open())), all);
  }
}

// Packs that are away for a while are of this store when they come back.
TEST_F(LostTwice, ADamagedManifestAndEveryPack) {
  const Name manifest = Name::Literal("manifest");
  for (const char* how : {"empty", "appended to", "a directory", "garbage packs"}) {
    for (const char* left :
         {"all", "the tail", "the index", "the catalogue", "the text"}) {
      SCOPED_TRACE(std::string(how) + ", " + left);
      Anew();
      Make("one");
      Make("two");
      {
        auto store = Open();
        Must(Must(Catalog::Open(*store))->CatchUp());
      }
      const auto is = [&](const char* what) { return left == std::string(what); };
      const bool garbage = how == std::string("garbage packs");
      if (is("the text") &&
          (how == std::string("empty") || how == std::string("a directory")))
        continue;
      const StoreId id = Open()->manifest().store;
      const Checkpoints all = Must(ReadAll(*Open()));
      std::map<std::string, Bytes> packs;
      for (const DirEntry& e : Must(memory_->List(Packs()))) {
        const Name name = Name::Literal(e.name);
        if (e.name.ends_with(".pack")) {
          packs[e.name] = Must(ReadSmallFile(*memory_, Packs(), name, 1 << 24));
          Must(memory_->Unlink(Packs(), name));
          if (garbage)
            Must(ReplaceFile(*memory_, Packs(), name, ToBytes(Noise(9, 5000))));
        } else if (!is("all") && !is("the index")) {
          Must(memory_->Unlink(Packs(), name));
        }
      }
      if (!is("all") && !is("the tail")) Must(memory_->Unlink(Home(), TailName()));
      if (!is("all") && !is("the catalogue"))
        for (const char* file : {"catalog.db", "catalog.db-wal"}) {
          Fd dir = Must(memory_->OpenDir(AbsPath::Literal("/store/catalog")));
          (void)memory_->Unlink(dir, Name::Literal(file));
        }
      Bytes text = Must(ReadSmallFile(*memory_, Home(), manifest, 1 << 16));
      text.push_back(std::byte{'\n'});
      if (how == std::string("empty")) text.clear();
      Must(memory_->Unlink(Home(), manifest));
      if (how == std::string("a directory"))
        Must(memory_->MakeDir(Home(), manifest, 0700));
      else
        Must(ReplaceFile(*memory_, Home(), manifest, text));

      for (bool accept_loss : {false, true}) {
        World& world = NewWorld();
        auto repaired = RepairStore(*memory_, world.clock, world.random, world.dir,
                                    world.options, {.without_packs = accept_loss});
        ASSERT_FALSE(repaired.ok());
        EXPECT_EQ(repaired.error().code, Errc::kCorrupt) << repaired.error().what;
        EXPECT_NE(repaired.error().hint.find("bring back the packs"),
                  std::string::npos);
      }
      for (const auto& [name, bytes] : packs)
        Must(ReplaceFile(*memory_, Packs(), Name::Literal(name), bytes));
      for (const std::string& d : RepairWhole().left.damage) ADD_FAILURE() << d;
      EXPECT_EQ(Open()->manifest().store, id);
      EXPECT_EQ(Must(ReadAll(*Open())), all);
    }
  }
}

TEST_F(LostTwice, ADamagedManifestOfAStoreWithNothingInIt) {
  (void)Open();
  Must(ReplaceFile(*memory_, Home(), Name::Literal("manifest"), Bytes()));
  EXPECT_TRUE(Repair().left.clean());
  Make("one");
  EXPECT_TRUE(Verify().clean());
}

TEST_F(LostTwice, ManifestAndPacksAreNoDirectoryToSettleIn) {
  Make("one");
  for (const DirEntry& e : Must(memory_->List(Packs())))
    Must(memory_->Unlink(Packs(), Name::Literal(e.name)));
  Must(memory_->RemoveDir(Home(), Name::Literal("packs")));
  Must(memory_->Unlink(Home(), Name::Literal("manifest")));
  auto opened = NewWorld().Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace belay::test
