#pragma once

// How a transcript is put together: lines come in, the format says what they are, the
// builder keeps what the limits allow.

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "agent/json.h"
#include "agent/transcript.h"
#include "agent/transcript_lines.h"
#include "base/bytes.h"
#include "base/fast_hash.h"

namespace belay {

// One record: a line, or a message of a file that is one JSON value.
struct Record {
  Json json;
  std::string_view text;  // what `json` was read from
  uint64_t offset = 0;    // of the text
  uint64_t line = 0;
};

// By which ids are remembered: those of a long conversation take room.
inline uint64_t HashOf(std::string_view id) { return FastHash(AsBytes(id), 0); }

// Whether what was read of a line is all of it: the last one may lack its newline, and
// is whole when it is an object all the same. (One that is being written is none yet.)
bool IsWholeRecord(const TranscriptLines::Line& line, const Result<Json>& json);

class TranscriptBuilder {
 public:
  // The index of the prompt; nothing beyond the limit.
  std::optional<uint64_t> AddPrompt(TranscriptPrompt prompt);
  // `tag` is the format's own, given back by ForEachMessage.
  void AddMessage(TranscriptMessage message, uint64_t tag = 0);

  // What was added so far was not the conversation.
  void BeginAnew();

  Transcript out;
  // What hooks told as prompts, by their anchors.
  std::unordered_map<std::string, std::string> told;
  void ForEachMessage(const std::function<void(TranscriptMessage&, uint64_t)>& visit);
  // Moves the messages to `out` and says which are dead with their prompt.
  void Finish();

 private:
  std::deque<std::pair<TranscriptMessage, uint64_t>> messages_;
  static constexpr size_t kAllText = 32 << 20;
  size_t text_left_ = kAllText;  // for all prompts together
};

class TranscriptFormat {
 public:
  explicit TranscriptFormat(TranscriptBuilder& builder) : builder_(builder) {}
  virtual ~TranscriptFormat() = default;
  virtual void Take(const Record& record) = 0;
  virtual void Finish() {}  // what only the whole file tells

 protected:
  TranscriptBuilder& builder_;
};

std::unique_ptr<TranscriptFormat> MakeClaudeFormat(TranscriptBuilder& builder);
std::unique_ptr<TranscriptFormat> MakeQwenFormat(TranscriptBuilder& builder);
std::unique_ptr<TranscriptFormat> MakeCodexFormat(TranscriptBuilder& builder);
std::unique_ptr<TranscriptFormat> MakeGeminiFormat(TranscriptBuilder& builder);
std::unique_ptr<TranscriptFormat> MakeCopilotFormat(TranscriptBuilder& builder);
std::unique_ptr<TranscriptFormat> MakeClineFormat(TranscriptBuilder& builder);

// Records that name their parent: what lies on the way from the newest back to the
// beginning is the conversation, the rest was left by a rewind.
class RecordTree {
 public:
  // A record in the order of the file. `parent` is empty for one that begins anew.
  void Add(std::string_view id, std::string_view parent);
  uint64_t newest() const { return nodes_.size() - 1; }
  bool empty() const { return nodes_.empty(); }
  // The newest record is this prompt's.
  void MarkPrompt(uint64_t prompt) { nodes_.back().prompt = prompt; }

  // Marks dead prompts, and gives each message (by the tag: the newest record when it
  // was added) the prompt it hangs below.
  void Settle(TranscriptBuilder& builder);

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Node {
    uint64_t id = 0, parent = 0;  // hashes; a parent of 0 is none
    uint64_t prompt = kNone;
  };
  std::vector<uint64_t> Parents() const;
  std::vector<Node> nodes_;
};

// The text of a prompt or message: a string, or the texts of a list of parts
// ({"text"}); cut.
std::string ContentText(const std::optional<Json>& content, size_t limit);
// Whether a list has a part with that member, or a part of that type.
bool HasPart(const std::optional<Json>& content, std::string_view member);
bool HasPartOfType(const std::optional<Json>& content, std::string_view type);
// Whether the agent shortened the conversation there: it goes on from a summary.
bool IsCompaction(AgentKind agent, const JsonFields& fields);
// 16 hex digits of the record's bytes.
std::string RecordFingerprint(const Json& record);
// A short line for a list.
std::string Excerpt(std::string_view text);

}  // namespace belay
