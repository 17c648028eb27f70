// A fork of a directory: all of it or nothing, wherever it is interrupted.

#include "restore/fork.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "support/chat_plan.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

const AbsPath kTop = AbsPath::Literal("/top");
const AbsPath kFork = AbsPath::Literal("/top/fork");

class World {
 public:
  explicit World(Fs& disk, uint64_t seed = 1) : fs(disk), world(disk, kTop, seed) {}

  void Put(const std::string& path, const std::string& text) {
    if (const size_t slash = path.rfind('/'); slash != std::string::npos)
      Must(MakeDirs(fs, world.project.Join(P(path.substr(0, slash))), 0755));
    Must(PutFile(fs, Must(fs.OpenDir(world.project)), P(path), text));
  }
  Checkpoint Keep(const std::string& name) {
    return Must(world.Capture(name)).checkpoint;
  }
  Result<DirFork> Fork(const AbsPath& dir = kFork) {
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(auto last,
              opened.catalog->ListCheckpoints({.root = opened.root.id, .limit = 1}));
    DirForkRequest request{.source = opened.root,
                           .target = last[0].checkpoint,
                           .dir = dir,
                           .uid = 1000,
                           .gid = 1000};
    request.git.user.no_system = true;
    if (chat) request.chat = &*chat;
    return ForkDirectory(*opened.store, *opened.catalog, request);
  }
  Result<std::vector<std::string>> End() {
    BELAY_TRY(auto opened, world.Open());
    return EndForks(*opened.store, *opened.catalog);
  }

  Fs& fs;
  RestoreWorld world;
  std::optional<ChatPlan> chat;  // that goes along
};

const AbsPath kAgent = AbsPath::Literal("/top/agent");

// A file, or a directory that comes with one in another directory in it.
ChatPlan Along(bool folder) {
  ChatPlan plan = ChatPlanIn(kAgent, "said before", false);
  if (folder) {
    plan.folder = "-top-fork";
    plan.files = {ChatFileOf(".project_root", "/top/fork"),
                  ChatFileOf("chats/new.jsonl", "said before")};
    plan.record.path = "/top/agent/-top-fork/chats/new.jsonl";
  }
  plan.record.cwd = "/top/fork";
  return plan;
}

std::string Names(Fs& fs, const AbsPath& dir) {
  auto opened = fs.OpenDir(dir);
  if (!opened.ok()) return "-";
  std::vector<std::string> names;
  for (const DirEntry& entry : Must(fs.List(*opened))) names.push_back(entry.name);
  std::ranges::sort(names);
  std::string out;
  for (const std::string& name : names) out += name + " ";
  return out;
}
std::string Text(Fs& fs, const std::string& path) {
  const AbsPath at = AbsPath::Literal(path);
  auto dir = fs.OpenDir(at.parent());
  if (!dir.ok()) return "-";
  auto text = GetFile(fs, *dir, RelPath::Literal(path.substr(path.rfind('/') + 1)));
  return text.ok() ? *text : "-";
}
std::vector<std::string> RootPaths(World& world) {
  auto opened = Must(world.world.Open());
  std::vector<std::string> out;
  for (const RootEntry& entry : Must(opened.catalog->Roots()))
    out.push_back(entry.root.path);
  return out;
}

// Large enough that it is worth sharing blocks.
std::string Large(char of) { return std::string(5000, of); }
MemFs::Options Sharing() {
  MemFs::Options options;
  options.shares_blocks = true;
  return options;
}

Status MakeSource(Fs& fs) {
  World world(fs);
  BELAY_TRY([[maybe_unused]] Fd made, world.world.Dir());
  world.Put("a.txt", "one");
  world.Put("deep/er/b.txt", "two");
  world.Put("run.sh", "three");
  world.Put("large", Large('l'));
  world.Put("edited", Large('e'));
  world.Keep("one");
  world.Put("a.txt", "changed since");
  world.Put("edited", Large('x'));
  BELAY_TRY([[maybe_unused]] Fd agent, MakeDirs(fs, kAgent, 0755));
  return Ok();
}

std::vector<SessionRecord> Sessions(World& world) {
  auto opened = Must(world.world.Open());
  std::vector<SessionRecord> out;
  for (const LogRecord& record :
       Must(opened.catalog->ListRecords({.kind = RecordKind::kSession})))
    out.push_back(Must(ToSession(record)));
  return out;
}

TEST(Fork, HasTheStateAndIsARootWithItsFirstCheckpoint) {
  MemFs fs;
  Must(MakeSource(fs));
  World world(fs);
  const DirFork fork = Must(world.Fork());
  EXPECT_EQ(fork.files, 5u);
  EXPECT_EQ(fork.shared, 0u);
  EXPECT_EQ(Text(fs, "/top/fork/a.txt"), "one");
  EXPECT_EQ(Text(fs, "/top/fork/deep/er/b.txt"), "two");
  EXPECT_EQ(Names(fs, kFork), "a.txt deep edited large run.sh ");
  EXPECT_EQ(Text(fs, world.world.project.bytes() + "/a.txt"), "changed since");
  auto opened = Must(world.world.Open());
  auto here = Must(FindRootAt(*opened.catalog, kFork));
  ASSERT_TRUE(here);
  auto list = Must(opened.catalog->ListCheckpoints({.root = here->root.id}));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].checkpoint.id, fork.checkpoint.id);
  EXPECT_EQ(list[0].checkpoint.meta.at("fork_of").size(), 26u);
  EXPECT_NE(here->root.id, opened.root.id);
  EXPECT_EQ(here->root.ino, Must(fs.Stat(Must(fs.OpenDir(kFork)))).ino);
}

// Mutant: fork-takes-what-the-source-has.
TEST(Fork, SharesTheBlocksOfWhatTheSourceStillHas) {
  MemFs fs(Sharing());
  Must(MakeSource(fs));
  World world(fs);
  const DirFork fork = Must(world.Fork());
  EXPECT_EQ(fork.shared, 5000u);
  EXPECT_EQ(Text(fs, "/top/fork/large"), Large('l'));
  EXPECT_EQ(Text(fs, "/top/fork/edited"), Large('e'));
  EXPECT_EQ(Text(fs, "/top/fork/a.txt"), "one");
  EXPECT_EQ(Text(fs, world.world.project.bytes() + "/edited"), Large('x'));
}

TEST(Fork, SharesNothingOfASourceThatIsGoneOrIsSomethingElse) {
  MemFs fs(Sharing());
  Must(MakeSource(fs));
  World world(fs);
  Fd dir = Must(fs.OpenDir(world.world.project));
  Must(fs.Unlink(dir, Name::Literal("large")));
  Must(fs.Symlink(dir, Name::Literal("large"), "edited"));
  const DirFork fork = Must(world.Fork());
  EXPECT_EQ(fork.shared, 0u);
  EXPECT_EQ(Text(fs, "/top/fork/large"), Large('l'));
  Must(fs.Rename(Must(fs.OpenDir(kTop)), Name::Literal("project"),
                 Must(fs.OpenDir(kTop)), Name::Literal("elsewhere"),
                 RenameHow::kNoReplace));
  EXPECT_EQ(Must(world.Fork(AbsPath::Literal("/top/again"))).shared, 0u);
  EXPECT_EQ(Text(fs, "/top/again/large"), Large('l'));
}

TEST(Fork, SeveralStandSideBySide) {
  MemFs fs;
  Must(MakeSource(fs));
  World world(fs);
  for (const char* name : {"/top/f1", "/top/f2", "/top/f3"})
    EXPECT_TRUE(world.Fork(AbsPath::Literal(name)).ok());
  EXPECT_EQ(RootPaths(world).size(), 4u);
}

// Mutant: fork-works-on-the-source.
TEST(Fork, SettingsThatNameTheWorkTreeLeadToItsOwn) {
  MemFs fs;
  World world(fs);
  Must(world.world.Dir());
  const std::string settings =
      "[core]\n\tworktree = " + world.world.project.bytes() + "\n[user]\n\tname = me";
  world.Put(".git/HEAD", "ref: refs/heads/main\n");
  world.Put(".git/config", settings);
  world.Put(".git/objects/info/packs", "");
  world.Put(".git/refs/heads/.keep", "");
  world.Put("a.txt", "one");
  world.Keep("one");
  ASSERT_TRUE(Must(world.Fork()).repository);
  EXPECT_EQ(Text(fs, "/top/fork/.git/config"),
            settings + "\n[core]\n\tworktree = ..\n");
  EXPECT_EQ(Text(fs, world.world.project.bytes() + "/.git/config"), settings);
}

// Mutant: settings-are-written-twice.
TEST(Fork, SettingsOfAWorkTreeAreAsTheyWereRecorded) {
  MemFs fs;
  World world(fs);
  Must(world.world.Dir());
  world.Put(".git/HEAD", "ref: refs/heads/main\n");
  world.Put(".git/config",
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = "
            "true\n");
  world.Put(".git/config.worktree", "[core]\n\tsparseCheckout = true\n");
  world.Put(".git/info/sparse-checkout", "/*\n!/*/\n");
  world.Put(".git/objects/info/packs", "");
  world.Put(".git/refs/heads/.keep", "");
  world.Put("a.txt", "one");
  world.Keep("one");
  world.Put(".git/config.worktree", "[core]\n\tsparseCheckout = false\n");
  ASSERT_TRUE(Must(world.Fork()).repository);
  EXPECT_EQ(Text(fs, "/top/fork/.git/config.worktree"),
            "[core]\n\tsparseCheckout = true\n");
  EXPECT_EQ(Text(fs, "/top/fork/.git/info/sparse-checkout"), "/*\n!/*/\n");
  EXPECT_EQ(Text(fs, world.world.project.bytes() + "/.git/config.worktree"),
            "[core]\n\tsparseCheckout = false\n");
}

TEST(Fork, AnEmptyDirectoryGivesWayAndNothingElse) {
  MemFs fs;
  Must(MakeSource(fs));
  World world(fs);
  Must(MakeDirs(fs, kFork, 0755));
  EXPECT_TRUE(world.Fork().ok());
  const std::string before = Names(fs, kTop);
  auto again = world.Fork();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::kExists);
  Must(PutFile(fs, Must(fs.OpenDir(kTop)), P("file"), "mine"));
  EXPECT_EQ(world.Fork(AbsPath::Literal("/top/file")).error().code, Errc::kExists);
  EXPECT_EQ(Text(fs, "/top/file"), "mine");
}

TEST(Fork, TheConversationComesToItsPlaceAndIsKnown) {
  for (const bool folder : {false, true}) {
    MemFs fs;
    Must(MakeSource(fs));
    World world(fs);
    world.chat = Along(folder);
    Must(world.Fork());
    EXPECT_EQ(Text(fs, world.chat->record.path), "said before");
    EXPECT_EQ(Names(fs, kAgent), folder ? "-top-fork " : "new.jsonl ");
    const auto sessions = Sessions(world);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].session, "new");
    EXPECT_EQ(sessions[0].parent, "old");
    EXPECT_EQ(sessions[0].inherited_turns, 1u);
    EXPECT_EQ(sessions[0].cwd, "/top/fork");
    EXPECT_EQ(sessions[0].transcript_path, world.chat->record.path);
  }
}

TEST(Fork, WhatIsInThePlaceOfTheConversationStays) {
  MemFs fs;
  Must(MakeSource(fs));
  World world(fs);
  world.chat = Along(false);
  Must(PutFile(fs, Must(fs.OpenDir(kAgent)), P("new.jsonl"), "mine"));
  EXPECT_FALSE(world.Fork().ok());
  EXPECT_EQ(Text(fs, "/top/agent/new.jsonl"), "mine");
}

TEST(Fork, NotIntoAProtectedDirectory) {
  MemFs fs;
  Must(MakeSource(fs));
  World world(fs);
  auto fork = world.Fork(world.world.project.Join(P("inner")));
  ASSERT_FALSE(fork.ok());
  EXPECT_EQ(fork.error().code, Errc::kRefused);
}

TEST(Fork, RightsAreNotGiven) {
  MemFs fs;
  Must(MakeSource(fs));
  World world(fs);
  {
    Fd dir = Must(fs.OpenDir(world.world.project));
    Fd file = Must(fs.Open(dir, Name::Literal("run.sh"), OpenMode::Read()));
    Must(fs.SetMode(file, 04755));
  }
  world.Keep("set-id");
  const DirFork fork = Must(world.Fork());
  Fd dir = Must(fs.OpenDir(kFork));
  EXPECT_EQ(Must(fs.StatAt(dir, Name::Literal("run.sh"))).mode & 07777, 0755u);
  EXPECT_EQ(fork.warnings.size(), 1u);
}

// --- interrupted
// -----------------------------------------------------------------------

enum class With { kNothing, kFile, kFolder };

void Sweep(SweepOptions options, With with = With::kNothing) {
  const SweepResult result = SweepFaults(
      options, MakeSource,
      [&](Fs& fs, Acks&) -> Status {
        World world(fs, 5);
        if (with != With::kNothing) world.chat = Along(with == With::kFolder);
        BELAY_TRY([[maybe_unused]] DirFork fork, world.Fork());
        return Ok();
      },
      [&](Fs& disk, const SweepRun& run) -> Status {
        World world(disk, 9);
        BELAY_TRY([[maybe_unused]] auto ended, world.End());
        auto bad = [&](const std::string& what) {
          return Error(Errc::kCorrupt,
                       what + ": " + Names(disk, kTop) + "/ " + Names(disk, kFork));
        };
        const bool there = Text(disk, "/top/fork/a.txt") == "one" &&
                           Text(disk, "/top/fork/deep/er/b.txt") == "two" &&
                           Text(disk, "/top/fork/run.sh") == "three" &&
                           Text(disk, "/top/fork/large") == Large('l') &&
                           Text(disk, "/top/fork/edited") == Large('e') &&
                           Names(disk, kFork) == "a.txt deep edited large run.sh ";
        if (!there && Names(disk, kFork) != "-") return bad("half a fork");
        if (run.done && !there) return bad("said done, and is not");
        if (Names(disk, kTop).find(".belay-fork") != std::string::npos)
          return bad("something is left");
        if (Text(disk, world.world.project.bytes() + "/a.txt") != "changed since")
          return bad("the source changed");
        const auto roots = RootPaths(world);
        const bool known = std::ranges::find(roots, kFork.bytes()) != roots.end();
        if (known != there) return bad(known ? "a root without files" : "not a root");
        if (with != With::kNothing) {
          const ChatPlan along = Along(with == With::kFolder);
          const bool said = Text(disk, along.record.path) == "said before";
          const std::string name = with == With::kFolder ? "-top-fork " : "new.jsonl ";
          if (said != there || Names(disk, kAgent) != (there ? name : ""))
            return bad("the conversation: " + Names(disk, kAgent));
          if (Sessions(world).size() != (there ? 1u : 0u)) return bad("its record");
          world.chat = along;
        }
        BELAY_TRY(auto opened, world.world.Open());
        auto notes = disk.Open(opened.store->dir(), Name::Literal("forks"),
                               OpenMode::Directory());
        if (notes.ok())
          for (const DirEntry& entry : Must(disk.List(*notes)))
            if (!entry.name.ends_with(".tmp")) return bad("a note is left");
        // And it can be had.
        if (!there) {
          BELAY_TRY([[maybe_unused]] DirFork fork, world.Fork());
        }
        return Ok();
      });
  std::cout << result.Text();
  EXPECT_TRUE(result.ok()) << result.Text();
}

#if defined(BELAY_SANITIZED)
constexpr uint64_t kForkStride = 7;  // one call of so many
#else
constexpr uint64_t kForkStride = 1;
#endif

TEST(ForkSweep, EveryPowerCutLeavesAForkOrNone) {
  for (const bool shares : {false, true}) {
    SweepOptions options{.name = shares ? "power cut, fork that shares blocks"
                                        : "power cut, fork"};
    if (shares) options.disk = Sharing();
    options.fault.mutating_only = true;
    options.tears = 1;
    Sweep(options);
  }
}

TEST(ForkSweep, EveryPowerCutLeavesTheConversationWithItsDirectory) {
  for (const With with : {With::kFile, With::kFolder}) {
    SweepOptions options{.name = "power cut, fork with a conversation"};
    options.fault.mutating_only = true;
    options.tears = 1;
    options.stride = kForkStride;
    Sweep(options, with);
  }
}

TEST(ForkSweep, EveryFailingCallLeavesTheConversationWithItsDirectory) {
  for (const With with : {With::kFile, With::kFolder}) {
    SweepOptions options{.name = "errno, fork with a conversation",
                         .fault = Fault::Errno(0, EIO, false)};
    options.stride = kForkStride;
    Sweep(options, with);
  }
}

TEST(ForkSweep, EveryFailingCallLeavesAForkOrNone) {
  for (int sys : {ENOSPC, EIO}) {
    SweepOptions options{.name = "errno " + std::to_string(sys) + ", fork",
                         .fault = Fault::Errno(0, sys, false)};
    if (sys == EIO) options.disk = Sharing();
    options.stride = kForkStride;
    Sweep(options);
  }
}

}  // namespace
}  // namespace belay::test
