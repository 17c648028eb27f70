#pragma once

// Real git in a real directory, for tests of what changes a repository: GitWorld is for
// those that must not.

#include <string>
#include <vector>

#include "base/path.h"
#include "base/subprocess.h"

namespace belay::test {

inline Result<std::string> RunProgram(const AbsPath& program, const AbsPath& dir,
                                      std::vector<std::string> arguments) {
  ProcessOptions options{.program = program};
  options.directory = dir;
  options.arguments = std::move(arguments);
  options.environment = {"PATH=/usr/bin:/bin",
                         "HOME=/nonexistent",
                         "GIT_CONFIG_NOSYSTEM=1",
                         "GIT_CONFIG_GLOBAL=/dev/null",
                         "GIT_OPTIONAL_LOCKS=0",
                         "GIT_AUTHOR_NAME=n",
                         "GIT_AUTHOR_EMAIL=e",
                         "GIT_COMMITTER_NAME=n",
                         "GIT_COMMITTER_EMAIL=e",
                         "GIT_AUTHOR_DATE=1700000000 +0000",
                         "GIT_COMMITTER_DATE=1700000000 +0000"};
  BELAY_TRY(ProcessResult result, RunProcess(options));
  if (!result.ok()) return Error(Errc::kInvalid, "failed: " + result.errors);
  return result.output;
}

inline Status Git(const AbsPath& dir, std::vector<std::string> arguments) {
  auto done = RunProgram(AbsPath::Literal("/usr/bin/git"), dir, std::move(arguments));
  return done.ok() ? Ok() : std::move(done).error();
}

inline Status Shell(const AbsPath& dir, const std::string& text) {
  auto done = RunProgram(AbsPath::Literal("/bin/sh"), dir, {"-ec", text});
  return done.ok() ? Ok() : std::move(done).error();
}

// All that people see of a repository, and the files.
inline Result<std::string> See(const AbsPath& project) {
  std::string out;
  const AbsPath git = AbsPath::Literal("/usr/bin/git");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"status", "--porcelain=v2", "--branch"},
           {"diff"},
           {"diff", "--cached"},
           {"log", "--format=%H %s"},
           {"stash", "list"},
           {"for-each-ref", "refs/heads", "refs/tags", "refs/stash"},
           {"symbolic-ref", "-q", "HEAD"}}) {
    BELAY_TRY(std::string said, RunProgram(git, project, command));
    out += "== " + command[0] + "\n" + said;
  }
  BELAY_TRY(std::string files,
            RunProgram(AbsPath::Literal("/bin/sh"), project,
                       {"-ec",
                        "find . -name .git -prune -o -type f -print0 | sort -z | "
                        "xargs -0 sha256sum"}));
  return out + files;
}

// What a command says, without the newline at the end.
inline std::string Said(const AbsPath& dir, std::vector<std::string> arguments) {
  auto done = RunProgram(AbsPath::Literal("/usr/bin/git"), dir, std::move(arguments));
  if (!done.ok()) return done.error().what;
  while (!done->empty() && done->back() == '\n') done->pop_back();
  return *done;
}

}  // namespace belay::test
