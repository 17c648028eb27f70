#pragma once

// ReadIndex reads what a git index tracks, without git.
//
// Versions 2, 3 and 4, SHA-1 and SHA-256 repositories, and split indexes (the shared
// part is read too). Only names and kinds are kept: a checkpoint asks the index one
// question, whether a path is tracked.
//
// Guarantees
//   * Nothing is written, locked or touched. (`git ls-files` on a split index sets the
//     time of the shared file; this is why we read it ourselves.)
//   * The checksum at the end is right, or all zero as index.skipHash leaves it, which
//     git itself does not check. Bytes that are no index are kCorrupt, one from a newer
//     git kUnsupported; the text names the file.
//   * Git replaces the index by rename, so one read sees one index. The shared part of
//   a
//     split index never changes under its name; when it was removed meanwhile the whole
//     is read again.
//
// A sparse index names directories in place of what is beneath them, and only git can
// say what that is: `needs_git` is set, and git/ask_git.h answers. The same for
// required extensions that we do not know.
//
// The file streams through one buffer: memory is that of TrackedPaths.
// Format: gitformat-index(5).

#include <optional>
#include <string>
#include <vector>

#include "base/fs.h"
#include "base/path.h"
#include "git/tracked_paths.h"

namespace belay {

enum class GitHash : uint8_t { kSha1, kSha256 };
constexpr size_t GitHashSize(GitHash hash) { return hash == GitHash::kSha1 ? 20 : 32; }

struct GitIndex {
  TrackedPaths paths;
  // What the file was that has been read, for callers that keep the answer; absent when
  // there is no index yet (a repository just made), which tracks nothing.
  std::optional<FileStat> stat;
  // Why git has to be asked instead, in words; empty when `paths` is the answer.
  std::string needs_git;
  // The sparse directories of `paths` ("name/"), and the trees that tell what is in
  // them.
  struct SparseDirectory {
    std::string name;
    std::string tree;  // hex
  };
  std::vector<SparseDirectory> sparse;
  bool unknown_extension = false;  // `paths` may be wrong; needs_git says which
  bool split = false;
};

struct ReadIndexOptions {
  GitHash hash = GitHash::kSha1;
  bool ignore_case = false;  // TrackedPaths::FoldCase
  size_t buffer = size_t{256} << 10;
};

// `index` lies in the git directory, where the shared part of a split index is too.
Result<GitIndex> ReadIndex(Fs& fs, const AbsPath& index,
                           const ReadIndexOptions& options);

// The stat of the index, to see whether it is still the one that was read; absent when
// there is none. Follows a symlink, as reading does.
Result<std::optional<FileStat>> StatIndex(Fs& fs, const AbsPath& index);

}  // namespace belay
