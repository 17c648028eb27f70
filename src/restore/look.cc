#include "restore/look.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "restore/paths_internal.h"
#include "scan/scan.h"

namespace belay {

namespace {

PathState WithAttributes(const FileStat& stat, EntryKind kind) {
  PathState state;
  state.kind = kind;
  state.mode = stat.mode;
  state.uid = stat.uid;
  state.gid = stat.gid;
  return state;
}

bool StoodStill(const FileStat& a, const FileStat& b) {
  return a.size == b.size && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}

}  // namespace

bool IsAbsence(const Error& error) {
  // Beneath a mount (EXDEV) is as good as absent: nothing of ours can be there.
  return error.code == Errc::kNotFound || error.sys == ENOTDIR || error.sys == ELOOP ||
         error.sys == EXDEV;
}

Result<ObjectId> PutXattrs(Fs& fs, const Fd& file, ScanSink& sink) {
  BELAY_TRY(std::vector<std::string> names, fs.ListXattrs(file));
  std::erase_if(names, [](const std::string& name) { return !KeepsXattr(name); });
  std::sort(names.begin(), names.end());
  std::vector<std::pair<std::string, Bytes>> all;
  for (std::string& name : names) {
    auto value = fs.GetXattr(file, name);
    if (value.ok())
      all.push_back({std::move(name), std::move(*value)});
    else if (value.error().sys != ENODATA)
      return std::move(value).error();
  }
  if (all.empty()) return ObjectId();
  return sink.PutContent(EncodeXattrs(all));
}

Result<Looked> LookAtFile(Fs& fs, const Fd& file, ScanSink& sink) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    Looked out;
    BELAY_TRY(out.stat, fs.Stat(file));
    if (out.stat.type == FileType::kDirectory) {
      out.state = WithAttributes(out.stat, EntryKind::kDirectory);
      BELAY_TRY(out.state.xattrs, PutXattrs(fs, file, sink));
      return out;
    }
    if (out.stat.type != FileType::kRegular) {
      out.special = true;
      return out;
    }
    out.state = WithAttributes(out.stat, EntryKind::kFile);
    uint64_t offset = 0;
    if (out.stat.size <= kMaxBlob) {
      Bytes content(out.stat.size);
      BELAY_TRY(size_t got, ReadFull(fs, file, 0, content));
      offset = got;
      content.resize(got);
      BELAY_TRY(out.state.id, sink.PutContent(content));
    } else {
      BELAY_TRY(out.state.id,
                sink.PutStream([&](std::span<std::byte> buffer) -> Result<size_t> {
                  BELAY_TRY(size_t got, fs.Read(file, offset, buffer));
                  offset += got;
                  return got;
                }));
    }
    out.state.size = offset;
    BELAY_TRY(out.state.xattrs, PutXattrs(fs, file, sink));
    BELAY_TRY(FileStat after, fs.Stat(file));
    if (StoodStill(out.stat, after) && offset == after.size) return out;
  }
  return Error(Errc::kConflict, "the file changes faster than it can be read");
}

namespace {

// Whether something is mounted on `dir` or on a directory between it and the root: then
// what is below belongs to another disk. (By the mounts, not by device numbers: a btrfs
// subvolume has its own and is ours.)
Result<bool> IsUnderMount(Fs& fs, const Fd& root, const Fd& dir,
                          const std::string& path) {
  BELAY_TRY(FileStat stat, fs.Stat(dir));
  if (stat.mount_root) return true;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    BELAY_TRY(RelPath above, RelPath::Parse(path.substr(0, slash)));
    BELAY_TRY(Fd handle,
              fs.OpenBeneath(root, above, {.access = OpenMode::Access::kPath}));
    BELAY_TRY(stat, fs.Stat(handle));
    if (stat.mount_root) return true;
  }
  return false;
}

}  // namespace

bool Looker::IsDeep(const std::string& path) {
  return !BELAY_MUTANT("deep-from-the-root") &&
         std::count(path.begin(), path.end(), '/') >= static_cast<ptrdiff_t>(kFresh);
}

Result<Fd> Looker::OpenDeep(const std::string& dir) {
  BELAY_TRY(const Fd* above, chain_.At(ParentOf(dir)));
  const std::string name = dir.substr(dir.rfind('/') + 1);
  BELAY_TRY(Fd opened, fs_.Open(*above, NameRef::Known(name), OpenMode::Directory()));
  BELAY_TRY(FileStat stat, fs_.Stat(opened));
  if (stat.mount_root)
    return Error(Errc::kInvalid, EXDEV, dir + " is on another disk, mounted there");
  return opened;
}

Result<Fd> Looker::Open(const std::string& path, const OpenMode& mode) {
  if (!root_.is_open()) return Error(Errc::kNotFound, "the directory is gone");
  BELAY_TRY(RelPath parsed, RelPath::Parse(path));
  if (IsDeep(path)) {
    auto above = chain_.At(ParentOf(path));
    if (above.ok()) return fs_.Open(**above, parsed.basename(), mode);
    if (above.error().sys != EXDEV) return std::move(above).error();
  }
  return fs_.OpenBeneath(root_, parsed, mode);
}

void Looker::Leave(const std::string& path) {
  if (!IsDeep(path)) return Forget();
  if (dir_path_ && (*dir_path_ == path || IsBelow(*dir_path_, path)))
    dir_ = Fd(), dir_path_.reset();
  chain_.Leave(path);
}

Result<Looker::At> Looker::Parent(const std::string& path) {
  if (!root_.is_open()) return Error(Errc::kNotFound, "the directory is gone");
  BELAY_TRY(RelPath parsed, RelPath::Parse(path));
  const size_t slash = path.rfind('/');
  Name name = parsed.basename();
  if (slash == std::string::npos) return At{root_, std::move(name)};
  std::string dir = path.substr(0, slash);
  if (dir_path_ != dir) {
    if (IsDeep(dir)) {
      dir_ = Fd(), dir_path_.reset();
      BELAY_TRY(dir_, OpenDeep(dir));
      dir_path_ = std::move(dir);
      return At{dir_, std::move(name)};
    }
    BELAY_TRY(RelPath below, RelPath::Parse(dir));
    Forget();
    if (BELAY_MUTANT("follow-symlinked-parent")) {
      BELAY_TRY(AbsPath through,
                AbsPath::Parse("/proc/self/fd/" + std::to_string(root_.handle())));
      BELAY_TRY(dir_, fs_.OpenDir(through.Join(below)));
      dir_path_ = std::move(dir);
      return At{dir_, std::move(name)};
    }
    BELAY_TRY(Fd opened, fs_.OpenBeneath(root_, below, OpenMode::Directory()));
    BELAY_TRY(bool elsewhere, IsUnderMount(fs_, root_, opened, dir));
    if (elsewhere)
      return Error(Errc::kInvalid, EXDEV, dir + " is on another disk, mounted there");
    dir_ = std::move(opened);
    dir_path_ = std::move(dir);
  }
  return At{dir_, std::move(name)};
}

Result<std::optional<FileStat>> Looker::Stat(const std::string& path) {
  if (path.empty()) {
    if (!root_.is_open()) return std::optional<FileStat>();
    BELAY_TRY(FileStat stat, fs_.Stat(root_));
    return std::optional(stat);
  }
  auto at = Parent(path);
  if (!at.ok()) {
    if (IsAbsence(at.error())) return std::optional<FileStat>();
    return std::move(at).error();
  }
  auto stat = fs_.StatAt(at->dir, at->name);
  if (stat.ok()) return std::optional(*stat);
  if (IsAbsence(stat.error())) return std::optional<FileStat>();
  return std::move(stat).error();
}

Result<std::optional<Looked>> Looker::Look(const std::string& path, ScanSink& sink) {
  if (path.empty()) {
    BELAY_TRY(auto stat, Stat(path));
    if (!stat) return std::optional<Looked>();
    return std::optional(
        Looked{.stat = *stat, .state = WithAttributes(*stat, EntryKind::kDirectory)});
  }
  auto at = Parent(path);
  if (!at.ok()) {
    if (IsAbsence(at.error())) return std::optional<Looked>();
    return std::move(at).error();
  }
  // What it is may change between two calls: look again then.
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto stat = fs_.StatAt(at->dir, at->name);
    if (!stat.ok()) {
      if (IsAbsence(stat.error())) return std::optional<Looked>();
      return std::move(stat).error();
    }
    if (stat->type == FileType::kSymlink) {
      auto target = fs_.ReadLink(at->dir, at->name);
      if (!target.ok()) {
        if (target.error().code == Errc::kNotFound || target.error().sys == EINVAL)
          continue;
        return std::move(target).error();
      }
      auto again = fs_.StatAt(at->dir, at->name);
      if (!again.ok() || again->ino != stat->ino || again->ctime_ns != stat->ctime_ns)
        continue;
      Looked out{.stat = *stat, .state = WithAttributes(*stat, EntryKind::kSymlink)};
      out.state.target = std::move(*target);
      return std::optional(std::move(out));
    }
    if (stat->type != FileType::kRegular && stat->type != FileType::kDirectory)
      return std::optional(Looked{.stat = *stat, .state = {}, .special = true});
    auto file = fs_.Open(
        at->dir, at->name,
        stat->type == FileType::kDirectory ? OpenMode::Directory() : OpenMode::Read());
    if (!file.ok()) {
      if (IsAbsence(file.error())) continue;
      return std::move(file).error();
    }
    BELAY_TRY(Looked looked, LookAtFile(fs_, *file, sink));
    if (looked.stat.ino != stat->ino) continue;
    looked.stat = *stat;
    return std::optional(std::move(looked));
  }
  return Error(Errc::kConflict, "the path changes faster than it can be looked at");
}

}  // namespace belay
