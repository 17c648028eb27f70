#pragma once

// The collector's parts: gc.cc looks, locks and swaps; gc_choose.cc says which packs
// are written anew; gc_copy.cc copies what is wanted of them.

#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/appender.h"
#include "store/gc.h"
#include "store/inventory.h"

namespace belay {

// Writes copies into packs of its own, which nobody knows until the manifest names
// them.
class CopyTarget {
 public:
  explicit CopyTarget(Store& store)
      : store_(store), store_id_(store.manifest().store) {}

  ~CopyTarget();

  struct Place {
    size_t pack = 0;
    uint64_t offset = 0;
    uint8_t chain = 0;  // RecordHeader::chain
  };
  // The number of the pack that the next object goes to.
  Result<size_t> NextPack();
  Result<Place> AddObject(const RecordHeader& header, ByteSpan stored);
  // Records keep the sequence number they were given.
  void AddRecord(const LogRecord& record) { logs_.push_back(record); }

  // Everything written and flushed, the directory too.
  Status Finish();

  std::vector<Manifest::Pack> Listed() const;
  void Published();

 private:
  struct Finished {
    PackFile file;
    uint64_t end = kPackHeaderSize;
    std::vector<IndexEntry> entries;
  };

  Status Write();

  Store& store_;
  StoreId store_id_;
  std::vector<Finished> packs_;
  PreparedBatch batch_;
  std::vector<LogRecord> logs_;
  bool published_ = false;
};

class Collector {
 public:
  using Numbered = std::vector<std::pair<uint64_t, RecordId>>;
  Collector(Store& store, const GcOptions& options,
            const std::vector<PackId>& salvage = {}, const Numbered& must_be_read = {})
      : store_(store),
        options_(options),
        salvage_(salvage.begin(), salvage.end()),
        must_be_read_(must_be_read) {}

  const std::vector<std::string>& set_aside() const { return set_aside_; }

  Result<GcReport> Run();

 private:
  // A pack that the manifest does not name may be the only good copy of something, when
  // the manifest is an old one or a listed pack went bad. It goes only when every byte
  // of the rest is right. (Such packs are rare: an operation was interrupted.)
  Status CheckLeftovers();

  // Files that no manifest names: nobody creates one without holding `append`. And what
  // stands behind the end of packs: what is said there would be missed once the record
  // is gone that took it away.
  Status RemoveLeftovers();

  // Certain under `append` only: the manifest is replaced and packs are made under it.
  Result<std::vector<std::pair<const Fd*, Name>>> Leftovers();

  // What there is and what is wanted, as of now. Packs stay while `use` is held; it is
  // let go afterwards, so writers are never kept waiting by a long mark.
  Status Look();

  Status RefuseDamage();

  // For SalvagePacks(): what is wanted must be readable somewhere.
  Status RefuseLoss();
  bool ReadsWell(const ObjectKey& key);

  uint64_t PackBytes() const;

  // Packs worth rewriting: too much garbage, or small ones that can become one.
  void Choose();

  // How much longer copies are because deltas whose base is unwanted become whole: each
  // takes about what the record takes that its chain goes back to.
  static uint64_t MadeWhole(const PackInventory& pack, const std::vector<bool>& wanted);

  // The ids under which unwanted records lie in packs: a record's hash is taken over
  // its encoding, whose sequence number is implied (0) or, once copied, explicit.
  std::unordered_set<ObjectId> DeadRecords() const;
  // The same of wanted records with something that was replaced: how much shorter they
  // will be.
  std::unordered_map<ObjectId, uint64_t> ReplacedText() const;
  static std::array<ObjectId, 2> StoredIds(LogRecord record);

  bool OpenPackIsVictim();

  // Copies what is wanted of the victims and nowhere else. May run twice: the second
  // time for what became wanted meanwhile.
  Status CopyWanted(CopyTarget& target);

  // What is wanted and was not found whole where the walk led: by whatever way it can
  // still be read.
  Status CopyHidden(CopyTarget& target, const ObjectKey& key);

  Status CopyWhole(CopyTarget& target, const ObjectKey& key, ByteSpan raw);

  // A delta stays one when its base went to the same pack before it; otherwise it
  // becomes whole, so that nothing that is unwanted is kept for its sake.
  Status CopyDelta(CopyTarget& target, const PackInventory& from, RecordHeader header,
                   ByteSpan stored, ByteSpan raw);

  bool IsReadable(const PackInventory& pack, uint64_t offset);

  Status CopyRecords(CopyTarget& target);

  // The gate keeps writers out while we wait for those inside, so it is held for short
  // turns only: a long reader must not become everybody's wait.
  Status WaitForUse(HeldLock& gate, HeldLock& use);

  // Which packs the next manifest will not name, durable before that. Whoever is killed
  // from here on leaves no tail that tells of a missing pack.
  Status NoteReplaced(const Manifest& manifest, uint64_t next_generation);

  Status Swap(CopyTarget& target);

  Store& store_;
  const GcOptions& options_;
  const std::unordered_set<PackId> salvage_;
  const Numbered must_be_read_;
  std::vector<std::string> set_aside_;
  GcReport report_;
  std::vector<PackId> spared_;
  std::map<PackId, uint64_t> longer_;  // packs that go on behind their end: how far
  Inventory inventory_;
  LogView log_;
  std::unique_ptr<Marker> marker_;
  std::unordered_set<PackId> victims_;
  std::unordered_map<ObjectKey, CopyTarget::Place> copied_;
  std::set<std::pair<uint64_t, RecordId>> copied_records_;
  std::unordered_set<RecordId> copied_ids_;
};

}  // namespace belay
