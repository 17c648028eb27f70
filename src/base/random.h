#pragma once

// Randomness comes in through a Random, so that a test can be repeated by its seed.

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace belay {

class Random {
 public:
  virtual ~Random() = default;
  virtual void Fill(std::span<std::byte> out) = 0;

  uint64_t U64();
  uint64_t Below(uint64_t bound);  // 0 <= result < bound; bound > 0; bias below 2^-32
  Id128 NewId();                   // never zero
};

// getrandom(2). Throws std::system_error where the system refuses it: main() reports
// that, and nothing was written without the numbers.
class RealRandom final : public Random {
 public:
  void Fill(std::span<std::byte> out) override;
};

// splitmix64: the same seed, the same bytes, on every machine.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  void Fill(std::span<std::byte> out) override;

 private:
  uint64_t state_;
};

}  // namespace belay
