#include "restore/foreign.h"

#include <algorithm>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/capture.h"
#include "core/change.h"
#include "core/git_authors.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/operations.h"
#include "core/path_history.h"
#include "core/state_view.h"
#include "scan/rules_record.h"
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

// Who grew out of whom, and is the same work still.
class Families {
 public:
  static Result<Families> Load(Catalog& catalog) {
    Families out;
    BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
    for (const LogRecord& record : records) {  // newest first
      auto one = ToSession(record);
      if (!one.ok()) continue;
      Known& known = out.sessions_[one->session];
      known.first_seq = record.seq;
      if (!known.parent.empty() || !one->parent) continue;
      known.parent = *one->parent;
      known.subagent = one->subagent;
    }
    BELAY_TRY(auto turns, catalog.ListRecords({.kind = RecordKind::kTurn}));
    for (const LogRecord& record : turns)
      if (auto turn = ToTurn(record); turn.ok()) {
        uint64_t& last = out.last_turn_[turn->session];
        last = std::max(last, record.seq);
      }
    return out;
  }
  // The session and those that grew out of it: FamilyOf().
  std::set<std::string> Of(const std::string& session) const {
    std::set<std::string> family;
    if (sessions_.contains(session)) family.insert(session);
    for (size_t before = 0; before != family.size();) {
      before = family.size();
      for (const auto& [id, known] : sessions_)
        if (family.contains(known.parent) && IsSameWork(known)) family.insert(id);
    }
    return family;
  }
  // The session that it is a subagent of, or itself.
  std::string MainOf(const std::string& session) const {
    std::set<std::string> seen{session};  // what is recorded may lead in a circle
    std::string main = session;
    for (auto at = sessions_.find(main);
         at != sessions_.end() && at->second.subagent &&
         !BELAY_MUTANT("subagents-are-others") && seen.insert(at->second.parent).second;
         at = sessions_.find(main))
      main = at->second.parent;
    return main;
  }

 private:
  struct Known {
    std::string parent = {};
    bool subagent = false;
    uint64_t first_seq = 0;
  };
  // As its parent: nobody had a turn there since.
  bool IsSameWork(const Known& known) const {
    if ((known.subagent && !BELAY_MUTANT("subagents-are-others")) ||
        BELAY_MUTANT("forks-beside-are-family"))
      return true;
    const auto last = last_turn_.find(known.parent);
    return last == last_turn_.end() || last->second < known.first_seq;
  }

  std::map<std::string, Known> sessions_;
  std::map<std::string, uint64_t> last_turn_;
};

// Whose doings go back without a word: a session's, those of its family, and what it
// inherited of sessions that go on beside it. Where a target may be meant for either of
// two sessions, what both have.
class Owners {
 public:
  static Result<Owners> Of(Catalog& catalog, const Checkpoint& target,
                           const std::vector<std::string>& asking) {
    Owners out;
    BELAY_TRY(out.families_, Families::Load(catalog));
    const std::vector<std::string> own{*target.session};
    for (const std::string& session :
         asking.empty() || BELAY_MUTANT("the-original-asks-for-its-fork") ? own
                                                                          : asking) {
      Side side;
      side.family = out.families_.Of(session);
      out.told_ = out.told_ && !side.family.empty();
      BELAY_TRY(side.lineage, Lineage::Of(catalog, session));
      out.sides_.push_back(std::move(side));
    }
    return out;
  }
  // Somebody told of it: what it did is known from what others did.
  bool told() const { return told_; }
  // `seq`: of the checkpoint that says so; UINT64_MAX: since the last one.
  bool Have(const Author& author, uint64_t seq) const {
    if (!author.session) return false;
    const std::string main = families_.MainOf(*author.session);
    return std::ranges::all_of(sides_, [&](const Side& side) {
      return side.family.contains(*author.session) ||
             side.lineage.Has(author.session, author.turn, seq) ||
             (main != *author.session && side.lineage.Has(main, {}, seq));
    });
  }

 private:
  struct Side {
    std::set<std::string> family;
    Lineage lineage;
  };
  Families families_;
  std::vector<Side> sides_;
  bool told_ = true;
};

MovedBy ByAuthors(const Owners& owners, const std::vector<Author>& authors,
                  uint64_t seq) {
  MovedBy out = MovedBy::kSession;
  for (const Author& author : authors) {
    if (owners.Have(author, seq)) continue;
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

// What was done to a path that operations moved, and is still there. One that brings
// back a state which the path had takes back what was done since; another one brings
// that back again.
class Trail {
 public:
  using State = std::optional<Maybe>;  // nothing: it cannot be read
  explicit Trail(Maybe first) { steps_.push_back({std::move(first), {}, 0}); }
  void Changed(State state, std::vector<Author> by) {
    steps_.push_back({std::move(state), std::move(by), at_});
    at_ = steps_.size() - 1;
  }
  // By an operation: that was somebody's wish.
  void Moved(const Maybe& state) {
    for (size_t i = steps_.size(); i-- > 0;) {
      if (!steps_[i].state || !SameState(*steps_[i].state, state)) continue;
      at_ = i;
      return;
    }
    Changed(state, {});
  }
  std::vector<Author> authors() const {
    std::vector<Author> out;
    for (size_t i = at_; i != 0; i = steps_[i].from)
      out.insert(out.end(), steps_[i].by.begin(), steps_[i].by.end());
    return out;
  }

 private:
  struct Step {
    State state;
    std::vector<Author> by;
    size_t from = 0;
  };
  std::vector<Step> steps_;
  size_t at_ = 0;
};

// Of all that changed: who did it, without whom it belongs to.
class Foreign {
 public:
  Foreign(Store& store, const Owners& owners, const Checkpoint& target)
      : store_(store), owners_(owners), target_(target) {}

  // Oldest first.
  Status Add(const PathHistoryRow& row) {
    if (row.operation != nullptr) return AddMoves(*row.operation);
    if (row.checkpoint->id == target_.id) return Ok();
    const uint64_t seq = row.checkpoint->seq;
    for (const PathHistoryRow::Changed& changed : row.paths) {
      std::vector<Author> by = Others(AuthorsIn(row, changed.path), seq);
      const auto trail = trails_.find(changed.path);
      if (trail == trails_.end()) {
        Note(out_[changed.path], by);
        continue;
      }
      BELAY_TRY(auto state, StateAt(row.checkpoint->state, changed.path));
      trail->second.Changed(std::move(state), std::move(by));
    }
    return Ok();
  }
  void AddLast(const std::string& path, const std::vector<Author>& authors) {
    std::vector<Author> by = Others(authors, UINT64_MAX);
    const auto trail = trails_.find(path);
    if (trail == trails_.end())
      Note(out_[path], by);
    else
      trail->second.Changed({}, std::move(by));
  }
  ForeignChanges Take() {
    for (const auto& [path, trail] : trails_) Note(out_[path], trail.authors());
    std::erase_if(out_, [](const auto& one) { return one.second.empty(); });
    return std::move(out_);
  }

  // Before the first row: paths that operations move are followed from the target on.
  Status Follow(const std::vector<Operation>& operations) {
    if (BELAY_MUTANT("what-was-taken-back-still-counts")) return Ok();
    for (const Operation& operation : operations) {
      auto moves = ChangesOf(operation);
      if (!moves.ok()) continue;  // said by the history
      for (const PathChange& move : *moves) {
        const std::string path = move.path.empty() ? "." : move.path;
        if (trails_.contains(path)) continue;
        BELAY_TRY(auto first, StateAt(target_.state, path));
        if (first) trails_.emplace(path, Trail(std::move(*first)));
      }
      moves_.emplace(operation.id, std::move(*moves));
    }
    return Ok();
  }

 private:
  // One of whom it does not belong to, or nobody: then all did what is theirs.
  std::vector<Author> Others(const std::vector<Author>& authors, uint64_t seq) const {
    if (std::ranges::all_of(authors,
                            [&](const Author& a) { return owners_.Have(a, seq); }))
      return {};
    return authors;
  }
  static void Note(std::vector<Author>& known, const std::vector<Author>& authors) {
    for (const Author& author : authors)
      if (std::find(known.begin(), known.end(), author) == known.end())
        known.push_back(author);
  }

  Result<std::vector<PathChange>> ChangesOf(const Operation& operation) {
    if (operation.changes.is_zero()) return std::vector<PathChange>();
    BELAY_TRY(Bytes bytes, store_.Get({ObjectType::kNode, operation.changes}));
    BELAY_TRY(Node node, DecodeNode(bytes));
    return DecodeChanges(node);
  }
  Status AddMoves(const Operation& operation) {
    const auto moves = moves_.find(operation.id);
    if (moves == moves_.end()) return Ok();
    for (const PathChange& move : moves->second)
      if (auto trail = trails_.find(move.path.empty() ? "." : move.path);
          trail != trails_.end())
        trail->second.Moved(move.after);
    return Ok();
  }
  Result<Trail::State> StateAt(const ObjectId& id, const std::string& path) {
    auto read = [&]() -> Result<Maybe> {
      BELAY_TRY(const State state, store_.GetState(id));
      if (path == ".") {
        BELAY_TRY(const RulesRecord rules, LoadRules(store_, state.rules));
        return Maybe(RootState(rules.mode, rules.uid, rules.gid));
      }
      BELAY_TRY(RelPath rel, RelPath::Parse(path));
      BELAY_TRY(const auto entry,
                FindInTree(state.tree, rel,
                           [&](const ObjectId& tree) { return store_.GetTree(tree); }));
      return entry ? Maybe(StateOf(*entry)) : Maybe();
    };
    auto state = read();
    if (state.ok()) return Trail::State(std::move(*state));
    const Errc code = state.error().code;
    if (code == Errc::kCorrupt || code == Errc::kNotFound || code == Errc::kPurged)
      return Trail::State();
    return std::move(state).error();
  }

  Store& store_;
  const Owners& owners_;
  const Checkpoint& target_;
  ForeignChanges out_;
  std::map<std::string, Trail> trails_;
  std::map<RecordId, std::vector<PathChange>> moves_;
};

}  // namespace

Result<std::set<std::string>> FamilyOf(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const Families families, Families::Load(catalog));
  return families.Of(session);
}

Result<ForeignChanges> ForeignSince(Store& store, const RootId& root,
                                    const Checkpoint& target,
                                    const std::vector<std::string>& asking,
                                    const ObjectId& now_tree,
                                    const Scan::TreeReader& now_trees,
                                    const ScanSummary& now, bool root_is_gone) {
  if (!target.session || BELAY_MUTANT("nothing-is-foreign")) return ForeignChanges();
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(const Owners owners, Owners::Of(*catalog, target, asking));
  if (!owners.told()) return ForeignChanges();
  const Live live = AtWorkNow(store, root, root_is_gone);
  BELAY_TRY(const Recorded since, RecordedSince(*catalog, root, target, live));
  const Scan::TreeReader trees = [&](const ObjectId& id) { return store.GetTree(id); };
  BELAY_TRY(PathHistory history,
            HistoryOf(store, trees, since.checkpoints, since.operations, {""}, {},
                      /*since_oldest=*/true));
  Foreign out(store, owners, target);
  BELAY_OK(out.Follow(since.operations));
  for (auto row = history.rows.rbegin(); row != history.rows.rend(); ++row)
    BELAY_OK(out.Add(*row));
  const Checkpoint& newest = since.checkpoints[0].checkpoint;
  // Since the last checkpoint, or since what a rollback left after it, or since it was
  // last seen, by whoever was there when it went.
  BELAY_TRY(State last, store.GetState(newest.state));
  std::set<std::string> changed;
  BELAY_TRY([[maybe_unused]] auto counts,
            DiffTrees(last.tree, now_tree, now_trees,
                      [&](std::string_view path, Change) { changed.emplace(path); }));
  if (history.root && !root_is_gone &&
      !SameState(history.root, RootState(now.mode, now.uid, now.gid)))
    changed.emplace(".");
  auto is_dir = [](const Maybe& m) { return m && m->kind == EntryKind::kDirectory; };
  for (const auto& [path, was] : history.known) {
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    BELAY_TRY(const auto there, FindInTree(now_tree, rel, now_trees));
    const Maybe is = there ? Maybe(StateOf(*there)) : Maybe();
    if (!is && IsLeftOut(now.skipped, path)) {
      // It is there, and nobody saw since when it is another.
      changed.erase(path);
      if (!BELAY_MUTANT("what-nobody-saw-is-nobodys"))
        out.AddLast(path, {{.kind = Author::Kind::kUnknown}});
    } else if (SameState(was, is) || BELAY_MUTANT("what-was-taken-back-is-nobodys")) {
      changed.erase(path);
    } else if (!is_dir(was) && !is_dir(is)) {  // a directory, by what is in it
      changed.insert(path);
    }
  }
  WhoWrote who(live);
  for (const std::string& path : changed) who.Add(path);
  Checkpoint at_last;
  at_last.by = who.Take();
  for (const std::string& path : changed) out.AddLast(path, AuthorsOf(at_last, path));
  return out.Take();
}

Result<OthersMoves> GitMovesOfOthers(Store& store, const RootId& root,
                                     const Checkpoint& target,
                                     const std::vector<std::string>& asking,
                                     const GitRepoRecord& is, const GitRefs& refs) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  const std::string& session = *target.session;
  BELAY_TRY(const Owners owners, Owners::Of(*catalog, target, asking));
  const Live live = AtWorkNow(store, root);
  BELAY_TRY(const Recorded since, RecordedSince(*catalog, root, target, live));
  const bool told = owners.told() && !BELAY_MUTANT("neighbours-commit");
  MovesOfOthers moves(store);
  const std::string name = GitName(is.path);
  auto add = [&](const RepoMove& move) -> Status {
    if (move.name != name) return Ok();
    const uint64_t seq = since.checkpoints[move.found].checkpoint.seq;
    const MovedBy by = told ? ByAuthors(owners, move.authors, seq)
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
        told ? ByAuthors(owners, WhoWrote(live).rest(), UINT64_MAX) : MovedBy::kOthers;
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
