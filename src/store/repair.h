#pragma once

// Repair: everything rebuildable is rebuilt from the packs, and a lost manifest from
// the packs that are there. No object is invented and none is thrown away; what is
// damaged stays, is still readable where it is whole, and `belay verify` still names
// it. Something else under the name of a rebuildable file (a directory, a FIFO, ...) is
// moved aside, never removed. What the disk does not give back is not taken for what is
// not there.
//
// Alone while it runs: it holds every lock of the store exclusively.

#include "store/store.h"

namespace belay {

struct RepairReport {
  std::vector<std::string> done;  // what was put right, in the user's words
};

// Works on a store that Store::Open refuses for damage. The catalogue is not touched:
// the caller rebuilds it (Catalog::Rebuild). `take_in` also lists packs of this store
// that the manifest does not name (it may bring back what was deleted, so only when
// something is damaged).
Result<RepairReport> RepairStore(Fs& fs, Clock& clock, Random& random,
                                 const AbsPath& dir, const StoreOptions& options,
                                 bool take_in = false);

// Renames what is not ours and in the way to "<name>.aside"; its new name.
Result<Name> MoveAside(Fs& fs, const Fd& dir, const Name& name);

}  // namespace belay
