#pragma once

// What a rollback is about to overwrite or delete can be given back: the last look
// before the safety checkpoint is published.

#include <functional>

#include "core/capture.h"
#include "restore/plan.h"

namespace belay {

// What of `change.before` is in the way of what comes: its content, its attributes;
// zero: it stays.
struct DisplacedIds {
  ObjectId content, xattrs;
};
DisplacedIds DisplacedBy(const PathChange& change);

// Of an error of reading from the store: it is not there, or not whole. All else may
// pass (a limit, a lock), and says nothing of what is stored.
bool IsNoMore(const Error& error);

// Content that the safety checkpoint refers to and did not store itself is read, every
// byte of it. What the store cannot give back is stored again from the directory, which
// has it still; their paths are returned. Fails when that is not possible any more.
// `stop`: says when somebody wants to be out of it; asked from one thread at a time.
Result<std::vector<std::string>> SecureDisplaced(Store& store, const Fd& root,
                                                 const Plan& plan, Draft& draft,
                                                 const std::function<bool()>& stop);

}  // namespace belay
