// What continues a conversation from before a turn, of real transcripts.

#include "agent/conversation.h"

#include <gmock/gmock.h>

#include "agent/payloads.h"
#include "base/mem_fs.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Conversation : public ::testing::Test {
 protected:
  void Put(const AbsPath& path, std::string_view text, uint32_t mode = 0600) {
    auto dir = MakeDirs(fs, path.parent(), 0755);
    ASSERT_TRUE(dir.ok());
    const Name name = Name::Literal(path.bytes().substr(path.bytes().rfind('/') + 1));
    ASSERT_TRUE(ReplaceFile(fs, *dir, name, AsBytes(text)).ok());
    auto file = fs.Open(*dir, name, {.access = OpenMode::Access::kPath});
    ASSERT_TRUE(file.ok() && fs.SetMode(*file, mode).ok());
  }
  // A transcript of a real run, where the agent keeps it.
  void Recorded(AgentKind agent, const std::string& name, const std::string& path) {
    std::ifstream file(DataDir() + "transcripts/" + name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    request.agent = agent;
    request.transcript = AbsPath::Literal(path);
    Put(request.transcript, text, 0640);
    auto read = ReadTranscript(fs, agent, request.transcript);
    ASSERT_TRUE(read.ok());
    request.session = read->session;
    for (const TranscriptPrompt& prompt : read->prompts)
      request.point.turns.push_back({.session = read->session,
                                     .turn = prompt.index + 1,
                                     .prompt = prompt.text,
                                     .anchor = prompt.anchor});
  }
  ConversationFork Fork(uint64_t turn) {
    request.point.turn = request.point.turns.at(turn - 1);
    auto fork = PlanConversationFork(fs, random, request);
    EXPECT_TRUE(fork.ok()) << (fork.ok() ? "" : fork.error().what);
    return fork.ok() ? std::move(*fork) : ConversationFork{};
  }
  static std::string ContentOf(const ConversationFile& file) {
    std::string out;
    EXPECT_TRUE(file.content([&out](ByteSpan bytes) {
                      out += AsText(bytes);
                      return Ok();
                    })
                    .ok());
    EXPECT_LE(out.size(), file.size_at_most);
    return out;
  }

  MemFs fs;
  SeededRandom random{7};
  ForkRequest request{.transcript = AbsPath::Literal("/none")};
};

TEST_F(Conversation, OfClaudeCodeLiesBesideTheOldOne) {
  Recorded(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const ConversationFork fork = Fork(2);
  EXPECT_EQ(fork.prompt, kTwo);
  EXPECT_EQ(fork.parent, "11111111-2222-4333-8444-555555555555");
  EXPECT_EQ(fork.kept_turns, 1u);
  ASSERT_EQ(fork.files.size(), 1u);
  EXPECT_EQ(fork.files[0].path.bytes(),
            "/h/.claude/projects/-p/" + fork.session + ".jsonl");
  EXPECT_EQ(fork.files[0].mode, 0640u);
  const std::string copy = ContentOf(fork.files[0]);
  EXPECT_THAT(copy, HasSubstr(kOne));
  EXPECT_THAT(copy, Not(HasSubstr(kTwo)));
  EXPECT_THAT(copy, HasSubstr("\"sessionId\":\"" + fork.session + "\""));
  EXPECT_THAT(copy, Not(HasSubstr(fork.parent)));
  EXPECT_THAT(ResumeCommand(fork.agent, fork.session),
              ElementsAre("claude", "--resume", fork.session));
}

TEST_F(Conversation, OfEachAgentLiesWhereItLooks) {
  struct Row {
    AgentKind agent;
    const char *name, *path, *expected;  // %: the id, ^: its first eight
  };
  for (const Row& row :
       {Row{AgentKind::kCodex, "codex.jsonl",
            "/c/sessions/2026/11/15/"
            "rollout-2026-11-15T01-00-00-01a1dcc8-73cd-71b1-bbae-68433bc2b49f.jsonl",
            "/c/sessions/2026/11/15/rollout-2026-11-15T01-00-00-%.jsonl"},
        Row{AgentKind::kGemini, "gemini.jsonl",
            "/g/tmp/p/chats/session-2026-11-15T01-43-e66036aa.jsonl",
            "/g/tmp/p/chats/session-2026-11-15T01-43-^.jsonl"},
        Row{AgentKind::kQwen, "qwen.jsonl", "/q/projects/p/chats/old.jsonl",
            "/q/projects/p/chats/%.jsonl"},
        Row{AgentKind::kCopilot, "copilot.jsonl", "/s/old/events.jsonl",
            "/s/%/events.jsonl"}}) {
    request = {.transcript = AbsPath::Literal("/none")};
    Recorded(row.agent, row.name, row.path);
    const ConversationFork fork = Fork(3);
    ASSERT_EQ(fork.files.size(), 1u) << row.name;
    std::string expected = row.expected;
    if (const size_t at = expected.find('%'); at != std::string::npos)
      expected.replace(at, 1, fork.session);
    if (const size_t at = expected.find('^'); at != std::string::npos)
      expected.replace(at, 1, fork.session.substr(0, 8));
    EXPECT_EQ(fork.files[0].path.bytes(), expected);
    EXPECT_EQ(fork.prompt, kThree);
    EXPECT_EQ(fork.kept_turns, 2u) << row.name;
    EXPECT_GT(fork.taken_messages, 0u);
    const std::string copy = ContentOf(fork.files[0]);
    EXPECT_THAT(copy, HasSubstr(kTwo));
    EXPECT_THAT(copy, Not(HasSubstr(kThree)));
    EXPECT_THAT(copy, Not(HasSubstr("\"" + request.session + "\"")));
    // The same prompt by its words, when the hooks told no id.
    for (TurnRecord& turn : request.point.turns) turn.anchor.reset();
    EXPECT_EQ(ContentOf(Fork(3).files[0]).size(), copy.size()) << row.name;
  }
}

TEST_F(Conversation, OfCopilotHasItsWorkspace) {
  Recorded(AgentKind::kCopilot, "copilot.jsonl", "/s/old/events.jsonl");
  Put(AbsPath::Literal("/s/old/workspace.yaml"),
      "id: " + request.session + "\ncwd: /home/user/project\n", 0644);
  request.moved = ForkRequest::Moved{.from = {AbsPath::Literal("/home/user/project")},
                                     .to = AbsPath::Literal("/fork")};
  const ConversationFork fork = Fork(2);
  ASSERT_EQ(fork.files.size(), 2u);
  EXPECT_EQ(fork.files[0].path.bytes(), "/s/" + fork.session + "/workspace.yaml");
  EXPECT_EQ(ContentOf(fork.files[0]), "id: " + fork.session + "\ncwd: /fork\n");
  EXPECT_THAT(ContentOf(fork.files[1]), Not(HasSubstr("\"/home/user/project")));
  EXPECT_THAT(ContentOf(fork.files[1]), HasSubstr("\"path\":\"/fork/new.txt\""));
}

// It may be an image alone: that nothing was kept of it is a setting, or is not.
TEST_F(Conversation, APromptWithoutWordsIsCalledThat) {
  Recorded(AgentKind::kGemini, "gemini.jsonl", "/g/tmp/p/chats/session-1-1.jsonl");
  request.point.turn =
      TurnRecord{.session = request.session, .turn = 2, .prompt = " \n"};
  request.point.turns[1] = *request.point.turn;
  const auto fork = PlanConversationFork(fs, random, request);
  ASSERT_FALSE(fork.ok());
  EXPECT_THAT(fork.error().what, HasSubstr("no id of it was told"));
  EXPECT_THAT(fork.error().what, HasSubstr("the prompt has none, or"));
  EXPECT_THAT(fork.error().hint, HasSubstr("--to ID"));
}

TEST_F(Conversation, WhatIsInThePlaceOfAWorkspaceIsNamed) {
  Recorded(AgentKind::kCopilot, "copilot.jsonl", "/s/old/events.jsonl");
  ASSERT_TRUE(MakeDirs(fs, AbsPath::Literal("/s/old/workspace.yaml"), 0755).ok());
  request.point.turn = request.point.turns.at(1);
  const auto fork = PlanConversationFork(fs, random, request);
  ASSERT_FALSE(fork.ok());
  EXPECT_EQ(fork.error().what, "/s/old/workspace.yaml is a directory");
}

TEST_F(Conversation, TheSamePromptTwiceIsTwoTurns) {
  std::string lines;
  for (const char* id : {"1", "2", "3"})
    lines += std::string(R"({"type":"user.message","id":")") + id +
             R"(","data":{"content":"go on"}})" + "\n";
  request = {.agent = AgentKind::kCopilot,
             .session = "s",
             .transcript = AbsPath::Literal("/s/s/events.jsonl")};
  Put(request.transcript, lines);
  for (uint64_t turn : {1, 2, 3})
    request.point.turns.push_back({.session = "s", .turn = turn, .prompt = "go on"});
  EXPECT_EQ(Fork(1).kept_turns, 0u);
  EXPECT_EQ(Fork(2).kept_turns, 1u);
  EXPECT_EQ(Fork(3).kept_turns, 2u);
}

// What FindTurn says of each: the number of turns that are kept, "-" when it is not
// written down, "?" when nobody can tell.
// Mutant: words-count-beside-ids, the-last-of-the-same-words.
TEST_F(Conversation, ATurnIsAPromptOnlyWhenNoOtherCanBe) {
  struct Row {
    const char* why;
    std::vector<std::string> said;   // prompts of the file: "id:words"
    std::vector<std::string> turns;  // of the log
    std::string expected;
  };
  for (const Row& row : {
           Row{"the last is not written down",
               {"1:a", "2:b"},
               {"1:a", "2:b", "3:a"},
               "01-"},
           Row{"nor is it without ids", {":a", ":b"}, {":a", ":b", ":a"}, "01-"},
           Row{"one of two is not written down", {":a"}, {":a", ":a"}, "??"},
           Row{"ids tell which", {"2:a"}, {"1:a", "2:a"}, "-0"},
           Row{"before anybody told", {":a", ":a", ":b", ":a"}, {":b", ":a"}, "23"},
           Row{"which was told nobody knows", {":a", ":a"}, {":a"}, "?"},
           Row{"what was copied has no ids",
               {":a", ":b", "3:a"},
               {"1:a", "2:b", "3:a"},
               "012"},
           Row{"the second is missing",
               {":a", ":b", ":a"},
               {":a", ":x", ":b", ":a"},
               "0-12"},
       }) {
    std::string lines, parent = "null";
    for (size_t i = 0; i < row.said.size(); ++i) {
      const size_t colon = row.said[i].find(':');
      const std::string id = row.said[i].substr(0, colon);
      const std::string uuid = "\"u" + std::to_string(i) + "\"";
      lines += R"({"type":"user","parentUuid":)" + parent + R"(,"uuid":)" + uuid +
               (id.empty() ? "" : R"(,"promptId":"p)" + id + "\"") +
               R"(,"sessionId":"s","message":{"role":"user","content":")" +
               row.said[i].substr(colon + 1) + "\"}}\n";
      parent = uuid;
    }
    request = {.agent = AgentKind::kClaude,
               .session = "s",
               .transcript = AbsPath::Literal("/s/s.jsonl")};
    Put(request.transcript, lines);
    for (const std::string& turn : row.turns) {
      TurnRecord one{.session = "s",
                     .turn = request.point.turns.size() + 1,
                     .prompt = turn.substr(turn.find(':') + 1)};
      if (turn[0] != ':') one.anchor = "p" + turn.substr(0, 1);
      request.point.turns.push_back(one);
    }
    std::string got;
    for (const TurnRecord& turn : request.point.turns) {
      request.point.turn = turn;
      const auto fork = PlanConversationFork(fs, random, request);
      got += fork.ok() ? std::to_string(fork->kept_turns)
             : fork.error().what.find("not certain") != std::string::npos ? "?"
                                                                          : "-";
    }
    EXPECT_EQ(got, row.expected) << row.why;
  }
}

// By its id, where nobody told of it and the next has the same words.
TEST_F(Conversation, APromptThatNobodyToldOfIsNoTurn) {
  Recorded(AgentKind::kClaude, "claude.jsonl", "/p/old.jsonl");
  request.point.turns.erase(request.point.turns.begin());
  for (uint64_t i = 0; i < request.point.turns.size(); ++i) {
    request.point.turns[i].turn = i + 1;
    request.point.turns[i].prompt = kOne;
  }
  auto read = *ReadTranscript(fs, request.agent, request.transcript);
  request.point.message = read.prompts[0].record;
  auto fork = PlanConversationFork(fs, random, request);
  ASSERT_TRUE(fork.ok()) << fork.error().what;
  EXPECT_EQ(fork->prompt, kOne);
  EXPECT_EQ(fork->turn, 1u) << "the first that goes";
  EXPECT_EQ(fork->inherited, 0u);
  EXPECT_FALSE(fork->recorded);
}

// Mutant: what-comes-back-is-not-counted.
TEST_F(Conversation, WhatComesBackFromALeftBranchIsCounted) {
  std::string lines;
  const auto said = [&](const char* id, const char* parent) {
    lines +=
        std::string(R"({"type":"user","parentUuid":)") + parent + R"(,"uuid":")" + id +
        R"(","promptId":"p)" + id +
        R"(","sessionId":"11111111-2222-4333-8444-555555555555","message":{"role":"user","content":"go on"}})" +
        "\n";
  };
  said("1", "null");
  said("2", "\"1\"");
  said("3", "\"2\"");
  said("4", "null");  // after the agent's own rewind to the first
  request = {.agent = AgentKind::kClaude,
             .session = "11111111-2222-4333-8444-555555555555",
             .transcript = AbsPath::Literal("/s/s.jsonl")};
  Put(request.transcript, lines);
  for (uint64_t turn : {1, 2, 3, 4})
    request.point.turns.push_back({.session = "s",
                                   .turn = turn,
                                   .prompt = "go on",
                                   .anchor = "p" + std::to_string(turn)});
  const ConversationFork fork = Fork(3);
  EXPECT_EQ(fork.kept_messages, 2u);
  EXPECT_EQ(fork.kept_turns, 2u);
  EXPECT_EQ(fork.taken_messages, 1u);
  EXPECT_THAT(ContentOf(fork.files.at(0)), HasSubstr("\"p2\""));
}

TEST_F(Conversation, APromptReadsAsItsCopyHasIt) {
  const std::vector<AbsPath> from = {AbsPath::Literal("/src/p")};
  const AbsPath to = AbsPath::Literal("/alt");
  EXPECT_EQ(InForkedDirectory("edit /src/p/a, not /src/p-2, \"/src/p\"\n", from, to),
            "edit /alt/a, not /src/p-2, \"/alt\"\n");
  request = {.agent = AgentKind::kGemini,
             .session = "s",
             .transcript = AbsPath::Literal("/g/tmp/p/chats/session-1-s.jsonl")};
  const std::string longer = "/src/p/x " + std::string(5000, 'y');
  std::string lines = "{\"sessionId\":\"s\"}\n";
  int id = 0;
  for (const std::string& text : {std::string("first"), std::string("edit /alt/a"),
                                  InForkedDirectory(longer, from, to)})
    lines += R"({"id":"m)" + std::to_string(++id) +
             R"(","type":"user","content":[{"text":")" + text + "\"}]}\n";
  Put(request.transcript, lines);
  for (const std::string& text :
       {std::string("first"), std::string("edit /src/p/a"), longer.substr(0, 4096)}) {
    request.point.turns.push_back(
        {.session = "s", .turn = request.point.turns.size() + 1, .prompt = text});
    std::string there = InForkedDirectory(text, from, to);
    if (text.size() == 4096) there.resize(there.size() - 10);
    request.point.read_in.push_back({there});
  }
  EXPECT_EQ(Fork(2).kept_turns, 1u);
  EXPECT_EQ(Fork(3).kept_turns, 2u);
  request.point.read_in.clear();
  request.point.turn = request.point.turns[1];
  EXPECT_FALSE(PlanConversationFork(fs, random, request).ok());
}

TEST_F(Conversation, BeforeAMessageOfTheAgent) {
  Recorded(AgentKind::kClaude, "claude.jsonl", "/p/old.jsonl");
  auto read = *ReadTranscript(fs, request.agent, request.transcript);
  request.point.message = read.messages.at(9).id;
  auto fork = PlanConversationFork(fs, random, request);
  ASSERT_TRUE(fork.ok()) << fork.error().what;
  EXPECT_EQ(fork->prompt, "");
  EXPECT_EQ(fork->kept_messages, 9u);
  EXPECT_EQ(fork->kept_messages + fork->taken_messages, read.messages.size());
}

TEST_F(Conversation, WhatCannotBeDoneIsSaid) {
  for (AgentKind agent : {AgentKind::kReasonix, AgentKind::kCline, AgentKind::kCrush,
                          AgentKind::kGeneric})
    EXPECT_EQ(CheckConversation(agent).error().code, Errc::kUnsupported);
  Recorded(AgentKind::kClaude, "claude.jsonl", "/p/old.jsonl");
  request.point.turn = {.session = "s", .turn = 9, .prompt = "never said"};
  EXPECT_THAT(PlanConversationFork(fs, random, request).error().what,
              HasSubstr("has no turn 9: never said"));
  request.point.message = "none";
  EXPECT_EQ(PlanConversationFork(fs, random, request).error().code, Errc::kNotFound);
}

TEST_F(Conversation, NewIdsAreUuids) {
  EXPECT_THAT(NewUuid(random),
              ::testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                                      "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(NewUuid(random), NewUuid(random));
}

}  // namespace
}  // namespace belay::test
