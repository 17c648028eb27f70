// Content of any shape comes apart and together again, within the bounds of the format.

#include "base/result.h"
#include "store/chunker.h"
#include "store/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  if (size < 4) return 0;
  // The input is a short program: runs and repeats make megabytes out of few bytes.
  Bytes content;
  for (size_t i = 0; i + 2 < size && content.size() < (size_t{5} << 18); i += 3) {
    size_t count = (size_t{data[i]} << (data[i + 1] % 13)) + 1;
    if (data[i + 1] & 0x80 && !content.empty()) {
      size_t from = content.size() - std::min(content.size(), count);
      for (size_t j = 0; j < count; ++j) content.push_back(content[from + j]);
    } else {
      for (size_t j = 0; j < count; ++j)
        content.push_back(
            static_cast<std::byte>(data[i + 2] + j * (data[i + 1] & 0x0f)));
    }
  }
  ByteSpan rest = content;
  while (!rest.empty()) {
    size_t length = NextChunk(rest);
    BELAY_CHECK(length > 0 && length <= rest.size() && length <= kMaxChunk);
    BELAY_CHECK(length >= kMinChunk || length == rest.size());
    // A cut does not depend on what follows the longest chunk.
    BELAY_CHECK(NextChunk(rest.first(std::min(rest.size(), kMaxChunk))) == length);
    rest = rest.subspan(length);
  }
  Codec codec;
  ByteSpan raw = ByteSpan(content).first(std::min<size_t>(content.size(), 1 << 20));
  Bytes stored;
  CodecId id = codec.Encode(raw, stored);
  auto back = codec.Decode(id, stored, raw.size());
  BELAY_CHECK(back.ok() &&
              std::equal(back->begin(), back->end(), raw.begin(), raw.end()));
  // Foreign bytes as a frame: refused or exactly as long as stated.
  ByteSpan foreign(reinterpret_cast<const std::byte*>(data), size);
  auto decoded = codec.Decode(CodecId::kZstd, foreign, data[0] * size_t{64});
  if (decoded.ok()) BELAY_CHECK(decoded->size() == data[0] * size_t{64});
  return 0;
}
