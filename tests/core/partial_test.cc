#include "core/partial.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

class PartialTest : public ::testing::Test {
 protected:
  PartialTest() : world_(disk_, AbsPath::Literal("/w")) {
    Must(MakeDirs(disk_, AbsPath::Literal("/w"), 0755));
    Must(world_.Dir());
  }
  RecordId Add(const std::string& session, bool partial,
               CheckpointKind kind = CheckpointKind::kAuto, bool imported = false,
               const std::string& description = "") {
    auto opened = Must(world_.Open());
    auto writer = Must(opened.store->Begin());
    Checkpoint c;
    c.id = RecordId(opened.store->random().NewId());
    c.root = opened.root.id;
    c.kind = kind;
    c.state = Must(PutFiles(*writer, {{"a", "1"}}));
    if (!session.empty()) c.session = session;
    c.partial = partial;
    c.imported = imported;
    c.description = description;
    writer->Add(ToRecord(c));
    Must(writer->Commit());
    return c.id;
  }
  // How many, and which of them is the newest; "" when there is none.
  std::string Found() {
    auto opened = Must(world_.Open());
    const auto found = Must(FindPartial(*opened.catalog, opened.root.id));
    if (!found) return "";
    return std::to_string(found->count) + " " + found->last.checkpoint.id.text() +
           (found->is_newest ? " newest" : "") + (found->is_start ? " start" : "");
  }

  MemFs disk_;
  RestoreWorld world_;
};

// Mutant: partial-checkpoints-are-whole.
TEST_F(PartialTest, AreSaidWhileTheirSessionIsTheLast) {
  EXPECT_EQ(Found(), "");
  Add("s", false);
  EXPECT_EQ(Found(), "");
  std::string id = Add("s", true).text();
  EXPECT_EQ(Found(), "1 " + id + " newest");
  id = Add("s", true).text();
  EXPECT_EQ(Found(), "2 " + id + " newest");
  Add("s", false);
  Add("s", false, CheckpointKind::kSafety);
  Add("", false, CheckpointKind::kSafety);
  EXPECT_EQ(Found(), "2 " + id);
  Add("t", false);
  EXPECT_EQ(Found(), "") << "another session is at work";
  Add("", true, CheckpointKind::kManual, /*imported=*/true);
  EXPECT_EQ(Found(), "") << "a commit holds what git has";
  id = Add("", true, CheckpointKind::kManual).text();
  EXPECT_EQ(Found(), "1 " + id + " newest") << "of belay run";
  Add("", false, CheckpointKind::kManual);
  EXPECT_EQ(Found(), "");
}

// Nobody waits for it, and the agent may have written right away.
TEST_F(PartialTest, ThatOfASessionsStartIsSaidUntilThereIsAnother) {
  const std::string id =
      Add("s", true, CheckpointKind::kAuto, false, "session started").text();
  EXPECT_EQ(Found(), "1 " + id + " newest start");
  Add("s", false);
  EXPECT_EQ(Found(), "");
  const std::string late = Add("s", true).text();
  EXPECT_EQ(Found(), "1 " + late + " newest");
}

}  // namespace
}  // namespace belay::test
