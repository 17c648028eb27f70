#pragma once

// Anchors: with `git.refs = true` each checkpoint is also a commit of the user's
// repository, held by refs/belay/checkpoints/<id>.
//
// Guarantees
//   * A checkpoint does not wait for its anchor, and does not fail by it: who made one
//     starts AnchorCheckpoints() in a process of its own. What failed is remembered
//     (FailureOf::kAnchor).
//   * What goes in: commits/commit_tree.h. Secrets, and what was purged, do not.
//   * Only what differs from the last anchor is sent to git.
//   * It is in no rollback's way: refs are taken away only while none is under way.
//   * An anchor goes when its checkpoint does, when content of it is purged, and when
//     the session has more than `git.refs_keep`. Only refs whose commit says that it is
//     of this store go, and only while they are what was looked at.
//   * Without anchors in a repository, nothing here runs git or writes anything, unless
//     AnchorCheckpoints() is called.
//
// The commit says all that is needed to find out whose it is and what it holds, so that
// nothing is kept anywhere else: docs/git.md.

#include <set>
#include <string>
#include <vector>

#include "core/settings.h"
#include "git/repository.h"
#include "scan/work_trees.h"
#include "store/catalog.h"

namespace belay {

inline constexpr std::string_view kAnchorRefs = "refs/belay/checkpoints/";

// The ids of checkpoints that have an anchor in the repository that `root` is in, by
// git's files alone. Empty when there is no repository.
std::set<std::string> AnchoredIn(Fs& fs, const AbsPath& root, const GitPlaces& places);

struct AnchorReport {
  std::vector<std::string> made;     // refs
  std::vector<std::string> removed;  // refs
  std::vector<std::string> failed;   // "abc1234: why"
  void Add(AnchorReport other);
};

// Makes the anchors that are missing: of the checkpoints since the last that has one,
// or of the newest. Takes away those that should not be there. kBusy when somebody else
// is at it for `wait_ms`.
Result<AnchorReport> AnchorCheckpoints(Store& store, Catalog& catalog, const Root& root,
                                       const Settings& settings,
                                       const GitPlaces& places,
                                       int64_t wait_ms = 10'000);

// Takes away the anchors of this store whose checkpoint is gone, or lost content to a
// purge, in the repositories of all roots and of `also` (a root that was just
// forgotten). What fails is in the report.
AnchorReport DropStaleAnchors(Store& store, Catalog& catalog, const GitPlaces& places,
                              const std::vector<std::string>& also = {});

}  // namespace belay
