#include "store/gc.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "store/found_again.h"
#include "store/gc_internal.h"
#include "store/private.h"
#include "store/store_files.h"
#include "store/stray_pack.h"
#include "store/unlisted.h"
#include "store/verify.h"

namespace belay {

Result<GcReport> Collector::Run() {
  BELAY_TRY(FsInfo info, store_.fs().Info(store_.dir()));
  if (info.read_only)
    return Error(Errc::kRefused, EROFS,
                 "the disk of the store " + store_.path().bytes() +
                     " is read-only, so nothing can be given back")
        .WithHint("verify, du and status work as they are");
  // Another one at work will do as well: no need to queue.
  BELAY_TRY(auto collector,
            store_.locks().TryAcquire(StoreLock::kCollector, LockMode::kExclusive));
  if (!collector)
    return Error(Errc::kBusy, "another belay process is cleaning up the store")
        .WithHint("try again when it is done");
  BELAY_OK(Look());  // refuses damage before anything goes
  if (!options_.dry_run && salvage_.empty()) {
    BELAY_OK(CheckLeftovers());
    BELAY_OK(RemoveLeftovers());
  }
  report_.packs_before = report_.packs_after = inventory_.packs.size();
  report_.bytes_before = report_.bytes_after = PackBytes();
  Choose();
  if (options_.dry_run || victims_.empty()) return report_;

  if (OpenPackIsVictim()) {
    // Sealed now, it cannot grow; what it grew by meanwhile is looked at again.
    BELAY_TRY(HeldLock append,
              store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    BELAY_OK(Appender(store_).SealOpenPack());
    append.Release();
    BELAY_OK(Look());
    Choose();
    // The pack that others have begun since then grows: it stays this time.
    if (const PackInventory& last = inventory_.packs.back(); !last.listed.sealed)
      victims_.erase(last.listed.id);
    if (victims_.empty()) return report_;
  }
  CopyTarget target(store_);
  BELAY_OK(CopyWanted(target));
  BELAY_OK(target.Finish());
  if (options_.progress) options_.progress(1, 1);
  BELAY_OK(Swap(target));
  return report_;
}

Status Collector::CheckLeftovers() {
  BELAY_TRY(auto unlisted, UnlistedPacks(store_));
  BELAY_TRY(longer_, LongerPacks(store_));
  if ((unlisted.empty() && longer_.empty()) || BELAY_MUTANT("gc-trust-leftovers"))
    return Ok();
  VerifyOptions every_byte;
  every_byte.read_data = true;
  BELAY_TRY(VerifyReport report, VerifyStore(store_, every_byte));
  if (report.clean()) {
    BELAY_TRY(HeldLock use, store_.HoldForReading());
    if (!BELAY_MUTANT("gc-removes-given-up")) {
      BELAY_TRY(spared_, PacksWithGivenUp(store_));
    }
    BELAY_TRY(Unlisted others, LookAtUnlisted(store_));
    // What holds records that the log lacks made verify say damage. Whole they are not,
    // so nobody knows what else was in them.
    for (const PackId& id : others.kept)
      if (std::ranges::find(spared_, id) == spared_.end()) spared_.push_back(id);
    for (const PackId& id : spared_)
      report_.spared.push_back(PackFile::FileName(id).bytes());
    if (!BELAY_MUTANT("gc-removes-foreign")) {
      for (const PackId& id : others.foreign)
        report_.foreign.push_back(PackFile::FileName(id).bytes());
      spared_.insert(spared_.end(), others.foreign.begin(), others.foreign.end());
    }
    return Ok();
  }
  return Error(Errc::kCorrupt, "the store is damaged (" + report.damage.front() +
                                   "), and there are packs that may hold what is "
                                   "missing")
      .WithHint("run: belay repair; nothing was removed");
}

Status Collector::RemoveLeftovers() {
  BELAY_TRY(auto seen, Leftovers());
  if (seen.empty() && longer_.empty()) return Ok();  // do not stand in a writer's way
  BELAY_TRY(HeldLock append,
            store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
  BELAY_TRY(auto leftovers, Leftovers());
  Fs& fs = store_.fs();
  // Whoever wrote this manifest may have been killed before its name was flushed. The
  // one before it may name what goes now, so it must not come back.
  if ((!leftovers.empty() || !longer_.empty()) &&
      !BELAY_MUTANT("gc-trust-manifest-name"))
    BELAY_OK(fs.Sync(store_.dir()));
  for (const auto& [dir, name] : leftovers) {
    bool kept = false;
    if (!name.bytes().ends_with(".pack")) {
      BELAY_TRY(kept, KeepPack(fs, *dir, name));
    }
    if (!kept) BELAY_OK(fs.Unlink(*dir, name));
    ++report_.leftovers_removed;
  }
  for (const Manifest::Pack& pack : store_.manifest().packs) {
    const auto longer = longer_.find(pack.id);
    if (longer == longer_.end() || std::ranges::find(spared_, pack.id) != spared_.end())
      continue;
    BELAY_TRY(const bool cut, CutAtItsEnd(store_, pack, longer->second));
    (void)cut;  // what cannot be read whole stays, as with packs that are not listed
  }
  return Ok();
}

Result<std::vector<std::pair<const Fd*, Name>>> Collector::Leftovers() {
  std::vector<std::pair<const Fd*, Name>> found;
  BELAY_TRY(auto home, store_.fs().List(store_.dir()));
  BELAY_TRY(auto entries, store_.fs().List(store_.packs_dir()));
  BELAY_OK(store_.Refresh());
  const Manifest manifest = store_.manifest();
  for (const DirEntry& e : home)
    if ((e.name.starts_with("manifest.") || e.name.starts_with("replaced.")) &&
        e.name.ends_with(".tmp"))
      found.emplace_back(&store_.dir(), Name::Literal(e.name));
  for (const DirEntry& e : entries) {
    std::string_view name = e.name;
    size_t dot = name.find('.');
    auto id = Id128::FromText(name.substr(0, dot));
    if (!id || dot == std::string_view::npos) continue;
    std::string_view ending = name.substr(dot);
    bool ours = ending == ".pack" || ending == ".idx" || ending == ".idx.new";
    if (!ours || (manifest.Find(PackId(*id)) && ending != ".idx.new")) continue;
    if (std::ranges::find(spared_, PackId(*id)) != spared_.end()) continue;
    // Only files can be ours.
    if (e.type && *e.type != FileType::kRegular) continue;
    found.emplace_back(&store_.packs_dir(), Name::Literal(name));
  }
  // Indexes before their packs, as in Swap().
  std::stable_partition(found.begin(), found.end(), [](const auto& file) {
    return !file.second.bytes().ends_with(".pack");
  });
  return found;
}

Status Collector::Look() {
  BELAY_TRY(HeldLock use, store_.HoldForReading());
  ExpectRemembered(store_, store_.open_pack());
  // The log first: what is published meanwhile is then more than it needs, not less,
  // and the second look under the lock marks it.
  log_ = LogView();
  BELAY_OK(ReadOn(store_, log_));
  BELAY_TRY(inventory_, TakeInventory(store_));
  marker_ = std::make_unique<Marker>(store_, inventory_);
  // Of what a damaged header hides, an index may know the place.
  if (!salvage_.empty()) marker_->KeepEdges();
  BELAY_OK(marker_->Mark(log_));
  return RefuseDamage();
}

Status Collector::RefuseDamage() {
  if (!salvage_.empty()) return RefuseLoss();
  // A record that cannot be read may want anything: nothing can be called unwanted.
  std::string why;
  if (!log_.whole) why = "a part of its log cannot be read";
  for (const PackInventory& pack : inventory_.packs)
    if (!pack.readable)
      why = PackFile::FileName(pack.listed.id).bytes() + " cannot be read";
  if (!marker_->broken().empty()) why = marker_->broken().front().what;
  if (why.empty()) return Ok();
  return Error(Errc::kCorrupt, "the store is damaged (" + why + ")")
      .WithHint(
          "nothing was removed; belay verify --read-data names the checkpoints, "
          "belay repair puts right what it can");
}

Status Collector::RefuseLoss() {
  for (const PackInventory& pack : inventory_.packs)
    if (!pack.readable && !salvage_.contains(pack.listed.id))
      return Error(Errc::kCorrupt,
                   PackFile::FileName(pack.listed.id).bytes() + " cannot be read");
  for (const Marker::Broken& broken : marker_->broken())
    if (!ReadsWell(broken.key)) return Error(Errc::kCorrupt, broken.what);
  std::set<std::pair<uint64_t, RecordId>> read;
  for (const LogRecord& r : log_.records) read.emplace(r.seq, r.id);
  for (const auto& record : must_be_read_)
    if (!read.contains(record) && !BELAY_MUTANT("salvage-what-it-finds"))
      return Error(Errc::kCorrupt,
                   "a record that could be read before cannot be read now");
  return Ok();
}

bool Collector::ReadsWell(const ObjectKey& key) {
  if (key.type != ObjectType::kChunks) return store_.Get(key).ok();
  return store_.ReadContent(key.id, [](ByteSpan) -> Status { return Ok(); }).ok();
}

uint64_t Collector::PackBytes() const {
  uint64_t total = 0;
  for (const PackInventory& p : inventory_.packs) total += p.end;
  return total;
}

bool Collector::OpenPackIsVictim() {
  const Manifest::Pack* open =
      inventory_.packs.empty() || inventory_.packs.back().listed.sealed
          ? nullptr
          : &inventory_.packs.back().listed;
  return open && victims_.contains(open->id);
}

Status Collector::WaitForUse(HeldLock& gate, HeldLock& use) {
  constexpr int64_t kTurnMs = 300;
  const int64_t deadline =
      store_.clock().SteadyNanos() + store_.options().lock_wait_ms * 1'000'000;
  for (;;) {
    BELAY_TRY(gate, store_.locks().Acquire(StoreLock::kGate, LockMode::kExclusive));
    auto got = store_.locks().Acquire(StoreLock::kUse, LockMode::kExclusive, kTurnMs);
    if (got.ok()) {
      use = std::move(*got);
      return Ok();
    }
    gate.Release();
    if (got.error().code != Errc::kBusy || store_.clock().SteadyNanos() >= deadline)
      return std::move(got).error();
    store_.clock().SleepNanos(kTurnMs * 1'000'000);
  }
}

Status Collector::NoteReplaced(const Manifest& manifest, uint64_t next_generation) {
  Fs& fs = store_.fs();
  // A collection that was killed left a tail of a pack that it replaced. What is
  // written now says so no longer, or not before the next manifest: nobody must meet
  // both. Not unlinked: whoever holds it open goes on writing to it.
  auto tail = store_.AnyTail();
  if (tail.ok() && *tail && !manifest.Find((*tail)->pack) &&
      IsOfReplaced(fs, store_.dir(), manifest.generation, **tail) &&
      !BELAY_MUTANT("gc-forgets-what-the-tail-names")) {
    BELAY_TRY(Fd file, fs.Open(store_.dir(), TailName(), OpenMode::ReadWrite()));
    BELAY_OK(fs.Truncate(file, 0));
    BELAY_OK(fs.SyncData(file));
  }
  // A pack that is not listed any more, and that nobody is known to have replaced, may
  // be missed. (A damaged one is: what could not be read of it is given up.)
  ReplacedMap replaced;
  for (const PackId& id : victims_) {
    const Manifest::Pack* listed = manifest.Find(id);
    if (!salvage_.empty() || listed == nullptr) continue;
    BELAY_TRY(replaced[id], ToReplace(store_, *listed));
  }
  const ReplacedMap before = ReplacedPacks(fs, store_.dir(), manifest.generation);
  for (const auto& [id, what] : before) {
    if (manifest.Find(id)) continue;
    const auto at = replaced.emplace(id, what).first;
    if (!fs.StatAt(store_.packs_dir(), PackFile::FileName(id)).ok())
      at->second.gone = 1;
  }
  // Those that are gone are told for a while: a tail that is put back may be about one.
  for (auto [id, what] :
       ReplacedPacks(fs, store_.dir(), manifest.generation, Unnamed::kAll)) {
    if (what.gone++ != 0 && !manifest.Find(id)) replaced.emplace(id, what);
  }
  if (BELAY_MUTANT("gone-is-forgotten"))
    std::erase_if(replaced, [](const auto& pack) { return pack.second.gone != 0; });
  std::set<PackId> given_up;
  if (!salvage_.empty()) given_up.insert(victims_.begin(), victims_.end());
  if (BELAY_MUTANT("gc-notes-no-replaced")) return Ok();
  return WriteReplaced(fs, store_.dir(), next_generation, replaced, given_up);
}

Status Collector::Swap(CopyTarget& target) {
  HeldLock gate;
  HeldLock use;
  if (!BELAY_MUTANT("gc-without-lock")) {
    BELAY_OK(WaitForUse(gate, use));
  }
  BELAY_TRY(HeldLock append,
            store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
  if (!BELAY_MUTANT("gc-skip-second-mark")) {
    // What was published while we copied may need what we were about to leave.
    size_t known = log_.records.size();
    BELAY_OK(ReadOn(store_, log_));
    // Also when what is new could not be read.
    if (!BELAY_MUTANT("gc-trust-second-look")) BELAY_OK(RefuseDamage());
    if (log_.records.size() != known) {
      BELAY_TRY(Inventory now, TakeInventory(store_));
      inventory_ = std::move(now);
      BELAY_OK(marker_->Mark(log_));
      BELAY_OK(RefuseDamage());
      report_.objects_removed = report_.records_removed = 0;
      BELAY_OK(CopyWanted(target));
      BELAY_OK(target.Finish());
    }
  }
  BELAY_TRY(Manifest manifest, store_.LoadManifest());
  if (const Manifest::Pack* last = manifest.Find(log_.position.pack);
      last && last->sealed && log_.position.offset > *last->sealed)
    return Error(Errc::kConflict,
                 "a record that was being written while cleaning up was not kept")
        .WithHint("nothing was removed; try again");
  Manifest next;
  next.store = manifest.store;
  next.generation = manifest.generation + 1;
  next.next_seq = std::max(manifest.next_seq, log_.max_seq + 1);
  next.packs = target.Listed();
  for (const Manifest::Pack& p : manifest.packs)
    if (!victims_.contains(p.id)) next.packs.push_back(p);

  // The index first: one without its pack tells of a pack that is missing.
  auto unlink_victims = [&] {
    for (const PackId& id : victims_) {
      auto kept = KeepPack(store_.fs(), store_.packs_dir(), PackIndex::FileName(id));
      if (kept.ok() && !*kept)
        (void)store_.fs().Unlink(store_.packs_dir(), PackIndex::FileName(id));
      if (salvage_.empty())
        (void)store_.fs().Unlink(store_.packs_dir(), PackFile::FileName(id));
      else if (auto to =
                   MoveAside(store_.fs(), store_.packs_dir(), PackFile::FileName(id));
               to.ok())
        set_aside_.push_back(to->bytes());
    }
  };
  BELAY_OK(NoteReplaced(manifest, next.generation));
  if (BELAY_MUTANT("gc-unlink-before-manifest")) unlink_victims();
  Status listed = store_.WriteManifest(next);
  if (!listed.ok()) {
    // The rename may have happened: then the new packs are the store's.
    auto now = store_.LoadManifest();
    if (!now.ok() || now->generation == next.generation) target.Published();
    return listed;
  }
  target.Published();
  unlink_victims();
  // It would name a pack that is missed by whoever has no manifest.
  if (auto tail = store_.AnyTail(); tail.ok() && *tail && !next.Find((*tail)->pack))
    (void)store_.fs().Unlink(store_.dir(), TailName());
  BELAY_OK(store_.fs().Sync(store_.packs_dir()));
  BELAY_OK(store_.Refresh());
  report_.generation_changed = true;
  report_.packs_after = next.packs.size();
  report_.bytes_after = 0;
  for (const Manifest::Pack& p : next.packs) {
    auto stat = store_.fs().StatAt(store_.packs_dir(), PackFile::FileName(p.id));
    if (stat.ok()) report_.bytes_after += stat->size;
  }
  return Ok();
}

Result<GcReport> CollectGarbage(Store& store, const GcOptions& options) {
  return Collector(store, options).Run();
}

Result<SalvageReport> SalvagePacks(
    Store& store, const std::vector<PackId>& packs,
    const std::vector<std::pair<uint64_t, RecordId>>& must_be_read) {
  SalvageReport report;
  if (packs.empty()) return report;
  const GcOptions options;
  Collector collector(store, options, packs, must_be_read);
  BELAY_TRY(GcReport collected, collector.Run());
  (void)collected;
  report.set_aside = collector.set_aside();
  return report;
}

}  // namespace belay
