#include "agent/native_fork.h"

#include <algorithm>
#include <charconv>

#include "agent/dialect_internal.h"
#include "agent/json.h"
#include "agent/loopback_http.h"
#include "agent/transcript.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/running_process.h"

namespace belay {
namespace {

// opencode believes PWD rather than where it is.
std::vector<std::string> ForkEnvironment(const NativeForkRequest& request) {
  std::vector<std::string> out;
  for (const std::string& one : request.environment)
    if (!one.starts_with("PWD=")) out.push_back(one);
  out.push_back("PWD=" + request.directory.bytes());
  if (!BELAY_MUTANT("forks-are-told-by-hooks"))
    out.push_back(std::string(kForkVariable) + "=1");
  return out;
}

// Lines that a program says, until one is what is waited for.
class Talk {
 public:
  static Result<Talk> Start(const NativeForkRequest& request,
                            std::vector<std::string> arguments) {
    BELAY_TRY(std::unique_ptr<RunningProcess> process,
              RunningProcess::Start({.program = request.program,
                                     .arguments = std::move(arguments),
                                     .environment = ForkEnvironment(request),
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

// Something that can be an argument and a part of a path, and is not the original.
Result<std::string> CheckedId(const NativeForkRequest& request,
                              const std::optional<Json>& value) {
  const std::optional<std::string> id = IdOf(value);
  if (!id || id->empty() || id->size() > 200 || id->front() == '-')
    return Error(Errc::kInvalid, "it named no new session");
  for (const char c : *id)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
          c == '-' || c == '_'))
      return Error(Errc::kInvalid, "the new session has an impossible id");
  if (*id == request.session && !BELAY_MUTANT("a-fork-may-be-the-original"))
    return Error(Errc::kInvalid, "it named the session itself as the new one");
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
  BELAY_TRY(std::string id, CheckedId(request, json.Get("id")));
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
  BELAY_TRY(std::string id, CheckedId(request, json.Get("result", "thread", "id")));
  return NativeFork{.session = std::move(id),
                    .path = DirectoryOf(json.Get("result", "thread", "path"))};
}

// The last line that says something, without the colours of a terminal.
std::string LastWords(std::string_view said) {
  constexpr size_t kShown = 200;
  std::string plain, last;
  for (size_t i = 0; i < said.size(); ++i) {
    if (said[i] == '\x1b' && i + 1 < said.size() && said[i + 1] == '[') {
      i = std::min(said.find_first_not_of("0123456789;", i + 2), said.size() - 1);
      continue;
    }
    plain += said[i];
  }
  for (size_t begin = 0; begin < plain.size();) {
    const size_t end = std::min(plain.find('\n', begin), plain.size());
    const std::string line = plain.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
    begin = end + 1;
  }
  return EscapeText(CutText(last, kShown));
}

// Runs it to its end; what it said.
Result<std::string> RunOpencode(const NativeForkRequest& request,
                                std::vector<std::string> arguments, size_t longest) {
  BELAY_TRY(ProcessResult done,
            RunProcess({.program = request.program,
                        .arguments = std::move(arguments),
                        .environment = ForkEnvironment(request),
                        .directory = request.directory,
                        .timeout_ms = request.timeout_ms,
                        .output_cap = longest,
                        // 1.18.33 ends before a pipe has more than 128 KiB of it.
                        .output_is_file = !BELAY_MUTANT("exports-go-through-pipes")}));
  using End = ProcessResult::End;
  if (done.end == End::kTimedOut) return Error(Errc::kBusy, "no answer in time");
  if (done.end == End::kTooMuchOutput)
    return Error(Errc::kInvalid,
                 "it said more than " + std::to_string(longest >> 20) + " MiB");
  if (done.end == End::kSignalled)
    return Error(Errc::kIo, "it was ended by signal " + std::to_string(done.code));
  if (done.code != 0) {
    const std::string why = LastWords(done.errors + "\n");
    return Error(Errc::kInvalid, "it ended with exit code " +
                                     std::to_string(done.code) +
                                     (why.empty() ? "" : ": " + why));
  }
  return std::move(done.output);
}

Status CheckImport(const NativeForkRequest& request, const std::string& said) {
  constexpr std::string_view kSays = "Imported session: ";
  for (size_t begin = 0; begin < said.size();) {
    const size_t end = std::min(said.find('\n', begin), said.size());
    std::string_view line = std::string_view(said).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kSays) && line.substr(kSays.size()) == request.session)
      return Ok();
    begin = end + 1;
  }
  const std::string words = LastWords(said);
  return Error(Errc::kInvalid,
               "it did not say that it has it" + (words.empty() ? "" : ": " + words));
}

}  // namespace

Result<std::string> ExportByOpencode(const NativeForkRequest& request, size_t longest) {
  auto said = RunOpencode(request, {"export", request.session}, longest);
  if (!said.ok()) {
    Error error = std::move(said).error();
    error.what = "opencode could not export the conversation: " + error.what;
    return error;
  }
  return said;
}

Status ImportByOpencode(const NativeForkRequest& request, const AbsPath& file) {
  constexpr size_t kLongestWords = 1 << 20;
  auto said = RunOpencode(request, {"import", file.bytes()}, kLongestWords);
  Status taken = said.ok() ? CheckImport(request, *said) : Status(said.error());
  if (taken.ok() || BELAY_MUTANT("imports-are-believed")) return Ok();
  Error error = std::move(taken).error();
  error.what = "opencode could not import the copy: " + error.what;
  return error;
}

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

Status CheckForkOfCodex(Fs& fs, const NativeFork& fork, const std::string& session,
                        const AbsPath& original,
                        std::span<const TranscriptPrompt> older,
                        const std::string& last_turn) {
  if (BELAY_MUTANT("codex-is-believed")) return Ok();
  auto wrong = [&](std::string_view what) {
    return Error(Errc::kInvalid, "codex made a copy, " + EscapeText(fork.session) +
                                     ", that nothing uses: " + std::string(what));
  };
  const auto path = AbsPath::Parse(fork.path);
  if (!path.ok()) return wrong("it did not say where");
  auto copy = ReadTranscript(fs, AgentKind::kCodex, *path);
  if (!copy.ok()) return wrong("it cannot be read");
  BELAY_TRY(const Transcript there, ReadTranscript(fs, AgentKind::kCodex, original));
  std::vector<TranscriptPrompt> had(older.begin(), older.end());
  had.insert(had.end(), there.prompts.begin(), there.prompts.end());
  std::vector<std::string> living;
  if (copy->refers_until) {
    const uint64_t until = *copy->refers_until;
    // As much as the session inherited itself: that ends before its first turn.
    if (copy->refers_to == there.refers_to &&
        copy->refers_until == there.refers_until &&
        std::ranges::find(there.prompts, last_turn, &TranscriptPrompt::anchor) ==
            there.prompts.end())
      living.push_back(last_turn);
    if (copy->refers_to == session)
      for (const TranscriptPrompt& prompt : had)
        if (prompt.ordinal && *prompt.ordinal < until &&
            (!prompt.dead || (prompt.dead_from && *prompt.dead_from >= until)))
          living.push_back(prompt.anchor);
  }
  for (const TranscriptPrompt& prompt : copy->prompts)
    if (!prompt.dead) living.push_back(prompt.anchor);
  if (living.empty() || living.back() != last_turn)
    return wrong("it does not end before what is taken back");
  for (const TranscriptPrompt& prompt : had)
    if (prompt.dead && std::ranges::find(living, prompt.anchor) != living.end() &&
        !BELAY_MUTANT("what-codex-took-back-may-come-back"))
      return wrong("it has what was taken back before");
  return Ok();
}

}  // namespace belay
