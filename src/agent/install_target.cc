#include <algorithm>
#include <cerrno>

#include "agent/install_target_internal.h"
#include "agent/jsonc.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "base/replace_file.h"

namespace belay {

namespace {

Name LastName(const AbsPath& path) {
  return RelPath::Literal(std::string_view(path.bytes()).substr(1)).basename();
}

Error Refuse(const std::string& shown, std::string_view why, std::string hint = {}) {
  std::string what = shown;
  what += why;
  return Error(Errc::kRefused, std::move(what))
      .WithHint(hint.empty() ? "nothing was changed" : std::move(hint));
}

// Fills in the directory that holds the file: its real path, or where it would be.
Result<AbsPath> RealParent(Fs& fs, InstallTarget& target) {
  std::vector<Name> missing;  // innermost first
  AbsPath at = target.path.parent();
  for (;;) {
    auto real = fs.RealPath(at);
    if (real.ok()) {
      AbsPath out = *real;
      for (auto name = missing.rbegin(); name != missing.rend(); ++name) {
        out = out.Join(*name);
        target.missing_dirs.push_back(out);
      }
      return out;
    }
    if (real.error().code != Errc::kNotFound || at.is_root())
      return Context(std::move(real).error(), target.shown());
    const Name name = LastName(at);
    auto above = fs.OpenDir(at.parent());
    if (above.ok())
      if (auto link = fs.ReadLink(*above, name); link.ok())
        return Refuse(target.shown(),
                      ": " + EscapeForDisplay(at.bytes()) + " is a symlink to " +
                          EscapeForDisplay(*link) + ", which is not there");
    missing.push_back(name);
    at = at.parent();
  }
}

}  // namespace

std::string InstallTarget::shown() const { return EscapeForDisplay(path.bytes()); }

Result<InstallTarget> LookAtTarget(Fs& fs, const InstallPlaces& places,
                                   const AbsPath& path, bool of_project) {
  InstallTarget target{.path = path, .real = path};
  BELAY_TRY(AbsPath parent, RealParent(fs, target));
  target.real = parent.Join(LastName(path));
  auto within = [&](const AbsPath& real) {
    return !of_project || !places.project || real.IsWithin(*places.project) ||
           BELAY_MUTANT("install-leaves-project");
  };
  if (!within(parent))
    return Refuse(target.shown(), " is not in the project: a symlink leads to " +
                                      EscapeForDisplay(parent.bytes()));
  if (!target.missing_dirs.empty()) return target;
  BELAY_TRY(Fd dir, fs.OpenDir(parent));
  auto stat = fs.StatAt(dir, LastName(path));
  if (!stat.ok() && stat.error().code == Errc::kNotFound) return target;
  if (!stat.ok()) return Context(std::move(stat).error(), target.shown());
  if (stat->type == FileType::kSymlink) {
    BELAY_TRY(std::string link, fs.ReadLink(dir, LastName(path)));
    target.link = link;
    auto real = fs.RealPath(target.real);
    if (!real.ok())
      return Refuse(target.shown(), " is a symlink to " + EscapeForDisplay(link) +
                                        ", which is not there");
    target.real = *real;
    if (!within(target.real))
      return Refuse(target.shown(),
                    " leads out of the project, to " + EscapeForDisplay(link));
    BELAY_TRY(dir, fs.OpenDir(target.real.parent()));
    BELAY_TRY(stat, fs.StatAt(dir, LastName(target.real)));
    if (stat->type == FileType::kRegular && stat->uid != places.uid)
      return Refuse(target.shown(), " is a symlink to " + EscapeForDisplay(link) +
                                        ", which belongs to user " +
                                        std::to_string(stat->uid));
  }
  if (stat->type != FileType::kRegular)
    return Refuse(target.shown(),
                  " is " + std::string(FileTypeName(stat->type)) + ", not a file");
  auto bytes = ReadSmallFile(fs, dir, LastName(target.real), Jsonc::kMaxText);
  if (!bytes.ok()) return Context(std::move(bytes).error(), target.shown());
  target.text = std::string(AsText(*bytes));
  target.stat = *stat;
  return target;
}

Status CheckWritable(Fs& fs, const InstallPlaces& places, const InstallTarget& target) {
  AbsPath existing = target.real.parent();
  if (!target.missing_dirs.empty()) existing = target.missing_dirs.front().parent();
  BELAY_TRY(Fd dir, fs.OpenDir(existing));
  BELAY_TRY(FsInfo info, fs.Info(dir));
  if (info.read_only)
    return Refuse(target.shown(), " is on a file system that cannot be written");
  if (!target.text) return Ok();
  if ((target.stat.mode & 0200) == 0 || target.stat.immutable)
    return Refuse(target.shown(), " is read-only",
                  "make it writable if it is yours to change; nothing was changed");
  if (target.stat.uid != places.uid && places.uid != 0)
    return Refuse(target.shown(),
                  " belongs to user " + std::to_string(target.stat.uid));
  if (target.stat.nlink > 1)
    return Refuse(target.shown(),
                  " has other names (hard links), which would not "
                  "change with it");
  return Ok();
}

Status WriteTarget(Fs& fs, const InstallTarget& target, std::string_view text,
                   uint32_t mode, uint32_t dir_mode) {
  const Name name = LastName(target.real);
  // As it was; only that a program may be run is seen to.
  const uint32_t kept_mode = target.stat.mode | (mode & 0100);
  auto write = [&]() -> Status {
    BELAY_TRY(Fd dir, MakeDirs(fs, target.real.parent(), dir_mode));
    if (!target.text) return ReplaceFile(fs, dir, name, AsBytes(text), mode);
    BELAY_TRY(Fd old, fs.Open(dir, name, OpenMode::Read()));
    BELAY_TRY(std::vector<std::string> attributes, fs.ListXattrs(old));
    return ReplaceFile(
        fs, dir, name, AsBytes(text), kept_mode, [&](const Fd& made) -> Status {
          BELAY_TRY(FileStat now, fs.Stat(made));
          if (now.uid != target.stat.uid || now.gid != target.stat.gid) {
            BELAY_OK(fs.SetOwner(made, target.stat.uid, target.stat.gid));
            BELAY_OK(fs.SetMode(made, kept_mode));  // a change of owner cuts it
          }
          for (const std::string& attribute : attributes) {
            BELAY_TRY(Bytes value, fs.GetXattr(old, attribute));
            // A label of the system's own may not be ours to set; it sets it itself.
            Status set = fs.SetXattr(made, attribute, value);
            if (!set.ok() && !attribute.starts_with("security.")) return set;
          }
          return Ok();
        });
  };
  Status written = write();
  if (!written.ok()) {
    std::vector<std::string> made;
    for (const AbsPath& path : target.missing_dirs) made.push_back(path.bytes());
    (void)RemoveEmptyDirs(fs, std::move(made));
    return Context(std::move(written).error(), target.shown());
  }
  return Ok();
}

Status RemoveTarget(Fs& fs, const InstallTarget& target) {
  BELAY_TRY(Fd dir, fs.OpenDir(target.real.parent()));
  Status removed = fs.Unlink(dir, LastName(target.real));
  if (!removed.ok()) return Context(std::move(removed).error(), target.shown());
  return fs.Sync(dir);
}

std::vector<std::string> RemoveEmptyDirs(Fs& fs, std::vector<std::string> dirs) {
  std::sort(dirs.begin(), dirs.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  dirs.erase(std::unique(dirs.begin(), dirs.end()), dirs.end());
  std::vector<std::string> left;
  for (const std::string& text : dirs) {
    auto path = AbsPath::Parse(text);
    if (!path.ok() || path->is_root()) continue;
    auto above = fs.OpenDir(path->parent());
    if (!above.ok()) continue;
    Status removed = fs.RemoveDir(*above, LastName(*path));
    if (removed.ok())
      (void)fs.Sync(*above);
    else if (removed.error().code != Errc::kNotFound)
      left.push_back(text);
  }
  return left;
}

}  // namespace belay
