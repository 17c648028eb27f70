// Something is mounted inside the root while a rollback is interrupted. (Needs root.)

#include <sched.h>
#include <sys/mount.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/fault_fs.h"
#include "restore/journal.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class MountTest : public RealRestoreTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root mounts";
    // Nobody else sees what we mount.
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      GTEST_SKIP() << "no mount namespace: " << std::strerror(errno);
  }
  void TearDown() override {
    for (const std::string& place : mounted_) umount2(place.c_str(), MNT_DETACH);
  }
  void Mount(const std::string& below) {
    ASSERT_EQ(mount("none", PathTo(below).c_str(), "tmpfs", 0, "size=1m"), 0)
        << std::strerror(errno);
    mounted_.push_back(PathTo(below));
  }
  void Unmount() {
    ASSERT_EQ(umount(mounted_.back().c_str()), 0) << std::strerror(errno);
    mounted_.pop_back();
  }
  void PutThere(const std::string& path, const std::string& content) {
    std::filesystem::create_directories(
        std::filesystem::path(PathTo(path)).parent_path());
    std::ofstream(PathTo(path)) << content;
  }
  std::string ReadThere(const std::string& path) {
    std::ifstream file(PathTo(path));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // All that is mounted there.
  std::set<std::string> ListThere(const std::string& path) {
    std::set<std::string> out;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(PathTo(path)))
      out.insert(entry.path().lexically_relative(PathTo(path)).string());
    return out;
  }
  std::vector<std::string> mounted_;
};

// `force`: somebody does not wait for it.
class AnyMountTest : public MountTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Waiting, AnyMountTest, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "forced" : "patient"; });

TEST_P(AnyMountTest, AMountInTheWayOfRecoveryIsNotTouchedAndWedgesNobody) {
  Put("a", "a0");
  Put("dir/x", "x0");
  Put("dir/y", "y0");
  Put("dir/sub/z", "z0");
  Put("last", "l0");
  Must(world.Capture("start"));
  const std::string start = Tree();
  size_t with_journal = 0, waited = 0;
  // Interrupted at every call that changes something.
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE("cut at " + std::to_string(at));
    Put("a", "a1");
    Put("dir/x", "x1");
    Remove("dir/y");
    Put("dir/new", "n1");
    Chmod("dir/sub/z", 0600);
    Put("dir/sub/z", "z1");
    Put("last", "l1");
    bool fired = false;
    {
      Fault cut = Fault::PowerCut(at);
      cut.mutating_only = true;
      FaultFs broken(disk_fs, cut);
      RestoreWorld dying(broken, temp.path(), 1000 + at, geteuid());
      dying.world.clock.SetWallMillis(1'000'000'000'000);
      dying.plan = world.plan;
      (void)dying.Rollback("start");
      fired = broken.fired();
    }
    if (!fired) break;
    Mount("dir");
    PutThere("dir/x", "not yours");
    PutThere("dir/sub/mine", "mine");
    bool pending = false;
    {
      auto opened = Must(world.Open());
      pending = Must(JournalFile::Exists(*opened.store, opened.root.id));
    }
    with_journal += pending;
    auto recovered = world.Recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().what;
    // Only what was complete is tidied up: the rest waits, and nothing else is begun.
    const bool waits = *recovered && (*recovered)->how == Recovered::How::kWaiting;
    waited += waits;
    if (*recovered && !waits) {
      EXPECT_EQ((*recovered)->how, Recovered::How::kTidied) << (*recovered)->text;
    }
    if (waits && GetParam()) {
      world.force = true;
      auto forced = world.Rollback("start");
      world.force = false;
      auto opened = Must(world.Open());
      EXPECT_FALSE(Must(JournalFile::Exists(*opened.store, opened.root.id)));
    } else if (waits) {
      EXPECT_NE((*recovered)->text.find("mounted over dir"), std::string::npos);
      EXPECT_EQ(world.Rollback("start").error().code, Errc::kRefused);
      auto opened = Must(world.Open());
      EXPECT_TRUE(Must(JournalFile::Exists(*opened.store, opened.root.id)));
    }
    // All that is mounted is as it was, and nothing more is there.
    EXPECT_EQ(ReadThere("dir/x"), "not yours");
    EXPECT_EQ(ReadThere("dir/sub/mine"), "mine");
    EXPECT_EQ(ListThere("dir"), (std::set<std::string>{"sub", "sub/mine", "x"}));
    Unmount();
    // Nothing was lost, and the way back is open.
    if (waits && !GetParam()) {
      auto finished = Must(world.Recover());
      ASSERT_TRUE(finished);
      EXPECT_EQ(finished->how, Recovered::How::kFinished) << finished->text;
      EXPECT_EQ(Tree(), start);
    }
    EXPECT_TRUE(Read("dir/x") == "x1" || IsStoredSomewhere("dir/x", "x1"));
    EXPECT_TRUE(Read("dir/new") == "n1" || IsStoredSomewhere("dir/new", "n1"));
    Must(world.Rollback("start"));
    ASSERT_EQ(Tree(), start);
  }
  EXPECT_GT(waited, 0u);
  EXPECT_GE(with_journal, waited);
}

}  // namespace
}  // namespace belay::test
