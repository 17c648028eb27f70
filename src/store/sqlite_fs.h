#pragma once

// SqliteFs lets SQLite reach its files through our Fs, in one directory.
//
// Guarantees
//   * Every file operation of a connection that names this VFS is one call of the Fs,
//     so MemFs and FaultFs drive SQLite too. (SQLite seeds its own random numbers from
//     the system's; nothing that is stored depends on them but the salts of a WAL.)
//   * While writes are not allowed nothing is written, cut or removed: an attempt
//     fails. (An empty WAL may be created by opening.)
//   * A page of the main file that is not what was written there is kCorrupt, never
//     content: its last kPageCheckSize bytes, which whoever creates the file must have
//     SQLite reserve, are a check of the rest. SQLite's own looks do not find what
//     misleads a search alone: of the flipped bits in full text's pages that change
//     answers, FTS5's integrity-check misses some.
//   * The first flush of a journal or WAL also flushes the directory that names it.
//
// There is no locking and no shared memory: who may read and write when is the caller's
// business. A connection must use PRAGMA locking_mode=EXCLUSIVE, whose WAL index is on
// the heap, and must be closed before the SqliteFs is destroyed.
//
// Threads: one at a time, as the connections that use it.

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/fs.h"
#include "base/random.h"

namespace belay {

class SqliteFs {
 public:
  enum class Access { kReadWrite, kReadOnly };
  // Registers itself with SQLite under a name of its own. All of these must outlive it;
  // `dir` is where the files are. kReadOnly: files are opened for reading and none is
  // created, so that a read-only disk will do; a WAL that is not there reads as empty.
  static Result<std::unique_ptr<SqliteFs>> Register(Fs& fs, Clock& clock,
                                                    Random& random, const Fd& dir,
                                                    Access access = Access::kReadWrite);
  ~SqliteFs();
  SqliteFs(const SqliteFs&) = delete;
  SqliteFs& operator=(const SqliteFs&) = delete;

  // What sqlite3_open_v2 is given to find this VFS.
  const char* name() const;
  void AllowWrites(bool allow);
  static constexpr size_t kPageCheckSize = 8;
  // Not checked: for who reads what is left of a damaged file, and checks each row.
  void CheckPages(bool check);
  // What the Fs said when an operation last failed; SQLite itself only knows "I/O
  // error".
  std::optional<Error> TakeError();
  // A flush failed since this was made: the files can no longer be relied on.
  bool flush_failed() const;

 private:
  struct Impl;
  explicit SqliteFs(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace belay
