#pragma once

// What the stat caches say of the log: each names the batch that it relies on, and was
// written only after that had been acknowledged (docs/format.md, "cache/"). Where the
// tail is lost they say how far the open pack went at least, also when nobody has asked
// the catalogue or the heads anything since. And what the pack's index says: it is
// written after the flush, and tells how far that went.

#include <cstddef>
#include <optional>

#include "store/pack_file.h"

namespace belay {

// Of the head of a stat cache, what is read here; src/scan/stat_cache.h has all of it.
inline constexpr size_t kCacheHeadSize = 160, kCacheKeyAt = 32, kCachePackAt = 96,
                        kCacheBatchAt = 112, kCacheBodyHashAt = 120,
                        kCacheCheckAt = 152;
inline constexpr std::string_view kStatCacheMagic = "BELAYSC2";

// The end of the last batch of `pack` that one of them relies on, or up to which its
// index knows it to be flushed; nothing when none does. A batch whose header is gone
// counts with the least that it took.
std::optional<uint64_t> ReliedOn(Fs& fs, const Fd& store_dir, const Fd& packs_dir,
                                 const PackId& pack, const StoreId& store);

}  // namespace belay
