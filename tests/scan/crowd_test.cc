#include "scan/crowd.h"

#include <gtest/gtest.h>

namespace belay {
namespace {

size_t With(Crowd& crowd, size_t parent, std::string_view name, int files) {
  const size_t dir = crowd.Add(parent, name);
  for (int i = 0; i < files; ++i) crowd.AddFile(dir);
  return dir;
}

TEST(Crowd, NamesTheLargestFirstWithWhatIsBelowThem) {
  Crowd crowd;
  crowd.AddFile(Crowd::kRoot);
  const size_t a = With(crowd, Crowd::kRoot, "a", 30);
  With(crowd, a, "x", 20);
  With(crowd, Crowd::kRoot, "b", 40);
  With(crowd, Crowd::kRoot, "c", 9);
  EXPECT_EQ(crowd.total(), 100u);
  EXPECT_EQ(crowd.Text(), "50 in a/, 40 in b/, 20 in a/x/");
  EXPECT_EQ(crowd.Text(1), "50 in a/");
}

TEST(Crowd, PassesOverWhatIsOnlyAWay) {
  Crowd crowd;
  const size_t a = With(crowd, Crowd::kRoot, "a", 1);
  const size_t b = With(crowd, a, "b", 0);
  With(crowd, b, "c\n", 99);
  EXPECT_EQ(crowd.Text(), "99 in a/b/c\\n/");
}

TEST(Crowd, ManySmallOnesAreNamedByWhatHoldsThem) {
  Crowd crowd;
  const size_t many = With(crowd, Crowd::kRoot, "many", 0);
  for (int i = 0; i < 200; ++i) With(crowd, many, std::to_string(i), 1);
  EXPECT_EQ(crowd.Text(), "200 in many/");
}

TEST(Crowd, OfTheRootAloneNothingIsSaid) {
  Crowd crowd;
  EXPECT_EQ(crowd.Text(), "");
  for (int i = 0; i < 50; ++i) crowd.AddFile(Crowd::kRoot);
  With(crowd, Crowd::kRoot, "small", 2);
  EXPECT_EQ(crowd.Text(), "");
}

}  // namespace
}  // namespace belay
