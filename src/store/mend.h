#pragma once

// Mend: what `belay repair` does about damage in the packs themselves, after
// RepairStore() has put right what is around them.
//
//   1. Records that the log lost and the catalogue remembers are published again, with
//      their ids and numbers.
//   2. When by then nothing that counts is lost, damaged packs are replaced by copies
//   of
//      what can be read of them. The damaged files stay, under another name.
//   3. Otherwise the packs stay as they are, but writers no longer rely on what cannot
//      be read: the next checkpoint stores again what is still in the user's tree,
//      which heals every checkpoint that needs it. Unless the caller was told to accept
//      the loss: then it is written down as a purge of the objects that cannot be read,
//      so that verify no longer calls it damage and GC goes on, and the packs are
//      replaced.
//
// Each step is a batch or a swap of the pack list: killed anywhere, it can be run
// again.

#include "store/verify.h"

namespace belay {

struct MendReport {
  std::vector<std::string> done;      // in the user's words
  std::vector<std::string> given_up;  // with accept_loss
  VerifyReport left;                  // what verify says now
};

// `report` has what was done also when an error ends it.
// `progress` as VerifyOptions has it.
Status MendStore(
    Store& store, const std::vector<RememberedRecord>& remembered, bool accept_loss,
    MendReport& report,
    const std::function<void(uint64_t done, uint64_t total)>& progress = {});

}  // namespace belay
