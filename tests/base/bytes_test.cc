#include "base/bytes.h"

#include <gtest/gtest.h>

#include <limits>

namespace belay {
namespace {

Bytes Hex(std::string_view text) {
  Bytes out(text.size() / 2);
  EXPECT_TRUE(FromHex(text, out)) << text;
  return out;
}

TEST(Bytes, FixedFieldsAreLittleEndian) {
  Bytes out;
  ByteWriter writer(out);
  writer.U8(0x01);
  writer.U16(0x0203);
  writer.U32(0x04050607);
  writer.U64(0x08090a0b0c0d0e0f);
  writer.Zeros(2);
  EXPECT_EQ(ToHex(out), "010302070605040f0e0d0c0b0a09080000");
  ByteReader reader(out);
  EXPECT_EQ(reader.U8(), 0x01);
  EXPECT_EQ(reader.U16(), 0x0203);
  EXPECT_EQ(reader.U32(), 0x04050607u);
  EXPECT_EQ(reader.U64(), 0x08090a0b0c0d0e0fu);
  EXPECT_EQ(reader.remaining(), 2u);
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(ToHex(reader.Raw(2)), "0000");
  EXPECT_TRUE(reader.done());
}

TEST(Bytes, VarintsRoundTrip) {
  struct Row {
    uint64_t value;
    const char* hex;
  };
  for (Row row : {Row{0, "00"}, Row{1, "01"}, Row{127, "7f"}, Row{128, "8001"},
                  Row{300, "ac02"}, Row{16383, "ff7f"}, Row{16384, "808001"},
                  Row{std::numeric_limits<uint64_t>::max(), "ffffffffffffffffff01"}}) {
    Bytes out;
    ByteWriter(out).Varint(row.value);
    EXPECT_EQ(ToHex(out), row.hex);
    ByteReader reader(out);
    EXPECT_EQ(reader.Varint(), row.value) << row.hex;
    EXPECT_TRUE(reader.done()) << row.hex;
  }
  for (int bit = 0; bit < 64; ++bit) {
    Bytes out;
    ByteWriter(out).Varint(uint64_t{1} << bit);
    ByteReader reader(out);
    EXPECT_EQ(reader.Varint(), uint64_t{1} << bit) << "bit " << bit;
    EXPECT_TRUE(reader.done()) << "bit " << bit;
  }
}

TEST(Bytes, VarintsThatAreShortLongOrTooLargeAreRefused) {
  for (const char* hex :
       {"", "80", "ffff", "8000", "ff00", "ac8200", "ffffffffffffffffff02",
        "ffffffffffffffffff7f", "80808080808080808000", "ffffffffffffffffffff01"}) {
    Bytes in = Hex(hex);
    ByteReader reader(in);
    EXPECT_EQ(reader.Varint(), 0u) << hex;
    EXPECT_TRUE(reader.failed()) << hex;
  }
}

TEST(Bytes, AfterAFailureEverythingIsZero) {
  Bytes in = Hex("01020304050607080910");
  ByteReader reader(in);
  EXPECT_EQ(reader.Raw(11).size(), 0u);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.U8(), 0);
  EXPECT_EQ(reader.U16(), 0);
  EXPECT_EQ(reader.U32(), 0u);
  EXPECT_EQ(reader.U64(), 0u);
  EXPECT_EQ(reader.Varint(), 0u);
  EXPECT_TRUE(reader.Sized().empty());
  EXPECT_FALSE(reader.done());
}

TEST(Bytes, FieldsAtTheEdgeOfTheSpan) {
  Bytes in = Hex("01020304");
  EXPECT_EQ(ByteReader(in).U32(), 0x04030201u);
  for (size_t size = 0; size < 4; ++size) {
    ByteReader reader(ByteSpan(in).first(size));
    EXPECT_EQ(reader.U32(), 0u) << size;
    EXPECT_TRUE(reader.failed()) << size;
  }
}

TEST(Bytes, SizedFieldsCarryTheirLength) {
  Bytes out;
  ByteWriter writer(out);
  writer.Sized("");
  writer.Sized(std::string(200, 'x'));
  ByteReader reader(out);
  EXPECT_EQ(reader.Sized().size(), 0u);
  EXPECT_EQ(AsText(reader.Sized()), std::string(200, 'x'));
  EXPECT_TRUE(reader.done());
  // A length near 2^64 must not wrap around the bounds check.
  Bytes huge = Hex("ffffffffffffffffff01aabb");
  ByteReader bad(huge);
  EXPECT_TRUE(bad.Sized().empty());
  EXPECT_TRUE(bad.failed());
}

TEST(Bytes, HexIsExact) {
  Bytes two(2);
  EXPECT_TRUE(FromHex("00fF", two));
  EXPECT_EQ(ToHex(two), "00ff");
  for (const char* bad : {"", "00f", "00fff", "00fg", " 0ff", "0x00", "00 f"})
    EXPECT_FALSE(FromHex(bad, two)) << bad;
  EXPECT_TRUE(FromHex("", std::span<std::byte>()));
}

TEST(Bytes, LoadsAndStoresAgree) {
  std::byte raw[8];
  StoreU64(raw, 0x1122334455667788);
  EXPECT_EQ(LoadU64(raw), 0x1122334455667788u);
  EXPECT_EQ(LoadU32(raw), 0x55667788u);
  StoreU32(raw + 4, 0xaabbccdd);
  EXPECT_EQ(LoadU64(raw), 0xaabbccdd55667788u);
}

}  // namespace
}  // namespace belay
