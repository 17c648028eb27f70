#pragma once

// The store's locks: bytes of the file `lock`, held by open file description, released
// by the kernel when the holder dies. Order: as the enumerators; see ARCHITECTURE.md.
//
// The file may be moved away by a user, or by a repair that took it for something else,
// so that what was opened is no longer what others open: who got a lock that guards
// changes looks whether the name still leads there, and otherwise begins again.
//
// Waiting polls with growing pauses up to a deadline, because a holder may be stopped
// and nobody may wait for ever; kBusy then says what was being waited for.

#include "base/clock.h"
#include "base/fs.h"
#include "base/ids.h"

namespace belay {

enum class StoreLock : uint64_t {
  kCollector = 0,
  kGate = 1,
  kUse = 2,
  kAppend = 3,
  kCatalog = 4,
};

// A held lock; the destructor releases it.
class HeldLock {
 public:
  HeldLock() = default;
  explicit HeldLock(Fd file) : file_(std::move(file)) {}
  bool held() const { return file_.is_open(); }
  void Release() { file_ = Fd(); }

 private:
  Fd file_;  // its own open file description: closing it is unlocking it
};

class StoreLocks {
 public:
  // `dir` is the store's directory and must outlive this.
  StoreLocks(Fs& fs, Clock& clock, const Fd& dir, int64_t wait_ms)
      : fs_(fs), clock_(clock), dir_(dir), wait_ms_(wait_ms) {}

  Result<HeldLock> Acquire(StoreLock which, LockMode mode) {
    return Acquire(which, mode, wait_ms_);
  }
  Result<HeldLock> Acquire(StoreLock which, LockMode mode, int64_t wait_ms);
  // One scan or rollback of a root at a time. Comes before every lock of the store;
  // nobody holds two of them.
  Result<HeldLock> AcquireRoot(const RootId& root, int64_t wait_ms);
  // A byte above those of the roots, found by a name: session_lock.h. `holder` says
  // what is being waited for.
  Result<HeldLock> AcquireNamed(std::string_view name, LockMode mode, int64_t wait_ms,
                                std::string_view holder);
  // Not held by anybody else right now? Never waits: nullopt when it is.
  Result<std::optional<HeldLock>> TryAcquire(StoreLock which, LockMode mode);
  // Refuses a file system whose locks do nothing: two descriptions must exclude each
  // other.
  Status Probe();

 private:
  Result<Fd> OpenFile();
  // Does the name `lock` still lead to `file`, which was opened by it? Asked when the
  // lock is held: whoever comes later then finds the same file. Not asked, and true,
  // for locks that guard no changes.
  Result<bool> IsPresent(const Fd& file, uint64_t byte, LockMode mode);
  Result<HeldLock> AcquireByte(uint64_t byte, LockMode mode, int64_t wait_ms,
                               std::string_view holder);
  Fs& fs_;
  Clock& clock_;
  const Fd& dir_;
  int64_t wait_ms_;
};

}  // namespace belay
