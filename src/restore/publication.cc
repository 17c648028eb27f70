#include "restore/publication.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "base/sha256.h"
#include "restore/external.h"
#include "restore/ground.h"
#include "restore/paths_internal.h"
#include "restore/remove_all.h"

namespace belay {

namespace {

Name New() { return Name::Literal("new"); }
Name Ready() { return Name::Literal("ready"); }
Name Gone() { return Name::Literal("gone"); }

Error InDir(const PublicationPlace& place, Error error) {
  error.what =
      "the conversation, in " + EscapeForDisplay(place.dir) + ": " + error.what;
  if (error.hint.empty() && (error.sys == EACCES || error.sys == EPERM))
    error.hint = "what goes on is made there: chmod u+w " + ShellWord(place.dir) +
                 ", then run it again";
  return error;
}

Status CheckNotIn(const AbsPath& root, const AbsPath& real) {
  if (!real.IsWithin(root) || BELAY_MUTANT("publish-in-the-root")) return Ok();
  return Error(Errc::kRefused, "the conversation is kept in the directory itself, " +
                                   EscapeForDisplay(real.bytes()) +
                                   ", and goes back and forth with the files there");
}

}  // namespace

Status CheckOutside(Fs& fs, const AbsPath& root, const AbsPath& path) {
  if (auto dir = fs.RealPath(path.parent()); dir.ok()) BELAY_OK(CheckNotIn(root, *dir));
  // The file may be a link into the root.
  auto file = fs.RealPath(path);
  if (file.ok() && !BELAY_MUTANT("a-link-into-the-root-is-outside"))
    BELAY_OK(CheckNotIn(root, *file));
  return Ok();
}

Result<PublicationPlace> PlaceOf(Fs& fs, const AbsPath& root, const ChatPlan& plan) {
  if (!plan.dir || plan.files.empty())
    return Error(Errc::kInvalid, "nothing is to be published");
  BELAY_OK(CheckNotIn(root, *plan.dir));
  PublicationPlace out{.dir = plan.dir->bytes(),
                       .name = plan.folder.empty() ? plan.files[0].name : plan.folder,
                       .folder = !plan.folder.empty()};
  if (!IsExternalPath(out.dir + "/" + out.name))
    return Error(Errc::kRefused, "a conversation cannot be written to " +
                                     EscapeForDisplay(out.dir + "/" + out.name));
  BELAY_TRY(Fd dir, OpenRealDir(fs, *plan.dir));
  BELAY_TRY(const FileStat stat, fs.Stat(dir));
  out.ino = stat.ino;
  return out;
}

Result<bool> Publication::Has(const Fd& dir, const Name& name) {
  auto stat = fs_.StatAt(dir, name);
  if (stat.ok()) return true;
  if (IsAbsence(stat.error())) return false;
  return std::move(stat).error();
}

Result<bool> Publication::Open() {
  if (dir_.is_open()) return true;
  BELAY_TRY(const AbsPath path, AbsPath::Parse(place_.dir));
  auto dir = OpenRealDir(fs_, path);
  if (!dir.ok() && IsAbsence(dir.error())) return false;
  if (!dir.ok()) return std::move(dir).error();
  BELAY_TRY(const FileStat stat, fs_.Stat(*dir));
  if (stat.ino != place_.ino) return false;
  auto stage = fs_.Open(*dir, Name::Literal(stage_name_), OpenMode::Directory());
  if (stage.ok())
    stage_ = std::move(*stage);
  else if (!IsAbsence(stage.error()))
    return std::move(stage).error();
  dir_ = std::move(*dir);
  return true;
}

Status Publication::WriteFile(const Fd& dir, const ChatFile& file, const ChatPlan& plan,
                              uint32_t uid) {
  // What it was called while it was written is nobody's business but ours; in a new
  // directory it has its own name at once.
  BELAY_TRY(const RelPath path, RelPath::Parse(file.name));
  const Name name = place_.folder ? path.basename() : New();
  BELAY_TRY(Fd out, fs_.Open(dir, name, OpenMode::CreateNew(0600)));
  Sha256 hash;
  uint64_t size = 0;
  const ChatFile::Sink sink = [&](ByteSpan bytes) -> Status {
    hash.Update(bytes);
    const uint64_t at = size;
    size += bytes.size();
    return WriteFull(fs_, out, at, bytes);
  };
  BELAY_OK(file.content(sink));
  if (uid == 0) BELAY_OK(fs_.SetOwner(out, plan.uid, plan.gid));
  BELAY_OK(fs_.SetMode(out, file.mode));
  if (!BELAY_MUTANT("publish-unflushed")) BELAY_OK(fs_.Sync(out));
  written_.push_back({file.name, size, hash.Finish()});
  return out.Close();
}

Status Publication::WriteBelow(const Fd& folder, const ChatFile& file,
                               const ChatPlan& plan, uint32_t uid) {
  BELAY_TRY(const RelPath path, RelPath::Parse(file.name));
  const auto parts = path.Components();
  if (parts.size() == 1) return WriteFile(folder, file, plan, uid);
  const Name name = Name::Literal(parts[0]);
  Status made = fs_.MakeDir(folder, name, 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return made;
  BELAY_TRY(Fd inner, fs_.Open(folder, name, OpenMode::Directory()));
  if (uid == 0) BELAY_OK(fs_.SetOwner(inner, plan.uid, plan.gid));
  BELAY_OK(fs_.SetMode(inner, plan.folder_mode));
  ChatFile below = file;
  below.name = file.name.substr(parts[0].size() + 1);
  BELAY_OK(WriteBelow(inner, below, plan, uid));
  // Where it is found again.
  written_.back().name = std::string(parts[0]) + "/" + written_.back().name;
  return fs_.Sync(inner);
}

Status Publication::Prepare(const ChatPlan& plan, uint32_t uid) {
  auto done = [&]() -> Status {
    const Name stage = Name::Literal(stage_name_);
    if (!stage_.is_open()) {
      BELAY_OK(fs_.MakeDir(dir_, stage, 0700));
      BELAY_TRY(stage_, fs_.Open(dir_, stage, OpenMode::Directory()));
    }
    if (!place_.folder) {
      BELAY_OK(WriteFile(stage_, plan.files[0], plan, uid));
    } else {
      BELAY_OK(fs_.MakeDir(stage_, New(), 0700));
      BELAY_TRY(Fd folder, fs_.Open(stage_, New(), OpenMode::Directory()));
      for (const ChatFile& file : plan.files)
        BELAY_OK(WriteBelow(folder, file, plan, uid));
      if (uid == 0) BELAY_OK(fs_.SetOwner(folder, plan.uid, plan.gid));
      BELAY_OK(fs_.SetMode(folder, plan.folder_mode));
      BELAY_OK(fs_.Sync(folder));
    }
    // All of it is durable before it is called ready.
    BELAY_OK(fs_.Sync(stage_));
    BELAY_OK(fs_.Rename(stage_, New(), stage_, Ready(), RenameHow::kNoReplace));
    BELAY_OK(fs_.Sync(stage_));
    return fs_.Sync(dir_);
  }();
  if (!done.ok()) return InDir(place_, std::move(done).error());
  return done;
}

Result<bool> Publication::IsPrepared() {
  if (stage_.is_open()) {
    BELAY_TRY(const bool ready, Has(stage_, Ready()));
    if (ready) return true;
    BELAY_TRY(const bool gone, Has(stage_, Gone()));
    if (gone) return false;  // it was being taken back
    BELAY_TRY(const bool half, Has(stage_, New()));
    if (half && !BELAY_MUTANT("publish-half")) return false;
  }
  BELAY_TRY(const Name name, Name::Parse(place_.name));
  return Has(dir_, name);
}

Status Publication::Publish() {
  BELAY_TRY(const Name name, Name::Parse(place_.name));
  BELAY_TRY(const bool ready, stage_.is_open() ? Has(stage_, Ready()) : false);
  if (!ready) return Ok();  // a run before this one did
  Status moved = fs_.Rename(stage_, Ready(), dir_, name, RenameHow::kNoReplace);
  if (moved.ok()) moved = fs_.Sync(dir_);
  if (moved.ok()) moved = fs_.Sync(stage_);
  if (!moved.ok()) return InDir(place_, std::move(moved).error());
  return moved;
}

Status Publication::Verify() {
  if (written_.empty()) return Ok();  // another run wrote it
  BELAY_TRY(const Name place, Name::Parse(place_.name));
  Fd folder;
  if (place_.folder) {
    BELAY_TRY(folder, fs_.Open(dir_, place, OpenMode::Directory()));
  }
  Bytes chunk(256 << 10);
  for (const Written& one : written_) {
    BELAY_TRY(const RelPath name, RelPath::Parse(one.name));
    BELAY_TRY(Fd file,
              fs_.OpenBeneath(place_.folder ? folder : dir_, name, OpenMode::Read()));
    Sha256 hash;
    uint64_t at = 0;
    for (;;) {
      BELAY_TRY(const size_t got, ReadFull(fs_, file, at, chunk));
      hash.Update(ByteSpan(chunk).first(got));
      at += got;
      if (got < chunk.size()) break;
    }
    if (at != one.size || hash.Finish() != one.hash)
      return InDir(place_, Error(Errc::kIo, EscapeForDisplay(one.name) +
                                                " is not what was written"));
  }
  return Ok();
}

Status Publication::TakeBack() {
  if (BELAY_MUTANT("published-stays-half-way")) return Ok();
  BELAY_TRY(const bool ready, stage_.is_open() ? Has(stage_, Ready()) : false);
  BELAY_TRY(const bool half, stage_.is_open() ? Has(stage_, New()) : false);
  // It never came to its place: what is there is somebody else's.
  if (ready || half || !stage_.is_open()) return Ok();
  BELAY_TRY(const Name name, Name::Parse(place_.name));
  BELAY_TRY(const bool there, Has(dir_, name));
  if (!there) return Ok();
  BELAY_OK(fs_.Rename(dir_, name, stage_, Gone(), RenameHow::kNoReplace));
  BELAY_OK(fs_.Sync(stage_));
  return fs_.Sync(dir_);
}

Status Publication::Tidy() {
  if (!dir_.is_open()) return Ok();
  BELAY_OK(RemoveAll(fs_, dir_, Name::Literal(stage_name_)));
  stage_ = Fd();
  // Before what leads here goes; also when it was removed before, and not flushed.
  if (BELAY_MUTANT("tidied-unflushed")) return Ok();
  return fs_.Sync(dir_);
}

}  // namespace belay
