// Only what was covered is touched: what a rollback may delete, and what stays.

#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class DeletionTest : public RestoreTest {
 protected:
  Outcome Back() { return Must(world.Rollback("start")); }
  void MakeRepository(const std::string& path) {
    Put(path + "/.git/HEAD", "ref: refs/heads/main\n");
    Put(path + "/.git/objects/aa/bb", "an object");
    Put(path + "/.git/refs/heads/main", "0123\n");
  }
};

TEST_F(DeletionTest, WhatIsNewAndCoveredThenAndNowGoes) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("new", "2");
  EXPECT_EQ(Steps(Back().plan), "delete new");
  EXPECT_FALSE(Exists("new"));
}

TEST_F(DeletionTest, WhatTheTargetIgnoredStaysThoughTodayCoversIt) {
  Put(".gitignore", "data/\n*.tmp\n");
  Must(world.Capture("start"));
  Put(".gitignore", "");
  Put("data/only-copy", "precious");
  Put("x.tmp", "precious");
  Outcome done = Back();
  EXPECT_EQ(Read("data/only-copy"), "precious");
  EXPECT_EQ(Read("x.tmp"), "precious");
  EXPECT_NE(Kept(done.plan).find("x.tmp ignored_then"), std::string::npos);
}

// cline#14367: an uncommitted ignore line is rolled back, and what it protected goes.
TEST_F(DeletionTest, WhatTodayIgnoresStaysThoughTheTargetWouldNot) {
  Put(".gitignore", "");
  Must(world.Capture("start"));
  Put(".gitignore", "results/\n*.csv\n");
  Put("results/run1", "one gigabyte of evaluation");
  Put("table.csv", "precious");
  Outcome done = Back();
  EXPECT_EQ(Read("results/run1"), "one gigabyte of evaluation");
  EXPECT_EQ(Read("table.csv"), "precious");
  EXPECT_NE(Kept(done.plan).find("table.csv ignored_now"), std::string::npos);
  EXPECT_NE(Kept(done.plan).find("results/run1 ignored_now"), std::string::npos);
}

TEST_F(DeletionTest, DeleteIgnoredTakesWhatOnlyTodaysRulesProtectAndStoresItFirst) {
  Put(".gitignore", "then/\n");
  Must(world.Capture("start"));
  Put(".gitignore", "then/\nresults/\n*.csv\n");
  Put("results/deep/run1", "evaluation");
  Put("table.csv", "table");
  Put("then/x", "ignored then too");
  world.plan.delete_ignored = true;
  const std::string now = Tree();
  Outcome done = Back();
  EXPECT_FALSE(Exists("results"));
  EXPECT_FALSE(Exists("table.csv"));
  EXPECT_EQ(Read("then/x"), "ignored then too");
  auto safety = Holds(*done.safety);
  EXPECT_EQ(safety["results/deep/run1"], "evaluation");
  EXPECT_EQ(safety["table.csv"], "table");
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
}

TEST_F(DeletionTest, DeleteIgnoredTakesNoDefaultExcludes) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("node_modules/x/index.js", "1");
  Put("debug.log", "1");
  Put("build/out", "1");
  world.plan.delete_ignored = true;
  Back();
  EXPECT_TRUE(Exists("node_modules/x/index.js"));
  EXPECT_TRUE(Exists("debug.log"));
  EXPECT_TRUE(Exists("build/out"));
}

TEST_F(DeletionTest, DeleteIgnoredTakesNoNestedRepository) {
  Put(".gitignore", "");
  Must(world.Capture("start"));
  Put(".gitignore", "vendor/\n");
  MakeRepository("vendor/lib");
  Put("vendor/lib/code", "1");
  world.plan.delete_ignored = true;
  Back();
  EXPECT_EQ(Read("vendor/lib/code"), "1");
  EXPECT_TRUE(Exists("vendor/lib/.git/HEAD"));
}

TEST_F(DeletionTest, DeleteIgnoredTakesNoStoreInTheDirectory) {
  world.world.dir = world.project.Join(P("hidden/store"));
  Must(MakeDirs(disk, world.project.Join(P("hidden")), 0755));
  Put(".gitignore", "");
  Put("a", "1");
  Must(world.Capture("start"));
  Put(".gitignore", "hidden/\n");
  Put("a", "2");
  world.plan.delete_ignored = true;
  Back();
  EXPECT_EQ(Read("a"), "1");
  auto store = Must(world.world.Open());
  Must(world.Undo());
}

TEST_F(DeletionTest, ANewSecretStays) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put(".env", "TOKEN=1");
  Put("deep/id_rsa", "key");
  Outcome done = Back();
  EXPECT_EQ(Read(".env"), "TOKEN=1");
  EXPECT_EQ(Read("deep/id_rsa"), "key");
  EXPECT_NE(Kept(done.plan).find(".env secret"), std::string::npos);
}

TEST_F(DeletionTest, ANewSecretGoesWithDeleteIgnoredAndIsStored) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put(".env", "TOKEN=1");
  world.plan.delete_ignored = true;
  Outcome done = Back();
  EXPECT_FALSE(Exists(".env"));
  EXPECT_EQ(Holds(*done.safety)[".env"], "TOKEN=1");
  Must(world.Undo());
  EXPECT_EQ(Read(".env"), "TOKEN=1");
}

TEST_F(DeletionTest, WhatWasASecretThenStaysThoughItIsNoneNow) {
  world.settings.secret_patterns.push_back("*.token");
  Put("a", "1");
  Must(world.Capture("start"));
  world.settings.secret_patterns.pop_back();
  Put("my.token", "1");
  Back();
  EXPECT_EQ(Read("my.token"), "1");
}

TEST_F(DeletionTest, AnIgnoredSecretThatWasDeletedComesBack) {
  Put(".gitignore", ".env\n");
  Put(".env", "TOKEN=1", 0600);
  Must(world.Capture("start"));
  Remove(".env");
  EXPECT_EQ(Steps(Back().plan), "create .env");
  EXPECT_EQ(Read(".env"), "TOKEN=1");
  EXPECT_EQ(Stat(".env").mode, 0600u);
}

TEST_F(DeletionTest, SecretsThatAreSkippedAreLeftAlone) {
  world.settings.secrets = Secrets::kSkip;
  Put(".env", "1");
  Must(world.Capture("start"));
  Put(".env", "2");
  Put("new.pem", "2");
  Back();
  EXPECT_EQ(Read(".env"), "2");
  EXPECT_EQ(Read("new.pem"), "2");
}

// hermes#95491
TEST_F(DeletionTest, WhatWasTooLargeThenStays) {
  world.settings.max_file_size = {.bytes = 1000};
  Put("huge", std::string(2000, 'h'));
  Must(world.Capture("start"));
  world.settings.max_file_size = {.bytes = 100'000};
  Outcome done = Back();
  EXPECT_EQ(Read("huge"), std::string(2000, 'h'));
  EXPECT_EQ(Kept(done.plan), "huge too_large");
}

TEST_F(DeletionTest, WhatIsTooLargeNowStays) {
  Must(world.Capture("start"));
  world.settings.max_file_size = {.bytes = 1000};
  Put("d/huge", std::string(2000, 'h'));
  Outcome done = Back();
  EXPECT_EQ(Read("d/huge"), std::string(2000, 'h'));
  EXPECT_NE(Kept(done.plan).find("d/huge"), std::string::npos) << Kept(done.plan);
}

TEST_F(DeletionTest, WhatIsTooLargeNowIsNamedAlsoWhereNoDirectoryGoes) {
  world.settings.max_file_size = {.bytes = 1000};
  Put("always-huge", std::string(2000, 'h'));
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  Put("huge", std::string(2000, 'h'));
  EXPECT_EQ(Kept(Back().plan), "always-huge too_large, huge too_large");
  EXPECT_EQ(Read("huge"), std::string(2000, 'h'));
}

TEST_F(DeletionTest, WhatGrewTooLargeComesBackAndIsStored) {
  Put("grown", "small");
  Must(world.Capture("start"));
  world.settings.max_file_size = {.bytes = 1000};
  Put("grown", std::string(2000, 'h'));
  Outcome done = Back();
  EXPECT_EQ(Read("grown"), "small");
  EXPECT_EQ(Holds(*done.safety)["grown"], std::string(2000, 'h'));
  Must(world.Undo());
  EXPECT_EQ(Read("grown"), std::string(2000, 'h'));
}

TEST_F(DeletionTest, SpecialFilesStayAndAreNamedWhenTheyAreInTheWay) {
  Put("p", "a file then");
  Must(world.Capture("start"));
  Remove("p");
  Must(disk.MakeSpecial(root, N("p"), FileType::kFifo, 0600));
  MakeDir("d");
  Must(disk.MakeSpecial(Must(disk.OpenBeneath(root, P("d"), OpenMode::Directory())),
                        N("socket"), FileType::kSocket, 0600));
  Outcome done = Back();
  EXPECT_EQ(Stat("p").type, FileType::kFifo);
  EXPECT_EQ(Stat("d/socket").type, FileType::kSocket);
  EXPECT_NE(Kept(done.plan).find("p special"), std::string::npos);
}

TEST_F(DeletionTest, ANestedRepositoryThatWasAbsentStaysWhole) {
  Put("a", "1");
  Must(world.Capture("start"));
  MakeRepository("clone");
  Put("clone/src/x", "1");
  MakeRepository("d/clone");
  Put("d/clone/x", "1");
  Put("d/beside", "goes");
  Outcome done = Back();
  EXPECT_EQ(Read("clone/src/x"), "1");
  EXPECT_TRUE(Exists("clone/.git/HEAD"));
  EXPECT_EQ(Read("d/clone/x"), "1");
  EXPECT_FALSE(Exists("d/beside"));
  EXPECT_NE(Kept(done.plan).find("clone nested_repository"), std::string::npos);
}

// The target has a plain directory of that name: what is a repository now is not its.
TEST_F(DeletionTest, ARepositoryInThePlaceOfAPlainDirectoryStaysWhole) {
  Put("lib/a", "1");
  Put("x", "1");
  Must(world.Capture("start"));
  MakeRepository("lib");
  Put("lib/a", "2");
  Put("lib/wip", "3");
  Put("x", "2");
  Outcome done = Back();
  EXPECT_EQ(Read("lib/a"), "2");
  EXPECT_EQ(Read("lib/wip"), "3");
  EXPECT_EQ(Read("x"), "1");
  EXPECT_NE(Kept(done.plan).find("lib nested_repository"), std::string::npos);
}

// A clone that was interrupted, or whose HEAD is damaged: its objects may be all there
// is.
TEST_F(DeletionTest, ADirectoryWithAnythingCalledGitStaysWhole) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("broken/.git/objects/aa/bb", "1");
  Put("broken/x", "1");
  Put("linked/.git", "gitdir: /elsewhere\n");
  Put("linked/x", "1");
  const std::string now = Tree();
  Back();
  EXPECT_EQ(Tree(), now);
}

TEST_F(DeletionTest, ANestedRepositoryThatWasThereIsRolledBackButNotItsGitDirectory) {
  MakeRepository("clone");
  Put("clone/x", "1");
  Must(world.Capture("start"));
  Put("clone/x", "2");
  Put("clone/new", "2");
  Put("clone/.git/HEAD", "ref: refs/heads/other\n");
  Back();
  EXPECT_EQ(Read("clone/x"), "1");
  EXPECT_FALSE(Exists("clone/new"));
  EXPECT_EQ(Read("clone/.git/HEAD"), "ref: refs/heads/other\n");
}

TEST_F(DeletionTest, ARepositoryInThePlaceOfAFileStaysWhole) {
  Put("x", "a file then");
  Must(world.Capture("start"));
  Remove("x");
  MakeRepository("x");
  Put("x/code", "1");
  const std::string now = Tree();
  Outcome done = Back();
  EXPECT_EQ(Tree(), now);
  EXPECT_NE(Kept(done.plan).find("x in_the_way"), std::string::npos);
}

TEST_F(DeletionTest, TheRootsOwnGitDirectoryIsNeverTouched) {
  Put(".git/HEAD", "ref: refs/heads/main\n");
  Put("a", "1");
  Must(world.Capture("start"));
  Put(".git/HEAD", "changed");
  Put(".git/new", "new");
  Put("a", "2");
  Back();
  EXPECT_EQ(Read(".git/HEAD"), "changed");
  EXPECT_EQ(Read(".git/new"), "new");
  EXPECT_EQ(Read("a"), "1");
}

TEST_F(DeletionTest, OtherMountsStay) {
  Put("mnt/x", "1");
  Put("a", "1");
  Must(world.Capture("start"));
  Put("mnt/x", "2");
  Put("mnt/new", "2");
  Put("a", "2");
  MakeDir("newmnt");
  Put("newmnt/y", "2");
  Must(disk.SetMountRoot(root, N("mnt"), true));
  Must(disk.SetMountRoot(root, N("newmnt"), true));
  Outcome done = Back();
  EXPECT_EQ(Read("mnt/x"), "2");
  EXPECT_EQ(Read("mnt/new"), "2");
  EXPECT_EQ(Read("newmnt/y"), "2");
  EXPECT_EQ(Read("a"), "1");
  EXPECT_NE(Kept(done.plan).find("mnt other_mount"), std::string::npos);
}

TEST_F(DeletionTest, OtherRootsStay) {
  Put("inner/x", "1");
  Put("a", "1");
  Must(world.Capture("start"));
  {
    auto opened = Must(world.Open());
    const AbsPath inner = world.project.Join(P("inner"));
    Fd dir = Must(disk.OpenDir(inner));
    Must(RegisterRoot(*opened.store, *opened.catalog, inner, Must(disk.Stat(dir)), {}));
  }
  Put("inner/x", "2");
  Put("inner/new", "2");
  Put("a", "2");
  Outcome done = Back();
  EXPECT_EQ(Read("inner/x"), "2");
  EXPECT_EQ(Read("inner/new"), "2");
  EXPECT_EQ(Read("a"), "1");
  EXPECT_NE(Kept(done.plan).find("inner other_root"), std::string::npos);
}

TEST_F(DeletionTest, WhatWasAnotherRootThenStays) {
  Put("inner/x", "1");
  Put("a", "1");
  {
    auto opened = Must(world.Open());
    const AbsPath inner = world.project.Join(P("inner"));
    Fd dir = Must(disk.OpenDir(inner));
    Must(RegisterRoot(*opened.store, *opened.catalog, inner, Must(disk.Stat(dir)), {}));
  }
  Must(world.Capture("start"));
  {
    auto opened = Must(world.Open());
    const AbsPath inner = world.project.Join(P("inner"));
    Root off = Must(FindRootAt(*opened.catalog, inner))->root;
    off.off = true;
    auto writer = Must(opened.store->Begin());
    writer->Add(ToRecord(off, RecordId(world.world.random.NewId()), 5));
    Must(writer->Commit());
  }
  Put("inner/y", "2");
  Back();
  EXPECT_EQ(Read("inner/x"), "1");
  EXPECT_EQ(Read("inner/y"), "2");
}

TEST_F(DeletionTest, ADirectoryThatHoldsUncoveredFilesStaysAndIsSaidTo) {
  Put(".gitignore", "*.o\n");
  Must(world.Capture("start"));
  Put("newdir/code.c", "1");
  Put("newdir/code.o", "object");
  Outcome done = Back();
  EXPECT_FALSE(Exists("newdir/code.c"));
  EXPECT_EQ(Read("newdir/code.o"), "object");
  EXPECT_NE(Kept(done.plan).find("newdir/code.o"), std::string::npos);
  Must(world.Undo());
  EXPECT_EQ(Read("newdir/code.c"), "1");
}

TEST_F(DeletionTest, WhatTheTargetHasComesBackWhateverTodaysRulesSay) {
  Put("data/x", "1");
  Put("y.csv", "1");
  Must(world.Capture("start"));
  Put(".gitignore", "data/\n*.csv\n");
  Put("data/x", "2");
  Remove("y.csv");
  Outcome done = Back();
  EXPECT_EQ(Read("data/x"), "1");
  EXPECT_EQ(Read("y.csv"), "1");
  EXPECT_EQ(Holds(*done.safety)["data/x"], "2");
  Must(world.Undo());
  EXPECT_EQ(Read("data/x"), "2");
  EXPECT_FALSE(Exists("y.csv"));
}

TEST_F(DeletionTest, ExcludedThenOrNowStays) {
  world.settings.exclude = {"then/"};
  Put("a", "1");
  Must(world.Capture("start"));
  world.settings.exclude = {"now/"};
  Put("then/x", "1");
  Put("now/x", "1");
  Put("gone", "1");
  Outcome done = Back();
  EXPECT_EQ(Read("then/x"), "1");
  EXPECT_EQ(Read("now/x"), "1");
  EXPECT_FALSE(Exists("gone"));
  EXPECT_NE(Kept(done.plan).find("excluded_then"), std::string::npos)
      << Kept(done.plan);
}

TEST_F(DeletionTest, BelayignoreCountsThenAndNow) {
  Put(".belayignore", "then/\n");
  Must(world.Capture("start"));
  Put(".belayignore", "now/\n");
  Put("then/x", "1");
  Put("now/x", "1");
  Back();
  EXPECT_EQ(Read("then/x"), "1");
  EXPECT_EQ(Read("now/x"), "1");
}

TEST_F(DeletionTest, WithoutTheRulesOfThatTimeNothingIsDeleted) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  Put("new", "2");
  auto opened = Must(world.Open());
  Checkpoint target = Must(world.Named(opened, "start"));
  State state = Must(opened.store->GetState(target.state));
  state.rules = {};
  {
    auto writer = Must(opened.store->Begin());
    target.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    target.id = RecordId(world.world.random.NewId());
    writer->Add(ToRecord(target));
    Must(writer->Commit());
  }
  Outcome done =
      Must(belay::Rollback(*opened.store, world.RequestFor(opened.root), target));
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Read("new"), "2");
  EXPECT_EQ(Kept(done.plan), "new rules_unknown");
}

TEST_F(DeletionTest, AReservedNameThatLooksLikeGitStays) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("d/.GIT/x", "1");
  Put("d/git~1", "1");
  Back();
  EXPECT_EQ(Read("d/.GIT/x"), "1");
  EXPECT_EQ(Read("d/git~1"), "1");
}

}  // namespace
}  // namespace belay::test
