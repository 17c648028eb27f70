#pragma once

// A small store of which everything is known, ways to damage it, and judges: what was
// damaged is found and named, nothing wrong is handed out, nothing else is lost.

#include <gtest/gtest.h>

#include <set>

#include "base/mem_fs.h"
#include "crash/hook_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/lost_records.h"
#include "store/repair.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {

#if defined(BELAY_SANITIZED)
constexpr uint64_t kSlow = 23;  // one position of so many
#else
constexpr uint64_t kSlow = 1;
#endif
inline uint64_t Stride(uint64_t wanted) {
  return RunEverything() ? wanted : wanted * kSlow;
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
    auto store = Must(world.Open());
    const std::string shared = SourceText(7, 700);
    RootId root(world.random.NewId());
    {
      auto writer = Must(store->Begin());
      writer->Add(ToRecord(Root{root, "/home/u/project"}, RecordId(root), 1));
      Must(writer->Commit());
    }
    Make(*store, "one", {{"a", "first"}, {"dir/b", shared}, {"dir/deep/c", ""}}, root);
    Make(*store, "two", {{"a", "second"}, {"dir/b", shared}, {"n", Noise(3, 400)}},
         root);
    MakeChunked(*store, "chunked");
    Make(*store, "dropped", {{"gone", Noise(4, 900)}, {"dir/b", shared}}, root);
    MakeSeveral(*store);
    Must(DropCheckpoints(*store, {"dropped"}));
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
    Must(DropCheckpoints(*store, {"eight"}));
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
    Must(MakeCheckpoint(store, name, files, root, before));
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
      Must(Appender(store).Append(batch, true));
      chunked_.push_back(content);
    }
    auto writer = Must(store.Begin());
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
    state.tree = Must(writer->PutTree(tree));
    Checkpoint c;
    c.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    c.id = IdFor(name);
    c.name = name;
    writer->Add(ToRecord(c));
    Must(writer->Commit());
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
    auto writer = Must(store.Begin());
    Files files = {{"m", "several"}};
    Checkpoint c;
    c.state = Must(PutFiles(*writer, files));
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
    Must(writer->Commit());
    wanted_["several"] = {c.id, {}, files, {}};
  }

  void Survey() {
    World world = Over(*disk_);
    auto store = Must(world.Open(Store::Mode::kRead));
    Must(store->ReadLog(std::nullopt, [&](const LogRecord& r) -> Status {
      records_[r.id] = r;
      return Ok();
    }));
    for (const Manifest::Pack& listed : store->manifest().packs) {
      auto file = Must(PackFile::Open(*disk_, store->packs_dir(), listed.id,
                                      store->manifest().store, OpenMode::Read()));
      PackLayout layout;
      layout.file = PackFile::FileName(listed.id).bytes();
      layout.length = Must(file.Size());
      layout.places.push_back({Place::Kind::kPackHeader, 0, kPackHeaderSize, {}, {}});
      Must(file.ForEachBatch(
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
                    place.record = Must(DecodeLogRecord(Must(file.ReadRecord(r)))).id;
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
    auto inventory = Must(TakeInventory(*store));
    for (auto& [name, c] : wanted_) {
      const LogRecord& record = records_.at(c.id);
      c.state = record.refs.at(0).id;
      Marker marker(*store, inventory);
      Must(marker.MarkFrom(record, {}));
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

inline const Sample& TheSample() {
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
    return Must(ReadSmallFile(*disk_, at.dir, at.name, 1 << 20));
  }
  void Overwrite(const std::string& path, uint64_t offset, ByteSpan bytes) {
    auto at = Locate(path);
    Fd file = Must(disk_->Open(at.dir, at.name, OpenMode::ReadWrite()));
    Must(WriteFull(*disk_, file, offset, bytes));
  }
  void Flip(const std::string& path, uint64_t position, unsigned bit) {
    auto at = Locate(path);
    Fd file = Must(disk_->Open(at.dir, at.name, OpenMode::ReadWrite()));
    std::byte b[1];
    Must(ReadExact(*disk_, file, position, b));
    b[0] ^= static_cast<std::byte>(1u << bit);
    Must(WriteFull(*disk_, file, position, b));
  }
  void Truncate(const std::string& path, uint64_t length) {
    auto at = Locate(path);
    Fd file = Must(disk_->Open(at.dir, at.name, OpenMode::ReadWrite()));
    Must(disk_->Truncate(file, length));
  }
  void Delete(const std::string& path) {
    auto at = Locate(path);
    Must(disk_->Unlink(at.dir, at.name));
  }

 private:
  Parent Locate(const std::string& path) {
    Fd root = Must(disk_->OpenDir(AbsPath::Literal("/store")));
    return Must(OpenParent(*disk_, root, RelPath::Literal(path)));
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

inline bool IsDamage(const Error& e) {
  return e.code == Errc::kCorrupt || e.code == Errc::kNotFound;
}

inline void JudgeLog(Store& store, const Toll& toll, Findings& out) {
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
inline void Judge(Fs& fs, const Toll& toll, Findings& out) {
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
  LogView log;
  Must(ReadOn(store, log));
  const bool rootless = !RootsWithoutRecord(log).empty();

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
    // Without the record of their root nobody comes to them.
    if (files.ok() && named && !rootless) out.Wrong(name + " is named and reads well");
    if (named && hit[c.id] == 0 && !rootless)
      out.Wrong(name + " is named without a path");
  }
  JudgeLog(store, toll, out);
}

// A new checkpoint can be made, is read back by another process, and cost nothing.
inline void JudgeAppend(Fs& fs, Toll toll, Findings& out) {
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
  Must((*store)->ReadLog(std::nullopt, [&](const LogRecord& r) -> Status {
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

inline void JudgeRepair(Fs& fs, Toll toll, Findings& out) {
  World world = Sample::Over(fs);
  auto repaired = RepairStore(fs, world.clock, world.random, world.dir, world.options);
  if (!repaired.ok()) {
    if (!(toll.open_may_refuse && repaired.error().code == Errc::kUnsupported))
      out.Wrong("repair: " + repaired.error().what);
    return;
  }
  Judge(fs, toll, out);
}

inline std::set<std::string> PackFiles(Fs& fs) {
  std::set<std::string> names;
  Fd dir = Must(fs.OpenDir(AbsPath::Literal("/store/packs")));
  for (const DirEntry& e : Must(fs.List(dir)))
    if (e.name.ends_with(".pack")) names.insert(e.name);
  return names;
}

// GC either refuses and takes nothing, or costs nothing that could be read.
inline void JudgeCollect(Fs& fs, const Toll& toll, bool must_refuse, Findings& out) {
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

inline bool GcMustRefuse(const Place& place) {
  return place.kind == Place::Kind::kBatchHeader || place.kind == Place::Kind::kLog;
}

inline std::string At(const std::string& file, uint64_t position, unsigned bit) {
  return file + " byte " + std::to_string(position) + " bit " + std::to_string(bit);
}

// What is lost when a pack ends at `length`: whatever does not end before.
inline Toll TollOfCut(const PackLayout& pack, uint64_t length) {
  Toll toll;
  for (const Place& place : pack.places) {
    if (place.end <= length) continue;
    if (place.kind == Place::Kind::kObject) toll.objects.insert(place.key);
    if (place.kind == Place::Kind::kLog) toll.records.insert(place.record);
  }
  return toll;
}

}  // namespace belay::test
