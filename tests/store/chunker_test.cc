#include "store/chunker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "base/real_fs.h"
#include "base/sha256.h"
#include "support/store_fixture.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

std::vector<size_t> Cut(std::string_view content) {
  std::vector<size_t> lengths;
  ByteSpan rest = AsBytes(content);
  while (!rest.empty()) {
    size_t length = NextChunk(rest);
    if (length == 0 || length > rest.size()) {
      ADD_FAILURE() << "a chunk of " << length << " of " << rest.size();
      break;
    }
    lengths.push_back(length);
    rest = rest.subspan(length);
  }
  return lengths;
}

// The lengths as 8-byte little-endian integers, hashed.
std::string HashOf(const std::vector<size_t>& lengths) {
  Bytes all;
  ByteWriter w(all);
  for (size_t l : lengths) w.U64(l);
  return Sha256::Of(all).hex();
}

// splitmix64, written out here: the vectors must not change with a helper.
std::string Seeded(uint64_t seed, size_t length) {
  std::string out;
  out.reserve(length + 8);
  while (out.size() < length) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(z >> (8 * i));
  }
  out.resize(length);
  return out;
}

std::string Lines(size_t length) {
  std::string out;
  for (uint64_t n = 0; out.size() < length; ++n)
    out += "line " + std::to_string(n) + " of " + std::to_string(n * n % 9973) + "\n";
  out.resize(length);
  return out;
}

struct Golden {
  const char* what;
  std::string content;
  size_t count;
  std::vector<size_t> first;  // lengths of the first chunks
  const char* hash;
};

// Another chunker must give exactly these (docs/format.md, "chunks").
TEST(Chunker, CutsWhereTheGoldenVectorsSay) {
  const Golden rows[] = {
      {"noise, seed 1, 4 MiB",
       Seeded(1, 4 << 20),
       29,
       {143704, 131684, 132612, 184244, 138936, 133547},
       "a054b6ff7afde0b9b5e5b76fd988ae7bc27ac6268cf0ffd2c5e55979fa899f82"},
      {"noise, seed 2, 5000000 bytes",
       Seeded(2, 5'000'000),
       32,
       {136585, 142442, 47020, 163065, 145413, 136212},
       "826abfb428f4bcf34b1d4d6f63f5324e778972114bc37a6155bf745ff9fd678f"},
      {"numbered lines, 3 MiB",
       Lines(3 << 20),
       22,
       {82451, 132223, 74690, 117272, 156815, 133858},
       "adfa48478c5f7d97e1f0e66b51ffa075608662d9fee77a221df26868e3f621be"},
      {"zeros, 2 MiB and a byte",
       std::string((2 << 20) + 1, '\0'),
       5,
       {524288, 524288, 524288, 524288, 1},
       "4c462414911e24e61f43031db3cc9f50d026c0fdfa096f8a99a518031b26d5c9"},
      {"one byte over a blob",
       Seeded(3, (1 << 20) + 1),
       7,
       {62432, 132617, 158299, 208925, 176331, 159307},
       "ea3cba334d67eb51407b1f803a48a5dc03b840ba75666b115619d19b89b73e5a"},
      {"shorter than the minimum",
       Seeded(4, 1000),
       1,
       {1000},
       "921ac7f259f864606624eb7fc29124712ff65b425e9500a35dd32b71ddb9332c"},
  };
  for (const Golden& row : rows) {
    std::vector<size_t> lengths = Cut(row.content);
    EXPECT_EQ(lengths.size(), row.count) << row.what;
    std::vector<size_t> first(
        lengths.begin(),
        lengths.begin() + static_cast<ptrdiff_t>(std::min<size_t>(6, lengths.size())));
    EXPECT_EQ(first, row.first) << row.what;
    EXPECT_EQ(HashOf(lengths), row.hash) << row.what;
  }
}

// The rule as docs/format.md tells it, byte by byte, without any of our code.
std::vector<size_t> CutByTheBook(std::string_view content) {
  uint64_t gear[256];
  for (int i = 0; i < 256; ++i) {
    std::string seed = "belay gear" + std::string(1, static_cast<char>(i));
    Hash256 hash = Sha256::Of(AsBytes(seed));
    gear[i] = 0;
    for (size_t b = 0; b < 8; ++b)
      gear[i] |= static_cast<uint64_t>(hash.bytes[b]) << (8 * b);
  }
  std::vector<size_t> lengths;
  for (size_t start = 0; start < content.size();) {
    uint64_t h = 0;
    size_t length = 0;
    for (size_t i = start; i < content.size(); ++i) {
      ++length;
      if (length <= 32 * 1024) continue;
      h = (h << 1) + gear[static_cast<unsigned char>(content[i])];
      if (length <= 128 * 1024 && (h & 0xFFFFE00000000000) == 0) break;
      if (length > 128 * 1024 && (h & 0xFFFE000000000000) == 0) break;
      if (length == 512 * 1024) break;
    }
    lengths.push_back(length);
    start += length;
  }
  return lengths;
}

TEST(Chunker, FollowsTheBook) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    std::string noise = Seeded(seed, (3 << 20) + 12345);
    EXPECT_EQ(Cut(noise), CutByTheBook(noise)) << seed;
  }
  std::string text = Lines(3 << 20);
  EXPECT_EQ(Cut(text), CutByTheBook(text));
}

TEST(Chunker, KeepsItsBounds) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::string content = Seeded(seed, 8 << 20);
    std::vector<size_t> lengths = Cut(content);
    for (size_t i = 0; i + 1 < lengths.size(); ++i) {
      EXPECT_GE(lengths[i], kMinChunk);
      EXPECT_LE(lengths[i], kMaxChunk);
    }
    EXPECT_LE(lengths.back(), kMaxChunk);
    double mean =
        static_cast<double>(content.size()) / static_cast<double>(lengths.size());
    EXPECT_GT(mean, 96.0 * 1024);
    EXPECT_LT(mean, 256.0 * 1024);
  }
}

TEST(Chunker, AnEditChangesOnlyChunksAroundIt) {
  const std::string before = Seeded(11, 8 << 20);
  auto ids = [](std::string_view content) {
    std::multiset<std::string> all;
    size_t at = 0;
    for (size_t length : Cut(content)) {
      all.insert(Sha256::Of(AsBytes(content.substr(at, length))).hex());
      at += length;
    }
    return all;
  };
  const auto old = ids(before);
  struct Edit {
    const char* what;
    std::function<void(std::string&)> apply;
  };
  const Edit edits[] = {
      {"a byte changed", [](auto& s) { s[4 << 20] ^= 1; }},
      {"a byte put in", [](auto& s) { s.insert(4 << 20, 1, 'x'); }},
      {"a byte taken out", [](auto& s) { s.erase(4 << 20, 1); }},
      {"10 KiB put in", [](auto& s) { s.insert(3 << 20, Seeded(5, 10240)); }},
      {"in front", [](auto& s) { s.insert(0, "x"); }},
      {"at the end", [](auto& s) { s += "x"; }},
  };
  for (const Edit& edit : edits) {
    std::string after = before;
    edit.apply(after);
    size_t fresh = 0;
    for (const std::string& id : ids(after)) fresh += old.contains(id) ? 0 : 1;
    EXPECT_GE(fresh, 1u) << edit.what;
    EXPECT_LE(fresh, 5u) << edit.what;
  }
}

TEST(Chunker, TakesShortInputWhole) {
  EXPECT_EQ(NextChunk({}), 0u);
  EXPECT_EQ(NextChunk(AsBytes("x")), 1u);
  std::string minimum(kMinChunk, 'x');
  EXPECT_EQ(NextChunk(AsBytes(minimum)), kMinChunk);
}

// 96 MiB that do not compress through a store and back, in a process of its own; true
// when the same bytes came back.
bool StreamThroughAStore(const AbsPath& dir) {
  constexpr uint64_t kTotal = uint64_t{96} << 20;
  RealFs fs;
  RealClock clock;
  RealRandom random;
  StoreOptions options{.uid = static_cast<uint32_t>(getuid())};
  auto store = Store::Open(fs, clock, random, dir, options, Store::Mode::kWrite);
  if (!store.ok()) return false;
  auto writer = (*store)->Begin();
  if (!writer.ok()) return false;
  uint64_t given = 0;
  auto id = (*writer)->PutStream([&](std::span<std::byte> out) -> Result<size_t> {
    const size_t count = std::min<uint64_t>({out.size(), kTotal - given, 65'521});
    for (size_t i = 0; i < count; ++i) {  // each byte follows from its offset
      uint64_t z = (given + i + 1) * 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      out[i] = static_cast<std::byte>(z >> 56);
    }
    given += count;
    return count;
  });
  if (!id.ok() || !(*writer)->Commit().ok()) return false;
  uint64_t read = 0;
  Sha256 hash;
  Status back = (*store)->ReadContent(*id, [&](ByteSpan piece) -> Status {
    hash.Update(piece);
    read += piece.size();
    return Ok();
  });
  return back.ok() && read == kTotal && hash.Finish() == *id;
}

// The long form: tests/crash/stream_full.
TEST(Stream, LongContentTakesFlatMemory) {
  TempDir temp;
  const AbsPath dir = temp / "store";
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(StreamThroughAStore(dir) ? 0 : 1);
  int status = 0;
  rusage usage{};
  ASSERT_EQ(wait4(child, &status, 0, &usage), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::printf("peak RSS %ld KiB for 96 MiB\n", usage.ru_maxrss);
#if !defined(BELAY_SANITIZED)
  EXPECT_LT(usage.ru_maxrss, 120 * 1024);  // all of it held would be twice that
#endif
}

}  // namespace
}  // namespace belay::test
