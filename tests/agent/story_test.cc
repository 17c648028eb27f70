// The story that each real agent was led through (tests/agents/payloads): what its
// hooks say is held against what the project looked like at each of them.

#include <deque>
#include <set>

#include "agent/json.h"
#include "agent/payloads.h"
#include "agent/transcript.h"
#include "base/real_fs.h"

namespace belay::test {
namespace {

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

using Tree = std::map<std::string, std::string>;  // path: mode and text, as written

struct Step {
  std::string name;
  std::string kind;  // as whoever recorded it calls it
  HookEvent event;
  const Tree* tree = nullptr;
};

class Story : public ::testing::TestWithParam<AgentKind> {
 protected:
  void SetUp() override {
    dir = std::string(std::getenv("BELAY_SOURCE_DIR")) + "/tests/agents/payloads/" +
          std::string(AgentName(GetParam())) + "/";
    const std::string text = Slurp(dir + "story.json");
    auto story = Json::Parse(text);
    ASSERT_TRUE(story.ok()) << dir;
    root = *story->Get("root")->Text();
    for (JsonParts parts(*story->Get("trees")); parts.Next();) {
      Tree& tree = trees.emplace_back();
      for (JsonParts entries(parts.value()); entries.Next();)
        tree[entries.name()] = entries.value().Compact();
    }
    for (JsonParts parts(*story->Get("events")); parts.Next();) {
      const std::string name = *parts.value().Get("file")->Text();
      const std::string event = *parts.value().Get("event")->Text();
      auto parsed = ParseHook(GetParam(), event, Slurp(dir + name));
      ASSERT_TRUE(parsed.ok()) << name;
      steps.push_back({name, *parts.value().Get("kind")->Text(), *parsed,
                       &trees[*parts.value().Get("tree")->Uint()]});
    }
  }
  static std::string Key(const ToolCall& call) {
    return call.id.value_or(call.fingerprint);
  }
  bool Explains(const ToolCall& call, const std::string& path) const;

  std::string dir, root;
  std::deque<Tree> trees;
  std::vector<Step> steps;
};

// Whether the call may have changed the path: by what is said of its reach.
bool Story::Explains(const ToolCall& call, const std::string& path) const {
  if (call.reach == ToolReach::kWrites) return true;
  if (call.reach == ToolReach::kReads) return false;
  for (const std::string& named : call.paths) {
    const std::string whole = named[0] == '/' ? named : root + "/" + named;
    // Directories on the way may be made.
    if ((whole + "/").starts_with(root + "/" + path + "/")) return true;
  }
  return false;
}

std::set<std::string> Changed(const Tree& before, const Tree& after) {
  std::set<std::string> paths;
  for (const auto& [path, entry] : before)
    if (!after.contains(path) || after.at(path) != entry) paths.insert(path);
  for (const auto& [path, entry] : after)
    if (!before.contains(path)) paths.insert(path);
  return paths;
}

TEST_P(Story, EventsAreWhatWhoeverRecordedThemCallsThem) {
  for (const Step& step : steps) {
    EventKind expected = EventKind::kOther;
    if (step.kind == "start") expected = EventKind::kSessionStart;
    if (step.kind == "prompt") expected = EventKind::kPrompt;
    if (step.kind == "pre") expected = EventKind::kToolBegin;
    if (step.kind == "post") expected = EventKind::kToolEnd;
    if (step.kind == "stop") expected = EventKind::kTurnEnd;
    if (step.kind == "end") expected = EventKind::kSessionEnd;
    // Cline's agent_start is the turn's beginning; ends of subagents are their own.
    if (GetParam() == AgentKind::kCline && step.kind == "start")
      expected = EventKind::kPrompt;
    const EventKind kind = step.event.kind;
    if (step.event.subagent && expected == EventKind::kTurnEnd)
      EXPECT_TRUE(kind == EventKind::kSubagentEnd || kind == EventKind::kOther);
    else if (kind == EventKind::kSubagentEnd)
      EXPECT_EQ(expected, EventKind::kOther) << step.name;
    else
      EXPECT_EQ(kind, expected) << step.name;
  }
}

TEST_P(Story, APersonPromptedThreeTimes) {
  std::vector<std::string> prompts;
  std::set<std::string> sessions;
  for (const Step& step : steps) {
    sessions.insert(step.event.session);
    if (step.event.kind == EventKind::kPrompt && step.event.human)
      prompts.push_back(step.event.prompt);
  }
  if (GetParam() == AgentKind::kCrush) return;  // tells no prompts
  ASSERT_EQ(prompts.size(), 3u);
  if (GetParam() != AgentKind::kCline) {
    EXPECT_NE(prompts[1].find("turn 2: clean up with the shell"), std::string::npos);
  }
  // A subagent is its parent's, or (opencode) a session that names its parent.
  const size_t expected = GetParam() == AgentKind::kCline      ? 3
                          : GetParam() == AgentKind::kOpencode ? 2
                                                               : 1;
  EXPECT_EQ(sessions.size(), expected);
}

// The heart of it: whatever changed between two events, a call was under way that is
// known to be able to change it, or the agent was not at work.
TEST_P(Story, NothingChangesWithoutACallThatMayHaveDoneIt) {
  std::map<std::string, ToolCall> under_way;
  bool working = false;
  int changes = 0;
  const Step* before = nullptr;
  for (const Step& step : steps) {
    if (before != nullptr && working) {
      for (const std::string& path : Changed(*before->tree, *step.tree)) {
        ++changes;
        // It tells no ends of turns, so a person's work between two is not known as
        // that.
        bool explained = GetParam() == AgentKind::kCrush && path == "person.txt";
        for (const auto& [key, call] : under_way)
          explained = explained || Explains(call, path);
        EXPECT_TRUE(explained)
            << path << " between " << before->name << " and " << step.name;
      }
    }
    const HookEvent& event = step.event;
    if (event.kind == EventKind::kPrompt) working = true;
    if (event.kind == EventKind::kTurnEnd && !event.parent_session) working = false;
    if (event.kind == EventKind::kToolBegin) {
      working = true;
      if (TraitsOf(GetParam()).serial_calls)
        std::erase_if(under_way, [&](const auto& open) {
          return !open.second.background && open.second.reach != ToolReach::kReads &&
                 !event.subagent;
        });
      under_way.emplace(Key(*event.tool), *event.tool);
    }
    if (event.kind == EventKind::kToolEnd && !event.tool->background) {
      EXPECT_EQ(under_way.erase(Key(*event.tool)) + (event.tool->failed ? 1 : 0), 1u)
          << step.name << " ends a call that was not under way";
    }
    before = &step;
  }
  EXPECT_GT(changes, 5);
}

class StoryTranscript : public Story {};

TEST_P(StoryTranscript, HasThePromptsThatTheHooksTold) {
  RealFs fs;
  const char* file = GetParam() == AgentKind::kGemini  ? "transcript-2.jsonl"
                     : GetParam() == AgentKind::kCodex ? "transcript-1.jsonl"
                                                       : "transcript.jsonl";
  auto read = ReadTranscript(fs, GetParam(), AbsPath::Literal(dir + file));
  ASSERT_TRUE(read.ok()) << read.error().what;
  ASSERT_EQ(read->prompts.size(), 3u);
  EXPECT_EQ(read->broken, 0u);
  size_t index = 0;
  for (const Step& step : steps) {
    if (step.event.kind != EventKind::kPrompt || !step.event.human) continue;
    const TranscriptPrompt& prompt = read->prompts[index++];
    EXPECT_EQ(prompt.text, step.event.prompt);
    EXPECT_FALSE(prompt.dead);
    EXPECT_EQ(step.event.anchor.value_or(prompt.anchor), prompt.anchor);
  }
  EXPECT_EQ(read->session, steps.front().event.session);
}

// Those that keep one, and Cline, which keeps one for each of three sessions.
INSTANTIATE_TEST_SUITE_P(Agents, StoryTranscript,
                         ::testing::Values(AgentKind::kClaude, AgentKind::kCodex,
                                           AgentKind::kGemini, AgentKind::kQwen,
                                           AgentKind::kCopilot),
                         [](const auto& agent) {
                           return std::string(AgentName(agent.param));
                         });

INSTANTIATE_TEST_SUITE_P(
    Agents, Story,
    ::testing::Values(AgentKind::kClaude, AgentKind::kCodex, AgentKind::kOpencode,
                      AgentKind::kGemini, AgentKind::kQwen, AgentKind::kCopilot,
                      AgentKind::kReasonix, AgentKind::kCline, AgentKind::kCrush),
    [](const auto& agent) { return std::string(AgentName(agent.param)); });

}  // namespace
}  // namespace belay::test
