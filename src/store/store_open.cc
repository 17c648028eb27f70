// Opening a store, making one, and refusing to.

#include <cerrno>

#include "base/escape.h"
#include "base/machine.h"
#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/store.h"
#include "store/store_files.h"
#include "store/stray_pack.h"

namespace belay {

namespace {

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
    return Error(Errc::kRefused, "there is no store, and none can be made: " +
                                     EscapeForDisplay(at.bytes()) +
                                     " is a symlink to " + EscapeForDisplay(*target) +
                                     ", which is not there")
        .WithHint("make that directory (is its disk mounted?), or set BELAY_HOME");
  }
  return Ok();
}

// What only a store has, and only once something was stored.
bool SomethingWasStored(Fs& fs, const Fd& dir) {
  auto tail = ReadSmallFile(fs, dir, TailName(), 4096);
  if (tail.ok() && DecodeTail(*tail)) return true;
  auto catalog = fs.Open(dir, Name::Literal("catalog"), OpenMode::Directory());
  return catalog.ok() && fs.StatAt(*catalog, Name::Literal("catalog.db")).ok();
}

// A store is made in a directory of its own. What an interrupted Create() left counts
// as nothing; anything else is somebody's, and neither its files nor its mode are
// touched.
Status CheckIsFree(Fs& fs, const Fd& dir, const AbsPath& path) {
  if (BELAY_MUTANT("settle-anywhere")) return Ok();
  BELAY_TRY(auto entries, fs.List(dir));
  // Another process made the store since we looked; Create() finds it.
  if (std::any_of(entries.begin(), entries.end(),
                  [](const DirEntry& e) { return e.name == "manifest"; }))
    return Ok();
  if (const auto strays = StrayPacks(fs, dir); !strays.empty())
    return Error(Errc::kCorrupt, "the manifest of " + path.bytes() + " is gone, and " +
                                     strays.front().shown() + " is a pack")
        .WithHint("run: belay repair");
  if (SomethingWasStored(fs, dir) && !BELAY_MUTANT("settle-on-ruins"))
    return Error(Errc::kCorrupt,
                 "the manifest and the packs of " + path.bytes() +
                     " are gone, and everything that was stored was in them")
        .WithHint(
            "bring back manifest and packs/ from a copy, then run: belay repair; "
            "to begin anew, remove " +
            path.bytes());
  for (const DirEntry& e : entries) {
    bool ours = e.name == "lock" || e.name == "packs" || e.name == "catalog" ||
                (e.name.starts_with("manifest.") && e.name.ends_with(".tmp"));
    if (!ours)
      return Error(Errc::kRefused,
                   path.bytes() + " is not empty and holds no Belay store")
          .WithHint("set BELAY_HOME to a new or an empty directory");
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
  if (!opened.ok()) {
    Error error = Context(std::move(opened).error(), "the store " + dir.bytes());
    if (error.sys == ENOTDIR) error.hint = "set BELAY_HOME to a directory";
    return error;
  }
  store->dir_ = std::move(*opened);
  BELAY_TRY(FileStat stat, fs.Stat(store->dir_));
  BELAY_OK(store->CheckOwner(stat, dir.bytes()));
  Status ready = store->OpenExisting();
  if (!ready.ok() && ready.error().code == Errc::kNotFound) {
    if (mode != Mode::kWrite) return std::move(ready).error();
    BELAY_OK(CheckIsFree(fs, store->dir_, dir));
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

Status Store::CheckPlace(Fs& fs, const AbsPath& dir) {
  auto opened = fs.OpenDir(dir);
  if (opened.ok()) return CheckIsFree(fs, *opened, dir);
  return opened.error().code == Errc::kNotFound ? CheckLinks(fs, dir) : Ok();
}

Status Store::CheckCanBeMade(Fs& fs, const AbsPath& dir, uint32_t uid) {
  AbsPath at = dir;
  auto there = fs.OpenDir(at);
  while (!there.ok() && there.error().code == Errc::kNotFound && !at.is_root()) {
    at = at.parent();
    there = fs.OpenDir(at);
  }
  auto refuse = [&](std::string_view why) {
    return Error(Errc::kRefused,
                 "the store " + EscapeForDisplay(dir.bytes()) + " cannot be made: " +
                     EscapeForDisplay(at.bytes()) + " " + std::string(why))
        .WithHint("another place for it: set BELAY_HOME");
  };
  BELAY_OK(there.ok() ? Ok() : Status(there.error()));
  BELAY_TRY(FsInfo info, fs.Info(*there));
  BELAY_TRY(FileStat stat, fs.Stat(*there));
  if (info.read_only) return refuse("is on a disk that is read-only");
  if (IsPseudoFileSystem(info.magic))
    return refuse("is on " + FileSystemName(info.magic) + ", which takes no files");
  // Who may is not all in the mode; who may not is: an ACL that lets somebody shows in
  // the bits of the group.
  if (uid != 0 && (stat.mode & (stat.uid == uid ? 0200u : 0022u)) == 0)
    return refuse("may not be written by you");
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
  // What the file system is called says nothing of how it was mounted, or of what
  // stands between it and us, and a store may have been made elsewhere and copied: who
  // writes tries it each time, by six calls. Readers rely on a name that is known.
  const bool tries = mode_ != Mode::kRead || !LocksAreKnownToWork(info.magic);
  if (tries && !info.read_only && !BELAY_MUTANT("believe-in-locks"))
    BELAY_OK(locks_.Probe());
  return Ok();
}

Status Store::OpenExisting() {
  auto packs = fs_.Open(dir_, PacksName(), OpenMode::Directory());
  const auto or_without = [this] {
    return std::string(
        LoadManifest().ok()
            ? "; to go on without it, for good: belay repair --accept-loss"
            : ", then run: belay repair");
  };
  if (!packs.ok()) {
    if (auto stat = fs_.StatAt(dir_, PacksName());
        stat.ok() && stat->type != FileType::kDirectory &&
        fs_.StatAt(dir_, ManifestName()).ok())
      return Error(Errc::kCorrupt, path_.bytes() + "/packs is " +
                                       std::string(FileTypeName(stat->type)) +
                                       ", not the directory with the packs")
          .WithHint("bring that back as " + path_.bytes() + "/packs" + or_without());
    if (packs.error().code != Errc::kNotFound) return std::move(packs).error();
    auto manifest = fs_.StatAt(dir_, ManifestName());
    // Somebody may have made the store between the two looks: the manifest comes last.
    if (manifest.ok()) packs = fs_.Open(dir_, PacksName(), OpenMode::Directory());
    if (!manifest.ok() && manifest.error().code != Errc::kNotFound)
      return std::move(manifest).error();
    if (manifest.ok() && !packs.ok())
      return Error(Errc::kCorrupt, "the store's packs directory is gone")
          .WithHint("bring back " + path_.bytes() + "/packs from a copy" +
                    or_without());
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
            .WithHint(StrayPacks(fs_, dir_).empty()
                          ? "bring them back from a copy; to begin anew, remove " +
                                path_.bytes()
                          : "run: belay repair");
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
  // What cannot be looked at is there: no store is made over it.
  auto is_there = [](const auto& found) {
    return found.ok() || found.error().code != Errc::kNotFound;
  };
  if (is_there(fs_.StatAt(dir_, TailName()))) return true;
  auto catalog = fs_.Open(dir_, Name::Literal("catalog"), OpenMode::Directory());
  if (!catalog.ok()) return is_there(catalog);
  return is_there(fs_.StatAt(*catalog, Name::Literal("catalog.db"))) ||
         is_there(fs_.StatAt(*catalog, Name::Literal("catalog.next")));
}

Status Store::Create() {
  // Two first users at once: the second finds what the first made.
  BELAY_TRY(HeldLock lock, locks_.Acquire(StoreLock::kAppend, LockMode::kExclusive));
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

}  // namespace belay
