#include "store/batch_writer.h"

#include <algorithm>

#include "base/mutant.h"
#include "store/chunker.h"

namespace belay {

namespace {
// Shorter than this the record's header is most of what it takes.
constexpr size_t kMinDelta = 128;
}  // namespace

Result<std::unique_ptr<BatchWriter>> Store::Begin() {
  HeldLock use;
  if (!BELAY_MUTANT("write-without-use-lock")) {
    BELAY_TRY(HeldLock gate, locks_.Acquire(StoreLock::kGate, LockMode::kShared));
    BELAY_TRY(use, locks_.Acquire(StoreLock::kUse, LockMode::kShared));
  }
  BELAY_OK(Refresh());
  const Manifest now = manifest();
  if (const Manifest::Pack* open = now.open_pack()) {
    BELAY_TRY(auto tail, LoadTail(open->id));
    if (!tail) BELAY_OK(Appender(*this).Settle());
  }
  return std::unique_ptr<BatchWriter>(new BatchWriter(*this, std::move(use)));
}

BatchWriter::BatchWriter(Store& store, HeldLock use)
    : store_(store), use_(std::move(use)) {}
BatchWriter::~BatchWriter() = default;

Result<bool> BatchWriter::Known(const ObjectKey& key) {
  {
    std::lock_guard guard(mutex_);
    if (mine_.contains(key)) return true;
    if (anew_ && !BELAY_MUTANT("trust-damaged-copy")) return false;
  }
  BELAY_TRY(auto found, store_.Find(key));
  return found && found->record.offset < found->pack->flushed;
}

uint64_t BatchWriter::bytes_so_far() {
  std::lock_guard guard(mutex_);
  return stats_.bytes_stored + pending_.body_length();
}

Result<bool> BatchWriter::HasContent(const ObjectId& id) {
  BELAY_TRY(bool blob, Known({ObjectType::kBlob, id}));
  if (blob) return true;
  return Known({ObjectType::kChunks, id});
}

bool BatchWriter::IsMine(const ObjectId& content) {
  std::lock_guard guard(mutex_);
  return mine_.contains({ObjectType::kBlob, content}) ||
         mine_.contains({ObjectType::kChunks, content});
}

bool BatchWriter::IsAnew() {
  std::lock_guard guard(mutex_);
  return anew_;
}

void BatchWriter::StoreAnew(bool on) {
  std::lock_guard guard(mutex_);
  anew_ = on;
}

bool BatchWriter::EncodeDelta(Codec& codec, ByteSpan raw, const Base& base,
                              Encoded& out) {
  if (raw.size() < kMinDelta || raw.size() > kMaxDelta) return false;
  // Whatever is wrong with the base, there is another way: no error leaves here.
  auto found = store_.Find({out.header.type, base.id});
  if (!found.ok() || !*found) return false;
  const OpenPack& pack = *(*found)->pack;
  const RecordAt& record = (*found)->record;
  if (record.offset >= pack.flushed && !BELAY_MUTANT("delta-unflushed")) return false;
  // The batch will go to the open pack, where its bases must be.
  if (pack.file->id() != store_.open_pack() || pack.file->version() < kFormatVersion)
    return false;
  if (record.header.raw_length > kMaxDelta) return false;
  if (record.header.chain >= kMaxDeltaChain && !BELAY_MUTANT("delta-too-deep"))
    return false;
  // What it would take whole: ids do not compress; content as the last whole one did.
  size_t whole = raw.size();
  PlainRecord read;
  if (!base.bytes) {
    auto plain = pack.file->ReadPlain(record);
    if (!plain.ok()) return false;
    read = std::move(*plain);
    if (raw.size() >= Codec::kTooSmall && read.whole_raw > 0)
      whole = std::min<uint64_t>(
          whole, uint64_t{raw.size()} * read.whole_stored / read.whole_raw);
  }
  Bytes stored = EncodeDeltaBase(record.offset);
  if (whole / 2 <= stored.size() ||
      !codec.EncodeDelta(raw, base.bytes ? *base.bytes : read.bytes,
                         whole / 2 - stored.size(), stored))
    return false;
  out.header.codec = CodecId::kDelta;
  out.header.chain = static_cast<uint8_t>(record.header.chain + 1);
  out.stored = std::move(stored);
  out.base_pack = pack.file->id();
  return true;
}

BatchWriter::Encoded BatchWriter::Encode(const ObjectKey& key, ByteSpan raw,
                                         const Base& base) {
  std::unique_ptr<Codec> codec = store_.TakeCodec();
  Encoded out;
  out.header.type = key.type;
  out.header.id = key.id;
  if (base.id.is_zero() || !EncodeDelta(*codec, raw, base, out))
    out.header.codec = codec->Encode(raw, out.stored);
  out.header.raw_length = static_cast<uint32_t>(raw.size());
  out.header.stored_length = static_cast<uint32_t>(out.stored.size());
  store_.ReturnCodec(std::move(codec));
  return out;
}

Result<ObjectId> BatchWriter::Put(const ObjectKey& key, ByteSpan raw, const Base& base,
                                  Bytes* owned) {
  BELAY_TRY(bool known, Known(key));
  if (known) {
    std::lock_guard guard(mutex_);
    ++stats_.objects_known;
    return key.id;
  }
  const bool whole = IsAnew();  // what it would be a delta of may be what is damaged
  Encoded encoded = Encode(key, raw, whole ? Base() : base);
  // Only a delta may have to be encoded again.
  if (owned != nullptr && encoded.base_pack.is_zero()) *owned = Bytes();
  std::optional<PreparedBatch> full;
  for (bool added = false; !added;) {
    {
      std::lock_guard guard(mutex_);
      if (mine_.contains(key)) {  // another thread was faster
        ++stats_.objects_known;
        return key.id;
      }
      // All bases of a batch lie in one pack.
      added = encoded.base_pack.is_zero() || pending_.base_pack.is_zero() ||
              encoded.base_pack == pending_.base_pack;
      if (added) {
        mine_.insert(key);
        ++stats_.objects_new;
        pending_.AddObject(encoded.header, encoded.stored);
        if (!encoded.base_pack.is_zero()) pending_.base_pack = encoded.base_pack;
        if (pending_.body_length() >= store_.options().batch_target) {
          full = std::move(pending_);
          pending_ = PreparedBatch();
        }
      }
    }
    if (!added) encoded = Encode(key, raw, Base());
  }
  if (full) {
    full->Seal();
    auto done = Appender(store_).Append(*full, false);
    std::lock_guard guard(mutex_);
    if (!done.ok()) {
      if (!BELAY_MUTANT("forget-failed-put")) failed_ = done.error();
      return std::move(done).error();
    }
    stats_.bytes_stored += done->end - done->offset;
    ahead_.push_back(*done);
  }
  return key.id;
}

Result<ObjectId> BatchWriter::PutObject(ObjectType type, ByteSpan encoding,
                                        const ObjectId& base) {
  if (encoding.size() > kMaxObject)
    return Error(Errc::kInvalid, ObjectTypeName(type) + " is too large to be stored");
  return Put({type, Sha256::Of(encoding)}, encoding, {.id = base});
}

Result<ObjectId> BatchWriter::PutTree(const Tree& tree, const Tree& before) {
  BELAY_TRY(Bytes encoding, EncodeTree(tree));
  return PutEncodedTree(std::move(encoding), [&before] {
    auto old = EncodeTree(before);
    return !before.entries.empty() && old.ok() ? std::move(*old) : Bytes();
  });
}

Result<ObjectId> BatchWriter::PutEncodedTree(Bytes encoding,
                                             const std::function<Bytes()>& before) {
  if (encoding.size() > kMaxObject)
    return Error(Errc::kInvalid, "tree is too large to be stored");
  Base base;
  if (encoding.size() >= kMinDelta && encoding.size() <= kMaxDelta) {
    if (Bytes old = before(); !old.empty()) {
      base.id = Sha256::Of(old);
      base.bytes = std::move(old);
    }
  }
  return Put({ObjectType::kTree, Sha256::Of(encoding)}, encoding, base, &encoding);
}

Result<ObjectId> BatchWriter::PutContent(ByteSpan content, const ObjectId& base) {
  if (content.size() <= kMaxBlob) {
    {
      std::lock_guard guard(mutex_);
      stats_.bytes_in += content.size();
    }
    return Put({ObjectType::kBlob, Sha256::Of(content)}, content, {.id = base});
  }
  return PutStream([&content](std::span<std::byte> out) -> Result<size_t> {
    size_t count = std::min(out.size(), content.size());
    std::copy_n(content.begin(), count, out.begin());
    content = content.subspan(count);
    return count;
  });
}

Result<ObjectId> BatchWriter::PutStream(const Source& source) {
  Bytes buffer(kMaxBlob + 1);
  size_t have = 0;
  bool ended = false;
  auto fill = [&]() -> Status {
    while (!ended && have < buffer.size()) {
      BELAY_TRY(size_t got, source(std::span(buffer).subspan(have)));
      BELAY_CHECK(got <= buffer.size() - have);
      ended = got == 0;
      have += got;
    }
    return Ok();
  };
  BELAY_OK(fill());
  if (have <= kMaxBlob) return PutContent(ByteSpan(buffer).first(have));

  Sha256 whole;
  ChunkList list;
  while (have > 0) {
    size_t length = NextChunk(ByteSpan(buffer).first(have));
    ByteSpan chunk = ByteSpan(buffer).first(length);
    whole.Update(chunk);
    BELAY_TRY(ObjectId id, PutContent(chunk));
    list.chunks.push_back({id, static_cast<uint32_t>(length)});
    list.total += length;
    std::copy(buffer.begin() + static_cast<ptrdiff_t>(length),
              buffer.begin() + static_cast<ptrdiff_t>(have), buffer.begin());
    have -= length;
    if (have < kMaxChunk) BELAY_OK(fill());
  }
  Bytes encoded = EncodeChunks(list);
  if (encoded.size() > kMaxObject)
    return Error(Errc::kInvalid, "the content is too long to be stored");
  return Put({ObjectType::kChunks, whole.Finish()}, encoded, Base());
}

Result<BatchWriter::Published> BatchWriter::Commit(
    const std::function<Status()>& still_true) {
  BELAY_CHECK(!committed_);
  committed_ = true;
  if (failed_) return *failed_;
  mine_.clear();  // of no more use, and 25 MB after 500,000 files
  Published published;
  for (const LogRecord& record : records_) pending_.AddLog(record);
  if (pending_.body_length() > 0) {
    pending_.Seal();
    BELAY_TRY(Appended done,
              Appender(store_).Append(pending_, true, ahead_, still_true));
    published.first_seq = done.first_seq;
    published.place = {done.pack, done.offset, done.body_hash};
    stats_.bytes_stored += done.end - done.offset;
  } else if (stats_.bytes_stored > 0) {
    // Everything went ahead: one empty batch carries the flush.
    pending_.Seal();
    BELAY_TRY(Appended done, Appender(store_).Append(pending_, true, ahead_));
    published.place = {done.pack, done.offset, done.body_hash};
    stats_.bytes_stored += done.end - done.offset;
  }
  published.stats = stats_;
  if (!BELAY_MUTANT("writer-keeps-lock")) use_.Release();
  return published;
}

}  // namespace belay
