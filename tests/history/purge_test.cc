#include "history/purge.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "core/annotate.h"
#include "core/purged.h"
#include "restore/journal.h"
#include "scan/explain.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/usage.h"
#include "support/pass_fs.h"
#include "support/purge_fixture.h"
#include "support/race_fs.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(PurgeTest, ErasesEveryVersionFromEveryFileOfTheStore) {
  // Text compresses, noise does not, the long one is cut into chunks; each is edited,
  // so that later versions are stored as what they differ by from earlier ones.
  const std::string text = "api_key = sk-live-5up3rs3cr3t";
  std::string noise = Noise(7, 3000), big = Noise(8, 1'500'000);
  std::string source = SourceText(3, 30'000);
  Put("keep", SourceText(4, 20'000));
  for (int i = 0; i < 4; ++i) {
    Put("secret/text", source + text + source + std::to_string(i));
    Put("secret/noise", noise + std::to_string(i));
    Put("secret/big", big + std::to_string(i));
    Put("keep2", std::to_string(i));
    Must(world.Capture("c" + std::to_string(i)));
  }
  ASSERT_THAT(Find(text), Not(IsEmpty()));
  ASSERT_THAT(Find(PiecesOf(noise)), Not(IsEmpty()));
  ASSERT_THAT(Find(PiecesOf(big)), Not(IsEmpty()));

  PurgeReport report = Must(Erase("secret"));
  EXPECT_EQ(report.plan.versions, 12u);
  EXPECT_EQ(report.plan.checkpoints, 4u);
  EXPECT_THAT(report.plan.paths,
              ElementsAre("secret/big", "secret/noise", "secret/text"));
  EXPECT_THAT(report.stays, IsEmpty());
  EXPECT_GT(report.freed, 1'500'000u);
  EXPECT_THAT(Find(text), IsEmpty());
  EXPECT_THAT(Find(PiecesOf(noise)), IsEmpty());
  EXPECT_THAT(Find(PiecesOf(big)), IsEmpty());
  EXPECT_EQ(Has("c2", "secret/text"), "purged");
  EXPECT_EQ(Has("c2", "secret/big"), "purged");
  EXPECT_EQ(Has("c2", "keep2"), "2");
  EXPECT_EQ(Has("c0", "keep"), SourceText(4, 20'000));
  ExpectWhole();
  // Asked again it has nothing to do, and says so.
  report = Must(Erase("secret"));
  EXPECT_TRUE(report.plan.empty());
  EXPECT_EQ(report.plan.checkpoints, 0u);
}

// What is written anew lies beside the old packs for a while.
TEST_F(PurgeTest, ErasingKeepsToTheCap) {
  constexpr uint64_t kCap = 4 << 20;
  world.settings.store_cap = {.bytes = kCap};
  for (int i = 0; i < 60; ++i) {
    Put("kept", Noise(static_cast<uint64_t>(i), 80'000));
    Put("secret", "TOKEN=the-secret" + Noise(static_cast<uint64_t>(1000 + i), 20'000));
    if (!world.Capture("c" + std::to_string(i)).ok()) break;  // full
  }
  auto opened = Must(world.Open());
  PurgeRequest request = Of(opened, "secret");
  request.settings = &world.settings;
  uint64_t most = 0, passes = 0;
  request.progress = [&](uint64_t done, uint64_t total) {
    if (done != total) return;
    ++passes;
    most = std::max(most, Must(AllocatedBytes(*opened.store)).all);
  };
  Must(Purge(*opened.store, request));
  EXPECT_GT(passes, 1u);
  EXPECT_LE(most, kCap);
  EXPECT_THAT(Find("the-secret"), IsEmpty());
  EXPECT_EQ(Has("c3", "kept"), Noise(3, 80'000));
  ExpectWhole();
}

TEST_F(PurgeTest, ErasesWhatNoCheckpointWantsAnyMore) {
  Put("keep", SourceText(4, 60'000));
  Put(".env", "TOKEN=the-old-one");
  Must(world.Capture("one"));
  Put(".env", "TOKEN=the-new-one");
  Must(world.Capture("two"));
  auto opened = Must(world.Open());
  Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root,
                         {Must(world.Named(opened, "one")).id}));
  Must(CollectGarbage(*opened.store, {}));
  ASSERT_THAT(Find("the-old-one"), Not(IsEmpty())) << "too little to be collected";
  Must(Erase(".env"));
  EXPECT_THAT(Find("the-old-one"), IsEmpty());
  EXPECT_THAT(Find("the-new-one"), IsEmpty());
}

TEST_F(PurgeTest, WhatIsStillThereIsLeftOutAndLeftAlone) {
  Put(".env", "TOKEN=first-one");
  Put("code", "1");
  Must(world.Capture("one"));
  Put(".env", "TOKEN=second-one");
  Put("code", "2");
  Must(world.Capture("two"));
  PurgeReport report = Must(Erase(".env"));
  EXPECT_TRUE(report.plan.on_disk);
  EXPECT_THAT(report.left_out, ElementsAre(world.project.bytes() + "/.env"));
  Put("code", "3");
  Put(".env", "TOKEN=third-one");
  Captured three = Must(world.Capture("three"));
  EXPECT_THAT(three.skipped, ElementsAre(SkippedPath{".env", Skip::kPurged}));
  EXPECT_EQ(three.checkpoint.deleted, 0u) << "left out is not deleted";
  EXPECT_EQ(Has("three", ".env"), "absent");

  // Neither a rollback nor what it stores first touches it, whatever it is asked.
  world.plan.delete_ignored = true;
  Outcome preview = Must(world.Preview("one"));
  EXPECT_EQ(Steps(preview.plan), "write code");
  EXPECT_EQ(Kept(preview.plan), ".env purged");
  Must(world.Rollback("one"));
  EXPECT_EQ(Read("code"), "1");
  EXPECT_EQ(Read(".env"), "TOKEN=third-one");
  Must(world.Undo());
  EXPECT_EQ(Read(".env"), "TOKEN=third-one");
  EXPECT_THAT(Find("third-one"), IsEmpty());
  ExpectWhole();

  auto opened = Must(world.Open());
  EXPECT_THAT(opened.root.purged, ElementsAre(".env"));
  Must(AllowAgain(*opened.store, opened.root, ".env", 200));
  EXPECT_EQ(AllowAgain(*opened.store, opened.root, ".env", 200).error().code,
            Errc::kNotFound);
  Must(world.Capture("four"));
  EXPECT_EQ(Has("four", ".env"), "TOKEN=third-one");
  EXPECT_EQ(Has("one", ".env"), "purged");
}

TEST_F(PurgeTest, WhatCameBackAfterAnEarlierPurgeIsNobodysTrouble) {
  Put("a", "TOKEN=came-back");
  Put("b", "TOKEN=of-another");
  Must(world.Capture("one"));
  Must(Erase("a"));
  auto opened = Must(world.Open());
  Must(AllowAgain(*opened.store, opened.root, "a", 200));
  Must(world.Capture("two"));
  ASSERT_EQ(Has("two", "a"), "TOKEN=came-back");
  EXPECT_EQ(Must(Erase("b")).again, 0u);
  EXPECT_EQ(Has("two", "a"), "TOKEN=came-back");
  // And purged once more it is gone once more.
  EXPECT_EQ(Must(Erase("a")).plan.versions, 1u);
  EXPECT_THAT(Find("came-back"), IsEmpty());
  ExpectWhole();
}

TEST_F(PurgeTest, ARollbackReplacesAndDeletesNothingForWhatTheTargetLost) {
  Put("conf", "TOKEN=of-then");
  Put("dir/conf", "TOKEN=below");
  Put("code", "1");
  Must(world.Capture("one"));
  Remove("conf");
  Remove("dir");
  Must(Erase("conf"));
  Must(Erase("dir"));
  Put("conf", "somebody made it anew");
  Put("dir", "a file now");
  Put("code", "2");
  Must(world.Capture("two"));
  EXPECT_EQ(Has("two", "conf"), "somebody made it anew") << "it was not on disk";
  Outcome out = Must(world.Rollback("one"));
  EXPECT_EQ(Read("conf"), "somebody made it anew");
  EXPECT_EQ(Read("code"), "1");
  EXPECT_THAT(Kept(out.plan), HasSubstr("conf purged"));
  for (const KeptPath& kept : out.plan.kept)
    EXPECT_EQ(kept.missing, kept.path == "dir/conf") << kept.path;
  // The other way round: what is there now stays though the target's file is gone.
  Remove("conf");
  Put("conf/inside", "x");
  Must(world.Rollback("one"));
  EXPECT_EQ(Read("conf/inside"), "x");
}

// Nobody can say that it stays.
TEST_F(PurgeTest, WhatWasPurgedAndIsGoneIsMissing) {
  Put("conf", "TOKEN=of-then");
  Put("dir/conf", "TOKEN=below");
  Put("there", "TOKEN=still-there");
  Must(world.Capture("one"));
  Put("code", "2");
  Must(world.Rollback("one"));
  Must(world.Undo());
  for (const char* path : {"conf", "dir", "there"}) Must(Erase(path));
  Remove("conf");
  Remove("dir");
  auto missing = [](const Plan& plan) {
    std::string out;
    for (const KeptPath& kept : plan.kept)
      if (kept.missing) out += kept.path + " ";
    return out;
  };
  const Plan plan = Must(world.Preview("one")).plan;
  EXPECT_EQ(Kept(plan), "conf purged, dir purged, there purged");
  EXPECT_EQ(missing(plan), "conf dir ");
  EXPECT_EQ(missing(Must(world.Rollback("one")).plan), "conf dir ");
  world.plan.select = {"dir/conf", "there"};
  EXPECT_EQ(missing(Must(world.Preview("one")).plan), "dir/conf ");
}

// The same of an undo.
TEST_F(PurgeTest, WhatAnUndoCannotBringBackBecauseItWasPurgedIsMissing) {
  Must(world.Capture("without"));
  Put("conf", "TOKEN=of-then");
  Put("code", "1");
  Must(world.Rollback("without"));
  ASSERT_FALSE(Exists("conf"));
  Must(Erase("conf"));
  const Outcome undone = Must(world.Undo());
  EXPECT_EQ(Read("code"), "1");
  ASSERT_EQ(Kept(undone.plan), "conf purged");
  EXPECT_TRUE(undone.plan.kept[0].missing);
}

TEST_F(PurgeTest, NothingIsBroughtBackBeforeTheBytesAreGone) {
  Put(".env", "TOKEN=still-in-the-pack");
  Must(world.Capture("one"));
  Remove(".env");
  Must(world.Capture("two"));
  auto opened = Must(world.Open());
  const Checkpoint c = Must(world.Named(opened, "one"));
  const ObjectId tree = Must(opened.store->GetState(c.state)).tree;
  const ObjectId id = Must(FindInTree(tree, P(".env"), TreesOf(*opened.store)))->id;
  auto writer = Must(opened.store->Begin());
  writer->Add(MakePurge(RecordId(world.world.random.NewId()), 1,
                        {{ObjectType::kBlob, id}, {ObjectType::kChunks, id}}, "path",
                        true));
  Must(writer->Commit());
  ASSERT_EQ(Has("one", ".env"), "TOKEN=still-in-the-pack");
  Must(world.Rollback("one"));
  EXPECT_FALSE(Exists(".env"));
  // And whoever collects next finishes it, however little there is to gain.
  Must(CollectGarbage(*opened.store, {}));
  EXPECT_THAT(Find("still-in-the-pack"), IsEmpty());
  ExpectWhole();
}

TEST_F(PurgeTest, AFileOfRulesGoesAndItsRulesAreThenUnknown) {
  Put(".gitignore", "# password hunter2hunter2\nout\n");
  Put("out", "built");
  Put("code", "1");
  Must(world.Capture("one"));
  Must(Erase(".gitignore"));
  Put("code", "2");
  Must(world.Capture("two"));
  EXPECT_THAT(Find("hunter2hunter2"), IsEmpty());
  Put("new", "x");
  Must(world.Rollback("two"));
  EXPECT_TRUE(Exists("new")) << "nobody knows what the rules of then covered";
  EXPECT_THAT(Find("hunter2hunter2"), IsEmpty());
}

TEST_F(PurgeTest, WhatAnOperationKeepsForUndoGoesToo) {
  Put("conf", "one");
  Must(world.Capture("one"));
  Put("conf", "TOKEN=only-in-the-safety-checkpoint");
  Must(world.Rollback("one"));
  ASSERT_THAT(Find("only-in-the-safety"), Not(IsEmpty()));
  Must(Erase("conf"));
  EXPECT_THAT(Find("only-in-the-safety"), IsEmpty());
  Must(world.Undo());
  EXPECT_EQ(Read("conf"), "one");
  ExpectWhole();
}

TEST_F(PurgeTest, ARootWithAnInterruptedRollbackIsRefused) {
  Put(".env", "TOKEN=needed-for-recovery");
  Must(world.Capture("one"));
  auto opened = Must(world.Open());
  Journal journal;
  journal.operation.root = opened.root.id;
  journal.operation.id = RecordId(world.world.random.NewId());
  journal.stage = StageName(journal.operation.id);
  Must(JournalFile::Write(*opened.store, journal));
  auto refused = Erase(".env");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(Find("needed-for-recovery"), Not(IsEmpty()));
  EXPECT_THAT(Must(world.Open()).root.purged, IsEmpty());
}

// A disk that does not let go of packs the first few times.
class ClingingFs final : public PassFs {
 public:
  ClingingFs(Fs& inner, int times) : PassFs(inner), left_(times) {}
  Status Unlink(const Fd& dir, const Name& name) override {
    if (name.bytes().ends_with(".pack") && left_ > 0) {
      --left_;
      return SysError(EIO, "unlink");
    }
    return PassFs::Unlink(dir, name);
  }

 private:
  int left_;
};

// The project's directory cannot be opened.
class BlindFs final : public PassFs {
 public:
  using PassFs::PassFs;
  Result<Fd> OpenDir(const AbsPath& path) override {
    if (blind && path.bytes().ends_with("/project")) return SysError(EIO, "open");
    return PassFs::OpenDir(path);
  }
  bool blind = false;
};

TEST_F(PurgeTest, APathThatCannotBeLookedAtIsLeftOutFromThenOn) {
  Put(".env", "TOKEN=may-still-be-there");
  Must(world.Capture("one"));
  BlindFs fs(disk);
  RestoreWorld mine(fs, AbsPath::Literal("/m"), 7);
  auto opened = Must(mine.Open());
  fs.blind = true;
  Must(Purge(*opened.store, Of(opened, ".env")));
  fs.blind = false;
  opened = Must(mine.Open());
  EXPECT_THAT(opened.root.purged, ElementsAre(".env"));
}

TEST_F(PurgeTest, AnUnlinkThatFailedIsNoticed) {
  Put(".env", "TOKEN=clings-to-the-disk");
  Must(world.Capture("one"));
  for (const int times : {1, 1000}) {
    auto copy = disk.Clone();
    ClingingFs fs(*copy, times);
    RestoreWorld mine(fs, AbsPath::Literal("/m"), 7);
    auto opened = Must(mine.Open());
    auto report = Purge(*opened.store, Of(opened, ".env"));
    Fd dir = Must(copy->OpenDir(mine.world.dir));
    auto found = Must(RawSearch(*copy, {"clings-to-the-disk"}).In(dir));
    EXPECT_EQ(report.ok(), found.empty()) << times;
    EXPECT_EQ(report.ok(), times == 1);
  }
}

// Once packs are gone, the next one cannot be opened for a moment.
class MoodyFs final : public PassFs {
 public:
  using PassFs::PassFs;
  Status Unlink(const Fd& dir, const Name& name) override {
    moody_ |= name.bytes().ends_with(".pack");
    return PassFs::Unlink(dir, name);
  }
  Result<Fd> Open(const Fd& dir, NameRef name, const OpenMode& mode) override {
    if (moody_ && left > 0 && name.bytes().ends_with(".pack")) {
      --left;
      return SysError(EIO, "open");
    }
    return PassFs::Open(dir, name, mode);
  }
  int left = 1;

 private:
  bool moody_ = false;
};

TEST_F(PurgeTest, WhatCannotBeReadIsNotCalledErased) {
  Put(".env", "TOKEN=x");
  Must(world.Capture("one"));
  MoodyFs fs(disk);
  RestoreWorld mine(fs, AbsPath::Literal("/m"), 7);
  auto opened = Must(mine.Open());
  auto report = Purge(*opened.store, Of(opened, ".env"));
  EXPECT_EQ(fs.left, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().hint, HasSubstr("not erased yet"));
  Must(Purge(*opened.store, Of(opened, ".env")));
}

TEST_F(PurgeTest, WhatRepairKeptIsNamed) {
  Put(".env", "TOKEN=x");
  Must(world.Capture("one"));
  Fd packs = Must(disk.OpenDir(AbsPath::Literal("/m/store/packs")));
  Must(PutFile(disk, packs, P("x.pack.aside"), "TOKEN=x"));
  Must(PutFile(disk, packs, P("y.pack.unreadable"), "TOKEN=x"));
  EXPECT_THAT(Must(Erase(".env")).stays,
              ElementsAre("packs/x.pack.aside", "packs/y.pack.unreadable"));
}

TEST_F(PurgeTest, WhoStoresTheSameMeanwhileKeepsIt) {
  Put(".env", "TOKEN=stored-twice");
  Put("code", "1");
  Must(world.Capture("one"));
  RestoreWorld other(disk, AbsPath::Literal("/other"), 5);
  other.world.dir = world.world.dir;
  Fd dir = Must(other.Dir());
  Must(PutFile(disk, dir, P("token"), "TOKEN=stored-twice"));
  // At every call in turn, until one comes too late to be seen at all.
  uint64_t kept = 0, again = 0;
  for (uint64_t at = 1;; at += 7) {
    auto copy = disk.Clone();
    uint64_t calls = 0;
    bool done = false;
    RestoreWorld theirs(*copy, AbsPath::Literal("/other"), 6);
    theirs.world.dir = world.world.dir;
    theirs.lock_wait_ms = 0;
    theirs.world.options.lock_wait_ms = 0;
    bool stored = false;
    RaceFs race(*copy, [&] {
      if (++calls != at || done) return;
      done = true;
      stored = theirs.Capture("theirs").ok();  // somebody may hold what it needs
    });
    RestoreWorld mine(race, AbsPath::Literal("/m"), 7);
    auto opened = Must(mine.Open());
    auto report = Purge(*opened.store, Of(opened, ".env"));
    ASSERT_TRUE(report.ok()) << at << ": " << report.error().what;
    auto store = Must(theirs.world.Open());
    VerifyReport verify = Must(VerifyStore(*store, {.read_data = true}));
    ASSERT_TRUE(verify.clean()) << at << ": " << verify.damage[0];
    if (stored) {
      Files files = Must(ReadFiles(
          *store, Must(theirs.Named(
                           *std::make_unique<RestoreWorld::Opened>(Must(theirs.Open())),
                           "theirs"))
                      .state));
      ASSERT_EQ(files["token"], "TOKEN=stored-twice") << at;
      ++(report->again > 0 ? again : kept);
    }
    if (!done) break;
  }
  EXPECT_GT(kept, 0u);
}

TEST_F(PurgeTest, WaitsForWhoeverIsAtWorkOnAnotherRootAndThenSaysBusy) {
  Put(".env", "TOKEN=in-both-projects");
  Must(world.Capture("one"));
  RestoreWorld other(disk, AbsPath::Literal("/other"), 5);
  other.world.dir = world.world.dir;
  Must(PutFile(disk, Must(other.Dir()), P("token"), "TOKEN=in-both-projects"));
  Must(other.Capture("theirs"));
  auto theirs = Must(other.Open());
  {
    HeldLock at_work = Must(theirs.store->locks().AcquireRoot(theirs.root.id, 0));
    auto busy = Erase(".env", true);
    ASSERT_FALSE(busy.ok());
    EXPECT_EQ(busy.error().code, Errc::kBusy);
    EXPECT_THAT(Find("in-both-projects"), Not(IsEmpty()));
  }
  Must(Erase(".env", true));
  EXPECT_THAT(Find("in-both-projects"), IsEmpty());
}

}  // namespace
}  // namespace belay::test
