#pragma once

// Reading files that git may follow symlinks to. Whatever lies there, a FIFO, a device,
// a directory, an endless file, is refused without waiting for it.

#include <optional>
#include <string>

#include "base/fs.h"
#include "base/path.h"

namespace belay::git_internal {

struct OpenFile {
  Fd file;
  FileStat stat;
};

// kNotFound also when something on the way is no directory.
Result<OpenFile> OpenRegular(Fs& fs, const AbsPath& path);
Result<std::string> ReadText(Fs& fs, const AbsPath& path, size_t limit);

// `path` as git takes one found in a file: absolute, or against `base`; links resolved
// where they can be. ".." is resolved by the file system, not by text.
Result<AbsPath> ResolveFrom(Fs& fs, const AbsPath& base, std::string_view path);

}  // namespace belay::git_internal
