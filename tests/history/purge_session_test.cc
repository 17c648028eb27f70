// Purging a session: prompts, notes, names, and what only it has.

#include <gmock/gmock.h>

#include "core/annotate.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/sessions.h"
#include "core/transcripts.h"
#include "store/gc.h"
#include "support/purge_fixture.h"

namespace belay::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class PurgeSessionTest : public PurgeTest {
 protected:
  void Capture(const std::string& name, const std::string& session,
               const std::string& prompt) {
    auto opened = Must(world.Open());
    CaptureRequest request = CaptureRequestIn(world, opened.root);
    request.name = name;
    request.kind = CheckpointKind::kAuto;
    if (!session.empty()) {
      request.session = session;
      request.prompt = prompt;
    }
    Must(CaptureCheckpoint(*opened.store, request));
  }
  // Of all checkpoints, the newest first.
  std::vector<std::string> Described() {
    std::vector<std::string> out;
    for (const CatalogEntry& entry : Checkpoints())
      out.push_back(entry.checkpoint.description);
    return out;
  }
};

TEST_F(PurgeSessionTest, ErasesPromptsNotesAndWhatOnlyItHas) {
  Put("shared", "in every checkpoint " + SourceText(1, 5000));
  Capture("before", "", "");
  Put("conf", "TOKEN=written-by-the-agent");
  Capture("name-with-hunter2", "s1", "the password is correct-horse");
  Put("conf", "cleaned up");
  Capture("second", "s1", "thanks");
  {
    auto opened = Must(world.Open());
    const auto entry = Must(opened.catalog->Find(opened.root.id, "second")).entry;
    Must(Annotate(*opened.store, entry, {.note = "battery-staple", .pinned = true}));
    LogRecord turn;
    turn.kind = RecordKind::kTurn;
    turn.id = RecordId(world.world.random.NewId());
    turn.root = opened.root.id;
    turn.fields.Add(1, "s1");
    turn.fields.Add(3, "prompt-of-a-turn");
    auto writer = Must(opened.store->Begin());
    writer->Add(turn);
    Must(writer->Commit());
    ASSERT_EQ(Must(opened.catalog->Search(opened.root.id, "battery", 5)).size(), 1u);
  }
  Capture("other", "s2", "another session");
  Must(world.Rollback("name-with-hunter2"));
  Must(world.Undo());
  const std::vector<std::string> secrets{"written-by-the-agent", "hunter2",
                                         "correct-horse", "battery-staple",
                                         "prompt-of-a-turn"};
  for (const std::string& secret : secrets)
    ASSERT_THAT(Find(secret), Not(IsEmpty())) << secret;

  PurgeReport report = Must(EraseSession("s1"));
  EXPECT_EQ(report.plan.checkpoints, 2u);
  EXPECT_EQ(report.plan.pinned, 1u);
  EXPECT_GE(report.plan.operations, 1u);
  for (const char* secret :
       {"hunter2", "correct-horse", "battery-staple", "prompt-of-a-turn"})
    EXPECT_THAT(Find(secret), IsEmpty()) << secret;
  EXPECT_EQ(Has("before", "shared"), "in every checkpoint " + SourceText(1, 5000));
  EXPECT_EQ(Has("other", "conf"), "cleaned up");
  auto opened = Must(world.Open());
  EXPECT_FALSE(opened.catalog->Find(opened.root.id, "second").ok());
  ExpectWhole();
}

// Its turns go; those of the one before it are the grandchild's as they were.
TEST_F(PurgeSessionTest, WhoGrewOutOfItGoesOnWithWhatWasBeforeIt) {
  auto tell = [&](SessionRecord told) {
    auto opened = Must(world.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(
        ToRecord(told, RecordId(world.world.random.NewId()), opened.root.id, 7));
    Must(writer->Commit());
  };
  auto turn = [&](const std::string& session, uint64_t number) {
    Put("a", session + std::to_string(number));
    auto opened = Must(world.Open());
    CaptureRequest request = CaptureRequestIn(world, opened.root);
    request.name = session + std::to_string(number);
    request.session = session;
    request.turn = number;
    Must(CaptureCheckpoint(*opened.store, request));
  };
  auto history = [&](const std::string& session) {
    auto opened = Must(world.Open());
    const Lineage lineage = Must(Lineage::Of(*opened.catalog, session));
    std::vector<std::string> out;
    for (const CatalogEntry& entry : Checkpoints())
      if (lineage.Has(entry.checkpoint.session, entry.checkpoint.turn,
                      entry.checkpoint.seq))
        out.push_back(*entry.checkpoint.name);
    return out;
  };
  tell({.session = "old"});
  for (uint64_t i = 1; i <= 3; ++i) turn("old", i);
  tell({.session = "middle", .parent = "old", .inherited_turns = 2});
  turn("middle", 3);
  turn("middle", 4);
  tell({.session = "young",
        .agent = "claude",
        .parent = "middle",
        .inherited_turns = 3,
        .transcript_path = "/t"});
  turn("young", 4);
  tell({.session = "early", .parent = "middle", .inherited_turns = 1});
  turn("early", 2);
  ASSERT_THAT(history("young"), ElementsAre("young4", "middle3", "old2", "old1"));

  const PurgeReport report = Must(EraseSession("middle"));
  EXPECT_THAT(report.plan.grew_out_of_it, ElementsAre("early", "young"));
  EXPECT_THAT(history("young"), ElementsAre("young4", "old2", "old1"));
  EXPECT_THAT(history("early"), ElementsAre("early2", "old1"));
  auto opened = Must(world.Open());
  for (const SessionSummary& one : Must(ListSessions(*opened.catalog, std::nullopt)))
    if (one.id == "young") {
      EXPECT_EQ(one.parent, "old");
      EXPECT_EQ(one.inherited, 2u);
      EXPECT_EQ(one.transcript_path, "/t");
      EXPECT_EQ(one.agent, "claude");
    }
  // There is nothing before the first.
  Must(EraseSession("old"));
  EXPECT_THAT(history("young"), ElementsAre("young4"));
  ExpectWhole();
}

// Mutant: purge-leaves-rewinds.
TEST_F(PurgeSessionTest, WhatWasTakenBackOfItIsErased) {
  Put("a", "1");
  Capture("start", "", "");
  ChatPlan chat;
  chat.record = {.agent = "claude",
                 .session = "s1",
                 .forked = "s2",
                 .turn = 2,
                 .prompt = "the words that were taken back",
                 .alone = true};
  world.chat = &chat;
  Must(world.Rewind());
  Must(world.Undo());
  chat.record.session = "s9";
  chat.record.forked = "s10";
  chat.record.prompt = "words of another";
  Must(world.Rewind());
  // As the one that was cut, and as the one that went on.
  for (const char* session : {"s2", "s1"}) {
    ASSERT_THAT(Find("the words that were taken back"), Not(IsEmpty()));
    EXPECT_GE(Must(EraseSession(session)).plan.operations, 2u);
    EXPECT_THAT(Find("the words that were taken back"), IsEmpty());
    if (session == std::string_view("s1")) break;
    chat.record.session = "s1";
    chat.record.forked = "s2";
    chat.record.prompt = "the words that were taken back";
    Must(world.Rewind());
    Must(world.Undo());
  }
  EXPECT_THAT(Find("words of another"), Not(IsEmpty()));
  ExpectWhole();
}

TEST_F(PurgeSessionTest, AnUndoThatWentBackToItDoesNotNameIt) {
  Put("a", "1");
  Capture("start", "", "");
  ChatPlan chat;
  chat.record = {.agent = "claude", .session = "s1", .turn = 2, .alone = true};
  world.chat = &chat;
  chat.record.forked = "the-first-fork";
  chat.record.message = "message-of-the-first";
  Must(world.Rewind());
  chat.record.forked = "the-second-fork";
  chat.record.message = "message-of-the-second";
  Must(world.Rewind());
  EXPECT_EQ(Must(world.Undo()).stands->goes_on, "the-first-fork");
  Must(EraseSession("the-first-fork"));
  EXPECT_THAT(Find("the-first-fork"), IsEmpty());
  EXPECT_THAT(Find("message-of-the-first"), IsEmpty());
  EXPECT_THAT(Find("the-second-fork"), Not(IsEmpty()));
  ExpectWhole();
}

// Mutant: live-remembers.
TEST_F(PurgeSessionTest, NothingOfItGoesOn) {
  Put("a", "1");
  Capture("one", "s1", "the first prompt");
  {
    auto opened = Must(world.Open());
    Live live = Live::Load(*opened.store, opened.root.id);
    for (const char* session : {"s1", "s2"}) {
      live.Meet(session, 1).prompt = std::string("last words of ") + session;
      LiveCall call{.author = {.kind = Author::Kind::kSession, .session = session},
                    .fingerprint = std::string("call-of-") + session};
      live.Begin(call);
      (void)live.End(call, false);
    }
    ASSERT_TRUE(live.Save(*opened.store, opened.root.id).ok());
  }
  ASSERT_THAT(Find("last words of s1"), Not(IsEmpty()));
  Must(EraseSession("s1"));
  EXPECT_THAT(Find("last words of s1"), IsEmpty());
  EXPECT_THAT(Find("call-of-s1"), IsEmpty());
  EXPECT_THAT(Find("last words of s2"), Not(IsEmpty()));
  EXPECT_THAT(Find("call-of-s2"), Not(IsEmpty()));
}

// Mutant: log-quotes-sessions.
TEST_F(PurgeSessionTest, WhatWasPrunedBeforeIsNotQuoted) {
  Put("a", "0");
  for (int i = 1; i <= 3; ++i) {
    Put("a", std::to_string(i));
    auto opened = Must(world.Open());
    CaptureRequest request = CaptureRequestIn(world, opened.root);
    request.kind = CheckpointKind::kAuto;
    request.session = "s1";
    request.turn = i;
    request.description = "words-of-turn-" + std::to_string(i);
    Must(CaptureCheckpoint(*opened.store, request));
  }
  const RecordId second = Checkpoints()[1].checkpoint.id;
  {
    auto opened = Must(world.Open());
    Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, {second}));
  }
  Must(EraseSession("s1"));
  EXPECT_THAT(Find("words-of-turn-"), IsEmpty());
}

// Mutant: purge-leaves-what-was-pruned.
TEST_F(PurgeSessionTest, ARollbackToACheckpointThatWentBeforeIsNotQuoted) {
  Put("a", "base");
  Capture("base", "", "");
  Put("a", "of the session");
  Capture("words-of-the-session", "s1", "p");
  const RecordId said = Checkpoints()[0].checkpoint.id;
  Put("a", "after");
  Must(world.Rollback("words-of-the-session"));
  Must(world.Undo());
  Must(world.Rollback("base"));
  {
    auto opened = Must(world.Open());
    Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, {said}));
    Must(CollectGarbage(*opened.store, {}));
  }
  ASSERT_THAT(Find("words-of-the-session"), Not(IsEmpty()));
  EXPECT_GE(Must(EraseSession("s1")).plan.operations, 2u);
  EXPECT_THAT(Find("words-of-the-session"), IsEmpty());
  ExpectWhole();
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "after");
}

TEST_F(PurgeSessionTest, CheckpointsThatKeepAPartOfALongFileAreNamed) {
  const std::string common = Noise(41, 900'000);
  Capture("base", "", "");
  Put("large", Noise(42, 600'000) + common);
  Capture("of-the-session", "s1", "p");
  Remove("large");
  Put("other", common + Noise(44, 700'000));
  Capture("later", "", "");
  auto opened = Must(world.Open());
  PurgeRequest request;
  request.session = "s1";
  const PurgePlan plan = Must(PlanPurge(*opened.store, request));
  ASSERT_EQ(plan.kept_by.size(), 1u);
  EXPECT_EQ(plan.kept_by[0].title, "later");
}

TEST_F(PurgeSessionTest, SafetyCheckpointsThatKeepSomethingOfItAreNamed) {
  Put("code", "before");
  Put("same", "in all of them");
  Capture("base", "", "");
  Put("code", "TOKEN=of-the-session");
  Capture("name-with-hunter2", "s1", "p");
  Put("code", "after");
  Capture("later", "", "");
  Must(world.Rollback("name-with-hunter2"));
  Must(world.Rollback("base"));
  auto opened = Must(world.Open());
  PurgeRequest request;
  request.session = "s1";
  const PurgePlan plan = Must(PlanPurge(*opened.store, request));
  ASSERT_EQ(plan.kept_by.size(), 1u);
  EXPECT_EQ(plan.kept_by[0].title, "before rollback to 'base'");
  EXPECT_EQ(plan.retitled, 1u);
}

// Rollbacks quote what they went to: in the safety checkpoint, and in whatever went
// to that in turn.
TEST_F(PurgeSessionTest, TheNamesOfItsCheckpointsAreInNoFileOfTheStore) {
  Put("code", "before");
  Capture("base", "", "");
  Put("code", "of the session");
  Capture("name-with-hunter2", "s1", "p");
  {
    auto opened = Must(world.Open());
    const auto entry = Must(opened.catalog->Find(opened.root.id, "name-with-hunter2"));
    Must(Annotate(*opened.store, entry.entry, {.name = "it\\was\nhunter3"}));
  }
  Put("code", "after");
  const Outcome named = Must(world.Rollback("it\\was\nhunter3"));
  ASSERT_TRUE(named.safety);
  Must(world.Undo());
  // To the safety checkpoint, whose description is the label of this one.
  {
    auto opened = Must(world.Open());
    const auto base = Must(world.Named(opened, "base"));
    for (const Checkpoint& target : {base, *named.safety, base, *named.safety})
      Must(Rollback(*opened.store, world.RequestFor(opened.root), target));
  }
  for (const char* name : {"hunter2", "hunter3"})
    ASSERT_THAT(Find(name), Not(IsEmpty())) << name;
  const PurgeReport report = Must(EraseSession("s1"));
  EXPECT_GE(report.plan.retitled, 4u);
  for (const char* name : {"hunter2", "hunter3"}) EXPECT_THAT(Find(name), IsEmpty());
  ExpectWhole();
  const std::vector<std::string> described = Described();
  EXPECT_THAT(described,
              Contains("before rollback to a checkpoint that was purged").Times(1));
  EXPECT_THAT(described, Contains("before rollback to 'base'"));
  // The history is what it was: the last two can still be undone.
  Must(world.Undo());
  EXPECT_EQ(Read("code"), "before");
  EXPECT_EQ(Must(EraseSession("s1")).plan.retitled, 0u) << "once is enough";
}

// Without a name it is its description that is quoted, which others may have too.
TEST_F(PurgeSessionTest, WhatACheckpointWithoutANameIsQuotedByGoesWhereItIsMeant) {
  auto capture = [&](const std::string& description, const std::string& session) {
    auto opened = Must(world.Open());
    CaptureRequest request = CaptureRequestIn(world, opened.root);
    request.description = description;
    request.kind = CheckpointKind::kAuto;
    if (!session.empty()) request.session = session;
    return Must(CaptureCheckpoint(*opened.store, request)).checkpoint;
  };
  auto rollback = [&](const Checkpoint& target) {
    auto opened = Must(world.Open());
    Must(Rollback(*opened.store, world.RequestFor(opened.root), target));
  };
  Put("code", "1");
  const Checkpoint mine = capture("after Bash", "");
  Put("code", "2");
  const Checkpoint told = capture("after curl -u me:hunter2", "s1");
  Put("code", "3");
  const Checkpoint alike = capture("after Bash", "s1");
  Put("code", "4");
  rollback(mine);
  Put("code", "5");
  rollback(told);
  Put("code", "6");
  rollback(alike);
  ASSERT_THAT(Find("hunter2"), Not(IsEmpty()));
  Must(EraseSession("s1"));
  EXPECT_THAT(Find("hunter2"), IsEmpty());
  const std::vector<std::string> described = Described();
  EXPECT_THAT(described, ElementsAre("before rollback to a checkpoint that was purged",
                                     "before rollback to a checkpoint that was purged",
                                     "before rollback to 'after Bash'", "after Bash"));
}

TEST_F(PurgeSessionTest, WhatOthersHaveStays) {
  Put("code", "first");
  Capture("one", "s1", "p");
  Capture("two", "s2", "q");
  Must(EraseSession("s1"));
  EXPECT_EQ(Has("two", "code"), "first");
  EXPECT_TRUE(Must(EraseSession("nobody")).plan.empty());
  ExpectWhole();
}

TEST_F(PurgeSessionTest, TakesEveryCopyOfTheConversationFromEveryFile) {
  Put("f", "1");
  Capture("c", "s1", "wish");
  std::string said;
  auto write = [&](const std::string& name, const std::string& text) {
    Must(MakeDirs(disk, AbsPath::Literal("/agent"), 0755));
    Must(PutFile(disk, Must(disk.OpenDir(AbsPath::Literal("/agent"))), P(name), text));
  };
  auto keep = [&](const std::string& session, const std::string& name,
                  const std::optional<std::string>& subagent = {}) {
    auto opened = Must(world.Open());
    Must(
        KeepTranscript(*opened.store, {.session = session,
                                       .agent = "claude",
                                       .subagent = subagent,
                                       .path = AbsPath::Literal("/agent").Join(P(name)),
                                       .root = opened.root.id,
                                       .settings = &world.settings}));
  };
  // It grows, is replaced, and has a subagent: what is in older copies goes as well.
  std::vector<std::string> secrets;
  auto say = [&](const std::string& secret) {
    secrets.push_back(secret);
    return R"({"text":")" + secret + SourceText(secrets.size(), 3000) + "\"}\n";
  };
  for (int i = 0; i < 12; ++i) {
    said += say("hunter-" + std::to_string(i) + "-");
    write("s1.jsonl", said);
    keep("s1", "s1.jsonl");
  }
  write("s1.jsonl", say("after-it-was-cut-"));
  keep("s1", "s1.jsonl");
  write("sub.jsonl", say("said-to-a-subagent-"));
  keep("s1", "sub.jsonl", "agent-1");
  write("s2.jsonl", R"({"text":"of-another-session"})");
  keep("s2", "s2.jsonl");
  {
    auto opened = Must(world.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(
        ToRecord(SessionRecord{.session = "agent-1", .parent = "s1", .subagent = true},
                 RecordId(world.world.random.NewId()), opened.root.id, 5));
    writer->Add(ToRecord(SessionRecord{.session = "fork", .parent = "s1"},
                         RecordId(world.world.random.NewId()), opened.root.id, 5));
    Must(writer->Commit());
  }
  for (const std::string& secret : secrets)
    ASSERT_THAT(Find(secret), Not(IsEmpty())) << secret;

  const PurgeReport report = Must(EraseSession("s1"));
  EXPECT_EQ(report.plan.transcripts, 3u);
  EXPECT_THAT(report.plan.grew_out_of_it, ElementsAre("fork"));
  for (const std::string& secret : secrets)
    EXPECT_THAT(Find(secret), IsEmpty()) << secret;
  EXPECT_THAT(Find("agent-1"), IsEmpty());
  EXPECT_THAT(Find("of-another-session"), Not(IsEmpty()));
  auto opened = Must(world.Open());
  EXPECT_TRUE(Must(ListTranscripts(*opened.catalog, "s1")).empty());
  EXPECT_EQ(Must(ListTranscripts(*opened.catalog, "s2")).size(), 1u);
  ExpectWhole();
}

}  // namespace
}  // namespace belay::test
