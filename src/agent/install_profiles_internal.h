#pragma once

// What `belay install` knows of each agent: which file takes hooks, in which shape, for
// which events, and what the hook runs. Facts of the agents, no decisions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "agent/install.h"
#include "base/path.h"

namespace belay {

enum class HookShape : uint8_t {
  kGrouped,  // hooks.EVENT = [{matcher, hooks: [{type, command, timeout}]}]
  kFlat,     // hooks.EVENT = [{command, timeout}]
  kScripts,  // a directory of programs, one an event
  kPlugin,   // one file of the agent's own language
};

struct HookEventSpec {
  std::string_view name;
  bool matched = false;  // goes by tool: takes a matcher
  int64_t timeout = 0;   // in the agent's own unit
};

struct AgentProfile {
  AgentKind agent;
  std::string_view program;  // as PATH has it
  std::string_view title;    // "Claude Code"
  HookShape shape;
  std::span<const HookEventSpec> events;
  std::string_view command_key = "command";
  std::string_view timeout_key = "timeout";
  std::string_view label_key = {};  // of an entry: says "belay"
  std::string_view matcher = {};    // of events that go by tool; empty: none is written
  bool typed = false;               // "type": "command"
  bool event_argument = false;      // the payload does not name the event
  int64_t file_version = 0;         // "version" of the settings file
  bool has_commands = false;        // takes /rollback as a file
  bool guarded = false;  // a hook whose program is gone keeps it from going on
};

// Of every agent but the generic one.
const AgentProfile& ProfileOf(AgentKind agent);

// "/usr/bin/belay hook crush", for a shell.
std::string HookCommand(const AgentProfile& profile, const AbsPath& program,
                        std::string_view event);
// The same as settings have it: where the agent needs a guard, a shell's line that does
// nothing when the program was removed.
std::string HookLine(const AgentProfile& profile, const AbsPath& program,
                     std::string_view event);
// Programs whose hooks are ours: any that is called belay, the one that runs now, and
// whatever hooks were written for before.
struct HookPrograms {
  AbsPath now;
  std::vector<std::string> earlier = {};
  bool Has(std::string_view program) const;
};
// The words of a command in which the shell would do nothing but take quotes away;
// empty for any other.
std::vector<std::string> PlainWords(std::string_view command);
// Whether a command is one of ours, of this version or another, from wherever it is
// run: `[/path/]belay hook AGENT [EVENT]`, guarded or not, and nothing more. `belay
// hook` alone is of the first days. The program's path.
std::optional<std::string> ProgramOfHook(std::string_view command, AgentKind agent,
                                         const HookPrograms& programs);
// The same of a command that runs ours and does more: with its output elsewhere, with
// `|| true` behind it, from another directory. Somebody wrote it.
std::optional<std::string> ProgramInCommand(std::string_view command, AgentKind agent,
                                            const HookPrograms& programs);

struct AgentPlaces {
  AbsPath hooks;  // the settings file; of scripts the directory; of a plugin its file
  std::optional<AbsPath> command = {};  // /rollback
  std::optional<AbsPath> trust = {};    // where Codex notes which hooks it may run
};
// Looks only which of two names a project uses.
Result<AgentPlaces> PlacesOf(Fs& fs, const AgentProfile& profile,
                             const InstallPlaces& places);

// --- files that are wholly ours ------------------------------------------------------
std::string CommandFile(const AgentProfile& profile, const AbsPath& program);
std::string PluginFile(const AbsPath& program);
std::string ScriptFile(const AgentProfile& profile, const AbsPath& program,
                       std::string_view event);
// What a program for an event may be called; Cline runs all of them.
std::vector<AbsPath> ScriptNames(const AbsPath& dir, std::string_view event);
// Whether such a file is one that we wrote, as it is or changed since.
bool LooksLikeOurs(const AgentProfile& profile, std::string_view content);
// The program that such a file runs, when it is as we write it.
std::optional<std::string> ProgramOfFile(std::string_view content);

}  // namespace belay
