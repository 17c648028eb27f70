#include "scan/tree_diff.h"

#include <algorithm>

#include "scan/scan_internal.h"

namespace belay {

namespace {

bool SameAttributes(const TreeEntry& a, const TreeEntry& b) {
  return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && a.xattrs == b.xattrs;
}

class Differ {
 public:
  Differ(const Scan::TreeReader& read, const ChangeVisitor& visit)
      : read_(read), visit_(visit) {}

  Result<ChangeCounts> Run(const ObjectId& from, const ObjectId& to) {
    waiting_.push_back({"", from, to});
    while (!waiting_.empty()) {
      Pair pair = std::move(waiting_.back());
      waiting_.pop_back();
      if (pair.from == pair.to) continue;
      BELAY_TRY(Tree old, Read(pair.from));
      BELAY_TRY(Tree now, Read(pair.to));
      // An empty directory counts by itself when all of it came or went.
      if (!pair.path.empty() && old.entries.empty() && now.entries.empty())
        Count(pair.path, pair.from.is_zero() ? Change::kAdded : Change::kDeleted, true);
      Merge(pair.path, old, now);
    }
    return counts_;
  }

 private:
  struct Pair {
    std::string path;
    ObjectId from, to;  // zero: not there
  };

  Result<Tree> Read(const ObjectId& id) {
    if (id.is_zero()) return Tree();
    return read_(id);
  }

  void Count(const std::string& path, Change change, bool directory) {
    if (visit_) visit_(path, change);
    counts_.Add(change, directory);
  }

  void Whole(const std::string& path, const TreeEntry& entry, Change change) {
    if (entry.kind != EntryKind::kDirectory) return Count(path, change, false);
    const bool added = change == Change::kAdded;
    waiting_.push_back(
        {path, added ? ObjectId() : entry.id, added ? entry.id : ObjectId()});
  }

  void Merge(const std::string& dir, const Tree& old, const Tree& now) {
    auto a = old.entries.begin();
    auto b = now.entries.begin();
    while (a != old.entries.end() || b != now.entries.end()) {
      const bool only_old =
          b == now.entries.end() || (a != old.entries.end() && a->name < b->name);
      const bool only_now = !only_old && (a == old.entries.end() || b->name < a->name);
      if (only_old) {
        Whole(Joined(dir, a->name), *a, Change::kDeleted);
        ++a;
      } else if (only_now) {
        Whole(Joined(dir, b->name), *b, Change::kAdded);
        ++b;
      } else {
        Both(Joined(dir, b->name), *a, *b);
        ++a;
        ++b;
      }
    }
  }

  void Both(std::string path, const TreeEntry& a, const TreeEntry& b) {
    if (a == b) return;
    if (a.kind != b.kind) {
      Whole(path, a, Change::kDeleted);
      Whole(path, b, Change::kAdded);
      return;
    }
    const bool directory = a.kind == EntryKind::kDirectory;
    if (!directory || !SameAttributes(a, b)) Count(path, Change::kModified, directory);
    if (directory && a.id != b.id) waiting_.push_back({std::move(path), a.id, b.id});
  }

  const Scan::TreeReader& read_;
  const ChangeVisitor& visit_;
  ChangeCounts counts_;
  std::vector<Pair> waiting_;
};

}  // namespace

Result<ChangeCounts> DiffTrees(const ObjectId& from, const ObjectId& to,
                               const Scan::TreeReader& read,
                               const ChangeVisitor& visit) {
  return Differ(read, visit).Run(from, to);
}

Status WalkTree(const ObjectId& tree, const std::string& prefix,
                const Scan::TreeReader& read, const TreeVisitor& visit) {
  struct Level {
    Tree tree;
    size_t next = 0;
    size_t path_length = 0;
  };
  std::vector<Level> levels;
  std::string path = prefix;
  BELAY_TRY(Tree top, read(tree));
  levels.push_back({std::move(top), 0, path.size()});
  while (!levels.empty()) {
    Level& level = levels.back();
    path.resize(level.path_length);
    if (level.next == level.tree.entries.size()) {
      levels.pop_back();
      continue;
    }
    const TreeEntry& entry = level.tree.entries[level.next++];
    if (!path.empty()) path += '/';
    path += entry.name;
    BELAY_OK(visit(path, entry));
    if (entry.kind != EntryKind::kDirectory) continue;
    BELAY_TRY(Tree below, read(entry.id));
    levels.push_back({std::move(below), 0, path.size()});
  }
  return Ok();
}

Result<std::optional<TreeEntry>> FindInTree(const ObjectId& tree, const RelPath& path,
                                            const Scan::TreeReader& read) {
  std::optional<TreeEntry> found;
  ObjectId at = tree;
  for (std::string_view name : path.Components()) {
    if (found) {
      if (found->kind != EntryKind::kDirectory) return std::optional<TreeEntry>();
      at = found->id;
    }
    BELAY_TRY(Tree here, read(at));
    auto entry = std::lower_bound(
        here.entries.begin(), here.entries.end(), name,
        [](const TreeEntry& e, std::string_view n) { return e.name < n; });
    if (entry == here.entries.end() || entry->name != name)
      return std::optional<TreeEntry>();
    found = std::move(*entry);
  }
  return found;
}

}  // namespace belay
