#include "cli/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace belay {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Standard error on a terminal, for as long as this lives.
class FakeTerminal {
 public:
  FakeTerminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    int slave = open(ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave < 0) return;
    termios raw{};
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    saved_ = dup(2);
    dup2(slave, 2);
    close(slave);
  }
  ~FakeTerminal() {
    if (saved_ >= 0) {
      dup2(saved_, 2);
      close(saved_);
    }
    if (master_ >= 0) close(master_);
  }
  bool works() const { return saved_ >= 0; }
  void Resize(unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    ioctl(master_, TIOCSWINSZ, &size);
  }
  // What was written since the last time.
  std::string Shown() {
    std::string text;
    char piece[4096];
    for (ssize_t got; (got = read(master_, piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<size_t>(got));
    return text;
  }

 private:
  int master_ = -1;
  int saved_ = -1;
};

class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!terminal_.works()) GTEST_SKIP() << "no pseudo-terminals here";
  }
  FakeTerminal terminal_;
  FakeClock clock_;
};

TEST_F(ProgressTest, SaysNothingWithinASecond) {
  Terminal term({});
  Progress progress(term, clock_, "reading");
  progress.Update(50, 100);
  clock_.SleepNanos(kSecond - 1);
  progress.Update(90, 100);
  progress.Count(7, "files");
  progress.Done();
  EXPECT_EQ(terminal_.Shown(), "");
}

TEST_F(ProgressTest, ShowsShareRateAndWhatIsLeftAndGoesWithoutATrace) {
  Terminal term({});
  Progress progress(term, clock_, "reading");
  clock_.SleepNanos(5 * kSecond);  // looking for files: no part of the rate
  progress.Count(1234, "files");
  EXPECT_EQ(terminal_.Shown(), "\rreading: 1234 files\x1b[K");
  progress.Update(0, 400 << 20);
  clock_.SleepNanos(2 * kSecond);
  progress.Update(100 << 20, 400 << 20);
  EXPECT_EQ(terminal_.Shown(),
            "\rreading [======                  ]  25 %  50.0 MiB/s  6 s left\x1b[K");
  progress.Update(101 << 20, 400 << 20);  // too soon after the last
  EXPECT_EQ(terminal_.Shown(), "");
  clock_.SleepNanos(kSecond);
  progress.Update(900 << 20, 400 << 20);  // a file that grew
  EXPECT_EQ(terminal_.Shown(),
            "\rreading [========================] 100 %  133 MiB/s  0 s left\x1b[K");
  progress.Done();
  EXPECT_EQ(terminal_.Shown(), "\r\x1b[K");
  progress.Done();
  EXPECT_EQ(terminal_.Shown(), "");
}

TEST_F(ProgressTest, LongTimesReadWellAndLinesFit) {
  Terminal term({});
  Progress progress(term, clock_, std::string(100, 'x'));
  progress.Update(0, 1000);
  clock_.SleepNanos(10 * kSecond);
  progress.Update(1, 1000);
  std::string shown = terminal_.Shown();
  EXPECT_EQ(shown.size(), 1 + 79 + 3u) << shown;
  Progress hours(term, clock_, "reading");
  hours.Update(0, 1000);
  clock_.SleepNanos(10 * kSecond);
  hours.Update(1, 1000);
  EXPECT_NE(terminal_.Shown().find("2 h 46 min left"), std::string::npos);
}

// One that wraps would leave a line behind with each redraw.
TEST_F(ProgressTest, NeverTakesMoreThanTheTerminalHas) {
  Terminal term({});
  Progress progress(term, clock_, "checking the store");
  clock_.SleepNanos(5 * kSecond);
  progress.Update(0, 400 << 20);
  for (int columns : {200, 80, 74, 60, 50, 40, 30, 24, 16, 10}) {
    SCOPED_TRACE(columns);
    terminal_.Resize(static_cast<unsigned short>(columns));
    clock_.SleepNanos(kSecond);
    progress.Update(100 << 20, 400 << 20);
    std::string shown = terminal_.Shown();
    ASSERT_TRUE(shown.starts_with('\r') && shown.ends_with("\x1b[K")) << shown;
    shown = shown.substr(1, shown.size() - 4);
    EXPECT_LT(shown.size(), static_cast<size_t>(columns)) << shown;
    // The share is there at any width, the rest where there is room for it.
    EXPECT_TRUE(shown.find("25 %") != std::string::npos) << shown;
    EXPECT_EQ(shown.starts_with("checking the store"), columns >= 26) << shown;
    EXPECT_EQ(shown.find(" left") != std::string::npos, columns >= 40) << shown;
    EXPECT_EQ(shown.find("[======   ") != std::string::npos, columns >= 74) << shown;
  }
  progress.Count(12345678, "files of a tree");
  EXPECT_LE(terminal_.Shown().size(), 1 + 9 + 3u);
}

TEST_F(ProgressTest, IsNotForScripts) {
  for (const TerminalOptions& options :
       {TerminalOptions{.json = true}, TerminalOptions{.quiet = true}}) {
    Terminal term(options);
    Progress progress(term, clock_, "reading");
    clock_.SleepNanos(5 * kSecond);
    progress.Update(1, 2);
    progress.Count(1, "files");
  }
  EXPECT_EQ(terminal_.Shown(), "");
}

}  // namespace
}  // namespace belay
