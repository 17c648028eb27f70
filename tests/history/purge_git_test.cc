// What was staged under a path, and never was in the tree, is purged with it.

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/real_fs.h"
#include "core/git_record.h"
#include "history/purge.h"
#include "store/verify.h"
#include "support/git_shell.h"
#include "support/raw_search.h"
#include "support/restore_world.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

TEST(PurgeGit, WhatWasOnlyStagedIsErasedToo) {
  RealFs fs;
  TempDir temp;
  RestoreWorld world(fs, temp.path(), 1, getuid());
  ASSERT_TRUE(MakeDirs(fs, world.project, 0755).ok());
  const std::string secret = "sk-live-only-ever-staged-0123456789";
  Status made = Shell(world.project,
                      "git init -q -b main .; echo x >x; mkdir d; echo '" + secret +
                          "' >d/key.txt; git add .; echo gone >d/key.txt");
  ASSERT_TRUE(made.ok()) << made.error().what;
  ASSERT_TRUE(world.Capture("start").ok());
  auto find = [&] {
    auto dir = fs.OpenDir(world.world.dir);
    EXPECT_TRUE(dir.ok());
    auto found = RawSearch(fs, {secret}).In(*dir);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::vector<std::string>{"?"};
  };
  EXPECT_FALSE(find().empty());
  auto opened = world.Open();
  ASSERT_TRUE(opened.ok());
  PurgeRequest request;
  request.path = "d/key.txt";
  request.root = opened->root;
  request.lock_wait_ms = 200;
  auto purged = Purge(*opened->store, request);
  ASSERT_TRUE(purged.ok()) << purged.error().what;
  opened->store.reset();
  EXPECT_TRUE(find().empty());
  opened = world.Open();
  ASSERT_TRUE(opened.ok());
  auto report = VerifyStore(*opened->store, {.read_data = true});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->clean());
  opened->store.reset();

  // It is still staged, though another file lies at its path or none: the next
  // checkpoint does not bring it back.
  for (const char* then :
       {"echo y >y; git add y", "rm d/key.txt; echo z >z; git add z"}) {
    made = Shell(world.project, then);
    ASSERT_TRUE(made.ok()) << made.error().what;
    ASSERT_TRUE(world.Capture("later").ok());
    EXPECT_TRUE(find().empty()) << then;
  }
}

TEST(PurgeGit, CopiesOfGitDirectoriesGoWithWhatTheyMayHold) {
  RealFs fs;
  TempDir temp;
  RestoreWorld world(fs, temp.path(), 1, getuid());
  world.settings.git_protect = true;
  ASSERT_TRUE(MakeDirs(fs, world.project, 0755).ok());
  Status made =
      Shell(world.project,
            "git init -q -b main .; echo x >x; echo sk-live-committed >key\n"
            "git add .; git commit -qm first; git rm -q key; git commit -qm 2");
  ASSERT_TRUE(made.ok()) << made.error().what;
  ASSERT_TRUE(world.Capture("before").ok());
  made = Shell(world.project, "git checkout -q HEAD~1 -- key");
  ASSERT_TRUE(made.ok()) << made.error().what;
  ASSERT_TRUE(world.Capture("start").ok());
  made = Shell(world.project, "git rm -qf key");
  ASSERT_TRUE(made.ok()) << made.error().what;
  auto opened = world.Open();
  ASSERT_TRUE(opened.ok());
  auto objects = [&](const std::string& name) {
    auto found = opened->catalog->Find(opened->root.id, name);
    EXPECT_TRUE(found.ok());
    auto state = opened->store->GetState(found->entry.checkpoint.state);
    auto record = LoadGitRecord(*opened->store, state->git);
    EXPECT_TRUE(record.ok());
    std::vector<ObjectId> out;
    const GitRepoRecord* repo = record->Find("");
    if (repo == nullptr || repo->whole.tree.is_zero()) return out;
    std::vector<ObjectId> left;
    auto top = opened->store->GetTree(repo->whole.tree);
    for (const TreeEntry& entry : top->entries)
      if (entry.name == "objects") left.push_back(entry.id);
    while (!left.empty()) {
      auto tree = opened->store->GetTree(left.back());
      left.pop_back();
      EXPECT_TRUE(tree.ok());
      for (const TreeEntry& entry : tree->entries)
        (entry.kind == EntryKind::kDirectory ? left : out).push_back(entry.id);
    }
    return out;
  };
  const std::vector<ObjectId> all = objects("before");
  ASSERT_FALSE(all.empty());
  PurgeRequest request;
  request.path = "key";
  request.root = opened->root;
  request.lock_wait_ms = 200;
  auto purged = Purge(*opened->store, request);
  ASSERT_TRUE(purged.ok()) << purged.error().what;
  EXPECT_TRUE(purged->plan.git_copies);
  opened->store.reset();
  opened = world.Open();
  ASSERT_TRUE(opened.ok());
  for (const ObjectId& id : all)
    EXPECT_FALSE(opened->store->ReadContentBytes(id, 1 << 20).ok());
  auto report = VerifyStore(*opened->store, {.read_data = true});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->clean());
  opened->store.reset();
  // And are not made again.
  made = Shell(world.project, "git commit -qm 3 --allow-empty");
  auto later = world.Capture("later");
  ASSERT_TRUE(later.ok());
  EXPECT_TRUE(later->git.Find("")->whole.tree.is_zero());
  EXPECT_FALSE(later->warnings.empty());
  // A file that comes to be there is another one, and is covered.
  made = Shell(world.project, "echo harmless >key");
  ASSERT_TRUE(made.ok()) << made.error().what;
  auto again = world.Capture("again");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->checkpoint.files, later->checkpoint.files + 1);
}

TEST(PurgeGit, CopiesThatMayHoldAnUnknownPathAreNamedAndGoByTheirOwnName) {
  RealFs fs;
  TempDir temp;
  RestoreWorld world(fs, temp.path(), 1, getuid());
  world.settings.git_protect = true;
  ASSERT_TRUE(MakeDirs(fs, world.project, 0755).ok());
  Status made = Shell(world.project,
                      "git init -q -b main .; echo x >x; echo sk-live >key; git add .\n"
                      "git commit -qm first; git rm -q key; git commit -qm second");
  ASSERT_TRUE(made.ok()) << made.error().what;
  ASSERT_TRUE(world.Capture("start").ok());
  auto purge = [&](const std::string& path) {
    auto opened = world.Open();
    EXPECT_TRUE(opened.ok());
    PurgeRequest request;
    request.path = path;
    request.root = opened->root;
    request.lock_wait_ms = 200;
    auto purged = Purge(*opened->store, request);
    EXPECT_TRUE(purged.ok()) << purged.error().what;
    return purged.ok() ? purged->plan : PurgePlan();
  };
  EXPECT_TRUE(purge("key").git_may_hold);
  EXPECT_TRUE(purge(".git").git_copies);
  EXPECT_FALSE(purge("key").git_may_hold);
}

TEST(PurgeGit, WhatIsInTheIndexAloneIsLeftOutFromThenOn) {
  RealFs fs;
  TempDir temp;
  RestoreWorld world(fs, temp.path(), 1, getuid());
  ASSERT_TRUE(MakeDirs(fs, world.project, 0755).ok());
  Status made =
      Shell(world.project,
            "mkdir in; cd in; git init -q .; echo k >key; git add key; rm key");
  ASSERT_TRUE(made.ok()) << made.error().what;
  ASSERT_TRUE(world.Capture("start").ok());
  auto opened = world.Open();
  ASSERT_TRUE(opened.ok());
  PurgeRequest request;
  request.path = "in/key";
  request.root = opened->root;
  request.lock_wait_ms = 200;
  auto purged = Purge(*opened->store, request);
  ASSERT_TRUE(purged.ok()) << purged.error().what;
  EXPECT_TRUE(purged->plan.on_disk);
}

}  // namespace
}  // namespace belay::test
