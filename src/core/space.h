#pragma once

// Space: how much the store may still grow. The cap (`store.cap`) is over everything in
// the store's directory; the floor (`store.floor`) is what stays free on its disk.
//
// A sixteenth of the cap is kept back: collecting garbage copies before it removes, and
// that must fit too. Packs are kept small enough for it (PackTarget), and whoever
// collects does so by CollectWithinCap().

#include <algorithm>
#include <cstdint>

#include "core/settings.h"
#include "store/gc.h"
#include "store/store.h"

namespace belay {

// "3MiB were put aside by a repair; delete it when ...: PATH": files under the store's
// directory that are no part of it and count all the same. Empty when there are none.
std::string AsideText(const AbsPath& store, uint64_t bytes,
                      const std::vector<std::string>& paths);

// So many times its size text takes at most, once the catalogue has it too: as a row,
// as full text and its index, and all that once more in the write-ahead log.
inline constexpr uint64_t kTextTimes = 12;

class Space {
 public:
  // `exact`: every file of the store is looked at. Otherwise the packs alone, with as
  // much again for all else: enough as long as the cap is far away.
  static Result<Space> Of(Store& store, const Settings& settings, bool exact);

  bool exact() const { return exact_; }
  uint64_t used() const { return used_; }  // 0 when there is no cap and it is not exact
  uint64_t cap() const { return cap_; }    // 0 = none
  // May the store grow by so much? kNoSpace, with what to do, when it may not.
  Status Check(uint64_t bytes) const;
  // So much of what was found is the caller's own, and counted again by Check().
  void Forget(uint64_t bytes) { used_ -= std::min(used_, bytes); }
  // How much more it may grow.
  uint64_t left() const;
  // Whether it may grow by `want` once `freed` of it are given back.
  bool WouldFit(uint64_t want, uint64_t freed) const;
  // Less than a tenth is left of the cap, or of the disk above the floor as much as a
  // checkpoint may need: time to let old checkpoints go.
  bool IsTight() const;
  // What copies may take while garbage is collected. As much is left for whoever
  // publishes meanwhile and does not know yet what the copies will take.
  uint64_t room_for_copies() const;

  // The size at which a pack is closed under this cap.
  static uint64_t PackTarget(uint64_t cap);

 private:
  Error WithAside(Error error) const;

  std::string aside_;  // what was put aside, in words; only when `exact_`
  uint64_t free_ = 0, floor_ = 0, cap_ = 0, used_ = 0;
  bool exact_ = false;
};

// CollectGarbage() in as many passes as it takes, so that copies and what they replace
// fit under the cap together, and packs are closed at the size that goes with it. A
// pack of which not even the copy fits is taken alone: nothing is given back without
// one. `options.room` is not heeded. The report is over all passes; its packs_left is
// not zero when others were in the way for too long.
Result<GcReport> CollectWithinCap(Store& store, const Settings& settings,
                                  GcOptions options);

}  // namespace belay
