#pragma once

// zstd behind one door. Incompressible bytes are stored as they are; decoding is
// bounded by the length the record states and fails on anything else.
//
// Threads: a Codec belongs to one thread (it keeps zstd's working memory).

#include <memory>

#include "base/bytes.h"
#include "base/result.h"

namespace belay {

enum class CodecId : uint8_t { kRaw = 0, kZstd = 1 };

class Codec {
 public:
  Codec();
  ~Codec();
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // Appends the stored form of `raw` to `out` and says which it is.
  CodecId Encode(ByteSpan raw, Bytes& out);
  // `raw_length` bytes, or kCorrupt.
  Result<Bytes> Decode(CodecId codec, ByteSpan stored, size_t raw_length);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belay
