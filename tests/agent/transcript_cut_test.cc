// Transcripts cut short: those of real runs at every prompt and message, and what is
// special. That the agents go on from such a copy: tests/agents.

#include "agent/transcript_cut.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <utility>

#include "agent/json.h"
#include "agent/payloads.h"
#include "agent/transcript_lines.h"
#include "base/mem_fs.h"
#include "base/real_fs.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const AbsPath kPath = AbsPath::Literal("/t");

std::string Load(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// A transcript, and what becomes of it.
class Cutting {
 public:
  Cutting(AgentKind agent, std::string_view text)
      : agent_(agent), root_(*fs_.OpenDir(AbsPath::Literal("/"))) {
    Write(text);
    read_ = *ReadTranscript(fs_, agent_, kPath);
  }
  void Write(std::string_view text) {
    EXPECT_TRUE(ReplaceFile(fs_, root_, Name::Literal("t"), AsBytes(text)).ok());
  }

  const Transcript& read() const { return read_; }
  std::vector<TranscriptSwap> swaps;

  Result<std::string> TryCut(const CutPoint& point) {
    BELAY_TRY(const Fd file, OpenTranscript(fs_, kPath));
    BELAY_TRY(const TranscriptCut cut, PlanCut(fs_, agent_, file, read_, point));
    std::string out;
    BELAY_OK(CopyCut(fs_, file, cut, swaps, [&out](ByteSpan bytes) {
      out += AsText(bytes);
      return Ok();
    }));
    return out;
  }
  std::string Copy(const TranscriptCut& cut) {
    std::string out;
    const auto file = OpenTranscript(fs_, kPath);
    EXPECT_TRUE(file.ok() && CopyCut(fs_, *file, cut, swaps, [&out](ByteSpan bytes) {
                               out += AsText(bytes);
                               return Ok();
                             }).ok());
    return out;
  }
  Result<TranscriptCut> TryWhole() {
    BELAY_TRY(const Fd file, OpenTranscript(fs_, kPath));
    return PlanWhole(fs_, agent_, file, read_);
  }
  std::string Cut(const CutPoint& point) {
    Result<std::string> out = TryCut(point);
    EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().what);
    return out.ok() ? *out : "";
  }
  std::string CutPrompt(size_t index) { return Cut(Before(read_.prompts.at(index))); }

  // The prompts of a text as a transcript; those that are dead in brackets.
  std::vector<std::string> Prompts(const std::string& text) const {
    MemFs fs;
    const Fd root = *fs.OpenDir(AbsPath::Literal("/"));
    EXPECT_TRUE(ReplaceFile(fs, root, Name::Literal("t"), AsBytes(text)).ok());
    const auto read = ReadTranscript(fs, agent_, kPath);
    EXPECT_TRUE(read.ok() && !read->torn && read->broken == 0);
    std::vector<std::string> out;
    for (const TranscriptPrompt& prompt : read->prompts)
      out.push_back(prompt.dead ? "(" + prompt.text + ")" : prompt.text);
    return out;
  }

 private:
  const AgentKind agent_;
  MemFs fs_;
  Fd root_;
  Transcript read_;
};

// --- of real runs --------------------------------------------------------------------

struct RecordedRow {
  AgentKind agent;
  const char* name;
};

class RecordedCut : public ::testing::TestWithParam<RecordedRow> {
 protected:
  Cutting cutting{GetParam().agent, Load(std::string(std::getenv("BELAY_SOURCE_DIR")) +
                                         "/tests/" + GetParam().name)};
};

// Mutants: cut-keeps-dead-branches.
TEST_P(RecordedCut, BeforeEachPromptHasWhatCameBeforeIt) {
  std::vector<std::string> live;
  for (const TranscriptPrompt& prompt : cutting.read().prompts) {
    if (prompt.dead) continue;
    const std::string copy = cutting.Cut(Before(prompt));
    EXPECT_EQ(cutting.Prompts(copy), live) << prompt.text;
    EXPECT_THAT(copy, Not(HasSubstr(prompt.text)));
    live.push_back(prompt.text);
  }
  EXPECT_FALSE(live.empty());
}

TEST_P(RecordedCut, HasTheNewIdInPlaceOfTheOld) {
  const std::string old = cutting.read().session;
  cutting.swaps = {{.kind = TranscriptSwap::Kind::kId,
                    .from = old,
                    .to = "99999999-8888-4777-8666-555555555555"}};
  const std::string copy = cutting.Cut(Before(cutting.read().prompts.back()));
  EXPECT_THAT(copy, Not(HasSubstr("\"" + old + "\"")));
  if (cutting.read().prompts.size() > 1) {
    EXPECT_THAT(copy, HasSubstr("\"99999999-8888-4777-8666-555555555555\""));
  }
}

// Nothing of the message or of what came later; and the copy can be read.
TEST_P(RecordedCut, BeforeEachMessageEndsThere) {
  for (const TranscriptMessage& message : cutting.read().messages) {
    if (message.dead || (message.id.empty() && GetParam().agent == AgentKind::kGemini))
      continue;
    const std::string copy = cutting.Cut(Before(message));
    const std::vector<std::string> prompts = cutting.Prompts(copy);
    EXPECT_LE(prompts.size(), message.prompt.value_or(0) + 1);
    if (!message.id.empty()) {
      EXPECT_THAT(copy, Not(HasSubstr("\"uuid\":\"" + message.id + "\"")));
    }
    constexpr std::string_view kAbout = "\"leafUuid\":";
    for (size_t at = 0; (at = copy.find(kAbout, at)) != std::string::npos;) {
      at += kAbout.size();
      const std::string id = copy.substr(at, copy.find('"', at + 1) + 1 - at);
      if (id.starts_with("\"00000000-")) continue;  // there is none
      EXPECT_THAT(copy, HasSubstr("\"uuid\":" + id));
    }
  }
}

// Calls and answers of a copy, by their ids.
struct CallsOf {
  std::set<std::string> made, answered;

  void Look(const Json& json) {
    const auto text = [&json](const char* name) {
      const auto value = json.Get(name);
      return value && value->is_string() ? *value->Text(200) : std::string();
    };
    if (json.is_object()) {
      const std::string type = text("type");
      if (type == "tool_use") made.insert(text("id"));
      if (type == "tool_result" && json.Get("tool_use_id"))
        answered.insert(text("tool_use_id"));
      if (type.ends_with("_call") && json.Get("call_id")) made.insert(text("call_id"));
      if (type.ends_with("_output") && json.Get("call_id"))
        answered.insert(text("call_id"));
      if (type == "tool.execution_complete")
        answered.insert(*json.Get("data")->Get("toolCallId")->Text(200));
    }
    if (!json.is_object() && !json.is_array()) return;
    for (JsonParts parts(json); parts.Next();) {
      const std::string name = json.is_object() ? parts.name(100) : "";
      const auto id = [](const Json& of, const char* member) {
        const auto value = of.Get(member);
        return value ? *value->Text(200) : std::string();
      };
      if (name == "functionCall") made.insert(id(parts.value(), "id"));
      if (name == "functionResponse") answered.insert(id(parts.value(), "id"));
      if (name == "toolRequests")
        for (JsonParts calls(parts.value()); calls.Next();)
          made.insert(id(calls.value(), "toolCallId"));
      if (name == "toolCalls") {  // with what they answered, beside the answers
        for (JsonParts calls(parts.value()); calls.Next();)
          made.insert(id(calls.value(), "id"));
        continue;
      }
      Look(parts.value());
    }
  }
};

// Also where the cut is asked for between them.
TEST_P(RecordedCut, HasNoCallWithoutItsAnswer) {
  for (const TranscriptMessage& message : cutting.read().messages) {
    if (message.dead || (message.id.empty() && GetParam().agent == AgentKind::kGemini))
      continue;
    CallsOf calls;
    std::istringstream copy(cutting.Cut(Before(message)));
    for (std::string line; std::getline(copy, line);)
      if (const auto json = Json::Parse(line); json.ok()) calls.Look(*json);
    EXPECT_EQ(calls.made, calls.answered) << message.id << " " << message.text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Transcripts, RecordedCut,
    ::testing::Values(
        RecordedRow{AgentKind::kClaude, "agent/data/transcripts/claude.jsonl"},
        RecordedRow{AgentKind::kClaude, "agent/data/transcripts/claude-2.1.197.jsonl"},
        RecordedRow{AgentKind::kClaude, "agent/data/transcripts/claude-rewind.jsonl"},
        RecordedRow{AgentKind::kClaude, "agents/payloads/claude/transcript.jsonl"},
        RecordedRow{AgentKind::kCodex, "agent/data/transcripts/codex.jsonl"},
        RecordedRow{AgentKind::kCodex, "agents/payloads/codex/transcript-1.jsonl"},
        RecordedRow{AgentKind::kGemini, "agent/data/transcripts/gemini.jsonl"},
        RecordedRow{AgentKind::kGemini, "agents/payloads/gemini/transcript-2.jsonl"},
        RecordedRow{AgentKind::kQwen, "agent/data/transcripts/qwen.jsonl"},
        RecordedRow{AgentKind::kQwen, "agents/payloads/qwen/transcript.jsonl"},
        RecordedRow{AgentKind::kCopilot, "agent/data/transcripts/copilot.jsonl"},
        RecordedRow{AgentKind::kCopilot, "agents/payloads/copilot/transcript.jsonl"}),
    [](const auto& row) {
      std::string name = row.param.name;
      for (char& c : name)
        if (!isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

// --- trees ---------------------------------------------------------------------------

std::string Line(const std::string& type, const std::string& id,
                 const std::string& parent, const std::string& text,
                 const std::string& more = "") {
  return R"({"type":")" + type + R"(","uuid":")" + id + R"(","parentUuid":)" +
         (parent.empty() ? "null" : "\"" + parent + "\"") + R"(,"message":{"role":")" +
         type + R"(","content":")" + text + "\"}" + more + "}\n";
}
std::string User(const std::string& id, const std::string& parent,
                 const std::string& text) {
  return Line("user", id, parent, text, R"(,"promptId":"p-)" + id + "\"");
}
std::string ToolResult(const std::string& id, const std::string& parent) {
  return Line("user", id, parent, "result of " + parent, R"(,"toolUseResult":{})");
}
std::string Assistant(const std::string& id, const std::string& parent) {
  return Line("assistant", id, parent, "answer " + id);
}

// The answers of parallel calls are not all on the way from the end to the beginning.
TEST(TreeCut, AnswersOfParallelCallsStay) {
  const std::string before = User("a", "", "one") + Assistant("b", "a") +
                             Assistant("c", "b") + ToolResult("d", "b") +
                             ToolResult("e", "c") + Assistant("f", "e");
  Cutting cutting(AgentKind::kClaude, before + User("g", "f", "two"));
  EXPECT_EQ(cutting.CutPrompt(1), before);
}

TEST(TreeCut, ABranchThatWasLeftGoesWithWhatIsWrittenInBetween) {
  const std::string first = User("a", "", "one") + Assistant("b", "a");
  const std::string note = "{\"type\":\"last-prompt\",\"lastPrompt\":\"two\"}\n";
  const std::string dead = User("c", "b", "two") + Assistant("d", "c") + note;
  const std::string again = User("e", "b", "two again") + Assistant("f", "e");
  Cutting cutting(AgentKind::kClaude, first + dead + again + User("g", "f", "three"));
  EXPECT_EQ(cutting.CutPrompt(3), first + again);
  EXPECT_EQ(cutting.CutPrompt(2), first);
  // Also to where it was left.
  EXPECT_EQ(cutting.CutPrompt(1), first);
  EXPECT_EQ(cutting.CutPrompt(0), "");
}

// Claude Code writes some of them down before what they are about.
// Mutant: what-goes-is-the-last-prompt.
TEST(TreeCut, ALineAboutARecordGoesWithIt) {
  const auto about = [](const std::string& id) {
    return R"({"type":"last-prompt","lastPrompt":"x","leafUuid":")" + id + "\"}\n";
  };
  const std::string first = User("a", "", "one") + about("a") + Assistant("b", "a");
  const std::string other = about("of another file");
  Cutting cutting(AgentKind::kClaude, first + about("c") + other + about("b") +
                                          Assistant("c", "b") + User("d", "c", "two"));
  const TranscriptMessage& middle = cutting.read().messages.at(2);
  ASSERT_EQ(middle.id, "c");
  EXPECT_EQ(cutting.Cut(Before(middle)), first + other + about("b"));
  EXPECT_EQ(cutting.CutPrompt(1),
            first + about("c") + other + about("b") + Assistant("c", "b"));
}

std::string Queue(const std::string& operation, const std::string& content = "") {
  return R"({"type":"queue-operation","operation":")" + operation + "\"" +
         (content.empty() ? "" : R"(,"content":")" + content + "\"") + "}\n";
}

// Mutants: what-goes-stays-queued.
TEST(TreeCut, WhatWasTypedWhileTheAgentWasAtWorkGoesWithItsPrompt) {
  const std::string one = Queue("enqueue", "one") + Queue("dequeue") +
                          User("a", "", "one") + Assistant("b", "a");
  const std::string end = Assistant("c", "b");
  const std::string two =
      Queue("dequeue") + User("d", "c", "two") + Assistant("e", "d");
  Cutting cutting(AgentKind::kClaude,
                  one + Queue("enqueue", "two") + end + two + User("f", "e", "three"));
  EXPECT_EQ(cutting.CutPrompt(1), one + end);
  EXPECT_EQ(cutting.CutPrompt(2), one + Queue("enqueue", "two") + end + two);
  // Nobody says what was taken out of the queue.
  Cutting never(AgentKind::kClaude, one + Queue("enqueue", "two") +
                                        Queue("enqueue", "of no prompt") + end +
                                        User("d", "c", "two"));
  EXPECT_EQ(never.CutPrompt(1), one + Queue("enqueue", "of no prompt") + end);
  // Taken out in its turn, without a prompt.
  const std::string within = Queue("enqueue", "more") + Queue("enqueue", "less") +
                             Queue("remove", "less") + Queue("enqueue", "again") +
                             Queue("popAll");
  Cutting removed(AgentKind::kClaude, one + within + end + User("d", "c", "two"));
  EXPECT_EQ(removed.CutPrompt(1), one + within + end);
  // A branch that was left: also what stands right before its prompt.
  const std::string dead = Queue("enqueue", "left too") + Queue("dequeue") +
                           User("l", "c", "left too") + Assistant("m", "l");
  Cutting left(AgentKind::kClaude, one + Queue("enqueue", "left") + end +
                                       Queue("dequeue") + User("k", "c", "left") +
                                       dead + User("d", "c", "two") +
                                       Assistant("e", "d") + User("f", "e", "three"));
  ASSERT_EQ(left.read().prompts.size(), 5u);
  EXPECT_EQ(left.CutPrompt(4), one + end + User("d", "c", "two") + Assistant("e", "d"));
  // All of it has all of the queue.
  const auto whole = cutting.TryWhole();
  ASSERT_TRUE(whole.ok());
  EXPECT_THAT(cutting.Copy(*whole), HasSubstr(Queue("enqueue", "one")));
}

// Mutants: a-turn-begins-with-its-prompt.
TEST(TreeCut, ATurnBeginsWithTheFirstRecordOfItsId) {
  const std::string one = User("a", "", "one") + Assistant("b", "a");
  const std::string snapshot = R"({"type":"file-history-snapshot","messageId":"d"})"
                               "\n";
  const auto meta = [](const std::string& id, const std::string& parent,
                       const std::string& prompt) {
    return Line("user", id, parent, "context",
                R"(,"isMeta":true,"promptId":"p-)" + prompt + "\"");
  };
  const std::string before = snapshot + meta("c", "b", "d") + snapshot;
  Cutting cutting(AgentKind::kClaude, one + before + User("d", "c", "two"));
  EXPECT_EQ(cutting.CutPrompt(1), one);
  const auto whole = cutting.TryWhole();
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(cutting.Copy(*whole), one + before + User("d", "c", "two"));
  // Of the turn before, or with what was said since.
  for (const std::string& other : {meta("c", "b", "a"), meta("c", "b", "x"),
                                   meta("x", "b", "d") + Assistant("c", "x")}) {
    Cutting apart(AgentKind::kClaude, one + other + User("d", "c", "two"));
    EXPECT_EQ(apart.CutPrompt(1), one + other);
  }
}

TEST(TreeCut, BeforeAndBehindACompaction) {
  const std::string first = User("a", "", "one") + Assistant("b", "a");
  const std::string second = User("c", "b", "two") + Assistant("d", "c");
  const std::string compact =
      R"({"type":"system","subtype":"compact_boundary","uuid":"x","parentUuid":null,)"
      R"("logicalParentUuid":"d"})"
      "\n" +
      Line("user", "y", "x", "This session is being continued",
           R"(,"isCompactSummary":true)");
  Cutting cutting(AgentKind::kClaude,
                  first + second + compact + User("e", "y", "three"));
  EXPECT_EQ(cutting.CutPrompt(2), first + second + compact);
  EXPECT_EQ(cutting.CutPrompt(1), first);
}

TEST(TreeCut, SubagentsInBetweenGoWithTheTurnTheyWorkedFor) {
  const std::string side = R"(,"isSidechain":true)";
  const std::string first =
      User("a", "", "one") + Assistant("b", "a") + Line("user", "s", "", "task", side) +
      Line("assistant", "t", "s", "done", side) + Assistant("c", "b");
  const std::string dead =
      User("d", "c", "two") + Line("user", "u", "", "other task", side);
  Cutting cutting(AgentKind::kClaude, first + dead + User("e", "c", "two again") +
                                          Assistant("f", "e") +
                                          User("g", "f", "three"));
  EXPECT_THAT(cutting.CutPrompt(3), Not(HasSubstr("other task")));
  EXPECT_EQ(cutting.CutPrompt(2), first);
  // Also before all others.
  const std::string warmup =
      Line("user", "x", "", "Warmup", side) + Line("assistant", "y", "x", "", side);
  Cutting warm(AgentKind::kClaude, warmup + first + User("d", "c", "two"));
  EXPECT_EQ(warm.CutPrompt(1), warmup + first);
}

TEST(TreeCut, LinesThatCannotBeReadStayWithWhatTheyStandIn) {
  const std::string first = User("a", "", "one") + "no json\n\n" + Assistant("b", "a");
  Cutting cutting(AgentKind::kClaude, first + User("c", "b", "two") + "also none\n" +
                                          User("d", "b", "again"));
  EXPECT_EQ(cutting.CutPrompt(2), first);
}

std::string Part(const std::string& id, const std::string& parent,
                 const std::string& message, const std::string& part) {
  const bool result = part.find("tool_result") != std::string::npos;
  return R"({"type":")" + std::string(result ? "user" : "assistant") + R"(","uuid":")" +
         id + R"(","parentUuid":")" + parent + R"(","message":{"id":")" + message +
         R"(","content":[)" + part + "]}}\n";
}

// Claude Code writes a message as several lines.
TEST(TreeCut, CallsThatWereMadeTogetherGoTogether) {
  const std::string begin = User("a", "", "one");
  const std::string calls =
      Part("t", "a", "m", R"({"type":"thinking","thinking":"x"})") +
      Part("b", "t", "m", R"({"type":"tool_use","id":"1"})") +
      Part("c", "b", "m", R"({"type":"tool_use","id":"2"})") +
      Part("d", "b", "", R"({"type":"tool_result","tool_use_id":"1"})");
  const std::string end =
      Part("e", "c", "", R"({"type":"tool_result","tool_use_id":"2"})");
  Cutting cutting(AgentKind::kClaude, begin + calls + end + Assistant("f", "e") +
                                          User("g", "f", "two") + Assistant("h", "g"));
  const auto at = [&cutting](const std::string& id) {
    for (const TranscriptMessage& message : cutting.read().messages)
      if (message.id == id) return cutting.Cut(Before(message));
    return std::string("none");
  };
  EXPECT_EQ(at("f"), begin + calls + end);
  // Nor is a thought an end.
  for (const char* id : {"e", "d", "c", "b", "t"}) EXPECT_EQ(at(id), begin) << id;
}

// Calls that the service answers itself are parts of one message, answers and all.
// Mutants: the-service-answers-nothing.
TEST(TreeCut, CallsOfTheServiceStayWithTheirAnswers) {
  for (const auto& [call, answer] :
       {std::pair("server_tool_use", "web_search_tool_result"),
        std::pair("mcp_tool_use", "mcp_tool_result")}) {
    const std::string begin = User("a", "", "one");
    const std::string made =
        Part("b", "a", "m", R"({"type":"text","text":"x"})") +
        Part("c", "b", "m", R"({"type":")" + std::string(call) + R"(","id":"1"})");
    // Not as a record of the user's.
    const std::string answered =
        R"({"type":"assistant","uuid":"d","parentUuid":"c","message":{"id":"m",)"
        R"("content":[{"type":")" +
        std::string(answer) + R"(","tool_use_id":"1"}]}})" + "\n";
    Cutting cutting(
        AgentKind::kClaude,
        begin + made + answered + Part("e", "d", "m", R"({"type":"text","text":"y"})"));
    const auto at = [&cutting](const std::string& id) {
      for (const TranscriptMessage& message : cutting.read().messages)
        if (message.id == id) return cutting.Cut(Before(message));
      return std::string("none");
    };
    EXPECT_EQ(at("e"), begin + made + answered) << call;
    EXPECT_EQ(at("d"), begin) << call;
    EXPECT_EQ(at("c"), begin + made.substr(0, made.find('\n') + 1)) << call;
  }
}

// A turn that was interrupted in them, as their file has it, and one that a prompt was
// said behind in a branch that was left.
TEST(TreeCut, ThoughtsAreNoEndOfATurnEither) {
  const std::string begin =
      User("a", "", "one") + Assistant("b", "a") + User("c", "b", "two") +
      Part("d", "c", "m", R"({"type":"tool_use","id":"1"})") +
      Part("e", "d", "", R"({"type":"tool_result","tool_use_id":"1"})");
  const std::string thoughts =
      Part("f", "e", "n", R"({"type":"thinking","thinking":"x"})") +
      Part("g", "f", "o", R"({"type":"redacted_thinking","data":"x"})");
  const std::string after =
      R"({"type":"system","subtype":"turn_duration","uuid":"h","parentUuid":"g"})"
      "\n";
  Cutting cutting(AgentKind::kClaude, begin + thoughts + after +
                                          User("i", "h", "left") + Assistant("j", "i") +
                                          User("k", "h", "three"));
  EXPECT_EQ(cutting.CutPrompt(3), begin);
  EXPECT_EQ(cutting.CutPrompt(2), begin);
  // Said since, by whomever.
  const std::string since = Line("user", "l", "h", "[Request interrupted by user]");
  Cutting gone_on(AgentKind::kClaude,
                  begin + thoughts + after + since + User("m", "l", "three"));
  EXPECT_EQ(gone_on.CutPrompt(2), begin + thoughts + after + since);
  // All of it stays as it is.
  const auto whole = cutting.TryWhole();
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->Holds(cutting.read().messages.at(6)));
}

std::string Qwen(const std::string& type, const std::string& id,
                 const std::string& parent, const std::string& parts) {
  return R"({"type":")" + type + R"(","uuid":")" + id + R"(","parentUuid":)" +
         (parent.empty() ? "null" : "\"" + parent + "\"") + R"(,"message":{"parts":[)" +
         parts + "]}}\n";
}

// Mutants: cut-between-call-and-answer.
TEST(TreeCut, ACallWithoutItsAnswerIsNotTheEndForQwen) {
  const std::string begin = Qwen("user", "a", "", R"({"text":"one"})");
  const std::string calls =
      Qwen("assistant", "b", "a", R"({"functionCall":{}},{"functionCall":{}})") +
      Qwen("tool_result", "c", "b", R"({"functionResponse":{}})");
  const std::string end = Qwen("tool_result", "d", "c", R"({"functionResponse":{}})");
  Cutting cutting(AgentKind::kQwen,
                  begin + calls + end + Qwen("assistant", "e", "d", R"({"text":"x"})"));
  const auto at = [&cutting](size_t i) {
    return cutting.Cut(Before(cutting.read().messages.at(i)));
  };
  EXPECT_EQ(at(4), begin + calls + end);
  EXPECT_EQ(at(3), begin);
  EXPECT_EQ(at(2), begin);
  EXPECT_EQ(at(1), begin);
}

// --- lists ---------------------------------------------------------------------------

std::string Gemini(const std::string& id, const std::string& more) {
  return R"({"id":")" + id + R"(",)" + more + "}";
}
std::string GeminiUser(const std::string& id) {
  return Gemini(id, R"("type":"user","content":[{"text":"say )" + id + "\"}]");
}
const std::string kHeader = "{\"sessionId\":\"old\",\"kind\":\"main\"}\n";

TEST(GeminiCut, WhatGrewIsThereAsItWasLast) {
  const std::string grown = Gemini("b", R"("type":"gemini","content":"x","tokens":1)");
  Cutting cutting(AgentKind::kGemini,
                  kHeader + GeminiUser("a") + "\n" +
                      Gemini("b", R"("type":"gemini","content":"x")") + "\n" +
                      "{\"$set\":{\"lastUpdated\":\"z\"}}\n" + grown + "\n" +
                      GeminiUser("c") + "\n");
  EXPECT_EQ(cutting.CutPrompt(1), kHeader + GeminiUser("a") + "\n" + grown + "\n");
}

TEST(GeminiCut, MessagesInsideAListAreTakenOutOfIt) {
  Cutting cutting(AgentKind::kGemini, kHeader + "{\"$set\":{\"messages\":[" +
                                          GeminiUser("a") + ", " + GeminiUser("b") +
                                          "," + GeminiUser("c") + "]}}\n" +
                                          GeminiUser("d") + "\n");
  EXPECT_EQ(cutting.CutPrompt(2),
            kHeader + GeminiUser("a") + "\n" + GeminiUser("b") + "\n");
  EXPECT_THAT(cutting.Prompts(cutting.CutPrompt(3)),
              ElementsAre("say a", "say b", "say c"));
}

TEST(GeminiCut, WhatWasCompressedAwayCanBeGoneBackTo) {
  Cutting cutting(AgentKind::kGemini,
                  kHeader + GeminiUser("a") + "\n" + GeminiUser("b") + "\n" +
                      "{\"$set\":{\"messages\":[" + GeminiUser("sum") + "]}}\n" +
                      GeminiUser("c") + "\n");
  EXPECT_EQ(cutting.CutPrompt(1), kHeader + GeminiUser("a") + "\n");
  EXPECT_EQ(cutting.Cut(Before(cutting.read().prompts.back())),
            kHeader + GeminiUser("sum") + "\n");
}

TEST(GeminiCut, WhatAListPutsBeforeAPromptStays) {
  Cutting cutting(AgentKind::kGemini, kHeader + GeminiUser("a") + "\n" +
                                          "{\"$set\":{\"messages\":[" +
                                          GeminiUser("sum") + "," + GeminiUser("a") +
                                          "]}}\n" + GeminiUser("b") + "\n");
  EXPECT_EQ(cutting.CutPrompt(0), kHeader + GeminiUser("sum") + "\n");
  EXPECT_THAT(cutting.Prompts(cutting.CutPrompt(2)), ElementsAre("say sum", "say a"));
}

TEST(GeminiCut, WhatItRewoundItselfIsNotThere) {
  Cutting cutting(AgentKind::kGemini,
                  kHeader + GeminiUser("a") + "\n" + GeminiUser("b") +
                      "\n{\"$rewindTo\":\"b\"}\n" + GeminiUser("c") + "\n" +
                      GeminiUser("d") + "\n");
  EXPECT_THAT(cutting.Prompts(cutting.CutPrompt(3)), ElementsAre("say a", "say c"));
  EXPECT_THAT(cutting.Prompts(cutting.CutPrompt(1)), ElementsAre("say a"));
}

TEST(GeminiCut, ACallAndItsAnswerGoTogether) {
  const std::string call = Gemini("b", R"("type":"gemini","toolCalls":[{"id":"1"}])");
  Cutting cutting(
      AgentKind::kGemini,
      kHeader + GeminiUser("a") + "\n" + call + "\n" +
          Gemini("c", R"("type":"user","content":[{"functionResponse":{"id":"1"}}])") +
          "\n" + Gemini("d", R"("type":"gemini","content":"x")") + "\n");
  EXPECT_THAT(cutting.Cut(Before(cutting.read().messages.at(2))),
              Not(HasSubstr("toolCalls")));
  EXPECT_THAT(cutting.Cut(Before(cutting.read().messages.at(3))),
              HasSubstr("toolCalls"));
}

TEST(CopilotCut, ACallAndItsAnswerGoTogether) {
  const std::string begin =
      R"({"type":"user.message","id":"1","data":{"content":"one"}})"
      "\n";
  const std::string call =
      R"({"type":"assistant.message","id":"2","data":{"content":"","toolRequests":[{}]}})"
      "\n";
  const std::string answer = R"({"type":"tool.execution_complete","id":"3","data":{}})"
                             "\n";
  const std::string last =
      R"({"type":"assistant.message","id":"4","data":{"content":"x"}})"
      "\n";
  Cutting cutting(AgentKind::kCopilot, begin + call + last);
  EXPECT_EQ(cutting.Cut(Before(cutting.read().messages.back())), begin);
  Cutting answered(AgentKind::kCopilot, begin + call + answer + last);
  EXPECT_EQ(answered.Cut(Before(answered.read().messages.back())),
            begin + call + answer);
}

std::string Codex(const std::string& turn, const std::string& text) {
  return R"({"type":"event_msg","payload":{"type":"task_started","turn_id":")" + turn +
         "\"}}\n" +
         R"({"type":"event_msg","payload":{"type":"user_message","message":")" + text +
         "\"}}\n";
}

// --- calls and their answers ---------------------------------------------------------

// A conversation of any agent, step by step: P a prompt, C a call, A the answer of the
// last call that has none, a that of the first one, S something that is said, T a
// thought.
class Steps {
 public:
  Steps(AgentKind agent, std::string_view steps) : agent_(agent) {
    if (agent == AgentKind::kGemini) out_ = kHeader;
    for (const char step : steps) {
      begins_.push_back(out_.size());
      const std::string id = "s" + std::to_string(begins_.size());
      if (step == 'C') open_.push_back(id);
      std::string call;
      if (step == 'A' || step == 'a') {
        const auto answered = step == 'A' ? open_.end() - 1 : open_.begin();
        call = *answered;
        open_.erase(answered);
      }
      switch (agent) {
        case AgentKind::kClaude:
          TakeClaude(step, id, call);
          break;
        case AgentKind::kQwen:
          TakeQwen(step, id, call);
          break;
        case AgentKind::kCodex:
          TakeCodex(step, id, call);
          break;
        case AgentKind::kGemini:
          TakeGemini(step, id, call);
          break;
        default:
          TakeCopilot(step, id, call);
      }
    }
    begins_.push_back(out_.size());
  }

  const std::string& text() const { return out_; }

  // How many steps are in the copy that is cut before that one.
  std::string CutAt(size_t step) {
    Cutting cutting(agent_, out_);
    std::optional<CutPoint> point;
    for (const TranscriptMessage& message : cutting.read().messages)
      if (message.offset == begins_[step]) point = Before(message);
    for (const TranscriptPrompt& prompt : cutting.read().prompts)
      if (prompt.turn_offset == begins_[step]) point = Before(prompt);
    if (!point) return "no such message";
    const std::string copy = cutting.Cut(*point);
    for (size_t i = 0; i < begins_.size(); ++i)
      if (copy == out_.substr(0, begins_[i])) return std::to_string(i);
    return copy;
  }

 private:
  std::string ParentThen(const std::string& id) { return std::exchange(parent_, id); }
  void TakeClaude(char step, const std::string& id, const std::string& call) {
    const std::string parent = ParentThen(id);
    if (step == 'P') out_ += User(id, parent, "say " + id);
    if (step == 'S') out_ += Assistant(id, parent);
    if (step == 'T')
      out_ += Part(id, parent, "m" + id, R"({"type":"thinking","thinking":"x"})");
    if (step == 'C')
      out_ += Part(id, parent, "m" + id, R"({"type":"tool_use","id":")" + id + "\"}");
    if (!call.empty())
      out_ += Part(id, parent, "",
                   R"({"type":"tool_result","tool_use_id":")" + call + "\"}");
  }
  void TakeQwen(char step, const std::string& id, const std::string& call) {
    const std::string parent = ParentThen(id);
    const std::string text = R"({"text":"say )" + id + "\"}";
    if (step == 'P') out_ += Qwen("user", id, parent, text);
    if (step == 'S') out_ += Qwen("assistant", id, parent, text);
    if (step == 'T')
      out_ += Qwen("assistant", id, parent, R"({"text":"x","thought":true})");
    if (step == 'C')
      out_ += Qwen("assistant", id, parent, R"({"functionCall":{"id":")" + id + "\"}}");
    if (!call.empty())
      out_ += Qwen("tool_result", id, parent,
                   R"({"functionResponse":{"id":")" + call + "\"}}");
  }
  void TakeCodex(char step, const std::string& id, const std::string& call) {
    const auto item = [](const std::string& payload) {
      return R"({"type":"response_item","payload":{)" + payload + "}}\n";
    };
    if (step == 'P')
      out_ += R"({"type":"event_msg","payload":{"type":"task_started","turn_id":")" +
              id + "\"}}\n" +
              item(R"("type":"message","role":"user","content":[{"text":"say )" + id +
                   "\"}]");
    if (step == 'S')
      out_ += item(R"("type":"message","role":"assistant","content":[{"text":"say )" +
                   id + "\"}]");
    if (step == 'T') out_ += item(R"("type":"reasoning","summary":[])");
    if (step == 'C')
      out_ += item(R"("type":"function_call","name":"x","call_id":")" + id + "\"");
    if (!call.empty())
      out_ += item(R"("type":"function_call_output","call_id":")" + call + "\"");
  }
  void TakeGemini(char step, const std::string& id, const std::string& call) {
    if (step == 'P') out_ += GeminiUser(id) + "\n";
    if (step == 'S')
      out_ += Gemini(id, R"("type":"gemini","content":"say )" + id + "\"") + "\n";
    if (step == 'T')
      out_ += Gemini(id, R"("type":"gemini","content":"","thoughts":[{}])") + "\n";
    if (step == 'C')
      out_ +=
          Gemini(id, R"("type":"gemini","toolCalls":[{"id":")" + id + "\"}]") + "\n";
    if (!call.empty())
      out_ += Gemini(id, R"("type":"user","content":[{"functionResponse":{"id":")" +
                             call + "\"}}]") +
              "\n";
  }
  void TakeCopilot(char step, const std::string& id, const std::string& call) {
    const auto event = [&](const std::string& type, const std::string& data) {
      out_ +=
          R"({"type":")" + type + R"(","id":")" + id + R"(","data":{)" + data + "}}\n";
    };
    if (step == 'P') event("user.message", R"("content":"say )" + id + '"');
    if (step == 'S') event("assistant.message", R"("content":"say )" + id + '"');
    if (step == 'T')
      event("assistant.message",
            R"("content":"","toolRequests":[],"reasoningText":"x")");
    if (step == 'C')
      event("assistant.message", R"("toolRequests":[{"toolCallId":")" + id + "\"}]");
    if (!call.empty())
      event("tool.execution_complete", R"("toolCallId":")" + call + '"');
  }

  const AgentKind agent_;
  std::string out_, parent_;
  std::vector<std::string> open_;
  std::vector<size_t> begins_;
};

struct CallsRow {
  const char* what;
  const char* steps;
  size_t cut;
  const char* kept;
};

// Mutants: cut-drops-what-came-behind-a-dead-call, cut-between-call-and-answer.
TEST(CallsOfACut, AreTornByNoneAndNothingGoesThatTheCutDoesNotTear) {
  for (const AgentKind agent : {AgentKind::kClaude, AgentKind::kQwen, AgentKind::kCodex,
                                AgentKind::kGemini, AgentKind::kCopilot})
    for (const CallsRow& row : {
             CallsRow{"never answered, something said since", "PSPCSPS", 5, "5"},
             {"never answered, a prompt since", "PSPCPS", 5, "5"},
             {"never answered, two turns since", "PCSPSPS", 5, "5"},
             {"never answered, a call with its answer since", "PCSCAP", 5, "5"},
             {"never answered, and nothing since", "PSPCPS", 4, "3"},
             {"never answered, and nothing since but a call like it", "PSPCCPS", 5,
              "3"},
             {"never answered, and nothing since that stays", "PCCSA", 3, "1"},
             {"one that was gone on from, one that was not", "PCSCP", 4, "3"},
             {"answered", "PCASP", 4, "4"},
             {"answered behind the cut", "PCSAS", 2, "1"},
             {"answered behind the cut, something said since", "PCSSAS", 3, "1"},
             {"answered behind the prompt", "PCPASP", 2, "1"},
             {"answered behind the next prompt but one", "PCPPAS", 3, "1"},
             {"answered before the cut, in another turn", "PCPASP", 5, "5"},
             {"one answered before the cut, one behind", "PCCaSAS", 4, "1"},
             {"a torn one, behind one that was gone on from", "PCSCSA", 4, "3"},
         })
      EXPECT_EQ(Steps(agent, row.steps).CutAt(row.cut), row.kept)
          << AgentName(agent) << ": " << row.what;
}

// Mutants: a-copy-ends-with-thoughts.
TEST(CallsOfACut, AndThoughtsAreNoEnd) {
  for (const AgentKind agent : {AgentKind::kClaude, AgentKind::kQwen, AgentKind::kCodex,
                                AgentKind::kGemini, AgentKind::kCopilot})
    for (const CallsRow& row : {
             CallsRow{"before what was said", "PSPTS", 4, "3"},
             {"several", "PSPTTS", 5, "3"},
             {"before a call", "PTCAS", 2, "1"},
             {"behind a call", "PCATS", 4, "3"},
             {"between calls", "PCATCAS", 4, "3"},
             {"before a call that goes", "PTCSA", 3, "1"},
             {"at the end of a turn", "PSPTP", 4, "3"},
             {"before what stays", "PTSP", 3, "3"},
             {"and a call that was never answered", "PSPCTS", 5, "3"},
         })
      EXPECT_EQ(Steps(agent, row.steps).CutAt(row.cut), row.kept)
          << AgentName(agent) << ": " << row.what;
}

// What Claude Code writes when it goes on after it was killed in a call.
TEST(CallsOfACut, OfClaudeCodeStayWithACompactionAndWhatWasTypedInItsShell) {
  const std::string begin = User("a", "", "one") + Assistant("b", "a") +
                            User("c", "b", "two") +
                            Part("d", "c", "m", R"({"type":"tool_use","id":"1"})");
  const std::string shell = Line("user", "e", "d", "<bash-input>ls</bash-input>") +
                            Line("user", "f", "e", "<bash-stdout>x</bash-stdout>");
  const std::string compact =
      R"({"type":"system","subtype":"compact_boundary","uuid":"e","parentUuid":null,)"
      R"("logicalParentUuid":"d"})"
      "\n" +
      Line("user", "f", "e", "This session is being continued",
           R"(,"isCompactSummary":true)");
  for (const std::string& since : {shell, compact}) {
    Cutting cutting(AgentKind::kClaude, begin + since + User("g", "f", "three"));
    EXPECT_EQ(cutting.CutPrompt(2), begin + since);
  }
  // What it is thinking says nothing, nor does a branch that was left.
  const std::string thought =
      Part("e", "d", "n", R"({"type":"thinking","thinking":"x"})");
  const std::string kept =
      User("a", "", "one") + Assistant("b", "a") + User("c", "b", "two");
  Cutting thinking(AgentKind::kClaude, begin + thought + User("g", "e", "three"));
  EXPECT_EQ(thinking.CutPrompt(2), kept);
  Cutting left(AgentKind::kClaude, begin + User("e", "d", "left") +
                                       Assistant("f", "e") + User("g", "d", "three"));
  EXPECT_EQ(left.CutPrompt(3), kept);
  // Nor does an answer in one count.
  const std::string answer =
      Part("f", "e", "", R"({"type":"tool_result","tool_use_id":"1"})");
  Cutting elsewhere(AgentKind::kClaude,
                    begin + User("e", "d", "left") + answer + User("g", "d", "three"));
  EXPECT_EQ(elsewhere.CutPrompt(3), kept);
  // A call of a branch that was left moves no end.
  Cutting branch(AgentKind::kClaude, begin + User("g", "b", "again") +
                                         Assistant("h", "g") + User("i", "h", "three"));
  EXPECT_EQ(branch.CutPrompt(3), User("a", "", "one") + Assistant("b", "a") +
                                     User("g", "b", "again") + Assistant("h", "g"));
}

// The line that says what Codex took back itself stays with what it is about.
TEST(CallsOfACut, OfCodexStayWithWhatItTookBackItself) {
  const auto call = [](const std::string& id) {
    return R"({"type":"response_item","payload":{"type":"function_call","name":"x",)"
           R"("call_id":")" +
           id + "\"}}\n";
  };
  const std::string begin =
      Codex("1", "one") + Codex("2", "two") + call("c") +
      R"({"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}})"
      "\n";
  Cutting cutting(AgentKind::kCodex, begin + Codex("3", "three"));
  EXPECT_EQ(cutting.CutPrompt(2), begin);
  EXPECT_THAT(cutting.Prompts(begin), ElementsAre("one", "(two)"));
}

// Calls without ids are answered in the turn that made them.
TEST(CallsOfACut, WithoutIdsAreOfTheirTurn) {
  const std::string begin = Qwen("user", "a", "", R"({"text":"one"})") +
                            Qwen("assistant", "b", "a", R"({"functionCall":{}})") +
                            Qwen("assistant", "c", "b", R"({"text":"x"})");
  const std::string next = Qwen("user", "d", "c", R"({"text":"two"})") +
                           Qwen("assistant", "e", "d", R"({"functionCall":{}})") +
                           Qwen("tool_result", "f", "e", R"({"functionResponse":{}})");
  Cutting cutting(AgentKind::kQwen,
                  begin + next + Qwen("user", "g", "f", R"({"text":"three"})") +
                      Qwen("tool_result", "h", "g", R"({"functionResponse":{}})"));
  EXPECT_EQ(cutting.CutPrompt(1), begin);
  EXPECT_EQ(cutting.CutPrompt(2), begin + next);
}

// --- the copy
// --------------------------------------------------------------------------

std::string Swapped(const std::string& text, std::vector<TranscriptSwap> swaps) {
  Cutting cutting(AgentKind::kCodex, text + Codex("end", "end"));
  cutting.swaps = std::move(swaps);
  return cutting.Cut(Before(cutting.read().prompts.back()));
}

TEST(CopyOfACut, SwapsWholeStringsOnly) {
  EXPECT_EQ(
      Swapped("{\"a\":\"old\",\"b\":\"old one\",\"c\":\"\\\"old\\\"\",\"old\":1}\n",
              {{.from = "old", .to = "new"}}),
      "{\"a\":\"new\",\"b\":\"old one\",\"c\":\"\\\"old\\\"\",\"new\":1}\n");
}

// Mutant: what-was-said-is-an-id.
TEST(CopyOfACut, SwapsIdsWhereAgentsWriteThemDown) {
  const std::vector<TranscriptSwap> swaps = {
      {.kind = TranscriptSwap::Kind::kId, .from = "old", .to = "new"}};
  for (const char* place :
       {R"("sessionId":"#")", R"("session_id" : "#")", R"("$set":{"sessionId":"#"})",
        R"("type":"session_meta","payload":{"x":{"y":[{}]},"id":"#"})",
        R"("payload":{"a":[1,{"b":2}],"thread_id":"#","session_id":"#"})",
        R"("data":{"sessionId":"#"})", R"("data":{"input":{"sessionId":"#"}})",
        R"("data":{"usage":{"n":{},"accounting":{"sourceSessionId":"#"}}})",
        R"("data":{"usageAccountingWatermarks":{"#":{"id":"old"}}})"}) {
    std::string was = std::string("{\"m\":{\"id\":\"old\"},") + place + "}\n", is = was;
    for (size_t at; (at = was.find('#')) != std::string::npos;)
      was.replace(at, 1, "old");
    for (size_t at; (at = is.find('#')) != std::string::npos;) is.replace(at, 1, "new");
    EXPECT_EQ(Swapped(was, swaps), is);
  }
  // What was said.
  for (
      const char* said :
      {R"({"message":{"role":"user","content":"old"},"toolUseResult":"old"})",
       R"({"message":{"content":[{"type":"text","text":"old"},{"input":{"sessionId":"old"}}]}})",
       R"({"payload":{"content":[{"text":"old","id":"old"}],"output":"old"}})",
       R"({"payload":{"invocation":{"arguments":{"session_id":"old"}}}})",
       R"({"id":"g","content":[{"text":"old"}],"toolCalls":[{"args":{"sessionId":"old"}}]})",
       R"({"data":{"content":"old","arguments":{"sessionId":"old"}},"id":"old"})",
       R"({"data":[{"sessionId":"old"}],"prompt":"old","old":1})"})
    EXPECT_EQ(Swapped(said + std::string("\n"), swaps), said + std::string("\n"));
  // Behind a line that is none.
  EXPECT_EQ(Swapped("{\"a\":{\"\n{\"sessionId\":\"old\"}\n", swaps),
            "{\"a\":{\"\n{\"sessionId\":\"new\"}\n");
}

// Mutants: paths-are-not-quoted, no-json-is-in-json.
TEST(CopyOfACut, WritesPathsAsJsonHasThem) {
  const std::string odd = "/x/new\nline\t\"\\\x01\xc3\xa4";
  const std::string quoted = R"(/x/new\nline\t\"\\\u0001)"
                             "\xc3\xa4";
  const std::vector<TranscriptSwap> to = {
      {.kind = TranscriptSwap::Kind::kPath, .from = "/home/p", .to = odd}};
  EXPECT_EQ(Swapped(R"({"cwd":"/home/p","t":"in /home/p/a"})"
                    "\n",
                    to),
            R"({"cwd":")" + quoted + R"(","t":"in )" + quoted + "/a\"}\n");
  // In JSON that is a string, and in such a one in that.
  const auto inner = [](const std::string& line) {
    const Result<Json> json = Json::Parse(line);
    EXPECT_TRUE(json.ok()) << line;
    return json.ok() && json->Get("a") ? json->Get("a")->Text().value_or("") : "";
  };
  EXPECT_EQ(inner(inner(Swapped(R"({"a":"{\"a\":\"/home/p\"}"})"
                                "\n",
                                to))),
            odd);
  EXPECT_EQ(inner(inner(inner(Swapped(
                R"({"a":" {\n \"b\":1, \"a\":\"{\\\"a\\\":\\\"/home/p\\\"}\"}"})"
                "\n",
                to)))),
            odd);
  EXPECT_EQ(inner(Swapped(R"({"a":"{ echo \"hi\" >/home/p; }"})"
                          "\n",
                          to)),
            "{ echo \"hi\" >" + odd + "; }");
  // URLs of files, and back.
  EXPECT_EQ(inner(Swapped(R"({"a":"file:///home/p/a"})"
                          "\n",
                          to)),
            "file:///x/new%0Aline%09%22%5C%01%C3%A4/a");
}

// Mutant: slashes-amid-a-text-are-plain.
TEST(CopyOfACut, FindsPathsHoweverTheyAreSpelled) {
  const std::vector<TranscriptSwap> from = {{.kind = TranscriptSwap::Kind::kPath,
                                             .from = "/s\n\xc3\xa4\xf0\x9f\x98\x80\"",
                                             .to = "/to"}};
  for (const char* spelled :
       {"/s\\n\xc3\xa4\xf0\x9f\x98\x80\\\"", R"(/s\u000a\u00e4\ud83d\ude00\")",
        R"(\/s\u000A\u00E4\uD83D\uDE00\u0022)",
        "\\u002fs\\n\xc3\xa4\\ud83d\\uDE00\\\""}) {
    EXPECT_EQ(Swapped(std::string("{\"cwd\":\"") + spelled + "\"}\n", from),
              "{\"cwd\":\"/to\"}\n");
    // However much comes at once.
    for (size_t pad = 0; pad < 40; ++pad) {
      const std::string text((256u << 10) - pad, 'x');
      EXPECT_TRUE(Swapped("{\"a\":\"" + text + " " + spelled + "/b\"}\n", from) ==
                  "{\"a\":\"" + text + " /to/b\"}\n")
          << pad;
    }
  }
  // As a tool said it, and in the arguments of a call.
  EXPECT_EQ(Swapped(R"({"a":"said {\"cwd\":\"/s\\n)"
                    "\xc3\xa4\xf0\x9f\x98\x80"
                    R"(\\\"\"}"})"
                    "\n",
                    from),
            R"({"a":"said {\"cwd\":\"/to\"}"})"
            "\n");
  EXPECT_EQ(Swapped(R"({"a":"{\"cwd\":\"/s\\u000a\\u00e4\\ud83d\\ude00\\\"\"}"})"
                    "\n",
                    from),
            R"({"a":"{\"cwd\":\"/to\"}"})"
            "\n");
  // Of JSON amid a text, as writers of JSON spell a slash.
  const std::vector<TranscriptSwap> amid = {
      {.kind = TranscriptSwap::Kind::kPath, .from = "/home/p", .to = "/to/q"}};
  for (const std::string slash :
       {R"(\\/)", R"(\\u002f)", R"(\\u002F)", R"(\\\\/)"}) {  // in a string, that is
    const auto spelled = [&slash](const std::string& a, const std::string& b) {
      return R"({"a":"said {\"k\":\")" + slash + a + slash + b + slash + R"(z\"}"})" +
             "\n";
    };
    EXPECT_EQ(Swapped(spelled("home", "p"), amid), spelled("to", "q"));
    EXPECT_EQ(Swapped(spelled("home", "p2"), amid), spelled("home", "p2"));
  }
  // Others, and what is half there.
  for (const char* other :
       {R"({"a":"/s\n\u00e4\ud83d"})", R"({"a":"/s\n\u00e4\ud83d\ude00\"\u00e4"})",
        R"({"a":"/s\u000","b":"\ud83dx\uzz\q"})", R"({"a":"{\"b\":\"/s\\"})",
        "{\"a\":\"/s\\"})
    EXPECT_EQ(Swapped(std::string(other) + "\n", from), std::string(other) + "\n");
}

// Pieces of JSON in any order, and what is none.
TEST(CopyOfACut, IsTheSameHoweverMuchComesAtOnce) {
  using Kind = TranscriptSwap::Kind;
  static constexpr const char* kPieces[] = {
      "{",    "}",       "[",        "]",
      "\"",   ":",       ",",        "\\",
      "a",    "\\\"",    "\\u00",    "0a",
      "e4",   "\n",      "/s",       "\\n",
      " ",    "old",     "payload",  "\xff",
      ".",    "{\\\"",   "\\/",      "\\ud83d",
      "id",   "\\ude00", "\xc3\xa4", "\"sessionId\":\"old\"",
      "/s\\n"};
  const std::vector<TranscriptSwap> nothing = {
      {.kind = Kind::kPath, .from = "/not/there", .to = "/x"},
      {.kind = Kind::kId, .from = "not there", .to = "x"}};
  const std::vector<TranscriptSwap> swaps = {
      {.kind = Kind::kPath, .from = "/s\n", .to = "/to\"\n"},
      {.kind = Kind::kPath, .from = "/s", .to = "/q"},
      {.kind = Kind::kId, .from = "old", .to = "new"},
      {.from = "a", .to = "b"}};
  const auto swapped = [](const std::string& text, const auto& by, size_t at_once) {
    std::string out;
    EXPECT_TRUE(SwapInto(
                    by,
                    [&out](ByteSpan bytes) {
                      out += AsText(bytes);
                      return Ok();
                    },
                    [&](const TranscriptSink& sink) -> Status {
                      for (size_t at = 0; at < text.size(); at += at_once)
                        BELAY_OK(
                            sink(AsBytes(std::string_view(text).substr(at, at_once))));
                      return Ok();
                    })
                    .ok());
    return out;
  };
  uint64_t state = 1;
  const auto any = [&state](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  for (int round = 0; round < 300; ++round) {
    // Now and then as much as goes out in several parts.
    std::string text(round % 50 == 0 ? 70'000 : 0, 'x');
    for (size_t left = round % 50 == 0 ? 40'000 : any(120); left > 0; --left)
      text += kPieces[any(std::size(kPieces))];
    ASSERT_TRUE(swapped(text, nothing, 1 + any(4096)) == text) << text.substr(0, 200);
    const std::string whole = swapped(text, swaps, text.size() + 1);
    for (const size_t at_once : {size_t{1}, size_t{7}, size_t{3000}})
      ASSERT_TRUE(swapped(text, swaps, at_once) == whole)
          << at_once << " " << text.substr(0, 200);
  }
}

TEST(CopyOfACut, SwapsPathsInYaml) {
  const std::vector<TranscriptSwap> swaps = {
      {.from = "old", .to = "new"},
      {.kind = TranscriptSwap::Kind::kPath, .from = "/p", .to = "/x\ny"}};
  EXPECT_EQ(SwapInYaml("id: old\ncwd: /p\nin: \"/p/a\"\nother: /p-2\n- /q\n", swaps),
            "id: new\ncwd: \"/x\\ny\"\nin: \"/x\\ny/a\"\nother: /p-2\n- /q\n");
}

// Mutant: paths-begin-no-lines.
TEST(CopyOfACut, SwapsPathsWhereverTheyStand) {
  const std::vector<TranscriptSwap> swaps = {
      {.kind = TranscriptSwap::Kind::kPath, .from = "/home/u/p", .to = "/x"}};
  const auto swapped = [&swaps](const std::string& text) {
    const std::string out = Swapped("{\"a\":\"" + text + "\"}\n", swaps);
    return out.substr(6, out.size() - 6 - 3);
  };
  EXPECT_EQ(swapped("/home/u/p"), "/x");
  EXPECT_EQ(swapped("cd /home/u/p && cat '/home/u/p/a.txt'"),
            "cd /x && cat '/x/a.txt'");
  EXPECT_EQ(swapped("it is in /home/u/p. Yes."), "it is in /x. Yes.");
  for (const char* other :
       {"/home/u/pq", "/home/u/p-2/a", "/home/u/p.bak", "/home/u/p_", "/mnt/home/u/p",
        "./home/u/p", "/home/u/p\xc3\xa4"})
    EXPECT_EQ(swapped(other), other);
  // URLs of files, and the sides of a diff.
  EXPECT_EQ(swapped("file:///home/u/p/a, http:///home/u/p"),
            "file:///x/a, http:///home/u/p");
  EXPECT_EQ(swapped("diff --git a/home/u/p/f b/home/u/p/f\\n--- a/home/u/p/f"),
            "diff --git a/x/f b/x/f\\n--- a/x/f");
  // At the beginning of a line, of JSON in JSON, too.
  EXPECT_EQ(swapped("a\\n/home/u/p/b\\t/home/u/p\\\\n/home/u/p\\u001b/home/u/p"),
            "a\\n/x/b\\t/x\\\\n/x\\u001b/x");
  EXPECT_EQ(swapped("in/home/u/p u001b/home/u/p"), "in/home/u/p u001b/home/u/p");
  EXPECT_EQ(
      Swapped(
          "{\"a\":\"file:///home/my%20p/a /home/my p/b\"}\n",
          {{.kind = TranscriptSwap::Kind::kPath, .from = "/home/my p", .to = "/my x"}}),
      "{\"a\":\"file:///my%20x/a /my x/b\"}\n");
}

// One directory that had several paths, one of them beginning as another does.
// Mutant: any-path-that-fits-is-swapped.
TEST(CopyOfACut, OfPathsThatBeginAlikeTheLongestIsSwapped) {
  const AbsPath to = AbsPath::Literal("/a/p/new");
  const auto paths = [](std::initializer_list<const char*> all) {
    std::vector<AbsPath> out;
    for (const char* one : all) out.push_back(AbsPath::Literal(one));
    return out;
  };
  for (const auto& from :
       {paths({"/a/p", "/a/p2", "/a/p/in"}), paths({"/a/p/in", "/a/p2", "/a/p"})}) {
    EXPECT_EQ(Swapped("{\"x\":\"/a/p2/f /a/p/f /a/p/in/f /a/p/inner /a/p3\"}\n",
                      PathSwaps(from, to)),
              "{\"x\":\"/a/p/new/f /a/p/new/f /a/p/new/f /a/p/new/inner /a/p3\"}\n");
    EXPECT_EQ(
        SwapInYaml("cwd: /a/p/in/f\nin: \"/a/p2\"\nat: /a/p3\n", PathSwaps(from, to)),
        "cwd: /a/p/new/f\nin: \"/a/p/new\"\nat: /a/p3\n");
  }
  // It is one of them again.
  EXPECT_EQ(Swapped("{\"x\":\"/a/p/new/f /a/p/f\"}\n",
                    PathSwaps(paths({"/a/p", "/a/p/new"}), to)),
            "{\"x\":\"/a/p/new/f /a/p/new/f\"}\n");
}

TEST(CopyOfACut, SwapsAcrossTheEdgesOfWhatIsReadAtOnce) {
  std::string text, expected;
  for (int i = 0; i < 40000; ++i) {
    const std::string pad(static_cast<size_t>(i % 37), 'x');
    text += "{\"p\":\"" + pad + "\",\"id\":\"the-old-id\"}\n";
    expected += "{\"p\":\"" + pad + "\",\"id\":\"n\"}\n";
  }
  EXPECT_EQ(Swapped(text, {{.from = "the-old-id", .to = "n"}}), expected);
}

TEST(CopyOfACut, SwapsUrlsAcrossTheEdgesOfWhatIsReadAtOnce) {
  std::string text, expected;
  for (int i = 0; i < 40000; ++i) {
    const std::string pad(static_cast<size_t>(i % 37), 'x');
    text += "{\"p\":\"" + pad + "\",\"cwd\":\"file:///home/u/p\"}\n";
    expected += "{\"p\":\"" + pad + "\",\"cwd\":\"file:///n\"}\n";
  }
  EXPECT_EQ(
      Swapped(text,
              {{.kind = TranscriptSwap::Kind::kPath, .from = "/home/u/p", .to = "/n"}}),
      expected);
}

TEST(CopyOfACut, WhatIsWrittenMeanwhileIsNotSeen) {
  const std::string one = Codex("1", "one");
  Cutting cutting(AgentKind::kCodex, one + Codex("2", "two"));
  cutting.Write(one + Codex("2", "two") + Codex("3", "three"));
  EXPECT_EQ(cutting.CutPrompt(1), one);
  cutting.Write(one.substr(0, 20));
  EXPECT_FALSE(cutting.TryCut(Before(cutting.read().prompts[1])).ok());
}

// Mutants: what-lacks-a-newline-was-not-said.
TEST(CopyOfACut, TheLastLineIsWholeWithoutItsNewline) {
  const auto whole = [](AgentKind agent, const std::string& text) {
    Cutting cutting(agent, text);
    const auto cut = cutting.TryWhole();
    EXPECT_TRUE(cut.ok());
    return cut.ok() ? cutting.Copy(*cut) : "";
  };
  for (const AgentKind agent : {AgentKind::kClaude, AgentKind::kQwen, AgentKind::kCodex,
                                AgentKind::kGemini, AgentKind::kCopilot}) {
    const std::string text = Steps(agent, "PSPS").text();
    const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
    const std::string before = text.substr(0, text.size() - last.size());
    EXPECT_EQ(whole(agent, before + last.substr(0, last.size() - 1)), text);
    // One that is not whole is somebody's who is writing.
    EXPECT_EQ(whole(agent, before + last.substr(0, last.size() - 2)), before);
  }
}

TEST(CopyOfACut, ALineTooLongToBeReadIsCopied) {
  const std::string one = Codex("1", "one");
  const std::string giant = "{\"x\":\"" + std::string(kLongestLine, 'y') + "\"}\n";
  Cutting cutting(AgentKind::kCodex, one + giant + Codex("2", "two"));
  EXPECT_TRUE(cutting.CutPrompt(1) == one + giant);
}

// Mutants: what-is-too-long-was-not-said.
TEST(CopyOfACut, TheAnswerThatIsTooLongToBeReadStaysWithItsCall) {
  const std::string call =
      R"({"type":"response_item","payload":{"type":"function_call","call_id":"c"}})";
  const std::string one = Codex("1", "one") + call + "\n" + "{\"x\":\"" +
                          std::string(kLongestLine, 'y') + "\"}\n";
  Cutting cutting(AgentKind::kCodex, one + Codex("2", "two"));
  EXPECT_TRUE(cutting.CutPrompt(1) == one);
}

// Mutants: what-is-too-long-goes-without-a-word.
TEST(CopyOfACut, AMessageThatIsTooLongToBeReadIsNotLeftOutWithoutAWord) {
  const std::string a = GeminiUser("a") + "\n";
  const std::string giant = Gemini("b", R"("type":"gemini","content":")" +
                                            std::string(kLongestLine, 'y') + "\"") +
                            "\n";
  Cutting cutting(AgentKind::kGemini, kHeader + a + giant + GeminiUser("c") + "\n" +
                                          GeminiUser("d") + "\n");
  for (const size_t prompt : {1, 2}) {
    const auto cut = cutting.TryCut(Before(cutting.read().prompts.at(prompt)));
    ASSERT_FALSE(cut.ok()) << prompt;
    EXPECT_EQ(cut.error().code, Errc::kRefused);
    EXPECT_THAT(cut.error().what, HasSubstr("more than 64 MiB"));
  }
  // It came later.
  EXPECT_EQ(cutting.CutPrompt(0), kHeader);
  const auto all = cutting.TryWhole();
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, Errc::kRefused);
}

TEST(CopyOfACut, WhatIsNotThereIsSaid) {
  Cutting cutting(AgentKind::kCodex, Codex("1", "one"));
  EXPECT_EQ(cutting.TryCut({.offset = 7, .record = 7, .id = "x"}).error().code,
            Errc::kNotFound);
  EXPECT_THAT(cutting.CutPrompt(0), IsEmpty());
}

}  // namespace
}  // namespace belay::test
