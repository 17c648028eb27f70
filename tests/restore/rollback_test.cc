// A rollback takes a directory back, whole, and can itself be taken back.

#include "support/crash_harness.h"
#include "support/pass_fs.h"
#include "support/race_fs.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

TEST_F(RollbackTest, BringsBackWhatWasEditedDeletedAndCreated) {
  MakeMess();
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
  EXPECT_TRUE(done.verified);
  ASSERT_TRUE(done.operation);
  ASSERT_TRUE(done.safety);
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
  Must(world.Redo());
  EXPECT_EQ(Tree(), start);
}

TEST_F(RollbackTest, NothingToDoMakesNoOperationAndNoCheckpoint) {
  Put("a", "one");
  Must(world.Capture("start"));
  Outcome done = Must(world.Rollback("start"));
  EXPECT_FALSE(done.operation);
  EXPECT_FALSE(done.safety);
  EXPECT_EQ(Checkpoints().size(), 1u);
  EXPECT_TRUE(Operations().empty());
}

// --- the safety checkpoint
// -------------------------------------------------------------

TEST_F(RollbackTest, WhatIsOverwrittenWasStoredFirst) {
  MakeMess();
  Outcome done = Must(world.Rollback("start"));
  ASSERT_TRUE(done.safety);
  EXPECT_EQ(done.safety->kind, CheckpointKind::kSafety);
  EXPECT_FALSE(done.safety->partial);
  auto holds = Holds(*done.safety);
  EXPECT_EQ(holds["in-place"], "edited by an agent");
  EXPECT_EQ(holds["private"], "secret now, and longer");
  EXPECT_EQ(holds["new"], "made by an agent");
  EXPECT_EQ(holds["newdir/new"], "3");
  EXPECT_EQ(holds["swap/in"], "2");
  EXPECT_EQ(holds["link"], "-> there");
}

TEST_F(RollbackTest, TheSafetyCheckpointHoldsWhatIsIgnoredNow) {
  Put("data/x", "1");
  Put("y.csv", "1");
  Put("plain", "1");
  Must(world.Capture("start"));
  Put(".gitignore", "data/\n*.csv\n");
  Put("data/x", "2");
  Put("y.csv", "2");
  Put("plain", "2");
  world.settings.exclude = {"plain"};
  Outcome done = Must(world.Rollback("start"));
  auto holds = Holds(*done.safety);
  EXPECT_EQ(holds["data/x"], "2");
  EXPECT_EQ(holds["y.csv"], "2");
  EXPECT_EQ(holds["plain"], "2");
  // It is a checkpoint like any other: the content is there without `undo`.
  EXPECT_TRUE(IsStoredSomewhere("data/x", "2"));
}

TEST_F(RollbackTest, TheSafetyCheckpointIgnoresCapAndFloor) {
  Put("a", "1");
  Must(world.Capture("start"));
  Put("a", Noise(1, 50'000));
  world.settings.store_cap = {.bytes = 1};
  world.settings.store_floor = {.percent = 100};
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "1");
}

TEST_F(RollbackTest, WithoutASafetyCheckpointNothingIsChanged) {
  MakeMess();
  for (int sys : {ENOSPC, EIO, EDQUOT, EROFS}) {
    for (FsCall call : {FsCall::kSyncData, FsCall::kWrite}) {
      auto copy = disk.Clone();
      Fault fault = Fault::Errno(1, sys, true);
      fault.only = {call};
      FaultFs fs(*copy, fault);
      RestoreWorld other(fs, AbsPath::Literal("/m"), 99, 1000);
      EXPECT_FALSE(other.Rollback("start").ok()) << FsCallName(call) << " " << sys;
      EXPECT_TRUE(fs.fired());
      EXPECT_EQ(other.Tree(), now) << FsCallName(call) << " " << sys;
    }
  }
}

TEST_F(RollbackTest, AFileThatCannotBeReadStopsItBeforeAnythingMoves) {
  MakeMess();
  struct Unreadable : PassFs {
    using PassFs::PassFs;
    Result<size_t> Read(const Fd& file, uint64_t offset,
                        std::span<std::byte> out) override {
      auto got = PassFs::Read(file, offset, out);
      if (got.ok() && *got >= 16 &&
          AsText(ByteSpan(out.first(*got))).starts_with("made by an agent"))
        return FsError(EIO, "read", "new");
      return got;
    }
  } fs(disk);
  Through other(fs, *this);
  auto done = other.world.Rollback("start");
  // Either it is refused, or the file that cannot be stored stays.
  if (done.ok()) {
    EXPECT_EQ(Read("new"), "made by an agent");
  } else {
    EXPECT_EQ(Tree(), now);
  }
  ExpectNoTraces();
}

// --- deletion
// --------------------------------------------------------------------------

TEST_F(RollbackTest, WhatTheTargetIgnoredStays) {
  Put(".gitignore", "data/\n*.tmp\n");
  Must(world.Capture("start"));
  Put(".gitignore", "# nothing\n");
  Put("data/only-copy", "precious");
  Put("x.tmp", "precious");
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("data/only-copy"), "precious");
  EXPECT_EQ(Read("x.tmp"), "precious");
}

// --- apply
// -----------------------------------------------------------------------------

TEST_F(RollbackTest, NothingIsLeftBehind) {
  MakeMess();
  Must(world.Rollback("start"));
  ExpectNoTraces();
  Must(world.Undo());
  ExpectNoTraces();
  EXPECT_FALSE(Must(world.Recover()));
}

TEST_F(RollbackTest, APrivateFileIsNeverReadableByOthers) {
  MakeMess();
  Remove("private");  // so that it is made anew
  std::function<void(const Fd&)> look = [&](const Fd& dir) {
    for (const DirEntry& entry : Must(disk.List(dir))) {
      const FileStat stat = Must(disk.StatAt(dir, N(entry.name)));
      if (stat.type == FileType::kDirectory)
        look(Must(disk.Open(dir, N(entry.name), OpenMode::Directory())));
      if (stat.type != FileType::kRegular || (stat.mode & 077) == 0) continue;
      auto content = GetFile(disk, dir, P(entry.name));
      ASSERT_FALSE(content.ok() && content->find("secret") != std::string::npos)
          << entry.name << " is readable by others";
    }
  };
  RaceFs fs(disk, [&] { look(root); });
  {
    Through other(fs, *this);
    Must(other.world.Rollback("start"));
    look(root);
    Must(other.world.Undo());
    Must(other.world.Redo());
  }
  EXPECT_EQ(Read("private"), "secret then");
  EXPECT_EQ(Stat("private").mode, 0600u);
}

TEST_F(RollbackTest, OtherNamesOfAHardLinkKeepTheirContent) {
  Put("a", "then");
  Must(world.Capture("start"));
  Put("a", "now");
  Fd outside = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(disk.Link(root, N("a"), outside, N("other-name")));
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "then");
  EXPECT_EQ(Must(GetFile(disk, outside, P("other-name"))), "now");
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "now");
  EXPECT_EQ(Must(GetFile(disk, outside, P("other-name"))), "now");
}

TEST_F(RollbackTest, OtherNamesOfAHardLinkKeepTheirAttributes) {
  for (const char* path : {"mode", "owner", "xattr", "alone"}) Put(path, "content");
  Must(world.Capture("start"));
  Fd outside = Must(disk.OpenDir(AbsPath::Literal("/m")));
  for (const char* path : {"mode", "owner", "xattr"})
    Must(disk.Link(root, N(path), outside, N(path)));
  Chmod("mode", 0600);
  Chown("owner", 7, 8);
  SetXattr("xattr", "user.x", "1");
  Chmod("alone", 0600);
  const uint64_t alone = Stat("alone").ino;
  auto elsewhere = [&](const char* path) {
    return Must(disk.StatAt(outside, N(path)));
  };
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Stat("mode").mode, 0644u);
  EXPECT_EQ(Stat("owner").uid, 1000u);
  EXPECT_EQ(elsewhere("mode").mode, 0600u);
  EXPECT_EQ(elsewhere("owner").uid, 7u);
  Fd other = Must(disk.Open(outside, N("xattr"), OpenMode::Read()));
  EXPECT_EQ(Must(disk.ListXattrs(other)).size(), 1u);
  for (const char* path : {"mode", "owner", "xattr"}) {
    EXPECT_EQ(Read(path), "content");
    EXPECT_EQ(elsewhere(path).nlink, 1u) << path;
  }
  EXPECT_EQ(Stat("alone").ino, alone) << "it has no other name: as it is";
  Must(world.Undo());
  EXPECT_EQ(Stat("mode").mode, 0600u);
  EXPECT_EQ(Stat("owner").uid, 7u);
  EXPECT_EQ(elsewhere("mode").mode, 0600u);
}

TEST_F(RollbackTest, HardLinksInsideTheProjectComeBackAsFiles) {
  Put("a", "then");
  HardLink("a", "b");
  Must(world.Capture("start"));
  Remove("b");
  Put("a", "now");
  HardLink("a", "c");
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "then");
  EXPECT_EQ(Read("b"), "then");
  EXPECT_FALSE(Exists("c"));
  Must(world.Undo());
  EXPECT_EQ(Read("a"), "now");
  EXPECT_EQ(Read("c"), "now");
  EXPECT_FALSE(Exists("b"));
}

TEST_F(RollbackTest, AFileInUseIsNotWrittenInPlace) {
  Put("a", "then");
  Must(world.Capture("start"));
  Put("a", "now");
  Fd reader = Must(disk.Open(root, N("a"), OpenMode::Read()));
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("a"), "then");
  Bytes seen(8);
  EXPECT_EQ(Must(ReadFull(disk, reader, 0, seen)), 3u);
  EXPECT_EQ(std::string(AsText(seen)).substr(0, 3), "now");
}

TEST_F(RollbackTest, AFileInUseByAWriterIsWarnedAbout) {
  Put("a", "then");
  Must(world.Capture("start"));
  Put("a", "now");
  Fd writer = Must(disk.Open(root, N("a"), OpenMode::ReadWrite()));
  Outcome preview = Must(world.Preview("start"));
  EXPECT_TRUE(Mentions(preview.plan.warnings, "a is open for writing"));
  Outcome done = Must(world.Rollback("start"));
  EXPECT_TRUE(Mentions(done.warnings, "still writes to the old a"));
  EXPECT_EQ(Read("a"), "then");
}

TEST_F(RollbackTest, FilesGetTheCurrentTimeUnlessAskedOtherwise) {
  Put("a", "then");
  Put("b", "then");
  Must(world.Capture("start"));
  auto opened = Must(world.Open());
  const int64_t made_ns = Must(world.Named(opened, "start")).made_ms * 1'000'000;
  Put("a", "now");
  Remove("b");
  const int64_t edited = Stat("a").mtime_ns;
  Must(world.Rollback("start"));
  EXPECT_GT(Stat("a").mtime_ns, edited);
  EXPECT_GT(Stat("b").mtime_ns, edited);
  Must(world.Undo());
  world.preserve_times = true;
  Must(world.Rollback("start"));
  EXPECT_EQ(Stat("a").mtime_ns, made_ns);
  EXPECT_EQ(Stat("b").mtime_ns, made_ns);
}

TEST_F(RollbackTest, FilesThatAreAsTheyWereKeepTheirTime) {
  Put("a", "then");
  Put("same", "same");
  Must(world.Capture("start"));
  const FileStat before = Stat("same");
  Put("a", "now");
  Must(world.Rollback("start"));
  EXPECT_EQ(Stat("same").mtime_ns, before.mtime_ns);
  EXPECT_EQ(Stat("same").ctime_ns, before.ctime_ns);
  EXPECT_EQ(Stat("same").ino, before.ino);
}

TEST_F(RollbackTest, SetuidComesBackOnlyWhereItIsNow) {
  Put("kept", "1", 0755);
  Chmod("kept", 04755);
  Put("lost", "1", 0755);
  Chmod("lost", 04755);
  Put("gone", "1", 0755);
  Chmod("gone", 06755);
  Must(world.Capture("start"));
  Put("kept", "2", 0755);
  Chmod("kept", 04755);
  Put("lost", "2", 0755);
  Chmod("lost", 0755);
  Remove("gone");
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Stat("kept").mode, 04755u);
  EXPECT_EQ(Stat("lost").mode, 0755u);
  EXPECT_EQ(Stat("gone").mode, 0755u);
  EXPECT_EQ(Read("gone"), "1");
  EXPECT_TRUE(Mentions(done.plan.warnings, "without setuid"));
}

TEST_F(RollbackTest, AnImmutableFileIsReportedBeforeAnythingMoves) {
  MakeMess();
  Must(disk.SetImmutable(root, N("in-place"), true));
  const Outcome preview = Must(world.Preview("start"));
  ASSERT_TRUE(preview.plan.refused);
  EXPECT_EQ(preview.plan.refused->code, Errc::kRefused);
  EXPECT_NE(preview.plan.refused->what.find("in-place is immutable"),
            std::string::npos);
  auto done = world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(Tree(), now);
  ExpectNoTraces();
  Must(disk.SetImmutable(root, N("in-place"), false));
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
}

TEST_F(RollbackTest, AnImmutableDirectoryIsReportedBeforeAnythingMoves) {
  Put("d/a", "1");
  Must(world.Capture("start"));
  Put("d/a", "2");
  Put("d/b", "2");
  Must(disk.SetImmutable(root, N("d"), true));
  auto done = world.Rollback("start");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kRefused);
  EXPECT_EQ(Read("d/a"), "2");
}

TEST_F(RollbackTest, AReadOnlyDiskRefusesWithNothingChanged) {
  MakeMess();
  disk.SetReadOnly(true);
  EXPECT_FALSE(world.Rollback("start").ok());
  disk.SetReadOnly(false);
  EXPECT_EQ(Tree(), now);
  ExpectNoTraces();
}

TEST_F(RollbackTest, TheRootItselfMayBeGone) {
  Put("d/a", "1");
  Put("x", "1", 0600);
  Must(world.Capture("start"));
  const std::string then = Tree();
  root = Fd();
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(RemoveTree(disk, top, N("project")));
  Outcome preview = Must(world.Preview("start"));
  EXPECT_TRUE(Mentions(preview.warnings, "gone"));
  EXPECT_EQ(Steps(preview.plan), "mkdir ., mkdir d, create d/a, create x");
  EXPECT_FALSE(disk.OpenDir(world.project).ok()) << "a preview made it";
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), then);
  EXPECT_EQ(Must(world.Undo()).undone, "the rollback to 'start'");
  EXPECT_FALSE(disk.OpenDir(world.project).ok()) << "it was made, and is still there";
  Must(world.Redo());
  EXPECT_EQ(Tree(), then);
  Must(world.Undo());
  EXPECT_FALSE(disk.OpenDir(world.project).ok());
  Must(world.Redo());
  EXPECT_EQ(Tree(), then);
  // With something else in it by now, it stays.
  root = Must(disk.OpenDir(world.project));
  Put("mine.log", "ignored");
  Outcome undone = Must(world.Undo());
  EXPECT_EQ(Kept(undone.plan), ". not_empty");
  EXPECT_EQ(Must(disk.List(root)).size(), 1u);
  EXPECT_EQ(Read("mine.log"), "ignored");
}

TEST_F(RollbackTest, ARootThatIsGoneIsNotMadeWhenTheTargetIsDamaged) {
  Put("a", "1");
  Must(world.Capture("start"));
  auto opened = Must(world.Open());
  Checkpoint target = Must(world.Named(opened, "start"));
  {
    State state = Must(opened.store->GetState(target.state));
    belay::Tree tree = Must(opened.store->GetTree(state.tree));
    tree.entries[0].id = Sha256::Of(AsBytes("nowhere"));
    auto writer = Must(opened.store->Begin());
    state.tree = Must(writer->PutTree(tree));
    target.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    target.id = RecordId(world.world.random.NewId());
    writer->Add(ToRecord(target));
    Must(writer->Commit());
  }
  root = Fd();
  Fd top = Must(disk.OpenDir(AbsPath::Literal("/m")));
  Must(RemoveTree(disk, top, N("project")));
  auto done = belay::Rollback(*opened.store, world.RequestFor(opened.root), target);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kCorrupt);
  EXPECT_FALSE(disk.OpenDir(world.project).ok()) << "an empty directory was left";
}

// --- stopping
// --------------------------------------------------------------------------

TEST_F(RollbackTest, StoppedAnywhereItEndsInTheOldTree) {
  MakeMess();
  int stopped = 0;
  for (int at = 1;; ++at) {
    auto copy = disk.Clone();
    RestoreWorld other(*copy, AbsPath::Literal("/m"), 99, 1000);
    int asked = 0;
    other.stop = [&] { return ++asked >= at; };
    auto done = other.Rollback("start");
    if (done.ok()) {
      EXPECT_EQ(other.Tree(), start);
      EXPECT_LT(asked, at);
      break;
    }
    ++stopped;
    EXPECT_EQ(done.error().code, Errc::kRefused) << done.error().what;
    ASSERT_EQ(other.Tree(), now) << "stopped at question " << at;
    ASSERT_FALSE(Must(other.Recover())) << "a journal was left";
    other.stop = {};
    Must(other.Rollback("start"));
    ASSERT_EQ(other.Tree(), start) << "after a stop at question " << at;
  }
  EXPECT_GT(stopped, 20);
}

// --- verification
// ----------------------------------------------------------------------

// Says it wrote `right`, and writes something else.
class LyingFs : public PassFs {
 public:
  LyingFs(Fs& inner, std::string right) : PassFs(inner), right_(std::move(right)) {}
  Result<size_t> Write(const Fd& file, uint64_t offset, ByteSpan bytes) override {
    if (AsText(bytes) != right_) return PassFs::Write(file, offset, bytes);
    ++lies;
    Bytes wrong(bytes.begin(), bytes.end());
    wrong[wrong.size() / 2] ^= std::byte{1};
    return PassFs::Write(file, offset, wrong);
  }
  int lies = 0;

 private:
  std::string right_;
};

TEST_F(RollbackTest, ADiskThatLiesIsNoticedAndTheRollbackTakenBack) {
  for (bool exists : {true, false}) {
    auto copy = disk.Clone();
    Project project(*copy, AbsPath::Literal("/m"), 1000);
    project.Put("a", "the right content");
    project.Put("b", "1");
    Must(project.world.Capture("start"));
    project.Put("a", "edited");
    if (!exists) project.Remove("a");
    project.Put("b", "2");
    project.Put("c", "2");
    const std::string before = project.Tree();
    LyingFs fs(*copy, "the right content");
    {
      RestoreWorld other(fs, AbsPath::Literal("/m"), 99, 1000);
      auto done = other.Rollback("start");
      ASSERT_FALSE(done.ok());
      EXPECT_EQ(done.error().code, Errc::kIo);
      EXPECT_NE(done.error().what.find("a is not what the disk gives back"),
                std::string::npos)
          << done.error().what;
    }
    EXPECT_GT(fs.lies, 0);
    EXPECT_EQ(project.Tree(), before);
    EXPECT_TRUE(project.Operations().empty());
    EXPECT_FALSE(Must(project.world.Recover()));
  }
}

TEST_F(RollbackTest, WhatOthersChangeAfterOurWriteIsReportedAndLeft) {
  Put("a", "then");
  Put("b", "then");
  Must(world.Capture("start"));
  Put("a", "now");
  Put("b", "now");
  bool edited = false;
  // Before the flush everything is written.
  struct BeforeFlush : PassFs {
    BeforeFlush(Fs& inner, std::function<void()> hook)
        : PassFs(inner), hook_(std::move(hook)) {}
    Status Sync(const Fd& file) override {
      hook_();
      return PassFs::Sync(file);
    }
    Status SyncAll(const Fd& file) override {
      hook_();
      return PassFs::SyncAll(file);
    }
    std::function<void()> hook_;
  } fs(disk, [&] {
    if (edited || Read("b") != "then" || Read("a") != "then") return;
    edited = true;
    Put("a", "theirs");
  });
  Through other(fs, *this);
  Outcome done = Must(other.world.Rollback("start"));
  ASSERT_TRUE(edited);
  EXPECT_EQ(done.changed_by_others, std::vector<std::string>{"a"});
  EXPECT_FALSE(done.verified);
  EXPECT_EQ(Read("a"), "theirs");
  EXPECT_EQ(Read("b"), "then");
}

// --- one at a time
// ---------------------------------------------------------------------

TEST_F(RollbackTest, ASecondOneIsToldWhoIsAtIt) {
  MakeMess();
  auto first = Must(world.Open());
  HeldLock lock = Must(first.store->locks().AcquireRoot(first.root.id, 0));
  NoteAtWork(*first.store, first.root.id, {"rollback", 4711});
  world.lock_wait_ms = 10;
  auto second = world.Rollback("start");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::kBusy);
  EXPECT_NE(second.error().what.find("belay rollback (process 4711)"),
            std::string::npos)
      << second.error().what;
  auto undo = world.Undo();
  ASSERT_FALSE(undo.ok());
  EXPECT_EQ(undo.error().code, Errc::kBusy);
  auto checkpoint = world.Capture("meanwhile");
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.error().code, Errc::kBusy);
  EXPECT_EQ(Tree(), now);
  lock.Release();
  Must(world.Rollback("start"));
  EXPECT_EQ(Tree(), start);
}

TEST_F(RollbackTest, TheLockIsReleasedAfterAFailure) {
  MakeMess();
  world.stop = [] { return true; };
  EXPECT_FALSE(world.Rollback("start").ok());
  world.stop = {};
  world.lock_wait_ms = 0;
  Must(world.Rollback("start"));
  EXPECT_EQ(disk.open_handles(), 1u) << "only the test's own";
}

TEST_F(RollbackTest, WhoWaitsIsToldForWhom) {
  MakeMess();
  auto first = Must(world.Open());
  HeldLock lock = Must(first.store->locks().AcquireRoot(first.root.id, 0));
  NoteAtWork(*first.store, first.root.id, {"rollback", 4711});
  std::vector<std::string> told;
  world.waiting = [&](const std::string& who) { told.push_back(who); };
  world.lock_wait_ms = 400;  // no longer than a moment
  EXPECT_FALSE(world.Rollback("start").ok());
  EXPECT_TRUE(told.empty());
  world.lock_wait_ms = 2000;
  EXPECT_FALSE(world.Rollback("start").ok());
  EXPECT_EQ(told, std::vector<std::string>{"belay rollback (process 4711)"});
  // It is done meanwhile: told of afterwards, too.
  told.clear();
  world.waiting = [&](const std::string& who) { told.push_back(who), lock.Release(); };
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(told.size(), 1u);
  EXPECT_TRUE(
      Mentions(done.warnings, "belay rollback (process 4711) was at work here"));
  EXPECT_EQ(Tree(), start);
  EXPECT_TRUE(Must(world.Undo()).warnings.empty());
}

TEST_F(RollbackTest, PreservedTimesAreOfDirectoriesAndOfARedoToo) {
  Put("d/e/a", "then");
  Put("b", "then");
  Must(world.Capture("start"));
  auto opened = Must(world.Open());
  const int64_t made_ns = Must(world.Named(opened, "start")).made_ms * 1'000'000;
  Remove("d");
  Put("b", "now");
  world.preserve_times = true;
  Must(world.Rollback("start"));
  world.preserve_times = false;
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    for (const char* path : {"d", "d/e", "d/e/a", "b"})
      EXPECT_EQ(Stat(path).mtime_ns, made_ns) << path;
    if (again) break;
    Must(world.Undo());
    EXPECT_NE(Stat("b").mtime_ns, made_ns);
    Must(world.Redo());
  }
}

}  // namespace
}  // namespace belay::test
