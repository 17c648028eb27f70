#include "cli/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace belay {

Pager::Pager(Terminal& term, const Environment& env) : term_(term) {
  if (!term.out_is_terminal() || term.json() || env.pager == "cat") return;
  const std::string command = env.pager.empty() ? "less" : env.pager;
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return;
  // The command is the user's own words, as in git: a shell takes them apart. Its
  // failure to find the program shows as exit 127, after which `cat` does the work.
  const std::string script = command + "; [ $? -ne 127 ] || exec cat";
  term.FlushOut();
  const pid_t child = fork();
  if (child < 0) {
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return;
  }
  if (child == 0) {
    dup2(pipe_fds[0], 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    // Quit when it fits one screen, show colours, leave the text there.
    setenv("LESS", "FRX", /*overwrite=*/0);
    execl("/bin/sh", "sh", "-c", script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  child_ = child;
  close(pipe_fds[0]);
  saved_out_ = fcntl(1, F_DUPFD_CLOEXEC, 3);
  dup2(pipe_fds[1], 1);
  close(pipe_fds[1]);
}

Pager::~Pager() {
  if (child_ < 0) return;
  term_.FlushOut();
  if (saved_out_ >= 0) {
    dup2(saved_out_, 1);
    close(saved_out_);
  } else {
    close(1);
  }
  // Ctrl-C is for the pager while it runs.
  auto* before = signal(SIGINT, SIG_IGN);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
  signal(SIGINT, before);
}

}  // namespace belay
