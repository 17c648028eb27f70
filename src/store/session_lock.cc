#include "store/session_lock.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/sha256.h"

namespace belay {

Result<HeldLock> LockSession(Store& store, std::string_view session, LockMode mode,
                             int64_t wait_ms) {
  // Above those of the roots.
  constexpr uint64_t kFirst = uint64_t{1} << 50;
  const uint64_t byte = kFirst + (Check64(AsBytes(session)) >> 16);
  static const Name kFile = Name::Literal("lock");
  BELAY_TRY(Fd file, store.fs().Open(store.dir(), kFile, OpenMode::OpenOrCreate()));
  const int64_t deadline = store.clock().SteadyNanos() + wait_ms * 1'000'000;
  constexpr int64_t kFirstPause = 50'000, kLongestPause = 5'000'000;
  for (int64_t pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    BELAY_TRY(const bool got, store.fs().TryLock(file, byte, mode));
    if (got) return HeldLock(std::move(file));
    if (store.clock().SteadyNanos() >= deadline)
      return Error(Errc::kBusy, "what was told of a session is still being recorded");
    store.clock().SleepNanos(pause);
  }
}

}  // namespace belay
