// Cline CLI 3.0: executables in a directory, the event's name in hookName.
//
// Without a terminal no prompt is told (UserPromptSubmit): agent_start begins the turn.
// The session is sessionContext.rootSessionId; taskId is one conversation of it. An
// agent with a parent is a subagent. The names of the files, which older versions use
// for hookName, are read as well.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kClineTools[] = {
    {"read_files", kReads},
    {"read_file", kReads, "path"},
    {"list_files", kReads, "path"},
    {"search_codebase", kReads},
    {"search_files", kReads, "regex"},
    {"list_code_definition_names", kReads, "path"},
    {"fetch_web_content", kReads},
    {"ask_question", kReads, "question"},
    {"submit_and_exit", kReads},
    {"spawn_agent", kReads, "task"},
    {"editor", kPaths, "path"},
    {"write_to_file", kPaths, "path"},
    {"replace_in_file", kPaths, "path"},
    {"run_commands", kWrites},
    {"execute_command", kWrites, "command"},
};

constexpr KnownEvent kClineEvents[] = {
    {"agent_start", EventKind::kPrompt},
    {"prompt_submit", EventKind::kPrompt},
    {"agent_resume", EventKind::kSessionStart},
    {"tool_call", EventKind::kToolBegin},
    {"tool_result", EventKind::kToolEnd},
    {"agent_end", EventKind::kTurnEnd},
    {"agent_error", EventKind::kTurnEnd},
    {"agent_abort", EventKind::kTurnEnd},
    {"pre_compact", EventKind::kCompact},
    {"session_shutdown", EventKind::kSessionEnd},
    {"TaskStart", EventKind::kPrompt},
    {"UserPromptSubmit", EventKind::kPrompt},
    {"TaskResume", EventKind::kSessionStart},
    {"PreToolUse", EventKind::kToolBegin},
    {"PostToolUse", EventKind::kToolEnd},
    {"TaskComplete", EventKind::kTurnEnd},
    {"TaskError", EventKind::kTurnEnd},
    {"TaskCancel", EventKind::kTurnEnd},
    {"PreCompact", EventKind::kCompact},
    {"SessionShutdown", EventKind::kSessionEnd},
};

std::optional<Json> Inner(const Payload& payload, std::string_view object,
                          std::string_view member) {
  const std::optional<Json> found = payload.Get(object);
  return found ? found->Get(member) : std::nullopt;
}

// The commands of run_commands: texts, or objects with a command.
std::string Commands(const std::optional<Json>& input) {
  std::string all;
  const std::optional<Json> list = input ? input->Get("commands") : std::nullopt;
  if (!list) return all;
  for (JsonParts parts(*list); parts.Next() && all.size() <= kMaxWhat;) {
    std::optional<Json> command = parts.value();
    if (command->is_object()) command = command->Get("command");
    if (!command || !command->is_string()) continue;
    all += (all.empty() ? "" : "; ") + OneLine(*command->Text(kMaxPath));
  }
  return OneLine(all);
}

ToolCall ReadClineTool(const Payload& payload, bool begins, std::string_view cwd) {
  const std::string_view now = begins ? "tool_call" : "tool_result";
  const std::string_view old = begins ? "preToolUse" : "postToolUse";
  std::optional<Json> name = Inner(payload, now, "name");
  if (!name) name = Inner(payload, old, "toolName");
  std::optional<Json> input = Inner(payload, now, "input");
  if (!input) input = Inner(payload, old, "parameters");
  ToolCall call = MakeCall(kClineTools, IdOf(name).value_or(""), input, cwd);
  call.id = IdOf(Inner(payload, now, "id"));
  if (call.name == "apply_patch") TakePatch(call, input, cwd);
  if (const std::string commands = Commands(input); !commands.empty())
    call.what = commands;
  const std::optional<Json> success = Inner(payload, "postToolUse", "success");
  const std::optional<Json> error = Inner(payload, now, "error");
  call.failed = (success && !success->Bool().value_or(true)) ||
                (error && error->kind() != Json::Kind::kNull);
  return call;
}

}  // namespace

HookEvent ParseCline(const Payload& payload, std::string_view given) {
  const std::string name = payload.Id({"hookName"}).value_or(std::string(given));
  HookEvent event = ReadCommon(AgentKind::kCline, kClineEvents, payload, name);
  event.session = IdOf(Inner(payload, "sessionContext", "rootSessionId")).value_or("");
  if (event.session.empty()) event.session = payload.Id({"taskId"}).value_or("");
  if (!payload.Id({"parent_agent_id"})) event.subagent.reset();
  event.subagent_type.reset();
  if (const auto roots = payload.Get("workspaceRoots"); roots && roots->is_array())
    for (JsonParts parts(*roots); parts.Next() && event.workspaces.size() < 64;)
      if (std::string root = DirectoryOf(parts.value()); !root.empty())
        event.workspaces.push_back(std::move(root));
  if (event.cwd.empty() && !event.workspaces.empty())
    event.cwd = event.workspaces.front();
  if (event.subagent && event.kind == EventKind::kTurnEnd)
    event.kind = EventKind::kSubagentEnd;
  if (event.kind == EventKind::kPrompt) {
    event.human = !event.subagent;
    const auto prompt = Inner(payload, "userPromptSubmit", "prompt");
    if (prompt && prompt->is_string()) event.prompt = *prompt->Text(kMaxPrompt);
  }
  if (event.kind == EventKind::kSessionStart) event.source = "resume";
  const std::optional<Json> answer = Inner(payload, "turn", "outputText");
  if (answer && answer->is_string()) event.last_answer = *answer->Text(kMaxPrompt);
  if (IsCall(event.kind))
    event.tool = ReadClineTool(payload, event.kind == EventKind::kToolBegin, event.cwd);
  return event;
}

}  // namespace belay
