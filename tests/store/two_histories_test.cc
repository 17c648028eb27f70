// A store and a copy of it that went on by itself, laid together again: by a backup
// that was put back, by files of another disk. Numbers were given twice, ends of packs
// differ, and still everything that was acknowledged is in the lists after a repair.

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "store/catalog.h"
#include "store/found_again.h"
#include "store/gc.h"
#include "store/lost_records.h"
#include "store/repair.h"
#include "store/unlisted.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class TwoHistories : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;  // sorted

  World& NewWorld(MemFs& disk) {
    static uint64_t seed = 8800;  // ids must not repeat
    worlds_.push_back(std::make_unique<World>(disk, ++seed));
    return *worlds_.back();
  }
  std::unique_ptr<Store> Open(MemFs& disk) { return Must(NewWorld(disk).Open()); }
  static Fd Home(MemFs& disk) { return Must(disk.OpenDir(AbsPath::Literal("/store"))); }
  static Fd Packs(MemFs& disk) {
    return Must(disk.OpenDir(AbsPath::Literal("/store/packs")));
  }
  void Make(MemFs& disk, const std::string& name, const std::string& content = "") {
    auto store = Open(disk);
    Must(MakeCheckpoint(*store, name, {{"a", name}, {"b", content}}));
  }
  // What comes next goes into another pack.
  void ClosePack(MemFs& disk) {
    Make(disk, "closing");
    auto store = Open(disk);
    Must(DropCheckpoints(*store, {"closing"}));
    Must(CollectGarbage(*store, {.everything = true}));
  }
  static void CopyPack(MemFs& from, MemFs& to, const PackId& id) {
    const Name name = PackFile::FileName(id);
    Must(ReplaceFile(to, Packs(to), name,
                     Must(ReadSmallFile(from, Packs(from), name, 1 << 24))));
  }
  static void Remove(MemFs& disk, const char* name) {
    Must(disk.Unlink(Home(disk), Name::Literal(name)));
  }
  void Repair(MemFs& disk, bool take_in = false) {
    World& world = NewWorld(disk);
    Must(RepairStore(disk, world.clock, world.random, world.dir, world.options,
                     {.take_in = take_in}));
  }
  VerifyReport Verify(MemFs& disk) {
    auto store = Open(disk);
    return Must(VerifyStore(*store, {.read_data = true}));
  }
  // As lists have it; each as often as it is there.
  Names Listed(MemFs& disk) {
    auto store = Open(disk);
    auto catalog = Must(Catalog::Open(*store));
    Must(catalog->Rebuild());
    Names names;
    for (const CatalogEntry& entry : Must(catalog->ListCheckpoints({})))
      names.push_back(entry.checkpoint.name.value_or(""));
    std::ranges::sort(names);
    return names;
  }
  std::map<std::string, uint64_t> Numbers(MemFs& disk) {
    auto store = Open(disk);
    LogView log;
    Must(ReadOn(*store, log));
    std::map<std::string, uint64_t> numbers;
    for (const LogRecord& r : log.records)
      if (auto c = ToCheckpoint(r); c.ok() && c->name) numbers[*c->name] = c->seq;
    return numbers;
  }
  std::vector<std::string> TakeBack(MemFs& disk) {
    auto store = Open(disk);
    std::vector<std::string> done;
    Must(TakeBackRecords(*store, done));
    return done;
  }
  std::vector<std::string> Show(MemFs& disk) {
    auto store = Open(disk);
    std::vector<std::string> done;
    Must(ShowHidden(*store, done));
    return done;
  }

  MemFs disk_;
  std::vector<std::unique_ptr<World>> worlds_;
};

TEST_F(TwoHistories, WithoutAManifestAllOfBothIsListed) {
  Make(disk_, "zero");
  ClosePack(disk_);
  auto other = disk_.Clone();
  for (const char* name : {"a1", "a2"}) Make(disk_, name);
  for (const char* name : {"b1", "b2", "b3"}) Make(*other, name);
  CopyPack(*other, disk_, Open(*other)->manifest().packs.back().id);
  for (const char* name : {"manifest", "tail"}) Remove(disk_, name);
  Repair(disk_);

  const VerifyReport report = Verify(disk_);
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.hit.size(), 2u);
  for (const HitCheckpoint& hit : report.hit) EXPECT_TRUE(hit.in_no_list);
  EXPECT_EQ(Listed(disk_).size(), 4u);
  EXPECT_EQ(Show(disk_).size(), 2u);
  EXPECT_EQ(Listed(disk_), (Names{"a1", "a2", "b1", "b2", "b3", "zero"}));
  EXPECT_TRUE(Verify(disk_).clean());
  EXPECT_TRUE(Show(disk_).empty());
}

// What takes others away, and what counts as the latest of its kind, stays what it is.
TEST_F(TwoHistories, NoNumberOfItsOwnMakesWhatWasSaidBeforeTheLastWord) {
  auto record = [](RecordKind kind, const char* id, uint64_t seq) {
    LogRecord r;
    r.kind = kind;
    r.id = RecordId(IdFor(id));
    r.seq = seq;
    r.made_ms = static_cast<int64_t>(seq);
    return r;
  };
  auto root = [](const char* path, uint64_t seq, const char* id) {
    LogRecord r = ToRecord(Root{RootId(IdFor("root")), path}, RecordId(IdFor(id)), 1);
    r.seq = seq;
    return r;
  };
  LogView log;
  log.Take({record(RecordKind::kDrop, "d1", 4), record(RecordKind::kDrop, "d2", 4),
            record(RecordKind::kPurge, "p1", 5), record(RecordKind::kPurge, "p2", 5),
            root("/old", 6, "r1"), record(RecordKind::kRelease, "l1", 6),
            root("/new", 7, "r2")});
  EXPECT_TRUE(HiddenRecords(log).empty());
  LogView twice;
  twice.Take({record(RecordKind::kTurn, "t1", 4), record(RecordKind::kTurn, "t2", 4)});
  EXPECT_EQ(HiddenRecords(twice).size(), 1u);
}

// Both went on with one conversation: the copy that was kept last stays the last.
TEST_F(TwoHistories, AnOlderCopyOfAConversationIsNotTheLatest) {
  Make(disk_, "zero");
  ClosePack(disk_);
  auto other = disk_.Clone();
  auto keep = [&](MemFs& disk, const std::string& text) {
    auto store = Open(disk);
    auto writer = Must(store->Begin());
    Node node;
    node.fields.Add(1, text);
    const ObjectId content =
        Must(writer->PutObject(ObjectType::kNode, EncodeNode(node)));
    writer->Add(ToRecord(TranscriptRecord{.session = "s",
                                          .path = "/t.jsonl",
                                          .content = content,
                                          .bytes = text.size()},
                         RecordId(IdFor(text)), RootId(), 1));
    Must(writer->Commit());
  };
  for (const char* text : {"a", "bb"}) {  // whichever is hidden by the other's number
    MemFs& disk = text[0] == 'a' ? disk_ : *other;
    keep(disk, text);
    if (text[0] == 'b') Make(disk, "between");
    keep(disk, std::string(text) + ", and then");
  }
  CopyPack(*other, disk_, Open(*other)->manifest().packs.back().id);
  for (const char* name : {"manifest", "tail"}) Remove(disk_, name);
  Repair(disk_);
  Show(disk_);
  auto store = Open(disk_);
  auto catalog = Must(Catalog::Open(*store));
  Must(catalog->Rebuild());
  const auto copies = Must(catalog->ListRecords({.kind = RecordKind::kTranscript}));
  std::set<uint64_t> lengths;
  for (const LogRecord& r : copies) lengths.insert(Must(ToTranscript(r)).bytes);
  EXPECT_EQ(lengths.size(), 4u);
  EXPECT_EQ(Must(ToTranscript(copies.front())).bytes,
            std::string("bb, and then").size());
  EXPECT_TRUE(Verify(disk_).clean());
  EXPECT_TRUE(Show(disk_).empty());
}

TEST_F(TwoHistories, APackOfTheOtherIsCopiedAndNotTakenIn) {
  Make(disk_, "zero");
  ClosePack(disk_);
  auto other = disk_.Clone();
  Make(disk_, "a1", Noise(5, 30'000));
  Make(*other, "b1", Noise(5, 30'000));
  Make(*other, "b2");
  const PackId theirs = Open(*other)->manifest().packs.back().id;
  CopyPack(*other, disk_, theirs);
  const PackId ours = Open(disk_)->manifest().packs.back().id;
  Bytes bytes =
      Must(ReadSmallFile(disk_, Packs(disk_), PackFile::FileName(ours), 1 << 20));
  bytes[5000] ^= std::byte{1};  // of what both have
  Must(ReplaceFile(disk_, Packs(disk_), PackFile::FileName(ours), bytes));

  EXPECT_EQ(TakeBack(disk_).size(), 2u);
  const VerifyReport damaged = Verify(disk_);
  Repair(disk_, /*take_in=*/true);
  EXPECT_EQ(Open(disk_)->manifest().Find(theirs), nullptr);
  {
    auto store = Open(disk_);
    std::vector<std::string> done;
    Must(TakeBackObjects(*store, damaged.lost_objects, done));
  }
  EXPECT_EQ(Listed(disk_), (Names{"a1", "b1", "b2", "zero"}));
  EXPECT_TRUE(Verify(disk_).nothing_lost());
  EXPECT_TRUE(Show(disk_).empty());
}

// It was given up for lost, checkpoints were made, and then it was found.
TEST_F(TwoHistories, NumbersOfALostPackAreNotGivenAgain) {
  Make(disk_, "zero");
  ClosePack(disk_);
  for (const char* name : {"one", "two"}) Make(disk_, name);
  auto before = disk_.Clone();
  const auto numbers = Numbers(disk_);
  const PackId lost = Open(disk_)->manifest().packs.back().id;
  Must(disk_.Unlink(Packs(disk_), PackFile::FileName(lost)));
  Must(disk_.Unlink(Packs(disk_), PackIndex::FileName(lost)));
  Remove(disk_, "tail");
  for (const char* name : {"new", "newer"}) Make(disk_, name);
  CopyPack(*before, disk_, lost);

  // Nobody knew how far it went: it goes on behind its end.
  EXPECT_TRUE(Must(MissesUnlisted(*Open(disk_))));
  const VerifyReport report = Verify(disk_);
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.hit.size(), 2u);
  {
    auto store = Open(disk_);
    auto collected = CollectGarbage(*store, {.everything = true});
    ASSERT_FALSE(collected.ok());
    EXPECT_EQ(collected.error().code, Errc::kCorrupt);
  }
  EXPECT_EQ(TakeBack(disk_).size(), 2u);
  EXPECT_EQ(Listed(disk_), (Names{"new", "newer", "one", "two", "zero"}));
  const auto after = Numbers(disk_);
  for (const auto& [name, number] : numbers) EXPECT_EQ(after.at(name), number) << name;
  EXPECT_TRUE(Verify(disk_).clean());
  EXPECT_FALSE(Must(MissesUnlisted(*Open(disk_))));
  EXPECT_TRUE(TakeBack(disk_).empty());
  ClosePack(disk_);
  EXPECT_EQ(Listed(disk_).size(), 5u);
}

// What is deleted later must not be missed because those bytes still have it.
TEST_F(TwoHistories, WhatCameBackFromBehindAnEndCanBeDeleted) {
  Make(disk_, "zero");
  ClosePack(disk_);
  Make(disk_, "one");
  auto before = disk_.Clone();
  const PackId lost = Open(disk_)->manifest().packs.back().id;
  Must(disk_.Unlink(Packs(disk_), PackFile::FileName(lost)));
  Must(disk_.Unlink(Packs(disk_), PackIndex::FileName(lost)));
  Remove(disk_, "tail");
  Make(disk_, "new");
  CopyPack(*before, disk_, lost);
  EXPECT_EQ(TakeBack(disk_).size(), 1u);
  EXPECT_TRUE(Verify(disk_).clean());

  for (const char* name : {"one", "later"}) {
    World& world = NewWorld(disk_);
    world.options.pack_target = 2000;  // so that a collection takes some packs alone
    auto store = Must(world.Open());
    Must(MakeCheckpoint(*store, "later", {{"a", "later"}}));
    Must(DropCheckpoints(*store, {name}));
    Must(CollectGarbage(*store, {.everything = true}));
  }
  const VerifyReport report = Verify(disk_);
  EXPECT_TRUE(report.clean());
  EXPECT_TRUE(TakeBack(disk_).empty());
  EXPECT_EQ(Listed(disk_), (Names{"new", "zero"}));
}

// As with a pack that is not listed: nobody knows what else was in it.
TEST_F(TwoHistories, WhatCannotBeReadWholeBehindAnEndStays) {
  for (const bool damaged : {false, true}) {
    MemFs disk;
    Make(disk, "zero");
    ClosePack(disk);
    Make(disk, "one");
    Make(disk, "two");
    const PackId pack = Open(disk)->manifest().packs.back().id;
    const Name name = PackFile::FileName(pack);
    Bytes bytes = Must(ReadSmallFile(disk, Packs(disk), name, 1 << 20));
    Must(disk.Unlink(Packs(disk), name));
    Must(disk.Unlink(Packs(disk), PackIndex::FileName(pack)));  // it knows the end
    Remove(disk, "tail");
    Make(disk, "new");
    if (damaged) bytes[kPackHeaderSize + kBatchHeaderSize] ^= std::byte{1};
    bytes.push_back(std::byte{7});
    Must(ReplaceFile(disk, Packs(disk), name, bytes));
    EXPECT_EQ(TakeBack(disk).size(), damaged ? 1u : 2u);
    {
      World& world = NewWorld(disk);
      world.options.pack_target = 2000;
      Must(CollectGarbage(*Must(world.Open()), {}));
    }
    EXPECT_EQ(Must(disk.StatAt(Packs(disk), name)).size,
              damaged ? bytes.size() : kPackHeaderSize);
    EXPECT_TRUE(Verify(disk).clean());
  }
}

TEST_F(TwoHistories, TheTailOfACopyGivesNoNumberAgain) {
  Make(disk_, "zero");
  auto other = disk_.Clone();
  Make(*other, "other", Noise(5, 50'000));
  for (const char* name : {"one", "two", "three"}) Make(disk_, name);
  Must(ReplaceFile(
      disk_, Home(disk_), Name::Literal("tail"),
      Must(ReadSmallFile(*other, Home(*other), Name::Literal("tail"), 4096))));
  for (const char* name : {"four", "five"}) Make(disk_, name);
  EXPECT_EQ(Listed(disk_), (Names{"five", "four", "one", "three", "two", "zero"}));
}

// Who could see a part of a batch alone closed the pack there, and all of it is back.
TEST_F(TwoHistories, AnEndThatCutsABatchInTwoIsMovedBehindIt) {
  for (const char* name : {"zero", "one"}) Make(disk_, name);
  Manifest manifest = Open(disk_)->manifest();
  const PackId last = manifest.packs.back().id;
  const uint64_t size = Must(disk_.StatAt(Packs(disk_), PackFile::FileName(last))).size;
  manifest.packs.back().sealed = size - 40;
  Must(ReplaceFile(disk_, Home(disk_), Name::Literal("manifest"),
                   EncodeManifest(manifest)));
  Make(disk_, "two");
  EXPECT_FALSE(Verify(disk_).clean());
  Repair(disk_);
  EXPECT_TRUE(Verify(disk_).clean());
  EXPECT_EQ(Listed(disk_), (Names{"one", "two", "zero"}));
  EXPECT_TRUE(Show(disk_).empty());
}

// As long as it was about a batch that ends where another does, or in the middle of
// one: what the pack has stays, and nothing is written where nobody finds it.
TEST_F(TwoHistories, ATailOfACopyCutsNothingOff) {
  for (const size_t size : {size_t{5}, size_t{300}, size_t{30'000}}) {
    for (const bool repaired : {false, true}) {
      SCOPED_TRACE(std::to_string(size) + (repaired ? ", repaired" : ""));
      MemFs disk;
      Make(disk, "zero");
      auto other = disk.Clone();
      Make(*other, "other", Noise(5, 300));
      Make(disk, "precious", Noise(6, size));
      Must(ReplaceFile(
          disk, Home(disk), Name::Literal("tail"),
          Must(ReadSmallFile(*other, Home(*other), Name::Literal("tail"), 4096))));
      EXPECT_FALSE(Verify(disk).clean());
      EXPECT_EQ(Numbers(disk).count("precious"), 1u);
      if (repaired) Repair(disk);
      for (const char* name : {"one", "two"}) Make(disk, name);
      EXPECT_EQ(Listed(disk), (Names{"one", "precious", "two", "zero"}));
      EXPECT_FALSE(Verify(disk).clean());  // what the tail was about may be missing
      std::set<uint64_t> numbers;
      for (const auto& [name, number] : Numbers(disk)) numbers.insert(number);
      EXPECT_EQ(numbers.size(), 4u);
    }
  }
}

// The tail stayed: it tells that this pack is not the one that it was written for.
TEST_F(TwoHistories, ThePackOfACopyInThePlaceOfItsOwnIsDamage) {
  for (const int theirs : {1, 2, 3}) {
    for (const size_t size : {size_t{10}, size_t{2000}}) {
      for (const bool known : {false, true}) {
        SCOPED_TRACE(std::to_string(theirs) + " of " + std::to_string(size) +
                     (known ? ", in the catalogue" : ""));
        MemFs disk;
        Make(disk, "zero");
        auto other = disk.Clone();
        for (const char* name : {"a1", "a2"}) Make(disk, name, Noise(7, 10));
        if (known) {
          EXPECT_EQ(Listed(disk).size(), 3u);
        }
        Names all = {"zero"};
        for (int i = 0; i < theirs; ++i) {
          all.push_back("b" + std::to_string(i));
          Make(*other, all.back(), Noise(8, size));
        }
        CopyPack(*other, disk, Open(disk)->manifest().packs.back().id);
        EXPECT_FALSE(Verify(disk).clean());
        Repair(disk);
        EXPECT_FALSE(Verify(disk).clean());
        Make(disk, "after");
        all.push_back("after");
        std::ranges::sort(all);
        const auto there = Numbers(disk);
        for (const std::string& name : all) EXPECT_EQ(there.count(name), 1u) << name;
        EXPECT_FALSE(Verify(disk).clean());
      }
    }
  }
}

// A collection replaced the bytes that the pack had here, not those that it has there.
TEST_F(TwoHistories, WhatACopyPutIntoAPackIsNotReplacedWithIt) {
  for (const bool longer : {false, true}) {
    SCOPED_TRACE(longer ? "behind the end" : "instead of what was there");
    MemFs disk;
    for (const char* name : {"zero", "gone"}) Make(disk, name);
    auto other = disk.Clone();
    const PackId pack = Open(disk)->manifest().packs.back().id;
    if (longer) {
      auto store = Open(*other);
      Must(DropCheckpoints(*store, {"gone"}));
    }
    ClosePack(disk);
    if (!longer) {
      auto store = Open(*other);
      Must(DropCheckpoints(*store, {"gone"}));
    }
    Make(*other, "precious", Noise(5, 30'000));
    CopyPack(*other, disk, pack);

    EXPECT_FALSE(Verify(disk).clean());
    auto collected = [&] {
      auto store = Open(disk);
      return CollectGarbage(*store, {.everything = true});
    };
    EXPECT_FALSE(collected().ok());
    EXPECT_FALSE(TakeBack(disk).empty());
    const Names listed = Listed(disk);
    EXPECT_EQ(std::ranges::count(listed, "precious"), 1);
    EXPECT_TRUE(collected().ok());
    EXPECT_EQ(Listed(disk), listed);
    EXPECT_TRUE(Verify(disk).clean());
  }
}

}  // namespace
}  // namespace belay::test
