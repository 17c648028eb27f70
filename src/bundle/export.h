#pragma once

// WriteBundle: checkpoints with all they need, as one stream of bytes.
//
// Guarantees
//   * The same checkpoints give the same bytes, whatever the store's packs, deltas,
//     history and the order they are named in (and the same secret patterns are in
//     force).
//   * No byte of a secret's content, nor its hash, is among them; each is named in the
//     rules record of its checkpoint as left out.
//   * Everything was found whole on the way: what is damaged is kCorrupt, and what was
//     handed out until then is no bundle.
//   * Memory holds ids, never content: about 100 bytes an object.
// Layout: docs/format.md, "Bundle".

#include <functional>
#include <string>
#include <vector>

#include "scan/scan.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct ExportRequest {
  std::vector<CatalogEntry> checkpoints;  // one that is named twice is taken once
  std::string root_path;
  // Secrets besides those of each state's own rules: what is in force today.
  std::vector<std::string> secret_patterns;
  std::function<void(uint64_t objects)> progress = {};
};

struct ExportedCheckpoint {
  Checkpoint checkpoint;              // as it is in the bundle
  std::vector<SkippedPath> left_out;  // secrets, and what was purged; by path
};

struct ExportReport {
  std::vector<ExportedCheckpoint> checkpoints;  // in the order of the bundle
  uint64_t objects = 0;
  uint64_t length = 0;
};

using BundleSink = std::function<Status(ByteSpan)>;
Result<ExportReport> WriteBundle(Store& store, const ExportRequest& request,
                                 const BundleSink& sink);

}  // namespace belay
