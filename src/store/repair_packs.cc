#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "store/appender.h"
#include "store/inventory.h"
#include "store/private.h"
#include "store/repair_internal.h"
#include "store/store_files.h"
#include "store/stray_pack.h"

namespace belay {

Result<PackHeader> Repairer::ReadHeader(const PackId& id) {
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

Result<PackHeader> Repairer::HeaderOf(const PackId& id,
                                      const std::optional<StoreId>& store) {
  auto header = ReadHeader(id);
  if (header.ok() && header->pack == id) return header;
  if (!header.ok() && (header.error().code != Errc::kCorrupt || !store)) return header;
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

Result<uint64_t> Repairer::WholeEnd(const PackFile& file, uint64_t limit) {
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

Result<bool> Repairer::HasRecords(const PackFile& file, uint64_t from, uint64_t limit) {
  BELAY_TRY(auto records, file.ReadableRecords(from, limit));
  for (const RecordAt& r : records) {
    if (r.header.type != ObjectType::kLog) continue;
    auto raw = file.ReadRecord(r);
    if (raw.ok() && DecodeLogRecord(*raw).ok()) return true;
  }
  return false;
}

Result<uint64_t> Repairer::SealedLength(const PackFile& file) {
  BELAY_TRY(uint64_t size, file.Size());
  BELAY_TRY(uint64_t end, WholeEnd(file, size));
  BELAY_TRY(bool more, HasRecords(file, end, size));
  return more || file.has_unreadable() ? size : end;
}

Status Repairer::RenameMisnamed(bool listed) {
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

Result<bool> Repairer::TakeBackStrays(bool listed) {
  bool moved = false;
  for (const StrayPack& stray : StrayPacks(fs_, home_)) {
    if (!stray.header || (listed && stray.header->store != manifest_.store) ||
        BELAY_MUTANT("repair-leaves-a-pack-astray"))
      continue;
    const PackId id = stray.header->pack;
    const Name to = PackFile::FileName(id);
    const Name from = Name::Literal(stray.name);
    BELAY_TRY(Fd dir, *stray.in == '\0' ? fs_.OpenDir(dir_)
                                        : fs_.Open(home_, Name::Literal(stray.in),
                                                   OpenMode::Directory()));
    bool exchanged = false;
    if (auto stat = fs_.StatAt(packs_dir_, to); stat.ok()) {
      // What has its name is no pack at all, or it stays where it is, and is kept.
      auto there =
          PackFile::Open(fs_, packs_dir_, id, stray.header->store, OpenMode::Read());
      if (there.ok() || there.error().code != Errc::kCorrupt ||
          (stat->type == FileType::kRegular && there.error().sys != 0))
        continue;
      auto bytes = ReadSmallFile(fs_, packs_dir_, to, size_t{16} << 20);
      if (bytes.ok() && BeginsAsPack(*bytes)) continue;
      exchanged = !listed && from == ManifestName() && bytes.ok() &&
                  DecodeManifest(*bytes).ok();
      if (!exchanged) {
        BELAY_TRY(Name aside, MoveAside(fs_, packs_dir_, to));
        Done("packs/" + to.bytes() + " was no pack: moved aside, now " + aside.bytes());
      }
    }
    BELAY_OK(fs_.Rename(dir, from, packs_dir_, to,
                        exchanged ? RenameHow::kExchange : RenameHow::kNoReplace));
    BELAY_OK(fs_.Sync(packs_dir_));
    BELAY_OK(fs_.Sync(dir));
    Done(exchanged
             ? "the manifest and pack " + id.text() +
                   " had changed places: each has its name again"
             : stray.shown() + " was pack " + id.text() + ": it has its name again");
    moved |= !listed && *stray.in == '\0';
  }
  return moved;
}

Status Repairer::CheckListed() {
  for (Manifest::Pack& p : manifest_.packs) {
    auto header = HeaderOf(p.id, manifest_.store);
    if (!header.ok() && header.error().code != Errc::kNotFound &&
        header.error().code != Errc::kCorrupt)
      return std::move(header).error();
    if (!header.ok())
      Done("pack " + p.id.text() + " cannot be put right here: " +
           (header.error().code == Errc::kNotFound ? "it is missing"
                                                   : header.error().what));
    else
      BELAY_OK(EndBehindABatch(p));
  }
  return Ok();
}

Status Repairer::EndBehindABatch(Manifest::Pack& pack) {
  auto stat = fs_.StatAt(packs_dir_, PackFile::FileName(pack.id));
  if (!pack.sealed || !stat.ok() || stat->size <= *pack.sealed) return Ok();
  BELAY_TRY(PackFile file, PackFile::Open(fs_, packs_dir_, pack.id, manifest_.store,
                                          OpenMode::Read()));
  std::optional<BatchHeader> cut;
  BELAY_OK(file.ForEachBatch(
      kPackHeaderSize, stat->size, [&](const BatchHeader& b, bool damaged) -> Status {
        if (damaged || b.offset >= *pack.sealed || b.end() <= *pack.sealed) return Ok();
        BELAY_TRY(const bool whole, file.IsWhole(b));
        if (whole) cut = b;
        return Ok();
      }));
  if (!cut || BELAY_MUTANT("repair-leaves-a-batch-in-two")) return Ok();
  BELAY_OK(fs_.SyncData(file.fd()));  // it is relied on from now on
  pack.sealed = cut->end();
  if (cut->first_seq != 0)
    manifest_.next_seq = std::max(manifest_.next_seq, cut->first_seq + cut->log_count);
  if (!changed_) ++manifest_.generation;
  changed_ = true;
  OnceListed("took in the last batch of pack " + pack.id.text() +
             ", which is whole and was cut in two by its end");
  return Ok();
}

Status Repairer::SealUnreadable() {
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
  OnceListed("closed pack " + open.id.text() +
             ", a part of which cannot be read: the next checkpoint starts another");
  return Ok();
}

Status Repairer::SealCutShort() {
  if (!manifest_.open_pack() || TailOf(manifest_.packs.back().id)) return Ok();
  Manifest::Pack& open = manifest_.packs.back();
  uint64_t due = 0, next_seq = 0;
  bool numbered = false;  // who went furthest knows the next number
  for (const RememberedEnd& end : ends_) {
    if (end.position.pack != open.id || end.position.generation != manifest_.generation)
      continue;
    if (end.position.offset > due) numbered = false;
    numbered |= end.position.offset >= due && end.next_seq != 0;
    due = std::max(due, end.position.offset);
    next_seq = std::max(next_seq, end.next_seq);
  }
  const bool foreign = open.id == foreign_end_;
  if (foreign) due = std::max(due, KnownLength(open.id));
  auto file =
      PackFile::Open(fs_, packs_dir_, open.id, manifest_.store, OpenMode::Read());
  if (due == 0 || !file.ok()) return Ok();
  BELAY_TRY(uint64_t size, file->Size());
  BELAY_TRY(uint64_t end, WholeEnd(*file, size));
  if (end >= due) return Ok();
  open.sealed = due;
  if (!numbered) next_seq = std::max(next_seq, next_seq_) + kMostNumbers;
  manifest_.next_seq = std::max({manifest_.next_seq, next_seq_, next_seq});
  changed_ = true;
  OnceListed("closed pack " + open.id.text() +
             (foreign ? ", which does not have what was stored last: it or the tail is "
                        "of a copy of the store. The next checkpoint starts another"
                      : ", the end of which is gone: the next checkpoint starts "
                        "another"));
  return Ok();
}

Status Repairer::RebuildIndexes() {
  uint64_t rebuilt = 0;
  for (const Manifest::Pack& p : manifest_.packs) {
    auto file =
        PackFile::Open(fs_, packs_dir_, p.id, manifest_.store, OpenMode::Read());
    if (!file.ok()) continue;
    BELAY_OK(ClearTheWayTo(packs_dir_, PackIndex::FileName(p.id)));
    BELAY_TRY([[maybe_unused]] bool kept,
              KeepPack(fs_, packs_dir_, PackIndex::FileName(p.id)));
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
    const auto tail = p.sealed ? std::nullopt : TailOf(p.id);
    BELAY_OK(PackIndex::WriteWhole(fs_, packs_dir_, p.id, entries, covered,
                                   tail ? std::min(tail->flushed, covered) : 0));
    ++rebuilt;
  }
  Done("rebuilt the index of " + CountPacks(rebuilt));
  return Ok();
}

}  // namespace belay
