#include "cli/list_fold.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "store/log_record.h"

namespace belay {

namespace {

// Who started whom, of the subagents that are sessions by themselves.
using Parents = std::map<std::string, std::string, std::less<>>;

Result<Parents> ReadParents(Catalog& catalog) {
  Parents out;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records) {
    auto told = ToSession(record);
    if (told.ok() && told->subagent && told->parent)
      out.try_emplace(told->session, *told->parent);
  }
  return out;
}

// The place in the list of the newest turn of whoever started `session`.
std::optional<size_t> TurnAround(const Parents& parents,
                                 const std::map<std::string_view, size_t>& newest,
                                 std::string_view session) {
  constexpr int kDeepest = 16;  // no circle
  for (int i = 0; i < kDeepest; ++i) {
    const auto parent = parents.find(session);
    if (parent == parents.end()) return std::nullopt;
    session = parent->second;
    if (const auto at = newest.find(session); at != newest.end()) return at->second;
  }
  return std::nullopt;
}

// Counts anew what the turns changed among whose checkpoints there are some of others.
class OwnChanges {
 public:
  OwnChanges(const std::vector<CheckpointRow>& outline, std::vector<ListRow>& rows)
      : outline_(outline),
        rows_(rows),
        row_of_(outline.size(), kNoRow),
        needed_(outline.size(), false) {
    for (size_t i = 0; i < rows.size(); ++i) Choose(i);
  }

  Status Count(Catalog& catalog) {
    constexpr size_t kAtOnce = 256;
    std::vector<size_t> places;
    std::vector<uint64_t> seqs;
    for (size_t at = 0; at < outline_.size(); ++at) {
      if (needed_[at]) {
        places.push_back(at);
        seqs.push_back(outline_[at].seq);
      }
      if (seqs.empty() || (seqs.size() < kAtOnce && at + 1 < outline_.size())) continue;
      BELAY_TRY(auto entries, catalog.Load(seqs));
      for (size_t i = 0; i < entries.size(); ++i) Add(entries[i].checkpoint, places[i]);
      places.clear();
      seqs.clear();
    }
    for (const auto& [i, changed] : changed_) {
      rows_[i].changed = changed;
      rows_[i].changed_dirs = std::min(rows_[i].changed_dirs, changed);
    }
    return Ok();
  }

 private:
  static constexpr size_t kNoRow = SIZE_MAX;

  void Choose(size_t i) {
    // What a call did last may be found by the next call of somebody else.
    constexpr size_t kMostBehind = 64;
    const ListRow& row = rows_[i];
    if (row.members.empty()) return;
    const size_t first = row.members.front(), last = row.members.back();
    if (first - last + 1 == row.members.size()) return;
    changed_[i] = 0;
    turns_[{*row.row->session, *row.row->turn}] = i;
    for (const size_t at : row.members) {
      row_of_[at] = i;
      if (outline_[at].session != row.row->session)
        subagents_[*outline_[at].session] = i;
    }
    for (size_t at = last; at <= first; ++at) needed_[at] = true;
    for (size_t n = 1; n <= kMostBehind && n <= last; ++n) {
      if (outline_[last - n].session == row.row->session) break;
      needed_[last - n] = true;
    }
  }

  void Add(const Checkpoint& c, size_t place) {
    const uint64_t all = c.added + c.modified + c.deleted;
    if (c.by.empty()) {  // an older record does not say whose they are
      if (row_of_[place] != kNoRow) changed_[row_of_[place]] += all;
      return;
    }
    uint64_t named = 0;
    const Authorship* rest = nullptr;
    for (const Authorship& by : c.by) {
      if (by.paths.empty()) rest = &by;
      // A commit is no changed file.
      const auto files = static_cast<uint64_t>(
          std::ranges::count_if(by.paths, [](const std::string& path) {
            return path != ".git" && !path.ends_with("/.git");
          }));
      named += files;
      Give(by, files);
    }
    if (rest != nullptr) Give(*rest, all - std::min(all, named));
  }

  void Give(const Authorship& by, uint64_t files) {
    std::set<size_t> rows;
    for (const Author& author : by.authors) {
      if (!author.session) continue;
      const auto turn = turns_.find({*author.session, author.turn.value_or(0)});
      if (turn != turns_.end()) rows.insert(turn->second);
      const auto subagent = subagents_.find(*author.session);
      if (subagent != subagents_.end()) rows.insert(subagent->second);
    }
    for (const size_t row : rows) changed_[row] += files;
  }

  const std::vector<CheckpointRow>& outline_;
  std::vector<ListRow>& rows_;
  std::vector<size_t> row_of_;  // of each checkpoint, where it is counted anew
  std::vector<bool> needed_;
  std::map<size_t, uint64_t> changed_;
  std::map<std::pair<std::string, uint64_t>, size_t> turns_;
  std::map<std::string, size_t, std::less<>> subagents_;
};

}  // namespace

Result<std::vector<ListRow>> FoldTurns(Catalog& catalog, std::vector<ListRow> rows) {
  BELAY_TRY(const Parents parents, ReadParents(catalog));
  // What an operation moved is not the turn's doing.
  auto own = [](ListRow& row) {
    row.changed -= std::min(row.changed, row.moved);
    row.changed_dirs = std::min(row.changed_dirs, row.changed);
  };
  // By turn, then session: comparing numbers is quicker. The place in `out`.
  std::map<std::pair<uint64_t, std::string_view>, size_t> turns;
  std::map<std::string_view, size_t> newest;  // turn of each session
  std::vector<ListRow> out;
  for (size_t i = rows.size(); i-- > 0;) {  // oldest first
    ListRow& row = rows[i];
    const CheckpointRow& c = *row.row;
    std::optional<size_t> into;
    if (c.kind == CheckpointKind::kAuto && c.session) {
      into = TurnAround(parents, newest, *c.session);
      if (!into && c.turn) {
        const auto [at, is_new] = turns.try_emplace({*c.turn, *c.session}, out.size());
        if (!is_new) into = at->second;
        newest[*c.session] = at->second;
      }
    }
    if (into) {
      ListRow& turn = out[*into];
      if (++turn.folded == 2) {
        own(turn);
        turn.members.push_back(turn.number - 1);
      }
      own(row);
      turn.changed += row.changed;
      turn.changed_dirs += row.changed_dirs;
      turn.members.push_back(row.number - 1);
      continue;
    }
    out.push_back(std::move(row));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Status CountOwnChanges(Catalog& catalog, const std::vector<CheckpointRow>& outline,
                       std::vector<ListRow>& rows) {
  return OwnChanges(outline, rows).Count(catalog);
}

}  // namespace belay
