#include "restore/git_lost_objects.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/mutant.h"
#include "git/pack_index.h"
#include "restore/git_whole_plan.h"
#include "restore/look.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

constexpr std::string_view kObjects = "objects/";
constexpr std::string_view kPacks = "objects/pack/";
constexpr size_t kAskedAtOnce = 100'000;

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

// A loose object, or a pack and its index: without one of them objects are missing.
bool Counts(std::string_view path) {
  return !path.starts_with(kPacks) || path.ends_with(".pack") || path.ends_with(".idx");
}

// What is of no use without the rest: a loose object by itself, all files of a pack.
struct Group {
  std::vector<GitLostObjects::File> gone;   // files that are not there, or damaged
  std::vector<GitLostObjects::File> there;  // those that count and are
  std::string index;                        // of a pack: the path of its index
  ObjectId index_id;
  bool lost = false;               // one that counts is not there
  bool damaged = false;            // or not what it should be
  std::vector<std::string> names;  // of its objects
};

std::string GroupOf(const std::string& path) {
  return path.starts_with(kPacks) ? path.substr(0, path.rfind('.')) : path;
}

// "objects/ab/cdef" holds "abcdef".
std::string LooseName(const std::string& path) {
  std::string hex = path.substr(kObjects.size());
  hex.erase(2, 1);
  return hex;
}

class Finder {
 public:
  Finder(const GitPlanInput& input, const GitRepository& repository, const Fd& dir,
         GitRunner& git)
      : input_(input),
        fs_(input.store.fs()),
        repository_(repository),
        looker_(fs_, dir),
        git_(git) {}

  Status Add(const std::string& path, const PathState& state) {
    Group& group = groups_[GroupOf(path)];
    if (path.ends_with(".idx")) {
      group.index = path;
      group.index_id = state.id;
    }
    BELAY_TRY(auto there, looker_.Stat(path));
    if (!there) {
      group.lost = group.lost || Counts(path);
      group.gone.push_back({path, state});
      return Ok();
    }
    if (!Counts(path)) return Ok();
    bool damaged = false;
    if (MayDiffer(*there, state) && !BELAY_MUTANT("git-damaged-objects-stay")) {
      BELAY_TRY(damaged, IsDamaged(path, state));
    }
    group.damaged = group.damaged || damaged;
    (damaged ? group.gone : group.there).push_back({path, state});
    return Ok();
  }

  // Ends it.
  Result<std::vector<GitLostObjects::File>> Take(bool& damaged) {
    BELAY_OK(AskForLost());
    std::vector<GitLostObjects::File> out;
    for (auto& [path, group] : groups_) {
      if (!group.lost && !group.damaged) continue;
      BELAY_OK(AddTheRest(group));
      bool all = true;
      std::vector<GitLostObjects::File> files;
      for (GitLostObjects::File& file : group.gone) {
        BELAY_TRY(bool has, input_.Has(file.state.id));
        all = all && (has || !Counts(file.path));
        if (has) files.push_back(std::move(file));
      }
      if (!all) continue;
      damaged = damaged || group.damaged;
      out.insert(out.end(), std::make_move_iterator(files.begin()),
                 std::make_move_iterator(files.end()));
    }
    return out;
  }

 private:
  bool MayDiffer(const FileStat& stat, const PathState& state) const {
    constexpr int64_t kMargin = 2'000, kMilli = 1'000'000;
    return stat.size != state.size || input_.made_ms == 0 ||
           stat.ctime_ns / kMilli >= input_.made_ms - kMargin;
  }

  // Another content alone is no damage: git may have written the same object, or the
  // same pack, in another way.
  Result<bool> IsDamaged(const std::string& path, const PathState& state) {
    HashSink sink;
    BELAY_TRY(auto looked, looker_.Look(path, sink));
    if (!looked) return false;
    if (looked->special) return false;
    if (looked->state.id == state.id) return false;
    if (!path.starts_with(kPacks)) {
      BELAY_TRY(bool whole, IsLooseObjectWhole(fs_, repository_, LooseName(path)));
      return !whole;
    }
    BELAY_TRY(ProcessResult said, git_.Try({"verify-pack", "--",
                                            repository_.common_dir.bytes() + "/" +
                                                GroupOf(path) + ".idx"}));
    return said.end == ProcessResult::End::kExited && said.code != 0;
  }

  // What is left of a pack must be of the same pack; git is shown all of it.
  Status AddTheRest(Group& group) {
    for (GitLostObjects::File& file : group.there) {
      HashSink sink;
      BELAY_TRY(auto looked, looker_.Look(file.path, sink));
      file.stays = looked && !looked->special && looked->state.id == file.state.id;
      group.gone.push_back(std::move(file));
    }
    return Ok();
  }

  // What is lost by name may be in a pack, or in another one, by now.
  Status AskForLost() {
    std::string asked;
    size_t count = 0;
    std::unordered_set<std::string> missing;
    auto ask = [&]() -> Status {
      if (count == 0) return Ok();
      BELAY_TRY(std::string said, git_.Run({"cat-file", "--batch-check=%(objectname)"},
                                           std::move(asked)));
      for (const std::string& line : GitLines(said))
        if (line.ends_with(" missing")) missing.insert(line.substr(0, line.find(' ')));
      asked.clear();
      count = 0;
      return Ok();
    };
    for (auto& [path, group] : groups_) {
      if (!group.lost) continue;
      if (!path.starts_with(kPacks)) {
        group.names = {LooseName(path)};
      } else {
        auto bytes = input_.store.ReadContentBytes(group.index_id, kMaxPackIndex);
        auto names = bytes.ok() ? ReadPackIndex(*bytes, repository_.hash)
                                : Result<std::vector<std::string>>(bytes.error());
        // Without its index a pack is of no use.
        if (!names.ok()) {
          group.lost = false;
          continue;
        }
        group.names = std::move(*names);
      }
      for (const std::string& name : group.names) {
        asked += name + "\n";
        if (++count == kAskedAtOnce) BELAY_OK(ask());
      }
    }
    BELAY_OK(ask());
    for (auto& [path, group] : groups_)
      group.lost =
          group.lost && std::ranges::any_of(group.names, [&](const std::string& name) {
            return missing.contains(name);
          });
    return Ok();
  }

  const GitPlanInput& input_;
  Fs& fs_;
  const GitRepository& repository_;
  Looker looker_;
  GitRunner& git_;
  std::map<std::string, Group> groups_;
};

}  // namespace

GitLostObjects::GitLostObjects(Store& store, std::vector<File> files, bool damaged)
    : store_(&store),
      files_(std::move(files)),
      name_(Name::Literal("objects-" + store.random().NewId().text())),
      damaged_(damaged) {}

GitLostObjects::GitLostObjects(GitLostObjects&& other) noexcept
    : store_(other.store_),
      files_(std::move(other.files_)),
      name_(other.name_),
      damaged_(other.damaged_),
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

Result<GitLostObjects> GitLostObjects::Find(const GitPlanInput& input,
                                            const GitRepoRecord& want,
                                            const GitRepository& repository,
                                            GitRunner& git) {
  constexpr std::string_view kGit = ".git/";
  Store& store = input.store;
  BELAY_TRY(GitDirMap all, LoadGitDir(store, want));
  BELAY_TRY(Fd dir, store.fs().OpenDir(repository.common_dir));
  Finder finder(input, repository, dir, git);
  for (const auto& [path, state] : all) {
    if (!path.starts_with(kGit) || state.kind != EntryKind::kFile) continue;
    const std::string below = path.substr(kGit.size());
    if (IsObjectFile(below)) BELAY_OK(finder.Add(below, state));
  }
  bool damaged = false;
  BELAY_TRY(auto files, finder.Take(damaged));
  return GitLostObjects(store, std::move(files), damaged);
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
