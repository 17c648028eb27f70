#pragma once

// A file of the user's that `belay install` reads, makes, replaces or removes.

#include <optional>
#include <string>
#include <vector>

#include "agent/install.h"
#include "base/fs.h"

namespace belay {

struct InstallTarget {
  AbsPath path;                          // as it was named
  AbsPath real;                          // where its bytes are, or would be
  std::optional<std::string> text = {};  // absent: there is no such file
  FileStat stat = {};
  std::string link = {};                   // `path` is a symlink to this
  std::vector<AbsPath> missing_dirs = {};  // outermost first
  std::string shown() const;               // for messages
};

// Reads it, if it is there. kRefused when something else is in its place, when a
// symlink leads nowhere or to something that is not a file of the user's, or, of a
// project's, out of the project.
Result<InstallTarget> LookAtTarget(Fs& fs, const InstallPlaces& places,
                                   const AbsPath& path, bool of_project);
// kRefused when it is not to be written: read-only, somebody else's, or with other
// names that would part from it.
Status CheckWritable(Fs& fs, const InstallPlaces& places, const InstallTarget& target);

// Makes it, or replaces it whole with owner, mode and attributes as they are. What was
// made of directories is taken away again on failure.
Status WriteTarget(Fs& fs, const InstallTarget& target, std::string_view text,
                   uint32_t mode, uint32_t dir_mode);
Status RemoveTarget(Fs& fs, const InstallTarget& target);
// Removes those that are empty, innermost first; the rest of the list.
std::vector<std::string> RemoveEmptyDirs(Fs& fs, std::vector<std::string> dirs);

}  // namespace belay
