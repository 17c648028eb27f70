#include "cli/command_table.h"

#include <vector>

#include "base/nearest.h"
#include "cli/commands.h"

namespace belay {

namespace {

constexpr FlagSpec kGlobalFlags[] = {
    {.name = "--json", .help = "one JSON document on standard output"},
    {.name = "--root",
     .value = "DIR",
     .help = "the protected directory; default: the one around the current directory"},
    {.name = "--quiet", .letter = 'q', .help = "say less"},
    {.name = "--verbose",
     .letter = 'v',
     .help = "say where things are and how long it took, on standard error"},
    {.name = "--help", .letter = 'h', .help = "show help, with an example"},
    {.name = "--version", .help = "show the version"},
};

constexpr PositionalSpec kHelpArgs[] = {{.name = "COMMAND", .optional = true}};
constexpr std::string_view kHelpUsage[] = {"help [COMMAND]"};
constexpr Example kHelpExamples[] = {
    {"belay help config", "the same as belay config --help"}};

constexpr PositionalSpec kManArgs[] = {{.name = "OUTDIR"}};
constexpr std::string_view kManUsage[] = {"__man OUTDIR"};
constexpr Example kManExamples[] = {
    {"belay __man build/man", "write belay.1 and a page for each command"}};

constexpr std::string_view kAnchorUsage[] = {"__anchor [--background]"};
constexpr FlagSpec kAnchorFlags[] = {{.name = "--background", .help = "in no hurry"}};
constexpr Example kAnchorExamples[] = {{"belay __anchor", "those that are missing"}};

constexpr std::string_view kSlashUsage[] = {"__slash AGENT [WORDS...]"};
constexpr PositionalSpec kSlashArgs[] = {
    {.name = "AGENT"}, {.name = "WORDS", .optional = true, .many = true}};
constexpr Example kSlashExamples[] = {{"belay __slash claude 3", "what it would do"}};

constexpr CommandSpec kHelpCommands[] = {
    {.name = "help",
     .summary = "explain a command",
     .usage = kHelpUsage,
     .about = "Shows the list of commands, or all about one of them.",
     .args = kHelpArgs,
     .examples = kHelpExamples,
     .run = CmdHelp},
    {.name = "__anchor",
     .summary = "make the refs of git.refs",
     .usage = kAnchorUsage,
     .about = "What a checkpoint starts in the background when git.refs is on.",
     .flags = kAnchorFlags,
     .examples = kAnchorExamples,
     .run = CmdAnchor,
     .hidden = true},
    {.name = "__slash",
     .summary = "answer /rollback in an agent",
     .usage = kSlashUsage,
     .about = "What the command files that `belay install` writes run.",
     .args = kSlashArgs,
     .examples = kSlashExamples,
     .run = CmdSlash,
     .hidden = true},
    {.name = "__man",
     .summary = "write the man pages",
     .usage = kManUsage,
     .about = "For packagers: writes the man pages into an existing directory.",
     .args = kManArgs,
     .examples = kManExamples,
     .run = CmdMan,
     .hidden = true},
};

}  // namespace

std::span<const CommandGroup> CommandGroups() {
  static const CommandGroup groups[] = {
      {"Protect a directory", ProtectCommands()},
      {"Look", LookCommands()},
      {"Go back", GoBackCommands()},
      {"Conversations", ConversationCommands()},
      {"Find out", InvestigateCommands()},
      {"Agents and pages", AgentCommands()},
      {"Upkeep", UpkeepCommands()},
      {"Settings", SettingCommands()},
      {"Help", kHelpCommands},
  };
  return groups;
}

const CommandSpec* FindCommand(std::string_view name) {
  for (const CommandGroup& group : CommandGroups())
    for (const CommandSpec& command : group.commands)
      if (command.name == name) return &command;
  return nullptr;
}

std::string_view NearestCommand(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CommandGroup& group : CommandGroups())
    for (const CommandSpec& command : group.commands)
      if (!command.hidden) names.push_back(command.name);
  return NearestWord(name, names);
}

std::span<const FlagSpec> GlobalFlags() { return kGlobalFlags; }

const FlagSpec* FindFlag(const CommandSpec* command, std::string_view name) {
  if (command != nullptr)
    for (const FlagSpec& flag : command->flags)
      if (flag.name == name) return &flag;
  for (const FlagSpec& flag : kGlobalFlags)
    if (flag.name == name) return &flag;
  return nullptr;
}

const FlagSpec* FindFlag(const CommandSpec* command, char letter) {
  if (command != nullptr)
    for (const FlagSpec& flag : command->flags)
      if (flag.letter == letter) return &flag;
  for (const FlagSpec& flag : kGlobalFlags)
    if (flag.letter == letter) return &flag;
  return nullptr;
}

std::string_view NearestFlag(const CommandSpec* command, std::string_view name) {
  std::vector<std::string_view> names;
  if (command != nullptr)
    for (const FlagSpec& flag : command->flags) names.push_back(flag.name);
  for (const FlagSpec& flag : kGlobalFlags) names.push_back(flag.name);
  return NearestWord(name, names);
}

}  // namespace belay
