#include "store/appender.h"

#include <algorithm>
#include <cstring>

#include "base/mutant.h"
#include "store/catalog.h"
#include "store/store_files.h"
#include "store/stray_pack.h"

namespace belay {

void PreparedBatch::AddRecord(const RecordHeader& header, ByteSpan stored) {
  // A large batch gets its room at once: growing by doubling would hold it twice for a
  // moment, and what is not written to takes no memory.
  constexpr size_t kLarge = size_t{1} << 20, kRoom = size_t{10} << 20;
  const size_t need = bytes.size() + kRecordHeaderSize + stored.size();
  if (need > bytes.capacity() && need > kLarge)
    bytes.reserve(std::max(kRoom, need + kLarge));  // a little more is still to come
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

Result<PackFile> Appender::CreatePack(const PackPlace& place, const StoreId& store_id,
                                      bool by_gc) {
  Fs& fs = place.fs;
  PackHeader header;
  header.pack = PackId(place.random.NewId());
  header.store = store_id;
  header.flags = by_gc ? PackHeader::kCopies : 0;
  header.created_ms = place.clock.WallMillis();
  const Name name = PackFile::FileName(header.pack);
  // Outside of what is cleaned up after: what is there already is not ours to remove.
  BELAY_TRY(
      Fd file,
      fs.Open(place.packs_dir, name,
              OpenMode::CreateNew(BELAY_MUTANT("pack-for-everybody") ? 0644 : 0600)));
  auto create = [&]() -> Status {
    BELAY_OK(WriteFull(fs, file, 0, Encode(header)));
    if (!BELAY_MUTANT("skip-new-pack-flush")) BELAY_OK(fs.Sync(file));
    BELAY_OK(file.Close());
    if (!BELAY_MUTANT("skip-directory-flush")) BELAY_OK(fs.Sync(place.packs_dir));
    return Ok();
  };
  Status created = create();
  if (!created.ok()) {
    (void)fs.Unlink(place.packs_dir, name);
    return std::move(created).error();
  }
  return PackFile::Open(fs, place.packs_dir, header.pack, store_id,
                        OpenMode::ReadWrite());
}

Status Appender::StartPack(End& at) {
  BELAY_TRY(PackFile file, CreatePack(PlaceIn(store_), at.manifest.store, false));
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
  at.file = std::make_shared<const PackFile>(std::move(file));
  return store_.Hold(at.file, true);
}

Status Appender::Seal(End& at, uint64_t length) {
  at.manifest.packs.back().sealed = length;
  at.manifest.next_seq = at.next_seq;
  at.file.reset();
  return store_.WriteManifest(at.manifest);
}

Status Appender::Flush(End& at) {
  Fs& fs = store_.fs();
  Status flushed = fs.SyncData(at.file->fd());
  if (!flushed.ok() && BELAY_MUTANT("retry-flush"))
    flushed = fs.SyncData(at.file->fd());
  if (flushed.ok()) return Ok();
  // The sealed length says it too, and that it was cut on purpose: what the disk has of
  // it after a power cut is no loss.
  (void)fs.Truncate(at.file->fd(), at.flushed);
  at.manifest.packs.back().cut = !BELAY_MUTANT("a-failed-batch-is-missed");
  (void)Seal(at, at.flushed);
  return Context(std::move(flushed).error(), "flushing the store");
}

Status Appender::Settle() {
  BELAY_TRY(HeldLock lock,
            store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
  BELAY_TRY(End at, FindEnd());
  (void)at;
  return Ok();
}

Status Appender::CheckAhead(const End& at, const std::vector<Appended>& ahead) {
  for (const Appended& a : ahead) {
    const Manifest::Pack* listed = at.manifest.Find(a.pack);
    bool there = listed && a.end <= listed->sealed.value_or(at.end);
    if (there) {
      BELAY_TRY(PackFile file, PackFile::Open(store_.fs(), store_.packs_dir(), a.pack,
                                              at.manifest.store, OpenMode::Read()));
      BELAY_TRY(auto header, file.BatchAt(a.offset, a.end));
      there = header && header->body_hash == a.body_hash;
    }
    if (!there && !BELAY_MUTANT("trust-batches-ahead"))
      return Error(Errc::kIo,
                   "what was written ahead is gone: another process could not flush "
                   "the store")
          .WithHint("try again");
  }
  return Ok();
}

Status Appender::WriteTail(const End& at) {
  Fs& fs = store_.fs();
  BELAY_TRY(auto file, store_.TailFile(true));
  if (!file) return Error(Errc::kInvalid, "the tail cannot be written");
  Tail tail{at.manifest.packs.back().id, at.flushed, at.next_seq};
  if (at.file) {
    BELAY_TRY(tail.last, at.file->MarkAt(at.flushed));
  }
  return WriteFull(fs, *file, 0, Encode(tail));
}

bool Appender::IsOwn(const PackId& pack) {
  std::lock_guard guard(store_.mutex_);
  return store_.own_pack_ == pack;
}

Status Appender::CountBeyond(End& at, uint64_t size) {
  BELAY_OK(at.file->ForEachBatch(
      kPackHeaderSize, size, [&at](const BatchHeader& b, bool) -> Status {
        if (b.first_seq != 0)
          at.next_seq = std::max(at.next_seq, b.first_seq + b.log_count);
        return Ok();
      }));
  return Ok();
}

Result<Appender::End> Appender::FindEnd() {
  End at;
  BELAY_TRY(at.manifest, store_.LoadManifest());
  at.next_seq = at.manifest.next_seq;
  const Manifest::Pack* open = at.manifest.open_pack();
  auto any_tail = store_.AnyTail();
  if (any_tail.ok() && !*any_tail) {
    BELAY_TRY(const bool kept, KeepPack(store_.fs(), store_.dir(), TailName()));
    std::shared_ptr<const Fd> let_go;  // closed after the mutex is released
    std::lock_guard guard(store_.mutex_);
    if (kept) let_go.swap(store_.tail_);
  }
  // Whatever pack it is about (the manifest may be an older one): no number twice.
  if (any_tail.ok() && *any_tail && !BELAY_MUTANT("reuse-sequence-numbers"))
    at.next_seq = std::max(at.next_seq, (*any_tail)->next_seq);
  if (!open) return at;

  auto held = store_.HoldFile(open->id, at.manifest.store, true);
  BELAY_TRY(auto tail, std::move(any_tail));
  if (tail && tail->pack != open->id) tail.reset();
  bool foreign = false;
  if (tail) {
    BELAY_TRY(const bool fits, store_.Fits(*tail, at.manifest.store));
    foreign = !fits;
    if (foreign) tail.reset();
  }
  // Without one, who has read the log knows how far it went at least.
  uint64_t due = tail ? tail->flushed : 0;
  bool unnumbered = false;  // nobody knows the number after what must be there
  if (!tail && !IsOwn(open->id)) {
    ExpectRemembered(store_, open->id);
    if (auto known = store_.Expected(open->id)) {
      due = known->position.offset;
      at.next_seq = std::max(at.next_seq, known->next_seq);
      unnumbered = known->next_seq == 0;
    }
  }
  if (!held.ok()) {
    Errc code = held.error().code;
    if (code != Errc::kCorrupt && code != Errc::kNotFound)
      return std::move(held).error();
    // The open pack is gone or its header is damaged. New checkpoints must not depend
    // on it: seal it at what it should have, which verify then reports, and go on.
    // Without its tail nobody knows how many numbers it gave: it may come back.
    if (!tail && !BELAY_MUTANT("numbers-of-a-lost-pack-again"))
      at.next_seq += kMostNumbers;
    BELAY_OK(Seal(at, std::max<uint64_t>(due, kPackHeaderSize)));
    return at;
  }
  at.file = std::move(held->file);
  const uint64_t size = held->size;
  // What it was about is not there: as if the pack were too short for it.
  if (foreign) due = std::max(due, size + 1);
  at.flushed = at.end = tail ? tail->flushed : kPackHeaderSize;

  if (size < std::max(at.flushed, due)) {  // acknowledged bytes are gone: as above
    // A tail may be of a copy of the store that went another way.
    if (!BELAY_MUTANT("the-tail-knows-all-numbers")) BELAY_OK(CountBeyond(at, size));
    if (unnumbered) at.next_seq += kMostNumbers;  // of what is gone
    if (foreign) BELAY_OK(store_.fs().SyncData(at.file->fd()));
    BELAY_OK(Seal(at, std::max(at.flushed, due)));
    return at;
  }
  // A pack whose header is damaged can be read; nothing more is put into it.
  bool damage = at.file->header_is_damaged();
  bool ours = false;
  {
    std::lock_guard guard(store_.mutex_);
    ours =
        store_.own_pack_ == open->id && store_.own_end_ == size && size >= at.flushed;
    if (ours) {
      if (!BELAY_MUTANT("reuse-sequence-numbers"))
        at.next_seq = std::max(at.next_seq, store_.own_next_seq_);
      at.flushed = std::max(at.flushed, store_.own_flushed_);
    }
  }
  if (ours) {
    at.end = size;
  } else if (size > at.end) {
    // `end` follows whole batches. A batch that is not whole may only be cut off when
    // no later one says that it had been flushed.
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
    if (at.end < due) {  // it was whole when it was read
      damage = true;
      at.end = due;
      if (unnumbered) at.next_seq += kMostNumbers;  // of what was there
    }
    if (damage && BELAY_MUTANT("cut-damage-as-torn")) {
      at.end = broken;
      damage = false;
    }
    if (!damage && at.end < size && !BELAY_MUTANT("keep-torn-tail"))
      BELAY_OK(store_.fs().Truncate(at.file->fd(), at.end));
  }
  if (damage) {
    BELAY_OK(store_.fs().SyncData(at.file->fd()));
    BELAY_OK(Seal(at, at.end));
    return at;
  }
  // Whoever started this pack may have been killed between renaming the manifest that
  // names it and flushing that name; a tail is only written after both.
  if (!tail && !ours && !BELAY_MUTANT("trust-manifest-name"))
    BELAY_OK(store_.fs().Sync(store_.dir()));
  if (!ours && at.end > at.flushed && !BELAY_MUTANT("skip-settle")) {
    // Batches of others beyond the mark: of a writer that was killed, or acknowledged
    // when the tail did not reach the disk. Settle them, so that a failed flush of ours
    // has a mark to go back to and never takes them with it. When this flush fails
    // nothing is cut, because nobody knows what was acknowledged.
    BELAY_OK(store_.fs().SyncData(at.file->fd()));
    at.flushed = at.end;
    BELAY_OK(WriteTail(at));
  }
  return at;
}

Result<uint64_t> Appender::WriteBatch(Fs& fs, Clock& clock, const PackFile& file,
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
  header.written_ms = clock.WallMillis();
  header.body_hash = batch.body_hash;
  header.flushed_mark = flushed_mark;
  auto encoded = Encode(header);
  auto trailer = MakeTrailer(encoded, header.total_length());
  std::memcpy(batch.bytes.data(), encoded.data(), encoded.size());
  const size_t without_trailer = batch.bytes.size();
  batch.bytes.insert(batch.bytes.end(), trailer.begin(), trailer.end());
  Status written = WriteFull(fs, file.fd(), offset, batch.bytes);
  batch.bytes.resize(without_trailer);
  BELAY_OK(written);
  return header.end();
}

Status Appender::MakeWhole(const End& at, PreparedBatch& batch) {
  if (batch.base_pack.is_zero() || (at.file && at.file->id() == batch.base_pack) ||
      BELAY_MUTANT("delta-in-another-pack"))
    return Ok();
  // The writer holds `use`: the pack is still there, though it was sealed.
  BELAY_TRY(auto bases, store_.Pack(batch.base_pack));
  BELAY_TRY(uint64_t end, bases->file->Size());
  PreparedBatch whole;
  whole.flags = batch.flags;
  std::unique_ptr<Codec> codec = store_.TakeCodec();
  ByteSpan rest = ByteSpan(batch.bytes).subspan(kBatchHeaderSize);
  for (uint32_t i = 0; i < batch.object_count; ++i) {
    auto header = DecodeRecordHeader(rest);
    BELAY_CHECK(header && header->total_length() <= rest.size());
    ByteSpan given = rest.subspan(kRecordHeaderSize, header->stored_length);
    Bytes stored(given.begin(), given.end());
    rest = rest.subspan(static_cast<size_t>(header->total_length()));
    if (header->codec == CodecId::kDelta) {
      BELAY_TRY(PlainRecord plain,
                bases->file->DecodeAt(end, *header, std::move(stored)));
      stored.clear();
      header->codec = codec->Encode(plain.bytes, stored);
      header->chain = 0;
      header->stored_length = static_cast<uint32_t>(stored.size());
    }
    whole.AddObject(*header, stored);
  }
  store_.ReturnCodec(std::move(codec));
  whole.log_offset = whole.body_length();
  whole.log_count = batch.log_count;
  whole.bytes.insert(whole.bytes.end(), rest.begin(), rest.end());
  whole.Seal();
  batch = std::move(whole);
  return Ok();
}

Result<Appended> Appender::Append(PreparedBatch& batch, bool flush,
                                  const std::vector<Appended>& ahead,
                                  const std::function<Status()>& still_true) {
  Fs& fs = store_.fs();
  BELAY_TRY(HeldLock lock,
            store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
  BELAY_TRY(End at, FindEnd());
  BELAY_OK(CheckAhead(at, ahead));
  if (still_true) BELAY_OK(still_true());
  // Never acknowledged and invisible: the catalogue leaves such numbers out.
  if (at.next_seq > kMaxSeq - batch.log_count)
    return Error(Errc::kCorrupt, "the store's sequence numbers cannot go on from " +
                                     std::to_string(at.next_seq));
  BELAY_OK(MakeWhole(at, batch));
  const uint64_t length = kBatchHeaderSize + batch.body_length() + kBatchTrailerSize;
  const bool full =
      at.end > kPackHeaderSize && at.end + length > store_.options().pack_target;
  const bool old = at.file && at.file->version() < kFormatVersion &&
                   !BELAY_MUTANT("append-to-old-version");
  if (at.file && (full || old)) {
    if (!BELAY_MUTANT("skip-old-pack-flush")) BELAY_OK(Flush(at));
    BELAY_OK(Seal(at, at.end));
    BELAY_OK(MakeWhole(at, batch));
  }
  if (!at.file) BELAY_OK(StartPack(at));

  Appended done;
  done.pack = at.file->id();
  done.offset = at.end;
  done.first_seq = at.next_seq;
  done.body_hash = batch.body_hash;
  auto end =
      WriteBatch(fs, store_.clock(), *at.file, at.end, batch, at.next_seq, at.flushed);
  if (!end.ok()) {
    // Cut back, so that a failed append leaves nothing; if even that fails the next
    // appender does it.
    (void)fs.Truncate(at.file->fd(), at.end);
    return std::move(end).error();
  }
  done.end = *end;
  if (BELAY_MUTANT("tail-before-flush")) {
    End too_early;
    too_early.manifest = at.manifest;
    too_early.flushed = done.end;
    too_early.next_seq = at.next_seq + batch.log_count;
    (void)WriteTail(too_early);
  }
  if (flush && !BELAY_MUTANT("skip-batch-flush")) BELAY_OK(Flush(at));
  at.next_seq += batch.log_count;

  const uint64_t from = at.end;
  at.end = done.end;
  if (flush) at.flushed = at.end;
  {
    std::lock_guard guard(store_.mutex_);
    store_.own_pack_ = done.pack;
    store_.own_end_ = at.end;
    store_.own_flushed_ = at.flushed;
    store_.own_next_seq_ = at.next_seq;
  }
  // From here on nothing can be lost any more; what fails is made up for by a scan.
  // The batch, which may be large, makes room for the index, which may be too.
  std::vector<IndexEntry> entries = std::move(batch.entries);
  batch = PreparedBatch();
  for (IndexEntry& e : entries) e.offset += done.offset + kBatchHeaderSize;
  if (flush || BELAY_MUTANT("dedupe-ahead"))
    store_.Grow(done.pack, entries, from, at.end);
  (void)PackIndex::Write(
      fs, store_.packs_dir(), done.pack, std::move(entries), from, at.end,
      [&](uint64_t first, uint64_t last) { return ObjectsIn(*at.file, first, last); },
      BELAY_MUTANT("the-index-is-flushed-too-early") ? at.end : at.flushed);
  if (flush) (void)WriteTail(at);
  return done;
}

Status Appender::SealOpenPack() {
  BELAY_TRY(End at, FindEnd());
  if (!at.file || at.end == kPackHeaderSize) return Ok();
  BELAY_OK(Flush(at));
  return Seal(at, at.end);
}

}  // namespace belay
