#pragma once

// FastHash: 64 bits over any bytes at memory speed. For finding accidental change in
// files that can be rebuilt; anybody can forge it, so nothing that must be trusted
// rests on it (that is SHA-256's work, base/sha256.h).

#include <cstdint>

#include "base/bytes.h"

namespace belay {

uint64_t FastHash(ByteSpan bytes, uint64_t key);

// The same over a few numbers, without memory.
class FastMixer {
 public:
  explicit FastMixer(uint64_t key) : state_(key ^ kSeed) {}
  void Add(uint64_t a, uint64_t b) { state_ = Fold(a ^ state_, b ^ kOdd); }
  uint64_t Done() const { return Fold(state_ ^ kOdd, kSeed); }

  static constexpr uint64_t kSeed = 0x9e3779b97f4a7c15, kOdd = 0xd6e8feb86659fd93;
  static uint64_t Fold(uint64_t a, uint64_t b) {
    // The multiplication of a number by zero forgets it: keep both in play.
    unsigned __int128 product = static_cast<unsigned __int128>(a ^ kOdd) * (b | 1);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ b;
  }

 private:
  uint64_t state_;
};

}  // namespace belay
