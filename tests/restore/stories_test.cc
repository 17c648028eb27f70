// Failure stories of other checkpoint tools, and what else tears such tools apart: each
// ends byte-, mode- and type-identical, or refuses with nothing changed. Those about
// git and agents come with them; kills and failing calls are in tests/crash.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "support/crash_harness.h"
#include "support/pass_fs.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class StoryTest : public RestoreTest {
 protected:
  // There and back again, and there.
  void ThereAndBack(const std::string& name) {
    const std::string now = Tree();
    Outcome done = Must(world.Rollback(name));
    const std::string then = Tree();
    ASSERT_TRUE(done.operation) << "nothing was done";
    ASSERT_NE(then, now);
    Must(world.Undo());
    EXPECT_EQ(Tree(), now);
    Must(world.Redo());
    EXPECT_EQ(Tree(), then);
    Must(world.Undo());
    EXPECT_EQ(Tree(), now);
    Must(world.Redo());
  }
};

// Story 1: a restore deleted files of several projects in the workspace.
TEST_F(StoryTest, ProjectsBesideTheRootAreNotTouched) {
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(disk.MakeDir(top, N("other-project"), 0755));
  Must(PutFile(disk, top, P("other-project/code"), "theirs"));
  Put("a", "1");
  Must(world.Capture("start"));
  Remove("a");
  Must(PutFile(disk, top, P("other-project/new"), "theirs"));
  ThereAndBack("start");
  EXPECT_EQ(Must(GetFile(disk, top, P("other-project/code"))), "theirs");
  EXPECT_EQ(Must(GetFile(disk, top, P("other-project/new"))), "theirs");
}

// Story 2: a failed checkpoint fell back to an empty one, and the restore deleted all.
TEST_F(StoryTest, AFailedCheckpointIsNoneAndNeverAnEmptyOne) {
  for (int i = 0; i < 20; ++i) Put("src/f" + std::to_string(i), "1");
  Must(world.Capture("good"));
  const std::string now = Tree();
  {
    Fault fault = Fault::Errno(1, EIO, true);
    fault.only = {FsCall::kSyncData};
    FaultFs fs(disk, fault);
    RestoreWorld other(fs, AbsPath::Literal("/m"), 9, 1000);
    Put("src/f0", "2");
    EXPECT_FALSE(other.Capture("bad").ok());
  }
  EXPECT_FALSE(world.Rollback("bad").ok());
  EXPECT_FALSE(world.Rollback("no such checkpoint").ok());
  Must(world.Rollback("good"));
  EXPECT_EQ(Tree(), now);
}

// Story 3: a restore wiped the output that the agent had only read.
TEST_F(StoryTest, OutputThatIsIgnoredStaysWholeHoweverLarge) {
  Put(".gitignore", "out/\n");
  Put("code", "1");
  for (int i = 0; i < 50; ++i) Put("out/run" + std::to_string(i), Noise(1, 2000));
  Must(world.Capture("start"));
  Put("code", "2");
  for (int i = 50; i < 80; ++i) Put("out/run" + std::to_string(i), Noise(2, 2000));
  ThereAndBack("start");
  for (int i = 0; i < 80; ++i) EXPECT_TRUE(Exists("out/run" + std::to_string(i)));
  EXPECT_EQ(Read("code"), "1");
}

// Story 4: the ignore line goes back, and what it protected is deleted.
TEST_F(StoryTest, ANewlyIgnoredFileSurvivesTheRollbackOfItsIgnoreLine) {
  Put(".gitignore", "*.o\n");
  Must(world.Capture("start"));
  Put(".gitignore", "*.o\nresults.db\n");
  Put("results.db", "only copy");
  ThereAndBack("start");
  EXPECT_EQ(Read("results.db"), "only copy");
  EXPECT_EQ(Read(".gitignore"), "*.o\n");
}

TEST_F(StoryTest, AnIgnoredSecretDeletedByRmComesBack) {
  Put(".gitignore", ".env\n*.pem\n");
  Put(".env", "TOKEN=1", 0600);
  Put("certs/key.pem", "PEM", 0400);
  Must(world.Capture("start"));
  const std::string start = Tree();
  Remove(".env");
  Remove("certs");
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
}

// Story 5: nested git directories renamed, and left so.
TEST_F(StoryTest, NestedGitDirectoriesKeepTheirNamesAndInodes) {
  Put("a/.git/HEAD", "ref: refs/heads/main\n");
  for (const char* path : {"a/.git/objects/x", "a/.git/refs/y"}) Put(path, "g");
  Put("a/code", "1");
  const uint64_t inode = Stat("a/.git").ino;
  Must(world.Capture("start"));
  Put("a/code", "2");
  ThereAndBack("start");
  EXPECT_EQ(Stat("a/.git").ino, inode);
  EXPECT_FALSE(Exists("a/.git_disabled"));
}

// Stories 7 and 8: an old state was taken for the newest.
TEST_F(StoryTest, EveryCheckpointIsTheStateOfItsOwnMoment) {
  for (int i = 0; i < 30; ++i) {
    Put("a", "version " + std::to_string(i));
    Put("d/f" + std::to_string(i), std::to_string(i));
    Must(world.Capture("v" + std::to_string(i)));
  }
  for (int i : {0, 29, 15, 16, 3, 28}) {
    Must(world.Rollback("v" + std::to_string(i)));
    EXPECT_EQ(Read("a"), "version " + std::to_string(i));
    EXPECT_TRUE(Exists("d/f" + std::to_string(i)));
    EXPECT_FALSE(Exists("d/f" + std::to_string(i + 1)));
  }
}

// Story 8: undoing a turn that changed nothing corrupts the tree.
TEST_F(StoryTest, ARollbackOfNothingIsNothing) {
  Put("a", "1");
  Must(world.Capture("one"));
  Must(world.Capture("two"));
  const std::string now = Tree();
  EXPECT_FALSE(Must(world.Rollback("one")).operation);
  EXPECT_EQ(Tree(), now);
}

// Story 9: a session in frontend/ writes stale files into backend/.
TEST_F(StoryTest, ARollbackOfOneDirectoryLeavesTheOther) {
  Put("frontend/a", "1");
  Put("backend/b", "1");
  Must(world.Capture("start"));
  Put("frontend/a", "2");
  Put("backend/b", "2");
  world.plan.select = {"frontend"};
  Must(world.Rollback("start"));
  world.plan.select = {};
  EXPECT_EQ(Read("frontend/a"), "1");
  EXPECT_EQ(Read("backend/b"), "2");
  Must(world.Undo());
  EXPECT_EQ(Read("frontend/a"), "2");
}

// Story 10: a state of one tree replayed onto another.
TEST_F(StoryTest, ACheckpointOfAnotherRootIsNotFound) {
  Put("a", "1");
  Must(world.Capture("mine"));
  RestoreWorld other(disk, AbsPath::Literal("/m"), 5, 1000);
  other.project = AbsPath::Literal("/m/second");
  Must(MakeDirs(disk, other.project, 0755));
  EXPECT_FALSE(other.Rollback("mine").ok());
}

// Story 11: the store is emptied, and "not in the snapshot" becomes "delete".
TEST_F(StoryTest, WithoutItsStoreARollbackDeletesNothing) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  Put("new", "2");
  const std::string now = Tree();
  Fd store = Must(disk.OpenDir(AbsPath::Literal("/m/store")));
  Must(RemoveTree(disk, store, N("packs")));
  EXPECT_FALSE(world.Rollback("start").ok());
  EXPECT_EQ(Tree(), now);
}

// Story 14: a tool that tracked its own state file.
TEST_F(StoryTest, AStoreInsideTheProjectIsNotPartOfIt) {
  world.world.dir = world.project.Join(P(".belay-store"));
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  Outcome done = Must(world.Rollback("start"));
  for (const auto& [path, content] : Holds(*done.safety))
    EXPECT_FALSE(path.starts_with(".belay-store")) << path;
  EXPECT_EQ(Read("a"), "1");
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "2");
}

// Story 15: a file is re-created after a move.
TEST_F(StoryTest, AMovedFileGoesBackAndIsNotThereTwice) {
  Put("old-name", "content");
  Must(world.Capture("start"));
  Put("new-name", "content");
  Remove("old-name");
  Must(world.Capture("moved"));
  ThereAndBack("start");
  EXPECT_FALSE(Exists("new-name"));
  Must(world.Rollback("moved"));
  EXPECT_FALSE(Exists("old-name"));
  EXPECT_EQ(Read("new-name"), "content");
}

TEST_F(StoryTest, ACaseOnlyRenameGoesBack) {
  Put("ReadMe.md", "content");
  Must(world.Capture("start"));
  Remove("ReadMe.md");
  Put("README.md", "content");
  ThereAndBack("start");
  EXPECT_TRUE(Exists("ReadMe.md"));
  EXPECT_FALSE(Exists("README.md"));
}

// Story 16: files that the cap had left out of every checkpoint were deleted.
TEST_F(StoryTest, WhatTheCapLeftOutOfEveryCheckpointStays) {
  world.settings.max_file_size = {.bytes = 10'000};
  const std::string large = Noise(1, 20'000);
  Put("only-copy.bin", large);
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  Put("made-since.bin", large);
  ThereAndBack("start");
  EXPECT_EQ(Read("only-copy.bin"), large);
  EXPECT_EQ(Read("made-since.bin"), large);
}

// Story 17: the safety checkpoint prunes the very target.
TEST_F(StoryTest, ARollbackTakesNoCheckpointAway) {
  world.settings.retention_auto = 1;
  for (int i = 0; i < 5; ++i) {
    Put("a", Noise(static_cast<uint64_t>(i), 5000));
    Must(world.Capture("v" + std::to_string(i)));
  }
  world.settings.store_cap = {.bytes = 1};
  Must(world.Rollback("v0"));
  EXPECT_EQ(Checkpoints().size(), 6u);
  for (int i = 1; i < 5; ++i) {
    Must(world.Rollback("v" + std::to_string(i)));
    EXPECT_EQ(Read("a"), Noise(static_cast<uint64_t>(i), 5000));
  }
}

// Story 18: a zero-length object after a power cut makes the tool unusable for good.
TEST_F(StoryTest, APackCutToNothingIsSaidAndTheTreeStays) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  const std::string now = Tree();
  Fd packs = Must(disk.OpenDir(AbsPath::Literal("/m/store/packs")));
  for (const DirEntry& entry : Must(disk.List(packs))) {
    Fd file = Must(disk.Open(packs, N(entry.name), OpenMode::ReadWrite()));
    Must(disk.Truncate(file, 0));
  }
  EXPECT_FALSE(world.Rollback("start").ok());
  EXPECT_EQ(Tree(), now);
}

// Story 20: going back to the first checkpoint deleted nearly everything.
TEST_F(StoryTest, BackToAnEmptyFirstCheckpointAndForwardAgain) {
  Must(world.Capture("empty"));
  for (int i = 0; i < 30; ++i) Put("src/deep/f" + std::to_string(i), std::to_string(i));
  Put("clone/.git/HEAD", "ref: refs/heads/main\n");
  Put("clone/code", "mine");
  const std::string now = Tree();
  Must(world.Rollback("empty"));
  EXPECT_FALSE(Exists("src"));
  EXPECT_EQ(Read("clone/code"), "mine");
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
}

// Story 21: a symlink was followed, and the key it led to was stored.
TEST_F(StoryTest, ASymlinkIsALinkAndItsTargetIsNeverRead) {
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(PutFile(disk, top, P("id_rsa"), "PRIVATE KEY"));
  Link("leaked-key", "/m/id_rsa");
  Link("up", "..");
  Must(world.Capture("start"));
  Remove("leaked-key");
  Remove("up");
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Stat("leaked-key").type, FileType::kSymlink);
  for (const CatalogEntry& entry : Checkpoints())
    for (const auto& [path, content] : Holds(entry.checkpoint))
      EXPECT_EQ(content.find("PRIVATE"), std::string::npos) << path;
  EXPECT_EQ(Must(GetFile(disk, top, P("id_rsa"))), "PRIVATE KEY");
  // And a link that stands where a file comes back is replaced, not written through.
  Put("config", "then");
  Must(world.Capture("with config"));
  Remove("config");
  Link("config", "/m/id_rsa");
  Must(world.Rollback("with config"));
  EXPECT_EQ(Read("config"), "then");
  EXPECT_EQ(Must(GetFile(disk, top, P("id_rsa"))), "PRIVATE KEY");
}

// Story 21: deletions were not replayed.
TEST_F(StoryTest, ADeletionIsGoneBackToLikeAnythingElse) {
  Put("a", "1");
  Must(world.Capture("with"));
  Remove("a");
  Must(world.Capture("without"));
  Must(world.Rollback("with"));
  EXPECT_TRUE(Exists("a"));
  Must(world.Rollback("without"));
  EXPECT_FALSE(Exists("a"));
}

// Story 23: times of files that did not change were rewritten.
TEST_F(StoryTest, OnlyWhatChangesGetsANewTime) {
  for (int i = 0; i < 20; ++i) Put("f" + std::to_string(i), "1");
  Must(world.Capture("start"));
  std::map<std::string, int64_t> times;
  for (int i = 0; i < 20; ++i)
    times["f" + std::to_string(i)] = Stat("f" + std::to_string(i)).mtime_ns;
  Put("f7", "2");
  Must(world.Rollback("start"));
  for (const auto& [path, time] : times) {
    if (path == "f7") {
      EXPECT_GT(Stat(path).mtime_ns, time);
    } else {
      EXPECT_EQ(Stat(path).mtime_ns, time) << path;
    }
  }
}

// Story 24: an unreadable file was recorded as absent, and the restore deleted it.
TEST_F(StoryTest, AFileThatCouldNotBeReadThenIsNotTakenForAbsent) {
  Put("locked", "precious");
  Put("a", "1");
  class RefusesOne final : public PassFs {
   public:
    using PassFs::PassFs;
    Result<Fd> Open(const Fd& dir, NameRef name, const OpenMode& mode) override {
      if (name.bytes() == "locked") return FsError(EACCES, "open", name.bytes());
      return PassFs::Open(dir, name, mode);
    }
  } refusing(disk);
  RestoreWorld other(refusing, AbsPath::Literal("/m"), 9, 1000);
  Must(other.Capture("start"));
  Put("a", "2");
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("locked"), "precious");
  EXPECT_EQ(Read("a"), "1");
}

// Story 24: binary content read as text.
TEST_F(StoryTest, BinariesAndNotebooksComeBackByteForByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string notebook =
      "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"outputs\": [{\"data\": "
      "{\"image/png\": \"iVBORw0KGgo=\"}}],\n   \"source\": [\"print(1)\\n\"]\n  }\n "
      "],\n "
      "\"nbformat\": 4\n}\r\n";
  const std::map<std::string, std::string> files = {
      {"image.png", "\x89PNG\r\n\x1a\n" + all + Noise(3, 50'000)},
      {"analysis.ipynb", notebook},
      {"utf16.txt", std::string("\xff\xfeh\0i\0", 6)},
      {"crlf.txt", "a\r\nb\rc\n"},
      {"no-newline", "x"},
      {"zeros.bin", std::string(100'000, '\0')},
      {"invalid-utf8", "\xc3\x28\xa0\xa1\xe2\x28\xa1"}};
  for (const auto& [path, content] : files) Put(path, content);
  Must(world.Capture("start"));
  for (const auto& [path, content] : files) Put(path, "reformatted by an agent");
  ThereAndBack("start");
  for (const auto& [path, content] : files) EXPECT_TRUE(Read(path) == content) << path;
}

TEST_F(StoryTest, SizesAtEveryEdgeComeBack) {
  const std::vector<size_t> sizes = {0,       1,       4095,    4096,      4097,
                                     1 << 20, 1048577, 2202009, 10'590'618};
  for (size_t size : sizes) Put("f" + std::to_string(size), Noise(size, size));
  Must(world.Capture("start"));
  for (size_t size : sizes)
    Put("f" + std::to_string(size), Noise(size + 1, size / 2 + 1));
  Must(world.Rollback("start"));
  for (size_t size : sizes)
    EXPECT_TRUE(Read("f" + std::to_string(size)) == Noise(size, size)) << size;
  Must(world.Undo());
  for (size_t size : sizes)
    EXPECT_TRUE(Read("f" + std::to_string(size)) == Noise(size + 1, size / 2 + 1))
        << size;
}

TEST_F(StoryTest, AClockThatGoesBackwardsChangesNothing) {
  Put("a", "1");
  Must(world.Capture("one"));
  Put("a", "2");
  world.world.clock.SetWallMillis(1'000'000'000'000);
  Must(world.Capture("two"));
  Must(world.Rollback("one"));
  world.world.clock.SetWallMillis(500'000'000'000);
  EXPECT_EQ(Read("a"), "1");
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "2");
  Must(world.Redo());
  EXPECT_EQ(Read("a"), "1");
}

TEST_F(StoryTest, TheRootIsRemovedAndMadeAgainAsAnother) {
  Put("a", "1");
  Must(world.Capture("start"));
  const std::string start = Tree();
  root = Fd();
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(RemoveTree(disk, top, N("project")));
  root = Must(world.Dir());
  Put("b", "another directory");
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
  Must(world.Undo());
  EXPECT_EQ(Read("b"), "another directory");
}

TEST_F(StoryTest, EverythingIsDeletedAndComesBack) {
  for (int i = 0; i < 40; ++i)
    Put("d" + std::to_string(i % 7) + "/e/f" + std::to_string(i), std::to_string(i),
        i % 3 ? 0644 : 0755);
  MakeDir("empty");
  Link("l", "d0");
  Must(world.Capture("start"));
  const std::string start = Tree();
  for (const DirEntry& entry : Must(disk.List(root))) Remove(entry.name);
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
}

class RealStoryTest : public RealRestoreTest {};

TEST_F(RealStoryTest, ASparseFileOfTwelveGigabytesIsLeftAlone) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", "2");
  const std::string path = PathTo("huge");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  const bool made = ftruncate(fd, off_t{12} << 30) == 0;
  close(fd);
  if (!made) GTEST_SKIP() << "no files of that size here";
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Stat("huge").size, uint64_t{12} << 30);
}

TEST_F(RealStoryTest, AMillionFiles) {
  if (!RunEverything()) GTEST_SKIP() << "takes minutes: BELAY_FULL=1";
  for (int d = 0; d < 1000; ++d) {
    const std::string dir = "d" + std::to_string(d);
    MakeDir(dir);
    Fd opened = Must(disk_fs.OpenBeneath(root, P(dir), OpenMode::Directory()));
    for (int f = 0; f < 1000; ++f)
      Must(PutFile(disk_fs, opened, P("f" + std::to_string(f)), "x"));
  }
  Must(world.Capture("start"));
  const auto started = std::chrono::steady_clock::now();
  const std::string start = Tree();
  Remove("d7");
  Put("d8/f8", "2");
  Put("d9/new", "2");
  const std::string now = Tree();
  Must(world.Rollback("start"));
  EXPECT_TRUE(Tree() == start);
  Must(world.Undo());
  EXPECT_TRUE(Tree() == now);
  Must(world.Redo());
  EXPECT_TRUE(Tree() == start);
  std::cerr << "there, back and there again, every file compared: "
            << std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::steady_clock::now() - started)
                   .count()
            << " s\n";
}

}  // namespace
}  // namespace belay::test
