#pragma once

// Fs is every system call Belay makes on files: the one door to the operating system.
//
// RealFs forwards to the kernel. MemFs keeps a tree in memory, knows what was synced
// and forgets or tears the rest on Crash(). FaultFs wraps another Fs and fails,
// shortens, kills or cuts power at call number N. Because nothing else touches files, a
// test can pull the plug between any two steps of any operation.
//
// Rules of the interface
//   * One virtual call is one system call (as near as the kernel allows): a fault sweep
//     that numbers the calls then visits every state the disk can be left in.
//   * Read/Write may be short, as the kernel's are; ReadFull/WriteFull below loop.
//   * EINTR is handled inside, except that FaultFs may inject it to prove that.
//   * Paths are relative to a directory handle. The last component is never followed
//     when it is a symlink, except where a comment says so.
//   * Everything is opened O_CLOEXEC; files we might not own are opened O_NONBLOCK so
//     that a FIFO cannot hang us (regular files ignore it).
//   * A handle that fails Sync() must be given up: the kernel may have marked the pages
//     clean. Callers never retry.
//
// Threads: every method may be called from any thread; one handle's Lock state belongs
// to the open file description, as OFD locks do.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/path.h"
#include "base/result.h"

namespace belay {

class Fs;

// An open file or directory. Move-only; the destructor closes silently, so whoever
// wrote calls Close() and checks.
class Fd {
 public:
  Fd() = default;
  Fd(Fs& fs, int handle) : fs_(&fs), handle_(handle) {}
  Fd(Fd&& other) noexcept : fs_(other.fs_), handle_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  bool is_open() const { return handle_ >= 0; }
  int handle() const { return handle_; }  // for Fs implementations
  int Release() {
    int h = handle_;
    handle_ = -1;
    return h;
  }
  // Closes and reports what close(2) said.
  Status Close();

 private:
  Fs* fs_ = nullptr;
  int handle_ = -1;
};

enum class FileType : uint8_t {
  kRegular,
  kDirectory,
  kSymlink,
  kFifo,
  kSocket,
  kDevice
};

struct FileStat {
  FileType type = FileType::kRegular;
  uint32_t mode = 0;  // permission bits, setuid/setgid/sticky: 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t nlink = 1;
  uint64_t dev = 0;
  uint64_t ino = 0;
  uint64_t size = 0;
  uint64_t allocated = 0;  // bytes of disk, st_blocks * 512
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool mount_root = false;   // something is mounted here
  bool mount_known = false;  // the kernel can tell (Linux 5.8)
  bool immutable = false;    // chattr +i or +a: can be neither renamed nor removed
};

struct DirEntry {
  std::string name;              // bytes as the kernel gave them; never "." or ".."
  std::optional<FileType> type;  // absent when the file system does not say
  uint64_t ino = 0;
};

struct FsInfo {
  uint64_t magic = 0;  // f_type
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // for unprivileged users
  uint64_t free_inodes = 0;
  bool read_only = false;
};

struct OpenMode {
  enum class Access { kRead, kWrite, kReadWrite, kDirectory, kPath };
  Access access = Access::kRead;
  bool create = false;     // O_CREAT
  bool exclusive = false;  // O_EXCL: fails when it exists
  bool truncate = false;   // O_TRUNC
  uint32_t mode = 0600;    // for create; the umask is overridden, never added to

  static OpenMode Read() { return {}; }
  static OpenMode ReadWrite() { return {.access = Access::kReadWrite}; }
  static OpenMode Path() { return {.access = Access::kPath}; }
  static OpenMode Directory() { return {.access = Access::kDirectory}; }
  static OpenMode CreateNew(uint32_t mode = 0600) {
    return {
        .access = Access::kReadWrite, .create = true, .exclusive = true, .mode = mode};
  }
  static OpenMode OpenOrCreate(uint32_t mode = 0600) {
    return {.access = Access::kReadWrite, .create = true, .mode = mode};
  }
};

enum class RenameHow { kReplace, kNoReplace, kExchange };
enum class LockMode { kShared, kExclusive };
// A lease (F_SETLEASE): kExclusive while nobody else has the file open or mapped,
// kShared while nobody else has it open or mapped for writing.
enum class LeaseOutcome { kHeld, kInUse, kUnavailable };

class Fs {
 public:
  virtual ~Fs() = default;

  // --- opening -----------------------------------------------------------------------
  // Opens a directory by absolute path; symlinks on the way are followed (the caller
  // names a place on the machine, not a place in a tree).
  virtual Result<Fd> OpenDir(const AbsPath& path) = 0;
  // One component below `dir`.
  virtual Result<Fd> Open(const Fd& dir, NameRef name, const OpenMode& mode) = 0;
  // Any depth below `root` without leaving it and without following any symlink on the
  // way or at the end: openat2(RESOLVE_BENEATH|NO_SYMLINKS|NO_MAGICLINKS), or a walk of
  // O_NOFOLLOW opens where the kernel has no openat2. Longer than PATH_MAX: in pieces.
  virtual Result<Fd> OpenBeneath(const Fd& root, const RelPath& path,
                                 const OpenMode& mode) = 0;
  // A second handle on the same open file description (dup): shares its locks.
  virtual Result<Fd> Duplicate(const Fd& file) = 0;
  virtual Status Close(int handle) = 0;  // through Fd::Close()
  // realpath(3): absolute, no symlinks. The path must exist.
  virtual Result<AbsPath> RealPath(const AbsPath& path) = 0;

  // --- bytes -------------------------------------------------------------------------
  virtual Result<size_t> Read(const Fd& file, uint64_t offset,
                              std::span<std::byte> out) = 0;  // 0 = end of file
  virtual Result<size_t> Write(const Fd& file, uint64_t offset, ByteSpan bytes) = 0;
  virtual Status Truncate(const Fd& file, uint64_t size) = 0;
  // All of `from` becomes the content of `to`, which is open for writing, and takes no
  // room of its own until one of them is written (FICLONE). At once: what others write
  // to `from` meanwhile is in it or not. EOPNOTSUPP, EXDEV, EINVAL where the file
  // system cannot.
  virtual Status ShareBlocks(const Fd& from, const Fd& to) = 0;
  virtual Status SyncData(const Fd& file) = 0;  // fdatasync
  virtual Status Sync(const Fd& file) = 0;      // fsync; of a directory: its entries
  virtual Status SyncAll(const Fd& any) = 0;    // syncfs: the whole file system

  // --- looking -----------------------------------------------------------------------
  virtual Result<FileStat> Stat(const Fd& file) = 0;
  virtual Result<FileStat> StatAt(const Fd& dir, NameRef name) = 0;  // no follow
  virtual Result<std::vector<DirEntry>> List(const Fd& dir) = 0;     // in no order
  virtual Result<std::string> ReadLink(const Fd& dir, NameRef name) = 0;
  virtual Result<FsInfo> Info(const Fd& any) = 0;

  // Waits until nobody is in the midst of changing the length of `file`. A truncation
  // shows the new length before the new times, on ext4 until a commit of its journal
  // in between is done; a stat after this has both. (lseek(SEEK_DATA): it takes the
  // file's own lock on ext4, btrfs, f2fs and tmpfs; on XFS reading does.)
  virtual Status AwaitLength(const Fd& file) = 0;

  // --- names -------------------------------------------------------------------------
  // Mode exactly as given, whatever the umask. kExists when it is there already.
  virtual Status MakeDir(const Fd& dir, const Name& name, uint32_t mode) = 0;
  virtual Status Unlink(const Fd& dir, const Name& name) = 0;
  virtual Status RemoveDir(const Fd& dir, const Name& name) = 0;
  virtual Status Symlink(const Fd& dir, const Name& name, std::string_view target) = 0;
  virtual Status Link(const Fd& from_dir, const Name& from, const Fd& to_dir,
                      const Name& to) = 0;
  virtual Status Rename(const Fd& from_dir, const Name& from, const Fd& to_dir,
                        const Name& to, RenameHow how) = 0;

  // --- attributes --------------------------------------------------------------------
  // These three also take a handle opened with kPath: the way to a symlink's owner and
  // times (its mode cannot be set: EOPNOTSUPP).
  virtual Status SetMode(const Fd& file, uint32_t mode) = 0;
  virtual Status SetOwner(const Fd& file, uint32_t uid, uint32_t gid) = 0;
  virtual Status SetTimes(const Fd& file, int64_t atime_ns, int64_t mtime_ns) = 0;
  // Extended attributes, ACLs among them, of a file or directory (not of a symlink).
  // Where the file system has none, the list is empty and setting one is EOPNOTSUPP.
  virtual Result<std::vector<std::string>> ListXattrs(const Fd& file) = 0;
  virtual Result<Bytes> GetXattr(const Fd& file, const std::string& name) = 0;
  virtual Status SetXattr(const Fd& file, const std::string& name, ByteSpan value) = 0;
  virtual Status RemoveXattr(const Fd& file, const std::string& name) = 0;

  // --- locks between processes -------------------------------------------------------
  // One byte of `file` locked by open file description (F_OFD_SETLK). Does not wait:
  // false when another holds it. Shared to exclusive and back is allowed. Closing the
  // handle, or dying, releases.
  virtual Result<bool> TryLock(const Fd& file, uint64_t byte, LockMode mode) = 0;
  virtual Status Unlock(const Fd& file, uint64_t byte) = 0;
  // Never waits. While it is held, an open that conflicts waits for EndLease (at most
  // 45 s; with O_NONBLOCK, as all of ours, it fails with EAGAIN). kUnavailable: not our
  // file, or the file system has no leases. kExclusive needs a handle opened for
  // writing. Closing the handle ends it too.
  virtual Result<LeaseOutcome> TryLease(const Fd& file, LockMode mode) = 0;
  virtual Status EndLease(const Fd& file) = 0;
};

// --- helpers over any Fs -------------------------------------------------------------

// The error every Fs gives: "operation name: reason", the name escaped for display.
Error FsError(int sys, std::string_view operation, std::string_view name);

// The disk did not give the bytes back: a bad sector, or a checksum of the file system
// or the device that does not match. What cannot be read today is damage to a reader;
// to a writer it is a reason to stop.
bool IsUnreadable(const Error& error);

// "a directory", "a FIFO", ...: for messages about what is in the way.
std::string_view FileTypeName(FileType type);

// Reads until `out` is full or the file ends; the count read.
Result<size_t> ReadFull(Fs& fs, const Fd& file, uint64_t offset,
                        std::span<std::byte> out);
// Reads exactly `out`; a shorter file is kCorrupt ("ends early").
Status ReadExact(Fs& fs, const Fd& file, uint64_t offset, std::span<std::byte> out);
// A whole small file; more than `limit` bytes is kInvalid.
Result<Bytes> ReadSmallFile(Fs& fs, const Fd& dir, const Name& name, size_t limit);
// The same of a file that is open, and what it was when it was read.
Result<Bytes> ReadSmallFile(Fs& fs, const Fd& file, const Name& name, size_t limit,
                            FileStat& stat);
Status WriteFull(Fs& fs, const Fd& file, uint64_t offset, ByteSpan bytes);

// Replaces `name` in `dir` by `bytes` so that a reader and a power cut see the old or
// the new content, whole: temporary, write, fsync, rename, fsync of the directory. On
// failure the old content stays and the temporary is removed; only when the last step,
// the fsync of the directory, fails is the new content already visible, and may be lost
// again.
//
// The temporary is "<name>.<0..31>.tmp", locked while its writer lives: two processes
// may replace the same file at once, and one left behind by a crash is removed by the
// next replacement of the same name.
Status ReplaceFile(Fs& fs, const Fd& dir, const Name& name, ByteSpan bytes,
                   uint32_t mode = 0600);

// `path` from `root` on, empty for the root itself; nothing when it lies elsewhere. Of
// what does not exist, as much as does is resolved; the last name stays as it is: a
// symlink is meant itself. `root` is a real path.
std::optional<std::string> RealPathBelow(Fs& fs, const AbsPath& root,
                                         const AbsPath& path);

// The directory that holds `path` below `root`, opened beneath it, and the last name.
struct Parent {
  Fd dir;
  Name name;
};
Result<Parent> OpenParent(Fs& fs, const Fd& root, const RelPath& path);

// Opens `path`, creating what is missing with `mode` (and only what is missing). What
// was created is durable: each parent is synced.
Result<Fd> MakeDirs(Fs& fs, const AbsPath& path, uint32_t mode);

}  // namespace belay
