// Heads against the catalogue: the same roots, the same newest checkpoints, whatever
// was published, dropped or lost since its file was written.

#include "store/heads.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "store/batch_writer.h"
#include "store/gc.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay {
namespace {

using test::Must;
using test::N;

class HeadsTest : public testing::Test {
 protected:
  HeadsTest() : world_(disk_), store_(Must(world_.Open())) {}

  RootId On(const std::string& path, bool off = false, std::optional<RootId> id = {}) {
    Root root{.id = id ? *id : RootId(world_.random.NewId()), .path = path, .off = off};
    auto writer = Must(store_->Begin());
    writer->Add(ToRecord(root, RecordId(world_.random.NewId()), 1));
    Must(writer->Commit());
    return root.id;
  }
  void Drop(const std::vector<RecordId>& ids) {
    auto writer = Must(store_->Begin());
    writer->Add(MakeDrop(RecordId(world_.random.NewId()), 1, ids));
    Must(writer->Commit());
  }
  // Both ways must agree.
  void Check(const std::string& when) {
    Heads heads = Must(Heads::Read(*store_));
    auto catalog = Must(Catalog::Open(*store_));
    auto roots = Must(catalog->Roots());
    ASSERT_EQ(heads.roots().size(), roots.size()) << when;
    for (size_t i = 0; i < roots.size(); ++i) {
      EXPECT_EQ(heads.roots()[i].root, roots[i].root) << when;
      EXPECT_EQ(heads.roots()[i].record, roots[i].record) << when;
      auto last = Must(catalog->LastCheckpoint(roots[i].root.id));
      auto mine = heads.LastOf(roots[i].root.id);
      ASSERT_EQ(mine.has_value(), last.has_value()) << when;
      if (!last) continue;
      EXPECT_EQ(mine->id, last->checkpoint.id) << when;
      EXPECT_EQ(mine->state, last->checkpoint.state) << when;
    }
  }

  MemFs disk_;
  test::World world_;
  std::unique_ptr<Store> store_;
};

TEST_F(HeadsTest, KnowsWhatTheCatalogueKnows) {
  Check("nothing yet");
  RootId a = On("/a");
  Check("one root");
  RootId b = On("/b");
  for (int i = 0; i < 5; ++i) {
    Must(test::MakeCheckpoint(*store_, "a" + std::to_string(i), {{"f", "x"}}, a));
    Check("a checkpoint of a");
  }
  Must(test::MakeCheckpoint(*store_, "b0", {{"f", "y"}}, b));
  Check("a checkpoint of b");
  On("/moved", false, a);
  Check("a moved");
  On("/b", true, b);
  Check("b off");
  Drop({test::IdFor("a4")});
  Check("the newest of a dropped");
  Drop({test::IdFor("a1")});
  Check("an old one dropped");
  Drop({test::IdFor("b0")});
  Check("the only one of b dropped");
  Must(CollectGarbage(*store_, {}));
  Check("after GC");
}

TEST_F(HeadsTest, ReadsOnlyTheEndOfTheLog) {
  RootId a = On("/a");
  for (int i = 0; i < 60; ++i)
    Must(test::MakeCheckpoint(*store_, std::to_string(i),
                              {{"f", test::Noise(static_cast<uint64_t>(i), 9000)}}, a));
  Must(Heads::Read(*store_));
  Fd cache = Must(disk_.Open(store_->dir(), N("cache"), OpenMode::Directory()));
  FileStat before = Must(disk_.StatAt(cache, N("heads")));
  Must(test::MakeCheckpoint(*store_, "one more", {{"f", "z"}}, a));
  EXPECT_EQ(Must(Heads::Read(*store_)).LastOf(a)->id, test::IdFor("one more"));
  EXPECT_EQ(Must(disk_.StatAt(cache, N("heads"))).ino, before.ino)
      << "not written anew";
  Check("a few batches behind");
}

TEST_F(HeadsTest, EveryFlippedByteOfTheFileIsNoticed) {
  RootId a = On("/a");
  Must(test::MakeCheckpoint(*store_, "one", {{"f", "x"}}, a));
  Must(Heads::Read(*store_));
  Fd cache = Must(disk_.Open(store_->dir(), N("cache"), OpenMode::Directory()));
  Bytes good = Must(ReadSmallFile(disk_, cache, N("heads"), 1 << 20));
  for (size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{4};
    Fd file = Must(disk_.Open(cache, N("heads"), OpenMode::ReadWrite()));
    Must(WriteFull(disk_, file, 0, bad));
    Check("byte " + std::to_string(i));
  }
}

TEST_F(HeadsTest, ALogThatLostItsEndIsReadAnew) {
  RootId a = On("/a");
  Must(test::MakeCheckpoint(*store_, "kept", {{"f", "x"}}, a));
  auto before = disk_.Clone();
  Must(test::MakeCheckpoint(*store_, "lost", {{"f", "y"}}, a));
  Must(Heads::Read(*store_));
  // The file that knows of the lost one beside the log that does not.
  Fd cache = Must(disk_.Open(store_->dir(), N("cache"), OpenMode::Directory()));
  Bytes ahead = Must(ReadSmallFile(disk_, cache, N("heads"), 1 << 20));
  test::World old_world(*before);
  auto old = Must(old_world.Open());
  Fd dir = Must(MakeDirs(*before, AbsPath::Literal("/store/cache"), 0700));
  Must(test::PutFile(*before, dir, test::P("heads"), AsText(ahead)));
  EXPECT_EQ(Must(Heads::Read(*old)).LastOf(a)->id, test::IdFor("kept"));
}

}  // namespace
}  // namespace belay
