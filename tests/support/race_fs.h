#pragma once

// RaceFs calls a function before every call that passes to another Fs, so that somebody
// else's edit can land between any two calls of an operation. The function may use the
// inner Fs. Handles carry the inner handle.
//
// Threads: the function is called by one thread at a time, and calls that pass
// meanwhile wait; an operation with several threads is not repeatable, only raced.

#include <functional>
#include <mutex>

#include "base/fs.h"

namespace belay::test {

class RaceFs final : public Fs {
 public:
  RaceFs(Fs& inner, std::function<void()> hook)
      : inner_(inner), hook_(std::move(hook)) {}

#define BELAY_RACE(type, name, parameters, arguments) \
  type name parameters override {                     \
    Hook();                                           \
    return inner_.name arguments;                     \
  }
#define BELAY_RACE_FD(name, parameters, arguments) \
  Result<Fd> name parameters override {            \
    Hook();                                        \
    auto fd = inner_.name arguments;               \
    if (!fd.ok()) return fd;                       \
    return Fd(*this, fd->Release());               \
  }
  BELAY_RACE_FD(OpenDir, (const AbsPath& path), (path))
  BELAY_RACE_FD(Open, (const Fd& dir, NameRef name, const OpenMode& mode),
                (dir, name, mode))
  BELAY_RACE_FD(OpenBeneath,
                (const Fd& root, const RelPath& path, const OpenMode& mode),
                (root, path, mode))
  BELAY_RACE_FD(Duplicate, (const Fd& file), (file))
  Status Close(int handle) override { return inner_.Close(handle); }
  BELAY_RACE(Result<AbsPath>, RealPath, (const AbsPath& path), (path))
  BELAY_RACE(Result<size_t>, Read,
             (const Fd& file, uint64_t offset, std::span<std::byte> out),
             (file, offset, out))
  BELAY_RACE(Result<size_t>, Write, (const Fd& file, uint64_t offset, ByteSpan bytes),
             (file, offset, bytes))
  BELAY_RACE(Status, Truncate, (const Fd& file, uint64_t size), (file, size))
  BELAY_RACE(Status, ShareBlocks, (const Fd& from, const Fd& to), (from, to))
  BELAY_RACE(Status, SyncData, (const Fd& file), (file))
  BELAY_RACE(Status, Sync, (const Fd& file), (file))
  BELAY_RACE(Status, SyncAll, (const Fd& any), (any))
  BELAY_RACE(Result<FileStat>, Stat, (const Fd& file), (file))
  BELAY_RACE(Result<FileStat>, StatAt, (const Fd& dir, NameRef name), (dir, name))
  BELAY_RACE(Result<std::vector<DirEntry>>, List, (const Fd& dir), (dir))
  BELAY_RACE(Result<std::string>, ReadLink, (const Fd& dir, NameRef name), (dir, name))
  BELAY_RACE(Status, AwaitLength, (const Fd& file), (file))
  BELAY_RACE(Result<FsInfo>, Info, (const Fd& any), (any))
  BELAY_RACE(Status, MakeDir, (const Fd& dir, const Name& name, uint32_t mode),
             (dir, name, mode))
  BELAY_RACE(Status, Unlink, (const Fd& dir, const Name& name), (dir, name))
  BELAY_RACE(Status, RemoveDir, (const Fd& dir, const Name& name), (dir, name))
  BELAY_RACE(Status, Symlink,
             (const Fd& dir, const Name& name, std::string_view target),
             (dir, name, target))
  BELAY_RACE(Status, Link,
             (const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to),
             (from_dir, from, to_dir, to))
  BELAY_RACE(Status, Rename,
             (const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to,
              RenameHow how),
             (from_dir, from, to_dir, to, how))
  BELAY_RACE(Status, SetMode, (const Fd& file, uint32_t mode), (file, mode))
  BELAY_RACE(Status, SetOwner, (const Fd& file, uint32_t uid, uint32_t gid),
             (file, uid, gid))
  BELAY_RACE(Status, SetTimes, (const Fd& file, int64_t atime_ns, int64_t mtime_ns),
             (file, atime_ns, mtime_ns))
  BELAY_RACE(Result<std::vector<std::string>>, ListXattrs, (const Fd& file), (file))
  BELAY_RACE(Result<Bytes>, GetXattr, (const Fd& file, const std::string& name),
             (file, name))
  BELAY_RACE(Status, SetXattr,
             (const Fd& file, const std::string& name, ByteSpan value),
             (file, name, value))
  BELAY_RACE(Status, RemoveXattr, (const Fd& file, const std::string& name),
             (file, name))
  BELAY_RACE(Result<bool>, TryLock, (const Fd& file, uint64_t byte, LockMode mode),
             (file, byte, mode))
  BELAY_RACE(Status, Unlock, (const Fd& file, uint64_t byte), (file, byte))
  BELAY_RACE(Result<LeaseOutcome>, TryLease, (const Fd& file, LockMode mode),
             (file, mode))
  BELAY_RACE(Status, EndLease, (const Fd& file), (file))
#undef BELAY_RACE
#undef BELAY_RACE_FD

 private:
  void Hook() {
    std::lock_guard guard(mutex_);
    if (hook_) hook_();
  }
  Fs& inner_;
  std::function<void()> hook_;
  std::mutex mutex_;
};

}  // namespace belay::test
