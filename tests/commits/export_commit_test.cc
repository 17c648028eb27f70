// A checkpoint as a commit: the promises one by one. The command is
// tests/cli/export_git.sh.

#include "commits/export_commit.h"

#include "support/commit_world.h"

namespace belay::test {
namespace {

class ExportCommitTest : public CommitTest {};

TEST_F(ExportCommitTest, ARefThatSomebodyMakesMeanwhileIsNotMoved) {
  Do("echo three >c");
  const Captured made = Take("x");
  before_ref_ = [&] { Do("git update-ref refs/heads/saved HEAD"); };
  auto done = Export(made, "refs/heads/saved");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kExists);
  EXPECT_EQ(Git({"rev-parse", "saved"}), Git({"rev-parse", "HEAD"}));
}

TEST_F(ExportCommitTest, ARefThatIsThereIsRefusedBeforeAnythingIsWritten) {
  const Captured made = Take("x");
  Do("echo untracked >d");
  const std::string objects = Git({"count-objects", "-v"});
  auto done = Export(made, "refs/heads/main");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kExists);
  EXPECT_EQ(Git({"count-objects", "-v"}), objects);
}

TEST_F(ExportCommitTest, SecretsAreInNoObjectOfGits) {
  Do("mkdir sub; echo correct-horse >.env; echo staple >sub/server.pem");
  auto done = Export(Take("x"), "refs/heads/saved");
  ASSERT_TRUE(done.ok()) << done.error().what;
  EXPECT_EQ(
      done->tree.left_out,
      (std::vector<NotInCommit>{{".env", "secret"}, {"sub/server.pem", "secret"}}));
  EXPECT_EQ(Git({"ls-tree", "-r", "--name-only", "saved"}), "a\nb");
  const std::string all =
      Git({"cat-file", "--batch-all-objects", "--batch", "--unordered"});
  EXPECT_EQ(all.find("correct-horse"), std::string::npos);
  EXPECT_EQ(all.find("staple"), std::string::npos);
}

TEST_F(ExportCommitTest, WhatIsASecretOnlyTodayStaysOutToo) {
  Do("echo token >service.token");
  const Captured made = Take("x");
  world_.settings.secret_patterns.push_back("*.token");
  auto done = Export(made, "refs/heads/saved");
  ASSERT_TRUE(done.ok()) << done.error().what;
  EXPECT_EQ(Git({"ls-tree", "-r", "--name-only", "saved"}), "a\nb");
}

TEST_F(ExportCommitTest, StoppedOnTheWayItLeavesNoRefAndNoCrashReport) {
  Do("head -c 5000000 /dev/urandom >big; echo z >z");
  const Captured made = Take("x");
  const std::string refs = Refs();
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  ExportCommitRequest request;
  request.entry.checkpoint = made.checkpoint;
  request.ref = "refs/heads/saved";
  request.places = Places();
  request.progress = [](uint64_t bytes, uint64_t) -> Status {
    if (bytes > 1'000'000) return Error(Errc::kRefused, "stopped");
    return Ok();
  };
  auto done = ExportCommit(*opened->store, Repository(), request);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().what, "stopped");
  EXPECT_EQ(Refs(), refs);
  Do("test -z \"$(ls .git | grep crash; ls .git/objects/pack | grep tmp)\"");
  Do("test -z \"$(git fsck 2>&1 | grep -v ^dangling)\"");
}

TEST_F(ExportCommitTest, ContentThatBreaksOffLeavesNoCrashReportEither) {
  const GitRepository repository = Repository();
  const AskGitOptions options = PatientGit(Places());
  auto git = GitRunner::Find(fs_, repository, options);
  ASSERT_TRUE(git.ok());
  auto import = FastImport::Start(*git, repository.hash);
  ASSERT_TRUE(import.ok());
  ASSERT_TRUE(
      (*import)->Begin({.identity = "n <e>", .seconds = 0, .message = "m"}).ok());
  const Status sent = (*import)->File(
      "f", false, 700'000, [](const std::function<Status(ByteSpan)>& sink) -> Status {
        BELAY_OK(sink(AsBytes(std::string(300'000, 'x'))));
        return Error(Errc::kCorrupt, "damaged");
      });
  ASSERT_FALSE(sent.ok());
  (*import)->Abandon();
  Do("test -z \"$(ls .git | grep crash; git for-each-ref | grep -v heads/main)\"");
}

TEST_F(ExportCommitTest, TheSameCheckpointIsTheSameCommit) {
  Do("echo three >c");
  const Captured made = Take("x");
  auto one = Export(made, "refs/heads/one");
  auto two = Export(made, "refs/heads/two");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->commit, two->commit);
}

TEST_F(ExportCommitTest, NamesThatGitWouldNotTakeAreNoNames) {
  for (const char* name : {"", "a b", "a..b", "-x", "HEAD", "@", "x.lock", ".x", "x/",
                           "/x", "a\\b", "refs/", "refs/heads", "refs/heads/",
                           "refs/belay/checkpoints/x", "refs/replace/x", "a@{b"})
    EXPECT_FALSE(RefFromName(name).ok()) << name;
  EXPECT_EQ(RefFromName("a/b").value(), "refs/heads/a/b");
  EXPECT_EQ(RefFromName("refs/tags/x").value(), "refs/tags/x");
}

}  // namespace
}  // namespace belay::test
