#pragma once

// The lines of `belay list`: checkpoints, those of a turn in one.

#include <optional>
#include <vector>

#include "store/catalog.h"

namespace belay {

// One line of the list: a checkpoint, or a turn by its first one.
struct ListRow {
  const CheckpointRow* row = nullptr;
  uint64_t number = 0;
  uint64_t folded = 1;   // checkpoints of the turn
  uint64_t changed = 0;  // by all of them
  uint64_t changed_dirs = 0;
  uint64_t moved = 0;  // of what changed: by rollbacks, undos and redos before it
  std::optional<RecordId> taken_back = {};
  // Places in the outline of what was folded, oldest first; empty: nothing was.
  std::vector<size_t> members = {};
};

// Newest first, as they came, but with the automatic ones of one turn folded into the
// turn's first: that is the one to go back to. Those of a subagent that is a session by
// itself (opencode) go into the turn of whoever started it.
Result<std::vector<ListRow>> FoldTurns(Catalog& catalog, std::vector<ListRow> rows);

// Of turns among whose checkpoints there are some of others, which therefore show what
// others changed: what was changed by the turn's own session (Checkpoint::by), wherever
// it was found. Of all other rows nothing is read.
Status CountOwnChanges(Catalog& catalog, const std::vector<CheckpointRow>& outline,
                       std::vector<ListRow>& rows);

}  // namespace belay
