#include "bundle/import.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/mutant.h"
#include "bundle/format.h"
#include "core/space.h"
#include "store/inventory.h"

namespace belay {

namespace {

// No root has this id; its byte keeps two imports apart, which might give one id to
// two checkpoints.
RootId ImportLock() {
  Id128 id;
  constexpr std::string_view kWord = "import";
  std::copy_n(AsBytes(kWord).begin(), kWord.size(), id.bytes.begin());
  return RootId(id);
}

// What the log says about ids.
struct Known {
  std::unordered_map<RecordId, Checkpoint> checkpoints;
  std::unordered_set<RecordId> taken;    // by any record, there or dropped
  std::unordered_set<ObjectKey> erased;  // by any purge
  LogPosition end;
  uint64_t max_seq = 0;
};

Result<Known> ReadKnown(Store& store) {
  Known known;
  std::vector<RecordId> dropped;
  BELAY_TRY(LogPosition end, store.ReadLog({}, [&](const LogRecord& record) -> Status {
    known.taken.insert(record.id);
    known.max_seq = std::max(known.max_seq, record.seq);
    if (WasErased(record))
      for (const ObjectKey& key : PurgedBy(record)) known.erased.insert(key);
    for (const RecordId& id : DroppedBy(record)) dropped.push_back(id);
    if (record.kind != RecordKind::kCheckpoint) return Ok();
    if (auto c = ToCheckpoint(record); c.ok())
      known.checkpoints[record.id] = std::move(*c);
    return Ok();
  }));
  if (!end.whole)
    return Error(Errc::kCorrupt, "the store is damaged: a part of its log is missing")
        .WithHint("run: belay verify");
  known.end = end;
  for (const RecordId& id : dropped) {
    known.taken.insert(id);
    known.checkpoints.erase(id);
  }
  return known;
}

// The one in the store is the one of the bundle, in spite of secrets that stayed there.
bool IsSame(const Checkpoint& there, const Checkpoint& c, const RootId& root,
            const StoreId& store) {
  if (there.root != root || there.made_ms != c.made_ms) return false;
  if (there.state == c.state) return true;
  auto sealed = c.meta.find(std::string(kOriginState));
  if (sealed == c.meta.end()) return false;
  auto also = there.meta.find(std::string(kOriginState));
  if (also != there.meta.end()) return also->second == sealed->second;
  return sealed->second == OriginState(store, there.state);
}

// What is wanted, as of now: through records newer than whatever purged it.
class Wanted {
 public:
  // `use` is held.
  static Result<Wanted> Look(Store& store) {
    Wanted wanted;
    LogView log;
    BELAY_OK(ReadOn(store, log));
    BELAY_TRY(Inventory inventory, TakeInventory(store));
    Marker marker(store, inventory);
    BELAY_OK(marker.Mark(log));
    wanted.live_ = marker.live();
    return wanted;
  }
  bool Has(const ObjectKey& key) const {
    if (key.type != ObjectType::kBlob && key.type != ObjectType::kChunks)
      return live_.contains(key);
    return HasContent(key.id);
  }
  bool HasContent(const ObjectId& id) const {
    return live_.contains({ObjectType::kBlob, id}) ||
           live_.contains({ObjectType::kChunks, id});
  }

 private:
  std::unordered_set<ObjectKey> live_;
};

constexpr int kTries = 5;
// Contents that one purge record names at most, each as blob and as chunks.
constexpr size_t kContentsInRecord = 8192;

class Importer {
 public:
  Importer(Store& store, BundleReader& bundle, const ImportRequest& request)
      : store_(store), bundle_(bundle), request_(request) {}

  // `again`: somebody purged, or stored what we leave out, meanwhile. Nothing was
  // published; a new Importer knows.
  Result<ImportReport> Run(bool& again);

 private:
  void Choose();
  Status LeaveOutPurged();
  Status CheckRoom();
  Status StillTrue(bool& again);

  Store& store_;
  BundleReader& bundle_;
  const ImportRequest& request_;
  Known known_;
  ImportReport report_;
  std::vector<size_t> wanted_;
  std::unordered_set<ObjectId> without_;
};

// How much it will take is known before anything is written. What is garbage goes for
// it; no checkpoint does.
Status Importer::CheckRoom() {
  if (request_.settings == nullptr) return Ok();
  BELAY_TRY(uint64_t bytes, bundle_.BytesOf(wanted_, [&](const ObjectKey& key) {
    auto found = store_.Find(key);
    return found.ok() && found->has_value();
  }));
  bytes += bytes / 16 + (uint64_t{64} << 10);  // indexes, catalogue
  BELAY_TRY(Space space, Space::Of(store_, *request_.settings, /*exact=*/true));
  if (space.Check(bytes).ok()) return Ok();
  (void)CollectWithinCap(store_, *request_.settings, {});
  BELAY_TRY(space, Space::Of(store_, *request_.settings, /*exact=*/true));
  return space.Check(bytes);
}

// Which checkpoints are missing, and under which id they come.
void Importer::Choose() {
  const StoreId here = store_.manifest().store;
  for (size_t i = 0; i < bundle_.checkpoints().size(); ++i) {
    const CatalogEntry& entry = bundle_.checkpoints()[i];
    ImportedCheckpoint one{.checkpoint = entry.checkpoint,
                           .id_in_bundle = entry.checkpoint.id};
    Checkpoint& c = one.checkpoint;
    for (uint32_t n = 0;; ++n) {
      if (n > 0) c.id = ImportedId(one.id_in_bundle, request_.root.id, n);
      auto there = known_.checkpoints.find(c.id);
      if (there != known_.checkpoints.end() &&
          IsSame(there->second, entry.checkpoint, request_.root.id, here)) {
        c = there->second;
        one.was_there = true;
        break;
      }
      if (!known_.taken.contains(c.id) || BELAY_MUTANT("import-reuses-ids")) break;
    }
    if (!one.was_there) {
      c.root = request_.root.id;
      c.imported = true;
      known_.taken.insert(c.id);
      wanted_.push_back(i);
    }
    report_.checkpoints.push_back(std::move(one));
  }
}

// What was purged, and is wanted by nobody since. `use` is held.
Status Importer::LeaveOutPurged() {
  auto erased = [&](const ObjectKey& key) { return known_.erased.contains(key); };
  if (known_.erased.empty() || !bundle_.HasAny(erased) ||
      BELAY_MUTANT("import-brings-back"))
    return Ok();
  BELAY_TRY(Wanted now, Wanted::Look(store_));
  BELAY_TRY(auto lack, bundle_.FindLack(wanted_, [&](const ObjectKey& key) {
    return erased(key) && !now.Has(key);
  }));
  std::vector<size_t> rest;
  for (size_t i : wanted_) {
    report_.checkpoints[i].was_purged = lack.all[i];
    report_.checkpoints[i].lacks_purged = lack.some[i] && !lack.all[i];
    if (!lack.all[i]) rest.push_back(i);
  }
  if (rest.size() < wanted_.size()) {
    // Less is needed by then.
    wanted_ = std::move(rest);
    BELAY_TRY(lack, bundle_.FindLack(wanted_, [&](const ObjectKey& key) {
      return erased(key) && !now.Has(key);
    }));
  }
  without_ = std::move(lack.contents);
  report_.purged = without_.size();
  return Ok();
}

// Under `append`: nobody publishes meanwhile.
Status Importer::StillTrue(bool& again) {
  auto changed = [&] {
    again = true;
    return Error(Errc::kConflict, "others purged or stored what is in the bundle")
        .WithHint("nothing was imported; try again");
  };
  bool purged = false, stored = false;
  BELAY_TRY([[maybe_unused]] auto end,
            store_.ReadLogHeld(known_.end, [&](const LogRecord& record) -> Status {
              if (record.seq <= known_.max_seq) return Ok();
              stored |= !record.refs.empty();
              if (!WasErased(record)) return Ok();
              const auto keys = PurgedBy(record);
              const std::unordered_set<ObjectKey> names(keys.begin(), keys.end());
              purged |= bundle_.HasAny(
                  [&](const ObjectKey& key) { return names.contains(key); });
              return Ok();
            }));
  if (purged) return changed();
  if (!stored || without_.empty()) return Ok();
  // The purge that we are about to write would take it from whoever stored it.
  BELAY_TRY(Wanted now, Wanted::Look(store_));
  for (const ObjectId& id : without_)
    if (now.HasContent(id)) return changed();
  return Ok();
}

Result<ImportReport> Importer::Run(bool& again) {
  BELAY_OK(store_.Refresh());
  BELAY_TRY(known_, ReadKnown(store_));
  Choose();
  if (wanted_.empty()) return std::move(report_);

  // 2. The objects; ahead of the batch that makes them count. 3. That batch.
  BELAY_OK(CheckRoom());
  BELAY_TRY(auto writer, store_.Begin());
  BELAY_OK(LeaveOutPurged());
  report_.imported = wanted_.size();
  if (wanted_.empty()) return std::move(report_);
  auto& checkpoints = report_.checkpoints;
  std::optional<Space> space;
  if (request_.settings != nullptr) {
    store_.LimitPacks(Space::PackTarget(request_.settings->store_cap.bytes));
    BELAY_TRY(space, Space::Of(store_, *request_.settings, /*exact=*/true));
  }
  if (BELAY_MUTANT("import-records-first")) {
    for (size_t i : wanted_) writer->Add(ToRecord(checkpoints[i].checkpoint));
    BELAY_TRY([[maybe_unused]] auto early, writer->Commit());
    BELAY_TRY(writer, store_.Begin());
  }
  BELAY_OK(bundle_.CopyInto(
      *writer, wanted_,
      [&] { return space ? space->Check(writer->bytes_so_far()) : Ok(); },
      request_.progress, without_));
  for (size_t i : wanted_) writer->Add(ToRecord(checkpoints[i].checkpoint));
  for (size_t i : wanted_) {
    const CatalogEntry& entry = bundle_.checkpoints()[i];
    if (!entry.pinned && !entry.health) continue;
    LogRecord annotation;
    annotation.kind = RecordKind::kAnnotation;
    annotation.id = RecordId(store_.random().NewId());
    annotation.root = request_.root.id;
    annotation.made_ms = store_.clock().WallMillis();
    annotation.fields.Add(kAnnotationTarget, checkpoints[i].checkpoint.id.span());
    if (entry.pinned) annotation.fields.AddNumber(kAnnotationPinned, 1);
    if (entry.health)
      annotation.fields.AddNumber(kAnnotationHealth,
                                  static_cast<uint64_t>(*entry.health));
    writer->Add(std::move(annotation));
  }
  // Behind the checkpoints: they are older than it, and say purged where it is missing.
  std::vector<ObjectKey> keys;
  auto add_purge = [&] {
    if (keys.empty()) return;
    writer->Add(MakePurge(RecordId(store_.random().NewId()),
                          store_.clock().WallMillis(), keys, "import",
                          /*erased=*/true));
    keys.clear();
  };
  const std::set<ObjectId> without(without_.begin(), without_.end());
  for (const ObjectId& id : without) {
    keys.push_back({ObjectType::kBlob, id});
    keys.push_back({ObjectType::kChunks, id});
    if (keys.size() >= 2 * kContentsInRecord) add_purge();
  }
  add_purge();
  BELAY_TRY(auto published, writer->Commit([&] { return StillTrue(again); }));
  for (size_t n = 0; n < wanted_.size(); ++n)
    checkpoints[wanted_[n]].checkpoint.seq = published.first_seq + n;
  report_.bytes_stored = published.stats.bytes_stored;
  return std::move(report_);
}

}  // namespace

Result<ImportReport> ImportBundle(Store& store, BundleReader& bundle,
                                  const ImportRequest& request) {
  // 1. Alone among imports; then what the log knows stays true of our ids.
  auto lock = store.locks().AcquireRoot(ImportLock(), request.lock_wait_ms);
  if (!lock.ok() && lock.error().code == Errc::kBusy)
    return Error(Errc::kBusy, "another import is under way");
  if (!lock.ok()) return std::move(lock).error();
  for (int left = kTries;; --left) {
    bool again = false;
    auto report = Importer(store, bundle, request).Run(again);
    if (report.ok() || !again || left == 1) return report;
  }
}

}  // namespace belay
