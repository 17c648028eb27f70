#include "restore/foreign.h"

#include <algorithm>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/live.h"
#include "core/operations.h"
#include "core/path_history.h"
#include "scan/tree_diff.h"

namespace belay {

Result<std::set<std::string>> FamilyOf(Catalog& catalog, const std::string& session) {
  std::set<std::string> family;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records)
    if (auto one = ToSession(record); one.ok() && one->session == session)
      family.insert(session);
  for (size_t before = 0; before != family.size();) {
    before = family.size();
    for (const LogRecord& record : records) {
      auto one = ToSession(record);
      if (one.ok() && one->parent && family.contains(*one->parent))
        family.insert(one->session);
    }
  }
  return family;
}

Result<ForeignChanges> ForeignSince(Store& store, const RootId& root,
                                    const Checkpoint& target, const ObjectId& now_tree,
                                    const Scan::TreeReader& now_trees) {
  ForeignChanges out;
  if (!target.session || BELAY_MUTANT("nothing-is-foreign")) return out;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(const auto family, FamilyOf(*catalog, *target.session));
  if (family.empty()) return out;
  auto note = [&](const std::string& path, const std::vector<Author>& authors) {
    const bool own = std::all_of(authors.begin(), authors.end(), [&](const Author& a) {
      return a.session && family.contains(*a.session);
    });
    if (own) return;
    std::vector<Author>& known = out[path];
    for (const Author& author : authors)
      if (std::find(known.begin(), known.end(), author) == known.end())
        known.push_back(author);
  };
  BELAY_TRY(auto all, catalog->ListCheckpoints({.root = root}));
  std::erase_if(all, [&](const CatalogEntry& entry) {
    return entry.checkpoint.seq < target.seq;
  });
  // Everything is told from it on, even when it was let go meanwhile.
  if (all.empty() || all.back().checkpoint.id != target.id) {
    all.emplace_back();
    all.back().checkpoint = target;
  }
  BELAY_TRY(auto operations, ListOperations(*catalog, root));
  std::erase_if(operations, [&](const Operation& o) { return o.seq < target.seq; });
  const Scan::TreeReader trees = [&](const ObjectId& id) { return store.GetTree(id); };
  BELAY_TRY(PathHistory history,
            HistoryOf(store, trees, all, operations, {""}, {}, /*since_oldest=*/true));
  for (const PathHistoryRow& row : history.rows) {
    // What the operations did is told of them, and was somebody's wish.
    if (row.checkpoint == nullptr || row.checkpoint->id == target.id) continue;
    for (const PathHistoryRow::Changed& changed : row.paths)
      note(changed.path, AuthorsIn(row, changed.path));
  }
  // Since the last checkpoint, or since what a rollback left after it.
  const Live live = Live::Load(store, root);
  std::set<std::string> moved;
  for (const PathHistoryRow& row : history.rows)
    if (row.operation != nullptr && row.operation->seq > all[0].checkpoint.seq)
      for (const PathHistoryRow::Changed& changed : row.paths)
        moved.insert(changed.path);
  BELAY_TRY(State last, store.GetState(all[0].checkpoint.state));
  WhoWrote who(live);
  std::vector<std::string> changed;
  auto visit = [&](std::string_view path, Change) {
    const std::string at(path);
    if (moved.contains(at)) return;
    who.Add(at);
    changed.push_back(at);
  };
  BELAY_TRY([[maybe_unused]] auto counts,
            DiffTrees(last.tree, now_tree, now_trees, visit));
  Checkpoint since;
  since.by = who.Take();
  for (const std::string& path : changed) note(path, AuthorsOf(since, path));
  return out;
}

Error ChangedByOthers(const std::vector<std::string>& paths) {
  constexpr size_t kNamed = 5;
  std::string text = paths.size() == 1 ? "one path was changed by others since: "
                                       : std::to_string(paths.size()) +
                                             " paths were changed by others since: ";
  for (size_t i = 0; i < std::min(kNamed, paths.size()); ++i)
    text += (i == 0 ? "" : ", ") + EscapeForDisplay(paths[i]);
  if (paths.size() > kNamed) text += ", ...";
  return Error(Errc::kRefused, text)
      .WithHint("take them back too with --exact, or leave them with --keep-outside");
}

}  // namespace belay
