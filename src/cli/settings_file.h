#pragma once

// The settings files as commands change them: the user's, or a project's.

#include <string>

#include "cli/context.h"

namespace belay {

// Where a settings file really is, and the text it holds now.
struct SettingsFile {
  AbsPath dir;
  Name name;
  std::string shown;
  std::string text;
  uint32_t dir_mode;
  uint32_t file_mode;
};

Result<SettingsFile> FindSettingsFile(CommandContext& ctx, const AbsPath& root,
                                      bool project);
// Replaces it whole; its mode stays, and so does a symlink to it.
Status WriteSettingsFile(CommandContext& ctx, const SettingsFile& file,
                         const std::string& text);

}  // namespace belay
