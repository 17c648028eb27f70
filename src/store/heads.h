#pragma once

// Heads: the roots and the newest checkpoint of each, at hand without the catalogue.
//
// A checkpoint needs to know two things of the past, and asking SQLite for them cost
// 170 reads and 40 KB of write-ahead log each time. This is a small file (cache/heads)
// and the log since it was written, which is the last batch or two.
//
// Guarantees
//   * Read() knows everything published before it was called.
//   * The file is a hint: one that is missing, damaged, of another generation, or ahead
//     of a log that lost its end is not used; the whole log is read instead.
//
// Layout: docs/format.md, "cache/". Threads: one.

#include <optional>
#include <vector>

#include "store/catalog.h"
#include "store/store.h"

namespace belay {

class Heads {
 public:
  struct Last {
    RecordId id;
    uint64_t seq = 0;
    ObjectId state;
  };

  // Holds `use` shared while it reads.
  static Result<Heads> Read(Store& store);
  // The roots that the file knows, whether or not it can be used otherwise: for when
  // their records are lost.
  static std::vector<Root> SavedRoots(Fs& fs, const Fd& store_dir);
  // How far the log went for all the file knows; empty when it cannot be used.
  static std::optional<RememberedEnd> SavedEnd(Fs& fs, const Fd& store_dir);

  // By path, as Catalog::Roots(): of those that share one, the newest.
  const std::vector<RootEntry>& roots() const { return roots_; }
  // The newest checkpoint of a root, or of one that shares its path, that was not
  // dropped.
  std::optional<Last> LastOf(const RootId& root) const;
  // Number of the newest purge; 0 when there was none.
  uint64_t last_purge() const { return last_purge_; }
  // No record of this root came since Read(), nor did what was read go. Never a wrong
  // yes. Whoever asks holds `use`; under `append` the answer stays true.
  Result<bool> IsLatest(Store& store, const RootId& root) const;
  // No part of the log was unreadable: nothing is missing here.
  bool whole() const { return position_.whole; }

 private:
  struct Entry {
    RootEntry root;
    std::optional<Last> last;
  };
  struct Saved;
  static std::optional<Saved> Decode(Fs& fs, const Fd& store_dir);
  static std::optional<Heads> Load(Store& store, LogSource& log);
  Result<bool> CatchUp(LogSource& log);
  Status ReadAll(LogSource& log);
  void Finish();
  Status Save(Store& store, LogSource& log) const;
  RememberedEnd End() const;

  std::vector<Entry> entries_;
  std::vector<RootEntry> roots_;
  uint64_t last_purge_ = 0;
  // Checkpoints of roots whose own record is not known (yet).
  LogPosition position_;
  LogPosition saved_;            // where the file stands
  uint64_t records_behind_ = 0;  // read after that place
};

}  // namespace belay
