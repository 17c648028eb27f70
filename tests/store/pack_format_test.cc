#include "store/pack_format.h"

#include <gtest/gtest.h>

namespace belay::test {
namespace {

template <class T>
T ShortId(uint8_t n) {
  T id;
  for (std::byte& b : id.bytes) b = static_cast<std::byte>(n);
  return id;
}
ObjectId Hash(uint8_t n) {
  ObjectId id;
  for (std::byte& b : id.bytes) b = static_cast<std::byte>(n);
  return id;
}

// Every single-bit change of `encoded` must be refused.
template <class Array, class Accepts>
void ExpectEveryFlipRefused(const Array& encoded, Accepts accepts) {
  ASSERT_TRUE(accepts(ByteSpan(encoded)));
  for (size_t at = 0; at < encoded.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      Array flipped = encoded;
      flipped[at] ^= static_cast<std::byte>(1u << bit);
      EXPECT_FALSE(accepts(ByteSpan(flipped))) << at << " bit " << bit;
    }
  for (size_t length = 0; length < encoded.size(); ++length)
    EXPECT_FALSE(accepts(ByteSpan(encoded).first(length))) << length;
}

TEST(PackHeader, ComesBackAndRefusesEveryFlip) {
  PackHeader h;
  h.flags = 1;
  h.pack = ShortId<PackId>(0x11);
  h.store = ShortId<StoreId>(0x22);
  h.created_ms = 1'800'000'000'000;
  auto encoded = Encode(h);
  EXPECT_EQ(ToHex(ByteSpan(encoded).first(56)),
            "42454c4159504b0a"
            "02000000"
            "01000000"
            "11111111111111111111111111111111"
            "22222222222222222222222222222222"
            "00505c18a3010000");
  auto back = DecodePackHeader(encoded);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->pack, h.pack);
  EXPECT_EQ(back->store, h.store);
  EXPECT_EQ(back->created_ms, h.created_ms);
  EXPECT_EQ(back->flags, 1u);
  ExpectEveryFlipRefused(encoded, [](ByteSpan b) { return DecodePackHeader(b).ok(); });
}

TEST(PackHeader, OfANewerVersionIsUnsupportedNotCorrupt) {
  PackHeader h;
  h.version = 3;
  auto decoded = DecodePackHeader(Encode(h));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, Errc::kUnsupported);
  EXPECT_NE(decoded.error().hint.find("update belay"), std::string::npos);
}

TEST(PackHeader, OfEveryOlderVersionIsRead) {
  PackHeader h;
  h.version = 1;
  auto decoded = DecodePackHeader(Encode(h));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->version, 1u);
}

TEST(RecordHeader, ADeltaSaysHowLongItsChainIsAndNothingElseDoes) {
  auto read = [](CodecId codec, unsigned chain) {
    RecordHeader h;
    h.codec = codec;
    h.chain = static_cast<uint8_t>(chain);
    return DecodeRecordHeader(Encode(h));
  };
  for (unsigned chain = 1; chain <= kMaxDeltaChain; ++chain) {
    ASSERT_TRUE(read(CodecId::kDelta, chain)) << chain;
    EXPECT_EQ(read(CodecId::kDelta, chain)->chain, chain);
    EXPECT_FALSE(read(CodecId::kZstd, chain)) << chain;
    EXPECT_FALSE(read(CodecId::kRaw, chain)) << chain;
  }
  EXPECT_FALSE(read(CodecId::kDelta, 0));
  EXPECT_FALSE(read(CodecId::kDelta, kMaxDeltaChain + 1));
  EXPECT_FALSE(read(CodecId::kDelta, 255));
}

TEST(DeltaBase, ComesBackAndRefusesWhatIsNone) {
  for (uint64_t offset :
       {uint64_t{64}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 40, UINT64_MAX}) {
    Bytes encoded = EncodeDeltaBase(offset);
    EXPECT_LE(encoded.size(), kMaxDeltaBase);
    encoded.push_back(std::byte{0xff});  // the frame
    auto back = DecodeDeltaBase(encoded);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->offset, offset);
    EXPECT_EQ(back->length, encoded.size() - 1);
    EXPECT_FALSE(DecodeDeltaBase(ByteSpan(encoded).first(back->length - 1)));
  }
  EXPECT_FALSE(DecodeDeltaBase({}));
  EXPECT_FALSE(DecodeDeltaBase(EncodeDeltaBase(63)));  // within the pack's header
  const Bytes longer_than_needed = {std::byte{0xc0}, std::byte{0x80}, std::byte{0}};
  EXPECT_FALSE(DecodeDeltaBase(longer_than_needed));
  EXPECT_FALSE(DecodeDeltaBase(Bytes(12, std::byte{0xff})));
}

BatchHeader SomeBatch() {
  BatchHeader b;
  b.flags = BatchHeader::kCopied;
  b.offset = 1000;
  b.pack = ShortId<PackId>(0x11);
  b.body_length = 500;
  b.log_offset = 400;
  b.object_count = 3;
  b.log_count = 2;
  b.first_seq = 17;
  b.written_ms = 5;
  b.body_hash = Hash(0x33);
  b.flushed_mark = 900;
  return b;
}

TEST(BatchHeader, ComesBackAndRefusesEveryFlip) {
  const BatchHeader b = SomeBatch();
  auto encoded = Encode(b);
  auto back = DecodeBatchHeader(encoded, b.pack, b.offset);
  ASSERT_TRUE(back);
  EXPECT_EQ(ToHex(Encode(*back)), ToHex(encoded));
  EXPECT_EQ(back->end(), 1000u + 128 + 500 + 48);
  ExpectEveryFlipRefused(encoded, [&](ByteSpan bytes) {
    return DecodeBatchHeader(bytes, b.pack, b.offset).has_value();
  });
}

TEST(BatchHeader, IsRefusedInAnotherPlace) {
  const BatchHeader b = SomeBatch();
  auto encoded = Encode(b);
  EXPECT_FALSE(DecodeBatchHeader(encoded, b.pack, 1001));
  EXPECT_FALSE(DecodeBatchHeader(encoded, ShortId<PackId>(0x12), 1000));
}

struct BatchRow {
  const char* why;
  std::function<void(BatchHeader&)> change;
};
void PrintTo(const BatchRow& row, std::ostream* out) { *out << row.why; }
class RefusedBatch : public ::testing::TestWithParam<BatchRow> {};
TEST_P(RefusedBatch, IsNone) {
  BatchHeader b = SomeBatch();
  GetParam().change(b);
  EXPECT_FALSE(DecodeBatchHeader(Encode(b), b.pack, b.offset)) << GetParam().why;
}
INSTANTIATE_TEST_SUITE_P(
    BatchHeader, RefusedBatch,
    ::testing::Values(
        BatchRow{"log begins behind the body", [](auto& b) { b.log_offset = 501; }},
        BatchRow{"body beyond all measure",
                 [](auto& b) { b.body_length = (uint64_t{1} << 40) + 1; }},
        BatchRow{"body that overflows", [](auto& b) { b.body_length = UINT64_MAX; }},
        BatchRow{"flushed mark behind itself", [](auto& b) { b.flushed_mark = 1001; }}),
    [](const auto& row) { return "Row" + std::to_string(row.index); });

TEST(BatchTrailer, MatchesItsHeaderOnly) {
  auto header = Encode(SomeBatch());
  auto trailer = MakeTrailer(header, 676);
  ExpectEveryFlipRefused(trailer,
                         [&](ByteSpan t) { return TrailerMatches(t, header, 676); });
  EXPECT_FALSE(TrailerMatches(trailer, header, 677));
  BatchHeader other = SomeBatch();
  ++other.first_seq;
  EXPECT_FALSE(TrailerMatches(trailer, Encode(other), 676));
}

TEST(RecordHeader, ComesBackAndRefusesEveryFlip) {
  RecordHeader h;
  h.type = ObjectType::kTree;
  h.codec = CodecId::kZstd;
  h.stored_length = 10;
  h.raw_length = 20;
  h.id = Hash(0x44);
  auto encoded = Encode(h);
  auto back = DecodeRecordHeader(encoded);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->key(), h.key());
  EXPECT_EQ(back->total_length(), 58u);
  ExpectEveryFlipRefused(encoded,
                         [](ByteSpan b) { return DecodeRecordHeader(b).has_value(); });
}

TEST(RecordHeader, RefusesLengthsThatCannotBe) {
  RecordHeader h;
  h.raw_length = kMaxBlob;
  EXPECT_TRUE(DecodeRecordHeader(Encode(h)));
  h.raw_length = kMaxBlob + 1;
  EXPECT_FALSE(DecodeRecordHeader(Encode(h)));
  h.type = ObjectType::kTree;
  h.raw_length = kMaxObject;
  EXPECT_TRUE(DecodeRecordHeader(Encode(h)));
  h.raw_length = kMaxObject + 1;
  EXPECT_FALSE(DecodeRecordHeader(Encode(h)));
  h.type = static_cast<ObjectType>(99);  // unknown types are kept, within bounds
  h.raw_length = 5;
  EXPECT_TRUE(DecodeRecordHeader(Encode(h)));
}

TEST(Tail, ComesBackAndRefusesEveryFlip) {
  Tail t{ShortId<PackId>(0x11), 12345, 77};
  auto encoded = Encode(t);
  auto back = DecodeTail(encoded);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->pack, t.pack);
  EXPECT_EQ(back->flushed, 12345u);
  EXPECT_EQ(back->next_seq, 77u);
  ExpectEveryFlipRefused(encoded, [](ByteSpan b) { return DecodeTail(b).has_value(); });
  Bytes longer(encoded.begin(), encoded.end());
  longer.push_back(std::byte{});
  EXPECT_FALSE(DecodeTail(longer));
}

// --- manifest ------------------------------------------------------------------------

Manifest SomeManifest() {
  Manifest m;
  m.store = ShortId<StoreId>(0x22);
  m.generation = 3;
  m.next_seq = 99;
  m.packs = {{ShortId<PackId>(0x11), 500},
             {ShortId<PackId>(0x12), 64, true},
             {ShortId<PackId>(0x13), std::nullopt}};
  return m;
}

TEST(Manifest, ReadsAsTheFormatSays) {
  std::string text(AsText(EncodeManifest(SomeManifest())));
  std::string body = "belay store 2\nstore " + ShortId<StoreId>(0x22).text() +
                     "\ngeneration 3\nnext_seq 99\npack " +
                     ShortId<PackId>(0x11).text() + " 500\npack " +
                     ShortId<PackId>(0x12).text() + " 64 cut\npack " +
                     ShortId<PackId>(0x13).text() + " open\n";
  EXPECT_EQ(text, body + "check " + Sha256::Of(AsBytes(body)).hex() + "\n");
}

TEST(Manifest, ComesBackAsItWas) {
  auto back = DecodeManifest(EncodeManifest(SomeManifest()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(EncodeManifest(*back), EncodeManifest(SomeManifest()));
  EXPECT_EQ(back->open_pack()->id, ShortId<PackId>(0x13));
  EXPECT_EQ(back->Find(ShortId<PackId>(0x11))->sealed, 500u);
  EXPECT_FALSE(back->Find(ShortId<PackId>(0x11))->cut);
  EXPECT_TRUE(back->Find(ShortId<PackId>(0x12))->cut);
  EXPECT_EQ(back->Find(ShortId<PackId>(0x99)), nullptr);
  Manifest empty;
  empty.store = ShortId<StoreId>(1);
  EXPECT_TRUE(DecodeManifest(EncodeManifest(empty)).ok());
}

struct ManifestRow {
  const char* why;
  std::function<void(std::string&)> change;  // of the text before the check line
  Errc code = Errc::kCorrupt;
};
void PrintTo(const ManifestRow& row, std::ostream* out) { *out << row.why; }
void Replace(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}
ManifestRow Swap(const char* why, std::string from, std::string to,
                 Errc code = Errc::kCorrupt) {
  return {why, [=](std::string& t) { Replace(t, from, to); }, code};
}

// With a check that matches: refused for what it says.
class RefusedManifest : public ::testing::TestWithParam<ManifestRow> {};
TEST_P(RefusedManifest, IsRefused) {
  std::string text(AsText(EncodeManifest(SomeManifest())));
  text.resize(text.find("check "));
  GetParam().change(text);
  text += "check " + Sha256::Of(AsBytes(text)).hex() + "\n";
  auto decoded = DecodeManifest(AsBytes(text));
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, GetParam().code) << decoded.error().what;
}
const std::string kPack1 = ShortId<PackId>(0x11).text();
const std::string kPack3 = ShortId<PackId>(0x13).text();
INSTANTIATE_TEST_SUITE_P(
    Manifest, RefusedManifest,
    ::testing::Values(
        Swap("another program", "belay", "delay"),
        Swap("no version", "store 2", "store "),
        Swap("version with a zero before it", "store 2", "store 02"),
        Swap("version with a sign", "store 2", "store +2"),
        Swap("version with a space behind it", "store 2\n", "store 2 \n"),
        Swap("newer version", "store 2", "store 3", Errc::kUnsupported),
        Swap("much newer version", "store 2", "store 4000000000", Errc::kUnsupported),
        Swap("version beyond 64 bits", "store 2", "store 99999999999999999999"),
        Swap("an open pack that is cut", "open", "open cut"),
        Swap("cut twice", " cut", " cut cut"), Swap("CR LF", "\n", "\r\n"),
        Swap("no store line", "store " + ShortId<StoreId>(0x22).text() + "\n", ""),
        Swap("store id too short", ShortId<StoreId>(0x22).text(),
             ShortId<StoreId>(0x22).text().substr(1)),
        Swap("store id of other letters", ShortId<StoreId>(0x22).text(),
             std::string(26, 'l')),
        Swap("no generation line", "generation 3\n", ""),
        Swap("generation is no number", "generation 3", "generation x"),
        Swap("generation is empty", "generation 3", "generation "),
        Swap("generation is negative", "generation 3", "generation -3"),
        Swap("generation beyond 64 bits", "generation 3",
             "generation 18446744073709551616"),
        Swap("no next_seq line", "next_seq 99\n", ""),
        Swap("next_seq is no number", "next_seq 99", "next_seq 9 9"),
        Swap("lines in another order", "generation 3\nnext_seq 99",
             "next_seq 99\ngeneration 3"),
        Swap("pack without length", kPack1 + " 500", kPack1),
        Swap("pack with empty length", kPack1 + " 500", kPack1 + " "),
        Swap("pack with negative length", kPack1 + " 500", kPack1 + " -1"),
        Swap("pack with two lengths", kPack1 + " 500", kPack1 + " 500 600"),
        Swap("pack in hexadecimal", kPack1 + " 500", kPack1 + " 0x500"),
        Swap("pack with a bad id", kPack1, "zz" + kPack1.substr(2)),
        Swap("pack in capitals", kPack1 + " 500", "A" + kPack1.substr(1) + " 500"),
        Swap("a pack twice", kPack3, kPack1),
        Swap("an open pack that is not the last", kPack1 + " 500", kPack1 + " open"),
        Swap("OPEN", "open", "OPEN"),
        Swap("an unknown line", "pack " + kPack1, "tack " + kPack1),
        Swap("an empty line", "next_seq 99\n", "next_seq 99\n\n"),
        ManifestRow{"a comment behind", [](std::string& text) { text += "# hello\n"; }},
        ManifestRow{"the last line without its end",
                    [](std::string& text) { text.pop_back(); }}),
    [](const auto& row) { return "Row" + std::to_string(row.index); });

TEST(Manifest, WithoutAMatchingCheckIsRefused) {
  std::string text(AsText(EncodeManifest(SomeManifest())));
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(DecodeManifest(AsBytes(text).first(length)).ok()) << length;
  EXPECT_FALSE(DecodeManifest(AsBytes(text + "\n")).ok());
  EXPECT_FALSE(DecodeManifest(AsBytes(text + text)).ok());
  std::string upper = text;
  for (size_t i = text.find("check ") + 6; i < text.size(); ++i)
    upper[i] = static_cast<char>(std::toupper(upper[i]));
  EXPECT_FALSE(DecodeManifest(AsBytes(upper)).ok());
}

}  // namespace
}  // namespace belay::test
