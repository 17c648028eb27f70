#pragma once

// How operations and checkpoints are called in messages.

#include <string>

#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

// "'before refactor'"
std::string Quoted(const std::string& text);
std::string LabelOf(const Checkpoint& checkpoint);
// "the rollback to 'before refactor'", "the undo"
std::string Naming(const Operation& operation);
// "rollback to 'before refactor'", as it is written: a description is escaped when it
// is shown.
std::string InADescription(const Operation& operation);

}  // namespace belay
