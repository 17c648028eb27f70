#pragma once

// The history as a tree in text, for `belay list --graph`: newest first, a lane for
// each branch, the line that leads to where the root stands leftmost.

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace belay {

struct GraphNode {
  RecordId id;
  std::optional<RecordId> parent = {};  // the nearest one that is drawn too
  bool taken_back = false;
};

struct GraphLine {
  std::string lanes;                // "| o", "|/"
  std::optional<size_t> node = {};  // which one stands here
  size_t folded = 0;                // from `node` on, as many taken back in one line
  bool here = false;                // the root stands here, not at the newest
};

// `here`: the node the root grew from last. With `fold` those of a branch that was
// taken back share a line.
std::vector<GraphLine> DrawGraph(const std::vector<GraphNode>& newest_first,
                                 const std::optional<RecordId>& here, bool fold);

}  // namespace belay
