#include "restore/foreign.h"

#include <algorithm>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/capture.h"
#include "core/change.h"
#include "core/git_authors.h"
#include "core/live.h"
#include "core/operations.h"
#include "core/path_history.h"
#include "scan/tree_diff.h"

namespace belay {

namespace {

using Maybe = std::optional<PathState>;

// An imported checkpoint is no look at the directory: nobody did what it differs by.
// Whoever was compared with it takes its place beside the look before.
void LeaveOutImported(std::vector<CatalogEntry>& newest_first, const RecordId& target) {
  if (BELAY_MUTANT("imported-is-looked-at")) return;
  std::set<RecordId> imported;
  RecordId before;
  for (auto at = newest_first.rbegin(); at != newest_first.rend(); ++at) {
    Checkpoint& c = at->checkpoint;
    if (c.imported && c.id != target) {
      imported.insert(c.id);
      continue;
    }
    if (imported.contains(c.since)) c.since = before;
    before = c.id;
  }
  std::erase_if(newest_first, [&](const CatalogEntry& entry) {
    return imported.contains(entry.checkpoint.id);
  });
}

// Who is at work as far as what changed since the last look is concerned.
Live AtWorkNow(Store& store, const RootId& root, bool root_is_gone = false) {
  Live live = Live::Load(store, root);
  live.Judge(store.clock().WallMillis(), /*by_agent=*/false, root_is_gone);
  return live;
}

// What happened from the checkpoint on: checkpoints, the newest first and that one
// last, even when it was let go meanwhile, and operations, the oldest first.
struct Recorded {
  std::vector<CatalogEntry> checkpoints;
  std::vector<Operation> operations;
};
Result<Recorded> RecordedSince(Catalog& catalog, const RootId& root,
                               const Checkpoint& target, const Live& live) {
  Recorded out;
  BELAY_TRY(out.checkpoints, catalog.ListCheckpoints({.root = root}));
  std::erase_if(out.checkpoints, [&](const CatalogEntry& entry) {
    return entry.checkpoint.seq < target.seq;
  });
  if (out.checkpoints.empty() || out.checkpoints.back().checkpoint.id != target.id) {
    out.checkpoints.emplace_back();
    out.checkpoints.back().checkpoint = target;
  }
  LeaveOutImported(out.checkpoints, target.id);
  // Calls that may be over without a word: what will be said of them when that is
  // known.
  for (const LiveCall& call : live.calls()) {
    if (call.part == LiveCall::Part::kAtWork ||
        BELAY_MUTANT("interrupted-calls-are-believed"))
      continue;
    for (const Vouched& what : call.vouched)
      for (CatalogEntry& entry : out.checkpoints)
        if (entry.checkpoint.id == what.id)
          (void)NameBeside(entry.checkpoint.by, call.author, what);
  }
  BELAY_TRY(out.operations, ListOperations(catalog, root));
  std::erase_if(out.operations, [&](const Operation& o) { return o.seq < target.seq; });
  return out;
}

bool Has(const std::set<std::string>& family, const Author& author) {
  return author.session && family.contains(*author.session);
}

MovedBy ByAuthors(const std::set<std::string>& family,
                  const std::vector<Author>& authors) {
  MovedBy out = MovedBy::kSession;
  for (const Author& author : authors) {
    if (Has(family, author)) continue;
    if (author.kind != Author::Kind::kUnknown) return MovedBy::kOthers;
    out = MovedBy::kUnknown;
  }
  return out;
}

// Gathers what was moved by anybody but the session.
class MovesOfOthers {
 public:
  explicit MovesOfOthers(Store& store) : store_(store) {}

  // `refs`: of `now`, unless they are stored.
  Status Add(MovedBy by, const GitRepoRecord* before, const GitRepoRecord* now,
             const GitRefs* refs = nullptr) {
    if (by == MovedBy::kSession) return Ok();
    static const GitRepoRecord kNone{};
    const GitRepoRecord& a = before == nullptr ? kNone : *before;
    const GitRepoRecord& b = now == nullptr ? kNone : *now;
    // That are the same need not be read to say so.
    GitRefs refs_a, refs_b;
    if (a.refs != b.refs) {
      auto read = Read(a, refs_a);
      if (read.ok() && refs == nullptr) read = Read(b, refs_b);
      if (!read.ok()) {
        Note(moves_.all, by);
        return Ok();
      }
    }
    const bool given = refs != nullptr && a.refs != b.refs;
    for (const std::string& name : WhatMoved(a, refs_a, b, given ? *refs : refs_b))
      Note(moves_.what.try_emplace(name, by).first->second, by);
    return Ok();
  }
  OthersMoves Take() { return std::move(moves_); }

 private:
  static void Note(MovedBy& known, MovedBy by) {
    if (known != MovedBy::kOthers) known = by;
  }
  // Mostly of the record that was read last.
  Status Read(const GitRepoRecord& record, GitRefs& out) {
    if (record.refs != last_) {
      BELAY_TRY(last_refs_, LoadGitRefs(store_, record));
      last_ = record.refs;
    }
    out = last_refs_;
    return Ok();
  }

  Store& store_;
  OthersMoves moves_;
  ObjectId last_;
  GitRefs last_refs_;
};

// The checkpoint and the one before it belong to the session; a safety checkpoint says
// nothing of who is at work.
bool AreNeighbours(const std::vector<CatalogEntry>& newest_first, size_t found,
                   const std::string& session) {
  if (newest_first[found].checkpoint.session != session) return false;
  for (size_t i = found + 1; i < newest_first.size(); ++i) {
    const Checkpoint& before = newest_first[i].checkpoint;
    if (before.session == session) return true;
    if (before.kind != CheckpointKind::kSafety) return false;
  }
  return false;
}

}  // namespace

Result<std::set<std::string>> FamilyOf(Catalog& catalog, const std::string& session) {
  struct Known {
    std::string parent = {};
    bool subagent = false;
    uint64_t first_seq = 0;
  };
  std::map<std::string, Known> sessions;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records) {  // newest first
    auto one = ToSession(record);
    if (!one.ok()) continue;
    Known& known = sessions[one->session];
    known.first_seq = record.seq;
    if (!known.parent.empty() || !one->parent) continue;
    known.parent = *one->parent;
    known.subagent = one->subagent;
  }
  std::map<std::string, uint64_t> last_turn;
  BELAY_TRY(auto turns, catalog.ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : turns)
    if (auto turn = ToTurn(record); turn.ok()) {
      uint64_t& last = last_turn[turn->session];
      last = std::max(last, record.seq);
    }
  std::set<std::string> family;
  if (sessions.contains(session)) family.insert(session);
  for (size_t before = 0; before != family.size();) {
    before = family.size();
    for (const auto& [id, known] : sessions)
      if (family.contains(known.parent) &&
          ((known.subagent && !BELAY_MUTANT("subagents-are-others")) ||
           last_turn[known.parent] < known.first_seq ||
           BELAY_MUTANT("forks-beside-are-family")))
        family.insert(id);
  }
  return family;
}

Result<ForeignChanges> ForeignSince(Store& store, const RootId& root,
                                    const Checkpoint& target, const ObjectId& now_tree,
                                    const Scan::TreeReader& now_trees,
                                    const std::vector<SkippedPath>& now_skipped,
                                    bool root_is_gone) {
  ForeignChanges out;
  if (!target.session || BELAY_MUTANT("nothing-is-foreign")) return out;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(const auto family, FamilyOf(*catalog, *target.session));
  if (family.empty()) return out;
  auto note = [&](const std::string& path, const std::vector<Author>& authors) {
    if (std::ranges::all_of(authors, [&](const Author& a) { return Has(family, a); }))
      return;
    std::vector<Author>& known = out[path];
    for (const Author& author : authors)
      if (std::find(known.begin(), known.end(), author) == known.end())
        known.push_back(author);
  };
  const Live live = AtWorkNow(store, root, root_is_gone);
  BELAY_TRY(const Recorded since, RecordedSince(*catalog, root, target, live));
  const Scan::TreeReader trees = [&](const ObjectId& id) { return store.GetTree(id); };
  BELAY_TRY(PathHistory history,
            HistoryOf(store, trees, since.checkpoints, since.operations, {""}, {},
                      /*since_oldest=*/true));
  for (const PathHistoryRow& row : history.rows) {
    // What the operations did is told of them, and was somebody's wish.
    if (row.checkpoint == nullptr || row.checkpoint->id == target.id) continue;
    for (const PathHistoryRow::Changed& changed : row.paths)
      note(changed.path, AuthorsIn(row, changed.path));
  }
  const Checkpoint& newest = since.checkpoints[0].checkpoint;
  // Since the last checkpoint, or since what a rollback left after it, or since it was
  // last seen, by whoever was there when it went.
  BELAY_TRY(State last, store.GetState(newest.state));
  std::set<std::string> changed;
  BELAY_TRY([[maybe_unused]] auto counts,
            DiffTrees(last.tree, now_tree, now_trees,
                      [&](std::string_view path, Change) { changed.emplace(path); }));
  auto is_dir = [](const Maybe& m) { return m && m->kind == EntryKind::kDirectory; };
  for (const auto& [path, was] : history.known) {
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    BELAY_TRY(const auto now, FindInTree(now_tree, rel, now_trees));
    const Maybe is = now ? Maybe(StateOf(*now)) : Maybe();
    if (!is && IsLeftOut(now_skipped, path)) {
      // It is there, and nobody saw since when it is another.
      changed.erase(path);
      if (!BELAY_MUTANT("what-nobody-saw-is-nobodys"))
        note(path, {{.kind = Author::Kind::kUnknown}});
    } else if (SameState(was, is) || BELAY_MUTANT("what-was-taken-back-is-nobodys")) {
      changed.erase(path);
    } else if (!is_dir(was) && !is_dir(is)) {  // a directory, by what is in it
      changed.insert(path);
    }
  }
  WhoWrote who(live);
  for (const std::string& path : changed) who.Add(path);
  Checkpoint now;
  now.by = who.Take();
  for (const std::string& path : changed) note(path, AuthorsOf(now, path));
  return out;
}

Result<OthersMoves> GitMovesOfOthers(Store& store, const RootId& root,
                                     const Checkpoint& target, const GitRepoRecord& is,
                                     const GitRefs& refs) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  const std::string& session = *target.session;
  BELAY_TRY(const auto family, FamilyOf(*catalog, session));
  const Live live = AtWorkNow(store, root);
  BELAY_TRY(const Recorded since, RecordedSince(*catalog, root, target, live));
  const bool told = !family.empty() && !BELAY_MUTANT("neighbours-commit");
  MovesOfOthers moves(store);
  const std::string name = GitName(is.path);
  auto add = [&](const RepoMove& move) -> Status {
    if (move.name != name) return Ok();
    const MovedBy by = told ? ByAuthors(family, move.authors)
                       : AreNeighbours(since.checkpoints, move.found, session)
                           ? MovedBy::kSession
                           : MovedBy::kOthers;
    return moves.Add(by, move.before, move.now);
  };
  BELAY_TRY(const GitRecord left,
            EachMoveSince(store, since.checkpoints, since.operations, add));
  const GitRepoRecord* last = left.Find(is.path);
  if (last != nullptr && last->absent) last = nullptr;
  if (GitMoved(last, &is)) {
    const MovedBy by =
        told ? ByAuthors(family, WhoWrote(live).rest()) : MovedBy::kOthers;
    BELAY_OK(moves.Add(by, last, &is, &refs));
  }
  return moves.Take();
}

std::set<std::string> MaybeOfSessions(Store& store, const RootId& root,
                                      const std::vector<std::string>& paths) {
  const Live live = AtWorkNow(store, root);
  WhoWrote who(live);
  for (const std::string& path : paths) who.Add(path);
  Checkpoint since;
  since.by = who.Take();
  std::set<std::string> out;
  for (const std::string& path : paths)
    if (std::ranges::any_of(AuthorsOf(since, path),
                            [](const Author& a) { return a.session.has_value(); }))
      out.insert(path);
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
