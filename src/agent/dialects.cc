#include "agent/dialects.h"

#include "agent/dialect_internal.h"

namespace belay {

Result<HookEvent> ParseHook(AgentKind agent, std::string_view event,
                            std::string_view payload) {
  if (payload.size() > kMaxPayload)
    return Error(Errc::kInvalid, "an event of more than 64 MiB");
  BELAY_TRY(const Json json, Json::Parse(payload));
  if (!json.is_object())
    return Error(Errc::kInvalid, "an event that is no JSON object");
  const Payload fields(json);
  switch (agent) {
    case AgentKind::kClaude:
      return ParseClaude(fields, event);
    default:
      break;
  }
  return ParseGeneric(fields, event);
}

AgentTraits TraitsOf(AgentKind agent) {
  switch (agent) {
    case AgentKind::kClaude:
      return {.serial_calls = true,
              .output_is_context = true,
              .prompts_can_be_blocked = true};
    case AgentKind::kCodex:
      return {.output_is_context = true, .prompts_can_be_blocked = true};
    case AgentKind::kGemini:
      return {.serial_calls = true, .prompts_can_be_blocked = true};
    case AgentKind::kQwen:
      return {.serial_calls = true, .output_is_context = true};
    case AgentKind::kReasonix:
    case AgentKind::kCrush:  // tells no end at all: the next call is the end
      return {.serial_calls = true};
    case AgentKind::kOpencode:
    case AgentKind::kCopilot:
    case AgentKind::kCline:
    case AgentKind::kGeneric:
      break;
  }
  return {};
}

}  // namespace belay
