#pragma once

// RecordEvent: what an agent told becomes history: sessions, turns, and checkpoints
// before and after every call that may write.
//
// Guarantees
//   * Idempotent: an event that is told twice (user and project hooks both run) is
//     recorded once.
//   * The beginning of a call, and a prompt, always give a checkpoint to go back to;
//     its end, and the end of a turn, only when something changed.
//   * Whose doing a change is follows from what was at work (core/live.h). Pairs need
//     not be complete: a call that never ends is over when its session begins a call
//     that comes after it (agents that work one by one), a turn, or ends one.
//   * What fails is remembered for `belay status`; that an event happened counts all
//     the same.

#include <atomic>
#include <optional>

#include "agent/event.h"
#include "core/capture.h"

namespace belay {

struct RecordRequest {
  Root root;
  const Settings* settings = nullptr;
  GitPlaces git = {};
  int64_t pid = 0;  // ours, for others to be told
  int64_t lock_wait_ms = 10'000;
  // As CaptureRequest::released_ns: when the agent went on without us.
  const std::atomic<int64_t>* released_ns = nullptr;
  // Of a prompt, with `notice = true`: what the model is to be told (agent/notice.h).
  std::string* notice = nullptr;
};

// kRefused when the session is one of another host that is at work in the root, whose
// turns and calls would be taken for this one's.
Status CheckHost(Store& store, const RootId& root, const HookEvent& event);

// Whether the event is of any interest: reading tools, and calls that the settings
// leave out, are not.
bool IsRecorded(const HookEvent& event, const Settings& settings);

// What was made; no checkpoint when none was needed.
Result<std::optional<Captured>> RecordEvent(Store& store, const RecordRequest& request,
                                            const HookEvent& event);

// The record of the subagent that the event is about.
LogRecord SubagentRecord(Store& store, const RootId& root, const Settings& settings,
                         const HookEvent& event);
// What checkpoints of it name as the agent.
std::string AgentOf(const HookEvent& event);
// The id that checkpoints of the event's session carry; never empty.
std::string SessionOf(const HookEvent& event);

}  // namespace belay
