// Claude Code and Qwen Code: lines that name their parent.
//
// Claude Code: ~/.claude/projects/<directory>/<session>.jsonl. A prompt is a line of
// type user with text, not a result of a tool; it and all that follows of its turn have
// its promptId, as may what stands before it (isMeta). After /rewind the branch that
// was left stays in the file; after a compaction the chain begins anew with
// logicalParentUuid. Lines of subagents (isSidechain) have files of their own, in older
// versions they are in between, or before all others ("Warmup").
//
// Qwen Code: ~/.qwen/projects/<directory>/chats/<session>.jsonl. The prompt_id of the
// hooks is not in the prompt's record but in the telemetry that follows it.

#include <unordered_map>

#include "agent/dialect_internal.h"
#include "agent/transcript_internal.h"
#include "base/fast_hash.h"
#include "base/mutant.h"

namespace belay {
namespace {

bool TypeIs(const std::optional<Json>& type, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (type && type->TextIs(name)) return true;
  return false;
}

class ClaudeFormat final : public TranscriptFormat {
 public:
  using TranscriptFormat::TranscriptFormat;
  void Take(const Record& record) override;
  void Finish() override { tree_.Settle(builder_); }

 private:
  bool IsPrompt(const JsonFields& fields, const std::optional<Json>& content,
                std::string_view text) const;
  bool WasTold(const JsonFields& fields, std::string_view text) const;
  bool IsOfIt(bool sidechain);
  void TakeUser(const Record& record, const JsonFields& fields);
  void TakeAssistant(const Record& record, const JsonFields& fields);

  RecordTree tree_;
  // By hash of the promptId, the prompt that has it; none beyond the limit.
  std::unordered_map<uint64_t, std::optional<uint64_t>> begun_;
  bool turn_ended_ = false;         // the last record says so
  std::optional<bool> subagents_;   // all so far is of a subagent
  std::optional<uint64_t> before_;  // where a run of bookkeeping lines begins
  // What has the promptId of a turn whose prompt has not come: hash, where it begins.
  std::optional<std::pair<uint64_t, uint64_t>> coming_;
};

// "<command-name>/x</command-name>...<command-args>y</command-args>" was typed as "/x
// y", in whatever order these are.
bool IsTypedCommand(std::string_view text) {
  if (text.starts_with("<command-name>")) return true;
  if (BELAY_MUTANT("a-command-begins-with-its-name")) return false;
  return (text.starts_with("<command-message>") ||
          text.starts_with("<command-args>")) &&
         text.find("<command-name>") != std::string_view::npos;
}
std::string TypedCommand(std::string_view text) {
  const auto inside = [text](std::string_view tag) {
    const std::string open = "<" + std::string(tag) + ">";
    const size_t begin = text.find(open);
    if (begin == std::string_view::npos) return std::string();
    const size_t end = text.find("</" + std::string(tag) + ">", begin);
    if (end == std::string_view::npos) return std::string();
    return std::string(text.substr(begin + open.size(), end - begin - open.size()));
  };
  const std::string arguments = inside("command-args");
  return inside("command-name") + (arguments.empty() ? "" : " " + arguments);
}

bool ClaudeFormat::IsPrompt(const JsonFields& fields,
                            const std::optional<Json>& content,
                            std::string_view text) const {
  if (fields.Get("toolUseResult") || HasPartOfType(content, "tool_result"))
    return false;
  if (IsTrue(fields.Get("isMeta")) || IsTrue(fields.Get("isCompactSummary")))
    return false;
  for (std::string_view other :
       {"<task-notification>", "<local-command-", "<bash-", "[Request interrupted"})
    if (text.starts_with(other)) return WasTold(fields, text);
  return true;
}

// Words of the agent's own have the id of the turn that they are in; the prompt comes
// before them, and reads as it was told.
bool ClaudeFormat::WasTold(const JsonFields& fields, std::string_view text) const {
  const std::optional<std::string> anchor = IdOf(fields.Get("promptId"));
  if (!anchor || begun_.contains(FastHash(AsBytes(*anchor), 0)) ||
      BELAY_MUTANT("the-agents-own-words-are-no-prompt"))
    return false;
  const auto told = builder_.told.find(*anchor);
  return told != builder_.told.end() && text.starts_with(told->second);
}

void ClaudeFormat::TakeUser(const Record& record, const JsonFields& fields) {
  const std::optional<Json> message = fields.Get("message");
  const std::optional<Json> content = message ? message->Get("content") : std::nullopt;
  std::string text = ContentText(content, kMaxPrompt);
  const std::string id = IdOf(fields.Get("uuid")).value_or("");
  const bool is_prompt = IsPrompt(fields, content, text);
  if (IsTypedCommand(text)) text = TypedCommand(text);
  builder_.AddMessage({.role = is_prompt ? "user" : "tool",
                       .id = id,
                       .text = Excerpt(text),
                       .offset = record.offset},
                      tree_.newest());
  const std::optional<std::string> anchor = IdOf(fields.Get("promptId"));
  const uint64_t hash = anchor ? FastHash(AsBytes(*anchor), 0) : 0;
  if (!anchor || (coming_ && coming_->first != hash)) coming_.reset();
  if (!is_prompt) {
    if (anchor && !coming_ && !begun_.contains(hash) &&
        !BELAY_MUTANT("a-turn-begins-with-its-prompt"))
      coming_ = {hash, before_.value_or(record.offset)};
    return;
  }
  const uint64_t begins = coming_ ? coming_->second : before_.value_or(record.offset);
  coming_.reset();
  if (const auto begun = begun_.find(hash); anchor && begun != begun_.end()) {
    // More of the same turn: what was typed while the agent worked.
    if (!turn_ended_) return;
    // A fork that Claude makes gives all it copies the id of its own first prompt: that
    // one has it.
    if (begun->second) {
      TranscriptPrompt& copied = builder_.out.prompts[*begun->second];
      copied.anchor = copied.record;
    }
  }
  const std::string own = id.empty() ? RecordFingerprint(record.json) : id;
  const std::optional<uint64_t> index =
      builder_.AddPrompt({.anchor = anchor.value_or(own),
                          .record = own,
                          .text = std::move(text),
                          .line = record.line,
                          .offset = record.offset,
                          .turn_offset = begins});
  if (index) tree_.MarkPrompt(*index);
  if (anchor) begun_[hash] = index;
}

void ClaudeFormat::TakeAssistant(const Record& record, const JsonFields& fields) {
  coming_.reset();
  const std::optional<Json> message = fields.Get("message");
  const std::optional<Json> content = message ? message->Get("content") : std::nullopt;
  std::string text = ContentText(content, 4 * kMaxWhat);
  if (text.empty() && content && content->is_array())
    for (JsonParts parts(*content); parts.Next();)
      if (const auto name = IdOf(parts.value().Get("name"))) text = *name;
  builder_.AddMessage({.role = "assistant",
                       .id = IdOf(fields.Get("uuid")).value_or(""),
                       .text = Excerpt(text),
                       .offset = record.offset},
                      tree_.newest());
}

// A file that is a subagent's own has nothing but sidechains; any other has the
// session's, and may begin with those of subagents.
bool ClaudeFormat::IsOfIt(bool sidechain) {
  if (!subagents_) subagents_ = sidechain;
  if (*subagents_ && !sidechain && !BELAY_MUTANT("the-first-record-says-whose-it-is")) {
    subagents_ = false;
    builder_.BeginAnew();
    tree_ = {};
    begun_.clear();
    coming_.reset();
    turn_ended_ = false;
  }
  return sidechain == *subagents_;
}

void ClaudeFormat::Take(const Record& record) {
  const JsonFields fields(record.json);
  const std::optional<Json> type = fields.Get("type");
  if (const auto session = IdOf(fields.Get("sessionId")))
    builder_.out.session = *session;
  if (const auto from = fields.Get("forkedFrom"))
    if (const auto session = IdOf(from->Get("sessionId")))
      builder_.out.forked_from = *session;
  const std::optional<std::string> id = IdOf(fields.Get("uuid"));
  if (id) {
    if (!IsOfIt(IsTrue(fields.Get("isSidechain")))) return;
    std::optional<std::string> parent = IdOf(fields.Get("parentUuid"));
    if (!parent) parent = IdOf(fields.Get("logicalParentUuid"));
    tree_.Add(*id, parent.value_or(""));
  }
  if (!id && TypeIs(type, {"queue-operation", "mode", "permission-mode",
                           "file-history-snapshot"})) {
    if (!before_) before_ = record.offset;
    return;
  }
  if (id && TypeIs(type, {"user"})) TakeUser(record, fields);
  if (id && TypeIs(type, {"assistant"})) TakeAssistant(record, fields);
  if (id)
    turn_ended_ = TypeIs(type, {"system"}) &&
                  TypeIs(fields.Get("subtype"), {"stop_hook_summary", "turn_duration"});
  before_.reset();
}

class QwenFormat final : public TranscriptFormat {
 public:
  using TranscriptFormat::TranscriptFormat;
  void Take(const Record& record) override;
  void Finish() override { tree_.Settle(builder_); }

 private:
  void TakeUser(const Record& record, const std::string& id, const JsonFields& fields,
                const std::optional<Json>& parts);
  RecordTree tree_;
  std::optional<uint64_t> nameless_;  // the prompt whose prompt_id is not known yet
};

void QwenFormat::TakeUser(const Record& record, const std::string& id,
                          const JsonFields& fields, const std::optional<Json>& parts) {
  const std::optional<Json> provenance = fields.Get("provenance");
  if (provenance && !provenance->TextIs("real_user")) return;
  std::string text = ContentText(parts, kMaxPrompt);
  if (text.empty() || EndedTasks(text)) return;
  nameless_ = builder_.AddPrompt({.anchor = id,
                                  .record = id,
                                  .text = std::move(text),
                                  .line = record.line,
                                  .offset = record.offset,
                                  .turn_offset = record.offset});
  if (nameless_) tree_.MarkPrompt(*nameless_);
}

void QwenFormat::Take(const Record& record) {
  const JsonFields fields(record.json);
  const std::optional<Json> type = fields.Get("type");
  const std::optional<std::string> id = IdOf(fields.Get("uuid"));
  if (const auto session = IdOf(fields.Get("sessionId")))
    builder_.out.session = *session;
  if (!id) return;
  tree_.Add(*id, IdOf(fields.Get("parentUuid")).value_or(""));
  if (TypeIs(type, {"system"})) {
    const std::optional<Json> payload = fields.Get("systemPayload");
    const std::optional<Json> event = payload ? payload->Get("uiEvent") : std::nullopt;
    const std::optional<std::string> anchor =
        event ? IdOf(event->Get("prompt_id")) : std::nullopt;
    if (anchor && nameless_) {
      builder_.out.prompts[*nameless_].anchor = *anchor;
      nameless_.reset();
    }
    return;
  }
  if (!TypeIs(type, {"user", "assistant", "tool_result"})) return;
  const std::optional<Json> message = fields.Get("message");
  const std::optional<Json> parts = message ? message->Get("parts") : std::nullopt;
  const char* role = TypeIs(type, {"assistant"}) ? "assistant"
                     : TypeIs(type, {"user"})    ? "user"
                                                 : "tool";
  builder_.AddMessage({.role = role,
                       .id = *id,
                       .text = Excerpt(ContentText(parts, 4 * kMaxWhat)),
                       .offset = record.offset},
                      tree_.newest());
  if (TypeIs(type, {"user"}) && !HasPart(parts, "functionResponse"))
    TakeUser(record, *id, fields, parts);
}

}  // namespace

std::unique_ptr<TranscriptFormat> MakeClaudeFormat(TranscriptBuilder& builder) {
  return std::make_unique<ClaudeFormat>(builder);
}

std::unique_ptr<TranscriptFormat> MakeQwenFormat(TranscriptBuilder& builder) {
  return std::make_unique<QwenFormat>(builder);
}

}  // namespace belay
