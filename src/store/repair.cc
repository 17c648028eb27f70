#include "store/repair.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <unordered_set>

#include "base/mutant.h"
#include "store/appender.h"
#include "store/heads.h"
#include "store/inventory.h"
#include "store/lost_records.h"
#include "store/store_files.h"

namespace belay {

namespace {

std::string Packs(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " pack" : " packs");
}

class Repairer {
 public:
  Repairer(Fs& fs, Clock& clock, Random& random, const AbsPath& dir,
           const StoreOptions& options, const RepairOptions& how)
      : how_(how),
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
                                       std::to_string(stat.uid) + ", not to you (" +
                                       std::to_string(options_.uid) + ")")
          .WithHint("set BELAY_HOME to a directory of your own");
    BELAY_OK(OpenPacks());
    BELAY_OK(CheckIsStore());
    BELAY_OK(CheckWritable());
    BELAY_OK(ClearTheWayTo(home_, Name::Literal("lock"), /*fifo_will_do=*/true));
    StoreLocks locks(fs_, clock_, home_, options_.lock_wait_ms);
    std::vector<HeldLock> held;
    for (StoreLock which : {StoreLock::kCollector, StoreLock::kGate, StoreLock::kUse,
                            StoreLock::kAppend}) {
      BELAY_TRY(HeldLock lock, locks.Acquire(which, LockMode::kExclusive));
      held.push_back(std::move(lock));
    }

    BELAY_OK(ClearTheWayTo(home_, ManifestName()));
    BELAY_TRY(bool there, ReadManifest());
    BELAY_OK(MakeTailReadable());
    ReadTail();
    if (!there || (manifest_.open_pack() && !TailOf(manifest_.open_pack()->id)))
      Recall(locks);
    BELAY_OK(ClearCache());
    BELAY_TRY(bool journals, KeepDirectory(Name::Literal("journal")));
    (void)journals;
    BELAY_OK(RenameMisnamed(there));
    BELAY_OK(there ? CheckListed() : ListFromPacks());
    if (there && how_.take_in) BELAY_OK(TakeIn());
    BELAY_OK(SealUnreadable());
    BELAY_OK(SealCutShort());
    if (changed_)
      BELAY_OK(ReplaceFile(fs_, home_, ManifestName(), EncodeManifest(manifest_)));
    BELAY_OK(RebuildIndexes());
    BELAY_TRY(auto closed, OpenToOthers(fs_, home_, /*put_right=*/true));
    if (!closed.empty())
      Done("others could read or write " + closed.front() +
           (closed.size() == 1
                ? std::string()
                : " and " + std::to_string(closed.size() - 1) + " more") +
           ": private now (directories 0700, files 0600)");
    return std::move(report_);
  }

 private:
  void Done(std::string what) { report_.done.push_back(std::move(what)); }

  bool Exists(const Fd& dir, std::string_view name) {
    return fs_.StatAt(dir, Name::Literal(name)).ok();
  }
  // Files that only a store has, and only once something was stored.
  bool HasRemains() {
    if (Exists(home_, "manifest") || Exists(home_, "tail")) return true;
    auto catalog = fs_.Open(home_, Name::Literal("catalog"), OpenMode::Directory());
    return catalog.ok() && Exists(*catalog, "catalog.db");
  }

  Status OpenPacks() {
    auto packs = fs_.Open(home_, PacksName(), OpenMode::Directory());
    if (packs.ok()) {
      packs_dir_ = std::move(*packs);
      return Ok();
    }
    const Name& name = PacksName();
    auto stat = fs_.StatAt(home_, name);
    const bool in_the_way = stat.ok() && stat->type != FileType::kDirectory;
    if (!in_the_way && packs.error().code != Errc::kNotFound)
      return std::move(packs).error();
    if (!HasRemains())
      return Error(Errc::kNotFound, "there is no store at " + dir_.bytes());
    if (how_.without_packs && Exists(home_, "manifest")) {
      if (in_the_way) {
        BELAY_TRY(Name to, MoveAside(fs_, home_, name));
        Done("packs was " + std::string(FileTypeName(stat->type)) +
             ": moved aside, now " + to.bytes());
      }
      BELAY_OK(fs_.MakeDir(home_, name, 0700));
      BELAY_OK(fs_.Sync(home_));
      Done("made the directory of the packs anew, empty");
      report_.made_packs = true;
      BELAY_TRY(packs_dir_, fs_.Open(home_, name, OpenMode::Directory()));
      return Ok();
    }
    const std::string path = dir_.bytes() + "/packs";
    const std::string or_without =
        Exists(home_, "manifest")
            ? ", then run belay repair again; to go on without it, for good: belay "
              "repair --accept-loss"
            : ", then run belay repair again";
    if (in_the_way)
      return Error(Errc::kCorrupt, path + " is " +
                                       std::string(FileTypeName(stat->type)) +
                                       ", not the directory with the packs")
          .WithHint("bring that back as " + path + or_without);
    return Error(Errc::kCorrupt,
                 path + " is gone, and everything that was stored was in it")
        .WithHint("bring it back from a copy" + or_without);
  }

  // A manifest, or at least one pack: otherwise this is somebody's directory, in which
  // not even a lock file is made, or there is nothing left to repair.
  Status CheckIsStore() {
    auto manifest = fs_.StatAt(home_, ManifestName());
    if (manifest.ok()) return Ok();
    BELAY_TRY(auto entries, fs_.List(packs_dir_));
    bool index = false;
    for (const DirEntry& e : entries) {
      size_t dot = e.name.find('.');
      if (dot == std::string::npos || !Id128::FromText(e.name.substr(0, dot))) continue;
      if (e.name.ends_with(".pack")) return Ok();
      index |= e.name.ends_with(".idx");
    }
    if (!index && !HasRemains())
      return Error(Errc::kNotFound, "there is no store at " + dir_.bytes());
    return Error(Errc::kCorrupt, "the manifest and every pack of " + dir_.bytes() +
                                     " are gone: there is nothing to repair it from")
        .WithHint(
            "bring back the packs from a copy, then run belay repair again; to "
            "begin anew, remove " +
            dir_.bytes());
  }

  Status CheckWritable() {
    BELAY_TRY(FsInfo info, fs_.Info(home_));
    if (!info.read_only) return Ok();
    return Error(Errc::kRefused, EROFS,
                 "the disk is read-only, so nothing can be repaired in " + dir_.bytes())
        .WithHint(
            "verify, du and status work as they are; to repair, make the disk "
            "writable, or set BELAY_HOME to a copy of the store");
  }

  // What is not a file under the name of one of ours is kept under another name.
  Status ClearTheWayTo(const Fd& dir, const Name& name, bool fifo_will_do = false) {
    auto stat = fs_.StatAt(dir, name);
    if (!stat.ok() || stat->type == FileType::kRegular) return Ok();
    if (fifo_will_do && stat->type == FileType::kFifo) return Ok();
    BELAY_TRY(Name to, MoveAside(fs_, dir, name));
    Done(name.bytes() + " was " + std::string(FileTypeName(stat->type)) +
         ": moved aside, now " + to.bytes());
    return Ok();
  }

  // False: it is lost, and what the packs say must do.
  Result<bool> ReadManifest() {
    const Name& name = ManifestName();
    auto bytes = ReadSmallFile(fs_, home_, name, size_t{16} << 20);
    // Once more: only what stays unreadable is given up.
    if (!bytes.ok() && IsUnreadable(bytes.error()))
      bytes = ReadSmallFile(fs_, home_, name, size_t{16} << 20);
    if (!bytes.ok()) {
      const Error& error = bytes.error();
      if (error.code == Errc::kNotFound || error.code == Errc::kInvalid ||
          IsUnreadable(error))
        return false;
      return std::move(bytes).error();
    }
    auto manifest = DecodeManifest(*bytes);
    if (manifest.ok()) {
      manifest_ = std::move(*manifest);
      return true;
    }
    if (manifest.error().code == Errc::kUnsupported) return std::move(manifest).error();
    return false;
  }

  // Writers stop at a tail that they cannot read; without one they look for themselves.
  Status MakeTailReadable() {
    const Name& name = TailName();
    BELAY_OK(ClearTheWayTo(home_, name));
    auto bytes = ReadSmallFile(fs_, home_, name, 4096);
    if (!bytes.ok() && IsUnreadable(bytes.error()))  // as with the manifest
      bytes = ReadSmallFile(fs_, home_, name, 4096);
    if (bytes.ok() || !IsUnreadable(bytes.error())) return Ok();
    BELAY_OK(fs_.Unlink(home_, name));
    Done(
        "removed the tail, which could not be read; the next checkpoint writes "
        "another");
    return Ok();
  }

  void ReadTail() {
    if (auto bytes = ReadSmallFile(fs_, home_, TailName(), 4096); bytes.ok())
      tail_ = DecodeTail(*bytes);
  }
  std::optional<Tail> TailOf(const PackId& id) const {
    return tail_ && tail_->pack == id ? tail_ : std::nullopt;
  }

  // What the catalogue and the heads know, before either is built anew. Nobody else
  // does when the manifest is lost or the open pack has no tail.
  void Recall(StoreLocks& locks) {
    if (BELAY_MUTANT("repair-asks-nobody")) return;
    uint64_t generation = 0;
    if (auto end = Heads::SavedEnd(fs_, home_)) ends_.push_back(*end);
    auto catalog = Catalog::Open({fs_, clock_, random_, locks, home_}, nullptr);
    if (!catalog.ok()) return;
    if (auto end = (*catalog)->KnownEnd()) ends_.push_back(*end);
    for (const RememberedEnd& end : ends_)
      generation = std::max(generation, end.position.generation);
    // Sure, unless the heads have seen a collection that the catalogue has not.
    remembered_ = (*catalog)->Remembered(generation);
  }
  // How far `pack` went, for all that anybody knows; 0: nobody does.
  uint64_t KnownLength(const PackId& pack) const {
    uint64_t length = 0;
    if (auto tail = TailOf(pack)) length = tail->flushed;
    for (const RememberedEnd& end : ends_)
      if (end.position.pack == pack) length = std::max(length, end.position.offset);
    return length;
  }

  // False: there is no such directory (any more); what had its name was moved aside.
  Result<bool> KeepDirectory(const Name& name) {
    auto stat = fs_.StatAt(home_, name);
    if (!stat.ok()) return false;
    if (stat->type == FileType::kDirectory) return true;
    BELAY_TRY(Name to, MoveAside(fs_, home_, name));
    Done(name.bytes() + " was " + std::string(FileTypeName(stat->type)) +
         ": moved aside, now " + to.bytes());
    return false;
  }

  // Everything in there is built anew when it is next needed.
  Status ClearCache() {
    const Name name = Name::Literal("cache");
    BELAY_TRY(bool there, KeepDirectory(name));
    if (!there) return Ok();
    BELAY_TRY(Fd cache, fs_.Open(home_, name, OpenMode::Directory()));
    BELAY_TRY(auto entries, fs_.List(cache));
    for (const DirEntry& e : entries)
      if (e.name == "heads" || e.name.ends_with(".scan"))
        BELAY_OK(ClearTheWayTo(cache, Name::Literal(e.name)));
    return Ok();
  }

  // kCorrupt when it is damaged, unreadable or no file.
  Result<PackHeader> ReadHeader(const PackId& id) {
    const Name name = PackFile::FileName(id);
    auto read = [&]() -> Result<PackHeader> {
      BELAY_TRY(Fd file, fs_.Open(packs_dir_, name, OpenMode::Read()));
      return PackFile::ReadHeader(fs_, file);
    };
    auto header = read();
    if (header.ok() || header.error().code == Errc::kCorrupt ||
        header.error().code == Errc::kUnsupported)
      return header;
    const Error& error = header.error();
    auto stat = fs_.StatAt(packs_dir_, name);
    if (stat.ok() && stat->type != FileType::kRegular)
      return Error(Errc::kCorrupt, "it is " + std::string(FileTypeName(stat->type)));
    if (IsUnreadable(error) || error.sys == EACCES)
      return Error(Errc::kCorrupt, error.sys, error.what);
    return header;
  }

  // The pack's header, put right when only it is damaged: its id is in the file's name
  // and in every batch.
  Result<PackHeader> HeaderOf(const PackId& id, const std::optional<StoreId>& store) {
    auto header = ReadHeader(id);
    if (header.ok() && header->pack == id) return header;
    if (!header.ok() && (header.error().code != Errc::kCorrupt || !store))
      return header;
    if (!store) return Error(Errc::kCorrupt, "pack header is damaged");
    // Opens when any batch of this pack is left.
    auto rest = PackFile::Open(fs_, packs_dir_, id, *store, OpenMode::Read());
    if (!rest.ok()) {
      // What may come back another time must not be taken for what is lost.
      if (!header.ok() && header.error().sys != 0) return header;
      return std::move(rest).error();
    }
    if (!rest->header_is_damaged()) return ReadHeader(id);  // this time it was read
    PackHeader fixed;
    fixed.pack = id;
    fixed.store = *store;
    fixed.created_ms = clock_.WallMillis();
    BELAY_TRY(Fd file,
              fs_.Open(packs_dir_, PackFile::FileName(id), OpenMode::ReadWrite()));
    Status written = WriteFull(fs_, file, 0, Encode(fixed));
    if (written.ok()) written = fs_.Sync(file);
    // A sector that does not even take new bytes: every batch still names its pack.
    if (!written.ok() && IsUnreadable(written.error())) return fixed;
    BELAY_OK(written);
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

  // A pack under the name of another: its header says which it is, and every batch in
  // it. One rename at a time, each of which brings a pack to its name: killed anywhere,
  // it can be done again. Where the name is taken by the pack itself, or by what does
  // not say what it is, all stays as it is.
  Status RenameMisnamed(bool listed) {
    BELAY_TRY(auto entries, fs_.List(packs_dir_));
    bool renamed = false;
    for (const DirEntry& e : entries) {
      if (!e.name.ends_with(".pack")) continue;
      auto parsed =
          Id128::FromText(std::string_view(e.name).substr(0, e.name.size() - 5));
      if (!parsed) continue;
      const PackId name(*parsed);
      // An exchange brings another one here, which may be misnamed in turn.
      for (size_t i = 0; i < entries.size(); ++i) {
        auto header = ReadHeader(name);
        if (!header.ok() || header->pack == name ||
            (listed && header->store != manifest_.store))
          break;
        auto other = ReadHeader(header->pack);
        const bool free = !other.ok() && other.error().code == Errc::kNotFound;
        if (!free && (!other.ok() || other->pack == header->pack)) break;
        BELAY_OK(fs_.Rename(packs_dir_, PackFile::FileName(name), packs_dir_,
                            PackFile::FileName(header->pack),
                            free ? RenameHow::kNoReplace : RenameHow::kExchange));
        renamed = true;
        Done("packs/" + e.name + " was pack " + header->pack.text() +
             ": it has its name again");
        if (free) break;
      }
    }
    return renamed ? fs_.Sync(packs_dir_) : Ok();
  }

  // Only damage is a reason to do without a pack. One that could not be read this time
  // would be out of the manifest for good.
  static Status MayBeLeftOut(const PackId& id, const Error& error) {
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
  // Whole batches, or all of it when there is more that counts or may count.
  Result<uint64_t> SealedLength(const PackFile& file) {
    BELAY_TRY(uint64_t size, file.Size());
    BELAY_TRY(uint64_t end, WholeEnd(file, size));
    BELAY_TRY(bool more, HasRecords(file, end, size));
    return more || file.has_unreadable() ? size : end;
  }
  // What GC would remove as left over is kept under a name it does not know.
  Status SetAside(const PackId& id) {
    const Name from = PackFile::FileName(id);
    const Name to = Name::Literal(from.bytes() + ".unreadable");
    BELAY_OK(fs_.Rename(packs_dir_, from, packs_dir_, to, RenameHow::kReplace));
    // Or it would look as if its pack were missing.
    (void)fs_.Unlink(packs_dir_, PackIndex::FileName(id));
    Done("left out " + from.bytes() + ", it is unreadable: now " + to.bytes());
    return Ok();
  }

  // No manifest: every pack of this store counts, oldest first. (One that GC had just
  // replaced may come back with it; that brings back the unwanted, never loses the
  // wanted.)
  Status ListFromPacks() {
    BELAY_TRY(auto entries, fs_.List(packs_dir_));
    std::vector<PackId> ids;
    std::set<PackId> missing;  // of which only traces are left
    for (const DirEntry& e : entries) {
      const size_t dot = std::min(e.name.find('.'), e.name.size());
      auto id = Id128::FromText(std::string_view(e.name).substr(0, dot));
      if (!id) continue;
      if (e.name.substr(dot) == ".pack") ids.emplace_back(*id);
      if (e.name.substr(dot) == ".idx") missing.insert(PackId(*id));
    }
    for (const PackId& id : ids) missing.erase(id);
    // Which store is this? What most packs say.
    std::map<StoreId, int> votes;
    Status unreadable = Ok();
    for (const PackId& id : ids) {
      auto header = HeaderOf(id, std::nullopt);
      if (header.ok()) {
        ++votes[header->store];
        continue;
      }
      if (header.error().code != Errc::kCorrupt) return std::move(header).error();
      if (unreadable.ok()) unreadable = MayBeLeftOut(id, header.error());
    }
    // Nobody to say it, and somebody who might have: no store is made up.
    if (votes.empty()) BELAY_OK(unreadable);
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
      if (!header.ok()) BELAY_OK(MayBeLeftOut(id, header.error()));
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
      BELAY_TRY(uint64_t length, SealedLength(file));
      // Sealed, its objects will be relied on: also those of a writer that was killed.
      BELAY_OK(fs_.SyncData(file.fd()));
      // One that was cut short stays known as that.
      manifest_.packs.push_back({id, std::max(length, KnownLength(id))});
    }
    if (tail_) next_seq_ = std::max(next_seq_, tail_->next_seq);
    for (const RememberedEnd& end : ends_)
      next_seq_ = std::max(next_seq_, end.next_seq);
    Done("made a new manifest from " + Packs(manifest_.packs.size()));
    BELAY_OK(BringBackRemembered());
    // Listed, so that nobody takes what is left for all there was.
    for (const PackId& id : missing) {
      BELAY_TRY(PackIndex index, PackIndex::Load(fs_, packs_dir_, id));
      manifest_.packs.insert(manifest_.packs.begin(),
                             {id, std::max(index.covered(), KnownLength(id))});
      Done("pack " + id.text() + " is missing");
    }
    manifest_.next_seq = next_seq_;
    changed_ = true;
    return Ok();
  }

  // With the packs the manifest may have lost some, and with them records that the
  // catalogue still knows. They go into a pack of their own, which the new manifest
  // names from its first moment: whoever reads the store by it finds them, or finds
  // that what they need is gone. By a later step a kill would leave a store that looks
  // whole without them, and the next question a catalogue that has forgotten them.
  Status BringBackRemembered() {
    std::vector<LogRecord> records;
    std::unordered_set<ObjectKey> objects;
    for (const Manifest::Pack& p : manifest_.packs) {
      BELAY_TRY(PackFile file, PackFile::Open(fs_, packs_dir_, p.id, manifest_.store,
                                              OpenMode::Read()));
      BELAY_TRY(uint64_t size, file.Size());
      const uint64_t end = std::min(size, *p.sealed);
      BELAY_TRY(bool whole, ReadRecords(file, kPackHeaderSize, end,
                                        [&records](const LogRecord& r) -> Status {
                                          records.push_back(r);
                                          return Ok();
                                        }));
      (void)whole;  // what else is lost, verify says
      BELAY_TRY(auto entries, ObjectsIn(file, kPackHeaderSize, end));
      for (const IndexEntry& e : entries) objects.insert(e.key);
    }
    LogView log;
    log.Take(std::move(records));
    std::set<uint64_t> taken;
    for (const LogRecord& r : log.records) taken.insert(r.seq);
    if (remembered_.empty()) {
      if (taken.size() + 1 < next_seq_)
        Done("nothing remembers the log, and of its numbers " +
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
      Done("brought back from the catalogue: " + RecordTitle(r));
    return Ok();
  }

  Status CheckListed() {
    for (const Manifest::Pack& p : manifest_.packs) {
      auto header = HeaderOf(p.id, manifest_.store);
      if (!header.ok() && header.error().code != Errc::kNotFound &&
          header.error().code != Errc::kCorrupt)
        return std::move(header).error();
      if (!header.ok())
        Done("pack " + p.id.text() + " cannot be put right here: " +
             (header.error().code == Errc::kNotFound ? "it is missing"
                                                     : header.error().what));
    }
    return Ok();
  }

  // Nobody may cut off what he could not read, so a writer that comes to such a place
  // stops. Sealed as long as it is, the pack keeps all it has, and the next checkpoint
  // starts another one.
  Status SealUnreadable() {
    if (!manifest_.open_pack()) return Ok();
    Manifest::Pack& open = manifest_.packs.back();
    const std::optional<Tail> tail = TailOf(open.id);
    const uint64_t flushed = tail ? tail->flushed : kPackHeaderSize;
    auto stat = fs_.StatAt(packs_dir_, PackFile::FileName(open.id));
    if (!stat.ok()) return Ok();

    auto file =
        PackFile::Open(fs_, packs_dir_, open.id, manifest_.store, OpenMode::Read());
    bool unreadable = !file.ok() && IsUnreadable(file.error());
    if (file.ok()) {
      if (stat->size > flushed)
        BELAY_OK(file->ForEachBatch(flushed, stat->size,
                                    [&](const BatchHeader& b, bool) -> Status {
                                      BELAY_TRY(bool whole, file->IsWhole(b));
                                      (void)whole;
                                      return Ok();
                                    }));
      unreadable = file->has_unreadable();
      if (unreadable) {
        BELAY_TRY(uint64_t end, WholeEnd(*file, stat->size));
        (void)end;
      }
    }
    if (!unreadable) return Ok();
    if (tail) next_seq_ = std::max(next_seq_, tail->next_seq);
    open.sealed = std::max(stat->size, flushed);
    manifest_.next_seq = std::max(manifest_.next_seq, next_seq_);
    changed_ = true;
    Done("closed pack " + open.id.text() +
         ", a part of which cannot be read: the next checkpoint starts another");
    return Ok();
  }

  // No tail, and the open pack ends before what somebody has read of it: as a writer
  // would, it is sealed at what it should have. Verify then says what it lacks, and
  // that is not forgotten when the catalogue is built anew.
  Status SealCutShort() {
    if (!manifest_.open_pack() || TailOf(manifest_.packs.back().id)) return Ok();
    Manifest::Pack& open = manifest_.packs.back();
    uint64_t due = 0, next_seq = 0;
    for (const RememberedEnd& end : ends_) {
      if (end.position.pack != open.id ||
          end.position.generation != manifest_.generation)
        continue;
      due = std::max(due, end.position.offset);
      next_seq = std::max(next_seq, end.next_seq);
    }
    auto file =
        PackFile::Open(fs_, packs_dir_, open.id, manifest_.store, OpenMode::Read());
    if (due == 0 || !file.ok()) return Ok();
    BELAY_TRY(uint64_t size, file->Size());
    BELAY_TRY(uint64_t end, WholeEnd(*file, size));
    if (end >= due) return Ok();
    open.sealed = due;
    manifest_.next_seq = std::max({manifest_.next_seq, next_seq_, next_seq});
    changed_ = true;
    Done("closed pack " + open.id.text() +
         ", the end of which is gone: the next checkpoint starts another");
    return Ok();
  }

  Status RebuildIndexes() {
    uint64_t rebuilt = 0;
    for (const Manifest::Pack& p : manifest_.packs) {
      auto file =
          PackFile::Open(fs_, packs_dir_, p.id, manifest_.store, OpenMode::Read());
      if (!file.ok()) continue;
      BELAY_OK(ClearTheWayTo(packs_dir_, PackIndex::FileName(p.id)));
      BELAY_OK(ClearTheWayTo(packs_dir_, Name::Literal(p.id.text() + ".idx.new")));
      BELAY_TRY(uint64_t size, file->Size());
      uint64_t limit = std::min(size, p.sealed.value_or(size));
      // An open pack grows on from its last whole batch; a sealed one has nothing more
      // to come, whatever its end looks like.
      uint64_t covered = limit;
      if (!p.sealed) {
        BELAY_TRY(covered, WholeEnd(*file, limit));
      }
      BELAY_TRY(auto entries, ObjectsIn(*file, kPackHeaderSize, limit));
      BELAY_OK(PackIndex::WriteWhole(fs_, packs_dir_, p.id, entries, covered));
      ++rebuilt;
    }
    Done("rebuilt the index of " + Packs(rebuilt));
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
      BELAY_TRY(uint64_t end, SealedLength(file));
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

  const RepairOptions how_;
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
  std::optional<Tail> tail_;
  std::vector<RememberedEnd> ends_;
  std::vector<RememberedRecord> remembered_;
  RepairReport report_;
};

}  // namespace

Result<std::vector<std::string>> OpenToOthers(Fs& fs, const Fd& home, bool put_right) {
  constexpr uint32_t kOthers = 0077;
  std::vector<std::string> open;
  auto look = [&](const Fd& file, const FileStat& stat, const std::string& shown) {
    if ((stat.mode & kOthers) == 0) return;
    const bool directory = stat.type == FileType::kDirectory;
    if (put_right && !fs.SetMode(file, directory ? 0700 : 0600).ok()) return;
    open.push_back(shown);
  };
  BELAY_TRY(FileStat home_stat, fs.Stat(home));
  look(home, home_stat, "the store's directory");
  auto below = [&](const Fd& dir, const std::string& prefix) -> Status {
    BELAY_TRY(auto entries, fs.List(dir));
    for (const DirEntry& e : entries) {
      const Name name = Name::Literal(e.name);
      auto stat = fs.StatAt(dir, name);
      if (!stat.ok() || (stat->mode & kOthers) == 0) continue;
      if (stat->type != FileType::kRegular && stat->type != FileType::kDirectory)
        continue;
      auto file = fs.Open(dir, name,
                          stat->type == FileType::kDirectory ? OpenMode::Directory()
                                                             : OpenMode::Read());
      if (file.ok()) look(*file, *stat, prefix + e.name);
    }
    return Ok();
  };
  for (const char* name : {"packs", "catalog", "cache", "journal", "agents", "forks"})
    if (auto dir = fs.Open(home, Name::Literal(name), OpenMode::Directory()); dir.ok())
      BELAY_OK(below(*dir, std::string(name) + "/"));
  BELAY_OK(below(home, ""));
  return open;
}

Result<Name> MoveAside(Fs& fs, const Fd& dir, const Name& name) {
  constexpr int kTries = 100;
  for (int i = 1;; ++i) {
    const Name to =
        Name::Literal(name.bytes() + ".aside" + (i == 1 ? "" : std::to_string(i)));
    Status moved = fs.Rename(dir, name, dir, to, RenameHow::kNoReplace);
    if (moved.ok()) return to;
    if (moved.error().code != Errc::kExists || i == kTries)
      return std::move(moved).error();
  }
}

Result<RepairReport> RepairStore(Fs& fs, Clock& clock, Random& random,
                                 const AbsPath& dir, const StoreOptions& options,
                                 const RepairOptions& how) {
  return Repairer(fs, clock, random, dir, options, how).Run();
}

}  // namespace belay
