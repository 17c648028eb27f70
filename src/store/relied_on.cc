#include "store/relied_on.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fast_hash.h"
#include "base/mutant.h"
#include "store/batch_place.h"
#include "store/pack_index.h"

namespace belay {

namespace {

constexpr uint32_t kOrder = 0x01020304;  // of this machine's bytes

template <class T>
T At(ByteSpan head, size_t at) {
  T value;
  std::memcpy(&value, head.data() + at, sizeof value);
  return value;
}

// Nothing unless it is one, whole, of this machine.
std::optional<BatchPlace> PlaceIn(Fs& fs, const Fd& cache, const Name& name) {
  auto file = fs.Open(cache, name, OpenMode::Read());
  if (!file.ok()) return std::nullopt;
  std::array<std::byte, kCacheHeadSize> raw;
  auto got = ReadFull(fs, *file, 0, raw);
  if (!got.ok() || *got != raw.size()) return std::nullopt;
  const ByteSpan head(raw);
  if (AsText(head.first(kStatCacheMagic.size())) != kStatCacheMagic ||
      At<uint32_t>(head, kStatCacheMagic.size()) != kOrder ||
      At<uint64_t>(head, kCacheCheckAt) !=
          FastHash(head.first(kCacheCheckAt), At<uint64_t>(head, kCacheKeyAt)))
    return std::nullopt;
  return BatchPlace{PackId(Id128::FromSpan(head.subspan(kCachePackAt, 16))),
                    At<uint64_t>(head, kCacheBatchAt),
                    Hash256::FromSpan(head.subspan(kCacheBodyHashAt, 32))};
}

// By the stat caches alone.
std::optional<uint64_t> ByCaches(Fs& fs, const Fd& store_dir, const Fd& packs_dir,
                                 const PackId& pack, const StoreId& store) {
  if (BELAY_MUTANT("caches-say-nothing")) return std::nullopt;
  auto cache = fs.Open(store_dir, Name::Literal("cache"), OpenMode::Directory());
  if (!cache.ok()) return std::nullopt;
  auto entries = fs.List(*cache);
  if (!entries.ok()) return std::nullopt;
  std::optional<BatchPlace> last;
  for (const DirEntry& e : *entries) {
    if (!e.name.ends_with(".scan")) continue;
    auto place = PlaceIn(fs, *cache, Name::Literal(e.name));
    if (place && place->pack == pack && (!last || last->offset < place->offset))
      last = place;
  }
  if (!last || last->offset > INT64_MAX) return std::nullopt;
  auto file = PackFile::Open(fs, packs_dir, pack, store, OpenMode::Read());
  if (file.ok()) {
    auto header = file->BatchAt(last->offset, UINT64_MAX);
    if (header.ok() && *header && (*header)->body_hash == last->body_hash)
      return (*header)->end();
  }
  return last->offset + kBatchHeaderSize + kBatchTrailerSize;
}

}  // namespace

std::optional<uint64_t> ReliedOn(Fs& fs, const Fd& store_dir, const Fd& packs_dir,
                                 const PackId& pack, const StoreId& store) {
  auto relied_on = ByCaches(fs, store_dir, packs_dir, pack, store);
  auto index = PackIndex::Load(fs, packs_dir, pack);
  if (index.ok() && index->flushed() > kPackHeaderSize &&
      !BELAY_MUTANT("the-index-tells-of-no-end"))
    relied_on = std::max(relied_on.value_or(0), index->flushed());
  return relied_on;
}

}  // namespace belay
