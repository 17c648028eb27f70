// Whose doing a change is while a call goes on in the background and nobody says
// whether its agent does.

#include <gtest/gtest.h>

#include "agent/recorder_world.h"

namespace belay::test {
namespace {

class BackgroundTest : public RecorderWorld {
 protected:
  BackgroundTest() { agent_ = AgentKind::kClaude; }

  // A turn with a server in the background.
  Checkpoint Serve() {
    Start("s");
    Start("other");
    Prompt("s", "p1");
    const Checkpoint turn = last_;
    Background("s", "server");
    return turn;
  }
};

// By the agent itself, in the middle of its turn.
TEST_F(BackgroundTest, WhatComesAfterItWasStoppedIsNotItsDoing) {
  const Checkpoint turn = Serve();
  Put("its", "1");
  HookEvent stopped = Event(EventKind::kTaskEnd, "s");
  stopped.tool = ToolCall{.name = "KillShell", .reach = ToolReach::kReads};
  stopped.ended_tasks = {"task-server"};
  EXPECT_EQ(Tell(stopped), "a task in the background was stopped");
  EXPECT_EQ(Tell(stopped), "") << "told twice";
  Put("by hand", "1");
  Pre("s", "t", {"named"});
  EXPECT_EQ(Authors(), "its=s/server by hand=outside");
  EXPECT_EQ(Asked(turn), "by hand");
  // Where nobody looks at single calls, nor at this.
  world_.settings.granularity = Granularity::kTurn;
  Put("more", "1");
  EXPECT_EQ(Tell(stopped), "");
}

// The user pressed Escape, of which no agent tells.
// Mutant: nobody-stops-an-agent.
TEST_F(BackgroundTest, APersonMayWorkBesideItOnceTheTurnWasStopped) {
  const Checkpoint turn = Serve();
  Put("old.txt", "by hand");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "old.txt=s/server+outside");
  EXPECT_EQ(Asked(turn), "old.txt");
  EXPECT_TRUE(SaidAtOnce());
  Put("its", "1");
  Pre("s", "t", {"named"});
  EXPECT_EQ(Authors(), "old.txt=s/server+outside its=s/server") << "in the next turn";
  Put("old.txt", "at the end");
  End(EventKind::kSessionEnd, "s");
  Prompt("s", "p3");
  Background("s", "server2");
  Put("old.txt", "at a start");
  Start("s", "resume");
  EXPECT_EQ(Authors(),
            "old.txt=s/server+outside its=s/server old.txt=s/server+outside "
            "old.txt=s/server2+outside");
}

// One that is told twice ends nothing, nor does what an agent tells itself within the
// turn. What a task in the background says comes when it waits.
TEST_F(BackgroundTest, APromptThatNobodyWroteMayComeAfterEscape) {
  Serve();
  Prompt("s", "p1");
  HookEvent note = Event(EventKind::kPrompt, "s");
  note.human = false;
  Put("a", "1");
  Tell(note);
  note.prompt = "<task-notification>";
  Put("b", "22");
  Tell(note);
  EXPECT_EQ(Authors(), "a=s/server b=s/server+outside");
}

// Mutant: others-say-that-a-turn-goes-on.
TEST_F(BackgroundTest, WhatAnotherSessionFoundIsDoubtedWhenTheTurnHadBeenStopped) {
  const Checkpoint turn = Serve();
  Put("old.txt", "by hand");
  Prompt("other", "q");
  EXPECT_EQ(Asked(turn), "old.txt") << "nobody knows yet";
  Put("more", "by hand");
  HookEvent sub = Call(EventKind::kToolBegin, "s", "of a subagent", {"named"});
  sub.subagent = "agent-7";
  Tell(sub);
  EXPECT_TRUE(SaidAtOnce());
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "old.txt=s/server+outside more=s/server+outside");
  EXPECT_EQ(Asked(turn), "more old.txt");
}

// Mutant: who-goes-on-may-have-stopped.
TEST_F(BackgroundTest, WhatAnotherSessionFoundIsItsOwnWhenTheTurnGoesOn) {
  const Checkpoint turn = Serve();
  Put("a", "1");
  Prompt("other", "q");
  EXPECT_EQ(Asked(turn), "a");
  anchor_ = "p1";
  Pre("s", "t", {"named"});
  EXPECT_EQ(Asked(turn), "");
  Put("b", "1");
  Prompt("other", "r");
  anchor_ = "p1";
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "a=s/server b=s/server");
  EXPECT_EQ(Asked(turn), "");
  EXPECT_TRUE(SaidAtOnce());
}

// Its process was killed, or says nothing when it ends.
// Mutant: who-comes-anew-knows-the-background.
TEST_F(BackgroundTest, OfAProcessThatIsGoneItIsNotAlone) {
  Serve();
  End(EventKind::kTurnEnd, "s");
  Start("s", "clear");
  Prompt("s", "p2");
  Put("a", "1");
  Pre("s", "t1");
  Post("s", "t1");
  EXPECT_EQ(Authors(), "a=s/server") << "it was cleared, and is the same process";
  Start("s", "resume");
  Prompt("s", "p3");
  const Checkpoint turn = last_;
  Pre("s", "t2", {"named"});
  Put("named", "1");
  Post("s", "t2", {"named"});
  Put("old.txt", "by hand");
  Pre("s", "t3");
  Put("its", "1");
  Post("s", "t3");
  EXPECT_EQ(Authors(),
            "a=s/server named=s/t2 old.txt=s/server+outside its=s/server+s/t3");
  EXPECT_EQ(Asked(turn), "old.txt");
  End(EventKind::kTurnEnd, "s");
  EXPECT_TRUE(SaidAtOnce());
}

// Not for ever: nobody is there to say that it ended.
TEST_F(BackgroundTest, OfAProcessThatIsGoneItIsOverInTime) {
  Serve();
  Start("s", "resume");
  int hours = 0;
  auto look_an_hour_later = [&] {
    world_.world.clock.SetWallMillis(world_.world.clock.WallMillis() + 3'600'000);
    Put("old.txt", std::string(static_cast<size_t>(++hours), 'x'));
    Prompt("s", "p" + std::to_string(hours));
  };
  for (int i = 0; i < 4; ++i) look_an_hour_later();
  Start("s", "resume");  // does not begin anew
  look_an_hour_later();
  look_an_hour_later();
  std::string shared = "old.txt=s/server+outside", said = shared;
  for (int i = 0; i < 4; ++i) said += " " + shared;
  EXPECT_EQ(Authors(), said + " old.txt=outside");
}

}  // namespace
}  // namespace belay::test
