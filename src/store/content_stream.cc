#include "store/content_stream.h"

#include <algorithm>

#include "base/mutant.h"

namespace belay {

Result<ContentStream> ContentStream::Open(Store& store, const ObjectId& id) {
  ContentStream out(store, id);
  // Most content is a blob; the cheap look decides which to ask for in earnest.
  const auto chunked = store.Find({ObjectType::kChunks, id});
  if (!chunked.ok()) return chunked.error();
  if (!chunked->has_value()) {
    auto blob = store.Get({ObjectType::kBlob, id});
    if (blob.ok()) {
      out.held_ = std::move(*blob);
      return out;
    }
    if (blob.error().code != Errc::kNotFound) return std::move(blob).error();
  }
  auto encoded = store.Get({ObjectType::kChunks, id});
  if (!encoded.ok()) {
    if (encoded.error().code == Errc::kNotFound)
      return Error(Errc::kNotFound, "content " + id.hex() + " is not in the store");
    return std::move(encoded).error();
  }
  BELAY_TRY(out.list_, DecodeChunks(*encoded));
  if (out.list_.chunks.empty()) {
    if (Sha256().Finish() != id)
      return Error(Errc::kCorrupt, "content " + id.hex() + " does not match its hash");
    out.held_ = Bytes();
  }
  return out;
}

Result<std::optional<Bytes>> ContentStream::Next() {
  while (next_ < list_.chunks.size()) {
    const Chunk& chunk = list_.chunks[next_++];
    BELAY_TRY(Bytes bytes, store_->Get({ObjectType::kBlob, chunk.id}));
    if (bytes.size() != chunk.length)
      return Error(Errc::kCorrupt, "chunk list of " + id_.hex() + " is damaged");
    whole_.Update(bytes);
    const bool last = next_ == list_.chunks.size();
    if (last && whole_.Finish() != id_ && !BELAY_MUTANT("trust-chunk-list"))
      return Error(Errc::kCorrupt, "content " + id_.hex() + " does not match its hash");
    std::optional<Bytes> piece = std::move(held_);
    held_ = std::move(bytes);
    if (piece) return piece;
  }
  std::optional<Bytes> piece = std::move(held_);
  held_.reset();
  return piece;
}

Result<size_t> ContentStream::Read(std::span<std::byte> out) {
  while (at_ == piece_.size()) {
    BELAY_TRY(auto next, Next());
    if (!next) return size_t{0};
    piece_ = std::move(*next);
    at_ = 0;
  }
  const size_t size = std::min(out.size(), piece_.size() - at_);
  std::copy_n(piece_.begin() + static_cast<ptrdiff_t>(at_), size, out.begin());
  at_ += size;
  return size;
}

}  // namespace belay
