#include <algorithm>

#include "base/mutant.h"
#include "store/gc_internal.h"

namespace belay {

void Collector::Choose() {
  if (!salvage_.empty()) {
    victims_.clear();
    for (const PackInventory& pack : inventory_.packs)
      if (salvage_.contains(pack.listed.id)) victims_.insert(pack.listed.id);
    return;
  }
  victims_.clear();
  report_.reclaimable = report_.packs_left = 0;
  const std::unordered_set<ObjectId> dead_records = DeadRecords();
  const std::unordered_map<ObjectId, uint64_t> replaced = ReplacedText();
  std::unordered_set<ObjectKey> seen;
  std::vector<PackId> small;
  uint64_t small_bytes = 0;
  struct Worth {
    PackId id;
    uint64_t garbage, kept;
  };
  std::vector<Worth> found;
  const uint64_t small_size = store_.options().pack_target / 8;
  for (const PackInventory& pack : inventory_.packs) {
    uint64_t garbage = 0;
    std::vector<bool> wanted;
    for (const InventoryItem& item : pack.items)
      wanted.push_back(item.key.type == ObjectType::kLog
                           ? !dead_records.contains(item.key.id)
                           : seen.insert(item.key).second && marker_->IsLive(item.key));
    const auto held = pack.HeldBases(wanted);
    bool erasable = false;  // of that, bases too
    // An erasure that was interrupted is finished by whoever comes next, however
    // little there is to gain.
    bool purged = false;
    for (size_t i = 0; i < pack.items.size(); ++i) {
      erasable = erasable || !wanted[i];
      purged = purged || (!wanted[i] && log_.purged.contains(pack.items[i].key) &&
                          !BELAY_MUTANT("gc-leaves-purged"));
      if (!wanted[i] && !held.contains(pack.items[i].offset))
        garbage += pack.items[i].total_length();
      if (pack.items[i].key.type != ObjectType::kLog || !wanted[i]) continue;
      if (auto text = replaced.find(pack.items[i].key.id); text != replaced.end()) {
        erasable = true;
        purged = purged || log_.purged.contains(pack.items[i].key);
        garbage += text->second;
      }
    }
    report_.reclaimable += garbage;
    bool worth =
        purged || options_.everything
            ? erasable
            : garbage > 0 && static_cast<double>(garbage) >=
                                 options_.min_garbage * static_cast<double>(pack.end);
    if (worth)
      found.push_back(
          {pack.listed.id, garbage, pack.end - garbage + MadeWhole(pack, wanted)});
    else if (pack.listed.sealed && pack.end < small_size) {
      small.push_back(pack.listed.id);
      small_bytes += pack.end;
    }
  }
  std::ranges::stable_sort(found, [](const Worth& a, const Worth& b) {
    auto gain = [](const Worth& w) {
      return static_cast<double>(w.garbage) / static_cast<double>(w.kept + 1);
    };
    return gain(a) > gain(b);
  });
  uint64_t copies = 0;
  for (const Worth& pack : found) {
    if (pack.kept > options_.room - copies) continue;
    copies += pack.kept;
    victims_.insert(pack.id);
  }
  if (victims_.empty() && !found.empty()) {
    // Without any copy nothing is ever given back.
    const Worth& least = *std::ranges::min_element(found, {}, &Worth::kept);
    copies = least.kept;
    victims_.insert(least.id);
  }
  report_.packs_left = found.size() - victims_.size();
  if (report_.packs_left > 0) return;  // the next pass has room for small ones
  if (small_bytes > options_.room - std::min(copies, options_.room)) return;
  if (small.size() >= 4 || (small.size() >= 2 && !victims_.empty()))
    victims_.insert(small.begin(), small.end());
}

uint64_t Collector::MadeWhole(const PackInventory& pack,
                              const std::vector<bool>& wanted) {
  uint64_t more = 0;
  std::unordered_map<uint64_t, std::pair<bool, uint64_t>> seen;  // wanted, whole
  for (size_t i = 0; i < pack.items.size(); ++i) {
    const InventoryItem& item = pack.items[i];
    uint64_t whole = item.total_length();
    if (auto base = seen.find(item.base); item.base != 0 && base != seen.end()) {
      whole = base->second.second;
      if (wanted[i] && !base->second.first) more += whole;
    }
    seen.emplace(item.offset, std::make_pair(bool{wanted[i]}, whole));
  }
  return more;
}

std::unordered_set<ObjectId> Collector::DeadRecords() const {
  std::unordered_set<ObjectId> dead;
  for (const LogRecord& r : log_.records) {
    if (log_.IsWanted(r)) continue;
    for (const ObjectId& id : StoredIds(r)) dead.insert(id);
  }
  return dead;
}

std::unordered_map<ObjectId, uint64_t> Collector::ReplacedText() const {
  std::unordered_map<ObjectId, uint64_t> found;
  for (const LogRecord& r : log_.records) {
    if (!log_.IsWanted(r)) continue;
    const uint64_t less = log_.ReplacedBytes(r);
    if (less == 0) continue;
    for (const ObjectId& id : StoredIds(r)) found.emplace(id, less);
  }
  return found;
}

std::array<ObjectId, 2> Collector::StoredIds(LogRecord record) {
  ObjectId explicit_seq = Sha256::Of(EncodeLogRecord(record));
  record.seq = 0;
  return {Sha256::Of(EncodeLogRecord(record)), explicit_seq};
}

}  // namespace belay
