#include "agent/dialect_internal.h"

#include <algorithm>

#include "base/mutant.h"
#include "base/path.h"
#include "base/sha256.h"

namespace belay {

std::optional<std::string> IdOf(const std::optional<Json>& value) {
  if (!value) return std::nullopt;
  std::optional<std::string> text = value->Text(kMaxId + 1);
  if (!text || text->empty() || text->size() > kMaxId) return std::nullopt;
  return text;
}

std::optional<std::string> PathOf(const std::optional<Json>& value) {
  if (!value) return std::nullopt;
  std::optional<std::string> text = value->Text(kMaxPath + 1);
  if (!text || text->empty() || text->size() > kMaxPath ||
      text->find('\0') != std::string::npos)
    return std::nullopt;
  return text;
}

// By its text, as paths of calls are.
std::string PlaceIn(const std::optional<std::string>& path) {
  if (!path) return {};
  if (path->front() != '/' || BELAY_MUTANT("directories-have-one-spelling"))
    return *path;
  auto clean = AbsPath::Resolve(AbsPath::Literal("/"), *path);
  return clean.ok() ? clean->bytes() : std::string();
}

std::string DirectoryOf(const std::optional<Json>& value) {
  std::string path = PlaceIn(PathOf(value));
  return path.starts_with('/') ? path : std::string();
}

std::optional<Json> Payload::Get(std::string_view name) const {
  return fields_.Get(name);
}

std::optional<std::string> Payload::Id(
    std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names)
    if (std::optional<std::string> id = IdOf(Get(name))) return id;
  return std::nullopt;
}

std::string Payload::Text(std::initializer_list<std::string_view> names,
                          size_t limit) const {
  for (std::string_view name : names)
    if (const std::optional<Json> value = Get(name); value && value->is_string())
      return *value->Text(limit);
  return {};
}

std::optional<std::string> Payload::Path(
    std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names)
    if (std::optional<std::string> path = PathOf(Get(name))) return path;
  return std::nullopt;
}

bool Payload::Flag(std::string_view name) const {
  const std::optional<Json> value = Get(name);
  return value && value->Bool().value_or(false);
}

std::string OneLine(std::string_view text) {
  std::string line;
  bool space = false;
  for (char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      space = !line.empty();
      continue;
    }
    if (space) line.push_back(' ');
    space = false;
    line.push_back(c);
    if (line.size() > kMaxWhat) break;
  }
  line.resize(CutText(line, kMaxWhat).size());
  return line;
}

std::string ShownPath(std::string_view path, std::string_view cwd) {
  if (cwd.size() > 1 && path.size() > cwd.size() + 1 && path.starts_with(cwd) &&
      path[cwd.size()] == '/')
    path.remove_prefix(cwd.size() + 1);
  return OneLine(path);
}

std::string FingerprintOf(std::string_view name, const std::optional<Json>& input) {
  Sha256 hash;
  hash.Update(AsBytes(name));
  hash.Update(AsBytes(std::string_view("\0", 1)));
  if (input) hash.Update(AsBytes(input->Compact()));
  return hash.Finish().hex().substr(0, 16);
}

namespace {

const KnownTool* Find(std::span<const KnownTool> table, std::string_view name) {
  for (const KnownTool& tool : table)
    if (tool.name == name) return &tool;
  return nullptr;
}

bool IsPathName(std::string_view member) {
  return member.ends_with("path") || member.ends_with("Path");
}

std::string ShownMember(std::string_view member, const Json& value,
                        std::string_view cwd) {
  const std::string text = *value.Text(kMaxPath);
  return IsPathName(member) ? ShownPath(text, cwd) : OneLine(text);
}

// What a tool that nobody knows may call the thing it is about.
std::string GuessWhat(const Json& input, std::string_view cwd) {
  for (std::string_view member : {"command", "cmd", "file_path", "filePath", "path",
                                  "pattern", "query", "url", "description"}) {
    const std::optional<Json> value = input.Get(member);
    if (value && value->is_string()) return ShownMember(member, *value, cwd);
  }
  return {};
}

}  // namespace

ToolCall MakeCall(std::span<const KnownTool> table, std::string name,
                  const std::optional<Json>& input, std::string_view cwd) {
  ToolCall call{.name = std::move(name)};
  call.fingerprint = FingerprintOf(call.name, input);
  const KnownTool* tool = Find(table, call.name);
  if (tool != nullptr) call.reach = tool->reach;
  if (tool == nullptr && BELAY_MUTANT("unknown-tool-reads"))
    call.reach = ToolReach::kReads;
  std::optional<std::string> path;
  if (tool != nullptr && input) {
    for (std::string_view member : {tool->about, tool->about_too}) {
      const std::optional<Json> value = input->Get(member);
      if (member.empty() || !value || !value->is_string()) continue;
      call.what = ShownMember(member, *value, cwd);
      path = PathOf(value);
      break;
    }
  }
  if (call.what.empty() && input) call.what = GuessWhat(*input, cwd);
  if (call.reach != ToolReach::kPaths) return call;
  if (path)
    call.paths.push_back(std::move(*path));
  else
    call.reach = ToolReach::kWrites;
  return call;
}

HookEvent ReadCommon(AgentKind agent, std::span<const KnownEvent> events,
                     const Payload& payload, std::string_view given) {
  HookEvent event{.agent = agent};
  const std::string name = payload.Id({"hook_event_name", "event", "hookEventName"})
                               .value_or(std::string(given));
  for (const KnownEvent& known : events)
    if (known.name == name) event.kind = known.kind;
  event.session = payload.Id({"session_id", "sessionId"}).value_or("");
  event.cwd = DirectoryOf(payload.Get("cwd"));
  event.transcript = payload.Path({"transcript_path", "transcriptPath"});
  event.subagent = payload.Id({"agent_id", "agentId"});
  event.subagent_type = payload.Id({"agent_type", "agentType"});
  event.subagent_transcript = payload.Path({"agent_transcript_path"});
  switch (event.kind) {
    case EventKind::kSessionStart:
      event.source = payload.Id({"source"}).value_or("");
      break;
    case EventKind::kPrompt:
      event.prompt = payload.Text({"prompt"}, kMaxPrompt);
      event.dated = payload.Get("timestamp").has_value();
      break;
    case EventKind::kTurnEnd:
    case EventKind::kSubagentEnd:
      event.last_answer = payload.Text({"last_assistant_message", "lastAssistantText",
                                        "prompt_response", "response"},
                                       kMaxPrompt);
      break;
    case EventKind::kSessionEnd:
      event.reason = payload.Id({"reason"}).value_or("");
      break;
    default:
      break;
  }
  return event;
}

ToolCall ReadCall(std::span<const KnownTool> table, const Payload& payload,
                  std::string_view cwd) {
  std::optional<Json> input = payload.Get("tool_input");
  if (!input) input = payload.Get("toolArgs");
  // Some versions of Copilot write the object as a string.
  std::string text;
  if (input && input->is_string()) {
    text = *input->Text();
    if (auto inner = Json::Parse(text); inner.ok()) input = *inner;
  }
  ToolCall call =
      MakeCall(table, payload.Id({"tool_name", "toolName"}).value_or(""), input, cwd);
  call.id = payload.Id({"tool_use_id", "toolUseId"});
  return call;
}

bool IsCall(EventKind kind) {
  return kind == EventKind::kToolBegin || kind == EventKind::kToolEnd;
}

bool InputFlag(const Payload& payload, std::string_view name) {
  for (std::string_view input : {"tool_input", "toolArgs"})
    if (const std::optional<Json> object = payload.Get(input))
      if (const std::optional<Json> flag = object->Get(name))
        return flag->Bool().value_or(false);
  return false;
}

}  // namespace belay
