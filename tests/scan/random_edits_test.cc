// The stat cache against a full re-hash: whatever is done to a directory between two
// scans, or while one runs, the next scan with the cache sees what one without it sees.
//
//   BELAY_FULL=1 scan_test --gtest_filter='RandomEdits.*'     a million edits
//   BELAY_EDITS=N BELAY_SEED=S BELAY_WORLD=W       so many, from that seed and world on

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "support/crash_harness.h"
#include "support/race_fs.h"
#include "support/scan_world.h"

namespace belay {
namespace {

using test::Must;
using test::N;
using test::P;
using test::ScanWorld;

// One random change of the directory, of the kind that time stamps tell badly.
class Editor {
 public:
  Editor(ScanWorld& world, uint64_t seed) : world_(world), random_(seed) {
    for (const char* dir : {"a", "a/b", "a/b/c", "d", "d/e", "f", "f/g", "f/g/h"})
      world_.Dir(dir);
    for (int i = 0; i < 40; ++i) Edit();
  }

  void Edit() {
    MemFs& disk = world_.disk;
    const std::string path = RandomFile();
    Parent at = Must(OpenParent(disk, world_.root, P(path)));
    auto stat = disk.StatAt(at.dir, at.name);
    const bool is_file = stat.ok() && stat->type == FileType::kRegular;
    switch (random_.Below(16)) {
      case 0:
      case 1:
      case 2:  // the same size, in place
        if (is_file && stat->size > 0) {
          Fd file = Must(disk.Open(at.dir, at.name, OpenMode::ReadWrite()));
          Must(disk.Write(file, random_.Below(stat->size), AsBytes(Letter())));
        }
        break;
      case 3:  // ... and the old time set again
        if (is_file && stat->size > 0) {
          Fd file = Must(disk.Open(at.dir, at.name, OpenMode::ReadWrite()));
          Must(disk.Write(file, 0, AsBytes(Letter())));
          Must(disk.SetTimes(file, stat->mtime_ns, stat->mtime_ns));
        }
        break;
      case 4:  // a file renamed over it
        if (!stat.ok() || stat->type != FileType::kDirectory) {
          Must(test::PutFile(disk, at.dir, N("tmp"), Text()));
          Must(disk.Rename(at.dir, N("tmp"), at.dir, at.name, RenameHow::kReplace));
        }
        break;
      case 5:
        if (stat.ok() && stat->type != FileType::kDirectory)
          Must(disk.Unlink(at.dir, at.name));
        break;
      case 6:
        if (!stat.ok()) Must(disk.Symlink(at.dir, at.name, Letter()));
        break;
      case 7:
        if (is_file)
          Must(disk.SetMode(Must(disk.Open(at.dir, at.name, OpenMode::Read())),
                            random_.Below(2) != 0 ? 0755 : 0644));
        break;
      case 8: {  // two directories change places
        static constexpr const char* kPairs[][2] = {
            {"a", "d"}, {"a/b", "f/g"}, {"d/e", "a/b"}, {"f/g/h", "a/b/c"}};
        const auto& pair = kPairs[random_.Below(4)];
        Parent one = Must(OpenParent(disk, world_.root, P(pair[0])));
        Parent two = Must(OpenParent(disk, world_.root, P(pair[1])));
        (void)disk.Rename(one.dir, one.name, two.dir, two.name, RenameHow::kExchange);
        for (const char* dir : {"a", "a/b", "a/b/c", "d", "d/e", "f", "f/g", "f/g/h"}) {
          Parent parent = Must(OpenParent(disk, world_.root, P(dir)));
          (void)disk.MakeDir(parent.dir, parent.name, 0755);
        }
        break;
      }
      case 9:  // rules come, change and go
        Must(test::PutFile(
            disk, world_.root,
            P(RandomDir() + (random_.Below(4) == 0 ? ".belayignore" : ".gitignore")),
            random_.Below(3) == 0 ? "" : "*" + Letter() + "\n"));
        break;
      case 10: {
        const std::string rules = RandomDir() + ".gitignore";
        Parent parent = Must(OpenParent(disk, world_.root, P(rules)));
        (void)disk.Unlink(parent.dir, parent.name);
        break;
      }
      case 11:
        if (is_file)
          Must(disk.SetXattr(Must(disk.Open(at.dir, at.name, OpenMode::Read())),
                             "user.x", AsBytes(Letter())));
        break;
      case 12: {  // a file and a directory change places
        if (!is_file) break;
        (void)disk.MakeDir(at.dir, N("swap"), 0755);
        Must(disk.Rename(at.dir, N("swap"), at.dir, at.name, RenameHow::kExchange));
        Must(disk.Unlink(at.dir, N("swap")));
        break;
      }
      case 13:
        if (stat.ok() && stat->type == FileType::kDirectory)
          (void)disk.RemoveDir(at.dir, at.name);
        break;
      default:
        if (!stat.ok() || is_file)
          Must(test::PutFile(disk, at.dir, RelPath(at.name), Text()));
    }
  }

  // Mostly within a tick, sometimes long, rarely backwards.
  void Wait() {
    switch (random_.Below(8)) {
      case 0:
        world_.Pass(static_cast<int64_t>(random_.Below(100)) * 1'000'000);
        break;
      case 1:
        world_.Pass(3'000'000'000);
        break;
      default:
        world_.Pass(static_cast<int64_t>(random_.Below(3)) * 1'000'000);
    }
  }
  uint64_t Below(uint64_t n) { return random_.Below(n); }

 private:
  std::string RandomDir() {
    static constexpr const char* kDirs[] = {"",     "a/", "a/b/", "a/b/c/", "d/",
                                            "d/e/", "f/", "f/g/", "f/g/h/"};
    return kDirs[random_.Below(9)];
  }
  std::string RandomFile() { return RandomDir() + "f" + Letter(); }
  std::string Letter() {
    return std::string(1, static_cast<char>('a' + random_.Below(4)));
  }
  std::string Text() { return std::string(1 + random_.Below(3), Letter()[0]); }

  ScanWorld& world_;
  SeededRandom random_;
};

uint64_t EditsWanted(uint64_t slice, uint64_t full) {
  if (const char* given = std::getenv("BELAY_EDITS"))
    return std::strtoull(given, nullptr, 10);
#ifdef __SANITIZE_THREAD__
  slice /= 10;  // twenty times slower
#endif
  return test::RunEverything() ? full : slice;
}

uint64_t FirstWorld() {
  const char* given = std::getenv("BELAY_WORLD");  // as a failure names it
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

std::string SkippedText(const ScanSummary& s) {
  std::string text;
  for (const SkippedPath& p : s.skipped)
    text += p.path + " " + std::string(SkipName(p.why)) + "\n";
  return text;
}

TEST(RandomEdits, AScanWithTheCacheSeesWhatOneWithoutItSees) {
  const uint64_t seed = test::TestSeed(20261115);
  const uint64_t wanted = EditsWanted(30'000, 1'000'000);
  uint64_t edits = 0, scans = 0, taken_over = 0;
  for (uint64_t world_number = FirstWorld(); edits < wanted; ++world_number) {
    // A clock of 4 ms, of 10 ms, of a second: the last like old file systems.
    static constexpr int64_t kTicks[] = {4'000'000, 10'000'000, 1'000'000'000};
    ScanWorld world(kTicks[world_number % 3], seed + world_number);
    Editor editor(world, seed ^ world_number);
    for (int round = 0; round < 400; ++round) {
      for (uint64_t n = editor.Below(6); n-- > 0; ++edits) {
        editor.Edit();
        editor.Wait();
      }
      ScanSummary with = world.Scanned();
      ScanSummary without = world.Fresh();
      ++scans;
      taken_over += with.dirs - with.listed_dirs;
      ASSERT_EQ(with.tree.hex(), without.tree.hex())
          << "BELAY_WORLD=" << world_number << " BELAY_SEED=" << seed << " round "
          << round << "\n"
          << world.sink.Difference(with.tree, without.tree);
      ASSERT_EQ(SkippedText(with), SkippedText(without));
      ASSERT_EQ(with.files, without.files);
      ASSERT_EQ(with.bytes, without.bytes);
      editor.Wait();
    }
  }
  std::cout << "random edits: " << edits << " edits, " << scans << " scans, "
            << taken_over << " directories taken over, 0 missed\n";
  EXPECT_GT(taken_over, scans);
}

// The edit lands between two calls of a scan. What that scan says may be of either
// moment; the one after it must not be deceived.
TEST(RandomEdits, AnEditDuringAScanIsSeenByTheNext) {
  const uint64_t seed = test::TestSeed(20261116);
  const uint64_t wanted = EditsWanted(6'000, 300'000);
  uint64_t edits = 0, raced = 0;
  for (uint64_t world_number = FirstWorld(); edits < wanted; ++world_number) {
    ScanWorld world(world_number % 2 == 0 ? 4'000'000 : 1'000'000'000,
                    seed + world_number);
    Editor editor(world, seed ^ world_number);
    world.Scanned();
    for (int round = 0; round < 100; ++round) {
      editor.Edit();
      uint64_t countdown = editor.Below(120) + 1;
      test::RaceFs racing(world.disk, [&] {
        if (--countdown != 0) return;
        countdown = editor.Below(40) + 1;
        editor.Edit();
        if (editor.Below(4) == 0) world.Pass(1'000'000);
        ++edits;
        ++raced;
      });
      ++edits;
      {
        // A handle of the racing Fs must not outlive it.
        Fd cache = Must(racing.OpenDir(AbsPath::Literal("/cache")));
        ScanRequest request = world.request;
        request.rules = std::make_shared<RuleConfig>(world.lists);
        request.cache_dir = &cache;
        auto scan =
            Must(Scan::Run(racing, world.clock, world.random, request, world.sink));
        Must(scan->SaveCache());
      }
      editor.Wait();
      ScanSummary with = world.Scanned();
      ScanSummary without = world.Fresh();
      ASSERT_EQ(with.tree.hex(), without.tree.hex())
          << "BELAY_WORLD=" << world_number << " BELAY_SEED=" << seed << " round "
          << round << "\n"
          << world.sink.Difference(with.tree, without.tree);
      ASSERT_EQ(SkippedText(with), SkippedText(without));
    }
  }
  std::cout << "raced edits: " << edits << " edits, " << raced
            << " of them during a scan, 0 missed\n";
}

}  // namespace
}  // namespace belay
