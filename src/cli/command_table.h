#pragma once

// The one command table. The parser, `belay --help`, every `belay COMMAND --help`, the
// man pages and the shell completions all come out of it, so they cannot disagree.
//
// All of it is constexpr: the program starts without building anything. A command whose
// `run` is null, and a flag that is not `available`, are known and documented but
// answer "not in this version yet" (exit 2).

#include <span>
#include <string_view>

#include "cli/exit_code.h"

namespace belay {

struct CommandContext;  // cli/context.h

struct FlagSpec {
  std::string_view name;        // "--session"
  char letter = 0;              // 'm' for -m
  std::string_view value = {};  // "ID", or "a|b|c" to choose from; empty: a switch
  std::string_view help = {};
  bool repeatable = false;
  bool available = true;
};

struct PositionalSpec {
  std::string_view name;  // "REF", "DIR", or "a|b|c" to choose from
  bool optional = false;
  bool many = false;  // takes all that follow
};

struct Example {
  std::string_view command;  // with "belay"
  std::string_view about;
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;                 // one line, no full stop
  std::span<const std::string_view> usage;  // without "belay "
  std::string_view about;                   // paragraphs, "\n\n" between
  std::span<const FlagSpec> flags = {};     // besides the global ones
  std::span<const PositionalSpec> args = {};
  std::string_view rest = {};  // what comes behind `--`: "PATH" or "COMMAND"
  std::span<const Example> examples = {};
  ExitCode (*run)(CommandContext&) = nullptr;
  bool hidden = false;
  bool whole_store = false;  // --root cannot limit it; said when it is given

  bool available() const { return run != nullptr; }
};

struct CommandGroup {
  std::string_view title;
  std::span<const CommandSpec> commands;
};

std::span<const CommandGroup> CommandGroups();
const CommandSpec* FindCommand(std::string_view name);
std::string_view NearestCommand(std::string_view name);  // empty: none is near

// --json, --root DIR, -q, -v, --help, --version: with every command.
std::span<const FlagSpec> GlobalFlags();
// The flag of that name or letter, the command's own first; nullptr when unknown.
const FlagSpec* FindFlag(const CommandSpec* command, std::string_view name);
const FlagSpec* FindFlag(const CommandSpec* command, char letter);
std::string_view NearestFlag(const CommandSpec* command, std::string_view name);

// True for "a|b|c": a list of words rather than a placeholder.
inline bool IsChoice(std::string_view value) {
  return value.find('|') != std::string_view::npos && value.front() >= 'a';
}

// The parts of the table, one per file.
std::span<const CommandSpec> ProtectCommands();
std::span<const CommandSpec> LookCommands();
std::span<const CommandSpec> GoBackCommands();
std::span<const CommandSpec> ConversationCommands();
std::span<const CommandSpec> InvestigateCommands();
std::span<const CommandSpec> AgentCommands();
std::span<const CommandSpec> UpkeepCommands();
std::span<const CommandSpec> SettingCommands();

}  // namespace belay
