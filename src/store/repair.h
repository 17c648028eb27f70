#pragma once

// Repair: everything rebuildable is rebuilt from the packs, and a lost manifest from
// the packs that are there. No object is invented and none is thrown away; what is
// damaged stays, is still readable where it is whole, and `belay verify` still names
// it.
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

}  // namespace belay
