// The catalogue on a disk that fails, loses power or changes bits.

#include <cerrno>
#include <iostream>

#include "base/fault_fs.h"
#include "catalog_fixture.h"
#include "store/batch_writer.h"
#include "store/gc.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

CatalogOptions SmallPages(uint64_t checkpoint_wal_bytes) {
  CatalogOptions options;
  options.page_size = 512;
  options.checkpoint_wal_bytes = checkpoint_wal_bytes;
  return options;
}

// A log that grows: what the catalogue knows at first, and what comes after.
struct GrowingLog {
  explicit GrowingLog(size_t count) : all(RandomLog(3, count)), before(all) {
    before.records.resize(before.records.size() / 2);
  }
  LogContent all, before;
};

// A few questions of different kinds; Check() compares everything.
Result<std::string> BriefAnswers(Catalog& catalog) {
  std::ostringstream out;
  BELAY_TRY(auto all, catalog.ListCheckpoints({}));
  for (const CatalogEntry& e : all) Show(out, e);
  BELAY_TRY(auto found, catalog.Search({}, "buil", 1000));
  for (const CatalogEntry& e : found) Show(out, e);
  BELAY_TRY(auto roots, catalog.Roots());
  for (const RootEntry& r : roots) out << r.root.path << ' ' << r.seq << '\n';
  return out.str();
}

// The next process: right answers from the file, which has nothing wrong with it.
Status CheckNext(Fs& disk, const LogContent& log, const std::string& want) {
  CatalogWorld world(disk, SmallPages(1 << 20));
  BELAY_TRY(auto catalog, world.Open(log));
  BELAY_TRY(std::string have, BriefAnswers(*catalog));
  if (have != want) return Error(Errc::kCorrupt, "other answers than before");
  if (catalog->trouble()) return Context(*catalog->trouble(), "trouble");
  BELAY_TRY(auto problems, catalog->Check());
  if (!problems.empty()) return Error(Errc::kCorrupt, problems[0]);
  return Ok();
}

std::string TrueBriefAnswers(const LogContent& log) {
  MemFs disk;
  CatalogWorld world(disk);
  return BriefAnswers(*world.Open(log).value()).value();
}

struct CrashCase {
  const char* name;
  uint64_t wal_bytes;  // 0: every commit is moved into the file
  bool file_exists;
  bool rebuild;
};

class CatalogCrash : public ::testing::TestWithParam<CrashCase> {
 protected:
  DiskSetup Before() {
    return [this](Fs& disk) -> Status {
      CatalogWorld world(disk, SmallPages(1 << 20));
      if (!GetParam().file_exists) {
        return MakeDirs(disk, AbsPath::Literal("/store"), 0700).ok()
                   ? Ok()
                   : Status(Error(Errc::kIo, "setup"));
      }
      // Twice, so that there is a WAL with something in it.
      LogContent log = log_.before;
      std::vector<LogRecord> records = std::move(log.records);
      log.records.assign(records.begin(), records.begin() + 5);
      BELAY_TRY(auto catalog, world.Open(log));
      BELAY_OK(catalog->CatchUp());
      log.records = std::move(records);
      return catalog->CatchUp();
    };
  }
  DiskOperation Operation() {
    return [this](Fs& fs, Acks&) -> Status {
      CatalogWorld world(fs, SmallPages(GetParam().wal_bytes));
      BELAY_TRY(auto catalog, world.Open(log_.all));
      return GetParam().rebuild ? catalog->Rebuild() : catalog->CatchUp();
    };
  }
  DiskCheck Check() {
    return
        [this](Fs& disk, const SweepRun&) { return CheckNext(disk, log_.all, want_); };
  }
  void Sweep(SweepOptions options) {
    options.name = std::string(GetParam().name) + ", " + options.name;
    options.stride = 9;
    options.first = 1 + TestSeed(1) % options.stride;
    SweepResult result = SweepFaults(options, Before(), Operation(), Check());
    EXPECT_TRUE(result.ok()) << result.Text();
    std::cout << result.Text();
  }

  GrowingLog log_{24};
  std::string want_ = TrueBriefAnswers(log_.all);
};

TEST_P(CatalogCrash, AnswersAreTheSameAfterAPowerCutAtAnyCall) {
  Sweep({.name = "power cut", .fault = Fault::PowerCut(0), .tears = 3});
}

TEST_P(CatalogCrash, AnswersAreTheSameAfterAFullDiskAtAnyCall) {
  Sweep({.name = "ENOSPC", .fault = Fault::Errno(0, ENOSPC, /*sticky=*/true)});
}

TEST_P(CatalogCrash, AnswersAreTheSameAfterOneFailureAtAnyCallAndAPowerCut) {
  Sweep({.name = "EIO, then power cut",
         .fault = Fault::Errno(0, EIO),
         .tears = 2,
         .crash_after_error = true});
}

TEST_P(CatalogCrash, AnswersAreTheSameWithShortWrites) {
  Sweep({.name = "short writes", .fault = Fault::ShortWrite(0)});
}

// A question meets the failure itself and still gets its answer, or an honest error.
TEST_P(CatalogCrash, QuestionIsAnsweredOnADiskThatFailsAtAnyCall) {
  const Fault faults[] = {Fault::Errno(0, ENOSPC, /*sticky=*/true),
                          Fault::Errno(0, EIO, /*sticky=*/true), Fault::Errno(0, EIO)};
  for (const Fault& fault : faults) {
    SweepOptions options{
        .name = "question, " + fault.Text(), .fault = fault, .stride = 9};
    uint64_t refused = 0;
    auto ask = [&](Fs& fs, Acks& acks) -> Status {
      CatalogWorld world(fs, SmallPages(GetParam().wal_bytes));
      BELAY_TRY(auto catalog, world.Open(log_.all));
      auto answers = BriefAnswers(*catalog);
      if (answers.ok()) acks.Add(*answers == want_ ? "right" : "wrong");
      return answers.ok() ? Ok() : Status(answers.error());
    };
    auto check = [&](Fs& disk, const SweepRun& run) -> Status {
      if (!run.acks.empty() && run.acks[0] != "right")
        return Error(Errc::kCorrupt, "a wrong answer");
      if (!run.done) ++refused;
      return CheckNext(disk, log_.all, want_);
    };
    SweepResult result = SweepFaults(options, Before(), ask, check);
    EXPECT_TRUE(result.ok()) << result.Text();
    std::cout << result.Text() << "  refused: " << refused << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, CatalogCrash,
    ::testing::Values(CrashCase{"CatchUp", 1 << 20, true, false},
                      CrashCase{"CatchUpAndMoveWal", 0, true, false},
                      CrashCase{"FirstBuild", 1 << 20, false, false},
                      CrashCase{"Rebuild", 1 << 20, true, true}),
    [](const auto& param) { return std::string(param.param.name); });

// --- bits that change
// --------------------------------------------------------------------

class CatalogDamage : public ::testing::Test {
 protected:
  // A file that holds everything, and one whose later half is in its WAL.
  void SetUp() override {
    Build(whole_, log_.all);
    LogContent log = log_.before;
    CatalogWorld world(halves_, SmallPages(1 << 20));
    auto catalog = world.Open(log);
    ASSERT_OK(catalog);
    ASSERT_OK((*catalog)->CatchUp());
    log = log_.all;
    ASSERT_OK((*catalog)->CatchUp());
    EXPECT_EQ(AllAnswers(**catalog).value(), want_);
  }
  void Build(Fs& disk, const LogContent& log) {
    CatalogWorld world(disk, SmallPages(1 << 20));
    auto catalog = world.Open(log);
    ASSERT_OK(catalog);
    ASSERT_OK((*catalog)->CatchUp());
  }

  // What is wrong with how the next process takes this disk; empty when nothing is.
  std::string Judge(Fs& disk) {
    CatalogWorld world(disk, SmallPages(1 << 20));
    std::unique_ptr<Catalog> catalog = world.Open(log_.all).value();
    auto problems = catalog->Check();
    bool found = !problems.ok() || !problems->empty();
    if (found) ++found_;
    // What is found need only be survived, which fewer questions show. Survived means
    // answered: a question that comes upon the damage has the file built anew.
    auto answers = found ? BriefAnswers(*catalog) : AllAnswers(*catalog);
    if (!answers.ok()) return answers.error().what;
    if (*answers == (found ? brief_ : want_)) return "";
    return found ? "other answers" : "other answers, and Check finds nothing";
  }

  // Each of the two with one file of it at a time.
  struct Target {
    const char* name;
    const MemFs& disk;
    const char* file;
  };
  std::vector<Target> Targets() {
    return {{"file", whole_, "catalog.db"},
            {"file under a WAL", halves_, "catalog.db"},
            {"WAL", halves_, "catalog.db-wal"}};
  }

  void Change(std::string_view file, const std::function<void(Bytes&)>& change,
              Fs& disk) {
    Fd dir = disk.OpenDir(AbsPath::Literal("/store/catalog")).value();
    Name name = Name::Literal(file);
    Bytes bytes = ReadSmallFile(disk, dir, name, 1 << 24).value();
    change(bytes);
    Fd fd = disk.Open(dir, name, OpenMode::ReadWrite()).value();
    ASSERT_OK(disk.Truncate(fd, bytes.size()));
    ASSERT_OK(WriteFull(disk, fd, 0, bytes));
  }
  size_t SizeOf(const Target& target) {
    auto disk = target.disk.Clone();
    Fd dir = disk->OpenDir(AbsPath::Literal("/store/catalog")).value();
    return disk->StatAt(dir, Name::Literal(target.file))->size;
  }

  GrowingLog log_{24};
  std::string want_ = TrueAnswers(log_.all);
  std::string brief_ = TrueBriefAnswers(log_.all);
  MemFs whole_, halves_;
  size_t found_ = 0;
};

TEST_F(CatalogDamage, NoDamageIsNotFound) {
  EXPECT_EQ(Judge(whole_), "");
  EXPECT_EQ(Judge(halves_), "");
  EXPECT_EQ(found_, 0u);
}

TEST_F(CatalogDamage, FlippedBitIsFoundOrChangesNoAnswer) {
  SeededRandom random(TestSeed(1));
  for (const Target& target : Targets()) {
    size_t size = SizeOf(target);
    // Every byte takes 13 minutes; the test limit is five.
    size_t stride = RunEverything() ? 4 : 151;
    size_t flips = 0;
    found_ = 0;
    for (size_t at = random.Below(stride); at < size; at += stride, ++flips) {
      auto bit = std::byte{1} << random.Below(8);
      auto disk = target.disk.Clone();
      Change(
          target.file, [&](Bytes& bytes) { bytes[at] ^= bit; }, *disk);
      EXPECT_EQ(Judge(*disk), "")
          << target.name << " byte " << at << " bit " << std::to_integer<int>(bit);
    }
    std::cout << target.name << ": " << size << " bytes, " << flips << " flips, "
              << found_ << " found by Check\n";
    // What is in the WAL, too, is not read; all else has a check.
    if (target.name == std::string_view("file")) {
      EXPECT_EQ(found_, flips);
    }
  }
}

TEST_F(CatalogDamage, LostOrForeignPagesAreFoundOrChangeNoAnswer) {
  for (const Target& target : Targets()) {
    size_t size = SizeOf(target);
    size_t stride = RunEverything() ? 512 : 512 * 4;
    for (size_t at = 0; at < size; at += stride) {
      SCOPED_TRACE(std::string(target.name) + " at " + std::to_string(at));
      size_t end = std::min(at + 512, size);
      auto changed = [&](const std::function<void(Bytes&)>& change) {
        auto disk = target.disk.Clone();
        Change(target.file, change, *disk);
        return Judge(*disk);
      };
      EXPECT_EQ(
          changed([&](Bytes& b) { std::fill(&b[at], b.data() + end, std::byte{}); }),
          "");
      EXPECT_EQ(changed([&](Bytes& b) { b.resize(at); }), "");
      if (at == 0) continue;
      EXPECT_EQ(changed([&](Bytes& b) { std::copy_n(&b[at - 512], end - at, &b[at]); }),
                "");
    }
  }
}

TEST_F(CatalogDamage, NoAnswerComesFromWhatIsCutOff) {
  for (const Target& target : Targets()) {
    const size_t size = SizeOf(target);
    const size_t stride = RunEverything() ? 37 : 1021;
    std::vector<size_t> cuts = {1, 8, 9, 100, 500, 511};
    for (size_t cut = 512; cut < size; cut += stride) cuts.push_back(cut);
    for (size_t cut : cuts) {
      SCOPED_TRACE(std::string(target.name) + " without its last " +
                   std::to_string(cut));
      auto disk = target.disk.Clone();
      Change(
          target.file, [&](Bytes& b) { b.resize(size - cut); }, *disk);
      if (target.name == std::string_view("file")) {
        CatalogWorld world(*disk, SmallPages(1 << 20));
        auto problems = world.Open(log_.all).value()->Check();
        EXPECT_TRUE(!problems.ok() || !problems->empty());
      }
      CatalogWorld world(*disk, SmallPages(1 << 20));
      auto answers = AllAnswers(*world.Open(log_.all).value());
      ASSERT_OK(answers);
      EXPECT_EQ(*answers, want_);
    }
  }
}

TEST_F(CatalogDamage, MissingFileOfThePairIsFoundOrChangesNoAnswer) {
  for (const Target& target : Targets()) {
    auto disk = target.disk.Clone();
    Fd dir = disk->OpenDir(AbsPath::Literal("/store/catalog")).value();
    ASSERT_OK(disk->Unlink(dir, Name::Literal(target.file)));
    EXPECT_EQ(Judge(*disk), "") << target.name;
  }
}

TEST_F(CatalogDamage, GarbageIsBuiltAnew) {
  for (std::string_view text : {"", "not a database", "SQLite format 3\0"}) {
    auto disk = halves_.Clone();
    Change(
        "catalog.db", [&](Bytes& bytes) { bytes = ToBytes(text); }, *disk);
    EXPECT_TRUE(CheckNext(*disk, log_.all, TrueBriefAnswers(log_.all)).ok()) << text;
  }
}

// --- on a real store
// ----------------------------------------------------------------------

class CatalogOnStore : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    catalog_.reset();
    store_.reset();
    auto store = Store::Open(disk_, clock_, random_, AbsPath::Literal("/store"),
                             {.uid = 1000}, Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = std::move(*store);
    auto catalog = Catalog::Open(*store_);
    ASSERT_OK(catalog);
    catalog_ = std::move(*catalog);
  }
  RecordId Publish(std::string_view name) {
    auto writer = store_->Begin();
    EXPECT_TRUE(writer.ok());
    ObjectId tree = (*writer)->PutTree({}).value();
    Bytes state = EncodeState({tree, {}, {}});
    LogRecord record = CheckpointRecord(random_, 0, root_, name);
    record.refs[0].id = (*writer)->PutObject(ObjectType::kState, state).value();
    (*writer)->Add(record);
    EXPECT_TRUE((*writer)->Commit().ok());
    return record.id;
  }
  void Drop(const RecordId& id) {
    auto writer = store_->Begin();
    (*writer)->Add(MakeDrop(RecordId(random_.NewId()), 0, {id}));
    EXPECT_TRUE((*writer)->Commit().ok());
  }
  std::vector<std::string> Names() {
    std::vector<std::string> out;
    auto list = catalog_->ListCheckpoints({.root = root_});
    EXPECT_TRUE(list.ok()) << list.error().what;
    if (list.ok())
      for (const CatalogEntry& e : *list) out.push_back(*e.checkpoint.name);
    return out;
  }
  using List = std::vector<std::string>;

  MemFs disk_;
  FakeClock clock_;
  SeededRandom random_{5};
  RootId root_{random_.NewId()};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogOnStore, FollowsTheStoreThroughReopeningDropsAndCollection) {
  EXPECT_EQ(Names(), List{});
  Publish("one");
  RecordId two = Publish("two");
  EXPECT_EQ(Names(), (List{"two", "one"}));
  Reopen();
  Publish("three");
  EXPECT_EQ(Names(), (List{"three", "two", "one"}));
  Drop(two);
  EXPECT_EQ(Names(), (List{"three", "one"}));
  ASSERT_OK(CollectGarbage(*store_, {.everything = true}));
  EXPECT_EQ(Names(), (List{"three", "one"}));
  Publish("four");
  EXPECT_EQ(Names(), (List{"four", "three", "one"}));
  EXPECT_FALSE(catalog_->trouble().has_value());
  auto problems = catalog_->Check();
  ASSERT_OK(problems);
  EXPECT_EQ(*problems, List{});
}

// The catalogue read a batch that was whole in the page cache and never flushed; the
// index survived the power cut, the batch did not.
TEST_F(CatalogOnStore, ForgetsABatchThatAPowerCutTookAway) {
  Publish("one");
  EXPECT_EQ(Names(), (List{"one"}));
  Name pack = PackFile::FileName(store_->manifest().packs.back().id);
  uint64_t before = disk_.StatAt(store_->packs_dir(), pack)->size;
  Publish("two");
  EXPECT_EQ(Names(), (List{"two", "one"}));
  {
    Fd file = disk_.Open(store_->packs_dir(), pack, OpenMode::ReadWrite()).value();
    ASSERT_OK(disk_.Truncate(file, before));
    ASSERT_OK(disk_.Unlink(store_->dir(), Name::Literal("tail")));
  }
  Reopen();
  EXPECT_EQ(Names(), (List{"one"}));
  Publish("else");
  Reopen();
  EXPECT_EQ(Names(), (List{"else", "one"}));
  auto problems = catalog_->Check();
  ASSERT_OK(problems);
  EXPECT_EQ(*problems, List{});
}

}  // namespace
}  // namespace belay::test
