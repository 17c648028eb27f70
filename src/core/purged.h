#pragma once

// What was purged, as far as a checkpoint or an operation of the past is concerned: the
// content it no longer has, and the paths that are left alone from then on.
//
// It goes by the log, not by what lies in the packs: from the moment a purge is
// published nobody brings its content back from an older checkpoint, though the bytes
// may take a while to go.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/catalog.h"
#include "store/heads.h"
#include "store/store.h"

namespace belay {

class PurgedSet {
 public:
  static Result<PurgedSet> Load(Catalog& catalog);

  bool empty() const { return seqs_.empty(); }
  // Content that a record with the number `seq` refers to was purged since.
  bool Has(const ObjectId& content, uint64_t seq) const;

 private:
  std::unordered_map<ObjectId, uint64_t> seqs_;  // number of the newest purge
};

// The same for one checkpoint or operation of one root.
struct Purged {
  std::vector<std::string> paths;  // Root::purged, as of now
  PurgedSet contents;
  uint64_t seq = 0;

  bool Lacks(const ObjectId& content) const { return contents.Has(content, seq); }
  // The path, or a directory above it, is left alone.
  bool LeavesAlone(std::string_view path) const;
};
// Asks the catalogue only when there was a purge since.
Result<Purged> PurgedSince(Store& store, const Heads& heads, const Root& root,
                           uint64_t seq);

// `path` is `top`, or below it.
bool IsAtOrBelow(std::string_view path, std::string_view top);

}  // namespace belay
