#pragma once

// ReadTranscript: the prompts and messages of a conversation, from the file in which
// the agent itself keeps it.
//
// Guarantees
//   * Read only, and hostile until checked: the file is opened as a regular file
//     (symlinks are followed: people link their homes), never written.
//   * Lenient: a line that is torn, not JSON or of an unknown type is passed over and
//     counted. What an agent adds in a newer version does no harm.
//   * Bounded memory: one line at a time, lines above kLongestLine are passed over; of
//     each message an excerpt; of very many messages the newest kMostMessages. A file
//     of 200 MB takes as much as its longest line and a few bytes for each other.
//   * Offsets are those of the file, so that a copy can be cut there later.
//
// An anchor is the agent's own id of the turn, which its hooks also tell: promptId of
// Claude Code, turn_id of Codex, prompt_id of Qwen Code; elsewhere the id of the
// prompt's record; where a record has none, a fingerprint of its bytes. Compaction and
// resuming leave all of them as they are.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/event.h"
#include "base/fs.h"
#include "store/log_record.h"

namespace belay {

struct TranscriptPrompt {
  std::string anchor;
  std::string record;   // the record's own id, or its fingerprint
  std::string text;     // at most kMaxPrompt
  uint64_t index = 0;   // among the prompts of the file, those that are dead included
  uint64_t line = 0;    // from 0
  uint64_t offset = 0;  // of the record
  // Where the turn begins: with what the agent writes down just before the prompt. A
  // copy that ends here has all before the prompt and nothing of it.
  uint64_t turn_offset = 0;
  std::optional<uint64_t> ordinal = {};  // where records are counted (Codex)
  bool dead = false;                     // on a branch that the agent's own rewind left
  // ... since this record, which is there in the file (Codex)
  std::optional<uint64_t> dead_from = {}, dead_since = {};
};

struct TranscriptMessage {
  std::string role;  // user, assistant, tool
  std::string id;    // the record's; empty when it has none
  std::string text;  // an excerpt, at most kMaxWhat
  uint64_t offset = 0;
  std::optional<uint64_t> prompt = {};  // whose turn it belongs to, by index
  bool dead = false;
};

struct Transcript {
  std::string session = {};  // as the file calls it; the last one it names
  std::optional<std::string> forked_from = {};  // the session it was copied from
  // ... or not copied: what came before is only in another one's file, that of the same
  // session or of one that it grew out of itself. Records are counted through.
  bool refers = false;
  std::optional<std::string> refers_to = {};
  std::optional<uint64_t> refers_until = {};  // up to this record, exclusive
  std::vector<TranscriptPrompt> prompts = {};
  std::vector<TranscriptMessage> messages = {};
  uint64_t size = 0;  // bytes that were read
  uint64_t lines = 0;
  uint64_t too_long = 0;  // lines that were passed over
  uint64_t broken = 0;    // the same: not JSON
  bool torn = false;      // the last line is not whole: somebody may be writing it
  uint64_t prompts_left_out = 0, messages_left_out = 0;  // beyond the limits
};

inline constexpr size_t kLongestLine = 64 << 20;
inline constexpr size_t kMostPrompts = 100'000, kMostMessages = 100'000;

// kUnsupported for an agent that keeps no such file (opencode, Reasonix, Crush) and for
// generic events; kInvalid for what is no regular file.
//
// What looks like the agent's own words (Claude Code: "[Request interrupted", ...) is a
// prompt all the same where a hook told it: `prompts`, those of the session.
Result<Transcript> ReadTranscript(Fs& fs, AgentKind agent, const AbsPath& path,
                                  std::span<const TurnRecord> prompts = {});

// As a file has it that refers to this one up to the record `until`, exclusive: what
// was said from there on is dead, what was taken back from there on is not.
void EndAt(Transcript& transcript, uint64_t until);

}  // namespace belay
