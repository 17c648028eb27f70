#pragma once

// What was remembered of a project under the path that it had: a directory that is
// renamed or moved takes the files of `belay install --project` along.

#include <optional>
#include <string>
#include <vector>

#include "agent/install_record_internal.h"

namespace belay {

struct MovedRecord {
  std::string was;       // the path of the record that there is
  InstallRecord record;  // as it is here
};

// The record that speaks of the file `path` in `project` under the path of before: it
// is of this agent, ends in the same names, its own file is gone, and it knows `text`
// as what we wrote last. None where several do and disagree about what there was.
std::optional<MovedRecord> FindMovedRecord(Fs& fs, const InstallRecords& records,
                                           std::string_view agent,
                                           const AbsPath& project, const AbsPath& path,
                                           std::string_view text);

}  // namespace belay
