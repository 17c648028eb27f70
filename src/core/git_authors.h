#pragma once

// Whose doing it is that git moved: HEAD, a branch, a tag, the stash, an operation
// under way (what is unmerged with it). Not what is merely staged, nor what a fetch or
// a gc writes: no record has remote-tracking refs, or how refs are packed.
//
// The checkpoint that found it moved says so, beside the authors of files that changed
// (Checkpoint::by) and by the same rule: they are those of the calls at work since the
// look before that may write anything; whoever is outside where there were none. The
// repository is named, as ".git" or "vendor/lib/.git", which no file of a tree is
// called; what of it moved is what the two records differ in.
//
// A checkpoint that does not name one in which git moved knows nothing of it (the one
// before it could not be read), or is an older Belay's, which named them only where
// HEAD stood on another commit. That of all else it tells nothing is no reason to take
// it for somebody's: where HEAD did not move, such a move does not count.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/git_record.h"
#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

// What the repository at this path is called there.
std::string GitName(std::string_view repository);
// All in which git moved and that are not named.
constexpr std::string_view kOtherRepositories = "/.git";

// The names of those in which git moved, or that came, or went; rising. Of more than
// can be told, some and kOtherRepositories. Costs what the two are long.
std::vector<std::string> MovedRepositories(const GitRecord& before,
                                           const GitRecord& now);

// Null: there was no repository.
bool GitMoved(const GitRepoRecord* before, const GitRepoRecord* now);

// What of it moved, beside refs, which go by their names (the stash as "refs/stash",
// also when only its list is another).
constexpr std::string_view kGitHead = "HEAD";  // of a detached one: to another commit
constexpr std::string_view kGitUnderWay = "under way";
constexpr std::string_view kGitSparse = "sparse";
std::set<std::string> WhatMoved(const GitRepoRecord& before, const GitRefs& before_refs,
                                const GitRepoRecord& now, const GitRefs& now_refs);

// Git moved between the checkpoint `found` and the one before it, or what an operation
// between them left.
struct RepoMove {
  std::string name;
  size_t found = 0;             // its place in the list
  std::vector<Author> authors;  // kUnknown alone: nobody told
  // Null: there was no repository. For as long as the call lasts.
  const GitRepoRecord* before = nullptr;
  const GitRepoRecord* now = nullptr;
};
// All since the oldest checkpoint, oldest first; how the repositories were left at the
// end. Where rollbacks, undos and redos took git is nobody's doing. Of a checkpoint
// that cannot be read the next one has the moves, not told.
Result<GitRecord> EachMoveSince(Store& store,
                                const std::vector<CatalogEntry>& newest_first,
                                const std::vector<Operation>& oldest_first,
                                const std::function<Status(const RepoMove&)>& each);

}  // namespace belay
