#pragma once

// Upkeep: when old checkpoints are let go and garbage is collected without anybody
// asking. Whoever made a checkpoint asks IsDue() and starts a process for it, so that
// nobody waits. The mark (cache/upkeep) is a hint: without it upkeep is due.

#include <cstdint>

#include "store/store.h"

namespace belay {

// So many records after the last time.
inline constexpr uint64_t kUpkeepEvery = 64;

// `seq` is the number of the record that was just published. True at most once in
// kUpkeepEvery records: the mark is moved first, so that of many processes one starts.
bool UpkeepIsDue(Store& store, uint64_t seq);

}  // namespace belay
