#pragma once

// The exit codes scripts rely on.

namespace belay {

enum class ExitCode : int {
  kOk = 0,
  kProblem = 1,  // refused, or a problem was found
  kUsage = 2,    // wrong usage, or not in this version yet
  kDamaged = 3,
  kBusy = 4,
  kNoSpace = 5,
};

}  // namespace belay
