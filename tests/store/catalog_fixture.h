#pragma once

// What the catalogue's tests share: a log in memory, random records, and every answer a
// catalogue gives as one text.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "base/mem_fs.h"
#include "store/catalog.h"

namespace belay::test {

#define ASSERT_OK(expression)                              \
  do {                                                     \
    auto&& ok_result = (expression);                       \
    ASSERT_TRUE(ok_result.ok()) << ok_result.error().what; \
  } while (false)

// The log of a store that is not there: one pack, a record a batch.
struct LogContent {
  uint64_t generation = 1;
  PackId pack;
  std::vector<LogRecord> records;
};

class FakeLog final : public LogSource {
 public:
  explicit FakeLog(const LogContent& content) : content_(content) {}
  Result<HeldLock> Hold() override { return HeldLock(); }
  Result<LogPosition> Read(
      const std::optional<LogPosition>& after,
      const std::function<Status(const LogRecord&)>& visit) override {
    size_t from = 0;
    if (after && after->generation == content_.generation) from = after->offset;
    for (size_t i = from; i < content_.records.size(); ++i)
      BELAY_OK(visit(content_.records[i]));
    return LogPosition{content_.generation, content_.pack,
                       std::max(from, content_.records.size())};
  }
  Result<std::optional<Hash256>> Mark(const LogPosition& at) override {
    if (at.pack != content_.pack || at.offset > content_.records.size())
      return std::optional<Hash256>();
    if (at.offset == 0) return std::optional(Hash256());
    return std::optional(Sha256::Of(EncodeLogRecord(content_.records[at.offset - 1])));
  }

 private:
  const LogContent& content_;
};

// A place for a catalogue on any Fs; `store` is its directory, made if it is not there.
class CatalogWorld {
 public:
  explicit CatalogWorld(Fs& f, const CatalogOptions& o = {}) : fs(f), options(o) {}

  Result<std::unique_ptr<Catalog>> Open(const LogContent& content) {
    if (!dir.is_open()) {
      BELAY_TRY(dir, MakeDirs(fs, AbsPath::Literal("/store"), 0700));
    }
    return Catalog::Open({fs, clock, random, locks, dir},
                         std::make_unique<FakeLog>(content), options);
  }
  Result<Fd> CatalogDir() {
    return fs.Open(dir, Name::Literal("catalog"), OpenMode::Directory());
  }

  Fs& fs;
  CatalogOptions options;
  FakeClock clock;
  SeededRandom random{7};
  Fd dir;
  StoreLocks locks{fs, clock, dir, /*wait_ms=*/100};
};

inline LogRecord CheckpointRecord(Random& random, uint64_t seq, const RootId& root,
                                  std::string_view name = "",
                                  std::string_view description = "") {
  Checkpoint c;
  c.id = RecordId(random.NewId());
  c.seq = seq;
  c.root = root;
  c.made_ms = 1'800'000'000'000 + static_cast<int64_t>(seq);
  c.state = Sha256::Of(AsBytes("state " + std::to_string(seq)));
  if (!name.empty()) c.name = std::string(name);
  c.description = std::string(description);
  return ToRecord(c);
}

inline LogRecord AnnotationRecord(Random& random, uint64_t seq,
                                  const RecordId& target) {
  LogRecord record;
  record.kind = RecordKind::kAnnotation;
  record.seq = seq;
  record.id = RecordId(random.NewId());
  record.fields.Add(kAnnotationTarget, target.span());
  return record;
}

inline LogRecord DropRecord(Random& random, uint64_t seq,
                            const std::vector<RecordId>& ids) {
  LogRecord record = MakeDrop(RecordId(random.NewId()), 0, ids);
  record.seq = seq;
  return record;
}

inline LogRecord RootRecord(uint64_t seq, const RootId& id, std::string_view path) {
  LogRecord record = ToRecord(Root{id, std::string(path)}, RecordId(id), 0);
  record.seq = seq;
  return record;
}

// A log with a bit of everything, in an order that GC could have left: a few records
// stand before ones they come after.
inline LogContent RandomLog(uint64_t seed, size_t count) {
  SeededRandom random(seed);
  LogContent log;
  log.pack = PackId(random.NewId());
  std::vector<RootId> roots;
  for (int i = 0; i < 3; ++i) roots.emplace_back(random.NewId());
  std::vector<RecordId> ids;
  const char* words[] = {"build", "fix",  "src/app.ts", "rm -rf", "tests",
                         "naïve", "Über", "日本語",     "a\xff",  "\"quoted\""};
  auto word = [&] { return std::string(words[random.Below(std::size(words))]); };
  auto maybe = [&]() -> std::optional<std::string> {
    if (random.Below(3) != 0) return std::nullopt;
    return word() + " " + word();
  };
  for (uint64_t seq = 1; seq <= count; ++seq) {
    const RootId& root = roots[random.Below(roots.size())];
    LogRecord record;
    switch (random.Below(12)) {
      case 0:
        record = RootRecord(seq, root, "/home/u/" + std::to_string(random.Below(4)));
        break;
      case 1:
      case 2: {
        if (ids.empty()) continue;
        record = AnnotationRecord(random, seq, ids[random.Below(ids.size())]);
        if (random.Below(2)) record.fields.Add(kAnnotationName, word());
        if (random.Below(4) == 0) record.fields.Add(kAnnotationName, "");
        if (random.Below(2)) record.fields.Add(kAnnotationNote, word());
        if (random.Below(2)) record.fields.AddNumber(kAnnotationPinned, seq % 2);
        if (random.Below(2)) record.fields.AddNumber(kAnnotationHealth, seq % 4);
        if (random.Below(2)) {
          Fields pair;
          pair.Add(1, word());
          pair.Add(2, word());
          record.fields.AddNested(kAnnotationMeta, pair);
        }
        break;
      }
      case 3: {
        if (ids.empty()) continue;
        std::vector<RecordId> gone;
        for (uint64_t i = random.Below(3); i-- > 0;)
          gone.push_back(ids[random.Below(ids.size())]);
        record = DropRecord(random, seq, gone);
        break;
      }
      case 4:
        record.kind = static_cast<RecordKind>(4 + random.Below(20));
        if (record.kind == RecordKind::kDrop) record.kind = RecordKind::kTurn;
        record.seq = seq;
        record.id = RecordId(random.NewId());
        record.root = root;
        record.fields.Add(1, word());
        break;
      default: {
        Checkpoint c;
        c.id = RecordId(random.NewId());
        c.seq = seq;
        c.root = root;
        c.made_ms = static_cast<int64_t>(1'000'000 + random.Below(100'000));
        c.state = Sha256::Of(AsBytes(std::to_string(random.Below(8))));
        c.kind = static_cast<CheckpointKind>(random.Below(3));
        c.name = maybe();
        c.note = maybe();
        c.description = word();
        c.session = maybe();
        c.prompt = maybe();
        c.tool_use_id = maybe();
        if (random.Below(2)) c.turn = random.Below(5);
        if (random.Below(3) == 0) c.meta[word()] = word();
        c.files = random.Below(1000);
        record = ToRecord(c);
      }
    }
    ids.push_back(record.id);
    log.records.push_back(std::move(record));
    if (log.records.size() > 1 && random.Below(6) == 0)
      std::swap(log.records[log.records.size() - 1],
                log.records[random.Below(log.records.size())]);
  }
  return log;
}

inline void Show(std::ostream& out, const CatalogEntry& e) {
  out << e.checkpoint.seq << ' ' << ToHex(EncodeLogRecord(ToRecord(e.checkpoint)))
      << ' ' << e.pinned << ' ' << (e.health ? static_cast<int>(*e.health) : 0) << '\n';
}

// Every question once; a failed one makes the whole answer that failure.
inline Result<std::string> AllAnswers(Catalog& catalog) {
  std::ostringstream out;
  BELAY_TRY(auto all, catalog.ListCheckpoints({}));
  std::set<RootId> roots;
  std::set<std::string> sessions, names, tools;
  for (const CatalogEntry& e : all) {
    Show(out, e);
    roots.insert(e.checkpoint.root);
    if (e.checkpoint.session) sessions.insert(*e.checkpoint.session);
    if (e.checkpoint.name) names.insert(*e.checkpoint.name);
    if (e.checkpoint.tool_use_id) tools.insert(*e.checkpoint.tool_use_id);
    BELAY_TRY(CatalogEntry same, catalog.FindById({}, e.checkpoint.id.text()));
    if (!(same == e)) out << "found another\n";
    BELAY_TRY(auto notes, catalog.Annotations(e.checkpoint.id));
    out << notes.size() << '\n';
  }
  auto list = [&](const CheckpointFilter& filter) -> Status {
    BELAY_TRY(auto some, catalog.ListCheckpoints(filter));
    out << "list:";
    for (const CatalogEntry& e : some) out << ' ' << e.checkpoint.seq;
    out << '\n';
    return Ok();
  };
  for (const RootId& root : roots) {
    BELAY_OK(list({.root = root}));
    BELAY_OK(list({.root = root, .made_until_ms = 1'050'000, .limit = 2}));
    BELAY_TRY(auto last, catalog.LastCheckpoint(root));
    if (last) Show(out, *last);
    BELAY_TRY(uint64_t count, catalog.Count(root));
    out << "count " << count << '\n';
  }
  for (const std::string& s : sessions) BELAY_OK(list({.session = s}));
  for (const std::string& t : tools) BELAY_OK(list({.tool_use_id = t}));
  for (int kind = 0; kind < 3; ++kind)
    BELAY_OK(list({.kind = static_cast<CheckpointKind>(kind)}));
  for (uint64_t turn = 0; turn < 5; ++turn) BELAY_OK(list({.turn = turn}));
  for (const std::string& name : names) {
    BELAY_TRY(auto found, catalog.FindByName({}, name));
    out << name << ' ' << found.entry.checkpoint.seq << " and " << found.others << '\n';
  }
  for (const char* words : {"build", "fix tes", "rm -rf", "NAIVE", "uber", "日本",
                            "\"quoted\"", "a", "app.ts src"}) {
    BELAY_TRY(auto found, catalog.Search({}, words, 1000));
    out << "search " << words << ':';
    for (const CatalogEntry& e : found) out << ' ' << e.checkpoint.seq;
    out << '\n';
  }
  BELAY_TRY(auto places, catalog.Roots());
  for (const RootEntry& r : places)
    out << r.root.path << ' ' << r.root.id.text() << ' ' << r.seq << '\n';
  BELAY_TRY(auto inner, catalog.InnermostRoot(AbsPath::Literal("/home/u/1/src")));
  out << (inner ? inner->root.path : "no root") << '\n';
  for (uint16_t kind = 1; kind < 26; ++kind) {
    BELAY_TRY(auto records,
              catalog.ListRecords({.kind = static_cast<RecordKind>(kind)}));
    for (const LogRecord& r : records) out << kind << ToHex(EncodeLogRecord(r)) << '\n';
  }
  BELAY_TRY(uint64_t count, catalog.Count({}));
  out << "count " << count << '\n';
  return out.str();
}

// The same from a catalogue that was built from nothing, in memory.
inline std::string TrueAnswers(const LogContent& content) {
  MemFs disk;
  CatalogWorld world(disk);
  auto catalog = world.Open(content);
  EXPECT_TRUE(catalog.ok());
  auto answers = AllAnswers(**catalog);
  EXPECT_TRUE(answers.ok()) << answers.error().what;
  return answers.ok() ? *answers : "";
}

}  // namespace belay::test
