#include "store/found_again.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/inventory.h"
#include "store/lost_records.h"
#include "store/unlisted.h"

namespace belay {

namespace {

bool CanBeRead(Store& store, const ObjectKey& key) {
  // Content is asked for as a blob, whatever it is stored as.
  if (key.type == ObjectType::kBlob || key.type == ObjectType::kChunks)
    return store.ReadContent(key.id, [](ByteSpan) -> Status { return Ok(); }).ok();
  return store.Get(key).ok();
}

// Who searches for what was given up; `use` is held.
class Finder {
 public:
  Finder(Store& store, const std::vector<PackId>& unlisted)
      : store_(store), unlisted_(unlisted) {}

  Status Look() {
    BELAY_OK(ReadOn(store_, log_));
    for (const LogRecord& r : log_.records)
      if (WasErased(r) && !BELAY_MUTANT("erased-is-found-again"))
        for (const ObjectKey& key : PurgedBy(r)) erased_.insert(key);
    for (const LogRecord& r : log_.records) {
      if (WasErased(r) || log_.dropped.contains(r.id)) continue;
      for (const ObjectKey& key : PurgedBy(r))
        if (!erased_.contains(key) && !CanBeRead(store_, key)) given_up_.insert(key);
    }
    if (given_up_.empty()) return Ok();
    return OpenPacks();
  }

  // Whatever they hold can be read from then on, but what was erased.
  Status OpenPacks() {
    for (const PackId& id : unlisted_) {
      auto file = PackFile::Open(store_.fs(), store_.packs_dir(), id,
                                 store_.manifest().store, OpenMode::Read());
      if (!file.ok()) {
        // Of another store, of a newer Belay, or no pack.
        const Errc code = file.error().code;
        if (code == Errc::kCorrupt || code == Errc::kNotFound ||
            code == Errc::kUnsupported)
          continue;
        return std::move(file).error();
      }
      BELAY_TRY(uint64_t size, file->Size());
      BELAY_TRY(auto records, file->ReadableRecords(kPackHeaderSize, size));
      for (const RecordAt& r : records)
        if (r.header.type != ObjectType::kLog && !erased_.contains(r.header.key()))
          places_.emplace(r.header.key(), std::make_pair(files_.size(), r));
      files_.push_back(std::move(*file));
    }
    return Ok();
  }

  // What was given up and is in one of the packs, whole.
  std::vector<std::pair<ObjectKey, PackId>> Found() const {
    std::vector<std::pair<ObjectKey, PackId>> found;
    for (const ObjectKey& key : given_up_)
      if (Read(key)) found.emplace_back(key, files_[places_.at(key).first].id());
    return found;
  }
  // Nothing unless it is there and reads well.
  std::optional<Bytes> Read(const ObjectKey& key) const {
    auto at = places_.find(key);
    if (at == places_.end()) return std::nullopt;
    auto bytes = files_[at->second.first].ReadRecord(at->second.second);
    if (!bytes.ok()) return std::nullopt;
    return std::move(*bytes);
  }
  bool IsErased(const ObjectKey& key) const { return erased_.contains(key); }
  const LogView& log() const { return log_; }

 private:
  Store& store_;
  const std::vector<PackId>& unlisted_;
  LogView log_;
  std::unordered_set<ObjectKey> erased_;
  std::unordered_set<ObjectKey> given_up_;
  std::vector<PackFile> files_;
  std::unordered_map<ObjectKey, std::pair<size_t, RecordAt>> places_;
};

// Copies what was given up and all below it: what a state needed nobody could tell
// without the state, so that it is named by no mark.
class Copier {
 public:
  Copier(Store& store, const Finder& finder, BatchWriter& writer)
      : store_(store), finder_(finder), writer_(writer) {}

  Status Copy(const ObjectKey& start) {
    std::vector<ObjectKey> work = {start};
    while (!work.empty()) {
      const ObjectKey key = work.back();
      work.pop_back();
      if (finder_.IsErased(key) || !seen_.insert(key).second) continue;
      std::optional<Bytes> bytes;
      if (auto here = store_.Get(key); here.ok()) bytes = std::move(*here);
      if (!bytes) {
        bytes = finder_.Read(key);
        if (bytes) {
          BELAY_TRY(ObjectId put, writer_.PutAs(key, *bytes));
          (void)put;
          copied_.insert(key);
        }
      }
      // A file's content is asked for as a blob, whatever it is stored as.
      if (!bytes && key.type == ObjectType::kBlob) {
        const ObjectKey chunks{ObjectType::kChunks, key.id};
        work.push_back(chunks);
        continue;
      }
      if (!bytes) {
        lacking_.push_back(key);
        if (key.type == ObjectType::kChunks)
          lacking_.push_back({ObjectType::kBlob, key.id});
        continue;
      }
      if (key.type == ObjectType::kBlob) continue;
      auto below = ReferencesOf(key.type, *bytes);
      if (below.ok()) work.insert(work.end(), below->begin(), below->end());
    }
    return Ok();
  }

  bool Has(const ObjectKey& key) const {
    return copied_.contains(key) || (key.type == ObjectType::kBlob &&
                                     copied_.contains({ObjectType::kChunks, key.id}));
  }
  // What is still not there of what was met.
  const std::vector<ObjectKey>& lacking() const { return lacking_; }

 private:
  Store& store_;
  const Finder& finder_;
  BatchWriter& writer_;
  std::unordered_set<ObjectKey> seen_, copied_;
  std::vector<ObjectKey> lacking_;
};

Result<std::vector<std::string>> CopyFound(Store& store,
                                           const std::vector<PackId>& unlisted) {
  std::vector<std::string> done;
  BELAY_TRY(auto writer, store.Begin());
  Finder finder(store, unlisted);
  BELAY_OK(finder.Look());
  const auto found = finder.Found();
  if (found.empty()) return done;
  writer->StoreAnew(true);  // what the store has of it cannot be read
  Copier copier(store, finder, *writer);
  std::set<PackId> packs;
  for (const auto& [key, pack] : found) {
    BELAY_OK(copier.Copy(key));
    packs.insert(pack);
  }
  for (const PackId& id : packs)
    done.push_back("pack " + id.text() +
                   " is back: what had been given up as lost was taken out of it");
  // The marks. What is still lost is marked anew, which is newer than every record: not
  // what one needs that came after the old mark, for that is damage.
  BELAY_TRY(Inventory inventory, TakeInventory(store));
  Marker needed(store, inventory);
  std::vector<RecordId> dropped;
  std::vector<ObjectKey> still = copier.lacking();
  const LogView& log = finder.log();
  for (auto at = log.records.rbegin(); at != log.records.rend(); ++at) {
    const auto keys = PurgedBy(*at);
    if (!WasErased(*at) && !log.dropped.contains(at->id) &&
        std::ranges::any_of(keys, [&](const ObjectKey& k) { return copier.Has(k); })) {
      dropped.push_back(at->id);
      for (const ObjectKey& key : keys)
        if (!copier.Has(key) && !needed.IsLive(key)) still.push_back(key);
    }
    if (log.Holds(*at)) BELAY_OK(needed.MarkFrom(*at, log.purged));
  }
  if (!still.empty())
    writer->Add(MakePurge(RecordId(store.random().NewId()), store.clock().WallMillis(),
                          still, "unreadable; given up by belay repair --accept-loss"));
  writer->Add(
      MakeDrop(RecordId(store.random().NewId()), store.clock().WallMillis(), dropped));
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  return done;
}

// Checkpoints that are marked as having lost something, and have all of it.
Status UnmarkWhole(Store& store, std::vector<std::string>& done) {
  BELAY_TRY(auto writer, store.Begin());
  LogView log;
  BELAY_OK(ReadOn(store, log));
  std::unordered_map<RecordId, std::vector<RecordId>> marks;  // by checkpoint
  for (const LogRecord& r : log.records)
    if (auto target = AnnotationTarget(r);
        target && r.fields.has(kAnnotationLost) && log.IsWanted(r) &&
        r.fields.items().size() == 2)  // it says nothing else
      marks[*target].push_back(r.id);
  if (marks.empty()) return Ok();
  BELAY_TRY(Inventory inventory, TakeInventory(store));
  std::vector<RecordId> dropped;
  for (const LogRecord& r : log.records) {
    auto marked = marks.find(r.id);
    if (marked == marks.end() || !log.IsWanted(r)) continue;
    Marker needed(store, inventory);
    BELAY_OK(needed.MarkFrom(r, {}));
    if (!needed.broken().empty()) continue;
    dropped.insert(dropped.end(), marked->second.begin(), marked->second.end());
    done.push_back(RecordTitle(r) + " is whole again");
    marks.erase(marked);
  }
  if (dropped.empty()) return Ok();
  writer->Add(
      MakeDrop(RecordId(store.random().NewId()), store.clock().WallMillis(), dropped));
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  return Ok();
}

// Packs with bytes that are none of the store's, and may be what it lacks.
Result<std::vector<PackId>> PacksWithOthers(Store& store) {
  BELAY_TRY(auto packs, UnlistedPacks(store));
  BELAY_TRY(auto longer, LongerPacks(store));
  if (BELAY_MUTANT("nothing-comes-from-behind-an-end")) longer.clear();
  for (const auto& [id, length] : longer) packs.push_back(id);
  return packs;
}

}  // namespace

Result<std::vector<PackId>> PacksWithGivenUp(Store& store) {
  std::vector<PackId> out;
  BELAY_TRY(auto unlisted, PacksWithOthers(store));
  if (unlisted.empty()) return out;
  Finder finder(store, unlisted);
  BELAY_OK(finder.Look());
  for (const auto& [key, pack] : finder.Found())
    if (std::ranges::find(out, pack) == out.end()) out.push_back(pack);
  return out;
}

Status TakeBackGivenUp(Store& store, std::vector<std::string>& done) {
  BELAY_TRY(auto unlisted, PacksWithOthers(store));
  if (unlisted.empty()) return Ok();
  BELAY_TRY(auto copied, CopyFound(store, unlisted));
  done.insert(done.end(), copied.begin(), copied.end());
  return UnmarkWhole(store, done);
}

Status TakeBackRecords(
    Store& store, std::vector<std::string>& done,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  Unlisted others;
  {
    BELAY_TRY(HeldLock use, store.HoldForReading());
    BELAY_TRY(others, LookAtUnlisted(store));
  }
  if (others.lacking.empty()) return Ok();
  const auto copy = [&](BatchWriter& writer) -> Status {
    std::vector<PackId> packs = others.kept;
    packs.insert(packs.end(), others.longer.begin(), others.longer.end());
    Finder finder(store, packs);
    BELAY_OK(finder.Look());
    BELAY_OK(finder.OpenPacks());
    writer.StoreAnew(true);  // it is asked for only where the store cannot read it
    Copier copier(store, finder, writer);
    if (BELAY_MUTANT("records-come-back-bare")) return Ok();
    uint64_t total = 0;  // the packs may hold what nobody asks for, too
    for (const PackId& id : packs)
      if (auto stat = store.fs().StatAt(store.packs_dir(), PackFile::FileName(id));
          stat.ok())
        total += stat->size;
    for (const LogRecord& r : others.lacking) {
      for (const ObjectKey& key : r.refs) BELAY_OK(copier.Copy(key));
      if (progress) progress(writer.bytes_so_far(), total);
    }
    return Ok();
  };
  BELAY_OK(BringBack(store, others.lacking, copy));
  for (const LogRecord& r : others.lacking)
    done.push_back(
        (others.kept.empty()
             ? "brought back from behind the end of a pack: "
             : "brought back from a pack that the manifest does not name: ") +
        RecordTitle(r));
  return Ok();
}

Status TakeBackObjects(Store& store, const std::vector<ObjectKey>& lost,
                       std::vector<std::string>& done) {
  BELAY_TRY(auto unlisted, PacksWithOthers(store));
  if (unlisted.empty() || lost.empty()) return Ok();
  BELAY_TRY(auto writer, store.Begin());
  Finder finder(store, unlisted);
  BELAY_OK(finder.Look());
  BELAY_OK(finder.OpenPacks());
  writer->StoreAnew(true);  // what the store has of it cannot be read
  Copier copier(store, finder, *writer);
  uint64_t copied = 0;
  for (const ObjectKey& key : lost) {
    BELAY_OK(copier.Copy(key));
    copied += copier.Has(key) ? 1 : 0;
  }
  if (copied == 0) return Ok();
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  done.push_back(
      "took " + Counted(copied, "object") +
      " that could not be read any more out of a pack that the manifest does "
      "not name, or from behind the end of one");
  return Ok();
}

}  // namespace belay
