#pragma once

// Whose doing it is that HEAD of a repository stands on another commit.
//
// The checkpoint that found it there says so, beside the authors of files that changed
// (Checkpoint::by) and by the same rule: they are those of the calls at work since the
// look before that may write anything; whoever is outside where there were none. It is
// named, as ".git" or "vendor/lib/.git", which no file of a tree is called. A
// checkpoint that found HEAD elsewhere and does not name it (an older Belay's; the one
// before it could not be read) knows nothing of it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/git_record.h"
#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

// What HEAD of the repository at this path is called there.
std::string HeadName(std::string_view repository);

// The names of those that stand on another commit, or came, or went; rising.
std::vector<std::string> MovedHeads(const GitRecord& before, const GitRecord& now);

// HEAD stood elsewhere at checkpoint `found` than at the one before it, or than an
// operation between them left it.
struct HeadMove {
  std::string name;
  size_t found = 0;             // its place in the list
  std::vector<Author> authors;  // kUnknown alone: nobody told
};
struct HeadHistory {
  std::vector<HeadMove> moves;  // oldest first
  GitRecord last;               // as they were left at the end
};
// Since the oldest checkpoint. Where rollbacks, undos and redos took HEAD is nobody's
// doing. Of a checkpoint that cannot be read the next one has the moves, not told.
Result<HeadHistory> HeadsSince(Store& store,
                               const std::vector<CatalogEntry>& newest_first,
                               const std::vector<Operation>& oldest_first);

}  // namespace belay
