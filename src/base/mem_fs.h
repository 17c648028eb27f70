#pragma once

// MemFs is a file system in memory that knows what a power cut would leave of it.
//
// It answers as Linux does (tests/base/fs_conformance_test.cc runs the same suite on it
// and on RealFs), with these differences: permissions are kept but not enforced (it is
// root), times come from a counter, and directories have no size.
//
// Durability
//   * Sync/SyncData of a file keeps its bytes and size, not its name.
//   * Sync of a directory keeps its entries, not the bytes or the entries of what they
//     name. A rename between two directories is kept in both or in neither.
//   * SetMode/SetOwner/SetTimes are kept by Sync (not SyncData) of the handle.
//   * Crash() then decides about the rest: everything kept, everything lost, or torn.
//
// After Crash() every open handle is dead (EIO), every lock gone, and the tree is what
// the platter remembers. Clone() first to crash one state several ways: a copy shares
// file content until one side writes.
//
// Threads: one mutex; every method from any thread.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/fs.h"

namespace belay {

namespace mem {
class MemDisk;
struct Inode;
struct OpenFile;
}  // namespace mem

struct CrashPolicy {
  enum class Kind {
    kKeepAll,       // every operation reached the disk
    kDropUnsynced,  // only what was synced
    kTear,  // each unsynced write kept, lost, cut short or zeros; each directory
            // a prefix of its unsynced changes; chosen by `seed`
  };
  Kind kind = Kind::kDropUnsynced;
  uint64_t seed = 0;

  static CrashPolicy KeepAll() { return {Kind::kKeepAll, 0}; }
  static CrashPolicy DropUnsynced() { return {Kind::kDropUnsynced, 0}; }
  static CrashPolicy Tear(uint64_t seed) { return {Kind::kTear, seed}; }
  std::string Text() const;  // "keep all", "drop unsynced", "tear seed 7"
};

class MemFs final : public Fs {
 public:
  struct Options {
    uint64_t capacity_bytes = UINT64_MAX;  // of file content; over it: ENOSPC
    uint64_t capacity_inodes = UINT64_MAX;
    bool read_only = false;   // EROFS
    uint64_t magic = 0xef53;  // what Info() calls the file system: ext4
    uint32_t uid = 1000;      // of what is created
    uint32_t gid = 1000;
    int64_t start_ns = 1'800'000'000'000'000'000;
    bool shares_blocks = false;   // ShareBlocks() works (and takes room all the same)
    int64_t tick_ns = 1'000'000;  // the clock moves so much at each change; 0: stands
  };
  MemFs();
  explicit MemFs(const Options& options);
  ~MemFs() override;

  // --- for tests ---------------------------------------------------------------------
  void Crash(const CrashPolicy& policy);
  // The same disk, synced and unsynced; no handles, no locks.
  std::unique_ptr<MemFs> Clone() const;
  // Every path with type, mode and content (base/tree_text.h).
  std::string TreeText();
  size_t open_handles() const;
  uint64_t used_bytes() const;
  uint64_t used_inodes() const;
  void SetCapacity(uint64_t bytes, uint64_t inodes = UINT64_MAX);
  void SetReadOnly(bool read_only);
  void AdvanceTime(int64_t nanos);
  void SetTick(int64_t nanos);
  // A FIFO, socket or device, as somebody else may have left it in a tree.
  Status MakeSpecial(const Fd& dir, const Name& name, FileType type, uint32_t mode);

  // What stat says of a directory or file that something was mounted on.
  Status SetMountRoot(const Fd& dir, const Name& name, bool mounted);
  // chattr +i: it can no longer be written, renamed or removed.
  Status SetImmutable(const Fd& dir, const Name& name, bool immutable);

  // --- Fs ----------------------------------------------------------------------------
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
  using Ino = uint64_t;
  MemFs(const Options& options, std::unique_ptr<mem::MemDisk> disk, int64_t now_ns);

  // All below are called with the mutex held. An int result is 0 or an errno.
  int Handle(const Fd& file, mem::OpenFile*& out);
  int HandleDir(const Fd& dir, Ino& ino);
  int Walk(std::string_view abs, int depth, std::string& clean, Ino& ino);
  int OpenAt(Ino dir, std::string_view name, const OpenMode& mode, Ino& ino);
  int CanAdd(Ino dir, std::string_view name);
  int Create(Ino dir, std::string_view name, FileType type, uint32_t mode, Ino& ino);
  int RenameLocked(Ino from_dir, const std::string& from, Ino to_dir,
                   const std::string& to, RenameHow how);
  bool IsAncestor(Ino ancestor, Ino of);
  void DropName(Ino ino);
  void Touch(Ino dir);
  int64_t Tick();
  FileStat StatOf(Ino ino);
  Fd NewHandle(Ino ino, OpenMode::Access access);

  mutable std::mutex mutex_;
  Options options_;
  std::unique_ptr<mem::MemDisk> disk_;
  // Shared by the handles that Duplicate() made of one open file.
  std::unordered_map<int, std::shared_ptr<mem::OpenFile>> handles_;
  int next_handle_ = 3;  // never reused: a handle used after Close is EBADF
  int64_t now_ns_;
};

}  // namespace belay
