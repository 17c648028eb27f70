// Rollback, undo, redo and recovery broken at every call they make: power cuts, failing
// calls, kills. The tree is the old or the new one, what was in it is in a safety
// checkpoint, and what was recorded can be taken back (RestoreScene::Check).
//
// A slice by default; BELAY_FULL=1 (tests/crash/restore_full) visits every point.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <map>

#include "restore/both.h"
#include "support/recorded_chat.h"
#include "support/restore_scene.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

const AbsPath kTop = AbsPath::Literal("/home/me");

SweepResult Broken(const std::string& name, const Error& error) {
  SweepResult result;
  result.name = name;
  result.failures = 1;
  result.first_failures.push_back(error.what);
  return result;
}

Status LearnInMemory(RestoreScene& scene) {
  MemFs disk;
  BELAY_TRY([[maybe_unused]] Fd top, MakeDirs(disk, kTop, 0755));
  return scene.Learn(disk, kTop);
}

SweepResult Sweep(const SweepOptions& options, RestoreScene& scene) {
  if (Status learnt = LearnInMemory(scene); !learnt.ok())
    return Broken(options.name, learnt.error());
  const bool failed = options.fault.kind != Fault::Kind::kPowerCut;
  return SweepFaults(
      options, [&](Fs& disk) { return scene.Setup(disk, kTop); },
      [&](Fs& fs, Acks& acks) { return scene.Operate(fs, kTop, acks); },
      [&](Fs& disk, const SweepRun& run) {
        return scene.Check(disk, kTop, run, failed);
      });
}

// `count` points spread over `from` to `to`, moved a little by the seed.
std::vector<uint64_t> Spread(uint64_t from, uint64_t to, uint64_t count,
                             uint64_t seed) {
  std::vector<uint64_t> points;
  if (to < from) return points;
  const uint64_t width = to - from + 1;
  SeededRandom random(seed);
  for (uint64_t i = 0; i < std::min(count, width); ++i) {
    const uint64_t begin = i * width / std::min(count, width);
    const uint64_t end = (i + 1) * width / std::min(count, width);
    points.push_back(from + begin + random.Below(std::max<uint64_t>(1, end - begin)));
  }
  return points;
}

const CrashPolicy kPolicies[] = {CrashPolicy::KeepAll(), CrashPolicy::DropUnsynced(),
                                 CrashPolicy::Tear(7)};

// Kills the mutants journal-not-durable and skip-tree-flush.
TEST(RestoreSweep, EveryPowerCutLeavesTheOldTreeOrTheNewTree) {
  const uint64_t seed = TestSeed(1);
  const uint64_t trees = RunEverything() ? 9 : 2;
  for (uint64_t tree = 0; tree < trees; ++tree) {
    for (const std::string op : {"rollback", "undo", "redo"}) {
      if (!RunEverything() && tree > 0 && op != "rollback") continue;
      RestoreScene scene({.op = op, .seed = seed + tree, .as_user = tree % 2 == 1});
      SweepOptions options{.name = "power cut " + op + ", tree " +
                                   std::to_string(seed + tree)};
      options.tears = RunEverything() ? 4 : 1;
      options.seed = seed;
      options.fault.mutating_only = !RunEverything() || tree > 1;
      options.stride = op == "rollback" ? tree == 0 ? 1 : 3 : 9;
      Expect(Sweep(options, scene));
    }
  }
}

// A rollback that was cut, and its recovery cut again.
TEST(RestoreSweep, RecoveryMayBeCutAnywhere) {
  const uint64_t seed = TestSeed(1);
  const uint64_t trees = RunEverything() ? 4 : 1;
  for (uint64_t tree = 0; tree < trees; ++tree) {
    RestoreScene scene(
        {.op = "recovery", .seed = seed + tree, .as_user = tree % 2 == 1});
    if (Status learnt = LearnInMemory(scene); !learnt.ok())
      FAIL() << learnt.error().what;
    const uint64_t first = scene.calls_before(), last = scene.calls();
    for (uint64_t at : Spread(first, last, RunEverything() ? 30 : 4, seed + tree)) {
      scene.options().interrupt = at;
      scene.options().crash = kPolicies[at % 3];
      SweepOptions options{.name = "power cut recovery, tree " +
                                   std::to_string(seed + tree) + " cut at " +
                                   std::to_string(at) + ", " +
                                   scene.options().crash.Text()};
      options.tears = RunEverything() ? 3 : 1;
      options.seed = seed + at;
      options.fault.mutating_only = !RunEverything() || at % 4 != 0;
      options.stride = 5;
      options.first = 1 + at % 5;
      Expect(Sweep(options, scene));
    }
  }
}

std::vector<Fault> FailingCalls() {
  std::vector<Fault> faults;
  for (int sys : {ENOSPC, EDQUOT, EIO, EACCES, EROFS, EMFILE})
    for (bool sticky : {false, true}) faults.push_back(Fault::Errno(0, sys, sticky));
  faults.push_back(Fault::Eintr(0));
  faults.push_back(Fault::ShortWrite(0));
  faults.back().only = {FsCall::kWrite};  // on another call it does not fire
  // A disk that is full, or read-only, from some moment on: it can still be read.
  for (int sys : {ENOSPC, EROFS}) {
    faults.push_back(Fault::Errno(0, sys, true));
    faults.back().mutating_only = true;
  }
  return faults;
}

TEST(RestoreSweep, EveryFailingCallLeavesTheOldTreeOrIsFinishedLater) {
  uint64_t row = TestSeed(1);
  const uint64_t trees = RunEverything() ? 2 : 1;
  for (uint64_t tree = 1; tree <= trees; ++tree) {
    for (const std::string op : {"rollback", "undo", "redo", "recovery"}) {
      for (const Fault& fault : FailingCalls()) {
        ++row;
        if (!RunEverything() && op != "rollback" && row % 4 != 0) continue;
        RestoreScene scene({.op = op, .seed = tree, .as_user = tree == 2});
        SweepOptions options{.name = op + " " + fault.Text() +
                                     (fault.mutating_only ? ", writing" : "")};
        options.fault = fault;
        options.stride = !fault.only.empty() ? 3 : fault.mutating_only ? 11 : 61;
        options.first = 1 + row % options.stride;
        Expect(Sweep(options, scene));
      }
    }
  }
}

// The operation failed, and then the power went. Kills the mutant journals-not-flushed.
TEST(RestoreSweep, AnErrorIsTrueAfterAPowerCutToo) {
  for (int sys : {ENOSPC, EIO}) {
    RestoreScene scene({.op = "rollback", .seed = TestSeed(1)});
    SweepOptions options{.name = "rollback " + Fault::Errno(0, sys).Text() +
                                 ", then a power cut"};
    options.fault = Fault::Errno(0, sys);
    options.crash_after_error = true;
    options.tears = 1;
    options.stride = 37;
    Expect(Sweep(options, scene));
    // Every flush: what was not flushed is not relied on.
    options.name += ", each flush";
    options.fault.only = {FsCall::kSync};
    options.stride = 1;
    Expect(Sweep(options, scene));
  }
}

// --- many files: two threads at once (restore/both.h) --------------------------------

constexpr int kMany = 150;

std::string ManyName(int i) {
  return "d" + std::to_string(i / 25) + "/f" + std::to_string(i);
}

Status MakeMany(Fs& fs, const Fd& root) {
  for (int i = 0; i < kMany; ++i) {
    if (i % 25 == 0) BELAY_OK(fs.MakeDir(root, N("d" + std::to_string(i / 25)), 0755));
    BELAY_OK(PutFile(fs, root, P(ManyName(i)), "start " + std::to_string(i)));
  }
  return Ok();
}

// Most are written in place, some move: gone, new, another mode.
Status EditMany(Fs& fs, const Fd& root) {
  for (int i = 0; i < kMany; ++i) {
    BELAY_TRY(Parent at, OpenParent(fs, root, P(ManyName(i))));
    if (i % 30 == 7) {
      BELAY_OK(fs.Unlink(at.dir, at.name));
      continue;
    }
    BELAY_OK(PutFile(fs, root, P(ManyName(i)), "edited, longer " + std::to_string(i)));
    if (i % 30 != 8) continue;
    BELAY_TRY(Fd file, fs.Open(at.dir, at.name, {.access = OpenMode::Access::kPath}));
    BELAY_OK(fs.SetMode(file, 0600));
  }
  BELAY_OK(fs.MakeDir(root, N("new"), 0755));
  for (int i = 0; i < 4; ++i)
    BELAY_OK(PutFile(fs, root, P("new/" + std::to_string(i)), "new"));
  return Ok();
}

RestoreScene ManyScene(const std::string& op) {
  RestoreScene scene({.op = op, .seed = 1, .make = MakeMany});
  scene.options().edit = EditMany;
  return scene;
}

// The threads share the calls differently each time, so a point is a moment and no
// certain call; those near the end need not fire.
std::vector<uint64_t> PointsOf(const RestoreScene& scene, uint64_t count,
                               uint64_t seed) {
  const uint64_t moving = scene.calls() - scene.calls_before();
  return Spread(scene.calls_before() - moving / 4, scene.calls() - 3, count, seed);
}

// Somewhere in the first half of what moves: there is much to recover.
void InterruptAmongMany(RestoreScene& scene, uint64_t seed) {
  const uint64_t moving = scene.calls() - scene.calls_before();
  scene.options().interrupt = scene.calls_before() + 2 + seed * 31 % (moving / 2);
  scene.options().crash = kPolicies[seed % 3];
}

uint64_t SweepMany(SweepOptions options, const std::string& op, uint64_t count,
                   uint64_t seed) {
  RestoreScene scene = ManyScene(op);
  if (Status learnt = LearnInMemory(scene); !learnt.ok()) {
    Expect(Broken(options.name, learnt.error()));
    return 0;
  }
  options.only_at = PointsOf(scene, count, seed);
  if (op == "recovery") {
    InterruptAmongMany(scene, seed);
    options.only_at = Spread(1, scene.calls() - scene.calls_before(), count, seed);
  }
  options.name += " " + op + " of many files";
  const bool failed = options.fault.kind != Fault::Kind::kPowerCut;
  SweepResult result = SweepFaults(
      options, [&](Fs& disk) { return scene.Setup(disk, kTop); },
      [&](Fs& fs, Acks& acks) { return scene.Operate(fs, kTop, acks); },
      [&](Fs& disk, const SweepRun& run) {
        return scene.Check(disk, kTop, run, failed);
      });
  Expect(result);
  return result.points;
}

TEST(RestoreSweep, PowerCutLeavesTheOldOrTheNewTreeOfManyFiles) {
  if (!IsForBothThreads(kMany)) GTEST_SKIP() << "there is one processor only";
  const uint64_t seed = TestSeed(1);
  for (const std::string op : {"rollback", "undo", "redo", "recovery"}) {
    SweepOptions options{.name = "power cut"};
    options.tears = RunEverything() ? 3 : 1;
    options.seed = seed;
    const uint64_t count = RunEverything() ? 400 : op == "rollback" ? 36 : 12;
    SweepMany(options, op, count, seed + op.size());
  }
}

TEST(RestoreSweep, FailingCallAmongManyFilesLeavesTheOldTreeOrIsFinishedLater) {
  uint64_t row = TestSeed(1);
  for (const std::string op : {"rollback", "undo", "redo", "recovery"}) {
    for (const Fault& fault : FailingCalls()) {
      if (!fault.only.empty() || fault.mutating_only) continue;  // points are of all
      ++row;
      if (!RunEverything() && op != "rollback" && row % 4 != 0) continue;
      SweepOptions options{.name = fault.Text() + ","};
      options.fault = fault;
      options.seed = row;
      SweepMany(options, op, RunEverything() ? 60 : 3, row);
    }
  }
}

// --- a conversation goes back with the files -----------------------------------------

Status MakeFew(Fs& fs, const Fd& root) {
  BELAY_OK(PutFile(fs, root, P("a"), "a as it was"));
  BELAY_OK(PutFile(fs, root, P("gone"), "g"));
  BELAY_OK(fs.MakeDir(root, N("d"), 0755));
  return PutFile(fs, root, P("d/x"), "x as it was");
}

Status EditFew(Fs& fs, const Fd& root) {
  BELAY_OK(PutFile(fs, root, P("a"), "edited"));
  BELAY_OK(fs.Unlink(root, N("gone")));
  return PutFile(fs, root, P("d/new"), "new");
}

RestoreScene ChatScene(AgentKind agent, const std::string& op) {
  auto chat = std::make_shared<const RecordedChat>(agent);
  RestoreScene scene({.op = op, .seed = 1, .make = MakeFew, .edit = EditFew});
  scene.options().said = [chat](RestoreWorld& world) { return chat->Tell(world); };
  scene.options().chat = [chat](RestoreWorld& world) { return chat->Plan(world); };
  return scene;
}

// One that keeps a file, and one that keeps a directory.
const AgentKind kTalking[] = {AgentKind::kClaude, AgentKind::kCopilot};

TEST(RestoreSweep, EveryPowerCutLeavesFilesAndConversationBothOldOrBothNew) {
  for (const AgentKind agent : kTalking) {
    for (const std::string op : {"rollback", "rewind", "undo", "redo"}) {
      RestoreScene scene = ChatScene(agent, op);
      SweepOptions options{.name = "power cut " + op + " of " +
                                   std::string(AgentName(agent))};
      options.tears = RunEverything() ? 4 : 1;
      options.seed = TestSeed(1);
      options.fault.mutating_only = !RunEverything();
      options.stride = op == "rollback" || op == "rewind" ? 1 : 5;
      Expect(Sweep(options, scene));
    }
  }
}

TEST(RestoreSweep, RecoveryOfFilesAndConversationMayBeCutAnywhere) {
  const uint64_t seed = TestSeed(1);
  for (const AgentKind agent : kTalking) {
    RestoreScene scene = ChatScene(agent, "recovery");
    if (Status learnt = LearnInMemory(scene); !learnt.ok())
      FAIL() << learnt.error().what;
    const uint64_t first = scene.calls_before(), last = scene.calls();
    // What is published is made ready before the first path is touched.
    for (uint64_t at : Spread(first - 60, last, RunEverything() ? 40 : 5, seed)) {
      scene.options().interrupt = at;
      scene.options().crash = kPolicies[at % 3];
      SweepOptions options{.name = "power cut recovery of " +
                                   std::string(AgentName(agent)) + " cut at " +
                                   std::to_string(at) + ", " +
                                   scene.options().crash.Text()};
      options.tears = RunEverything() ? 3 : 1;
      options.seed = seed + at;
      options.fault.mutating_only = !RunEverything() || at % 4 != 0;
      options.stride = 3;
      options.first = 1 + at % 3;
      Expect(Sweep(options, scene));
    }
  }
}

TEST(RestoreSweep, EveryFailingCallLeavesFilesAndConversationBothOldOrIsFinishedLater) {
  uint64_t row = TestSeed(1);
  for (const AgentKind agent : kTalking) {
    for (const std::string op : {"rollback", "rewind", "recovery"}) {
      for (const Fault& fault : FailingCalls()) {
        ++row;
        if (!RunEverything() && op != "rollback" && row % 3 != 0) continue;
        RestoreScene scene = ChatScene(agent, op);
        SweepOptions options{.name = op + " of " + std::string(AgentName(agent)) +
                                     ", " + fault.Text() +
                                     (fault.mutating_only ? ", writing" : "")};
        options.fault = fault;
        options.stride = !fault.only.empty() ? 2 : fault.mutating_only ? 5 : 31;
        if (!RunEverything()) options.stride *= 2;
        options.first = 1 + row % options.stride;
        Expect(Sweep(options, scene));
      }
    }
  }
}

// --- kills ---------------------------------------------------------------------------

struct KillCounts {
  uint64_t points = 0, failures = 0;
};

void Kill(uint64_t tree, const std::string& op, uint64_t count, KillCounts& counts) {
  RestoreScene scene({.op = op, .seed = tree, .uid = getuid()});
  RealFs real;
  {
    TempDir temp;
    if (Status learnt = scene.Learn(real, temp.path()); !learnt.ok()) {
      ADD_FAILURE() << op << ", tree " << tree << ": " << learnt.error().what;
      return;
    }
  }
  const bool after = (tree + op.size()) % 2 == 0;
  SweepOptions options{.name = std::string("kill ") + (after ? "after" : "before") +
                               " calls of " + op + ", tree " + std::to_string(tree)};
  options.fault = after ? Fault::KillAfter(0) : Fault::Kill(0);
  auto sweep = [&] {
    SweepResult result = SweepKills(
        options, [&](Fs& fs, const AbsPath& dir) { return scene.Setup(fs, dir); },
        [&](Fs& fs, const AbsPath& dir, Acks& acks) {
          return scene.Operate(fs, dir, acks);
        },
        [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
          return scene.Check(fs, dir, run);
        });
    counts.points += result.points;
    counts.failures += result.failures;
    if (result.failures != 0) Expect(result);
  };
  const uint64_t first = scene.calls_before(), last = scene.calls();
  if (op != "recovery") {
    // Most of them where the tree moves.
    options.only_at = Spread(1, first - 1, count / 8, tree);
    for (uint64_t at : Spread(first, last, count - count / 8, tree))
      options.only_at.push_back(at);
    sweep();
    return;
  }
  // Interrupted in several places, and recovered not quite several times.
  const uint64_t places = std::max<uint64_t>(1, count / 12);
  for (uint64_t at : Spread(first + 1, last - 2, places, tree)) {
    scene.options().interrupt = at;
    // What a recovery takes at most is what is left of a rollback, and looking.
    options.only_at = Spread(1, last - first, count / places, tree * 1000 + at);
    sweep();
  }
}

TEST(RestoreKillSweep, EveryKillLeavesTheOldTreeOrTheNewTree) {
  // What a kill leaves does not depend on the disk, and memory is twenty times quicker.
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  const uint64_t trees = RunEverything() ? 50 : 3;
  KillCounts operations, recoveries;
  for (uint64_t tree = 1; tree <= trees; ++tree) {
    for (const std::string op : {"rollback", "undo", "redo"})
      Kill(tree, op, RunEverything() ? 72 : 16, operations);
    Kill(tree, "recovery", RunEverything() ? 120 : 26, recoveries);
    if (RunEverything())
      std::cout << tree << " trees: " << operations.points << " and "
                << recoveries.points << " points" << std::endl;
  }
  std::cout << "restore kills: " << trees << " trees, " << operations.points
            << " points in rollback, undo and redo, " << recoveries.points
            << " points in recovery, " << operations.failures + recoveries.failures
            << " failures\n";
  EXPECT_EQ(operations.failures + recoveries.failures, 0u);
  EXPECT_GE(operations.points + recoveries.points, 180u);
  if (RunEverything()) {
    EXPECT_GE(operations.points, 10'000u);
    EXPECT_GE(recoveries.points, 5'000u);
  }
}

TEST(RestoreKillSweep, KillAmongManyFilesLeavesTheOldTreeOrTheNewTree) {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  uint64_t points = 0;
  for (const std::string op : {"rollback", "undo", "redo", "recovery"}) {
    RestoreScene scene = ManyScene(op);
    scene.options().uid = getuid();
    RealFs real;
    {
      TempDir temp;
      Must(scene.Learn(real, temp.path()));
    }
    SweepOptions options{.name = "kill " + op + " of many files"};
    options.fault = op.size() % 2 == 0 ? Fault::KillAfter(0) : Fault::Kill(0);
    options.only_at = PointsOf(scene, RunEverything() ? 150 : 8, op.size());
    if (op == "recovery") {
      InterruptAmongMany(scene, op.size());
      options.only_at = Spread(1, scene.calls() - scene.calls_before(),
                               RunEverything() ? 150 : 8, op.size());
    }
    SweepResult result = SweepKills(
        options, [&](Fs& fs, const AbsPath& dir) { return scene.Setup(fs, dir); },
        [&](Fs& fs, const AbsPath& dir, Acks& acks) {
          return scene.Operate(fs, dir, acks);
        },
        [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
          return scene.Check(fs, dir, run);
        });
    Expect(result);
    points += result.points;
  }
  EXPECT_GE(points, RunEverything() ? 400u : 25u);
}

TEST(RestoreKillSweep, EveryKillLeavesFilesAndConversationBothOldOrBothNew) {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  uint64_t points = 0;
  for (const AgentKind agent : kTalking) {
    for (const std::string op : {"rollback", "rewind"}) {
      RestoreScene scene = ChatScene(agent, op);
      scene.options().uid = getuid();
      RealFs real;
      {
        TempDir temp;
        Must(scene.Learn(real, temp.path()));
      }
      SweepOptions options{.name =
                               "kill " + op + " of " + std::string(AgentName(agent))};
      options.fault =
          agent == AgentKind::kClaude ? Fault::Kill(0) : Fault::KillAfter(0);
      options.stride = 19;
      SweepResult result = SweepKills(
          options, [&](Fs& fs, const AbsPath& dir) { return scene.Setup(fs, dir); },
          [&](Fs& fs, const AbsPath& dir, Acks& acks) {
            return scene.Operate(fs, dir, acks);
          },
          [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
            return scene.Check(fs, dir, run);
          });
      Expect(result);
      points += result.points;
    }
  }
  EXPECT_GE(points, RunEverything() ? 2000u : 80u);
}

// --- every short history over four paths ---------------------------------------------

struct Edit {
  enum class What {
    kCreate,
    kWrite,
    kDelete,
    kMkdir,
    kRmdir,
    kRename,
    kChmod,
    kSymlink
  };
  What what;
  std::string path, to = {};
};

const std::string kFour[] = {"a", "b", "d", "d/x"};

std::vector<Edit> AllEdits() {
  std::vector<Edit> edits;
  for (const std::string& path : kFour) {
    for (Edit::What what : {Edit::What::kCreate, Edit::What::kWrite,
                            Edit::What::kDelete, Edit::What::kMkdir, Edit::What::kRmdir,
                            Edit::What::kChmod, Edit::What::kSymlink})
      edits.push_back({what, path});
    for (const std::string& to : kFour)
      if (to != path) edits.push_back({Edit::What::kRename, path, to});
  }
  return edits;
}

Status MakeFour(Fs& fs, const Fd& root) {
  BELAY_OK(PutFile(fs, root, P("a"), "a as it was"));
  BELAY_OK(fs.MakeDir(root, N("d"), 0755));
  return PutFile(fs, root, P("d/x"), "x as it was");
}

Status Apply(Fs& fs, const Fd& root, const Edit& edit) {
  BELAY_TRY(Parent at, OpenParent(fs, root, P(edit.path)));
  switch (edit.what) {
    case Edit::What::kCreate: {
      BELAY_TRY(Fd file, fs.Open(at.dir, at.name, OpenMode::CreateNew(0644)));
      BELAY_OK(WriteFull(fs, file, 0, AsBytes("made")));
      return file.Close();
    }
    case Edit::What::kWrite: {
      OpenMode mode = OpenMode::ReadWrite();
      mode.truncate = true;
      BELAY_TRY(Fd file, fs.Open(at.dir, at.name, mode));
      BELAY_OK(WriteFull(fs, file, 0, AsBytes("written over")));
      return file.Close();
    }
    case Edit::What::kDelete:
      return fs.Unlink(at.dir, at.name);
    case Edit::What::kMkdir:
      return fs.MakeDir(at.dir, at.name, 0755);
    case Edit::What::kRmdir:
      return fs.RemoveDir(at.dir, at.name);
    case Edit::What::kRename: {
      BELAY_TRY(Parent to, OpenParent(fs, root, P(edit.to)));
      return fs.Rename(at.dir, at.name, to.dir, to.name, RenameHow::kReplace);
    }
    case Edit::What::kChmod: {
      BELAY_TRY(Fd file, fs.Open(at.dir, at.name, {.access = OpenMode::Access::kPath}));
      BELAY_TRY(FileStat stat, fs.Stat(file));
      return fs.SetMode(file, stat.mode ^ 0111);
    }
    case Edit::What::kSymlink:
      return fs.Symlink(at.dir, at.name, "a");
  }
  return Ok();
}

TEST(RestoreSweep, EveryShortHistoryOverFourPathsIsRolledBackAcrossPowerCuts) {
  const std::vector<Edit> all = AllEdits();
  // Every sequence of at most three that the file system lets happen, by the tree it
  // leads to: a rollback knows nothing but that.
  std::map<std::string, std::vector<Edit>> trees;
  uint64_t sequences = 0;
  std::vector<std::vector<Edit>> waiting{{}};
  const AbsPath place = AbsPath::Literal("/t");
  while (!waiting.empty()) {
    const std::vector<Edit> so_far = std::move(waiting.back());
    waiting.pop_back();
    for (const Edit& next : all) {
      MemFs disk;
      Fd root = Must(MakeDirs(disk, place, 0755));
      Must(MakeFour(disk, root));
      for (const Edit& edit : so_far) Must(Apply(disk, root, edit));
      if (!Apply(disk, root, next).ok()) continue;
      ++sequences;
      std::vector<Edit> longer = so_far;
      longer.push_back(next);
      trees.try_emplace(Must(WholeTreeText(disk, place)), longer);
      if (longer.size() < 3) waiting.push_back(std::move(longer));
    }
  }
  MemFs plain;
  Fd plain_root = Must(MakeDirs(plain, place, 0755));
  Must(MakeFour(plain, plain_root));
  trees.erase(Must(WholeTreeText(plain, place)));

  SweepResult total;
  total.name = "short histories";
  uint64_t number = 0, visited = 0;
  for (const auto& [text, edits] : trees) {
    if (++number % 41 != 19 && !RunEverything()) continue;
    ++visited;
    RestoreScene scene({.op = "rollback", .seed = number, .make = MakeFour});
    scene.options().edit = [&edits = edits](Fs& fs, const Fd& root) -> Status {
      for (const Edit& edit : edits) BELAY_OK(Apply(fs, root, edit));
      return Ok();
    };
    SweepOptions options{.name = "history"};
    options.tears = RunEverything() ? 2 : 1;
    options.seed = number;
    Status learnt = LearnInMemory(scene);
    if (!learnt.ok()) {
      ADD_FAILURE() << text << learnt.error().what;
      continue;
    }
    const std::vector<FsCall>& log = scene.log();
    for (size_t i = 0; i < log.size(); ++i)
      if (log[i] == FsCall::kSync || log[i] == FsCall::kSyncData ||
          log[i] == FsCall::kSyncAll)
        options.only_at.push_back(i + 2);  // the call after it
    SweepResult result = SweepFaults(
        options, [&](Fs& disk) { return scene.Setup(disk, kTop); },
        [&](Fs& fs, Acks& acks) { return scene.Operate(fs, kTop, acks); },
        [&](Fs& disk, const SweepRun& run) { return scene.Check(disk, kTop, run); });
    total.points += result.points;
    total.states += result.states;
    total.failures += result.failures;
    EXPECT_EQ(result.failures, 0u) << text << result.Text();
  }
  std::cout << sequences << " sequences lead to " << trees.size() << " trees, "
            << visited << " of them rolled back\n";
  Expect(total);
  EXPECT_GT(sequences, 1000u);
}

}  // namespace
}  // namespace belay::test
