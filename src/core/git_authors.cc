#include "core/git_authors.h"

#include <algorithm>
#include <set>

namespace belay {

namespace {

std::string HeadIn(const GitRecord& record, std::string_view repository) {
  const GitRepoRecord* repo = record.Find(repository);
  return repo == nullptr ? std::string() : repo->head;
}

std::set<std::string> MovedIn(const GitRecord& before, const GitRecord& now) {
  std::set<std::string> out;
  for (const auto* record : {&before, &now})
    for (const GitRepoRecord& repo : record->repositories)
      if (HeadIn(before, repo.path) != HeadIn(now, repo.path)) out.insert(repo.path);
  return out;
}

bool CannotBeRead(const Error& error) {
  return error.code == Errc::kCorrupt || error.code == Errc::kNotFound ||
         error.code == Errc::kPurged;
}

std::vector<Author> AuthorsTold(const Checkpoint& checkpoint, const std::string& name) {
  for (const Authorship& one : checkpoint.by)
    if (!one.authors.empty() && std::ranges::find(one.paths, name) != one.paths.end())
      return one.authors;
  return {{.kind = Author::Kind::kUnknown}};
}

class Walk {
 public:
  explicit Walk(Store& store) : store_(store) {}

  // Nothing: it cannot be read.
  Result<std::optional<GitRecord>> At(const Checkpoint& checkpoint) {
    auto state = store_.GetState(checkpoint.state);
    if (state.ok() && known_ && *known_ == state->git) return std::optional(last_);
    if (state.ok()) {
      auto record = LoadGitRecord(store_, state->git);
      if (record.ok()) {
        known_ = state->git;
        return std::optional(std::move(*record));
      }
      state = std::move(record).error();
    }
    if (!CannotBeRead(state.error())) return std::move(state).error();
    return std::optional<GitRecord>();
  }

  Status Follow(const Operation& operation) {
    if (operation.git_after.is_zero()) return Ok();
    auto record = LoadGitRecord(store_, operation.git_after);
    if (!record.ok() && CannotBeRead(record.error())) return Ok();
    if (!record.ok()) return std::move(record).error();
    known_.reset();
    for (const GitRepoRecord& repo : record->repositories) {
      auto at = std::ranges::find(last_.repositories, repo.path, &GitRepoRecord::path);
      if (at != last_.repositories.end())
        *at = repo;
      else
        last_.repositories.insert(
            std::ranges::upper_bound(last_.repositories, repo.path, {},
                                     &GitRepoRecord::path),
            repo);
    }
    return Ok();
  }

  const GitRecord& last() const { return last_; }
  void Leave(GitRecord record) { last_ = std::move(record); }

 private:
  Store& store_;
  std::optional<ObjectId> known_;  // `last_` is this one
  GitRecord last_;
};

}  // namespace

std::string HeadName(std::string_view repository) {
  return std::string(repository) + (repository.empty() ? ".git" : "/.git");
}

std::vector<std::string> MovedHeads(const GitRecord& before, const GitRecord& now) {
  std::vector<std::string> out;
  for (const std::string& repository : MovedIn(before, now))
    out.push_back(HeadName(repository));
  std::ranges::sort(out);
  return out;
}

Result<HeadHistory> HeadsSince(Store& store,
                               const std::vector<CatalogEntry>& newest_first,
                               const std::vector<Operation>& oldest_first) {
  HeadHistory out;
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
    BELAY_TRY(std::optional<GitRecord> now, walk.At(checkpoint));
    if (!now) continue;
    const bool is_first = before == nullptr;
    if (!is_first || i + 1 != newest_first.size()) {
      const bool told = !is_first && checkpoint.since == before->id;
      for (const std::string& name : MovedHeads(walk.last(), *now))
        out.moves.push_back(
            {name, i,
             told ? AuthorsTold(checkpoint, name)
                  : std::vector<Author>{{.kind = Author::Kind::kUnknown}}});
    }
    before = &checkpoint;
    walk.Leave(std::move(*now));
  }
  BELAY_OK(follow(begin, UINT64_MAX));
  out.last = walk.last();
  return out;
}

}  // namespace belay
