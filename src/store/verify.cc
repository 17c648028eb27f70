#include "store/verify.h"

#include <algorithm>
#include <cstring>

#include "store/inventory.h"

namespace belay {

namespace {

class Verifier {
 public:
  Verifier(Store& store, const VerifyOptions& options)
      : store_(store), options_(options) {}

  Result<VerifyReport> Run() {
    BELAY_TRY(HeldLock use, store_.HoldForReading());
    BELAY_OK(store_.Refresh());
    const Manifest manifest = store_.manifest();
    for (const Manifest::Pack& p : manifest.packs) {
      auto stat = store_.fs().StatAt(store_.packs_dir(), PackFile::FileName(p.id));
      if (stat.ok()) total_ += stat->size;
    }
    for (const Manifest::Pack& p : manifest.packs)
      BELAY_OK(CheckPack(p, manifest.store));
    BELAY_OK(CheckReferences());
    BELAY_TRY(auto unlisted, UnlistedPacks(store_));
    if (!unlisted.empty())
      report_.notes.push_back(
          std::to_string(unlisted.size()) +
          " pack(s) that the manifest does not name: belay repair takes them in when "
          "something is damaged, otherwise belay gc removes them");
    return std::move(report_);
  }

 private:
  void Damage(std::string what) { report_.damage.push_back(std::move(what)); }

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
      return Ok();
    }
    const PackFile& file = *opened;
    if (file.header_is_damaged()) Damage(name + ": the header is damaged");
    // The mark first: a writer may move both between the two lines.
    BELAY_TRY(uint64_t due, store_.DueLength(listed));
    BELAY_TRY(uint64_t size, file.Size());
    if (size < due)
      Damage(name + " is " + std::to_string(due - size) + " bytes shorter than it was");
    BELAY_TRY(uint64_t end, store_.EndOf(listed, file));
    BELAY_OK(file.ForEachBatch(
        kPackHeaderSize, end, [&](const BatchHeader& b, bool damaged) -> Status {
          if (damaged) {
            Damage(name + ": batch at " + std::to_string(b.offset) + " is damaged");
            return Ok();
          }
          return CheckBatch(file, name, b);
        }));
    for (const UnreadablePiece& piece : file.unreadable())
      Damage(name + ": " + std::to_string(piece.length) + " bytes at " +
             std::to_string(piece.offset) +
             " cannot be read: " + std::strerror(piece.sys));
    report_.bytes += end;
    return CheckIndex(file, name, listed, end);
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
          if (bytes.ok() && log) {
            auto record = DecodeLogRecord(*bytes);
            if (!record.ok())
              Damage(name + ": record at " + std::to_string(r.offset) + ": " +
                     record.error().what);
          }
          if (!bytes.ok()) {
            Damage(name + ": " + bytes.error().what);
            if (!log) bad_.insert(r.header.key());
          }
          return Ok();
        });
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
  Status CheckIndex(const PackFile& file, const std::string& name,
                    const Manifest::Pack& listed, uint64_t end) {
    std::vector<IndexEntry> entries = std::move(entries_);
    entries_.clear();
    BELAY_TRY(PackIndex index,
              PackIndex::Load(store_.fs(), store_.packs_dir(), listed.id));
    (void)file;
    uint64_t missed = 0;
    for (const IndexEntry& e : entries) {
      if (e.offset >= index.covered() || index.covered() > end) continue;
      BELAY_TRY(auto found, index.Candidates(e.key));
      missed += std::find(found.begin(), found.end(), e.offset) == found.end() ? 1 : 0;
    }
    if (index.covered() < end || missed > 0)
      report_.notes.push_back("the index of " + name +
                              " is incomplete; reading makes up for it, belay repair "
                              "rebuilds it");
    return Ok();
  }

  // Whatever wanted records lead to must be there; what is not is traced to its paths.
  Status CheckReferences() {
    // The log first: what is published meanwhile may be more than it needs, not less.
    LogView log;
    BELAY_OK(ReadOn(store_, log));
    BELAY_TRY(Inventory inventory, TakeInventory(store_));
    Marker marker(store_, inventory);
    marker.KeepEdges();
    BELAY_OK(marker.Mark(log));
    // Of what is damaged here a whole copy may lie elsewhere, or behind a damaged
    // record where only an index leads: then nothing is hit.
    auto reads_well = [&](const ObjectKey& key) {
      if (key.type != ObjectType::kChunks) return store_.Get(key).ok();
      return store_.ReadContent(key.id, [](ByteSpan) -> Status { return Ok(); }).ok();
    };
    std::erase_if(bad_, reads_well);
    for (const Marker::Broken& b : marker.broken()) {
      if (bad_.contains(b.key) || reads_well(b.key)) continue;
      Damage(b.what);
      bad_.insert(b.key);
    }
    if (bad_.empty()) return Ok();

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
    for (const LogRecord& r : log.records) {
      if (r.kind != RecordKind::kCheckpoint || !log.IsWanted(r)) continue;
      auto checkpoint = ToCheckpoint(r);
      if (!checkpoint.ok()) continue;
      bool hit = std::any_of(r.refs.begin(), r.refs.end(),
                             [&](const ObjectKey& k) { return tainted.contains(k); });
      if (!hit) continue;
      HitCheckpoint entry;
      entry.checkpoint = std::move(*checkpoint);
      TracePaths(entry, tainted);
      report_.hit.push_back(std::move(entry));
    }
    return Ok();
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
};

}  // namespace

Result<VerifyReport> VerifyStore(Store& store, const VerifyOptions& options) {
  return Verifier(store, options).Run();
}

}  // namespace belay
