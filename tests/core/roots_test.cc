#include "core/roots.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "core/moved_root.h"
#include "support/race_fs.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

class RootsTest : public ::testing::Test {
 protected:
  RootsTest() {
    Must(MakeDirs(disk, AbsPath::Literal("/w"), 0755));
    RestoreWorld world(disk, AbsPath::Literal("/w"));
    Must(PutFile(disk, Must(world.Dir()), P("a"), "1"));
    Must(world.Capture("first"));
    // Another directory stands there now: a checkpoint writes down which one.
    Fd top = Must(disk.OpenDir(AbsPath::Literal("/w")));
    Must(RemoveTree(disk, top, N("project")));
    Must(disk.MakeDir(top, N("other"), 0755));  // takes the inode that became free
    Must(PutFile(disk, Must(world.Dir()), P("a"), "2"));
  }
  static Root RootIn(RestoreWorld& world) {
    auto store = Must(world.world.Open());
    auto catalog = Must(Catalog::Open(*store));
    return Must(FindRootAt(*catalog, world.project))->root;
  }
  std::optional<AbsPath> WasAt(RestoreWorld& world, const AbsPath& dir) {
    auto store = Must(world.world.Open());
    auto catalog = Must(Catalog::Open(*store));
    const Fd fd = Must(disk.OpenDir(dir));
    return Must(MovedForCertain(*store, *catalog, fd, Must(disk.Stat(fd))));
  }
  static uint64_t InodeOf(RestoreWorld& world) {
    return Must(world.fs().Stat(Must(world.Dir()))).ino;
  }

  MemFs disk;
};

TEST_F(RootsTest, ADirectoryThatWasMadeAnewIsKnownByWhatItIsNow) {
  RestoreWorld world(disk, AbsPath::Literal("/w"));
  ASSERT_NE(RootIn(world).ino, InodeOf(world));
  Must(world.Capture("second"));
  EXPECT_EQ(RootIn(world).ino, InodeOf(world));
  EXPECT_FALSE(RootIn(world).off);
}

TEST_F(RootsTest, WhatWasRenamedIsTheSameForCertain) {
  RestoreWorld world(disk, AbsPath::Literal("/w"));
  Must(world.Capture("second"));
  const Fd top = Must(disk.OpenDir(AbsPath::Literal("/w")));
  Must(disk.Rename(top, N("project"), top, N("renamed"), RenameHow::kNoReplace));
  EXPECT_EQ(WasAt(world, AbsPath::Literal("/w/renamed")), world.project);
  // Not while something is in its place.
  Must(disk.MakeDir(top, N("project"), 0755));
  EXPECT_EQ(WasAt(world, AbsPath::Literal("/w/renamed")), std::nullopt);
}

// Mutant: a-number-proves-a-move.
TEST_F(RootsTest, ANewDirectoryOfTheSameNumberIsNotTheOneThatMoved) {
  RestoreWorld world(disk, AbsPath::Literal("/w"));
  Must(world.Capture("second"));
  // As a directory that was given the number: nothing in it is from before.
  const Fd top = Must(disk.OpenDir(AbsPath::Literal("/w")));
  Must(disk.Rename(top, N("project"), top, N("new"), RenameHow::kNoReplace));
  const Fd made = Must(disk.OpenDir(AbsPath::Literal("/w/new")));
  Must(disk.Unlink(made, N("a")));
  Must(PutFile(disk, made, P("a"), "2"));
  EXPECT_EQ(WasAt(world, AbsPath::Literal("/w/new")), std::nullopt);
}

// One moved, and another was registered where it had been, or below: what was recorded
// before is of the one that was there.
TEST_F(RootsTest, WhatWasInARootMovedWithTheOneThatWasThereThen) {
  for (const bool turned : {false, true}) {
    SCOPED_TRACE(turned);
    RestoreWorld world(disk, AbsPath::Literal("/w"));
    auto store = Must(world.world.Open());
    auto catalog = Must(Catalog::Open(*store));
    RootId first(IdFor("1")), second(IdFor("2"));
    if ((second < first) != turned) std::swap(first, second);
    auto put = [&](const RootId& id, const std::string& path) {
      auto writer = Must(store->Begin());
      writer->Add(ToRecord(Root{id, path}, RecordId(store->random().NewId()), 1));
      return Must(writer->Commit()).first_seq;
    };
    const uint64_t then = put(first, "/old");
    put(first, "/new");
    put(second, "/old");
    const uint64_t later = put(RootId(IdFor("inner")), "/old/below");
    put(RootId(IdFor("inner")), "/away");
    put(second, "/old too");
    const RootPaths paths = Must(RootPaths::Read(*catalog));
    const RootId beside(IdFor("beside"));
    EXPECT_EQ(paths.Now("/old/x", beside, then), "/new/x");
    EXPECT_EQ(paths.Now("/old/below/x", beside, then), "/new/below/x");
    EXPECT_EQ(paths.Now("/old/x", first, then), "/new/x");
    EXPECT_EQ(paths.Now("/old/x", beside, later), "/old too/x");
    EXPECT_EQ(paths.Now("/old/below/x", beside, later), "/away/x");
    for (const RootId& id : {first, second, RootId(IdFor("inner"))}) put(id, "/gone");
  }
}

// It was protected later, and is where it was all the time.
TEST_F(RootsTest, WhatWasInARootBeforeItWasOneMovedWithItToo) {
  RestoreWorld world(disk, AbsPath::Literal("/w"));
  auto store = Must(world.world.Open());
  auto catalog = Must(Catalog::Open(*store));
  auto put = [&](const std::string& name, const std::string& path) {
    auto writer = Must(store->Begin());
    writer->Add(ToRecord(Root{RootId(IdFor(name)), path},
                         RecordId(store->random().NewId()), 1));
    return Must(writer->Commit()).first_seq;
  };
  const uint64_t then = put("outer", "/old");
  put("inner", "/old/below");
  put("inner", "/away");
  const RootPaths paths = Must(RootPaths::Read(*catalog));
  EXPECT_EQ(paths.Now("/old/below/x", RootId(IdFor("outer")), then), "/away/x");
}

// Somebody switches the root off while a checkpoint of it is made, at every call in
// turn: it stays off.
TEST_F(RootsTest, OffWinsAgainstACheckpointThatKnowsTheDirectoryAgain) {
  uint64_t switched = 0, known = 0;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(at);
    auto copy = disk.Clone();
    RestoreWorld theirs(*copy, AbsPath::Literal("/w"), 6);
    theirs.world.options.lock_wait_ms = 0;
    uint64_t calls = 0;
    bool came = false, off = false;
    RaceFs race(*copy, [&] {
      if (++calls != at) return;
      came = true;
      auto store = theirs.world.Open();
      if (!store.ok()) return;  // somebody holds what it needs
      auto catalog = Catalog::Open(**store);
      if (!catalog.ok()) return;
      auto root = FindRootAt(**catalog, theirs.project);
      if (!root.ok() || !*root) return;
      off = SwitchOff(**store, (*root)->root).ok();
    });
    // As a command that had found the root before somebody else took it off.
    RestoreWorld mine(race, AbsPath::Literal("/w"), 7);
    {
      auto opened = Must(mine.Open());
      calls = 0;
      came = off = false;
      CaptureRequest request;
      request.root = opened.root;
      request.settings = &mine.settings;
      request.git.user.no_system = true;
      request.threads = 1;
      Must(CaptureCheckpoint(*opened.store, request));
    }
    const bool ended = !came;
    came = true;
    calls = at;  // no more of it
    const Root root = RootIn(theirs);
    EXPECT_EQ(root.off, off);
    switched += off ? 1 : 0;
    known += root.ino == InodeOf(theirs) ? 1 : 0;
    if (ended) break;
  }
  EXPECT_GT(switched, 20u);
  EXPECT_GT(known, 0u);
}

// Mutant: two-register-at-once.
// Two hooks of one start: at every call of one the other does all of it.
TEST_F(RootsTest, WhoProtectsItAtTheSameTimeProtectsTheSame) {
  const AbsPath place = AbsPath::Literal("/w/new");
  Must(MakeDirs(disk, place, 0755));
  auto protect = [&](Fs& fs, uint64_t seed) -> Result<Registered> {
    RestoreWorld world(fs, AbsPath::Literal("/w"), seed);
    world.world.options.lock_wait_ms = 0;
    BELAY_TRY(auto store, world.world.Open());
    BELAY_TRY(auto catalog, Catalog::Open(*store));
    BELAY_TRY(Fd dir, fs.OpenDir(place));
    BELAY_TRY(FileStat stat, fs.Stat(dir));
    return RegisterRoot(*store, *catalog, place, stat, std::nullopt);
  };
  uint64_t both = 0, busy = 0;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(at);
    auto copy = disk.Clone();
    uint64_t calls = 0;
    bool came = false;
    std::optional<RootId> theirs;
    RaceFs race(*copy, [&] {
      if (++calls != at) return;
      came = true;
      auto done = protect(*copy, 6);
      if (done.ok()) theirs = done->root.id;
      busy += !done.ok() && done.error().code == Errc::kBusy ? 1 : 0;
    });
    auto mine = protect(race, 7);
    if (!came) break;
    if (mine.ok() && theirs) {
      EXPECT_EQ(mine->root.id, *theirs);
      ++both;
    }
    EXPECT_TRUE(mine.ok() || theirs);
  }
  EXPECT_GT(both, 0u);
  EXPECT_GT(busy, 0u);
}

}  // namespace
}  // namespace belay::test
