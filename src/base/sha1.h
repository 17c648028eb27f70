#pragma once

// SHA-1, for git alone: checking files that it wrote, and naming blobs to it in
// patches. Nothing of ours is named or protected by it.
//
// Low-level OpenSSL functions for the reason given in base/sha256.h.
// Threads: a Sha1 belongs to one thread at a time.

#include <array>

#include "base/bytes.h"

namespace belay {

class Sha1 {
 public:
  Sha1() { Reset(); }
  void Reset();
  void Update(ByteSpan bytes);
  // The hash so far; the object must be Reset() before further use.
  std::array<std::byte, 20> Finish();

 private:
  alignas(8) unsigned char state_[96];  // SHA_CTX, kept out of this header
};

}  // namespace belay
