#include "core/moved_root.h"

#include "base/mutant.h"
#include "core/roots.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

// Files keep their number and times when a directory above them is renamed; what was
// copied, cloned or unpacked anew has others.
bool HoldsWhatItHeld(Store& store, const RootId& root, const Fd& dir) {
  if (BELAY_MUTANT("a-number-proves-a-move")) return true;
  constexpr size_t kMostLooks = 256;
  Fs& fs = store.fs();
  auto caches = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!caches.ok()) return false;
  const StatCache cache = StatCache::Load(fs, *caches, root);
  if (cache.empty()) return false;
  const auto top = cache.Find(cache.root_block());
  if (!top) return false;
  size_t looks = 0;
  for (const CacheEntry& entry : top->entries) {
    uint64_t print = entry.print;
    if (entry.kind == CacheKind::kDirectory) {
      const auto block = cache.Find(entry.size);
      print = block ? block->head->print : 0;
    }
    if (print == 0) continue;
    if (++looks > kMostLooks) return false;
    auto name = Name::Parse(top->NameOf(entry));
    if (!name.ok()) continue;
    auto stat = fs.StatAt(dir, *name);
    if (stat.ok() && Fingerprint(*stat, cache.key()) == print) return true;
  }
  return false;
}

}  // namespace

Result<std::optional<AbsPath>> MovedForCertain(Store& store, Catalog& catalog,
                                               const Fd& dir, const FileStat& stat) {
  std::optional<AbsPath> none;
  BELAY_TRY(auto moved, FindMoved(catalog, store.fs(), stat));
  if (!moved || moved->root.dev != stat.dev ||
      !HoldsWhatItHeld(store, moved->root.id, dir))
    return none;
  BELAY_TRY(AbsPath from, AbsPath::Parse(moved->root.path));
  return std::optional(std::move(from));
}

}  // namespace belay
