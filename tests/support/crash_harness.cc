#include "support/crash_harness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "base/real_fs.h"
#include "support/temp_dir.h"

namespace belay::test {

namespace {

constexpr size_t kShownFailures = 10;

class VectorAcks final : public Acks {
 public:
  explicit VectorAcks(std::vector<std::string>& out) : out_(out) {}
  void Add(std::string_view promise) override { out_.emplace_back(promise); }

 private:
  std::vector<std::string>& out_;
};

// Length and bytes in one write: a pipe takes up to PIPE_BUF whole or not at all.
class PipeAcks final : public Acks {
 public:
  explicit PipeAcks(int fd) : fd_(fd) {}
  void Add(std::string_view promise) override {
    Bytes message;
    ByteWriter writer(message);
    writer.U32(static_cast<uint32_t>(promise.size()));
    writer.Raw(promise);
    BELAY_CHECK(message.size() <= 4096);
    ssize_t put = write(fd_, message.data(), message.size());
    BELAY_CHECK(put == static_cast<ssize_t>(message.size()));
  }

 private:
  int fd_;
};

void Fail(SweepResult& result, const SweepRun& run, std::string_view why) {
  ++result.failures;
  if (result.first_failures.size() < kShownFailures)
    result.first_failures.push_back(run.where + ": " + std::string(why));
}

bool Take(const SweepOptions& options, uint64_t points) {
  return RunEverything() || options.max_points == 0 || points < options.max_points;
}

uint64_t Stride(const SweepOptions& options) {
  return RunEverything() || options.stride == 0 ? 1 : options.stride;
}
uint64_t First(const SweepOptions& options) {
  return RunEverything() || options.first == 0 ? 1 : options.first;
}

// `run_point` says whether there may be another one.
void ForEachPoint(const SweepOptions& options, const SweepResult& result,
                  const std::function<bool(uint64_t)>& run_point) {
  if (!options.only_at.empty()) {
    for (uint64_t point : options.only_at) (void)run_point(point);
    return;
  }
  for (uint64_t point = First(options); Take(options, result.points);
       point += Stride(options))
    if (!run_point(point)) return;
}

void CheckDisk(SweepResult& result, Fs& disk, const SweepRun& run,
               const DiskCheck& check) {
  ++result.states;
  if (Status status = check(disk, run); !status.ok())
    Fail(result, run, status.error().what);
}

void CheckCrashes(const SweepOptions& options, SweepResult& result, const MemFs& disk,
                  const SweepRun& run, const DiskCheck& check) {
  std::vector<CrashPolicy> policies = {CrashPolicy::KeepAll(),
                                       CrashPolicy::DropUnsynced()};
  for (uint64_t i = 0; i < options.tears; ++i)
    policies.push_back(
        CrashPolicy::Tear(options.seed * 1'000'003 + run.point * 1009 + i));
  for (const CrashPolicy& policy : policies) {
    auto crashed = disk.Clone();
    crashed->Crash(policy);
    SweepRun seen = run;
    seen.where += ", " + policy.Text();
    CheckDisk(result, *crashed, seen, check);
  }
}

// True when the fault fired, so that there may be another point.
bool RunFaultPoint(const SweepOptions& options, SweepResult& result, const MemFs& fresh,
                   uint64_t point, const DiskOperation& operation,
                   const DiskCheck& check) {
  auto disk = fresh.Clone();
  Fault fault = options.fault;
  fault.at = point;
  SweepRun run;
  run.point = point;
  FaultFs fs(*disk, fault);
  {
    VectorAcks acks(run.acks);
    Status status = operation(fs, acks);
    run.done = status.ok();
    if (!status.ok()) run.error = status.error();
  }
  run.fired = fs.fired();
  run.where = run.fired ? fault.Text() + " (" + fs.Where() + ")" : "no fault";
  if (options.check_leaks && disk->open_handles() != 0)
    Fail(result, run, std::to_string(disk->open_handles()) + " handles left open");
  if (run.fired) ++result.points;
  bool cut = fault.kind == Fault::Kind::kPowerCut || options.crash_after_error;
  if (!run.fired && !run.done)
    Fail(result, run, "failed without a fault: " + run.error.what);
  if (cut)
    CheckCrashes(options, result, *disk, run, check);
  else
    CheckDisk(result, *disk, run, check);
  return run.fired;
}

// --- kills ---------------------------------------------------------------------------

std::string ReadAll(int fd) {
  std::string all;
  char buffer[4096];
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return all;
    all.append(buffer, static_cast<size_t>(got));
  }
}

std::vector<std::string> ParseAcks(std::string_view bytes) {
  std::vector<std::string> acks;
  ByteReader reader(AsBytes(bytes));
  while (!reader.at_end()) {
    uint32_t size = reader.U32();
    std::string_view text = AsText(reader.Raw(size));
    BELAY_CHECK(!reader.failed());
    acks.emplace_back(text);
  }
  return acks;
}

// In the child; the exit code says whether the operation succeeded.
[[noreturn]] void RunChild(const Fault& fault, const AbsPath& dir,
                           const DirOperation& operation, int ack_fd) {
  int code = 1;
  {
    RealFs real;
    FaultFs fs(real, fault);
    PipeAcks acks(ack_fd);
    Status status = operation(fs, dir, acks);
    code = status.ok() ? 0 : 1;
    if (!status.ok()) acks.Add("error: " + status.error().what.substr(0, 2000));
  }
  _exit(code);
}

bool RunKillPoint(const SweepOptions& options, SweepResult& result, uint64_t point,
                  const DirSetup& setup, const DirOperation& operation,
                  const DirCheck& check) {
  TempDir temp;
  RealFs real;
  SweepRun run;
  run.point = point;
  Fault fault = options.fault;
  if (fault.kind != Fault::Kind::kKillAfter) fault.kind = Fault::Kind::kKill;
  fault.at = point;
  run.where = fault.Text();
  if (Status ready = setup(real, temp.path()); !ready.ok()) {
    Fail(result, run, "setup: " + ready.error().what);
    return false;
  }

  int pipe_fds[2];
  BELAY_CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
  std::fflush(nullptr);
  pid_t child = fork();
  BELAY_CHECK(child >= 0);
  if (child == 0) {
    close(pipe_fds[0]);
    RunChild(fault, temp.path(), operation, pipe_fds[1]);
  }
  close(pipe_fds[1]);
  run.acks = ParseAcks(ReadAll(pipe_fds[0]));
  close(pipe_fds[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) BELAY_CHECK(errno == EINTR);

  run.fired = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  run.done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (run.fired) {
    ++result.points;
  } else if (!run.done) {
    std::string why = "the child failed without a fault";
    if (WIFEXITED(status) && !run.acks.empty()) why += ": " + run.acks.back();
    if (WIFSIGNALED(status)) why += ": signal " + std::to_string(WTERMSIG(status));
    Fail(result, run, why);
  }
  ++result.states;
  if (Status checked = check(real, temp.path(), run); !checked.ok())
    Fail(result, run, checked.error().what);
  return run.fired;
}

}  // namespace

std::string SweepResult::Text() const {
  std::string text = "sweep " + name + ": " + std::to_string(points) + " points, " +
                     std::to_string(states) + " states, " + std::to_string(failures) +
                     " failures\n";
  for (const std::string& failure : first_failures) text += "  " + failure + "\n";
  return text;
}

SweepResult SweepFaults(const SweepOptions& options, const DiskSetup& setup,
                        const DiskOperation& operation, const DiskCheck& check) {
  SweepResult result;
  result.name = options.name;
  MemFs fresh(options.disk);
  if (Status ready = setup(fresh); !ready.ok()) {
    SweepRun run;
    run.where = "setup";
    Fail(result, run, ready.error().what);
    return result;
  }
  fresh.Crash(CrashPolicy::KeepAll());
  ForEachPoint(options, result, [&](uint64_t point) {
    return RunFaultPoint(options, result, fresh, point, operation, check);
  });
  return result;
}

SweepResult SweepKills(const SweepOptions& options, const DirSetup& setup,
                       const DirOperation& operation, const DirCheck& check) {
  SweepResult result;
  result.name = options.name;
  ForEachPoint(options, result, [&](uint64_t point) {
    return RunKillPoint(options, result, point, setup, operation, check);
  });
  return result;
}

bool RunEverything() {
  const char* full = std::getenv("BELAY_FULL");
  return full != nullptr && std::strcmp(full, "1") == 0;
}

uint64_t TestSeed(uint64_t fallback) {
  const char* given = std::getenv("BELAY_SEED");
  uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : fallback;
  std::printf("BELAY_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

void Expect(const SweepResult& result) {
  std::cout << result.Text();
  EXPECT_TRUE(result.ok()) << result.Text();
}

}  // namespace belay::test
