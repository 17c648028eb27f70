#pragma once

// The last checkpoint of a root that could not be made, for `belay status`: a hook that
// fails says so where nobody looks.
//
// A hint, never flushed: on a full disk it may not be there. It counts until the root
// has a newer checkpoint, so that one that is made costs nothing more. Layout:
// docs/format.md, "cache/".

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "store/store.h"

namespace belay {

struct LastFailure {
  int64_t at_ms = 0;
  RecordId after;  // the root's last checkpoint then; zero: there was none
  std::string what;
};

// How `what` begins when nothing but a rollback is to blame: it was interrupted, could
// not be finished, and the directory may be a mix.
inline constexpr std::string_view kJournalLost =
    "a rollback was interrupted and its journal is damaged";

void RememberFailure(Store& store, const RootId& root, const LastFailure& failure);
std::optional<LastFailure> ReadFailure(Store& store, const RootId& root);
void ForgetFailure(Store& store, const RootId& root);

}  // namespace belay
