#pragma once

// Roots: the directories somebody asked to protect.
//
// A root is known by its real path and has an id that stays: a new directory at the
// same path is the same root, one that was taken off and put on again too. The
// innermost protected root wins; the outer one leaves it alone.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch_writer.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// The root that holds `path`: the deepest that is protected, else the deepest that once
// was (its history can still be asked for).
std::optional<RootEntry> FindRootFor(std::span<const RootEntry> roots,
                                     const AbsPath& path);
Result<std::optional<RootEntry>> FindRootFor(Catalog& catalog, const AbsPath& path);
Result<std::optional<RootEntry>> FindRootAt(Catalog& catalog, const AbsPath& path);

// What stands at the path of a root.
enum class RootPlace : uint8_t {
  kThere,
  kGone,        // nothing, or no directory
  kLinked,      // a symlink leads elsewhere: it was moved, and the old name kept
  kUnreadable,  // it may not be looked at
};
RootPlace LookAtPlace(Fs& fs, const AbsPath& path);

// A root whose directory is gone (or left a symlink behind), and which looks like the
// directory with this stat.
Result<std::optional<RootEntry>> FindMoved(Catalog& catalog, Fs& fs,
                                           const FileStat& stat);

// What keeps anybody from saying that something was never there: a pack that a glance
// shows to be missing or cut, or a log of which a part cannot be read. kCorrupt, with
// what to do; nothing when all is well.
Result<std::optional<Error>> SeenDamage(Store& store, Catalog& catalog);

struct Registered {
  Root root;
  bool was_on = false;  // nothing had to be done
  bool is_new = false;  // never seen before
  struct Moved {
    std::string from, to;
  };
  std::vector<Moved> moved_along = {};  // roots inside one that moved
};
// Protects the directory at the real path `path`. With `moved_from` the root that was
// there goes on here, history and id; refused while there still is a directory at the
// old place (a copy has a history of its own). What was protected at `path` meanwhile
// is forgotten, if it has no checkpoint; else it is refused. Roots inside the one that
// moved go along, in the same batch, where their directories did (by the inode). No
// root is made new, and none is called unknown, while there is SeenDamage(): its
// history may be in what cannot be read.
Result<Registered> RegisterRoot(Store& store, Catalog& catalog, const AbsPath& path,
                                const FileStat& stat,
                                const std::optional<AbsPath>& moved_from);

// Where roots are, and where they were before they were moved (--moved-from), as the
// log has it.
class RootPaths {
 public:
  static Result<RootPaths> Read(Catalog& catalog);

  // All paths of the root that is at `path` now: that one first, then those before, the
  // latest first, each once. Just `path` where there is no such root.
  std::vector<AbsPath> Of(const AbsPath& path) const;
  // The same by id. Empty when there is none.
  std::vector<AbsPath> Of(const RootId& root) const;
  // Where the directory is by now that the record `seq` of `root` calls `dir`: what was
  // in a root moved along with it. Anything else is `dir`.
  std::string Now(const std::string& dir, const RootId& root, uint64_t seq) const;

 private:
  struct Place {
    uint64_t seq = 0;  // from this record on
    AbsPath path;
  };
  std::map<RootId, std::vector<Place>> places_;  // the latest first
};

// Stops protecting. The history stays.
Status SwitchOff(Store& store, const Root& root);
// Takes away the root and everything that was recorded of it; the space comes back with
// the next GC. The number of checkpoints.
Result<uint64_t> ForgetRoot(Store& store, Catalog& catalog, const Root& root);

// The protected roots inside `root`, which a scan of it does not enter.
Result<std::vector<AbsPath>> RootsInside(std::span<const RootEntry> roots,
                                         const Root& root);

}  // namespace belay
