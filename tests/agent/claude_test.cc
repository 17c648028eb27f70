// Claude Code's payloads, as a real run wrote them.

#include "agent/payloads.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

class Claude : public ::testing::Test {
 protected:
  HookEvent Of(const std::string& name) const {
    const auto found = payloads.find(name);
    if (found == payloads.end()) {
      ADD_FAILURE() << "no payload " << name;
      return {};
    }
    return Read(found->second);
  }
  HookEvent Read(std::string_view payload) const {
    auto event = ParseHook(AgentKind::kClaude, "", payload);
    EXPECT_TRUE(event.ok()) << event.error().what;
    return event.ok() ? *event : HookEvent{};
  }
  // PreToolUse of a call.
  ToolCall Call(const std::string& name, const std::string& input) const {
    const HookEvent event = Read(R"({"hook_event_name":"PreToolUse","session_id":"s",)"
                                 R"("cwd":"/p","tool_name":")" +
                                 name + R"(","tool_input":)" + input + "}");
    EXPECT_TRUE(event.tool);
    return event.tool.value_or(ToolCall{.name = ""});
  }
  const std::map<std::string, std::string> payloads = LoadPayloads(AgentKind::kClaude);
};

constexpr std::string_view kSession = "11111111-2222-4333-8444-555555555555";

TEST_F(Claude, EveryCapturedPayloadSaysWhoAndWhere) {
  EXPECT_EQ(payloads.size(), 32u);
  for (const auto& [name, payload] : payloads) {
    const HookEvent event = Read(payload);
    EXPECT_EQ(event.agent, AgentKind::kClaude) << name;
    EXPECT_NE(event.kind, EventKind::kOther) << name;
    EXPECT_EQ(event.cwd, "/home/user/project") << name;
    EXPECT_FALSE(event.session.empty()) << name;
    ASSERT_TRUE(event.transcript) << name;
    EXPECT_TRUE(event.transcript->ends_with(event.session + ".jsonl")) << name;
    EXPECT_EQ(event.anchor.has_value(), event.kind != EventKind::kSessionStart) << name;
    EXPECT_EQ(event.tool.has_value(),
              event.kind == EventKind::kToolBegin || event.kind == EventKind::kToolEnd)
        << name;
    EXPECT_EQ(event.tool && event.tool->id, event.tool.has_value()) << name;
  }
}

TEST_F(Claude, ASessionBeginsAndEnds) {
  EXPECT_EQ(Of("SessionStart-startup").kind, EventKind::kSessionStart);
  EXPECT_EQ(Of("SessionStart-startup").source, "startup");
  EXPECT_EQ(Of("SessionStart-resume").source, "resume");
  EXPECT_EQ(Of("SessionEnd-other").kind, EventKind::kSessionEnd);
  EXPECT_EQ(Of("SessionEnd-prompt_input_exit.tui").reason, "prompt_input_exit");
  EXPECT_EQ(Of("SessionEnd-other").session, kSession);
}

TEST_F(Claude, APromptBeginsATurn) {
  const HookEvent event = Of("UserPromptSubmit");
  EXPECT_EQ(event.kind, EventKind::kPrompt);
  EXPECT_TRUE(event.human);
  EXPECT_EQ(event.prompt, "turn 1: create new.txt and edit a.txt");
  EXPECT_THAT(event.anchor,
              Optional(std::string("5fa29307-aabe-4316-aa1f-39c86b03c667")));
  EXPECT_THAT(event.ended_tasks, IsEmpty());
}

TEST_F(Claude, ATasksNotificationIsNoPersonsPrompt) {
  const HookEvent event = Of("UserPromptSubmit-tasknotification");
  EXPECT_EQ(event.kind, EventKind::kPrompt);
  EXPECT_FALSE(event.human);
  EXPECT_THAT(event.ended_tasks, ElementsAre("aa26309a26a241a82"));
  // Somebody may write about one.
  EXPECT_TRUE(Read(R"({"hook_event_name":"UserPromptSubmit",)"
                   R"("prompt":"what is a <task-notification>?"})")
                  .human);
}

TEST_F(Claude, SeveralNotificationsEndSeveralTasks) {
  const HookEvent event = Read(
      R"({"hook_event_name":"UserPromptSubmit","prompt":"<task-notification><task-id>a)"
      R"(</task-id><status>completed</status></task-notification><task-notification>)"
      R"(<task-id>b</task-id><status>running</status></task-notification>)"
      R"(<task-notification><task-id>c</task-id></task-notification><task-id>torn"})");
  EXPECT_THAT(event.ended_tasks, ElementsAre("a", "c"));
}

TEST_F(Claude, EditToolsNameWhatTheyWrite) {
  for (const auto& [name, path] : std::map<std::string, std::string>{
           {"Write", "new.txt"}, {"Edit", "a.txt"}, {"NotebookEdit", "nb.ipynb"}}) {
    for (const char* when : {"PreToolUse-", "PostToolUse-"}) {
      const HookEvent event = Of(when + name);
      ASSERT_TRUE(event.tool) << name;
      EXPECT_EQ(event.tool->name, name);
      EXPECT_EQ(event.tool->reach, ToolReach::kPaths) << name;
      EXPECT_THAT(event.tool->paths, ElementsAre("/home/user/project/" + path));
      EXPECT_EQ(event.tool->what, path);
    }
  }
  EXPECT_THAT(Call("MultiEdit", R"({"file_path":"/p/x"})").paths, ElementsAre("/p/x"));
  EXPECT_EQ(Call("Write", R"({"file_path":"/elsewhere/x"})").what, "/elsewhere/x");
}

TEST_F(Claude, AnEditToolWithoutAPathMayWriteAnything) {
  for (const char* input : {"{}", R"({"file_path":7})", R"({"file_path":""})",
                            R"({"file_path":"a\u0000b"})", "[]", "null", "\"x\""}) {
    const ToolCall call = Call("Edit", input);
    EXPECT_EQ(call.reach, ToolReach::kWrites) << input;
    EXPECT_THAT(call.paths, IsEmpty()) << input;
  }
}

TEST_F(Claude, OnlyKnownToolsCountAsReading) {
  EXPECT_EQ(Of("PreToolUse-Read").tool->reach, ToolReach::kReads);
  EXPECT_EQ(Of("PreToolUse-Bash").tool->reach, ToolReach::kWrites);
  for (const char* name : {"Grep", "Glob", "WebFetch", "TodoWrite", "BashOutput"})
    EXPECT_EQ(Call(name, "{}").reach, ToolReach::kReads) << name;
  for (const char* name :
       {"mcp__files__read", "mcp__x__Read", "Reed", "read", "", "Skill", "Workflow"})
    EXPECT_EQ(Call(name, "{}").reach, ToolReach::kWrites) << name;
}

// Its calls are told one by one; what it does itself is a work tree of its own.
TEST_F(Claude, ASubagentsCallsAreItsOwn) {
  const HookEvent begin = Of("PreToolUse-Agent");
  EXPECT_EQ(begin.tool->reach, ToolReach::kReads);
  EXPECT_EQ(begin.tool->what, "sub task");
  EXPECT_FALSE(Of("PostToolUse-Agent").tool->background);
  EXPECT_EQ(Call("Agent", R"({"isolation":"worktree"})").reach, ToolReach::kWrites);
  const HookEvent write = Of("PreToolUse-Write-subagent");
  EXPECT_EQ(write.session, kSession);
  EXPECT_THAT(write.subagent, Optional(std::string("aa26309a26a241a82")));
  EXPECT_THAT(write.subagent_type, Optional(std::string("general-purpose")));
  const HookEvent end = Of("SubagentStop-subagent");
  EXPECT_EQ(end.kind, EventKind::kSubagentEnd);
  EXPECT_THAT(end.subagent, Optional(std::string("aa26309a26a241a82")));
  // The list still has the one that has just ended.
  EXPECT_THAT(end.running_tasks, Optional(ElementsAre("bhlq3t198")));
}

TEST_F(Claude, AShellInTheBackgroundHasATask) {
  const HookEvent begin = Of("PreToolUse-Bash-background");
  EXPECT_TRUE(begin.tool->background);
  EXPECT_FALSE(begin.tool->task);
  const HookEvent end = Of("PostToolUse-Bash-background");
  EXPECT_TRUE(end.tool->background);
  EXPECT_THAT(end.tool->task, Optional(std::string("bhlq3t198")));
  EXPECT_EQ(begin.tool->id, end.tool->id);
  EXPECT_FALSE(Of("PostToolUse-Bash").tool->background);
  // One that was moved there when it took too long.
  const HookEvent moved =
      Read(R"({"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":)"
           R"({"command":"x"},"tool_response":{"backgroundTaskId":"b1"}})");
  EXPECT_TRUE(moved.tool->background);
  EXPECT_THAT(moved.tool->task, Optional(std::string("b1")));
}

// Mutant: readers-end-nothing.
TEST_F(Claude, AShellThatItStoppedHasEnded) {
  for (const char* tool : {"KillShell", "KillBash", "TaskStop"})
    for (const char* id : {"shell_id", "task_id"}) {
      auto call = [&](const std::string& event, const std::string& input) {
        return Read(R"({"hook_event_name":")" + event + R"(","session_id":"s",)" +
                    R"("cwd":"/p","tool_name":")" + tool + R"(","tool_input":)" +
                    input + R"(,"tool_response":{}})");
      };
      const std::string input = std::string(R"({")") + id + R"(":"b1"})";
      const HookEvent end = call("PostToolUse", input);
      EXPECT_EQ(end.kind, EventKind::kTaskEnd) << tool << id;
      EXPECT_THAT(end.ended_tasks, ElementsAre("b1"));
      for (const HookEvent& other :
           {call("PreToolUse", input), call("PostToolUseFailure", input),
            call("PostToolUse", "{}"), call("PostToolUse", R"({"shell_id":7})")}) {
        EXPECT_TRUE(other.kind == EventKind::kToolBegin ||
                    other.kind == EventKind::kToolEnd);
        EXPECT_EQ(other.tool->reach, ToolReach::kReads);
        EXPECT_THAT(other.ended_tasks, IsEmpty());
      }
    }
}

TEST_F(Claude, ATurnEndsWithWhatStillRuns) {
  const HookEvent event = Of("Stop");
  EXPECT_EQ(event.kind, EventKind::kTurnEnd);
  EXPECT_EQ(event.last_answer, "Turn 1 complete.");
  EXPECT_THAT(event.running_tasks, Optional(IsEmpty()));
  EXPECT_FALSE(Read(R"({"hook_event_name":"Stop"})").running_tasks);
  EXPECT_THAT(
      Read(R"({"hook_event_name":"Stop","background_tasks":[{"id":"a","status":)"
           R"("running"},{"id":"b","status":"completed"},{"id":"c"},7,{}]})")
          .running_tasks,
      Optional(ElementsAre("a", "c")));
}

TEST_F(Claude, AFailedCallEnds) {
  const HookEvent event = Of("PostToolUseFailure-Bash");
  EXPECT_EQ(event.kind, EventKind::kToolEnd);
  EXPECT_TRUE(event.tool->failed);
  EXPECT_FALSE(Of("PostToolUse-NotebookEdit").tool->failed);
}

TEST_F(Claude, ACommandIsOneLine) {
  EXPECT_EQ(
      Of("PreToolUse-Bash").tool->what,
      "rm -f doomed.txt && echo overwritten > src/b.txt && mkdir -p out && echo x > "
      "out/gen.txt");
  EXPECT_EQ(Call("Bash", R"({"command":"  a\n\n\tb \r\nc "})").what, "a b c");
  const std::string long_command(1000, 'x');
  EXPECT_EQ(Call("Bash", R"({"command":")" + long_command + "\"}").what,
            std::string(kMaxWhat, 'x'));
  EXPECT_EQ(Call("Bash", R"({"command":"/p/run.sh x"})").what, "/p/run.sh x");
}

TEST_F(Claude, WhatIsNewIsPassedOver) {
  EXPECT_EQ(Read(R"({"hook_event_name":"SomethingNew","x":[{}]})").kind,
            EventKind::kOther);
  EXPECT_EQ(Read("{}").kind, EventKind::kOther);
  EXPECT_EQ(Read(R"({"hook_event_name":"Stop","session_id":[],"cwd":"not/absolute",)"
                 R"("transcript_path":{},"prompt_id":5,"agent_id":null})")
                .session,
            "");
  EXPECT_EQ(Read(R"({"cwd":"not/absolute"})").cwd, "");
}

}  // namespace
}  // namespace belay::test
