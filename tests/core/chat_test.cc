// Which session goes on, by what was taken back and what of that was undone.

#include "core/chat.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class ChatsTest : public ::testing::Test {
 protected:
  ChatsTest() {
    store = Must(world.Open());
    catalog = Must(Catalog::Open(*store));
    root = {.id = RootId(world.random.NewId()), .path = "/a"};
    Publish({ToRecord(root, RecordId(world.random.NewId()), 1)});
  }
  void Publish(std::vector<LogRecord> records) {
    auto writer = Must(store->Begin());
    for (LogRecord& record : records) writer->Add(std::move(record));
    Must(writer->Commit());
  }
  // As restore/ records it.
  Operation Record(OperationKind kind, const ChatRecord& chat,
                   const std::optional<RecordId>& of = {}, bool out_of_order = false) {
    Operation operation;
    operation.id = RecordId(world.random.NewId());
    operation.root = root.id;
    operation.made_ms = 5;
    operation.kind = kind;
    operation.of = of;
    operation.out_of_order = out_of_order;
    operation.chat = chat;
    auto writer = Must(store->Begin());
    operation.changes =
        Must(writer->PutObject(ObjectType::kNode, AsBytes(std::string_view("none"))));
    writer->Add(ToRecord(operation));
    for (LogRecord& record : Must(RecordsBeside(*store, operation)))
      writer->Add(std::move(record));
    operation.seq = Must(writer->Commit()).first_seq;
    return operation;
  }
  Operation TakeBack(const std::string& session, const std::string& forked,
                     uint64_t turn = 2) {
    return Record(OperationKind::kRollback, {.agent = "claude",
                                             .session = session,
                                             .forked = forked,
                                             .turn = turn,
                                             .inherited = turn - 1,
                                             .path = "/talk/" + forked,
                                             .cwd = "/a"});
  }
  Operation Undo(const Operation& what) {
    return Record(OperationKind::kUndo, *what.chat, what.id);
  }
  // Of one that is not the newest.
  Operation UndoOlder(const Operation& what) {
    return Record(OperationKind::kUndo, *what.chat, what.id, true);
  }
  Operation TellHost(uint64_t turn) {
    return Record(OperationKind::kRollback, {.agent = "desk",
                                             .session = "chat",
                                             .hosted = true,
                                             .turn = turn,
                                             .message = "m" + std::to_string(turn),
                                             .message_index = turn,
                                             .inherited = turn - 1});
  }
  void Say(const std::string& session, uint64_t turn) {
    Publish({ToRecord(TurnRecord{.session = session, .turn = turn, .prompt = "wish"},
                      RecordId(world.random.NewId()), root.id, 3)});
  }
  ChatStanding After(const Operation& operation) {
    return Chats(Must(ChatLog::Read(*catalog)), operation.seq).After(operation);
  }
  Operation Redo(const Operation& what) {
    return Record(OperationKind::kRedo, *what.chat, what.id);
  }
  std::string GoesOn(const std::string& session) {
    const Chats chats = Must(Chats::Read(*catalog));
    const Chats::GoesOn on = chats.Follow(session);
    return on.anew ? "anew" : on.session;
  }

  MemFs disk;
  World world{disk};
  std::unique_ptr<Store> store;
  std::unique_ptr<Catalog> catalog;
  Root root;
};

// Mutants: resume-the-original, undone-rewinds-count.
TEST_F(ChatsTest, ForkAfterForkTheLastGoesOnAndUndoneOnesDoNotCount) {
  EXPECT_EQ(GoesOn("first"), "first");
  const Operation one = TakeBack("first", "second");
  EXPECT_EQ(GoesOn("first"), "second");
  const Operation two = TakeBack("second", "third");
  EXPECT_EQ(GoesOn("first"), "third");
  EXPECT_EQ(GoesOn("second"), "third");
  EXPECT_EQ(GoesOn("third"), "third");
  Undo(two);
  EXPECT_EQ(GoesOn("first"), "second");
  Undo(one);
  EXPECT_EQ(GoesOn("first"), "first");
  EXPECT_TRUE(Must(Chats::Read(*catalog)).in_effect().empty());
  Redo(one);
  EXPECT_EQ(GoesOn("first"), "second");
  EXPECT_EQ(GoesOn("second"), "second");
}

TEST_F(ChatsTest, TheNewestOfSeveralForksOfOneGoesOn) {
  TakeBack("first", "second", 3);
  TakeBack("first", "other", 2);
  EXPECT_EQ(GoesOn("first"), "other");
  EXPECT_EQ(GoesOn("second"), "second");
  const Chats chats = Must(Chats::Read(*catalog));
  EXPECT_EQ(chats.TakenBackBy("first", 1, 1), nullptr);
  ASSERT_NE(chats.TakenBackBy("first", 2, 1), nullptr);
  EXPECT_EQ(chats.TakenBackBy("first", 2, 1)->chat->forked, "other");
  // What was said later was not.
  EXPECT_EQ(chats.TakenBackBy("first", 3, 1'000'000), nullptr);
}

// Mutant: undo-forgets-older-rewinds.
TEST_F(ChatsTest, AnUndoFindsTheOlderRewindThatStands) {
  const Operation one = TakeBack("first", "second", 3);
  const Operation two = TakeBack("first", "other", 2);
  Operation undo;
  undo.kind = OperationKind::kUndo;
  undo.root = root.id;
  undo.of = two.id;
  undo.chat = two.chat;
  const ChatStanding stands = Must(Chats::Read(*catalog, &undo)).After(undo);
  EXPECT_TRUE(stands.undone);
  EXPECT_EQ(stands.goes_on, "second");
  ASSERT_TRUE(stands.kept);
  EXPECT_EQ(stands.kept->turn, 2u);
  EXPECT_EQ(Must(RecordsBeside(*store, undo)).back().fields.Text(1), "second");
  // The record of it does not know, so that nothing is left there of a session that is
  // purged; it is found when asked, for each at its time.
  const Operation recorded = Record(OperationKind::kUndo, *two.chat, two.id);
  EXPECT_EQ(Must(ListOperations(*catalog, root.id)).back().chat, two.chat);
  const Operation both = Record(OperationKind::kUndo, *one.chat, one.id);
  EXPECT_EQ(After(two).goes_on, "other");
  EXPECT_EQ(After(recorded).goes_on, "second");
  EXPECT_EQ(After(both).goes_on, "first");
  EXPECT_FALSE(After(both).kept);
}

// Mutant: who-went-on-is-forgotten.
TEST_F(ChatsTest, ASessionThatWentOnAfterItWasTakenBackGoesOnAsItself) {
  for (const uint64_t turn : {1, 2, 3}) Say("first", turn);
  TakeBack("first", "second", 2);
  Say("second", 2);
  EXPECT_EQ(GoesOn("first"), "second");
  Say("first", 4);  // in a terminal that was open all the time
  EXPECT_EQ(GoesOn("first"), "first");
  EXPECT_EQ(GoesOn("second"), "second");
  EXPECT_EQ(Must(Chats::Read(*catalog)).TakenBackBy("first", 2, 1), nullptr);
  // What is taken back of it now, and what an undo of that leaves.
  const Operation later = TakeBack("first", "third", 4);
  EXPECT_EQ(GoesOn("first"), "third");
  const Operation undo = Undo(later);
  EXPECT_EQ(GoesOn("first"), "first");
  EXPECT_EQ(After(undo).goes_on, "first");
  EXPECT_FALSE(After(undo).kept);
  const auto beside =
      Must(catalog->ListRecords({.kind = RecordKind::kSession, .limit = 1}));
  EXPECT_EQ(Must(ToSession(beside[0])).session, "first");
}

// Mutant: redone-counts-from-the-first-time.
TEST_F(ChatsTest, ARedoIsNewerThanWhatWasSaidBeforeIt) {
  for (const uint64_t turn : {1, 2}) Say("first", turn);
  const Operation one = TakeBack("first", "second", 2);
  Undo(one);
  Say("first", 3);
  const Operation redo = Redo(one);
  EXPECT_EQ(GoesOn("first"), "second");
  EXPECT_EQ(After(redo).goes_on, "second");
  EXPECT_FALSE(After(redo).undone);
}

// Mutant: a-redo-always-takes-back.
TEST_F(ChatsTest, ARedoOfAnUndoOutOfOrderNamesWhoGoesOn) {
  const Operation one = TakeBack("first", "second", 3);
  const Operation two = TakeBack("first", "other", 2);
  const Operation older = UndoOlder(one);
  EXPECT_TRUE(After(older).undone);
  EXPECT_EQ(After(older).goes_on, "other");
  const Operation undo = Undo(older);
  EXPECT_FALSE(After(undo).undone);
  EXPECT_EQ(After(undo).goes_on, "other");
  const Operation redo = Redo(older);
  EXPECT_TRUE(After(redo).undone);
  EXPECT_EQ(After(redo).goes_on, "other");
  const auto beside =
      Must(catalog->ListRecords({.kind = RecordKind::kSession, .limit = 2}));
  EXPECT_EQ(Must(ToSession(beside[0])).session, "other");
  EXPECT_EQ(Must(ToSession(beside[1])).session, "second");
  EXPECT_EQ(Must(ToSession(beside[1])).by, SessionRecord::By::kReset);
}

TEST_F(ChatsTest, AHostKeepsWhatTheOldestRewindLeftIt) {
  TellHost(2);
  const Operation undo = Undo(TellHost(5));
  EXPECT_EQ(After(undo).goes_on, "chat");
  EXPECT_EQ(After(undo).kept,
            (ChatStanding::Kept{.turn = 1, .message = "m2", .message_index = 2}));
  const Chats chats = Must(Chats::Read(*catalog));
  ASSERT_NE(chats.TakenBackBy("chat", 3, 1), nullptr);
  EXPECT_EQ(chats.TakenBackBy("chat", 3, 1)->chat->turn, 2u);
}

// Mutant: said-after-a-rewind-is-forgotten.
TEST_F(ChatsTest, AHostKeepsWhatWasSaidAfterTheOlderRewind) {
  for (const uint64_t turn : {1, 2}) Say("chat", turn);
  const Operation first = TellHost(2);
  EXPECT_EQ(After(first).kept,
            (ChatStanding::Kept{.turn = 1, .message = "m2", .message_index = 2}));
  for (const uint64_t turn : {3, 4}) Say("chat", turn);
  const Operation second = TellHost(4);
  EXPECT_EQ(After(second).kept,
            (ChatStanding::Kept{.turn = 3, .message = "m4", .message_index = 4}));
  const Operation undo = Undo(second);
  EXPECT_TRUE(After(undo).undone);
  EXPECT_EQ(After(undo).kept, (ChatStanding::Kept{.turn = 4}));
  EXPECT_FALSE(After(Undo(first)).kept);
}

// Mutant: a-redo-takes-back-what-was-said-since.
TEST_F(ChatsTest, ARedoMakesAHostForgetWhatTheUndoBroughtBackAndNoMore) {
  for (const uint64_t turn : {1, 2}) Say("chat", turn);
  const Operation rewind = TellHost(2);
  Say("chat", 3);
  const auto standing = [&] {
    const Chats chats = Must(Chats::Read(*catalog));
    std::string out;
    for (const TurnOf& one : Must(TurnsOf(*catalog, "chat")))
      if (chats.TakenBackBy("chat", one.turn.turn, one.seq) == nullptr)
        out += std::to_string(one.turn.turn);
    return out;
  };
  EXPECT_EQ(standing(), "13");
  Undo(rewind);
  EXPECT_EQ(standing(), "123");
  const Operation redo = Redo(rewind);
  EXPECT_EQ(standing(), "13");
  EXPECT_FALSE(After(redo).undone);
  EXPECT_EQ(After(redo).kept, (ChatStanding::Kept{.turn = 3}));
  // So does what was said between the two.
  Undo(rewind);
  Say("chat", 4);
  EXPECT_EQ(After(Redo(rewind)).kept, (ChatStanding::Kept{.turn = 4}));
  EXPECT_EQ(standing(), "134");
}

TEST_F(ChatsTest, ARedoWithNothingSaidSinceNamesTheMessageAgain) {
  for (const uint64_t turn : {1, 2}) Say("chat", turn);
  const Operation rewind = TellHost(2);
  Undo(rewind);
  EXPECT_EQ(After(Redo(rewind)).kept,
            (ChatStanding::Kept{.turn = 1, .message = "m2", .message_index = 2}));
}

TEST_F(ChatsTest, TheLastTurnThatAHostKeepsIsOneThatCounts) {
  for (const uint64_t turn : {1, 2, 3}) Say("chat", turn);
  TellHost(2);
  for (const uint64_t turn : {4, 5}) Say("chat", turn);
  const Operation again = TellHost(4);
  EXPECT_EQ(After(again).kept,
            (ChatStanding::Kept{.turn = 1, .message = "m4", .message_index = 4}));
  // Where both lie behind what is left, the first one says from where on.
  EXPECT_EQ(After(Undo(TellHost(1))).kept,
            (ChatStanding::Kept{.turn = 1, .message = "m2", .message_index = 2}));
}

TEST_F(ChatsTest, WhatAHostInheritedIsKeptByItsNumber) {
  for (const uint64_t turn : {1, 2, 3}) Say("parent", turn);
  Publish({ToRecord(
      SessionRecord{
          .session = "chat", .agent = "desk", .parent = "parent", .inherited_turns = 2},
      RecordId(world.random.NewId()), root.id, 3)});
  Say("chat", 3);
  EXPECT_EQ(After(TellHost(3)).kept->turn, 2u);
  EXPECT_EQ(After(TellHost(2)).kept->turn, 1u);
}

// Mutant: undo-revives-a-session.
TEST_F(ChatsTest, AnUndoDoesNotMakeKnownAgainWhatWasDeleted) {
  Operation undo;
  undo.kind = OperationKind::kUndo;
  undo.root = root.id;
  undo.chat = {.agent = "claude", .session = "first", .forked = "gone"};
  const auto beside = Must(RecordsBeside(*store, undo));
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_EQ(Must(ToSession(beside[0])).session, "first");
}

TEST_F(ChatsTest, TakenBackToItsBeginningItBeginsAnew) {
  TakeBack("first", "", 1);
  EXPECT_EQ(GoesOn("first"), "anew");
}

TEST_F(ChatsTest, CirclesEnd) {
  TakeBack("first", "second");
  TakeBack("second", "first");
  EXPECT_FALSE(GoesOn("first").empty());
}

TEST_F(ChatsTest, AHostGoesOnWithTheSameSession) {
  Record(OperationKind::kRollback,
         {.agent = "desk", .session = "chat", .hosted = true, .turn = 2});
  EXPECT_EQ(GoesOn("chat"), "chat");
}

// Mutant: rewind-forgets-the-session.
TEST_F(ChatsTest, BesideTheOperationIsWhoNoLongerGoesOnAndThenWhoDoes) {
  Publish({ToRecord(SessionRecord{.session = "first",
                                  .agent = "claude",
                                  .transcript_path = "/talk/first",
                                  .cwd = "/a"},
                    RecordId(world.random.NewId()), root.id, 3),
           ToRecord(TurnRecord{.session = "first", .turn = 1, .prompt = "one"},
                    RecordId(world.random.NewId()), root.id, 3),
           ToRecord(TurnRecord{.session = "first", .turn = 2, .prompt = "two"},
                    RecordId(world.random.NewId()), root.id, 3)});
  auto told = [&] {
    std::vector<SessionRecord> out;
    for (const LogRecord& record :
         Must(catalog->ListRecords({.kind = RecordKind::kSession, .limit = 2})))
      out.insert(out.begin(), Must(ToSession(record)));
    return out;
  };
  const Operation one = TakeBack("first", "second");
  auto both = told();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].session, "first");
  EXPECT_EQ(both[0].by, SessionRecord::By::kReset);
  EXPECT_EQ(both[0].transcript_path, "/talk/first");
  EXPECT_EQ(both[1].session, "second");
  EXPECT_EQ(both[1].by, SessionRecord::By::kGoesOn);
  EXPECT_EQ(both[1].parent, "first");
  EXPECT_EQ(both[1].transcript_path, "/talk/second");
  EXPECT_EQ(both[1].inherited_turns, 1u);
  // It has the turns that it was forked with, and none that was taken back.
  const auto turns = Must(TurnsOf(*catalog, "second"));
  ASSERT_EQ(turns.size(), 1u);
  EXPECT_EQ(turns[0].turn.prompt, "one");
  Undo(one);
  both = told();
  EXPECT_EQ(both[0].session, "second");
  EXPECT_EQ(both[0].by, SessionRecord::By::kReset);
  EXPECT_EQ(both[1].session, "first");
  EXPECT_EQ(both[1].by, SessionRecord::By::kGoesOn);
}

// Mutant: an-undo-resets-no-host.
TEST_F(ChatsTest, AHostIsToldToReadAgainByAnUndoToo) {
  const Operation one =
      Record(OperationKind::kRollback,
             {.agent = "desk", .session = "chat", .hosted = true, .turn = 2});
  Undo(one);
  std::vector<SessionRecord::By> told;
  for (const LogRecord& record :
       Must(catalog->ListRecords({.kind = RecordKind::kSession, .limit = 2})))
    told.insert(told.begin(), Must(ToSession(record)).by);
  EXPECT_EQ(told, (std::vector{SessionRecord::By::kReset, SessionRecord::By::kGoesOn}));
}

TEST_F(ChatsTest, ASessionIsFoundByTheBeginningOfItsId) {
  for (const char* id : {"abcd-1", "abcd-2", "efgh-1"})
    Publish({ToRecord(SessionRecord{.session = id, .agent = "claude"},
                      RecordId(world.random.NewId()), root.id, 3)});
  EXPECT_EQ(Must(FindSession(*catalog, "efgh")), "efgh-1");
  EXPECT_EQ(Must(FindSession(*catalog, "abcd-2")), "abcd-2");
  EXPECT_EQ(FindSession(*catalog, "abcd").error().code, Errc::kInvalid);
  EXPECT_EQ(FindSession(*catalog, "efg").error().code, Errc::kNotFound);
  EXPECT_EQ(FindSession(*catalog, "nobody").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace belay::test
