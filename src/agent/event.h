#pragma once

// HookEvent: what an agent tells by a hook, in one shape for all agents.
//
// An adapter (agent/dialects.h) reads an agent's own words into it. It says what was
// said and no more: what is not in the payload stays empty, and nothing is guessed. All
// of it comes from outside and is hostile: texts are bytes of any kind, of bounded
// length (below), and paths may lead anywhere.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

enum class AgentKind : uint8_t {
  kClaude,
  kCodex,
  kOpencode,
  kGemini,
  kQwen,
  kCopilot,
  kReasonix,
  kCline,
  kCrush,
  // Set up by hand (docs/hooks.md), not by `belay install`.
  kGoose,
  kHermes,
  kGeneric,
};
inline constexpr AgentKind kAllAgents[] = {
    AgentKind::kClaude, AgentKind::kCodex,   AgentKind::kOpencode, AgentKind::kGemini,
    AgentKind::kQwen,   AgentKind::kCopilot, AgentKind::kReasonix, AgentKind::kCline,
    AgentKind::kCrush,  AgentKind::kGoose,   AgentKind::kHermes,   AgentKind::kGeneric};
// Those that `belay install` can set up.
inline constexpr bool CanInstall(AgentKind agent) { return agent <= AgentKind::kCrush; }
// "claude": as the command line has it, and as checkpoints name it.
std::string_view AgentName(AgentKind agent);
std::optional<AgentKind> AgentNamed(std::string_view name);

enum class EventKind : uint8_t {
  kSessionStart,  // also of one that is resumed: `source`
  kPrompt,        // somebody submitted one: a turn begins
  kToolBegin,
  kToolEnd,  // also of a call that failed: `failed`
  kTurnEnd,  // the agent waits for its user
  kSubagentEnd,
  kTaskEnd,  // by a call that writes nothing, a task in the background: `ended_tasks`
  kCompact,  // the conversation is about to be shortened, or was
  kSessionEnd,
  kOther,  // known, and of no interest
};

// Whether a call may change files. What is not known to only read may write.
enum class ToolReach : uint8_t {
  kReads,   // on the agent's list of tools that never write
  kPaths,   // an edit tool: it writes `paths` and nothing else
  kWrites,  // anything: a shell, an unknown tool, one of an MCP server
};

struct ToolCall {
  std::string name;  // as the agent calls it: "Bash"
  std::optional<std::string> id = {};
  std::string fingerprint = {};  // of name and input, to pair calls that have no id
  ToolReach reach = ToolReach::kWrites;
  // What an edit tool names, as it was written: absolute, or from `cwd` on.
  std::vector<std::string> paths = {};
  std::string what = {};    // for people: the command, the path, the pattern
  bool background = false;  // goes on after its end was told
  // Of one in the background, after its end: what its later messages call it.
  std::optional<std::string> task = {};
  bool failed = false;
};

// One message of a conversation, as a host tells it.
struct HookMessage {
  std::string role;  // "user", "assistant", ...
  std::string id = {};
  std::optional<uint64_t> index = {};
  std::string text = {};  // at most kMaxPrompt
};

struct HookEvent {
  AgentKind agent = AgentKind::kGeneric;
  EventKind kind = EventKind::kOther;
  std::string host = {};     // of a generic event: what the agent calls itself
  std::string session = {};  // the agent's own id; empty: not said
  // The session it goes on with or, with `source` "subagent", was started by; and how
  // many turns of that are its own too, when it says.
  std::optional<std::string> parent_session = {};
  std::optional<uint64_t> parent_turns = {};
  // Absolute, without "//", "." and "..", or empty. Of a host it may be from where the
  // hook runs on, until TakePlace().
  std::string cwd = {};
  bool cwd_is_hooks = false;  // nobody said it: it is where the hook runs
  std::vector<std::string> workspaces = {};  // where the agent says its project is
  std::optional<std::string> transcript = {};
  std::optional<std::string> subagent = {};       // its id
  std::optional<std::string> subagent_type = {};  // "Explore"
  std::optional<std::string> subagent_transcript = {};
  // The agent's own stable id of the turn or the message that began it.
  std::optional<std::string> anchor = {};
  // Of a host that tells both: the message that began it.
  std::optional<std::string> message_id = {};
  std::optional<uint64_t> message_index = {};

  // kPrompt. One that no person wrote (a background task's result, an empty one that
  // follows a tool's) is not `human`, and begins no turn.
  std::string prompt = {};
  bool human = true;
  // Without an anchor: a fingerprint of all that was told, and whether that says when
  // the prompt was written, so that no other prompt has the same.
  std::string print = {};
  bool dated = false;
  // Background tasks that the event says have ended (`ended_tasks`), or that alone are
  // still running (`running_tasks`, when the event lists them).
  std::vector<std::string> ended_tasks = {};
  std::optional<std::vector<std::string>> running_tasks = {};

  std::optional<ToolCall> tool = {};  // kToolBegin, kToolEnd
  // kPrompt of a conversation without a file: the prompts before it, oldest first, when
  // the event lists them.
  std::vector<HookMessage> earlier = {};
  std::string source = {};       // kSessionStart: startup, resume, fork, ...
  std::string reason = {};       // kSessionEnd
  bool hurried = false;          // its agent gives the hook three seconds
  std::string last_answer = {};  // kTurnEnd: what the agent said last
  std::vector<std::pair<std::string, std::string>> meta = {};  // of a generic event
  std::vector<HookMessage> messages = {};                      // the same
};

// Longest of `prompt`, `last_answer` and `what` that an event holds; more is cut at a
// character.
inline constexpr size_t kMaxPrompt = 16 << 10, kMaxWhat = 200;
// Longest payload that is read at all.
inline constexpr size_t kMaxPayload = 64 << 20;

// The longest that an agent may be kept waiting for an event, whatever the settings
// say: less than the time that `belay install` gives the hook. A host says itself.
int64_t LongestWaitMs(const HookEvent& event);

}  // namespace belay
