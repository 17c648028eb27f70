// The tree that git remembers of an index (the extension "TREE") against what the index
// has, after random changes and where others left a stale one; and an index that is
// read from its start on.

#include <iostream>
#include <set>

#include "base/random.h"
#include "base/real_fs.h"
#include "git/index_entries.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/git_world.h"

namespace belay::test {
namespace {

class IndexTreeTest : public testing::TestWithParam<GitHash> {
 protected:
  IndexTreeTest() {
    if (GetParam() == GitHash::kSha256) {
      world.Init("repo", {"--object-format=sha256"});
    } else {
      world.Init("repo");
    }
  }
  IndexEntries Read() { return Parse(world.Read("repo/.git/index")); }
  IndexEntries Parse(const std::string& bytes) {
    return Must(ReadIndexEntries(AsBytes(bytes), GetParam()));
  }
  std::string Line(const std::vector<std::string>& arguments) {
    std::string text = world.Git("repo", arguments);
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
  std::string HeadTree() { return Line({"rev-parse", "HEAD^{tree}"}); }
  // "mode object path" of each, by git.
  std::set<std::string> Listed(std::string_view text, size_t object_field) {
    std::set<std::string> out;
    while (!text.empty()) {
      const size_t end = text.find('\0'), tab = text.find('\t');
      std::vector<std::string> words;
      for (std::string_view head = text.substr(0, tab); !head.empty();) {
        const size_t space = std::min(head.find(' '), head.size());
        words.emplace_back(head.substr(0, space));
        head.remove_prefix(std::min(space + 1, head.size()));
      }
      std::string one = words[0] + " " + words[object_field] + " ";
      if (object_field == 1 && words[2] != "0") one += "stage " + words[2] + " ";
      out.insert(one + std::string(text.substr(tab + 1, end - tab - 1)));
      text.remove_prefix(end + 1);
    }
    return out;
  }
  std::set<std::string> InIndex() {
    return Listed(world.Git("repo", {"ls-files", "-s", "-z"}), 1);
  }
  std::set<std::string> InTree(const std::string& tree) {
    return Listed(world.Git("repo", {"ls-tree", "-r", "-z", tree}), 2);
  }
  void Fill() {
    for (const char* name : {"a", "b/c", "b/d/e", "f"})
      world.Write(std::string("repo/") + name, std::string(name) + "\n");
    world.Git("repo", {"add", "."});
  }
  size_t hash_size() const { return GitHashSize(GetParam()); }
  // Without a checksum, as index.skipHash leaves it.
  std::string WithTree(const std::string& index, std::string_view tree) {
    std::string out = index.substr(0, index.rfind("TREE"));
    const size_t n = tree.size();
    out += "TREE";
    for (int shift : {24, 16, 8, 0}) out += static_cast<char>(n >> shift & 0xFF);
    return out + std::string(tree) + std::string(hash_size(), '\0');
  }
  std::string TreeOf(const std::string& index) {
    const size_t at = index.rfind("TREE") + 8;
    return index.substr(at, index.size() - at - hash_size());
  }

  GitWorld world;
};

TEST_P(IndexTreeTest, IsKnownAfterACommitAndForgottenWithEachChange) {
  Fill();
  EXPECT_EQ(Read().tree, "");
  world.Git("repo", {"commit", "-qm", "one"});
  EXPECT_EQ(Read().tree, HeadTree());
  world.Write("repo/b/d/e", "two\n");
  world.Git("repo", {"add", "."});
  EXPECT_EQ(Read().tree, "");
  const std::string tree = Line({"write-tree"});
  EXPECT_EQ(Read().tree, tree);
  EXPECT_NE(tree, HeadTree());
  world.Git("repo", {"reset", "-q", "--hard"});
  EXPECT_EQ(Read().tree, HeadTree());
  world.Write("repo/later", "x\n");
  world.Git("repo", {"add", "-N", "later"});
  EXPECT_EQ(Read().tree, "");
}

// Whatever git did last: a tree that it remembers has what the index has.
TEST_P(IndexTreeTest, IsNeverOfAnotherIndexAfterRandomChanges) {
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  world.Write("repo/b/c", "second\n");
  world.Git("repo", {"commit", "-qam", "two"});
  SeededRandom random(TestSeed(GetParam() == GitHash::kSha1 ? 11 : 12));
  const std::string blob = Line({"rev-parse", "HEAD~1:b/c"});
  const int rounds = RunEverything() ? 3000 : 60;
  int known = 0, heads = 0, staged = 0;
  for (int round = 0; round < rounds; ++round) {
    static constexpr const char* kNames[] = {"a", "b/c", "b/d/e", "f", "b/new", "g/h"};
    const std::string name = kNames[random.Below(6)];
    auto git = [&](const std::vector<std::string>& arguments,
                   const std::string& input = {}) {
      (void)world.TryGit("repo", arguments, input);  // some have nothing to do
    };
    const uint64_t kind = random.Below(17);
    switch (kind) {
      case 0:
      case 1:
        world.Write("repo/" + name, std::to_string(random.Below(4)) + "\n");
        git({"add", name});
        break;
      case 2:
        git({"rm", "-q", "--cached", name});
        break;
      case 3:
        git({"rm", "-q", "--cached", name});
        world.Write("repo/" + name, "later\n");
        git({"add", "-N", name});
        break;
      case 4:
        git({"reset", "-q"});
        break;
      case 5:
        git({"reset", "-q", "--", name});
        break;
      case 6:
        git({"reset", "-q", "--soft", random.Below(2) == 0 ? "HEAD~1" : "HEAD@{1}"});
        break;
      case 7:
      case 8:
        git({"reset", "-q", "--hard"});
        break;
      case 9:
        git({"update-index", "--add", "--cacheinfo", "100644," + blob + "," + name});
        break;
      case 10:
        git({"update-index", "--index-info"}, "0 " + std::string(2 * hash_size(), '0') +
                                                  "\t" + name + "\n100644 " + blob +
                                                  " 2\t" + name + "\n");
        break;
      case 11:
        git({"read-tree", "HEAD"});
        break;
      case 12:
        git({"checkout", "-q", "HEAD~1", "--", name});
        break;
      case 13:
        git({"write-tree"});
        break;
      case 14:
        git({"update-index", random.Below(2) == 0 ? "--chmod=+x" : "--chmod=-x", name});
        break;
      case 15:
        git({"update-index", "--index-version", random.Below(2) == 0 ? "4" : "2"});
        break;
      default:
        git({"commit", "-q", "--allow-empty", "-m", "more"});
    }
    SCOPED_TRACE("round " + std::to_string(round) + " kind " + std::to_string(kind) +
                 " " + name);
    const std::string tree = Read().tree;
    const bool same =
        world.TryGit("repo", {"diff-index", "--cached", "--quiet", "HEAD"}).ok();
    staged += same ? 0 : 1;
    if (tree.empty()) continue;
    ++known;
    ASSERT_EQ(InTree(tree), InIndex());
    const bool is_heads = tree == HeadTree();
    heads += is_heads ? 1 : 0;
    ASSERT_EQ(is_heads, same);
  }
  std::cout << rounds << " changes: " << staged << " times something was staged, "
            << known << " times the tree was known, " << heads << " times HEAD's\n";
  EXPECT_GT(known, heads);
  EXPECT_GT(heads, 0);
  EXPECT_GT(staged, 0);
}

TEST_P(IndexTreeTest, AStaleOneIsNotBelieved) {
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  const std::string index = world.Read("repo/.git/index"), tree = TreeOf(index);
  ASSERT_EQ(Parse(WithTree(index, tree)).tree, HeadTree());
  world.Write("repo/new", "new\n");
  world.Git("repo", {"add", "new"});
  EXPECT_EQ(Parse(WithTree(world.Read("repo/.git/index"), tree)).tree, "")
      << "one more";
  world.Git("repo", {"reset", "-q", "--hard"});
  world.Git("repo", {"rm", "-q", "--cached", "f"});
  EXPECT_EQ(Parse(WithTree(world.Read("repo/.git/index"), tree)).tree, "")
      << "one less";
  world.Git("repo", {"add", "-N", "f"});
  EXPECT_EQ(Parse(WithTree(world.Read("repo/.git/index"), tree)).tree, "") << "later";
  const std::string blob = Line({"rev-parse", "HEAD:f"});
  world.Git(
      "repo", {"update-index", "--index-info"},
      "0 " + std::string(2 * hash_size(), '0') + "\tf\n100644 " + blob + " 1\tf\n");
  EXPECT_EQ(Parse(WithTree(world.Read("repo/.git/index"), tree)).tree, "")
      << "unmerged";
}

TEST_P(IndexTreeTest, WhatIsOfAnotherFormSaysNothing) {
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  const std::string index = world.Read("repo/.git/index");
  const std::string object(hash_size(), '\x5a'), nul(1, '\0');
  std::string hex;
  for (size_t i = 0; i < hash_size(); ++i) hex += "5a";
  const std::string whole = nul + "4 0\n" + object;
  EXPECT_EQ(Parse(WithTree(index, whole)).tree, hex);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(Parse(WithTree(index, whole.substr(0, length))).tree, "") << length;
  const std::string rows[] = {
      "4 0\n" + object,
      "a" + nul + "4 0\n" + object,
      nul + "-1 0\n" + object,
      nul + "+4 0\n" + object,
      nul + " 4 0\n" + object,
      nul + "4x 0\n" + object,
      nul + "\n4 0" + object,
      nul + "5 0\n" + object,
      nul + "99999999999999999999999 0\n" + object,
      nul + std::string(300, '4') + " 0\n" + object,
      nul + "4 " + std::string(300, '0') + "\n" + object,
  };
  for (const std::string& row : rows)
    EXPECT_EQ(Parse(WithTree(index, row)).tree, "") << testing::PrintToString(row);
  // The last one counts, as for git.
  std::string two = WithTree(index, whole);
  two.resize(two.size() - hash_size());
  two += WithTree("TREE", nul + "-1 0\n");
  EXPECT_EQ(Parse(two).tree, "");
  std::string longer = WithTree(index, whole);
  longer[longer.rfind("TREE") + 7] = '\x7f';
  auto read = ReadIndexEntries(AsBytes(longer), GetParam());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
}

TEST_P(IndexTreeTest, ASplitIndexSaysNothing) {
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  world.Git("repo", {"update-index", "--split-index"});
  EXPECT_TRUE(Read().split);
  EXPECT_EQ(Read().tree, "");
}

struct FromStart {
  IndexEntries entries;
  std::vector<std::string> met;
  size_t longest = 0;  // that was asked for
};
// `bytes` come `piece` at a time.
Result<FromStart> ReadOn(std::string_view bytes, size_t piece, GitHash hash,
                         size_t size) {
  FromStart out;
  const IndexSource source = [&](std::span<std::byte> to) -> Result<size_t> {
    out.longest = std::max(out.longest, to.size());
    const size_t part = std::min({piece, to.size(), bytes.size()});
    std::ranges::copy(AsBytes(bytes.substr(0, part)), to.begin());
    bytes.remove_prefix(part);
    return part;
  };
  BELAY_TRY(out.entries, VisitIndex(source, size, hash, [&](const MetEntry& met) {
              out.met.push_back(std::string(met.path) + " " + ToHex(met.object));
            }));
  return out;
}

TEST_P(IndexTreeTest, ReadFromItsStartOnItSaysTheSame) {
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  std::vector<std::string> samples = {world.Read("repo/.git/index")};
  world.Git("repo", {"update-index", "--index-version", "4"});
  samples.push_back(world.Read("repo/.git/index"));
  samples.push_back(WithTree(samples[0], TreeOf(samples[0])));  // without checksum
  world.Git("repo", {"update-index", "--split-index"});
  samples.push_back(world.Read("repo/.git/index"));
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string& bytes = samples[i];
    std::vector<std::string> met;
    auto expected = VisitIndex(AsBytes(bytes), GetParam(), [&](const MetEntry& one) {
      met.push_back(std::string(one.path) + " " + ToHex(one.object));
    });
    ASSERT_TRUE(expected.ok()) << expected.error().what;
    for (size_t piece : {size_t{1}, size_t{7}, size_t{100}, size_t{1} << 20}) {
      auto read = ReadOn(bytes, piece, GetParam(), bytes.size());
      ASSERT_TRUE(read.ok()) << i << ": " << read.error().what;
      EXPECT_EQ(read->met, met);
      EXPECT_EQ(read->entries.digest, expected->digest);
      EXPECT_EQ(read->entries.tree, expected->tree);
      EXPECT_EQ(read->entries.split, expected->split);
      EXPECT_LE(read->longest, size_t{256} << 10);
    }
    for (size_t length = 0; length < bytes.size(); ++length) {
      auto read = ReadOn(bytes.substr(0, length), 50, GetParam(), bytes.size());
      ASSERT_FALSE(read.ok()) << i << " cut at " << length;
      ASSERT_EQ(read.error().code, Errc::kCorrupt);
    }
    if (i == 2) continue;
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      EXPECT_FALSE(ReadOn(damaged, 50, GetParam(), bytes.size()).ok()) << at;
    }
  }
  auto failing = VisitIndex(
      [](std::span<std::byte>) -> Result<size_t> { return Error(Errc::kIo, "no"); },
      200, GetParam(), {});
  ASSERT_FALSE(failing.ok());
  EXPECT_EQ(failing.error().code, Errc::kIo);
}

INSTANTIATE_TEST_SUITE_P(Hashes, IndexTreeTest,
                         testing::Values(GitHash::kSha1, GitHash::kSha256),
                         [](const auto& row) {
                           return row.param == GitHash::kSha1 ? "Sha1" : "Sha256";
                         });

}  // namespace
}  // namespace belay::test
