#pragma once

// WorkTreeLoader finds out what git knows about the work trees a scan meets: the one
// around the root, and those nested in it. It reads files only; see git/.
//
// The index is the dear part (10 MB at 100,000 files): it is parsed only when its stat
// differs from what the cache remembers, or when a rule makes the answer depend on what
// is tracked. Of one that cannot be read it is not known what it tracks
// (TrackedSet::unknown), and trouble says so: the scan keeps what it covered before,
// and a checkpoint that may lack new files which are tracked although ignored is better
// than none.
//
// Threads: a loader is used by one thread at a time; what it returns is immutable and
// may be asked by any.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fs.h"
#include "git/ask_git.h"
#include "git/repository.h"
#include "ignore/rules.h"

namespace belay {

// Where git keeps the user's settings, and where git itself is.
struct GitPlaces {
  GitUserConfig user = {};
  AskGitOptions ask = {};
};

// What the cache remembers of an index.
struct IndexHint {
  uint64_t print = 0;  // 0 when there is no index
  uint64_t names = 0;  // of the set of tracked names
  bool racy = true;
  bool operator==(const IndexHint&) const = default;
};

struct WorkTreeFacts {
  std::optional<GitRepository> repository;  // none: the root counts as the top
  std::shared_ptr<const WorkTree> tree;
  // Two scans with equal keys decide alike, as far as git's side goes.
  uint64_t git_key = 0;
  IndexHint index;
  // What `tree` was made of but for the index, for the rules record.
  std::shared_ptr<const WorkTreeInput> input;
  // Settings or an index that cannot be read, in words.
  std::vector<std::string> trouble;
  // What is tracked could not be found out.
  bool index_unknown = false;
  // An index that was to be read when first asked, and then could not be: what was
  // decided meanwhile is to be decided again. Set by any thread, once.
  struct LateTrouble {
    std::mutex mutex;
    std::optional<std::string> what;
  };
  // Shared by the facts, which are copied, and the set that reads.
  std::shared_ptr<LateTrouble> late = std::make_shared<LateTrouble>();
};

class WorkTreeLoader {
 public:
  // Everything must outlive the loader and what it returns.
  WorkTreeLoader(Fs& fs, Clock& clock, const GitPlaces& places)
      : fs_(fs), clock_(clock), places_(places) {}
  // Fingerprints are made with it.
  void set_key(uint64_t key) { key_ = key; }
  // Every index is read when first asked, whatever the cache remembers: for who makes
  // no cache of it.
  void set_reads_late(bool late) { reads_late_ = late; }

  // The work tree that holds `root`, or the root alone where there is none.
  Result<WorkTreeFacts> AroundRoot(const AbsPath& root, const IndexHint& hint);
  // The work tree whose top is `dir`, nested in `root`; nothing when its `.git` is no
  // repository. One that cannot be opened has no `repository`, and trouble.
  Result<std::optional<WorkTreeFacts>> At(const AbsPath& root, const AbsPath& dir,
                                          const IndexHint& hint);

 private:
  Status Fill(WorkTreeFacts& facts, WorkTreeInput input, const AbsPath& root,
              const std::optional<AbsPath>& excludes_file, const IndexHint& hint);
  Result<std::shared_ptr<const TrackedSet>> LoadIndex(WorkTreeFacts& facts,
                                                      const IndexHint& hint);

  Fs& fs_;
  Clock& clock_;
  const GitPlaces& places_;
  uint64_t key_ = 0;
  bool reads_late_ = false;
};

}  // namespace belay
