#include "store/verify.h"

#include <algorithm>
#include <cstring>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/found_again.h"
#include "store/inventory.h"
#include "store/lost_records.h"
#include "store/unlisted.h"

namespace belay {

namespace {

class Verifier {
 public:
  Verifier(Store& store, const VerifyOptions& options)
      : store_(store), options_(options) {}

  Result<VerifyReport> Run() {
    report_.data_read = options_.read_data;
    BELAY_TRY(HeldLock use, store_.HoldForReading());
    BELAY_OK(store_.Refresh());
    const Manifest manifest = store_.manifest();
    for (const Manifest::Pack& p : manifest.packs) {
      auto stat = store_.fs().StatAt(store_.packs_dir(), PackFile::FileName(p.id));
      if (stat.ok()) total_ += stat->size;
    }
    for (const Manifest::Pack& p : manifest.packs) {
      const size_t damage_before = report_.damage.size();
      BELAY_OK(CheckPack(p, manifest.store));
      if (report_.damage.size() > damage_before) report_.damaged_packs.push_back(p.id);
    }
    if (lost_tail_) BELAY_OK(LoseTheEnd(manifest));
    MissWhatTheTailNames();
    BELAY_OK(CheckReferences());
    BELAY_OK(CheckUnlisted());
    return std::move(report_);
  }

 private:
  void Damage(std::string what) { report_.damage.push_back(std::move(what)); }

  Status CheckUnlisted() {
    BELAY_TRY(auto unlisted, UnlistedPacks(store_));
    BELAY_TRY(Unlisted others, LookAtUnlisted(store_));
    if (unlisted.empty() && others.longer.empty()) return Ok();
    BELAY_TRY(auto found, PacksWithGivenUp(store_));
    if (!others.foreign.empty())
      report_.notes.push_back(Counted(others.foreign.size(), "pack") +
                              " in packs/ of another store, which nothing here reads "
                              "or removes, the first " +
                              PackFile::FileName(others.foreign.front()).bytes());
    if (!others.lacking.empty()) {
      const bool listed = others.kept.empty();
      const auto& packs = listed ? others.longer : others.kept;
      Damage(Counted(packs.size(), "pack") +
             (listed ? " that goes on behind its end ("
                     : " that the manifest does not name (") +
             PackFile::FileName(packs.front()).bytes() + ") holds " +
             Counted(others.lacking.size(), "record") +
             " that the log does not have: belay repair takes them back");
      std::unordered_set<RecordId> named;
      for (const HitCheckpoint& hit : report_.hit) named.insert(hit.checkpoint.id);
      for (const LogRecord& r : others.lacking)
        if (!named.contains(r.id)) HitUnlisted(r);
    } else if (!found.empty()) {
      report_.notes.push_back(
          Counted(found.size(), "pack") +
          " that the manifest does not name holds what was given up as lost: belay "
          "repair takes it back");
    } else if (!others.kept.empty()) {
      report_.notes.push_back(Counted(others.kept.size(), "pack") +
                              " that the manifest does not name cannot be read whole, "
                              "and belay gc leaves it: " +
                              PackFile::FileName(others.kept.front()).bytes());
    } else if (unlisted.size() > others.foreign.size()) {
      report_.notes.push_back(
          Counted(unlisted.size() - others.foreign.size(), "pack") +
          " that the manifest does not name: belay repair takes in such a pack when "
          "something is damaged, otherwise belay gc removes it");
    }
    return Ok();
  }

  // Nothing behind what is gone; only who knows the next number knows how many.
  Status LoseTheEnd(const Manifest& manifest) {
    const Manifest::Pack* open = manifest.open_pack();
    if (!open) {
      LoseNumbersBelow(manifest.next_seq);
      return Ok();
    }
    BELAY_TRY(auto tail, store_.TailIfReadable(open->id));
    if (tail)
      LoseNumbersBelow(std::max(tail->next_seq, manifest.next_seq));
    else if (auto known = store_.Expected(open->id); known && known->next_seq != 0)
      LoseNumbersBelow(std::max(known->next_seq, manifest.next_seq));
    else
      LoseAnyNumber();
    return Ok();
  }

  // The manifest is an older one; of a pack that is there CheckUnlisted() tells.
  void MissWhatTheTailNames() {
    const auto tail = store_.TailOfUnlisted();
    if (!tail) return;
    const Name name = PackFile::FileName(tail->pack);
    if (store_.fs().StatAt(store_.packs_dir(), name).ok()) return;
    Damage(name.bytes() +
           " is missing, which was written last: the manifest that does not name it is "
           "an older one");
    LoseNumbersBelow(tail->next_seq);
  }

  Status CheckPack(const Manifest::Pack& listed, const StoreId& store_id) {
    ++report_.packs;
    const std::string name = PackFile::FileName(listed.id).bytes();
    auto opened = PackFile::Open(store_.fs(), store_.packs_dir(), listed.id, store_id,
                                 OpenMode::Read());
    if (!opened.ok()) {
      Errc code = opened.error().code;
      if (code != Errc::kCorrupt && code != Errc::kNotFound)
        return std::move(opened).error();
      Damage(code == Errc::kNotFound ? name + " is missing" : opened.error().what);
      lost_tail_ = true;
      return Ok();
    }
    const PackFile& file = *opened;
    if (file.header_is_damaged()) Damage(name + ": the header is damaged");
    // The mark first: a writer may move both between the two lines.
    BELAY_TRY(uint64_t due, store_.DueLength(listed));
    BELAY_TRY(uint64_t size, file.Size());
    bool lost_tail = false;
    if (size < due) {
      Damage(name +
             (store_.HasForeignEnd(listed.id)
                  ? " does not have what was stored last: it or the tail is of "
                    "a copy of the store"
                  : " is " + Counted(due - size, "byte") + " shorter than it was"));
      lost_tail = true;
    }
    BELAY_TRY(uint64_t end, store_.EndOf(listed, file));
    // The numbers of a batch whose header is damaged lie between its neighbours'.
    std::optional<uint64_t> lost_from;
    BELAY_OK(file.ForEachBatch(
        kPackHeaderSize, end, [&](const BatchHeader& b, bool damaged) -> Status {
          if (damaged) {
            Damage(name + ": batch at " + std::to_string(b.offset) + " is damaged");
            if (!lost_from) lost_from = b.first_seq;
            return CheckStretch(file, name, b);
          }
          if (lost_from && b.first_seq != 0) {
            LoseNumbers(*lost_from, b.first_seq);
            lost_from.reset();
          }
          if (lost_tail_ && b.first_seq != 0) LoseNumbersBelow(b.first_seq);
          return CheckBatch(file, name, b);
        }));
    lost_tail_ |= lost_tail || lost_from;  // nobody in this pack to tell
    if (!listed.sealed && size > end)
      report_.notes.push_back(Counted(size - end, "byte") + " at the end of " + name +
                              " are of a write that was not finished; the next "
                              "checkpoint takes their place");
    for (const UnreadablePiece& piece : file.unreadable())
      Damage(name + ": " + std::to_string(piece.length) + " bytes at " +
             std::to_string(piece.offset) +
             " cannot be read: " + std::strerror(piece.sys));
    report_.bytes += end;
    return CheckIndex(name, listed, end);
  }

  // Records with the numbers [from, to) may have been there.
  void LoseNumbers(uint64_t from, uint64_t to) {
    constexpr uint64_t kMany = 1'000'000;  // more is a damaged number, not a batch
    if (from == 0 || to < from || to - from > kMany)
      LoseAnyNumber();
    else
      for (uint64_t seq = from; seq < to; ++seq) lost_numbers_.push_back(seq);
  }

  // At least one, and nothing says how many.
  void LoseAnyNumber() {
    ++report_.unknown_records;
    report_.uncounted_records = !BELAY_MUTANT("an-unknown-loss-is-one-record");
  }

  // All of a pack, or the end of one, is gone: any record up to the next one may have
  // been there, also older ones, which a collection copies.
  void LoseNumbersBelow(uint64_t seq) {
    LoseNumbers(1, seq);
    lost_tail_ = false;
  }

  Status CheckBatch(const PackFile& file, const std::string& name,
                    const BatchHeader& b) {
    ++report_.batches;
    const size_t damage_before = report_.damage.size();
    uint64_t objects = 0;
    uint64_t logs = 0;
    Status walked =
        file.ForEachRecord(b, PackFile::Part::kAll, [&](const RecordAt& r) -> Status {
          const bool log = r.header.type == ObjectType::kLog;
          ++(log ? logs : objects);
          if (!log) entries_.push_back({r.header.key(), r.offset});
          if (!options_.read_data && !log) return Ok();
          auto bytes = file.ReadRecord(r);
          if (!bytes.ok() && bytes.error().code != Errc::kCorrupt)
            return std::move(bytes).error();
          bool lost = !bytes.ok();
          if (bytes.ok() && log) {
            auto record = DecodeLogRecord(*bytes);
            lost = !record.ok();
            if (lost)
              Damage(name + ": record at " + std::to_string(r.offset) + ": " +
                     record.error().what);
          }
          if (!bytes.ok()) {
            Damage(
                name + ": " +
                (log ? "record at " + std::to_string(r.offset) + ": " : std::string()) +
                bytes.error().what);
            if (!log) bad_.insert(r.header.key());
          }
          if (log && lost) {
            const uint64_t seq = b.first_seq == 0 ? 0 : b.first_seq + logs - 1;
            if (r.header.id.is_zero())  // not even its header is left
              LoseNumbers(seq, seq + 1);
            else
              lost_places_.push_back({r.header.id, seq});
          }
          return Ok();
        });
    // What stands for several that cannot be told apart was counted as one.
    if (logs < b.log_count && b.first_seq != 0)
      LoseNumbers(b.first_seq, b.first_seq + b.log_count);
    else if (logs < b.log_count)
      LoseAnyNumber();
    if (!walked.ok()) {
      if (walked.error().code != Errc::kCorrupt) return walked;
      Damage(name + ": " + walked.error().what);
    } else if (objects != b.object_count || logs != b.log_count) {
      Damage(name + ": batch at " + std::to_string(b.offset) +
             " miscounts its records");
    }
    report_.objects += objects;
    report_.records += logs;
    BELAY_TRY(bool whole,
              options_.read_data ? file.IsWhole(b) : file.TrailerIsThere(b));
    if (!whole) BELAY_OK(CheckChunkLists(file, b));
    if (!whole && report_.damage.size() == damage_before)
      Damage(name + ": batch at " + std::to_string(b.offset) +
             " does not match its hash");
    if (options_.progress) options_.progress(report_.bytes + b.end(), total_);
    return Ok();
  }

  // Where the header of a batch is damaged its objects are still found, and so each of
  // them must prove itself.
  Status CheckStretch(const PackFile& file, const std::string& name,
                      const BatchHeader& b) {
    if (!options_.read_data || BELAY_MUTANT("a-damaged-batch-is-not-read")) return Ok();
    Status walked = file.ForEachRecord(
        b, PackFile::Part::kObjects, [&](const RecordAt& r) -> Status {
          if (r.header.type == ObjectType::kLog) return Ok();
          auto bytes = file.ReadRecord(r);
          if (bytes.ok()) return Ok();
          if (bytes.error().code != Errc::kCorrupt) return std::move(bytes).error();
          bad_.insert(r.header.key());
          in_stretch_.emplace_back(r.header.key(), name + ": " + bytes.error().what);
          return Ok();
        });
    if (!walked.ok() && walked.error().code != Errc::kCorrupt) return walked;
    return CheckChunkLists(file, b);
  }

  // A chunk list is checked by itself when read, not against the content it stands for:
  // where the batch is damaged, it must prove that too.
  Status CheckChunkLists(const PackFile& file, const BatchHeader& b) {
    Status walked = file.ForEachRecord(
        b, PackFile::Part::kObjects, [&](const RecordAt& r) -> Status {
          if (r.header.type != ObjectType::kChunks) return Ok();
          Status read =
              store_.ReadContent(r.header.id, [](ByteSpan) -> Status { return Ok(); });
          if (!read.ok() && read.error().code == Errc::kCorrupt)
            bad_.insert(r.header.key());
          return Ok();
        });
    if (!walked.ok() && walked.error().code != Errc::kCorrupt) return walked;
    return Ok();
  }

  // An index that misses or misplaces something is made up for when reading; say so.
  Status CheckIndex(const std::string& name, const Manifest::Pack& listed,
                    uint64_t end) {
    std::vector<IndexEntry> entries = std::move(entries_);
    entries_.clear();
    const Name file = PackIndex::FileName(listed.id);
    auto stat = store_.fs().StatAt(store_.packs_dir(), file);
    if (stat.ok() && stat->type != FileType::kRegular)
      report_.notes.push_back(file.bytes() + " is " +
                              std::string(FileTypeName(stat->type)) +
                              ", not an index; belay repair moves it aside");
    BELAY_TRY(PackIndex index,
              PackIndex::Load(store_.fs(), store_.packs_dir(), listed.id));
    // What it does not cover is looked for by a scan, and only objects are looked for.
    // What cannot be read was left out by a repair, so that it is stored again.
    bool misses = false;
    for (const IndexEntry& e : entries) {
      if (e.offset < index.covered() && index.covered() > end) continue;
      BELAY_TRY(auto found, index.Candidates(e.key));
      if (std::find(found.begin(), found.end(), e.offset) != found.end() ||
          !ReadsWell(e.key))
        continue;
      misses = true;
      break;
    }
    if (misses)
      report_.notes.push_back("the index of " + name +
                              " is incomplete; reading makes up for it, belay repair "
                              "rebuilds it");
    return Ok();
  }

  bool ReadsWell(const ObjectKey& key) {
    if (key.type != ObjectType::kChunks) return store_.Get(key).ok();
    return store_.ReadContent(key.id, [](ByteSpan) -> Status { return Ok(); }).ok();
  }

  // Whatever wanted records lead to must be there; what is not is traced to its paths.
  Status CheckReferences() {
    // The log first: what is published meanwhile may be more than it needs, not less.
    LogView log;
    BELAY_OK(ReadOn(store_, log));
    for (const LogRecord& r : log.records)
      report_.read_records.emplace_back(r.seq, r.id);
    BELAY_TRY(Inventory inventory, TakeInventory(store_));
    Marker marker(store_, inventory);
    marker.KeepEdges();
    BELAY_OK(marker.Mark(log));
    report_.lost_records = LostRecords(store_, log, options_.remembered);
    NoteForgotten(log);
    NoteRootless(log);
    const std::vector<LogRecord> hidden = HiddenRecords(log);
    if (!hidden.empty())
      Damage(Counted(hidden.size(), "record") +
             " in no list, whose number another one has, too: belay repair gives each "
             "one of its own");
    for (const LogRecord& r : hidden) HitUnlisted(r);
    for (const LogRecord& r : report_.lost_records)
      BELAY_OK(marker.MarkFrom(r, log.purged));
    CountUnknown(log);
    // Of what is damaged here a whole copy may lie elsewhere, or behind a damaged
    // record where only an index leads: then nothing is hit.
    std::erase_if(bad_, [&](const ObjectKey& key) { return ReadsWell(key); });
    // What nobody needs may be no object at all, but look like one.
    for (const auto& [key, what] : in_stretch_) {
      if (!bad_.contains(key)) continue;
      if (marker.IsLive(key) || (key.type == ObjectType::kChunks &&
                                 marker.IsLive({ObjectType::kBlob, key.id})))
        Damage(what);
      else
        bad_.erase(key);
    }
    for (const Marker::Broken& b : marker.broken()) {
      if (bad_.contains(b.key) || ReadsWell(b.key)) continue;
      Damage(b.what);
      bad_.insert(b.key);
    }
    for (const ObjectKey& key : bad_)
      if (marker.IsLive(key) || (key.type == ObjectType::kChunks &&
                                 marker.IsLive({ObjectType::kBlob, key.id})))
        report_.lost_objects.push_back(key);
    if (bad_.empty() && report_.lost_records.empty()) return Ok();

    // Everything above a bad object is tainted: only there can a path to one begin.
    std::unordered_set<ObjectKey> tainted(bad_.begin(), bad_.end());
    std::vector<ObjectKey> work(bad_.begin(), bad_.end());
    while (!work.empty()) {
      ObjectKey key = work.back();
      work.pop_back();
      std::vector<ObjectKey> above;
      // A file's content is referred to as a blob, whatever it is stored as.
      for (ObjectType type : {key.type, ObjectType::kBlob}) {
        auto at = marker.parents().find({type, key.id});
        if (at != marker.parents().end())
          above.insert(above.end(), at->second.begin(), at->second.end());
      }
      for (const ObjectKey& parent : above)
        if (tainted.insert(parent).second) work.push_back(parent);
    }
    for (const LogRecord& r : log.records)
      if (log.IsWanted(r)) CheckHit(r, tainted, false);
    for (const LogRecord& r : report_.lost_records) CheckHit(r, tainted, true);
    return Ok();
  }

  // No damage: every byte there is can be read. But whoever put an older copy of the
  // packs back should know what it lacks.
  void NoteForgotten(const LogView& log) {
    if (!log.whole) return;
    std::unordered_set<RecordId> there;
    for (const LogRecord& r : log.records) there.insert(r.id);
    std::vector<std::string> gone;
    for (const auto& [record, sure] : options_.remembered)
      if (sure && record.kind == RecordKind::kCheckpoint &&
          !there.contains(record.id) && !log.dropped.contains(record.id))
        gone.push_back(RecordTitle(record));
    if (gone.empty()) return;
    report_.notes.push_back(
        "the catalogue remembers " + Counted(gone.size(), "checkpoint") +
        " that the packs do not have, the newest " + gone.back() +
        ": a copy from before was put back, or they were never acknowledged");
  }

  // Whole, and yet nobody comes to them.
  void NoteRootless(const LogView& log) {
    auto without = RootsWithoutRecord(log);
    for (const LogRecord& r : report_.lost_records)
      if (auto root = ToRoot(r); root.ok()) without.erase(root->id);
    if (without.empty() || BELAY_MUTANT("roots-are-not-missed")) return;
    for (const auto& [id, checkpoints] : without)
      Damage("the record of a root is lost, and " + Counted(checkpoints, "checkpoint") +
             " of it can be reached by nobody: belay repair brings that back");
    for (const LogRecord& r : log.records)
      if (log.IsWanted(r) && without.contains(r.root)) CheckHit(r, {}, true);
  }

  void HitUnlisted(const LogRecord& r) {
    auto checkpoint = ToCheckpoint(r);
    if (!checkpoint.ok()) return;
    HitCheckpoint entry;
    entry.checkpoint = std::move(*checkpoint);
    entry.record_lost = entry.in_no_list = true;
    report_.hit.push_back(std::move(entry));
  }

  void CheckHit(const LogRecord& r, const std::unordered_set<ObjectKey>& tainted,
                bool record_lost) {
    auto checkpoint = ToCheckpoint(r);
    if (!checkpoint.ok()) return;
    bool hit = std::any_of(r.refs.begin(), r.refs.end(),
                           [&](const ObjectKey& k) { return tainted.contains(k); });
    if (!hit && !record_lost) return;
    HitCheckpoint entry;
    entry.checkpoint = std::move(*checkpoint);
    entry.record_lost = record_lost;
    if (hit) TracePaths(entry, tainted);
    report_.hit.push_back(std::move(entry));
  }

  // A record is accounted for when it was published again, or is remembered and can be:
  // told by its number, or by the hash in its header.
  void CountUnknown(const LogView& log) {
    std::unordered_set<uint64_t> numbers;
    std::unordered_set<ObjectId> hashes;
    auto add = [&](LogRecord r) {
      numbers.insert(r.seq);
      hashes.insert(Sha256::Of(EncodeLogRecord(r)));
      r.seq = 0;  // as it stands where the batch gives the number
      hashes.insert(Sha256::Of(EncodeLogRecord(r)));
    };
    if (lost_numbers_.empty() && lost_places_.empty()) return;
    for (const LogRecord& r : log.records) add(r);
    for (const LogRecord& r : report_.lost_records) add(r);
    for (const auto& [hash, seq] : lost_places_)
      if (!hashes.contains(hash) && (seq == 0 || numbers.insert(seq).second))
        ++report_.unknown_records;
    for (uint64_t seq : lost_numbers_)
      report_.unknown_records += numbers.insert(seq).second ? 1 : 0;
  }

  bool IsTainted(const std::unordered_set<ObjectKey>& tainted, ObjectType type,
                 const ObjectId& id) const {
    return tainted.contains({type, id}) ||
           (type == ObjectType::kBlob && tainted.contains({ObjectType::kChunks, id}));
  }

  void TracePaths(HitCheckpoint& entry, const std::unordered_set<ObjectKey>& tainted) {
    auto add = [&entry](std::string path) {
      if (entry.paths.size() < HitCheckpoint::kMaxPaths)
        entry.paths.push_back(std::move(path));
      else
        ++entry.more_paths;
    };
    auto state = store_.GetState(entry.checkpoint.state);
    if (!state.ok()) return add(".");
    // Explicit stack: a hostile store may nest deeper than ours.
    std::vector<std::pair<ObjectId, std::string>> work = {{state->tree, ""}};
    while (!work.empty()) {
      auto [id, prefix] = std::move(work.back());
      work.pop_back();
      auto tree = store_.GetTree(id);
      if (!tree.ok()) {
        add(prefix.empty() ? "." : prefix.substr(0, prefix.size() - 1));
        continue;
      }
      for (const TreeEntry& e : tree->entries) {
        if (e.kind == EntryKind::kDirectory &&
            IsTainted(tainted, ObjectType::kTree, e.id))
          work.emplace_back(e.id, prefix + e.name + "/");
        else if ((e.kind == EntryKind::kFile &&
                  IsTainted(tainted, ObjectType::kBlob, e.id)) ||
                 (!e.xattrs.is_zero() &&
                  IsTainted(tainted, ObjectType::kBlob, e.xattrs)))
          add(prefix + e.name);
      }
    }
    std::sort(entry.paths.begin(), entry.paths.end());
  }

  Store& store_;
  const VerifyOptions& options_;
  VerifyReport report_;
  uint64_t total_ = 0;
  std::vector<IndexEntry> entries_;
  std::unordered_set<ObjectKey> bad_;
  // Of those, what was found where a batch header is damaged, and what is wrong with
  // it.
  std::vector<std::pair<ObjectKey, std::string>> in_stretch_;
  std::vector<uint64_t> lost_numbers_;
  std::vector<std::pair<ObjectId, uint64_t>> lost_places_;  // hash, number or 0
  bool lost_tail_ = false;
};

}  // namespace

std::string UnknownRecordsText(const VerifyReport& report) {
  if (report.uncounted_records) return "records, nobody can tell how many,";
  return "up to " + Counted(report.unknown_records, "record");
}

Result<VerifyReport> VerifyStore(Store& store, const VerifyOptions& options) {
  return Verifier(store, options).Run();
}

}  // namespace belay
