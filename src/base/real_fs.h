#pragma once

// RealFs is the Fs of the running kernel.
//
// Guarantees
//   * OpenBeneath never leaves its root, whatever others rename meanwhile: openat2
//   where
//     the kernel has it (5.6), else one O_NOFOLLOW|O_PATH open per component. Only
//     ENOSYS selects the walk: a seccomp filter that answers EPERM cannot be told apart
//     from a file we may not open.
//   * A file or directory is created with exactly the mode asked for. The kernel gets
//     that mode in the creating call, so it is never more open than that; what the
//     umask (or a setgid parent) changed is put right by fchmod before the call
//     returns.
//   * RealPath is limited to PATH_MAX; nothing else is.
//   * Errors say "operation name: reason", the name escaped for display.
//
// Signals are the program's business: SIGXFSZ should be ignored so that a file size
// limit becomes EFBIG.
//
// Threads: stateless, every method from any thread.

#include "base/fs.h"

namespace belay {

class RealFs final : public Fs {
 public:
  struct Options {
    bool use_openat2 = true;  // false: always walk, as on a kernel before 5.6
  };
  RealFs() = default;
  explicit RealFs(const Options& options) : options_(options) {}

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
  // A descriptor or -errno; `path` fits PATH_MAX.
  int OpenBeneathShort(int root, const std::string& path, int flags,
                       uint32_t mode) const;

  Options options_;
};

}  // namespace belay
