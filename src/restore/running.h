#pragma once

// Turns that are running in a root, for whoever is about to take files back under them.
//
// Known from what agents told last (core/live.h). One that was killed, or interrupted
// without saying so, ends no turn: it counts as over when nothing was heard of it for
// half an hour, or for four hours while a call of it is at work, which may be one long
// command. The warning says when it was heard of last.

#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace belay {

// Who asks for a rollback from within an agent (`/rollback`): that one waits. Its
// session, or where that is not known its name.
struct AskedBy {
  std::string session = {}, agent = {};
};

// What was heard last of a session in a root; nothing: nothing that is still
// remembered.
struct SessionActivity {
  bool in_turn = false;
  uint64_t turn = 0;  // the newest
  bool ended = false;
  int64_t seen_ms = 0;
};
std::optional<SessionActivity> ActivityOf(Store& store, const RootId& root,
                                          const std::string& session);

// A warning each.
std::vector<std::string> RunningTurns(Store& store, const RootId& root,
                                      const AskedBy& asked);

}  // namespace belay
