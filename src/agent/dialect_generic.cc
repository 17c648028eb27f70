// Events of any other agent or host: the schema is in docs/hooks.md, "Generic events".

#include "agent/dialect_internal.h"

namespace belay {
namespace {

constexpr KnownEvent kGenericEvents[] = {
    {"session.begin", EventKind::kSessionStart},
    {"session.end", EventKind::kSessionEnd},
    {"turn.begin", EventKind::kPrompt},
    {"turn.end", EventKind::kTurnEnd},
    {"tool.begin", EventKind::kToolBegin},
    {"tool.end", EventKind::kToolEnd},
    {"subagent.end", EventKind::kSubagentEnd},
    {"compact", EventKind::kCompact},
};

constexpr size_t kMostTasks = 1000, kMostOfMessages = 1000, kMostMeta = 64,
                 kLongestMeta = 4096;

std::optional<std::string> FromBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0, have = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (char c : text) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFFFF;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> have & 0xFF));
  }
  return out;
}

// A path as Belay's own --json writes it: text, or {"bytes": base64}.
std::optional<std::string> AnyPath(const std::optional<Json>& value) {
  if (!value || !value->is_object()) return PathOf(value);
  const std::optional<Json> bytes = value->Get("bytes");
  if (!bytes || !bytes->is_string()) return std::nullopt;
  std::optional<std::string> path = FromBase64(*bytes->Text(2 * kMaxPath));
  if (!path || path->empty() || path->size() > kMaxPath ||
      path->find('\0') != std::string::npos)
    return std::nullopt;
  return path;
}

std::vector<std::string> Ids(const std::optional<Json>& list) {
  std::vector<std::string> ids;
  if (!list || !list->is_array()) return ids;
  for (JsonParts parts(*list); parts.Next() && ids.size() < kMostTasks;)
    if (std::optional<std::string> id = IdOf(parts.value()))
      ids.push_back(std::move(*id));
  return ids;
}

// False when one of them is not a path, or they are too many.
bool TakePaths(const std::optional<Json>& list, std::vector<std::string>& paths) {
  if (!list || !list->is_array()) return false;
  for (JsonParts parts(*list); parts.Next();) {
    std::optional<std::string> path = AnyPath(parts.value());
    if (!path || paths.size() == kMaxPaths) return false;
    paths.push_back(std::move(*path));
  }
  return !paths.empty();
}

ToolCall ReadGenericTool(const Json& json, std::string_view cwd) {
  const Payload tool(json);
  std::optional<Json> input = tool.Get("input");
  const std::optional<Json> paths = tool.Get("paths");
  ToolCall call = MakeCall({}, tool.Id({"name"}).value_or(""), input, cwd);
  if (!input) call.fingerprint = FingerprintOf(call.name, paths);
  call.id = tool.Id({"id"});
  call.background = tool.Flag("background");
  call.task = tool.Id({"task"});
  call.failed = tool.Flag("failed");
  const std::optional<Json> reach = tool.Get("reach");
  const bool understood = TakePaths(paths, call.paths);
  if (reach && reach->TextIs("reads")) call.reach = ToolReach::kReads;
  if (reach && reach->TextIs("paths") && understood) call.reach = ToolReach::kPaths;
  if (const std::string what = tool.Text({"what"}, kMaxPath); !what.empty())
    call.what = OneLine(what);
  else if (call.what.empty() && !call.paths.empty())
    call.what = ShownPath(call.paths.front(), cwd);
  return call;
}

std::vector<HookMessage> ReadMessages(const std::optional<Json>& list) {
  std::vector<HookMessage> messages;
  if (!list || !list->is_array()) return messages;
  for (JsonParts parts(*list); parts.Next() && messages.size() < kMostOfMessages;) {
    const Payload message(parts.value());
    const std::optional<Json> index = message.Get("index");
    messages.push_back({.role = message.Id({"role"}).value_or(""),
                        .id = message.Id({"id"}).value_or(""),
                        .index = index ? index->Uint() : std::nullopt,
                        .text = message.Text({"text"}, kMaxPrompt)});
  }
  return messages;
}

// Texts, numbers and truth values; a number as it was written.
std::vector<std::pair<std::string, std::string>> ReadMeta(
    const std::optional<Json>& object) {
  std::vector<std::pair<std::string, std::string>> meta;
  if (!object || !object->is_object()) return meta;
  for (JsonParts parts(*object); parts.Next() && meta.size() < kMostMeta;) {
    const Json& value = parts.value();
    const std::string name = parts.name(kMaxId);
    if (name.empty() || value.is_object() || value.is_array()) continue;
    if (value.kind() == Json::Kind::kNull) continue;
    meta.emplace_back(name, value.is_string()
                                ? *value.Text(kLongestMeta)
                                : std::string(CutText(value.raw(), kLongestMeta)));
  }
  return meta;
}

}  // namespace

HookEvent ParseGeneric(const Payload& payload, std::string_view given) {
  HookEvent event = ReadCommon(AgentKind::kGeneric, kGenericEvents, payload, given);
  event.host = payload.Id({"host"}).value_or("");
  event.session = payload.Id({"session"}).value_or("");
  event.parent_session = payload.Id({"parent_session"});
  if (const auto turns = payload.Get("parent_turns"))
    event.parent_turns = turns->Uint();
  event.cwd = PlaceIn(AnyPath(payload.Get("cwd")));
  if (const auto list = payload.Get("workspaces"); list && list->is_array())
    for (JsonParts parts(*list); parts.Next() && event.workspaces.size() < 64;)
      if (std::string path = PlaceIn(AnyPath(parts.value())); path.starts_with('/'))
        event.workspaces.push_back(std::move(path));
  event.transcript = AnyPath(payload.Get("transcript"));
  if (const std::optional<Json> subagent = payload.Get("subagent")) {
    event.subagent = subagent->is_object() ? IdOf(subagent->Get("id")) : IdOf(subagent);
    event.subagent_type = IdOf(subagent->Get("type"));
  }
  event.anchor = payload.Id({"turn"});
  if (const std::optional<Json> message = payload.Get("message")) {
    event.message_id = IdOf(message->Get("id"));
    if (!event.anchor) event.anchor = event.message_id;
    if (const auto index = message->Get("index")) event.message_index = index->Uint();
  }
  if (const std::optional<Json> human = payload.Get("human"))
    event.human = human->Bool().value_or(true);
  event.last_answer = payload.Text({"answer"}, kMaxPrompt);
  if (const std::optional<Json> tasks = payload.Get("tasks")) {
    event.ended_tasks = Ids(tasks->Get("ended"));
    if (tasks->Get("running")) event.running_tasks = Ids(tasks->Get("running"));
  }
  if (event.kind == EventKind::kToolBegin || event.kind == EventKind::kToolEnd)
    event.tool = ReadGenericTool(payload.Get("tool").value_or(Json()), event.cwd);
  event.messages = ReadMessages(payload.Get("messages"));
  event.meta = ReadMeta(payload.Get("meta"));
  return event;
}

}  // namespace belay
