#include "bundle/import.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/mutant.h"
#include "bundle/format.h"
#include "core/space.h"

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
  std::unordered_set<RecordId> taken;  // by any record, there or dropped
};

Result<Known> ReadKnown(Store& store) {
  Known known;
  std::vector<RecordId> dropped;
  BELAY_TRY(LogPosition end, store.ReadLog({}, [&](const LogRecord& record) -> Status {
    known.taken.insert(record.id);
    for (const RecordId& id : DroppedBy(record)) dropped.push_back(id);
    if (record.kind != RecordKind::kCheckpoint) return Ok();
    if (auto c = ToCheckpoint(record); c.ok())
      known.checkpoints[record.id] = std::move(*c);
    return Ok();
  }));
  if (!end.whole)
    return Error(Errc::kCorrupt, "the store is damaged: a part of its log is missing")
        .WithHint("run: belay verify");
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

}  // namespace

Result<ImportReport> ImportBundle(Store& store, BundleReader& bundle,
                                  const ImportRequest& request) {
  // 1. Alone among imports; then what the log knows stays true of our ids.
  auto lock = store.locks().AcquireRoot(ImportLock(), request.lock_wait_ms);
  if (!lock.ok() && lock.error().code == Errc::kBusy)
    return Error(Errc::kBusy, "another import is under way");
  if (!lock.ok()) return std::move(lock).error();
  BELAY_OK(store.Refresh());
  const StoreId here = store.manifest().store;
  BELAY_TRY(Known known, ReadKnown(store));
  ImportReport report;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < bundle.checkpoints().size(); ++i) {
    const CatalogEntry& entry = bundle.checkpoints()[i];
    ImportedCheckpoint one{.checkpoint = entry.checkpoint,
                           .id_in_bundle = entry.checkpoint.id};
    Checkpoint& c = one.checkpoint;
    for (uint32_t n = 0;; ++n) {
      if (n > 0) c.id = ImportedId(one.id_in_bundle, request.root.id, n);
      auto there = known.checkpoints.find(c.id);
      if (there != known.checkpoints.end() &&
          IsSame(there->second, entry.checkpoint, request.root.id, here)) {
        c = there->second;
        one.was_there = true;
        break;
      }
      if (!known.taken.contains(c.id) || BELAY_MUTANT("import-reuses-ids")) break;
    }
    if (!one.was_there) {
      c.root = request.root.id;
      known.taken.insert(c.id);
      wanted.push_back(i);
      ++report.imported;
    }
    report.checkpoints.push_back(std::move(one));
  }
  if (wanted.empty()) return report;

  // 2. The objects; ahead of the batch that makes them count. 3. That batch.
  BELAY_TRY(auto writer, store.Begin());
  std::optional<Space> space;
  if (request.settings != nullptr) {
    store.LimitPacks(Space::PackTarget(request.settings->store_cap.bytes));
    BELAY_TRY(space, Space::Of(store, *request.settings, /*exact=*/true));
  }
  if (BELAY_MUTANT("import-records-first")) {
    for (size_t i : wanted) writer->Add(ToRecord(report.checkpoints[i].checkpoint));
    BELAY_TRY([[maybe_unused]] auto early, writer->Commit());
    BELAY_TRY(writer, store.Begin());
  }
  BELAY_OK(bundle.CopyInto(
      *writer, wanted,
      [&] { return space ? space->Check(writer->bytes_so_far()) : Ok(); },
      request.progress));
  for (size_t i : wanted) writer->Add(ToRecord(report.checkpoints[i].checkpoint));
  for (size_t i : wanted) {
    const CatalogEntry& entry = bundle.checkpoints()[i];
    if (!entry.pinned && !entry.health) continue;
    LogRecord annotation;
    annotation.kind = RecordKind::kAnnotation;
    annotation.id = RecordId(store.random().NewId());
    annotation.root = request.root.id;
    annotation.made_ms = store.clock().WallMillis();
    annotation.fields.Add(kAnnotationTarget,
                          report.checkpoints[i].checkpoint.id.span());
    if (entry.pinned) annotation.fields.AddNumber(kAnnotationPinned, 1);
    if (entry.health)
      annotation.fields.AddNumber(kAnnotationHealth,
                                  static_cast<uint64_t>(*entry.health));
    writer->Add(std::move(annotation));
  }
  BELAY_TRY(auto published, writer->Commit());
  for (size_t n = 0; n < wanted.size(); ++n)
    report.checkpoints[wanted[n]].checkpoint.seq = published.first_seq + n;
  report.bytes_stored = published.stats.bytes_stored;
  return report;
}

}  // namespace belay
