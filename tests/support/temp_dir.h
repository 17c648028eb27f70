#pragma once

// A fresh directory under $TMPDIR or /tmp, removed with everything in it when it goes
// out of scope: read-only directories, names longer than PATH_MAX in sum, and all.

#include "base/fs.h"
#include "base/real_fs.h"

namespace belay::test {

class TempDir {
 public:
  TempDir();  // aborts the test program when it cannot be made
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const AbsPath& path() const { return path_; }  // without symlinks
  AbsPath operator/(std::string_view below) const;

 private:
  AbsPath path_;
};

// Removes `name` under `dir` and everything below it, at any depth, with two handles
// open at most. What is missing already is no error.
Status RemoveTree(Fs& fs, const Fd& dir, const Name& name);

// The open descriptors of this process: before and after must be equal.
size_t OpenDescriptors();

}  // namespace belay::test
