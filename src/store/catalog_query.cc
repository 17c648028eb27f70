#include <algorithm>

#include "base/escape.h"
#include "store/catalog_internal.h"

namespace belay {

namespace {

constexpr size_t kMinPrefix = 4, kIdLength = 26;
constexpr size_t kNamedWhenAmbiguous = 5;
constexpr size_t kMaxWords = 64, kMaxSearch = 4096;

int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }

int64_t AsLimit(size_t limit) {
  return static_cast<int64_t>(std::min<size_t>(limit, INT64_MAX));
}

// An empty name or note takes the old one away.
void Replace(std::optional<std::string>& value, const std::optional<std::string>& by) {
  if (!by) return;
  value = by->empty() ? std::nullopt : by;
}

void Annotate(CatalogEntry& entry, const Fields& fields) {
  Replace(entry.checkpoint.name, fields.Text(kAnnotationName));
  Replace(entry.checkpoint.note, fields.Text(kAnnotationNote));
  if (auto pinned = fields.Number(kAnnotationPinned)) entry.pinned = *pinned != 0;
  if (auto health = fields.Number(kAnnotationHealth)) {
    if (*health == 1)
      entry.health = Health::kPass;
    else if (*health == 2)
      entry.health = Health::kFail;
    else
      entry.health = std::nullopt;
  }
  for (ByteSpan raw : fields.All(kAnnotationMeta)) {
    ByteReader r(raw);
    auto pair = Fields::Decode(r);
    if (!pair.ok()) continue;
    entry.checkpoint.meta[pair->Text(1).value_or("")] = pair->Text(2).value_or("");
  }
}

bool Fits(const CheckpointFilter& filter, const Checkpoint& c) {
  return (!filter.root || c.root == *filter.root) &&
         (!filter.session || c.session == *filter.session) &&
         (!filter.kind || c.kind == *filter.kind) &&
         (!filter.turn || c.turn == *filter.turn) &&
         (!filter.tool_use_id || c.tool_use_id == *filter.tool_use_id) &&
         (!filter.state || c.state == *filter.state) &&
         (!filter.made_until_ms || c.made_ms <= *filter.made_until_ms) &&
         (!filter.before_seq || c.seq < *filter.before_seq);
}

Error RowDisagrees(uint64_t seq) {
  return CatalogDamaged("row " + std::to_string(seq) + " disagrees with its record");
}

// Every word quoted, so that nothing in it is syntax; the last may be unfinished.
Result<std::string> SearchExpression(std::string_view words) {
  if (words.size() > kMaxSearch)
    return Error(Errc::kInvalid, "search: more than 4096 bytes of words");
  std::vector<std::string> terms;
  std::string term;
  auto end_term = [&] {
    if (!term.empty()) terms.push_back('"' + std::exchange(term, {}) + '"');
  };
  for (char c : words) {
    auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f) {
      end_term();
    } else {
      term += c;
      if (c == '"') term += c;
    }
  }
  end_term();
  if (terms.size() > kMaxWords)
    return Error(Errc::kInvalid, "search: more than 64 words");
  std::string out;
  for (const std::string& t : terms) out += (out.empty() ? "" : " AND ") + t;
  if (!out.empty()) out += " *";
  return out;
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

uint64_t RowCheck(uint64_t seq, const RecordId& id, ByteSpan payload) {
  Bytes bytes;
  ByteWriter w(bytes);
  w.U64(seq);
  w.Raw(id.span());
  w.Raw(payload);
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
  for (const LogRecord& a : annotations) Annotate(entry, a.fields);
  return entry;
}

Result<CatalogEntry> CatalogDb::LoadEntry(uint64_t seq) {
  BELAY_TRY(LogRecord record, Load(seq));
  return ToEntry(record);
}

Result<std::vector<CatalogEntry>> CatalogDb::ListCheckpoints(
    const CheckpointFilter& f) {
  // Only the conditions there are, so that SQLite can pick an index for them.
  std::string sql = "SELECT seq FROM checkpoints WHERE seq>0";
  if (f.root) sql += " AND root=?";
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
  if (f.root) find->Bind(f.root->span());
  if (f.session) find->Bind(AsBytes(*f.session));
  if (f.kind) find->Bind(static_cast<int64_t>(*f.kind));
  if (f.turn) find->Bind(Signed(*f.turn));
  if (f.tool_use_id) find->Bind(AsBytes(*f.tool_use_id));
  if (f.state) find->Bind(f.state->span());
  if (f.made_until_ms) find->Bind(*f.made_until_ms);
  if (f.before_seq) find->Bind(AsLimit(*f.before_seq));
  find->Bind(AsLimit(f.limit));
  BELAY_TRY(auto found, Sequences(find->Bind(AsLimit(f.offset))));
  std::vector<CatalogEntry> out;
  for (uint64_t seq : found) {
    BELAY_TRY(CatalogEntry entry, LoadEntry(seq));
    if (!Fits(f, entry.checkpoint)) return RowDisagrees(seq);
    out.push_back(std::move(entry));
  }
  return out;
}

Result<uint64_t> CatalogDb::Count(const std::optional<RootId>& root) {
  BELAY_TRY(Statement * count,
            Prepare(root ? "SELECT count(*) FROM checkpoints WHERE root=?"
                         : "SELECT count(*) FROM checkpoints"));
  if (root) count->Bind(root->span());
  BELAY_TRY(auto rows, Sequences(*count));
  return rows.empty() ? 0 : rows[0];
}

Result<uint64_t> CatalogDb::NumberOf(const RootId& root, uint64_t seq) {
  BELAY_TRY(Statement * count,
            Prepare("SELECT count(*) FROM checkpoints WHERE root=? AND seq>=?"));
  count->Bind(root.span());
  BELAY_TRY(auto rows, Sequences(count->Bind(Signed(seq))));
  return rows.empty() ? 0 : rows[0];
}

Result<NamedCheckpoint> CatalogDb::FindByName(const std::optional<RootId>& root,
                                              std::string_view name) {
  std::string sql = "SELECT seq FROM checkpoints WHERE name=?";
  if (root) sql += " AND root=?";
  sql += " ORDER BY seq DESC";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->Bind(AsBytes(name));
  if (root) find->Bind(root->span());
  BELAY_TRY(auto found, Sequences(*find));
  if (found.empty())
    return Error(Errc::kNotFound, "no checkpoint is named " + EscapeForDisplay(name));
  NamedCheckpoint out;
  BELAY_TRY(out.entry, LoadEntry(found[0]));
  const Checkpoint& c = out.entry.checkpoint;
  if (c.name != name || (root && c.root != *root)) return RowDisagrees(c.seq);
  out.others = found.size() - 1;
  return out;
}

Result<CatalogEntry> CatalogDb::FindById(const std::optional<RootId>& root,
                                         std::string_view prefix) {
  Error none(Errc::kNotFound, "no checkpoint " + EscapeForDisplay(prefix));
  auto range = IdRange(prefix);
  if (!range) return none;
  std::string sql =
      "SELECT r.seq, r.id FROM records r JOIN checkpoints c ON c.seq=r.seq "
      "WHERE r.id BETWEEN ? AND ?";
  if (root) sql += " AND r.root=?";
  sql += " ORDER BY r.id, r.seq DESC";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->Bind(range->first.span()).Bind(range->second.span());
  if (root) find->Bind(root->span());

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
  if (!c.id.text().starts_with(prefix) || (root && c.root != *root))
    return RowDisagrees(seq);
  return entry;
}

Result<std::vector<CatalogEntry>> CatalogDb::Search(const std::optional<RootId>& root,
                                                    std::string_view words,
                                                    size_t limit) {
  BELAY_TRY(std::string expression, SearchExpression(words));
  std::vector<CatalogEntry> out;
  if (expression.empty()) return out;
  std::string sql = "SELECT rowid FROM search WHERE search MATCH ?";
  if (root) sql += " AND rowid IN (SELECT seq FROM checkpoints WHERE root=?)";
  sql += " ORDER BY rowid DESC LIMIT ?";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->BindText(expression);
  if (root) find->Bind(root->span());
  BELAY_TRY(auto found, Sequences(find->Bind(AsLimit(limit))));
  for (uint64_t seq : found) {
    BELAY_TRY(CatalogEntry entry, LoadEntry(seq));
    if (root && entry.checkpoint.root != *root) return RowDisagrees(seq);
    out.push_back(std::move(entry));
  }
  return out;
}

Result<std::vector<RootEntry>> CatalogDb::Roots() {
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
  return out;
}

Result<std::vector<LogRecord>> CatalogDb::ListRecords(const RecordFilter& f) {
  std::string sql = "SELECT seq FROM records WHERE kind=?";
  if (f.root) sql += " AND root=?";
  if (f.before_seq) sql += " AND seq<?";
  sql += " ORDER BY seq DESC LIMIT ?";
  BELAY_TRY(Statement * find, Prepare(sql));
  find->Bind(static_cast<int64_t>(f.kind));
  if (f.root) find->Bind(f.root->span());
  if (f.before_seq) find->Bind(AsLimit(*f.before_seq));
  BELAY_TRY(auto found, Sequences(find->Bind(AsLimit(f.limit))));
  std::vector<LogRecord> out;
  for (uint64_t seq : found) {
    BELAY_TRY(LogRecord record, Load(seq));
    if (record.kind != f.kind || (f.root && record.root != *f.root))
      return RowDisagrees(seq);
    out.push_back(std::move(record));
  }
  return out;
}

}  // namespace belay
