#include "core/space.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/settings_table.h"
#include "store/usage.h"

namespace belay {

namespace {
constexpr uint64_t kMiB = uint64_t{1} << 20;
// What a checkpoint of a day's work may need; below it the disk counts as nearly full.
constexpr uint64_t kRoomOnDisk = 64 * kMiB;

// As the settings take it, rounded down to something round.
std::string RoundBelow(uint64_t bytes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  if (bytes >= 2 * kGiB) return std::to_string(bytes / kGiB) + "GiB";
  return bytes < kMiB ? "0" : std::to_string(bytes / kMiB) + "MiB";
}

// As the settings take it, rounded up.
std::string SizeOf(uint64_t bytes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  if (bytes < 1024) return std::to_string(bytes) + "B";
  if (bytes < kMiB) return std::to_string((bytes + 1023) / 1024) + "KiB";
  if (bytes >= 8 * kGiB) return std::to_string((bytes + kGiB - 1) / kGiB) + "GiB";
  return std::to_string((bytes + kMiB - 1) / kMiB) + "MiB";
}

// The same, rounded down: what is free.
std::string SizeBelow(uint64_t bytes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  if (bytes < 1024) return std::to_string(bytes) + "B";
  if (bytes < kMiB) return std::to_string(bytes / 1024) + "KiB";
  if (bytes >= 8 * kGiB) return std::to_string(bytes / kGiB) + "GiB";
  return std::to_string(bytes / kMiB) + "MiB";
}

uint64_t Above(uint64_t value, uint64_t limit) {
  return value > limit ? value - limit : 0;
}
}  // namespace

uint64_t Space::PackTarget(uint64_t cap) {
  const uint64_t most = StoreOptions().pack_target;
  return cap == 0 ? most : std::clamp(cap / 32, kMiB / 4, most);
}

Result<Space> Space::Of(Store& store, const Settings& settings, bool exact) {
  Space space;
  BELAY_TRY(FsInfo info, store.fs().Info(store.dir()));
  // A file system that tells no size (ramfs) has no limit that could be kept.
  space.free_ = info.total_bytes == 0 ? UINT64_MAX : info.free_bytes;
  space.floor_ = settings.StoreFloorBytes(info.total_bytes);
  space.cap_ = settings.store_cap.bytes;
  if (settings.store_cap.percent > 0)
    space.cap_ =
        info.total_bytes / 100 * static_cast<uint64_t>(settings.store_cap.percent);
  space.exact_ = exact;
  if (exact) {
    // A catalogue that is built anew lies beside the old one for a moment.
    BELAY_TRY(Allocated allocated, AllocatedBytes(store));
    space.used_ = allocated.all + allocated.catalog;
    space.aside_ = AsideText(store.path(), allocated.aside, allocated.aside_paths);
    return space;
  }
  if (space.cap_ == 0) return space;
  for (const Manifest::Pack& pack : store.manifest().packs) {
    if (pack.sealed) {
      space.used_ += *pack.sealed;
      continue;
    }
    auto stat = store.fs().StatAt(store.packs_dir(), PackFile::FileName(pack.id));
    if (stat.ok()) space.used_ += stat->allocated;
  }
  space.used_ *= 2;
  return space;
}

uint64_t Space::left() const {
  const uint64_t on_disk = Above(free_, floor_);
  if (cap_ == 0) return on_disk;
  return std::min(on_disk, Above(cap_ - cap_ / 16, used_));
}

bool Space::WouldFit(uint64_t want, uint64_t freed) const {
  const uint64_t free = free_ > UINT64_MAX - freed ? UINT64_MAX : free_ + freed;
  if (want > Above(free, floor_)) return false;
  return cap_ == 0 || want <= Above(cap_ - cap_ / 16, Above(used_, freed));
}

std::string AsideText(const AbsPath& store, uint64_t bytes,
                      const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  const std::string dir = EscapeForDisplay(store.bytes()) + "/";
  std::string text = SizeOf(bytes) + " were put aside by a repair; delete ";
  text += paths.size() == 1 ? "it" : "them";
  text += " when you need nothing of it: ";
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, paths.size()); ++i)
    text += (i == 0 ? "" : ", ") + dir + EscapeForDisplay(paths[i]);
  if (paths.size() > kShown)
    text += " and " + std::to_string(paths.size() - kShown) + " more (belay du)";
  return text;
}

Error Space::WithAside(Error error) const {
  if (!aside_.empty()) error.hint = aside_ + "; or: " + error.hint;
  return error;
}

Status Space::Check(uint64_t bytes) const {
  if (BELAY_MUTANT("store-without-limits")) return Ok();
  if (cap_ != 0 && bytes > Above(cap_ - cap_ / 16, used_)) {
    // Twice as much, or as often as it takes to help.
    uint64_t enough = 2 * cap_;
    while (enough - enough / 16 < used_ + bytes) enough *= 2;
    const std::string raise = "raise it: belay config store.cap " + SizeOf(enough);
    // However empty the store is.
    if (bytes > cap_ / 2)
      return WithAside(Error(Errc::kNoSpace, "this takes " + SizeOf(bytes) +
                                                 " or more, and the store's cap "
                                                 "(store.cap = " +
                                                 FormatSize({.bytes = cap_}) +
                                                 ") leaves " + SizeOf(left()))
                           .WithHint(raise));
    return WithAside(
        Error(Errc::kNoSpace, "the store has reached its cap (store.cap = " +
                                  FormatSize({.bytes = cap_}) +
                                  "), and nothing of it may go by itself")
            .WithHint(
                raise +
                "; or delete checkpoints you no longer need (belay delete REF), or "
                "forget a whole root (belay off --forget), and run `belay gc`"));
  }
  if (bytes <= Above(free_, floor_)) return Ok();
  std::string what = floor_ == 0 ? "the disk that holds the store is full"
                                 : "the disk that holds the store is nearly full "
                                   "(store.floor = " +
                                       SizeOf(floor_) + ")";
  // There is room, and not enough of it.
  if (free_ > floor_)
    what =
        "this takes " + SizeOf(bytes) + " or more, and " + SizeBelow(free_) +
        " are free on the disk that holds the store" +
        (floor_ == 0 ? ""
                     : ", of which " + SizeOf(floor_) + " are to stay (store.floor)");
  // To keep less free helps only where there is more than is to be taken.
  const std::string hint =
      floor_ == 0 || bytes > free_
          ? "free some space there, or move the store with BELAY_HOME"
          : "free some space there, or keep less free: belay config store.floor " +
                // Half of what would be left, which helps now and the next time too.
                RoundBelow(std::min(floor_, free_ - bytes) / 2);
  return WithAside(Error(Errc::kNoSpace, std::move(what)).WithHint(hint));
}

bool Space::IsTight() const {
  if (cap_ != 0 && Above(cap_ - cap_ / 16, used_) < cap_ / 10) return true;
  return floor_ != 0 && Above(free_, floor_) < kRoomOnDisk;
}

uint64_t Space::room_for_copies() const {
  const uint64_t on_disk = Above(free_, kMiB);
  if (cap_ == 0) return on_disk;
  // At least one pack, whatever is left: without copies nothing can be given back.
  const uint64_t under_cap = Above(cap_ - cap_ / 32, used_);
  return std::min(on_disk, std::max(under_cap / 2, PackTarget(cap_)));
}

Result<GcReport> CollectWithinCap(Store& store, const Settings& settings,
                                  GcOptions options) {
  const int64_t deadline =
      store.clock().SteadyNanos() + store.options().lock_wait_ms * 1'000'000;
  std::optional<GcReport> all;
  for (;;) {
    BELAY_TRY(Space space, Space::Of(store, settings, /*exact=*/true));
    store.LimitPacks(Space::PackTarget(space.cap()));
    options.room =
        BELAY_MUTANT("gc-over-the-cap") ? UINT64_MAX : space.room_for_copies();
    auto pass = CollectGarbage(store, options);
    if (!pass.ok()) {
      const Errc code = pass.error().code;
      if (!all || (code != Errc::kBusy && code != Errc::kConflict)) return pass;
      // Somebody else is at it between two passes of ours.
      if (store.clock().SteadyNanos() >= deadline) return *all;
      store.clock().SleepNanos(50'000'000);
      continue;
    }
    if (!all) {
      all = *pass;
    } else {
      all->packs_after = pass->packs_after;
      all->packs_left = pass->packs_left;
      all->bytes_after = pass->bytes_after;
      all->objects_kept += pass->objects_kept;
      all->objects_removed += pass->objects_removed;
      all->records_removed += pass->records_removed;
      all->leftovers_removed += pass->leftovers_removed;
      all->generation_changed |= pass->generation_changed;
    }
    if (!pass->generation_changed || pass->packs_left == 0) return *all;
  }
}

}  // namespace belay
