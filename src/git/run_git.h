#pragma once

// The one way git is run: hardened, with a deadline, for one repository.
//
// Guarantees
//   * Nothing else is run by it: no hook, fsmonitor, filter, pager, alias, editor, gpg
//     or credential helper; neither the user's nor the system's settings are read;
//     missing objects of a partial clone are not fetched; nothing of our own
//     environment reaches it.
//   * It takes no lock that it can do without, and ends at the deadline.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/running_process.h"
#include "base/subprocess.h"
#include "git/ask_git.h"

namespace belay {

// What git wrote, line by line, without their ends.
std::vector<std::string> GitLines(std::string_view text);

class GitRunner {
 public:
  // kNotFound, with a hint, when no git is installed. `repository` and `options` must
  // outlive it. The deadline is for all runs together.
  static Result<GitRunner> Find(Fs& fs, const GitRepository& repository,
                                const AskGitOptions& options);

  // Whatever came of it. `variables`: "NAME=value" besides ours.
  Result<ProcessResult> Try(const std::vector<std::string>& command,
                            std::string input = {},
                            const std::vector<std::string>& variables = {});
  // What it wrote; an error with git's own words unless it ended well.
  Result<std::string> Run(const std::vector<std::string>& command,
                          std::string input = {},
                          const std::vector<std::string>& variables = {});
  // For what is too long for memory. No deadline but that it must not stand still for
  // the time that is given for a run.
  Result<std::unique_ptr<RunningProcess>> Start(
      const std::vector<std::string>& command,
      const std::vector<std::string>& variables = {});
  // The time for all runs together is over: for who reads from a process that Start()
  // made.
  bool IsLate() const { return std::chrono::steady_clock::now() >= deadline_; }
  // All later runs look for objects there, too; `first`: before they look in the
  // repository, for what is damaged in that. Then what a run makes goes there.
  void AlsoLookIn(std::string objects, bool first = false) {
    objects_ = std::move(objects);
    objects_first_ = first;
  }
  // Git's own words in an error, unless it ended well.
  Status Judge(const std::vector<std::string>& command,
               const ProcessResult& result) const;

 private:
  ProcessOptions Options(const std::vector<std::string>& command,
                         const std::vector<std::string>& variables) const;
  GitRunner(AbsPath program, const GitRepository& repository,
            const AskGitOptions& options)
      : program_(std::move(program)),
        repository_(&repository),
        options_(&options),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(options.timeout_ms)) {}

  AbsPath program_;
  const GitRepository* repository_;
  const AskGitOptions* options_;
  std::chrono::steady_clock::time_point deadline_;
  std::string objects_;
  bool objects_first_ = false;
};

}  // namespace belay
