#pragma once

// FaultFs wraps another Fs, numbers the calls that pass, and breaks call number N.
//
// A sweep runs the same operation with N = 1, 2, 3 ... until a run ends with fired()
// false: then every call has been broken once (tests/support/crash_harness.h).
//
// Guarantees
//   * No fault, or before it fires: exactly the wrapped Fs.
//   * A faulted call does not reach the wrapped Fs, except kShortWrite (half of the
//   bytes
//     are written), kKillAfter (it is performed) and Close (always performed, so that a
//     fault leaks no handle).
//   * After kPowerCut every call fails with EIO, as on a machine that is off.
//
// Handles it gives out are bound to it but carry the wrapped handle, so they must not
// be closed after it is gone.
//
// Threads: counting is locked; numbering is repeatable only for one thread.

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/fs.h"

namespace belay {

enum class FsCall : uint8_t {
  kOpenDir,
  kOpen,
  kOpenBeneath,
  kDuplicate,
  kClose,
  kRealPath,
  kRead,
  kWrite,
  kTruncate,
  kShareBlocks,
  kSyncData,
  kSync,
  kSyncAll,
  kStat,
  kStatAt,
  kList,
  kReadLink,
  kInfo,
  kMakeDir,
  kUnlink,
  kRemoveDir,
  kSymlink,
  kLink,
  kRename,
  kSetMode,
  kSetOwner,
  kSetTimes,
  kListXattrs,
  kGetXattr,
  kSetXattr,
  kRemoveXattr,
  kTryLock,
  kUnlock,
  kTryLease,
  kEndLease,
  kAwaitLength,
};
inline constexpr size_t kFsCalls = static_cast<size_t>(FsCall::kAwaitLength) + 1;
std::string_view FsCallName(FsCall call);  // "SyncData"

struct Fault {
  enum class Kind {
    kNone,
    kErrno,       // the call fails with `sys`
    kShortWrite,  // a Write does half of its bytes and says so; any other call is as
                  // usual
    kEintr,       // the call fails with EINTR, once
    kKill,        // SIGKILL to this process before the call
    kKillAfter,   // and after it
    kPowerCut,    // `cut` is called, then this and every later call is EIO
  };
  Kind kind = Kind::kNone;
  uint64_t at = 0;  // 1 is the first counted call
  int sys = 0;
  bool sticky = false;        // kErrno, not EINTR: every counted call from `at` on
  std::function<void()> cut;  // kPowerCut; may be empty

  // Which calls are counted, and so can be hit. A call is mutating when it may change
  // what is on the disk or what of it survives: Open with create or truncate, Sync, ...
  bool mutating_only = false;
  std::vector<FsCall> only;  // empty: every kind

  static Fault None() { return {}; }
  static Fault Errno(uint64_t at, int sys, bool sticky = false);
  static Fault ShortWrite(uint64_t at);
  static Fault Eintr(uint64_t at);
  static Fault Kill(uint64_t at);
  static Fault KillAfter(uint64_t at);
  static Fault PowerCut(uint64_t at, std::function<void()> cut = {});
  std::string Text() const;  // "ENOSPC at call 17"
};

class FaultFs final : public Fs {
 public:
  // `inner` must outlive this and every handle it gave out.
  explicit FaultFs(Fs& inner, Fault fault = Fault::None());

  bool fired() const;
  uint64_t calls() const;             // counted ones, by the filter of the fault
  uint64_t calls(FsCall kind) const;  // all of this kind
  std::vector<FsCall> log() const;    // the counted ones, in order
  // "call 17: SyncData" for the call that fired, or the last one.
  std::string Where() const;
  bool power_is_off() const;

  Result<Fd> OpenDir(const AbsPath& path) override;
  Result<Fd> Open(const Fd& dir, NameRef name, const OpenMode& mode) override;
  Result<Fd> OpenBeneath(const Fd& root, const RelPath& path,
                         const OpenMode& mode) override;
  Result<Fd> Duplicate(const Fd& file) override;
  Status Close(int handle) override;
  Result<AbsPath> RealPath(const AbsPath& path) override;

  Result<size_t> Read(const Fd& file, uint64_t offset,
                      std::span<std::byte> out) override;
  Result<size_t> Write(const Fd& file, uint64_t offset, ByteSpan bytes) override;
  Status Truncate(const Fd& file, uint64_t size) override;
  Status ShareBlocks(const Fd& from, const Fd& to) override;
  Status SyncData(const Fd& file) override;
  Status Sync(const Fd& file) override;
  Status SyncAll(const Fd& any) override;

  Result<FileStat> Stat(const Fd& file) override;
  Result<FileStat> StatAt(const Fd& dir, NameRef name) override;
  Result<std::vector<DirEntry>> List(const Fd& dir) override;
  Result<std::string> ReadLink(const Fd& dir, NameRef name) override;
  Status AwaitLength(const Fd& file) override;
  Result<FsInfo> Info(const Fd& any) override;

  Status MakeDir(const Fd& dir, const Name& name, uint32_t mode) override;
  Status Unlink(const Fd& dir, const Name& name) override;
  Status RemoveDir(const Fd& dir, const Name& name) override;
  Status Symlink(const Fd& dir, const Name& name, std::string_view target) override;
  Status Link(const Fd& from_dir, const Name& from, const Fd& to_dir,
              const Name& to) override;
  Status Rename(const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to,
                RenameHow how) override;

  Status SetMode(const Fd& file, uint32_t mode) override;
  Status SetOwner(const Fd& file, uint32_t uid, uint32_t gid) override;
  Status SetTimes(const Fd& file, int64_t atime_ns, int64_t mtime_ns) override;
  Result<std::vector<std::string>> ListXattrs(const Fd& file) override;
  Result<Bytes> GetXattr(const Fd& file, const std::string& name) override;
  Status SetXattr(const Fd& file, const std::string& name, ByteSpan value) override;
  Status RemoveXattr(const Fd& file, const std::string& name) override;

  Result<bool> TryLock(const Fd& file, uint64_t byte, LockMode mode) override;
  Status Unlock(const Fd& file, uint64_t byte) override;
  Result<LeaseOutcome> TryLease(const Fd& file, LockMode mode) override;
  Status EndLease(const Fd& file) override;

 private:
  // What to do about one call.
  struct Verdict {
    int sys = 0;  // fail with this
    bool half = false;
    bool kill_after = false;
  };
  Verdict Count(FsCall kind, bool mutating);
  // Counts, then fails or calls `perform`.
  template <class Perform>
  auto Pass(FsCall kind, bool mutating, Perform perform) -> decltype(perform());
  Result<Fd> Rebind(Result<Fd> fd);

  Fs& inner_;
  const Fault fault_;
  mutable std::mutex mutex_;
  bool fired_ = false;
  bool power_is_off_ = false;
  uint64_t fired_at_ = 0;
  std::vector<FsCall> log_;
  std::array<uint64_t, kFsCalls> by_kind_{};
};

}  // namespace belay
