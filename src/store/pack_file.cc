#include "store/pack_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mutant.h"

namespace belay {

namespace {
constexpr size_t kReadAhead = size_t{256} << 10;

// Why the pack could not be opened or its first bytes not be read. What is no file is
// damage to everybody; what may not be opened, or cannot be, to a reader.
Error OpenFailed(Fs& fs, const Fd& packs_dir, const Name& name, Error error,
                 bool reading) {
  if (error.code == Errc::kNotFound || error.sys == EMFILE || error.sys == ENFILE ||
      error.sys == ENOMEM)
    return error;
  auto stat = fs.StatAt(packs_dir, name);
  if (stat.ok() && stat->type != FileType::kRegular)
    return Error(
        Errc::kCorrupt, error.sys,
        name.bytes() + " is " + std::string(FileTypeName(stat->type)) + ", not a pack");
  if (!reading) return error;
  if (error.sys == EACCES || error.sys == EPERM)
    return Error(Errc::kCorrupt, error.sys,
                 name.bytes() + " may not be read: " + std::strerror(error.sys));
  if (IsUnreadable(error))
    return Error(Errc::kCorrupt, error.sys,
                 name.bytes() + " cannot be read: " + std::strerror(error.sys));
  return error;
}
}  // namespace

// A sliding view of a pack: At() answers from memory when it can.
class PackWindow {
 public:
  PackWindow(const PackFile& file, uint64_t end) : file_(file), end_(end) {}

  // Exactly `count` bytes at `offset`; kCorrupt when the file ends before.
  Result<ByteSpan> At(uint64_t offset, size_t count) {
    if (offset > end_ || count > end_ - offset)
      return Error(Errc::kCorrupt, "the pack ends early");
    if (offset < start_ || offset + count > start_ + buffer_.size()) {
      size_t want = static_cast<size_t>(
          std::min<uint64_t>(std::max(count, kReadAhead), end_ - offset));
      buffer_.resize(want);
      start_ = offset;
      auto got = file_.Read(offset, buffer_);
      if (!got.ok()) {
        buffer_.clear();
        return std::move(got).error();
      }
      buffer_.resize(*got);
      if (*got < count) return Error(Errc::kCorrupt, "the pack ends early");
    }
    return ByteSpan(buffer_).subspan(static_cast<size_t>(offset - start_), count);
  }

 private:
  const PackFile& file_;
  uint64_t end_;
  uint64_t start_ = 0;
  Bytes buffer_;
};

Name PackFile::FileName(const PackId& id) { return Name::Literal(id.text() + ".pack"); }

Result<PackHeader> PackFile::ReadHeader(Fs& fs, const Fd& file) {
  std::byte raw[kPackHeaderSize];
  BELAY_TRY(size_t got, ReadFull(fs, file, 0, raw));
  return DecodePackHeader(ByteSpan(raw).first(got));
}

Result<PackFile> PackFile::Open(Fs& fs, const Fd& packs_dir, const PackId& id,
                                const StoreId& store, const OpenMode& mode) {
  const Name name = FileName(id);
  const bool reading = mode.access == OpenMode::Access::kRead;
  auto opened = fs.Open(packs_dir, name, mode);
  if (!opened.ok())
    return OpenFailed(fs, packs_dir, name, std::move(opened).error(), reading);
  PackFile file(fs, std::make_shared<const Fd>(std::move(*opened)), id);
  if (reading || BELAY_MUTANT("write-over-unreadable"))
    file.trouble_ = std::make_unique<Trouble>();
  std::byte raw[kPackHeaderSize];
  auto got = file.Read(0, raw);
  if (!got.ok())
    return OpenFailed(fs, packs_dir, name, std::move(got).error(), reading);
  auto header = DecodePackHeader(ByteSpan(raw).first(*got));
  if (header.ok()) {
    if (header->pack != id || header->store != store)
      return Error(Errc::kCorrupt, name.bytes() + ": belongs to another store or pack");
    file.version_ = header->version;
    return file;
  }
  if (header.error().code == Errc::kCorrupt) {
    file.header_is_damaged_ = true;
    BELAY_TRY(FileStat stat, fs.Stat(file.fd()));
    if (stat.type != FileType::kRegular)  // devices can be read
      return OpenFailed(fs, packs_dir, name, std::move(header).error(), reading);
    BELAY_TRY(auto batch, file.NextBatchAfter(kPackHeaderSize - 1, stat.size));
    if (batch) return file;
  }
  if (file.has_unreadable())
    return Error(Errc::kCorrupt, file.unreadable().front().sys,
                 name.bytes() + " cannot be read: " +
                     std::strerror(file.unreadable().front().sys));
  return Context(std::move(header).error(), name.bytes());
}

PackFile PackFile::ForReading() const {
  PackFile file(*fs_, fd_, id_);
  file.header_is_damaged_ = header_is_damaged_;
  file.version_ = version_;
  file.codecs_ = codecs_;
  file.trouble_ = std::make_unique<Trouble>();
  return file;
}

Result<uint64_t> PackFile::Size() const {
  BELAY_TRY(FileStat stat, fs_->Stat(*fd_));
  return stat.size;
}

Result<size_t> PackFile::Read(uint64_t offset, std::span<std::byte> out,
                              int* bad) const {
  auto got = ReadFull(*fs_, *fd_, offset, out);
  if (got.ok() || !trouble_ || !IsUnreadable(got.error())) return got;
  return ReadInPieces(offset, out, bad);
}

// Only after a failure: piece by piece, so that no more is given up than must be.
Result<size_t> PackFile::ReadInPieces(uint64_t offset, std::span<std::byte> out,
                                      int* bad) const {
  BELAY_TRY(uint64_t size, Size());
  if (offset >= size) return size_t{0};
  out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size - offset)));
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = offset + done;
    const uint64_t piece = at - at % kPiece;
    const size_t want =
        static_cast<size_t>(std::min<uint64_t>(piece + kPiece - at, out.size() - done));
    auto got = ReadFull(*fs_, *fd_, at, out.subspan(done, want));
    if (got.ok()) {
      done += *got;
      if (*got < want) return done;  // cut short meanwhile
      continue;
    }
    if (!IsUnreadable(got.error())) return got;
    std::ranges::fill(out.subspan(done, want), std::byte{});
    if (bad && *bad == 0) *bad = got.error().sys;
    {
      std::lock_guard guard(trouble_->mutex);
      trouble_->pieces.emplace(piece, got.error().sys);
    }
    done += want;
  }
  return out.size();
}

bool PackFile::has_unreadable() const {
  if (!trouble_) return false;
  std::lock_guard guard(trouble_->mutex);
  return !trouble_->pieces.empty();
}

std::vector<UnreadablePiece> PackFile::unreadable() const {
  std::vector<UnreadablePiece> out;
  if (!trouble_) return out;
  std::lock_guard guard(trouble_->mutex);
  for (const auto& [offset, sys] : trouble_->pieces) {
    if (!out.empty() && out.back().offset + out.back().length == offset &&
        out.back().sys == sys)
      out.back().length += kPiece;
    else
      out.push_back({offset, kPiece, sys});
  }
  return out;
}

Result<std::optional<BatchHeader>> PackFile::BatchAt(uint64_t offset,
                                                     uint64_t limit) const {
  std::optional<BatchHeader> none;
  if (offset > limit || limit - offset < kBatchHeaderSize + kBatchTrailerSize)
    return none;
  std::byte raw[kBatchHeaderSize];
  BELAY_TRY(size_t got, Read(offset, raw));
  auto header = DecodeBatchHeader(ByteSpan(raw).first(got), id_, offset);
  if (!header || header->total_length() > limit - offset) return none;
  return header;
}

Result<bool> PackFile::TrailerIsThere(const BatchHeader& batch) const {
  std::byte raw[kBatchTrailerSize];
  BELAY_TRY(size_t got, Read(batch.end() - kBatchTrailerSize, raw));
  return TrailerMatches(ByteSpan(raw).first(got), Encode(batch), batch.total_length());
}

Result<BatchMark> PackFile::MarkAt(uint64_t end) const {
  if (end < kPackHeaderSize + kBatchTrailerSize) return BatchMark();
  std::byte raw[kBatchTrailerSize];
  BELAY_TRY(size_t got, Read(end - kBatchTrailerSize, raw));
  const auto says = ReadTrailer(ByteSpan(raw).first(got));
  return says ? says->mark : BatchMark();
}

Result<bool> PackFile::MayEndAt(uint64_t end, const BatchMark& mark) const {
  if (end <= kPackHeaderSize || BELAY_MUTANT("a-tail-fits-any-pack")) return true;
  const bool any = mark == BatchMark();
  if (!any) {
    BELAY_TRY(const BatchMark there, MarkAt(end));
    if (there == mark) return true;
  }
  BELAY_TRY(const uint64_t size, Size());
  if (size < end) return true;
  bool other = false;
  BELAY_OK(ForEachBatch(
      kPackHeaderSize, size, [&](const BatchHeader& b, bool damaged) -> Status {
        if (damaged || b.offset >= end || b.end() < end || (b.end() == end && any))
          return Ok();
        BELAY_TRY(const bool whole, IsWhole(b));
        other |= whole;
        return Ok();
      }));
  return !other;
}

Result<bool> PackFile::IsWhole(const BatchHeader& batch) const {
  if (!BELAY_MUTANT("accept-batch-without-trailer")) {
    BELAY_TRY(bool trailer, TrailerIsThere(batch));
    if (!trailer) return false;
  }
  if (BELAY_MUTANT("skip-body-hash")) return true;
  Sha256 hasher;
  Bytes buffer(static_cast<size_t>(std::min<uint64_t>(batch.body_length, 1 << 20)));
  for (uint64_t done = 0; done < batch.body_length;) {
    size_t want = static_cast<size_t>(
        std::min<uint64_t>(buffer.size(), batch.body_length - done));
    int bad = 0;
    BELAY_TRY(size_t got,
              Read(batch.body_offset() + done, std::span(buffer).first(want), &bad));
    if (got != want || bad != 0) return false;
    hasher.Update(ByteSpan(buffer).first(got));
    done += got;
  }
  return hasher.Finish() == batch.body_hash;
}

Result<std::optional<BatchHeader>> PackFile::NextBatchAfter(uint64_t from,
                                                            uint64_t limit) const {
  PackWindow window(*this, limit);
  for (uint64_t at = from + 1; at + kBatchHeaderSize + kBatchTrailerSize <= limit;
       ++at) {
    BELAY_TRY(ByteSpan first, window.At(at, 4));
    if (AsText(first) != "BtCh") continue;
    BELAY_TRY(auto header, BatchAt(at, limit));
    if (header) return header;
  }
  return std::optional<BatchHeader>();
}

Status PackFile::ForEachBatch(
    uint64_t from, uint64_t limit,
    const std::function<Status(const BatchHeader&, bool damaged)>& visit) const {
  uint64_t expected_seq = 0;
  for (uint64_t at = from; at < limit;) {
    BELAY_TRY(auto header, BatchAt(at, limit));
    if (header) {
      BELAY_OK(visit(*header, false));
      if (header->first_seq != 0) expected_seq = header->first_seq + header->log_count;
      at = header->end();
      continue;
    }
    BELAY_TRY(auto clipped, BatchAt(at, UINT64_MAX));
    if (clipped) {
      clipped->body_length =
          limit > clipped->body_offset() ? limit - clipped->body_offset() : 0;
      clipped->log_offset = std::min(clipped->log_offset, clipped->body_length);
      return visit(*clipped, true);
    }
    BELAY_TRY(auto next, NextBatchAfter(at, limit));
    const uint64_t end = next ? next->offset : limit;
    // Without a neighbour behind it nobody knows whether a trailer is there.
    const uint64_t fixed = kBatchHeaderSize + (next ? kBatchTrailerSize : 0);
    BatchHeader made_up;
    made_up.offset = at;
    made_up.pack = id_;
    made_up.body_length = end - at > fixed ? end - at - fixed : 0;
    made_up.first_seq = expected_seq;
    // Batches of objects only carry no number; the one behind them tells.
    while (next && next->first_seq == 0) {
      BELAY_TRY(next, BatchAt(next->end(), limit));
    }
    if (made_up.first_seq == 0 && next) {
      uint64_t logs = 0;
      Status walked =
          ForEachRecord(made_up, Part::kLog, [&](const RecordAt& r) -> Status {
            logs += r.header.type == ObjectType::kLog ? 1 : 0;
            return Ok();
          });
      if (!walked.ok() && walked.error().code != Errc::kCorrupt) return walked;
      if (next->first_seq > logs) made_up.first_seq = next->first_seq - logs;
    }
    BELAY_OK(visit(made_up, true));
    at = end;
  }
  return Ok();
}

namespace {
// The record header at `at` when it is whole and its record ends at or before `end`.
Result<std::optional<RecordHeader>> HeaderIn(PackWindow& window, uint64_t at,
                                             uint64_t end) {
  std::optional<RecordHeader> header;
  if (at > end || end - at < kRecordHeaderSize) return header;
  auto raw = window.At(at, kRecordHeaderSize);
  if (!raw.ok()) {
    if (raw.error().code == Errc::kCorrupt) return header;
    return std::move(raw).error();
  }
  // Most places are told by three bytes, without hashing; a run of zeros too.
  const ByteSpan bytes = *raw;
  if (bytes[0] == std::byte{} || bytes[2] > std::byte{kMaxDeltaChain} ||
      bytes[3] != std::byte{})
    return header;
  header = DecodeRecordHeader(bytes);
  if (header && header->total_length() > end - at) header.reset();
  return header;
}
}  // namespace

// Exactly the records that the batch counts must follow, up to its last byte: bytes
// inside a damaged record that look like another one do not pass for it.
Status PackFile::WalkLog(const BatchHeader& batch, uint64_t from, uint64_t end,
                         const std::function<Status(const RecordAt&)>& visit) const {
  PackWindow window(*this, end);
  uint64_t seen = 0;
  bool damaged = false;
  for (uint64_t at = from; at < end; ++seen) {
    BELAY_TRY(auto header, HeaderIn(window, at, end));
    if (header) {
      BELAY_OK(visit(RecordAt{at, *header}));
      at += header->total_length();
      continue;
    }
    damaged = true;
    const uint64_t left = batch.log_count > seen + 1 ? batch.log_count - seen - 1 : 0;
    uint64_t next = end;
    for (uint64_t start = at + kRecordHeaderSize; left > 0 && start < end; ++start) {
      uint64_t place = start;
      uint64_t found = 0;
      for (; place < end && found < left; ++found) {
        BELAY_TRY(auto candidate, HeaderIn(window, place, end));
        if (!candidate || candidate->type != ObjectType::kLog) break;
        place += candidate->total_length();
      }
      if (place != end || found != left) continue;
      next = start;
      break;
    }
    RecordAt lost;
    lost.offset = at;
    lost.header.type = ObjectType::kLog;
    const uint64_t gap = next - at;
    lost.header.stored_length = lost.header.raw_length = static_cast<uint32_t>(
        gap > kRecordHeaderSize
            ? std::min<uint64_t>(gap - kRecordHeaderSize, kMaxObject)
            : 0);
    BELAY_OK(visit(lost));
    at = next;
  }
  if (damaged)
    return Error(Errc::kCorrupt, "a record header behind " + std::to_string(from) +
                                     " of pack " + id_.text() + " is damaged");
  return Ok();
}

Status PackFile::ForEachRecord(
    const BatchHeader& batch, Part part,
    const std::function<Status(const RecordAt&)>& visit) const {
  const uint64_t body = batch.body_offset();
  const uint64_t end = body + batch.body_length;
  // A header made up for a damaged one: nobody knows where the log begins.
  const bool made_up = batch.object_count == 0 && batch.log_count == 0;
  const uint64_t log = made_up ? end : body + batch.log_offset;
  std::optional<uint64_t> damage;
  if (part != Part::kLog || made_up) {
    PackWindow window(*this, log);
    for (uint64_t at = body; at < log;) {
      BELAY_TRY(auto header, HeaderIn(window, at, log));
      if (!header) {
        if (!damage) damage = at;
        if (part == Part::kLog) break;
        ++at;
        continue;
      }
      RecordAt record{at, *header};
      if (header->codec == CodecId::kDelta) {
        auto first = window.At(at + kRecordHeaderSize,
                               std::min<size_t>(kMaxDeltaBase, header->stored_length));
        if (!first.ok() && first.error().code != Errc::kCorrupt)
          return std::move(first).error();
        if (auto base = first.ok() ? DecodeDeltaBase(*first) : std::nullopt)
          record.base = base->offset;
      }
      // Once the chain is broken only objects are believed: they carry their proof.
      if (!damage || header->type != ObjectType::kLog) BELAY_OK(visit(record));
      at += header->total_length();
    }
  }
  if (part != Part::kObjects && !made_up) BELAY_OK(WalkLog(batch, log, end, visit));
  if (damage)
    return Error(Errc::kCorrupt, "record header at " + std::to_string(*damage) +
                                     " of pack " + id_.text() + " is damaged");
  return Ok();
}

Result<std::vector<RecordAt>> PackFile::ReadableRecords(uint64_t from,
                                                        uint64_t limit) const {
  std::vector<RecordAt> records;
  BELAY_OK(ForEachBatch(from, limit, [&](const BatchHeader& b, bool) -> Status {
    Status walked = ForEachRecord(b, Part::kAll, [&](const RecordAt& r) -> Status {
      records.push_back(r);
      return Ok();
    });
    if (!walked.ok() && walked.error().code != Errc::kCorrupt) return walked;
    return Ok();
  }));
  return records;
}

Result<RecordHeader> PackFile::HeaderAt(uint64_t offset, uint64_t limit) const {
  std::byte raw[kRecordHeaderSize];
  if (offset < kPackHeaderSize || offset > limit || limit - offset < sizeof raw)
    return Error(Errc::kCorrupt, "no record there");
  BELAY_TRY(size_t got, Read(offset, raw));
  auto header = DecodeRecordHeader(ByteSpan(raw).first(got));
  if (!header || header->total_length() > limit - offset)
    return Error(Errc::kCorrupt, "record header at " + std::to_string(offset) +
                                     " of pack " + id_.text() + " is damaged");
  return *header;
}

Result<Bytes> PackFile::ReadStored(const RecordAt& record) const {
  Bytes stored(record.header.stored_length);
  int bad = 0;
  BELAY_TRY(size_t got, Read(record.offset + kRecordHeaderSize, stored, &bad));
  if (bad != 0) return Error(Errc::kCorrupt, bad, std::strerror(bad));
  if (got < stored.size()) return Error(Errc::kCorrupt, "read: the file ends early");
  return stored;
}

Result<RecordHeader> PackFile::ReadAt(uint64_t offset, uint64_t limit,
                                      Bytes& stored) const {
  constexpr size_t kShort = size_t{4} << 10;
  std::byte raw[kShort];
  if (offset < kPackHeaderSize || offset > limit || limit - offset < kRecordHeaderSize)
    return Error(Errc::kCorrupt, "no record there");
  auto room = std::span(raw).first(
      static_cast<size_t>(std::min<uint64_t>(kShort, limit - offset)));
  int bad = 0;
  BELAY_TRY(size_t got, Read(offset, room, &bad));
  auto header = DecodeRecordHeader(ByteSpan(raw).first(got));
  if (!header || header->total_length() > limit - offset)
    return Error(Errc::kCorrupt, "record header at " + std::to_string(offset) +
                                     " of pack " + id_.text() + " is damaged");
  if (header->total_length() > got || bad != 0) {
    BELAY_TRY(stored, ReadStored({offset, *header}));
  } else {
    auto from = ByteSpan(raw).subspan(kRecordHeaderSize, header->stored_length);
    stored.assign(from.begin(), from.end());
  }
  return *header;
}

Result<PlainRecord> PackFile::ReadPlain(const RecordAt& record) const {
  auto plain = [&]() -> Result<PlainRecord> {
    BELAY_TRY(Bytes stored, ReadStored(record));
    return DecodeAt(record.offset, record.header, std::move(stored));
  }();
  if (!plain.ok())
    return Context(std::move(plain).error(),
                   ObjectTypeName(record.header.type) + " " + record.header.id.hex());
  return plain;
}

Result<Bytes> PackFile::ReadRecord(const RecordAt& record) const {
  BELAY_TRY(PlainRecord plain, ReadPlain(record));
  return std::move(plain.bytes);
}

namespace {
bool MayBeDelta(const RecordHeader& header) {
  switch (header.type) {
    case ObjectType::kBlob:
    case ObjectType::kTree:
    case ObjectType::kState:
    case ObjectType::kNode:
      // A delta that saves nothing is not written; this bounds what a chain holds.
      return header.raw_length <= kMaxDelta && header.stored_length < header.raw_length;
    default:
      return false;
  }
}
}  // namespace

Result<PlainRecord> PackFile::DecodeAt(uint64_t offset, const RecordHeader& header,
                                       Bytes stored) const {
  // Down to a whole record. Each step leads to a smaller offset and a smaller count, so
  // that no pack, however it was made, leads in a circle or far.
  struct Link {
    uint32_t raw_length;
    size_t frame_at;
    Bytes stored;
  };
  std::vector<Link> chain;
  RecordHeader whole = header;
  while (whole.codec == CodecId::kDelta) {
    auto base = DecodeDeltaBase(stored);
    if (!MayBeDelta(whole) || !base || base->offset >= offset)
      return Error(Errc::kCorrupt, "a delta that makes no sense");
    chain.push_back({whole.raw_length, base->length, std::move(stored)});
    auto next = ReadAt(base->offset, offset, stored);
    if (!next.ok()) return Context(std::move(next).error(), "what it is made from");
    // Each step is counted down, so that there are few.
    if (next->chain + 1 != whole.chain && !BELAY_MUTANT("delta-endless"))
      return Error(Errc::kCorrupt, "a delta that miscounts those before it");
    whole = *next;
    offset = base->offset;
    if (whole.type != header.type || whole.raw_length > kMaxDelta)
      return Error(Errc::kCorrupt, "a delta of something else");
  }
  PlainRecord plain;
  plain.whole_stored = whole.stored_length;
  plain.whole_raw = whole.raw_length;
  if (whole.codec == CodecId::kRaw && chain.empty()) {
    if (stored.size() != whole.raw_length)
      return Error(Errc::kCorrupt, "stored length does not match");
    plain.bytes = std::move(stored);
  } else {
    std::unique_ptr<Codec> codec = codecs_->Take();
    auto decoded = codec->Decode(whole.codec, stored, whole.raw_length);
    for (auto link = chain.rbegin(); decoded.ok() && link != chain.rend(); ++link)
      decoded = codec->DecodeDelta(ByteSpan(link->stored).subspan(link->frame_at),
                                   *decoded, link->raw_length);
    codecs_->Return(std::move(codec));
    if (!decoded.ok()) return std::move(decoded).error();
    plain.bytes = std::move(*decoded);
  }
  if (header.type == ObjectType::kChunks) {
    auto list = DecodeChunks(plain.bytes);
    if (!list.ok()) return std::move(list).error();
  } else if (!BELAY_MUTANT("trust-unhashed-read") &&
             Sha256::Of(plain.bytes) != header.id) {
    return Error(Errc::kCorrupt, "content does not match its hash");
  }
  return plain;
}

}  // namespace belay
