#pragma once

// Whether a rollback of a root was interrupted: then its journal is there, and nothing
// that the journal may need is let go.

#include <string_view>

#include "store/store.h"

namespace belay {

// What a rollback displaces waits in a directory of the root with such a name.
inline constexpr std::string_view kStagePrefix = ".belay-stage-";

// Of the store's directory: where the journal of a root's rollback is while it runs.
RelPath JournalPath(const RootId& root);

Result<bool> HasJournal(Store& store, const RootId& root);

}  // namespace belay
