#include "base/fs.h"

#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
#include "base/replace_file.h"

namespace belay {

// --- Fd ------------------------------------------------------------------------------

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (is_open()) (void)Close();
    fs_ = other.fs_;
    handle_ = other.Release();
  }
  return *this;
}

Fd::~Fd() {
  if (is_open()) (void)Close();
}

Status Fd::Close() {
  if (!is_open()) return Ok();
  return fs_->Close(Release());
}

Error FsError(int sys, std::string_view operation, std::string_view name) {
  std::string what(operation);
  what += ' ';
  what += EscapeForDisplay(name);
  return SysError(sys, what);
}

bool IsUnreadable(const Error& error) {
  switch (error.sys) {
    case EIO:
    case EILSEQ:   // the block layer: protection information does not match
    case ENODATA:  // the block layer: medium error
    case EBADMSG:  // ext4, xfs: checksum of metadata
    case EUCLEAN:  // ext4, xfs, btrfs: damaged metadata
      return true;
    default:
      return false;
  }
}

std::string_view FileTypeName(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return "a file";
    case FileType::kDirectory:
      return "a directory";
    case FileType::kSymlink:
      return "a symlink";
    case FileType::kFifo:
      return "a FIFO";
    case FileType::kSocket:
      return "a socket";
    case FileType::kDevice:
      return "a device";
  }
  return "something else";
}

// --- bytes ---------------------------------------------------------------------------

Result<size_t> ReadFull(Fs& fs, const Fd& file, uint64_t offset,
                        std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    auto got = fs.Read(file, offset + done, out.subspan(done));
    if (!got.ok()) {
      if (got.error().sys == EINTR) continue;
      return std::move(got).error();
    }
    if (*got == 0) break;
    done += *got;
  }
  return done;
}

Status ReadExact(Fs& fs, const Fd& file, uint64_t offset, std::span<std::byte> out) {
  BELAY_TRY(size_t got, ReadFull(fs, file, offset, out));
  if (got < out.size()) return Error(Errc::kCorrupt, "read: the file ends early");
  return Ok();
}

Result<Bytes> ReadSmallFile(Fs& fs, const Fd& dir, const Name& name, size_t limit) {
  BELAY_TRY(Fd file, fs.Open(dir, name, OpenMode::Read()));
  FileStat stat;
  return ReadSmallFile(fs, file, name, limit, stat);
}

Result<Bytes> ReadSmallFile(Fs& fs, const Fd& file, const Name& name, size_t limit,
                            FileStat& stat) {
  BELAY_TRY(stat, fs.Stat(file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kInvalid,
                 "read " + EscapeForDisplay(name.bytes()) + ": not a regular file");
  auto too_large = [&] {
    return Error(Errc::kInvalid, "read " + EscapeForDisplay(name.bytes()) +
                                     ": larger than " + std::to_string(limit) +
                                     " bytes");
  };
  if (stat.size > limit) return too_large();
  // One byte more than the size said: a file that grows meanwhile is noticed, and one
  // that stays shows its end in the same read.
  Bytes bytes(static_cast<size_t>(stat.size) + 1);
  for (size_t done = 0;;) {
    auto got = fs.Read(file, done, std::span(bytes).subspan(done));
    if (!got.ok()) {
      if (got.error().sys == EINTR) continue;
      return std::move(got).error();
    }
    done += *got;
    if (done > limit) return too_large();
    // Fewer bytes than asked for are the end of the file where its size says so; else
    // only no bytes are.
    if (*got == 0 || done == stat.size) {
      bytes.resize(done);
      return bytes;
    }
    if (done == bytes.size()) bytes.resize(bytes.size() * 2);
  }
}

Status WriteFull(Fs& fs, const Fd& file, uint64_t offset, ByteSpan bytes) {
  while (!bytes.empty()) {
    auto put = fs.Write(file, offset, bytes);
    if (!put.ok()) {
      if (put.error().sys == EINTR) continue;
      return std::move(put).error();
    }
    // The kernel never does this for a regular file; looping on it would never end.
    if (*put == 0) return Error(Errc::kIo, "write: nothing was written");
    offset += *put;
    bytes = bytes.subspan(*put);
  }
  return Ok();
}

// --- ReplaceFile ---------------------------------------------------------------------

namespace {

constexpr int kTemporaries = 32;

Name TemporaryName(const Name& name, int number) {
  std::string text = name.bytes().substr(0, 240);
  text += '.';
  text += std::to_string(number);
  text += ".tmp";
  return Name::Literal(text);
}

// Removes `name` when the process that made it is dead: its writer holds a lock on it
// from creation to rename, so whoever can lock it is alone. The inode is compared
// because the name may have been renamed away and created again since we opened it;
// once we hold the lock nobody else removes or renames it.
Status RemoveIfAbandoned(Fs& fs, const Fd& dir, const Name& name) {
  BELAY_TRY(Fd old, fs.Open(dir, name, OpenMode::ReadWrite()));
  BELAY_TRY(bool alone, fs.TryLock(old, 0, LockMode::kExclusive));
  if (!alone) return Error(Errc::kBusy, "the temporary is in use");
  BELAY_TRY(FileStat opened, fs.Stat(old));
  BELAY_TRY(FileStat named, fs.StatAt(dir, name));
  if (opened.ino != named.ino || opened.dev != named.dev)
    return Error(Errc::kConflict, "the temporary was replaced");
  return fs.Unlink(dir, name);
}

struct Temporary {
  Fd file;
  Name name;
};

Result<Temporary> CreateTemporary(Fs& fs, const Fd& dir, const Name& name,
                                  uint32_t mode) {
  for (int number = 0;; ++number) {
    Name temporary = TemporaryName(name, number);
    auto file = fs.Open(dir, temporary, OpenMode::CreateNew(mode));
    if (!file.ok() && file.error().code == Errc::kExists &&
        RemoveIfAbandoned(fs, dir, temporary).ok())
      file = fs.Open(dir, temporary, OpenMode::CreateNew(mode));
    if (file.ok()) {
      // Without lock support nobody can take the temporary for abandoned, so an error
      // here harms nothing. Losing the lock means another took it between the two
      // calls.
      auto mine = fs.TryLock(*file, 0, LockMode::kExclusive);
      if (!mine.ok() || *mine) return Temporary{std::move(file).value(), temporary};
    } else if (file.error().code != Errc::kExists) {
      return std::move(file).error();
    }
    if (number + 1 == kTemporaries)
      return Error(Errc::kBusy, "replace " + EscapeForDisplay(name.bytes()) +
                                    ": every temporary name is taken");
  }
}

}  // namespace

Status ReplaceFile(Fs& fs, const Fd& dir, const Name& name, ByteSpan bytes,
                   uint32_t mode) {
  return ReplaceFile(fs, dir, name, bytes, mode, [](const Fd&) { return Ok(); });
}

Status ReplaceFile(Fs& fs, const Fd& dir, const Name& name, ByteSpan bytes,
                   uint32_t mode, const std::function<Status(const Fd&)>& prepare) {
  BELAY_TRY(Temporary temporary, CreateTemporary(fs, dir, name, mode));
  // 1. The content is durable before any reader can find it under `name`.
  // 2. The rename is the one step that changes what a reader sees.
  // 3. The directory is durable before we report success.
  auto publish = [&]() -> Status {
    BELAY_OK(WriteFull(fs, temporary.file, 0, bytes));
    BELAY_OK(prepare(temporary.file));
    if (!BELAY_MUTANT("replace-skip-file-sync")) BELAY_OK(fs.Sync(temporary.file));
    return fs.Rename(dir, temporary.name, dir, name, RenameHow::kReplace);
  };
  if (Status published = publish(); !published.ok()) {
    (void)fs.Unlink(dir, temporary.name);
    return published;
  }
  BELAY_OK(temporary.file.Close());
  if (BELAY_MUTANT("replace-skip-dir-sync")) return Ok();
  return fs.Sync(dir);
}

// --- paths ---------------------------------------------------------------------------

std::optional<std::string> RealPathBelow(Fs& fs, const AbsPath& root,
                                         const AbsPath& path) {
  if (auto real = fs.RealPath(path); real.ok() && *real == root) return std::string();
  std::string rest;
  for (AbsPath at = path; !at.is_root();) {
    const std::string& bytes = at.bytes();
    const std::string name = bytes.substr(bytes.rfind('/') + 1);
    rest = rest.empty() ? name : name + '/' + rest;
    at = at.parent();
    auto real = fs.RealPath(at);
    if (!real.ok()) continue;
    auto below = RelPath::Parse(rest);
    return below.ok() ? real->Join(*below).Below(root) : std::nullopt;
  }
  return path.Below(root);
}

Result<Parent> OpenParent(Fs& fs, const Fd& root, const RelPath& path) {
  const std::string& bytes = path.bytes();
  size_t slash = bytes.rfind('/');
  if (slash == std::string::npos) {
    BELAY_TRY(Fd dir, fs.Duplicate(root));
    return Parent{std::move(dir), path.basename()};
  }
  BELAY_TRY(RelPath above, RelPath::Parse(std::string_view(bytes).substr(0, slash)));
  BELAY_TRY(Fd dir, fs.OpenBeneath(root, above, OpenMode::Directory()));
  return Parent{std::move(dir), path.basename()};
}

Result<Fd> MakeDirs(Fs& fs, const AbsPath& path, uint32_t mode) {
  std::vector<Name> missing;  // innermost first
  AbsPath at = path;
  Result<Fd> dir = fs.OpenDir(at);
  while (!dir.ok() && dir.error().code == Errc::kNotFound && !at.is_root()) {
    missing.push_back(
        RelPath::Literal(std::string_view(at.bytes()).substr(1)).basename());
    at = at.parent();
    dir = fs.OpenDir(at);
  }
  if (dir.ok() && !missing.empty() && !at.is_root()) {
    // Somebody may have been killed after making the last one that is there. A parent
    // that may not be read belongs to the system and was not just made.
    Result<Fd> parent = fs.OpenDir(at.parent());
    if (parent.ok()) BELAY_OK(fs.Sync(*parent));
  }
  while (dir.ok() && !missing.empty()) {
    Status made = fs.MakeDir(*dir, missing.back(), mode);
    if (!made.ok() && made.error().code != Errc::kExists)
      return std::move(made).error();
    if (made.ok()) BELAY_OK(fs.Sync(*dir));
    Result<Fd> below = fs.Open(*dir, missing.back(), OpenMode::Directory());
    missing.pop_back();
    dir = std::move(below);
  }
  return dir;
}

}  // namespace belay
