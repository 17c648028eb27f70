#include "store/codec.h"

#include <zstd.h>

namespace belay {

namespace {
// Level 1: 255 MB/s and 4.9x on source trees; level 3 gains 5 % for 10 % more CPU
// (performance figures in docs/decisions/0005).
constexpr int kLevel = 1;
// A frame builds its tables whatever it holds: 12-15 us an object, for a few hundred
// bytes saved. Trees and states are mostly ids, which do not compress.
constexpr size_t kTooSmall = 1024;
constexpr size_t kSample = size_t{64} << 10;
constexpr size_t kSampleFrom = size_t{256} << 10;
}  // namespace

struct Codec::Impl {
  ZSTD_CCtx* compress = nullptr;
  ZSTD_DCtx* decompress = nullptr;
  ~Impl() {
    ZSTD_freeCCtx(compress);
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

}  // namespace belay
