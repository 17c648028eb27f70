#include "store/catalog.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "store/catalog_impl_internal.h"
#include "store/heads.h"
#include "store/private.h"
#include "store/stray_pack.h"

namespace belay {

namespace {

constexpr const char* kDbFile = "catalog.db";
constexpr const char* kNewFile = "catalog.new";
constexpr const char* kNextFile = "catalog.next";

const Name& DirName() {
  static const Name name = Name::Literal("catalog");
  return name;
}
const Name& DbName() {
  static const Name name = Name::Literal(kDbFile);
  return name;
}
const Name& WalName() {
  static const Name name = Name::Literal("catalog.db-wal");
  return name;
}
const Name& NewName() {
  static const Name name = Name::Literal(kNewFile);
  return name;
}
const Name& NextName() {
  static const Name name = Name::Literal(kNextFile);
  return name;
}
const Name& ChangesName() {
  static const Name name = Name::Literal("changes");
  return name;
}

// Damaged, of another version, or not there.
bool IsWorthless(Errc code) {
  return code == Errc::kCorrupt || code == Errc::kNotFound;
}

Status Remove(Fs& fs, const Fd& dir, const Name& name) {
  BELAY_TRY(const bool kept, KeepPack(fs, dir, name));
  if (kept) return Ok();
  Status done = fs.Unlink(dir, name);
  if (!done.ok() && done.error().code == Errc::kNotFound) return Ok();
  return done;
}

}  // namespace

Status Catalog::Impl::Prepare() {
  if (vfs) return Ok();
  auto opened = place.fs.Open(place.store_dir, DirName(), OpenMode::Directory());
  if (!opened.ok() && opened.error().code == Errc::kNotFound) {
    Status made = place.fs.MakeDir(place.store_dir, DirName(), 0700);
    if (!made.ok() && made.error().code != Errc::kExists) return made;
    opened = place.fs.Open(place.store_dir, DirName(), OpenMode::Directory());
  }
  if (!opened.ok()) return std::move(opened).error();
  BELAY_TRY(changes, place.fs.Open(*opened, ChangesName(), OpenMode::OpenOrCreate()));
  dir = std::move(*opened);
  BELAY_TRY(vfs, SqliteFs::Register(place.fs, place.clock, place.random, dir));
  return Ok();
}

Result<uint64_t> Catalog::Impl::Changes() {
  std::array<std::byte, 8> bytes{};
  BELAY_TRY(size_t got, ReadFull(place.fs, changes, 0, bytes));
  return got == bytes.size() ? LoadU64(bytes.data()) : 0;  // just created: none yet
}

Result<bool> Catalog::Impl::Connect() {
  BELAY_OK(Prepare());
  BELAY_TRY(uint64_t now, Changes());
  // A pack has its name, or had: another file may have it by now.
  const bool strange = now == PackAsNumber();
  if (strange) {
    BELAY_TRY(changes, place.fs.Open(dir, ChangesName(), OpenMode::OpenOrCreate()));
    BELAY_TRY(now, Changes());
  }
  if (db && now == seen && !strange) return true;
  db.reset();
  seen = now;
  auto opened = CatalogDb::Open(*vfs, kDbFile);
  if (opened.ok()) {
    db = std::move(*opened);
    return true;
  }
  if (IsWorthless(opened.error().code)) return false;
  return std::move(opened).error();
}

// Others must notice before there is anything to notice. Not flushed: a power cut ends
// whoever had the files open.
Status Catalog::Impl::AboutToWrite() {
  if (seen == PackAsNumber()) {
    BELAY_TRY([[maybe_unused]] bool kept, KeepPack(place.fs, dir, ChangesName()));
    BELAY_TRY(changes, place.fs.Open(dir, ChangesName(), OpenMode::OpenOrCreate()));
    BELAY_TRY(seen, Changes());
  }
  std::array<std::byte, 8> bytes;
  StoreU64(bytes.data(), seen + 1);
  BELAY_OK(WriteFull(place.fs, changes, 0, bytes));
  ++seen;
  return Ok();
}

Status Catalog::Impl::Update() {
  Status prepared = Prepare();
  if (!prepared.ok()) return prepared;
  Writing writing(*this);
  BELAY_TRY(bool there, Connect());
  if (!there) return BuildNew();
  auto freshness = db->Compare(*log);
  if (!freshness.ok()) {
    db.reset();
    if (freshness.error().code == Errc::kCorrupt) return BuildNew();
    return std::move(freshness).error();
  }
  if (*freshness == CatalogDb::Freshness::kCurrent) return Ok();
  if (*freshness == CatalogDb::Freshness::kForeign) return BuildNew();
  BELAY_OK(AboutToWrite());
  // Of somebody who was interrupted before he took the old file away: it counts for
  // nothing beside one that answers, and takes as much room.
  (void)Remove(place.fs, dir, NextName());
  Status caught_up = db->CatchUp(*log);
  if (caught_up.ok()) {
    MoveLongWal();
    if (db) return Ok();
    BELAY_TRY(there, Connect());
    return there ? Ok() : BuildNew();
  }
  GiveUp();
  Errc code = caught_up.error().code;
  if (code == Errc::kCorrupt || code == Errc::kConflict) return BuildNew();
  return caught_up;
}

// A failure costs the connection and no more: the WAL is as good as the file.
void Catalog::Impl::MoveLongWal() {
  auto stat = place.fs.StatAt(dir, WalName());
  if (!stat.ok() || stat->size <= options.checkpoint_wal_bytes) return;
  if (!db->MoveWal().ok()) GiveUp();
}

// After a failure the connection is not used again, and neither are files whose flush
// failed: the kernel may have dropped the pages, and would not say so twice.
void Catalog::Impl::GiveUp() {
  db.reset();
  if (!vfs->flush_failed()) return;
  (void)Remove(place.fs, dir, DbName());
  vfs.reset();
  changes = Fd();
  dir = Fd();
}

Status Catalog::Impl::BuildNew() {
  Status prepared = Prepare();  // GiveUp() may have closed everything
  if (!prepared.ok()) return prepared;
  Writing writing(*this);
  db.reset();
  // What is no file is not ours to remove.
  for (const Name* name : {&DbName(), &WalName(), &NewName(), &NextName()}) {
    auto stat = place.fs.StatAt(dir, *name);
    if (stat.ok() && stat->type != FileType::kRegular)
      return Error(Errc::kIo, "catalog/" + name->bytes() + " is " +
                                  std::string(FileTypeName(stat->type)) +
                                  ", not a file")
          .WithHint("belay repair moves it aside");
  }
  BELAY_OK(AboutToWrite());
  Status built = WriteNew();
  if (built.ok()) built = MoveIntoPlace();
  if (!built.ok()) {
    (void)Remove(place.fs, dir, NewName());
    GiveUp();
    return built;
  }
  auto opened = CatalogDb::Open(*vfs, kDbFile);
  if (!opened.ok()) return std::move(opened).error();
  db = std::move(*opened);
  return Ok();
}

Status Catalog::Impl::WriteNew() {
  BELAY_OK(Remove(place.fs, dir, NewName()));  // of somebody who was interrupted
  std::optional<RememberedEnd> end;
  std::optional<Error> unread;
  if (!old_was_asked) {
    auto known = [&]() -> Result<std::optional<RememberedEnd>> {
      BELAY_TRY(Frozen old, OpenFrozen(Pages::kAsTheyAre));
      return old.db->KnownEnd();
    }();
    if (known.ok())
      end = *known;
    else if (!IsWorthless(known.error().code))
      unread = std::move(known).error();
  }
  if (end) log->Expect(*end);
  {
    BELAY_TRY(auto fresh, CatalogDb::Create(*vfs, kNewFile, options.page_size));
    BELAY_OK(fresh->CatchUp(*log));
    BELAY_TRY(auto known, fresh->KnownEnd());
    // Nobody says how far the log goes, and who may know could not be read this time.
    if (unread && (!known || known->position.pack.is_zero())) return std::move(*unread);
    if (!fresh->log_was_whole() && !BELAY_MUTANT("catalogue-forgets-lost")) {
      // The old file may be the last to know what cannot be read any more.
      BELAY_TRY(auto now, fresh->Stored());
      auto old = [&]() -> Result<std::vector<RememberedRecord>> {
        BELAY_TRY(Frozen file, OpenFrozen(Pages::kAsTheyAre));
        return OldRecords(*file.db, now->position.generation, unread);
      }();
      if (old.ok())
        BELAY_OK(fresh->KeepLost(*old));
      else if (!IsWorthless(old.error().code))
        unread = std::move(old).error();
      // Nor may it be forgotten how far the log went.
      if (end && end->position.generation == now->position.generation &&
          (!known || known->position.pack.is_zero() ||
           (known->position.pack == end->position.pack &&
            known->position.offset < end->position.offset)))
        BELAY_OK(fresh->KeepEnd(*end));
      // It may be read another time, unless it is replaced now.
      if (unread && !old_was_asked && !BELAY_MUTANT("catalogue-forgets-unread"))
        return std::move(*unread);
    }
    BELAY_OK(fresh->Finish());
  }
  BELAY_TRY(Fd file, place.fs.Open(dir, NewName(), OpenMode::ReadWrite()));
  BELAY_OK(place.fs.Sync(file));
  return file.Close();
}

std::vector<RememberedRecord> Catalog::Impl::OldRecords(CatalogDb& old,
                                                        uint64_t generation,
                                                        std::optional<Error>& unread) {
  auto stored = old.Stored();
  const bool same =
      stored.ok() && *stored && (*stored)->position.generation == generation;
  if (!stored.ok() && stored.error().code != Errc::kCorrupt && !unread)
    unread = stored.error();  // or they would be doubted for good
  std::vector<RememberedRecord> records = old.AllRecords(unread);
  if (!same)
    for (RememberedRecord& r : records) r.sure = false;
  return records;
}

Result<Catalog::Impl::Frozen> Catalog::Impl::Freeze(Pages pages) {
  auto held = place.locks.Acquire(StoreLock::kCatalog, LockMode::kShared);
  // A read-only disk refuses: nobody writes.
  if (!held.ok() && held.error().code != Errc::kRefused) return std::move(held).error();
  BELAY_TRY(Frozen frozen, OpenFrozen(pages));
  if (held.ok()) frozen.lock = std::move(*held);
  return frozen;
}

Result<Catalog::Impl::Frozen> Catalog::Impl::OpenFrozen(Pages pages) {
  Frozen frozen;
  BELAY_TRY(Fd opened,
            place.fs.Open(place.store_dir, DirName(), OpenMode::Directory()));
  frozen.dir = std::make_unique<Fd>(std::move(opened));
  BELAY_TRY(frozen.vfs, SqliteFs::Register(place.fs, place.clock, place.random,
                                           *frozen.dir, SqliteFs::Access::kReadOnly));
  frozen.vfs->CheckPages(pages == Pages::kWhole);
  auto file = CatalogDb::Open(*frozen.vfs, kDbFile);
  // Somebody was interrupted while the names changed: the new file has all that the old
  // one knew. Beside an old one it counts for nothing, which may know more by now.
  if (!file.ok() && file.error().code == Errc::kNotFound &&
      !BELAY_MUTANT("catalogue-forgets-new"))
    file = CatalogDb::Open(*frozen.vfs, kNextFile);
  if (!file.ok()) return std::move(file).error();
  frozen.db = std::move(*file);
  return frozen;
}

// A database beside the WAL of another one would be read together with it, and a
// database that lost its WAL in the middle of a checkpoint is damaged without a sign.
// So each step is durable before the next:
// 1. the new file gets a name that says that it is whole, 2. the old file goes, 3. its
// WAL goes, 4. the new file gets the name.
// Between 2 and 4 there is no file, and the next question builds one; what only the old
// one knew it finds in the one that is whole.
Status Catalog::Impl::MoveIntoPlace() {
  BELAY_TRY(bool kept, KeepPack(place.fs, dir, NextName()));
  BELAY_OK(place.fs.Rename(dir, NewName(), dir, NextName(), RenameHow::kReplace));
  BELAY_OK(place.fs.Sync(dir));
  auto wal = place.fs.StatAt(dir, WalName());
  if (wal.ok()) {
    BELAY_OK(Remove(place.fs, dir, DbName()));
    BELAY_OK(place.fs.Sync(dir));
    BELAY_OK(Remove(place.fs, dir, WalName()));
    BELAY_OK(place.fs.Sync(dir));
  } else if (wal.error().code != Errc::kNotFound) {
    return std::move(wal).error();
  }
  BELAY_TRY(kept, KeepPack(place.fs, dir, DbName()));
  (void)kept;
  BELAY_OK(place.fs.Rename(dir, NextName(), dir, DbName(), RenameHow::kReplace));
  return place.fs.Sync(dir);
}

// --- Catalog
// -------------------------------------------------------------------------------

Catalog::Catalog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Catalog::~Catalog() = default;

Result<std::unique_ptr<Catalog>> Catalog::Open(Store& store,
                                               const CatalogOptions& options) {
  return Open({store.fs(), store.clock(), store.random(), store.locks(), store.dir()},
              MakeStoreLog(store), options);
}

Result<std::unique_ptr<Catalog>> Catalog::Open(const CatalogPlace& place,
                                               std::unique_ptr<LogSource> log,
                                               const CatalogOptions& options) {
  return std::unique_ptr<Catalog>(
      new Catalog(std::make_unique<Impl>(place, std::move(log), options)));
}

const std::optional<Error>& Catalog::trouble() const { return impl_->trouble; }

Status Catalog::CatchUp() {
  BELAY_TRY(HeldLock held, impl_->log->Hold());
  BELAY_TRY(HeldLock lock,
            impl_->place.locks.Acquire(StoreLock::kCatalog, LockMode::kExclusive));
  return impl_->Update();
}

Status Catalog::Rebuild() {
  BELAY_TRY(HeldLock held, impl_->log->Hold());
  BELAY_TRY(HeldLock lock,
            impl_->place.locks.Acquire(StoreLock::kCatalog, LockMode::kExclusive));
  BELAY_OK(impl_->Prepare());
  BELAY_TRY(impl_->seen, impl_->Changes());
  return impl_->BuildNew();
}

Result<std::vector<std::string>> Catalog::ClearTheWay() {
  Impl& my = *impl_;
  std::vector<std::string> done;
  BELAY_TRY(HeldLock lock,
            my.place.locks.Acquire(StoreLock::kCatalog, LockMode::kExclusive));
  my.old_was_asked = true;
  my.db.reset();
  my.vfs.reset();
  my.changes = Fd();
  my.dir = Fd();
  auto clear = [&](const Fd& dir, const Name& name, FileType wanted,
                   const std::string& shown) -> Status {
    auto stat = my.place.fs.StatAt(dir, name);
    if (!stat.ok() || stat->type == wanted) return Ok();
    BELAY_TRY(Name to, MoveAside(my.place.fs, dir, name));
    done.push_back(shown + " was " + std::string(FileTypeName(stat->type)) +
                   ": moved aside, now " + to.bytes());
    return Ok();
  };
  BELAY_OK(clear(my.place.store_dir, DirName(), FileType::kDirectory, "catalog"));
  auto dir = my.place.fs.Open(my.place.store_dir, DirName(), OpenMode::Directory());
  if (!dir.ok()) {
    if (dir.error().code == Errc::kNotFound) return done;
    return std::move(dir).error();
  }
  for (const char* file :
       {"catalog.db", "catalog.db-wal", "catalog.db-shm", "catalog.db-journal",
        "catalog.new", "catalog.new-wal", "catalog.new-journal", "catalog.next",
        "catalog.next-wal", "catalog.next-journal", "changes"})
    BELAY_OK(clear(*dir, Name::Literal(file), FileType::kRegular,
                   "catalog/" + std::string(file)));
  auto changes = ReadSmallFile(my.place.fs, *dir, ChangesName(), 4096);
  // Once more: only what stays unreadable is given up.
  if (!changes.ok() && IsUnreadable(changes.error()))
    changes = ReadSmallFile(my.place.fs, *dir, ChangesName(), 4096);
  if (!changes.ok() && IsUnreadable(changes.error())) {
    BELAY_OK(Remove(my.place.fs, *dir, ChangesName()));
    done.push_back("removed catalog/changes, which could not be read");
  }
  return done;
}

Result<std::vector<std::string>> Catalog::Check() {
  Impl& my = *impl_;
  BELAY_TRY(HeldLock held, my.log->Hold());
  std::vector<std::string> problems;
  auto damaged = [&problems](const Error& error) -> Status {
    if (error.code != Errc::kCorrupt) return error;
    problems.push_back(error.what);
    return Ok();
  };
  auto frozen = my.Freeze(Impl::Pages::kWhole);
  if (!frozen.ok()) {
    if (frozen.error().code == Errc::kNotFound) return problems;
    BELAY_OK(damaged(frozen.error()));
    return problems;
  }
  auto copied = frozen->db->CopyToMemory();
  if (!copied.ok()) {
    BELAY_OK(damaged(copied.error()));
    return problems;
  }
  CatalogDb& file = **copied;
  BELAY_TRY(problems, file.CheckStructure());
  BELAY_TRY(auto truth, CatalogDb::InMemory());
  BELAY_OK(truth->CatchUp(*my.log));
  bool whole = truth->log_was_whole();

  // Bring the copy to where the truth is, then compare; somebody may publish meanwhile.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    auto freshness = file.Compare(*my.log);
    // Of another generation (GC came by) or of a log that lost its end: not damage. No
    // answer is taken from it; the next question builds it anew.
    if (freshness.ok() && *freshness == CatalogDb::Freshness::kForeign) return problems;
    Status done = freshness.ok() ? Ok() : belay::Status(freshness.error());
    if (freshness.ok() && *freshness == CatalogDb::Freshness::kBehind)
      done = file.CatchUp(*my.log);
    if (!done.ok()) {
      if (done.error().code == Errc::kConflict) return problems;  // the same
      BELAY_OK(damaged(done.error()));
      return problems;
    }
    BELAY_TRY(auto truth_is, truth->Compare(*my.log));
    if (truth_is == CatalogDb::Freshness::kCurrent) {
      // What the packs cannot show any more is not the catalogue's fault.
      if (!whole) BELAY_OK(truth->Adopt(file));
      BELAY_TRY(auto differences, file.CompareRows(*truth));
      problems.insert(problems.end(), differences.begin(), differences.end());
      return problems;
    }
    BELAY_OK(truth->CatchUp(*my.log));
    whole &= truth->log_was_whole();
  }
  return Error(Errc::kBusy, "catalogue: others keep writing while it is checked");
}

std::vector<RememberedRecord> Catalog::Remembered(uint64_t generation) {
  std::vector<RememberedRecord> records;
  // Twice: a disk that says no once may give it the next time, and after a repair
  // nobody can ask again.
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::optional<Error> unread;
    auto frozen = impl_->Freeze(Impl::Pages::kAsTheyAre);
    if (!frozen.ok() && IsWorthless(frozen.error().code)) break;
    if (!frozen.ok()) continue;
    records = impl_->OldRecords(*frozen->db, generation, unread);
    if (auto end = frozen->db->KnownEnd(); impl_->log && end.ok() && *end)
      impl_->log->Expect(**end);
    if (!unread) break;
  }
  return records;
}

std::optional<RememberedEnd> Catalog::KnownEnd() {
  auto frozen = impl_->Freeze(Impl::Pages::kAsTheyAre);
  if (!frozen.ok()) return std::nullopt;
  auto end = frozen->db->KnownEnd();
  return end.ok() ? *end : std::nullopt;
}

void ExpectRemembered(Store& store, const PackId& open) {
  if (open.is_zero()) return;
  auto tail = store.TailIfReadable(open);
  if (!tail.ok() || *tail) return;
  if (auto end = Heads::SavedEnd(store.fs(), store.dir())) store.Expect(*end);
  auto catalog = Catalog::Open(store);
  if (!catalog.ok()) return;
  if (auto end = (*catalog)->KnownEnd()) store.Expect(*end);
}

}  // namespace belay
