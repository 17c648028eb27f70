#include "restore/tree_cursor.h"

#include <algorithm>

namespace belay {

void TreeCursor::KeepCommon(const std::string& path) {
  size_t common = 0;
  while (common < path_.size() && common < path.size() && path_[common] == path[common])
    ++common;
  auto leads_there = [&](const Level& level) {
    return level.end == 0 || (level.end <= common && path[level.end] == '/');
  };
  while (!levels_.empty() && !leads_there(levels_.back())) levels_.pop_back();
  path_.resize(levels_.empty() ? 0 : levels_.back().end);
}

Result<std::optional<TreeEntry>> TreeCursor::Find(const std::string& path) {
  KeepCommon(path);
  if (levels_.empty()) {
    BELAY_TRY(Tree top, read_(root_));
    levels_.push_back({0, std::move(top)});
  }
  for (;;) {
    const size_t from = levels_.back().end;
    const size_t begin = from == 0 ? 0 : from + 1;
    const size_t end = std::min(path.size(), path.find('/', begin));
    const std::string_view name = std::string_view(path).substr(begin, end - begin);
    const std::vector<TreeEntry>& entries = levels_.back().tree.entries;
    auto entry = std::lower_bound(
        entries.begin(), entries.end(), name,
        [](const TreeEntry& e, std::string_view n) { return e.name < n; });
    if (entry == entries.end() || entry->name != name)
      return std::optional<TreeEntry>();
    if (end == path.size()) return std::optional(*entry);
    if (entry->kind != EntryKind::kDirectory) return std::optional<TreeEntry>();
    BELAY_TRY(Tree below, read_(entry->id));
    path_.append(path, from, end - from);
    levels_.push_back({end, std::move(below)});
  }
}

}  // namespace belay
