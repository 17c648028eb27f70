#include "core/place.h"

#include <string>

#include "base/escape.h"
#include "base/machine.h"
#include "git/repository.h"

namespace belay {

namespace {

template <class... Parts>
std::string Joined(const Parts&... parts) {
  std::string out;
  ((out += parts), ...);
  return out;
}

}  // namespace

Status CheckPlace(Fs& fs, const AbsPath& dir, const Fd& fd, const AbsPath& store_dir,
                  const std::optional<AbsPath>& home, bool force) {
  if (dir.IsWithin(store_dir))
    return dir == store_dir
               ? Error(Errc::kRefused, "Belay's own store cannot protect itself")
               : Error(Errc::kRefused, Joined(EscapeForDisplay(dir.bytes()),
                                              " lies inside Belay's store, ",
                                              EscapeForDisplay(store_dir.bytes())))
                     .WithHint("keep the store elsewhere: set BELAY_HOME");
  BELAY_TRY(FsInfo info, fs.Info(fd));
  // Not even with --force: reading such files may do something, and never ends.
  if (IsPseudoFileSystem(info.magic))
    return Error(Errc::kRefused,
                 Joined(EscapeForDisplay(dir.bytes()), " is on ",
                        FileSystemName(info.magic),
                        ": what is there are not files but the kernel's answers"))
        .WithHint("protect a directory on a disk");
  // /dev looks like any tmpfs; what is mounted below it (/dev/shm) is another matter.
  const AbsPath devices = AbsPath::Literal("/dev");
  if (dir.IsWithin(devices)) {
    BELAY_TRY(FileStat stat, fs.Stat(fd));
    auto there = fs.OpenDir(devices);
    auto dev = there.ok() ? fs.Stat(*there) : there.error();
    if (dev.ok() && dev->dev == stat.dev)
      return Error(Errc::kRefused,
                   Joined(EscapeForDisplay(dir.bytes()), " holds devices, not files"))
          .WithHint("protect a directory on a disk");
  }
  if (force) return Ok();
  std::string what;
  if (dir.is_root()) what = "the whole machine";
  if (home) {
    auto real = fs.RealPath(*home);
    const AbsPath& at = real.ok() ? *real : *home;
    if (dir == at)
      what = "your home directory";
    else if (what.empty() && at.IsWithin(dir))
      what = "a directory that holds your home directory";
  }
  // A rollback in there would take commits back behind git's back.
  for (AbsPath at = dir; what.empty() && !at.is_root(); at = at.parent()) {
    auto opened = fs.OpenDir(at);
    if (!opened.ok()) break;
    auto git = IsGitDirectory(fs, *opened);
    if (git.ok() && *git)
      what = at == dir ? "a git directory" : "inside a git directory";
  }
  if (what.empty()) return Ok();
  return Error(Errc::kRefused,
               Joined("that is ", what, " (", EscapeForDisplay(dir.bytes()), ")"))
      .WithHint("protect the project's own directory, or give --force");
}

}  // namespace belay
