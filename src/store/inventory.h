#pragma once

// Inventory and Marker: what is in the packs, and what of it is wanted.
//
// Neither trusts an index: the inventory is a walk over every record header. A record
// is wanted unless a later drop names it (or it annotates one that is), or later
// annotations replaced all that it said; of what is wanted, text that was replaced is
// not. An object is wanted when a wanted record that no release names leads to it.
// Objects named by a purge are wanted only through records newer than the purge.
// Callers hold `use`, so that no pack goes away meanwhile.

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/batch_place.h"
#include "store/store.h"

namespace belay {

struct InventoryItem {
  ObjectKey key;
  uint64_t offset = 0;
  uint32_t stored_length = 0;
  uint64_t base = 0;  // of a delta: the offset of its base; 0 = whole, or unknown
  uint64_t total_length() const { return kRecordHeaderSize + stored_length; }
};

struct PackInventory {
  Manifest::Pack listed;
  uint64_t end = 0;      // as far as it was walked
  uint64_t flushed = 0;  // what lies beyond this may still be cut off
  bool readable = true;  // it could be opened; otherwise nothing of it is known
  bool unread = false;   // the disk did not give back all of it this time
  std::vector<InventoryItem> items;

  // The item whose record begins at `offset`; null when there is none.
  const InventoryItem* At(uint64_t offset) const;
  // Offsets of what deltas among the `wanted` items (one bit each) are made from,
  // directly or not. Not wanted for themselves, they are no garbage either: without
  // them those deltas would take as much room.
  std::unordered_set<uint64_t> HeldBases(const std::vector<bool>& wanted) const;
};

struct Inventory {
  std::vector<PackInventory> packs;
  // Where each object is first met: pack number, item number.
  std::unordered_map<ObjectKey, std::pair<uint32_t, uint32_t>> where;

  bool Has(const ObjectKey& key) const { return where.contains(key); }
};
// Damage is passed over; what cannot be read is not in it.
Result<Inventory> TakeInventory(Store& store);

// Packs that hold something and that the manifest does not name: of an interrupted GC,
// or because an older manifest came back.
Result<std::vector<PackId>> UnlistedPacks(Store& store);
// What a glance at the files shows, in words: packs that are missing, too short, no
// files, or in which not even the first bytes are a pack's; and a manifest that does
// not name the pack that was written to last.
Result<std::vector<std::string>> GlanceAtPacks(Store& store);
// Whether a batch is where it was and no sealed pack has become shorter: then whoever
// remembers what the store had at that batch may rely on it. No content is read.
Result<bool> StillHas(Store& store, const BatchPlace& place);

// The log, sorted by sequence number, each record once.
struct LogView {
  std::vector<LogRecord> records;
  std::unordered_set<RecordId> dropped;
  std::unordered_set<RecordId> released;
  // The newest purge's sequence number. (A drop takes back that something was given up
  // as lost, never that it was erased.)
  std::unordered_map<ObjectKey, uint64_t> purged;
  LogPosition position;
  uint64_t max_seq = 0;
  bool whole = true;  // no part of the log was unreadable
  // Of each record that was annotated: what wanted annotations say about it (by tag, of
  // meta by key), with the number of the last one that does.
  std::unordered_map<RecordId, std::map<std::string, uint64_t>> annotated;

  // Adds records to the others.
  void Take(std::vector<LogRecord> fresh);
  void NotePurges();
  // Counts `annotated` anew; Take() does.
  void NoteAnnotations();
  // A name, note, pin, health or meta value that a later annotation replaced: whoever
  // reads the log comes to the same without it.
  bool IsReplaced(const LogRecord& record, const Fields::Field& field) const;
  // The record without those, as a copy of it is kept: number, id and all else stay.
  LogRecord Kept(const LogRecord& record) const;
  // How much shorter that is; 0: nothing of it was replaced.
  uint64_t ReplacedBytes(const LogRecord& record) const;
  bool IsWanted(const LogRecord& record) const;
  // Wanted, and so is what it refers to.
  bool Holds(const LogRecord& record) const {
    return IsWanted(record) && !released.contains(record.id);
  }
};
// Reads on from view.position. `use` is held.
Status ReadOn(Store& store, LogView& view);

class Marker {
 public:
  Marker(Store& store, const Inventory& inventory)
      : store_(store), inventory_(inventory) {}

  // Follows everything wanted records of `view` lead to. May be called again after
  // ReadOn(); what was marked stays marked.
  Status Mark(const LogView& view);
  // The objects one record leads to, itself excluded; for accounting.
  Status MarkFrom(const LogRecord& record,
                  const std::unordered_map<ObjectKey, uint64_t>& purged);

  bool IsLive(const ObjectKey& key) const { return live_.contains(key); }
  const std::unordered_set<ObjectKey>& live() const { return live_; }

  struct Broken {
    ObjectKey key;
    std::string what;
  };
  // Objects that wanted records lead to and that are missing or unreadable.
  const std::vector<Broken>& broken() const { return broken_; }
  // parent -> child edges into broken objects' ancestors, when asked for.
  void KeepEdges() { keep_edges_ = true; }
  const std::unordered_map<ObjectKey, std::vector<ObjectKey>>& parents() const {
    return parents_;
  }

 private:
  Store& store_;
  const Inventory& inventory_;
  std::unordered_set<ObjectKey> live_;
  std::vector<Broken> broken_;
  std::unordered_set<RecordId> done_;
  bool keep_edges_ = false;
  std::unordered_map<ObjectKey, std::vector<ObjectKey>> parents_;
};

}  // namespace belay
