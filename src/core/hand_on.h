#pragma once

// HandOn: what checkpoints knew that are let go, and that those which stay need.
//
//   * Whose doing their changes were goes to the next one that stays: it then shows the
//     changes of all of them. A path that several changed has all of them as authors
//     (*shared*); one that the same session changed in several calls has what these
//     calls have in common. Without this the changes are nobody's that is known, and a
//     rollback across them asks about each.
//   * Files outside of the root, as they were, go to the one before that stays: until
//     somebody named them they were so at that one, too.
//
// Both are annotations, published in one batch with the drop. Bounded: see the .cc.
// Layout: docs/format.md, "annotation", 9 to 11.
//
// Reads only subtrees that differ. Where one of them cannot be read nothing is handed
// on, and the changes are of unknown authors: nobody is to lose what they did by a
// guess.

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/operations.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// `newest_first`: all of one root, with those that go. Annotations without id and time.
Result<std::vector<LogRecord>> HandOn(Store& store,
                                      const std::vector<CatalogEntry>& newest_first,
                                      const std::vector<Operation>& oldest_first,
                                      const std::unordered_set<RecordId>& going);

// Who changed each path, as a record has it: within bounds, and never more certain than
// it was.
std::vector<Authorship> Condense(std::map<std::string, std::vector<Author>> by_path);

}  // namespace belay
