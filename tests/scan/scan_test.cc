// What a scan covers, what it leaves out and says so, and what it takes over.

#include "scan/scan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/fault_fs.h"
#include "scan/rules_record.h"
#include "scan/tree_diff.h"
#include "store/batch_writer.h"
#include "support/pass_fs.h"
#include "support/race_fs.h"
#include "support/scan_world.h"
#include "support/store_fixture.h"
#include "support/truncating_fs.h"

namespace belay {
namespace {

using test::Must;
using test::N;
using test::P;
using test::ScanWorld;

constexpr int64_t kLater = 10'000'000'000;

std::string Text(const std::vector<SkippedPath>& skipped) {
  std::string text;
  for (const SkippedPath& p : skipped)
    text += p.path + ":" + std::string(SkipName(p.why)) + " ";
  return text;
}

class ScanTest : public testing::Test {
 protected:
  ScanWorld world_;
};

TEST_F(ScanTest, ReadsNothingThatDidNotChange) {
  world_.Dir("src");
  world_.Put("a", "1");
  world_.Put("src/b", "2");
  world_.Link("l", "a");
  world_.Pass(kLater);
  ScanSummary first = world_.Scanned();
  EXPECT_EQ(first.files, 3u);
  EXPECT_EQ(first.read_files, 3u);
  EXPECT_EQ(first.listed_dirs, 2u);
  ScanSummary second = world_.Scanned();
  EXPECT_EQ(second.read_files, 0u);
  EXPECT_EQ(second.listed_dirs, 0u);
  EXPECT_EQ(second.tree, first.tree);
  EXPECT_EQ(second.files, 3u);
}

TEST_F(ScanTest, WhatChangesAfterTheReleaseIsLeftOut) {
  world_.Put("before", "1");
  world_.Put("edited", "old");
  world_.Link("link", "before");
  world_.Pass(kLater);
  std::atomic<int64_t> released{0};
  world_.request.released_ns = &released;
  ScanSummary whole = world_.Scanned();
  EXPECT_FALSE(whole.late);
  EXPECT_EQ(whole.files, 3u);

  // The program is let go, and changes things before the scan comes to them.
  released = world_.clock.WallMillis() * 1'000'000;
  world_.Pass(kLater);
  world_.Put("edited", "by the program");
  world_.Put("new", "by the program");
  world_.Link("new-link", "before");
  ScanSummary late = world_.Scanned();
  EXPECT_TRUE(late.late);
  EXPECT_EQ(late.files, 2u);
  std::vector<SkippedPath> wanted = {{"edited", Skip::kChangedLate},
                                     {"new", Skip::kChangedLate},
                                     {"new-link", Skip::kChangedLate}};
  EXPECT_EQ(late.skipped, wanted);
  // And the next one, which nobody waits for, has it all.
  released = 0;
  ScanSummary next = world_.Scanned();
  EXPECT_FALSE(next.late);
  EXPECT_EQ(next.files, 5u);
  EXPECT_EQ(next.tree, world_.Fresh().tree);
}

// One that was let go waits for its turn, and whoever comes after the program gets it
// first: the cache has what the program made.
TEST_F(ScanTest, WhatAnotherScanSawAfterTheReleaseIsLeftOut) {
  world_.Dir("dir");
  world_.Put("dir/edited", "old");
  world_.Put("listed", "old");
  world_.Put("before", "1");
  world_.Scanned();
  world_.Pass(kLater);
  std::atomic<int64_t> released{world_.clock.WallMillis() * 1'000'000};
  world_.Pass(kLater);
  world_.Put("dir/edited", "by the program");
  world_.Put("listed", "by the program");
  world_.Pass(kLater);
  const ScanSummary after = world_.Scanned();
  EXPECT_FALSE(after.late);
  world_.request.released_ns = &released;
  const std::vector<SkippedPath> wanted = {{"dir/edited", Skip::kChangedLate},
                                           {"listed", Skip::kChangedLate}};
  ScanSummary late = world_.Scanned();
  EXPECT_TRUE(late.late);
  EXPECT_EQ(late.skipped, wanted);
  // Where the directory is listed again, too.
  world_.request.released_ns = nullptr;
  EXPECT_EQ(world_.Scanned().tree, after.tree);
  world_.Pass(kLater);
  world_.Put("new", "by somebody");
  world_.request.released_ns = &released;
  late = world_.Scanned();
  EXPECT_EQ(late.skipped.size(), 3u);
  EXPECT_EQ(late.files, 1u);
  world_.request.released_ns = nullptr;
  const ScanSummary next = world_.Scanned();
  EXPECT_EQ(next.tree, world_.Fresh().tree);
}

// Nobody knows when it went: not before, and not that it was there.
TEST_F(ScanTest, WhatIsGoneFromADirectoryThatChangedAfterTheReleaseIsNamed) {
  for (const char* dir : {"d", "gone", "old", "d/sub"}) world_.Dir(dir);
  for (const char* path : {"d/a", "d/z", "d/sub/f", "gone/f", "old/gone", "old/kept"})
    world_.Put(path, path);
  world_.Pass(kLater);
  world_.Scanned();
  world_.Remove("old/gone");
  world_.Put("d/mine", "before the call");
  world_.Pass(kLater);
  std::atomic<int64_t> released{world_.clock.WallMillis() * 1'000'000};
  world_.request.released_ns = &released;
  world_.Pass(kLater);
  for (const char* path : {"d/a", "d/z", "d/sub/f", "gone/f"}) world_.Remove(path);
  Must(world_.disk.RemoveDir(world_.root, N("gone")));
  const ScanSummary late = world_.Scanned();
  EXPECT_TRUE(late.late);
  EXPECT_EQ(
      Text(late.skipped),
      "d/a:changed_late d/sub/f:changed_late d/z:changed_late gone:changed_late ");
  EXPECT_EQ(late.files, 2u) << "d/mine, old/kept";
  // By the end of the call they are gone, even when that is late, too.
  world_.Pass(kLater);
  released = world_.clock.WallMillis() * 1'000'000;
  const ScanSummary after = world_.Scanned();
  EXPECT_EQ(Text(after.skipped), "");
  EXPECT_FALSE(after.late);
  EXPECT_EQ(after.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, ADirectoryThatComesAfterTheReleaseWasNotThereBefore) {
  for (const char* dir : {"from", "other"}) world_.Dir(dir);
  for (const char* path : {"from/f", "other/f"}) world_.Put(path, path);
  world_.Pass(kLater);
  world_.Scanned();
  world_.Dir("users");
  world_.Put("users/f", "before the call");
  world_.Pass(kLater);
  std::atomic<int64_t> released{world_.clock.WallMillis() * 1'000'000};
  world_.request.released_ns = &released;
  world_.Pass(kLater);
  Must(world_.disk.Rename(world_.root, N("from"), world_.root, N("to"),
                          RenameHow::kNoReplace));
  world_.Dir("made");
  world_.Dir("made/below");
  world_.Put("made/below/f", "by the program");
  world_.Put("users/g", "by the program");
  const ScanSummary late = world_.Scanned();
  EXPECT_EQ(Text(late.skipped),
            "from:changed_late made:changed_late to:changed_late "
            "users/g:changed_late ");
  EXPECT_EQ(late.files, 2u) << "other/f, users/f";
  released = 0;
  EXPECT_EQ(world_.Scanned().tree, world_.Fresh().tree);
}

// The program is let go before each call of a scan in turn, and at once does what
// `meddle` does: what was found is the state before, or is called partial. With and
// without a cache, which knows the tree as `make` made it, before `edit`.
void LetGoBeforeEachCall(const std::function<void(ScanWorld&)>& make,
                         const std::function<void(ScanWorld&)>& edit,
                         const std::function<void(ScanWorld&)>& meddle,
                         bool only_removes) {
  int partial = 0, complete = 0;
  for (const bool cached : {false, true}) {
    for (int point = 1;; ++point) {
      ScanWorld world;
      make(world);
      world.Pass(kLater);
      if (cached) world.Scanned();
      edit(world);
      world.Pass(kLater);
      const ScanSummary before = world.Fresh();
      std::atomic<int64_t> released{0};
      world.request.released_ns = &released;
      int calls = 0;
      test::RaceFs racing(world.disk, [&] {
        if (++calls != point) return;
        released = world.clock.WallMillis() * 1'000'000;
        world.Pass(kLater);
        meddle(world);
      });
      auto scan = Must(world.TryScan(racing));
      const ScanSummary& found = scan->summary();
      if (calls < point) break;  // it was done before
      ++(found.late ? partial : complete);
      EXPECT_TRUE(found.late || found.tree == before.tree)
          << "let go before call " << point << (cached ? ", with a cache" : "");
      if (!only_removes || !cached) continue;
      // And what it lacks is named.
      auto read = [&](const ObjectId& id) { return world.sink.Read(id); };
      Must(DiffTrees(
          before.tree, found.tree, read, [&](std::string_view path, Change change) {
            const bool named =
                std::ranges::any_of(found.skipped, [&](const SkippedPath& skipped) {
                  return skipped.path == path || path.starts_with(skipped.path + "/");
                });
            EXPECT_TRUE(change == Change::kDeleted && named)
                << path << ", let go before call " << point;
          }));
    }
  }
  EXPECT_GT(partial, 10);
  EXPECT_GT(complete, 5);
}

TEST_F(ScanTest, ATruncationAfterTheReleaseIsNotTheStateBefore) {
  const std::string large(size_t{3} << 20, 'x');
  for (const bool cached : {false, true}) {
    ScanWorld world;
    world.Dir("d");
    for (const char* path : {"d/emptied", "d/emptied-too", "shorter"})
      world.Put(path, path);
    world.Put("d/large", large);
    world.Put("kept", "1");
    world.Pass(kLater);
    if (cached) world.Scanned();
    std::atomic<int64_t> released{world.clock.WallMillis() * 1'000'000};
    world.request.released_ns = &released;
    test::TruncatingFs truncating(world.disk);
    auto truncate = [&](const char* path, uint64_t size) {
      Must(truncating.Begin(world.root, P(path), size));
    };
    world.Pass(kLater);
    truncate("d/emptied", 0);
    truncate("d/emptied-too", 0);
    truncate("d/large", size_t{2} << 20);
    truncate("shorter", 3);
    const auto scan = Must(world.TryScan(truncating));
    EXPECT_TRUE(scan->summary().late);
    EXPECT_EQ(Text(scan->summary().skipped),
              "d/emptied:changed_late d/emptied-too:changed_late "
              "d/large:changed_late shorter:changed_late ")
        << (cached ? "with a cache" : "without one");
    EXPECT_EQ(scan->summary().files, 1u);
  }
}

TEST_F(ScanTest, WhatChangesEachTimeItIsReadIsLeftOutWhenTheLastWasAfterTheRelease) {
  std::atomic<int64_t> released{0};
  world_.request.released_ns = &released;
  world_.Put("f", "1");
  world_.Pass(kLater);
  class Busy final : public test::PassFs {
   public:
    Busy(Fs& inner, std::function<void()> write)
        : PassFs(inner), write_(std::move(write)) {}
    Result<size_t> Read(const Fd& file, uint64_t offset,
                        std::span<std::byte> out) override {
      write_();
      return PassFs::Read(file, offset, out);
    }

   private:
    std::function<void()> write_;
  };
  int reads = 0;
  Busy busy(world_.disk, [&] {
    if (++reads == 3) released = world_.clock.WallMillis() * 1'000'000;
    world_.Pass(kLater);
    world_.Put("f", "by the program");
  });
  const auto scan = Must(world_.TryScan(busy));
  EXPECT_EQ(Text(scan->summary().skipped), "f:changed_late ");
  EXPECT_EQ(reads, 3);
}

// What a removal leaves behind has no time to be asked.
TEST_F(ScanTest, WhatGoesAfterTheReleaseIsNotCalledTheStateBefore) {
  LetGoBeforeEachCall(
      [](ScanWorld& world) {
        for (const char* dir : {"a", "b", "c", "d", "moved"}) world.Dir(dir);
        for (const char* path : {"a/f", "b/f", "c/f", "d/f", "d/g", "moved/f", "top"})
          world.Put(path, path);
        world.Link("c/link", "f");
      },
      [](ScanWorld& world) {
        for (const char* path : {"a/f", "c/f", "d/f"}) world.Put(path, "edited");
      },
      [](ScanWorld& world) {
        for (const char* path : {"b/f", "c/f", "c/link", "d/f", "top"})
          world.Remove(path);
        Must(world.disk.Rename(world.root, N("moved"), world.root, N("elsewhere"),
                               RenameHow::kReplace));
      },
      /*only_removes=*/true);
}

// Nothing vanishes, and what is in the directories is old.
TEST_F(ScanTest, WhatChangesPlacesAfterTheReleaseIsNotCalledTheStateBefore) {
  static constexpr const char* kFiles[] = {"a/f", "b/f", "m/x/y/f", "n/x/y/f"};
  LetGoBeforeEachCall(
      [](ScanWorld& world) {
        for (const char* dir : {"a", "b", "m", "m/x", "m/x/y", "n", "n/x", "n/x/y"})
          world.Dir(dir);
        for (const char* path : kFiles) world.Put(path, path);
      },
      [](ScanWorld& world) {
        // More than is read on the way.
        for (const char* path : kFiles)
          world.Put(path, path + std::string(size_t{513} << 10, 'x'));
      },
      [](ScanWorld& world) {
        auto swap = [&](const Fd& one, const Fd& other, const char* a, const char* b) {
          Must(world.disk.Rename(one, N(a), other, N(b), RenameHow::kExchange));
        };
        swap(world.root, world.root, "a", "b");
        Fd m = Must(world.disk.Open(world.root, N("m"), OpenMode::Directory()));
        Fd n = Must(world.disk.Open(world.root, N("n"), OpenMode::Directory()));
        swap(m, n, "x", "x");
      },
      /*only_removes=*/false);
}

TEST_F(ScanTest, AnEditInPlaceReadsThatFileAndListsNothing) {
  world_.Dir("src");
  for (char c = 'a'; c <= 'z'; ++c) world_.Put(std::string("src/") + c, "old");
  world_.Pass(kLater);
  world_.Scanned();
  world_.Put("src/m", "new");
  world_.Pass(kLater);
  ScanSummary second = world_.Scanned();
  EXPECT_EQ(second.read_files, 1u);
  EXPECT_EQ(second.listed_dirs, 0u);
  EXPECT_EQ(second.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, AFileOfTheLastTickIsReadAgain) {
  world_.Put("a", "1");
  world_.Scanned();
  EXPECT_EQ(world_.Scanned().read_files, 1u) << "its time stamp might not have moved";
  world_.Pass(kLater);
  world_.Scanned();
  EXPECT_EQ(world_.Scanned().read_files, 0u);
}

TEST_F(ScanTest, ADirectoryOfTheLastTickIsListedAgain) {
  world_.Put("a", "1");
  world_.Scanned();
  EXPECT_EQ(world_.Scanned().listed_dirs, 1u);
  world_.Pass(kLater);
  world_.Scanned();
  EXPECT_EQ(world_.Scanned().listed_dirs, 0u);
}

TEST_F(ScanTest, EmptyDirectoriesModesAndOwnersAreInTheTree) {
  world_.Dir("empty");
  world_.Put("x", "1", 0755);
  ObjectId before = world_.Fresh().tree;
  Fd x = Must(world_.disk.Open(world_.root, N("x"), OpenMode::Read()));
  Must(world_.disk.SetMode(x, 0700));
  ObjectId mode = world_.Fresh().tree;
  EXPECT_NE(mode, before);
  Must(world_.disk.SetOwner(x, 7, 8));
  ObjectId owner = world_.Fresh().tree;
  EXPECT_NE(owner, mode);
  Must(world_.disk.RemoveDir(world_.root, N("empty")));
  EXPECT_NE(world_.Fresh().tree, owner);
}

TEST_F(ScanTest, AttributesOfADirectoryAreSeenWithTheCacheToo) {
  world_.Dir("d");
  world_.Put("d/f", "1");
  world_.Pass(kLater);
  ScanSummary first = world_.Scanned();
  Fd d = Must(world_.disk.Open(world_.root, N("d"), OpenMode::Directory()));
  Must(world_.disk.SetMode(d, 0700));
  world_.Pass(kLater);
  ScanSummary second = world_.Scanned();
  EXPECT_NE(second.tree, first.tree);
  EXPECT_EQ(second.tree, world_.Fresh().tree);
  Must(world_.disk.SetXattr(d, "user.note", AsBytes("v")));
  world_.Pass(kLater);
  ScanSummary third = world_.Scanned();
  EXPECT_NE(third.tree, second.tree);
  EXPECT_EQ(third.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, ExtendedAttributesAreCapturedButNotTheMachinesOwn) {
  world_.Put("a", "1");
  ObjectId plain = world_.Fresh().tree;
  Fd a = Must(world_.disk.Open(world_.root, N("a"), OpenMode::Read()));
  Must(world_.disk.SetXattr(a, "security.selinux", AsBytes("label")));
  EXPECT_EQ(world_.Fresh().tree, plain);
  Must(world_.disk.SetXattr(a, "system.posix_acl_access", AsBytes("acl")));
  ObjectId with_acl = world_.Fresh().tree;
  EXPECT_NE(with_acl, plain);
  Must(world_.disk.SetXattr(a, "user.x", AsBytes("v")));
  EXPECT_NE(world_.Fresh().tree, with_acl);
}

TEST_F(ScanTest, SpecialFilesAreLeftOutAndSaid) {
  world_.Put("a", "1");
  Must(world_.disk.MakeSpecial(world_.root, N("fifo"), FileType::kFifo, 0644));
  Must(world_.disk.MakeSpecial(world_.root, N("sock"), FileType::kSocket, 0644));
  Must(world_.disk.MakeSpecial(world_.root, N("dev"), FileType::kDevice, 0644));
  EXPECT_EQ(Text(world_.Scanned().skipped), "dev:special fifo:special sock:special ");
  world_.Pass(kLater);
  EXPECT_EQ(Text(world_.Scanned().skipped), "dev:special fifo:special sock:special ");
  EXPECT_EQ(world_.Scanned().files, 1u);
}

TEST_F(ScanTest, AFileOverTheCapIsLeftOutUntilItShrinks) {
  world_.request.max_file_size = 10;
  world_.Put("big", "12345678901");
  world_.Put("ok", "1234567890");
  world_.Pass(kLater);
  ScanSummary first = world_.Scanned();
  EXPECT_EQ(Text(first.skipped), "big:too_large ");
  EXPECT_EQ(first.files, 1u);
  world_.Put("ok", "123456789012");
  world_.Pass(kLater);
  EXPECT_EQ(Text(world_.Scanned().skipped), "big:too_large ok:too_large ");
  world_.Put("big", "1");
  world_.Pass(kLater);
  ScanSummary third = world_.Scanned();
  EXPECT_EQ(Text(third.skipped), "ok:too_large ");
  EXPECT_EQ(third.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, AnUnreadableFileIsLeftOutAndNeverTakenForAbsent) {
  world_.Put("a", "1");
  world_.Put("b", "2");
  // As another user would meet it: the disk in memory is always root's.
  Fault fault = Fault::Errno(1, EACCES, true);
  fault.only = {FsCall::kOpen};
  FaultFs faulty(world_.disk, fault);
  ScanRequest request = world_.request;
  request.rules = std::make_shared<RuleConfig>(world_.lists);
  request.cache_dir = nullptr;
  auto scan =
      Must(Scan::Run(faulty, world_.clock, world_.random, request, world_.sink));
  EXPECT_EQ(Text(scan->summary().skipped), "a:unreadable b:unreadable ");
  EXPECT_EQ(scan->summary().files, 0u);
}

TEST_F(ScanTest, AnUnreadableFileIsTriedAgainNextTime) {
  world_.Put("a", "1");
  world_.Pass(kLater);
  {
    Fault fault = Fault::Errno(1, EIO, true);
    fault.only = {FsCall::kRead};
    FaultFs faulty(world_.disk, fault);
    Fd cache = Must(faulty.OpenDir(AbsPath::Literal("/cache")));
    ScanRequest request = world_.request;
    request.rules = std::make_shared<RuleConfig>(world_.lists);
    request.cache_dir = &cache;
    auto scan =
        Must(Scan::Run(faulty, world_.clock, world_.random, request, world_.sink));
    EXPECT_EQ(Text(scan->summary().skipped), "a:unreadable ");
    Must(scan->SaveCache());
  }
  ScanSummary after = world_.Scanned();
  EXPECT_EQ(Text(after.skipped), "");
  EXPECT_EQ(after.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, RunningOutOfDescriptorsIsNoReasonToLeaveAFileOut) {
  world_.Put("a", "1");
  for (int sys : {EMFILE, ENFILE, ENOMEM}) {
    Fault fault = Fault::Errno(1, sys, true);
    fault.only = {FsCall::kOpen};
    FaultFs faulty(world_.disk, fault);
    ScanRequest request = world_.request;
    request.rules = std::make_shared<RuleConfig>(world_.lists);
    request.cache_dir = nullptr;
    auto scan = Scan::Run(faulty, world_.clock, world_.random, request, world_.sink);
    EXPECT_FALSE(scan.ok()) << sys;
  }
}

TEST_F(ScanTest, OtherMountsAreNotEntered) {
  world_.Dir("mnt");
  world_.Put("mnt/secret", "1");
  world_.Put("file", "2");
  Must(world_.disk.SetMountRoot(world_.root, N("mnt"), true));
  Must(world_.disk.SetMountRoot(world_.root, N("file"), true));
  world_.Pass(kLater);
  ScanSummary mounted = world_.Scanned();
  EXPECT_EQ(Text(mounted.skipped), "file:other_mount mnt:other_mount ");
  EXPECT_EQ(mounted.files, 0u);
  EXPECT_EQ(Text(world_.Scanned().skipped), "file:other_mount mnt:other_mount ");
  // Unmounting changes no time stamp of the parent.
  Must(world_.disk.SetMountRoot(world_.root, N("mnt"), false));
  Must(world_.disk.SetMountRoot(world_.root, N("file"), false));
  ScanSummary unmounted = world_.Scanned();
  EXPECT_EQ(Text(unmounted.skipped), "");
  EXPECT_EQ(unmounted.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, AMountThatComesIsSeenThoughNoTimeChanged) {
  world_.Dir("d");
  world_.Put("d/f", "1");
  world_.Pass(kLater);
  world_.Scanned();
  Must(world_.disk.SetMountRoot(world_.root, N("d"), true));
  EXPECT_EQ(Text(world_.Scanned().skipped), "d:other_mount ");
}

TEST_F(ScanTest, ProtectedRootsInsideAndTheStoreAreLeftAlone) {
  for (const char* dir : {"inner", "inner/deep", "store", "mine"}) world_.Dir(dir);
  world_.Put("inner/a", "1");
  world_.Put("store/pack", "2");
  world_.Put("mine/b", "3");
  world_.request.other_roots = {AbsPath::Literal("/p/inner"), AbsPath::Literal("/q")};
  world_.request.store_dir = AbsPath::Literal("/p/store");
  ScanSummary scan = world_.Scanned();
  EXPECT_EQ(scan.files, 1u);
  EXPECT_EQ(Text(scan.skipped), "inner:other_root store:other_root ");
  world_.request.other_roots.clear();
  world_.Pass(kLater);
  EXPECT_EQ(world_.Scanned().files, 2u) << "no longer a root of its own";
}

TEST_F(ScanTest, NamesThatGitWouldMistakeForItsOwnAreLeftOutAndSaid) {
  world_.Dir(".GIT");
  world_.Put(".GIT/config", "x");
  world_.Put("git~1", "x");
  EXPECT_EQ(Text(world_.Scanned().skipped), ".GIT:reserved_name git~1:reserved_name ");
}

TEST_F(ScanTest, RulesDecideAndAChangeOfThemIsFollowed) {
  world_.Dir("d");
  world_.Dir("d/sub");
  world_.Put("d/a.o", "1");
  world_.Put("d/sub/b.o", "1");
  world_.Put("d/c", "1");
  world_.Pass(kLater);
  EXPECT_EQ(world_.Scanned().files, 3u);
  world_.Put(".gitignore", "*.o\n");
  world_.Pass(kLater);
  ScanSummary ignored = world_.Scanned();
  EXPECT_EQ(ignored.files, 2u);
  EXPECT_EQ(ignored.tree, world_.Fresh().tree);
  world_.Put("d/sub/.gitignore", "!b.o\n");
  world_.Pass(kLater);
  EXPECT_EQ(world_.Scanned().files, 4u);
  world_.Remove(".gitignore");
  world_.Pass(kLater);
  ScanSummary gone = world_.Scanned();
  EXPECT_EQ(gone.files, 4u);
  EXPECT_EQ(gone.tree, world_.Fresh().tree);
}

TEST_F(ScanTest, AnIgnoredRuleFileStillRulesAndItsBytesAreKept) {
  world_.Put(".gitignore", ".gitignore\n*.o\n");
  world_.Put("a.o", "1");
  world_.Put("b", "1");
  world_.Pass(kLater);
  ScanSummary scan = world_.Scanned();
  EXPECT_EQ(scan.files, 1u);
  EXPECT_EQ(Text(scan.skipped), "");
  ASSERT_EQ(scan.loose_rules.size(), 1u);
  EXPECT_EQ(scan.loose_rules[0].name, ".gitignore");
  EXPECT_EQ(scan.loose_rules[0].bytes, ".gitignore\n*.o\n");
  EXPECT_EQ(world_.Scanned().loose_rules.size(), 1u) << "with the cache too";
  world_.Put(".gitignore", ".gitignore\n");
  world_.Pass(kLater);
  EXPECT_EQ(world_.Scanned().files, 2u);
}

TEST_F(ScanTest, SettingsThatChangeAreFollowed) {
  world_.Put("a.log", "1");
  world_.Put("b", "1");
  world_.Put(".env", "SECRET=1");
  world_.lists.secret_patterns = {".env"};
  world_.Pass(kLater);
  EXPECT_EQ(world_.Scanned().files, 2u);
  world_.lists.default_excludes = false;
  EXPECT_EQ(world_.Scanned().files, 3u);
  world_.lists.skip_secrets = true;
  ScanSummary skipping = world_.Scanned();
  EXPECT_EQ(skipping.files, 2u);
  EXPECT_EQ(Text(skipping.skipped), ".env:secret ");
  world_.lists.exclude = {"b"};
  EXPECT_EQ(world_.Scanned().files, 1u);
}

TEST_F(ScanTest, ADirectoryEnteredOnlyForWhatIsProtectedIsThereOnlyWithIt) {
  world_.Dir("dist");
  world_.Put("dist/out.js", "1");
  world_.lists.protect = {"dist/keep.db"};
  world_.Pass(kLater);
  ScanSummary without = world_.Scanned();
  EXPECT_EQ(without.files, 0u);
  ObjectId empty = without.tree;
  world_.Put("dist/keep.db", "1");
  world_.Pass(kLater);
  ScanSummary with = world_.Scanned();
  EXPECT_EQ(with.files, 1u);
  EXPECT_NE(with.tree, empty);
  world_.Remove("dist/keep.db");
  world_.Pass(kLater);
  EXPECT_EQ(world_.Scanned().tree, empty);
}

TEST_F(ScanTest, TooManyFilesAreRefusedAndTheLargestDirectoriesNamed) {
  for (const char* dir : {"small", "big"}) world_.Dir(dir);
  for (int i = 0; i < 30; ++i) world_.Put("big/" + std::to_string(i), "");
  world_.Put("small/a", "");
  world_.request.max_files = 20;
  auto scan = world_.TryScan(world_.disk);
  ASSERT_FALSE(scan.ok());
  EXPECT_EQ(scan.error().code, Errc::kRefused);
  EXPECT_NE(scan.error().what.find("more than 20 files"), std::string::npos);
  EXPECT_NE(scan.error().what.find("(of 31: 30 in big/)"), std::string::npos)
      << scan.error().what;
}

TEST_F(ScanTest, TheLargestAreNamedThoughTheWalkEndedBeforeThem) {
  for (const char* dir : {"a", "b", "out", "z", "z/deep"}) world_.Dir(dir);
  for (const char* dir : {"a/", "b/"})
    for (int i = 0; i < 15; ++i) world_.Put(dir + std::to_string(i), "");
  for (int i = 0; i < 200; ++i) world_.Put("z/deep/" + std::to_string(i), "");
  for (int i = 0; i < 300; ++i) world_.Put("out/" + std::to_string(i), "");
  world_.Put(".gitignore", "out/\n");  // not covered: does not count
  world_.request.max_files = 20;
  auto scan = world_.TryScan(world_.disk);
  ASSERT_FALSE(scan.ok());
  EXPECT_EQ(scan.error().what,
            "there are more than 20 files here (of 231: 200 in z/deep/, 15 in a/, "
            "15 in b/)");
}

// A clock on which every look takes a second.
class SlowClock final : public Clock {
 public:
  int64_t WallMillis() override { return 1'800'000'000'000; }
  int64_t SteadyNanos() override { return now_ += 1'000'000'000; }
  void SleepNanos(int64_t nanos) override { now_ += nanos; }

 private:
  int64_t now_ = 0;
};

TEST_F(ScanTest, CountingWhatIsTooManyEndsInTime) {
  for (int d = 0; d < 50; ++d) {
    const std::string dir = "d" + std::to_string(d);
    world_.Dir(dir);
    for (int i = 0; i < 3; ++i) world_.Put(dir + "/" + std::to_string(i), "");
  }
  world_.request.max_files = 20;
  world_.request.rules = std::make_shared<RuleConfig>(world_.lists);
  SlowClock clock;
  auto scan = Scan::Run(world_.disk, clock, world_.random, world_.request, world_.sink);
  ASSERT_FALSE(scan.ok());
  EXPECT_NE(scan.error().what.find("(counted so far: 3 in d"), std::string::npos)
      << scan.error().what;
}

TEST_F(ScanTest, ARootThatIsGoneIsAnError) {
  world_.request.root = AbsPath::Literal("/nowhere");
  auto scan = world_.TryScan(world_.disk);
  ASSERT_FALSE(scan.ok());
  EXPECT_EQ(scan.error().code, Errc::kNotFound);
}

TEST_F(ScanTest, AFileThatNeverStandsStillIsKeptAndSaid) {
  world_.Put("log", "1");
  world_.Put("still", "1");
  world_.Pass(kLater);
  test::RaceFs racing(world_.disk, [&] {
    world_.Pass(5'000'000);
    world_.Put("log", std::to_string(world_.random.U64()));
  });
  ScanRequest request = world_.request;
  request.rules = std::make_shared<RuleConfig>(world_.lists);
  request.cache_dir = nullptr;
  auto scan =
      Must(Scan::Run(racing, world_.clock, world_.random, request, world_.sink));
  EXPECT_EQ(Text(scan->summary().skipped), "log:changing ");
  EXPECT_EQ(scan->summary().files, 2u);
}

TEST_F(ScanTest, WhatIsNoLongerCoveredIsNotDeleted) {
  MemFs store_disk;
  test::World store_world(store_disk);
  auto store = Must(store_world.Open());
  auto writer = Must(store->Begin());
  BatchSink sink(*writer);
  for (const char* dir : {"d", "d/deep", "empty", "e", "f"}) world_.Dir(dir);
  for (const char* path : {"a.o", "b.o", "d/x", "d/deep/y", "d/deep/z", "e/1", "f/1"})
    world_.Put(path, "1");
  world_.Link("l.o", "x");
  ScanRequest request = world_.request;
  request.rules = std::make_shared<RuleConfig>(world_.lists);
  auto first = Must(Scan::Run(world_.disk, world_.clock, world_.random, request, sink));
  const ObjectId base = first->summary().tree;
  Must(writer->Commit());
  Must(first->SaveCache());
  auto read = [&](const ObjectId& id) { return store->GetTree(id); };

  // Left out from now on; some of it is gone besides.
  world_.Pass(kLater);
  world_.Put(".gitignore", "*.o\nd/\nempty/\ne\nf\n");
  world_.Remove("b.o");
  world_.Remove("d/deep/z");
  Must(test::RemoveTree(world_.disk, world_.root, N("e")));
  Must(test::RemoveTree(world_.disk, world_.root, N("f")));
  world_.Put("f", "a file now");
  auto second =
      Must(Scan::Run(world_.disk, world_.clock, world_.random, request, world_.sink));
  std::set<std::string> deleted;
  const ChangeCounts counts =
      Must(second->ChangesSince(base, read, [&](std::string_view path, Change change) {
        if (change == Change::kDeleted) deleted.insert(std::string(path));
      }));
  EXPECT_EQ(deleted, (std::set<std::string>{"b.o", "d/deep/z", "e/1", "f/1"}));
  EXPECT_EQ(counts, (ChangeCounts{.added = 1, .deleted = 4}));
}

TEST_F(ScanTest, WhatChangedIsCountedAgainstAnotherTree) {
  MemFs store_disk;
  test::World store_world(store_disk);
  auto store = Must(store_world.Open());
  auto writer = Must(store->Begin());
  BatchSink sink(*writer);
  for (const char* dir : {"d", "gone"}) world_.Dir(dir);
  world_.Put("d/a", "1");
  world_.Put("d/b", "1");
  world_.Put("gone/x", "1");
  world_.Put("gone/y", "1");
  world_.Put("type", "file");
  ScanRequest request = world_.request;
  request.rules = std::make_shared<RuleConfig>(world_.lists);
  auto first = Must(Scan::Run(world_.disk, world_.clock, world_.random, request, sink));
  ObjectId base = first->summary().tree;
  Must(writer->Commit());
  auto read = [&](const ObjectId& id) { return store->GetTree(id); };
  EXPECT_EQ(Must(first->ChangesSince(base, read)), ChangeCounts());
  EXPECT_EQ(Must(first->ChangesSince(ObjectId(), read)), (ChangeCounts{.added = 5}));

  world_.Pass(kLater);
  world_.Put("d/a", "2");
  world_.Put("d/new", "1");
  Must(test::RemoveTree(world_.disk, world_.root, N("gone")));
  world_.Remove("type");
  world_.Dir("type");
  Fd b = Must(world_.disk.OpenBeneath(world_.root, P("d/b"), OpenMode::Read()));
  Must(world_.disk.SetMode(b, 0600));
  auto second =
      Must(Scan::Run(world_.disk, world_.clock, world_.random, request, world_.sink));
  std::string text;
  ChangeCounts counts =
      Must(second->ChangesSince(base, read, [&](std::string_view path, Change change) {
        text += std::string(path) + (change == Change::kAdded      ? "+ "
                                     : change == Change::kModified ? "~ "
                                                                   : "- ");
      }));
  EXPECT_EQ(counts,
            (ChangeCounts{.added = 2, .modified = 2, .deleted = 3, .directories = 1}))
      << text;
}

TEST_F(ScanTest, IdsOfAnotherGenerationAreLookedUp) {
  MemFs store_disk;
  test::World store_world(store_disk);
  auto store = Must(store_world.Open());
  world_.Put("a", "content of a");
  world_.Put("b", "content of b");
  world_.Pass(kLater);
  ScanRequest request = world_.request;
  request.rules = std::make_shared<RuleConfig>(world_.lists);
  request.generation = 0;
  world_.Scanned();  // ids are cached, and the store has none of them
  request.generation = 1;
  auto writer = Must(store->Begin());
  BatchSink sink(*writer);
  auto scan = Must(Scan::Run(world_.disk, world_.clock, world_.random, request, sink));
  EXPECT_EQ(scan->summary().read_files, 2u);
  EXPECT_TRUE(Must(writer->HasContent(Sha256::Of(AsBytes("content of a")))));
}

TEST_F(ScanTest, AttributesOfDirectoriesOfAnotherGenerationAreLookedUp) {
  MemFs store_disk;
  test::World store_world(store_disk);
  auto store = Must(store_world.Open());
  world_.Dir("d");
  world_.Dir("d/e");
  world_.Put("d/e/a", "content of a");
  for (const char* path : {"d", "d/e"}) {
    Fd dir = Must(world_.disk.OpenBeneath(world_.root, P(path), OpenMode::Directory()));
    Must(world_.disk.SetXattr(dir, "user.of", AsBytes(path)));
  }
  world_.Pass(kLater);
  ScanRequest request = world_.request;
  request.rules = std::make_shared<RuleConfig>(world_.lists);
  const ObjectId tree = world_.Scanned().tree;  // cached; the store has none of them
  request.generation = 1;
  auto writer = Must(store->Begin());
  BatchSink sink(*writer);
  auto scan = Must(Scan::Run(world_.disk, world_.clock, world_.random, request, sink));
  EXPECT_EQ(scan->summary().tree, tree);
  for (const char* path : {"d", "d/e"}) {
    const Bytes value(AsBytes(path).begin(), AsBytes(path).end());
    EXPECT_TRUE(
        Must(writer->HasContent(Sha256::Of(EncodeXattrs({{"user.of", value}})))))
        << path;
  }
}

// A disk that does not tell the attributes of directories.
struct MuteFs final : test::PassFs {
  using PassFs::PassFs;
  Result<std::vector<std::string>> ListXattrs(const Fd& file) override {
    BELAY_TRY(FileStat stat, Stat(file));
    if (stat.type == FileType::kDirectory) return SysError(EIO, "listxattr");
    return PassFs::ListXattrs(file);
  }
};

TEST_F(ScanTest, AttributesOfADirectoryThatCannotBeReadAreNotNone) {
  world_.Dir("d");
  world_.Put("d/a", "content of a");
  Fd dir = Must(world_.disk.OpenBeneath(world_.root, P("d"), OpenMode::Directory()));
  Must(world_.disk.SetXattr(dir, "user.note", AsBytes("v")));
  world_.Pass(kLater);
  MuteFs mute(world_.disk);
  auto attributes = [&](const ScanSummary& summary) {
    return Must(world_.sink.Read(summary.tree)).entries[0].xattrs;
  };
  // Nothing is known of it: it is held, and said to be without them.
  auto first = Must(world_.TryScan(mute));
  EXPECT_EQ(Text(first->summary().skipped), "d:attributes_unknown ");
  EXPECT_EQ(first->summary().files, 1u);
  Must(first->SaveCache());
  // It is looked at again though nothing changed.
  const ScanSummary known = world_.Scanned();
  EXPECT_EQ(Text(known.skipped), "");
  EXPECT_FALSE(attributes(known).is_zero());

  // Known once, and listed again because a file came: they do not look removed.
  world_.Put("d/b", "content of b");
  world_.Pass(kLater);
  auto third = Must(world_.TryScan(mute));
  EXPECT_EQ(Text(third->summary().skipped), "d:attributes_unknown ");
  EXPECT_EQ(attributes(third->summary()), attributes(known));
  Must(third->SaveCache());
  EXPECT_EQ(Text(world_.Scanned().skipped), "");

  // Who must know is told.
  world_.Put("d/c", "content of c");
  world_.request.strict = true;
  EXPECT_FALSE(world_.TryScan(mute).ok());
}

TEST_F(ScanTest, RulesRecordComesBackAsItWas) {
  world_.Put(".gitignore", ".gitignore\n");
  Must(world_.disk.MakeSpecial(world_.root, N("fifo"), FileType::kFifo, 0644));
  world_.lists = {.protect = {"x"},
                  .exclude = {"y", "!z"},
                  .secret_patterns = {".env"},
                  .skip_secrets = true,
                  .default_excludes = false};
  auto scan = Must(world_.TryScan(world_.disk));
  std::map<ObjectId, Bytes> kept;
  struct Keeping final : ScanSink {
    std::map<ObjectId, Bytes>& kept;
    explicit Keeping(std::map<ObjectId, Bytes>& k) : kept(k) {}
    Result<ObjectId> PutContent(ByteSpan c) override {
      ObjectId id = Sha256::Of(c);
      kept[id] = Bytes(c.begin(), c.end());
      return id;
    }
    Result<ObjectId> PutStream(const BatchWriter::Source&) override {
      return ObjectId();
    }
    Result<ObjectId> PutTree(const Tree&) override { return ObjectId(); }
    Result<bool> HasContent(const ObjectId&) override { return false; }
  } sink(kept);
  RulesRecord record = MakeRulesRecord(world_.request, scan->summary());
  Node node = Must(EncodeRules(record, sink));
  Node decoded_node = Must(DecodeNode(EncodeNode(node)));
  RulesRecord back = Must(DecodeRules(
      decoded_node, [&](const ObjectId& id) -> Result<Bytes> { return kept.at(id); }));
  EXPECT_EQ(back.lists.protect, record.lists.protect);
  EXPECT_EQ(back.lists.exclude, record.lists.exclude);
  EXPECT_TRUE(back.lists.skip_secrets);
  EXPECT_FALSE(back.lists.default_excludes);
  EXPECT_EQ(back.skipped, record.skipped);
  ASSERT_EQ(back.loose_rules.size(), 1u);
  EXPECT_EQ(back.loose_rules[0].bytes, ".gitignore\n");
  ASSERT_EQ(back.work_trees.size(), 1u);
  EXPECT_EQ(EncodeNode(Must(EncodeRules(back, sink))), EncodeNode(node));
}

// --- the cache's file
// ------------------------------------------------------------------

class CacheFileTest : public ScanTest {
 protected:
  Name file() { return StatCache::FileName(world_.request.root_id); }
};

TEST_F(CacheFileTest, EveryFlippedByteIsNoticedOrChangesNothing) {
  world_.Dir("d");
  world_.Put("a", "1");
  world_.Put("d/b", "2");
  world_.Link("l", "a");
  world_.Pass(kLater);
  ScanSummary whole = world_.Scanned();
  Bytes good = Must(ReadSmallFile(world_.disk, world_.cache, file(), 1 << 20));
  ASSERT_GT(good.size(), 400u);
  size_t noticed = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit : {0, 3, 7}) {
      Bytes bad = good;
      bad[i] ^= std::byte{static_cast<unsigned char>(1 << bit)};
      Fd out = Must(world_.disk.Open(world_.cache, file(), OpenMode::ReadWrite()));
      Must(WriteFull(world_.disk, out, 0, bad));
      auto scan = Must(world_.TryScan(world_.disk));
      ASSERT_EQ(scan->summary().tree, whole.tree) << "byte " << i << " bit " << bit;
      ASSERT_EQ(scan->summary().files, whole.files) << "byte " << i << " bit " << bit;
      noticed += scan->summary().listed_dirs > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(noticed, good.size() * 2) << "nearly every byte is under a hash";
}

TEST_F(CacheFileTest, EveryTruncationIsSurvived) {
  world_.Dir("d");
  world_.Put("d/b", "2");
  world_.Pass(kLater);
  ScanSummary whole = world_.Scanned();
  Bytes good = Must(ReadSmallFile(world_.disk, world_.cache, file(), 1 << 20));
  for (size_t length = 0; length < good.size(); ++length) {
    Fd out = Must(world_.disk.Open(world_.cache, file(), OpenMode::ReadWrite()));
    Must(world_.disk.Truncate(out, 0));
    Must(WriteFull(world_.disk, out, 0, ByteSpan(good).first(length)));
    ASSERT_EQ(Must(world_.TryScan(world_.disk))->summary().tree, whole.tree) << length;
  }
}

TEST_F(CacheFileTest, AnEditRewritesItsOwnBlockAndNotTheFile) {
  for (int i = 0; i < 40; ++i) {
    world_.Dir("d" + std::to_string(i));
    world_.Put("d" + std::to_string(i) + "/f", "1");
  }
  world_.Pass(kLater);
  world_.Scanned();
  FileStat before = Must(world_.disk.StatAt(world_.cache, file()));
  world_.Put("d7/f", "2");
  world_.Pass(kLater);
  world_.Scanned();
  FileStat after = Must(world_.disk.StatAt(world_.cache, file()));
  EXPECT_EQ(after.ino, before.ino) << "in place";
  EXPECT_EQ(after.size, before.size);
  world_.Put("d7/a-new-name-that-needs-room", "2");
  world_.Pass(kLater);
  world_.Scanned();
  after = Must(world_.disk.StatAt(world_.cache, file()));
  EXPECT_EQ(after.ino, before.ino);
  EXPECT_GT(after.size, before.size);
  EXPECT_EQ(world_.Scanned().tree, world_.Fresh().tree);
  EXPECT_EQ(world_.Scanned().listed_dirs, 0u);
}

TEST_F(CacheFileTest, RemainsAreClearedAway) {
  for (int i = 0; i < 40; ++i) {
    world_.Dir("d" + std::to_string(i));
    world_.Put("d" + std::to_string(i) + "/f", "1");
  }
  world_.Pass(kLater);
  world_.Scanned();
  FileStat before = Must(world_.disk.StatAt(world_.cache, file()));
  for (int i = 0; i < 400; ++i) {
    world_.Put("d7/name" + std::to_string(i), "2");
    world_.Pass(kLater);
    world_.Scanned();
  }
  EXPECT_LT(Must(world_.disk.StatAt(world_.cache, file())).size, before.size * 30);
  EXPECT_EQ(world_.Scanned().tree, world_.Fresh().tree);
}

TEST_F(CacheFileTest, OddThingsInItsPlaceAreNoCache) {
  world_.Put("a", "1");
  ScanSummary whole = world_.Scanned();
  Must(world_.disk.Unlink(world_.cache, file()));
  Must(world_.disk.MakeDir(world_.cache, file(), 0700));
  EXPECT_EQ(Must(world_.TryScan(world_.disk))->summary().tree, whole.tree);
  Must(world_.disk.RemoveDir(world_.cache, file()));
  Must(world_.disk.MakeSpecial(world_.cache, file(), FileType::kFifo, 0600));
  EXPECT_EQ(Must(world_.TryScan(world_.disk))->summary().tree, whole.tree);
}

TEST(StatCache, FingerprintSeesEverythingThatStatTells) {
  FileStat base{.mode = 0644,
                .uid = 1,
                .gid = 2,
                .dev = 3,
                .ino = 4,
                .size = 5,
                .mtime_ns = 6,
                .ctime_ns = 7};
  std::vector<FileStat> others(9, base);
  others[0].mode = 0645;
  others[1].uid = 9;
  others[2].gid = 9;
  others[3].dev = 9;
  others[4].ino = 9;
  others[5].size = 9;
  others[6].mtime_ns = 9;
  others[7].ctime_ns = 9;
  others[8].type = FileType::kSymlink;
  for (size_t i = 0; i < others.size(); ++i)
    EXPECT_NE(Fingerprint(others[i], 1), Fingerprint(base, 1)) << i;
  EXPECT_NE(Fingerprint(base, 1), Fingerprint(base, 2));
  EXPECT_EQ(Fingerprint(base, 1), Fingerprint(base, 1));
}

}  // namespace
}  // namespace belay
