#include "base/real_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace belay {

namespace {

// Calls until it is not interrupted; the result, or -errno.
template <class Call>
auto Retry(Call call) -> decltype(call()) {
  for (;;) {
    auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return static_cast<decltype(result)>(-errno);
  }
}

// The path an open handle has now, as the kernel knows it; empty when it does not.
std::string PathOf(int fd) {
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  char path[PATH_MAX];
  ssize_t length = fd < 0 ? -1 : readlink(link, path, sizeof path);
  if (length <= 0 || path[0] != '/') return {};
  return std::string(path, static_cast<size_t>(length));
}

// A failed call on an open handle: a person wants to know on which file.
Error HandleError(long result, std::string_view operation, int fd) {
  const int sys = static_cast<int>(-result);
  std::string path = PathOf(fd);
  return path.empty() ? SysError(sys, operation) : FsError(sys, operation, path);
}

// A failed call on a name below a handle. What callers ask for on purpose, to see
// whether something is there, costs no look-up.
Error NameError(long result, std::string_view operation, int dir,
                std::string_view name) {
  const int sys = static_cast<int>(-result);
  switch (sys) {
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case ELOOP:
    case EINVAL:
    case ENODATA:
      return FsError(sys, operation, name);
    default:
      break;
  }
  std::string path = PathOf(dir);
  if (path.empty()) return FsError(sys, operation, name);
  if (path != "/") path += '/';
  return FsError(sys, operation, path.append(name));
}

Status Finish(long result, std::string_view operation, const Fd& file) {
  if (result < 0) return HandleError(result, operation, file.handle());
  return Ok();
}
Status Finish(long result, std::string_view operation, const Fd& dir,
              const Name& name) {
  if (result < 0) return NameError(result, operation, dir.handle(), name.bytes());
  return Ok();
}

// A descriptor inside one call; what leaves the call becomes an Fd.
class Raw {
 public:
  explicit Raw(int fd) : fd_(fd) {}
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  ~Raw() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

int OpenRaw(int dir, const char* path, int flags, uint32_t mode = 0) {
  return Retry([&] { return openat(dir, path, flags, static_cast<mode_t>(mode)); });
}

int Openat2(int dir, const char* path, int flags, uint32_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(
      Retry([&] { return syscall(SYS_openat2, dir, path, &how, sizeof how); }));
}

// O_NOFOLLOW|O_DIRECTORY on a symlink says ENOTDIR, every other way of meeting one says
// ELOOP; one answer for all, so that callers can tell a symlink from a file.
int SymlinkIsLoop(int result, int dir, const char* name) {
  if (result != -ENOTDIR) return result;
  struct stat st {};
  int found = Retry([&] { return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW); });
  if (found == 0 && S_ISLNK(st.st_mode)) return -ELOOP;
  return result;
}

// One component, never followed.
int OpenComponent(int dir, const char* name, int flags, uint32_t mode = 0) {
  return SymlinkIsLoop(OpenRaw(dir, name, flags | O_NOFOLLOW, mode), dir, name);
}

// The open flags, or -EINVAL for what the kernel would silently ignore or half do.
int FlagsFor(const OpenMode& mode) {
  bool makes = mode.create || mode.exclusive || mode.truncate;
  int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  switch (mode.access) {
    case OpenMode::Access::kDirectory:
      return makes ? -EINVAL : flags | O_RDONLY | O_DIRECTORY;
    case OpenMode::Access::kPath:
      // openat2 refuses O_PATH with any flag that has no meaning for it.
      return makes ? -EINVAL : O_PATH | O_NOFOLLOW | O_CLOEXEC;
    case OpenMode::Access::kRead:
      if (mode.truncate) return -EINVAL;
      flags |= O_RDONLY;
      break;
    case OpenMode::Access::kWrite:
      flags |= O_WRONLY;
      break;
    case OpenMode::Access::kReadWrite:
      flags |= O_RDWR;
      break;
  }
  if (mode.exclusive && !mode.create) return -EINVAL;
  return flags | O_NONBLOCK | (mode.truncate ? O_TRUNC : 0);
}

// Gives a file that we have just created its exact mode.
int FixMode(int fd, uint32_t mode) {
  struct stat st {};
  if (int found = Retry([&] { return fstat(fd, &st); }); found < 0) return found;
  if ((st.st_mode & 07777) == mode) return 0;
  return Retry([&] { return fchmod(fd, static_cast<mode_t>(mode)); });
}

// `open(flags)` is the opening call. Creating without O_EXCL is two calls, so that we
// know whether the file is ours to give a mode; a file that comes and goes between the
// two is tried again a few times.
template <class OpenCall>
int OpenOrCreate(const OpenMode& mode, int flags, OpenCall open_call) {
  if (!mode.create) return open_call(flags);
  constexpr int kTries = 16;
  for (int tries = 0;; ++tries) {
    if (!mode.exclusive) {
      int fd = open_call(flags);
      if (fd != -ENOENT) return fd;
    }
    int fd = open_call((flags & ~O_TRUNC) | O_CREAT | O_EXCL);
    if (fd >= 0) {
      if (int fixed = FixMode(fd, mode.mode); fixed < 0) {
        close(fd);
        return fixed;
      }
      return fd;
    }
    if (mode.exclusive || fd != -EEXIST || tries == kTries) return fd;
  }
}

FileType TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::kRegular;
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFLNK:
      return FileType::kSymlink;
    case S_IFIFO:
      return FileType::kFifo;
    case S_IFSOCK:
      return FileType::kSocket;
    default:
      return FileType::kDevice;
  }
}

std::optional<FileType> TypeOfEntry(unsigned char type) {
  switch (type) {
    case DT_REG:
      return FileType::kRegular;
    case DT_DIR:
      return FileType::kDirectory;
    case DT_LNK:
      return FileType::kSymlink;
    case DT_FIFO:
      return FileType::kFifo;
    case DT_SOCK:
      return FileType::kSocket;
    case DT_CHR:
    case DT_BLK:
      return FileType::kDevice;
    default:
      return std::nullopt;
  }
}

int64_t Nanos(const timespec& t) {
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

timespec ToTimespec(int64_t nanos) {
  int64_t seconds = nanos / 1'000'000'000;
  int64_t rest = nanos % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  timespec t{};
  t.tv_sec = static_cast<time_t>(seconds);
  t.tv_nsec = static_cast<long>(rest);
  return t;
}

FileStat ToFileStat(const struct stat& st) {
  FileStat out;
  out.type = TypeOf(st.st_mode);
  out.mode = st.st_mode & 07777;
  out.uid = st.st_uid;
  out.gid = st.st_gid;
  out.nlink = static_cast<uint32_t>(st.st_nlink);
  out.dev = st.st_dev;
  out.ino = st.st_ino;
  out.size = static_cast<uint64_t>(st.st_size);
  out.allocated = static_cast<uint64_t>(st.st_blocks) * 512;
  out.mtime_ns = Nanos(st.st_mtim);
  out.ctime_ns = Nanos(st.st_ctim);
  return out;
}

FileStat ToFileStat(const struct statx& st) {
  FileStat out;
  out.type = TypeOf(st.stx_mode);
  out.mode = st.stx_mode & 07777u;
  out.uid = st.stx_uid;
  out.gid = st.stx_gid;
  out.nlink = st.stx_nlink;
  out.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
  out.ino = st.stx_ino;
  out.size = st.stx_size;
  out.allocated = st.stx_blocks * 512;
  out.mtime_ns = Nanos(timespec{st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec});
  out.ctime_ns = Nanos(timespec{st.stx_ctime.tv_sec, st.stx_ctime.tv_nsec});
  out.mount_root = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  out.mount_known = (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
  out.immutable = (st.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
  return out;
}

// statx rather than fstatat, because only it says what is a mount point; the cost is
// the same. Kernels before 4.11 and some sandboxes have no statx.
int StatRaw(int dir, const char* name, int flags, FileStat& out) {
  struct statx stx;  // the kernel fills all of it
  int result = Retry([&] { return statx(dir, name, flags, STATX_BASIC_STATS, &stx); });
  if (result == 0) {
    out = ToFileStat(stx);
    return 0;
  }
  if (result != -ENOSYS && result != -EPERM) return result;
  struct stat st {};
  result = Retry([&] { return fstatat(dir, name, &st, flags); });
  if (result == 0) out = ToFileStat(st);
  return result;
}

// Calls `open_piece(piece, last)` for pieces of whole components that fit PATH_MAX,
// until one fails; the last result.
template <class OpenPiece>
int OpenInPieces(std::string_view path, OpenPiece open_piece) {
  constexpr size_t kLongestPiece = PATH_MAX - 1;
  while (path.size() > kLongestPiece) {
    // A component is at most 255 bytes, so there is a slash in reach.
    size_t slash = path.rfind('/', kLongestPiece);
    if (int fd = open_piece(std::string(path.substr(0, slash)), false); fd < 0)
      return fd;
    path.remove_prefix(slash + 1);
  }
  return open_piece(std::string(path), true);
}

std::string ProcPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

// --- opening -------------------------------------------------------------------------

Result<Fd> RealFs::OpenDir(const AbsPath& path) {
  Raw at(AT_FDCWD);
  int fd = OpenInPieces(path.bytes(), [&](const std::string& piece, bool last) {
    int access = last ? O_RDONLY : O_PATH;
    int opened = OpenRaw(at.get(), piece.c_str(), access | O_DIRECTORY | O_CLOEXEC);
    if (!last && opened >= 0) at.Reset(opened);
    return opened;
  });
  if (fd < 0) return FsError(-fd, "open", path.bytes());
  return Fd(*this, fd);
}

Result<Fd> RealFs::Open(const Fd& dir, NameRef name, const OpenMode& mode) {
  int flags = FlagsFor(mode);
  int fd = flags < 0 ? flags : OpenOrCreate(mode, flags, [&](int f) {
    return OpenComponent(dir.handle(), name.c_str(), f, mode.mode);
  });
  if (fd < 0) return NameError(fd, "open", dir.handle(), name.bytes());
  return Fd(*this, fd);
}

int RealFs::OpenBeneathShort(int root, const std::string& path, int flags,
                             uint32_t mode) const {
  if (options_.use_openat2) {
    int fd = Openat2(root, path.c_str(), flags, mode);
    if (fd != -ENOSYS) return SymlinkIsLoop(fd, root, path.c_str());
  }
  // Each step is relative to a directory we hold, so a rename above us cannot lead us
  // out.
  Raw at(-1);
  size_t start = 0;
  for (size_t slash; (slash = path.find('/', start)) != std::string::npos;
       start = slash + 1) {
    std::string part = path.substr(start, slash - start);
    int next = OpenComponent(at.get() < 0 ? root : at.get(), part.c_str(),
                             O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (next < 0) return next;
    at.Reset(next);
  }
  return OpenComponent(at.get() < 0 ? root : at.get(), path.c_str() + start, flags,
                       mode);
}

Result<Fd> RealFs::OpenBeneath(const Fd& root, const RelPath& path,
                               const OpenMode& mode) {
  int flags = FlagsFor(mode);
  if (flags < 0) return FsError(-flags, "open", path.bytes());
  Raw at(-1);
  int fd = OpenInPieces(path.bytes(), [&](const std::string& piece, bool last) {
    int from = at.get() < 0 ? root.handle() : at.get();
    if (last) {
      return OpenOrCreate(mode, flags, [&](int f) {
        return OpenBeneathShort(from, piece, f, mode.mode);
      });
    }
    int opened = OpenBeneathShort(from, piece, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (opened >= 0) at.Reset(opened);
    return opened;
  });
  if (fd < 0) return NameError(fd, "open", root.handle(), path.bytes());
  return Fd(*this, fd);
}

Result<Fd> RealFs::Duplicate(const Fd& file) {
  int fd = Retry([&] { return fcntl(file.handle(), F_DUPFD_CLOEXEC, 0); });
  if (fd < 0) return SysError(-fd, "dup");
  return Fd(*this, fd);
}

Status RealFs::Close(int handle) {
  // Linux has released the descriptor even when it says EINTR: closing again could
  // close somebody else's.
  if (close(handle) != 0 && errno != EINTR) return SysError(errno, "close");
  return Ok();
}

Result<AbsPath> RealFs::RealPath(const AbsPath& path) {
  std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                   &std::free);
  if (real == nullptr) return FsError(errno, "resolve", path.bytes());
  return AbsPath::Parse(real.get());
}

// --- bytes ---------------------------------------------------------------------------

Result<size_t> RealFs::Read(const Fd& file, uint64_t offset, std::span<std::byte> out) {
  ssize_t got = Retry([&] {
    return pread(file.handle(), out.data(), out.size(), static_cast<off_t>(offset));
  });
  if (got < 0) return HandleError(got, "read", file.handle());
  return static_cast<size_t>(got);
}

Result<size_t> RealFs::Write(const Fd& file, uint64_t offset, ByteSpan bytes) {
  ssize_t put = Retry([&] {
    return pwrite(file.handle(), bytes.data(), bytes.size(),
                  static_cast<off_t>(offset));
  });
  if (put < 0) return HandleError(put, "write", file.handle());
  return static_cast<size_t>(put);
}

Status RealFs::Truncate(const Fd& file, uint64_t size) {
  return Finish(
      Retry([&] { return ftruncate(file.handle(), static_cast<off_t>(size)); }),
      "truncate", file);
}

Status RealFs::ShareBlocks(const Fd& from, const Fd& to) {
  return Finish(Retry([&] { return ioctl(to.handle(), FICLONE, from.handle()); }),
                "share the blocks of", from);
}

Status RealFs::SyncData(const Fd& file) {
  return Finish(Retry([&] { return fdatasync(file.handle()); }), "fdatasync", file);
}

Status RealFs::Sync(const Fd& file) {
  return Finish(Retry([&] { return fsync(file.handle()); }), "fsync", file);
}

Status RealFs::SyncAll(const Fd& any) {
  return Finish(Retry([&] { return syncfs(any.handle()); }), "syncfs", any);
}

// --- looking -------------------------------------------------------------------------

Result<FileStat> RealFs::Stat(const Fd& file) {
  FileStat stat;
  int result = StatRaw(file.handle(), "", AT_EMPTY_PATH, stat);
  if (result < 0) return HandleError(result, "stat", file.handle());
  return stat;
}

Result<FileStat> RealFs::StatAt(const Fd& dir, NameRef name) {
  FileStat stat;
  int result = StatRaw(dir.handle(), name.c_str(), AT_SYMLINK_NOFOLLOW, stat);
  if (result < 0) return NameError(result, "stat", dir.handle(), name.bytes());
  return stat;
}

Result<std::vector<DirEntry>> RealFs::List(const Fd& dir) {
  // A description of our own: the position in the directory belongs to it, and two
  // threads listing one handle would each get half.
  Raw own(OpenRaw(dir.handle(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (own.get() < 0) return HandleError(own.get(), "list", dir.handle());

  std::vector<DirEntry> entries;
  alignas(dirent64) char buffer[32 * 1024];
  for (;;) {
    ssize_t got = Retry([&] { return getdents64(own.get(), buffer, sizeof buffer); });
    if (got < 0) return HandleError(got, "list", dir.handle());
    if (got == 0) return entries;
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0)
        continue;
      entries.push_back({entry->d_name, TypeOfEntry(entry->d_type), entry->d_ino});
    }
  }
}

Result<std::string> RealFs::ReadLink(const Fd& dir, NameRef name) {
  std::string target(256, '\0');
  for (;;) {
    ssize_t got = Retry([&] {
      return readlinkat(dir.handle(), name.c_str(), target.data(), target.size());
    });
    if (got < 0) return NameError(got, "readlink", dir.handle(), name.bytes());
    if (static_cast<size_t>(got) < target.size()) {
      target.resize(static_cast<size_t>(got));
      return target;
    }
    target.resize(target.size() * 4);
  }
}

Result<FsInfo> RealFs::Info(const Fd& any) {
  struct statfs st {};
  int result = Retry([&] { return fstatfs(any.handle(), &st); });
  if (result < 0) return HandleError(result, "statfs", any.handle());
  uint64_t block = static_cast<uint64_t>(st.f_frsize != 0 ? st.f_frsize : st.f_bsize);
  FsInfo info;
  info.magic = static_cast<uint64_t>(st.f_type);
  info.total_bytes = st.f_blocks * block;
  info.free_bytes = st.f_bavail * block;
  info.free_inodes = st.f_ffree;
  info.read_only = (static_cast<uint64_t>(st.f_flags) & ST_RDONLY) != 0;
  return info;
}

// Where its data begins is of no interest, nor that it has none (ENXIO).
Status RealFs::AwaitLength(const Fd& file) {
  const int result =
      Retry([&] { return lseek(file.handle(), 0, SEEK_DATA) < 0 ? -1 : 0; });
  if (result == -EBADF) return HandleError(result, "seek", file.handle());
  return Ok();
}

// --- names ---------------------------------------------------------------------------

Status RealFs::MakeDir(const Fd& dir, const Name& name, uint32_t mode) {
  int made = Retry(
      [&] { return mkdirat(dir.handle(), name.c_str(), static_cast<mode_t>(mode)); });
  if (made < 0) return NameError(made, "mkdir", dir.handle(), name.bytes());

  auto fix = [&] {
    struct stat st {};
    int found = Retry(
        [&] { return fstatat(dir.handle(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW); });
    if (found < 0) return found;
    if ((st.st_mode & 07777) == mode) return 0;
    // By descriptor: chmod by name would follow a symlink that took the name meanwhile.
    // O_PATH, because the umask may have left us no permission to open it otherwise.
    Raw opened(
        OpenComponent(dir.handle(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.get() >= 0)
      return Retry([&] { return fchmod(opened.get(), static_cast<mode_t>(mode)); });
    opened.Reset(
        OpenComponent(dir.handle(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (opened.get() < 0) return opened.get();
    std::string proc = ProcPath(opened.get());
    return Retry([&] { return chmod(proc.c_str(), static_cast<mode_t>(mode)); });
  };
  if (int fixed = fix(); fixed < 0) {
    unlinkat(dir.handle(), name.c_str(), AT_REMOVEDIR);
    return NameError(fixed, "mkdir", dir.handle(), name.bytes());
  }
  return Ok();
}

Status RealFs::Unlink(const Fd& dir, const Name& name) {
  return Finish(Retry([&] { return unlinkat(dir.handle(), name.c_str(), 0); }),
                "unlink", dir, name);
}

Status RealFs::RemoveDir(const Fd& dir, const Name& name) {
  return Finish(
      Retry([&] { return unlinkat(dir.handle(), name.c_str(), AT_REMOVEDIR); }),
      "rmdir", dir, name);
}

Status RealFs::Symlink(const Fd& dir, const Name& name, std::string_view target) {
  if (target.find('\0') != std::string_view::npos)
    return FsError(EINVAL, "symlink", name.bytes());
  std::string text(target);
  return Finish(
      Retry([&] { return symlinkat(text.c_str(), dir.handle(), name.c_str()); }),
      "symlink", dir, name);
}

Status RealFs::Link(const Fd& from_dir, const Name& from, const Fd& to_dir,
                    const Name& to) {
  return Finish(Retry([&] {
                  return linkat(from_dir.handle(), from.c_str(), to_dir.handle(),
                                to.c_str(), 0);
                }),
                "link", to_dir, to);
}

Status RealFs::Rename(const Fd& from_dir, const Name& from, const Fd& to_dir,
                      const Name& to, RenameHow how) {
  unsigned flags = how == RenameHow::kNoReplace  ? RENAME_NOREPLACE
                   : how == RenameHow::kExchange ? RENAME_EXCHANGE
                                                 : 0;
  return Finish(Retry([&] {
                  return renameat2(from_dir.handle(), from.c_str(), to_dir.handle(),
                                   to.c_str(), flags);
                }),
                "rename", from_dir, from);
}

// --- attributes ----------------------------------------------------------------------

Status RealFs::SetMode(const Fd& file, uint32_t mode) {
  int result = Retry([&] { return fchmod(file.handle(), static_cast<mode_t>(mode)); });
  if (result == -EBADF && file.is_open()) {  // an O_PATH handle
    std::string proc = ProcPath(file.handle());
    result = Retry([&] { return chmod(proc.c_str(), static_cast<mode_t>(mode)); });
    if (result == -ENOENT) result = -EBADF;
  }
  return Finish(result, "chmod", file);
}

Status RealFs::SetOwner(const Fd& file, uint32_t uid, uint32_t gid) {
  return Finish(
      Retry([&] { return fchownat(file.handle(), "", uid, gid, AT_EMPTY_PATH); }),
      "chown", file);
}

Status RealFs::SetTimes(const Fd& file, int64_t atime_ns, int64_t mtime_ns) {
  timespec times[2] = {ToTimespec(atime_ns), ToTimespec(mtime_ns)};
  int result =
      Retry([&] { return utimensat(file.handle(), "", times, AT_EMPTY_PATH); });
  // Kernels before 5.8 know no AT_EMPTY_PATH here.
  if (result == -EINVAL || result == -ENOENT)
    result = Retry([&] { return futimens(file.handle(), times); });
  return Finish(result, "utimens", file);
}

Result<std::vector<std::string>> RealFs::ListXattrs(const Fd& file) {
  std::vector<std::string> names;
  std::string buffer(1024, '\0');
  for (;;) {
    ssize_t got =
        Retry([&] { return flistxattr(file.handle(), buffer.data(), buffer.size()); });
    if (got == -EOPNOTSUPP || got == -ENOSYS) return names;
    if (got == -ERANGE && buffer.size() < XATTR_LIST_MAX) {
      buffer.resize(XATTR_LIST_MAX);
      continue;
    }
    if (got < 0) return SysError(static_cast<int>(-got), "listxattr");
    std::string_view rest(buffer.data(), static_cast<size_t>(got));
    while (!rest.empty()) {
      size_t end = std::min(rest.find('\0'), rest.size());
      names.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return names;
  }
}

Result<Bytes> RealFs::GetXattr(const Fd& file, const std::string& name) {
  Bytes value(256);
  for (;;) {
    ssize_t got = Retry([&] {
      return fgetxattr(file.handle(), name.c_str(), value.data(), value.size());
    });
    if (got == -ERANGE && value.size() < XATTR_SIZE_MAX) {
      value.resize(XATTR_SIZE_MAX);
      continue;
    }
    if (got < 0) return FsError(static_cast<int>(-got), "getxattr", name);
    value.resize(static_cast<size_t>(got));
    return value;
  }
}

Status RealFs::SetXattr(const Fd& file, const std::string& name, ByteSpan value) {
  int result = Retry([&] {
    return fsetxattr(file.handle(), name.c_str(), value.data(), value.size(), 0);
  });
  if (result < 0) return FsError(-result, "setxattr", name);
  return Ok();
}

Status RealFs::RemoveXattr(const Fd& file, const std::string& name) {
  int result = Retry([&] { return fremovexattr(file.handle(), name.c_str()); });
  if (result < 0) return FsError(-result, "removexattr", name);
  return Ok();
}

// --- locks ---------------------------------------------------------------------------

namespace {
int SetLock(const Fd& file, uint64_t byte, short type) {
  struct flock lock {};  // l_pid must be 0
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return Retry([&] { return fcntl(file.handle(), F_OFD_SETLK, &lock); });
}
}  // namespace

Result<bool> RealFs::TryLock(const Fd& file, uint64_t byte, LockMode mode) {
  int result = SetLock(file, byte,
                       mode == LockMode::kExclusive ? short{F_WRLCK} : short{F_RDLCK});
  if (result == -EAGAIN || result == -EACCES) return false;
  if (result < 0) return HandleError(result, "lock", file.handle());
  return true;
}

Status RealFs::Unlock(const Fd& file, uint64_t byte) {
  return Finish(SetLock(file, byte, F_UNLCK), "unlock", file);
}

Result<LeaseOutcome> RealFs::TryLease(const Fd& file, LockMode mode) {
  const int fd = file.handle();
  // Whoever waits for our lease has the kernel tell us; SIGIO would end the process.
  if (fcntl(fd, F_SETSIG, SIGURG) != 0) return HandleError(-errno, "lease", fd);
  const int kind = mode == LockMode::kExclusive ? F_WRLCK : F_RDLCK;
  int result = Retry([&] { return fcntl(fd, F_SETLEASE, kind); });
  if (result == 0) return LeaseOutcome::kHeld;
  switch (-result) {
    case EAGAIN:
      return LeaseOutcome::kInUse;
    case EACCES:  // neither ours nor are we privileged
    case EINVAL:  // no leases here
    case EPERM:
    case ENOTSUP:
    case ENOLCK:
      return LeaseOutcome::kUnavailable;
    default:
      return HandleError(result, "lease", fd);
  }
}

Status RealFs::EndLease(const Fd& file) {
  return Finish(Retry([&] { return fcntl(file.handle(), F_SETLEASE, F_UNLCK); }),
                "end lease of", file);
}

}  // namespace belay
