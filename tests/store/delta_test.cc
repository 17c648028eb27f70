// Objects that are stored as what they differ by from an earlier one.

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

#define ASSERT_OK(expression)                              \
  do {                                                     \
    auto&& ok_result = (expression);                       \
    ASSERT_TRUE(ok_result.ok()) << ok_result.error().what; \
  } while (false)

// The text after so many edits of a few bytes.
std::string Text(int edits, uint64_t seed = 1, size_t length = 6000) {
  std::string text = SourceText(seed, length);
  for (int i = 1; i <= edits; ++i)
    text.replace(static_cast<size_t>(i) * 97 % (length - 20), 12,
                 "edit " + std::to_string(1000 + i) + "; ");
  return text;
}
ObjectId IdOf(const std::string& text) { return Sha256::Of(AsBytes(text)); }
Files Of(int edits) {
  return {{"a", Text(edits)}, {"dir/b", Noise(2, 500)}, {"dir/c", Noise(3, 500)}};
}

class DeltaTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    store_.reset();
    store_ = Must(world_.Open());
  }
  // "v<n>" is n edits, made from n - 1.
  void Make(int edits) {
    const std::string name = "v" + std::to_string(edits);
    Must(MakeCheckpoint(*store_, name, Of(edits), {},
                        edits == 0 ? Files() : Of(edits - 1)));
    acked_[name] = Of(edits);
  }
  void Drop(std::vector<std::string> names) {
    Must(DropCheckpoints(*store_, names));
    for (const std::string& name : names) acked_.erase(name);
  }
  void ExpectWhole(int line = __builtin_LINE()) {
    Reopen();
    EXPECT_TRUE(Must(ReadAll(*store_)) == acked_) << "line " << line;
    auto report = Must(VerifyStore(*store_, {.read_data = true}));
    for (const std::string& d : report.damage) ADD_FAILURE() << line << ": " << d;
  }
  RecordAt Find(const ObjectKey& key) { return Must(store_->Find(key))->record; }
  CodecId CodecOf(const std::string& text) {
    return Find({ObjectType::kBlob, IdOf(text)}).header.codec;
  }
  uint32_t ChainOf(const std::string& text) {
    auto found = Must(store_->Find({ObjectType::kBlob, IdOf(text)}));
    return found->record.header.chain;
  }
  // Puts one content, alone in its batch.
  CodecId Put(const std::string& text, const std::string& base) {
    auto writer = Must(store_->Begin());
    EXPECT_EQ(Must(writer->PutContent(AsBytes(text), IdOf(base))), IdOf(text));
    Must(writer->Commit());
    EXPECT_EQ(AsText(Must(store_->ReadContentBytes(IdOf(text), 1 << 20))), text);
    return CodecOf(text);
  }
  void FlipAt(const PackId& pack, uint64_t offset) {
    Fd file = Must(disk_.Open(store_->packs_dir(), PackFile::FileName(pack),
                              OpenMode::ReadWrite()));
    std::byte b[1];
    Must(ReadExact(disk_, file, offset, b));
    b[0] ^= std::byte{16};
    Must(WriteFull(disk_, file, offset, b));
  }
  uint64_t Garbage() { return Must(MeasureUsage(*store_)).reclaimable; }

  MemFs disk_;
  World world_{disk_};
  std::unique_ptr<Store> store_;
  Checkpoints acked_;
};

TEST_F(DeltaTest, AnEditIsStoredAsWhatItChanged) {
  Make(0);
  uint64_t before = Must(MeasureUsage(*store_)).pack_bytes;
  Make(1);
  uint64_t grown = Must(MeasureUsage(*store_)).pack_bytes - before;
  EXPECT_EQ(CodecOf(Text(0)), CodecId::kZstd);
  EXPECT_EQ(CodecOf(Text(1)), CodecId::kDelta);
  EXPECT_LT(grown, 1000u);
  ExpectWhole();
}

TEST_F(DeltaTest, ADirectoryToo) {
  Tree tree;
  for (int i = 0; i < 12; ++i) {
    TreeEntry e;
    e.name = "file" + std::to_string(100 + i);
    e.id = IdOf(e.name);
    tree.entries.push_back(e);
  }
  auto writer = Must(store_->Begin());
  EXPECT_NE(Must(writer->PutTree(tree)), ObjectId());
  Must(writer->Commit());
  Tree changed = tree;
  changed.entries[5].id = IdOf("other");
  writer = Must(store_->Begin());
  const ObjectId second = Must(writer->PutTree(changed, tree));
  Must(writer->Commit());
  const RecordAt record = Find({ObjectType::kTree, second});
  EXPECT_EQ(record.header.codec, CodecId::kDelta);
  EXPECT_LT(record.header.stored_length, 80u);
  EXPECT_EQ(Must(store_->GetTree(second)), changed);
}

TEST_F(DeltaTest, AChainEndsInTime) {
  std::vector<uint32_t> chains;
  for (int i = 0; i <= 20; ++i) {
    Make(i);
    chains.push_back(ChainOf(Text(i)));
    EXPECT_LE(chains.back(), kMaxDeltaChain);
  }
  EXPECT_EQ(chains[8], 8u);
  EXPECT_EQ(chains[9], 0u);
  EXPECT_EQ(chains[18], 0u);
  EXPECT_EQ(chains[20], 2u);
  ExpectWhole();
}

TEST_F(DeltaTest, WhatHasLittleInCommonIsStoredWhole) {
  EXPECT_EQ(Put(Text(0), "nothing"), CodecId::kZstd);  // of what nobody has
  EXPECT_EQ(Put(SourceText(77, 6000), Text(0)), CodecId::kZstd);
  EXPECT_EQ(Put(Noise(8, 5000), Text(0)), CodecId::kRaw);
  EXPECT_EQ(Put("short", Text(0)), CodecId::kRaw);
  EXPECT_EQ(Put(std::string(), Text(0)), CodecId::kRaw);
  EXPECT_EQ(Put(Text(0) + "more", Text(0)), CodecId::kDelta);
  EXPECT_EQ(Put(Text(0).substr(40), Text(0)), CodecId::kDelta);
  EXPECT_EQ(Put(Text(3), Text(3)), CodecId::kZstd);  // of itself
}

TEST_F(DeltaTest, LongObjectsToo) {
  const std::string base = Noise(5, 900'000);
  EXPECT_EQ(Put(base, ""), CodecId::kRaw);
  std::string edited = base;
  edited.replace(1000, 5, "hello");
  edited.erase(700'000, 3);
  EXPECT_EQ(Put(edited, base), CodecId::kDelta);
  EXPECT_LT(Find({ObjectType::kBlob, IdOf(edited)}).header.stored_length, 1000u);
  // A node of more than kMaxDelta is stored whole, whatever it was.
  Bytes huge(kMaxDelta + 1);
  auto writer = Must(store_->Begin());
  const ObjectId first = Must(writer->PutObject(ObjectType::kNode, huge));
  Must(writer->Commit());
  huge.back() = std::byte{1};
  writer = Must(store_->Begin());
  const ObjectId second = Must(writer->PutObject(ObjectType::kNode, huge, first));
  const ObjectId third =
      Must(writer->PutObject(ObjectType::kNode, Bytes(kMaxDelta), first));
  Must(writer->Commit());
  EXPECT_EQ(Find({ObjectType::kNode, second}).header.codec, CodecId::kZstd);
  EXPECT_EQ(Find({ObjectType::kNode, third}).header.codec, CodecId::kZstd);
}

TEST_F(DeltaTest, ABaseThatIsNotKnownToBeFlushedIsNotTaken) {
  Make(0);
  Reopen();
  auto writer = Must(store_->Begin());
  // Without a tail nobody knows how far the pack is flushed: found, not relied on.
  {
    Fd tail =
        Must(disk_.Open(store_->dir(), Name::Literal("tail"), OpenMode::ReadWrite()));
    Must(WriteFull(disk_, tail, 0, Bytes(kTailSize)));
  }
  Must(store_->Refresh());
  auto found = Must(store_->Find({ObjectType::kBlob, IdOf(Text(0))}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pack->flushed, 0u);
  Must(writer->PutContent(AsBytes(Text(1)), IdOf(Text(0))));
  Must(writer->Commit());
  Reopen();
  EXPECT_EQ(CodecOf(Text(1)), CodecId::kZstd);
}

TEST_F(DeltaTest, ADamagedBaseIsNotTaken) {
  Make(0);
  const RecordAt record = Find({ObjectType::kBlob, IdOf(Text(0))});
  FlipAt(store_->open_pack(), record.offset + kRecordHeaderSize + 100);
  Reopen();
  EXPECT_EQ(Put(Text(1), Text(0)), CodecId::kZstd);
  FlipAt(store_->open_pack(), record.offset + 20);  // its header
  EXPECT_EQ(Put(Text(2), Text(0)), CodecId::kZstd);
}

TEST_F(DeltaTest, ABaseInAnotherPackIsNotTaken) {
  Make(0);
  {
    HeldLock lock =
        Must(store_->locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    Must(Appender(*store_).SealOpenPack());
  }
  Make(1);
  EXPECT_EQ(CodecOf(Text(1)), CodecId::kZstd);
  Make(2);
  EXPECT_EQ(CodecOf(Text(2)), CodecId::kDelta);
  ExpectWhole();
}

TEST_F(DeltaTest, WhenThePackIsSealedMeanwhileTheBatchIsMadeWhole) {
  Make(0);
  Make(1);
  auto writer = Must(store_->Begin());
  Checkpoint c;
  c.state = Must(PutFiles(*writer, Of(2), Of(1)));
  c.id = IdFor("v2");
  c.name = "v2";
  writer->Add(ToRecord(c));
  {
    World other(disk_, 5);
    auto store = Must(other.Open());
    HeldLock lock =
        Must(store->locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    Must(Appender(*store).SealOpenPack());
  }
  Must(writer->Commit());
  acked_["v2"] = Of(2);
  EXPECT_EQ(CodecOf(Text(2)), CodecId::kZstd);
  EXPECT_EQ(store_->manifest().packs.size(), 2u);
  ExpectWhole();
}

TEST_F(DeltaTest, WhenItsOwnBatchFillsThePackItIsMadeWhole) {
  Make(0);
  world_.options.pack_target = Must(MeasureUsage(*store_)).pack_bytes + 200;
  Reopen();
  Make(1);
  EXPECT_EQ(CodecOf(Text(1)), CodecId::kZstd);
  EXPECT_EQ(store_->manifest().packs.size(), 2u);
  world_.options.pack_target = StoreOptions().pack_target;
  ExpectWhole();
}

TEST_F(DeltaTest, BatchesAheadOfTheLastOneHaveDeltasToo) {
  Files first, second;
  for (uint64_t i = 0; i < 20; ++i) {
    first["f" + std::to_string(i)] = Text(0, 100 + i);
    second["f" + std::to_string(i)] = Text(1, 100 + i);
  }
  Must(MakeCheckpoint(*store_, "first", first));
  world_.options.batch_target = 600;
  Reopen();
  Must(MakeCheckpoint(*store_, "second", second, {}, first));
  Reopen();
  for (const auto& [path, text] : second) EXPECT_EQ(CodecOf(text), CodecId::kDelta);
  acked_ = {{"first", first}, {"second", second}};
  ExpectWhole();
}

TEST_F(DeltaTest, APackOfAnOlderVersionIsNotAppendedTo) {
  Make(0);
  const PackId old = store_->open_pack();
  {
    Fd file = Must(disk_.Open(store_->packs_dir(), PackFile::FileName(old),
                              OpenMode::ReadWrite()));
    PackHeader header = Must(PackFile::ReadHeader(disk_, file));
    EXPECT_EQ(header.version, 2u);
    header.version = 1;
    Must(WriteFull(disk_, file, 0, Encode(header)));
    Bytes manifest =
        Must(ReadSmallFile(disk_, store_->dir(), Name::Literal("manifest"), 4096));
    std::string text(AsText(manifest));
    text.resize(text.find("check "));
    text.replace(text.find("store 2"), 7, "store 1");
    text += "check " + IdOf(text).hex() + "\n";
    Must(ReplaceFile(disk_, store_->dir(), Name::Literal("manifest"), AsBytes(text)));
  }
  ExpectWhole();
  Make(1);
  Make(2);
  EXPECT_EQ(CodecOf(Text(1)), CodecId::kZstd);
  EXPECT_EQ(CodecOf(Text(2)), CodecId::kDelta);
  EXPECT_NE(store_->open_pack(), old);
  Bytes manifest =
      Must(ReadSmallFile(disk_, store_->dir(), Name::Literal("manifest"), 4096));
  EXPECT_TRUE(AsText(manifest).starts_with("belay store 2\n"));
  ExpectWhole();
}

// --- collection ----------------------------------------------------------------------

TEST_F(DeltaTest, CollectingKeepsDeltasWhoseBaseStays) {
  for (int i = 0; i < 5; ++i) Make(i);
  Must(MakeCheckpoint(*store_, "gone", {{"x", Noise(9, 20'000)}}));
  Drop({"gone"});
  auto report = Must(CollectGarbage(*store_, {}));
  EXPECT_TRUE(report.generation_changed);
  ExpectWhole();
  for (int i = 1; i < 5; ++i) EXPECT_EQ(ChainOf(Text(i)), static_cast<uint32_t>(i));
}

TEST_F(DeltaTest, WhatAWantedDeltaIsMadeFromIsNoGarbage) {
  for (int i = 0; i < 3; ++i) Make(i);
  EXPECT_EQ(Garbage(), 0u);
  Drop({"v0", "v1"});
  const uint64_t blobs = Find({ObjectType::kBlob, IdOf(Text(0))}).header.total_length();
  EXPECT_LT(Garbage(), blobs);
  auto usage = Must(MeasureUsage(*store_));
  EXPECT_EQ(usage.wanted + usage.reclaimable + usage.overhead, usage.pack_bytes);
  EXPECT_EQ(Must(CollectGarbage(*store_, {.dry_run = true})).reclaimable, Garbage());
  ExpectWhole();
}

TEST_F(DeltaTest, CollectingEverythingTakesUnwantedBasesAway) {
  for (int i = 0; i < 6; ++i) Make(i);
  Drop({"v0", "v1", "v3"});
  Must(CollectGarbage(*store_, {.everything = true}));
  ExpectWhole();
  for (int gone : {0, 1, 3})
    EXPECT_FALSE(Must(store_->Find({ObjectType::kBlob, IdOf(Text(gone))}))) << gone;
  EXPECT_EQ(ChainOf(Text(2)), 0u);
  EXPECT_EQ(ChainOf(Text(4)), 0u);
  EXPECT_EQ(ChainOf(Text(5)), 1u);
  EXPECT_EQ(Garbage(), 0u);
  EXPECT_FALSE(Must(CollectGarbage(*store_, {.everything = true})).generation_changed);
}

TEST_F(DeltaTest, APurgedBaseIsErasedAndWhatWasMadeFromItStays) {
  for (int i = 0; i < 3; ++i) Make(i);
  Drop({"v0"});
  {
    auto writer = Must(store_->Begin());
    writer->Add(MakePurge(IdFor("purge"), 1, {{ObjectType::kBlob, IdOf(Text(0))}}, ""));
    Must(writer->Commit());
  }
  Must(CollectGarbage(*store_, {.everything = true}));
  ExpectWhole();
  EXPECT_EQ(store_->Get({ObjectType::kBlob, IdOf(Text(0))}).error().code,
            Errc::kPurged);
}

TEST_F(DeltaTest, CollectingIntoSeveralPacksSeparatesNoDeltaFromItsBase) {
  Files files;
  for (uint64_t i = 0; i < 12; ++i) files["f" + std::to_string(i)] = Noise(i, 3000);
  Must(MakeCheckpoint(*store_, "first", files));
  acked_["first"] = files;
  Files before = files;
  for (auto& [path, text] : files) text.replace(100, 4, "edit");
  Must(MakeCheckpoint(*store_, "second", files, {}, before));
  acked_["second"] = files;
  Must(MakeCheckpoint(*store_, "gone", {{"x", Noise(99, 20'000)}}));
  Drop({"gone"});
  world_.options.pack_target = 16'000;
  Reopen();
  Must(CollectGarbage(*store_, {.everything = true}));
  EXPECT_GT(store_->manifest().packs.size(), 2u);
  ExpectWhole();
}

TEST_F(DeltaTest, CollectingSeveralPacksIntoOneKeepsChainsShort) {
  // In the second pack the first text is stored again, at the end of a chain.
  for (int i = 0; i <= 8; ++i) Put(Text(i), Text(i - 1));
  {
    HeldLock lock =
        Must(store_->locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    Must(Appender(*store_).SealOpenPack());
  }
  Make(8);  // found in the first pack
  Files files = {{"a", Text(8)}};
  for (int i = 9; i < 20; ++i) {
    Files before = files;
    files["a"] = Text(i);
    Must(MakeCheckpoint(*store_, "w" + std::to_string(i), files, {}, before));
    acked_["w" + std::to_string(i)] = files;
  }
  Must(CollectGarbage(*store_, {.everything = true}));
  ExpectWhole();
  for (int i = 8; i < 20; ++i) EXPECT_LE(ChainOf(Text(i)), kMaxDeltaChain);
}

// --- damage --------------------------------------------------------------------------

TEST_F(DeltaTest, ADamagedBaseNamesEveryCheckpointThatDependsOnIt) {
  for (int i = 0; i < 4; ++i) Make(i);
  Must(MakeCheckpoint(*store_, "other", {{"x", "y"}}));
  Drop({"v0"});
  const RecordAt record = Find({ObjectType::kBlob, IdOf(Text(0))});
  // Its frame can no longer be read.
  FlipAt(store_->open_pack(), record.offset + kRecordHeaderSize);
  Reopen();
  auto report = Must(VerifyStore(*store_, {.read_data = true}));
  EXPECT_FALSE(report.clean());
  std::map<std::string, std::vector<std::string>> hit;
  for (const HitCheckpoint& h : report.hit)
    hit[h.checkpoint.name.value_or("?")] = h.paths;
  const std::vector<std::string> paths = {"a"};
  EXPECT_EQ(hit, (std::map<std::string, std::vector<std::string>>{
                     {"v1", paths}, {"v2", paths}, {"v3", paths}}));
  EXPECT_EQ(report.lost_objects.size(), 3u);
  EXPECT_EQ(store_->ReadContentBytes(IdOf(Text(2)), 1 << 20).error().code,
            Errc::kCorrupt);
  EXPECT_EQ(CollectGarbage(*store_, {.everything = true}).error().code, Errc::kCorrupt);
}

// --- packs that nobody of ours wrote -------------------------------------------------

class HostileDelta : public DeltaTest {
 protected:
  void SetUp() override {
    DeltaTest::SetUp();
    base_ = Noise(1, 400);
    raw_ = base_;
    raw_.replace(50, 4, "edit");
    Make(0);
  }
  // A record of `header` in a batch of its own; where it is.
  uint64_t Add(RecordHeader header, ByteSpan stored) {
    PreparedBatch batch;
    header.stored_length = static_cast<uint32_t>(stored.size());
    batch.AddObject(header, stored);
    batch.Seal();
    return Must(Appender(*store_).Append(batch, true)).offset + kBatchHeaderSize;
  }
  uint64_t AddWhole(const std::string& text, ObjectType type = ObjectType::kBlob) {
    RecordHeader h;
    h.type = type;
    h.id = IdOf(text);
    h.raw_length = static_cast<uint32_t>(text.size());
    return Add(h, AsBytes(text));
  }
  RecordHeader Header(const std::string& text) {
    RecordHeader h;
    h.codec = CodecId::kDelta;
    h.chain = 1;
    h.id = IdOf(text);
    h.raw_length = static_cast<uint32_t>(text.size());
    return h;
  }
  Bytes Stored(uint64_t base, const std::string& raw, const std::string& from) {
    Bytes stored = EncodeDeltaBase(base);
    Codec codec;
    EXPECT_TRUE(codec.EncodeDelta(AsBytes(raw), AsBytes(from), 1 << 20, stored));
    return stored;
  }
  uint64_t End() { return Must(Must(store_->Pack(store_->open_pack()))->file->Size()); }
  // Refused as damage by whoever reads it; nobody crashes or hands out anything.
  void ExpectRefused(ObjectType type, const ObjectId& id) {
    Reopen();
    auto read = store_->Get({type, id});
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, Errc::kCorrupt) << read.error().what;
    EXPECT_FALSE(Must(VerifyStore(*store_, {.read_data = true})).clean());
    (void)CollectGarbage(*store_, {.everything = true});
    EXPECT_TRUE(Must(ReadAll(*store_)) == acked_);
  }
  std::string base_, raw_;
};

TEST_F(HostileDelta, AGoodOneIsRead) {
  const uint64_t base = AddWhole(base_);
  Add(Header(raw_), Stored(base, raw_, base_));
  EXPECT_EQ(AsText(Must(store_->Get({ObjectType::kBlob, IdOf(raw_)}))), raw_);
}
TEST_F(HostileDelta, OfItselfIsRefused) {
  Add(Header(raw_), Stored(End() + kBatchHeaderSize, raw_, base_));
  ExpectRefused(ObjectType::kBlob, IdOf(raw_));
}
TEST_F(HostileDelta, OfALaterRecordIsRefused) {
  const size_t length = Stored(End() + 1000, raw_, base_).size();
  const uint64_t later = End() + kBatchHeaderSize + kRecordHeaderSize + length +
                         kBatchTrailerSize + kBatchHeaderSize;
  Add(Header(raw_), Stored(later, raw_, base_));
  EXPECT_EQ(AddWhole(base_), later);
  ExpectRefused(ObjectType::kBlob, IdOf(raw_));
}
TEST_F(HostileDelta, OfAPlaceWithoutARecordIsRefused) {
  for (uint64_t where :
       {uint64_t{1}, uint64_t{kRecordHeaderSize}, uint64_t{1} << 60, ~uint64_t{0}}) {
    const uint64_t base = AddWhole(base_);
    std::string raw = raw_ + std::to_string(where);
    Add(Header(raw), Stored(base + where, raw, base_));
    ExpectRefused(ObjectType::kBlob, IdOf(raw));
  }
}
TEST_F(HostileDelta, OfAnotherTypeIsRefused) {
  const uint64_t base = AddWhole(base_, ObjectType::kNode);
  Add(Header(raw_), Stored(base, raw_, base_));
  ExpectRefused(ObjectType::kBlob, IdOf(raw_));
}
TEST_F(HostileDelta, OfATypeThatIsNoneIsRefused) {
  const uint64_t base = AddWhole(base_, ObjectType::kChunks);
  RecordHeader h = Header(raw_);
  h.type = ObjectType::kChunks;
  Add(h, Stored(base, raw_, base_));
  ExpectRefused(ObjectType::kChunks, IdOf(raw_));
}
TEST_F(HostileDelta, InAChainThatIsTooLongIsRefused) {
  std::string text = Noise(1, 4000);
  uint64_t at = AddWhole(text);
  for (uint32_t i = 1; i <= kMaxDeltaChain + 1; ++i) {
    std::string next = text;
    next.replace(i * 10, 4, "edit");
    RecordHeader h = Header(next);
    h.chain = static_cast<uint8_t>(std::min(i, kMaxDeltaChain));
    at = Add(h, Stored(at, next, text));
    text = next;
    if (i <= kMaxDeltaChain) {
      EXPECT_TRUE(store_->Get({ObjectType::kBlob, IdOf(text)}).ok()) << i;
    }
  }
  ExpectRefused(ObjectType::kBlob, IdOf(text));
}
TEST_F(HostileDelta, ThatMiscountsItsChainIsRefused) {
  for (uint8_t lie : {uint8_t{2}, uint8_t{8}}) {
    RecordHeader h = Header(raw_ + std::to_string(lie));
    h.chain = lie;
    Add(h, Stored(AddWhole(base_), raw_ + std::to_string(lie), base_));
    ExpectRefused(ObjectType::kBlob, h.id);
  }
}
TEST_F(HostileDelta, ThatLiesAboutItsLengthIsRefused) {
  RecordHeader h = Header(raw_);
  for (uint32_t lie : {399u, 401u, 100'000u, 1u << 20}) {
    h.id = IdOf(std::to_string(lie));
    h.raw_length = lie;
    const uint64_t base = AddWhole(base_);
    Add(h, Stored(base, raw_, base_));
    ExpectRefused(ObjectType::kBlob, h.id);
  }
}
TEST_F(HostileDelta, ThatWouldBecomeTooLongIsRefused) {
  const std::string zeros(kMaxDelta + 1, '\0');
  const uint64_t base = AddWhole(base_, ObjectType::kNode);
  RecordHeader h = Header(zeros);
  h.type = ObjectType::kNode;
  Add(h, Stored(base, zeros, base_));
  ExpectRefused(ObjectType::kNode, h.id);
}
TEST_F(HostileDelta, OfWhatIsTooLongIsRefused) {
  const std::string zeros(kMaxDelta + 1, '\0');
  Bytes stored;
  Codec codec;
  RecordHeader big = Header(zeros);
  big.type = ObjectType::kNode;
  big.codec = codec.Encode(AsBytes(zeros), stored);
  big.chain = 0;
  const uint64_t base = Add(big, stored);
  RecordHeader h = Header(raw_);
  h.type = ObjectType::kNode;
  Add(h, Stored(base, raw_, base_));
  ExpectRefused(ObjectType::kNode, h.id);
}
TEST_F(HostileDelta, WithOtherContentIsRefused) {
  const uint64_t base = AddWhole(base_);
  RecordHeader h = Header(raw_);
  h.id = IdOf("something else");
  Add(h, Stored(base, raw_, base_));
  ExpectRefused(ObjectType::kBlob, h.id);
}
TEST_F(HostileDelta, WithoutAFrameIsRefused) {
  Add(Header(raw_), EncodeDeltaBase(AddWhole(base_)));
  ExpectRefused(ObjectType::kBlob, IdOf(raw_));
  Add(Header(raw_ + "x"), {});
  ExpectRefused(ObjectType::kBlob, IdOf(raw_ + "x"));
}

// --- at random -----------------------------------------------------------------------

// Edits, hints that are right, old or nonsense, drops, collections and new processes,
// against plain maps.
TEST(DeltaModel, RandomEditsDropsAndCollectionsGiveBackWhatWasPut) {
  const uint64_t seed = TestSeed(11);
  const int rounds = RunEverything() ? 60 : 6;
  uint64_t deltas = 0;
  for (int round = 0; round < rounds; ++round) {
    SeededRandom random(seed * 1000 + static_cast<uint64_t>(round));
    MemFs disk;
    World world(disk, seed + static_cast<uint64_t>(round));
    world.options.pack_target = 20'000 + random.Below(100'000);
    world.options.batch_target = 2'000 + random.Below(20'000);
    auto store = Must(world.Open());
    std::vector<Files> versions = {{}};
    for (uint64_t i = 0; i < 6; ++i)
      versions[0][(i % 2 ? "d/f" : "g") + std::to_string(i)] =
          i % 3 ? SourceText(random.U64(), 200 + random.Below(6000))
                : Noise(random.U64(), 100 + random.Below(2000));
    Checkpoints model;
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE("BELAY_SEED=" + std::to_string(seed) + " round " +
                   std::to_string(round) + " step " + std::to_string(step));
      const uint64_t what = random.Below(20);
      if (what < 14) {
        Files before = versions[random.Below(3) == 0 ? random.Below(versions.size())
                                                     : versions.size() - 1];
        Files files = before;
        for (auto& [path, text] : files) {
          if (random.Below(3) != 0) continue;
          const size_t at = random.Below(text.size() + 1);
          text.replace(at, random.Below(60), Noise(random.U64(), random.Below(60)));
        }
        if (random.Below(8) == 0) before = versions[random.Below(versions.size())];
        const std::string name = "c" + std::to_string(step);
        Must(MakeCheckpoint(*store, name, files, {}, before));
        versions.push_back(files);
        model[name] = files;
      } else if (what < 17 && !model.empty()) {
        auto victim = std::next(model.begin(),
                                static_cast<ptrdiff_t>(random.Below(model.size())));
        Must(DropCheckpoints(*store, {victim->first}));
        model.erase(victim);
      } else if (what < 19) {
        Must(CollectGarbage(*store, {.everything = random.Below(2) == 0}));
      } else {
        store.reset();
        store = Must(world.Open());
      }
      if (step % 10 == 9) {
        ASSERT_TRUE(Must(ReadAll(*store)) == model);
      }
    }
    store = Must(world.Open());
    ASSERT_TRUE(Must(ReadAll(*store)) == model);
    auto report = Must(VerifyStore(*store, {.read_data = true}));
    ASSERT_TRUE(report.clean()) << report.damage.front();
    auto inventory = Must(TakeInventory(*store));
    for (const PackInventory& pack : inventory.packs)
      for (const InventoryItem& item : pack.items) deltas += item.base != 0 ? 1 : 0;
    auto usage = Must(MeasureUsage(*store));
    EXPECT_EQ(usage.wanted + usage.reclaimable + usage.overhead, usage.pack_bytes);
  }
  EXPECT_GT(deltas, 20u * static_cast<uint64_t>(rounds));
}

}  // namespace
}  // namespace belay::test
