// The staging directory: what is made ready in it, what is found there, how it goes.

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/mutant.h"
#include "restore/displaced.h"
#include "restore/holes.h"
#include "restore/mover.h"
#include "restore/paths_internal.h"
#include "scan/scan.h"

namespace belay {

namespace {

constexpr size_t kCompared = size_t{64} << 20;
constexpr int64_t kWriterWaitNanos = 200'000'000;
constexpr int64_t kWriterPauseNanos = 2'000'000;
constexpr size_t kMaxKeptName = 200;  // and what is put behind it

}  // namespace

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
  // In the order in which they were made.
  std::multimap<uint64_t, std::pair<size_t, Name>> found;
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
    found.emplace(number, std::pair(index, std::move(slot)));
    next_slot_ = std::max(next_slot_, number + 1);
  }
  for (auto& [number, slot] : found) slots_.emplace(slot.first, std::move(slot.second));
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
  return std::optional(best->second);
}

Status Mover::ReadWanted(const PathState& wanted,
                         const std::function<Status(ByteSpan)>& take) {
  if (const Bytes* known = known_ ? known_->Find(wanted.id) : nullptr)
    return take(*known);
  if (auto held = contents_.find(wanted.id); held != contents_.end())
    return take(held->second);
  return store_.ReadContent(wanted.id, take);
}

// Over what is there.
Status Mover::Overwrite(const Fd& file, const PathState& wanted) {
  uint64_t offset = 0;
  return ReadWanted(wanted, [&](ByteSpan piece) -> Status {
    BELAY_OK(WriteFull(fs_, file, offset, piece));
    offset += piece.size();
    return Ok();
  });
}

// A file that is empty.
Status Mover::Fill(size_t index, const Fd& file, const PathState& wanted) {
  if (filler_) {
    BELAY_TRY(const bool filled, filler_(PathOf(index), wanted, file));
    if (filled) return Ok();
  }
  if (BELAY_MUTANT("holes-are-filled")) return Overwrite(file, wanted);
  SparseWriter writer(fs_, file);
  BELAY_OK(ReadWanted(wanted, [&](ByteSpan piece) { return writer.Add(piece); }));
  return writer.Close();
}

// What has holes is made anew: in place they would be filled. Of a large file that
// nobody has read yet it is not known.
bool Mover::MayHaveHoles(const PathState& wanted) const {
  if (BELAY_MUTANT("holes-are-filled")) return false;
  if (known_ && known_->HasRead(wanted.id)) return known_->Holes(wanted.id) > 0;
  return wanted.size > kMaxBlob;
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
  if (longest > kCompared) return true;
  BELAY_TRY(Fd file, fs_.Open(dir, name, OpenMode::Read()));
  Bytes found(static_cast<size_t>(looked.state.size));
  BELAY_TRY(size_t got, ReadFull(fs_, file, 0, found));
  found.resize(got);
  std::vector<bool> explained(found.size());
  for (size_t i = 0; i < found.size(); ++i) explained[i] = found[i] == std::byte{0};
  for (const Maybe* side : {&change.before, &change.after}) {
    if (!IsFile(*side)) continue;
    auto bytes = store_.ReadContentBytes((*side)->id, kCompared);
    // As what is too large.
    if (!bytes.ok() && IsNoMore(bytes.error())) return true;
    if (!bytes.ok()) return std::move(bytes).error();
    for (size_t i = 0; i < std::min(found.size(), bytes->size()); ++i)
      if (found[i] == (*bytes)[i]) explained[i] = true;
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

// Makes `wanted` ready under a name of its own, complete but for its place. It is among
// the slots until it has its place: what was found may be somebody's.
Result<Name> Mover::Prepare(size_t index, const PathState& wanted) {
  BELAY_TRY(auto found, FindSlot(index, wanted));
  if (found) {
    if (BELAY_MUTANT("prepared-is-forgotten")) ForgetSlot(index, *found);
    return std::move(*found);
  }
  BELAY_TRY(Name slot, NewSlot(index));
  if (wanted.kind == EntryKind::kSymlink) {
    BELAY_OK(fs_.Symlink(stage_, slot, wanted.target));
    slots_.emplace(index, slot);
    BELAY_TRY(Fd link, fs_.Open(stage_, slot, OpenMode::Path()));
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
    BELAY_OK(Fill(index, file, wanted));
    if (stat.uid != wanted.uid || stat.gid != wanted.gid)
      BELAY_OK(fs_.SetOwner(file, wanted.uid, wanted.gid));
    if (!wanted.xattrs.is_zero()) BELAY_OK(SetXattrs(file, wanted.xattrs));
    if (stat.mode != wanted.mode) BELAY_OK(fs_.SetMode(file, wanted.mode));
    if (journal_.times_ns)
      BELAY_OK(fs_.SetTimes(file, *journal_.times_ns, *journal_.times_ns));
    if (journal_.is_git != nullptr && PathOf(index) == journal_.is_git->index &&
        !BELAY_MUTANT("git-index-loses-its-time")) {
      const int64_t time = way_ == Way::kForward ? journal_.is_git->index_after_ns
                                                 : journal_.is_git->index_before_ns;
      BELAY_OK(fs_.SetTimes(file, time, time));
    }
    BELAY_TRY(stat, fs_.Stat(file));
    written_[index] = {stat.ino, stat.size, stat.mtime_ns};
    BELAY_OK(file.Close());
    torn_.erase(stat.ino);
  }
  return slot;
}

// A directory that somebody put where a file was, in the moment in which the file was
// displaced, and that could not go back at once: its place was taken, or we were
// interrupted. It holds what no checkpoint knows, so that it is never removed. To its
// place if that is free; else, with `anywhere`, beside it or into the root.
Status Mover::GiveBack(bool anywhere) {
  BELAY_OK(OpenStage(false));
  if (!stage_.is_open() || BELAY_MUTANT("directory-stays-in-stage")) return Ok();
  std::map<std::string, size_t> owners;
  for (const auto& [index, slot] : slots_) owners.emplace(slot.bytes(), index);
  BELAY_TRY(auto listed, fs_.List(stage_));
  for (const DirEntry& entry : listed) {
    if (entry.type && *entry.type != FileType::kDirectory) continue;
    BELAY_TRY(Name slot, Name::Parse(entry.name));
    auto stat = fs_.StatAt(stage_, slot);
    if (!stat.ok() && stat.error().code != Errc::kNotFound)
      return std::move(stat).error();
    if (!stat.ok() || stat->type != FileType::kDirectory) continue;
    auto owner = owners.find(entry.name);
    const bool known = owner != owners.end() && !PathOf(owner->second).empty();
    const std::string path = known ? PathOf(owner->second) : entry.name;
    BELAY_TRY(const std::optional<std::string> now, GiveBackOne(slot, path, anywhere));
    if (!now) continue;
    if (owner != owners.end()) ForgetSlot(owner->second, slot);
    if (anywhere && !now->empty()) given_back_.push_back(*now);
  }
  return Ok();
}

// Where it is now, "" when it was empty and is gone; nothing when it has to stay for
// the time being.
Result<std::optional<std::string>> Mover::GiveBackOne(const Name& slot,
                                                      const std::string& path,
                                                      bool anywhere) {
  looker_.Forget();
  auto at = looker_.Parent(path);
  auto moves = [&](const Fd& dir, const Name& name) -> Result<bool> {
    Status moved = fs_.Rename(stage_, slot, dir, name, RenameHow::kNoReplace);
    if (moved.ok()) return true;
    if (moved.error().code == Errc::kExists) return false;
    return std::move(moved).error();
  };
  if (at.ok()) {
    auto back = moves(at->dir, at->name);
    if (back.ok() && *back) return std::optional(path);
  }
  if (!anywhere) return std::optional<std::string>();
  if (fs_.RemoveDir(stage_, slot).ok()) return std::optional(std::string());
  const std::string base = path.substr(path.rfind('/') + 1).substr(0, kMaxKeptName);
  for (const bool beside : {true, false}) {
    if (beside && !at.ok()) continue;
    const Fd& dir = beside ? at->dir : root_;
    for (int number = 1; number < 1000; ++number) {
      const std::string name =
          base + ".belay-kept" + (number > 1 ? "-" + std::to_string(number) : "");
      BELAY_TRY(const Name free, Name::Parse(name));
      auto moved = moves(dir, free);
      if (moved.ok() && !*moved) continue;
      if (moved.ok() && beside && !ParentOf(path).empty())
        return std::optional(ParentOf(path) + "/" + name);
      if (moved.ok()) return std::optional(name);
      if (!beside) return std::move(moved).error();
      break;
    }
  }
  return Error(Errc::kExists, "no name is free for a directory that was at " + path);
}

Result<std::vector<Mover::Found>> Mover::Settle(ScanSink& sink) {
  std::vector<Found> found;
  held_open_.clear();
  BELAY_OK(GiveBack(/*anywhere=*/true));
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
        store_.clock().SleepNanos(kWriterPauseNanos);
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
  BELAY_OK(GiveBack(/*anywhere=*/true));
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
