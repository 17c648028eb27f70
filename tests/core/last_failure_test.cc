#include "core/last_failure.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

class LastFailureTest : public ::testing::Test {
 protected:
  LastFailureTest() : world_(disk_, AbsPath::Literal("/w")) {
    EXPECT_TRUE(MakeDirs(disk_, AbsPath::Literal("/w"), 0755).ok());
    EXPECT_TRUE(world_.Dir().ok());
    EXPECT_TRUE(world_.Capture("first").ok());
  }
  void Capture(CheckpointKind kind) {
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok());
    CaptureRequest request;
    request.root = opened->root;
    request.settings = &world_.settings;
    request.git.user.no_system = true;
    request.kind = kind;
    request.threads = 1;
    ASSERT_TRUE(CaptureCheckpoint(*opened->store, request).ok());
  }
  void Fail(FailureOf of) {
    auto opened = world_.Open();
    ASSERT_TRUE(opened.ok());
    auto last = opened->catalog->LastCheckpoint(opened->root.id);
    RememberFailure(*opened->store, opened->root.id,
                    {.of = of,
                     .at_ms = world_.world.clock.WallMillis(),
                     .after = (*last)->checkpoint.id,
                     .what = "what went wrong"});
  }
  bool Counts(FailureOf of) {
    auto opened = world_.Open();
    EXPECT_TRUE(opened.ok());
    auto read = ReadFailure(*opened->store, *opened->catalog, opened->root.id, of);
    EXPECT_TRUE(read.ok());
    return read->has_value() && (*read)->what == "what went wrong";
  }

  MemFs disk_;
  RestoreWorld world_;
};

TEST_F(LastFailureTest, ACheckpointThatFailedIsSaidUntilThereIsOne) {
  Fail(FailureOf::kCheckpoint);
  EXPECT_TRUE(Counts(FailureOf::kCheckpoint));
  EXPECT_FALSE(Counts(FailureOf::kRollback));
  Capture(CheckpointKind::kAuto);
  EXPECT_FALSE(Counts(FailureOf::kCheckpoint));
}

TEST_F(LastFailureTest, AMixIsSaidUntilAPersonGoesOn) {
  Fail(FailureOf::kRollback);
  Fail(FailureOf::kCheckpoint);  // takes nothing from the other
  Capture(CheckpointKind::kAuto);
  Capture(CheckpointKind::kAuto);
  EXPECT_TRUE(Counts(FailureOf::kRollback));
  Capture(CheckpointKind::kManual);
  EXPECT_FALSE(Counts(FailureOf::kRollback));
}

}  // namespace
}  // namespace belay::test
