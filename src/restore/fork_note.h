#pragma once

// A fork of a conversation that an agent's own program makes comes before the operation
// that it is for: nothing can be done about that from outside. So that one which nobody
// uses is known, there is a note of it until the operation is recorded.
//
// One file a root, journal/<root id>.fork in the store; durable before the program is
// asked. Layout: docs/format.md, "journal/".

#include <optional>
#include <string>

#include "store/store.h"

namespace belay {

struct ForkNote {
  std::string agent;
  std::string session;      // that was forked
  std::string forked = {};  // the fork; empty: the program had not said
  int64_t pid = 0;          // of who asked
};

Status NoteFork(Store& store, const RootId& root, const ForkNote& note);
void ForgetFork(Store& store, const RootId& root);
// One call when there is none. What makes no sense is none.
std::optional<ForkNote> LoadForkNote(Store& store, const RootId& root);

// What became of an interrupted one, in words; nothing when there was none, its maker
// is still at work, or the log has the operation that it was for. The note is gone then
// (but while its maker is at work). The store is open for writing.
std::optional<std::string> SettleForkNote(Store& store, const RootId& root);

}  // namespace belay
