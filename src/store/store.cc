#include "store/store.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/private.h"
#include "store/relied_on.h"
#include "store/store_files.h"
#include "store/unlisted.h"

namespace belay {

namespace {
constexpr size_t kMaxManifest = size_t{16} << 20;
// A process that writes for long forgets what the index on disk has by now.
constexpr size_t kMaxInMemory = 16'384;

bool SameFile(const FileStat& a, const FileStat& b) {
  return a.dev == b.dev && a.ino == b.ino && a.size == b.size &&
         a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}

// The file `tail`; empty when there is none, or when what has its name is no file. A
// writer (`mode.create`) moves that aside: it would stand in the way of every batch.
Result<std::optional<Fd>> OpenTail(Fs& fs, const Fd& dir, const OpenMode& mode) {
  for (bool cleared = false;; cleared = true) {
    auto opened = fs.Open(dir, TailName(), mode);
    if (opened.ok()) {
      BELAY_TRY(FileStat stat, fs.Stat(*opened));
      if (stat.type == FileType::kRegular) return std::optional(std::move(*opened));
    } else {
      const Error& error = opened.error();
      if (error.code == Errc::kNotFound && !mode.create) return std::optional<Fd>();
      if (error.sys != EISDIR && error.sys != ELOOP && error.sys != ENXIO)
        return std::move(opened).error();
    }
    if (!mode.create || cleared || BELAY_MUTANT("stop-at-strange-tail"))
      return std::optional<Fd>();
    BELAY_TRY(Name to, MoveAside(fs, dir, TailName()));
    (void)to;
  }
}
}  // namespace

Result<std::shared_ptr<const Store::LoadedManifest>> Store::LoadShared() {
  std::shared_ptr<const LoadedManifest> known;
  {
    std::lock_guard guard(mutex_);
    known = on_disk_;
  }
  if (known) {
    auto now = fs_.StatAt(dir_, ManifestName());
    if (now.ok() &&
        (SameFile(*now, known->stat) || BELAY_MUTANT("trust-held-manifest")))
      return known;
  }
  auto loaded = std::make_shared<LoadedManifest>();
  auto read = [&]() -> Result<Bytes> {
    BELAY_TRY(loaded->file, fs_.Open(dir_, ManifestName(), OpenMode::Read()));
    return ReadSmallFile(fs_, loaded->file, ManifestName(), kMaxManifest, loaded->stat);
  };
  auto bytes = read();
  if (!bytes.ok()) {
    const Error& error = bytes.error();
    // Something else has its name, or its place on the disk is bad: as if damaged.
    if (error.code == Errc::kInvalid || error.sys == EISDIR || error.sys == ENXIO ||
        IsUnreadable(error))
      return Error(Errc::kCorrupt, error.sys, "the store's manifest: " + error.what)
          .WithHint("run: belay repair");
    return std::move(bytes).error();
  }
  auto manifest = DecodeManifest(*bytes);
  if (!manifest.ok() && manifest.error().code == Errc::kCorrupt)
    return Error(Errc::kCorrupt, manifest.error().what).WithHint("run: belay repair");
  BELAY_TRY(loaded->manifest, std::move(manifest));
  std::shared_ptr<const Fd> tail;  // closed after the mutex is released
  std::lock_guard guard(mutex_);
  on_disk_ = loaded;
  // Whoever brought another manifest may have brought another tail with it.
  tail.swap(tail_);
  return std::shared_ptr<const LoadedManifest>(loaded);
}

Result<Manifest> Store::LoadManifest() {
  BELAY_TRY(auto loaded, LoadShared());
  return loaded->manifest;
}

Status Store::WriteManifest(const Manifest& manifest) {
  BELAY_OK(ReplaceFile(fs_, dir_, ManifestName(), EncodeManifest(manifest)));
  auto written = std::make_shared<Manifest>(manifest);
  std::lock_guard guard(mutex_);
  manifest_ = std::move(written);
  return Ok();
}

std::shared_ptr<const Manifest> Store::Listed() {
  std::lock_guard guard(mutex_);
  return manifest_;
}

Manifest Store::manifest() { return *Listed(); }

bool Store::IsInPlace() {
  auto now = fs_.OpenDir(path_);
  if (!now.ok()) return false;
  auto there = fs_.Stat(*now);
  auto ours = fs_.Stat(dir_);
  return there.ok() && ours.ok() && there->dev == ours->dev && there->ino == ours->ino;
}

PackId Store::open_pack() {
  std::lock_guard guard(mutex_);
  const Manifest::Pack* open = manifest_->open_pack();
  return open ? open->id : PackId();
}

Result<std::shared_ptr<const Fd>> Store::TailFile(bool create) {
  if (create && mode_ == Mode::kRead) {
    // GC and repair write too, though they make no store: not with what readers hold.
    BELAY_TRY(auto file, OpenTail(fs_, dir_, OpenMode::OpenOrCreate()));
    if (!file) return std::shared_ptr<const Fd>();
    return std::make_shared<const Fd>(std::move(*file));
  }
  {
    std::lock_guard guard(mutex_);
    if (tail_ && (tail_writable_ || !create)) return tail_;
  }
  // Whoever writes says so by `create`: a store that was opened to read may be written
  // all the same (`mode` says whether it is made when it is absent).
  bool writable = create || mode_ == Mode::kWrite;
  auto opened = OpenTail(fs_, dir_,
                         create     ? OpenMode::OpenOrCreate()
                         : writable ? OpenMode::ReadWrite()
                                    : OpenMode::Read());
  // A disk that may not be written can still be read.
  if (!opened.ok() && opened.error().code == Errc::kRefused && !create) {
    writable = false;
    opened = OpenTail(fs_, dir_, OpenMode::Read());
  }
  if (!opened.ok()) {
    if (opened.error().code == Errc::kInvalid) return std::shared_ptr<const Fd>();
    return std::move(opened).error();
  }
  if (!*opened) return std::shared_ptr<const Fd>();
  auto file = std::make_shared<const Fd>(std::move(**opened));
  std::lock_guard guard(mutex_);
  tail_ = file;
  tail_writable_ = writable;
  return file;
}

Result<std::optional<Tail>> Store::LoadTail(const PackId& pack) {
  BELAY_TRY(auto tail, AnyTail());
  if (tail && tail->pack != pack) tail.reset();
  if (tail) {
    BELAY_TRY(const bool fits, Fits(*tail, manifest().store));
    if (!fits) tail.reset();
  }
  return tail;
}

Result<bool> Store::Fits(const Tail& tail, const StoreId& store) {
  {
    std::lock_guard guard(mutex_);
    if (fitting_ == tail || (own_pack_ == tail.pack && own_flushed_ == tail.flushed))
      return true;
  }
  auto held = HoldFile(tail.pack, store, false);
  if (!held.ok()) return true;  // what is gone has no other bytes
  BELAY_TRY(const bool fits,
            held->file->ForReading().MayEndAt(tail.flushed, tail.last));
  std::lock_guard guard(mutex_);
  if (fits) fitting_ = tail;
  if (fits && foreign_ == tail.pack) foreign_ = PackId();
  if (!fits) foreign_ = tail.pack;
  return fits;
}

bool Store::HasForeignEnd(const PackId& pack) {
  std::lock_guard guard(mutex_);
  return foreign_ == pack && !pack.is_zero();
}

Result<std::optional<Tail>> Store::AnyTail() {
  BELAY_TRY(auto file, TailFile(false));
  // Twice: a reader may meet the writer half-way.
  for (int attempt = 0; file && attempt < 2; ++attempt) {
    std::byte raw[kTailSize];
    auto got = ReadFull(fs_, *file, 0, raw);
    if (!got.ok() && got.error().sys == EISDIR) break;
    if (!got.ok()) return std::move(got).error();
    auto tail = DecodeTail(ByteSpan(raw).first(*got));
    if (tail) return tail;
  }
  return std::optional<Tail>();
}

Result<std::optional<Tail>> Store::TailIfReadable(const PackId& pack) {
  auto tail = LoadTail(pack);
  if (tail.ok()) return tail;
  const Error& error = tail.error();
  switch (error.sys) {
    case EACCES:
    case EISDIR:
    case ELOOP:
    case ENXIO:   // a socket
    case ESPIPE:  // a FIFO
      return std::optional<Tail>();
    default:
      if (IsUnreadable(error)) return std::optional<Tail>();
      return tail;
  }
}

bool Store::TailIsOfUnlisted() { return TailOfUnlisted().has_value(); }

std::optional<Tail> Store::TailOfUnlisted() {
  auto tail = AnyTail();
  if (!tail.ok() || !*tail || manifest().Find((*tail)->pack) ||
      (*tail)->flushed <= kPackHeaderSize)
    return std::nullopt;
  // Anew, after the tail: a writer lists a pack before it writes a tail of it.
  auto listed = LoadManifest();
  const PackId& pack = (*tail)->pack;
  if (!listed.ok() || listed->Find(pack) ||
      IsOfReplaced(fs_, dir_, listed->generation, **tail))
    return std::nullopt;
  if (BELAY_MUTANT("gone-with-the-manifest") &&
      !fs_.StatAt(packs_dir_, PackFile::FileName(pack)).ok())
    return std::nullopt;
  return *tail;
}

Status Store::Refresh() {
  BELAY_TRY(auto loaded, LoadShared());
  std::shared_ptr<const Manifest> manifest(loaded, &loaded->manifest);
  const Manifest::Pack* open = manifest->open_pack();
  std::vector<std::shared_ptr<OpenPack>> gone;  // closed after the mutex is released
  HeldFile let_go;
  std::lock_guard guard(mutex_);
  for (auto at = packs_.begin(); at != packs_.end();) {
    const Manifest::Pack* now = manifest->Find(at->first);
    // The one that was open may have been sealed shorter.
    bool keep =
        now && (now == open ? at->second->index.entries_in_memory() < kMaxInMemory
                            : now->sealed == at->second->limit.load());
    if (!keep) gone.push_back(at->second);
    at = keep ? std::next(at) : packs_.erase(at);
  }
  if (held_.file && (!open || held_.file->id() != open->id)) std::swap(let_go, held_);
  open_pack_checked_ = false;
  manifest_ = std::move(manifest);
  return Ok();
}

Status Store::Hold(std::shared_ptr<const PackFile> file, bool writable) {
  BELAY_TRY(FileStat stat, fs_.Stat(file->fd()));
  std::lock_guard guard(mutex_);
  held_ = {std::move(file), writable, stat.dev, stat.ino};
  return Ok();
}

Result<Store::SizedFile> Store::HoldFile(const PackId& id, const StoreId& store,
                                         bool to_write) {
  HeldFile held;
  {
    std::lock_guard guard(mutex_);
    held = held_;
  }
  if (held.file && held.file->id() == id && (held.writable || !to_write)) {
    auto stat = fs_.StatAt(packs_dir_, PackFile::FileName(id));
    if (stat.ok() && ((stat->dev == held.dev && stat->ino == held.ino) ||
                      BELAY_MUTANT("trust-held-pack")))
      return SizedFile{held.file, stat->size};
  }
  bool writable = to_write || mode_ != Mode::kRead;
  auto opened = PackFile::Open(fs_, packs_dir_, id, store,
                               writable ? OpenMode::ReadWrite() : OpenMode::Read());
  if (!opened.ok() && writable && !to_write) {
    // What cannot be opened for writing, or read without a mistake, a reader gets by.
    writable = false;
    opened = PackFile::Open(fs_, packs_dir_, id, store, OpenMode::Read());
  }
  if (!opened.ok()) return std::move(opened).error();
  auto file = std::make_shared<const PackFile>(std::move(*opened));
  BELAY_TRY(FileStat stat, fs_.Stat(file->fd()));
  std::lock_guard guard(mutex_);
  held_ = {file, writable, stat.dev, stat.ino};
  return SizedFile{std::move(file), stat.size};
}

Result<uint64_t> Store::DueLength(const Manifest::Pack& pack, bool* vouched) {
  std::optional<Tail> tail;
  if (!pack.sealed) {
    BELAY_TRY(tail, TailIfReadable(pack.id));
  }
  if (vouched) *vouched = pack.sealed || tail;
  if (pack.sealed) return *pack.sealed;
  if (tail) return tail->flushed;
  auto expected = Expected(pack.id);
  uint64_t due = expected ? expected->position.offset : 0;
  if (HasForeignEnd(pack.id)) {
    auto stat = fs_.StatAt(packs_dir_, PackFile::FileName(pack.id));
    if (stat.ok()) due = std::max(due, stat->size + 1);
  }
  return due;
}

void Store::Expect(const RememberedEnd& end) {
  if (end.position.pack.is_zero()) return;
  std::lock_guard guard(mutex_);
  auto place = [](const RememberedEnd& e) {
    return std::pair(e.position.generation, e.position.offset);
  };
  RememberedEnd& known = expected_[end.position.pack];
  RememberedEnd before = end;
  if (place(known) <= place(end)) std::swap(known, before);
  // Who went further and knows no number passed records that nobody counted.
  const bool further = known.next_seq == 0 && place(before) < place(known);
  if (further && BELAY_MUTANT("an-uncounted-loss-is-one-record"))
    known.next_seq = before.next_seq + 1;
  else if (!further)
    known.next_seq = std::max(known.next_seq, before.next_seq);
}

void Store::AskTheCaches(const PackId& pack) {
  RememberedEnd end;
  StoreId store;
  {
    std::lock_guard guard(mutex_);
    if (caches_asked_ == pack) return;
    caches_asked_ = pack;
    end.position.generation = manifest_->generation;
    store = manifest_->store;
  }
  const auto relied_on = ReliedOn(fs_, dir_, packs_dir_, pack, store);
  if (!relied_on) return;
  end.position.pack = pack;
  end.position.offset = *relied_on;
  Expect(end);  // what comes next nobody of them knows
}

std::optional<RememberedEnd> Store::Expected(const PackId& pack) {
  AskTheCaches(pack);
  std::lock_guard guard(mutex_);
  auto known = expected_.find(pack);
  if (known == expected_.end() ||
      known->second.position.generation != manifest_->generation ||
      BELAY_MUTANT("end-without-tail-is-the-end"))
    return std::nullopt;
  return known->second;
}

Result<uint64_t> Store::EndOf(const Manifest::Pack& pack, const PackFile& file) {
  // The mark before the size: a writer may move both between the two calls, and a size
  // that is older than the mark may lie in the middle of a batch.
  std::optional<Tail> tail;
  if (!pack.sealed) {
    BELAY_TRY(tail, TailIfReadable(pack.id));
  }
  BELAY_TRY(uint64_t size, file.Size());
  if (pack.sealed) return std::min(size, *pack.sealed);
  uint64_t end = kPackHeaderSize;
  if (tail) {
    end = tail->flushed;
  } else if (auto expected = Expected(pack.id)) {
    // What is remembered may be of a copy of the store, too.
    const uint64_t known = expected->position.offset;
    BELAY_TRY(const bool fits, file.MayEndAt(known, BatchMark()));
    if (fits) end = std::max(end, known);
  }
  if (size <= end) return size;
  // Beyond the mark only what is whole; damage that a later flush vouches for is
  // passed.
  uint64_t last_whole = end;
  // What was hashed once is not hashed again: somebody who writes much looks often.
  Checked checked;
  {
    std::lock_guard guard(mutex_);
    checked = checked_;
  }
  if (checked.pack == pack.id && checked.from == end && checked.whole <= size &&
      !BELAY_MUTANT("the-end-is-hashed-each-time")) {
    BELAY_TRY(const BatchMark mark, file.MarkAt(checked.whole));
    if (mark == checked.mark) last_whole = checked.whole;
  }
  const uint64_t before = last_whole;
  BELAY_OK(file.ForEachBatch(
      before, size, [&](const BatchHeader& b, bool damaged) -> Status {
        if (damaged) return Ok();
        BELAY_TRY(bool whole, file.IsWhole(b));
        if (whole && (last_whole == b.offset || b.flushed_mark > last_whole))
          last_whole = b.end();
        return Ok();
      }));
  if (last_whole > before && !file.has_unreadable()) {
    checked = {pack.id, end, last_whole, {}};
    BELAY_TRY(checked.mark, file.MarkAt(last_whole));
    std::lock_guard guard(mutex_);
    checked_ = checked;
  }
  return last_whole;
}

Result<std::shared_ptr<OpenPack>> Store::LoadPack(const Manifest::Pack& pack,
                                                  const StoreId& store_id) {
  auto handle = std::make_shared<OpenPack>();
  if (pack.sealed) {
    BELAY_TRY(PackFile file,
              PackFile::Open(fs_, packs_dir_, pack.id, store_id, OpenMode::Read()));
    handle->file = std::make_shared<const PackFile>(std::move(file));
    BELAY_TRY(uint64_t size, handle->file->Size());
    MoveMarks(*handle, std::min(*pack.sealed, size));
    BELAY_TRY(handle->index, PackIndex::Load(fs_, packs_dir_, pack.id));
  } else {
    // The mark before the size: a writer may move both between the two calls.
    BELAY_TRY(auto tail, TailIfReadable(pack.id));
    BELAY_TRY(SizedFile held, HoldFile(pack.id, store_id, false));
    // A reader's view, to which what the disk does not give back is damage.
    handle->file = std::make_shared<const PackFile>(held.file->ForReading());
    if (tail && !BELAY_MUTANT("dedupe-unflushed")) {
      MoveMarks(*handle, std::min(tail->flushed, held.size));
    } else {
      BELAY_TRY(handle->limit, EndOf(pack, *handle->file));
      if (BELAY_MUTANT("dedupe-unflushed")) handle->flushed = handle->limit.load();
    }
    BELAY_TRY(handle->index, PackIndex::Load(fs_, packs_dir_, pack.id));
  }
  const uint64_t covered = handle->index.covered();
  if (covered < handle->limit) {
    BELAY_TRY(auto entries, ObjectsIn(*handle->file, covered, handle->limit));
    handle->index.AddInMemory(entries, covered, handle->limit);
  }
  return handle;
}

void Store::MoveMarks(OpenPack& pack, uint64_t flushed) {
  for (std::atomic<uint64_t>* mark : {&pack.limit, &pack.flushed}) {
    uint64_t was = mark->load();
    while (was < flushed && !mark->compare_exchange_weak(was, flushed)) {
    }
  }
}

Result<bool> Store::Advance(OpenPack& pack, const StoreId& store_id) {
  const uint64_t limit = pack.limit;
  // Found without a tail: some of it may have been cut off and replaced since.
  if (limit != pack.flushed) return false;
  const PackId id = pack.file->id();
  BELAY_TRY(auto tail, TailIfReadable(id));
  if (!tail) return false;
  BELAY_TRY(SizedFile held, HoldFile(id, store_id, false));
  if (!held.file->SharesFileWith(*pack.file)) return false;
  uint64_t flushed = tail->flushed;
  {
    std::lock_guard guard(mutex_);
    if (own_pack_ == id) flushed = std::max(flushed, own_flushed_);
  }
  if (flushed < limit || held.size < flushed) return false;
  const uint64_t covered = pack.index.covered();
  if (covered < flushed) {
    BELAY_TRY(auto entries, ObjectsIn(*pack.file, covered, flushed));
    pack.index.AddInMemory(entries, covered, flushed);
  }
  MoveMarks(pack, flushed);
  return true;
}

void Store::Grow(const PackId& id, const std::vector<IndexEntry>& entries,
                 uint64_t from, uint64_t to) {
  std::shared_ptr<OpenPack> pack;
  {
    std::lock_guard guard(mutex_);
    auto found = packs_.find(id);
    if (found == packs_.end()) return;
    pack = found->second;
    // It knows of bytes that are not there any more.
    if (pack->limit > from || pack->index.file_covered() > from) {
      packs_.erase(found);
      return;
    }
  }
  // What lies between, if anything, is found by Advance().
  if (pack->limit != from || pack->flushed != from) return;
  pack->index.AddInMemory(entries, from, to);
  MoveMarks(*pack, to);
}

Result<std::shared_ptr<const OpenPack>> Store::Pack(const PackId& id) {
  Manifest::Pack pack;
  StoreId store_id;
  std::shared_ptr<OpenPack> known;
  bool fresh = false;
  {
    std::lock_guard guard(mutex_);
    auto found = packs_.find(id);
    if (found != packs_.end()) known = found->second;
    const Manifest::Pack* listed = manifest_->Find(id);
    if (listed) pack = *listed;
    fresh = known && (!listed || listed->sealed || open_pack_checked_);
    if (!known && !listed)
      return Error(Errc::kNotFound, "pack " + id.text() + " is not listed");
    store_id = manifest_->store;
  }
  if (fresh) return std::shared_ptr<const OpenPack>(std::move(known));
  if (known) {
    BELAY_TRY(fresh, Advance(*known, store_id));
  }
  if (!fresh) {
    auto loaded = LoadPack(pack, store_id);
    if (!loaded.ok() &&
        (loaded.error().sys == EMFILE || loaded.error().sys == ENFILE)) {
      // Too many packs held open: let all of them go and try once more.
      std::unordered_map<PackId, std::shared_ptr<OpenPack>> released;
      HeldFile let_go;
      {
        std::lock_guard guard(mutex_);
        released.swap(packs_);
        std::swap(let_go, held_);
      }
      known.reset();
      released.clear();
      let_go = HeldFile();
      loaded = LoadPack(pack, store_id);
    }
    if (!loaded.ok()) return std::move(loaded).error();
    known = std::move(*loaded);
  }
  std::lock_guard guard(mutex_);
  packs_[id] = known;
  if (!pack.sealed) open_pack_checked_ = true;
  return std::shared_ptr<const OpenPack>(std::move(known));
}

}  // namespace belay
