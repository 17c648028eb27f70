#pragma once

// The settings files as commands change them: the user's, or a project's.
//
// Guarantees
//   * A file is replaced whole; its mode stays, and so does a symlink to it.
//   * Two commands that change one file at once both count: the second reads what the
//     first wrote. They exclude each other by "<name>.lock" beside the file, which is
//     there only meanwhile. (Where locks do not work, the last one wins.)

#include <functional>
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

// The text that is to take the place of `file.text`; the same text: nothing to do.
using SettingsEdit = std::function<Result<std::string>(const SettingsFile& file)>;

// Changes the file by `edit`, which may be called twice: what it refuses creates
// nothing. The file as it was found, with its new text.
Result<SettingsFile> EditSettingsFile(CommandContext& ctx, const AbsPath& root,
                                      bool project, const SettingsEdit& edit);

}  // namespace belay
