#include "crash/store_ops.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "crash/hook_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/verify.h"

namespace belay::test {

namespace {

Error WrongStore(std::string what) { return Error(Errc::kCorrupt, std::move(what)); }

uint64_t HashOf(const std::string& text, uint64_t seed) {
  return LoadU64(Sha256::Of(AsBytes(text + "#" + std::to_string(seed))).bytes.data());
}

class NoAcks final : public Acks {
 public:
  void Add(std::string_view) override {}
};

Status MakeAll(const StoreOp& op, Store& store, const std::vector<std::string>& names) {
  NoAcks none;
  for (const std::string& name : names) BELAY_OK(MakeAndAck(op, store, name, none));
  return Ok();
}

// "x+3" is what three edits made of "x".
std::pair<std::string, int> Edits(const std::string& name) {
  size_t plus = name.rfind('+');
  if (plus == std::string::npos) return {name, 0};
  return {name.substr(0, plus), std::stoi(name.substr(plus + 1))};
}
Files Before(const std::string& name, const Scale& scale) {
  auto [first, edits] = Edits(name);
  if (edits == 0) return {};
  return ContentOf(edits == 1 ? first : first + "+" + std::to_string(edits - 1), scale);
}

Status SetupPlain(const StoreOp& op, Fs& fs, const AbsPath& dir) {
  Process process(fs, dir, op.scale.seed, op.options);
  BELAY_TRY(auto store, process.Open());
  // By turns, so that no pack holds only what is wanted or only what is not.
  for (size_t i = 0; i < std::max(op.before.size(), op.dropped.size()); ++i) {
    if (i < op.before.size()) BELAY_OK(MakeAll(op, *store, {op.before[i]}));
    if (i < op.dropped.size()) BELAY_OK(MakeAll(op, *store, {op.dropped[i]}));
  }
  return op.dropped.empty() ? Ok() : DropCheckpoints(*store, op.dropped);
}

// The file of a pack that nobody names, as a killed collection leaves one.
Status PutLeftover(Fs& fs, const AbsPath& dir) {
  BELAY_TRY(Fd home, fs.OpenDir(dir));
  BELAY_TRY(Fd packs, fs.Open(home, Name::Literal("packs"), OpenMode::Directory()));
  std::string id = SeededRandom(99).NewId().text();
  for (const char* ending : {".pack", ".idx", ".idx.new"}) {
    BELAY_TRY(Fd file,
              fs.Open(packs, Name::Literal(id + ending), OpenMode::CreateNew()));
    BELAY_OK(WriteFull(fs, file, 0, AsBytes("left over")));
  }
  BELAY_TRY(Fd temporary,
            fs.Open(home, Name::Literal("manifest.0.tmp"), OpenMode::CreateNew()));
  return WriteFull(fs, temporary, 0, AsBytes("belay st"));
}

Status MakeThem(const StoreOp& op, Fs& fs, const AbsPath& dir, Acks& acks) {
  Process process(fs, dir, op.scale.seed + op.salt + 1000, op.options);
  BELAY_TRY(auto store, process.Open());
  for (const std::string& name : op.makes) BELAY_OK(MakeAndAck(op, *store, name, acks));
  return Ok();
}

Status DropThem(const StoreOp& op, Fs& fs, const AbsPath& dir, Acks& acks) {
  Process process(fs, dir, op.scale.seed + op.salt + 1000, op.options);
  BELAY_TRY(auto store, process.Open());
  BELAY_OK(DropCheckpoints(*store, op.drops));
  for (const std::string& name : op.drops) acks.Add("dropped " + name);
  return Ok();
}

Status Collect(const StoreOp& op, Fs& fs, const AbsPath& dir, Acks& acks) {
  Process process(fs, dir, op.scale.seed + op.salt + 1000, op.options);
  BELAY_TRY(auto store, process.Open());
  BELAY_TRY(GcReport report, CollectGarbage(*store, {.everything = true}));
  (void)report;
  acks.Add("collected");
  return Ok();
}

// Another process publishes between the collector's mark and its swap: before the
// first write into the collector's pack. Its checkpoint is made of what the collector
// found unwanted, so only the second look saves it.
Status CollectBeside(const StoreOp& op, Fs& fs, const AbsPath& dir, Acks& acks) {
  Process writer(fs, dir, op.scale.seed + op.salt + 2000, op.options);
  BELAY_TRY(auto other, writer.Open());
  bool started = false;
  Status made = Ok();
  HookFs hooked(fs, [&](FsCall call, const std::string& name) -> Status {
    if (started || call != FsCall::kWrite || !name.ends_with(".pack")) return Ok();
    started = true;
    for (const std::string& next : op.makes)
      if (made.ok()) made = MakeAndAck(op, *other, next, acks);
    return Ok();
  });
  Process collector(hooked, dir, op.scale.seed + op.salt + 1000, op.options);
  BELAY_TRY(auto store, collector.Open());
  BELAY_TRY(GcReport report, CollectGarbage(*store, {.everything = true}));
  (void)report;
  BELAY_OK(made);
  if (!started && op.salt == 0) return WrongStore("nothing was collected");
  acks.Add("collected");
  return Ok();
}

Status SetupLost(const StoreOp& op, Fs& fs, const AbsPath& dir) {
  BELAY_OK(SetupPlain(op, fs, dir));
  BELAY_TRY(Fd home, fs.OpenDir(dir));
  return fs.Unlink(home, Name::Literal("manifest"));
}

Status Repair(const StoreOp& op, Fs& fs, const AbsPath& dir, Acks& acks) {
  Process process(fs, dir, op.scale.seed + op.salt + 1000, op.options);
  BELAY_TRY(RepairReport report, RepairStore(fs, process.world.clock,
                                             process.world.random, dir, op.options));
  (void)report;
  acks.Add("repaired");
  BELAY_TRY(auto store, process.Open());
  for (const std::string& name : op.makes) BELAY_OK(MakeAndAck(op, *store, name, acks));
  return Ok();
}

struct Seen {
  Checkpoints all;
  std::map<std::string, std::set<uint64_t>> seqs;  // of each name
  uint64_t max_seq = 0;
};

// Reads everything; a number given twice or a damaged checkpoint is an error.
Result<Seen> Look(const StoreOp& op, Store& store) {
  Seen seen;
  BELAY_TRY(seen.all, ReadAll(store));
  LogView log;
  BELAY_OK(ReadOn(store, log));
  for (const LogRecord& r : log.records) {
    if (r.seq == 0) return WrongStore("a record without a sequence number");
    if (r.seq == seen.max_seq)
      return WrongStore("sequence number " + std::to_string(r.seq) +
                        " was given twice");
    seen.max_seq = r.seq;
    if (r.kind != RecordKind::kCheckpoint) continue;
    BELAY_TRY(Checkpoint c, ToCheckpoint(r));
    seen.seqs[c.name.value_or("?")].insert(r.seq);
  }
  for (const auto& [name, files] : seen.all)
    if (files != ContentOf(name, op.scale))
      return WrongStore("checkpoint " + name + " is not what was put in");
  return seen;
}

Status CheckClean(Store& store, const std::string& when) {
  BELAY_TRY(VerifyReport report, VerifyStore(store, {.read_data = true}));
  if (!report.clean())
    return WrongStore("verify " + when + ": " + report.damage.front());
  return Ok();
}

Status CheckAcked(const StoreOp& op, const Expected& expected, const Seen& seen) {
  std::set<std::string> wanted(op.before.begin(), op.before.end());
  std::set<std::string> maybe(op.makes.begin(), op.makes.end());
  maybe.insert("after");
  for (const std::string& name : op.drops) {
    wanted.erase(name);
    maybe.insert(name);
  }
  for (const std::string& ack : expected.acks) {
    if (ack.starts_with("dropped ")) maybe.erase(ack.substr(8));
    if (!ack.starts_with("made ")) continue;
    size_t space = ack.rfind(' ');
    std::string name = ack.substr(5, space - 5);
    wanted.insert(name);
    auto at = seen.seqs.find(name);
    if (at == seen.seqs.end()) return WrongStore("acknowledged " + name + " is gone");
    if (!at->second.contains(std::stoull(ack.substr(space + 1))))
      return WrongStore("acknowledged " + name + " has another sequence number");
  }
  for (const std::string& name : wanted)
    if (!seen.all.contains(name))
      return WrongStore("acknowledged " + name + " is gone");
  for (const auto& [name, files] : seen.all)
    if (!wanted.contains(name) && !maybe.contains(name))
      return WrongStore("checkpoint " + name + " came from nowhere");
  return Ok();
}

}  // namespace

Files ContentOf(const std::string& name, const Scale& scale) {
  // "back-x" is x once more: all of its objects are there already, or were.
  if (name.starts_with("back-")) return ContentOf(name.substr(5), scale);
  if (auto [first, edits] = Edits(name); edits > 0) {
    Files files = Before(name, scale);
    for (auto& [path, content] : files)
      if (path != "shared" && content.size() > 100)
        content.replace(HashOf(path, static_cast<uint64_t>(edits)) % 90, 10,
                        "edit " + std::to_string(10000 + edits));
    return files;
  }
  Files files = {{"shared", Noise(scale.seed, scale.bytes)}, {"empty", ""}};
  size_t count = name.starts_with("big") ? scale.files * 3 : scale.files;
  for (size_t i = 0; i < count; ++i) {
    uint64_t seed = HashOf(name + "/" + std::to_string(i), scale.seed);
    std::string path = (i % 2 ? "src/f" : "g") + std::to_string(i);
    files[path] = i % 3 ? Noise(seed, scale.bytes) : SourceText(seed, scale.bytes);
  }
  return files;
}

Process::Process(Fs& fs, const AbsPath& store, uint64_t seed,
                 const StoreOptions& options)
    : world(fs, seed) {
  world.dir = store;
  world.options = options;
}

Status MakeAndAck(const StoreOp& op, Store& store, const std::string& name,
                  Acks& acks) {
  BELAY_TRY(auto writer, store.Begin());
  Files files = ContentOf(name, op.scale);
  Checkpoint c;
  BELAY_TRY(c.state, PutFiles(*writer, files, Before(name, op.scale)));
  c.id = IdFor(name);
  c.kind = CheckpointKind::kManual;
  c.name = name;
  c.made_ms = store.clock().WallMillis();
  c.files = files.size();
  writer->Add(ToRecord(c));
  BELAY_TRY(auto published, writer->Commit());
  acks.Add("made " + name + " " + std::to_string(published.first_seq));
  return Ok();
}

Result<std::vector<std::string>> Leftovers(Store& store) {
  BELAY_TRY(Manifest manifest, store.LoadManifest());
  std::set<std::string> named;
  for (const Manifest::Pack& p : manifest.packs) {
    named.insert(PackFile::FileName(p.id).bytes());
    named.insert(PackIndex::FileName(p.id).bytes());
  }
  std::vector<std::string> left;
  BELAY_TRY(auto packs, store.fs().List(store.packs_dir()));
  for (const DirEntry& e : packs)
    if (!named.contains(e.name)) left.push_back("packs/" + e.name);
  BELAY_TRY(auto home, store.fs().List(store.dir()));
  for (const DirEntry& e : home)
    if (e.name.ends_with(".tmp")) left.push_back(e.name);
  std::sort(left.begin(), left.end());
  return left;
}

Status CheckStore(const StoreOp& op, Fs& fs, const AbsPath& dir,
                  const Expected& expected) {
  Process process(fs, dir, op.scale.seed + 5000, op.options);
  World& world = process.world;
  auto opened = process.Open();
  if (!opened.ok() && op.repairs && opened.error().code == Errc::kCorrupt) {
    BELAY_TRY(RepairReport report,
              RepairStore(fs, world.clock, world.random, dir, op.options));
    (void)report;
    opened = process.Open();
  }
  if (!opened.ok()) return WrongStore("open: " + opened.error().what);
  std::unique_ptr<Store> store = std::move(*opened);

  BELAY_TRY(Seen before, Look(op, *store));
  BELAY_OK(CheckAcked(op, expected, before));
  BELAY_OK(CheckClean(*store, "after the fault"));

  NoAcks none;
  Expected later = expected;
  if (expected.retry) {
    StoreOp once_more = op;
    once_more.salt = 900;  // a process with ids of its own
    Status again = op.run(once_more, fs, dir, none);
    if (!again.ok()) return WrongStore("the retry failed: " + again.error().what);
  }
  Status made = MakeAndAck(op, *store, "after", none);
  if (!made.ok()) return WrongStore("no new checkpoint: " + made.error().what);
  BELAY_TRY(Seen after, Look(op, *store));
  BELAY_OK(CheckAcked(op, later, after));
  if (!after.all.contains("after"))
    return WrongStore("the new checkpoint is not there");
  if (*after.seqs["after"].rbegin() <= before.max_seq)
    return WrongStore("the new checkpoint's sequence number is not above the others");

  auto collected = CollectGarbage(*store, {});
  if (!collected.ok()) return WrongStore("gc: " + collected.error().what);
  BELAY_TRY(auto left, Leftovers(*store));
  if (!left.empty()) return WrongStore("left over after gc: " + left.front());

  store.reset();
  BELAY_TRY(store, process.Open());
  BELAY_TRY(Seen last, Look(op, *store));
  BELAY_OK(CheckAcked(op, later, last));
  if (last.all != after.all) return WrongStore("gc changed what there is");
  return CheckClean(*store, "after gc");
}

std::vector<StoreOp> StoreOps(const Scale& scale) {
  StoreOp plain;
  plain.scale = scale;
  plain.options = StoreOptions{.uid = 1000, .lock_wait_ms = 200};
  plain.setup = SetupPlain;
  plain.run = MakeThem;
  plain.before = {"one", "two"};
  std::vector<StoreOp> ops;

  StoreOp create = plain;
  create.name = "create";
  create.before = {};
  create.makes = {"first"};
  create.setup = [](const StoreOp&, Fs&, const AbsPath&) { return Ok(); };
  ops.push_back(create);

  StoreOp append = plain;
  append.name = "append";
  append.makes = {"three", "back-one", "four"};
  ops.push_back(append);

  // Each checkpoint has a pack of its own.
  StoreOp roll = plain;
  roll.name = "roll";
  roll.options.pack_target = scale.bytes * 2;
  roll.makes = {"three", "four"};
  ops.push_back(roll);

  // Objects go ahead of the batch that makes them count, over several packs.
  StoreOp batches = plain;
  batches.name = "batches";
  batches.options.batch_target = scale.bytes * 2;
  batches.options.pack_target = scale.bytes * 8;
  batches.makes = {"big"};
  ops.push_back(batches);

  StoreOp drop = plain;
  drop.name = "drop";
  drop.before = {"one", "two", "three"};
  drop.drops = {"one", "three"};
  drop.run = DropThem;
  ops.push_back(drop);

  StoreOp gc = plain;
  gc.name = "gc";
  gc.options.pack_target = scale.bytes * 10;  // two checkpoints each
  gc.before = {"one", "two"};
  gc.dropped = {"gone1", "gone2"};
  gc.setup = [](const StoreOp& op, Fs& fs, const AbsPath& dir) -> Status {
    BELAY_OK(SetupPlain(op, fs, dir));
    return PutLeftover(fs, dir);
  };
  gc.run = Collect;
  ops.push_back(gc);

  StoreOp beside = plain;
  beside.name = "gc_beside_writer";
  beside.before = {"one", "two"};
  beside.dropped = {"gone1", "gone2"};
  beside.makes = {"back-gone1", "three"};
  beside.run = CollectBeside;
  ops.push_back(beside);

  // What changed little is stored as a delta.
  StoreOp delta = plain;
  delta.name = "delta";
  delta.before = {"one", "one+1"};
  delta.makes = {"one+2", "two", "one+3"};
  ops.push_back(delta);

  // By twos in a pack, so that some bases are in another one when it counts.
  StoreOp delta_roll = delta;
  delta_roll.name = "delta_roll";
  delta_roll.options.pack_target = scale.bytes * 7;
  ops.push_back(delta_roll);

  // Half of a chain is unwanted; what it was made from goes.
  StoreOp delta_gc = plain;
  delta_gc.name = "delta_gc";
  delta_gc.before = {"one+1", "one+3", "one+4", "one+6"};
  delta_gc.dropped = {"one", "one+2", "one+5"};
  delta_gc.options.pack_target = scale.bytes * 12;
  delta_gc.setup = [](const StoreOp& op, Fs& fs, const AbsPath& dir) -> Status {
    Process process(fs, dir, op.scale.seed, op.options);
    BELAY_TRY(auto store, process.Open());
    BELAY_OK(MakeAll(op, *store,
                     {"one", "one+1", "one+2", "one+3", "one+4", "one+5", "one+6"}));
    return DropCheckpoints(*store, op.dropped);
  };
  delta_gc.run = Collect;
  ops.push_back(delta_gc);

  // A writer has found its bases when the collector seals the pack they are in.
  StoreOp delta_beside = delta_gc;
  delta_beside.name = "delta_gc_beside_writer";
  delta_beside.makes = {"one+7", "back-one+2"};
  delta_beside.run = CollectBeside;
  ops.push_back(delta_beside);

  StoreOp repair = plain;
  repair.name = "repair";
  repair.options.pack_target = scale.bytes * 4;
  repair.makes = {"three"};
  repair.repairs = true;
  repair.setup = SetupLost;
  repair.run = Repair;
  ops.push_back(repair);
  return ops;
}

StoreOp OpNamed(const std::string& name, const Scale& scale) {
  for (StoreOp& op : StoreOps(scale))
    if (op.name == name) return op;
  BELAY_CHECK(false);
}

}  // namespace belay::test
