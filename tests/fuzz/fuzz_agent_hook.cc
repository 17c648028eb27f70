// Hook payloads of any bytes: an event within its limits, or kInvalid.

#include <cstdlib>

#include "agent/dialects.h"
#include "agent/event_roots.h"
#include "agent/json.h"

namespace {

using namespace belay;

void CheckText(const std::string& text, size_t limit) {
  BELAY_CHECK(text.size() <= limit);
}

// Everything that Json tells about a document, twice the same way.
void CheckJson(const Json& json, size_t depth) {
  BELAY_CHECK(depth <= Json::kMaxDepth);
  // A part of a document is a document.
  if (depth < 3) {
    auto again = Json::Parse(json.raw());
    BELAY_CHECK(again.ok() && again->kind() == json.kind());
    auto compact = Json::Parse(json.Compact());
    BELAY_CHECK(compact.ok() && compact->kind() == json.kind());
  }
  if (json.is_string()) {
    const std::string text = *json.Text();
    BELAY_CHECK(json.TextIs(text));
    for (size_t limit : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, text.size() / 2}) {
      const std::string cut = *json.Text(limit);
      BELAY_CHECK(cut.size() <= limit && text.starts_with(cut));
      BELAY_CHECK(cut.size() + 3 >= std::min(limit, text.size()));
    }
  }
  const JsonFields fields(json);
  size_t count = 0;
  for (JsonParts parts(json); parts.Next(); ++count) {
    if (json.is_object() && count < 50) {
      const std::string name = parts.name();
      BELAY_CHECK(parts.NameIs(name));
      BELAY_CHECK(json.Get(name).has_value());
      if (name.size() <= 256)
        BELAY_CHECK(fields.Get(name)->raw().data() == json.Get(name)->raw().data());
    }
    CheckJson(parts.value(), depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view payload(reinterpret_cast<const char*>(data + 2), size - 2);
  static constexpr std::string_view kGiven[] = {"",
                                                "preToolUse",
                                                "postToolUse",
                                                "userPromptSubmitted",
                                                "tool.execute.before",
                                                "tool.execute.after",
                                                "chat.message",
                                                "tool.begin"};
  if (auto json = Json::Parse(payload); json.ok()) CheckJson(*json, 0);
  const AgentKind agent = kAllAgents[data[0] % std::size(kAllAgents)];
  auto event = ParseHook(agent, kGiven[data[1] % std::size(kGiven)], payload);
  if (!event.ok()) {
    BELAY_CHECK(event.error().code == Errc::kInvalid);
    return 0;
  }
  BELAY_CHECK(event->agent == agent);
  CheckText(event->prompt, kMaxPrompt);
  CheckText(event->last_answer, kMaxPrompt);
  CheckText(event->session, 4096);
  BELAY_CHECK(event->cwd.empty() || event->cwd[0] == '/' ||
              agent == AgentKind::kGeneric);
  TakePlace(*event, AbsPath::Literal("/here"));
  BELAY_CHECK(event->cwd.empty() || event->cwd[0] == '/');
  const bool call =
      event->kind == EventKind::kToolBegin || event->kind == EventKind::kToolEnd;
  BELAY_CHECK(event->tool.has_value() == call);
  if (!event->tool) return 0;
  CheckText(event->tool->what, kMaxWhat);
  BELAY_CHECK(event->tool->what.find('\n') == std::string::npos);
  BELAY_CHECK(event->tool->fingerprint.size() == 16);
  BELAY_CHECK((event->tool->reach == ToolReach::kPaths) <= !event->tool->paths.empty());
  for (const std::string& path : event->tool->paths)
    BELAY_CHECK(!path.empty() && path.find('\0') == std::string::npos);
  return 0;
}
