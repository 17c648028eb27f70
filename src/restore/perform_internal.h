#pragma once

// Perform is the way that rollback, undo and redo have in common: safety checkpoint,
// journal, apply, verify, record. Order of things: docs/format.md, "journal/".

#include <functional>
#include <optional>
#include <string>

#include "core/capture.h"
#include "restore/rollback.h"

namespace belay {

using PlanMaker = std::function<Result<Plan>(const Fd& root, Draft& draft)>;

// Under the root's lock. `before_what` describes the safety checkpoint; `times_ns` is
// what files that come back are stamped with. Nothing to do, or more than was shown:
// `out` without an operation.
Result<Outcome> Perform(Store& store, const RollbackRequest& request,
                        Operation operation, const std::string& before_what,
                        std::optional<int64_t> times_ns, const PlanMaker& make,
                        Outcome out);

// An operation that moves no file of the root: recorded, with what its conversation
// goes on with (request.chat) in its place. Under the root's lock.
Status PerformAlone(Store& store, const RollbackRequest& request, Operation operation,
                    Outcome& out);
// The same, where nothing at all is to be moved.
Status RecordAlone(Store& store, const RollbackRequest& request, Operation operation,
                   Outcome& out);

// What becomes of the repositories, put into `plan`; records for the operation go to
// `writer`, if there is one.
Status AddGit(Store& store, const RollbackRequest& request, const GitPlanInput& input,
              const GitChoice& choice, BatchWriter* writer, Plan& plan,
              std::vector<Conflict>* conflicts);

}  // namespace belay
