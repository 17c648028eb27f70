#pragma once

// HookFs calls a function before and after calls on another Fs, which makes a race
// between two processes a matter of course: when the first is about to do this, the
// second does that.
//
// The hook may itself use the inner Fs, or this one (it is not called again from
// within). What `before` answers, if not success, is what the call answers.

#include <functional>
#include <map>
#include <string>

#include "base/fault_fs.h"

namespace belay::test {

class HookFs final : public Fs {
 public:
  // The kind of call and the name of the file, as far as this Fs opened it.
  using Before = std::function<Status(FsCall call, const std::string& name)>;
  using After = std::function<void(FsCall call, const std::string& name)>;
  // For reads, with the place: a bad sector.
  using OnRead =
      std::function<Status(const std::string& name, uint64_t offset, size_t count)>;

  explicit HookFs(Fs& inner, Before before, After after = {})
      : inner_(inner), before_(std::move(before)), after_(std::move(after)) {}

  void SetOnRead(OnRead on_read) { on_read_ = std::move(on_read); }

  Result<Fd> OpenDir(const AbsPath& path) override { return inner_.OpenDir(path); }
  Result<Fd> Open(const Fd& dir, NameRef name, const OpenMode& mode) override {
    return Hooked(FsCall::kOpen, std::string(name.bytes()), [&] {
      auto opened = inner_.Open(dir, name, mode);
      if (opened.ok()) names_[opened->handle()] = std::string(name.bytes());
      return opened;
    });
  }
  Result<Fd> OpenBeneath(const Fd& root, const RelPath& path,
                         const OpenMode& mode) override {
    return inner_.OpenBeneath(root, path, mode);
  }
  Result<Fd> Duplicate(const Fd& file) override { return inner_.Duplicate(file); }
  Status Close(int handle) override { return inner_.Close(handle); }
  Result<AbsPath> RealPath(const AbsPath& path) override {
    return inner_.RealPath(path);
  }

  Result<size_t> Read(const Fd& file, uint64_t offset,
                      std::span<std::byte> out) override {
    if (on_read_) BELAY_OK(on_read_(NameOf(file), offset, out.size()));
    return inner_.Read(file, offset, out);
  }
  Result<size_t> Write(const Fd& file, uint64_t offset, ByteSpan bytes) override {
    return Hooked(FsCall::kWrite, NameOf(file),
                  [&] { return inner_.Write(file, offset, bytes); });
  }
  Status Truncate(const Fd& file, uint64_t size) override {
    return Hooked(FsCall::kTruncate, NameOf(file),
                  [&] { return inner_.Truncate(file, size); });
  }
  Status ShareBlocks(const Fd& from, const Fd& to) override {
    return Hooked(FsCall::kShareBlocks, NameOf(to),
                  [&] { return inner_.ShareBlocks(from, to); });
  }
  Status SyncData(const Fd& file) override {
    return Hooked(FsCall::kSyncData, NameOf(file),
                  [&] { return inner_.SyncData(file); });
  }
  Status Sync(const Fd& file) override {
    return Hooked(FsCall::kSync, NameOf(file), [&] { return inner_.Sync(file); });
  }
  Status SyncAll(const Fd& any) override {
    return Hooked(FsCall::kSyncAll, NameOf(any), [&] { return inner_.SyncAll(any); });
  }

  Result<FileStat> Stat(const Fd& file) override { return inner_.Stat(file); }
  Result<FileStat> StatAt(const Fd& dir, NameRef name) override {
    return inner_.StatAt(dir, name);
  }
  Result<std::vector<DirEntry>> List(const Fd& dir) override {
    return inner_.List(dir);
  }
  Result<std::string> ReadLink(const Fd& dir, NameRef name) override {
    return inner_.ReadLink(dir, name);
  }
  Status AwaitLength(const Fd& file) override { return inner_.AwaitLength(file); }
  Result<FsInfo> Info(const Fd& any) override { return inner_.Info(any); }

  Status MakeDir(const Fd& dir, const Name& name, uint32_t mode) override {
    return Hooked(FsCall::kMakeDir, name.bytes(),
                  [&] { return inner_.MakeDir(dir, name, mode); });
  }
  Status Unlink(const Fd& dir, const Name& name) override {
    return Hooked(FsCall::kUnlink, name.bytes(),
                  [&] { return inner_.Unlink(dir, name); });
  }
  Status RemoveDir(const Fd& dir, const Name& name) override {
    return inner_.RemoveDir(dir, name);
  }
  Status Symlink(const Fd& dir, const Name& name, std::string_view target) override {
    return inner_.Symlink(dir, name, target);
  }
  Status Link(const Fd& from_dir, const Name& from, const Fd& to_dir,
              const Name& to) override {
    return inner_.Link(from_dir, from, to_dir, to);
  }
  Status Rename(const Fd& from_dir, const Name& from, const Fd& to_dir, const Name& to,
                RenameHow how) override {
    return Hooked(FsCall::kRename, to.bytes(),
                  [&] { return inner_.Rename(from_dir, from, to_dir, to, how); });
  }

  Status SetMode(const Fd& file, uint32_t mode) override {
    return inner_.SetMode(file, mode);
  }
  Status SetOwner(const Fd& file, uint32_t uid, uint32_t gid) override {
    return inner_.SetOwner(file, uid, gid);
  }
  Status SetTimes(const Fd& file, int64_t atime_ns, int64_t mtime_ns) override {
    return inner_.SetTimes(file, atime_ns, mtime_ns);
  }
  Result<std::vector<std::string>> ListXattrs(const Fd& file) override {
    return inner_.ListXattrs(file);
  }
  Result<Bytes> GetXattr(const Fd& file, const std::string& name) override {
    return inner_.GetXattr(file, name);
  }
  Status SetXattr(const Fd& file, const std::string& name, ByteSpan value) override {
    return inner_.SetXattr(file, name, value);
  }
  Status RemoveXattr(const Fd& file, const std::string& name) override {
    return inner_.RemoveXattr(file, name);
  }
  Result<bool> TryLock(const Fd& file, uint64_t byte, LockMode mode) override {
    return inner_.TryLock(file, byte, mode);
  }
  Status Unlock(const Fd& file, uint64_t byte) override {
    return inner_.Unlock(file, byte);
  }
  Result<LeaseOutcome> TryLease(const Fd& file, LockMode mode) override {
    return inner_.TryLease(file, mode);
  }
  Status EndLease(const Fd& file) override { return inner_.EndLease(file); }

 private:
  std::string NameOf(const Fd& file) const {
    auto at = names_.find(file.handle());
    return at == names_.end() ? "" : at->second;
  }
  template <class Perform>
  auto Hooked(FsCall call, const std::string& name, Perform perform)
      -> decltype(perform()) {
    if (inside_) return perform();
    inside_ = true;
    Status first = before_ ? before_(call, name) : Ok();
    inside_ = false;
    if (!first.ok()) return std::move(first).error();
    auto result = perform();
    inside_ = true;
    if (after_) after_(call, name);
    inside_ = false;
    return result;
  }

  Fs& inner_;
  Before before_;
  After after_;
  OnRead on_read_;
  bool inside_ = false;
  std::map<int, std::string> names_;
};

}  // namespace belay::test
