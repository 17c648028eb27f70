#pragma once

// Rollback, undo and redo: taking a root to another state, all or nothing, and back.
//
// Guarantees
//   * What is overwritten or deleted is in a safety checkpoint first, durable and
//     complete; when that cannot be made, nothing is changed.
//   * Interrupted anywhere the root is, after Recover(), as it was or as it was to be.
//   * One at a time per root: kBusy says who is at it.
//   * An error leaves the tree as it was, except kIo with "interrupted": then the
//     journal is there, and Recover() goes on when the disk does.
//
// Order of things: docs/format.md, "journal/"; the walk: ARCHITECTURE.md.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/capture.h"
#include "core/chat.h"
#include "core/operations.h"
#include "restore/chat_plan.h"
#include "restore/plan.h"
#include "restore/replay.h"
#include "restore/running.h"

namespace belay {

// What somebody's own command (hooks.before_rollback) left at the paths that it
// changed.
using LeftByHook = std::map<std::string, std::optional<PathState>>;

struct RollbackRequest {
  Root root;
  const Settings* settings = nullptr;
  GitPlaces git = {};
  PlanOptions plan = {};  // `partial` is set from the target
  // --preserve-times: files that come back get the time of the checkpoint, not now.
  bool preserve_times = false;
  int64_t lock_wait_ms = 10'000;
  int64_t pid = 0;  // ours, for others to be told
  // Give up what was interrupted in a directory that is gone; end without what is
  // beneath a mount.
  bool force = false;
  std::function<void(const ScanProgress&)> progress = {};
  std::function<bool()> stop = {};  // somebody pressed Ctrl-C
  // Somebody else is at work on the root, "belay rollback (process 12)", and is waited
  // for already longer than a moment.
  std::function<void(const std::string&)> waiting = {};
  GitChoice git_choice = {};  // of a rollback
  // Of a rollback: what becomes of changes that others made since a target that belongs
  // to a session. kAsk: kRefused when there are any, with the first of them; a preview
  // names them (Plan::outside).
  OnOutside outside = OnOutside::kExact;
  // Whose doings are no changes of others, where that is not the target's own session:
  // the one in which `turn:3` was looked for. Of two, what both have done.
  std::vector<std::string> asking = {};
  // Of a rollback: files outside of the root that edit tools named come back, too
  // (restore/external.h).
  bool external_files = false;
  // Of a rollback: that are no changes of others while they are as it left them. Where
  // a session at work may have made one, nobody can tell: that path stays as it is.
  LeftByHook by_hook = {};
  AskedBy asked_by = {};
  // Of a rollback: the id that it will have, new, so that its preview can name what
  // goes by it; zero: chosen when it is done.
  RecordId operation = {};
  // Of a rollback: the plan that somebody said yes to. When by now more would be done,
  // nothing is: Outcome::unshown. Must outlive the call.
  const Plan* shown = nullptr;
  // Of a rollback: a conversation that goes back, too. Must outlive the call.
  const ChatPlan* chat = nullptr;
};

struct Outcome {
  Plan plan;
  bool dry_run = false;
  std::optional<Operation> operation = {};  // none: nothing was done
  std::optional<Checkpoint> safety = {};
  // Edits that raced the rollback; `belay undo` brings them back.
  std::optional<Checkpoint> raced = {};
  std::vector<std::string> changed_by_others = {};
  // Not in the plan that was shown, "delete src/new" each: nothing was done.
  std::vector<std::string> unshown = {};
  std::vector<Conflict> conflicts = {};  // of an undo or redo that was refused
  bool about_chat = false;               // that is about a conversation, too
  std::vector<std::string> warnings = {};
  bool verified = false;
  std::string undone = {};  // of an undo or redo: "the rollback to 'x'"
  // The conversation that went back, too, or would; of an undo or redo: that is about.
  std::optional<ChatRecord> chat = {};
  std::optional<ChatStanding> stands = {};  // of an undo or redo: how it stands now
};

// What a rollback to `target` would do now. Writes nothing.
Result<Outcome> PreviewRollback(Store& store, const RollbackRequest& request,
                                const Checkpoint& target);
Result<Outcome> Rollback(Store& store, const RollbackRequest& request,
                         const Checkpoint& target);

// By the previews right before a command was run and right after it (OnOutside::kAsk):
// what it did at paths that the rollback is about. Not where others had changed one
// before it.
LeftByHook ChangedBetween(const Plan& before, const Plan& after);
// Steps of `plan` that `shown` does not have. What is in a file may be another by now:
// that it is overwritten was said.
std::vector<std::string> StepsBeyond(const Plan& shown, const Plan& plan);

// The conversation alone (request.chat); `target`: the checkpoint that was named, if
// any. The tree is not looked at.
Result<Outcome> Rewind(Store& store, const RollbackRequest& request,
                       const std::optional<Checkpoint>& target);

// Takes back `which`, or the newest that was not taken back. What changed since is a
// conflict (restore/replay.h): nothing is done then. With `exact` it is taken back too,
// after it was stored.
Result<Outcome> Undo(Store& store, Catalog& catalog, const RollbackRequest& request,
                     const std::optional<RecordId>& which, bool exact);
Result<Outcome> Redo(Store& store, Catalog& catalog, const RollbackRequest& request,
                     bool exact = false);

// Finishes or takes back what was interrupted. Nothing when there was nothing, which
// costs one call.
struct Recovered {
  // kWaiting: the directory that was being rolled back is not there (its disk is not
  // mounted?), or another one is, or something is mounted over a part of it, or git is
  // at work in it. Nothing was touched; the journal stays.
  enum class How { kFinished, kTakenBack, kTidied, kDropped, kWaiting };
  How how = How::kFinished;
  Operation operation = {};
  std::optional<Checkpoint> raced = {};
  std::optional<std::string> mounted = {};  // of kWaiting: over this path
  // Of kWaiting, when it will not be long: who needs the root is refused with this.
  std::optional<Error> busy = {};
  std::string text;  // for people: "finished the rollback to 'x' that was interrupted"
};
Result<std::optional<Recovered>> Recover(Store& store, const RollbackRequest& request);

}  // namespace belay
