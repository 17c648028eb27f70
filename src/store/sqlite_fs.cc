#include "store/sqlite_fs.h"

#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/bytes.h"
#include "base/mutant.h"
#include "base/sha256.h"
#include "store/stray_pack.h"

namespace belay {

namespace {

// No exception may pass through SQLite's frames.
template <class Body>
int Guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

constexpr int kSectorSize = 4096;
constexpr int kLongestName = 128;

// SQLite reads and writes its main file by pages, but for a look at the header.
bool IsPage(size_t count, sqlite3_int64 offset) {
  return count >= 512 && std::has_single_bit(count) &&
         static_cast<uint64_t>(offset) % count == 0;
}

// What the last bytes of a page must be: of its content, and of its place, so that a
// page is not taken for another.
uint64_t PageCheck(ByteSpan page, sqlite3_int64 offset) {
  Bytes bytes;
  bytes.reserve(page.size());
  ByteWriter w(bytes);
  w.Raw(page.first(page.size() - SqliteFs::kPageCheckSize));
  w.U64(static_cast<uint64_t>(offset));
  return Check64(bytes);
}

std::string PageName(ByteSpan page, sqlite3_int64 offset) {
  return "page " + std::to_string(static_cast<uint64_t>(offset) / page.size() + 1);
}

}  // namespace

struct SqliteFs::Impl {
  // What we keep for one open file.
  struct Open {
    Impl& owner;
    Fd fd;                   // not open: stands for a file that is not there
    bool has_pages = false;  // with checks: the main file. A WAL has its own.
    bool flush_dir = false;  // the name may not be durable yet
    bool persist_wal = false;
    bool looked_at = false;  // before it is written to: IsPack()
  };
  // SQLite allocates this much per file and hands it over raw.
  struct File {
    sqlite3_file base;
    Open* open;
  };

  Impl(Fs& f, Clock& c, Random& r, const Fd& d) : fs(f), clock(c), random(r), dir(d) {}

  // Remembers `error`; SQLite gets `code`, or "full" when that is what it is.
  int Failed(Error error, int code) {
    if (error.code == Errc::kNoSpace) code = SQLITE_FULL;
    // A symlink or a directory under the name of a file: no fault of the question.
    if (error.code == Errc::kInvalid) error.code = Errc::kIo;
    last_error = std::move(error);
    return code;
  }
  int NotAllowed() {
    return Failed(Error(Errc::kCorrupt, "catalogue: cannot be read without writing"),
                  SQLITE_CORRUPT);
  }
  static Impl& Of(sqlite3_vfs* vfs) { return *static_cast<Impl*>(vfs->pAppData); }
  static Open& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->open; }

  // --- a file
  // --------------------------------------------------------------------------
  static int Close(sqlite3_file* file) {
    return Guarded([&] {
      std::unique_ptr<Open> open(reinterpret_cast<File*>(file)->open);
      auto closed = open->fd.Close();
      if (!closed.ok()) return open->owner.Failed(closed.error(), SQLITE_IOERR_CLOSE);
      return SQLITE_OK;
    });
  }
  static int Read(sqlite3_file* file, void* out, int count, sqlite3_int64 offset) {
    return Guarded([&] {
      Open& open = Of(file);
      std::span<std::byte> span(static_cast<std::byte*>(out),
                                static_cast<size_t>(count));
      if (!open.fd.is_open()) {
        std::ranges::fill(span, std::byte{0});
        return SQLITE_IOERR_SHORT_READ;
      }
      auto got = ReadFull(open.owner.fs, open.fd, static_cast<uint64_t>(offset), span);
      if (!got.ok()) return open.owner.Failed(got.error(), SQLITE_IOERR_READ);
      const bool page = open.has_pages && IsPage(span.size(), offset);
      if (*got == span.size()) return page ? CheckPage(open, span, offset) : SQLITE_OK;
      std::ranges::fill(span.subspan(*got), std::byte{0});  // as SQLite asks for
      // SQLite asks for no page beyond the end that it knows: the file was cut short.
      if (page && open.owner.check_pages && !BELAY_MUTANT("catalogue-trusts-cut-pages"))
        return open.owner.Failed(
            Error(Errc::kCorrupt, PageName(span, offset) + " is cut off"),
            SQLITE_IOERR_READ);
      return SQLITE_IOERR_SHORT_READ;
    });
  }
  static int CheckPage(Open& open, ByteSpan page, sqlite3_int64 offset) {
    if (!open.owner.check_pages || BELAY_MUTANT("catalogue-trusts-pages"))
      return SQLITE_OK;
    if (LoadU64(page.last(kPageCheckSize).data()) == PageCheck(page, offset))
      return SQLITE_OK;
    return open.owner.Failed(
        Error(Errc::kCorrupt, PageName(page, offset) + " is not what was written"),
        SQLITE_IOERR_READ);
  }
  // SQLite takes a WAL that it cannot read for one that it may begin anew. What is a
  // pack is not written to: the catalogue is built anew, and what is there kept.
  static bool IsPack(Open& open) {
    if (std::exchange(open.looked_at, true)) return false;
    std::array<std::byte, 8> first{};
    auto got = ReadFull(open.owner.fs, open.fd, 0, first);
    if (!got.ok() || !BeginsAsPack(ByteSpan(first).first(*got))) return false;
    open.looked_at = false;
    return true;
  }
  static int IsNone(Open& open) {
    return open.owner.Failed(Error(Errc::kCorrupt, "a pack lies in its place"),
                             SQLITE_IOERR_WRITE);
  }
  static int Write(sqlite3_file* file, const void* bytes, int count,
                   sqlite3_int64 offset) {
    return Guarded([&] {
      Open& open = Of(file);
      if (!open.owner.writes) return open.owner.NotAllowed();
      if (!open.has_pages && IsPack(open)) return IsNone(open);
      ByteSpan span(static_cast<const std::byte*>(bytes), static_cast<size_t>(count));
      Bytes page;
      if (open.has_pages && IsPage(span.size(), offset)) {
        page.assign(span.begin(), span.end());
        StoreU64(page.data() + page.size() - kPageCheckSize, PageCheck(page, offset));
        span = page;
      }
      auto done =
          WriteFull(open.owner.fs, open.fd, static_cast<uint64_t>(offset), span);
      if (!done.ok()) return open.owner.Failed(done.error(), SQLITE_IOERR_WRITE);
      return SQLITE_OK;
    });
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    return Guarded([&] {
      Open& open = Of(file);
      if (!open.owner.writes) return open.owner.NotAllowed();
      if (!open.has_pages && IsPack(open)) return IsNone(open);
      auto done = open.owner.fs.Truncate(open.fd, static_cast<uint64_t>(size));
      if (!done.ok()) return open.owner.Failed(done.error(), SQLITE_IOERR_TRUNCATE);
      return SQLITE_OK;
    });
  }
  static int Sync(sqlite3_file* file, int flags) {
    return Guarded([&] {
      Open& open = Of(file);
      Impl& owner = open.owner;
      auto done = (flags & SQLITE_SYNC_DATAONLY) != 0 ? owner.fs.SyncData(open.fd)
                                                      : owner.fs.Sync(open.fd);
      if (done.ok() && open.flush_dir) {
        done = owner.fs.Sync(owner.dir);
        open.flush_dir = false;
      }
      if (done.ok()) return SQLITE_OK;
      owner.flush_failed = true;
      return owner.Failed(done.error(), SQLITE_IOERR_FSYNC);
    });
  }
  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    return Guarded([&] {
      Open& open = Of(file);
      *size = 0;
      if (!open.fd.is_open()) return SQLITE_OK;
      auto stat = open.owner.fs.Stat(open.fd);
      if (!stat.ok()) return open.owner.Failed(stat.error(), SQLITE_IOERR_FSTAT);
      *size = static_cast<sqlite3_int64>(stat->size);
      return SQLITE_OK;
    });
  }
  static int Lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int CheckReservedLock(sqlite3_file*, int* reserved) {
    *reserved = 0;
    return SQLITE_OK;
  }
  static int FileControl(sqlite3_file* file, int op, void* arg) {
    if (op != SQLITE_FCNTL_PERSIST_WAL) return SQLITE_NOTFOUND;
    int& value = *static_cast<int*>(arg);  // negative asks, else sets
    if (value >= 0) Of(file).persist_wal = value != 0;
    value = Of(file).persist_wal ? 1 : 0;
    return SQLITE_OK;
  }
  static int SectorSize(sqlite3_file*) { return kSectorSize; }
  // No promise about what a power cut leaves of a write.
  static int Characteristics(sqlite3_file*) { return 0; }

  // --- the directory
  // -------------------------------------------------------------------
  static int OpenFile(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags,
                      int* out_flags) {
    auto* mine = reinterpret_cast<File*>(file);
    mine->base.pMethods = nullptr;  // until there is something to close
    return Guarded([&] {
      Impl& owner = Of(vfs);
      // Without a name it would be a temporary file, which are to be in memory.
      auto name = Name::Parse(path == nullptr ? "" : path);
      if (!name.ok()) return owner.Failed(name.error(), SQLITE_CANTOPEN);
      OpenMode mode = owner.read_only ? OpenMode::Read() : OpenMode::ReadWrite();
      mode.create = !owner.read_only && (flags & SQLITE_OPEN_CREATE) != 0;
      auto fd = owner.fs.Open(owner.dir, *name, mode);
      if (!fd.ok() && owner.read_only && (flags & SQLITE_OPEN_WAL) != 0 &&
          fd.error().code == Errc::kNotFound)
        fd = Fd();
      if (!fd.ok()) return owner.Failed(fd.error(), SQLITE_CANTOPEN);
      constexpr int kJournals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
      mine->open = new Open{.owner = owner, .fd = std::move(*fd)};
      mine->open->has_pages = (flags & SQLITE_OPEN_MAIN_DB) != 0;
      mine->open->flush_dir = mode.create && (flags & kJournals) != 0;
      mine->base.pMethods = &kMethods;
      if (out_flags != nullptr) *out_flags = flags;
      return SQLITE_OK;
    });
  }
  static int Delete(sqlite3_vfs* vfs, const char* path, int flush_dir) {
    return Guarded([&] {
      Impl& owner = Of(vfs);
      if (!owner.writes) return owner.NotAllowed();
      auto name = Name::Parse(path);
      if (!name.ok()) return owner.Failed(name.error(), SQLITE_IOERR_DELETE);
      auto done = owner.fs.Unlink(owner.dir, *name);
      if (!done.ok()) {
        if (done.error().code == Errc::kNotFound) return SQLITE_IOERR_DELETE_NOENT;
        return owner.Failed(done.error(), SQLITE_IOERR_DELETE);
      }
      if (flush_dir == 0) return SQLITE_OK;
      done = owner.fs.Sync(owner.dir);
      if (done.ok()) return SQLITE_OK;
      owner.flush_failed = true;
      return owner.Failed(done.error(), SQLITE_IOERR_DIR_FSYNC);
    });
  }
  static int Access(sqlite3_vfs* vfs, const char* path, int, int* there) {
    return Guarded([&] {
      Impl& owner = Of(vfs);
      *there = 0;
      auto name = Name::Parse(path);
      if (!name.ok()) return owner.Failed(name.error(), SQLITE_IOERR_ACCESS);
      auto stat = owner.fs.StatAt(owner.dir, *name);
      if (stat.ok()) {
        *there = 1;
      } else if (stat.error().code != Errc::kNotFound) {
        return owner.Failed(stat.error(), SQLITE_IOERR_ACCESS);
      }
      return SQLITE_OK;
    });
  }
  static int FullPathname(sqlite3_vfs*, const char* path, int size, char* out) {
    size_t length = std::strlen(path);
    if (length >= static_cast<size_t>(size)) return SQLITE_CANTOPEN;
    std::memcpy(out, path, length + 1);
    return SQLITE_OK;
  }
  static int Randomness(sqlite3_vfs* vfs, int count, char* out) {
    Of(vfs).random.Fill(
        {reinterpret_cast<std::byte*>(out), static_cast<size_t>(count)});
    return count;
  }
  static int Sleep(sqlite3_vfs* vfs, int micros) {
    Of(vfs).clock.SleepNanos(int64_t{micros} * 1000);
    return micros;
  }
  static int CurrentTimeInt64(sqlite3_vfs* vfs, sqlite3_int64* out) {
    constexpr sqlite3_int64 kUnixEpoch = 210'866'760'000'000;  // julian day 2440587.5
    *out = kUnixEpoch + Of(vfs).clock.WallMillis();
    return SQLITE_OK;
  }
  static int CurrentTime(sqlite3_vfs* vfs, double* out) {
    sqlite3_int64 millis = 0;
    CurrentTimeInt64(vfs, &millis);
    *out = static_cast<double>(millis) / 86'400'000.0;
    return SQLITE_OK;
  }
  static int GetLastError(sqlite3_vfs* vfs, int, char*) {
    const auto& error = Of(vfs).last_error;
    return error ? error->sys : 0;
  }

  static const sqlite3_io_methods kMethods;

  Fs& fs;
  Clock& clock;
  Random& random;
  const Fd& dir;
  bool read_only = false;
  bool writes = false;
  bool check_pages = true;
  bool flush_failed = false;
  std::optional<Error> last_error;
  char vfs_name[40] = {};
  sqlite3_vfs vfs = {};
};

// Version 1: no shared memory, no mapping.
const sqlite3_io_methods SqliteFs::Impl::kMethods = {
    .iVersion = 1,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = FileSize,
    .xLock = Lock,
    .xUnlock = Lock,
    .xCheckReservedLock = CheckReservedLock,
    .xFileControl = FileControl,
    .xSectorSize = SectorSize,
    .xDeviceCharacteristics = Characteristics,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

SqliteFs::SqliteFs(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<SqliteFs>> SqliteFs::Register(Fs& fs, Clock& clock,
                                                     Random& random, const Fd& dir,
                                                     Access access) {
  auto impl = std::make_unique<Impl>(fs, clock, random, dir);
  impl->read_only = access == Access::kReadOnly;
  // The address is unique for as long as the registration lasts.
  std::snprintf(impl->vfs_name, sizeof impl->vfs_name, "belay-%p",
                static_cast<void*>(impl.get()));
  sqlite3_vfs& vfs = impl->vfs;
  vfs.iVersion = 2;
  vfs.szOsFile = sizeof(Impl::File);
  vfs.mxPathname = kLongestName;
  vfs.zName = impl->vfs_name;
  vfs.pAppData = impl.get();
  vfs.xOpen = Impl::OpenFile;
  vfs.xDelete = Impl::Delete;
  vfs.xAccess = Impl::Access;
  vfs.xFullPathname = Impl::FullPathname;
  vfs.xRandomness = Impl::Randomness;
  vfs.xSleep = Impl::Sleep;
  vfs.xCurrentTime = Impl::CurrentTime;
  vfs.xGetLastError = Impl::GetLastError;
  vfs.xCurrentTimeInt64 = Impl::CurrentTimeInt64;
  if (sqlite3_vfs_register(&vfs, /*makeDflt=*/0) != SQLITE_OK)
    return Error(Errc::kIo, "catalogue: SQLite does not start");
  return std::unique_ptr<SqliteFs>(new SqliteFs(std::move(impl)));
}

SqliteFs::~SqliteFs() { sqlite3_vfs_unregister(&impl_->vfs); }

const char* SqliteFs::name() const { return impl_->vfs_name; }
void SqliteFs::AllowWrites(bool allow) { impl_->writes = allow && !impl_->read_only; }
void SqliteFs::CheckPages(bool check) { impl_->check_pages = check; }
bool SqliteFs::flush_failed() const { return impl_->flush_failed; }

std::optional<Error> SqliteFs::TakeError() {
  return std::exchange(impl_->last_error, std::nullopt);
}

}  // namespace belay
