#pragma once

// A fork of a conversation that an agent's own program makes comes before the operation
// that it is for: nothing can be done about that from outside. So that one which nobody
// uses is known, there is a note of it until the operation is recorded.
//
// One file a root, journal/<root id>.fork in the store; durable before the program is
// asked. A file that the program is to read lies beside it, and goes with it. Layout:
// docs/format.md, "journal/".

#include <functional>
#include <optional>
#include <string>

#include "store/store.h"

namespace belay {

struct ForkNote {
  std::string agent;
  std::string session;      // that was forked
  std::string forked = {};  // the fork, or what it was to be; empty: not known yet
  int64_t pid = 0;          // of who asked
};

Status NoteFork(Store& store, const RootId& root, const ForkNote& note);
void ForgetFork(Store& store, const RootId& root);
// For nobody but us. Its path in the store; of an earlier one of this root nothing is
// left.
using ForkFileSink = std::function<Status(ByteSpan)>;
Result<RelPath> WriteForkFile(Store& store, const RootId& root,
                              const std::function<Status(const ForkFileSink&)>& text);
void RemoveForkFile(Store& store, const RootId& root);
// One call when there is none. What makes no sense is none.
std::optional<ForkNote> LoadForkNote(Store& store, const RootId& root);

// What became of an interrupted one, in words; nothing when there was none, its maker
// is still at work, or the log has the operation that it was for, or the session. The
// note is gone then (but while its maker is at work). The store is open for writing.
std::optional<std::string> SettleForkNote(Store& store, const RootId& root);

}  // namespace belay
