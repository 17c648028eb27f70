#include "core/last_failure.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "core/operations.h"
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

TEST_F(LastFailureTest, OneFromBeforeAProgramIsSaidUntilAPersonGoesOn) {
  Fail(FailureOf::kBeforeRun);
  EXPECT_FALSE(Counts(FailureOf::kCheckpoint));
  Capture(CheckpointKind::kAuto);  // the one from after
  EXPECT_TRUE(Counts(FailureOf::kBeforeRun));
  Capture(CheckpointKind::kManual);
  EXPECT_FALSE(Counts(FailureOf::kBeforeRun));
  Fail(FailureOf::kBeforeRun);
  Capture(CheckpointKind::kAuto);
  EXPECT_TRUE(Counts(FailureOf::kBeforeRun));
  auto opened = Must(world_.Open());
  Operation rollback;
  rollback.id = RecordId(world_.world.random.NewId());
  rollback.root = opened.root.id;
  rollback.made_ms = world_.world.clock.WallMillis() + 1000;
  auto writer = Must(opened.store->Begin());
  writer->Add(ToRecord(rollback));
  Must(writer->Commit());
  EXPECT_FALSE(Counts(FailureOf::kBeforeRun));
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
