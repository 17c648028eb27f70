// Purges, and git commits that hold what was purged.

#include "commits/anchors.h"
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

TEST_F(PurgeCommits, AnchorsThatHoldItGoAndOthersStay) {
  auto anchored = [&] {
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok());
    auto done = AnchorCheckpoints(*opened->store, *opened->catalog, opened->root,
                                  world_.settings, Places());
    ASSERT_TRUE(done.ok() && done->failed.empty());
  };
  const Captured before = Take("before");
  anchored();
  Do("mkdir d; echo correct-horse >d/leak");
  const Captured leak = Take("leak");
  anchored();
  PurgePath("d/leak");
  auto opened = world_.Open();
  ASSERT_TRUE(opened.ok());
  const AnchorReport report =
      DropStaleAnchors(*opened->store, *opened->catalog, Places());
  EXPECT_EQ(report.removed, (std::vector<std::string>{std::string(kAnchorRefs) +
                                                      leak.checkpoint.id.text()}));
  EXPECT_NE(Refs().find(before.checkpoint.id.text()), std::string::npos);
  // Nor does one come back for an older checkpoint.
  Do("echo x >x");
  Take("after");
  anchored();
  EXPECT_EQ(Git({"log", "--all", "--format=%H", "--", "d/leak"}), "");
}

}  // namespace
}  // namespace belay::test
