#pragma once

// LookAtSession: a conversation as people look at it: its turns with what was said in
// them, the checkpoints that belong to them, and what of it was taken back.
//
// Guarantees
//   * Nothing is written, and nothing is found by position: a turn of the log and a
//     prompt of the transcript belong together by the agent's own id of the turn, or
//     where there is none by their words, in their order.
//   * What was taken back follows from operations that are not undone: they are what
//     the history is drawn from (core/operations.h).
//   * A transcript that is gone, or that cannot be read, leaves the turns and
//     checkpoints; `trouble` says why there are no messages.

#include <optional>
#include <string>
#include <vector>

#include "agent/transcript.h"
#include "core/lineage.h"
#include "core/operations.h"
#include "core/sessions.h"

namespace belay {

enum class SessionState : uint8_t { kOpen, kRunning, kEnded };
std::string_view SessionStateName(SessionState state);  // "open", "running", "ended"
// By what was recorded, and by what was heard of it last in these roots.
SessionState StateOf(Store& store, const std::vector<RootId>& roots,
                     const SessionSummary& session);

struct SessionTurn {
  std::optional<uint64_t> turn = {};  // nothing: it is in the transcript alone
  std::string session = {};           // that counted it: the session, or an ancestor
  std::string prompt = {};
  std::optional<std::string> anchor = {};
  std::optional<int64_t> made_ms = {};
  uint64_t seq = 0;   // of its record
  bool left = false;  // on a branch that the agent's own rewind left
  // What was said in it, or what it made of the files, was taken back by this
  // operation.
  std::optional<RecordId> taken_back_by = {}, files_taken_back_by = {};
  // Only its end was taken back, from this message on.
  struct Cut {
    RecordId by;
    std::string message;
    size_t at = 0;  // among `messages`; behind all of them: it is not there
  };
  std::optional<Cut> cut = {};
  struct Point {
    CheckpointRow row;
    uint64_t number = 0;  // in `belay list`
    std::optional<RecordId> taken_back_by = {};
  };
  std::vector<Point> checkpoints = {};           // oldest first
  std::vector<TranscriptMessage> messages = {};  // its prompt left out
};

struct SessionView {
  SessionSummary summary;
  SessionState state = SessionState::kOpen;
  std::optional<std::string> goes_on = {};  // as itself, or as this; nothing: anew
  std::vector<Generation> lineage;          // the session itself first
  std::vector<SessionTurn> turns;           // in their order
  // Before the first turn: a checkpoint at the start, what the agent told itself.
  std::vector<SessionTurn::Point> start;
  struct File {
    std::string path;
    uint64_t bytes = 0;
    bool is_copy = false;  // the agent's own is gone
  };
  std::optional<File> transcript = {};
  uint64_t messages_left_out = 0;
  std::string trouble = {};
};
// kNotFound when nothing is known of the session in this root.
Result<SessionView> LookAtSession(Store& store, Catalog& catalog, const Root& root,
                                  const std::string& session);

}  // namespace belay
