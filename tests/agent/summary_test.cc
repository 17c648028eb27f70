// Summaries that stand for a part of a conversation: in transcripts of real runs at
// every turn, and what is special. That the agents go on from them: tests/agents.

#include "agent/summary.h"

#include <gmock/gmock.h>

#include <set>

#include "agent/conversation_part.h"
#include "agent/payloads.h"
#include "agent/transcript_lines.h"
#include "base/mem_fs.h"
#include "base/real_fs.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = 1'800'000'000'000;

struct Recording {
  AgentKind agent;
  const char *name, *path;
};
const Recording kRecordings[] = {
    {AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl"},
    {AgentKind::kClaude, "claude-2.1.197.jsonl", "/h/.claude/projects/-p/old.jsonl"},
    {AgentKind::kCodex, "codex.jsonl", "/c/sessions/rollout-old.jsonl"},
    {AgentKind::kGemini, "gemini.jsonl", "/g/chats/session-2026-11-15T01-43-e6.jsonl"},
    {AgentKind::kQwen, "qwen.jsonl", "/q/projects/p/chats/old.jsonl"},
    {AgentKind::kCopilot, "copilot.jsonl", "/s/old/events.jsonl"},
};

class Summarized : public ::testing::Test {
 protected:
  void Put(AgentKind agent, const std::string& path, std::string_view text) {
    request = {.transcript = AbsPath::Literal(path)};
    request.agent = agent;
    auto dir = MakeDirs(fs, request.transcript.parent(), 0755);
    ASSERT_TRUE(dir.ok());
    const Name name = Name::Literal(path.substr(path.rfind('/') + 1));
    ASSERT_TRUE(ReplaceFile(fs, *dir, name, AsBytes(text)).ok());
    auto read = ReadTranscript(fs, agent, request.transcript);
    ASSERT_TRUE(read.ok());
    request.session = read->session;
    for (const TranscriptPrompt& prompt : read->prompts) {
      if (prompt.dead) continue;
      request.point.turns.push_back({.session = read->session,
                                     .turn = request.point.turns.size() + 1,
                                     .prompt = prompt.text,
                                     .anchor = prompt.anchor});
    }
  }
  void Put(const Recording& recording) {
    std::ifstream file(DataDir() + "transcripts/" + recording.name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    Put(recording.agent, recording.path, text);
  }
  Result<ConversationPart> Find(uint64_t from, uint64_t until) {
    auto turn = [&](uint64_t number) {
      return number == 0 ? std::optional<TurnRecord>()
                         : std::optional(request.point.turns.at(number - 1));
    };
    return ConversationPart::Find(fs, random, request, turn(from), turn(until));
  }
  std::string Copy(const ConversationPart& part, const std::string& summary) {
    auto fork = part.Fork(fs, random, summary, kNow);
    EXPECT_TRUE(fork.ok());
    forked = fork->session;
    std::string out;
    EXPECT_TRUE(fork->files.back()
                    .content([&out](ByteSpan bytes) {
                      out += AsText(bytes);
                      return Ok();
                    })
                    .ok());
    EXPECT_LE(out.size(), fork->files.back().size_at_most);
    return out;
  }
  std::string Extract(const ConversationPart& part) {
    SummaryDigest digest("/home/user/project", false);
    EXPECT_TRUE(part.Read(fs, digest).ok());
    return digest.Extract();
  }
  Transcript Read(const std::string& text) {
    MemFs other;
    const Fd root = *other.OpenDir(AbsPath::Literal("/"));
    EXPECT_TRUE(ReplaceFile(other, root, Name::Literal("t"), AsBytes(text)).ok());
    auto read = ReadTranscript(other, request.agent, AbsPath::Literal("/t"));
    EXPECT_TRUE(read.ok() && !read->torn && read->broken == 0);
    return *read;
  }
  std::vector<std::string> Prompts(const std::string& text) {
    std::vector<std::string> out;
    for (const TranscriptPrompt& prompt : Read(text).prompts)
      if (!prompt.dead)
        out.push_back(prompt.text.starts_with("[This stands for")
                          ? "*"
                          : prompt.text.substr(0, 6));
    return out;
  }
  // Every record follows one that is there; lines of Codex are counted without a gap;
  // every call has its answer, but for those that never had one.
  void ExpectWhole(const std::string& text, const std::string& what) {
    std::set<std::string> ids;
    std::optional<uint64_t> ordinal;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      ASSERT_NE(end, std::string::npos) << what;
      const auto json = Json::Parse(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
      ASSERT_TRUE(json.ok()) << what;
      const bool copilot = request.agent == AgentKind::kCopilot;
      if (const auto id = json->Get(copilot ? "id" : "uuid")) {
        const auto parent = json->Get(copilot ? "parentId" : "parentUuid");
        if (parent && parent->is_string()) {
          EXPECT_TRUE(ids.contains(*parent->Text())) << what << ": " << json->raw();
        }
        EXPECT_TRUE(ids.insert(*id->Text()).second) << what << ": " << json->raw();
      }
      if (const auto number = json->Get("ordinal")) {
        if (ordinal) {
          EXPECT_EQ(number->Uint(), *ordinal + 1) << what;
        }
        ordinal = number->Uint();
      }
    }
  }

  MemFs fs;
  SeededRandom random{7};
  ForkRequest request{.transcript = AbsPath::Literal("/none")};
  std::string forked;
};

TEST_F(Summarized, AnyPartOfARecordedConversationIsOneMessageAndItsAnswer) {
  struct Row {
    uint64_t from, until;
    std::vector<std::string> prompts;
  };
  for (const Recording& recording : kRecordings) {
    Put(recording);
    ASSERT_GE(request.point.turns.size(), 3u) << recording.name;
    std::vector<std::string> all;
    for (const TurnRecord& turn : request.point.turns)
      all.push_back(turn.prompt.substr(0, 6));
    const std::vector<std::string> behind(all.begin() + 2, all.end());
    std::vector<std::string> middle = {all[0], "*"};
    middle.insert(middle.end(), behind.begin(), behind.end());
    std::vector<std::string> beginning = {"*"};
    beginning.insert(beginning.end(), behind.begin(), behind.end());
    for (const Row& row : {Row{0, 3, beginning}, Row{1, 3, beginning},
                           Row{2, 3, middle}, Row{2, 0, {all[0], "*"}},
                           Row{3, 0, {all[0], all[1], "*"}}, Row{1, 0, {"*"}}}) {
      const std::string what = recording.name + std::string(" ") +
                               std::to_string(row.from) + "-" +
                               std::to_string(row.until);
      auto part = Find(row.from, row.until);
      ASSERT_TRUE(part.ok()) << what << ": " << part.error().what;
      const std::string copy = Copy(*part, "\"short\"\n\\ \x01 of it");
      EXPECT_EQ(Prompts(copy), row.prompts) << what;
      ExpectWhole(copy, what);
      const Transcript read = Read(copy);
      EXPECT_EQ(read.session, forked) << what;
      EXPECT_THAT(copy, Not(HasSubstr('"' + request.session + '"'))) << what;
      uint64_t live = 0;
      for (const TranscriptMessage& message : read.messages) live += !message.dead;
      EXPECT_EQ(live, part->other_messages + 2) << what;
      EXPECT_EQ(part->first_turn, row.from == 0 ? 1 : row.from) << what;
      // The copy is a conversation like any other: it can be cut at what is in it.
      if (row.until != 0) {
        const auto prompt = std::ranges::find_if(
            read.prompts,
            [](const TranscriptPrompt& one) { return one.text.starts_with("turn 3"); });
        ASSERT_NE(prompt, read.prompts.end()) << what;
      }
    }
  }
}

TEST_F(Summarized, AnExtractTellsPromptsFilesCommandsAndLastAnswers) {
  for (const Recording& recording : kRecordings) {
    Put(recording);
    auto part = Find(0, 3);
    ASSERT_TRUE(part.ok()) << recording.name;
    const std::string text = Extract(*part);
    for (const char* words :
         {"Turn 1, the user asked:\nturn 1: create new.txt and edit a.txt\n",
          "Files changed: new.txt, a.txt\n", "Turn 1 complete.",
          "Turn 2, the user asked:\nturn 2: clean up with the shell\n",
          "Turn 2 complete."})
      EXPECT_THAT(text, HasSubstr(words)) << recording.name;
    // In the recording of Codex the arguments are cut off.
    if (recording.agent != AgentKind::kCodex) {
      EXPECT_THAT(text, HasSubstr("Commands run: rm ")) << recording.name;
    }
    EXPECT_THAT(text, Not(HasSubstr("turn 3"))) << recording.name;
  }
}

TEST_F(Summarized, WhatTheAgentsOwnRewindLeftIsNeitherReadNorKept) {
  Put({AgentKind::kClaude, "claude-rewind.jsonl", "/h/p/old.jsonl"});
  const Transcript before = *ReadTranscript(fs, request.agent, request.transcript);
  const auto dead = std::ranges::find(before.prompts, true, &TranscriptPrompt::dead);
  ASSERT_NE(dead, before.prompts.end());
  auto part = Find(0, request.point.turns.size());
  ASSERT_TRUE(part.ok()) << part.error().what;
  EXPECT_THAT(Extract(*part), Not(HasSubstr(dead->text)));
  const std::string copy = Copy(*part, "short");
  ExpectWhole(copy, "rewound");
  for (const TranscriptPrompt& prompt : Read(copy).prompts) EXPECT_FALSE(prompt.dead);
  // A turn that was left cannot bound a part.
  request.point.turns.push_back(
      {.session = "s", .turn = 9, .prompt = dead->text, .anchor = dead->anchor});
  EXPECT_FALSE(Find(request.point.turns.size(), 0).ok());
}

std::string ClaudeTurn(uint64_t number, const std::string& prompt,
                       const std::string& parent) {
  const std::string n = std::to_string(number);
  return R"({"parentUuid":)" + parent + R"(,"type":"user","uuid":"u)" + n +
         R"(","sessionId":"s-1","promptId":"p)" + n +
         R"(","message":{"role":"user","content":")" + prompt + R"("}})" + "\n" +
         R"({"parentUuid":"u)" + n + R"(","type":"assistant","uuid":"a)" + n +
         R"(","sessionId":"s-1","message":{"role":"assistant","content":[{"type":"text","text":"answer )" +
         n + R"("}]}})" + "\n";
}

TEST_F(Summarized, WhatTheAgentCompactedLaterIsRefused) {
  const std::string one = ClaudeTurn(1, "one", "null"),
                    two = ClaudeTurn(2, "two", "\"a1\"");
  Put(AgentKind::kClaude, "/p/t.jsonl",
      one + two +
          R"({"parentUuid":null,"logicalParentUuid":"a2","type":"system","subtype":"compact_boundary","uuid":"cb"})"
          "\n" +
          ClaudeTurn(3, "three", "\"cb\""));
  auto refused = Find(0, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().what, HasSubstr("compacted"));
  EXPECT_TRUE(Find(0, 3).ok());
  EXPECT_TRUE(Find(2, 0).ok());
}

// Mutants: a-summary-stands-for-what-nobody-read.
TEST_F(Summarized, WhatIsTooLongToBeReadIsRefused) {
  const std::string giant = "{\"x\":\"" + std::string(kLongestLine, 'y') + "\"}\n";
  Put(AgentKind::kClaude, "/p/t.jsonl",
      ClaudeTurn(1, "one", "null") + giant + ClaudeTurn(2, "two", "\"a1\""));
  auto refused = Find(0, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().what, HasSubstr("more than 64 MiB"));
}

TEST_F(Summarized, RecordsBehindThePartHangBelowTheSummary) {
  Put(AgentKind::kClaude, "/p/t.jsonl",
      ClaudeTurn(1, "one", "null") + ClaudeTurn(2, "two", "\"a1\"") +
          ClaudeTurn(3, "three", "\"a2\""));
  auto part = Find(2, 3);
  ASSERT_TRUE(part.ok());
  const std::string copy = Copy(*part, "short");
  EXPECT_THAT(copy, Not(HasSubstr("\"a2\"")));
  EXPECT_EQ(Prompts(copy), (std::vector<std::string>{"one", "*", "three"}));
  ExpectWhole(copy, "middle");
}

TEST_F(Summarized, AConversationOfAnyLengthHasAShortSummary) {
  std::string text, parent = "null";
  for (uint64_t i = 1; i <= 2000; ++i) {
    text += ClaudeTurn(i, "wish " + std::to_string(i) + std::string(3000, 'x'), parent);
    parent = "\"a" + std::to_string(i) + "\"";
  }
  Put(AgentKind::kClaude, "/p/t.jsonl", text);
  auto part = Find(0, 2000);
  ASSERT_TRUE(part.ok());
  const std::string summary = Extract(*part);
  EXPECT_LE(summary.size(), kLongestExtract);
  EXPECT_THAT(summary, HasSubstr("wish 1999x"));
  EXPECT_THAT(summary, HasSubstr("turns are left out here"));
}

TEST(Digest, CallsOfCodexAreTextsInTheirRecords) {
  SummaryDigest digest("/p", true);
  for (
      const char* record :
      {R"({"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make all\"}"}})",
       R"({"type":"response_item","payload":{"type":"local_shell_call","action":{"command":["ls","-l"]}}})",
       R"({"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** Update File: /p/a\n*** End Patch"}})",
       R"({"type":"response_item","payload":{"type":"function_call_output","output":"done"}})",
       R"({"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"<context>"}]}})"})
    ReadSaid(AgentKind::kCodex, *Json::Parse(record), digest);
  const std::string text = digest.Extract() + "\n";
  EXPECT_THAT(text, HasSubstr("Commands run: make all; ls -l\n"));
  EXPECT_THAT(text, HasSubstr("Files changed: a\n"));
  EXPECT_THAT(text, Not(HasSubstr("context")));
  EXPECT_EQ(digest.messages().size(), 4u);
  EXPECT_EQ(digest.messages().back(), "{\"role\":\"tool\",\"text\":\"done\"}\n");
}

TEST(Digest, MessagesForACommandAreBoundedAndTheNewestStay) {
  SummaryDigest digest("/p", true);
  digest.BeginTurn(1);
  for (int i = 0; i < 400; ++i)
    digest.Words(false, std::to_string(i) + " " + std::string(60 << 10, 'x'));
  size_t bytes = 0;
  for (const std::string& line : digest.messages()) bytes += line.size();
  EXPECT_LE(bytes, kMostMessageBytes);
  EXPECT_EQ(digest.messages_left_out() + digest.messages().size(), 400u);
  EXPECT_GT(digest.messages_left_out(), 0u);
  EXPECT_THAT(digest.messages().back(), HasSubstr("\"399 "));
}

class ByCommand : public ::testing::Test {
 protected:
  Result<std::string> Run(const Argv& command, int64_t timeout_ms = 60'000) {
    SummaryDigest digest("/p", true);
    digest.BeginTurn(3);
    digest.Words(true, "a \"wish\"");
    return SummaryByCommand(fs,
                            {.directory = AbsPath::Literal("/"),
                             .environment = {},
                             .exec_path = "/usr/bin:/bin",
                             .timeout_ms = timeout_ms},
                            command,
                            {.session = "s",
                             .agent = "claude",
                             .root = "/p",
                             .first_turn = 3,
                             .last_turn = 3},
                            digest);
  }
  // Why there is none; empty: there is one.
  std::string Why(const Argv& command, int64_t timeout_ms = 60'000) {
    auto said = Run(command, timeout_ms);
    return said.ok() ? "" : said.error().what;
  }
  RealFs fs;
};

TEST_F(ByCommand, TheMessagesAreOnItsInput) {
  auto said = Run({"/bin/cat"});
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(*said, R"({"hook":"summarize","session":"s","agent":"claude","root":"/p",)"
                   R"("first_turn":3,"last_turn":3,"messages":1,"messages_left_out":0})"
                   "\n"
                   R"({"role":"user","turn":3,"text":"a \"wish\""})");
}

TEST_F(ByCommand, OneThatFailsIsLateOrSaysNothingMakesNone) {
  EXPECT_THAT(Why({"/bin/sh", "-c", "echo half; exit 3"}), HasSubstr("exited with 3"));
  EXPECT_THAT(Why({"/bin/sh", "-c", "echo half; exec sleep 600"}, 100),
              HasSubstr("after 100 ms"));
  EXPECT_THAT(Why({"/bin/true"}), HasSubstr("answered nothing"));
  EXPECT_THAT(Why({"/bin/echo", " "}), HasSubstr("answered nothing"));
  EXPECT_THAT(Why({"/usr/bin/printf", "\\377"}), HasSubstr("no text"));
  EXPECT_FALSE(Run({"no-such-program-anywhere"}).ok());
}

}  // namespace
}  // namespace belay::test
