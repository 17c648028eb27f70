#include "base/fault_fs.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace belay {

namespace {

constexpr std::string_view kNames[] = {
    "OpenDir",     "Open",     "OpenBeneath", "Duplicate",   "Close",    "RealPath",
    "Read",        "Write",    "Truncate",    "ShareBlocks", "SyncData", "Sync",
    "SyncAll",     "Stat",     "StatAt",      "List",        "ReadLink", "Info",
    "MakeDir",     "Unlink",   "RemoveDir",   "Symlink",     "Link",     "Rename",
    "SetMode",     "SetOwner", "SetTimes",    "ListXattrs",  "GetXattr", "SetXattr",
    "RemoveXattr", "TryLock",  "Unlock",      "TryLease",    "EndLease", "AwaitLength"};
static_assert(std::size(kNames) == kFsCalls);

[[noreturn]] void KillSelf() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

Fault At(Fault::Kind kind, uint64_t at) {
  Fault fault;
  fault.kind = kind;
  fault.at = at;
  return fault;
}

}  // namespace

std::string_view FsCallName(FsCall call) { return kNames[static_cast<size_t>(call)]; }

Fault Fault::Errno(uint64_t at, int sys, bool sticky) {
  Fault fault = At(Kind::kErrno, at);
  fault.sys = sys;
  fault.sticky = sticky;
  return fault;
}
Fault Fault::ShortWrite(uint64_t at) {
  Fault fault = At(Kind::kShortWrite, at);
  fault.only = {FsCall::kWrite};
  return fault;
}
Fault Fault::Eintr(uint64_t at) { return At(Kind::kEintr, at); }
Fault Fault::Kill(uint64_t at) { return At(Kind::kKill, at); }
Fault Fault::KillAfter(uint64_t at) { return At(Kind::kKillAfter, at); }
Fault Fault::PowerCut(uint64_t at, std::function<void()> cut) {
  Fault fault = At(Kind::kPowerCut, at);
  fault.cut = std::move(cut);
  return fault;
}

std::string Fault::Text() const {
  std::string what;
  switch (kind) {
    case Kind::kNone:
      return "no fault";
    case Kind::kErrno: {
      const char* name = strerrorname_np(sys);
      what = name != nullptr ? name : "errno " + std::to_string(sys);
      break;
    }
    case Kind::kShortWrite:
      what = "short write";
      break;
    case Kind::kEintr:
      what = "EINTR";
      break;
    case Kind::kKill:
      what = "kill";
      break;
    case Kind::kKillAfter:
      what = "kill after";
      break;
    case Kind::kPowerCut:
      what = "power cut";
      break;
  }
  return what + (sticky ? " from call " : " at call ") + std::to_string(at);
}

FaultFs::FaultFs(Fs& inner, Fault fault) : inner_(inner), fault_(std::move(fault)) {}

bool FaultFs::fired() const {
  std::lock_guard lock(mutex_);
  return fired_;
}
uint64_t FaultFs::calls() const {
  std::lock_guard lock(mutex_);
  return log_.size();
}
uint64_t FaultFs::calls(FsCall kind) const {
  std::lock_guard lock(mutex_);
  return by_kind_[static_cast<size_t>(kind)];
}
std::vector<FsCall> FaultFs::log() const {
  std::lock_guard lock(mutex_);
  return log_;
}
bool FaultFs::power_is_off() const {
  std::lock_guard lock(mutex_);
  return power_is_off_;
}
std::string FaultFs::Where() const {
  std::lock_guard lock(mutex_);
  uint64_t at = fired_ ? fired_at_ : log_.size();
  if (at == 0) return "no call";
  return "call " + std::to_string(at) + ": " + std::string(FsCallName(log_[at - 1]));
}

FaultFs::Verdict FaultFs::Count(FsCall kind, bool mutating) {
  std::function<void()> cut;
  Verdict verdict;
  {
    std::lock_guard lock(mutex_);
    ++by_kind_[static_cast<size_t>(kind)];
    if (power_is_off_) return {.sys = EIO};
    if (fault_.mutating_only && !mutating) return {};
    if (!fault_.only.empty() &&
        std::find(fault_.only.begin(), fault_.only.end(), kind) == fault_.only.end())
      return {};
    log_.push_back(kind);
    uint64_t number = log_.size();
    // EINTR for ever would be a kernel that never lets a call return.
    bool sticky = fault_.sticky && fault_.sys != EINTR;
    bool hit = number == fault_.at || (sticky && number > fault_.at);
    if (fault_.kind == Fault::Kind::kNone || !hit) return {};
    if (!fired_) fired_at_ = number;
    fired_ = true;
    switch (fault_.kind) {
      case Fault::Kind::kNone:
        break;
      case Fault::Kind::kErrno:
        verdict.sys = fault_.sys;
        break;
      case Fault::Kind::kShortWrite:
        verdict.half = true;
        break;
      case Fault::Kind::kEintr:
        verdict.sys = EINTR;
        break;
      case Fault::Kind::kKill:
        KillSelf();
      case Fault::Kind::kKillAfter:
        verdict.kill_after = true;
        break;
      case Fault::Kind::kPowerCut:
        power_is_off_ = true;
        verdict.sys = EIO;
        cut = fault_.cut;
        break;
    }
  }
  if (cut) cut();
  return verdict;
}

template <class Perform>
auto FaultFs::Pass(FsCall kind, bool mutating, Perform perform) -> decltype(perform()) {
  Verdict verdict = Count(kind, mutating);
  if (verdict.sys != 0) {
    std::string what(FsCallName(kind));
    return SysError(verdict.sys, what + " (injected)");
  }
  auto result = perform();
  if (verdict.kill_after) KillSelf();
  return result;
}

Result<Fd> FaultFs::Rebind(Result<Fd> fd) {
  if (!fd.ok()) return fd;
  return Fd(*this, fd->Release());
}

// --- the calls -----------------------------------------------------------------------

Result<Fd> FaultFs::OpenDir(const AbsPath& path) {
  return Pass(FsCall::kOpenDir, false, [&] { return Rebind(inner_.OpenDir(path)); });
}
Result<Fd> FaultFs::Open(const Fd& dir, NameRef name, const OpenMode& mode) {
  return Pass(FsCall::kOpen, mode.create || mode.truncate,
              [&] { return Rebind(inner_.Open(dir, name, mode)); });
}
Result<Fd> FaultFs::OpenBeneath(const Fd& root, const RelPath& path,
                                const OpenMode& mode) {
  return Pass(FsCall::kOpenBeneath, mode.create || mode.truncate,
              [&] { return Rebind(inner_.OpenBeneath(root, path, mode)); });
}
Result<Fd> FaultFs::Duplicate(const Fd& file) {
  return Pass(FsCall::kDuplicate, false,
              [&] { return Rebind(inner_.Duplicate(file)); });
}
Status FaultFs::Close(int handle) {
  Verdict verdict = Count(FsCall::kClose, false);
  Status closed = inner_.Close(handle);
  if (verdict.kill_after) KillSelf();
  if (verdict.sys != 0) return SysError(verdict.sys, "Close (injected)");
  return closed;
}
Result<AbsPath> FaultFs::RealPath(const AbsPath& path) {
  return Pass(FsCall::kRealPath, false, [&] { return inner_.RealPath(path); });
}

Result<size_t> FaultFs::Read(const Fd& file, uint64_t offset,
                             std::span<std::byte> out) {
  return Pass(FsCall::kRead, false, [&] { return inner_.Read(file, offset, out); });
}
Result<size_t> FaultFs::Write(const Fd& file, uint64_t offset, ByteSpan bytes) {
  Verdict verdict = Count(FsCall::kWrite, true);
  if (verdict.sys != 0) return SysError(verdict.sys, "Write (injected)");
  // One byte cannot be halved: a write of nothing is not what the kernel does.
  if (verdict.half) bytes = bytes.first((bytes.size() + 1) / 2);
  auto put = inner_.Write(file, offset, bytes);
  if (verdict.kill_after) KillSelf();
  return put;
}
Status FaultFs::Truncate(const Fd& file, uint64_t size) {
  return Pass(FsCall::kTruncate, true, [&] { return inner_.Truncate(file, size); });
}
Status FaultFs::ShareBlocks(const Fd& from, const Fd& to) {
  return Pass(FsCall::kShareBlocks, true, [&] { return inner_.ShareBlocks(from, to); });
}
Status FaultFs::SyncData(const Fd& file) {
  return Pass(FsCall::kSyncData, true, [&] { return inner_.SyncData(file); });
}
Status FaultFs::Sync(const Fd& file) {
  return Pass(FsCall::kSync, true, [&] { return inner_.Sync(file); });
}
Status FaultFs::SyncAll(const Fd& any) {
  return Pass(FsCall::kSyncAll, true, [&] { return inner_.SyncAll(any); });
}

Result<FileStat> FaultFs::Stat(const Fd& file) {
  return Pass(FsCall::kStat, false, [&] { return inner_.Stat(file); });
}
Result<FileStat> FaultFs::StatAt(const Fd& dir, NameRef name) {
  return Pass(FsCall::kStatAt, false, [&] { return inner_.StatAt(dir, name); });
}
Result<std::vector<DirEntry>> FaultFs::List(const Fd& dir) {
  return Pass(FsCall::kList, false, [&] { return inner_.List(dir); });
}
Result<std::string> FaultFs::ReadLink(const Fd& dir, NameRef name) {
  return Pass(FsCall::kReadLink, false, [&] { return inner_.ReadLink(dir, name); });
}
Result<FsInfo> FaultFs::Info(const Fd& any) {
  return Pass(FsCall::kInfo, false, [&] { return inner_.Info(any); });
}

Status FaultFs::MakeDir(const Fd& dir, const Name& name, uint32_t mode) {
  return Pass(FsCall::kMakeDir, true, [&] { return inner_.MakeDir(dir, name, mode); });
}
Status FaultFs::Unlink(const Fd& dir, const Name& name) {
  return Pass(FsCall::kUnlink, true, [&] { return inner_.Unlink(dir, name); });
}
Status FaultFs::RemoveDir(const Fd& dir, const Name& name) {
  return Pass(FsCall::kRemoveDir, true, [&] { return inner_.RemoveDir(dir, name); });
}
Status FaultFs::Symlink(const Fd& dir, const Name& name, std::string_view target) {
  return Pass(FsCall::kSymlink, true,
              [&] { return inner_.Symlink(dir, name, target); });
}
Status FaultFs::Link(const Fd& from_dir, const Name& from, const Fd& to_dir,
                     const Name& to) {
  return Pass(FsCall::kLink, true,
              [&] { return inner_.Link(from_dir, from, to_dir, to); });
}
Status FaultFs::Rename(const Fd& from_dir, const Name& from, const Fd& to_dir,
                       const Name& to, RenameHow how) {
  return Pass(FsCall::kRename, true,
              [&] { return inner_.Rename(from_dir, from, to_dir, to, how); });
}

Status FaultFs::SetMode(const Fd& file, uint32_t mode) {
  return Pass(FsCall::kSetMode, true, [&] { return inner_.SetMode(file, mode); });
}
Status FaultFs::SetOwner(const Fd& file, uint32_t uid, uint32_t gid) {
  return Pass(FsCall::kSetOwner, true, [&] { return inner_.SetOwner(file, uid, gid); });
}
Status FaultFs::SetTimes(const Fd& file, int64_t atime_ns, int64_t mtime_ns) {
  return Pass(FsCall::kSetTimes, true,
              [&] { return inner_.SetTimes(file, atime_ns, mtime_ns); });
}
Result<std::vector<std::string>> FaultFs::ListXattrs(const Fd& file) {
  return Pass(FsCall::kListXattrs, false, [&] { return inner_.ListXattrs(file); });
}
Result<Bytes> FaultFs::GetXattr(const Fd& file, const std::string& name) {
  return Pass(FsCall::kGetXattr, false, [&] { return inner_.GetXattr(file, name); });
}
Status FaultFs::SetXattr(const Fd& file, const std::string& name, ByteSpan value) {
  return Pass(FsCall::kSetXattr, true,
              [&] { return inner_.SetXattr(file, name, value); });
}
Status FaultFs::RemoveXattr(const Fd& file, const std::string& name) {
  return Pass(FsCall::kRemoveXattr, true,
              [&] { return inner_.RemoveXattr(file, name); });
}

Result<bool> FaultFs::TryLock(const Fd& file, uint64_t byte, LockMode mode) {
  return Pass(FsCall::kTryLock, false,
              [&] { return inner_.TryLock(file, byte, mode); });
}
Status FaultFs::Unlock(const Fd& file, uint64_t byte) {
  return Pass(FsCall::kUnlock, false, [&] { return inner_.Unlock(file, byte); });
}
Result<LeaseOutcome> FaultFs::TryLease(const Fd& file, LockMode mode) {
  return Pass(FsCall::kTryLease, false, [&] { return inner_.TryLease(file, mode); });
}
Status FaultFs::EndLease(const Fd& file) {
  return Pass(FsCall::kEndLease, false, [&] { return inner_.EndLease(file); });
}

Status FaultFs::AwaitLength(const Fd& file) {
  return Pass(FsCall::kAwaitLength, false, [&] { return inner_.AwaitLength(file); });
}

}  // namespace belay
