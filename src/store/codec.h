#pragma once

// zstd behind one door. Incompressible bytes are stored as they are; decoding is
// bounded by the length the record states and fails on anything else. A delta is a
// frame that can only be decoded beside the bytes it was made from.
//
// Threads: a Codec belongs to one thread (it keeps zstd's working memory).

#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace belay {

enum class CodecId : uint8_t { kRaw = 0, kZstd = 1, kDelta = 2 };

// Neither an object that is stored as a delta nor what it is made from is longer.
inline constexpr size_t kMaxDelta = size_t{16} << 20;

class Codec {
 public:
  // Shorter than this is stored as it is. A frame builds its tables whatever it holds:
  // 12-15 us an object, for a few hundred bytes saved.
  static constexpr size_t kTooSmall = 1024;

  Codec();
  ~Codec();
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // Appends the stored form of `raw` to `out` and says which it is.
  CodecId Encode(ByteSpan raw, Bytes& out);
  // `raw_length` bytes, or kCorrupt.
  Result<Bytes> Decode(CodecId codec, ByteSpan stored, size_t raw_length);

  // Appends a frame that makes `raw` out of `base`; false, and nothing appended, when
  // it would be longer than `at_most`. Neither may be longer than kMaxDelta.
  bool EncodeDelta(ByteSpan raw, ByteSpan base, size_t at_most, Bytes& out);
  // `raw_length` bytes, or kCorrupt.
  Result<Bytes> DecodeDelta(ByteSpan frame, ByteSpan base, size_t raw_length);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Idle codecs, for whoever needs one next: their working memory is what costs. Any
// thread.
class CodecPool {
 public:
  std::unique_ptr<Codec> Take();
  void Return(std::unique_ptr<Codec> codec);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Codec>> idle_;
};

}  // namespace belay
