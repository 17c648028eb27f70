// Where a repository is, against `git rev-parse`; and what must not be taken for one.

#include "git/repository.h"

#include <sys/mount.h>

#include <cerrno>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "support/fs_world.h"
#include "support/git_world.h"

namespace belay::test {
namespace {

class RepositoryTest : public testing::Test {
 protected:
  std::optional<GitRepository> Find(std::string_view dir) {
    std::optional<GitRepository> found;
    world.Around([&] { found = Must(FindWorkTree(fs, world / dir, world.user())); });
    return found;
  }
  std::optional<GitRepository> OpenAt(std::string_view dir) {
    return Must(OpenRepositoryAt(fs, world / dir, world.user()));
  }
  std::string Ask(std::string_view dir, const std::vector<std::string>& what) {
    std::vector<std::string> arguments = {"rev-parse", "--path-format=absolute"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    std::string output = world.TryGit(dir, arguments).output;
    if (output.ends_with('\n')) output.pop_back();
    return output;
  }
  // What git says about the directory is what we say.
  GitRepository ExpectAsGit(std::string_view dir) {
    SCOPED_TRACE(std::string(dir));
    std::optional<GitRepository> found = Find(dir);
    BELAY_CHECK(found.has_value());
    EXPECT_EQ(found->work_tree.bytes(), Ask(dir, {"--show-toplevel"}));
    EXPECT_EQ(found->git_dir.bytes(), Ask(dir, {"--absolute-git-dir"}));
    EXPECT_EQ(found->common_dir.bytes(), Ask(dir, {"--git-common-dir"}));
    EXPECT_EQ(found->index().bytes(), Ask(dir, {"--git-path", "index"}));
    EXPECT_EQ(found->info_exclude().bytes(), Ask(dir, {"--git-path", "info/exclude"}));
    EXPECT_EQ(found->problems, std::vector<std::string>());
    return *found;
  }
  // Neither git nor we find a work tree there.
  void ExpectNone(std::string_view dir) {
    SCOPED_TRACE(std::string(dir));
    EXPECT_EQ(Ask(dir, {"--show-toplevel"}), "");
    EXPECT_FALSE(Find(dir).has_value());
  }
  void Commit(std::string_view dir) {
    world.Write(std::string(dir) + "/file", "x");
    world.Git(dir, {"add", "."});
    world.Git(dir, {"commit", "-qm", "one"});
  }

  RealFs fs;
  GitWorld world;
};

TEST_F(RepositoryTest, FindsTheTopFromAnyDirectoryBelowIt) {
  world.Init("repo");
  world.MakeDir("repo/a/b/c");
  ExpectAsGit("repo");
  ExpectAsGit("repo/a/b/c");
  ExpectNone("home");
  world.Symlink("link", "repo/a");
  EXPECT_EQ(Find("link")->work_tree, world / "repo");
  EXPECT_EQ(ExpectAsGit("repo").hash, GitHash::kSha1);
}

TEST_F(RepositoryTest, FindsTheInnermost) {
  world.Init("outer");
  world.Init("outer/inner");
  world.MakeDir("outer/inner/x");
  EXPECT_EQ(ExpectAsGit("outer/inner/x").work_tree, world / "outer/inner");
  EXPECT_EQ(ExpectAsGit("outer").work_tree, world / "outer");
}

TEST_F(RepositoryTest, FollowsLinkedWorkTrees) {
  world.Init("repo");
  Commit("repo");
  world.Git("repo", {"worktree", "add", "-q", "../linked", "-b", "side"});
  world.MakeDir("linked/x");
  GitRepository linked = ExpectAsGit("linked/x");
  EXPECT_EQ(linked.work_tree, world / "linked");
  EXPECT_EQ(linked.git_dir, world / "repo/.git/worktrees/linked");
  EXPECT_EQ(linked.common_dir, world / "repo/.git");
  // Of a bare repository, too: the shared setting is not theirs.
  world.Git("", {"clone", "-q", "--bare", "repo", "bare"});
  world.Git("bare", {"worktree", "add", "-q", "../of-bare", "main"});
  ExpectAsGit("of-bare");
  ExpectNone("bare");
}

TEST_F(RepositoryTest, FollowsSubmodulesAndSeparateDirectories) {
  world.Init("lib");
  Commit("lib");
  world.Init("outer");
  world.Git("outer", {"submodule", "--quiet", "add", "../lib", "sub/lib"});
  world.MakeDir("outer/sub/lib/deep");
  GitRepository sub = ExpectAsGit("outer/sub/lib/deep");
  EXPECT_EQ(sub.work_tree, world / "outer/sub/lib");
  EXPECT_EQ(sub.git_dir, world / "outer/.git/modules/sub/lib");
  ExpectAsGit("outer/sub");
  world.MakeDir("apart");
  world.Git("apart", {"init", "-q", "--separate-git-dir", "../elsewhere.git"});
  EXPECT_EQ(ExpectAsGit("apart").git_dir, world / "elsewhere.git");
  // Absolute and with another ending of the line.
  world.Write("apart/.git", "gitdir: " + (world / "elsewhere.git").bytes() + "\r\n\n");
  ExpectAsGit("apart");
  world.Write("apart/.git", "gitdir: ./../apart/.././elsewhere.git");
  ExpectAsGit("apart");
}

TEST_F(RepositoryTest, FollowsASymlinkNamedDotGit) {
  world.Init("repo");
  world.MakeDir("view/x");
  world.Symlink("view/.git", "../repo/.git");
  std::optional<GitRepository> found = Find("view/x");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->work_tree.bytes(), Ask("view/x", {"--show-toplevel"}));
  EXPECT_EQ(found->git_dir, world / "repo/.git");
}

TEST_F(RepositoryTest, ABareRepositoryAndTheInsideOfAGitDirectoryHaveNoWorkTree) {
  world.Init("bare", {"--bare"});
  ExpectNone("bare");
  ExpectNone("bare/objects");
  world.Init("repo");
  ExpectNone("repo/.git");
  ExpectNone("repo/.git/refs/heads");
  world.Git("repo", {"config", "core.bare", "true"});
  ExpectNone("repo");
  EXPECT_FALSE(OpenAt("repo").has_value());
  // A bare repository inside a work tree ends the search, as with git.
  world.Init("outer");
  world.Init("outer/store.git", {"--bare"});
  ExpectNone("outer/store.git");
  EXPECT_TRUE(Find("outer").has_value());
}

TEST_F(RepositoryTest, HonoursCoreWorktree) {
  world.Init("meta");
  world.MakeDir("tree/x");
  world.MakeDir("meta/x");
  world.Git("meta", {"config", "core.worktree", "../../tree"});
  // Found from the directory of ".git", the work tree is elsewhere and holds it not.
  EXPECT_FALSE(Find("meta").has_value());
  EXPECT_EQ(OpenAt("meta")->work_tree, world / "tree");
  world.Git("meta", {"config", "core.worktree", world.path().bytes()});
  EXPECT_EQ(Find("meta/x")->work_tree, world.path());
  EXPECT_EQ(Ask("meta/x", {"--show-toplevel"}), world.path().bytes());
  world.Git("meta", {"config", "core.worktree", "../.."});
  EXPECT_EQ(Find("meta/x")->work_tree, world.path());
  world.Write("meta/.git/config", "[core]\nworktree = ../../nowhere\n");
  EXPECT_FALSE(Find("meta").has_value());
}

TEST_F(RepositoryTest, AWorkTreeMayHaveSettingsOfItsOwn) {
  world.Init("repo");
  Commit("repo");
  world.Git("repo", {"worktree", "add", "-q", "../linked", "-b", "side"});
  world.Git("repo", {"config", "core.repositoryFormatVersion", "1"});
  world.Git("repo", {"config", "extensions.worktreeConfig", "true"});
  world.Git("linked", {"config", "--worktree", "core.ignoreCase", "true"});
  EXPECT_TRUE(ExpectAsGit("linked").ignore_case);
  EXPECT_FALSE(ExpectAsGit("repo").ignore_case);
  world.Git("repo", {"config", "--worktree", "core.bare", "true"});
  EXPECT_FALSE(Find("repo").has_value());
  ExpectAsGit("linked");
}

TEST_F(RepositoryTest, DoesNotLookBeyondTheFileSystem) {
  world.Init("repo");
  world.MakeDir("repo/mnt");
  AbsPath at = world / "repo/mnt";
  if (mount("none", at.c_str(), "tmpfs", 0, nullptr) != 0)
    GTEST_SKIP() << "mounting a file system needs root";
  world.MakeDir("repo/mnt/x");
  ExpectNone("repo/mnt/x");
  ExpectNone("repo/mnt");
  EXPECT_TRUE(Find("repo").has_value());
  EXPECT_EQ(umount(at.c_str()), 0);
}

TEST_F(RepositoryTest, KnowsSha256AndRefusesWhatItDoesNotKnow) {
  world.Init("repo", {"--object-format=sha256"});
  EXPECT_EQ(ExpectAsGit("repo").hash, GitHash::kSha256);
  world.Write("repo/.git/config",
              "[core]\nrepositoryformatversion = 1\n"
              "[extensions]\nobjectFormat = sha3\n");
  auto found = FindWorkTree(fs, world / "repo", world.user());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Errc::kUnsupported);
}

TEST_F(RepositoryTest, TheExcludesFileIsGits) {
  world.Init("repo");
  EXPECT_EQ(ExpectAsGit("repo").excludes_file, world / "home/.config/git/ignore");
  GitUserConfig user = world.user();
  user.xdg_config_home = (world / "xdg").bytes();
  EXPECT_EQ(Must(FindWorkTree(fs, world / "repo", user))->excludes_file,
            world / "xdg/git/ignore");
  user.home.reset();
  user.xdg_config_home.reset();
  EXPECT_EQ(Must(FindWorkTree(fs, world / "repo", user))->excludes_file, std::nullopt);
  world.Write("home/.gitconfig", "[core]\nexcludesFile = ~/mine\n");
  EXPECT_EQ(ExpectAsGit("repo").excludes_file, world / "home/mine");
  std::vector<std::string> problems;
  EXPECT_EQ(UserExcludesFile(fs, world.user(), problems), world / "home/mine");
  // Relative to the top of the work tree, wherever git was started.
  world.Git("repo", {"config", "core.excludesFile", "sub/rules"});
  EXPECT_EQ(ExpectAsGit("repo").excludes_file, world / "repo/sub/rules");
  world.MakeDir("repo/below");
  world.Write("repo/sub/rules", "ignored\n");
  EXPECT_EQ(world.Git("repo/below", {"check-ignore", "ignored"}), "ignored\n");
  world.Git("repo", {"config", "core.excludesFile", ""});
  EXPECT_EQ(ExpectAsGit("repo").excludes_file, std::nullopt);
  world.Write("home/.gitconfig", "[core]\nexcludesFile\n");
  world.Git("repo", {"config", "--unset", "core.excludesFile"});
  EXPECT_EQ(Find("repo")->problems.size(), 1u);
}

TEST_F(RepositoryTest, WhatGitTakesForARepositoryIsOne) {
  struct Row {
    const char* what;
    std::function<void()> make;  // of a fresh repository "repo"
  };
  const std::string oid(40, 'a');
  const Row rows[] = {
      {"as it is", [] {}},
      {"detached", [&] { world.Write("repo/.git/HEAD", oid + "\n"); }},
      {"detached, capitals",
       [&] { world.Write("repo/.git/HEAD", std::string(40, 'A') + "\n"); }},
      {"sha256 in HEAD", [&] { world.Write("repo/.git/HEAD", std::string(64, 'b')); }},
      {"a short id", [&] { world.Write("repo/.git/HEAD", std::string(39, 'a')); }},
      {"another ref", [&] { world.Write("repo/.git/HEAD", "ref: other/x\n"); }},
      {"no blank", [&] { world.Write("repo/.git/HEAD", "ref:refs/heads/x\n"); }},
      {"many blanks", [&] { world.Write("repo/.git/HEAD", "ref: \t \n refs/x"); }},
      {"an empty HEAD", [&] { world.Write("repo/.git/HEAD", ""); }},
      {"no HEAD", [&] { world.Remove("repo/.git/HEAD"); }},
      {"no objects", [&] { world.Remove("repo/.git/objects"); }},
      {"no refs", [&] { world.Remove("repo/.git/refs"); }},
      {"HEAD is a link to a ref",
       [&] {
         world.Remove("repo/.git/HEAD");
         world.Symlink("repo/.git/HEAD", "refs/heads/main");
       }},
      {"HEAD is a link to a file",
       [&] {
         world.Write("head", "ref: refs/heads/main\n");
         world.Remove("repo/.git/HEAD");
         world.Symlink("repo/.git/HEAD", "../../head");
       }},
      {"objects is a link",
       [&] {
         world.MakeDir("objects-elsewhere");
         world.Remove("repo/.git/objects");
         world.Symlink("repo/.git/objects", "../../objects-elsewhere");
       }},
      {"a common directory that is nowhere",
       [&] { world.Write("repo/.git/commondir", "../../nowhere\n"); }},
      {"no settings", [&] { world.Remove("repo/.git/config"); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    world.Init("repo");
    row.make();
    bool gits = Ask("repo", {"--show-toplevel"}) == (world / "repo").bytes();
    EXPECT_EQ(OpenAt("repo").has_value(), gits);
    EXPECT_EQ(Find("repo").has_value(), gits);
    world.Remove("repo");
  }
}

TEST_F(RepositoryTest, NonsenseNamedDotGitIsNoRepositoryAndDoesNotHang) {
  world.Init("outer");
  struct Row {
    const char* what;
    std::function<void()> make;  // "outer/x/.git"
  };
  const std::string path = "outer/x/.git";
  const Row rows[] = {
      {"a FIFO", [&] { world.MakeFifo(path); }},
      {"an empty file", [&] { world.Write(path, ""); }},
      {"an empty directory", [&] { world.MakeDir(path); }},
      {"other words", [&] { world.Write(path, "hello: world\n"); }},
      {"no path", [&] { world.Write(path, "gitdir: \n"); }},
      {"nowhere", [&] { world.Write(path, "gitdir: ../nowhere\n"); }},
      {"itself", [&] { world.Write(path, "gitdir: .git\n"); }},
      {"the root", [&] { world.Write(path, "gitdir: /\n"); }},
      {"far above", [&] { world.Write(path, "gitdir: ../../../../../../../..\n"); }},
      {"a very long name",
       [&] { world.Write(path, "gitdir: " + std::string(5000, 'x') + "\n"); }},
      {"a NUL", [&] { world.Write(path, std::string("gitdir: a\0b\n", 12)); }},
      {"too large", [&] { world.Write(path, std::string(3u << 20, 'g')); }},
      {"endless", [&] { world.Symlink(path, "/dev/zero"); }},
      {"a loop", [&] { world.Symlink(path, ".git"); }},
      {"a broken link", [&] { world.Symlink(path, "nowhere"); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    world.MakeDir("outer/x");
    row.make();
    EXPECT_FALSE(OpenAt("outer/x").has_value());
    auto found = Must(FindWorkTree(fs, world / "outer/x", world.user()));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->work_tree, world / "outer");
    world.Remove("outer/x");
  }
}

TEST_F(RepositoryTest, ADirectoryThatIsGoneIsAnError) {
  auto found = FindWorkTree(fs, world / "gone", world.user());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Errc::kNotFound);
}

TEST_F(RepositoryTest, BrokenSettingsAreNamedAndTheRestCounts) {
  world.Init("repo");
  world.Write("home/.gitconfig", "[core]\nexcludesFile = ~/mine\n[broken\n");
  auto found = Must(FindWorkTree(fs, world / "repo", world.user()));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->excludes_file, world / "home/mine");
  ASSERT_EQ(found->problems.size(), 1u);
  EXPECT_NE(found->problems[0].find(".gitconfig:3"), std::string::npos);
}

TEST_F(RepositoryTest, OpensNoDescriptorThatStaysOpen) {
  world.Init("repo");
  size_t before = OpenDescriptors();
  Must(FindWorkTree(fs, world / "repo", world.user()));
  Must(OpenRepositoryAt(fs, world / "home", world.user()));
  EXPECT_EQ(OpenDescriptors(), before);
}

// A failing disk must not make a repository look like none: its rules would be lost.
TEST(RepositoryFaults, AFailingCallIsAnErrorOrNamed) {
  MemFs disk;
  Must(MakeDirs(disk, AbsPath::Literal("/w/below"), 0755));
  Must(MakeDirs(disk, AbsPath::Literal("/w/.git/objects"), 0755));
  Must(MakeDirs(disk, AbsPath::Literal("/w/.git/refs"), 0755));
  Fd git_dir = Must(disk.OpenDir(AbsPath::Literal("/w/.git")));
  Must(PutFile(disk, git_dir, N("HEAD"), "ref: refs/heads/main\n"));
  Must(PutFile(disk, git_dir, N("config"), "[core]\nignoreCase = true\n"));
  GitUserConfig user;
  user.no_system = true;
  for (int sys : {EIO, EMFILE, ENOMEM}) {
    for (uint64_t call = 1;; ++call) {
      SCOPED_TRACE(call);
      FaultFs fs(disk, Fault::Errno(call, sys));
      auto found = FindWorkTree(fs, AbsPath::Literal("/w/below"), user);
      if (found.ok()) {
        ASSERT_TRUE(found->has_value());
        EXPECT_EQ((*found)->work_tree, AbsPath::Literal("/w"));
        EXPECT_TRUE((*found)->ignore_case || !(*found)->problems.empty());
      }
      if (!fs.fired()) break;
    }
  }
}

}  // namespace
}  // namespace belay::test
