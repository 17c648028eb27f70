// Result, ids, SHA-256, clock and random: small values everything else is made of.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "base/result.h"
#include "base/sha256.h"

namespace belay {
namespace {

// --- Result --------------------------------------------------------------------------

Result<int> Half(int value) {
  if (value % 2 != 0) return Error(Errc::kInvalid, "odd");
  return value / 2;
}
Result<int> Quarter(int value) {
  BELAY_TRY(int half, Half(value));
  return Half(half);
}
Status CheckEven(int value) {
  BELAY_OK(Half(value));
  return Ok();
}

TEST(Result, TryPassesValuesAndReturnsErrors) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_FALSE(Quarter(6).ok());
  EXPECT_EQ(Quarter(7).error().what, "odd");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(CheckEven(3).error().code, Errc::kInvalid);
}

TEST(Result, ErrnosGetTheCodeThatFits) {
  struct Row {
    int sys;
    Errc code;
  };
  for (Row row : {Row{ENOENT, Errc::kNotFound}, Row{EEXIST, Errc::kExists},
                  Row{ENOSPC, Errc::kNoSpace}, Row{EDQUOT, Errc::kNoSpace},
                  Row{EACCES, Errc::kRefused}, Row{EROFS, Errc::kRefused},
                  Row{ELOOP, Errc::kInvalid}, Row{EAGAIN, Errc::kBusy},
                  Row{ENOSYS, Errc::kUnsupported}, Row{EIO, Errc::kIo}}) {
    Error error = SysError(row.sys, "do it");
    EXPECT_EQ(error.code, row.code) << row.sys;
    EXPECT_EQ(error.sys, row.sys);
  }
  EXPECT_EQ(SysError(ENOENT, "open a").what, "open a: No such file or directory");
}

TEST(Result, ContextAndHintAreAdded) {
  Error error = Context(SysError(EIO, "read"), "pack 1");
  EXPECT_EQ(error.what, "pack 1: read: Input/output error");
  EXPECT_EQ(error.sys, EIO);
  EXPECT_EQ(std::move(error).WithHint("replace the disk").hint, "replace the disk");
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> owned = std::make_unique<int>(3);
  std::unique_ptr<int> taken = std::move(owned).value();
  EXPECT_EQ(*taken, 3);
}

TEST(ResultDeathTest, AWrongAccessAborts) {
  EXPECT_DEATH((void)Half(3).value(), "internal error");
  EXPECT_DEATH((void)Half(2).error(), "internal error");
}

// --- ids -----------------------------------------------------------------------------

TEST(Id128, TextRoundTripsAndStartsWithALetter) {
  SeededRandom random(7);
  for (int i = 0; i < 2000; ++i) {
    Id128 id = random.NewId();
    std::string text = id.text();
    ASSERT_EQ(text.size(), 26u);
    EXPECT_TRUE(text[0] >= 'a' && text[0] <= 'h') << text;
    EXPECT_EQ(text.find_first_of("lo01"), std::string::npos) << text;
    EXPECT_EQ(Id128::FromText(text), id) << text;
  }
  EXPECT_EQ(Id128{}.text(), "aaaaaaaaaaaaaaaaaaaaaaaaaa");
  Id128 ones;
  ones.bytes.fill(std::byte{0xff});
  EXPECT_EQ(ones.text(), "h9999999999999999999999999");
  EXPECT_EQ(Id128::FromText(ones.text()), ones);
}

TEST(Id128, EveryBitIsInTheText) {
  std::set<std::string> texts;
  for (size_t bit = 0; bit < 128; ++bit) {
    Id128 id;
    id.bytes[bit / 8] = static_cast<std::byte>(1u << (bit % 8));
    texts.insert(id.text());
    EXPECT_EQ(Id128::FromText(id.text()), id) << "bit " << bit;
  }
  EXPECT_EQ(texts.size(), 128u);
}

TEST(Id128, FromTextRefuses) {
  std::string good(26, 'a');
  ASSERT_TRUE(Id128::FromText(good));
  EXPECT_FALSE(Id128::FromText(""));
  EXPECT_FALSE(Id128::FromText(good + "a"));
  EXPECT_FALSE(Id128::FromText(good.substr(1)));
  for (char bad : {'l', 'o', '0', '1', 'A', ' ', '-', '\0', '\xff'}) {
    for (size_t at : {0, 1, 25}) {
      std::string text = good;
      text[at] = bad;
      EXPECT_FALSE(Id128::FromText(text)) << at << " " << static_cast<int>(bad);
    }
  }
  for (char bad : {'i', 'z', '9'}) {  // would be a 129th bit
    std::string text = good;
    text[0] = bad;
    EXPECT_FALSE(Id128::FromText(text)) << bad;
  }
}

// --- SHA-256 -------------------------------------------------------------------------

TEST(Sha256, KnownVectors) {
  // FIPS 180-4 examples.
  EXPECT_EQ(Sha256::Of({}).hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256::Of(AsBytes("abc")).hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      Sha256::Of(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))
          .hex(),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256::Of(Bytes(1'000'000, std::byte{'a'})).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameHash) {
  Bytes bytes(1000);
  SeededRandom(1).Fill(bytes);
  Hash256 whole = Sha256::Of(bytes);
  for (size_t piece : {1, 7, 63, 64, 65, 999}) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += piece)
      hash.Update(ByteSpan(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(hash.Finish(), whole) << piece;
  }
}

TEST(Sha256, HexRoundTripsAndIsStrict) {
  Hash256 hash = Sha256::Of(AsBytes("x"));
  EXPECT_EQ(Hash256::FromHexText(hash.hex()), hash);
  EXPECT_FALSE(Hash256::FromHexText(hash.hex().substr(1)));
  EXPECT_FALSE(Hash256::FromHexText(hash.hex() + "00"));
  EXPECT_FALSE(Hash256::FromHexText("g" + hash.hex().substr(1)));
  EXPECT_EQ(Hash256::FromSpan(hash.span()), hash);
  EXPECT_EQ(Check64(AsBytes("x")), LoadU64(hash.bytes.data()));
}

// --- clock and random ----------------------------------------------------------------

TEST(Clock, FormatsUtc) {
  EXPECT_EQ(FormatUtcMillis(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtcMillis(1'700'000'000'123), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(FormatUtcMillis(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatUtcMillis(951'782'400'000), "2000-02-29T00:00:00.000Z");
}

TEST(Clock, TheFakeMovesOnlyWhenTold) {
  FakeClock clock(1000);
  EXPECT_EQ(clock.WallMillis(), 1000);
  clock.SleepNanos(5'000'000);
  EXPECT_EQ(clock.WallMillis(), 1005);
  EXPECT_EQ(clock.SteadyNanos(), 5'000'000);
  clock.SetWallMillis(10);  // the wall may jump back, the steady clock not
  EXPECT_EQ(clock.WallMillis(), 10);
  EXPECT_EQ(clock.SteadyNanos(), 5'000'000);
}

TEST(Clock, TheRealOneDoesNotGoBack) {
  RealClock clock;
  int64_t before = clock.SteadyNanos();
  EXPECT_GE(clock.SteadyNanos(), before);
  EXPECT_GT(clock.WallMillis(), 1'600'000'000'000);
}

TEST(Random, ASeedRepeats) {
  SeededRandom a(42);
  SeededRandom b(42);
  SeededRandom c(43);
  uint64_t first = a.U64();
  EXPECT_EQ(first, b.U64());
  EXPECT_NE(first, c.U64());
  EXPECT_NE(a.NewId(), a.NewId());
}

TEST(Random, BelowStaysBelow) {
  SeededRandom random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    uint64_t value = random.Below(7);
    ASSERT_LT(value, 7u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(Random, TheRealOneFillsEverySize) {
  RealRandom random;
  EXPECT_NE(random.NewId(), random.NewId());
  for (size_t size : {0, 1, 7, 8, 9, 1000}) {
    Bytes bytes(size);
    random.Fill(bytes);
  }
  Bytes large(4096);
  random.Fill(large);
  EXPECT_NE(large, Bytes(4096));
}

}  // namespace
}  // namespace belay
