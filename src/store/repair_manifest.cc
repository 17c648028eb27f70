#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/mutant.h"
#include "store/appender.h"
#include "store/inventory.h"
#include "store/private.h"
#include "store/repair_internal.h"
#include "store/unlisted.h"

namespace belay {

namespace {

// Only damage is a reason to do without a pack. One that could not be read this time
// would be out of the manifest for good.
Status MayBeLeftOut(const PackId& id, const Error& error) {
  if (BELAY_MUTANT("repair-leaves-pack-out")) return Ok();
  if (error.code != Errc::kCorrupt) return error;
  if (error.sys == 0) return Ok();
  const std::string name = PackFile::FileName(id).bytes();
  return SysError(error.sys, name +
                                 " cannot be read, and there is no manifest that "
                                 "says what it is")
      .WithHint("if it stays so, move packs/" + name +
                " elsewhere and run belay repair again, which then does without it");
}

}  // namespace

Status Repairer::SetAside(const PackId& id, std::string_view why) {
  const Name from = PackFile::FileName(id);
  BELAY_TRY(Name to, MoveAside(fs_, packs_dir_, from));
  // Or it would look as if its pack were missing.
  (void)fs_.Unlink(packs_dir_, PackIndex::FileName(id));
  Done("left out " + from.bytes() + ", " + std::string(why) + ": now " + to.bytes());
  // Before a manifest that does without it.
  return fs_.Sync(packs_dir_);
}

Result<StoreId> Repairer::WhoseStore(const std::vector<PackId>& ids) {
  std::map<PackId, StoreId> said;
  std::map<StoreId, int> votes;
  Status unreadable = Ok();
  for (const PackId& id : ids) {
    auto header = HeaderOf(id, std::nullopt);
    if (header.ok()) {
      said.emplace(id, header->store);
      ++votes[header->store];
      continue;
    }
    if (header.error().code != Errc::kCorrupt) return std::move(header).error();
    if (unreadable.ok()) unreadable = MayBeLeftOut(id, header.error());
  }
  // Nobody to say it, and somebody who might have: no store is made up.
  if (votes.empty()) {
    BELAY_OK(unreadable);
    if ((!ids.empty() || WasStoredTo()) &&
        !BELAY_MUTANT("a-damaged-manifest-begins-anew"))
      return NothingLeft("there is no manifest, and no pack in " + dir_.bytes() +
                         "/packs that says of which store it is");
    return StoreId(random_.NewId());
  }
  if (votes.size() == 1) return votes.begin()->first;
  // Packs of others lie about. Who remembers where this store ended knows better than
  // any number of them.
  std::vector<PackId> known;
  if (tail_) known.push_back(tail_->pack);
  for (const RememberedEnd& end : ends_) known.push_back(end.position.pack);
  for (const PackId& id : known)
    if (auto at = said.find(id); at != said.end()) return at->second;
  const auto most =
      std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  if (std::ranges::count(votes, most->second,
                         [](const auto& vote) { return vote.second; }) == 1)
    return most->first;
  return Error(
             Errc::kCorrupt,
             "there is no manifest, and as many packs of one store as of another in " +
                 dir_.bytes() + "/packs")
      .WithHint("move the packs of the other store elsewhere, then run belay repair");
}

Status Repairer::ListFromPacks() {
  BELAY_TRY(auto entries, fs_.List(packs_dir_));
  std::vector<PackId> ids;
  std::set<PackId> missing;  // of which only traces are left
  std::vector<Name> no_files;
  for (const DirEntry& e : entries) {
    const size_t dot = std::min(e.name.find('.'), e.name.size());
    auto id = Id128::FromText(std::string_view(e.name).substr(0, dot));
    if (!id) continue;
    if (e.name.substr(dot) == ".pack") {
      auto stat = fs_.StatAt(packs_dir_, Name::Literal(e.name));
      if (stat.ok() && stat->type != FileType::kRegular &&
          !BELAY_MUTANT("repair-stops-at-what-is-no-pack"))
        no_files.push_back(Name::Literal(e.name));
      else
        ids.emplace_back(*id);
    }
    if (e.name.substr(dot) == ".idx") missing.insert(PackId(*id));
  }
  // The tail tells of the pack that was open, unless a collection replaced that.
  if (tail_ && tail_->flushed > kPackHeaderSize &&
      !ReplacedPacks(fs_, home_, UINT64_MAX).contains(tail_->pack) &&
      !BELAY_MUTANT("tail-misses-nothing"))
    missing.insert(tail_->pack);
  for (const PackId& id : ids) missing.erase(id);
  BELAY_TRY(const StoreId store, WhoseStore(ids));
  for (const Name& name : no_files) BELAY_OK(ClearTheWayTo(packs_dir_, name));
  if (!no_files.empty()) BELAY_OK(fs_.Sync(packs_dir_));
  std::vector<std::pair<int64_t, PackId>> order;
  for (const PackId& id : ids) {
    auto header = HeaderOf(id, store);
    if (!header.ok()) BELAY_OK(MayBeLeftOut(id, header.error()));
    if (!header.ok() || header->store != store) {
      BELAY_OK(
          SetAside(id, header.ok() ? "it is of another store" : "it is unreadable"));
      continue;
    }
    order.emplace_back(header->created_ms, id);
  }
  std::sort(order.begin(), order.end());
  manifest_ = Manifest();
  manifest_.store = store;
  // Unlike any generation before it: caches made under those must not be trusted.
  manifest_.generation =
      static_cast<uint64_t>(std::max<int64_t>(clock_.WallMillis(), 1));
  for (const auto& [created, id] : order) {
    BELAY_TRY(PackFile file,
              PackFile::Open(fs_, packs_dir_, id, store, OpenMode::Read()));
    BELAY_TRY(uint64_t length, SealedLength(file));
    // Sealed, its objects will be relied on: also those of a writer that was killed.
    BELAY_OK(fs_.SyncData(file.fd()));
    // One that was cut short stays known as that: its index, too, goes only as far as
    // the pack was flushed.
    BELAY_TRY(PackIndex index, PackIndex::Load(fs_, packs_dir_, id));
    const uint64_t covered =
        BELAY_MUTANT("no-index-tells-of-an-end") ? 0 : index.covered();
    manifest_.packs.push_back({id, std::max({length, KnownLength(id), covered})});
  }
  BELAY_OK(KeepWhatIsNeededBehindTheEnds());
  if (tail_) next_seq_ = std::max(next_seq_, tail_->next_seq);
  for (const RememberedEnd& end : ends_) next_seq_ = std::max(next_seq_, end.next_seq);
  OnceListed("made a new manifest from " + CountPacks(manifest_.packs.size()));
  BELAY_OK(BringBackRemembered());
  // Listed, so that nobody takes what is left for all there was; as the last ones:
  // nobody knows their place, and then every number that is not there may have been in
  // them.
  for (const PackId& id : missing) {
    BELAY_TRY(PackIndex index, PackIndex::Load(fs_, packs_dir_, id));
    const auto tail = TailOf(id);
    ListMissing(id, std::max(index.covered(), tail ? tail->flushed : uint64_t{0}));
  }
  manifest_.next_seq = next_seq_;
  changed_ = true;
  return Ok();
}

Status Repairer::KeepWhatIsNeededBehindTheEnds() {
  if (BELAY_MUTANT("repair-cuts-at-the-last-whole-batch")) return Ok();
  using Places = std::unordered_multimap<ObjectKey, std::pair<size_t, RecordAt>>;
  std::vector<PackFile> files;
  Places whole, behind;
  const auto find = [&](size_t pack, uint64_t from, uint64_t end,
                        Places& places) -> Status {
    BELAY_TRY(auto records, files[pack].ReadableRecords(from, end));
    for (const RecordAt& r : records)
      if (r.header.type != ObjectType::kLog)
        places.emplace(r.header.key(), std::make_pair(pack, r));
    return Ok();
  };
  std::vector<uint64_t> sizes;
  for (const Manifest::Pack& p : manifest_.packs) {
    BELAY_TRY(PackFile file,
              PackFile::Open(fs_, packs_dir_, p.id, manifest_.store, OpenMode::Read()));
    BELAY_TRY(uint64_t size, file.Size());
    files.push_back(std::move(file));
    sizes.push_back(size);
    if (size > *p.sealed) BELAY_OK(find(files.size() - 1, *p.sealed, size, behind));
  }
  if (behind.empty()) return Ok();
  for (size_t i = 0; i < files.size(); ++i)
    BELAY_OK(find(i, kPackHeaderSize, std::min(sizes[i], *manifest_.packs[i].sealed),
                  whole));

  BELAY_TRY(LogView log, ListedLog());
  log.Take(LackingRecords(log, remembered_, [&](const ObjectKey& key) {
    return whole.contains(key) || behind.contains(key);
  }));
  std::unordered_set<ObjectKey> seen;
  std::set<size_t> needed;
  const auto read = [&](const Places& places,
                        const ObjectKey& key) -> Result<std::optional<Bytes>> {
    const auto [first, last] = places.equal_range(key);
    for (auto at = first; at != last; ++at) {
      const auto& [pack, record] = at->second;
      auto bytes = files[pack].ReadRecord(record);
      if (!bytes.ok() && bytes.error().code != Errc::kCorrupt)
        return std::move(bytes).error();
      if (!bytes.ok()) continue;
      if (&places == &behind) needed.insert(pack);
      return std::optional(std::move(*bytes));
    }
    return std::optional<Bytes>();
  };
  for (const LogRecord& r : log.records) {
    if (!log.IsWanted(r)) continue;
    std::vector<ObjectKey> work = r.refs;
    while (!work.empty()) {
      const ObjectKey key = work.back();
      work.pop_back();
      if (!seen.insert(key).second || log.purged.contains(key)) continue;
      if (key.type == ObjectType::kBlob) {
        // A file's content is asked for as a blob, whatever it is stored as.
        work.push_back({ObjectType::kChunks, key.id});
        if (!behind.contains(key)) continue;
      }
      BELAY_TRY(auto bytes, read(whole, key));
      if (!bytes) {
        BELAY_TRY(bytes, read(behind, key));
      }
      if (!bytes || key.type == ObjectType::kBlob) continue;
      auto below = ReferencesOf(key.type, *bytes);
      if (below.ok()) work.insert(work.end(), below->begin(), below->end());
    }
  }
  for (const size_t pack : needed) {
    manifest_.packs[pack].sealed = sizes[pack];
    OnceListed("pack " + manifest_.packs[pack].id.text() +
               " has lost its end: what can be read of its last batch is kept");
  }
  return Ok();
}

void Repairer::ListMissing(const PackId& id, uint64_t length) {
  const Manifest::Pack pack{id, std::max(length, KnownLength(id))};
  if (BELAY_MUTANT("missing-packs-come-first"))
    manifest_.packs.insert(manifest_.packs.begin(), pack);
  else
    manifest_.packs.push_back(pack);
  OnceListed("pack " + id.text() + " is missing");
}

Status Repairer::ListWhatTheTailMisses() {
  if (!tail_ || tail_->flushed <= kPackHeaderSize || manifest_.Find(tail_->pack) ||
      Exists(packs_dir_, PackFile::FileName(tail_->pack).bytes()) ||
      IsOfReplaced(fs_, home_, UINT64_MAX, *tail_))
    return Ok();
  // Only the last one may be open.
  if (const Manifest::Pack* open = manifest_.open_pack()) {
    uint64_t length = std::max<uint64_t>(KnownLength(open->id), kPackHeaderSize);
    auto file =
        PackFile::Open(fs_, packs_dir_, open->id, manifest_.store, OpenMode::Read());
    if (file.ok()) {
      BELAY_TRY(uint64_t whole, SealedLength(*file));
      BELAY_OK(fs_.SyncData(file->fd()));
      length = std::max(length, whole);
    }
    manifest_.packs.back().sealed = length;
  }
  ListMissing(tail_->pack, tail_->flushed);
  manifest_.next_seq = std::max({manifest_.next_seq, next_seq_, tail_->next_seq});
  changed_ = true;
  return Ok();
}

Status Repairer::BringBackRemembered() {
  std::unordered_set<ObjectKey> objects;
  for (const Manifest::Pack& p : manifest_.packs) {
    BELAY_TRY(PackFile file,
              PackFile::Open(fs_, packs_dir_, p.id, manifest_.store, OpenMode::Read()));
    BELAY_TRY(uint64_t size, file.Size());
    BELAY_TRY(auto entries,
              ObjectsIn(file, kPackHeaderSize, std::min(size, *p.sealed)));
    for (const IndexEntry& e : entries) objects.insert(e.key);
  }
  BELAY_TRY(LogView log, ListedLog());
  std::set<uint64_t> taken;
  for (const LogRecord& r : log.records) taken.insert(r.seq);
  if (remembered_.empty()) {
    if (taken.size() + 1 < next_seq_)
      OnceListed(
          "nothing remembers the log, and of its numbers " +
          std::to_string(next_seq_ - 1 - taken.size()) +
          " are not there: of what was deleted, or of packs that are missing. If "
          "you have a copy of those, put them into packs/ and run belay repair");
    return Ok();
  }
  std::vector<LogRecord> lost = LackingRecords(
      log, remembered_, [&](const ObjectKey& key) { return objects.contains(key); });
  if (lost.empty()) return Ok();
  PreparedBatch batch;
  batch.flags = BatchHeader::kCopied;
  for (const LogRecord& r : lost) next_seq_ = std::max(next_seq_, r.seq + 1);
  for (LogRecord& r : lost) {
    if (r.seq == 0 || !taken.insert(r.seq).second) r.seq = next_seq_++;
    batch.AddLog(r);
  }
  batch.Seal();
  BELAY_TRY(PackFile file, Appender::CreatePack({fs_, clock_, random_, packs_dir_},
                                                manifest_.store, true));
  BELAY_TRY(uint64_t end,
            Appender::WriteBatch(fs_, clock_, file, kPackHeaderSize, batch, 0, 0));
  BELAY_OK(fs_.SyncData(file.fd()));
  manifest_.packs.push_back({file.id(), end});
  for (const LogRecord& r : lost)
    OnceListed("brought back from the catalogue: " + RecordTitle(r));
  return Ok();
}

Result<LogView> Repairer::ListedLog() {
  std::vector<LogRecord> records;
  for (const Manifest::Pack& p : manifest_.packs) {
    auto file =
        PackFile::Open(fs_, packs_dir_, p.id, manifest_.store, OpenMode::Read());
    if (!file.ok() && file.error().code != Errc::kCorrupt &&
        file.error().code != Errc::kNotFound)
      return std::move(file).error();
    if (!file.ok()) continue;
    BELAY_TRY(const uint64_t size, file->Size());
    const uint64_t end = std::min(size, p.sealed.value_or(size));
    BELAY_TRY(bool whole, ReadRecords(*file, kPackHeaderSize, end,
                                      [&records](const LogRecord& r) -> Status {
                                        records.push_back(r);
                                        return Ok();
                                      }));
    (void)whole;  // what else is lost, verify says
  }
  LogView log;
  log.Take(std::move(records));
  return log;
}

Result<bool> Repairer::Contradicts(const LogView& log, const PackFile& file,
                                   uint64_t end) {
  std::map<uint64_t, RecordId> taken;
  std::map<RecordId, uint64_t> numbers;
  for (const LogRecord& r : log.records) {
    taken.emplace(r.seq, r.id);
    if (r.kind != RecordKind::kRoot) numbers.emplace(r.id, r.seq);
  }
  bool contradicts = false;
  BELAY_TRY(bool whole,
            ReadRecords(file, kPackHeaderSize, end, [&](const LogRecord& r) -> Status {
              const auto other = taken.find(r.seq);
              const auto number = numbers.find(r.id);
              contradicts |= (other != taken.end() && other->second != r.id) ||
                             (number != numbers.end() && number->second != r.seq);
              return Ok();
            }));
  (void)whole;
  return contradicts && !BELAY_MUTANT("repair-takes-in-another-history");
}

Status Repairer::TakeIn() {
  BELAY_TRY(auto entries, fs_.List(packs_dir_));
  for (const DirEntry& e : entries) {
    if (!e.name.ends_with(".pack")) continue;
    auto parsed =
        Id128::FromText(std::string_view(e.name).substr(0, e.name.size() - 5));
    if (!parsed || manifest_.Find(PackId(*parsed))) continue;
    const PackId id(*parsed);
    auto header = HeaderOf(id, manifest_.store);
    if (!header.ok() || header->store != manifest_.store) continue;
    BELAY_TRY(PackFile file,
              PackFile::Open(fs_, packs_dir_, id, manifest_.store, OpenMode::Read()));
    BELAY_TRY(uint64_t end, SealedLength(file));
    BELAY_OK(fs_.SyncData(file.fd()));
    if (end <= kPackHeaderSize) continue;
    BELAY_TRY(LogView log, ListedLog());
    BELAY_TRY(const bool contradicts, Contradicts(log, file, end));
    if (contradicts) continue;
    manifest_.packs.insert(manifest_.packs.begin(), {id, end});
    manifest_.next_seq = std::max(manifest_.next_seq, next_seq_);
    if (!changed_) ++manifest_.generation;
    changed_ = true;
    OnceListed("took in pack " + id.text() + ", which the manifest did not name");
  }
  return Ok();
}

}  // namespace belay
