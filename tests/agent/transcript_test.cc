// Transcripts: those of real runs, and what could go wrong with one.

#include "agent/transcript.h"

#include <gmock/gmock.h>

#include "agent/payloads.h"
#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "base/real_fs.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Transcript RecordedOf(AgentKind agent, const std::string& name) {
  RealFs fs;
  auto read =
      ReadTranscript(fs, agent, AbsPath::Literal(DataDir() + "transcripts/" + name));
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().what);
  return read.ok() ? std::move(*read) : Transcript{};
}

class TranscriptFile : public ::testing::Test {
 protected:
  TranscriptFile() : root(*fs.OpenDir(AbsPath::Literal("/"))) {}

  void Write(std::string_view text) {
    ASSERT_TRUE(ReplaceFile(fs, root, Name::Literal("t"), AsBytes(text)).ok());
  }
  Transcript Read(AgentKind agent, std::string_view text) {
    Write(text);
    auto read = ReadTranscript(fs, agent, AbsPath::Literal("/t"));
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().what);
    return read.ok() ? std::move(*read) : Transcript{};
  }
  MemFs fs;
  Fd root;
};

// "text" of those that live, "(text)" of those that are dead.
std::vector<std::string> Prompts(const Transcript& transcript) {
  std::vector<std::string> texts;
  for (const TranscriptPrompt& prompt : transcript.prompts)
    texts.push_back(prompt.dead ? "(" + prompt.text + ")" : prompt.text);
  return texts;
}

std::vector<std::string> Anchors(const Transcript& transcript) {
  std::vector<std::string> anchors;
  for (const TranscriptPrompt& prompt : transcript.prompts)
    anchors.push_back(prompt.anchor);
  return anchors;
}

// "user 0: text" and so on, without the results of tools.
std::vector<std::string> Said(const Transcript& transcript) {
  std::vector<std::string> texts;
  for (const TranscriptMessage& message : transcript.messages) {
    if (message.role == "tool") continue;
    const std::string turn = message.prompt ? std::to_string(*message.prompt) : "-";
    texts.push_back(message.role + " " + turn + (message.dead ? " (dead): " : ": ") +
                    message.text);
  }
  return texts;
}

TEST(RecordedTranscript, OfClaudeCode) {
  const Transcript transcript = RecordedOf(AgentKind::kClaude, "claude.jsonl");
  EXPECT_EQ(transcript.session, "11111111-2222-4333-8444-555555555555");
  EXPECT_THAT(Prompts(transcript), ElementsAre(kOne, kTwo, kThree));
  // The same ids as the hooks tell.
  EXPECT_THAT(Anchors(transcript), ElementsAre("5fa29307-aabe-4316-aa1f-39c86b03c667",
                                               "88d45cde-084e-4458-8a21-04a787ef192b",
                                               "ec75e400-0749-4582-a622-7a9cb7f4a81c"));
  EXPECT_EQ(transcript.lines, 69u);
  EXPECT_EQ(transcript.broken, 0u);
  EXPECT_FALSE(transcript.torn);
  EXPECT_THAT(
      Said(transcript),
      ElementsAre("user 0: turn 1: create new.txt and edit a.txt",
                  "assistant 0: I will read a.txt first.", "assistant 0: Read",
                  "assistant 0: Writing and editing.", "assistant 0: Write",
                  "assistant 0: Edit", "assistant 0: Turn 1 complete.",
                  "user 1: turn 2: clean up with the shell",
                  "assistant 1: Running shell.", "assistant 1: Bash",
                  "assistant 1: Turn 2 complete.", "user 2: turn 3: edit b.txt again",
                  "assistant 2: Read", "assistant 2: Editing again.",
                  "assistant 2: Edit", "assistant 2: Turn 3 complete."));
}

TEST(RecordedTranscript, OfAnOlderClaudeCode) {
  EXPECT_THAT(Prompts(RecordedOf(AgentKind::kClaude, "claude-2.1.197.jsonl")),
              ElementsAre(kOne, kTwo, kThree));
}

// The second prompt is on the branch that /rewind left.
TEST(RecordedTranscript, OfClaudeCodeAfterItsOwnRewind) {
  const Transcript transcript = RecordedOf(AgentKind::kClaude, "claude-rewind.jsonl");
  EXPECT_THAT(Prompts(transcript),
              ElementsAre("first tui prompt", "(second tui prompt)",
                          "third prompt after rewind"));
  EXPECT_THAT(
      Said(transcript),
      ElementsAre("user 0: first tui prompt", "assistant 0: Writing.",
                  "assistant 0: Write", "assistant 0: Done one.",
                  "user 1 (dead): second tui prompt", "assistant 1 (dead): Running.",
                  "assistant 1 (dead): Bash", "assistant 1 (dead): Done two.",
                  "user 2: third prompt after rewind", "assistant 2: after rewind"));
}

TEST(RecordedTranscript, OfASubagentOfClaudeCode) {
  const Transcript transcript = RecordedOf(AgentKind::kClaude, "claude-subagent.jsonl");
  EXPECT_THAT(Prompts(transcript), ElementsAre("write sub.txt"));
}

TEST(RecordedTranscript, OfCodex) {
  const Transcript transcript = RecordedOf(AgentKind::kCodex, "codex.jsonl");
  EXPECT_EQ(transcript.session, "01a1dcc8-73cd-71b1-bbae-68433bc2b49f");
  EXPECT_THAT(Prompts(transcript), ElementsAre(kOne, kTwo, kThree));
  EXPECT_THAT(Anchors(transcript), ElementsAre("01a1dcc8-740d-7b21-be3a-b72e9ea8eed2",
                                               "01a1dcc8-891b-7973-a867-8357b9f6d816",
                                               "01a1dcc8-9ceb-71d3-9775-7dcbcd8cb333"));
  EXPECT_THAT(
      Said(transcript),
      ElementsAre("user 0: turn 1: create new.txt and edit a.txt",
                  "assistant 0: Writing and editing.", "assistant 0: apply_patch",
                  "assistant 0: Turn 1 complete.",
                  "user 1: turn 2: clean up with the shell",
                  "assistant 1: Running shell.", "assistant 1: exec_command",
                  "assistant 1: Turn 2 complete.", "user 2: turn 3: edit b.txt again",
                  "assistant 2: Editing again.", "assistant 2: apply_patch",
                  "assistant 2: Turn 3 complete."));
  EXPECT_THAT(Prompts(RecordedOf(AgentKind::kCodex, "codex-codemode.jsonl")),
              ElementsAre("turn 1"));
}

TEST(RecordedTranscript, OfGeminiCli) {
  const Transcript transcript = RecordedOf(AgentKind::kGemini, "gemini.jsonl");
  EXPECT_EQ(transcript.session, "e66036aa-dec3-4637-9ece-d4aecb4503c5");
  EXPECT_THAT(Prompts(transcript), ElementsAre(kOne, kTwo, kThree));
  EXPECT_THAT(Anchors(transcript), ElementsAre("77a19695-eae6-4de0-a461-5e78ff70f5bd",
                                               "160203b6-ffcf-49f3-990b-79f95aa21692",
                                               "5b477389-6bf7-479a-81cf-305b4f907158"));
  // Each once, though resuming writes all of them again.
  EXPECT_THAT(
      Said(transcript),
      ElementsAre("user 0: turn 1: create new.txt and edit a.txt",
                  "assistant 0: Writing and editing.", "assistant 0: Turn 1 complete.",
                  "user 1: turn 2: clean up with the shell",
                  "assistant 1: Running shell.", "assistant 1: Turn 2 complete.",
                  "user 2: turn 3: edit b.txt again", "assistant 2: Editing again.",
                  "assistant 2: Turn 3 complete."));
}

TEST(RecordedTranscript, OfQwenCode) {
  const Transcript transcript = RecordedOf(AgentKind::kQwen, "qwen.jsonl");
  EXPECT_EQ(transcript.session, "cba8b4e9-a493-4c83-b392-cd11cd4711d4");
  EXPECT_THAT(Prompts(transcript), ElementsAre(kOne, kTwo, kThree));
  EXPECT_THAT(Anchors(transcript),
              ElementsAre("cba8b4e9-a493-4c83-b392-cd11cd4711d4########0",
                          "cba8b4e9-a493-4c83-b392-cd11cd4711d4########2",
                          "cba8b4e9-a493-4c83-b392-cd11cd4711d4########3"));
}

TEST(RecordedTranscript, OfCopilotCli) {
  const Transcript transcript = RecordedOf(AgentKind::kCopilot, "copilot.jsonl");
  EXPECT_EQ(transcript.session, "22222222-3333-4444-8555-666666666666");
  EXPECT_THAT(Prompts(transcript), ElementsAre(kOne, kTwo, kThree));
  EXPECT_EQ(transcript.prompts[2].anchor, "0ab941f8-49ab-4ca4-9242-0acfea078009");
}

TEST(RecordedTranscript, OfCline) {
  const Transcript transcript = RecordedOf(AgentKind::kCline, "cline.json");
  EXPECT_EQ(transcript.session, "1794706784889_0kpye");
  EXPECT_THAT(Prompts(transcript), ElementsAre(kOne));
  EXPECT_THAT(Said(transcript),
              ElementsAre("user 0: turn 1: create new.txt and edit a.txt",
                          "assistant 0: Writing and editing.",
                          "assistant 0: Turn 1 complete."));
}

// What a cut relies on: the record is at its offset, and what comes before the turn's
// beginning is a whole transcript without the prompt.
TEST(RecordedTranscript, OffsetsLeadToThePrompts) {
  struct Row {
    AgentKind agent;
    const char* name;
    const char* before_second;  // the first line of the second turn has this
  };
  for (const Row& row :
       {Row{AgentKind::kClaude, "claude.jsonl", "queue-operation"},
        Row{AgentKind::kClaude, "claude-rewind.jsonl", "second tui prompt"},
        Row{AgentKind::kCodex, "codex.jsonl", "thread_settings_applied"},
        Row{AgentKind::kGemini, "gemini.jsonl", "160203b6"},
        Row{AgentKind::kQwen, "qwen.jsonl", "turn 2"},
        Row{AgentKind::kCopilot, "copilot.jsonl", "sessionStart"}}) {
    const Transcript transcript = RecordedOf(row.agent, row.name);
    std::ifstream file(DataDir() + "transcripts/" + row.name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(transcript.size, text.size());
    uint64_t line = 0;
    size_t counted = 0;
    for (const TranscriptPrompt& prompt : transcript.prompts) {
      EXPECT_EQ(text.substr(prompt.offset, 2), "{\"") << row.name;
      EXPECT_EQ(text[prompt.offset == 0 ? 0 : prompt.offset - 1],
                prompt.offset == 0 ? '{' : '\n');
      const std::string record =
          text.substr(prompt.offset, text.find('\n', prompt.offset) - prompt.offset);
      EXPECT_NE(record.find(prompt.text), std::string::npos) << row.name;
      for (; counted < prompt.offset; ++counted) line += text[counted] == '\n';
      EXPECT_EQ(prompt.line, line) << row.name;
      EXPECT_LE(prompt.turn_offset, prompt.offset);

      MemFs fs;
      const Fd root = *fs.OpenDir(AbsPath::Literal("/"));
      ASSERT_TRUE(ReplaceFile(fs, root, Name::Literal("t"),
                              AsBytes(text.substr(0, prompt.turn_offset)))
                      .ok());
      const Transcript cut = *ReadTranscript(fs, row.agent, AbsPath::Literal("/t"));
      EXPECT_FALSE(cut.torn) << row.name;
      EXPECT_EQ(cut.broken, 0u);
      ASSERT_EQ(cut.prompts.size(), prompt.index) << row.name;
      for (size_t i = 0; i < cut.prompts.size(); ++i)
        EXPECT_EQ(cut.prompts[i].anchor, transcript.prompts[i].anchor) << row.name;
    }
    const uint64_t second = transcript.prompts[1].turn_offset;
    EXPECT_NE(
        text.substr(second, text.find('\n', second) - second).find(row.before_second),
        std::string::npos)
        << row.name;
  }
}

// --- what is special -----------------------------------------------------------------

std::string SaidByUser(const std::string& id, const std::string& parent,
                       const std::string& text, const std::string& more = "") {
  return R"({"type":"user","uuid":")" + id + R"(","parentUuid":)" +
         (parent.empty() ? "null" : "\"" + parent + "\"") + R"(,"promptId":"p-)" + id +
         R"(","message":{"role":"user","content":")" + text + "\"}" + more + "}\n";
}
std::string Answered(const std::string& id, const std::string& parent) {
  return R"({"type":"assistant","uuid":")" + id + R"(","parentUuid":")" + parent +
         R"(","message":{"content":[{"type":"text","text":"answer"}]}})" + "\n";
}

TEST_F(TranscriptFile, CompactionLeavesThePromptsBeforeAlive) {
  const Transcript transcript = Read(
      AgentKind::kClaude,
      SaidByUser("a", "", "one") + Answered("b", "a") +
          R"({"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,)"
          R"("logicalParentUuid":"b"})"
          "\n" +
          SaidByUser("d", "c", "This session is being continued",
                     R"(,"isCompactSummary":true)") +
          SaidByUser("e", "d", "two"));
  EXPECT_THAT(Prompts(transcript), ElementsAre("one", "two"));
}

TEST_F(TranscriptFile, ARewindToTheBeginningLeavesEverything) {
  EXPECT_THAT(
      Prompts(Read(AgentKind::kClaude, SaidByUser("a", "", "one") + Answered("b", "a") +
                                           SaidByUser("c", "b", "two") +
                                           SaidByUser("d", "", "again"))),
      ElementsAre("(one)", "(two)", "again"));
}

TEST_F(TranscriptFile, WhatNoPersonTypedIsNoPrompt) {
  const Transcript transcript =
      Read(AgentKind::kClaude,
           SaidByUser("a", "", "one") + SaidByUser("b", "a", "<task-notification>x") +
               SaidByUser("c", "b", "meta", R"(,"isMeta":true)") +
               SaidByUser("d", "c", "result", R"(,"toolUseResult":{})") +
               SaidByUser("e", "d", "<local-command-stdout>x") +
               SaidByUser("f", "e", "[Request interrupted by user]") +
               SaidByUser(
                   "g", "f",
                   "<command-name>/fix</command-name><command-args>it</command-args>") +
               SaidByUser("h", "g", "side", R"(,"isSidechain":true)"));
  EXPECT_THAT(Prompts(transcript), ElementsAre("one", "/fix it"));
  EXPECT_EQ(transcript.prompts[1].anchor, "p-g");
}

// Mutant: the-agents-own-words-are-no-prompt.
TEST_F(TranscriptFile, WhatAHookToldIsAPromptWhateverItsWords) {
  const std::string text =
      SaidByUser("a", "", "<bash-input> what is that?") + Answered("b", "a") +
      SaidByUser("c", "b", "[Request interrupted") + Answered("d", "c") +
      SaidByUser("e", "d", "<local-command-stdout>x") + Answered("f", "e");
  Write(text);
  const std::vector<TurnRecord> told = {
      {.session = "s", .turn = 1, .prompt = "<bash-input> what", .anchor = "p-a"},
      {.session = "s", .turn = 2, .prompt = "[Request interrupted", .anchor = "p-c"},
      {.session = "s", .turn = 3, .prompt = "words of another", .anchor = "p-e"}};
  EXPECT_THAT(
      Prompts(*ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/t"), told)),
      ElementsAre("<bash-input> what is that?", "[Request interrupted"));
  EXPECT_THAT(Prompts(*ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/t"))),
              IsEmpty());
}

// Of the real file: an interruption has the id of the turn that it is in.
TEST_F(TranscriptFile, AnInterruptionWithinATurnIsNoPrompt) {
  std::string more = SaidByUser("x", "b", "[Request interrupted by user]");
  more.replace(more.find("p-x"), 3, "p-a");
  Write(SaidByUser("a", "", "one") + Answered("b", "a") + more);
  const std::vector<TurnRecord> told = {
      {.session = "s", .turn = 1, .prompt = "[Request", .anchor = "p-a"}};
  EXPECT_THAT(
      Prompts(*ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/t"), told)),
      ElementsAre("one"));
}

// Mutant: what-begins-with-a-tag-is-no-prompt.
TEST(RecordedTranscript, APromptOfCodexMayBeginWithATag) {
  for (const char* name : {"codex.jsonl", "codex-codemode.jsonl"}) {
    std::ifstream file(DataDir() + "transcripts/" + name);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    ASSERT_FALSE(text.empty()) << name;
    for (size_t at = 0; (at = text.find("\"turn 1", at)) != std::string::npos; at += 8)
      text.insert(at + 1, "<p>");
    MemFs fs;
    ASSERT_TRUE(ReplaceFile(fs, *fs.OpenDir(AbsPath::Literal("/")), Name::Literal("t"),
                            AsBytes(text))
                    .ok());
    const Transcript tagged =
        *ReadTranscript(fs, AgentKind::kCodex, AbsPath::Literal("/t"));
    ASSERT_GE(tagged.prompts.size(), 1u) << name;
    EXPECT_TRUE(tagged.prompts[0].text.starts_with("<p>turn 1")) << name;
    EXPECT_LT(tagged.prompts[0].turn_offset, tagged.prompts[0].offset);
  }
}

// Mutant: the-first-record-says-whose-it-is.
TEST_F(TranscriptFile, MayBeginWithASubagent) {
  const std::string side = R"(,"isSidechain":true)";
  const std::string warmup =
      SaidByUser("x", "", "Warmup", side) + SaidByUser("y", "x", "more", side);
  const Transcript transcript =
      Read(AgentKind::kClaude,
           warmup + SaidByUser("a", "", "one") + Answered("b", "a") +
               SaidByUser("z", "", "in", side) + SaidByUser("c", "b", "two"));
  EXPECT_THAT(Prompts(transcript), ElementsAre("one", "two"));
  EXPECT_EQ(transcript.messages.size(), 3u);
  EXPECT_EQ(transcript.prompts[1].index, 1u);
  EXPECT_THAT(Prompts(Read(AgentKind::kClaude, warmup)), ElementsAre("Warmup", "more"));
}

// Mutant: a-command-begins-with-its-name.
TEST_F(TranscriptFile, ACommandIsWhatWasTyped) {
  const std::string message = "<command-message>fix is running</command-message>";
  const std::string name = "<command-name>/fix</command-name>";
  const std::string args = "<command-args>now</command-args>";
  EXPECT_THAT(
      Prompts(Read(
          AgentKind::kClaude,
          SaidByUser("a", "", name + "\\n" + message + "\\n" + args) +
              SaidByUser("b", "a", message + "\\n" + name + "\\n" + args) +
              SaidByUser("c", "b", args + message + name) +
              SaidByUser("d", "c", message + name + "<command-args></command-args>") +
              SaidByUser("e", "d", message + "what is this?") +
              SaidByUser("f", "e", "what is " + name + "?"))),
      ElementsAre("/fix now", "/fix now", "/fix now", "/fix", message + "what is this?",
                  "what is " + name + "?"));
}

TEST_F(TranscriptFile, ATurnHasOnePrompt) {
  std::string more = SaidByUser("b", "a", "and more");
  more.replace(more.find("p-b"), 3, "p-a");
  EXPECT_THAT(Prompts(Read(AgentKind::kClaude, SaidByUser("a", "", "one") + more)),
              ElementsAre("one"));
}

TEST_F(TranscriptFile, AForkKnowsWhereItCameFrom) {
  EXPECT_EQ(Read(AgentKind::kClaude,
                 SaidByUser("a", "", "one", R"(,"forkedFrom":{"sessionId":"old"})"))
                .forked_from,
            "old");
  EXPECT_EQ(
      Read(AgentKind::kCodex,
           R"({"type":"session_meta","payload":{"id":"n","forked_from_id":"old"}})")
          .forked_from,
      "old");
  EXPECT_FALSE(
      Read(AgentKind::kCodex,
           R"({"type":"session_meta","payload":{"id":"n","forked_from_id":"old"}})")
          .refers);
  // A fork of a fork that had said nothing yet refers to the file that said it.
  const Transcript fork =
      Read(AgentKind::kCodex,
           R"({"type":"session_meta","payload":{"id":"n","forked_from_id":"old",)"
           R"("history_base":{"thread_id":"oldest"}}})");
  EXPECT_TRUE(fork.refers);
  EXPECT_EQ(fork.forked_from, "old");
  EXPECT_EQ(fork.refers_to, "oldest");
}

std::string CodexTurn(const std::string& turn, const std::string& text) {
  return R"({"type":"event_msg","payload":{"type":"task_started","turn_id":")" + turn +
         "\"}}\n" +
         R"({"type":"event_msg","payload":{"type":"user_message","message":")" + text +
         "\"}}\n";
}

TEST_F(TranscriptFile, CodexTakesTurnsBack) {
  const std::string back =
      R"({"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}})"
      "\n";
  EXPECT_THAT(
      Prompts(Read(AgentKind::kCodex, CodexTurn("1", "one") + CodexTurn("2", "two") +
                                          back + CodexTurn("3", "three") + back + back +
                                          CodexTurn("4", "four"))),
      ElementsAre("(one)", "(two)", "(three)", "four"));
}

TEST_F(TranscriptFile, GeminiReplacesAndRewinds) {
  const auto user = [](const std::string& id) {
    return R"({"id":")" + id + R"(","type":"user","content":"say )" + id + "\"}";
  };
  EXPECT_THAT(Prompts(Read(AgentKind::kGemini, user("a") + "\n" + user("b") + "\n" +
                                                   R"({"$rewindTo":"b"})"
                                                   "\n" +
                                                   user("c") + "\n")),
              ElementsAre("say a", "(say b)", "say c"));
  EXPECT_THAT(Prompts(Read(AgentKind::kGemini, user("a") + "\n" + user("b") + "\n" +
                                                   R"({"$rewindTo":"unknown"})"
                                                   "\n" +
                                                   user("c") + "\n")),
              ElementsAre("(say a)", "(say b)", "say c"));
  EXPECT_THAT(
      Prompts(Read(AgentKind::kGemini, user("a") + "\n" + user("b") + "\n" +
                                           R"({"$set":{"messages":[)" + user("b") +
                                           "," + user("d") + "]}}\n")),
      ElementsAre("(say a)", "say b", "say d"));
}

TEST_F(TranscriptFile, ClineMayWriteOverSeveralLines) {
  const Transcript transcript = Read(
      AgentKind::kCline,
      "{\n \"messages\": [\n  {\"role\": \"user\", \"content\": \"hi\"},\n"
      "  {\"id\": \"m\", \"role\": \"assistant\", \"content\": [{\"text\":\"yes\"}]}\n"
      " ]\n}\n");
  ASSERT_THAT(Prompts(transcript), ElementsAre("hi"));
  EXPECT_EQ(transcript.prompts[0].offset, 19u);
  EXPECT_EQ(transcript.prompts[0].anchor.size(), 16u);  // a fingerprint
}

// --- what could go wrong -------------------------------------------------------------

TEST_F(TranscriptFile, ATornLastLineIsToldAndTheRestIsRead) {
  const std::string whole = SaidByUser("a", "", "one") + SaidByUser("b", "a", "two");
  for (size_t cut = whole.find('\n') + 2; cut < whole.size() - 1; ++cut) {
    const Transcript transcript = Read(AgentKind::kClaude, whole.substr(0, cut));
    EXPECT_TRUE(transcript.torn) << cut;
    ASSERT_THAT(Prompts(transcript), ElementsAre("one")) << cut;
  }
  // Whole, but for its newline.
  const Transcript transcript =
      Read(AgentKind::kClaude, whole.substr(0, whole.size() - 1));
  EXPECT_FALSE(transcript.torn);
  EXPECT_THAT(Prompts(transcript), ElementsAre("one", "two"));
}

TEST_F(TranscriptFile, LinesThatAreNotJsonAreCountedAndPassedOver) {
  const Transcript transcript =
      Read(AgentKind::kClaude, "garbage\n" + SaidByUser("a", "", "one") +
                                   "{\"a\":\n\n[]\n7\n" + std::string("\0\0\n", 3) +
                                   "\xFF\xFE\n" +
                                   R"({"type":"new-thing","uuid":"z","parentUuid":"a"})"
                                   "\n" +
                                   SaidByUser("b", "gone", "two"));
  EXPECT_EQ(transcript.broken, 4u);
  EXPECT_THAT(Prompts(transcript), ElementsAre("one", "two"));
  EXPECT_THAT(Prompts(Read(AgentKind::kClaude, "")), IsEmpty());
}

TEST_F(TranscriptFile, ALineOfManyMegabytesIsRead) {
  const std::string big(20 << 20, 'x');
  const Transcript transcript =
      Read(AgentKind::kClaude, SaidByUser("a", "", "one") + SaidByUser("b", "a", big) +
                                   SaidByUser("c", "b", "three"));
  ASSERT_EQ(transcript.prompts.size(), 3u);
  EXPECT_EQ(transcript.prompts[1].text.size(), kMaxPrompt);
  EXPECT_EQ(transcript.prompts[2].text, "three");
}

TEST_F(TranscriptFile, ALineThatIsTooLongIsPassedOver) {
  std::string text = SaidByUser("a", "", "one");
  text += SaidByUser("b", "a", std::string(kLongestLine, 'x'));
  const uint64_t third = text.size();
  text += SaidByUser("c", "b", "three");
  const Transcript transcript = Read(AgentKind::kClaude, text);
  EXPECT_EQ(transcript.too_long, 1u);
  EXPECT_THAT(Prompts(transcript), ElementsAre("one", "three"));
  EXPECT_EQ(transcript.prompts[1].offset, third);
  EXPECT_EQ(transcript.prompts[1].line, 2u);
}

TEST_F(TranscriptFile, CirclesAndForwardParentsEnd) {
  EXPECT_EQ(Read(AgentKind::kClaude,
                 SaidByUser("a", "a", "self") + SaidByUser("b", "c", "later") +
                     SaidByUser("c", "b", "back") + SaidByUser("a", "c", "same"))
                .prompts.size(),
            3u);
}

TEST_F(TranscriptFile, KeepsTheNewestOfVeryManyMessages) {
  std::string text = SaidByUser("a", "", "one");
  for (size_t i = 0; i < kMostMessages + 10; ++i)
    text += Answered("m" + std::to_string(i), "a");
  const Transcript transcript = Read(AgentKind::kClaude, text);
  EXPECT_EQ(transcript.messages.size(), kMostMessages);
  EXPECT_EQ(transcript.messages_left_out, 11u);
  EXPECT_EQ(transcript.messages.back().id, "m" + std::to_string(kMostMessages + 9));
}

// Also when a file stays small and its prompts are very many.
TEST_F(TranscriptFile, TextsAreBounded) {
  std::string text;
  const std::string prompt(20'000, 'x');
  for (int i = 0; i < 4000; ++i) text += CodexTurn(std::to_string(i), prompt);
  const Transcript transcript = Read(AgentKind::kCodex, text);
  size_t total = 0;
  for (const TranscriptPrompt& at : transcript.prompts) total += at.text.size();
  EXPECT_EQ(transcript.prompts.size(), 4000u);
  EXPECT_LT(total, (33u << 20));
  EXPECT_EQ(transcript.prompts[0].text.size(), kMaxPrompt);
  EXPECT_EQ(transcript.prompts[3999].text.size(), 100u);
}

TEST_F(TranscriptFile, MorePromptsThanAnybodyWritesAreCounted) {
  std::string text;
  for (size_t i = 0; i < kMostPrompts + 3; ++i) text += CodexTurn("t", "x");
  const Transcript transcript = Read(AgentKind::kCodex, text);
  EXPECT_EQ(transcript.prompts.size(), kMostPrompts);
  EXPECT_EQ(transcript.prompts_left_out, 3u);
}

TEST_F(TranscriptFile, OnlyARegularFileIsRead) {
  ASSERT_TRUE(fs.MakeDir(root, Name::Literal("dir"), 0755).ok());
  auto dir = ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/dir"));
  ASSERT_FALSE(dir.ok());
  auto missing = ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/none"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_FALSE(ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/")).ok());
  Write(SaidByUser("a", "", "one"));
  ASSERT_TRUE(fs.Symlink(root, Name::Literal("link"), "t").ok());
  auto link = ReadTranscript(fs, AgentKind::kClaude, AbsPath::Literal("/link"));
  ASSERT_TRUE(link.ok());
  EXPECT_THAT(Prompts(*link), ElementsAre("one"));
}

TEST_F(TranscriptFile, AgentsWithoutOneSaySo) {
  Write("{}");
  for (AgentKind agent : {AgentKind::kOpencode, AgentKind::kReasonix, AgentKind::kCrush,
                          AgentKind::kGeneric}) {
    auto read = ReadTranscript(fs, agent, AbsPath::Literal("/t"));
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, Errc::kUnsupported);
  }
}

// Read in pieces of any size: the lines are the same.
TEST_F(TranscriptFile, LinesMeetChunksAnywhere) {
  const std::string first = SaidByUser("a", "", "one");
  for (size_t around = (256 << 10) - 3; around < (256 << 10) + 3; ++around) {
    std::string text = first;
    text += "\"" + std::string(around - text.size() - 3, 'x') + "\"\n";
    ASSERT_EQ(text.size(), around);
    text += SaidByUser("b", "a", "two");
    const Transcript transcript = Read(AgentKind::kClaude, text);
    EXPECT_THAT(Prompts(transcript), ElementsAre("one", "two")) << around;
    EXPECT_EQ(transcript.prompts[1].offset, around);
    EXPECT_EQ(transcript.broken, 0u);
  }
}

}  // namespace
}  // namespace belay::test
