#include "core/git_staged.h"

#include <algorithm>

#include "git/run_git.h"
#include "scan/stat_cache.h"
#include "scan/tree_diff.h"

namespace belay {

namespace {

constexpr uint64_t kMaxRead = uint64_t{64} << 20;
constexpr size_t kMaxStagedIndex = size_t{256} << 20;

// A copy of the index that git may read; gone with this.
class IndexCopy {
 public:
  IndexCopy(Store& store, ByteSpan bytes)
      : store_(store), name_(Name::Literal("index-" + store.random().NewId().text())) {
    auto dir =
        store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
    if (!dir.ok()) return;
    auto file = store.fs().Open(*dir, name_, OpenMode::CreateNew());
    ok_ =
        file.ok() && WriteFull(store.fs(), *file, 0, bytes).ok() && file->Close().ok();
    dir_ = std::move(*dir);
  }
  ~IndexCopy() {
    if (dir_.is_open()) (void)store_.fs().Unlink(dir_, name_);
  }
  IndexCopy(const IndexCopy&) = delete;
  IndexCopy& operator=(const IndexCopy&) = delete;
  bool ok() const { return ok_; }
  std::string path() const {
    return store_.path().bytes() + "/" + StatCache::DirName().bytes() + "/" +
           name_.bytes();
  }

 private:
  Store& store_;
  Name name_;
  Fd dir_;
  bool ok_ = false;
};

std::optional<std::vector<std::string>> AskStaged(Store& store,
                                                  const GitRepository& repository,
                                                  const GitRepoRecord& record,
                                                  const AskGitOptions& ask) {
  std::vector<std::string> out;
  if (!record.index) return out;
  auto bytes = store.ReadContentBytes(record.index->id, kMaxStagedIndex);
  if (!bytes.ok()) return std::nullopt;
  auto git = GitRunner::Find(store.fs(), repository, ask);
  if (!git.ok()) return std::nullopt;
  const IndexCopy copy(store, *bytes);
  if (!copy.ok()) return std::nullopt;
  const std::vector<std::string> command =
      record.head.empty()
          ? std::vector<std::string>{"ls-files", "--cached", "-z"}
          : std::vector<std::string>{"diff-index",   "--cached", "--name-only",
                                     "--no-renames", "-z",       record.head};
  auto said = git->Run(command, {}, {"GIT_INDEX_FILE=" + copy.path()});
  if (!said.ok()) return std::nullopt;
  for (std::string_view rest = *said; !rest.empty();) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The first entry that differs is enough.
std::optional<bool> FindDirty(Store& store, const GitRepoRecord& record,
                              const ObjectId& tree) {
  auto entries = LoadGitIndex(store, record);
  if (!entries.ok()) return std::nullopt;
  const auto read = [&](const ObjectId& id) { return store.GetTree(id); };
  uint64_t bytes_read = 0;
  for (const NamedEntry& entry : *entries) {
    const uint32_t kind = entry.mode & 0170000;
    if (kind != 0100000 && kind != 0120000) continue;
    if (entry.stage != 0 || entry.later) return true;
    auto path =
        RelPath::Parse((record.path.empty() ? "" : record.path + "/") + entry.path);
    if (!path.ok()) return std::nullopt;
    auto found = FindInTree(tree, *path, read);
    if (!found.ok()) return std::nullopt;
    if (!*found) return true;
    const TreeEntry& there = **found;
    if (there.kind == EntryKind::kDirectory ||
        (there.kind == EntryKind::kSymlink) != (kind == 0120000))
      return true;
    if (there.kind == EntryKind::kFile &&
        ((there.mode & 0100) != 0) != ((entry.mode & 0100) != 0))
      return true;
    Bytes content = ToBytes(there.target);
    if (there.kind == EntryKind::kFile) {
      bytes_read += there.size;
      if (bytes_read > kMaxRead) return std::nullopt;
      auto bytes = store.ReadContentBytes(there.id, kMaxRead);
      if (!bytes.ok()) return std::nullopt;
      content = std::move(*bytes);
    }
    auto object = MakeLooseBlob(record.hash, content);
    if (!object.ok()) return std::nullopt;
    if (object->hex != entry.object) return true;
  }
  return std::nullopt;
}

}  // namespace

GitStaged LookAtStaged(Store& store, const GitRepository& repository,
                       const GitRepoRecord& record, const ObjectId& tree,
                       const AskGitOptions& ask) {
  GitStaged out;
  if (record.above || !record.trouble.empty()) return out;
  out.paths = AskStaged(store, repository, record, ask);
  out.dirty = FindDirty(store, record, tree);
  return out;
}

}  // namespace belay
