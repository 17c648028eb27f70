#pragma once

// What an operation changes, path by path: how it was before and how it is after. The
// same list is the plan, the journal, and what `belay undo` reverses.
//
// Decoders take no path that leads out of a root or into a git directory, and nothing
// twice. Layout: docs/format.md, "Changes".

#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "store/object.h"

namespace belay {

// What stands at a path. As a tree has it, without the name; a directory without its
// content.
using PathState = TreeEntry;
PathState StateOf(const TreeEntry& entry);

struct PathChange {
  // Valid RelPath bytes, or "": the root directory itself, of which only mode and owner
  // count, and whether it was made (no `before`) or is to go (no `after`).
  std::string path;
  std::optional<PathState> before, after;
  bool operator==(const PathChange&) const = default;
};

// Why an undo or redo is refused.
struct Conflict {
  std::string path;
  std::string what;  // "changed since", "is gone", "is there again", "is in the way"
};

// As people are shown it: "." is the root itself.
inline std::string ShownPath(const std::string& path) {
  return path.empty() ? "." : path;
}

// kCorrupt when it leads out of the root or into a git directory.
Status CheckPath(const std::string& bytes);

// A directory as the root is told of.
PathState RootState(uint32_t mode, uint32_t uid, uint32_t gid);

// Kind and content; of a directory the kind alone.
bool SameContent(const PathState& a, const PathState& b);
// Mode (not of symlinks), owner, extended attributes.
bool SameAttributes(const PathState& a, const PathState& b);
bool SameState(const std::optional<PathState>& a, const std::optional<PathState>& b);

// The node refers to all content, so that whoever refers to it keeps the content too.
Node EncodeChanges(const std::vector<PathChange>& sorted);
Result<std::vector<PathChange>> DecodeChanges(const Node& node);
// kConflict when a path comes twice or out of order, or on one side something is
// beneath a file, a link or nothing. A list that was made while others moved things may
// be so, and leads to no tree.
Status CheckFits(const std::vector<PathChange>& sorted);
// Of a git directory that comes or goes as a whole: `.git`, and what is below it.
Result<std::vector<PathChange>> DecodeGitDirChanges(const Node& node);

// Of files outside of the root: absolute paths, no directories.
Result<std::vector<PathChange>> DecodeExternalChanges(const Node& node);

// Before and after change places.
std::vector<PathChange> Reversed(std::vector<PathChange> changes);

}  // namespace belay
