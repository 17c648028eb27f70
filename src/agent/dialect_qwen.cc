// Qwen Code 0.24: Claude's event names over Gemini's tools.
//
// prompt_id ("<session>########N") is the anchor; tool_use_id is made up for the hook
// and is the same before and after. Without a terminal it tells a prompt after every
// result of a tool: its text is empty and submitted_prompt is missing.

#include "agent/dialect_internal.h"
#include "base/mutant.h"

namespace belay {
namespace {

using enum ToolReach;

// An agent's calls are told one by one, with its agent_id.
constexpr KnownTool kQwenTools[] = {
    {"read_file", kReads, "file_path", "absolute_path"},
    {"read_many_files", kReads},
    {"zoom_image", kReads},
    {"list_directory", kReads, "path"},
    {"glob", kReads, "pattern"},
    {"grep_search", kReads, "pattern"},
    {"search_file_content", kReads, "pattern"},
    {"web_fetch", kReads, "url"},
    {"web_search", kReads, "query"},
    {"todo_write", kReads},
    {"task_list", kReads},
    {"tool_search", kReads, "query"},
    {"list_agents", kReads},
    {"cron_list", kReads},
    {"get_goal", kReads},
    {"report_findings", kReads},
    {"ask_user_question", kReads},
    {"enter_plan_mode", kReads},
    {"agent", kReads, "description"},
    {"task", kReads, "description"},
    {"write_file", kPaths, "file_path"},
    {"edit", kPaths, "file_path"},
    {"replace", kPaths, "file_path"},
    {"notebook_edit", kPaths, "notebook_path", "file_path"},
    {"run_shell_command", kWrites, "command"},
};

constexpr KnownEvent kQwenEvents[] = {
    {"SessionStart", EventKind::kSessionStart},
    {"UserPromptSubmit", EventKind::kPrompt},
    {"PreToolUse", EventKind::kToolBegin},
    {"PostToolUse", EventKind::kToolEnd},
    {"PostToolUseFailure", EventKind::kToolEnd},
    {"Stop", EventKind::kTurnEnd},
    {"StopFailure", EventKind::kTurnEnd},
    {"SubagentStop", EventKind::kSubagentEnd},
    {"PreCompact", EventKind::kCompact},
    {"PostCompact", EventKind::kCompact},
    {"SessionEnd", EventKind::kSessionEnd},
};

// "Background shell started.\nid: bg_1f2e3d4c\n..." is all that tells the task.
std::optional<std::string> ShellTaskOf(const Payload& payload) {
  constexpr std::string_view kBegin = "Background shell started.\nid: ";
  const std::optional<Json> response = payload.Get("tool_response");
  const std::optional<Json> content =
      response ? response->Get("llmContent") : std::nullopt;
  if (!content || !content->is_string()) return std::nullopt;
  const std::string text = *content->Text(kBegin.size() + 100);
  if (!text.starts_with(kBegin)) return std::nullopt;
  const std::string id =
      text.substr(kBegin.size(), text.find('\n', kBegin.size()) - kBegin.size());
  return id.empty() ? std::nullopt : std::optional(id);
}

}  // namespace

HookEvent ParseQwen(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kQwen, kQwenEvents, payload, given);
  event.anchor = payload.Id({"prompt_id"});
  if (event.kind == EventKind::kPrompt) {
    if (std::optional<std::vector<std::string>> ended = EndedTasks(event.prompt)) {
      event.human = false;
      event.ended_tasks = std::move(*ended);
    }
    if (event.prompt.empty() && !payload.Get("submitted_prompt") &&
        !BELAY_MUTANT("empty-prompt-is-human"))
      event.human = false;
  }
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kQwenTools, payload, event.cwd);
  event.tool->background = InputFlag(payload, "is_background");
  event.tool->task = ShellTaskOf(payload);
  if (event.tool->task) event.tool->background = true;
  const std::optional<Json> name = payload.Get("hook_event_name");
  event.tool->failed = name && name->TextIs("PostToolUseFailure");
  return event;
}

}  // namespace belay
