// A disk that does not give bytes back, and other things under the names of ours: named
// as damage by readers, a reason to stop for writers, and nothing else is lost.

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/mem_fs.h"
#include "crash/hook_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

constexpr uint64_t kPiece = 4096;

const Checkpoints& Content() {
  static const Checkpoints content = {
      {"one", {{"a", "first"}, {"dir/b", Noise(1, 9000)}, {"dir/c", Noise(2, 100)}}},
      {"two", {{"a", "second"}, {"dir/b", Noise(1, 9000)}, {"n", Noise(3, 7000)}}},
      {"three", {{"late", SourceText(4, 30000)}, {"x/y", Noise(5, 5000)}}},
      {"four", {{"late", Noise(6, 12000)}, {"a", "first"}}},
  };
  return content;
}

// A store of several packs on a disk whose sectors and files can go bad.
class BadDisk {
 public:
  BadDisk()
      : disk_(Fresh().Clone()), fs_(*disk_, [this](FsCall call, const auto& name) {
          return OnCall(call, name);
        }) {
    fs_.SetOnRead([this](const std::string& name, uint64_t offset, size_t count) {
      return OnRead(name, offset, count);
    });
    for (const DirEntry& e : Must(disk_->List(Packs())))
      if (e.name.ends_with(".pack")) packs_.insert(e.name);
  }

  Fs& fs() { return fs_; }
  MemFs& disk() { return *disk_; }
  std::set<std::string> packs() const { return packs_; }
  std::string open_pack() {
    World world = NewWorld();
    auto store = Must(world.Open(Store::Mode::kRead));
    return PackFile::FileName(store->manifest().packs.back().id).bytes();
  }
  Fd Home() { return Must(disk_->OpenDir(AbsPath::Literal("/store"))); }
  Fd Packs() { return Must(disk_->OpenDir(AbsPath::Literal("/store/packs"))); }
  uint64_t SizeOf(const std::string& pack) {
    return Must(disk_->StatAt(Packs(), Name::Literal(pack))).size;
  }

  void Break(const std::string& file, uint64_t from, uint64_t to) {
    bad_.emplace_back(file, from, to);
  }
  void Heal() { bad_.clear(), refused_.clear(), unopenable_.clear(); }
  void Refuse(const std::string& file) { refused_.insert(file); }         // EACCES
  void Unopenable(const std::string& file) { unopenable_.insert(file); }  // EIO
  // Something else under this name; what was there goes to `name`.kept.
  void Replace(const Fd& dir, const std::string& file, FileType type) {
    const Name name = Name::Literal(file);
    (void)disk_->Rename(dir, name, dir, Name::Literal(file + ".kept"),
                        RenameHow::kReplace);
    if (type == FileType::kDirectory)
      Must(disk_->MakeDir(dir, name, 0700));
    else if (type == FileType::kSymlink)
      Must(disk_->Symlink(dir, name, file + ".kept"));
    else
      Must(disk_->MakeSpecial(dir, name, type, 0600));
  }

  World NewWorld() {
    static uint64_t seed = 500;  // ids must not repeat
    World world(fs_, ++seed);
    world.options.pack_target = 20'000;
    return world;
  }
  Status Repair() {
    World world = NewWorld();
    auto done = RepairStore(fs_, world.clock, world.random, world.dir, world.options);
    if (!done.ok()) return std::move(done).error();
    said_ = done->done;
    return Ok();
  }
  std::string said() const {
    std::string all;
    for (const std::string& line : said_) all += line + "\n";
    return all;
  }

 private:
  static MemFs& Fresh() {
    static MemFs* made = [] {
      auto* disk = new MemFs;
      World world(*disk);
      world.options.pack_target = 20'000;
      auto store = Must(world.Open());
      for (const char* name : {"one", "two", "three", "four"})
        Must(MakeCheckpoint(*store, name, Content().at(name)));
      store.reset();
      disk->Crash(CrashPolicy::KeepAll());
      return disk;
    }();
    return *made;
  }
  Status OnCall(FsCall call, const std::string& name) {
    if (call == FsCall::kOpen && refused_.contains(name))
      return FsError(EACCES, "open", name);
    if (call == FsCall::kOpen && unopenable_.contains(name))
      return FsError(EIO, "open", name);
    return Ok();
  }
  Status OnRead(const std::string& name, uint64_t offset, size_t count) {
    for (const auto& [file, from, to] : bad_)
      if (name == file && offset < to && offset + count > from)
        return SysError(EIO, "read");
    return Ok();
  }

  std::unique_ptr<MemFs> disk_;
  HookFs fs_;
  std::set<std::string> packs_;
  std::vector<std::tuple<std::string, uint64_t, uint64_t>> bad_;
  std::set<std::string> refused_, unopenable_;
  std::vector<std::string> said_;
};

std::set<std::string> ThePacks() { return BadDisk().packs(); }

struct Look {
  Checkpoints whole;             // read back, byte for byte
  std::set<std::string> listed;  // in the log
};

// Everything that can be read; what cannot be must be called damage.
Look ReadWhatCan(Store& store) {
  Look look;
  LogView log;
  Must(ReadOn(store, log));
  for (const LogRecord& r : log.records) {
    auto c = ToCheckpoint(r);
    if (!c.ok()) continue;
    look.listed.insert(*c->name);
    auto files = ReadFiles(store, c->state);
    if (files.ok())
      look.whole[*c->name] = *files;
    else
      EXPECT_TRUE(files.error().code == Errc::kCorrupt ||
                  files.error().code == Errc::kNotFound)
          << files.error().what;
  }
  return look;
}

// Verify finds it and says `what`; what it does not name can be read.
VerifyReport ExpectDamage(BadDisk& disk, const std::string& what) {
  World world = disk.NewWorld();
  auto store = Must(world.Open(Store::Mode::kRead));
  auto report = Must(VerifyStore(*store, {.read_data = true}));
  EXPECT_FALSE(report.clean());
  bool said = false;
  for (const std::string& d : report.damage) said |= d.find(what) != std::string::npos;
  EXPECT_TRUE(said) << what << " is not in "
                    << (report.damage.empty() ? "nothing" : report.damage.front());
  Look look = ReadWhatCan(*store);
  std::set<std::string> hit;
  for (const HitCheckpoint& h : report.hit) {
    hit.insert(*h.checkpoint.name);
    EXPECT_FALSE(h.paths.empty());
  }
  for (const std::string& name : look.listed)
    EXPECT_NE(hit.contains(name), look.whole.contains(name)) << name;
  for (const auto& [name, files] : look.whole)
    if (Content().contains(name)) {
      EXPECT_EQ(files, Content().at(name)) << name;
    }
  return report;
}

void ExpectAllIsThere(BadDisk& disk, const std::set<std::string>& more = {}) {
  World world = disk.NewWorld();
  auto store = Must(world.Open(Store::Mode::kRead));
  auto all = Must(ReadAll(*store));
  for (const auto& [name, files] : Content()) EXPECT_EQ(all[name], files) << name;
  for (const std::string& name : more) EXPECT_TRUE(all.contains(name)) << name;
  auto report = Must(VerifyStore(*store, {.read_data = true}));
  for (const std::string& d : report.damage) ADD_FAILURE() << d;
}

TEST(Unreadable, TheSampleHasSeveralPacks) {
  BadDisk disk;
  EXPECT_GE(disk.packs().size(), 2u);
  ExpectAllIsThere(disk);
}

TEST(Unreadable, APieceOfAPackIsNamedAndCostsOnlyWhatItHits) {
  std::set<std::string> survived;
  for (const std::string& pack : ThePacks())
    for (uint64_t at = 0; at < BadDisk().SizeOf(pack); at += kPiece) {
      SCOPED_TRACE(pack + " at " + std::to_string(at));
      BadDisk disk;
      // One sector: the whole piece is given up, and no more.
      disk.Break(pack, at + 512, at + 1024);
      if (at + 512 >= disk.SizeOf(pack)) continue;
      ExpectDamage(disk, pack + ": 4096 bytes at " + std::to_string(at) +
                             " cannot be read: Input/output error");
      World world = disk.NewWorld();
      auto store = Must(world.Open(Store::Mode::kRead));
      Look look = ReadWhatCan(*store);
      for (const auto& [name, files] : look.whole) survived.insert(name);
      EXPECT_TRUE(MeasureUsage(*store).ok());
      EXPECT_TRUE(Must(GlanceAtPacks(*store)).empty());
    }
  EXPECT_EQ(survived.size(), Content().size());
}

TEST(Unreadable, AWholeDiskFullOfBadSectorsIsDamageToo) {
  BadDisk disk;
  for (const std::string& pack : disk.packs()) disk.Break(pack, 0, UINT64_MAX);
  auto report = ExpectDamage(disk, "cannot be read: Input/output error");
  EXPECT_EQ(report.damage.size(), disk.packs().size());
}

TEST(Unreadable, CollectingTakesNothingAway) {
  for (const std::string& pack : ThePacks())
    for (uint64_t at = 0; at < BadDisk().SizeOf(pack); at += kPiece) {
      SCOPED_TRACE(pack + " at " + std::to_string(at));
      BadDisk disk;
      {
        World world = disk.NewWorld();
        auto store = Must(world.Open());
        Must(MakeCheckpoint(*store, "junk", {{"j", Noise(9, 20'000)}}));
        Must(DropCheckpoints(*store, {"junk"}));
      }
      disk.Break(pack, at, at + kPiece);
      World world = disk.NewWorld();
      auto store = Must(world.Open());
      auto collected = CollectGarbage(*store, {.everything = true});
      if (!collected.ok()) {
        EXPECT_TRUE(collected.error().code == Errc::kCorrupt ||
                    IsUnreadable(collected.error()))
            << collected.error().what;
      }
      store.reset();
      // Whatever it did: when the disk can be read again, nothing is missing.
      disk.Heal();
      ExpectAllIsThere(disk);
    }
}

// Published while the collector copied, of nothing but what it had found unwanted; and
// its second look at the log cannot read it.
TEST(Unreadable, TheCollectorTakesNothingWhenItCannotReadWhatWasPublishedMeanwhile) {
  BadDisk disk;
  // Small enough to lie in one pack with what is wanted, which must be copied.
  const Files junk = {{"j", Noise(9, 3000)}};
  {
    World world = disk.NewWorld();
    auto store = Must(world.Open());
    Must(MakeCheckpoint(*store, "junk", junk));
    Must(DropCheckpoints(*store, {"junk"}));
  }
  bool published = false;
  HookFs hooked(disk.fs(), [&](FsCall call, const std::string& name) -> Status {
    if (published || call != FsCall::kWrite || !name.ends_with(".pack")) return Ok();
    published = true;
    World world = disk.NewWorld();
    auto store = Must(world.Open());
    Must(MakeCheckpoint(*store, "back", junk));
    disk.Break(disk.open_pack(), 0, UINT64_MAX);
    return Ok();
  });
  World collecting(hooked, 400);
  collecting.options.pack_target = 20'000;
  {
    auto store = Must(collecting.Open());
    auto collected = CollectGarbage(*store, {.everything = true});
    ASSERT_TRUE(published);
    ASSERT_FALSE(collected.ok());
    EXPECT_EQ(collected.error().code, Errc::kCorrupt) << collected.error().what;
  }
  disk.Heal();
  ExpectAllIsThere(disk, {"back"});
}

TEST(Unreadable, RepairMakesNothingWorseAndWritingGoesOnBesideIt) {
  for (const std::string& pack : ThePacks())
    for (uint64_t at = 0; at < BadDisk().SizeOf(pack); at += kPiece) {
      SCOPED_TRACE(pack + " at " + std::to_string(at));
      BadDisk disk;
      disk.Break(pack, at, at + kPiece);
      Status repaired = disk.Repair();
      ASSERT_TRUE(repaired.ok()) << repaired.error().what;
      {
        World world = disk.NewWorld();
        auto store = Must(world.Open());
        auto made = MakeCheckpoint(*store, "new", {{"n", Noise(10, 3000)}});
        EXPECT_TRUE(made.ok()) << made.error().what;
      }
      disk.Heal();
      ExpectAllIsThere(disk, {"new"});
    }
}

TEST(Unreadable, RepairWithoutAManifestLeavesNoPackOut) {
  for (const std::string& pack : ThePacks())
    for (uint64_t at = 0; at < BadDisk().SizeOf(pack); at += kPiece) {
      SCOPED_TRACE(pack + " at " + std::to_string(at));
      BadDisk disk;
      Must(disk.disk().Unlink(disk.Home(), Name::Literal("manifest")));
      disk.Break(pack, at, at + kPiece);
      Status repaired = disk.Repair();
      EXPECT_TRUE(repaired.ok() || IsUnreadable(repaired.error()))
          << repaired.error().what;
      disk.Heal();
      if (!repaired.ok()) {
        EXPECT_NE(repaired.error().hint.find(pack), std::string::npos);
        ASSERT_TRUE(disk.Repair().ok());
      }
      ExpectAllIsThere(disk);
    }
}

// The end of the open pack, where a writer looks before it appends.
TEST(Unreadable, AWriterNeitherCutsNorSealsWhatItCannotRead) {
  for (bool tail_too : {false, true}) {
    SCOPED_TRACE(tail_too ? "the tail too" : "no tail");
    BadDisk disk;
    const std::string pack = disk.open_pack();
    if (tail_too)
      disk.Break("tail", 0, 64);
    else
      Must(disk.disk().Unlink(disk.Home(), Name::Literal("tail")));
    disk.Break(pack, disk.SizeOf(pack) - 100, disk.SizeOf(pack));
    const std::string before = disk.disk().TreeText();
    {
      World world = disk.NewWorld();
      auto store = Must(world.Open());
      auto made = MakeCheckpoint(*store, "new", {{"n", "x"}});
      ASSERT_FALSE(made.ok());
      EXPECT_TRUE(IsUnreadable(made.error())) << made.error().what;
    }
    EXPECT_EQ(disk.disk().TreeText(), before);
    // Repair seals the pack as long as it is, and writing goes on.
    Status repaired = disk.Repair();
    ASSERT_TRUE(repaired.ok()) << repaired.error().what;
    EXPECT_NE(disk.said().find("starts another"), std::string::npos) << disk.said();
    {
      World world = disk.NewWorld();
      auto store = Must(world.Open());
      Must(MakeCheckpoint(*store, "new", {{"n", "x"}}));
    }
    ExpectDamage(disk, "cannot be read");
    disk.Heal();
    ExpectAllIsThere(disk, {"new"});
  }
}

// A batch beyond the tail that cannot be read may be one that was acknowledged: what it
// wants must not be called unwanted.
TEST(Unreadable, TheCollectorDoesNotTakeAnUnreadableEndForATornOne) {
  BadDisk disk;
  const std::string pack = disk.open_pack();
  const Bytes old_tail =
      Must(ReadSmallFile(disk.disk(), disk.Home(), Name::Literal("tail"), 4096));
  uint64_t size = 0;
  {
    World world = disk.NewWorld();
    auto store = Must(world.Open());
    // All of its objects are those of `one`, which is then dropped.
    Must(MakeCheckpoint(*store, "one-again", Content().at("one")));
    size = disk.SizeOf(pack);
  }
  {
    // `one` is dropped by a record in front of it, in the pack that follows in time.
    World world = disk.NewWorld();
    auto store = Must(world.Open());
    Must(DropCheckpoints(*store, {"one", "two"}));
  }
  // The tail did not reach the disk.
  Fd tail =
      Must(disk.disk().Open(disk.Home(), Name::Literal("tail"), OpenMode::ReadWrite()));
  Must(WriteFull(disk.disk(), tail, 0, old_tail));
  disk.Break(pack, size - 48, size - 40);
  {
    World world = disk.NewWorld();
    auto store = Must(world.Open(Store::Mode::kRead));
    auto collected = CollectGarbage(*store, {.everything = true});
    ASSERT_FALSE(collected.ok());
  }
  disk.Heal();
  World world = disk.NewWorld();
  auto store = Must(world.Open(Store::Mode::kRead));
  EXPECT_EQ(Must(ReadAll(*store))["one-again"], Content().at("one"));
}

// --- other things under the name of a pack -------------------------------------------

TEST(Unreadable, APackThatBecameSomethingElseIsNamed) {
  const std::pair<FileType, const char*> kinds[] = {
      {FileType::kDirectory, " is a directory, not a pack"},
      {FileType::kSymlink, " is a symlink, not a pack"},
      {FileType::kFifo, " is a FIFO, not a pack"},
      {FileType::kSocket, " is a socket, not a pack"},
  };
  for (const auto& [type, said] : kinds)
    for (const std::string& pack : ThePacks()) {
      SCOPED_TRACE(pack + said);
      BadDisk disk;
      disk.Replace(disk.Packs(), pack, type);
      ExpectDamage(disk, pack + said);
      {
        World world = disk.NewWorld();
        auto store = Must(world.Open(Store::Mode::kRead));
        EXPECT_EQ(Must(GlanceAtPacks(*store)).size(), 1u);
        EXPECT_TRUE(MeasureUsage(*store).ok());
        auto collected = CollectGarbage(*store, {.everything = true});
        ASSERT_FALSE(collected.ok());
        EXPECT_EQ(collected.error().code, Errc::kCorrupt) << collected.error().what;
      }
      ASSERT_TRUE(disk.Repair().ok());
      ExpectDamage(disk, pack + said);
      // Back in its place it is as good as ever.
      const Name name = Name::Literal(pack);
      Fd dir = disk.Packs();
      if (type == FileType::kDirectory)
        Must(disk.disk().RemoveDir(dir, name));
      else
        Must(disk.disk().Unlink(dir, name));
      Must(disk.disk().Rename(dir, Name::Literal(pack + ".kept"), dir, name,
                              RenameHow::kNoReplace));
      ExpectAllIsThere(disk);
    }
}

// The same without a manifest: what has the name of a pack is kept under another, and
// the pack is missed until it is back.
TEST(Unreadable, WhatIsInTheWayOfAPackIsMovedAsideWhereThereIsNoManifest) {
  for (FileType type : {FileType::kDirectory, FileType::kSymlink, FileType::kFifo})
    for (const std::string& pack : ThePacks()) {
      SCOPED_TRACE(pack + " is " + std::string(FileTypeName(type)));
      BadDisk disk;
      disk.Replace(disk.Packs(), pack, type);
      Must(disk.disk().Unlink(disk.Home(), Name::Literal("manifest")));
      Status repaired = disk.Repair();
      ASSERT_TRUE(repaired.ok()) << repaired.error().what;
      EXPECT_NE(disk.said().find("now " + pack + ".aside"), std::string::npos)
          << disk.said();
      EXPECT_EQ(
          Must(disk.disk().StatAt(disk.Packs(), Name::Literal(pack + ".aside"))).type,
          type);
      ExpectDamage(disk, pack + " is missing");
      Must(disk.disk().Rename(disk.Packs(), Name::Literal(pack + ".kept"), disk.Packs(),
                              Name::Literal(pack), RenameHow::kNoReplace));
      ExpectAllIsThere(disk);
    }
}

TEST(Unreadable, APackThatMayNotBeOpenedIsNamed) {
  for (bool refused : {true, false})
    for (const std::string& pack : ThePacks()) {
      SCOPED_TRACE(pack);
      BadDisk disk;
      if (refused)
        disk.Refuse(pack);
      else
        disk.Unopenable(pack);
      ExpectDamage(disk, pack + (refused ? " may not be read: Permission denied"
                                         : " cannot be read: Input/output error"));
      ASSERT_TRUE(disk.Repair().ok());
      {
        World world = disk.NewWorld();
        auto store = Must(world.Open(Store::Mode::kRead));
        EXPECT_TRUE(MeasureUsage(*store).ok());
        auto collected = CollectGarbage(*store, {.everything = true});
        ASSERT_FALSE(collected.ok());
        EXPECT_EQ(collected.error().code, Errc::kCorrupt) << collected.error().what;
      }
      // With the manifest gone nobody may do without it.
      Must(disk.disk().Unlink(disk.Home(), Name::Literal("manifest")));
      Status repaired = disk.Repair();
      ASSERT_FALSE(repaired.ok());
      EXPECT_NE(repaired.error().hint.find(pack), std::string::npos);
      disk.Heal();
      ASSERT_TRUE(disk.Repair().ok());
      ExpectAllIsThere(disk);
    }
}

TEST(Unreadable, AManifestOnABadSectorIsDamageAndRepaired) {
  BadDisk disk;
  disk.Break("manifest", 0, 64);
  {
    World world = disk.NewWorld();
    auto opened = world.Open(Store::Mode::kRead);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Errc::kCorrupt);
    EXPECT_EQ(opened.error().hint, "run: belay repair");
  }
  ASSERT_TRUE(disk.Repair().ok());
  disk.Heal();
  ExpectAllIsThere(disk);
}

// --- rebuildable files
// ----------------------------------------------------------------

TEST(Unreadable, ARebuildableFileThatIsNoFileChangesNoAnswer) {
  std::vector<std::pair<std::string, bool>> files = {{"tail", false}};
  for (const std::string& pack : ThePacks())
    files.emplace_back(pack.substr(0, pack.size() - 5) + ".idx", true);
  for (const auto& [file, in_packs] : files)
    for (FileType type : {FileType::kDirectory, FileType::kSymlink, FileType::kFifo,
                          FileType::kSocket}) {
      SCOPED_TRACE(file + " is " + std::string(FileTypeName(type)));
      BadDisk disk;
      Fd dir = in_packs ? disk.Packs() : disk.Home();
      disk.Replace(dir, file, type);
      ExpectAllIsThere(disk);
      {
        World world = disk.NewWorld();
        auto store = Must(world.Open(Store::Mode::kRead));
        EXPECT_TRUE(MeasureUsage(*store).ok());
      }
      Status repaired = disk.Repair();
      ASSERT_TRUE(repaired.ok()) << repaired.error().what;
      EXPECT_NE(disk.said().find(file + " was " + std::string(FileTypeName(type)) +
                                 ": moved aside, now " + file + ".aside"),
                std::string::npos)
          << disk.said();
      EXPECT_EQ(Must(disk.disk().StatAt(dir, Name::Literal(file + ".aside"))).type,
                type);
      {
        World world = disk.NewWorld();
        auto store = Must(world.Open());
        Must(MakeCheckpoint(*store, "new", {{"n", "x"}}));
        auto collected = CollectGarbage(*store, {.everything = true});
        EXPECT_TRUE(collected.ok()) << collected.error().what;
      }
      ExpectAllIsThere(disk, {"new"});
      EXPECT_TRUE(disk.disk().StatAt(dir, Name::Literal(file + ".aside")).ok());
    }
}

TEST(Unreadable, ARebuildableFileOnABadSectorChangesNoAnswer) {
  std::vector<std::string> files = {"tail"};
  for (const std::string& pack : ThePacks())
    files.push_back(pack.substr(0, pack.size() - 5) + ".idx");
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    BadDisk disk;
    disk.Break(file, 0, UINT64_MAX);
    ExpectAllIsThere(disk);
    ASSERT_TRUE(disk.Repair().ok());
    World world = disk.NewWorld();
    auto store = Must(world.Open());
    if (file != "tail") Must(MakeCheckpoint(*store, "new", {{"n", "x"}}));
  }
}

TEST(Unreadable, WhatIsInTheWayOfManifestAndLockIsMovedAside) {
  for (const char* file : {"manifest", "lock"})
    for (FileType type : {FileType::kDirectory, FileType::kSymlink}) {
      SCOPED_TRACE(std::string(file) + " is " + std::string(FileTypeName(type)));
      BadDisk disk;
      disk.Replace(disk.Home(), file, type);
      if (file == std::string("manifest")) {
        World world = disk.NewWorld();
        auto opened = world.Open(Store::Mode::kRead);
        ASSERT_FALSE(opened.ok());
        EXPECT_EQ(opened.error().code, Errc::kCorrupt) << opened.error().what;
      }
      Status repaired = disk.Repair();
      ASSERT_TRUE(repaired.ok()) << repaired.error().what;
      ExpectAllIsThere(disk);
    }
}

}  // namespace
}  // namespace belay::test
