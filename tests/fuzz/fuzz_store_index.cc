// A pack index of any bytes changes no answer: what was stored is found all the same.

#include "base/clock.h"
#include "base/mem_fs.h"
#include "base/random.h"
#include "store/batch_writer.h"
#include "store/store.h"

namespace {
using namespace belay;

struct Base {
  MemFs disk;
  PackId pack;
  Bytes index;
};
constexpr int kFiles = 20;
std::string Text(int i) { return "content " + std::to_string(i); }

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
    auto writer = (*store)->Begin();
    BELAY_CHECK(writer.ok());
    for (int i = 0; i < kFiles; ++i)
      BELAY_CHECK((*writer)->PutContent(AsBytes(Text(i))).ok());
    BELAY_CHECK((*writer)->Commit().ok());
    b->pack = (*store)->manifest().packs.at(0).id;
    auto bytes = ReadSmallFile(b->disk, (*store)->packs_dir(),
                               PackIndex::FileName(b->pack), 1 << 20);
    BELAY_CHECK(bytes.ok());
    b->index = *bytes;
    return b;
  }();
  return *base;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const Base& base = GetBase();
  auto disk = base.disk.Clone();
  ByteSpan input(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  Bytes bytes(input.begin(), input.end());
  if (data[0] & 1) {
    bytes = base.index;
    // Edits beyond the header keep its check right, so that the slots are believed.
    for (size_t i = 0; i + 2 < input.size(); i += 3) {
      size_t at =
          (static_cast<size_t>(input[i]) << 8) | static_cast<size_t>(input[i + 1]);
      bytes[64 + at % (bytes.size() - 64)] = input[i + 2];
    }
  }
  auto packs = disk->OpenDir(AbsPath::Literal("/store/packs"));
  BELAY_CHECK(packs.ok() &&
              ReplaceFile(*disk, *packs, PackIndex::FileName(base.pack), bytes).ok());
  FakeClock clock;
  SeededRandom random(2);
  StoreOptions options;
  options.uid = 1000;
  auto store = Store::Open(*disk, clock, random, AbsPath::Literal("/store"), options,
                           Store::Mode::kWrite);
  BELAY_CHECK(store.ok());
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kFiles; ++i) {
      auto content = (*store)->ReadContentBytes(Sha256::Of(AsBytes(Text(i))), 1000);
      BELAY_CHECK(content.ok() && AsText(*content) == Text(i));
    }
    auto writer = (*store)->Begin();
    BELAY_CHECK(writer.ok());
    BELAY_CHECK((*writer)->PutContent(AsBytes("more " + std::to_string(round))).ok());
    BELAY_CHECK((*writer)->Commit().ok());
  }
  return 0;
}
