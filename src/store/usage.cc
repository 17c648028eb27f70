#include "store/usage.h"

#include <algorithm>

#include "store/inventory.h"

namespace belay {

namespace {

// MoveAside() and repair give such names: "x.aside", "x.aside2", "x.unreadable".
bool IsAside(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos) return false;
  return name.substr(0, end + 1).ends_with(".aside") || name.ends_with(".unreadable");
}

// Every file of the store, once.
class FileCount {
 public:
  explicit FileCount(Store& store) : store_(store), fs_(store.fs()) {}

  Result<StoreUsage> Run() {
    BELAY_OK(Below(store_.packs_dir(), "packs/", &usage_.other));
    BELAY_TRY(FileStat own, fs_.Stat(store_.dir()));
    Add(own.allocated, &usage_.other);
    BELAY_TRY(auto entries, fs_.List(store_.dir()));
    for (const DirEntry& e : entries) {
      if (e.name == "packs") continue;
      BELAY_TRY(Name name, Name::Parse(e.name));
      auto stat = fs_.StatAt(store_.dir(), name);
      if (!stat.ok()) continue;
      uint64_t* part = e.name == "catalog" ? &usage_.catalog : &usage_.other;
      if (IsAside(e.name)) {
        part = &usage_.aside;
        usage_.aside_paths.push_back(e.name);
      }
      if (stat->type != FileType::kDirectory) {
        Add(stat->allocated, part);
        continue;
      }
      BELAY_TRY(Fd dir, fs_.Open(store_.dir(), name, OpenMode::Directory()));
      BELAY_OK(Below(dir, e.name + "/", part));
    }
    std::sort(usage_.aside_paths.begin(), usage_.aside_paths.end());
    return std::move(usage_);
  }

 private:
  void Add(uint64_t bytes, uint64_t* part) {
    usage_.allocated += bytes;
    *part += bytes;
  }

  // A directory and what is directly in it.
  Status Below(const Fd& dir, const std::string& path, uint64_t* part) {
    BELAY_TRY(FileStat own, fs_.Stat(dir));
    Add(own.allocated, part);
    BELAY_TRY(auto entries, fs_.List(dir));
    for (const DirEntry& e : entries) {
      BELAY_TRY(Name name, Name::Parse(e.name));
      auto stat = fs_.StatAt(dir, name);
      if (!stat.ok()) {
        if (stat.error().code == Errc::kNotFound) continue;
        return std::move(stat).error();
      }
      const bool of_packs = path == "packs/";
      if (IsAside(e.name) && part != &usage_.aside) {
        usage_.aside_paths.push_back(path + e.name);
        Add(stat->allocated, &usage_.aside);
      } else if (of_packs && e.name.ends_with(".pack")) {
        Add(stat->allocated, &usage_.packs);
      } else if (of_packs && e.name.ends_with(".idx")) {
        Add(stat->allocated, &usage_.indexes);
      } else {
        Add(stat->allocated, part);
      }
    }
    return Ok();
  }

  Store& store_;
  Fs& fs_;
  StoreUsage usage_;
};

}  // namespace

Result<Allocated> AllocatedBytes(Store& store) {
  BELAY_TRY(StoreUsage usage, FileCount(store).Run());
  return Allocated{usage.allocated, usage.catalog, usage.aside,
                   std::move(usage.aside_paths)};
}

Result<StoreUsage> MeasureUsage(Store& store) {
  BELAY_TRY(HeldLock use, store.HoldForReading());
  BELAY_TRY(StoreUsage usage, FileCount(store).Run());
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
