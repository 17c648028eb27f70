#include "core/upkeep.h"

#include <array>
#include <cstring>

#include "scan/stat_cache.h"
#include "store/stray_pack.h"

namespace belay {

namespace {
Name MarkName() { return Name::Literal("upkeep"); }
}  // namespace

bool UpkeepIsDue(Store& store, uint64_t seq) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return false;
  auto mark = store.fs().Open(*dir, MarkName(), OpenMode::OpenOrCreate());
  if (!mark.ok()) return false;
  std::array<std::byte, 8> raw{};
  auto got = ReadFull(store.fs(), *mark, 0, raw);
  if (got.ok() && BeginsAsPack(raw)) {  // the next one finds the name free
    (void)KeepPack(store.fs(), *dir, MarkName());
    return false;
  }
  uint64_t last = 0;
  if (got.ok() && *got == raw.size()) std::memcpy(&last, raw.data(), sizeof last);
  // A store that was begun anew counts from the start again.
  if (last <= seq && seq - last < kUpkeepEvery) return false;
  std::memcpy(raw.data(), &seq, sizeof seq);
  return WriteFull(store.fs(), *mark, 0, raw).ok();
}

}  // namespace belay
