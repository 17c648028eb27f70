#include "base/running_process.h"

#include <gtest/gtest.h>

namespace belay::test {
namespace {

std::unique_ptr<RunningProcess> Begin(std::string text, int64_t timeout_ms = 10'000) {
  ProcessOptions options{.program = AbsPath::Literal("/bin/sh"),
                         .arguments = {"-c", std::move(text)},
                         .environment = {"PATH=/usr/bin:/bin"}};
  options.timeout_ms = timeout_ms;
  auto started = RunningProcess::Start(options);
  if (!started.ok()) CheckFailed(started.error().what.c_str(), __FILE__, __LINE__);
  return std::move(*started);
}

TEST(RunningProcess, TalksBackAndForthForMoreThanAPipeHolds) {
  auto cat = Begin("exec cat");
  std::string out;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(20'000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(cat->Write(AsBytes(piece)).ok());
    std::string back;
    while (back.size() < piece.size()) {
      std::array<std::byte, 7000> buffer;
      auto got = cat->Read(
          std::span(buffer).first(std::min(buffer.size(), piece.size() - back.size())));
      ASSERT_TRUE(got.ok());
      ASSERT_NE(*got, 0u);
      back += AsText(ByteSpan(buffer).first(*got));
    }
    ASSERT_EQ(back, piece) << i;
  }
  auto ended = cat->Finish();
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(ended->ok());
  EXPECT_EQ(ended->output, "");
}

TEST(RunningProcess, ComplaintsOfAnyLengthDoNotStopIt) {
  auto loud =
      Begin("head -c 500000 /dev/zero | tr '\\0' x >&2; cat >/dev/null; echo end");
  ASSERT_TRUE(loud->Write(AsBytes(std::string(300'000, 'y'))).ok());
  auto ended = loud->Finish();
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->output, "end\n");
  EXPECT_EQ(ended->errors.size(), 500'000u);
}

TEST(RunningProcess, WhoTakesNoMoreIsAnErrorAndSaysWhy) {
  auto gone = Begin("echo no >&2; exit 7");
  Status written = Ok();
  for (int i = 0; i < 100 && written.ok(); ++i)
    written = gone->Write(AsBytes(std::string(100'000, 'y')));
  ASSERT_FALSE(written.ok());
  auto ended = gone->Finish();
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->code, 7);
  EXPECT_EQ(ended->errors, "no\n");
}

TEST(RunningProcess, StandingStillIsBusyAndTheChildEnds) {
  auto still = Begin("exec cat", 50);
  std::array<std::byte, 10> buffer;
  auto got = still->Read(buffer);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Errc::kBusy);
  still.reset();  // returns: it was killed
}

}  // namespace
}  // namespace belay::test
