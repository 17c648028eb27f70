#include "base/forked_work.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/clock.h"

namespace belay {

namespace {

ForkedWork::Shared* in_child = nullptr;

int64_t WallNanos() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

void Release(ForkedWork::Shared& shared) {
  int64_t waited = 0;
  shared.released_ns.compare_exchange_strong(waited, WallNanos());
}

void OnParentGone(int) {
  if (in_child != nullptr) Release(*in_child);
}

// Nothing is shared with whoever started us but the pipe `keep`.
void CutLoose(int keep) {
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd)
    if (null >= 0) dup2(null, fd);
#ifdef SYS_close_range
  if (keep > 3) syscall(SYS_close_range, 3, keep - 1, 0);
  syscall(SYS_close_range, keep + 1, ~0U, 0);
#endif
}

[[noreturn]] void BeChild(ForkedWork::Shared& shared, pid_t parent,
                          const std::function<int(ForkedWork::Shared&)>& work) {
  in_child = &shared;
  struct sigaction action {};
  action.sa_handler = OnParentGone;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGUSR1);
  if (getppid() != parent) Release(shared);  // gone before it could be told
  CutLoose(shared.wake);
  signal(SIGPIPE, SIG_IGN);
  _exit(work(shared) & 0xff);
}

}  // namespace

void ForkedWork::Shared::Say(std::string_view what) {
  const size_t size = std::min(what.size(), text.size());
  std::memcpy(text.data(), what.data(), size);
  text_size = static_cast<uint32_t>(size);
}

void ForkedWork::Shared::WaitOnly(int64_t ms) {
  wait_ms = ms;
  if (wake >= 0) (void)!write(wake, "w", 1);
}

void ForkedWork::Shared::Reply(int with_code) {
  code = with_code;
  replied = true;
  Release(*this);
  WaitOnly(0);
}

Result<std::optional<ForkedWork::Ended>> ForkedWork::Run(
    int64_t wait_ms, const std::function<int(Shared&)>& work) {
  auto failed = [](std::string_view what) {
    return Error(Errc::kIo, std::string(what) + ": " + std::strerror(errno));
  };
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("mmap");
  Shared& shared = *new (memory) Shared;
  shared.wait_ms = wait_ms;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
  shared.wake = ends[1];
  const int64_t began = RealClock().SteadyNanos();
  if (wait_ms == 0) Release(shared);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    const Error error = failed("fork");
    close(ends[0]);
    close(ends[1]);
    return error;
  }
  if (child == 0) BeChild(shared, parent, work);
  close(ends[1]);
  std::optional<Ended> ended;
  auto said = [&shared] {
    return std::string(shared.text.data(),
                       std::min<size_t>(shared.text_size, shared.text.size()));
  };
  while (shared.wait_ms > 0 && !shared.replied) {
    const int64_t left =
        shared.wait_ms - (RealClock().SteadyNanos() - began) / 1'000'000;
    if (left <= 0) break;
    pollfd wait{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    char byte = 0;
    if (read(ends[0], &byte, 1) > 0) continue;  // another time to wait
    int status = 0;
    if (waitpid(child, &status, 0) != child) break;
    ended =
        Ended{.code = WIFEXITED(status) ? WEXITSTATUS(status) : 255, .text = said()};
    break;
  }
  if (!ended && shared.replied) ended = Ended{.code = shared.code, .text = said()};
  close(ends[0]);
  if (!ended) Release(shared);
  munmap(memory, sizeof(Shared));
  return ended;
}

}  // namespace belay
