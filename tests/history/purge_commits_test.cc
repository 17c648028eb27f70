// Purges, and git commits that hold what was purged.

#include "history/purge.h"
#include "support/commit_world.h"

namespace belay::test {
namespace {

class PurgeCommits : public CommitTest {
 protected:
  void PurgePath(const std::string& path) {
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok());
    PurgeRequest request;
    request.path = path;
    request.root = opened->root;
    request.everywhere = true;
    auto done = Purge(*opened->store, request);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }
};

TEST_F(PurgeCommits, WhatWasPurgedDoesNotComeBackWithACommit) {
  Do("echo correct-horse >leak; head -c 3000000 /dev/urandom >big; cp leak copy\n"
     "git add .; git commit -qm leak");
  Take("x");
  PurgePath("leak");
  Do("mkdir moved; git mv big moved/big; git commit -qm moved");
  PurgePath("big");
  auto made = Import("HEAD");
  ASSERT_TRUE(made.ok()) << made.error().what;
  std::vector<std::string> left_out;
  for (const SkippedPath& path : made->skipped) {
    left_out.push_back(path.path);
    EXPECT_EQ(path.why, Skip::kPurged);
  }
  EXPECT_EQ(left_out, (std::vector<std::string>{"copy", "leak", "moved/big"}));
}

}  // namespace
}  // namespace belay::test
