#pragma once

// Retention: which checkpoints may go, and letting them go.
//
// What always stays: checkpoints made by hand, pinned ones, the first and the newest of
// every session, the newest ones of a root, and whatever the last `retention.undo`
// operations of a root were about. A turn's first checkpoint, which is what `turn:N`
// means, goes last of its turn. Copies of transcripts stay as long as their session
// has a checkpoint, and `retention.days` after the last word of it; when room is needed
// those that nothing was heard of for so long go first. Of the rest the newest
// `retention.auto` stay, unless they are older than `retention.days`. Under pressure
// (cap, floor) all of the rest may go, oldest first, whatever root they belong to.
//
// Guarantees
//   * Nothing goes but by a drop record that is flushed, together with an entry in the
//     operation log; the space comes back by a later collection.
//   * Whose doing changes were stays known, and so do files outside of the root as they
//     were (core/hand_on.h).
//   * An operation beyond the horizon stays in the log; what it alone kept is let go
//     (a release record), and it can no longer be undone.
//   * A root that somebody is just rolling back is passed over.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/operations.h"
#include "core/settings.h"
#include "core/transcripts.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct RetentionLimits {
  int64_t autos = 200;
  int64_t days = 30;
  int64_t undo = 50;
  static RetentionLimits Of(const Settings& settings) {
    return {settings.retention_auto, settings.retention_days, settings.retention_undo};
  }
};

enum class WhyPruned : uint8_t { kCount, kAge, kSpace };
// "more than 200 automatic ones", "older than 30 days", "room was needed"
std::string WhyPrunedText(WhyPruned why, const RetentionLimits& limits);

struct Doomed {
  CatalogEntry entry;
  WhyPruned why = WhyPruned::kCount;
  // When room is needed the smallest goes first: its sequence number or, of a turn's
  // first, that of the last of the turn that may go.
  uint64_t goes_at = 0;
};

struct RetentionPlan {
  std::vector<Doomed> checkpoints;  // newest first
  std::vector<Operation> released;  // beyond the horizon, and not yet let go
  bool empty() const { return checkpoints.empty() && released.empty(); }
};

// Of one root: pure. `now_ms`: ages count from here.
RetentionPlan PlanRetention(std::span<const CatalogEntry> newest_first,
                            std::span<const Operation> oldest_first,
                            const RetentionLimits& limits, int64_t now_ms);
// What may go when room is needed, in that order.
std::vector<Doomed> PrunableForSpace(std::span<const CatalogEntry> newest_first,
                                     std::span<const Operation> oldest_first,
                                     const RetentionLimits& limits);

struct PrunedRoot {
  RootEntry root;
  RetentionPlan plan;
  std::vector<std::string> notes;  // why it was passed over
};
struct PruneReport {
  std::vector<PrunedRoot> roots;  // those with anything to say
  // Copies of conversations whose sessions have no checkpoint any more.
  std::vector<TranscriptCopy> transcripts;
  uint64_t checkpoints = 0;
  uint64_t operations = 0;
};
// Every root of the store, by what its limits say.
Result<PruneReport> Prune(Store& store, Catalog& catalog, const RetentionLimits& limits,
                          bool dry_run);

// Collects, and where that is not enough lets the oldest go, until the store may grow
// by `want` and a little more. False when nothing more may go. Waits for somebody who
// is at it already, `wait_ms` at most.
struct MadeRoom {
  bool enough = false;
  uint64_t checkpoints = 0;  // that went
};
Result<MadeRoom> MakeRoom(Store& store, const Settings& settings, uint64_t want,
                          int64_t wait_ms);

// Whether that would be of any use: something may go, or is garbage already.
Result<bool> MayMakeRoom(Store& store, const Settings& settings);

}  // namespace belay
