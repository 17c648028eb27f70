#include "agent/transcript_cut.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "agent/dialect_internal.h"
#include "agent/open_calls_internal.h"
#include "agent/transcript_internal.h"
#include "agent/transcript_lines.h"
#include "base/fast_hash.h"
#include "base/mutant.h"

namespace belay {
namespace {

using Piece = TranscriptCut::Piece;

void AddPiece(std::vector<Piece>& pieces, uint64_t offset, uint64_t end) {
  if (offset >= end) return;
  if (!pieces.empty() && pieces.back().end == offset)
    pieces.back().end = end;
  else
    pieces.push_back({.offset = offset, .end = end});
}

Error NotInIt() {
  return {Errc::kNotFound, "the conversation does not hold that prompt any more"};
}

// What it says nobody knows: a conversation that is put together of its records would
// lack it.
Error TooLong() {
  return Error(Errc::kRefused,
               "the conversation has a line of more than " +
                   std::to_string(kLongestLine >> 20) +
                   " MiB, which is not read, and a copy would lack what it says")
      .WithHint("nothing was changed");
}

uint64_t HashOfId(const std::optional<Json>& id) {
  return HashOf(IdOf(id).value_or(""));
}

// Calls `visit` with each part of a list that has this member, and with the member.
template <class Visit>
void EachPart(const std::optional<Json>& content, std::string_view member,
              const Visit& visit) {
  if (content && content->is_array())
    for (JsonParts parts(*content); parts.Next();)
      if (const std::optional<Json> value = parts.value().Get(member))
        visit(parts.value(), *value);
}

// --- Claude Code, Qwen Code: lines that name their parent
// ------------------------------

// Of what came before the cut everything is kept that hangs below a prompt on the way
// from the cut to the beginning. Not only that way itself: the answers of parallel
// calls lie beside it.
class TreeCut {
 public:
  TreeCut(AgentKind agent, const Transcript& transcript, const CutPoint& point)
      : agent_(agent),
        transcript_(transcript),
        point_(point),
        calls_(point.offset),
        thoughts_(point.offset) {}

  void Take(const Json& json, uint64_t offset, uint64_t end);
  void TakeUnread(const TranscriptLines::Line& line) {
    if (line.too_long) {
      calls_.Said(line.offset, last_);
      thoughts_.Said(line.offset, last_);
    }
    Add(line.offset, line.end, last_);
  }
  Result<TranscriptCut> Finish();
  Result<TranscriptCut> FinishRest(const TranscriptPrompt& from);

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Run {
    uint64_t offset = 0, end = 0, prompt = kNone;
    uint64_t leaf = 0;  // hash of the id of the record that this line is about, if any
    uint64_t queued = kNone;  // in queued_: what was typed while the agent was at work
  };
  // From where it was put into the queue to where it was taken out, by whose turn.
  struct Queued {
    uint64_t offset = 0, words = 0;  // those as a hash
    uint64_t out = kNone, by = kNone;
  };
  // Of a record, or the line of one.
  struct Place {
    uint64_t prompt = kNone, offset = 0;
  };
  void Add(uint64_t offset, uint64_t end, uint64_t prompt, uint64_t leaf = 0,
           uint64_t queued = kNone);
  std::optional<uint64_t> PromptAt(uint64_t offset);
  const TranscriptPrompt* NextPrompt(uint64_t offset);
  void TakeLine(const JsonFields& fields, uint64_t offset, uint64_t end);
  uint64_t Queue(const JsonFields& fields, uint64_t offset,
                 const TranscriptPrompt* next);
  template <class Kept>
  bool IsOfNoPrompt(const Queued& queued, uint64_t limit, const Kept& kept);
  void NoteCalls(const JsonFields& fields, uint64_t offset, uint64_t prompt);
  void NoteClaude(const JsonFields& fields, const Json& message, uint64_t offset,
                  uint64_t prompt);
  void NoteQwen(const Json& message, uint64_t offset, uint64_t prompt);

  const AgentKind agent_;
  const Transcript& transcript_;
  const CutPoint& point_;
  std::vector<Run> runs_;
  std::unordered_map<uint64_t, Place> place_of_;  // by hash of the record's id
  std::vector<uint64_t> above_;   // of each prompt: the one it hangs below
  size_t next_ = 0;               // of transcript_.prompts, in the order of the file
  uint64_t last_ = kNone;         // whose turn the last line was of
  std::optional<uint64_t> kept_;  // the newest prompt that is kept, or kNone
  std::vector<Queued> queued_;
  std::deque<uint64_t> waiting_;  // those that are in the queue
  std::unordered_map<uint64_t, std::vector<const TranscriptPrompt*>> with_words_;
  OpenCalls calls_;
  LastThoughts thoughts_;
  // Claude Code writes one message as several lines: where the last one before the cut
  // begins.
  struct Message {
    uint64_t id = 0, offset = 0;
  };
  Message message_;
};

void TreeCut::Add(uint64_t offset, uint64_t end, uint64_t prompt, uint64_t leaf,
                  uint64_t queued) {
  if (offset >= point_.offset) return;
  if (!runs_.empty() && runs_.back().prompt == prompt && runs_.back().end == offset &&
      runs_.back().leaf == leaf && runs_.back().queued == queued)
    runs_.back().end = end;
  else
    runs_.push_back({.offset = offset,
                     .end = end,
                     .prompt = prompt,
                     .leaf = leaf,
                     .queued = queued});
}

// The one that is there or later.
const TranscriptPrompt* TreeCut::NextPrompt(uint64_t offset) {
  while (next_ < transcript_.prompts.size() &&
         transcript_.prompts[next_].offset < offset)
    ++next_;
  return next_ == transcript_.prompts.size() ? nullptr : &transcript_.prompts[next_];
}

std::optional<uint64_t> TreeCut::PromptAt(uint64_t offset) {
  const TranscriptPrompt* next = NextPrompt(offset);
  return next != nullptr && next->offset == offset ? std::optional(next->index)
                                                   : std::nullopt;
}

// A line that is no record: of the turn that it stands in, which begins before its
// prompt.
void TreeCut::TakeLine(const JsonFields& fields, uint64_t offset, uint64_t end) {
  const TranscriptPrompt* next = NextPrompt(offset);
  if (next != nullptr && next->turn_offset > offset) next = nullptr;
  const std::optional<std::string> leaf = IdOf(fields.Get("leafUuid"));
  uint64_t queued = kNone;
  if (agent_ == AgentKind::kClaude && Is(fields.Get("type"), "queue-operation"))
    queued = Queue(fields, offset, next);
  Add(offset, end, next != nullptr ? next->index : last_, leaf ? HashOf(*leaf) : 0,
      queued);
}

// What was put into the queue by that line, if anything.
uint64_t TreeCut::Queue(const JsonFields& fields, uint64_t offset,
                        const TranscriptPrompt* next) {
  const std::optional<Json> operation = fields.Get("operation");
  const std::string content = ContentText(fields.Get("content"), kMaxPrompt);
  if (Is(operation, "enqueue")) {
    queued_.push_back({.offset = offset, .words = HashOf(content)});
    waiting_.push_back(queued_.size() - 1);
    constexpr size_t kMostWaiting = 1000;  // nobody types more
    if (waiting_.size() > kMostWaiting) waiting_.pop_front();
    return waiting_.back();
  }
  const auto take_out = [&](uint64_t one) {
    queued_[one].out = offset;
    queued_[one].by = next != nullptr ? next->index : last_;
  };
  if (Is(operation, "popAll")) {  // to be edited
    std::ranges::for_each(waiting_, take_out);
    waiting_.clear();
  } else if ((Is(operation, "dequeue") || Is(operation, "remove")) &&
             !waiting_.empty()) {
    // By its words, where they are told or come right behind it; else the first.
    const uint64_t words =
        HashOf(!content.empty() || next == nullptr ? content : next->text);
    auto found = std::ranges::find(waiting_, words,
                                   [this](uint64_t one) { return queued_[one].words; });
    if (found == waiting_.end()) found = waiting_.begin();
    take_out(*found);
    waiting_.erase(found);
  }
  return kNone;
}

// Where nobody took it out, by the first prompt behind it with its words.
template <class Kept>
bool TreeCut::IsOfNoPrompt(const Queued& queued, uint64_t limit, const Kept& kept) {
  if (BELAY_MUTANT("what-goes-stays-queued")) return false;
  if (queued.out != kNone) return queued.out >= limit || !kept(queued.by);
  if (with_words_.empty())
    for (const TranscriptPrompt& prompt : transcript_.prompts)
      with_words_[HashOf(prompt.text)].push_back(&prompt);
  const auto same = with_words_.find(queued.words);
  if (same == with_words_.end()) return false;
  const auto next = std::ranges::upper_bound(
      same->second, queued.offset, {},
      [](const TranscriptPrompt* prompt) { return prompt->offset; });
  return next != same->second.end() &&
         ((*next)->offset >= limit || !kept((*next)->index));
}

void TreeCut::NoteCalls(const JsonFields& fields, uint64_t offset, uint64_t prompt) {
  if (IsCompaction(agent_, fields)) {
    calls_.Said(offset, prompt);
    thoughts_.Said(offset, prompt);
  }
  const std::optional<Json> message = fields.Get("message");
  if (!message) return;
  if (agent_ == AgentKind::kClaude)
    NoteClaude(fields, *message, offset, prompt);
  else
    NoteQwen(*message, offset, prompt);
}

void TreeCut::NoteQwen(const Json& message, uint64_t offset, uint64_t prompt) {
  const std::optional<Json> parts = message.Get("parts");
  if (!parts || !parts->is_array()) return;
  bool says = false, thinks = false;
  for (JsonParts part(*parts); part.Next();) {
    const std::optional<Json> answer = part.value().Get("functionResponse");
    const bool thought = !answer && IsTrue(part.value().Get("thought"));
    says = says || !thought;
    thinks = thinks || thought;
    if (answer) calls_.Answered(offset, HashOfId(answer->Get("id")), prompt);
    if (answer || thought) continue;
    calls_.Said(offset, prompt);
    if (const std::optional<Json> call = part.value().Get("functionCall"))
      calls_.Called(offset, HashOfId(call->Get("id")), prompt);
  }
  if (says)
    thoughts_.Said(offset, prompt);
  else if (thinks)
    thoughts_.Thought(offset, prompt);
}

void TreeCut::NoteClaude(const JsonFields& fields, const Json& message, uint64_t offset,
                         uint64_t prompt) {
  const std::optional<Json> content = message.Get("content");
  const bool kept = offset < point_.offset;
  uint64_t begins = offset;
  Message behind;  // the cut: not what is looked at in the end
  Message& last = kept ? message_ : behind;
  if (Is(fields.Get("type"), "assistant")) {
    const std::string id = IdOf(message.Get("id")).value_or("");
    if (id.empty() || last.id != HashOf(id))
      last = {.id = HashOf(id), .offset = offset};
    begins = last.offset;
  }
  if (!content || !content->is_array()) {
    calls_.Said(begins, prompt);
    thoughts_.Said(offset, prompt);
    return;
  }
  EachPart(content, "type", [&](const Json& part, const Json& type) {
    if (type.TextIs("thinking") || type.TextIs("redacted_thinking"))
      return thoughts_.Thought(offset, prompt);
    thoughts_.Said(offset, prompt);
    // Those that the service answers itself, too: server_tool_use and
    // web_search_tool_result, mcp_tool_use and mcp_tool_result.
    const std::string kind = IdOf(type).value_or("");
    const bool all = !BELAY_MUTANT("the-service-answers-nothing");
    if (kind == "tool_result" || (all && kind.ends_with("_tool_result")))
      return calls_.Answered(offset, HashOfId(part.Get("tool_use_id")), prompt);
    calls_.Said(begins, prompt);
    if (kind == "tool_use" || (all && kind.ends_with("_tool_use")))
      calls_.Called(begins, HashOfId(part.Get("id")), prompt);
  });
}

void TreeCut::Take(const Json& json, uint64_t offset, uint64_t end) {
  const JsonFields fields(json);
  const std::optional<std::string> id = IdOf(fields.Get("uuid"));
  if (!id) return TakeLine(fields, offset, end);
  std::optional<std::string> parent = IdOf(fields.Get("parentUuid"));
  if (!parent) parent = IdOf(fields.Get("logicalParentUuid"));
  uint64_t above = parent ? last_ : kNone;
  if (parent)
    if (const auto known = place_of_.find(HashOf(*parent)); known != place_of_.end())
      above = known->second.prompt;
  const std::optional<Json> side = fields.Get("isSidechain");
  const bool sidechain = side && side->Bool().value_or(false);
  if (sidechain && !parent) above = last_;
  uint64_t prompt = above;
  if (const auto begins = PromptAt(offset)) {
    prompt = *begins;
    above_.resize(std::max<size_t>(above_.size(), prompt + 1), kNone);
    above_[prompt] = above;
    if (!sidechain) calls_.TurnBegins();
    if (offset < point_.offset) message_ = {};
  }
  if (offset == point_.record) kept_ = point_.is_prompt ? above : prompt;
  place_of_.emplace(HashOf(*id), Place{.prompt = prompt, .offset = offset});
  if (!sidechain) last_ = prompt;
  if (!sidechain) NoteCalls(fields, offset, prompt);
  Add(offset, end, prompt);
}

Result<TranscriptCut> TreeCut::Finish() {
  if (!kept_) return Error(Errc::kNotFound, "the transcript has no such message");
  std::unordered_set<uint64_t> kept = {kNone};
  for (uint64_t prompt = *kept_; prompt != kNone; prompt = above_[prompt])
    kept.insert(prompt);
  const auto is_kept = [&kept](uint64_t prompt) { return kept.contains(prompt); };
  const CopyEnd end =
      EndOfCopy(point_.offset, calls_, point_.is_end ? &thoughts_ : nullptr, is_kept);
  const uint64_t limit = end.end;
  // Claude Code writes some down before the record that they are about.
  const auto is_about_what_goes = [&](const Run& run) {
    const auto leaf = place_of_.find(run.leaf);
    return run.leaf != 0 && leaf != place_of_.end() &&
           (leaf->second.offset >= limit || !kept.contains(leaf->second.prompt)) &&
           !BELAY_MUTANT("what-goes-is-the-last-prompt");
  };
  const auto is_queued_for_nobody = [&](const Run& run) {
    return run.queued != kNone && point_.is_end &&
           IsOfNoPrompt(queued_[run.queued], limit, is_kept);
  };
  TranscriptCut cut;
  cut.spares_calls = end.of_calls;
  for (const Run& run : runs_)
    if ((kept.contains(run.prompt) && !is_about_what_goes(run) &&
         !is_queued_for_nobody(run)) ||
        BELAY_MUTANT("cut-keeps-dead-branches"))
      AddPiece(cut.pieces, run.offset, std::min(run.end, limit));
  return cut;
}

Result<TranscriptCut> TreeCut::FinishRest(const TranscriptPrompt& from) {
  std::unordered_set<uint64_t> kept;
  uint64_t prompt = last_;
  for (; prompt != kNone && prompt != from.index; prompt = above_[prompt])
    kept.insert(prompt);
  if (prompt == kNone) return NotInIt();
  kept.insert(prompt);
  TranscriptCut cut;
  // What the agent writes down just before the prompt belongs to its turn.
  AddPiece(cut.pieces, from.turn_offset, from.offset);
  for (const Run& run : runs_)
    if (run.end > from.offset && kept.contains(run.prompt))
      AddPiece(cut.pieces, std::max(run.offset, from.offset), run.end);
  return cut;
}

// --- Codex, Copilot CLI: one line after the other
// --------------------------------------

// All before the cut; what the agent took back itself is said in it, and the agent
// reads that again.
class PrefixCut {
 public:
  PrefixCut(AgentKind agent, const CutPoint& point)
      : agent_(agent), point_(point), calls_(point.offset), thoughts_(point.offset) {}

  void Take(const Json& json, uint64_t offset) {
    if (offset == point_.record) found_ = true;
    const JsonFields fields(json);
    const std::optional<Json> type = fields.Get("type");
    if (!type || fields.Get("agentId")) return;
    if (IsCompaction(agent_, fields)) Said(offset);
    if (agent_ == AgentKind::kCopilot)
      TakeCopilot(*type, fields.Get("data"), offset);
    else if (const std::optional<Json> payload = fields.Get("payload"))
      TakeCodex(*type, *payload, offset);
  }
  void TakeUnread(const TranscriptLines::Line& line) {
    if (line.too_long && !BELAY_MUTANT("what-is-too-long-was-not-said"))
      Said(line.offset);
  }
  Result<TranscriptCut> Finish() {
    if (!found_) return Error(Errc::kNotFound, "the transcript has no such message");
    const CopyEnd end =
        EndOfCopy(point_.offset, calls_, point_.is_end ? &thoughts_ : nullptr,
                  [](uint64_t) { return true; });
    TranscriptCut cut;
    cut.spares_calls = end.of_calls;
    AddPiece(cut.pieces, 0, end.end);
    return cut;
  }

 private:
  void Said(uint64_t offset) {
    calls_.Said(offset);
    thoughts_.Said(offset);
  }
  void TakeCopilot(const Json& type, const std::optional<Json>& data, uint64_t offset) {
    if (type.TextIs("assistant.message")) {
      if (data && IsThoughtOfCopilot(*data)) return thoughts_.Thought(offset);
      Said(offset);
      const std::optional<Json> calls = data ? data->Get("toolRequests") : std::nullopt;
      if (calls && calls->is_array())
        for (JsonParts parts(*calls); parts.Next();)
          calls_.Called(offset, HashOfId(parts.value().Get("toolCallId")));
    } else if (type.TextIs("tool.execution_complete")) {
      calls_.Answered(offset, HashOfId(data ? data->Get("toolCallId") : std::nullopt));
      thoughts_.Said(offset);
    } else if (type.TextIs("user.message")) {
      calls_.TurnBegins();
      Said(offset);
    }
  }
  // It says nothing and calls nothing.
  static bool IsThoughtOfCopilot(const Json& data) {
    const std::optional<Json> calls = data.Get("toolRequests");
    const bool calls_any = calls && calls->is_array() && JsonParts(*calls).Next();
    return (data.Get("reasoningText") || data.Get("reasoningOpaque")) && !calls_any &&
           ContentText(data.Get("content"), 1).empty();
  }
  // Calls that Codex answers itself have a call_id, and so have the answers. Those that
  // were made together are a line each, so that a call alone says nothing. What it took
  // back itself is in the file, and so is the line that says so.
  void TakeCodex(const Json& type, const Json& payload, uint64_t offset) {
    const std::string kind = IdOf(payload.Get("type")).value_or("");
    if (type.TextIs("event_msg")) {
      if (kind == "user_message" || kind == "agent_message" ||
          kind == "thread_rolled_back")
        calls_.Said(offset);
      // What it shows of an answer may come before the thoughts behind which that is.
      if (kind == "user_message" || kind == "thread_rolled_back")
        thoughts_.Said(offset);
      return;
    }
    if (!type.TextIs("response_item")) return;
    if (kind == "reasoning") return thoughts_.Thought(offset);
    thoughts_.Said(offset);
    if (kind == "message") calls_.Said(offset);
    const std::optional<Json> id = payload.Get("call_id");
    if (!IdOf(id)) return;
    if (kind.ends_with("_output"))
      calls_.Answered(offset, HashOfId(id));
    else if (kind.ends_with("_call"))
      calls_.Called(offset, HashOfId(id));
  }

  const AgentKind agent_;
  const CutPoint& point_;
  bool found_ = false;
  OpenCalls calls_;
  LastThoughts thoughts_;
};

// --- Gemini CLI: a conversation that is replaced now and then
// --------------------------

// The messages that are in the conversation, each as it was written last, up to the
// one where it is cut. When that one is not in it any more (compressed away, rewound),
// the conversation as it was when that message came. A line that is too long may be any
// of them, or a list of all.
class GeminiCut {
 public:
  explicit GeminiCut(const CutPoint& point)
      : target_(HashOf(point.id)), is_end_(point.is_end) {}

  void Take(const Json& json, std::string_view text, uint64_t offset, uint64_t end);
  void TakeUnread(const TranscriptLines::Line& line) {
    if (!line.too_long || BELAY_MUTANT("what-is-too-long-goes-without-a-word")) return;
    unread_ = true;
    if (!when_it_came_) unread_before_ = true;
  }
  Result<TranscriptCut> Finish();
  Result<TranscriptCut> FinishRest();

 private:
  struct Message {
    uint64_t id = 0;
    Piece at;
    std::vector<uint64_t> calls = {}, answers = {};  // hashes of their ids
    bool thoughts = false;                           // and nothing else
  };
  void TakeMessage(const Json& json, Piece at);
  void Rewind(uint64_t id);
  void AddMessages(size_t from, TranscriptCut& cut) const;

  const uint64_t target_;
  const bool is_end_;
  std::optional<Piece> header_;
  std::vector<Message> now_;
  std::unordered_map<uint64_t, size_t> places_;  // in now_
  std::optional<std::vector<Message>> when_it_came_;
  std::vector<Message> since_;  // that it came: what calls and answers
  bool unread_ = false, unread_before_ = false;
};

// Thoughts are a list beside the content, or parts of it.
bool HasThoughtsOnly(const Json& json) {
  const std::optional<Json> content = json.Get("content");
  const std::optional<Json> thoughts = json.Get("thoughts");
  bool thinks = thoughts && thoughts->is_array() && JsonParts(*thoughts).Next();
  if (!content || !content->is_array())
    return thinks && ContentText(content, 1).empty();
  for (JsonParts parts(*content); parts.Next(); thinks = true)
    if (!IsTrue(parts.value().Get("thought"))) return false;
  return thinks;
}

void GeminiCut::TakeMessage(const Json& json, Piece at) {
  const std::optional<std::string> id = IdOf(json.Get("id"));
  if (!id) return;
  const std::optional<Json> content = json.Get("content");
  const std::optional<Json> calls = json.Get("toolCalls");
  Message message{.id = HashOf(*id), .at = at};
  const auto hash = [](const Json& part) {
    return HashOf(IdOf(part.Get("id")).value_or(""));
  };
  EachPart(content, "functionResponse", [&](const Json&, const Json& answer) {
    message.answers.push_back(hash(answer));
  });
  // Of a session that was gone on with the calls are among the parts.
  EachPart(content, "functionCall",
           [&](const Json&, const Json& call) { message.calls.push_back(hash(call)); });
  if (calls && calls->is_array() && message.calls.empty())
    for (JsonParts parts(*calls); parts.Next();)
      message.calls.push_back(hash(parts.value()));
  message.thoughts = message.calls.empty() && message.answers.empty() &&
                     Is(json.Get("type"), "gemini") && HasThoughtsOnly(json);
  if (message.id == target_ && !when_it_came_) when_it_came_ = now_;
  if (when_it_came_ && !(message.calls.empty() && message.answers.empty()))
    since_.push_back(message);
  if (const auto known = places_.find(message.id); known != places_.end()) {
    now_[known->second] = message;
    return;
  }
  places_[message.id] = now_.size();
  now_.push_back(message);
}

void GeminiCut::Rewind(uint64_t id) {
  const bool known = places_.contains(id);
  while (!now_.empty()) {
    const uint64_t last = now_.back().id;
    now_.pop_back();
    places_.erase(last);
    if (known && last == id) break;
  }
}

void GeminiCut::Take(const Json& json, std::string_view text, uint64_t offset,
                     uint64_t end) {
  const JsonFields fields(json);
  if (const auto id = IdOf(fields.Get("$rewindTo"))) return Rewind(HashOf(*id));
  if (fields.Get("id")) return TakeMessage(json, {.offset = offset, .end = end});
  const std::optional<Json> set = fields.Get("$set");
  if (!set) {
    if (!header_ && fields.Get("sessionId"))
      header_ = Piece{.offset = offset, .end = end};
    return;
  }
  const std::optional<Json> messages = set->Get("messages");
  if (!messages || !messages->is_array()) return;
  now_.clear();
  places_.clear();
  for (JsonParts parts(*messages); parts.Next();) {
    const std::string_view raw = parts.value().raw();
    const uint64_t at = offset + static_cast<uint64_t>(raw.data() - text.data());
    TakeMessage(parts.value(), {.offset = at, .end = at + raw.size()});
  }
}

Result<TranscriptCut> GeminiCut::Finish() {
  const auto place = places_.find(target_);
  if (place == places_.end() && !when_it_came_)
    return Error(Errc::kNotFound, "the transcript has no such message");
  if (unread_before_) return TooLong();
  size_t kept = 0;
  if (place != places_.end()) {
    kept = place->second;
  } else {
    now_ = std::move(*when_it_came_);
    kept = now_.size();
    now_.insert(now_.end(), since_.begin(), since_.end());
  }
  // A message that made calls, and their answers, stay or go together.
  OpenCalls calls(kept);
  LastThoughts thoughts(kept);
  for (size_t i = 0; i < now_.size(); ++i) {
    if (now_[i].calls.empty() && now_[i].answers.empty()) calls.TurnBegins();
    if (now_[i].thoughts) {
      thoughts.Thought(i);
      continue;
    }
    thoughts.Said(i);
    if (now_[i].answers.empty()) calls.Said(i);
    for (const uint64_t id : now_[i].calls) calls.Called(i, id);
    for (const uint64_t id : now_[i].answers) calls.Answered(i, id);
  }
  const CopyEnd end = EndOfCopy(kept, calls, is_end_ ? &thoughts : nullptr,
                                [](uint64_t) { return true; });
  now_.resize(end.end);
  TranscriptCut cut;
  cut.spares_calls = end.of_calls;
  if (header_) cut.pieces.push_back(*header_);
  AddMessages(0, cut);
  return cut;
}

void GeminiCut::AddMessages(size_t from, TranscriptCut& cut) const {
  cut.ids.emplace();
  for (size_t i = from; i < now_.size(); ++i) {
    cut.pieces.push_back(now_[i].at);
    cut.ids->push_back(now_[i].id);
  }
  std::sort(cut.ids->begin(), cut.ids->end());
}

Result<TranscriptCut> GeminiCut::FinishRest() {
  const auto place = places_.find(target_);
  if (place == places_.end()) return NotInIt();
  if (unread_) return TooLong();
  TranscriptCut cut;
  AddMessages(place->second, cut);
  return cut;
}

bool HoldsRecord(const TranscriptCut& cut, uint64_t offset, std::string_view id) {
  if (cut.ids) return std::binary_search(cut.ids->begin(), cut.ids->end(), HashOf(id));
  auto piece = std::upper_bound(
      cut.pieces.begin(), cut.pieces.end(), offset,
      [](uint64_t at, const Piece& candidate) { return at < candidate.offset; });
  return piece != cut.pieces.begin() && offset < (--piece)->end;
}

// Calls `take(line)` for each line of the file as far as it was read before.
template <class Take, class Unread>
Status EachLine(Fs& fs, const Fd& file, uint64_t size, const Take& take,
                const Unread& unread) {
  TranscriptLines lines(fs, file, true, size);
  for (TranscriptLines::Line line;;) {
    BELAY_TRY(const bool more, lines.Next(line));
    if (!more) return Ok();
    const Result<Json> json = line.too_long
                                  ? Result<Json>(Error(Errc::kInvalid, "too long"))
                                  : Json::Parse(line.text);
    if (IsWholeRecord(line, json))
      take(*json, line);
    else if (line.whole)
      unread(line);
  }
}

}  // namespace

bool TranscriptCut::Holds(const TranscriptMessage& message) const {
  return HoldsRecord(*this, message.offset, message.id);
}

bool TranscriptCut::Holds(const TranscriptPrompt& prompt) const {
  return HoldsRecord(*this, prompt.offset, prompt.record);
}

CutPoint Before(const TranscriptPrompt& prompt) {
  return {.offset = prompt.turn_offset, .record = prompt.offset, .id = prompt.record};
}

CutPoint Before(const TranscriptMessage& message) {
  return {.offset = message.offset,
          .record = message.offset,
          .id = message.id,
          .is_prompt = false};
}

Result<TranscriptCut> PlanCut(Fs& fs, AgentKind agent, const Fd& file,
                              const Transcript& transcript, const CutPoint& point) {
  using Line = TranscriptLines::Line;
  switch (agent) {
    case AgentKind::kClaude:
    case AgentKind::kQwen: {
      TreeCut cut(agent, transcript, point);
      BELAY_OK(EachLine(
          fs, file, transcript.size,
          [&](const Json& json, const Line& line) {
            cut.Take(json, line.offset, line.end);
          },
          [&](const Line& line) { cut.TakeUnread(line); }));
      return cut.Finish();
    }
    case AgentKind::kCodex:
    case AgentKind::kCopilot: {
      PrefixCut cut(agent, point);
      BELAY_OK(EachLine(
          fs, file, transcript.size,
          [&](const Json& json, const Line& line) { cut.Take(json, line.offset); },
          [&](const Line& line) { cut.TakeUnread(line); }));
      return cut.Finish();
    }
    case AgentKind::kGemini: {
      GeminiCut cut(point);
      BELAY_OK(EachLine(
          fs, file, transcript.size,
          [&](const Json& json, const Line& line) {
            cut.Take(json, line.text, line.offset, line.end);
          },
          [&](const Line& line) { cut.TakeUnread(line); }));
      return cut.Finish();
    }
    default:
      return Error(Errc::kUnsupported, std::string(AgentName(agent)) +
                                           " keeps no transcript that can be cut");
  }
}

Result<TranscriptCut> PlanRest(Fs& fs, AgentKind agent, const Fd& file,
                               const Transcript& transcript,
                               const TranscriptPrompt& from) {
  using Line = TranscriptLines::Line;
  if (from.dead) return NotInIt();
  const CutPoint end{.offset = UINT64_MAX, .record = UINT64_MAX, .id = from.record};
  switch (agent) {
    case AgentKind::kClaude:
    case AgentKind::kQwen: {
      TreeCut cut(agent, transcript, end);
      BELAY_OK(EachLine(
          fs, file, transcript.size,
          [&](const Json& json, const Line& line) {
            cut.Take(json, line.offset, line.end);
          },
          [&](const Line& line) { cut.TakeUnread(line); }));
      return cut.FinishRest(from);
    }
    case AgentKind::kCodex:
    case AgentKind::kCopilot: {
      // To the end of the last line that is whole.
      uint64_t whole = 0;
      BELAY_OK(EachLine(
          fs, file, transcript.size,
          [&](const Json&, const Line& line) { whole = line.end; },
          [&](const Line& line) { whole = line.end; }));
      TranscriptCut cut;
      AddPiece(cut.pieces, from.turn_offset, whole);
      return cut;
    }
    case AgentKind::kGemini: {
      GeminiCut cut(end);
      BELAY_OK(EachLine(
          fs, file, transcript.size,
          [&](const Json& json, const Line& line) {
            cut.Take(json, line.text, line.offset, line.end);
          },
          [&](const Line& line) { cut.TakeUnread(line); }));
      return cut.FinishRest();
    }
    default:
      return Error(Errc::kUnsupported, std::string(AgentName(agent)) +
                                           " keeps no transcript that can be cut");
  }
}

Result<TranscriptCut> PlanWhole(Fs& fs, AgentKind agent, const Fd& file,
                                const Transcript& transcript) {
  const auto first =
      std::ranges::find(transcript.prompts, false, &TranscriptPrompt::dead);
  if (first == transcript.prompts.end())
    return Error(Errc::kNotFound, "nothing was said in the conversation");
  CutPoint point = Before(*first);
  point.is_end = false;
  BELAY_TRY(TranscriptCut cut, PlanCut(fs, agent, file, transcript, point));
  BELAY_TRY(const TranscriptCut rest, PlanRest(fs, agent, file, transcript, *first));
  for (const Piece& piece : rest.pieces)
    if (cut.ids)
      cut.pieces.push_back(piece);
    else
      AddPiece(cut.pieces, piece.offset, piece.end);
  if (!cut.ids) return cut;
  cut.ids->insert(cut.ids->end(), rest.ids->begin(), rest.ids->end());
  std::sort(cut.ids->begin(), cut.ids->end());
  return cut;
}

// --- the copy ----------------------------------------------------------------------

Status CopyCut(Fs& fs, const Fd& file, const TranscriptCut& cut,
               const std::vector<TranscriptSwap>& swaps, const TranscriptSink& sink) {
  return SwapInto(swaps, sink, [&](const TranscriptSink& swapped) -> Status {
    Bytes chunk(256 << 10);
    for (const TranscriptCut::Piece& piece : cut.pieces) {
      char last = '\n';
      for (uint64_t at = piece.offset; at < piece.end;) {
        const size_t want = std::min<uint64_t>(chunk.size(), piece.end - at);
        BELAY_TRY(const size_t got,
                  ReadFull(fs, file, at, std::span(chunk).first(want)));
        if (got < want)
          return Error(Errc::kInvalid, "the transcript became shorter meanwhile");
        const ByteSpan read = ByteSpan(chunk).first(got);
        last = AsText(read).back();
        BELAY_OK(swapped(read));
        at += got;
      }
      if (last != '\n') BELAY_OK(swapped(AsBytes(std::string_view("\n"))));
    }
    return Ok();
  });
}

}  // namespace belay
