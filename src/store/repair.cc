#include "store/repair.h"

#include <algorithm>
#include <map>

#include "base/mutant.h"
#include "store/appender.h"

namespace belay {

namespace {

class Repairer {
 public:
  Repairer(Fs& fs, Clock& clock, Random& random, const AbsPath& dir,
           const StoreOptions& options, bool take_in)
      : take_in_(take_in),
        fs_(fs),
        clock_(clock),
        random_(random),
        dir_(dir),
        options_(options) {}

  Result<RepairReport> Run() {
    BELAY_TRY(home_, fs_.OpenDir(dir_));
    BELAY_TRY(FileStat stat, fs_.Stat(home_));
    if (stat.uid != options_.uid)
      return Error(Errc::kRefused, "the store " + dir_.bytes() + " belongs to user " +
                                       std::to_string(stat.uid));
    BELAY_TRY(packs_dir_,
              fs_.Open(home_, Name::Literal("packs"), OpenMode::Directory()));
    BELAY_OK(CheckIsStore());
    StoreLocks locks(fs_, clock_, home_, options_.lock_wait_ms);
    std::vector<HeldLock> held;
    for (StoreLock which : {StoreLock::kCollector, StoreLock::kGate, StoreLock::kUse,
                            StoreLock::kAppend}) {
      BELAY_TRY(HeldLock lock, locks.Acquire(which, LockMode::kExclusive));
      held.push_back(std::move(lock));
    }

    auto bytes = ReadSmallFile(fs_, home_, Name::Literal("manifest"), size_t{16} << 20);
    bool lost = !bytes.ok();
    if (!lost) {
      auto manifest = DecodeManifest(*bytes);
      if (manifest.ok())
        manifest_ = std::move(*manifest);
      else if (manifest.error().code == Errc::kUnsupported)
        return std::move(manifest).error();
      else
        lost = true;
    } else if (bytes.error().code != Errc::kNotFound &&
               bytes.error().code != Errc::kInvalid) {
      return std::move(bytes).error();
    }
    BELAY_OK(lost ? ListFromPacks() : CheckListed());
    if (!lost && take_in_) BELAY_OK(TakeIn());
    if (changed_)
      BELAY_OK(ReplaceFile(fs_, home_, Name::Literal("manifest"),
                           EncodeManifest(manifest_)));
    BELAY_OK(RebuildIndexes());
    return std::move(report_);
  }

 private:
  void Done(std::string what) { report_.done.push_back(std::move(what)); }

  // A manifest, or at least one pack: otherwise this is somebody's directory, in which
  // not even a lock file is made.
  Status CheckIsStore() {
    auto manifest = fs_.StatAt(home_, Name::Literal("manifest"));
    if (manifest.ok()) return Ok();
    BELAY_TRY(auto entries, fs_.List(packs_dir_));
    for (const DirEntry& e : entries)
      if (e.name.ends_with(".pack") &&
          Id128::FromText(e.name.substr(0, e.name.size() - 5)))
        return Ok();
    return Error(Errc::kNotFound, "there is no store at " + dir_.bytes());
  }

  // The pack's header, put right when only it is damaged: its id is in the file's name
  // and in every batch.
  Result<PackHeader> HeaderOf(const PackId& id, const std::optional<StoreId>& store) {
    BELAY_TRY(Fd file,
              fs_.Open(packs_dir_, PackFile::FileName(id), OpenMode::ReadWrite()));
    auto header = PackFile::ReadHeader(fs_, file);
    if (header.ok() && header->pack == id) return header;
    if (!header.ok() && header.error().code != Errc::kCorrupt) return header;
    if (!store) return Error(Errc::kCorrupt, "pack header is damaged");
    // Opens when any batch of this pack is left.
    BELAY_TRY(PackFile rest,
              PackFile::Open(fs_, packs_dir_, id, *store, OpenMode::Read()));
    PackHeader fixed;
    fixed.pack = id;
    fixed.store = *store;
    fixed.created_ms = clock_.WallMillis();
    BELAY_OK(WriteFull(fs_, file, 0, Encode(fixed)));
    BELAY_OK(fs_.Sync(file));
    Done("put back the header of pack " + id.text());
    return fixed;
  }

  // The end of the last whole batch, and the highest sequence number met.
  Result<uint64_t> WholeEnd(const PackFile& file, uint64_t limit) {
    uint64_t end = kPackHeaderSize;
    BELAY_OK(file.ForEachBatch(
        kPackHeaderSize, limit, [&](const BatchHeader& b, bool damaged) -> Status {
          if (damaged) return Ok();
          BELAY_TRY(bool trailer, file.TrailerIsThere(b));
          if (trailer) end = b.end();
          if (b.first_seq != 0)
            next_seq_ = std::max(next_seq_, b.first_seq + b.log_count);
          Status walked = file.ForEachRecord(
              b, PackFile::Part::kLog, [&](const RecordAt& r) -> Status {
                if (r.header.type != ObjectType::kLog) return Ok();
                auto raw = file.ReadRecord(r);
                if (!raw.ok()) return Ok();
                auto record = DecodeLogRecord(*raw);
                if (record.ok()) next_seq_ = std::max(next_seq_, record->seq + 1);
                return Ok();
              });
          if (!walked.ok() && walked.error().code != Errc::kCorrupt) return walked;
          return Ok();
        }));
    return end;
  }

  // Records that can be read in [from, limit), where no batch is whole. A torn end has
  // none, or was not acknowledged; a damaged one may have been, so it is kept and
  // called damage.
  Result<bool> HasRecords(const PackFile& file, uint64_t from, uint64_t limit) {
    BELAY_TRY(auto records, file.ReadableRecords(from, limit));
    for (const RecordAt& r : records) {
      if (r.header.type != ObjectType::kLog) continue;
      auto raw = file.ReadRecord(r);
      if (raw.ok() && DecodeLogRecord(*raw).ok()) return true;
    }
    return false;
  }

  // Only damage is a reason to do without a pack. One that could not be read this time
  // would be out of the manifest for good.
  static Status MayBeLeftOut(const Error& error) {
    if (error.code == Errc::kCorrupt || BELAY_MUTANT("repair-leaves-pack-out"))
      return Ok();
    return error;
  }
  // What GC would remove as left over is kept under a name it does not know.
  Status SetAside(const PackId& id) {
    const Name from = PackFile::FileName(id);
    const Name to = Name::Literal(from.bytes() + ".unreadable");
    BELAY_OK(fs_.Rename(packs_dir_, from, packs_dir_, to, RenameHow::kReplace));
    Done("left out " + from.bytes() + ", it is unreadable: now " + to.bytes());
    return Ok();
  }

  // No manifest: every pack of this store counts, oldest first. (One that GC had just
  // replaced may come back with it; that brings back the unwanted, never loses the
  // wanted.)
  Status ListFromPacks() {
    BELAY_TRY(auto entries, fs_.List(packs_dir_));
    std::vector<PackId> ids;
    for (const DirEntry& e : entries) {
      if (!e.name.ends_with(".pack")) continue;
      auto id = Id128::FromText(std::string_view(e.name).substr(0, e.name.size() - 5));
      if (id) ids.emplace_back(*id);
    }
    // Which store is this? What most packs say.
    std::map<StoreId, int> votes;
    for (const PackId& id : ids) {
      auto header = HeaderOf(id, std::nullopt);
      if (header.ok())
        ++votes[header->store];
      else
        BELAY_OK(MayBeLeftOut(header.error()));
    }
    StoreId store(random_.NewId());
    int most = 0;
    for (const auto& [candidate, count] : votes) {
      if (count > most) {
        most = count;
        store = candidate;
      }
    }
    std::vector<std::pair<int64_t, PackId>> order;
    for (const PackId& id : ids) {
      auto header = HeaderOf(id, store);
      if (!header.ok()) BELAY_OK(MayBeLeftOut(header.error()));
      if (!header.ok() || header->store != store) {
        BELAY_OK(SetAside(id));
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
      BELAY_TRY(uint64_t size, file.Size());
      BELAY_TRY(uint64_t end, WholeEnd(file, size));
      // Sealed, its objects will be relied on: also those of a writer that was killed.
      BELAY_OK(fs_.SyncData(file.fd()));
      BELAY_TRY(bool more, HasRecords(file, end, size));
      manifest_.packs.push_back({id, more ? size : end});
    }
    manifest_.next_seq = next_seq_;
    changed_ = true;
    Done("made a new manifest from " + std::to_string(manifest_.packs.size()) +
         " packs");
    return Ok();
  }

  Status CheckListed() {
    for (const Manifest::Pack& p : manifest_.packs) {
      auto header = HeaderOf(p.id, manifest_.store);
      if (!header.ok() && header.error().code != Errc::kNotFound &&
          header.error().code != Errc::kCorrupt)
        return std::move(header).error();
      if (!header.ok())
        Done("pack " + p.id.text() + " cannot be repaired: " + header.error().what);
    }
    return Ok();
  }

  Status RebuildIndexes() {
    uint64_t rebuilt = 0;
    for (const Manifest::Pack& p : manifest_.packs) {
      auto file =
          PackFile::Open(fs_, packs_dir_, p.id, manifest_.store, OpenMode::Read());
      if (!file.ok()) continue;
      BELAY_TRY(uint64_t size, file->Size());
      uint64_t limit = std::min(size, p.sealed.value_or(size));
      BELAY_TRY(uint64_t covered, WholeEnd(*file, limit));
      BELAY_TRY(auto entries, ObjectsIn(*file, kPackHeaderSize, limit));
      BELAY_OK(PackIndex::WriteWhole(fs_, packs_dir_, p.id, entries, covered));
      ++rebuilt;
    }
    Done("rebuilt the index of " + std::to_string(rebuilt) +
         (rebuilt == 1 ? " pack" : " packs"));
    return Ok();
  }

  // Packs of this store that the manifest does not name.
  Status TakeIn() {
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
      BELAY_TRY(uint64_t size, file.Size());
      BELAY_TRY(uint64_t end, WholeEnd(file, size));
      BELAY_OK(fs_.SyncData(file.fd()));
      if (end <= kPackHeaderSize) continue;
      manifest_.packs.insert(manifest_.packs.begin(), {id, end});
      manifest_.next_seq = std::max(manifest_.next_seq, next_seq_);
      if (!changed_) ++manifest_.generation;
      changed_ = true;
      Done("took in pack " + id.text() + ", which the manifest did not name");
    }
    return Ok();
  }

  bool take_in_;
  Fs& fs_;
  Clock& clock_;
  Random& random_;
  const AbsPath& dir_;
  const StoreOptions& options_;
  Fd home_;
  Fd packs_dir_;
  Manifest manifest_;
  uint64_t next_seq_ = 1;
  bool changed_ = false;
  RepairReport report_;
};

}  // namespace

Result<RepairReport> RepairStore(Fs& fs, Clock& clock, Random& random,
                                 const AbsPath& dir, const StoreOptions& options,
                                 bool take_in) {
  return Repairer(fs, clock, random, dir, options, take_in).Run();
}

}  // namespace belay
