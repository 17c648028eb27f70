#pragma once

// Entries of ours among the hooks of a settings file.
//
// Pure: text in, text out. What is somebody else's stays as it is, to the byte; what
// has not the shape that the agent's settings have is refused with file and line.

#include <string>
#include <vector>

#include "agent/install_profiles_internal.h"
#include "agent/jsonc.h"

namespace belay {

// Brings every event of the profile to one entry as it should be, and removes ours from
// events that are not wanted (any more). An entry that somebody made more of stays, and
// gets none beside it.
Result<Jsonc> MergeHooks(Jsonc doc, const AgentProfile& profile,
                         const HookPrograms& programs);

// Takes every entry of ours out. Lists that it leaves empty go too, unless `before`,
// the file as it was once, has them; nullptr: not known, they go.
Result<Jsonc> RemoveHooks(Jsonc doc, const AgentProfile& profile,
                          const HookPrograms& programs, const Jsonc* before);

// Nothing but what a new file of ours holds besides hooks: `{}`, or `{"version": 1}`.
bool IsBareSettings(const Jsonc& doc, const AgentProfile& profile);

// What is there for one event.
struct RegisteredHook {
  std::string event;
  std::string program = {}, command = {};
  std::optional<std::string> matcher = {};
  std::optional<int64_t> timeout = {};
  size_t group = 0, position = 0;  // of a flat list the position alone
  bool right = false;              // as MergeHooks would have it, or leaves it
  bool changed = false;            // somebody made more of the command
};
Result<std::vector<RegisteredHook>> FindHooks(const Jsonc& doc,
                                              const AgentProfile& profile,
                                              const HookPrograms& programs);

}  // namespace belay
