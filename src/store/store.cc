#include "store/store.h"

#include <algorithm>
#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/repair.h"

namespace belay {

namespace {
const Name& ManifestName() {
  static const Name name = Name::Literal("manifest");
  return name;
}
const Name& TailName() {
  static const Name name = Name::Literal("tail");
  return name;
}
const Name& PacksName() {
  static const Name name = Name::Literal("packs");
  return name;
}
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

// A symlink that leads nowhere is no place to make a store: what it leads to may be a
// disk that is not mounted now.
Status CheckLinks(Fs& fs, const AbsPath& path) {
  for (AbsPath at = path; !at.is_root(); at = at.parent()) {
    if (fs.RealPath(at).ok()) return Ok();
    auto above = fs.OpenDir(at.parent());
    if (!above.ok()) continue;
    BELAY_TRY(Name name, Name::Parse(at.bytes().substr(at.bytes().rfind('/') + 1)));
    auto target = fs.ReadLink(*above, name);
    if (!target.ok()) return Ok();
    return Error(Errc::kRefused,
                 "the store cannot be made: " + EscapeForDisplay(at.bytes()) +
                     " is a symlink to " + EscapeForDisplay(*target) +
                     ", which is not there")
        .WithHint("make that directory (is its disk mounted?), or set BELAY_HOME");
  }
  return Ok();
}

// f_type of file systems whose locks are known to work between processes.
bool LocksAreKnownToWork(uint64_t magic) {
  switch (magic) {
    case 0xef53:      // ext2, ext3, ext4
    case 0x58465342:  // xfs
    case 0x9123683e:  // btrfs
    case 0x01021994:  // tmpfs
    case 0x794c7630:  // overlayfs
    case 0x2fc12fc1:  // zfs
    case 0xf2f52010:  // f2fs
      return true;
    default:
      return false;
  }
}
}  // namespace

Store::Store(Fs& fs, Clock& clock, Random& random, AbsPath path,
             const StoreOptions& options, Mode mode)
    : fs_(fs),
      clock_(clock),
      random_(random),
      path_(std::move(path)),
      options_(options),
      mode_(mode),
      locks_(fs, clock, dir_, options.lock_wait_ms) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::Open(Fs& fs, Clock& clock, Random& random,
                                           const AbsPath& dir,
                                           const StoreOptions& options, Mode mode) {
  std::unique_ptr<Store> store(new Store(fs, clock, random, dir, options, mode));
  auto opened = fs.OpenDir(dir);
  if (!opened.ok() && opened.error().code == Errc::kNotFound) {
    if (mode != Mode::kWrite)
      return Error(Errc::kNotFound, "there is no store at " + dir.bytes());
    BELAY_OK(CheckLinks(fs, dir));
    opened = MakeDirs(fs, dir, 0700);
    if (!opened.ok()) {
      Error error = Context(std::move(opened).error(),
                            "the store " + dir.bytes() + " cannot be made");
      // Some places take no directories and say "not found" (/proc).
      if (error.code == Errc::kNotFound) error.code = Errc::kRefused;
      if (error.hint.empty()) error.hint = "another place for it: set BELAY_HOME";
      return error;
    }
  }
  if (!opened.ok())
    return Context(std::move(opened).error(), "the store " + dir.bytes());
  store->dir_ = std::move(*opened);
  BELAY_TRY(FileStat stat, fs.Stat(store->dir_));
  BELAY_OK(store->CheckOwner(stat, dir.bytes()));
  Status ready = store->OpenExisting();
  if (!ready.ok() && ready.error().code == Errc::kNotFound) {
    if (mode != Mode::kWrite) return std::move(ready).error();
    BELAY_OK(store->CheckIsFree());
    BELAY_OK(store->SecurePlace(stat));
    ready = store->Create();
  } else if (ready.ok()) {
    BELAY_OK(store->SecurePlace(stat));
  }
  BELAY_OK(ready);
  return store;
}

Status Store::CheckOwner(const FileStat& stat, const std::string& path) {
  if (stat.uid != options_.uid && !BELAY_MUTANT("owner-unchecked"))
    return Error(Errc::kRefused, "the store " + path + " belongs to user " +
                                     std::to_string(stat.uid) + ", not to you (" +
                                     std::to_string(options_.uid) + ")")
        .WithHint("set BELAY_HOME to a directory of your own");
  return Ok();
}

// A store is made in a directory of its own. What an interrupted Create() left counts
// as nothing; anything else is somebody's, and neither its files nor its mode are
// touched.
Status Store::CheckIsFree() {
  if (BELAY_MUTANT("settle-anywhere")) return Ok();
  BELAY_TRY(auto entries, fs_.List(dir_));
  // Another process made the store since we looked; Create() finds it.
  if (std::any_of(entries.begin(), entries.end(),
                  [](const DirEntry& e) { return e.name == "manifest"; }))
    return Ok();
  for (const DirEntry& e : entries) {
    bool ours = e.name == "lock" || e.name == "packs" || e.name == "catalog" ||
                (e.name.starts_with("manifest.") && e.name.ends_with(".tmp"));
    if (!ours)
      return Error(Errc::kRefused,
                   path_.bytes() + " is not empty and holds no Belay store")
          .WithHint("set BELAY_HOME to a new or an empty directory");
  }
  return Ok();
}

// Private, and on a file system where locks exclude.
Status Store::SecurePlace(const FileStat& stat) {
  BELAY_TRY(FsInfo info, fs_.Info(dir_));
  if ((stat.mode & 0077) != 0 && !info.read_only &&
      !BELAY_MUTANT("leave-open-to-others"))
    BELAY_OK(fs_.SetMode(dir_, 0700));
  // Not there yet when the store is being made, which gives it its mode.
  if (packs_dir_.is_open()) {
    BELAY_TRY(FileStat packs, fs_.Stat(packs_dir_));
    BELAY_OK(CheckOwner(packs, path_.bytes() + "/packs"));
    if ((packs.mode & 0077) != 0 && !info.read_only) {
      BELAY_OK(fs_.SetMode(packs_dir_, 0700));
    }
  }
  if (!LocksAreKnownToWork(info.magic) && !info.read_only) BELAY_OK(locks_.Probe());
  return Ok();
}

Status Store::OpenExisting() {
  auto packs = fs_.Open(dir_, PacksName(), OpenMode::Directory());
  if (!packs.ok()) {
    if (auto stat = fs_.StatAt(dir_, PacksName());
        stat.ok() && stat->type != FileType::kDirectory &&
        fs_.StatAt(dir_, ManifestName()).ok())
      return Error(Errc::kCorrupt, path_.bytes() + "/packs is " +
                                       std::string(FileTypeName(stat->type)) +
                                       ", not the directory with the packs")
          .WithHint("bring that back as " + path_.bytes() +
                    "/packs; to go on without it, for good: belay repair "
                    "--accept-loss");
    if (packs.error().code != Errc::kNotFound) return std::move(packs).error();
    auto manifest = fs_.StatAt(dir_, ManifestName());
    // Somebody may have made the store between the two looks: the manifest comes last.
    if (manifest.ok()) packs = fs_.Open(dir_, PacksName(), OpenMode::Directory());
    if (manifest.ok() && !packs.ok())
      return Error(Errc::kCorrupt, "the store's packs directory is gone")
          .WithHint("bring back " + path_.bytes() +
                    "/packs from a copy; to go on without it, for good: belay repair "
                    "--accept-loss");
    if (!packs.ok())
      return Error(Errc::kNotFound, "there is no store at " + path_.bytes());
  }
  packs_dir_ = std::move(*packs);
  auto manifest = LoadShared();
  if (!manifest.ok()) {
    if (manifest.error().code != Errc::kNotFound) return std::move(manifest).error();
    // A store that was being made has no packs yet; one that lost its manifest has.
    BELAY_TRY(auto entries, fs_.List(packs_dir_));
    const bool has_packs =
        std::any_of(entries.begin(), entries.end(),
                    [](const DirEntry& e) { return e.name.ends_with(".pack"); });
    // Or it was just made: a pack is there only after the manifest.
    if (has_packs) manifest = LoadShared();
    if (!manifest.ok() && has_packs && manifest.error().code == Errc::kNotFound)
      return Error(Errc::kCorrupt, "the store's manifest is gone")
          .WithHint("run: belay repair");
    if (!manifest.ok() && HasRemains(entries)) {
      manifest = LoadShared();
      if (!manifest.ok())
        return Error(Errc::kCorrupt, "the manifest and every pack of the store " +
                                         path_.bytes() + " are gone")
            .WithHint("bring them back from a copy; to begin anew, remove " +
                      path_.bytes());
    }
    if (!manifest.ok()) return std::move(manifest).error();
  }
  manifest_ = {*manifest, &(*manifest)->manifest};
  return Ok();
}

// What only a store leaves that something was put into.
bool Store::HasRemains(const std::vector<DirEntry>& packs) {
  for (const DirEntry& e : packs)
    if (e.name.ends_with(".idx")) return true;
  if (fs_.StatAt(dir_, TailName()).ok()) return true;
  auto catalog = fs_.Open(dir_, Name::Literal("catalog"), OpenMode::Directory());
  return catalog.ok() && fs_.StatAt(*catalog, Name::Literal("catalog.db")).ok();
}

Status Store::Create() {
  // Two first users at once: the second finds what the first made.
  BELAY_TRY(HeldLock lock, locks_.Acquire(StoreLock::kAppend, LockMode::kExclusive));
  // Once, wherever it is: what the file system is called says nothing of how it was
  // mounted, or of what stands between it and us.
  if (!BELAY_MUTANT("believe-in-locks")) BELAY_OK(locks_.Probe());
  Status ready = OpenExisting();
  if (ready.ok() || ready.error().code != Errc::kNotFound) return ready;
  Status made = fs_.MakeDir(dir_, PacksName(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return made;
  // The store's own name must survive too, and before there is a manifest: who finds
  // one does not come here again.
  BELAY_TRY(Fd parent, fs_.OpenDir(path_.parent()));
  BELAY_OK(fs_.Sync(parent));
  Manifest manifest;
  manifest.store = StoreId(random_.NewId());
  BELAY_OK(WriteManifest(manifest));
  return OpenExisting();
}

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
  BELAY_TRY(auto file, TailFile(false));
  // Twice: a reader may meet the writer half-way.
  for (int attempt = 0; file && attempt < 2; ++attempt) {
    std::byte raw[kTailSize];
    auto got = ReadFull(fs_, *file, 0, raw);
    if (!got.ok() && got.error().sys == EISDIR) break;
    if (!got.ok()) return std::move(got).error();
    auto tail = DecodeTail(ByteSpan(raw).first(*got));
    if (tail && tail->pack == pack) return tail;
    if (tail) break;
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

Result<uint64_t> Store::DueLength(const Manifest::Pack& pack) {
  if (pack.sealed) return *pack.sealed;
  BELAY_TRY(auto tail, TailIfReadable(pack.id));
  return tail ? tail->flushed : 0;
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
  uint64_t end = tail ? tail->flushed : kPackHeaderSize;
  if (size <= end) return size;
  // Beyond the mark only what is whole; damage that a later flush vouches for is
  // passed.
  uint64_t last_whole = end;
  BELAY_OK(
      file.ForEachBatch(end, size, [&](const BatchHeader& b, bool damaged) -> Status {
        if (damaged) return Ok();
        BELAY_TRY(bool whole, file.IsWhole(b));
        if (whole && (last_whole == b.offset || b.flushed_mark > last_whole))
          last_whole = b.end();
        return Ok();
      }));
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

Result<std::optional<ObjectLocation>> Store::Find(const ObjectKey& key) {
  const std::shared_ptr<const Manifest> listed = Listed();
  for (auto at = listed->packs.rbegin(); at != listed->packs.rend(); ++at) {
    auto pack = Pack(at->id);
    if (!pack.ok()) {
      // A damaged or missing pack hides its objects; others may still have this one.
      Errc code = pack.error().code;
      if (code == Errc::kCorrupt || code == Errc::kNotFound) continue;
      return std::move(pack).error();
    }
    BELAY_TRY(auto offsets, (*pack)->index.Candidates(key));
    for (uint64_t offset : offsets) {
      auto header = (*pack)->file->HeaderAt(offset, (*pack)->limit);
      if (!header.ok()) {
        if (header.error().code == Errc::kCorrupt) continue;
        return std::move(header).error();
      }
      if (header->key() == key)
        return std::optional(ObjectLocation{*pack, RecordAt{offset, *header}});
    }
  }
  return std::optional<ObjectLocation>();
}

Result<std::shared_ptr<const Store::AllRecords>> Store::Survey() {
  std::shared_ptr<const AllRecords> known;
  {
    std::lock_guard guard(mutex_);
    known = all_records_;
  }
  auto survey = std::make_shared<AllRecords>();
  std::vector<std::shared_ptr<const OpenPack>> packs;
  for (const Manifest::Pack& listed : Listed()->packs) {
    auto pack = Pack(listed.id);
    if (!pack.ok()) continue;
    BELAY_TRY(uint64_t end, EndOf(listed, *(*pack)->file));
    survey->ends.emplace_back(listed.id, end);
    packs.push_back(std::move(*pack));
  }
  if (known && known->ends == survey->ends && !BELAY_MUTANT("survey-for-each"))
    return known;
  for (size_t i = 0; i < packs.size(); ++i) {
    const auto& [id, end] = survey->ends[i];
    BELAY_TRY(auto entries, ObjectsIn(*packs[i]->file, kPackHeaderSize, end));
    for (const IndexEntry& e : entries)
      survey->places.emplace(e.key, std::make_pair(id, e.offset));
  }
  std::lock_guard guard(mutex_);
  all_records_ = survey;
  return std::shared_ptr<const AllRecords>(std::move(survey));
}

Result<std::optional<ObjectLocation>> Store::DeepFind(const ObjectKey& key) {
  // Held while it is looked into: another thread may bring a newer one at any time.
  BELAY_TRY(auto survey, Survey());
  auto place = survey->places.find(key);
  if (place == survey->places.end()) return std::optional<ObjectLocation>();
  const auto& [id, offset] = place->second;
  BELAY_TRY(auto pack, Pack(id));
  BELAY_TRY(uint64_t size, pack->file->Size());
  BELAY_TRY(RecordHeader header, pack->file->HeaderAt(offset, size));
  return std::optional(ObjectLocation{pack, RecordAt{offset, header}});
}

Result<bool> Store::IsPurged(const ObjectKey& key) {
  bool purged = false;
  BELAY_TRY(LogPosition end,
            ReadLogHeld(std::nullopt, [&](const LogRecord& record) -> Status {
              for (const ObjectKey& k : PurgedBy(record)) purged |= k == key;
              return Ok();
            }));
  (void)end;
  return purged;
}

Result<Bytes> Store::Get(const ObjectKey& key) {
  // By the indexes; then with a fresh manifest (GC may have moved it, another process
  // may have just written it); then by looking at every record there is.
  std::optional<Error> damage;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (attempt == 1) BELAY_OK(Refresh());
    BELAY_TRY(auto found, attempt < 2 ? Find(key) : DeepFind(key));
    if (!found) continue;
    auto bytes = found->pack->file->ReadRecord(found->record);
    if (bytes.ok()) return bytes;
    if (bytes.error().code != Errc::kCorrupt) return bytes;
    damage = std::move(bytes).error();  // a second copy elsewhere may be whole
  }
  if (damage) {
    // Look for another copy: duplicates exist when writers raced.
    for (const Manifest::Pack& listed : manifest().packs) {
      auto pack = Pack(listed.id);
      if (!pack.ok()) continue;
      BELAY_TRY(auto offsets, (*pack)->index.Candidates(key));
      for (uint64_t offset : offsets) {
        auto header = (*pack)->file->HeaderAt(offset, (*pack)->limit);
        if (!header.ok() || header->key() != key) continue;
        auto bytes = (*pack)->file->ReadRecord(RecordAt{offset, *header});
        if (bytes.ok()) return bytes;
      }
    }
    return *damage;
  }
  BELAY_TRY(bool purged, IsPurged(key));
  std::string name = ObjectTypeName(key.type) + " " + key.id.hex();
  if (purged) return Error(Errc::kPurged, name + " was purged");
  return Error(Errc::kNotFound, name + " is not in the store");
}

Result<Tree> Store::GetTree(const ObjectId& id) {
  BELAY_TRY(Bytes bytes, Get({ObjectType::kTree, id}));
  return DecodeTree(bytes);
}
Result<State> Store::GetState(const ObjectId& id) {
  BELAY_TRY(Bytes bytes, Get({ObjectType::kState, id}));
  return DecodeState(bytes);
}

Result<bool> Store::HasContent(const ObjectId& id) {
  BELAY_TRY(auto blob, Find({ObjectType::kBlob, id}));
  if (blob) return true;
  BELAY_TRY(auto chunks, Find({ObjectType::kChunks, id}));
  return chunks.has_value();
}

Status Store::ReadContent(const ObjectId& id,
                          const std::function<Status(ByteSpan)>& sink) {
  // Most content is a blob; the cheap look decides which to ask for in earnest.
  BELAY_TRY(auto chunked, Find({ObjectType::kChunks, id}));
  if (!chunked) {
    auto blob = Get({ObjectType::kBlob, id});
    if (blob.ok()) return sink(*blob);
    if (blob.error().code != Errc::kNotFound) return std::move(blob).error();
  }
  auto encoded = Get({ObjectType::kChunks, id});
  if (!encoded.ok()) {
    if (encoded.error().code == Errc::kNotFound)
      return Error(Errc::kNotFound, "content " + id.hex() + " is not in the store");
    return std::move(encoded).error();
  }
  BELAY_TRY(ChunkList list, DecodeChunks(*encoded));
  Sha256 whole;
  Bytes held;  // one chunk behind, so that the last waits for the verdict
  for (const Chunk& chunk : list.chunks) {
    BELAY_TRY(Bytes bytes, Get({ObjectType::kBlob, chunk.id}));
    if (bytes.size() != chunk.length)
      return Error(Errc::kCorrupt, "chunk list of " + id.hex() + " is damaged");
    whole.Update(bytes);
    if (!held.empty()) BELAY_OK(sink(held));
    held = std::move(bytes);
  }
  if (whole.Finish() != id && !BELAY_MUTANT("trust-chunk-list"))
    return Error(Errc::kCorrupt, "content " + id.hex() + " does not match its hash");
  return sink(held);
}

Result<Bytes> Store::ReadContentBytes(const ObjectId& id, uint64_t limit) {
  Bytes all;
  BELAY_OK(ReadContent(id, [&](ByteSpan piece) -> Status {
    if (piece.size() > limit - all.size())
      return Error(Errc::kInvalid, "content " + id.hex() + " is too long");
    all.insert(all.end(), piece.begin(), piece.end());
    return Ok();
  }));
  return all;
}

Result<LogPosition> Store::ReadLog(
    const std::optional<LogPosition>& after,
    const std::function<Status(const LogRecord&)>& visit) {
  BELAY_TRY(HeldLock use, HoldForReading());
  return ReadLogHeld(after, visit);
}

Result<HeldLock> Store::HoldForReading() {
  auto held = locks_.Acquire(StoreLock::kUse, LockMode::kShared);
  // A store on a read-only disk cannot be collected either.
  if (!held.ok() && held.error().code == Errc::kRefused) return HeldLock();
  return held;
}

Result<LogPosition> Store::ReadLogHeld(
    const std::optional<LogPosition>& after,
    const std::function<Status(const LogRecord&)>& visit) {
  BELAY_OK(Refresh());
  Manifest m = manifest();
  LogPosition position;
  position.generation = m.generation;
  size_t first = 0;
  uint64_t from = kPackHeaderSize;
  if (after && after->generation == m.generation && !after->pack.is_zero()) {
    for (size_t i = 0; i < m.packs.size(); ++i) {
      if (m.packs[i].id != after->pack) continue;
      first = i;
      from = after->offset;
    }
  }
  for (size_t i = first; i < m.packs.size(); ++i, from = kPackHeaderSize) {
    const Manifest::Pack& listed = m.packs[i];
    auto file = PackFile::Open(fs_, packs_dir_, listed.id, m.store, OpenMode::Read());
    if (!file.ok()) {
      Errc code = file.error().code;
      position.whole = false;
      if (code == Errc::kCorrupt || code == Errc::kNotFound) continue;
      return std::move(file).error();
    }
    // First what must be there: a writer may move the mark on meanwhile.
    BELAY_TRY(uint64_t due, DueLength(listed));
    BELAY_TRY(uint64_t end, EndOf(listed, *file));
    position.whole &= end >= due;
    auto on_batch = [&](const BatchHeader& b, bool damaged) -> Status {
      uint64_t index = 0;
      uint64_t readable = 0;
      bool visitor_failed = false;  // its errors are not the pack's damage
      Status walked = file->ForEachRecord(b, PackFile::Part::kLog,
                                          [&](const RecordAt& r) -> Status {
                                            if (r.header.type != ObjectType::kLog)
                                              return Ok();
                                            uint64_t place = index++;
                                            auto bytes = file->ReadRecord(r);
                                            if (!bytes.ok()) {
                                              if (bytes.error().code == Errc::kCorrupt)
                                                return Ok();
                                              return std::move(bytes).error();
                                            }
                                            auto record = DecodeLogRecord(*bytes);
                                            if (!record.ok()) return Ok();
                                            if (record->seq == 0)
                                              record->seq = b.first_seq + place;
                                            ++readable;
                                            Status visited = visit(*record);
                                            visitor_failed = !visited.ok();
                                            return visited;
                                          });
      if (!walked.ok() && (visitor_failed || walked.error().code != Errc::kCorrupt))
        return walked;
      position.whole &= walked.ok() && !damaged && readable == b.log_count;
      return Ok();
    };
    BELAY_OK(file->ForEachBatch(from, end, on_batch));
    // Also beyond the end: a batch there may be whole, and only not be read this time.
    position.whole &= !file->has_unreadable() || BELAY_MUTANT("unreadable-is-absent");
    position.pack = listed.id;
    position.offset = std::max(end, from);
  }
  return position;
}

}  // namespace belay
