#include "store/locks.h"

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "base/mutant.h"
#include "base/sha256.h"

namespace belay {

namespace {
std::string_view Holder(StoreLock which) {
  switch (which) {
    case StoreLock::kCollector:
      return "another belay process is cleaning up the store";
    case StoreLock::kGate:
      return "another belay process is about to clean up the store";
    case StoreLock::kUse:
      return "another belay process is using the store";
    case StoreLock::kAppend:
      return "another belay process is writing to the store";
    case StoreLock::kCatalog:
      return "another belay process is updating the catalogue";
  }
  return "the store is locked";
}

// Only what speaks of locks: a disk may fail in a lock call too.
Error LocksDoNotWork(Error cause) {
  if (cause.code != Errc::kUnsupported && cause.code != Errc::kInvalid) return cause;
  return Error(Errc::kUnsupported, cause.sys,
               "the store's file system has no working locks (" + cause.what + ")")
      .WithHint("move the store to a local disk: set BELAY_HOME");
}

constexpr uint64_t kProbeByte = 63;

const Name& LockFileName() {
  static const Name name = Name::Literal("lock");
  return name;
}

// Whether it is worth two more calls to see that the file is the present one: for what
// keeps others from writing to the packs. Shared locks, and those of the catalogue,
// which can be made again, do without: they are taken most often.
bool GuardsChanges(uint64_t byte, LockMode mode) {
  if (BELAY_MUTANT("lock-by-old-name")) return false;
  return mode == LockMode::kExclusive &&
         byte != static_cast<uint64_t>(StoreLock::kCatalog);
}

// So often is the file opened again when it was moved away: more is no accident.
constexpr int kOpenings = 8;

Error MovedAway() {
  return Error(Errc::kBusy, "the store's file `lock` is being moved away all the time")
      .WithHint("try again in a moment");
}
}  // namespace

Result<Fd> StoreLocks::OpenFile() {
  auto file = fs_.Open(dir_, LockFileName(), OpenMode::OpenOrCreate());
  // ENXIO: a socket, or a device that is not there.
  if (!file.ok() && (file.error().sys == EISDIR || file.error().sys == ELOOP ||
                     file.error().sys == ENXIO)) {
    Error error = std::move(file).error();
    error.code = Errc::kCorrupt;
    error.what = "the store's file `lock` is something else: " + error.what;
    error.hint = "put it right with: belay repair";
    return error;
  }
  return file;
}

Result<bool> StoreLocks::IsPresent(const Fd& file, uint64_t byte, LockMode mode) {
  if (!GuardsChanges(byte, mode)) return true;
  BELAY_TRY(FileStat ours, fs_.Stat(file));
  auto present = fs_.StatAt(dir_, LockFileName());
  if (present.ok()) return present->dev == ours.dev && present->ino == ours.ino;
  if (present.error().code == Errc::kNotFound) return false;
  return std::move(present).error();
}

Result<std::optional<HeldLock>> StoreLocks::TryAcquire(StoreLock which, LockMode mode) {
  const auto byte = static_cast<uint64_t>(which);
  for (int i = 0; i < kOpenings; ++i) {
    BELAY_TRY(Fd file, OpenFile());
    auto got = fs_.TryLock(file, byte, mode);
    if (!got.ok()) return LocksDoNotWork(got.error());
    if (!*got) return std::optional<HeldLock>();
    BELAY_TRY(const bool present, IsPresent(file, byte, mode));
    if (present) return std::optional<HeldLock>(HeldLock(std::move(file)));
  }
  return MovedAway();
}

Result<HeldLock> StoreLocks::Acquire(StoreLock which, LockMode mode, int64_t wait_ms) {
  return AcquireByte(static_cast<uint64_t>(which), mode, wait_ms, Holder(which));
}

Result<HeldLock> StoreLocks::AcquireRoot(const RootId& root, int64_t wait_ms) {
  // Far above the locks of the store. Two roots that share a byte wait for each other,
  // and nothing worse.
  constexpr uint64_t kFirst = uint64_t{1} << 32;
  const uint64_t byte = kFirst + (LoadU64(root.bytes.data()) >> 16);
  return AcquireByte(byte, LockMode::kExclusive, wait_ms,
                     "another belay process is at work on this directory");
}

Result<HeldLock> StoreLocks::AcquireNamed(std::string_view name, LockMode mode,
                                          int64_t wait_ms, std::string_view holder) {
  constexpr uint64_t kFirst = uint64_t{1} << 50;
  return AcquireByte(kFirst + (Check64(AsBytes(name)) >> 16), mode, wait_ms, holder);
}

Result<HeldLock> StoreLocks::AcquireByte(uint64_t byte, LockMode mode, int64_t wait_ms,
                                         std::string_view holder) {
  BELAY_TRY(Fd file, OpenFile());
  const int64_t deadline = clock_.SteadyNanos() + wait_ms * 1'000'000;
  constexpr int64_t kFirstPause = 50'000;  // 50 us: an append takes about a millisecond
  constexpr int64_t kLongestPause = 5'000'000;
  int openings = 1;
  for (int64_t pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    auto got = fs_.TryLock(file, byte, mode);
    if (!got.ok()) return LocksDoNotWork(got.error());
    if (*got) {
      BELAY_TRY(const bool present, IsPresent(file, byte, mode));
      if (present) return HeldLock(std::move(file));
      if (openings++ == kOpenings) return MovedAway();
      BELAY_TRY(file, OpenFile());
      continue;
    }
    if (clock_.SteadyNanos() >= deadline)
      return Error(Errc::kBusy, std::string(holder)).WithHint("try again in a moment");
    clock_.SleepNanos(pause);
  }
}

Status StoreLocks::Probe() {
  BELAY_TRY(Fd one, OpenFile());
  BELAY_TRY(Fd two, OpenFile());
  auto first = fs_.TryLock(one, kProbeByte, LockMode::kExclusive);
  if (!first.ok()) return LocksDoNotWork(first.error());
  if (!*first) return Ok();  // somebody else is probing: so locks exclude
  auto second = fs_.TryLock(two, kProbeByte, LockMode::kExclusive);
  if (!second.ok()) return LocksDoNotWork(second.error());
  if (*second)
    return LocksDoNotWork(
        Error(Errc::kUnsupported, "two holders of one exclusive lock"));
  return Ok();
}

}  // namespace belay
