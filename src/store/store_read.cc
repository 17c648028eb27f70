// Finding and reading what the packs hold: objects, content, the log.

#include <algorithm>

#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/content_stream.h"
#include "store/store.h"

namespace belay {

Result<std::optional<ObjectLocation>> Store::Find(const ObjectKey& key) {
  const std::shared_ptr<const Manifest> listed = Listed();
  for (auto at = listed->packs.rbegin(); at != listed->packs.rend(); ++at) {
    auto pack = Pack(at->id);
    if (!pack.ok()) {
      // A damaged or missing pack hides its objects; others may still have this one.
      Errc code = pack.error().code;
      if (code == Errc::kCorrupt || code == Errc::kNotFound) continue;
      return std::move(pack).error();
    }
    BELAY_TRY(auto offsets, (*pack)->index.Candidates(key));
    for (uint64_t offset : offsets) {
      auto header = (*pack)->file->HeaderAt(offset, (*pack)->limit);
      if (!header.ok()) {
        if (header.error().code == Errc::kCorrupt) continue;
        return std::move(header).error();
      }
      if (header->key() == key)
        return std::optional(ObjectLocation{*pack, RecordAt{offset, *header}});
    }
  }
  return std::optional<ObjectLocation>();
}

Result<std::vector<std::pair<PackId, uint64_t>>> Store::Surveyed(const ObjectKey& key) {
  std::lock_guard guard(survey_mutex_);
  std::vector<AllRecords::End> ends;
  std::vector<std::shared_ptr<const OpenPack>> packs;
  for (const Manifest::Pack& listed : Listed()->packs) {
    auto pack = Pack(listed.id);
    if (!pack.ok()) {
      Errc code = pack.error().code;
      if (code == Errc::kCorrupt || code == Errc::kNotFound) continue;
      return std::move(pack).error();
    }
    BELAY_TRY(uint64_t end, EndOf(listed, *(*pack)->file));
    ends.push_back({listed.id, end, {}});
    packs.push_back(std::move(*pack));
  }
  // What was read stays while packs only grow, and others come behind them.
  AllRecords& known = all_records_;
  bool goes_on = known.ends.size() <= ends.size() && !BELAY_MUTANT("survey-for-each");
  for (size_t i = 0; goes_on && i < known.ends.size(); ++i) {
    const AllRecords::End& read = known.ends[i];
    goes_on = read.pack == ends[i].pack && read.offset <= ends[i].offset;
    if (!goes_on || read.offset == ends[i].offset) continue;
    BELAY_TRY(const BatchMark mark, packs[i]->file->MarkAt(read.offset));
    goes_on =
        mark == read.mark && (mark != BatchMark() || read.offset == kPackHeaderSize);
  }
  if (!goes_on) known = AllRecords();
  for (size_t i = 0; i < packs.size(); ++i) {
    if (i == known.ends.size())
      known.ends.push_back({ends[i].pack, kPackHeaderSize, {}});
    AllRecords::End& read = known.ends[i];
    if (read.offset >= ends[i].offset) continue;
    const PackFile& file = *packs[i]->file;
    BELAY_TRY(auto entries, ObjectsIn(file, read.offset, ends[i].offset));
    BELAY_TRY(read.mark, file.MarkAt(ends[i].offset));
    read.offset = ends[i].offset;
    for (const IndexEntry& e : entries)
      known.places.emplace(e.key, std::make_pair(read.pack, e.offset));
  }
  std::vector<std::pair<PackId, uint64_t>> out;
  auto [begin, end] = known.places.equal_range(key);
  for (auto place = begin; place != end; ++place) out.push_back(place->second);
  return out;
}

Result<std::vector<ObjectLocation>> Store::DeepFind(const ObjectKey& key) {
  BELAY_TRY(const auto places, Surveyed(key));
  std::vector<ObjectLocation> out;
  for (const auto& [id, offset] : places) {
    BELAY_TRY(auto pack, Pack(id));
    BELAY_TRY(uint64_t size, pack->file->Size());
    BELAY_TRY(RecordHeader header, pack->file->HeaderAt(offset, size));
    out.push_back({pack, RecordAt{offset, header}});
    if (BELAY_MUTANT("one-copy-is-looked-for")) break;
  }
  return out;
}

Result<std::optional<bool>> Store::WasPurged(const ObjectKey& key) {
  std::lock_guard guard(survey_mutex_);
  // From where the last look ended, if that is still there: a batch that nobody flushed
  // may have been cut off.
  auto mark_at = [this](const LogPosition& at) -> Result<BatchMark> {
    auto pack = Pack(at.pack);
    if (!pack.ok()) return BatchMark();
    return (*pack)->file->MarkAt(at.offset);
  };
  std::optional<LogPosition> after;
  if (purges_.mark != BatchMark() && !BELAY_MUTANT("the-log-for-each-miss")) {
    BELAY_TRY(const BatchMark mark, mark_at(purges_.position));
    if (mark == purges_.mark) after = purges_.position;
  }
  if (!after) purges_ = Purges();
  BELAY_TRY(purges_.position,
            ReadLogHeld(after, [&](const LogRecord& record) -> Status {
              const bool erased = WasErased(record);
              for (const ObjectKey& k : PurgedBy(record)) purges_.erased[k] |= erased;
              return Ok();
            }));
  purges_.mark = BatchMark();
  if (!purges_.position.pack.is_zero()) {
    BELAY_TRY(purges_.mark, mark_at(purges_.position));
  }
  const auto at = purges_.erased.find(key);
  if (at == purges_.erased.end()) return std::optional<bool>();
  return std::optional(at->second);
}

Result<Bytes> Store::Get(const ObjectKey& key) {
  // By the indexes; then with a fresh manifest (GC may have moved it, another process
  // may have just written it); then by looking at every record there is.
  std::optional<Error> damage;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (attempt == 1) BELAY_OK(Refresh());
    std::vector<ObjectLocation> copies;
    if (attempt < 2) {
      BELAY_TRY(auto found, Find(key));
      if (found) copies.push_back(std::move(*found));
    } else {
      BELAY_TRY(copies, DeepFind(key));
    }
    for (const ObjectLocation& copy : copies) {
      auto bytes = copy.pack->file->ReadRecord(copy.record);
      if (bytes.ok()) return bytes;
      if (bytes.error().code != Errc::kCorrupt) return bytes;
      damage = std::move(bytes).error();  // a second copy elsewhere may be whole
    }
  }
  if (damage) {
    // Look for another copy: duplicates exist when writers raced.
    for (const Manifest::Pack& listed : manifest().packs) {
      auto pack = Pack(listed.id);
      if (!pack.ok()) continue;
      BELAY_TRY(auto offsets, (*pack)->index.Candidates(key));
      for (uint64_t offset : offsets) {
        auto header = (*pack)->file->HeaderAt(offset, (*pack)->limit);
        if (!header.ok() || header->key() != key) continue;
        auto bytes = (*pack)->file->ReadRecord(RecordAt{offset, *header});
        if (bytes.ok()) return bytes;
      }
    }
    return *damage;
  }
  // On purpose, or because it was lost and somebody took note of that.
  BELAY_TRY(const auto erased, WasPurged(key));
  std::string name = ObjectTypeName(key.type) + " " + key.id.hex();
  if (erased)
    return Error(Errc::kPurged,
                 name + (*erased ? " was purged"
                                 : " was lost, and given up by belay repair "
                                   "--accept-loss"));
  return Error(Errc::kNotFound, name + " is not in the store");
}

Result<Tree> Store::GetTree(const ObjectId& id) {
  BELAY_TRY(Bytes bytes, Get({ObjectType::kTree, id}));
  return DecodeTree(bytes);
}
Result<State> Store::GetState(const ObjectId& id) {
  BELAY_TRY(Bytes bytes, Get({ObjectType::kState, id}));
  return DecodeState(bytes);
}

Result<bool> Store::HasContent(const ObjectId& id) {
  BELAY_TRY(auto blob, Find({ObjectType::kBlob, id}));
  if (blob) return true;
  BELAY_TRY(auto chunks, Find({ObjectType::kChunks, id}));
  return chunks.has_value();
}

Status Store::ReadContent(const ObjectId& id,
                          const std::function<Status(ByteSpan)>& sink) {
  BELAY_TRY(ContentStream content, ContentStream::Open(*this, id));
  for (;;) {
    BELAY_TRY(const auto piece, content.Next());
    if (!piece) return Ok();
    BELAY_OK(sink(*piece));
  }
}

Result<Bytes> Store::ReadContentBytes(const ObjectId& id, uint64_t limit) {
  Bytes all;
  BELAY_OK(ReadContent(id, [&](ByteSpan piece) -> Status {
    if (piece.size() > limit - all.size())
      return Error(Errc::kInvalid, "content " + id.hex() + " is too long");
    all.insert(all.end(), piece.begin(), piece.end());
    return Ok();
  }));
  return all;
}

Result<LogPosition> Store::ReadLog(
    const std::optional<LogPosition>& after,
    const std::function<Status(const LogRecord&)>& visit) {
  BELAY_TRY(HeldLock use, HoldForReading());
  return ReadLogHeld(after, visit);
}

Result<HeldLock> Store::HoldForReading() {
  auto held = locks_.Acquire(StoreLock::kUse, LockMode::kShared);
  // A store on a read-only disk cannot be collected either.
  if (!held.ok() && held.error().code == Errc::kRefused) return HeldLock();
  return held;
}

Result<bool> ReadRecords(const PackFile& file, uint64_t from, uint64_t end,
                         const std::function<Status(const LogRecord&)>& visit) {
  bool whole = true;
  auto on_batch = [&](const BatchHeader& b, bool damaged) -> Status {
    uint64_t index = 0;
    uint64_t readable = 0;
    bool visitor_failed = false;  // its errors are not the pack's damage
    Status walked =
        file.ForEachRecord(b, PackFile::Part::kLog, [&](const RecordAt& r) -> Status {
          if (r.header.type != ObjectType::kLog) return Ok();
          uint64_t place = index++;
          auto bytes = file.ReadRecord(r);
          if (!bytes.ok()) {
            if (bytes.error().code == Errc::kCorrupt) return Ok();
            return std::move(bytes).error();
          }
          auto record = DecodeLogRecord(*bytes);
          if (!record.ok()) return Ok();
          if (record->seq == 0) record->seq = b.first_seq + place;
          ++readable;
          Status visited = visit(*record);
          visitor_failed = !visited.ok();
          return visited;
        });
    if (!walked.ok() && (visitor_failed || walked.error().code != Errc::kCorrupt))
      return walked;
    whole &= walked.ok() && !damaged && readable == b.log_count;
    return Ok();
  };
  BELAY_OK(file.ForEachBatch(from, end, on_batch));
  return whole;
}

Result<LogPosition> Store::ReadLogHeld(
    const std::optional<LogPosition>& after,
    const std::function<Status(const LogRecord&)>& visit) {
  BELAY_OK(Refresh());
  Manifest m = manifest();
  LogPosition position;
  position.generation = m.generation;
  size_t first = 0;
  uint64_t from = kPackHeaderSize;
  if (after && after->generation == m.generation && !after->pack.is_zero()) {
    for (size_t i = 0; i < m.packs.size(); ++i) {
      if (m.packs[i].id != after->pack) continue;
      first = i;
      from = after->offset;
    }
  }
  for (size_t i = first; i < m.packs.size(); ++i, from = kPackHeaderSize) {
    const Manifest::Pack& listed = m.packs[i];
    auto file = PackFile::Open(fs_, packs_dir_, listed.id, m.store, OpenMode::Read());
    if (!file.ok()) {
      Errc code = file.error().code;
      position.whole = false;
      if (code == Errc::kCorrupt || code == Errc::kNotFound) continue;
      return std::move(file).error();
    }
    // First what must be there: a writer may move the mark on meanwhile.
    bool vouched = false;
    BELAY_TRY(uint64_t due, DueLength(listed, &vouched));
    BELAY_TRY(uint64_t end, EndOf(listed, *file));
    position.whole &= end >= due;
    position.flushed = vouched && end == due;
    BELAY_TRY(bool whole, ReadRecords(*file, from, end, visit));
    position.whole &= whole;
    // Also beyond the end: a batch there may be whole, and only not be read this time.
    position.whole &= !file->has_unreadable() || BELAY_MUTANT("unreadable-is-absent");
    position.pack = listed.id;
    position.offset = std::max(end, from);
  }
  // Where the tail is not of the open pack, it may be of one that is not listed any
  // more.
  const bool tail_is_ours = m.open_pack() != nullptr && position.flushed;
  if (!tail_is_ours && TailIsOfUnlisted()) position.whole = false;
  return position;
}

}  // namespace belay
