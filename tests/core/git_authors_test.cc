// In which repositories git moved, and what of it.

#include "core/git_authors.h"

#include <gtest/gtest.h>

namespace belay {
namespace {

std::string HexOf(size_t number) {
  std::string hex = std::to_string(number);
  return std::string(40 - hex.size(), '0') + hex;
}

GitRepoRecord RepoAt(const std::string& path, size_t head = 1) {
  GitRepoRecord out;
  out.path = path;
  out.head = HexOf(head);
  return out;
}

GitKept KeptAs(const std::string& name, const std::string& text) {
  GitKept out;
  out.name = name;
  out.id = Sha256::Of(AsBytes(text));
  return out;
}

GitRecord RecordOf(size_t repositories, size_t head) {
  GitRecord out;
  for (size_t i = 0; i < repositories; ++i)
    out.repositories.push_back(RepoAt("r" + std::to_string(10'000'000 + i), head));
  return out;
}

TEST(GitAuthors, ARepositoryThatCameOrWentMoved) {
  GitRecord before, now;
  before.repositories = {RepoAt("a"), RepoAt("b"), RepoAt("d")};
  now.repositories = {RepoAt(""), RepoAt("b"), RepoAt("c")};
  EXPECT_EQ(MovedRepositories(before, now),
            (std::vector<std::string>{".git", "a/.git", "c/.git", "d/.git"}));
}

TEST(GitAuthors, WhatIsStagedAndWhatIsElseInItDoesNot) {
  const GitRepoRecord before = RepoAt("");
  GitRepoRecord now = before;
  now.index_digest = Sha256::Of(AsBytes("staged"));
  now.index_mtime_ns = 1;
  now.own = {KeptAs("ORIG_HEAD", "x")};
  now.objects = Sha256::Of(AsBytes("objects"));
  EXPECT_FALSE(GitMoved(&before, &now));
  now.unmerged = now.index_digest;
  EXPECT_TRUE(GitMoved(&before, &now));
}

// Records of before there were such digests.
TEST(GitAuthors, WhatIsUnmergedIsAsItWasWhereTheIndexIs) {
  GitRepoRecord before = RepoAt("");
  before.index_digest = Sha256::Of(AsBytes("unmerged"));
  GitRepoRecord now = before;
  now.unmerged = before.index_digest;
  EXPECT_FALSE(GitMoved(&before, &now));
}

// Mutant: all-that-moved-is-named.
TEST(GitAuthors, OfVeryManySomeAreNamedAndTheOthersTogether) {
  const auto moved = MovedRepositories(RecordOf(5000, 1), RecordOf(5000, 2));
  EXPECT_LE(moved.size(), 65u);
  EXPECT_EQ(moved[0], kOtherRepositories);
  EXPECT_EQ(moved[1], "r10000000/.git");
}

// Each looked for among all, it would be 2,500 million comparisons.
TEST(GitAuthors, TwoLongRecordsAreWalkedOnce) {
  GitRecord before = RecordOf(50'000, 1), now = before;
  now.repositories.back().head = HexOf(2);
  now.repositories.erase(now.repositories.begin());
  EXPECT_EQ(MovedRepositories(before, now),
            (std::vector<std::string>{"r10000000/.git", "r10049999/.git"}));
}

TEST(GitAuthors, WhatMovedHasItsName) {
  GitRepoRecord before = RepoAt(""), now = RepoAt("");
  before.head_ref = "refs/heads/main";
  now.head_ref = "refs/heads/x";
  now.own = {KeptAs("MERGE_HEAD", "x"), KeptAs("ORIG_HEAD", "x"),
             KeptAs("info/sparse-checkout", "x")};
  now.stash_log = KeptAs("logs/refs/stash", "x");
  const GitRefs were = {{"refs/heads/a", HexOf(1)}, {"refs/heads/b", HexOf(1)}};
  const GitRefs are = {{"refs/heads/b", HexOf(2)}, {"refs/tags/c", HexOf(1)}};
  EXPECT_EQ(WhatMoved(before, were, now, are),
            (std::set<std::string>{"HEAD", "under way", "sparse", "refs/stash",
                                   "refs/heads/a", "refs/heads/b", "refs/tags/c"}));
}

}  // namespace
}  // namespace belay
