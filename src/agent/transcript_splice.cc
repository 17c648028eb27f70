#include "agent/transcript_splice.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_set>
#include <utility>

#include "agent/conversation.h"
#include "agent/dialect_internal.h"
#include "agent/transcript_internal.h"
#include "agent/transcript_lines.h"
#include "base/clock.h"
#include "base/fast_hash.h"
#include "base/json.h"
#include "base/mutant.h"

namespace belay {
namespace {

// More records than this that hang below the part would be no conversation.
constexpr size_t kMostSwaps = 100;

bool Covers(const TranscriptCut& cut, uint64_t offset) {
  auto piece = std::upper_bound(cut.pieces.begin(), cut.pieces.end(), offset,
                                [](uint64_t at, const TranscriptCut::Piece& candidate) {
                                  return at < candidate.offset;
                                });
  return piece != cut.pieces.begin() && offset < (--piece)->end;
}

// What is in `whole` and not in `behind`, which is its end.
TranscriptCut Without(const TranscriptCut& whole, const TranscriptCut& behind) {
  TranscriptCut out;
  if (whole.ids) {  // a list of messages: the rest is its end
    const size_t rest = behind.pieces.size();
    out.pieces.assign(whole.pieces.begin(),
                      whole.pieces.end() - static_cast<ptrdiff_t>(rest));
    out.ids.emplace();
    std::set_difference(whole.ids->begin(), whole.ids->end(), behind.ids->begin(),
                        behind.ids->end(), std::back_inserter(*out.ids));
    return out;
  }
  const uint64_t end = behind.pieces.empty() ? UINT64_MAX : behind.pieces[0].offset;
  for (const TranscriptCut::Piece& piece : whole.pieces)
    if (piece.offset < end)
      out.pieces.push_back({piece.offset, std::min(piece.end, end)});
  return out;
}

// How a record of the agent's names itself and the one before it.
struct Naming {
  std::string_view id;
  std::vector<std::string_view> parents = {};
};
Naming NamingOf(AgentKind agent) {
  switch (agent) {
    case AgentKind::kClaude:
      return {"uuid", {"parentUuid", "logicalParentUuid"}};
    case AgentKind::kQwen:
      return {"uuid", {"parentUuid"}};
    case AgentKind::kCopilot:
      return {"id", {"parentId"}};
    default:
      return {};
  }
}

bool IsAnswer(AgentKind agent, const JsonFields& fields) {
  const std::optional<Json> type = fields.Get("type");
  switch (agent) {
    case AgentKind::kClaude:
    case AgentKind::kQwen:
      return Is(type, "assistant");
    case AgentKind::kGemini:
      return Is(type, "gemini");
    case AgentKind::kCopilot:
      return Is(type, "assistant.message") && !fields.Get("agentId");
    default:
      return false;
  }
}

class Facts {
 public:
  Facts(AgentKind agent, TranscriptPart& part)
      : agent_(agent), naming_(NamingOf(agent)), part_(part) {}

  Status Take(const Json& json, uint64_t offset) {
    const JsonFields fields(json);
    const bool before = Covers(part_.before, offset);
    const bool behind = !before && Covers(part_.behind, offset);
    if (behind && IsCompaction(agent_, fields) &&
        !BELAY_MUTANT("summary-before-a-compaction"))
      return Error(Errc::kRefused,
                   "the agent compacted the conversation later: it does not go on from "
                   "that part")
          .WithHint("up to a later turn: --to; or what came since: --from");
    if (const auto ordinal = fields.Get("ordinal");
        ordinal && agent_ == AgentKind::kCodex)
      if (const auto number = ordinal->Uint()) {
        if (before) part_.ordinal = *number + 1;
        if (behind && !part_.ordinal_behind) part_.ordinal_behind = *number;
      }
    if (offset == part_.from.offset) {
      part_.like_prompt = std::string(json.raw());
      from_parent_ = ParentOf(fields);
    }
    if (IsAnswer(agent_, fields) && json.raw().size() < kSmall)
      part_.like_answer = std::string(json.raw());
    return TakeNames(fields, offset, before, behind);
  }

  void Finish() {
    part_.parent = agent_ == AgentKind::kCopilot || !from_parent_ ||
                           !before_.contains(HashOf(*from_parent_))
                       ? last_before_
                       : *from_parent_;
    // The first prompt of all begins anew.
    if (agent_ != AgentKind::kCopilot && !from_parent_) part_.parent.clear();
    if (BELAY_MUTANT("summary-loses-the-thread")) part_.swaps.clear();
  }

 private:
  static constexpr size_t kSmall = 1 << 20;

  std::optional<std::string> ParentOf(const JsonFields& fields) const {
    for (std::string_view name : naming_.parents)
      if (auto parent = IdOf(fields.Get(name))) return parent;
    return std::nullopt;
  }

  Status TakeNames(const JsonFields& fields, uint64_t offset, bool before,
                   bool behind) {
    if (naming_.id.empty()) return Ok();
    const std::optional<std::string> id = IdOf(fields.Get(naming_.id));
    if (!id) return Ok();
    const auto side = fields.Get("isSidechain");
    if (before) {
      before_.insert(HashOf(*id));
      if (!side || !side->Bool().value_or(false)) last_before_ = *id;
      return Ok();
    }
    if (!behind) {
      dropped_.insert(HashOf(*id));
      return Ok();
    }
    // The first one behind it follows it whatever it names.
    const bool first = agent_ == AgentKind::kCopilot ? !std::exchange(any_behind_, true)
                                                     : offset == part_.until->offset;
    for (std::string_view name : naming_.parents) {
      const auto parent = IdOf(fields.Get(name));
      if (!parent || (!first && !dropped_.contains(HashOf(*parent)))) continue;
      if (!swapped_.insert(*parent).second) continue;
      if (part_.swaps.size() == kMostSwaps)
        return Error(Errc::kRefused, "too many records hang below that part");
      part_.swaps.push_back({.from = *parent, .to = part_.last_id});
    }
    return Ok();
  }

  const AgentKind agent_;
  const Naming naming_;
  TranscriptPart& part_;
  std::optional<std::string> from_parent_;
  std::string last_before_;
  std::unordered_set<uint64_t> before_, dropped_;
  std::set<std::string> swapped_;
  bool any_behind_ = false;
};

// --- the records ---------------------------------------------------------------------

// A JSON string.
std::string Q(std::string_view text) { return JsonWriter().String(text).Take(); }

class Records {
 public:
  Records(Random& random, const TranscriptPart& part, const Replacement& replacement)
      : random_(random), part_(part), r_(replacement) {
    if (auto like = Json::Parse(part.like_prompt); like.ok()) prompt_ = *like;
    if (auto like = Json::Parse(part.like_answer); like.ok()) answer_ = *like;
    at_ = Q(FormatUtcMillis(r_.now_ms));
    parent_ = part_.parent.empty() ? "null" : Q(part_.parent);
  }

  std::string Claude() {
    const std::string id = Q(NewUuid(random_));
    const std::string common =
        ",\"timestamp\":" + at_ +
        Like(prompt_, {"userType", "entrypoint", "cwd", "version", "gitBranch"}) +
        ",\"sessionId\":" + Q(r_.session) + "}\n";
    return "{\"parentUuid\":" + parent_ + ",\"isSidechain\":false" +
           Like(prompt_, {"promptId"}) +
           ",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":" +
           Q(r_.message) + "},\"uuid\":" + id + common + "{\"parentUuid\":" + id +
           ",\"isSidechain\":false,\"message\":{\"id\":" +
           Q("msg_" + NewUuid(random_)) +
           ",\"type\":\"message\",\"role\":\"assistant\",\"model\":" +
           Q(IdOf(answer_.Get("message", "model")).value_or("unknown")) +
           ",\"content\":[{\"type\":\"text\",\"text\":" + Q(r_.answer) +
           "}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":"
           "{\"input_tokens\":0,\"output_tokens\":0}},\"type\":\"assistant\","
           "\"uuid\":" +
           Q(part_.last_id) + common;
  }

  std::string Qwen() {
    const std::string id = Q(NewUuid(random_));
    const std::string common = ",\"sessionId\":" + Q(r_.session) +
                               ",\"timestamp\":" + at_ +
                               Like(prompt_, {"cwd", "version", "gitBranch"});
    return "{\"uuid\":" + id + ",\"parentUuid\":" + parent_ + common +
           ",\"type\":\"user\"" + Like(prompt_, {"provenance"}) +
           ",\"message\":{\"role\":\"user\",\"parts\":[{\"text\":" + Q(r_.message) +
           "}]}}\n{\"uuid\":" + Q(part_.last_id) + ",\"parentUuid\":" + id + common +
           ",\"type\":\"assistant\"" + Like(answer_, {"provenance", "model"}) +
           ",\"message\":{\"role\":\"model\",\"parts\":[{\"text\":" + Q(r_.answer) +
           "}]}}\n";
  }

  std::string Gemini() {
    return "{\"id\":" + Q(part_.from.record) + ",\"timestamp\":" + at_ +
           ",\"type\":\"user\",\"content\":[{\"text\":" + Q(r_.message) +
           "}]}\n{\"id\":" + Q(part_.last_id) + ",\"timestamp\":" + at_ +
           ",\"type\":\"gemini\",\"content\":" + Q(r_.answer) + ",\"thoughts\":[]" +
           Like(answer_, {"model"}) + "}\n";
  }

  std::string Copilot() {
    const std::string asked = Q(NewUuid(random_)), begun = Q(NewUuid(random_)),
                      answered = Q(NewUuid(random_));
    const std::string interaction =
        "\"interactionId\":" + Q(NewUuid(random_)) + ",\"turnId\":\"0\"";
    const Json data = prompt_.Get("data").value_or(Json());
    auto line = [&](const char* type, const std::string& with, const std::string& id,
                    const std::string& parent) {
      return "{\"type\":\"" + std::string(type) + "\",\"data\":{" + with +
             "},\"id\":" + id + ",\"timestamp\":" + at_ + ",\"parentId\":" + parent +
             "}\n";
    };
    return line("user.message",
                "\"content\":" + Q(r_.message) +
                    ",\"transformedContent\":" + Q(r_.message) +
                    Like(data, {"messageId", "delivery"}) + "," + interaction,
                asked, parent_) +
           line("assistant.turn_start", interaction, begun, asked) +
           line("assistant.message",
                "\"messageId\":" + Q(NewUuid(random_)) +
                    Like(answer_.Get("data").value_or(Json()), {"model"}) +
                    ",\"content\":" + Q(r_.answer) + ",\"toolRequests\":[]," +
                    interaction,
                answered, begun) +
           line("assistant.turn_end", "\"turnId\":\"0\"", Q(part_.last_id), answered);
  }

  // The turn that the part began with has begun, and ends with the answer.
  std::string Codex() {
    const bool known = part_.from.anchor != part_.from.record;
    const std::string turn =
        known ? ",\"turn_id\":" + Q(part_.from.anchor) : std::string();
    uint64_t ordinal = part_.ordinal.value_or(0);
    auto line = [&](const char* type, const std::string& payload) {
      std::string out = "{\"timestamp\":" + at_;
      if (part_.ordinal) out += ",\"ordinal\":" + std::to_string(ordinal++);
      return out + ",\"type\":\"" + type + "\",\"payload\":{" + payload + "}}\n";
    };
    auto message = [&](const char* role, const char* kind, const std::string& text) {
      return line("response_item",
                  "\"type\":\"message\",\"id\":" + Q("msg_" + NewUuid(random_)) +
                      ",\"role\":\"" + role + "\",\"content\":[{\"type\":\"" + kind +
                      "\",\"text\":" + Q(text) + "}]");
    };
    auto shown = [&](const char* item, const char* event, const char* part,
                     const std::string& text) {
      if (!known)
        return line("event_msg",
                    "\"type\":\"" + std::string(event) + "\",\"message\":" + Q(text));
      return line(
          "event_msg",
          "\"type\":\"item_completed\",\"thread_id\":" + Q(r_.session) + turn +
              ",\"item\":{\"type\":\"" + item + "\",\"id\":" + Q(NewUuid(random_)) +
              ",\"content\":[{\"type\":\"" + part + "\",\"text\":" + Q(text) +
              (std::string_view(part) == "text" ? ",\"text_elements\":[]" : "") +
              "}]},\"started_at_ms\":" + std::to_string(r_.now_ms) +
              ",\"completed_at_ms\":" + std::to_string(r_.now_ms));
    };
    std::string out = message("user", "input_text", r_.message);
    out += shown("UserMessage", "user_message", "text", r_.message);
    out += shown("AgentMessage", "agent_message", "Text", r_.answer);
    out += message("assistant", "output_text", r_.answer);
    if (known)
      out += line("event_msg", "\"type\":\"task_complete\"" + turn +
                                   ",\"last_agent_message\":" + Q(r_.answer));
    return out;
  }

 private:
  // What another record has under these names, as far as it has it.
  static std::string Like(const Json& other,
                          std::initializer_list<std::string_view> keys) {
    std::string out;
    for (std::string_view key : keys)
      if (const auto value = other.Get(key))
        out += ",\"" + std::string(key) + "\":" + value->Compact();
    return out;
  }

  Random& random_;
  const TranscriptPart& part_;
  const Replacement& r_;
  Json prompt_, answer_;
  std::string at_, parent_;
};

// Lines of Codex are counted: those behind the part go on from the records before them.
class Renumbering {
 public:
  Renumbering(uint64_t from, uint64_t to, const TranscriptSink& sink)
      : from_(from), to_(to), sink_(sink) {}

  Status Take(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view piece =
          text.substr(0, end == std::string_view::npos ? end : end + 1);
      text.remove_prefix(piece.size());
      if (through_) {
        BELAY_OK(sink_(AsBytes(piece)));
      } else {
        begin_ += piece;
      }
      if (end != std::string_view::npos) {
        if (!through_) BELAY_OK(Begin());
        through_ = false;
      } else if (!through_ && begin_.size() >= kBegin) {
        BELAY_OK(Begin());
        through_ = true;
      }
    }
    return Ok();
  }
  Status Finish() { return begin_.empty() ? Ok() : Begin(); }

 private:
  static constexpr size_t kBegin = 512;

  // It stands before what the line tells.
  Status Begin() {
    constexpr std::string_view kKey = "\"ordinal\":";
    std::string text = std::exchange(begin_, {});
    const size_t told = text.find("\"payload\"");
    const size_t at = text.find(kKey);
    if (at < told) {
      const size_t begin = at + kKey.size();
      size_t end = begin;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      uint64_t number = 0;
      const auto read = std::from_chars(text.data() + begin, text.data() + end, number);
      if (read.ec == std::errc() && number >= from_)
        text.replace(begin, end - begin, std::to_string(number - from_ + to_));
    }
    return sink_(AsBytes(text));
  }

  const uint64_t from_, to_;
  const TranscriptSink& sink_;
  std::string begin_;
  bool through_ = false;
};

}  // namespace

Result<TranscriptPart> FindPart(Fs& fs, Random& random, AgentKind agent, const Fd& file,
                                const Transcript& transcript,
                                const TranscriptPrompt& from,
                                const TranscriptPrompt* until) {
  TranscriptPart out{.from = from, .last_id = NewUuid(random)};
  CutPoint point = Before(from);
  point.is_end = false;
  // With the prompt of a turn of Codex comes what it was asked under.
  if (agent == AgentKind::kCodex) point.offset = from.offset;
  BELAY_TRY(out.before, PlanCut(fs, agent, file, transcript, point));
  BELAY_TRY(out.inside, PlanRest(fs, agent, file, transcript, from));
  if (until != nullptr) {
    out.until = *until;
    BELAY_TRY(out.behind, PlanRest(fs, agent, file, transcript, *until));
    out.inside = Without(out.inside, out.behind);
  }
  Facts facts(agent, out);
  TranscriptLines lines(fs, file, true, transcript.size);
  for (TranscriptLines::Line line;;) {
    BELAY_TRY(const bool more, lines.Next(line));
    if (!more) break;
    // Nobody knows what it says, nor what hangs below it.
    if (line.too_long && line.whole &&
        (agent != AgentKind::kCodex || Covers(out.inside, line.offset)) &&
        !BELAY_MUTANT("a-summary-stands-for-what-nobody-read"))
      return Error(Errc::kRefused, "the conversation has a line of more than " +
                                       std::to_string(kLongestLine >> 20) +
                                       " MiB, which is not read, and no summary can "
                                       "stand for what it says")
          .WithHint("nothing was changed");
    if (line.too_long) continue;
    if (const Result<Json> json = Json::Parse(line.text); IsWholeRecord(line, json))
      BELAY_OK(facts.Take(*json, line.offset));
  }
  facts.Finish();
  return out;
}

Status ReadPart(Fs& fs, AgentKind agent, const Fd& file, const Transcript& transcript,
                const TranscriptPart& part,
                const std::function<void(const Json&, uint64_t)>& take) {
  if (agent == AgentKind::kGemini) {
    for (const TranscriptCut::Piece& piece : part.inside.pieces) {
      if (piece.end - piece.offset > kLongestLine) continue;
      Bytes bytes(piece.end - piece.offset);
      BELAY_TRY(const size_t got, ReadFull(fs, file, piece.offset, bytes));
      const std::string_view text = AsText(ByteSpan(bytes).first(got));
      if (const Result<Json> json = Json::Parse(text); json.ok())
        take(*json, piece.offset);
    }
    return Ok();
  }
  TranscriptLines lines(fs, file, true, transcript.size);
  for (TranscriptLines::Line line;;) {
    BELAY_TRY(const bool more, lines.Next(line));
    if (!more) return Ok();
    if (line.too_long || !Covers(part.inside, line.offset)) continue;
    if (const Result<Json> json = Json::Parse(line.text); IsWholeRecord(line, json))
      take(*json, line.offset);
  }
}

std::string ReplacementRecords(Random& random, AgentKind agent,
                               const TranscriptPart& part,
                               const Replacement& replacement) {
  Records records(random, part, replacement);
  switch (agent) {
    case AgentKind::kClaude:
      return records.Claude();
    case AgentKind::kQwen:
      return records.Qwen();
    case AgentKind::kGemini:
      return records.Gemini();
    case AgentKind::kCodex:
      return records.Codex();
    case AgentKind::kCopilot:
      return records.Copilot();
    default:
      return {};
  }
}

Status CopySpliced(Fs& fs, AgentKind agent, const Fd& file, const TranscriptPart& part,
                   const std::vector<TranscriptSwap>& swaps, const std::string& records,
                   const TranscriptSink& sink) {
  BELAY_OK(CopyCut(fs, file, part.before, swaps, sink));
  BELAY_OK(sink(AsBytes(records)));
  std::vector<TranscriptSwap> behind = swaps;
  behind.insert(behind.end(), part.swaps.begin(), part.swaps.end());
  if (agent != AgentKind::kCodex || !part.ordinal || !part.ordinal_behind)
    return CopyCut(fs, file, part.behind, behind, sink);
  const auto lines =
      static_cast<uint64_t>(std::count(records.begin(), records.end(), '\n'));
  Renumbering renumbered(*part.ordinal_behind, *part.ordinal + lines, sink);
  BELAY_OK(CopyCut(fs, file, part.behind, behind,
                   [&](ByteSpan bytes) { return renumbered.Take(AsText(bytes)); }));
  return renumbered.Finish();
}

}  // namespace belay
