#include "core/sessions.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "core/annotate.h"
#include "core/roots.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class SessionsTest : public ::testing::Test {
 protected:
  SessionsTest() {
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
  void Make(const std::string& name, size_t root, const std::string& session,
            int64_t at = 5) {
    auto writer = Must(store->Begin());
    Checkpoint c;
    c.id = IdFor(name);
    c.root = roots[root].id;
    c.made_ms = at;
    c.state = Must(PutFiles(*writer, {{"f", name}}));
    if (!session.empty()) c.session = session;
    c.agent = "claude";
    writer->Add(ToRecord(c));
    Must(writer->Commit());
  }
  void Tell(RecordKind kind, const std::string& session,
            const std::string& parent = "") {
    LogRecord record;
    record.kind = kind;
    record.id = RecordId(world.random.NewId());
    record.root = roots[0].id;
    record.made_ms = 7;
    record.fields.Add(1, session);
    if (!parent.empty()) record.fields.Add(3, parent);
    Publish(std::move(record));
  }
  std::string Left() {
    std::string names;
    for (const CatalogEntry& entry : Must(catalog->ListCheckpoints({})))
      for (const char* name : {"one", "two", "three", "four"})
        if (entry.checkpoint.id == IdFor(name))
          names += (names.empty() ? "" : " ") + std::string(name);
    return names;
  }

  MemFs disk;
  World world{disk};
  std::unique_ptr<Store> store;
  std::unique_ptr<Catalog> catalog;
  std::vector<Root> roots;
};

TEST_F(SessionsTest, AreListedWithWhereAndWhen) {
  Make("one", 0, "s1", 10);
  Make("two", 0, "", 11);
  Make("three", 1, "s2", 12);
  Make("four", 1, "s1", 13);
  Tell(RecordKind::kTurn, "s1");
  auto all = Must(ListSessions(*catalog, std::nullopt));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "s1");
  EXPECT_EQ(all[0].checkpoints, 2u);
  EXPECT_EQ(all[0].turns, 1u);
  EXPECT_EQ(all[0].roots, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(all[0].agent, "claude");
  EXPECT_EQ(all[0].first_ms, 7);
  EXPECT_EQ(all[0].last_ms, 13);
  EXPECT_EQ(all[1].id, "s2");
  auto here = Must(ListSessions(*catalog, roots[1].id));
  ASSERT_EQ(here.size(), 2u);
  EXPECT_EQ(here[0].checkpoints, 1u);
}

TEST_F(SessionsTest, DeletingOneTakesItsCheckpointsInEveryRootButPinnedOnes) {
  Make("one", 0, "s1");
  Make("two", 0, "s1");
  Make("three", 1, "s1");
  Make("four", 1, "s2");
  Tell(RecordKind::kTurn, "s1");
  Must(Annotate(*store, Must(catalog->FindById({}, IdFor("two").text())),
                {.pinned = true}));
  SessionDeletion plan = Must(PlanSessionDeletion(*catalog, "s1"));
  EXPECT_EQ(plan.checkpoints, 2u);
  EXPECT_EQ(plan.pinned.size(), 1u);
  EXPECT_EQ(Must(DeleteSession(*store, *catalog, plan)), 2u);
  EXPECT_EQ(Left(), "four two");
  EXPECT_EQ(Must(ListDeeds(*catalog, roots[0].id))[0].name, "delete");
  // What is pinned still belongs to it, and so it is still known.
  EXPECT_EQ(Must(ListSessions(*catalog, std::nullopt)).size(), 2u);
  Must(Annotate(*store, Must(catalog->FindById({}, IdFor("two").text())),
                {.pinned = false}));
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "s1"))));
  EXPECT_EQ(Left(), "four");
  auto gone = PlanSessionDeletion(*catalog, "s1");
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Errc::kNotFound);
}

// It has nothing of it but the name: that stays.
TEST_F(SessionsTest, WhoASessionGrewOutOfIsToldStill) {
  Make("one", 0, "s1");
  Make("two", 0, "s2");
  Tell(RecordKind::kSession, "s1");
  Tell(RecordKind::kSession, "s2", "s1");
  const SessionDeletion plan = Must(PlanSessionDeletion(*catalog, "s1"));
  EXPECT_EQ(plan.shared_by, (std::vector<std::string>{"s2"}));
  EXPECT_EQ(Must(DeleteSession(*store, *catalog, plan)), 1u);
  EXPECT_EQ(Left(), "two");
  EXPECT_EQ(Must(catalog->ListRecords({.kind = RecordKind::kSession})).size(), 2u);
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "s2"))));
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "s1"))));
  EXPECT_EQ(Left(), "");
  EXPECT_TRUE(Must(catalog->ListRecords({.kind = RecordKind::kSession})).empty());
}

}  // namespace
}  // namespace belay::test
