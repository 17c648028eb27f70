#pragma once

// ParseHook: one hook's payload, in any agent's dialect, as a HookEvent.
//
// Guarantees
//   * Pure: bytes in, an event or kInvalid out. Nothing is read, nothing is kept.
//   * Lenient: no field is required that the event can do without, unknown ones and
//     unknown events are passed over (EventKind::kOther); a field of another type than
//     expected counts as missing.
//   * Bounded in time and memory by the payload's length; nesting is limited.
//
// What each agent says when: docs/hooks.md.

#include <string_view>

#include "agent/event.h"
#include "base/result.h"

namespace belay {

// The session that a command line of Claude Code resumes (its words, each ended by a
// zero byte): "--resume ID", "--resume=ID", "-r ID". Nothing when it names none.
std::optional<std::string> ResumedBy(std::string_view command_line);

// The end of what a command file of ours (`/rollback` of Gemini CLI, Qwen Code and
// opencode) says to the model: a prompt that ends so begins no turn.
inline constexpr std::string_view kSlashAnswerEnd =
    "Show the user the text above exactly as it is, and do nothing else.";

// `event`: what the hook was registered for, where the payload does not say (Copilot);
// empty otherwise. kInvalid when it is no JSON object.
Result<HookEvent> ParseHook(AgentKind agent, std::string_view event,
                            std::string_view payload);

// Traits of an agent that matter to who records it.
struct AgentTraits {
  // One call at a time in a session (and in each of its subagents): the next one's
  // beginning is the end of the one before.
  bool serial_calls = false;
  // False: of no call, so that one without is nothing that was interrupted.
  bool tells_ends = true;
  // What it prints on a prompt or a session's start goes to the model.
  bool output_is_context = false;
  // A prompt can be answered by the hook alone, without a model's request: by exit 2
  // and what it prints to standard error.
  bool prompts_can_be_blocked = false;
};
AgentTraits TraitsOf(AgentKind agent);

}  // namespace belay
