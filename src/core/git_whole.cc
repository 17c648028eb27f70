#include "core/git_whole.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "base/sha256.h"

namespace belay {

namespace {

constexpr size_t kMaxGitFile = 8192;
constexpr int kLooksAtPacking = 4;  // at a repository that is being packed

// Adds the names of the packs in a git directory, and in those of its submodules. What
// cannot be listed has none.
void AddPackNames(Fs& fs, const AbsPath& git_dir, std::vector<std::string>& names) {
  auto list = [&](const AbsPath& at) -> std::optional<std::vector<DirEntry>> {
    auto dir = fs.OpenDir(at);
    if (!dir.ok()) return std::nullopt;
    auto entries = fs.List(*dir);
    return entries.ok() ? std::move(*entries) : std::vector<DirEntry>();
  };
  std::vector<AbsPath> left = {git_dir};
  while (!left.empty()) {
    const AbsPath dir = std::move(left.back());
    left.pop_back();
    const auto packs = list(dir.Join(RelPath::Literal("objects/pack")));
    if (packs)
      for (const DirEntry& entry : *packs)
        names.push_back(dir.bytes() + "/" + entry.name);
    // The name of a submodule may have slashes in it.
    const AbsPath below =
        packs || dir == git_dir ? dir.Join(RelPath::Literal("modules")) : dir;
    const auto inside = list(below);
    if (!inside) continue;
    for (const DirEntry& entry : *inside)
      if (auto name = Name::Parse(entry.name);
          name.ok() &&
          entry.type.value_or(FileType::kDirectory) == FileType::kDirectory)
        left.push_back(below.Join(*name));
  }
  std::ranges::sort(names);
}

// Of a root that nobody registered: the cache of a git directory.
RootId CacheIdOf(const RootId& root, const std::string& path) {
  Sha256 sha;
  sha.Update(AsBytes("belay git directory"));
  sha.Update(root.span());
  sha.Update(AsBytes(path));
  const Hash256 hash = sha.Finish();
  return RootId(Id128::FromSpan(hash.span().first(16)));
}

std::shared_ptr<const RuleConfig> Everything() {
  RuleLists lists;
  // Locks are somebody's who is at work; no file of rules in there counts.
  lists.protect = {"*", "!*.lock", "!.belay-*"};
  lists.exclude = {"*.lock", ".belay-*"};
  lists.default_excludes = false;
  return std::make_shared<const RuleConfig>(std::move(lists));
}

}  // namespace

Result<GitWhole> GitWholeCapture::Take(const GitRepository& repository,
                                       const std::string& path, ScanSink& sink) {
  GitWhole out;
  BELAY_TRY(Fd work_tree, fs_.OpenDir(repository.work_tree));
  const Name name = Name::Literal(".git");
  BELAY_TRY(FileStat stat, fs_.StatAt(work_tree, name));
  out.mode = stat.mode;
  out.uid = stat.uid;
  out.gid = stat.gid;
  if (stat.type == FileType::kRegular) {
    BELAY_TRY(Bytes bytes, ReadSmallFile(fs_, work_tree, name, kMaxGitFile));
    out.git_file = AsText(bytes);
    return out;
  }
  if (stat.type != FileType::kDirectory) {
    out.trouble = ".git is " + std::string(FileTypeName(stat.type));
    return out;
  }
  std::unique_ptr<One> one(
      new One{ScanRequest{.root = repository.work_tree.Join(name),
                          .root_id = CacheIdOf(around_.root_id, path),
                          .rules = Everything(),
                          .git = around_.git,
                          .store_dir = around_.store_dir,
                          .max_file_size = UINT64_MAX,
                          .max_files = around_.max_files,
                          .threads = around_.threads,
                          .generation = around_.generation,
                          .cache_dir = around_.cache_dir,
                          .gits_own = true,
                          .still_has = around_.still_has},
              nullptr});
  // Git packs objects and takes their files away: one that was packed while we were on
  // the way from there to here is in neither place that we saw. Without a change of
  // packs every object was in one place all the time.
  for (int tries = 1;; ++tries) {
    std::vector<std::string> before, after;
    AddPackNames(fs_, one->request.root, before);
    BELAY_TRY(one->scan, Scan::Run(fs_, clock_, random_, one->request, sink));
    AddPackNames(fs_, one->request.root, after);
    if (before == after || BELAY_MUTANT("git-copied-while-packed")) break;
    if (tries < kLooksAtPacking) continue;
    out.trouble = "it kept being packed while it was copied";
    break;
  }
  const ScanSummary& summary = one->scan->summary();
  out.tree = summary.tree;
  for (const SkippedPath& skipped : summary.skipped) {
    if (IsHeld(skipped.why) || !out.trouble.empty()) continue;
    out.trouble = ".git/" + EscapeForDisplay(skipped.path) + " is left out (" +
                  std::string(SkipName(skipped.why)) + ")";
    break;
  }
  taken_.push_back(std::move(one));
  return out;
}

GitWhole GitWholeCapture::TakeFile(const GitRepository& repository) {
  GitWhole out;
  const Name name = Name::Literal(".git");
  auto work_tree = fs_.OpenDir(repository.work_tree);
  if (!work_tree.ok()) return out;
  auto stat = fs_.StatAt(*work_tree, name);
  if (!stat.ok() || stat->type != FileType::kRegular) return out;
  auto bytes = ReadSmallFile(fs_, *work_tree, name, kMaxGitFile);
  if (!bytes.ok()) return out;
  out.mode = stat->mode;
  out.uid = stat->uid;
  out.gid = stat->gid;
  out.git_file = AsText(*bytes);
  return out;
}

void GitWholeCapture::SaveCaches(const BatchPlace& place) {
  for (const auto& one : taken_) (void)one->scan->SaveCache(place);
}

}  // namespace belay
