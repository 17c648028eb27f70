#include "store/appender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "crash/hook_fs.h"
#include "store/content_stream.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/verify.h"
#include "support/read_counter.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

#define ASSERT_OK(expression)                              \
  do {                                                     \
    auto&& ok_result = (expression);                       \
    ASSERT_TRUE(ok_result.ok()) << ok_result.error().what; \
  } while (false)

Files Content(const std::string& name) {
  uint64_t seed = LoadU64(Sha256::Of(AsBytes(name)).bytes.data());
  // A torn batch is longer than what comes to stand in its place.
  return {{"shared", Noise(1, 2000)},
          {name, Noise(seed, name == "torn" ? 6000 : 1500)}};
}

class AppenderTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  // A new process, with what the last one knew forgotten.
  void Reopen() {
    store_.reset();
    auto opened = world_.Open();
    ASSERT_OK(opened);
    store_ = std::move(*opened);
  }
  void Make(const std::string& name) {
    ASSERT_OK(MakeCheckpoint(*store_, name, Content(name)));
    acked_[name] = Content(name);
  }
  // A process that writes the whole batch of `name` and dies before its flush.
  void DieBeforeFlush(const std::string& name) {
    Fault fault = Fault::PowerCut(1);
    fault.only = {FsCall::kSyncData};
    FaultFs dying(disk_, fault);
    World world(dying, 77);
    auto store = world.Open();
    ASSERT_OK(store);
    ASSERT_FALSE(MakeCheckpoint(**store, name, Content(name)).ok());
    ASSERT_TRUE(dying.fired());
  }
  Checkpoints All() {
    auto all = ReadAll(*store_);
    EXPECT_TRUE(all.ok()) << all.error().what;
    return all.ok() ? *all : Checkpoints();
  }
  std::vector<std::string> Damage() {
    auto report = VerifyStore(*store_, {.read_data = true});
    EXPECT_TRUE(report.ok()) << report.error().what;
    return report.ok() ? report->damage : std::vector<std::string>{"verify failed"};
  }
  void ExpectWhole() {
    Reopen();
    EXPECT_EQ(All(), acked_);
    EXPECT_EQ(Damage(), std::vector<std::string>());
    ExpectRisingNumbers();
  }
  void ExpectRisingNumbers() {
    LogView log;
    ASSERT_OK(ReadOn(*store_, log));
    for (size_t i = 1; i < log.records.size(); ++i)
      EXPECT_LT(log.records[i - 1].seq, log.records[i].seq);
  }

  PackId OpenPackId() { return store_->LoadManifest()->packs.back().id; }
  size_t PackCount() { return store_->LoadManifest()->packs.size(); }
  Name PackName() { return PackFile::FileName(OpenPackId()); }
  Fd OpenFile(const Fd& dir, const Name& name) {
    auto file = disk_.Open(dir, name, OpenMode::ReadWrite());
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }
  uint64_t SizeOf(const Name& name) {
    return disk_.StatAt(store_->packs_dir(), name)->size;
  }
  void Flip(const Fd& dir, const Name& name, uint64_t offset) {
    Fd file = OpenFile(dir, name);
    std::byte b{};
    ASSERT_OK(ReadExact(disk_, file, offset, std::span(&b, 1)));
    b ^= std::byte{0x10};
    ASSERT_OK(WriteFull(disk_, file, offset, ByteSpan(&b, 1)));
  }
  std::vector<BatchHeader> Batches(const PackId& id) {
    std::vector<BatchHeader> batches;
    auto file = PackFile::Open(disk_, store_->packs_dir(), id, store_->manifest().store,
                               OpenMode::Read());
    EXPECT_TRUE(file.ok());
    EXPECT_TRUE(file->ForEachBatch(kPackHeaderSize, *file->Size(),
                                   [&](const BatchHeader& b, bool) -> Status {
                                     batches.push_back(b);
                                     return Ok();
                                   })
                    .ok());
    return batches;
  }
  Bytes TailBytes() {
    auto bytes = ReadSmallFile(disk_, store_->dir(), kTail, 4096);
    EXPECT_TRUE(bytes.ok());
    return bytes.ok() ? *bytes : Bytes();
  }
  void PutTail(ByteSpan bytes) {
    ASSERT_OK(ReplaceFile(disk_, store_->dir(), kTail, bytes));
  }

  const Name kTail = Name::Literal("tail");
  MemFs disk_;
  World world_{disk_};
  std::unique_ptr<Store> store_;
  Checkpoints acked_;
};

// --- the end of the open pack --------------------------------------------------------

TEST_F(AppenderTest, CutsATornEndOff) {
  Make("one");
  uint64_t end = SizeOf(PackName());
  DieBeforeFlush("torn");
  uint64_t size = SizeOf(PackName());
  ASSERT_GT(size, end);
  ASSERT_OK(disk_.Truncate(OpenFile(store_->packs_dir(), PackName()), size - 10));
  Reopen();
  EXPECT_EQ(All(), acked_);
  Make("two");
  EXPECT_EQ(Batches(OpenPackId()).back().offset, end);
  EXPECT_EQ(Batches(OpenPackId()).back().end(), SizeOf(PackName()));
  ExpectWhole();
}

TEST_F(AppenderTest, CutsATornBodyOffThoughItsTrailerIsThere) {
  Make("one");
  uint64_t end = SizeOf(PackName());
  DieBeforeFlush("torn");
  Flip(store_->packs_dir(), PackName(), end + kBatchHeaderSize + 100);
  Reopen();
  EXPECT_EQ(All(), acked_);
  Make("two");
  EXPECT_EQ(Batches(OpenPackId()).back().offset, end);
  ExpectWhole();
}

TEST_F(AppenderTest, CutsABatchWithoutItsTrailerOff) {
  Make("one");
  uint64_t end = SizeOf(PackName());
  DieBeforeFlush("torn");
  Flip(store_->packs_dir(), PackName(), SizeOf(PackName()) - 40);
  Reopen();
  EXPECT_EQ(All(), acked_);
  Make("two");
  EXPECT_EQ(Batches(OpenPackId()).back().offset, end);
  ExpectWhole();
}

TEST_F(AppenderTest, KeepsTheWholeBatchOfAKilledWriter) {
  Make("one");
  DieBeforeFlush("killed");
  Reopen();
  Make("two");
  acked_["killed"] = Content("killed");  // absent or whole; nothing took it away
  disk_.Crash(CrashPolicy::DropUnsynced());
  ExpectWhole();
}

TEST_F(AppenderTest, DoesNotTakeDamageInTheMiddleForATornEnd) {
  for (const char* name : {"one", "two", "three"}) Make(name);
  PackId pack = OpenPackId();
  Name file = PackName();
  uint64_t size = SizeOf(file);
  std::vector<BatchHeader> batches = Batches(pack);
  ASSERT_EQ(batches.size(), 3u);
  ASSERT_OK(disk_.Unlink(store_->dir(), kTail));
  Flip(store_->packs_dir(), file, batches[1].end() - 40);  // the trailer of "two"
  Reopen();
  Make("four");
  EXPECT_EQ(SizeOf(file), size);
  EXPECT_NE(OpenPackId(), pack);
  EXPECT_EQ(store_->LoadManifest()->Find(pack)->sealed, size);
  ASSERT_EQ(Damage().size(), 1u);
  Checkpoints all = All();
  for (const char* name : {"one", "three", "four"}) EXPECT_TRUE(all.contains(name));
  ExpectRisingNumbers();
}

TEST_F(AppenderTest, CutsATornEndOffWithoutATail) {
  Make("one");
  uint64_t end = SizeOf(PackName());
  DieBeforeFlush("torn");
  ASSERT_OK(disk_.Unlink(store_->dir(), kTail));
  Flip(store_->packs_dir(), PackName(), end + 300);
  Reopen();
  Make("two");
  EXPECT_EQ(PackCount(), 1u);
  ExpectWhole();
}

// --- the tail ------------------------------------------------------------------------

TEST_F(AppenderTest, GoesOnWithoutATail) {
  Make("one");
  Make("two");
  uint64_t size = SizeOf(PackName());
  ASSERT_OK(disk_.Unlink(store_->dir(), kTail));
  Reopen();
  Make("three");
  EXPECT_LT(SizeOf(PackName()) - size, 2000u + 2000u);  // "shared" was found
  ExpectWhole();
}

TEST_F(AppenderTest, GoesOnWithAGarbledTail) {
  Make("one");
  PutTail(AsBytes("BELAYTL\nnot a tail"));
  Reopen();
  Make("two");
  ExpectWhole();
}

TEST_F(AppenderTest, GoesOnWithAnOlderTail) {
  Make("one");
  Bytes old = TailBytes();
  Make("two");
  Make("three");
  PutTail(old);
  Reopen();
  EXPECT_EQ(All(), acked_);
  Make("four");
  ExpectWhole();
}

TEST_F(AppenderTest, GoesOnWithTheTailOfAnotherPack) {
  Make("one");
  PutTail(Encode(Tail{PackId(world_.random.NewId()), 70'000, 900}));
  Reopen();
  Make("two");
  ExpectWhole();
}

// --- an open pack that is not what it was --------------------------------------------

TEST_F(AppenderTest, GoesOnInANewPackWhenTheOpenOneIsDeleted) {
  Make("one");
  std::string lost = PackName().bytes();
  ASSERT_OK(disk_.Unlink(store_->packs_dir(), PackName()));
  Reopen();
  acked_.clear();
  Make("two");
  Reopen();
  auto two = ReadAll(*store_);
  ASSERT_OK(two);
  EXPECT_EQ(*two, acked_);
  EXPECT_EQ(Damage(), std::vector<std::string>{lost + " is missing"});
}

TEST_F(AppenderTest, GoesOnInANewPackWhenTheHeaderOfTheOpenOneIsDamaged) {
  Make("one");
  PackId damaged = OpenPackId();
  Flip(store_->packs_dir(), PackName(), 20);
  Reopen();
  Make("two");
  EXPECT_NE(OpenPackId(), damaged);
  EXPECT_TRUE(All().contains("two"));
  ASSERT_GE(Damage().size(), 1u);
  EXPECT_NE(Damage()[0].find(PackFile::FileName(damaged).bytes()), std::string::npos);
}

TEST_F(AppenderTest, GoesOnInANewPackWhenTheOpenOneIsShorterThanItWas) {
  Make("one");
  Make("two");
  PackId cut = OpenPackId();
  ASSERT_OK(disk_.Truncate(OpenFile(store_->packs_dir(), PackName()),
                           SizeOf(PackName()) - 5));
  Reopen();
  Make("three");
  EXPECT_NE(OpenPackId(), cut);
  Checkpoints all = All();
  EXPECT_EQ(all["three"], Content("three"));
  EXPECT_EQ(all["one"], Content("one"));
  ASSERT_GE(Damage().size(), 1u);
  EXPECT_NE(Damage()[0].find("shorter than it was"), std::string::npos);
}

// --- the index -----------------------------------------------------------------------

TEST_F(AppenderTest, ReadsAndWritesWithAnIndexThatIsMissingGarbledOrOld) {
  Make("one");
  Name index = PackIndex::FileName(OpenPackId());
  auto old = ReadSmallFile(disk_, store_->packs_dir(), index, 1 << 20);
  ASSERT_OK(old);
  Make("two");
  enum Kind { kMissing, kGarbled, kOld, kHalf };
  for (Kind kind : {kMissing, kGarbled, kOld, kHalf}) {
    SCOPED_TRACE(kind);
    if (kind == kMissing) ASSERT_OK(disk_.Unlink(store_->packs_dir(), index));
    if (kind == kGarbled)
      ASSERT_OK(
          ReplaceFile(disk_, store_->packs_dir(), index, AsBytes(Noise(5, 9000))));
    if (kind == kOld) ASSERT_OK(ReplaceFile(disk_, store_->packs_dir(), index, *old));
    if (kind == kHalf)
      ASSERT_OK(ReplaceFile(disk_, store_->packs_dir(), index,
                            ByteSpan(*old).first(old->size() / 2)));
    ExpectWhole();
    Make("with index " + std::to_string(kind));
    ExpectWhole();
  }
}

// A power cut may leave the index's header and none of its table. Then every record is
// looked at, once for all that is missing, and by whichever threads are reading.
TEST_F(AppenderTest, TwoThreadsFindWhatTheIndexLost) {
  constexpr size_t kCount = 600;
  Files files;
  for (size_t i = 0; i < kCount; ++i)
    files["f" + std::to_string(i)] = "content " + std::to_string(i);
  ASSERT_OK(MakeCheckpoint(*store_, "many", files));
  const Name index = PackIndex::FileName(OpenPackId());
  auto bytes = ReadSmallFile(disk_, store_->packs_dir(), index, 1 << 20);
  ASSERT_OK(bytes);
  std::fill(bytes->begin() + 4096, bytes->end(), std::byte{0});
  ASSERT_OK(ReplaceFile(disk_, store_->packs_dir(), index, *bytes));
  auto missing_by = [&](Store& store, size_t first, size_t step) {
    size_t missing = 0;
    for (size_t i = first; i < kCount; i += step)
      missing += !store
                      .ReadContentBytes(
                          Sha256::Of(AsBytes(files["f" + std::to_string(i)])), 100)
                      .ok();
    return missing;
  };
  for (int round = 0; round < 10; ++round) {
    Reopen();
    size_t other_missing = 0;
    std::thread other([&] { other_missing = missing_by(*store_, 1, 2); });
    EXPECT_EQ(missing_by(*store_, 0, 2), 0u);
    other.join();
    EXPECT_EQ(other_missing, 0u);
  }
  // The cost of one look at all of them, not of one for each that is missing.
  ReadCounter counted(disk_);
  World world(counted, 78);
  auto store = world.Open();
  ASSERT_OK(store);
  EXPECT_EQ(missing_by(**store, 0, 1), 0u);
  EXPECT_LT(counted.bytes, kCount * SizeOf(PackName()) / 4);
}

// What was stored again behind a damaged copy, and no index has.
// Mutant: one-copy-is-looked-for.
TEST_F(AppenderTest, OfSeveralCopiesTheGoodOneIsFoundWithoutAnIndex) {
  constexpr int kCopies = 3;  // two are looked at in any case, one each way
  const std::string content = Noise(5, 3000);
  for (int i = 0; i < kCopies; ++i) {
    auto writer = store_->Begin();
    ASSERT_OK(writer);
    (*writer)->StoreAnew(true);
    ASSERT_OK((*writer)->PutContent(AsBytes(content)));
    ASSERT_OK((*writer)->Commit());
  }
  // It says that it covers them, and has none: a power cut may leave that.
  const Name index = PackIndex::FileName(OpenPackId());
  auto bytes = ReadSmallFile(disk_, store_->packs_dir(), index, 1 << 20);
  ASSERT_OK(bytes);
  constexpr size_t kIndexHeader = 64;
  std::fill(bytes->begin() + kIndexHeader, bytes->end(), std::byte{0});
  ASSERT_OK(ReplaceFile(disk_, store_->packs_dir(), index, *bytes));
  const Name pack = PackName();
  auto whole = ReadSmallFile(disk_, store_->packs_dir(), pack, 1 << 20);
  ASSERT_OK(whole);
  for (int good = 0; good < kCopies; ++good) {
    Bytes damaged = *whole;
    size_t at = 0;
    for (int copy = 0; copy < kCopies; ++copy) {
      at = AsText(*whole).find(content, at + 1);
      ASSERT_NE(at, std::string_view::npos);
      if (copy != good) damaged[at + 7] ^= std::byte{1};
    }
    ASSERT_OK(ReplaceFile(disk_, store_->packs_dir(), pack, damaged));
    Reopen();
    auto got = store_->ReadContentBytes(Sha256::Of(AsBytes(content)), 1 << 20);
    ASSERT_TRUE(got.ok()) << "copy " << good << " is whole: " << got.error().what;
    EXPECT_EQ(AsText(*got), content);
  }
}

// Whether it was purged only the log tells: that is read once, and then what is new.
TEST_F(AppenderTest, TheLogIsReadOnceForAllThatIsNowhere) {
  constexpr int kCount = 100;
  for (int i = 0; i < kCount; ++i) Make("one of many " + std::to_string(i));
  ReadCounter counted(disk_);
  World world(counted, 79);
  auto store = world.Open();
  ASSERT_OK(store);
  auto is_nowhere = [&](const std::string& content, Errc what) {
    auto got = (*store)->Get({ObjectType::kBlob, Sha256::Of(AsBytes(content))});
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code, what);
  };
  is_nowhere("the first", Errc::kNotFound);
  const uint64_t first = counted.calls;
  for (int i = 0; i < kCount; ++i)
    is_nowhere("nowhere " + std::to_string(i), Errc::kNotFound);
  EXPECT_LT(counted.calls - first, kCount * first / 4);
  // What is purged meanwhile, and by whom, is seen.
  auto writer = store_->Begin();
  ASSERT_OK(writer);
  (*writer)->Add(
      MakePurge(IdFor("purge"), 1,
                {{ObjectType::kBlob, Sha256::Of(AsBytes(std::string("nowhere 7")))}},
                "given up"));
  ASSERT_OK((*writer)->Commit());
  is_nowhere("nowhere 7", Errc::kPurged);
  is_nowhere("nowhere 8", Errc::kNotFound);
}

// --- flushes that fail ---------------------------------------------------------------

// Fails the flushes of packs whose number is in `which`.
class FailingFlush {
 public:
  FailingFlush(Fs& inner, std::vector<int> which)
      : fs(inner, [this, which](FsCall call, const std::string& name) -> Status {
          if (call != FsCall::kSyncData || !name.ends_with(".pack")) return Ok();
          ++calls;
          for (int n : which)
            if (n == calls) return SysError(EIO, "flush");
          return Ok();
        }) {}
  int calls = 0;
  HookFs fs;
};

TEST_F(AppenderTest, AFailedFlushIsNotTriedAgainAndEndsThePack) {
  Make("one");
  PackId pack = OpenPackId();
  uint64_t end = SizeOf(PackName());
  FailingFlush failing(disk_, {1});
  World world(failing.fs, 5);
  auto store = world.Open();
  ASSERT_OK(store);
  auto made = MakeCheckpoint(**store, "lost", Content("lost"));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::kIo);
  EXPECT_EQ(failing.calls, 1);
  EXPECT_EQ(store_->LoadManifest()->Find(pack)->sealed, end);
  EXPECT_EQ(All(), acked_);
  // The same process goes on in another pack.
  ASSERT_OK(MakeCheckpoint(**store, "two", Content("two")));
  acked_["two"] = Content("two");
  EXPECT_NE(OpenPackId(), pack);
  for (const CrashPolicy& policy :
       {CrashPolicy::KeepAll(), CrashPolicy::DropUnsynced(), CrashPolicy::Tear(1)}) {
    auto crashed = disk_.Clone();
    crashed->Crash(policy);
    World after(*crashed);
    auto again = after.Open();
    ASSERT_OK(again);
    auto all = ReadAll(**again);
    ASSERT_OK(all);
    EXPECT_EQ(*all, acked_) << policy.Text();
  }
  ExpectWhole();
}

TEST_F(AppenderTest, AFailedFlushNeverTakesWhatAnotherAcknowledged) {
  Make("one");
  Bytes old = TailBytes();
  Make("two");
  for (int n : {1, 2}) {
    SCOPED_TRACE(n);
    PutTail(old);  // as a power cut leaves it: it says too little
    FailingFlush failing(disk_, {n});
    World world(failing.fs, 5 + static_cast<uint64_t>(n));
    auto store = world.Open();
    ASSERT_OK(store);
    EXPECT_FALSE(MakeCheckpoint(**store, "lost", Content("lost")).ok());
    disk_.Crash(CrashPolicy::DropUnsynced());
    ExpectWhole();
  }
  Make("three");
  ExpectWhole();
}

TEST_F(AppenderTest, AFailedFlushNeverTakesWhatItsOwnProcessAcknowledged) {
  Make("one");
  int flushes = 0;
  // The tail can be read and not written: what it says is old.
  HookFs no_tail(disk_, [&](FsCall call, const std::string& name) -> Status {
    if (call == FsCall::kWrite && name == "tail") return SysError(EIO, "write tail");
    if (call == FsCall::kSyncData && ++flushes == 2) return SysError(EIO, "flush");
    return Ok();
  });
  World world(no_tail, 5);
  auto store = world.Open();
  ASSERT_OK(store);
  ASSERT_OK(MakeCheckpoint(**store, "two", Content("two")));
  acked_["two"] = Content("two");
  EXPECT_FALSE(MakeCheckpoint(**store, "three", Content("three")).ok());
  ExpectWhole();
}

TEST_F(AppenderTest, AFailedFlushOfAFullPackEndsItToo) {
  Make("one");
  PackId pack = OpenPackId();
  uint64_t end = SizeOf(PackName());
  world_.options.pack_target = 1000;
  FailingFlush failing(disk_, {1});
  World world(failing.fs, 5);
  world.options = world_.options;
  auto store = world.Open();
  ASSERT_OK(store);
  EXPECT_FALSE(MakeCheckpoint(**store, "lost", Content("lost")).ok());
  EXPECT_EQ(store_->LoadManifest()->Find(pack)->sealed, end);
  ASSERT_OK(MakeCheckpoint(**store, "two", Content("two")));
  EXPECT_EQ(failing.calls, 2);  // one for each attempt; the full pack only once
  acked_["two"] = Content("two");
  disk_.Crash(CrashPolicy::DropUnsynced());
  ExpectWhole();
}

// --- relying on others ---------------------------------------------------------------

// The first writes its batch; before its flush, which fails, the second puts the same
// content. What the second acknowledges must not lean on what the first loses.
TEST_F(AppenderTest, ReliesOnNothingThatMayStillBeCutOff) {
  for (bool with_tail : {true, false}) {
    SCOPED_TRACE(with_tail);
    if (with_tail) Make("one");
    World second_world(disk_, 8);
    second_world.dir = world_.dir;
    auto second = second_world.Open();
    ASSERT_OK(second);
    std::unique_ptr<BatchWriter> writer;
    Checkpoint c;
    int flushes = 0;
    HookFs failing(disk_, [&](FsCall call, const std::string& name) -> Status {
      if (call != FsCall::kSyncData || !name.ends_with(".pack") || flushes++ > 0)
        return Ok();
      auto begun = (*second)->Begin();
      // Without a tail it must wait for the first to be done.
      EXPECT_EQ(begun.ok(), with_tail);
      if (begun.ok()) {
        writer = std::move(*begun);
        auto state = PutFiles(*writer, Content("same"));
        EXPECT_TRUE(state.ok());
        c.state = *state;
      }
      return SysError(EIO, "flush");
    });
    World first_world(failing, 9);
    first_world.dir = world_.dir;
    auto first = first_world.Open();
    ASSERT_OK(first);
    EXPECT_FALSE(MakeCheckpoint(**first, "lost", Content("same")).ok());
    if (writer) {
      c.id = IdFor("same");
      c.name = "same";
      writer->Add(ToRecord(c));
      ASSERT_OK(writer->Commit());
      acked_["same"] = Content("same");
    }
    ExpectWhole();
    world_.dir = AbsPath::Literal("/other");
    acked_.clear();
    Reopen();
  }
}

TEST_F(AppenderTest, AWriterThatCouldNotWriteCannotCommit) {
  Make("one");
  int writes = 0;
  HookFs full(disk_, [&](FsCall call, const std::string& name) -> Status {
    if (call == FsCall::kWrite && name.ends_with(".pack") && ++writes == 1)
      return SysError(ENOSPC, "write");
    return Ok();
  });
  World world(full, 5);
  world.options.batch_target = 1000;
  auto store = world.Open();
  ASSERT_OK(store);
  auto writer = (*store)->Begin();
  ASSERT_OK(writer);
  EXPECT_FALSE((*writer)->PutContent(AsBytes(Noise(1, 3000))).ok());
  EXPECT_TRUE((*writer)->PutContent(AsBytes(Noise(2, 3000))).ok());
  auto published = (*writer)->Commit();
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Errc::kNoSpace);
  writer->reset();
  ExpectWhole();
}

// Two writers of one process: the flush of the one fails and takes what the other wrote
// ahead. The other must notice before it acknowledges.
TEST_F(AppenderTest, AWriterWhoseBatchesWereCutOffCannotCommit) {
  Make("one");
  int flushes = 0;
  HookFs failing(disk_, [&](FsCall call, const std::string& name) -> Status {
    if (call == FsCall::kSyncData && name.ends_with(".pack") && ++flushes == 1)
      return SysError(EIO, "flush");
    return Ok();
  });
  World world(failing, 5);
  world.options.batch_target = 1000;
  auto store = world.Open();
  ASSERT_OK(store);
  auto large = (*store)->Begin();
  ASSERT_OK(large);
  auto state = PutFiles(**large, Content("large"));
  ASSERT_OK(state);
  auto small = (*store)->Begin();
  ASSERT_OK(small);
  LogRecord record;
  record.id = IdFor("small");
  (*small)->Add(record);
  EXPECT_FALSE((*small)->Commit().ok());
  Checkpoint c;
  c.id = IdFor("large");
  c.name = "large";
  c.state = *state;
  (*large)->Add(ToRecord(c));
  EXPECT_FALSE((*large)->Commit().ok());
  large->reset();
  small->reset();
  ExpectWhole();
  Make("large");
  ExpectWhole();
}

TEST_F(AppenderTest, LetsTheCollectorInOnceCommitted) {
  Make("one");
  auto writer = store_->Begin();
  ASSERT_OK(writer);
  LogRecord record;
  record.id = IdFor("record");
  (*writer)->Add(record);
  ASSERT_OK((*writer)->Commit());
  ASSERT_OK(DropCheckpoints(*store_, {"one"}));
  EXPECT_TRUE(CollectGarbage(*store_, {.everything = true}).ok());
}

// --- reading what is not what it says ------------------------------------------------

TEST_F(AppenderTest, BytesThatDoNotMatchTheirHashAreDamageNotData) {
  Make("one");
  ObjectId id = Sha256::Of(AsBytes(acked_["one"]["one"]));
  auto found = store_->Find({ObjectType::kBlob, id});
  ASSERT_OK(found);
  ASSERT_TRUE(found->has_value());
  ASSERT_EQ((*found)->record.header.codec, CodecId::kRaw);
  Flip(store_->packs_dir(), PackName(),
       (*found)->record.offset + kRecordHeaderSize + 9);
  Reopen();
  auto read = store_->ReadContentBytes(id, 1 << 20);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
}

TEST_F(AppenderTest, AChunkListOfOtherContentIsDamage) {
  std::string content = Noise(3, 3000);
  auto writer = store_->Begin();
  ASSERT_OK(writer);
  auto blob = (*writer)->PutContent(AsBytes(content));
  ASSERT_OK(blob);
  ChunkList list;
  list.total = content.size();
  list.chunks.push_back({*blob, static_cast<uint32_t>(content.size())});
  // Its id is the hash of the list, not of the content it leads to.
  auto forged = (*writer)->PutObject(ObjectType::kChunks, EncodeChunks(list));
  ASSERT_OK(forged);
  ASSERT_OK((*writer)->Commit());
  auto read = store_->ReadContentBytes(*forged, 1 << 20);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
}

TEST_F(AppenderTest, AStreamHandsOutContentInPieces) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{3000}, size_t{9} << 20}) {
    const std::string content = Noise(7, size);
    auto writer = store_->Begin();
    ASSERT_OK(writer);
    auto id = (*writer)->PutStream(
        [at = size_t{0}, &content](std::span<std::byte> out) mutable -> Result<size_t> {
          const size_t part = std::min(out.size(), content.size() - at);
          std::ranges::copy(AsBytes(content).subspan(at, part), out.begin());
          at += part;
          return part;
        });
    ASSERT_OK(id);
    ASSERT_OK((*writer)->Commit());
    auto stream = ContentStream::Open(*store_, *id);
    ASSERT_OK(stream);
    std::string read;
    Bytes some(50'001);
    for (;;) {
      auto got = stream->Read(some);
      ASSERT_OK(got);
      if (*got == 0) break;
      read += AsText(ByteSpan(some).first(*got));
    }
    EXPECT_TRUE(read == content) << size;
    auto pieces = ContentStream::Open(*store_, *id);
    ASSERT_OK(pieces);
    size_t count = 0, total = 0;
    for (;; ++count) {
      auto piece = pieces->Next();
      ASSERT_OK(piece);
      if (!*piece) break;
      EXPECT_LE((*piece)->size(), kMaxBlob);
      total += (*piece)->size();
    }
    EXPECT_EQ(total, size);
    EXPECT_GE(count, std::max<size_t>(1, size / kMaxBlob));
  }
  auto none = ContentStream::Open(*store_, ObjectId());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Errc::kNotFound);
}

// Not one byte of the end, whatever was read before.
TEST_F(AppenderTest, AStreamOfOtherContentEndsInAnError) {
  auto writer = store_->Begin();
  ASSERT_OK(writer);
  ChunkList list;
  for (uint64_t seed : {1, 2, 3}) {
    auto blob = (*writer)->PutContent(AsBytes(Noise(seed, 3000)));
    ASSERT_OK(blob);
    list.chunks.push_back({*blob, 3000});
    list.total += 3000;
  }
  auto forged = (*writer)->PutObject(ObjectType::kChunks, EncodeChunks(list));
  ASSERT_OK(forged);
  ASSERT_OK((*writer)->Commit());
  auto stream = ContentStream::Open(*store_, *forged);
  ASSERT_OK(stream);
  Bytes some(1000);
  size_t total = 0;
  for (;;) {
    auto got = stream->Read(some);
    if (!got.ok()) {
      EXPECT_EQ(got.error().code, Errc::kCorrupt);
      break;
    }
    ASSERT_GT(*got, 0u);
    total += *got;
  }
  EXPECT_LE(total, 6000u);
}

}  // namespace
}  // namespace belay::test
