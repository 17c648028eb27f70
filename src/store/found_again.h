#pragma once

// What was given up as lost (belay repair --accept-loss), or the log does not know any
// more, and lies in a pack that somebody put back, or that an older manifest does not
// name.
//
// Such a pack is not listed again: its records may have been deleted since, and its
// objects erased. What was given up or is lacking is copied out of it, and nothing
// else.

#include "store/store.h"

namespace belay {

// Packs that the manifest does not name, or that go on behind their end, and that hold
// something which was given up and cannot be read elsewhere: no leftovers, whatever
// else is in them.
Result<std::vector<PackId>> PacksWithGivenUp(Store& store);

// Stores it again, as one batch, in which the marks that say it is lost are taken back
// as far as that is no longer so. What was done, in words, is put behind `done`, also
// when an error ends it.
Status TakeBackGivenUp(Store& store, std::vector<std::string>& done);

// Stores objects again that the store has and cannot read, and that such a pack has
// whole, as one batch. `done` as above.
Status TakeBackObjects(Store& store, const std::vector<ObjectKey>& lost,
                       std::vector<std::string>& done);

// Stores records that such packs have and the log lacks, with all that they need and
// the numbers they had (unless another has such a number by now), as one batch. `done`
// as above. `progress`, if given, hears of the bytes that were copied.
Status TakeBackRecords(
    Store& store, std::vector<std::string>& done,
    const std::function<void(uint64_t done, uint64_t total)>& progress = {});

}  // namespace belay
