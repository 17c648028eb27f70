#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

#include "base/result.h"

namespace belay {

uint64_t Random::U64() {
  std::byte raw[8];
  Fill(raw);
  return LoadU64(raw);
}
uint64_t Random::Below(uint64_t bound) {
  BELAY_CHECK(bound > 0);
  return U64() % bound;
}
Id128 Random::NewId() {
  Id128 id;
  do Fill(id.bytes);
  while (id.is_zero());
  return id;
}

void RealRandom::Fill(std::span<std::byte> out) {
  while (!out.empty()) {
    ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      // Only a sandbox that forbids the call. An id that is not random would be worse
      // than none, and no caller could go on without: whoever catches for the process
      // reports it.
      throw std::system_error(errno, std::generic_category(),
                              "the system gives no random numbers (getrandom)");
    }
    out = out.subspan(static_cast<size_t>(got));
  }
}

void SeededRandom::Fill(std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); i += 8) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    for (size_t j = 0; j < 8 && i + j < out.size(); ++j)
      out[i + j] = static_cast<std::byte>(z >> (8 * j));
  }
}

}  // namespace belay
