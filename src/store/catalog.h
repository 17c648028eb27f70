#pragma once

// Catalog answers questions about the log quickly: lists, lookups, full text. It is an
// index over the packs in SQLite (catalog/catalog.db), never the only copy of anything.
//
// Guarantees
//   * An answer holds everything published before the question was asked. Whoever asks
//     brings the index up to date first; publishing a batch does not touch it.
//   * Every record handed out was checked against its row's check, and what a row says
//     beside it against the record: a mismatch is never an answer; the file is built
//     anew, and the question asked again. A row that is missing only Check() can
//     notice.
//   * Killed or without power at any instruction, the next question is answered the
//   same:
//     from the index, brought up to date, or from one built anew.
//   * What it knows and a damaged log no longer shows is not forgotten: such records
//   are
//     kept aside when it is built anew (Remembered()), though no answer comes from
//     them.
//   * An index that cannot be opened, written or built (full disk, read-only, EIO) does
//     not stop anybody: the questions are then answered from one in memory, and
//     trouble() says why. CatchUp() and Rebuild() report the failure itself.
//
// What is built anew without asking: a missing, damaged or unknown file, one of another
// generation, and one whose log lost what had been read of it (a batch that was written
// and never flushed, before a power cut), and one that was built while a part of the
// log could not be read, once more of it can be. A new one is written beside the old
// one and renamed over it; not when the log is damaged and the old one, which may be
// the last to know, cannot be read at the moment.
//
// Layout: docs/format.md, "catalog/"; the schema is in catalog_db.cc. Rows are dropped
// with secure_delete on, but FTS5 forgets words only when it merges: purge calls
// Rebuild().
//
// Processes: the store's `catalog` lock, shared to read and exclusive to write.
// SQLite's own locks and its shared memory are not used, and 3.40 may lose a WAL that
// two connections checkpoint at once. A connection is therefore alone with its files
// and would not notice another writer: catalog/changes holds a number that every writer
// raises before it writes; who finds it raised opens the files again. Nothing here may
// be called while holding `use` exclusively.
//
// Threads: one at a time. Two threads take two Catalogs, as two processes do.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace belay {

// The log a catalogue is an index of: the store's, or a test's.
class LogSource {
 public:
  virtual ~LogSource() = default;
  // Keeps packs from being taken away; held around the calls below. Comes before the
  // `catalog` lock.
  virtual Result<HeldLock> Hold() = 0;
  // As Store::ReadLogHeld.
  virtual Result<LogPosition> Read(
      const std::optional<LogPosition>& after,
      const std::function<Status(const LogRecord&)>& visit) = 0;
  // A hash of what stands in the pack right before `position`: another one, or none,
  // means that what was read up to there is no longer what the log holds. Looks at the
  // packs as the last Read() found them.
  virtual Result<std::optional<Hash256>> Mark(const LogPosition& position) = 0;
  // The log went as far as this once: as Store::Expect.
  virtual void Expect(const RememberedEnd& end) { (void)end; }
};

// The log of a store, which must outlive it.
std::unique_ptr<LogSource> MakeStoreLog(Store& store);

enum class Health : uint8_t { kPass = 1, kFail = 2 };

// A checkpoint as it stands now: name, note and meta are what the latest annotations
// made of them (an empty name or note takes it away, and so does a key without a
// value).
struct CatalogEntry {
  Checkpoint checkpoint;
  bool pinned = false;
  std::optional<Health> health;
  // Paths whose content was damaged and given up (belay repair --accept-loss).
  uint64_t lost = 0;
  bool operator==(const CatalogEntry&) const = default;
};
// What an annotation with these fields makes of it.
void ApplyAnnotation(CatalogEntry& entry, const Fields& fields);

// As much of a checkpoint as a list of thousands needs to be counted, folded and drawn.
// It comes from the index alone; what is shown is loaded, and checked, by its number.
struct CheckpointRow {
  uint64_t seq = 0;
  RecordId id;
  CheckpointKind kind = CheckpointKind::kAuto;
  bool pinned = false;
  std::optional<std::string> session;
  std::optional<uint64_t> turn;
  uint64_t changed = 0;       // what was added, modified and deleted
  uint64_t changed_dirs = 0;  // of that: directories
  uint64_t took_us = 0;
  int64_t made_ms = 0;
};

struct CheckpointFilter {
  std::optional<RootId> root = {};
  std::optional<std::string> session = {};
  std::optional<CheckpointKind> kind = {};
  std::optional<uint64_t> turn = {};
  std::optional<std::string> tool_use_id = {};
  std::optional<ObjectId> state = {};
  std::optional<int64_t> made_until_ms = {};  // made then or before
  std::optional<uint64_t> before_seq = {};    // to go on after the last one of a page
  bool oldest_first = false;
  size_t offset = 0;  // how many to pass over first
  size_t limit = SIZE_MAX;
};

struct RecordFilter {
  RecordKind kind = RecordKind::kOperation;
  std::optional<RootId> root = {};
  std::optional<uint64_t> before_seq = {};
  size_t limit = SIZE_MAX;
};

struct NamedCheckpoint {
  CatalogEntry entry;
  size_t others = 0;  // older ones with the same name
};

struct RootEntry {
  Root root;
  RecordId record;
  uint64_t seq = 0;
  int64_t made_ms = 0;
};

// A record as a catalogue remembers it. Not sure: a collection may have taken it away
// since.
struct RememberedRecord {
  LogRecord record;
  bool sure = true;
};

struct CatalogOptions {
  uint64_t checkpoint_wal_bytes = uint64_t{1} << 20;  // move a longer WAL into the file
  int page_size = 4096;                               // of a file built anew
};

// What a catalogue works with; all of it must outlive the catalogue.
struct CatalogPlace {
  Fs& fs;
  Clock& clock;
  Random& random;
  StoreLocks& locks;
  const Fd& store_dir;
};

class CatalogDb;

// Where no tail says how far the open pack goes: has the store expect what the
// catalogue and the heads remember of it. Asks nobody otherwise. Whoever is about to
// write, or to call the log whole, does this first.
void ExpectRemembered(Store& store, const PackId& open);

class Catalog {
 public:
  // Touches no file yet. `store` must outlive the catalogue. Without a `log` only
  // Remembered() may be asked.
  static Result<std::unique_ptr<Catalog>> Open(Store& store,
                                               const CatalogOptions& options = {});
  static Result<std::unique_ptr<Catalog>> Open(const CatalogPlace& place,
                                               std::unique_ptr<LogSource> log,
                                               const CatalogOptions& options = {});
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // --- upkeep ------------------------------------------------------------------------
  // Brings the file up to date. Questions do that themselves; a daemon may do it early.
  Status CatchUp();
  // Builds the file anew from the packs, whatever it holds.
  Status Rebuild();
  // Moves aside what is no file under the name of one of ours, and what is no directory
  // under the name of catalog/; what was done, in words. Rebuild() then asks no more of
  // an old file that cannot be read: for a repair, which asked Remembered() before.
  Result<std::vector<std::string>> ClearTheWay();
  // Everything that is wrong with the file, in words; empty when nothing is. Changes
  // nothing: it works on a copy in memory. A file that is not there yet is not wrong,
  // and neither is one that knows more than a damaged log shows.
  Result<std::vector<std::string>> Check();
  // Every record the file holds, as it is, without bringing it up to date: a hint when
  // the log lost something. Changes nothing. Empty when there is no file or none that
  // can be read. A record is `sure` when the file is of generation `generation`.
  // The log is told how far it went by then.
  std::vector<RememberedRecord> Remembered(uint64_t generation);
  // How far the log went for all the file knows; empty as above.
  std::optional<RememberedEnd> KnownEnd();
  // Why the last question was answered without the file; empty when it was not.
  const std::optional<Error>& trouble() const;

  // --- questions ---------------------------------------------------------------------
  // Newest first, unless the filter says otherwise.
  Result<std::vector<CatalogEntry>> ListCheckpoints(const CheckpointFilter& filter);
  Result<std::optional<CatalogEntry>> LastCheckpoint(const RootId& root);
  // All checkpoints of a root, newest first; 20,000 of them in about 20 ms.
  Result<std::vector<CheckpointRow>> Outline(const RootId& root);
  // The checkpoints with these sequence numbers, in that order. kCorrupt when one is
  // not there.
  Result<std::vector<CatalogEntry>> Load(const std::vector<uint64_t>& seqs);
  Result<uint64_t> Count(const std::optional<RootId>& root);
  // The place of the checkpoint `seq` among those of the root, 1 = newest: what people
  // count by in `belay list`.
  Result<uint64_t> NumberOf(const RootId& root, uint64_t seq);

  // The newest checkpoint with exactly this name.
  Result<NamedCheckpoint> FindByName(const std::optional<RootId>& root,
                                     std::string_view name);
  // By id, or the beginning of one (at least 4 characters). kInvalid when several begin
  // so; the text names some of them.
  Result<CatalogEntry> FindById(const std::optional<RootId>& root,
                                std::string_view id_or_prefix);
  // A name, else an id or prefix: the tail of the order that cli.md gives for REF.
  Result<NamedCheckpoint> Find(const std::optional<RootId>& root, std::string_view ref);

  // Checkpoints in whose name, note, description, prompt and changed paths all the
  // words occur; the best first, of equal ones the newest. First come those that have
  // them in the name, then in name and note alone, then the rest, of which the newest
  // 2000 are ranked. When nothing is found and there is more than plain words in it
  // (symbols, letters beyond ASCII), what contains each piece anywhere, of the newest
  // 10,000: full text has no words for symbols.
  // Words "in quotes" follow each other; the last one, unless quoted, and one with a *
  // behind it may be unfinished. Anything may stand in `words`, none of it is syntax
  // otherwise; kInvalid above 4096 bytes or 64 words.
  Result<std::vector<CatalogEntry>> Search(
      const std::optional<RootId>& root, std::string_view words, size_t limit,
      const std::optional<std::string>& session = {});

  // The latest record of each root, by path. Roots that share a path (two of `belay on`
  // at once, or one while the log could not be read) are one: the newest stands for
  // them here, and whatever is asked of any of them is answered of all.
  Result<std::vector<RootEntry>> Roots();
  // False when a part of the log could not be read: answers may lack what stood there.
  Result<bool> LogIsWhole();
  // The root that holds `path` and is deepest; empty when none does.
  Result<std::optional<RootEntry>> InnermostRoot(const AbsPath& path);

  // Records of any kind that were not dropped, newest first.
  Result<std::vector<LogRecord>> ListRecords(const RecordFilter& filter);
  // The annotations of one record, oldest first: what goes when the record goes.
  Result<std::vector<LogRecord>> Annotations(const RecordId& target);

 private:
  struct Impl;
  explicit Catalog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace belay
