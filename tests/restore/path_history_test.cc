// The history of paths: what checkpoints and operations tell about them.

#include "core/path_history.h"

#include "core/state_view.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class PathHistoryTest : public RestoreTest {
 protected:
  // "modified a: v2 | added a: v1": newest first; operations by their kind.
  std::string History(const std::vector<std::string>& asked) {
    auto opened = Must(world.Open());
    const auto checkpoints =
        Must(opened.catalog->ListCheckpoints({.root = opened.root.id}));
    const auto operations = Must(ListOperations(*opened.catalog, opened.root.id));
    reads = 0;
    const Scan::TreeReader trees = [&](const ObjectId& id) {
      ++reads;
      return opened.store->GetTree(id);
    };
    const PathHistory history =
        Must(HistoryOf(*opened.store, trees, checkpoints, operations, asked));
    EXPECT_TRUE(history.unreadable.empty());
    std::string out;
    for (const PathHistoryRow& row : history.rows) {
      if (!out.empty()) out += " | ";
      for (const auto& [path, change] : row.paths)
        out += std::string(change == Change::kAdded     ? "added "
                           : change == Change::kDeleted ? "deleted "
                                                        : "modified ") +
               path + ", ";
      out.resize(out.size() - 2);
      out += ": " + (row.checkpoint == nullptr
                         ? std::string(OperationName(row.operation->kind))
                     : row.checkpoint->name ? *row.checkpoint->name
                                            : row.checkpoint->description);
    }
    return out;
  }
  size_t reads = 0;
};

TEST_F(PathHistoryTest, EveryCheckpointInWhichAPathChangedIsNamed) {
  Put("a", "1");
  Put("dir/b", "1");
  Must(world.Capture("one"));
  Put("other", "x");
  Must(world.Capture("two"));
  Put("a", "2");
  Must(world.Capture("three"));
  Chmod("a", 0600);
  Must(world.Capture("four"));
  Remove("a");
  Must(world.Capture("five"));
  EXPECT_EQ(History({"a"}),
            "deleted a: five | modified a: four | modified a: three | added a: one");
  EXPECT_EQ(History({"dir"}), "added dir/b: one");
  EXPECT_EQ(History({"dir", "dir/b", "other"}), "added other: two | added dir/b: one");
  EXPECT_EQ(History({"nowhere"}), "");
  EXPECT_EQ(History({""}),
            "deleted a: five | modified a: four | modified a: three | added other: two "
            "| added a, added dir/b: one");
}

TEST_F(PathHistoryTest, WhatARollbackDidIsToldOnce) {
  Put("a", "1");
  Must(world.Capture("one"));
  Put("a", "2");
  Put("new", "n");
  Must(world.Rollback("one"));
  Must(world.Capture("after"));
  EXPECT_EQ(
      History({"a", "new"}),
      "modified a, deleted new: rollback | modified a, added new: before rollback "
      "to 'one' | added a: one");
  Must(world.Undo());
  Put("a", "3");
  Must(world.Capture("edited"));
  EXPECT_TRUE(
      History({"a"}).starts_with("modified a: edited | modified a: undo | "
                                 "modified a: rollback | "))
      << History({"a"});
  EXPECT_TRUE(History({"new"}).starts_with("added new: undo | deleted new: rollback"));
}

TEST_F(PathHistoryTest, AChangeOfTheDirectoryItselfIsToldOnce) {
  Put("a", "1");
  Must(world.Capture("one"));
  Must(disk.SetMode(root, 0700));
  Must(world.Capture("private"));
  Must(world.Capture("the same"));
  Must(disk.SetOwner(root, 5, 6));
  Put("a", "2");
  Must(world.Capture("given away"));
  EXPECT_EQ(History({""}),
            "modified ., modified a: given away | modified .: private | added a: one");
  EXPECT_EQ(History({"a"}), "modified a: given away | added a: one");
  EXPECT_EQ(History({"*"}), "modified a: given away | added a: one");
  Must(world.Rollback("private"));
  Must(world.Capture("after"));
  EXPECT_TRUE(
      History({""}).starts_with("modified ., modified a: rollback | modified ."))
      << History({""});
}

// Back by hand to what was before: the two checkpoints agree, and it changed twice.
TEST_F(PathHistoryTest, AnEditThatTakesARollbackBackIsAChange) {
  Put("a", "1");
  Must(world.Capture("one"));
  Put("a", "2");
  Must(world.Rollback("one"));
  Put("a", "2");
  Must(world.Capture("by hand"));
  EXPECT_TRUE(History({"a"}).starts_with("modified a: by hand | modified a: rollback"));
}

TEST_F(PathHistoryTest, WhatWasLeftOutWasNotDeleted) {
  Put("a", "1");
  Must(world.Capture("one"));
  Put("a", std::string(3000, 'x'));
  world.settings.max_file_size.bytes = 1000;
  Must(world.Capture("too large"));
  Put("a", "1");
  Must(world.Capture("as it was"));
  Put("a", "2");
  Must(world.Capture("edited"));
  EXPECT_EQ(History({"a"}), "modified a: edited | added a: one");
}

TEST_F(PathHistoryTest, WhatBecameIgnoredWasNotDeleted) {
  Put("gen", "1");
  Put("dir/gen", "1");
  Put("gone", "1");
  Must(world.Capture("one"));
  Put(".gitignore", "gen\n");
  Remove("gone");
  Must(world.Capture("ignored"));
  EXPECT_EQ(History({"gen", "dir", "gone"}),
            "deleted gone: ignored | added dir/gen, added gen, added gone: one");
  Remove(".gitignore");
  Put("gen", "2");
  Must(world.Capture("covered again"));
  EXPECT_EQ(History({"gen", "dir"}),
            "modified gen: covered again | added dir/gen, added gen: one");
}

TEST_F(PathHistoryTest, AChangeOfKindIsAChangeOfThePath) {
  Put("a", "1");
  MakeDir("e");
  Must(world.Capture("one"));
  Remove("a");
  Put("a/in", "2");
  Must(world.Capture("two"));
  Remove("a");
  Link("a", "there");
  Must(world.Capture("three"));
  EXPECT_EQ(History({"a"}),
            "added a, deleted a/in: three | deleted a, added a/in: two "
            "| added a: one");
  EXPECT_EQ(History({"e"}), "added e: one");
}

TEST_F(PathHistoryTest, OnlyTreesThatDifferAreRead) {
  for (int i = 0; i < 30; ++i) Put("d" + std::to_string(i) + "/sub/f", "1");
  Must(world.Capture("one"));
  for (int i = 0; i < 20; ++i) {
    Put("d1/sub/f", std::to_string(i + 2));
    Must(world.Capture("v" + std::to_string(i)));
  }
  History({"d2/sub/f"});
  // The roots of 21 trees, each as the newer and as the older one, and the way down
  // once.
  EXPECT_LE(reads, 2 * 21 + 2u);
  History({"d1/sub/f"});
  EXPECT_LE(reads, 3 * 2 * 21u);
}

}  // namespace
}  // namespace belay::test
