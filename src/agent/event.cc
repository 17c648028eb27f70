#include "agent/event.h"

#include <limits>

#include "base/mutant.h"

namespace belay {

std::string_view AgentName(AgentKind agent) {
  switch (agent) {
    case AgentKind::kClaude:
      return "claude";
    case AgentKind::kCodex:
      return "codex";
    case AgentKind::kOpencode:
      return "opencode";
    case AgentKind::kGemini:
      return "gemini";
    case AgentKind::kQwen:
      return "qwen";
    case AgentKind::kCopilot:
      return "copilot";
    case AgentKind::kReasonix:
      return "reasonix";
    case AgentKind::kCline:
      return "cline";
    case AgentKind::kCrush:
      return "crush";
    case AgentKind::kGoose:
      return "goose";
    case AgentKind::kHermes:
      return "hermes";
    case AgentKind::kGeneric:
      break;
  }
  return "generic";
}

std::optional<AgentKind> AgentNamed(std::string_view name) {
  for (AgentKind agent : kAllAgents)
    if (AgentName(agent) == name) return agent;
  return std::nullopt;
}

int64_t LongestWaitMs(const HookEvent& event) {
  constexpr int64_t kOfAMinute = 50'000, kOfThreeSeconds = 2'500;
  if (event.agent == AgentKind::kGeneric || BELAY_MUTANT("a-hook-waits-for-ever"))
    return std::numeric_limits<int64_t>::max();
  return event.hurried ? kOfThreeSeconds : kOfAMinute;
}

}  // namespace belay
