// Runs and times the commands of the benchmarks, told by the harness through a pipe.
//
// Why not from the harness itself: the peak memory of a process counts what it was
// before exec, and a Python parent is 20 MB; and a small parent starts children sooner.
// A command gets its input and leaves its output in memory files, so that no pipe makes
// it wait, and a background process that keeps one open does not hold us up.
//
// A message is a count and that many strings, each its length and its bytes; numbers in
// text within, four-byte little-endian outside. Requests and their answers:
//   run TIMEOUT_MS COMMANDS, per command: CWD INPUT ARGC ARGV... ENVC ENV...
//     ok WALL_NS, per command: EXIT WALL_NS CPU_US MAXRSS_KB STDOUT STDERR
//     The commands run side by side. CPU and memory are those of the command and of
//     everything it waited for (wait4).
//   copy FROM TO    ok WALL_NS CPU_US
//   du DIR...       ok BYTES      allocated blocks, hard links counted once
//   settle DIR      ok            syncfs: nobody pays for the writes of another
//   spread DIR      ok            ext4 puts each directory in it into another block
//   group

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <string>
#include <vector>

namespace {

using Message = std::vector<std::string>;

int64_t Nanos(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

bool ReadAll(void* to, size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    ssize_t n = read(0, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}
void WriteAll(int fd, const char* at, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, at, size);
    if (n < 0) std::exit(1);
    at += n;
    size -= static_cast<size_t>(n);
  }
}

bool Receive(Message& message) {
  uint32_t count = 0;
  if (!ReadAll(&count, 4)) return false;
  message.assign(count, {});
  for (auto& text : message) {
    uint32_t size = 0;
    if (!ReadAll(&size, 4)) return false;
    text.resize(size);
    if (size > 0 && !ReadAll(text.data(), size)) return false;
  }
  return true;
}
void Send(const Message& message) {
  std::string out;
  auto number = [&](size_t value) {
    auto four = static_cast<uint32_t>(value);
    out.append(reinterpret_cast<const char*>(&four), 4);
  };
  number(message.size());
  for (const auto& text : message) {
    number(text.size());
    out += text;
  }
  WriteAll(1, out.data(), out.size());
}

Message Failure(const std::string& what) {
  return {"error", what + ": " + std::strerror(errno)};
}

struct Command {
  std::string cwd;
  std::vector<char*> argv, env;
  int in = -1, out = -1, err = -1;
  pid_t pid = -1;
  int exit = 127;
  int64_t started = 0, wall = 0;
  rusage usage{};
};

std::string Contents(int fd) {
  std::string text;
  off_t size = lseek(fd, 0, SEEK_END);
  if (size > 0) {
    text.resize(static_cast<size_t>(size));
    if (pread(fd, text.data(), text.size(), 0) != size) text.clear();
  }
  close(fd);
  return text;
}

void Start(Command& command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, command.cwd.c_str());
  posix_spawn_file_actions_adddup2(&actions, command.in, 0);
  posix_spawn_file_actions_adddup2(&actions, command.out, 1);
  posix_spawn_file_actions_adddup2(&actions, command.err, 2);
  command.started = Nanos(CLOCK_MONOTONIC);
  int error = posix_spawn(&command.pid, command.argv[0], &actions, nullptr,
                          command.argv.data(), command.env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return;
  command.pid = -1;
  std::string what = std::string(command.argv[0]) + ": " + std::strerror(error) + "\n";
  WriteAll(command.err, what.data(), what.size());
}

void Finish(Command& command, int64_t deadline) {
  if (command.pid < 0) return;
  int watch = static_cast<int>(syscall(SYS_pidfd_open, command.pid, 0));
  if (watch >= 0) {
    pollfd wait{watch, POLLIN, 0};
    int64_t left = (deadline - Nanos(CLOCK_MONOTONIC)) / 1000000;
    if (poll(&wait, 1, left < 0 ? 0 : static_cast<int>(left)) == 0)
      kill(command.pid, SIGKILL);
    close(watch);
  }
  int status = 0;
  while (wait4(command.pid, &status, 0, &command.usage) < 0 && errno == EINTR) {
  }
  command.wall = Nanos(CLOCK_MONOTONIC) - command.started;
  command.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Message Run(Message& request) {
  size_t at = 1;
  auto number = [&] { return std::strtoul(request[at++].c_str(), nullptr, 10); };
  auto words = [&] {
    std::vector<char*> list;
    for (auto n = number(); n > 0; --n) list.push_back(request[at++].data());
    list.push_back(nullptr);
    return list;
  };
  auto timeout = static_cast<int64_t>(number()) * 1000000;
  std::vector<Command> commands(number());
  for (auto& command : commands) {
    command.cwd = request[at++];
    const std::string& input = request[at++];
    command.in = memfd_create("in", MFD_CLOEXEC);
    WriteAll(command.in, input.data(), input.size());
    lseek(command.in, 0, SEEK_SET);
    command.out = memfd_create("out", MFD_CLOEXEC);
    command.err = memfd_create("err", MFD_CLOEXEC);
    command.argv = words();
    command.env = words();
  }
  int64_t from = Nanos(CLOCK_MONOTONIC);
  for (auto& command : commands) Start(command);
  for (auto& command : commands) Finish(command, from + timeout);
  Message answer{"ok", std::to_string(Nanos(CLOCK_MONOTONIC) - from)};
  for (auto& command : commands) {
    const auto& user = command.usage.ru_utime;
    const auto& system = command.usage.ru_stime;
    int64_t cpu =
        (user.tv_sec + system.tv_sec) * 1000000 + user.tv_usec + system.tv_usec;
    close(command.in);
    answer.push_back(std::to_string(command.exit));
    answer.push_back(std::to_string(command.wall));
    answer.push_back(std::to_string(cpu));
    answer.push_back(std::to_string(command.usage.ru_maxrss));
    answer.push_back(Contents(command.out));
    answer.push_back(Contents(command.err));
  }
  return answer;
}

Message Copy(const Message& request) {
  int64_t wall = Nanos(CLOCK_MONOTONIC), cpu = Nanos(CLOCK_PROCESS_CPUTIME_ID);
  int from = open(request[1].c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return Failure(request[1]);
  int to = open(request[2].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (to < 0) return Failure(request[2]);
  ssize_t n = 0;
  while ((n = copy_file_range(from, nullptr, to, nullptr, 1 << 30, 0)) > 0) {
  }
  if (n < 0) return Failure(request[2]);
  close(from);
  if (close(to) != 0) return Failure(request[2]);
  return {"ok", std::to_string(Nanos(CLOCK_MONOTONIC) - wall),
          std::to_string((Nanos(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1000)};
}

using Seen = std::set<std::pair<dev_t, ino_t>>;

uint64_t Allocated(int parent, const char* name, Seen& seen) {
  struct stat status {};
  if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  if (status.st_nlink > 1 && !S_ISDIR(status.st_mode) &&
      !seen.emplace(status.st_dev, status.st_ino).second)
    return 0;
  uint64_t sum = static_cast<uint64_t>(status.st_blocks) * 512;
  if (!S_ISDIR(status.st_mode)) return sum;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  DIR* dir = fd < 0 ? nullptr : fdopendir(fd);
  if (!dir) return sum;
  while (dirent* entry = readdir(dir)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      sum += Allocated(dirfd(dir), entry->d_name, seen);
  }
  closedir(dir);
  return sum;
}

Message DiskUse(const Message& request) {
  Seen seen;
  uint64_t sum = 0;
  for (size_t i = 1; i < request.size(); ++i)
    sum += Allocated(AT_FDCWD, request[i].c_str(), seen);
  return {"ok", std::to_string(sum)};
}

Message Settle(const Message& request) {
  int fd = open(request[1].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || syncfs(fd) != 0) return Failure(request[1]);
  close(fd);
  return {"ok"};
}

Message Spread(const Message& request) {
  int fd = open(request[1].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failure(request[1]);
  int flags = 0;
  // Other file systems have no such flag, and no such trap.
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_TOPDIR_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
  }
  close(fd);
  return {"ok"};
}

Message Answer(Message& request) {
  const std::string verb = request.empty() ? "" : request[0];
  if (verb == "run" && request.size() > 3) return Run(request);
  if (verb == "copy" && request.size() == 3) return Copy(request);
  if (verb == "du" && request.size() > 1) return DiskUse(request);
  if (verb == "settle" && request.size() == 2) return Settle(request);
  if (verb == "spread" && request.size() == 2) return Spread(request);
  return {"error", "not understood: " + verb};
}

}  // namespace

int main() {
  Message request;
  while (Receive(request)) Send(Answer(request));
  return 0;
}
