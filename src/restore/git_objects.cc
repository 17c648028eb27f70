#include "restore/git_objects.h"

#include "base/mutant.h"

namespace belay {

namespace {

constexpr size_t kMaxStaged = size_t{256} << 20;

Name Temporary(const RecordId& operation) {
  return Name::Literal(".belay-object-" + operation.text());
}

// Whole and flushed, as `temporary` in `dir`.
Status WriteTemporary(Fs& fs, const Fd& dir, const Name& temporary,
                      const FileStat& around, ByteSpan bytes) {
  // One that a crash left may be read-only by then.
  Status gone = fs.Unlink(dir, temporary);
  if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  BELAY_TRY(Fd file, fs.Open(dir, temporary, OpenMode::CreateNew(0644)));
  BELAY_OK(WriteFull(fs, file, 0, bytes));
  BELAY_TRY(FileStat stat, fs.Stat(file));
  if (stat.uid != around.uid || stat.gid != around.gid)
    BELAY_OK(fs.SetOwner(file, around.uid, around.gid));
  BELAY_OK(fs.SetMode(file, 0444));
  BELAY_OK(fs.Sync(file));
  return file.Close();
}

}  // namespace

Status WriteGitObjects(Store& store, const Fd& dir, const GitMove& move,
                       const RecordId& operation) {
  Fs& fs = store.fs();
  const Name temporary = Temporary(operation);
  BELAY_TRY(FileStat around, fs.Stat(dir));
  for (const GitMove::Object& object : move.objects) {
    BELAY_TRY(Fd objects,
              fs.Open(dir, Name::Literal("objects"), OpenMode::Directory()));
    BELAY_TRY(Name fan, Name::Parse(object.hex.substr(0, 2)));
    BELAY_TRY(Name name, Name::Parse(object.hex.substr(2)));
    Status made = fs.MakeDir(objects, fan, around.mode & 0777);
    if (!made.ok() && made.error().code != Errc::kExists) return made;
    BELAY_TRY(Fd in, fs.Open(objects, fan, OpenMode::Directory()));
    if (!fs.StatAt(in, name).ok()) {
      BELAY_TRY(Bytes content, store.ReadContentBytes(object.content, kMaxStaged));
      BELAY_TRY(LooseObject loose, MakeLooseBlob(move.hash, content));
      if (loose.hex != object.hex)
        return Error(Errc::kCorrupt, "what was staged as " + object.hex.substr(0, 7) +
                                         " is not what was kept of it");
      BELAY_OK(WriteTemporary(fs, dir, temporary, around, loose.file));
      Status placed = fs.Rename(dir, temporary, in, name, RenameHow::kNoReplace);
      if (!placed.ok() && placed.error().code != Errc::kExists) return placed;
      if (!placed.ok()) BELAY_OK(fs.Unlink(dir, temporary));
    }
    // Also of one that a run before this one placed: its name may not be durable yet.
    BELAY_OK(fs.Sync(in));
    BELAY_OK(fs.Sync(objects));
  }
  return Ok();
}

Status TidyGitObjects(Fs& fs, const Fd& dir, const RecordId& operation) {
  if (BELAY_MUTANT("git-leaves-object-files")) return Ok();
  Status gone = fs.Unlink(dir, Temporary(operation));
  if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  return Ok();
}

}  // namespace belay
