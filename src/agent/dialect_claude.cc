// Claude Code 2.1: command hooks, JSON on standard input, the event's name in it.
//
// Every event: session_id, transcript_path, cwd, hook_event_name; all but SessionStart:
// prompt_id, which the transcript calls promptId. Calls of subagents carry agent_id and
// agent_type, and the session and prompt of the agent that started them.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

// Of a Skill, a Workflow and what worktrees and schedules do nothing is known: they
// write. An Agent writes by calls that are told one by one.
constexpr KnownTool kClaudeTools[] = {
    {"Read", kReads, "file_path"},
    {"Glob", kReads, "pattern"},
    {"Grep", kReads, "pattern"},
    {"LS", kReads, "path"},
    {"NotebookRead", kReads, "notebook_path"},
    {"WebFetch", kReads, "url"},
    {"WebSearch", kReads, "query"},
    {"ToolSearch", kReads, "query"},
    {"TodoRead", kReads},
    {"TodoWrite", kReads},
    {"TaskCreate", kReads, "subject", "description"},
    {"TaskUpdate", kReads, "taskId"},
    {"TaskGet", kReads, "taskId"},
    {"TaskList", kReads},
    {"TaskOutput", kReads, "task_id"},
    {"BashOutput", kReads, "bash_id"},
    {"TaskStop", kReads, "task_id", "shell_id"},
    {"KillShell", kReads, "shell_id"},
    {"KillBash", kReads, "shell_id"},
    {"AgentOutputTool", kReads, "agentId"},
    {"AskUserQuestion", kReads},
    {"EnterPlanMode", kReads},
    {"ListAgents", kReads},
    {"ReportFindings", kReads},
    {"CronList", kReads},
    {"Agent", kReads, "description"},
    {"Task", kReads, "description"},
    {"Write", kPaths, "file_path"},
    {"Edit", kPaths, "file_path"},
    {"MultiEdit", kPaths, "file_path"},
    {"NotebookEdit", kPaths, "notebook_path"},
    {"Bash", kWrites, "command"},
};

constexpr KnownEvent kClaudeEvents[] = {
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

// Stop lists what goes on in the background; SubagentStop lists the one that has ended
// as well.
std::optional<std::vector<std::string>> RunningTasks(
    const Payload& payload, const std::optional<std::string>& ended) {
  const std::optional<Json> list = payload.Get("background_tasks");
  if (!list || !list->is_array()) return std::nullopt;
  std::vector<std::string> tasks;
  for (JsonParts parts(*list); parts.Next();) {
    const std::optional<std::string> id = IdOf(parts.value().Get("id"));
    const std::optional<Json> status = parts.value().Get("status");
    if (!id || id == ended) continue;
    if (status && status->is_string() && !status->TextIs("running") &&
        !status->TextIs("pending"))
      continue;
    tasks.push_back(*id);
  }
  return tasks;
}

// What a call that has ended stopped; one that failed is told by another event.
std::vector<std::string> StoppedBy(const Payload& payload, const ToolCall& call) {
  if (call.failed ||
      (call.name != "TaskStop" && call.name != "KillShell" && call.name != "KillBash"))
    return {};
  const std::optional<Json> input = payload.Get("tool_input");
  if (!input) return {};
  std::optional<std::string> id = IdOf(input->Get("task_id"));
  if (!id) id = IdOf(input->Get("shell_id"));
  return id ? std::vector<std::string>{std::move(*id)} : std::vector<std::string>();
}

ToolCall ReadClaudeTool(const Payload& payload, std::string_view cwd) {
  ToolCall call = ReadCall(kClaudeTools, payload, cwd);
  const std::optional<Json> input = payload.Get("tool_input");
  if (call.name == "Agent" || call.name == "Task") {
    // A work tree of its own is made by the call itself.
    if (input && input->Get("isolation")) call.reach = kWrites;
    return call;
  }
  call.background = InputFlag(payload, "run_in_background");
  if (const std::optional<Json> response = payload.Get("tool_response")) {
    // Also of one that was moved to the background when it took too long.
    call.task = IdOf(response->Get("backgroundTaskId"));
    if (call.task) call.background = true;
  }
  const std::optional<Json> event = payload.Get("hook_event_name");
  call.failed = event && event->TextIs("PostToolUseFailure");
  return call;
}

}  // namespace

HookEvent ParseClaude(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kClaude, kClaudeEvents, payload, given);
  event.anchor = payload.Id({"prompt_id"});
  switch (event.kind) {
    case EventKind::kPrompt:
      if (std::optional<std::vector<std::string>> ended = EndedTasks(event.prompt)) {
        event.human = false;
        event.ended_tasks = std::move(*ended);
      }
      break;
    case EventKind::kToolBegin:
    case EventKind::kToolEnd:
      event.tool = ReadClaudeTool(payload, event.cwd);
      if (event.kind == EventKind::kToolEnd)
        event.ended_tasks = StoppedBy(payload, *event.tool);
      break;
    case EventKind::kTurnEnd:
      event.running_tasks = RunningTasks(payload, std::nullopt);
      break;
    case EventKind::kSubagentEnd:
      event.running_tasks = RunningTasks(payload, event.subagent);
      break;
    default:
      break;
  }
  return event;
}

}  // namespace belay
