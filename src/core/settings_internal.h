#pragma once

// Between the parts of core/settings.

#include "core/settings_table.h"
#include "core/toml.h"

namespace belay {

// Checks `value` against the row and puts it into `settings`; lists are added to when
// `append`. The error says what would have been right, without file and line.
Status AssignSetting(const SettingInfo& info, const TomlValue& value, bool append,
                     Settings& settings);

}  // namespace belay
