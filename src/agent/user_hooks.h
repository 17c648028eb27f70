#pragma once

// Commands of the user's that are run around rollbacks and when a session ends
// (`hooks.*`, a user's own settings alone).
//
// Guarantees
//   * The program and its arguments as they stand in the settings, never a shell. The
//     program is an absolute path, or a word that is looked for in the absolute
//     directories of PATH: never anything that lies where the command happens to run.
//   * One after the other, each bounded in time and in what it may say; one that is
//     over its time is killed with its process group (base/subprocess.h).
//   * What it is to know it gets on its standard input, as one JSON document.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fs.h"
#include "base/path.h"
#include "core/settings.h"

namespace belay {

struct UserHookPlace {
  AbsPath directory;                     // where it starts; "/" when that is gone
  std::vector<std::string> environment;  // "NAME=value"
  std::string exec_path;                 // PATH
  int64_t timeout_ms = 60'000;
  size_t output_kept = 4096;  // of what it says on standard output
};

struct UserHookRun {
  std::string hook;     // "before_rollback"
  std::string program;  // as the settings have it
  int exit = -1;        // -1: it did not exit by itself, or was not run
  bool timed_out = false;
  std::string output = {};  // what it said on standard output, the beginning
  // What stands behind its name when it is said; empty: it ran, and exited with 0.
  std::string trouble = {};
  bool ok() const { return trouble.empty(); }
};

// Set for whatever a hook runs, with the hook's name.
inline constexpr std::string_view kUserHookVariable = "BELAY_HOOK";

enum class WhenOneFails : uint8_t { kStop, kGoOn };
std::vector<UserHookRun> RunUserHooks(Fs& fs, const UserHookPlace& place,
                                      std::string_view hook,
                                      const std::vector<Argv>& commands,
                                      const std::string& input, WhenOneFails then);

// The program that the first word of a command means. kRefused for a path that is not
// absolute, kNotFound when there is none: what stands behind the word when it is said.
Result<AbsPath> ProgramOf(Fs& fs, const std::string& word, std::string_view exec_path);

}  // namespace belay
