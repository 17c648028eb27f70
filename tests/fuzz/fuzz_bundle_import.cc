// Bundles: any bytes are refused or are whole checkpoints that a store can take. As
// every byte of a bundle is hashed, noise would never get past the first check; so,
// unless the input begins with 0, it is a list of records, and the bundle around them
// is made right:
//
//   u8 type, u16 length, so many bytes, in which f1 d5 N stands for the id of record N;
//   of chunks the check at their end, and the id, are made right too.

#include "base/mem_fs.h"
#include "base/random.h"
#include "bundle/import.h"
#include "store/verify.h"
#include "support/bundle_forge.h"

namespace belay {
namespace {

Bytes Substitute(ByteSpan in, const std::vector<ObjectId>& ids) {
  Bytes out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i + 2 < in.size() && in[i] == std::byte{0xf1} && in[i + 1] == std::byte{0xd5}) {
      const size_t n = static_cast<size_t>(in[i + 2]);
      if (n < ids.size()) {
        out.insert(out.end(), ids[n].bytes.begin(), ids[n].bytes.end());
        i += 2;
        continue;
      }
    }
    out.push_back(in[i]);
  }
  return out;
}

Bytes MakeRight(ByteSpan in) {
  test::BundleForge forge;
  std::vector<ObjectId> ids;
  std::vector<Bytes> raws;
  ByteReader reader(in);
  while (!reader.at_end() && ids.size() < 250) {
    const auto type = static_cast<ObjectType>(reader.U8());
    const size_t length = std::min<size_t>(reader.U16(), reader.remaining());
    Bytes raw = Substitute(reader.Raw(length), ids);
    ObjectId id = Sha256::Of(raw);
    if (type == ObjectType::kChunks) {
      ByteWriter(raw).U64(Check64(raw));
      Sha256 whole;
      if (auto list = DecodeChunks(raw); list.ok() && list->chunks.size() < 64)
        for (const Chunk& chunk : list->chunks)
          for (size_t n = 0; n < ids.size(); ++n)
            if (ids[n] == chunk.id) whole.Update(raws[n]);
      id = whole.Finish();
    }
    forge.PutAs(type, id, raw);
    ids.push_back(id);
    raws.push_back(std::move(raw));
  }
  return forge.Build();
}

void Take(BundleReader& reader) {
  MemFs disk;
  FakeClock clock;
  SeededRandom random(1);
  auto store = Store::Open(disk, clock, random, AbsPath::Literal("/store"),
                           {.uid = 1000, .lock_wait_ms = 100}, Store::Mode::kWrite);
  BELAY_CHECK(store.ok());
  Root root;
  root.id.bytes[0] = std::byte{1};
  auto report = ImportBundle(**store, reader, {.root = root, .lock_wait_ms = 100});
  BELAY_CHECK(report.ok());
  BELAY_CHECK(report->imported == reader.checkpoints().size());
  auto verified = VerifyStore(**store, {.read_data = true});
  BELAY_CHECK(verified.ok() && verified->clean());
  for (const ImportedCheckpoint& one : report->checkpoints) {
    auto state = (*store)->GetState(one.checkpoint.state);
    BELAY_CHECK(state.ok() && (*store)->GetTree(state->tree).ok());
  }
}

}  // namespace
}  // namespace belay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  ByteSpan input(reinterpret_cast<const std::byte*>(data), size);
  if (input.empty()) return 0;
  const bool as_it_is = input[0] == std::byte{0};
  const Bytes bundle =
      as_it_is ? Bytes(input.begin() + 1, input.end()) : MakeRight(input);
  auto source = BundleInMemory(bundle);
  auto reader = BundleReader::Open(*source);
  if (reader.ok()) Take(**reader);
  return 0;
}
