// Every payload of tests/agent/data, in one line each, as data/expected.txt has it.
// BELAY_WRITE_EXPECTED=1 writes that file anew.

#include "agent/payloads.h"

namespace belay::test {
namespace {

std::string_view KindName(EventKind kind) {
  static constexpr std::string_view kNames[] = {
      "session-start", "prompt",   "tool-begin", "tool-end",    "turn-end",
      "subagent-end",  "task-end", "compact",    "session-end", "other"};
  return kNames[static_cast<size_t>(kind)];
}

std::string Tell(const ToolCall& call) {
  static constexpr std::string_view kReach[] = {"reads", "paths", "writes"};
  std::string text =
      " tool=" + call.name + " " + std::string(kReach[static_cast<size_t>(call.reach)]);
  text += call.id ? " id=" + *call.id : " fingerprint=" + call.fingerprint;
  for (const std::string& path : call.paths) text += " path=" + path;
  if (call.background) text += " background";
  if (call.task) text += " task=" + *call.task;
  if (call.failed) text += " failed";
  return text + " what=[" + call.what + "]";
}

std::string Tell(const HookEvent& event) {
  std::string text = std::string(AgentName(event.agent)) + " ";
  text += KindName(event.kind);
  text += " session=" + event.session + " cwd=" + event.cwd;
  for (const std::string& root : event.workspaces) text += " workspace=" + root;
  if (event.parent_session) text += " parent=" + *event.parent_session;
  if (event.transcript)
    text += " transcript=" + event.transcript->substr(event.transcript->rfind('/') + 1);
  if (event.anchor) text += " anchor=" + *event.anchor;
  if (event.subagent) text += " subagent=" + *event.subagent;
  if (event.subagent_type) text += "/" + *event.subagent_type;
  if (!event.source.empty()) text += " source=" + event.source;
  if (!event.reason.empty()) text += " reason=" + event.reason;
  if (!event.human) text += " not-human";
  for (const std::string& task : event.ended_tasks) text += " ended=" + task;
  if (event.running_tasks) {
    text += " running=";
    for (const std::string& task : *event.running_tasks) text += task + ";";
  }
  if (event.tool) text += Tell(*event.tool);
  if (!event.prompt.empty())
    text += " prompt=[" + event.prompt.substr(0, event.prompt.find('\n')) + "]";
  if (!event.last_answer.empty())
    text +=
        " answer=[" + event.last_answer.substr(0, event.last_answer.find('\n')) + "]";
  return text;
}

TEST(Captured, EveryPayloadIsUnderstood) {
  std::string all;
  std::map<AgentKind, int> count;
  for (AgentKind agent : kAllAgents) {
    for (const auto& [name, payload] : LoadPayloads(agent)) {
      // Copilot and our plugin for opencode give the name as an argument.
      const std::string event = name.substr(0, name.find('-'));
      auto parsed = ParseHook(agent, event, payload);
      ASSERT_TRUE(parsed.ok()) << name << ": " << parsed.error().what;
      all += name + ": " + Tell(*parsed) + "\n";
      ++count[agent];
    }
  }
  EXPECT_EQ(count.size(), 9u);  // all but generic: tests/agent/generic_test.cc
  const std::string path = DataDir() + "expected.txt";
  if (std::getenv("BELAY_WRITE_EXPECTED") != nullptr) std::ofstream(path) << all;
  std::ifstream file(path);
  const std::string expected((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(all, expected);
}

// A call's end is paired with its beginning: by the id, or by the fingerprint.
TEST(Captured, TheEndOfACallIsPairedWithItsBeginning) {
  int pairs = 0;
  for (AgentKind agent : kAllAgents) {
    std::map<std::string, std::string> begun;
    const auto payloads = LoadPayloads(agent);
    for (const auto& [name, payload] : payloads) {
      const HookEvent event =
          *ParseHook(agent, name.substr(0, name.find('-')), payload);
      if (event.kind != EventKind::kToolBegin) continue;
      begun[event.tool->id.value_or(event.tool->fingerprint)] = event.tool->name;
      EXPECT_EQ(event.tool->fingerprint.size(), 16u);
    }
    for (const auto& [name, payload] : payloads) {
      const HookEvent event =
          *ParseHook(agent, name.substr(0, name.find('-')), payload);
      if (event.kind != EventKind::kToolEnd || event.tool->failed) continue;
      const std::string key = event.tool->id.value_or(event.tool->fingerprint);
      EXPECT_EQ(begun[key], event.tool->name) << AgentName(agent) << " " << name;
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 25);
}

// Whatever is cut off, changed or of another kind, there is an event or an error.
TEST(Captured, APayloadCutAnywhereIsRefused) {
  for (AgentKind agent : kAllAgents)
    for (const auto& [name, payload] : LoadPayloads(agent))
      for (size_t length = 0; length < payload.size(); length += 7)
        EXPECT_FALSE(ParseHook(agent, "", payload.substr(0, length)).ok()) << name;
}

TEST(Captured, FieldsOfAnotherKindCountAsMissing) {
  for (AgentKind agent : kAllAgents) {
    for (const auto& [name, payload] : LoadPayloads(agent)) {
      const std::string event = name.substr(0, name.find('-'));
      // Each text that is a value becomes a number, an object, nothing.
      for (std::string_view other : {"7", "{}", "null", "[[]]"}) {
        for (size_t at = payload.find(":\""); at != std::string::npos;
             at = payload.find(":\"", at + 1)) {
          size_t end = at + 2;
          while (payload[end] != '"') end += payload[end] == '\\' ? 2 : 1;
          std::string changed = payload;
          changed.replace(at + 1, end - at, other);
          auto parsed = ParseHook(agent, event, changed);
          if (!parsed.ok()) continue;  // it was inside a text
          EXPECT_EQ(parsed->agent, agent);
          EXPECT_EQ(parsed->tool.has_value(), parsed->kind == EventKind::kToolBegin ||
                                                  parsed->kind == EventKind::kToolEnd);
        }
      }
    }
  }
}

}  // namespace
}  // namespace belay::test
