#include "core/hand_on.h"

#include <algorithm>
#include <tuple>

#include "base/mutant.h"
#include "core/git_authors.h"
#include "core/path_history.h"
#include "core/purged.h"

namespace belay {

namespace {

// A record of more would be read with every list.
constexpr size_t kMaxGroups = 128, kMaxPaths = 4096, kMaxBytes = size_t{256} << 10;

auto KeyOf(const Author& a) {
  return std::tie(a.kind, a.session, a.agent, a.subagent, a.turn, a.tool_name,
                  a.tool_use_id);
}
struct Before {
  bool operator()(const std::vector<Author>& a, const std::vector<Author>& b) const {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const Author& x, const Author& y) { return KeyOf(x) < KeyOf(y); });
  }
};
using Groups = std::map<std::vector<Author>, std::vector<std::string>, Before>;

// What the two have in common, of one session.
void KeepCommon(Author& a, const Author& b) {
  if (a.subagent != b.subagent) a.subagent.reset();
  if (a.turn != b.turn) a.turn.reset();
  if (a.tool_name != b.tool_name) a.tool_name.reset();
  if (a.tool_use_id != b.tool_use_id) a.tool_use_id.reset();
}

void AddAuthor(std::vector<Author>& authors, const Author& one) {
  for (Author& known : authors) {
    if (known.kind != one.kind || known.session != one.session ||
        known.agent != one.agent)
      continue;
    KeepCommon(known, one);
    return;
  }
  authors.push_back(one);
}

// Less exact, and fewer: by turn, then by session.
Groups Coarser(const Groups& groups, bool with_turn) {
  Groups out;
  for (const auto& [authors, paths] : groups) {
    std::vector<Author> fewer;
    for (Author author : authors) {
      author.subagent.reset();
      author.tool_use_id.reset();
      // Of `belay run` it is all there is.
      if (author.kind != Author::Kind::kRun) author.tool_name.reset();
      if (!with_turn) author.turn.reset();
      AddAuthor(fewer, author);
    }
    std::ranges::sort(
        fewer, [](const Author& x, const Author& y) { return KeyOf(x) < KeyOf(y); });
    std::vector<std::string>& all = out[std::move(fewer)];
    all.insert(all.end(), paths.begin(), paths.end());
  }
  return out;
}

size_t BytesOf(const std::vector<std::string>& paths) {
  size_t bytes = 0;
  for (const std::string& path : paths) bytes += path.size() + 4;
  return bytes;
}

}  // namespace

std::vector<Authorship> Condense(std::map<std::string, std::vector<Author>> by_path) {
  Groups groups;
  for (auto& [path, authors] : by_path) {
    std::ranges::sort(
        authors, [](const Author& x, const Author& y) { return KeyOf(x) < KeyOf(y); });
    groups[std::move(authors)].push_back(path);
  }
  if (groups.size() > kMaxGroups) groups = Coarser(groups, /*with_turn=*/true);
  if (groups.size() > kMaxGroups) groups = Coarser(groups, /*with_turn=*/false);
  std::vector<Authorship> out;
  for (auto& [authors, paths] : groups) out.push_back({authors, std::move(paths)});
  // The smallest first: they are what a person is asked about.
  std::ranges::stable_sort(out, [](const Authorship& a, const Authorship& b) {
    return a.paths.size() < b.paths.size();
  });
  size_t paths = 0, bytes = 0, fit = 0;
  for (; fit < out.size() && fit < kMaxGroups; ++fit) {
    paths += out[fit].paths.size();
    bytes += BytesOf(out[fit].paths);
    if (paths > kMaxPaths || bytes > kMaxBytes) break;
  }
  if (fit == out.size()) return out;
  // Of all but the largest there is a list: what none of them names is the largest's.
  if (fit + 1 == out.size()) {
    out.back().paths.clear();
    return out;
  }
  out.resize(fit);
  if (!BELAY_MUTANT("too-many-authors-are-none"))
    out.push_back({{Author{.kind = Author::Kind::kUnknown}}, {}});
  return out;
}

namespace {

class Handing {
 public:
  Handing(Store& store, const std::vector<CatalogEntry>& newest_first,
          const std::vector<Operation>& oldest_first,
          const std::unordered_set<RecordId>& going)
      : store_(store), all_(newest_first), operations_(oldest_first), going_(going) {}

  Result<std::vector<LogRecord>> Run() {
    for (size_t newest = 0; newest < all_.size(); ++newest) {
      if (!Goes(newest)) continue;
      size_t end = newest;  // one behind the oldest that goes
      while (end < all_.size() && Goes(end)) ++end;
      // Nobody goes back to what was before the first that stays.
      if (end < all_.size()) {
        if (newest > 0) BELAY_OK(Authors(newest - 1, end));
        BELAY_OK(External(newest, end));
      }
      newest = end;
    }
    for (auto& [index, files] : external_) {
      LogRecord record = About(index);
      AddExternal(record, files);
      out_.push_back(std::move(record));
    }
    return std::move(out_);
  }

 private:
  bool Goes(size_t i) const { return going_.contains(all_[i].checkpoint.id); }

  LogRecord About(size_t i) const {
    LogRecord record;
    record.kind = RecordKind::kAnnotation;
    record.root = all_[i].checkpoint.root;
    record.fields.Add(kAnnotationTarget, all_[i].checkpoint.id.span());
    return record;
  }

  // To `next`, from all between it and `before`.
  Status Authors(size_t next, size_t before) {
    const auto begin = all_.begin() + static_cast<ptrdiff_t>(next);
    const std::vector<CatalogEntry> steps(
        begin, all_.begin() + static_cast<ptrdiff_t>(before) + 1);
    const bool told =
        std::any_of(steps.begin(), steps.end() - 1, [](const CatalogEntry& entry) {
          return !entry.checkpoint.by.empty() || !entry.checkpoint.since.is_zero();
        });
    // Where no agent ever was there are no authors to be told apart.
    if (!told || BELAY_MUTANT("authors-go-with-their-checkpoints")) return Ok();
    const Scan::TreeReader trees = [&](const ObjectId& id) {
      return store_.GetTree(id);
    };
    std::vector<Operation> operations;
    for (const Operation& operation : operations_)
      if (operation.seq > all_[before].checkpoint.seq &&
          operation.seq < all_[next].checkpoint.seq)
        operations.push_back(operation);
    BELAY_TRY(PathHistory history, HistoryOf(store_, trees, steps, operations, {""}, {},
                                             /*since_oldest=*/true));
    if (!history.unreadable.empty()) return Ok();
    std::map<std::string, std::vector<Author>> by_path;
    for (const PathHistoryRow& row : history.rows) {
      if (row.checkpoint == nullptr) continue;
      for (const PathHistoryRow::Changed& changed : row.paths)
        for (const Author& author : AuthorsIn(row, changed.path))
          AddAuthor(by_path[changed.path], author);
    }
    std::vector<Authorship> by = Condense(std::move(by_path));
    BELAY_OK(AddGit(steps, operations, by));
    LogRecord record = About(next);
    AddAuthors(record.fields, by, all_[before].checkpoint.id);
    out_.push_back(std::move(record));
    return Ok();
  }

  // Always by name (core/git_authors.h). Of those there are too many of nobody knows.
  Status AddGit(const std::vector<CatalogEntry>& steps,
                const std::vector<Operation>& operations, std::vector<Authorship>& by) {
    if (BELAY_MUTANT("commits-are-not-handed-on")) return Ok();
    std::map<std::string, std::vector<Author>> by_name;
    BELAY_TRY([[maybe_unused]] auto last,
              EachMoveSince(store_, steps, operations, [&](const RepoMove& move) {
                for (const Author& author : move.authors)
                  AddAuthor(by_name[move.name], author);
                return Ok();
              }));
    size_t left = by_name.size();
    for (Authorship& one : Condense(std::move(by_name))) {
      left -= one.paths.size();
      if (!one.paths.empty()) by.push_back(std::move(one));
    }
    if (left > 0)
      by.push_back(
          {{{.kind = Author::Kind::kUnknown}}, {std::string(kOtherRepositories)}});
    return Ok();
  }

  // To `before`: of each file the oldest that goes, unless it has that file itself.
  Status External(size_t newest, size_t before) {
    if (BELAY_MUTANT("external-goes-with-its-checkpoint")) return Ok();
    std::map<std::string, ExternalFile> files;
    for (const ExternalFile& file : all_[before].checkpoint.external)
      files.emplace(file.path, file);
    const size_t own = files.size();
    for (size_t i = before; i-- > newest;)
      for (const ExternalFile& file : all_[i].checkpoint.external)
        if (files.size() < kMaxExternal && files.emplace(file.path, file).second)
          BELAY_OK(LeaveOutPurged(files.at(file.path), all_[i].checkpoint.seq));
    if (files.size() == own) return Ok();
    for (auto& [path, file] : files) {
      BELAY_OK(LeaveOutPurged(file, all_[before].checkpoint.seq));
      external_[before].push_back(std::move(file));
    }
    return Ok();
  }

  // A record that is newer than a purge would want back what that one erased.
  Status LeaveOutPurged(ExternalFile& file, uint64_t seq) {
    if (!file.state) return Ok();
    if (!purged_) {
      BELAY_TRY(auto catalog, Catalog::Open(store_));
      BELAY_TRY(purged_, PurgedSet::Load(*catalog));
    }
    if (!purged_->Has(file.state->id, seq) && !purged_->Has(file.state->xattrs, seq))
      return Ok();
    file.state.reset();
    file.left_out = static_cast<uint8_t>(Skip::kPurged);
    return Ok();
  }

  Store& store_;
  const std::vector<CatalogEntry>& all_;
  const std::vector<Operation>& operations_;
  const std::unordered_set<RecordId>& going_;
  std::map<size_t, std::vector<ExternalFile>> external_;
  std::optional<PurgedSet> purged_;
  std::vector<LogRecord> out_;
};

}  // namespace

Result<std::vector<LogRecord>> HandOn(Store& store,
                                      const std::vector<CatalogEntry>& newest_first,
                                      const std::vector<Operation>& oldest_first,
                                      const std::unordered_set<RecordId>& going) {
  return Handing(store, newest_first, oldest_first, going).Run();
}

}  // namespace belay
