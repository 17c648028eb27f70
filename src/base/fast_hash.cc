#include "base/fast_hash.h"

#include <cstring>

namespace belay {

namespace {
uint64_t Load(const std::byte* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
}  // namespace

uint64_t FastHash(ByteSpan bytes, uint64_t key) {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  // Two lanes: a multiplication is several cycles late, the other lane fills them.
  uint64_t a = key ^ FastMixer::kSeed;
  uint64_t b = ~key ^ FastMixer::kOdd;
  while (left >= 32) {
    a = FastMixer::Fold(Load(at) ^ a, Load(at + 8));
    b = FastMixer::Fold(Load(at + 16) ^ b, Load(at + 24));
    at += 32;
    left -= 32;
  }
  std::byte rest[32] = {};
  if (left != 0) std::memcpy(rest, at, left);
  a = FastMixer::Fold(Load(rest) ^ a, Load(rest + 8));
  b = FastMixer::Fold(Load(rest + 16) ^ b, Load(rest + 24));
  return FastMixer::Fold(a ^ (b << 32 | b >> 32), b + bytes.size());
}

}  // namespace belay
