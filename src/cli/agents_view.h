#pragma once

// Agents as `belay install --list` and `belay doctor` show them, and where their
// settings are for this user.

#include <string>
#include <vector>

#include "agent/install.h"
#include "base/json.h"
#include "cli/context.h"

namespace belay {

// Of the environment. `project`: for the project of --root, or of the current
// directory: a protected directory, else a git work tree, else itself.
Result<InstallPlaces> FindInstallPlaces(CommandContext& ctx, bool project);

// The names on the command line, each once; all where there are none. kInvalid, with
// the nearest name: one that is not an agent.
Result<std::vector<AgentKind>> AgentsNamed(const std::vector<std::string_view>& words);

// "all", "some", "none".
std::string_view HooksWord(const HooksAt& hooks);

// Hooks of ours are registered somewhere.
bool IsConnected(const AgentStatus& status);
// "codex: connected, not trusted; last event 2026-11-15 10:00"
std::string AgentLine(const AgentStatus& status);

struct SeenAgent {
  AgentStatus status;
  std::string version = {};  // empty: not asked for, or not told
};

// {"agent":...,"found":...,...}
void WriteAgentJson(JsonWriter& json, const SeenAgent& agent);

// What is wrong with a connection, and what to do about it.
struct AgentFindings {
  std::vector<std::string> problems;  // nothing is recorded because of it
  std::vector<std::string> notes;
};
AgentFindings JudgeAgent(const AgentStatus& status);

}  // namespace belay
