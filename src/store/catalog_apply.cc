// What a record changes in the tables.

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/catalog_internal.h"

namespace belay {

namespace {

std::string TextForSearch(const std::optional<std::string>& text) {
  return text ? ForSearch(*text) : std::string();
}

// One path a line.
std::string PathsForSearch(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) out += ForSearch(path) + '\n';
  return out;
}

}  // namespace

std::string ForSearch(std::string_view rest) {
  std::string out;
  while (!rest.empty()) {
    char32_t code_point = 0;
    size_t length = DecodeUtf8(rest, code_point);
    if (length == 0 || code_point == 0) {
      out += ' ';
      length = 1;
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  return out;
}

Result<bool> CatalogDb::IsDropped(const LogRecord& record) {
  BELAY_TRY(Statement * get, Prepare("SELECT seq FROM drops WHERE id=?"));
  get->Bind(record.id.span());
  BELAY_TRY(bool row, get->Step());
  bool dropped = row && Unsigned(get->Int(0)) > record.seq;
  get->Start();
  return dropped;
}

Status CatalogDb::Apply(const LogRecord& record) {
  roots_.reset();
  if (record.seq == 0 || record.seq > kMaxSeq) return Ok();  // no writer gives these
  if (record.kind == RecordKind::kDrop) BELAY_OK(ApplyDrop(record));
  BELAY_TRY(bool dropped, IsDropped(record));
  if (dropped) return Ok();

  Bytes payload = EncodeLogRecord(record);
  BELAY_TRY(Statement * get, Prepare("SELECT payload FROM records WHERE seq=?"));
  get->Bind(Signed(record.seq));
  BELAY_TRY(bool there, get->Step());
  if (there) {
    ByteSpan old = get->Blob(0);
    bool stays = !std::ranges::lexicographical_compare(old, payload);
    get->Start();
    if (stays) return Ok();  // nearly always: the same record, copied
    BELAY_OK(Remove(record.seq));
  }
  return Insert(record, payload);
}

Status CatalogDb::ApplyDrop(const LogRecord& record) {
  for (const RecordId& id : DroppedBy(record)) {
    BELAY_TRY(Statement * put,
              Prepare("INSERT INTO drops VALUES(?, ?) ON CONFLICT(id) DO UPDATE "
                      "SET seq=max(seq, excluded.seq)"));
    BELAY_OK(put->Bind(id.span()).Bind(Signed(record.seq)).Run());
    BELAY_TRY(Statement * find,
              Prepare("SELECT seq FROM records WHERE id=? AND seq<?"));
    BELAY_TRY(auto gone, Sequences(find->Bind(id.span()).Bind(Signed(record.seq))));
    for (uint64_t seq : gone) BELAY_OK(Remove(seq));
  }
  return Ok();
}

Status CatalogDb::Insert(const LogRecord& record, ByteSpan payload) {
  BELAY_TRY(Statement * put,
            Prepare("INSERT INTO records VALUES(?, ?, ?, ?, ?, ?, ?)"));
  BELAY_OK(put->Bind(Signed(record.seq))
               .Bind(record.id.span())
               .Bind(static_cast<int64_t>(record.kind))
               .Bind(record.root.span())
               .Bind(record.made_ms)
               .Bind(payload)
               .Bind(Signed(RowCheck(record.seq, record.id, payload)))
               .Run());
  if (record.kind == RecordKind::kCheckpoint) return IndexCheckpoint(record);
  auto target = AnnotationTarget(record);
  if (!target) return Ok();
  BELAY_TRY(Statement * note, Prepare("INSERT INTO annotations VALUES(?, ?)"));
  BELAY_OK(note->Bind(target->span()).Bind(Signed(record.seq)).Run());
  return Reindex(*target);
}

Status CatalogDb::Remove(uint64_t seq) {
  BELAY_TRY(LogRecord record, Load(seq));
  BELAY_TRY(Statement * drop, Prepare("DELETE FROM records WHERE seq=?"));
  BELAY_OK(drop->Bind(Signed(seq)).Run());
  if (record.kind == RecordKind::kCheckpoint) return UnindexCheckpoint(seq);
  auto target = AnnotationTarget(record);
  if (!target) return Ok();
  BELAY_TRY(Statement * note,
            Prepare("DELETE FROM annotations WHERE target=? AND seq=?"));
  BELAY_OK(note->Bind(target->span()).Bind(Signed(seq)).Run());
  return Reindex(*target);
}

Status CatalogDb::IndexCheckpoint(const LogRecord& record) {
  // A kind of checkpoint that we do not know yet stays a record and nothing more.
  if (!ToCheckpoint(record).ok()) return Ok();
  BELAY_TRY(CatalogEntry entry, ToEntry(record));
  const Checkpoint& c = entry.checkpoint;
  BELAY_TRY(
      Statement * put,
      Prepare("INSERT INTO checkpoints VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
              "?, ?)"));
  auto text = [put](const std::optional<std::string>& value) {
    value ? put->Bind(AsBytes(*value)) : put->BindNull();
  };
  put->Bind(Signed(c.seq)).Bind(c.root.span()).Bind(static_cast<int64_t>(c.kind));
  put->Bind(c.made_ms).Bind(c.state.span());
  text(c.session);
  c.turn ? put->Bind(Signed(*c.turn)) : put->BindNull();
  text(c.tool_use_id);
  text(c.name);
  put->Bind(c.id.span()).Bind(entry.pinned ? 1 : 0);
  put->Bind(Signed(c.added + c.modified + c.deleted)).Bind(Signed(c.took_us));
  put->Bind(Signed(c.changed_dirs));
  BELAY_OK(put->Run());

  BELAY_TRY(Statement * words,
            Prepare("INSERT INTO search(rowid, name, note, description, prompt, paths) "
                    "VALUES(?, ?, ?, ?, ?, ?)"));
  return words->Bind(Signed(c.seq))
      .BindText(TextForSearch(c.name))
      .BindText(TextForSearch(c.note))
      .BindText(ForSearch(c.description))
      .BindText(TextForSearch(c.prompt))
      .BindText(PathsForSearch(c.paths))
      .Run();
}

Status CatalogDb::UnindexCheckpoint(uint64_t seq) {
  BELAY_TRY(Statement * row, Prepare("DELETE FROM checkpoints WHERE seq=?"));
  BELAY_OK(row->Bind(Signed(seq)).Run());
  BELAY_TRY(Statement * words, Prepare("DELETE FROM search WHERE rowid=?"));
  return words->Bind(Signed(seq)).Run();
}

Status CatalogDb::Reindex(const RecordId& id) {
  BELAY_TRY(Statement * find, Prepare("SELECT seq FROM records WHERE id=? AND kind=?"));
  BELAY_TRY(auto found, Sequences(find->Bind(id.span()).Bind(
                            static_cast<int64_t>(RecordKind::kCheckpoint))));
  for (uint64_t seq : found) {
    BELAY_TRY(LogRecord record, Load(seq));
    BELAY_OK(UnindexCheckpoint(seq));
    BELAY_OK(IndexCheckpoint(record));
  }
  return Ok();
}

}  // namespace belay
