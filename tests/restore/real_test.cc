// Rollbacks on a real disk: what depends on the kernel.

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "restore/journal.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class RealRollbackTest : public RealRestoreTest {
 protected:
  // Runs `body` in a child as an ordinary user; true when it returned 0. The project is
  // that user's.
  bool AsUser(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
        _exit(99);
      _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
      std::cerr << "the child gave " << WEXITSTATUS(status) << "\n";
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_F(RealRollbackTest, GoesThereAndBackWithEveryKindOfChange) {
  Put("edited", "then");
  Put("lost", "then", 0600);
  Put("swap", "then");
  Put("unswap/in", "then");
  Put("deep/a/b/c", "then");
  MakeDir("empty");
  Link("link", "lost");
  Must(world.Capture("start"));
  const std::string start = Tree();
  Put("edited", "now and longer");
  Remove("lost");
  Remove("swap");
  Put("swap/in", "now");
  Remove("unswap");
  Put("unswap", "now");
  Remove("deep");
  Remove("empty");
  Remove("link");
  Link("link", "/etc/passwd");
  Put("new", "now");
  const std::string now = Tree();
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
  EXPECT_TRUE(done.verified);
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
  Must(world.Redo());
  EXPECT_EQ(Tree(), start);
}

TEST_F(RealRollbackTest, AMappedFileIsReplacedNotWritten) {
  Put("a", "then");
  Must(world.Capture("start"));
  Put("a", "now!");
  const int fd = open(PathTo("a").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* mapped = mmap(nullptr, 4, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  close(fd);
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "then");
  EXPECT_EQ(std::string(static_cast<char*>(mapped), 4), "now!");
  munmap(mapped, 4);
}

TEST_F(RealRollbackTest, ARunningExecutableIsReplacedAndGoesOn) {
  std::ifstream in("/bin/sleep", std::ios::binary);
  const std::string program((std::istreambuf_iterator<char>(in)), {});
  ASSERT_FALSE(program.empty());
  Put("tool", "#!/bin/sh\nexit 7\n", 0755);
  Must(world.Capture("start"));
  Put("tool", program, 0755);
  const std::string path = PathTo("tool");
  int up[2];
  ASSERT_EQ(pipe2(up, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    execl(path.c_str(), "sleep", "1000", nullptr);
    _exit(98);
  }
  close(up[1]);
  char nothing;
  ASSERT_EQ(read(up[0], &nothing, 1), 0);  // closed by the exec: it runs
  close(up[0]);
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Read("tool"), "#!/bin/sh\nexit 7\n");
  EXPECT_EQ(kill(child, 0), 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "the program ended";
  // And back under it again.
  Must(world.Undo());
  EXPECT_EQ(Read("tool"), program);
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "the program ended";
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

TEST_F(RealRollbackTest, OtherNamesOfAHardLinkKeepTheirContent) {
  Put("a", "then");
  Must(world.Capture("start"));
  Put("a", "now");
  const std::string outside = (temp / "outside").bytes();
  ASSERT_EQ(link(PathTo("a").c_str(), outside.c_str()), 0);
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "then");
  std::ifstream in(outside);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "now");
}

TEST_F(RealRollbackTest, ASymlinkedParentIsNotFollowed) {
  Put("dir/a", "then");
  Put("dir/b", "then");
  Must(world.Capture("start"));
  Remove("dir");
  const std::string outside = (temp / "outside").bytes();
  ASSERT_EQ(mkdir(outside.c_str(), 0755), 0);
  std::ofstream(outside + "/a") << "canary";
  Link("dir", outside);
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("dir/a"), "then");
  EXPECT_EQ(Stat("dir").type, FileType::kDirectory);
  std::ifstream in(outside + "/a");
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "canary");
  EXPECT_NE(access((outside + "/b").c_str(), F_OK), 0);
  Must(world.Undo());
  EXPECT_EQ(Stat("dir").type, FileType::kSymlink);
  std::ifstream again(outside + "/a");
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(again)), {}), "canary");
}

TEST_F(RealRollbackTest, AccessControlListsComeBack) {
  Put("a", "then");
  // user::rw-, user:1234:r--, group::r--, mask::r--, other::r--
  const unsigned char acl[] = {2,  0, 0, 0,                       //
                               1,  0, 6, 0, 255,  255, 255, 255,  //
                               2,  0, 4, 0, 0xd2, 4,   0,   0,    //
                               4,  0, 4, 0, 255,  255, 255, 255,  //
                               16, 0, 4, 0, 255,  255, 255, 255,  //
                               32, 0, 4, 0, 255,  255, 255, 255};
  const std::string value(reinterpret_cast<const char*>(acl), sizeof acl);
  if (!disk_fs.SetXattr(Handle("a"), "system.posix_acl_access", AsBytes(value)).ok())
    GTEST_SKIP() << "no access control lists here";
  Must(world.Capture("start"));
  Put("a", "now");
  Remove("a");
  Put("a", "now");
  Must(world.Rollback("start"));
  EXPECT_EQ(Xattr("a", "system.posix_acl_access"), value);
  EXPECT_EQ(Read("a"), "then");
  Must(world.Undo());
  EXPECT_EQ(Xattr("a", "system.posix_acl_access"), "none");
}

TEST_F(RealRollbackTest, AnImmutableFileIsReportedBeforeAnythingMoves) {
  Put("a", "then");
  Put("b", "then");
  Must(world.Capture("start"));
  Put("a", "now");
  Put("b", "now");
  const int fd = open(PathTo("b").c_str(), O_RDONLY | O_CLOEXEC);
  int flags = 0;
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 ||
      (flags |= FS_IMMUTABLE_FL, ioctl(fd, FS_IOC_SETFLAGS, &flags) != 0)) {
    close(fd);
    GTEST_SKIP() << "no immutable files here";
  }
  auto done = world.Rollback("start");
  flags &= ~FS_IMMUTABLE_FL;
  ioctl(fd, FS_IOC_SETFLAGS, &flags);
  close(fd);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kRefused);
  EXPECT_NE(done.error().what.find("b is immutable"), std::string::npos);
  EXPECT_EQ(Read("a"), "now");
  EXPECT_EQ(Read("b"), "now");
}

TEST_F(RealRollbackTest, ReadOnlyFilesAndDirectoriesOfAUserComeBackAndStayReadOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  TempDir place;
  ASSERT_EQ(chown(place.path().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(AsUser([&]() -> int {
    RealFs fs;
    Project project(fs, place.path(), 65534);
    project.world.world.clock.SetWallMillis(1'000'000'000'000);
    project.world.plan.uid = 65534;
    project.world.plan.groups = {65534};
    project.Put("d/a", "then", 0444);
    project.Put("d/b", "then", 0400);
    project.Put("d/sub/c", "then", 0444);
    project.Chmod("d/sub", 0555);
    project.Chmod("d", 0555);
    Must(project.world.Capture("start"));
    const std::string start = project.Tree();
    project.Chmod("d", 0755);
    project.Chmod("d/sub", 0755);
    project.Remove("d/a");
    project.Put("d/a", "now", 0444);
    project.Remove("d/b");
    project.Remove("d/sub/c");
    project.Put("d/new", "now", 0444);
    project.Put("d/newdir/x", "now");
    project.Chmod("d/newdir", 0555);
    project.Chmod("d/sub", 0555);
    project.Chmod("d", 0555);
    const std::string now = project.Tree();
    auto done = project.world.Rollback("start");
    if (!done.ok()) std::cerr << done.error().what << "\n";
    if (!done.ok() || !done->verified) return 1;
    if (project.Tree() != start) {
      std::cerr << project.Tree() << "is not\n" << start;
      return 2;
    }
    auto undone = project.world.Undo();
    if (!undone.ok()) std::cerr << undone.error().what << "\n";
    if (!undone.ok() || project.Tree() != now) return 3;
    if (!project.world.Redo().ok() || project.Tree() != start) return 4;
    return 0;
  }));
}

TEST_F(RealRollbackTest, AReadOnlyRootOfAUserIsRolledBackAndStaysReadOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  TempDir place;
  ASSERT_EQ(chown(place.path().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(AsUser([&]() -> int {
    RealFs fs;
    Project project(fs, place.path(), 65534);
    project.world.world.clock.SetWallMillis(1'000'000'000'000);
    project.world.plan.uid = 65534;
    project.world.plan.groups = {65534};
    project.Put("a", "then", 0444);
    Must(fs.SetMode(project.root, 0555));
    Must(project.world.Capture("start"));
    Must(fs.SetMode(project.root, 0755));
    project.Remove("a");
    project.Put("b", "now");
    Must(fs.SetMode(project.root, 0555));
    auto done = project.world.Rollback("start");
    if (!done.ok()) std::cerr << done.error().what << "\n";
    if (!done.ok() || project.Read("a") != "then" || project.Exists("b")) return 1;
    if (Must(fs.Stat(project.root)).mode != 0555) return 2;
    for (const DirEntry& entry : Must(fs.List(project.root)))
      if (IsStageName(entry.name)) return 3;
    return 0;
  }));
}

TEST_F(RealRollbackTest, AnUnreadableFileOfAUserStays) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  TempDir place;
  ASSERT_EQ(chown(place.path().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(AsUser([&]() -> int {
    RealFs fs;
    Project project(fs, place.path(), 65534);
    project.world.world.clock.SetWallMillis(1'000'000'000'000);
    project.world.plan.uid = 65534;
    project.world.plan.groups = {65534};
    project.Put("then-unreadable", "1", 0000);
    project.Put("a", "1");
    Must(project.world.Capture("start"));
    project.Chmod("then-unreadable", 0644);
    project.Chmod("a", 0000);
    project.Put("new-unreadable", "2", 0000);
    auto done = project.world.Rollback("start");
    if (!done.ok()) std::cerr << done.error().what << "\n";
    if (!done.ok()) return 1;
    if (!project.Exists("then-unreadable")) return 2;
    if (!project.Exists("new-unreadable")) return 3;
    if (project.Stat("a").mode != 0) return 4;
    if (Kept(done->plan).find("a unreadable") == std::string::npos) return 5;
    return 0;
  }));
}

TEST_F(RealRollbackTest, AFileOfAnotherUserStopsNobodyHalfWay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  TempDir place;
  ASSERT_EQ(chown(place.path().c_str(), 65534, 65534), 0);
  const std::string foreign = place.path().bytes() + "/project/foreign";
  // 1: the user's part, 2: root takes the directory over, 3: the rollback.
  auto make = [&](RealFs& fs) {
    auto project = std::make_unique<Project>(fs, place.path(), 65534);
    project->world.world.clock.SetWallMillis(1'000'000'000'000);
    project->world.plan.uid = 65534;
    project->world.plan.groups = {65534};
    return project;
  };
  ASSERT_TRUE(AsUser([&]() -> int {
    RealFs fs;
    auto project = make(fs);
    project->Put("a", "then");
    project->Put("foreign/x", "then");
    Must(project->world.Capture("start"));
    project->Put("a", "now");
    project->Put("foreign/x", "now");
    return 0;
  }));
  ASSERT_EQ(chown(foreign.c_str(), 0, 0), 0);
  ASSERT_EQ(chown((foreign + "/x").c_str(), 0, 0), 0);
  EXPECT_TRUE(AsUser([&]() -> int {
    RealFs fs;
    auto project = make(fs);
    const std::string now = project->Tree();
    auto done = project->world.Rollback("start");
    if (done.ok()) {
      std::cerr << "it was done, " << done->verified << "\n";
      return project->Read("foreign/x") == "then" ? 0 : 1;
    }
    if (project->Tree() != now) return 2;
    auto recovered = project->world.Recover();
    return recovered.ok() && !*recovered ? 0 : 3;
  }));
}

TEST_F(RealRollbackTest, ALeaseIsGivenBack) {
  Put("a", "then");
  Must(world.Capture("start"));
  Put("a", "now!");
  const uint64_t inode = Stat("a").ino;
  const size_t descriptors = OpenDescriptors();
  Must(world.Rollback("start"));
  EXPECT_EQ(Stat("a").ino, inode) << "it was written in place";
  EXPECT_EQ(OpenDescriptors(), descriptors);
  const int fd = open(PathTo("a").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  EXPECT_GE(fd, 0) << "somebody still holds a lease";
  close(fd);
}

TEST_F(RealRollbackTest, NamesOfAllBytesAndLongPathsComeBack) {
  std::vector<std::string> names;
  for (int byte = 1; byte < 256; ++byte)
    if (byte != '/' && byte != '.')
      names.push_back(std::string(1, static_cast<char>(byte)));
  for (const char* name :
       {"-rf", "--yes", ":(top)", "new\nline", "tab\there", "\xff\xfe", "\xc3\x28", " ",
        "...", ".. ", "CON", "a\\b", "*", "?", "[a]", "~", "$HOME", "%n", "\u202e"})
    names.push_back(name);
  names.push_back(std::string(255, 'n'));
  for (const std::string& name : names) Put("names/" + name, "then " + name);
  std::string deep = "deep";
  MakeDir(deep);
  for (int i = 0; i < 25; ++i) {
    deep += "/" + std::string(200, static_cast<char>('a' + i % 26));
    MakeDir(deep);
  }
  Put(deep + "/file", "then");
  Must(world.Capture("start"));
  const std::string start = Tree();
  Remove("names");
  Remove("deep");
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Tree(), start);
  Put(deep + "/file", "now");
  for (const std::string& name : names) Put("names/" + name, "now");
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
}

TEST_F(RealRollbackTest, TheUmaskChangesNothing) {
  Put("d/a", "then", 0666);
  Chmod("d", 0777);
  Put("p", "then", 0600);
  Must(world.Capture("start"));
  const std::string start = Tree();
  Remove("d");
  Remove("p");
  const mode_t before = umask(0077);
  auto strict = world.Rollback("start");
  umask(0000);
  EXPECT_EQ(Tree(), start);
  Remove("d");
  Remove("p");
  auto loose = world.Rollback("start");
  umask(before);
  EXPECT_TRUE(strict.ok() && loose.ok());
  EXPECT_EQ(Tree(), start);
}

}  // namespace
}  // namespace belay::test
