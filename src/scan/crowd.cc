#include "scan/crowd.h"

#include <algorithm>

#include "base/escape.h"

namespace belay {

size_t Crowd::Add(size_t parent, std::string_view name) {
  dirs_.push_back({.parent = parent, .name = std::string(name), .files = 0});
  return dirs_.size() - 1;
}

uint64_t Crowd::total() const {
  uint64_t all = 0;
  for (const Dir& dir : dirs_) all += dir.files;
  return all;
}

std::string Crowd::PathOf(size_t dir) const {
  std::vector<size_t> way;
  for (size_t at = dir; at != kRoot; at = dirs_[at].parent) way.push_back(at);
  std::string path;
  for (size_t i = way.size(); i-- > 0;)
    path += (path.empty() ? "" : "/") + dirs_[way[i]].name;
  return path;
}

std::vector<Crowd::Place> Crowd::Largest(size_t most) const {
  std::vector<uint64_t> below(dirs_.size());
  std::vector<uint64_t> largest_child(dirs_.size());
  for (size_t i = dirs_.size(); i-- > 0;) {
    below[i] += dirs_[i].files;
    if (i == kRoot) break;
    const size_t parent = dirs_[i].parent;
    below[parent] += below[i];
    largest_child[parent] = std::max(largest_child[parent], below[i]);
  }
  std::vector<size_t> order;
  for (size_t i = 1; i < dirs_.size(); ++i)
    if (below[i] > 0 && below[i] * 20 >= below[kRoot] &&
        largest_child[i] * 10 <= below[i] * 9)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return below[a] != below[b] ? below[a] > below[b] : PathOf(a) < PathOf(b);
  });
  if (order.size() > most) order.resize(most);
  std::vector<Place> out;
  out.reserve(order.size());
  for (size_t i : order) out.push_back({.path = PathOf(i), .files = below[i]});
  return out;
}

std::string Crowd::Text(size_t most) const {
  std::string text;
  for (const Place& place : Largest(most))
    text += (text.empty() ? "" : ", ") + std::to_string(place.files) + " in " +
            EscapeForDisplay(place.path) + "/";
  return text;
}

}  // namespace belay
