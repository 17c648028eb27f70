// What a plan says of paths that stay: whatever was asked for and cannot be had, is not
// held, or lies behind something that is not ours is named, with the reason.

#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class KeptTest : public RestoreTest {
 protected:
  void Protect(std::string_view path) {
    auto opened = Must(world.Open());
    const AbsPath inner = world.project.Join(P(path));
    Fd dir = Must(disk.OpenDir(inner));
    Must(RegisterRoot(*opened.store, *opened.catalog, inner, Must(disk.Stat(dir)), {}));
  }
  // "path why", and "!" behind what the target has; nothing else may be done.
  std::string Says(std::vector<std::string> select) {
    world.plan.select = std::move(select);
    const std::string before = Tree();
    Outcome done = Must(world.Rollback("start"));
    EXPECT_EQ(Steps(done.plan), "");
    EXPECT_EQ(Tree(), before);
    return Marked(done.plan);
  }
  static std::string Marked(const Plan& plan) {
    std::string out;
    for (const KeptPath& kept : plan.kept)
      out += (out.empty() ? "" : ", ") + kept.path + " " + kept.why +
             (kept.wanted ? "!" : "");
    return out;
  }
};

TEST_F(KeptTest, WhatWasChosenInARepositoryThatIsNewIsNamed) {
  Put("d/a", "1");
  Put("d/sub/b", "1");
  Put("d/same", "1");
  Must(world.Capture("start"));
  Put("d/.git/HEAD", "ref: refs/heads/main\n");
  Put("d/a", "2");
  Remove("d/sub/b");
  Put("d/new", "2");
  EXPECT_EQ(Says({"d/a"}), "d/a nested_repository!");
  EXPECT_EQ(Says({"d/sub/b"}), "d/sub/b nested_repository!");
  EXPECT_EQ(Says({"d/sub"}), "d/sub nested_repository!");
  EXPECT_EQ(
      Says({"d/*"}),
      "d/a nested_repository!, d/new nested_repository, d/sub nested_repository!");
  EXPECT_EQ(Says({"d"}), "d nested_repository!");
  EXPECT_EQ(Says({"d/same"}), "");
}

TEST_F(KeptTest, WhatWasChosenInAnotherRootIsNamed) {
  Put("in/g", "1");
  Must(world.Capture("start"));
  Protect("in");
  Put("in/g", "2");
  Put("in/new", "2");
  EXPECT_EQ(Says({"in/g"}), "in/g other_root!");
  EXPECT_EQ(Says({"in/new"}), "in/new other_root");
  Remove("in");
  EXPECT_EQ(Says({"in/g"}), "in/g other_root!");
}

TEST_F(KeptTest, WhatWasChosenAndIsTooLargeThenAndNowIsNamed) {
  world.settings.max_file_size = {.bytes = 1024};
  Put("big", std::string(5000, 'x'));
  Must(world.Capture("start"));
  Put("big", std::string(5001, 'y'));
  EXPECT_EQ(Says({"big"}), "big too_large");
  Remove("big");
  EXPECT_EQ(Says({"big"}), "big too_large");
}

TEST_F(KeptTest, WhatWasChosenAndIsIgnoredThenAndNowIsNamed) {
  Put(".gitignore", "*.x\n");
  Put("q.x", "1");
  Put("[q].x", "1");
  Must(world.Capture("start"));
  Put("q.x", "2");
  EXPECT_EQ(Says({"q.x"}), "q.x ignored_then");
  EXPECT_EQ(Says({"[q].x"}), "[q].x ignored_then");
  world.plan.select = {"r.x"};
  EXPECT_FALSE(world.Preview("start").ok());
}

TEST_F(KeptTest, AnotherRootThatTheTargetHasIsMissedAndTheWayOutOffered) {
  Put("in/g", "1");
  Must(world.Capture("start"));
  Protect("in");
  Put("in/g", "2");
  EXPECT_EQ(Says({}), "in other_root!");
  Outcome there = Must(world.Preview("start"));
  EXPECT_FALSE(there.plan.kept.at(0).missing);
  EXPECT_TRUE(Mentions(there.plan.warnings, "belay off /m/project/in"));
  Remove("in");
  Outcome gone = Must(world.Preview("start"));
  EXPECT_EQ(Marked(gone.plan), "in other_root!");
  EXPECT_TRUE(gone.plan.kept.at(0).missing) << "it does not stay";
}

TEST_F(KeptTest, AnotherRootThatIsAsTheTargetHasItIsNotMissed) {
  Put("in/d/g", "1");
  Link("in/l", "d/g");
  MakeDir("in/empty");
  Must(world.Capture("start"));
  Protect("in");
  EXPECT_EQ(Says({}), "in other_root");
  EXPECT_EQ(Says({"in/d"}), "in/d other_root");
  EXPECT_EQ(Says({"in/*"}), "in/d other_root, in/empty other_root, in/l other_root");
  EXPECT_TRUE(Must(world.Preview("start")).plan.warnings.empty());
  Put("in/new", "2");  // the target does not have it: nothing is missed
  EXPECT_EQ(Says({}), "in other_root");
  Chmod("in/d/g", 0600);
  EXPECT_EQ(Says({}), "in other_root!");
  EXPECT_EQ(Says({"in/l"}), "in/l other_root");
  Chmod("in/d/g", 0644);
  Put("in/d/g", "2");  // as long as it was
  EXPECT_EQ(Says({}), "in other_root!");
  Put("in/d/g", "1");
  Remove("in/l");
  Link("in/l", "d/h");
  EXPECT_EQ(Says({}), "in other_root!");
  Remove("in/l");
  Link("in/l", "d/g");
  Remove("in/empty");
  EXPECT_EQ(Says({}), "in other_root!");
  MakeDir("in/empty");
  EXPECT_EQ(Says({}), "in other_root");
}

// It was a root of its own already, or is gone from both: nobody asks for it.
TEST_F(KeptTest, AnotherRootThatTheTargetDoesNotHaveIsNotMissed) {
  Put("a", "1");
  Put("in/g", "1");
  Protect("in");
  Must(world.Capture("start"));
  EXPECT_EQ(Says({}), "");
  Put("in/g", "2");
  EXPECT_EQ(Says({}), "");
  Remove("in");
  EXPECT_EQ(Says({}), "");
}

TEST_F(KeptTest, WhatTheTargetLeftOutIsNamedWhateverBecameOfIt) {
  world.settings.max_file_size = {.bytes = 1024};
  Put("big", std::string(5000, 'x'));
  Put("a", "1");
  Must(world.Capture("start"));
  EXPECT_EQ(Says({}), "big too_large");
  Put("big", std::string(5001, 'y'));
  EXPECT_EQ(Says({}), "big too_large");
  Remove("big");
  EXPECT_EQ(Says({}), "big too_large");
  EXPECT_TRUE(Must(world.Preview("start")).plan.kept.at(0).missing);
  EXPECT_EQ(Says({"a"}), "");
}

TEST_F(KeptTest, DeleteIgnoredTakesWhatOnlyTodaysSizeLimitProtectsAndStoresIt) {
  Put("a", "1");
  Must(world.Capture("start"));
  world.settings.max_file_size = {.bytes = 1024};
  const std::string big(5000, 'x');
  Put("big", big);
  Put("new/big", big);
  EXPECT_EQ(Says({}), "big too_large, new/big too_large");
  world.plan.delete_ignored = true;
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Steps(done.plan), "delete big, rmdir new, delete new/big");
  EXPECT_FALSE(Exists("big"));
  EXPECT_TRUE(IsStoredSomewhere("big", big));
  EXPECT_TRUE(IsStoredSomewhere("new/big", big));
  Must(world.Undo());
  EXPECT_EQ(Read("new/big"), big);
}

TEST_F(KeptTest, DeleteIgnoredTakesNothingThatTheTargetFoundTooLarge) {
  world.settings.max_file_size = {.bytes = 1024};
  Put("a", "1");
  Must(world.Capture("start"));
  Put("big", std::string(5000, 'x'));
  world.plan.delete_ignored = true;
  EXPECT_EQ(Says({}), "big too_large");
}

TEST_F(KeptTest, EverythingThatIsInTheWayIsNamed) {
  Put("d", "1");
  Must(world.Capture("start"));
  Remove("d");
  Put("d/a.log", "2");
  Put("d/b.log", "2");
  Put("d/node_modules/x", "2");
  Put("d/.env", "2");
  EXPECT_EQ(Says({}),
            "d in_the_way!, d/.env secret, d/a.log not_covered, "
            "d/b.log not_covered, d/node_modules not_covered");
}

// Mutant: others-are-not-covered.
TEST_F(KeptTest, WhatOthersChangedInADirectoryIsSaidToHoldIt) {
  Put("d", "1");
  Must(world.Capture("start"));
  Remove("d");
  Put("d/agents", "2");
  Put("d/persons", "2");
  world.plan.keep = {"d/persons"};
  EXPECT_EQ(Says({}), "d others_in_it!, d/persons outside");
  Put("d/a.log", "2");
  EXPECT_EQ(Says({}), "d in_the_way!, d/a.log not_covered, d/persons outside");
}

TEST_F(KeptTest, NobodyElsesPathsAreNamed) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("clone/.git/HEAD", "ref: refs/heads/main\n");
  Put("clone/x", "2");
  Put("unborn/.git/HEAD", "ref: refs/heads/main\n");
  Put("unborn/x", "2");
  EXPECT_EQ(Says({"clone"}), "clone nested_repository");
}

}  // namespace
}  // namespace belay::test
