// Whose doing every change is, whatever order and number the events come in.

#include <gtest/gtest.h>

#include "agent/recorder_world.h"
#include "core/annotate.h"

namespace belay::test {
namespace {

class RecorderAuthorsTest : public RecorderWorld {};

TEST_F(RecorderAuthorsTest, EveryChangeHasItsAuthor) {
  EXPECT_EQ(Start("s"), "session started");
  EXPECT_EQ(Prompt("s", "p1", "\n  tidy up\nplease"), "tidy up");
  EXPECT_EQ(last_.turn, 1u);
  EXPECT_EQ(last_.message_id, "p1");
  Put("mine", "1");
  EXPECT_EQ(Pre("s", "t1"), "before Bash: make");
  Put("its", "1");
  Delete("old.txt");
  EXPECT_EQ(Post("s", "t1"), "after Bash: make");
  Put("mine2", "1");
  EXPECT_EQ(Pre("s", "t2", {"src/a"}), "before Write src/a");
  Put("src/a", "1");
  EXPECT_EQ(Post("s", "t2", {"src/a"}), "after Write src/a");
  EXPECT_EQ(End(EventKind::kTurnEnd, "s"), "");
  EXPECT_EQ(Authors(), "mine=outside its=s/t1 old.txt=s/t1 mine2=outside src/a=s/t2");
}

// The one that was killed in a call is not remembered for ever.
// Mutant: who-is-forgotten-did-it-all.
TEST_F(RecorderAuthorsTest, WhatAForgottenSessionStandsForIsDoubtedBeforeThat) {
  Prompt("s", "p1");
  const Checkpoint turn = last_;
  Pre("s", "t1");
  Put("old.txt", "by hand");
  Start("other");
  EXPECT_EQ(Authors(), "old.txt=s/t1");
  EXPECT_EQ(Asked(turn), "old.txt");
  for (int i = 0; i < 64; ++i) Start("o" + std::to_string(i));
  EXPECT_EQ(Authors(), "old.txt=s/t1+outside");
  EXPECT_EQ(Asked(turn), "old.txt");
}

// Mutant: two-hosts-are-one.
TEST_F(RecorderAuthorsTest, TwoHostsThatCallASessionTheSameAreNotMixed) {
  auto tell = [&](const std::string& host, HookEvent event) {
    event.host = host;
    return Tell(event);
  };
  HookEvent prompt = Event(EventKind::kPrompt, "1");
  prompt.prompt = "wish";
  EXPECT_EQ(tell("acme", prompt), "wish");
  const Checkpoint turn = last_;
  HookEvent begin = Call(EventKind::kToolBegin, "1", "c1", {"b"});
  HookEvent end = Call(EventKind::kToolEnd, "1", "c1", {"b"});
  EXPECT_NE(tell("bravo", begin).find("failed: session 1 is at work for the host acme"),
            std::string::npos);
  Put("b", "bravo's");
  EXPECT_NE(tell("bravo", end).find("failed: "), std::string::npos);
  EXPECT_EQ(tell("acme", Event(EventKind::kTurnEnd, "1")), "end of the turn");
  EXPECT_EQ(Authors(), "b=outside");
  EXPECT_EQ(Asked(turn), "b");
  // Once it is over, and where no host is named, the id is what counts.
  tell("acme", Event(EventKind::kSessionEnd, "1"));
  prompt.prompt = "another";
  EXPECT_EQ(tell("bravo", prompt), "another");
  EXPECT_EQ(tell("", begin), "before Write b");
}

// A rollback asks about it before anybody has looked again, too.
// Mutant: what-nobody-saw-is-nobodys.
TEST_F(RecorderAuthorsTest, WhatIsNotAsItWasBeforeItWasLeftOutIsAskedAbout) {
  world_.settings.max_file_size = {.bytes = 100};
  for (const char* name : {"gone", "there", "back"}) Put(name, "1");
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  const std::string large(200, 'x');
  for (const char* name : {"gone", "there", "back"}) Put(name, large);
  Prompt("s", "q");
  EXPECT_EQ(Asked(turn), "back gone there");
  Delete("gone");
  Put("back", "1");
  EXPECT_EQ(Asked(turn), "gone there");
  Pre("s", "t");
  Delete("there");
  EXPECT_EQ(Asked(turn), "gone there") << "nobody knows when the call ends";
  Post("s", "t");
  EXPECT_EQ(Asked(turn), "gone") << "it was the call's";
}

// A tree that lacks a path does not tell that it went after all.
// Mutant: left-out-goes-unseen.
TEST_F(RecorderAuthorsTest, WhatGoesAfterItWasLeftOutHasItsAuthor) {
  world_.settings.max_file_size = {.bytes = 100};
  Put("big", "1");
  Put("late", "1");
  Put("its", "1");
  Start("s");
  const std::string large(200, 'x');
  Put("big", large);
  Put("its", large);
  Prompt("s", "p1");
  Delete("big");
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2");
  Pre("s", "t2");
  Delete("its");
  Post("s", "t2");
  End(EventKind::kTurnEnd, "s");
  released_ns_ = 1;
  Put("late", "2");
  Prompt("s", "p3");
  EXPECT_TRUE(last_.partial);
  released_ns_ = 0;
  Delete("late");
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p4");
  EXPECT_EQ(Authors(), "big=outside its=s/t2 late=outside");
}

TEST_F(RecorderAuthorsTest, EditsOfTwoSessionsAtOnceAreToldApart) {
  Start("a");
  Start("b");
  Pre("a", "t1", {"one"});
  Pre("b", "t2", {"two"});
  Put("one", "1");
  Put("two", "22");
  Put("three", "333");
  Post("a", "t1", {"one"});
  Post("b", "t2", {"two"});
  EXPECT_EQ(Authors(), "one=a/t1 three=outside two=b/t2");
}

TEST_F(RecorderAuthorsTest, WhatTwoShellsMayHaveDoneIsShared) {
  Start("a");
  Start("b");
  Pre("a", "t1");
  Put("alone", "1");
  Pre("b", "t2");
  Put("both", "22");
  Post("a", "t1");
  Put("alone2", "333");
  Post("b", "t2");
  EXPECT_EQ(Authors(), "alone=a/t1 both=a/t1+b/t2 alone2=b/t2");
}

TEST_F(RecorderAuthorsTest, WhatAnEditNamesIsItsOwnThoughAShellIsAtWork) {
  Start("a");
  Start("b");
  Pre("a", "shell");
  Pre("b", "edit", {"named"});
  Put("named", "1");
  Put("other", "22");
  Post("b", "edit", {"named"});
  Post("a", "shell");
  EXPECT_EQ(Authors(), "named=b/edit other=a/shell");
}

TEST_F(RecorderAuthorsTest, PathsMayBeWrittenInAnyWay) {
  Start("s");
  Pre("s", "t", {world_.project.bytes() + "/sub/../one", "./two"});
  Put("one", "1");
  Put("two", "22");
  Post("s", "t", {world_.project.bytes() + "/sub/../one", "./two"});
  EXPECT_EQ(Authors(), "one=s/t two=s/t");
}

// Refused, or it threw: what a person does then is not its doing for certain.
// Mutant: refused-calls-stay-at-work.
TEST_F(RecorderAuthorsTest, ACallThatLaterOnesOvertookIsDoubted) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  Pre("s", "refused");
  Pre("s", "patch", {"named", "other"});
  Put("a", "1");
  Pre("s", "t1");
  Put("b", "1");
  Post("s", "t1");
  EXPECT_EQ(Authors(), "a=s/refused b=s/refused+s/t1") << "in parallel";
  Put("person", "1");
  Pre("s", "t2");
  Put("c", "1");
  Put("named", "1");
  Post("s", "t2");
  EXPECT_EQ(Authors(),
            "a=s/refused b=s/refused+s/t1 person=s/refused+outside c=s/refused+s/t2 "
            "named=s/patch");
  Put("person", "22");
  Put("other", "1");
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Authors(),
            "a=s/refused+outside b=s/refused+s/t1 person=s/refused+outside "
            "c=s/refused+s/t2 named=s/patch+s/t2 other=s/patch+s/refused+outside "
            "person=s/refused+outside")
      << "t2 was at work when `named` was written, nobody when the last two were";
}

// As agents make several edits at once: they end in any order.
TEST_F(RecorderAuthorsTest, EditsThatAreMadeTogetherEndInAnyOrder) {
  Start("s");
  Prompt("s", "p");
  for (const char* path : {"a", "b", "c"}) Pre("s", path, {path});
  Put("c", "1");
  Post("s", "c", {"c"});
  Put("a", "1");
  Put("b", "1");
  Post("s", "b", {"b"});
  Post("s", "a", {"a"});
  EXPECT_EQ(Authors(), "c=s/c a=s/a b=s/b");
}

// It was only long: what is found by its end is its own.
TEST_F(RecorderAuthorsTest, ALongCallBesideShortOnesWasAtWorkUntilItsEnd) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  Pre("s", "long");
  Pre("s", "short");
  Post("s", "short");
  Put("x", "1");
  Post("s", "long");
  EXPECT_EQ(Authors(), "x=s/long");
}

// Mutant: interrupted-calls-go-on.
TEST_F(RecorderAuthorsTest, WhatAPersonDidAfterAnInterruptedCallIsNotItsAlone) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Prompt("s", "p1");
  Pre("s", "refused");
  Put("x", "1");
  Prompt("s", "p2");
  Pre("s", "killed");
  Put("y", "22");
  Start("s", "resume");
  Put("z", "333");
  Prompt("s", "p3");
  EXPECT_EQ(Authors(), "x=s/refused+outside y=s/killed+outside z=outside");
  EXPECT_TRUE(SaidAtOnce());
  // Of an agent that tells no end of any call the prompt is the end.
  agent_ = AgentKind::kCrush;
  Pre("s", "last");
  Put("w", "4444");
  Prompt("s", "p4");
  EXPECT_EQ(Authors(), "x=s/refused+outside y=s/killed+outside z=outside w=s/last");
}

// Mutant: calls-are-at-work-for-ever.
TEST_F(RecorderAuthorsTest, ACallOfAnAgentThatWasKilledIsOverSomeTime) {
  auto later = [this](int64_t minutes) {
    world_.world.clock.SetWallMillis(world_.world.clock.WallMillis() +
                                     minutes * 60'000);
  };
  Start("a");
  Prompt("a", "p");
  Pre("a", "killed");
  later(200);
  Put("long", "1");
  Start("b");
  Prompt("b", "q");
  later(41);
  Put("who", "22");
  Pre("b", "t1");
  Put("its", "333");
  Post("b", "t1");
  Put("person", "4444");
  Pre("b", "t2");
  EXPECT_EQ(Authors(), "long=a/killed who=a/killed+outside its=b/t1 person=outside");
  // It was at work after all, and the machine asleep.
  Put("late", "55555");
  Post("a", "killed");
  EXPECT_EQ(Authors(),
            "long=a/killed who=a/killed+outside its=b/t1 person=outside "
            "late=a/killed+b/t2");
}

// A call that failed without a word is over when the next one begins, for an agent that
// makes one at a time; for others, when the turn is.
TEST_F(RecorderAuthorsTest, ACallThatNeverEndsIsOverSomeTime) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Prompt("s", "p");
  Pre("s", "lost");
  Pre("s", "next");
  Put("x", "1");
  Post("s", "next");
  EXPECT_EQ(Authors(), "x=s/next");
  agent_ = AgentKind::kGeneric;
  Pre("s", "lost2");
  Pre("s", "next2");
  Put("y", "22");
  Post("s", "next2");
  EXPECT_EQ(Authors(), "x=s/next y=s/lost2+s/next2");
  End(EventKind::kTurnEnd, "s");
  Put("z", "333");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "x=s/next y=s/lost2+s/next2 z=outside");
}

TEST_F(RecorderAuthorsTest, ASubagentsCallsAreItsOwn) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Prompt("s", "p");
  HookEvent begin = Call(EventKind::kToolBegin, "s", "sub");
  begin.subagent = "agent-7";
  Tell(begin);
  Pre("s", "main");  // does not end the subagent's
  Put("x", "1");
  Post("s", "main");
  EXPECT_EQ(Authors(), "x=s/sub+s/main");
  HookEvent end = Event(EventKind::kSubagentEnd, "s");
  end.subagent = "agent-7";
  Put("y", "22");
  EXPECT_EQ(Tell(end), "end of a subagent");
  Put("z", "333");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "x=s/sub+s/main y=s/sub+outside z=outside");
}

TEST_F(RecorderAuthorsTest, WhatGoesOnInTheBackgroundIsTheCallsUntilItEnds) {
  Start("s");
  Prompt("s", "p");
  HookEvent begin = Call(EventKind::kToolBegin, "s", "bg");
  Tell(begin);
  HookEvent end = Call(EventKind::kToolEnd, "s", "bg");
  end.tool->background = true;
  end.tool->task = "task-1";
  Tell(end);
  Put("late", "1");
  Pre("s", "t", {"named"});
  Put("named", "22");
  Put("later", "333");
  Post("s", "t", {"named"});
  Pre("s", "shell");
  Put("who", "4444");
  Post("s", "shell");
  HookEvent note = Event(EventKind::kPrompt, "s");
  note.human = false;
  note.ended_tasks = {"task-1"};
  Put("last", "55555");
  EXPECT_EQ(Tell(note), "a task in the background ended");
  Put("after", "666666");
  Pre("s", "t9");
  EXPECT_EQ(Authors(),
            "late=s/bg later=s/bg named=s/t who=s/bg+s/shell last=s/bg+outside "
            "after=outside")
      << "a note comes when the agent waits for its user";
}

// Mutant: a-server-does-all-there-is.
TEST_F(RecorderAuthorsTest, BetweenTurnsAPersonMayWorkBesideTheBackground) {
  Start("s");
  Prompt("s", "p");
  Pre("s", "bg");
  HookEvent end = Call(EventKind::kToolEnd, "s", "bg");
  end.tool->background = true;
  Tell(end);
  Put("within", "1");
  End(EventKind::kTurnEnd, "s");
  Put("between", "22");
  Prompt("s", "p2");
  Pre("s", "shell");
  Put("made", "333");
  Post("s", "shell");
  EXPECT_EQ(Authors(), "within=s/bg between=s/bg+outside made=s/bg+s/shell");
}

TEST_F(RecorderAuthorsTest, BetweenTurnsAnotherSessionMayFindWhatAPersonDid) {
  Start("s");
  Prompt("s", "p");
  Pre("s", "bg");
  HookEvent end = Call(EventKind::kToolEnd, "s", "bg");
  end.tool->background = true;
  Tell(end);
  End(EventKind::kTurnEnd, "s");
  Put("between", "1");
  Start("other");
  EXPECT_EQ(Authors(), "between=s/bg+outside");
}

// Mutants: what-ended-does-not-go-on, shortened-is-over.
TEST_F(RecorderAuthorsTest, WhoGoesOnIsInItsTurn) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Prompt("s", "p");
  Pre("s", "bg");
  HookEvent end = Call(EventKind::kToolEnd, "s", "bg");
  end.tool->background = true;
  end.tool->task = "task-1";
  Tell(end);
  // A hook of the user's has it go on.
  End(EventKind::kTurnEnd, "s");
  Pre("s", "t1", {"named"});
  Put("a", "1");
  Post("s", "t1", {"named"});
  // Shortened in the middle of the turn.
  Start("s", "compact");
  Put("b", "22");
  Pre("s", "t2", {"named"});
  Post("s", "t2", {"named"});
  End(EventKind::kTurnEnd, "s");
  // Told of what another one in the background did.
  HookEvent note = Event(EventKind::kPrompt, "s");
  note.human = false;
  note.ended_tasks = {"task-2"};
  Tell(note);
  Put("c", "333");
  Pre("s", "t3", {"named"});
  Post("s", "t3", {"named"});
  EXPECT_EQ(Authors(), "a=s/bg b=s/bg c=s/bg");
  // A call that is told late, when all is over, is none.
  End(EventKind::kTurnEnd, "s");
  released_ns_ = 1;
  Pre("s", "t4", {"named"});
  released_ns_ = 0;
  Put("d", "4444");
  Pre("s", "t5", {"named"});
  EXPECT_EQ(Authors(), "a=s/bg b=s/bg c=s/bg d=s/bg+outside");
}

TEST_F(RecorderAuthorsTest, AnEndThatComesBeforeItsBeginningCounts) {
  Start("s");
  Prompt("s", "p");
  Put("x", "1");
  EXPECT_EQ(Post("s", "t"), "after Bash: make");
  released_ns_ = 1;
  EXPECT_NE(Pre("s", "t").find("failed: "), std::string::npos) << "late: it is over";
  released_ns_ = 0;
  Put("y", "22");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "x=s/t+outside y=outside") << "when it began nobody knows";
}

// Mutant: an-id-is-used-once. Some models count their calls from 0 in every answer.
TEST_F(RecorderAuthorsTest, AnIdThatComesAgainIsAnotherCall) {
  Start("s");
  Prompt("s", "p");
  Pre("s", "call_0");
  Put("work", "1");
  EXPECT_EQ(Post("s", "call_0"), "after Bash: make");
  Put("edit", "22");
  EXPECT_EQ(Pre("s", "call_0"), "before Bash: make");
  EXPECT_EQ(Pre("s", "call_0"), "") << "told twice";
  Delete("work");
  EXPECT_EQ(Post("s", "call_0"), "after Bash: make");
  EXPECT_EQ(Post("s", "call_0"), "") << "told twice";
  EXPECT_EQ(Authors(), "work=s/call_0 edit=outside work=s/call_0");
}

// Mutant: subagents-end-with-the-turn.
TEST_F(RecorderAuthorsTest, ASubagentGoesOnWhenTheTurnOfItsParentIsOver) {
  for (const bool listed : {false, true}) {
    const std::string s = listed ? "listed" : "s";
    Start(s);
    Prompt(s, "p" + s);
    HookEvent call = Call(EventKind::kToolBegin, s, "sub" + s);
    call.subagent = "agent-7";
    Tell(call);
    HookEvent stop = Event(EventKind::kTurnEnd, s);
    if (listed) stop.running_tasks = {"agent-7"};
    Tell(stop);
    Prompt(s, "q" + s);
    Put("by-" + s, "1");
    call.kind = EventKind::kToolEnd;
    EXPECT_EQ(Tell(call), "after Bash: make");
  }
  EXPECT_EQ(Authors(), "by-s=s/subs by-listed=listed/sublisted");
}

TEST_F(RecorderAuthorsTest, ASubagentThatDoesNotRunIsOverWithTheTurn) {
  Start("s");
  Prompt("s", "p");
  HookEvent call = Call(EventKind::kToolBegin, "s", "sub");
  call.subagent = "agent-7";
  Tell(call);
  HookEvent stop = Event(EventKind::kTurnEnd, "s");
  stop.running_tasks.emplace();
  Tell(stop);
  Put("x", "1");
  Prompt("s", "q");
  // Interrupted: no end of the turn is told.
  call.tool->id = "sub2";
  Tell(call);
  Prompt("s", "r");
  Put("y", "1");
  Prompt("s", "t");
  EXPECT_EQ(Authors(), "x=outside y=outside");
}

// Whoever makes a checkpoint by hand, or rolls back, is at work beside the call.
// Mutant: nobody-writes-beside-a-call.
TEST_F(RecorderAuthorsTest, AManualCheckpointAndARollbackAttributeToo) {
  Start("s");
  Pre("s", "t");
  Put("x", "1");
  Must(world_.Capture("by hand"));
  Put("y", "22");
  Must(world_.Rollback("by hand"));  // its safety checkpoint has y
  Put("z", "333");
  Post("s", "t");
  EXPECT_EQ(Authors(), "x=s/t+outside y=s/t+outside z=s/t");
}

TEST_F(RecorderAuthorsTest, ByTurnsTheTurnIsTheAuthor) {
  world_.settings.granularity = Granularity::kTurn;
  Start("s");
  Prompt("s", "p1");
  EXPECT_EQ(Pre("s", "t"), "");
  Put("x", "1");
  EXPECT_EQ(Post("s", "t"), "");
  EXPECT_EQ(End(EventKind::kTurnEnd, "s"), "end of the turn");
  Put("y", "22");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "x=s/- y=outside");
}

// Mutant: unseen-calls-did-nothing.
TEST_F(RecorderAuthorsTest, WhatAToolDidThatIsSwitchedOffIsItsDoingAllTheSame) {
  world_.settings.tools["Bash"] = {.enabled = false};
  Start("s");
  Prompt("s", "p1");
  EXPECT_EQ(Pre("s", "t1"), "");
  Put("x", "1");
  EXPECT_EQ(Post("s", "t1"), "");
  const size_t before = Count();
  EXPECT_EQ(Pre("s", "t2", {"y"}), "before Write y");
  EXPECT_EQ(Count(), before + 1);
  Put("y", "22");
  Put("z", "333");
  Post("s", "t2", {"y"});
  // Somebody looked since: the call has no more to do with it.
  EXPECT_EQ(Authors(), "x=s/t1+outside y=s/t2 z=outside");
  EXPECT_EQ(Pre("s", "t3"), "");
  Put("v", "1");
  EXPECT_EQ(Post("s", "t3"), "");
  Must(world_.Capture("by hand"));
  Put("w", "22");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "x=s/t1+outside y=s/t2 z=outside v=s/t3+outside w=outside");
}

// An agent whose calls come one after the other, and then they do not.
// Mutant: serial-agents-never-overlap.
TEST_F(RecorderAuthorsTest, ACallWhoseEndIsToldWasAtWorkUntilThere) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Prompt("s", "p1");
  Pre("s", "t1", {"a"});
  Pre("s", "t2", {"b"});
  Put("a", "1");
  EXPECT_EQ(Post("s", "t1", {"a"}), "after Write a");
  EXPECT_EQ(Post("s", "t1", {"a"}), "") << "told twice";
  Put("b", "22");
  Post("s", "t2", {"b"});
  EXPECT_EQ(Authors(), "a=s/t1 b=s/t2");
  // Of two that may write anything nobody can tell.
  Pre("s", "t3");
  Pre("s", "t4");
  Put("c", "333");
  Post("s", "t3");
  Put("d", "4444");
  Post("s", "t4");
  EXPECT_EQ(Authors(), "a=s/t1 b=s/t2 c=s/t4+s/t3 d=s/t4");
}

// Checkpoints were let go, and nothing of them was handed on: the next one does not
// take over what they said.
TEST_F(RecorderAuthorsTest, WhatWasLetGoTakesItsAuthorsAlong) {
  Start("s");
  Pre("s", "t1", {"one"});
  Put("one", "1");
  Post("s", "t1", {"one"});
  const RecordId gone = last_.id;
  Put("person", "22");
  Put("twice", "22");
  Pre("s", "t2", {"two"});
  const RecordId gone_too = last_.id;
  Put("two", "333");
  Put("twice", "333");
  Post("s", "t2", {"two"});
  auto opened = Must(world_.Open());
  Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, {gone, gone_too},
                         "delete", /*hand_on=*/false));
  EXPECT_EQ(Authors(),
            "one=unknown person=unknown twice=outside+unknown two=s/t2+unknown");
}

}  // namespace
}  // namespace belay::test
