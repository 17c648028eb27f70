#pragma once

// Small questions about paths and what stands at them.

#include <optional>
#include <string>

#include "core/change.h"

namespace belay {

inline constexpr uint32_t kSetId = 06000;  // setuid and setgid

inline std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

inline bool IsBelow(const std::string& path, const std::string& dir) {
  return path.size() > dir.size() + 1 && path.starts_with(dir) &&
         path[dir.size()] == '/';
}

inline bool IsDir(const std::optional<PathState>& state) {
  return state && state->kind == EntryKind::kDirectory;
}
inline bool IsFile(const std::optional<PathState>& state) {
  return state && state->kind == EntryKind::kFile;
}
// A file or symlink.
inline bool IsLeaf(const std::optional<PathState>& state) {
  return state && !IsDir(state);
}

}  // namespace belay
