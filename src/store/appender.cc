#include "store/appender.h"

#include <cstring>

#include "base/mutant.h"

namespace belay {

namespace {
const Name& TailName() {
  static const Name name = Name::Literal("tail");
  return name;
}
}  // namespace

void PreparedBatch::AddRecord(const RecordHeader& header, ByteSpan stored) {
  auto encoded = Encode(header);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  bytes.insert(bytes.end(), stored.begin(), stored.end());
}

void PreparedBatch::AddObject(const RecordHeader& header, ByteSpan stored) {
  BELAY_CHECK(log_count == 0);
  entries.push_back({header.key(), body_length()});
  ++object_count;
  AddRecord(header, stored);
}

void PreparedBatch::AddLog(const LogRecord& record) {
  if (log_count == 0) log_offset = body_length();
  ++log_count;
  Bytes raw = EncodeLogRecord(record);
  RecordHeader header;
  header.type = ObjectType::kLog;
  header.stored_length = header.raw_length = static_cast<uint32_t>(raw.size());
  header.id = Sha256::Of(raw);
  AddRecord(header, raw);
}

void PreparedBatch::Seal() {
  if (log_count == 0) log_offset = body_length();
  body_hash = Sha256::Of(ByteSpan(bytes).subspan(kBatchHeaderSize));
}

Result<PackFile> Appender::CreatePack(Store& store, const StoreId& store_id,
                                      bool by_gc) {
  Fs& fs = store.fs();
  PackHeader header;
  header.pack = PackId(store.random().NewId());
  header.store = store_id;
  header.flags = by_gc ? 1 : 0;
  header.created_ms = store.clock().WallMillis();
  const Name name = PackFile::FileName(header.pack);
  auto create = [&]() -> Status {
    BELAY_TRY(Fd file, fs.Open(store.packs_dir(), name, OpenMode::CreateNew()));
    BELAY_OK(WriteFull(fs, file, 0, Encode(header)));
    if (!BELAY_MUTANT("skip-new-pack-flush")) BELAY_OK(fs.Sync(file));
    BELAY_OK(file.Close());
    if (!BELAY_MUTANT("skip-directory-flush")) BELAY_OK(fs.Sync(store.packs_dir()));
    return Ok();
  };
  Status created = create();
  if (!created.ok()) {
    (void)fs.Unlink(store.packs_dir(), name);
    return std::move(created).error();
  }
  return PackFile::Open(fs, store.packs_dir(), header.pack, store_id,
                        OpenMode::ReadWrite());
}

Status Appender::StartPack(End& at) {
  BELAY_TRY(PackFile file, CreatePack(store_, at.manifest.store, false));
  at.manifest.packs.push_back({file.id(), std::nullopt});
  at.manifest.next_seq = at.next_seq;
  Status listed = store_.WriteManifest(at.manifest);
  if (!listed.ok()) {
    // The rename may have happened before the failure: then the file must stay.
    auto now = store_.LoadManifest();
    if (now.ok() && !now->Find(file.id()))
      (void)store_.fs().Unlink(store_.packs_dir(), PackFile::FileName(file.id()));
    return listed;
  }
  at.flushed = at.end = kPackHeaderSize;
  at.file = std::move(file);
  return Ok();
}

Status Appender::Seal(End& at, uint64_t length) {
  at.manifest.packs.back().sealed = length;
  at.manifest.next_seq = at.next_seq;
  at.file.reset();
  return store_.WriteManifest(at.manifest);
}

Status Appender::WriteTail(const End& at) {
  Fs& fs = store_.fs();
  BELAY_TRY(Fd file, fs.Open(store_.dir(), TailName(), OpenMode::OpenOrCreate()));
  BELAY_OK(WriteFull(
      fs, file, 0, Encode(Tail{at.manifest.packs.back().id, at.flushed, at.next_seq})));
  return file.Close();
}

Result<Appender::End> Appender::FindEnd() {
  End at;
  BELAY_TRY(at.manifest, store_.LoadManifest());
  at.next_seq = at.manifest.next_seq;
  const Manifest::Pack* open = at.manifest.open_pack();
  if (!open) return at;

  auto file = PackFile::Open(store_.fs(), store_.packs_dir(), open->id,
                             at.manifest.store, OpenMode::ReadWrite());
  BELAY_TRY(auto tail, store_.LoadTail(open->id));
  if (tail) at.next_seq = std::max(at.next_seq, tail->next_seq);
  if (!file.ok()) {
    Errc code = file.error().code;
    if (code != Errc::kCorrupt && code != Errc::kNotFound)
      return std::move(file).error();
    // The open pack is gone or its header is damaged. New checkpoints must not depend
    // on it: seal it at what it should have, which verify then reports, and go on.
    uint64_t length = tail ? tail->flushed : kPackHeaderSize;
    BELAY_OK(Seal(at, length));
    return at;
  }
  at.file = std::move(*file);
  BELAY_TRY(uint64_t size, at.file->Size());
  at.flushed = at.end = tail ? tail->flushed : kPackHeaderSize;

  if (size < at.flushed) {  // acknowledged bytes are gone: as above
    BELAY_OK(Seal(at, at.flushed));
    return at;
  }
  bool ours = false;
  {
    std::lock_guard guard(store_.mutex_);
    ours =
        store_.own_pack_ == open->id && store_.own_end_ == size && size >= at.flushed;
    if (ours) at.next_seq = std::max(at.next_seq, store_.own_next_seq_);
  }
  if (ours) {
    at.end = size;
  } else if (size > at.end) {
    // `end` follows whole batches. A batch that is not whole may only be cut off when
    // no later one says that it had been flushed.
    bool damage = false;
    uint64_t broken = size;
    BELAY_OK(at.file->ForEachBatch(
        at.end, size, [&](const BatchHeader& b, bool header_damaged) -> Status {
          bool whole = false;
          if (!header_damaged) {
            BELAY_TRY(whole, at.file->IsWhole(b));
          }
          if (!whole) {
            broken = std::min(broken, b.offset);
            return Ok();
          }
          if (b.offset > broken) {
            if (b.flushed_mark <= broken) return Ok();  // torn, like what is before it
            damage = true;
          }
          at.end = b.end();
          if (b.first_seq != 0)
            at.next_seq = std::max(at.next_seq, b.first_seq + b.log_count);
          return Ok();
        }));
    if (damage && !BELAY_MUTANT("cut-damage-as-torn")) {
      BELAY_OK(store_.fs().SyncData(at.file->fd()));
      BELAY_OK(Seal(at, at.end));
      return at;
    }
    if (damage) at.end = broken;
    if (at.end < size && !BELAY_MUTANT("keep-torn-tail"))
      BELAY_OK(store_.fs().Truncate(at.file->fd(), at.end));
  }
  if (!tail && at.end > at.flushed) {
    // Nobody knows what of this is on disk. Settle it, so that a later failed flush has
    // a mark to go back to.
    BELAY_OK(store_.fs().SyncData(at.file->fd()));
    at.flushed = at.end;
    BELAY_OK(WriteTail(at));
  }
  return at;
}

Result<uint64_t> Appender::WriteBatch(Store& store, const PackFile& file,
                                      uint64_t offset, PreparedBatch& batch,
                                      uint64_t first_seq, uint64_t flushed_mark) {
  BatchHeader header;
  header.flags = batch.flags;
  header.offset = offset;
  header.pack = file.id();
  header.body_length = batch.body_length();
  header.log_offset = batch.log_offset;
  header.object_count = batch.object_count;
  header.log_count = batch.log_count;
  header.first_seq = batch.log_count > 0 ? first_seq : 0;
  header.written_ms = store.clock().WallMillis();
  header.body_hash = batch.body_hash;
  header.flushed_mark = flushed_mark;
  auto encoded = Encode(header);
  auto trailer = MakeTrailer(encoded, header.total_length());
  std::memcpy(batch.bytes.data(), encoded.data(), encoded.size());
  const size_t without_trailer = batch.bytes.size();
  batch.bytes.insert(batch.bytes.end(), trailer.begin(), trailer.end());
  Status written = WriteFull(store.fs(), file.fd(), offset, batch.bytes);
  batch.bytes.resize(without_trailer);
  BELAY_OK(written);
  return header.end();
}

Result<Appended> Appender::Append(PreparedBatch& batch, bool flush) {
  Fs& fs = store_.fs();
  BELAY_TRY(HeldLock lock,
            store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
  BELAY_TRY(End at, FindEnd());
  const uint64_t length = kBatchHeaderSize + batch.body_length() + kBatchTrailerSize;
  if (at.file && at.end > kPackHeaderSize &&
      at.end + length > store_.options().pack_target) {
    if (!BELAY_MUTANT("skip-old-pack-flush")) BELAY_OK(fs.SyncData(at.file->fd()));
    BELAY_OK(Seal(at, at.end));
  }
  if (!at.file) BELAY_OK(StartPack(at));

  Appended done;
  done.pack = at.file->id();
  done.offset = at.end;
  done.first_seq = at.next_seq;
  // Cuts the pack back, so that a failed append leaves nothing; if even that fails the
  // next appender does it.
  auto cut_back = [&](uint64_t to) { (void)fs.Truncate(at.file->fd(), to); };

  auto end = WriteBatch(store_, *at.file, at.end, batch, at.next_seq, at.flushed);
  if (!end.ok()) {
    cut_back(at.end);
    return std::move(end).error();
  }
  done.end = *end;
  at.next_seq += batch.log_count;
  if (flush && !BELAY_MUTANT("skip-batch-flush")) {
    Status flushed = fs.SyncData(at.file->fd());
    if (!flushed.ok() && BELAY_MUTANT("retry-flush"))
      flushed = fs.SyncData(at.file->fd());
    if (!flushed.ok()) {
      cut_back(at.flushed);
      at.next_seq = done.first_seq;
      (void)Seal(at, at.flushed);
      return Context(std::move(flushed).error(), "flushing the store");
    }
  }

  const uint64_t from = at.end;
  at.end = done.end;
  if (flush) at.flushed = at.end;
  {
    std::lock_guard guard(store_.mutex_);
    store_.own_pack_ = done.pack;
    store_.own_end_ = at.end;
    store_.own_next_seq_ = at.next_seq;
  }
  // From here on nothing can be lost any more; what fails is made up for by a scan.
  std::vector<IndexEntry> entries = batch.entries;
  for (IndexEntry& e : entries) e.offset += done.offset + kBatchHeaderSize;
  (void)PackIndex::Write(fs, store_.packs_dir(), done.pack, entries, from, at.end,
                         [&] { return ObjectsIn(*at.file, kPackHeaderSize, at.end); });
  if (flush) (void)WriteTail(at);
  return done;
}

Status Appender::SealOpenPack() {
  BELAY_TRY(End at, FindEnd());
  if (!at.file || at.end == kPackHeaderSize) return Ok();
  BELAY_OK(store_.fs().SyncData(at.file->fd()));
  return Seal(at, at.end);
}

}  // namespace belay
