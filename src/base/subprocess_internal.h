#pragma once

// What RunProcess and RunningProcess are made of: pipes, a child in a group of its own,
// and SIGPIPE kept away.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/ends_with_us.h"
#include "base/subprocess.h"

namespace belay::subprocess {

class Handle {
 public:
  Handle() = default;
  explicit Handle(int fd) : fd_(fd) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { Reset(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Handle read;
  Handle write;
};

// Both ends above 2, so that putting one in place of 0, 1 or 2 never hits the other.
inline int MoveUp(Handle& handle) {
  if (handle.get() > 2) return 0;
  int moved = fcntl(handle.get(), F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return errno;
  handle.Reset(moved);
  return 0;
}

inline int OpenPipe(Pipe& pipe) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return errno;
  pipe.read.Reset(fds[0]);
  pipe.write.Reset(fds[1]);
  if (int sys = MoveUp(pipe.read)) return sys;
  return MoveUp(pipe.write);
}

// Our end only: the flag belongs to the open file description, and the child's end is
// another.
inline void SetNonblocking(const Handle& handle) {
  fcntl(handle.get(), F_SETFL, fcntl(handle.get(), F_GETFL) | O_NONBLOCK);
}

inline std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

inline bool HasNul(const std::vector<std::string>& strings) {
  return std::any_of(strings.begin(), strings.end(), [](const std::string& s) {
    return s.find('\0') != std::string::npos;
  });
}

// Blocks SIGPIPE for this thread; at the end takes the one we may have caused, so that
// it does not arrive later.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;
  ~SigpipeBlock() {
    timespec now{};
    if (!was_pending_)
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

inline int Spawn(const ProcessOptions& options, const sigset_t& mask, int in, int out,
                 int err, pid_t& child) {
  std::vector<std::string> arguments = {options.program.bytes()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(options.environment);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigfillset(&defaults);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  int sys = posix_spawn_file_actions_adddup2(&actions, in, 0);
  if (sys == 0) sys = posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (sys == 0) sys = posix_spawn_file_actions_adddup2(&actions, err, 2);
  // Ours are O_CLOEXEC; what our own parent left open is not.
  if (sys == 0) sys = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (sys == 0 && options.directory)
    sys = posix_spawn_file_actions_addchdir_np(&actions, options.directory->c_str());
  if (sys == 0)
    sys = posix_spawn(&child, options.program.c_str(), &actions, &attributes,
                      argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return sys;
}

// The running child; kills its group and reaps it whatever happens, also when a signal
// ends us.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { Reap(); }
  // 0, or an error number.
  int Start(const ProcessOptions& options, const sigset_t& mask, int in, int out,
            int err) {
    const HeldSignals held;
    if (int sys = Spawn(options, mask, in, out, err, pid_)) {
      pid_ = 0;
      return sys;
    }
    Enlist(pid_);
    pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    return pidfd_.is_open() ? 0 : errno;
  }
  int pidfd() const { return pidfd_.get(); }
  // The group's id is the child's pid, which stays taken until Reap(), so this cannot
  // hit a stranger.
  void KillGroup() const { kill(-pid_, SIGKILL); }
  siginfo_t Reap() {
    siginfo_t info{};
    if (pid_ == 0) return info;
    KillGroup();
    Delist(pid_);
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 &&
           errno == EINTR) {
    }
    pid_ = 0;
    return info;
  }

 private:
  pid_t pid_ = 0;
  Handle pidfd_;
};

}  // namespace belay::subprocess
