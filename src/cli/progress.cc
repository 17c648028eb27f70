#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "cli/open_store.h"

namespace belay {

namespace {
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBetween = kSecond / 10;

void WriteStderr(std::string_view text) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}
}  // namespace

Progress::Progress(const Terminal& term, Clock& clock, std::string what)
    : clock_(clock),
      what_(std::move(what)),
      enabled_(!term.json() && !term.quiet() && isatty(STDERR_FILENO) != 0),
      began_(clock.SteadyNanos()),
      last_(began_) {}

Progress::~Progress() { Done(); }

void Progress::Done() {
  if (shown_) WriteStderr("\r\x1b[K");
  shown_ = false;
}

void Progress::Count(uint64_t done, std::string_view noun) {
  if (!enabled_) return;
  int64_t now = clock_.SteadyNanos();
  if (now - began_ < kSecond || now - last_ < kBetween) return;
  last_ = now;
  WriteStderr("\r" + what_ + ": " + std::to_string(done) + " " + std::string(noun) +
              "\x1b[K");
  shown_ = true;
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (!enabled_) return;
  int64_t now = clock_.SteadyNanos();
  if (now - began_ < kSecond || now - last_ < kBetween || total == 0) return;
  last_ = now;
  double seconds = static_cast<double>(now - began_) / static_cast<double>(kSecond);
  double rate = static_cast<double>(done) / seconds;
  double left = done < total && rate > 0 ? static_cast<double>(total - done) / rate : 0;
  char text[160];
  std::snprintf(text, sizeof text, "\r%s: %3.0f %%, %s/s, %.0f s left\x1b[K",
                what_.c_str(),
                100.0 * static_cast<double>(done) / static_cast<double>(total),
                SizeText(static_cast<uint64_t>(rate)).c_str(), left);
  WriteStderr(text);
  shown_ = true;
}

}  // namespace belay
