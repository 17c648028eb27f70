#include "agent/session_queue.h"

namespace belay {

HeldLock WaitInTurn(Store& store, const std::string& session, int64_t wait_ms) {
  // A prompt, three calls and the end of the turn. Each is five system calls,
  // some microseconds of a hook that takes milliseconds.
  constexpr int kPlaces = 8;
  HeldLock at;
  for (int place = kPlaces; place > 0; --place) {
    std::string name = session;
    name += '\0';
    name += std::to_string(place);
    auto next = LockSession(store, name, LockMode::kExclusive, wait_ms);
    if (!next.ok()) return {};
    at = std::move(*next);
  }
  return at;
}

}  // namespace belay
