#include "agent/native_fork.h"

#include <charconv>

#include "agent/dialect_internal.h"
#include "agent/json.h"
#include "agent/loopback_http.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/running_process.h"

namespace belay {
namespace {

// Lines that a program says, until one is what is waited for.
class Talk {
 public:
  static Result<Talk> Start(const NativeForkRequest& request,
                            std::vector<std::string> arguments) {
    std::vector<std::string> environment = request.environment;
    if (!BELAY_MUTANT("forks-are-told-by-hooks"))
      environment.push_back(std::string(kForkVariable) + "=1");
    BELAY_TRY(std::unique_ptr<RunningProcess> process,
              RunningProcess::Start({.program = request.program,
                                     .arguments = std::move(arguments),
                                     .environment = std::move(environment),
                                     .directory = request.directory,
                                     .timeout_ms = request.timeout_ms}));
    return Talk(std::move(process), request.timeout_ms);
  }

  Status Say(std::string line) {
    line += '\n';
    return process_->Write(AsBytes(line));
  }

  // kBusy at the deadline, however much it says meanwhile.
  Result<std::string> Line() {
    for (;;) {
      if (const size_t end = held_.find('\n'); end != std::string::npos) {
        std::string line = held_.substr(0, end);
        held_.erase(0, end + 1);
        return line;
      }
      if (clock_.SteadyNanos() > deadline_)
        return Error(Errc::kBusy, "no answer in time");
      if (held_.size() > kLongestAnswer)
        return Error(Errc::kInvalid, "it said too much");
      std::byte buffer[16 * 1024];
      BELAY_TRY(const size_t got, process_->Read(buffer));
      if (got == 0) return Error(Errc::kIo, "it ended before it answered");
      held_ += AsText(ByteSpan(buffer, got));
    }
  }

 private:
  Talk(std::unique_ptr<RunningProcess> process, int64_t timeout_ms)
      : process_(std::move(process)),
        deadline_(clock_.SteadyNanos() + timeout_ms * 1'000'000) {}

  RealClock clock_;
  std::unique_ptr<RunningProcess> process_;
  int64_t deadline_;
  std::string held_;
};

Error Failed(std::string_view agent, Error error) {
  error.what = std::string(agent) + " could not fork the conversation: " + error.what;
  return error;
}

// Something that can be an argument and a part of a path.
Result<std::string> CheckedId(const std::optional<Json>& value) {
  const std::optional<std::string> id = IdOf(value);
  if (!id || id->empty() || id->size() > 200 || id->front() == '-')
    return Error(Errc::kInvalid, "it named no new session");
  for (const char c : *id)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
          c == '-' || c == '_'))
      return Error(Errc::kInvalid, "the new session has an impossible id");
  return *id;
}

// "... listening on http://127.0.0.1:4096"
std::optional<uint16_t> PortIn(std::string_view line) {
  constexpr std::string_view kHost = "http://127.0.0.1:";
  const size_t at = line.find(kHost);
  if (at == std::string_view::npos) return std::nullopt;
  uint16_t port = 0;
  const char* begin = line.data() + at + kHost.size();
  const auto read = std::from_chars(begin, line.data() + line.size(), port);
  return read.ec == std::errc() && port != 0 ? std::optional(port) : std::nullopt;
}

Result<NativeFork> AskOpencode(const NativeForkRequest& request,
                               const std::string& message) {
  BELAY_TRY(Talk talk,
            Talk::Start(request, {"serve", "--hostname", "127.0.0.1", "--port", "0"}));
  std::optional<uint16_t> port;
  while (!port) {
    BELAY_TRY(const std::string line, talk.Line());
    port = PortIn(line);
  }
  JsonWriter body;
  body.BeginObject();
  if (!message.empty()) body.Key("messageID").String(message);
  body.EndObject();
  BELAY_TRY(const HttpAnswer answer,
            PostLoopback(*port,
                         "/session/" + UrlEncoded(request.session) +
                             "/fork?directory=" + UrlEncoded(request.directory.bytes()),
                         body.Take(), request.timeout_ms));
  if (answer.status != 200)
    return Error(Errc::kInvalid, "it answered " + std::to_string(answer.status) + ": " +
                                     EscapeText(CutText(answer.body, 200)));
  BELAY_TRY(const Json json, Json::Parse(answer.body));
  BELAY_TRY(std::string id, CheckedId(json.Get("id")));
  return NativeFork{.session = std::move(id)};
}

// The answer to the call with that number; what it tells unasked is passed over.
Result<std::string> AnswerTo(Talk& talk, uint64_t id) {
  for (;;) {
    BELAY_TRY(std::string line, talk.Line());
    const Result<Json> json = Json::Parse(line);
    if (!json.ok()) continue;
    const std::optional<Json> answered = json->Get("id");
    if (!answered || answered->Uint() != id) continue;
    if (const auto error = json->Get("error"))
      return Error(Errc::kInvalid, EscapeText(CutText(error->raw(), 300)));
    return line;
  }
}

Result<NativeFork> AskCodex(const NativeForkRequest& request,
                            const std::string& last_turn) {
  BELAY_TRY(Talk talk, Talk::Start(request, {"app-server"}));
  BELAY_OK(talk.Say(R"({"id":1,"method":"initialize","params":{"clientInfo":)"
                    R"({"name":"belay","title":"Belay","version":"1"}}})"));
  BELAY_TRY([[maybe_unused]] const std::string hello, AnswerTo(talk, 1));
  BELAY_OK(talk.Say(R"({"method":"initialized"})"));
  JsonWriter call;
  call.BeginObject().Key("id").Uint(2).Key("method").String("thread/fork");
  call.Key("params").BeginObject();
  call.Key("threadId").String(request.session);
  call.Key("lastTurnId").String(last_turn).EndObject().EndObject();
  BELAY_OK(talk.Say(call.Take()));
  BELAY_TRY(const std::string line, AnswerTo(talk, 2));
  BELAY_TRY(const Json json, Json::Parse(line));
  BELAY_TRY(std::string id, CheckedId(json.Get("result", "thread", "id")));
  return NativeFork{.session = std::move(id),
                    .path = DirectoryOf(json.Get("result", "thread", "path"))};
}

}  // namespace

Result<NativeFork> ForkByOpencode(const NativeForkRequest& request,
                                  const std::string& message) {
  auto session = AskOpencode(request, message);
  if (!session.ok()) return Failed("opencode", std::move(session).error());
  return session;
}

Result<NativeFork> ForkByCodex(const NativeForkRequest& request,
                               const std::string& last_turn) {
  auto session = AskCodex(request, last_turn);
  if (!session.ok()) return Failed("codex", std::move(session).error());
  return session;
}

}  // namespace belay
