// What is told of a session and is no call, in another directory in which it made some.

#include "agent/elsewhere.h"

#include <gtest/gtest.h>

#include "agent/recorder_world.h"

namespace belay::test {
namespace {

// The session is at home in one directory; its calls are made in the one that the
// world's project is.
class ElsewhereTest : public RecorderWorld {
 protected:
  ElsewhereTest() { agent_ = AgentKind::kCodex; }

  // As `belay hook` does: recorded at home, then told here.
  std::string Hear(const HookEvent& event) {
    const AbsPath here = world_.project;
    world_.project = home_;
    Must(world_.Dir());
    const std::string said = Tell(event);
    auto opened = Must(world_.Open());
    const Live live = Live::Load(*opened.store, opened.root.id);
    world_.project = here;
    auto there = Must(world_.Open());
    EXPECT_TRUE(TellElsewhere(*there.store,
                              {.root = there.root, .settings = &world_.settings}, event,
                              live.Find(event.session))
                    .ok());
    return said;
  }
  std::string HearPrompt(const std::string& anchor) {
    anchor_ = anchor;
    HookEvent event = Event(EventKind::kPrompt, "s");
    event.prompt = "wish " + anchor;
    return Hear(event);
  }
  void HearEnd(EventKind kind = EventKind::kTurnEnd) { Hear(Event(kind, "s")); }
  void HearStart(const std::string& source) {
    HookEvent event = Event(EventKind::kSessionStart, "s");
    event.source = source;
    Hear(event);
  }
  LiveSession Here() {
    auto opened = Must(world_.Open());
    const Live live = Live::Load(*opened.store, opened.root.id);
    const LiveSession* known = live.Find("s");
    return known == nullptr ? LiveSession{} : *known;
  }

  const AbsPath home_ = AbsPath::Literal("/top/home");
};

// Mutant: calls-elsewhere-go-on.
TEST_F(ElsewhereTest, ACallThatWasRefusedIsOverWithTheTurn) {
  for (const EventKind end : {EventKind::kTurnEnd, EventKind::kSessionEnd}) {
    const std::string n = end == EventKind::kTurnEnd ? "1" : "2";
    HearPrompt("p" + n);
    Pre("s", "c" + n);
    Post("s", "c" + n);
    const Checkpoint target = last_;
    Pre("s", "refused" + n);
    HearEnd(end);
    Put("old.txt", "by hand " + n);
    HearPrompt("q" + n);
    Pre("s", "d" + n);
    Put("its" + n, "1");
    Post("s", "d" + n);
    EXPECT_EQ(Asked(target), "old.txt");
    HearEnd();
  }
  EXPECT_EQ(Authors(),
            "old.txt=s/refused1+outside its1=s/d1 old.txt=s/refused2+outside "
            "its2=s/d2");
}

// What was found before it was known is said of later.
TEST_F(ElsewhereTest, WhatARefusedCallWasTakenToHaveDoneIsDoubtedAtTheEnd) {
  HearPrompt("p1");
  Pre("s", "c1");
  Post("s", "c1");
  const Checkpoint target = last_;
  Pre("s", "refused");
  Put("old.txt", "by hand");
  Pre("s", "c2");
  Post("s", "c2");
  EXPECT_TRUE(SaidAtOnce());
  HearEnd();
  EXPECT_FALSE(SaidAtOnce());
  EXPECT_EQ(Authors(), "old.txt=s/refused+outside");
  EXPECT_EQ(Asked(target), "old.txt");
}

TEST_F(ElsewhereTest, CallsThatEndedAreTheirOwnAndNothingIsRecordedTwice) {
  EXPECT_EQ(HearPrompt("p1"), "wish p1");
  Pre("s", "c1");
  Put("a", "1");
  Post("s", "c1");
  HearEnd();
  const size_t before = Count();
  const int64_t seen_ms = Here().seen_ms;
  world_.world.clock.SetWallMillis(world_.world.clock.WallMillis() + 1000);
  HearPrompt("p2");
  HearPrompt("p2");
  HearPrompt("p3");
  EXPECT_EQ(Count(), before);
  EXPECT_EQ(Here().seen_ms, seen_ms) << "it is not at work here";
  EXPECT_EQ(Here().turn, 3u);
  EXPECT_EQ(Here().prompt, "wish p3");
  EXPECT_TRUE(Here().in_turn);
  Pre("s", "c2");
  EXPECT_EQ(last_.turn, 3u);
  Put("b", "22");
  HearPrompt("p3");
  Put("c", "333");
  Post("s", "c2");
  HearEnd();
  EXPECT_FALSE(Here().in_turn);
  EXPECT_EQ(Authors(), "a=s/c1 b=s/c2 c=s/c2") << "one that is told twice ends nothing";
  EXPECT_TRUE(SaidAtOnce());
  auto opened = Must(world_.Open());
  EXPECT_EQ(Must(opened.catalog->ListRecords({.kind = RecordKind::kTurn})).size(), 3u);
}

// Agents without ids of turns, too.
TEST_F(ElsewhereTest, TurnsHaveOneNumberThoughTheyHaveNoName) {
  HookEvent prompt = Event(EventKind::kPrompt, "s");
  for (const uint64_t turn : {1u, 2u, 3u}) {
    prompt.prompt = "wish " + std::to_string(turn);
    Hear(prompt);
    Pre("s", "c" + std::to_string(turn));
    EXPECT_EQ(last_.turn, turn);
    Post("s", "c" + std::to_string(turn));
    HearEnd();
  }
}

TEST_F(ElsewhereTest, WhereNoCallWasMadeNothingIsKnown) {
  HearPrompt("p1");
  HearEnd();
  EXPECT_EQ(Here().id, "");
}

// Mutant: nobody-writes-unwatched.
TEST_F(ElsewhereTest, InATurnTheBackgroundIsAloneAndBetweenTurnsItIsNot) {
  HearPrompt("p1");
  Background("s", "server");
  Put("within", "1");
  Pre("s", "c1", {"named"});
  Put("named", "1");
  Post("s", "c1", {"named"});
  HearEnd();
  Put("old.txt", "by hand");
  HearPrompt("p2");
  Pre("s", "c2", {"named"});
  Put("again", "22");
  Put("named", "22");
  Post("s", "c2", {"named"});
  EXPECT_EQ(Authors(),
            "within=s/server named=s/c1 old.txt=s/server+outside again=s/server "
            "named=s/c2");
  // Its end is told here, too.
  HookEvent ended = Event(EventKind::kPrompt, "s");
  ended.human = false;
  ended.ended_tasks = {"task-server"};
  Hear(ended);
  Pre("s", "c3");
  Put("last", "333");
  Post("s", "c3");
  EXPECT_EQ(Authors(),
            "within=s/server named=s/c1 old.txt=s/server+outside again=s/server "
            "named=s/c2 last=s/c3");
}

// The user pressed Escape, of which no agent tells.
// Mutant: nobody-writes-unwatched.
TEST_F(ElsewhereTest, BehindATurnThatWasStoppedTheBackgroundIsNotAlone) {
  HearPrompt("p1");
  Background("s", "server");
  const Checkpoint target = last_;
  Pre("other", "c0");
  Put("x", "1");
  Post("other", "c0");
  Put("found.txt", "by hand");
  Pre("other", "c1", {"named"});
  Put("old.txt", "by hand");
  HearPrompt("p2");
  HearPrompt("p2");
  Pre("s", "c2");
  EXPECT_EQ(Authors(),
            "x=s/server+other/c0 found.txt=s/server+outside "
            "old.txt=s/server+outside");
  EXPECT_EQ(Asked(target), "found.txt old.txt x");
}

TEST_F(ElsewhereTest, AProcessThatComesAnewHasNoCallsOfTheOneBefore) {
  HearPrompt("p1");
  Pre("s", "killed");
  HearStart("resume");
  Put("old.txt", "by hand");
  Pre("s", "c1");
  EXPECT_EQ(Authors(), "old.txt=s/killed+outside");
  EXPECT_TRUE(Here().in_turn) << "it goes on";
  HearStart("compact");
  EXPECT_TRUE(Here().in_turn);
}

}  // namespace
}  // namespace belay::test
