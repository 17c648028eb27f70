#include "store/pack_index.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "base/random.h"
#include "store/pack_format.h"

namespace belay::test {
namespace {

// The slot a key is looked for first, as docs/format.md says.
uint64_t FirstSlot(const ObjectKey& key, unsigned log2) {
  uint64_t k = LoadU64(key.id.bytes.data()) ^ static_cast<uint64_t>(key.type);
  return (k * 0x9e3779b97f4a7c15) >> (64 - log2);
}

class PackIndexTest : public ::testing::Test {
 protected:
  PackIndexTest() : id_(random_.NewId()) {
    auto root = disk_.OpenDir(AbsPath::Literal("/"));
    BELAY_CHECK(root.ok());
    dir_ = std::move(*root);
  }
  ObjectKey Key() {
    ObjectKey key;
    random_.Fill(key.id.bytes);
    return key;
  }
  ObjectKey KeyInSlot(uint64_t slot, unsigned log2 = 8) {
    for (;;) {
      ObjectKey key = Key();
      if (FirstSlot(key, log2) == slot) return key;
    }
  }
  // More than has room behind the header.
  std::vector<IndexEntry> Many(uint64_t first) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = 0; i < 300; ++i) entries.push_back({Key(), first + i});
    return entries;
  }
  // Adds one batch of `entries` that ends at `covered`.
  Status Add(const std::vector<IndexEntry>& entries, uint64_t from, uint64_t covered) {
    all_.insert(all_.end(), entries.begin(), entries.end());
    return PackIndex::Write(
        disk_, dir_, id_, entries, from, covered,
        [&](uint64_t first, uint64_t end) -> Result<std::vector<IndexEntry>> {
          ++(first == kPackHeaderSize ? rebuilt_ : filled_);
          std::vector<IndexEntry> in;
          for (const IndexEntry& e : all_)
            if (e.offset >= first && e.offset < end) in.push_back(e);
          return in;
        });
  }
  PackIndex Load() {
    auto index = PackIndex::Load(disk_, dir_, id_);
    BELAY_CHECK(index.ok());
    return std::move(*index);
  }
  bool Finds(const PackIndex& index, const IndexEntry& e) {
    auto found = index.Candidates(e.key);
    return found.ok() && std::count(found->begin(), found->end(), e.offset) == 1;
  }
  void ExpectAll() {
    PackIndex index = Load();
    for (const IndexEntry& e : all_) EXPECT_TRUE(Finds(index, e)) << e.offset;
  }
  Bytes Read() {
    auto bytes = ReadSmallFile(disk_, dir_, PackIndex::FileName(id_), 64 << 20);
    BELAY_CHECK(bytes.ok());
    return *bytes;
  }
  void Put(ByteSpan bytes) {
    BELAY_CHECK(ReplaceFile(disk_, dir_, PackIndex::FileName(id_), bytes).ok());
  }

  MemFs disk_;
  SeededRandom random_{5};
  PackId id_;
  Fd dir_;
  std::vector<IndexEntry> all_;
  int rebuilt_ = 0;
  int filled_ = 0;  // only what was missing was scanned
};

TEST_F(PackIndexTest, AbsentIsEmptyAndCoversNothing) {
  PackIndex index = Load();
  EXPECT_EQ(index.covered(), kPackHeaderSize);
  EXPECT_TRUE(index.Candidates(Key())->empty());
}

TEST_F(PackIndexTest, FindsWhatWasAddedAndNothingElse) {
  ASSERT_TRUE(Add({{Key(), 100}, {Key(), 200}}, kPackHeaderSize, 1000).ok());
  ASSERT_TRUE(Add({{Key(), 1100}}, 1000, 2000).ok());
  ExpectAll();
  PackIndex index = Load();
  EXPECT_EQ(index.covered(), 2000u);
  EXPECT_TRUE(index.Candidates(Key())->empty());
  ObjectKey other = all_[0].key;
  other.type = ObjectType::kTree;
  EXPECT_TRUE(index.Candidates(other)->empty());
  EXPECT_EQ(rebuilt_, 0);
}

TEST_F(PackIndexTest, HasTheBytesTheFormatSays) {
  ObjectKey key = KeyInSlot(17);
  ASSERT_TRUE(Add({{key, 0x1234}}, kPackHeaderSize, 5000).ok());
  Bytes bytes = Read();
  ASSERT_EQ(bytes.size(), 4096u + 256 * 16);
  EXPECT_EQ(AsText(ByteSpan(bytes).first(8)), "BELAYI2\n");
  EXPECT_EQ(ToHex(ByteSpan(bytes).subspan(8, 16)), ToHex(id_.span()));
  EXPECT_EQ(LoadU32(&bytes[24]), 8u);
  EXPECT_EQ(LoadU64(&bytes[32]), 1u);
  EXPECT_EQ(LoadU64(&bytes[40]), 5000u);
  EXPECT_EQ(LoadU64(&bytes[56]), Check64(ByteSpan(bytes).first(56)));
  EXPECT_EQ(LoadU32(&bytes[28]), 0u);
  EXPECT_EQ(LoadU64(&bytes[4096 + 17 * 16]), LoadU64(key.id.bytes.data()) ^ 1);
  EXPECT_EQ(LoadU64(&bytes[4096 + 17 * 16 + 8]), 0x1234u);

  // What comes later stands behind the header first.
  ObjectKey tree = KeyInSlot(30);
  tree.type = ObjectType::kTree;
  ASSERT_TRUE(Add({{tree, 0x5678}}, 5000, 6000).ok());
  bytes = Read();
  ASSERT_EQ(bytes.size(), 4096u + 256 * 16);
  EXPECT_EQ(LoadU32(&bytes[28]), 1u);
  EXPECT_EQ(LoadU64(&bytes[32]), 1u);
  EXPECT_EQ(LoadU64(&bytes[40]), 6000u);
  EXPECT_EQ(LoadU64(&bytes[56]), Check64(ByteSpan(bytes).first(56)));
  EXPECT_EQ(LoadU64(&bytes[64]), LoadU64(tree.id.bytes.data()) ^ 3);
  EXPECT_EQ(LoadU64(&bytes[72]), 0x5678u);
}

TEST_F(PackIndexTest, ProbesAroundTheEndOfTheTable) {
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; i < 40; ++i) entries.push_back({KeyInSlot(250), 100 + i});
  ASSERT_TRUE(Add(entries, kPackHeaderSize, 1000).ok());
  ExpectAll();
  std::vector<IndexEntry> more;
  for (uint64_t i = 0; i < 20; ++i) more.push_back({KeyInSlot(255), 1100 + i});
  ASSERT_TRUE(Add(more, 1000, 2000).ok());
  ExpectAll();
  EXPECT_EQ(rebuilt_, 0);
}

TEST_F(PackIndexTest, KeepsTwoPlacesOfOneKey) {
  ObjectKey key = Key();
  ASSERT_TRUE(Add({{key, 100}}, kPackHeaderSize, 1000).ok());
  ASSERT_TRUE(Add({{key, 1100}}, 1000, 2000).ok());
  EXPECT_EQ(Load().Candidates(key)->size(), 2u);
}

TEST_F(PackIndexTest, GrowsBeforeItIsFull) {
  uint64_t at = kPackHeaderSize;
  for (int batch = 0; batch < 60; ++batch) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = 0; i < 17; ++i) entries.push_back({Key(), at + i});
    ASSERT_TRUE(Add(entries, at, at + 1000).ok());
    at += 1000;
    Bytes bytes = Read();
    uint64_t slots = uint64_t{1} << LoadU32(&bytes[24]);
    EXPECT_EQ(LoadU32(&bytes[28]) + LoadU64(&bytes[32]), all_.size());
    EXPECT_LE(LoadU64(&bytes[32]), slots - slots / 8);
    EXPECT_EQ(bytes.size(), 4096 + slots * 16);
  }
  EXPECT_GT(LoadU32(&Read()[24]), 9u);
  EXPECT_EQ(rebuilt_, 0);  // from the old table
  ExpectAll();
}

TEST_F(PackIndexTest, FillsAGapByAScan) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  all_.push_back({Key(), 1100});  // written by somebody who was killed before the index
  ASSERT_TRUE(Add({{Key(), 2100}}, 2000, 3000).ok());
  EXPECT_EQ(rebuilt_, 0);
  EXPECT_EQ(filled_, 1);
  EXPECT_EQ(Load().covered(), 3000u);
  ExpectAll();
}

TEST_F(PackIndexTest, NewEntriesStandBehindTheHeaderUntilThereIsNoRoom) {
  uint64_t at = kPackHeaderSize;
  uint64_t in_table = 0;
  for (int batch = 0; batch < 100; ++batch) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = 0; i < 13; ++i) entries.push_back({Key(), at + i});
    ASSERT_TRUE(Add(entries, at, at + 1000).ok());
    at += 1000;
    Bytes bytes = Read();
    const uint64_t recent = LoadU32(&bytes[28]);
    EXPECT_LE(recent, 252u);
    EXPECT_EQ(recent + LoadU64(&bytes[32]), all_.size());
    EXPECT_TRUE(recent == 0 || LoadU64(&bytes[32]) == in_table) << batch;
    in_table = LoadU64(&bytes[32]);
    EXPECT_EQ(Load().covered(), at);
    ExpectAll();
  }
  EXPECT_GT(in_table, 1000u);
  EXPECT_EQ(rebuilt_, 0);
  EXPECT_EQ(filled_, 0);
}

TEST_F(PackIndexTest, ALargeTableTakesItsNewsOneByOne) {
  std::vector<IndexEntry> many;
  for (uint64_t i = 0; i < 80'000; ++i) many.push_back({Key(), 100 + i});
  ASSERT_TRUE(Add(many, kPackHeaderSize, 100'000).ok());
  const size_t size = Read().size();
  ASSERT_GT(size, 253u * 4096);
  uint64_t at = 100'000;
  for (int batch = 0; batch < 4; ++batch, at += 1000) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = 0; i < 100; ++i) entries.push_back({Key(), at + i});
    ASSERT_TRUE(Add(entries, at, at + 1000).ok());
  }
  EXPECT_EQ(Read().size(), size);
  EXPECT_EQ(LoadU64(&Read()[32]), 80'300u);
  ExpectAll();
  EXPECT_EQ(rebuilt_, 0);
}

// The batches it covers were cut off, and others came to stand in their place.
TEST_F(PackIndexTest, IsBuiltAnewWhenItCoversWhatIsOnlyWrittenNow) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  ASSERT_TRUE(Add({{Key(), 1100}, {Key(), 1200}}, 1000, 5000).ok());
  all_.resize(1);
  ASSERT_TRUE(Add({{Key(), 1150}}, 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  EXPECT_EQ(Load().covered(), 2000u);
  EXPECT_EQ(LoadU64(&Read()[32]), 2u);
  ExpectAll();
}

TEST_F(PackIndexTest, FindsTheSameFromATableInMemory) {
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; i < 200; ++i) entries.push_back({Key(), 100 + i});
  ASSERT_TRUE(Add(entries, kPackHeaderSize, 1000).ok());
  PackIndex index = Load();
  for (int round = 0; round < 3; ++round) {
    for (const IndexEntry& e : all_) EXPECT_TRUE(Finds(index, e)) << e.offset;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(index.Candidates(Key())->empty());
  }
}

TEST_F(PackIndexTest, IsBuiltByAScanWhenItIsLost) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  ASSERT_TRUE(disk_.Unlink(dir_, PackIndex::FileName(id_)).ok());
  ASSERT_TRUE(Add({{Key(), 1100}}, 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
}

TEST_F(PackIndexTest, ADamagedHeaderIsAsGoodAsNone) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  const Bytes good = Read();
  for (size_t at = 0; at < 64; ++at) {
    Bytes bad = good;
    bad[at] ^= std::byte{4};
    Put(bad);
    PackIndex index = Load();
    EXPECT_EQ(index.covered(), kPackHeaderSize) << at;
    EXPECT_TRUE(index.Candidates(all_[0].key)->empty()) << at;
  }
  ASSERT_TRUE(Add({{Key(), 1100}}, 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
}

TEST_F(PackIndexTest, AnIndexOfAnotherPackIsAsGoodAsNone) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  Bytes bytes = Read();
  id_ = PackId(random_.NewId());
  Put(bytes);
  EXPECT_EQ(Load().covered(), kPackHeaderSize);
}

TEST_F(PackIndexTest, ATableCutShortMissesAndIsBuiltAnew) {
  ASSERT_TRUE(Add({{KeyInSlot(200), 100}}, kPackHeaderSize, 1000).ok());
  Bytes bytes = Read();
  bytes.resize(4096 + 16 * 100);
  Put(bytes);
  EXPECT_TRUE(Load().Candidates(all_[0].key)->empty());
  ASSERT_TRUE(Add(Many(1100), 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
}

TEST_F(PackIndexTest, ATableWithoutAnEmptySlotEndsTheSearch) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  Bytes bytes = Read();
  // Large enough for what comes, by the one entry its header counts.
  StoreU32(&bytes[24], 10);
  StoreU64(&bytes[56], Check64(ByteSpan(bytes).first(56)));
  bytes.resize(4096 + 1024 * 16);
  for (size_t slot = 0; slot < 1024; ++slot) StoreU64(&bytes[4096 + slot * 16 + 8], 7);
  Put(bytes);
  EXPECT_TRUE(Load().Candidates(Key())->empty());
  ASSERT_TRUE(Add(Many(1100), 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
}

TEST_F(PackIndexTest, AStaleCoverIsMadeUpForInMemory) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  PackIndex index = Load();
  IndexEntry fresh{Key(), 1100};
  index.AddInMemory({fresh}, 1000, 2000);
  index.AddInMemory({fresh}, 1000, 2000);  // twice is once
  EXPECT_EQ(index.entries_in_memory(), 1u);
  EXPECT_EQ(index.covered(), 2000u);
  EXPECT_TRUE(Finds(index, fresh));
  EXPECT_TRUE(Finds(index, all_[0]));
}

TEST_F(PackIndexTest, ATemporaryLeftBehindIsInNobodysWay) {
  auto temp =
      disk_.Open(dir_, Name::Literal(id_.text() + ".idx.new"), OpenMode::CreateNew());
  ASSERT_TRUE(temp.ok());
  ASSERT_TRUE(WriteFull(disk_, *temp, 0, Bytes(100'000)).ok());
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  ExpectAll();
  EXPECT_EQ(Read().size(), 4096u + 256 * 16);
}

}  // namespace
}  // namespace belay::test
