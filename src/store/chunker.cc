#include "store/chunker.h"

#include <algorithm>
#include <array>

#include "base/sha256.h"

namespace belay {

namespace {
constexpr uint64_t kStrictMask = 0xFFFFE00000000000;  // 19 bits, before the target
constexpr uint64_t kLooseMask = 0xFFFE000000000000;   // 15 bits, after it

using GearTable = std::array<uint64_t, 256>;

// 256 hashes, 60 us, made when the first long file comes by.
const GearTable& Gear() {
  static const GearTable table = [] {
    GearTable t{};
    Bytes seed = ToBytes("belay gear");
    seed.push_back(std::byte{0});
    for (size_t i = 0; i < t.size(); ++i) {
      seed.back() = static_cast<std::byte>(i);
      t[i] = Check64(seed);
    }
    return t;
  }();
  return table;
}
}  // namespace

size_t NextChunk(ByteSpan bytes) {
  if (bytes.size() <= kMinChunk) return bytes.size();
  const GearTable& gear = Gear();
  const size_t target = std::min(kTargetChunk, bytes.size());
  const size_t end = std::min(kMaxChunk, bytes.size());
  uint64_t h = 0;
  size_t i = kMinChunk;
  for (; i < target; ++i) {
    h = (h << 1) + gear[static_cast<size_t>(bytes[i])];
    if ((h & kStrictMask) == 0) return i + 1;
  }
  for (; i < end; ++i) {
    h = (h << 1) + gear[static_cast<size_t>(bytes[i])];
    if ((h & kLooseMask) == 0) return i + 1;
  }
  return end;
}

}  // namespace belay
