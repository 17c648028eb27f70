// What `belay events` tells of a log whose packs are not in the order of its numbers.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem_fs.h"
#include "cli/outcome.h"
#include "cli/run.h"
#include "core/chat.h"
#include "store/gc.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class EventsTest : public ::testing::Test {
 protected:
  static MemFs::Options Options() {
    MemFs::Options options;
    options.uid = geteuid();
    return options;
  }
  void SetUp() override {
    setenv("BELAY_HOME", "/store", 1);
    ASSERT_TRUE(MakeDirs(disk_, AbsPath::Literal("/project"), 0755).ok());
    world_.options.uid = geteuid();
    world_.options.pack_target = 20'000;
    root_ = RootId(world_.random.NewId());
    Add({ToRecord(Root{root_, "/project"}, RecordId(root_), 1)});
  }
  void TearDown() override { unsetenv("BELAY_HOME"); }

  std::unique_ptr<Store> Open() { return world_.Open().value(); }
  RecordId NewId() { return RecordId(world_.random.NewId()); }
  void Add(std::vector<LogRecord> records) {
    auto store = Open();
    auto writer = store->Begin();
    ASSERT_TRUE(writer.ok());
    // What operations changed: nothing.
    ASSERT_TRUE((*writer)->PutObject(ObjectType::kNode, nothing_).ok());
    for (LogRecord& record : records) (*writer)->Add(std::move(record));
    ASSERT_TRUE((*writer)->Commit().ok());
  }
  void Turn(uint64_t number) {
    Add({ToRecord(TurnRecord{.session = "s", .turn = number, .prompt = "wish"}, NewId(),
                  root_, 1)});
  }
  // A rewind of a host, or `of` one its undo.
  RecordId Rewind(uint64_t turn, const std::string& message,
                  std::optional<RecordId> of = {}) {
    const RecordId id = NewId();
    Add({ToRecord(
             Operation{.id = id,
                       .root = root_,
                       .made_ms = 1,
                       .kind = of ? OperationKind::kUndo : OperationKind::kRollback,
                       .changes = Sha256::Of(nothing_),
                       .of = of,
                       .chat = ChatRecord{.agent = "acme",
                                          .session = "s",
                                          .hosted = true,
                                          .turn = turn,
                                          .message = message,
                                          .inherited = turn - 1,
                                          .alone = true}}),
         ToRecord(
             SessionRecord{
                 .session = "s", .agent = "acme", .by = SessionRecord::By::kGoesOn},
             NewId(), root_, 1)});
    return id;
  }

  std::vector<std::string> Told() {
    std::string words[] = {"belay", "events", "--root", "/project"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(RunCli(disk_, static_cast<int>(argv.size()), argv.data()), 0);
    const std::string out = ::testing::internal::GetCapturedStdout();
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; (end = out.find('\n', at)) != std::string::npos;
         at = end + 1)
      lines.push_back(out.substr(at, end - at));
    return lines;
  }
  static uint64_t IdOf(const std::string& line) {
    return std::stoull(line.substr(line.find("\"id\":\"") + 6));
  }

  MemFs disk_{Options()};
  World world_{disk_};
  RootId root_;
  const Bytes nothing_ = EncodeNode(Node());
};

// Mutant: events-in-the-order-of-packs.
TEST_F(EventsTest, ACollectionThatTurnsPacksRoundChangesNothingOfThem) {
  for (uint64_t turn : {1, 2, 3, 4}) Turn(turn);
  Rewind(3, "m4");
  for (uint64_t turn : {5, 6, 7}) Turn(turn);
  {
    auto store = Open();
    ASSERT_TRUE(MakeCheckpoint(*store, "kept", {{"f", Noise(1, 15'000)}}, root_).ok());
    ASSERT_TRUE(MakeCheckpoint(*store, "gone", {{"f", Noise(2, 15'000)}}, root_).ok());
  }
  for (uint64_t turn : {8, 9}) Turn(turn);
  const RecordId second = Rewind(8, "m14");
  {
    auto store = Open();
    ASSERT_TRUE(DropCheckpoints(*store, {"gone"}).ok());
    ASSERT_EQ(store->manifest().packs.size(), 2U);
    const PackId first = store->manifest().packs.front().id;
    const auto collected = CollectGarbage(*store, {});
    ASSERT_TRUE(collected.ok()) << collected.error().what;
    ASSERT_EQ(store->manifest().packs.back().id, first) << "the older pack is last";
  }
  Rewind(8, "m14", second);

  const std::vector<std::string> told = Told();
  ASSERT_GT(told.size(), 10U);
  uint64_t last = 0;
  for (const std::string& line : told) {
    EXPECT_GT(IdOf(line), last) << line;
    last = IdOf(line);
    EXPECT_NE(line.find(R"("root":"/project")"), std::string::npos) << line;
  }
  // The older rewind stands, and all that was said since it counts.
  EXPECT_NE(told.back().find(R"("type":"session.rewound")"), std::string::npos);
  EXPECT_NE(told.back().find(
                R"("kept":{"turn":9,"before_message":null,"before_index":null})"),
            std::string::npos)
      << told.back();
}

// Mutant: told-of-each-pack.
TEST_F(EventsTest, WhatStandsInTwoPacksIsToldOnce) {
  for (uint64_t turn : {1, 2}) Turn(turn);
  std::vector<LogRecord> records;
  {
    auto store = Open();
    ASSERT_TRUE(store
                    ->ReadLog({},
                              [&](const LogRecord& record) {
                                records.push_back(record);
                                return Ok();
                              })
                    .ok());
  }
  const size_t before = Told().size();
  Add(records);
  EXPECT_EQ(Told().size(), before);
}

}  // namespace
}  // namespace belay::test
