// Prompts that nothing calls by a name: told twice, by the hooks of the user and of the
// project, they make one turn; said again, in the same words, another.

#include <gtest/gtest.h>

#include "agent/dialects.h"
#include "agent/recorder_world.h"

namespace belay::test {
namespace {

class ToldTwiceTest : public RecorderWorld {
 protected:
  // As the agent says it; `when` is what changes from prompt to prompt.
  std::string Say(const std::string& when, const std::string& prompt = "go on") {
    const std::string place = world_.project.bytes();
    const std::string words = "\"prompt\":\"" + prompt + "\"}";
    std::string payload, name;
    switch (agent_) {
      case AgentKind::kGemini:
        payload = "{\"session_id\":\"s\",\"cwd\":\"" + place +
                  "\",\"hook_event_name\":\"BeforeAgent\",\"timestamp\":\"" + when +
                  "\"," + words;
        break;
      case AgentKind::kCopilot:
        name = "userPromptSubmitted";
        payload = "{\"sessionId\":\"s\",\"timestamp\":" + when + ",\"cwd\":\"" + place +
                  "\"," + words;
        break;
      default:
        payload = "{\"event\":\"UserPromptSubmit\",\"sessionId\":\"s\",\"cwd\":\"" +
                  place + "\",\"turn\":" + when + "," + words;
    }
    return Tell(Must(ParseHook(agent_, name, payload)));
  }
  // The turn that a prompt began; 0: it was told before.
  uint64_t TurnOf(const std::string& when, const std::string& prompt = "go on") {
    return Say(when, prompt).empty() ? 0 : last_.turn.value_or(0);
  }
  void Work(const std::string& name) {
    Pre("s", name);
    Put(name, "1");
    Post("s", name);
  }
};

// Mutant: the-same-words-are-the-same-prompt.
TEST_F(ToldTwiceTest, TheSameWordsAgainAreAnotherTurnThoughNoEndWasTold) {
  for (const AgentKind agent :
       {AgentKind::kGemini, AgentKind::kCopilot, AgentKind::kReasonix})
    for (const Transcripts kept : {Transcripts::kKeep, Transcripts::kOff}) {
      SCOPED_TRACE(std::string(AgentName(agent)) +
                   (kept == Transcripts::kOff ? ", off" : ""));
      agent_ = agent;
      world_.settings.transcripts = kept;
      ids_ = false;
      Start("s");
      const uint64_t first = TurnOf("1");
      ASSERT_GT(first, 0u);
      EXPECT_EQ(TurnOf("1"), 0u) << "by the project's hook";
      Work("a");
      EXPECT_EQ(TurnOf("2"), first + 1) << "interrupted, and said again";
      EXPECT_EQ(TurnOf("2"), 0u);
      EXPECT_EQ(TurnOf("3"), first + 2) << "interrupted before it did anything";
      EXPECT_EQ(TurnOf("4", "something else"), first + 3);
      End(EventKind::kSessionEnd, "s");
    }
}

// An agent whose every run counts from one, and that was killed.
TEST_F(ToldTwiceTest, WhatWasHeardInBetweenMakesItAnother) {
  agent_ = AgentKind::kReasonix;
  ids_ = false;
  Start("s");
  EXPECT_EQ(TurnOf("1"), 1u);
  Start("s");
  EXPECT_EQ(TurnOf("1"), 2u);
  Work("a");
  EXPECT_EQ(TurnOf("1"), 3u);
}

// Both hooks of one prompt run at once, and beside them those of the start. Where the
// directory is busy the second may come behind a call.
TEST_F(ToldTwiceTest, TheSecondHookOfOnePromptMayComeLate) {
  agent_ = AgentKind::kCopilot;
  ids_ = false;
  EXPECT_EQ(TurnOf("1"), 1u);
  Start("s");
  EXPECT_EQ(TurnOf("1"), 0u);
  Work("a");
  EXPECT_EQ(TurnOf("1"), 0u);
  agent_ = AgentKind::kReasonix;
  EXPECT_EQ(TurnOf("7"), 2u);
  Work("b");
  released_ns_ = 1;
  EXPECT_EQ(TurnOf("7"), 0u);
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(TurnOf("7"), 3u);
}

}  // namespace
}  // namespace belay::test
