#include "store/private.h"

namespace belay {

Result<std::vector<std::string>> OpenToOthers(Fs& fs, const Fd& home, bool put_right) {
  constexpr uint32_t kOthers = 0077;
  std::vector<std::string> open;
  auto look = [&](const Fd& file, const FileStat& stat, const std::string& shown) {
    if ((stat.mode & kOthers) == 0) return;
    const bool directory = stat.type == FileType::kDirectory;
    if (put_right && !fs.SetMode(file, directory ? 0700 : 0600).ok()) return;
    open.push_back(shown);
  };
  BELAY_TRY(FileStat home_stat, fs.Stat(home));
  look(home, home_stat, "the store's directory");
  auto below = [&](const Fd& dir, const std::string& prefix) -> Status {
    BELAY_TRY(auto entries, fs.List(dir));
    for (const DirEntry& e : entries) {
      const Name name = Name::Literal(e.name);
      auto stat = fs.StatAt(dir, name);
      if (!stat.ok() || (stat->mode & kOthers) == 0) continue;
      if (stat->type != FileType::kRegular && stat->type != FileType::kDirectory)
        continue;
      auto file = fs.Open(dir, name,
                          stat->type == FileType::kDirectory ? OpenMode::Directory()
                                                             : OpenMode::Read());
      if (file.ok()) look(*file, *stat, prefix + e.name);
    }
    return Ok();
  };
  for (const char* name : {"packs", "catalog", "cache", "journal", "agents", "forks"})
    if (auto dir = fs.Open(home, Name::Literal(name), OpenMode::Directory()); dir.ok())
      BELAY_OK(below(*dir, std::string(name) + "/"));
  BELAY_OK(below(home, ""));
  return open;
}

Result<Name> MoveAside(Fs& fs, const Fd& dir, const Name& name) {
  constexpr int kTries = 100;
  for (int i = 1;; ++i) {
    const Name to =
        Name::Literal(name.bytes() + ".aside" + (i == 1 ? "" : std::to_string(i)));
    Status moved = fs.Rename(dir, name, dir, to, RenameHow::kNoReplace);
    if (moved.ok()) return to;
    if (moved.error().code != Errc::kExists || i == kTries)
      return std::move(moved).error();
  }
}

}  // namespace belay
