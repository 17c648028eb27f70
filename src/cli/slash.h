#pragma once

// `/rollback` in an agent's prompt: what it says, and doing it.
//
//   /rollback               the list
//   /rollback REF           what going back there would do
//   /rollback REF yes       do it; "exact" or "keep" behind it: what becomes of what
//                           others did since
//   /rollback undo          take the last one back; "exact" behind it: and what changed
//                           since
//   /rollback redo          do again what was taken back; the same
//
// The answer is for a person: the agent's model sees none of it where the agent allows.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.h"

namespace belay {

// The words behind "/rollback"; nothing when the prompt is another.
std::optional<std::vector<std::string>> SlashWords(std::string_view prompt);

// The answer. `dir`: where the agent is at work; empty: here. `asked_by`: who waits for
// it, as Environment::asked_by.
std::string AnswerSlash(CommandContext& ctx, const std::string& dir,
                        const std::string& asked_by,
                        const std::vector<std::string>& words);

}  // namespace belay
