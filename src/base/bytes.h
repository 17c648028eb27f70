#pragma once

// Bytes: little-endian and varint encoding, a bounds-checked reader, hex.
//
// ByteReader never reads past its span and never throws: after the first short or
// over-long field failed() is true and every later read returns zero, so a decoder may
// read a whole header and check once. Varints are canonical (shortest form): one value
// has one encoding, which content addressing depends on.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes ToBytes(std::string_view text) {
  ByteSpan s = AsBytes(text);
  return Bytes(s.begin(), s.end());
}

// Little-endian loads and stores on raw memory the caller has bounds-checked.
uint32_t LoadU32(const std::byte* at);
uint64_t LoadU64(const std::byte* at);
void StoreU32(std::byte* at, uint32_t value);
void StoreU64(std::byte* at, uint64_t value);

// Appends to a Bytes that the caller owns.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}
  void U8(uint8_t v);
  void U16(uint16_t v);
  void U32(uint32_t v);
  void U64(uint64_t v);
  void Varint(uint64_t v);
  void Raw(ByteSpan bytes);
  void Raw(std::string_view text) { Raw(AsBytes(text)); }
  void Sized(ByteSpan bytes);  // varint length, then the bytes
  void Sized(std::string_view text) { Sized(AsBytes(text)); }
  void Zeros(size_t count);

 private:
  Bytes& out_;
};

class ByteReader {
 public:
  explicit ByteReader(ByteSpan in) : in_(in) {}
  uint8_t U8();
  uint16_t U16();
  uint32_t U32();
  uint64_t U64();
  uint64_t Varint();
  ByteSpan Raw(size_t count);
  ByteSpan Sized();  // varint length, then that many bytes

  bool failed() const { return failed_; }
  bool at_end() const { return pos_ == in_.size(); }
  // Everything was read, nothing was short.
  bool done() const { return !failed_ && at_end(); }
  size_t pos() const { return pos_; }
  size_t remaining() const { return in_.size() - pos_; }

 private:
  bool Need(size_t count);
  ByteSpan in_;
  size_t pos_ = 0;
  bool failed_ = false;
};

std::string ToHex(ByteSpan bytes);
// Lower or upper case; false when the text is not exactly out.size() bytes of hex.
bool FromHex(std::string_view text, std::span<std::byte> out);

}  // namespace belay
