#include "agent/session_queue.h"

namespace belay {

HeldLock WaitInTurn(Store& store, const std::string& session, int64_t wait_ms) {
  // Each is five system calls, some microseconds of a hook that takes milliseconds. In
  // front is who finds nobody waiting; with all of them there are more places than
  // events within `wait_ms`, each of which an agent waits for until its deadline.
  constexpr int kPlaces = 64, kInFront = 4;
  auto lock = [&](int place, LockMode mode, int64_t ms) {
    std::string name = session;
    name += '\0';
    name += std::to_string(place);
    auto held = LockSession(store, name, mode, ms);
    return held.ok() ? std::move(*held) : HeldLock();
  };
  constexpr int kBehind = 0;  // held together by all that are not in front
  HeldLock at, behind;
  int place = kInFront;
  if (lock(kBehind, LockMode::kExclusive, 0).held())
    at = lock(place, LockMode::kExclusive, 0);
  if (!at.held()) {
    behind = lock(kBehind, LockMode::kShared, wait_ms);
    place = kPlaces + 1;
  }
  while (--place > 0) {
    HeldLock next = lock(place, LockMode::kExclusive, wait_ms);
    if (!next.held()) return {};
    at = std::move(next);
    if (place == kInFront) behind.Release();
  }
  return at;
}

}  // namespace belay
