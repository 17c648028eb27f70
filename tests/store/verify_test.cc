#include "store/verify.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "store/repair.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.options.pack_target = 6000;
    auto store = Open(Store::Mode::kWrite);
    for (const char* name : {"one", "two", "three"})
      ASSERT_TRUE(MakeCheckpoint(*store, name, {{"f", Noise(name[1], 4000)}}).ok());
    const Manifest manifest = store->manifest();
    ASSERT_GE(manifest.packs.size(), 2u);
    first_ = PackFile::FileName(manifest.packs.front().id).bytes();
    last_ = PackFile::FileName(manifest.packs.back().id).bytes();
    packs_ = disk_.OpenDir(AbsPath::Literal("/store/packs")).value();
  }
  std::unique_ptr<Store> Open(Store::Mode mode = Store::Mode::kRead) {
    auto store = world_.Open(mode);
    EXPECT_TRUE(store.ok()) << store.error().what;
    return std::move(*store);
  }
  VerifyReport Verify() {
    auto store = Open();
    auto report = VerifyStore(*store, {.read_data = true});
    EXPECT_TRUE(report.ok()) << report.error().what;
    return std::move(*report);
  }
  Fd File(const std::string& name) {
    return disk_.Open(packs_, Name::Literal(name), OpenMode::ReadWrite()).value();
  }
  uint64_t SizeOf(const std::string& name) {
    return disk_.StatAt(packs_, Name::Literal(name))->size;
  }
  void Repair() {
    auto done =
        RepairStore(disk_, world_.clock, world_.random, world_.dir, world_.options);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }

  MemFs disk_;
  World world_{disk_};
  std::string first_, last_;
  Fd packs_;
};

TEST_F(VerifyTest, NotesTheEndOfAnInterruptedWrite) {
  const uint64_t size = SizeOf(last_);
  ASSERT_TRUE(WriteFull(disk_, File(last_), size, AsBytes("BtChtorn")).ok());
  VerifyReport report = Verify();
  EXPECT_TRUE(report.clean());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_TRUE(report.notes[0].starts_with("8 bytes at the end of " + last_))
      << report.notes[0];
}

TEST_F(VerifyTest, SaysNothingOfAnIndexThatRepairHasRebuiltForACutPack) {
  const uint64_t size = SizeOf(first_);
  ASSERT_TRUE(disk_.Truncate(File(first_), size - 1).ok());
  VerifyReport report = Verify();
  ASSERT_FALSE(report.damage.empty());
  EXPECT_EQ(report.damage[0], first_ + " is 1 byte shorter than it was");
  Repair();
  report = Verify();
  EXPECT_FALSE(report.clean());
  for (const std::string& note : report.notes) ADD_FAILURE() << note;
}

TEST_F(VerifyTest, NotesAnIndexThatMissesSomething) {
  const std::string index = last_.substr(0, last_.size() - 5) + ".idx";
  ASSERT_TRUE(disk_.Unlink(packs_, Name::Literal(index)).ok());
  VerifyReport report = Verify();
  EXPECT_TRUE(report.clean());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("is incomplete"), std::string::npos);
  Repair();
  EXPECT_TRUE(Verify().notes.empty());
}

TEST_F(VerifyTest, SaysWhetherTheDataWasRead) {
  EXPECT_TRUE(Verify().data_read);
  auto store = Open();
  EXPECT_FALSE(VerifyStore(*store, {})->data_read);
}

TEST_F(VerifyTest, ChangesNothing) {
  const std::string before = disk_.TreeText();
  Verify();
  EXPECT_EQ(disk_.TreeText(), before);
}

TEST_F(VerifyTest, WorksOnAReadOnlyDisk) {
  disk_.SetReadOnly(true);
  EXPECT_TRUE(Verify().clean());
  auto done =
      RepairStore(disk_, world_.clock, world_.random, world_.dir, world_.options);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kRefused);
  EXPECT_NE(done.error().what.find("read-only"), std::string::npos);
}

TEST_F(VerifyTest, TheDirectoryOfThePacksIsPrivateAndOurs) {
  ASSERT_TRUE(disk_.SetMode(packs_, 0777).ok());
  Open();
  EXPECT_EQ(disk_.Stat(packs_)->mode, 0700u);
  ASSERT_TRUE(disk_.SetOwner(packs_, 4711, 4711).ok());
  auto opened = world_.Open(Store::Mode::kRead);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kRefused);
  EXPECT_NE(opened.error().what.find("/store/packs belongs to user 4711"),
            std::string::npos);
}

TEST_F(VerifyTest, AStoreWithoutManifestAndPacksIsDamagedNotEmpty) {
  Fd home = disk_.OpenDir(AbsPath::Literal("/store")).value();
  ASSERT_TRUE(disk_.Unlink(home, Name::Literal("manifest")).ok());
  auto entries = disk_.List(packs_);
  for (const DirEntry& e : *entries)
    if (e.name.ends_with(".pack")) {
      ASSERT_TRUE(disk_.Unlink(packs_, Name::Literal(e.name)).ok());
    }
  const std::string before = disk_.TreeText();
  for (Store::Mode mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    auto opened = world_.Open(mode);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Errc::kCorrupt);
  }
  auto repaired =
      RepairStore(disk_, world_.clock, world_.random, world_.dir, world_.options);
  ASSERT_FALSE(repaired.ok());
  EXPECT_EQ(repaired.error().code, Errc::kCorrupt);
  EXPECT_EQ(disk_.TreeText(), before);
}

}  // namespace
}  // namespace belay::test
