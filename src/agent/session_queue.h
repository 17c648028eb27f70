#pragma once

// What is told of a session while it cannot be recorded yet (its start still is, the
// directory is busy) waits in a queue, and is recorded in the order in which it was
// told: a prompt, the calls that it led to, the end of the turn. A lock alone goes to
// whoever asks first when it is free, which is the one that came last.
//
// A queue has places, each a byte of the file `lock` (store/session_lock.h). Whoever
// joins takes the last and moves up as the one before becomes free; nobody else asks
// for that one, so that nobody overtakes. The kernel gives the place of a process that
// dies to the one behind it. Who finds the last place taken is in no order with others
// that do. Most places are for when the few in front do not do: who joins begins there
// when nobody is behind them.

#include <string>

#include "store/session_lock.h"

namespace belay {

// The first place, for as long as it is held; none when it was not to be had: who waits
// `wait_ms` for one place goes on out of turn.
HeldLock WaitInTurn(Store& store, const std::string& session, int64_t wait_ms);

}  // namespace belay
