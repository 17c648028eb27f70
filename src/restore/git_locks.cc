#include "restore/git_locks.h"

#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"

namespace belay {

namespace {

constexpr int64_t kPauseNanos = 10'000'000;
constexpr size_t kMaxToken = 256;

bool IsGone(const Error& error) {
  return error.code == Errc::kNotFound || error.sys == ENOTDIR;
}

}  // namespace

GitLocks::GitLocks(Fs& fs, Clock& clock, const Fd& dir, std::string path,
                   const std::vector<std::string>& locks, const RecordId& operation)
    : fs_(fs),
      clock_(clock),
      dir_(dir),
      path_(std::move(path)),
      locks_(locks),
      token_("belay " + operation.text() + "\n"),
      first_(Name::Literal(".belay-lock-" + operation.text())) {}

Result<bool> GitLocks::IsOurs(const std::string& path) {
  BELAY_TRY(RelPath rel, RelPath::Parse(path));
  auto parent = OpenParent(fs_, dir_, rel);
  if (!parent.ok()) {
    if (IsGone(parent.error())) return false;
    return std::move(parent).error();
  }
  // A name of the file that ours are names of, whatever is in it.
  auto first = fs_.StatAt(dir_, first_);
  auto lock = fs_.StatAt(parent->dir, parent->name);
  if (first.ok() && lock.ok() && first->ino == lock->ino && first->dev == lock->dev)
    return true;
  auto bytes = ReadSmallFile(fs_, parent->dir, parent->name, kMaxToken);
  if (!bytes.ok()) {
    if (IsGone(bytes.error()) || bytes.error().code == Errc::kInvalid) return false;
    return std::move(bytes).error();
  }
  return AsText(*bytes) == token_;
}

Error GitLocks::Held(const std::string& path) const {
  return Error(Errc::kBusy, "git is at work here: " +
                                EscapeForDisplay(path_ + "/" + path) + " is held")
      .WithHint("try again when it is done; if no git is running, remove that file");
}

Status GitLocks::WaitFor(const std::string& path, int64_t deadline_ns) {
  BELAY_TRY(RelPath rel, RelPath::Parse(path));
  for (;;) {
    auto parent = OpenParent(fs_, dir_, rel);
    if (!parent.ok() || !fs_.StatAt(parent->dir, parent->name).ok()) return Ok();
    BELAY_TRY(bool ours, IsOurs(path));
    if (ours || BELAY_MUTANT("git-breaks-foreign-locks")) return Ok();
    if (clock_.SteadyNanos() >= deadline_ns) return Held(path);
    clock_.SleepNanos(kPauseNanos);
  }
}

Status GitLocks::TakeOne(const std::string& path, int64_t deadline_ns) {
  BELAY_TRY(RelPath rel, RelPath::Parse(path));
  for (;;) {
    auto parent = OpenParent(fs_, dir_, rel);
    if (!parent.ok()) {
      // The directory of a branch that is not there yet: nobody can hold its lock.
      if (IsGone(parent.error())) return Ok();
      return std::move(parent).error();
    }
    Status taken = fs_.Link(dir_, first_, parent->dir, parent->name);
    if (taken.ok() || taken.error().code != Errc::kExists) return taken;
    BELAY_TRY(bool ours, IsOurs(path));
    if (ours) return Ok();
    if (BELAY_MUTANT("git-breaks-foreign-locks")) {
      BELAY_OK(fs_.Unlink(parent->dir, parent->name));
      continue;
    }
    if (clock_.SteadyNanos() >= deadline_ns) return Held(path);
    clock_.SleepNanos(kPauseNanos);
  }
}

Status GitLocks::Take(int64_t wait_ms) {
  if (locks_.empty() || BELAY_MUTANT("git-takes-no-locks")) return Ok();
  const int64_t deadline = clock_.SteadyNanos() + wait_ms * 1'000'000;
  // Who has to wait leaves no trace meanwhile.
  for (const std::string& lock : locks_) BELAY_OK(WaitFor(lock, deadline));
  BELAY_TRY(Fd file, fs_.Open(dir_, first_, OpenMode::OpenOrCreate(0644)));
  // After a crash locks are names of it already: it is never without its content again.
  BELAY_OK(WriteFull(fs_, file, 0, AsBytes(token_)));
  BELAY_OK(fs_.Sync(file));
  BELAY_OK(file.Close());
  for (const std::string& lock : locks_) {
    Status taken = TakeOne(lock, deadline);
    if (taken.ok()) continue;
    (void)Release();
    return taken;
  }
  return Ok();
}

Status GitLocks::Release() {
  for (const std::string& lock : locks_) {
    BELAY_TRY(bool ours, IsOurs(lock));
    if (!ours) continue;
    BELAY_TRY(RelPath rel, RelPath::Parse(lock));
    BELAY_TRY(Parent parent, OpenParent(fs_, dir_, rel));
    Status gone = fs_.Unlink(parent.dir, parent.name);
    if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  }
  Status gone = fs_.Unlink(dir_, first_);
  if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  return Ok();
}

}  // namespace belay
