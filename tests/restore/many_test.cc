// Rollbacks of so many files that both threads are at it (restore/both.h).

#include <atomic>
#include <utility>

#include "restore/both.h"
#include "support/pass_fs.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

class ManyTest : public RollbackTest {
 protected:
  static std::string NameOf(int i) {
    return "dir" + std::to_string(i / 12) + "/file" + std::to_string(i);
  }
  void MakeMany() {
    for (int i = 0; i < kFiles; ++i) Put(NameOf(i), "start " + std::to_string(i));
    Must(world.Capture("start"));
    start = Tree();
    for (int i = 0; i < kFiles; ++i) {
      if (i % 9 == 0)
        Remove(NameOf(i));
      else
        Put(NameOf(i), "now, and longer " + std::to_string(i));
    }
    for (int i = 0; i < 20; ++i) Put("new" + std::to_string(i) + "/new", "new");
    now = Tree();
  }
  static constexpr int kFiles = 400;
};

TEST_F(ManyTest, AllComeBackAndGoAgain) {
  MakeMany();
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(done.plan.changes.size(), kFiles + 40u);
  EXPECT_EQ(Tree(), start);
  ExpectNoTraces();
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
  Must(world.Redo());
  EXPECT_EQ(Tree(), start);
  ExpectNoTraces();
}

TEST_F(ManyTest, AFailedWriteOfOneTakesAllBack) {
  MakeMany();
  struct Failing : PassFs {
    using PassFs::PassFs;
    Result<size_t> Write(const Fd& file, uint64_t offset, ByteSpan bytes) override {
      if (AsText(bytes) == "start 301") return FsError(EIO, "write", "file301");
      return PassFs::Write(file, offset, bytes);
    }
  } fs(disk);
  Through other(fs, *this);
  auto done = other.world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_TRUE(done.error().hint.starts_with("nothing was changed (your present state"))
      << done.error().hint;
  EXPECT_EQ(Tree(), now);
  ExpectNoTraces();
}

TEST_F(ManyTest, AFailedFlushTakesAllBack) {
  MakeMany();
  struct Failing : PassFs {
    using PassFs::PassFs;
    Status SyncAll(const Fd& any) override {
      if (!std::exchange(failed, true)) return FsError(EIO, "flush", "project");
      return PassFs::SyncAll(any);
    }
    bool failed = false;
  } fs(disk);
  Through other(fs, *this);
  auto done = other.world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kIo);
  EXPECT_EQ(Tree(), now);
  EXPECT_TRUE(Operations().empty());
  ExpectNoTraces();
}

TEST_F(ManyTest, ADiskThatLiesAboutOneIsNoticed) {
  MakeMany();
  struct Lying : PassFs {
    using PassFs::PassFs;
    Result<size_t> Write(const Fd& file, uint64_t offset, ByteSpan bytes) override {
      if (AsText(bytes) != "start 302") return PassFs::Write(file, offset, bytes);
      return PassFs::Write(file, offset, AsBytes("stort 302"));
    }
  } fs(disk);
  Through other(fs, *this);
  auto done = other.world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kIo);
  EXPECT_EQ(Tree(), now);
  ExpectNoTraces();
}

TEST_F(ManyTest, StoppedInTheMiddleItIsTakenBack) {
  MakeMany();
  int asked = 0;
  world.stop = [&] { return ++asked == 150; };
  EXPECT_EQ(world.Rollback("start").error().code, Errc::kRefused);
  EXPECT_EQ(Tree(), now);
  ExpectNoTraces();
}

TEST(OnBothThreads, VisitsEachOnceAndEndsWhenTold) {
  for (size_t count : {size_t{0}, size_t{5}, size_t{127}, size_t{128}, size_t{1001}}) {
    std::vector<std::atomic<int>> visits(count);
    OnBothThreads(count, [&](size_t thread, size_t i) {
      EXPECT_LT(thread, 2u);
      ++visits[i];
      return true;
    });
    for (auto& visit : visits) EXPECT_EQ(visit, 1);
    std::atomic<size_t> seen{0};
    OnBothThreads(count, [&](size_t, size_t) { return ++seen < 3; });
    EXPECT_LE(seen, 4u);
  }
}

}  // namespace
}  // namespace belay::test
