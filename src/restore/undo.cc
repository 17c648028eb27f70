// Undo and redo: what an operation did, the other way or again.

#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "core/transcripts.h"
#include "restore/external.h"
#include "restore/naming_internal.h"
#include "restore/perform_internal.h"
#include "restore/recover_internal.h"
#include "restore/root_dir_internal.h"
#include "store/heads.h"

namespace belay {

namespace {

Result<std::vector<PathChange>> ChangesOf(Store& store, const Operation& operation) {
  auto read = store.Get({ObjectType::kNode, operation.changes});
  if (!read.ok()) {
    Error error = AsDamage(std::move(read).error());
    if (error.code == Errc::kCorrupt && operation.safety)
      error.hint = "nothing was changed; to go back to before it: belay rollback " +
                   operation.safety->text().substr(0, 7);
    return error;
  }
  const Bytes bytes = std::move(*read);
  BELAY_TRY(Node node, DecodeNode(bytes));
  return DecodeChanges(node);
}

// Of files outside of the root.
Result<std::vector<PathChange>> ExternalOf(Store& store, const Operation& operation) {
  if (operation.external.is_zero()) return std::vector<PathChange>();
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, operation.external}));
  BELAY_TRY(Node node, DecodeNode(bytes));
  return DecodeExternalChanges(node);
}

// The repositories that an operation moved, on their way: from what is expected to what
// is wanted. Zero: none.
struct GitWay {
  ObjectId expected, wanted;
};

Result<Outcome> PerformChanges(Store& store, const RollbackRequest& request,
                               Operation operation, std::vector<PathChange> changes,
                               std::vector<PathChange> external, bool exact,
                               uint64_t seq, const GitWay& git,
                               std::optional<int64_t> times) {
  Outcome out;
  BELAY_TRY(Heads heads, Heads::Read(store));
  BELAY_TRY(const Purged purged, PurgedSince(store, heads, request.root, seq));
  std::vector<KeptPath> kept;
  std::erase_if(changes, [&](const PathChange& change) {
    const std::optional<PathState>& after = change.after;
    if (!purged.LeavesAlone(change.path) &&
        !(after && after->kind == EntryKind::kFile && purged.Lacks(after->id)) &&
        !(after && purged.Lacks(after->xattrs)))
      return false;
    kept.push_back({change.path, "purged"});
    return true;
  });
  BELAY_TRY(const AbsPath root_path, AbsPath::Parse(request.root.path));
  const std::string what = "before " + InADescription(operation);
  std::vector<Conflict> conflicts;
  operation.id = RecordId(store.random().NewId());
  BELAY_TRY(const GitRecord wanted, LoadGitRecord(store, git.wanted));
  BELAY_TRY(const GitRecord expected, LoadGitRecord(store, git.expected));
  std::set<std::string> gits;
  for (const GitRepoRecord& repo : wanted.repositories)
    if (repo.absent && repo.whole.empty())
      gits.insert(repo.path.empty() ? ".git" : repo.path + "/.git");
  bool was_gone = false;
  if (MakesRoot(changes)) {
    BELAY_TRY(was_gone, BringRootBack(store, request, *changes.front().after));
  }
  auto make = [&](const Fd& root, Draft& draft) -> Result<Plan> {
    conflicts.clear();
    PlanOptions options = request.plan;
    options.stop = request.stop;
    BELAY_TRY(Plan plan,
              PlanReplay(store, root, draft, changes, options, exact, gits, conflicts));
    Looker looker(store.fs(), root);
    for (KeptPath& one : kept) {
      auto there = looker.Stat(one.path);
      one.missing = there.ok() && !*there;
    }
    plan.kept.insert(plan.kept.end(), kept.begin(), kept.end());
    if (!git.wanted.is_zero()) {
      const GitPlanInput input{
          .store = store,
          .root = root_path,
          .now = draft.scan,
          .is = draft.git,
          .target = wanted,
          .expected = &expected,
          .exact = exact,
          .sink = draft.sink,
          .places = request.git,
          .operation = operation.id,
          .takes_back = operation.kind == OperationKind::kUndo
                            ? operation.of.value_or(RecordId())
                            : RecordId(),
          .what = std::string(OperationName(operation.kind)) + " of the rollback to " +
                  Quoted(operation.label),
          .lacks = [&](const ObjectId& content) { return purged.Lacks(content); }};
      BELAY_OK(AddGit(store, request, input,
                      {.action = GitAction::kReset, .switch_branch = true},
                      &draft.writer, plan, &conflicts));
    }
    if (!BELAY_MUTANT("undo-forgets-external"))
      BELAY_OK(ReplayExternal({.store = store,
                               .request = request,
                               .roots = heads.roots(),
                               .sink = draft.sink,
                               .purged = purged},
                              external, exact, plan, conflicts));
    if (!conflicts.empty()) {
      plan.changes.clear();
      plan.git.clear();
      plan.external.clear();
    }
    if (conflicts.empty() && was_gone) BELAY_OK(AddMadeRoot(store, root, plan));
    return plan;
  };
  auto done = Perform(store, request, operation, what, times, make, std::move(out));
  if (was_gone && (!done.ok() || !done->operation)) TakeRootAway(store, request.root);
  if (!done.ok()) return done;
  done->conflicts = std::move(conflicts);
  if (!done->operation && done->conflicts.empty() &&
      !BELAY_MUTANT("undo-stays-where-nothing-moves"))
    BELAY_OK(RecordAlone(store, request, std::move(operation), *done));
  if (done->operation && TakesRootAway(done->plan.changes)) {
    if (!TakeRootAway(store, request.root))
      done->plan.kept.push_back({".", "not_empty"});
    else if (auto above = EmptyAbove(store, request.root))
      done->warnings.push_back(
          EscapeForDisplay(*above) +
          " is empty now and stays: what is outside of the protected directory is "
          "not removed, whoever made it");
  }
  return done;
}

Error Nothing(const std::string& what) {
  return Error(Errc::kRefused, "there is nothing to " + what)
      .WithHint("see what was done with: belay log");
}

// Which operation it is about, and the one that takes it back or does it again.
struct Turn {
  Operation about, operation;
};

Result<Turn> FindUndo(const std::vector<Operation>& operations,
                      const UndoStacks& stacks, const std::optional<RecordId>& which) {
  if (stacks.undo.empty() && !InEffect(operations).empty())
    return Error(Errc::kRefused, "what is left to undo is too far back")
        .WithHint("what it needs was let go: see retention.undo in belay config");
  if (stacks.undo.empty()) return Nothing("undo");
  size_t at = stacks.undo.size() - 1;
  if (which) {
    while (at < stacks.undo.size() && stacks.undo[at].id != *which) --at;
    if (at >= stacks.undo.size())
      return Error(Errc::kNotFound, "that operation is not there to be undone")
          .WithHint("see what can be with: belay log");
  }
  Turn turn{.about = stacks.undo[at], .operation = {}};
  turn.operation.target = turn.about.safety;
  turn.operation.out_of_order = at + 1 != stacks.undo.size();
  return turn;
}

Result<Turn> FindRedo(const UndoStacks& stacks) {
  if (stacks.redo.empty()) return Nothing("redo");
  Turn turn{.about = stacks.redo.back(), .operation = {}};
  turn.operation.target = turn.about.target;
  return turn;
}

// What files that come back by a redo are stamped with: as by the rollback itself.
std::optional<int64_t> TimesOf(Catalog& catalog, const Operation& about) {
  if (!about.keeps_times || !about.target || BELAY_MUTANT("redo-forgets-times"))
    return std::nullopt;
  auto target = catalog.FindById(about.root, about.target->text());
  if (!target.ok()) return std::nullopt;  // gone since
  return target->checkpoint.made_ms * 1'000'000;
}

// What the conversation would go on with again is still there, where its agent said
// last that it is.
Status CheckFork(Fs& fs, Catalog& catalog, const Operation& about) {
  if (!about.chat || about.chat->path.empty()) return Ok();
  BELAY_TRY(const auto fork, LatestSession(catalog, about.chat->forked));
  BELAY_TRY(const AbsPath path,
            AbsPath::Parse(fork && fork->transcript_path ? *fork->transcript_path
                                                         : about.chat->path));
  if (OpenTranscript(fs, path).ok()) return Ok();
  return Error(Errc::kRefused, "the conversation it went on with is gone: " +
                                   EscapeForDisplay(path.bytes()))
      .WithHint("take the conversation back anew: belay rewind " +
                ShellWord(about.chat->session) + " --to ...");
}

Result<Outcome> Go(Store& store, Catalog& catalog, const RollbackRequest& request,
                   OperationKind kind, const std::optional<RecordId>& which,
                   bool exact) {
  const bool back = kind == OperationKind::kUndo;
  BELAY_TRY(RootLock lock,
            RootLock::Take(store, request, std::string(OperationName(kind))));
  BELAY_TRY(auto recovered, RecoverOrRefuse(store, request));
  BELAY_TRY(auto operations, ListOperations(catalog, request.root.id));
  const UndoStacks stacks = StacksOf(operations);
  BELAY_TRY(Turn turn, back ? FindUndo(operations, stacks, which) : FindRedo(stacks));
  if (turn.about.chat) {
    BELAY_TRY(turn.about.chat->cwd, CwdNow(catalog, turn.about));
  }
  turn.operation.kind = kind;
  turn.operation.of = turn.about.id;
  turn.operation.label = turn.about.label;
  turn.operation.session = turn.about.session;
  turn.operation.paths_only = turn.about.paths_only;
  turn.operation.keeps_times = turn.about.keeps_times;
  turn.operation.chat = turn.about.chat;
  turn.operation.root = request.root.id;
  std::optional<ChatRecord> chat = turn.about.chat;
  std::optional<ChatStanding> stands;
  if (chat) {
    BELAY_TRY(const Chats chats, Chats::Read(catalog, &turn.operation));
    stands = chats.After(turn.operation);
    // Who goes on may have been elsewhere since.
    BELAY_TRY(const auto on, LatestSession(catalog, stands->goes_on));
    if (on && !on->cwd.empty()) chat->cwd = on->cwd;
  }
  // A redo of an undo that was not of the newest takes one away.
  if (!back && stands && !stands->undone)
    BELAY_OK(CheckFork(store.fs(), catalog, turn.about));
  if (turn.about.chat && turn.about.chat->alone) {
    Outcome out;
    BELAY_OK(RecordAlone(store, request, std::move(turn.operation), out));
    out.undone = Naming(turn.about);
    out.chat = chat;
    out.stands = stands;
    if (recovered) out.warnings.push_back(recovered->text);
    return out;
  }
  BELAY_TRY(std::vector<PathChange> changes, ChangesOf(store, turn.about));
  BELAY_TRY(std::vector<PathChange> external, ExternalOf(store, turn.about));
  if (back ? !MakesRoot(Reversed(changes)) : !MakesRoot(changes)) {
    auto there = OpenRootDir(store, request.root);
    if (!there.ok() && there.error().code == Errc::kNotFound)
      return Error(Errc::kRefused, EscapeForDisplay(request.root.path) +
                                       " is gone: there is nothing to " +
                                       std::string(OperationName(kind)) + " in")
          .WithHint("bring it back first: belay rollback latest --root " +
                    ShellWord(request.root.path));
  }
  BELAY_TRY(Outcome out,
            PerformChanges(store, request, std::move(turn.operation),
                           back ? Reversed(std::move(changes)) : std::move(changes),
                           back ? Reversed(std::move(external)) : std::move(external),
                           exact, turn.about.seq,
                           back ? GitWay{turn.about.git_after, turn.about.git_before}
                                : GitWay{turn.about.git_before, turn.about.git_after},
                           back ? std::nullopt : TimesOf(catalog, turn.about)));
  out.undone = Naming(turn.about);
  out.about_chat = chat.has_value();
  if (out.operation) {
    out.chat = chat;
    out.stands = stands;
  }
  if (recovered) out.warnings.push_back(recovered->text);
  if (!lock.waited_for().empty())
    out.warnings.push_back(lock.waited_for() +
                           " was at work here; this began when it was done");
  return out;
}

}  // namespace

Result<Outcome> Undo(Store& store, Catalog& catalog, const RollbackRequest& request,
                     const std::optional<RecordId>& which, bool exact) {
  return Go(store, catalog, request, OperationKind::kUndo, which, exact);
}

Result<Outcome> Redo(Store& store, Catalog& catalog, const RollbackRequest& request,
                     bool exact) {
  return Go(store, catalog, request, OperationKind::kRedo, {}, exact);
}

}  // namespace belay
