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
  bool made_packs = false;        // RepairOptions::without_packs
};

struct RepairOptions {
  // Also lists packs of this store that the manifest does not name. It may bring back
  // what was deleted, so only when something is damaged.
  bool take_in = false;
  // The directory of the packs is gone, and somebody accepts that: it is made anew,
  // empty. Without it nothing is done, since a copy may be brought back.
  bool without_packs = false;
  // Gets what was put right, one after the other: also when an error ends it.
  std::vector<std::string>* said = nullptr;
};

// Works on a store that Store::Open refuses for damage. The catalogue is not touched:
// the caller rebuilds it (Catalog::Rebuild).
Result<RepairReport> RepairStore(Fs& fs, Clock& clock, Random& random,
                                 const AbsPath& dir, const StoreOptions& options,
                                 const RepairOptions& how = {});

}  // namespace belay
