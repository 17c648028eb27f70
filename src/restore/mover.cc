#include "restore/mover.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <thread>

#include "base/mutant.h"
#include "restore/both.h"
#include "scan/scan.h"

namespace belay {

namespace {

constexpr size_t kHeldContents = size_t{64} << 20;
constexpr int64_t kWriterWaitNanos = 200'000'000;
constexpr int64_t kPauseNanos = 2'000'000;
constexpr size_t kFlushedOneByOne = 32;

bool IsDir(const std::optional<PathState>& state) {
  return state && state->kind == EntryKind::kDirectory;
}
bool IsFile(const std::optional<PathState>& state) {
  return state && state->kind == EntryKind::kFile;
}
// A file or symlink.
bool IsLeaf(const std::optional<PathState>& state) { return state && !IsDir(state); }

OpenMode PathHandle() { return {.access = OpenMode::Access::kPath}; }

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

// --- the staging directory -----------------------------------------------------------

// Slots are "<index of the change>.<n>".
Status Mover::OpenStage(bool create) {
  if (stage_.is_open()) return Ok();
  const Name name = Name::Literal(journal_.stage);
  auto opened = fs_.Open(root_, name, OpenMode::Directory());
  if (!opened.ok()) {
    if (opened.error().code != Errc::kNotFound) return std::move(opened).error();
    if (!create) return Ok();
    staged_ = true;
    BELAY_OK(fs_.MakeDir(root_, name, 0700));
    BELAY_TRY(stage_, fs_.Open(root_, name, OpenMode::Directory()));
    // A default ACL of the root would be inherited by all that is made in here.
    BELAY_TRY(auto inherited, fs_.ListXattrs(stage_));
    for (const std::string& xattr : inherited)
      if (KeepsXattr(xattr)) BELAY_OK(fs_.RemoveXattr(stage_, xattr));
    return Ok();
  }
  staged_ = true;
  stage_ = std::move(*opened);
  BELAY_TRY(auto listed, fs_.List(stage_));
  for (const DirEntry& entry : listed) {
    const size_t dot = entry.name.find('.');
    size_t index = 0;
    uint64_t number = 0;
    const char* begin = entry.name.data();
    const char* end = begin + entry.name.size();
    if (dot == std::string::npos) continue;
    if (std::from_chars(begin, begin + dot, index).ec != std::errc() ||
        std::from_chars(begin + dot + 1, end, number).ec != std::errc() ||
        index >= journal_.changes.size())
      continue;
    BELAY_TRY(Name slot, Name::Parse(entry.name));
    slots_.emplace(index, std::move(slot));
    next_slot_ = std::max(next_slot_, number + 1);
  }
  return Ok();
}

Result<Name> Mover::NewSlot(size_t index) {
  BELAY_OK(OpenStage(true));
  return Name::Parse(std::to_string(index) + "." + std::to_string(next_slot_++));
}

// A thing from an earlier step that can be used as `wanted`. On the way back that is
// also what somebody made of it meanwhile: theirs is newer than what we remember.
Result<std::optional<Name>> Mover::FindSlot(size_t index, const PathState& wanted) {
  BELAY_OK(OpenStage(true));
  const PathChange& change = journal_.changes[index];
  auto [begin, end] = slots_.equal_range(index);
  auto best = end;
  for (auto at = begin; at != end; ++at) {
    HashSink sink;
    Looker looker(fs_, stage_);
    auto looked = looker.Look(at->second.bytes(), sink);
    if (!looked.ok() || !*looked || (*looked)->special) continue;
    const PathState state = StateOf((*looked)->state);
    if (torn_.contains((*looked)->stat.ino)) continue;
    bool theirs = way_ == Way::kBack && IsLeaf(state) &&
                  !(change.before && SameContent(*change.before, state)) &&
                  !(change.after && SameContent(*change.after, state));
    if (theirs) {
      BELAY_TRY(bool ours, IsHalfWritten(index, **looked, stage_, at->second));
      theirs = !ours;
    }
    if (!theirs && !SameState(state, wanted)) continue;
    best = at;
    if (theirs) {
      written_.erase(index);
      break;
    }
    written_[index] = {(*looked)->stat.ino, (*looked)->stat.size,
                       (*looked)->stat.mtime_ns};
  }
  if (best == end) return std::optional<Name>();
  Name slot = best->second;
  slots_.erase(best);
  return std::optional(std::move(slot));
}

Status Mover::Fill(const Fd& file, const PathState& wanted) {
  if (const Bytes* known = known_ ? known_->Find(wanted.id) : nullptr)
    return WriteFull(fs_, file, 0, *known);
  if (auto held = contents_.find(wanted.id); held != contents_.end())
    return WriteFull(fs_, file, 0, held->second);
  uint64_t offset = 0;
  return store_.ReadContent(wanted.id, [&](ByteSpan piece) -> Status {
    BELAY_OK(WriteFull(fs_, file, offset, piece));
    offset += piece.size();
    return Ok();
  });
}

// Whether it is nobody's edit but what we, or an interrupted run before us, had not
// finished. A file that was written in place, or was being made ready, then holds at
// each place what one of the sides has there, or zero. Who knows better is asked first.
Result<bool> Mover::IsHalfWritten(size_t index, const Looked& looked, const Fd& dir,
                                  const Name& name) {
  if (torn_.contains(looked.stat.ino)) return true;
  if (BELAY_MUTANT("half-written-is-an-edit")) return false;
  if (!journal_.operation.recovered || looked.state.kind != EntryKind::kFile)
    return false;
  const PathChange& change = journal_.changes[index];
  uint64_t longest = 0;
  for (const Maybe* side : {&change.before, &change.after})
    if (IsFile(*side)) longest = std::max(longest, (*side)->size);
  if (looked.state.size > longest) return false;
  // Too large to compare: it is kept either way, and undo leads to what we know.
  if (longest > kHeldContents) return true;
  BELAY_TRY(Fd file, fs_.Open(dir, name, OpenMode::Read()));
  Bytes found(static_cast<size_t>(looked.state.size));
  BELAY_TRY(size_t got, ReadFull(fs_, file, 0, found));
  found.resize(got);
  std::vector<bool> explained(found.size());
  for (size_t i = 0; i < found.size(); ++i) explained[i] = found[i] == std::byte{0};
  for (const Maybe* side : {&change.before, &change.after}) {
    if (!IsFile(*side)) continue;
    BELAY_TRY(Bytes bytes, store_.ReadContentBytes((*side)->id, kHeldContents));
    for (size_t i = 0; i < std::min(found.size(), bytes.size()); ++i)
      if (found[i] == bytes[i]) explained[i] = true;
  }
  return std::find(explained.begin(), explained.end(), false) == explained.end();
}

Status Mover::SetXattrs(const Fd& file, const ObjectId& wanted) {
  std::vector<std::pair<std::string, Bytes>> all;
  if (!wanted.is_zero()) {
    BELAY_TRY(Bytes bytes, store_.ReadContentBytes(wanted, kMaxObject));
    BELAY_TRY(all, DecodeXattrs(bytes));
  }
  BELAY_TRY(auto present, fs_.ListXattrs(file));
  for (const std::string& name : present) {
    if (!KeepsXattr(name)) continue;
    const bool stays = std::any_of(
        all.begin(), all.end(), [&](const auto& entry) { return entry.first == name; });
    if (!stays) BELAY_OK(fs_.RemoveXattr(file, name));
  }
  for (const auto& [name, value] : all) BELAY_OK(fs_.SetXattr(file, name, value));
  return Ok();
}

// Makes `wanted` ready under a name of its own, complete but for its place.
Result<Name> Mover::Prepare(size_t index, const PathState& wanted) {
  BELAY_TRY(auto found, FindSlot(index, wanted));
  if (found) return std::move(*found);
  BELAY_TRY(Name slot, NewSlot(index));
  if (wanted.kind == EntryKind::kSymlink) {
    BELAY_OK(fs_.Symlink(stage_, slot, wanted.target));
    slots_.emplace(index, slot);
    BELAY_TRY(Fd link, fs_.Open(stage_, slot, PathHandle()));
    BELAY_TRY(FileStat stat, fs_.Stat(link));
    if (stat.uid != wanted.uid || stat.gid != wanted.gid)
      BELAY_OK(fs_.SetOwner(link, wanted.uid, wanted.gid));
    if (journal_.times_ns)
      BELAY_OK(fs_.SetTimes(link, *journal_.times_ns, *journal_.times_ns));
    BELAY_TRY(stat, fs_.Stat(link));
    written_[index] = {stat.ino, stat.size, stat.mtime_ns};
  } else {
    // 0600 until it is whole: a private file is never readable by others.
    const uint32_t first = BELAY_MUTANT("stage-world-readable") ? 0644 : 0600;
    BELAY_TRY(Fd file, fs_.Open(stage_, slot, OpenMode::CreateNew(first)));
    slots_.emplace(index, slot);
    BELAY_TRY(FileStat stat, fs_.Stat(file));
    torn_.insert(stat.ino);
    BELAY_OK(Fill(file, wanted));
    if (stat.uid != wanted.uid || stat.gid != wanted.gid)
      BELAY_OK(fs_.SetOwner(file, wanted.uid, wanted.gid));
    if (!wanted.xattrs.is_zero()) BELAY_OK(SetXattrs(file, wanted.xattrs));
    if (stat.mode != wanted.mode) BELAY_OK(fs_.SetMode(file, wanted.mode));
    if (journal_.times_ns)
      BELAY_OK(fs_.SetTimes(file, *journal_.times_ns, *journal_.times_ns));
    BELAY_TRY(stat, fs_.Stat(file));
    written_[index] = {stat.ino, stat.size, stat.mtime_ns};
    BELAY_OK(file.Close());
    torn_.erase(stat.ino);
  }
  ForgetSlot(index, slot);
  return slot;
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
  looker_.Forget();
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
    slots_.emplace(index, slot);
    BELAY_OK(fs_.Rename(stage_, slot, at.dir, at.name, RenameHow::kExchange));
    return CheckDisplaced(index, slot, RenameHow::kExchange);
  }
  if (!placed.ok()) slots_.emplace(index, slot);
  return placed;
}

Result<bool> Mover::WriteInPlace(size_t index, const PathState& from,
                                 const PathState& to, Looker& looker) {
  if (from.kind != EntryKind::kFile || to.kind != EntryKind::kFile ||
      !SameAttributes(from, to))
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
  BELAY_OK(Fill(file, to));
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
  slots_.emplace(index, slot);
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
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    auto opened = fs_.OpenBeneath(root_, rel, PathHandle());
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
  auto opened = fs_.Open(at->dir, at->name, PathHandle());
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
  BELAY_OK(OpenStage(false));
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
    BELAY_TRY(Bytes bytes, store_.ReadContentBytes(to->id, kMaxBlob));
    contents_size_ += bytes.size();
    contents_.emplace(to->id, std::move(bytes));
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
    } else if (!SameContent(*from, *to)) {
      BELAY_OK(LeaveTheirs(i, Replace(i, *from, *to)));
    }
  }
  return Finish(way);
}

// 3. Attributes, children first, and directories get back what was widened.
Status Mover::Finish(Way way) {
  std::map<std::string, const PathState*, std::greater<>> last;
  std::unordered_map<std::string, uint32_t> narrow;
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
  }
  return Ok();
}

// Few: each by itself, so that nobody waits for what others left to be written on the
// same disk. Many: all at once, which costs one flush instead of hundreds.
Status Mover::Flush() {
  if (BELAY_MUTANT("skip-tree-flush")) return Ok();
  std::set<std::string> dirs;
  size_t files = 0;
  for (size_t i = 0; i < journal_.changes.size(); ++i) {
    const PathChange& change = journal_.changes[i];
    ++files;
    // No name was touched, unless by a run before this one.
    if (IsFirstRun() && in_place_.contains(i)) continue;
    const size_t slash = change.path.rfind('/');
    dirs.insert(slash == std::string::npos ? "" : change.path.substr(0, slash));
    if (IsDir(change.before) || IsDir(change.after)) dirs.insert(change.path);
  }
  if (files + dirs.size() > kFlushedOneByOne) return fs_.SyncAll(root_);
  looker_.Forget();
  for (const PathChange& change : journal_.changes) {
    if (change.path.empty()) continue;  // among the directories
    auto at = looker_.Parent(change.path);
    if (!at.ok()) {
      // Went with its directory. Not so beneath a mount: that is flushed with the rest.
      if (IsAbsence(at.error()) && at.error().sys != EXDEV) continue;
      return fs_.SyncAll(root_);
    }
    auto stat = fs_.StatAt(at->dir, at->name);
    // What cannot be looked at is flushed with all the rest, never passed over.
    if (!stat.ok() && !IsAbsence(stat.error())) return fs_.SyncAll(root_);
    if (!stat.ok() || stat->type != FileType::kRegular) continue;
    auto file = fs_.Open(at->dir, at->name, OpenMode::Read());
    if (file.ok()) {
      BELAY_OK(fs_.Sync(*file));
    } else if (!IsAbsence(file.error())) {
      return fs_.SyncAll(root_);  // may not be read, or leased just now
    }
  }
  if (BELAY_MUTANT("skip-tree-directory-flush")) dirs.clear();
  for (const std::string& dir : dirs) {
    if (dir.empty()) {
      BELAY_OK(fs_.Sync(root_));
      continue;
    }
    BELAY_TRY(RelPath path, RelPath::Parse(dir));
    auto opened = fs_.OpenBeneath(root_, path, OpenMode::Directory());
    if (opened.ok())
      BELAY_OK(fs_.Sync(*opened));
    else if (!IsAbsence(opened.error()))
      return fs_.SyncAll(root_);
  }
  if (stage_.is_open()) BELAY_OK(fs_.Sync(stage_));
  return Ok();
}

// Whether one path is what it should be; nothing when there is nothing to say.
Result<Mover::Wrong> Mover::VerifyOne(size_t i, Way way, Looker& looker) const {
  const std::string& path = PathOf(i);
  const Maybe& to = To(i, way);
  if (std::find(left_.begin(), left_.end(), path) != left_.end())
    return Wrong::kNothing;
  if (path.empty()) {
    if (!to) return Wrong::kNothing;  // goes when all else is over
    BELAY_TRY(FileStat root, fs_.Stat(root_));
    const uint32_t mode = to->mode | (RootLock() != nullptr ? 0700 : 0);
    const bool right = root.mode == mode && root.uid == to->uid && root.gid == to->gid;
    return right ? Wrong::kNothing : Wrong::kAttributes;
  }
  HashSink sink;
  auto looked = looker.Look(path, sink);
  if (!looked.ok()) {
    if (looked.error().code != Errc::kConflict) return std::move(looked).error();
    return Wrong::kChanged;
  }
  Maybe there;
  if (*looked && !(*looked)->special) there = StateOf((*looked)->state);
  if (!(*looked && (*looked)->special) && SameState(there, to)) return Wrong::kNothing;
  // Wrong. Ours if it is still the very thing that we wrote.
  auto ours = written_.find(i);
  if (ours != written_.end() && *looked && IsFile(there) && IsFile(to) &&
      ours->second ==
          Print{(*looked)->stat.ino, (*looked)->stat.size, (*looked)->stat.mtime_ns} &&
      there->id != to->id)
    return Error(Errc::kIo,
                 "what was written to " + path + " is not what the disk gives back");
  return there && to && SameContent(*there, *to) ? Wrong::kAttributes : Wrong::kChanged;
}

Result<Mover::Verified> Mover::Verify(Way way) {
  Verified out;
  if (BELAY_MUTANT("skip-verify")) return out;
  Looker lookers[] = {Looker(fs_, root_), Looker(fs_, root_)};
  std::optional<Error> failed[2];
  std::vector<Wrong> found(journal_.changes.size());
  OnBothThreads(found.size(), [&](size_t thread, size_t i) {
    auto wrong = VerifyOne(i, way, lookers[thread]);
    if (wrong.ok())
      found[i] = *wrong;
    else
      failed[thread] = std::move(wrong).error();
    return wrong.ok();
  });
  for (auto& failure : failed)
    if (failure) return std::move(*failure);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == Wrong::kChanged) out.changed.push_back(PathOf(i));
    if (found[i] == Wrong::kAttributes) out.attributes.push_back(PathOf(i));
  }
  return out;
}

Result<Mover::Verified> Mover::FlushAndVerify(Way way) {
  if (!IsForBothThreads(journal_.changes.size())) {
    BELAY_OK(Flush());
    return Verify(way);
  }
  // The disk is busy with the one, we are with the other.
  Status flushed = Ok();
  std::thread flush([&] { flushed = Flush(); });
  auto verified = Verify(way);
  flush.join();
  if (!BELAY_MUTANT("ignore-failed-flush")) BELAY_OK(std::move(flushed));
  return verified;
}

Result<std::vector<Mover::Found>> Mover::Settle(ScanSink& sink) {
  std::vector<Found> found;
  held_open_.clear();
  BELAY_OK(OpenStage(false));
  if (!stage_.is_open()) return found;
  Looker looker(fs_, stage_);
  const int64_t until = store_.clock().SteadyNanos() + kWriterWaitNanos;
  for (const auto& [index, slot] : slots_) {
    const PathChange& change = journal_.changes[index];
    // Who opened it before it was displaced may still be writing.
    auto file = fs_.Open(stage_, slot, OpenMode::Read());
    if (file.ok()) {
      for (;;) {
        BELAY_TRY(LeaseOutcome lease, fs_.TryLease(*file, LockMode::kShared));
        if (lease != LeaseOutcome::kInUse) break;
        if (store_.clock().SteadyNanos() >= until) {
          held_open_.push_back(change.path);
          break;
        }
        store_.clock().SleepNanos(kPauseNanos);
      }
    }
    HashSink hash;
    BELAY_TRY(auto looked, looker.Look(slot.bytes(), hash));
    if (!looked || looked->special) continue;
    // Half written by ourselves, and the disk failed.
    if (torn_.contains(looked->stat.ino)) continue;
    const PathState state = StateOf(looked->state);
    auto known = [&](const Maybe& side) { return side && SameContent(*side, state); };
    if (known(change.before) || known(change.after)) continue;
    if (BELAY_MUTANT("forget-racing-edit")) continue;
    BELAY_TRY(bool half_written, IsHalfWritten(index, *looked, stage_, slot));
    BELAY_TRY(auto stored, looker.Look(slot.bytes(), sink));
    if (stored && !stored->special)
      found.push_back({index, StateOf(stored->state), half_written});
  }
  return found;
}

Status Mover::RemoveStage() {
  const Plan::Locked* root_lock = RootLock();
  if (root_lock != nullptr) BELAY_OK(SetModeOf("", RootModeAtTheEnd() | 0700));
  BELAY_OK(OpenStage(false));
  if (stage_.is_open() && !BELAY_MUTANT("forget-staged-files")) {
    BELAY_TRY(auto listed, fs_.List(stage_));
    for (const DirEntry& entry : listed) {
      BELAY_TRY(Name name, Name::Parse(entry.name));
      Status gone = fs_.Unlink(stage_, name);
      if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
    }
    stage_ = Fd();
    slots_.clear();
    Status gone = fs_.RemoveDir(root_, Name::Literal(journal_.stage));
    if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  }
  if (root_lock != nullptr) BELAY_OK(SetModeOf("", RootModeAtTheEnd()));
  // None was ever made.
  if (!staged_ && root_lock == nullptr && !journal_.operation.recovered) return Ok();
  // Before the journal goes: without it nobody would know that the directory is ours.
  if (BELAY_MUTANT("stage-removal-not-durable")) return Ok();
  return fs_.Sync(root_);
}

}  // namespace belay
