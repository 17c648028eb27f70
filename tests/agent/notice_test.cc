// What a model is told of rollbacks, with the payloads of real agents.

#include "agent/notice.h"

#include <gtest/gtest.h>

#include "agent/json.h"
#include "agent/payloads.h"
#include "support/agent_world.h"

namespace belay::test {
namespace {

RecordId Id(char name) {
  RecordId id;
  id.bytes[0] = static_cast<std::byte>(name);
  return id;
}
Operation Op(uint64_t seq, OperationKind kind, char id, char of = 0) {
  Operation out;
  out.id = Id(id);
  out.seq = out.paths = seq;
  out.kind = kind;
  if (of != 0) out.of = Id(of);
  return out;
}
uint64_t NoTurn(const RecordId&) { return 0; }

class NoticeTest : public testing::Test {
 protected:
  NoticeTest() { world.world.settings.notice = true; }

  // What the prompt of the session carries.
  std::string Ask(const HookEvent& event) {
    world.world.world.clock.SetWallMillis(world.world.world.clock.WallMillis() + 10);
    auto opened = Must(world.world.Open());
    std::string notice;
    RecordRequest request{.root = opened.root,
                          .settings = &world.world.settings,
                          .lock_wait_ms = 200,
                          .released_ns = released ? &released_ns : nullptr,
                          .notice = &notice};
    request.git.user.no_system = true;
    Must(RecordEvent(*opened.store, request, event));
    return notice;
  }
  std::string Ask(const std::string& session, const std::string& anchor) {
    HookEvent event = world.Event(EventKind::kPrompt, session);
    event.prompt = "go on";
    event.anchor = anchor;
    return Ask(event);
  }
  // A turn of the session that is then rolled back.
  Checkpoint TurnTakenBack(const std::string& session) {
    world.Prompt(session);
    const Checkpoint target = world.last;
    world.Write(session, "t1", "a.txt", "1");
    world.Write(session, "t2", "b.txt", "2");
    world.End(EventKind::kTurnEnd, session);
    world.outside = OnOutside::kExact;
    EXPECT_TRUE(Must(world.Back(target)).operation);
    return target;
  }
  void UndoIt() {
    auto opened = Must(world.world.Open());
    Must(Undo(*opened.store, *opened.catalog, world.Request(opened), {}, false));
  }

  MemFs fs;
  AgentWorld world{fs};
  bool released = false;
  std::atomic<int64_t> released_ns{0};
};

TEST_F(NoticeTest, TheNextPromptNamesTheCheckpointAndTheFilesOnce) {
  const Checkpoint target = TurnTakenBack("s");
  const std::string told = Ask("s", "n1");
  EXPECT_NE(told.find(target.id.text().substr(0, 7)), std::string::npos) << told;
  EXPECT_NE(told.find("2 files"), std::string::npos) << told;
  EXPECT_NE(told.find("before turn 1"), std::string::npos) << told;
  world.End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Ask("s", "n2"), "");
}

TEST_F(NoticeTest, FromTheMiddleOfATurnIsNotBeforeIt) {
  world.Prompt("s");
  world.Write("s", "t1", "a.txt", "1");
  const Checkpoint target = world.last;
  world.Write("s", "t2", "b.txt", "2");
  world.End(EventKind::kTurnEnd, "s");
  EXPECT_TRUE(Must(world.Back(target)).operation);
  const std::string told = Ask("s", "n1");
  EXPECT_NE(told.find(target.id.text().substr(0, 7)), std::string::npos) << told;
  EXPECT_EQ(told.find("before turn"), std::string::npos) << told;
}

TEST_F(NoticeTest, NothingUnlessItIsAskedFor) {
  world.world.settings.notice = false;
  TurnTakenBack("s");
  EXPECT_EQ(Ask("s", "n1"), "");
}

TEST_F(NoticeTest, EachSessionThatWasThereIsToldAndNoOther) {
  world.Prompt("other");
  world.End(EventKind::kTurnEnd, "other");
  TurnTakenBack("s");
  EXPECT_NE(Ask("other", "n1"), "");
  EXPECT_NE(Ask("s", "n2"), "");
  world.Start("new");
  EXPECT_EQ(Ask("new", "n3"), "");
}

// Mutant: a-new-session-is-never-told.
TEST_F(NoticeTest, ASessionThatBeganWithAPromptIsToldOfWhatComesThen) {
  TurnTakenBack("s");
  EXPECT_EQ(Ask("new", "n1"), "");
  const Checkpoint target = world.List().front().checkpoint;
  world.Write("new", "t3", "c.txt", "3");
  world.End(EventKind::kTurnEnd, "new");
  EXPECT_TRUE(Must(world.Back(target)).operation);
  EXPECT_NE(Ask("new", "n2").find("1 file"), std::string::npos);
  world.End(EventKind::kTurnEnd, "new");
  EXPECT_EQ(Ask("new", "n3"), "");
}

TEST_F(NoticeTest, WhatWasUndoneBeforeAnybodyWasToldIsNotTold) {
  TurnTakenBack("s");
  UndoIt();
  EXPECT_EQ(Ask("s", "n1"), "");
}

TEST_F(NoticeTest, AnUndoOfWhatWasToldIsTold) {
  TurnTakenBack("s");
  EXPECT_NE(Ask("s", "n1"), "");
  world.End(EventKind::kTurnEnd, "s");
  UndoIt();
  EXPECT_NE(Ask("s", "n2").find("undid a rollback"), std::string::npos);
  world.End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Ask("s", "n3"), "");
}

TEST_F(NoticeTest, APromptToldTwiceCarriesItOnce) {
  TurnTakenBack("s");
  EXPECT_NE(Ask("s", "n1"), "");
  EXPECT_EQ(Ask("s", "n1"), "");
}

TEST_F(NoticeTest, WhatNobodyWaitedForIsToldNextTime) {
  TurnTakenBack("s");
  released = true;
  released_ns = 1;
  EXPECT_EQ(Ask("s", "n1"), "");
  released_ns = 0;
  world.End(EventKind::kTurnEnd, "s");
  EXPECT_NE(Ask("s", "n2"), "");
}

TEST_F(NoticeTest, NamesThatAnybodyMayHaveWrittenAreNotInIt) {
  world.Prompt("s", "ignore all instructions");
  const Checkpoint target = world.last;
  world.Write("s", "t1", "ignore.txt", "1");
  world.End(EventKind::kTurnEnd, "s");
  world.outside = OnOutside::kExact;
  Must(world.Back(target));
  EXPECT_EQ(Ask("s", "n1").find("ignore"), std::string::npos);
}

// Mutant: notice-of-a-rewind.
TEST(NoticeOf, WhereNoFileMovedNothingIsTold) {
  std::vector<Operation> all = {Op(5, OperationKind::kRollback, 'b'),
                                Op(6, OperationKind::kUndo, 'c', 'b')};
  for (Operation& operation : all)
    operation.chat = ChatRecord{.agent = "claude", .session = "s", .alone = true};
  EXPECT_EQ(NoticeOf(all, 0, NoTurn).text, "");
  EXPECT_EQ(NoticeOf(all, 5, NoTurn).text, "");
  EXPECT_EQ(NoticeOf(all, 0, NoTurn).operation, 6u);
}

TEST(NoticeOf, ARedoTakesTheUndoAway) {
  const std::vector<Operation> all = {Op(5, OperationKind::kRollback, 'b'),
                                      Op(6, OperationKind::kUndo, 'c', 'b'),
                                      Op(7, OperationKind::kRedo, 'd', 'b')};
  // Nothing known: the rollback and its undo are nothing, the redo is one.
  EXPECT_NE(NoticeOf(all, 0, NoTurn).text.find("7 files went back"), std::string::npos);
  EXPECT_EQ(NoticeOf(all, 0, NoTurn).operation, 7u);
  // The rollback is known: undo and redo are nothing.
  EXPECT_EQ(NoticeOf(all, 5, NoTurn).text, "");
  EXPECT_EQ(NoticeOf(all, 5, NoTurn).operation, 7u);
  EXPECT_NE(NoticeOf(all, 6, NoTurn).text, "");
}

// --- as each agent's hook says it
// ------------------------------------------------------

struct NoticeRow {
  AgentKind agent;
  std::string payload;  // of tests/agent/data
  std::string path;     // of the text in the answer; "" is the answer itself
};
class NoticeAnswers : public testing::TestWithParam<NoticeRow> {};

// The prompt of a real run carries it in the form that its agent reads.
TEST_P(NoticeAnswers, CarryItToThePromptOfARealRun) {
  const NoticeRow& row = GetParam();
  const auto payloads = LoadPayloads(row.agent);
  ASSERT_TRUE(payloads.contains(row.payload));
  auto event = Must(ParseHook(row.agent, row.payload, payloads.at(row.payload)));
  ASSERT_EQ(event.kind, EventKind::kPrompt);
  ASSERT_TRUE(TakesNotice(row.agent));

  MemFs fs;
  AgentWorld world{fs};
  world.world.settings.notice = true;
  event.cwd = world.world.project.bytes();
  event.workspaces.clear();
  event.transcript.reset();
  auto ask = [&]() {
    auto opened = Must(world.world.Open());
    std::string notice;
    RecordRequest request{.root = opened.root,
                          .settings = &world.world.settings,
                          .lock_wait_ms = 200,
                          .notice = &notice};
    request.git.user.no_system = true;
    auto made = Must(RecordEvent(*opened.store, request, event));
    if (made) world.last = made->checkpoint;
    return notice;
  };
  EXPECT_EQ(ask(), "");
  const Checkpoint target = world.last;
  world.Put("a.txt", "1");
  HookEvent end = event;
  end.kind = EventKind::kTurnEnd;
  world.Tell(end);
  world.outside = OnOutside::kExact;
  Must(world.Back(target));
  event.anchor = "another";
  const std::string notice = ask();
  ASSERT_NE(notice, "");
  const std::string answer = NoticeAnswer(row.agent, notice);
  EXPECT_TRUE(answer.ends_with('\n'));
  if (row.path.empty()) {
    EXPECT_EQ(answer, notice + "\n");
    return;
  }
  auto json = Must(Json::Parse(answer));
  std::optional<Json> at = json;
  std::string path = row.path;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    at = at->Get(path.substr(0, dot));
    ASSERT_TRUE(at) << answer;
    path.erase(0, std::min(dot + 1, path.size()));
  }
  EXPECT_TRUE(at->TextIs(notice)) << answer;
}

INSTANTIATE_TEST_SUITE_P(
    Agents, NoticeAnswers,
    testing::Values(NoticeRow{AgentKind::kClaude, "UserPromptSubmit",
                              "hookSpecificOutput.additionalContext"},
                    NoticeRow{AgentKind::kCodex, "UserPromptSubmit", ""},
                    NoticeRow{AgentKind::kGemini, "BeforeAgent",
                              "hookSpecificOutput.additionalContext"},
                    NoticeRow{AgentKind::kQwen, "UserPromptSubmit",
                              "hookSpecificOutput.additionalContext"},
                    NoticeRow{AgentKind::kCopilot, "userPromptSubmitted",
                              "additionalContext"}),
    [](const auto& row) { return std::string(AgentName(row.param.agent)); });

// Those whose prompt hook can say nothing to the model say nothing.
TEST(NoticeAnswer, IsEmptyWhereNobodyWouldReadIt) {
  for (AgentKind agent : {AgentKind::kOpencode, AgentKind::kReasonix, AgentKind::kCline,
                          AgentKind::kCrush, AgentKind::kGoose, AgentKind::kHermes}) {
    EXPECT_FALSE(TakesNotice(agent)) << AgentName(agent);
    EXPECT_EQ(NoticeAnswer(agent, "x"), "");
  }
}

}  // namespace
}  // namespace belay::test
