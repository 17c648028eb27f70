#pragma once

// Terminal: everything the program says, and what it exits with.
//
// Guarantees
//   * With --json standard output holds one JSON document and nothing else; a failure
//   is
//     {"error":{"code":...,"message":...,"hint":...}} there. Messages go to standard
//     error.
//   * Output is checked: a full device or a failed write is an error exit. A reader
//   that
//     went away (EPIPE) is not: the rest is dropped and the exit code stays.
//   * What Say, Warn and Fail print holds no control character, whatever names it was
//     composed of.
//
// Threads: one.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cli/exit_code.h"

namespace belay {

struct TerminalOptions {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool no_color = false;
  size_t columns = 0;  // 0: ask the terminal
};

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };

class Terminal {
 public:
  // Takes the descriptors 1 and 2 as they are.
  explicit Terminal(const TerminalOptions& options);

  bool json() const { return options_.json; }
  bool quiet() const { return options_.quiet; }
  bool verbose() const { return options_.verbose; }
  bool out_is_terminal() const { return out_tty_; }
  size_t width() const { return width_; }
  // Of a line of text: as wide as the terminal, from 40 to 80.
  size_t columns() const { return width_ < 40 ? 40 : width_ > 80 ? 80 : width_; }
  // Of the terminal that standard error is, as it is now.
  size_t ErrorWidth() const;

  // "belay status": what messages start with.
  void SetName(std::string name) { name_ = std::move(name); }

  void SetVerbosity(bool quiet, bool verbose) {
    options_.quiet = quiet;
    options_.verbose = verbose;
  }

  // Data for standard output, byte for byte. Kept back until the end with --json.
  void Out(std::string_view bytes);
  void OutJson(JsonWriter& json);
  // Text that is the answer itself: as it is, or {"key":"text"} with --json.
  void OutText(std::string_view key, std::string_view text);
  // `text` in a style, where standard output is a terminal that shows it.
  std::string Paint(Style style, std::string_view text) const;

  void Say(std::string_view line);     // not with -q; on standard error with --json
  void Detail(std::string_view line);  // only with -v, on standard error
  void Warn(std::string_view line);    // always, on standard error
  void Note(std::string_view line);    // not with -q, on standard error

  // Somebody is there to be asked: standard input and error are a terminal.
  bool CanAsk() const;
  // True for an answer that begins with y; anything else, and the end of input, is no.
  bool Confirm(std::string_view question);

  // Hands over what was put out so far.
  void FlushOut() { Flush(); }
  // The same, and what came of it: who asks sees to it, and Finish() does not.
  Status Deliver();
  // Nobody reads what is written any more, or it cannot be written: a long answer may
  // stop here. Finish() says what is to be said.
  bool out_failed() const { return out_errno_ != 0; }

  // Reports the failure; the exit code that fits it. `failures`: a JSON list of what
  // else is known to have gone wrong; empty: none is written.
  ExitCode Fail(const Error& error, std::string_view failures = {});
  ExitCode FailUsage(std::string_view message, std::string_view hint = {});
  // "belay rollback: not in this version yet"
  ExitCode NotYet(std::string_view what);

  // Something was changed for good: that nobody can be told of it is then no failure of
  // the command.
  void WorkIsDone() { work_is_done_ = true; }
  // Writes what is kept back. The exit code of the program.
  ExitCode Finish(ExitCode code);

 private:
  void Report(std::string_view code, std::string_view line, std::string_view message,
              std::string_view hint, std::string_view failures = {});
  void Flush();
  void Error2(std::string_view line);

  TerminalOptions options_;
  bool out_tty_ = false;
  bool out_color_ = false;
  bool err_color_ = false;
  size_t width_ = 80;
  std::string name_ = "belay";
  std::string out_;
  int out_errno_ = 0;
  bool work_is_done_ = false;
};

ExitCode ExitCodeFor(Errc code);

// Fills the descriptors 0, 1 and 2 when they are closed, so that no file of ours gets
// their number and a message lands in it. Reading or writing them then fails.
void HoldStandardDescriptors();

}  // namespace belay
