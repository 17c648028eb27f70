// Codex CLI 0.166: command hooks with Claude's names and fields.
//
// turn_id is the anchor: the rollout has the same. `cwd` is the shell's working
// directory, not the project; the paths of a patch are relative to it. A call that runs
// inside `exec` (code mode) is told like any other. What is written to a terminal that
// still runs (write_stdin) is not told, and a patch that fails has no end.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

// A subagent's calls are told one by one, with its agent_id.
constexpr KnownTool kCodexTools[] = {
    {"view_image", kReads, "path"},
    {"update_plan", kReads},
    {"web_search", kReads, "query"},
    {"read_file", kReads, "file_path"},
    {"list_dir", kReads, "dir_path"},
    {"grep_files", kReads, "pattern"},
    {"collaborationspawn_agent", kReads, "task_name", "message"},
    {"collaborationwait_agent", kReads},
    {"spawn_agent", kReads, "task_name", "message"},
    {"wait_agent", kReads},
    {"Bash", kWrites, "command"},
};

constexpr KnownEvent kCodexEvents[] = {
    {"SessionStart", EventKind::kSessionStart},
    {"UserPromptSubmit", EventKind::kPrompt},
    {"PreToolUse", EventKind::kToolBegin},
    {"PostToolUse", EventKind::kToolEnd},
    {"Stop", EventKind::kTurnEnd},
    {"Interrupt", EventKind::kTurnEnd},
    {"SubagentStop", EventKind::kSubagentEnd},
    {"PreCompact", EventKind::kCompact},
    {"PostCompact", EventKind::kCompact},
    {"SessionEnd", EventKind::kSessionEnd},
};

}  // namespace

HookEvent ParseCodex(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kCodex, kCodexEvents, payload, given);
  // A subagent has turns and a rollout of its own; the session is its parent's.
  if (event.subagent)
    event.transcript.reset();
  else
    event.anchor = payload.Id({"turn_id"});
  const std::optional<Json> name = payload.Get("hook_event_name");
  event.hurried = event.kind == EventKind::kSessionEnd ||
                  (name ? name->TextIs("Interrupt") : given == "Interrupt");
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kCodexTools, payload, event.cwd);
  if (event.tool->name == "apply_patch")
    TakePatch(*event.tool, payload.Get("tool_input"), event.cwd);
  return event;
}

}  // namespace belay
