// Claude Code 2.1: command hooks, JSON on standard input, the event's name in it.
//
// Every event: session_id, transcript_path, cwd, hook_event_name; all but SessionStart:
// prompt_id, which the transcript calls promptId. Calls of subagents carry agent_id and
// agent_type, and the session and prompt of the agent that started them.

#include "agent/dialect_internal.h"
#include "base/mutant.h"

namespace belay {
namespace {

using enum ToolReach;

// Of a Skill, a Workflow and what worktrees and schedules do nothing is known: they
// write. An Agent writes by calls that are told one by one.
constexpr KnownTool kTools[] = {
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

constexpr KnownEvent kEvents[] = {
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

constexpr std::string_view kNotification = "<task-notification>";

// The ids of the tasks that a prompt made of notifications says have ended.
std::vector<std::string> EndedTasks(std::string_view prompt) {
  constexpr std::string_view kOpen = "<task-id>", kClose = "</task-id>";
  constexpr size_t kMost = 1000;
  std::vector<std::string> tasks;
  size_t at = 0;
  while (tasks.size() < kMost &&
         (at = prompt.find(kOpen, at)) != std::string_view::npos) {
    at += kOpen.size();
    const size_t end = prompt.find(kClose, at);
    if (end == std::string_view::npos) break;
    const std::string_view id = prompt.substr(at, end - at);
    const size_t next = std::min(prompt.find(kNotification, end), prompt.size());
    const bool running = prompt.substr(end, next - end).find("<status>running<") !=
                         std::string_view::npos;
    if (!id.empty() && id.size() <= kMaxId && !running) tasks.emplace_back(id);
    at = end;
  }
  return tasks;
}

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

ToolCall ReadTool(const Payload& payload, std::string_view cwd) {
  ToolCall call = ReadCall(kTools, payload, cwd);
  const std::optional<Json> input = payload.Get("tool_input");
  if (call.name == "Agent" || call.name == "Task") {
    // A work tree of its own is made by the call itself.
    if (input && input->Get("isolation")) call.reach = kWrites;
    return call;
  }
  const auto asked = input ? input->Get("run_in_background") : std::nullopt;
  call.background = asked && asked->Bool().value_or(false);
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
  HookEvent event = ReadCommon(AgentKind::kClaude, kEvents, payload, given);
  event.anchor = payload.Id({"prompt_id"});
  switch (event.kind) {
    case EventKind::kPrompt:
      if (event.prompt.starts_with(kNotification) &&
          !BELAY_MUTANT("notification-is-human")) {
        event.human = false;
        event.ended_tasks = EndedTasks(event.prompt);
      }
      break;
    case EventKind::kToolBegin:
    case EventKind::kToolEnd:
      event.tool = ReadTool(payload, event.cwd);
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
