// Hermes Agent, by its documents and source of September 2026 (no run): shell hooks of
// its config.yaml. What an event tells besides the call is in `extra`. Several calls
// may go on at once. `on_session_end` comes at the end of every turn.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kHermesTools[] = {
    {"read_file", kReads, "path"},
    {"search_files", kReads, "pattern"},
    {"web_search", kReads, "query"},
    {"web_extract", kReads},
    {"vision_analyze", kReads},
    {"session_search", kReads, "query"},
    {"skills_list", kReads},
    {"skill_view", kReads, "name"},
    {"todo", kReads},
    {"todo_list", kReads},
    {"clarify", kReads, "question"},
    {"write_file", kPaths, "path"},
    {"patch", kPaths, "path"},  // or one that names its files
    {"terminal", kWrites, "command"},
    {"process", kWrites, "action"},
    {"process_manage", kWrites, "action"},
    {"execute_code", kWrites},
    {"delegate_task", kWrites, "goal"},
};

constexpr KnownEvent kHermesEvents[] = {
    {"on_session_start", EventKind::kSessionStart},
    {"on_session_reset", EventKind::kSessionStart},
    {"pre_llm_call", EventKind::kPrompt},
    {"pre_tool_call", EventKind::kToolBegin},
    {"post_tool_call", EventKind::kToolEnd},
    {"post_llm_call", EventKind::kTurnEnd},
    {"on_session_end", EventKind::kTurnEnd},
    {"subagent_stop", EventKind::kSubagentEnd},
    {"on_session_finalize", EventKind::kSessionEnd},
};

}  // namespace

HookEvent ParseHermes(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kHermes, kHermesEvents, payload, given);
  const Payload extra(payload.Get("extra").value_or(Json()));
  event.anchor = extra.Id({"turn_id"});
  if (event.kind == EventKind::kPrompt)
    event.prompt = extra.Text({"user_message"}, kMaxPrompt);
  if (event.kind == EventKind::kTurnEnd)
    event.last_answer = extra.Text({"assistant_response"}, kMaxPrompt);
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kHermesTools, payload, event.cwd);
  event.tool->id = extra.Id({"tool_call_id"});
  event.tool->failed = extra.Id({"status"}).value_or("") == "error";
  event.tool->background = InputFlag(payload, "background");
  if (event.tool->name == "patch")
    TakePatch(*event.tool, payload.Get("tool_input"), event.cwd);
  return event;
}

}  // namespace belay
