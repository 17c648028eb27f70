#include "base/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

using End = ProcessResult::End;

// A shell as the child's program: RunProcess itself never uses one.
ProcessOptions Script(std::string text) {
  return {.program = AbsPath::Literal("/bin/sh"), .arguments = {"-c", std::move(text)}};
}

ProcessResult Start(const ProcessOptions& options) {
  auto result = RunProcess(options);
  if (!result.ok()) CheckFailed(result.error().what.c_str(), __FILE__, __LINE__);
  return *result;
}

TEST(Subprocess, ReturnsOutputAndExitCode) {
  ProcessResult echo = Start(
      {.program = AbsPath::Literal("/bin/echo"), .arguments = {"a  b", "$HOME", "*"}});
  EXPECT_TRUE(echo.ok());
  EXPECT_EQ(echo.output, "a  b $HOME *\n");  // no shell touched it
  EXPECT_EQ(echo.errors, "");
  ProcessResult three = Start(Script("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(three.end, End::kExited);
  EXPECT_EQ(three.code, 3);
  EXPECT_EQ(three.output, "out\n");
  EXPECT_EQ(three.errors, "err\n");
  EXPECT_FALSE(three.ok());
}

TEST(Subprocess, GivesExactlyTheEnvironmentAndDirectory) {
  TempDir temp;
  ProcessOptions options{.program = AbsPath::Literal("/usr/bin/env"),
                         .environment = {"ONE=1", "TWO=two words"}};
  EXPECT_EQ(Start(options).output, "ONE=1\nTWO=two words\n");
  ProcessOptions pwd = Script("pwd -P");
  pwd.directory = temp.path();
  EXPECT_EQ(Start(pwd).output, temp.path().bytes() + "\n");
}

TEST(Subprocess, ChildHasOnlyItsThreeDescriptors) {
  TempDir temp;
  RealFs fs;
  auto held = fs.OpenDir(temp.path());
  ASSERT_TRUE(held.ok());
  // ls opens one more to look.
  ProcessOptions options{.program = AbsPath::Literal("/bin/ls"),
                         .arguments = {"/proc/self/fd"}};
  EXPECT_EQ(Start(options).output, "0\n1\n2\n3\n");
}

TEST(Subprocess, FeedsInputLargerThanAPipe) {
  std::string input(1u << 20, 'x');
  ProcessOptions options{.program = AbsPath::Literal("/bin/cat"), .input = input};
  EXPECT_EQ(Start(options).output, input);
}

TEST(Subprocess, AChildThatDoesNotReadItsInputDoesNoHarm) {
  size_t before = OpenDescriptors();
  ProcessOptions options{.program = AbsPath::Literal("/bin/true"),
                         .input = std::string(1u << 20, 'x')};
  EXPECT_TRUE(Start(options).ok());
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(Subprocess, MissingProgramIsAnError) {
  size_t before = OpenDescriptors();
  auto missing = RunProcess({.program = AbsPath::Literal("/no/such/program")});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_EQ(missing.error().what, "run /no/such/program: No such file or directory");
  auto nul = RunProcess({.program = AbsPath::Literal("/bin/echo"),
                         .arguments = {std::string("a\0b", 3)}});
  ASSERT_FALSE(nul.ok());
  EXPECT_EQ(nul.error().code, Errc::kInvalid);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(Subprocess, ReportsASignalAsASignal) {
  ProcessResult result = Start(Script("kill -TERM $$"));
  EXPECT_EQ(result.end, End::kSignalled);
  EXPECT_EQ(result.code, SIGTERM);
}

// Each of these would run for ever; the time is that of the deadline.
TEST(Subprocess, TheDeadlineKillsAChildThatIgnoresSigterm) {
  ProcessOptions options =
      Script("trap '' TERM HUP INT; echo started; while :; do :; done");
  options.timeout_ms = 150;
  ProcessResult result = Start(options);
  EXPECT_EQ(result.end, End::kTimedOut);
  EXPECT_EQ(result.output, "started\n");
}

// The state letter of a process, or 'X' when it is gone.
char StateOf(pid_t pid) {
  std::string stat = "/proc/" + std::to_string(pid) + "/stat";
  FILE* file = fopen(stat.c_str(), "re");
  if (file == nullptr) return 'X';
  char state = '?';
  int got = fscanf(file, "%*d (%*[^)]) %c", &state);
  fclose(file);
  return got == 1 ? state : 'X';
}

TEST(Subprocess, TheDeadlineKillsTheWholeGroup) {
  ProcessOptions options = Script("sleep 1000 & echo $!; wait");
  options.timeout_ms = 1500;
  ProcessResult result = Start(options);
  EXPECT_EQ(result.end, End::kTimedOut);
  ASSERT_FALSE(result.output.empty());
  pid_t grandchild = static_cast<pid_t>(std::stol(result.output));
  // The signal was sent; on a busy machine it takes a moment to run. A zombie until its
  // new parent reaps it, which is not ours to wait for.
  RealClock clock;
  const int64_t deadline = clock.SteadyNanos() + int64_t{60} * 1'000'000'000;
  char state = StateOf(grandchild);
  while (state != 'Z' && state != 'X' && clock.SteadyNanos() < deadline) {
    sched_yield();
    state = StateOf(grandchild);
  }
  EXPECT_TRUE(state == 'Z' || state == 'X') << state;
}

TEST(Subprocess, AChildLeftBehindDoesNotKeepUsWaiting) {
  ProcessOptions options = Script("sleep 1000 & echo done");
  options.timeout_ms = 60'000;
  RealClock clock;
  int64_t start = clock.SteadyNanos();
  ProcessResult result = Start(options);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.output, "done\n");
  EXPECT_LT(clock.SteadyNanos() - start, int64_t{30} * 1'000'000'000);
}

TEST(Subprocess, AFloodOfOutputIsCutAtTheCap) {
  ProcessOptions options = Script("while :; do echo flood; done");
  options.timeout_ms = 60'000;
  options.output_cap = 100'000;
  ProcessResult result = Start(options);
  EXPECT_EQ(result.end, End::kTooMuchOutput);
  EXPECT_EQ(result.output.size(), 100'000u);
  options = Script("while :; do echo flood >&2; done");
  options.output_cap = 100'000;
  EXPECT_EQ(Start(options).errors.size(), 100'000u);
}

TEST(Subprocess, OutputOfExactlyTheCapIsNotAFlood) {
  ProcessOptions options = Script("printf 12345");
  options.output_cap = 5;
  ProcessResult result = Start(options);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.output, "12345");
}

TEST(Subprocess, AFileTakesWhatIsSaidAtOnceAndIsBoundedToo) {
  ProcessOptions options = Script("[ -f /dev/stdout ] && head -c 3000000 /dev/zero");
  options.output_is_file = true;
  ProcessResult result = Start(options);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.output.size(), 3'000'000u);
  options.output_cap = 2'999'999;
  EXPECT_EQ(Start(options).end, End::kTooMuchOutput);
  options = Script("while :; do echo flood; done");
  options.output_is_file = true;
  options.timeout_ms = 60'000;
  options.output_cap = 100'000;
  EXPECT_EQ(Start(options).end, End::kTooMuchOutput);
  options = Script("echo said; exec sleep 60");
  options.output_is_file = true;
  options.timeout_ms = 200;
  result = Start(options);
  EXPECT_EQ(result.end, End::kTimedOut);
  EXPECT_EQ(result.output, "said\n");
}

// Mutant: children-outlive-us.
TEST(Subprocess, WhatEndsUsEndsItsGroup) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    TempDir temp;
    const AbsPath fifo = temp / "fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const pid_t us = fork();
    if (us == 0) {
      std::signal(signal, SIG_DFL);
      ProcessOptions options =
          Script("exec 5>'" + fifo.bytes() + "'; echo there >&5; sleep 60 & wait");
      options.timeout_ms = 60'000;
      (void)RunProcess(options);
      _exit(1);
    }
    // Whoever of them lives has it open.
    const int heard = open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    char said[16];
    ASSERT_EQ(read(heard, said, sizeof said), 6);
    kill(us, signal);
    int status = 0;
    ASSERT_EQ(waitpid(us, &status, 0), us);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    pollfd end{heard, POLLIN, 0};
    EXPECT_EQ(poll(&end, 1, 10'000), 1) << "they live on after signal " << signal;
    close(heard);
  }
}

TEST(Subprocess, SignalsThatSomebodyHandlesAreLeftAlone) {
  struct sigaction before {};
  ASSERT_EQ(std::signal(SIGTERM, SIG_IGN), SIG_DFL);
  EXPECT_TRUE(Start(Script("kill -TERM $PPID")).ok());
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &before), 0);
  EXPECT_EQ(before.sa_handler, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  EXPECT_TRUE(Start(Script("exit 0")).ok());
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &before), 0);
  EXPECT_EQ(before.sa_handler, SIG_DFL);
}

TEST(Subprocess, LeavesNoZombieAndNoDescriptor) {
  size_t before = OpenDescriptors();
  for (int i = 0; i < 5; ++i) Start(Script("exit 0"));
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace belay::test
