// What happens to a small store when its files are damaged in every way we can think
// of: found, named, nothing wrong handed out, nothing else lost.

#include <gtest/gtest.h>

#include <set>

#include "base/mem_fs.h"
#include "crash/hook_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/crash_harness.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSlow = 23;  // one position of so many
#else
constexpr uint64_t kSlow = 1;
#endif
uint64_t Stride(uint64_t wanted) { return RunEverything() ? wanted : wanted * kSlow; }

template <class T>
T Need(Result<T> result, int line = __builtin_LINE()) {
  if (!result.ok()) {
    ADD_FAILURE() << "line " << line << ": " << result.error().what;
    std::abort();
  }
  return std::move(result).value();
}

// What lies where in a pack.
struct Place {
  enum class Kind { kPackHeader, kBatchHeader, kObject, kLog, kTrailer };
  Kind kind = Kind::kPackHeader;
  uint64_t begin = 0, end = 0;
  ObjectKey key;    // kObject
  RecordId record;  // kLog
  bool is_delta = false;
  std::set<ObjectKey> dependents = {};  // kObject: what is made from it, and from those
};

struct PackLayout {
  std::string file;  // "<id>.pack"
  uint64_t length = 0;
  std::vector<Place> places;  // in order, without gaps
  const Place& At(uint64_t position) const {
    auto after = std::upper_bound(
        places.begin(), places.end(), position,
        [](uint64_t p, const Place& place) { return p < place.begin; });
    return *std::prev(after);
  }
};

struct KnownCheckpoint {
  RecordId id;
  ObjectId state;
  Files files;
  std::set<ObjectKey> needs;
};

// A store of two packs with shared content, a chunked file, a drop, an annotation and
// several records in one batch; and everything there is to know about it.
class Sample {
 public:
  Sample() : disk_(std::make_unique<MemFs>()) {
    World world(*disk_);
    SetOptions(world);
    auto store = Need(world.Open());
    const std::string shared = SourceText(7, 700);
    RootId root(world.random.NewId());
    {
      auto writer = Need(store->Begin());
      writer->Add(ToRecord(Root{root, "/home/u/project"}, RecordId(root), 1));
      Need(writer->Commit());
    }
    Make(*store, "one", {{"a", "first"}, {"dir/b", shared}, {"dir/deep/c", ""}}, root);
    Make(*store, "two", {{"a", "second"}, {"dir/b", shared}, {"n", Noise(3, 400)}},
         root);
    MakeChunked(*store, "chunked");
    Make(*store, "dropped", {{"gone", Noise(4, 900)}, {"dir/b", shared}}, root);
    MakeSeveral(*store);
    Need(DropCheckpoints(*store, {"dropped"}));
    wanted_.erase("dropped");
    // By now the next batch begins the second pack.
    Make(*store, "five", {{"late", SourceText(9, 900)}, {"dir/b", shared}}, root);
    Make(*store, "six", {{"late", Noise(5, 300)}, {"x/y/z", "deep"}}, root);
    // Deltas of deltas, which are made from what nobody wants any more.
    Files files = {{"e", SourceText(20, 600)}, {"k/f", Noise(21, 200)}};
    for (uint64_t i = 0; i < 3; ++i) files["k/" + std::to_string(i)] = Noise(30 + i, 9);
    Make(*store, "seven", files, root);
    for (const char* name : {"eight", "nine"}) {
      Files before = files;
      files["e"].replace(200, 20, name);
      files["k/f"].replace(100, 4, name);
      Make(*store, name, files, root, before);
    }
    Need(DropCheckpoints(*store, {"eight"}));
    wanted_.erase("eight");
    store.reset();
    disk_->Crash(CrashPolicy::KeepAll());
    Survey();
  }

  static void SetOptions(World& world) { world.options.pack_target = 7000; }
  static World Over(Fs& fs) {
    static uint64_t seed = 99;  // ids must not repeat
    World world(fs, ++seed);
    SetOptions(world);
    return world;
  }

  std::unique_ptr<MemFs> Copy() const { return disk_->Clone(); }
  const std::vector<PackLayout>& packs() const { return packs_; }
  const std::map<std::string, KnownCheckpoint>& wanted() const { return wanted_; }
  const std::map<RecordId, LogRecord>& records() const { return records_; }
  const std::vector<std::string>& rebuildable() const { return rebuildable_; }
  size_t deltas() const { return deltas_; }

 private:
  void Make(Store& store, const std::string& name, const Files& files,
            const RootId& root, const Files& before = {}) {
    Need(MakeCheckpoint(store, name, files, root, before));
    wanted_[name] = {IdFor(name), {}, files, {}};
  }

  // A chunk list as the format allows it, with chunks of a few bytes.
  void MakeChunked(Store& store, const std::string& name) {
    for (int n = 0; n < 2; ++n) {
      PreparedBatch batch;
      ChunkList list;
      std::string content;
      for (uint64_t i = 0; i < 3; ++i) {
        std::string piece = Noise(50 + i + 10 * static_cast<uint64_t>(n), 100 + 10 * i);
        content += piece;
        list.total += piece.size();
        list.chunks.push_back(
            {Sha256::Of(AsBytes(piece)), static_cast<uint32_t>(piece.size())});
        AddRaw(batch, {ObjectType::kBlob, list.chunks.back().id}, AsBytes(piece));
      }
      AddRaw(batch, {ObjectType::kChunks, Sha256::Of(AsBytes(content))},
             EncodeChunks(list));
      batch.Seal();
      Need(Appender(store).Append(batch, true));
      chunked_.push_back(content);
    }
    auto writer = Need(store.Begin());
    Tree tree;
    for (size_t n = 0; n < 2; ++n) {
      TreeEntry e;
      e.name = "big" + std::to_string(n);
      e.mode = 0600;
      e.size = chunked_[n].size();
      e.id = Sha256::Of(AsBytes(chunked_[n]));
      tree.entries.push_back(e);
    }
    State state;
    state.tree = Need(writer->PutTree(tree));
    Checkpoint c;
    c.state = Need(writer->PutObject(ObjectType::kState, EncodeState(state)));
    c.id = IdFor(name);
    c.name = name;
    writer->Add(ToRecord(c));
    Need(writer->Commit());
    wanted_[name] = {c.id, {}, {{"big0", chunked_[0]}, {"big1", chunked_[1]}}, {}};
  }
  static void AddRaw(PreparedBatch& batch, const ObjectKey& key, ByteSpan bytes) {
    RecordHeader header;
    header.type = key.type;
    header.id = key.id;
    header.stored_length = header.raw_length = static_cast<uint32_t>(bytes.size());
    batch.AddObject(header, bytes);
  }

  // A checkpoint, an annotation of another one and a session in one batch.
  void MakeSeveral(Store& store) {
    auto writer = Need(store.Begin());
    Files files = {{"m", "several"}};
    Checkpoint c;
    c.state = Need(PutFiles(*writer, files));
    c.id = IdFor("several");
    c.name = "several";
    writer->Add(ToRecord(c));
    LogRecord note;
    note.kind = RecordKind::kAnnotation;
    note.id = IdFor("note");
    note.fields.Add(kAnnotationTarget, IdFor("one").span());
    note.fields.Add(kAnnotationNote, "remember this one");
    writer->Add(note);
    LogRecord session;
    session.kind = RecordKind::kSession;
    session.id = IdFor("session");
    session.fields.Add(1, "s-1");
    writer->Add(session);
    Need(writer->Commit());
    wanted_["several"] = {c.id, {}, files, {}};
  }

  void Survey() {
    World world = Over(*disk_);
    auto store = Need(world.Open(Store::Mode::kRead));
    Need(store->ReadLog(std::nullopt, [&](const LogRecord& r) -> Status {
      records_[r.id] = r;
      return Ok();
    }));
    for (const Manifest::Pack& listed : store->manifest().packs) {
      auto file = Need(PackFile::Open(*disk_, store->packs_dir(), listed.id,
                                      store->manifest().store, OpenMode::Read()));
      PackLayout layout;
      layout.file = PackFile::FileName(listed.id).bytes();
      layout.length = Need(file.Size());
      layout.places.push_back({Place::Kind::kPackHeader, 0, kPackHeaderSize, {}, {}});
      Need(file.ForEachBatch(
          kPackHeaderSize, layout.length, [&](const BatchHeader& b, bool) -> Status {
            layout.places.push_back(
                {Place::Kind::kBatchHeader, b.offset, b.body_offset(), {}, {}});
            BELAY_OK(file.ForEachRecord(
                b, PackFile::Part::kAll, [&](const RecordAt& r) -> Status {
                  Place place{Place::Kind::kObject,
                              r.offset,
                              r.offset + r.header.total_length(),
                              r.header.key(),
                              {}};
                  if (r.header.type == ObjectType::kLog) {
                    place.kind = Place::Kind::kLog;
                    place.record = Need(DecodeLogRecord(Need(file.ReadRecord(r)))).id;
                  }
                  if (r.base != 0) {
                    ++deltas_;
                    place.is_delta = true;
                    for (Place& base : layout.places)
                      if (base.begin == r.base ||
                          base.dependents.contains(layout.At(r.base).key))
                        base.dependents.insert(r.header.key());
                  }
                  layout.places.push_back(place);
                  return Ok();
                }));
            layout.places.push_back(
                {Place::Kind::kTrailer, b.end() - kBatchTrailerSize, b.end(), {}, {}});
            return Ok();
          }));
      packs_.push_back(std::move(layout));
      rebuildable_.push_back("packs/" + PackIndex::FileName(listed.id).bytes());
    }
    rebuildable_.push_back("tail");
    auto inventory = Need(TakeInventory(*store));
    for (auto& [name, c] : wanted_) {
      const LogRecord& record = records_.at(c.id);
      c.state = record.refs.at(0).id;
      Marker marker(*store, inventory);
      Need(marker.MarkFrom(record, {}));
      c.needs.insert(marker.live().begin(), marker.live().end());
    }
  }

  std::unique_ptr<MemFs> disk_;
  std::vector<std::string> chunked_;
  std::map<std::string, KnownCheckpoint> wanted_;
  std::map<RecordId, LogRecord> records_;
  std::vector<PackLayout> packs_;
  std::vector<std::string> rebuildable_;
  size_t deltas_ = 0;
};

const Sample& TheSample() {
  static const Sample sample;
  return sample;
}

// --- damaging ------------------------------------------------------------------------

class DamagedDisk {
 public:
  DamagedDisk() : disk_(TheSample().Copy()) {}
  MemFs& fs() { return *disk_; }

  Bytes Read(const std::string& path) {
    auto at = Locate(path);
    return Need(ReadSmallFile(*disk_, at.dir, at.name, 1 << 20));
  }
  void Overwrite(const std::string& path, uint64_t offset, ByteSpan bytes) {
    auto at = Locate(path);
    Fd file = Need(disk_->Open(at.dir, at.name, OpenMode::ReadWrite()));
    Need(WriteFull(*disk_, file, offset, bytes));
  }
  void Flip(const std::string& path, uint64_t position, unsigned bit) {
    auto at = Locate(path);
    Fd file = Need(disk_->Open(at.dir, at.name, OpenMode::ReadWrite()));
    std::byte b[1];
    Need(ReadExact(*disk_, file, position, b));
    b[0] ^= static_cast<std::byte>(1u << bit);
    Need(WriteFull(*disk_, file, position, b));
  }
  void Truncate(const std::string& path, uint64_t length) {
    auto at = Locate(path);
    Fd file = Need(disk_->Open(at.dir, at.name, OpenMode::ReadWrite()));
    Need(disk_->Truncate(file, length));
  }
  void Delete(const std::string& path) {
    auto at = Locate(path);
    Need(disk_->Unlink(at.dir, at.name));
  }

 private:
  Parent Locate(const std::string& path) {
    Fd root = Need(disk_->OpenDir(AbsPath::Literal("/store")));
    return Need(OpenParent(*disk_, root, RelPath::Literal(path)));
  }
  std::unique_ptr<MemFs> disk_;
};

// What a damage may cost. Everything else must be as before.
struct Toll {
  std::set<ObjectKey> objects;
  std::set<RecordId> records;
  bool found = true;             // verify must report something
  bool may_be_found = false;     // it need not, but may
  bool open_may_refuse = false;  // with kCorrupt or kUnsupported
  bool numbers_may_change = false;
  std::set<std::string> extra;  // checkpoints made since, not judged

  static Toll Of(const Place& place) {
    Toll toll;
    if (place.kind == Place::Kind::kObject) toll.objects.insert(place.key);
    toll.objects.insert(place.dependents.begin(), place.dependents.end());
    if (place.kind == Place::Kind::kLog) toll.records.insert(place.record);
    return toll;
  }
};

// Collects what was wrong; a test over thousands of cases shows the first few.
class Findings {
 public:
  explicit Findings(std::string what) : what_(std::move(what)) {}
  ~Findings() {
    std::printf("%s: %llu cases, %llu wrong\n", what_.c_str(),
                static_cast<unsigned long long>(cases_),
                static_cast<unsigned long long>(wrong_));
    EXPECT_GT(cases_, 0u);
    EXPECT_EQ(wrong_, 0u);
  }
  void Case(std::string where) {
    ++cases_;
    where_ = std::move(where);
  }
  void Wrong(const std::string& why) {
    if (++wrong_ <= 12) ADD_FAILURE() << where_ << ": " << why;
  }

 private:
  std::string what_, where_;
  uint64_t cases_ = 0, wrong_ = 0;
};

bool IsDamage(const Error& e) {
  return e.code == Errc::kCorrupt || e.code == Errc::kNotFound;
}

void JudgeLog(Store& store, const Toll& toll, Findings& out) {
  const Sample& sample = TheSample();
  std::set<RecordId> seen;
  auto read = store.ReadLog(std::nullopt, [&](const LogRecord& r) -> Status {
    auto known = sample.records().find(r.id);
    if (known == sample.records().end()) {
      auto c = ToCheckpoint(r);
      bool extra = c.ok() && c->name && toll.extra.contains(*c->name);
      if (!extra) out.Wrong("a record nobody wrote: " + r.id.text());
      return Ok();
    }
    seen.insert(r.id);
    LogRecord expected = known->second;
    LogRecord got = r;
    if (toll.numbers_may_change) expected.seq = got.seq = 0;
    if (!(got == expected))
      out.Wrong("record " + r.id.text() + " reads differently (number " +
                std::to_string(r.seq) + ", was " + std::to_string(known->second.seq) +
                ")");
    return Ok();
  });
  if (!read.ok()) out.Wrong("the log cannot be read: " + read.error().what);
  for (const auto& [id, record] : sample.records())
    if (!seen.contains(id) && !toll.records.contains(id))
      out.Wrong("record " + id.text() + " is lost (kind " +
                std::to_string(static_cast<int>(record.kind)) + ")");
}

// Opens the store on `fs` as a stranger would and holds it against what is known.
void Judge(Fs& fs, const Toll& toll, Findings& out) {
  const Sample& sample = TheSample();
  World world = Sample::Over(fs);
  auto opened = world.Open(Store::Mode::kRead);
  if (!opened.ok()) {
    Errc code = opened.error().code;
    if (!toll.open_may_refuse || (code != Errc::kCorrupt && code != Errc::kUnsupported))
      out.Wrong("cannot be opened: " + opened.error().what);
    return;
  }
  Store& store = **opened;
  auto report = VerifyStore(store, {.read_data = true});
  if (!report.ok()) return out.Wrong("verify failed: " + report.error().what);
  if (report->clean() && toll.found) out.Wrong("not found by verify");
  if (!report->clean() && !toll.found && !toll.may_be_found)
    out.Wrong("verify complains: " + report->damage.front());
  std::map<RecordId, size_t> hit;
  for (const HitCheckpoint& h : report->hit) hit[h.checkpoint.id] = h.paths.size();

  for (const auto& [name, c] : sample.wanted()) {
    bool may_fail = std::any_of(c.needs.begin(), c.needs.end(), [&](const auto& key) {
      return toll.objects.contains(key);
    });
    auto files = ReadFiles(store, c.state);
    if (files.ok() && *files != c.files) out.Wrong(name + " reads OTHER BYTES");
    if (!files.ok() && !may_fail)
      out.Wrong(name + " is lost without need: " + files.error().what);
    if (!files.ok() && !IsDamage(files.error()))
      out.Wrong(name + ": not called damage: " + files.error().what);
    bool named = hit.contains(c.id);
    if (!files.ok() && !named && !toll.records.contains(c.id))
      out.Wrong(name + " is hit and verify does not name it: " + files.error().what);
    if (files.ok() && named) out.Wrong(name + " is named and reads well");
    if (named && hit[c.id] == 0) out.Wrong(name + " is named without a path");
  }
  JudgeLog(store, toll, out);
}

// A new checkpoint can be made, is read back by another process, and cost nothing.
void JudgeAppend(Fs& fs, Toll toll, Findings& out) {
  Files files = {{"new", Noise(77, 500)}, {"dir/b", SourceText(7, 700)}};
  {
    World world = Sample::Over(fs);
    auto store = world.Open();
    if (!store.ok()) {
      if (!toll.open_may_refuse) out.Wrong("append: open: " + store.error().what);
      return;
    }
    auto made = MakeCheckpoint(**store, "new", files);
    if (!made.ok()) return out.Wrong("append: " + made.error().what);
  }
  World world = Sample::Over(fs);
  auto store = world.Open(Store::Mode::kRead);
  if (!store.ok()) return out.Wrong("reopen after append: " + store.error().what);
  ObjectId state;
  uint64_t seq = 0;
  uint64_t highest = 0;
  Need((*store)->ReadLog(std::nullopt, [&](const LogRecord& r) -> Status {
    if (r.id == IdFor("new")) {
      state = r.refs.at(0).id;
      seq = r.seq;
    } else {
      highest = std::max(highest, r.seq);
    }
    return Ok();
  }));
  if (state.is_zero()) return out.Wrong("the new checkpoint is not in the log");
  auto back = ReadFiles(**store, state);
  // It may have shared an object that is damaged; then it says so.
  if (!back.ok() && toll.objects.empty()) out.Wrong("new: " + back.error().what);
  if (back.ok() && *back != files) out.Wrong("new reads OTHER BYTES");
  if (seq <= highest && !toll.numbers_may_change)
    out.Wrong("new has number " + std::to_string(seq) + ", another has " +
              std::to_string(highest));
  store->reset();
  toll.extra.insert("new");
  Judge(fs, toll, out);
}

void JudgeRepair(Fs& fs, Toll toll, Findings& out) {
  World world = Sample::Over(fs);
  auto repaired = RepairStore(fs, world.clock, world.random, world.dir, world.options);
  if (!repaired.ok()) {
    if (!(toll.open_may_refuse && repaired.error().code == Errc::kUnsupported))
      out.Wrong("repair: " + repaired.error().what);
    return;
  }
  Judge(fs, toll, out);
}

std::set<std::string> PackFiles(Fs& fs) {
  std::set<std::string> names;
  Fd dir = Need(fs.OpenDir(AbsPath::Literal("/store/packs")));
  for (const DirEntry& e : Need(fs.List(dir)))
    if (e.name.ends_with(".pack")) names.insert(e.name);
  return names;
}

// GC either refuses and takes nothing, or costs nothing that could be read.
void JudgeCollect(Fs& fs, const Toll& toll, bool must_refuse, Findings& out) {
  World world = Sample::Over(fs);
  auto store = world.Open();
  if (!store.ok()) {
    if (!toll.open_may_refuse) out.Wrong("gc: open: " + store.error().what);
    return;
  }
  auto before = PackFiles(fs);
  auto collected = CollectGarbage(**store, {.everything = true});
  if (!collected.ok()) {
    if (collected.error().code != Errc::kCorrupt)
      out.Wrong("gc: not called damage: " + collected.error().what);
    if (PackFiles(fs) != before) out.Wrong("gc refused and removed a pack");
    store->reset();
    return Judge(fs, toll, out);
  }
  if (must_refuse) out.Wrong("gc went on");
  store->reset();
  // The dropped checkpoints and their drops are gone for good; damage may have gone
  // along.
  Toll after = toll;
  after.found = false;
  after.may_be_found = true;
  after.records.insert(IdFor("dropped"));
  after.records.insert(IdFor("eight"));
  for (const auto& [id, r] : TheSample().records())
    if (r.kind == RecordKind::kDrop) after.records.insert(id);
  Judge(fs, after, out);
}

bool GcMustRefuse(const Place& place) {
  return place.kind == Place::Kind::kBatchHeader || place.kind == Place::Kind::kLog;
}

std::string At(const std::string& file, uint64_t position, unsigned bit) {
  return file + " byte " + std::to_string(position) + " bit " + std::to_string(bit);
}

// --- the sample itself ---------------------------------------------------------------

TEST(Damage, TheSampleHasWhatItShould) {
  const Sample& s = TheSample();
  EXPECT_EQ(s.packs().size(), 3u);
  EXPECT_EQ(s.wanted().size(), 8u);
  EXPECT_EQ(s.records().size(), 15u);
  EXPECT_GE(s.deltas(), 6u);
  uint64_t total = 0;
  for (const PackLayout& p : s.packs()) {
    total += p.length;
    uint64_t at = 0;
    for (const Place& place : p.places) {
      EXPECT_EQ(place.begin, at);
      at = place.end;
    }
    EXPECT_EQ(at, p.length);
  }
  std::printf("sample: %llu bytes of packs\n", static_cast<unsigned long long>(total));
  Findings out("undamaged");
  out.Case("as it was made");
  DamagedDisk disk;
  Toll none;
  none.found = false;
  Judge(disk.fs(), none, out);
  JudgeAppend(disk.fs(), none, out);
  DamagedDisk again;
  JudgeRepair(again.fs(), none, out);
  JudgeCollect(again.fs(), none, false, out);
}

// --- bit flips -----------------------------------------------------------------------

TEST(Damage, AFlippedBitAnywhereInAPackIsFoundAndCostsOnlyWhatItHits) {
  Findings out("bit flips in packs");
  for (const PackLayout& pack : TheSample().packs()) {
    for (uint64_t at = 0; at < pack.length; at += Stride(1)) {
      const Place& place = pack.At(at);
      bool header = place.kind == Place::Kind::kPackHeader ||
                    place.kind == Place::Kind::kBatchHeader;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (!header && bit != at % 8) continue;
        DamagedDisk disk;
        disk.Flip("packs/" + pack.file, at, bit);
        out.Case(At(pack.file, at, bit));
        Judge(disk.fs(), Toll::Of(place), out);
      }
    }
  }
}

TEST(Damage, WritingGoesOnBesideAFlippedBitInAPack) {
  Findings out("appends beside bit flips");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(5)) {
      DamagedDisk disk;
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case(At(pack.file, at, at % 8));
      JudgeAppend(disk.fs(), Toll::Of(pack.At(at)), out);
    }
}

TEST(Damage, RepairAfterAFlippedBitMakesNothingWorse) {
  Findings out("repairs of bit flips");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(3)) {
      DamagedDisk disk;
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case(At(pack.file, at, at % 8));
      Toll toll = Toll::Of(pack.At(at));
      // Only a pack's header can be put right.
      if (pack.At(at).kind == Place::Kind::kPackHeader) toll.found = false;
      JudgeRepair(disk.fs(), toll, out);
    }
}

TEST(Damage, CollectingBesideAFlippedBitTakesNothingThatIsWanted) {
  Findings out("collections of bit flips");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(3)) {
      DamagedDisk disk;
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case(At(pack.file, at, at % 8));
      const Place& place = pack.At(at);
      JudgeCollect(disk.fs(), Toll::Of(place), GcMustRefuse(place), out);
    }
}

TEST(Damage, AFlippedBitInTheManifestIsFoundAndRepaired) {
  Findings out("bit flips in the manifest");
  const uint64_t length = DamagedDisk().Read("manifest").size();
  for (uint64_t at = 0; at < length; at += Stride(1)) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      DamagedDisk disk;
      disk.Flip("manifest", at, bit);
      out.Case(At("manifest", at, bit));
      World world = Sample::Over(disk.fs());
      auto opened = world.Open();
      if (opened.ok()) {
        out.Wrong("opened all the same");
        continue;
      }
      if (opened.error().code == Errc::kUnsupported) {
        if (at != 12) out.Wrong("called a newer version");
        continue;
      }
      if (opened.error().code != Errc::kCorrupt) out.Wrong("not called damage");
      if (opened.error().hint.find("belay repair") == std::string::npos)
        out.Wrong("no hint at repair");
      Toll toll;
      toll.found = false;
      if (bit == at % 8) {
        JudgeRepair(disk.fs(), toll, out);
        JudgeAppend(disk.fs(), toll, out);
      }
    }
  }
}

TEST(Damage, AFlippedBitInARebuildableFileChangesNoAnswer) {
  Findings out("bit flips in indexes and tail");
  for (const std::string& file : TheSample().rebuildable()) {
    const uint64_t length = DamagedDisk().Read(file).size();
    const Bytes original = DamagedDisk().Read(file);
    for (uint64_t at = 0; at < length; at += Stride(1)) {
      // Most of a table is empty: of that, one byte in five.
      if (original[at] == std::byte{} && at % 5 != 0 && !RunEverything()) continue;
      DamagedDisk disk;
      disk.Flip(file, at, at % 8);
      out.Case(At(file, at, at % 8));
      Toll none;
      none.found = false;
      Judge(disk.fs(), none, out);
      if (at % 4 == 0 || file == "tail") JudgeAppend(disk.fs(), none, out);
    }
  }
}

// --- truncation ----------------------------------------------------------------------

// What is lost when a pack ends at `length`: whatever does not end before.
Toll TollOfCut(const PackLayout& pack, uint64_t length) {
  Toll toll;
  for (const Place& place : pack.places) {
    if (place.end <= length) continue;
    if (place.kind == Place::Kind::kObject) toll.objects.insert(place.key);
    if (place.kind == Place::Kind::kLog) toll.records.insert(place.record);
  }
  return toll;
}

TEST(Damage, APackCutShortAtAnyLengthIsFoundAndKeepsWhatIsLeft) {
  Findings out("packs cut short");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t length = 0; length < pack.length; length += Stride(1)) {
      DamagedDisk disk;
      disk.Truncate("packs/" + pack.file, length);
      out.Case(pack.file + " cut to " + std::to_string(length));
      Toll toll = TollOfCut(pack, length);
      Judge(disk.fs(), toll, out);
      if (length % 7 == 0) JudgeCollect(disk.fs(), toll, true, out);
      if (length % 5 == 0) JudgeRepair(disk.fs(), toll, out);
      if (length % 11 == 0) JudgeAppend(disk.fs(), toll, out);
    }
}

TEST(Damage, TheManifestCutShortAtAnyLengthIsFoundAndRepaired) {
  Findings out("manifest cut short");
  const uint64_t size = DamagedDisk().Read("manifest").size();
  for (uint64_t length = 0; length < size; length += Stride(1)) {
    DamagedDisk disk;
    disk.Truncate("manifest", length);
    out.Case("manifest cut to " + std::to_string(length));
    World world = Sample::Over(disk.fs());
    auto opened = world.Open();
    if (opened.ok() || opened.error().code != Errc::kCorrupt) out.Wrong("not refused");
    Toll none;
    none.found = false;
    JudgeRepair(disk.fs(), none, out);
  }
}

TEST(Damage, ARebuildableFileCutShortChangesNoAnswer) {
  Findings out("indexes and tail cut short");
  for (const std::string& file : TheSample().rebuildable()) {
    const uint64_t size = DamagedDisk().Read(file).size();
    for (uint64_t length = 0; length < size; length += Stride(1)) {
      if (length > 200 && length % 7 != 0 && !RunEverything()) continue;
      DamagedDisk disk;
      disk.Truncate(file, length);
      out.Case(file + " cut to " + std::to_string(length));
      Toll none;
      none.found = false;
      Judge(disk.fs(), none, out);
      if (length % 8 == 0) JudgeAppend(disk.fs(), none, out);
    }
  }
}

// --- zeroed blocks -------------------------------------------------------------------

TEST(Damage, AZeroedBlockIsFoundAndCostsOnlyWhatItHits) {
  Findings out("zeroed blocks");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(16)) {
      const uint64_t end = std::min<uint64_t>(at + 512, pack.length);
      DamagedDisk disk;
      disk.Overwrite("packs/" + pack.file, at, Bytes(end - at));
      out.Case(pack.file + " zeros at " + std::to_string(at));
      Toll toll;
      toll.numbers_may_change = true;  // two batch headers may be gone
      int headers = 0;
      int logs = 0;
      for (const Place& place : pack.places) {
        if (place.end <= at || place.begin >= end) continue;
        if (place.kind == Place::Kind::kObject) toll.objects.insert(place.key);
        toll.objects.insert(place.dependents.begin(), place.dependents.end());
        if (place.kind == Place::Kind::kLog) toll.records.insert(place.record);
        headers += place.kind == Place::Kind::kBatchHeader;
        logs += place.kind == Place::Kind::kLog;
      }
      // Where a batch's header is gone nobody can tell its records from bytes that
      // merely look like some, once the chain is broken; nor where two in a row are.
      if (headers > 0 || logs > 1)
        for (const Place& place : pack.places)
          if (place.kind == Place::Kind::kLog && place.begin >= at &&
              place.begin < end + 2000)
            toll.records.insert(place.record);
      Judge(disk.fs(), toll, out);
      if (at % 48 == 0) JudgeRepair(disk.fs(), toll, out);
      if (at % 80 == 0) JudgeCollect(disk.fs(), toll, headers > 0, out);
    }
}

// --- things in the wrong place -------------------------------------------------------

TEST(Damage, TwoSwappedObjectsAreFound) {
  Findings out("swapped objects");
  for (const PackLayout& pack : TheSample().packs()) {
    const Bytes original = DamagedDisk().Read("packs/" + pack.file);
    std::vector<const Place*> objects;
    for (const Place& p : pack.places)
      if (p.kind == Place::Kind::kObject) objects.push_back(&p);
    for (size_t i = 0; i < objects.size(); ++i)
      for (size_t j = i + 1; j < objects.size(); j += 1 + Stride(1) / 8) {
        const Place& a = *objects[i];
        const Place& b = *objects[j];
        const bool same_size = a.end - a.begin == b.end - b.begin;
        Toll toll;
        toll.objects = {a.key, b.key};
        // Header and bytes swapped, both are whole, only not where they were: that is
        // nothing but to what names its base by place.
        Toll moved;
        for (const Place* p : {&a, &b}) {
          toll.objects.insert(p->dependents.begin(), p->dependents.end());
          moved.objects.insert(p->dependents.begin(), p->dependents.end());
          if (p->is_delta) moved.objects.insert(p->key);
        }
        auto part = [&](uint64_t begin, uint64_t end) {
          return ByteSpan(original).subspan(begin, end - begin);
        };
        if (same_size) {
          DamagedDisk whole;
          whole.Overwrite("packs/" + pack.file, a.begin, part(b.begin, b.end));
          whole.Overwrite("packs/" + pack.file, b.begin, part(a.begin, a.end));
          out.Case(pack.file + " records swapped at " + std::to_string(a.begin) +
                   " and " + std::to_string(b.begin));
          Judge(whole.fs(), moved, out);
          // The bytes alone: each header now lies about what follows.
          DamagedDisk bytes;
          bytes.Overwrite("packs/" + pack.file, a.begin + kRecordHeaderSize,
                          part(b.begin + kRecordHeaderSize, b.end));
          bytes.Overwrite("packs/" + pack.file, b.begin + kRecordHeaderSize,
                          part(a.begin + kRecordHeaderSize, a.end));
          out.Case(pack.file + " bytes swapped at " + std::to_string(a.begin) +
                   " and " + std::to_string(b.begin));
          Judge(bytes.fs(), toll, out);
        }
        // The headers alone, of any two.
        DamagedDisk headers;
        headers.Overwrite("packs/" + pack.file, a.begin,
                          part(b.begin, b.begin + kRecordHeaderSize));
        headers.Overwrite("packs/" + pack.file, b.begin,
                          part(a.begin, a.begin + kRecordHeaderSize));
        out.Case(pack.file + " headers swapped at " + std::to_string(a.begin) +
                 " and " + std::to_string(b.begin));
        // A length that is not its own leads the walk astray for a record or two.
        if (!same_size)
          for (const Place& p : pack.places)
            if (p.kind == Place::Kind::kObject) toll.objects.insert(p.key);
        Judge(headers.fs(), toll, out);
      }
  }
}

TEST(Damage, TwoSwappedBatchesAreFound) {
  Findings out("swapped batches");
  for (const PackLayout& pack : TheSample().packs()) {
    const Bytes original = DamagedDisk().Read("packs/" + pack.file);
    std::vector<std::pair<uint64_t, uint64_t>> batches;
    for (const Place& p : pack.places) {
      if (p.kind == Place::Kind::kBatchHeader) batches.emplace_back(p.begin, 0);
      if (p.kind == Place::Kind::kTrailer) batches.back().second = p.end;
    }
    for (size_t i = 0; i < batches.size(); ++i)
      for (size_t j = i + 1; j < batches.size(); ++j) {
        // Everything from the first to the second is written anew, the two exchanged.
        auto [a, a_end] = batches[i];
        auto [b, b_end] = batches[j];
        Bytes swapped(original.begin(), original.end());
        Bytes middle;
        auto add = [&](uint64_t from, uint64_t to) {
          middle.insert(middle.end(), original.begin() + static_cast<ptrdiff_t>(from),
                        original.begin() + static_cast<ptrdiff_t>(to));
        };
        add(b, b_end);
        add(a_end, b);
        add(a, a_end);
        DamagedDisk disk;
        disk.Overwrite("packs/" + pack.file, a, middle);
        out.Case(pack.file + " batches swapped at " + std::to_string(a) + " and " +
                 std::to_string(b));
        Toll toll;
        toll.numbers_may_change = true;
        // Records, which are believed in their place only, and what names its base by
        // place.
        for (const Place& p : pack.places) {
          if (p.is_delta) toll.objects.insert(p.key);
          if (p.kind == Place::Kind::kLog && p.begin >= a && p.begin < b_end)
            toll.records.insert(p.record);
        }
        Judge(disk.fs(), toll, out);
        JudgeCollect(disk.fs(), toll, true, out);
      }
  }
}

TEST(Damage, APackInTheWrongPlaceIsFound) {
  Findings out("misplaced packs");
  const auto& packs = TheSample().packs();
  DamagedDisk disk;
  const Bytes first = disk.Read("packs/" + packs[0].file);
  const Bytes second = disk.Read("packs/" + packs[1].file);
  disk.Truncate("packs/" + packs[1].file, 0);
  disk.Overwrite("packs/" + packs[1].file, 0, first);
  out.Case("the first pack's bytes under the second's name");
  Toll toll = TollOfCut(packs[1], 0);
  Judge(disk.fs(), toll, out);
  JudgeCollect(disk.fs(), toll, true, out);
  JudgeRepair(disk.fs(), toll, out);
}

// --- files that are gone -------------------------------------------------------------

TEST(Damage, ADeletedPackIsNamedWithTheCheckpointsItHits) {
  Findings out("deleted packs");
  for (const PackLayout& pack : TheSample().packs()) {
    out.Case(pack.file + " deleted");
    Toll toll = TollOfCut(pack, 0);
    DamagedDisk disk;
    disk.Delete("packs/" + pack.file);
    Judge(disk.fs(), toll, out);
    JudgeCollect(disk.fs(), toll, true, out);
    JudgeRepair(disk.fs(), toll, out);
    JudgeAppend(disk.fs(), toll, out);
  }
}

TEST(Damage, ADeletedManifestIsRepairedWithTheSameAnswers) {
  Findings out("deleted manifest");
  out.Case("manifest deleted");
  DamagedDisk disk;
  disk.Delete("manifest");
  {
    World world = Sample::Over(disk.fs());
    auto opened = world.Open();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Errc::kCorrupt);
    EXPECT_NE(opened.error().hint.find("belay repair"), std::string::npos);
  }
  Toll none;
  none.found = false;
  JudgeRepair(disk.fs(), none, out);
  JudgeAppend(disk.fs(), none, out);
  none.extra = {"new"};
  JudgeCollect(disk.fs(), none, false, out);
}

TEST(Damage, ADeletedManifestBesideADamagedPackLosesNoPack) {
  // Repair must list what can still be read in part: what it leaves out, the next
  // collection would remove as a leftover.
  Findings out("deleted manifest and a bit flip");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(13)) {
      DamagedDisk disk;
      disk.Delete("manifest");
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case("no manifest, " + At(pack.file, at, at % 8));
      Toll toll = Toll::Of(pack.At(at));
      toll.found = false;
      toll.may_be_found = true;  // the end of a pack may look torn
      toll.numbers_may_change = true;
      JudgeRepair(disk.fs(), toll, out);
    }
}

TEST(Damage, DeletedRebuildableFilesChangeNoAnswer) {
  Findings out("deleted indexes, tail and lock");
  std::vector<std::string> files = TheSample().rebuildable();
  files.push_back("lock");
  Toll none;
  none.found = false;
  for (const std::string& file : files) {
    out.Case(file + " deleted");
    DamagedDisk disk;
    disk.Delete(file);
    Judge(disk.fs(), none, out);
    JudgeAppend(disk.fs(), none, out);
    DamagedDisk again;
    again.Delete(file);
    JudgeRepair(again.fs(), none, out);
    JudgeCollect(again.fs(), none, false, out);
  }
  out.Case("all of them deleted");
  DamagedDisk disk;
  for (const std::string& file : files) disk.Delete(file);
  Judge(disk.fs(), none, out);
  JudgeAppend(disk.fs(), none, out);
}

TEST(Damage, AMissingPacksDirectoryIsSaidAndNothingIsMade) {
  DamagedDisk disk;
  for (const DirEntry& e : [&] {
         Fd dir = Need(disk.fs().OpenDir(AbsPath::Literal("/store/packs")));
         return Need(disk.fs().List(dir));
       }())
    disk.Delete("packs/" + e.name);
  {
    Fd dir = Need(disk.fs().OpenDir(AbsPath::Literal("/store")));
    Need(disk.fs().RemoveDir(dir, Name::Literal("packs")));
  }
  std::string before = disk.fs().TreeText();
  World world = Sample::Over(disk.fs());
  auto opened = world.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kCorrupt);
  EXPECT_EQ(disk.fs().TreeText(), before);
}

// Somebody publishes a checkpoint while another process verifies, collects or measures:
// at every call of theirs, so that no two looks at the store may contradict each other.
TEST(Damage, ACheckpointPublishedMeanwhileIsNotCalledDamage) {
  using Work = std::function<void(Store&)>;
  const std::pair<const char*, Work> works[] = {
      {"verify",
       [](Store& store) {
         auto report = Need(VerifyStore(store, {.read_data = true}));
         for (const std::string& d : report.damage) ADD_FAILURE() << d;
       }},
      {"gc", [](Store& store) { Need(CollectGarbage(store, {.everything = true})); }},
      {"usage", [](Store& store) { Need(MeasureUsage(store)); }},
  };
  for (const auto& [name, work] : works) {
    SCOPED_TRACE(name);
    for (int at = 1;; ++at) {
      DamagedDisk disk;
      int calls = 0;
      bool made = false;
      HookFs fs(disk.fs(), [&](FsCall, const std::string&) -> Status {
        if (++calls != at) return Ok();
        World other = Sample::Over(disk.fs());
        auto store = other.Open();
        if (!store.ok()) return Ok();
        auto id = MakeCheckpoint(**store, "new", {{"n", Noise(8, 600)}});
        // Not while the other one is alone with the store.
        made = id.ok();
        EXPECT_TRUE(id.ok() || id.error().code == Errc::kBusy) << id.error().what;
        return Ok();
      });
      World world = Sample::Over(fs);
      auto store = Need(world.Open());
      SCOPED_TRACE("call " + std::to_string(at));
      work(*store);
      if (calls < at) break;
      if (!made) continue;
      auto all = Need(ReadAll(*store));
      EXPECT_TRUE(all.contains("new"));
    }
  }
}

// Others publish and drop while GC is at work, the first time so that the pack they
// begin is worth collecting too, the second time in that very pack.
TEST(Collect, ADropPublishedMeanwhileStays) {
  auto run = [](int first, int second) {
    DamagedDisk disk;
    {
      // Something unwanted in the open pack, so that it is sealed and collected.
      World before = Sample::Over(disk.fs());
      auto store = Need(before.Open());
      Need(MakeCheckpoint(*store, "unwanted", {{"u", Noise(6, 200)}}));
      Need(DropCheckpoints(*store, {"unwanted"}));
    }
    int calls = 0;
    bool dropped = false;
    HookFs fs(disk.fs(), [&](FsCall, const std::string&) -> Status {
      ++calls;
      if (calls != first && calls != second) return Ok();
      World other = Sample::Over(disk.fs());
      other.options.lock_wait_ms = 0;
      auto store = other.Open();
      if (!store.ok()) return Ok();
      if (calls == first) {
        if (MakeCheckpoint(**store, "brief", {{"n", Noise(8, 600)}}).ok())
          (void)DropCheckpoints(**store, {"brief"});
      } else {
        dropped = DropCheckpoints(**store, {"two"}).ok();
      }
      return Ok();
    });
    World world = Sample::Over(fs);
    auto store = Need(world.Open());
    Need(CollectGarbage(*store, {.everything = true}));
    store.reset();
    World after = Sample::Over(disk.fs());
    store = Need(after.Open());
    auto all = Need(ReadAll(*store));
    SCOPED_TRACE(std::to_string(first) + ", then " + std::to_string(second));
    EXPECT_EQ(all.contains("two"), !dropped);
    EXPECT_TRUE(all.contains("one"));
    auto report = Need(VerifyStore(*store, {.read_data = true}));
    for (const std::string& d : report.damage) ADD_FAILURE() << d;
    return calls;
  };
  const int calls = run(-1, -1);
  for (int first = 1; first <= calls; first += static_cast<int>(Stride(1)))
    for (int later = 1; first + later <= calls + 12; later += 2)
      run(first, first + later);
}

TEST(Collect, TheNewestRecordOfARootStays) {
  MemFs disk;
  World world(disk);
  auto store = Need(world.Open());
  RootId root(world.random.NewId());
  for (const char* path : {"/old", "/new"}) {
    auto writer = Need(store->Begin());
    writer->Add(ToRecord(Root{root, path}, RecordId(root), 1));
    Need(writer->Commit());
  }
  Need(MakeCheckpoint(*store, "gone", {{"a", Noise(1, 9000)}}, root));
  Need(DropCheckpoints(*store, {"gone"}));
  Need(CollectGarbage(*store, {.everything = true}));
  LogView log;
  Need(ReadOn(*store, log));
  ASSERT_FALSE(log.records.empty());
  EXPECT_EQ(Need(ToRoot(log.records.back())).path, "/new");
}

// Their encodings are the same but for the number that the batch gives them.
TEST(Collect, TwoRecordsThatDifferInTheirNumbersAloneBothStay) {
  MemFs disk;
  World world(disk);
  world.options.pack_target = 8000;
  auto store = Need(world.Open());
  Need(MakeCheckpoint(*store, "same", {{"a", "x"}}));
  Need(MakeCheckpoint(*store, "gone", {{"b", Noise(1, 5000)}}));
  Need(MakeCheckpoint(*store, "kept", {{"c", Noise(2, 6000)}}));
  Need(MakeCheckpoint(*store, "same", {{"a", "x"}}));
  Need(DropCheckpoints(*store, {"gone"}));
  ASSERT_GE(store->manifest().packs.size(), 2u);
  Need(CollectGarbage(*store, {}));
  LogView log;
  Need(ReadOn(*store, log));
  int same = 0;
  for (const LogRecord& r : log.records) same += r.id == IdFor("same");
  EXPECT_EQ(same, 2);
}

// Somebody makes the store between two looks of somebody who only wants to read it.
TEST(Damage, AStoreThatIsJustBeingMadeIsNotADamagedOne) {
  for (const char* look : {"packs", "manifest"}) {
    MemFs disk;
    {
      auto root = disk.OpenDir(AbsPath::Literal("/"));
      Need(disk.MakeDir(*root, Name::Literal("store"), 0700));
      auto store = disk.OpenDir(AbsPath::Literal("/store"));
      if (look == std::string("manifest"))
        Need(disk.MakeDir(*store, Name::Literal("packs"), 0700));
    }
    bool made = false;
    HookFs fs(
        disk, [](FsCall, const std::string&) -> Status { return Ok(); },
        [&](FsCall call, const std::string& name) {
          if (made || call != FsCall::kOpen || name != look) return;
          made = true;
          World other(disk, 2);
          auto store = Need(other.Open());
          Need(MakeCheckpoint(*store, "one", {{"a", "b"}}));
        });
    World world(fs);
    auto opened = world.Open(Store::Mode::kRead);
    ASSERT_TRUE(made) << look;
    ASSERT_TRUE(opened.ok()) << look << ": " << opened.error().what;
    EXPECT_EQ(Need(ReadAll(**opened)).size(), 1u) << look;
  }
}

}  // namespace
}  // namespace belay::test
