// A conversation as people look at it: turns, messages, checkpoints, what was taken
// back.

#include "agent/session_view.h"

#include <gtest/gtest.h>

#include "agent/aftermath.h"
#include "support/agent_world.h"

namespace belay::test {
namespace {

class SessionViewTest : public testing::Test {
 protected:
  SessionView Look(const std::string& session) {
    auto opened = Must(world.world.Open());
    return Must(LookAtSession(*opened.store, *opened.catalog, opened.root, session));
  }
  SessionSummary Summary(const std::string& session) { return Look(session).summary; }

  HookEvent With(EventKind kind, const std::string& session) {
    HookEvent event = world.Event(kind, session);
    event.transcript = "/top/agent/" + session + ".jsonl";
    return event;
  }
  void After(const HookEvent& event) {
    auto opened = Must(world.world.Open());
    EXPECT_TRUE(AfterEvent(*opened.store, opened.root, world.world.settings, event)
                    .failed.empty());
  }
  void Prompt(const std::string& session, const std::string& anchor,
              const std::string& text) {
    HookEvent event = With(EventKind::kPrompt, session);
    event.prompt = text;
    if (!anchor.empty()) event.anchor = anchor;
    world.Tell(event);
  }
  static std::string Asked(const std::string& id, const std::string& parent,
                           const std::string& text) {
    return R"({"type":"user","uuid":"u-)" + id + R"(","parentUuid":)" +
           (parent.empty() ? "null" : "\"" + parent + "\"") +
           R"(,"sessionId":"s","promptId":")" + id +
           R"(","message":{"role":"user","content":")" + text + "\"}}\n";
  }
  static std::string Said(const std::string& id, const std::string& text) {
    return R"({"type":"assistant","uuid":"a-)" + id + R"(","parentUuid":"u-)" + id +
           R"(","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":")" +
           text + "\"}]}}\n";
  }
  void Talk(const std::string& text) {
    world.PutAt(AbsPath::Literal("/top/agent"), "s.jsonl", text);
  }

  MemFs fs;
  AgentWorld world{fs};
};

TEST_F(SessionViewTest, TurnsHaveTheirMessagesAndCheckpoints) {
  Prompt("s", "p1", "first");
  world.Write("s", "t1", "a.txt", "1");
  world.End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2", "second");
  world.Write("s", "t2", "b.txt", "2");
  Talk(Asked("p1", "", "first") + Said("p1", "done one") +
       Asked("p2", "a-p1", "second") + Said("p2", "done two"));
  const SessionView view = Look("s");
  ASSERT_EQ(view.turns.size(), 2u);
  EXPECT_EQ(view.turns[0].turn, 1u);
  EXPECT_EQ(view.turns[0].prompt, "first");
  ASSERT_EQ(view.turns[0].messages.size(), 1u);
  EXPECT_EQ(view.turns[0].messages[0].text, "done one");
  EXPECT_EQ(view.turns[1].messages[0].text, "done two");
  // The prompt's own, before and after the call.
  EXPECT_EQ(view.turns[0].checkpoints.size(), 3u);
  EXPECT_EQ(view.turns[1].checkpoints.size(), 3u);
  EXPECT_FALSE(view.turns[1].taken_back_by);
  EXPECT_EQ(view.state, SessionState::kRunning);
  ASSERT_TRUE(view.transcript);
  EXPECT_EQ(view.transcript->path, "/top/agent/s.jsonl");
}

TEST_F(SessionViewTest, WhatWasTakenBackIsMarkedUntilItIsUndone) {
  Prompt("s", "p1", "first");
  world.Write("s", "t1", "a.txt", "1");
  world.End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2", "second");
  const Checkpoint target = world.last;
  world.Write("s", "t2", "b.txt", "2");
  // A call of the first turn that went on: what that turn ended with is still there.
  HookEvent late = world.Call(EventKind::kToolBegin, "s", "t3");
  late.anchor = "p1";
  world.Tell(late);
  ASSERT_EQ(world.last.turn, 1u);
  world.End(EventKind::kTurnEnd, "s");
  const auto done = Must(world.Back(target));
  ASSERT_TRUE(done.operation);
  SessionView view = Look("s");
  EXPECT_FALSE(view.turns[0].files_taken_back_by);
  EXPECT_EQ(view.turns[1].files_taken_back_by, done.operation->id);
  EXPECT_FALSE(view.turns[1].taken_back_by) << "nothing that was said";
  EXPECT_FALSE(view.turns[1].checkpoints[0].taken_back_by);
  EXPECT_EQ(view.turns[1].checkpoints[2].taken_back_by, done.operation->id);
  {
    auto opened = Must(world.world.Open());
    Must(Undo(*opened.store, *opened.catalog, world.Request(opened), {}, false));
  }
  view = Look("s");
  EXPECT_FALSE(view.turns[1].files_taken_back_by);
  EXPECT_FALSE(view.turns[1].checkpoints[2].taken_back_by);
}

// Mutant: rewound-turns-are-not-marked.
TEST_F(SessionViewTest, WhatWasSaidAndTakenBackIsMarkedUntilItIsUndone) {
  for (const char* text : {"first", "second", "third"}) {
    world.Prompt("s", text);
    world.End(EventKind::kTurnEnd, "s");
  }
  auto taken = [&] {
    std::string out;
    for (const SessionTurn& turn : Look("s").turns)
      out += turn.taken_back_by ? 'x' : '-';
    return out;
  };
  EXPECT_EQ(Look("s").goes_on, "s");
  {
    auto opened = Must(world.world.Open());
    const ChatPlan plan{.record = {.agent = "claude",
                                   .session = "s",
                                   .forked = "f",
                                   .turn = 2,
                                   .inherited = 1}};
    RollbackRequest request = world.Request(opened);
    request.chat = &plan;
    Must(belay::Rewind(*opened.store, request, {}));
  }
  EXPECT_EQ(taken(), "-xx");
  EXPECT_EQ(Look("s").goes_on, "f");
  // One who went on there all the same has all of it.
  world.Prompt("s", "fourth");
  EXPECT_EQ(taken(), "----");
  EXPECT_EQ(Look("s").goes_on, "s");
  {
    auto opened = Must(world.world.Open());
    Must(Undo(*opened.store, *opened.catalog, world.Request(opened), {}, false));
  }
  EXPECT_EQ(taken(), "----");
  EXPECT_EQ(Look("s").goes_on, "s");
}

// Mutant: turns-shown-twice.
// Taken back again where it went on, and in the middle of a turn.
// Mutant: what-a-fork-lost-counts-in-the-original.
TEST_F(SessionViewTest, WhatWasTakenBackOfItsForksIsMarkedToo) {
  std::string text;
  for (const char* id : {"1", "2", "3", "4"}) {
    Prompt("s", id, id);
    text += Asked(id, text.empty() ? "" : "a-" + std::string(1, char(*id - 1)), id) +
            Said(id, "answer");
    world.End(EventKind::kTurnEnd, "s");
  }
  Talk(text);
  After(With(EventKind::kTurnEnd, "s"));
  const auto back = [&](const ChatRecord& chat) {
    auto opened = Must(world.world.Open());
    const ChatPlan plan{.record = chat};
    RollbackRequest request = world.Request(opened);
    request.chat = &plan;
    Must(belay::Rewind(*opened.store, request, {}));
  };
  const auto taken = [&] {
    std::string out;
    for (const SessionTurn& turn : Look("s").turns)
      out += turn.taken_back_by ? 'x' : turn.cut ? '/' : '-';
    return out;
  };
  back({.agent = "claude", .session = "s", .forked = "f", .turn = 4, .inherited = 3});
  EXPECT_EQ(taken(), "---x");
  back({.agent = "claude", .session = "f", .forked = "g", .turn = 3, .inherited = 2});
  EXPECT_EQ(taken(), "--xx");
  back({.agent = "claude",
        .session = "g",
        .forked = "h",
        .turn = 3,
        .inside = true,
        .message = "a-2",
        .inherited = 2});
  EXPECT_EQ(Look("s").goes_on, "h");
  EXPECT_EQ(taken(), "-/xx");
  EXPECT_EQ(Look("s").turns[1].cut->at, 0u);
  for (const char* left : {"--xx", "---x", "----"}) {
    auto opened = Must(world.world.Open());
    Must(Undo(*opened.store, *opened.catalog, world.Request(opened), {}, false));
    EXPECT_EQ(taken(), left);
  }
}

TEST_F(SessionViewTest, TurnsThatNothingWasRecordedOfAreToldOnce) {
  world.world.settings.transcripts = Transcripts::kOff;
  Prompt("s", "p1", "first");
  Prompt("s", "p2", "second");
  Talk(Asked("p1", "", "first") + Said("p1", "done one") +
       Asked("p2", "a-p1", "second") + Said("p2", "done two"));
  const SessionView view = Look("s");
  EXPECT_EQ(view.turns.size(), 2u);
  EXPECT_FALSE(view.trouble.empty());
}

TEST_F(SessionViewTest, ABranchTheAgentLeftIsMarked) {
  Prompt("s", "p1", "first");
  Prompt("s", "p2", "second");
  Prompt("s", "p3", "third");
  Talk(Asked("p1", "", "first") + Said("p1", "one") + Asked("p2", "a-p1", "second") +
       Said("p2", "two") + Asked("p3", "a-p1", "third") + Said("p3", "three"));
  const SessionView view = Look("s");
  ASSERT_EQ(view.turns.size(), 3u);
  EXPECT_FALSE(view.turns[0].left);
  EXPECT_TRUE(view.turns[1].left);
  EXPECT_FALSE(view.turns[2].left);
}

TEST_F(SessionViewTest, PromptsWithoutAnAnchorAreFoundByTheirWordsFromTheEnd) {
  Prompt("s", "", "go on");
  world.End(EventKind::kTurnEnd, "s");
  Prompt("s", "", "go on");
  // The transcript begins with a prompt that nobody recorded, of the same words.
  Talk(Asked("x0", "", "go on") + Said("x0", "zero") + Asked("x1", "a-x0", "go on") +
       Said("x1", "one") + Asked("x2", "a-x1", "go on  ") + Said("x2", "two"));
  const SessionView view = Look("s");
  ASSERT_EQ(view.turns.size(), 3u);
  EXPECT_FALSE(view.turns[0].turn);
  EXPECT_EQ(view.turns[1].turn, 1u);
  EXPECT_EQ(view.turns[2].turn, 2u);
  EXPECT_EQ(view.turns[2].messages[0].text, "two");
}

TEST_F(SessionViewTest, TurnsThatTheTranscriptLostAreInTheirPlace) {
  Prompt("s", "p1", "first");
  Prompt("s", "p2", "second");
  Prompt("s", "p3", "third");
  Talk(Asked("p2", "", "second") + Said("p2", "two"));
  const SessionView view = Look("s");
  ASSERT_EQ(view.turns.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(view.turns[i].turn, i + 1);
  EXPECT_EQ(view.turns[1].messages.size(), 1u);
}

TEST_F(SessionViewTest, WithoutATranscriptThereAreTurnsAndAReason) {
  Prompt("s", "p1", "first");
  const SessionView view = Look("s");
  ASSERT_EQ(view.turns.size(), 1u);
  EXPECT_FALSE(view.transcript);
  EXPECT_NE(view.trouble, "");
}

TEST_F(SessionViewTest, AForkHasItsAncestorsTurns) {
  Prompt("s", "p1", "first");
  Prompt("s", "p2", "second");
  HookEvent begun = world.Event(EventKind::kSessionStart, "fork");
  begun.parent_session = "s";
  begun.parent_turns = 1;
  world.Tell(begun);
  HookEvent asked = world.Event(EventKind::kPrompt, "fork");
  asked.prompt = "another second";
  world.Tell(asked);
  const SessionView view = Look("fork");
  ASSERT_EQ(view.turns.size(), 2u);
  EXPECT_EQ(view.turns[0].session, "s");
  EXPECT_EQ(view.turns[0].prompt, "first");
  EXPECT_FALSE(view.turns[0].checkpoints.empty());
  EXPECT_EQ(view.turns[1].session, "fork");
  EXPECT_EQ(view.turns[1].turn, 2u);
}

TEST_F(SessionViewTest, ASessionEndsOnceAndIsOpenAgainWhenItGoesOn) {
  Prompt("s", "p1", "first");
  world.End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Look("s").state, SessionState::kOpen);
  auto count = [&] {
    auto opened = Must(world.world.Open());
    return Must(opened.catalog->ListRecords({.kind = RecordKind::kSession})).size();
  };
  const size_t before = count();
  const HookEvent end = With(EventKind::kSessionEnd, "s");
  for (int i = 0; i < 2; ++i) {
    world.Tell(end);
    After(end);
  }
  EXPECT_EQ(count(), before + 1);
  EXPECT_TRUE(Summary("s").ended_ms);
  EXPECT_EQ(Look("s").state, SessionState::kEnded);
  // Resumed: at once by what was heard, for good by what was recorded.
  world.Start("s");
  EXPECT_EQ(Look("s").state, SessionState::kOpen);
  Prompt("s", "p2", "second");
  EXPECT_FALSE(Summary("s").ended_ms);
  EXPECT_EQ(Look("s").state, SessionState::kRunning);
  world.Tell(end);
  After(end);
  EXPECT_EQ(count(), before + 2);
}

// Mutant: an-end-tells-the-rewind-again.
TEST_F(SessionViewTest, AnEndTellsNothingOfARewindThatWasToldBefore) {
  Prompt("s", "p1", "first");
  {
    auto opened = Must(world.world.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(ToRecord(
        SessionRecord{
            .session = "s", .agent = "claude", .by = SessionRecord::By::kGoesOn},
        RecordId(opened.store->random().NewId()), opened.root.id, 1));
    Must(writer->Commit());
  }
  const HookEvent end = With(EventKind::kSessionEnd, "s");
  world.Tell(end);
  After(end);
  auto opened = Must(world.world.Open());
  const auto records =
      Must(opened.catalog->ListRecords({.kind = RecordKind::kSession}));
  const SessionRecord newest = Must(ToSession(records.front()));
  EXPECT_TRUE(newest.ended);
  EXPECT_EQ(newest.by, SessionRecord::By::kNone);
}

TEST_F(SessionViewTest, ASubagentThatEndsIsASubagentStill) {
  Prompt("s", "p1", "first");
  HookEvent begun = world.Event(EventKind::kSessionStart, "sub");
  begun.parent_session = "s";
  begun.source = "subagent";
  world.Tell(begun);
  HookEvent end = world.Event(EventKind::kSessionEnd, "sub");
  world.Tell(end);
  After(end);
  auto opened = Must(world.world.Open());
  EXPECT_EQ(Must(WithSubagents(*opened.catalog, "s")),
            (std::vector<std::string>{"s", "sub"}));
}

TEST_F(SessionViewTest, AnEndNamesTheDirectoryThatWasToldLast) {
  Prompt("s", "p1", "first");
  HookEvent begun = world.Event(EventKind::kSessionStart, "fork");
  begun.parent_session = "s";
  begun.parent_turns = 1;
  world.Tell(begun);
  begun.parent_session.reset();
  begun.source = "resume";
  begun.cwd += "/below";
  world.Tell(begun);
  HookEvent end = world.Event(EventKind::kSessionEnd, "fork");
  world.Tell(end);
  After(end);
  auto opened = Must(world.world.Open());
  const SessionRecord last = Must(LatestSession(*opened.catalog, "fork")).value();
  EXPECT_TRUE(last.ended);
  EXPECT_EQ(last.cwd, begun.cwd);
  EXPECT_EQ(last.parent, "s");
}

TEST_F(SessionViewTest, NobodysSessionIsNotFound) {
  Prompt("s", "p1", "first");
  auto opened = Must(world.world.Open());
  auto view = LookAtSession(*opened.store, *opened.catalog, opened.root, "t");
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace belay::test
