#include "agent/opencode_export.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "agent/json.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/mutant.h"

namespace belay {
namespace {

Error NoExport(const std::string& why) {
  return Error(Errc::kInvalid, "what opencode exported is no conversation: " + why);
}

// What a plugin says before or behind it is not part of it.
std::string_view Document(std::string_view said) {
  size_t begin = said.starts_with('{') ? 0 : said.find("\n{");
  if (begin == std::string_view::npos) return said;
  begin += said[begin] == '\n';
  const size_t end = said.rfind('}');
  return end == std::string_view::npos || end < begin
             ? said
             : said.substr(begin, end + 1 - begin);
}

Result<std::string> CheckedExportId(const std::optional<Json>& value,
                                    std::string_view prefix) {
  constexpr size_t kLongestId = 200;
  std::optional<std::string> id;
  if (value) id = value->Text(kLongestId + 1);
  if (!id || id->size() > kLongestId || !id->starts_with(prefix))
    return NoExport("an id is missing or impossible");
  for (const char c : *id)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
          c == '-' || c == '_'))
      return NoExport("an id is missing or impossible");
  return std::move(*id);
}

// Ids of opencode's: a kind, 48 bits of (milliseconds * 4096 + counter) in hex, and 14
// characters at random. Those of sessions fall, the newest being the first; all others
// rise.
class NewIds {
 public:
  // For so many that rise.
  NewIds(Random& random, int64_t now_ms, uint64_t count)
      : random_(random),
        now_(static_cast<uint64_t>(now_ms) << 12),
        next_((static_cast<uint64_t>(now_ms) << 12) - count) {}

  std::string Session() { return Made("ses_", ~(now_ + 1)); }
  std::string Next(std::string_view kind) { return Made(kind, next_++); }

 private:
  std::string Made(std::string_view kind, uint64_t time) {
    static constexpr char kHex[] = "0123456789abcdef";
    static constexpr std::string_view kAny =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    constexpr int kTimeBits = 48, kRandom = 14;
    std::string id(kind);
    for (int shift = kTimeBits - 4; shift >= 0; shift -= 4)
      id += kHex[(time >> shift) & 0xf];
    for (int i = 0; i < kRandom; ++i) id += kAny[random_.Below(kAny.size())];
    return id;
  }

  Random& random_;
  uint64_t now_, next_;
};

// Strings that are an id and no more become the new one, however they are written.
class IdSwaps {
 public:
  bool Add(std::string from, std::string to) {
    return ids_.emplace(std::move(from), std::move(to)).second;
  }

  std::string In(std::string_view json) const {
    std::string out;
    out.reserve(json.size());
    for (size_t at = 0; at < json.size();) {
      const size_t quote = std::min(json.find('"', at), json.size());
      out += json.substr(at, quote - at);
      if (quote == json.size()) break;
      size_t end = quote + 1;
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      end = std::min(end, json.size());
      const std::string_view text = json.substr(quote + 1, end - quote - 1);
      const auto found = text.size() < kLongest ? ids_.find(Plain(text)) : ids_.end();
      out += '"';
      out += found != ids_.end() ? found->second : text;
      if (end < json.size()) out += '"';
      at = end + 1;
    }
    return out;
  }

 private:
  // An id needs no escapes, and may have some.
  static std::string Plain(std::string_view text) {
    if (text.find('\\') != std::string_view::npos) {
      const std::string quoted = "\"" + std::string(text) + "\"";
      if (const auto value = Json::Parse(quoted); value.ok())
        return value->Text().value_or(std::string());
    }
    return std::string(text);
  }

  static constexpr size_t kLongest = 2048;
  std::unordered_map<std::string, std::string> ids_;
};

class Copier {
 public:
  explicit Copier(const OpencodeCopyRequest& request) : request_(request) {}

  Status Read(std::string_view exported, Random& random, OpencodeCopy& out) {
    BELAY_TRY(const Json whole, Json::Parse(Document(exported)));
    const std::optional<Json> info = whole.Get("info");
    const std::optional<Json> messages = whole.Get("messages");
    if (!info || !info->is_object() || !messages || !messages->is_array())
      return NoExport("session or messages are missing");
    info_ = *info;
    if (!Is(info_.Get("id"), request_.session))
      return NoExport("it is of another session");
    uint64_t all = 0;
    for (JsonParts parts(*messages); parts.Next(); ++all) {
      BELAY_TRY(Message message, ReadMessage(parts.value()));
      if (!cut_ && !request_.message.empty() && message.id == request_.message)
        cut_ = all;
      if (!cut_ || BELAY_MUTANT("opencode-copies-are-not-cut"))
        kept_.push_back(std::move(message));
    }
    if (!cut_ && !request_.message.empty())
      return Error(Errc::kNotFound, "the conversation has no message " +
                                        EscapeForDisplay(request_.message));
    BELAY_OK(LeaveReverted());
    out.kept = kept_.size();
    out.taken = all - kept_.size();
    return NameAnew(random, out);
  }

  Status Write(const TranscriptSink& sink) const {
    return SwapInto(
        PathSwaps(request_.from, request_.to), sink,
        [this](const TranscriptSink& swapped) { return WriteAsItWas(swapped); });
  }

 private:
  struct Part {
    std::string id;
    Json value;
  };
  struct Message {
    std::string id;
    Json info;
    std::vector<Part> parts;
  };

  // But for the ids, and what is left out.
  Status WriteAsItWas(const TranscriptSink& sink) const {
    BELAY_OK(sink(AsBytes("{\"info\":" + ids_.In(Info()) + ",\"messages\":[")));
    for (size_t i = 0; i < kept_.size(); ++i)
      BELAY_OK(sink(AsBytes((i == 0 ? "\n" : ",\n") + ids_.In(Text(kept_[i])))));
    return sink(AsBytes(std::string_view("\n]}\n")));
  }

  static Result<Message> ReadMessage(const Json& value) {
    Message out;
    const std::optional<Json> info = value.Get("info");
    const std::optional<Json> parts = value.Get("parts");
    if (!info || !info->is_object() || !parts || !parts->is_array())
      return NoExport("a message is incomplete");
    out.info = *info;
    BELAY_TRY(out.id, CheckedExportId(info->Get("id"), "msg_"));
    for (JsonParts one(*parts); one.Next();) {
      if (!one.value().is_object()) return NoExport("a message is incomplete");
      BELAY_TRY(std::string id, CheckedExportId(one.value().Get("id"), "prt_"));
      out.parts.push_back({.id = std::move(id), .value = one.value()});
    }
    return out;
  }

  // As opencode does with the next prompt: the message goes, or of one that stays in
  // part the part, and all that is behind.
  Status LeaveReverted() {
    const std::optional<Json> revert = info_.Get("revert");
    if (!revert || !revert->is_object()) return Ok();
    BELAY_TRY(const std::string id, CheckedExportId(revert->Get("messageID"), "msg_"));
    const auto at = std::ranges::find(kept_, id, &Message::id);
    if (at == kept_.end()) return Ok();
    const std::optional<Json> part = revert->Get("partID");
    if (!part || !part->is_string()) {
      kept_.erase(at, kept_.end());
      return Ok();
    }
    BELAY_TRY(const std::string first, CheckedExportId(part, "prt_"));
    at->parts.erase(std::ranges::find(at->parts, first, &Part::id), at->parts.end());
    kept_.erase(at + 1, kept_.end());
    return Ok();
  }

  Status NameAnew(Random& random, OpencodeCopy& out) {
    uint64_t count = 0;
    for (const Message& message : kept_) count += 1 + message.parts.size();
    NewIds ids(random, request_.now_ms, count);
    session_ = out.session = ids.Session();
    ids_.Add(request_.session, session_);
    for (const Message& message : kept_) {
      if (!BELAY_MUTANT("opencode-copies-keep-ids") &&
          !ids_.Add(message.id, ids.Next("msg_")))
        return NoExport("two messages have one id");
      for (const Part& part : message.parts)
        if (!ids_.Add(part.id, ids.Next("prt_")))
          return NoExport("two parts have one id");
    }
    return Ok();
  }

  // A session of its own: nobody's subagent, not shared, not archived, and what it cost
  // is what it will.
  std::string Info() const {
    static constexpr std::string_view kLeft[] = {
        "parentID", "share", "revert", "summary", "cost", "tokens", "workspaceID"};
    JsonWriter out;
    out.BeginObject();
    for (JsonParts parts(info_); parts.Next();) {
      const std::string name = parts.name();
      if (std::ranges::find(kLeft, name) != std::end(kLeft)) continue;
      out.Key(name);
      if (name == "directory")
        out.String(request_.cwd);
      else if (name == "time")
        out.Raw(Without(parts.value(), {"compacting", "archived"}));
      else
        out.Raw(parts.value().raw());
    }
    out.EndObject();
    return out.Take();
  }

  std::string Text(const Message& message) const {
    JsonWriter out;
    out.BeginObject().Key("info").Raw(message.info.raw());
    out.Key("parts").BeginArray();
    for (const Part& part : message.parts) {
      const std::optional<Json> type = part.value.Get("type");
      const bool snapshot = Is(type, "patch") || Is(type, "snapshot");
      if (snapshot && !BELAY_MUTANT("opencode-copies-name-snapshots")) continue;
      out.Raw(Is(type, "step-start") || Is(type, "step-finish")
                  ? Without(part.value, {"snapshot"})
                  : std::string(part.value.raw()));
    }
    out.EndArray().EndObject();
    return out.Take();
  }

  static std::string Without(const Json& object,
                             std::initializer_list<std::string_view> names) {
    if (!object.is_object()) return std::string(object.raw());
    JsonWriter out;
    out.BeginObject();
    for (JsonParts parts(object); parts.Next();) {
      const std::string name = parts.name();
      if (std::ranges::find(names, name) == names.end())
        out.Key(name).Raw(parts.value().raw());
    }
    out.EndObject();
    return out.Take();
  }

  const OpencodeCopyRequest request_;
  Json info_;
  std::vector<Message> kept_;
  std::optional<uint64_t> cut_;
  std::string session_;
  IdSwaps ids_;
};

}  // namespace

Result<OpencodeCopy> PlanOpencodeCopy(std::string_view exported,
                                      const OpencodeCopyRequest& request,
                                      Random& random) {
  OpencodeCopy out;
  const auto copier = std::make_shared<Copier>(request);
  BELAY_OK(copier->Read(exported, random, out));
  out.content = [copier](const TranscriptSink& sink) { return copier->Write(sink); };
  return out;
}

}  // namespace belay
