// What is special about each agent's words.

#include "agent/payloads.h"
#include "base/json.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

HookEvent Read(AgentKind agent, const std::string& payload,
               std::string_view given = "") {
  auto event = ParseHook(agent, given, payload);
  EXPECT_TRUE(event.ok()) << payload;
  return event.ok() ? *event : HookEvent{};
}

// A call's beginning, in the words of each agent.
ToolCall Call(AgentKind agent, const std::string& name, const std::string& input) {
  const std::string flat =
      R"("tool_name":")" + name + R"(","tool_input":)" + input + "}";
  HookEvent event;
  switch (agent) {
    case AgentKind::kGemini:
      event = Read(agent, R"({"hook_event_name":"BeforeTool","cwd":"/p",)" + flat);
      break;
    case AgentKind::kCopilot:
      event =
          Read(agent,
               R"({"cwd":"/p","toolName":")" + name + R"(","toolArgs":)" + input + "}",
               "preToolUse");
      break;
    case AgentKind::kReasonix:
      event = Read(agent, R"({"event":"PreToolUse","cwd":"/p","toolName":")" + name +
                              R"(","toolArgs":)" + input + "}");
      break;
    case AgentKind::kCline:
      event = Read(agent, R"({"hookName":"tool_call","workspaceRoots":["/p"],)"
                          R"("tool_call":{"id":"c","name":")" +
                              name + R"(","input":)" + input + "}}");
      break;
    case AgentKind::kOpencode:
      event = Read(
          agent, R"({"directory":"/p","tool":")" + name + R"(","args":)" + input + "}",
          "tool.execute.before");
      break;
    case AgentKind::kCrush:
      event = Read(agent, R"({"event":"PreToolUse","cwd":"/p",)" + flat);
      break;
    case AgentKind::kGoose:
      event = Read(agent, R"({"event":"PreToolUse","working_dir":"/p",)" + flat);
      break;
    case AgentKind::kHermes:
      event = Read(agent, R"({"hook_event_name":"pre_tool_call","cwd":"/p",)" + flat);
      break;
    case AgentKind::kGeneric:
      event = Read(agent, R"({"event":"tool.begin","cwd":"/p","tool":{"name":")" +
                              name + R"(","input":)" + input + "}}");
      break;
    default:
      event = Read(agent, R"({"hook_event_name":"PreToolUse","cwd":"/p",)" + flat);
  }
  EXPECT_EQ(event.kind, EventKind::kToolBegin);
  return event.tool.value_or(ToolCall{.name = ""});
}

TEST(Dialects, AToolThatNobodyKnowsMayWriteWithEveryAgent) {
  for (AgentKind agent : kAllAgents) {
    for (const char* name : {"new_tool", "mcp__server__read_file", "READ", ""}) {
      const ToolCall call = Call(agent, name, R"({"file_path":"/p/x"})");
      EXPECT_EQ(call.name, name) << AgentName(agent);
      EXPECT_EQ(call.reach, ToolReach::kWrites) << AgentName(agent) << " " << name;
      EXPECT_THAT(call.paths, IsEmpty());
    }
  }
}

TEST(Dialects, EachAgentsShellWritesAndItsReadersDoNot) {
  struct Row {
    AgentKind agent;
    const char* shell;
    const char* reader;
  };
  for (const Row& row : {Row{AgentKind::kClaude, "Bash", "Read"},
                         Row{AgentKind::kCodex, "Bash", "view_image"},
                         Row{AgentKind::kOpencode, "bash", "grep"},
                         Row{AgentKind::kGemini, "run_shell_command", "read_file"},
                         Row{AgentKind::kQwen, "run_shell_command", "grep_search"},
                         Row{AgentKind::kCopilot, "bash", "view"},
                         Row{AgentKind::kReasonix, "bash", "ls"},
                         Row{AgentKind::kCline, "run_commands", "read_files"},
                         Row{AgentKind::kCrush, "bash", "view"},
                         Row{AgentKind::kGoose, "developer__shell", "tree"},
                         Row{AgentKind::kHermes, "terminal", "read_file"}}) {
    EXPECT_EQ(Call(row.agent, row.shell, "{}").reach, ToolReach::kWrites);
    EXPECT_EQ(Call(row.agent, row.reader, "{}").reach, ToolReach::kReads);
  }
}

ToolCall Patch(const std::string& patch) {
  return Call(AgentKind::kCodex, "apply_patch",
              R"({"command":)" + JsonWriter().String(patch).Take() + "}");
}

TEST(Patch, NamesEveryFileItTouches) {
  const ToolCall call = Patch(
      "*** Begin Patch\n*** Add File: new dir/a.txt\n+x\n*** Update File: b.txt\n"
      "*** Move to: c.txt\n@@\n-a\n+b\n*** Delete File: /abs/d.txt\n"
      "*** Update File: b.txt\n@@\n x\n*** End Patch\n");
  EXPECT_EQ(call.reach, ToolReach::kPaths);
  EXPECT_THAT(call.paths, ElementsAre("new dir/a.txt", "b.txt", "c.txt", "/abs/d.txt"));
  EXPECT_EQ(call.what, "new dir/a.txt, b.txt, c.txt, /abs/d.txt");
}

// Codex itself trims these lines; what only looks like one does no harm.
TEST(Patch, MarksAreFoundHoweverTheyAreIndented) {
  EXPECT_THAT(
      Patch("  *** Begin Patch\r\n \t*** Add File:  a b \r\n+1\r\n*** End Patch").paths,
      ElementsAre("a b"));
  EXPECT_THAT(
      Patch("cat <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF").paths,
      ElementsAre("a"));
}

TEST(Patch, WhatIsNotUnderstoodMayWriteAnything) {
  for (const char* patch :
       {"", "rm -rf /", "*** Begin Patch\n*** End Patch", "*** Add File: a\n+x",
        "*** Begin Patch\n*** Add File:   \n",
        "*** Begin Patch\n*** Rename File: a\n"}) {
    const ToolCall call = Patch(patch);
    EXPECT_EQ(call.reach, ToolReach::kWrites) << patch;
    EXPECT_THAT(call.paths, IsEmpty()) << patch;
  }
  EXPECT_EQ(Call(AgentKind::kCodex, "apply_patch", "7").reach, ToolReach::kWrites);
  EXPECT_EQ(Call(AgentKind::kCodex, "apply_patch", R"({"command":[1]})").reach,
            ToolReach::kWrites);
  std::string many = "*** Begin Patch\n";
  for (int i = 0; i < 5000; ++i)
    many += "*** Delete File: f" + std::to_string(i) + "\n";
  EXPECT_EQ(Patch(many).reach, ToolReach::kWrites);
}

TEST(Patch, IsFoundWhereverAnAgentPutsIt) {
  const std::string patch = R"("*** Begin Patch\n*** Add File: a\n*** End Patch")";
  EXPECT_THAT(
      Call(AgentKind::kOpencode, "apply_patch", R"({"patchText":)" + patch + "}").paths,
      ElementsAre("a"));
  EXPECT_THAT(Call(AgentKind::kCopilot, "apply_patch", patch).paths, ElementsAre("a"));
  EXPECT_THAT(
      Call(AgentKind::kCline, "apply_patch", R"({"input":)" + patch + "}").paths,
      ElementsAre("a"));
}

// Mutant: a-hook-waits-for-ever.
TEST(Dialects, NoHookWaitsLongerThanItsAgentLetsIt) {
  for (AgentKind agent : kAllAgents)
    for (const std::string name : {"SessionStart", "Stop", "Interrupt", "SessionEnd"}) {
      const HookEvent event = Read(agent, R"({"hook_event_name":")" + name + R"("})");
      const bool cut =
          agent == AgentKind::kCodex && (name == "Interrupt" || name == "SessionEnd");
      if (agent == AgentKind::kGeneric) continue;
      EXPECT_LT(LongestWaitMs(event), cut ? 3'000 : 60'000) << AgentName(agent) << name;
      EXPECT_GT(LongestWaitMs(event), cut ? 2'000 : 30'000) << AgentName(agent) << name;
    }
}

TEST(Codex, TellsSubagentsAndInterruptions) {
  const HookEvent call =
      Read(AgentKind::kCodex, R"({"hook_event_name":"PreToolUse","session_id":"s",)"
                              R"("turn_id":"t","agent_id":"a1","agent_type":"worker",)"
                              R"("tool_name":"Bash","tool_input":{"command":"x"}})");
  EXPECT_THAT(call.subagent, Optional(std::string("a1")));
  EXPECT_THAT(call.subagent_type, Optional(std::string("worker")));
  EXPECT_EQ(Read(AgentKind::kCodex, R"({"hook_event_name":"Interrupt"})").kind,
            EventKind::kTurnEnd);
  EXPECT_EQ(Read(AgentKind::kCodex, R"({"hook_event_name":"PermissionRequest"})").kind,
            EventKind::kOther);
  EXPECT_EQ(Read(AgentKind::kCodex, R"({"hook_event_name":"PreCompact"})").kind,
            EventKind::kCompact);
}

// Mutant: our-own-answer-is-a-turn. What a command file of ours becomes for the model.
TEST(Dialects, TheAnswerToRollbackBeginsNoTurn) {
  const std::string text =
      "1. abc1234  before Bash\\n\\nShow the user the text above exactly as it is, and "
      "do nothing else.";
  EXPECT_EQ(Read(AgentKind::kGemini, R"({"hook_event_name":"BeforeAgent","session_id":)"
                                     R"("s","cwd":"/p","prompt":")" +
                                         text + "\"}")
                .kind,
            EventKind::kOther);
  EXPECT_EQ(Read(AgentKind::kQwen,
                 R"({"hook_event_name":"UserPromptSubmit","session_id":"s",)"
                 R"("cwd":"/p","submitted_prompt":"x","prompt":")" +
                     text + "\"}")
                .kind,
            EventKind::kOther);
  EXPECT_EQ(Read(AgentKind::kOpencode,
                 R"({"sessionID":"s","directory":"/p","message":{"id":"m"},)"
                 R"("parts":[{"type":"text","text":")" +
                     text + "\"}]}",
                 "chat.message")
                .kind,
            EventKind::kOther);
}

TEST(ClaudeFork, ItsCommandLineSaysWhatItResumes) {
  auto resumed = [](std::initializer_list<std::string_view> words) {
    std::string line;
    for (std::string_view word : words) line += std::string(word) + '\0';
    return ResumedBy(line).value_or("");
  };
  EXPECT_EQ(
      resumed({"claude", "--resume", "1d91a221-231f", "--fork-session", "-p", "x"}),
      "1d91a221-231f");
  EXPECT_EQ(resumed({"claude", "--fork-session", "--resume=ab-1"}), "ab-1");
  EXPECT_EQ(resumed({"claude", "-r", "ab-1"}), "ab-1");
  EXPECT_EQ(resumed({"claude", "--resume", "--fork-session"}), "");
  EXPECT_EQ(resumed({"claude", "-p", "--", "--resume", "x"}), "");
  EXPECT_EQ(resumed({"claude", "--resume", "../x"}), "");
  EXPECT_EQ(resumed({"claude", "--continue"}), "");
  EXPECT_EQ(ResumedBy("--resume"), std::nullopt);
  EXPECT_EQ(ResumedBy(""), std::nullopt);
}

TEST(Opencode, ListsWhatWasAskedBefore) {
  const HookEvent event = Read(
      AgentKind::kOpencode,
      R"({"sessionID":"s","directory":"/p","message":{"id":"m3"},"parts":[],)"
      R"("earlier":[{"id":"m1","text":"first"},{"id":7},{"id":"m2","text":"second"},)"
      R"("text"]})",
      "chat.message");
  ASSERT_EQ(event.earlier.size(), 2u);
  EXPECT_EQ(event.earlier[0].id, "m1");
  EXPECT_EQ(event.earlier[1].text, "second");
  EXPECT_TRUE(
      Read(AgentKind::kOpencode, R"({"sessionID":"s","earlier":"x"})", "chat.message")
          .earlier.empty());
}

TEST(Qwen, AnEmptyPromptIsNoPersons) {
  const auto payloads = LoadPayloads(AgentKind::kQwen);
  EXPECT_TRUE(Read(AgentKind::kQwen, payloads.at("UserPromptSubmit")).human);
  const HookEvent event =
      Read(AgentKind::kQwen, payloads.at("UserPromptSubmit-continuation"));
  EXPECT_EQ(event.kind, EventKind::kPrompt);
  EXPECT_FALSE(event.human);
  EXPECT_FALSE(Read(AgentKind::kQwen,
                    R"({"hook_event_name":"UserPromptSubmit","prompt":)"
                    R"("<task-notification><task-id>bg_1</task-id>"})")
                   .human);
}

TEST(Qwen, AShellInTheBackgroundHasATask) {
  const HookEvent event = Read(
      AgentKind::kQwen,
      R"({"hook_event_name":"PostToolUse","tool_name":"run_shell_command","tool_input":)"
      R"({"command":"x","is_background":true},"tool_response":{"llmContent":)"
      R"("Background shell started.\nid: bg_0a1b2c3d\npid: 7\noutput file: /x"}})");
  EXPECT_TRUE(event.tool->background);
  EXPECT_THAT(event.tool->task, Optional(std::string("bg_0a1b2c3d")));
  EXPECT_FALSE(
      Read(AgentKind::kQwen,
           R"({"hook_event_name":"PostToolUse","tool_name":"run_shell_command",)"
           R"("tool_response":{"llmContent":"Background shell started.\nid: "}})")
          .tool->task);
}

TEST(Copilot, ReadsItsArgumentsAsAnObjectOrAsText) {
  const ToolCall object = Call(AgentKind::kCopilot, "edit", R"({"path":"/p/a b"})");
  const ToolCall text =
      Call(AgentKind::kCopilot, "edit", R"("{\"path\": \"/p/a b\"}")");
  EXPECT_THAT(object.paths, ElementsAre("/p/a b"));
  EXPECT_THAT(text.paths, ElementsAre("/p/a b"));
  EXPECT_EQ(object.fingerprint, text.fingerprint);
  EXPECT_EQ(Call(AgentKind::kCopilot, "edit", R"("{not json")").reach,
            ToolReach::kWrites);
  EXPECT_TRUE(Call(AgentKind::kCopilot, "bash", R"({"command":"x","mode":"async"})")
                  .background);
}

TEST(Copilot, TheEventIsTheArgument) {
  EXPECT_EQ(Read(AgentKind::kCopilot, R"({"sessionId":"s"})", "agentStop").kind,
            EventKind::kTurnEnd);
  EXPECT_EQ(Read(AgentKind::kCopilot, R"({"sessionId":"s"})").kind, EventKind::kOther);
  EXPECT_TRUE(Read(AgentKind::kCopilot,
                   R"({"toolName":"bash","toolResult":{"resultType":"failure"}})",
                   "postToolUse")
                  .tool->failed);
}

TEST(Reasonix, TellsTheTaskOfACallInTheBackground) {
  const std::string call = R"({"event":"PostToolUse","toolName":"task","toolArgs":{},)";
  const HookEvent event = Read(
      AgentKind::kReasonix,
      call + R"("toolResult":"Started background task \"task-1\" (delegated). It"})");
  EXPECT_TRUE(event.tool->background);
  EXPECT_THAT(event.tool->task, Optional(std::string("task-1")));
  EXPECT_FALSE(
      Read(AgentKind::kReasonix, call + R"("toolResult":"Started background x"})")
          .tool->background);
  EXPECT_TRUE(Read(AgentKind::kReasonix, call + R"("error":"no"})").tool->failed);
}

TEST(Copilot, ASubagentIsItsParents) {
  const std::string who =
      R"({"sessionId":"sub","agentId":"sub","parentAgentId":"main","prompt":"do it"})";
  const HookEvent prompt = Read(AgentKind::kCopilot, who, "userPromptSubmitted");
  EXPECT_EQ(prompt.session, "main");
  EXPECT_THAT(prompt.subagent, Optional(std::string("sub")));
  EXPECT_FALSE(prompt.human);
  EXPECT_EQ(Read(AgentKind::kCopilot, who, "agentStop").kind, EventKind::kOther);
}

TEST(Codex, ASubagentsTurnIsNotTheSessions) {
  const HookEvent event =
      Read(AgentKind::kCodex,
           R"({"hook_event_name":"PreToolUse","session_id":"s","turn_id":)"
           R"("t2","transcript_path":"/sub","agent_id":"a"})");
  EXPECT_FALSE(event.anchor);
  EXPECT_FALSE(event.transcript);
  EXPECT_EQ(event.session, "s");
}

TEST(Reasonix, AMoveWritesBothPaths) {
  const ToolCall move = Call(AgentKind::kReasonix, "move_file",
                             R"({"source_path":"a","destination_path":"b/c"})");
  EXPECT_EQ(move.reach, ToolReach::kPaths);
  EXPECT_THAT(move.paths, ElementsAre("a", "b/c"));
  EXPECT_EQ(Call(AgentKind::kReasonix, "move_file", R"({"source_path":"a"})").reach,
            ToolReach::kWrites);
}

TEST(Cline, CommandsAreToldTogether) {
  EXPECT_EQ(Call(AgentKind::kCline, "run_commands",
                 R"({"commands":["make\nall",{"command":"make test"},7]})")
                .what,
            "make all; make test");
}

TEST(Cline, AnAgentWithAParentIsASubagent) {
  const std::string common =
      R"("taskId":"t","agent_id":"a2","sessionContext":{"rootSessionId":"r"},)"
      R"("workspaceRoots":["/p","/q"],"parent_agent_id":)";
  const HookEvent child =
      Read(AgentKind::kCline, "{" + common + R"("a1","hookName":"agent_start"})");
  EXPECT_THAT(child.subagent, Optional(std::string("a2")));
  EXPECT_FALSE(child.human);
  EXPECT_EQ(
      Read(AgentKind::kCline, "{" + common + R"("a1","hookName":"agent_end"})").kind,
      EventKind::kSubagentEnd);
  const HookEvent parent =
      Read(AgentKind::kCline, "{" + common + R"(null,"hookName":"agent_start"})");
  EXPECT_FALSE(parent.subagent);
  EXPECT_TRUE(parent.human);
  EXPECT_EQ(parent.session, "r");
  EXPECT_THAT(parent.workspaces, ElementsAre("/p", "/q"));
}

TEST(Cline, OldNamesAreUnderstood) {
  const HookEvent event = Read(
      AgentKind::kCline, R"({"hookName":"PreToolUse","taskId":"t","preToolUse":)"
                         R"({"toolName":"write_to_file","parameters":{"path":"a"}}})");
  EXPECT_EQ(event.kind, EventKind::kToolBegin);
  EXPECT_EQ(event.session, "t");
  EXPECT_THAT(event.tool->paths, ElementsAre("a"));
  EXPECT_EQ(Read(AgentKind::kCline, R"({"userPromptSubmit":{"prompt":"hi"}})",
                 "UserPromptSubmit")
                .prompt,
            "hi");
}

TEST(Opencode, ASubagentIsASessionWithAParent) {
  const HookEvent event = Read(
      AgentKind::kOpencode,
      R"({"sessionID":"ses_2","parentID":"ses_1","directory":"/p","message":{"id":"m"},)"
      R"("parts":[{"type":"text","text":"do it"}]})",
      "chat.message");
  EXPECT_THAT(event.parent_session, Optional(std::string("ses_1")));
  EXPECT_FALSE(event.human);
}

TEST(Opencode, AMessageIsNobodysParent) {
  const HookEvent event = Read(
      AgentKind::kOpencode,
      R"({"sessionID":"ses_2","parentID":"msg_1","directory":"/p","message":{"id":"m"},)"
      R"("parts":[{"type":"text","text":"do it"}]})",
      "chat.message");
  EXPECT_EQ(event.parent_session, std::nullopt);
  EXPECT_TRUE(event.human);
}

TEST(Opencode, APromptIsWhatThePersonWrote) {
  const HookEvent event = Read(
      AgentKind::kOpencode,
      R"({"parts":[{"type":"text","text":"one"},{"type":"file","text":"no"},)"
      R"({"type":"text","text":"added","synthetic":true},{"type":"text","text":"two"},7]})",
      "chat.message");
  EXPECT_EQ(event.prompt, "one\ntwo");
  EXPECT_TRUE(event.human);
  EXPECT_TRUE(Read(AgentKind::kOpencode, R"({"tool":"bash","metadata":{"exit":1}})",
                   "tool.execute.after")
                  .tool->failed);
}

// --- goose, Hermes: by their documents -----------------------------------------------

TEST(Goose, ItsEventsByItsDocuments) {
  const HookEvent start =
      Read(AgentKind::kGoose, R"({"event":"SessionStart","session_id":"20261116_1"})");
  EXPECT_EQ(start.kind, EventKind::kSessionStart);
  EXPECT_EQ(start.session, "20261116_1");
  EXPECT_EQ(start.cwd, "");
  const HookEvent prompt =
      Read(AgentKind::kGoose,
           R"({"event":"UserPromptSubmit","session_id":"s","matcher_context":"fix it",)"
           R"("message":"fix it"})");
  EXPECT_EQ(prompt.kind, EventKind::kPrompt);
  EXPECT_EQ(prompt.prompt, "fix it");
  const std::string call =
      R"("session_id":"s","matcher_context":"write","tool_call_id":"c1","tool_name":)"
      R"("write","tool_input":{"path":"src/a","content":"x"},"working_dir":"/p"})";
  const HookEvent begin = Read(AgentKind::kGoose, R"({"event":"PreToolUse",)" + call);
  EXPECT_EQ(begin.kind, EventKind::kToolBegin);
  EXPECT_EQ(begin.cwd, "/p");
  EXPECT_THAT(begin.tool->id, Optional(std::string("c1")));
  EXPECT_EQ(begin.tool->reach, ToolReach::kPaths);
  EXPECT_THAT(begin.tool->paths, ElementsAre("src/a"));
  EXPECT_FALSE(begin.tool->failed);
  const HookEvent failed =
      Read(AgentKind::kGoose, R"({"event":"PostToolUseFailure",)" + call);
  EXPECT_EQ(failed.kind, EventKind::kToolEnd);
  EXPECT_TRUE(failed.tool->failed);
  EXPECT_EQ(failed.tool->fingerprint, begin.tool->fingerprint);
  EXPECT_EQ(Read(AgentKind::kGoose, R"({"event":"PreToolUseResult",)" + call).kind,
            EventKind::kOther)
      << "one more beginning of the same call";
}

TEST(Hermes, ItsEventsByItsDocuments) {
  const HookEvent prompt =
      Read(AgentKind::kHermes,
           R"({"hook_event_name":"pre_llm_call","tool_name":null,"tool_input":null,)"
           R"("session_id":"s","cwd":"/p","profile":"default","extra":{"turn_id":"t1",)"
           R"("user_message":"fix it","conversation_history":[]}})");
  EXPECT_EQ(prompt.kind, EventKind::kPrompt);
  EXPECT_EQ(prompt.prompt, "fix it");
  EXPECT_THAT(prompt.anchor, Optional(std::string("t1")));
  auto call = [](const char* event, const char* name, const char* input) {
    return Read(
        AgentKind::kHermes,
        std::string(R"({"hook_event_name":")") + event +
            R"(","session_id":"s","cwd":"/p","tool_name":")" + name +
            R"(","tool_input":)" + input +
            R"(,"extra":{"tool_call_id":"c1","turn_id":"t1","status":"error"}})");
  };
  const HookEvent shell =
      call("pre_tool_call", "terminal", R"({"command":"make","background":true})");
  EXPECT_EQ(shell.tool->reach, ToolReach::kWrites);
  EXPECT_EQ(shell.tool->what, "make");
  EXPECT_TRUE(shell.tool->background);
  EXPECT_THAT(shell.tool->id, Optional(std::string("c1")));
  EXPECT_THAT(call("pre_tool_call", "patch",
                   R"({"mode":"replace","path":"a","old_string":"x","new_string":"y"})")
                  .tool->paths,
              ElementsAre("a"));
  const HookEvent patch = call(
      "post_tool_call", "patch",
      R"({"mode":"patch","patch":"*** Begin Patch\n*** Update File: b\n*** Add File: )"
      R"(c\n*** End Patch"})");
  EXPECT_EQ(patch.kind, EventKind::kToolEnd);
  EXPECT_TRUE(patch.tool->failed);
  EXPECT_THAT(patch.tool->paths, ElementsAre("b", "c"));
  EXPECT_EQ(call("pre_tool_call", "patch", R"({"mode":"patch"})").tool->reach,
            ToolReach::kWrites);
  EXPECT_EQ(Read(AgentKind::kHermes, R"({"hook_event_name":"on_session_end"})").kind,
            EventKind::kTurnEnd)
      << "it comes after every turn";
}

// --- large ones ----------------------------------------------------------------------

TEST(Giant, APayloadUpToTheLimitIsRead) {
  std::string payload =
      R"({"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Edit",)"
      R"("tool_input":{"file_path":"/p/a"},"tool_response":")";
  payload.append(kMaxPayload - payload.size() - 40, 'x');
  payload += R"(","tool_use_id":"t"})";
  ASSERT_LE(payload.size(), kMaxPayload);
  const HookEvent event = Read(AgentKind::kClaude, payload);
  EXPECT_EQ(event.session, "s");
  EXPECT_THAT(event.tool->id, Optional(std::string("t")));
  payload.append(100, ' ');
  EXPECT_FALSE(ParseHook(AgentKind::kClaude, "", payload).ok());
}

TEST(Giant, ManyMembersAndValuesDoNotMatter) {
  std::string payload = R"({"junk":[)";
  for (int i = 0; i < 1'000'000; ++i) payload += "1,";
  payload.back() = ']';
  for (int i = 0; i < 100'000; ++i) payload += ",\"k" + std::to_string(i) + "\":{}";
  payload += R"(,"hook_event_name":"Stop","session_id":"s"})";
  const HookEvent event = Read(AgentKind::kClaude, payload);
  EXPECT_EQ(event.kind, EventKind::kTurnEnd);
  EXPECT_EQ(event.session, "s");
}

TEST(Giant, ACommandOfMegabytesIsOneShortLine) {
  const std::string command(8 << 20, 'y');
  const ToolCall call =
      Call(AgentKind::kClaude, "Bash", R"({"command":")" + command + "\"}");
  EXPECT_EQ(call.what, std::string(kMaxWhat, 'y'));
  const HookEvent event =
      Read(AgentKind::kClaude,
           R"({"hook_event_name":"UserPromptSubmit","prompt":")" + command + "\"}");
  EXPECT_EQ(event.prompt.size(), kMaxPrompt);
}

}  // namespace
}  // namespace belay::test
