#pragma once

// DiffStates: what differs between two states, or a state and the directory as it is,
// path by path. The lines of one file: file_diff.h.
//
// Guarantees
//   * Only directories that differ are read. Content is read for renames alone, and
//     only where a file went and another came.
//   * What a side does not have because it was not covered there (rules, too large,
//     unreadable, a partial checkpoint) is kUnknown with the reason: never "deleted",
//     never "added".
//   * A path that is a secret by the rules of either side is marked so.
//
// Threads: one.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fs.h"
#include "core/selection.h"
#include "core/state_view.h"

namespace belay {

// One side of a comparison. Everything it was made from must outlive it.
struct DiffSide {
  ObjectId tree;
  Scan::TreeReader trees;
  // The root directory itself, which has no entry in a tree; none: not known.
  std::optional<TreeEntry> root = {};
  // The bytes of a file of this side; more than `limit` is kInvalid.
  std::function<Result<Bytes>(const std::string& path, const TreeEntry& entry,
                              uint64_t limit)>
      content;
  // Its first bytes alone, that many at the most: a look at a file of any size.
  std::function<Result<Bytes>(const std::string& path, const TreeEntry& entry,
                              size_t most)>
      beginning;
  // Why this side would not have a path even if it was there; empty: it would.
  std::function<Result<std::string>(const std::string& path, bool is_dir)> why_not = {};
  std::function<bool(const std::string& path)> is_secret = {};
  // Directories whose extended attributes could not be read: nothing is said of them.
  std::set<std::string> attributes_unknown = {};
  bool is_now = false;
};

// `partial`: the checkpoint says so. `lists` are today's rules: a pattern that somebody
// added since is meant for what is stored already, too.
DiffSide SideOfState(Store& store, const StateView& view, bool partial,
                     const RuleLists& lists);
// `root` is the directory that `now` was made from.
DiffSide SideOfNow(Store& store, const TreeNow& now, const Fd& root,
                   const RuleLists& lists);

enum class DiffStatus {
  kAdded,
  kDeleted,
  kModified,     // content or attributes
  kTypeChanged,  // a file became a symlink, or the other way
  kRenamed,      // with or without changes
  kUnknown,      // one side may have had it all the same
};
std::string_view DiffStatusName(DiffStatus status);  // "added", "type_changed" ...

struct PathDiff {
  DiffStatus status = DiffStatus::kModified;
  std::string path;                        // the new one of a rename; "." is the root
  std::string old_path = {};               // of a rename
  std::optional<TreeEntry> before, after;  // directories only when empty or changed
  bool secret = false;
  unsigned similarity = 0;       // per cent, of a rename
  std::string why = {};          // of kUnknown
  bool swaps_directory = false;  // a directory and something else change places

  bool SameContent() const;
};

struct DiffStatesOptions {
  bool renames = true;
};

struct StateDiff {
  std::vector<PathDiff> paths;     // in an order in which they can be applied
  bool renames_cut_short = false;  // there was too much to compare
};

// kInvalid names what `selection` asked for and neither side has.
Result<StateDiff> DiffStates(const DiffSide& from, const DiffSide& to,
                             Selection& selection, const DiffStatesOptions& options);

}  // namespace belay
