// What agents tell becomes history, whatever order and number the events come in. Whose
// doing changes are: recorder_authors_test.cc.

#include "agent/recorder.h"

#include <gtest/gtest.h>

#include "agent/recorder_world.h"
#include "core/live.h"
#include "core/refs.h"

namespace belay::test {
namespace {

class RecorderTest : public RecorderWorld {};

// Mutant: no-second-step.
TEST_F(RecorderTest, AtTheCapEveryCallHasItsCheckpoint) {
  world_.settings.store_cap = {.bytes = 3 << 20};
  Start("s");
  uint64_t noise = 1;
  for (int i = 0; i < 40; ++i) {
    std::string text;
    for (int k = 0; k < 10'000; ++k) {
      noise = noise * 6364136223846793005u + 1442695040888963407u;
      for (int byte = 0; byte < 8; ++byte)
        text += static_cast<char>(noise >> (byte * 8));
    }
    Put("f", text);
    const std::string made = Pre("s", "call" + std::to_string(i));
    EXPECT_EQ(made, "before Bash: make") << i;
    EXPECT_EQ(last_.tool_use_id, "call" + std::to_string(i));
  }
  auto opened = Must(world_.Open());
  EXPECT_LT(Must(opened.catalog->ListCheckpoints({.root = opened.root.id})).size(), 38u)
      << "some had to go";
  // One for which there is never room is no longer expected, and is said.
  world_.settings.store_cap = {.bytes = 1 << 10};
  Put("f", "x");
  EXPECT_NE(Pre("s", "last").find("failed: "), std::string::npos);
}

TEST_F(RecorderTest, AnEventThatIsToldTwiceIsRecordedOnce) {
  Start("s");
  Prompt("s", "p1");
  EXPECT_EQ(Prompt("s", "p1"), "");
  for (const bool ids : {true, false}) {
    ids_ = ids;
    const size_t before = Count();
    EXPECT_NE(Pre("s", "t1"), "");
    EXPECT_EQ(Pre("s", "t1"), "");
    Put(ids ? "a" : "b", "1");
    EXPECT_NE(Post("s", "t1"), "");
    Put(ids ? "a" : "b", "somebody");
    EXPECT_EQ(Post("s", "t1"), "");
    EXPECT_EQ(Count(), before + 2);
  }
  // The next one is the second turn, not the third.
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2");
  EXPECT_EQ(last_.turn, 2u);
}

TEST_F(RecorderTest, OneThatHasNoIdMayBeMadeAgain) {
  ids_ = false;
  Start("s");
  Prompt("s", "p1");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Pre("s", "same"), "before Bash: make");
    Put("out" + std::to_string(i), "1");
    EXPECT_EQ(Post("s", "same"), "after Bash: make");
  }
}

TEST_F(RecorderTest, ATurnWithoutChangesIsThere) {
  Start("s");
  Prompt("s", "p1", "only a question");
  const ObjectId state = last_.state;
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2", "another");
  EXPECT_EQ(last_.state, state);
  auto opened = Must(world_.Open());
  RefContext context{.root = opened.root.id};
  EXPECT_EQ(
      Must(ResolveRef(*opened.catalog, context, "turn:1")).entry.checkpoint.prompt,
      "only a question");
  EXPECT_EQ(
      Must(ResolveRef(*opened.catalog, context, "turn:2")).entry.checkpoint.prompt,
      "another");
}

// Mutant: every-call-is-the-running-turns.
TEST_F(RecorderTest, ACallIsOfTheTurnThatItNames) {
  Start("s");
  auto late = [&](const std::string& id, const std::string& anchor) {
    const auto running = std::exchange(anchor_, anchor);
    Pre("s", id);
    EXPECT_EQ(last_.description, "before Bash: make");
    const std::optional<uint64_t> before = last_.turn;
    Put(id, id);
    Post("s", id);
    EXPECT_EQ(last_.turn, before);
    EXPECT_EQ(AuthorsOf(last_, id)[0].turn, before);
    anchor_ = running;
    return before;
  };
  Prompt("s", "p1", "one");
  EXPECT_EQ(late("a", "p1"), 1u);
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2", "two");
  const RecordId second = last_.id;
  EXPECT_EQ(late("b", "p1"), 1u);  // a subagent's, that goes on
  EXPECT_EQ(late("c", "p9"), std::nullopt);
  EXPECT_EQ(late("d", "p2"), 2u);
  // What an agent is told in a turn, and by nobody, is of that turn.
  anchor_ = "p2-task";
  HookEvent told = Event(EventKind::kPrompt, "s");
  told.human = false;
  Tell(told);
  EXPECT_EQ(late("e", "p2-task"), 2u);
  Prompt("s", "p3", "three");
  EXPECT_EQ(late("f", "p2-task"), 2u);
  EXPECT_EQ(late("g", "p9"), std::nullopt);
  // A prompt that is heard behind its first call.
  Prompt("s", "p9", "nine");
  EXPECT_EQ(late("h", "p9"), 4u);
  {
    auto opened = Must(world_.Open());
    RefContext context{.root = opened.root.id};
    EXPECT_EQ(Must(ResolveRef(*opened.catalog, context, "turn:1"))
                  .entry.checkpoint.description,
              "one");
    EXPECT_EQ(Must(ResolveRef(*opened.catalog, context, "turn:2")).entry.checkpoint.id,
              second);
    Fd cache = Must(
        disk_.Open(opened.store->dir(), Name::Literal("cache"), OpenMode::Directory()));
    Must(disk_.Unlink(cache, Name::Literal(opened.root.id.text() + ".live")));
  }
  // The log knows them, too.
  EXPECT_EQ(late("i", "p2"), 2u);
  EXPECT_EQ(late("j", "p9"), 4u);
}

// Mutant: a-late-start-is-a-start.
TEST_F(RecorderTest, AStartThatComesBehindWhatCameAfterItChangesNothing) {
  Start("s");
  Prompt("s", "p1");
  Pre("s", "t");
  // The agent went on before all of that.
  released_ns_ = (world_.world.clock.WallMillis() - 1) * 1'000'000;
  Put("x", "1");
  EXPECT_EQ(Start("s"), "");
  released_ns_ = 0;
  Put("y", "2");
  EXPECT_EQ(Post("s", "t"), "after Bash: make");
  EXPECT_EQ(Authors(), "x=s/t y=s/t");
}

// The root was busy, and the end of the call was recorded before its beginning.
TEST_F(RecorderTest, ABeginningThatCanNoLongerBeRecordedIsAFailure) {
  Start("s");
  Prompt("s", "p1");
  Put("x", "1");
  EXPECT_EQ(Post("s", "t"), "after Bash: make");
  released_ns_ = (world_.world.clock.WallMillis() - 1) * 1'000'000;
  EXPECT_NE(Pre("s", "t").find("failed: what was there before a call of Bash"),
            std::string::npos);
  // Told twice, and the second is late: nothing is missing.
  released_ns_ = 0;
  EXPECT_EQ(Pre("s", "u"), "before Bash: make");
  Put("x", "2");
  EXPECT_EQ(Post("s", "u"), "after Bash: make");
  released_ns_ = (world_.world.clock.WallMillis() - 1) * 1'000'000;
  EXPECT_EQ(Pre("s", "u"), "");
}

TEST_F(RecorderTest, TurnsAreCountedOnWithoutTheLiveFile) {
  Start("s");
  Prompt("s", "p1");
  End(EventKind::kTurnEnd, "s");
  Prompt("s", "p2");
  {
    auto opened = Must(world_.Open());
    Fd cache = Must(
        disk_.Open(opened.store->dir(), Name::Literal("cache"), OpenMode::Directory()));
    Must(disk_.Unlink(cache, Name::Literal(opened.root.id.text() + ".live")));
  }
  Start("s", "resume");
  Prompt("s", "p3");
  EXPECT_EQ(last_.turn, 3u);
  EXPECT_EQ(
      Must(Must(world_.Open()).catalog->ListRecords({.kind = RecordKind::kSession}))
          .size(),
      1u);
}

// Mutant: turns-are-counted-per-root.
TEST_F(RecorderTest, TurnsAreCountedOnceOverAllRoots) {
  const AbsPath here = world_.project, there = AbsPath::Literal("/top/there");
  auto prompt = [&](const AbsPath& root, const std::string& anchor) {
    world_.project = root;
    Must(world_.Dir());
    Prompt("s", anchor);
    const uint64_t turn = last_.turn.value_or(0);
    End(EventKind::kTurnEnd, "s");
    return turn;
  };
  EXPECT_EQ(prompt(here, "p1"), 1u);
  EXPECT_EQ(prompt(there, "p2"), 2u);
  EXPECT_EQ(prompt(here, "p3"), 3u);
  EXPECT_EQ(prompt(here, "p4"), 4u);
  // A start knows it, too.
  world_.project = there;
  Start("s", "resume");
  EXPECT_EQ(last_.turn, 4u);
  EXPECT_EQ(prompt(there, "p5"), 5u);
  EXPECT_EQ(prompt(here, "p6"), 6u);
}

TEST_F(RecorderTest, AnEventHappenedThoughNothingCouldBeRecorded) {
  Start("s");
  Prompt("s", "p1");
  world_.settings.max_files = 1;
  Put("many", "1");
  EXPECT_NE(Pre("s", "t").find("failed"), std::string::npos);
  world_.settings.max_files = 1000;
  Put("x", "22");
  Post("s", "t");
  // What came before it and what it did cannot be told apart any more.
  EXPECT_EQ(Authors(), "many=s/t+outside x=s/t+outside");
}

TEST_F(RecorderTest, BySessionsOnlyItsTwoEndsAreKept) {
  world_.settings.granularity = Granularity::kSession;
  Start("s");
  EXPECT_EQ(Prompt("s", "p1"), "");
  Put("x", "1");
  EXPECT_EQ(End(EventKind::kTurnEnd, "s"), "");
  EXPECT_EQ(Prompt("s", "p2"), "");
  EXPECT_EQ(Count(), 1u);
  EXPECT_EQ(Must(Must(world_.Open()).catalog->ListRecords({.kind = RecordKind::kTurn}))
                .size(),
            2u);
  EXPECT_EQ(End(EventKind::kTurnEnd, "s"), "");
  EXPECT_EQ(End(EventKind::kSessionEnd, "s"), "end of the session");
  // Nobody looked in between: it may be the doing of either turn, or of a person
  // between them.
  EXPECT_EQ(Authors(), "x=s/-+s/-+outside");
  Put("y", "22");
  EXPECT_NE(Start("s", "resume"), "");
  EXPECT_EQ(Authors(), "x=s/-+s/-+outside y=outside");
  // What its end was is not what was there when a turn began.
  auto opened = Must(world_.Open());
  for (const char* ref : {"turn:1", "turn:2"}) {
    auto found = ResolveRef(*opened.catalog, {.root = opened.root.id}, ref);
    ASSERT_FALSE(found.ok()) << ref;
    EXPECT_NE(found.error().what.find("granularity = \"session\""), std::string::npos)
        << found.error().what;
  }
}

// Mutant: off-keeps-what-hosts-say.
TEST_F(RecorderTest, WhereTranscriptsAreOffNothingIsKeptOfWhatWasSaid) {
  HookEvent start = Event(EventKind::kSessionStart, "s");
  start.meta = {{"title", "my secret wish"}};
  Tell(start);
  EXPECT_EQ(last_.meta.size(), 1u);
  world_.settings.transcripts = Transcripts::kOff;
  start.session = "t";
  Tell(start);
  EXPECT_EQ(last_.session, "t");
  EXPECT_TRUE(last_.meta.empty());
  EXPECT_EQ(Prompt("s", "p1", "my secret wish"), "turn 1");
  EXPECT_EQ(last_.prompt, std::nullopt);
  EXPECT_EQ(Pre("s", "t"), "before Bash");
  auto opened = Must(world_.Open());
  for (const LogRecord& record :
       Must(opened.catalog->ListRecords({.kind = RecordKind::kTurn})))
    EXPECT_EQ(Must(ToTurn(record)).prompt, "");
}

// Mutant: anchors-keep-commands.
TEST_F(RecorderTest, OfAnchorsAloneNoCommandIsKept) {
  world_.settings.transcripts = Transcripts::kAnchors;
  Start("s");
  EXPECT_EQ(Prompt("s", "p1", "my wish"), "my wish");
  EXPECT_EQ(Pre("s", "t"), "before Bash");
  EXPECT_EQ(Pre("s", "u", {"a"}), "before Write a");
}

TEST_F(RecorderTest, ToolsThatReadCostNothing) {
  Start("s");
  HookEvent read = Call(EventKind::kToolBegin, "s", "r");
  read.tool->reach = ToolReach::kReads;
  EXPECT_FALSE(IsRecorded(read, world_.settings));
  HookEvent write = Call(EventKind::kToolBegin, "s", "w");
  EXPECT_TRUE(IsRecorded(write, world_.settings));
}

TEST_F(RecorderTest, ADamagedLiveFileIsNone) {
  Start("s");
  Prompt("s", "p1");
  auto opened = Must(world_.Open());
  const Live live = Live::Load(*opened.store, opened.root.id);
  ASSERT_NE(live.Find("s"), nullptr);
  Fd cache = Must(
      disk_.Open(opened.store->dir(), Name::Literal("cache"), OpenMode::Directory()));
  const Name name = Name::Literal(opened.root.id.text() + ".live");
  const Bytes whole = Must(ReadSmallFile(disk_, cache, name, 1 << 20));
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes bad = whole;
    bad[i] ^= std::byte{1};
    Must(ReplaceFile(disk_, cache, name, bad));
    EXPECT_EQ(Live::Load(*opened.store, opened.root.id), Live()) << i;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    Must(ReplaceFile(disk_, cache, name, ByteSpan(whole).first(size)));
    EXPECT_EQ(Live::Load(*opened.store, opened.root.id), Live()) << size;
  }
  Must(ReplaceFile(disk_, cache, name, whole));
  EXPECT_EQ(Live::Load(*opened.store, opened.root.id), live);
}

// Mutant: nobody-is-active.
TEST_F(RecorderTest, ACheckpointByHandIsOfTheSessionAtWork) {
  auto by_hand = [&] {
    auto opened = Must(world_.Open());
    CaptureRequest request{.root = opened.root, .settings = &world_.settings};
    request.of_active_session = true;
    request.git.user.no_system = true;
    return Must(CaptureCheckpoint(*opened.store, request)).checkpoint;
  };
  EXPECT_FALSE(by_hand().session);
  Start("s");
  EXPECT_EQ(by_hand().session, "s");
  EXPECT_FALSE(by_hand().turn);
  Prompt("s", "p1");
  EXPECT_EQ(by_hand().session, "s");
  EXPECT_EQ(by_hand().turn, 1u);
  EXPECT_EQ(by_hand().message_id, "p1");
  Tell(Event(EventKind::kTurnEnd, "s"));
  EXPECT_EQ(by_hand().turn, 1u);
  // Nothing was heard of it for long.
  const int64_t now = world_.world.clock.WallMillis();
  world_.world.clock.SetWallMillis(now + int64_t{25} * 60 * 60 * 1000);
  EXPECT_FALSE(by_hand().session);
  world_.world.clock.SetWallMillis(now + 1000);
  EXPECT_TRUE(by_hand().session);
  Tell(Event(EventKind::kSessionEnd, "s"));
  EXPECT_FALSE(by_hand().session);
}

TEST_F(RecorderTest, ASessionThatHasAllItMayHaveKeepsNobodyFromACheckpoint) {
  Start("s");
  auto opened = Must(world_.Open());
  CaptureRequest request{.root = opened.root, .settings = &world_.settings};
  request.of_active_session = true;
  request.git.user.no_system = true;
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(Must(CaptureCheckpoint(*opened.store, request)).checkpoint.session, "s");
  EXPECT_FALSE(Must(CaptureCheckpoint(*opened.store, request)).checkpoint.session);
}

// --- rollbacks: what others did since ------------------------------------------------

class ForeignTest : public RecorderTest {
 protected:
  // To the checkpoint that was made last when this was called.
  void Mark() { target_ = last_; }
  Result<Outcome> Back(OnOutside outside, bool dry = false) {
    auto opened = Must(world_.Open());
    RollbackRequest request = world_.RequestFor(opened.root);
    request.outside = outside;
    return dry ? PreviewRollback(*opened.store, request, target_)
               : Rollback(*opened.store, request, target_);
  }
  std::string Outside(const Plan& plan) {
    std::string out;
    for (const std::string& path : plan.outside) out += path + " ";
    return out;
  }
  // One session, a person and another session have each made a file, and changed it.
  void Story() {
    Start("s");
    Start("other");
    Prompt("s", "p");
    Mark();
    Pre("s", "t1", {"mine"});
    Put("mine", "1");
    Post("s", "t1", {"mine"});
    Pre("other", "t2", {"theirs"});
    Put("theirs", "22");
    Post("other", "t2", {"theirs"});
    Put("person", "333");
    Put("old.txt", "changed by a person");
  }
  std::string Files() {
    std::string out;
    for (const DirEntry& entry : Must(disk_.List(Must(world_.Dir()))))
      out += entry.name + " ";
    return out;
  }
  Checkpoint target_;
};

TEST_F(ForeignTest, APreviewNamesWhatOthersDid) {
  Story();
  const Outcome shown = Must(Back(OnOutside::kAsk, true));
  EXPECT_EQ(Outside(shown.plan), "old.txt person theirs ");
}

TEST_F(ForeignTest, NobodyIsTakenBackWithoutBeingAsked) {
  Story();
  const std::string before = world_.Tree();
  auto refused = Back(OnOutside::kAsk);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_NE(refused.error().what.find("old.txt, person, theirs"), std::string::npos);
  EXPECT_EQ(world_.Tree(), before);
}

TEST_F(ForeignTest, WhatOthersDidIsKept) {
  Story();
  const Outcome done = Must(Back(OnOutside::kKeep));
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Files(), "old.txt person theirs ");
  EXPECT_NE(world_.Tree().find("changed by a person"), std::string::npos);
  Must(world_.Undo());
  EXPECT_EQ(Files(), "mine old.txt person theirs ");
}

TEST_F(ForeignTest, OrTakenBackToo) {
  Story();
  Must(Back(OnOutside::kExact));
  EXPECT_EQ(Files(), "old.txt ");
  Must(world_.Undo());
  EXPECT_EQ(Files(), "mine old.txt person theirs ");
}

TEST_F(ForeignTest, ATargetWithoutASessionNeverAsks) {
  Must(world_.Capture("by hand"));
  Start("s");
  Put("person", "1");
  Pre("s", "t");
  Put("its", "22");
  Post("s", "t");
  auto opened = Must(world_.Open());
  target_ = Must(world_.Named(opened, "by hand"));
  Must(Back(OnOutside::kAsk));
  EXPECT_EQ(Files(), "old.txt ");
}

TEST_F(ForeignTest, WhatIsNotInThePlanNeverAsks) {
  Start("s");
  Prompt("s", "p");
  Mark();
  Put("person", "1");
  Pre("s", "t", {"its"});
  Delete("person");  // as it was
  Put("its", "22");
  Post("s", "t", {"its"});
  Must(Back(OnOutside::kAsk));
  EXPECT_EQ(Files(), "old.txt ");
}

// Mutant: what-was-taken-back-is-nobodys.
TEST_F(ForeignTest, WhatIsEditedAfterARollbackIsAskedAbout) {
  Put("x", "0");
  Put("y", "0");
  Start("s");
  Prompt("s", "p1");
  Mark();
  const Checkpoint first = target_;
  for (const char* path : {"x", "y"}) {
    Pre("s", path, {path});
    Put(path, "1");
    Post("s", path, {path});
  }
  Prompt("s", "p2");
  Mark();
  for (const char* path : {"x", "y"}) {
    Pre("s", std::string("2") + path, {path});
    Put(path, "22");
    Post("s", std::string("2") + path, {path});
  }
  Must(Back(OnOutside::kAsk));
  target_ = first;
  EXPECT_EQ(Outside(Must(Back(OnOutside::kKeep, true)).plan), "");
  Put("x", "by hand");
  Put("y", "22");  // as the checkpoint before the rollback has it
  EXPECT_EQ(Outside(Must(Back(OnOutside::kAsk, true)).plan), "x y ");
  EXPECT_FALSE(Back(OnOutside::kAsk).ok());
  Must(Back(OnOutside::kKeep));
  EXPECT_NE(world_.Tree().find("by hand"), std::string::npos);
  // After an undo, too; and of what it left nothing is asked.
  Put("x", "1");
  Put("y", "1");
  Must(Back(OnOutside::kExact));
  Must(world_.Undo());
  Put("y", "by hand again");
  EXPECT_EQ(Outside(Must(Back(OnOutside::kAsk, true)).plan), "y ");
}

TEST_F(ForeignTest, WhatIsDoneBesideACallThatDoesNotEndIsAskedAbout) {
  Start("s");
  Prompt("s", "p");
  Mark();
  Pre("s", "killed");
  Put("old.txt", "by hand");
  EXPECT_EQ(Outside(Must(Back(OnOutside::kAsk, true)).plan), "old.txt ");
  Must(world_.Capture("by hand"));
  EXPECT_EQ(Outside(Must(Back(OnOutside::kAsk, true)).plan), "old.txt ");
  Must(Back(OnOutside::kKeep));
  EXPECT_NE(world_.Tree().find("by hand"), std::string::npos);
}

// Mutant: forks-beside-are-family.
TEST_F(ForeignTest, AForkThatIsAtWorkBesideItsParentIsAnother) {
  Start("a");
  Prompt("a", "a1");
  End(EventKind::kTurnEnd, "a");
  HookEvent fork = Event(EventKind::kSessionStart, "f");
  fork.source = "fork";
  fork.parent_session = "a";
  Tell(fork);
  Prompt("a", "a2");
  Mark();
  Prompt("f", "f2");
  Pre("f", "t", {"important"});
  Put("important", "1");
  Post("f", "t", {"important"});
  EXPECT_EQ(Outside(Must(Back(OnOutside::kAsk, true)).plan), "important ");
  Must(Back(OnOutside::kKeep));
  EXPECT_EQ(Files(), "important old.txt ");
}

// As after a rewind: only the copy goes on.
TEST_F(ForeignTest, WhatGoesOnInAForkIsTheSameWork) {
  Start("a");
  Prompt("a", "a1");
  Mark();
  Pre("a", "t1", {"one"});
  Put("one", "1");
  Post("a", "t1", {"one"});
  End(EventKind::kTurnEnd, "a");
  struct Row {
    const char *id, *parent, *path;
  };
  for (const auto& [id, parent, path] :
       {Row{"f", "a", "two"}, Row{"g", "f", "three"}}) {
    HookEvent fork = Event(EventKind::kSessionStart, id);
    fork.source = "fork";
    fork.parent_session = parent;
    Tell(fork);
    Prompt(id, std::string("p") + id);
    Pre(id, path, {path});
    Put(path, path);
    Post(id, path, {path});
  }
  Must(Back(OnOutside::kAsk));
  EXPECT_EQ(Files(), "old.txt ");
}

TEST_F(ForeignTest, WhatARollbackDidIsNobodysElse) {
  Start("s");
  Prompt("s", "p");
  Mark();
  Pre("s", "t", {"its"});
  Put("its", "22");
  Post("s", "t", {"its"});
  Must(Back(OnOutside::kAsk));
  Must(world_.Undo());
  EXPECT_EQ(Files(), "its old.txt ");
  Must(Back(OnOutside::kAsk));
  EXPECT_EQ(Files(), "old.txt ");
}

}  // namespace
}  // namespace belay::test
