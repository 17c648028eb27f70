#pragma once

// What differs between two trees of the store, path by path, and finding one path in
// one. Subtrees that are the same are not read; depth costs memory, never stack.
//
// Counted as Scan::ChangesSince does: files and symlinks each, a directory by what is
// in it, an empty one by itself, one whose own attributes changed as modified. What
// became another kind of thing was deleted and added.

#include "base/path.h"
#include "scan/scan.h"

namespace belay {

// Zero stands for nothing at all. The order of visits is not that of the paths.
Result<ChangeCounts> DiffTrees(const ObjectId& from, const ObjectId& to,
                               const Scan::TreeReader& read,
                               const ChangeVisitor& visit = {});

// Everything below a tree, depth first, names rising within each directory; a directory
// comes before what is in it. `path` starts with `prefix` ("" or a path).
using TreeVisitor = std::function<Status(const std::string& path, const TreeEntry&)>;
Status WalkTree(const ObjectId& tree, const std::string& prefix,
                const Scan::TreeReader& read, const TreeVisitor& visit);

// The entry at `path`; nothing when there is none.
Result<std::optional<TreeEntry>> FindInTree(const ObjectId& tree, const RelPath& path,
                                            const Scan::TreeReader& read);

}  // namespace belay
