#pragma once

// Usage: what the store takes on disk and what for. The parts add up to the whole:
// every allocated byte of every file is in exactly one of them.

#include <map>

#include "store/store.h"

namespace belay {

struct RootUsage {
  RootId root;          // of several that share a path, the one recorded last
  std::string path;     // empty when no record tells
  uint64_t unique = 0;  // stored bytes only this root's checkpoints need
  uint64_t shared = 0;  // stored bytes that others need too
  // Stored bytes that nobody needs any more, and only this root once did: a part of
  // StoreUsage::reclaimable.
  uint64_t reclaimable = 0;
  uint64_t checkpoints = 0;
};

// The same of a session, whose checkpoints may be of several roots. Here "others" are
// all checkpoints and operations that are not the session's.
struct SessionUsage {
  std::string session;
  uint64_t unique = 0;
  uint64_t shared = 0;
  uint64_t reclaimable = 0;
  uint64_t checkpoints = 0;
};

struct StoreUsage {
  uint64_t allocated = 0;  // of every file and directory of the store, as du(1) counts
  uint64_t packs = 0;      // allocated by packs
  uint64_t indexes = 0;
  uint64_t catalog = 0;
  uint64_t aside =
      0;  // what was put aside: no file of the store, and nobody removes it
  uint64_t other = 0;
  std::vector<std::string> aside_paths;  // below the store, "packs/x.pack.aside"
  // Bytes of packs: objects and records that are wanted, and what those are made from.
  uint64_t wanted = 0;
  uint64_t reclaimable = 0;  // bytes of packs: what `belay gc` could free
  uint64_t overhead = 0;     // bytes of packs: headers and trailers
  uint64_t pack_bytes = 0;   // wanted + reclaimable + overhead
  std::map<std::string, uint64_t> by_type;  // wanted bytes
  // What of the packs is damaged and so not counted right, in words.
  std::vector<std::string> damage;
  std::vector<RootUsage> roots;
  std::vector<SessionUsage> sessions;  // by name
};

Result<StoreUsage> MeasureUsage(Store& store);

// Bytes of packs that objects would still take, at least, if these records were
// dropped.
Result<uint64_t> WantedWithout(Store& store, const std::vector<RecordId>& dropped);

// Of every file and directory of the store, as du(1) counts; nothing else is looked at.
struct Allocated {
  uint64_t all = 0;
  uint64_t catalog = 0;  // of that
  uint64_t aside = 0;    // of that
  std::vector<std::string> aside_paths;
};
Result<Allocated> AllocatedBytes(Store& store);

}  // namespace belay
