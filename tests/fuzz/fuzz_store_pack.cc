// A pack, manifest and tail of any bytes: opened, read, verified, repaired and written
// to without a crash, and never handing out bytes that do not match their hash.

#include "base/clock.h"
#include "base/mem_fs.h"
#include "base/random.h"
#include "store/batch_writer.h"
#include "store/gc.h"
#include "store/repair.h"
#include "store/store.h"
#include "store/verify.h"

namespace {
using namespace belay;

// A store with one pack whose bytes the fuzzer changes.
struct Base {
  MemFs disk;
  PackId pack;
  Bytes bytes;
};

const Base& GetBase() {
  static const Base* base = [] {
    auto* b = new Base();
    FakeClock clock;
    SeededRandom random(1);
    StoreOptions options;
    options.uid = 1000;
    auto store = Store::Open(b->disk, clock, random, AbsPath::Literal("/store"),
                             options, Store::Mode::kWrite);
    BELAY_CHECK(store.ok());
    std::string text = "0123456789";
    for (int i = 0; i < 300; ++i) text += std::to_string(i * i * 7919);
    ObjectId content_before;
    Tree tree_before;
    for (int i = 0; i < 4; ++i) {
      auto writer = (*store)->Begin();
      BELAY_CHECK(writer.ok());
      Tree tree;
      TreeEntry e;
      e.name = "f";
      e.mode = 0644;
      text.replace(static_cast<size_t>(i) * 40, 9, "edit" + std::to_string(10000 + i));
      e.size = text.size();
      e.id = *(*writer)->PutContent(AsBytes(text), content_before);
      content_before = e.id;
      for (char c = 'f'; c < 'k'; ++c) {
        e.name = std::string(1, c);
        tree.entries.push_back(e);
        e.id = *(*writer)->PutContent(AsBytes(e.name));
        e.size = 1;
      }
      State state;
      state.tree = *(*writer)->PutTree(tree, tree_before);
      tree_before = tree;
      Checkpoint c;
      c.state = *(*writer)->PutObject(ObjectType::kState, EncodeState(state));
      c.id = RecordId(random.NewId());
      c.name = "n";
      (*writer)->Add(ToRecord(c));
      BELAY_CHECK((*writer)->Commit().ok());
    }
    b->pack = (*store)->manifest().packs.at(0).id;
    auto bytes = ReadSmallFile(b->disk, (*store)->packs_dir(),
                               PackFile::FileName(b->pack), 1 << 20);
    BELAY_CHECK(bytes.ok());
    b->bytes = *bytes;
    return b;
  }();
  return *base;
}

struct World {
  explicit World(Fs& disk) : fs(disk) {}
  Result<std::unique_ptr<Store>> Open() {
    StoreOptions options;
    options.uid = 1000;
    return Store::Open(fs, clock, random, AbsPath::Literal("/store"), options,
                       Store::Mode::kWrite);
  }
  Fs& fs;
  FakeClock clock;
  SeededRandom random{3};
};

void Overwrite(Fs& fs, const Fd& dir, const Name& name, ByteSpan bytes) {
  BELAY_CHECK(ReplaceFile(fs, dir, name, bytes).ok());
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Base& base = GetBase();
  auto disk = base.disk.Clone();
  ByteSpan input(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  auto home = disk->OpenDir(AbsPath::Literal("/store"));
  auto packs = disk->OpenDir(AbsPath::Literal("/store/packs"));
  BELAY_CHECK(home.ok() && packs.ok());
  switch (data[0] % 6) {
    case 0:
      Overwrite(*disk, *packs, PackFile::FileName(base.pack), input);
      break;
    case 1: {  // edits: offset (2 bytes), value
      Bytes bytes = base.bytes;
      for (size_t i = 0; i + 2 < input.size(); i += 3) {
        size_t at =
            (static_cast<size_t>(input[i]) << 8) | static_cast<size_t>(input[i + 1]);
        bytes[at % bytes.size()] = input[i + 2];
      }
      Overwrite(*disk, *packs, PackFile::FileName(base.pack), bytes);
      break;
    }
    case 2: {  // something behind the last batch
      Bytes bytes = base.bytes;
      bytes.insert(bytes.end(), input.begin(), input.end());
      Overwrite(*disk, *packs, PackFile::FileName(base.pack), bytes);
      break;
    }
    case 5: {  // a batch of one record, whole but for what it says: header, stored
               // bytes
      World world(*disk);
      if (input.size() < 8) return 0;
      RecordHeader header;
      header.type = static_cast<ObjectType>(input[0] & std::byte{31});
      header.codec = CodecId::kDelta;
      header.chain = static_cast<uint8_t>(1 + static_cast<unsigned>(input[0]) / 32);
      header.raw_length = LoadU32(&input[1]) % (uint32_t{1} << 25);
      header.id = Sha256::Of(input);
      ByteSpan stored = input.subspan(5);
      header.stored_length = static_cast<uint32_t>(stored.size());
      PreparedBatch batch;
      batch.AddObject(header, stored);
      batch.Seal();
      auto store = world.Open();
      BELAY_CHECK(store.ok());
      BELAY_CHECK(Appender(**store).Append(batch, true).ok());
      auto read = (*store)->Get(header.key());
      BELAY_CHECK(!read.ok() || Sha256::Of(*read) == header.id);
      break;
    }
    case 3:
      Overwrite(*disk, *home, Name::Literal("manifest"), input);
      break;
    case 4:
      Overwrite(*disk, *home, Name::Literal("tail"), input);
      break;
  }
  FakeClock clock;
  SeededRandom random(2);
  StoreOptions options;
  options.uid = 1000;
  options.lock_wait_ms = 1;
  const AbsPath dir = AbsPath::Literal("/store");
  for (int round = 0; round < 2; ++round) {
    auto store = Store::Open(*disk, clock, random, dir, options, Store::Mode::kWrite);
    if (store.ok()) {
      (void)(*store)->ReadLog(std::nullopt, [&](const LogRecord& record) -> Status {
        auto c = ToCheckpoint(record);
        if (!c.ok()) return Ok();
        auto state = (*store)->GetState(c->state);
        if (!state.ok()) return Ok();
        auto tree = (*store)->GetTree(state->tree);
        if (!tree.ok()) return Ok();
        for (const TreeEntry& e : tree->entries) {
          auto content = (*store)->ReadContentBytes(e.id, 1 << 20);
          if (content.ok()) BELAY_CHECK(Sha256::Of(*content) == e.id);
        }
        return Ok();
      });
      VerifyOptions every_byte;
      every_byte.read_data = true;
      (void)VerifyStore(**store, every_byte);
      if (auto writer = (*store)->Begin(); writer.ok()) {
        (void)(*writer)->PutContent(AsBytes("new"));
        (void)(*writer)->Commit();
      }
      GcOptions all;
      all.everything = true;
      (void)CollectGarbage(**store, all);
    }
    (void)RepairStore(*disk, clock, random, dir, options);
  }
  return 0;
}
