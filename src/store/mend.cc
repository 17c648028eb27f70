#include "store/mend.h"

#include <algorithm>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/gc.h"
#include "store/lost_records.h"
#include "store/stray_pack.h"

namespace belay {

namespace {

class Mender {
 public:
  Mender(Store& store, const std::vector<RememberedRecord>& remembered,
         MendReport& report,
         const std::function<void(uint64_t done, uint64_t total)>& progress)
      : store_(store), report_(report) {
    options_.read_data = true;
    options_.remembered = remembered;
    options_.progress = progress;
  }

  Status Run(bool accept_loss) {
    BELAY_TRY(report_.left, VerifyStore(store_, options_));
    if (!report_.left.lost_records.empty()) {
      BELAY_OK(BringBack(store_, report_.left.lost_records));
      for (const LogRecord& r : report_.left.lost_records)
        report_.done.push_back("brought back from the catalogue: " + RecordTitle(r));
      BELAY_TRY(report_.left, VerifyStore(store_, options_));
    }
    if (report_.left.clean()) return Ok();
    if (!report_.left.nothing_lost()) BELAY_OK(ForgetCaches());
    if (report_.left.nothing_lost()) {
      Status replaced = Replace();
      // It was worth a try; the store is as it was, and verify says so.
      if (!replaced.ok())
        report_.done.push_back("damaged packs could not be replaced by whole copies: " +
                               replaced.error().what);
    } else if (accept_loss || BELAY_MUTANT("repair-gives-up-unasked")) {
      BELAY_OK(WriteDownTheLoss());
      BELAY_OK(Replace());
    } else {
      BELAY_OK(HideTheLost());
      return Ok();
    }
    BELAY_TRY(report_.left, VerifyStore(store_, options_));
    return Ok();
  }

 private:
  Status Replace() {
    BELAY_TRY(SalvageReport salvaged, SalvagePacks(store_, report_.left.damaged_packs,
                                                   report_.left.read_records));
    if (!report_.left.damaged_packs.empty())
      report_.done.push_back(
          "replaced " + Counted(report_.left.damaged_packs.size(), "damaged pack") +
          " by copies of what can be read");
    for (const std::string& name : salvaged.set_aside)
      report_.done.push_back("the damaged file is kept as packs/" + name +
                             "; remove it when you like");
    return Ok();
  }

  // A stat cache says of a file that did not change that the store has it. Without one
  // the next checkpoint reads every file, and stores again what the store has not.
  Status ForgetCaches() {
    if (BELAY_MUTANT("repair-trusts-caches")) return Ok();
    auto cache =
        store_.fs().Open(store_.dir(), Name::Literal("cache"), OpenMode::Directory());
    if (!cache.ok()) {
      if (cache.error().code == Errc::kNotFound) return Ok();
      return std::move(cache).error();
    }
    BELAY_TRY(auto entries, store_.fs().List(*cache));
    for (const DirEntry& e : entries)
      if (e.name.ends_with(".scan")) {
        const Name name = Name::Literal(e.name);
        BELAY_TRY(const bool kept, KeepPack(store_.fs(), *cache, name));
        if (!kept) BELAY_OK(store_.fs().Unlink(*cache, name));
      }
    return Ok();
  }

  // An object that cannot be read stays where it is, but no writer may find it and rely
  // on it: stored again, it heals every checkpoint that needs it. A reader finds it all
  // the same, by looking at every record, and calls it damaged.
  Status HideTheLost() {
    if (BELAY_MUTANT("repair-indexes-the-lost")) return Ok();
    const std::unordered_set<ObjectKey> lost(report_.left.lost_objects.begin(),
                                             report_.left.lost_objects.end());
    BELAY_TRY(HeldLock append,
              store_.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    const Manifest manifest = store_.manifest();
    for (const PackId& id : report_.left.damaged_packs) {
      auto file = PackFile::Open(store_.fs(), store_.packs_dir(), id, manifest.store,
                                 OpenMode::Read());
      if (!file.ok()) continue;
      BELAY_TRY(PackIndex index, PackIndex::Load(store_.fs(), store_.packs_dir(), id));
      BELAY_TRY(auto entries, ObjectsIn(*file, kPackHeaderSize, index.covered()));
      std::erase_if(entries, [&](const IndexEntry& e) { return lost.contains(e.key); });
      BELAY_OK(PackIndex::WriteWhole(store_.fs(), store_.packs_dir(), id, entries,
                                     index.covered()));
    }
    return Ok();
  }

  // First: once the packs are replaced nobody can tell any more what was missing.
  Status WriteDownTheLoss() {
    const VerifyReport& left = report_.left;
    std::vector<std::string> given_up;
    for (const HitCheckpoint& hit : left.hit) {
      std::string line = "of " + RecordTitle(ToRecord(hit.checkpoint)) + ":";
      for (const std::string& path : hit.paths)
        line += path == "." ? " all of it" : " " + EscapeForDisplay(path);
      if (hit.more_paths > 0)
        line += " and " + std::to_string(hit.more_paths) + " more";
      given_up.push_back(std::move(line));
    }
    if (left.unknown_records > 0)
      given_up.push_back(UnknownRecordsText(left) +
                         " of the log, of which nobody knows anything");
    if (left.lost_objects.empty()) {
      report_.given_up = std::move(given_up);
      return Ok();
    }
    std::vector<ObjectKey> keys = left.lost_objects;
    for (const ObjectKey& key : left.lost_objects)  // content is asked for as a blob
      if (key.type == ObjectType::kChunks) keys.push_back({ObjectType::kBlob, key.id});
    BELAY_TRY(auto writer, store_.Begin());
    writer->Add(MakePurge(RecordId(store_.random().NewId()),
                          store_.clock().WallMillis(), keys,
                          "unreadable; given up by belay repair --accept-loss"));
    if (!BELAY_MUTANT("loss-leaves-no-mark")) MarkTheHit(*writer);
    BELAY_TRY(auto published, writer->Commit());
    (void)published;
    report_.given_up = std::move(given_up);
    return Ok();
  }

  // So that a list says it, without looking for every file's content.
  void MarkTheHit(BatchWriter& writer) {
    for (const HitCheckpoint& hit : report_.left.hit) {
      const Checkpoint& c = hit.checkpoint;
      uint64_t paths = hit.paths.size() + hit.more_paths;
      if (paths == 0) continue;
      if (hit.paths[0] == ".") paths = std::max<uint64_t>(c.files, 1);
      LogRecord mark;
      mark.kind = RecordKind::kAnnotation;
      mark.id = RecordId(store_.random().NewId());
      mark.root = c.root;
      mark.made_ms = store_.clock().WallMillis();
      mark.fields.Add(kAnnotationTarget, c.id.span());
      mark.fields.AddNumber(kAnnotationLost, paths);
      writer.Add(std::move(mark));
    }
  }

  Store& store_;
  VerifyOptions options_;
  MendReport& report_;
};

}  // namespace

Status MendStore(Store& store, const std::vector<RememberedRecord>& remembered,
                 bool accept_loss, MendReport& report,
                 const std::function<void(uint64_t done, uint64_t total)>& progress) {
  return Mender(store, remembered, report, progress).Run(accept_loss);
}

}  // namespace belay
