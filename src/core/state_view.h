#pragma once

// A state as people look at it: its tree, and the rules it was made by.

#include <optional>
#include <string_view>

#include "scan/rules_record.h"
#include "scan/tree_diff.h"
#include "store/store.h"

namespace belay {

struct StateView {
  State state;
  // Absent when the state has none, or when it cannot be read: `trouble` says so then.
  std::optional<RulesRecord> rules;
  std::string trouble = {};
  Errc trouble_code = Errc::kCorrupt;  // kPurged: no damage

  // What was not covered, with the reason, by path; other roots among them.
  std::vector<SkippedPath> Skipped() const;
};
// What a checkpoint needs is in the store, or the store is damaged (kCorrupt). What the
// file system does not find (errno) is another matter.
Error AsDamage(Error error);

// Only a state that cannot be read itself is an error.
Result<StateView> LoadState(Store& store, const ObjectId& id);

// The rules record `id` without what the files of rules say: patterns, and what the
// directory itself was like.
Result<RulesRecord> LoadRules(Store& store, const ObjectId& id);

// What somebody who relies on the state should know, in words: where git's index could
// not be read, what it tracked is not known; nor attributes of directories.
std::vector<std::string> DoubtsOf(const RulesRecord& rules);

// Reads trees of `store`, which must outlive it.
Scan::TreeReader TreesOf(Store& store);

// `path`, from the root, is a secret by these patterns. A directory never is.
bool IsSecretPath(const RuleLists& lists, const RelPath& path);

// The directory as it is now, hashed and not stored: a tree and how to read it. What
// did not change since the last checkpoint is not read again. `request` is completed
// and must outlive the call; packs are kept from being taken away while this lives.
struct TreeNow {
  HeldLock hold;
  ScanSummary summary;
  Scan::TreeReader read;
};
Result<TreeNow> LookAtNow(Store& store, ScanRequest& request);

}  // namespace belay
