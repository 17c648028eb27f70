// A file that cannot be opened or looked at for a moment is not taken for absent in a
// way that anybody remembers: whoever comes next has it again.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "base/mem_fs.h"
#include "store/catalog.h"
#include "store/inventory.h"
#include "support/fs_world.h"
#include "support/pass_fs.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

// EIO for the files named, as often as said.
class MoodyFs final : public PassFs {
 public:
  using PassFs::PassFs;
  Result<Fd> Open(const Fd& dir, NameRef name, const OpenMode& mode) override {
    if (Fails(no_open, name)) return SysError(EIO, "open");
    return PassFs::Open(dir, name, mode);
  }
  Result<FileStat> StatAt(const Fd& dir, NameRef name) override {
    if (Fails(no_stat, name)) return SysError(EIO, "stat");
    return PassFs::StatAt(dir, name);
  }

  std::map<std::string, int> no_open, no_stat;

 private:
  static bool Fails(std::map<std::string, int>& left, NameRef name) {
    auto at = left.find(std::string(name.bytes()));
    return at != left.end() && at->second-- > 0;
  }
};

constexpr int kAlways = 1'000'000;

class UnreadOnce : public testing::Test {
 protected:
  UnreadOnce() {
    auto store = Open();
    for (const char* name : {"one", "two", "three", "four"})
      Must(MakeCheckpoint(*store, name, {{name, Noise(++seed_, 2500)}}));
    Must(Must(Catalog::Open(*store))->CatchUp());
    for (const auto& pack : store->manifest().packs)
      packs_.push_back(PackFile::FileName(pack.id).bytes());
    EXPECT_GE(packs_.size(), 3u);
  }
  std::unique_ptr<Store> Open() {
    worlds_.push_back(std::make_unique<World>(fs_, ++seed_));
    worlds_.back()->options.pack_target = 3000;
    return Must(worlds_.back()->Open());
  }
  // As a command that comes next sees it.
  size_t Listed() {
    auto store = Open();
    return Must(Must(Catalog::Open(*store))->ListCheckpoints({})).size();
  }
  void BuildWithout(const std::string& pack) {
    fs_.no_open[pack] = kAlways;
    {
      auto store = Open();
      Must(Must(Catalog::Open(*store))->Rebuild());
    }
    EXPECT_LT(Listed(), 4u);
    fs_.no_open.clear();
  }
  Fd Packs() { return Must(disk_.OpenDir(AbsPath::Literal("/store/packs"))); }

  MemFs disk_;
  MoodyFs fs_{disk_};
  std::vector<std::string> packs_;
  std::vector<std::unique_ptr<World>> worlds_;
  uint64_t seed_ = 70;
};

TEST_F(UnreadOnce, TheCatalogueHasAgainWhatItWasBuiltWithout) {
  for (const std::string& pack : packs_) {
    SCOPED_TRACE(pack);
    BuildWithout(pack);
    EXPECT_EQ(Listed(), 4u);
  }
}

TEST_F(UnreadOnce, AlsoWhenItHasToCatchUpFirst) {
  BuildWithout(packs_[1]);
  Must(MakeCheckpoint(*Open(), "five", {{"f", "5"}}));
  EXPECT_EQ(Listed(), 5u);
}

// Then the log is never whole again, and doubt never goes.
TEST_F(UnreadOnce, AlsoWhenAnotherPackIsGoneForGood) {
  Must(disk_.Unlink(Packs(), Name::Literal(packs_[0])));
  {
    auto store = Open();
    Must(Must(Catalog::Open(*store))->Rebuild());
  }
  const size_t rest = Listed();
  EXPECT_LT(rest, 4u);
  fs_.no_open[packs_[1]] = kAlways;
  {
    auto store = Open();
    auto catalog = Must(Catalog::Open(*store));
    Must(catalog->Rebuild());
    EXPECT_LT(Must(catalog->ListCheckpoints({})).size(), rest);
  }
  fs_.no_open.clear();
  EXPECT_EQ(Listed(), rest);
}

// What only the old catalogue knows is not given up because it could not be read now.
TEST_F(UnreadOnce, ACatalogueThatIsTheLastToKnowIsNotReplacedUnread) {
  Must(disk_.Unlink(Packs(), Name::Literal(packs_[1])));
  {
    auto store = Open();
    auto catalog = Must(Catalog::Open(*store));
    fs_.no_open["catalog.db"] = 1;
    EXPECT_FALSE(catalog->Rebuild().ok());
    fs_.no_open["catalog.db"] = 1;
    EXPECT_EQ(catalog->Remembered(store->manifest().generation).size(), 4u);
  }
  // A repair has asked it before, and must come to an end.
  auto store = Open();
  auto catalog = Must(Catalog::Open(*store));
  Must(catalog->ClearTheWay());
  fs_.no_open["catalog.db"] = 1;
  Must(catalog->Rebuild());
}

TEST_F(UnreadOnce, APackThatCannotBeLookedAtMayHoldAnything) {
  const std::string name = IdFor("another").text() + ".pack";
  Must(ReplaceFile(disk_, Packs(), Name::Literal(name), Bytes(4000)));
  auto store = Open();
  EXPECT_EQ(Must(UnlistedPacks(*store)).size(), 1u);
  fs_.no_stat[name] = 1;
  EXPECT_EQ(Must(UnlistedPacks(*store)).size(), 1u);
}

}  // namespace
}  // namespace belay::test
