// What looks like damage and is somebody at work, and what a collection meets.

#include "store/damage_sample.h"
#include "support/fs_world.h"

namespace belay::test {
namespace {

TEST(Damage, AMissingPacksDirectoryIsSaidAndNothingIsMade) {
  DamagedDisk disk;
  for (const DirEntry& e : [&] {
         Fd dir = Must(disk.fs().OpenDir(AbsPath::Literal("/store/packs")));
         return Must(disk.fs().List(dir));
       }())
    disk.Delete("packs/" + e.name);
  {
    Fd dir = Must(disk.fs().OpenDir(AbsPath::Literal("/store")));
    Must(disk.fs().RemoveDir(dir, Name::Literal("packs")));
  }
  std::string before = disk.fs().TreeText();
  World world = Sample::Over(disk.fs());
  auto opened = world.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kCorrupt);
  EXPECT_EQ(disk.fs().TreeText(), before);
}

// Somebody publishes a checkpoint while another process verifies, collects or measures:
// at every call of theirs, so that no two looks at the store may contradict each other.
TEST(Damage, ACheckpointPublishedMeanwhileIsNotCalledDamage) {
  using Work = std::function<void(Store&)>;
  const std::pair<const char*, Work> works[] = {
      {"verify",
       [](Store& store) {
         auto report = Must(VerifyStore(store, {.read_data = true}));
         for (const std::string& d : report.damage) ADD_FAILURE() << d;
       }},
      {"gc", [](Store& store) { Must(CollectGarbage(store, {.everything = true})); }},
      {"usage", [](Store& store) { Must(MeasureUsage(store)); }},
  };
  for (const auto& [name, work] : works) {
    SCOPED_TRACE(name);
    for (int at = 1;; ++at) {
      DamagedDisk disk;
      int calls = 0;
      bool made = false;
      HookFs fs(disk.fs(), [&](FsCall, const std::string&) -> Status {
        if (++calls != at) return Ok();
        World other = Sample::Over(disk.fs());
        auto store = other.Open();
        if (!store.ok()) return Ok();
        auto id = MakeCheckpoint(**store, "new", {{"n", Noise(8, 600)}});
        // Not while the other one is alone with the store.
        made = id.ok();
        EXPECT_TRUE(id.ok() || id.error().code == Errc::kBusy) << id.error().what;
        return Ok();
      });
      World world = Sample::Over(fs);
      auto store = Must(world.Open());
      SCOPED_TRACE("call " + std::to_string(at));
      work(*store);
      if (calls < at) break;
      if (!made) continue;
      auto all = Must(ReadAll(*store));
      EXPECT_TRUE(all.contains("new"));
    }
  }
}

// Others publish and drop while GC is at work, the first time so that the pack they
// begin is worth collecting too, the second time in that very pack.
TEST(Collect, ADropPublishedMeanwhileStays) {
  auto run = [](int first, int second) {
    DamagedDisk disk;
    {
      // Something unwanted in the open pack, so that it is sealed and collected.
      World before = Sample::Over(disk.fs());
      auto store = Must(before.Open());
      Must(MakeCheckpoint(*store, "unwanted", {{"u", Noise(6, 200)}}));
      Must(DropCheckpoints(*store, {"unwanted"}));
    }
    int calls = 0;
    bool dropped = false;
    HookFs fs(disk.fs(), [&](FsCall, const std::string&) -> Status {
      ++calls;
      if (calls != first && calls != second) return Ok();
      World other = Sample::Over(disk.fs());
      other.options.lock_wait_ms = 0;
      auto store = other.Open();
      if (!store.ok()) return Ok();
      if (calls == first) {
        if (MakeCheckpoint(**store, "brief", {{"n", Noise(8, 600)}}).ok())
          (void)DropCheckpoints(**store, {"brief"});
      } else {
        dropped = DropCheckpoints(**store, {"two"}).ok();
      }
      return Ok();
    });
    World world = Sample::Over(fs);
    auto store = Must(world.Open());
    Must(CollectGarbage(*store, {.everything = true}));
    store.reset();
    World after = Sample::Over(disk.fs());
    store = Must(after.Open());
    auto all = Must(ReadAll(*store));
    SCOPED_TRACE(std::to_string(first) + ", then " + std::to_string(second));
    EXPECT_EQ(all.contains("two"), !dropped);
    EXPECT_TRUE(all.contains("one"));
    auto report = Must(VerifyStore(*store, {.read_data = true}));
    for (const std::string& d : report.damage) ADD_FAILURE() << d;
    return calls;
  };
  const int calls = run(-1, -1);
  for (int first = 1; first <= calls; first += static_cast<int>(Stride(1)))
    for (int later = 1; first + later <= calls + 12; later += 2)
      run(first, first + later);
}

TEST(Collect, TheNewestRecordOfARootStays) {
  MemFs disk;
  World world(disk);
  auto store = Must(world.Open());
  RootId root(world.random.NewId());
  for (const char* path : {"/old", "/new"}) {
    auto writer = Must(store->Begin());
    writer->Add(ToRecord(Root{root, path}, RecordId(root), 1));
    Must(writer->Commit());
  }
  Must(MakeCheckpoint(*store, "gone", {{"a", Noise(1, 9000)}}, root));
  Must(DropCheckpoints(*store, {"gone"}));
  Must(CollectGarbage(*store, {.everything = true}));
  LogView log;
  Must(ReadOn(*store, log));
  ASSERT_FALSE(log.records.empty());
  EXPECT_EQ(Must(ToRoot(log.records.back())).path, "/new");
}

// Their encodings are the same but for the number that the batch gives them.
TEST(Collect, TwoRecordsThatDifferInTheirNumbersAloneBothStay) {
  MemFs disk;
  World world(disk);
  world.options.pack_target = 8000;
  auto store = Must(world.Open());
  Must(MakeCheckpoint(*store, "same", {{"a", "x"}}));
  Must(MakeCheckpoint(*store, "gone", {{"b", Noise(1, 5000)}}));
  Must(MakeCheckpoint(*store, "kept", {{"c", Noise(2, 6000)}}));
  Must(MakeCheckpoint(*store, "same", {{"a", "x"}}));
  Must(DropCheckpoints(*store, {"gone"}));
  ASSERT_GE(store->manifest().packs.size(), 2u);
  Must(CollectGarbage(*store, {}));
  LogView log;
  Must(ReadOn(*store, log));
  int same = 0;
  for (const LogRecord& r : log.records) same += r.id == IdFor("same");
  EXPECT_EQ(same, 2);
}

// Somebody makes the store between two looks of somebody who only wants to read it.
TEST(Damage, AStoreThatIsJustBeingMadeIsNotADamagedOne) {
  for (const char* look : {"packs", "manifest"}) {
    MemFs disk;
    {
      auto root = disk.OpenDir(AbsPath::Literal("/"));
      Must(disk.MakeDir(*root, Name::Literal("store"), 0700));
      auto store = disk.OpenDir(AbsPath::Literal("/store"));
      if (look == std::string("manifest"))
        Must(disk.MakeDir(*store, Name::Literal("packs"), 0700));
    }
    bool made = false;
    HookFs fs(
        disk, [](FsCall, const std::string&) -> Status { return Ok(); },
        [&](FsCall call, const std::string& name) {
          if (made || call != FsCall::kOpen || name != look) return;
          made = true;
          World other(disk, 2);
          auto store = Must(other.Open());
          Must(MakeCheckpoint(*store, "one", {{"a", "b"}}));
        });
    World world(fs);
    auto opened = world.Open(Store::Mode::kRead);
    ASSERT_TRUE(made) << look;
    ASSERT_TRUE(opened.ok()) << look << ": " << opened.error().what;
    EXPECT_EQ(Must(ReadAll(**opened)).size(), 1u) << look;
  }
}

}  // namespace
}  // namespace belay::test
