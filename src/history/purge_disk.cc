#include "history/purge_disk.h"

#include <algorithm>

#include "base/mutant.h"
#include "core/purged.h"
#include "git/index_entries.h"
#include "git/repository.h"
#include "git/state_files.h"
#include "restore/look.h"

namespace belay {

namespace {

constexpr size_t kMaxIndex = size_t{1} << 30;

bool IsPresence(const Error& error) {
  return !IsAbsence(error) && !BELAY_MUTANT("purge-takes-errors-for-absence");
}

// Whether the index of the repository in the directory `dir` names `below`, or what is
// beneath it.
bool IsStagedIn(Fs& fs, const AbsPath& dir, std::string_view below) {
  GitUserConfig nobody;
  nobody.no_system = true;
  auto repository = OpenRepositoryAt(fs, dir, nobody);
  if (!repository.ok()) return true;
  if (!*repository) return false;
  const GitRepository& git = **repository;
  std::vector<NamedEntry> named, base;
  auto read = [&](std::string_view name,
                  std::vector<NamedEntry>& into) -> Result<IndexEntries> {
    BELAY_TRY(Bytes bytes, ReadGitFile(fs, git.git_dir, name, kMaxIndex));
    return ReadIndexEntries(bytes, git.hash, &into);
  };
  auto index = read("index", named);
  if (!index.ok()) return IsPresence(index.error());
  if (!index->shared.empty()) {
    auto shared = read(index->shared, base);
    if (!shared.ok()) return IsPresence(shared.error());
    AddShared(*index, std::move(base), named);
  }
  return std::ranges::any_of(
      named, [&](const NamedEntry& entry) { return IsAtOrBelow(entry.path, below); });
}

}  // namespace

bool IsStillThere(Fs& fs, const Root& root, const std::string& path) {
  if (path.starts_with('/')) {  // outside of the root
    auto outside = AbsPath::Parse(path);
    if (!outside.ok() || outside->is_root()) return false;
    auto dir = fs.OpenDir(outside->parent());
    auto name = Name::Parse(path.substr(path.rfind('/') + 1));
    if (!dir.ok() || !name.ok()) return false;
    auto stat = fs.StatAt(*dir, *name);
    return stat.ok() || IsPresence(stat.error());
  }
  auto at = AbsPath::Parse(root.path);
  auto below = RelPath::Parse(path);
  if (!at.ok() || !below.ok()) return false;
  auto dir = fs.OpenDir(*at);
  if (!dir.ok()) return IsPresence(dir.error());
  auto parent = OpenParent(fs, *dir, *below);
  if (!parent.ok()) {
    if (IsPresence(parent.error())) return true;
  } else {
    auto stat = fs.StatAt(parent->dir, parent->name);
    if (stat.ok() || IsPresence(stat.error())) return true;
  }
  if (BELAY_MUTANT("purge-forgets-the-index")) return false;
  if (IsStagedIn(fs, *at, path)) return true;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    auto top = RelPath::Parse(path.substr(0, slash));
    if (top.ok() && IsStagedIn(fs, at->Join(*top), path.substr(slash + 1))) return true;
  }
  return false;
}

std::optional<ObjectId> HashOnDisk(Fs& fs, const Root& root, const std::string& path) {
  auto at = AbsPath::Parse(root.path);
  auto below = RelPath::Parse(path);
  if (!at.ok() || !below.ok()) return std::nullopt;
  auto dir = fs.OpenDir(*at);
  if (!dir.ok()) return std::nullopt;
  auto file = fs.OpenBeneath(*dir, *below, OpenMode::Read());
  if (!file.ok()) return std::nullopt;
  Sha256 hash;
  Bytes buffer(size_t{1} << 20);
  for (uint64_t offset = 0;;) {
    auto got = ReadFull(fs, *file, offset, buffer);
    if (!got.ok()) return std::nullopt;
    hash.Update(ByteSpan(buffer).first(*got));
    offset += *got;
    if (*got < buffer.size()) return hash.Finish();
  }
}

}  // namespace belay
