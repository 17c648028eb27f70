#include "restore/git_lost_objects.h"

#include <set>

#include "restore/git_whole_plan.h"
#include "restore/look.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

constexpr std::string_view kObjects = "objects/";

// A loose object, or a pack with what belongs to it; no list of git's own that says
// what there is (info/, multi-pack-index), which would be out of date.
bool IsObjectFile(std::string_view path) {
  if (!path.starts_with(kObjects)) return false;
  path.remove_prefix(kObjects.size());
  if (path.starts_with("pack/pack-")) return path.find('/', 5) == path.npos;
  const size_t slash = path.find('/');
  return slash == 2 && path.find_first_not_of("0123456789abcdef") == slash &&
         path.find_first_not_of("0123456789abcdef", slash + 1) == path.npos;
}

}  // namespace

GitLostObjects::GitLostObjects(Store& store, std::vector<File> files)
    : store_(&store),
      files_(std::move(files)),
      name_(Name::Literal("objects-" + store.random().NewId().text())) {}

GitLostObjects::GitLostObjects(GitLostObjects&& other) noexcept
    : store_(other.store_),
      files_(std::move(other.files_)),
      name_(other.name_),
      shown_(std::exchange(other.shown_, false)) {}

GitLostObjects::~GitLostObjects() {
  if (!shown_) return;
  Fs& fs = store_->fs();
  auto caches = fs.Open(store_->dir(), StatCache::DirName(), OpenMode::Directory());
  if (!caches.ok()) return;
  auto top = fs.Open(*caches, name_, OpenMode::Directory());
  if (!top.ok()) return;
  auto dirs = fs.List(*top);
  if (!dirs.ok()) return;
  for (const DirEntry& entry : *dirs) {
    auto name = Name::Parse(entry.name);
    if (!name.ok()) continue;
    auto dir = fs.Open(*top, *name, OpenMode::Directory());
    auto files = dir.ok() ? fs.List(*dir) : Result<std::vector<DirEntry>>(dir.error());
    if (files.ok())
      for (const DirEntry& file : *files)
        if (auto leaf = Name::Parse(file.name); leaf.ok()) (void)fs.Unlink(*dir, *leaf);
    (void)fs.RemoveDir(*top, *name);
  }
  (void)fs.RemoveDir(*caches, name_);
}

Result<GitLostObjects> GitLostObjects::Find(Store& store, const GitRepoRecord& want,
                                            const GitRepository& repository) {
  std::vector<File> files;
  constexpr std::string_view kGit = ".git/";
  BELAY_TRY(GitDirMap all, LoadGitDir(store, want));
  BELAY_TRY(Fd dir, store.fs().OpenDir(repository.common_dir));
  Looker looker(store.fs(), dir);
  for (auto& [path, state] : all) {
    if (!path.starts_with(kGit) || state.kind != EntryKind::kFile) continue;
    std::string below = path.substr(kGit.size());
    if (!IsObjectFile(below)) continue;
    BELAY_TRY(auto there, looker.Stat(below));
    if (there) continue;
    BELAY_TRY(auto blob, store.Find({ObjectType::kBlob, state.id}));
    BELAY_TRY(auto chunks, store.Find({ObjectType::kChunks, state.id}));
    if (!blob && !chunks) continue;
    files.push_back({std::move(below), std::move(state)});
  }
  return GitLostObjects(store, std::move(files));
}

Result<std::string> GitLostObjects::Show() {
  if (files_.empty()) return std::string();
  Fs& fs = store_->fs();
  const std::string path =
      store_->path().bytes() + "/" + StatCache::DirName().bytes() + "/" + name_.bytes();
  // Git reads a list of them, with its own quoting.
  if (path.find_first_of(":\"\n") != std::string::npos)
    return Error(Errc::kUnsupported, "the store lies where git cannot be shown it");
  BELAY_TRY(Fd caches,
            fs.Open(store_->dir(), StatCache::DirName(), OpenMode::Directory()));
  shown_ = true;
  BELAY_OK(fs.MakeDir(caches, name_, 0700));
  BELAY_TRY(Fd top, fs.Open(caches, name_, OpenMode::Directory()));
  std::set<std::string> made;
  for (const File& file : files_) {
    const std::string below = file.path.substr(kObjects.size());
    const size_t slash = below.find('/');
    BELAY_TRY(Name in, Name::Parse(below.substr(0, slash)));
    BELAY_TRY(Name name, Name::Parse(below.substr(slash + 1)));
    if (made.insert(in.bytes()).second) BELAY_OK(fs.MakeDir(top, in, 0700));
    BELAY_TRY(Fd dir, fs.Open(top, in, OpenMode::Directory()));
    BELAY_TRY(Fd out, fs.Open(dir, name, OpenMode::CreateNew()));
    uint64_t offset = 0;
    Status written = store_->ReadContent(file.state.id, [&](ByteSpan piece) {
      const uint64_t at = offset;
      offset += piece.size();
      return WriteFull(fs, out, at, piece);
    });
    if (!written.ok()) return std::move(written).error();
    BELAY_OK(out.Close());
  }
  return path;
}

}  // namespace belay
