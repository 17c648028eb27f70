#include "base/bytes.h"

#include <bit>
#include <cstring>

namespace belay {

namespace {
template <class T>
T Load(const std::byte* at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | (static_cast<T>(at[i]) << (8 * i)));
  return value;
}
template <class T>
void Store(std::byte* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    at[i] = static_cast<std::byte>(value >> (8 * i));
}
}  // namespace

uint32_t LoadU32(const std::byte* at) { return Load<uint32_t>(at); }
uint64_t LoadU64(const std::byte* at) { return Load<uint64_t>(at); }
void StoreU32(std::byte* at, uint32_t value) { Store(at, value); }
void StoreU64(std::byte* at, uint64_t value) { Store(at, value); }

void ByteWriter::U8(uint8_t v) { out_.push_back(static_cast<std::byte>(v)); }
void ByteWriter::U16(uint16_t v) {
  out_.resize(out_.size() + 2);
  Store(out_.data() + out_.size() - 2, v);
}
void ByteWriter::U32(uint32_t v) {
  out_.resize(out_.size() + 4);
  Store(out_.data() + out_.size() - 4, v);
}
void ByteWriter::U64(uint64_t v) {
  out_.resize(out_.size() + 8);
  Store(out_.data() + out_.size() - 8, v);
}
void ByteWriter::Varint(uint64_t v) {
  while (v >= 0x80) {
    U8(static_cast<uint8_t>(v | 0x80));
    v >>= 7;
  }
  U8(static_cast<uint8_t>(v));
}
void ByteWriter::Raw(ByteSpan bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}
void ByteWriter::Sized(ByteSpan bytes) {
  Varint(bytes.size());
  Raw(bytes);
}
void ByteWriter::Zeros(size_t count) { out_.resize(out_.size() + count); }

bool ByteReader::Need(size_t count) {
  if (failed_ || count > in_.size() - pos_) {
    failed_ = true;
    return false;
  }
  return true;
}
uint8_t ByteReader::U8() {
  if (!Need(1)) return 0;
  return static_cast<uint8_t>(in_[pos_++]);
}
uint16_t ByteReader::U16() {
  if (!Need(2)) return 0;
  pos_ += 2;
  return Load<uint16_t>(in_.data() + pos_ - 2);
}
uint32_t ByteReader::U32() {
  if (!Need(4)) return 0;
  pos_ += 4;
  return LoadU32(in_.data() + pos_ - 4);
}
uint64_t ByteReader::U64() {
  if (!Need(8)) return 0;
  pos_ += 8;
  return LoadU64(in_.data() + pos_ - 8);
}
uint64_t ByteReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t b = U8();
    if (failed_) return 0;
    if (shift == 63 && b > 1) break;  // over 64 bits
    if (shift > 0 && b == 0) break;   // not the shortest form
    value |= static_cast<uint64_t>(b & 0x7f) << shift;
    if ((b & 0x80) == 0) return value;
  }
  failed_ = true;
  return 0;
}
ByteSpan ByteReader::Raw(size_t count) {
  if (!Need(count)) return {};
  pos_ += count;
  return in_.subspan(pos_ - count, count);
}
ByteSpan ByteReader::Sized() {
  uint64_t count = Varint();
  if (failed_ || count > remaining()) {
    failed_ = true;
    return {};
  }
  return Raw(static_cast<size_t>(count));
}

std::string ToHex(ByteSpan bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += kDigits[static_cast<unsigned>(b) >> 4];
    out += kDigits[static_cast<unsigned>(b) & 15];
  }
  return out;
}

bool FromHex(std::string_view text, std::span<std::byte> out) {
  if (text.size() != out.size() * 2) return false;
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (size_t i = 0; i < out.size(); ++i) {
    int hi = digit(text[2 * i]);
    int lo = digit(text[2 * i + 1]);
    if (hi < 0 || lo < 0) return false;
    out[i] = static_cast<std::byte>(hi * 16 + lo);
  }
  return true;
}

}  // namespace belay
