// Copilot CLI 1.0: command hooks. The payload does not name its event: the hook is
// registered with the name as an argument. No ids of calls or turns. What a subagent
// does is told under its own id as the session, with parentAgentId.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kCopilotTools[] = {
    {"view", kReads, "path"},
    {"glob", kReads, "pattern"},
    {"grep", kReads, "pattern"},
    {"rg", kReads, "pattern"},
    {"web_fetch", kReads, "url"},
    {"web_search", kReads, "query"},
    {"report_intent", kReads, "intent"},
    {"update_todo", kReads},
    {"ask_user", kReads, "question"},
    {"read_bash", kReads, "shellId"},
    {"list_bash", kReads},
    {"fetch_copilot_cli_documentation", kReads},
    {"task", kReads, "description"},
    {"create", kPaths, "path"},
    {"edit", kPaths, "path"},
    {"bash", kWrites, "command"},
};

constexpr KnownEvent kCopilotEvents[] = {
    {"sessionStart", EventKind::kSessionStart},
    {"userPromptSubmitted", EventKind::kPrompt},
    {"preToolUse", EventKind::kToolBegin},
    {"postToolUse", EventKind::kToolEnd},
    {"postToolUseFailure", EventKind::kToolEnd},
    {"agentStop", EventKind::kTurnEnd},
    {"subagentStop", EventKind::kSubagentEnd},
    {"preCompact", EventKind::kCompact},
    {"sessionEnd", EventKind::kSessionEnd},
};

}  // namespace

HookEvent ParseCopilot(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kCopilot, kCopilotEvents, payload, given);
  if (event.source == "new") event.source = "startup";
  const std::optional<std::string> parent = payload.Id({"parentAgentId"});
  if (parent && event.subagent == event.session) {
    event.session = *parent;
    event.human = false;
    // subagentStop follows, and is told of the parent.
    if (event.kind == EventKind::kTurnEnd) event.kind = EventKind::kOther;
  }
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kCopilotTools, payload, event.cwd);
  if (event.tool->name == "apply_patch")
    TakePatch(*event.tool, payload.Get("toolArgs"), event.cwd);
  const std::optional<Json> args = payload.Get("toolArgs");
  const std::optional<Json> mode = args ? args->Get("mode") : std::nullopt;
  event.tool->background =
      (mode && mode->TextIs("async")) || InputFlag(payload, "detach");
  const std::optional<Json> result = payload.Get("toolResult");
  const std::optional<Json> type = result ? result->Get("resultType") : std::nullopt;
  event.tool->failed =
      given == "postToolUseFailure" || (type && !type->TextIs("success"));
  return event;
}

}  // namespace belay
