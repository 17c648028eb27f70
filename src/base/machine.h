#pragma once

// What this kernel and a file system can do, asked by trying: for `belay doctor`, which
// tells people, and `belay on`, which refuses some. Nothing else depends on it: RealFs
// finds out for itself where it needs to. Direct system calls, since Fs has no words
// for them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/path.h"

namespace belay {

struct KernelAbilities {
  std::string release;       // "6.1.0-18-amd64"
  bool openat2 = false;      // opens that cannot leave a directory
  bool statx_mount = false;  // statx tells mount points
};
KernelAbilities AskKernel();

// Two files in `dir` can share their blocks. Tried with files that have no name and are
// gone at once; nothing when that cannot be tried there.
std::optional<bool> CanShareBlocks(const AbsPath& dir);

// A number out of a file of /proc; nothing when there is none.
std::optional<uint64_t> KernelNumber(const char* path);

// Of FsInfo::magic: "ext4", "nfs"; "type 0x1234" for one we do not know.
std::string FileSystemName(uint64_t magic);
// The kernel makes its files up when they are read: proc, sysfs, cgroup and their like.
// (A devtmpfs cannot be told from any tmpfs by this.)
bool IsPseudoFileSystem(uint64_t magic);
// Its files may be on another machine, or kept by a program: slower, and with weaker
// promises about flushing and locks.
bool IsNetworkFileSystem(uint64_t magic);

}  // namespace belay
