// goose from 1.34, by its documents and source (no run): command hooks of a plugin. The
// call's id came later; where it is missing, calls are paired by their fingerprint. A
// session's start names no directory: goose runs hooks where it was started. What a
// subagent does is told under its own session, which names no parent.

#include "agent/dialect_internal.h"

namespace belay {
namespace {

using enum ToolReach;

// Tools of the extension `developer` come with and without its name.
constexpr KnownTool kGooseTools[] = {
    {"tree", kReads, "path"},
    {"developer__tree", kReads, "path"},
    {"read_image", kReads, "path"},
    {"developer__read_image", kReads, "path"},
    {"analyze", kReads, "path"},
    {"analyze__analyze", kReads, "path"},
    {"todo__todo_write", kReads},
    {"write", kPaths, "path"},
    {"developer__write", kPaths, "path"},
    {"edit", kPaths, "path"},
    {"developer__edit", kPaths, "path"},
    {"developer__text_editor", kPaths, "path"},
    {"shell", kWrites, "command"},
    {"developer__shell", kWrites, "command"},
};

constexpr KnownEvent kGooseEvents[] = {
    {"SessionStart", EventKind::kSessionStart},
    {"UserPromptSubmit", EventKind::kPrompt},
    {"PreToolUse", EventKind::kToolBegin},
    {"PostToolUse", EventKind::kToolEnd},
    {"PostToolUseFailure", EventKind::kToolEnd},
    {"Stop", EventKind::kTurnEnd},
    {"SessionEnd", EventKind::kSessionEnd},
};

}  // namespace

HookEvent ParseGoose(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kGoose, kGooseEvents, payload, given);
  if (event.cwd.empty()) event.cwd = DirectoryOf(payload.Get("working_dir"));
  if (event.kind == EventKind::kPrompt)
    event.prompt = payload.Text({"message", "prompt"}, kMaxPrompt);
  if (!IsCall(event.kind)) return event;
  event.tool = ReadCall(kGooseTools, payload, event.cwd);
  event.tool->id = payload.Id({"tool_call_id"});
  event.tool->failed = payload.Id({"event"}).value_or(std::string(given)) ==
                       std::string_view("PostToolUseFailure");
  return event;
}

}  // namespace belay
