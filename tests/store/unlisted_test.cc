// Packs that the manifest does not name: garbage goes, everything else stays, is said,
// and what the log lacks comes back out of it.

#include "store/unlisted.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/mem_fs.h"
#include "crash/hook_fs.h"
#include "store/catalog.h"
#include "store/found_again.h"
#include "store/gc.h"
#include "store/lost_records.h"
#include "store/mend.h"
#include "store/repair.h"
#include "store/store_files.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/read_counter.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class UnlistedTest : public ::testing::Test {
 protected:
  void Anew() {
    worlds_.clear();
    disk_ = std::make_unique<MemFs>();
  }
  World& NewWorld() {
    static uint64_t seed = 700;  // ids must not repeat
    worlds_.push_back(std::make_unique<World>(*disk_, ++seed));
    return *worlds_.back();
  }
  std::unique_ptr<Store> Open() { return Must(NewWorld().Open()); }
  Fd Home() { return Must(disk_->OpenDir(AbsPath::Literal("/store"))); }
  Fd Packs() { return Must(disk_->OpenDir(AbsPath::Literal("/store/packs"))); }
  Bytes Read(const Fd& dir, const Name& name) {
    return Must(ReadSmallFile(*disk_, dir, name, 1 << 24));
  }
  void Make(const std::string& name) {
    auto store = Open();
    Must(MakeCheckpoint(*store, name, {{"a", name}, {"b", SourceText(7, 400)}}));
  }
  // Every pack is closed: the next checkpoint begins another.
  void ClosePacks(const std::function<void()>& before = [] {}) {
    Make("closing");
    auto store = Open();
    Must(DropCheckpoints(*store, {"closing"}));
    before();
    Must(CollectGarbage(*store, {.everything = true}));
  }
  VerifyReport Verify() {
    auto store = Open();
    return Must(VerifyStore(*store, {.read_data = true}));
  }
  std::set<std::string> Names() {
    auto store = Open();
    std::set<std::string> names;
    for (const auto& [name, files] : Must(ReadAll(*store))) names.insert(name);
    return names;
  }
  std::vector<std::string> TakeBack() {
    auto store = Must(NewWorld().Open(Store::Mode::kWriteExisting));
    std::vector<std::string> done;
    Must(TakeBackRecords(*store, done));
    return done;
  }
  std::set<std::string> PackFiles() {
    std::set<std::string> names;
    for (const DirEntry& e : Must(disk_->List(Packs())))
      if (e.name.ends_with(".pack")) names.insert(e.name);
    return names;
  }
  void ExpectNumbersOnce() {
    auto store = Open();
    LogView log;
    Must(ReadOn(*store, log));
    std::set<uint64_t> numbers;
    for (const LogRecord& r : log.records) EXPECT_TRUE(numbers.insert(r.seq).second);
  }

  std::unique_ptr<MemFs> disk_ = std::make_unique<MemFs>();
  std::vector<std::unique_ptr<World>> worlds_;
};

TEST_F(UnlistedTest, AnOlderManifestLosesNothing) {
  for (const char* also :
       {"nothing", "a checkpoint", "a collection that ended early"}) {
    SCOPED_TRACE(also);
    Anew();
    Make("one");
    ClosePacks();
    const Bytes older = Read(Home(), Name::Literal("manifest"));
    Make("two");
    Make("three");
    if (also == std::string("a collection that ended early")) {
      // It wrote down what it would replace, and replaced nothing.
      auto store = Open();
      const Manifest now = store->manifest();
      Must(WriteReplaced(*disk_, Home(), now.generation + 1,
                         {{now.packs.back().id, {}}}));
    }
    Must(ReplaceFile(*disk_, Home(), Name::Literal("manifest"), older));
    std::set<std::string> all = {"one", "two", "three"};
    if (also == std::string("a checkpoint")) {
      Make("meanwhile");
      all.insert("meanwhile");
    }

    const VerifyReport report = Verify();
    ASSERT_FALSE(report.clean());
    std::set<std::string> hit;
    for (const HitCheckpoint& h : report.hit) hit.insert(*h.checkpoint.name);
    EXPECT_EQ(hit, (std::set<std::string>{"two", "three"}));
    {
      auto store = Open();
      auto collected = CollectGarbage(*store, {.everything = true});
      ASSERT_FALSE(collected.ok());
      EXPECT_EQ(collected.error().code, Errc::kCorrupt);
    }
    if (also == std::string("nothing")) {
      auto store = Open();
      EXPECT_FALSE(Must(Must(Catalog::Open(*store))->LogIsWhole()));
    }
    EXPECT_EQ(TakeBack().size(), 2u);
    EXPECT_EQ(Names(), all);
    ExpectNumbersOnce();
    for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
    EXPECT_TRUE(TakeBack().empty());
    // And now the pack is nothing but a leftover.
    const size_t packs = PackFiles().size();
    ClosePacks();
    EXPECT_LT(PackFiles().size(), packs);
    EXPECT_EQ(Names(), all);
  }
}

// Much of what comes back is written before the batch that counts, and nothing of it is
// known to be flushed meanwhile.
TEST_F(UnlistedTest, WhatComesBackIsReadAFewTimesHoweverMuchItIs) {
  constexpr int kCount = 40;
  Make("one");
  ClosePacks();
  const Bytes older = Read(Home(), Name::Literal("manifest"));
  {
    auto store = Open();
    for (uint64_t i = 0; i < kCount; ++i) {
      const std::string name = "big " + std::to_string(i);
      Must(MakeCheckpoint(*store, name, {{"big", Noise(900 + i, 16384)}}));
    }
  }
  Must(ReplaceFile(*disk_, Home(), Name::Literal("manifest"), older));
  uint64_t size = 0;
  for (const std::string& name : PackFiles())
    size += Must(disk_->StatAt(Packs(), Name::Literal(name))).size;

  ReadCounter counted(*disk_);
  World world(counted, 699);
  world.options.batch_target = 64 << 10;
  {
    auto store = Must(world.Open(Store::Mode::kWriteExisting));
    std::vector<std::string> done;
    Must(TakeBackRecords(*store, done));
    EXPECT_EQ(done.size(), size_t{kCount});
  }
  EXPECT_LT(counted.bytes, 20 * size);
  EXPECT_EQ(Names().size(), size_t{kCount} + 1);
  EXPECT_TRUE(Verify().clean());
}

TEST_F(UnlistedTest, WhatACollectionReplacedGoes) {
  Make("gone");
  Make("one");
  {
    auto store = Open();
    Must(DropCheckpoints(*store, {"gone"}));
  }
  std::map<std::string, Bytes> before;
  ClosePacks([&] {
    for (const std::string& name : PackFiles())
      before[name] = Read(Packs(), Name::Literal(name));
  });
  // As if it had been killed before it took them away.
  for (const auto& [name, bytes] : before)
    Must(ReplaceFile(*disk_, Packs(), Name::Literal(name), bytes));
  EXPECT_TRUE(Verify().clean());
  EXPECT_TRUE(TakeBack().empty());
  auto store = Open();
  EXPECT_GT(Must(CollectGarbage(*store, {})).leftovers_removed, 0u);
  store.reset();
  for (const auto& [name, bytes] : before) EXPECT_FALSE(PackFiles().contains(name));
  EXPECT_EQ(Names(), (std::set<std::string>{"one"}));
}

// A copy of the tail from before collections: the pack that it is about was replaced,
// and nothing is missing.
TEST_F(UnlistedTest, AnOlderTailMissesNothingThatWasReplaced) {
  for (const int rounds : {1, 2, 5}) {
    SCOPED_TRACE(std::to_string(rounds) + " collections");
    Anew();
    Make("one");
    Make("two");
    const Bytes older = Read(Home(), TailName());
    std::set<std::string> all = {"one", "two"};
    for (int i = 0; i < rounds; ++i) {
      ClosePacks();
      const std::string name = "after " + std::to_string(i);
      Make(name);
      all.insert(name);
    }
    auto put = [&](Tail tail) {
      const auto bytes = Encode(tail);
      Must(ReplaceFile(*disk_, Home(), TailName(), Bytes(bytes.begin(), bytes.end())));
    };
    Tail tail = *DecodeTail(older);
    put(tail);
    for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
    EXPECT_FALSE(Open()->TailOfUnlisted());
    {
      auto store = Open();
      EXPECT_TRUE(Must(Must(Catalog::Open(*store))->LogIsWhole()));
      EXPECT_EQ(Must(GlanceAtPacks(*store)).size(), 0u);
    }
    // A pack that went on elsewhere was not replaced here.
    if (rounds > 1) {
      tail.flushed += 1000;
      put(tail);
      EXPECT_FALSE(Verify().clean());
      tail.flushed -= 1000;
      put(tail);
    }
    Make("last");
    all.insert("last");
    ClosePacks();
    for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
    EXPECT_EQ(Names(), all);
    ExpectNumbersOnce();
  }
}

// Killed when everything but the tail was in place; the next one when `replaced` was,
// and the manifest was not.
TEST_F(UnlistedTest, TwoCollectionsThatWereKilledMissNothing) {
  for (const bool listed : {false, true}) {
    SCOPED_TRACE(listed ? "the second came to its manifest" : "it did not");
    Anew();
    for (const char* name : {"one", "gone", "two"}) Make(name);
    ClosePacks();
    Make("gone too");
    {
      auto store = Open();
      Must(DropCheckpoints(*store, {"gone", "gone too"}));
    }
    // Nothing is done any more, from the call on or behind it.
    auto killed = [&](FsCall call, const std::string& name, bool behind,
                      GcOptions options) {
      bool dead = false;
      auto is_it = [&](FsCall now, const std::string& what) {
        return now == call && what == name;
      };
      HookFs dying(
          *disk_,
          [&](FsCall now, const std::string& what) -> Status {
            dead |= !behind && is_it(now, what);
            return dead ? Status(Error(Errc::kIo, EIO, "killed")) : Ok();
          },
          [&](FsCall now, const std::string& what) { dead |= is_it(now, what); });
      static uint64_t seed = 9100;
      World world(dying, ++seed);
      auto store = Must(world.Open(Store::Mode::kWriteExisting));
      (void)CollectGarbage(*store, options);
      EXPECT_TRUE(dead);
    };
    const GcOptions everything{.everything = true};
    GcOptions first = everything;
    first.room = 0;  // of the smallest pack, the open one
    killed(FsCall::kUnlink, "tail", /*behind=*/false, first);
    {
      auto store = Open();
      const auto tail = Must(store->AnyTail());
      ASSERT_TRUE(tail);  // of a pack that is gone
      ASSERT_FALSE(store->manifest().Find(tail->pack));
    }
    EXPECT_TRUE(Verify().clean());
    // No batch since: the tail is what it was.
    killed(FsCall::kRename, "manifest", /*behind=*/listed, everything);
    for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
    EXPECT_EQ(Names(), (std::set<std::string>{"one", "two"}));
    Make("three");
    for (const std::string& d : Verify().damage) ADD_FAILURE() << d;
    ExpectNumbersOnce();
  }
}

// It has something else to put right, and is killed at every call in turn.
TEST_F(UnlistedTest, ARepairThatIsKilledMissesNothingThatWasReplaced) {
  for (const char* name : {"one", "two"}) Make(name);
  ClosePacks();
  Make("gone");
  {
    auto store = Open();
    Must(DropCheckpoints(*store, {"gone"}));
  }
  bool dead = false;
  {
    HookFs dying(*disk_, [&](FsCall now, const std::string& what) -> Status {
      dead |= now == FsCall::kUnlink && what == "tail";
      return dead ? Status(Error(Errc::kIo, EIO, "killed")) : Ok();
    });
    World world(dying, 9300);
    auto store = Must(world.Open(Store::Mode::kWriteExisting));
    // Of the smallest pack, the open one: its tail stays.
    (void)CollectGarbage(*store, {.everything = true, .room = 0});
    ASSERT_TRUE(dead);
  }
  Manifest manifest = Open()->manifest();
  ASSERT_FALSE(manifest.Find(Must(Open()->AnyTail())->pack));
  for (Manifest::Pack& p : manifest.packs)
    if (*p.sealed > 1000) *p.sealed -= 40;  // the batch behind it is whole
  Must(
      ReplaceFile(*disk_, Home(), Name::Literal("manifest"), EncodeManifest(manifest)));
  const auto start = disk_->Clone();
  for (int at = 1; dead; ++at) {
    disk_ = start->Clone();
    dead = false;
    int calls = 0;
    HookFs dying(*disk_, [&](FsCall, const std::string&) -> Status {
      dead |= ++calls == at;
      return dead ? Status(Error(Errc::kIo, EIO, "killed")) : Ok();
    });
    static uint64_t seed = 9400;
    for (Fs* fs : {static_cast<Fs*>(&dying), static_cast<Fs*>(disk_.get())}) {
      World world(*fs, ++seed);
      (void)RepairStore(*fs, world.clock, world.random, world.dir, world.options);
    }
    EXPECT_TRUE(Verify().clean()) << at;
    EXPECT_EQ(Names(), (std::set<std::string>{"one", "two"}));
  }
}

// Nobody knew what was in it when the loss was accepted.
TEST_F(UnlistedTest, APackThatIsPutBackBringsItsRecordsAlong) {
  for (bool erased : {false, true}) {
    SCOPED_TRACE(erased);
    Anew();
    Make("one");
    ClosePacks();
    const auto before = PackFiles();
    Make("two");
    std::string lost;
    for (const std::string& name : PackFiles())
      if (!before.contains(name)) lost = name;
    const Bytes bytes = Read(Packs(), Name::Literal(lost));
    std::optional<LogRecord> record;
    {
      auto store = Open();
      LogView log;
      Must(ReadOn(*store, log));
      record = log.records.back();
    }
    Must(disk_->Unlink(Packs(), Name::Literal(lost)));
    {
      World& world = NewWorld();
      Must(RepairStore(*disk_, world.clock, world.random, world.dir, world.options,
                       {.without_packs = true}));
      auto store = Must(NewWorld().Open(Store::Mode::kWriteExisting));
      MendReport mended;
      Must(MendStore(*store, {}, /*accept_loss=*/true, mended));
    }
    EXPECT_TRUE(Verify().clean());
    if (erased) {
      auto store = Open();
      record->seq = 0;
      auto writer = Must(store->Begin());
      writer->Add(MakePurge(RecordId(store->random().NewId()), 9,
                            {{ObjectType::kLog, Sha256::Of(EncodeLogRecord(*record))}},
                            "on purpose",
                            /*erased=*/true));
      Must(writer->Commit());
    }
    Must(ReplaceFile(*disk_, Packs(), Name::Literal(lost), bytes));
    EXPECT_EQ(Verify().clean(), erased);
    EXPECT_EQ(TakeBack().size(), erased ? 0u : 1u);
    EXPECT_TRUE(Verify().clean());
    ExpectNumbersOnce();
    ClosePacks();
    EXPECT_FALSE(PackFiles().contains(lost));
    EXPECT_EQ(Names(), erased ? (std::set<std::string>{"one"})
                              : (std::set<std::string>{"one", "two"}));
  }
}

TEST_F(UnlistedTest, APackOfAnotherStoreStays) {
  Make("one");
  MemFs other;
  World world(other, 31);
  {
    auto store = Must(world.Open());
    Must(MakeCheckpoint(*store, "other", {{"x", "y"}}));
  }
  Fd others = Must(other.OpenDir(AbsPath::Literal("/store/packs")));
  std::string name;
  for (const DirEntry& e : Must(other.List(others)))
    if (e.name.ends_with(".pack")) name = e.name;
  Must(ReplaceFile(*disk_, Packs(), Name::Literal(name),
                   Must(ReadSmallFile(other, others, Name::Literal(name), 1 << 20))));
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.clean());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("another store"), std::string::npos);
  auto store = Open();
  EXPECT_EQ(Must(CollectGarbage(*store, {.everything = true})).foreign,
            std::vector<std::string>{name});
  EXPECT_TRUE(PackFiles().contains(name));
}

// Nobody here can say what is in it, and it stops nothing.
TEST_F(UnlistedTest, APackOfANewerFormatStays) {
  Make("one");
  PackHeader header;
  header.version = kFormatVersion + 1;
  header.pack = PackId(IdFor("newer"));
  header.store = Open()->manifest().store;
  const auto encoded = Encode(header);
  Bytes bytes(encoded.begin(), encoded.end());
  bytes.resize(1000, std::byte{7});
  const Name name = PackFile::FileName(header.pack);
  Must(ReplaceFile(*disk_, Packs(), name, bytes));
  EXPECT_TRUE(Verify().clean());
  EXPECT_TRUE(TakeBack().empty());
  ClosePacks();
  EXPECT_TRUE(PackFiles().contains(name.bytes()));
  EXPECT_EQ(Names(), (std::set<std::string>{"one"}));
}

TEST_F(UnlistedTest, TheTailMissesItsPackWhenTheManifestIsGone) {
  Make("one");
  ClosePacks();
  const auto before = PackFiles();
  Make("two");
  for (const std::string& name : PackFiles())
    if (!before.contains(name)) {
      Must(disk_->Unlink(Packs(), Name::Literal(name)));
      Must(disk_->Unlink(Packs(),
                         Name::Literal(name.substr(0, name.find('.')) + ".idx")));
    }
  Must(disk_->Unlink(Home(), Name::Literal("manifest")));
  World& world = NewWorld();
  Must(RepairStore(*disk_, world.clock, world.random, world.dir, world.options));
  EXPECT_FALSE(Verify().clean());
  EXPECT_EQ(Names(), (std::set<std::string>{"one"}));
}

TEST_F(UnlistedTest, ARootWithoutARecordIsMissedAndComesBack) {
  for (bool known : {false, true}) {
    SCOPED_TRACE(known);
    Anew();
    const RootId id(IdFor("root"));
    {
      auto store = Open();
      Must(MakeCheckpoint(*store, "one", {{"a", "1"}}, id));
    }
    const VerifyReport report = Verify();
    EXPECT_EQ(report.damage.size(), 1u);
    EXPECT_EQ(report.hit.size(), 1u);
    {
      auto store = Open();
      std::vector<Root> roots;
      if (known) roots.push_back(Root{id, "/home/u/project"});
      std::vector<std::string> done;
      Must(BringBackRoots(*store, roots, done));
      EXPECT_EQ(done.size(), 1u);
      done.clear();
      Must(BringBackRoots(*store, roots, done));
      EXPECT_TRUE(done.empty());
      auto catalog = Must(Catalog::Open(*store));
      const auto listed = Must(catalog->Roots());
      ASSERT_EQ(listed.size(), 1u);
      EXPECT_EQ(listed[0].root.id, id);
      EXPECT_EQ(listed[0].root.path,
                known ? "/home/u/project" : "/belay-lost-root/" + id.text());
    }
    EXPECT_TRUE(Verify().clean());
  }
}

}  // namespace
}  // namespace belay::test
