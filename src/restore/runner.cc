#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/naming_internal.h"
#include "restore/overlay.h"
#include "restore/runner_internal.h"

namespace belay {

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

Error Interrupted(const Error& why, const Error& back) {
  Error error(Errc::kIo, why.what + "; taking it back is interrupted: " + back.what);
  return std::move(error).WithHint(
      "the next belay command here finishes it or takes it back");
}

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

std::string NothingChanged(const std::optional<RecordId>& safety) {
  if (!safety) return "nothing was changed";
  return "nothing was changed (your present state was kept as " +
         safety->text().substr(0, 7) + ")";
}

Runner::Runner(Store& store, const Fd& root, Journal journal,
               std::shared_ptr<const HeldContents> known)
    : store_(store),
      root_(root),
      journal_(std::move(journal)),
      mover_(store, root, journal_, std::move(known)),
      began_(store.clock().SteadyNanos()) {}

Status Runner::Forward(const std::function<bool()>& stop, Outcome& out) {
  Status moved = mover_.Move(Way::kForward, stop);
  if (moved.ok()) {
    auto verified = mover_.FlushAndVerify(Way::kForward);
    if (verified.ok()) {
      out.changed_by_others = verified->changed;
      for (const std::string& path : verified->attributes)
        out.warnings.push_back("mode, owner or attributes of " +
                               EscapeForDisplay(ShownPath(path)) + " could not be set");
      out.verified = verified->changed.empty() && verified->attributes.empty();
    } else {
      moved = std::move(verified).error();
    }
  }
  if (moved.ok()) moved = Record(out);
  if (moved.ok()) {
    // The journal stays when it fails, and leads the next one here to what is left.
    if (Status tidied = Tidy(); !tidied.ok()) {
      const bool there = store_.fs().StatAt(root_, Name::Literal(journal_.stage)).ok();
      out.warnings.push_back((there ? "the directory " + journal_.stage +
                                          ", in which files were made ready,"
                                    : std::string("the journal of what was done")) +
                             " could not be removed (" + tidied.error().what +
                             "); the next belay command here tries again");
    }
    return moved;
  }
  return TakeBack(std::move(moved).error(), out);
}

Status Runner::TakeBack(Error why, Outcome& out) {
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
    why.hint = std::string(kOthersChanged) + EscapeForDisplay(mover_.theirs().front()) +
               (mover_.theirs().size() > 1 ? " and more" : "") +
               ", which is left so; how it was is in the newest checkpoint";
  } else if (why.hint.empty()) {
    why.hint = NothingChanged(journal_.operation.safety);
  }
  return why;
}

Status Runner::Tidy() {
  if (BELAY_MUTANT("journal-goes-first"))
    BELAY_OK(JournalFile::Remove(store_, journal_.operation.root));
  BELAY_OK(mover_.RemoveStage());
  return JournalFile::Remove(store_, journal_.operation.root);
}

Status Runner::Record(Outcome& out) {
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

Status Runner::StoreFound(Outcome& out) {
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

Result<Checkpoint> Runner::AddRaced(BatchWriter& writer, ScanSink& sink,
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
      InADescription(journal_.operation) + ": " +
      journal_.changes[found[0].index].path +
      (found.size() > 1 ? " and " + std::to_string(found.size() - 1) + " more" : "");
  raced.modified = found.size();
  writer.Add(ToRecord(raced));
  return raced;
}

}  // namespace belay
