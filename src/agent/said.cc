#include "agent/said.h"

#include <algorithm>

#include "agent/dialect_internal.h"
#include "agent/transcript_internal.h"

namespace belay {
namespace {

// A text, or whatever it is as it was written.
std::string TextOf(const std::optional<Json>& value) {
  if (!value) return {};
  if (auto text = value->Text(kLongestSaid)) return *text;
  if (value->is_array())
    if (std::string text = ContentText(value, kLongestSaid); !text.empty()) return text;
  for (const char* name : {"output", "content", "text", "error"})
    if (const auto inner = value->Get(name); inner && inner->is_string())
      return *inner->Text(kLongestSaid);
  return std::string(CutText(value->raw(), kLongestSaid));
}

void Words(SaidListener& to, bool by_user, std::string text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return;
  to.Words(by_user, std::move(text));
}

// Parts of Gemini CLI and Qwen Code.
void ReadParts(const std::optional<Json>& content, bool by_user, SaidListener& to) {
  if (content && content->is_string())
    return Words(to, by_user, *content->Text(kLongestSaid));
  if (!content || !content->is_array()) return;
  for (JsonParts parts(*content); parts.Next();) {
    const JsonFields part(parts.value());
    if (const auto text = part.Get("text"); text && !IsTrue(part.Get("thought")))
      Words(to, by_user, text->Text(kLongestSaid).value_or(""));
    if (const auto call = part.Get("functionCall"))
      to.Call(IdOf(call->Get("name")).value_or(""), call->Get("args").value_or(Json()));
    if (const auto answer = part.Get("functionResponse"))
      to.Answer(TextOf(answer->Get("response")));
  }
}

void ReadClaude(const JsonFields& record, SaidListener& to) {
  const std::optional<Json> type = record.Get("type");
  const bool user = Is(type, "user");
  if ((!user && !Is(type, "assistant")) || IsTrue(record.Get("isSidechain")) ||
      IsTrue(record.Get("isMeta")))
    return;
  const std::optional<Json> message = record.Get("message");
  const std::optional<Json> content = message ? message->Get("content") : std::nullopt;
  if (content && content->is_string())
    return Words(to, user, *content->Text(kLongestSaid));
  if (!content || !content->is_array()) return;
  for (JsonParts parts(*content); parts.Next();) {
    const JsonFields part(parts.value());
    const std::optional<Json> kind = part.Get("type");
    if (Is(kind, "text"))
      Words(to, user, TextOf(part.Get("text")));
    else if (Is(kind, "tool_use"))
      to.Call(IdOf(part.Get("name")).value_or(""), part.Get("input").value_or(Json()));
    else if (Is(kind, "tool_result"))
      to.Answer(TextOf(part.Get("content")));
  }
}

void ReadQwen(const JsonFields& record, SaidListener& to) {
  const std::optional<Json> type = record.Get("type");
  if (!Is(type, "user") && !Is(type, "assistant") && !Is(type, "tool_result")) return;
  if (const auto message = record.Get("message"))
    ReadParts(message->Get("parts"), !Is(type, "assistant"), to);
}

void ReadGemini(const JsonFields& record, SaidListener& to) {
  const bool user = Is(record.Get("type"), "user");
  if (!user && !Is(record.Get("type"), "gemini")) return;
  const std::optional<Json> content = record.Get("content");
  const std::string begin = ContentText(content, 64);
  if (begin.starts_with("<session_context>") || begin.starts_with("<hook_context>"))
    return;
  ReadParts(content, user, to);
  const std::optional<Json> calls = record.Get("toolCalls");
  if (!calls || !calls->is_array()) return;
  for (JsonParts parts(*calls); parts.Next();)
    to.Call(IdOf(parts.value().Get("name")).value_or(""),
            parts.value().Get("args").value_or(Json()));
}

void ReadCodex(const JsonFields& record, SaidListener& to) {
  if (!Is(record.Get("type"), "response_item")) return;
  const JsonFields item(record.Get("payload").value_or(Json()));
  const std::optional<Json> type = item.Get("type");
  const std::string name = IdOf(item.Get("name")).value_or("");
  if (Is(type, "message")) {
    const bool user = Is(item.Get("role"), "user");
    if (!user && !Is(item.Get("role"), "assistant")) return;
    std::string text = ContentText(item.Get("content"), kLongestSaid);
    if (!user || !text.starts_with('<')) Words(to, user, std::move(text));
  } else if (Is(type, "function_call")) {
    const std::string arguments = TextOf(item.Get("arguments"));
    const Result<Json> input = Json::Parse(arguments);
    to.Call(name, input.ok() ? *input : item.Get("arguments").value_or(Json()));
  } else if (Is(type, "custom_tool_call")) {
    to.Call(name, item.Get("input").value_or(Json()));
  } else if (Is(type, "local_shell_call")) {
    to.Call("shell", item.Get("action").value_or(Json()));
  } else if (Is(type, "function_call_output") || Is(type, "custom_tool_call_output")) {
    to.Answer(TextOf(item.Get("output")));
  }
}

void ReadCopilot(const JsonFields& record, SaidListener& to) {
  if (record.Get("agentId")) return;
  const std::optional<Json> type = record.Get("type");
  const JsonFields data(record.Get("data").value_or(Json()));
  if (Is(type, "user.message")) Words(to, true, TextOf(data.Get("content")));
  if (Is(type, "assistant.message")) {
    Words(to, false, TextOf(data.Get("content")));
    const std::optional<Json> calls = data.Get("toolRequests");
    if (calls && calls->is_array())
      for (JsonParts parts(*calls); parts.Next();)
        to.Call(IdOf(parts.value().Get("name")).value_or(""),
                parts.value().Get("arguments").value_or(Json()));
  }
  if (Is(type, "tool.execution_complete")) to.Answer(TextOf(data.Get("result")));
}

}  // namespace

void ReadSaid(AgentKind agent, const Json& record, SaidListener& to) {
  const JsonFields fields(record);
  switch (agent) {
    case AgentKind::kClaude:
      return ReadClaude(fields, to);
    case AgentKind::kQwen:
      return ReadQwen(fields, to);
    case AgentKind::kGemini:
      return ReadGemini(fields, to);
    case AgentKind::kCodex:
      return ReadCodex(fields, to);
    case AgentKind::kCopilot:
      return ReadCopilot(fields, to);
    default:
      return;
  }
}

CallIsAbout WhatCallIsAbout(const std::string& tool, const Json& input) {
  CallIsAbout out;
  std::string name = tool;
  std::ranges::transform(name, name.begin(), [](char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  if (name == "apply_patch") {
    std::string patch = input.Text().value_or("");
    for (const char* member : {"input", "patch", "command"})
      if (const auto text = input.Get(member); text && patch.empty())
        patch = text->Text().value_or("");
    out.files = PatchPaths(patch).value_or(std::vector<std::string>());
    return out;
  }
  for (const char* edits :
       {"write", "edit", "multiedit", "notebookedit", "write_file", "replace",
        "notebook_edit", "edit_file", "create", "str_replace", "insert"}) {
    if (name != edits) continue;
    for (const char* member :
         {"file_path", "notebook_path", "path", "filePath", "absolute_path"})
      if (const auto path = input.Get(member); path && path->is_string()) {
        out.files.push_back(*path->Text(kMaxPath));
        return out;
      }
    return out;
  }
  for (const char* member : {"command", "cmd"}) {
    const std::optional<Json> command = input.Get(member);
    if (!command) continue;
    if (auto text = command->Text(kLongestSaid)) {
      out.command = std::move(*text);
    } else if (command->is_array()) {
      for (JsonParts words(*command); words.Next();)
        if (auto word = words.value().Text(kLongestSaid))
          out.command += (out.command.empty() ? "" : " ") + *word;
    }
    if (!out.command.empty()) break;
  }
  return out;
}

}  // namespace belay
