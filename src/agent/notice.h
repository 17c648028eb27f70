#pragma once

// What a model is told of rollbacks: with `notice = true` the next prompt after one
// carries a short note, so that the model does not go by files as it remembers them.
//
// Guarantees
//   * Once for each session that was there before, and only to agents whose prompt hook
//     takes context for the model.
//   * Nothing but numbers and ids is in it: names, descriptions and paths may have been
//     written by anybody, and this is read by a model.
//   * What was undone before anybody was told is not told.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/event.h"
#include "core/live.h"
#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

// Whether the prompt hook of this agent can carry one.
bool TakesNotice(AgentKind agent);
// As the agent's prompt hook says it on standard output, with its newline.
std::string NoticeAnswer(AgentKind agent, std::string_view text);

struct Notice {
  std::string text = {};   // empty: there is nothing to tell
  uint64_t operation = 0;  // up to this one all is told
};
// `turn_of`: of a target, the turn of the session that it began with; 0: of none.
Notice NoticeOf(const std::vector<Operation>& oldest_first, uint64_t knows,
                const std::function<uint64_t(const RecordId&)>& turn_of);
// Of the session as it stands; nothing for one that is new.
Result<Notice> FindNotice(Store& store, const RootId& root, const LiveSession& session);

}  // namespace belay
