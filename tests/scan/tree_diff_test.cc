#include "scan/tree_diff.h"

#include <gtest/gtest.h>

#include <map>

#include "support/scan_world.h"

namespace belay {
namespace {

using test::Must;
using test::P;

// Trees in memory, made from "path" -> content; a path that ends in '/' is an empty
// directory, a content that begins with '@' a symlink.
class TreeShelf {
 public:
  using Files = std::map<std::string, std::string>;

  ObjectId Put(const Files& files) {
    Tree tree;
    for (auto at = files.begin(); at != files.end();) {
      const std::string name = at->first.substr(0, at->first.find('/'));
      TreeEntry e;
      e.name = name;
      if (at->first.find('/') == std::string::npos) {
        e.mode = 0644;
        if (at->second.starts_with('@')) {
          e.kind = EntryKind::kSymlink;
          e.target = at->second;
        } else {
          e.size = at->second.size();
          e.id = Sha256::Of(AsBytes(at->second));
        }
        ++at;
      } else {
        Files below;
        for (; at != files.end() && at->first.starts_with(name + "/"); ++at)
          if (at->first.size() > name.size() + 1)
            below[at->first.substr(name.size() + 1)] = at->second;
        e.kind = EntryKind::kDirectory;
        e.mode = 0755;
        e.id = Put(below);
      }
      tree.entries.push_back(std::move(e));
    }
    std::sort(tree.entries.begin(), tree.entries.end(),
              [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
    return Put(tree);
  }
  ObjectId Put(const Tree& tree) {
    ObjectId id = Sha256::Of(Must(EncodeTree(tree)));
    trees_[id] = tree;
    return id;
  }
  Scan::TreeReader reader() {
    return [this](const ObjectId& id) -> Result<Tree> {
      ++reads;
      return trees_.at(id);
    };
  }
  size_t reads = 0;

 private:
  std::map<ObjectId, Tree> trees_;
};

using Changes = std::multimap<std::string, Change>;

Changes Diff(TreeShelf& shelf, const ObjectId& from, const ObjectId& to) {
  Changes changes;
  ChangeCounts counts = Must(DiffTrees(
      from, to, shelf.reader(),
      [&](std::string_view path, Change change) { changes.emplace(path, change); }));
  EXPECT_EQ(counts.total(), changes.size());
  return changes;
}

constexpr Change kAdded = Change::kAdded, kModified = Change::kModified,
                 kDeleted = Change::kDeleted;

TEST(DiffTrees, NamesEveryPathThatDiffers) {
  TreeShelf shelf;
  const ObjectId from = shelf.Put({{"same", "1"},
                                   {"edited", "1"},
                                   {"gone", "1"},
                                   {"dir/same", "1"},
                                   {"dir/gone", "1"},
                                   {"old/a/b", "1"},
                                   {"old/empty/", ""},
                                   {"file-to-dir", "1"},
                                   {"link", "@a"}});
  const ObjectId to = shelf.Put({{"same", "1"},
                                 {"edited", "2"},
                                 {"new", "1"},
                                 {"dir/same", "1"},
                                 {"dir/new", "1"},
                                 {"fresh/", ""},
                                 {"file-to-dir/x", "1"},
                                 {"link", "@b"}});
  EXPECT_EQ(Diff(shelf, from, to), (Changes{{"edited", kModified},
                                            {"gone", kDeleted},
                                            {"new", kAdded},
                                            {"dir/gone", kDeleted},
                                            {"dir/new", kAdded},
                                            {"old/a/b", kDeleted},
                                            {"old/empty", kDeleted},
                                            {"fresh", kAdded},
                                            {"file-to-dir", kDeleted},
                                            {"file-to-dir/x", kAdded},
                                            {"link", kModified}}));
}

TEST(DiffTrees, ReadsNothingThatIsTheSame) {
  TreeShelf shelf;
  const ObjectId from = shelf.Put({{"a/x", "1"}, {"b/c/d", "1"}, {"e", "1"}});
  const ObjectId to = shelf.Put({{"a/x", "1"}, {"b/c/d", "1"}, {"e", "2"}});
  EXPECT_EQ(Diff(shelf, from, to).size(), 1u);
  EXPECT_EQ(shelf.reads, 2u);
  EXPECT_TRUE(Diff(shelf, to, to).empty());
  EXPECT_EQ(shelf.reads, 2u);
}

TEST(DiffTrees, ZeroIsNothing) {
  TreeShelf shelf;
  const ObjectId tree = shelf.Put({{"a/x", "1"}, {"b/", ""}});
  EXPECT_EQ(Diff(shelf, {}, tree), (Changes{{"a/x", kAdded}, {"b", kAdded}}));
  EXPECT_EQ(Diff(shelf, tree, {}), (Changes{{"a/x", kDeleted}, {"b", kDeleted}}));
  EXPECT_TRUE(Diff(shelf, {}, {}).empty());
}

TEST(DiffTrees, AttributesOfADirectoryCountOnce) {
  TreeShelf shelf;
  Tree below;
  TreeEntry file;
  file.name = "f";
  file.mode = 0644;
  file.id = Sha256::Of(AsBytes("1"));
  below.entries = {file};
  TreeEntry dir;
  dir.name = "d";
  dir.kind = EntryKind::kDirectory;
  dir.mode = 0755;
  dir.id = shelf.Put(below);
  const ObjectId from = shelf.Put(Tree{{dir}});
  dir.mode = 0700;
  EXPECT_EQ(Diff(shelf, from, shelf.Put(Tree{{dir}})), (Changes{{"d", kModified}}));
  below.entries[0].mode = 0600;
  dir.id = shelf.Put(below);
  EXPECT_EQ(Diff(shelf, from, shelf.Put(Tree{{dir}})),
            (Changes{{"d", kModified}, {"d/f", kModified}}));
}

TEST(DiffTrees, RandomTreesDifferAsTheirFilesDo) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    TreeShelf shelf;
    auto files = [&] {
      TreeShelf::Files out;
      for (int i = 0; i < 12; ++i) {
        std::string path;
        for (uint64_t depth = random.Below(3); depth > 0; --depth)
          path += std::string(1, static_cast<char>('a' + random.Below(2))) + "/";
        path += static_cast<char>('m' + random.Below(4));  // never a directory's name
        out[path] = std::to_string(random.Below(3));
      }
      return out;
    };
    const TreeShelf::Files old = files(), now = files();
    Changes expected;
    for (const auto& [path, content] : old) {
      auto found = now.find(path);
      if (found == now.end())
        expected.emplace(path, kDeleted);
      else if (found->second != content)
        expected.emplace(path, kModified);
    }
    for (const auto& [path, content] : now)
      if (!old.contains(path)) expected.emplace(path, kAdded);
    EXPECT_EQ(Diff(shelf, shelf.Put(old), shelf.Put(now)), expected);
  }
}

TEST(WalkTree, GivesEveryEntryInOrderAndFindInTreeFindsThem) {
  TreeShelf shelf;
  const ObjectId tree =
      shelf.Put({{"a", "1"}, {"b/c/d", "2"}, {"b/e", "3"}, {"empty/", ""}});
  std::vector<std::string> paths;
  Must(WalkTree(tree, "", shelf.reader(), [&](const std::string& path, const auto& e) {
    paths.push_back(path);
    auto found = Must(FindInTree(tree, P(path), shelf.reader()));
    EXPECT_EQ(found, e) << path;
    return Ok();
  }));
  EXPECT_EQ(paths,
            (std::vector<std::string>{"a", "b", "b/c", "b/c/d", "b/e", "empty"}));
  for (const char* none : {"x", "a/x", "b/x", "b/c/d/e", "empty/x"})
    EXPECT_EQ(Must(FindInTree(tree, P(none), shelf.reader())), std::nullopt) << none;
  paths.clear();
  Must(WalkTree(Must(FindInTree(tree, P("b"), shelf.reader()))->id, "b", shelf.reader(),
                [&](const std::string& path, const auto&) {
                  paths.push_back(path);
                  return Ok();
                }));
  EXPECT_EQ(paths, (std::vector<std::string>{"b/c", "b/c/d", "b/e"}));
}

}  // namespace
}  // namespace belay
