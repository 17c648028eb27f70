#include "store/repair.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "store/heads.h"
#include "store/private.h"
#include "store/relied_on.h"
#include "store/repair_internal.h"
#include "store/store_files.h"
#include "store/stray_pack.h"

namespace belay {

Result<RepairReport> Repairer::Run() {
  BELAY_TRY(home_, fs_.OpenDir(dir_));
  BELAY_TRY(FileStat stat, fs_.Stat(home_));
  if (stat.uid != options_.uid)
    return Error(Errc::kRefused, "the store " + dir_.bytes() + " belongs to user " +
                                     std::to_string(stat.uid) + ", not to you (" +
                                     std::to_string(options_.uid) + ")")
        .WithHint("set BELAY_HOME to a directory of your own");
  BELAY_OK(CheckVersion());
  BELAY_OK(CheckWritable());
  BELAY_OK(OpenPacks());
  BELAY_OK(CheckIsStore());
  BELAY_OK(ClearTheWayTo(home_, Name::Literal("lock"), /*fifo_will_do=*/true));
  StoreLocks locks(fs_, clock_, home_, options_.lock_wait_ms);
  std::vector<HeldLock> held;
  for (StoreLock which :
       {StoreLock::kCollector, StoreLock::kGate, StoreLock::kUse, StoreLock::kAppend}) {
    BELAY_TRY(HeldLock lock, locks.Acquire(which, LockMode::kExclusive));
    held.push_back(std::move(lock));
  }

  BELAY_OK(ClearTheWayTo(home_, ManifestName()));
  BELAY_TRY(bool there, ReadManifest());
  BELAY_TRY(const bool moved, TakeBackStrays(there));
  if (moved) {
    lost_manifest_.clear();
    BELAY_TRY(there, ReadManifest());
  }
  BELAY_OK(MakeTailReadable());
  BELAY_OK(ReadTail());
  if (!there || (manifest_.open_pack() && !TailOf(manifest_.open_pack()->id)))
    Recall(locks);
  if (there && manifest_.open_pack()) AskTheCaches();  // before they are cleared
  BELAY_OK(ClearCache());
  BELAY_TRY(bool journals, KeepDirectory(Name::Literal("journal")));
  (void)journals;
  BELAY_OK(RenameMisnamed(there));
  BELAY_OK(there ? CheckListed() : ListFromPacks());
  if (there) BELAY_OK(ListWhatTheTailMisses());
  if (there && how_.take_in) BELAY_OK(TakeIn());
  BELAY_OK(SealUnreadable());
  BELAY_OK(SealCutShort());
  if (changed_) {
    // A tail of a pack that was replaced, and is gone, would say without the file
    // `replaced` that one is missing. So it goes first, and for good.
    if (tail_ && !manifest_.Find(tail_->pack) && !BELAY_MUTANT("replaced-goes-first") &&
        !Exists(packs_dir_, PackFile::FileName(tail_->pack).bytes())) {
      BELAY_OK(fs_.Unlink(home_, TailName()));
      BELAY_OK(fs_.Sync(home_));
    }
    // Packs that it names may be listed now: none of them is replaced any more.
    BELAY_TRY([[maybe_unused]] bool kept, KeepPack(fs_, home_, ReplacedName()));
    BELAY_TRY(kept, KeepPack(fs_, home_, ManifestName()));
    Status gone = fs_.Unlink(home_, ReplacedName());
    if (!gone.ok() && gone.error().code != Errc::kNotFound)
      return std::move(gone).error();
    BELAY_OK(ReplaceFile(fs_, home_, ManifestName(), EncodeManifest(manifest_)));
  }
  for (std::string& what : once_listed_) Done(std::move(what));
  BELAY_OK(RebuildIndexes());
  BELAY_TRY(auto closed, OpenToOthers(fs_, home_, /*put_right=*/true));
  if (!closed.empty())
    Done("others could read or write " + closed.front() +
         (closed.size() == 1 ? std::string()
                             : " and " + std::to_string(closed.size() - 1) + " more") +
         ": private now (directories 0700, files 0600)");
  return std::move(report_);
}

bool Repairer::HasRemains() { return Exists(home_, "manifest") || WasStoredTo(); }

bool Repairer::WasStoredTo() {
  if (Exists(home_, "tail") || Heads::SavedEnd(fs_, home_)) return true;
  if (lost_manifest_.find("\npack ") != std::string::npos) return true;
  auto catalog = fs_.Open(home_, Name::Literal("catalog"), OpenMode::Directory());
  return catalog.ok() &&
         (Exists(*catalog, "catalog.db") || Exists(*catalog, "catalog.next"));
}

Status Repairer::CheckVersion() {
  auto bytes = ReadSmallFile(fs_, home_, ManifestName(), size_t{16} << 20);
  if (!bytes.ok()) return Ok();  // ReadManifest() judges
  auto manifest = DecodeManifest(*bytes);
  if (manifest.ok() || manifest.error().code != Errc::kUnsupported) return Ok();
  return std::move(manifest).error();
}

Status Repairer::OpenPacks() {
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
  const bool listed = !ManifestIsLost();
  if (how_.without_packs && listed) {
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
  const auto strays = StrayPacks(fs_, home_);
  const std::string or_without =
      listed ? ", then run belay repair again; to go on without it: belay "
               "repair --accept-loss"
      : strays.empty()
          ? ", then run belay repair again; to begin anew, and give up everything that "
            "was stored, remove " +
                dir_.bytes()
          : ", or make it anew, empty: then belay repair puts " +
                strays.front().shown() + ", which is a pack, there";
  if (in_the_way)
    return Error(Errc::kCorrupt, path + " is " + std::string(FileTypeName(stat->type)) +
                                     ", not the directory with the packs")
        .WithHint("bring that back as " + path + or_without);
  return Error(Errc::kCorrupt,
               path + " is gone, and everything that was stored was in it")
      .WithHint("bring it back from a copy" + or_without);
}

Status Repairer::CheckIsStore() {
  if (!ManifestIsLost()) return Ok();
  const bool damaged = Exists(home_, "manifest");
  if (damaged && BELAY_MUTANT("a-damaged-manifest-begins-anew")) return Ok();
  BELAY_TRY(auto entries, fs_.List(packs_dir_));
  bool index = false;
  for (const DirEntry& e : entries) {
    size_t dot = e.name.find('.');
    if (dot == std::string::npos || !Id128::FromText(e.name.substr(0, dot))) continue;
    if (e.name.ends_with(".pack")) return Ok();
    index |= e.name.ends_with(".idx");
  }
  for (const StrayPack& stray : StrayPacks(fs_, home_))
    if (stray.header && !BELAY_MUTANT("repair-leaves-a-pack-astray")) return Ok();
  if (!index && !WasStoredTo())
    return damaged
               ? Ok()
               : Status(Error(Errc::kNotFound, "there is no store at " + dir_.bytes()));
  return NothingLeft(
      damaged
          ? "the manifest of " + dir_.bytes() + " is damaged, and every pack is gone"
          : "the manifest and every pack of " + dir_.bytes() + " are gone");
}

Error Repairer::NothingLeft(std::string what) {
  const auto strays = StrayPacks(fs_, home_);
  return Error(Errc::kCorrupt, std::move(what) + ": there is nothing to repair it from")
      .WithHint("bring back the packs from a copy, then run belay repair again" +
                (strays.empty() ? "; to begin anew, remove " + dir_.bytes()
                                : "; keep " + strays.front().shown() +
                                      ", which begins as a pack does"));
}

Status Repairer::CheckWritable() {
  BELAY_TRY(FsInfo info, fs_.Info(home_));
  if (!info.read_only) return Ok();
  // Where there is no store that is what to say.
  if (auto packs = fs_.Open(home_, PacksName(), OpenMode::Directory()); packs.ok()) {
    packs_dir_ = std::move(*packs);
    BELAY_OK(CheckIsStore());
  } else if (!HasRemains()) {
    return Error(Errc::kNotFound, "there is no store at " + dir_.bytes());
  }
  return Error(Errc::kRefused, EROFS,
               "the disk is read-only, so nothing can be repaired in " + dir_.bytes())
      .WithHint(
          "verify, du and status work as they are; to repair, make the disk "
          "writable, or set BELAY_HOME to a copy of the store");
}

Status Repairer::ClearTheWayTo(const Fd& dir, const Name& name, bool fifo_will_do) {
  auto will_do = [&](const FileStat& stat) {
    return stat.type == FileType::kRegular ||
           (fifo_will_do && stat.type == FileType::kFifo);
  };
  auto stat = fs_.StatAt(dir, name);
  if (!stat.ok() || will_do(*stat)) return Ok();
  auto to = MoveAside(fs_, dir, name);
  // Another repair was there first.
  if (!to.ok() && to.error().code == Errc::kNotFound) return Ok();
  if (!to.ok()) return std::move(to).error();
  // Nothing is locked while the way to `lock` is cleared: another repair may have moved
  // aside what was there, and what was moved now may be the file that it made and a
  // writer holds. That goes back before somebody makes another.
  BELAY_TRY(FileStat moved, fs_.StatAt(dir, *to));
  if (will_do(moved) && !BELAY_MUTANT("repair-takes-live-lock")) {
    Status back = fs_.Rename(dir, *to, dir, name, RenameHow::kNoReplace);
    if (back.ok()) return Ok();
    Error error = std::move(back).error();
    error.what = "the file " + name.bytes() + " of another belay process is now " +
                 to->bytes() + ", and could not be put back: " + error.what;
    error.hint = "wait until no belay process is at work, then run belay repair again";
    return error;
  }
  Done(name.bytes() + " was " + std::string(FileTypeName(moved.type)) +
       ": moved aside, now " + to->bytes());
  return Ok();
}

Result<bool> Repairer::ReadManifest() {
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
  lost_manifest_ = AsText(*bytes);
  return false;
}

bool Repairer::ManifestIsLost() {
  auto there = ReadManifest();
  return there.ok() && !*there;
}

Status Repairer::MakeTailReadable() {
  const Name& name = TailName();
  BELAY_OK(ClearTheWayTo(home_, name));
  auto bytes = ReadSmallFile(fs_, home_, name, 4096);
  if (!bytes.ok() && IsUnreadable(bytes.error()))  // as with the manifest
    bytes = ReadSmallFile(fs_, home_, name, 4096);
  if (bytes.ok() || !IsUnreadable(bytes.error())) return Ok();
  BELAY_TRY(const bool kept, KeepPack(fs_, home_, name));
  if (kept) return Ok();
  BELAY_OK(fs_.Unlink(home_, name));
  Done(
      "removed the tail, which could not be read; the next checkpoint writes "
      "another");
  return Ok();
}

Status Repairer::ReadTail() {
  if (auto bytes = ReadSmallFile(fs_, home_, TailName(), 4096); bytes.ok())
    tail_ = DecodeTail(*bytes);
  if (!tail_) return Ok();
  auto header = ReadHeader(tail_->pack);
  auto file =
      PackFile::Open(fs_, packs_dir_, tail_->pack,
                     header.ok() ? header->store : manifest_.store, OpenMode::Read());
  if (!file.ok()) return Ok();
  BELAY_TRY(const bool fits, file->MayEndAt(tail_->flushed, tail_->last));
  if (fits) return Ok();
  foreign_end_ = tail_->pack;
  next_seq_ = std::max(next_seq_, tail_->next_seq);
  tail_.reset();
  return Ok();
}

void Repairer::Recall(StoreLocks& locks) {
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

void Repairer::AskTheCaches() {
  RememberedEnd end;
  end.position.generation = manifest_.generation;
  end.position.pack = manifest_.open_pack()->id;
  const auto relied_on =
      ReliedOn(fs_, home_, packs_dir_, end.position.pack, manifest_.store);
  if (!relied_on) return;
  end.position.offset = *relied_on;
  ends_.push_back(end);
}

uint64_t Repairer::KnownLength(const PackId& pack) {
  uint64_t length = 0;
  if (pack == foreign_end_ && !pack.is_zero()) {
    auto stat = fs_.StatAt(packs_dir_, PackFile::FileName(pack));
    if (stat.ok()) length = stat->size + 1;
  }
  if (auto tail = TailOf(pack)) length = tail->flushed;
  for (const RememberedEnd& end : ends_)
    if (end.position.pack == pack) length = std::max(length, end.position.offset);
  return length;
}

Result<bool> Repairer::KeepDirectory(const Name& name) {
  auto stat = fs_.StatAt(home_, name);
  if (!stat.ok()) return false;
  if (stat->type == FileType::kDirectory) return true;
  BELAY_TRY(Name to, MoveAside(fs_, home_, name));
  Done(name.bytes() + " was " + std::string(FileTypeName(stat->type)) +
       ": moved aside, now " + to.bytes());
  return false;
}

Status Repairer::ClearCache() {
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

Result<RepairReport> RepairStore(Fs& fs, Clock& clock, Random& random,
                                 const AbsPath& dir, const StoreOptions& options,
                                 const RepairOptions& how) {
  return Repairer(fs, clock, random, dir, options, how).Run();
}

}  // namespace belay
