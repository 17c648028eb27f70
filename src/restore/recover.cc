#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/last_failure.h"
#include "restore/naming_internal.h"
#include "restore/recover_internal.h"
#include "restore/root_dir_internal.h"
#include "restore/runner_internal.h"

namespace belay {

namespace {

// This operation as the log has it: then it was finished.
Result<std::optional<Operation>> FindRecorded(Store& store,
                                              const Operation& operation) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto operations, ListOperations(*catalog, operation.root));
  auto found = std::ranges::find(operations, operation.id, &Operation::id);
  if (found == operations.end()) return std::optional<Operation>();
  return std::optional(std::move(*found));
}

std::string FirstOf(const std::vector<std::string>& paths) {
  return EscapeForDisplay(paths[0]) +
         (paths.size() > 1 ? " and " + std::to_string(paths.size() - 1) + " more" : "");
}

std::string StoredAgain(const std::vector<std::string>& paths) {
  return "the store could not give back " + FirstOf(paths) +
         " as before; it was stored again; run: belay verify --read-data";
}

// `status` says so until somebody has gone on from here.
void RememberRollback(Store& store, const RootId& root, const std::string& what) {
  auto catalog = Catalog::Open(store);
  if (!catalog.ok()) return;
  auto last = (*catalog)->LastCheckpoint(root);
  RememberFailure(store, root,
                  {.of = FailureOf::kRollback,
                   .at_ms = store.clock().WallMillis(),
                   .after = last.ok() && *last ? (*last)->checkpoint.id : RecordId(),
                   .what = what});
}

// `around_mounts`: what is beneath something that was mounted since stays as it is,
// instead of being waited for.
Result<std::optional<Recovered>> RecoverLocked(Store& store,
                                               const RollbackRequest& request,
                                               bool around_mounts = false) {
  const Root& root = request.root;
  auto loaded = JournalFile::Load(store, root.id);
  if (!loaded.ok()) {
    if (loaded.error().code != Errc::kCorrupt) return std::move(loaded).error();
    // The safety checkpoint was acknowledged before the journal was written.
    BELAY_TRY(auto catalog, Catalog::Open(store));
    BELAY_TRY(auto safety,
              catalog->ListCheckpoints(
                  {.root = root.id, .kind = CheckpointKind::kSafety, .limit = 1}));
    BELAY_TRY(auto last, catalog->LastCheckpoint(root.id));
    BELAY_TRY(std::string aside, JournalFile::PutAside(store, root.id));
    std::string text(kJournalLost);
    text += ", which was put aside as " + aside +
            "; the directory may be a mix of before and after";
    if (!safety.empty())
      text += "; to go back to before it: belay rollback " +
              safety[0].checkpoint.id.text().substr(0, 7);
    // `belay status` says so until a person has gone on.
    RememberFailure(store, root.id,
                    {.of = FailureOf::kRollback,
                     .at_ms = store.clock().WallMillis(),
                     .after = last ? last->checkpoint.id : RecordId(),
                     .what = text});
    return std::optional(
        Recovered{.how = Recovered::How::kDropped, .text = std::move(text)});
  }
  if (!*loaded) return std::optional<Recovered>();
  Journal& journal = **loaded;
  Recovered out;
  out.operation = journal.operation;
  const std::string name = Naming(journal.operation);
  auto dir = OpenRootDir(store, root);
  if (!dir.ok()) {
    if (dir.error().code != Errc::kNotFound) return std::move(dir).error();
    out.how = Recovered::How::kWaiting;
    out.text = name +
               " was interrupted, and the directory is gone; it is finished when "
               "the directory is back";
    return std::optional(std::move(out));
  }
  BELAY_TRY(FileStat stat, store.fs().Stat(*dir));
  if (journal.root_ino != 0 && stat.ino != journal.root_ino &&
      !store.fs().StatAt(*dir, Name::Literal(journal.stage)).ok() &&
      !BELAY_MUTANT("recover-in-any-directory")) {
    out.how = Recovered::How::kWaiting;
    out.text = name +
               " was interrupted, and another directory stands here now (is a "
               "disk not mounted?); it is finished when the old one is back";
    return std::optional(std::move(out));
  }
  BELAY_TRY(const auto recorded, FindRecorded(store, journal.operation));
  BELAY_TRY(HeldLock hold, store.HoldForReading());
  journal.operation.recovered = true;
  Runner runner(store, *dir, root.path, std::move(journal));
  if (recorded) {
    hold.Release();
    // What was displaced goes for good now.
    if (Status secured = runner.Secure(&*recorded); !secured.ok())
      return InUsersWords(std::move(secured).error(), runner.journal());
    if (Status tidied = runner.Tidy(); !tidied.ok())
      return InUsersWords(std::move(tidied).error(), runner.journal());
    if (TakesRootAway(runner.journal().changes)) TakeRootAway(store, root);
    out.how = Recovered::How::kTidied;
    out.text = name + " was complete; its traces were removed";
    if (!runner.secured().again.empty())
      out.text += "; " + StoredAgain(runner.secured().again);
    return std::optional(std::move(out));
  }
  if (!around_mounts && !BELAY_MUTANT("recover-around-mounts")) {
    out.mounted = MountedOver(store.fs(), *dir, runner.journal());
    if (out.mounted) {
      out.how = Recovered::How::kWaiting;
      out.text = name + " was interrupted, and something is mounted over " +
                 EscapeForDisplay(*out.mounted) +
                 " now; it is finished when that is unmounted";
      return std::optional(std::move(out));
    }
  }
  if (around_mounts || BELAY_MUTANT("recover-around-mounts")) runner.GoAroundMounts();
  runner.WaitAtMost(request.lock_wait_ms);
  Outcome outcome;
  hold.Release();
  Status forward = runner.Forward({}, outcome);
  if (outcome.raced) out.raced = outcome.raced;
  if (forward.ok()) {
    if (TakesRootAway(runner.journal().changes)) TakeRootAway(store, root);
    out.operation = *outcome.operation;
    out.how = Recovered::How::kFinished;
    // An undo is taken back by a redo, unless it was one out of order.
    const bool redo =
        out.operation.kind == OperationKind::kUndo && !out.operation.out_of_order;
    out.text = "finished " + name + " that was interrupted; ";
    if (runner.secured().lost.empty() || BELAY_MUTANT("promise-what-is-lost"))
      out.text += std::string("take it back with: belay ") + (redo ? "redo" : "undo");
    else
      out.text += "the store is damaged and cannot give back " +
                  FirstOf(runner.secured().lost) +
                  " as it was before; take the rest back with: belay " +
                  (redo ? "redo" : "undo") + " --skip-damaged";
    if (!runner.secured().again.empty())
      out.text += "; " + StoredAgain(runner.secured().again);
    if (out.raced && out.raced->description.starts_with("edited"))
      out.text += "; what was edited since the interruption is kept in " +
                  out.raced->id.text().substr(0, 7);
    else if (out.raced && !runner.secured().lost.empty())
      out.text += "; what was half written then is kept in " +
                  out.raced->id.text().substr(0, 7);
    if (!runner.secured().lost.empty()) RememberRollback(store, root.id, out.text);
    return std::optional(std::move(out));
  }
  // Taken back, unless the journal is still there.
  BELAY_TRY(bool pending, JournalFile::Exists(store, root.id));
  if (pending && forward.error().code == Errc::kBusy) {
    // Another program holds a lock of git's: what it does must be over first.
    out.how = Recovered::How::kWaiting;
    out.text = name + " was interrupted and waits: " + forward.error().what;
    out.busy = Error(Errc::kBusy, out.text).WithHint(forward.error().hint);
    out.text +=
        "; the next belay command finishes it when git is done (if no git is "
        "running, remove that file)";
    return std::optional(std::move(out));
  }
  if (pending) return std::move(forward).error();
  if (MakesRoot(runner.journal().changes)) TakeRootAway(store, root);
  out.how = Recovered::How::kTakenBack;
  out.text =
      "took back " + name + " that was interrupted (" + forward.error().what + ")";
  if (!runner.secured().again.empty())
    out.text += "; " + StoredAgain(runner.secured().again);
  if (forward.error().hint.starts_with(kOthersChanged)) {
    // Not all of it could be taken back: said until somebody has gone on from here.
    out.text += "; " + forward.error().hint;
    if (out.operation.safety)
      out.text += ": belay rollback " + out.operation.safety->text().substr(0, 7);
    RememberRollback(store, root.id, out.text);
  }
  return std::optional(std::move(out));
}

}  // namespace

Result<std::optional<Recovered>> RecoverOrRefuse(Store& store,
                                                 const RollbackRequest& request) {
  BELAY_TRY(auto recovered, RecoverLocked(store, request));
  if (!recovered || recovered->how != Recovered::How::kWaiting) return recovered;
  if (recovered->busy) return std::move(*recovered->busy);
  if (!request.force)
    return Error(Errc::kRefused, recovered->text)
        .WithHint(
            (recovered->mounted ? "to end it without what is beneath: "
                                : "to give it up and roll back here: ") +
            ("belay rollback latest --force --root " + ShellWord(request.root.path)));
  if (recovered->mounted) return RecoverLocked(store, request, /*around_mounts=*/true);
  BELAY_TRY(std::string aside, JournalFile::PutAside(store, request.root.id));
  recovered->how = Recovered::How::kDropped;
  recovered->text = Naming(recovered->operation) +
                    ", interrupted in a directory that is gone, was given up (" +
                    aside + ")";
  return recovered;
}

Result<std::optional<Recovered>> Recover(Store& store, const RollbackRequest& request) {
  BELAY_TRY(bool pending, JournalFile::Exists(store, request.root.id));
  if (!pending) return std::optional<Recovered>();
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "recovery"));
  return RecoverLocked(store, request);
}

}  // namespace belay
