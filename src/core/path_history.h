#pragma once

// PathHistory: every time that certain paths changed, as far as checkpoints and
// operations know, and whose doing it was.
//
// A checkpoint tells what changed since the one before it; what a rollback, undo or
// redo did in between is told of that, and of the next checkpoint only what differs
// from it. What a checkpoint left out (too large, unreadable, ignored since) was not
// deleted, and is not said to be. Of two trees only the subtrees on the way to the
// paths, and below them where they differ, are read.

#include <functional>
#include <map>

#include "core/change.h"
#include "core/operations.h"
#include "scan/scan.h"
#include "store/store.h"

namespace belay {

struct PathHistoryRow {
  // One of the two; they point into what was given.
  const Checkpoint* checkpoint = nullptr;
  const Operation* operation = nullptr;
  struct Changed {
    std::string path;
    Change change;
  };
  std::vector<Changed> paths = {};  // by path
  // Of a checkpoint: others between it and the one before it in this history were let
  // go, and with them whose doing their changes were.
  bool gap = false;
};
// Who made a change of the row's checkpoint; Author::Kind::kUnknown is among them when
// that is not known any more.
std::vector<Author> AuthorsIn(const PathHistoryRow& row, std::string_view path);

struct PathHistory {
  std::vector<PathHistoryRow> rows;  // newest first
  // How paths are for all that is known, where the newest checkpoint's tree is not the
  // last word: what operations after it left, and what it left out, as it was before.
  std::map<std::string, std::optional<PathState>> known;
  // The directory itself; nothing where that is in no rules that can be read.
  std::optional<PathState> root;
  std::vector<RecordId> unreadable;  // damaged, purged: what they would tell is missing
};

// `asked`: paths and globs from the root (core/selection.h); a directory means all
// below it, "" everything. `exists`: what is there under its literal name is no glob.
// `since_oldest`: the oldest is only what the next is compared with. (All that it holds
// would otherwise have been added by it.)
Result<PathHistory> HistoryOf(Store& store, const Scan::TreeReader& trees,
                              const std::vector<CatalogEntry>& newest_first,
                              const std::vector<Operation>& oldest_first,
                              const std::vector<std::string>& asked,
                              const std::function<bool(const RelPath&)>& exists = {},
                              bool since_oldest = false);

}  // namespace belay
