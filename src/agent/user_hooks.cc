#include "agent/user_hooks.h"

#include <algorithm>

#include "agent/install.h"
#include "base/mutant.h"
#include "base/subprocess.h"

namespace belay {

namespace {

constexpr size_t kMostSaid = 64 << 10, kErrorShown = 400;

// The beginning, cut at a character, without blanks at its end.
std::string Beginning(std::string_view text, size_t limit) {
  if (text.size() > limit) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80)
      --limit;
    text = text.substr(0, limit);
  }
  const size_t end = text.find_last_not_of(" \t\r\n");
  return std::string(text.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

std::string TroubleOf(const ProcessResult& result, int64_t timeout_ms, size_t most) {
  std::string said = Beginning(result.errors, kErrorShown);
  if (!said.empty()) said = ": " + said;
  switch (result.end) {
    case ProcessResult::End::kExited:
      return result.code == 0 ? std::string()
                              : "exited with " + std::to_string(result.code) + said;
    case ProcessResult::End::kSignalled:
      return "was ended by signal " + std::to_string(result.code) + said;
    case ProcessResult::End::kTimedOut:
      return "was ended after " + std::to_string(timeout_ms) + " ms" + said;
    case ProcessResult::End::kTooMuchOutput:
      break;
  }
  return "said more than " + std::to_string(most) + " bytes, and was ended";
}

UserHookRun RunOne(Fs& fs, const UserHookPlace& place, std::string_view hook,
                   const Argv& command, const std::string& input) {
  UserHookRun run{.hook = std::string(hook), .program = command[0]};
  auto program = ProgramOf(fs, command[0], place.exec_path);
  if (!program.ok()) {
    run.trouble = program.error().what;
    return run;
  }
  const size_t most = std::max(kMostSaid, place.output_kept);
  ProcessOptions options{.program = *program,
                         .arguments = {command.begin() + 1, command.end()},
                         .environment = place.environment,
                         .directory = place.directory,
                         .input = input,
                         .timeout_ms = place.timeout_ms,
                         .output_cap = most};
  if (!fs.OpenDir(place.directory).ok()) options.directory = AbsPath::Literal("/");
  options.environment.push_back(std::string(kUserHookVariable) + "=" +
                                std::string(hook));
  auto result = RunProcess(options);
  if (!result.ok()) {
    const Error& error = result.error();
    run.trouble = error.sys == 0 ? "could not be run: " + error.what
                                 : SysError(error.sys, "could not be run").what;
    return run;
  }
  if (result->end == ProcessResult::End::kExited) run.exit = result->code;
  run.timed_out = result->end == ProcessResult::End::kTimedOut;
  run.output = Beginning(result->output, place.output_kept);
  run.trouble = TroubleOf(*result, place.timeout_ms, most);
  return run;
}

}  // namespace

Result<AbsPath> ProgramOf(Fs& fs, const std::string& word, std::string_view exec_path) {
  if (word.starts_with('/')) return AbsPath::Parse(word);
  if (word.find('/') != std::string::npos && !BELAY_MUTANT("hooks-from-anywhere"))
    return Error(Errc::kRefused,
                 "is not run: a command of the settings is an absolute path, or a word "
                 "that PATH knows");
  if (Name::Parse(word).ok())
    if (auto found = FindInPath(fs, exec_path, word)) return *found;
  return Error(Errc::kNotFound, "is not in PATH");
}

std::vector<UserHookRun> RunUserHooks(Fs& fs, const UserHookPlace& place,
                                      std::string_view hook,
                                      const std::vector<Argv>& commands,
                                      const std::string& input, WhenOneFails then) {
  std::vector<UserHookRun> runs;
  for (const Argv& command : commands) {
    runs.push_back(RunOne(fs, place, hook, command, input));
    if (!runs.back().ok() && then == WhenOneFails::kStop) break;
  }
  return runs;
}

}  // namespace belay
