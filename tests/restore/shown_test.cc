// What somebody said yes to is what is done.

#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

class ShownTest : public RollbackTest {
 protected:
  Result<Outcome> RollbackAsShown(const Plan& shown) {
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(Checkpoint target, world.Named(opened, "start"));
    RollbackRequest request = world.RequestFor(opened.root);
    request.shown = &shown;
    return belay::Rollback(*opened.store, request, target);
  }
};

TEST_F(ShownTest, MoreThanWasShownIsNotDone) {
  MakeMess();
  const Plan shown = Must(world.Preview("start")).plan;
  Put("made since", "nobody was asked about this");
  Remove("in-place");
  const std::string before = Tree();
  const size_t checkpoints = Checkpoints().size();
  Outcome refused = Must(RollbackAsShown(shown));
  EXPECT_FALSE(refused.operation);
  EXPECT_EQ(refused.unshown,
            (std::vector<std::string>{"create in-place", "delete made since"}));
  EXPECT_EQ(Tree(), before);
  EXPECT_EQ(Checkpoints().size(), checkpoints);
  EXPECT_TRUE(Operations().empty());
  // Shown again, and done.
  Outcome done = Must(RollbackAsShown(refused.plan));
  EXPECT_TRUE(done.operation);
  EXPECT_EQ(Tree(), start);
}

TEST_F(ShownTest, LessAndOtherContentIsDoneAsShown) {
  MakeMess();
  const Plan shown = Must(world.Preview("start")).plan;
  Put("in-place", "edited once more");
  Remove("new");
  Outcome done = Must(RollbackAsShown(shown));
  EXPECT_TRUE(done.unshown.empty());
  ASSERT_TRUE(done.operation);
  EXPECT_EQ(Tree(), start);
  EXPECT_EQ(Holds(*done.safety)["in-place"], "edited once more");
}

}  // namespace
}  // namespace belay::test
