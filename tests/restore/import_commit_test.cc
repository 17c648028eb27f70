// Rollbacks to a git commit that was imported. The command is tests/cli/import_git.sh.

#include "support/commit_world.h"

namespace belay::test {
namespace {

class ImportedCommitTest : public CommitTest {
 protected:
  Outcome Back(const Checkpoint& target) {
    auto opened = world_.Open();
    EXPECT_TRUE(opened.ok());
    auto done = Rollback(*opened->store, world_.RequestFor(opened->root), target);
    EXPECT_TRUE(done.ok()) << done.error().what;
    return done.ok() ? std::move(*done) : Outcome();
  }
  std::string Read(const std::string& path) {
    auto text = RunProgram(AbsPath::Literal("/bin/cat"), world_.project, {path});
    return text.ok() ? *text : text.error().what;
  }
};

TEST_F(ImportedCommitTest, ARollbackToItDeletesNothing) {
  auto made = Import("HEAD");
  ASSERT_TRUE(made.ok()) << made.error().what;
  EXPECT_TRUE(made->checkpoint.partial);
  EXPECT_TRUE(made->checkpoint.imported);
  Do("echo changed >a; echo untracked >u; mkdir d; echo tracked >d/t; git add d; "
     "git commit -qm second");
  const std::string head = Git({"rev-parse", "HEAD"});
  Back(made->checkpoint);
  EXPECT_EQ(Read("a"), "one\n");
  EXPECT_EQ(Read("u"), "untracked\n");
  EXPECT_EQ(Read("d/t"), "tracked\n");
  EXPECT_EQ(Git({"rev-parse", "HEAD"}), head);
}

TEST_F(ImportedCommitTest, APrivateFileStaysPrivate) {
  Do("chmod 0600 a; chmod 0700 .; echo x >b");
  Take("modes");
  auto made = Import("HEAD");
  ASSERT_TRUE(made.ok()) << made.error().what;
  Do("echo other >a; chmod +x b");
  Back(made->checkpoint);
  Do("test \"$(cat a)\" = one; test \"$(stat -c %a a)\" = 600; test ! -x b; "
     "test \"$(stat -c %a .)\" = 700");
}

}  // namespace
}  // namespace belay::test
