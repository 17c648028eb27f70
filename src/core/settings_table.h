#pragma once

// The one table of settings: what `belay config` lists, what the parser accepts, what
// the documentation says. A constexpr array, so that starting the program costs
// nothing.

#include <span>
#include <variant>

#include "base/json.h"
#include "core/settings.h"

namespace belay {

// Which field of Settings a key fills. The alternative decides the type.
using SettingField =
    std::variant<bool Settings::*, int64_t Settings::*, SizeSetting Settings::*,
                 Granularity Settings::*, Secrets Settings::*, OnOutside Settings::*,
                 GitAction Settings::*, Transcripts Settings::*,
                 std::vector<std::string> Settings::*, std::vector<Argv> Settings::*>;

struct SettingInfo {
  std::string_view key;
  SettingField field;
  std::string_view help;
  std::string_view choices = {};  // "tool|turn|session", in the enum's order
  int64_t min = 0;                // of an integer or a size
  int64_t max = INT64_MAX;
  bool percent = false;    // a size that may also be a share
  bool user_only = false;  // not from a project's file
  // Of the choices one that a project's file may not make: whoever works in the project
  // would take back what others did there, and nobody is asked.
  std::string_view user_only_choice = {};
};

std::span<const SettingInfo> SettingTable();

// The row of `key`, or nullptr. `tools.<Name>` is not a row.
const SettingInfo* FindSetting(std::string_view key);
// The known key nearest to `key`, or empty. Of `tols.Bash` that is `tools.Bash`.
std::string NearestSetting(std::string_view key);
// The <Name> of `tools.<Name>`, or empty when `key` is not of that form.
std::string_view ToolNameOfKey(std::string_view key);

// One value as a person reads it (`tool`, `512MiB`, `["a","b"]`) and as JSON has it.
std::string SettingText(const Settings& settings, const SettingInfo& info);
void WriteSettingJson(const Settings& settings, const SettingInfo& info,
                      JsonWriter& json);

// "512MiB", "10GB", "4096", "5%" (only when `allow_percent`); anything else is
// kInvalid.
Result<SizeSetting> ParseSize(std::string_view text, bool allow_percent);
std::string FormatSize(const SizeSetting& size);

}  // namespace belay
