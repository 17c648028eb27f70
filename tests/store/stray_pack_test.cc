// A pack that lies under the name of another file of the store: nobody throws it away,
// and a repair puts it back.

#include "store/stray_pack.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "store/catalog.h"
#include "store/found_again.h"
#include "store/heads.h"
#include "store/mend.h"
#include "store/repair.h"
#include "store/store_files.h"
#include "store/unlisted.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class StrayPackTest : public ::testing::Test {
 protected:
  World& NewWorld() {
    static uint64_t seed = 5200;  // ids must not repeat
    worlds_.push_back(std::make_unique<World>(*disk_, ++seed));
    return *worlds_.back();
  }
  void Anew() {
    worlds_.clear();
    disk_ = std::make_unique<MemFs>();
    Make("one");
    Make("two");
    auto store = Open();
    Must(Must(Catalog::Open(*store))->CatchUp());
    Must(Heads::Read(*store));
    pack_ = store->manifest().packs.back().id;
    bytes_ = Must(
        ReadSmallFile(*disk_, Packs(), PackFile::FileName(pack_), size_t{1} << 20));
  }
  std::unique_ptr<Store> Open() { return Must(NewWorld().Open()); }
  Fd Dir(const std::string& path) {
    return Must(disk_->OpenDir(AbsPath::Literal(path.c_str())));
  }
  Fd Packs() { return Dir("/store/packs"); }
  void Make(const std::string& name) {
    auto store = Open();
    Must(MakeCheckpoint(*store, name, {{"a", name}, {"b", SourceText(7, 400)}}));
  }
  // The pack and that file change places.
  void Exchange(const Fd& dir, const Name& name) {
    const bool there = disk_->StatAt(dir, name).ok();
    Must(disk_->Rename(Packs(), PackFile::FileName(pack_), dir, name,
                       there ? RenameHow::kExchange : RenameHow::kNoReplace));
  }
  bool IsKept() {
    for (const char* in : {"", "/packs", "/catalog", "/cache"}) {
      const Fd dir = Dir("/store" + std::string(in));
      for (const DirEntry& e : Must(disk_->List(dir))) {
        auto bytes = ReadSmallFile(*disk_, dir, Name::Literal(e.name), size_t{1} << 20);
        if (bytes.ok() && *bytes == bytes_) return true;
      }
    }
    return false;
  }
  // As the command does it.
  MendReport Repair() {
    World& world = NewWorld();
    Must(RepairStore(*disk_, world.clock, world.random, world.dir, world.options));
    auto store = Must(NewWorld().Open(Store::Mode::kWriteExisting));
    std::vector<std::string> done;
    Must(TakeBackGivenUp(*store, done));
    Must(TakeBackRecords(*store, done));
    MendReport mended;
    Must(MendStore(*store, {}, false, mended));
    Must(Must(Catalog::Open(*store))->Rebuild());
    return mended;
  }
  std::set<std::string> Names() {
    auto store = Open();
    std::set<std::string> names;
    for (const auto& [name, files] : Must(ReadAll(*store))) names.insert(name);
    return names;
  }

  std::unique_ptr<MemFs> disk_ = std::make_unique<MemFs>();
  std::vector<std::unique_ptr<World>> worlds_;
  PackId pack_;
  Bytes bytes_;
};

TEST_F(StrayPackTest, IsThrownAwayByNobodyAndPutBackByARepair) {
  for (const char* what :
       {"/catalog/catalog.db", "/catalog/catalog.db-wal", "/catalog/changes",
        "/catalog/catalog.next", "/tail", "/cache/heads", "/cache/aaaa.scan",
        "/packs/INDEX", "/replaced"})
    for (const char* then : {"nothing", "catalogue", "heads", "checkpoint"}) {
      SCOPED_TRACE(std::string(what) + ", then " + then);
      Anew();
      std::string path = "/store" + std::string(what);
      const size_t slash = path.rfind('/');
      const Fd dir = Dir(path.substr(0, slash));
      Exchange(dir, what == std::string("/packs/INDEX")
                        ? PackIndex::FileName(pack_)
                        : Name::Literal(path.substr(slash + 1)));
      std::set<std::string> all = {"one", "two"};
      {
        auto store = Open();
        auto catalog = Must(Catalog::Open(*store));
        if (then == std::string("catalogue")) (void)catalog->CatchUp();
        if (then == std::string("heads")) (void)Heads::Read(*store);
      }
      if (then == std::string("checkpoint")) {
        Make("meanwhile");
        all.insert("meanwhile");
      }
      ASSERT_TRUE(IsKept());
      const MendReport mended = Repair();
      for (const std::string& d : mended.left.damage) ADD_FAILURE() << d;
      EXPECT_EQ(Names(), all);
    }
}

TEST_F(StrayPackTest, ThatIsCalledManifestGetsItsNameAgain) {
  for (bool exchanged : {true, false}) {
    SCOPED_TRACE(exchanged);
    Anew();
    const Fd home = Dir("/store");
    if (exchanged)
      Exchange(home, ManifestName());
    else
      Must(disk_->Rename(Packs(), PackFile::FileName(pack_), home, ManifestName(),
                         RenameHow::kReplace));
    EXPECT_FALSE(NewWorld().Open().ok());
    EXPECT_TRUE(Repair().left.clean());
    EXPECT_EQ(Names(), (std::set<std::string>{"one", "two"}));
  }
}

// Nobody is told to remove what may be the last copy.
TEST_F(StrayPackTest, WithADamagedHeaderIsToBeKept) {
  Anew();
  const Fd home = Dir("/store");
  Must(disk_->Rename(Packs(), PackFile::FileName(pack_), home, ManifestName(),
                     RenameHow::kReplace));
  Bytes damaged = bytes_;
  damaged[20] ^= std::byte{1};
  Must(ReplaceFile(*disk_, home, ManifestName(), damaged));
  World& world = NewWorld();
  auto repaired =
      RepairStore(*disk_, world.clock, world.random, world.dir, world.options);
  ASSERT_FALSE(repaired.ok());
  EXPECT_EQ(repaired.error().hint.find("remove"), std::string::npos);
  EXPECT_NE(repaired.error().hint.find("keep manifest"), std::string::npos);
}

TEST_F(StrayPackTest, OfAnotherStoreStaysWhereItIs) {
  Anew();
  const Fd home = Dir("/store");
  Bytes other = bytes_;
  other[33] ^= std::byte{1};
  StoreU64(&other[56], Check64(ByteSpan(other).first(56)));
  Must(ReplaceFile(*disk_, Dir("/store/cache"), Name::Literal("aaaa.scan"), other));
  EXPECT_TRUE(Repair().left.clean());
  bytes_ = other;
  EXPECT_TRUE(IsKept());
}

}  // namespace
}  // namespace belay::test
