#pragma once

// Local figures of one's own use: how often, how fast, how well. Computed from the log
// and from what went wrong lately (core/failures.h); nothing is counted besides.

#include <optional>
#include <vector>

#include "core/failures.h"
#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

// Nearest rank. A figure that too few samples would make up is not given.
struct Timing {
  uint64_t samples = 0;
  std::optional<uint64_t> p50_us = {};  // from 5 samples on
  std::optional<uint64_t> p95_us = {};  // from 20 on
};
Timing TimingOf(std::vector<uint64_t> took_us);

struct Stats {
  uint64_t roots = 0;
  std::optional<int64_t> since_ms = {};  // the oldest checkpoint there still is
  uint64_t automatic = 0, manual = 0, safety = 0;
  uint64_t failed_checkpoints = 0;
  Timing create = {};
  uint64_t rollbacks = 0, undos = 0, redos = 0;  // that were done
  uint64_t recovered = 0;         // of those: finished after an interruption
  uint64_t failed_rollbacks = 0;  // of any of the three; being told to wait is none
  Timing rollback = {};           // of all three
  uint64_t sessions = 0, with_rollback = 0, with_manual = 0, with_either = 0;

  // Done of all that were tried; nothing when none was.
  std::optional<double> SuccessRate() const;
  // Of the sessions; nothing when there is none.
  std::optional<double> SessionShare() const;
};

// Of one root: what it is given is all of that root.
struct RootFigures {
  std::vector<CheckpointRow> checkpoints;
  std::vector<Operation> operations;
  std::vector<Failure> failures;
};
Stats StatsOf(const std::vector<RootFigures>& roots);

}  // namespace belay
