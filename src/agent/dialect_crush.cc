// Crush 0.96, by its documents (no run): command hooks. Versions differ in which events
// they know, and an unknown one makes the whole configuration invalid, so only
// PreToolUse is registered; what newer ones tell is read all the same. Calls of
// subagents are not told.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kCrushTools[] = {
    {"view", kReads, "file_path"},
    {"ls", kReads, "path"},
    {"glob", kReads, "pattern"},
    {"grep", kReads, "pattern"},
    {"fetch", kReads, "url"},
    {"web_fetch", kReads, "url"},
    {"web_search", kReads, "query"},
    {"sourcegraph", kReads, "query"},
    {"todos", kReads},
    {"edit", kPaths, "file_path"},
    {"multiedit", kPaths, "file_path"},
    {"write", kPaths, "file_path"},
    {"bash", kWrites, "command"},
};

constexpr KnownEvent kCrushEvents[] = {
    {"SessionStart", EventKind::kSessionStart},
    {"UserPromptSubmit", EventKind::kPrompt},
    {"TurnStart", EventKind::kPrompt},
    {"PreToolUse", EventKind::kToolBegin},
    {"PostToolUse", EventKind::kToolEnd},
    {"TurnEnd", EventKind::kTurnEnd},
    {"Stop", EventKind::kTurnEnd},
    {"PreCompact", EventKind::kCompact},
    {"SessionEnd", EventKind::kSessionEnd},
};

}  // namespace

HookEvent ParseCrush(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kCrush, kCrushEvents, payload, given);
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kCrushTools, payload, event.cwd);
  if (!event.tool->id) event.tool->id = payload.Id({"tool_call_id"});
  event.tool->background = InputFlag(payload, "run_in_background");
  return event;
}

}  // namespace belay
