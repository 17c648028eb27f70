// What git is asked for about packed content that only the index names, by a git that
// writes down what it was asked.

#include "core/git_packed.h"

#include <gtest/gtest.h>

#include "base/real_fs.h"
#include "core/git_record.h"
#include "support/git_world.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

class GitPackedTest : public ::testing::Test {
 protected:
  GitPackedTest() : belay_(fs_, world_.path(), 1, getuid()) {
    world_.Init("project");
    for (const char* name : {"a", "b/c", "b/d/e"})
      world_.Write(std::string("project/") + name, std::string(name) + "\n");
    world_.Git("project", {"add", "."});
    world_.Git("project", {"commit", "-qm", "first"});
    world_.Git("project", {"gc", "-q"});
    const std::string log = (world_ / "asked").bytes();
    world_.Write(
        "bin/git",
        "#!/bin/sh\nfor word; do case $word in -*|*=*) ;; *) echo \"$word\" >> '" +
            log + "'; break;; esac; done\nexec /usr/bin/git \"$@\"\n",
        0755);
    Forget();
  }
  void Forget() { world_.Write("asked", ""); }
  std::string Asked() { return world_.Read("asked"); }
  std::string Line(const std::vector<std::string>& arguments) {
    std::string text = world_.Git("project", arguments);
    text.pop_back();
    return text;
  }
  std::string Id(const std::string& name) { return Line({"rev-parse", name}); }
  // Of all that the index names what LeaveStaged leaves.
  Result<std::vector<std::string>> Staged(const std::string& head,
                                          const std::string& tree) {
    auto repository = OpenRepositoryAt(fs_, world_ / "project", world_.user());
    EXPECT_TRUE(repository.ok() && repository->has_value());
    AskGitOptions options;
    options.path = (world_ / "bin").bytes();
    BELAY_TRY(GitRunner git, GitRunner::Find(fs_, **repository, options));
    GitIds ids(GitHash::kSha1);
    const std::string index = world_.Read("project/.git/index");
    std::vector<NamedEntry> named;
    EXPECT_TRUE(ReadIndexEntries(AsBytes(index), GitHash::kSha1, &named).ok());
    for (const NamedEntry& entry : named) {
      Bytes raw(20);
      EXPECT_TRUE(FromHex(entry.object, raw));
      ids.Add(raw);
    }
    ids.SortOnce();
    BELAY_OK(GitPacked(git, **repository).LeaveStaged(head, tree, ids));
    std::vector<std::string> out;
    for (size_t i = 0; i < ids.size(); ++i) out.push_back(ids.Hex(i));
    return out;
  }
  std::string TreeOfIndex() {
    const std::string index = world_.Read("project/.git/index");
    auto entries = ReadIndexEntries(AsBytes(index), GitHash::kSha1);
    EXPECT_TRUE(entries.ok());
    return entries->tree;
  }

  RealFs fs_;
  GitWorld world_;
  RestoreWorld belay_;
};

TEST_F(GitPackedTest, WhereNothingIsStagedNoTreeIsRead) {
  const std::string tree = TreeOfIndex();
  EXPECT_EQ(tree, Line({"rev-parse", "HEAD^{tree}"}));
  auto staged = Staged(Line({"rev-parse", "HEAD"}), tree);
  ASSERT_TRUE(staged.ok()) << staged.error().what;
  EXPECT_TRUE(staged->empty());
  EXPECT_EQ(Asked(), "rev-parse\n");
}

TEST_F(GitPackedTest, WithoutAKnownTreeThoseOfTheCommitAreRead) {
  auto none = Staged(Line({"rev-parse", "HEAD"}), "");
  ASSERT_TRUE(none.ok()) << none.error().what;
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(Asked(), "ls-tree\n");
  world_.Write("project/b/d/e", "staged\n");
  world_.Write("project/" + std::string(200, 'n') + "\t\n x", "new\n");
  world_.Git("project", {"add", "."});
  EXPECT_EQ(TreeOfIndex(), "");
  std::vector<std::string> expected = {Id(":b/d/e"),
                                       Id(":" + std::string(200, 'n') + "\t\n x")};
  std::ranges::sort(expected);
  auto staged = Staged(Line({"rev-parse", "HEAD"}), "");
  ASSERT_TRUE(staged.ok()) << staged.error().what;
  EXPECT_EQ(*staged, expected);
}

TEST_F(GitPackedTest, ATreeThatIsNotTheCommitsSettlesNothing) {
  world_.Write("project/a", "staged\n");
  world_.Git("project", {"add", "."});
  const std::string tree = Line({"write-tree"});
  ASSERT_EQ(TreeOfIndex(), tree);
  auto staged = Staged(Line({"rev-parse", "HEAD"}), tree);
  ASSERT_TRUE(staged.ok()) << staged.error().what;
  EXPECT_EQ(*staged, std::vector<std::string>{Id(":a")});
  EXPECT_EQ(Asked(), "rev-parse\nls-tree\n");
}

TEST_F(GitPackedTest, ManyNamesComeInMoreThanOnePiece) {
  std::string input;
  const std::string blob = Line({"rev-parse", "HEAD:a"});
  for (int i = 10'000; i < 13'000; ++i)
    input += "100644 " + blob + "\td" + std::to_string(i % 50) + "/" +
             std::string(60, 'n') + std::to_string(i) + "\n";
  world_.Git("project", {"update-index", "--index-info"}, input);
  world_.Git("project", {"commit", "-qm", "many"});
  world_.Write("project/zzz", "staged\n");
  world_.Git("project", {"add", "zzz"});
  auto staged = Staged(Line({"rev-parse", "HEAD"}), "");
  ASSERT_TRUE(staged.ok()) << staged.error().what;
  EXPECT_EQ(*staged, std::vector<std::string>{Id(":zzz")});
}

TEST_F(GitPackedTest, ACommitThatIsGoneIsAnError) {
  EXPECT_FALSE(Staged(std::string(40, 'a'), "").ok());
  EXPECT_FALSE(Staged(std::string(40, 'a'), TreeOfIndex()).ok());
}

// A checkpoint of what was asked about before asks nothing.
TEST_F(GitPackedTest, WhatWasInTheIndexBeforeIsNotAskedAboutAgain) {
  auto take = [&](const std::string& name) {
    auto opened = belay_.Open();
    ASSERT_TRUE(opened.ok());
    CaptureRequest request;
    request.root = opened->root;
    request.settings = &belay_.settings;
    request.git.user.no_system = true;
    request.git.ask.path = (world_ / "bin").bytes();
    request.name = name;
    request.threads = 1;
    world_.Around([&] {
      auto made = CaptureCheckpoint(*opened->store, request);
      ASSERT_TRUE(made.ok()) << made.error().what;
    });
  };
  take("first");
  EXPECT_EQ(Asked(), "rev-parse\n");
  Forget();
  world_.Git("project", {"branch", "other"});
  take("a branch");
  EXPECT_EQ(Asked(), "");
  world_.Write("project/a", "staged\n");
  world_.Git("project", {"add", "."});
  take("staged");
  EXPECT_EQ(Asked(), "");
  world_.Git("project", {"commit", "-qm", "second"});
  take("committed");
  EXPECT_EQ(Asked(), "");
  world_.Git("project", {"gc", "-q"});
  world_.Git("project", {"checkout", "-q", "HEAD~1", "--", "a"});
  take("packed");
  EXPECT_EQ(Asked(), "ls-tree\ncat-file\n");
}

}  // namespace
}  // namespace belay::test
