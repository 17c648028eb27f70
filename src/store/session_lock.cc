#include "store/session_lock.h"

namespace belay {

Result<HeldLock> LockSession(Store& store, std::string_view session, LockMode mode,
                             int64_t wait_ms) {
  return store.locks().AcquireNamed(
      session, mode, wait_ms, "what was told of a session is still being recorded");
}

}  // namespace belay
