#include "store/usage.h"

#include <algorithm>

#include "store/inventory.h"

namespace belay {

namespace {

// MoveAside() gives such names: "x.aside", "x.aside2"; repair once gave "x.unreadable".
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
      if (!stat.ok()) {
        if (stat.error().code == Errc::kNotFound) continue;
        return std::move(stat).error();
      }
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

namespace {

// Whoever is asked what the store holds for them.
struct Owner {
  std::vector<const LogRecord*> holding, let_go;  // newest first
  uint64_t unique = 0, shared = 0, reclaimable = 0;
};

// What leads to what, each object read once however many owners lead to it: with some
// hundred sessions in one store there are as many walks over nearly the same objects.
class Graph {
 public:
  Graph(Store& store, const Inventory& inventory,
        const std::unordered_map<ObjectKey, uint64_t>& purged)
      : store_(store), inventory_(inventory), purged_(purged) {}

  void AddWanted(const ObjectKey& key, uint64_t length) {
    objects_[Number(key)].wanted += length;
  }
  void AddGarbage(const ObjectKey& key, uint64_t length) {
    objects_[Number(key)].garbage += length;
  }

  // Tells the owners' sums. What several have is shared by each of them; garbage that
  // several once had is nobody's.
  Status Share(const std::vector<Owner*>& owners) {
    for (Object& object : objects_) object.holders = object.leavers = 0;
    for (const bool count : {true, false})
      for (Owner* owner : owners) {
        BELAY_OK(Walk(owner->holding, true, [&](Object& object) {
          if (count)
            ++object.holders;
          else
            (object.holders == 1 ? owner->unique : owner->shared) += object.wanted;
        }));
        BELAY_OK(Walk(owner->let_go, false, [&](Object& object) {
          if (count)
            ++object.leavers;
          else if (object.leavers == 1)
            owner->reclaimable += object.garbage;
        }));
      }
    return Ok();
  }

 private:
  struct Object {
    ObjectKey key;
    uint64_t wanted = 0, garbage = 0;  // bytes
    uint32_t holders = 0, leavers = 0;
    uint32_t visited = 0;  // by which walk
    bool read = false;
    std::vector<uint32_t> below = {};
  };

  uint32_t Number(const ObjectKey& key) {
    auto [at, fresh] =
        numbers_.try_emplace(key, static_cast<uint32_t>(objects_.size()));
    if (fresh) objects_.push_back(Object{.key = key});
    return at->second;
  }
  // A file's content is a blob or a chunk list.
  ObjectKey Stored(ObjectKey key) const {
    if (key.type == ObjectType::kBlob && !inventory_.Has(key) &&
        inventory_.Has({ObjectType::kChunks, key.id}))
      key.type = ObjectType::kChunks;
    return key;
  }
  // What cannot be read leads nowhere; MeasureUsage() says that it is damaged.
  Status Read(uint32_t number) {
    if (objects_[number].read) return Ok();
    objects_[number].read = true;
    const ObjectKey key = objects_[number].key;
    if (key.type == ObjectType::kBlob || !inventory_.Has(key)) return Ok();
    auto bytes = store_.Get(key);
    if (!bytes.ok()) {
      const Errc code = bytes.error().code;
      if (code == Errc::kCorrupt || code == Errc::kNotFound || code == Errc::kPurged)
        return Ok();
      return std::move(bytes).error();
    }
    auto refs = ReferencesOf(key.type, *bytes);
    if (!refs.ok()) return Ok();
    std::vector<uint32_t> below;
    for (const ObjectKey& child : *refs) below.push_back(Number(Stored(child)));
    objects_[number].below = std::move(below);
    return Ok();
  }
  Status Walk(const std::vector<const LogRecord*>& records, bool heed_purges,
              const std::function<void(Object&)>& visit) {
    ++walk_;
    std::vector<uint32_t> work;
    for (const LogRecord* record : records) {
      for (const ObjectKey& key : record->refs) work.push_back(Number(Stored(key)));
      while (!work.empty()) {
        const uint32_t number = work.back();
        work.pop_back();
        if (objects_[number].visited == walk_) continue;
        if (heed_purges && !purged_.empty()) {
          auto purged = purged_.find(objects_[number].key);
          if (purged != purged_.end() && record->seq < purged->second) continue;
        }
        objects_[number].visited = walk_;
        BELAY_OK(Read(number));
        visit(objects_[number]);
        const std::vector<uint32_t>& below = objects_[number].below;
        work.insert(work.end(), below.begin(), below.end());
      }
    }
    return Ok();
  }

  Store& store_;
  const Inventory& inventory_;
  const std::unordered_map<ObjectKey, uint64_t>& purged_;
  std::unordered_map<ObjectKey, uint32_t> numbers_;
  std::vector<Object> objects_;
  uint32_t walk_ = 0;
};

}  // namespace

Result<uint64_t> WantedWithout(Store& store, const std::vector<RecordId>& dropped) {
  BELAY_TRY(HeldLock use, store.HoldForReading());
  LogView log;
  BELAY_OK(ReadOn(store, log));
  log.dropped.insert(dropped.begin(), dropped.end());
  BELAY_TRY(Inventory inventory, TakeInventory(store));
  Marker marker(store, inventory);
  BELAY_OK(marker.Mark(log));
  uint64_t wanted = 0;
  std::unordered_set<ObjectKey> seen;
  for (const PackInventory& pack : inventory.packs)
    for (const InventoryItem& item : pack.items)
      if (item.key.type != ObjectType::kLog && marker.IsLive(item.key) &&
          seen.insert(item.key).second)
        wanted += item.total_length();
  return wanted;
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

  // Roots whose latest records name one path are one root with several ids.
  std::unordered_map<RootId, RootId> same;
  std::map<std::string, RootId> by_path;
  for (auto at = log.records.rbegin(); at != log.records.rend(); ++at)
    if (auto it = ToRoot(*at); it.ok() && log.IsWanted(*at) && !same.contains(it->id))
      same[it->id] = by_path.try_emplace(it->path, it->id).first->second;
  auto one_of = [&](const RootId& id) {
    auto other = same.find(id);
    return other == same.end() ? id : other->second;
  };

  std::unordered_map<ObjectId, const LogRecord*> dead_records;
  std::unordered_map<ObjectId, uint64_t> replaced;  // bytes of wanted ones that are not
  std::map<RootId, RootUsage> roots;
  std::map<std::string, SessionUsage> sessions;
  // Who needs what: the records of each root; those of each session, and all others.
  std::map<RootId, Owner> by_root;
  std::map<std::string, Owner> by_session;
  Owner no_session;
  for (auto at = log.records.rbegin(); at != log.records.rend(); ++at) {
    const LogRecord& r = *at;
    auto checkpoint = ToCheckpoint(r);
    const bool of_session = checkpoint.ok() && checkpoint->session;
    Owner& root = by_root[one_of(r.root)];
    Owner& session = of_session ? by_session[*checkpoint->session] : no_session;
    const bool holds = log.Holds(r);
    (holds ? root.holding : root.let_go).push_back(&r);
    (holds ? session.holding : session.let_go).push_back(&r);
    if (!log.IsWanted(r)) {
      LogRecord stored = r;
      dead_records.emplace(Sha256::Of(EncodeLogRecord(stored)), &r);
      stored.seq = 0;
      dead_records.emplace(Sha256::Of(EncodeLogRecord(stored)), &r);
      continue;
    }
    if (const uint64_t less = log.ReplacedBytes(r); less > 0) {
      LogRecord stored = r;
      replaced.emplace(Sha256::Of(EncodeLogRecord(stored)), less);
      stored.seq = 0;
      replaced.emplace(Sha256::Of(EncodeLogRecord(stored)), less);
    }
    if (of_session) ++sessions[*checkpoint->session].checkpoints;
    if (r.root.is_zero()) continue;
    RootUsage& named = roots[one_of(r.root)];
    named.root = one_of(r.root);
    if (auto it = ToRoot(r); it.ok() && named.path.empty()) named.path = it->path;
    if (checkpoint.ok()) ++named.checkpoints;
  }

  Graph graph(store, inventory, log.purged);
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
        graph.AddGarbage(item.key, length);
        if (auto dead = dead_records.find(item.key.id);
            item.key.type == ObjectType::kLog && dead != dead_records.end()) {
          const LogRecord& record = *dead->second;
          if (auto root = roots.find(one_of(record.root)); root != roots.end())
            root->second.reclaimable += length;
          if (auto gone = ToCheckpoint(record); gone.ok() && gone->session)
            sessions[*gone->session].reclaimable += length;
        }
        continue;
      }
      uint64_t less = 0;
      if (auto text = replaced.find(item.key.id);
          item.key.type == ObjectType::kLog && text != replaced.end())
        less = text->second;
      usage.reclaimable += less;
      usage.wanted += length - less;
      usage.by_type[ObjectTypeName(item.key.type)] += length - less;
      graph.AddWanted(item.key, length - less);
    }
    usage.overhead += pack.end - records;
  }
  std::vector<Owner*> owners;
  for (auto& [id, owner] : by_root) owners.push_back(&owner);
  BELAY_OK(graph.Share(owners));
  owners = {&no_session};
  for (auto& [id, owner] : by_session) owners.push_back(&owner);
  // Sums of the roots first: both ways of sharing go over the same objects.
  for (auto& [id, root] : roots) {
    const Owner& owner = by_root[id];
    root.unique = owner.unique;
    root.shared = owner.shared;
    root.reclaimable += owner.reclaimable;
    usage.roots.push_back(std::move(root));
  }
  BELAY_OK(graph.Share(owners));
  for (auto& [id, owner] : by_session) {
    SessionUsage& session = sessions[id];
    session.session = id;
    session.unique = owner.unique;
    session.shared = owner.shared;
    session.reclaimable += owner.reclaimable;
    usage.sessions.push_back(session);
  }
  return usage;
}

}  // namespace belay
