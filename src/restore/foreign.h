#pragma once

// Foreign changes: what others did since a checkpoint that belongs to a session: other
// sessions, and whoever is outside of all. A target without a session has none, and
// neither has one of a session whose doings nobody told (`belay checkpoint --session`).
//
// A change that may be the session's own and may be somebody else's (shared) is
// foreign: nobody is to lose what they did by a guess.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "restore/git_plan.h"
#include "scan/scan.h"
#include "store/catalog.h"

namespace belay {

// The session, its subagents, and those that grew out of it: what is resumed under
// another id, or goes on in a copy after a rewind, is the same work. Not one beside
// which the session that it left had another turn: they are two at work, and what
// either did is not to be lost by a rollback of the other. Empty when nobody ever told
// of it: what it did is not known from what others did.
Result<std::set<std::string>> FamilyOf(Catalog& catalog, const std::string& session);

// Path to who changed it, by the checkpoints since `target` and what changed after the
// last of them; "." is the directory itself. What a call that nobody knows the end of
// was taken to have done is shared with outside. What that tree lacks and is there all
// the same (as `now` says), as it was when the last of them was made, changed nobody
// knows when, and whose doing that was. What an operation took back does not count, as
// long as none brought it back. `asking`: for whom the target goes back, where that is
// not the target's own session: a fork, for a turn that it inherited. `root_is_gone`:
// it is looked at as an empty one.
using ForeignChanges = std::map<std::string, std::vector<Author>>;
Result<ForeignChanges> ForeignSince(Store& store, const RootId& root,
                                    const Checkpoint& target,
                                    const std::vector<std::string>& asking,
                                    const ObjectId& now_tree,
                                    const Scan::TreeReader& now_trees,
                                    const ScanSummary& now, bool root_is_gone = false);

// What others moved of a repository's git since `target`, which belongs to a session:
// by what checkpoints say of it (core/git_authors.h), and by the calls at work since
// the last of them. Where nobody told of the session, what moved between two of its
// checkpoints is taken for its own. `refs`: of `is`, which need not be stored.
Result<OthersMoves> GitMovesOfOthers(Store& store, const RootId& root,
                                     const Checkpoint& target,
                                     const std::vector<std::string>& asking,
                                     const GitRepoRecord& is, const GitRefs& refs);

// Of these paths, which just changed, those that a session at work may have changed.
std::set<std::string> MaybeOfSessions(Store& store, const RootId& root,
                                      const std::vector<std::string>& paths);

// What a rollback that may not take them back says of the paths.
Error ChangedByOthers(const std::vector<std::string>& paths);

}  // namespace belay
