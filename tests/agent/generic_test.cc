// Generic events: the schema of docs/hooks.md.

#include "agent/payloads.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

HookEvent Read(std::string_view payload, std::string_view given = "") {
  auto event = ParseHook(AgentKind::kGeneric, given, payload);
  EXPECT_TRUE(event.ok()) << payload;
  return event.ok() ? *event : HookEvent{};
}

TEST(Generic, ASessionBegins) {
  const HookEvent event = Read(
      R"({"event":"session.begin","host":"acme","session":"s1","parent_session":"s0",)"
      R"("cwd":"/p","workspaces":["/p","/q"],"transcript":"/t.jsonl","source":"resume",)"
      R"("meta":{"task":"T-1","n":1.50,"ok":true,"none":null,"list":[]}})");
  EXPECT_EQ(event.agent, AgentKind::kGeneric);
  EXPECT_EQ(event.kind, EventKind::kSessionStart);
  EXPECT_EQ(event.host, "acme");
  EXPECT_EQ(event.session, "s1");
  EXPECT_THAT(event.parent_session, Optional(std::string("s0")));
  EXPECT_EQ(event.cwd, "/p");
  EXPECT_THAT(event.workspaces, ElementsAre("/p", "/q"));
  EXPECT_THAT(event.transcript, Optional(std::string("/t.jsonl")));
  EXPECT_EQ(event.source, "resume");
  EXPECT_THAT(event.meta,
              ElementsAre(Pair("task", "T-1"), Pair("n", "1.50"), Pair("ok", "true")));
}

// Mutant: directories-have-one-spelling.
TEST(Generic, ADirectoryIsTheSameHoweverItIsWritten) {
  for (const std::string text : {"/p", "/p/", "/p//", "//p", "/./p/.", "/p/src/.."}) {
    EXPECT_EQ(Read(R"({"event":"turn.begin","cwd":")" + text + R"("})").cwd, "/p");
    EXPECT_THAT(
        Read(R"({"event":"turn.begin","workspaces":[")" + text + R"("]})").workspaces,
        ElementsAre("/p"));
    auto claude = ParseHook(AgentKind::kClaude, "",
                            R"({"hook_event_name":"Stop","cwd":")" + text + R"("})");
    EXPECT_EQ(claude->cwd, "/p");
    auto opencode =
        ParseHook(AgentKind::kOpencode, "session.idle",
                  R"({"directory":")" + text + R"(","worktree":")" + text + R"("})");
    EXPECT_EQ(opencode->cwd, "/p");
    EXPECT_THAT(opencode->workspaces, ElementsAre("/p"));
  }
  EXPECT_EQ(Read(R"({"event":"turn.begin","cwd":"/../.."})").cwd, "/");
  EXPECT_EQ(Read(R"({"event":"turn.begin","cwd":"src/"})").cwd, "src/");
  const std::string long_name(300, 'x');
  EXPECT_EQ(Read(R"({"event":"turn.begin","cwd":"/p/)" + long_name + R"("})").cwd, "");
}

TEST(Generic, ATurnBeginsAndEnds) {
  const HookEvent begin =
      Read(R"({"event":"turn.begin","session":"s","turn":"t7","prompt":"fix it",)"
           R"("message":{"id":"m9","index":12}})");
  EXPECT_EQ(begin.kind, EventKind::kPrompt);
  EXPECT_TRUE(begin.human);
  EXPECT_EQ(begin.prompt, "fix it");
  EXPECT_THAT(begin.anchor, Optional(std::string("t7")));
  EXPECT_THAT(begin.message_id, Optional(std::string("m9")));
  EXPECT_THAT(begin.message_index, Optional(12u));
  EXPECT_THAT(Read(R"({"event":"turn.begin","message":{"id":"m9"}})").anchor,
              Optional(std::string("m9")));
  EXPECT_FALSE(Read(R"({"event":"turn.begin","human":false})").human);
  const HookEvent end = Read(
      R"({"event":"turn.end","answer":"done","tasks":{"ended":["a"],"running":["b"]}})");
  EXPECT_EQ(end.kind, EventKind::kTurnEnd);
  EXPECT_EQ(end.last_answer, "done");
  EXPECT_THAT(end.ended_tasks, ElementsAre("a"));
  EXPECT_THAT(end.running_tasks, Optional(ElementsAre("b")));
  EXPECT_FALSE(Read(R"({"event":"turn.end","tasks":{"ended":["a"]}})").running_tasks);
}

TEST(Generic, ACallThatOnlyReadsMayEndTasks) {
  auto call = [](const std::string& event, const std::string& tasks) {
    return Read(R"({"event":")" + event +
                R"(","session":"s","tool":{"name":"kill","reach":"reads"})" + tasks +
                "}");
  };
  const HookEvent end = call("tool.end", R"(,"tasks":{"ended":["a"]})");
  EXPECT_EQ(end.kind, EventKind::kTaskEnd);
  EXPECT_THAT(end.ended_tasks, ElementsAre("a"));
  EXPECT_EQ(call("tool.end", "").kind, EventKind::kToolEnd);
  EXPECT_EQ(call("tool.begin", R"(,"tasks":{"ended":["a"]})").kind,
            EventKind::kToolBegin);
}

ToolCall Tool(const std::string& tool) {
  const HookEvent event =
      Read(R"({"event":"tool.begin","cwd":"/p","tool":)" + tool + "}");
  EXPECT_EQ(event.kind, EventKind::kToolBegin);
  EXPECT_TRUE(event.tool) << tool;
  return event.tool.value_or(ToolCall{.name = ""});
}

TEST(Generic, AToolSaysWhatItReaches) {
  EXPECT_EQ(Tool(R"({"name":"x"})").reach, ToolReach::kWrites);
  EXPECT_EQ(Tool(R"({"name":"x","reach":"reads"})").reach, ToolReach::kReads);
  EXPECT_EQ(Tool(R"({"name":"x","reach":"what"})").reach, ToolReach::kWrites);
  const ToolCall edit =
      Tool(R"({"name":"edit","id":"c1","reach":"paths","paths":["/p/a","b"]})");
  EXPECT_EQ(edit.reach, ToolReach::kPaths);
  EXPECT_THAT(edit.paths, ElementsAre("/p/a", "b"));
  EXPECT_EQ(edit.what, "a");
  EXPECT_THAT(edit.id, Optional(std::string("c1")));
  // A hint is no promise.
  EXPECT_EQ(Tool(R"({"name":"x","paths":["a"]})").reach, ToolReach::kWrites);
  for (const char* paths : {"[]", "7", R"(["a",7])", R"([""])", R"([{"bytes":"!"}])"})
    EXPECT_EQ(Tool(std::string(R"({"name":"x","reach":"paths","paths":)") + paths + "}")
                  .reach,
              ToolReach::kWrites)
        << paths;
  EXPECT_EQ(Tool("7").reach, ToolReach::kWrites);
}

TEST(Generic, APathMayBeBytes) {
  EXPECT_THAT(
      Tool(R"({"name":"x","reach":"paths","paths":[{"bytes":"L3Av/2E="}]})").paths,
      ElementsAre("/p/\xFF"
                  "a"));
}

TEST(Generic, MorePathsThanAnybodyEditsMayBeAnything) {
  std::string paths;
  for (int i = 0; i < 5000; ++i) paths += "\"f" + std::to_string(i) + "\",";
  paths.pop_back();
  EXPECT_EQ(Tool(R"({"name":"x","reach":"paths","paths":[)" + paths + "]}").reach,
            ToolReach::kWrites);
}

TEST(Generic, ACallEnds) {
  const HookEvent event =
      Read(R"({"event":"tool.end","tool":{"name":"sh","background":true,"task":"t",)"
           R"("failed":true,"what":"make\nall","input":{"cmd":"make"}}})");
  EXPECT_EQ(event.kind, EventKind::kToolEnd);
  EXPECT_TRUE(event.tool->background);
  EXPECT_TRUE(event.tool->failed);
  EXPECT_THAT(event.tool->task, Optional(std::string("t")));
  EXPECT_EQ(event.tool->what, "make all");
}

TEST(Generic, TheSameInputHasTheSameFingerprint) {
  const std::string one = Tool(R"({"name":"sh","input":{"cmd":"a"}})").fingerprint;
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(one,
            Tool(R"({"input" : { "cmd" : "a" },"id":"9","name":"sh"})").fingerprint);
  EXPECT_NE(one, Tool(R"({"name":"sh","input":{"cmd":"b"}})").fingerprint);
  EXPECT_NE(one, Tool(R"({"name":"zsh","input":{"cmd":"a"}})").fingerprint);
  EXPECT_NE(Tool(R"({"name":"e","paths":["a"]})").fingerprint,
            Tool(R"({"name":"e","paths":["b"]})").fingerprint);
}

TEST(Generic, CarriesMessages) {
  const HookEvent event =
      Read(R"({"event":"message","messages":[{"role":"user","id":"m1","index":3,)"
           R"("text":"hi"},{"role":"assistant","text":7}]})");
  EXPECT_EQ(event.kind, EventKind::kOther);
  ASSERT_EQ(event.messages.size(), 2u);
  EXPECT_EQ(event.messages[0].role, "user");
  EXPECT_EQ(event.messages[0].id, "m1");
  EXPECT_THAT(event.messages[0].index, Optional(3u));
  EXPECT_EQ(event.messages[0].text, "hi");
  EXPECT_EQ(event.messages[1].text, "");
}

TEST(Generic, TheEventMayBeGivenByTheCommand) {
  EXPECT_EQ(Read(R"({"session":"s"})", "turn.end").kind, EventKind::kTurnEnd);
  EXPECT_EQ(Read(R"({"event":"compact"})", "turn.end").kind, EventKind::kCompact);
  EXPECT_EQ(Read(R"({"event":"subagent.end","subagent":{"id":"a","type":"T"}})").kind,
            EventKind::kSubagentEnd);
  EXPECT_THAT(Read(R"({"subagent":"a"})").subagent, Optional(std::string("a")));
}

TEST(Generic, WhatIsNoObjectIsRefused) {
  for (std::string_view payload :
       {"", "[]", "7", "\"x\"", "null", "{", "{}x", "{\"a\":\x80}"}) {
    auto event = ParseHook(AgentKind::kGeneric, "", payload);
    ASSERT_FALSE(event.ok()) << payload;
    EXPECT_EQ(event.error().code, Errc::kInvalid);
  }
}

TEST(Generic, LimitsHold) {
  const std::string long_text(100'000, 'x');
  const HookEvent event =
      Read(R"({"event":"turn.begin","session":")" + long_text + R"(","prompt":")" +
           long_text + R"(","meta":{"k":")" + long_text + R"("}})");
  EXPECT_EQ(event.session, "");
  EXPECT_EQ(event.prompt.size(), kMaxPrompt);
  ASSERT_EQ(event.meta.size(), 1u);
  EXPECT_EQ(event.meta[0].second.size(), 4096u);
}

TEST(Agents, HaveNamesThatLeadBack) {
  for (AgentKind agent : kAllAgents) EXPECT_EQ(AgentNamed(AgentName(agent)), agent);
  EXPECT_EQ(AgentNamed("Claude"), std::nullopt);
  EXPECT_EQ(AgentNamed(""), std::nullopt);
}

// docs/hooks.md has the table.
TEST(Agents, HaveTheTraitsThatWereSeenInRuns) {
  std::string serial, context, blocked;
  for (AgentKind agent : kAllAgents) {
    const AgentTraits traits = TraitsOf(agent);
    const std::string name = std::string(AgentName(agent)) + " ";
    if (traits.serial_calls) serial += name;
    if (traits.output_is_context) context += name;
    if (traits.prompts_can_be_blocked) blocked += name;
  }
  EXPECT_EQ(serial, "claude qwen reasonix crush ");
  EXPECT_EQ(context, "claude codex qwen ");
  EXPECT_EQ(blocked, "claude codex gemini reasonix ");
}

}  // namespace
}  // namespace belay::test
