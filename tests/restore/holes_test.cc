// Sparse files: long runs of zeros come back as holes, and take no room.

#include "restore/holes.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "support/restore_fixture.h"

namespace belay::test {
namespace {

// Zeros and bytes in runs of all lengths around those that matter.
std::string Patches(std::mt19937& random) {
  std::string out;
  const size_t patches = random() % 8;
  for (size_t i = 0; i < patches; ++i) {
    constexpr size_t kAround[] = {1,      4095,   4096,   4097,   60'000,
                                  65'535, 65'536, 70'000, 200'000};
    const size_t length = kAround[random() % std::size(kAround)];
    out.append(length, random() % 2 == 0 ? '\0' : 'x');
  }
  return out;
}

TEST(Holes, EveryByteIsThereHoweverItCameInPieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    MemFs fs;
    Fd dir = Must(fs.OpenDir(AbsPath::Literal("/")));
    Fd file = Must(fs.Open(dir, N("f"), OpenMode::CreateNew()));
    const std::string content = Patches(random);
    SparseWriter writer(fs, file);
    HoleCounter counter;
    for (size_t at = 0; at < content.size();) {
      const size_t piece = std::min(content.size() - at, size_t{1} + random() % 90'000);
      Must(writer.Add(AsBytes(std::string_view(content).substr(at, piece))));
      Must(counter.Add(AsBytes(std::string_view(content).substr(at, piece))));
      at += piece;
    }
    Must(writer.Close());
    Must(counter.Finish());
    ASSERT_EQ(Must(GetFile(fs, dir, P("f"))), content) << round;
    EXPECT_LE(counter.total(), content.size());
  }
}

class HolesTest : public RealRestoreTest {
 protected:
  static constexpr uint64_t kSize = uint64_t{24} << 20;
  static constexpr uint64_t kLittle = uint64_t{1} << 20;
  void MakeSparse() {
    const int fd = open(PathTo("sparse").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, static_cast<off_t>(kSize)), 0);
    ASSERT_EQ(pwrite(fd, "here", 4, 9'000'000), 4);
    close(fd);
    if (Stat("sparse").allocated > kLittle) GTEST_SKIP() << "no holes on this disk";
  }
};

TEST_F(HolesTest, ASparseFileComesBackSparse) {
  MakeSparse();
  if (IsSkipped()) return;
  Must(world.Capture("start"));
  const std::string content = Read("sparse");
  Remove("sparse");
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(done.verified);
  EXPECT_TRUE(Read("sparse") == content);
  EXPECT_LT(Stat("sparse").allocated, kLittle);
  EXPECT_LT(done.plan.bytes_needed, kLittle) << "room is asked for what is written";
}

TEST_F(HolesTest, WhatWasFilledSinceIsSparseAgain) {
  MakeSparse();
  if (IsSkipped()) return;
  Must(world.Capture("start"));
  const std::string content = Read("sparse");
  Put("sparse", Noise(3, kSize));
  const std::string now = Read("sparse");
  Must(world.Rollback("start"));
  EXPECT_TRUE(Read("sparse") == content);
  EXPECT_LT(Stat("sparse").allocated, kLittle);
  Must(world.Undo());
  EXPECT_TRUE(Read("sparse") == now);
  Must(world.Redo());
  EXPECT_TRUE(Read("sparse") == content);
  EXPECT_LT(Stat("sparse").allocated, kLittle);
}

}  // namespace
}  // namespace belay::test
