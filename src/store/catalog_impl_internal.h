#pragma once

// What a Catalog holds: catalog.cc keeps the file, catalog_questions.cc asks it.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "store/catalog_internal.h"

namespace belay {

struct Catalog::Impl {
  Impl(const CatalogPlace& p, std::unique_ptr<LogSource> l, const CatalogOptions& o)
      : place(p), log(std::move(l)), options(o) {}

  // While it lives SQLite may write.
  class Writing {
   public:
    explicit Writing(Impl& impl) : impl_(impl) {
      if (impl_.vfs) impl_.vfs->AllowWrites(true);
    }
    ~Writing() {
      if (impl_.vfs) impl_.vfs->AllowWrites(false);
    }

   private:
    Impl& impl_;
  };

  // All below are called with the log held and the `catalog` lock; the first three with
  // either mode, the rest with it exclusive.
  Status Prepare();
  Result<uint64_t> Changes();
  Result<bool> Connect();  // false: there is nothing to connect to, build it
  Status AboutToWrite();
  Status Update();
  Status BuildNew();
  Status WriteNew();
  Status MoveIntoPlace();
  void MoveLongWal();
  void GiveUp();
  std::vector<RememberedRecord> OldRecords(CatalogDb& old, uint64_t generation,
                                           std::optional<Error>& unread);

  // The file opened so that nothing can be changed; kNotFound when there is none.
  struct Frozen {
    std::optional<HeldLock> lock;  // absent on a read-only disk
    std::unique_ptr<Fd> dir;       // its address stays
    std::unique_ptr<SqliteFs> vfs;
    std::unique_ptr<CatalogDb> db;
  };
  // As they are: to remember what is left in a damaged file, row by row.
  enum class Pages { kWhole, kAsTheyAre };
  Result<Frozen> Freeze(Pages pages);
  // The same for who has the lock already, in either mode.
  Result<Frozen> OpenFrozen(Pages pages);

  // Runs `ask` on a database that holds everything published so far.
  template <class Answer>
  Result<Answer> Read(const std::function<Result<Answer>(CatalogDb&)>& ask);
  template <class Answer>
  Result<Answer> ReadFile(const std::function<Result<Answer>(CatalogDb&)>& ask);
  template <class Answer>
  Result<Answer> ReadMemory(const std::function<Result<Answer>(CatalogDb&)>& ask);

  CatalogPlace place;
  std::unique_ptr<LogSource> log;
  CatalogOptions options;

  Fd dir;
  Fd changes;
  std::unique_ptr<SqliteFs> vfs;
  std::unique_ptr<CatalogDb> db;  // good while `changes` says `seen`
  uint64_t seen = 0;
  bool asked = false;                 // ReadFile() got as far as the question
  std::unique_ptr<CatalogDb> memory;  // instead of db, when there is trouble
  std::optional<Error> trouble;
  // A repair has asked the old file for what it knows, as often as is worth it.
  bool old_was_asked = false;
};

}  // namespace belay
