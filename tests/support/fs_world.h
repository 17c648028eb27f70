#pragma once

// FsWorld is an empty directory on one of the Fs implementations, so that one test runs
// on all of them.

#include <memory>
#include <ostream>
#include <string>

#include "base/fault_fs.h"
#include "base/fs.h"
#include "base/mem_fs.h"
#include "base/real_fs.h"
#include "support/temp_dir.h"

namespace belay::test {

enum class FsKind { kReal, kRealWalk, kMem, kFaultReal, kFaultMem };
inline constexpr FsKind kFsKinds[] = {FsKind::kReal, FsKind::kRealWalk, FsKind::kMem,
                                      FsKind::kFaultReal, FsKind::kFaultMem};
std::string FsKindName(FsKind kind);
inline void PrintTo(FsKind kind, std::ostream* out) { *out << FsKindName(kind); }

class FsWorld {
 public:
  explicit FsWorld(FsKind kind);

  Fs& fs() { return *fs_; }
  const AbsPath& path() const { return path_; }
  bool is_real() const { return temp_ != nullptr; }
  MemFs* mem() { return mem_.get(); }

 private:
  std::unique_ptr<TempDir> temp_;
  std::unique_ptr<RealFs> real_;
  std::unique_ptr<MemFs> mem_;
  std::unique_ptr<FaultFs> fault_;
  Fs* fs_ = nullptr;  // one of the above
  AbsPath path_ = AbsPath::Literal("/world");
};

// --- shorthand for tests; a failure aborts the test program with the error's text
// -------

template <class T>
T Must(Result<T> result, const char* file = __builtin_FILE(),
       int line = __builtin_LINE()) {
  if (!result.ok()) CheckFailed(result.error().what.c_str(), file, line);
  return std::move(result).value();
}

// The errno, or 0.
template <class T>
int Sys(const Result<T>& result) {
  return result.ok() ? 0 : result.error().sys;
}

inline Fd TopOf(Fs& fs) { return Must(fs.OpenDir(AbsPath::Literal("/"))); }
inline Name N(std::string_view bytes) { return Name::Literal(bytes); }
inline RelPath P(std::string_view bytes) { return RelPath::Literal(bytes); }

// Creates or replaces `path` below `root` (its directory must exist); not synced.
Status PutFile(Fs& fs, const Fd& root, const RelPath& path, std::string_view content,
               uint32_t mode = 0644);
// The whole file, at most 16 MiB.
Result<std::string> GetFile(Fs& fs, const Fd& root, const RelPath& path);

}  // namespace belay::test
