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
                   const std::optional<RecordId>& of = {}) {
    Operation operation;
    operation.id = RecordId(world.random.NewId());
    operation.root = root.id;
    operation.made_ms = 5;
    operation.kind = kind;
    operation.of = of;
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
  EXPECT_FALSE(Must(Chats::Read(*catalog)).Stands("second"));
  Operation undo;
  undo.kind = OperationKind::kUndo;
  undo.root = root.id;
  undo.of = two.id;
  undo.chat = two.chat;
  const auto stands = Must(Chats::Read(*catalog, &undo)).Stands("first");
  ASSERT_TRUE(stands);
  EXPECT_EQ(stands->goes_on, "second");
  EXPECT_EQ(stands->inherited, 2u);
  EXPECT_EQ(Must(RecordsBeside(*store, undo)).back().fields.Text(1), "second");
  // The record of it does not know, so that nothing is left there of a session that is
  // purged; it is found when asked, for each at its time.
  const Operation recorded = Record(OperationKind::kUndo, *two.chat, two.id);
  EXPECT_EQ(Must(ListOperations(*catalog, root.id)).back().chat, two.chat);
  Record(OperationKind::kUndo, *one.chat, one.id);
  const Chats::OfRoots all = Must(Chats::List(*catalog));
  EXPECT_EQ(Chats(all, two.seq).Stands("first")->goes_on, "other");
  EXPECT_EQ(Chats(all, recorded.seq).Stands("first")->goes_on, "second");
  EXPECT_FALSE(Chats(all).Stands("first"));
}

TEST_F(ChatsTest, AHostKeepsWhatTheOldestRewindLeftIt) {
  auto rewind = [&](uint64_t turn) {
    return Record(OperationKind::kRollback, {.agent = "desk",
                                             .session = "chat",
                                             .hosted = true,
                                             .turn = turn,
                                             .message = "m" + std::to_string(turn),
                                             .message_index = turn,
                                             .inherited = turn - 1});
  };
  rewind(2);
  const Operation later = rewind(5);
  Operation undo;
  undo.kind = OperationKind::kUndo;
  undo.root = root.id;
  undo.of = later.id;
  undo.chat = later.chat;
  const auto stands = Must(Chats::Read(*catalog, &undo)).Stands("chat");
  ASSERT_TRUE(stands);
  EXPECT_EQ(stands->goes_on, "chat");
  EXPECT_EQ(stands->inherited, 1u);
  EXPECT_EQ(stands->message, "m2");
  const Chats chats = Must(Chats::Read(*catalog));
  ASSERT_NE(chats.TakenBackBy("chat", 3, 1), nullptr);
  EXPECT_EQ(chats.TakenBackBy("chat", 3, 1)->chat->turn, 2u);
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
