#pragma once

// The repository of a fork.

#include <optional>
#include <string>

#include "core/git_record.h"
#include "restore/fork.h"

namespace belay {

// Makes `.git` in the directory `work`: the settings, objects and excludes of the
// repository in `source`, and HEAD, refs, index and what was under way as `record` has
// them. False, with a warning: there can be none.
Result<bool> MakeForkedRepository(Store& store, const AbsPath& source,
                                  const GitPlaces& places, const GitRepoRecord& record,
                                  const AbsPath& path, const Fd& work,
                                  std::vector<std::string>& warnings);

}  // namespace belay
