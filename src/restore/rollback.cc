#include "restore/rollback.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/last_failure.h"
#include "core/roots.h"
#include "git/index_stat.h"
#include "restore/displaced.h"
#include "restore/journal.h"
#include "restore/mover.h"
#include "restore/overlay.h"
#include "store/heads.h"

namespace belay {

namespace {

constexpr std::string_view kOthersChanged = "others have changed ";

std::string Quoted(const std::string& text) {
  return "'" + EscapeForDisplay(text) + "'";
}

std::string LabelOf(const Checkpoint& checkpoint) {
  if (checkpoint.name) return *checkpoint.name;
  return checkpoint.description;
}

// "the rollback to 'before refactor'", "the undo"
std::string Naming(const Operation& operation) {
  std::string text = "the " + std::string(OperationName(operation.kind));
  if (operation.label.empty()) return text;
  text += operation.kind == OperationKind::kRollback
              ? " to " + Quoted(operation.label)
              : " of the rollback to " + Quoted(operation.label);
  return text;
}

// The root's lock, with a note for those who have to wait.
class RootLock {
 public:
  static Result<RootLock> Take(Store& store, const RollbackRequest& request,
                               const std::string& what) {
    auto lock = store.locks().AcquireRoot(request.root.id, request.lock_wait_ms);
    if (!lock.ok()) {
      if (lock.error().code != Errc::kBusy) return std::move(lock).error();
      auto who = WhoIsAtWork(store, request.root.id);
      return Error(Errc::kBusy,
                   who ? "belay " + EscapeForDisplay(who->what) + " (process " +
                             std::to_string(who->pid) + ") is at work on this directory"
                       : "another belay command is at work on this directory")
          .WithHint("try again when it is done");
    }
    NoteAtWork(store, request.root.id, {what, request.pid});
    return RootLock(store, request.root.id, std::move(*lock));
  }
  RootLock(RootLock&& other) noexcept
      : store_(other.store_), root_(other.root_), lock_(std::move(other.lock_)) {
    other.store_ = nullptr;
  }
  RootLock& operator=(RootLock&&) = delete;
  ~RootLock() {
    if (store_ != nullptr) ForgetAtWork(*store_, root_);
  }

 private:
  RootLock(Store& store, const RootId& root, HeldLock lock)
      : store_(&store), root_(root), lock_(std::move(lock)) {}
  Store* store_;
  RootId root_;
  HeldLock lock_;
};

Result<Fd> OpenRootDir(Store& store, const Root& root) {
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  return store.fs().OpenDir(path);
}

// The root itself among `changes`, which it comes first of.
const PathChange* RootItself(const std::vector<PathChange>& changes) {
  return changes.empty() || !changes.front().path.empty() ? nullptr : &changes.front();
}
bool MakesRoot(const std::vector<PathChange>& changes) {
  const PathChange* root = RootItself(changes);
  return root != nullptr && !root->before;
}
bool TakesRootAway(const std::vector<PathChange>& changes) {
  const PathChange* root = RootItself(changes);
  return root != nullptr && !root->after && !BELAY_MUTANT("leave-empty-root");
}

// Gone, or gone as before, unless there is something in it or to be done. After the
// journal: who finds one waits for the root.
bool TakeRootAway(Store& store, const Root& root) {
  auto pending = JournalFile::Exists(store, root.id);
  auto path = AbsPath::Parse(root.path);
  if (!pending.ok() || *pending || !path.ok() || path->is_root()) return false;
  auto parent = store.fs().OpenDir(path->parent());
  auto name = RelPath::Parse(std::string_view(path->bytes()).substr(1));
  return parent.ok() && name.ok() &&
         store.fs().RemoveDir(*parent, name->basename()).ok();
}

// A root that is gone comes back, empty at first.
Result<Fd> MakeRoot(Store& store, const Root& root, const PathState& wanted) {
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  if (!path.is_root()) {
    BELAY_TRY(Fd parent, MakeDirs(store.fs(), path.parent(), 0755));
  }
  BELAY_TRY(Fd dir, MakeDirs(store.fs(), path, wanted.mode | 0700));
  BELAY_TRY(FileStat stat, store.fs().Stat(dir));
  if (stat.uid != wanted.uid || stat.gid != wanted.gid)
    (void)store.fs().SetOwner(dir, wanted.uid, wanted.gid);
  BELAY_OK(store.fs().SetMode(dir, wanted.mode));
  return dir;
}

// The plan of an operation that made the root: so that an undo takes it away.
Status AddMadeRoot(Store& store, const Fd& root, Plan& plan) {
  BELAY_TRY(FileStat stat, store.fs().Stat(root));
  if (RootItself(plan.changes) != nullptr) plan.changes.erase(plan.changes.begin());
  plan.changes.insert(plan.changes.begin(),
                      {"", std::nullopt, RootState(stat.mode, stat.uid, stat.gid)});
  return Ok();
}

// An error about a file that is made ready beside the others is about the path that it
// is to become: nobody else knows of a staging directory.
Error InUsersWords(Error error, const Journal& journal) {
  const size_t at = error.what.find("/" + journal.stage);
  if (at == std::string::npos) return error;
  size_t end = at + 1 + journal.stage.size();
  std::string path;
  if (end < error.what.size() && error.what[end] == '/') {
    // "/<index of the change>.<number>"
    size_t index = 0;
    const char* last = error.what.data() + error.what.size();
    auto [dot, bad] = std::from_chars(error.what.data() + end + 1, last, index);
    end = std::min(error.what.size(), error.what.find(':', end));
    if (bad == std::errc() && dot != last && *dot == '.' &&
        index < journal.changes.size())
      path = "/" + journal.changes[index].path;
  }
  error.what.replace(at, end - at, path);
  return error;
}

// Neither done nor taken back: the journal is there, or may be.
Error Interrupted(const Error& why, const Error& back) {
  Error error(Errc::kIo, why.what + "; taking it back is interrupted: " + back.what);
  return std::move(error).WithHint(
      "the next belay command here finishes it or takes it back");
}

// The first path of the journal, or directory above one, on which something is mounted
// by now. There was nothing when it was planned: no plan touches what is mounted.
std::optional<std::string> MountedOver(Fs& fs, const Fd& root, const Journal& journal) {
  std::unordered_set<std::string> seen;
  for (const PathChange& change : journal.changes) {
    const std::string& path = change.path;
    for (size_t end = 0; end != path.size();) {
      end = std::min(path.size(), path.find('/', end + 1));
      std::string at = path.substr(0, end);
      if (!seen.insert(at).second) continue;
      auto parsed = RelPath::Parse(at);
      if (!parsed.ok()) break;
      auto handle = fs.OpenBeneath(root, *parsed, {.access = OpenMode::Access::kPath});
      if (!handle.ok()) break;  // not there, or the move will say what is wrong
      auto stat = fs.Stat(*handle);
      if (stat.ok() && stat->mount_root) return at;
    }
  }
  return std::nullopt;
}

// In the tree; the safety checkpoint stays.
std::string NothingChanged(const std::optional<RecordId>& safety) {
  if (!safety) return "nothing was changed";
  return "nothing was changed (your present state was kept as " +
         safety->text().substr(0, 7) + ")";
}

// Runs one journal to its end: forward and recorded, or back and forgotten.
class Runner {
 public:
  Runner(Store& store, const Fd& root, Journal journal,
         std::shared_ptr<const HeldContents> known = nullptr)
      : store_(store),
        root_(root),
        journal_(std::move(journal)),
        mover_(store, root, journal_, std::move(known)),
        began_(store.clock().SteadyNanos()) {}

  Status Forward(const std::function<bool()>& stop, Outcome& out) {
    Status moved = mover_.Move(Way::kForward, stop);
    if (moved.ok()) {
      auto verified = mover_.FlushAndVerify(Way::kForward);
      if (verified.ok()) {
        out.changed_by_others = verified->changed;
        for (const std::string& path : verified->attributes)
          out.warnings.push_back("mode, owner or attributes of " +
                                 EscapeForDisplay(ShownPath(path)) +
                                 " could not be set");
        out.verified = verified->changed.empty() && verified->attributes.empty();
      } else {
        moved = std::move(verified).error();
      }
    }
    if (moved.ok()) moved = Record(out);
    if (moved.ok()) {
      (void)Tidy();  // when it fails the journal stays, and the next one tidies
      return moved;
    }
    return TakeBack(std::move(moved).error(), out);
  }

  // After an error: the tree as it was, and the error. kIo "interrupted" when not even
  // that can be done now.
  Status TakeBack(Error why, Outcome& out) {
    out.operation.reset();
    out.verified = false;
    // What is beneath a mount cannot be taken back now; half of it would be neither
    // tree.
    if (auto mounted = MountedOver(store_.fs(), root_, journal_);
        mounted && !around_mounts_)
      return Interrupted(why, Error(Errc::kConflict, "something is mounted over " +
                                                         EscapeForDisplay(*mounted)));
    Status back = BELAY_MUTANT("stay-half-way") ? Ok() : mover_.Move(Way::kBack);
    if (back.ok()) {
      auto verified = mover_.FlushAndVerify(Way::kBack);
      if (!verified.ok()) back = std::move(verified).error();
    }
    if (back.ok()) back = StoreFound(out);
    if (back.ok()) back = Tidy();
    why = InUsersWords(std::move(why), journal_);
    if (!back.ok()) return Interrupted(why, InUsersWords(back.error(), journal_));
    if (!mover_.theirs().empty()) {
      why.hint = std::string(kOthersChanged) +
                 EscapeForDisplay(mover_.theirs().front()) +
                 (mover_.theirs().size() > 1 ? " and more" : "") +
                 ", which is left so; how it was is in the newest checkpoint";
    } else if (why.hint.empty()) {
      why.hint = NothingChanged(journal_.operation.safety);
    }
    return why;
  }

  // The operation is in the log, or was taken back: what is left is ours to remove.
  Status Tidy() {
    if (BELAY_MUTANT("journal-goes-first"))
      BELAY_OK(JournalFile::Remove(store_, journal_.operation.root));
    BELAY_OK(mover_.RemoveStage());
    return JournalFile::Remove(store_, journal_.operation.root);
  }

  const Journal& journal() const { return journal_; }
  // What is beneath a mount is passed over, and named.
  void GoAroundMounts() { around_mounts_ = true; }

 private:
  // What raced us goes into the log together with the operation.
  Status Record(Outcome& out) {
    BELAY_TRY(auto writer, store_.Begin());
    BatchSink sink(*writer);
    BELAY_TRY(auto found, mover_.Settle(sink));
    std::vector<PathChange> changes = journal_.changes;
    for (const Mover::Found& one : found)
      if (!one.half_written) changes[one.index].before = one.state;
    const auto& left = mover_.left();
    for (const std::string& path : left) out.plan.kept.push_back({path, "not_empty"});
    auto stayed = [&](const PathChange& change) {
      return std::find(left.begin(), left.end(), change.path) != left.end();
    };
    std::erase_if(changes, [&](const PathChange& change) {
      return SameState(change.before, change.after) || stayed(change);
    });
    std::erase_if(out.plan.changes, stayed);
    for (const std::string& path : mover_.held_open())
      out.warnings.push_back("another program still writes to the old " +
                             EscapeForDisplay(path) +
                             "; what it writes from now on goes nowhere");
    Operation operation = journal_.operation;
    BELAY_TRY(operation.changes,
              writer->PutObject(ObjectType::kNode, EncodeNode(EncodeChanges(changes))));
    operation.made_ms = store_.clock().WallMillis();
    operation.took_us +=
        static_cast<uint64_t>(store_.clock().SteadyNanos() - began_) / 1000;
    operation.paths = changes.size();
    std::optional<Checkpoint> raced;
    if (!found.empty()) {
      BELAY_TRY(raced, AddRaced(*writer, sink, found));
    }
    writer->Add(ToRecord(operation));
    BELAY_TRY(auto published, writer->Commit());
    if (raced) raced->seq = published.first_seq;
    operation.seq = published.first_seq + (raced ? 1 : 0);
    out.operation = std::move(operation);
    out.raced = std::move(raced);
    return Ok();
  }

  Status StoreFound(Outcome& out) {
    BELAY_TRY(auto writer, store_.Begin());
    BatchSink sink(*writer);
    BELAY_TRY(auto found, mover_.Settle(sink));
    if (found.empty()) return Ok();
    BELAY_TRY(Checkpoint raced, AddRaced(*writer, sink, found));
    BELAY_TRY(auto published, writer->Commit());
    raced.seq = published.first_seq;
    out.raced = std::move(raced);
    return Ok();
  }

  // A checkpoint of what was edited while we were at it: as the safety checkpoint, with
  // those paths as they were found.
  Result<Checkpoint> AddRaced(BatchWriter& writer, ScanSink& sink,
                              const std::vector<Mover::Found>& found) {
    Checkpoint raced;
    State state;
    if (journal_.operation.safety) {
      BELAY_TRY(auto catalog, Catalog::Open(store_));
      auto safety =
          catalog->FindById(journal_.operation.root, journal_.operation.safety->text());
      if (safety.ok()) {
        auto read = store_.GetState(safety->checkpoint.state);
        if (read.ok()) state = *read;
        raced.files = safety->checkpoint.files;
        raced.bytes = safety->checkpoint.bytes;
      }
    }
    if (state.tree.is_zero()) {
      BELAY_TRY(state.tree, sink.PutTree(Tree()));
    }
    std::vector<Overlaid> paths;
    for (const Mover::Found& one : found)
      paths.push_back({journal_.changes[one.index].path, one.state});
    auto dir = [](const std::string&) -> Result<PathState> {
      PathState unknown;
      unknown.kind = EntryKind::kDirectory;
      unknown.mode = 0700;
      return unknown;
    };
    auto read = [&](const ObjectId& id) -> Result<Tree> {
      auto tree = store_.GetTree(id);
      if (!tree.ok() && tree.error().code == Errc::kNotFound) return Tree();
      return tree;
    };
    BELAY_TRY(state.tree, OverlayTree(state.tree, paths, read, dir, sink));
    BELAY_TRY(raced.state, writer.PutObject(ObjectType::kState, EncodeState(state)));
    raced.id = RecordId(store_.random().NewId());
    raced.root = journal_.operation.root;
    raced.made_ms = store_.clock().WallMillis();
    raced.kind = CheckpointKind::kSafety;
    const bool edits =
        std::any_of(found.begin(), found.end(),
                    [](const Mover::Found& one) { return !one.half_written; });
    raced.description =
        (edits ? "edited during " : "half written at the interruption of ") +
        Naming(journal_.operation).substr(4) + ": " +
        journal_.changes[found[0].index].path +
        (found.size() > 1 ? " and " + std::to_string(found.size() - 1) + " more" : "");
    raced.modified = found.size();
    writer.Add(ToRecord(raced));
    return raced;
  }

  Store& store_;
  const Fd& root_;
  const Journal journal_;
  Mover mover_;
  const int64_t began_;
  bool around_mounts_ = false;
};

// Does the log have this operation? Then it was finished.
Result<bool> IsRecorded(Store& store, const Operation& operation) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto operations, ListOperations(*catalog, operation.root));
  return std::any_of(operations.begin(), operations.end(),
                     [&](const Operation& o) { return o.id == operation.id; });
}

// `around_mounts`: what is beneath something that was mounted since stays as it is,
// instead of being waited for.
Result<std::optional<Recovered>> RecoverLocked(Store& store, const Root& root,
                                               bool around_mounts = false) {
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
  BELAY_TRY(bool recorded, IsRecorded(store, journal.operation));
  BELAY_TRY(HeldLock hold, store.HoldForReading());
  journal.operation.recovered = true;
  Runner runner(store, *dir, std::move(journal));
  if (recorded) {
    if (Status tidied = runner.Tidy(); !tidied.ok())
      return InUsersWords(std::move(tidied).error(), runner.journal());
    if (TakesRootAway(runner.journal().changes)) TakeRootAway(store, root);
    out.how = Recovered::How::kTidied;
    out.text = name + " was complete; its traces were removed";
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
  Outcome outcome;
  hold.Release();
  Status forward = runner.Forward({}, outcome);
  if (outcome.raced) out.raced = outcome.raced;
  if (forward.ok()) {
    if (TakesRootAway(runner.journal().changes)) TakeRootAway(store, root);
    out.operation = *outcome.operation;
    out.how = Recovered::How::kFinished;
    out.text =
        "finished " + name + " that was interrupted; take it back with: belay undo";
    if (out.raced && out.raced->description.starts_with("edited"))
      out.text += "; what was edited since the interruption is kept in " +
                  out.raced->id.text().substr(0, 7);
    return std::optional(std::move(out));
  }
  // Taken back, unless the journal is still there.
  BELAY_TRY(bool pending, JournalFile::Exists(store, root.id));
  if (pending) return std::move(forward).error();
  if (MakesRoot(runner.journal().changes)) TakeRootAway(store, root);
  out.how = Recovered::How::kTakenBack;
  out.text =
      "took back " + name + " that was interrupted (" + forward.error().what + ")";
  if (forward.error().hint.starts_with(kOthersChanged)) {
    // Not all of it could be taken back: said until somebody has gone on from here.
    out.text += "; " + forward.error().hint;
    if (out.operation.safety)
      out.text += ": belay rollback " + out.operation.safety->text().substr(0, 7);
    BELAY_TRY(auto catalog, Catalog::Open(store));
    BELAY_TRY(auto last, catalog->LastCheckpoint(root.id));
    RememberFailure(store, root.id,
                    {.of = FailureOf::kRollback,
                     .at_ms = store.clock().WallMillis(),
                     .after = last ? last->checkpoint.id : RecordId(),
                     .what = out.text});
  }
  return std::optional(std::move(out));
}

// Before something new is begun: what waits for a directory that is gone, or for one
// that something is mounted over, is not written over, unless somebody says so.
Result<std::optional<Recovered>> RecoverOrRefuse(Store& store,
                                                 const RollbackRequest& request) {
  BELAY_TRY(auto recovered, RecoverLocked(store, request.root));
  if (!recovered || recovered->how != Recovered::How::kWaiting) return recovered;
  if (!request.force)
    return Error(Errc::kRefused, recovered->text)
        .WithHint(recovered->mounted
                      ? "to end it without what is beneath: belay rollback REF --force"
                      : "to give it up and roll back here: belay rollback REF --force");
  if (recovered->mounted)
    return RecoverLocked(store, request.root, /*around_mounts=*/true);
  BELAY_TRY(std::string aside, JournalFile::PutAside(store, request.root.id));
  recovered->how = Recovered::How::kDropped;
  recovered->text = Naming(recovered->operation) +
                    ", interrupted in a directory that is gone, was given up (" +
                    aside + ")";
  return recovered;
}

// What a draft of a safety checkpoint needs so that it holds all that will be touched.
Status CompleteSafety(Store& store, const Fd& root, const Plan& plan, Draft& draft) {
  BELAY_TRY(ObjectId changes,
            draft.writer.PutObject(ObjectType::kNode,
                                   EncodeNode(EncodeChanges(plan.changes))));
  draft.more_refs.push_back({ObjectType::kNode, changes});
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

// Steps of `plan` that `shown` does not have. What is in a file may be another by now:
// that it is overwritten was said.
std::vector<std::string> StepsBeyond(const Plan& shown, const Plan& plan) {
  auto text = [](const Step& step) {
    return std::string(step.op) + " " + ShownPath(step.change->path);
  };
  std::unordered_set<std::string> known;
  for (const Step& step : StepsOf(shown.changes)) known.insert(text(step));
  std::vector<std::string> out;
  for (const Step& step : StepsOf(plan.changes))
    if (!known.contains(text(step))) out.push_back(text(step));
  return out;
}

using PlanMaker = std::function<Result<Plan>(const Fd& root, Draft& draft)>;

// The common way: safety checkpoint, journal, apply, verify, record.
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
    if (out.plan.changes.empty() || !out.conflicts.empty() || !out.unshown.empty()) {
      draft.publish = false;
      return Ok();
    }
    BELAY_TRY(auto again, SecureDisplaced(store, root, out.plan, draft));
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
    if (out.plan.changes.empty()) return out;
  }

  Journal journal;
  journal.operation = std::move(operation);
  journal.operation.id = RecordId(store.random().NewId());
  journal.operation.root = request.root.id;
  journal.operation.made_ms = store.clock().WallMillis();
  if (out.safety) journal.operation.safety = out.safety->id;
  journal.operation.paths = out.plan.changes.size();
  journal.operation.took_us =
      static_cast<uint64_t>(store.clock().SteadyNanos() - began) / 1000;
  journal.stage = StageName(journal.operation.id);
  journal.changes = out.plan.changes;
  journal.locked = out.plan.locked;
  journal.times_ns = times_ns;
  BELAY_TRY(FileStat root_stat, store.fs().Stat(root));
  journal.root_ino = root_stat.ino;
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
  Runner runner(store, root, std::move(journal), std::move(out.plan.contents));
  BELAY_OK(runner.Forward(request.stop, out));
  return out;
}

Result<Plan> PlanFor(const PlanInput& input, const PlanOptions& options) {
  auto plan = MakePlan(input, options);
  if (!plan.ok()) return AsDamage(std::move(plan).error());
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

// True: it was gone, and is there again as the checkpoint knew it.
Result<bool> BringRootBack(Store& store, const RollbackRequest& request,
                           PathState wanted) {
  auto there = OpenRootDir(store, request.root);
  if (there.ok()) return false;
  if (there.error().code != Errc::kNotFound) return std::move(there).error();
  if (request.plan.uid != 0) {
    wanted.uid = request.plan.uid;
    if (std::find(request.plan.groups.begin(), request.plan.groups.end(), wanted.gid) ==
            request.plan.groups.end() &&
        !request.plan.groups.empty())
      wanted.gid = request.plan.groups.front();
  }
  BELAY_TRY(Fd made, MakeRoot(store, request.root, wanted));
  return true;
}

Operation RollbackTo(const Checkpoint& target, const RollbackRequest& request) {
  Operation operation;
  operation.kind = OperationKind::kRollback;
  operation.target = target.id;
  operation.label = LabelOf(target);
  operation.paths_only = !request.plan.select.empty();
  return operation;
}

// --- undo and redo -------------------------------------------------------------------

Result<std::vector<PathChange>> ChangesOf(Store& store, const Operation& operation) {
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, operation.changes}));
  BELAY_TRY(Node node, DecodeNode(bytes));
  return DecodeChanges(node);
}

Result<Outcome> PerformChanges(Store& store, const RollbackRequest& request,
                               Operation operation, std::vector<PathChange> changes,
                               bool exact, uint64_t seq) {
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
  const std::string what = "before " + std::string(OperationName(operation.kind)) +
                           " of the rollback to " + Quoted(operation.label);
  std::vector<Conflict> conflicts;
  bool was_gone = false;
  if (MakesRoot(changes)) {
    BELAY_TRY(was_gone, BringRootBack(store, request, *changes.front().after));
  }
  auto make = [&](const Fd& root, Draft& draft) -> Result<Plan> {
    conflicts.clear();
    BELAY_TRY(Plan plan,
              PlanReplay(store, root, draft, changes, request.plan, exact, conflicts));
    plan.kept.insert(plan.kept.end(), kept.begin(), kept.end());
    if (!conflicts.empty())
      plan.changes.clear();
    else if (was_gone)
      BELAY_OK(AddMadeRoot(store, root, plan));
    return plan;
  };
  auto done = Perform(store, request, std::move(operation), what, std::nullopt, make,
                      std::move(out));
  if (was_gone && (!done.ok() || !done->operation)) TakeRootAway(store, request.root);
  if (!done.ok()) return done;
  done->conflicts = std::move(conflicts);
  if (done->operation && TakesRootAway(done->plan.changes) &&
      !TakeRootAway(store, request.root))
    done->plan.kept.push_back({".", "not_empty"});
  return done;
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
  BELAY_TRY(out.plan, PlanFor(input, options));
  if (!root.is_open())
    out.plan.changes.insert(out.plan.changes.begin(), {"", std::nullopt, RootOf(view)});
  if (root.is_open()) WarnOfUncommitted(store.fs(), root, now.summary, out);
  out.plan.contents.reset();  // a person may take long to decide
  if (!view.trouble.empty())
    out.warnings.push_back("the rules of that time cannot be read (" + view.trouble +
                           "); nothing is deleted");
  return out;
}

Result<Outcome> Rollback(Store& store, const RollbackRequest& request,
                         const Checkpoint& target) {
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "rollback"));
  BELAY_TRY(auto recovered, RecoverOrRefuse(store, request));
  Outcome out;
  if (recovered) out.warnings.push_back(recovered->text);
  BELAY_TRY(StateView view, LoadTarget(store, target));
  BELAY_TRY(const bool was_gone, BringRootBack(store, request, RootOf(view)));
  if (!view.trouble.empty())
    out.warnings.push_back("the rules of that time cannot be read (" + view.trouble +
                           "); nothing was deleted");
  PlanOptions options = request.plan;
  options.partial = target.partial;
  const std::shared_ptr<const RuleConfig> rules = RulesFrom(*request.settings);
  BELAY_TRY(AbsPath root_path, AbsPath::Parse(request.root.path));
  BELAY_TRY(Heads heads, Heads::Read(store));
  BELAY_TRY(std::vector<AbsPath> others, RootsInside(heads.roots(), request.root));
  BELAY_TRY(const Purged purged, PurgedSince(store, heads, request.root, target.seq));
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
    BELAY_TRY(Plan plan, PlanFor(input, options));
    if (was_gone) BELAY_OK(AddMadeRoot(store, root, plan));
    return plan;
  };
  std::optional<int64_t> times;
  if (request.preserve_times) times = target.made_ms * 1'000'000;
  auto done = Perform(store, request, RollbackTo(target, request),
                      "before rollback to " + Quoted(LabelOf(target)), times, make,
                      std::move(out));
  if (was_gone && (!done.ok() || !done->operation)) TakeRootAway(store, request.root);
  return done;
}

Result<Outcome> Undo(Store& store, Catalog& catalog, const RollbackRequest& request,
                     const std::optional<RecordId>& which, bool exact) {
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "undo"));
  BELAY_TRY(auto recovered, RecoverOrRefuse(store, request));
  BELAY_TRY(auto operations, ListOperations(catalog, request.root.id));
  UndoStacks stacks = StacksOf(operations);
  if (stacks.undo.empty())
    return Error(Errc::kRefused, "there is nothing to undo")
        .WithHint("see what was done with: belay log");
  size_t at = stacks.undo.size() - 1;
  if (which) {
    while (at < stacks.undo.size() && stacks.undo[at].id != *which) --at;
    if (at >= stacks.undo.size())
      return Error(Errc::kNotFound, "that operation is not there to be undone")
          .WithHint("see what can be with: belay log");
  }
  const Operation& undone = stacks.undo[at];
  BELAY_TRY(std::vector<PathChange> changes, ChangesOf(store, undone));
  Operation operation;
  operation.kind = OperationKind::kUndo;
  operation.of = undone.id;
  operation.target = undone.safety;
  operation.label = undone.label;
  operation.paths_only = undone.paths_only;
  operation.out_of_order = at + 1 != stacks.undo.size();
  BELAY_TRY(Outcome out,
            PerformChanges(store, request, std::move(operation),
                           Reversed(std::move(changes)), exact, undone.seq));
  out.undone = Naming(undone);
  if (recovered) out.warnings.push_back(recovered->text);
  return out;
}

Result<Outcome> Redo(Store& store, Catalog& catalog, const RollbackRequest& request,
                     bool exact) {
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "redo"));
  BELAY_TRY(auto recovered, RecoverOrRefuse(store, request));
  BELAY_TRY(auto operations, ListOperations(catalog, request.root.id));
  UndoStacks stacks = StacksOf(operations);
  if (stacks.redo.empty())
    return Error(Errc::kRefused, "there is nothing to redo")
        .WithHint("see what was done with: belay log");
  const Operation& redone = stacks.redo.back();
  BELAY_TRY(std::vector<PathChange> changes, ChangesOf(store, redone));
  Operation operation;
  operation.kind = OperationKind::kRedo;
  operation.of = redone.id;
  operation.target = redone.target;
  operation.label = redone.label;
  operation.paths_only = redone.paths_only;
  BELAY_TRY(Outcome out, PerformChanges(store, request, std::move(operation),
                                        std::move(changes), exact, redone.seq));
  out.undone = Naming(redone);
  if (recovered) out.warnings.push_back(recovered->text);
  return out;
}

Result<std::optional<Recovered>> Recover(Store& store, const RollbackRequest& request) {
  BELAY_TRY(bool pending, JournalFile::Exists(store, request.root.id));
  if (!pending) return std::optional<Recovered>();
  BELAY_TRY(RootLock lock, RootLock::Take(store, request, "recovery"));
  return RecoverLocked(store, request.root);
}

}  // namespace belay
