#include "restore/remove_all.h"

namespace belay {

Status RemoveAll(Fs& fs, const Fd& dir, const Name& name) {
  auto stat = fs.StatAt(dir, name);
  if (!stat.ok())
    return stat.error().code == Errc::kNotFound ? Ok() : Status(stat.error());
  if (stat->type != FileType::kDirectory) return fs.Unlink(dir, name);
  {
    BELAY_TRY(Fd below, fs.Open(dir, name, OpenMode::Directory()));
    // What was forked may be read-only.
    if ((stat->mode & 0700) != 0700) BELAY_OK(fs.SetMode(below, 0700));
    BELAY_TRY(auto listed, fs.List(below));
    for (const DirEntry& entry : listed) {
      BELAY_TRY(const Name inner, Name::Parse(entry.name));
      BELAY_OK(RemoveAll(fs, below, inner));
    }
  }
  return fs.RemoveDir(dir, name);
}

}  // namespace belay
