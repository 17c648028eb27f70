#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/text.h"

namespace belay {

namespace {

constexpr size_t kFlushAt = size_t{64} << 10;

// The errno that stopped it, or 0.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

std::string_view Start(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kCyan:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

Terminal::Terminal(const TerminalOptions& options) : options_(options) {
  out_tty_ = isatty(1) == 1;
  out_color_ = out_tty_ && !options.no_color && !options.json;
  err_color_ = !options.no_color && isatty(2) == 1;
  winsize size{};
  if (options.columns > 0) {
    width_ = options.columns;
  } else if (out_tty_ && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width_ = size.ws_col;
  }
}

size_t Terminal::ErrorWidth() const {
  winsize size{};
  if (options_.columns > 0) return options_.columns;
  return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Terminal::Out(std::string_view bytes) {
  out_ += bytes;
  if (!options_.json && out_.size() >= kFlushAt) Flush();
}

void Terminal::OutJson(JsonWriter& json) {
  out_ += json.Take();
  out_ += '\n';
}

void Terminal::OutText(std::string_view key, std::string_view text) {
  if (!options_.json) return Out(text);
  JsonWriter json;
  json.BeginObject().Key(key).String(text).EndObject();
  OutJson(json);
}

std::string Terminal::Paint(Style style, std::string_view text) const {
  if (!out_color_ || style == Style::kPlain) return std::string(text);
  return StrCat(Start(style), text, "\x1b[0m");
}

void Terminal::Say(std::string_view line) {
  if (options_.quiet) return;
  if (options_.json) return Error2(Scrub(line));
  Out(Scrub(line));
  Out("\n");
}

void Terminal::Detail(std::string_view line) {
  if (options_.verbose) Error2(Scrub(line));
}

void Terminal::Note(std::string_view line) {
  if (!options_.quiet) Error2(StrCat(name_, ": ", Scrub(line)));
}

void Terminal::Warn(std::string_view line) {
  Error2(StrCat(
      name_, err_color_ ? ": \x1b[33mwarning\x1b[0m: " : ": warning: ", Scrub(line)));
}

bool Terminal::CanAsk() const {
  return !options_.json && isatty(0) == 1 && isatty(2) == 1;
}

bool Terminal::Confirm(std::string_view question) {
  if (!CanAsk()) return false;
  Flush();
  WriteAll(2, StrCat(Scrub(question), " [y/N] "));
  std::string answer;
  for (char c = 0; answer.size() < 100;) {
    ssize_t got = read(0, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') break;
    answer += c;
  }
  return answer.starts_with('y') || answer.starts_with('Y');
}

// What was said before comes first, also where both streams are one file. There is
// nobody to tell when standard error itself fails.
void Terminal::Error2(std::string_view line) {
  if (!options_.json) Flush();
  WriteAll(2, StrCat(line, "\n"));
}

void Terminal::Report(std::string_view code, std::string_view line,
                      std::string_view message, std::string_view hint,
                      std::string_view failures) {
  if (options_.json) {
    out_.clear();  // half an answer is none
    JsonWriter json;
    json.BeginObject().Key("error").BeginObject();
    json.Key("code").String(code);
    json.Key("message").String(message);
    json.Key("hint").String(hint);
    json.EndObject();
    if (!failures.empty()) json.Key("failures").Raw(failures);
    json.EndObject();
    OutJson(json);
  }
  std::string text = Scrub(line);
  if (err_color_) text = StrCat("\x1b[31m", text, "\x1b[0m");
  if (!hint.empty()) text += StrCat("\nhint: ", Scrub(hint));
  Error2(text);
}

ExitCode Terminal::Fail(const Error& error, std::string_view failures) {
  std::string hint = error.hint;
  // Whatever was being done.
  if (hint.empty() && error.sys == EMFILE)
    hint = "this process may not have more files open: raise that limit with ulimit -n";
  if (hint.empty() && error.sys == ENFILE)
    hint = "the system may not have more files open: see sysctl fs.file-max";
  Report(ErrcName(error.code), StrCat(name_, ": ", error.what), error.what, hint,
         failures);
  return ExitCodeFor(error.code);
}

ExitCode Terminal::FailUsage(std::string_view message, std::string_view hint) {
  std::string help =
      hint.empty() ? StrCat("see ", name_, " --help") : std::string(hint);
  Report("usage", StrCat(name_, ": ", message), message, help);
  return ExitCode::kUsage;
}

ExitCode Terminal::NotYet(std::string_view what) {
  std::string line = StrCat(what, ": not in this version yet");
  Report("not_available", line, line, "");
  return ExitCode::kUsage;
}

void Terminal::Flush() {
  if (out_errno_ == 0) out_errno_ = WriteAll(1, out_);
  out_.clear();
}

Status Terminal::Deliver() {
  Flush();
  const int problem = std::exchange(out_errno_, 0);
  if (problem == 0) return Ok();
  return SysError(problem, "cannot write to standard output");
}

ExitCode Terminal::Finish(ExitCode code) {
  Flush();
  // A reader that has seen enough, as in `belay list | head`, is no failure of ours.
  if (out_errno_ == 0 || out_errno_ == EPIPE) return code;
  Error error = SysError(out_errno_, "cannot write to standard output");
  Error2(StrCat(name_, ": ", error.what, work_is_done_ ? " (all was done)" : ""));
  if (work_is_done_) return code;
  return code == ExitCode::kOk ? ExitCodeFor(error.code) : code;
}

ExitCode ExitCodeFor(Errc code) {
  switch (code) {
    case Errc::kCorrupt:
      return ExitCode::kDamaged;
    case Errc::kBusy:
      return ExitCode::kBusy;
    case Errc::kNoSpace:
      return ExitCode::kNoSpace;
    default:
      return ExitCode::kProblem;
  }
}

void HoldStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. In the wrong direction, so that use fails.
    [[maybe_unused]] int held = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace belay
