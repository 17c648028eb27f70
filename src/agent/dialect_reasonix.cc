// Reasonix 1.38: command hooks. No ids of calls, no transcript; `turn` counts within
// one run and begins again with the next, so it is no anchor. Paths are as the model
// wrote them, mostly relative. What a subagent (tool `task`) does is not told.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kReasonixTools[] = {
    {"read_file", kReads, "path"},
    {"ls", kReads, "path"},
    {"glob", kReads, "pattern"},
    {"grep", kReads, "pattern"},
    {"code_index", kReads},
    {"lsp_definition", kReads},
    {"lsp_diagnostics", kReads},
    {"lsp_hover", kReads},
    {"lsp_references", kReads},
    {"web_fetch", kReads, "url"},
    {"todo_write", kReads},
    {"complete_step", kReads, "step"},
    {"update_goal", kReads},
    {"bash_output", kReads},
    {"ask", kReads},
    {"docs", kReads},
    {"history", kReads},
    {"list_sessions", kReads},
    {"read_session", kReads},
    {"write_file", kPaths, "path"},
    {"edit_file", kPaths, "path"},
    {"multi_edit", kPaths, "path"},
    {"notebook_edit", kPaths, "path"},
    {"delete_range", kPaths, "path"},
    {"delete_symbol", kPaths, "path"},
    {"bash", kWrites, "command"},
};

constexpr KnownEvent kReasonixEvents[] = {
    {"SessionStart", EventKind::kSessionStart},
    {"UserPromptSubmit", EventKind::kPrompt},
    {"PreToolUse", EventKind::kToolBegin},
    {"PostToolUse", EventKind::kToolEnd},
    {"Stop", EventKind::kTurnEnd},
    {"SubagentStop", EventKind::kSubagentEnd},
    {"PreCompact", EventKind::kCompact},
    {"SessionEnd", EventKind::kSessionEnd},
};

// It writes both.
void TakeMove(ToolCall& call, const std::optional<Json>& input) {
  if (!input) return;
  std::optional<std::string> from = PathOf(input->Get("source_path"));
  std::optional<std::string> to = PathOf(input->Get("destination_path"));
  if (!from || !to) return;
  call.reach = kPaths;
  call.what = OneLine(*from + " to " + *to);
  call.paths = {std::move(*from), std::move(*to)};
}

// 'Started background task "task-1" (...)' is all that tells the task.
std::optional<std::string> TaskOf(const Payload& payload) {
  const std::string text = payload.Text({"toolResult"}, 4 * kMaxWhat);
  if (!text.starts_with("Started background ")) return std::nullopt;
  const size_t begin = text.find('"');
  const size_t end = begin == std::string::npos ? begin : text.find('"', begin + 1);
  if (end == std::string::npos || end == begin + 1) return std::nullopt;
  return text.substr(begin + 1, end - begin - 1);
}

}  // namespace

HookEvent ParseReasonix(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kReasonix, kReasonixEvents, payload, given);
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kReasonixTools, payload, event.cwd);
  event.tool->background = InputFlag(payload, "run_in_background");
  event.tool->task = TaskOf(payload);
  if (event.tool->task) event.tool->background = true;
  event.tool->failed = payload.Get("error").has_value();
  if (event.tool->name == "move_file") TakeMove(*event.tool, payload.Get("toolArgs"));
  return event;
}

}  // namespace belay
