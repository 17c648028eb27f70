#include "store/key_set.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "base/random.h"

namespace belay {
namespace {

ObjectKey KeyOf(uint64_t number, ObjectType type) {
  return {type, Sha256::Of(std::as_bytes(std::span(&number, 1)))};
}

TEST(KeySet, HoldsWhatWasInsertedAndNothingElse) {
  SeededRandom random(7);
  KeySet set;
  std::unordered_set<ObjectKey> same;
  for (int i = 0; i < 20'000; ++i) {
    const ObjectKey key =
        KeyOf(random.U64() % 15'000,
              random.U64() % 2 == 0 ? ObjectType::kBlob : ObjectType::kChunks);
    ASSERT_EQ(set.contains(key), same.contains(key));
    ASSERT_EQ(set.insert(key).second, same.insert(key).second);
    ASSERT_TRUE(set.contains(key));
  }
  for (uint64_t n = 0; n < 15'000; ++n)
    for (ObjectType type : {ObjectType::kBlob, ObjectType::kChunks, ObjectType::kTree})
      ASSERT_EQ(set.contains(KeyOf(n, type)), same.contains(KeyOf(n, type)));
  set.clear();
  EXPECT_FALSE(set.contains(*same.begin()));
  EXPECT_TRUE(set.insert(*same.begin()).second);
}

}  // namespace
}  // namespace belay
