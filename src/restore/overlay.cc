#include "restore/overlay.h"

#include <algorithm>
#include <map>

#include "restore/paths_internal.h"

namespace belay {

namespace {

struct Level {
  Tree tree;
  std::optional<PathState> own;  // of a directory that the parent does not have
};

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<TreeEntry>::iterator Find(Tree& tree, const std::string& name) {
  return std::lower_bound(
      tree.entries.begin(), tree.entries.end(), name,
      [](const TreeEntry& entry, const std::string& n) { return entry.name < n; });
}

void Put(Tree& tree, TreeEntry entry) {
  auto at = Find(tree, entry.name);
  if (at != tree.entries.end() && at->name == entry.name)
    *at = std::move(entry);
  else
    tree.entries.insert(at, std::move(entry));
}

}  // namespace

Result<ObjectId> OverlayTree(
    const ObjectId& base, const std::vector<Overlaid>& paths,
    const Scan::TreeReader& read,
    const std::function<Result<PathState>(const std::string&)>& dir, ScanSink& sink) {
  if (paths.empty()) return base;
  std::map<std::string, Level> levels;  // parents come first
  BELAY_TRY(levels[""].tree, read(base));

  // Down to the directory of each path, then up again.
  auto descend = [&](const std::string& path) -> Status {
    std::vector<std::string> missing;
    for (std::string at = path; !levels.contains(at); at = ParentOf(at))
      missing.push_back(at);
    for (size_t i = missing.size(); i-- > 0;) {
      const std::string& at = missing[i];
      Tree& parent = levels.at(ParentOf(at)).tree;
      Level level;
      auto found = Find(parent, NameOf(at));
      if (found != parent.entries.end() && found->name == NameOf(at) &&
          found->kind == EntryKind::kDirectory) {
        BELAY_TRY(level.tree, read(found->id));
      } else {
        BELAY_TRY(level.own, dir(at));
      }
      levels.emplace(at, std::move(level));
    }
    return Ok();
  };
  for (const Overlaid& one : paths) {
    BELAY_OK(descend(ParentOf(one.path)));
    TreeEntry entry = one.state;
    entry.name = NameOf(one.path);
    if (entry.kind == EntryKind::kDirectory) {
      BELAY_OK(descend(one.path));
      if (levels.at(one.path).own) levels.at(one.path).own = one.state;
      continue;
    }
    Put(levels.at(ParentOf(one.path)).tree, std::move(entry));
  }
  for (auto level = levels.rbegin();; ++level) {
    BELAY_TRY(ObjectId id, sink.PutTree(level->second.tree));
    if (level->first.empty()) return id;
    Tree& parent = levels.at(ParentOf(level->first)).tree;
    const std::string name = NameOf(level->first);
    TreeEntry entry;
    auto found = Find(parent, name);
    if (level->second.own)
      entry = *level->second.own;
    else
      entry = *found;
    entry.name = name;
    entry.kind = EntryKind::kDirectory;
    entry.id = id;
    Put(parent, std::move(entry));
  }
}

}  // namespace belay
