#pragma once

// PlanReplay is MakePlan() for undo and redo: not a state is gone back to, but a list
// of changes that was written down is done again, or the other way.
//
// Guarantees
//   * Writes nothing (content of what is not covered now goes to the draft's sink).
//   * A path that is neither as the list says it was left, nor as it is to become, is a
//     conflict, and so is what somebody put into a directory that must give way to a
//     file. With conflicts there is nothing to be done.
//   * `exact` takes back also what changed since, directories with all that is in them,
//     but nothing that a safety checkpoint cannot hold: git's own files, other mounts,
//     FIFOs, sockets, devices, what cannot be read. Those stay conflicts.
//
// Rules of coverage do not apply.

#include <set>
#include <string>
#include <vector>

#include "core/capture.h"
#include "restore/plan.h"

namespace belay {

// `gits`: git directories that go along ("nested/.git"), which the plan for git is
// about: none of them is in the way.
Result<Plan> PlanReplay(Store& store, const Fd& root, Draft& draft,
                        std::vector<PathChange> wanted, const PlanOptions& options,
                        bool exact, const std::set<std::string>& gits,
                        std::vector<Conflict>& conflicts);

}  // namespace belay
