#pragma once

// TreeCursor finds paths in a tree, like FindInTree(), and keeps the directories on the
// way to the last one: who asks in the order of the paths reads each directory once.
//
// Threads: one.

#include <optional>
#include <string>
#include <vector>

#include "scan/scan.h"

namespace belay {

class TreeCursor {
 public:
  TreeCursor(const ObjectId& tree, Scan::TreeReader read)
      : root_(tree), read_(std::move(read)) {}

  // `path` is a valid RelPath. Nothing when the tree has no such path.
  Result<std::optional<TreeEntry>> Find(const std::string& path);

 private:
  struct Level {
    size_t end;  // of its path, in path_
    Tree tree;
  };
  void KeepCommon(const std::string& path);

  ObjectId root_;
  Scan::TreeReader read_;
  std::string path_;
  std::vector<Level> levels_;
};

}  // namespace belay
