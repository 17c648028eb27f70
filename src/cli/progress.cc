#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/open_store.h"
#include "cli/text.h"

namespace belay {

namespace {
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBetween = kSecond / 10;

void WriteStderr(std::string_view text) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

// "5 s", "2 min 10 s", "3 h 5 min".
std::string TimeText(double seconds) {
  const auto all = static_cast<uint64_t>(seconds + 0.5);
  if (all < 60) return std::to_string(all) + " s";
  if (all < 3600)
    return std::to_string(all / 60) + " min " + std::to_string(all % 60) + " s";
  return std::to_string(all / 3600) + " h " + std::to_string(all / 60 % 60) + " min";
}
}  // namespace

Progress::Progress(const Terminal& term, Clock& clock, std::string what)
    : term_(term),
      clock_(clock),
      what_(std::move(what)),
      enabled_(!term.json() && !term.quiet() && isatty(STDERR_FILENO) != 0),
      began_(clock.SteadyNanos()),
      last_(began_) {}

Progress::~Progress() { Done(); }

void Progress::Done() {
  if (shown_) WriteStderr("\r\x1b[K");
  shown_ = false;
}

void Progress::Show(const std::string& text) {
  // The last column would wrap on some terminals.
  WriteStderr("\r" + Fit(text, std::max<size_t>(term_.ErrorWidth(), 2) - 1) + "\x1b[K");
  shown_ = true;
}

void Progress::Count(uint64_t done, std::string_view noun) {
  if (!enabled_) return;
  int64_t now = clock_.SteadyNanos();
  if (now - began_ < kSecond || now - last_ < kBetween) return;
  last_ = now;
  Show(what_ + ": " + std::to_string(done) + " " + std::string(noun));
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (!enabled_ || total == 0) return;
  int64_t now = clock_.SteadyNanos();
  // What came before the first byte says nothing about the rate.
  if (updates_since_ == 0) {
    updates_since_ = now;
    first_done_ = done;
  }
  if (now - began_ < kSecond || now - last_ < kBetween) return;
  last_ = now;
  done = std::min(done, total);
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const double seconds =
      static_cast<double>(now - updates_since_) / static_cast<double>(kSecond);
  const double rate =
      seconds > 0 ? static_cast<double>(done - std::min(done, first_done_)) / seconds
                  : 0;
  auto bar = [&](size_t width) {
    std::string drawn(static_cast<size_t>(share * static_cast<double>(width)), '=');
    drawn.resize(width, ' ');
    return what_ + " [" + drawn + "] ";
  };
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3.0f %%", 100.0 * share);
  const std::string at_rate = "  " + SizeText(static_cast<uint64_t>(rate)) + "/s";
  const std::string left =
      rate > 0 ? "  " + TimeText(static_cast<double>(total - done) / rate) + " left"
               : std::string();
  // As much as there is room for; the share goes last.
  const size_t room = std::max<size_t>(term_.ErrorWidth(), 2) - 1;
  const size_t label = room > 4 + sizeof percent ? room - 1 - ColumnsOf(percent) : 0;
  std::string text;
  for (const std::string& form :
       {bar(24) + percent + at_rate + left, bar(10) + percent + at_rate + left,
        bar(10) + percent + left, what_ + " " + percent + left, what_ + " " + percent,
        label > 0 ? Fit(what_, label) + " " + percent : std::string(percent)}) {
    text = form;
    if (ColumnsOf(text) <= room) break;
  }
  Show(text);
}

}  // namespace belay
