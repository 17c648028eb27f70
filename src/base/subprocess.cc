#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/escape.h"
#include "base/subprocess_internal.h"

namespace belay {

using namespace subprocess;

namespace {

// Reads what is there. False: over the cap.
bool Drain(Handle& from, std::string& text, size_t cap) {
  char buffer[16 * 1024];
  while (from.is_open()) {
    ssize_t got = read(from.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      from.Reset();
      return true;
    }
    size_t room = cap - text.size();
    text.append(buffer, std::min(static_cast<size_t>(got), room));
    if (static_cast<size_t>(got) > room) return false;
  }
  return true;
}

void Feed(Handle& in, std::string_view& input) {
  while (in.is_open() && !input.empty()) {
    ssize_t put = write(in.get(), input.data(), input.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) break;  // EPIPE: it does not want more
    input.remove_prefix(static_cast<size_t>(put));
  }
  in.Reset();
}

// A file that has no name and is gone with its last descriptor. 0, or an error number.
int OpenMemory(Handle& file) {
  const int fd = memfd_create("output", MFD_CLOEXEC);
  if (fd < 0) return errno;
  file.Reset(fd);
  return MoveUp(file);
}

uint64_t SizeOf(const Handle& file) {
  struct stat is {};
  return fstat(file.get(), &is) == 0 ? static_cast<uint64_t>(is.st_size) : 0;
}

Status TakeFile(const Handle& file, size_t cap, std::string& text) {
  text.resize(std::min<uint64_t>(SizeOf(file), cap));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = pread(file.get(), text.data() + done, text.size() - done,
                              static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SysError(errno, "read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return Ok();
}

using End = ProcessResult::End;

// Moves bytes until the child exits, the deadline passes or the cap is reached. `file`:
// where its output goes, if that is one.
Result<End> Converse(const Child& child, Handle& in, Handle& out, Handle& err,
                     const Handle& file, const ProcessOptions& options,
                     ProcessResult& result) {
  constexpr int64_t kLookAgain = 50'000'000;
  RealClock clock;
  const int64_t deadline = clock.SteadyNanos() + options.timeout_ms * 1'000'000;
  std::string_view input = options.input;
  auto drain = [&] {
    return Drain(out, result.output, options.output_cap) &&
           Drain(err, result.errors, options.output_cap) &&
           !(file.is_open() && SizeOf(file) > options.output_cap);
  };
  Feed(in, input);
  for (;;) {
    int64_t left = deadline - clock.SteadyNanos();
    if (left <= 0) return End::kTimedOut;
    if (file.is_open()) left = std::min(left, kLookAgain);
    // A closed descriptor is -1, which poll skips.
    pollfd polls[] = {{child.pidfd(), POLLIN, 0},
                      {out.get(), POLLIN, 0},
                      {err.get(), POLLIN, 0},
                      {in.get(), POLLOUT, 0}};
    timespec wait{};
    wait.tv_sec = static_cast<time_t>(left / 1'000'000'000);
    wait.tv_nsec = static_cast<long>(left % 1'000'000'000);
    int ready = ppoll(polls, std::size(polls), &wait, nullptr);
    if (ready < 0 && errno != EINTR) return SysError(errno, "poll");
    if (ready <= 0 && !file.is_open()) continue;
    if (ready <= 0) {
      if (!drain()) return End::kTooMuchOutput;
      continue;
    }
    if (polls[3].revents != 0) Feed(in, input);
    if (!drain()) return End::kTooMuchOutput;
    if (polls[0].revents == 0) continue;
    // Exited. What it left behind may hold the pipes: kill that, then take what is
    // there.
    child.KillGroup();
    return drain() ? End::kExited : End::kTooMuchOutput;
  }
}

}  // namespace

Result<ProcessResult> RunProcess(const ProcessOptions& options) {
  const std::string what = "run " + EscapeForDisplay(options.program.bytes());
  if (HasNul(options.arguments) || HasNul(options.environment))
    return Error(Errc::kInvalid, what + ": an argument contains a NUL byte");

  SigpipeBlock sigpipe;
  Pipe in;
  Pipe out;
  Pipe err;
  for (Pipe* pipe : {&in, &out, &err})
    if (int sys = OpenPipe(*pipe)) return SysError(sys, what);
  Handle file;
  if (options.output_is_file)
    if (int sys = OpenMemory(file)) return SysError(sys, what);
  Child child;
  if (int sys =
          child.Start(options, sigpipe.before(), in.read.get(),
                      file.is_open() ? file.get() : out.write.get(), err.write.get()))
    return SysError(sys, what);
  in.read.Reset();
  out.write.Reset();
  err.write.Reset();
  for (const Handle* ours : {&in.write, &out.read, &err.read}) SetNonblocking(*ours);

  ProcessResult result;
  BELAY_TRY(result.end,
            Converse(child, in.write, out.read, err.read, file, options, result));
  siginfo_t info = child.Reap();
  if (file.is_open() && result.end != End::kTooMuchOutput)
    BELAY_OK(TakeFile(file, options.output_cap, result.output));
  if (result.end == End::kExited) {
    if (info.si_code != CLD_EXITED) result.end = End::kSignalled;
    result.code = info.si_status;
  }
  return result;
}

namespace {

// For RunAttached: who is told to end when we are.
volatile pid_t attached_child = 0;
volatile sig_atomic_t to_pass_on = 0;  // came before there was anybody
void PassOn(int signal) {
  if (attached_child > 0)
    kill(attached_child, signal);
  else
    to_pass_on = signal;
}
// Ctrl-C and Ctrl-\ of a terminal go to its whole foreground group, the program among
// it: those are the kernel's. What a process sent was meant for us, and so for it.
void PassOnIfSent(int signal, siginfo_t* from, void*) {
  if (from != nullptr && from->si_code <= 0) PassOn(signal);
}

}  // namespace

Status CheckProgram(const std::string& word, std::string_view path) {
  const std::string what = "run " + EscapeForDisplay(word);
  auto look = [](const std::string& file) {
    struct stat is {};
    if (stat(file.c_str(), &is) != 0) return errno;
    if (!S_ISREG(is.st_mode)) return EACCES;
    return faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
  };
  int sys = ENOENT;
  if (word.find('/') != std::string::npos) {
    sys = look(word);
  } else if (path.empty()) {
    return Ok();
  } else if (!word.empty()) {
    // One that may not be run is passed over, and the reason when there is no other.
    for (size_t at = 0; sys != 0 && at <= path.size();) {
      const size_t end = std::min(path.find(':', at), path.size());
      const std::string dir(path.substr(at, end - at));
      const int found = look(dir.empty() ? word : dir + "/" + word);
      if (found == 0 || found == EACCES) sys = found;
      at = end + 1;
    }
  }
  if (sys != 0) return SysError(sys, what);
  return Ok();
}

Result<int> RunAttached(const std::vector<std::string>& words, bool output_to_stderr) {
  if (words.empty() || HasNul(words)) return Error(Errc::kInvalid, "no program to run");
  std::vector<char*> argv = Pointers(words);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (output_to_stderr) posix_spawn_file_actions_adddup2(&actions, 2, 1);
  // What we ignore for our own sake is not the program's choice.
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ})
    sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  struct sigaction pass_on_if_sent {};
  pass_on_if_sent.sa_sigaction = PassOnIfSent;
  pass_on_if_sent.sa_flags = SA_SIGINFO;
  struct sigaction before_int {};
  struct sigaction before_quit {};
  to_pass_on = 0;
  sigaction(SIGINT, &pass_on_if_sent, &before_int);
  sigaction(SIGQUIT, &pass_on_if_sent, &before_quit);
  // Before the program is there: somebody may send it a signal as soon as it runs.
  struct sigaction pass_on {};
  struct sigaction before_term {};
  struct sigaction before_hup {};
  pass_on.sa_handler = PassOn;
  sigaction(SIGTERM, &pass_on, &before_term);
  sigaction(SIGHUP, &pass_on, &before_hup);
  pid_t child = 0;
  const int sys = posix_spawnp(&child, words[0].c_str(), &actions, &attributes,
                               argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  int status = 0;
  attached_child = sys == 0 ? child : 0;
  if (sys == 0 && to_pass_on != 0) kill(child, to_pass_on);
  if (sys == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  attached_child = 0;
  sigaction(SIGTERM, &before_term, nullptr);
  sigaction(SIGHUP, &before_hup, nullptr);
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGQUIT, &before_quit, nullptr);
  if (sys != 0) return SysError(sys, "run " + EscapeForDisplay(words[0]));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Status StartSelfDetached(const std::vector<std::string>& arguments) {
  if (HasNul(arguments))
    return Error(Errc::kInvalid, "an argument contains a NUL byte");
  std::vector<std::string> words = {"belay"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv = Pointers(words);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const int sys = posix_spawn(&child, "/proc/self/exe", &actions, &attributes,
                              argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (sys != 0) return SysError(sys, "start belay");
  return Ok();
}

}  // namespace belay
