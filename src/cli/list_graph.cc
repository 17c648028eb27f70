#include "cli/list_graph.h"

#include <algorithm>

namespace belay {

namespace {

// What each lane waits for.
using Lanes = std::vector<std::optional<RecordId>>;

std::string Trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Plain(const Lanes& lanes) {
  std::string out;
  for (const auto& lane : lanes) out += lane ? "| " : "  ";
  return out;
}

// The lanes in `ends` run into the one at `into`.
std::string Joined(const Lanes& lanes, size_t into, const std::vector<size_t>& ends) {
  std::string out = Plain(lanes);
  for (size_t end : ends) {
    out[2 * end] = ' ';
    out[2 * end - 1] = '/';
    for (size_t at = 2 * into + 1; at + 1 < 2 * end; ++at)
      if (out[at] == ' ') out[at] = '_';
  }
  return Trimmed(std::move(out));
}

}  // namespace

std::vector<GraphLine> DrawGraph(const std::vector<GraphNode>& nodes,
                                 const std::optional<RecordId>& here, bool fold) {
  std::vector<GraphLine> out;
  if (nodes.empty()) return out;
  Lanes lanes;
  if (here && *here != nodes[0].id) {
    out.push_back({.lanes = "@", .here = true});
    lanes.push_back(here);
  }
  auto waiting = [&lanes](const RecordId& id) {
    std::vector<size_t> found;
    for (size_t i = 0; i < lanes.size(); ++i)
      if (lanes[i] && *lanes[i] == id) found.push_back(i);
    return found;
  };
  for (size_t i = 0; i < nodes.size();) {
    std::vector<size_t> at = waiting(nodes[i].id);
    if (at.empty()) {
      // The first lane is for where the root stands.
      const size_t first = here && !lanes.empty() ? 1 : 0;
      size_t free = first;
      while (free < lanes.size() && lanes[free]) ++free;
      if (free >= lanes.size()) lanes.resize(free + 1);
      at.push_back(free);
    }
    const size_t lane = at.front();
    if (at.size() > 1) {
      at.erase(at.begin());
      out.push_back({.lanes = Joined(lanes, lane, at)});
      for (size_t end : at) lanes[end].reset();
    }
    size_t count = 1;
    if (fold && nodes[i].taken_back)
      while (i + count < nodes.size() && nodes[i + count].taken_back &&
             nodes[i + count - 1].parent == nodes[i + count].id &&
             waiting(nodes[i + count].id).empty())
        ++count;
    lanes[lane] = nodes[i].id;
    std::string drawn = Plain(lanes);
    drawn[2 * lane] = !nodes[i].taken_back ? '*' : fold ? '~' : 'o';
    out.push_back({.lanes = Trimmed(std::move(drawn)),
                   .node = i,
                   .folded = fold && nodes[i].taken_back ? count : 0});
    i += count;
    lanes[lane] = nodes[i - 1].parent;
    while (!lanes.empty() && !lanes.back()) lanes.pop_back();
  }
  return out;
}

}  // namespace belay
