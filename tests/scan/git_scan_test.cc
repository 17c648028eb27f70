// Scans of real directories: repositories that the real git made, mounts, odd names.
// GitWorld fails every test in which a byte of a git directory changed.

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>
#include <set>

#include "base/real_fs.h"
#include "crash/hook_fs.h"
#include "scan/scan.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/git_world.h"
#include "support/memory_sink.h"
#include "support/temp_dir.h"

namespace belay {
namespace {

using test::GitWorld;
using test::MemorySink;
using test::Must;
using test::N;
using test::TempDir;

using Paths = std::set<std::string>;

class RealScan {
 public:
  RealScan(AbsPath root, GitUserConfig user) {
    cache_ = Must(fs_.OpenDir(cache_dir_.path()));
    request_.root = std::move(root);
    request_.git.user = std::move(user);
    request_.cache_dir = &cache_;
    lists_.default_excludes = false;
  }

  ScanSummary Run() {
    request_.rules = std::make_shared<RuleConfig>(lists_);
    // A bad sector in the index.
    test::HookFs hooked(fs_, [](FsCall, const std::string&) { return Ok(); });
    hooked.SetOnRead([&](const std::string& name, uint64_t, size_t) -> Status {
      if (fail_reads_of_index && name == "index") return SysError(EIO, "read");
      return Ok();
    });
    Fs& fs = fail_reads_of_index ? static_cast<Fs&>(hooked) : fs_;
    auto scan = Must(Scan::Run(fs, clock_, random_, request_, sink_));
    Must(scan->SaveCache());
    return scan->summary();
  }
  Paths Covered() {
    Paths paths;
    for (const auto& [path, about] : sink_.List(Run().tree)) paths.insert(path);
    return paths;
  }
  RuleLists& lists() { return lists_; }
  bool fail_reads_of_index = false;
  // As long after the last edit as is needed to trust time stamps.
  void Settle() { clock_.ahead += 10'000; }

 private:
  struct LateClock final : Clock {
    int64_t WallMillis() override { return RealClock().WallMillis() + ahead; }
    int64_t SteadyNanos() override { return RealClock().SteadyNanos(); }
    void SleepNanos(int64_t n) override { RealClock().SleepNanos(n); }
    int64_t ahead = 0;
  };
  RealFs fs_;
  LateClock clock_;
  SeededRandom random_{1};
  TempDir cache_dir_;
  Fd cache_;
  MemorySink sink_;
  RuleLists lists_;
  ScanRequest request_{
      .root = AbsPath::Literal("/"), .root_id = {}, .rules = {}, .git = {}};
};

Paths Listed(GitWorld& world, std::string_view repo) {
  Paths paths;
  std::string out =
      world.Git(repo, {"ls-files", "-coz", "--exclude-standard", "--deduplicate"});
  for (size_t at = 0; at < out.size();) {
    size_t end = out.find('\0', at);
    std::string path = out.substr(at, end - at);
    if (!path.ends_with('/')) paths.insert(path);
    at = end + 1;
  }
  return paths;
}

// Mutant: tracked-are-forgotten.
TEST(GitScan, WhatRestsIsReadAgainForWhoAsks) {
  GitWorld world;
  world.Init("repo");
  const std::string blob =
      world.Git("repo", {"hash-object", "-w", "--stdin"}, "one").substr(0, 40);
  std::string input;
  const std::string long_name = "in/" + std::string(180, 'n');
  for (int i = 10'000; i < 24'000; ++i)
    input += "100644 " + blob + "\t" + long_name + std::to_string(i) + "\n";
  world.Git("repo", {"update-index", "--index-info"}, input);
  RealFs fs;
  RealClock clock;
  GitPlaces places;
  places.user = world.user();
  WorkTreeLoader loader(fs, clock, places);
  const WorkTreeFacts facts = Must(loader.AroundRoot(world / "repo", {}));
  const TrackedSet* tracked = facts.tree->tracked();
  ASSERT_NE(tracked, nullptr);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(tracked->HasFile(long_name + "12345"));
    EXPECT_TRUE(tracked->HasBelow("in"));
    EXPECT_FALSE(tracked->HasFile(long_name));
    EXPECT_FALSE(tracked->unknown());
    tracked->Rest();
  }
}

TEST(GitScan, CoversWhatGitTracksOrDoesNotIgnore) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.o\n/out/\n!keep.o\n");
  world.Write("r/a.c", "1");
  world.Write("r/a.o", "1");
  world.Write("r/keep.o", "1");
  world.Write("r/tracked.o", "1");
  world.Write("r/out/x", "1");
  world.Write("r/out/deep/tracked", "1");
  world.Write("r/sub/.gitignore", "secret*\n");
  world.Write("r/sub/secret1", "1");
  world.Write("r/.git/info/exclude", "excluded\n");
  world.Write("r/excluded", "1");
  world.Write("home/.config/git/ignore", "*~\n");
  world.Write("r/backup~", "1");
  world.Git("r", {"add", "-f", "tracked.o", "out/deep/tracked", "a.c"});
  RealScan scan(world / "r", world.user());
  world.Around([&] { EXPECT_EQ(scan.Covered(), Listed(world, "r")); });
  EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "a.c", "keep.o", "out/deep/tracked",
                                   "sub/.gitignore", "tracked.o"}));
}

TEST(GitScan, FollowsWhatIsAddedToAndTakenFromTheIndex) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.o\n");
  world.Write("r/a.o", "1");
  world.Write("r/b.c", "1");
  world.Git("r", {"add", "b.c"});
  RealScan scan(world / "r", world.user());
  scan.Settle();
  EXPECT_FALSE(scan.Covered().contains("a.o"));
  world.Git("r", {"add", "-f", "a.o"});
  EXPECT_TRUE(scan.Covered().contains("a.o"));
  scan.Settle();
  scan.Run();
  world.Git("r", {"rm", "-q", "--cached", "a.o"});
  EXPECT_FALSE(scan.Covered().contains("a.o"));
}

TEST(GitScan, AnIndexThatWasOnlyRefreshedListsNothing) {
  GitWorld world;
  world.Init("r");
  world.Write("r/a", "1");
  world.Git("r", {"add", "."});
  RealScan scan(world / "r", world.user());
  scan.Settle();
  scan.Run();
  EXPECT_EQ(scan.Run().listed_dirs, 0u);
  world.Write("r/a", "2");
  world.Git("r", {"add", "a"});
  ScanSummary after = scan.Run();
  EXPECT_EQ(after.listed_dirs, 0u);
  EXPECT_EQ(after.read_files, 1u);
}

TEST(GitScan, NestedRepositoriesFollowTheirOwnRules) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.log\nvendor/\n");
  world.Init("r/lib");
  world.Write("r/lib/.gitignore", "*.tmp\n");
  world.Write("r/lib/a.log", "1");
  world.Write("r/lib/b.tmp", "1");
  world.Write("r/lib/c", "1");
  world.Init("r/vendor");
  world.Write("r/vendor/x", "1");
  world.Write("r/top.log", "1");
  RealScan scan(world / "r", world.user());
  EXPECT_EQ(scan.Covered(),
            (Paths{".gitignore", "lib/.gitignore", "lib/a.log", "lib/c"}));
  ScanSummary summary = scan.Run();
  ASSERT_EQ(summary.work_trees.size(), 2u);
  EXPECT_EQ(summary.work_trees[0].path, "");
  EXPECT_EQ(summary.work_trees[1].path, "lib");
}

TEST(GitScan, ADirectoryThatBecomesARepositoryIsSeenThoughItsTimeStands) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.log\n");
  world.MakeDir("r/lib/.git");
  world.Write("r/lib/a.log", "1");
  RealScan scan(world / "r", world.user());
  scan.Settle();
  EXPECT_FALSE(scan.Covered().contains("lib/a.log"));
  scan.Run();
  // What `git init` does after the directory is there.
  world.Write("r/lib/.git/HEAD", "ref: refs/heads/main\n");
  world.MakeDir("r/lib/.git/objects");
  world.MakeDir("r/lib/.git/refs");
  EXPECT_TRUE(scan.Covered().contains("lib/a.log"));
}

TEST(GitScan, GitDirectoriesUnderAnyNameAreLeftOut) {
  GitWorld world;
  world.Write("r/linked/c", "1");
  world.Git("r/linked", {"init", "-q"});
  world.Git("", {"-c",
                 "alias.relocate=!mv r/linked/.git r/store && ln -s ../store "
                 "r/linked/.git",
                 "relocate"});
  world.Init("r/.bare", {"--bare"});
  world.Init("seed");
  world.Write("seed/a", "1");
  world.Git("seed", {"add", "a"});
  world.Git("seed", {"commit", "-qm", "one"});
  world.Git("seed", {"push", "-q", "../r/.bare", "HEAD:refs/heads/main"});
  world.Git("r/.bare", {"worktree", "add", "-q", "../main", "main"});
  world.MakeDir("r/apart");
  world.Git("r/apart", {"init", "-q", "--separate-git-dir", "../x"});
  world.Write("r/apart/b", "1");
  world.Init("r/deep/remote.git", {"--bare"});
  // Alike, and nobody's repository.
  world.Write("r/plain/HEAD", "no ref\n");
  world.Write("r/plain/objects/o", "1");
  world.Write("r/plain/refs/r", "1");
  RealScan scan(world / "r", world.user());
  scan.Settle();
  const Paths covered{"apart/b",    "linked/c",        "main/a",
                      "plain/HEAD", "plain/objects/o", "plain/refs/r"};
  const std::vector<SkippedPath> skipped{{".bare", Skip::kGitDir},
                                         {"deep/remote.git", Skip::kGitDir},
                                         {"store", Skip::kGitDir},
                                         {"x", Skip::kGitDir}};
  world.Around([&] {
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE(round);
      Paths now = scan.Covered();
      EXPECT_EQ(now, covered);
      EXPECT_EQ(scan.Run().skipped, skipped);
    }
    EXPECT_EQ(scan.Run().listed_dirs, 0u) << "its fingerprint stands for it";
  });
  // No longer one, though the directory around it did not change.
  world.Remove("r/x/HEAD");
  EXPECT_TRUE(scan.Covered().contains("x/config"));
  world.Write("r/x/HEAD", "ref: refs/heads/main\n");
  EXPECT_FALSE(scan.Covered().contains("x/config"));
}

TEST(GitScan, AGitDirectoryWithTrackedFilesIsTheProjects) {
  GitWorld world;
  world.Init("r");
  world.Init("r/fixture.git", {"--bare"});
  RealScan scan(world / "r", world.user());
  scan.Settle();
  EXPECT_FALSE(scan.Covered().contains("fixture.git/HEAD"));
  world.Git("r", {"add", "-f", "fixture.git"});
  EXPECT_TRUE(scan.Covered().contains("fixture.git/HEAD"));
  scan.Settle();
  scan.Run();
  world.Git("r", {"rm", "-rq", "--cached", "fixture.git"});
  EXPECT_FALSE(scan.Covered().contains("fixture.git/HEAD"));
}

TEST(GitScan, ARootBelowTheTopObeysTheRulesAboveIt) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.o\n/pkg/gen/\n");
  world.Write("r/pkg/a.o", "1");
  world.Write("r/pkg/gen/x", "1");
  world.Write("r/pkg/src/b", "1");
  world.Write("r/pkg/tracked.o", "1");
  world.Git("r", {"add", "-f", "pkg/tracked.o"});
  RealScan scan(world / "r/pkg", world.user());
  scan.Settle();
  EXPECT_EQ(scan.Covered(), (Paths{"src/b", "tracked.o"}));
  scan.Run();
  world.Write("r/.gitignore", "/pkg/gen/\n");
  EXPECT_EQ(scan.Covered(), (Paths{"a.o", "src/b", "tracked.o"}));
}

TEST(GitScan, LinkedWorkTreesSplitAndSparseIndexes) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.o\n");
  world.Write("r/a.o", "1");
  world.Write("r/in/b.o", "1");
  world.Write("r/out/c.o", "1");
  world.Git("r", {"add", "-f", "."});
  world.Git("r", {"commit", "-qm", "x"});
  world.Git("r", {"worktree", "add", "-q", "../w"});
  {
    RealScan scan(world / "w", world.user());
    EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "a.o", "in/b.o", "out/c.o"}));
  }
  world.Git("r", {"update-index", "--split-index"});
  world.Write("r/d.o", "1");
  world.Git("r", {"add", "-f", "d.o"});
  {
    RealScan scan(world / "r", world.user());
    EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "a.o", "d.o", "in/b.o", "out/c.o"}));
  }
  world.Git("w", {"sparse-checkout", "set", "--cone", "--sparse-index", "in"});
  world.Write("w/out/c.o", "1");
  {
    RealScan scan(world / "w", world.user());
    EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "a.o", "in/b.o", "out/c.o"}));
  }
}

TEST(GitScan, AnIndexThatCannotBeReadIsSaid) {
  GitWorld world;
  world.Init("r");
  world.Write("r/a", "1");
  world.Write("r/.git/index", "no index at all");
  RealScan scan(world / "r", world.user());
  ScanSummary summary = scan.Run();
  EXPECT_EQ(summary.files, 1u);
  ASSERT_EQ(summary.work_trees.size(), 1u);
  EXPECT_FALSE(summary.work_trees[0].facts.trouble.empty());
  EXPECT_TRUE(summary.work_trees[0].facts.index_unknown);
}

TEST(GitScan, WhatWasTrackedThoughIgnoredStaysCoveredWhileTheIndexCannotBeRead) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.o\nout/\n");
  world.Write("r/a.o", "1");
  world.Write("r/new.o", "1");
  world.Write("r/out/deep/b", "1");
  world.Write("r/out/deep/junk", "1");
  world.Init("r/lib");
  world.Write("r/lib/.gitignore", "*.o\n");
  world.Write("r/lib/c.o", "1");
  world.Git("r", {"add", "-f", "a.o", "out/deep/b"});
  world.Git("r/lib", {"add", "-f", "c.o"});
  const Paths all{".gitignore", "a.o", "lib/.gitignore", "lib/c.o", "out/deep/b"};
  RealScan scan(world / "r", world.user());
  scan.Settle();
  ASSERT_EQ(scan.Covered(), all);
  world.Write("r/.git/index", "no index at all");
  world.Write("r/lib/.git/index", "nor this");
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    EXPECT_EQ(scan.Covered(), all);
    ScanSummary summary = scan.Run();
    ASSERT_EQ(summary.work_trees.size(), 2u);
    for (const auto& top : summary.work_trees)
      EXPECT_TRUE(top.facts.index_unknown) << top.path;
    scan.Settle();
  }
  // What is gone is gone, new content is seen.
  world.Remove("r/a.o");
  world.Write("r/lib/c.o", "22");
  EXPECT_EQ(scan.Covered(),
            (Paths{".gitignore", "lib/.gitignore", "lib/c.o", "out/deep/b"}));
  // Readable again: by the rules.
  world.Remove("r/.git/index");
  world.Remove("r/lib/.git/index");
  EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "lib/.gitignore"}));
  EXPECT_FALSE(scan.Run().work_trees.at(0).facts.index_unknown);
}

TEST(GitScan, AnIndexThatCannotBeReadLaterIsSaidAndAskedAgain) {
  GitWorld world;
  world.Init("r");
  world.Write("r/.gitignore", "*.o\n");
  world.Write("r/a.o", "1");
  world.Write("r/b.o", "1");
  world.Git("r", {"add", "-f", "a.o"});
  RealScan scan(world / "r", world.user());
  scan.Settle();
  scan.Run();
  // A new name makes the rules, and so the index, be asked; reading it fails just then.
  world.Write("r/c.o", "1");
  scan.fail_reads_of_index = true;
  ScanSummary failed = scan.Run();
  EXPECT_FALSE(failed.work_trees.at(0).facts.trouble.empty());
  EXPECT_TRUE(failed.work_trees.at(0).facts.index_unknown);
  EXPECT_EQ(failed.files, 2u) << "a.o stays";
  scan.fail_reads_of_index = false;
  scan.Settle();
  EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "a.o"}));
  world.Git("r", {"add", "-f", "b.o"});
  EXPECT_EQ(scan.Covered(), (Paths{".gitignore", "a.o", "b.o"}));
}

TEST(RealScan, ACaseOnlyRenameIsSeen) {
  TempDir dir;
  RealFs fs;
  Fd root = Must(fs.OpenDir(dir.path()));
  Must(test::PutFile(fs, root, test::P("readme"), "1"));
  RealScan scan(dir.path(), {});
  EXPECT_EQ(scan.Covered(), Paths{"readme"});
  Must(fs.Rename(root, N("readme"), root, N("README"), RenameHow::kReplace));
  EXPECT_EQ(scan.Covered(), Paths{"README"});
}

TEST(RealScan, ABindMountIsNotEntered) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  TempDir dir;
  TempDir elsewhere;
  RealFs fs;
  Fd root = Must(fs.OpenDir(dir.path()));
  Fd other = Must(fs.OpenDir(elsewhere.path()));
  Must(fs.MakeDir(root, N("mnt"), 0755));
  Must(test::PutFile(fs, root, test::P("own"), "1"));
  Must(test::PutFile(fs, root, test::P("file"), "1"));
  Must(test::PutFile(fs, other, test::P("foreign"), "1"));
  RealScan scan(dir.path(), {});
  scan.Settle();
  EXPECT_EQ(scan.Covered(), (Paths{"file", "own"}));
  const std::string at = dir.path().bytes() + "/mnt";
  const std::string file = dir.path().bytes() + "/file";
  const std::string foreign = elsewhere.path().bytes() + "/foreign";
  if (mount(elsewhere.path().c_str(), at.c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(mount(foreign.c_str(), file.c_str(), nullptr, MS_BIND, nullptr), 0);
  // The same file system, so the device is the same: only the kernel can tell.
  EXPECT_EQ(scan.Covered(), Paths{"own"});
  EXPECT_EQ(scan.Run().skipped.size(), 2u);
  EXPECT_EQ(umount(at.c_str()), 0);
  EXPECT_EQ(umount(file.c_str()), 0);
  EXPECT_EQ(scan.Covered(), (Paths{"file", "own"}));
}

TEST(RealScan, OtherMountsAreNotEnteredEither) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  TempDir dir;
  RealFs fs;
  Fd root = Must(fs.OpenDir(dir.path()));
  Must(fs.MakeDir(root, N("mnt"), 0755));
  const std::string at = dir.path().bytes() + "/mnt";
  if (mount("none", at.c_str(), "tmpfs", 0, nullptr) != 0)
    GTEST_SKIP() << "mounting is not allowed here";
  Must(test::PutFile(fs, root, test::P("mnt/x"), "1"));
  RealScan scan(dir.path(), {});
  EXPECT_EQ(scan.Covered(), Paths{});
  EXPECT_EQ(umount(at.c_str()), 0);
}

// A million entries in one directory, by BELAY_FULL=1; some thousands otherwise.
TEST(RealScan, OneHugeDirectory) {
  const int count = test::RunEverything() ? 1'000'000 : 5'000;
  TempDir dir;
  RealFs fs;
  Fd root = Must(fs.OpenDir(dir.path()));
  for (int i = 0; i < count; ++i)
    Fd made =
        Must(fs.Open(root, N("file-" + std::to_string(i)), OpenMode::CreateNew()));
  RealScan scan(dir.path(), {});
  scan.Settle();
  int64_t began = RealClock().SteadyNanos();
  EXPECT_EQ(scan.Run().files, static_cast<uint64_t>(count));
  int64_t first = RealClock().SteadyNanos();
  EXPECT_EQ(scan.Run().read_files, 0u);
  int64_t second = RealClock().SteadyNanos();
  Must(test::PutFile(fs, root, test::P("file-17"), "changed"));
  EXPECT_EQ(scan.Run().read_files, 1u);
  std::cout << count << " entries: first scan " << (first - began) / 1'000'000
            << " ms, second " << (second - first) / 1'000'000 << " ms\n";
}

}  // namespace
}  // namespace belay
