#include "core/git_authors.h"

#include <algorithm>
#include <utility>

#include "base/mutant.h"

namespace belay {

namespace {

// A record of more would be read with every list.
constexpr size_t kMaxNamed = 64, kMaxNamedBytes = 8192;

const GitRepoRecord* Present(const GitRepoRecord& repo) {
  return repo.absent ? nullptr : &repo;
}

// Both are by path.
template <typename Each>
void EachPair(const GitRecord& before, const GitRecord& now, Each each) {
  auto a = before.repositories.begin(), a_end = before.repositories.end();
  auto b = now.repositories.begin(), b_end = now.repositories.end();
  while (a != a_end || b != b_end) {
    const bool only_a = b == b_end || (a != a_end && a->path < b->path);
    const bool only_b = a == a_end || (b != b_end && b->path < a->path);
    each(only_b ? b->path : a->path, only_b ? nullptr : Present(*a),
         only_a ? nullptr : Present(*b));
    if (!only_b) ++a;
    if (!only_a) ++b;
  }
}

// Of the files in a git directory those that tell what this one tells of. ORIG_HEAD
// changes when something is merely unstaged, too.
bool IsUnderWay(std::string_view name) {
  return name != "HEAD" && name != "ORIG_HEAD" && !name.starts_with(kGitSharedIndex);
}
bool IsSparse(std::string_view name) {
  return name == "info/sparse-checkout" || name == "config.worktree";
}

bool FilesDiffer(const GitRepoRecord& a, const GitRepoRecord& b,
                 bool (*wanted)(std::string_view)) {
  auto of = [&](const GitRepoRecord& repo) {
    std::vector<std::pair<std::string_view, ObjectId>> out;
    for (const GitKept& kept : repo.own)
      if (wanted(kept.name)) out.emplace_back(kept.name, kept.id);
    return out;
  };
  return of(a) != of(b);
}

// A record of before there were such digests has none.
bool UnmergedDiffer(const GitRepoRecord& a, const GitRepoRecord& b) {
  return a.index_digest != b.index_digest && a.unmerged != b.unmerged &&
         !BELAY_MUTANT("git-conflicts-are-nobodys");
}

bool StashListsDiffer(const GitRepoRecord& a, const GitRepoRecord& b) {
  auto id = [](const GitRepoRecord& repo) {
    return repo.stash_log ? repo.stash_log->id : ObjectId();
  };
  return id(a) != id(b);
}

std::string WhereHeadStands(const GitRepoRecord& repo) {
  return repo.head_ref.empty() ? repo.head : "ref: " + repo.head_ref;
}

bool CannotBeRead(const Error& error) {
  return error.code == Errc::kCorrupt || error.code == Errc::kNotFound ||
         error.code == Errc::kPurged;
}

// Null: it is not named.
const std::vector<Author>* AuthorsTold(const Checkpoint& checkpoint,
                                       std::string_view name) {
  const std::vector<Author>* others = nullptr;
  for (const Authorship& one : checkpoint.by) {
    if (one.authors.empty()) continue;
    for (const std::string& path : one.paths) {
      if (path == name) return &one.authors;
      if (path == kOtherRepositories) others = &one.authors;
    }
  }
  return others;
}

class Walk {
 public:
  explicit Walk(Store& store) : store_(store) {}

  struct Seen {
    bool readable = false;
    std::optional<ObjectId> id;  // none: as it was left
    GitRecord record;
  };
  Result<Seen> At(const Checkpoint& checkpoint) {
    auto state = store_.GetState(checkpoint.state);
    if (state.ok() && known_ && *known_ == state->git)
      return Seen{.readable = true, .id = {}, .record = {}};
    if (state.ok()) {
      auto record = LoadGitRecord(store_, state->git);
      if (record.ok())
        return Seen{.readable = true, .id = state->git, .record = std::move(*record)};
      state = std::move(record).error();
    }
    if (!CannotBeRead(state.error())) return std::move(state).error();
    return Seen();
  }

  void Leave(Seen seen) {
    if (!seen.id) return;
    known_ = seen.id;
    last_ = std::move(seen.record);
  }

  Status Follow(const Operation& operation) {
    if (operation.git_after.is_zero()) return Ok();
    auto record = LoadGitRecord(store_, operation.git_after);
    if (!record.ok() && CannotBeRead(record.error())) return Ok();
    if (!record.ok()) return std::move(record).error();
    known_.reset();
    for (GitRepoRecord& repo : record->repositories) {
      auto& all = last_.repositories;
      auto at = std::ranges::lower_bound(all, repo.path, {}, &GitRepoRecord::path);
      if (at != all.end() && at->path == repo.path)
        *at = std::move(repo);
      else
        all.insert(at, std::move(repo));
    }
    return Ok();
  }

  const GitRecord& last() const { return last_; }
  GitRecord Take() { return std::move(last_); }

 private:
  Store& store_;
  std::optional<ObjectId> known_;  // `last_` is this one
  GitRecord last_;
};

// `before`: the checkpoint before that could be read; null: none could.
Status TellMoves(const Checkpoint* before, const Checkpoint& checkpoint, size_t found,
                 const GitRecord& then, const GitRecord& now,
                 const std::function<Status(const RepoMove&)>& each) {
  const bool told = before != nullptr && checkpoint.since == before->id;
  const std::vector<Author> nobody = {{.kind = Author::Kind::kUnknown}};
  Status status = Ok();
  EachPair(
      then, now,
      [&](const std::string& path, const GitRepoRecord* a, const GitRepoRecord* b) {
        if (!status.ok() || !GitMoved(a, b)) return;
        std::string name = GitName(path);
        const auto* authors = told ? AuthorsTold(checkpoint, name) : nullptr;
        auto head = [](const GitRepoRecord* repo) {
          return repo == nullptr ? std::string_view() : repo->head;
        };
        if (told && authors == nullptr && head(a) == head(b) &&
            !BELAY_MUTANT("older-checkpoints-name-all"))
          return;
        status = each({.name = std::move(name),
                       .found = found,
                       .authors = authors == nullptr ? nobody : *authors,
                       .before = a,
                       .now = b});
      });
  return status;
}

}  // namespace

std::string GitName(std::string_view repository) {
  return std::string(repository) + (repository.empty() ? ".git" : "/.git");
}

bool GitMoved(const GitRepoRecord* before, const GitRepoRecord* now) {
  if (before == nullptr || now == nullptr) return before != now;
  if (before->head != now->head) return true;
  if (BELAY_MUTANT("only-head-has-authors")) return false;
  return before->head_ref != now->head_ref || before->refs != now->refs ||
         StashListsDiffer(*before, *now) || UnmergedDiffer(*before, *now) ||
         FilesDiffer(*before, *now, IsUnderWay);
}

std::vector<std::string> MovedRepositories(const GitRecord& before,
                                           const GitRecord& now) {
  std::vector<std::string> out;
  size_t bytes = 0;
  bool more = false;
  EachPair(
      before, now,
      [&](const std::string& path, const GitRepoRecord* a, const GitRepoRecord* b) {
        if (more || !GitMoved(a, b)) return;
        bytes += path.size();
        more = (out.size() == kMaxNamed || bytes > kMaxNamedBytes) &&
               !BELAY_MUTANT("all-that-moved-is-named");
        if (!more) out.push_back(GitName(path));
      });
  if (more) out.emplace_back(kOtherRepositories);
  std::ranges::sort(out);
  return out;
}

std::set<std::string> WhatMoved(const GitRepoRecord& before, const GitRefs& before_refs,
                                const GitRepoRecord& now, const GitRefs& now_refs) {
  std::set<std::string> out;
  auto a = before_refs.begin(), b = now_refs.begin();
  while (a != before_refs.end() || b != now_refs.end()) {
    const bool only_a =
        b == now_refs.end() || (a != before_refs.end() && a->first < b->first);
    const bool only_b =
        a == before_refs.end() || (b != now_refs.end() && b->first < a->first);
    if (only_a || only_b || a->second != b->second)
      out.insert(only_b ? b->first : a->first);
    if (!only_b) ++a;
    if (!only_a) ++b;
  }
  if (StashListsDiffer(before, now)) out.insert("refs/stash");
  if (WhereHeadStands(before) != WhereHeadStands(now)) out.emplace(kGitHead);
  if (FilesDiffer(before, now, IsSparse)) out.emplace(kGitSparse);
  auto under_way = [](std::string_view name) {
    return IsUnderWay(name) && !IsSparse(name);
  };
  if (FilesDiffer(before, now, under_way) || UnmergedDiffer(before, now))
    out.emplace(kGitUnderWay);
  return out;
}

Result<GitRecord> EachMoveSince(Store& store,
                                const std::vector<CatalogEntry>& newest_first,
                                const std::vector<Operation>& oldest_first,
                                const std::function<Status(const RepoMove&)>& each) {
  Walk walk(store);
  auto operation = oldest_first.begin();
  auto follow = [&](uint64_t from, uint64_t until) -> Status {
    for (; operation != oldest_first.end() && operation->seq < until; ++operation)
      if (operation->seq > from) BELAY_OK(walk.Follow(*operation));
    return Ok();
  };
  const uint64_t begin = newest_first.empty() ? 0 : newest_first.back().checkpoint.seq;
  const Checkpoint* before = nullptr;  // that was read
  for (size_t i = newest_first.size(); i-- > 0;) {
    const Checkpoint& checkpoint = newest_first[i].checkpoint;
    BELAY_OK(follow(begin, checkpoint.seq));
    BELAY_TRY(Walk::Seen now, walk.At(checkpoint));
    if (!now.readable) continue;
    const bool is_oldest = i + 1 == newest_first.size();
    if (now.id && !is_oldest)
      BELAY_OK(TellMoves(before, checkpoint, i, walk.last(), now.record, each));
    before = &checkpoint;
    walk.Leave(std::move(now));
  }
  BELAY_OK(follow(begin, UINT64_MAX));
  return walk.Take();
}

}  // namespace belay
