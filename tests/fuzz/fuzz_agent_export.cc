// What `opencode export` says, or anybody in its place, and the copy that is made of
// it: JSON that reads as an export again, of its own session, with as many messages as
// it is said to hold, and with no id of the original in the place of one.

#include <set>
#include <string>

#include "agent/json.h"
#include "agent/opencode_export.h"
#include "base/sha256.h"

namespace {

using namespace belay;

constexpr const char* kSession = "ses_e1385a16efferO1xA2BrhfVZq7";

// One export, written as the bytes say: odd ids, ids that come twice, fields of other
// kinds, parts of every kind, what opencode's own revert left.
class ExportWriter {
 public:
  ExportWriter(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  std::string Write() {
    std::string out = Next() % 8 == 0 ? "a plugin says {this}\n" : "";
    out += R"({"info":{"id":)" + Quoted(Next() % 16 == 0 ? "ses_other" : kSession);
    out += R"(,"directory":"/home/u/p","title":)" + Quoted(Words());
    if (Next() % 4 == 0) out += R"(,"parentID":)" + Quoted("ses_of_somebody");
    if (Next() % 4 == 0) {
      out += R"(,"revert":{"messageID":)" + Quoted(Id("msg_", Next() % 8));
      if (Next() % 2 == 0) out += R"(,"partID":)" + Quoted(Id("prt_", Next() % 8));
      out += "}";
    }
    out += R"(,"time":{"created":1,"archived":2}},"messages":[)";
    for (int i = 0; at_ < size_ && i < 24; ++i) {
      if (i > 0) out += ",";
      out += Message(i);
    }
    return out + "]}" + (Next() % 8 == 0 ? "\nand goes" : "");
  }

 private:
  uint8_t Next() { return at_ < size_ ? data_[at_++] : 0; }

  static std::string Id(std::string_view kind, int number) {
    return std::string(kind) + "1ec7a5e9" + std::to_string(number);
  }
  std::string Words() {
    static constexpr std::string_view kSaid[] = {"words",
                                                 "/home/u/p/a",
                                                 "file:///home/u/p",
                                                 "see /home/u/p, /home/u/pp",
                                                 kSession,
                                                 "\\",
                                                 "\"",
                                                 "/home/u/p\n/home/u/p"};
    return std::string(kSaid[Next() % std::size(kSaid)]);
  }
  // As a JSON string; now and then with a character that need not be escaped.
  std::string Quoted(std::string_view text) {
    std::string out = "\"";
    const bool odd = Next() % 16 == 0;
    for (const char c : text) {
      if (c == '"' || c == '\\')
        (out += '\\') += c;
      else if (c == '\n')
        out += "\\n";
      else if (odd && c == '_')
        out += "\\u005f";
      else
        out += c;
    }
    return out + "\"";
  }
  std::string Part(int number) {
    static constexpr std::string_view kTypes[] = {
        "text", "tool", "patch", "snapshot", "step-start", "step-finish"};
    return R"({"type":)" + Quoted(kTypes[Next() % std::size(kTypes)]) + R"(,"id":)" +
           Quoted(Id("prt_", Next() % 16 == 0 ? 0 : number)) + R"(,"messageID":)" +
           Quoted(Id("msg_", Next() % 8)) + R"(,"snapshot":"abc","text":)" +
           Quoted(Words()) + "}";
  }
  std::string Message(int number) {
    std::string out = R"({"info":{"role":"user","id":)" +
                      Quoted(Id("msg_", Next() % 16 == 0 ? 0 : number)) +
                      R"(,"sessionID":)" + Quoted(kSession) + R"(},"parts":[)";
    for (int i = 0, count = Next() % 4; i < count; ++i)
      out += (i > 0 ? "," : "") + Part(number * 4 + i);
    return out + "]}";
  }

  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// Ids of a session, its messages and their parts.
std::set<std::string> IdsOf(std::string_view exported) {
  std::set<std::string> out;
  const auto whole = Json::Parse(exported);
  BELAY_CHECK(whole.ok());
  const auto add = [&out](const std::optional<Json>& id) {
    BELAY_CHECK(id && id->is_string());
    BELAY_CHECK(out.insert(*id->Text()).second);
  };
  add(whole->Get("info", "id"));
  for (JsonParts messages(*whole->Get("messages")); messages.Next();) {
    add(messages.value().Get("info", "id"));
    for (JsonParts parts(*messages.value().Get("parts")); parts.Next();)
      add(parts.value().Get("id"));
  }
  return out;
}

Result<OpencodeCopy> Plan(std::string_view exported, const std::string& session,
                          const std::string& message, Random& random) {
  return PlanOpencodeCopy(exported,
                          {.session = session,
                           .message = message,
                           .from = {AbsPath::Literal("/home/u/p")},
                           .to = AbsPath::Literal("/x/the other"),
                           .cwd = "/x/the other",
                           .now_ms = 1794968900000},
                          random);
}

std::string Content(const OpencodeCopy& copy) {
  std::string out;
  BELAY_CHECK(copy.content([&out](ByteSpan bytes) {
                    out += AsText(bytes);
                    return Ok();
                  })
                  .ok());
  return out;
}

void Check(std::string_view exported, const std::string& message) {
  // By what is said: or the fuzzer learns new ids by heart and puts them in.
  SeededRandom random(Check64(AsBytes(exported)));
  const auto first = Plan(exported, kSession, message, random);
  if (!first.ok()) return;
  const std::string copy = Content(*first);
  const std::set<std::string> ids = IdsOf(copy);
  BELAY_CHECK(ids.contains(first->session) && first->session != kSession);
  // Whatever the original had in a place of an id would be found here, too.
  for (const std::string& id : ids) {
    BELAY_CHECK(id.size() == 4 + 12 + 14);
    BELAY_CHECK(exported.find(id) == std::string_view::npos);
  }
  const auto again = Plan(copy, first->session, {}, random);
  BELAY_CHECK(again.ok() && again->kept == first->kept && again->taken == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string message = data[0] % 3 == 0 ? "msg_1ec7a5e93" : "";
  if (data[0] % 2 == 0)
    Check({reinterpret_cast<const char*>(data + 1), size - 1}, message);
  else
    Check(ExportWriter(data + 1, size - 1).Write(), message);
  return 0;
}
