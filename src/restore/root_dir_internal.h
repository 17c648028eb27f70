#pragma once

// The root directory itself: opening it alone, making it again when it is gone, and
// taking it away when whoever made it is undone.

#include <optional>
#include <string>
#include <vector>

#include "core/change.h"
#include "restore/journal.h"
#include "restore/rollback.h"

namespace belay {

// The root's lock, with a note for those who have to wait.
class RootLock {
 public:
  // kBusy with who is at it.
  static Result<RootLock> Take(Store& store, const RollbackRequest& request,
                               const std::string& what);
  RootLock(RootLock&& other) noexcept
      : store_(other.store_),
        root_(other.root_),
        lock_(std::move(other.lock_)),
        waited_for_(std::move(other.waited_for_)) {
    other.store_ = nullptr;
  }
  RootLock& operator=(RootLock&&) = delete;
  ~RootLock() {
    if (store_ != nullptr) ForgetAtWork(*store_, root_);
  }
  // Who had it before us, "belay rollback (process 12)"; empty when nobody had for
  // long.
  const std::string& waited_for() const { return waited_for_; }

 private:
  RootLock(Store& store, const RootId& root, HeldLock lock, std::string waited_for)
      : store_(&store),
        root_(root),
        lock_(std::move(lock)),
        waited_for_(std::move(waited_for)) {}
  Store* store_;
  RootId root_;
  HeldLock lock_;
  std::string waited_for_;
};

Result<Fd> OpenRootDir(Store& store, const Root& root);

// The operation made the root, or is to take it away.
bool MakesRoot(const std::vector<PathChange>& changes);
bool TakesRootAway(const std::vector<PathChange>& changes);

// Gone, or gone as before, unless there is something in it or to be done. After the
// journal: who finds one waits for the root.
bool TakeRootAway(Store& store, const Root& root);
// The directory above one that was taken away, when nothing is in it any more: a
// rollback that made the root may have made it too, and nobody but its owner removes
// what is outside of a root.
std::optional<std::string> EmptyAbove(Store& store, const Root& root);
// True: it was gone, and is there again, empty and as wanted.
Result<bool> BringRootBack(Store& store, const RollbackRequest& request,
                           PathState wanted);
// The plan of an operation that made the root: so that an undo takes it away.
Status AddMadeRoot(Store& store, const Fd& root, Plan& plan);

}  // namespace belay
