#pragma once

// What of a git directory is part of the state a project is in: where HEAD is, the
// index, the refs that work moves, and whatever operation is under way.
//
// Guarantees
//   * Nothing is written, locked or touched; git is not run.
//   * No symlink is followed beneath the git directory, and nothing but regular files
//   is
//     read: a FIFO or a link under one of git's names is named in `trouble`.
//   * GitLook::print tells two looks apart whenever a file was written between them,
//   but
//     for what the clock cannot tell (`racy`).
//
// Threads: functions of their arguments; any thread.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/fs.h"
#include "base/sha256.h"
#include "git/repository.h"

namespace belay {

// A file of git's. `name` is from the directory on that the list is about.
struct GitFile {
  std::string name;
  FileStat stat;
};

struct GitLook {
  // In the git directory of this work tree, by name: HEAD, what tells of a merge, a
  // rebase, a bisection ..., the settings of a sparse checkout, the shared part of a
  // split index.
  std::vector<GitFile> own;
  std::optional<GitFile> index;
  // In the common directory: refs that are files of their own ("refs/heads/main"), by
  // name; packed-refs; the list of stashes.
  std::vector<GitFile> loose;
  std::optional<GitFile> packed;
  std::optional<GitFile> stash_log;
  // Why what is here is not known in full, in words; empty as a rule.
  std::string trouble;
  Hash256 print;
  int64_t newest_ns = 0;  // of all times that were seen
  bool racy = false;      // something was written so lately that `print` may miss more
};

// `is_racy` says so of one stat.
Result<GitLook> LookAtGit(Fs& fs, const GitRepository& repository,
                          bool (*is_racy)(const FileStat&, int64_t now_ns),
                          int64_t now_ns);

// By name: an object id in hex, or "ref: NAME". Branches, tags and the stash. One whose
// file holds neither: its bytes, as DamagedGitRef() has them.
using GitRefs = std::map<std::string, std::string, std::less<>>;
Result<GitRefs> ReadGitRefs(Fs& fs, const GitRepository& repository,
                            const GitLook& look);
// The value of a ref whose file holds nonsense, or nothing; and the bytes of one, or
// nothing when it is another value.
std::string DamagedGitRef(ByteSpan bytes);
std::optional<std::string> BytesOfDamagedGitRef(std::string_view value);
// One line each, "VALUE NAME"; the way they are kept.
std::string RefsText(const GitRefs& refs);
Result<GitRefs> ParseRefsText(std::string_view text);

// The bytes of one file of a look; kConflict when it was replaced by another kind.
Result<Bytes> ReadGitFile(Fs& fs, const AbsPath& dir, std::string_view name,
                          size_t limit);

// What the names of shared parts of a split index begin with.
constexpr std::string_view kGitSharedIndex = "sharedindex.";

struct GitHead {
  std::string ref;     // "refs/heads/main"; empty when detached
  std::string commit;  // hex; of a ref: empty, it is in the refs
};
Result<GitHead> ParseGitHead(std::string_view text, GitHash hash);
// The branch that work goes on: of HEAD, or while a rebase is under way the one that it
// will go back to. `head_name`: of rebase-merge or rebase-apply.
bool IsGitHex(std::string_view text, GitHash hash);
// "refs/heads/a/b": what git accepts as the name of a ref, and no path out of refs/.
bool IsGitRefName(std::string_view name);

// Whether GitLook::own may have a file of that name: nothing else is ever kept or put
// back there.
bool IsGitStateFile(std::string_view name);

// What is under way: "merge", "rebase", "cherry-pick", "revert", "bisect", "am", or
// empty.
std::string GitInProgress(const std::vector<std::string>& own_names);

// Which objects lie in files of their own. Names of one of git's 256 directories are
// held at a time: half a million would be 60 MB. Whoever asks in rising order has each
// directory listed once.
class LooseObjects {
 public:
  // `fs` must outlive it.
  static Result<LooseObjects> Open(Fs& fs, const GitRepository& repository);
  Result<bool> Has(std::string_view hex);

 private:
  LooseObjects(Fs& fs, Fd objects) : fs_(&fs), objects_(std::move(objects)) {}
  Fs* fs_;
  Fd objects_;
  std::string fan_;  // whose names these are
  std::unordered_set<std::string> names_;
};
// The content of a loose blob, inflated; nothing when there is no such object, when it
// is no blob, or when it does not hash to its name. Above `limit` bytes: nothing.
Result<std::optional<Bytes>> ReadLooseBlob(Fs& fs, const GitRepository& repository,
                                           const std::string& hex, size_t limit);
// Whether the file of a loose object, of whatever kind, holds what it is named by. What
// is longer than memory should hold counts as whole.
Result<bool> IsLooseObjectWhole(Fs& fs, const GitRepository& repository,
                                const std::string& hex);
// The bytes of the file that holds `content` as a blob, and its name in hex.
struct LooseObject {
  std::string hex;
  Bytes file;
};
Result<LooseObject> MakeLooseBlob(GitHash hash, ByteSpan content);

}  // namespace belay
