// opencode 1.18 has no command hooks: our plugin (belay.js) runs
// `belay hook opencode EVENT` and waits for it, with this JSON on standard input.
//
//   EVENT                when, and what the plugin adds to the common part
//   session.created      bus event; "source": "startup"
//   chat.message         somebody sends a prompt; "message": {"id"}, "parts": those of
//                        the hook's output, texts only: [{"type":"text","text",
//                        "synthetic"?}]; the first time that the plugin hears of a
//                        session which has prompts already "earlier": [{"id","text"}],
//                        all of them, oldest first: a fork of opencode's names nobody
//   command.execute.before  a slash command; "command", "arguments"
//   tool.execute.before  "tool", "callID", "args"
//   tool.execute.after   the same, and "metadata": {"exit"?, "error"?} of the output
//   session.idle, session.error  the agent waits; "answer" (text) when the plugin
//                        knows it
//   session.compacted    the conversation was shortened
//   session.deleted      the session is gone
//
//   common: {"sessionID":"ses_…", "parentID":"ses_…" of a subagent's session (from
//   session.created: info.parentID), "directory":"/…" and "worktree":"/…" as opencode
//   gives them to a plugin, "agent": the agent's name ("build") when known}
//
// message.id is the anchor. Before and after are told for each call; those of parallel
// calls overlap. A subagent (tool `task`) is a session of its own with a parentID, and
// no person writes its prompts. Of a tool's output nothing is needed: it may be large.

#include "agent/dialect_internal.h"
#include "base/mutant.h"

namespace belay {
namespace {

using enum ToolReach;

constexpr KnownTool kOpencodeTools[] = {
    {"read", kReads, "filePath"},
    {"list", kReads, "path"},
    {"glob", kReads, "pattern"},
    {"grep", kReads, "pattern"},
    {"webfetch", kReads, "url"},
    {"websearch", kReads, "query"},
    {"codesearch", kReads, "query"},
    {"todowrite", kReads},
    {"todoread", kReads},
    {"question", kReads},
    {"task", kReads, "description"},
    {"write", kPaths, "filePath"},
    {"edit", kPaths, "filePath"},
    {"multiedit", kPaths, "filePath"},
    {"bash", kWrites, "command"},
};

constexpr KnownEvent kOpencodeEvents[] = {
    {"session.created", EventKind::kSessionStart},
    {"chat.message", EventKind::kPrompt},
    {"tool.execute.before", EventKind::kToolBegin},
    {"tool.execute.after", EventKind::kToolEnd},
    {"session.idle", EventKind::kTurnEnd},
    {"session.error", EventKind::kTurnEnd},
    {"session.compacted", EventKind::kCompact},
    {"session.deleted", EventKind::kSessionEnd},
};

// What the person wrote: the texts that opencode did not add itself.
std::string PromptOf(const std::optional<Json>& parts) {
  std::string prompt;
  if (!parts || !parts->is_array()) return prompt;
  for (JsonParts at(*parts); at.Next() && prompt.size() < kMaxPrompt;) {
    const std::optional<Json> type = at.value().Get("type");
    const std::optional<Json> text = at.value().Get("text");
    const std::optional<Json> synthetic = at.value().Get("synthetic");
    if (!type || !type->TextIs("text") || !text || !text->is_string()) continue;
    if (synthetic && synthetic->Bool().value_or(false)) continue;
    prompt += (prompt.empty() ? "" : "\n") + *text->Text(kMaxPrompt);
  }
  return std::string(CutText(prompt, kMaxPrompt));
}

// What was asked before in a conversation that the plugin has not heard of.
std::vector<HookMessage> EarlierOf(const std::optional<Json>& listed) {
  constexpr size_t kMostEarlier = 1000;
  std::vector<HookMessage> out;
  if (!listed || !listed->is_array()) return out;
  for (JsonParts at(*listed); at.Next() && out.size() < kMostEarlier;) {
    const std::optional<Json> text = at.value().Get("text");
    if (!text || !text->is_string()) continue;
    out.push_back({.role = "user",
                   .id = IdOf(at.value().Get("id")).value_or(""),
                   .text = *text->Text(kMaxPrompt)});
  }
  return out;
}

ToolCall ReadOpencodeTool(const Payload& payload, std::string_view cwd) {
  const std::optional<Json> args = payload.Get("args");
  ToolCall call =
      MakeCall(kOpencodeTools, payload.Id({"tool"}).value_or(""), args, cwd);
  call.id = payload.Id({"callID"});
  if (call.name == "apply_patch" || call.name == "patch") TakePatch(call, args, cwd);
  if (const std::optional<Json> metadata = payload.Get("metadata")) {
    const std::optional<Json> exit = metadata->Get("exit");
    const std::optional<Json> error = metadata->Get("error");
    call.failed = (exit && exit->Number().value_or(0) != 0) ||
                  (error && error->kind() != Json::Kind::kNull);
  }
  return call;
}

}  // namespace

HookEvent ParseOpencode(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kOpencode, kOpencodeEvents, payload, given);
  event.session = payload.Id({"sessionID"}).value_or("");
  event.parent_session = payload.Id({"parentID"});
  // What a plugin of before took for it: the message that another one answers.
  if (event.parent_session && event.parent_session->starts_with("msg_") &&
      !BELAY_MUTANT("messages-start-sessions"))
    event.parent_session.reset();
  event.cwd = DirectoryOf(payload.Get("directory"));
  // "/" is what opencode says of a project outside git.
  if (std::string tree = DirectoryOf(payload.Get("worktree")); tree.size() > 1)
    event.workspaces.push_back(std::move(tree));
  switch (event.kind) {
    case EventKind::kPrompt: {
      const std::optional<Json> message = payload.Get("message");
      event.anchor = message ? IdOf(message->Get("id")) : std::nullopt;
      event.prompt = PromptOf(payload.Get("parts"));
      event.earlier = EarlierOf(payload.Get("earlier"));
      event.human = !event.parent_session;
      break;
    }
    case EventKind::kToolBegin:
    case EventKind::kToolEnd:
      event.tool = ReadOpencodeTool(payload, event.cwd);
      break;
    case EventKind::kTurnEnd:
      event.last_answer = payload.Text({"answer"}, kMaxPrompt);
      break;
    case EventKind::kSessionEnd:
      event.reason = "deleted";
      break;
    default:
      // A command as it was typed; the message that follows has its expansion.
      if (const std::optional<std::string> command = payload.Id({"command"}))
        event.prompt = CutText(
            "/" + *command + " " + payload.Text({"arguments"}, kMaxPrompt), kMaxPrompt);
      break;
  }
  return event;
}

}  // namespace belay
