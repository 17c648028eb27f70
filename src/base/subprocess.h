#pragma once

// RunProcess runs another program to its end and returns what it wrote.
//
// Guarantees
//   * Never a shell, never a search of PATH: the program is an absolute path, the
//     arguments and the environment are exactly what was given.
//   * The child gets no descriptor but its three pipes, and default signal handling.
//   * It has its own process group. At the deadline, over the output cap, and when it
//     has exited and left children behind, the whole group is killed (SIGKILL, so a
//     child that ignores SIGTERM makes no difference) and RunProcess returns; and when
//     SIGINT, SIGTERM or SIGHUP end us meanwhile. A grandchild that moves to another
//     group or session escapes.
//
// Threads: any thread; SIGPIPE is blocked for the calling thread while it runs, so a
// child that does not read its input does no harm.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace belay {

struct ProcessOptions {
  AbsPath program;
  std::vector<std::string> arguments = {};    // without the program's own name
  std::vector<std::string> environment = {};  // "NAME=value"; nothing is inherited
  std::optional<AbsPath> directory = std::nullopt;  // to start in; else ours
  std::string input = {};                           // its stdin, then end of file
  int64_t timeout_ms = 10'000;
  size_t output_cap = 16u << 20;  // of stdout and stderr each
  // Its stdout is a file in memory instead of a pipe: for programs that end before a
  // pipe has taken all that they said. Its size is looked at twenty times a second.
  bool output_is_file = false;
};

struct ProcessResult {
  enum class End {
    kExited,         // `code` is its exit code
    kSignalled,      // `code` is the signal, not sent by us
    kTimedOut,       // we killed it at the deadline
    kTooMuchOutput,  // we killed it over the cap; the output is cut there
  };
  End end = End::kExited;
  int code = 0;
  std::string output;
  std::string errors;  // stderr

  bool ok() const { return end == End::kExited && code == 0; }
};

// Runs a program as a shell would: our input, output, environment and process group; it
// is looked for in PATH. Its exit code, or 128 and the signal that ended it. While it
// runs, Ctrl-C is the program's business; a signal that some process sends to us alone
// (INT, QUIT, TERM, HUP) is passed on to it. kNotFound, kRefused: it did not start.
Result<int> RunAttached(const std::vector<std::string>& words, bool output_to_stderr);

// Whether RunAttached would find `word` to run: as it is when it has a slash, else in
// the directories of `path` (PATH; without one nobody can tell, and the answer is yes).
// kNotFound, kRefused: as RunAttached would say.
Status CheckProgram(const std::string& word, std::string_view path);

// Starts this very program again with other arguments, and lets go of it: a session of
// its own, no input, no output, our environment.
Status StartSelfDetached(const std::vector<std::string>& arguments);

// An error means that the program did not start.
Result<ProcessResult> RunProcess(const ProcessOptions& options);

}  // namespace belay
