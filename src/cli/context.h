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
  std::string hint = {};                       // of one that is not: what it may be
  std::optional<std::string> moved_from = {};  // the root that it looks like
  std::vector<std::string> doubts = {};        // about the last checkpoint
  std::optional<Error> damage = {};            // of the store; the rest is what is left
  std::string last_json = {};  // the last checkpoint as a JSON object, or empty
  std::string last_text = {};  // the same for a person, one line
  std::optional<std::string> recovered = {};  // what was finished or taken back now
  bool watching = false;
  struct Failure {
    std::string at;  // UTC, as in JSON
    std::string what;
    bool passing = false;  // it keeps no checkpoint from being made
  };
  std::vector<Failure> failures = {};
};

// The innermost root that holds `dir`; absent when there is none. One that is no longer
// protected is told as such, with its last checkpoint. `dir` need not exist any more.
Result<std::optional<RootStatus>> LookUpRoot(CommandContext& ctx, const AbsPath& dir);

// What hooks could not do, of every root: where the store cannot be opened.
std::vector<RootStatus::Failure> FailuresWithoutStore(CommandContext& ctx);
// Those of no root: where none is protected.
std::vector<RootStatus::Failure> FailuresOfNoRoot(CommandContext& ctx);

// The root this command is about: --root, else the current directory, or the protected
// root around it. A directory that is gone is accepted only if it was a root.
Result<RootStatus> FindRoot(CommandContext& ctx);

// The user's settings with the project's over them; warnings are shown.
Result<Settings> LoadSettingsFor(CommandContext& ctx, const AbsPath& root);

// Where nothing is protected: why the user's own settings do not count, and what of it.
// Nothing when they do.
std::optional<std::string> TroubleOfOwnSettings(CommandContext& ctx);
// Why no checkpoint of it can be made: it is gone, or something else is in its place.
// `may_be_gone`: then it can be brought back.
Status CheckRootIsThere(CommandContext& ctx, const AbsPath& root,
                        bool may_be_gone = false);

// The hint for one that is gone and never had a checkpoint.
std::string WithoutHistory(const AbsPath& root);

// The same for commands that must work although a settings file makes no sense: that is
// said, the lines that do are obeyed, and of the others the defaults. Never fails.
struct RescueSettings {
  Settings settings;
  bool complete = true;  // false: what else the files say is not known
};
RescueSettings LoadSettingsToRescue(CommandContext& ctx, const AbsPath& root);
// The same for what asks hooks.before_rollback first. kRefused where it is not known
// whom that asks, for which a project's file is never the reason.
Result<RescueSettings> LoadSettingsToRollBack(CommandContext& ctx, const AbsPath& root);

// Of `enabled = false`: which file says so, and what to do.
Error SwitchedOff(const Settings& settings);

// For the files of commands that are still to be written.
inline ExitCode NotInThisVersion(CommandContext& ctx) {
  return ctx.term.NotYet("belay " + std::string(ctx.command.name));
}

}  // namespace belay
