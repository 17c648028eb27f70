#include "core/roots.h"

#include <algorithm>
#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/last_failure.h"
#include "scan/stat_cache.h"
#include "store/inventory.h"
#include "store/session_lock.h"
#include "store/unlisted.h"

namespace belay {

namespace {

std::optional<RootEntry> Deepest(std::span<const RootEntry> roots, const AbsPath& path,
                                 bool at_only) {
  const RootEntry* best = nullptr;
  for (const RootEntry& entry : roots) {
    auto at = AbsPath::Parse(entry.root.path);
    if (!at.ok()) continue;  // one without a usable path protects nothing
    if (at_only ? path != *at : !path.IsWithin(*at)) continue;
    const bool better =
        best == nullptr ||
        std::tuple(!entry.root.off, entry.root.path.size(), entry.seq) >
            std::tuple(!best->root.off, best->root.path.size(), best->seq);
    if (better) best = &entry;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

Status Publish(Store& store, std::span<const Root> roots) {
  BELAY_TRY(auto writer, store.Begin());
  for (const Root& root : roots)
    writer->Add(
        ToRecord(root, RecordId(store.random().NewId()), store.clock().WallMillis()));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

// The roots that were inside `from`, as they are inside `to` now: only those whose
// directory went along, and whose new place has no history of its own.
Result<std::vector<Root>> MovedAlong(Store& store, Catalog& catalog,
                                     const std::string& from, const AbsPath& to) {
  BELAY_TRY(AbsPath old_place, AbsPath::Parse(from));
  BELAY_TRY(std::vector<RootEntry> roots, catalog.Roots());
  std::vector<Root> along;
  for (const RootEntry& entry : roots) {
    auto at = AbsPath::Parse(entry.root.path);
    if (!at.ok() || *at == old_place || !at->IsWithin(old_place)) continue;
    auto now = AbsPath::Parse(to.bytes() + at->bytes().substr(from.size()));
    if (!now.ok() || Deepest(roots, *now, true)) continue;
    auto real = store.fs().RealPath(*now);
    if (!real.ok() || *real != *now) continue;
    auto dir = store.fs().OpenDir(*now);
    if (!dir.ok()) continue;
    BELAY_TRY(FileStat stat, store.fs().Stat(*dir));
    if (stat.ino != entry.root.ino) continue;
    Root moved = entry.root;
    moved.path = now->bytes();
    moved.dev = stat.dev;
    along.push_back(std::move(moved));
  }
  return along;
}

}  // namespace

std::optional<RootEntry> FindRootFor(std::span<const RootEntry> roots,
                                     const AbsPath& path) {
  return Deepest(roots, path, false);
}

Result<std::optional<RootEntry>> FindRootFor(Catalog& catalog, const AbsPath& path) {
  BELAY_TRY(std::vector<RootEntry> roots, catalog.Roots());
  return Deepest(roots, path, false);
}

Result<std::optional<RootEntry>> FindRootAt(Catalog& catalog, const AbsPath& path) {
  BELAY_TRY(std::vector<RootEntry> roots, catalog.Roots());
  return Deepest(roots, path, true);
}

RootPlace LookAtPlace(Fs& fs, const AbsPath& path) {
  auto real = fs.RealPath(path);
  if (!real.ok())
    return real.error().sys == EACCES || real.error().sys == EPERM
               ? RootPlace::kUnreadable
               : RootPlace::kGone;
  if (*real != path) return RootPlace::kLinked;
  auto dir = fs.OpenDir(path);
  if (dir.ok()) return RootPlace::kThere;
  return dir.error().sys == EACCES || dir.error().sys == EPERM ? RootPlace::kUnreadable
                                                               : RootPlace::kGone;
}

Result<std::optional<RootEntry>> FindMoved(Catalog& catalog, Fs& fs,
                                           const FileStat& stat) {
  BELAY_TRY(std::vector<RootEntry> roots, catalog.Roots());
  for (RootEntry& entry : roots) {
    if (entry.root.off || entry.root.ino == 0 || entry.root.ino != stat.ino) continue;
    // After a remount the device has another number: the inode alone then, as long as
    // there is nothing at the old place.
    auto at = AbsPath::Parse(entry.root.path);
    if (!at.ok()) continue;
    const RootPlace place = LookAtPlace(fs, *at);
    if (place != RootPlace::kGone && place != RootPlace::kLinked) continue;
    return std::optional(std::move(entry));
  }
  return std::optional<RootEntry>();
}

Result<std::optional<Error>> SeenDamage(Store& store, Catalog& catalog) {
  BELAY_TRY(auto problems, GlanceAtPacks(store));
  if (problems.empty()) {
    // Who wrote since made a tail that no longer tells.
    BELAY_TRY(bool misses, MissesUnlisted(store));
    if (misses)
      problems.emplace_back("its manifest is older than what was stored last");
  }
  if (problems.empty()) {
    BELAY_TRY(bool whole, catalog.LogIsWhole());
    if (whole || BELAY_MUTANT("lost-is-never-was")) return std::optional<Error>();
    problems.emplace_back(
        "a part of its log cannot be read, so that roots and checkpoints may be "
        "missing");
  }
  return std::optional(
      Error(Errc::kCorrupt, "the store is damaged: " + problems.front())
          .WithHint("see what is hit: belay verify; then put it right: belay repair"));
}

Result<Registered> RegisterRoot(Store& store, Catalog& catalog, const AbsPath& path,
                                const FileStat& stat,
                                const std::optional<AbsPath>& moved_from) {
  Registered done;
  std::string old_path;  // of one that moved
  // Two hooks of one event come at once, and with `auto = true` both want it.
  auto alone = LockSession(store, "root " + path.bytes(), LockMode::kExclusive,
                           store.options().lock_wait_ms);
  if (!alone.ok() && alone.error().code == Errc::kBusy)
    return Error(Errc::kBusy, EscapeForDisplay(path.bytes()) +
                                  ": another belay is just about to protect it");
  if (!alone.ok()) return std::move(alone).error();
  if (BELAY_MUTANT("two-register-at-once")) alone->Release();
  BELAY_TRY(auto known, FindRootAt(catalog, path));
  if (moved_from) {
    BELAY_TRY(auto old, FindRootAt(catalog, *moved_from));
    if (!old) {
      BELAY_TRY(auto damage, SeenDamage(store, catalog));
      if (damage) return std::move(*damage);
      return Error(Errc::kNotFound,
                   EscapeForDisplay(moved_from->bytes()) + " was never protected")
          .WithHint("see `belay roots` for what is");
    }
    const RootPlace place =
        *moved_from == path ? RootPlace::kGone : LookAtPlace(store.fs(), *moved_from);
    if (place == RootPlace::kThere || place == RootPlace::kUnreadable)
      return Error(Errc::kRefused,
                   EscapeForDisplay(moved_from->bytes()) +
                       " is still there: this is a copy, or another directory")
          .WithHint("protect it with a history of its own: belay on " +
                    ShellWord(path.bytes()));
    if (known && known->root.id != old->root.id) {
      BELAY_TRY(auto checkpoints,
                catalog.ListCheckpoints({.root = known->root.id, .limit = 1}));
      if (!checkpoints.empty())
        return Error(Errc::kExists, EscapeForDisplay(path.bytes()) +
                                        " has a history of its own already")
            .WithHint("`belay off --forget` it first, if that history may go");
      BELAY_TRY([[maybe_unused]] uint64_t none,
                ForgetRoot(store, catalog, known->root));
    }
    if (old->root.path != path.bytes()) old_path = old->root.path;
    done.root = old->root;
    done.was_on = !old->root.off && old->root.path == path.bytes();
  } else if (known) {
    done.root = known->root;
    done.was_on = !known->root.off;
  } else {
    BELAY_TRY(auto damage, SeenDamage(store, catalog));
    if (damage) return std::move(*damage);
    done.root.id = RootId(store.random().NewId());
    done.is_new = true;
  }
  const bool same =
      done.was_on && done.root.dev == stat.dev && done.root.ino == stat.ino;
  done.root.path = path.bytes();
  done.root.off = false;
  done.root.dev = stat.dev;
  done.root.ino = stat.ino;
  if (same && old_path.empty()) return done;
  std::vector<Root> all{done.root};
  if (!old_path.empty()) {
    BELAY_TRY(std::vector<Root> along, MovedAlong(store, catalog, old_path, path));
    for (Root& inner : along) {
      std::string from = old_path + inner.path.substr(path.bytes().size());
      done.moved_along.push_back({std::move(from), inner.path});
      all.push_back(std::move(inner));
    }
  }
  if (!same || all.size() > 1) BELAY_OK(Publish(store, all));
  return done;
}

Result<RootPaths> RootPaths::Read(Catalog& catalog) {
  RootPaths out;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kRoot}));
  for (const LogRecord& record : records) {  // newest first
    auto root = ToRoot(record);
    if (!root.ok()) continue;
    auto path = AbsPath::Parse(root->path);
    if (path.ok())
      out.places_[root->id].push_back({.seq = record.seq, .path = std::move(*path)});
  }
  return out;
}

std::vector<AbsPath> RootPaths::Of(const RootId& root) const {
  std::vector<AbsPath> out;
  if (const auto at = places_.find(root); at != places_.end())
    for (const Place& place : at->second)
      if (std::ranges::find(out, place.path) == out.end()) out.push_back(place.path);
  return out;
}

std::vector<AbsPath> RootPaths::Of(const AbsPath& path) const {
  std::vector<AbsPath> out = {path};
  for (const auto& [root, places] : places_) {
    if (places.front().path != path) continue;
    for (AbsPath& one : Of(root))
      if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
  }
  return out;
}

std::string RootPaths::Now(const std::string& dir, const RootId& root,
                           uint64_t seq) const {
  const auto at = AbsPath::Parse(dir);
  if (!at.ok() || BELAY_MUTANT("what-was-in-a-root-stays-behind")) return dir;
  // Where a root was at a time; null of one that is younger.
  auto was_at = [](const std::vector<Place>& places, uint64_t time) -> const Place* {
    for (const Place& place : places)
      if (place.seq <= time) return &place;
    return nullptr;
  };
  const std::vector<Place>* in = nullptr;
  const Place* was = nullptr;
  auto take = [&](const std::vector<Place>& places, const Place& place) {
    in = &places;
    was = &place;
  };
  const auto own = places_.find(root);
  if (own != places_.end()) {
    const Place* place = was_at(own->second, seq);
    if (place == nullptr) place = &own->second.back();
    if (at->IsWithin(place->path)) take(own->second, *place);
  }
  // An agent may be at work beside the root that it changed something in, or within one
  // that is inside of it. One that is younger counts where it was first, if that was
  // not left by then: what is registered there afterwards is another directory.
  for (const bool younger : {false, true})
    for (const auto& [id, places] : places_) {
      const Place* place = was_at(places, seq);
      if (id == root || (place == nullptr) != younger) continue;
      if (place == nullptr) place = &places.back();
      if (!at->IsWithin(place->path)) continue;
      if (was != nullptr &&
          (place->path == was->path || !place->path.IsWithin(was->path)))
        continue;
      if (younger && in != nullptr && !BELAY_MUTANT("who-came-later-was-there")) {
        const Place* by_then = was_at(*in, place->seq);
        if (by_then != nullptr && by_then->path != was->path) continue;
      }
      take(places, *place);
    }
  // One that was copied from an older record.
  if (was == nullptr && own != places_.end())
    for (const Place& place : own->second)
      if (was == nullptr && at->IsWithin(place.path)) take(own->second, place);
  if (was == nullptr) return dir;
  const AbsPath& now = in->front().path;
  if (now == was->path) return dir;
  const std::optional<std::string> below = at->Below(was->path);
  return below && !below->empty() ? now.bytes() + "/" + *below : now.bytes();
}

Status SwitchOff(Store& store, const Root& root) {
  Root off = root;
  off.off = true;
  return Publish(store, {&off, 1});
}

Result<uint64_t> ForgetRoot(Store& store, Catalog& catalog, const Root& root) {
  // A checkpoint that is being made would come back without its root.
  BELAY_TRY(HeldLock alone,
            store.locks().AcquireRoot(root.id, store.options().lock_wait_ms));
  std::vector<RecordId> drop;
  uint64_t checkpoints = 0;
  for (RecordKind kind :
       {RecordKind::kCheckpoint, RecordKind::kAnnotation, RecordKind::kSession,
        RecordKind::kTurn, RecordKind::kTranscript, RecordKind::kOperation,
        RecordKind::kRelease, RecordKind::kRoot}) {
    BELAY_TRY(auto records, catalog.ListRecords({.kind = kind, .root = root.id}));
    for (const LogRecord& record : records) drop.push_back(record.id);
    if (kind == RecordKind::kCheckpoint) checkpoints = records.size();
  }
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(
      MakeDrop(RecordId(store.random().NewId()), store.clock().WallMillis(), drop));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  // Its cache holds names of files. Without a root nobody reads it, so a failure is no
  // reason to call this undone.
  auto cache =
      store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (cache.ok()) (void)store.fs().Unlink(*cache, StatCache::FileName(root.id));
  ForgetFailures(store, root.id);
  return checkpoints;
}

Result<std::vector<AbsPath>> RootsInside(std::span<const RootEntry> roots,
                                         const Root& root) {
  BELAY_TRY(AbsPath here, AbsPath::Parse(root.path));
  std::vector<AbsPath> inside;
  for (const RootEntry& entry : roots) {
    auto at = AbsPath::Parse(entry.root.path);
    if (!at.ok() || entry.root.off || entry.root.id == root.id || *at == here) continue;
    if (at->IsWithin(here)) inside.push_back(std::move(*at));
  }
  return inside;
}

}  // namespace belay
