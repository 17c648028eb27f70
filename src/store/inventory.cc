#include "store/inventory.h"

#include <algorithm>

#include "base/mutant.h"

namespace belay {

const InventoryItem* PackInventory::At(uint64_t offset) const {
  auto at = std::lower_bound(
      items.begin(), items.end(), offset,
      [](const InventoryItem& item, uint64_t o) { return item.offset < o; });
  return at != items.end() && at->offset == offset ? &*at : nullptr;
}

std::unordered_set<uint64_t> PackInventory::HeldBases(
    const std::vector<bool>& wanted) const {
  // From the end: a base comes before what is made from it.
  std::unordered_set<uint64_t> held;
  for (size_t i = items.size(); i-- > 0;)
    if (items[i].base != 0 && (wanted[i] || held.contains(items[i].offset)))
      held.insert(items[i].base);
  return held;
}

Result<Inventory> TakeInventory(Store& store) {
  BELAY_OK(store.Refresh());
  Inventory inventory;
  for (const Manifest::Pack& listed : store.manifest().packs) {
    PackInventory pack;
    pack.listed = listed;
    auto file = PackFile::Open(store.fs(), store.packs_dir(), listed.id,
                               store.manifest().store, OpenMode::Read());
    if (!file.ok()) {
      Errc code = file.error().code;
      if (code != Errc::kCorrupt && code != Errc::kNotFound)
        return std::move(file).error();
      pack.readable = false;
      pack.unread = true;
      inventory.packs.push_back(std::move(pack));
      continue;
    }
    BELAY_TRY(pack.end, store.EndOf(listed, *file));
    pack.flushed = pack.end;
    if (!listed.sealed) {
      BELAY_TRY(auto tail, store.TailIfReadable(listed.id));
      pack.flushed = tail ? std::min(tail->flushed, pack.end) : 0;
    }
    BELAY_TRY(auto records, file->ReadableRecords(kPackHeaderSize, pack.end));
    for (const RecordAt& r : records)
      pack.items.push_back({r.header.key(), r.offset, r.header.stored_length, r.base});
    pack.unread = file->has_unreadable();
    inventory.packs.push_back(std::move(pack));
  }
  for (uint32_t p = 0; p < inventory.packs.size(); ++p)
    for (uint32_t i = 0; i < inventory.packs[p].items.size(); ++i)
      if (inventory.packs[p].items[i].key.type != ObjectType::kLog)
        inventory.where.emplace(inventory.packs[p].items[i].key, std::make_pair(p, i));
  return inventory;
}

Result<std::vector<PackId>> UnlistedPacks(Store& store) {
  BELAY_TRY(auto entries, store.fs().List(store.packs_dir()));
  // After the listing: a pack is made before the manifest names it.
  BELAY_OK(store.Refresh());
  const Manifest manifest = store.manifest();
  std::vector<PackId> unlisted;
  for (const DirEntry& e : entries) {
    if (!e.name.ends_with(".pack")) continue;
    auto id = Id128::FromText(std::string_view(e.name).substr(0, e.name.size() - 5));
    if (!id || manifest.Find(PackId(*id))) continue;
    auto stat = store.fs().StatAt(store.packs_dir(), Name::Literal(e.name));
    // One that cannot be looked at may hold anything.
    const bool holds = stat.ok() ? stat->type == FileType::kRegular &&
                                       stat->size > kPackHeaderSize + kBatchHeaderSize
                                 : stat.error().code != Errc::kNotFound &&
                                       !BELAY_MUTANT("unlisted-is-absent");
    if (holds) unlisted.emplace_back(*id);
  }
  return unlisted;
}

Result<std::vector<std::string>> GlanceAtPacks(Store& store) {
  std::vector<std::string> problems;
  for (const Manifest::Pack& p : store.manifest().packs) {
    const Name name = PackFile::FileName(p.id);
    BELAY_TRY(uint64_t due, store.DueLength(p));
    auto stat = store.fs().StatAt(store.packs_dir(), name);
    if (!stat.ok() && stat.error().code != Errc::kNotFound &&
        !IsUnreadable(stat.error()))
      return std::move(stat).error();
    if (!stat.ok())
      problems.push_back(stat.error().code == Errc::kNotFound
                             ? name.bytes() + " is missing"
                             : stat.error().what);
    else if (stat->type != FileType::kRegular)
      problems.push_back(name.bytes() + " is " + std::string(FileTypeName(stat->type)) +
                         ", not a pack");
    else if (stat->size < due)
      problems.push_back(name.bytes() + " is shorter than it was");
    else if (auto file = PackFile::Open(store.fs(), store.packs_dir(), p.id,
                                        store.manifest().store, OpenMode::Read());
             !file.ok() && file.error().code == Errc::kCorrupt)
      problems.push_back(file.error().what);
  }
  if (store.TailIsOfUnlisted())
    problems.emplace_back("its manifest is older than what was stored last");
  return problems;
}

Result<bool> StillHas(Store& store, const BatchPlace& place) {
  const Manifest manifest = store.manifest();
  const Manifest::Pack* listed = manifest.Find(place.pack);
  if (!listed) return false;
  uint64_t size = 0;
  for (const Manifest::Pack& p : manifest.packs) {
    const bool asked = p.id == place.pack;
    if (!p.sealed && !asked) continue;
    auto stat = store.fs().StatAt(store.packs_dir(), PackFile::FileName(p.id));
    if (!stat.ok() || stat->type != FileType::kRegular) return false;
    if (p.sealed && stat->size < *p.sealed) return false;
    if (asked) size = std::min(stat->size, p.sealed.value_or(UINT64_MAX));
  }
  auto pack = store.Pack(place.pack);
  if (!pack.ok()) return false;
  auto header = (*pack)->file->BatchAt(place.offset, size);
  return header.ok() && *header && (*header)->body_hash == place.body_hash;
}

namespace {
// Tags of a checkpoint's record; docs/format.md.
constexpr uint64_t kOwnName = 2, kOwnNote = 3, kOwnDescription = 4, kOwnMeta = 21;
constexpr uint64_t kOperationLabel = 8;  // of an operation's

// What a field says, under one key for all records that can say it: the tag in an
// annotation, of meta with its key. Nothing for what no annotation replaces.
std::optional<std::string> SaysWhat(RecordKind kind, const Fields::Field& field) {
  uint64_t tag = field.tag;
  if (kind == RecordKind::kCheckpoint)
    tag = tag == kOwnName          ? kAnnotationName
          : tag == kOwnNote        ? kAnnotationNote
          : tag == kOwnDescription ? kAnnotationDescription
          : tag == kOwnMeta        ? kAnnotationMeta
                                   : 0;
  else if (kind == RecordKind::kOperation)
    tag = tag == kOperationLabel ? kAnnotationDescription : 0;
  else if (kind != RecordKind::kAnnotation)
    return std::nullopt;
  switch (tag) {
    case kAnnotationName:
    case kAnnotationNote:
    case kAnnotationPinned:
    case kAnnotationHealth:
    case kAnnotationDescription:
    case kAnnotationBy:
    case kAnnotationSince:
    case kAnnotationExternal:
      return std::to_string(tag);
    case kAnnotationMeta: {
      ByteReader r(field.value);
      auto pair = Fields::Decode(r);
      if (!pair.ok()) return std::nullopt;
      return std::to_string(tag) + " " + pair->Text(1).value_or("");
    }
    default:
      return std::nullopt;
  }
}
}  // namespace

void LogView::NoteAnnotations() {
  annotated.clear();
  for (const LogRecord& record : records) {
    auto target = AnnotationTarget(record);
    if (!target || dropped.contains(record.id) || dropped.contains(*target)) continue;
    for (const Fields::Field& field : record.fields.items())
      if (auto what = SaysWhat(record.kind, field)) {
        uint64_t& last = annotated[*target][*what];
        last = std::max(last, record.seq);
      }
  }
}

bool LogView::IsReplaced(const LogRecord& record, const Fields::Field& field) const {
  if (annotated.empty() || BELAY_MUTANT("gc-keeps-replaced-notes")) return false;
  auto about = annotated.find(AnnotationTarget(record).value_or(record.id));
  if (about == annotated.end()) return false;
  auto what = SaysWhat(record.kind, field);
  if (!what) return false;
  auto last = about->second.find(*what);
  return last != about->second.end() && record.seq < last->second;
}

LogRecord LogView::Kept(const LogRecord& record) const {
  LogRecord kept = record;
  kept.fields = {};
  for (const Fields::Field& field : record.fields.items())
    if (!IsReplaced(record, field)) kept.fields.Add(field.tag, field.value);
  return kept;
}

uint64_t LogView::ReplacedBytes(const LogRecord& record) const {
  if (!annotated.contains(AnnotationTarget(record).value_or(record.id))) return 0;
  const size_t all = EncodeLogRecord(record).size();
  return all - std::min(all, EncodeLogRecord(Kept(record)).size());
}

bool LogView::IsWanted(const LogRecord& record) const {
  if (dropped.contains(record.id)) return false;
  auto target = AnnotationTarget(record);
  if (!target) return true;
  if (dropped.contains(*target)) return false;
  // Of an annotation that says nothing else, what was replaced is all there is.
  bool replaced = false, says = false;
  for (const Fields::Field& field : record.fields.items()) {
    if (field.tag == kAnnotationTarget) continue;
    (IsReplaced(record, field) ? replaced : says) = true;
  }
  return says || !replaced;
}

void LogView::Take(std::vector<LogRecord> fresh) {
  for (const LogRecord& r : fresh) {
    max_seq = std::max(max_seq, r.seq);
    for (const RecordId& id : DroppedBy(r)) dropped.insert(id);
    for (const RecordId& id : ReleasedBy(r)) released.insert(id);
  }
  const bool anew = std::ranges::any_of(fresh, [](const LogRecord& r) {
    return r.kind == RecordKind::kPurge || r.kind == RecordKind::kDrop;
  });
  records.insert(records.end(), std::make_move_iterator(fresh.begin()),
                 std::make_move_iterator(fresh.end()));
  auto order = [](const LogRecord& a, const LogRecord& b) {
    return std::tie(a.seq, a.id) < std::tie(b.seq, b.id);
  };
  std::stable_sort(records.begin(), records.end(), order);
  // A record may stand in two packs after a repair.
  auto same = [](const LogRecord& a, const LogRecord& b) {
    return a.seq == b.seq && a.id == b.id;
  };
  records.erase(std::unique(records.begin(), records.end(), same), records.end());
  if (anew) NotePurges();
  NoteAnnotations();
}

void LogView::NotePurges() {
  purged.clear();
  for (const LogRecord& r : records) {
    if (!WasErased(r) && dropped.contains(r.id)) continue;
    for (const ObjectKey& key : PurgedBy(r)) {
      uint64_t& seq = purged[key];
      seq = std::max(seq, r.seq);
    }
  }
}

Status ReadOn(Store& store, LogView& view) {
  std::vector<LogRecord> fresh;
  std::optional<LogPosition> after;
  if (!view.position.pack.is_zero()) after = view.position;
  BELAY_TRY(view.position, store.ReadLogHeld(after, [&](const LogRecord& r) -> Status {
    fresh.push_back(r);
    return Ok();
  }));
  view.whole &= view.position.whole;
  view.Take(std::move(fresh));
  return Ok();
}

Status Marker::Mark(const LogView& view) {
  // Newest first: what a newer record reaches past a purge is reached before an older
  // one stops there.
  for (auto at = view.records.rbegin(); at != view.records.rend(); ++at) {
    if (!view.Holds(*at) || !done_.insert(at->id).second) continue;
    BELAY_OK(MarkFrom(*at, view.purged));
  }
  return Ok();
}

Status Marker::MarkFrom(const LogRecord& record,
                        const std::unordered_map<ObjectKey, uint64_t>& purged) {
  std::vector<ObjectKey> work = record.refs;
  while (!work.empty()) {
    ObjectKey key = work.back();
    work.pop_back();
    // A file's content is a blob or a chunk list; both carry its hash.
    if (key.type == ObjectType::kBlob && !inventory_.Has(key) &&
        inventory_.Has({ObjectType::kChunks, key.id}))
      key.type = ObjectType::kChunks;
    auto tombstone = purged.find(key);
    if (tombstone != purged.end() &&
        (record.seq < tombstone->second || BELAY_MUTANT("purge-forever")))
      continue;
    if (!live_.insert(key).second) continue;
    if (!inventory_.Has(key)) {
      broken_.push_back(
          {key, ObjectTypeName(key.type) + " " + key.id.hex() + " is missing"});
      // An index may still lead to it, and on to what is below.
      if (!keep_edges_) continue;
    }
    if (key.type == ObjectType::kBlob) continue;
    auto bytes = store_.Get(key);
    if (!bytes.ok()) {
      if (!inventory_.Has(key)) continue;
      Errc code = bytes.error().code;
      if (code != Errc::kCorrupt && code != Errc::kNotFound && code != Errc::kPurged)
        return std::move(bytes).error();
      broken_.push_back({key, bytes.error().what});
      continue;
    }
    auto refs = ReferencesOf(key.type, *bytes);
    if (!refs.ok()) {
      broken_.push_back({key, refs.error().what});
      continue;
    }
    for (const ObjectKey& child : *refs) {
      if (keep_edges_) parents_[child].push_back(key);
      work.push_back(child);
    }
  }
  return Ok();
}

}  // namespace belay
