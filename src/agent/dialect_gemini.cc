// Gemini CLI 0.61: command hooks with names of their own. No ids of calls or turns: the
// fingerprint pairs a call's beginning and end. Shells run in parallel. The calls of a
// subagent (invoke_agent) are told as if they were the agent's own.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kGeminiTools[] = {
    {"read_file", kReads, "file_path"},
    {"read_many_files", kReads, "include"},
    {"list_directory", kReads, "dir_path"},
    {"glob", kReads, "pattern"},
    {"grep_search", kReads, "pattern"},
    {"search_file_content", kReads, "pattern"},
    {"web_fetch", kReads, "prompt"},
    {"google_web_search", kReads, "query"},
    {"write_todos", kReads},
    {"ask_user", kReads},
    {"enter_plan_mode", kReads},
    {"get_internal_docs", kReads, "path"},
    {"update_topic", kReads, "title"},
    {"complete_task", kReads},
    {"invoke_agent", kReads, "agent_name"},
    {"write_file", kPaths, "file_path"},
    {"replace", kPaths, "file_path"},
    {"run_shell_command", kWrites, "command"},
};

// PreCompress comes before every request to the model, whether or not anything is
// compressed: it says nothing.
constexpr KnownEvent kGeminiEvents[] = {
    {"SessionStart", EventKind::kSessionStart}, {"BeforeAgent", EventKind::kPrompt},
    {"BeforeTool", EventKind::kToolBegin},      {"AfterTool", EventKind::kToolEnd},
    {"AfterAgent", EventKind::kTurnEnd},        {"SessionEnd", EventKind::kSessionEnd},
};

}  // namespace

HookEvent ParseGemini(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kGemini, kGeminiEvents, payload, given);
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kGeminiTools, payload, event.cwd);
  event.tool->background = InputFlag(payload, "is_background");
  if (const std::optional<Json> response = payload.Get("tool_response"))
    event.tool->failed = response->Get("error").has_value();
  return event;
}

}  // namespace belay
