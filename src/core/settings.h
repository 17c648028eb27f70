#pragma once

// Settings: what the user's file and a project's `.belay.toml` say, over the defaults.
//
// Guarantees
//   * Parsing is pure: text in, Settings or one Error out. A file that is missing, or
//     does not name a key, means the default.
//   * A bad value is refused with file and line (kInvalid). An unknown key is not: it
//     becomes a warning that names the nearest known key, so that a file written for a
//     newer version still works.
//   * A project file is not trusted. It cannot set `secrets`, the hooks that run
//     commands, or anything of the shared store, nor say that what others did goes back
//     unasked; such keys are left out with a warning.
//     Its lists add to the user's and take nothing away.
//   * Hostile text costs bounded time and stack: at most 1 MiB, shallow nesting only.
//
// The keys themselves, with their types and help: core/settings_table.h.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.h"
#include "base/path.h"
#include "base/result.h"

namespace belay {

enum class Granularity : uint8_t { kTool, kTurn, kSession };
enum class Secrets : uint8_t { kLocal, kSkip };
enum class OnOutside : uint8_t { kAsk, kKeep, kExact };
enum class GitAction : uint8_t { kAuto, kReset, kRevert, kKeep };
enum class Transcripts : uint8_t { kKeep, kAnchors, kOff };

// A number of bytes, or a share of the file system that holds the store.
struct SizeSetting {
  uint64_t bytes = 0;
  int percent = 0;  // 1-100: a share, and `bytes` means nothing

  bool operator==(const SizeSetting&) const = default;
};

using Argv = std::vector<std::string>;

enum class SettingSource : uint8_t { kDefault, kUser, kProject };
std::string_view SettingSourceName(
    SettingSource source);  // "default", "user", "project"

inline constexpr size_t kSettingCount = 29;  // rows of the table

struct Settings {
  bool enabled = true;
  bool auto_protect = false;  // `auto`
  Granularity granularity = Granularity::kTool;
  bool strict = false;
  int64_t deadline_ms = 2000;
  int64_t run_wait_ms = 2000;
  std::vector<std::string> exclude;
  std::vector<std::string> protect;
  std::vector<std::string> secret_patterns = DefaultSecretPatterns();
  bool default_excludes = true;
  Secrets secrets = Secrets::kLocal;
  SizeSetting max_file_size = {.bytes = uint64_t{512} << 20};
  int64_t max_files = 2'000'000;
  int64_t retention_auto = 200;
  int64_t retention_days = 30;
  int64_t retention_undo = 50;
  SizeSetting store_cap = {.bytes = uint64_t{10} << 30};
  SizeSetting store_floor = {.percent = 5};
  OnOutside on_outside = OnOutside::kAsk;
  GitAction git_action = GitAction::kAuto;
  bool git_refs = false;
  int64_t git_refs_keep = 20;
  bool git_protect = false;
  Transcripts transcripts = Transcripts::kKeep;
  bool notice = false;
  // Commands as argument lists, run one after the other.
  std::vector<Argv> before_rollback;
  std::vector<Argv> after_rollback;
  std::vector<Argv> on_session_end;
  std::vector<Argv> summarize;  // one at most

  struct Tool {
    bool enabled = true;
    SettingSource source = SettingSource::kDefault;
    bool operator==(const Tool&) const = default;
  };
  std::map<std::string, Tool, std::less<>> tools;  // `tools.<Name>`

  // Where each row of the table got its value, in the table's order.
  std::array<SettingSource, kSettingCount> sources{};
  // "FILE:LINE: text", for the person; never a reason to stop.
  std::vector<std::string> warnings;

  bool ToolEnabled(std::string_view name) const;
  // Free bytes that must stay on a file system of `total_bytes`: `store.floor`, where a
  // share is never more than 2 GiB.
  uint64_t StoreFloorBytes(uint64_t total_bytes) const;

  static std::vector<std::string> DefaultSecretPatterns();
};

// Names are used in messages only. Empty text is an empty file.
Result<Settings> ParseSettings(std::string_view user_text, std::string_view user_name,
                               std::string_view project_text,
                               std::string_view project_name);

inline constexpr size_t kMaxSettingsFile = size_t{1} << 20;

// The text of the user's file, symlinks followed; empty when there is none.
Result<std::string> ReadUserSettings(Fs& fs, const AbsPath& file);
// The text of `.belay.toml` in `root`; empty when there is none. Never through a
// symlink: a project could point it at any file of the user's.
Result<std::string> ReadProjectSettings(Fs& fs, const AbsPath& root);
// Both of the above, parsed. Creates nothing.
Result<Settings> LoadSettings(Fs& fs, const AbsPath& user_file,
                              const std::optional<AbsPath>& root);

// The file of a project, below its root.
Name ProjectSettingsName();

// `text` with `key` set to `value` as a person types it (`true`, `512MiB`,
// `["a","b"]`). Comments, order and everything else stay byte for byte, and the result
// is parsed to prove it. What cannot be done that way (a value with comments inside, a
// key within an inline table) is refused, as is a value the key cannot hold, or, with
// `for_project`, a key a project may not set.
Result<std::string> SetInText(std::string_view text, std::string_view file_name,
                              std::string_view key, std::string_view value,
                              bool for_project);

// A file's text with every line that makes no sense there put into a comment, so that
// nothing is lost and the rest counts again. kInvalid when a few such lines are not
// enough.
struct RepairedSettings {
  std::string text;
  std::vector<std::string> repaired;  // "FILE:LINE: why", empty: nothing was wrong
  // It was no TOML: of a value that goes on over lines, another may be left.
  bool no_toml = false;
};
Result<RepairedSettings> RepairSettings(std::string_view text,
                                        std::string_view file_name, bool of_project);

}  // namespace belay
