// Scans on two threads: large enough that both start at once, and deeper than a thread
// goes with open directories.

#include <gtest/gtest.h>

#include "support/scan_world.h"

namespace belay {
namespace {

using test::Must;
using test::ScanWorld;

constexpr int64_t kMuchLater = 60'000'000'000;
constexpr int kTops = 30, kBelow = 14, kFiles = 8, kDeep = 80;

std::string Place(int top, int below) {
  return "t" + std::to_string(top) + "/b" + std::to_string(below);
}

void MakeTree(ScanWorld& world) {
  for (int t = 0; t < kTops; ++t) {
    world.Dir("t" + std::to_string(t));
    for (int b = 0; b < kBelow; ++b) {
      world.Dir(Place(t, b));
      for (int f = 0; f < kFiles; ++f)
        world.Put(Place(t, b) + "/f" + std::to_string(f), Place(t, b));
    }
  }
  std::string deep = "deep";
  for (int i = 0; i < kDeep; ++i, deep += "/d") {
    world.Dir(deep);
    world.Dir(deep + "/side");
    world.Put(deep + "/side/f", "deep");
  }
}

TEST(ScanThreads, TwoSeeWhatOneSees) {
  ScanWorld world;
  MakeTree(world);
  world.request.threads = 2;
  auto check = [&](const ScanSummary& seen, const char* when) {
    world.request.threads = 1;
    const ScanSummary alone = world.Fresh();
    world.request.threads = 2;
    EXPECT_EQ(world.sink.Difference(seen.tree, alone.tree), "") << when;
    EXPECT_EQ(seen.tree, alone.tree) << when;
    EXPECT_EQ(seen.files, alone.files) << when;
    EXPECT_EQ(seen.bytes, alone.bytes) << when;
    EXPECT_EQ(seen.dirs, alone.dirs) << when;
  };
  world.Pass(kMuchLater);
  const ScanSummary first = world.Scanned();
  EXPECT_EQ(first.files, uint64_t{kTops * kBelow * kFiles + kDeep});
  check(first, "without a cache");
  world.Pass(kMuchLater);
  const ScanSummary again = world.Scanned();
  EXPECT_EQ(again.read_files, 0u);
  check(again, "nothing changed");

  auto edit = [&](int step) {
    uint64_t changed = 0;
    for (int i = 0; i < kTops * kBelow; i += step, ++changed)
      world.Put(Place(i / kBelow, i % kBelow) + "/f1", "step " + std::to_string(step));
    world.Put("t1/new" + std::to_string(step), "new");
    world.Remove("t2/b3/f" + std::to_string(step % 7));
    world.Pass(kMuchLater);
    return changed;
  };
  auto read = [&](const ObjectId& id) { return world.sink.Read(id); };
  // Few: they are read while walking.
  uint64_t few = edit(97);
  auto second = Must(world.TryScan(world.disk));
  EXPECT_EQ(second->summary().read_files, few + 1);
  check(second->summary(), "few changed");
  EXPECT_EQ(Must(second->ChangesSince(first.tree, read)),
            (ChangeCounts{.added = 1, .modified = few, .deleted = 1}));
  Must(second->SaveCache());

  // Too many for that. Told against what the cache held, and against an older tree.
  uint64_t many = edit(2);
  auto third = Must(world.TryScan(world.disk));
  EXPECT_EQ(third->summary().read_files, many + 1);
  check(third->summary(), "many changed");
  EXPECT_EQ(Must(third->ChangesSince(second->summary().tree, read)),
            (ChangeCounts{.added = 1, .modified = many, .deleted = 1}));
  const ChangeCounts since_first = Must(third->ChangesSince(first.tree, read));
  EXPECT_EQ(since_first.added, 2u);
  EXPECT_EQ(since_first.deleted, 2u);
}

}  // namespace
}  // namespace belay
