// Getting the bytes out of the files of the store, and looking whether they are.

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "base/mutant.h"
#include "core/space.h"
#include "history/purge_internal.h"
#include "store/catalog.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/unlisted.h"
#include "store/usage.h"

namespace belay {

namespace {

// What of the store a purge asked for and did not get.
struct Remains {
  uint64_t objects = 0;  // in packs, wanted by nobody
  uint64_t again = 0;    // of this purge, and wanted by records newer than it
  uint64_t records = 0;
  uint64_t files = 0;  // packs that no manifest names
  bool none() const { return objects == 0 && records == 0 && files == 0; }
};

// By every record there is. All that was ever erased counts, so that what was
// interrupted is finished too.
Result<Remains> LookForRemains(Store& store, const PurgePlan& plan) {
  Remains remains;
  BELAY_TRY(HeldLock use, store.HoldForReading());
  LogView log;
  BELAY_OK(ReadOn(store, log));
  BELAY_TRY(Inventory inventory, TakeInventory(store));
  // What cannot be read now may hold what is looked for.
  bool unread = !log.whole;
  for (const PackInventory& pack : inventory.packs) unread |= pack.unread;
  if (unread && !BELAY_MUTANT("purge-trusts-unread"))
    return Error(Errc::kCorrupt, "a part of the store cannot be read now")
        .WithHint("see what is hit: belay verify; then put it right: belay repair");
  std::unique_ptr<Marker> marker;
  std::unordered_set<ObjectId> records;
  for (const auto& [key, seq] : log.purged) {
    if (key.type == ObjectType::kLog) records.insert(key.id);
    if (!inventory.Has(key)) continue;
    if (!marker) {
      marker = std::make_unique<Marker>(store, inventory);
      BELAY_OK(marker->Mark(log));
    }
    // What came back after an earlier purge is somebody's own doing.
    if (!marker->IsLive(key))
      ++remains.objects;
    else if (std::ranges::binary_search(plan.objects, key))
      ++remains.again;
  }
  for (const PackInventory& pack : inventory.packs)
    for (const InventoryItem& item : pack.items)
      if (item.key.type == ObjectType::kLog && records.contains(item.key.id))
        ++remains.records;
  const std::unordered_set<RecordId> ids(plan.records.begin(), plan.records.end());
  for (const LogRecord& record : log.records)
    remains.records += ids.contains(record.id);
  BELAY_TRY(auto unlisted, UnlistedPacks(store));
  BELAY_TRY(Unlisted others, LookAtUnlisted(store));
  remains.files = unlisted.size() - others.foreign.size();
  return remains;
}

// Files that are none of the store's any more, and yet in it; and packs that go on
// behind their end.
Result<std::vector<std::string>> WhatMayHoldMore(Store& store) {
  BELAY_TRY(Allocated allocated, AllocatedBytes(store));
  std::vector<std::string> names = std::move(allocated.aside_paths);
  // A journal knows names and hashes, and no content.
  std::erase_if(names, [](const std::string& n) { return n.starts_with("journal/"); });
  BELAY_OK(store.Refresh());
  for (const Manifest::Pack& pack : store.manifest().packs) {
    const Name name = PackFile::FileName(pack.id);
    auto stat = store.fs().StatAt(store.packs_dir(), name);
    if (!stat.ok()) return std::move(stat).error();
    if (pack.sealed && stat->size > *pack.sealed)
      names.push_back("packs/" + name.bytes());
  }
  BELAY_TRY(Unlisted others, LookAtUnlisted(store));
  for (const PackId& id : others.foreign)
    names.push_back("packs/" + PackFile::FileName(id).bytes());
  std::ranges::sort(names);
  return names;
}

Error NotYet(Error error) {
  error.hint = "it is not erased yet: purge it again" +
               (error.hint.empty() ? std::string() : "; " + error.hint);
  return error;
}

}  // namespace

Status Erase(Store& store, const PurgeRequest& request, PurgeReport& report) {
  GcOptions options;
  options.everything = true;
  options.progress = request.progress;
  const int64_t deadline =
      store.clock().SteadyNanos() + request.lock_wait_ms * 1'000'000;
  for (;;) {
    auto collected = request.settings != nullptr
                         ? CollectWithinCap(store, *request.settings, options)
                         : CollectGarbage(store, options);
    const bool late = store.clock().SteadyNanos() >= deadline;
    if (collected.ok()) {
      if (collected->bytes_before > collected->bytes_after)
        report.freed += collected->bytes_before - collected->bytes_after;
      if (!collected->spared.empty())
        return NotYet(Error(Errc::kCorrupt, "packs/" + collected->spared.front() +
                                                ", which the manifest does not name, "
                                                "may hold more of it")
                          .WithHint("belay repair takes back what is in it; then "
                                    "remove it, or move it elsewhere"));
      // A pack that others began meanwhile is left by one round and taken by the next.
      auto remains = LookForRemains(store, report.plan);
      if (!remains.ok()) return NotYet(std::move(remains).error());
      report.again = remains->again;
      if (remains->none() || BELAY_MUTANT("purge-looks-once")) break;
      if (late)
        return NotYet(
            Error(Errc::kBusy, "others keep the store from being cleaned up"));
    } else if ((collected.error().code != Errc::kBusy &&
                collected.error().code != Errc::kConflict) ||
               late) {
      return NotYet(std::move(collected).error());
    }
    store.clock().SleepNanos(50'000'000);
  }
  // What a collection could not remove at once went with a later one, which does not
  // wait for the disk: gone is what no power cut brings back.
  if (Status durable = store.fs().Sync(store.packs_dir()); !durable.ok())
    return NotYet(std::move(durable).error());
  if (BELAY_MUTANT("purge-keeps-catalogue")) return Ok();
  // Words of dropped records stay in the index of a full text until it is built anew,
  // which a question does after a collection: the log is another one.
  auto catalog = Catalog::Open(store);
  if (!catalog.ok()) return NotYet(std::move(catalog).error());
  // One that was built from a part of the log keeps what the old one had of the rest.
  auto whole = (*catalog)->LogIsWhole();
  if (!whole.ok()) return NotYet(std::move(whole).error());
  if (!*whole)
    return NotYet(Error(Errc::kCorrupt, "a part of the log cannot be read now"));
  auto more = WhatMayHoldMore(store);
  if (!more.ok()) return NotYet(std::move(more).error());
  report.stays = std::move(*more);
  return Ok();
}

}  // namespace belay
