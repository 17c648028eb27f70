#pragma once

// CommandContext: what a command is given. It holds references; RunCli owns all of it.

#include <optional>
#include <string>
#include <vector>

#include "base/fs.h"
#include "cli/args.h"
#include "cli/command_table.h"
#include "cli/environment.h"
#include "cli/terminal.h"
#include "core/settings.h"

namespace belay {

struct CommandContext {
  Fs& fs;
  const Environment& env;
  Terminal& term;
  const CommandSpec& command;
  const Args& args;
};

// One root as `belay status` tells of it.
struct RootStatus {
  AbsPath root;
  bool is_protected = false;
  std::string hint = {};       // of one that is not: what it may be
  std::string last_json = {};  // the last checkpoint as a JSON object, or empty
  std::string last_text = {};  // the same for a person, one line
  std::optional<std::string> recovered = {};  // what was finished or taken back now
  bool watching = false;
  struct Failure {
    std::string at;  // UTC, as in JSON
    std::string what;
  };
  std::vector<Failure> failures = {};
};

// The innermost root that holds `dir`; absent when there is none. One that is no longer
// protected is told as such, with its last checkpoint. `dir` need not exist any more.
Result<std::optional<RootStatus>> LookUpRoot(CommandContext& ctx, const AbsPath& dir);

// The root this command is about: --root, else the current directory, or the protected
// root around it. A directory that is gone is accepted only if it was a root.
Result<RootStatus> FindRoot(CommandContext& ctx);

// The user's settings with the project's over them; warnings are shown.
Result<Settings> LoadSettingsFor(CommandContext& ctx, const AbsPath& root);

// For the files of commands that are still to be written.
inline ExitCode NotInThisVersion(CommandContext& ctx) {
  return ctx.term.NotYet("belay " + std::string(ctx.command.name));
}

}  // namespace belay
