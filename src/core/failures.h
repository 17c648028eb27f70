#pragma once

// What went wrong lately: checkpoints and rollbacks that failed, for `belay stats` to
// count (what stops the next checkpoint is core/last_failure.h's). A text file in the
// store (cache/failures), because a store that is full or over its cap cannot take
// another record.
//
// Noting one is best effort and never an error; the file is bounded, and damaged lines
// are passed over. Two processes that write at once may lose one of the lines.
// Layout: docs/format.md, "cache/".

#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace belay {

struct Failure {
  int64_t at_ms = 0;
  RootId root;
  std::string what;  // "checkpoint", "rollback", "undo", "redo"
  std::string code;  // ErrcName
  std::string message;
};

// True for what a person should hear of later: not for wrong usage and refusals, where
// nothing was tried.
bool IsFailure(Errc code);

// Notes `error` when it IsFailure().
void NoteFailure(Store& store, const RootId& root, std::string_view what,
                 const Error& error);

// Notes it whatever it is: what a hook swallowed.
void CountFailure(Store& store, const RootId& root, std::string_view what,
                  const Error& error);
// The same where the store itself cannot be opened.
void CountFailure(Fs& fs, const AbsPath& store_dir, Clock& clock, std::string_view what,
                  const Error& error);

// Oldest first.
std::vector<Failure> ReadFailures(Store& store, const std::optional<RootId>& root);
// Of all roots, where the store itself cannot be opened.
std::vector<Failure> ReadFailures(Fs& fs, const AbsPath& store_dir);

}  // namespace belay
