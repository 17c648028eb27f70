// The one case in which git is run: what it answers, and that it changes and runs
// nothing.

#include "git/ask_git.h"

#include "support/fs_world.h"
#include "support/git_world.h"

namespace belay::test {
namespace {

class AskGitTest : public testing::Test {
 protected:
  void SetUp() override {
    world.Init("repo");
    world.Write("repo/top", "t\n");
    world.Write("repo/in/a", "a\n");
    world.Write("repo/out/b", "b\n");
    world.Write("repo/out/deep/c", "c\n");
    world.Write("repo/out/run", "#!/bin/sh\n", 0755);
    world.Git("repo", {"add", "."});
    world.Git("repo", {"commit", "-qm", "one"});
    world.Git("repo", {"sparse-checkout", "set", "--cone", "--sparse-index", "in"});
  }
  GitRepository Repository(std::string_view dir = "repo") {
    auto found = Must(OpenRepositoryAt(fs, world / dir, world.user()));
    BELAY_CHECK(found.has_value());
    return *found;
  }
  std::vector<std::string> Names(const TrackedPaths& paths) {
    std::vector<std::string> names;
    for (size_t i = 0; i < paths.size(); ++i) names.emplace_back(paths.name(i));
    return names;
  }
  // A program that leaves a mark when anything runs it.
  std::string Trap(std::string_view name) {
    std::string path = (world / "mark").bytes() + "-" + std::string(name);
    std::string script = "traps/" + std::string(name);
    world.Write(script, "#!/bin/sh\ntouch '" + path + "'\nexit 1\n", 0755);
    return (world / script).bytes();
  }
  std::string TrapPath() { return (world / "traps/bin").bytes() + ":/usr/bin:/bin"; }
  void ExpectNoMarks() {
    for (const DirEntry& entry : Must(fs.List(Must(fs.OpenDir(world.path())))))
      EXPECT_FALSE(entry.name.starts_with("mark")) << entry.name;
  }

  RealFs fs;
  GitWorld world;
};

TEST_F(AskGitTest, ASparseIndexIsSpelledOut) {
  GitRepository repository = Repository();
  ASSERT_NE(
      Must(ReadIndex(fs, repository.index(), repository.index_options())).needs_git,
      "");
  GitIndex index;
  world.Around([&] { index = Must(ReadTracked(fs, repository, {})); });
  EXPECT_EQ(Names(index.paths), world.ListFiles("repo"));
  EXPECT_TRUE(index.paths.HasFile("out/deep/c"));
  EXPECT_EQ(index.needs_git, "");
  EXPECT_TRUE(index.stat.has_value());
}

// Names whose order differs when a directory is spelled out, modes, submodules, stages,
// in both hashes: the sparse index answers what the whole one did.
TEST_F(AskGitTest, TheAnswerIsThatOfTheWholeIndex) {
  for (const char* format : {"sha1", "sha256"}) {
    SCOPED_TRACE(format);
    std::string dir = std::string("order-") + format;
    world.Init(dir, {std::string("--object-format=") + format});
    for (const char* name : {"in/a", "b-/x", "b./x", "b/x", "b/y/z", "b/y.z", "b/y-z/w",
                             "b0/x", "same/1", "same/2", "b\xff/x"})
      world.Write(dir + "/" + name, "same\n");
    world.Symlink(dir + "/b/link", "x");
    world.Git(dir, {"add", "."});
    std::string oid(std::string_view(format) == "sha1" ? 40 : 64, 'a');
    world.Git(dir,
              {"update-index", "--add", "--cacheinfo", "160000," + oid + ",b/sub"});
    world.Git(dir, {"commit", "-qm", "one"});
    world.Git(dir, {"update-index", "--index-info"},
              "0 " + std::string(oid.size(), '0') + "\tin/a\n100644 " + oid +
                  " 1\tin/a\n100755 " + oid + " 3\tin/a\n");
    GitRepository repository = Repository(dir);
    TrackedPaths whole = Must(ReadTracked(fs, repository, {})).paths;
    world.Git(dir, {"sparse-checkout", "set", "--cone", "--sparse-index", "in"});
    GitIndex index;
    world.Around([&] { index = Must(ReadTracked(fs, repository, {})); });
    EXPECT_EQ(Names(index.paths), Names(whole));
    EXPECT_EQ(index.paths.names_digest(), whole.names_digest());
    EXPECT_TRUE(index.paths.IsGitlink("b/sub"));
    EXPECT_EQ(index.paths.Find("b/link"), TrackedPaths::kSymlink);
  }
}

// An extension of a git to come: stood in for by a git that reads the index without it.
TEST_F(AskGitTest, AnIndexThatOnlyGitCanReadIsReadByGit) {
  std::string bytes = world.Read("repo/.git/index");
  world.Write("known-index", bytes);
  bytes.replace(bytes.size() - 20, 20, std::string("abcd\0\0\0\0", 8));
  world.Write("repo/.git/index", bytes + std::string(20, '\0'));
  world.Write("traps/bin/git",
              "#!/bin/sh\nGIT_INDEX_FILE='" + (world / "known-index").bytes() +
                  "' exec /usr/bin/git \"$@\"\n",
              0755);
  GitIndex index = Must(ReadTracked(fs, Repository(), {.path = TrapPath()}));
  EXPECT_EQ(Names(index.paths), (std::vector<std::string>{"in/a", "out/b", "out/deep/c",
                                                          "out/run", "top"}));
  // The installed git does not know it either.
  auto asked = ReadTracked(fs, Repository(), {});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kInvalid);
  EXPECT_NE(asked.error().what.find("abcd"), std::string::npos) << asked.error().what;
}

TEST_F(AskGitTest, AsksTheIndexOfALinkedWorkTree) {
  world.Git("repo", {"worktree", "add", "-q", "../linked", "-b", "side"});
  world.Git("linked", {"sparse-checkout", "set", "--cone", "--sparse-index", "in"});
  world.Write("linked/in/only-here", "x");
  world.Git("linked", {"add", "."});
  GitIndex index;
  world.Around([&] { index = Must(ReadTracked(fs, Repository("linked"), {})); });
  EXPECT_EQ(Names(index.paths), world.ListFiles("linked"));
  EXPECT_TRUE(index.paths.HasFile("in/only-here"));
}

// Every way in which settings of a repository make git run a program.
TEST_F(AskGitTest, RunsNothingAndChangesNothing) {
  world.Git("repo", {"config", "core.fsmonitor", Trap("fsmonitor")});
  world.Git("repo", {"config", "core.pager", Trap("pager")});
  world.Git("repo", {"config", "pager.ls-files", Trap("pager-ls-files")});
  world.Git("repo", {"config", "alias.ls-files", "!" + Trap("alias")});
  world.Git("repo", {"config", "filter.trap.clean", Trap("clean")});
  world.Git("repo", {"config", "filter.trap.process", Trap("process")});
  world.Git("repo", {"config", "credential.helper", Trap("credential")});
  world.Git("repo", {"config", "core.sshCommand", Trap("ssh")});
  world.Git("repo", {"config", "core.askPass", Trap("askpass")});
  world.Git("repo", {"config", "core.editor", Trap("editor")});
  world.Git("repo", {"config", "core.untrackedCache", "true"});
  world.MakeDir("traps/hooks");
  for (const char* hook : {"post-index-change", "pre-commit", "post-checkout",
                           "fsmonitor-watchman", "reference-transaction"}) {
    world.Write("repo/.git/hooks/" + std::string(hook), world.Read("traps/pager"),
                0755);
  }
  world.Write("home/.gitconfig", "[core]\nfsmonitor = " + Trap("home") + "\n");
  world.Write("repo/.gitattributes", "* filter=trap\n");
  world.Write("repo/in/a", "changed, of another size\n");
  GitRepository repository = Repository();
  GitIndex index = Must(ReadTracked(fs, repository, {}));
  EXPECT_TRUE(index.paths.HasFile("out/deep/c"));
  ExpectNoMarks();
}

// The trap is one: git without our care falls into it.
TEST_F(AskGitTest, TheTrapWouldSpring) {
  world.Git("repo", {"config", "core.fsmonitor", Trap("fsmonitor")});
  world.Git("repo", {"status"});
  EXPECT_TRUE(fs.RealPath(world / "mark-fsmonitor").ok());
}

TEST_F(AskGitTest, APartialCloneIsNotFetched) {
  world.Git("repo", {"config", "uploadpack.allowFilter", "true"});
  world.Git("repo", {"config", "uploadpack.allowAnySHA1InWant", "true"});
  world.Git("", {"clone", "-q", "--no-checkout", "--filter=tree:0",
                 "file://" + (world / "repo").bytes(), "partial"});
  world.Write("partial/.git/index", world.Read("repo/.git/index"));
  GitRepository repository = Repository("partial");
  GitIndex index = Must(ReadIndex(fs, repository.index(), repository.index_options()));
  ASSERT_EQ(index.sparse.size(), 1u);
  // The tree is not there, and the guard sees that it does not come.
  auto asked = ReadTracked(fs, repository, {});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kInvalid) << asked.error().what;
  // Asked without care, git brings it.
  EXPECT_TRUE(world.TryGit("partial", {"cat-file", "-p", index.sparse[0].tree}).ok());
  EXPECT_TRUE(ReadTracked(fs, repository, {}).ok());
}

TEST_F(AskGitTest, WithoutGitTheErrorSaysSo) {
  auto asked = ReadTracked(fs, Repository(), {.path = (world / "home").bytes()});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kNotFound);
  EXPECT_NE(asked.error().what.find("git is needed"), std::string::npos);
  EXPECT_NE(asked.error().hint.find("install git"), std::string::npos);
}

TEST_F(AskGitTest, GitIsFoundInAnAbsoluteDirectoryOfThePathAlone) {
  world.Write("traps/bin/git", "#!/bin/sh\nexit 3\n", 0755);
  world.Write("traps/plain/git", "not a program\n", 0644);
  world.MakeDir("traps/dir/git");
  std::string plain = (world / "traps/plain").bytes();
  std::string dir = (world / "traps/dir").bytes();
  auto asked = ReadTracked(
      fs, Repository(),
      {.path = "::.:traps/bin:" + plain + ":" + dir + ":/usr/local/bin:/usr/bin:/bin"});
  EXPECT_TRUE(asked.ok()) << asked.error().what;
  asked = ReadTracked(fs, Repository(),
                      {.path = plain + ":" + (world / "traps/bin").bytes()});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kInvalid);
}

TEST_F(AskGitTest, AGitThatHangsIsEnded) {
  world.Write("traps/bin/git", "#!/bin/sh\nexec tail -f /dev/null\n", 0755);
  auto asked = ReadTracked(fs, Repository(), {.path = TrapPath(), .timeout_ms = 200});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kBusy);
}

TEST_F(AskGitTest, NonsenseFromGitIsAnError) {
  GitRepository repository = Repository();
  std::string tree = Must(ReadIndex(fs, repository.index(), repository.index_options()))
                         .sparse.at(0)
                         .tree;
  const std::string entry = "100644 x\\000aaaaaaaaaaaaaaaaaaaa";  // 29 bytes
  const std::string rows[] = {
      "",
      "hello",
      tree,
      tree + " blob 0\\n\\n",
      tree + " tree x\\n\\n",
      tree + " tree 0\\n",
      tree + " tree 5\\n\\n",
      tree + " tree 0\\n\\nmore",
      tree + " tree 99999999999999999999\\n\\n",
      tree + " tree 28\\n" + entry.substr(0, entry.size() - 1) + "\\n",
      tree + " tree 30\\n" + entry + "y\\n",
      tree + " tree 29\\n100644 /\\000aaaaaaaaaaaaaaaaaaaa\\n",
      tree + " tree 29\\n900644 x\\000aaaaaaaaaaaaaaaaaaaa\\n",
      tree + " tree 29\\n000644 x\\000aaaaaaaaaaaaaaaaaaaa\\n",
      tree + " tree 58\\n" + entry + entry + "\\n",
  };
  for (const std::string& row : rows) {
    SCOPED_TRACE(row);
    world.Write("traps/bin/git", "#!/bin/sh\nprintf '" + row + "'\n", 0755);
    auto asked = ReadTracked(fs, repository, {.path = TrapPath()});
    ASSERT_FALSE(asked.ok());
    EXPECT_EQ(asked.error().code, Errc::kCorrupt) << asked.error().what;
  }
  world.Write("traps/bin/git",
              "#!/bin/sh\nprintf '" + tree + " tree 29\\n" + entry + "\\n'\n", 0755);
  EXPECT_TRUE(
      Must(ReadTracked(fs, repository, {.path = TrapPath()})).paths.HasFile("out/x"));
  world.Write("traps/bin/git", "#!/bin/sh\nprintf '" + tree + " missing\\n'\n", 0755);
  auto asked = ReadTracked(fs, repository, {.path = TrapPath()});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kInvalid);
}

TEST_F(AskGitTest, TreesThatHoldThemselvesManyTimesOverAreRefused) {
  // Each level has ten times the tree below: 10^9 files of ten objects.
  std::string tree = world.Git("repo", {"rev-parse", "HEAD:out"}).substr(0, 40);
  for (int level = 0; level < 9; ++level) {
    std::string lines;
    for (int i = 0; i < 10; ++i)
      lines += "040000 tree " + tree + "\td" + std::to_string(i) + "\n";
    tree = world.Git("repo", {"mktree"}, lines).substr(0, 40);
  }
  std::string top =
      world
          .Git("repo", {"mktree"},
               "040000 tree " + tree + "\tbomb\n040000 tree " +
                   world.Git("repo", {"rev-parse", "HEAD:in"}).substr(0, 40) + "\tin\n")
          .substr(0, 40);
  std::string commit =
      world.Git("repo", {"commit-tree", "-m", "bomb", top}).substr(0, 40);
  world.Git("repo", {"reset", "-q", "--hard", commit});
  auto asked = ReadTracked(fs, Repository(), {.max_names = 100'000});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Errc::kUnsupported) << asked.error().what;
}

}  // namespace
}  // namespace belay::test
