// What every Fs promises, run on all of them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/tree_text.h"
#include "support/fs_world.h"

namespace belay::test {
namespace {

using Access = OpenMode::Access;

class FsConformance : public testing::TestWithParam<FsKind> {
 protected:
  Fs& fs() { return world_.fs(); }
  const Fd& root() { return root_; }
  std::string Tree() { return Must(TreeText(fs(), root_)); }
  void Put(std::string_view path, std::string_view content, uint32_t mode = 0644) {
    Must(PutFile(fs(), root_, P(path), content, mode));
  }
  std::string Get(std::string_view path) { return Must(GetFile(fs(), root_, P(path))); }
  void MkDir(std::string_view path) {
    Parent parent = Must(OpenParent(fs(), root_, P(path)));
    Must(fs().MakeDir(parent.dir, parent.name, 0755));
  }
  void SymLink(std::string_view path, std::string_view target) {
    Parent parent = Must(OpenParent(fs(), root_, P(path)));
    Must(fs().Symlink(parent.dir, parent.name, target));
  }
  Status Rename(std::string_view from, std::string_view to,
                RenameHow how = RenameHow::kReplace) {
    Parent a = Must(OpenParent(fs(), root_, P(from)));
    Parent b = Must(OpenParent(fs(), root_, P(to)));
    return fs().Rename(a.dir, a.name, b.dir, b.name, how);
  }

 private:
  FsWorld world_{GetParam()};
  Fd root_ = Must(world_.fs().OpenDir(world_.path()));

 protected:
  FsWorld& world() { return world_; }
};

INSTANTIATE_TEST_SUITE_P(, FsConformance, testing::ValuesIn(kFsKinds),
                         [](const auto& row) { return FsKindName(row.param); });

// --- opening and creating ------------------------------------------------------------

TEST_P(FsConformance, MissingFileIsNotFoundAndNamed) {
  auto missing = fs().Open(root(), N("no\nfile"), OpenMode::Read());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_EQ(missing.error().sys, ENOENT);
  EXPECT_EQ(missing.error().what, "open no\\nfile: No such file or directory");
}

TEST_P(FsConformance, CreatesExactModeWhateverTheUmask) {
  struct Row {
    mode_t mask;
    uint32_t mode;
  };
  int number = 0;
  for (Row row :
       {Row{0, 0600}, Row{0, 0644}, Row{0, 0666}, Row{0077, 0644}, Row{0077, 0755},
        Row{0077, 0600}, Row{0777, 0640}, Row{0022, 04755}, Row{0022, 0}}) {
    SCOPED_TRACE(testing::Message()
                 << std::oct << "umask " << row.mask << " mode " << row.mode);
    mode_t old = umask(row.mask);
    Name file = N("file" + std::to_string(number));
    Name opened = N("opened" + std::to_string(number));
    Name dir = N("dir" + std::to_string(number++));
    auto made = fs().Open(root(), file, OpenMode::CreateNew(row.mode));
    auto beneath = fs().OpenBeneath(root(), opened, OpenMode::OpenOrCreate(row.mode));
    auto made_dir = fs().MakeDir(root(), dir, row.mode);
    umask(old);
    ASSERT_TRUE(made.ok() && beneath.ok() && made_dir.ok());
    EXPECT_EQ(Must(fs().Stat(*made)).mode, row.mode);
    EXPECT_EQ(Must(fs().Stat(*beneath)).mode, row.mode);
    EXPECT_EQ(Must(fs().StatAt(root(), dir)).mode, row.mode);
  }
}

TEST_P(FsConformance, DirectoryInSetgidParentGetsTheModeAskedFor) {
  MkDir("shared");
  Fd shared = Must(fs().Open(root(), N("shared"), OpenMode::Directory()));
  Must(fs().SetMode(shared, 02775));
  Must(fs().MakeDir(shared, N("private"), 0700));
  EXPECT_EQ(Must(fs().StatAt(shared, N("private"))).mode, 0700u);
}

TEST_P(FsConformance, ExclusiveCreateRefusesWhatExists) {
  Put("file", "old");
  SymLink("link", "nowhere");
  for (const char* name : {"file", "link"}) {
    auto again = fs().Open(root(), N(name), OpenMode::CreateNew());
    EXPECT_EQ(Sys(again), EEXIST) << name;
    auto beneath = fs().OpenBeneath(root(), N(name), OpenMode::CreateNew());
    EXPECT_EQ(Sys(beneath), EEXIST) << name;
  }
  EXPECT_EQ(Get("file"), "old");
}

TEST_P(FsConformance, OpenOrCreateKeepsAnExistingFileAndItsMode) {
  Put("file", "old", 0640);
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::OpenOrCreate(0600)));
  EXPECT_EQ(Must(fs().Stat(file)).mode, 0640u);
  EXPECT_EQ(Must(fs().Stat(file)).size, 3u);
}

TEST_P(FsConformance, OpenOrCreateDoesNotFollowADanglingLink) {
  SymLink("link", "target");
  EXPECT_EQ(Sys(fs().Open(root(), N("link"), OpenMode::OpenOrCreate())), ELOOP);
  EXPECT_EQ(Sys(fs().OpenBeneath(root(), P("link"), OpenMode::OpenOrCreate())), ELOOP);
  EXPECT_EQ(Sys(fs().StatAt(root(), N("target"))), ENOENT);
}

TEST_P(FsConformance, RefusesModesThatContradictThemselves) {
  Put("file", "x");
  OpenMode bad[] = {
      {.access = Access::kDirectory, .create = true},
      {.access = Access::kPath, .truncate = true},
      {.access = Access::kRead, .truncate = true},
      {.access = Access::kReadWrite, .exclusive = true},
  };
  for (size_t i = 0; i < std::size(bad); ++i) {
    EXPECT_EQ(Sys(fs().Open(root(), N("file"), bad[i])), EINVAL) << "row " << i;
    EXPECT_EQ(Sys(fs().OpenBeneath(root(), N("file"), bad[i])), EINVAL) << "row " << i;
  }
  EXPECT_EQ(Get("file"), "x");
}

TEST_P(FsConformance, TypeOfOpenMustFit) {
  MkDir("dir");
  Put("file", "x");
  EXPECT_EQ(Sys(fs().Open(root(), N("file"), OpenMode::Directory())), ENOTDIR);
  EXPECT_EQ(Sys(fs().Open(root(), N("dir"), OpenMode::ReadWrite())), EISDIR);
  EXPECT_EQ(Sys(fs().OpenBeneath(root(), P("file/x"), OpenMode::Read())), ENOTDIR);
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::Read()));
  EXPECT_EQ(Sys(fs().Open(file, N("x"), OpenMode::Read())), ENOTDIR);
  EXPECT_EQ(Sys(fs().List(file)), ENOTDIR);
}

TEST_P(FsConformance, OpenDirFollowsSymlinksAndRealPathNamesTheEnd) {
  MkDir("dir");
  MkDir("dir/sub");
  SymLink("link", "dir/sub");
  AbsPath link = world().path().Join(P("link"));
  Fd dir = Must(fs().OpenDir(link));
  Put("dir/sub/file", "x");
  EXPECT_EQ(Must(fs().List(dir)).size(), 1u);
  EXPECT_EQ(Must(fs().RealPath(link)), world().path().Join(P("dir/sub")));
  EXPECT_EQ(Sys(fs().RealPath(world().path().Join(P("no")))), ENOENT);
  SymLink("loop", "loop");
  EXPECT_EQ(Sys(fs().OpenDir(world().path().Join(P("loop")))), ELOOP);
  EXPECT_EQ(Sys(fs().OpenDir(world().path().Join(P("dir/sub/file")))), ENOTDIR);
}

TEST_P(FsConformance, HandleUsedAfterCloseIsAnError) {
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::CreateNew()));
  int handle = file.handle();
  ASSERT_TRUE(file.Close().ok());
  EXPECT_TRUE(file.Close().ok());  // closed already: nothing to do
  EXPECT_EQ(Sys(fs().Close(handle)), EBADF);
}

// --- beneath -------------------------------------------------------------------------

TEST_P(FsConformance, OpenBeneathRefusesASymlinkInEveryPosition) {
  MkDir("outside");
  Put("outside/secret", "s");
  MkDir("outside/b");
  Put("outside/b/c", "s");
  MkDir("tree");
  MkDir("tree/a");
  MkDir("tree/a/b");
  Put("tree/a/b/c", "mine");
  Fd tree = Must(fs().Open(root(), N("tree"), OpenMode::Directory()));
  Fd a = Must(fs().Open(tree, N("a"), OpenMode::Directory()));
  Fd b = Must(fs().Open(a, N("b"), OpenMode::Directory()));
  Must(fs().Symlink(tree, N("first"), "../outside"));
  Must(fs().Symlink(a, N("middle"), "../../outside/b"));
  Must(fs().Symlink(b, N("last"), "../../../outside/secret"));
  Must(fs().Symlink(b, N("self"), "c"));
  std::string absolute = world().path().bytes() + "/outside/secret";
  Must(fs().Symlink(b, N("absolute"), absolute));

  for (const char* path : {"first/secret", "first/b/c", "a/middle/c", "a/b/last",
                           "a/b/self", "a/b/absolute", "a/b/last/x"}) {
    EXPECT_EQ(Sys(fs().OpenBeneath(tree, P(path), OpenMode::Read())), ELOOP) << path;
    auto mode = OpenMode::OpenOrCreate();
    EXPECT_EQ(Sys(fs().OpenBeneath(tree, P(path), mode)), ELOOP) << path;
  }
  for (const char* path : {"first", "a/middle", "a/b/last"})
    EXPECT_EQ(Sys(fs().OpenBeneath(tree, P(path), OpenMode::Directory())), ELOOP)
        << path;
  EXPECT_TRUE(fs().OpenBeneath(tree, P("a/b/c"), OpenMode::Read()).ok());
}

TEST_P(FsConformance, APathHandleReachesTheSymlinkItself) {
  SymLink("link", "nowhere");
  for (bool beneath : {false, true}) {
    OpenMode mode{.access = Access::kPath};
    Fd link = Must(beneath ? fs().OpenBeneath(root(), P("link"), mode)
                           : fs().Open(root(), N("link"), mode));
    EXPECT_EQ(Must(fs().Stat(link)).type, FileType::kSymlink);
    Must(fs().SetTimes(link, 0, 1'234'567'890));
    EXPECT_EQ(Must(fs().Stat(link)).mtime_ns, 1'234'567'890);
    EXPECT_EQ(Sys(fs().SetMode(link, 0600)), EOPNOTSUPP);
    std::byte buffer[1];
    EXPECT_EQ(Sys(fs().Read(link, 0, buffer)), EBADF);
  }
}

TEST_P(FsConformance, DotDotCannotBeSpelled) {
  for (const char* path : {"..", "a/..", "../a", "a/../b", ".", "./a", "/a", "a//b"})
    EXPECT_FALSE(RelPath::Parse(path).ok()) << path;
}

TEST_P(FsConformance, PathsFarBeyondPathMaxWork) {
  constexpr int kLevels = 40;
  std::string name(200, 'n');
  std::string path;
  Fd at = Must(fs().Duplicate(root()));
  for (int i = 0; i < kLevels; ++i) {
    std::string level = name + std::to_string(i);
    Must(fs().MakeDir(at, N(level), 0755));
    at = Must(fs().Open(at, N(level), OpenMode::Directory()));
    path += (i == 0 ? "" : "/") + level;
  }
  ASSERT_GT(path.size(), 8000u);
  ASSERT_GT(path.size(), size_t{PATH_MAX});
  Put(path + "/file", "deep");
  EXPECT_EQ(Get(path + "/file"), "deep");
  Parent parent = Must(OpenParent(fs(), root(), P(path + "/file")));
  EXPECT_EQ(Must(fs().StatAt(parent.dir, parent.name)).size, 4u);
  Fd absolute = Must(fs().OpenDir(world().path().Join(P(path))));
  EXPECT_EQ(Must(fs().List(absolute)).size(), 1u);
  EXPECT_EQ(Sys(fs().OpenBeneath(root(), P(path + "/no"), OpenMode::Read())), ENOENT);

  Must(fs().Symlink(absolute, N("link"), "file"));
  EXPECT_EQ(Sys(fs().OpenBeneath(root(), P(path + "/link"), OpenMode::Read())), ELOOP);

  std::string top = path.substr(0, path.find('/'));
  Must(RemoveTree(fs(), root(), N(top)));
  EXPECT_EQ(Tree(), "");
}

TEST_P(FsConformance, ASymlinkInTheMiddleOfALongPathIsRefused) {
  std::string name(250, 'n');
  std::string path = "real";
  MkDir("real");
  for (int i = 0; i < 18; ++i) MkDir(path += "/" + name);
  SymLink("link", "real");
  std::string through = "link" + path.substr(4) + "/file";
  ASSERT_GT(through.size(), size_t{PATH_MAX});
  EXPECT_EQ(Sys(fs().OpenBeneath(root(), P(through), OpenMode::OpenOrCreate())), ELOOP);
  Parent parent = Must(OpenParent(fs(), root(), P(path)));
  Must(fs().Symlink(parent.dir, N("again"), name));
  std::string end = path.substr(0, path.rfind('/')) + "/again/file";
  EXPECT_EQ(Sys(fs().OpenBeneath(root(), P(end), OpenMode::OpenOrCreate())), ELOOP);
}

// --- bytes ---------------------------------------------------------------------------

TEST_P(FsConformance, ReadsAreShortAtTheEndAndEmptyBeyond) {
  Put("file", "hello");
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::Read()));
  std::byte buffer[16];
  EXPECT_EQ(Must(fs().Read(file, 0, buffer)), 5u);
  EXPECT_EQ(Must(fs().Read(file, 3, buffer)), 2u);
  EXPECT_EQ(AsText(std::span(buffer).first(2)), "lo");
  EXPECT_EQ(Must(fs().Read(file, 5, buffer)), 0u);
  EXPECT_EQ(Must(fs().Read(file, 500, buffer)), 0u);
  EXPECT_EQ(Must(ReadFull(fs(), file, 1, buffer)), 4u);
  EXPECT_EQ(ReadExact(fs(), file, 0, buffer).error().code, Errc::kCorrupt);
  EXPECT_TRUE(ReadExact(fs(), file, 0, std::span(buffer).first(5)).ok());
}

TEST_P(FsConformance, WritingBeyondTheEndFillsWithZeros) {
  Put("file", "ab");
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::ReadWrite()));
  Must(WriteFull(fs(), file, 4, AsBytes("cd")));
  EXPECT_EQ(Get("file"), std::string("ab\0\0cd", 6));
  Must(fs().Truncate(file, 3));
  EXPECT_EQ(Get("file"), std::string("ab\0", 3));
  Must(fs().Truncate(file, 5));
  EXPECT_EQ(Get("file"), std::string("ab\0\0\0", 5));
  EXPECT_EQ(Must(fs().Write(file, 0, {})), 0u);
}

TEST_P(FsConformance, TruncateOnOpenEmptiesTheFile) {
  Put("file", "hello");
  Fd file =
      Must(fs().Open(root(), N("file"), {.access = Access::kWrite, .truncate = true}));
  EXPECT_EQ(Must(fs().Stat(file)).size, 0u);
}

TEST_P(FsConformance, AccessOfTheHandleIsKept) {
  Put("file", "hello");
  std::byte buffer[4];
  Fd reader = Must(fs().Open(root(), N("file"), OpenMode::Read()));
  EXPECT_EQ(Sys(fs().Write(reader, 0, AsBytes("x"))), EBADF);
  EXPECT_EQ(Sys(fs().Truncate(reader, 0)), EINVAL);
  Fd writer = Must(fs().Open(root(), N("file"), {.access = Access::kWrite}));
  EXPECT_EQ(Sys(fs().Read(writer, 0, buffer)), EBADF);
  EXPECT_EQ(Sys(fs().Read(root(), 0, buffer)), EISDIR);
  Fd path = Must(fs().Open(root(), N("file"), {.access = Access::kPath}));
  EXPECT_EQ(Sys(fs().Sync(path)), EBADF);
  EXPECT_EQ(Sys(fs().Truncate(path, 0)), EBADF);
  EXPECT_EQ(Get("file"), "hello");
}

TEST_P(FsConformance, AFileLivesOnWhileOpen) {
  Put("file", "hello");
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::ReadWrite()));
  Must(fs().Unlink(root(), N("file")));
  EXPECT_EQ(Sys(fs().StatAt(root(), N("file"))), ENOENT);
  EXPECT_EQ(Must(fs().Stat(file)).nlink, 0u);
  Must(WriteFull(fs(), file, 5, AsBytes("!")));
  std::byte buffer[8];
  EXPECT_EQ(Must(ReadFull(fs(), file, 0, buffer)), 6u);
  Put("file", "another");
  EXPECT_NE(Must(fs().Stat(file)).ino, Must(fs().StatAt(root(), N("file"))).ino);
}

TEST_P(FsConformance, SyncsSucceedOnFilesAndDirectories) {
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::CreateNew()));
  EXPECT_TRUE(fs().SyncData(file).ok());
  EXPECT_TRUE(fs().Sync(file).ok());
  EXPECT_TRUE(fs().Sync(root()).ok());
}

// --- looking -------------------------------------------------------------------------

TEST_P(FsConformance, ALengthIsAwaitedOfAnyFileThatCanBeRead) {
  Put("full", "x");
  Put("empty", "");
  for (const char* name : {"full", "empty"}) {
    Fd file = Must(fs().Open(root(), N(name), OpenMode::Read()));
    EXPECT_TRUE(fs().AwaitLength(file).ok()) << name;
  }
  Fd path = Must(fs().Open(root(), N("full"), OpenMode::Path()));
  EXPECT_EQ(Sys(fs().AwaitLength(path)), EBADF);
}

TEST_P(FsConformance, StatTellsTypeSizeAndTimes) {
  MkDir("dir");
  Put("file", "hello", 0640);
  SymLink("link", "target");
  FileStat file = Must(fs().StatAt(root(), N("file")));
  EXPECT_EQ(file.type, FileType::kRegular);
  EXPECT_EQ(file.size, 5u);
  EXPECT_EQ(file.mode, 0640u);
  EXPECT_EQ(file.nlink, 1u);
  FileStat link = Must(fs().StatAt(root(), N("link")));
  EXPECT_EQ(link.type, FileType::kSymlink);
  EXPECT_EQ(link.size, 6u);
  EXPECT_EQ(link.mode, 0777u);
  EXPECT_EQ(Must(fs().StatAt(root(), N("dir"))).type, FileType::kDirectory);
  Fd handle = Must(fs().Open(root(), N("file"), OpenMode::Read()));
  for (int64_t when : {int64_t{1'700'000'000'123'456'789}, int64_t{0}, int64_t{-1}}) {
    Must(fs().SetTimes(handle, when, when));
    EXPECT_EQ(Must(fs().Stat(handle)).mtime_ns, when);
  }
  EXPECT_EQ(Must(fs().Stat(handle)).dev, file.dev);
  EXPECT_EQ(Must(fs().Stat(handle)).ino, file.ino);
}

TEST_P(FsConformance, ListGivesEveryNameOnceEachTime) {
  std::vector<std::string> want;
  for (int i = 0; i < 700; ++i) {  // more than one getdents buffer
    want.push_back("name-with-some-length-to-fill-the-buffer-" + std::to_string(i));
    Fd made = Must(fs().Open(root(), N(want.back()), OpenMode::CreateNew()));
  }
  want.push_back("\xff\n\x1b");
  SymLink(want.back(), "x");
  std::sort(want.begin(), want.end());
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> got;
    for (const DirEntry& entry : Must(fs().List(root()))) {
      got.push_back(entry.name);
      FileStat stat = Must(fs().StatAt(root(), Must(Name::Parse(entry.name))));
      EXPECT_EQ(stat.ino, entry.ino);
      if (entry.type) {
        EXPECT_EQ(stat.type, *entry.type);
      }
    }
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, want) << "round " << round;
  }
}

TEST_P(FsConformance, ReadLinkGivesTheTargetBytes) {
  for (size_t size : {1, 255, 256, 257, 1024, 4095}) {
    std::string target(size, 't');
    target[0] = '\xfe';
    Name name = N("link" + std::to_string(size));
    Must(fs().Symlink(root(), name, target));
    EXPECT_EQ(Must(fs().ReadLink(root(), name)), target);
  }
  Put("file", "x");
  EXPECT_EQ(Sys(fs().ReadLink(root(), N("file"))), EINVAL);
  EXPECT_EQ(Sys(fs().ReadLink(root(), N("no"))), ENOENT);
  EXPECT_EQ(Sys(fs().Symlink(root(), N("empty"), "")), ENOENT);
  EXPECT_EQ(Sys(fs().Symlink(root(), N("nul"), std::string_view("a\0b", 3))), EINVAL);
  EXPECT_EQ(Sys(fs().Symlink(root(), N("long"), std::string(4096, 'x'))), ENAMETOOLONG);
  EXPECT_EQ(Sys(fs().Symlink(root(), N("file"), "x")), EEXIST);
}

TEST_P(FsConformance, InfoDescribesTheFileSystem) {
  FsInfo info = Must(fs().Info(root()));
  EXPECT_NE(info.magic, 0u);
  EXPECT_GT(info.total_bytes, 0u);
  EXPECT_LE(info.free_bytes, info.total_bytes);
  EXPECT_FALSE(info.read_only);
}

// --- names ---------------------------------------------------------------------------

TEST_P(FsConformance, RenameReplaces) {
  Put("a", "A");
  Put("b", "B");
  Must(Rename("a", "b"));
  EXPECT_EQ(Tree(), "f 0644 b 1 \"A\"\n");
}

TEST_P(FsConformance, RenameNoReplaceRefusesAnExistingTarget) {
  Put("a", "A");
  Put("b", "B");
  EXPECT_EQ(Sys(Rename("a", "b", RenameHow::kNoReplace)), EEXIST);
  EXPECT_EQ(Sys(Rename("a", "a", RenameHow::kNoReplace)), EEXIST);
  Must(Rename("a", "c", RenameHow::kNoReplace));
  EXPECT_EQ(Tree(), "f 0644 b 1 \"B\"\nf 0644 c 1 \"A\"\n");
}

TEST_P(FsConformance, RenameExchangeSwapsEvenDifferentTypes) {
  Put("a", "A");
  MkDir("d");
  Put("d/inside", "I");
  EXPECT_EQ(Sys(Rename("a", "no", RenameHow::kExchange)), ENOENT);
  Must(Rename("a", "d", RenameHow::kExchange));
  EXPECT_EQ(Tree(), "d 0755 a\nf 0644 a/inside 1 \"I\"\nf 0644 d 1 \"A\"\n");
  MkDir("e");
  Must(Rename("d", "e", RenameHow::kExchange));
  Must(Rename("a/inside", "e", RenameHow::kExchange));
  EXPECT_EQ(Tree(), "d 0755 a\nf 0644 a/inside 1 \"A\"\nd 0755 d\nf 0644 e 1 \"I\"\n");
}

TEST_P(FsConformance, RenameErrnosAreTheKernels) {
  Put("file", "F");
  MkDir("dir");
  MkDir("dir/sub");
  MkDir("empty");
  MkDir("full");
  Put("full/x", "X");
  std::string before = Tree();
  EXPECT_EQ(Sys(Rename("no", "x")), ENOENT);
  EXPECT_EQ(Sys(Rename("file", "dir")), EISDIR);
  EXPECT_EQ(Sys(Rename("dir", "file")), ENOTDIR);
  EXPECT_EQ(Sys(Rename("dir", "full")), ENOTEMPTY);
  EXPECT_EQ(Sys(Rename("dir", "dir/sub/below")), EINVAL);
  EXPECT_EQ(Sys(Rename("dir", "dir/itself")), EINVAL);
  EXPECT_EQ(Sys(Rename("dir/sub", "dir")), ENOTEMPTY);
  EXPECT_EQ(Sys(Rename("dir/sub", "dir", RenameHow::kExchange)), EINVAL);
  EXPECT_EQ(Tree(), before);
  Must(Rename("dir", "empty"));
  EXPECT_TRUE(fs().OpenBeneath(root(), P("empty/sub"), OpenMode::Directory()).ok());
}

TEST_P(FsConformance, RenameOfOneFileOntoItsOtherNameDoesNothing) {
  Put("a", "A");
  Must(fs().Link(root(), N("a"), root(), N("b")));
  Must(Rename("a", "b"));
  EXPECT_EQ(Must(fs().List(root())).size(), 2u);
}

TEST_P(FsConformance, RenameMovesADirectoryBetweenDirectories) {
  MkDir("from");
  MkDir("to");
  MkDir("from/d");
  Put("from/d/file", "F");
  Fd held = Must(fs().OpenBeneath(root(), P("from/d"), OpenMode::Directory()));
  Must(Rename("from/d", "to/e"));
  EXPECT_EQ(Get("to/e/file"), "F");
  Must(PutFile(fs(), held, P("late"), "L"));
  EXPECT_EQ(Get("to/e/late"), "L");
}

TEST_P(FsConformance, HardLinksShareTheFile) {
  Put("a", "A");
  MkDir("dir");
  SymLink("link", "a");
  Must(fs().Link(root(), N("a"), root(), N("b")));
  EXPECT_EQ(Must(fs().StatAt(root(), N("a"))).nlink, 2u);
  Put("b", "changed");
  EXPECT_EQ(Get("a"), "changed");
  Must(fs().Unlink(root(), N("a")));
  EXPECT_EQ(Must(fs().StatAt(root(), N("b"))).nlink, 1u);
  EXPECT_EQ(Get("b"), "changed");
  EXPECT_EQ(Sys(fs().Link(root(), N("dir"), root(), N("x"))), EPERM);
  EXPECT_EQ(Sys(fs().Link(root(), N("no"), root(), N("x"))), ENOENT);
  EXPECT_EQ(Sys(fs().Link(root(), N("b"), root(), N("dir"))), EEXIST);
  Must(fs().Link(root(), N("link"), root(), N("link2")));  // the link, not its target
  EXPECT_EQ(Must(fs().ReadLink(root(), N("link2"))), "a");
}

TEST_P(FsConformance, UnlinkAndRemoveDirKeepTheirKinds) {
  Put("file", "F");
  MkDir("dir");
  Put("dir/x", "X");
  EXPECT_EQ(Sys(fs().Unlink(root(), N("dir"))), EISDIR);
  EXPECT_EQ(Sys(fs().RemoveDir(root(), N("file"))), ENOTDIR);
  EXPECT_EQ(Sys(fs().RemoveDir(root(), N("dir"))), ENOTEMPTY);
  EXPECT_EQ(Sys(fs().Unlink(root(), N("no"))), ENOENT);
  EXPECT_EQ(Sys(fs().RemoveDir(root(), N("no"))), ENOENT);
  EXPECT_EQ(Sys(fs().MakeDir(root(), N("file"), 0755)), EEXIST);
  EXPECT_EQ(fs().MakeDir(root(), N("dir"), 0755).error().code, Errc::kExists);
}

TEST_P(FsConformance, ARemovedDirectoryTakesNothingNew) {
  MkDir("dir");
  Put("file", "F");
  Fd dir = Must(fs().Open(root(), N("dir"), OpenMode::Directory()));
  Must(fs().RemoveDir(root(), N("dir")));
  EXPECT_EQ(Sys(fs().Open(dir, N("x"), OpenMode::CreateNew())), ENOENT);
  EXPECT_EQ(Sys(fs().MakeDir(dir, N("x"), 0755)), ENOENT);
  EXPECT_EQ(Sys(fs().Symlink(dir, N("x"), "t")), ENOENT);
  EXPECT_EQ(Sys(fs().Link(root(), N("file"), dir, N("x"))), ENOENT);
  EXPECT_EQ(Sys(fs().Rename(root(), N("file"), dir, N("x"), RenameHow::kReplace)),
            ENOENT);
  EXPECT_EQ(Sys(fs().List(dir)), ENOENT);
}

TEST_P(FsConformance, ADirectoryDoesNotMoveIntoOneRemovedFromIt) {
  MkDir("dir");
  MkDir("dir/sub");
  Fd sub = Must(fs().OpenBeneath(root(), P("dir/sub"), OpenMode::Directory()));
  Parent at = Must(OpenParent(fs(), root(), P("dir/sub")));
  Must(fs().RemoveDir(at.dir, at.name));
  EXPECT_EQ(Sys(fs().Rename(root(), N("dir"), sub, N("x"), RenameHow::kReplace)),
            ENOENT);
}

TEST_P(FsConformance, OwnersAndModesAreSet) {
  Put("file", "F");
  Fd file = Must(fs().Open(root(), N("file"), OpenMode::Read()));
  FileStat before = Must(fs().Stat(file));
  EXPECT_TRUE(fs().SetOwner(file, before.uid, before.gid).ok());
  EXPECT_EQ(Must(fs().Stat(file)).uid, before.uid);
  Must(fs().SetMode(file, 04751));
  EXPECT_EQ(Must(fs().Stat(file)).mode, 04751u);
  Fd path = Must(fs().Open(root(), N("file"), {.access = Access::kPath}));
  Must(fs().SetMode(path, 0600));
  EXPECT_EQ(Must(fs().Stat(file)).mode, 0600u);
}

TEST_P(FsConformance, SyncAllTakesAnyHandle) {
  Put("f", "x");
  Must(fs().SyncAll(root()));
  Must(fs().SyncAll(Must(fs().Open(root(), N("f"), OpenMode::Read()))));
}

// --- locks ---------------------------------------------------------------------------

TEST_P(FsConformance, ExtendedAttributesAreKeptAndChangeTheCtime) {
  Fd file = Must(fs().Open(root(), N("x"), OpenMode::CreateNew()));
  EXPECT_TRUE(Must(fs().ListXattrs(file)).empty());
  Bytes longer = ToBytes(std::string(700, 'v'));
  int64_t before = Must(fs().Stat(file)).ctime_ns;
  Status set = fs().SetXattr(file, "user.belay", longer);
  if (!set.ok() && set.error().sys == EOPNOTSUPP) GTEST_SKIP() << "no xattrs here";
  Must(std::move(set));
  Must(fs().SetXattr(file, "user.empty", {}));
  EXPECT_EQ(Must(fs().GetXattr(file, "user.belay")), longer);
  EXPECT_EQ(Must(fs().GetXattr(file, "user.empty")), Bytes());
  std::vector<std::string> names = Must(fs().ListXattrs(file));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"user.belay", "user.empty"}));
  EXPECT_NE(Must(fs().Stat(file)).ctime_ns, before);
  Must(fs().RemoveXattr(file, "user.belay"));
  EXPECT_EQ(Sys(fs().GetXattr(file, "user.belay")), ENODATA);
  EXPECT_EQ(Sys(fs().RemoveXattr(file, "user.belay")), ENODATA);
}

TEST_P(FsConformance, LocksExcludeBetweenHandlesOfOneFile) {
  Put("lock", "");
  Fd a = Must(fs().Open(root(), N("lock"), OpenMode::ReadWrite()));
  Fd b = Must(fs().Open(root(), N("lock"), OpenMode::ReadWrite()));
  EXPECT_TRUE(Must(fs().TryLock(a, 0, LockMode::kExclusive)));
  EXPECT_TRUE(Must(fs().TryLock(a, 0, LockMode::kExclusive)));  // again: already ours
  EXPECT_FALSE(Must(fs().TryLock(b, 0, LockMode::kExclusive)));
  EXPECT_FALSE(Must(fs().TryLock(b, 0, LockMode::kShared)));
  EXPECT_TRUE(Must(fs().TryLock(b, 1, LockMode::kExclusive)));  // another byte
  Must(fs().Unlock(a, 0));
  EXPECT_TRUE(Must(fs().TryLock(b, 0, LockMode::kShared)));
  EXPECT_TRUE(Must(fs().TryLock(a, 0, LockMode::kShared)));
  EXPECT_FALSE(Must(fs().TryLock(a, 0, LockMode::kExclusive)));  // b still shares
  Must(b.Close());
  EXPECT_TRUE(Must(fs().TryLock(a, 0, LockMode::kExclusive)));  // an upgrade
  EXPECT_TRUE(Must(fs().TryLock(a, 0, LockMode::kShared)));     // and back
}

TEST_P(FsConformance, ALeaseIsHeldOnlyWhileNobodyElseIsAtTheFile) {
  Put("f", "x");
  Fd ours = Must(fs().Open(root(), N("f"), OpenMode::ReadWrite()));
  LeaseOutcome got = Must(fs().TryLease(ours, LockMode::kExclusive));
  if (got == LeaseOutcome::kUnavailable) GTEST_SKIP() << "no leases here";
  EXPECT_EQ(got, LeaseOutcome::kHeld);
  EXPECT_EQ(Sys(fs().Open(root(), N("f"), OpenMode::Read())), EAGAIN);
  Must(fs().EndLease(ours));
  Fd reader = Must(fs().Open(root(), N("f"), OpenMode::Read()));
  EXPECT_EQ(Must(fs().TryLease(ours, LockMode::kExclusive)), LeaseOutcome::kInUse);
  EXPECT_EQ(Must(fs().TryLease(reader, LockMode::kShared)), LeaseOutcome::kInUse);
  Must(ours.Close());
  EXPECT_EQ(Must(fs().TryLease(reader, LockMode::kShared)), LeaseOutcome::kHeld);
  Fd another = Must(fs().Open(root(), N("f"), OpenMode::Read()));
  EXPECT_EQ(Sys(fs().Open(root(), N("f"), OpenMode::ReadWrite())), EAGAIN);
  Must(reader.Close());  // ends it
  Must(fs().Open(root(), N("f"), OpenMode::ReadWrite()));
}

TEST_P(FsConformance, ADuplicateSharesTheLockUntilBothAreClosed) {
  Put("lock", "");
  Fd a = Must(fs().Open(root(), N("lock"), OpenMode::ReadWrite()));
  Fd other = Must(fs().Open(root(), N("lock"), OpenMode::ReadWrite()));
  Fd twin = Must(fs().Duplicate(a));
  EXPECT_TRUE(Must(fs().TryLock(a, 7, LockMode::kExclusive)));
  EXPECT_TRUE(Must(fs().TryLock(twin, 7, LockMode::kExclusive)));
  Must(a.Close());
  EXPECT_FALSE(Must(fs().TryLock(other, 7, LockMode::kShared)));
  Must(twin.Close());
  EXPECT_TRUE(Must(fs().TryLock(other, 7, LockMode::kShared)));
}

TEST_P(FsConformance, LocksNeedTheFittingAccess) {
  Put("lock", "");
  Fd reader = Must(fs().Open(root(), N("lock"), OpenMode::Read()));
  EXPECT_EQ(Sys(fs().TryLock(reader, 0, LockMode::kExclusive)), EBADF);
  EXPECT_TRUE(Must(fs().TryLock(reader, 0, LockMode::kShared)));
}

// --- helpers -------------------------------------------------------------------------

TEST_P(FsConformance, ReplaceFilePutsTheNewContentAndLeavesNoTemporary) {
  Must(ReplaceFile(fs(), root(), N("file"), AsBytes("one")));
  Must(ReplaceFile(fs(), root(), N("file"), AsBytes("two"), 0640));
  EXPECT_EQ(Tree(), "f 0640 file 3 \"two\"\n");
  Name longest = N(std::string(255, 'x'));
  Must(ReplaceFile(fs(), root(), longest, AsBytes("three")));
  EXPECT_EQ(Must(fs().List(root())).size(), 2u);
}

TEST_P(FsConformance, ReplaceFileRemovesATemporaryThatACrashLeft) {
  Put("file", "old");
  Put("file.0.tmp", "half");
  Must(ReplaceFile(fs(), root(), N("file"), AsBytes("new"), 0644));
  EXPECT_EQ(Tree(), "f 0644 file 3 \"new\"\n");
}

TEST_P(FsConformance, ReplaceFileLeavesATemporaryThatIsInUse) {
  Put("file.0.tmp", "half");
  Fd writer = Must(fs().Open(root(), N("file.0.tmp"), OpenMode::ReadWrite()));
  ASSERT_TRUE(Must(fs().TryLock(writer, 0, LockMode::kExclusive)));
  Must(ReplaceFile(fs(), root(), N("file"), AsBytes("new"), 0644));
  EXPECT_EQ(Tree(), "f 0644 file 3 \"new\"\nf 0644 file.0.tmp 4 \"half\"\n");
}

TEST_P(FsConformance, ReadSmallFileRefusesWhatIsLargerOrNotAFile) {
  Put("file", "12345");
  MkDir("dir");
  EXPECT_EQ(AsText(Must(ReadSmallFile(fs(), root(), N("file"), 5))), "12345");
  EXPECT_EQ(ReadSmallFile(fs(), root(), N("file"), 4).error().code, Errc::kInvalid);
  EXPECT_EQ(ReadSmallFile(fs(), root(), N("dir"), 4).error().code, Errc::kInvalid);
}

TEST_P(FsConformance, MakeDirsCreatesOnlyWhatIsMissing) {
  MkDir("have");
  AbsPath deep = world().path().Join(P("have/some/more"));
  Fd made = Must(MakeDirs(fs(), deep, 0700));
  EXPECT_EQ(Tree(), "d 0755 have\nd 0700 have/some\nd 0700 have/some/more\n");
  Must(MakeDirs(fs(), deep, 0755));
  EXPECT_EQ(Tree(), "d 0755 have\nd 0700 have/some\nd 0700 have/some/more\n");
  Put("file", "x");
  EXPECT_EQ(Sys(MakeDirs(fs(), world().path().Join(P("file/x")), 0700)), ENOTDIR);
}

TEST_P(FsConformance, RemoveTreeTakesReadOnlyDirectories) {
  MkDir("top");
  MkDir("top/locked");
  Put("top/locked/file", "x");
  MkDir("top/locked/below");
  Put("top/locked/below/file", "x");
  Fd locked = Must(fs().OpenBeneath(root(), P("top/locked"), OpenMode::Directory()));
  Must(fs().SetMode(locked, 0));
  Must(RemoveTree(fs(), root(), N("top")));
  EXPECT_EQ(Tree(), "");
  EXPECT_TRUE(RemoveTree(fs(), root(), N("top")).ok());
}

TEST(RealFs, LeaksNoDescriptor) {
  size_t before = OpenDescriptors();
  {
    FsWorld world(FsKind::kRealWalk);
    Fd root = Must(world.fs().OpenDir(world.path()));
    Must(world.fs().MakeDir(root, N("a"), 0755));
    Must(PutFile(world.fs(), root, P("a/b"), "x"));
    EXPECT_FALSE(world.fs().OpenBeneath(root, P("a/b/c"), OpenMode::Read()).ok());
    EXPECT_FALSE(world.fs().OpenBeneath(root, P("a/x/c"), OpenMode::Read()).ok());
    Must(world.fs().List(root));
    Must(MakeDirs(world.fs(), world.path().Join(P("q/w/e")), 0700));
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(RealFs, DescriptorsDoNotSurviveExec) {
  FsWorld world(FsKind::kReal);
  Fd root = Must(world.fs().OpenDir(world.path()));
  Fd file = Must(world.fs().Open(root, N("f"), OpenMode::CreateNew()));
  Fd twin = Must(world.fs().Duplicate(file));
  Fd beneath = Must(world.fs().OpenBeneath(root, P("f"), OpenMode::Read()));
  for (const Fd* fd : {&root, &file, &twin, &beneath})
    EXPECT_EQ(fcntl(fd->handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(RealFs, StatTellsAMountPoint) {
  RealFs fs;
  Fd top = Must(fs.OpenDir(AbsPath::Literal("/")));
  EXPECT_TRUE(Must(fs.StatAt(top, N("proc"))).mount_root);
  EXPECT_FALSE(Must(fs.StatAt(top, N("etc"))).mount_root);
}

TEST(RealFs, AFifoDoesNotHangUs) {
  FsWorld world(FsKind::kReal);
  Fd root = Must(world.fs().OpenDir(world.path()));
  ASSERT_EQ(mkfifoat(root.handle(), "fifo", 0600), 0);
  Fd fifo = Must(world.fs().Open(root, N("fifo"), OpenMode::Read()));
  EXPECT_EQ(Must(world.fs().Stat(fifo)).type, FileType::kFifo);
  Must(fifo.Close());
  EXPECT_EQ(Sys(world.fs().Open(root, N("fifo"), {.access = Access::kWrite})), ENXIO);
}

}  // namespace
}  // namespace belay::test
