// The upkeep commands on a store whose disk or files went bad: what they say, what they
// exit with, and what still works.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "base/mem_fs.h"
#include "cli/outcome.h"
#include "cli/run.h"
#include "core/failures.h"
#include "crash/hook_fs.h"
#include "store/catalog.h"
#include "store/heads.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class DamagedStore : public ::testing::Test {
 protected:
  DamagedStore() : disk_(Options()), fs_(disk_, {}) {}
  static MemFs::Options Options() {
    MemFs::Options options;
    options.uid = geteuid();
    return options;
  }

  void SetUp() override {
    setenv("BELAY_HOME", "/store", 1);
    ASSERT_TRUE(MakeDirs(disk_, AbsPath::Literal("/project"), 0755).ok());
    auto store = Open();
    RootId root(world_.random.NewId());
    auto writer = store->Begin();
    ASSERT_TRUE(writer.ok());
    (*writer)->Add(ToRecord(Root{root, "/project"}, RecordId(root), 1));
    ASSERT_TRUE((*writer)->Commit().ok());
    for (const char* name : {"one", "two", "three"})
      ASSERT_TRUE(
          MakeCheckpoint(*store, name, {{"f", Noise(name[1], 6000)}}, root).ok());
    // Somebody asked something: the catalogue knows all of it.
    auto catalog = Catalog::Open(*store);
    ASSERT_TRUE((*catalog)->CatchUp().ok());
    pack_ = PackFile::FileName(store->manifest().packs.back().id).bytes();
  }
  void TearDown() override { unsetenv("BELAY_HOME"); }

  std::unique_ptr<Store> Open() {
    world_.options.uid = geteuid();
    auto store = world_.Open();
    EXPECT_TRUE(store.ok()) << store.error().what;
    return std::move(*store);
  }
  Outcome Run(std::vector<std::string> words) {
    words.insert(words.begin(), "belay");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = RunCli(fs_, static_cast<int>(argv.size()), argv.data());
    outcome.err = ::testing::internal::GetCapturedStderr();
    outcome.out = ::testing::internal::GetCapturedStdout();
    return outcome;
  }
  Outcome Status() { return Run({"status", "--root", "/project"}); }

  Fd Home() { return disk_.OpenDir(AbsPath::Literal("/store")).value(); }
  Fd Packs() { return disk_.OpenDir(AbsPath::Literal("/store/packs")).value(); }

  // Where `text` stands in the pack.
  uint64_t Find(std::string_view text) {
    auto bytes = ReadSmallFile(disk_, Packs(), Name::Literal(pack_), 1 << 20);
    return AsText(*bytes).find(text);
  }
  void BreakSector(uint64_t at) {
    fs_.SetOnRead([this, at](const std::string& name, uint64_t offset,
                             size_t count) -> belay::Status {
      if (name == pack_ && offset < at + 1 && offset + count > at)
        return SysError(EIO, "read");
      return Ok();
    });
  }

  MemFs disk_;
  HookFs fs_;
  World world_{disk_};
  std::string pack_;
};

TEST_F(DamagedStore, ABadSectorIsNamedWithWhatItHitsAndExits3) {
  // In the middle of the content of `two`.
  BreakSector(Find(Noise('w', 6000)) + 3000);
  Outcome verify = Run({"verify", "--read-data"});
  EXPECT_EQ(verify.code, 3) << verify.err;
  EXPECT_TRUE(verify.Says("cannot be read: Input/output error")) << verify.out;
  EXPECT_TRUE(verify.Says("checkpoint 'two'")) << verify.out;
  EXPECT_TRUE(verify.Says("  f\n")) << verify.out;
  EXPECT_FALSE(verify.Says("'one'"));
  EXPECT_FALSE(verify.Says("'three'"));
  EXPECT_EQ(Status().code, 0);
  EXPECT_EQ(Run({"repair"}).code, 3);
  Outcome gc = Run({"gc"});
  EXPECT_TRUE(gc.code == 0 || gc.code == 3) << gc.err;
  EXPECT_EQ(Run({"du"}).code, 0);  // the content is not needed for that
}

TEST_F(DamagedStore, ABadSectorInTheLogIsDamageToEveryCommand) {
  BreakSector(Find("three"));
  for (const char* command : {"verify", "du", "gc"}) {
    Outcome outcome = Run({command});
    EXPECT_EQ(outcome.code, 3) << command << ": " << outcome.err;
  }
  EXPECT_TRUE(Run({"du"}).Says("belay verify"));
  EXPECT_EQ(Run({"repair"}).code, 0);
}

TEST_F(DamagedStore, APackThatIsNoFileExits3Everywhere) {
  ASSERT_TRUE(disk_
                  .Rename(Packs(), Name::Literal(pack_), Packs(), Name::Literal("kept"),
                          RenameHow::kReplace)
                  .ok());
  ASSERT_TRUE(
      disk_.MakeSpecial(Packs(), Name::Literal(pack_), FileType::kFifo, 0600).ok());
  for (const char* command : {"verify", "du", "gc", "status"}) {
    Outcome outcome = Run({command, "--root", "/project"});
    EXPECT_EQ(outcome.code, 3) << command << ": " << outcome.err;
    EXPECT_TRUE(outcome.Says(pack_)) << command << ": " << outcome.err;
  }
  EXPECT_EQ(Run({"repair"}).code, 3);
}

TEST_F(DamagedStore, OneThatCannotBeOpenedIsNotCalledEmpty) {
  auto on = [&](std::string_view why) {
    const Outcome outcome = Run({"on", "/project"});
    EXPECT_NE(outcome.code, 0) << why;
    EXPECT_FALSE(outcome.Says("an empty store was left")) << why << outcome.err;
  };
  Fd home = Home();
  auto whole = ReadSmallFile(disk_, home, Name::Literal("manifest"), 1 << 20);
  ASSERT_TRUE(whole.ok());
  auto half = ByteSpan(*whole).first(whole->size() / 2);
  ASSERT_TRUE(ReplaceFile(disk_, home, Name::Literal("manifest"), half).ok());
  on("half a manifest");
  ASSERT_TRUE(disk_.Unlink(home, Name::Literal("manifest")).ok());
  on("no manifest");
  ASSERT_TRUE(ReplaceFile(disk_, home, Name::Literal("manifest"), *whole).ok());
  ASSERT_TRUE(disk_
                  .Rename(home, Name::Literal("packs"), home, Name::Literal("kept"),
                          RenameHow::kReplace)
                  .ok());
  on("no packs");
  ASSERT_TRUE(disk_.Unlink(home, Name::Literal("manifest")).ok());
  on("somebody else's directory");
  ASSERT_TRUE(disk_.SetOwner(home, geteuid() + 1, 1000).ok());
  on("somebody else's store");
}

TEST_F(DamagedStore, StatusTellsWhatHooksSwallowed) {
  auto store = Open();
  ASSERT_TRUE(MakeDirs(disk_, AbsPath::Literal("/store/cache"), 0700).ok());
  for (int i = 0; i < 2; ++i)
    CountFailure(disk_, AbsPath::Literal("/store"), world_.clock, "hook",
                 Error(Errc::kCorrupt, "it is broken"));
  ASSERT_TRUE(
      ReplaceFile(disk_, Home(), Name::Literal("manifest"), AsBytes("BEL")).ok());
  const Outcome status = Status();
  EXPECT_EQ(status.code, 3);
  EXPECT_TRUE(status.Says("2 events of agents could not be recorded; the last: it is"))
      << status.err;
  const Outcome json = Run({"status", "--root", "/project", "--json"});
  EXPECT_EQ(json.code, 3);
  EXPECT_TRUE(json.out.starts_with("{\"error\":{")) << json.out;
  EXPECT_NE(json.out.find("\"failures\":[{\"at\":"), std::string::npos) << json.out;
}

TEST_F(DamagedStore, ALostRootIsNotOneThatNeverWas) {
  // The first batch is the root's record.
  Fd file = disk_.Open(Packs(), Name::Literal(pack_), OpenMode::ReadWrite()).value();
  const Bytes zeros(64);
  ASSERT_TRUE(WriteFull(disk_, file, kPackHeaderSize + kBatchHeaderSize, zeros).ok());
  Fd catalog = disk_.OpenDir(AbsPath::Literal("/store/catalog")).value();
  ASSERT_TRUE(disk_.Unlink(catalog, Name::Literal("catalog.db")).ok());
  (void)disk_.Unlink(catalog, Name::Literal("catalog.db-wal"));
  Outcome status = Status();
  EXPECT_EQ(status.code, 3) << status.out;
  EXPECT_TRUE(status.Says("the store is damaged: a part of its log")) << status.err;
  Outcome on = Run({"on", "/project"});
  EXPECT_EQ(on.code, 3) << on.out << on.err;
}

// As `belay on` left them while it could not read the record of the first.
TEST_F(DamagedStore, RootsThatShareAPathAreOne) {
  {
    auto store = Open();
    RootId second(world_.random.NewId());
    auto writer = store->Begin();
    ASSERT_TRUE(writer.ok());
    (*writer)->Add(ToRecord(Root{second, "/project"}, RecordId(second), 2));
    ASSERT_TRUE((*writer)->Commit().ok());
    ASSERT_TRUE(MakeCheckpoint(*store, "four", {{"f", "four"}}, second).ok());
  }
  Outcome list = Run({"list", "--root", "/project"});
  EXPECT_EQ(list.code, 0) << list.err;
  for (const char* name : {"one", "two", "three", "four"}) {
    EXPECT_TRUE(list.Says(name)) << list.out;
    EXPECT_EQ(Run({"show", name, "--root", "/project"}).code, 0) << name;
    EXPECT_EQ(Run({"cat", name, "f", "--root", "/project"}).code, 0) << name;
  }
  EXPECT_TRUE(Run({"list", "--root", "/project", "--json"}).Says("\"number\":4"));
  Outcome roots = Run({"roots"});
  EXPECT_EQ(roots.out.find("/project"), roots.out.rfind("/project")) << roots.out;
  EXPECT_TRUE(roots.Says("4 checkpoints")) << roots.out;
  auto store = Open();
  auto heads = Heads::Read(*store);
  ASSERT_TRUE(heads.ok());
  ASSERT_EQ(heads->roots().size(), 1u);
  auto catalog = Catalog::Open(*store);
  auto last = (*catalog)->LastCheckpoint(heads->roots()[0].root.id);
  ASSERT_TRUE(last.ok() && *last);
  EXPECT_EQ((*last)->checkpoint.name, "four");
  EXPECT_EQ(heads->LastOf(heads->roots()[0].root.id)->id, (*last)->checkpoint.id);
  // What ends, ends for both.
  EXPECT_EQ(Run({"off", "/project"}).code, 0);
  EXPECT_TRUE(Status().Says("not protected"));
  EXPECT_EQ(Run({"on", "/project"}).code, 0);
  EXPECT_TRUE(Run({"list", "--root", "/project"}).Says("one"));
  EXPECT_EQ(Run({"off", "/project", "--forget", "--yes"}).code, 0);
  EXPECT_FALSE(Run({"roots", "--all"}).Says("/project"));
}

}  // namespace
}  // namespace belay::test
