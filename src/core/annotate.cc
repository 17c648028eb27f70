#include "core/annotate.h"

#include <algorithm>
#include <unordered_set>

#include "base/mutant.h"
#include "core/hand_on.h"
#include "core/interrupted.h"
#include "core/retention.h"
#include "core/space.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

// Of an operation record; 1, 2 and 8 mean what they mean of a rollback.
constexpr uint64_t kName = 1, kTarget = 2, kLabel = 8, kPlace = 10, kCount = 11;

const std::string& TitleOf(const Checkpoint& checkpoint) {
  return checkpoint.name ? *checkpoint.name : checkpoint.description;
}

// What is told of one that is gone. Not what was said in a session: whoever erases that
// erases it everywhere, and of a checkpoint that is gone nobody knows whose it was.
std::string LabelOfGone(const Checkpoint& checkpoint) {
  if (!checkpoint.session || checkpoint.name || BELAY_MUTANT("log-quotes-sessions"))
    return TitleOf(checkpoint);
  return checkpoint.turn ? "turn " + std::to_string(*checkpoint.turn)
                         : "a checkpoint of a session";
}

std::string_view NameOf(const Fields& fields) {
  const bool name = fields.has(kAnnotationName), note = fields.has(kAnnotationNote),
             pin = fields.has(kAnnotationPinned);
  const bool more = fields.has(kAnnotationHealth) || fields.has(kAnnotationMeta);
  if (name + note + pin + more != 1 || more) return "annotate";
  if (name) return "rename";
  if (note) return "note";
  return fields.Number(kAnnotationPinned).value_or(0) != 0 ? "pin" : "unpin";
}

}  // namespace

namespace {

uint64_t TakenBy(const LogRecord& record) {
  return 4096 + kTextTimes * EncodeLogRecord(record).size();
}

bool AddsText(const Annotation& annotation) {
  auto adds = [](const std::optional<std::string>& text) {
    return text && !text->empty();
  };
  return adds(annotation.name) || adds(annotation.note) ||
         std::ranges::any_of(annotation.meta,
                             [&](const auto& pair) { return adds(pair.second); });
}

// Makes room for so much where there is none.
Status FindRoom(Store& store, const RootId& root, const RecordId& target,
                uint64_t bytes, AnnotationRoom& room) {
  // Not by a guess from the packs: of long notes the catalogue has several times more.
  BELAY_TRY(Space space, Space::Of(store, room.settings, /*exact=*/true));
  if (space.Check(bytes).ok()) return Ok();
  store.LimitPacks(Space::PackTarget(space.cap()));
  BELAY_TRY(MadeRoom made,
            MakeRoom(store, room.settings, bytes, store.options().lock_wait_ms));
  room.let_go = made.checkpoints;
  BELAY_TRY(space, Space::Of(store, room.settings, /*exact=*/true));
  BELAY_OK(space.Check(bytes));
  if (made.checkpoints == 0) return Ok();
  // Until it is annotated it may be one of them.
  BELAY_TRY(auto catalog, Catalog::Open(store));
  auto still = catalog->FindById(root, target.text());
  if (!still.ok() && still.error().code == Errc::kNotFound)
    return Error(Errc::kNotFound,
                 target.text().substr(0, 7) + " was let go to make room in the store")
        .WithHint("pin what must stay: belay pin REF");
  return still.ok() ? Ok() : Status(std::move(still).error());
}

}  // namespace

Result<CatalogEntry> Annotate(Store& store, const CatalogEntry& entry,
                              const Annotation& annotation, AnnotationRoom* room) {
  LogRecord record;
  record.kind = RecordKind::kAnnotation;
  record.root = entry.checkpoint.root;
  Fields& f = record.fields;
  f.Add(kAnnotationTarget, entry.checkpoint.id.span());
  if (annotation.name) f.Add(kAnnotationName, *annotation.name);
  if (annotation.note) f.Add(kAnnotationNote, *annotation.note);
  if (annotation.pinned) f.AddNumber(kAnnotationPinned, *annotation.pinned ? 1 : 0);
  if (annotation.health)
    f.AddNumber(kAnnotationHealth, static_cast<uint64_t>(*annotation.health));
  for (const auto& [key, value] : annotation.meta) {
    Fields pair;
    pair.Add(1, key);
    if (value) pair.Add(2, *value);
    f.AddNested(kAnnotationMeta, pair);
  }
  CatalogEntry after = entry;
  ApplyAnnotation(after, f);
  if (after == entry) return after;
  if (room != nullptr && AddsText(annotation) && !BELAY_MUTANT("notes-over-the-cap"))
    BELAY_OK(FindRoom(store, entry.checkpoint.root, entry.checkpoint.id,
                      TakenBy(record), *room));
  BELAY_TRY(auto writer, store.Begin());
  record.id = RecordId(store.random().NewId());
  record.made_ms = store.clock().WallMillis();
  writer->Add(std::move(record));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return after;
}

LogRecord DeletionRecord(const RecordId& id, const Root& root, int64_t made_ms,
                         const std::vector<CatalogEntry>& gone,
                         const std::vector<Operation>& operations,
                         std::string_view why) {
  std::unordered_set<RecordId> places;
  for (const Operation& operation : operations) {
    if (operation.target) places.insert(*operation.target);
    if (operation.safety) places.insert(*operation.safety);
  }
  LogRecord record;
  record.kind = RecordKind::kOperation;
  record.id = id;
  record.root = root.id;
  record.made_ms = made_ms;
  Fields& f = record.fields;
  f.Add(kName, why);
  if (!gone.empty()) {
    f.Add(kTarget, gone[0].checkpoint.id.span());
    f.Add(kLabel, LabelOfGone(gone[0].checkpoint));
  }
  for (const CatalogEntry& entry : gone) {
    if (!places.contains(entry.checkpoint.id)) continue;
    Bytes place;
    ByteWriter w(place);
    w.Raw(entry.checkpoint.id.span());
    w.U64(entry.checkpoint.seq);
    f.Add(kPlace, place);
  }
  f.AddNumber(kCount, gone.size());
  return record;
}

Result<Deleted> DeleteCheckpoints(Store& store, Catalog& catalog, const Root& root,
                                  const std::vector<RecordId>& ids,
                                  std::string_view why, bool hand_on) {
  // Not while a rollback goes to one of them, nor while the next one is being made from
  // it.
  BELAY_TRY(HeldLock alone,
            store.locks().AcquireRoot(root.id, store.options().lock_wait_ms));
  BELAY_TRY(bool interrupted, HasJournal(store, root.id));
  if (interrupted && !BELAY_MUTANT("prune-under-a-journal"))
    return Error(Errc::kRefused, "a rollback was interrupted here and is not finished")
        .WithHint("finish it first: belay status says what it waits for");
  Deleted out;
  std::vector<RecordId> drop;
  std::unordered_set<RecordId> seen;
  for (const RecordId& id : ids) {
    if (!seen.insert(id).second) continue;
    BELAY_TRY(CatalogEntry entry, catalog.FindById(root.id, id.text()));
    if (entry.pinned && !BELAY_MUTANT("delete-pinned"))
      return Error(Errc::kRefused, id.text().substr(0, 7) + " is pinned")
          .WithHint("release it first: belay unpin " + id.text().substr(0, 7));
    drop.push_back(id);
    BELAY_TRY(auto annotations, catalog.Annotations(id));
    for (const LogRecord& annotation : annotations) drop.push_back(annotation.id);
    out.checkpoints.push_back(std::move(entry));
  }
  if (drop.empty()) return out;
  BELAY_TRY(auto operations, ListOperations(catalog, root.id));
  out.operation = RecordId(store.random().NewId());
  const int64_t now = store.clock().WallMillis();
  BELAY_TRY(auto writer, store.Begin());
  if (hand_on) {
    BELAY_TRY(auto all, catalog.ListCheckpoints({.root = root.id}));
    BELAY_TRY(auto handed_on, HandOn(store, all, operations, seen));
    for (LogRecord& record : handed_on) {
      record.id = RecordId(store.random().NewId());
      record.made_ms = now;
      writer->Add(std::move(record));
    }
  }
  writer->Add(MakeDrop(RecordId(store.random().NewId()), now, drop));
  writer->Add(
      DeletionRecord(out.operation, root, now, out.checkpoints, operations, why));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return out;
}

Result<std::vector<HistoryPoint>> DeletedPlaces(Catalog& catalog, const RootId& root) {
  BELAY_TRY(auto records,
            catalog.ListRecords({.kind = RecordKind::kOperation, .root = root}));
  std::vector<HistoryPoint> out;
  for (const LogRecord& record : records) {
    for (ByteSpan raw : record.fields.All(kPlace)) {
      if (raw.size() != 24 || BELAY_MUTANT("forget-deleted-places")) continue;
      ByteReader r(raw);
      HistoryPoint point;
      point.id = RecordId(Id128::FromSpan(r.Raw(16)));
      point.seq = r.U64();
      out.push_back(point);
    }
  }
  return out;
}

Result<History> LoadHistory(Catalog& catalog, const RootId& root,
                            const std::vector<CheckpointRow>& outline,
                            const std::vector<Operation>& operations) {
  if (operations.empty()) return History();
  BELAY_TRY(auto points, DeletedPlaces(catalog, root));
  points.reserve(points.size() + outline.size());
  for (const CheckpointRow& row : outline) points.push_back({row.id, row.seq});
  return TraceHistory(std::move(points), operations);
}

Result<std::optional<RecordId>> TakenBackBy(Catalog& catalog, const RootId& root,
                                            uint64_t seq) {
  std::optional<RecordId> none;
  BELAY_TRY(auto operations, ListOperations(catalog, root));
  if (operations.empty()) return none;
  BELAY_TRY(auto outline, catalog.Outline(root));
  BELAY_TRY(History history, LoadHistory(catalog, root, outline, operations));
  return history.TakenBackBy(seq);
}

Result<std::vector<Deed>> ListDeeds(Catalog& catalog, const RootId& root) {
  std::vector<Deed> out;
  BELAY_TRY(auto operations,
            catalog.ListRecords({.kind = RecordKind::kOperation, .root = root}));
  for (const LogRecord& record : operations) {
    const std::string name = record.fields.Text(kName).value_or("");
    if (name != "delete" && name != "prune" && name != "purge") continue;
    Deed deed{.id = record.id,
              .seq = record.seq,
              .made_ms = record.made_ms,
              .name = name,
              .label = record.fields.Text(kLabel).value_or(""),
              .count = record.fields.Number(kCount).value_or(1)};
    auto target = record.fields.All(kTarget);
    if (target.size() == 1 && target[0].size() == 16)
      deed.target = RecordId(Id128::FromSpan(target[0]));
    out.push_back(std::move(deed));
  }
  BELAY_TRY(auto annotations,
            catalog.ListRecords({.kind = RecordKind::kAnnotation, .root = root}));
  for (const LogRecord& record : annotations) {
    auto target = AnnotationTarget(record);
    // Only a purge says what something is described as, and is in the log itself.
    // And a repair, what is lost; and whoever lets checkpoints go, what they knew.
    if (!target || record.fields.has(kAnnotationDescription) ||
        record.fields.has(kAnnotationLost) || record.fields.has(kAnnotationSince) ||
        record.fields.has(kAnnotationExternal))
      continue;
    Deed deed{.id = record.id,
              .seq = record.seq,
              .made_ms = record.made_ms,
              .name = std::string(NameOf(record.fields)),
              .target = target};
    if (auto entry = catalog.FindById(root, target->text()); entry.ok())
      deed.label = TitleOf(entry->checkpoint);
    out.push_back(std::move(deed));
  }
  std::sort(out.begin(), out.end(),
            [](const Deed& a, const Deed& b) { return a.seq > b.seq; });
  return out;
}

}  // namespace belay
