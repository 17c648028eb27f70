#include "store/catalog.h"

#include <cerrno>

#include "base/fault_fs.h"
#include "catalog_fixture.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

// --- a reference: the same answers from a plain list
// -----------------------------------

struct Model {
  explicit Model(const LogContent& log) {
    std::map<RecordId, uint64_t> drops;
    for (const LogRecord& r : log.records)
      for (const RecordId& id : DroppedBy(r)) drops[id] = std::max(drops[id], r.seq);
    for (const LogRecord& r : log.records) {
      auto drop = drops.find(r.id);
      if (drop == drops.end() || drop->second < r.seq) live[r.seq] = r;
    }
  }
  std::vector<CatalogEntry> Checkpoints() const {
    std::vector<CatalogEntry> out;
    for (const auto& [seq, record] : live) {
      if (record.kind != RecordKind::kCheckpoint) continue;
      CatalogEntry e;
      e.checkpoint = ToCheckpoint(record).value();
      for (const auto& item : live) {
        const LogRecord& note = item.second;  // clang 14 lets no lambda have a binding
        if (AnnotationTarget(note) != record.id) continue;
        auto text = [&](uint64_t tag, std::optional<std::string>& value) {
          auto by = note.fields.Text(tag);
          if (by) value = by->empty() ? std::nullopt : by;
        };
        text(kAnnotationName, e.checkpoint.name);
        text(kAnnotationNote, e.checkpoint.note);
        if (auto pin = note.fields.Number(kAnnotationPinned)) e.pinned = *pin != 0;
        if (auto health = note.fields.Number(kAnnotationHealth)) {
          e.health.reset();
          if (*health == 1) e.health = Health::kPass;
          if (*health == 2) e.health = Health::kFail;
        }
        for (ByteSpan raw : note.fields.All(kAnnotationMeta)) {
          ByteReader r(raw);
          Fields pair = Fields::Decode(r).value();
          e.checkpoint.meta[*pair.Text(1)] = *pair.Text(2);
        }
      }
      out.insert(out.begin(), e);
    }
    return out;
  }
  std::map<uint64_t, LogRecord> live;
};

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() { log_.pack = PackId(random_.NewId()); }
  void SetUp() override { Reopen(); }
  void Reopen() {
    catalog_.reset();
    auto opened = world_.Open(log_);
    ASSERT_OK(opened);
    catalog_ = std::move(*opened);
  }
  RecordId Add(LogRecord record) {
    log_.records.push_back(std::move(record));
    return log_.records.back().id;
  }
  uint64_t NextSeq() const { return log_.records.size() + 1; }
  RecordId AddCheckpoint(std::string_view name, std::string_view description = "") {
    return Add(CheckpointRecord(random_, NextSeq(), root_, name, description));
  }
  RecordId AddNote(const RecordId& target, uint64_t tag, std::string_view text) {
    LogRecord note = AnnotationRecord(random_, NextSeq(), target);
    note.fields.Add(tag, text);
    return Add(std::move(note));
  }
  RecordId AddDrop(const std::vector<RecordId>& ids) {
    return Add(DropRecord(random_, NextSeq(), ids));
  }
  void Fill(size_t count) {
    while (log_.records.size() < count) AddCheckpoint("c" + std::to_string(NextSeq()));
  }
  std::vector<std::string> Names(const Result<std::vector<CatalogEntry>>& list) {
    EXPECT_TRUE(list.ok()) << list.error().what;
    std::vector<std::string> out;
    if (list.ok())
      for (const CatalogEntry& e : *list)
        out.push_back(e.checkpoint.name.value_or("-"));
    return out;
  }
  std::vector<std::string> All() { return Names(catalog_->ListCheckpoints({})); }
  std::vector<std::string> Search(std::string_view words) {
    return Names(catalog_->Search({}, words, 100));
  }
  void ExpectSound() {
    auto problems = catalog_->Check();
    ASSERT_OK(problems);
    for (const std::string& p : *problems) ADD_FAILURE() << p;
  }
  using List = std::vector<std::string>;

  MemFs disk_;
  SeededRandom random_{1};
  RootId root_{random_.NewId()};
  LogContent log_;
  CatalogWorld world_{disk_};
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTest, EmptyLogHasNoAnswersAndNoProblems) {
  EXPECT_EQ(All(), List{});
  EXPECT_EQ(catalog_->Count({}).value(), 0u);
  EXPECT_FALSE(catalog_->LastCheckpoint(root_).value().has_value());
  ExpectSound();
}

TEST_F(CatalogTest, ListsWhatWasPublishedSinceTheLastQuestion) {
  AddCheckpoint("one");
  EXPECT_EQ(All(), (List{"one"}));
  AddCheckpoint("two");
  EXPECT_EQ(All(), (List{"two", "one"}));
  Reopen();
  EXPECT_EQ(All(), (List{"two", "one"}));
  EXPECT_FALSE(catalog_->trouble().has_value());
  ExpectSound();
}

TEST_F(CatalogTest, SeesWhatAnotherProcessWrote) {
  AddCheckpoint("one");
  auto other = world_.Open(log_);
  ASSERT_OK(other);
  for (int i = 0; i < 5; ++i) {
    AddCheckpoint("more");
    EXPECT_EQ(All().size(), log_.records.size());
    AddCheckpoint("more");
    EXPECT_EQ(Names((*other)->ListCheckpoints({})).size(), log_.records.size());
    EXPECT_EQ(All().size(), log_.records.size());
    if (i == 2) ASSERT_OK((*other)->Rebuild());
  }
  ExpectSound();
}

TEST_F(CatalogTest, PagesThroughAList) {
  for (int i = 1; i <= 5; ++i) AddCheckpoint(std::to_string(i));
  CheckpointFilter filter;
  filter.limit = 2;
  EXPECT_EQ(Names(catalog_->ListCheckpoints(filter)), (List{"5", "4"}));
  filter.before_seq = 4;
  EXPECT_EQ(Names(catalog_->ListCheckpoints(filter)), (List{"3", "2"}));
  filter.before_seq = 2;
  EXPECT_EQ(Names(catalog_->ListCheckpoints(filter)), (List{"1"}));
}

TEST_F(CatalogTest, DroppedCheckpointIsInNoAnswer) {
  AddCheckpoint("keep", "words");
  RecordId gone = AddCheckpoint("gone", "words");
  EXPECT_EQ(Search("words"), (List{"gone", "keep"}));
  AddDrop({gone});
  EXPECT_EQ(All(), (List{"keep"}));
  EXPECT_EQ(Search("words"), (List{"keep"}));
  EXPECT_EQ(catalog_->FindByName({}, "gone").error().code, Errc::kNotFound);
  EXPECT_EQ(catalog_->FindById({}, gone.text()).error().code, Errc::kNotFound);
  EXPECT_EQ(catalog_->Count({}).value(), 1u);
  ExpectSound();
}

TEST_F(CatalogTest, DropWorksOnRecordsThatComeLaterInThePacks) {
  LogRecord late = CheckpointRecord(random_, 1, root_, "late");
  log_.records.push_back(DropRecord(random_, 2, {late.id}));
  EXPECT_EQ(All(), List{});
  log_.records.push_back(late);
  EXPECT_EQ(All(), List{});
  ExpectSound();
}

TEST_F(CatalogTest, LatestAnnotationCountsAndItsDropBringsTheOneBeforeBack) {
  RecordId id = AddCheckpoint("first", "text");
  AddNote(id, kAnnotationName, "second");
  RecordId last = AddNote(id, kAnnotationName, "third");
  EXPECT_EQ(All(), (List{"third"}));
  EXPECT_EQ(Search("third"), (List{"third"}));
  EXPECT_EQ(Search("second"), List{});
  EXPECT_EQ(catalog_->FindByName({}, "third").value().entry.checkpoint.id, id);
  EXPECT_EQ(catalog_->FindByName({}, "first").error().code, Errc::kNotFound);
  AddDrop({last});
  EXPECT_EQ(All(), (List{"second"}));
  EXPECT_EQ(Search("second"), (List{"second"}));
  AddNote(id, kAnnotationName, "");
  EXPECT_EQ(All(), (List{"-"}));
  ExpectSound();
}

TEST_F(CatalogTest, PinAndHealthFollowTheLatestAnnotation) {
  RecordId id = AddCheckpoint("a");
  LogRecord note = AnnotationRecord(random_, NextSeq(), id);
  note.fields.AddNumber(kAnnotationPinned, 1);
  note.fields.AddNumber(kAnnotationHealth, 2);
  Add(note);
  auto entry = catalog_->FindById({}, id.text());
  ASSERT_OK(entry);
  EXPECT_TRUE(entry->pinned);
  EXPECT_EQ(entry->health, Health::kFail);
  note = AnnotationRecord(random_, NextSeq(), id);
  note.fields.AddNumber(kAnnotationPinned, 0);
  Add(note);
  entry = catalog_->FindById({}, id.text());
  ASSERT_OK(entry);
  EXPECT_FALSE(entry->pinned);
  EXPECT_EQ(entry->health, Health::kFail);
}

TEST_F(CatalogTest, NewestOfOneNameIsFoundAndTheOthersCounted) {
  AddCheckpoint("same");
  RecordId newest = AddCheckpoint("same");
  auto found = catalog_->Find({}, "same");
  ASSERT_OK(found);
  EXPECT_EQ(found->entry.checkpoint.id, newest);
  EXPECT_EQ(found->others, 1u);
  EXPECT_EQ(catalog_->FindByName(RootId(random_.NewId()), "same").error().code,
            Errc::kNotFound);
}

TEST_F(CatalogTest, NameIsTriedBeforeId) {
  RecordId one = AddCheckpoint("one");
  RecordId two = AddCheckpoint(one.text().substr(0, 8));
  EXPECT_EQ(catalog_->Find({}, one.text().substr(0, 8))->entry.checkpoint.id, two);
  EXPECT_EQ(catalog_->Find({}, one.text())->entry.checkpoint.id, one);
}

TEST_F(CatalogTest, PrefixMustBeLongEnoughAndFitOne) {
  // Two ids that differ in the last of 16 bytes, so in the last characters only.
  LogRecord one = CheckpointRecord(random_, 1, root_, "one");
  LogRecord two = CheckpointRecord(random_, 2, root_, "two");
  two.id = one.id;
  one.id.bytes[15] = std::byte{0x11};
  two.id.bytes[15] = std::byte{0x2f};
  log_.records = {one, two};
  std::string text = one.id.text();
  for (size_t length = 0; length <= text.size(); ++length) {
    SCOPED_TRACE(length);
    auto found = catalog_->FindById({}, text.substr(0, length));
    bool shared = two.id.text().starts_with(text.substr(0, length));
    if (length < 4) {
      EXPECT_EQ(found.error().code, Errc::kNotFound);
    } else if (shared) {
      EXPECT_EQ(found.error().code, Errc::kInvalid);
      EXPECT_NE(found.error().what.find(two.id.text()), std::string::npos);
    } else {
      ASSERT_OK(found);
      EXPECT_EQ(found->checkpoint.id, one.id);
    }
  }
  for (const char* bad : {"", "abc", "1234", "llll", "ABCD", "abcd efg", "zzzzz"})
    EXPECT_EQ(catalog_->FindById({}, bad).error().code, Errc::kNotFound) << bad;
  EXPECT_EQ(catalog_->FindById({}, text + "a").error().code, Errc::kNotFound);
}

TEST_F(CatalogTest, InnermostRootIsTheDeepestThatHoldsThePath) {
  RootId outer(random_.NewId()), inner(random_.NewId()), moved(random_.NewId());
  Add(RootRecord(1, outer, "/home/u"));
  Add(RootRecord(2, inner, "/home/u/work"));
  Add(RootRecord(3, moved, "/home/u/work/old"));
  Add(RootRecord(4, moved, "/srv/new"));
  auto at = [&](std::string_view path) {
    auto found = catalog_->InnermostRoot(AbsPath::Literal(path));
    EXPECT_TRUE(found.ok());
    return *found ? (*found)->root.path : std::string("none");
  };
  EXPECT_EQ(at("/home/u"), "/home/u");
  EXPECT_EQ(at("/home/u/work/old/x"), "/home/u/work");
  EXPECT_EQ(at("/home/u/workshop"), "/home/u");
  EXPECT_EQ(at("/srv/new/y"), "/srv/new");
  EXPECT_EQ(at("/srv"), "none");
  EXPECT_EQ(catalog_->Roots()->size(), 3u);
  // Dropping a root, then protecting it again under the same id.
  Add(DropRecord(random_, 5, {RecordId(inner)}));
  EXPECT_EQ(at("/home/u/work/x"), "/home/u");
  Add(RootRecord(6, inner, "/home/u/work"));
  EXPECT_EQ(at("/home/u/work/x"), "/home/u/work");
  ExpectSound();
}

TEST_F(CatalogTest, SearchFindsWordsOfNameNoteDescriptionAndPrompt) {
  Checkpoint c = ToCheckpoint(CheckpointRecord(random_, 1, root_, "Release")).value();
  c.note = "before the naïve refactoring";
  c.description = "before Bash: rm -rf build";
  c.prompt = "please rename src/app_main.ts";
  Add(ToRecord(c));
  for (const char* words : {"release", "REL", "naive refact", "rm -rf", "app_main.ts",
                            "src", "bash please", "buil"})
    EXPECT_EQ(Search(words), (List{"Release"})) << words;
  for (const char* words : {"ease", "releas refactoring", "nothing", "rm release2"})
    EXPECT_EQ(Search(words), List{}) << words;
  EXPECT_EQ(Names(catalog_->Search(RootId(random_.NewId()), "release", 9)), List{});
  EXPECT_EQ(Names(catalog_->Search(root_, "release", 9)), (List{"Release"}));
}

TEST_F(CatalogTest, SearchFindsPathsThatChanged) {
  Checkpoint c = ToCheckpoint(CheckpointRecord(random_, 1, root_, "edit")).value();
  c.paths = {"src/app_main.ts", "docs/Ünicode.md", "bad\xff name", "a b/c"};
  Add(ToRecord(c));
  for (const char* words : {"src/app_main.ts", "app_main", "src/app", "unicode.md",
                            "docs", "bad name", "\"src/app\" docs"})
    EXPECT_EQ(Search(words), (List{"edit"})) << words;
  for (const char* words : {"main.app", "\"main app\"", "app_main.tsx"})
    EXPECT_EQ(Search(words), List{}) << words;
  EXPECT_EQ(catalog_->ListCheckpoints({})->at(0).checkpoint.paths, c.paths);
  ExpectSound();
}

TEST_F(CatalogTest, SearchKnowsPhrasesAndBeginnings) {
  AddCheckpoint("one", "the login form of the page");
  AddCheckpoint("two", "a form to login with");
  EXPECT_EQ(Search("login form").size(), 2u);
  EXPECT_EQ(Search("\"login form\""), (List{"one"}));
  EXPECT_EQ(Search("page \"login form\""), (List{"one"}));
  EXPECT_EQ(Search("\"login form").size(), 2u);  // not closed: two words
  EXPECT_EQ(Search("\"login for\""), List{});    // a phrase is finished
  EXPECT_EQ(Search("log* page"), (List{"one"}));
  EXPECT_EQ(Search("log page"), List{});  // only the last may be unfinished
  EXPECT_EQ(Search("page log"), (List{"one"}));
  AddCheckpoint("cpp", "c++ and more");
  AddCheckpoint("camel", "camelCase");
  EXPECT_EQ(Search("c++"), (List{"cpp"}));                 // no beginning of camelCase
  EXPECT_EQ(Search("-- login !!"), (List{"two", "one"}));  // what holds no word
  EXPECT_EQ(Search("\xe2\x86\x92 page"), (List{"one"}));   // an arrow
}

TEST_F(CatalogTest, TheBestAnswerComesFirst) {
  Checkpoint c = ToCheckpoint(CheckpointRecord(random_, 1, root_, "parser")).value();
  Add(ToRecord(c));
  c = ToCheckpoint(CheckpointRecord(random_, 2, root_, "note")).value();
  c.note = "the parser";
  Add(ToRecord(c));
  c = ToCheckpoint(CheckpointRecord(random_, 3, root_, "path")).value();
  c.paths = {"src/parser.cc"};
  Add(ToRecord(c));
  AddCheckpoint("other", "nothing of the kind");
  EXPECT_EQ(Search("parser"), (List{"parser", "note", "path"}));
  EXPECT_EQ(Names(catalog_->Search({}, "parser", 1)), (List{"parser"}));
}

TEST_F(CatalogTest, ANameComesBeforeANoteThatSaysItOften) {
  AddCheckpoint("the long way to another parser that is better", "");
  Checkpoint c = ToCheckpoint(CheckpointRecord(random_, 9, root_, "note")).value();
  c.note = "parser parser parser";
  Add(ToRecord(c));
  EXPECT_EQ(Search("parser"),
            (List{"the long way to another parser that is better", "note"}));
}

TEST_F(CatalogTest, SearchFindsWhatFullTextHasNoWordsFor) {
  AddCheckpoint("ship it \xf0\x9f\x9a\x80", "");
  AddCheckpoint("a -> b", "");
  AddCheckpoint("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "");  // three signs, no blank
  Checkpoint c = ToCheckpoint(CheckpointRecord(random_, 9, root_, "note")).value();
  c.note = "launch \xf0\x9f\x9a\x80 soon";
  Add(ToRecord(c));
  const List ship = {"ship it \xf0\x9f\x9a\x80", "note"};
  EXPECT_EQ(Search("\xf0\x9f\x9a\x80"), ship) << "the name first, though older";
  EXPECT_EQ(Search("\"\xf0\x9f\x9a\x80"), ship) << "not closed";
  EXPECT_EQ(Search("->"), (List{"a -> b"}));
  EXPECT_EQ(Search("\xe6\x9c\xac\xe8\xaa\x9e"),
            (List{"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"}));
  EXPECT_EQ(Search("\xf0\x9f\x9a\x80 launch"), (List{"note"}));
  EXPECT_EQ(Search("\xf0\x9f\x9a\x81"), List{});
  EXPECT_EQ(Search("hip"), List{}) << "a plain word is a word";
  EXPECT_EQ(Search("\"\""), List{});
  EXPECT_EQ(Names(catalog_->Search(root_, "->", 9)), (List{"a -> b"}));
  EXPECT_EQ(Names(catalog_->Search(RootId(random_.NewId()), "->", 9)), List{});
}

TEST_F(CatalogTest, SearchOfASessionFindsNothingElse) {
  for (const char* session : {"s1", "s2"}) {
    Checkpoint c =
        ToCheckpoint(CheckpointRecord(random_, NextSeq(), root_, session, "words"))
            .value();
    c.session = session;
    Add(ToRecord(c));
  }
  AddCheckpoint("none", "words");
  EXPECT_EQ(Names(catalog_->Search({}, "words", 9, "s1")), (List{"s1"}));
  EXPECT_EQ(Names(catalog_->Search(root_, "words", 9, "s2")), (List{"s2"}));
  EXPECT_EQ(Names(catalog_->Search(root_, "words", 9, "s3")), List{});
}

TEST_F(CatalogTest, RandomBytesAreNeverSyntax) {
  AddCheckpoint("a", "plain");
  const uint64_t seed = TestSeed(11);
  SeededRandom random(seed);
  const std::string parts[] = {"\"", "*", " ", "NEAR", "(", ")", "AND", "OR",   "NOT",
                               "^",  ":", "{", "}",    "-", "+", "a",   "\xff", "\xc3"};
  for (int i = 0; i < 5000; ++i) {
    std::string words;
    for (uint64_t n = random.Below(24); n-- > 0;)
      words += random.Below(4) == 0
                   ? std::string(1, static_cast<char>(random.Below(256)))
                   : parts[random.Below(std::size(parts))];
    auto found = catalog_->Search({}, words, 10);
    ASSERT_TRUE(found.ok()) << ToHex(AsBytes(words)) << found.error().what;
  }
}

TEST_F(CatalogTest, TheOutlineSaysWhatTheRecordsSay) {
  for (int i = 0; i < 5; ++i) {
    Checkpoint c = ToCheckpoint(CheckpointRecord(random_, NextSeq(), root_)).value();
    if (i % 2 == 0) c.session = "s" + std::to_string(i);
    if (i % 3 == 0) c.turn = static_cast<uint64_t>(i);
    c.kind = static_cast<CheckpointKind>(i % 3);
    c.added = 1;
    c.modified = static_cast<uint64_t>(i);
    c.deleted = 2;
    c.took_us = 1000u + static_cast<uint64_t>(i);
    const RecordId id = Add(ToRecord(c));
    if (i == 2 || i == 4) {
      LogRecord pin = AnnotationRecord(random_, NextSeq(), id);
      pin.fields.AddNumber(kAnnotationPinned, 1);
      Add(std::move(pin));
    }
  }
  auto rows = catalog_->Outline(root_);
  ASSERT_OK(rows);
  auto entries = catalog_->ListCheckpoints({.root = root_});
  ASSERT_OK(entries);
  ASSERT_EQ(rows->size(), entries->size());
  std::vector<uint64_t> seqs;
  for (size_t i = 0; i < rows->size(); ++i) {
    const CheckpointRow& row = (*rows)[i];
    const Checkpoint& c = (*entries)[i].checkpoint;
    EXPECT_EQ(std::tie(row.seq, row.id, row.kind, row.session, row.turn, row.took_us,
                       row.made_ms, row.pinned),
              std::tie(c.seq, c.id, c.kind, c.session, c.turn, c.took_us, c.made_ms,
                       (*entries)[i].pinned));
    EXPECT_EQ(row.changed, c.added + c.modified + c.deleted);
    seqs.push_back(c.seq);
  }
  EXPECT_EQ(*catalog_->Load(seqs), *entries);
  EXPECT_EQ(catalog_->Load({99}).error().code, Errc::kCorrupt);
  EXPECT_TRUE(catalog_->Outline(RootId(random_.NewId()))->empty());
}

TEST_F(CatalogTest, SearchTakesAnythingAsWords) {
  AddCheckpoint("a", "plain");
  std::string nul("a\0b", 3);
  const std::string hostile[] = {"",
                                 " ",
                                 "\"",
                                 "\"\"",
                                 "*",
                                 "^",
                                 "a*",
                                 "a NEAR b",
                                 "NEAR(",
                                 "NEAR(a b, 5)",
                                 "AND",
                                 "a AND",
                                 "OR OR",
                                 "NOT a",
                                 "(",
                                 ")",
                                 "(a",
                                 "a)",
                                 "{name}: a",
                                 "name:a",
                                 "-a",
                                 "+a",
                                 "a+b",
                                 "a:b:c",
                                 "'",
                                 "';DROP TABLE records;--",
                                 "%",
                                 "\\",
                                 "\xff\xfe",
                                 "\xc3",
                                 nul,
                                 "\n\t\r",
                                 std::string(4096, '"'),
                                 std::string(4096, 'a'),
                                 "\xe2\x80\xae"
                                 "abc",
                                 "search",
                                 "rank:1",
                                 "a\"b\"c*",
                                 "??",
                                 "!!! ???",
                                 "a . b"};
  for (const std::string& words : hostile) {
    SCOPED_TRACE(ToHex(AsBytes(words.substr(0, 40))));
    auto found = catalog_->Search({}, words, 10);
    EXPECT_TRUE(found.ok()) << found.error().what;
  }
  EXPECT_EQ(catalog_->Search({}, std::string(5000, 'a'), 10).error().code,
            Errc::kInvalid);
  std::string many;
  for (int i = 0; i < 65; ++i) many += "w ";
  EXPECT_EQ(catalog_->Search({}, many, 10).error().code, Errc::kInvalid);
  EXPECT_EQ(Search("plain"), (List{"a"}));
}

TEST_F(CatalogTest, AnotherGenerationIsBuiltAnew) {
  AddCheckpoint("one");
  AddCheckpoint("two");
  EXPECT_EQ(All().size(), 2u);
  // GC: another pack, one record less, one copied; the numbers stay.
  log_.records.erase(log_.records.begin());
  log_.generation = 2;
  log_.pack = PackId(random_.NewId());
  EXPECT_EQ(All(), (List{"two"}));
  ExpectSound();
}

TEST_F(CatalogTest, LogThatLostItsTailAndGrewAgainIsBuiltAnew) {
  AddCheckpoint("one");
  AddCheckpoint("never flushed");
  EXPECT_EQ(All().size(), 2u);
  log_.records.pop_back();
  EXPECT_EQ(All(), (List{"one"}));
  AddCheckpoint("never flushed either");
  EXPECT_EQ(All().size(), 2u);
  log_.records.pop_back();
  AddCheckpoint("two");  // as long as before, with other bytes
  EXPECT_EQ(All(), (List{"two", "one"}));
  ExpectSound();
}

TEST_F(CatalogTest, TwoRecordsWithOneNumberEndTheSameInAnyOrder) {
  LogRecord a = CheckpointRecord(random_, 1, root_, "a");
  LogRecord b = CheckpointRecord(random_, 1, root_, "b");
  log_.records = {a, b, a};
  List forward = All();
  EXPECT_EQ(forward.size(), 1u);
  log_.records = {b, a, b, b};
  log_.generation = 2;
  EXPECT_EQ(All(), forward);
  ExpectSound();
}

TEST_F(CatalogTest, RecordsNoWriterMakesDoNoHarm) {
  LogRecord odd = CheckpointRecord(random_, 0, root_, "zero");
  Add(odd);
  odd.seq = UINT64_MAX;
  Add(odd);
  LogRecord broken = CheckpointRecord(random_, 3, root_, "no state");
  broken.refs.clear();
  Add(broken);
  LogRecord note = AnnotationRecord(random_, 4, broken.id);
  note.fields.Add(kAnnotationTarget, "twice");
  Add(note);
  EXPECT_EQ(All(), List{});
  EXPECT_EQ(catalog_->ListRecords({.kind = RecordKind::kCheckpoint})->size(), 1u);
  ExpectSound();
}

TEST_F(CatalogTest, RandomLogsGiveTheModelsAnswersCaughtUpOrRebuilt) {
  uint64_t first = TestSeed(1);
  for (uint64_t seed = first; seed < first + (RunEverything() ? 200 : 10); ++seed) {
    SCOPED_TRACE("BELAY_SEED=" + std::to_string(seed));
    LogContent all = RandomLog(seed, 120);
    SeededRandom random(seed);
    LogContent log = all;
    log.records.clear();
    MemFs disk;
    CatalogWorld world(disk);
    world.options.checkpoint_wal_bytes = 100'000;  // now and then
    auto opened = world.Open(log);
    ASSERT_OK(opened);
    std::unique_ptr<Catalog> catalog = std::move(*opened);
    for (const LogRecord& r : all.records) {
      log.records.push_back(r);
      if (random.Below(8) == 0) ASSERT_OK(catalog->CatchUp());
      if (random.Below(30) == 0) {
        catalog.reset();
        catalog = world.Open(log).value();
      }
    }
    auto caught_up = AllAnswers(*catalog);
    ASSERT_OK(caught_up);
    EXPECT_FALSE(catalog->trouble().has_value());
    auto problems = catalog->Check();
    ASSERT_OK(problems);
    EXPECT_EQ(*problems, List{});

    Model model(log);
    EXPECT_EQ(*catalog->ListCheckpoints({}), model.Checkpoints());
    ASSERT_OK(catalog->Rebuild());
    EXPECT_EQ(AllAnswers(*catalog).value(), *caught_up);
    problems = catalog->Check();
    ASSERT_OK(problems);
    EXPECT_EQ(*problems, List{});
  }
}

TEST_F(CatalogTest, LongWalIsMovedIntoTheFile) {
  world_.options.checkpoint_wal_bytes = 64 << 10;
  Reopen();
  uint64_t longest = 0;
  for (int i = 0; i < 40; ++i) {
    AddCheckpoint("name " + std::to_string(i), "words and more words");
    ASSERT_OK(catalog_->CatchUp());
    auto wal = disk_.StatAt(*world_.CatalogDir(), Name::Literal("catalog.db-wal"));
    ASSERT_OK(wal);
    longest = std::max(longest, wal->size);
  }
  EXPECT_LE(longest, 64u << 10);
  EXPECT_EQ(All().size(), 40u);
  ExpectSound();
}

TEST_F(CatalogTest, FilesArePrivate) {
  AddCheckpoint("a");
  EXPECT_EQ(All().size(), 1u);
  auto dir = world_.CatalogDir();
  ASSERT_OK(dir);
  EXPECT_EQ(disk_.Stat(*dir)->mode, 0700u);
  auto files = disk_.List(*dir);
  ASSERT_OK(files);
  for (const DirEntry& e : *files) {
    EXPECT_EQ(disk_.StatAt(*dir, Name::Literal(e.name))->mode, 0600u) << e.name;
    EXPECT_TRUE(e.name == "catalog.db" || e.name == "catalog.db-wal" ||
                e.name == "changes")
        << e.name;
  }
}

TEST_F(CatalogTest, ReadingWritesNothing) {
  AddCheckpoint("a");
  EXPECT_EQ(All().size(), 1u);
  Reopen();
  FaultFs counted(disk_);
  CatalogWorld reader(counted);
  auto catalog = reader.Open(log_);
  ASSERT_OK(catalog);
  EXPECT_EQ(Names((*catalog)->ListCheckpoints({})).size(), 1u);
  EXPECT_EQ(Names((*catalog)->Search({}, "a", 9)).size(), 1u);
  for (FsCall call : {FsCall::kWrite, FsCall::kTruncate, FsCall::kUnlink, FsCall::kSync,
                      FsCall::kSyncData, FsCall::kRename})
    EXPECT_EQ(counted.calls(call), 0u) << FsCallName(call);
}

TEST_F(CatalogTest, CatchingUpFlushesNothing) {
  AddCheckpoint("a");
  EXPECT_EQ(All().size(), 1u);
  AddCheckpoint("b");
  EXPECT_EQ(All().size(), 2u);  // the first write to a new WAL flushes its header
  AddCheckpoint("c");
  FaultFs counted(disk_);
  CatalogWorld reader(counted);
  auto catalog = reader.Open(log_);
  ASSERT_OK(catalog);
  EXPECT_EQ(Names((*catalog)->ListCheckpoints({})).size(), 3u);
  EXPECT_EQ(counted.calls(FsCall::kSync) + counted.calls(FsCall::kSyncData), 0u);
}

TEST_F(CatalogTest, FullDiskIsReportedAndQuestionsAreStillAnswered) {
  AddCheckpoint("one");
  EXPECT_EQ(All().size(), 1u);
  AddCheckpoint("two");
  disk_.SetCapacity(disk_.used_bytes());
  EXPECT_EQ(catalog_->CatchUp().error().code, Errc::kNoSpace);
  EXPECT_EQ(All(), (List{"two", "one"}));
  ASSERT_TRUE(catalog_->trouble().has_value());
  EXPECT_EQ(catalog_->trouble()->code, Errc::kNoSpace);
  AddCheckpoint("three");
  EXPECT_EQ(All(), (List{"three", "two", "one"}));
  disk_.SetCapacity(UINT64_MAX);
  EXPECT_EQ(All(), (List{"three", "two", "one"}));
  EXPECT_FALSE(catalog_->trouble().has_value());
  ExpectSound();
}

TEST_F(CatalogTest, ReadOnlyDiskIsNoObstacle) {
  AddCheckpoint("one");
  disk_.SetReadOnly(true);
  auto catalog =
      Catalog::Open({disk_, world_.clock, world_.random, world_.locks, world_.dir},
                    std::make_unique<FakeLog>(log_));
  ASSERT_OK(catalog);
  auto list = (*catalog)->ListCheckpoints({});
  disk_.SetReadOnly(false);
  ASSERT_OK(list);
  EXPECT_EQ(Names(list), (List{"one"}));
  EXPECT_TRUE((*catalog)->trouble().has_value());
}

TEST_F(CatalogTest, SomethingElseUnderTheNameOfAFileIsNoObstacle) {
  Fill(20);
  for (const char* file :
       {"catalog.db", "catalog.db-wal", "changes", "catalog.new", "catalog.next"})
    for (FileType type : {FileType::kDirectory, FileType::kSymlink, FileType::kFifo}) {
      SCOPED_TRACE(std::string(file) + " is " + std::string(FileTypeName(type)));
      auto disk = disk_.Clone();
      CatalogWorld world(*disk);
      auto catalog = world.Open(log_);
      ASSERT_OK((*catalog)->CatchUp());
      Fd dir = world.CatalogDir().value();
      const Name name = Name::Literal(file);
      (void)disk->Unlink(dir, name);
      if (type == FileType::kDirectory)
        ASSERT_OK(disk->MakeDir(dir, name, 0700));
      else if (type == FileType::kSymlink)
        ASSERT_OK(disk->Symlink(dir, name, "/nowhere"));
      else
        ASSERT_OK(disk->MakeSpecial(dir, name, type, 0600));
      auto another = world.Open(log_);
      auto answers = AllAnswers(**another);
      ASSERT_OK(answers);
      EXPECT_EQ(*answers, TrueAnswers(log_));
      auto moved = (*another)->ClearTheWay();
      ASSERT_OK(moved);
      EXPECT_EQ(moved->size(), 1u);
      ASSERT_OK((*another)->Rebuild());
      ASSERT_OK(AllAnswers(**another));
      EXPECT_FALSE((*another)->trouble());
      EXPECT_TRUE((*another)->Check()->empty());
      EXPECT_EQ(disk->StatAt(dir, Name::Literal(std::string(file) + ".aside"))->type,
                type);
    }
}

TEST_F(CatalogTest, SomethingElseUnderTheNameOfItsDirectoryIsNoObstacle) {
  Fill(20);
  for (FileType type : {FileType::kFifo, FileType::kSymlink}) {
    MemFs disk;
    CatalogWorld world(disk);
    auto catalog = world.Open(log_);
    const Name name = Name::Literal("catalog");
    if (type == FileType::kFifo)
      ASSERT_OK(disk.MakeSpecial(world.dir, name, type, 0600));
    else
      ASSERT_OK(disk.Symlink(world.dir, name, "/nowhere"));
    auto answers = AllAnswers(**catalog);
    ASSERT_OK(answers);
    EXPECT_EQ(*answers, TrueAnswers(log_));
    EXPECT_TRUE((*catalog)->trouble());
    ASSERT_OK((*catalog)->ClearTheWay());
    ASSERT_OK((*catalog)->Rebuild());
    EXPECT_TRUE(disk.StatAt(world.dir, Name::Literal("catalog.aside")).ok());
  }
}

TEST_F(CatalogTest, CheckingAndRememberingChangeNothing) {
  Fill(20);
  ASSERT_OK(catalog_->CatchUp());
  Fill(30);  // not caught up with
  const std::string before = disk_.TreeText();
  EXPECT_TRUE(catalog_->Check()->empty());
  EXPECT_EQ(disk_.TreeText(), before);
  disk_.SetReadOnly(true);
  EXPECT_TRUE(catalog_->Check()->empty());
  EXPECT_FALSE(catalog_->Remembered(log_.generation).empty());
  EXPECT_TRUE(catalog_->Remembered(log_.generation).front().sure);
  EXPECT_FALSE(catalog_->Remembered(log_.generation + 1).front().sure);
}

TEST_F(CatalogTest, WriterInTheWayIsBusy) {
  AddCheckpoint("one");
  EXPECT_EQ(All().size(), 1u);
  auto writer = world_.locks.Acquire(StoreLock::kCatalog, LockMode::kExclusive);
  ASSERT_OK(writer);
  EXPECT_EQ(catalog_->Count({}).error().code, Errc::kBusy);
  writer->Release();
  auto reader = world_.locks.Acquire(StoreLock::kCatalog, LockMode::kShared);
  ASSERT_OK(reader);
  EXPECT_EQ(catalog_->Count({}).value(), 1u);  // readers do not mind each other
}

}  // namespace
}  // namespace belay::test
