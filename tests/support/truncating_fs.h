#pragma once

// TruncatingFs shows files that are being truncated as ext4 does: the length is the new
// one, the times are the old ones until somebody waits for the end (Fs::AwaitLength).

#include <map>

#include "support/pass_fs.h"

namespace belay::test {

class TruncatingFs final : public PassFs {
 public:
  using PassFs::PassFs;
  Status Begin(const Fd& root, const RelPath& path, uint64_t size) {
    BELAY_TRY(Fd file, inner_.OpenBeneath(root, path, OpenMode::ReadWrite()));
    BELAY_TRY(FileStat stat, inner_.Stat(file));
    times_[stat.ino] = stat.ctime_ns;
    return inner_.Truncate(file, size);
  }

  Result<FileStat> Stat(const Fd& file) override { return Shown(inner_.Stat(file)); }
  Result<FileStat> StatAt(const Fd& dir, NameRef name) override {
    return Shown(inner_.StatAt(dir, name));
  }
  Status AwaitLength(const Fd& file) override {
    BELAY_TRY(FileStat stat, inner_.Stat(file));
    times_.erase(stat.ino);
    return inner_.AwaitLength(file);
  }

 private:
  Result<FileStat> Shown(Result<FileStat> stat) const {
    if (!stat.ok()) return stat;
    if (auto old = times_.find(stat->ino); old != times_.end())
      stat->mtime_ns = stat->ctime_ns = old->second;
    return stat;
  }

  std::map<uint64_t, int64_t> times_;  // still shown of an inode
};

}  // namespace belay::test
