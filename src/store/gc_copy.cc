#include "base/mutant.h"
#include "store/gc_internal.h"

namespace belay {

// --- the packs that are written ------------------------------------------------------

CopyTarget::~CopyTarget() {
  if (published_) return;
  for (const Finished& f : packs_)
    (void)store_.fs().Unlink(store_.packs_dir(), PackFile::FileName(f.file.id()));
}

Result<size_t> CopyTarget::NextPack() {
  if (packs_.empty() || (batch_.body_length() == 0 &&
                         packs_.back().end >= store_.options().pack_target)) {
    BELAY_TRY(PackFile file,
              Appender::CreatePack(Appender::PlaceIn(store_), store_id_, true));
    packs_.push_back(Finished{std::move(file), kPackHeaderSize, {}});
  }
  return packs_.size() - 1;
}

Result<CopyTarget::Place> CopyTarget::AddObject(const RecordHeader& header,
                                                ByteSpan stored) {
  Place place;
  BELAY_TRY(place.pack, NextPack());
  place.offset = packs_.back().end + kBatchHeaderSize + batch_.body_length();
  place.chain = header.chain;
  batch_.AddObject(header, stored);
  if (batch_.body_length() >= store_.options().batch_target ||
      packs_.back().end + batch_.body_length() >= store_.options().pack_target)
    BELAY_OK(Write());
  return place;
}

Status CopyTarget::Finish() {
  BELAY_OK(Write());
  for (Finished& f : packs_)
    if (!BELAY_MUTANT("gc-skip-copy-flush"))
      BELAY_OK(store_.fs().SyncData(f.file.fd()));
  if (!packs_.empty()) BELAY_OK(store_.fs().Sync(store_.packs_dir()));
  return Ok();
}

std::vector<Manifest::Pack> CopyTarget::Listed() const {
  std::vector<Manifest::Pack> out;
  for (const Finished& f : packs_) out.push_back({f.file.id(), f.end});
  return out;
}

void CopyTarget::Published() {
  published_ = true;
  for (const Finished& f : packs_)
    (void)PackIndex::WriteWhole(store_.fs(), store_.packs_dir(), f.file.id(), f.entries,
                                f.end);
}

Status CopyTarget::Write() {
  if (batch_.body_length() == 0 && logs_.empty()) return Ok();
  BELAY_TRY(size_t number, NextPack());
  for (const LogRecord& r : logs_) batch_.AddLog(r);
  logs_.clear();
  batch_.flags = BatchHeader::kCopied;
  batch_.Seal();
  Finished& pack = packs_[number];
  BELAY_TRY(uint64_t end, Appender::WriteBatch(store_.fs(), store_.clock(), pack.file,
                                               pack.end, batch_, 0, 0));
  for (IndexEntry e : batch_.entries) {
    e.offset += pack.end + kBatchHeaderSize;
    pack.entries.push_back(e);
  }
  pack.end = end;
  batch_ = PreparedBatch();
  return Ok();
}

// --- what goes there -----------------------------------------------------------------

Status Collector::CopyWanted(CopyTarget& target) {
  std::unordered_map<ObjectKey, std::pair<const PackInventory*, uint64_t>> elsewhere;
  uint64_t total = 0;
  for (const PackInventory& pack : inventory_.packs) {
    if (victims_.contains(pack.listed.id)) {
      total += pack.items.size();
      continue;
    }
    for (const InventoryItem& item : pack.items)
      if (item.offset < pack.flushed)
        elsewhere.emplace(item.key, std::make_pair(&pack, item.offset));
  }
  uint64_t done = 0;
  std::vector<ObjectKey> hidden;
  for (const PackInventory& pack : inventory_.packs) {
    if (!victims_.contains(pack.listed.id)) continue;
    if (!pack.readable && !salvage_.empty()) continue;
    BELAY_TRY(PackFile file,
              PackFile::Open(store_.fs(), store_.packs_dir(), pack.listed.id,
                             store_.manifest().store, OpenMode::Read()));
    for (const InventoryItem& item : pack.items) {
      if (options_.progress && ++done % 1024 == 0) options_.progress(done, total);
      if (item.key.type == ObjectType::kLog || copied_.contains(item.key)) continue;
      if (!marker_->IsLive(item.key)) {
        ++report_.objects_removed;
        continue;
      }
      if (auto other = elsewhere.find(item.key); other != elsewhere.end()) {
        // The other copy must be good before this one goes.
        if (IsReadable(*other->second.first, other->second.second)) continue;
      }
      BELAY_TRY(RecordHeader header, file.HeaderAt(item.offset, pack.end));
      RecordAt record{item.offset, header};
      auto plain = file.ReadPlain(record);
      if (!plain.ok()) {
        if (plain.error().code != Errc::kCorrupt) return std::move(plain).error();
        hidden.push_back(item.key);  // a duplicate may be whole
        continue;
      }
      BELAY_TRY(Bytes stored, file.ReadStored(record));
      if (header.codec == CodecId::kDelta) {
        BELAY_OK(CopyDelta(target, pack, header, stored, plain->bytes));
        continue;
      }
      BELAY_TRY(copied_[item.key], target.AddObject(header, stored));
      ++report_.objects_kept;
    }
  }
  if (!salvage_.empty())
    for (const ObjectKey& key : marker_->live())
      if (!inventory_.Has(key)) hidden.push_back(key);
  for (const ObjectKey& key : hidden) {
    auto other = elsewhere.find(key);
    if (copied_.contains(key) ||
        (other != elsewhere.end() &&
         IsReadable(*other->second.first, other->second.second)))
      continue;
    BELAY_OK(CopyHidden(target, key));
  }
  return CopyRecords(target);
}

Status Collector::CopyHidden(CopyTarget& target, const ObjectKey& key) {
  auto read = store_.Get(key);
  if (!read.ok())
    return Error(Errc::kCorrupt, read.error().what)
        .WithHint(
            "belay verify --read-data names the checkpoints; nothing was removed");
  return CopyWhole(target, key, *read);
}

Status Collector::CopyWhole(CopyTarget& target, const ObjectKey& key, ByteSpan raw) {
  std::unique_ptr<Codec> codec = store_.TakeCodec();
  Bytes stored;
  RecordHeader header;
  header.type = key.type;
  header.id = key.id;
  header.codec = codec->Encode(raw, stored);
  header.raw_length = static_cast<uint32_t>(raw.size());
  header.stored_length = static_cast<uint32_t>(stored.size());
  store_.ReturnCodec(std::move(codec));
  BELAY_TRY(copied_[key], target.AddObject(header, stored));
  ++report_.objects_kept;
  return Ok();
}

Status Collector::CopyDelta(CopyTarget& target, const PackInventory& from,
                            RecordHeader header, ByteSpan stored, ByteSpan raw) {
  auto base = DecodeDeltaBase(stored);
  const InventoryItem* item = base ? from.At(base->offset) : nullptr;
  auto at = item ? copied_.find(item->key) : copied_.end();
  BELAY_TRY(size_t pack, target.NextPack());
  if (at == copied_.end() && BELAY_MUTANT("gc-delta-forgets-base")) {
    BELAY_TRY(copied_[header.key()], target.AddObject(header, stored));
    return Ok();
  }
  if (at == copied_.end() || at->second.chain >= kMaxDeltaChain ||
      (at->second.pack != pack && !BELAY_MUTANT("gc-delta-in-another-pack")))
    return CopyWhole(target, header.key(), raw);
  Bytes moved = EncodeDeltaBase(
      BELAY_MUTANT("gc-delta-keeps-offset") ? base->offset : at->second.offset);
  moved.insert(moved.end(), stored.begin() + static_cast<ptrdiff_t>(base->length),
               stored.end());
  header.stored_length = static_cast<uint32_t>(moved.size());
  if (header.stored_length >= header.raw_length)
    return CopyWhole(target, header.key(), raw);
  header.chain = static_cast<uint8_t>(at->second.chain + 1);
  BELAY_TRY(copied_[header.key()], target.AddObject(header, moved));
  ++report_.objects_kept;
  return Ok();
}

bool Collector::IsReadable(const PackInventory& pack, uint64_t offset) {
  auto file = PackFile::Open(store_.fs(), store_.packs_dir(), pack.listed.id,
                             store_.manifest().store, OpenMode::Read());
  if (!file.ok()) return false;
  auto header = file->HeaderAt(offset, pack.flushed);
  return header.ok() && file->ReadRecord(RecordAt{offset, *header}).ok();
}

Status Collector::CopyRecords(CopyTarget& target) {
  // Which records stand in a victim, and which names are still used outside.
  std::unordered_map<ObjectId, uint64_t> outside;
  for (const PackInventory& pack : inventory_.packs) {
    if (victims_.contains(pack.listed.id)) continue;
    for (const InventoryItem& item : pack.items)
      if (item.key.type == ObjectType::kLog) ++outside[item.key.id];
  }
  // Two records may differ in their implied numbers alone, and so lie there under one
  // id: then neither is outside unless both are. One copy too many does no harm.
  std::unordered_map<ObjectId, uint64_t> alike;
  for (const LogRecord& r : log_.records) ++alike[StoredIds(r)[0]];
  auto is_outside = [&](const LogRecord& r) {
    auto ids = StoredIds(r);
    auto implied = outside.find(ids[0]);
    return (implied != outside.end() && implied->second >= alike[ids[0]]) ||
           outside.contains(ids[1]);
  };
  std::unordered_set<RecordId> outside_ids;
  std::vector<const LogRecord*> inside;
  for (const LogRecord& r : log_.records) {
    if (is_outside(r))
      outside_ids.insert(r.id);
    else
      inside.push_back(&r);
  }
  for (const LogRecord* r : inside) {
    bool keep = log_.IsWanted(*r);
    if (r->kind == RecordKind::kPurge && BELAY_MUTANT("gc-drops-purges")) keep = false;
    if (r->kind == RecordKind::kDrop) {
      // A drop stays as long as something it names does, be it a copy that was made
      // before the drop was.
      keep = false;
      for (const RecordId& id : DroppedBy(*r))
        keep |= outside_ids.contains(id) || copied_ids_.contains(id);
    }
    if (!keep) {
      ++report_.records_removed;
      continue;
    }
    // By number too: a later record of a root has the id of the first.
    if (!copied_records_.emplace(r->seq, r->id).second) continue;
    copied_ids_.insert(r->id);
    target.AddRecord(log_.Kept(*r));
  }
  return Ok();
}

}  // namespace belay
