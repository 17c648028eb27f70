#pragma once

// A tree with some paths put into it: how a safety checkpoint comes to hold what is not
// covered.

#include <functional>

#include "core/change.h"
#include "scan/scan.h"

namespace belay {

struct Overlaid {
  std::string path;
  PathState state;
};
// `dir` says what a directory is that the tree does not have. An entry that is another
// kind of thing in the tree is replaced.
Result<ObjectId> OverlayTree(
    const ObjectId& base, const std::vector<Overlaid>& paths,
    const Scan::TreeReader& read,
    const std::function<Result<PathState>(const std::string&)>& dir, ScanSink& sink);

}  // namespace belay
