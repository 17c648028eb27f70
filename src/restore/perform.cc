#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "restore/displaced.h"
#include "restore/external.h"
#include "restore/overlay.h"
#include "restore/perform_internal.h"
#include "restore/root_dir_internal.h"
#include "restore/runner_internal.h"

namespace belay {

namespace {

// What a draft of a safety checkpoint needs so that it holds all that will be touched.
Status CompleteSafety(Store& store, const Fd& root, const Plan& plan, Draft& draft) {
  BELAY_TRY(ObjectId changes,
            draft.writer.PutObject(ObjectType::kNode,
                                   EncodeNode(EncodeChanges(plan.changes))));
  draft.more_refs.push_back({ObjectType::kNode, changes});
  // What git's files are moved by stays in the store, too, while the checkpoint does.
  for (const GitPlan& git : plan.git) {
    if (git.move.changes.empty()) continue;
    BELAY_TRY(ObjectId of_git,
              draft.writer.PutObject(ObjectType::kNode,
                                     EncodeNode(EncodeChanges(git.move.changes))));
    draft.more_refs.push_back({ObjectType::kNode, of_git});
  }
  const std::vector<PathChange> external = ChangesIn(plan.external);
  if (!external.empty()) {
    BELAY_TRY(
        ObjectId of_external,
        draft.writer.PutObject(ObjectType::kNode, EncodeNode(EncodeChanges(external))));
    draft.more_refs.push_back({ObjectType::kNode, of_external});
  }
  for (const PathChange& change : external)
    if (!BELAY_MUTANT("safety-without-external"))
      draft.external.push_back({.path = change.path, .state = change.before});
  std::vector<Overlaid> paths;
  for (const PathChange& change : plan.uncovered)
    if (change.before) paths.push_back({change.path, *change.before});
  if (BELAY_MUTANT("safety-without-ignored")) paths.clear();
  Looker looker(store.fs(), root);
  auto dir = [&](const std::string& path) -> Result<PathState> {
    BELAY_TRY(auto looked, looker.Look(path, draft.sink));
    if (!looked || looked->special)
      return Error(Errc::kConflict, path + " changes meanwhile");
    return StateOf(looked->state);
  };
  BELAY_TRY(draft.tree, OverlayTree(draft.tree, paths, draft.trees, dir, draft.sink));
  return Ok();
}

// The journal, and what follows from it.
Result<Outcome> Run(Store& store, const RollbackRequest& request, const Fd& root,
                    Journal journal, Outcome out) {
  if (request.chat != nullptr && !request.chat->files.empty() &&
      journal.operation.chat) {
    BELAY_TRY(const AbsPath path, AbsPath::Parse(request.root.path));
    BELAY_TRY(journal.publication, PlaceOf(store.fs(), path, *request.chat));
  }
  if (request.stop && request.stop())
    return Error(Errc::kRefused, "stopped")
        .WithHint(NothingChanged(journal.operation.safety));
  // 1. The journal is durable before the first byte of the tree moves.
  if (Status written = JournalFile::Write(store, journal); !written.ok()) {
    // It may be there all the same, and would be obeyed.
    Status gone = JournalFile::Remove(store, request.root.id);
    if (!gone.ok()) return Interrupted(written.error(), gone.error());
    Error error = std::move(written).error();
    if (error.hint.empty()) error.hint = NothingChanged(journal.operation.safety);
    return error;
  }
  // 2. From here on a crash is finished or taken back by Recover().
  Runner runner(store, root, request.root.path, std::move(journal),
                std::move(out.plan.contents));
  runner.Bring(request.chat, request.plan.uid);
  BELAY_OK(runner.Forward(request.stop, out));
  return out;
}

}  // namespace

std::vector<std::string> StepsBeyond(const Plan& shown, const Plan& plan) {
  auto text = [](const Step& step) {
    return std::string(step.op) + " " + ShownPath(step.change->path);
  };
  std::unordered_set<std::string> known;
  const auto shown_outside = ChangesIn(shown.external),
             outside = ChangesIn(plan.external);
  for (const auto* changes : {&shown.changes, &shown_outside})
    for (const Step& step : StepsOf(*changes)) known.insert(text(step));
  std::vector<std::string> out;
  for (const auto* changes : {&plan.changes, &outside})
    for (const Step& step : StepsOf(*changes))
      if (!known.contains(text(step))) out.push_back(text(step));
  const std::vector<std::string> git_shown = GitPlanText(shown.git);
  for (const std::string& line : GitPlanText(plan.git))
    if (std::ranges::find(git_shown, line) == git_shown.end() &&
        line.find("kept under") == std::string::npos)
      out.push_back(line);
  return out;
}

Result<Outcome> Perform(Store& store, const RollbackRequest& request,
                        Operation operation, const std::string& before_what,
                        std::optional<int64_t> times_ns, const PlanMaker& make,
                        Outcome out) {
  const int64_t began = store.clock().SteadyNanos();
  BELAY_TRY(Fd root, OpenRootDir(store, request.root));
  CaptureRequest capture;
  capture.root = request.root;
  capture.settings = request.settings;
  capture.git = request.git;
  capture.kind = CheckpointKind::kSafety;
  capture.description = before_what;
  capture.holds_root_lock = true;
  capture.progress = request.progress;
  capture.amend = [&](Draft& draft) -> Status {
    BELAY_TRY(out.plan, make(root, draft));
    if (request.shown != nullptr && !BELAY_MUTANT("do-more-than-was-shown"))
      out.unshown = StepsBeyond(*request.shown, out.plan);
    if (out.plan.moves_nothing() || !out.conflicts.empty() || !out.unshown.empty()) {
      draft.publish = false;
      return Ok();
    }
    BELAY_TRY(auto again, SecureDisplaced(store, root, out.plan, draft, request.stop));
    for (const ExternalMove& move : out.plan.external) {
      BELAY_TRY(AbsPath path, AbsPath::Parse(move.dir));
      BELAY_TRY(Fd dir, OpenRealDir(store.fs(), path));
      Plan part;
      part.changes = move.changes;
      BELAY_TRY(auto names, SecureDisplaced(store, dir, part, draft, request.stop));
      for (const std::string& name : names) again.push_back(move.dir + "/" + name);
    }
    if (!again.empty())
      out.warnings.push_back(
          "the store could not give back " + EscapeForDisplay(again[0]) +
          (again.size() > 1 ? " and " + std::to_string(again.size() - 1) + " more"
                            : "") +
          " as it is now; it was stored again; run: belay verify --read-data");
    return CompleteSafety(store, root, out.plan, draft);
  };
  if (!BELAY_MUTANT("no-safety-checkpoint")) {
    auto captured = CaptureCheckpoint(store, capture);
    if (!captured.ok()) {
      Error error = std::move(captured).error();
      if (error.hint.empty()) error.hint = "nothing was changed";
      return error;
    }
    for (std::string& warning : captured->warnings)
      out.warnings.push_back(std::move(warning));
    if (!captured->published) return out;
    out.safety = captured->checkpoint;
  } else {
    capture.amend = [&](Draft& draft) -> Status {
      BELAY_TRY(out.plan, make(root, draft));
      draft.publish = false;
      return Ok();
    };
    BELAY_TRY(auto ignored, CaptureCheckpoint(store, capture));
    if (out.plan.moves_nothing()) return out;
  }

  Journal journal;
  journal.operation = std::move(operation);
  if (journal.operation.id.is_zero())
    journal.operation.id = RecordId(store.random().NewId());
  journal.operation.git_before = out.plan.git_before;
  journal.operation.git_after = out.plan.git_after;
  journal.operation.root = request.root.id;
  journal.operation.made_ms = store.clock().WallMillis();
  if (out.safety) journal.operation.safety = out.safety->id;
  journal.operation.paths =
      out.plan.changes.size() + ChangesIn(out.plan.external).size();
  journal.operation.took_us =
      static_cast<uint64_t>(store.clock().SteadyNanos() - began) / 1000;
  journal.stage = StageName(journal.operation.id);
  journal.changes = out.plan.changes;
  for (const GitPlan& plan : out.plan.git)
    if (!plan.move.changes.empty()) journal.git.push_back(plan.move);
  journal.external = out.plan.external;
  journal.locked = out.plan.locked;
  journal.times_ns = times_ns;
  BELAY_TRY(FileStat root_stat, store.fs().Stat(root));
  journal.root_ino = root_stat.ino;
  return Run(store, request, root, std::move(journal), std::move(out));
}

// The files are so already, and the step counts all the same: or it would be in the way
// of all that came before it, for ever.
Status RecordAlone(Store& store, const RollbackRequest& request, Operation operation,
                   Outcome& out) {
  BELAY_TRY(auto writer, store.Begin());
  if (operation.id.is_zero()) operation.id = RecordId(store.random().NewId());
  operation.root = request.root.id;
  operation.made_ms = store.clock().WallMillis();
  BELAY_TRY(operation.changes,
            writer->PutObject(ObjectType::kNode, EncodeNode(EncodeChanges({}))));
  writer->Add(ToRecord(operation));
  BELAY_TRY(auto beside, RecordsBeside(store, operation));
  for (LogRecord& record : beside) writer->Add(std::move(record));
  BELAY_TRY(auto published, writer->Commit());
  operation.seq = published.first_seq;
  out.operation = std::move(operation);
  out.verified = true;
  return Ok();
}

Status PerformAlone(Store& store, const RollbackRequest& request, Operation operation,
                    Outcome& out) {
  if (request.chat == nullptr || request.chat->files.empty())
    return RecordAlone(store, request, std::move(operation), out);
  // The journal is about a directory that is there.
  auto there = OpenRootDir(store, request.root);
  if (!there.ok() && there.error().code == Errc::kNotFound)
    return Error(Errc::kRefused, EscapeForDisplay(request.root.path) +
                                     " is gone: what was said there can be taken back "
                                     "when it is there again")
        .WithHint("bring it back first: belay rollback latest --root " +
                  ShellWord(request.root.path));
  if (!there.ok()) return std::move(there).error();
  const Fd root = std::move(*there);
  Journal journal;
  journal.operation = std::move(operation);
  if (journal.operation.id.is_zero())
    journal.operation.id = RecordId(store.random().NewId());
  journal.operation.root = request.root.id;
  journal.operation.made_ms = store.clock().WallMillis();
  journal.stage = StageName(journal.operation.id);
  BELAY_TRY(FileStat stat, store.fs().Stat(root));
  journal.root_ino = stat.ino;
  BELAY_TRY(out, Run(store, request, root, std::move(journal), std::move(out)));
  return Ok();
}

}  // namespace belay
