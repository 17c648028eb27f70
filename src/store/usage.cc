#include "store/usage.h"

#include "store/inventory.h"

namespace belay {

namespace {

struct Count {
  uint64_t packs = 0, indexes = 0, other = 0;
};

Result<uint64_t> AllocatedBelow(Fs& fs, const Fd& dir, Count* split) {
  BELAY_TRY(FileStat own, fs.Stat(dir));
  uint64_t total = own.allocated;
  if (split) split->other += own.allocated;
  BELAY_TRY(auto entries, fs.List(dir));
  for (const DirEntry& e : entries) {
    BELAY_TRY(Name name, Name::Parse(e.name));
    auto stat = fs.StatAt(dir, name);
    if (!stat.ok()) {
      if (stat.error().code == Errc::kNotFound) continue;
      return std::move(stat).error();
    }
    total += stat->allocated;
    if (!split) continue;
    if (e.name.ends_with(".pack"))
      split->packs += stat->allocated;
    else if (e.name.ends_with(".idx"))
      split->indexes += stat->allocated;
    else
      split->other += stat->allocated;
  }
  return total;
}

}  // namespace

namespace {
// Every file of the store, once. (The top directory's own listing counts the
// subdirectories' inodes.)
Result<StoreUsage> MeasureFiles(Store& store) {
  Fs& fs = store.fs();
  StoreUsage usage;
  Count split;
  BELAY_TRY(uint64_t packs, AllocatedBelow(fs, store.packs_dir(), &split));
  usage.packs = split.packs;
  usage.indexes = split.indexes;
  usage.other = split.other;
  usage.allocated = packs;
  BELAY_TRY(FileStat own, fs.Stat(store.dir()));
  usage.allocated += own.allocated;
  usage.other += own.allocated;
  BELAY_TRY(auto entries, fs.List(store.dir()));
  for (const DirEntry& e : entries) {
    if (e.name == "packs") continue;
    BELAY_TRY(Name name, Name::Parse(e.name));
    auto stat = fs.StatAt(store.dir(), name);
    if (!stat.ok()) continue;
    if (stat->type == FileType::kDirectory) {
      BELAY_TRY(Fd dir, fs.Open(store.dir(), name, OpenMode::Directory()));
      BELAY_TRY(uint64_t below, AllocatedBelow(fs, dir, nullptr));
      usage.allocated += below;
      (e.name == "catalog" ? usage.catalog : usage.other) += below;
    } else {
      usage.allocated += stat->allocated;
      usage.other += stat->allocated;
    }
  }
  return usage;
}
}  // namespace

Result<Allocated> AllocatedBytes(Store& store) {
  BELAY_TRY(StoreUsage usage, MeasureFiles(store));
  return Allocated{usage.allocated, usage.catalog};
}

Result<StoreUsage> MeasureUsage(Store& store) {
  BELAY_TRY(HeldLock use, store.HoldForReading());
  BELAY_TRY(StoreUsage usage, MeasureFiles(store));
  LogView log;
  BELAY_OK(ReadOn(store, log));
  BELAY_TRY(Inventory inventory, TakeInventory(store));
  Marker marker(store, inventory);
  BELAY_OK(marker.Mark(log));
  for (const PackInventory& pack : inventory.packs)
    if (!pack.readable)
      usage.damage.push_back(PackFile::FileName(pack.listed.id).bytes() +
                             " cannot be read");
  if (usage.damage.empty() && !log.whole)
    usage.damage.emplace_back("a part of the log cannot be read");
  if (usage.damage.empty() && !marker.broken().empty())
    usage.damage.push_back(marker.broken().front().what);

  std::unordered_set<ObjectId> dead_records;
  std::map<RootId, RootUsage> roots;
  for (const LogRecord& r : log.records) {
    if (!log.IsWanted(r)) {
      LogRecord stored = r;
      dead_records.insert(Sha256::Of(EncodeLogRecord(stored)));
      stored.seq = 0;
      dead_records.insert(Sha256::Of(EncodeLogRecord(stored)));
      continue;
    }
    if (r.root.is_zero()) continue;
    RootUsage& root = roots[r.root];
    root.root = r.root;
    if (auto named = ToRoot(r); named.ok()) root.path = named->path;
    if (r.kind == RecordKind::kCheckpoint) ++root.checkpoints;
  }
  // Which roots need each object.
  std::unordered_map<ObjectKey, std::vector<RootUsage*>> needs;
  for (auto& [id, root] : roots) {
    Marker mine(store, inventory);
    for (auto at = log.records.rbegin(); at != log.records.rend(); ++at)
      if (at->root == id && log.Holds(*at)) BELAY_OK(mine.MarkFrom(*at, log.purged));
    for (const ObjectKey& key : mine.live()) needs[key].push_back(&root);
  }
  std::unordered_set<ObjectKey> seen;
  for (const PackInventory& pack : inventory.packs) {
    usage.pack_bytes += pack.end;
    uint64_t records = 0;
    std::vector<bool> wanted;
    for (const InventoryItem& item : pack.items)
      wanted.push_back(item.key.type == ObjectType::kLog
                           ? !dead_records.contains(item.key.id)
                           : marker.IsLive(item.key) && seen.insert(item.key).second);
    const auto held = pack.HeldBases(wanted);
    for (size_t i = 0; i < pack.items.size(); ++i) {
      const InventoryItem& item = pack.items[i];
      const uint64_t length = item.total_length();
      records += length;
      if (!wanted[i] && !held.contains(item.offset)) {
        usage.reclaimable += length;
        continue;
      }
      usage.wanted += length;
      usage.by_type[ObjectTypeName(item.key.type)] += length;
      auto need = needs.find(item.key);
      if (need == needs.end()) continue;
      for (RootUsage* root : need->second)
        (need->second.size() == 1 ? root->unique : root->shared) += length;
    }
    usage.overhead += pack.end - records;
  }
  for (auto& [id, root] : roots) usage.roots.push_back(std::move(root));
  return usage;
}

}  // namespace belay
