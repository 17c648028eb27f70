#include "store/batch_writer.h"

#include "base/mutant.h"
#include "store/chunker.h"

namespace belay {

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

Result<ObjectId> BatchWriter::Put(const ObjectKey& key, ByteSpan raw) {
  BELAY_TRY(bool known, Known(key));
  if (known) {
    std::lock_guard guard(mutex_);
    ++stats_.objects_known;
    return key.id;
  }
  std::unique_ptr<Codec> codec = store_.TakeCodec();
  Bytes stored;
  RecordHeader header;
  header.type = key.type;
  header.id = key.id;
  header.codec = codec->Encode(raw, stored);
  header.raw_length = static_cast<uint32_t>(raw.size());
  header.stored_length = static_cast<uint32_t>(stored.size());
  store_.ReturnCodec(std::move(codec));

  std::optional<PreparedBatch> full;
  {
    std::lock_guard guard(mutex_);
    if (!mine_.insert(key).second) {  // another thread was faster
      ++stats_.objects_known;
      return key.id;
    }
    ++stats_.objects_new;
    pending_.AddObject(header, stored);
    if (pending_.body_length() >= store_.options().batch_target) {
      full = std::move(pending_);
      pending_ = PreparedBatch();
    }
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

Result<ObjectId> BatchWriter::PutObject(ObjectType type, ByteSpan encoding) {
  if (encoding.size() > kMaxObject)
    return Error(Errc::kInvalid, ObjectTypeName(type) + " is too large to be stored");
  return Put({type, Sha256::Of(encoding)}, encoding);
}

Result<ObjectId> BatchWriter::PutTree(const Tree& tree) {
  BELAY_TRY(Bytes encoding, EncodeTree(tree));
  return PutObject(ObjectType::kTree, encoding);
}

Result<ObjectId> BatchWriter::PutContent(ByteSpan content) {
  if (content.size() <= kMaxBlob) {
    {
      std::lock_guard guard(mutex_);
      stats_.bytes_in += content.size();
    }
    return Put({ObjectType::kBlob, Sha256::Of(content)}, content);
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
  return Put({ObjectType::kChunks, whole.Finish()}, encoded);
}

Result<BatchWriter::Published> BatchWriter::Commit() {
  BELAY_CHECK(!committed_);
  committed_ = true;
  if (failed_) return *failed_;
  Published published;
  for (const LogRecord& record : records_) pending_.AddLog(record);
  if (pending_.body_length() > 0) {
    pending_.Seal();
    BELAY_TRY(Appended done, Appender(store_).Append(pending_, true, ahead_));
    published.first_seq = done.first_seq;
    stats_.bytes_stored += done.end - done.offset;
  } else if (stats_.bytes_stored > 0) {
    // Everything went ahead: one empty batch carries the flush.
    pending_.Seal();
    BELAY_TRY(Appended done, Appender(store_).Append(pending_, true, ahead_));
    stats_.bytes_stored += done.end - done.offset;
  }
  published.stats = stats_;
  if (!BELAY_MUTANT("writer-keeps-lock")) use_.Release();
  return published;
}

}  // namespace belay
