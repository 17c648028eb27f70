// Making it durable, and looking whether it is what it should be.

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "base/mutant.h"
#include "restore/both.h"
#include "restore/mover.h"
#include "restore/paths_internal.h"

namespace belay {

namespace {

constexpr size_t kFlushedOneByOne = 32;

}  // namespace

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

Result<Mover::Verified> Mover::Verify(Way way, const std::function<bool()>& stop) {
  Verified out;
  if (BELAY_MUTANT("skip-verify")) return out;
  Looker lookers[] = {Looker(fs_, root_), Looker(fs_, root_)};
  std::optional<Error> failed[2];
  std::vector<Wrong> found(journal_.changes.size());
  bool stopped = false;
  OnBothThreads(found.size(), [&](size_t thread, size_t i) {
    if (thread == 0 && stop && stop() && !BELAY_MUTANT("verify-hears-no-stop")) {
      stopped = true;
      return false;
    }
    auto wrong = VerifyOne(i, way, lookers[thread]);
    if (!wrong.ok()) {
      failed[thread] = std::move(wrong).error();
      return false;
    }
    found[i] = *wrong;
    return true;
  });
  for (auto& failure : failed)
    if (failure) return std::move(*failure);
  if (stopped) return Error(Errc::kRefused, "stopped");
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == Wrong::kChanged) out.changed.push_back(PathOf(i));
    if (found[i] == Wrong::kAttributes) out.attributes.push_back(PathOf(i));
  }
  return out;
}

Result<Mover::Verified> Mover::FlushAndVerify(Way way,
                                              const std::function<bool()>& stop) {
  if (!IsForBothThreads(journal_.changes.size())) {
    BELAY_OK(Flush());
    return Verify(way, stop);
  }
  // The disk is busy with the one, we are with the other.
  Status flushed = Ok();
  std::thread flush([&] { flushed = Flush(); });
  auto verified = Verify(way, stop);
  flush.join();
  if (!BELAY_MUTANT("ignore-failed-flush")) BELAY_OK(std::move(flushed));
  return verified;
}

}  // namespace belay
