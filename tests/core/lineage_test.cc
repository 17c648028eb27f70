// What a session has of those it grew out of.

#include "core/lineage.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "core/annotate.h"
#include "core/refs.h"
#include "core/retention.h"
#include "core/sessions.h"
#include "core/transcripts.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class LineageTest : public ::testing::Test {
 protected:
  LineageTest() {
    store = Must(world.Open());
    catalog = Must(Catalog::Open(*store));
    for (const char* path : {"/a", "/b"}) {
      Root root{.id = RootId(world.random.NewId()), .path = path};
      Publish(ToRecord(root, RecordId(world.random.NewId()), 1));
      roots.push_back(root);
    }
  }
  void Publish(LogRecord record) {
    auto writer = Must(store->Begin());
    writer->Add(std::move(record));
    Must(writer->Commit());
  }
  void Session(const std::string& id, const std::string& parent = "",
               uint64_t inherited = 0, bool subagent = false, size_t root = 0) {
    SessionRecord record{.session = id, .agent = "claude"};
    if (!parent.empty()) record.parent = parent;
    record.inherited_turns = inherited;
    record.subagent = subagent;
    Publish(ToRecord(record, RecordId(world.random.NewId()), roots[root].id, 5));
  }
  // A checkpoint that is called so, of a turn (0: of none), with the turn's record.
  void Make(const std::string& name, const std::string& session, uint64_t turn,
            const std::string& tool = "", size_t root = 0) {
    auto writer = Must(store->Begin());
    Checkpoint c;
    c.id = IdFor(name);
    c.root = roots[root].id;
    c.made_ms = 5;
    c.name = name;
    c.state = Must(PutFiles(*writer, {{"f", name}}));
    c.session = session;
    if (turn > 0) c.turn = turn;
    if (!tool.empty()) c.tool_use_id = tool;
    writer->Add(ToRecord(c));
    if (turn > 0)
      writer->Add(ToRecord(TurnRecord{.session = session, .turn = turn, .prompt = name},
                           RecordId(world.random.NewId()), c.root, 5));
    Must(writer->Commit());
  }
  std::string At(const std::string& ref, const std::string& session = "",
                 size_t root = 0) {
    RefContext context{.root = roots[root].id};
    if (!session.empty()) context.session = session;
    auto found = ResolveRef(*catalog, context, ref);
    return found.ok() ? found->entry.checkpoint.name.value_or("?")
                      : std::string(ErrcName(found.error().code));
  }
  // All that belongs to a session, the oldest first.
  std::string Of(const std::string& session) {
    const Lineage lineage = Must(Lineage::Of(*catalog, session));
    std::string names;
    for (const CatalogEntry& entry :
         Must(catalog->ListCheckpoints({.root = roots[0].id, .oldest_first = true})))
      if (lineage.Has(entry.checkpoint.session, entry.checkpoint.turn,
                      entry.checkpoint.seq))
        names += (names.empty() ? "" : " ") + entry.checkpoint.name.value_or("?");
    return names;
  }

  MemFs disk;
  World world{disk};
  std::unique_ptr<Store> store;
  std::unique_ptr<Catalog> catalog;
  std::vector<Root> roots;
};

TEST_F(LineageTest, AForkHasTheTurnsUntilItBeganAndNoneThatCameAfter) {
  Session("parent");
  Make("start", "parent", 0);
  Make("p1", "parent", 1);
  Make("p2", "parent", 2, "call-2");
  Make("p3", "parent", 3, "call-3");
  Session("fork", "parent", 2);
  Make("f3", "fork", 3, "call-f");
  Make("p4", "parent", 4);

  EXPECT_EQ(At("turn:1", "fork"), "p1");
  EXPECT_EQ(At("turn:2", "fork"), "p2");
  EXPECT_EQ(At("turn:3", "fork"), "f3");
  EXPECT_EQ(At("turn:4", "fork"), ErrcName(Errc::kNotFound));
  EXPECT_EQ(At("turn:3", "parent"), "p3");
  EXPECT_EQ(At("tool:call-2", "fork"), "p2");
  EXPECT_EQ(At("tool:call-f", "fork"), "f3");
  EXPECT_EQ(At("tool:call-3", "fork"), ErrcName(Errc::kNotFound));
  EXPECT_EQ(At("session:fork"), "f3");
  EXPECT_EQ(Of("fork"), "start p1 p2 f3");
  EXPECT_EQ(Of("parent"), "start p1 p2 p3 p4");
}

// A conversation that was taken back goes on as a fork. Mutant:
// turns-end-at-the-rewind.
TEST_F(LineageTest, TurnsBehindARewindAreFoundUntilTheForkHasItsOwn) {
  Session("x");
  for (uint64_t turn : {1u, 2u, 3u}) Make("x" + std::to_string(turn), "x", turn);
  Session("f", "x", 1);
  std::string note, hint;
  auto at = [&](const std::string& ref, const std::string& active) {
    auto found = ResolveRef(*catalog, {.root = roots[0].id, .active = active}, ref);
    note = found.ok() ? found->note : "";
    hint = found.ok() ? "" : found.error().hint;
    return found.ok() ? found->entry.checkpoint.name.value_or("?")
                      : std::string(ErrcName(found.error().code));
  };
  const std::string none(ErrcName(Errc::kNotFound));
  EXPECT_EQ(at("turn:1", "f"), "x1");
  EXPECT_EQ(note, "");
  EXPECT_EQ(at("turn:2", "f"), "x2");
  EXPECT_EQ(note, "turn 2 of session x, from which the present one was forked");
  EXPECT_EQ(at("turn:3", "f"), "x3");
  EXPECT_EQ(at("turn:4", "f"), none);
  // Who names a session means that one.
  EXPECT_EQ(At("turn:2", "f"), none);
  auto named = ResolveRef(*catalog, {.root = roots[0].id, .session = "f"}, "turn:2");
  EXPECT_EQ(named.error().hint, "session x has one: --session x");
  // Its own, as soon as there is one.
  Make("f2", "f", 2);
  EXPECT_EQ(at("turn:2", "f"), "f2");
  EXPECT_EQ(note,
            "session x, from which this one was forked, has a turn 2, too: "
            "--session x");
  EXPECT_EQ(at("turn:3", "f"), "x3");
  EXPECT_EQ(at("turn:2", "x"), "x2");
  EXPECT_EQ(note, "");
  // Taken back again: the nearest.
  Session("g", "f", 1);
  EXPECT_EQ(at("turn:2", "g"), "f2");
  EXPECT_EQ(note,
            "turn 2 of session f, from which the present one was forked; that of an "
            "older one: --session x");
  EXPECT_EQ(at("turn:3", "g"), "x3");
  // One that grew out of none is told who has it.
  Session("n");
  EXPECT_EQ(at("turn:3", "n"), none);
  EXPECT_EQ(hint, "session x has one: --session x");
  // Counted, and its checkpoints are gone: that is not another's.
  Publish(ToRecord(TurnRecord{.session = "g", .turn = 3, .prompt = "lost"},
                   RecordId(world.random.NewId()), roots[0].id, 5));
  EXPECT_EQ(at("turn:3", "g"), none);
  EXPECT_EQ(hint, "session x has one: --session x");
}

TEST_F(LineageTest, AForkOfAForkHasWhatBothHad) {
  Session("a");
  Make("a1", "a", 1);
  Make("a2", "a", 2);
  Session("b", "a", 2);
  Make("b3", "b", 3);
  Make("b4", "b", 4);
  Session("c", "b", 3);
  Make("c4", "c", 4);
  EXPECT_EQ(At("turn:1", "c"), "a1");
  EXPECT_EQ(At("turn:3", "c"), "b3");
  EXPECT_EQ(At("turn:4", "c"), "c4");
  // Forked where the other one had not begun yet.
  Session("d", "b", 1);
  Make("d2", "d", 2);
  EXPECT_EQ(Of("d"), "a1 d2");
}

TEST_F(LineageTest, OwnTurnsHideWhatIsInheritedUnderTheSameNumber) {
  Session("parent");
  Make("p1", "parent", 1);
  Make("p2", "parent", 2);
  Session("late");
  Make("l1", "late", 1);
  Session("late", "parent", 2);  // told when it had a turn already
  EXPECT_EQ(At("turn:1", "late"), "l1");
  EXPECT_EQ(At("turn:2", "late"), "p2");
  // Also when nothing of it is left to go back to.
  auto writer = Must(store->Begin());
  writer->Add(MakeDrop(RecordId(world.random.NewId()), 5, {IdFor("l1")}));
  Must(writer->Commit());
  EXPECT_EQ(At("turn:1", "late"), ErrcName(Errc::kNotFound));
}

// Mutant: turn-is-what-is-left-of-it.
TEST_F(LineageTest, ATurnIsWhatWasThereWhenItBeganOrNothing) {
  Session("s");
  Make("start", "s", 1);
  auto later = [&](const std::string& name, CheckpointKind kind,
                   const std::string& tool) {
    auto writer = Must(store->Begin());
    Checkpoint c;
    c.id = IdFor(name);
    c.root = roots[0].id;
    c.made_ms = 5;
    c.kind = kind;
    c.description = name;
    c.state = Must(PutFiles(*writer, {{"f", name}}));
    c.session = "s";
    c.turn = 1;
    c.prompt = "start";
    if (!tool.empty()) c.tool_name = tool;
    writer->Add(ToRecord(c));
    Must(writer->Commit());
  };
  later("by hand", CheckpointKind::kManual, "");
  later("before Write g", CheckpointKind::kAuto, "Write");
  later("end of the turn", CheckpointKind::kAuto, "");
  EXPECT_EQ(At("turn:1", "s"), "start");
  // One after the other goes: none of the rest is in its place.
  for (const auto& [gone, nearest] :
       {std::pair("start", "by hand"), std::pair("by hand", "before Write g"),
        std::pair("before Write g", "end of the turn")}) {
    auto writer = Must(store->Begin());
    writer->Add(MakeDrop(RecordId(world.random.NewId()), 5, {IdFor(gone)}));
    Must(writer->Commit());
    auto found = ResolveRef(*catalog, {.root = roots[0].id, .session = "s"}, "turn:1");
    ASSERT_FALSE(found.ok()) << gone;
    EXPECT_EQ(found.error().code, Errc::kNotFound);
    EXPECT_EQ(found.error().what, "what was there when turn 1 began is no longer kept");
    EXPECT_NE(found.error().hint.find(IdFor(nearest).text().substr(0, 7) + " (" +
                                      nearest + ")"),
              std::string::npos)
        << found.error().hint;
  }
}

// Of an imported one there are no records of turns: what it says itself counts.
TEST_F(LineageTest, WithoutTheRecordOfATurnItsStartIsKnownByItsWords) {
  auto make = [&](const std::string& description, uint64_t turn) {
    auto writer = Must(store->Begin());
    Checkpoint c;
    c.id = IdFor(description);
    c.root = roots[0].id;
    c.made_ms = 5;
    c.name = c.description = description;
    c.state = Must(PutFiles(*writer, {{"f", description}}));
    c.session = "s";
    c.turn = turn;
    c.prompt = "make it so\nand quickly";
    writer->Add(ToRecord(c));
    Must(writer->Commit());
  };
  make("make it so", 1);
  make("end of the turn", 2);
  EXPECT_EQ(At("turn:1", "s"), "make it so");
  auto found = ResolveRef(*catalog, {.root = roots[0].id, .session = "s"}, "turn:2");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().what,
            "what was there when turn 2 began was not recorded here");
}

TEST_F(LineageTest, CirclesEnd) {
  Session("a", "b", 5);
  Session("b", "c", 5);
  Session("c", "a", 5);
  Session("self", "self", 5);
  Make("a1", "a", 1);
  EXPECT_EQ(At("turn:1", "a"), "a1");
  EXPECT_EQ(At("turn:2", "a"), ErrcName(Errc::kNotFound));
  EXPECT_EQ(At("turn:1", "self"), ErrcName(Errc::kNotFound));
  EXPECT_EQ(Must(Lineage::Of(*catalog, "b")).generations().size(), 3u);
}

TEST_F(LineageTest, ThousandsOfGenerationsAreFollowed) {
  constexpr uint64_t kGenerations = 3000;
  Session("s0");
  Make("first", "s0", 1);
  {
    auto writer = Must(store->Begin());
    for (uint64_t i = 1; i <= kGenerations; ++i)
      writer->Add(ToRecord(SessionRecord{.session = "s" + std::to_string(i),
                                         .parent = "s" + std::to_string(i - 1),
                                         .inherited_turns = 1},
                           RecordId(world.random.NewId()), roots[0].id, 5));
    Must(writer->Commit());
  }
  EXPECT_EQ(At("turn:1", "s" + std::to_string(kGenerations)), "first");
  EXPECT_EQ(Of("s" + std::to_string(kGenerations)), "first");
}

TEST_F(LineageTest, AParentOfAnotherDirectoryLendsNoCheckpointHere) {
  Session("elsewhere", "", 0, false, 1);
  Make("e1", "elsewhere", 1, "", 1);
  Session("here", "elsewhere", 1);
  Make("h2", "here", 2);
  EXPECT_EQ(At("turn:1", "here"), ErrcName(Errc::kNotFound));
  EXPECT_EQ(At("turn:1", "here", 1), "e1");
  EXPECT_EQ(Of("here"), "h2");
  Session("orphan", "nobody-knows", 7);
  EXPECT_EQ(At("turn:1", "orphan"), ErrcName(Errc::kNotFound));
}

TEST_F(LineageTest, ASubagentInheritsNothingAndIsItsParents) {
  Session("main");
  Make("m1", "main", 1);
  Session("sub", "main", 0, true);
  Make("s", "sub", 0);
  EXPECT_EQ(At("turn:1", "sub"), ErrcName(Errc::kNotFound));
  // What was active last is the session, not one of its subagents.
  EXPECT_EQ(At("turn:1"), "m1");
  Session("quiet", "main", 0, true);
  EXPECT_EQ(Must(ActiveSession(*catalog, roots[0].id)), "main");

  auto sessions = Must(ListSessions(*catalog, roots[0].id));
  ASSERT_EQ(sessions.size(), 2u);  // the quiet one is told with its parent
  EXPECT_EQ(sessions[0].id, "main");
  ASSERT_EQ(sessions[0].subagents.size(), 1u);
  EXPECT_EQ(sessions[0].subagents[0].id, "quiet");
  EXPECT_TRUE(sessions[1].is_subagent);

  EXPECT_EQ(Must(WithSubagents(*catalog, "main")).size(), 3u);
  // A session of its own does not become somebody's subagent by being called one.
  Session("own");
  Session("own", "main", 0, true);
  EXPECT_EQ(Must(WithSubagents(*catalog, "main")).size(), 3u);
  // They go with their parent.
  const SessionDeletion plan = Must(PlanSessionDeletion(*catalog, "main"));
  EXPECT_EQ(plan.checkpoints, 2u);
  EXPECT_EQ(plan.shared_by, std::vector<std::string>{"own"});
}

// Mutant: delete-shared-session.
TEST_F(LineageTest, WhatASessionThatGrewOutOfAnotherHasStaysWhenThatIsDeleted) {
  Session("parent");
  for (uint64_t i = 1; i <= 3; ++i) Make("p" + std::to_string(i), "parent", i);
  Session("fork", "parent", 2);
  Make("f3", "fork", 3);
  SessionDeletion plan = Must(PlanSessionDeletion(*catalog, "parent"));
  EXPECT_EQ(plan.checkpoints, 1u);
  EXPECT_EQ(plan.shared.size(), 2u);
  EXPECT_EQ(Must(DeleteSession(*store, *catalog, plan)), 1u);
  EXPECT_EQ(At("turn:1", "fork"), "p1");
  EXPECT_EQ(At("turn:2", "fork"), "p2");
  EXPECT_EQ(At("turn:3", "fork"), "f3");
  EXPECT_EQ(At("turn:3", "parent"), ErrcName(Errc::kNotFound));
  // Nothing is left that is its own.
  plan = Must(PlanSessionDeletion(*catalog, "parent"));
  const auto refused = DeleteSession(*store, *catalog, plan);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "fork"))));
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "parent"))));
  EXPECT_TRUE(Must(catalog->ListCheckpoints({})).empty());
}

// Mutant: turns-that-a-fork-has-go.
TEST_F(LineageTest, OfADeletedSessionOnlyTheTurnsThatAnotherHasStay) {
  Session("parent");
  auto turn = [&](const std::string& of, uint64_t number) {
    auto writer = Must(store->Begin());
    writer->Add(ToRecord(TurnRecord{.session = of, .turn = number, .prompt = "wish"},
                         RecordId(store->random().NewId()), roots[0].id, 1));
    Must(writer->Commit());
  };
  for (uint64_t i = 1; i <= 3; ++i) turn("parent", i);
  Session("fork", "parent", 2);
  turn("fork", 3);
  turn("parent", 4);
  SessionDeletion plan = Must(PlanSessionDeletion(*catalog, "parent"));
  EXPECT_EQ(plan.kept_turns, 2u);
  EXPECT_EQ(plan.records.size(), 2u);
  Must(DeleteSession(*store, *catalog, plan));
  std::string left;
  for (const LogRecord& record :
       Must(catalog->ListRecords({.kind = RecordKind::kTurn}))) {
    const TurnRecord one = Must(ToTurn(record));
    left += one.session + std::to_string(one.turn) + " ";
  }
  EXPECT_EQ(left, "fork3 parent2 parent1 ");
  const auto refused =
      DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "parent")));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "fork"))));
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "parent"))));
  EXPECT_TRUE(Must(catalog->ListRecords({.kind = RecordKind::kTurn})).empty());
}

// Whoever pinned it wants to know what was asked for, and what was said.
TEST_F(LineageTest, WithWhatIsPinnedStayItsTurnAndTheCopies) {
  for (const bool forked : {true, false}) {
    SCOPED_TRACE(forked ? "and another session grew out of it" : "by itself");
    const std::string own = forked ? "forked" : "alone";
    Session(own);
    for (uint64_t i = 1; i <= 4; ++i) Make(own + std::to_string(i), own, i);
    if (forked) Session("fork", own, 1);
    Make(own + "5", own, 5);
    auto writer = Must(store->Begin());
    writer->Add(ToRecord(TranscriptRecord{.session = own, .path = "/t"},
                         RecordId(store->random().NewId()), roots[0].id, 1));
    Must(writer->Commit());
    Must(Annotate(*store, Must(catalog->FindById({}, IdFor(own + "3").text())),
                  {.pinned = true}));
    const auto plan = [&] {
      return Must(PlanSessionDeletion(
          *catalog, own, [](const std::string&) { return Result<bool>(true); }));
    };
    EXPECT_EQ(plan().kept_turns, forked ? 2u : 5u);
    EXPECT_EQ(plan().kept_copies, 1u);
    Must(DeleteSession(*store, *catalog, plan()));
    std::set<uint64_t> turns;
    for (const LogRecord& record :
         Must(catalog->ListRecords({.kind = RecordKind::kTurn})))
      if (const TurnRecord one = Must(ToTurn(record)); one.session == own)
        turns.insert(one.turn);
    EXPECT_EQ(turns, forked ? (std::set<uint64_t>{1, 3})
                            : (std::set<uint64_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(At("turn:3", own), own + "3");
    EXPECT_EQ(Must(ListTranscripts(*catalog, own)).size(), 1u);
    Must(Annotate(*store, Must(catalog->FindById({}, IdFor(own + "3").text())),
                  {.pinned = false}));
    EXPECT_EQ(plan().kept_copies, 0u);
    Must(DeleteSession(*store, *catalog, plan()));
    EXPECT_TRUE(Must(ListTranscripts(*catalog, own)).empty());
  }
}

TEST_F(LineageTest, EachSessionsFirstAndNewestStayWhateverTheyGrewOutOf) {
  Session("parent");
  for (uint64_t i = 1; i <= 9; ++i) Make("p" + std::to_string(i), "parent", i);
  Session("fork", "parent", 5);
  for (uint64_t i = 6; i <= 9; ++i) Make("f" + std::to_string(i), "fork", i);
  auto entries = Must(catalog->ListCheckpoints({.root = roots[0].id}));
  for (CatalogEntry& entry : entries) entry.checkpoint.name.reset();
  const RetentionPlan plan =
      PlanRetention(entries, {}, {.autos = 0, .days = 30, .undo = 5}, 6);
  std::set<RecordId> gone;
  for (const Doomed& doomed : plan.checkpoints) gone.insert(doomed.entry.checkpoint.id);
  for (const char* name : {"p1", "p9", "f6", "f9"})
    EXPECT_FALSE(gone.contains(IdFor(name))) << name;
  EXPECT_TRUE(gone.contains(IdFor("p5")));
}

}  // namespace
}  // namespace belay::test
