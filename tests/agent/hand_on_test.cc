// What checkpoints knew that are let go: whose doing changes were, and files outside of
// the root as they were.

#include "core/hand_on.h"

#include <gtest/gtest.h>

#include <set>

#include "core/annotate.h"
#include "core/path_history.h"
#include "core/sessions.h"
#include "history/purge.h"
#include "support/agent_world.h"

namespace belay::test {
namespace {

class HandOnTest : public ::testing::Test {
 protected:
  // Who changed what since `target`, by path: sessions by name.
  std::string Since(const Checkpoint& target) {
    auto opened = Must(w_.world.Open());
    auto list = w_.List();
    std::erase_if(list, [&](const CatalogEntry& entry) {
      return entry.checkpoint.seq < target.seq;
    });
    auto history = Must(HistoryOf(
        *opened.store, [&](const ObjectId& id) { return opened.store->GetTree(id); },
        list, Must(ListOperations(*opened.catalog, opened.root.id)), {""}, {}, true));
    std::map<std::string, std::set<std::string>> who;
    for (const PathHistoryRow& row : history.rows) {
      if (row.checkpoint == nullptr) continue;
      for (const auto& changed : row.paths)
        for (const Author& author : AuthorsIn(row, changed.path))
          who[changed.path].insert(author.kind == Author::Kind::kOutside ? "outside"
                                   : author.kind == Author::Kind::kUnknown
                                       ? "unknown"
                                       : *author.session);
    }
    std::string out;
    for (const auto& [path, names] : who) {
      out += (out.empty() ? "" : " ") + path + "=";
      for (const std::string& name : names)
        out += (name == *names.begin() ? "" : "+") + name;
    }
    return out;
  }
  std::string Outside(const Outcome& shown) {
    std::string out;
    for (const std::string& path : shown.plan.outside) out += path + " ";
    return out;
  }

  MemFs disk_;
  AgentWorld w_{disk_};
};

TEST_F(HandOnTest, AuthorsSurviveRetention) {
  // The first of its session, which stays.
  w_.Prompt("s");
  const Checkpoint target = w_.last;
  w_.Write("s", "t1", "one", "1");
  w_.Put("person", "22");
  w_.Put("both", "22");
  w_.Write("s", "t2", "two", "333");
  w_.Write("s", "t3", "both", "4444");
  w_.Start("other");
  w_.Write("other", "t4", "theirs", "55555");
  w_.Write("s", "t5", "one", "666666");
  w_.Prompt("s");
  const std::string before = Since(target);
  EXPECT_EQ(before, "both=outside+s one=s person=outside theirs=other two=s");
  ASSERT_GT(w_.Prune(1), 5u);
  EXPECT_EQ(Since(target), before);
  EXPECT_EQ(Outside(Must(w_.Preview(target))), "both person theirs ");
  // And again, when those that were handed something go themselves.
  w_.Write("s", "t6", "six", "7777777");
  w_.Put("person", "88888888");
  w_.Prompt("s");
  w_.Prompt("s");
  ASSERT_GT(w_.Prune(0), 0u);
  EXPECT_EQ(Since(target),
            "both=outside+s one=s person=outside six=s theirs=other two=s");
}

// The promise of it all: a long session, edits of a person among its calls, and a
// rollback to its first turn that asks about those alone.
TEST_F(HandOnTest, SixHundredCallsLater) {
  w_.Prompt("s", "the first");
  const Checkpoint target = w_.last;
  for (int i = 0; i < 600; ++i) {
    const std::string n = std::to_string(i);
    if (i % 97 == 50) w_.Put("by-hand-" + n, "typed");
    if (i == 300) w_.Put("src/f3", "typed over what the agent wrote");
    w_.Write("s", "t" + n, "src/f" + std::to_string(i % 40), "call " + n);
    if (i % 100 == 99) {
      w_.Prompt("s", "prompt " + n);
      w_.Prune(50);
    }
  }
  EXPECT_LT(w_.List().size(), 130u);
  const Outcome shown = Must(w_.Preview(target));
  EXPECT_EQ(Outside(shown),
            "by-hand-147 by-hand-244 by-hand-341 by-hand-438 by-hand-50 by-hand-535 "
            "src/f3 ");
  auto refused = w_.Back(target);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("7 paths were changed by others"),
            std::string::npos)
      << refused.error().what;
  w_.outside = OnOutside::kKeep;
  Must(w_.Back(target));
  EXPECT_EQ(w_.Files(),
            "by-hand-147 by-hand-244 by-hand-341 by-hand-438 by-hand-50 by-hand-535 "
            "old.txt src ");
}

// One that saw no change itself shows, once the one before it is gone, what that one
// did, and says whose doing it was.
TEST_F(HandOnTest, WhoSawNoChangeDoesNotClaimWhatCameBefore) {
  w_.Start("s");
  w_.Prompt("s");
  const Checkpoint target = w_.last;
  w_.Put("person", "1");
  w_.Pre("s", "t1");
  const RecordId gone = w_.last.id;
  w_.Post("s", "t1");
  w_.Prompt("s");  // nothing changed since
  ASSERT_TRUE(w_.last.by.empty());
  {
    auto opened = Must(w_.world.Open());
    Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, {gone},
                           "delete",
                           /*hand_on=*/false));
  }
  EXPECT_EQ(Since(target), "person=unknown");
}

TEST_F(HandOnTest, ByHandTheSame) {
  w_.Start("s");
  w_.Prompt("s");
  const Checkpoint target = w_.last;
  w_.Put("person", "1");
  w_.Write("s", "t1", "one", "22");
  const RecordId gone = w_.last.id;
  w_.Write("s", "t2", "two", "333");
  auto opened = Must(w_.world.Open());
  Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, {gone}));
  EXPECT_EQ(Since(target), "one=s person=outside two=s");
  // Nobody did anything that is worth telling.
  for (const Deed& deed : Must(ListDeeds(*opened.catalog, opened.root.id)))
    EXPECT_EQ(deed.name, "delete");
}

// What a rollback did in between is its own, and nobody's after it.
// What a session did that another grew out of is the past of that one.
TEST_F(HandOnTest, WhereItsSessionIsDeletedAndAnotherGrewOutOfIt) {
  w_.Start("s");
  w_.Prompt("s");
  const Checkpoint first = w_.last;
  w_.Write("s", "t1", "one", "1");
  w_.Prompt("s");
  w_.Write("s", "t2", "two", "22");
  HookEvent event = w_.Event(EventKind::kSessionStart, "f");
  event.source = "fork";
  event.parent_session = "s";
  event.parent_turns = 1;
  w_.Tell(event);
  w_.Prompt("f");
  w_.Write("f", "t3", "three", "333");
  EXPECT_EQ(Outside(Must(w_.Preview(first))), "");
  {
    auto opened = Must(w_.world.Open());
    const SessionDeletion plan = Must(PlanSessionDeletion(*opened.catalog, "s"));
    EXPECT_EQ(plan.shared_by, (std::vector<std::string>{"f"}));
    EXPECT_GT(Must(DeleteSession(*opened.store, *opened.catalog, plan)), 0u);
  }
  EXPECT_EQ(Outside(Must(w_.Preview(first))), "");
  w_.Put("person", "4444");
  EXPECT_EQ(Outside(Must(w_.Preview(first))), "person ");
}

TEST_F(HandOnTest, AcrossARollback) {
  w_.Start("s");
  w_.Prompt("s");
  const Checkpoint target = w_.last;
  w_.Write("s", "t1", "one", "1");
  w_.outside = OnOutside::kExact;
  Must(w_.Back(target));
  w_.Write("s", "t2", "one", "22");
  w_.Put("person", "333");
  w_.Write("s", "t3", "three", "4444");
  w_.Prompt("s");
  const std::string before = Since(target);
  EXPECT_EQ(before, "one=s person=outside three=s");
  ASSERT_GT(w_.Prune(0), 0u);
  EXPECT_EQ(Since(target), before);
}

TEST_F(HandOnTest, WhereNoAgentWasNothingIsHandedOn) {
  Must(w_.world.Capture("a"));
  w_.Put("x", "1");
  const RecordId gone = Must(w_.world.Capture("b")).checkpoint.id;
  w_.Put("y", "22");
  Must(w_.world.Capture("c"));
  auto opened = Must(w_.world.Open());
  Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, {gone}));
  EXPECT_TRUE(
      Must(opened.catalog->ListRecords({.kind = RecordKind::kAnnotation})).empty());
}

TEST_F(HandOnTest, APurgedSessionIsNamedByNobody) {
  w_.Prompt("s");
  const Checkpoint target = w_.last;
  w_.Start("swordfish");
  w_.Write("swordfish", "t1", "theirs", "1");
  w_.Write("s", "t2", "two", "22");
  Must(w_.world.Capture("by hand"));
  w_.Write("swordfish", "t3", "later", "333");
  w_.Prompt("s");
  ASSERT_GT(w_.Prune(0), 0u);
  EXPECT_EQ(Since(target), "later=swordfish theirs=swordfish two=s");
  {
    auto opened = Must(w_.world.Open());
    PurgeRequest request;
    request.session = "swordfish";
    request.lock_wait_ms = 200;
    Must(Purge(*opened.store, request));
    for (const LogRecord& record :
         Must(opened.catalog->ListRecords({.kind = RecordKind::kAnnotation})))
      EXPECT_EQ(AsText(EncodeLogRecord(record)).find("swordfish"), std::string::npos);
  }
  EXPECT_NE(Since(target).find("theirs=unknown"), std::string::npos) << Since(target);
}

// --- within bounds -------------------------------------------------------------------

Author Session(const std::string& name, const std::string& call, uint64_t turn) {
  return {.kind = Author::Kind::kSession,
          .session = name,
          .agent = "claude",
          .tool_name = "Write",
          .tool_use_id = call,
          .turn = turn};
}

TEST(Condense, IsExactWhereItFits) {
  const auto by = Condense({{"a", {Session("s", "1", 1)}},
                            {"b", {Session("s", "1", 1)}},
                            {"c", {Session("s", "2", 1), Author()}}});
  ASSERT_EQ(by.size(), 2u);
  EXPECT_EQ(by[0].paths, std::vector<std::string>{"c"});
  EXPECT_EQ(by[0].authors.size(), 2u);
  EXPECT_EQ(by[1].authors, std::vector<Author>{Session("s", "1", 1)});
}

TEST(Condense, ManyCallsBecomeTurnsAndManyTurnsASession) {
  std::map<std::string, std::vector<Author>> by_turn, by_session;
  for (int i = 0; i < 300; ++i) {
    const std::string n = std::to_string(i);
    by_turn["f" + n] = {Session("s", n, 1 + static_cast<uint64_t>(i % 3))};
    by_session["f" + n] = {Session("s", n, 1 + static_cast<uint64_t>(i))};
  }
  EXPECT_EQ(Condense(by_turn).size(), 3u);
  const auto one = Condense(by_session);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].authors[0].session, "s");
  EXPECT_EQ(one[0].authors[0].turn, std::nullopt);
}

TEST(Condense, OfTooManyPathsTheLargestShareNeedsNoList) {
  std::map<std::string, std::vector<Author>> many;
  for (int i = 0; i < 6000; ++i) many["f" + std::to_string(i)] = {Session("s", "1", 1)};
  many["person"] = {Author()};
  Checkpoint c;
  c.by = Condense(many);
  EXPECT_EQ(AuthorsOf(c, "person")[0].kind, Author::Kind::kOutside);
  EXPECT_EQ(AuthorsOf(c, "f17")[0].session, "s");
  EXPECT_LT(EncodeLogRecord(ToRecord(c)).size(), 1000u);
}

// Nobody is taken for somebody else because there was no room.
TEST(Condense, WhatDoesNotFitIsOfUnknownAuthors) {
  std::map<std::string, std::vector<Author>> many;
  for (int i = 0; i < 4000; ++i) {
    many["a" + std::to_string(i)] = {Session("s", "1", 1)};
    many["b" + std::to_string(i)] = {Session("other", "1", 1)};
    many["c" + std::to_string(i)] = {Author()};
  }
  many["person"] = {Author()};
  Checkpoint c;
  c.by = Condense(many);
  EXPECT_LT(EncodeLogRecord(ToRecord(c)).size(), size_t{300} << 10);
  std::set<Author::Kind> of_c;
  for (int i = 0; i < 4000; ++i) {
    of_c.insert(AuthorsOf(c, "c" + std::to_string(i))[0].kind);
    const Author a = AuthorsOf(c, "a" + std::to_string(i))[0];
    EXPECT_TRUE(a.session == "s" || a.kind == Author::Kind::kUnknown) << i;
    const Author b = AuthorsOf(c, "b" + std::to_string(i))[0];
    EXPECT_TRUE(b.session == "other" || b.kind == Author::Kind::kUnknown) << i;
  }
  EXPECT_FALSE(of_c.contains(Author::Kind::kSession));
}

}  // namespace
}  // namespace belay::test
