// A checkpoint broken at every call it makes: power cuts, failing calls, kills. What
// was acknowledged is there and whole, what was not is absent or whole, the directory
// is as it was, and the next checkpoint is right whatever the stat cache was left like.
//
// A slice by default; BELAY_FULL=1 (tests/crash/checkpoint_full) visits every point.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "base/tree_text.h"
#include "core/capture.h"
#include "core/roots.h"
#include "scan/rules_record.h"
#include "store/verify.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

const Settings& PlainSettings() {
  static const Settings settings = [] {
    Settings s;
    s.store_floor = {};
    s.store_cap = {};
    return s;
  }();
  return settings;
}

// A machine: the project, the store, and what is needed to take a checkpoint.
struct OneMachine {
  OneMachine(Fs& disk, const AbsPath& top, uint64_t seed)
      : world(disk, seed), project(top.Join(P("project"))) {
    world.dir = top.Join(P("store"));
    world.options.uid = uid;
    // Everything was written long ago: the cache may be trusted.
    world.clock.SetWallMillis(4'000'000'000'000);
  }

  Result<Captured> Capture(const std::string& name, int64_t wait_ms = 200) {
    BELAY_TRY(auto store, world.Open());
    BELAY_TRY(auto catalog, Catalog::Open(*store));
    BELAY_TRY(Fd dir, world.fs.OpenDir(project));
    BELAY_TRY(FileStat stat, world.fs.Stat(dir));
    BELAY_TRY(Registered root, RegisterRoot(*store, *catalog, project, stat, {}));
    CaptureRequest request;
    request.root = root.root;
    request.settings = &PlainSettings();
    request.git.user.no_system = true;
    request.name = name;
    request.threads = 1;
    request.lock_wait_ms = wait_ms;
    return CaptureCheckpoint(*store, request);
  }

  World world;
  AbsPath project;
  static inline uint32_t uid = 1000;
};

Status EditSome(Fs& fs, const AbsPath& project) {
  BELAY_TRY(Fd root, fs.OpenDir(project));
  BELAY_OK(PutFile(fs, root, P("changed"), "new"));
  BELAY_OK(PutFile(fs, root, P("dir/added"), "added"));
  BELAY_OK(fs.Unlink(root, N("deleted")));
  BELAY_OK(PutFile(fs, root, P(".gitignore"), "*.o\n!keep.o\n"));
  return PutFile(fs, root, P("dir/big"), Noise(9, 40'000));
}

Status MakeMachine(Fs& fs, const AbsPath& top) {
  OneMachine machine(fs, top, 1);
  BELAY_TRY(Fd root, MakeDirs(fs, machine.project, 0755));
  BELAY_OK(fs.MakeDir(root, N("dir"), 0755));
  BELAY_OK(fs.MakeDir(root, N("empty"), 0755));
  BELAY_OK(PutFile(fs, root, P("changed"), "old"));
  BELAY_OK(PutFile(fs, root, P("deleted"), "gone soon"));
  BELAY_OK(PutFile(fs, root, P("same"), "same"));
  BELAY_OK(PutFile(fs, root, P("dir/keep.o"), "object"));
  BELAY_OK(PutFile(fs, root, P(".gitignore"), "*.o\n"));
  BELAY_OK(fs.Symlink(root, N("link"), "same"));
  BELAY_TRY([[maybe_unused]] Captured one, machine.Capture("one"));
  return EditSome(fs, machine.project);
}

Status Operate(Fs& fs, const AbsPath& top, Acks& acks) {
  OneMachine machine(fs, top, 2);
  BELAY_TRY([[maybe_unused]] Captured two, machine.Capture("two"));
  acks.Add("two");
  return Ok();
}

Error Wrong(std::string what) { return Error(Errc::kCorrupt, std::move(what)); }

Files FilesOf(const std::string& name) {
  Files files = {{"same", "same"}, {"link", "-> same"}};
  if (name == "one") {
    files["changed"] = "old";
    files["deleted"] = "gone soon";
    files[".gitignore"] = "*.o\n";
    return files;
  }
  files["changed"] = "new";
  files["dir/added"] = "added";
  files["dir/big"] = Noise(9, 40'000);
  files["dir/keep.o"] = "object";
  files[".gitignore"] = "*.o\n!keep.o\n";
  return files;
}

// What is missing must be named as left out: a call that failed on one file leaves that
// file out, and says so.
Status CheckCheckpoint(Store& store, const CatalogEntry& entry) {
  const std::string name = *entry.checkpoint.name;
  BELAY_TRY(Files files, ReadFiles(store, entry.checkpoint.state));
  BELAY_TRY(State state, store.GetState(entry.checkpoint.state));
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, state.rules}));
  BELAY_TRY(Node node, DecodeNode(bytes));
  BELAY_TRY(RulesRecord rules, DecodeRules(node, [&](const ObjectId& id) {
              return store.ReadContentBytes(id, 1 << 20);
            }));
  Files expected = FilesOf(name == "one" ? "one" : "two");
  for (const auto& [path, content] : files)
    if (!expected.contains(path) || expected[path] != content)
      return Wrong("checkpoint " + name + " holds another " + path);
  for (const auto& [path, content] : expected) {
    if (files.contains(path)) continue;
    const bool said = std::any_of(
        rules.skipped.begin(), rules.skipped.end(), [&](const SkippedPath& s) {
          return path == s.path || path.starts_with(s.path + "/");
        });
    if (!said || name != "two")
      return Wrong("checkpoint " + name + " lacks " + path + " and does not say so");
  }
  return Ok();
}

Status Check(Fs& fs, const AbsPath& top, const SweepRun& run) {
  OneMachine machine(fs, top, 3);
  BELAY_TRY(Captured three, machine.Capture("three"));
  BELAY_TRY(auto store, machine.world.Open());
  BELAY_TRY(auto catalog, Catalog::Open(*store));
  BELAY_TRY(auto entries, catalog->ListCheckpoints({}));
  bool one = false, two = false;
  for (const CatalogEntry& entry : entries) {
    one = one || entry.checkpoint.name == "one";
    two = two || entry.checkpoint.name == "two";
    BELAY_OK(CheckCheckpoint(*store, entry));
  }
  if (!one) return Wrong("the checkpoint before is gone");
  if (!two && !run.acks.empty()) return Wrong("an acknowledged checkpoint is gone");
  BELAY_TRY(VerifyReport report, VerifyStore(*store, {.read_data = true}));
  if (!report.clean()) return Wrong("the store does not verify: " + report.damage[0]);
  return Ok();
}

const AbsPath kHome = AbsPath::Literal("/home");

SweepResult SweepCheckpoint(const SweepOptions& options) {
  OneMachine::uid = 1000;
  return SweepFaults(
      options,
      [&](Fs& disk) -> Status {
        BELAY_TRY(Fd home, MakeDirs(disk, kHome, 0755));
        return MakeMachine(disk, kHome);
      },
      [&](Fs& fs, Acks& acks) { return Operate(fs, kHome, acks); },
      [&](Fs& disk, const SweepRun& run) { return Check(disk, kHome, run); });
}

TEST(CheckpointSweep, SurvivesAPowerCutAtEveryCall) {
  SweepOptions options{.name = "power cut checkpoint"};
  options.tears = RunEverything() ? 12 : 1;
  options.seed = TestSeed(1);
  options.stride = RunEverything() ? 1 : 5;
  options.fault.mutating_only = !RunEverything();
  Expect(SweepCheckpoint(options));
}

TEST(CheckpointSweep, AnswersEveryFailingCallCleanly) {
  uint64_t first = 0;
  for (int sys : {ENOSPC, EDQUOT, EIO, EACCES, EROFS, EMFILE}) {
    for (bool sticky : {false, true}) {
      const Fault fault = Fault::Errno(0, sys, sticky);
      SweepOptions options{.name = "checkpoint " + fault.Text()};
      options.fault = fault;
      options.stride = 24;
      options.first = 1 + 2 * first++;
      Expect(SweepCheckpoint(options));
    }
  }
  for (const Fault& fault : {Fault::Eintr(0), Fault::ShortWrite(0)}) {
    SweepOptions options{.name = "checkpoint " + fault.Text()};
    options.fault = fault;
    options.stride = 9;
    Expect(SweepCheckpoint(options));
  }
}

TEST(CheckpointKillSweep, LosesNothingAcknowledged) {
  OneMachine::uid = getuid();
  for (bool after : {false, true}) {
    SweepOptions options{.name = std::string("kill ") + (after ? "after" : "before") +
                                 " each call of a checkpoint"};
    options.fault = after ? Fault::KillAfter(0) : Fault::Kill(0);
    options.first = 3;
    options.stride = 13;
    options.max_points = 12;
    Expect(SweepKills(
        options, [&](Fs& fs, const AbsPath& dir) { return MakeMachine(fs, dir); },
        [&](Fs& fs, const AbsPath& dir, Acks& acks) { return Operate(fs, dir, acks); },
        [&](Fs& fs, const AbsPath& dir, const SweepRun& run) {
          return Check(fs, dir, run);
        }));
  }
}

}  // namespace
}  // namespace belay::test
