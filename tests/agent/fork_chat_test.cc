// The conversation that goes along with a fork of a directory.

#include "agent/fork_chat.h"

#include <gmock/gmock.h>

#include <sstream>

#include "agent/json.h"
#include "agent/transcript.h"
#include "base/sha256.h"
#include "store/batch_writer.h"
#include "support/agent_world.h"

namespace belay::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const AbsPath kTo = AbsPath::Literal("/top/the Other");

struct Row {
  AgentKind agent;
  std::string transcript, expected;  // %: the new id, ^: its first eight
  std::string dir, folder;           // that it comes to
};

class ForkChatTest : public ::testing::Test {
 protected:
  static std::string Dashed(std::string text) {
    for (char& c : text)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
    return text;
  }
  void Put(const std::string& path, const std::string& text) {
    const AbsPath at = AbsPath::Literal(path);
    world.PutAt(at.parent(), path.substr(path.rfind('/') + 1), text);
  }
  // Two turns of a session of that agent.
  void Tell(AgentKind agent, const std::string& path) {
    for (int i = 1; i <= 2; ++i) {
      HookEvent event = world.Event(EventKind::kPrompt, session);
      event.agent = agent;
      event.session = session;
      event.transcript = path;
      event.prompt = "wish " + std::to_string(i);
      if (agent == AgentKind::kClaude) event.anchor = "p" + std::to_string(i);
      world.Tell(event);
      event.kind = EventKind::kTurnEnd;
      world.Tell(event);
    }
  }
  std::string Conversation(AgentKind agent) {
    std::string out;
    const std::string cwd = R"(,"cwd":")" + root + '"';
    if (agent == AgentKind::kGemini)
      out = R"({"sessionId":"s-1","projectHash":")" + Sha256::Of(AsBytes(root)).hex() +
            "\"}\n";
    if (agent == AgentKind::kCodex)
      out = R"({"type":"session_meta","payload":{"id":"s-1")" + cwd + "}}\n";
    if (agent == AgentKind::kCopilot)
      out = R"({"type":"session.start","data":{"sessionId":"s-1")" + cwd +
            R"(},"id":"e0"})"
            "\n";
    for (int i = 1; i <= 2; ++i) {
      const std::string n = std::to_string(i);
      switch (agent) {
        case AgentKind::kClaude:
          out += R"({"type":"user","uuid":"u)" + n + R"(","parentUuid":)" +
                 (i == 1 ? "null" : "\"a1\"") + R"(,"sessionId":"s-1","promptId":"p)" +
                 n + '"' + cwd + R"(,"message":{"role":"user","content":"wish )" + n +
                 "\"}}\n" + R"({"type":"assistant","uuid":"a)" + n +
                 R"(","parentUuid":"u)" + n +
                 R"(","sessionId":"s-1","message":{}})"
                 "\n";
          break;
        case AgentKind::kQwen:
          out += R"({"type":"user","uuid":"u)" + n + R"(","parentUuid":)" +
                 (i == 1 ? "null" : "\"a1\"") + R"(,"sessionId":"s-1")" + cwd +
                 R"(,"message":{"role":"user","parts":[{"text":"wish )" + n +
                 "\"}]}}\n" + R"({"type":"assistant","uuid":"a)" + n +
                 R"(","parentUuid":"u)" + n +
                 R"(","sessionId":"s-1","message":{}})"
                 "\n";
          break;
        case AgentKind::kGemini:
          out += R"({"id":"g)" + n + R"(","type":"user","content":[{"text":"wish )" +
                 n + "\"}]}\n" + R"({"id":"h)" + n +
                 R"(","type":"gemini","content":"in )" + root + "/a\"}\n";
          break;
        case AgentKind::kCodex:
          out +=
              R"({"type":"event_msg","payload":{"type":"task_started","turn_id":"t)" +
              n + "\"}}\n" +
              R"({"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"wish )" +
              n + "\"}]}}\n";
          break;
        default:
          out += R"({"type":"user.message","data":{"content":"wish )" + n +
                 R"("},"id":"e)" + n + "\"}\n";
      }
    }
    return out;
  }
  Result<std::optional<ForkChat>> Plan(std::optional<uint64_t> turn,
                                       const AbsPath& to = kTo) {
    opened = Must(world.world.Open());
    return PlanForkChat(
        *opened.store, *opened.catalog,
        {.session = session, .turn = turn, .from = world.world.project, .to = to});
  }
  static std::string ContentOf(const ChatFile& file) {
    std::string out;
    EXPECT_TRUE(file.content([&out](ByteSpan bytes) {
                      out += AsText(bytes);
                      return Ok();
                    })
                    .ok());
    return out;
  }

  std::string session = "s-1";
  MemFs disk;
  AgentWorld world{disk};
  const std::string root = world.world.project.bytes();
  decltype(Must(world.world.Open())) opened = Must(world.world.Open());
};

TEST_F(ForkChatTest, OfEachAgentLiesWhereItLooksInTheNewDirectory) {
  const std::string old = Dashed(root), now = Dashed(kTo.bytes());
  for (const Row& row :
       {Row{AgentKind::kClaude, "/h/projects/" + old + "/s-1.jsonl",
            "/h/projects/" + now + "/%.jsonl", "/h/projects", now},
        Row{AgentKind::kQwen, "/q/projects/" + old + "/chats/s-1.jsonl",
            "/q/projects/" + now + "/chats/%.jsonl", "/q/projects", now},
        Row{AgentKind::kGemini, "/g/tmp/p/chats/session-1-s.jsonl",
            "/g/tmp/the-other/chats/session-1-^.jsonl", "/g/tmp", "the-other"},
        Row{AgentKind::kCodex, "/c/sessions/rollout-1-s-1.jsonl",
            "/c/sessions/rollout-1-%.jsonl", "/c/sessions", ""},
        Row{AgentKind::kCopilot, "/s/s-1/events.jsonl", "/s/%/events.jsonl", "/s",
            "%"}}) {
    const std::string what(AgentName(row.agent));
    session = "s-" + what;
    Put(row.transcript, Conversation(row.agent));
    if (row.agent == AgentKind::kGemini) Put("/g/tmp/p/.project_root", root + "\n");
    Tell(row.agent, row.transcript);
    auto plan = Plan(2);
    ASSERT_TRUE(plan.ok()) << what << ": " << plan.error().what;
    ASSERT_TRUE(*plan) << what;
    const ChatRecord& record = (*plan)->chat.record;
    auto filled = [&](std::string text) {
      if (const size_t at = text.find('%'); at != std::string::npos)
        text.replace(at, 1, record.forked);
      if (const size_t at = text.find('^'); at != std::string::npos)
        text.replace(at, 1, record.forked.substr(0, 8));
      return text;
    };
    EXPECT_EQ(record.path, filled(row.expected)) << what;
    EXPECT_EQ((*plan)->chat.dir->bytes(), row.dir) << what;
    EXPECT_EQ((*plan)->chat.folder, filled(row.folder)) << what;
    EXPECT_EQ(record.session, session);
    EXPECT_EQ(record.cwd, kTo.bytes());
    EXPECT_EQ(record.inherited, 1u);
    const std::string copy = ContentOf((*plan)->chat.files.back());
    EXPECT_THAT(copy, HasSubstr("wish 1")) << what;
    EXPECT_THAT(copy, Not(HasSubstr("wish 2"))) << what;
    EXPECT_THAT(copy, Not(HasSubstr(root))) << what;
    EXPECT_THAT(copy, HasSubstr(kTo.bytes())) << what;
    if (row.agent == AgentKind::kGemini) {
      EXPECT_THAT(copy, HasSubstr(Sha256::Of(AsBytes(kTo.bytes())).hex()));
      EXPECT_EQ((*plan)->chat.files[0].name, ".project_root");
      EXPECT_EQ(ContentOf((*plan)->chat.files[0]), kTo.bytes());
    }
    // All of it, where nothing was said since.
    auto whole = Plan(std::nullopt);
    ASSERT_TRUE(whole.ok() && *whole) << what;
    EXPECT_THAT(ContentOf((*whole)->chat.files.back()), HasSubstr("wish 2")) << what;
    EXPECT_EQ((*whole)->chat.record.inherited, 2u) << what;
    EXPECT_EQ((*whole)->chat.record.taken, 0u) << what;
    // Nothing, before the first prompt.
    auto none = Plan(1);
    ASSERT_TRUE(none.ok()) << what;
    EXPECT_FALSE(*none) << what;
    EXPECT_EQ(world.At(row.transcript), Conversation(row.agent)) << what;
  }
}

// Mutants: json-names-any-directory, a-dash-for-a-letter.
TEST_F(ForkChatTest, OfADirectoryWithAnOddNameIsOneThatCanBeRead) {
  Put("/h/projects/" + Dashed(root) + "/s-1.jsonl", Conversation(AgentKind::kClaude));
  Tell(AgentKind::kClaude, "/h/projects/" + Dashed(root) + "/s-1.jsonl");
  const std::string odd = "/top/new\nline\t\"\\ \xc3\xa4\xf0\x9f\x98\x80";
  auto plan = Plan(2, Must(AbsPath::Parse(odd)));
  ASSERT_TRUE(plan.ok() && *plan);
  EXPECT_THAT((*plan)->warnings, ::testing::IsEmpty());
  EXPECT_EQ((*plan)->chat.record.path, "/h/projects/-top-new-line-------/" +
                                           (*plan)->chat.record.forked + ".jsonl");
  std::istringstream lines(ContentOf((*plan)->chat.files.back()));
  size_t cwds = 0;
  for (std::string line; std::getline(lines, line);) {
    const Result<Json> json = Json::Parse(line);
    ASSERT_TRUE(json.ok()) << line;
    cwds += Is(json->Get("cwd"), odd) ? 1 : 0;
  }
  EXPECT_EQ(cwds, 1u);
  plan = Plan(2, Must(AbsPath::Parse("/top/bad\xff")));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Errc::kUnsupported);
  EXPECT_THAT(plan.error().what, HasSubstr("not UTF-8"));
}

// As Claude Code named them (2.1.325).
// Mutant: long-names-of-projects-are-whole.
TEST_F(ForkChatTest, OfALongPathIsWhereClaudeCodeShortensIt) {
  Put("/h/projects/" + Dashed(root) + "/s-1.jsonl", Conversation(AgentKind::kClaude));
  Tell(AgentKind::kClaude, "/h/projects/" + Dashed(root) + "/s-1.jsonl");
  const std::string part = std::string(60, 'a') + "/",
                    deep = "/tmp/longc/" + part + part + part;
  std::string wide = "/x/";
  for (int i = 0; i < 70; ++i)
    wide += (i == 35 ? "/" : "") + std::string("\xc3\xa4\xf0\x9f\x98\x80");
  struct Named {
    std::string path, name;
  };
  for (const Named& row :
       {Named{deep + "bbbbbb", Dashed(deep) + "bbbbbb"},
        Named{deep + "bbbbbbb", Dashed(deep) + "bbbbbb-6c7kou"},
        Named{deep + part + "c", Dashed(deep + "aaaaaa") + "-xlx98s"},
        Named{wide, "-x-" + std::string(197, '-') + "-9z64pl"}}) {
    auto plan = Plan(2, Must(AbsPath::Parse(row.path)));
    ASSERT_TRUE(plan.ok() && *plan) << row.path;
    EXPECT_THAT((*plan)->warnings, ::testing::IsEmpty());
    EXPECT_EQ((*plan)->chat.record.path,
              "/h/projects/" + row.name + "/" + (*plan)->chat.record.forked + ".jsonl");
  }
}

TEST_F(ForkChatTest, FromALongPathIsKnownAsClaudeCodeShortensIt) {
  const std::string part = std::string(60, 'a') + "/";
  const std::string cwd = "/tmp/longc/" + part + part + part + "bbbbbbb";
  const std::string at =
      "/h/projects/" + Dashed(cwd).substr(0, 200) + "-6c7kou/s-1.jsonl";
  Put(at, Conversation(AgentKind::kClaude));
  HookEvent event = world.Event(EventKind::kPrompt, session);
  event.agent = AgentKind::kClaude;
  event.transcript = at;
  event.cwd = cwd;
  event.prompt = "wish 1";
  event.anchor = "p1";
  world.Tell(event);
  auto plan = Plan(std::nullopt);
  ASSERT_TRUE(plan.ok() && *plan) << plan.error().what;
  EXPECT_THAT((*plan)->warnings, ::testing::IsEmpty());
}

// Where the name is longer than names can be, too.
TEST_F(ForkChatTest, OfAPathThatNoNameCanHoldLiesBesideTheOriginal) {
  const std::string at = "/q/projects/" + Dashed(root) + "/chats/s-1.jsonl";
  Put(at, Conversation(AgentKind::kQwen));
  Tell(AgentKind::kQwen, at);
  auto plan = Plan(2, Must(AbsPath::Parse("/t/" + std::string(126, 'd') + "/" +
                                          std::string(126, 'e'))));
  ASSERT_TRUE(plan.ok() && *plan) << plan.error().what;
  ASSERT_EQ((*plan)->warnings.size(), 1u);
  EXPECT_THAT((*plan)->warnings[0], HasSubstr("may not find it"));
  EXPECT_EQ((*plan)->chat.record.path, "/q/projects/" + Dashed(root) + "/chats/" +
                                           (*plan)->chat.record.forked + ".jsonl");
}

TEST_F(ForkChatTest, AProjectDirectoryOfAnotherNameIsSaid) {
  const std::string at = "/h/projects/whatever/s-1.jsonl";
  Put(at, Conversation(AgentKind::kClaude));
  Tell(AgentKind::kClaude, at);
  auto plan = Plan(2);
  ASSERT_TRUE(plan.ok() && *plan);
  EXPECT_EQ((*plan)->warnings.size(), 1u);
  EXPECT_EQ((*plan)->chat.record.path,
            "/h/projects/whatever/" + (*plan)->chat.record.forked + ".jsonl");
}

// Mutant: export-of-the-wrong-session.
TEST_F(ForkChatTest, OpencodeExportsTheSessionThatTheMessageWasSaidIn) {
  for (int i = 1; i <= 2; ++i) {
    HookEvent event = world.Event(EventKind::kPrompt, "ses_1");
    event.agent = AgentKind::kOpencode;
    event.prompt = "wish " + std::to_string(i);
    event.anchor = "msg_" + std::to_string(i);
    world.Tell(event);
  }
  auto writer = Must(opened.store->Begin());
  writer->Add(ToRecord(SessionRecord{.session = "ses_2",
                                     .agent = "opencode",
                                     .parent = "ses_1",
                                     .inherited_turns = 2},
                       RecordId(opened.store->random().NewId()), opened.root.id, 5));
  Must(writer->Commit());
  session = "ses_2";
  auto plan = Plan(2);
  ASSERT_TRUE(plan.ok() && *plan && (*plan)->native);
  EXPECT_EQ((*plan)->native->session, "ses_1");
  EXPECT_EQ((*plan)->native->message, "msg_2");
  EXPECT_EQ((*plan)->native->from, std::vector{world.world.project});
  EXPECT_EQ((*plan)->native->to, kTo);
  EXPECT_EQ((*plan)->chat.record.session, "ses_2");
  EXPECT_EQ((*plan)->chat.record.cwd, kTo.bytes());
  EXPECT_EQ((*plan)->chat.record.inherited, 1u);
  EXPECT_TRUE((*plan)->chat.files.empty());
  plan = Plan(std::nullopt);
  ASSERT_TRUE(plan.ok() && *plan && (*plan)->native);
  EXPECT_EQ((*plan)->native->session, "ses_2");
  EXPECT_EQ((*plan)->native->message, "");
  plan = Plan(1);
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(*plan);
}

// Mutant: earlier-paths-stay-in-a-fork.
TEST_F(ForkChatTest, OfADirectoryThatWasMovedHasNoneOfItsPaths) {
  const std::string at = "/h/.claude/projects/" + Dashed(root) + "/s-1.jsonl";
  Tell(AgentKind::kClaude, at);
  std::string text = Conversation(AgentKind::kClaude);
  // Beside it there is one whose name only begins so.
  const std::string beside = R"({"type":"note","of":")" + root + R"(2/a"})" + "\n";
  Put(at, text + beside);
  world.MoveTo(AbsPath::Literal("/top/then"));
  world.MoveTo(AbsPath::Literal("/top/now"));
  auto plan = Plan(std::nullopt);
  ASSERT_TRUE(plan.ok() && *plan);
  EXPECT_EQ((*plan)->chat.record.cwd, kTo.bytes());
  EXPECT_TRUE((*plan)->warnings.empty());
  EXPECT_EQ((*plan)->chat.folder, Dashed(kTo.bytes()));
  const std::string copy = ContentOf((*plan)->chat.files.back());
  EXPECT_THAT(copy, Not(HasSubstr(root + "\"")));
  EXPECT_THAT(copy, HasSubstr(R"("cwd":"/top/the Other")"));
  // Gemini CLI writes a digest of it down.
  session = "s-2";
  Tell(AgentKind::kGemini, "/h/.gemini/tmp/project/chats/session-1-s-2.jsonl");
  Put("/h/.gemini/tmp/project/.project_root", root);
  text = Conversation(AgentKind::kGemini);
  Put("/h/.gemini/tmp/project/chats/session-1-s-2.jsonl", text);
  plan = Plan(std::nullopt);
  ASSERT_TRUE(plan.ok() && *plan);
  const std::string other = ContentOf((*plan)->chat.files.back());
  EXPECT_THAT(other, HasSubstr(Sha256::Of(AsBytes(kTo.bytes())).hex()));
  EXPECT_THAT(other, Not(HasSubstr(root)));
}

// Mutant: symlinks-to-a-fork-stay.
TEST_F(ForkChatTest, OfAnAgentThatCameThroughASymlinkHasNoPathThroughIt) {
  const AbsPath top = world.world.project.parent();
  Must(disk.Symlink(Must(disk.OpenDir(AbsPath::Literal("/top"))), Name::Literal("link"),
                    top.bytes()));
  const std::string through = "/top/link/" + world.world.project.name();
  const std::string at = "/h/.claude/projects/" + Dashed(through) + "/s-1.jsonl";
  HookEvent event = world.Event(EventKind::kPrompt, session);
  event.cwd = through + "/src";
  event.transcript = at;
  event.prompt = "wish";
  event.anchor = "p1";
  world.Tell(event);
  Put(at, R"({"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s-1",)"
          R"("promptId":"p1","cwd":")" +
              through + R"(/src","message":{"role":"user","content":"wish: )" + root +
              "/a\"}}\n");
  auto plan = Plan(std::nullopt);
  ASSERT_TRUE(plan.ok() && *plan) << (plan.ok() ? "none" : plan.error().what);
  const std::string copy = ContentOf((*plan)->chat.files.back());
  EXPECT_THAT(copy, Not(HasSubstr(through)));
  EXPECT_THAT(copy, Not(HasSubstr(root)));
  EXPECT_THAT(copy, HasSubstr(R"("cwd":"/top/the Other/src")"));
  EXPECT_EQ((*plan)->chat.record.cwd, "/top/the Other/src");
}

TEST_F(ForkChatTest, WhereTheAgentWorksInTheFork) {
  const AbsPath from = AbsPath::Literal("/a/b"), to = AbsPath::Literal("/c");
  EXPECT_EQ(CwdInFork("/a/b", from, to), "/c");
  EXPECT_EQ(CwdInFork("/a/b/d/e", from, to), "/c/d/e");
  EXPECT_EQ(CwdInFork("/a/bc", from, to), "/c");
  EXPECT_EQ(CwdInFork("", from, to), "/c");
}

}  // namespace
}  // namespace belay::test
