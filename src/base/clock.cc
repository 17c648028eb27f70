#include "base/clock.h"

#include <cstdio>
#include <ctime>

namespace belay {

namespace {
int64_t Now(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
}  // namespace

int64_t RealClock::WallMillis() { return Now(CLOCK_REALTIME) / 1'000'000; }
int64_t RealClock::SteadyNanos() { return Now(CLOCK_MONOTONIC); }
void RealClock::SleepNanos(int64_t nanos) {
  timespec t{nanos / 1'000'000'000, static_cast<long>(nanos % 1'000'000'000)};
  nanosleep(&t, nullptr);  // a signal may end it early; callers loop on a deadline
}

std::string FormatUtcMillis(int64_t wall_millis) {
  int64_t seconds = wall_millis / 1000;
  int64_t millis = wall_millis % 1000;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  time_t t = static_cast<time_t>(seconds);
  tm parts{};
  gmtime_r(&t, &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                parts.tm_min, parts.tm_sec, static_cast<int>(millis));
  return text;
}

}  // namespace belay
