#include "agent/dialects.h"

#include <algorithm>

#include "agent/dialect_internal.h"
#include "base/mutant.h"
#include "base/sha256.h"

namespace belay {

namespace {

Result<HookEvent> ParseIts(AgentKind agent, std::string_view event,
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
    case AgentKind::kCodex:
      return ParseCodex(fields, event);
    case AgentKind::kOpencode:
      return ParseOpencode(fields, event);
    case AgentKind::kGemini:
      return ParseGemini(fields, event);
    case AgentKind::kQwen:
      return ParseQwen(fields, event);
    case AgentKind::kCopilot:
      return ParseCopilot(fields, event);
    case AgentKind::kReasonix:
      return ParseReasonix(fields, event);
    case AgentKind::kCline:
      return ParseCline(fields, event);
    case AgentKind::kCrush:
      return ParseCrush(fields, event);
    case AgentKind::kGoose:
      return ParseGoose(fields, event);
    case AgentKind::kHermes:
      return ParseHermes(fields, event);
    case AgentKind::kGeneric:
      break;
  }
  return ParseGeneric(fields, event);
}

}  // namespace

Result<HookEvent> ParseHook(AgentKind agent, std::string_view event,
                            std::string_view payload) {
  BELAY_TRY(HookEvent out, ParseIts(agent, event, payload));
  if (out.kind == EventKind::kPrompt &&
      out.prompt.find(kSlashAnswerEnd) != std::string::npos &&
      !BELAY_MUTANT("our-own-answer-is-a-turn"))
    out.kind = EventKind::kOther;
  // Of a call that only reads nothing else is of interest.
  if (out.kind == EventKind::kToolEnd && out.tool &&
      out.tool->reach == ToolReach::kReads && !out.ended_tasks.empty() &&
      !BELAY_MUTANT("readers-end-nothing"))
    out.kind = EventKind::kTaskEnd;
  if (out.kind == EventKind::kPrompt && !out.anchor)
    out.print = Sha256::Of(AsBytes(payload)).hex().substr(0, 16);
  return out;
}

std::optional<std::string> ResumedBy(std::string_view command_line) {
  constexpr size_t kLongestId = 64;
  constexpr std::string_view kIdBytes =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
  bool next = false;
  for (size_t at = 0; at < command_line.size();) {
    const size_t end = std::min(command_line.find('\0', at), command_line.size());
    std::string_view word = command_line.substr(at, end - at);
    at = end + 1;
    if (word == "--") break;
    const bool joined = word.starts_with("--resume=");
    if (joined) word.remove_prefix(9);
    if ((joined || next) && !word.empty() && word.size() <= kLongestId &&
        !word.starts_with('-') &&
        word.find_first_not_of(kIdBytes) == std::string_view::npos)
      return std::string(word);
    next = word == "--resume" || word == "-r";
  }
  return std::nullopt;
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
      return {.prompts_can_be_blocked = true};
    case AgentKind::kQwen:
      return {.serial_calls = true, .output_is_context = true};
    case AgentKind::kReasonix:
      return {.serial_calls = true, .prompts_can_be_blocked = true};
    case AgentKind::kCrush:  // tells no end at all: the next call is the end
      return {.serial_calls = true, .tells_ends = false};
    case AgentKind::kOpencode:
    case AgentKind::kCopilot:
    case AgentKind::kCline:
    case AgentKind::kGoose:
    case AgentKind::kHermes:
    case AgentKind::kGeneric:
      break;
  }
  return {};
}

}  // namespace belay
