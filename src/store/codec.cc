#include "store/codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>

namespace belay {

namespace {
// Level 1: 255 MB/s and 4.9x on source trees; level 3 gains 5 % for 10 % more CPU
// (performance figures in docs/decisions/0005).
constexpr int kLevel = 1;
constexpr size_t kSample = size_t{64} << 10;
constexpr size_t kSampleFrom = size_t{256} << 10;
// Of a delta: one entry for every four bytes finds what did not change; more are only
// cleared for nothing. Of a base longer than eight bytes an entry zstd would leave the
// beginning out.
constexpr int kMinWindowLog = 10;  // zstd's own
constexpr int kMinHashLog = 8;
constexpr int kMaxHashLog = 21;
static_assert(kMaxDelta <= size_t{8} << kMaxHashLog);
// Longer than any content: the tree of a directory with some ten thousand files. Its
// frame is made piece by piece, so that only what it takes is written to.
constexpr size_t kLong = size_t{4} << 20;
constexpr size_t kPiece = size_t{1} << 20;

// Behind what is in `out`, where there is room for all of it. As of zstd: a length, or
// an error.
size_t CompressLong(ZSTD_CCtx* context, ByteSpan input, Bytes& out) {
  const size_t start = out.size();
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setPledgedSrcSize(context, input.size());
  ZSTD_inBuffer in = {input.data(), input.size(), 0};
  for (size_t done = start;;) {
    out.resize(std::min(done + kPiece, out.capacity()));
    ZSTD_outBuffer piece = {out.data() + done, out.size() - done, 0};
    const size_t left = ZSTD_compressStream2(context, &piece, &in, ZSTD_e_end);
    if (ZSTD_isError(left)) return left;
    done += piece.pos;
    if (left == 0) return done - start;
    if (done == out.capacity()) return static_cast<size_t>(-1);  // no: it has room
  }
}
}  // namespace

struct Codec::Impl {
  ZSTD_CCtx* compress = nullptr;
  ZSTD_CCtx* delta = nullptr;  // of its own: parameters that are set stay set
  ZSTD_DCtx* decompress = nullptr;
  ~Impl() {
    ZSTD_freeCCtx(compress);
    ZSTD_freeCCtx(delta);
    ZSTD_freeDCtx(decompress);
  }
};

Codec::Codec() : impl_(std::make_unique<Impl>()) {}
Codec::~Codec() = default;

CodecId Codec::Encode(ByteSpan raw, Bytes& out) {
  const size_t start = out.size();
  auto keep_raw = [&] {
    out.resize(start);
    out.insert(out.end(), raw.begin(), raw.end());
    return CodecId::kRaw;
  };
  if (raw.size() < kTooSmall) return keep_raw();
  if (!impl_->compress) impl_->compress = ZSTD_createCCtx();
  if (!impl_->compress) return keep_raw();

  // Worth it only when at least 1/32 is saved; a long input is judged by a sample
  // first.
  auto try_compress = [&](ByteSpan input) {
    if (input.size() >= kLong) {
      out.resize(start);
      out.reserve(start + ZSTD_compressBound(input.size()));
      return CompressLong(impl_->compress, input, out);
    }
    out.resize(start + ZSTD_compressBound(input.size()));
    return ZSTD_compressCCtx(impl_->compress, out.data() + start, out.size() - start,
                             input.data(), input.size(), kLevel);
  };
  if (raw.size() >= kSampleFrom) {
    ByteSpan sample = raw.subspan(raw.size() / 2, kSample);
    size_t size = try_compress(sample);
    if (ZSTD_isError(size) || size > kSample - kSample / 32) return keep_raw();
  }
  size_t size = try_compress(raw);
  if (ZSTD_isError(size) || size > raw.size() - raw.size() / 32) return keep_raw();
  out.resize(start + size);
  return CodecId::kZstd;
}

bool Codec::EncodeDelta(ByteSpan raw, ByteSpan base, size_t at_most, Bytes& out) {
  if (!impl_->delta) {
    impl_->delta = ZSTD_createCCtx();
    if (!impl_->delta) return false;
    ZSTD_CCtx_setParameter(impl_->delta, ZSTD_c_compressionLevel, kLevel);
  }
  // The window must reach back to the base's first byte.
  const int window = std::max<int>(
      kMinWindowLog, static_cast<int>(std::bit_width(base.size() + raw.size())));
  ZSTD_CCtx_setParameter(impl_->delta, ZSTD_c_windowLog, window);
  ZSTD_CCtx_setParameter(impl_->delta, ZSTD_c_hashLog,
                         std::clamp(window - 2, kMinHashLog, kMaxHashLog));
  const size_t start = out.size();
  out.resize(start + ZSTD_compressBound(raw.size()));
  size_t size = ZSTD_CCtx_refPrefix(impl_->delta, base.data(), base.size());
  if (!ZSTD_isError(size))
    size = ZSTD_compress2(impl_->delta, out.data() + start, out.size() - start,
                          raw.data(), raw.size());
  const bool good = !ZSTD_isError(size) && size <= at_most;
  out.resize(good ? start + size : start);
  return good;
}

Result<Bytes> Codec::DecodeDelta(ByteSpan frame, ByteSpan base, size_t raw_length) {
  unsigned long long stated = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (stated != raw_length || raw_length > kMaxDelta)
    return Error(Errc::kCorrupt, "compressed length is a lie");
  if (!impl_->decompress) impl_->decompress = ZSTD_createDCtx();
  if (!impl_->decompress) return Error(Errc::kIo, "out of memory for zstd");
  Bytes raw(raw_length);
  // For the next frame only, whether it can be decoded or not. Not usingDict(): that
  // takes a base which looks like a dictionary for one.
  size_t size = ZSTD_DCtx_refPrefix(impl_->decompress, base.data(), base.size());
  if (!ZSTD_isError(size))
    size = ZSTD_decompressDCtx(impl_->decompress, raw.data(), raw.size(), frame.data(),
                               frame.size());
  if (ZSTD_isError(size) || size != raw_length)
    return Error(Errc::kCorrupt, "compressed data is damaged");
  return raw;
}

Result<Bytes> Codec::Decode(CodecId codec, ByteSpan stored, size_t raw_length) {
  if (codec == CodecId::kRaw) {
    if (stored.size() != raw_length)
      return Error(Errc::kCorrupt, "stored length does not match");
    return Bytes(stored.begin(), stored.end());
  }
  if (codec != CodecId::kZstd) return Error(Errc::kCorrupt, "unknown compression");
  // The frame's own idea of its size must agree before anything is allocated.
  unsigned long long stated = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (stated != raw_length) return Error(Errc::kCorrupt, "compressed length is a lie");
  if (!impl_->decompress) impl_->decompress = ZSTD_createDCtx();
  if (!impl_->decompress) return Error(Errc::kIo, "out of memory for zstd");
  Bytes raw(raw_length);
  size_t size = ZSTD_decompressDCtx(impl_->decompress, raw.data(), raw.size(),
                                    stored.data(), stored.size());
  if (ZSTD_isError(size) || size != raw_length)
    return Error(Errc::kCorrupt, "compressed data is damaged");
  return raw;
}

std::unique_ptr<Codec> CodecPool::Take() {
  {
    std::lock_guard guard(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Codec> codec = std::move(idle_.back());
      idle_.pop_back();
      return codec;
    }
  }
  return std::make_unique<Codec>();
}

void CodecPool::Return(std::unique_ptr<Codec> codec) {
  std::lock_guard guard(mutex_);
  idle_.push_back(std::move(codec));
}

}  // namespace belay
