// Annotations and deletion: the last one wins, also after a repair; what goes is gone,
// what undo needs stays; interrupted anywhere it is there or it is not.

#include "core/annotate.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "core/roots.h"
#include "store/gc.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/raw_search.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class AnnotateTest : public ::testing::Test {
 protected:
  AnnotateTest() : world_(disk_) {
    store_ = Must(world_.Open());
    catalog_ = Must(Catalog::Open(*store_));
    root_.id = RootId(IdFor("root"));
    root_.path = "/project";
    auto writer = Must(store_->Begin());
    writer->Add(ToRecord(root_, RecordId(root_.id), 1));
    Must(writer->Commit());
  }
  void Make(const std::string& name) {
    Must(MakeCheckpoint(*store_, name, {{"a", name}}, root_.id));
  }
  CatalogEntry Get(const std::string& name) {
    return Must(catalog_->FindById(root_.id, IdFor(name).text()));
  }
  CatalogEntry Note(const std::string& name, const Annotation& annotation) {
    CatalogEntry after = Must(Annotate(*store_, Get(name), annotation));
    EXPECT_EQ(after, Get(name));  // what it said is what the log says
    return after;
  }
  Result<Deleted> Delete(const std::vector<std::string>& names) {
    std::vector<RecordId> ids;
    for (const std::string& name : names) ids.push_back(IdFor(name));
    return DeleteCheckpoints(*store_, *catalog_, root_, ids);
  }
  // A rollback as far as the log knows of it.
  void AddRollback(const std::string& name, const std::string& target,
                   const std::string& safety) {
    auto writer = Must(store_->Begin());
    Operation o;
    o.id = IdFor(name);
    o.root = root_.id;
    o.made_ms = 1;
    o.changes = Must(writer->PutObject(ObjectType::kNode, EncodeNode(Node())));
    o.target = IdFor(target);
    o.safety = IdFor(safety);
    o.label = target;
    writer->Add(ToRecord(o));
    Must(writer->Commit());
  }
  std::string TakenBackText(const std::vector<std::string>& names) {
    std::string out;
    auto outline = Must(catalog_->Outline(root_.id));
    auto operations = Must(ListOperations(*catalog_, root_.id));
    auto history = Must(LoadHistory(*catalog_, root_.id, outline, operations));
    for (const std::string& name : names)
      for (size_t i = 0; i < history.points.size(); ++i)
        if (history.points[i].id == IdFor(name) && !history.by[i].is_zero())
          out += name + " ";
    return out;
  }
  void ExpectSound() {
    for (const std::string& problem : Must(catalog_->Check())) ADD_FAILURE() << problem;
  }

  MemFs disk_;
  World world_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Catalog> catalog_;
  Root root_;
};

TEST_F(AnnotateTest, TheLastOneWinsFieldByField) {
  Make("c");
  Note("c", {.name = "first", .note = "n", .meta = {{"k", "1"}, {"l", "2"}}});
  Note("c", {.pinned = true});
  CatalogEntry after =
      Note("c", {.name = "second", .health = Health::kPass, .meta = {{"k", "3"}}});
  EXPECT_EQ(after.checkpoint.name, "second");
  EXPECT_EQ(after.checkpoint.note, "n");
  EXPECT_TRUE(after.pinned);
  EXPECT_EQ(after.health, Health::kPass);
  EXPECT_EQ(after.checkpoint.meta,
            (std::map<std::string, std::string>{{"k", "3"}, {"l", "2"}}));
  after = Note("c", {.name = "", .note = "", .pinned = false, .meta = {{"k", {}}}});
  EXPECT_EQ(after.checkpoint.name, std::nullopt);
  EXPECT_EQ(after.checkpoint.note, std::nullopt);
  EXPECT_FALSE(after.pinned);
  EXPECT_EQ(after.checkpoint.meta, (std::map<std::string, std::string>{{"l", "2"}}));
}

TEST_F(AnnotateTest, WhatIsSoAlreadyIsNotWrittenAgain) {
  Make("c");
  Note("c", {.note = "n", .pinned = true});
  const size_t before = Must(catalog_->Annotations(IdFor("c"))).size();
  Note("c", {.note = "n"});
  Note("c", {.pinned = true});
  Note("c", {.meta = {{"not there", {}}}});
  EXPECT_EQ(Must(catalog_->Annotations(IdFor("c"))).size(), before);
}

TEST_F(AnnotateTest, ACatalogueBuiltAnewGivesTheSameAnswers) {
  for (const char* name : {"a", "b", "c", "d"}) Make(name);
  Note("a", {.note = "über \xff bytes\nand lines", .pinned = true});
  Note("b", {.name = "renamed"});
  Note("b", {.name = "again", .meta = {{"k", ""}}});
  Must(Delete({"c"}));
  auto answers = [&] {
    auto list = Must(catalog_->ListCheckpoints({}));
    auto found = Must(catalog_->Search({}, "uber", 9));
    EXPECT_EQ(found.size(), 1u);
    EXPECT_TRUE(Must(catalog_->Search({}, "renamed", 9)).empty());
    list.insert(list.end(), found.begin(), found.end());
    return list;
  };
  const auto before = answers();
  EXPECT_EQ(before.size(), 4u);
  Must(catalog_->Rebuild());
  EXPECT_EQ(answers(), before);
  ExpectSound();
  Must(CollectGarbage(*store_, {}));
  EXPECT_EQ(answers(), before);
  ExpectSound();
}

TEST_F(AnnotateTest, WhatWasDeletedIsGoneWithItsNotes) {
  Make("keep");
  Make("go");
  Note("go", {.note = "unforgettable"});
  Deleted done = Must(Delete({"go"}));
  ASSERT_EQ(done.checkpoints.size(), 1u);
  EXPECT_EQ(done.checkpoints[0].checkpoint.note, "unforgettable");
  EXPECT_EQ(Must(catalog_->Count(root_.id)), 1u);
  EXPECT_TRUE(Must(catalog_->Search({}, "unforgettable", 9)).empty());
  EXPECT_TRUE(Must(catalog_->Annotations(IdFor("go"))).empty());
  EXPECT_EQ(Delete({"go"}).error().code, Errc::kNotFound);
  Must(CollectGarbage(*store_, {}));
  EXPECT_EQ(Must(ReadAll(*store_)).size(), 1u);
  // The log still says that it went.
  auto deeds = Must(ListDeeds(*catalog_, root_.id));
  ASSERT_EQ(deeds.size(), 1u);
  EXPECT_EQ(deeds[0].name, "delete");
  EXPECT_EQ(deeds[0].label, done.checkpoints[0].checkpoint.name);
  EXPECT_EQ(deeds[0].id, done.operation);
}

TEST_F(AnnotateTest, APinnedOneIsNotDeletedNorAnythingWithIt) {
  Make("a");
  Make("b");
  Note("b", {.pinned = true});
  EXPECT_EQ(Delete({"a", "b"}).error().code, Errc::kRefused);
  EXPECT_EQ(Must(catalog_->Count(root_.id)), 2u);
  Note("b", {.pinned = false});
  Must(Delete({"a", "b", "a"}));
  EXPECT_EQ(Must(catalog_->Count(root_.id)), 0u);
}

TEST_F(AnnotateTest, OfAnotherRootNothingIsDeleted) {
  Make("a");
  Root other = root_;
  other.id = RootId(IdFor("other"));
  EXPECT_EQ(DeleteCheckpoints(*store_, *catalog_, other, {IdFor("a")}).error().code,
            Errc::kNotFound);
  EXPECT_EQ(Must(catalog_->Count(root_.id)), 1u);
}

TEST_F(AnnotateTest, DeletingWhereARollbackWentKeepsTheHistoryATree) {
  for (const char* name : {"a", "b", "c", "s"}) Make(name);
  AddRollback("R", "b", "s");
  Make("d");
  const std::vector<std::string> all = {"a", "b", "c", "s", "d"};
  EXPECT_EQ(TakenBackText(all), "c s ");
  Must(Delete({"b"}));  // a place the history needs
  EXPECT_EQ(TakenBackText(all), "c s ");
  Must(Delete({"d"}));  // one it does not
  EXPECT_EQ(TakenBackText(all), "c s ");
  EXPECT_EQ(Must(DeletedPlaces(*catalog_, root_.id)).size(), 1u);
  EXPECT_EQ(Must(ListOperations(*catalog_, root_.id)).size(), 1u);
}

TEST_F(AnnotateTest, TheLogNamesWhatWasDone) {
  Make("a");
  Note("a", {.note = "n"});
  Note("a", {.name = "x"});
  Note("a", {.pinned = true});
  Note("a", {.pinned = false});
  Note("a", {.note = "m", .pinned = true});
  Note("a", {.meta = {{"k", "v"}}});
  std::string names;
  for (const Deed& deed : Must(ListDeeds(*catalog_, root_.id))) {
    names = deed.name + " " + names;
    EXPECT_EQ(deed.label, "x");
    EXPECT_EQ(deed.target, IdFor("a"));
  }
  EXPECT_EQ(names, "note rename pin unpin annotate annotate ");
}

// Killed, or without power, at any call: there or not, and there once it was promised.
class AnnotateSweep : public ::testing::TestWithParam<bool> {};

TEST_P(AnnotateSweep, IsThereOrNotAtEveryPowerCut) {
  const bool deletes = GetParam();
  const Root root{.id = RootId(IdFor("root")), .path = "/project"};
  SweepOptions options{.name = deletes ? "delete" : "annotate"};
  options.fault.mutating_only = !RunEverything();
  options.tears = RunEverything() ? 4 : 1;
  if (!RunEverything()) options.stride = 3;
  SweepResult result = SweepFaults(
      options,
      [&](Fs& disk) -> Status {
        World world(disk);
        BELAY_TRY(auto store, world.Open());
        for (const char* name : {"keep", "c"}) {
          BELAY_TRY([[maybe_unused]] auto id,
                    MakeCheckpoint(*store, name, {{"a", name}}, root.id));
        }
        return Ok();
      },
      [&](Fs& fs, Acks& acks) -> Status {
        World world(fs, 2);
        BELAY_TRY(auto store, world.Open());
        BELAY_TRY(auto catalog, Catalog::Open(*store));
        BELAY_TRY(CatalogEntry entry, catalog->FindById(root.id, IdFor("c").text()));
        if (deletes) {
          BELAY_TRY([[maybe_unused]] auto done,
                    DeleteCheckpoints(*store, *catalog, root, {IdFor("c")}));
        } else {
          BELAY_TRY(
              [[maybe_unused]] auto done,
              Annotate(*store, entry, {.name = "new", .note = "note", .pinned = true}));
        }
        acks.Add("done");
        return Ok();
      },
      [&](Fs& disk, const SweepRun& run) -> Status {
        World world(disk, 3);
        BELAY_TRY(auto store, world.Open());
        BELAY_TRY(auto catalog, Catalog::Open(*store));
        auto wrong = [](const char* what) { return Error(Errc::kCorrupt, what); };
        BELAY_TRY(auto list, catalog->ListCheckpoints({.root = root.id}));
        BELAY_TRY(auto operations,
                  catalog->ListRecords({.kind = RecordKind::kOperation}));
        const bool promised = !run.acks.empty();
        if (deletes) {
          const bool gone = list.size() == 1;
          if (!gone && list.size() != 2) return wrong("another checkpoint went");
          if (gone != (operations.size() == 1)) return wrong("half a deletion");
          if (promised && !gone) return wrong("deleted, and back");
        } else {
          if (list.size() != 2) return wrong("a checkpoint went");
          const CatalogEntry& c = list[0];
          const bool all =
              c.checkpoint.name == "new" && c.checkpoint.note == "note" && c.pinned;
          const bool none = c.checkpoint.name == "c" && !c.checkpoint.note && !c.pinned;
          if (!all && !none) return wrong("half an annotation");
          if (promised && !all) return wrong("promised, and lost");
        }
        BELAY_TRY(auto problems, catalog->Check());
        if (!problems.empty()) return wrong("the catalogue is not sound");
        return Ok();
      });
  EXPECT_TRUE(result.ok()) << result.Text();
}

INSTANTIATE_TEST_SUITE_P(Both, AnnotateSweep, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& i) {
                           return i.param ? "Delete" : "Annotate";
                         });

// Whoever takes a note away wants it gone; and notes alone must not fill the store.
TEST_F(AnnotateTest, WhatWasReplacedGoesWithTheNextCollection) {
  Checkpoint c;
  {
    Make("one");
    auto writer = Must(store_->Begin());
    c = Get("one").checkpoint;
    c.id = IdFor("two");
    c.seq = 0;  // to be given
    c.name = "FIRST-NAME";
    c.note = "FIRST-NOTE";
    c.meta = {{"token", "FIRST-META"}, {"stays", "STAYING-META"}};
    writer->Add(ToRecord(c));
    Must(writer->Commit());
  }
  Note("two", {.note = "SECOND-NOTE"});
  Note("two", {.name = "SECOND-NAME", .note = "THIRD-NOTE", .pinned = true});
  Note("two", {.note = "LAST-NOTE"});
  Note("two", {.name = "LAST-NAME"});
  Note("two", {.meta = {{"token", std::nullopt}}});
  const CatalogEntry before = Get("two");
  ASSERT_EQ(before.checkpoint.note, "LAST-NOTE");
  const uint64_t reclaimable = Must(MeasureUsage(*store_)).reclaimable;
  EXPECT_GT(reclaimable, 0u);
  GcReport report = Must(CollectGarbage(*store_, {.everything = true}));
  EXPECT_EQ(report.reclaimable, reclaimable);
  EXPECT_EQ(report.records_removed, 1u);  // the one that said nothing but SECOND-NOTE
  Must(catalog_->Rebuild());
  EXPECT_EQ(Get("two"), before);
  Fd dir = Must(disk_.OpenDir(world_.dir));
  for (const char* gone : {"FIRST-NAME", "FIRST-NOTE", "FIRST-META", "SECOND-NOTE",
                           "SECOND-NAME", "THIRD-NOTE"})
    EXPECT_TRUE(Must(RawSearch(disk_, {gone}).In(dir)).empty()) << gone;
  for (const char* stays : {"LAST-NAME", "LAST-NOTE", "STAYING-META"})
    EXPECT_FALSE(Must(RawSearch(disk_, {stays}).In(dir)).empty()) << stays;
  EXPECT_EQ(Must(MeasureUsage(*store_)).reclaimable, 0u);
  EXPECT_FALSE(Must(CollectGarbage(*store_, {.everything = true})).generation_changed);
  EXPECT_TRUE(Must(VerifyStore(*store_, {.read_data = true})).clean());
}

TEST_F(AnnotateTest, NotesKeepToTheCap) {
  Make("one");
  Settings settings;
  settings.store_floor = {};
  settings.store_cap = {.bytes = 3 << 20};
  AnnotationRoom room{settings};
  for (int i = 0; i < 60; ++i) {
    Must(Annotate(*store_, Get("one"),
                  {.note = Noise(static_cast<uint64_t>(i), 80'000)}, &room));
    // By one note at most.
    ASSERT_LE(Must(AllocatedBytes(*store_)).all, settings.store_cap.bytes + 80'000)
        << i;
  }
  // What is to be kept is refused when there is no room for it, and may still go.
  const std::string large = Noise(7, 900'000);
  auto refused = Annotate(*store_, Get("one"), {.note = large}, &room);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  settings.store_cap = {.bytes = 1};
  EXPECT_FALSE(Annotate(*store_, Get("one"), {.name = "x"}, &room).ok());
  EXPECT_TRUE(Annotate(*store_, Get("one"), {.note = ""}, &room).ok());
  EXPECT_TRUE(Annotate(*store_, Get("one"), {.pinned = true}, &room).ok());
}

}  // namespace
}  // namespace belay::test
