#pragma once

// What the dialects share: bounded fields, tables of tools, what a call is about.
//
// A table names an agent's tools. One that is not in it may write anything.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "agent/json.h"

namespace belay {

// What an agent calls an event.
struct KnownEvent {
  std::string_view name;
  EventKind kind;
};

// Longest id, name of a tool or a kind, and longest path that an event holds. What is
// longer is not cut, it counts as missing: half an id is another id.
inline constexpr size_t kMaxId = 1024, kMaxPath = 64 << 10;
// Most paths of one call. One that names more counts as writing anything.
inline constexpr size_t kMaxPaths = 4096;

// One tool of an agent.
struct KnownTool {
  std::string_view name;
  ToolReach reach = ToolReach::kWrites;
  // The member of its input that tells people what it is about, and for an edit tool
  // the path it writes.
  std::string_view about = {};
  std::string_view about_too = {};  // instead, when that one is missing
};

// The payload, and the member of each kind it has.
class Payload {
 public:
  explicit Payload(const Json& object) : fields_(object) {}

  std::optional<Json> Get(std::string_view name) const;
  // The first of the names that is there and of that kind.
  std::optional<std::string> Id(std::initializer_list<std::string_view> names) const;
  std::string Text(std::initializer_list<std::string_view> names, size_t limit) const;
  std::optional<std::string> Path(std::initializer_list<std::string_view> names) const;
  bool Flag(std::string_view name) const;

 private:
  JsonFields fields_;
};

std::optional<std::string> IdOf(const std::optional<Json>& value);
std::optional<std::string> PathOf(const std::optional<Json>& value);
// An absolute path without "//", "." and "..", or nothing.
std::string DirectoryOf(const std::optional<Json>& value);
// The same of what an event calls its directory; a relative one as it is.
std::string PlaceIn(const std::optional<std::string>& path);

// One line for people: runs of white space become one space, cut at kMaxWhat.
std::string OneLine(std::string_view text);
// The same of a path, from `cwd` on where it lies in it.
std::string ShownPath(std::string_view path, std::string_view cwd);

// The call that `name` and `input` make, by the table: fingerprint, reach, paths, what.
// An edit tool whose path is not understood may write anything.
ToolCall MakeCall(std::span<const KnownTool> table, std::string name,
                  const std::optional<Json>& input, std::string_view cwd);
// The fingerprint alone.
std::string FingerprintOf(std::string_view name, const std::optional<Json>& input);

// Every path that a patch in Codex's format names; more than that is harmless, one less
// is not. Nothing when the text is no such patch, or one is not a path.
std::optional<std::vector<std::string>> PatchPaths(std::string_view patch);
// The same into a call whose input holds a patch: it writes these and nothing else.
// What is not understood leaves the call as it is.
void TakePatch(ToolCall& call, const std::optional<Json>& input, std::string_view cwd);

// Claude Code and Qwen Code tell the agent by a "prompt" what became of a task in the
// background. What such a prompt says has ended; nothing when a person wrote it.
std::optional<std::vector<std::string>> EndedTasks(std::string_view prompt);

// What most payloads have in common, under the names that any of them uses: who, where,
// which event (`given` when the payload does not say), and what that event tells. Not
// the call, the anchor, and whether a person wrote the prompt.
HookEvent ReadCommon(AgentKind agent, std::span<const KnownEvent> events,
                     const Payload& payload, std::string_view given);
// The call of a payload that has its name, input and id at the top.
ToolCall ReadCall(std::span<const KnownTool> table, const Payload& payload,
                  std::string_view cwd);
bool IsCall(EventKind kind);  // a beginning or an end
// A member of a call's input that is true.
bool InputFlag(const Payload& payload, std::string_view name);

// --- the agents ----------------------------------------------------------------------

HookEvent ParseClaude(const Payload& payload, std::string_view given);
HookEvent ParseCodex(const Payload& payload, std::string_view given);
HookEvent ParseOpencode(const Payload& payload, std::string_view given);
HookEvent ParseGemini(const Payload& payload, std::string_view given);
HookEvent ParseQwen(const Payload& payload, std::string_view given);
HookEvent ParseCopilot(const Payload& payload, std::string_view given);
HookEvent ParseReasonix(const Payload& payload, std::string_view given);
HookEvent ParseCline(const Payload& payload, std::string_view given);
HookEvent ParseCrush(const Payload& payload, std::string_view given);
HookEvent ParseGoose(const Payload& payload, std::string_view given);
HookEvent ParseHermes(const Payload& payload, std::string_view given);
HookEvent ParseGeneric(const Payload& payload, std::string_view given);

}  // namespace belay
