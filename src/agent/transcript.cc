#include "agent/transcript.h"

#include <algorithm>
#include <unordered_map>

#include "agent/dialect_internal.h"
#include "agent/transcript_internal.h"
#include "agent/transcript_lines.h"
#include "base/fast_hash.h"
#include "base/mutant.h"
#include "base/sha256.h"

namespace belay {

// --- builder -------------------------------------------------------------------------

std::optional<uint64_t> TranscriptBuilder::AddPrompt(TranscriptPrompt prompt) {
  constexpr size_t kShort = 100;
  if (out.prompts.size() == kMostPrompts) {
    ++out.prompts_left_out;
    return std::nullopt;
  }
  const size_t limit = text_left_ < prompt.text.size() ? kShort : kMaxPrompt;
  prompt.text.resize(CutText(prompt.text, limit).size());
  text_left_ -= std::min(text_left_, prompt.text.size());
  prompt.index = out.prompts.size();
  out.prompts.push_back(std::move(prompt));
  return out.prompts.back().index;
}

void TranscriptBuilder::AddMessage(TranscriptMessage message, uint64_t tag) {
  if (messages_.size() == kMostMessages) {
    messages_.pop_front();
    ++out.messages_left_out;
  }
  messages_.emplace_back(std::move(message), tag);
}

void TranscriptBuilder::BeginAnew() {
  out.prompts.clear();
  out.prompts_left_out = out.messages_left_out = 0;
  messages_.clear();
  text_left_ = kAllText;
}

void TranscriptBuilder::ForEachMessage(
    const std::function<void(TranscriptMessage&, uint64_t)>& visit) {
  for (auto& [message, tag] : messages_) visit(message, tag);
}

void TranscriptBuilder::Finish() {
  out.messages.reserve(messages_.size());
  for (auto& [message, tag] : messages_) {
    if (message.prompt && out.prompts[*message.prompt].dead) message.dead = true;
    out.messages.push_back(std::move(message));
  }
  messages_.clear();
}

// --- tree ----------------------------------------------------------------------------

void RecordTree::Add(std::string_view id, std::string_view parent) {
  const auto hash = [](std::string_view text) {
    return text.empty() ? 0 : FastHash(AsBytes(text), 1) | 1;
  };
  nodes_.push_back({.id = hash(id), .parent = hash(parent)});
}

// Always one before it in the file, so that there is no circle. One whose parent is
// not there (a line that was passed over) follows what was written before it.
std::vector<uint64_t> RecordTree::Parents() const {
  std::vector<std::pair<uint64_t, uint64_t>> by_id;
  by_id.reserve(nodes_.size());
  for (uint64_t i = 0; i < nodes_.size(); ++i) by_id.emplace_back(nodes_[i].id, i);
  std::sort(by_id.begin(), by_id.end());
  std::vector<uint64_t> parents(nodes_.size(), kNone);
  for (uint64_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].parent == 0) continue;
    auto found =
        std::lower_bound(by_id.begin(), by_id.end(), std::pair(nodes_[i].parent, i));
    const bool known = found != by_id.begin() && (--found)->first == nodes_[i].parent;
    parents[i] = known ? found->second : i - 1;
  }
  return parents;
}

void RecordTree::Settle(TranscriptBuilder& builder) {
  if (nodes_.empty()) return;
  const std::vector<uint64_t> parents = Parents();
  if (!BELAY_MUTANT("dead-branches-live"))
    for (TranscriptPrompt& prompt : builder.out.prompts) prompt.dead = true;
  for (uint64_t i = newest(); i != kNone; i = parents[i])
    if (nodes_[i].prompt != kNone) builder.out.prompts[nodes_[i].prompt].dead = false;
  for (uint64_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].prompt == kNone && parents[i] != kNone)
      nodes_[i].prompt = nodes_[parents[i]].prompt;
  builder.ForEachMessage([this](TranscriptMessage& message, uint64_t tag) {
    if (tag < nodes_.size() && nodes_[tag].prompt != kNone)
      message.prompt = nodes_[tag].prompt;
  });
}

// --- texts ---------------------------------------------------------------------------

std::string ContentText(const std::optional<Json>& content, size_t limit) {
  if (!content) return {};
  if (content->is_string()) return *content->Text(limit);
  std::string all;
  if (!content->is_array()) return all;
  for (JsonParts parts(*content); parts.Next() && all.size() < limit;) {
    const std::optional<Json> text = parts.value().Get("text");
    if (!text || !text->is_string()) continue;
    all += (all.empty() ? "" : "\n") + *text->Text(limit);
  }
  all.resize(CutText(all, limit).size());
  return all;
}

bool HasPart(const std::optional<Json>& content, std::string_view member) {
  if (!content || !content->is_array()) return false;
  for (JsonParts parts(*content); parts.Next();)
    if (parts.value().Get(member)) return true;
  return false;
}

bool HasPartOfType(const std::optional<Json>& content, std::string_view type) {
  if (!content || !content->is_array()) return false;
  for (JsonParts parts(*content); parts.Next();) {
    const std::optional<Json> found = parts.value().Get("type");
    if (found && found->TextIs(type)) return true;
  }
  return false;
}

bool IsWholeRecord(const TranscriptLines::Line& line, const Result<Json>& json) {
  return json.ok() &&
         (line.whole ||
          (json->is_object() && !BELAY_MUTANT("what-lacks-a-newline-was-not-said")));
}

bool IsCompaction(AgentKind agent, const JsonFields& fields) {
  const std::optional<Json> type = fields.Get("type");
  switch (agent) {
    case AgentKind::kClaude:
      return Is(type, "system") && Is(fields.Get("subtype"), "compact_boundary");
    case AgentKind::kQwen:
      return Is(type, "system") && Is(fields.Get("subtype"), "chat_compression");
    case AgentKind::kCodex:
      return Is(type, "compacted");
    case AgentKind::kCopilot:
      return Is(type, "session.compaction_complete");
    default:
      return false;
  }
}

std::string RecordFingerprint(const Json& record) {
  return Sha256::Of(AsBytes(record.raw())).hex().substr(0, 16);
}

std::string Excerpt(std::string_view text) { return OneLine(text); }

// --- files ---------------------------------------------------------------------------

namespace {

std::unique_ptr<TranscriptFormat> FormatOf(AgentKind agent,
                                           TranscriptBuilder& builder) {
  switch (agent) {
    case AgentKind::kClaude:
      return MakeClaudeFormat(builder);
    case AgentKind::kQwen:
      return MakeQwenFormat(builder);
    case AgentKind::kCodex:
      return MakeCodexFormat(builder);
    case AgentKind::kGemini:
      return MakeGeminiFormat(builder);
    case AgentKind::kCopilot:
      return MakeCopilotFormat(builder);
    case AgentKind::kCline:
      return MakeClineFormat(builder);
    default:
      return nullptr;
  }
}

}  // namespace

Result<Transcript> ReadTranscript(Fs& fs, AgentKind agent, const AbsPath& path,
                                  std::span<const TurnRecord> prompts) {
  TranscriptBuilder builder;
  for (const TurnRecord& turn : prompts)
    if (turn.anchor && !turn.prompt.empty())
      builder.told.try_emplace(*turn.anchor, turn.prompt);
  const std::unique_ptr<TranscriptFormat> format = FormatOf(agent, builder);
  if (format == nullptr)
    return Error(Errc::kUnsupported, std::string(AgentName(agent)) +
                                         " keeps no transcript that can be read");
  BELAY_TRY(const Fd file, OpenTranscript(fs, path));
  TranscriptLines reader(fs, file, agent != AgentKind::kCline);
  Transcript& out = builder.out;
  for (TranscriptLines::Line line;;) {
    BELAY_TRY(const bool more, reader.Next(line));
    if (!more) break;
    const uint64_t number = out.lines++;
    if (line.too_long) {
      ++out.too_long;
      continue;
    }
    if (line.text.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    const Result<Json> json = Json::Parse(line.text);
    if (json.ok())
      format->Take({*json, line.text, line.offset, number});
    else if (!line.whole)
      out.torn = true;
    else
      ++out.broken;
  }
  out.size = reader.size();
  format->Finish();
  builder.Finish();
  return std::move(out);
}

void EndAt(Transcript& transcript, uint64_t until) {
  std::unordered_map<uint64_t, bool> dead;
  for (TranscriptPrompt& prompt : transcript.prompts) {
    if (!prompt.ordinal) continue;
    if (*prompt.ordinal >= until)
      prompt.dead = true;
    else if (prompt.dead_from && *prompt.dead_from >= until)
      prompt.dead = false;
    dead[prompt.index] = prompt.dead;
  }
  for (TranscriptMessage& message : transcript.messages)
    if (message.prompt)
      if (const auto known = dead.find(*message.prompt); known != dead.end())
        message.dead = known->second;
}

}  // namespace belay
