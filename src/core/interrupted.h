#pragma once

// Whether a rollback of a root was interrupted: then its journal is there, and nothing
// that the journal may need is let go.

#include "store/store.h"

namespace belay {

// Of the store's directory: where the journal of a root's rollback is while it runs.
RelPath JournalPath(const RootId& root);

Result<bool> HasJournal(Store& store, const RootId& root);

}  // namespace belay
