// Rollback, undo and redo in a git repository, killed at their calls, and in recovery:
// files and git move together or not at all. What git says afterwards is what it said
// before, or what it was to say; no lock and nothing of ours is left behind. The same
// with a conversation that goes back with both, and with calls that fail.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "base/real_fs.h"
#include "support/crash_harness.h"
#include "support/git_shell.h"
#include "support/recorded_chat.h"
#include "support/restore_scene.h"
#include "support/restore_world.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

constexpr const char* kInnerRepository =
    "git init -q --template= -b main in/side; cd in/side; echo i >i; git add i\n"
    "git commit -qm inner; echo staged >>i; git add i; echo n >n\n";

// A repository with something of everything, made once and copied.
class Template {
 public:
  explicit Template(bool inner = false) {
    const AbsPath dir = temp_.path();
    made_ = Shell(dir,
                  "git init -q -b main project; cd project\n"
                  "echo one >a; echo two >b; mkdir d; echo three >d/c\n"
                  "git add .; git commit -qm first\n"
                  "git branch other; git tag v1\n"
                  "echo stashed >>a; git stash -q\n"
                  "echo staged >>a; git add a; echo unstaged >>a\n"
                  "echo new >new; echo edit >>b\n" +
                      std::string(inner ? kInnerRepository : ""));
  }
  Status Copy(const AbsPath& to) {
    BELAY_OK(made_);
    auto done = RunProgram(AbsPath::Literal("/bin/cp"), temp_.path(),
                           {"-a", (temp_ / "project").bytes(), to.bytes()});
    return done.ok() ? Ok() : std::move(done).error();
  }

 private:
  TempDir temp_;
  Status made_ = Ok();
};

// What was staged is in no commit and pruned: the object must be written again. So must
// what it leaves staged itself, once that is gone (kPrune).
constexpr std::string_view kPrune = "git prune --expire=now\n";
constexpr std::string_view kAgent =
    "git add -A; git commit -qm agent; git prune --expire=now\n"
    "git stash drop -q; git branch -qD other\n"
    "echo more >>b; rm d/c; echo x >e; git add e; echo again >>a; git commit -qam "
    "more\n"
    "echo late >late; git add late\n";

// Covered by git.protect, and gone.
constexpr std::string_view kGone = "rm -rf .git; echo more >>b; rm d/c; echo x >e\n";
// A repository inside, with the directory that it is in.
constexpr std::string_view kInnerGone = "rm -rf in; echo more >>b; echo x >e\n";

enum class What { kCommits, kGit, kInner };

// What git says; where there is no repository, the files and what is left in `.git`.
Result<std::string> SeeAll(const AbsPath& project) {
  if (Shell(project, "test -e .git/HEAD -a -d .git/objects -a -d .git/refs").ok()) {
    BELAY_TRY(std::string outer, See(project));
    const AbsPath inner = project.Join(RelPath::Literal("in/side"));
    if (!Shell(project, "test -e in/side/.git/HEAD -a -d in/side/.git/refs").ok()) {
      BELAY_TRY(std::string left, RunProgram(AbsPath::Literal("/bin/sh"), project,
                                             {"-c", "find in 2>/dev/null | sort"}));
      return outer + left;
    }
    BELAY_TRY(std::string inside, See(inner));
    BELAY_OK(Git(inner, {"fsck", "--no-dangling"}));
    return outer + inside;
  }
  return RunProgram(AbsPath::Literal("/bin/sh"), project,
                    {"-c",
                     "echo no git; find . | sort; find . -type f -print0 | sort -z | "
                     "xargs -0 sha256sum"});
}

class Scene {
 public:
  Scene(std::string op, Template& made, What what = What::kCommits,
        std::optional<AgentKind> agent = {})
      : op_(std::move(op)), template_(made), what_(what) {
    if (agent) chat_.emplace(*agent);
  }

  RestoreWorld World(Fs& fs, const AbsPath& dir) {
    RestoreWorld world(fs, dir, 1, getuid());
    world.settings.git_protect = what_ != What::kCommits;
    world.git.nested = what_ == What::kInner;
    return world;
  }
  Status Setup(Fs& fs, const AbsPath& dir) {
    BELAY_OK(template_.Copy(dir.Join(RelPath::Literal("project"))));
    RestoreWorld world = World(fs, dir);
    BELAY_TRY(auto made, world.Capture("start"));
    BELAY_OK(Shell(world.project, std::string(what_ == What::kGit     ? kGone
                                              : what_ == What::kInner ? kInnerGone
                                                                      : kAgent)));
    if (chat_) BELAY_OK(chat_->Tell(world));
    if (op_ == "rollback") return Ok();
    BELAY_TRY(auto back, Back(world));
    if (what_ == What::kCommits) BELAY_OK(Shell(world.project, std::string(kPrune)));
    if (op_ == "undo") return Ok();
    BELAY_TRY(auto undone, world.Undo());
    if (what_ == What::kCommits) BELAY_OK(Shell(world.project, std::string(kPrune)));
    (void)made, (void)back, (void)undone;
    return Ok();
  }
  Status Operate(Fs& fs, const AbsPath& dir) {
    RestoreWorld world = World(fs, dir);
    auto done = op_ == "rollback" ? Back(world)
                : op_ == "undo"   ? world.Undo()
                                  : world.Redo();
    if (!done.ok()) return std::move(done).error();
    if (!done->operation) return Error(Errc::kInvalid, "nothing was done");
    return Ok();
  }
  Status Recover(Fs& fs, const AbsPath& dir) {
    auto recovered = World(fs, dir).Recover();
    return recovered.ok() ? Ok() : std::move(recovered).error();
  }
  // What it looks like before, and after an operation that nobody interrupted.
  Status Learn() {
    RealFs fs;
    TempDir temp;
    const TalkDirEnds talk_ends(temp.path());
    BELAY_OK(Setup(fs, temp.path()));
    BELAY_TRY(before_, SeeBoth(fs, temp.path()));
    BELAY_OK(Operate(fs, temp.path()));
    BELAY_TRY(after_, SeeBoth(fs, temp.path()));
    return before_ == after_ ? Error(Errc::kInvalid, "the operation changes nothing")
                             : Ok();
  }
  Status Check(Fs& fs, const AbsPath& dir, const SweepRun& run, bool failed = false) {
    const TalkDirEnds talk_ends(dir);
    const AbsPath project = dir.Join(RelPath::Literal("project"));
    BELAY_OK(Recover(fs, dir));
    BELAY_TRY(std::string now, SeeBoth(fs, dir));
    if (now != before_ && now != after_)
      return Error(Errc::kInvalid, "neither before nor after:\n" + now);
    if (run.done && now != after_)
      return Error(Errc::kInvalid, "acknowledged, not done");
    // An error that says that nothing was changed is true.
    if (failed && !run.done && now != before_ &&
        run.error.what.find("interrupted") == std::string::npos)
      return Error(Errc::kInvalid, "an error, and done: " + run.error.what);
    if (!now.starts_with("no git")) BELAY_OK(Git(project, {"fsck", "--no-dangling"}));
    return Shell(project,
                 "left=$(find . -name '*.lock' -o -name '.belay-*'); "
                 "test -z \"$left\" || { echo \"left: $left\" >&2; exit 1; }");
  }

 private:
  Result<Outcome> Back(RestoreWorld& world) {
    if (!chat_) return world.Rollback("start");
    BELAY_TRY(auto chat, chat_->Plan(world));
    world.chat = chat.get();
    auto done = world.Rollback("start");
    world.chat = nullptr;
    return done;
  }
  // What git says, and all conversations, byte for byte.
  Result<std::string> SeeBoth(Fs& fs, const AbsPath& dir) {
    BELAY_TRY(std::string git, SeeAll(dir.Join(RelPath::Literal("project"))));
    if (!chat_) return git;
    BELAY_TRY(std::string talk, WholeTreeText(fs, TalkDir(dir)));
    return git + talk;
  }

  std::string op_;
  Template& template_;
  What what_;
  std::optional<RecordedChat> chat_;
  std::string before_, after_;
};

void SweepOperations(What what, uint64_t stride, std::optional<AgentKind> agent = {}) {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  Template made(what == What::kInner);
  uint64_t points = 0;
  for (const std::string op : {"rollback", "undo", "redo"}) {
    // An undo or redo moves nothing of a conversation.
    if (agent && op != "rollback" && !RunEverything()) continue;
    Scene scene(op, made, what, agent);
    Status learned = scene.Learn();
    ASSERT_TRUE(learned.ok()) << learned.error().what;
    SweepOptions options{.name = "kill in git, " + op +
                                 (what == What::kGit     ? " of .git"
                                  : what == What::kInner ? " of one inside"
                                                         : "") +
                                 (agent ? " and a conversation" : "")};
    options.fault = op == "undo" ? Fault::KillAfter(0) : Fault::Kill(0);
    // What reads and plans comes first and is long; the moves are at the end.
    options.first = 11;
    options.stride = RunEverything() ? 1 : stride;
    SweepResult result = SweepKills(
        options, [&](Fs& fs, const AbsPath& dir) { return scene.Setup(fs, dir); },
        [&](Fs& fs, const AbsPath& dir, Acks&) { return scene.Operate(fs, dir); },
        [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
          return scene.Check(fs, dir, run);
        });
    std::cout << result.Text();
    EXPECT_TRUE(result.ok()) << result.Text();
    points += result.points;
  }
  EXPECT_GE(points, 20u);
}

TEST(GitKillSweep, FilesAndGitMoveTogetherOrNotAtAll) {
  SweepOperations(What::kCommits, 73);
}
TEST(GitKillSweep, AGitDirectoryComesAndGoesWithTheFilesOrNotAtAll) {
  SweepOperations(What::kGit, 97);
}
TEST(GitKillSweep, ARepositoryInsideComesAndGoesWithItsDirectoryOrNotAtAll) {
  SweepOperations(What::kInner, 97);
}

TEST(GitKillSweep, FilesGitAndConversationMoveTogetherOrNotAtAll) {
  SweepOperations(What::kCommits, 61, AgentKind::kClaude);
  SweepOperations(What::kCommits, 67, AgentKind::kCopilot);
}

// Git runs by itself, so that no disk in memory will do: each call fails on a real one.
TEST(GitErrorSweep, FilesGitAndConversationMoveTogetherOrNotAtAll) {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  Template made;
  for (const AgentKind agent : {AgentKind::kClaude, AgentKind::kCopilot}) {
    Scene scene("rollback", made, What::kCommits, agent);
    Status learned = scene.Learn();
    ASSERT_TRUE(learned.ok()) << learned.error().what;
    for (const int sys : {ENOSPC, EIO}) {
      for (const bool sticky : {false, true}) {
        SweepResult result;
        result.name = "rollback with git of " + std::string(AgentName(agent)) + ", " +
                      Fault::Errno(0, sys, sticky).Text();
        const uint64_t stride = RunEverything() ? 1 : 61;
        bool fired = true;
        for (uint64_t at = 1 + result.name.size() % stride; fired; at += stride) {
          RealFs real;
          TempDir temp;
          const TalkDirEnds talk_ends(temp.path());
          Must(scene.Setup(real, temp.path()));
          SweepRun run;
          {
            Fault fault = Fault::Errno(at, sys, sticky);
            fault.mutating_only = true;
            FaultFs faults(real, fault);
            Status done = scene.Operate(faults, temp.path());
            run.done = done.ok();
            if (!done.ok()) run.error = std::move(done).error();
            fired = faults.fired();
          }
          if (!fired) break;
          ++result.points;
          ++result.states;
          Status held = scene.Check(real, temp.path(), run, true);
          if (held.ok()) continue;
          ++result.failures;
          if (result.first_failures.size() < 5)
            result.first_failures.push_back("call " + std::to_string(at) + ": " +
                                            held.error().what);
        }
        std::cout << result.Text();
        EXPECT_TRUE(result.ok()) << result.Text();
      }
    }
  }
}

TEST(GitKillSweep, RecoveryMayBeKilledToo) {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  Template made;
  Scene scene("rollback", made);
  Status learned = scene.Learn();
  ASSERT_TRUE(learned.ok()) << learned.error().what;
  // Late enough that git's files are on the move.
  uint64_t calls = 0;
  {
    RealFs real;
    TempDir temp;
    ASSERT_TRUE(scene.Setup(real, temp.path()).ok());
    FaultFs counting(real);
    ASSERT_TRUE(scene.Operate(counting, temp.path()).ok());
    calls = counting.calls();
  }
  uint64_t points = 0;
  for (const uint64_t before_end :
       RunEverything() ? std::vector<uint64_t>{40, 80, 120, 160, 200, 260}
                       : std::vector<uint64_t>{60, 150}) {
    if (before_end >= calls) continue;
    SweepOptions options{.name = "kill in recovery of git, " +
                                 std::to_string(before_end) + " calls before the end"};
    options.fault = Fault::Kill(0);
    options.first = 5;
    options.stride = RunEverything() ? 1 : 61;
    SweepResult result = SweepKills(
        options,
        [&](Fs& fs, const AbsPath& dir) -> Status {
          BELAY_OK(scene.Setup(fs, dir));
          // An operation that ends in an error it cannot take back leaves its journal.
          FaultFs faults(fs, Fault::PowerCut(calls - before_end));
          (void)scene.Operate(faults, dir);
          return Ok();
        },
        [&](Fs& fs, const AbsPath& dir, Acks&) { return scene.Recover(fs, dir); },
        [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
          SweepRun mine = run;
          mine.done = false;
          return scene.Check(fs, dir, mine);
        });
    std::cout << result.Text();
    EXPECT_EQ(result.failures, 0u) << result.Text();
    points += result.points;
  }
  EXPECT_GE(points, 5u);
}

}  // namespace
}  // namespace belay::test
