// Commands that look at checkpoints, on a disk in memory: what needs a history that no
// command makes yet, and promises that are broken on purpose (tests/mutants).

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "cli/outcome.h"
#include "cli/run.h"
#include "core/roots.h"
#include "store/batch_writer.h"
#include "store/catalog.h"
#include "support/fs_world.h"
#include "support/pass_fs.h"
#include "support/race_fs.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

size_t Count(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + 1))
    ++count;
  return count;
}

class LookTest : public ::testing::Test {
 protected:
  LookTest()
      : disk_(MemFs::Options{.capacity_bytes = uint64_t{1} << 40, .uid = geteuid()}) {}

  void SetUp() override {
    setenv("BELAY_HOME", "/store", 1);
    setenv("BELAY_CONFIG", "/home/me/belay.toml", 1);
    Must(MakeDirs(disk_, AbsPath::Literal("/home/me"), 0755));
    project_ = Must(MakeDirs(disk_, AbsPath::Literal("/project"), 0755));
    Put("a.txt", "one\n");
  }
  void TearDown() override {
    unsetenv("BELAY_HOME");
    unsetenv("BELAY_CONFIG");
  }
  void Put(std::string_view path, std::string_view content) {
    Must(PutFile(disk_, project_, P(path), content));
  }
  void Configure(std::string_view text) {
    Fd dir = Must(disk_.OpenDir(AbsPath::Literal("/home/me")));
    Must(ReplaceFile(disk_, dir, Name::Literal("belay.toml"), AsBytes(text)));
  }

  Outcome Run(std::vector<std::string> words) {
    words.insert(words.begin(), "belay");
    words.insert(words.end(), {"--root", "/project"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = RunCli(*fs_, static_cast<int>(argv.size()), argv.data());
    outcome.err = testing::internal::GetCapturedStderr();
    outcome.out = testing::internal::GetCapturedStdout();
    return outcome;
  }
  // A checkpoint as a hook will make it.
  void AddAuto(const std::string& session, uint64_t turn, const std::string& prompt,
               const std::string& description) {
    world_.options.uid = geteuid();
    auto store = Must(world_.Open());
    auto catalog = Must(Catalog::Open(*store));
    const Root root = Must(FindRootAt(*catalog, AbsPath::Literal("/project")))->root;
    auto writer = Must(store->Begin());
    Checkpoint c;
    c.id = RecordId(world_.random.NewId());
    c.root = root.id;
    c.made_ms = 1'800'000'000'000;
    c.state = Must(PutFiles(*writer, {{"f", description}}));
    c.session = session;
    c.turn = turn;
    c.prompt = prompt;
    c.description = description;
    c.modified = 2;
    writer->Add(ToRecord(c));
    Must(writer->Commit());
  }

  MemFs disk_;
  Fs* fs_ = &disk_;  // as the command sees it
  World world_{disk_, 17};
  Fd project_;
};

TEST_F(LookTest, WhatATurnAskedForHasTheRoom) {
  ASSERT_EQ(Run({"on"}).code, 0);
  const std::string prompt =
      "please make the parser\n\tread comments of both kinds, and test that";
  AddAuto("s", 1, prompt, "please make the parser");
  for (int i = 0; i < 12; ++i) AddAuto("s", 1, prompt, "before Write b");
  const Outcome list = Run({"list"});
  EXPECT_TRUE(list.Says("turn 1: please make the parser... (26 files, +12)\n"))
      << list.out;
  EXPECT_LE(list.out.find('\n'), 80u) << list.out;
}

TEST_F(LookTest, ListFoldsTheAutomaticCheckpointsOfATurn) {
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint", "-m", "start"}).code, 0);
  AddAuto("s", 1, "add it", "add it");
  AddAuto("s", 1, "add it", "before Write b");
  AddAuto("t", 1, "other", "before Bash x");
  AddAuto("s", 1, "add it", "before Write c");
  AddAuto("s", 2, "remove it", "before Bash y");
  ASSERT_EQ(Run({"checkpoint", "-m", "end"}).code, 0);

  const Outcome folded = Run({"list"});
  EXPECT_EQ(Count(folded.out, "\n"), 7u) << folded.out;
  // The turn stands at its first checkpoint: that is the one to go back to.
  EXPECT_TRUE(folded.Says("6. ")) << folded.out;
  EXPECT_TRUE(folded.Says("turn 1: add it (6 files, +2)")) << folded.out;
  EXPECT_TRUE(folded.Says("+N: more checkpoints within that turn")) << folded.out;
  EXPECT_TRUE(folded.Says("before Bash y  (2 files changed)")) << folded.out;
  EXPECT_FALSE(folded.Says("before Write b")) << folded.out;
  const Outcome json = Run({"list", "--json"});
  EXPECT_EQ(Count(json.out, "\"number\":"), 5u) << json.out;
  EXPECT_EQ(Count(json.out, "\"folded\":3"), 1u) << json.out;

  const Outcome tools = Run({"list", "--tools"});
  EXPECT_EQ(Count(tools.out, "\n"), 8u) << tools.out;
  EXPECT_TRUE(tools.Says("5. ")) << tools.out;
  EXPECT_TRUE(tools.Says("before Write b")) << tools.out;
  EXPECT_EQ(Count(Run({"list", "--session", "s", "--json"}).out, "\"number\":"), 2u);
  EXPECT_EQ(Count(Run({"list", "--kind", "auto", "--json"}).out, "\"number\":"), 3u);
  EXPECT_EQ(Count(Run({"list", "-n", "2", "--json"}).out, "\"number\":"), 2u);

  EXPECT_TRUE(Run({"show", "turn:1", "--session", "s"}).Says("add it"));
  // What was there when it began is not kept.
  EXPECT_EQ(Run({"show", "turn:2"}).code, 1);
  EXPECT_EQ(Run({"show", "turn:3"}).code, 1);
}

// Between any two calls of the listing, which is several questions to the catalogue.
TEST_F(LookTest, WhatIsDeletedWhileItIsListedIsNoDamage) {
  ASSERT_EQ(Run({"on"}).code, 0);
  uint64_t deleted = 0;
  const std::vector<std::vector<std::string>> ways = {
      {"list", "--tools"}, {"list"}, {"list", "--graph"}, {"list", "--json"}};
  for (const auto& way : ways) {
    bool over = false;
    for (uint64_t at = 1; !over; ++at) {
      AddAuto("s", 1, "add it", "before Write b");
      AddAuto("s", 1, "add it", "after Write b");
      RecordId victim;
      {
        auto store = Must(world_.Open());
        auto catalog = Must(Catalog::Open(*store));
        victim = Must(catalog->ListCheckpoints({.limit = 1})).at(0).checkpoint.id;
      }
      uint64_t calls = 0;
      RaceFs race(disk_, [&] {
        if (++calls != at) return;
        // Who is in the way of a writer now is not in its way at the next call.
        world_.options.lock_wait_ms = 0;
        auto store = world_.Open();
        auto writer = store.ok() ? (*store)->Begin()
                                 : Result<std::unique_ptr<BatchWriter>>(store.error());
        if (!writer.ok()) return;
        (*writer)->Add(MakeDrop(RecordId(world_.random.NewId()), 0, {victim}));
        deleted += (*writer)->Commit().ok() ? 1 : 0;
      });
      fs_ = &race;
      const Outcome listed = Run(way);
      fs_ = &disk_;
      over = calls < at;
      EXPECT_EQ(listed.code, 0) << way.back() << ", call " << at << ": " << listed.err;
    }
  }
  EXPECT_GT(deleted, 100u);
}

TEST_F(LookTest, CatShowsSecretsOnlyWhenAsked) {
  Put(".env", "TOKEN=hidden\n");
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint"}).code, 0);
  const Outcome refused = Run({"cat", "latest", ".env"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_FALSE(refused.Says("hidden"));
  EXPECT_TRUE(refused.Says("--reveal"));
  EXPECT_EQ(Run({"cat", "latest", ".env", "--reveal"}).out, "TOKEN=hidden\n");
  EXPECT_EQ(Run({"cat", "latest", "a.txt"}).out, "one\n");
}

TEST_F(LookTest, TheStoreIsNotInItsOwnCheckpoints) {
  setenv("BELAY_HOME", "/project/sub/store", 1);
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint"}).code, 0);
  EXPECT_EQ(Run({"ls", "latest"}).out, "a.txt\nsub/\n");
  const Outcome second = Run({"checkpoint", "--json"});
  EXPECT_TRUE(second.Says("\"changed\":{\"added\":0,\"modified\":0,\"deleted\":0}"))
      << second.out;
  EXPECT_TRUE(second.Says("{\"path\":\"sub/store\",\"why\":\"other_root\"}"))
      << second.out;
}

TEST_F(LookTest, CapAndFloorPublishNothing) {
  ASSERT_EQ(Run({"on"}).code, 0);
  Put("noise", Noise(3, 3 << 20));
  for (const char* setting : {"store.cap = \"1MiB\"", "store.floor = \"900TiB\""}) {
    Configure(setting);
    const Outcome refused = Run({"checkpoint"});
    EXPECT_EQ(refused.code, 5) << setting << refused.err;
    EXPECT_TRUE(refused.Says(std::string(setting).substr(0, 9))) << refused.err;
    EXPECT_EQ(Count(Run({"list", "--json"}).out, "\"number\":"), 0u) << setting;
  }
  Configure("");
  EXPECT_EQ(Run({"checkpoint"}).code, 0);
}

TEST_F(LookTest, TheHintAboutTheFloorHelps) {
  ASSERT_EQ(Run({"on"}).code, 0);
  for (const char* floor : {"900TiB", "1024GiB"}) {
    Put("more", floor);
    Configure(std::string("store.floor = \"") + floor + "\"");
    const Outcome refused = Run({"checkpoint"});
    EXPECT_EQ(refused.code, 5);
    const std::string offer = "belay config store.floor ";
    const size_t at = refused.err.find(offer);
    ASSERT_NE(at, std::string::npos) << refused.err;
    const std::string value = refused.err.substr(
        at + offer.size(), refused.err.find('\n', at) - at - offer.size());
    Configure("store.floor = \"" + value + "\"");
    EXPECT_EQ(Run({"checkpoint"}).code, 0) << value;
  }
}

TEST_F(LookTest, WhatIsLargerThanWhatIsFreeIsSaidToBe) {
  MemFs disk(MemFs::Options{.capacity_bytes = 10 << 20, .uid = geteuid()});
  Must(MakeDirs(disk, AbsPath::Literal("/home/me"), 0755));
  const Fd project = Must(MakeDirs(disk, AbsPath::Literal("/project"), 0755));
  Must(PutFile(disk, project, P("large"), Noise(3, 6 << 20)));
  fs_ = &disk;
  ASSERT_EQ(Run({"on"}).code, 0);
  for (const char* floor : {"5%", "0"}) {
    const Fd home = Must(disk.OpenDir(AbsPath::Literal("/home/me")));
    Must(ReplaceFile(disk, home, Name::Literal("belay.toml"),
                     AsBytes(std::string("store.floor = \"") + floor + "\"\n")));
    const Outcome refused = Run({"checkpoint"});
    EXPECT_EQ(refused.code, 5) << refused.err;
    EXPECT_TRUE(refused.Says("this takes 6MiB or more, and 3MiB are free"))
        << refused.err;
    // It would not help.
    EXPECT_FALSE(refused.Says("belay config store.floor")) << refused.err;
  }
}

// Locks that are granted to everybody, as some network file systems do.
class EverybodyLocks : public PassFs {
 public:
  using PassFs::PassFs;
  Result<bool> TryLock(const Fd&, uint64_t, LockMode) override { return true; }
};

TEST_F(LookTest, WhereLocksDoNotExcludeNothingIsWrittenAndDoctorSaysSo) {
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint", "-m", "before"}).code, 0);
  EverybodyLocks locks(disk_);
  fs_ = &locks;
  for (const char* command : {"checkpoint", "on", "gc"}) {
    const Outcome refused = Run({command});
    EXPECT_EQ(refused.code, 1) << command;
    EXPECT_TRUE(refused.Says("no working locks")) << command << refused.err;
  }
  EXPECT_TRUE(Run({"list"}).Says("before"));
  const Outcome doctor = Run({"doctor"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_TRUE(doctor.Says("no working locks")) << doctor.out;
}

TEST_F(LookTest, WhatIsLeftOfAStoreThatCouldNotBeMadeIsNamed) {
  for (uint64_t call = 1;; ++call) {
    ASSERT_LT(call, 500u);
    MemFs disk(MemFs::Options{.capacity_bytes = uint64_t{1} << 30, .uid = geteuid()});
    Must(MakeDirs(disk, AbsPath::Literal("/project"), 0755));
    FaultFs full(disk, Fault::Errno(call, ENOSPC));
    fs_ = &full;
    const Outcome made = Run({"on"});
    if (!full.fired()) break;
    auto left = disk.OpenDir(AbsPath::Literal("/store"));
    if (made.code != 0 && left.ok() && !Must(disk.List(*left)).empty()) {
      EXPECT_TRUE(made.Says("an empty store was left in /store")) << call << made.err;
    }
  }
}

TEST_F(LookTest, DeleteWantsAWord) {
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint", "-m", "mine"}).code, 0);
  Outcome refused = Run({"delete", "mine"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.Says("--yes"));
  EXPECT_TRUE(Run({"list"}).Says("mine"));
  EXPECT_EQ(Run({"delete", "mine", "--yes"}).code, 0);
  EXPECT_FALSE(Run({"list"}).Says("mine"));
}

TEST_F(LookTest, PurgeWantsAWord) {
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint", "--session", "talk", "-m", "mine"}).code, 0);
  Outcome refused = Run({"purge", "--session", "talk"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.Says("--yes"));
  EXPECT_TRUE(Run({"list"}).Says("mine"));
  EXPECT_EQ(Run({"purge", "--session", "talk", "--yes"}).code, 0);
  EXPECT_FALSE(Run({"list"}).Says("mine"));
}

TEST_F(LookTest, DeletingASessionWantsAWord) {
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint", "--session", "talk", "-m", "mine"}).code, 0);
  Outcome refused = Run({"sessions", "delete", "talk"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.Says("--yes"));
  EXPECT_TRUE(Run({"list"}).Says("mine"));
  EXPECT_EQ(Run({"sessions", "delete", "talk", "--yes"}).code, 0);
  EXPECT_FALSE(Run({"list"}).Says("mine"));
}

TEST_F(LookTest, ForgetWantsAWord) {
  ASSERT_EQ(Run({"on"}).code, 0);
  ASSERT_EQ(Run({"checkpoint"}).code, 0);
  EXPECT_EQ(Run({"off", "--forget"}).code, 1);
  EXPECT_EQ(Count(Run({"list", "--json"}).out, "\"number\":"), 1u);
  EXPECT_EQ(Run({"off", "--forget", "--yes"}).code, 0);
  EXPECT_EQ(Run({"list", "--json"}).code, 1);
}

// Mutant: settings-count-where-something-is-protected.
TEST_F(LookTest, SettingsThatMakeNoSenseAreSaidWhereNothingIsProtected) {
  EXPECT_EQ(Run({"status"}).code, 0);
  Configure("auto = tru\n");
  const Outcome text = Run({"status"}), json = Run({"status", "--json"});
  EXPECT_EQ(text.code, 1);
  EXPECT_TRUE(text.Says("not protected") && text.Says("/home/me/belay.toml:1:"));
  EXPECT_TRUE(json.out.find("/home/me/belay.toml:1:") != std::string::npos) << json.out;
  EXPECT_FALSE(disk_.OpenDir(AbsPath::Literal("/store")).ok());
}

// Mutant: what-was-repaired-counts.
TEST_F(LookTest, WhatDoctorMadeACommentIsSaidToBeOff) {
  Configure("auto = tru\n[git]\nrefs = 7\n");
  const Outcome done = Run({"doctor"});
  EXPECT_EQ(done.code, 0);
  EXPECT_TRUE(done.Says("is not set")) << done.out;
  EXPECT_TRUE(done.Says("auto is false now") && done.Says("git.refs is false now"))
      << done.out;
  EXPECT_TRUE(Run({"doctor"}).out.ends_with("nothing is in the way\n"));
}

}  // namespace
}  // namespace belay::test
