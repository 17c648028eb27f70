#include "base/mem_fs.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/mem_disk_internal.h"
#include "base/tree_text.h"

namespace belay {

namespace mem {
struct OpenFile {
  Ino ino = 0;
  OpenMode::Access access = OpenMode::Access::kRead;
  bool dead = false;  // opened before a Crash()
  size_t handles = 1;
  std::optional<LockMode> lease = {};
};
}  // namespace mem

using mem::Inode;
using mem::OpenFile;

namespace {

using Access = OpenMode::Access;
constexpr int kMaxSymlinks = 40;
constexpr uint64_t kMaxFile = uint64_t{1} << 30;  // memory, not a limit of the format

bool Readable(const OpenFile& file) {
  return file.access != Access::kWrite && file.access != Access::kPath;
}
bool Writable(const OpenFile& file) {
  return file.access == Access::kWrite || file.access == Access::kReadWrite;
}

Status Done(int sys, std::string_view operation, const Name& name) {
  if (sys != 0) return FsError(sys, operation, name.bytes());
  return Ok();
}

// What RealFs refuses before asking the kernel.
bool IsValidMode(const OpenMode& mode) {
  if (mode.access == Access::kDirectory || mode.access == Access::kPath)
    return !mode.create && !mode.exclusive && !mode.truncate;
  if (mode.access == Access::kRead && mode.truncate) return false;
  return mode.create || !mode.exclusive;
}

}  // namespace

std::string CrashPolicy::Text() const {
  switch (kind) {
    case Kind::kKeepAll:
      return "keep all";
    case Kind::kDropUnsynced:
      return "drop unsynced";
    case Kind::kTear:
      return "tear seed " + std::to_string(seed);
  }
  return "?";
}

MemFs::MemFs() : MemFs(Options{}) {}
MemFs::MemFs(const Options& options)
    : MemFs(options, std::make_unique<mem::MemDisk>(), options.start_ns) {
  Inode& root = disk_->At(mem::kRoot);
  root.meta.uid = options.uid;
  root.meta.gid = options.gid;
  root.meta.mtime_ns = options.start_ns;
  root.durable_meta = root.meta;
  root.ctime_ns = options.start_ns;
}
MemFs::MemFs(const Options& options, std::unique_ptr<mem::MemDisk> disk, int64_t now_ns)
    : options_(options), disk_(std::move(disk)), now_ns_(now_ns) {}
MemFs::~MemFs() = default;

// --- for tests -----------------------------------------------------------------------

void MemFs::Crash(const CrashPolicy& policy) {
  std::lock_guard lock(mutex_);
  for (auto& [handle, file] : handles_) file->dead = true;
  mem::CrashKind kind =
      policy.kind == CrashPolicy::Kind::kKeepAll        ? mem::CrashKind::kKeepAll
      : policy.kind == CrashPolicy::Kind::kDropUnsynced ? mem::CrashKind::kDropUnsynced
                                                        : mem::CrashKind::kTear;
  disk_->Crash(kind, policy.seed);
}

std::unique_ptr<MemFs> MemFs::Clone() const {
  std::lock_guard lock(mutex_);
  return std::unique_ptr<MemFs>(
      new MemFs(options_, std::make_unique<mem::MemDisk>(*disk_), now_ns_));
}

std::string MemFs::TreeText() {
  auto root = OpenDir(AbsPath::Literal("/"));
  if (!root.ok()) return root.error().what;
  auto text = belay::TreeText(*this, *root);
  return text.ok() ? *text : text.error().what;
}

size_t MemFs::open_handles() const {
  std::lock_guard lock(mutex_);
  return handles_.size();
}
uint64_t MemFs::used_bytes() const {
  std::lock_guard lock(mutex_);
  return disk_->used_bytes();
}
uint64_t MemFs::used_inodes() const {
  std::lock_guard lock(mutex_);
  return disk_->used_inodes();
}
void MemFs::SetCapacity(uint64_t bytes, uint64_t inodes) {
  std::lock_guard lock(mutex_);
  options_.capacity_bytes = bytes;
  options_.capacity_inodes = inodes;
}
void MemFs::SetReadOnly(bool read_only) {
  std::lock_guard lock(mutex_);
  options_.read_only = read_only;
}
void MemFs::AdvanceTime(int64_t nanos) {
  std::lock_guard lock(mutex_);
  now_ns_ += nanos;
}
void MemFs::SetTick(int64_t nanos) {
  std::lock_guard lock(mutex_);
  options_.tick_ns = nanos;
}

Status MemFs::MakeSpecial(const Fd& dir, const Name& name, FileType type,
                          uint32_t mode) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  Ino made = 0;
  int sys = HandleDir(dir, at);
  if (sys == 0) sys = CanAdd(at, name.bytes());
  if (sys == 0) sys = Create(at, name.bytes(), type, mode, made);
  return Done(sys, "mknod", name);
}

Status MemFs::SetMountRoot(const Fd& dir, const Name& name, bool mounted) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return FsError(sys, "mount", name.bytes());
  Ino ino = disk_->Lookup(disk_->At(at), name.bytes());
  if (ino == 0) return FsError(ENOENT, "mount", name.bytes());
  disk_->At(ino).mount_root = mounted;
  return Ok();
}

Status MemFs::SetImmutable(const Fd& dir, const Name& name, bool immutable) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return FsError(sys, "chattr", name.bytes());
  Ino ino = disk_->Lookup(disk_->At(at), name.bytes());
  if (ino == 0) return FsError(ENOENT, "chattr", name.bytes());
  disk_->At(ino).immutable = immutable;
  return Ok();
}

// --- shared pieces -------------------------------------------------------------------

int MemFs::Handle(const Fd& file, OpenFile*& out) {
  auto it = handles_.find(file.handle());
  if (it == handles_.end()) return EBADF;
  if (it->second->dead) return EIO;
  out = it->second.get();
  return 0;
}

int MemFs::HandleDir(const Fd& dir, Ino& ino) {
  OpenFile* file = nullptr;
  if (int sys = Handle(dir, file)) return sys;
  if (!disk_->At(file->ino).is_dir()) return ENOTDIR;
  ino = file->ino;
  return 0;
}

int64_t MemFs::Tick() { return now_ns_ += options_.tick_ns; }

void MemFs::Touch(Ino dir) {
  Inode& node = disk_->At(dir);
  node.meta.mtime_ns = node.ctime_ns = Tick();
}

Fd MemFs::NewHandle(Ino ino, Access access) {
  auto file = std::make_shared<OpenFile>();
  file->ino = ino;
  file->access = access;
  ++disk_->At(ino).opens;
  int handle = next_handle_++;
  handles_.emplace(handle, std::move(file));
  return Fd(*this, handle);
}

FileStat MemFs::StatOf(Ino ino) {
  const Inode& node = disk_->At(ino);
  FileStat stat;
  stat.type = node.type;
  stat.mode = node.meta.mode;
  stat.uid = node.meta.uid;
  stat.gid = node.meta.gid;
  stat.nlink = node.nlink;
  stat.dev = 0x6d656d;
  stat.ino = ino;
  stat.size = node.size();
  stat.allocated = (stat.size + 511) / 512 * 512;
  stat.mtime_ns = node.meta.mtime_ns;
  stat.ctime_ns = node.ctime_ns;
  stat.mount_root = node.mount_root;
  stat.mount_known = true;
  stat.immutable = node.immutable;
  return stat;
}

int MemFs::CanAdd(Ino dir, std::string_view name) {
  const Inode& node = disk_->At(dir);
  if (disk_->Lookup(node, name) != 0) return EEXIST;
  if (options_.read_only) return EROFS;
  if (node.nlink == 0) return ENOENT;  // the directory was removed under its handle
  if (node.immutable) return EPERM;
  return 0;
}

int MemFs::Create(Ino dir, std::string_view name, FileType type, uint32_t mode,
                  Ino& ino) {
  if (disk_->used_inodes() >= options_.capacity_inodes) return ENOSPC;
  mem::Meta meta;
  meta.mode = mode & 07777;
  meta.uid = options_.uid;
  meta.gid = options_.gid;
  meta.mtime_ns = Tick();
  ino = disk_->NewInode(type, meta, meta.mtime_ns);
  disk_->At(ino).parent = dir;
  disk_->Apply({{dir, std::string(name), ino}, {}});
  Touch(dir);
  return 0;
}

// One name of `ino` is gone.
void MemFs::DropName(Ino ino) {
  Inode& node = disk_->At(ino);
  node.nlink = node.is_dir() ? 0 : node.nlink - 1;
  node.ctime_ns = now_ns_;
  disk_->MaybeRelease(ino);
}

bool MemFs::IsAncestor(Ino ancestor, Ino of) {
  while (of != ancestor) {
    const Inode* node = disk_->Find(of);
    if (of == mem::kRoot || node == nullptr) return false;
    of = node->parent;
  }
  return true;
}

// --- opening -------------------------------------------------------------------------

// Follows symlinks everywhere; `clean` becomes the path without them.
int MemFs::Walk(std::string_view abs, int depth, std::string& clean, Ino& ino) {
  if (depth > kMaxSymlinks) return ELOOP;
  std::vector<std::pair<std::string, Ino>> at;  // below the root
  std::string rest(abs);
  while (!rest.empty()) {
    size_t slash = rest.find('/');
    std::string part = rest.substr(0, slash);
    rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
    const Inode& dir = disk_->At(at.empty() ? mem::kRoot : at.back().second);
    if (!dir.is_dir()) return ENOTDIR;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!at.empty()) at.pop_back();
      continue;
    }
    Ino next = disk_->Lookup(dir, part);
    if (next == 0) return ENOENT;
    const Inode& node = disk_->At(next);
    if (node.type != FileType::kSymlink) {
      at.emplace_back(part, next);
      continue;
    }
    if (++depth > kMaxSymlinks) return ELOOP;
    if (node.target.starts_with('/')) at.clear();
    rest = rest.empty() ? node.target : node.target + "/" + rest;
  }
  ino = at.empty() ? mem::kRoot : at.back().second;
  clean.clear();
  for (const auto& [name, unused] : at) clean += "/" + name;
  if (clean.empty()) clean = "/";
  return 0;
}

Result<Fd> MemFs::OpenDir(const AbsPath& path) {
  std::lock_guard lock(mutex_);
  std::string clean;
  Ino ino = 0;
  int sys = Walk(path.bytes(), 0, clean, ino);
  if (sys == 0 && !disk_->At(ino).is_dir()) sys = ENOTDIR;
  if (sys != 0) return FsError(sys, "open", path.bytes());
  return NewHandle(ino, Access::kDirectory);
}

Result<AbsPath> MemFs::RealPath(const AbsPath& path) {
  std::lock_guard lock(mutex_);
  std::string clean;
  Ino ino = 0;
  if (int sys = Walk(path.bytes(), 0, clean, ino))
    return FsError(sys, "resolve", path.bytes());
  return AbsPath::Parse(clean);
}

int MemFs::OpenAt(Ino dir, std::string_view name, const OpenMode& mode, Ino& ino) {
  ino = disk_->Lookup(disk_->At(dir), name);
  if (ino == 0) {
    if (!mode.create) return ENOENT;
    if (int sys = CanAdd(dir, name)) return sys;
    return Create(dir, name, FileType::kRegular, mode.mode, ino);
  }
  if (mode.exclusive) return EEXIST;
  Inode& node = disk_->At(ino);
  if (node.type == FileType::kSymlink && mode.access != Access::kPath) return ELOOP;
  if (mode.access == Access::kDirectory && !node.is_dir()) return ENOTDIR;
  bool writes = mode.access == Access::kWrite || mode.access == Access::kReadWrite;
  if (node.is_dir() && writes) return EISDIR;
  if (writes && options_.read_only) return EROFS;
  if (writes && node.immutable) return EPERM;
  if (mode.access != Access::kPath) {
    for (const auto& [handle, file] : handles_)
      if (file->ino == ino && file->lease &&
          (writes || *file->lease == LockMode::kExclusive))
        return EAGAIN;
  }
  if (mode.truncate && node.type == FileType::kRegular) {
    if (node.size() != 0) disk_->Truncate(node, 0);
    node.meta.mtime_ns = node.ctime_ns = Tick();
  }
  return 0;
}

Result<Fd> MemFs::Open(const Fd& dir, NameRef name, const OpenMode& mode) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  Ino ino = 0;
  int sys = IsValidMode(mode) ? HandleDir(dir, at) : EINVAL;
  if (sys == 0) sys = OpenAt(at, name.bytes(), mode, ino);
  if (sys != 0) return FsError(sys, "open", name.bytes());
  return NewHandle(ino, mode.access);
}

Result<Fd> MemFs::OpenBeneath(const Fd& root, const RelPath& path,
                              const OpenMode& mode) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  Ino ino = 0;
  int sys = IsValidMode(mode) ? HandleDir(root, at) : EINVAL;
  auto parts = path.Components();
  for (size_t i = 0; sys == 0 && i + 1 < parts.size(); ++i) {
    Ino next = disk_->Lookup(disk_->At(at), parts[i]);
    if (next == 0)
      sys = ENOENT;
    else if (disk_->At(next).type == FileType::kSymlink)
      sys = ELOOP;
    else if (!disk_->At(next).is_dir())
      sys = ENOTDIR;
    at = next;
  }
  if (sys == 0) sys = OpenAt(at, parts.back(), mode, ino);
  if (sys != 0) return FsError(sys, "open", path.bytes());
  return NewHandle(ino, mode.access);
}

Result<Fd> MemFs::Duplicate(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "dup");
  ++open->handles;
  int handle = next_handle_++;
  handles_.emplace(handle, handles_.at(file.handle()));
  return Fd(*this, handle);
}

Status MemFs::Close(int handle) {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(handle);
  if (it == handles_.end()) return SysError(EBADF, "close");
  std::shared_ptr<OpenFile> file = std::move(it->second);
  handles_.erase(it);
  if (--file->handles > 0 || file->dead) return Ok();
  Inode& node = disk_->At(file->ino);
  for (auto& [byte, holders] : node.locks)
    std::erase_if(holders, [&](const auto& h) { return h.owner == file.get(); });
  --node.opens;
  disk_->MaybeRelease(file->ino);
  return Ok();
}

// --- bytes ---------------------------------------------------------------------------

Result<size_t> MemFs::Read(const Fd& file, uint64_t offset, std::span<std::byte> out) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "read");
  if (!Readable(*open)) return SysError(EBADF, "read");
  const Inode& node = disk_->At(open->ino);
  if (node.is_dir()) return SysError(EISDIR, "read");
  if (offset > INT64_MAX) return SysError(EINVAL, "read");
  if (node.data == nullptr || offset >= node.data->size()) return size_t{0};
  size_t at = static_cast<size_t>(offset);
  size_t count = std::min(out.size(), node.data->size() - at);
  std::copy_n(node.data->begin() + static_cast<ptrdiff_t>(at), count, out.begin());
  return count;
}

Result<size_t> MemFs::Write(const Fd& file, uint64_t offset, ByteSpan bytes) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "write");
  if (!Writable(*open)) return SysError(EBADF, "write");
  Inode& node = disk_->At(open->ino);
  if (node.data == nullptr) return SysError(EINVAL, "write");
  if (options_.read_only) return SysError(EROFS, "write");
  if (offset > INT64_MAX) return SysError(EINVAL, "write");
  if (bytes.empty()) return size_t{0};
  uint64_t end = offset + bytes.size();
  if (end > kMaxFile) return SysError(EFBIG, "write");
  uint64_t used = disk_->used_bytes();
  uint64_t room = options_.capacity_bytes > used ? options_.capacity_bytes - used : 0;
  if (end > node.size() && end - node.size() > room) {
    // What fits is written, as the kernel does; the next call then has nothing left.
    if (node.size() + room <= offset) return SysError(ENOSPC, "write");
    bytes = bytes.first(static_cast<size_t>(node.size() + room - offset));
  }
  disk_->Write(node, offset, bytes);
  node.meta.mtime_ns = node.ctime_ns = Tick();
  return bytes.size();
}

Status MemFs::Truncate(const Fd& file, uint64_t size) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "truncate");
  if (open->access == Access::kPath) return SysError(EBADF, "truncate");
  Inode& node = disk_->At(open->ino);
  if (!Writable(*open) || node.data == nullptr || size > INT64_MAX)
    return SysError(EINVAL, "truncate");
  if (options_.read_only) return SysError(EROFS, "truncate");
  if (size > kMaxFile) return SysError(EFBIG, "truncate");
  uint64_t used = disk_->used_bytes() - node.size();
  if (size > node.size() && used + size > options_.capacity_bytes)
    return SysError(ENOSPC, "truncate");
  disk_->Truncate(node, size);
  node.meta.mtime_ns = node.ctime_ns = Tick();
  return Ok();
}

Status MemFs::ShareBlocks(const Fd& from, const Fd& to) {
  constexpr const char* kWhat = "share the blocks of";
  std::lock_guard lock(mutex_);
  OpenFile *source = nullptr, *open = nullptr;
  if (int sys = Handle(from, source)) return SysError(sys, kWhat);
  if (int sys = Handle(to, open)) return SysError(sys, kWhat);
  if (!Readable(*source) || !Writable(*open)) return SysError(EBADF, kWhat);
  const Inode& theirs = disk_->At(source->ino);
  Inode& node = disk_->At(open->ino);
  if (theirs.data == nullptr || node.data == nullptr || source->ino == open->ino)
    return SysError(EINVAL, kWhat);
  if (!options_.shares_blocks) return SysError(EOPNOTSUPP, kWhat);
  if (options_.read_only) return SysError(EROFS, kWhat);
  const uint64_t used = disk_->used_bytes() - node.size();
  if (used + theirs.size() > options_.capacity_bytes) return SysError(ENOSPC, kWhat);
  const Bytes content(theirs.data->begin(), theirs.data->end());
  disk_->Truncate(node, 0);
  disk_->Write(node, 0, content);
  node.meta.mtime_ns = node.ctime_ns = Tick();
  return Ok();
}

Status MemFs::SyncData(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "fdatasync");
  if (open->access == Access::kPath) return SysError(EBADF, "fdatasync");
  Inode& node = disk_->At(open->ino);
  disk_->SyncData(node);
  if (node.is_dir()) disk_->SyncDir(open->ino);
  return Ok();
}

Status MemFs::Sync(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "fsync");
  if (open->access == Access::kPath) return SysError(EBADF, "fsync");
  Inode& node = disk_->At(open->ino);
  disk_->SyncData(node);
  disk_->SyncMeta(node);
  if (node.is_dir()) disk_->SyncDir(open->ino);
  return Ok();
}

Status MemFs::SyncAll(const Fd& any) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(any, open)) return SysError(sys, "syncfs");
  disk_->SyncAll();
  return Ok();
}

// --- looking -------------------------------------------------------------------------

Result<FileStat> MemFs::Stat(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "stat");
  return StatOf(open->ino);
}

Result<FileStat> MemFs::StatAt(const Fd& dir, NameRef name) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return FsError(sys, "stat", name.bytes());
  Ino ino = disk_->Lookup(disk_->At(at), name.bytes());
  if (ino == 0) return FsError(ENOENT, "stat", name.bytes());
  return StatOf(ino);
}

Result<std::vector<DirEntry>> MemFs::List(const Fd& dir) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return SysError(sys, "list");
  const Inode& node = disk_->At(at);
  if (node.nlink == 0) return SysError(ENOENT, "list");
  std::vector<DirEntry> entries;
  entries.reserve(node.entries.size());
  for (const auto& [name, ino] : node.entries)
    entries.push_back({name, disk_->At(ino).type, ino});
  return entries;
}

Result<std::string> MemFs::ReadLink(const Fd& dir, NameRef name) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return FsError(sys, "readlink", name.bytes());
  Ino ino = disk_->Lookup(disk_->At(at), name.bytes());
  if (ino == 0) return FsError(ENOENT, "readlink", name.bytes());
  const Inode& node = disk_->At(ino);
  if (node.type != FileType::kSymlink) return FsError(EINVAL, "readlink", name.bytes());
  return node.target;
}

// Lengths and times change at once here.
Status MemFs::AwaitLength(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "seek");
  if (open->access == Access::kPath) return SysError(EBADF, "seek");
  return Ok();
}

Result<FsInfo> MemFs::Info(const Fd& any) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(any, open)) return SysError(sys, "statfs");
  auto left = [](uint64_t capacity, uint64_t used) {
    return capacity > used ? capacity - used : 0;
  };
  FsInfo info;
  info.magic = options_.magic;
  info.total_bytes = options_.capacity_bytes;
  info.free_bytes = left(options_.capacity_bytes, disk_->used_bytes());
  info.free_inodes = left(options_.capacity_inodes, disk_->used_inodes());
  info.read_only = options_.read_only;
  return info;
}

// --- names ---------------------------------------------------------------------------

Status MemFs::MakeDir(const Fd& dir, const Name& name, uint32_t mode) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  Ino made = 0;
  int sys = HandleDir(dir, at);
  if (sys == 0) sys = CanAdd(at, name.bytes());
  if (sys == 0) sys = Create(at, name.bytes(), FileType::kDirectory, mode, made);
  return Done(sys, "mkdir", name);
}

Status MemFs::Symlink(const Fd& dir, const Name& name, std::string_view target) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  Ino made = 0;
  int sys = 0;
  if (target.find('\0') != std::string_view::npos)
    sys = EINVAL;
  else if (target.empty())
    sys = ENOENT;
  else if (target.size() >= PATH_MAX)
    sys = ENAMETOOLONG;
  if (sys == 0) sys = HandleDir(dir, at);
  if (sys == 0) sys = CanAdd(at, name.bytes());
  if (sys == 0) sys = Create(at, name.bytes(), FileType::kSymlink, 0777, made);
  if (sys == 0) disk_->At(made).target = target;
  return Done(sys, "symlink", name);
}

Status MemFs::Unlink(const Fd& dir, const Name& name) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return FsError(sys, "unlink", name.bytes());
  Ino ino = disk_->Lookup(disk_->At(at), name.bytes());
  int sys = ino == 0                   ? ENOENT
            : options_.read_only       ? EROFS
            : disk_->At(ino).immutable ? EPERM
            : disk_->At(ino).is_dir()  ? EISDIR
                                       : 0;
  if (sys != 0) return FsError(sys, "unlink", name.bytes());
  disk_->Apply({{at, name.bytes(), 0}, {}});
  Touch(at);
  DropName(ino);
  return Ok();
}

Status MemFs::RemoveDir(const Fd& dir, const Name& name) {
  std::lock_guard lock(mutex_);
  Ino at = 0;
  if (int sys = HandleDir(dir, at)) return FsError(sys, "rmdir", name.bytes());
  Ino ino = disk_->Lookup(disk_->At(at), name.bytes());
  int sys = ino == 0                          ? ENOENT
            : options_.read_only              ? EROFS
            : disk_->At(ino).immutable        ? EPERM
            : !disk_->At(ino).is_dir()        ? ENOTDIR
            : !disk_->At(ino).entries.empty() ? ENOTEMPTY
                                              : 0;
  if (sys != 0) return FsError(sys, "rmdir", name.bytes());
  disk_->Apply({{at, name.bytes(), 0}, {}});
  Touch(at);
  DropName(ino);
  return Ok();
}

Status MemFs::Link(const Fd& from_dir, const Name& from, const Fd& to_dir,
                   const Name& to) {
  std::lock_guard lock(mutex_);
  Ino source = 0;
  Ino target = 0;
  Ino ino = 0;
  int sys = HandleDir(from_dir, source);
  if (sys == 0 && (ino = disk_->Lookup(disk_->At(source), from.bytes())) == 0)
    sys = ENOENT;
  if (sys == 0) sys = HandleDir(to_dir, target);
  if (sys == 0) sys = CanAdd(target, to.bytes());
  if (sys == 0 && disk_->At(ino).is_dir()) sys = EPERM;
  if (sys != 0) return FsError(sys, "link", to.bytes());
  disk_->Apply({{target, to.bytes(), ino}, {}});
  Touch(target);
  Inode& node = disk_->At(ino);
  ++node.nlink;
  node.ctime_ns = now_ns_;
  return Ok();
}

// The checks are in the order the kernel makes them (fs/namei.c), so that the same
// wrong call gets the same errno.
int MemFs::RenameLocked(Ino from_dir, const std::string& from, Ino to_dir,
                        const std::string& to, RenameHow how) {
  bool exchange = how == RenameHow::kExchange;
  Ino source = disk_->Lookup(disk_->At(from_dir), from);
  Ino target = disk_->Lookup(disk_->At(to_dir), to);
  if (options_.read_only) return EROFS;
  if (source == 0 || disk_->At(to_dir).nlink == 0) return ENOENT;
  if (disk_->At(from_dir).immutable || disk_->At(to_dir).immutable ||
      disk_->At(source).immutable || (target != 0 && disk_->At(target).immutable))
    return EPERM;
  if (target != 0 && how == RenameHow::kNoReplace) return EEXIST;
  if (target == 0 && exchange) return ENOENT;
  Inode& moved = disk_->At(source);
  if (moved.is_dir() && IsAncestor(source, to_dir)) return EINVAL;
  if (target != 0 && disk_->At(target).is_dir() && IsAncestor(target, from_dir))
    return exchange ? EINVAL : ENOTEMPTY;
  if (source == target) return 0;  // two names of one file: nothing happens
  if (target != 0 && !exchange) {
    const Inode& replaced = disk_->At(target);
    if (moved.is_dir() && !replaced.is_dir()) return ENOTDIR;
    if (!moved.is_dir() && replaced.is_dir()) return EISDIR;
    if (!replaced.entries.empty()) return ENOTEMPTY;
  }

  disk_->Apply({{from_dir, from, exchange ? target : 0}, {to_dir, to, source}});
  Touch(from_dir);
  Touch(to_dir);
  moved.parent = to_dir;
  moved.ctime_ns = now_ns_;
  if (exchange) {
    disk_->At(target).parent = from_dir;
    disk_->At(target).ctime_ns = now_ns_;
  } else if (target != 0) {
    DropName(target);
  }
  return 0;
}

Status MemFs::Rename(const Fd& from_dir, const Name& from, const Fd& to_dir,
                     const Name& to, RenameHow how) {
  std::lock_guard lock(mutex_);
  Ino source = 0;
  Ino target = 0;
  int sys = HandleDir(from_dir, source);
  if (sys == 0) sys = HandleDir(to_dir, target);
  if (sys == 0) sys = RenameLocked(source, from.bytes(), target, to.bytes(), how);
  return Done(sys, "rename", from);
}

// --- attributes ----------------------------------------------------------------------

Status MemFs::SetMode(const Fd& file, uint32_t mode) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "chmod");
  if (options_.read_only) return SysError(EROFS, "chmod");
  Inode& node = disk_->At(open->ino);
  if (node.type == FileType::kSymlink) return SysError(EOPNOTSUPP, "chmod");
  node.meta.mode = mode & 07777;
  node.ctime_ns = Tick();
  return Ok();
}

Status MemFs::SetOwner(const Fd& file, uint32_t uid, uint32_t gid) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "chown");
  if (options_.read_only) return SysError(EROFS, "chown");
  Inode& node = disk_->At(open->ino);
  node.meta.uid = uid;
  node.meta.gid = gid;
  node.ctime_ns = Tick();
  return Ok();
}

Status MemFs::SetTimes(const Fd& file, int64_t /*atime_ns*/, int64_t mtime_ns) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "utimens");
  if (options_.read_only) return SysError(EROFS, "utimens");
  Inode& node = disk_->At(open->ino);
  node.meta.mtime_ns = mtime_ns;
  node.ctime_ns = Tick();
  return Ok();
}

Result<std::vector<std::string>> MemFs::ListXattrs(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "listxattr");
  if (open->access == Access::kPath) return SysError(EBADF, "listxattr");
  std::vector<std::string> names;
  for (const auto& [name, value] : disk_->At(open->ino).meta.xattrs)
    names.push_back(name);
  return names;
}

Result<Bytes> MemFs::GetXattr(const Fd& file, const std::string& name) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return FsError(sys, "getxattr", name);
  if (open->access == Access::kPath) return FsError(EBADF, "getxattr", name);
  const auto& xattrs = disk_->At(open->ino).meta.xattrs;
  auto found = xattrs.find(name);
  if (found == xattrs.end()) return FsError(ENODATA, "getxattr", name);
  return found->second;
}

Status MemFs::SetXattr(const Fd& file, const std::string& name, ByteSpan value) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  int sys = Handle(file, open);
  if (sys == 0 && open->access == Access::kPath) sys = EBADF;
  if (sys == 0 && options_.read_only) sys = EROFS;
  if (sys != 0) return FsError(sys, "setxattr", name);
  Inode& node = disk_->At(open->ino);
  node.meta.xattrs[name] = Bytes(value.begin(), value.end());
  node.ctime_ns = Tick();
  return Ok();
}

Status MemFs::RemoveXattr(const Fd& file, const std::string& name) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  int sys = Handle(file, open);
  if (sys == 0 && open->access == Access::kPath) sys = EBADF;
  if (sys == 0 && options_.read_only) sys = EROFS;
  if (sys != 0) return FsError(sys, "removexattr", name);
  Inode& node = disk_->At(open->ino);
  if (node.meta.xattrs.erase(name) == 0) return FsError(ENODATA, "removexattr", name);
  node.ctime_ns = Tick();
  return Ok();
}

// --- locks ---------------------------------------------------------------------------

Result<bool> MemFs::TryLock(const Fd& file, uint64_t byte, LockMode mode) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "lock");
  bool exclusive = mode == LockMode::kExclusive;
  if (exclusive ? !Writable(*open) : !Readable(*open)) return SysError(EBADF, "lock");
  auto& holders = disk_->At(open->ino).locks[byte];
  for (const auto& holder : holders) {
    if (holder.owner != open && (exclusive || holder.mode == LockMode::kExclusive))
      return false;
  }
  std::erase_if(holders, [&](const auto& h) { return h.owner == open; });
  holders.push_back({open, mode});
  return true;
}

Status MemFs::Unlock(const Fd& file, uint64_t byte) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "unlock");
  if (open->access == Access::kPath) return SysError(EBADF, "unlock");
  auto& holders = disk_->At(open->ino).locks[byte];
  std::erase_if(holders, [&](const auto& h) { return h.owner == open; });
  return Ok();
}

Result<LeaseOutcome> MemFs::TryLease(const Fd& file, LockMode mode) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "lease");
  if (disk_->At(open->ino).type != FileType::kRegular)
    return LeaseOutcome::kUnavailable;
  const bool exclusive = mode == LockMode::kExclusive;
  // As the kernel: a shared one while we ourselves may write is no promise.
  if (open->access == Access::kPath) return SysError(EBADF, "lease");
  if (!exclusive && Writable(*open)) return LeaseOutcome::kInUse;
  for (const auto& [handle, other] : handles_) {
    if (other.get() == open || other->ino != open->ino ||
        other->access == Access::kPath)
      continue;
    if (exclusive || Writable(*other)) return LeaseOutcome::kInUse;
  }
  open->lease = mode;
  return LeaseOutcome::kHeld;
}

Status MemFs::EndLease(const Fd& file) {
  std::lock_guard lock(mutex_);
  OpenFile* open = nullptr;
  if (int sys = Handle(file, open)) return SysError(sys, "end lease of");
  open->lease.reset();
  return Ok();
}

}  // namespace belay
