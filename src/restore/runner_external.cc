// Files outside of the root: a mover for each directory, on the same way as the rest.

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/external.h"
#include "restore/runner_internal.h"

namespace belay {

// A journal leads to no file of this root, which its own mover has, and to none that
// nobody may name (DecodeJournal).
Status Runner::OpenExternal() {
  if (external_open_) return Ok();
  external_.clear();
  BELAY_TRY(AbsPath root, AbsPath::Parse(path_));
  for (const ExternalMove& move : journal_.external) {
    BELAY_TRY(AbsPath path, AbsPath::Parse(move.dir));
    auto dir = OpenRealDir(store_.fs(), path);
    if (!dir.ok() && !IsAbsence(dir.error())) return std::move(dir).error();
    bool there = dir.ok() && !path.IsWithin(root);
    if (there) {
      BELAY_TRY(FileStat stat, store_.fs().Stat(*dir));
      there = stat.ino == move.ino;
    }
    // Gone since an interruption: the rest is all that is left to be moved.
    if (!there && journal_.operation.recovered) continue;
    if (!there)
      return Error(Errc::kConflict,
                   EscapeForDisplay(move.dir) + " is not the directory that it was");
    auto part = std::make_unique<ExternalPart>();
    part->move = &move;
    part->dir = std::move(*dir);
    part->view.operation = journal_.operation;
    part->view.stage = journal_.stage;
    part->view.changes = move.changes;
    part->view.times_ns = journal_.times_ns;
    part->mover = std::make_unique<Mover>(store_, part->dir, part->view);
    external_.push_back(std::move(part));
  }
  external_open_ = true;
  return Ok();
}

Status Runner::MoveExternal(Way way) {
  for (auto& part : external_) {
    // What nobody moved needs no way back.
    if (way == Way::kBack && !part->moved && !journal_.operation.recovered) continue;
    part->moved = true;
    if (way == Way::kBack && BELAY_MUTANT("external-stays-half-way")) continue;
    Status moved = part->mover->Move(way);
    if (!moved.ok()) return InUsersWords(std::move(moved).error(), part->view);
  }
  return Ok();
}

Status Runner::VerifyExternal(Way way, Outcome& out) {
  for (auto& part : external_) {
    if (!part->moved) continue;
    BELAY_TRY(auto verified, part->mover->FlushAndVerify(way));
    if (way == Way::kBack) continue;
    for (const std::string& name : verified.changed)
      out.changed_by_others.push_back(part->move->dir + "/" + name);
    for (const std::string& name : verified.attributes)
      out.warnings.push_back("mode, owner or attributes of " +
                             EscapeForDisplay(part->move->dir + "/" + name) +
                             " could not be set");
    external_right_ = external_right_ && verified.attributes.empty();
  }
  return Ok();
}

Result<std::vector<Runner::FoundOutside>> Runner::SettleExternal(ScanSink& sink,
                                                                 Outcome& out) {
  std::vector<FoundOutside> all;
  for (auto& part : external_) {
    BELAY_TRY(auto found, part->mover->Settle(sink));
    for (const Mover::Found& one : found)
      all.push_back({part->move->dir + "/" + part->move->changes[one.index].path,
                     one.state, one.half_written});
    for (const std::string& name : part->mover->held_open())
      out.warnings.push_back("another program still writes to the old " +
                             EscapeForDisplay(part->move->dir + "/" + name) +
                             "; what it writes from now on goes nowhere");
  }
  return all;
}

Status Runner::TidyExternal() {
  // A directory that is gone holds nothing of ours.
  if (!OpenExternal().ok()) return Ok();
  for (auto& part : external_) BELAY_OK(part->mover->RemoveStage());
  return Ok();
}

}  // namespace belay
