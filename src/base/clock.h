#pragma once

// Time comes in through a Clock, so that tests decide what time it is.

#include <cstdint>
#include <string>

namespace belay {

inline constexpr int64_t kDayMs = int64_t{24} * 60 * 60 * 1000;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t WallMillis() = 0;   // since 1970, UTC; may jump
  virtual int64_t SteadyNanos() = 0;  // never goes back; for durations and deadlines
  virtual void SleepNanos(int64_t nanos) = 0;
};

class RealClock final : public Clock {
 public:
  int64_t WallMillis() override;
  int64_t SteadyNanos() override;
  void SleepNanos(int64_t nanos) override;
};

// Stands still until told; SleepNanos moves it on, so waiting code needs no real time.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t wall_millis = 1'800'000'000'000) : wall_(wall_millis) {}
  int64_t WallMillis() override { return wall_ + steady_ / 1'000'000; }
  int64_t SteadyNanos() override { return steady_; }
  void SleepNanos(int64_t nanos) override { steady_ += nanos; }
  void SetWallMillis(int64_t millis) { wall_ = millis - steady_ / 1'000'000; }

 private:
  int64_t wall_;
  int64_t steady_ = 0;
};

// "2026-11-15T10:00:00.123Z"
std::string FormatUtcMillis(int64_t wall_millis);

}  // namespace belay
