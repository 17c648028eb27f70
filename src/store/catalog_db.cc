#include <sqlite3.h>

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/catalog_internal.h"

namespace belay {

namespace {

// Raised whenever the schema, or what is put into it, changes: files with another one
// are built anew.
constexpr int64_t kSchemaVersion = 5;

// records: every record that was not dropped; the payload is its encoding, and the rest
// of the row repeats parts of it for SQLite to look for. checkpoints, annotations,
// search: what is derived from records, for the same reason. `name`, `pinned` and the
// full text are as the annotations left them. drops: ids of dropped records, with the
// highest sequence number of a drop. lost: records that the file before this one had
// and that the packs, a part of whose log cannot be read, no longer show; no answer
// comes from it, `belay verify` names them and `belay repair` publishes them again.
// `sure`: no collection can have taken them away.
constexpr const char* kSchema = R"sql(
CREATE TABLE meta(key INTEGER PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE records(
  seq INTEGER PRIMARY KEY, id BLOB NOT NULL, kind INTEGER NOT NULL, root BLOB NOT NULL,
  made_ms INTEGER NOT NULL, payload BLOB NOT NULL, row_check INTEGER NOT NULL);
CREATE INDEX records_id ON records(id);
CREATE INDEX records_kind ON records(kind, root, seq);
CREATE TABLE checkpoints(
  seq INTEGER PRIMARY KEY, root BLOB NOT NULL, kind INTEGER NOT NULL,
  made_ms INTEGER NOT NULL, state BLOB NOT NULL, session BLOB, turn INTEGER,
  tool_use_id BLOB, name BLOB, id BLOB NOT NULL, pinned INTEGER NOT NULL,
  changed INTEGER NOT NULL, took_us INTEGER NOT NULL,
  changed_dirs INTEGER NOT NULL);
CREATE INDEX checkpoints_root ON checkpoints(root, seq);
CREATE INDEX checkpoints_session ON checkpoints(session, seq)
  WHERE session IS NOT NULL;
CREATE INDEX checkpoints_name ON checkpoints(name, seq) WHERE name IS NOT NULL;
CREATE TABLE annotations(target BLOB NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(target, seq)) WITHOUT ROWID;
CREATE TABLE drops(id BLOB PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE lost(
  seq INTEGER NOT NULL, id BLOB NOT NULL, sure INTEGER NOT NULL, payload BLOB NOT NULL,
  row_check INTEGER NOT NULL);
CREATE VIRTUAL TABLE search USING fts5(name, note, description, prompt,
  paths, tokenize='unicode61 remove_diacritics 2');
)sql";

// Rows of `meta`.
// kMetaDoubt is there when a part of the log that was read to get here was damaged,
// kMetaEnd says how far the log is known to have gone (RememberedEnd), flushed.
constexpr int64_t kMetaPlace = 1, kMetaSchemaHash = 2, kMetaDoubt = 3, kMetaEnd = 4;

Bytes EncodePlace(const CatalogDb::Place& place) {
  Bytes out;
  ByteWriter w(out);
  w.U64(place.position.generation);
  w.Raw(place.position.pack.span());
  w.U64(place.position.offset);
  w.Raw(place.mark.span());
  w.U64(Check64(out));
  return out;
}

std::optional<CatalogDb::Place> DecodePlace(ByteSpan bytes) {
  constexpr size_t kLength = 8 + 16 + 8 + 32;
  if (bytes.size() != kLength + 8) return std::nullopt;
  ByteReader r(bytes);
  CatalogDb::Place place;
  place.position.generation = r.U64();
  place.position.pack = PackId(Id128::FromSpan(r.Raw(16)));
  place.position.offset = r.U64();
  place.mark = Hash256::FromSpan(r.Raw(32));
  if (r.U64() != Check64(bytes.first(kLength))) return std::nullopt;
  return place;
}

constexpr size_t kEndLength = 8 + 16 + 8 + 8 + 8;

Bytes EncodeEnd(const RememberedEnd& end) {
  Bytes out;
  ByteWriter w(out);
  w.U64(end.position.generation);
  w.Raw(end.position.pack.span());
  w.U64(end.position.offset);
  w.U64(end.next_seq);
  w.U64(Check64(out));
  return out;
}

std::optional<RememberedEnd> DecodeEnd(ByteSpan bytes) {
  if (bytes.size() != kEndLength) return std::nullopt;
  ByteReader r(bytes);
  RememberedEnd end;
  end.position.generation = r.U64();
  end.position.pack = PackId(Id128::FromSpan(r.Raw(16)));
  end.position.offset = r.U64();
  end.next_seq = r.U64();
  if (BELAY_MUTANT("end-number-unchecked")) {
    (void)r.U64();
    return end;
  }
  if (r.U64() != Check64(bytes.first(kEndLength - 8)) || end.next_seq > kMaxSeq)
    return std::nullopt;
  return end;
}

// The catalogue has no code of its own to run: whatever a damaged file asks for is
// refused.
void Harden(sqlite3* db) {
  constexpr int kOn[] = {SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE};
  constexpr int kOff[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA,
                          SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                          SQLITE_DBCONFIG_DQS_DDL, SQLITE_DBCONFIG_DQS_DML};
  for (int option : kOn) sqlite3_db_config(db, option, 1, nullptr);
  for (int option : kOff) sqlite3_db_config(db, option, 0, nullptr);
}

}  // namespace

Error CatalogDamaged(std::string_view why) {
  return Error(Errc::kCorrupt, "catalogue: " + std::string(why))
      .WithHint("run: belay repair");
}

// --- the connection
// ----------------------------------------------------------------------

CatalogDb::~CatalogDb() {
  statements_.clear();
  sqlite3_close(db_);
}

Error CatalogDb::LastError(std::string_view doing) {
  int code = sqlite3_extended_errcode(db_);
  std::string text = "catalogue: " + std::string(doing) + ": " + sqlite3_errmsg(db_);
  std::optional<Error> cause = vfs_ != nullptr ? vfs_->TakeError() : std::nullopt;
  switch (code & 0xff) {
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_FULL:
    case SQLITE_READONLY:
      if (cause) return Context(std::move(*cause), "catalogue");
      return Error((code & 0xff) == SQLITE_FULL ? Errc::kNoSpace : Errc::kIo, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(Errc::kBusy, text);
    case SQLITE_NOMEM:
      return Error(Errc::kIo, text);
    default:
      // Our statements are fixed: whatever else SQLite does not like is in the file.
      return CatalogDamaged(std::string(doing) + ": " + sqlite3_errmsg(db_));
  }
}

Status CatalogDb::Execute(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return Ok();
  return LastError("statement");
}

Result<Statement*> CatalogDb::Prepare(std::string_view sql) {
  auto known = statements_.find(sql);
  if (known == statements_.end()) {
    sqlite3_stmt* raw = nullptr;
    int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    Statement made(*this, raw);
    if (rc != SQLITE_OK) return LastError("prepare");
    known = statements_.emplace(std::string(sql), std::move(made)).first;
  }
  return &known->second.Start();
}

Result<std::unique_ptr<CatalogDb>> CatalogDb::Connect(const char* file, SqliteFs* vfs,
                                                      bool create) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (create) flags |= SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  int rc = sqlite3_open_v2(file, &raw, flags, vfs != nullptr ? vfs->name() : nullptr);
  if (raw == nullptr) return Error(Errc::kIo, "catalogue: SQLite does not start");
  std::unique_ptr<CatalogDb> db(new CatalogDb(raw, vfs));
  if (rc != SQLITE_OK) return db->LastError("open");
  Harden(raw);
  // Exclusive before the first look at the file: then the WAL's index is on the heap.
  BELAY_OK(
      db->Execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY;"
                  "PRAGMA cell_size_check=ON; PRAGMA secure_delete=ON;"
                  "PRAGMA cache_size=-8192"));
  return db;
}

Result<std::unique_ptr<CatalogDb>> CatalogDb::InMemory() {
  BELAY_TRY(auto db, Connect(":memory:", nullptr, true));
  BELAY_OK(db->CreateSchema());
  return db;
}

Result<std::unique_ptr<CatalogDb>> CatalogDb::Create(SqliteFs& vfs, const char* file,
                                                     int page_size) {
  BELAY_TRY(auto db, Connect(file, &vfs, true));
  // No journal and no flushes: until it is finished and renamed the file is nothing.
  std::string set = "PRAGMA page_size=" + std::to_string(page_size) +
                    "; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF";
  BELAY_OK(db->Execute(set.c_str()));
  int reserve = SqliteFs::kPageCheckSize;
  if (sqlite3_file_control(db->db_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve) !=
      SQLITE_OK)
    return db->LastError("reserve");
  BELAY_OK(db->CreateSchema());
  return db;
}

Status CatalogDb::Finish() {
  statements_.clear();  // an open statement would keep the mode from changing
  BELAY_TRY(Statement * mode, Prepare("PRAGMA journal_mode=WAL"));
  BELAY_TRY(bool row, mode->Step());
  if (!row || mode->Text(0) != "wal")
    return Error(Errc::kUnsupported, "catalogue: SQLite refuses its WAL mode");
  mode->Start();
  return Ok();
}

Result<std::unique_ptr<CatalogDb>> CatalogDb::Open(SqliteFs& vfs, const char* file) {
  BELAY_TRY(auto db, Connect(file, &vfs, false));
  BELAY_OK(db->Execute("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"));
  int persist = 1;
  sqlite3_file_control(db->db_, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
  BELAY_OK(db->CheckSchema());
  return db;
}

Status CatalogDb::MoveWal() {
  int rc = sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                     nullptr);
  if (rc != SQLITE_OK) return LastError("checkpoint");
  return Ok();
}

Result<std::unique_ptr<CatalogDb>> CatalogDb::CopyToMemory() {
  BELAY_TRY(auto copy, Connect(":memory:", nullptr, true));
  sqlite3_backup* backup = sqlite3_backup_init(copy->db_, "main", db_, "main");
  if (backup == nullptr) return copy->LastError("copy");
  sqlite3_backup_step(backup, -1);
  // What went wrong in reading is said by this connection, the rest by the other.
  if (sqlite3_backup_finish(backup) != SQLITE_OK) {
    bool mine = sqlite3_errcode(db_) != SQLITE_OK;
    std::optional<Error> cause = vfs_ != nullptr ? vfs_->TakeError() : std::nullopt;
    if (cause) return Context(std::move(*cause), "catalogue");
    return (mine ? *this : *copy).LastError("copy");
  }
  return copy;
}

// --- what was lost
// -------------------------------------------------------------------------

std::vector<RememberedRecord> CatalogDb::AllRecords(std::optional<Error>& unread) {
  std::vector<RememberedRecord> out;
  auto stopped = [&unread](Error error) {
    if (error.code != Errc::kCorrupt && !unread) unread = std::move(error);
  };
  for (const char* sql :
       {"SELECT seq, id, payload, row_check, 1 FROM records ORDER BY seq",
        "SELECT seq, id, payload, row_check, sure FROM lost ORDER BY seq"}) {
    auto rows = Prepare(sql);
    if (!rows.ok()) {
      stopped(std::move(rows).error());
      continue;
    }
    for (;;) {
      auto row = (*rows)->Step();
      if (!row.ok()) {  // damaged: as far as it can be read
        stopped(std::move(row).error());
        break;
      }
      if (!*row) break;
      if ((*rows)->Blob(1).size() != 16) continue;
      const uint64_t seq = Unsigned((*rows)->Int(0));
      const RecordId id(Id128::FromSpan((*rows)->Blob(1)));
      const ByteSpan payload = (*rows)->Blob(2);
      const uint64_t check = Unsigned((*rows)->Int(3));
      // The column may be flipped, the check of it not. A row of `lost` that an earlier
      // build wrote has the check of a record.
      bool sure = (*rows)->Int(4) != 0;
      if (check == LostRowCheck(seq, id, payload, !sure) &&
          !BELAY_MUTANT("lost-sure-unchecked"))
        sure = !sure;
      else if (check != LostRowCheck(seq, id, payload, sure) &&
               check != RowCheck(seq, id, payload))
        continue;
      auto record = DecodeLogRecord(payload);
      if (record.ok() && record->seq == seq && record->id == id)
        out.push_back({std::move(*record), sure});
    }
    (*rows)->Start();
  }
  return out;
}

Status CatalogDb::KeepLost(const std::vector<RememberedRecord>& remembered) {
  BELAY_OK(Execute("BEGIN IMMEDIATE"));
  for (const auto& [record, sure] : remembered) {
    BELAY_TRY(bool dropped, IsDropped(record));
    BELAY_TRY(Statement * find,
              Prepare("SELECT count(*) FROM records WHERE seq=? AND id=?"));
    BELAY_TRY(auto there,
              Sequences(find->Bind(Signed(record.seq)).Bind(record.id.span())));
    if (dropped || there.at(0) != 0) continue;
    Bytes payload = EncodeLogRecord(record);
    BELAY_TRY(Statement * put, Prepare("INSERT INTO lost VALUES(?, ?, ?, ?, ?)"));
    BELAY_OK(put->Bind(Signed(record.seq))
                 .Bind(record.id.span())
                 .Bind(sure ? 1 : 0)
                 .Bind(payload)
                 .Bind(Signed(LostRowCheck(record.seq, record.id, payload, sure)))
                 .Run());
  }
  return Execute("COMMIT");
}

Status CatalogDb::Adopt(CatalogDb& other) {
  BELAY_OK(Execute("BEGIN IMMEDIATE"));
  BELAY_TRY(Statement * rows, other.Prepare("SELECT seq FROM records ORDER BY seq"));
  BELAY_TRY(auto all, Sequences(*rows));
  for (uint64_t seq : all) {
    auto record = other.Load(seq);
    if (record.ok()) BELAY_OK(Apply(*record));
  }
  return Execute("COMMIT");
}

// --- schema
// ------------------------------------------------------------------------------

Result<Hash256> CatalogDb::SchemaHash() {
  BELAY_TRY(Statement * rows,
            Prepare("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema "
                    "ORDER BY rowid"));
  Sha256 hash;
  for (;;) {
    BELAY_TRY(bool row, rows->Step());
    if (!row) return hash.Finish();
    for (int i = 0; i < rows->columns(); ++i) {
      hash.Update(AsBytes(rows->Show(i)));
      hash.Update(AsBytes("\n"));
    }
  }
}

Status CatalogDb::CreateSchema() {
  BELAY_OK(Execute("BEGIN IMMEDIATE"));
  BELAY_OK(Execute(kSchema));
  std::string version = "PRAGMA user_version=" + std::to_string(kSchemaVersion);
  BELAY_OK(Execute(version.c_str()));
  BELAY_TRY(Hash256 hash, SchemaHash());
  BELAY_TRY(Statement * put, Prepare("INSERT INTO meta VALUES(?, ?)"));
  BELAY_OK(put->Bind(kMetaSchemaHash).Bind(hash.span()).Run());
  return Execute("COMMIT");
}

Status CatalogDb::CheckSchema() {
  BELAY_TRY(Statement * version, Prepare("PRAGMA user_version"));
  BELAY_TRY(bool row, version->Step());
  if (!row || version->Int(0) != kSchemaVersion)
    return CatalogDamaged("unknown version");
  version->Start();
  BELAY_TRY(Hash256 hash, SchemaHash());
  BELAY_TRY(Statement * stored, Prepare("SELECT value FROM meta WHERE key=?"));
  stored->Bind(kMetaSchemaHash);
  BELAY_TRY(row, stored->Step());
  bool same = row && std::ranges::equal(stored->Blob(0), hash.span());
  stored->Start();
  if (!same) return CatalogDamaged("the tables are not the ones we made");
  return Ok();
}

// --- how far it is
// -------------------------------------------------------------------------

Result<std::optional<CatalogDb::Place>> CatalogDb::Stored() {
  BELAY_TRY(Statement * get, Prepare("SELECT value FROM meta WHERE key=?"));
  get->Bind(kMetaPlace);
  BELAY_TRY(bool row, get->Step());
  if (!row) return std::optional<Place>();
  auto place = DecodePlace(get->Blob(0));
  get->Start();
  if (!place) return CatalogDamaged("its position does not match its check");
  return place;
}

Status CatalogDb::StorePlace(const Place& place) {
  BELAY_TRY(Statement * put, Prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)"));
  return put->Bind(kMetaPlace).Bind(EncodePlace(place)).Run();
}

Result<std::optional<RememberedEnd>> CatalogDb::KnownEnd() {
  BELAY_TRY(Statement * get, Prepare("SELECT value FROM meta WHERE key=?"));
  get->Bind(kMetaEnd);
  BELAY_TRY(bool row, get->Step());
  if (row && get->Blob(0).size() == kEndLength) {
    auto end = DecodeEnd(get->Blob(0));
    get->Start();
    if (!end)
      return CatalogDamaged("what it knows of the end does not match its check");
    return end;
  }
  get->Start();
  // A file from before there was this row, or its number had a check of its own; nearly
  // always it is the same place.
  BELAY_TRY(auto stored, Stored());
  if (!stored) return std::optional<RememberedEnd>();
  BELAY_TRY(uint64_t next_seq, NextSeq());
  return std::optional(RememberedEnd{stored->position, next_seq});
}

Result<uint64_t> CatalogDb::NextSeq() {
  BELAY_TRY(Statement * last, Prepare("SELECT coalesce(max(seq), 0) FROM records"));
  BELAY_TRY(auto highest, Sequences(*last));
  return highest.at(0) + 1;
}

Status CatalogDb::KeepEnd(const RememberedEnd& end) {
  BELAY_TRY(Statement * put, Prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)"));
  return put->Bind(kMetaEnd).Bind(EncodeEnd(end)).Run();
}

Result<CatalogDb::Freshness> CatalogDb::Compare(LogSource& log) {
  BELAY_TRY(auto stored, Stored());
  if (!stored) return Freshness::kBehind;
  BELAY_TRY(auto known, KnownEnd());
  if (known) log.Expect(*known);
  BELAY_TRY(bool lacks, LacksWhatIsBack(log));
  if (lacks) return Freshness::kForeign;
  bool more = false;
  auto end = log.Read(stored->position, [&more](const LogRecord&) -> Status {
    more = true;
    return Error(Errc::kExists, "there is more");  // one is enough to know
  });
  if (more) return Freshness::kBehind;
  if (!end.ok()) return std::move(end).error();
  if (end->generation != stored->position.generation) return Freshness::kForeign;
  BELAY_TRY(auto mark, log.Mark(stored->position));
  return mark == stored->mark ? Freshness::kCurrent : Freshness::kForeign;
}

// A log that is damaged is read to its end by whoever asks first, until it is repaired:
// what could not be read when this was built (one EIO is enough) would be missing until
// then otherwise, without a word.
Result<bool> CatalogDb::LacksWhatIsBack(LogSource& log) {
  if (lacks_) return *lacks_;
  BELAY_TRY(bool whole, LogIsWhole());
  if (whole || BELAY_MUTANT("doubt-for-ever") ||
      BELAY_MUTANT("catalogue-lacks-what-is-back")) {
    lacks_ = false;
    return false;
  }
  bool lacks = false;
  BELAY_TRY(LogPosition end,
            log.Read(std::nullopt, [&](const LogRecord& record) -> Status {
              if (lacks) return Ok();
              BELAY_TRY(bool known, Knows(record));
              lacks = !known;
              return Ok();
            }));
  lacks_ = lacks || end.whole;  // all of it is back: built anew, there is no doubt
  return *lacks_;
}

Result<bool> CatalogDb::Knows(const LogRecord& record) {
  if (record.seq == 0 || record.seq > kMaxSeq) return true;
  BELAY_TRY(bool dropped, IsDropped(record));
  if (dropped) return true;
  BELAY_TRY(Statement * get, Prepare("SELECT payload FROM records WHERE seq=?"));
  get->Bind(Signed(record.seq));
  BELAY_TRY(bool there, get->Step());
  const bool known = there && !std::ranges::lexicographical_compare(
                                  get->Blob(0), EncodeLogRecord(record));
  get->Start();
  return known;
}

Result<bool> CatalogDb::LogIsWhole() {
  BELAY_TRY(Statement * get, Prepare("SELECT count(*) FROM meta WHERE key=?"));
  BELAY_TRY(auto doubts, Sequences(get->Bind(kMetaDoubt)));
  return doubts.empty() || doubts[0] == 0;
}

Status CatalogDb::CatchUp(LogSource& log) {
  BELAY_OK(Execute("BEGIN IMMEDIATE"));
  auto work = [&]() -> Status {
    BELAY_TRY(auto stored, Stored());
    std::optional<LogPosition> after;
    if (stored) after = stored->position;
    BELAY_TRY(LogPosition end,
              log.Read(after, [this](const LogRecord& r) { return Apply(r); }));
    log_was_whole_ = end.whole;
    if (!end.whole) lacks_.reset();
    // Looked at after reading: what had been read before may have been cut off while we
    // read on.
    if (stored) {
      BELAY_TRY(auto before, log.Mark(stored->position));
      if (end.generation != stored->position.generation || before != stored->mark)
        return Error(Errc::kConflict, "catalogue: the log is another one now");
    }
    BELAY_TRY(auto mark, log.Mark(end));
    if (!mark) return Error(Errc::kConflict, "catalogue: the log changed meanwhile");
    BELAY_OK(StorePlace({end, *mark}));
    if (end.flushed) {
      BELAY_TRY(uint64_t next_seq, NextSeq());
      BELAY_OK(KeepEnd({end, next_seq}));
    } else if (!stored) {
      RememberedEnd none;
      none.position.generation = end.generation;
      BELAY_OK(KeepEnd(none));
    }
    if (!end.whole) {
      BELAY_TRY(Statement * put, Prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)"));
      BELAY_OK(put->Bind(kMetaDoubt).Bind(ByteSpan()).Run());
    }
    return Execute("COMMIT");
  };
  Status done = work();
  if (!done.ok()) (void)Execute("ROLLBACK");  // closing would do the same
  return done;
}

}  // namespace belay
