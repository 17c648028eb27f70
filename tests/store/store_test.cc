#include "store/store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/verify.h"
#include "support/pass_fs.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

#define ASSERT_OK(expression)                              \
  do {                                                     \
    auto&& ok_result = (expression);                       \
    ASSERT_TRUE(ok_result.ok()) << ok_result.error().what; \
  } while (false)

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    store_.reset();
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened.error().what;
    store_ = std::move(*opened);
  }
  Checkpoints All() {
    auto all = ReadAll(*store_);
    EXPECT_TRUE(all.ok()) << all.error().what;
    return all.ok() ? *all : Checkpoints();
  }
  void ExpectClean() {
    auto report = VerifyStore(*store_, {.read_data = true});
    ASSERT_OK(report);
    for (const std::string& d : report->damage) ADD_FAILURE() << d;
  }

  MemFs disk_;
  World world_{disk_};
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, GivesBackWhatWasCommittedAfterReopening) {
  Files files = {{"a.txt", "hello"}, {"dir/b.txt", "world"}, {"dir/deep/c", ""}};
  ASSERT_OK(MakeCheckpoint(*store_, "one", files));
  Reopen();
  EXPECT_EQ(All(), (Checkpoints{{"one", files}}));
  ExpectClean();
}

TEST_F(StoreTest, StoresEqualContentOnceAcrossRoots) {
  std::string text = Noise(1, 50'000);
  RootId one(world_.random.NewId());
  RootId two(world_.random.NewId());
  ASSERT_OK(MakeCheckpoint(*store_, "one", {{"a", text}}, one));
  auto before = store_->fs().StatAt(
      store_->packs_dir(), PackFile::FileName(store_->manifest().packs.at(0).id));
  ASSERT_OK(before);
  Reopen();
  ASSERT_OK(MakeCheckpoint(*store_, "two", {{"b", text}}, two));
  auto after = store_->fs().StatAt(
      store_->packs_dir(), PackFile::FileName(store_->manifest().packs.at(0).id));
  ASSERT_OK(after);
  EXPECT_LT(after->size - before->size, 2000u);
  EXPECT_EQ(All().size(), 2u);
}

TEST_F(StoreTest, CutsLongContentIntoChunksAndSharesThemAfterAnEdit) {
  std::string text = Noise(2, 6 << 20);
  ASSERT_OK(MakeCheckpoint(*store_, "one", {{"big", text}}));
  BatchStats stats;
  text.insert(3 << 20, "an edit in the middle");
  {
    auto writer = store_->Begin();
    ASSERT_OK(writer);
    auto id = (*writer)->PutContent(AsBytes(text));
    ASSERT_OK(id);
    auto published = (*writer)->Commit();
    ASSERT_OK(published);
    stats = published->stats;
    auto back = store_->ReadContentBytes(*id, 1 << 30);
    ASSERT_OK(back);
    EXPECT_TRUE(AsText(*back) == text);
    EXPECT_EQ(*id, Sha256::Of(AsBytes(text)));
  }
  EXPECT_LT(stats.bytes_stored, 3u * 512 * 1024);
  ExpectClean();
}

TEST_F(StoreTest, KeepsMemoryBoundedByWritingAheadOfTheLastBatch) {
  world_.options.batch_target = 64 << 10;
  Reopen();
  Files files;
  for (int i = 0; i < 40; ++i)
    files["f" + std::to_string(i)] = Noise(100 + static_cast<uint64_t>(i), 20'000);
  ASSERT_OK(MakeCheckpoint(*store_, "many", files));
  EXPECT_EQ(All(), (Checkpoints{{"many", files}}));
  ExpectClean();
}

TEST_F(StoreTest, StartsANewPackWhenOneIsFull) {
  world_.options.pack_target = 100 << 10;
  Reopen();
  Checkpoints expected;
  for (int i = 0; i < 12; ++i) {
    Files files = {{"f", Noise(200 + static_cast<uint64_t>(i), 30'000)}};
    std::string name = "n" + std::to_string(i);
    expected[name] = files;
    ASSERT_OK(MakeCheckpoint(*store_, name, files));
  }
  EXPECT_GT(store_->manifest().packs.size(), 3u);
  Reopen();
  EXPECT_EQ(All(), expected);
  ExpectClean();
}

TEST_F(StoreTest, GivesRisingSequenceNumbersAcrossProcessesAndPacks) {
  world_.options.pack_target = 4 << 10;
  Reopen();
  auto other = world_.Open();
  ASSERT_OK(other);
  std::vector<uint64_t> seqs;
  for (int i = 0; i < 20; ++i) {
    Store& store = i % 2 ? *store_ : **other;
    auto writer = store.Begin();
    ASSERT_OK(writer);
    LogRecord record;
    record.id = RecordId(world_.random.NewId());
    (*writer)->Add(record);
    record.id = RecordId(world_.random.NewId());
    (*writer)->Add(record);
    auto published = (*writer)->Commit();
    ASSERT_OK(published);
    seqs.push_back(published->first_seq);
  }
  for (size_t i = 0; i < seqs.size(); ++i) EXPECT_EQ(seqs[i], 1 + 2 * i);
}

TEST_F(StoreTest, CollectsWhatNobodyWants) {
  Files kept = {{"a", Noise(1, 30'000)}, {"shared", Noise(2, 30'000)}};
  Files gone = {{"b", Noise(3, 30'000)}, {"shared", Noise(2, 30'000)}};
  ASSERT_OK(MakeCheckpoint(*store_, "kept", kept));
  ASSERT_OK(MakeCheckpoint(*store_, "gone", gone));
  ASSERT_OK(DropCheckpoints(*store_, {"gone"}));
  EXPECT_EQ(All(), (Checkpoints{{"kept", kept}}));
  auto report = CollectGarbage(*store_, {});
  ASSERT_OK(report);
  EXPECT_GE(report->bytes_before - report->bytes_after, 30'000u);
  EXPECT_EQ(report->records_removed, 2u);  // the checkpoint and its drop
  Reopen();
  EXPECT_EQ(All(), (Checkpoints{{"kept", kept}}));
  ExpectClean();
  // And writing goes on, with numbers that still rise.
  ASSERT_OK(MakeCheckpoint(*store_, "after", gone));
  EXPECT_EQ(All(), (Checkpoints{{"kept", kept}, {"after", gone}}));
}

TEST_F(StoreTest, ReadsOnAfterAnotherProcessCollected) {
  Files kept = {{"a", Noise(1, 30'000)}};
  ASSERT_OK(MakeCheckpoint(*store_, "kept", kept));
  ASSERT_OK(MakeCheckpoint(*store_, "gone", {{"b", Noise(3, 90'000)}}));
  ASSERT_OK(DropCheckpoints(*store_, {"gone"}));
  auto other = world_.Open();
  ASSERT_OK(other);
  auto state = ReadAll(**other);
  ASSERT_OK(state);
  ASSERT_OK(CollectGarbage(*store_, {}));
  auto again = ReadAll(**other);
  ASSERT_OK(again);
  EXPECT_EQ(*again, (Checkpoints{{"kept", kept}}));
  // By id, without looking at the log first: the old packs are gone.
  auto third = world_.Open(Store::Mode::kRead);
  ASSERT_OK(third);
}

TEST_F(StoreTest, PurgedObjectsAreNotDamage) {
  Files files = {{"a", "keep"}, {"secret", Noise(9, 1000)}};
  ASSERT_OK(MakeCheckpoint(*store_, "one", files));
  ObjectId secret = Sha256::Of(AsBytes(files["secret"]));
  {
    auto writer = store_->Begin();
    ASSERT_OK(writer);
    (*writer)->Add(MakePurge(RecordId(world_.random.NewId()), 0,
                             {{ObjectType::kBlob, secret}}, "test"));
    ASSERT_OK((*writer)->Commit());
  }
  ASSERT_OK(CollectGarbage(*store_, {.everything = true}));
  auto content = store_->ReadContentBytes(secret, 10'000);
  ASSERT_FALSE(content.ok());
  EXPECT_EQ(content.error().code, Errc::kPurged);
  ExpectClean();
  // The same content put again afterwards is wanted again.
  ASSERT_OK(MakeCheckpoint(*store_, "two", files));
  ASSERT_OK(CollectGarbage(*store_, {.everything = true}));
  auto back = store_->ReadContentBytes(secret, 10'000);
  ASSERT_OK(back);
}

TEST_F(StoreTest, PutsFromManyThreadsAtOnce) {
  auto writer = store_->Begin();
  ASSERT_OK(writer);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 50; ++i) {
        auto id = (*writer)->PutContent(AsBytes(SourceText(t % 2 * 1000 + i, 3000)));
        EXPECT_TRUE(id.ok());
      }
    });
  for (std::thread& t : threads) t.join();
  auto published = (*writer)->Commit();
  ASSERT_OK(published);
  EXPECT_EQ(published->stats.objects_new, 100u);
  EXPECT_EQ(published->stats.objects_known, 100u);
  ExpectClean();
}

TEST_F(StoreTest, RefusesAStoreOfSomebodyElse) {
  world_.options.uid = 7;
  auto opened = world_.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kRefused);
  EXPECT_NE(opened.error().hint.find("BELAY_HOME"), std::string::npos);
}

TEST_F(StoreTest, RefusesANewerFormat) {
  auto bytes = ReadSmallFile(disk_, store_->dir(), Name::Literal("manifest"), 4096);
  ASSERT_OK(bytes);
  std::string text(AsText(*bytes));
  text.replace(text.find("store 2"), 7, "store 3");
  ASSERT_OK(
      ReplaceFile(disk_, store_->dir(), Name::Literal("manifest"), AsBytes(text)));
  // Its check does not match: that is a flipped bit, which repair can put right.
  auto flipped = world_.Open();
  ASSERT_FALSE(flipped.ok());
  EXPECT_EQ(flipped.error().code, Errc::kCorrupt) << flipped.error().what;
  const size_t check = text.rfind("check ");
  text.replace(check + 6, 64, Sha256::Of(AsBytes(text.substr(0, check))).hex());
  ASSERT_OK(
      ReplaceFile(disk_, store_->dir(), Name::Literal("manifest"), AsBytes(text)));
  auto opened = world_.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kUnsupported);
  EXPECT_NE(opened.error().what.find("newer Belay"), std::string::npos);
}

// Locks that are granted to everybody, as some network file systems do.
class EverybodyLocks : public PassFs {
 public:
  using PassFs::PassFs;
  Result<bool> TryLock(const Fd&, uint64_t, LockMode) override { return true; }
};

TEST(StoreLocksTest, NoStoreIsMadeWhereLocksDoNotExclude) {
  MemFs disk;
  EverybodyLocks fs(disk);
  World world(fs);
  auto made = world.Open();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::kUnsupported);
  EXPECT_NE(made.error().what.find("no working locks"), std::string::npos)
      << made.error().what;
  EXPECT_FALSE(made.error().hint.empty());
  EXPECT_FALSE(world.Open(Store::Mode::kRead).ok());
}

// It was copied there, or the file system is mounted in another way now.
TEST(StoreLocksTest, NobodyWritesToAStoreWhereLocksDoNotExclude) {
  MemFs disk;
  {
    World world(disk);
    ASSERT_OK(world.Open());
  }
  EverybodyLocks fs(disk);
  World world(fs);
  for (Store::Mode mode : {Store::Mode::kWrite, Store::Mode::kWriteExisting}) {
    auto opened = world.Open(mode);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Errc::kUnsupported);
    EXPECT_NE(opened.error().what.find("no working locks"), std::string::npos);
  }
}

TEST_F(StoreTest, WhatIsNoFileUnderTheNameOfTheTailIsMovedAside) {
  const Name tail = Name::Literal("tail");
  int aside = 0;
  for (FileType type :
       {FileType::kDirectory, FileType::kSymlink, FileType::kFifo, FileType::kSocket}) {
    SCOPED_TRACE(FileTypeName(type));
    const std::string name = "one" + std::to_string(aside);
    ASSERT_OK(MakeCheckpoint(*store_, name, {{"a", "1"}}));
    const Fd& dir = store_->dir();
    ASSERT_OK(disk_.Unlink(dir, tail));
    if (type == FileType::kDirectory)
      ASSERT_OK(disk_.MakeDir(dir, tail, 0700));
    else if (type == FileType::kSymlink)
      ASSERT_OK(disk_.Symlink(dir, tail, "/elsewhere"));
    else
      ASSERT_OK(disk_.MakeSpecial(dir, tail, type, 0600));
    Reopen();
    ASSERT_OK(MakeCheckpoint(*store_, name + " more", {{"a", "2"}}));
    auto now = disk_.StatAt(store_->dir(), tail);
    ASSERT_OK(now);
    EXPECT_EQ(now->type, FileType::kRegular);
    ++aside;
    const std::string kept =
        aside == 1 ? "tail.aside" : "tail.aside" + std::to_string(aside);
    auto moved = disk_.StatAt(store_->dir(), Name::Literal(kept));
    ASSERT_OK(moved);
    EXPECT_EQ(moved->type, type);
    Reopen();
    EXPECT_EQ(All().size(), 2U * static_cast<size_t>(aside));
    ExpectClean();
  }
}

TEST_F(StoreTest, MakesEverythingPrivateWhateverTheUmask) {
  ASSERT_OK(MakeCheckpoint(*store_, "one", {{"a", "b"}}));
  auto check = [&](const Fd& dir) {
    auto entries = disk_.List(dir);
    ASSERT_OK(entries);
    for (const DirEntry& e : *entries) {
      auto stat = disk_.StatAt(dir, Name::Literal(e.name));
      ASSERT_OK(stat);
      EXPECT_EQ(stat->mode & 0077, 0u) << e.name;
    }
  };
  check(store_->dir());
  check(store_->packs_dir());
}

TEST_F(StoreTest, TightensADirectoryThatIsOpenToOthers) {
  ASSERT_OK(disk_.SetMode(store_->dir(), 0755));
  Reopen();
  auto stat = disk_.Stat(store_->dir());
  ASSERT_OK(stat);
  EXPECT_EQ(stat->mode, 0700u);
}

TEST_F(StoreTest, IsBusyWhenAnotherHoldsTheLockTooLong) {
  auto held = store_->locks().Acquire(StoreLock::kAppend, LockMode::kExclusive);
  ASSERT_OK(held);
  auto other = world_.Open();
  ASSERT_OK(other);
  auto made = MakeCheckpoint(**other, "one", {{"a", "b"}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::kBusy);
}

TEST(Collect, KeepsAnUnlistedPackWhileSomethingIsDamaged) {
  MemFs disk;
  World world(disk);
  auto store = world.Open();
  ASSERT_OK(store);
  Files kept = {{"a", Noise(1, 30'000)}};
  ASSERT_OK(MakeCheckpoint(**store, "kept", kept));
  ASSERT_OK(MakeCheckpoint(**store, "gone", {{"b", Noise(3, 90'000)}}));
  ASSERT_OK(DropCheckpoints(**store, {"gone"}));
  // An older manifest comes back after a collection: its pack is gone, the new one
  // unnamed.
  const Name name = Name::Literal("manifest");
  auto old = ReadSmallFile(disk, (*store)->dir(), name, 4096);
  ASSERT_OK(old);
  ASSERT_OK(CollectGarbage(**store, {}));
  ASSERT_OK(ReplaceFile(disk, (*store)->dir(), name, *old));

  auto again = world.Open();
  ASSERT_OK(again);
  auto unlisted = UnlistedPacks(**again);
  ASSERT_OK(unlisted);
  EXPECT_EQ(unlisted->size(), 1u);
  auto collected = CollectGarbage(**again, {});
  EXPECT_FALSE(collected.ok());
  ASSERT_OK(UnlistedPacks(**again));
  EXPECT_EQ(UnlistedPacks(**again)->size(), 1u);

  ASSERT_OK(RepairStore(disk, world.clock, world.random, world.dir, world.options,
                        {.take_in = true}));
  auto repaired = world.Open();
  ASSERT_OK(repaired);
  auto all = ReadAll(**repaired);
  ASSERT_OK(all);
  EXPECT_EQ(*all, (Checkpoints{{"kept", kept}}));
}

TEST(Collect, KeepsAnUnlistedPackWhileACopyIsBad) {
  MemFs disk;
  World world(disk);
  auto store = world.Open();
  ASSERT_OK(store);
  Files kept = {{"a", Noise(1, 30'000)}};
  ASSERT_OK(MakeCheckpoint(**store, "kept", kept));
  ASSERT_OK(MakeCheckpoint(**store, "gone", {{"b", Noise(3, 90'000)}}));
  ASSERT_OK(DropCheckpoints(**store, {"gone"}));
  // Killed before it could unlink the old pack, and then a bit of the new one flips.
  const Name old_name = PackFile::FileName((*store)->manifest().packs.at(0).id);
  auto old_pack = ReadSmallFile(disk, (*store)->packs_dir(), old_name, 1 << 20);
  ASSERT_OK(old_pack);
  ASSERT_OK(CollectGarbage(**store, {}));
  ASSERT_OK(ReplaceFile(disk, (*store)->packs_dir(), old_name, *old_pack));
  const Name new_name = PackFile::FileName((*store)->manifest().packs.at(0).id);
  auto new_pack = ReadSmallFile(disk, (*store)->packs_dir(), new_name, 1 << 20);
  ASSERT_OK(new_pack);
  (*new_pack)[5000] ^= std::byte{1};
  ASSERT_OK(ReplaceFile(disk, (*store)->packs_dir(), new_name, *new_pack));

  auto again = world.Open();
  ASSERT_OK(again);
  auto collected = CollectGarbage(**again, {});
  ASSERT_FALSE(collected.ok());
  EXPECT_EQ(collected.error().code, Errc::kCorrupt);
  ASSERT_OK(RepairStore(disk, world.clock, world.random, world.dir, world.options,
                        {.take_in = true}));
  auto repaired = world.Open();
  ASSERT_OK(repaired);
  auto all = ReadAll(**repaired);
  ASSERT_OK(all);
  EXPECT_EQ(*all, (Checkpoints{{"kept", kept}}));
}

TEST(StoreOpen, ReadingAnAbsentStoreCreatesNothing) {
  MemFs disk;
  World world(disk);
  auto opened = world.Open(Store::Mode::kRead);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kNotFound);
  EXPECT_EQ(disk.TreeText(), MemFs().TreeText());
}

TEST(StoreOpen, TouchesNothingOfADirectoryThatIsNoStore) {
  MemFs disk;
  World world(disk);
  auto dir = MakeDirs(disk, world.dir, 0755);
  ASSERT_OK(dir);
  ASSERT_OK(
      ReplaceFile(disk, *dir, Name::Literal("letter.txt"), AsBytes("dear"), 0644));
  ASSERT_OK(disk.MakeDir(*dir, Name::Literal("packs"), 0755));
  const std::string before = disk.TreeText();
  for (Store::Mode mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    auto opened = world.Open(mode);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code,
              mode == Store::Mode::kRead ? Errc::kNotFound : Errc::kRefused);
  }
  auto repaired =
      RepairStore(disk, world.clock, world.random, world.dir, world.options);
  ASSERT_FALSE(repaired.ok());
  EXPECT_EQ(repaired.error().code, Errc::kNotFound);
  EXPECT_EQ(disk.TreeText(), before);
}

TEST(StoreOpen, WhyThereIsNoneIsKnown) {
  MemFs disk;
  World world(disk);
  EXPECT_TRUE(Store::CheckPlace(disk, world.dir).ok());
  EXPECT_TRUE(Store::CheckCanBeMade(disk, world.dir, 1000).ok());
  auto above = MakeDirs(disk, AbsPath::Literal("/above"), 0555);
  ASSERT_OK(above);
  const AbsPath inside = AbsPath::Literal("/above/deep/store");
  EXPECT_TRUE(Store::CheckPlace(disk, inside).ok());
  EXPECT_FALSE(Store::CheckCanBeMade(disk, inside, 1000).ok());
  EXPECT_FALSE(Store::CheckCanBeMade(disk, inside, 1001).ok());
  EXPECT_TRUE(Store::CheckCanBeMade(disk, inside, 0).ok());
  ASSERT_OK(disk.Symlink(*above, Name::Literal("link"), "/mnt/disk"));
  const Status link = Store::CheckPlace(disk, AbsPath::Literal("/above/link/store"));
  ASSERT_FALSE(link.ok());
  EXPECT_NE(link.error().what.find("/mnt/disk"), std::string::npos);
  ASSERT_OK(ReplaceFile(disk, *above, Name::Literal("letter"), AsBytes("dear"), 0644));
  EXPECT_FALSE(Store::CheckPlace(disk, AbsPath::Literal("/above")).ok());

  for (const MemFs::Options& options :
       {MemFs::Options{.read_only = true}, MemFs::Options{.magic = 0x9fa0}}) {
    MemFs other(options);
    EXPECT_FALSE(Store::CheckCanBeMade(other, inside, 0).ok());
  }
}

TEST(StoreOpen, AcceptsAnUnknownFileSystemWhoseLocksExclude) {
  MemFs::Options options;
  options.magic = 0x6969;  // nfs
  MemFs disk(options);
  World world(disk);
  EXPECT_TRUE(world.Open().ok());
}

TEST(StoreOpen, RefusesAFileSystemWithoutLocks) {
  MemFs disk;
  Fault fault = Fault::Errno(1, ENOLCK, /*sticky=*/true);
  fault.only = {FsCall::kTryLock};
  FaultFs fs(disk, fault);
  World world(fs);
  auto opened = world.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kUnsupported);
  EXPECT_NE(opened.error().what.find("no working locks"), std::string::npos);
}

TEST(StoreOpen, SaysWhenTheDiskIsReadOnlyOrFull) {
  MemFs disk;
  World world(disk);
  disk.SetReadOnly(true);
  auto opened = world.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kRefused);
  disk.SetReadOnly(false);
  ASSERT_TRUE(world.Open().ok());
  disk.SetCapacity(disk.used_bytes() + 1000);
  auto store = world.Open();
  ASSERT_TRUE(store.ok());
  auto made = MakeCheckpoint(**store, "one", {{"a", Noise(1, 5000)}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::kNoSpace);
  disk.SetCapacity(UINT64_MAX);
  ASSERT_TRUE(MakeCheckpoint(**store, "one", {{"a", Noise(1, 5000)}}).ok());
}

}  // namespace
}  // namespace belay::test
