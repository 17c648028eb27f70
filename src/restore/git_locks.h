#pragma once

// Git's own lock files, taken while its files are moved: whoever runs git meanwhile is
// told that somebody is at work, and cannot change what we have planned by.
//
// Guarantees
//   * A lock file of ours has its content from the first instant ("belay" and the
//     operation), so that after a crash ours are known, and only ours are removed.
//   * One that another holds is waited for, never removed: kBusy says which it is.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fs.h"
#include "core/operations.h"

namespace belay {

class GitLocks {
 public:
  // `dir`: the common git directory, `path`: its own, for people; `locks`: from there
  // on. `dir` and `locks` must outlive it.
  GitLocks(Fs& fs, Clock& clock, const Fd& dir, std::string path,
           const std::vector<std::string>& locks, const RecordId& operation);

  // All of them, or none. Those of ours that a crash left are taken over.
  Status Take(int64_t wait_ms);
  // What is ours; any number of times.
  Status Release();

 private:
  Result<bool> IsOurs(const std::string& path);
  Error Held(const std::string& path) const;
  Status WaitFor(const std::string& path, int64_t deadline_ns);
  Status TakeOne(const std::string& path, int64_t deadline_ns);

  Fs& fs_;
  Clock& clock_;
  const Fd& dir_;
  const std::string path_;
  const std::vector<std::string>& locks_;
  const std::string token_;
  const Name first_;  // the file that all of them are names of
};

}  // namespace belay
