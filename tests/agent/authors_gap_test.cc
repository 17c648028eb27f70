// Whose doing a change is where not every beginning and end of a call was looked at, or
// told: whoever is outside is among the authors.

#include <gtest/gtest.h>

#include <cerrno>

#include "agent/recorder_world.h"
#include "base/fault_fs.h"
#include "support/agent_world.h"

namespace belay::test {
namespace {

class AuthorsGapTest : public RecorderWorld {
 protected:
  // The directory cannot be captured, as when it is gone.
  void Away() { world_.settings.max_files = 1; }
  void Back() { world_.settings.max_files = 1000; }
};

// Mutant: part-of-the-time-is-all-of-it.
TEST_F(AuthorsGapTest, WhatComesAfterAnEndThatCouldNotBeRecordedMayBeAnybodys) {
  Put("other.txt", "1");
  Start("s");
  Prompt("s", "p1");
  const Checkpoint turn = last_;
  Pre("s", "t");
  Away();
  EXPECT_NE(Post("s", "t").find("failed: "), std::string::npos);
  EXPECT_NE(End(EventKind::kTurnEnd, "s").find("failed: "), std::string::npos);
  Back();
  Put("old.txt", "by hand");
  EXPECT_EQ(Asked(turn), "old.txt") << "nobody has looked yet";
  Put("new", "by hand");
  Prompt("s", "p2");
  EXPECT_EQ(Authors(), "new=s/t+outside old.txt=s/t+outside");
  EXPECT_EQ(Asked(turn), "new old.txt");
  Put("later", "by hand");
  Pre("s", "t2");
  EXPECT_EQ(Authors(), "new=s/t+outside old.txt=s/t+outside later=outside");
}

TEST_F(AuthorsGapTest, WhatComesBeforeABeginningThatCouldNotBeRecordedIsNotTheCalls) {
  Put("other.txt", "1");
  Start("s");
  Prompt("s", "p1");
  Put("old.txt", "by hand");
  Away();
  EXPECT_NE(Pre("s", "t", {"old.txt"}).find("failed: "), std::string::npos);
  Back();
  Put("old.txt", "by the call");
  Post("s", "t", {"old.txt"});
  EXPECT_EQ(Authors(), "old.txt=s/t+outside") << "although it names the path";
  // From a look on it is its own again.
  Away();
  Pre("s", "t2");
  Back();
  Must(world_.Capture("by hand"));
  Put("x", "1");
  Post("s", "t2");
  EXPECT_EQ(Authors(), "old.txt=s/t+outside x=s/t2");
}

// Another call that may write anything was at work all the time.
TEST_F(AuthorsGapTest, BesideACallThatIsAtWorkAllTheTimeNobodyElseIsNamed) {
  world_.settings.tools["Bash"] = {.enabled = true};
  Start("s");
  Start("long");
  Prompt("s", "p");
  Pre("long", "all");
  world_.settings.tools["Bash"] = {.enabled = false};
  Pre("s", "t");
  Put("x", "1");
  Post("s", "t");
  world_.settings.tools["Bash"] = {.enabled = true};
  Post("long", "all");
  EXPECT_EQ(Authors(), "x=long/all+s/t");
}

// What was seen went into no checkpoint: whose it is is not settled.
TEST_F(AuthorsGapTest, ALookOfWhichNothingIsKeptIsNone) {
  Start("s");
  Prompt("s", "p1");
  Pre("s", "t");
  Put("its", "1");
  FaultFs broken(disk_, [] {
    Fault fault = Fault::Errno(1, EIO, /*sticky=*/true);
    fault.only = {FsCall::kSyncData};
    return fault;
  }());
  RestoreWorld other(broken, AbsPath::Literal("/top"), /*seed=*/2);
  {
    auto opened = Must(other.Open());
    RecordRequest request{
        .root = opened.root, .settings = &other.settings, .lock_wait_ms = 200};
    request.git.user.no_system = true;
    EXPECT_FALSE(
        RecordEvent(*opened.store, request, Call(EventKind::kToolEnd, "s", "t")).ok());
    EXPECT_TRUE(broken.fired());
  }
  Put("person", "22");
  Pre("s", "t2");
  EXPECT_EQ(Authors(), "its=s/t+outside person=s/t+outside");
}

TEST_F(AuthorsGapTest, BySessionsAPersonBetweenTurnsIsAskedAbout) {
  world_.settings.granularity = Granularity::kSession;
  Start("s");
  const Checkpoint start = last_;
  Prompt("s", "p1");
  Put("its", "1");
  End(EventKind::kTurnEnd, "s");
  Put("old.txt", "by hand");
  EXPECT_EQ(Asked(start), "its old.txt") << "before the end of the session, too";
  Prompt("s", "p2");
  End(EventKind::kTurnEnd, "s");
  End(EventKind::kSessionEnd, "s");
  EXPECT_EQ(Asked(start), "its old.txt");
}

// Nobody looked at the directory for it, and nobody did what it differs by.
TEST_F(AuthorsGapTest, WhatIsImportedMeanwhileIsNobodysDoing) {
  Start("s");
  Prompt("s", "p1");
  const Checkpoint turn = last_;
  Pre("s", "t");
  Put("its", "1");
  Post("s", "t");
  auto import = [&](const std::string& name) {
    auto opened = Must(world_.Open());
    auto writer = Must(opened.store->Begin());
    Checkpoint c;
    c.id = IdFor(name);
    c.root = opened.root.id;
    c.kind = CheckpointKind::kManual;
    c.state = Must(PutFiles(*writer, {{"its", "other"}, {name, "far away"}}));
    c.imported = true;
    writer->Add(ToRecord(c));
    Must(writer->Commit());
  };
  import("one");
  EXPECT_EQ(Asked(turn), "") << "as the newest there is";
  Pre("s", "t2");
  Put("more", "22");
  import("two");
  Put("old.txt", "new");
  Post("s", "t2");
  EXPECT_EQ(Asked(turn), "") << "within a call, and between calls";
  Put("its", "by hand");
  EXPECT_EQ(Asked(turn), "its");
  import("three");
  EXPECT_EQ(Asked(turn), "its");
}

// No end of the turn is told when somebody interrupts it.
TEST_F(AuthorsGapTest, ByTurnsAPersonAfterAnInterruptedOneIsAskedAbout) {
  agent_ = AgentKind::kClaude;
  world_.settings.granularity = Granularity::kTurn;
  Start("s");
  Prompt("s", "p1");
  Put("x", "1");
  Prompt("s", "p2");
  Put("y", "22");
  End(EventKind::kTurnEnd, "s");
  Put("z", "333");
  Prompt("s", "p3");
  EXPECT_EQ(Authors(), "x=s/-+outside y=s/- z=outside");
}

TEST_F(AuthorsGapTest, APersonBetweenCallsThatAreNotRecordedIsAskedAbout) {
  world_.settings.tools["Bash"] = {.enabled = false};
  Start("s");
  Prompt("s", "p1");
  const Checkpoint turn = last_;
  Pre("s", "t1");
  Post("s", "t1");
  Put("old.txt", "by hand");
  Pre("s", "t2");
  Post("s", "t2");
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Authors(), "old.txt=s/t1+s/t2+outside");
  EXPECT_EQ(Asked(turn), "old.txt");
}

// Mutant: unheard-calls-began-in-time.
TEST_F(AuthorsGapTest, OfACallWhoseBeginningWasNotToldNobodyKnowsWhenItBegan) {
  Start("s");
  Prompt("s", "p1");
  Put("old.txt", "by hand");
  Post("s", "lost");
  EXPECT_EQ(Authors(), "old.txt=s/lost+outside");
}

// While its user was asked whether it may be made, say.
// Mutant: refused-calls-wait-for-the-next.
TEST_F(AuthorsGapTest, APersonBesideARefusedCallIsAskedAbout) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Prompt("s", "p1");
  const Checkpoint turn = last_;
  Pre("s", "refused");
  Put("old.txt", "by hand");
  Pre("s", "t");
  Put("its", "1");
  Post("s", "t");
  EXPECT_EQ(Authors(), "old.txt=s/refused+outside its=s/t");
  EXPECT_EQ(Asked(turn), "old.txt");
  EXPECT_TRUE(SaidAtOnce());
  // An edit that was refused did not make what is under its name for certain.
  Pre("s", "edit", {"named"});
  Put("named", "by hand");
  // A subagent's calls say nothing of it.
  HookEvent call = Call(EventKind::kToolBegin, "s", "sub");
  call.subagent = "agent-7";
  Tell(call);
  call.kind = EventKind::kToolEnd;
  Tell(call);
  Put("named", "by hand again");
  Pre("s", "t2");
  Post("s", "t2");
  EXPECT_EQ(Authors(),
            "old.txt=s/refused+outside its=s/t named=s/edit+outside "
            "named=s/edit+outside");
}

// Mutant: calls-end-with-their-turn.
TEST_F(AuthorsGapTest, NorDidARefusedCallLastUntilTheEndOfTheTurn) {
  for (const EventKind end : {EventKind::kTurnEnd, EventKind::kSessionEnd}) {
    const std::string s = end == EventKind::kTurnEnd ? "s" : "t";
    Start(s);
    Prompt(s, "p" + s);
    Pre(s, "refused");
    Put("by-" + s, "1");
    End(end, s);
    Put("after-" + s, "22");
    Must(world_.Capture("by hand " + s));
  }
  EXPECT_EQ(Authors(),
            "by-s=s/refused+outside after-s=outside by-t=t/refused+outside "
            "after-t=outside");
  EXPECT_TRUE(SaidAtOnce());
}

// Where calls are made at once, whether one was refused is known when the turn is over.
// Mutant: never-ended-calls-were-at-work.
TEST_F(AuthorsGapTest, WhatIsKnownAtTheEndOfTheTurnIsSaidOfWhatWasFoundBefore) {
  agent_ = AgentKind::kCodex;
  for (const bool ids : {true, false}) {
    ids_ = ids;
    const std::string s = ids ? "s" : "t";
    Start(s);
    Prompt(s, "p" + s);
    const Checkpoint turn = last_;
    Pre(s, "refused");
    Put("old.txt", "by hand " + s);
    Pre(s, "one");
    Pre(s, "two");
    Put("its-" + s, "1");
    Post(s, "one");
    Post(s, "two");
    EXPECT_EQ(Asked(turn), "old.txt") << "it may be over";
    EXPECT_EQ(SaidAtOnce(), ids);
    const size_t before = Count();
    End(EventKind::kTurnEnd, s);
    EXPECT_EQ(Count(), before);
    EXPECT_EQ(Asked(turn), "old.txt");
  }
  EXPECT_FALSE(SaidAtOnce());
  EXPECT_EQ(Authors(),
            "old.txt=s/refused+outside its-s=s/refused+s/one+s/two "
            "old.txt=t/Bash+outside its-t=t/Bash");
}

TEST_F(AuthorsGapTest, CallsThatAreMadeAtOnceAndEndAreTheirOwn) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Pre("s", "one");
  Put("a", "1");
  Pre("s", "two");
  Put("b", "22");
  Post("s", "two");
  Put("c", "333");
  Post("s", "one");
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "q");
  EXPECT_EQ(Authors(), "a=s/one b=s/one+s/two c=s/one");
  EXPECT_EQ(Asked(turn), "");
}

// A subagent that goes on when the turn is over has not ended without a word.
TEST_F(AuthorsGapTest, WhatGoesOnBehindTheTurnIsNotDoubted) {
  Start("s");
  Prompt("s", "p");
  HookEvent call = Call(EventKind::kToolBegin, "s", "sub");
  call.subagent = "agent-7";
  Tell(call);
  Put("a", "1");
  End(EventKind::kTurnEnd, "s");
  Put("b", "22");
  Prompt("s", "q");
  Put("c", "333");
  call.kind = EventKind::kToolEnd;
  Tell(call);
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Authors(), "a=s/sub b=s/sub c=s/sub");
}

// A failed edit, of which no end is told, and the agent's own next try.
// Mutant: who-ended-stands-for-nobody.
TEST_F(AuthorsGapTest, WhoTriesAgainAfterAFailedEditIsNotAskedAbout) {
  agent_ = AgentKind::kCodex;
  for (const bool ids : {true, false}) {
    ids_ = ids;
    const std::string s = ids ? "s" : "t";
    Start(s);
    Prompt(s, "p" + s);
    const Checkpoint turn = last_;
    Pre(s, "failed", {"old.txt"});
    Pre(s, "again", {"old.txt"});
    Put("old.txt", "edited by " + s);
    Post(s, "again", {"old.txt"});
    EXPECT_EQ(Asked(turn), "") << "in the turn";
    End(EventKind::kTurnEnd, s);
    EXPECT_EQ(Asked(turn), "") << "and after it";
  }
  EXPECT_EQ(Authors(), "old.txt=s/failed+s/again old.txt=t/Write");
  EXPECT_TRUE(SaidAtOnce());
}

// What the other does not name is doubted all the same.
// Mutant: one-path-stands-for-all.
TEST_F(AuthorsGapTest, WhoTriesOneOfTwoFilesAgainStandsForThatAlone) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Pre("s", "failed", {"a", "old.txt"});
  Pre("s", "again", {"a"});
  Put("a", "1");
  Put("old.txt", "by hand");
  Post("s", "again", {"a"});
  EXPECT_EQ(Asked(turn), "old.txt");
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Asked(turn), "old.txt");
  EXPECT_EQ(Authors(), "a=s/failed+s/again old.txt=s/failed+outside");
  // Nor is a person's edit that was found before the next try began its doing.
  Prompt("s", "q");
  const Checkpoint second = last_;
  Pre("s", "failed2", {"old.txt"});
  Put("old.txt", "by hand again");
  Pre("s", "again2", {"old.txt"});
  Put("old.txt", "by the agent");
  Post("s", "again2", {"old.txt"});
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Asked(second), "old.txt");
}

// Mutant: who-may-write-anything-writes-no-named-path.
TEST_F(AuthorsGapTest, AShellBesideAFailedEditMayHaveWrittenItsFile) {
  agent_ = AgentKind::kCodex;
  for (const bool ids : {true, false}) {
    ids_ = ids;
    const std::string s = ids ? "s" : "t";
    Start(s);
    Prompt(s, "p" + s);
    const Checkpoint turn = last_;
    Pre(s, "failed", {"old.txt"});
    Pre(s, "shell");
    Put("old.txt", "edited by " + s);
    Post(s, "shell");
    EXPECT_EQ(Asked(turn), "");
    Pre(s, "more");
    Put("old.txt", "edited again by " + s);
    Post(s, "more");
    End(EventKind::kTurnEnd, s);
    EXPECT_EQ(Asked(turn), "");
  }
  EXPECT_EQ(Authors(),
            "old.txt=s/failed+s/shell old.txt=s/failed+s/more "
            "old.txt=t/Write+t/Bash old.txt=t/Write+t/Bash");
  // One that was refused as well says nothing of who was at work.
  Start("u");
  Prompt("u", "pu");
  const Checkpoint turn = last_;
  Pre("u", "failed", {"old.txt"});
  Pre("u", "refused");
  Put("old.txt", "by hand");
  Pre("u", "shell");
  Post("u", "shell");
  End(EventKind::kTurnEnd, "u");
  EXPECT_EQ(Asked(turn), "old.txt");
}

// It goes on in the background, and is sure to have been at work.
TEST_F(AuthorsGapTest, ACallInTheBackgroundMayHaveWrittenTheFileOfAFailedEdit) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Background("s", "server");
  Pre("s", "failed", {"old.txt"});
  Put("old.txt", "by the server");
  Pre("s", "one", {"a"});
  Post("s", "one", {"a"});
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Authors(), "old.txt=s/failed+s/server");
  EXPECT_EQ(Asked(turn), "");
}

// An edit beside a shell, both of which end, is its own.
TEST_F(AuthorsGapTest, AnEditThatEndsBehindAShellIsItsOwn) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  Pre("s", "edit", {"old.txt"});
  Pre("s", "shell");
  Put("old.txt", "edited");
  Post("s", "shell");
  Post("s", "edit", {"old.txt"});
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Authors(), "old.txt=s/edit");
  EXPECT_TRUE(SaidAtOnce());
}

// A call in the background was at work, whatever became of the one beside it.
// Mutant: all-stand-for-all.
TEST_F(AuthorsGapTest, BesideACallThatIsSureNobodyStandsForWhatIsFound) {
  agent_ = AgentKind::kCodex;
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Pre("s", "server");
  HookEvent end = Call(EventKind::kToolEnd, "s", "server");
  end.tool->background = true;
  Tell(end);
  Pre("s", "refused");
  Put("a", "1");
  Pre("s", "one");
  Post("s", "one");
  EXPECT_EQ(Asked(turn), "");
  End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(Authors(), "a=s/server+s/refused");
  EXPECT_TRUE(SaidAtOnce());
  EXPECT_EQ(Asked(turn), "");
}

// The user pressed Escape, of which no agent tells, and another session goes on.
// Mutant: interrupted-calls-are-believed.
TEST_F(AuthorsGapTest, APersonAfterAnInterruptedCallIsAskedAboutThoughAnotherLooked) {
  agent_ = AgentKind::kClaude;
  Start("s");
  Start("other");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Pre("s", "interrupted");
  Put("old.txt", "by hand");
  Prompt("other", "q");
  Pre("other", "t", {"named"});
  EXPECT_EQ(Authors(), "old.txt=s/interrupted");
  EXPECT_EQ(Asked(turn), "old.txt");
  // It was long: what was found is its own.
  Post("s", "interrupted");
  EXPECT_EQ(Asked(turn), "");
}

// Killed, or out of room, anywhere: the doubt is not lost.
// Mutants: doubts-are-forgotten-first, doubts-are-said-once.
TEST(AuthorsGap, WhatIsDoubtedStaysSoWhereverItsTellingEnds) {
  for (const bool killed : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      MemFs disk;
      AgentWorld world{disk};
      world.Start("s");
      world.Start("other");
      world.Prompt("s");
      const Checkpoint turn = world.last;
      world.Pre("s", "interrupted");
      world.Put("old.txt", "by hand");
      world.Pre("other", "t");  // looks
      Fault fault = Fault::PowerCut(at);
      if (!killed) {
        fault = Fault::Errno(at, ENOSPC);
        fault.mutating_only = true;
      }
      FaultFs broken(disk, fault);
      {
        RestoreWorld other(broken, AbsPath::Literal("/top"), /*seed=*/2);
        auto opened = other.Open();
        if (opened.ok()) {
          RecordRequest request{
              .root = opened->root, .settings = &other.settings, .lock_wait_ms = 200};
          request.git.user.no_system = true;
          (void)RecordEvent(*opened->store, request,
                            world.Event(EventKind::kTurnEnd, "s"));
        }
      }
      // Another look, which keeps no call that is over.
      world.Post("other", "t");
      world.Prompt("s");
      EXPECT_EQ(Must(world.Preview(turn)).plan.outside,
                std::vector<std::string>{"old.txt"})
          << (killed ? "killed at " : "failed at ") << at << ": " << broken.Where();
      if (!broken.fired()) break;
    }
  }
}

// --- the directory itself is gone ----------------------------------------------------

class RootGoneTest : public AuthorsGapTest {
 protected:
  void DeleteAll() {
    for (const DirEntry& entry : Must(disk_.List(Must(world_.Dir()))))
      Delete(entry.name);
    Must(disk_.RemoveDir(Must(disk_.OpenDir(world_.project.parent())),
                         Name::Literal(world_.project.name())));
  }
};

// Mutant: others-delete-the-directory.
TEST_F(RootGoneTest, ACallThatDeletedItDidThat) {
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Pre("s", "t");
  DeleteAll();
  EXPECT_NE(Post("s", "t").find("failed: "), std::string::npos);
  EXPECT_EQ(Asked(turn), "");
  EXPECT_NE(Pre("s", "t2").find("failed: "), std::string::npos);
  EXPECT_NE(Post("s", "t2").find("failed: "), std::string::npos);
  EXPECT_NE(End(EventKind::kTurnEnd, "s").find("failed: "), std::string::npos);
  EXPECT_EQ(Asked(turn), "");
  {
    auto opened = Must(world_.Open());
    const Outcome done =
        Must(Rollback(*opened.store, world_.RequestFor(opened.root), turn));
    EXPECT_TRUE(done.verified);
  }
  EXPECT_NE(world_.Tree().find("old.txt"), std::string::npos);
  // Once it is there again others may have been at it.
  Pre("s", "t3");
  DeleteAll();
  Post("s", "t3");
  Put("new", "by hand");
  EXPECT_EQ(Asked(turn), "new old.txt");
}

TEST_F(RootGoneTest, APersonWhoDeletedItIsAskedAbout) {
  Start("s");
  Prompt("s", "p");
  const Checkpoint turn = last_;
  Pre("s", "t");
  Put("a", "1");
  Post("s", "t");
  DeleteAll();
  Pre("s", "t2");
  Post("s", "t2");
  EXPECT_EQ(Asked(turn), "old.txt");
}

// The next call is the end of the one before.
TEST_F(AuthorsGapTest, OfAnAgentThatTellsNoEndsNothingIsDoubted) {
  agent_ = AgentKind::kCrush;
  Start("s");
  Start("other");
  Pre("s", "one");
  Put("a", "1");
  Start("third");
  Put("b", "22");
  Pre("s", "two");
  EXPECT_EQ(Authors(), "a=s/one b=s/one");
}

}  // namespace
}  // namespace belay::test
