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
  // Adds one batch of `entries` that ends at `covered`.
  Status Add(const std::vector<IndexEntry>& entries, uint64_t from, uint64_t covered) {
    all_.insert(all_.end(), entries.begin(), entries.end());
    return PackIndex::Write(disk_, dir_, id_, entries, from, covered,
                            [&]() -> Result<std::vector<IndexEntry>> {
                              ++rebuilt_;
                              return all_;
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
  ASSERT_EQ(bytes.size(), 64u + 256 * 16);
  EXPECT_EQ(AsText(ByteSpan(bytes).first(8)), "BELAYIX\n");
  EXPECT_EQ(ToHex(ByteSpan(bytes).subspan(8, 16)), ToHex(id_.span()));
  EXPECT_EQ(LoadU32(&bytes[24]), 8u);
  EXPECT_EQ(LoadU64(&bytes[32]), 1u);
  EXPECT_EQ(LoadU64(&bytes[40]), 5000u);
  EXPECT_EQ(LoadU64(&bytes[56]), Check64(ByteSpan(bytes).first(56)));
  EXPECT_EQ(LoadU64(&bytes[64 + 17 * 16]), LoadU64(key.id.bytes.data()) ^ 1);
  EXPECT_EQ(LoadU64(&bytes[64 + 17 * 16 + 8]), 0x1234u);
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
    EXPECT_EQ(LoadU64(&bytes[32]), all_.size());
    EXPECT_LE(all_.size(), slots - slots / 8);
    EXPECT_EQ(bytes.size(), 64 + slots * 16);
  }
  EXPECT_GE(rebuilt_, 2);
  ExpectAll();
}

TEST_F(PackIndexTest, FillsAGapByAScan) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  all_.push_back({Key(), 1100});  // written by somebody who was killed before the index
  ASSERT_TRUE(Add({{Key(), 2100}}, 2000, 3000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
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
  bytes.resize(64 + 16 * 100);
  Put(bytes);
  EXPECT_TRUE(Load().Candidates(all_[0].key)->empty());
  ASSERT_TRUE(Add({{KeyInSlot(220), 1100}}, 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
}

TEST_F(PackIndexTest, ATableWithoutAnEmptySlotEndsTheSearch) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  Bytes bytes = Read();
  for (size_t slot = 0; slot < 256; ++slot) StoreU64(&bytes[64 + slot * 16 + 8], 7);
  Put(bytes);
  EXPECT_TRUE(Load().Candidates(Key())->empty());
  ASSERT_TRUE(Add({{Key(), 1100}}, 1000, 2000).ok());
  EXPECT_EQ(rebuilt_, 1);
  ExpectAll();
}

TEST_F(PackIndexTest, AStaleCoverIsMadeUpForInMemory) {
  ASSERT_TRUE(Add({{Key(), 100}}, kPackHeaderSize, 1000).ok());
  PackIndex index = Load();
  IndexEntry fresh{Key(), 1100};
  index.AddInMemory({fresh}, 2000);
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
  EXPECT_EQ(Read().size(), 64u + 256 * 16);
}

}  // namespace
}  // namespace belay::test
