// Conversations as agents write them, in any order of what can happen to one: turns,
// the agent's own rewinds, compaction, messages written again, calls that are answered
// soon, late or never, subagents, lines that nobody can read, a torn end. What the
// cutter writes is read back as exactly the messages that were there before the prompt,
// or before a call that could not stay, under the new id.

#include <algorithm>
#include <string>
#include <vector>

#include "agent/transcript.h"
#include "agent/transcript_cut.h"
#include "agent/transcript_lines.h"
#include "base/mem_fs.h"

namespace {

using namespace belay;

constexpr const char* kOld = "11111111-2222-4333-8444-555555555555";
constexpr const char* kNew = "99999999-8888-4777-8666-555555555555";

// One conversation, written as the bytes say.
class Writer {
 public:
  Writer(AgentKind agent, const uint8_t* data, size_t size)
      : agent_(agent), data_(data), size_(size) {}

  std::string Write() {
    if (agent_ == AgentKind::kGemini)
      out_ += std::string("{\"sessionId\":\"") + kOld + "\",\"kind\":\"main\"}\n";
    if (agent_ == AgentKind::kCodex)
      out_ += std::string("{\"type\":\"session_meta\",\"payload\":{\"id\":\"") + kOld +
              "\"}}\n";
    while (at_ < size_ && prompts_ < 40) Step();
    return out_;
  }
  uint64_t prompts() const { return prompts_; }

  // Where the copy ends that is cut there: before a call that is answered later, and
  // before one that was never answered and is the last thing that is said.
  uint64_t EndOf(uint64_t cut) const {
    uint64_t end = cut;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Event& call : events_) {
        if (call.kind != Kind::kCall || call.at >= end || !IsLive(call)) continue;
        const auto answer = std::ranges::find_if(events_, [&](const Event& other) {
          return other.kind == Kind::kResult && other.call == call.id;
        });
        const bool answered = answer != events_.end() &&
                              (IsLive(*answer) || (IsTree() && answer->at >= cut));
        const bool stays = answered
                               ? answer->at < end
                               : std::ranges::any_of(events_, [&](const Event& other) {
                                   return IsSaid(other) && IsLive(other) &&
                                          other.at > call.at && other.at < end;
                                 });
        if (stays) continue;
        end = call.at;
        moved = true;
        break;
      }
    }
    return end;
  }

 private:
  enum class Kind { kSaid, kCall, kResult };
  struct Event {
    Kind kind;
    uint64_t at;
    std::string id, call;
  };
  void Note(Kind kind, const std::string& id, const std::string& call = {}) {
    events_.push_back({.kind = kind, .at = out_.size(), .id = id, .call = call});
  }
  // Whether the agent's own rewinds left it; what Codex took back is still in the file.
  bool IsLive(const Event& event) const {
    return (!IsTree() && agent_ != AgentKind::kGemini) ||
           std::ranges::find(path_, event.id) != path_.end();
  }
  // Calls that Codex makes together are a line each.
  bool IsSaid(const Event& event) const {
    return event.kind == Kind::kSaid ||
           (event.kind == Kind::kCall && agent_ != AgentKind::kCodex);
  }
  bool IsTree() const {
    return agent_ == AgentKind::kClaude || agent_ == AgentKind::kQwen;
  }
  uint8_t Next() { return at_ < size_ ? data_[at_++] : 0; }
  // Words; now and then the id of the session, whole or as a part.
  std::string Text() {
    const uint8_t what = Next();
    if (what % 16 == 0) return kOld;
    if (what % 16 == 1) return std::string("see ") + kOld + " there";
    return "words " + std::to_string(++words_) + std::string(what % 64, 'x');
  }
  void Step() {
    switch (Next() % 12) {
      case 0:
      case 1:
      case 2:
        return Prompt();
      case 3:
      case 4:
      case 5:
      case 6:
        if (!path_.empty()) Answer();
        return;
      case 7:
        return Rewind();
      case 8:
        out_ += Next() % 2 == 0 ? "no json\n" : "\n";
        return;
      case 9:
        out_ += "{\"type\":\"of a newer version\",\"data\":{\"n\":" +
                std::to_string(++words_) + "}}\n";
        return;
      case 10:
        return Special();
      case 11: {
        const uint8_t what = Next() % 8;
        if (what == 0) {  // somebody is writing
          out_ += "{\"type\":\"user\",\"torn";
          size_ = at_;
        } else if (!path_.empty()) {
          what < 5 ? Call() : Result();
        }
        return;
      }
    }
  }
  void Say(const std::string& id, bool user, const std::string& text) {
    const std::string role = user ? "user" : "assistant";
    const std::string parent = path_.empty() ? "null" : "\"" + path_.back() + "\"";
    const std::string session = std::string("\"sessionId\":\"") + kOld + "\"";
    Note(Kind::kSaid, id);
    switch (agent_) {
      case AgentKind::kClaude:
        out_ += "{\"type\":\"" + role + "\",\"uuid\":\"" + id +
                "\",\"parentUuid\":" + parent + "," + session +
                (user ? ",\"promptId\":\"p-" + id + "\"" : std::string()) +
                ",\"message\":{\"role\":\"" + role + "\",\"content\":\"" + text +
                "\"}}\n";
        break;
      case AgentKind::kQwen:
        out_ += "{\"type\":\"" + role + "\",\"uuid\":\"" + id +
                "\",\"parentUuid\":" + parent + "," + session +
                ",\"message\":{\"parts\":[{\"text\":\"" + text + "\"}]}}\n";
        break;
      case AgentKind::kCodex:
        if (user)
          out_ +=
              "{\"type\":\"event_msg\",\"payload\":{\"type\":\"task_started\","
              "\"turn_id\":\"" +
              id +
              "\"}}\n{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\","
              "\"message\":\"" +
              text + "\"}}\n";
        else
          out_ +=
              "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":"
              "\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"" +
              text + "\"}]}}\n";
        break;
      case AgentKind::kGemini:
        out_ += GeminiOf(id, user, text) + "\n";
        break;
      default:
        out_ += "{\"type\":\"" + role + ".message\",\"id\":\"" + id +
                "\",\"data\":{\"content\":\"" + text + "\"}}\n";
    }
  }
  static std::string GeminiOf(const std::string& id, bool user,
                              const std::string& text) {
    return "{\"id\":\"" + id + "\",\"type\":\"" + (user ? "user" : "gemini") +
           "\",\"content\":[{\"text\":\"" + text + "\"}]}";
  }
  void Prompt() {
    const std::string id = "u" + std::to_string(++ids_);
    Say(id, true, Text());
    begins_.push_back(path_.size());
    path_.push_back(id);
    ++prompts_;
  }
  void Answer() {
    const std::string id = "a" + std::to_string(++ids_);
    last_text_ = Text();
    Say(id, false, last_text_);
    path_.push_back(id);
  }
  // A record whose message has that content, and no prompt.
  void Work(const std::string& type, const std::string& id,
            const std::string& content) {
    out_ += "{\"type\":\"" + type + "\",\"uuid\":\"" + id + "\",\"parentUuid\":\"" +
            path_.back() + "\",\"sessionId\":\"" + kOld + "\",\"message\":{" + content +
            "}}\n";
  }
  void Call() {
    const std::string id = "c" + std::to_string(++ids_);
    Note(Kind::kCall, id);
    switch (agent_) {
      case AgentKind::kClaude:
        Work("assistant", id,
             "\"content\":[{\"type\":\"tool_use\",\"id\":\"" + id + "\"}]");
        break;
      case AgentKind::kQwen:
        Work("assistant", id, "\"parts\":[{\"functionCall\":{\"id\":\"" + id + "\"}}]");
        break;
      case AgentKind::kCodex:
        out_ +=
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\","
            "\"name\":\"x\",\"call_id\":\"" +
            id + "\"}}\n";
        break;
      case AgentKind::kGemini:
        out_ += "{\"id\":\"" + id + "\",\"type\":\"gemini\",\"toolCalls\":[{\"id\":\"" +
                id + "\"}]}\n";
        break;
      default:
        out_ += "{\"type\":\"assistant.message\",\"id\":\"" + id +
                "\",\"data\":{\"toolRequests\":[{\"toolCallId\":\"" + id + "\"}]}}\n";
    }
    path_.push_back(id);
    open_.push_back(id);
  }
  // Of any call that is still there.
  void Result() {
    std::erase_if(open_, [this](const std::string& call) {
      return std::ranges::find(path_, call) == path_.end();
    });
    if (open_.empty()) return;
    const size_t which = Next() % open_.size();
    const std::string call = open_[which], id = "r" + std::to_string(++ids_);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(which));
    Note(Kind::kResult, id, call);
    switch (agent_) {
      case AgentKind::kClaude:
        Work("user", id,
             "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"" + call +
                 "\"}]");
        break;
      case AgentKind::kQwen:
        Work("tool_result", id,
             "\"parts\":[{\"functionResponse\":{\"id\":\"" + call + "\"}}]");
        break;
      case AgentKind::kCodex:
        out_ +=
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_"
            "output\","
            "\"call_id\":\"" +
            call + "\"}}\n";
        break;
      case AgentKind::kGemini:
        out_ += "{\"id\":\"" + id +
                "\",\"type\":\"user\",\"content\":[{\"functionResponse\":{\"id\":\"" +
                call + "\"}}]}\n";
        break;
      default:
        out_ += "{\"type\":\"tool.execution_complete\",\"id\":\"" + id +
                "\",\"data\":{\"toolCallId\":\"" + call + "\"}}\n";
    }
    path_.push_back(id);
  }
  // The agent's own: to before one of the last prompts that are still there. What comes
  // next is a prompt.
  void Rewind() {
    if (begins_.empty()) return;
    const size_t back = 1 + Next() % std::min<size_t>(3, begins_.size());
    const size_t keep = begins_[begins_.size() - back];
    if (agent_ == AgentKind::kGemini)
      out_ += "{\"$rewindTo\":\"" + path_[keep] + "\"}\n";
    else if (agent_ == AgentKind::kCodex) {
      Note(Kind::kSaid, "");
      out_ +=
          "{\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\","
          "\"num_turns\":" +
          std::to_string(back) + "}}\n";
    } else if (!IsTree())
      return;
    begins_.resize(begins_.size() - back);
    path_.resize(keep);
    Prompt();
  }
  void Special() {
    if (path_.empty()) return;
    const std::string id = "x" + std::to_string(++ids_);
    if (agent_ == AgentKind::kClaude && Next() % 2 == 0) {  // a subagent
      out_ += "{\"type\":\"user\",\"uuid\":\"" + id +
              "\",\"parentUuid\":null,\"isSidechain\":true,\"message\":{\"role\":"
              "\"user\",\"content\":\"task\"}}\n";
    } else if (agent_ == AgentKind::kClaude) {  // compaction
      Note(Kind::kSaid, id);
      out_ += "{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"uuid\":\"" + id +
              "\",\"parentUuid\":null,\"logicalParentUuid\":\"" + path_.back() +
              "\"}\n";
      path_.push_back(id);
    } else if (agent_ == AgentKind::kGemini && path_.back()[0] == 'a') {
      std::string grown = GeminiOf(path_.back(), false, last_text_);
      grown.insert(grown.size() - 1, ",\"tokens\":{\"total\":1}");
      out_ += grown + "\n";
    }
  }

  const AgentKind agent_;
  const uint8_t* data_;
  size_t size_, at_ = 0;
  std::string out_;
  std::vector<std::string> path_;  // ids of what is in the conversation
  std::vector<size_t> begins_;     // of each prompt in it: its place in path_
  std::vector<std::string> open_;  // calls without an answer
  std::vector<Event> events_;
  std::string last_text_;  // of an answer
  uint64_t ids_ = 0, words_ = 0, prompts_ = 0;
};

struct Said {
  std::string role, id, text;
  bool operator==(const Said&) const = default;
};

Said AsSaid(const TranscriptMessage& message) {
  return {message.role, message.id, message.text};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static constexpr AgentKind kAgents[] = {AgentKind::kClaude, AgentKind::kCodex,
                                          AgentKind::kGemini, AgentKind::kQwen,
                                          AgentKind::kCopilot};
  const AgentKind agent = kAgents[data[0] % std::size(kAgents)];
  Writer writer(agent, data + 1, size - 1);
  const std::string text = writer.Write();
  MemFs fs;
  const auto root = fs.OpenDir(AbsPath::Literal("/"));
  const auto put = [&](const char* name, std::string_view bytes) {
    auto file = fs.Open(*root, Name::Literal(name), OpenMode::CreateNew());
    BELAY_CHECK(file.ok() && WriteFull(fs, *file, 0, AsBytes(bytes)).ok());
  };
  put("t", text);
  const auto read = ReadTranscript(fs, agent, AbsPath::Literal("/t"));
  BELAY_CHECK(read.ok() && read->prompts.size() == writer.prompts());
  size_t looked = 0;
  for (const TranscriptPrompt& prompt : read->prompts) {
    if (prompt.dead || ++looked > 6) continue;
    const auto open = OpenTranscript(fs, AbsPath::Literal("/t"));
    BELAY_CHECK(open.ok());
    const auto cut = PlanCut(fs, agent, *open, *read, Before(prompt));
    BELAY_CHECK(cut.ok());
    std::string copy;
    BELAY_CHECK(CopyCut(fs, *open, *cut,
                        {{.kind = TranscriptSwap::Kind::kId, .from = kOld, .to = kNew}},
                        [&copy](ByteSpan bytes) {
                          copy += AsText(bytes);
                          return Ok();
                        })
                    .ok());
    put(("c" + std::to_string(looked)).c_str(), copy);
    const auto again =
        ReadTranscript(fs, agent, AbsPath::Literal("/c" + std::to_string(looked)));
    BELAY_CHECK(again.ok() && !again->torn);
    BELAY_CHECK(again->session.empty() || again->session == kNew);
    const uint64_t end = writer.EndOf(prompt.turn_offset);
    std::vector<Said> expected, got;
    for (const TranscriptMessage& message : read->messages) {
      if (message.prompt && *message.prompt >= prompt.index) continue;
      if (!message.dead && message.offset < end) expected.push_back(AsSaid(message));
    }
    for (const TranscriptMessage& message : again->messages)
      if (!message.dead) got.push_back(AsSaid(message));
    BELAY_CHECK(got == expected);
  }
  return 0;
}
