#include "base/running_process.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/subprocess_internal.h"

namespace belay {

using namespace subprocess;

namespace {
constexpr size_t kHeld = 64 * 1024;
}  // namespace

struct RunningProcess::Parts {
  std::string what;
  int64_t timeout_ms = 0;
  size_t cap = 0;
  Pipe in, out, err;
  Child child;
  std::string held;  // put out, and not read yet
  std::string errors;

  // Adds what is there. At most so much as makes `text` `limit` long; the rest of what
  // it says is dropped when `drop`.
  static void Take(Handle& from, std::string& text, size_t limit, bool drop) {
    char buffer[16 * 1024];
    while (from.is_open() && (drop || text.size() < limit)) {
      const ssize_t got = read(from.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        from.Reset();
        return;
      }
      const auto size = static_cast<size_t>(got);
      text.append(buffer,
                  drop ? std::min(size, limit - std::min(limit, text.size())) : size);
    }
  }
};

RunningProcess::RunningProcess(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}
RunningProcess::~RunningProcess() = default;

Result<std::unique_ptr<RunningProcess>> RunningProcess::Start(
    const ProcessOptions& options) {
  auto parts = std::make_unique<Parts>();
  parts->what = "run " + EscapeForDisplay(options.program.bytes());
  parts->timeout_ms = options.timeout_ms;
  parts->cap = options.output_cap;
  if (HasNul(options.arguments) || HasNul(options.environment))
    return Error(Errc::kInvalid, parts->what + ": an argument contains a NUL byte");
  for (Pipe* pipe : {&parts->in, &parts->out, &parts->err})
    if (int sys = OpenPipe(*pipe)) return SysError(sys, parts->what);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  if (int sys = parts->child.Start(options, mask, parts->in.read.get(),
                                   parts->out.write.get(), parts->err.write.get()))
    return SysError(sys, parts->what);
  parts->in.read.Reset();
  parts->out.write.Reset();
  parts->err.write.Reset();
  for (const Handle* ours : {&parts->in.write, &parts->out.read, &parts->err.read})
    SetNonblocking(*ours);
  return std::unique_ptr<RunningProcess>(new RunningProcess(std::move(parts)));
}

Status RunningProcess::Wait(bool write, bool read) {
  Parts& p = *parts_;
  RealClock clock;
  const int64_t deadline = clock.SteadyNanos() + p.timeout_ms * 1'000'000;
  for (;;) {
    const int64_t left = deadline - clock.SteadyNanos();
    if (left <= 0)
      return Error(Errc::kBusy, p.what + ": nothing happened for " +
                                    (p.timeout_ms % 1000 == 0
                                         ? std::to_string(p.timeout_ms / 1000) + " s"
                                         : std::to_string(p.timeout_ms) + " ms"));
    // A closed descriptor is -1, which poll skips.
    pollfd polls[] = {{write ? p.in.write.get() : -1, POLLOUT, 0},
                      {read ? p.out.read.get() : -1, POLLIN, 0},
                      {p.err.read.get(), POLLIN, 0}};
    timespec wait{};
    wait.tv_sec = static_cast<time_t>(left / 1'000'000'000);
    wait.tv_nsec = static_cast<long>(left % 1'000'000'000);
    const int ready = ppoll(polls, std::size(polls), &wait, nullptr);
    if (ready < 0 && errno != EINTR) return SysError(errno, "poll");
    if (ready <= 0) continue;
    if (polls[2].revents != 0) Parts::Take(p.err.read, p.errors, p.cap, true);
    if (polls[0].revents != 0 || polls[1].revents != 0) return Ok();
    if (!p.err.read.is_open() && !(write && p.in.write.is_open()) &&
        !(read && p.out.read.is_open()))
      return Ok();
  }
}

Status RunningProcess::Write(ByteSpan bytes) {
  Parts& p = *parts_;
  SigpipeBlock sigpipe;
  while (!bytes.empty()) {
    if (!p.in.write.is_open()) return Error(Errc::kIo, p.what + ": it takes no more");
    const ssize_t put = write(p.in.write.get(), bytes.data(), bytes.size());
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      p.in.write.Reset();
      continue;
    }
    const bool room = p.held.size() < kHeld;
    BELAY_OK(Wait(/*write=*/true, /*read=*/room));
    if (room) Parts::Take(p.out.read, p.held, kHeld, false);
  }
  return Ok();
}

Result<size_t> RunningProcess::Read(std::span<std::byte> out) {
  Parts& p = *parts_;
  if (!p.held.empty()) {
    const size_t size = std::min(out.size(), p.held.size());
    std::copy_n(AsBytes(p.held).begin(), size, out.begin());
    p.held.erase(0, size);
    return size;
  }
  while (p.out.read.is_open()) {
    const ssize_t got = read(p.out.read.get(), out.data(), out.size());
    if (got > 0) return static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      BELAY_OK(Wait(/*write=*/false, /*read=*/true));
      continue;
    }
    p.out.read.Reset();
  }
  return size_t{0};
}

Result<ProcessResult> RunningProcess::Finish() {
  Parts& p = *parts_;
  p.in.write.Reset();
  ProcessResult result;
  result.output = std::move(p.held);
  while (p.out.read.is_open()) {
    Parts::Take(p.out.read, result.output, p.cap, true);
    if (p.out.read.is_open()) BELAY_OK(Wait(false, true));
  }
  while (p.err.read.is_open()) {
    Parts::Take(p.err.read, p.errors, p.cap, true);
    if (p.err.read.is_open()) BELAY_OK(Wait(false, false));
  }
  pollfd ended{p.child.pidfd(), POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&ended, 1, static_cast<int>(p.timeout_ms))) < 0 &&
         errno == EINTR) {
  }
  if (ready == 0) result.end = ProcessResult::End::kTimedOut;
  const siginfo_t info = p.child.Reap();
  if (result.end == ProcessResult::End::kExited) {
    if (info.si_code != CLD_EXITED) result.end = ProcessResult::End::kSignalled;
    result.code = info.si_status;
  }
  result.errors = std::move(p.errors);
  return result;
}

}  // namespace belay
