#pragma once

// PassFs passes every call to another Fs. A test derives from it and overrides the call
// it wants to see, or to answer differently. Handles carry the inner handle.

#include "base/fs.h"

namespace belay::test {

class PassFs : public Fs {
 public:
  explicit PassFs(Fs& inner) : inner_(inner) {}

#define BELAY_PASS(type, name, parameters, arguments) \
  type name parameters override { return inner_.name arguments; }
#define BELAY_PASS_FD(name, parameters, arguments) \
  Result<Fd> name parameters override {            \
    auto fd = inner_.name arguments;               \
    if (!fd.ok()) return fd;                       \
    return Fd(*this, fd->Release());               \
  }
  BELAY_PASS_FD(OpenDir, (const AbsPath& path), (path))
  BELAY_PASS_FD(Open, (const Fd& dir, NameRef name, const OpenMode& mode),
                (dir, name, mode))
  BELAY_PASS_FD(OpenBeneath,
                (const Fd& root, const RelPath& path, const OpenMode& mode),
                (root, path, mode))
  BELAY_PASS_FD(Duplicate, (const Fd& file), (file))
  Status Close(int handle) override { return inner_.Close(handle); }
  BELAY_PASS(Result<AbsPath>, RealPath, (const AbsPath& path), (path))
  BELAY_PASS(Result<size_t>, Read,
             (const Fd& file, uint64_t offset, std::span<std::byte> out),
             (file, offset, out))
  BELAY_PASS(Result<size_t>, Write, (const Fd& file, uint64_t offset, ByteSpan bytes),
             (file, offset, bytes))
  BELAY_PASS(Status, Truncate, (const Fd& file, uint64_t size), (file, size))
  BELAY_PASS(Status, ShareBlocks, (const Fd& from, const Fd& to), (from, to))
  BELAY_PASS(Status, SyncData, (const Fd& file), (file))
  BELAY_PASS(Status, Sync, (const Fd& file), (file))
  BELAY_PASS(Status, SyncAll, (const Fd& any), (any))
  BELAY_PASS(Result<FileStat>, Stat, (const Fd& file), (file))
  BELAY_PASS(Result<FileStat>, StatAt, (const Fd& dir, NameRef name), (dir, name))
  BELAY_PASS(Result<std::vector<DirEntry>>, List, (const Fd& dir), (dir))
  BELAY_PASS(Result<std::string>, ReadLink, (const Fd& dir, NameRef name), (dir, name))
  BELAY_PASS(Status, AwaitLength, (const Fd& file), (file))
  BELAY_PASS(Result<FsInfo>, Info, (const Fd& any), (any))
  BELAY_PASS(Status, MakeDir, (const Fd& dir, const Name& name, uint32_t mode),
             (dir, name, mode))
  BELAY_PASS(Status, Unlink, (const Fd& dir, const Name& name), (dir, name))
  BELAY_PASS(Status, RemoveDir, (const Fd& dir, const Name& name), (dir, name))
  BELAY_PASS(Status, Symlink,
             (const Fd& dir, const Name& name, std::string_view target),
             (dir, name, target))
  BELAY_PASS(Status, Link,
             (const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to),
             (from_dir, from, to_dir, to))
  BELAY_PASS(Status, Rename,
             (const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to,
              RenameHow how),
             (from_dir, from, to_dir, to, how))
  BELAY_PASS(Status, SetMode, (const Fd& file, uint32_t mode), (file, mode))
  BELAY_PASS(Status, SetOwner, (const Fd& file, uint32_t uid, uint32_t gid),
             (file, uid, gid))
  BELAY_PASS(Status, SetTimes, (const Fd& file, int64_t atime_ns, int64_t mtime_ns),
             (file, atime_ns, mtime_ns))
  BELAY_PASS(Result<std::vector<std::string>>, ListXattrs, (const Fd& file), (file))
  BELAY_PASS(Result<Bytes>, GetXattr, (const Fd& file, const std::string& name),
             (file, name))
  BELAY_PASS(Status, SetXattr,
             (const Fd& file, const std::string& name, ByteSpan value),
             (file, name, value))
  BELAY_PASS(Status, RemoveXattr, (const Fd& file, const std::string& name),
             (file, name))
  BELAY_PASS(Result<bool>, TryLock, (const Fd& file, uint64_t byte, LockMode mode),
             (file, byte, mode))
  BELAY_PASS(Status, Unlock, (const Fd& file, uint64_t byte), (file, byte))
  BELAY_PASS(Result<LeaseOutcome>, TryLease, (const Fd& file, LockMode mode),
             (file, mode))
  BELAY_PASS(Status, EndLease, (const Fd& file), (file))
#undef BELAY_PASS
#undef BELAY_PASS_FD

 protected:
  Fs& inner_;
};

}  // namespace belay::test
