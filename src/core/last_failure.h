#pragma once

// The last checkpoint of a root that could not be made, the last one from before a
// program that could not, and the last rollback that left the directory neither here
// nor there, for `belay status`: a hook that fails says so where nobody looks.
//
// Hints, never flushed: on a full disk they may not be there. The first counts until
// the root has a newer checkpoint, so that one that is made costs nothing more. The
// others count until a person has gone on from there: a checkpoint that was made by
// itself brings no state before a program back, and does not make a mix a state that
// anybody wants. That a checkpoint could not be anchored in git counts until the next
// anchors were made. Layout: docs/format.md, "cache/".

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "store/catalog.h"

namespace belay {

enum class FailureOf : uint8_t { kCheckpoint, kBeforeRun, kRollback, kAnchor };

struct LastFailure {
  FailureOf of = FailureOf::kCheckpoint;
  int64_t at_ms = 0;
  RecordId after;  // the root's last checkpoint then; zero: there was none
  std::string what;
};

// How `what` begins when nothing but a rollback is to blame: it was interrupted, could
// not be finished, and the directory may be a mix.
inline constexpr std::string_view kJournalLost =
    "a rollback was interrupted and its journal is damaged";

void RememberFailure(Store& store, const RootId& root, const LastFailure& failure);
// Nothing when there was none, or it does not count any more.
Result<std::optional<LastFailure>> ReadFailure(Store& store, Catalog& catalog,
                                               const RootId& root, FailureOf of);
// It was put right.
void ForgetFailure(Store& store, const RootId& root, FailureOf of);
// All of them.
void ForgetFailures(Store& store, const RootId& root);

}  // namespace belay
