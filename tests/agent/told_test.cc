// What a host tells of its conversation: kept, shown, counted, and gone with its
// session.

#include "agent/told.h"

#include <gmock/gmock.h>

#include "agent/aftermath.h"
#include "agent/rewind.h"
#include "agent/session_view.h"
#include "core/annotate.h"
#include "core/sessions.h"
#include "core/transcripts.h"
#include "store/session_lock.h"
#include "support/agent_world.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ToldTest : public ::testing::Test {
 protected:
  HookEvent EventOf(EventKind kind, uint64_t turn) {
    HookEvent event = world.Event(kind, "h");
    event.agent = AgentKind::kGeneric;
    event.host = "desk";
    event.anchor = "t-" + std::to_string(turn);
    return event;
  }
  // As `belay hook` does it. The copies that are new.
  uint64_t Tell(const HookEvent& event) {
    if (event.kind != EventKind::kOther) world.Tell(event);
    return After(event);
  }
  uint64_t After(const HookEvent& event) {
    auto opened = Must(world.world.Open());
    const Aftermath after =
        AfterEvent(*opened.store, opened.root, world.world.settings, event);
    EXPECT_THAT(after.failed, IsEmpty());
    return after.copies;
  }
  // A prompt, two messages within, and one with the end.
  void Turn(uint64_t number) {
    const std::string n = std::to_string(number);
    HookEvent event = EventOf(EventKind::kPrompt, number);
    event.prompt = "wish " + n;
    event.message_id = "m-" + n + "0";
    event.message_index = 10 * number;
    event.messages = {{.role = "user",
                       .id = *event.message_id,
                       .index = event.message_index,
                       .text = event.prompt}};
    EXPECT_EQ(Tell(event), 1u);
    world.Put("file", event.prompt);
    HookEvent said = EventOf(EventKind::kOther, number);
    said.messages = {
        {.role = "assistant", .id = "m-" + n + "1", .index = 10 * number + 1},
        {.role = "tool", .id = "m-" + n + "2", .index = 10 * number + 2}};
    for (HookMessage& message : said.messages) message.text = message.role + " of " + n;
    EXPECT_EQ(Tell(said), 1u);
    EXPECT_EQ(Tell(said), 0u) << "a hook that runs twice";
    HookEvent end = EventOf(EventKind::kTurnEnd, number);
    end.messages = {said.messages[1],  // again
                    {.role = "assistant", .text = "done with " + n}};
    EXPECT_EQ(Tell(end), 1u);
  }
  std::vector<std::string> Shown() {
    auto opened = Must(world.world.Open());
    const SessionView view =
        Must(LookAtSession(*opened.store, *opened.catalog, opened.root, "h"));
    EXPECT_EQ(view.trouble, "");
    std::vector<std::string> out;
    for (const SessionTurn& turn : view.turns) {
      std::string line = turn.prompt + (turn.taken_back_by ? " -" : ":");
      for (const TranscriptMessage& message : turn.messages)
        line += " [" + message.role + " " + message.text + "]";
      out.push_back(line);
    }
    return out;
  }
  ChatRecord Plan(const std::optional<uint64_t>& turn,
                  const std::optional<std::string>& message) {
    auto opened = Must(world.world.Open());
    return Must(PlanRewind(*opened.store, *opened.catalog,
                           {.session = "h",
                            .turn = turn,
                            .message = message,
                            .settings = &world.world.settings,
                            .root = world.world.project}))
        .chat.record;
  }
  void Rewind(uint64_t turn) {
    auto opened = Must(world.world.Open());
    RewindPlan plan = Must(PlanRewind(*opened.store, *opened.catalog,
                                      {.session = "h",
                                       .turn = turn,
                                       .settings = &world.world.settings,
                                       .root = world.world.project}));
    plan.chat.record.alone = true;
    RollbackRequest request = world.world.RequestFor(opened.root);
    request.chat = &plan.chat;
    Must(belay::Rewind(*opened.store, request, {}));
  }
  std::vector<TranscriptCopy> Copies() {
    auto opened = Must(world.world.Open());
    return Must(ListTranscripts(*opened.catalog, "h"));
  }

  MemFs disk;
  AgentWorld world{disk};
};

// Mutants: what-hosts-tell-is-lost, told-twice-counts-twice.
TEST_F(ToldTest, MessagesAreKeptAndShownWithTheirTurns) {
  for (uint64_t number : {1u, 2u}) Turn(number);
  EXPECT_THAT(
      Shown(),
      ElementsAre("wish 1: [assistant assistant of 1] [tool tool of 1] [assistant done "
                  "with 1]",
                  "wish 2: [assistant assistant of 2] [tool tool of 2] [assistant done "
                  "with 2]"));
  ASSERT_EQ(Copies().size(), 1u) << "one grows";
  EXPECT_EQ(Copies()[0].record.path, "");
}

TEST_F(ToldTest, AMessageThatComesLateBelongsToItsTurn) {
  Turn(1);
  HookEvent late = EventOf(EventKind::kOther, 1);
  late.messages = {{.role = "assistant", .id = "late", .text = "late"}};
  Turn(2);
  After(late);
  EXPECT_THAT(Shown()[0], ::testing::HasSubstr("[assistant late]"));
}

// Mutant: two-hosts-have-one-conversation.
TEST_F(ToldTest, WhatAnotherHostSaysUnderTheSameIdIsNotOfTheConversation) {
  Turn(1);
  const auto before = Shown();
  HookEvent said = EventOf(EventKind::kOther, 1);
  said.messages = {{.role = "assistant", .id = "x", .text = "another's"}};
  said.host = "chair";
  auto opened = Must(world.world.Open());
  const Aftermath after =
      AfterEvent(*opened.store, opened.root, world.world.settings, said);
  ASSERT_EQ(after.failed.size(), 1u);
  EXPECT_THAT(after.failed[0].what, ::testing::HasSubstr("at work for the host desk"));
  EXPECT_EQ(Shown(), before);
  said.host = "desk";
  EXPECT_EQ(After(said), 1u);
}

// Mutant: hosts-are-not-counted.
TEST_F(ToldTest, WhatARewindTakesBackIsCounted) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  EXPECT_EQ(Plan(2, {}).taken, 8u);
  EXPECT_EQ(Plan(2, {}).kept, 4u);
  EXPECT_EQ(Plan({}, "m-30").taken, 4u);
  Rewind(3);
  EXPECT_EQ(Plan(2, {}).taken, 4u) << "of the third it was told already";
  Turn(4);
  EXPECT_EQ(Plan(2, {}).taken, 8u);
  EXPECT_EQ(Plan(2, {}).kept, 4u);
  EXPECT_THAT(Shown()[2], ::testing::StartsWith("wish 3 -"));
}

// Mutants: a-host-is-rewound-forward, what-was-cut-off-is-counted.
TEST_F(ToldTest, WhatWasCutOffWithinATurnIsNeitherGoneForwardToNorCounted) {
  for (uint64_t number : {1u, 2u}) Turn(number);
  auto plan = [&](const std::string& message) {
    auto opened = Must(world.world.Open());
    return PlanRewind(*opened.store, *opened.catalog,
                      {.session = "h",
                       .message = message,
                       .settings = &world.world.settings,
                       .root = world.world.project});
  };
  {
    RewindPlan cut = Must(plan("m-11"));
    EXPECT_TRUE(cut.chat.record.inside);
    cut.chat.record.alone = true;
    auto opened = Must(world.world.Open());
    RollbackRequest request = world.world.RequestFor(opened.root);
    request.chat = &cut.chat;
    Must(belay::Rewind(*opened.store, request, {}));
  }
  const auto forward = plan("m-12");
  ASSERT_FALSE(forward.ok());
  EXPECT_EQ(forward.error().code, Errc::kRefused);
  EXPECT_THAT(
      forward.error().what,
      ::testing::HasSubstr("message m-12 in turn 1 of session h was taken back"));
  EXPECT_THAT(forward.error().hint, ::testing::HasSubstr("belay undo"));
  EXPECT_EQ(plan("m-20").error().code, Errc::kRefused);
  EXPECT_EQ(Plan({}, "m-10").taken, 1u) << "of the rest it was told already";
  EXPECT_EQ(Plan({}, "m-10").kept, 0u);
  Turn(3);
  EXPECT_EQ(Plan(3, {}).taken, 4u);
  EXPECT_EQ(Plan(3, {}).kept, 1u);
}

// Mutant: turns-stay-behind-what-goes.
TEST_F(ToldTest, WhatWasSaidBeforeTheFirstTurnTakesAllTurnsAlong) {
  HookEvent start = EventOf(EventKind::kSessionStart, 0);
  start.anchor.reset();
  for (const char* id : {"s-1", "s-2", "s-3"})
    start.messages.push_back({.role = "assistant", .id = id, .text = id});
  Tell(start);
  for (uint64_t number : {1u, 2u}) Turn(number);
  auto plan = [&](const std::string& message) {
    auto opened = Must(world.world.Open());
    return PlanRewind(*opened.store, *opened.catalog,
                      {.session = "h",
                       .message = message,
                       .settings = &world.world.settings,
                       .root = world.world.project});
  };
  RewindPlan cut = Must(plan("s-2"));
  EXPECT_EQ(cut.chat.record.taken, 10u);
  EXPECT_EQ(cut.chat.record.kept, 1u);
  cut.chat.record.alone = true;
  auto opened = Must(world.world.Open());
  RollbackRequest request = world.world.RequestFor(opened.root);
  request.chat = &cut.chat;
  Must(belay::Rewind(*opened.store, request, {}));
  opened = Must(world.world.Open());
  const Chats chats = Must(Chats::Read(*opened.catalog));
  const auto kept = chats.After(chats.in_effect().back()).kept;
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->turn, 0u);
  EXPECT_EQ(kept->message, "s-2");
  EXPECT_THAT(Shown(), ElementsAre(::testing::StartsWith("wish 1 -"),
                                   ::testing::StartsWith("wish 2 -")));
  for (const char* gone : {"m-20", "m-10", "s-3", "s-2"}) {
    const auto forward = plan(gone);
    EXPECT_TRUE(!forward.ok() && forward.error().code == Errc::kRefused) << gone;
  }
  EXPECT_EQ(Plan({}, "s-1").taken, 1u) << "of the rest it was told already";
  Turn(3);
  EXPECT_EQ(Plan({}, "s-1").taken, 5u);
  EXPECT_EQ(Plan(3, {}).kept, 1u);
}

// Mutant: what-names-no-turn-is-before-all.
TEST_F(ToldTest, AMessageThatACheckpointAloneNamesIsInTheTurnOfItsTime) {
  for (uint64_t number : {1u, 2u}) Turn(number);
  auto opened = Must(world.world.Open());
  CaptureRequest request;
  request.root = opened.root;
  request.settings = &world.world.settings;
  request.git.user.no_system = true;
  request.session = "h";
  request.message_id = "x";
  EXPECT_EQ(Must(CaptureCheckpoint(*opened.store, request)).checkpoint.turn,
            std::nullopt);
  Turn(3);
  const ChatRecord plan = Plan({}, "x");
  EXPECT_TRUE(plan.inside);
  EXPECT_EQ(plan.inherited, 2u);
  EXPECT_EQ(plan.turn, 3u);
  EXPECT_EQ(plan.taken, 4u);
  EXPECT_EQ(plan.kept, 8u);
}

// Mutants: what-began-a-turn-goes-with-its-checkpoint, a-turns-id-is-a-messages.
TEST_F(ToldTest, WhatBeganATurnIsKnownWhenItsCheckpointIsGone) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  auto forget = [&](uint64_t turn) {
    auto opened = Must(world.world.Open());
    std::vector<RecordId> gone;
    for (const CatalogEntry& entry :
         Must(opened.catalog->ListCheckpoints({.session = "h", .turn = turn})))
      gone.push_back(entry.checkpoint.id);
    Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, gone));
  };
  forget(2);
  for (const ChatRecord& plan : {Plan(2, {}), Plan({}, "m-20"), Plan({}, "t-2")}) {
    EXPECT_EQ(plan.turn, 2u);
    EXPECT_FALSE(plan.inside);
    EXPECT_EQ(plan.message, "m-20");
    EXPECT_EQ(plan.message_index, 20u);
    EXPECT_EQ(plan.taken, 8u);
    EXPECT_EQ(plan.kept, 4u);
  }
  // Of a prompt that it did not tell nobody knows: an id of the turn is none of a
  // message.
  HookEvent event = EventOf(EventKind::kPrompt, 4);
  event.prompt = "wish 4";
  event.message_id = "m-40";
  event.messages = {{.role = "assistant", .id = "m-41", .text = "wish 4"}};
  Tell(event);
  Turn(5);
  forget(4);
  EXPECT_EQ(Plan(4, {}).message, std::nullopt);
  EXPECT_EQ(Plan(4, {}).message_index, std::nullopt);
}

// A host that calls turns by the messages that began them.
TEST_F(ToldTest, ATurnsOwnIdIsItsMessagesWhereThereIsNoOther) {
  for (const char* id : {"m-1", "m-2", "m-3"}) {
    HookEvent event = EventOf(EventKind::kPrompt, 1);
    event.prompt = "wish";
    event.anchor = event.message_id = id;
    world.Tell(event);
    world.Put("file", id);
    world.Tell(EventOf(EventKind::kTurnEnd, 1));
  }
  auto opened = Must(world.world.Open());
  std::vector<RecordId> gone;
  for (const CatalogEntry& entry :
       Must(opened.catalog->ListCheckpoints({.session = "h", .turn = 2})))
    gone.push_back(entry.checkpoint.id);
  Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, gone));
  EXPECT_EQ(Plan(2, {}).message, "m-2");
}

// Indexes are places in the host's list, and given again after a rewind.
// Mutant: one-index-is-one-message.
TEST_F(ToldTest, AnIndexThatWasGivenAgainIsCountedInItsTurn) {
  auto turn = [&](uint64_t number, uint64_t index) {
    const std::string n = std::to_string(number);
    HookEvent event = EventOf(EventKind::kPrompt, number);
    event.prompt = "wish " + n;
    event.message_id = "u" + n;
    event.message_index = index;
    event.messages = {
        {.role = "user", .id = "u" + n, .index = index, .text = event.prompt}};
    Tell(event);
    world.Put("file", n);
    HookEvent end = EventOf(EventKind::kTurnEnd, number);
    end.messages = {
        {.role = "assistant", .id = "a" + n, .index = index + 1, .text = "done"}};
    Tell(end);
  };
  for (uint64_t number : {1u, 2u, 3u}) turn(number, 2 * (number - 1));
  Rewind(2);
  turn(4, 2);
  turn(5, 4);
  {
    auto opened = Must(world.world.Open());
    Must(Undo(*opened.store, *opened.catalog, world.world.RequestFor(opened.root), {},
              false));
  }
  EXPECT_EQ(Plan(4, {}).taken, 4u);
  EXPECT_EQ(Plan(4, {}).kept, 6u);
  EXPECT_EQ(Plan(3, {}).taken, 6u);
  EXPECT_EQ(Plan(5, {}).taken, 2u);
  EXPECT_EQ(Plan({}, "a4").taken, 3u);
}

// Mutants: an-id-is-never-free-again, an-id-is-the-first-messages.
TEST_F(ToldTest, AnIdThatWasTakenBackIsFreeAgain) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  Rewind(2);
  // The host forgot m-20 and what came behind, and goes on from there.
  HookEvent event = EventOf(EventKind::kPrompt, 4);
  event.prompt = "new wish";
  event.message_id = "m-20";
  event.message_index = 20;
  event.messages = {{.role = "user", .id = "m-10", .index = 10, .text = "wish 1"},
                    {.role = "user", .id = "m-20", .index = 20, .text = "new wish"}};
  Tell(event);
  world.Put("file", "new wish");
  HookEvent end = EventOf(EventKind::kTurnEnd, 4);
  end.messages = {
      event.messages[1],
      {.role = "assistant", .id = "m-21", .index = 21, .text = "new answer"}};
  Tell(end);
  EXPECT_THAT(Shown(), ::testing::ElementsAre(::testing::StartsWith("wish 1: "),
                                              ::testing::StartsWith("wish 2 - ["),
                                              ::testing::StartsWith("wish 3 - ["),
                                              "new wish: [assistant new answer]"));
  EXPECT_EQ(Plan(4, {}).taken, 2u);
  EXPECT_EQ(Plan(4, {}).kept, 4u);
  EXPECT_EQ(Plan({}, "m-20").turn, 4u);
  EXPECT_EQ(Plan({}, "m-20").taken, 2u);
  const ChatRecord within = Plan({}, "m-21");
  EXPECT_EQ(within.inherited, 4u);
  EXPECT_EQ(within.message_index, 21u);
  EXPECT_EQ(within.taken, 1u);
  // Told again it is the new one.
  Tell(end);
  EXPECT_EQ(Plan(4, {}).taken, 2u);
  // What was taken back counts again: both are there, and the later is meant.
  {
    auto opened = Must(world.world.Open());
    Must(Undo(*opened.store, *opened.catalog, world.world.RequestFor(opened.root), {},
              false));
  }
  EXPECT_THAT(Shown()[1], ::testing::StartsWith("wish 2: ["));
  EXPECT_EQ(Shown()[3], "new wish: [assistant new answer]");
  EXPECT_EQ(Plan({}, "m-20").turn, 4u);
  EXPECT_EQ(Plan(2, {}).kept, 4u);
}

// Mutant: what-a-host-inherited-has-no-place.
TEST_F(ToldTest, WhatWasInheritedHasItsPlaceAndIsCounted) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  HookEvent start = world.Event(EventKind::kSessionStart, "c");
  start.agent = AgentKind::kGeneric;
  start.host = "desk";
  start.source = "fork";
  start.parent_session = "h";
  start.parent_turns = 2;
  world.Tell(start);
  HookEvent prompt = start;
  prompt.kind = EventKind::kPrompt;
  prompt.parent_session.reset();
  prompt.anchor = "t-7";
  prompt.prompt = "wish 7";
  prompt.message_id = "m-70";
  prompt.message_index = 30;
  prompt.messages = {{.role = "user", .id = "m-70", .index = 30, .text = "wish 7"}};
  Tell(prompt);
  auto opened = Must(world.world.Open());
  auto plan = [&](std::optional<uint64_t> turn, std::optional<std::string> message) {
    return Must(PlanRewind(*opened.store, *opened.catalog,
                           {.session = "c",
                            .turn = turn,
                            .message = std::move(message),
                            .settings = &world.world.settings,
                            .root = world.world.project}))
        .chat.record;
  };
  const ChatRecord of_turn = plan(2, {});
  EXPECT_EQ(of_turn.message, "m-20");
  EXPECT_EQ(of_turn.message_index, 20u);
  EXPECT_EQ(of_turn.taken, 5u) << "four of the second turn, one of its own";
  EXPECT_EQ(of_turn.kept, 4u);
  EXPECT_EQ(plan({}, "m-20").turn, 2u);
  EXPECT_EQ(plan(3, {}).message, "m-70");
  // One within an inherited turn; what was said behind the fork is not its own.
  const ChatRecord within = plan({}, "m-21");
  EXPECT_TRUE(within.inside);
  EXPECT_EQ(within.inherited, 2u);
  EXPECT_EQ(within.message_index, 21u);
  EXPECT_EQ(within.taken, 4u);
  EXPECT_EQ(within.kept, 5u);
  EXPECT_EQ(PlanRewind(*opened.store, *opened.catalog,
                       {.session = "c",
                        .message = "m-31",
                        .settings = &world.world.settings,
                        .root = world.world.project})
                .error()
                .code,
            Errc::kNotFound);
  EXPECT_EQ(plan(3, {}).kept, 8u);
}

// A host that names its messages and tells none: only checkpoints know where the turns
// of its parent's begin. Mutant: what-a-host-inherited-has-no-place.
TEST_F(ToldTest, WhatWasInheritedHasItsPlaceByItsCheckpointsAlone) {
  auto prompt = [&](const char* session, uint64_t number) {
    HookEvent event = EventOf(EventKind::kPrompt, number);
    event.session = session;
    event.prompt = "wish " + std::to_string(number);
    event.message_id = "m-" + std::to_string(number) + "0";
    event.message_index = 10 * number;
    return event;
  };
  for (uint64_t number : {1u, 2u, 3u}) {
    Tell(prompt("h", number));
    world.Put("file", "after " + std::to_string(number));
  }
  HookEvent fork = EventOf(EventKind::kSessionStart, 2);
  fork.session = "c";
  fork.source = "fork";
  fork.parent_session = "h";
  fork.parent_turns = 2;
  world.Tell(fork);
  Tell(prompt("c", 7));
  auto opened = Must(world.world.Open());
  auto plan = [&](std::optional<uint64_t> turn, std::optional<std::string> message) {
    return PlanRewind(*opened.store, *opened.catalog,
                      {.session = "c",
                       .turn = turn,
                       .message = std::move(message),
                       .settings = &world.world.settings,
                       .root = world.world.project});
  };
  const ChatRecord of_turn = Must(plan(2, {})).chat.record;
  EXPECT_EQ(of_turn.message, "m-20");
  EXPECT_EQ(of_turn.message_index, 20u);
  EXPECT_EQ(of_turn.inherited, 1u);
  EXPECT_EQ(Must(plan({}, "m-10")).chat.record.turn, 1u);
  EXPECT_EQ(Must(plan({}, "m-70")).chat.record.turn, 3u);
  EXPECT_EQ(plan({}, "m-30").error().code, Errc::kNotFound) << "behind the fork";
}

// Mutant: what-is-being-told-is-not-waited-for.
TEST_F(ToldTest, WhatIsStillBeingToldIsNotCountedWrong) {
  Turn(1);
  auto opened = Must(world.world.Open());
  HeldLock hook = Must(LockSession(*opened.store, "h", LockMode::kShared, 0));
  EXPECT_EQ(Plan(1, {}).taken, std::nullopt) << "a hook is writing";
  hook.Release();
  EXPECT_EQ(Plan(1, {}).taken, 4u);
  // What is told of another session is of no interest.
  hook = Must(LockSession(*opened.store, "other", LockMode::kExclusive, 0));
  EXPECT_EQ(Plan(1, {}).taken, 4u);
}

// Mutant: a-cut-turn-is-not-marked.
TEST_F(ToldTest, ATurnThatIsCutIsMarkedFromThereOn) {
  for (uint64_t number : {1u, 2u}) Turn(number);
  {
    auto opened = Must(world.world.Open());
    const ChatPlan plan{.record = {.agent = "desk",
                                   .session = "h",
                                   .hosted = true,
                                   .turn = 2,
                                   .inside = true,
                                   .message = "m-12",
                                   .inherited = 1}};
    RollbackRequest request = world.world.RequestFor(opened.root);
    request.chat = &plan;
    Must(belay::Rewind(*opened.store, request, {}));
  }
  auto opened = Must(world.world.Open());
  const SessionView view =
      Must(LookAtSession(*opened.store, *opened.catalog, opened.root, "h"));
  ASSERT_EQ(view.turns.size(), 2u);
  EXPECT_FALSE(view.turns[0].taken_back_by);
  ASSERT_TRUE(view.turns[0].cut);
  EXPECT_EQ(view.turns[0].cut->message, "m-12");
  EXPECT_EQ(view.turns[0].messages[view.turns[0].cut->at].id, "m-12");
  EXPECT_TRUE(view.turns[1].taken_back_by);
  EXPECT_FALSE(view.turns[1].cut);
}

TEST_F(ToldTest, NothingIsKeptUnlessConversationsAre) {
  world.world.settings.transcripts = Transcripts::kAnchors;
  HookEvent event = EventOf(EventKind::kPrompt, 1);
  event.prompt = "wish";
  event.messages = {{.role = "user", .id = "m", .text = "wish"}};
  EXPECT_EQ(Tell(event), 0u);
  EXPECT_THAT(Copies(), IsEmpty());
  EXPECT_EQ(Plan(1, {}).taken, std::nullopt);
}

TEST_F(ToldTest, ManyMessagesGrowOneCopyOfManyPieces) {
  HookEvent event = EventOf(EventKind::kPrompt, 1);
  event.prompt = "wish";
  Tell(event);
  event.kind = EventKind::kOther;
  uint64_t number = 0;
  for (int i = 0; i < 40; ++i) {
    event.messages.clear();
    for (int j = 0; j < 20; ++j, ++number)
      event.messages.push_back({.role = "assistant",
                                .id = "m" + std::to_string(number),
                                .text = std::string(4000 + number % 97, 'x')});
    EXPECT_EQ(After(event), 1u);
  }
  auto opened = Must(world.world.Open());
  const Told told = Must(ReadTold(*opened.store, *opened.catalog, "h"));
  ASSERT_EQ(told.messages.size(), number);
  for (uint64_t i = 0; i < number; ++i)
    ASSERT_EQ(told.messages[i].id, "m" + std::to_string(i));
  EXPECT_EQ(Copies().size(), 1u);
  EXPECT_GT(told.bytes, 3'000'000u);
}

TEST_F(ToldTest, GoesWithItsSession) {
  Turn(1);
  auto opened = Must(world.world.Open());
  auto plan = Must(PlanSessionDeletion(*opened.catalog, "h"));
  Must(DeleteSession(*opened.store, *opened.catalog, plan));
  EXPECT_THAT(Copies(), IsEmpty());
}

}  // namespace
}  // namespace belay::test
