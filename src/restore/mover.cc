#include "restore/mover.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "restore/both.h"
#include "restore/paths_internal.h"
#include "scan/scan.h"

namespace belay {

namespace {

constexpr size_t kHeldContents = size_t{64} << 20;

}  // namespace

Mover::Mover(Store& store, const Fd& root, const Journal& journal,
             std::shared_ptr<const HeldContents> known)
    : store_(store),
      fs_(store.fs()),
      root_(root),
      journal_(journal),
      looker_(store.fs(), root),
      known_(std::move(known)) {}
Mover::~Mover() = default;

const Mover::Maybe& Mover::From(size_t index, Way way) const {
  const PathChange& change = journal_.changes[index];
  return way == Way::kForward ? change.before : change.after;
}
const Mover::Maybe& Mover::To(size_t index, Way way) const {
  const PathChange& change = journal_.changes[index];
  return way == Way::kForward ? change.after : change.before;
}
const std::string& Mover::PathOf(size_t index) const {
  return journal_.changes[index].path;
}

// --- one path ------------------------------------------------------------------------

Status Mover::Displace(size_t index) {
  auto at = looker_.Parent(PathOf(index));
  if (!at.ok()) {
    if (IsAbsence(at.error())) return Ok();
    return std::move(at).error();
  }
  BELAY_TRY(Name slot, NewSlot(index));
  Status moved = fs_.Rename(at->dir, at->name, stage_, slot, RenameHow::kNoReplace);
  if (!moved.ok() && moved.error().code == Errc::kNotFound) return Ok();
  BELAY_OK(std::move(moved));
  slots_.emplace(index, slot);
  return CheckDisplaced(index, slot, RenameHow::kNoReplace);
}

// Somebody put a directory, or what cannot be stored, where a file was: it goes back,
// and so does everything else.
Status Mover::CheckDisplaced(size_t index, const Name& slot, RenameHow back) {
  BELAY_TRY(FileStat stat, fs_.StatAt(stage_, slot));
  if (stat.type == FileType::kRegular || stat.type == FileType::kSymlink) return Ok();
  BELAY_TRY(Looker::At at, looker_.Parent(PathOf(index)));
  BELAY_OK(fs_.Rename(stage_, slot, at.dir, at.name, back));
  if (back == RenameHow::kNoReplace) ForgetSlot(index, slot);
  return Error(
      Errc::kConflict,
      PathOf(index) + " became " + std::string(FileTypeName(stat.type)) + " meanwhile");
}

void Mover::ForgetSlot(size_t index, const Name& slot) {
  auto [begin, end] = slots_.equal_range(index);
  for (auto at = begin; at != end; ++at) {
    if (at->second != slot) continue;
    slots_.erase(at);
    return;
  }
}

Status Mover::RemoveDirectory(size_t index, const Maybe& to) {
  const std::string& path = PathOf(index);
  looker_.Leave(path);
  auto at = looker_.Parent(path);
  if (!at.ok()) {
    if (IsAbsence(at.error())) return Ok();
    return std::move(at).error();
  }
  Status removed = fs_.RemoveDir(at->dir, at->name);
  if (removed.ok() || removed.error().code == Errc::kNotFound) return Ok();
  if (removed.error().sys == ENOTDIR) {
    // A file by now: from an earlier run when it is what comes here, else from
    // somebody.
    if (!IsLeaf(to)) return Displace(index);
    HashSink sink;
    BELAY_TRY(auto looked, looker_.Look(path, sink));
    if (looked && !looked->special && SameContent(StateOf(looked->state), *to))
      return Ok();
    return Displace(index);
  }
  if (removed.error().sys != ENOTEMPTY && removed.error().sys != EEXIST) return removed;
  if (to)
    return Error(Errc::kConflict, "something new appeared in " + path + " meanwhile");
  left_.push_back(path);
  return Ok();
}

Status Mover::MakeDirectory(size_t index) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    BELAY_TRY(Looker::At at, looker_.Parent(PathOf(index)));
    Status made = fs_.MakeDir(at.dir, at.name, 0700);
    if (made.ok()) return made;
    if (made.error().code != Errc::kExists) return made;
    auto stat = fs_.StatAt(at.dir, at.name);
    if (stat.ok() && stat->type == FileType::kDirectory) return Ok();
    BELAY_OK(Displace(index));
  }
  return Error(Errc::kConflict, PathOf(index) + " is taken again and again");
}

Status Mover::Place(size_t index, const PathState& wanted) {
  const std::string& path = PathOf(index);
  // From an earlier run?
  HashSink sink;
  BELAY_TRY(auto there, looker_.Look(path, sink));
  if (there && !there->special && SameContent(StateOf(there->state), wanted))
    return Ok();
  BELAY_TRY(bool theirs, IsTheirs(index, there));
  if (theirs) return Ok();
  BELAY_TRY(Name slot, Prepare(index, wanted));
  BELAY_TRY(Looker::At at, looker_.Parent(path));
  Status placed = fs_.Rename(stage_, slot, at.dir, at.name, RenameHow::kNoReplace);
  if (!placed.ok() && placed.error().code == Errc::kExists) {
    // Somebody was quicker: they change places, and what was there is looked at later.
    BELAY_OK(fs_.Rename(stage_, slot, at.dir, at.name, RenameHow::kExchange));
    return CheckDisplaced(index, slot, RenameHow::kExchange);
  }
  if (placed.ok()) ForgetSlot(index, slot);
  return placed;
}

Result<bool> Mover::WriteInPlace(size_t index, const PathState& from,
                                 const PathState& to, Looker& looker) {
  if (from.kind != EntryKind::kFile || to.kind != EntryKind::kFile ||
      !SameAttributes(from, to) || journal_.is_git != nullptr || MayHaveHoles(to) ||
      unreadable_.contains(to.id))
    return false;
  BELAY_TRY(Looker::At at, looker.Parent(PathOf(index)));
  auto opened = fs_.Open(at.dir, at.name, OpenMode::ReadWrite());
  // Read-only, running, gone, another kind: the other way knows what to do.
  if (!opened.ok()) return false;
  Fd file = std::move(*opened);
  BELAY_TRY(FileStat stat, fs_.Stat(file));
  if (stat.type != FileType::kRegular) return false;
  if (stat.nlink != 1 && !BELAY_MUTANT("write-through-hard-link")) return false;
  BELAY_TRY(LeaseOutcome lease, fs_.TryLease(file, LockMode::kExclusive));
  if (lease != LeaseOutcome::kHeld && !BELAY_MUTANT("write-without-lease"))
    return false;
  HashSink sink;
  BELAY_TRY(Looked looked, LookAtFile(fs_, file, sink));
  if (!SameAttributes(looked.state, to)) return false;  // closing ends the lease
  if (looked.state.id == to.id) return true;
  if (looked.state.id != from.id && !BELAY_MUTANT("write-over-racing-edit"))
    return false;
  // Torn by a kill or a power cut it is neither side; the journal leads here again.
  {
    std::lock_guard lock(mutex_);
    torn_.insert(stat.ino);
  }
  BELAY_OK(Overwrite(file, to));
  if (looked.state.size != to.size) BELAY_OK(fs_.Truncate(file, to.size));
  if (journal_.times_ns)
    BELAY_OK(fs_.SetTimes(file, *journal_.times_ns, *journal_.times_ns));
  BELAY_TRY(stat, fs_.Stat(file));
  if (lease == LeaseOutcome::kHeld) BELAY_OK(fs_.EndLease(file));
  BELAY_OK(file.Close());
  std::lock_guard lock(mutex_);
  written_[index] = {stat.ino, stat.size, stat.mtime_ns};
  torn_.erase(stat.ino);
  in_place_.insert(index);
  return true;
}

// Where many files change in content alone, both threads write them. Who cannot be
// written in place is left for Replace().
Status Mover::WriteManyInPlace(const std::function<bool()>& stop) {
  std::vector<size_t> files;
  for (size_t i = 0; i < journal_.changes.size(); ++i) {
    const Maybe& from = From(i, way_);
    const Maybe& to = To(i, way_);
    if (IsFile(from) && IsFile(to) && !SameContent(*from, *to)) files.push_back(i);
  }
  if (!IsForBothThreads(files.size())) return Ok();
  Looker lookers[] = {Looker(fs_, root_), Looker(fs_, root_)};
  std::optional<std::pair<size_t, Error>> failed[2];
  bool stopped = false;
  OnBothThreads(files.size(), [&](size_t thread, size_t at) {
    if (thread == 0 && stop && stop()) {
      stopped = true;
      return false;
    }
    const size_t i = files[at];
    auto done = WriteInPlace(i, *From(i, way_), *To(i, way_), lookers[thread]);
    if (done.ok()) return true;
    failed[thread] = {i, std::move(done).error()};
    return false;
  });
  for (auto& failure : failed)
    if (failure) return LeaveTheirs(failure->first, std::move(failure->second));
  if (stopped) return Error(Errc::kRefused, "stopped");
  return Ok();
}

// On the way back: an edit that somebody made of the path after us. It is the newest,
// and stays; what was displaced before is found by Settle().
Result<bool> Mover::IsTheirs(size_t index, const std::optional<Looked>& there) {
  if (way_ != Way::kBack || !there || there->special) return false;
  const PathChange& change = journal_.changes[index];
  const PathState state = StateOf(there->state);
  if (!IsLeaf(state)) return false;
  for (const Maybe* side : {&change.before, &change.after})
    if (*side && SameContent(**side, state)) return false;
  // What we wrote ourselves and the disk does not give back is nobody's edit.
  if (auto wrote = written_.find(index);
      wrote != written_.end() &&
      wrote->second == Print{there->stat.ino, there->stat.size, there->stat.mtime_ns})
    return false;
  BELAY_TRY(Looker::At at, looker_.Parent(PathOf(index)));
  BELAY_TRY(bool ours, IsHalfWritten(index, *there, at.dir, at.name));
  if (ours) return false;
  written_.erase(index);
  theirs_.push_back(PathOf(index));
  return true;
}

Status Mover::Replace(size_t index, const PathState& from, const PathState& to) {
  if (in_place_.contains(index)) return Ok();
  BELAY_TRY(bool done, WriteInPlace(index, from, to, looker_));
  if (done) return Ok();
  const std::string& path = PathOf(index);
  HashSink sink;
  BELAY_TRY(auto there, looker_.Look(path, sink));
  if (there && !there->special && SameState(StateOf(there->state), to)) return Ok();
  BELAY_TRY(bool theirs, IsTheirs(index, there));
  if (theirs) return Ok();
  BELAY_TRY(Name slot, Prepare(index, to));
  BELAY_TRY(Looker::At at, looker_.Parent(path));
  Status placed = fs_.Rename(stage_, slot, at.dir, at.name, RenameHow::kExchange);
  if (placed.ok()) return CheckDisplaced(index, slot, RenameHow::kExchange);
  if (placed.error().code != Errc::kNotFound) return placed;
  // Somebody removed it: nothing is displaced then.
  placed = fs_.Rename(stage_, slot, at.dir, at.name, RenameHow::kNoReplace);
  if (placed.ok()) ForgetSlot(index, slot);
  return placed;
}

Status Mover::SetModeOf(const std::string& path, uint32_t mode) {
  Fd handle;
  if (path.empty()) {
    BELAY_TRY(handle, fs_.Duplicate(root_));
  } else {
    auto opened = looker_.Open(path, OpenMode::Path());
    if (!opened.ok()) {
      if (IsAbsence(opened.error())) return Ok();
      return std::move(opened).error();
    }
    handle = std::move(*opened);
  }
  BELAY_TRY(FileStat stat, fs_.Stat(handle));
  if (stat.mode == mode || stat.type == FileType::kSymlink) return Ok();
  if (stat.mount_root && !path.empty()) return Ok();  // another disk's, by now
  return fs_.SetMode(handle, mode);
}

Status Mover::SetAttributes(const std::string& path, const PathState& wanted) {
  auto at = looker_.Parent(path);
  if (!at.ok()) {
    if (IsAbsence(at.error())) return Ok();  // changed by others; Verify() says so
    return std::move(at).error();
  }
  auto opened = fs_.Open(at->dir, at->name, OpenMode::Path());
  if (!opened.ok()) {
    if (IsAbsence(opened.error())) return Ok();
    return std::move(opened).error();
  }
  BELAY_TRY(FileStat stat, fs_.Stat(*opened));
  const FileType kind = wanted.kind == EntryKind::kFile        ? FileType::kRegular
                        : wanted.kind == EntryKind::kDirectory ? FileType::kDirectory
                                                               : FileType::kSymlink;
  if (stat.type != kind || stat.mount_root) return Ok();
  const bool owner = stat.uid != wanted.uid || stat.gid != wanted.gid;
  if (kind == FileType::kSymlink)
    return owner ? fs_.SetOwner(*opened, wanted.uid, wanted.gid) : Ok();
  HashSink sink;
  auto readable = [&]() -> Result<Fd> {
    return fs_.Open(
        at->dir, at->name,
        kind == FileType::kDirectory ? OpenMode::Directory() : OpenMode::Read());
  };
  auto file = readable();
  if (!file.ok() && file.error().sys == EACCES) {
    // Ours, and we may not read it: we may for a moment.
    BELAY_OK(fs_.SetMode(*opened, (stat.mode & 07700) | 0600));
    stat.mode = (stat.mode & 07700) | 0600;
    file = readable();
  }
  if (!file.ok()) return std::move(file).error();
  BELAY_TRY(ObjectId xattrs, PutXattrs(fs_, *file, sink));
  const bool attributes = xattrs != wanted.xattrs;
  // Narrow first: between two steps it may not be more open than both.
  if ((owner || attributes) && (stat.mode & wanted.mode) != stat.mode)
    BELAY_OK(fs_.SetMode(*opened, stat.mode & wanted.mode & 01777));
  if (owner) BELAY_OK(fs_.SetOwner(*opened, wanted.uid, wanted.gid));
  if (attributes) BELAY_OK(SetXattrs(*file, wanted.xattrs));
  if (owner || attributes || stat.mode != wanted.mode)
    BELAY_OK(fs_.SetMode(*opened, wanted.mode));
  return Ok();
}

// While the staging directory is in it, we can work in it.
Status Mover::SetRootAttributes(const PathState& wanted) {
  const uint32_t mode = wanted.mode | (RootLock() != nullptr ? 0700 : 0);
  BELAY_TRY(FileStat stat, fs_.Stat(root_));
  if (stat.uid != wanted.uid || stat.gid != wanted.gid) {
    if ((stat.mode & mode) != stat.mode) BELAY_OK(fs_.SetMode(root_, stat.mode & mode));
    BELAY_OK(fs_.SetOwner(root_, wanted.uid, wanted.gid));
    BELAY_TRY(stat, fs_.Stat(root_));
  }
  return stat.mode == mode ? Ok() : fs_.SetMode(root_, mode);
}

const Plan::Locked* Mover::RootLock() const {
  for (const Plan::Locked& locked : journal_.locked)
    if (locked.path.empty()) return &locked;
  return nullptr;
}

// What it has when all is over: what it is to become, or what it had.
uint32_t Mover::RootModeAtTheEnd() const {
  if (journal_.changes.empty() || !PathOf(0).empty()) return RootLock()->mode;
  const Maybe& to = To(0, way_);
  return to ? to->mode : From(0, way_)->mode;
}

// On the way back there is nowhere else to go: who put a directory where a file was, or
// took the directory away, would otherwise keep everybody out for good.
Status Mover::LeaveTheirs(size_t index, Status step) {
  if (step.ok() || way_ != Way::kBack || BELAY_MUTANT("stuck-on-the-way-back"))
    return step;
  // Something was mounted there, on the path or above it.
  bool theirs = step.error().code == Errc::kConflict || step.error().sys == EBUSY ||
                step.error().sys == EXDEV;
  if (!theirs && IsAbsence(step.error())) {
    looker_.Forget();
    auto at = looker_.Parent(PathOf(index));
    theirs = !at.ok() && IsAbsence(at.error());
  }
  if (!theirs) return step;
  theirs_.push_back(PathOf(index));
  return Ok();
}

// --- all of it -----------------------------------------------------------------------

Status Mover::Move(Way way, const std::function<bool()>& stop) {
  const size_t count = journal_.changes.size();
  way_ = way;
  ++runs_;
  in_place_.clear();
  left_.clear();
  theirs_.clear();
  looker_.Forget();
  BELAY_OK(GiveBack(/*anywhere=*/false));
  auto stopped = [&]() -> Status {
    if (stop && stop()) return Error(Errc::kRefused, "stopped");
    return Ok();
  };
  // Small content is read now, once: what cannot be read stops us before a thing moved.
  for (size_t i = 0; i < count && contents_size_ < kHeldContents; ++i) {
    const Maybe& to = To(i, way);
    const Maybe& from = From(i, way);
    if (!IsFile(to) || (from && SameContent(*from, *to)) || to->size > kMaxBlob ||
        contents_.contains(to->id) || (known_ && known_->Find(to->id) != nullptr))
      continue;
    auto bytes = store_.ReadContentBytes(to->id, kMaxBlob);
    if (!bytes.ok() && way == Way::kBack && !BELAY_MUTANT("back-by-the-store-alone")) {
      unreadable_.insert(to->id);  // it may be there yet, in its place or displaced
      continue;
    }
    if (!bytes.ok()) return std::move(bytes).error();
    contents_size_ += bytes->size();
    contents_.emplace(to->id, std::move(*bytes));
    BELAY_OK(stopped());
  }
  for (const Plan::Locked& locked : journal_.locked)
    BELAY_OK(SetModeOf(locked.path, locked.mode | 0700));
  // 1. What goes, children before their directories.
  for (size_t i = count; i-- > 0;) {
    BELAY_OK(stopped());
    if (PathOf(i).empty()) continue;  // the root itself: Finish()
    const Maybe& from = From(i, way);
    const Maybe& to = To(i, way);
    if (IsLeaf(from) && !IsLeaf(to)) {
      // Of an earlier run a directory may stand here already.
      BELAY_TRY(auto stat, looker_.Stat(PathOf(i)));
      if (stat && stat->type != FileType::kDirectory)
        BELAY_OK(LeaveTheirs(i, Displace(i)));
    } else if (IsDir(from) && !IsDir(to)) {
      BELAY_OK(LeaveTheirs(i, RemoveDirectory(i, to)));
    }
  }
  // 2. What comes, directories before what is in them. A file that stays a file has its
  // directory already.
  BELAY_OK(WriteManyInPlace(stop));
  looker_.Forget();
  for (size_t i = 0; i < count; ++i) {
    BELAY_OK(stopped());
    const Maybe& from = From(i, way);
    const Maybe& to = To(i, way);
    if (!to || PathOf(i).empty()) continue;
    if (IsDir(to)) {
      if (!IsDir(from)) BELAY_OK(LeaveTheirs(i, MakeDirectory(i)));
    } else if (!IsLeaf(from)) {
      BELAY_OK(LeaveTheirs(i, Place(i, *to)));
    } else {
      bool replace = !SameContent(*from, *to);
      // Attributes belong to the file, not to its name: one that has other names is
      // replaced, too.
      if (!replace && IsFile(to) && !SameAttributes(*from, *to) &&
          !BELAY_MUTANT("chmod-through-hard-link")) {
        BELAY_TRY(auto stat, looker_.Stat(PathOf(i)));
        replace = stat && stat->type == FileType::kRegular && stat->nlink > 1;
      }
      if (replace) BELAY_OK(LeaveTheirs(i, Replace(i, *from, *to)));
    }
  }
  return Finish(way);
}

// Of a directory that was made, once nothing more comes into it.
Status Mover::StampDirectory(const std::string& path) {
  if (!journal_.times_ns || BELAY_MUTANT("directories-lose-their-time")) return Ok();
  auto opened = looker_.Open(path, OpenMode::Path());
  if (!opened.ok()) {
    if (IsAbsence(opened.error())) return Ok();  // changed by others
    return std::move(opened).error();
  }
  BELAY_TRY(FileStat stat, fs_.Stat(*opened));
  if (stat.type != FileType::kDirectory || stat.mount_root) return Ok();
  return fs_.SetTimes(*opened, *journal_.times_ns, *journal_.times_ns);
}

// 3. Attributes, children first, and directories get back what was widened.
Status Mover::Finish(Way way) {
  std::map<std::string, const PathState*, std::greater<>> last;
  std::unordered_map<std::string, uint32_t> narrow;
  std::unordered_set<std::string> made;
  for (const Plan::Locked& locked : journal_.locked) {
    if (locked.path.empty()) continue;  // the staging directory is still to go
    if (BELAY_MUTANT("leave-unlocked")) continue;
    last.emplace(locked.path, nullptr);
    narrow.emplace(locked.path, locked.mode);
  }
  for (size_t i = 0; i < journal_.changes.size(); ++i) {
    const Maybe& from = From(i, way);
    const Maybe& to = To(i, way);
    if (!to) continue;
    const bool new_dir = IsDir(to) && !IsDir(from);
    if (new_dir && !PathOf(i).empty()) made.insert(PathOf(i));
    // After a power cut content may be there and its mode not.
    if (journal_.operation.recovered || new_dir ||
        (from && !SameAttributes(*from, *to)) || narrow.contains(PathOf(i)))
      last[PathOf(i)] = &*to;
  }
  looker_.Forget();
  for (const auto& [path, state] : last) {
    if (state == nullptr)
      BELAY_OK(SetModeOf(path, narrow.at(path)));
    else if (path.empty())
      BELAY_OK(SetRootAttributes(*state));
    else
      BELAY_OK(SetAttributes(path, *state));
    if (made.contains(path)) BELAY_OK(StampDirectory(path));
  }
  return Ok();
}

}  // namespace belay
