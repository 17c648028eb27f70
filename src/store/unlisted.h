#pragma once

// Packs that the manifest does not name, and which of them may go.
//
// Garbage: what a collection that was killed had replaced (it says so in the file
// `replaced` before its manifest), and copies of one that came to no manifest. But an
// older manifest that came back names too few packs as well, and one that was lost and
// is put back is named by none: such a pack has records that the log lacks, and may be
// the last to have them. It stays, is damage to verify, and TakeBackRecords()
// (found_again.h) copies out of it what is lacking. A pack of another store is none of
// ours.
//
// And packs that it names and that go on behind the end it gives them: whoever lost the
// end of such a pack sealed it at what he knew of, or another history of this store was
// laid over it. A whole batch behind the end counts as a pack that is not named.

#include <map>
#include <optional>
#include <set>

#include "store/inventory.h"

namespace belay {

struct Unlisted {
  std::vector<PackId> foreign;  // of another store
  std::vector<PackId> kept;     // of this one, and something in it may be needed
  std::vector<PackId> longer;   // listed, with a whole batch behind their end
  // Records that those (kept, longer) have and that the log would hold if it had them,
  // with the numbers they were given; what was erased is not among them.
  std::vector<LogRecord> lacking;
};
// `use` is held.
Result<Unlisted> LookAtUnlisted(Store& store);

// The length of every listed pack that goes on behind its end. Whether with anything
// that counts, LookAtUnlisted() finds out.
Result<std::map<PackId, uint64_t>> LongerPacks(Store& store);
// Takes away what is behind the end of such a pack, durably. False, and nothing is
// done, when there are batches that cannot be read whole, or it has another length by
// now. LookAtUnlisted() found nothing lacking, and `append` is held.
Result<bool> CutAtItsEnd(Store& store, const Manifest::Pack& pack, uint64_t length);

// What a collection replaced of a pack: so many bytes, the last batch of which has this
// mark. Without a length all that ever stood under that name.
struct ReplacedPack {
  std::optional<uint64_t> length = {};
  BatchMark last{};
  // Replaced by a collection before the last one, and its file is gone: 1 is the newest
  // such pack. 0: not so.
  uint32_t gone = 0;
};
using ReplacedMap = std::map<PackId, ReplacedPack>;

// Packs that a collection of `generation` or before replaced, by what the last one
// wrote down. What is damaged or not there names none. kAll: also those that a repair
// gave up, which may be missed but are no longer named by the manifest, and those that
// are gone.
enum class Unnamed { kReplaced, kAll };
ReplacedMap ReplacedPacks(Fs& fs, const Fd& home, uint64_t generation,
                          Unnamed which = Unnamed::kReplaced);
// Whether a tail is about such a pack (kAll), and no longer than it was: then it is an
// older one, and nothing is missing.
bool IsOfReplaced(Fs& fs, const Fd& home, uint64_t generation, const Tail& tail);
// Durable when it returns: before the manifest of that generation is written.
Status WriteReplaced(Fs& fs, const Fd& home, uint64_t generation,
                     const ReplacedMap& packs, const std::set<PackId>& given_up = {});
// What will be replaced when `pack` is.
Result<ReplacedPack> ToReplace(Store& store, const Manifest::Pack& pack);

// Is there a pack which has records that the log lacks, and be it behind its end? Cheap
// when every pack is listed or replaced, and ends where it should. Takes `use`.
Result<bool> MissesUnlisted(Store& store);

}  // namespace belay
