#include "store/gc.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/mutant.h"
#include "store/appender.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/verify.h"

namespace belay {

namespace {

// Writes copies into packs of its own, which nobody knows until the manifest names
// them.
class CopyTarget {
 public:
  explicit CopyTarget(Store& store)
      : store_(store), store_id_(store.manifest().store) {}

  ~CopyTarget() {
    if (published_) return;
    for (const Finished& f : packs_)
      (void)store_.fs().Unlink(store_.packs_dir(), PackFile::FileName(f.file.id()));
  }

  struct Place {
    size_t pack = 0;
    uint64_t offset = 0;
    uint8_t chain = 0;  // RecordHeader::chain
  };
  // The number of the pack that the next object goes to.
  Result<size_t> NextPack() {
    if (packs_.empty() || (batch_.body_length() == 0 &&
                           packs_.back().end >= store_.options().pack_target)) {
      BELAY_TRY(PackFile file, Appender::CreatePack(store_, store_id_, true));
      packs_.push_back(Finished{std::move(file), kPackHeaderSize, {}});
    }
    return packs_.size() - 1;
  }
  Result<Place> AddObject(const RecordHeader& header, ByteSpan stored) {
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
  // Records keep the sequence number they were given.
  void AddRecord(const LogRecord& record) { logs_.push_back(record); }

  // Everything written and flushed, the directory too.
  Status Finish() {
    BELAY_OK(Write());
    for (Finished& f : packs_)
      if (!BELAY_MUTANT("gc-skip-copy-flush"))
        BELAY_OK(store_.fs().SyncData(f.file.fd()));
    if (!packs_.empty()) BELAY_OK(store_.fs().Sync(store_.packs_dir()));
    return Ok();
  }

  std::vector<Manifest::Pack> Listed() const {
    std::vector<Manifest::Pack> out;
    for (const Finished& f : packs_) out.push_back({f.file.id(), f.end});
    return out;
  }
  void Published() {
    published_ = true;
    for (const Finished& f : packs_)
      (void)PackIndex::WriteWhole(store_.fs(), store_.packs_dir(), f.file.id(),
                                  f.entries, f.end);
  }

 private:
  struct Finished {
    PackFile file;
    uint64_t end = kPackHeaderSize;
    std::vector<IndexEntry> entries;
  };

  Status Write() {
    if (batch_.body_length() == 0 && logs_.empty()) return Ok();
    BELAY_TRY(size_t number, NextPack());
    for (const LogRecord& r : logs_) batch_.AddLog(r);
    logs_.clear();
    batch_.flags = BatchHeader::kCopied;
    batch_.Seal();
    Finished& pack = packs_[number];
    BELAY_TRY(uint64_t end,
              Appender::WriteBatch(store_, pack.file, pack.end, batch_, 0, 0));
    for (IndexEntry e : batch_.entries) {
      e.offset += pack.end + kBatchHeaderSize;
      pack.entries.push_back(e);
    }
    pack.end = end;
    batch_ = PreparedBatch();
    return Ok();
  }

  Store& store_;
  StoreId store_id_;
  std::vector<Finished> packs_;
  PreparedBatch batch_;
  std::vector<LogRecord> logs_;
  bool published_ = false;
};

class Collector {
 public:
  using Numbered = std::vector<std::pair<uint64_t, RecordId>>;
  Collector(Store& store, const GcOptions& options,
            const std::vector<PackId>& salvage = {}, const Numbered& must_be_read = {})
      : store_(store),
        options_(options),
        salvage_(salvage.begin(), salvage.end()),
        must_be_read_(must_be_read) {}

  const std::vector<std::string>& set_aside() const { return set_aside_; }

  Result<GcReport> Run() {
    BELAY_TRY(FsInfo info, store_.fs().Info(store_.dir()));
    if (info.read_only)
      return Error(Errc::kRefused, EROFS,
                   "the disk of the store " + store_.path().bytes() +
                       " is read-only, so nothing can be given back")
          .WithHint("verify, du and status work as they are");
    // Another one at work will do as well: no need to queue.
    BELAY_TRY(auto collector,
              store_.locks().TryAcquire(StoreLock::kCollector, LockMode::kExclusive));
    if (!collector)
      return Error(Errc::kBusy, "another belay process is cleaning up the store")
          .WithHint("try again when it is done");
    BELAY_OK(Look());  // refuses damage before anything goes
    if (!options_.dry_run && salvage_.empty()) {
      BELAY_OK(CheckLeftovers());
      BELAY_OK(RemoveLeftovers());
    }
    report_.packs_before = report_.packs_after = inventory_.packs.size();
    report_.bytes_before = report_.bytes_after = PackBytes();
    Choose();
    if (options_.dry_run || victims_.empty()) return report_;

    if (OpenPackIsVictim()) {
      // Sealed now, it cannot grow; what it grew by meanwhile is looked at again.
      BELAY_TRY(HeldLock append,
                store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
      BELAY_OK(Appender(store_).SealOpenPack());
      append.Release();
      BELAY_OK(Look());
      Choose();
      // The pack that others have begun since then grows: it stays this time.
      if (const PackInventory& last = inventory_.packs.back(); !last.listed.sealed)
        victims_.erase(last.listed.id);
      if (victims_.empty()) return report_;
    }
    CopyTarget target(store_);
    BELAY_OK(CopyWanted(target));
    BELAY_OK(target.Finish());
    if (options_.progress) options_.progress(1, 1);
    BELAY_OK(Swap(target));
    return report_;
  }

 private:
  // A pack that the manifest does not name may be the only good copy of something, when
  // the manifest is an old one or a listed pack went bad. It goes only when every byte
  // of the rest is right. (Such packs are rare: an operation was interrupted.)
  Status CheckLeftovers() {
    BELAY_TRY(auto unlisted, UnlistedPacks(store_));
    if (unlisted.empty() || BELAY_MUTANT("gc-trust-leftovers")) return Ok();
    VerifyOptions every_byte;
    every_byte.read_data = true;
    BELAY_TRY(VerifyReport report, VerifyStore(store_, every_byte));
    if (report.clean()) return Ok();
    return Error(Errc::kCorrupt, "the store is damaged (" + report.damage.front() +
                                     "), and there are packs that may hold what is "
                                     "missing")
        .WithHint("run: belay repair; nothing was removed");
  }

  // Files that no manifest names: nobody creates one without holding `append`.
  Status RemoveLeftovers() {
    BELAY_TRY(auto seen, Leftovers());
    if (seen.empty()) return Ok();  // no reason to stand in a writer's way
    BELAY_TRY(HeldLock append,
              store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    BELAY_TRY(auto leftovers, Leftovers());
    Fs& fs = store_.fs();
    // Whoever wrote this manifest may have been killed before its name was flushed. The
    // one before it may name what goes now, so it must not come back.
    if (!leftovers.empty() && !BELAY_MUTANT("gc-trust-manifest-name"))
      BELAY_OK(fs.Sync(store_.dir()));
    for (const auto& [dir, name] : leftovers) {
      BELAY_OK(fs.Unlink(*dir, name));
      ++report_.leftovers_removed;
    }
    return Ok();
  }

  // Certain under `append` only: the manifest is replaced and packs are made under it.
  Result<std::vector<std::pair<const Fd*, Name>>> Leftovers() {
    std::vector<std::pair<const Fd*, Name>> found;
    BELAY_TRY(auto home, store_.fs().List(store_.dir()));
    BELAY_TRY(auto entries, store_.fs().List(store_.packs_dir()));
    BELAY_OK(store_.Refresh());
    const Manifest manifest = store_.manifest();
    for (const DirEntry& e : home)
      if (e.name.starts_with("manifest.") && e.name.ends_with(".tmp"))
        found.emplace_back(&store_.dir(), Name::Literal(e.name));
    for (const DirEntry& e : entries) {
      std::string_view name = e.name;
      size_t dot = name.find('.');
      auto id = Id128::FromText(name.substr(0, dot));
      if (!id || dot == std::string_view::npos) continue;
      std::string_view ending = name.substr(dot);
      bool ours = ending == ".pack" || ending == ".idx" || ending == ".idx.new";
      if (!ours || (manifest.Find(PackId(*id)) && ending != ".idx.new")) continue;
      // Only files can be ours.
      if (e.type && *e.type != FileType::kRegular) continue;
      found.emplace_back(&store_.packs_dir(), Name::Literal(name));
    }
    return found;
  }

  // What there is and what is wanted, as of now. Packs stay while `use` is held; it is
  // let go afterwards, so writers are never kept waiting by a long mark.
  Status Look() {
    BELAY_TRY(HeldLock use, store_.HoldForReading());
    // The log first: what is published meanwhile is then more than it needs, not less,
    // and the second look under the lock marks it.
    log_ = LogView();
    BELAY_OK(ReadOn(store_, log_));
    BELAY_TRY(inventory_, TakeInventory(store_));
    marker_ = std::make_unique<Marker>(store_, inventory_);
    // Of what a damaged header hides, an index may know the place.
    if (!salvage_.empty()) marker_->KeepEdges();
    BELAY_OK(marker_->Mark(log_));
    return RefuseDamage();
  }

  Status RefuseDamage() {
    if (!salvage_.empty()) return RefuseLoss();
    // A record that cannot be read may want anything: nothing can be called unwanted.
    std::string why;
    if (!log_.whole) why = "a part of its log cannot be read";
    for (const PackInventory& pack : inventory_.packs)
      if (!pack.readable)
        why = PackFile::FileName(pack.listed.id).bytes() + " cannot be read";
    if (!marker_->broken().empty()) why = marker_->broken().front().what;
    if (why.empty()) return Ok();
    return Error(Errc::kCorrupt, "the store is damaged (" + why + ")")
        .WithHint(
            "nothing was removed; belay verify --read-data names the checkpoints, "
            "belay repair puts right what it can");
  }

  // For SalvagePacks(): what is wanted must be readable somewhere.
  Status RefuseLoss() {
    for (const PackInventory& pack : inventory_.packs)
      if (!pack.readable && !salvage_.contains(pack.listed.id))
        return Error(Errc::kCorrupt,
                     PackFile::FileName(pack.listed.id).bytes() + " cannot be read");
    for (const Marker::Broken& broken : marker_->broken())
      if (!ReadsWell(broken.key)) return Error(Errc::kCorrupt, broken.what);
    std::set<std::pair<uint64_t, RecordId>> read;
    for (const LogRecord& r : log_.records) read.emplace(r.seq, r.id);
    for (const auto& record : must_be_read_)
      if (!read.contains(record) && !BELAY_MUTANT("salvage-what-it-finds"))
        return Error(Errc::kCorrupt,
                     "a record that could be read before cannot be read now");
    return Ok();
  }
  bool ReadsWell(const ObjectKey& key) {
    if (key.type != ObjectType::kChunks) return store_.Get(key).ok();
    return store_.ReadContent(key.id, [](ByteSpan) -> Status { return Ok(); }).ok();
  }

  uint64_t PackBytes() const {
    uint64_t total = 0;
    for (const PackInventory& p : inventory_.packs) total += p.end;
    return total;
  }

  // Packs worth rewriting: too much garbage, or small ones that can become one.
  void Choose() {
    if (!salvage_.empty()) {
      victims_.clear();
      for (const PackInventory& pack : inventory_.packs)
        if (salvage_.contains(pack.listed.id)) victims_.insert(pack.listed.id);
      return;
    }
    victims_.clear();
    report_.reclaimable = report_.packs_left = 0;
    const std::unordered_set<ObjectId> dead_records = DeadRecords();
    const std::unordered_map<ObjectId, uint64_t> replaced = ReplacedText();
    std::unordered_set<ObjectKey> seen;
    std::vector<PackId> small;
    uint64_t small_bytes = 0;
    struct Worth {
      PackId id;
      uint64_t garbage, kept;
    };
    std::vector<Worth> found;
    const uint64_t small_size = store_.options().pack_target / 8;
    for (const PackInventory& pack : inventory_.packs) {
      uint64_t garbage = 0;
      std::vector<bool> wanted;
      for (const InventoryItem& item : pack.items)
        wanted.push_back(item.key.type == ObjectType::kLog
                             ? !dead_records.contains(item.key.id)
                             : seen.insert(item.key).second &&
                                   marker_->IsLive(item.key));
      const auto held = pack.HeldBases(wanted);
      bool erasable = false;  // of that, bases too
      // An erasure that was interrupted is finished by whoever comes next, however
      // little there is to gain.
      bool purged = false;
      for (size_t i = 0; i < pack.items.size(); ++i) {
        erasable = erasable || !wanted[i];
        purged = purged || (!wanted[i] && log_.purged.contains(pack.items[i].key) &&
                            !BELAY_MUTANT("gc-leaves-purged"));
        if (!wanted[i] && !held.contains(pack.items[i].offset))
          garbage += pack.items[i].total_length();
        if (pack.items[i].key.type != ObjectType::kLog || !wanted[i]) continue;
        if (auto text = replaced.find(pack.items[i].key.id); text != replaced.end()) {
          erasable = true;
          purged = purged || log_.purged.contains(pack.items[i].key);
          garbage += text->second;
        }
      }
      report_.reclaimable += garbage;
      bool worth =
          purged || options_.everything
              ? erasable
              : garbage > 0 && static_cast<double>(garbage) >=
                                   options_.min_garbage * static_cast<double>(pack.end);
      if (worth)
        found.push_back(
            {pack.listed.id, garbage, pack.end - garbage + MadeWhole(pack, wanted)});
      else if (pack.listed.sealed && pack.end < small_size) {
        small.push_back(pack.listed.id);
        small_bytes += pack.end;
      }
    }
    std::ranges::stable_sort(found, [](const Worth& a, const Worth& b) {
      auto gain = [](const Worth& w) {
        return static_cast<double>(w.garbage) / static_cast<double>(w.kept + 1);
      };
      return gain(a) > gain(b);
    });
    uint64_t copies = 0;
    for (const Worth& pack : found) {
      if (pack.kept > options_.room - copies) continue;
      copies += pack.kept;
      victims_.insert(pack.id);
    }
    if (victims_.empty() && !found.empty()) {
      // Without any copy nothing is ever given back.
      const Worth& least = *std::ranges::min_element(found, {}, &Worth::kept);
      copies = least.kept;
      victims_.insert(least.id);
    }
    report_.packs_left = found.size() - victims_.size();
    if (report_.packs_left > 0) return;  // the next pass has room for small ones
    if (small_bytes > options_.room - std::min(copies, options_.room)) return;
    if (small.size() >= 4 || (small.size() >= 2 && !victims_.empty()))
      victims_.insert(small.begin(), small.end());
  }

  // How much longer copies are because deltas whose base is unwanted become whole: each
  // takes about what the record takes that its chain goes back to.
  static uint64_t MadeWhole(const PackInventory& pack,
                            const std::vector<bool>& wanted) {
    uint64_t more = 0;
    std::unordered_map<uint64_t, std::pair<bool, uint64_t>> seen;  // wanted, whole
    for (size_t i = 0; i < pack.items.size(); ++i) {
      const InventoryItem& item = pack.items[i];
      uint64_t whole = item.total_length();
      if (auto base = seen.find(item.base); item.base != 0 && base != seen.end()) {
        whole = base->second.second;
        if (wanted[i] && !base->second.first) more += whole;
      }
      seen.emplace(item.offset, std::make_pair(bool{wanted[i]}, whole));
    }
    return more;
  }

  // The ids under which unwanted records lie in packs: a record's hash is taken over
  // its encoding, whose sequence number is implied (0) or, once copied, explicit.
  std::unordered_set<ObjectId> DeadRecords() const {
    std::unordered_set<ObjectId> dead;
    for (const LogRecord& r : log_.records) {
      if (log_.IsWanted(r)) continue;
      for (const ObjectId& id : StoredIds(r)) dead.insert(id);
    }
    return dead;
  }
  // The same of wanted records with something that was replaced: how much shorter they
  // will be.
  std::unordered_map<ObjectId, uint64_t> ReplacedText() const {
    std::unordered_map<ObjectId, uint64_t> found;
    for (const LogRecord& r : log_.records) {
      if (!log_.IsWanted(r)) continue;
      const uint64_t less = log_.ReplacedBytes(r);
      if (less == 0) continue;
      for (const ObjectId& id : StoredIds(r)) found.emplace(id, less);
    }
    return found;
  }
  static std::array<ObjectId, 2> StoredIds(LogRecord record) {
    ObjectId explicit_seq = Sha256::Of(EncodeLogRecord(record));
    record.seq = 0;
    return {Sha256::Of(EncodeLogRecord(record)), explicit_seq};
  }

  bool OpenPackIsVictim() {
    const Manifest::Pack* open =
        inventory_.packs.empty() || inventory_.packs.back().listed.sealed
            ? nullptr
            : &inventory_.packs.back().listed;
    return open && victims_.contains(open->id);
  }

  // Copies what is wanted of the victims and nowhere else. May run twice: the second
  // time for what became wanted meanwhile.
  Status CopyWanted(CopyTarget& target) {
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

  // What is wanted and was not found whole where the walk led: by whatever way it can
  // still be read.
  Status CopyHidden(CopyTarget& target, const ObjectKey& key) {
    auto read = store_.Get(key);
    if (!read.ok())
      return Error(Errc::kCorrupt, read.error().what)
          .WithHint(
              "belay verify --read-data names the checkpoints; nothing was removed");
    return CopyWhole(target, key, *read);
  }

  Status CopyWhole(CopyTarget& target, const ObjectKey& key, ByteSpan raw) {
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

  // A delta stays one when its base went to the same pack before it; otherwise it
  // becomes whole, so that nothing that is unwanted is kept for its sake.
  Status CopyDelta(CopyTarget& target, const PackInventory& from, RecordHeader header,
                   ByteSpan stored, ByteSpan raw) {
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

  bool IsReadable(const PackInventory& pack, uint64_t offset) {
    auto file = PackFile::Open(store_.fs(), store_.packs_dir(), pack.listed.id,
                               store_.manifest().store, OpenMode::Read());
    if (!file.ok()) return false;
    auto header = file->HeaderAt(offset, pack.flushed);
    return header.ok() && file->ReadRecord(RecordAt{offset, *header}).ok();
  }

  Status CopyRecords(CopyTarget& target) {
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
      if (r->kind == RecordKind::kPurge && BELAY_MUTANT("gc-drops-purges"))
        keep = false;
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

  // The gate keeps writers out while we wait for those inside, so it is held for short
  // turns only: a long reader must not become everybody's wait.
  Status WaitForUse(HeldLock& gate, HeldLock& use) {
    constexpr int64_t kTurnMs = 300;
    const int64_t deadline =
        store_.clock().SteadyNanos() + store_.options().lock_wait_ms * 1'000'000;
    for (;;) {
      BELAY_TRY(gate, store_.locks().Acquire(StoreLock::kGate, LockMode::kExclusive));
      auto got = store_.locks().Acquire(StoreLock::kUse, LockMode::kExclusive, kTurnMs);
      if (got.ok()) {
        use = std::move(*got);
        return Ok();
      }
      gate.Release();
      if (got.error().code != Errc::kBusy || store_.clock().SteadyNanos() >= deadline)
        return std::move(got).error();
      store_.clock().SleepNanos(kTurnMs * 1'000'000);
    }
  }

  Status Swap(CopyTarget& target) {
    HeldLock gate;
    HeldLock use;
    if (!BELAY_MUTANT("gc-without-lock")) {
      BELAY_OK(WaitForUse(gate, use));
    }
    BELAY_TRY(HeldLock append,
              store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    if (!BELAY_MUTANT("gc-skip-second-mark")) {
      // What was published while we copied may need what we were about to leave.
      size_t known = log_.records.size();
      BELAY_OK(ReadOn(store_, log_));
      // Also when what is new could not be read.
      if (!BELAY_MUTANT("gc-trust-second-look")) BELAY_OK(RefuseDamage());
      if (log_.records.size() != known) {
        BELAY_TRY(Inventory now, TakeInventory(store_));
        inventory_ = std::move(now);
        BELAY_OK(marker_->Mark(log_));
        BELAY_OK(RefuseDamage());
        report_.objects_removed = report_.records_removed = 0;
        BELAY_OK(CopyWanted(target));
        BELAY_OK(target.Finish());
      }
    }
    BELAY_TRY(Manifest manifest, store_.LoadManifest());
    if (const Manifest::Pack* last = manifest.Find(log_.position.pack);
        last && last->sealed && log_.position.offset > *last->sealed)
      return Error(Errc::kConflict,
                   "a record that was being written while cleaning up was not kept")
          .WithHint("nothing was removed; try again");
    Manifest next;
    next.store = manifest.store;
    next.generation = manifest.generation + 1;
    next.next_seq = std::max(manifest.next_seq, log_.max_seq + 1);
    next.packs = target.Listed();
    for (const Manifest::Pack& p : manifest.packs)
      if (!victims_.contains(p.id)) next.packs.push_back(p);

    auto unlink_victims = [&] {
      for (const PackId& id : victims_) {
        if (salvage_.empty())
          (void)store_.fs().Unlink(store_.packs_dir(), PackFile::FileName(id));
        else if (auto to =
                     MoveAside(store_.fs(), store_.packs_dir(), PackFile::FileName(id));
                 to.ok())
          set_aside_.push_back(to->bytes());
        (void)store_.fs().Unlink(store_.packs_dir(), PackIndex::FileName(id));
      }
    };
    if (BELAY_MUTANT("gc-unlink-before-manifest")) unlink_victims();
    Status listed = store_.WriteManifest(next);
    if (!listed.ok()) {
      // The rename may have happened: then the new packs are the store's.
      auto now = store_.LoadManifest();
      if (!now.ok() || now->generation == next.generation) target.Published();
      return listed;
    }
    target.Published();
    unlink_victims();
    BELAY_OK(store_.fs().Sync(store_.packs_dir()));
    BELAY_OK(store_.Refresh());
    report_.generation_changed = true;
    report_.packs_after = next.packs.size();
    report_.bytes_after = 0;
    for (const Manifest::Pack& p : next.packs) {
      auto stat = store_.fs().StatAt(store_.packs_dir(), PackFile::FileName(p.id));
      if (stat.ok()) report_.bytes_after += stat->size;
    }
    return Ok();
  }

  Store& store_;
  const GcOptions& options_;
  const std::unordered_set<PackId> salvage_;
  const Numbered must_be_read_;
  std::vector<std::string> set_aside_;
  GcReport report_;
  Inventory inventory_;
  LogView log_;
  std::unique_ptr<Marker> marker_;
  std::unordered_set<PackId> victims_;
  std::unordered_map<ObjectKey, CopyTarget::Place> copied_;
  std::set<std::pair<uint64_t, RecordId>> copied_records_;
  std::unordered_set<RecordId> copied_ids_;
};

}  // namespace

Result<GcReport> CollectGarbage(Store& store, const GcOptions& options) {
  return Collector(store, options).Run();
}

Result<SalvageReport> SalvagePacks(
    Store& store, const std::vector<PackId>& packs,
    const std::vector<std::pair<uint64_t, RecordId>>& must_be_read) {
  SalvageReport report;
  if (packs.empty()) return report;
  const GcOptions options;
  Collector collector(store, options, packs, must_be_read);
  BELAY_TRY(GcReport collected, collector.Run());
  (void)collected;
  report.set_aside = collector.set_aside();
  return report;
}

}  // namespace belay
