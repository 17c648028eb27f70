#include "base/ends_with_us.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/mutant.h"

namespace belay {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr size_t kMost = 32;

// Read by the handler.
std::atomic<pid_t> groups[kMost];
static_assert(std::atomic<pid_t>::is_always_lock_free);

std::mutex enlisting;
size_t enlisted = 0;  // under it

void EndAll(int signal) {
  const int before = errno;
  for (std::atomic<pid_t>& group : groups)
    if (const pid_t id = group.load(); id > 0) kill(-id, SIGKILL);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
  kill(getpid(), signal);  // comes when this returns
  errno = before;
}

void Handle(void (*from)(int), void (*to)(int)) {
  for (const int signal : kSignals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != from) continue;
    now = {};
    now.sa_handler = to;
    sigaction(signal, &now, nullptr);
  }
}

}  // namespace

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : kSignals) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void Enlist(pid_t group) {
  if (BELAY_MUTANT("children-outlive-us")) return;
  const std::scoped_lock lock(enlisting);
  for (std::atomic<pid_t>& place : groups)
    if (place.load() == 0) {
      place.store(group);
      break;
    }
  if (enlisted++ == 0) Handle(SIG_DFL, EndAll);
}

void Delist(pid_t group) {
  if (BELAY_MUTANT("children-outlive-us")) return;
  const std::scoped_lock lock(enlisting);
  for (std::atomic<pid_t>& place : groups)
    if (place.load() == group) place.store(0);
  if (--enlisted == 0) Handle(EndAll, SIG_DFL);
}

}  // namespace belay
