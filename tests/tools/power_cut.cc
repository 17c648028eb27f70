// One life of a store on a file system that goes down in the middle of it; the script
// tests/crash/power_cut.sh mounts, runs, unmounts, mounts again and checks.
//
//   power_cut count <mount> <scenario> <seed>             prints how many calls it
//   makes power_cut run   <mount> <scenario> <seed> <at> <how> <acks> power_cut check
//   <mount> <acks>
//
// `run` works through a scenario and shuts the file system down at mutating call number
// `at`: how 2 drops everything not yet in the journal, how 1 flushes the journal first.
// What was acknowledged is written to the file <acks>, which lies elsewhere. Exit of
// `run`: 0 the power went, 3 the scenario ended before.
//
// The scenarios rollback, undo, redo and recovery are those of support/restore_scene.h,
// project and store both on the file system; the power goes in the operation itself.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "base/real_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/verify.h"
#include "support/restore_scene.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

int Wrong(const std::string& what) {
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  return 1;
}

Files FilesFor(uint64_t seed, bool large) {
  Files files = {{"shared", SourceText(seed % 3, 3000)},
                 {"own", Noise(seed, 500 + seed % 4000)}};
  if (large)
    for (uint64_t i = 0; i < 10; ++i)
      files["part" + std::to_string(i)] = Noise(seed * 31 + i, 9000);
  return files;
}

class AckFile {
 public:
  explicit AckFile(const char* path)
      : fd_(path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600) : -1) {}
  void Line(const std::string& text) {
    if (fd_ < 0) return;
    std::string line = text + "\n";
    BELAY_CHECK(write(fd_, line.data(), line.size()) ==
                static_cast<ssize_t>(line.size()));
  }

 private:
  int fd_;
};

struct Life {
  Fs& fs;
  AbsPath dir;
  uint64_t seed;
  AckFile& acks;
  RealClock clock = {};
  SeededRandom random{seed};
  StoreOptions options{.uid = static_cast<uint32_t>(getuid()), .lock_wait_ms = 5000};
  std::unique_ptr<Store> store = {};
  uint64_t made = 0;

  Status Open() {
    store.reset();
    BELAY_TRY(store, Store::Open(fs, clock, random, dir, options, Store::Mode::kWrite));
    return Ok();
  }
  Status Make(bool large = false) {
    const std::string name = "c" + std::to_string(made++);
    const uint64_t content = seed * 1000 + made;
    BELAY_TRY(RecordId id, MakeCheckpoint(*store, name, FilesFor(content, large)));
    (void)id;
    acks.Line("a " + name + " " + std::to_string(content) + (large ? " 1" : " 0"));
    return Ok();
  }
  Status Drop(const std::string& name) {
    acks.Line("d " + name);
    BELAY_OK(DropCheckpoints(*store, {name}));
    acks.Line("D " + name);
    return Ok();
  }
};

Status Run(const std::string& scenario, Life& life) {
  if (scenario == "append") {
    BELAY_OK(life.Open());
    for (int i = 0; i < 6; ++i) BELAY_OK(life.Make());
    return Ok();
  }
  if (scenario == "roll") {  // every second checkpoint starts a pack
    life.options.pack_target = 8000;
    BELAY_OK(life.Open());
    for (int i = 0; i < 8; ++i) BELAY_OK(life.Make());
    return Ok();
  }
  if (scenario == "large") {  // several batches each, the last one counts
    life.options.batch_target = 20'000;
    life.options.pack_target = 250'000;
    BELAY_OK(life.Open());
    for (int i = 0; i < 4; ++i) BELAY_OK(life.Make(true));
    return Ok();
  }
  if (scenario == "gc") {
    life.options.pack_target = 12'000;
    BELAY_OK(life.Open());
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 4; ++i) BELAY_OK(life.Make());
      BELAY_OK(life.Drop("c" + std::to_string(life.made - 2)));
      BELAY_OK(life.Drop("c" + std::to_string(life.made - 4)));
      BELAY_TRY(GcReport report, CollectGarbage(*life.store, {.min_garbage = 0.01}));
      (void)report;
    }
    return Ok();
  }
  return Error(Errc::kInvalid, "no such scenario: " + scenario);
}

Fault CutAt(uint64_t at, std::function<void()> cut) {
  Fault fault = Fault::PowerCut(at, std::move(cut));
  fault.mutating_only = true;
  return fault;
}

// --- rollbacks -----------------------------------------------------------------------

bool IsScene(const std::string& scenario) {
  return scenario == "rollback" || scenario == "undo" || scenario == "redo" ||
         scenario == "recovery";
}

// Both sides are learnt in memory.
Result<RestoreScene> LearnScene(const std::string& scenario, uint64_t seed) {
  RestoreScene scene({.op = scenario,
                      .seed = 1 + (seed + scenario.size()) % 997,
                      .uid = static_cast<uint32_t>(getuid())});
  MemFs::Options options;
  options.uid = getuid();
  options.gid = getgid();
  MemFs memory(options);
  const AbsPath top = AbsPath::Literal("/learn");
  BELAY_TRY([[maybe_unused]] Fd dir, MakeDirs(memory, top, 0755));
  BELAY_OK(scene.Learn(memory, top));
  return scene;
}

class SceneAcks final : public Acks {
 public:
  explicit SceneAcks(AckFile& file) : file_(file) {}
  void Add(std::string_view promise) override { file_.Line(std::string(promise)); }

 private:
  AckFile& file_;
};

// In `below` of the mounted file system; `fault` is told when the operation begins.
Status RunScene(const RestoreScene& scene, const std::string& mount,
                const std::string& below, Fault fault, AckFile& acks, uint64_t& calls,
                bool& fired) {
  RealFs real;
  const AbsPath top = AbsPath::Literal(mount + below);
  BELAY_OK(scene.Setup(real, top));
  {
    BELAY_TRY(Fd dir, real.OpenDir(top));
    BELAY_OK(real.SyncAll(dir));
  }
  FaultFs fs(real, std::move(fault));
  SceneAcks scene_acks(acks);
  Status done = scene.Operate(fs, top, scene_acks);
  calls = fs.calls();
  fired = fs.fired();
  return done;
}

int CheckScene(const std::string& mount, const std::string& scenario, uint64_t seed,
               std::vector<std::string> acks) {
  auto scene = LearnScene(scenario, seed);
  if (!scene.ok()) return Wrong(scene.error().what);
  RealFs real;
  SweepRun run;
  run.fired = true;
  run.acks = std::move(acks);
  Status fine = scene->Check(real, AbsPath::Literal(mount + "/store"), run);
  return fine.ok() ? 0 : Wrong(fine.error().what);
}

// --- counting, running, checking -----------------------------------------------------

int Count(char** args) {
  if (IsScene(args[1])) {
    auto scene = LearnScene(args[1], std::strtoull(args[2], nullptr, 10));
    if (!scene.ok()) return Wrong(scene.error().what);
    AckFile none(nullptr);
    uint64_t calls = 0;
    bool fired = false;
    Status done =
        RunScene(*scene, args[0], "/count", CutAt(UINT64_MAX, {}), none, calls, fired);
    if (!done.ok()) return Wrong(done.error().what);
    std::printf("%llu\n", static_cast<unsigned long long>(calls));
    return 0;
  }
  RealFs real;
  FaultFs fs(real, CutAt(UINT64_MAX, {}));
  AckFile acks(nullptr);
  Life life{fs, AbsPath::Literal(std::string(args[0]) + "/count/store"),
            std::strtoull(args[2], nullptr, 10), acks};
  Status done = Run(args[1], life);
  life.store.reset();
  if (!done.ok()) return Wrong(done.error().what);
  std::printf("%llu\n", static_cast<unsigned long long>(fs.calls()));
  return 0;
}

int RunAndCut(char** args) {
  const std::string mount = args[0];
  const uint32_t how = static_cast<uint32_t>(std::strtoul(args[4], nullptr, 10));
  int root = open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return Wrong("cannot open " + mount);
  bool is_down = false;
  auto cut = [&] {
    // XFS_IOC_GOINGDOWN, which ext4 has too.
    uint32_t flags = how;
    is_down = ioctl(root, _IOR('X', 125, uint32_t), &flags) == 0;
    if (!is_down) std::perror("going down");
  };
  const Fault fault = CutAt(std::strtoull(args[3], nullptr, 10), cut);
  AckFile acks(args[5]);
  if (IsScene(args[1])) {
    acks.Line("scene " + std::string(args[1]) + " " + args[2]);
    auto scene = LearnScene(args[1], std::strtoull(args[2], nullptr, 10));
    if (!scene.ok()) return Wrong(scene.error().what);
    uint64_t calls = 0;
    bool fired = false;
    Status done = RunScene(*scene, mount, "/store", fault, acks, calls, fired);
    if (fired) return is_down ? 0 : Wrong("the file system did not go down");
    return done.ok() ? 3 : Wrong(done.error().what);
  }
  RealFs real;
  FaultFs fs(real, fault);
  Life life{fs, AbsPath::Literal(mount + "/store"), std::strtoull(args[2], nullptr, 10),
            acks};
  Status done = Run(args[1], life);
  life.store.reset();
  if (fs.fired()) return is_down ? 0 : Wrong("the file system did not go down");
  return done.ok() ? 3 : Wrong(done.error().what);
}

int Check(char** args) {
  RealFs fs;
  AckFile none(nullptr);
  Life life{fs, AbsPath::Literal(std::string(args[0]) + "/store"), 4242, none};
  struct Claim {
    uint64_t content = 0;
    bool large = false, dropping = false, dropped = false;
  };
  std::map<std::string, Claim> claims;
  std::ifstream in(args[1]);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string what;
    std::string name;
    words >> what >> name;
    if (what == "scene") {
      uint64_t seed = 0;
      words >> seed;
      std::vector<std::string> acks;
      while (std::getline(in, line)) acks.push_back(line);
      return CheckScene(args[0], name, seed, std::move(acks));
    }
    Claim& c = claims[name];
    if (what == "a") words >> c.content >> c.large;
    if (what == "d") c.dropping = true;
    if (what == "D") c.dropped = true;
  }
  int wrong = 0;
  auto check = [&](const char* when) -> Status {
    auto all = ReadAll(*life.store);
    if (!all.ok()) return std::move(all).error();
    for (const auto& [name, claim] : claims) {
      auto at = all->find(name);
      if (at == all->end()) {
        if (!claim.dropping && !claim.dropped)
          wrong += Wrong(std::string(when) + ": " + name + " is LOST");
      } else if (claim.dropped) {
        wrong += Wrong(std::string(when) + ": " + name + " was dropped and is there");
      } else if (at->second != FilesFor(claim.content, claim.large)) {
        wrong += Wrong(std::string(when) + ": " + name + " reads OTHER BYTES");
      }
    }
    auto report = VerifyStore(*life.store, {.read_data = true});
    if (!report.ok()) return std::move(report).error();
    for (const std::string& d : report->damage)
      wrong += Wrong(std::string(when) + ": verify: " + d);
    return Ok();
  };
  auto whole = [&]() -> Status {
    BELAY_OK(life.Open());
    BELAY_OK(check("after the cut"));
    life.made = 900;
    BELAY_OK(life.Make());
    BELAY_OK(life.Make(true));
    claims["c900"] = {4242 * 1000 + 901, false, false, false};
    claims["c901"] = {4242 * 1000 + 902, true, false, false};
    BELAY_OK(life.Open());
    BELAY_OK(check("after writing on"));
    BELAY_TRY(GcReport report, CollectGarbage(*life.store, {.everything = true}));
    (void)report;
    BELAY_OK(life.Open());
    return check("after collecting");
  };
  if (Status done = whole(); !done.ok()) wrong += Wrong(done.error().what);
  return wrong == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "count" && argc == 5) return Count(argv + 2);
  if (what == "run" && argc == 8) return RunAndCut(argv + 2);
  if (what == "check" && argc == 4) return Check(argv + 2);
  std::fprintf(stderr, "power_cut: see the head of power_cut.cc\n");
  return 2;
}

}  // namespace
}  // namespace belay::test

int main(int argc, char** argv) { return belay::test::Main(argc, argv); }
