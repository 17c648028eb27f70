// The index as Belay reads it against `git ls-files`: every version, both hashes, every
// kind of entry, and files that are none.

#include "git/index.h"

#include <chrono>
#include <iostream>
#include <set>

#include "base/mem_fs.h"
#include "base/random.h"
#include "base/sha1.h"
#include "git/repository.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/git_world.h"

namespace belay::test {
namespace {

std::vector<std::string> Names(const TrackedPaths& paths) {
  std::vector<std::string> names;
  for (size_t i = 0; i < paths.size(); ++i) names.emplace_back(paths.name(i));
  return names;
}

class IndexTest : public testing::Test {
 protected:
  GitRepository Repository(std::string_view dir = "repo") {
    auto found = Must(OpenRepositoryAt(fs, world / dir, world.user()));
    BELAY_CHECK(found.has_value());
    return *found;
  }
  Result<GitIndex> TryRead(std::string_view dir = "repo", size_t buffer = 0) {
    GitRepository repository = Repository(dir);
    ReadIndexOptions options = repository.index_options();
    if (buffer != 0) options.buffer = buffer;
    return ReadIndex(fs, repository.index(), options);
  }
  GitIndex Read(std::string_view dir = "repo", size_t buffer = 0) {
    GitIndex index;
    world.Around([&] { index = Must(TryRead(dir, buffer)); });
    return index;
  }
  // The names are git's, however small the buffer.
  void ExpectGitsNames(std::string_view dir = "repo") {
    std::vector<std::string> expected = world.ListFiles(dir);
    for (size_t buffer : {size_t{0}, size_t{64}, size_t{4097}}) {
      GitIndex index = Must(TryRead(dir, buffer));
      EXPECT_EQ(index.needs_git, "");
      EXPECT_EQ(Names(index.paths), expected) << "buffer " << buffer;
    }
    Read(dir);  // touches nothing
  }
  uint32_t Version(std::string_view dir = "repo") {
    return static_cast<unsigned char>(
        world.Read(std::string(dir) + "/.git/index").at(7));
  }
  void Fill(std::string_view dir = "repo") {
    std::string top(dir);
    world.Write(top + "/a.txt", "a\n");
    world.Write(top + "/dir/b", "b\n");
    world.Write(top + "/dir.c", "c\n");
    world.Write(top + "/dir0", "d\n");
    world.Write(top + "/deep/er/and/deeper/file with spaces", "e\n");
    world.Write(top + "/run", "#!/bin/sh\n", 0755);
    world.Symlink(top + "/link", "dir");
    world.Git(dir, {"add", "."});
  }

  RealFs fs;
  GitWorld world;
};

TEST_F(IndexTest, ThereIsNoneInANewRepository) {
  world.Init("repo");
  GitIndex index = Read();
  EXPECT_FALSE(index.stat.has_value());
  EXPECT_TRUE(index.paths.empty());
  EXPECT_FALSE(index.paths.HasBelow(""));
  EXPECT_FALSE(index.paths.HasFile("a"));
}

TEST_F(IndexTest, ReadsVersionTwo) {
  world.Init("repo");
  Fill();
  EXPECT_EQ(Version(), 2u);
  ExpectGitsNames();
  GitIndex index = Read();
  EXPECT_TRUE(index.stat.has_value());
  EXPECT_EQ(index.paths.Find("link"), TrackedPaths::kSymlink);
  EXPECT_EQ(index.paths.Find("run"), TrackedPaths::kFile);
}

TEST_F(IndexTest, ReadsVersionThreeWithIntentToAddAndSkipWorktree) {
  world.Init("repo");
  Fill();
  world.Write("repo/later", "x\n");
  world.Git("repo", {"add", "-N", "later"});
  world.Git("repo", {"update-index", "--skip-worktree", "dir/b"});
  EXPECT_EQ(Version(), 3u);
  ExpectGitsNames();
  EXPECT_TRUE(Read().paths.HasFile("later"));
  EXPECT_TRUE(Read().paths.HasFile("dir/b"));
}

TEST_F(IndexTest, ReadsVersionFour) {
  world.Init("repo");
  Fill();
  world.Git("repo", {"update-index", "--index-version", "4"});
  EXPECT_EQ(Version(), 4u);
  ExpectGitsNames();
  world.Write("repo/later", "x\n");
  world.Git("repo", {"add", "-N", "later"});
  ExpectGitsNames();
}

TEST_F(IndexTest, ReadsSha256Repositories) {
  world.Init("repo", {"--object-format=sha256"});
  Fill();
  EXPECT_EQ(Repository().hash, GitHash::kSha256);
  ExpectGitsNames();
  world.Git("repo", {"update-index", "--index-version", "4"});
  ExpectGitsNames();
}

TEST_F(IndexTest, ReadsAnIndexWithoutChecksum) {
  world.Init("repo");
  Fill();
  std::string bytes = world.Read("repo/.git/index");
  world.Write("repo/.git/index", bytes.replace(bytes.size() - 20, 20, 20, '\0'));
  ExpectGitsNames();
}

TEST_F(IndexTest, UnmergedPathsAreTracked) {
  world.Init("repo");
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  world.Git("repo", {"checkout", "-qb", "other"});
  world.Write("repo/a.txt", "theirs\n");
  world.Git("repo", {"rm", "-q", "run"});
  world.Git("repo", {"commit", "-qam", "two"});
  world.Git("repo", {"checkout", "-q", "main"});
  world.Write("repo/a.txt", "ours\n");
  world.Write("repo/run", "ours\n", 0755);
  world.Git("repo", {"commit", "-qam", "three"});
  EXPECT_FALSE(world.TryGit("repo", {"merge", "-q", "other"}).ok());
  EXPECT_NE(world.Git("repo", {"ls-files", "-u"}), "");
  ExpectGitsNames();
  EXPECT_TRUE(Read().paths.HasFile("a.txt"));
  EXPECT_TRUE(Read().paths.HasFile("run"));
}

TEST_F(IndexTest, GitlinksAreSubmodulesAndNotFiles) {
  world.Init("repo");
  Fill();
  std::string oid(40, 'a');
  world.Git("repo",
            {"update-index", "--add", "--cacheinfo", "160000," + oid + ",sub/x"});
  ExpectGitsNames();
  TrackedPaths paths = Read().paths;
  EXPECT_TRUE(paths.IsGitlink("sub/x"));
  EXPECT_FALSE(paths.HasFile("sub/x"));
  EXPECT_TRUE(paths.HasBelow("sub"));
  EXPECT_FALSE(paths.HasBelow("sub/x"));
  EXPECT_FALSE(paths.IsGitlink("a.txt"));
}

// Names are any bytes but NUL; git refuses "." and "..", empty parts and ".git".
std::vector<std::string> OddNames(uint64_t seed, size_t count) {
  SeededRandom random(seed);
  std::set<std::string> names;
  while (names.size() < count) {
    std::string name;
    for (uint64_t parts = 1 + random.Below(3); parts > 0; --parts) {
      if (!name.empty()) name += '/';
      std::string part = "n";
      for (uint64_t length = random.Below(12); length > 0; --length) {
        char c = static_cast<char>(random.Below(4) == 0 ? 1 + random.Below(255)
                                                        : "aAbB-./0~"[random.Below(9)]);
        if (c != '/' && c != '\0') part += c;
      }
      name += part;
    }
    if (random.Below(500) == 0) name += std::string(random.Below(5000), 'l');
    names.insert(name);
  }
  // A file may not be a directory of another as well.
  std::vector<std::string> out;
  for (const std::string& name : names) {
    bool clash = false;
    for (size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1))
      clash = clash || names.contains(name.substr(0, slash));
    if (!clash) out.push_back(name);
  }
  return out;
}

TEST_F(IndexTest, ReadsTenThousandOddNamesInEveryVersion) {
  world.Init("repo");
  std::vector<std::string> names = OddNames(TestSeed(1), 10'000);
  std::string input;
  for (const std::string& name : names)
    input += "100644 " + std::string(40, '1') + " 0\t" + name + '\0';
  world.Git("repo", {"update-index", "-z", "--index-info"}, input);
  for (const char* version : {"2", "4"}) {
    world.Git("repo", {"update-index", "--index-version", version});
    ExpectGitsNames();
  }
  TrackedPaths paths = Read().paths;
  EXPECT_EQ(paths.size(), names.size());
  std::set<std::string> tracked(names.begin(), names.end());
  std::set<std::string> directories;
  for (const std::string& name : names) {
    EXPECT_TRUE(paths.HasFile(name));
    EXPECT_FALSE(paths.HasBelow(name));
    for (size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1))
      directories.insert(name.substr(0, slash));
  }
  for (const std::string& dir : directories) {
    EXPECT_TRUE(paths.HasBelow(dir));
    EXPECT_FALSE(paths.HasFile(dir));
    size_t below = 0;
    auto range = paths.Below(dir);
    for (uint32_t i = range.begin; i < range.end; ++i)
      below += paths.name(i).starts_with(dir + "/") ? 1 : 0;
    EXPECT_EQ(below, range.end - range.begin);
    EXPECT_EQ(below, static_cast<size_t>(std::count_if(
                         names.begin(), names.end(), [&](const std::string& name) {
                           return name.starts_with(dir + "/");
                         })));
    // Neighbours in the order that are no such directory.
    for (std::string near : {dir + "0", dir + ".", dir + "\xff", dir.substr(1)}) {
      EXPECT_EQ(paths.HasBelow(near), directories.contains(near));
      EXPECT_EQ(paths.HasFile(near), tracked.contains(near));
    }
  }
}

TEST_F(IndexTest, ReadsASplitIndexWithoutTouchingItsSharedPart) {
  for (const char* format : {"sha1", "sha256"}) {
    SCOPED_TRACE(format);
    std::string dir = std::string("split-") + format;
    world.Init(dir, {std::string("--object-format=") + format});
    Fill(dir);
    world.Git(dir, {"config", "splitIndex.maxPercentChange", "100"});
    world.Git(dir, {"update-index", "--split-index"});
    ExpectGitsNames(dir);
    // Deleted, replaced, added, unmerged by hand, a gitlink in place of a file.
    world.Git(dir, {"rm", "-q", "--cached", "dir.c"});
    world.Write(dir + "/a.txt", "other\n");
    world.Write(dir + "/new/file", "n\n");
    world.Git(dir, {"add", "."});
    world.Git(dir, {"rm", "-q", "--cached", "dir.c", "dir0"});
    ExpectGitsNames(dir);
    std::string oid(std::string_view(format) == "sha1" ? 40 : 64, 'b');
    world.Git(dir, {"update-index", "--cacheinfo", "160000," + oid + ",run"});
    world.Git(dir, {"update-index", "--index-info"},
              "0 " + std::string(oid.size(), '0') + "\tdir/b\n" + "100644 " + oid +
                  " 1\tdir/b\n" + "100644 " + oid + " 3\tdir/b\n");
    EXPECT_NE(world.Git(dir, {"ls-files", "-u"}), "");
    ExpectGitsNames(dir);
    GitIndex index = Read(dir);
    EXPECT_TRUE(index.paths.IsGitlink("run"));
    EXPECT_FALSE(index.paths.HasFile("run"));
    EXPECT_TRUE(index.paths.HasFile("dir/b"));
    EXPECT_FALSE(index.paths.HasFile("dir0"));
    world.Git(dir, {"update-index", "--index-version", "4"});
    ExpectGitsNames(dir);
  }
}

TEST_F(IndexTest, ReadsASplitIndexAfterManyRandomChanges) {
  SeededRandom random(TestSeed(7));
  world.Init("repo");
  world.Git("repo", {"config", "splitIndex.maxPercentChange", "100"});
  std::string oid(40, '3');
  auto name = [](uint64_t i) {
    return "d" + std::to_string(i % 17) + "/f" + std::to_string(i);
  };
  std::string input;
  for (uint64_t i = 0; i < 400; ++i) input += "100644 " + oid + " 0\t" + name(i) + "\n";
  world.Git("repo", {"update-index", "--index-info"}, input);
  world.Git("repo", {"update-index", "--split-index"});
  for (int round = 0; round < (RunEverything() ? 300 : 20); ++round) {
    input.clear();
    for (uint64_t changes = 1 + random.Below(60); changes > 0; --changes) {
      uint64_t i = random.Below(600);
      switch (random.Below(4)) {
        case 0:
          input += "0 " + std::string(40, '0') + "\t" + name(i) + "\n";
          break;
        case 1:
          input += "160000 " + oid + " 0\t" + name(i) + "\n";
          break;
        case 2:
          // git itself leaves a merged entry beside a stage, and then cannot read it.
          input += "0 " + std::string(40, '0') + "\t" + name(i) + "\n";
          input += "100644 " + oid + " " + std::to_string(1 + random.Below(3)) + "\t" +
                   name(i) + "\n";
          break;
        default:
          input += "100755 " + std::string(40, '4') + " 0\t" + name(i) + "\n";
      }
    }
    world.Git("repo", {"update-index", "--index-info"}, input);
    ASSERT_EQ(Names(Must(TryRead()).paths), world.ListFiles("repo")) << input;
  }
  EXPECT_NE(world.Read("repo/.git/index").find("link"), std::string::npos);
}

TEST_F(IndexTest, ASplitIndexWithoutItsSharedPartIsAnError) {
  world.Init("repo");
  Fill();
  world.Git("repo", {"update-index", "--split-index"});
  RealFs real;
  Fd dir = Must(real.OpenDir(world / "repo/.git"));
  std::string shared;
  for (const DirEntry& entry : Must(real.List(dir)))
    if (entry.name.starts_with("sharedindex.")) shared = entry.name;
  ASSERT_NE(shared, "");
  std::string bytes = world.Read("repo/.git/" + shared);
  world.Remove("repo/.git/" + shared);
  auto read = TryRead();
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kNotFound);
  // Another index under its name.
  world.Init("other");
  world.Write("other/x", "x");
  world.Git("other", {"add", "."});
  world.Write("repo/.git/" + shared, world.Read("other/.git/index"));
  read = TryRead();
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
  world.Write("repo/.git/" + shared, bytes);
  ExpectGitsNames();
}

TEST_F(IndexTest, ASparseIndexNeedsGit) {
  world.Init("repo");
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  world.Git("repo", {"sparse-checkout", "set", "--cone", "--sparse-index", "dir"});
  GitIndex index = Read();
  EXPECT_EQ(index.needs_git, "the index is sparse");
  EXPECT_EQ(index.paths.Find("deep/"), TrackedPaths::kSparseDirectory);
  EXPECT_TRUE(index.paths.HasBelow("deep"));
  EXPECT_FALSE(index.paths.HasFile("deep/er/and/deeper/file with spaces"));
}

TEST_F(IndexTest, AnotherRequiredExtensionNeedsGitAndAnOptionalOneDoesNot) {
  world.Init("repo");
  Fill();
  std::string bytes = world.Read("repo/.git/index");
  auto with = [&](std::string_view extension) {
    std::string body = bytes.substr(0, bytes.size() - 20) + std::string(extension);
    Sha1 hasher;
    hasher.Update(AsBytes(body));
    auto hash = hasher.Finish();
    world.Write("repo/.git/index", body + std::string(AsText(hash)));
    return Must(TryRead());
  };
  using namespace std::string_view_literals;
  GitIndex optional = with("ABCD\0\0\0\3xyz"sv);
  EXPECT_EQ(optional.needs_git, "");
  EXPECT_TRUE(optional.paths.HasFile("a.txt"));
  EXPECT_NE(with("abcd\0\0\0\3xyz"sv).needs_git.find("'abcd'"), std::string::npos);
  world.Write("repo/.git/index", bytes);
}

TEST_F(IndexTest, ReadsTheIndexesOfLinkedWorkTreesAndSubmodules) {
  world.Init("repo");
  Fill();
  world.Git("repo", {"commit", "-qm", "one"});
  world.Git("repo", {"worktree", "add", "-q", "../linked", "-b", "side"});
  world.Write("linked/only-here", "x");
  world.Git("linked", {"add", "."});
  ExpectGitsNames("linked");
  EXPECT_TRUE(Read("linked").paths.HasFile("only-here"));
  EXPECT_FALSE(Read("repo").paths.HasFile("only-here"));
  world.Init("outer");
  world.Git("outer", {"submodule", "--quiet", "add", "../repo", "sub"});
  ExpectGitsNames("outer");
  EXPECT_TRUE(Read("outer").paths.IsGitlink("sub"));
  world.Git("outer", {"submodule", "update", "--init", "-q"});
  ExpectGitsNames("outer/sub");
}

// --- questions -----------------------------------------------------------------------

TrackedPaths Make(const std::vector<std::string>& names, uint32_t mode = 0100644) {
  TrackedPathsBuilder builder;
  for (const std::string& name : names) Must(builder.Add(name, mode, 0));
  return builder.Finish();
}

TEST(TrackedPaths, DirectoriesSortByTheirFullPath) {
  TrackedPaths paths = Make({"a", "b-c", "b.c", "b/c", "b0", "b\xff", "c/d/e"});
  EXPECT_TRUE(paths.HasBelow("b"));
  EXPECT_EQ(paths.Below("b"), (TrackedPaths::Range{3, 4}));
  EXPECT_TRUE(paths.HasBelow("c"));
  EXPECT_TRUE(paths.HasBelow("c/d"));
  EXPECT_FALSE(paths.HasBelow("a"));
  EXPECT_FALSE(paths.HasBelow("b-"));
  EXPECT_FALSE(paths.HasBelow("c/d/e"));
  EXPECT_FALSE(paths.HasBelow("z"));
  EXPECT_TRUE(paths.HasBelow(""));
  EXPECT_EQ(paths.Below(""), (TrackedPaths::Range{0, 7}));
  EXPECT_TRUE(paths.HasFile("b\xff"));
  EXPECT_FALSE(paths.HasFile("b"));
}

TEST(TrackedPaths, AnswersAsAPlainListOfNamesWould) {
  SeededRandom random(TestSeed(5));
  auto fold = [](std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
  };
  auto make = [&] {
    std::string name;
    for (uint64_t parts = 1 + random.Below(4); parts > 0; --parts) {
      for (uint64_t bytes = 1 + random.Below(2); bytes > 0; --bytes)
        name += "aA.0\xff"[random.Below(5)];
      if (parts > 1) name += '/';
    }
    return name;
  };
  for (int round = 0; round < (RunEverything() ? 3000 : 60); ++round) {
    std::set<std::string> names;
    for (uint64_t count = random.Below(60); count > 0; --count) names.insert(make());
    TrackedPaths paths = Make({names.begin(), names.end()});
    ASSERT_EQ(Names(paths), std::vector<std::string>(names.begin(), names.end()));
    std::string whole;
    for (const std::string& name : names) whole += name + '\0';
    ASSERT_EQ(paths.names_digest(), Sha256::Of(AsBytes(whole + '\0')));
    TrackedPaths folded = paths;
    folded.FoldCase();
    for (int question = 0; question < 200; ++question) {
      const std::string asked = make();
      auto below = [&](const std::string& name) {
        return name.starts_with(asked + "/");
      };
      ASSERT_EQ(paths.HasFile(asked), names.contains(asked)) << asked;
      ASSERT_EQ(paths.HasBelow(asked), std::ranges::any_of(names, below)) << asked;
      const auto range = paths.Below(asked);
      ASSERT_EQ(range.end - range.begin, std::ranges::count_if(names, below)) << asked;
      ASSERT_EQ(folded.HasFile(asked),
                std::ranges::any_of(
                    names,
                    [&](const std::string& name) { return fold(name) == fold(asked); }))
          << asked;
      ASSERT_EQ(folded.HasBelow(asked),
                std::ranges::any_of(names,
                                    [&](const std::string& name) {
                                      return fold(name).starts_with(fold(asked) + "/");
                                    }))
          << asked;
    }
  }
}

// Of half a million files whole names would be 32 MB of memory.
TEST(TrackedPaths, NeighboursShareTheirDirectory) {
  const std::string dir = "a/directory/with/a/rather/long/path/";
  std::vector<std::string> names;
  for (int i = 100'000; i < 110'000; ++i) names.push_back(dir + std::to_string(i));
  EXPECT_LT(Make(names).memory(), 10'000 * 12 + 200u);
}

TEST(TrackedPaths, FoldsTheCaseOfAsciiLettersOnly) {
  TrackedPaths paths = Make({"Makefile", "SRC/a", "makeFILE", "src/B", "\xc3\x84"});
  EXPECT_FALSE(paths.HasFile("MAKEFILE"));
  EXPECT_FALSE(paths.HasFile("src/A"));
  paths.FoldCase();
  EXPECT_TRUE(paths.HasFile("MAKEFILE"));
  EXPECT_TRUE(paths.HasFile("src/A"));
  EXPECT_TRUE(paths.HasFile("Src/b"));
  EXPECT_TRUE(paths.HasBelow("sRc"));
  EXPECT_FALSE(paths.HasBelow("sr"));
  EXPECT_FALSE(paths.HasBelow("srcs"));
  EXPECT_TRUE(paths.HasFile("\xc3\x84"));
  EXPECT_FALSE(paths.HasFile("\xc3\xa4"));
}

TEST(TrackedPaths, TheDigestSeesNamesAndGitlinksAlone) {
  TrackedPaths one = Make({"a", "b"});
  EXPECT_EQ(one.names_digest(), Make({"a", "b"}).names_digest());
  EXPECT_EQ(one.names_digest(), Make({"a", "b"}, 0100755).names_digest());
  EXPECT_NE(one.names_digest(), Make({"a"}).names_digest());
  EXPECT_NE(one.names_digest(), Make({"a", "c"}).names_digest());
  EXPECT_NE(one.names_digest(), Make({"a", "b"}, 0160000).names_digest());
  EXPECT_NE(Make({}).names_digest(), Make({"a"}).names_digest());
  TrackedPathsBuilder builder;
  Must(builder.Add("a", 0100644, 0));
  Must(builder.Add("b", 0160000, 0));
  TrackedPaths two = builder.Finish();
  EXPECT_NE(two.names_digest(), one.names_digest());
  EXPECT_NE(two.names_digest(), Make({"a", "b"}, 0160000).names_digest());
}

TEST_F(IndexTest, TheDigestStaysWhenOnlyTheStatOfAFileChanges) {
  world.Init("repo");
  Fill();
  GitIndex before = Read();
  world.Write("repo/a.txt", "something else of another size\n");
  world.Git("repo", {"add", "."});
  GitIndex after = Read();
  EXPECT_NE(before.stat->mtime_ns, after.stat->mtime_ns);
  EXPECT_EQ(before.paths.names_digest(), after.paths.names_digest());
  world.Write("repo/new", "");
  world.Git("repo", {"add", "."});
  EXPECT_NE(before.paths.names_digest(), Read().paths.names_digest());
}

TEST(TrackedPaths, RefusesEntriesThatNoIndexHas) {
  struct Row {
    const char* what;
    std::vector<std::tuple<std::string, uint32_t, unsigned>> entries;
  };
  const Row rows[] = {
      {"no name", {{"", 0100644, 0}}},
      {"a NUL", {{std::string("a\0b", 3), 0100644, 0}}},
      {"out of order", {{"b", 0100644, 0}, {"a", 0100644, 0}}},
      {"twice", {{"a", 0100644, 0}, {"a", 0100644, 0}}},
      {"merged and unmerged", {{"a", 0100644, 0}, {"a", 0100644, 1}}},
      {"a stage twice", {{"a", 0100644, 2}, {"a", 0100644, 2}}},
      {"stages that fall", {{"a", 0100644, 3}, {"a", 0100644, 1}}},
      {"a strange mode", {{"a", 0010644, 0}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    TrackedPathsBuilder builder;
    Status last = Ok();
    for (const auto& [name, mode, stage] : row.entries)
      last = builder.Add(name, mode, stage);
    ASSERT_FALSE(last.ok());
    EXPECT_EQ(last.error().code, Errc::kCorrupt);
  }
}

// --- hostile bytes -------------------------------------------------------------------

// One index of each version, in memory, and every way of damaging it.
class DamagedIndex : public IndexTest {
 protected:
  void SetUp() override {
    world.Init("repo");
    Fill();
    world.Git("repo", {"update-index", "--add", "--cacheinfo",
                       "160000," + std::string(40, 'a') + ",sub"});
    world.Write("repo/later", "x\n");
    world.Git("repo", {"add", "-N", "later"});
    samples.push_back(world.Read("repo/.git/index"));
    world.Git("repo", {"update-index", "--index-version", "4"});
    samples.push_back(world.Read("repo/.git/index"));
    world.Init("split");
    world.Git("split", {"config", "splitIndex.maxPercentChange", "100"});
    Fill("split");
    world.Git("split", {"update-index", "--split-index"});
    world.Git("split", {"rm", "-q", "--cached", "dir0"});
    samples.push_back(world.Read("split/.git/index"));
    Fd dir = Must(fs.OpenDir(world / "split/.git"));
    for (const DirEntry& entry : Must(fs.List(dir)))
      if (entry.name.starts_with("sharedindex."))
        Must(PutFile(mem, git_dir, N(entry.name),
                     world.Read("split/.git/" + entry.name)));
  }
  Result<GitIndex> Parse(std::string_view bytes, GitHash hash = GitHash::kSha1) {
    Must(PutFile(mem, git_dir, N("index"), bytes));
    return ReadIndex(mem, AbsPath::Literal("/g/index"), {.hash = hash, .buffer = 128});
  }

  MemFs mem;
  Fd git_dir = Must(MakeDirs(mem, AbsPath::Literal("/g"), 0755));
  std::vector<std::string> samples;
};

TEST_F(DamagedIndex, EveryTruncationIsAnError) {
  for (size_t sample = 0; sample < samples.size(); ++sample) {
    ASSERT_TRUE(Parse(samples[sample]).ok()) << sample;
    for (size_t length = 0; length < samples[sample].size(); ++length) {
      auto read = Parse(std::string_view(samples[sample]).substr(0, length));
      ASSERT_FALSE(read.ok()) << "sample " << sample << " length " << length;
      ASSERT_EQ(read.error().code, Errc::kCorrupt) << read.error().what;
    }
  }
}

TEST_F(DamagedIndex, EveryFlippedBitIsAnError) {
  for (size_t sample = 0; sample < samples.size(); ++sample) {
    std::string bytes = samples[sample];
    for (size_t i = 0; i < bytes.size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
        auto read = Parse(bytes);
        ASSERT_FALSE(read.ok())
            << "sample " << sample << " byte " << i << " bit " << bit;
        bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      }
  }
}

// The same with the checksum made right, or left out, so that the parser itself is what
// stands between the bytes and us.
TEST_F(DamagedIndex, WithARightChecksumTheParserHolds) {
  SeededRandom random(TestSeed(3));
  size_t read_ok = 0;
  size_t runs = 0;
  for (const std::string& sample : samples) {
    for (int round = 0; round < (RunEverything() ? 2'000'000 : 20'000); ++round) {
      std::string bytes = sample;
      for (uint64_t edits = 1 + random.Below(3); edits > 0; --edits) {
        size_t at = random.Below(bytes.size() - 20);
        switch (random.Below(3)) {
          case 0:
            bytes[at] = static_cast<char>(random.Below(256));
            break;
          case 1:
            bytes.erase(at, 1 + random.Below(8));
            break;
          default:
            bytes.insert(at, std::string(1 + random.Below(8),
                                         static_cast<char>(random.Below(256))));
        }
        if (bytes.size() < 40) bytes = sample;
      }
      bytes.replace(bytes.size() - 20, 20, 20, '\0');
      auto read = Parse(bytes);
      ++runs;
      if (read.ok()) {
        ++read_ok;
        for (size_t i = 0; i < read->paths.size(); ++i)
          ASSERT_NE(read->paths.Find(read->paths.name(i)), 0);
      } else {
        ASSERT_TRUE(read.error().code == Errc::kCorrupt ||
                    read.error().code == Errc::kUnsupported ||
                    read.error().code == Errc::kNotFound)
            << read.error().what;
      }
    }
  }
  std::cout << runs << " damaged indexes, " << read_ok << " still of the right form\n";
  EXPECT_GT(read_ok, 0u);
}

TEST_F(DamagedIndex, TheOtherHashIsAnError) {
  auto read = Parse(samples[0], GitHash::kSha256);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
}

TEST_F(DamagedIndex, WhatIsNoFileIsRefusedAndDoesNotHang) {
  struct Row {
    const char* what;
    std::function<void()> make;
  };
  const Row rows[] = {
      {"a FIFO", [&] { world.MakeFifo("repo/.git/index"); }},
      {"a directory", [&] { world.MakeDir("repo/.git/index"); }},
      {"a device", [&] { world.Symlink("repo/.git/index", "/dev/zero"); }},
      {"a loop", [&] { world.Symlink("repo/.git/index", "index"); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    world.Remove("repo/.git/index");
    row.make();
    auto read = TryRead();
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, Errc::kInvalid) << read.error().what;
  }
  world.Remove("repo/.git/index");
  world.Write("elsewhere", samples[0]);
  world.Symlink("repo/.git/index", "../../elsewhere");
  EXPECT_TRUE(Must(TryRead()).paths.HasFile("a.txt"));  // git follows it too
  world.Remove("repo/.git/index");
  world.Symlink("repo/.git/index", "../../nowhere");
  EXPECT_FALSE(Must(TryRead()).stat.has_value());
}

// No assertion on time: the figures are printed for whoever looks.
TEST_F(IndexTest, AHundredThousandEntries) {
  world.Init("repo");
  std::string input;
  for (int i = 0; i < 100'000; ++i)
    input += "100644 " + std::string(40, '1') + " 0\tsrc/package" +
             std::to_string(i / 1000) + "/module" + std::to_string(i / 20 % 50) +
             "/some_source_file_" + std::to_string(i) + ".cc\n";
  world.Git("repo", {"update-index", "--index-info"}, input);
  for (const char* version : {"2", "4"}) {
    world.Git("repo", {"update-index", "--index-version", version});
    GitRepository repository = Repository();
    auto clock = [] { return std::chrono::steady_clock::now(); };
    auto ms = [](auto from, auto to) {
      return std::chrono::duration<double, std::milli>(to - from).count();
    };
    double best = 1e9;
    double digest = 1e9;
    double find = 1e9;
    GitIndex index;
    for (int round = 0; round < 5; ++round) {
      auto start = clock();
      index = Must(ReadIndex(fs, repository.index(), repository.index_options()));
      auto read = clock();
      Hash256 hash = index.paths.names_digest();
      auto hashed = clock();
      size_t found = 0;
      for (size_t i = 0; i < index.paths.size(); ++i)
        found += index.paths.HasFile(index.paths.name(i)) ? 1 : 0;
      auto asked = clock();
      EXPECT_FALSE(hash.is_zero());
      EXPECT_EQ(found, 100'000u);
      best = std::min(best, ms(start, read));
      digest = std::min(digest, ms(read, hashed));
      find = std::min(find, ms(hashed, asked));
    }
    size_t names = 0;
    for (size_t i = 0; i < index.paths.size(); ++i) names += index.paths.name(i).size();
    std::cout << "version " << version << ": " << index.stat->size << " bytes read in "
              << best << " ms, digest " << digest << " ms, 100,000 questions " << find
              << " ms, memory " << index.paths.memory() << " for " << names
              << " bytes of names\n";
    EXPECT_LE(index.paths.memory(), names + 6 * index.paths.size() + 8);
  }
}

}  // namespace
}  // namespace belay::test
