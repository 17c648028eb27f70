// Purging what others have too: another path, another project, another file's chunk.

#include <gmock/gmock.h>

#include "support/purge_fixture.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(PurgeTest, KeepsWhatAnotherPathHasAndNamesIt) {
  Put(".env", "TOKEN=shared-by-two");
  Put("copy/of/it", "TOKEN=shared-by-two");
  Must(world.Capture("one"));
  Put(".env", "TOKEN=of-one-alone");
  Must(world.Capture("two"));
  PurgeReport report = Must(Erase(".env"));
  EXPECT_EQ(report.plan.versions, 1u);
  ASSERT_EQ(report.plan.shared.size(), 1u);
  EXPECT_EQ(report.plan.shared[0].path, ".env");
  EXPECT_EQ(report.plan.shared[0].also, "copy/of/it");
  EXPECT_FALSE(report.plan.shared[0].part);
  EXPECT_EQ(report.plan.checkpoints, 1u) << "the first one loses nothing";
  EXPECT_EQ(report.plan.shared[0].root, world.project.bytes());
  EXPECT_THAT(Find("of-one-alone"), IsEmpty());
  EXPECT_EQ(Has("one", "copy/of/it"), "TOKEN=shared-by-two");
  EXPECT_EQ(Has("two", ".env"), "purged");
  ExpectWhole();

  report = Must(Erase(".env", /*everywhere=*/true));
  EXPECT_EQ(report.plan.shared.size(), 1u);
  EXPECT_THAT(report.left_out, ElementsAre(world.project.bytes() + "/.env",
                                           world.project.bytes() + "/copy/of/it"));
  EXPECT_THAT(Find("shared-by-two"), IsEmpty());
  EXPECT_EQ(Has("one", "copy/of/it"), "purged");
  // It is still in the directory, and not stored again from there.
  Put("else", "1");
  Must(world.Capture("three"));
  EXPECT_THAT(Find("shared-by-two"), IsEmpty());
  ExpectWhole();
}

TEST_F(PurgeTest, EverywhereCountsTheCheckpointsThatHadItUnderAnotherName) {
  Put("a", "TOKEN=under-two-names");
  Must(world.Capture("one"));
  Remove("a");
  Put("dir/b", "TOKEN=under-two-names");
  Must(world.Capture("two"));
  Must(world.Capture("three"));
  Put("dir/b", "clean");
  Must(world.Capture("four"));
  EXPECT_EQ(Must(Erase("a", /*everywhere=*/true)).plan.checkpoints, 3u);
  EXPECT_THAT(Find("under-two-names"), IsEmpty());
}

TEST_F(PurgeTest, APathThatWasPurgedItselfIsNoReasonToKeepAnything) {
  Put("a", "TOKEN=each-blames-the-other");
  Put("dir/b", "TOKEN=each-blames-the-other");
  Must(world.Capture("one"));
  // Gone from the directory by then: nothing but the log knows of the purge.
  Remove("a");
  PurgeReport report = Must(Erase("a"));
  EXPECT_TRUE(report.plan.keeps_all());
  ASSERT_EQ(report.plan.shared.size(), 1u);
  EXPECT_EQ(Has("one", "a"), "TOKEN=each-blames-the-other");

  report = Must(Erase("dir"));
  EXPECT_FALSE(report.plan.keeps_all());
  EXPECT_EQ(report.plan.versions, 1u);
  EXPECT_THAT(report.plan.shared, IsEmpty());
  ASSERT_EQ(report.plan.purged_before.size(), 1u);
  EXPECT_EQ(report.plan.purged_before[0].also, "a");
  EXPECT_THAT(Find("each-blames-the-other"), IsEmpty());
  EXPECT_EQ(Has("one", "a"), "purged");
  EXPECT_EQ(Has("one", "dir/b"), "purged");
  ExpectWhole();
}

TEST_F(PurgeTest, WhatAPurgedPathHadAfterwardsIsAReasonAgain) {
  Put("a", "TOKEN=wanted-again");
  Put("b", "TOKEN=wanted-again");
  Must(world.Capture("one"));
  EXPECT_TRUE(Must(Erase("a")).plan.keeps_all());
  auto opened = Must(world.Open());
  Must(AllowAgain(*opened.store, opened.root, "a", 200));
  Must(world.Capture("two"));
  PurgeReport report = Must(Erase("b"));
  EXPECT_TRUE(report.plan.keeps_all()) << "somebody allowed it since";
  EXPECT_THAT(report.plan.purged_before, IsEmpty());
  EXPECT_EQ(Has("two", "a"), "TOKEN=wanted-again");
}

TEST_F(PurgeTest, APathOfAnotherProjectThatWasPurgedIsNoReasonEither) {
  Put("a", "TOKEN=in-both");
  Must(world.Capture("one"));
  RestoreWorld other(disk, AbsPath::Literal("/other"), 5);
  other.world.dir = world.world.dir;
  Must(PutFile(disk, Must(other.Dir()), P("b"), "TOKEN=in-both"));
  Must(other.Capture("theirs"));
  EXPECT_TRUE(Must(Erase("a")).plan.keeps_all());
  auto opened = Must(other.Open());
  PurgeRequest request = Of(opened, "b");
  // The content of the first one goes too: not while that is at work.
  HeldLock busy =
      Must(opened.store->locks().AcquireRoot(Must(world.Open()).root.id, 0));
  EXPECT_EQ(Purge(*opened.store, request).error().code, Errc::kBusy);
  busy = HeldLock();
  EXPECT_EQ(Must(Purge(*opened.store, request)).plan.versions, 1u);
  EXPECT_THAT(Find("in-both"), IsEmpty());
}

TEST_F(PurgeTest, ContentOfAnotherProjectIsShared) {
  Put(".env", "TOKEN=in-both-projects");
  Must(world.Capture("one"));
  RestoreWorld other(disk, AbsPath::Literal("/other"), 5);
  other.world.dir = world.world.dir;
  Fd dir = Must(other.Dir());
  Must(PutFile(disk, dir, P("token"), "TOKEN=in-both-projects"));
  Must(other.Capture("theirs"));
  PurgeReport report = Must(Erase(".env"));
  EXPECT_EQ(report.plan.versions, 0u);
  ASSERT_EQ(report.plan.shared.size(), 1u);
  EXPECT_EQ(report.plan.shared[0].root, "/other/project");
  EXPECT_EQ(report.plan.shared[0].also, "token");
  EXPECT_EQ(Has("one", ".env"), "TOKEN=in-both-projects");
  Must(Erase(".env", true));
  EXPECT_THAT(Find("in-both-projects"), IsEmpty());
  Captured after = Must(other.Capture("after"));
  EXPECT_THAT(after.skipped, ElementsAre(SkippedPath{"token", Skip::kPurged}));
  EXPECT_THAT(Find("in-both-projects"), IsEmpty());
}

TEST_F(PurgeTest, AChunkThatAnotherFileHasStays) {
  const std::string common = Noise(41, 900'000);
  Put("mine", Noise(42, 600'000) + common + Noise(43, 600'000));
  Put("theirs", common + Noise(44, 700'000));
  Must(world.Capture("one"));
  PurgeReport report = Must(Erase("mine"));
  EXPECT_EQ(report.plan.versions, 1u);
  ASSERT_EQ(report.plan.shared.size(), 1u);
  EXPECT_EQ(report.plan.shared[0].also, "theirs");
  EXPECT_TRUE(report.plan.shared[0].part);
  EXPECT_EQ(Has("one", "theirs"), common + Noise(44, 700'000));
  EXPECT_EQ(Has("one", "mine"), "purged");
  EXPECT_THAT(Find(PiecesOf(Noise(42, 600'000))), IsEmpty());
  EXPECT_THAT(Find(PiecesOf(Noise(43, 600'000))), IsEmpty());
  ExpectWhole();
}

// The first version stays because somebody else has it; the second goes, and most of
// its chunks are those of the first. Mutant: purge-takes-parts-of-what-stays.
TEST_F(PurgeTest, AVersionThatAnotherPathHasKeepsItsChunks) {
  const std::string first = Noise(41, 3'000'000);
  std::string second = first;
  second[1'500'000] ^= 1;
  Put("mine", first);
  Put("theirs", first);
  Must(world.Capture("one"));
  Put("mine", second);
  Must(world.Capture("two"));
  PurgeReport report = Must(Erase("mine"));
  EXPECT_EQ(report.plan.versions, 1u);
  ASSERT_EQ(report.plan.shared.size(), 1u);
  EXPECT_EQ(report.plan.shared[0].also, "theirs");
  EXPECT_FALSE(report.plan.shared[0].part);
  EXPECT_EQ(Has("one", "theirs"), first);
  EXPECT_EQ(Has("two", "theirs"), first);
  EXPECT_EQ(Has("two", "mine"), "purged");
  EXPECT_THAT(Find(second.substr(1'500'000 - 16, 32)), IsEmpty());
  ExpectWhole();
}

TEST_F(PurgeTest, APartThatStayedIsFoundByALaterPurge) {
  const std::string common = Noise(41, 900'000);
  Put("mine", Noise(42, 600'000) + common);
  Put("theirs", common + Noise(44, 700'000));
  Must(world.Capture("one"));
  Remove("mine");
  Must(Erase("mine"));
  ASSERT_FALSE(Find(PiecesOf(common)).empty());
  // Asked for again: it is not gone, and that is said.
  PurgeReport report = Must(Erase("mine"));
  EXPECT_TRUE(report.plan.keeps_all());
  ASSERT_EQ(report.plan.shared.size(), 1u);
  EXPECT_EQ(report.plan.shared[0].also, "theirs");
  EXPECT_TRUE(report.plan.shared[0].part);

  report = Must(Erase("mine", /*everywhere=*/true));
  EXPECT_EQ(report.plan.versions, 1u);
  EXPECT_GT(report.plan.bytes, 0u);
  EXPECT_EQ(report.plan.checkpoints, 1u);
  EXPECT_THAT(report.left_out, ElementsAre(world.project.bytes() + "/theirs"));
  EXPECT_THAT(Find(PiecesOf(common)), IsEmpty());
  EXPECT_EQ(Has("one", "theirs"), "purged");
  ExpectWhole();

  report = Must(Erase("mine", /*everywhere=*/true));
  EXPECT_TRUE(report.plan.empty());
  EXPECT_TRUE(report.plan.was_purged);
  EXPECT_THAT(report.plan.shared, IsEmpty());
}

TEST_F(PurgeTest, APartThatStayedGoesWithThePurgeOfTheOtherPath) {
  const std::string common = Noise(41, 900'000);
  Put("mine", Noise(42, 600'000) + common);
  Put("theirs", common + Noise(44, 700'000));
  Must(world.Capture("one"));
  Must(Erase("mine"));
  Must(Erase("theirs"));
  EXPECT_THAT(Find(PiecesOf(common)), IsEmpty());
  EXPECT_TRUE(Must(Erase("mine", true)).plan.empty());
  ExpectWhole();
}

// `third` loses a part to the purge of `mine`, and with it all of its content; what it
// has in common with `fourth` is known to be its own even so.
TEST_F(PurgeTest, APartOfWhatWentWithAnotherPathIsFoundToo) {
  const std::string one = Noise(41, 900'000), two = Noise(45, 900'000);
  Put("mine", Noise(42, 600'000) + one);
  Put("third", one + Noise(46, 600'000) + two);
  Put("fourth", two + Noise(44, 700'000));
  Must(world.Capture("one"));
  Must(Erase("mine", /*everywhere=*/true));
  EXPECT_EQ(Has("one", "third"), "purged");
  EXPECT_EQ(Has("one", "fourth"), two + Noise(44, 700'000));
  ASSERT_FALSE(Find(PiecesOf(two)).empty());
  EXPECT_TRUE(Must(Erase("third")).plan.keeps_all());
  Must(Erase("third", /*everywhere=*/true));
  EXPECT_THAT(Find(PiecesOf(two)), IsEmpty());
  EXPECT_EQ(Has("one", "fourth"), "purged");
  ExpectWhole();
}

TEST_F(PurgeTest, EverywhereTakesTheFilesThatAreMadeOfAChunkToo) {
  const std::string common = Noise(41, 900'000);
  Put("mine", Noise(42, 600'000) + common);
  Put("theirs", common + Noise(44, 700'000));
  Must(world.Capture("one"));
  Must(Erase("mine", true));
  EXPECT_EQ(Has("one", "theirs"), "purged");
  EXPECT_THAT(Find(PiecesOf(common)), IsEmpty());
  ExpectWhole();
}

}  // namespace
}  // namespace belay::test
