#include "scan/work_trees.h"

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/fast_hash.h"
#include "base/mutant.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

std::string IndexTrouble(const Error& error) {
  return error.what +
         ": what git tracks although it is ignored is kept as before; new files of "
         "that "
         "kind are not in the checkpoint";
}

// Not worth reading again below that.
constexpr size_t kRestsFrom = size_t{2} << 20;

// Asks the index when first asked.
class LazyTracked final : public TrackedSet {
 public:
  LazyTracked(Fs& fs, const WorkTreeFacts& facts, const AskGitOptions& ask)
      : fs_(fs), repository_(*facts.repository), ask_(ask), late_(facts.late) {}
  LazyTracked(Fs& fs, const WorkTreeFacts& facts, const AskGitOptions& ask,
              TrackedPaths paths)
      : LazyTracked(fs, facts, ask) {
    paths_ = std::move(paths);
    loaded_ = true;
  }

  bool HasFile(std::string_view path) const override { return Paths().Find(path) != 0; }
  bool HasBelow(std::string_view dir) const override { return Paths().HasBelow(dir); }
  bool unknown() const override { return unknown_; }
  void Rest() const override {
    std::lock_guard guard(mutex_);
    if (!loaded_ || unknown_ || paths_.memory() < kRestsFrom) return;
    loaded_ = BELAY_MUTANT("tracked-are-forgotten");
    TrackedPaths gone;  // an assignment would leave it the room
    std::swap(paths_, gone);
  }

 private:
  const TrackedPaths& Paths() const {
    if (loaded_) [[likely]]
      return paths_;
    std::lock_guard guard(mutex_);
    if (loaded_) return paths_;
    auto index = ReadTracked(fs_, repository_, ask_);
    if (index.ok()) {
      paths_ = std::move(index->paths);
    } else {
      unknown_ = !BELAY_MUTANT("unreadable-index-is-empty");
      std::lock_guard late(late_->mutex);
      late_->what = IndexTrouble(index.error());
    }
    loaded_ = true;
    return paths_;
  }

  Fs& fs_;
  const GitRepository repository_;
  const AskGitOptions ask_;
  const std::shared_ptr<WorkTreeFacts::LateTrouble> late_;
  mutable std::mutex mutex_;  // guards paths_ being read
  mutable std::atomic<bool> loaded_{false};
  mutable TrackedPaths paths_;  // constant while loaded_
  mutable std::atomic<bool> unknown_{false};
};

// Of an index that cannot be read.
class UnknownTracked final : public TrackedSet {
 public:
  bool HasFile(std::string_view) const override { return false; }
  bool HasBelow(std::string_view) const override { return false; }
  bool unknown() const override { return !BELAY_MUTANT("unreadable-index-is-empty"); }
};

// A file of rules as git reads it; nothing when there is none to read.
std::optional<std::string> ReadRules(Fs& fs, const AbsPath& path, bool follow) {
  AbsPath at = path;
  if (follow) {
    auto real = fs.RealPath(path);
    if (!real.ok()) return std::nullopt;
    at = *real;
  }
  if (at.is_root()) return std::nullopt;
  auto dir = fs.OpenDir(at.parent());
  if (!dir.ok()) return std::nullopt;
  const std::string name = at.bytes().substr(at.bytes().rfind('/') + 1);
  auto parsed = Name::Parse(name);
  if (!parsed.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(fs, *dir, *parsed, kMaxPatternFile);
  if (!bytes.ok()) return std::nullopt;
  return std::string(AsText(*bytes));
}

// As people know it: from the root where it lies below, else in full.
std::string NameFrom(const AbsPath& root, const AbsPath& path) {
  if (path != root && path.IsWithin(root) && !root.is_root())
    return path.bytes().substr(root.bytes().size() + 1);
  return path.bytes();
}

}  // namespace

Result<std::shared_ptr<const TrackedSet>> WorkTreeLoader::LoadIndex(
    WorkTreeFacts& facts, const IndexHint& hint) {
  const GitRepository& repository = *facts.repository;
  const int64_t now = clock_.WallMillis() * 1'000'000;
  auto stat = StatIndex(fs_, repository.index());
  auto unknown = [&](const Error& error) {
    facts.trouble.push_back(IndexTrouble(error));
    facts.index_unknown = true;
    facts.index.racy = true;  // try again next time
    return std::shared_ptr<const TrackedSet>(std::make_shared<UnknownTracked>());
  };
  if (!stat.ok()) return unknown(stat.error());
  if (!*stat) {
    facts.index = {.print = 0, .names = 0, .racy = false};
    return std::shared_ptr<const TrackedSet>();
  }
  facts.index.print = Fingerprint(**stat, key_);
  facts.index.racy = IsRacy(**stat, now);
  if (reads_late_ || (hint.print == facts.index.print && !hint.racy)) {
    facts.index.names = hint.names;
    return std::shared_ptr<const TrackedSet>(
        std::make_shared<LazyTracked>(fs_, facts, places_.ask));
  }
  auto index = ReadTracked(fs_, repository, places_.ask);
  if (!index.ok()) return unknown(index.error());
  if (index->stat && Fingerprint(*index->stat, key_) != facts.index.print)
    facts.index.racy = true;  // replaced between the two looks
  facts.index.names = LoadU64(index->paths.names_digest().bytes.data());
  return std::shared_ptr<const TrackedSet>(
      std::make_shared<LazyTracked>(fs_, facts, places_.ask, std::move(index->paths)));
}

Status WorkTreeLoader::Fill(WorkTreeFacts& facts, WorkTreeInput input,
                            const AbsPath& root,
                            const std::optional<AbsPath>& excludes_file,
                            const IndexHint& hint) {
  if (excludes_file) {
    if (auto bytes = ReadRules(fs_, *excludes_file, true))
      input.global_excludes = RuleBytes{NameFrom(root, *excludes_file), *bytes};
  }
  if (facts.repository) {
    const GitRepository& repository = *facts.repository;
    if (auto bytes = ReadRules(fs_, repository.info_exclude(), true))
      input.info_exclude = RuleBytes{NameFrom(root, repository.info_exclude()), *bytes};
    input.ignore_case = repository.ignore_case;
    facts.trouble.insert(facts.trouble.end(), repository.problems.begin(),
                         repository.problems.end());
    BELAY_TRY(input.tracked, LoadIndex(facts, hint));
  } else if (facts.index_unknown) {
    input.tracked = std::make_shared<UnknownTracked>();
  }
  Bytes all;
  ByteWriter out(all);
  auto add = [&](const std::optional<RuleBytes>& rules) {
    out.U8(rules ? 1 : 0);
    if (!rules) return;
    out.Sized(rules->bytes);
  };
  out.U8(facts.repository ? 1 : 0);
  out.U8(facts.index_unknown ? 1 : 0);
  out.U8(input.ignore_case ? 1 : 0);
  add(input.info_exclude);
  add(input.global_excludes);
  for (const auto& above : input.above_root) add(above);
  out.Sized(input.root_below_top);
  out.U64(facts.index.names);
  facts.git_key = FastHash(all, key_) | 1;  // never 0, which is "no repository"
  auto kept = std::make_shared<WorkTreeInput>(input);
  kept->tracked = nullptr;
  facts.input = std::move(kept);
  facts.tree = std::make_shared<WorkTree>(std::move(input));
  return Ok();
}

Result<WorkTreeFacts> WorkTreeLoader::AroundRoot(const AbsPath& root,
                                                 const IndexHint& hint) {
  WorkTreeFacts facts;
  auto found = FindWorkTree(fs_, root, places_.user);
  if (found.ok()) {
    facts.repository = std::move(*found);
  } else {
    facts.trouble.push_back(IndexTrouble(found.error()));
    facts.index_unknown = true;
  }
  if (!facts.repository) {
    auto excludes = UserExcludesFile(fs_, places_.user, facts.trouble);
    BELAY_OK(Fill(facts, {}, root, excludes, hint));
    return facts;
  }
  WorkTreeInput input;
  const AbsPath& top = facts.repository->work_tree;
  if (top != root) {
    std::string below = root.bytes().substr(top.is_root() ? 1 : top.bytes().size() + 1);
    // One for each directory above the root, from the top on.
    std::vector<AbsPath> dirs;
    for (AbsPath at = root.parent();; at = at.parent()) {
      dirs.push_back(at);
      if (at == top) break;
    }
    for (size_t i = dirs.size(); i-- > 0;) {
      std::string name;
      for (size_t k = 0; k <= i; ++k) name += "../";
      name += ".gitignore";
      auto bytes = ReadRules(fs_, dirs[i].Join(RelPath::Literal(".gitignore")), false);
      input.above_root.push_back(
          bytes ? std::optional(RuleBytes{std::move(name), *bytes}) : std::nullopt);
    }
    input.root_below_top = std::move(below);
  }
  auto excludes = facts.repository->excludes_file;
  BELAY_OK(Fill(facts, std::move(input), root, excludes, hint));
  return facts;
}

Result<std::optional<WorkTreeFacts>> WorkTreeLoader::At(const AbsPath& root,
                                                        const AbsPath& dir,
                                                        const IndexHint& hint) {
  WorkTreeFacts facts;
  auto found = OpenRepositoryAt(fs_, dir, places_.user);
  if (!found.ok()) {
    facts.trouble.push_back(IndexTrouble(found.error()));
    facts.index_unknown = true;
    auto excludes = UserExcludesFile(fs_, places_.user, facts.trouble);
    BELAY_OK(Fill(facts, {}, root, excludes, hint));
    return std::optional(std::move(facts));
  }
  if (!*found || (*found)->work_tree != dir) return std::optional<WorkTreeFacts>();
  facts.repository = std::move(*found);
  auto excludes = facts.repository->excludes_file;
  BELAY_OK(Fill(facts, {}, root, excludes, hint));
  return std::optional(std::move(facts));
}

}  // namespace belay
