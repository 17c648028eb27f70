// What was staged under a path, and never was in the tree, is purged with it.

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/real_fs.h"
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
