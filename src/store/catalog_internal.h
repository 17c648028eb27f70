#pragma once

// The catalogue's database, on disk or in memory: schema, what a record changes,
// queries. No locks and no files here: catalog.cc decides what is opened when.
//
// The content depends on which records were applied, not on their order: GC may copy an
// older record behind a newer one. A record is gone when a drop with a higher sequence
// number names its id, whichever came first (a drop itself cannot be taken back). Of
// two different records with one sequence number, which only a damaged log has, the one
// whose encoding is greater stays.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/catalog.h"
#include "store/pack_format.h"
#include "store/sqlite_fs.h"

struct sqlite3;
struct sqlite3_stmt;

namespace belay {

// A damaged catalogue: kCorrupt, and what to do about it.
Error CatalogDamaged(std::string_view why);

// A row that does not say what its record does.
Error RowDisagrees(uint64_t seq);

// SQLite's integers are signed.
inline int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }
inline uint64_t Unsigned(int64_t value) { return static_cast<uint64_t>(value); }
inline int64_t AsLimit(size_t limit) {
  return limit < INT64_MAX ? static_cast<int64_t>(limit) : INT64_MAX;
}

// Text as full text wants it: UTF-8 without NUL; other bytes separate words.
std::string ForSearch(std::string_view text);

// What a row of `records` carries as its check.
uint64_t RowCheck(uint64_t seq, const RecordId& id, ByteSpan payload);
// And a row of `lost`, which also says whether a collection can have taken it away.
uint64_t LostRowCheck(uint64_t seq, const RecordId& id, ByteSpan payload, bool sure);

// A prepared statement. Bind*() fill the parameters from left to right.
class Statement {
 public:
  Statement() = default;
  Statement(CatalogDb& db, sqlite3_stmt* statement) : db_(&db), stmt_(statement) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& Start();  // forgets rows and parameters
  Statement& Bind(int64_t value);
  Statement& Bind(ByteSpan blob);
  Statement& BindText(std::string_view text);
  Statement& BindNull();
  // True when there is a row.
  Result<bool> Step();
  // For what gives no rows.
  Status Run();

  // Of the present row. Views last until the next Step().
  int64_t Int(int column) const;
  bool IsNull(int column) const;
  ByteSpan Blob(int column) const;
  std::string_view Text(int column) const;
  int columns() const;
  // Type and value, so that two rows can be compared.
  std::string Show(int column) const;

 private:
  CatalogDb* db_ = nullptr;
  sqlite3_stmt* stmt_ = nullptr;
  int next_ = 1;
};

// A condition that holds for the roots (almost always there is one), and its values.
std::string RootIs(std::string_view column, const std::vector<RootId>& roots);
void BindRoots(Statement& statement, const std::vector<RootId>& roots);
inline bool IsOneOf(const std::vector<RootId>& roots, const RootId& root) {
  return std::find(roots.begin(), roots.end(), root) != roots.end();
}

class CatalogDb {
 public:
  // An empty one, with the schema, that is gone with the object.
  static Result<std::unique_ptr<CatalogDb>> InMemory();
  // The file as it is. kNotFound when there is none; kCorrupt when it is damaged or of
  // another version. `vfs` must outlive the result.
  static Result<std::unique_ptr<CatalogDb>> Open(SqliteFs& vfs, const char* file);
  // A new file with the schema, not safe against crashes until it is finished.
  static Result<std::unique_ptr<CatalogDb>> Create(SqliteFs& vfs, const char* file,
                                                   int page_size);
  ~CatalogDb();

  enum class Freshness { kCurrent, kBehind, kForeign };
  // Compares with the log; kForeign: not built from this log as it is now, or without
  // what could not be read then and can be now.
  Result<Freshness> Compare(LogSource& log);
  // Applies what is new, in one transaction. kConflict when it would be kForeign. On
  // any failure nothing is changed, and the object should be given up.
  Status CatchUp(LogSource& log);
  // The last step of Create(): from here on the file is in WAL mode.
  Status Finish();
  // Moves the WAL into the file and empties it.
  Status MoveWal();
  // What the part of the log that CatchUp() read last looked like; of all that was ever
  // read to get here LogIsWhole() tells.
  bool log_was_whole() const { return log_was_whole_; }
  // The same content in memory, for trying things on it.
  Result<std::unique_ptr<CatalogDb>> CopyToMemory();
  // Every record that can be read and matches its row's check, those in `lost` too.
  // Damage is passed over; what may be read another time is told by `unread`.
  std::vector<RememberedRecord> AllRecords(std::optional<Error>& unread);
  // Puts into `lost` what of this is neither here nor dropped.
  Status KeepLost(const std::vector<RememberedRecord>& remembered);
  // Applies the records of another one.
  Status Adopt(CatalogDb& other);
  // Position and mark as stored.
  struct Place {
    LogPosition position;
    Hash256 mark;
  };
  Result<std::optional<Place>> Stored();
  // How far the log went when it was last read and all of it flushed: for one that was
  // built when the log had lost its end, before that.
  Result<std::optional<RememberedEnd>> KnownEnd();
  Status KeepEnd(const RememberedEnd& end);

  // --- questions; see Catalog
  // ----------------------------------------------------------
  Result<std::vector<CatalogEntry>> ListCheckpoints(const CheckpointFilter& filter);
  Result<uint64_t> Count(const std::optional<RootId>& root);
  Result<uint64_t> NumberOf(const RootId& root, uint64_t seq);
  Result<NamedCheckpoint> FindByName(const std::optional<RootId>& root,
                                     std::string_view name);
  Result<CatalogEntry> FindById(const std::optional<RootId>& root,
                                std::string_view id_or_prefix);
  Result<std::vector<CatalogEntry>> Search(const std::optional<RootId>& root,
                                           std::string_view words, size_t limit,
                                           const std::optional<std::string>& session);
  Result<std::vector<CheckpointRow>> Outline(const RootId& root);
  Result<std::vector<CatalogEntry>> LoadEntries(const std::vector<uint64_t>& seqs);
  Result<std::vector<RootEntry>> Roots();
  Result<bool> LogIsWhole();
  Result<std::vector<LogRecord>> ListRecords(const RecordFilter& filter);
  Result<std::vector<LogRecord>> Annotations(const RecordId& target);

  // What SQLite itself finds wrong: tables, indexes, full text.
  Result<std::vector<std::string>> CheckStructure();
  // Where this one's rows differ from `truth`'s.
  Result<std::vector<std::string>> CompareRows(CatalogDb& truth);

  // The statement for `sql`, prepared once.
  Result<Statement*> Prepare(std::string_view sql);
  Status Execute(const char* sql);
  // The error of the last call on this connection.
  Error LastError(std::string_view doing);

 private:
  CatalogDb(sqlite3* db, SqliteFs* vfs) : db_(db), vfs_(vfs) {}
  static Result<std::unique_ptr<CatalogDb>> Connect(const char* file, SqliteFs* vfs,
                                                    bool create);
  Status CreateSchema();
  Status CheckSchema();
  Result<Hash256> SchemaHash();

  Status Apply(const LogRecord& record);
  Status ApplyDrop(const LogRecord& record);
  Result<bool> IsDropped(const LogRecord& record);
  Status Insert(const LogRecord& record, ByteSpan payload);
  Status Remove(uint64_t seq);
  Status IndexCheckpoint(const LogRecord& record);
  Status UnindexCheckpoint(uint64_t seq);
  Status Reindex(const RecordId& id);
  Status StorePlace(const Place& place);
  Result<uint64_t> NextSeq();
  // A part of the log could not be read when this was built, and more of it can be now.
  // Looked for once a connection: it takes reading the log.
  Result<bool> LacksWhatIsBack(LogSource& log);
  // Apply() would change nothing.
  Result<bool> Knows(const LogRecord& record);
  Result<std::vector<CatalogEntry>> LoadEntriesNow(const std::vector<uint64_t>& seqs);

  // A record by sequence number, checked; kCorrupt when it is not there.
  Result<LogRecord> Load(uint64_t seq);
  // The record and what annotations make of it.
  Result<CatalogEntry> LoadEntry(uint64_t seq);
  Result<CatalogEntry> ToEntry(const LogRecord& record);
  // Every root's latest record, those that share a path too, by path.
  Result<const std::vector<RootEntry>*> AllRoots();
  // The ids of `root`'s path: it and any other root there. Nothing of nothing.
  Result<std::vector<uint64_t>> SearchWords(const std::string& expression, bool of_root,
                                            const std::vector<RootId>& roots,
                                            size_t limit,
                                            const std::optional<std::string>& session);
  Result<std::vector<uint64_t>> SearchPieces(const std::vector<std::string>& pieces,
                                             bool of_root,
                                             const std::vector<RootId>& roots,
                                             size_t limit,
                                             const std::optional<std::string>& session);
  Result<std::vector<RootId>> SharingPath(const std::optional<RootId>& root);
  // First column of every row, then the statement is free again.
  static Result<std::vector<uint64_t>> Sequences(Statement& statement);

  sqlite3* db_;
  SqliteFs* vfs_;  // null in memory
  bool log_was_whole_ = true;
  std::optional<bool> lacks_;
  std::optional<std::vector<RootEntry>> roots_;  // until a record is applied
  std::map<std::string, Statement, std::less<>> statements_;
};

}  // namespace belay
