#pragma once

// Where a user's git repository is, and the few settings of it that decide what a
// checkpoint covers. Read from files; nothing is written and git is not run.
//
// What counts as a repository is what git takes for one: HEAD, objects/ and refs/ must
// be there. ".git" may be a directory, a symlink to one, or a file "gitdir: PATH"
// (linked work trees, submodules, --separate-git-dir). Anything else under that name, a
// FIFO or a file of nonsense, means that here is no repository; nothing hangs on it.
//
// safe.directory has no meaning here: it keeps git from running what the owner of a
// foreign repository planted (hooks, fsmonitor), and we run nothing.
//
// Threads: functions of their arguments; any thread.

#include <optional>
#include <string>
#include <vector>

#include "base/fs.h"
#include "base/path.h"
#include "git/config.h"
#include "git/index.h"

namespace belay {

struct GitRepository {
  AbsPath work_tree;   // its top
  AbsPath git_dir;     // HEAD and index: of this work tree alone
  AbsPath common_dir;  // config, objects, info: shared by linked work trees
  GitHash hash = GitHash::kSha1;
  bool ignore_case = false;  // core.ignoreCase
  // core.excludesFile, else git's default place; need not exist. Absent when set empty
  // or when there is no home.
  std::optional<AbsPath> excludes_file;
  // Settings that could not be read, in words; empty as a rule.
  std::vector<std::string> problems;

  AbsPath index() const { return git_dir.Join(RelPath::Literal("index")); }
  AbsPath info_exclude() const {
    return common_dir.Join(RelPath::Literal("info/exclude"));
  }
  ReadIndexOptions index_options() const {
    return {.hash = hash, .ignore_case = ignore_case};
  }
};

// The work tree that holds the directory `dir`: the nearest one above that git would
// find, not beyond the file system `dir` is on. None also inside a bare repository or a
// git directory, and where core.worktree puts the work tree elsewhere. A file ".git" of
// nonsense, where git would give up, is passed by: the repository above takes what is
// beside it for its own.
//
// kUnsupported: the repository has a format of a newer git.
Result<std::optional<GitRepository>> FindWorkTree(Fs& fs, const AbsPath& dir,
                                                  const GitUserConfig& user);

// The repository whose ".git" is in the directory `dir`; none when it has no such entry
// or one that is no repository. work_tree is elsewhere than `dir` where core.worktree
// says so; a bare one (core.bare) is none.
Result<std::optional<GitRepository>> OpenRepositoryAt(Fs& fs, const AbsPath& dir,
                                                      const GitUserConfig& user);

// Whether git would take the directory `dir` for a git directory, whatever its name:
// HEAD, objects/ and refs/ are there. A bare repository, what --separate-git-dir made,
// or the target of a `.git` that is a file or a symlink. One whose HEAD cannot be read
// counts as one: it is better left alone.
Result<bool> IsGitDirectory(Fs& fs, const Fd& dir);

// The excludes file of a user outside any repository: rules count there too.
std::optional<AbsPath> UserExcludesFile(Fs& fs, const GitUserConfig& user,
                                        std::vector<std::string>& problems);

}  // namespace belay
