#include "base/ids.h"

#include "base/result.h"

namespace belay {

namespace {
constexpr std::string_view kAlphabet = "abcdefghijkmnpqrstuvwxyz23456789";
static_assert(kAlphabet.size() == 32);
constexpr size_t kTextLength = 26;  // 3 + 25 * 5 = 128 bits
}  // namespace

std::string Id128::text() const {
  std::string out;
  out.reserve(kTextLength);
  // Bits are taken from the most significant end: 3 first, then fives.
  unsigned buffer = 0;
  unsigned have = 0;
  size_t next = 0;
  auto take = [&](unsigned count) {
    while (have < count) {
      buffer = (buffer << 8) | static_cast<unsigned>(bytes[next++]);
      have += 8;
    }
    have -= count;
    unsigned value = (buffer >> have) & ((1u << count) - 1);
    buffer &= (1u << have) - 1;
    return value;
  };
  out += kAlphabet[take(3)];
  while (out.size() < kTextLength) out += kAlphabet[take(5)];
  return out;
}

std::optional<Id128> Id128::FromText(std::string_view text) {
  if (text.size() != kTextLength) return std::nullopt;
  Id128 id;
  unsigned buffer = 0;
  unsigned have = 0;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t value = kAlphabet.find(text[i]);
    if (value == std::string_view::npos || (i == 0 && value >= 8)) return std::nullopt;
    unsigned bits = i == 0 ? 3 : 5;
    buffer = (buffer << bits) | static_cast<unsigned>(value);
    have += bits;
    if (have >= 8) {
      have -= 8;
      id.bytes[next++] = static_cast<std::byte>(buffer >> have);
      buffer &= (1u << have) - 1;
    }
  }
  return id;
}

Id128 Id128::FromSpan(ByteSpan exactly_16) {
  BELAY_CHECK(exactly_16.size() == 16);
  Id128 id;
  std::memcpy(id.bytes.data(), exactly_16.data(), 16);
  return id;
}

}  // namespace belay
