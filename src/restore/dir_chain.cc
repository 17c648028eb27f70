#include "restore/dir_chain.h"

#include <algorithm>
#include <cerrno>

#include "base/mutant.h"

namespace belay {

// Of the way to where we are, what is also on the way to `path`.
void DirChain::KeepCommon(const std::string& path) {
  const size_t common = static_cast<size_t>(
      std::mismatch(
          path_.begin(),
          path_.begin() + static_cast<ptrdiff_t>(std::min(path_.size(), path.size())),
          path.begin())
          .first -
      path_.begin());
  auto leads_there = [&](const Level& level) {
    return level.end <= common && (level.end == path.size() || path[level.end] == '/');
  };
  while (!levels_.empty() &&
         (!leads_there(levels_.back()) || !levels_.back().handle.is_open()))
    levels_.pop_back();
}

Status DirChain::Descend(const std::string& path, size_t begin, size_t end) {
  const std::string name = path.substr(begin, end - begin);
  const Fd& above = levels_.empty() ? root_ : levels_.back().handle;
  BELAY_TRY(Fd handle,
            fs_.Open(above, NameRef::Known(name), {.access = OpenMode::Access::kPath}));
  BELAY_TRY(FileStat stat, fs_.Stat(handle));
  if (stat.type != FileType::kDirectory) return FsError(ENOTDIR, "open", name);
  if (stat.mount_root && !BELAY_MUTANT("deep-mount-is-ours")) {
    mounted_ = path.substr(0, end);
    return Error(Errc::kInvalid, EXDEV,
                 mounted_ + " is on another disk, mounted there");
  }
  levels_.push_back({end, std::move(handle)});
  if (levels_.size() <= kNear) return Ok();
  const size_t far = levels_.size() - 1 - kNear;
  if (far % kNear != 0) levels_[far].handle = Fd();
  return Ok();
}

Result<const Fd*> DirChain::At(const std::string& path) {
  KeepCommon(path);
  size_t from = levels_.empty() ? 0 : levels_.back().end;
  path_.resize(from);
  while (from < path.size()) {
    const size_t begin = from == 0 ? 0 : from + 1;
    const size_t end = std::min(path.size(), path.find('/', begin));
    BELAY_OK(Descend(path, begin, end));
    path_.append(path, from, end - from);
    from = end;
  }
  return levels_.empty() ? &root_ : &levels_.back().handle;
}

void DirChain::Leave(const std::string& path) {
  if (!path_.starts_with(path)) return;
  while (!levels_.empty() && levels_.back().end >= path.size()) levels_.pop_back();
  path_.resize(levels_.empty() ? 0 : levels_.back().end);
}

}  // namespace belay
