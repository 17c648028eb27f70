#include "store/private.h"

namespace belay {

namespace {
// By its name, as MoveAside() gives them: "x.aside", "x.aside2".
bool WasMovedAside(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  return end != std::string_view::npos && name.substr(0, end + 1).ends_with(".aside");
}
}  // namespace

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
      // Not ours, and its owner may want it as it is; but a file may be a pack of ours.
      if (stat->type != FileType::kRegular && WasMovedAside(e.name)) continue;
      OpenMode mode = OpenMode::Read();
      if (stat->type == FileType::kDirectory)
        mode = OpenMode::Directory();
      else if (stat->type == FileType::kFifo)
        mode = OpenMode::Path();  // a reader would let writers of it go on
      else if (stat->type != FileType::kRegular)
        continue;
      auto file = fs.Open(dir, name, mode);
      if (!file.ok()) continue;
      // A path leads to anything: what it was may have been swapped for something else.
      if (stat->type == FileType::kFifo) {
        stat = fs.Stat(*file);
        if (!stat.ok() || stat->type != FileType::kFifo) continue;
      }
      look(*file, *stat, prefix + e.name);
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
