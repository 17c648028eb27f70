#include "restore/rollback.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/roots.h"
#include "git/index_stat.h"
#include "restore/external.h"
#include "restore/foreign.h"
#include "restore/ground.h"
#include "restore/naming_internal.h"
#include "restore/perform_internal.h"
#include "restore/publication.h"
#include "restore/recover_internal.h"
#include "restore/root_dir_internal.h"
#include "store/batch_writer.h"
#include "store/heads.h"

namespace belay {

namespace {

Result<Plan> PlanFor(const PlanInput& input, const PlanOptions& options) {
  auto plan = MakePlan(input, options);
  if (!plan.ok()) return AsDamage(std::move(plan).error());
  return plan;
}

// Which of the planned paths others changed since. A directory counts where nothing
// below it is in the plan: what is in it counts by itself.
std::vector<std::string> OutsideAmong(const std::vector<PathChange>& changes,
                                      const ForeignChanges& foreign) {
  std::vector<std::string> out;
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string& path = changes[i].path;
    if (path.empty()) {  // the directory itself
      if (foreign.contains(".") && !BELAY_MUTANT("the-root-is-nobodys"))
        out.emplace_back(".");
      continue;
    }
    if (!foreign.contains(path)) continue;
    const auto& [_, before, after] = changes[i];
    const bool dir = (before && before->kind == EntryKind::kDirectory) ||
                     (after && after->kind == EntryKind::kDirectory);
    if (dir) {
      const std::string below = path + "/";
      auto next = std::lower_bound(
          changes.begin(), changes.end(), below,
          [](const PathChange& c, const std::string& p) { return c.path < p; });
      if (next != changes.end() && next->path.starts_with(below)) continue;
    }
    out.push_back(path);
  }
  std::ranges::sort(out);
  return out;
}

// What the user's own command did is nobody else's: it goes from `plan.outside`. Those
// of which a session at work may have done it: nobody can tell, and they are to stay.
std::vector<std::string> TakeOutOfHook(Store& store, const RollbackRequest& request,
                                       Plan& plan) {
  std::vector<std::string> its;
  std::erase_if(plan.outside, [&](const std::string& path) {
    const auto left = request.by_hook.find(path);
    if (left == request.by_hook.end() || BELAY_MUTANT("a-hook-is-somebody-else"))
      return false;
    const auto change =
        std::ranges::lower_bound(plan.changes, path, {}, &PathChange::path);
    if (!BELAY_MUTANT("all-since-a-hook-is-its-doing") &&
        (change == plan.changes.end() || change->path != path ||
         !SameState(change->before, left->second)))
      return false;
    its.push_back(path);
    return true;
  });
  const std::set<std::string> unsure = MaybeOfSessions(store, request.root.id, its);
  return {unsure.begin(), unsure.end()};
}

// The plan, with what others did since taken into account as the request says.
Result<Plan> PlanAround(const RollbackRequest& request, const Checkpoint& target,
                        const PlanInput& input, PlanOptions options, bool dry,
                        bool root_is_gone) {
  BELAY_TRY(Plan plan, PlanFor(input, options));
  if (!target.session || plan.changes.empty()) return plan;
  BELAY_TRY(const ForeignChanges foreign,
            ForeignSince(input.store, request.root.id, target, request.asking,
                         input.now_tree, input.now_trees, input.now, root_is_gone));
  plan.outside = OutsideAmong(plan.changes, foreign);
  if (request.outside != OnOutside::kExact)
    options.keep = TakeOutOfHook(input.store, request, plan);
  const bool keeps = request.outside == OnOutside::kKeep && !plan.outside.empty();
  if (request.outside == OnOutside::kAsk && !dry && !plan.outside.empty())
    return ChangedByOthers(plan.outside);
  if (keeps) {
    std::ranges::move(plan.outside, std::back_inserter(options.keep));
    std::ranges::sort(options.keep);
  }
  if (options.keep.empty()) return plan;
  // Of those that stay nobody is asked; a preview still tells of the others.
  std::vector<std::string> outside;
  if (!keeps && !BELAY_MUTANT("a-preview-forgets-others"))
    outside = std::move(plan.outside);
  BELAY_TRY(plan, PlanFor(input, options));
  plan.outside = std::move(outside);
  return plan;
}

Result<StateView> LoadTarget(Store& store, const Checkpoint& target) {
  auto view = LoadState(store, target.state);
  if (view.ok()) return view;
  Error error = std::move(view).error();
  if (error.code == Errc::kNotFound || error.code == Errc::kCorrupt) {
    error.code = Errc::kCorrupt;
    error.what = "the checkpoint cannot be read: " + error.what;
    error.hint = "see what is damaged with: belay verify --read-data";
  }
  return error;
}

PathState RootOf(const StateView& target) {
  if (!target.rules) return RootState(0755, 0, 0);
  return RootState(target.rules->mode, target.rules->uid, target.rules->gid);
}

Operation RollbackTo(const Checkpoint& target, const RollbackRequest& request) {
  Operation operation;
  operation.kind = OperationKind::kRollback;
  operation.target = target.id;
  operation.label = LabelOf(target);
  operation.session = target.session;
  operation.paths_only = !request.plan.select.empty();
  operation.keeps_times = request.preserve_times;
  if (request.chat != nullptr) operation.chat = request.chat->record;
  return operation;
}

// Changes that neither a commit nor git's index has, among what would be overwritten:
// they are stored like everything else, but who looks for them looks in git.
void WarnOfUncommitted(Fs& fs, const Fd& root, const ScanSummary& now, Outcome& out) {
  if (now.work_trees.empty() || !now.work_trees[0].path.empty()) return;
  const WorkTreeFacts& facts = now.work_trees[0].facts;
  if (!facts.repository || facts.input == nullptr) return;
  const std::string& below = facts.input->root_below_top;
  const std::string prefix = below.empty() ? "" : below + "/";
  std::unordered_set<std::string> wanted;
  for (const PathChange& change : out.plan.changes)
    if (change.before && change.before->kind == EntryKind::kFile &&
        (!change.after || !SameContent(*change.before, *change.after)))
      wanted.insert(prefix + change.path);
  if (wanted.empty()) return;
  auto stats =
      ReadIndexStats(fs, facts.repository->index(), facts.repository->hash, wanted);
  if (!stats.ok()) return;
  Looker looker(fs, root);
  size_t count = 0;
  std::string first;
  for (const IndexStat& remembered : *stats) {
    const std::string path = remembered.path.substr(prefix.size());
    auto stat = looker.Stat(path);
    if (!stat.ok() || !*stat || IsAsAdded(remembered, **stat)) continue;
    if (++count == 1) first = path;
  }
  if (count == 0) return;
  out.warnings.push_back(
      count == 1
          ? EscapeForDisplay(first) +
                " has changes that were not committed or staged in git"
          : std::to_string(count) +
                " files have changes that were not committed or staged in git (" +
                EscapeForDisplay(first) + ", ...)");
}

void WarnOfRunning(Store& store, const RollbackRequest& request, Outcome& out) {
  if (out.plan.moves_nothing()) return;
  for (std::string& turn : RunningTurns(store, request.root.id, request.asked_by))
    out.warnings.push_back(std::move(turn));
}

// Refs that hold what an operation took back stay while it can be undone, and those of
// the newest twenty.
Result<std::function<bool(std::string_view)>> KeepsSafety(Store& store,
                                                          const RootId& root) {
  constexpr size_t kKept = 20;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto operations, ListOperations(*catalog, root));
  std::unordered_set<std::string> known, stay;
  for (const Operation& operation : operations) known.insert(operation.id.text());
  const UndoStacks stacks = StacksOf(operations);
  for (const auto* stack : {&stacks.undo, &stacks.redo})
    for (const Operation& operation : *stack) stay.insert(operation.id.text());
  for (size_t i = operations.size(); i-- > 0 && operations.size() - i <= kKept;)
    stay.insert(operations[i].id.text());
  return std::function<bool(std::string_view)>(
      [known = std::move(known), stay = std::move(stay)](std::string_view operation) {
        // Of another root, or another store: not ours to take away.
        const std::string id(operation);
        return !known.contains(id) || stay.contains(id);
      });
}

}  // namespace

namespace {

// Git's files need room, too: beside those of the root, or where the repository is.
Status CheckRoomForGit(Store& store, const AbsPath& root, Plan& plan) {
  constexpr uint64_t kGitBlock = 4096;
  if (BELAY_MUTANT("git-needs-no-room")) return Ok();
  bool within = false;
  for (const GitPlan& git : plan.git) {
    if (git.move.changes.empty()) continue;
    BELAY_TRY(AbsPath at, AbsPath::Parse(git.move.dir));
    Plan elsewhere;
    Plan& needs = at.IsWithin(root) ? plan : elsewhere;
    AddNeeds(git.move.changes, needs);
    for (const GitMove::Object& object : git.move.objects) {
      ++needs.inodes_needed;
      needs.bytes_needed += 2 * kGitBlock + object.size;
    }
    within = within || &needs == &plan;
    if (&needs == &plan) continue;
    BELAY_TRY(Fd dir, store.fs().OpenDir(at));
    BELAY_OK(CheckRoom(store.fs(), dir, elsewhere));
  }
  if (!within) return Ok();
  auto dir = store.fs().OpenDir(root);
  // In a preview the root may be gone.
  if (!dir.ok() && dir.error().code == Errc::kNotFound) return Ok();
  if (!dir.ok()) return std::move(dir).error();
  return CheckRoom(store.fs(), *dir, plan);
}

}  // namespace

Status AddGit(Store& store, const RollbackRequest& request, const GitPlanInput& input,
              const GitChoice& choice, BatchWriter* writer, Plan& plan,
              std::vector<Conflict>* conflicts) {
  GitPlanInput mine = input;
  mine.files = &plan.changes;
  BELAY_TRY(mine.keeps_safety, KeepsSafety(store, request.root.id));
  BELAY_TRY(GitPlans git, PlanGit(mine, choice));
  plan.git = std::move(git.plans);
  plan.git_stays = !git.warnings.empty();
  plan.warnings.insert(plan.warnings.end(), git.warnings.begin(), git.warnings.end());
  if (conflicts != nullptr)
    conflicts->insert(conflicts->end(), git.conflicts.begin(), git.conflicts.end());
  bool foreign_owner = false;
  for (GitPlan& one : plan.git) {
    if (BELAY_MUTANT("git-gives-files-away")) break;
    for (PathChange& change : one.move.changes)
      foreign_owner = MakeOurs(request.plan, change) || foreign_owner;
    std::erase_if(one.move.changes, [](const PathChange& change) {
      return SameState(change.before, change.after);
    });
  }
  if (foreign_owner)
    plan.warnings.push_back(
        "some of git's files belonged to another user or group; they will belong to "
        "you");
  PlanOptions how = request.plan;
  how.dry = input.dry;
  BELAY_OK(RefuseOrShow(how, CheckRoomForGit(store, input.root, plan), plan));
  if (writer == nullptr || git.after.repositories.empty()) return Ok();
  BELAY_TRY(
      plan.git_before,
      writer->PutObject(ObjectType::kNode, EncodeNode(EncodeGitRecord(git.before))));
  BELAY_TRY(plan.git_after, writer->PutObject(ObjectType::kNode,
                                              EncodeNode(EncodeGitRecord(git.after))));
  return Ok();
}

namespace {

// Git comes back with the whole tree; a rollback of paths, and one to a part of a
// state, leaves it alone.
bool GitGoesAlong(const RollbackRequest& request, const Checkpoint& target) {
  return request.plan.select.empty() && !target.partial;
}

// Who has no session has nobody outside of it.
std::function<Result<OthersMoves>(const GitRepoRecord&, const GitRefs&)> OthersOf(
    Store& store, const RollbackRequest& request, const Checkpoint& target) {
  if (!target.session) return {};
  return [&store, &request, &target](const GitRepoRecord& is, const GitRefs& refs) {
    return GitMovesOfOthers(store, request.root.id, target, request.asking, is, refs);
  };
}

// `purged` must outlive it.
std::function<bool(const ObjectId&)> LackedBy(const Purged& purged) {
  return [&purged](const ObjectId& content) { return purged.Lacks(content); };
}

std::string ReflogText(const Checkpoint& target) {
  return "rollback to " + Quoted(LabelOf(target));
}

// The repositories of that time. Nothing when they cannot be read and git is to stay as
// it is all the same.
Result<std::optional<GitRecord>> WantedGit(Store& store, const RollbackRequest& request,
                                           const StateView& view,
                                           std::vector<std::string>& warnings) {
  auto record = LoadGitRecord(store, view.state.git);
  if (record.ok()) return std::optional(std::move(*record));
  const Error& error = record.error();
  if (error.code != Errc::kCorrupt && error.code != Errc::kNotFound) return error;
  if (!request.plan.skip_damaged && request.git_choice.action != GitAction::kKeep)
    return Error(Errc::kCorrupt,
                 "the state of git at that time cannot be read: " + error.what)
        .WithHint("nothing was changed; the files come back with --git keep");
  warnings.push_back("the state of git at that time cannot be read (" + error.what +
                     "); git stays as it is");
  return std::optional<GitRecord>();
}

}  // namespace

Result<Outcome> PreviewRollback(Store& store, const RollbackRequest& request,
                                const Checkpoint& target) {
  Outcome out;
  out.dry_run = true;
  BELAY_TRY(StateView view, LoadTarget(store, target));
  BELAY_TRY(Heads heads, Heads::Read(store));
  BELAY_TRY(ScanRequest scan, ScanRequestFor(store, heads.roots(), request.root,
                                             *request.settings, request.git));
  scan.progress = request.progress;
  PlanOptions options = request.plan;
  options.partial = target.partial;
  options.dry = true;
  HashSink sink;
  auto dir = OpenRootDir(store, request.root);
  if (!dir.ok() && dir.error().code != Errc::kNotFound) return std::move(dir).error();
  Fd root;
  TreeNow now;
  if (dir.ok()) {
    root = std::move(*dir);
    BELAY_TRY(now, LookAtNow(store, scan));
  } else {
    out.warnings.push_back("the directory is gone; it would be made again");
    BELAY_TRY(now.hold, store.HoldForReading());
    BELAY_TRY(now.summary.tree, sink.PutTree(Tree()));
    now.read = [&](const ObjectId& id) -> Result<Tree> {
      if (id == now.summary.tree) return Tree();
      return store.GetTree(id);
    };
  }
  const RuleLists& lists = scan.rules->lists();
  BELAY_TRY(Purged purged, PurgedSince(store, heads, request.root, target.seq));
  const PlanInput input{.store = store,
                        .root = root,
                        .now_tree = now.summary.tree,
                        .now_trees = now.read,
                        .now = now.summary,
                        .now_rules = lists,
                        .target = view,
                        .sink = sink,
                        .root_path = scan.root,
                        .other_roots = scan.other_roots,
                        .purged = std::move(purged)};
  BELAY_TRY(out.plan, PlanAround(request, target, input, options, /*dry=*/true,
                                 /*root_is_gone=*/!root.is_open()));
  if (!root.is_open())
    out.plan.changes.insert(out.plan.changes.begin(), {"", std::nullopt, RootOf(view)});
  if (root.is_open()) WarnOfUncommitted(store.fs(), root, now.summary, out);
  BELAY_TRY(const std::optional<GitRecord> wanted,
            WantedGit(store, request, view, out.warnings));
  if (wanted && GitGoesAlong(request, target)) {
    GitCapture git(store, scan);
    auto looked = git.Run(now.summary, nullptr, sink, heads.LastOf(request.root.id), 0);
    if (!looked.ok()) return std::move(looked).error();
    const GitPlanInput of_git{.store = store,
                              .root = scan.root,
                              .now = now.summary,
                              .is = git.record(),
                              .target = *wanted,
                              .sink = sink,
                              .places = request.git,
                              .operation = request.operation,
                              .what = ReflogText(target),
                              .dry = true,
                              .made_ms = target.made_ms,
                              .lacks = LackedBy(input.purged),
                              .others = OthersOf(store, request, target)};
    BELAY_OK(
        AddGit(store, request, of_git, request.git_choice, nullptr, out.plan, nullptr));
  }
  BELAY_OK(PlanExternal({.store = store,
                         .request = request,
                         .roots = heads.roots(),
                         .sink = sink,
                         .purged = input.purged,
                         .dry = true},
                        target, out.plan));
  out.plan.contents.reset();  // a person may take long to decide
  WarnOfRunning(store, request, out);
  if (!view.trouble.empty())
    out.warnings.push_back("the rules of that time cannot be read (" + view.trouble +
                           "); nothing is deleted");
  return out;
}

namespace {

// Where the conversation cannot go on, nothing is done.
Status CheckPlace(Fs& fs, const RollbackRequest& request) {
  if (request.chat == nullptr || request.chat->files.empty()) return Ok();
  BELAY_TRY(const AbsPath root, AbsPath::Parse(request.root.path));
  BELAY_TRY([[maybe_unused]] auto place, PlaceOf(fs, root, *request.chat));
  return Ok();
}

}  // namespace

Result<Outcome> Rewind(Store& store, const RollbackRequest& request,
                       const std::optional<Checkpoint>& target) {
  BELAY_OK(CheckPlace(store.fs(), request));
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "rewind"));
  BELAY_TRY(auto recovered, RecoverOrRefuse(store, request));
  Outcome out;
  if (recovered) out.warnings.push_back(recovered->text);
  Operation operation;
  operation.kind = OperationKind::kRollback;
  operation.id = request.operation;
  if (target) {
    operation.target = target->id;
    operation.label = LabelOf(*target);
    operation.session = target->session;
  }
  operation.paths_only = true;
  operation.chat = request.chat->record;
  operation.chat->alone = true;
  BELAY_OK(PerformAlone(store, request, std::move(operation), out));
  if (out.operation) out.chat = out.operation->chat;
  return out;
}

LeftByHook ChangedBetween(const Plan& before, const Plan& after) {
  LeftByHook out;
  const std::set<std::string_view> outside(before.outside.begin(),
                                           before.outside.end());
  for (const PathChange& change : after.changes) {
    const auto was =
        std::ranges::lower_bound(before.changes, change.path, {}, &PathChange::path);
    const bool known = was != before.changes.end() && was->path == change.path;
    if (known && SameState(was->before, change.before)) continue;
    if (outside.contains(change.path) && !BELAY_MUTANT("a-hook-hides-what-others-did"))
      continue;
    out[change.path] = change.before;
  }
  return out;
}

Result<Outcome> Rollback(Store& store, const RollbackRequest& request,
                         const Checkpoint& target) {
  BELAY_OK(CheckPlace(store.fs(), request));
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "rollback"));
  BELAY_TRY(auto recovered, RecoverOrRefuse(store, request));
  Outcome out;
  if (!lock.waited_for().empty())
    out.warnings.push_back(lock.waited_for() +
                           " was at work here; this began when it was done");
  if (recovered) out.warnings.push_back(recovered->text);
  BELAY_TRY(StateView view, LoadTarget(store, target));
  BELAY_TRY(const std::optional<GitRecord> wanted,
            WantedGit(store, request, view, out.warnings));
  BELAY_TRY(const bool was_gone, BringRootBack(store, request, RootOf(view)));
  if (!view.trouble.empty())
    out.warnings.push_back("the rules of that time cannot be read (" + view.trouble +
                           "); nothing was deleted");
  PlanOptions options = request.plan;
  options.partial = target.partial;
  options.stop = request.stop;
  const std::shared_ptr<const RuleConfig> rules = RulesFrom(*request.settings);
  BELAY_TRY(AbsPath root_path, AbsPath::Parse(request.root.path));
  BELAY_TRY(Heads heads, Heads::Read(store));
  BELAY_TRY(std::vector<AbsPath> others, RootsInside(heads.roots(), request.root));
  BELAY_TRY(const Purged purged, PurgedSince(store, heads, request.root, target.seq));
  Operation operation = RollbackTo(target, request);
  operation.id = request.operation;
  if (operation.id.is_zero()) operation.id = RecordId(store.random().NewId());
  auto make = [&](const Fd& root, Draft& draft) -> Result<Plan> {
    const PlanInput input{.store = store,
                          .root = root,
                          .now_tree = draft.tree,
                          .now_trees = draft.trees,
                          .now = draft.scan,
                          .now_rules = rules->lists(),
                          .target = view,
                          .sink = draft.sink,
                          .root_path = root_path,
                          .other_roots = others,
                          .purged = purged};
    BELAY_TRY(Plan plan, PlanAround(request, target, input, options, /*dry=*/false,
                                    /*root_is_gone=*/was_gone));
    if (was_gone) BELAY_OK(AddMadeRoot(store, root, plan));
    if (wanted && GitGoesAlong(request, target)) {
      const GitPlanInput of_git{.store = store,
                                .root = root_path,
                                .now = draft.scan,
                                .is = draft.git,
                                .target = *wanted,
                                .sink = draft.sink,
                                .places = request.git,
                                .operation = operation.id,
                                .what = ReflogText(target),
                                .made_ms = target.made_ms,
                                .lacks = LackedBy(purged),
                                .others = OthersOf(store, request, target)};
      BELAY_OK(AddGit(store, request, of_git, request.git_choice, &draft.writer, plan,
                      nullptr));
    }
    BELAY_OK(PlanExternal({.store = store,
                           .request = request,
                           .roots = heads.roots(),
                           .sink = draft.sink,
                           .purged = purged},
                          target, plan));
    return plan;
  };
  std::optional<int64_t> times;
  if (request.preserve_times) times = target.made_ms * 1'000'000;
  auto done = Perform(store, request, operation, "before " + InADescription(operation),
                      times, make, std::move(out));
  // The files are so already; what was said is not.
  if (done.ok() && !done->operation && done->unshown.empty() &&
      request.chat != nullptr) {
    Outcome alone = std::move(*done);
    BELAY_OK(PerformAlone(store, request, operation, alone));
    done = std::move(alone);
  }
  if (done.ok() && done->operation) done->chat = done->operation->chat;
  if (was_gone && (!done.ok() || !done->operation)) TakeRootAway(store, request.root);
  if (done.ok()) WarnOfRunning(store, request, *done);
  return done;
}

}  // namespace belay
