#pragma once

// SHA-256, and the ids made of it.
//
// The low-level OpenSSL functions are used on purpose: EVP_MD_fetch loads the
// providers, which costs 1.2-2.4 ms once per process against 0.02 ms here, and 345 ns
// against 243 ns per 256-byte message (docs/decisions/0003). They are deprecated in
// OpenSSL 3, not removed; only sha256.cc would change.
//
// Threads: a Sha256 belongs to one thread at a time.

#include <array>
#include <compare>
#include <cstring>
#include <functional>
#include <optional>

#include "base/bytes.h"

namespace belay {

// A 32-byte hash as a value. All zeros means "none" where a format allows absence.
struct Hash256 {
  std::array<std::byte, 32> bytes{};

  bool is_zero() const { return *this == Hash256{}; }
  ByteSpan span() const { return bytes; }
  std::string hex() const { return ToHex(bytes); }
  static std::optional<Hash256> FromHexText(std::string_view text);
  static Hash256 FromSpan(ByteSpan exactly_32);
  auto operator<=>(const Hash256&) const = default;
};

// The id of an immutable object: the hash of its content.
using ObjectId = Hash256;

class Sha256 {
 public:
  Sha256() { Reset(); }
  void Reset();
  void Update(ByteSpan bytes);
  // The hash so far; the object must be Reset() before further use.
  Hash256 Finish();
  static Hash256 Of(ByteSpan bytes);

 private:
  alignas(8) unsigned char state_[112];  // SHA256_CTX, kept out of this header
};

// The first eight bytes of the SHA-256, for small checked records.
uint64_t Check64(ByteSpan bytes);

}  // namespace belay

template <>
struct std::hash<belay::Hash256> {
  size_t operator()(const belay::Hash256& h) const noexcept {
    size_t value = 0;
    std::memcpy(&value, h.bytes.data(), sizeof value);
    return value;
  }
};
