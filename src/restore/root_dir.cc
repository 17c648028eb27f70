#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/root_dir_internal.h"

namespace belay {

namespace {

// The root itself among `changes`, which it comes first of.
const PathChange* RootItself(const std::vector<PathChange>& changes) {
  return changes.empty() || !changes.front().path.empty() ? nullptr : &changes.front();
}

// A root that is gone comes back, empty at first.
Result<Fd> MakeRoot(Store& store, const Root& root, const PathState& wanted) {
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  if (!path.is_root()) {
    BELAY_TRY(Fd parent, MakeDirs(store.fs(), path.parent(), 0755));
  }
  BELAY_TRY(Fd dir, MakeDirs(store.fs(), path, wanted.mode | 0700));
  BELAY_TRY(FileStat stat, store.fs().Stat(dir));
  if (stat.uid != wanted.uid || stat.gid != wanted.gid)
    (void)store.fs().SetOwner(dir, wanted.uid, wanted.gid);
  BELAY_OK(store.fs().SetMode(dir, wanted.mode));
  return dir;
}

}  // namespace

Result<RootLock> RootLock::Take(Store& store, const RollbackRequest& request,
                                const std::string& what) {
  constexpr int64_t kMomentMs = 500;
  auto somebody = [&] {
    auto who = WhoIsAtWork(store, request.root.id);
    return who ? "belay " + EscapeForDisplay(who->what) + " (process " +
                     std::to_string(who->pid) + ")"
               : std::string("another belay command");
  };
  const int64_t first = std::min(request.lock_wait_ms, kMomentMs);
  std::string waited_for;
  auto lock = store.locks().AcquireRoot(request.root.id, first);
  if (!lock.ok() && lock.error().code == Errc::kBusy && first < request.lock_wait_ms) {
    waited_for = somebody();
    if (request.waiting && !BELAY_MUTANT("wait-in-silence"))
      request.waiting(waited_for);
    lock = store.locks().AcquireRoot(request.root.id, request.lock_wait_ms - first);
  }
  if (!lock.ok()) {
    if (lock.error().code != Errc::kBusy)
      return Error(lock.error())
          .WithHint("nothing was changed: the store is needed first");
    return Error(Errc::kBusy, somebody() + " is at work on this directory")
        .WithHint("try again when it is done");
  }
  NoteAtWork(store, request.root.id, {what, request.pid});
  return RootLock(store, request.root.id, std::move(*lock), std::move(waited_for));
}

Result<Fd> OpenRootDir(Store& store, const Root& root) {
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  return store.fs().OpenDir(path);
}

bool MakesRoot(const std::vector<PathChange>& changes) {
  const PathChange* root = RootItself(changes);
  return root != nullptr && !root->before;
}
bool TakesRootAway(const std::vector<PathChange>& changes) {
  const PathChange* root = RootItself(changes);
  return root != nullptr && !root->after && !BELAY_MUTANT("leave-empty-root");
}

bool TakeRootAway(Store& store, const Root& root) {
  auto pending = JournalFile::Exists(store, root.id);
  auto path = AbsPath::Parse(root.path);
  if (!pending.ok() || *pending || !path.ok() || path->is_root()) return false;
  auto parent = store.fs().OpenDir(path->parent());
  auto name = RelPath::Parse(std::string_view(path->bytes()).substr(1));
  return parent.ok() && name.ok() &&
         store.fs().RemoveDir(*parent, name->basename()).ok();
}

std::optional<std::string> EmptyAbove(Store& store, const Root& root) {
  auto path = AbsPath::Parse(root.path);
  if (!path.ok() || path->is_root() || path->parent().is_root()) return std::nullopt;
  auto dir = store.fs().OpenDir(path->parent());
  if (!dir.ok()) return std::nullopt;
  auto listed = store.fs().List(*dir);
  if (!listed.ok() || !listed->empty()) return std::nullopt;
  return path->parent().bytes();
}

Status AddMadeRoot(Store& store, const Fd& root, Plan& plan) {
  BELAY_TRY(FileStat stat, store.fs().Stat(root));
  if (RootItself(plan.changes) != nullptr) plan.changes.erase(plan.changes.begin());
  plan.changes.insert(plan.changes.begin(),
                      {"", std::nullopt, RootState(stat.mode, stat.uid, stat.gid)});
  return Ok();
}

Result<bool> BringRootBack(Store& store, const RollbackRequest& request,
                           PathState wanted) {
  auto there = OpenRootDir(store, request.root);
  if (there.ok()) return false;
  if (there.error().code != Errc::kNotFound) return std::move(there).error();
  if (request.plan.uid != 0) {
    wanted.uid = request.plan.uid;
    if (std::find(request.plan.groups.begin(), request.plan.groups.end(), wanted.gid) ==
            request.plan.groups.end() &&
        !request.plan.groups.empty())
      wanted.gid = request.plan.groups.front();
  }
  BELAY_TRY(Fd made, MakeRoot(store, request.root, wanted));
  return true;
}

}  // namespace belay
