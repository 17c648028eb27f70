#pragma once

// The checkpoint object of the command-line contract, the same in every command.

#include "base/json.h"
#include "scan/scan.h"
#include "store/catalog.h"

namespace belay {

// `number` is the place in `belay list`, 1 = newest. `tree` is the state's tree, zero
// when the state cannot be read.
void WriteCheckpoint(const CatalogEntry& entry, uint64_t number,
                     std::string_view root_path, const ObjectId& tree,
                     std::span<const SkippedPath> skipped, JsonWriter& json);
// "abc1234  2026-03-09 21:15  before Write src/app.ts": one line for a person, local
// time.
std::string CheckpointLine(const CatalogEntry& entry);

}  // namespace belay
