// What a rollback would do: every verb, every change of kind, what stays and why.

#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class PlanTest : public RestoreTest {
 protected:
  Plan PlanTo(const std::string& name) { return Must(world.Preview(name)).plan; }
  // Rolls back to `name`, and checks that the tree is `wanted`, the plan was kept to,
  // and undo leads back.
  Outcome GoTo(const std::string& name, const std::string& wanted) {
    const std::string here = Tree();
    const Plan plan = PlanTo(name);
    EXPECT_EQ(Tree(), here) << "a preview changed something";
    Outcome done = Must(world.Rollback(name));
    EXPECT_EQ(Tree(), wanted);
    EXPECT_EQ(Steps(done.plan), Steps(plan));
    EXPECT_TRUE(done.verified || !done.operation);
    if (done.operation) {
      Must(world.Undo());
      EXPECT_EQ(Tree(), here) << "undo";
      Must(world.Redo());
      EXPECT_EQ(Tree(), wanted) << "redo";
    }
    return done;
  }
};

TEST_F(PlanTest, NamesEveryVerb) {
  Put("created", "1");
  Put("written", "1");
  Put("moded", "1");
  Put("gone/x", "1");
  Link("link", "here");
  Must(world.Capture("start"));
  const std::string start = Tree();
  Remove("created");
  Put("written", "2");
  Chmod("moded", 0755);
  Remove("gone");
  Remove("link");
  Link("link", "there");
  Put("new/deleted", "2");
  Outcome done = GoTo("start", start);
  EXPECT_EQ(Steps(done.plan),
            "create created, mkdir gone, create gone/x, symlink link, chmod moded, "
            "rmdir new, delete new/deleted, write written");
  EXPECT_GT(done.plan.bytes_needed, 0u);
  EXPECT_GT(done.plan.inodes_needed, 0u);
}

TEST_F(PlanTest, NothingToDoIsAnEmptyPlan) {
  Put("a", "1");
  Must(world.Capture("start"));
  EXPECT_EQ(Steps(PlanTo("start")), "");
  EXPECT_EQ(Checkpoints().size(), 1u);
}

// Every kind to every other, at one name.
enum class Thing { kNothing, kFile, kOtherFile, kLink, kOtherLink, kEmptyDir, kDir };
constexpr Thing kThings[] = {Thing::kNothing, Thing::kFile,      Thing::kOtherFile,
                             Thing::kLink,    Thing::kOtherLink, Thing::kEmptyDir,
                             Thing::kDir};
constexpr const char* kThingNames[] = {"Nothing",   "File",     "OtherFile", "Link",
                                       "OtherLink", "EmptyDir", "Dir"};

class SwapTest : public RestoreTest,
                 public ::testing::WithParamInterface<std::tuple<int, int>> {
 protected:
  void Make(Thing thing, const std::string& path) {
    switch (thing) {
      case Thing::kNothing:
        break;
      case Thing::kFile:
        Put(path, "content");
        break;
      case Thing::kOtherFile:
        Put(path, std::string(5000, 'x'), 0600);
        break;
      case Thing::kLink:
        Link(path, "target");
        break;
      case Thing::kOtherLink:
        Link(path, "../out/of/here");
        break;
      case Thing::kEmptyDir:
        MakeDir(path, 0750);
        break;
      case Thing::kDir:
        Put(path + "/in", "1");
        Put(path + "/deeper/in", "2");
        Link(path + "/link", "in");
        break;
    }
  }
};

TEST_P(SwapTest, GoesThereAndBack) {
  const Thing from = kThings[std::get<0>(GetParam())];
  const Thing to = kThings[std::get<1>(GetParam())];
  Put("beside", "stays");
  MakeDir("d");
  Make(to, "x");
  Make(to, "d/x");
  Must(world.Capture("start"));
  const std::string start = Tree();
  if (to != Thing::kNothing) Remove("x"), Remove("d/x");
  Make(from, "x");
  Make(from, "d/x");
  const std::string now = Tree();
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
  EXPECT_TRUE(done.verified || start == now);
  if (start == now) return;
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
  Must(world.Redo());
  EXPECT_EQ(Tree(), start);
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, SwapTest,
                         ::testing::Combine(::testing::Range(0, 7),
                                            ::testing::Range(0, 7)),
                         [](const auto& row) {
                           return std::string(kThingNames[std::get<0>(row.param)]) +
                                  "Becomes" + kThingNames[std::get<1>(row.param)];
                         });

TEST_F(PlanTest, EmptyDirectoriesComeAndGo) {
  MakeDir("was");
  MakeDir("was/deep");
  Must(world.Capture("start"));
  const std::string start = Tree();
  Remove("was");
  MakeDir("is");
  MakeDir("is/deep");
  Outcome done = GoTo("start", start);
  EXPECT_EQ(Steps(done.plan), "rmdir is, rmdir is/deep, mkdir was, mkdir was/deep");
}

TEST_F(PlanTest, ExtendedAttributesComeBack) {
  Put("a", "same");
  Put("b", "same");
  MakeDir("d");
  SetXattr("a", "user.one", "1");
  SetXattr("d", "user.dir", "d");
  Must(world.Capture("start"));
  SetXattr("a", "user.one", "2");
  SetXattr("a", "user.two", "2");
  SetXattr("b", "user.new", "n");
  SetXattr("d", "user.dir", "e");
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Steps(done.plan), "chmod a, chmod b, chmod d");
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Xattr("a", "user.one"), "1");
  EXPECT_EQ(Xattr("a", "user.two"), "none");
  EXPECT_EQ(Xattr("b", "user.new"), "none");
  EXPECT_EQ(Xattr("d", "user.dir"), "d");
  Must(world.Undo());
  EXPECT_EQ(Xattr("a", "user.one"), "2");
  EXPECT_EQ(Xattr("a", "user.two"), "2");
  EXPECT_EQ(Xattr("b", "user.new"), "n");
  EXPECT_EQ(Xattr("d", "user.dir"), "e");
}

TEST_F(PlanTest, AttributesComeWithANewFile) {
  Put("a", "1", 0640);
  SetXattr("a", "user.one", "1");
  Chown("a", 1001, 1002);
  Must(world.Capture("start"));
  Remove("a");
  Must(world.Rollback("start"));
  EXPECT_EQ(Xattr("a", "user.one"), "1");
  EXPECT_EQ(Stat("a").uid, 1001u);
  EXPECT_EQ(Stat("a").gid, 1002u);
  EXPECT_EQ(Stat("a").mode, 0640u);
}

TEST_F(PlanTest, TheOwnerComesBack) {
  Put("a", "1");
  Put("b", "1");
  MakeDir("d");
  Link("l", "x");
  Must(world.Capture("start"));
  for (const char* path : {"a", "d", "l"}) Chown(path, 7, 8);
  Put("b", "2");
  Chown("b", 7, 8);
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Steps(done.plan), "chmod a, write b, chmod d, chmod l");
  for (const char* path : {"a", "b", "d", "l"}) {
    EXPECT_EQ(Stat(path).uid, 1000u) << path;
    EXPECT_EQ(Stat(path).gid, 1000u) << path;
  }
  Must(world.Undo());
  for (const char* path : {"a", "b", "d", "l"}) EXPECT_EQ(Stat(path).uid, 7u) << path;
}

TEST_F(PlanTest, WhatIsAnothersAloneIsRefusedBeforeAnythingMoves) {
  MakeDir("theirs");
  Put("theirs/gone", "1");
  Put("theirs/shared", "1");
  Put("theirs/mode", "1");
  Put("ours", "1");
  Chown("theirs", 7, 7);
  Must(world.Capture("start"));
  Put("ours", "2");
  Put("theirs/shared", "2");
  Must(world.Capture("later"));
  world.plan.uid = 1000;
  world.plan.groups = {1000};
  // Another's directory, but a file that is ours: written in place.
  EXPECT_TRUE(Must(world.Rollback("start")).verified);
  Remove("theirs/gone");
  world.plan.select = {"theirs/gone"};
  auto gone = world.Rollback("start");
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Errc::kRefused);
  EXPECT_NE(gone.error().what.find("you may not change theirs/gone"),
            std::string::npos);
  // Their bits let us.
  Chmod("theirs", 0777);
  EXPECT_TRUE(Must(world.Rollback("start")).verified);
  Chmod("theirs/mode", 0600);
  Chown("theirs/mode", 7, 7);
  world.plan.select = {"theirs/mode"};
  auto mode = world.Rollback("start");
  ASSERT_FALSE(mode.ok());
  EXPECT_NE(mode.error().what.find("you may not change theirs/mode"),
            std::string::npos);
}

TEST_F(PlanTest, AnothersFileInAStickyDirectoryIsRefusedBeforeAnythingMoves) {
  MakeDir("shared");
  Put("shared/ours", "1");
  Chown("shared", 7, 7);
  Chmod("shared", 01777);
  Must(world.Capture("start"));
  Put("shared/new", "ours");
  world.plan.uid = 1000;
  world.plan.groups = {1000};
  EXPECT_TRUE(Must(world.Rollback("start")).verified) << "what is ours may go";
  Put("shared/new", "theirs");
  Chown("shared/new", 7, 7);
  auto refused = world.Rollback("start");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("you may not change shared/new"),
            std::string::npos);
}

TEST_F(PlanTest, WhoIsNotRootGivesNothingAwayAndIsTold) {
  Put("a", "1");
  Chown("a", 77, 78);
  Must(world.Capture("start"));
  Remove("a");
  world.plan.uid = 1000;
  world.plan.groups = {1000};
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(Mentions(done.plan.warnings, "will belong to you"));
  EXPECT_EQ(Stat("a").uid, 1000u);
  EXPECT_EQ(Stat("a").gid, 1000u);
  EXPECT_EQ(Read("a"), "1");
}

// --- some paths only -----------------------------------------------------------------

class SelectTest : public PlanTest {
 protected:
  SelectTest() {
    for (const char* path :
         {"a.txt", "b.md", "src/a.txt", "src/b.md", "src/deep/a.txt", "other/a.txt"})
      Put(path, "1");
    MakeDir("lost");
    Put("lost/x", "1");
    Put("lost/y", "1");
    Must(world.Capture("start"));
    for (const char* path :
         {"a.txt", "b.md", "src/a.txt", "src/b.md", "src/deep/a.txt", "other/a.txt"})
      Put(path, "2");
    Put("src/new", "2");
    Remove("lost");
  }
  std::string StepsFor(std::vector<std::string> select) {
    world.plan.select = std::move(select);
    return Steps(PlanTo("start"));
  }
};

TEST_F(SelectTest, AFile) { EXPECT_EQ(StepsFor({"src/a.txt"}), "write src/a.txt"); }
TEST_F(SelectTest, ADirectoryMeansAllBelow) {
  EXPECT_EQ(StepsFor({"src"}),
            "write src/a.txt, write src/b.md, write src/deep/a.txt, delete src/new");
}
TEST_F(SelectTest, AGlobWithoutASlashMatchesTheNameAnywhere) {
  EXPECT_EQ(StepsFor({"*.md"}), "write b.md, write src/b.md");
}
TEST_F(SelectTest, AGlobWithASlashIsFromTheRoot) {
  // As git's pathspecs: a star spans directories.
  EXPECT_EQ(StepsFor({"src/*.txt"}), "write src/a.txt, write src/deep/a.txt");
  EXPECT_EQ(StepsFor({"src/**/*.txt"}), "write src/a.txt, write src/deep/a.txt");
}
TEST_F(SelectTest, ANameThatExistsIsNoGlob) {
  Put("[ab].md", "1");
  Must(world.Capture("start"));
  Put("[ab].md", "2");
  Put("b.md", "edited again");
  EXPECT_EQ(StepsFor({"[ab].md"}), "write [ab].md");
}
TEST_F(SelectTest, AGlobThatNamesNothingIsRefused) {
  world.plan.select = {"zzz*"};
  auto plan = world.Preview("start");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Errc::kInvalid);
}
TEST_F(SelectTest, AGlobMayMatchADirectory) {
  EXPECT_EQ(StepsFor({"s?c"}),
            "write src/a.txt, write src/b.md, write src/deep/a.txt, delete src/new");
}
TEST_F(SelectTest, SeveralTogether) {
  EXPECT_EQ(StepsFor({"b.md", "other"}), "write b.md, write other/a.txt");
}
TEST_F(SelectTest, WhatIsAsItWasIsNothingToDo) {
  Put("b.md", "1");
  EXPECT_EQ(StepsFor({"b.md"}), "");
}
TEST_F(SelectTest, AFileInADirectoryThatIsGoneBringsTheDirectoryAndNoMore) {
  EXPECT_EQ(StepsFor({"lost/x"}), "mkdir lost, create lost/x");
  Must(world.Rollback("start"));
  EXPECT_TRUE(Exists("lost/x"));
  EXPECT_FALSE(Exists("lost/y"));
  EXPECT_EQ(Read("src/a.txt"), "2");
}
TEST_F(SelectTest, APathThatIsNowhereIsRefused) {
  world.plan.select = {"no/such"};
  auto preview = world.Preview("start");
  ASSERT_FALSE(preview.ok());
  EXPECT_EQ(preview.error().code, Errc::kInvalid);
}
TEST_F(SelectTest, APathThatMerelyBeginsAlikeIsNotMeant) {
  Put("src-more/x", "2");
  Put("src.txt", "2");
  EXPECT_EQ(StepsFor({"src"}),
            "write src/a.txt, write src/b.md, write src/deep/a.txt, delete src/new");
}
TEST_F(SelectTest, UndoAndRedoOfAPathTouchNothingElse) {
  world.plan.select = {"b.md"};
  Must(world.Rollback("start"));
  world.plan.select = {};
  Put("a.txt", "3");
  Must(world.Undo());
  EXPECT_EQ(Read("b.md"), "2");
  EXPECT_EQ(Read("a.txt"), "3");
  Must(world.Redo());
  EXPECT_EQ(Read("b.md"), "1");
  EXPECT_EQ(Read("a.txt"), "3");
}
TEST_F(SelectTest, OneFileBelowWhatIsAFileNowReplacesIt) {
  Put("lost", "a file now");
  EXPECT_EQ(StepsFor({"lost/x"}), "delete lost, mkdir lost, create lost/x");
  const std::string now = Tree();
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("lost/x"), "1");
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
}

// --- room
// ------------------------------------------------------------------------------

TEST_F(PlanTest, TooLittleRoomIsRefusedBeforeAnythingMoves) {
  Put("big", std::string(900'000, 'b'));
  Put("small", "1");
  Must(world.Capture("start"));
  Remove("big");
  Put("small", "2");
  const std::string now = Tree();
  disk.SetCapacity(disk.used_bytes() + 300'000);
  auto done = world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kNoSpace);
  EXPECT_EQ(Tree(), now);
  disk.SetCapacity(UINT64_MAX);
  EXPECT_EQ(Checkpoints().size(), 1u) << "it was not even begun";
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("small"), "1");
}

TEST_F(PlanTest, TooFewInodesAreRefusedBeforeAnythingMoves) {
  for (int i = 0; i < 50; ++i) Put("d/f" + std::to_string(i), "1");
  Must(world.Capture("start"));
  Remove("d");
  const std::string now = Tree();
  disk.SetCapacity(UINT64_MAX, disk.used_inodes() + 20);
  auto done = world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kNoSpace);
  EXPECT_EQ(Tree(), now);
}

TEST_F(PlanTest, APartialCheckpointDeletesNothing) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  Put("new", "2");
  MakeDir("newdir");
  Put("newdir/x", "2");
  auto opened = Must(world.Open());
  Checkpoint target = Must(world.Named(opened, "start"));
  target.partial = true;
  Outcome done =
      Must(belay::Rollback(*opened.store, world.RequestFor(opened.root), target));
  EXPECT_EQ(Steps(done.plan), "write a");
  EXPECT_EQ(Kept(done.plan), "new partial, newdir/x partial");
  EXPECT_TRUE(Mentions(done.plan.warnings, "is partial: nothing is deleted"));
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Read("new"), "2");
  EXPECT_EQ(Read("newdir/x"), "2");
}

TEST_F(PlanTest, APartialCheckpointTakesNoDirectoryForAFile) {
  Put("x", "1");
  Must(world.Capture("start"));
  Remove("x");
  Put("x/in", "2");
  const std::string now = Tree();
  auto opened = Must(world.Open());
  Checkpoint target = Must(world.Named(opened, "start"));
  target.partial = true;
  Must(belay::Rollback(*opened.store, world.RequestFor(opened.root), target));
  EXPECT_EQ(Tree(), now);
}

TEST_F(PlanTest, OfFilesThatAreThereOnlyTheContentNeedsRoom) {
  for (int i = 0; i < 40; ++i) Put("f" + std::to_string(i), "1");
  Must(world.Capture("start"));
  for (int i = 0; i < 40; ++i) Put("f" + std::to_string(i), "2");
  Outcome shown = Must(world.Preview("start"));
  EXPECT_EQ(shown.plan.bytes_needed, 40u * 4096);
  disk.SetCapacity(disk.used_bytes() + 100'000);
  shown = Must(world.Preview("start"));
  ASSERT_TRUE(shown.plan.refused);
  EXPECT_NE(shown.plan.refused->what.find("there is less: 97 KiB"), std::string::npos)
      << shown.plan.refused->what;
}

TEST_F(PlanTest, WhatWouldBeRefusedIsShownWithTheReason) {
  Put("big", std::string(900'000, 'b'));
  Put("d/small", "1");
  Must(world.Capture("start"));
  Remove("big");
  Remove("d");
  disk.SetCapacity(disk.used_bytes() + 300'000);
  Outcome shown = Must(world.Preview("start"));
  EXPECT_EQ(Steps(shown.plan), "create big, mkdir d, create d/small");
  EXPECT_GT(shown.plan.bytes_needed, 900'000u);
  EXPECT_EQ(shown.plan.inodes_needed, 3u);
  ASSERT_TRUE(shown.plan.refused);
  EXPECT_EQ(shown.plan.refused->code, Errc::kNoSpace);
  disk.SetCapacity(UINT64_MAX);
  EXPECT_FALSE(Must(world.Preview("start")).plan.refused);
}

TEST_F(PlanTest, AnOwnerThatAnUndoCannotGiveBackIsSaid) {
  world.plan.uid = 1000;
  world.plan.groups = {1000};
  Put("mine", "1");
  Put("theirs", "1");
  for (const char* path : {"mine", "theirs"}) Chown(path, 1000, 1000);
  Must(world.Capture("start"));
  Put("mine", "2");
  Chown("mine", 1000, 1000);
  EXPECT_FALSE(
      Mentions(Must(world.Preview("start")).plan.warnings, "another user now"));
  Put("theirs", "2");
  Chown("theirs", 0, 0);
  EXPECT_TRUE(Mentions(Must(world.Preview("start")).plan.warnings,
                       "theirs belongs to another user now"));
}

}  // namespace
}  // namespace belay::test
