#include <algorithm>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/catalog_internal.h"

namespace belay {

namespace {

constexpr size_t kMinPrefix = 4, kIdLength = 26;
constexpr size_t kNamedWhenAmbiguous = 5;

// An empty name or note takes the old one away.
void Replace(std::optional<std::string>& value, const std::optional<std::string>& by) {
  if (!by) return;
  value = by->empty() ? std::nullopt : by;
}

}  // namespace

void ApplyAnnotation(CatalogEntry& entry, const Fields& fields) {
  Replace(entry.checkpoint.name, fields.Text(kAnnotationName));
  Replace(entry.checkpoint.note, fields.Text(kAnnotationNote));
  if (auto text = fields.Text(kAnnotationDescription))
    entry.checkpoint.description = std::move(*text);
  if (auto pinned = fields.Number(kAnnotationPinned)) entry.pinned = *pinned != 0;
  if (auto health = fields.Number(kAnnotationHealth)) {
    if (*health == 1)
      entry.health = Health::kPass;
    else if (*health == 2)
      entry.health = Health::kFail;
    else
      entry.health = std::nullopt;
  }
  entry.lost += fields.Number(kAnnotationLost).value_or(0);
  ApplyHandedOn(fields, entry.checkpoint);
  for (ByteSpan raw : fields.All(kAnnotationMeta)) {
    ByteReader r(raw);
    auto pair = Fields::Decode(r);
    if (!pair.ok()) continue;
    const std::string key = pair->Text(1).value_or("");
    if (auto value = pair->Text(2))
      entry.checkpoint.meta[key] = std::move(*value);
    else
      entry.checkpoint.meta.erase(key);
  }
}

namespace {

bool Fits(const CheckpointFilter& filter, const std::vector<RootId>& roots,
          const Checkpoint& c) {
  return (!filter.root || IsOneOf(roots, c.root)) &&
         (!filter.session || c.session == *filter.session) &&
         (!filter.kind || c.kind == *filter.kind) &&
         (!filter.turn || c.turn == *filter.turn) &&
         (!filter.tool_use_id || c.tool_use_id == *filter.tool_use_id) &&
         (!filter.state || c.state == *filter.state) &&
         (!filter.made_until_ms || c.made_ms <= *filter.made_until_ms) &&
         (!filter.before_seq || c.seq < *filter.before_seq);
}

// The ids that begin with `prefix` lie between the two.
std::optional<std::pair<Id128, Id128>> IdRange(std::string_view prefix) {
  if (prefix.size() < kMinPrefix || prefix.size() > kIdLength) return std::nullopt;
  std::string text(prefix);
  auto low = Id128::FromText(text + std::string(kIdLength - text.size(), 'a'));
  auto high = Id128::FromText(text + std::string(kIdLength - text.size(), '9'));
  if (!low || !high) return std::nullopt;
  return std::make_pair(*low, *high);
}

}  // namespace

Error RowDisagrees(uint64_t seq) {
  return CatalogDamaged("row " + std::to_string(seq) + " disagrees with its record");
}

std::string RootIs(std::string_view column, const std::vector<RootId>& roots) {
  std::string sql = " AND ";
  sql += column;
  if (roots.size() == 1) return sql + "=?";
  sql += " IN (";
  for (size_t i = 0; i < roots.size(); ++i) sql += i == 0 ? "?" : ",?";
  return sql + ")";
}

void BindRoots(Statement& statement, const std::vector<RootId>& roots) {
  for (const RootId& root : roots) statement.Bind(root.span());
}

uint64_t RowCheck(uint64_t seq, const RecordId& id, ByteSpan payload) {
  Bytes bytes;
  ByteWriter w(bytes);
  w.U64(seq);
  w.Raw(id.span());
  w.Raw(payload);
  return Check64(bytes);
}

uint64_t LostRowCheck(uint64_t seq, const RecordId& id, ByteSpan payload, bool sure) {
  Bytes bytes;
  ByteWriter w(bytes);
  w.U64(RowCheck(seq, id, payload));
  w.U8(sure ? 1 : 0);
  return Check64(bytes);
}

Result<std::vector<uint64_t>> CatalogDb::Sequences(Statement& statement) {
  std::vector<uint64_t> out;
  for (;;) {
    BELAY_TRY(bool row, statement.Step());
    if (!row) return out;
    out.push_back(static_cast<uint64_t>(statement.Int(0)));
  }
}

Result<LogRecord> CatalogDb::Load(uint64_t seq) {
  BELAY_TRY(Statement * get,
            Prepare("SELECT id, kind, root, made_ms, payload, row_check FROM records "
                    "WHERE seq=?"));
  get->Bind(Signed(seq));
  BELAY_TRY(bool row, get->Step());
  std::string which = "record " + std::to_string(seq);
  if (!row) return CatalogDamaged(which + " is missing");
  ByteSpan id = get->Blob(0);
  if (id.size() != 16) return RowDisagrees(seq);
  RecordId record_id(Id128::FromSpan(id));
  if (Signed(RowCheck(seq, record_id, get->Blob(4))) != get->Int(5))
    return CatalogDamaged(which + " does not match its check");
  auto record = DecodeLogRecord(get->Blob(4));
  if (!record.ok()) return CatalogDamaged(which + ": " + record.error().what);
  bool same = record->seq == seq && record->id == record_id &&
              static_cast<int64_t>(record->kind) == get->Int(1) &&
              std::ranges::equal(record->root.span(), get->Blob(2)) &&
              record->made_ms == get->Int(3);
  get->Start();
  if (!same) return RowDisagrees(seq);
  return record;
}

Result<std::vector<LogRecord>> CatalogDb::Annotations(const RecordId& target) {
  BELAY_TRY(Statement * find,
            Prepare("SELECT seq FROM annotations WHERE target=? ORDER BY seq"));
  BELAY_TRY(auto found, Sequences(find->Bind(target.span())));
  std::vector<LogRecord> out;
  for (uint64_t seq : found) {
    BELAY_TRY(LogRecord record, Load(seq));
    if (AnnotationTarget(record) != target) return RowDisagrees(seq);
    out.push_back(std::move(record));
  }
  return out;
}

Result<CatalogEntry> CatalogDb::ToEntry(const LogRecord& record) {
  CatalogEntry entry;
  auto checkpoint = ToCheckpoint(record);
  if (!checkpoint.ok()) return RowDisagrees(record.seq);
  entry.checkpoint = std::move(*checkpoint);
  BELAY_TRY(auto annotations, Annotations(record.id));
  for (const LogRecord& a : annotations) ApplyAnnotation(entry, a.fields);
  return entry;
}

Result<CatalogEntry> CatalogDb::LoadEntry(uint64_t seq) {
  BELAY_TRY(LogRecord record, Load(seq));
  return ToEntry(record);
}

Result<std::vector<CatalogEntry>> CatalogDb::ListCheckpoints(
    const CheckpointFilter& f) {
  BELAY_TRY(auto roots, SharingPath(f.root));
  // Only the conditions there are, so that SQLite can pick an index for them.
  std::string sql = "SELECT seq FROM checkpoints WHERE seq>0";
  if (f.root) sql += RootIs("root", roots);
  if (f.session) sql += " AND session=?";
  if (f.kind) sql += " AND kind=?";
  if (f.turn) sql += " AND turn=?";
  if (f.tool_use_id) sql += " AND tool_use_id=?";
  if (f.state) sql += " AND state=?";
  if (f.made_until_ms) sql += " AND made_ms<=?";
  if (f.before_seq) sql += " AND seq<?";
  sql += f.oldest_first ? " ORDER BY seq LIMIT ? OFFSET ?"
                        : " ORDER BY seq DESC LIMIT ? OFFSET ?";
  BELAY_TRY(Statement * find, Prepare(sql));
  BindRoots(*find, roots);
  if (f.session) find->Bind(AsBytes(*f.session));
  if (f.kind) find->Bind(static_cast<int64_t>(*f.kind));
  if (f.turn) find->Bind(Signed(*f.turn));
  if (f.tool_use_id) find->Bind(AsBytes(*f.tool_use_id));
  if (f.state) find->Bind(f.state->span());
  if (f.made_until_ms) find->Bind(*f.made_until_ms);
  if (f.before_seq) find->Bind(AsLimit(*f.before_seq));
  find->Bind(AsLimit(f.limit));
  BELAY_TRY(auto found, Sequences(find->Bind(AsLimit(f.offset))));
  BELAY_TRY(auto out, LoadEntries(found));
  for (const CatalogEntry& entry : out)
    if (!Fits(f, roots, entry.checkpoint)) return RowDisagrees(entry.checkpoint.seq);
  return out;
}

Result<uint64_t> CatalogDb::Count(const std::optional<RootId>& root) {
  BELAY_TRY(auto roots, SharingPath(root));
  std::string sql = "SELECT count(*) FROM checkpoints WHERE seq>0";
  if (root) sql += RootIs("root", roots);
  BELAY_TRY(Statement * count, Prepare(sql));
  BindRoots(*count, roots);
  BELAY_TRY(auto rows, Sequences(*count));
  return rows.empty() ? 0 : rows[0];
}

Result<uint64_t> CatalogDb::NumberOf(const RootId& root, uint64_t seq) {
  BELAY_TRY(auto roots, SharingPath(root));
  BELAY_TRY(Statement * count, Prepare("SELECT count(*) FROM checkpoints WHERE seq>=?" +
                                       RootIs("root", roots)));
  count->Bind(Signed(seq));
  BindRoots(*count, roots);
  BELAY_TRY(auto rows, Sequences(*count));
  return rows.empty() ? 0 : rows[0];
}

Result<NamedCheckpoint> CatalogDb::FindByName(const std::optional<RootId>& root,
                                              std::string_view name) {
  BELAY_TRY(auto roots, SharingPath(root));
  std::string sql = "SELECT seq FROM checkpoints WHERE name=?";
  if (root) sql += RootIs("root", roots);
  sql += " ORDER BY seq DESC";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->Bind(AsBytes(name));
  BindRoots(*find, roots);
  BELAY_TRY(auto found, Sequences(*find));
  if (found.empty())
    return Error(Errc::kNotFound, "no checkpoint is named " + EscapeText(name));
  NamedCheckpoint out;
  BELAY_TRY(out.entry, LoadEntry(found[0]));
  const Checkpoint& c = out.entry.checkpoint;
  if (c.name != name || (root && !IsOneOf(roots, c.root))) return RowDisagrees(c.seq);
  out.others = found.size() - 1;
  return out;
}

Result<CatalogEntry> CatalogDb::FindById(const std::optional<RootId>& root,
                                         std::string_view prefix) {
  Error none(Errc::kNotFound, "no checkpoint " + EscapeForDisplay(prefix));
  auto range = IdRange(prefix);
  if (!range) return none;
  BELAY_TRY(auto roots, SharingPath(root));
  std::string sql =
      "SELECT r.seq, r.id FROM records r JOIN checkpoints c ON c.seq=r.seq "
      "WHERE r.id BETWEEN ? AND ?";
  if (root) sql += RootIs("r.root", roots);
  sql += " ORDER BY r.id, r.seq DESC";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->Bind(range->first.span()).Bind(range->second.span());
  BindRoots(*find, roots);

  std::vector<Id128> ids;
  uint64_t seq = 0;
  while (ids.size() <= kNamedWhenAmbiguous) {
    BELAY_TRY(bool row, find->Step());
    if (!row) break;
    if (find->Blob(1).size() != 16) continue;
    Id128 id = Id128::FromSpan(find->Blob(1));
    if (!ids.empty() && ids.back() == id) continue;  // the newest came first
    if (ids.empty()) seq = static_cast<uint64_t>(find->Int(0));
    ids.push_back(id);
  }
  find->Start();
  if (ids.empty()) return none;
  if (ids.size() > 1) {
    std::string text = std::string(prefix) + " could be";
    for (size_t i = 0; i < ids.size() && i < kNamedWhenAmbiguous; ++i)
      text += (i == 0 ? " " : ", ") + ids[i].text();
    if (ids.size() > kNamedWhenAmbiguous) text += ", ...";
    return Error(Errc::kInvalid, text).WithHint("give more of the id");
  }
  BELAY_TRY(CatalogEntry entry, LoadEntry(seq));
  const Checkpoint& c = entry.checkpoint;
  if (!c.id.text().starts_with(prefix) || (root && !IsOneOf(roots, c.root)))
    return RowDisagrees(seq);
  return entry;
}

Result<std::vector<CatalogEntry>> CatalogDb::LoadEntries(
    const std::vector<uint64_t>& seqs) {
  // In one transaction, or SQLite looks at the file again for each.
  BELAY_OK(Execute("BEGIN"));
  auto out = LoadEntriesNow(seqs);
  Status ended = Execute("COMMIT");
  if (!out.ok() || ended.ok()) return out;
  return std::move(ended).error();
}

Result<std::vector<CatalogEntry>> CatalogDb::LoadEntriesNow(
    const std::vector<uint64_t>& seqs) {
  std::vector<CatalogEntry> out;
  out.reserve(seqs.size());
  // Of many, few are annotated: which, is asked once.
  constexpr size_t kMany = 64;
  std::unordered_set<RecordId> annotated;
  if (seqs.size() > kMany) {
    BELAY_TRY(Statement * targets, Prepare("SELECT DISTINCT target FROM annotations"));
    for (;;) {
      BELAY_TRY(bool row, targets->Step());
      if (!row) break;
      if (targets->Blob(0).size() == 16)
        annotated.insert(RecordId(Id128::FromSpan(targets->Blob(0))));
    }
  }
  for (uint64_t seq : seqs) {
    BELAY_TRY(LogRecord record, Load(seq));
    if (seqs.size() <= kMany || annotated.contains(record.id)) {
      BELAY_TRY(CatalogEntry entry, ToEntry(record));
      out.push_back(std::move(entry));
      continue;
    }
    auto checkpoint = ToCheckpoint(record);
    if (!checkpoint.ok()) return RowDisagrees(seq);
    out.emplace_back().checkpoint = std::move(*checkpoint);
  }
  return out;
}

Result<std::vector<CheckpointRow>> CatalogDb::Outline(const RootId& root) {
  BELAY_TRY(auto roots, SharingPath(root));
  BELAY_TRY(Statement * rows,
            Prepare("SELECT seq, id, kind, pinned, session, turn, changed, took_us, "
                    "made_ms, changed_dirs FROM checkpoints WHERE seq>0" +
                    RootIs("root", roots) + " ORDER BY seq DESC"));
  BindRoots(*rows, roots);
  std::vector<CheckpointRow> out;
  BELAY_TRY(uint64_t count, Count(root));
  out.reserve(static_cast<size_t>(std::min<uint64_t>(count, 1 << 20)));
  for (;;) {
    BELAY_TRY(bool more, rows->Step());
    if (!more) return out;
    CheckpointRow& row = out.emplace_back();
    row.seq = static_cast<uint64_t>(rows->Int(0));
    if (rows->Blob(1).size() != 16) {
      rows->Start();
      return RowDisagrees(row.seq);
    }
    row.id = RecordId(Id128::FromSpan(rows->Blob(1)));
    row.kind = static_cast<CheckpointKind>(rows->Int(2));
    row.pinned = rows->Int(3) != 0;
    if (!rows->IsNull(4)) row.session = std::string(AsText(rows->Blob(4)));
    if (!rows->IsNull(5)) row.turn = static_cast<uint64_t>(rows->Int(5));
    row.changed = static_cast<uint64_t>(rows->Int(6));
    row.took_us = static_cast<uint64_t>(rows->Int(7));
    row.made_ms = rows->Int(8);
    row.changed_dirs = static_cast<uint64_t>(rows->Int(9));
  }
}

Result<const std::vector<RootEntry>*> CatalogDb::AllRoots() {
  if (roots_) return &*roots_;
  BELAY_TRY(Statement * find,
            Prepare("SELECT max(seq) FROM records WHERE kind=? GROUP BY root"));
  BELAY_TRY(auto found, Sequences(find->Bind(static_cast<int64_t>(RecordKind::kRoot))));
  std::vector<RootEntry> out;
  for (uint64_t seq : found) {
    BELAY_TRY(LogRecord record, Load(seq));
    auto root = ToRoot(record);
    if (!root.ok()) continue;  // one that says no path protects nothing
    out.push_back({std::move(*root), record.id, seq, record.made_ms});
  }
  std::ranges::sort(out, [](const RootEntry& a, const RootEntry& b) {
    return std::tie(a.root.path, a.seq) < std::tie(b.root.path, b.seq);
  });
  roots_ = std::move(out);
  return &*roots_;
}

Result<std::vector<RootEntry>> CatalogDb::Roots() {
  BELAY_TRY(const auto* all, AllRoots());
  std::vector<RootEntry> out;
  for (const RootEntry& entry : *all) {
    // The newest comes last.
    if (!out.empty() && out.back().root.path == entry.root.path)
      out.back() = entry;
    else
      out.push_back(entry);
  }
  return out;
}

Result<std::vector<RootId>> CatalogDb::SharingPath(const std::optional<RootId>& root) {
  std::vector<RootId> out;
  if (!root) return out;
  out.push_back(*root);
  BELAY_TRY(const auto* all, AllRoots());
  auto at =
      std::ranges::find(*all, *root, [](const RootEntry& e) { return e.root.id; });
  if (at == all->end() || BELAY_MUTANT("one-path-two-histories")) return out;
  for (const RootEntry& entry : *all)
    if (entry.root.path == at->root.path && entry.root.id != *root)
      out.push_back(entry.root.id);
  return out;
}

Result<std::vector<LogRecord>> CatalogDb::ListRecords(const RecordFilter& f) {
  BELAY_TRY(auto roots, SharingPath(f.root));
  std::string sql = "SELECT seq FROM records WHERE kind=?";
  if (f.root) sql += RootIs("root", roots);
  if (f.before_seq) sql += " AND seq<?";
  sql += " ORDER BY seq DESC LIMIT ?";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->Bind(static_cast<int64_t>(f.kind));
  BindRoots(*find, roots);
  if (f.before_seq) find->Bind(AsLimit(*f.before_seq));
  BELAY_TRY(auto found, Sequences(find->Bind(AsLimit(f.limit))));
  std::vector<LogRecord> out;
  for (uint64_t seq : found) {
    BELAY_TRY(LogRecord record, Load(seq));
    if (record.kind != f.kind || (f.root && !IsOneOf(roots, record.root)))
      return RowDisagrees(seq);
    out.push_back(std::move(record));
  }
  return out;
}

}  // namespace belay
