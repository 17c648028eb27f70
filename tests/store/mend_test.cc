// What a damaged log lost and the catalogue remembers comes back; damaged packs are
// replaced when nothing is lost by it, and otherwise only when somebody says so.

#include "store/mend.h"

#include <gtest/gtest.h>

#include <set>

#include "base/mem_fs.h"
#include "store/found_again.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/lost_records.h"
#include "store/repair.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

#if defined(BELAY_SANITIZED)
constexpr uint64_t kSlow = 19;
#else
constexpr uint64_t kSlow = 1;
#endif

// A store whose catalogue is up to date: three packs, a root, a note, a session, and a
// checkpoint that was dropped.
class Sample {
 public:
  Sample() {
    World world(disk);
    world.options.pack_target = 3000;
    auto store = Must(world.Open());
    RootId root(IdFor("root"));
    Commit(*store, ToRecord(Root{root, "/home/u/project"}, RecordId(root), 1));
    auto make = [&](const char* name, const Files& files) {
      Must(MakeCheckpoint(*store, name, files, root));
      wanted[name] = files;
    };
    make("one", {{"a", "first"}, {"dir/b", SourceText(1, 700)}});
    make("gone", {{"g", Noise(2, 300)}});
    make("two", {{"a", "second"}, {"dir/b", SourceText(1, 700)}, {"n", Noise(3, 400)}});
    LogRecord note;
    note.kind = RecordKind::kAnnotation;
    note.id = IdFor("note");
    note.fields.Add(kAnnotationTarget, IdFor("one").span());
    note.fields.Add(kAnnotationNote, "remember this one");
    Commit(*store, note);
    Must(DropCheckpoints(*store, {"gone"}));
    wanted.erase("gone");
    make("three", {{"late", SourceText(4, 900)}});
    make("four", {{"late", Noise(5, 600)}, {"a", "first"}});
    auto catalog = Must(Catalog::Open(*store));
    Must(catalog->CatchUp());
    LogView log;
    Must(ReadOn(*store, log));
    for (const LogRecord& r : log.records)
      if (log.IsWanted(r)) records.push_back(r);
    for (const auto& p : store->manifest().packs) {
      packs.push_back(PackFile::FileName(p.id).bytes());
      lengths.push_back(
          Must(disk.StatAt(store->packs_dir(), PackFile::FileName(p.id))).size);
    }
    store.reset();
    catalog.reset();
    disk.Crash(CrashPolicy::KeepAll());
  }
  static void Commit(Store& store, const LogRecord& record) {
    auto writer = Must(store.Begin());
    writer->Add(record);
    Must(writer->Commit());
  }

  MemFs disk;
  Checkpoints wanted;
  std::vector<LogRecord> records;  // wanted ones
  std::vector<std::string> packs;
  std::vector<uint64_t> lengths;
};
const Sample& TheSample() {
  static const auto* sample = new Sample;
  return *sample;
}

class Patient {
 public:
  Patient() : disk_(TheSample().disk.Clone()) {}
  MemFs& disk() { return *disk_; }
  Fd Packs() { return Must(disk_->OpenDir(AbsPath::Literal("/store/packs"))); }
  void Flip(const std::string& pack, uint64_t at) {
    Fd file = Must(disk_->Open(Packs(), Name::Literal(pack), OpenMode::ReadWrite()));
    std::byte b[1];
    Must(ReadExact(*disk_, file, at, b));
    b[0] ^= std::byte{1};
    Must(WriteFull(*disk_, file, at, b));
  }
  void Cut(const std::string& pack, uint64_t length) {
    Fd file = Must(disk_->Open(Packs(), Name::Literal(pack), OpenMode::ReadWrite()));
    Must(disk_->Truncate(file, length));
  }
  void Delete(const std::string& pack) {
    Must(disk_->Unlink(Packs(), Name::Literal(pack)));
  }
  void DeleteIndexOf(const std::string& pack) {
    Delete(pack.substr(0, pack.find('.')) + ".idx");
  }
  void DeleteAtHome(const char* name) {
    Fd home = Must(disk_->OpenDir(AbsPath::Literal("/store")));
    Must(disk_->Unlink(home, Name::Literal(name)));
  }
  void DeleteCatalogue() {
    Fd dir = Must(disk_->OpenDir(AbsPath::Literal("/store/catalog")));
    for (const DirEntry& e : Must(disk_->List(dir)))
      Must(disk_->Unlink(dir, Name::Literal(e.name)));
  }
  World& NewWorld() {
    static uint64_t seed = 900;  // ids must not repeat
    worlds_.push_back(std::make_unique<World>(*disk_, ++seed));
    worlds_.back()->options.pack_target = 3000;
    return *worlds_.back();
  }
  std::unique_ptr<Store> Open() { return Must(NewWorld().Open(Store::Mode::kRead)); }

  // As `belay repair` does it.
  Result<MendReport> Repair(bool accept_loss) {
    std::vector<RememberedRecord> remembered;
    World& world = NewWorld();
    if (auto opened = world.Open(Store::Mode::kRead); opened.ok()) {
      auto catalog = Must(Catalog::Open(**opened));
      remembered = catalog->Remembered((*opened)->manifest().generation);
    } else {
      Fd home = Must(disk_->OpenDir(world.dir));
      StoreLocks locks(*disk_, world.clock, home, world.options.lock_wait_ms);
      auto catalog = Must(
          Catalog::Open({*disk_, world.clock, world.random, locks, home}, nullptr));
      remembered = catalog->Remembered(0);
    }
    BELAY_TRY(RepairReport repaired,
              RepairStore(*disk_, world.clock, world.random, world.dir, world.options));
    (void)repaired;
    BELAY_TRY(auto store, NewWorld().Open(Store::Mode::kWriteExisting));
    MendReport report;
    BELAY_OK(MendStore(*store, remembered, accept_loss, report));
    auto catalog = Must(Catalog::Open(*store));
    BELAY_OK(catalog->Rebuild());
    return report;
  }

 private:
  std::unique_ptr<MemFs> disk_;
  std::vector<std::unique_ptr<World>> worlds_;
};

// Names of the checkpoints that read back as they were made, in the log or not.
std::set<std::string> Whole(Store& store) {
  std::set<std::string> whole;
  for (const LogRecord& r : TheSample().records) {
    auto c = ToCheckpoint(r);
    if (!c.ok()) continue;
    auto files = ReadFiles(store, c->state);
    if (!files.ok()) continue;
    EXPECT_EQ(*files, TheSample().wanted.at(*c->name)) << *c->name;
    whole.insert(*c->name);
  }
  return whole;
}

std::set<RecordId> InTheLog(Store& store) {
  LogView log;
  Must(ReadOn(store, log));
  std::set<RecordId> ids;
  std::set<uint64_t> numbers;
  for (const LogRecord& r : log.records) {
    if (log.IsWanted(r)) ids.insert(r.id);
    EXPECT_TRUE(numbers.insert(r.seq).second) << "number " << r.seq << " twice";
    for (const LogRecord& known : TheSample().records)
      EXPECT_TRUE(known.id != r.id || known == r);
  }
  return ids;
}

void ExpectCatalogueIsRight(Patient& patient) {
  auto store = patient.Open();
  auto catalog = Must(Catalog::Open(*store));
  for (const std::string& problem : Must(catalog->Check())) ADD_FAILURE() << problem;
}

struct Tally {
  int healed = 0, given_up = 0, brought_back = 0;
};

// The whole story of one damage: verify names what it hits, repair loses nothing, the
// loss is given up only on demand, and GC goes on afterwards.
void Judge(Patient& patient, Tally& tally) {
  std::set<std::string> whole;
  std::set<RecordId> lost;
  {
    auto store = patient.Open();
    auto catalog = Must(Catalog::Open(*store));
    VerifyOptions options;
    options.read_data = true;
    // First: it tells the store how far to look.
    options.remembered = catalog->Remembered(store->manifest().generation);
    whole = Whole(*store);
    auto listed = InTheLog(*store);
    for (const LogRecord& r : TheSample().records)
      if (!listed.contains(r.id)) lost.insert(r.id);
    auto report = Must(VerifyStore(*store, options));
    // Every record that is gone is named, and nothing else.
    std::set<RecordId> named;
    for (const LogRecord& r : report.lost_records) named.insert(r.id);
    std::set<std::string> hit;
    for (const HitCheckpoint& h : report.hit) {
      hit.insert(*h.checkpoint.name);
      EXPECT_EQ(h.record_lost, lost.contains(h.checkpoint.id));
      EXPECT_TRUE(h.record_lost || !h.paths.empty());
      EXPECT_EQ(h.paths.empty(), whole.contains(*h.checkpoint.name));
    }
    for (const RecordId& id : lost) EXPECT_TRUE(named.contains(id));
    for (const RecordId& id : named)
      EXPECT_TRUE(lost.contains(id) || id == IdFor("gone"));
    for (const auto& [name, files] : TheSample().wanted)
      EXPECT_EQ(hit.contains(name),
                lost.contains(IdFor(name)) || !whole.contains(name));
  }
  ExpectCatalogueIsRight(patient);

  auto mended = patient.Repair(false);
  ASSERT_TRUE(mended.ok()) << mended.error().what;
  tally.brought_back += lost.empty() ? 0 : 1;
  EXPECT_TRUE(mended->given_up.empty());
  EXPECT_TRUE(mended->left.lost_records.empty());
  {
    auto store = patient.Open();
    auto listed = InTheLog(*store);
    for (const LogRecord& r : TheSample().records)
      EXPECT_TRUE(listed.contains(r.id)) << RecordTitle(r);
    EXPECT_FALSE(listed.contains(IdFor("gone")));
    EXPECT_EQ(Whole(*store), whole);
  }
  if (mended->left.clean()) {
    ++tally.healed;
  } else {
    EXPECT_FALSE(mended->left.nothing_lost());
    ++tally.given_up;
    // What a repair can rebuild it has rebuilt.
    for (const std::string& note : mended->left.notes)
      EXPECT_EQ(note.find("rebuilds it"), std::string::npos) << note;
    {
      auto store = patient.Open();
      for (const std::string& note :
           Must(VerifyStore(*store, {.read_data = true})).notes)
        EXPECT_EQ(note.find("rebuilds it"), std::string::npos) << note;
    }
    {
      // A part of the log that cannot be read may want anything.
      auto store = patient.Open();
      if (mended->left.unknown_records > 0) {
        auto refused = CollectGarbage(*store, {.everything = true});
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().code, Errc::kCorrupt);
      }
    }
    mended = patient.Repair(true);
    ASSERT_TRUE(mended.ok()) << mended.error().what;
    EXPECT_FALSE(mended->given_up.empty());
    for (const std::string& d : mended->left.damage) ADD_FAILURE() << d;
  }
  ExpectCatalogueIsRight(patient);
  auto store = patient.Open();
  auto collected = CollectGarbage(*store, {.everything = true});
  EXPECT_TRUE(collected.ok()) << collected.error().what;
  auto report = Must(VerifyStore(*store, {.read_data = true}));
  for (const std::string& d : report.damage) ADD_FAILURE() << "in the end: " << d;
  EXPECT_EQ(Whole(*store), whole);
  // Who lost something says so.
  auto catalog = Must(Catalog::Open(*store));
  for (const CatalogEntry& entry : Must(catalog->ListCheckpoints({}))) {
    const std::string name = entry.checkpoint.name.value_or("");
    if (TheSample().wanted.contains(name)) {
      EXPECT_EQ(entry.lost > 0, !whole.contains(name)) << name;
    }
  }
  auto listed = InTheLog(*store);
  for (const LogRecord& r : TheSample().records)
    EXPECT_TRUE(listed.contains(r.id)) << RecordTitle(r);
  EXPECT_FALSE(listed.contains(IdFor("gone")));
  // And writing goes on, with numbers that nobody has.
  store.reset();
  store = Must(patient.NewWorld().Open());
  Must(MakeCheckpoint(*store, "new", {{"n", "x"}}));
  InTheLog(*store);
}

void Show(const char* what, const Tally& tally) {
  std::printf("%s: %d healed, %d given up, %d with records brought back\n", what,
              tally.healed, tally.given_up, tally.brought_back);
}

TEST(Mend, TheSampleHasWhatItShould) {
  EXPECT_GE(TheSample().packs.size(), 2u);
  EXPECT_EQ(TheSample().wanted.size(), 4u);
  Patient patient;
  auto mended = Must(patient.Repair(true));
  EXPECT_TRUE(mended.done.empty());
  EXPECT_TRUE(mended.given_up.empty());
  EXPECT_TRUE(mended.left.clean());
}

TEST(Mend, AFlippedBitAnywhereCostsNoRecordAndNothingThatIsWhole) {
  Tally tally;
  for (size_t i = 0; i < TheSample().packs.size(); ++i)
    for (uint64_t at = 0; at < TheSample().lengths[i];
         at += RunEverything() ? 1 : 29 * kSlow) {
      SCOPED_TRACE(TheSample().packs[i] + " at " + std::to_string(at));
      Patient patient;
      patient.Flip(TheSample().packs[i], at);
      Judge(patient, tally);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  Show("bit flips", tally);
  if (kSlow > 1) return;
  EXPECT_GT(tally.healed, 5);
  EXPECT_GT(tally.brought_back, 5);
  EXPECT_GT(tally.given_up, 5);
}

// A batch whose header is damaged, and an object in it.
TEST(Mend, AnObjectInABatchThatIsNotWholeIsReadToo) {
  Tally tally;
  for (const std::string& pack : TheSample().packs) {
    std::vector<std::pair<uint64_t, uint64_t>> places;  // of batch and record
    {
      Patient patient;
      auto store = patient.Open();
      const auto id = Id128::FromText(pack.substr(0, pack.find('.')));
      PackFile file = Must(PackFile::Open(patient.disk(), patient.Packs(), PackId(*id),
                                          store->manifest().store, OpenMode::Read()));
      Must(file.ForEachBatch(kPackHeaderSize, Must(file.Size()),
                             [&](const BatchHeader& b, bool) -> Status {
                               return file.ForEachRecord(
                                   b, PackFile::Part::kObjects,
                                   [&](const RecordAt& r) -> Status {
                                     places.emplace_back(b.offset, r.offset);
                                     return Ok();
                                   });
                             }));
    }
    for (const auto& [batch, record] : places) {
      Patient patient;
      patient.Flip(pack, batch + 20);
      patient.Flip(pack, record + kRecordHeaderSize + 2);
      SCOPED_TRACE(pack + " at " + std::to_string(batch) + " and " +
                   std::to_string(record));
      Judge(patient, tally);
    }
  }
  EXPECT_GT(tally.given_up, 5);
  Show("an object in a damaged batch", tally);
}

TEST(Mend, APackCutShortCostsNoRecordAndNothingThatIsWhole) {
  Tally tally;
  for (size_t i = 0; i < TheSample().packs.size(); ++i)
    for (uint64_t at = 0; at < TheSample().lengths[i]; at += 97 * kSlow) {
      SCOPED_TRACE(TheSample().packs[i] + " cut to " + std::to_string(at));
      Patient patient;
      patient.Cut(TheSample().packs[i], at);
      Judge(patient, tally);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  Show("cuts", tally);
}

TEST(Mend, ADeletedPackCostsNoRecordAndNothingThatIsWhole) {
  Tally tally;
  for (const std::string& pack : TheSample().packs) {
    SCOPED_TRACE(pack);
    Patient patient;
    patient.Delete(pack);
    Judge(patient, tally);
  }
  EXPECT_EQ(tally.brought_back, static_cast<int>(TheSample().packs.size()));
}

// A question in between has the catalogue built anew from what is left of the log.
TEST(Mend, TheCatalogueRemembersThoughItIsBuiltAnew) {
  for (const std::string& pack : TheSample().packs) {
    SCOPED_TRACE(pack);
    Patient patient;
    patient.Delete(pack);
    {
      auto store = patient.Open();
      auto catalog = Must(Catalog::Open(*store));
      Must(catalog->Rebuild());
      Must(catalog->Count({}));
      Must(catalog->Rebuild());
    }
    Tally tally;
    Judge(patient, tally);
    EXPECT_EQ(tally.brought_back, 1);
  }
}

// While it is built, too, and while the files change their names; and by who is
// interrupted where somebody was before.
TEST(Mend, TheCatalogueRemembersThoughItsBuildingIsInterrupted) {
  const std::vector<std::string> names = {"one", "two", "three"};
  for (bool again : {false, true}) {
    auto rebuild = [](Fs& fs) -> Status {
      World world(fs, 7);
      BELAY_TRY(auto store, world.Open(Store::Mode::kRead));
      BELAY_TRY(auto catalog, Catalog::Open(*store));
      return catalog->Rebuild();
    };
    auto setup = [&](Fs& disk) -> Status {
      World world(disk);
      world.options.pack_target = 1000;
      {
        BELAY_TRY(auto store, world.Open());
        for (const std::string& name : names)
          BELAY_OK(MakeCheckpoint(*store, name, {{"f", Noise(6, 1500)}}));
        BELAY_TRY(auto catalog, Catalog::Open(*store));
        BELAY_OK(catalog->CatchUp());
        BELAY_OK(disk.Unlink(store->packs_dir(),
                             PackFile::FileName(store->manifest().packs.front().id)));
      }
      if (!again) return Ok();
      // When the old file is gone and its WAL is not.
      Fault fault = Fault::PowerCut(4);
      fault.only = {FsCall::kUnlink};
      FaultFs cut(disk, fault);
      (void)rebuild(cut);
      BELAY_TRY(Fd dir, disk.OpenDir(AbsPath::Literal("/store/catalog")));
      EXPECT_FALSE(disk.StatAt(dir, Name::Literal("catalog.db")).ok());
      EXPECT_TRUE(disk.StatAt(dir, Name::Literal("catalog.db-wal")).ok());
      return Ok();
    };
    auto remembers = [&](Fs& disk) -> Status {
      World world(disk, 8);
      BELAY_TRY(auto store, world.Open(Store::Mode::kRead));
      BELAY_TRY(auto catalog, Catalog::Open(*store));
      std::set<RecordId> known;
      for (const auto& [r, sure] : catalog->Remembered(store->manifest().generation))
        if (sure) known.insert(r.id);
      for (const std::string& name : names)
        if (!known.contains(IdFor(name)))
          return Error(Errc::kNotFound, "nobody remembers " + name);
      return Ok();
    };
    for (const Fault& fault : {Fault::PowerCut(0), Fault::Errno(0, EIO)}) {
      SweepOptions options{.name = fault.Text() + (again ? ", again" : ""),
                           .fault = fault,
                           .stride = kSlow,
                           .tears = 1,
                           .crash_after_error = true};
      Expect(SweepFaults(
          options, setup, [&](Fs& fs, Acks&) { return rebuild(fs); },
          [&](Fs& disk, const SweepRun&) -> Status {
            BELAY_OK(remembers(disk));
            BELAY_OK(rebuild(disk));
            Fd dir = Must(disk.OpenDir(AbsPath::Literal("/store/catalog")));
            for (const DirEntry& e : Must(disk.List(dir)))
              if (e.name != "catalog.db" && e.name != "catalog.db-wal" &&
                  e.name != "changes")
                return Error(Errc::kExists, "left: " + e.name);
            return remembers(disk);
          }));
    }
  }
}

// Nobody but the catalogue knows how far the open pack went then.
TEST(Mend, APackCutShortWithoutATailCostsNoRecordAndNothingThatIsWhole) {
  Tally tally;
  const std::string& pack = TheSample().packs.back();
  for (uint64_t at = 0; at < TheSample().lengths.back();
       at += RunEverything() ? 1 : 97 * kSlow)
    for (const char* before : {"nothing", "a question", "a checkpoint"}) {
      SCOPED_TRACE("cut to " + std::to_string(at) + " after " + before);
      Patient patient;
      patient.Cut(pack, at);
      patient.DeleteAtHome("tail");
      {
        auto store = patient.Open();
        auto catalog = Must(Catalog::Open(*store));
        if (before == std::string("a question")) {
          EXPECT_FALSE(Must(catalog->LogIsWhole()));
          Must(catalog->Rebuild());
        }
      }
      if (before == std::string("a checkpoint")) {
        auto store = Must(patient.NewWorld().Open());
        Must(MakeCheckpoint(*store, "meanwhile", {{"m", "x"}}));
        auto catalog = Must(Catalog::Open(*store));
        EXPECT_FALSE(Must(catalog->LogIsWhole()));
      }
      Judge(patient, tally);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  Show("cuts without a tail", tally);
  if (kSlow > 1) return;
  EXPECT_GT(tally.brought_back, 5);
  EXPECT_GT(tally.given_up, 5);
}

// The number to go on from is believed only with its check: a checkpoint with a number
// that no writer gives would be in no list.
TEST(Mend, WhatTheCatalogueSaysOfTheNextNumberHasACheck) {
  uint64_t next = 0;
  for (const LogRecord& r : TheSample().records) next = std::max(next, r.seq + 1);
  for (int bit = 0; bit < 64; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Patient patient;
    Fd dir = Must(patient.disk().OpenDir(AbsPath::Literal("/store/catalog")));
    const Name db = Name::Literal("catalog.db");
    Bytes bytes = Must(ReadSmallFile(patient.disk(), dir, db, 1 << 24));
    // Row 4 of `meta`: generation, pack, offset, number.
    size_t found = 0;
    {
      auto store = patient.Open();
      const PackId open = store->manifest().packs.back().id;
      for (size_t at = 0; at + 32 <= bytes.size(); ++at)
        if (std::ranges::equal(ByteSpan(bytes).subspan(at, 16), open.span()) &&
            LoadU64(&bytes[at + 24]) == next && ++found == 1)
          bytes[at + 24 + static_cast<size_t>(bit) / 8] ^= std::byte{1} << (bit % 8);
    }
    ASSERT_EQ(found, 1u);
    Must(ReplaceFile(patient.disk(), dir, db, bytes));
    patient.DeleteAtHome("tail");
    auto store = Must(patient.NewWorld().Open());
    Must(MakeCheckpoint(*store, "late", {{"a", "later"}}));
    LogView log;
    Must(ReadOn(*store, log));
    EXPECT_EQ(log.records.back().id, IdFor("late"));
    EXPECT_EQ(log.records.back().seq, next);
  }
}

TEST(Mend, ATornEndWithoutATailIsNoDamage) {
  Patient patient;
  patient.DeleteAtHome("tail");
  {
    Fd file = Must(patient.disk().Open(patient.Packs(),
                                       Name::Literal(TheSample().packs.back()),
                                       OpenMode::ReadWrite()));
    Must(WriteFull(patient.disk(), file, TheSample().lengths.back(),
                   AsBytes(Noise(8, 300))));
  }
  auto store = patient.Open();
  auto catalog = Must(Catalog::Open(*store));
  VerifyOptions options;
  options.remembered = catalog->Remembered(store->manifest().generation);
  EXPECT_TRUE(Must(VerifyStore(*store, options)).clean());
  EXPECT_TRUE(Must(catalog->LogIsWhole()));
  auto mended = Must(patient.Repair(false));
  EXPECT_TRUE(mended.left.clean());
  EXPECT_TRUE(mended.done.empty());
}

// What a dead writer left was read by somebody, and the power failed before anybody
// flushed it: it was never acknowledged.
TEST(Mend, WhatWasReadButNeverFlushedIsNotMissed) {
  Patient patient;
  {
    World& world = patient.NewWorld();
    world.options.pack_target = 1 << 20;
    auto store = Must(world.Open());
    Must(MakeCheckpoint(*store, "unflushed", {{"u", "x"}}));
    ASSERT_EQ(store->manifest().packs.size(), TheSample().packs.size());
  }
  // As if it had not come to that: both tell of the flush.
  patient.DeleteAtHome("tail");
  patient.DeleteIndexOf(TheSample().packs.back());
  {
    auto store = patient.Open();
    auto catalog = Must(Catalog::Open(*store));
    EXPECT_EQ(Must(catalog->Count({})), TheSample().wanted.size() + 1);
  }
  patient.Cut(TheSample().packs.back(), TheSample().lengths.back());
  auto store = patient.Open();
  auto catalog = Must(Catalog::Open(*store));
  VerifyOptions options;
  options.remembered = catalog->Remembered(store->manifest().generation);
  EXPECT_TRUE(Must(VerifyStore(*store, options)).clean());
  EXPECT_TRUE(Must(catalog->LogIsWhole()));
  EXPECT_EQ(Must(catalog->Count({})), TheSample().wanted.size());
}

// The new manifest must not make a store whole by forgetting.
TEST(Mend, APackThatIsGoneWithTheManifestIsNotForgotten) {
  for (const std::string& pack : TheSample().packs)
    for (bool index : {true, false})
      for (bool killed : {false, true}) {
        SCOPED_TRACE(pack + (index ? " with" : " without") + " its index" +
                     (killed ? ", killed" : ""));
        std::set<std::string> whole;
        {
          Patient patient;
          patient.Delete(pack);
          whole = Whole(*patient.Open());
        }
        ASSERT_LT(whole.size(), TheSample().wanted.size());
        Patient patient;
        patient.Delete(pack);
        if (!index) patient.DeleteIndexOf(pack);
        patient.DeleteAtHome("manifest");
        if (killed) {
          // Right after the new manifest was there; then somebody asks something.
          World& world = patient.NewWorld();
          Must(RepairStore(patient.disk(), world.clock, world.random, world.dir,
                           world.options));
          auto store = patient.Open();
          auto catalog = Must(Catalog::Open(*store));
          EXPECT_EQ(Must(catalog->Count({})), TheSample().wanted.size());
          EXPECT_FALSE(Must(VerifyStore(*store, {.read_data = true})).clean());
        }
        auto mended = Must(patient.Repair(false));
        EXPECT_FALSE(mended.left.clean());
        std::set<std::string> hit;
        for (const HitCheckpoint& h : mended.left.hit) hit.insert(*h.checkpoint.name);
        for (const auto& [name, files] : TheSample().wanted)
          EXPECT_EQ(hit.contains(name), !whole.contains(name)) << name;
        {
          auto store = patient.Open();
          auto listed = InTheLog(*store);
          for (const LogRecord& r : TheSample().records)
            EXPECT_TRUE(listed.contains(r.id)) << RecordTitle(r);
          EXPECT_FALSE(listed.contains(IdFor("gone")));
          EXPECT_EQ(Whole(*store), whole);
        }
        ExpectCatalogueIsRight(patient);
        mended = Must(patient.Repair(true));
        for (const std::string& d : mended.left.damage) ADD_FAILURE() << d;
        EXPECT_FALSE(mended.given_up.empty());
        auto store = patient.Open();
        EXPECT_TRUE(CollectGarbage(*store, {.everything = true}).ok());
        EXPECT_EQ(Whole(*store), whole);
      }
}

// Nor where an index alone tells of it, or nobody but the numbers.
TEST(Mend, WithoutACatalogueTracesTellOfAPackThatIsGoneWithTheManifest) {
  for (bool index : {true, false}) {
    SCOPED_TRACE(index);
    Patient patient;
    patient.DeleteCatalogue();
    patient.Delete(TheSample().packs.front());
    if (!index) patient.DeleteIndexOf(TheSample().packs.front());
    patient.DeleteAtHome("manifest");
    World& world = patient.NewWorld();
    auto repaired = Must(RepairStore(patient.disk(), world.clock, world.random,
                                     world.dir, world.options));
    bool said = false;
    for (const std::string& line : repaired.done)
      said |= line.find("missing") != std::string::npos;
    EXPECT_TRUE(said);
    if (!index) continue;
    auto report = Must(VerifyStore(*patient.Open(), {.read_data = true}));
    ASSERT_FALSE(report.clean());
    EXPECT_EQ(report.damage[0], TheSample().packs.front() + " is missing");
    EXPECT_GT(report.unknown_records, 0u);
  }
}

TEST(Mend, DoubtGoesWhenTheLogCanBeReadAgain) {
  for (const std::string& pack : TheSample().packs) {
    SCOPED_TRACE(pack);
    Patient patient;
    const Bytes bytes = Must(
        ReadSmallFile(patient.disk(), patient.Packs(), Name::Literal(pack), 1 << 20));
    patient.Delete(pack);
    auto whole = [&](bool built_anew = false) {
      auto store = patient.Open();
      auto catalog = Must(Catalog::Open(*store));
      if (built_anew) Must(catalog->Rebuild());
      return Must(catalog->LogIsWhole());
    };
    EXPECT_FALSE(whole(true));
    EXPECT_FALSE(whole());
    Must(ReplaceFile(patient.disk(), patient.Packs(), Name::Literal(pack), bytes));
    EXPECT_TRUE(whole());
  }
}

// Then nobody can tell what stood there: said, and given up only on demand.
TEST(Mend, WithoutACatalogueTheLossIsNotHidden) {
  Patient patient;
  uint64_t at = 0;
  {
    auto bytes = Must(ReadSmallFile(patient.disk(), patient.Packs(),
                                    Name::Literal(TheSample().packs.back()), 1 << 20));
    at = AsText(bytes).rfind("four");
    patient.DeleteCatalogue();
  }
  patient.Flip(TheSample().packs.back(), at);
  auto mended = Must(patient.Repair(false));
  EXPECT_FALSE(mended.left.clean());
  EXPECT_EQ(mended.left.unknown_records, 1u);
  EXPECT_TRUE(mended.left.hit.empty());
  mended = Must(patient.Repair(true));
  EXPECT_TRUE(mended.left.clean());
  ASSERT_EQ(mended.given_up.size(), 1u);
  EXPECT_NE(mended.given_up[0].find("up to 1 record of the log"), std::string::npos);
  auto store = patient.Open();
  EXPECT_FALSE(InTheLog(*store).contains(IdFor("four")));
  EXPECT_TRUE(CollectGarbage(*store, {.everything = true}).ok());
}

// The content is still at hand, and the user takes another checkpoint of it: neither
// may a stat cache say that the store has it, nor the index lead to what cannot be
// read.
TEST(Mend, WhatCannotBeReadIsStoredAgainAndHealsWhatNeedsIt) {
  int healed = 0;
  for (const std::string& pack : TheSample().packs)
    for (uint64_t at = 200; at < 3000; at += 97) {
      SCOPED_TRACE(pack + " at " + std::to_string(at));
      Patient patient;
      Fd home = Must(patient.disk().OpenDir(AbsPath::Literal("/store")));
      (void)patient.disk().MakeDir(home, Name::Literal("cache"), 0700);
      Fd cache = Must(patient.disk().OpenDir(AbsPath::Literal("/store/cache")));
      Must(patient.disk().Open(cache, Name::Literal("r.scan"), OpenMode::CreateNew()));
      if (at >= Must(patient.disk().StatAt(patient.Packs(), Name::Literal(pack))).size)
        continue;
      patient.Flip(pack, at);
      auto mended = Must(patient.Repair(false));
      if (mended.left.lost_objects.empty()) continue;
      EXPECT_FALSE(patient.disk().StatAt(cache, Name::Literal("r.scan")).ok());
      {
        // Not hidden from those who ask.
        auto store = patient.Open();
        EXPECT_EQ(Whole(*store).size() + mended.left.hit.size(),
                  TheSample().wanted.size());
      }
      {
        auto store = Must(patient.NewWorld().Open());
        for (const HitCheckpoint& hit : mended.left.hit)
          Must(MakeCheckpoint(*store, "again " + *hit.checkpoint.name,
                              TheSample().wanted.at(*hit.checkpoint.name)));
        EXPECT_EQ(Whole(*store).size(), TheSample().wanted.size());
      }
      mended = Must(patient.Repair(false));
      for (const std::string& d : mended.left.damage) ADD_FAILURE() << d;
      ++healed;
    }
  EXPECT_GT(healed, 10);
}

// A batch that was written and never flushed may be in the catalogue; after a power cut
// nobody lost anything. Nor did anybody when a collection took a record away.
TEST(Mend, WhatAWholeLogDoesNotHoldWasNotLost) {
  Patient patient;
  auto store = patient.Open();
  std::vector<RememberedRecord> remembered;
  for (const LogRecord& r : TheSample().records) remembered.push_back({r, true});
  LogRecord more = ToRecord(Root{RootId(IdFor("x")), "/x"}, IdFor("x"), 1);
  more.seq = 99;
  remembered.push_back({more, true});
  auto report =
      Must(VerifyStore(*store, {.read_data = true, .remembered = remembered}));
  EXPECT_TRUE(report.clean());
  EXPECT_TRUE(report.lost_records.empty());
}

// Of another generation: only what still has its objects can have been lost.
TEST(Mend, WhatMayHaveBeenCollectedComesBackOnlyWithItsObjects) {
  Patient patient;
  patient.Delete(TheSample().packs.back());
  auto store = patient.Open();
  LogView log;
  Must(ReadOn(*store, log));
  ASSERT_FALSE(log.whole);
  Checkpoint collected;
  collected.id = IdFor("collected");
  collected.seq = 50;
  collected.state = Sha256::Of(AsBytes("gone"));
  Checkpoint kept = Must(ToCheckpoint(TheSample().records.at(1)));
  kept.id = IdFor("kept");
  kept.seq = 51;
  auto lost =
      LostRecords(*store, log, {{ToRecord(collected), false}, {ToRecord(kept), false}});
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].id, IdFor("kept"));
}

// A disk that reads a record at one time and not at another.
TEST(Mend, ARecordThatCannotBeReadAnyMoreStopsTheReplacement) {
  Patient patient;
  auto store = patient.Open();
  auto report = Must(VerifyStore(*store, {.read_data = true}));
  auto bytes = Must(ReadSmallFile(patient.disk(), patient.Packs(),
                                  Name::Literal(TheSample().packs.back()), 1 << 20));
  patient.Flip(TheSample().packs.back(), AsText(bytes).rfind("four"));
  auto manifest = store->manifest();
  auto salvaged = SalvagePacks(*store, {manifest.packs.back().id}, report.read_records);
  ASSERT_FALSE(salvaged.ok());
  EXPECT_EQ(salvaged.error().code, Errc::kCorrupt);
  Must(store->Refresh());
  EXPECT_EQ(store->manifest().generation, manifest.generation);
}

// Somebody found a copy of it after all.
TEST(Mend, APackThatComesBackAfterItWasGivenUpIsTakenBack) {
  for (const std::string& pack : TheSample().packs) {
    SCOPED_TRACE(pack);
    Patient patient;
    const Bytes bytes = Must(
        ReadSmallFile(patient.disk(), patient.Packs(), Name::Literal(pack), 1 << 20));
    patient.Delete(pack);
    EXPECT_FALSE(Must(patient.Repair(true)).given_up.empty());
    std::set<std::string> whole = Whole(*patient.Open());
    ASSERT_LT(whole.size(), TheSample().wanted.size());
    // One of what was lost is erased on purpose before that.
    std::string erased;
    for (const auto& [name, files] : TheSample().wanted)
      if (!whole.contains(name)) erased = name;
    const bool erase = pack == TheSample().packs.back();
    ObjectKey state;
    for (const LogRecord& r : TheSample().records)
      if (r.id == IdFor(erased)) state = r.refs.at(0);
    if (erase) {
      auto store = Must(patient.NewWorld().Open());
      Sample::Commit(*store, MakePurge(RecordId(store->random().NewId()), 9, {state},
                                       "on purpose", /*erased=*/true));
    }
    Must(ReplaceFile(patient.disk(), patient.Packs(), Name::Literal(pack), bytes));
    {
      // It is no leftover.
      auto store = patient.Open();
      auto collected = Must(CollectGarbage(*store, {.everything = true}));
      EXPECT_EQ(collected.spared, std::vector<std::string>{pack});
      EXPECT_TRUE(patient.disk().StatAt(store->packs_dir(), Name::Literal(pack)).ok());
      EXPECT_TRUE(Must(VerifyStore(*store, {.read_data = true})).clean());
    }
    {
      auto store = Must(patient.NewWorld().Open(Store::Mode::kWriteExisting));
      std::vector<std::string> done;
      Must(TakeBackGivenUp(*store, done));
      EXPECT_FALSE(done.empty());
      done.clear();
      Must(TakeBackGivenUp(*store, done));
      EXPECT_TRUE(done.empty());
    }
    {
      auto store = patient.Open();
      auto report = Must(VerifyStore(*store, {.read_data = true}));
      for (const std::string& d : report.damage) ADD_FAILURE() << d;
      // Kept, too, and now the pack is nothing but a leftover.
      auto collected = Must(CollectGarbage(*store, {.everything = true}));
      EXPECT_TRUE(collected.spared.empty());
      EXPECT_FALSE(patient.disk().StatAt(store->packs_dir(), Name::Literal(pack)).ok());
    }
    auto store = patient.Open();
    EXPECT_TRUE(Must(VerifyStore(*store, {.read_data = true})).clean());
    EXPECT_EQ(Whole(*store).size(), TheSample().wanted.size() - (erase ? 1 : 0));
    if (erase) {
      EXPECT_EQ(store->Get(state).error().code, Errc::kPurged);
    }
    EXPECT_FALSE(InTheLog(*store).contains(IdFor("gone")));
    auto catalog = Must(Catalog::Open(*store));
    for (const CatalogEntry& entry : Must(catalog->ListCheckpoints({})))
      EXPECT_EQ(entry.lost > 0, erase && entry.checkpoint.name == erased)
          << *entry.checkpoint.name;
  }
}

// Its number was given to another meanwhile.
TEST(Mend, ABroughtBackRecordTakesNobodysNumber) {
  Patient patient;
  auto store = Must(patient.NewWorld().Open());
  LogRecord back = TheSample().records.back();
  back.id = IdFor("back");
  LogRecord far = back;
  far.id = IdFor("far");
  far.seq = 1000;
  Must(BringBack(*store, {back, far}));
  Must(MakeCheckpoint(*store, "new", {{"n", "x"}}));
  LogView log;
  Must(ReadOn(*store, log));
  std::map<uint64_t, RecordId> by_number;
  for (const LogRecord& r : log.records)
    EXPECT_TRUE(by_number.emplace(r.seq, r.id).second) << r.seq;
  EXPECT_EQ(by_number.at(1000), IdFor("far"));
  EXPECT_GT(by_number.rbegin()->first, 1000u);
}

}  // namespace
}  // namespace belay::test
