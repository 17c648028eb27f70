// Codex, Gemini CLI, Copilot CLI, Cline: one record after the other.
//
// Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl, lines {type, payload}. A turn
// begins with task_started and its turn_id; thread_rolled_back takes the last turns
// back.
//
// Gemini CLI: ~/.gemini/tmp/<project>/chats/session-*.jsonl. Records with an id, the
// same one again when it grows; {"$set":{"messages":[...]}} replaces the conversation,
// {"$rewindTo": id} drops that message and what follows, or all when it is unknown.
//
// Copilot CLI: ~/.copilot/session-state/<session>/events.jsonl, lines {type, data, id}.
//
// Cline: <session>.messages.json, one JSON object with all messages.

#include <unordered_map>
#include <unordered_set>

#include "agent/dialect_internal.h"
#include "agent/transcript_internal.h"
#include "base/fast_hash.h"
#include "base/mutant.h"

namespace belay {
namespace {

class CodexFormat final : public TranscriptFormat {
 public:
  using TranscriptFormat::TranscriptFormat;
  void Take(const Record& record) override;

 private:
  void TakeEvent(const Record& record, const Json& payload);
  void TakeItem(const Record& record, const Json& payload);
  void BeginTurn(const Record& record, const std::optional<std::string>& turn);
  enum class By : uint8_t { kPerson, kAnybody };
  void Prompt(const Record& record, std::string text, By by);
  void RollBack(const Record& record, uint64_t turns);

  std::string turn_;
  uint64_t turn_offset_ = 0;
  bool waiting_ = false;  // the turn's prompt has not come yet
  std::optional<uint64_t> prompt_, before_;
};

std::optional<uint64_t> Ordinal(const std::optional<Json>& json) {
  return json ? json->Uint() : std::nullopt;
}

void CodexFormat::BeginTurn(const Record& record,
                            const std::optional<std::string>& turn) {
  turn_ = turn.value_or("");
  turn_offset_ = before_.value_or(record.offset);
  waiting_ = true;
  prompt_.reset();
}

void CodexFormat::Prompt(const Record& record, std::string text, By by) {
  // More of the same turn, or its second telling.
  if (!waiting_ || text.empty()) return;
  // Perhaps context that Codex adds itself: what was typed is told once more.
  if (text.starts_with('<') &&
      (by == By::kAnybody || BELAY_MUTANT("what-begins-with-a-tag-is-no-prompt")))
    return;
  waiting_ = false;
  const std::string own = RecordFingerprint(record.json);
  const std::string excerpt = Excerpt(text);
  prompt_ = builder_.AddPrompt({.anchor = turn_.empty() ? own : turn_,
                                .record = own,
                                .text = std::move(text),
                                .line = record.line,
                                .offset = record.offset,
                                .turn_offset = turn_offset_,
                                .ordinal = Ordinal(record.json.Get("ordinal"))});
  builder_.AddMessage({.role = "user",
                       .id = {},
                       .text = excerpt,
                       .offset = record.offset,
                       .prompt = prompt_});
}

void CodexFormat::RollBack(const Record& record, uint64_t turns) {
  std::vector<TranscriptPrompt>& prompts = builder_.out.prompts;
  for (size_t i = prompts.size(); i > 0 && turns > 0; --i) {
    if (prompts[i - 1].dead) continue;
    prompts[i - 1].dead = true;
    prompts[i - 1].dead_from = Ordinal(record.json.Get("ordinal"));
    prompts[i - 1].dead_since = record.offset;
    --turns;
  }
}

void CodexFormat::TakeEvent(const Record& record, const Json& payload) {
  const std::optional<Json> type = payload.Get("type");
  if (Is(type, "thread_settings_applied")) {
    if (!before_) before_ = record.offset;
    return;
  }
  if (Is(type, "task_started") || Is(type, "turn_started"))
    BeginTurn(record, IdOf(payload.Get("turn_id")));
  before_.reset();
  if (Is(type, "user_message"))
    Prompt(record, ContentText(payload.Get("message"), kMaxPrompt), By::kPerson);
  if (Is(type, "thread_rolled_back"))
    if (const auto turns = payload.Get("num_turns"))
      RollBack(record, turns->Uint().value_or(0));
  if (Is(type, "item_completed"))
    if (const auto item = payload.Get("item");
        item && Is(item->Get("type"), "UserMessage"))
      Prompt(record, ContentText(item->Get("content"), kMaxPrompt), By::kPerson);
}

void CodexFormat::TakeItem(const Record& record, const Json& payload) {
  before_.reset();
  const std::optional<Json> type = payload.Get("type");
  const bool message = Is(type, "message");
  const bool assistant = message && Is(payload.Get("role"), "assistant");
  const std::string text = ContentText(payload.Get("content"), kMaxPrompt);
  if (message && Is(payload.Get("role"), "user")) Prompt(record, text, By::kAnybody);
  const std::optional<std::string> tool = IdOf(payload.Get("name"));
  if (!assistant && !tool) return;
  builder_.AddMessage({.role = "assistant",
                       .id = IdOf(payload.Get("id")).value_or(""),
                       .text = Excerpt(assistant ? text : *tool),
                       .offset = record.offset,
                       .prompt = prompt_});
}

void CodexFormat::Take(const Record& record) {
  const std::optional<Json> type = record.json.Get("type");
  const std::optional<Json> payload = record.json.Get("payload");
  if (!payload) return;
  if (Is(type, "session_meta")) {
    if (const auto id = IdOf(payload->Get("id"))) builder_.out.session = *id;
    builder_.out.forked_from = IdOf(payload->Get("forked_from_id"));
    const std::optional<Json> base = payload->Get("history_base");
    builder_.out.refers = base && base->is_object();
    if (builder_.out.refers) {
      builder_.out.refers_until = Ordinal(base->Get("end_ordinal_exclusive"));
      builder_.out.refers_to = IdOf(base->Get("thread_id"));
      if (!builder_.out.refers_to) builder_.out.refers_to = builder_.out.forked_from;
    }
  } else if (Is(type, "event_msg")) {
    TakeEvent(record, *payload);
  } else if (Is(type, "response_item")) {
    TakeItem(record, *payload);
  } else if (Is(type, "turn_context") && turn_.empty()) {
    turn_ = IdOf(payload->Get("turn_id")).value_or("");
  }
}

class GeminiFormat final : public TranscriptFormat {
 public:
  using TranscriptFormat::TranscriptFormat;
  void Take(const Record& record) override;
  void Finish() override;

 private:
  void TakeMessage(const Json& json, const Record& record);
  void Rewind(uint64_t id);

  std::vector<uint64_t> now_;  // the conversation: hashes of ids
  std::unordered_set<uint64_t> in_now_;
  std::unordered_map<uint64_t, uint64_t> prompts_;  // by hash of the id
  std::unordered_set<uint64_t> seen_;
  std::optional<uint64_t> prompt_;
};

void GeminiFormat::TakeMessage(const Json& json, const Record& record) {
  const std::optional<std::string> id = IdOf(json.Get("id"));
  if (!id) return;
  const uint64_t hash = HashOf(*id);
  if (in_now_.insert(hash).second) now_.push_back(hash);
  const std::optional<Json> content = json.Get("content");
  const bool user = Is(json.Get("type"), "user");
  const bool result = HasPart(content, "functionResponse");
  if (!seen_.insert(hash).second) {
    if (const auto known = prompts_.find(hash); known != prompts_.end())
      prompt_ = known->second;
    return;
  }
  std::string text = ContentText(content, kMaxPrompt);
  const bool context =
      text.starts_with("<session_context>") || text.starts_with("<hook_context>");
  if (user && !result && !context && !text.empty()) {
    prompt_ = builder_.AddPrompt({.anchor = *id,
                                  .record = *id,
                                  .text = text,
                                  .line = record.line,
                                  .offset = record.offset,
                                  .turn_offset = record.offset});
    if (prompt_) prompts_[hash] = *prompt_;
  }
  if (context) return;
  builder_.AddMessage({.role = !user    ? "assistant"
                               : result ? "tool"
                                        : "user",
                       .id = *id,
                       .text = Excerpt(text),
                       .offset = record.offset,
                       .prompt = prompt_},
                      hash);
}

void GeminiFormat::Rewind(uint64_t id) {
  const bool known = in_now_.contains(id);
  while (!now_.empty()) {
    const uint64_t last = now_.back();
    now_.pop_back();
    in_now_.erase(last);
    if (known && last == id) break;
  }
}

void GeminiFormat::Take(const Record& record) {
  const JsonFields fields(record.json);
  if (const auto session = IdOf(fields.Get("sessionId")))
    builder_.out.session = *session;
  if (const auto id = IdOf(fields.Get("$rewindTo"))) return Rewind(HashOf(*id));
  if (fields.Get("id")) return TakeMessage(record.json, record);
  const std::optional<Json> set = fields.Get("$set");
  if (!set) return;
  if (const auto session = IdOf(set->Get("sessionId"))) builder_.out.session = *session;
  const std::optional<Json> messages = set->Get("messages");
  if (!messages || !messages->is_array()) return;
  now_.clear();
  in_now_.clear();
  prompt_.reset();
  for (JsonParts parts(*messages); parts.Next();) TakeMessage(parts.value(), record);
}

void GeminiFormat::Finish() {
  for (const auto& [hash, index] : prompts_)
    builder_.out.prompts[index].dead = !in_now_.contains(hash);
  builder_.ForEachMessage([this](TranscriptMessage& message, uint64_t hash) {
    if (!in_now_.contains(hash)) message.dead = true;
  });
}

class CopilotFormat final : public TranscriptFormat {
 public:
  using TranscriptFormat::TranscriptFormat;
  void Take(const Record& record) override;

 private:
  std::optional<uint64_t> prompt_, before_;
};

void CopilotFormat::Take(const Record& record) {
  const std::optional<Json> type = record.json.Get("type");
  if (record.json.Get("agentId")) return;  // a subagent's
  const Json data = record.json.Get("data").value_or(Json());
  const std::string id = IdOf(record.json.Get("id")).value_or("");
  if (Is(type, "hook.start")) {
    // Both tell the prompt: a session that is begun or resumed with one says so first.
    const std::optional<Json> hook = data.Get("hookType");
    if (!before_ && (Is(hook, "userPromptSubmitted") || Is(hook, "sessionStart")))
      before_ = record.offset;
    return;
  }
  if (Is(type, "hook.end")) return;
  if (Is(type, "session.start") || Is(type, "session.resume"))
    if (const auto session = IdOf(data.Get("sessionId")))
      builder_.out.session = *session;
  const bool user = Is(type, "user.message");
  if (user || Is(type, "assistant.message")) {
    std::string text = ContentText(data.Get("content"), kMaxPrompt);
    if (user) {
      const std::string own = id.empty() ? RecordFingerprint(record.json) : id;
      prompt_ = builder_.AddPrompt({.anchor = IdOf(data.Get("messageId")).value_or(own),
                                    .record = own,
                                    .text = text,
                                    .line = record.line,
                                    .offset = record.offset,
                                    .turn_offset = before_.value_or(record.offset)});
    }
    builder_.AddMessage({.role = user ? "user" : "assistant",
                         .id = id,
                         .text = Excerpt(text),
                         .offset = record.offset,
                         .prompt = prompt_});
  }
  before_.reset();
}

class ClineFormat final : public TranscriptFormat {
 public:
  using TranscriptFormat::TranscriptFormat;
  void Take(const Record& record) override;
};

// <user_input mode="act">what was typed</user_input>
std::string Typed(std::string text) {
  if (!text.starts_with("<user_input")) return text;
  const size_t begin = text.find('>');
  const size_t end = text.rfind("</user_input>");
  if (begin == std::string::npos || end == std::string::npos || end <= begin)
    return text;
  return text.substr(begin + 1, end - begin - 1);
}

void ClineFormat::Take(const Record& record) {
  if (const auto session = IdOf(record.json.Get("sessionId")))
    builder_.out.session = *session;
  const std::optional<Json> messages = record.json.Get("messages");
  std::optional<uint64_t> prompt;
  if (!messages || !messages->is_array()) return;
  for (JsonParts parts(*messages); parts.Next();) {
    const Json& message = parts.value();
    const uint64_t offset = record.offset + static_cast<uint64_t>(message.raw().data() -
                                                                  record.text.data());
    const std::string id = IdOf(message.Get("id")).value_or(RecordFingerprint(message));
    const std::optional<Json> content = message.Get("content");
    const bool user = Is(message.Get("role"), "user");
    const bool result = HasPartOfType(content, "tool_result");
    std::string text = Typed(ContentText(content, kMaxPrompt));
    if (user && !result && !text.empty())
      prompt = builder_.AddPrompt({.anchor = id,
                                   .record = id,
                                   .text = text,
                                   .line = record.line,
                                   .offset = offset,
                                   .turn_offset = offset});
    builder_.AddMessage({.role = !user    ? "assistant"
                                 : result ? "tool"
                                          : "user",
                         .id = id,
                         .text = Excerpt(text),
                         .offset = offset,
                         .prompt = prompt});
  }
}

}  // namespace

std::unique_ptr<TranscriptFormat> MakeCodexFormat(TranscriptBuilder& builder) {
  return std::make_unique<CodexFormat>(builder);
}

std::unique_ptr<TranscriptFormat> MakeGeminiFormat(TranscriptBuilder& builder) {
  return std::make_unique<GeminiFormat>(builder);
}

std::unique_ptr<TranscriptFormat> MakeCopilotFormat(TranscriptBuilder& builder) {
  return std::make_unique<CopilotFormat>(builder);
}

std::unique_ptr<TranscriptFormat> MakeClineFormat(TranscriptBuilder& builder) {
  return std::make_unique<ClineFormat>(builder);
}

}  // namespace belay
