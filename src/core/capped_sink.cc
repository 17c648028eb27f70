#include "core/capped_sink.h"

namespace belay {

Status CappedSink::Check(uint64_t more) {
  if (!space_) return Ok();
  const uint64_t bytes = needed();
  std::lock_guard guard(mutex_);
  Status fits = space_->Check(bytes + more);
  if (fits.ok() || space_->exact()) return fits;
  // Only guessed so far: look, and leave out what this one has written ahead.
  BELAY_TRY(space_, Space::Of(store_, settings_, /*exact=*/true));
  space_->Forget(bytes);
  return space_->Check(bytes + more);
}

Status CappedSink::Full() { return full_ ? Check() : Ok(); }

Result<ObjectId> CappedSink::Checked(Result<ObjectId> put) {
  if (!put.ok() || full_) return put;
  if (Status fits = Check(); !fits.ok()) {
    if (fits.error().code != Errc::kNoSpace) return std::move(fits).error();
    full_ = true;
  }
  return put;
}

uint64_t CappedSink::Measure(ByteSpan content) {
  std::unique_ptr<Codec> codec = codecs_.Take();
  Bytes out;
  codec->Encode(content, out);
  codecs_.Return(std::move(codec));
  measured_ += out.size();
  return out.size();
}

Result<ObjectId> CappedSink::PutContent(ByteSpan content) {
  if (!full_) return Checked(inner_.PutContent(content));
  BELAY_TRY(const ObjectId id, hash_.PutContent(content));
  BELAY_TRY(const bool known, inner_.HasContent(id));
  if (!known) Measure(content);
  return id;
}

Status CappedSink::MeasureRest(const BatchWriter::Source& source, uint64_t read,
                               uint64_t put) {
  Bytes piece(1 << 20);
  uint64_t raw = 0, stored = 0;
  for (;;) {
    BELAY_TRY(const size_t got, source(piece));
    if (got == 0) break;
    raw += got;
    stored += Measure(ByteSpan(piece).first(got));
  }
  if (raw == 0) return Ok();
  // What was read before and not put yet is taken to be like the rest.
  const double share = static_cast<double>(stored) / static_cast<double>(raw);
  const auto before = static_cast<uint64_t>(static_cast<double>(read) * share);
  if (before > put) measured_ += before - put;
  return Ok();
}

Result<ObjectId> CappedSink::PutStream(const BatchWriter::Source& source) {
  if (full_) {
    BELAY_OK(MeasureRest(source, 0, 0));
    return hash_.PutContent({});
  }
  const uint64_t before = writer_.bytes_so_far();
  uint64_t read = 0;
  auto put = inner_.PutStream([&](std::span<std::byte> out) -> Result<size_t> {
    BELAY_OK(Check());
    BELAY_TRY(const size_t got, source(out));
    read += got;
    return got;
  });
  if (put.ok() || put.error().code != Errc::kNoSpace || Check().ok())
    return Checked(std::move(put));
  full_ = true;
  const uint64_t now = writer_.bytes_so_far();
  BELAY_OK(MeasureRest(source, read, now > before ? now - before : 0));
  return hash_.PutContent({});
}

Result<ObjectId> CappedSink::PutTree(const Tree& tree) {
  return full_ ? hash_.PutTree(tree) : Checked(inner_.PutTree(tree));
}

Result<ObjectId> CappedSink::PutChanged(ByteSpan content, const ObjectId& before) {
  if (!full_) return Checked(inner_.PutChanged(content, before));
  // Perhaps only what differs would be stored: nothing at least.
  return before.is_zero() ? PutContent(content) : hash_.PutContent(content);
}

Result<ObjectId> CappedSink::PutChangedTree(const Tree& tree, const Tree& before) {
  return full_ ? hash_.PutTree(tree) : Checked(inner_.PutChangedTree(tree, before));
}

Result<ObjectId> CappedSink::PutEncodedTree(Bytes encoding,
                                            const std::function<Bytes()>& before) {
  return full_ ? hash_.PutEncodedTree(std::move(encoding), before)
               : Checked(inner_.PutEncodedTree(std::move(encoding), before));
}

}  // namespace belay
