#pragma once

// A progress line for work that takes more than a second: on a terminal's standard
// error only, never with --json or -q, gone without a trace when the work is done.

#include <string>

#include "base/clock.h"
#include "cli/terminal.h"

namespace belay {

class Progress {
 public:
  // `what` is what is being done: "checking the store".
  Progress(const Terminal& term, Clock& clock, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` bytes.
  void Update(uint64_t done, uint64_t total);
  // Work whose end is not known yet: how many so far.
  void Count(uint64_t done, std::string_view noun);
  // Takes the line away, so that something else can be said.
  void Done();

 private:
  void Show(const std::string& text);

  const Terminal& term_;
  Clock& clock_;
  std::string what_;
  bool enabled_;
  bool shown_ = false;
  int64_t began_;
  int64_t last_;
  int64_t updates_since_ = 0;  // when the first byte was counted
  uint64_t first_done_ = 0;
};

}  // namespace belay
