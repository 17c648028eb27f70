#pragma once

// DirChain opens directories of a deep tree step by step, each from the one above it,
// and keeps those on the way open: who goes through such a tree in the order of its
// paths, up or down, needs a few calls for each directory, however deep it is.
//
// Guarantees
//   * Beneath the root, no symlink followed, nothing beneath a mount.
//   * The number of descriptors is bounded: the last kNear levels of the way, and above
//     them every kNear-th.
//
// Limits: a directory that somebody moves elsewhere while it is open is still the one
// that is worked in.
//
// Threads: one.

#include <string>
#include <vector>

#include "base/fs.h"

namespace belay {

class DirChain {
 public:
  // Both must outlive it.
  DirChain(Fs& fs, const Fd& root) : fs_(fs), root_(root) {}

  // A handle (kPath) on the directory at `path`, valid until the next call; "" is the
  // root. `path` is a valid RelPath. EXDEV: something is mounted on the way
  // (mounted()).
  Result<const Fd*> At(const std::string& path);
  // After EXDEV: where.
  const std::string& mounted() const { return mounted_; }
  // What is at `path` and below is another by now, or soon.
  void Leave(const std::string& path);
  void Forget() { path_.clear(), levels_.clear(); }

 private:
  static constexpr size_t kNear = 64;
  struct Level {
    size_t end;  // of its path, in path_
    Fd handle;   // closed: opened again when it is needed
  };

  void KeepCommon(const std::string& path);
  Status Descend(const std::string& path, size_t begin, size_t end);

  Fs& fs_;
  const Fd& root_;
  std::string path_, mounted_;
  std::vector<Level> levels_;
};

}  // namespace belay
