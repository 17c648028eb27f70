#include "restore/ground.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/both.h"
#include "restore/holes.h"
#include "restore/look.h"
#include "restore/paths_internal.h"
#include "scan/scan.h"

namespace belay {

Status CheckContent(Store& store, const PlanOptions& options, Plan& plan) {
  const bool skip_damaged = options.skip_damaged;
  std::atomic<bool> stopped{false};
  std::vector<std::string> damaged;
  Error first;
  // Of content, and of attributes.
  std::unordered_map<ObjectId, size_t> places[2];
  struct Needed {
    ObjectId id;
    bool hold = false, xattrs = false;
    Status read = Ok();
  };
  std::vector<Needed> needed;
  auto need = [&](const ObjectId& id, bool hold, bool xattrs) {
    if (places[xattrs].emplace(id, needed.size()).second)
      needed.push_back({.id = id, .hold = hold, .xattrs = xattrs});
  };
  auto moves = [](const PathChange& change) {
    return !change.before || !SameContent(*change.before, *change.after);
  };
  auto content_of = [&](const PathChange& change) {
    return change.after->kind == EntryKind::kFile && moves(change);
  };
  auto xattrs_of = [&](const PathChange& change) {
    return !change.after->xattrs.is_zero() &&
           (moves(change) || change.before->xattrs != change.after->xattrs);
  };
  for (const PathChange& change : plan.changes) {
    if (!change.after) continue;
    if (content_of(change))
      need(change.after->id, change.after->size <= kMaxBlob, false);
    if (xattrs_of(change)) need(change.after->xattrs, false, true);
  }
  plan.contents = std::make_shared<HeldContents>();
  OnBothThreads(needed.size(), [&](size_t thread, size_t i) {
    if (thread == 0 && options.stop && options.stop()) stopped = true;
    HoleCounter holes;
    if (needed[i].xattrs) {
      auto xattrs = [&]() -> Status {
        BELAY_TRY(const Bytes bytes, store.ReadContentBytes(needed[i].id, kMaxObject));
        auto decoded = DecodeXattrs(bytes);
        if (decoded.ok()) return Ok();
        return Error(Errc::kCorrupt, "its attributes: " + decoded.error().what);
      };
      needed[i].read = xattrs();
      return !stopped.load();
    }
    if (needed[i].hold) {
      auto bytes = store.ReadContentBytes(needed[i].id, kMaxBlob);
      if (bytes.ok()) {
        (void)holes.Add(*bytes);
        plan.contents->Add(needed[i].id, std::move(*bytes));
      } else {
        needed[i].read = std::move(bytes).error();
      }
    } else {
      needed[i].read = store.ReadContent(needed[i].id, [&](ByteSpan piece) -> Status {
        if (thread == 0 && options.stop && options.stop()) stopped = true;
        if (stopped) return Error(Errc::kRefused, "stopped");
        return holes.Add(piece);
      });
    }
    (void)holes.Finish();
    plan.contents->SetHoles(needed[i].id, holes.total());
    return !stopped.load();
  });
  if (stopped) return Error(Errc::kRefused, "stopped");
  auto readable = [&](const ObjectId& id, bool xattrs) {
    const Status& read = needed[places[xattrs].at(id)].read;
    if (!read.ok()) first = read.error();
    return read.ok();
  };
  std::erase_if(plan.changes, [&](const PathChange& change) {
    if (!change.after) return false;
    bool fine = true;
    if (content_of(change)) fine = readable(change.after->id, false);
    if (xattrs_of(change)) fine = readable(change.after->xattrs, true) && fine;
    if (fine) return false;
    damaged.push_back(change.path);
    // What was purged is left out of a plan: this was lost, and somebody took note.
    if (skip_damaged)
      plan.kept.push_back(
          {change.path, first.code == Errc::kPurged ? "lost" : "damaged", true});
    return skip_damaged;
  });
  if (damaged.empty() || skip_damaged) return Ok();
  std::string list;
  for (size_t i = 0; i < damaged.size() && i < 10; ++i)
    list += (i == 0 ? "" : ", ") + EscapeForDisplay(damaged[i]);
  if (damaged.size() > 10)
    list += " and " + std::to_string(damaged.size() - 10) + " more";
  return Error(Errc::kCorrupt, "the store cannot give back " + list + ": " + first.what)
      .WithHint("nothing was changed; restore the rest with --skip-damaged");
}

namespace {

constexpr uint64_t kBlock = 4096;

// `shared`: other names lead to the same file, which must stay as it is.
void AddNeedsOf(const PathChange& change, bool shared, Plan& plan) {
  if (!change.after) return;
  const bool new_content =
      !change.before || !SameContent(*change.before, *change.after);
  if (!new_content && !shared) return;
  ++plan.inodes_needed;
  // Names and inodes take room, too; of what is there already they have it.
  const bool there = change.before && change.before->kind == EntryKind::kFile;
  if (!there || change.after->kind != EntryKind::kFile) plan.bytes_needed += kBlock;
  if (change.after->kind != EntryKind::kFile) return;
  uint64_t size = change.after->size;
  if (plan.contents && !BELAY_MUTANT("holes-need-room"))
    size -= std::min(size, plan.contents->Holes(change.after->id));
  plan.bytes_needed += (size + kBlock - 1) / kBlock * kBlock;
}

// What CheckGround() asks the disk about one change.
struct Ground {
  bool ask_parent = false;  // the first change in its directory
  std::optional<FileStat> parent = {}, self = {};
  bool in_use = false;
};

void LookAtGround(Fs& fs, const Fd& root, Looker& looker, const PathChange& change,
                  Ground& ground) {
  if (change.path.empty()) {
    auto stat = looker.Stat("");
    if (stat.ok()) ground.self = *stat;
    return;
  }
  auto at = looker.Parent(change.path);
  if (ground.ask_parent && root.is_open()) {
    // The directory is open already, unless we may not read it.
    if (at.ok()) {
      auto stat = fs.Stat(at->dir);
      if (stat.ok()) ground.parent = *stat;
    } else if (const std::string parent = ParentOf(change.path); !parent.empty()) {
      auto stat = looker.Stat(parent);
      if (stat.ok()) ground.parent = *stat;
    }
  }
  if (!change.before || !at.ok()) return;
  auto stat = fs.StatAt(at->dir, at->name);
  if (!stat.ok()) return;
  ground.self = *stat;
  if (stat->type != FileType::kRegular ||
      (change.after && SameContent(*change.before, *change.after)))
    return;
  auto file = fs.Open(at->dir, at->name, OpenMode::Read());
  if (!file.ok()) return;
  auto lease = fs.TryLease(*file, LockMode::kShared);
  if (!lease.ok()) return;
  ground.in_use = *lease == LeaseOutcome::kInUse;
  if (*lease == LeaseOutcome::kHeld) (void)fs.EndLease(*file);
}

// Surely not ours to change: it belongs to somebody else, and nobody else may write
// there. (Group and others may get more from access lists than their bits say.)
bool IsAnothersAlone(const PathChange& change, const FileStat* parent,
                     const std::optional<FileStat>& self, uint32_t uid) {
  auto closed = [&](const FileStat& stat) {
    return stat.uid != uid && (stat.mode & 0022) == 0;
  };
  if (change.path.empty() || SameState(change.before, change.after)) return false;
  if (!self || !change.after || IsDir(change.before) != IsDir(change.after)) {
    if (parent == nullptr) return false;
    constexpr uint32_t kSticky = 01000;
    const bool guarded =
        (parent->mode & kSticky) != 0 && parent->uid != uid && self && self->uid != uid;
    return guarded || closed(*parent);
  }
  if (SameContent(*change.before, *change.after)) return self->uid != uid;
  return parent != nullptr && closed(*parent) && closed(*self);
}

// "a b c (and 3 more)": the first five, as `word` writes them.
std::string FirstWords(const std::vector<std::string>& paths,
                       std::string (*word)(std::string_view)) {
  std::string out;
  for (size_t i = 0; i < paths.size() && i < 5; ++i)
    out += (i == 0 ? "" : " ") + word(paths[i]);
  if (paths.size() > 5) out += " (and " + std::to_string(paths.size() - 5) + " more)";
  return out;
}

// Whether all of it may be changed at all.
Status CheckMayChange(const std::vector<std::string>& immutable,
                      const std::vector<std::string>& denied) {
  if (!immutable.empty() && !BELAY_MUTANT("immutable-is-tried"))
    return Error(Errc::kRefused,
                 EscapeForDisplay(immutable.front()) +
                     " is immutable (chattr +i or +a)" +
                     (immutable.size() > 1
                          ? " and so are " + std::to_string(immutable.size() - 1) +
                                " others"
                          : ""))
        .WithHint(
            "nothing was changed; make it changeable, in the project's own "
            "directory, with: chattr -i -a " +
            FirstWords(immutable, ShellWord));
  if (!denied.empty() && !BELAY_MUTANT("hope-for-permission"))
    return Error(Errc::kRefused, "you may not change " +
                                     FirstWords(denied, EscapeForDisplay) +
                                     ": it is another user's, or in a directory that "
                                     "is")
        .WithHint(
            "nothing was changed; ask its owner, or name what is to go back: "
            "-- PATH...");
  return Ok();
}

// Who is not root cannot give back what was another's: the content comes back by an
// undo, its owner does not.
bool LosesItsOwner(const PlanOptions& options, const PathChange& change) {
  if (options.uid == 0 || !change.before || change.before->uid == options.uid)
    return false;
  return !change.after || change.after->uid != change.before->uid ||
         change.after->kind != change.before->kind;
}

void WarnOfForeign(const std::vector<std::string>& paths, Plan& plan) {
  if (paths.empty() || BELAY_MUTANT("owner-is-lost-in-silence")) return;
  const bool one = paths.size() == 1;
  plan.warnings.push_back(FirstWords(paths, EscapeForDisplay) +
                          (one ? " belongs" : " belong") +
                          " to another user now; an undo brings back what is in " +
                          (one ? "it" : "them") + ", and it will be yours");
}

}  // namespace

bool MakeOurs(const PlanOptions& options, PathChange& change) {
  if (!change.after || options.uid == 0) return false;
  PathState& after = *change.after;
  const bool same = change.before && change.before->uid == after.uid &&
                    change.before->gid == after.gid &&
                    IsDir(change.before) == IsDir(change.after) &&
                    SameContent(*change.before, after);
  const bool in_group = std::find(options.groups.begin(), options.groups.end(),
                                  after.gid) != options.groups.end();
  if (same || (after.uid == options.uid && in_group)) return false;
  if (after.uid != options.uid) after.mode &= ~kSetId;
  after.uid = options.uid;
  if (!in_group && !options.groups.empty()) after.gid = options.groups.front();
  return true;
}

Status CheckGround(Fs& fs, const Fd& root, const PlanOptions& options, Plan& plan) {
  std::vector<std::string> immutable, busy, denied, foreign;
  std::vector<Ground> grounds(plan.changes.size());
  std::unordered_set<std::string> seen_dirs;
  for (size_t i = 0; i < grounds.size(); ++i)
    grounds[i].ask_parent = !plan.changes[i].path.empty() &&
                            seen_dirs.insert(ParentOf(plan.changes[i].path)).second;
  Looker lookers[] = {Looker(fs, root), Looker(fs, root)};
  bool stopped = false;
  OnBothThreads(grounds.size(), [&](size_t thread, size_t i) {
    if (thread == 0 && options.stop && options.stop()) stopped = true;
    if (thread == 0 && stopped) return false;
    LookAtGround(fs, root, lookers[thread], plan.changes[i], grounds[i]);
    return true;
  });
  if (stopped) return Error(Errc::kRefused, "stopped");
  auto lock = [&](Plan::Locked one) {
    if (std::none_of(plan.locked.begin(), plan.locked.end(),
                     [&](const Plan::Locked& l) { return l.path == one.path; }))
      plan.locked.push_back(std::move(one));
  };
  bool foreign_owner = false;
  std::unordered_map<std::string, FileStat> parents;
  plan.bytes_needed = plan.inodes_needed = 0;
  for (size_t i = 0; i < grounds.size(); ++i) {
    PathChange& change = plan.changes[i];
    const Ground& ground = grounds[i];
    foreign_owner = MakeOurs(options, change) || foreign_owner;
    if (LosesItsOwner(options, change)) foreign.push_back(ShownPath(change.path));
    AddNeedsOf(change,
               ground.self && ground.self->nlink > 1 &&
                   ground.self->type == FileType::kRegular,
               plan);
    if (ground.parent && ground.parent->type == FileType::kDirectory) {
      const std::string parent = ParentOf(change.path);
      if (ground.parent->immutable) immutable.push_back(parent.empty() ? "." : parent);
      if (options.uid != 0 && ground.parent->uid == options.uid &&
          (ground.parent->mode & 0300) != 0300)
        lock({parent, ground.parent->mode});
    }
    // What the root is to become comes last: the staging directory is in it until then.
    if (change.path.empty() && ground.self && options.uid != 0 &&
        ground.self->uid == options.uid &&
        ((ground.self->mode & 0300) != 0300 ||
         (change.after && (change.after->mode & 0300) != 0300)))
      lock({"", ground.self->mode});
    if (options.uid != 0) {
      const std::string parent = ParentOf(change.path);
      if (ground.parent) parents.emplace(parent, *ground.parent);
      auto in = parents.find(parent);
      if (IsAnothersAlone(change, in == parents.end() ? nullptr : &in->second,
                          ground.self, options.uid))
        denied.push_back(ShownPath(change.path));
    }
    if (ground.self && ground.self->immutable)
      immutable.push_back(ShownPath(change.path));
    if (ground.in_use) busy.push_back(change.path);
  }
  std::erase_if(plan.changes, [](const PathChange& change) {
    return SameState(change.before, change.after);
  });
  if (foreign_owner)
    plan.warnings.push_back(
        "some files belonged to another user or group; they will belong to you");
  WarnOfForeign(foreign, plan);
  for (const std::string& path : busy)
    plan.warnings.push_back(EscapeForDisplay(path) +
                            " is open for writing in another program");
  Status fine = CheckMayChange(immutable, denied);
  if (fine.ok() && !plan.changes.empty() && root.is_open())
    fine = CheckRoom(fs, root, plan);
  return RefuseOrShow(options, std::move(fine), plan);
}

Status RefuseOrShow(const PlanOptions& options, Status fine, Plan& plan) {
  if (fine.ok() || !options.dry || BELAY_MUTANT("refused-plan-is-not-shown"))
    return fine;
  const Errc code = fine.error().code;
  if (code != Errc::kRefused && code != Errc::kNoSpace) return fine;
  if (!plan.refused) plan.refused = std::move(fine).error();
  return Ok();
}

void AddNeeds(const std::vector<PathChange>& changes, Plan& plan) {
  for (const PathChange& change : changes) AddNeedsOf(change, false, plan);
}

Status CheckRoom(Fs& fs, const Fd& dir, const Plan& plan) {
  if (BELAY_MUTANT("hope-for-room")) return Ok();
  BELAY_TRY(FsInfo info, fs.Info(dir));
  if (info.read_only)
    return Error(Errc::kRefused, "the file system of the directory is read-only");
  // The staging directory, and what moves into it, take a little as well.
  const uint64_t bytes = plan.bytes_needed + 16 * kBlock;
  const uint64_t inodes = plan.inodes_needed + 2;
  const bool counts_inodes = info.free_inodes != 0 || info.total_bytes == 0;
  if (info.free_bytes < bytes || (counts_inodes && info.free_inodes < inodes))
    return Error(Errc::kNoSpace,
                 "the rollback needs " + std::to_string(bytes / 1024) + " KiB and " +
                     std::to_string(inodes) + " files of room, and there is less: " +
                     std::to_string(info.free_bytes / 1024) + " KiB" +
                     (counts_inodes
                          ? " and " + std::to_string(info.free_inodes) + " files"
                          : std::string()))
        .WithHint("nothing was changed; free some space on the disk of the directory");
  return Ok();
}

}  // namespace belay
