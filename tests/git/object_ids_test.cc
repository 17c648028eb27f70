#include "git/object_ids.h"

#include <gtest/gtest.h>

namespace belay::test {
namespace {

Bytes IdOf(size_t size, uint8_t first, uint8_t last) {
  Bytes id(size);
  id.front() = static_cast<std::byte>(first);
  id.back() = static_cast<std::byte>(last);
  return id;
}

TEST(GitIds, AreSortedFoundAndLeftOut) {
  for (const GitHash hash : {GitHash::kSha1, GitHash::kSha256}) {
    const size_t size = GitHashSize(hash);
    GitIds ids(hash);
    EXPECT_TRUE(ids.empty());
    ids.Reserve(5);
    for (const int first : {200, 3, 200, 7, 3})
      ids.Add(IdOf(size, static_cast<uint8_t>(first), 9));
    ids.Add(IdOf(size, 3, 1));
    ids.SortOnce();
    ASSERT_EQ(ids.size(), 4u);
    EXPECT_EQ(Bytes(ids[0].begin(), ids[0].end()), IdOf(size, 3, 1));
    EXPECT_EQ(ids.Hex(3), ToHex(IdOf(size, 200, 9)));
    EXPECT_EQ(ids.Find(IdOf(size, 7, 9)), 2u);
    EXPECT_EQ(ids.Find(IdOf(size, 7, 8)), std::nullopt);
    EXPECT_EQ(ids.Find(IdOf(size, 255, 0)), std::nullopt);
    ids.Keep({false, true, false, true});
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_EQ(ids.Find(IdOf(size, 3, 9)), 0u);
    EXPECT_EQ(ids.Find(IdOf(size, 200, 9)), 1u);
    ids.Clear();
    EXPECT_TRUE(ids.empty());
  }
}

// The repository was made anew, with the other hash.
TEST(GitIds, OfAnotherHashNoneIsFound) {
  GitIds ids(GitHash::kSha1);
  ids.Add(IdOf(20, 1, 2));
  ids.SortOnce();
  EXPECT_EQ(ids.Find(IdOf(32, 1, 2)), std::nullopt);
}

}  // namespace
}  // namespace belay::test
