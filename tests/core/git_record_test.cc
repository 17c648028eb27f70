// The git record: what is kept of a repository, and when it counts as changed. GitWorld
// fails every test in which a checkpoint changed a byte of a git directory.

#include "core/git_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "base/real_fs.h"
#include "crash/hook_fs.h"
#include "support/git_world.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

class GitRecordTest : public ::testing::Test {
 protected:
  GitRecordTest() : belay_(fs_, world_.path(), 1, getuid()) {}

  void Begin(const std::vector<std::string>& more = {}) {
    world_.Init("project", more);
    world_.Write("project/a", "one\n");
    world_.Write("project/b", "two\n");
    world_.Git("project", {"add", "."});
    world_.Git("project", {"commit", "-qm", "first"});
  }
  // A checkpoint, and git as it was before.
  Captured Take(const std::string& name) {
    std::optional<Captured> out;
    world_.Around([&] {
      auto made = belay_.Capture(name);
      ASSERT_TRUE(made.ok()) << made.error().what;
      out = std::move(*made);
    });
    return out.value_or(Captured());
  }
  GitRepoRecord Top(const Captured& captured) {
    const GitRepoRecord* repo = captured.git.Find("");
    EXPECT_NE(repo, nullptr);
    return repo != nullptr ? *repo : GitRepoRecord();
  }
  std::string Rev(const std::string& name) {
    std::string text = world_.Git("project", {"rev-parse", name});
    text.pop_back();
    return text;
  }
  // `a` staged as it never was committed; the object.
  std::string StageAlone() {
    world_.Write("project/a", "only staged\n");
    world_.Git("project", {"add", "a"});
    return Rev(":a");
  }
  // What was kept of content that the index names: by git's object.
  std::map<std::string, std::string> Kept(const Captured& captured) {
    std::map<std::string, std::string> out;
    auto opened = belay_.Open();
    EXPECT_TRUE(opened.ok());
    auto objects = LoadGitObjects(*opened->store, Top(captured));
    EXPECT_TRUE(objects.ok());
    for (const TreeEntry& entry : objects->entries) {
      auto bytes = opened->store->ReadContentBytes(entry.id, 1 << 20);
      EXPECT_TRUE(bytes.ok());
      if (bytes.ok()) out[entry.name] = AsText(*bytes);
    }
    return out;
  }
  // The record as the store has it.
  GitRecord Stored(const Captured& captured) {
    auto opened = belay_.Open();
    EXPECT_TRUE(opened.ok());
    auto state = opened->store->GetState(captured.checkpoint.state);
    EXPECT_TRUE(state.ok());
    auto record = LoadGitRecord(*opened->store, state->git);
    EXPECT_TRUE(record.ok());
    return record.ok() ? *record : GitRecord();
  }

  RealFs fs_;
  GitWorld world_;
  RestoreWorld belay_;
};

TEST_F(GitRecordTest, HoldsWhereHeadIsAndTheIndexByteForByte) {
  Begin();
  world_.Write("project/a", "staged\n");
  world_.Git("project", {"add", "a"});
  const Captured made = Take("x");
  const GitRepoRecord repo = Top(made);
  EXPECT_EQ(repo.head_ref, "refs/heads/main");
  EXPECT_EQ(repo.head, Rev("HEAD"));
  EXPECT_EQ(repo.trouble, "");
  EXPECT_EQ(Stored(made), made.git);
  auto opened = belay_.Open();
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(repo.index);
  auto index = opened->store->ReadContentBytes(repo.index->id, size_t{1} << 20);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(AsText(*index), world_.Read("project/.git/index"));
  auto refs = LoadGitRefs(*opened->store, repo);
  ASSERT_TRUE(refs.ok());
  EXPECT_EQ((*refs)["refs/heads/main"], repo.head);
}

TEST_F(GitRecordTest, AnIndexThatIsReadInPiecesIsKeptByteForByte) {
  Begin();
  const std::string blob = Rev("HEAD:a");
  std::string input;
  for (int i = 10'000; i < 22'000; ++i)
    input += "100644 " + blob + "\t" + std::string(90, 'n') + std::to_string(i) + "\n";
  world_.Git("project", {"update-index", "--index-info"}, input);
  const std::string object = StageAlone();
  const Captured made = Take("x");
  const GitRepoRecord repo = Top(made);
  EXPECT_EQ(repo.trouble, "");
  ASSERT_TRUE(repo.index);
  ASSERT_GT(repo.index->size, kMaxBlob);
  auto opened = belay_.Open();
  ASSERT_TRUE(opened.ok());
  auto index = opened->store->ReadContentBytes(repo.index->id, size_t{8} << 20);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(AsText(*index), world_.Read("project/.git/index"));
  std::vector<NamedEntry> named;
  auto entries = ReadIndexEntries(*index, GitHash::kSha1, &named);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->digest, repo.index_digest);
  EXPECT_GT(named.size(), 12'000u);
  EXPECT_EQ(Kept(made)[object], "only staged\n");
  std::vector<std::string> ids, expected;
  ASSERT_TRUE(VisitGitIndexIds(*opened->store, repo, [&](ByteSpan id) {
                ids.push_back(ToHex(id));
              }).ok());
  for (const NamedEntry& entry : named) expected.push_back(entry.object);
  EXPECT_EQ(ids, expected);
}

TEST_F(GitRecordTest, ContentThatOnlyTheIndexNamesIsKept) {
  Begin();
  const std::string object = StageAlone();
  world_.Write("project/a", "in the work tree\n");
  EXPECT_EQ(Kept(Take("x"))[object], "only staged\n");
}

TEST_F(GitRecordTest, ContentOfAnEarlierCaptureStaysWhenGitHasPackedIt) {
  Begin();
  const std::string object = StageAlone();
  Take("x");
  world_.Git("project", {"gc", "-q"});
  world_.Git("project", {"add", "b"});
  EXPECT_EQ(Kept(Take("y"))[object], "only staged\n");
}

TEST_F(GitRecordTest, PackedContentThatOnlyTheIndexNamesIsKept) {
  Begin();
  world_.Write("project/b", "only staged\n");  // twice the same
  world_.Git("project", {"add", "b"});
  const std::string object = StageAlone();
  world_.Git("project", {"gc", "-q"});
  world_.Write("project/a", "in the work tree\n");
  // And nothing that HEAD's commit has.
  EXPECT_EQ(Kept(Take("x")),
            (std::map<std::string, std::string>{{object, "only staged\n"}}));
}

// Git remembers the tree of an index that was written as one: it is not HEAD's.
TEST_F(GitRecordTest, PackedContentIsKeptThoughGitKnowsTheTreeOfTheIndex) {
  Begin();
  const std::string object = StageAlone();
  world_.Git("project", {"write-tree"});
  world_.Git("project", {"gc", "-q"});
  EXPECT_EQ(Kept(Take("x")),
            (std::map<std::string, std::string>{{object, "only staged\n"}}));
}

TEST_F(GitRecordTest, PackedContentThatIsStagedWhileHeadStaysIsKept) {
  Begin();
  world_.Write("project/a", "another\n");
  world_.Git("project", {"commit", "-qam", "second"});
  world_.Git("project", {"gc", "-q"});
  EXPECT_EQ(Kept(Take("x")).size(), 0u);
  world_.Git("project", {"checkout", "-q", "HEAD~1", "--", "a"});
  EXPECT_EQ(Kept(Take("y")),
            (std::map<std::string, std::string>{{Rev(":a"), "one\n"}}));
  // HEAD's commit names it, at another path.
  world_.Git("project", {"mv", "b", "c"});
  EXPECT_EQ(Kept(Take("z")).size(), 1u);
}

TEST_F(GitRecordTest, WithoutACommitAllPackedContentIsKept) {
  world_.Init("project");
  world_.Write("project/a", "one\n");
  world_.Write("project/large", std::string(200'000, 'x'));
  for (int i = 0; i < 600; ++i)
    world_.Write("project/n" + std::to_string(i), std::to_string(i) + "\n");
  world_.Git("project", {"-c", "core.bigFileThreshold=1", "add", "."});
  const auto kept = Kept(Take("x"));
  EXPECT_EQ(kept.size(), 602u);
  EXPECT_EQ(kept.at(Rev(":a")), "one\n");
  EXPECT_EQ(kept.at(Rev(":n599")), "599\n");
}

TEST_F(GitRecordTest, SecretsThatAreSkippedAndWhatIsTooLargeAreNotTakenFromTheIndex) {
  Begin();
  world_.Write("project/.env", "TOKEN=1\n");
  world_.Write("project/large", std::string(5000, 'x'));
  world_.Write("project/small", "small\n");
  world_.Git("project", {"add", "-f", "."});
  const std::string small = Rev(":small"), secret = Rev(":.env"), large = Rev(":large");
  std::map<std::string, std::string> names = Kept(Take("all"));
  EXPECT_TRUE(names.contains(small) && names.contains(secret) && names.contains(large));
  // The same index, other rules.
  belay_.settings.secrets = Secrets::kSkip;
  belay_.settings.max_file_size = {.bytes = 4096};
  names = Kept(Take("some"));
  EXPECT_TRUE(names.contains(small));
  EXPECT_FALSE(names.contains(secret));
  EXPECT_FALSE(names.contains(large));
}

TEST_F(GitRecordTest, ARepositoryThatNeverStoodStillIsSaidToBeSo) {
  Begin();
  int busy = 0;
  HookFs hook(
      fs_, [](FsCall, const std::string&) { return Ok(); },
      [&](FsCall, const std::string& name) {
        if (name != "heads" || ++busy > 100) return;
        world_.Write("project/.git/ORIG_HEAD", std::to_string(busy) + "\n");
      });
  RestoreWorld hooked(hook, world_.path(), 1, getuid());
  auto made = hooked.Capture("x");
  ASSERT_TRUE(made.ok()) << made.error().what;
  EXPECT_GT(busy, 0);
  EXPECT_NE(Top(*made).trouble.find("kept changing"), std::string::npos)
      << Top(*made).trouble;
}

TEST_F(GitRecordTest, CommitAddStashAndBranchMakeANewStateAndRefreshingDoesNot) {
  Begin();
  ObjectId state = Take("0").checkpoint.state;
  auto changed = [&](const std::string& name) {
    const ObjectId now = Take(name).checkpoint.state;
    const bool differs = now != state;
    state = now;
    return differs;
  };
  EXPECT_FALSE(changed("nothing"));
  world_.Git("project", {"commit", "-q", "--allow-empty", "-m", "second"});
  EXPECT_TRUE(changed("commit"));
  world_.Git("project", {"branch", "other"});
  EXPECT_TRUE(changed("branch"));
  world_.Git("project", {"pack-refs", "--all"});
  EXPECT_FALSE(changed("packed"));
  world_.Write("project/a", "more\n");
  EXPECT_TRUE(changed("edit"));
  world_.Git("project", {"add", "a"});
  EXPECT_TRUE(changed("add"));
  // The same content written anew: git notes other times in its index, nothing else.
  world_.Write("project/b", "two\n");
  world_.Git("project", {"update-index", "--refresh"});
  EXPECT_FALSE(changed("refresh"));
  world_.Git("project", {"stash", "-q"});
  EXPECT_TRUE(changed("stash"));
  world_.Git("project", {"stash", "drop", "-q"});
  EXPECT_TRUE(changed("drop"));
  world_.Git("project", {"switch", "-q", "other"});
  EXPECT_TRUE(changed("switch"));
}

TEST_F(GitRecordTest, WhatIsUnderWayIsKeptWithItsFiles) {
  Begin();
  world_.Git("project", {"switch", "-qc", "side"});
  world_.Write("project/a", "side\n");
  world_.Git("project", {"commit", "-qam", "side"});
  world_.Git("project", {"switch", "-q", "main"});
  world_.Write("project/a", "main\n");
  world_.Git("project", {"commit", "-qam", "main"});
  (void)world_.TryGit("project", {"merge", "side"});
  const GitRepoRecord repo = Top(Take("x"));
  EXPECT_EQ(repo.in_progress, "merge");
  auto has = [&](std::string_view name) {
    return std::ranges::find(repo.own, name, &GitKept::name) != repo.own.end();
  };
  EXPECT_TRUE(has("MERGE_HEAD"));
  EXPECT_TRUE(has("MERGE_MSG"));
}

TEST_F(GitRecordTest, AnUnbornBranchAndADetachedHeadAreToldApart) {
  world_.Init("project");
  world_.Write("project/a", "one\n");
  GitRepoRecord repo = Top(Take("unborn"));
  EXPECT_EQ(repo.head_ref, "refs/heads/main");
  EXPECT_EQ(repo.head, "");
  world_.Git("project", {"add", "."});
  world_.Git("project", {"commit", "-qm", "first"});
  world_.Git("project", {"checkout", "-q", "--detach"});
  repo = Top(Take("detached"));
  EXPECT_EQ(repo.head_ref, "");
  EXPECT_EQ(repo.head, Rev("HEAD"));
}

TEST_F(GitRecordTest, NestedRepositoriesHaveRecordsOfTheirOwn) {
  Begin();
  world_.Init("project/inner");
  world_.Write("project/inner/c", "three\n");
  world_.Git("project/inner", {"add", "."});
  world_.Git("project/inner", {"commit", "-qm", "inner"});
  const Captured made = Take("x");
  ASSERT_NE(made.git.Find("inner"), nullptr);
  EXPECT_NE(made.git.Find("inner")->head, Top(made).head);
}

TEST_F(GitRecordTest, ASha256RepositoryAndASplitIndexAreKept) {
  Begin({"--object-format=sha256"});
  world_.Git("project", {"update-index", "--split-index"});
  world_.Write("project/a", "staged\n");
  world_.Git("project", {"add", "a"});
  const GitRepoRecord repo = Top(Take("x"));
  EXPECT_EQ(repo.trouble, "");
  EXPECT_EQ(repo.head.size(), 64u);
  EXPECT_TRUE(std::ranges::any_of(repo.own, [](const GitKept& kept) {
    return kept.name.starts_with("sharedindex.");
  }));
}

// An entry of a split index that replaces one of the shared part has no path there.
TEST_F(GitRecordTest, WhatASplitIndexReplacesIsKeptUnderItsPath) {
  world_.Init("project", {});
  world_.Write("project/.env", "TOKEN=1\n");
  world_.Write("project/a", "one\n");
  world_.Git("project", {"add", "-f", "."});
  world_.Git("project", {"commit", "-qm", "first"});
  world_.Git("project", {"update-index", "--split-index"});
  world_.Write("project/.env", "TOKEN=2\n");
  world_.Write("project/a", "two\n");
  world_.Git("project", {"add", "-f", "."});
  const std::string a = world_.Git("project", {"rev-parse", ":a"});
  const std::string secret = world_.Git("project", {"rev-parse", ":.env"});
  for (const bool skip : {false, true}) {
    belay_.settings.secrets = skip ? Secrets::kSkip : Secrets::kLocal;
    const Captured made = Take(skip ? "some" : "all");
    auto opened = belay_.Open();
    ASSERT_TRUE(opened.ok());
    auto objects = LoadGitObjects(*opened->store, Top(made));
    ASSERT_TRUE(objects.ok());
    std::set<std::string> names;
    for (const TreeEntry& entry : objects->entries) names.insert(entry.name + "\n");
    EXPECT_TRUE(names.contains(a));
    EXPECT_EQ(names.contains(secret), !skip);
    auto entries = LoadGitIndex(*opened->store, Top(made));
    ASSERT_TRUE(entries.ok());
    EXPECT_TRUE(std::ranges::any_of(*entries, [&](const NamedEntry& entry) {
      return entry.path == "a" && entry.object + "\n" == a;
    }));
  }
}

TEST_F(GitRecordTest, AFileThatIsNoneIsNamedAndNotTakenForNothing) {
  Begin();
  world_.MakeFifo("project/.git/MERGE_HEAD");
  const Captured made = Take("x");
  EXPECT_NE(Top(made).trouble.find("MERGE_HEAD"), std::string::npos);
  EXPECT_FALSE(made.warnings.empty());
}

TEST_F(GitRecordTest, DamagedRecordsAreRefused) {
  GitRecord record;
  record.repositories.push_back({});
  record.repositories[0].head_ref = "refs/heads/../../../x";
  EXPECT_FALSE(DecodeGitRecord(EncodeGitRecord(record)).ok());
  record.repositories[0].head_ref = "refs/heads/main";
  EXPECT_TRUE(DecodeGitRecord(EncodeGitRecord(record)).ok());
  record.repositories[0].own.push_back(
      {.name = "../x", .id = {}, .size = 0, .mode = 0});
  EXPECT_FALSE(DecodeGitRecord(EncodeGitRecord(record)).ok());
  // Nothing that git would run or be led by.
  for (const char* name : {"hooks/pre-commit", "config", "objects/ab/cd",
                           "info/attributes", "refs/heads/x", "packed-refs", "index",
                           "HEAD.lock", "rebase-merge", "sharedindex.x/y"}) {
    record.repositories[0].own = {{.name = name, .id = {}, .size = 0, .mode = 0}};
    EXPECT_FALSE(DecodeGitRecord(EncodeGitRecord(record)).ok()) << name;
  }
  for (const char* name : {"HEAD", "rebase-merge/todo", "refs/bisect/bad",
                           "sharedindex.0123", "info/sparse-checkout"}) {
    record.repositories[0].own = {{.name = name, .id = {}, .size = 0, .mode = 0}};
    EXPECT_TRUE(DecodeGitRecord(EncodeGitRecord(record)).ok()) << name;
  }
  record.repositories[0].own.clear();
  record.repositories[0].index = {.name = "config", .id = {}, .size = 0, .mode = 0};
  EXPECT_FALSE(DecodeGitRecord(EncodeGitRecord(record)).ok());
  record.repositories[0].index.reset();
  record.repositories[0].path = "/etc";
  EXPECT_FALSE(DecodeGitRecord(EncodeGitRecord(record)).ok());
}

TEST(GitRefName, OnlyWhatGitTakesAndNoWayOut) {
  EXPECT_TRUE(IsGitRefName("refs/heads/a/b-c"));
  for (const char* name :
       {"refs/heads/../x", "refs/heads/a..b", "refs/heads/.x", "refs/heads/x.lock",
        "refs/heads/", "heads/x", "refs/heads//x", "refs/heads/a b", "refs/heads/a\nb",
        "refs/heads/x~1", "/refs/x", "refs/heads/x.lock/y", "refs/heads/@{x"})
    EXPECT_FALSE(IsGitRefName(name)) << name;
}

}  // namespace
}  // namespace belay::test
